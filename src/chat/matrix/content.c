#include "content.h"
#include <stdio.h>
#include <string.h>

enum { CONTENT_MAX = 16 << 20 };

/* ---- HTML ---- */

static void escaped(struct str *out, const char *text, bool breaks)
{
    for (const char *p = text; *p; p++) {
        switch (*p) {
        case '&': str_puts(out, "&amp;"); break;
        case '<': str_puts(out, "&lt;"); break;
        case '>': str_puts(out, "&gt;"); break;
        case '"': str_puts(out, "&quot;"); break;
        case '\n': str_puts(out, breaks ? "<br>" : "\n"); break;
        default: str_putc(out, *p); break;
        }
    }
}

static const struct {
    unsigned style;
    const char *open, *shut;
} styles[] = {
    { MARKUP_BOLD, "<strong>", "</strong>" },
    { MARKUP_ITALIC, "<em>", "</em>" },
    { MARKUP_STRIKE, "<del>", "</del>" },
    { MARKUP_MONO, "<code>", "</code>" },
};

static void run(struct str *out, const struct markup_run *r)
{
    if (r->url) {
        str_puts(out, "<a href=\"");
        escaped(out, r->url, false);
        str_puts(out, "\">");
    }
    for (size_t i = 0; i < countof(styles); i++)
        str_puts(out, r->style & styles[i].style ? styles[i].open : "");
    escaped(out, r->text, true);
    for (size_t i = countof(styles); i-- > 0;)
        str_puts(out, r->style & styles[i].style ? styles[i].shut : "");
    str_puts(out, r->url ? "</a>" : "");
}

static void runs(struct str *out, const struct markup *m)
{
    for (size_t i = 0; i < m->run_n; i++)
        run(out, &m->runs[i]);
}

static void block(struct str *out, const struct markup *m, bool tight);

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void blocks(struct str *out, const struct markup *m, bool tight)
{
    for (const struct markup *x = m->first; x; x = x->next)
        block(out, x, tight);
}

static void row(struct str *out, const struct markup *m, const char *cell)
{
    str_puts(out, "<tr>");
    for (const struct markup *x = m->first; x; x = x->next) {
        str_printf(out, "<%s>", cell);
        runs(out, x);
        str_printf(out, "</%s>", cell);
    }
    str_puts(out, "</tr>");
}

static void table(struct str *out, const struct markup *m)
{
    if (!m->first)
        return;
    str_puts(out, "<table><thead>");
    row(out, m->first, "th");
    str_puts(out, "</thead><tbody>");
    for (const struct markup *x = m->first->next; x; x = x->next)
        row(out, x, "td");
    str_puts(out, "</tbody></table>");
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void list(struct str *out, const struct markup *m)
{
    if (m->ordered && m->start != 1)
        str_printf(out, "<ol start=\"%lld\">", (long long)m->start);
    else
        str_puts(out, m->ordered ? "<ol>" : "<ul>");
    for (const struct markup *x = m->first; x; x = x->next) {
        str_puts(out, "<li>");
        str_puts(out, !x->task ? "" : x->done ? "\xe2\x98\x91 " : "\xe2\x98\x90 ");
        blocks(out, x, m->tight);
        str_puts(out, "</li>");
    }
    str_puts(out, m->ordered ? "</ol>" : "</ul>");
}

static void code(struct str *out, const struct markup *m)
{
    str_puts(out, "<pre><code");
    if (m->language)
        str_printf(out, " class=\"language-%s\"", m->language);
    str_putc(out, '>');
    for (size_t i = 0; i < m->run_n; i++)
        escaped(out, m->runs[i].text, false);
    str_puts(out, "</code></pre>");
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void around(struct str *out, const struct markup *m, const char *tag, int level)
{
    char name[24];
    (void)snprintf(name, sizeof(name), level ? "%s%d" : "%s", tag, level);
    str_printf(out, "<%s>", name);
    if (m->kind == MARKUP_QUOTE)
        blocks(out, m, false);
    else
        runs(out, m);
    str_printf(out, "</%s>", name);
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void block(struct str *out, const struct markup *m, bool tight)
{
    switch (m->kind) {
    case MARKUP_DOC:
    case MARKUP_ITEM: blocks(out, m, tight); break;
    case MARKUP_QUOTE: around(out, m, "blockquote", 0); break;
    case MARKUP_LIST: list(out, m); break;
    case MARKUP_TABLE: table(out, m); break;
    case MARKUP_ROW: row(out, m, "td"); break;
    case MARKUP_PARAGRAPH:
        if (tight)
            runs(out, m);
        else
            around(out, m, "p", 0);
        break;
    case MARKUP_CELL: runs(out, m); break;
    case MARKUP_HEADING: around(out, m, "h", m->level); break;
    case MARKUP_CODE: code(out, m); break;
    case MARKUP_RULE: str_puts(out, "<hr>"); break;
    }
}

void content_html(struct str *out, const struct markup *doc)
{
    block(out, doc, false);
}

/* ---- contents ---- */

static bool is_plain(const struct markup *doc)
{
    for (const struct markup *x = doc->first; x; x = x->next)
        if (x->kind != MARKUP_PARAGRAPH || x->run_n > 1 || (x->run_n && (x->runs[0].style || x->runs[0].url)))
            return false;
    return true;
}

struct json *content_text(const struct markup *doc, const char *msgtype)
{
    AUTO(str_clear) struct str body = STR_INIT(CONTENT_MAX);
    AUTO(str_clear) struct str html = STR_INIT(CONTENT_MAX);
    struct json *j = json_new_object();
    markup_plain(&body, doc);
    json_set_str(j, "msgtype", msgtype);
    json_set_str(j, "body", str_peek(&body));
    if (!is_plain(doc)) {
        content_html(&html, doc);
        json_set_str(j, "format", "org.matrix.custom.html");
        json_set_str(j, "formatted_body", str_peek(&html));
    }
    json_set(j, "m.mentions", json_new_object());
    return j;
}

size_t content_size(void *ud, const struct markup *doc)
{
    autojson struct json *j = content_text(doc, ud);
    AUTO(str_clear) struct str text = STR_INIT(4 * (size_t)CONTENT_MAX);
    json_print(&text, j);
    return text.overflow ? SIZE_MAX : text.len;
}

void content_mention(struct json *content, const char *user)
{
    struct json *mentions = json_new_object(), *users = json_new_array();
    json_push(users, json_new_string(user));
    json_set(mentions, "user_ids", users);
    json_set(content, "m.mentions", mentions);
}

void content_relate(struct json *content, const char *root, const char *reply_to)
{
    struct json *relates = json_new_object(), *reply = json_new_object();
    if (root) {
        json_set_str(relates, "rel_type", "m.thread");
        json_set_str(relates, "event_id", root);
        json_set_bool(relates, "is_falling_back", true);
    }
    json_set_str(reply, "event_id", reply_to ? reply_to : root ? root : "");
    json_set(relates, "m.in_reply_to", reply);
    if (root || reply_to)
        json_set(content, "m.relates_to", relates);
    else
        json_free(relates);
}

struct json *content_edit(struct json *take_new, const char *event)
{
    struct json *j = json_dup(take_new), *relates = json_new_object();
    autofree char *body = xasprintf("* %s", json_str_or(take_new, "body", ""));
    json_set_str(j, "body", body);
    if (json_get(take_new, "formatted_body")) {
        autofree char *html = xasprintf("* %s", json_str_or(take_new, "formatted_body", ""));
        json_set_str(j, "formatted_body", html);
    }
    json_set(j, "m.mentions", json_new_object()); /* nobody is called again */
    json_set(j, "m.new_content", take_new);
    json_set_str(relates, "rel_type", "m.replace");
    json_set_str(relates, "event_id", event);
    json_set(j, "m.relates_to", relates);
    return j;
}

/* ---- files ---- */

static const struct {
    const char *ending, *type;
} types[] = {
    { ".png", "image/png" },
    { ".jpg", "image/jpeg" },
    { ".jpeg", "image/jpeg" },
    { ".gif", "image/gif" },
    { ".svg", "image/svg+xml" },
    { ".csv", "text/csv" },
    { ".tsv", "text/tab-separated-values" },
    { ".txt", "text/plain" },
    { ".md", "text/markdown" },
    { ".html", "text/html" },
    { ".json", "application/json" },
    { ".pdf", "application/pdf" },
    { ".zip", "application/zip" },
    { ".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
    { ".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
    { ".ipynb", "application/x-ipynb+json" },
    { ".parquet", "application/vnd.apache.parquet" },
};

const char *content_type(const char *name)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < countof(types); i++)
        if (strcasecmp(dot, types[i].ending) == 0)
            return types[i].type;
    return "application/octet-stream";
}

const char *content_name(const struct artifact *a)
{
    const char *name = a->name && *a->name ? a->name : a->path, *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

struct json *content_file(const struct artifact *a, const char *name, bool picture)
{
    struct json *j = json_new_object(), *info = json_new_object();
    const char *caption = picture && a->title && *a->title ? a->title : name;
    json_set_str(j, "msgtype", picture ? "m.image" : "m.file");
    json_set_str(j, "body", caption);
    json_set_str(j, "filename", name);
    json_set_str(info, "mimetype", content_type(name));
    json_set_int(info, "size", a->bytes);
    if (picture && a->width > 0 && a->height > 0) {
        json_set_int(info, "w", a->width);
        json_set_int(info, "h", a->height);
    }
    json_set(j, "info", info);
    json_set(j, "m.mentions", json_new_object());
    return j;
}
