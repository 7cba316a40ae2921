#include "slack_blocks.h"
#include <string.h>
#include "chat/markup.h"
#include "slack_text.h"

enum {
    PAYLOAD_MAX = 11500,  /* bytes of one message's blocks as JSON; Slack refuses at about 13,200 characters */
    BLOCKS_MAX = 45,      /* 50 */
    TEXT_PART_MAX = 3700, /* bytes of a text-only message; above 4,000 characters Slack splits it anywhere */
    NOTIFY_MAX = 300,
    RECEIPT_BYTES = 600,      /* an escaped character has up to five; Slack takes 3,000 */
    RECEIPT_TEXT_BYTES = 160, /* the same on the rung without blocks, where it counts into the 4,000 */
    URL_BYTES = 3000,
    INDENT_MAX = 5,
    TOO_MUCH = 1 << 28,
    ANSWER_MAX = 16 << 20,
};

/* ---- prose: rich_text ---- */

struct rich {
    struct json *blocks;
    struct json *elements; /* of the open rich_text; NULL: none */
    struct json *inline_;  /* of the open section; NULL: none */
    enum slack_rung rung;
    size_t tables, refused;      /* refused: blocks that Slack would not take in one message */
    struct slack_layout *layout; /* where whole tables go; NULL: only measuring */
};

static void inline_blocks(struct rich *r, const struct markup *parent);
static void block(struct rich *r, const struct markup *m, int indent);

static struct json *open_elements(struct rich *r)
{
    if (r->elements)
        return r->elements;
    struct json *o = json_new_object(), *elements = json_new_array();
    json_set_str(o, "type", "rich_text");
    json_set(o, "elements", elements);
    json_push(r->blocks, o);
    r->elements = elements;
    return elements;
}

static struct json *element(const char *type, struct json *inside)
{
    struct json *o = json_new_object();
    json_set_str(o, "type", type);
    json_set(o, "elements", inside);
    return o;
}

static void set_style(struct json *o, unsigned style)
{
    static const struct {
        unsigned bit;
        const char *key;
    } keys[] = {
        { MARKUP_BOLD, "bold" }, { MARKUP_ITALIC, "italic" }, { MARKUP_STRIKE, "strike" }, { MARKUP_MONO, "code" }
    };
    if (!style)
        return;
    struct json *s = json_new_object();
    for (size_t i = 0; i < countof(keys); i++)
        if (style & keys[i].bit)
            json_set_bool(s, keys[i].key, true);
    json_set(o, "style", s);
}

static void add_text(struct json *inside, const char *text, const char *url, unsigned style)
{
    if (!*text)
        return; /* an empty text is refused */
    const bool link = url && slack_text_is_link(url) && strlen(url) <= URL_BYTES;
    struct json *o = json_new_object();
    json_set_str(o, "type", link ? "link" : "text");
    if (link)
        json_set_str(o, "url", url);
    json_set_str(o, "text", text);
    set_style(o, style);
    json_push(inside, o);
}

static void add_runs(struct json *inside, const struct markup *m, unsigned more)
{
    for (size_t i = 0; i < m->run_n; i++)
        add_text(inside, m->runs[i].text, m->runs[i].url, m->runs[i].style | more);
}

/* Paragraphs that follow each other share a section, a blank line between them. */
static void prose(struct rich *r, const struct markup *m, unsigned more)
{
    if (!m->run_n)
        return;
    if (r->inline_) {
        add_text(r->inline_, "\n\n", NULL, 0);
    } else {
        r->inline_ = json_new_array();
        json_push(open_elements(r), element("rich_text_section", r->inline_));
    }
    add_runs(r->inline_, m, more);
}

static void code(struct rich *r, const char *text)
{
    struct json *inside = json_new_array();
    const size_t n = strlen(text), end = n && text[n - 1] == '\n' ? n - 1 : n;
    autofree char *trimmed = xstrndup(text, end);
    add_text(inside, *trimmed ? trimmed : " ", NULL, 0);
    r->inline_ = NULL;
    json_push(open_elements(r), element("rich_text_preformatted", inside));
}

static char *plain_of(const struct markup *m)
{
    AUTO(str_clear) struct str text = STR_INIT(1 << 20);
    struct markup *doc = markup_parse("");
    markup_append(doc, markup_dup(m));
    markup_plain(&text, doc);
    markup_free(doc);
    return str_take(&text);
}

static void as_code(struct rich *r, const struct markup *m)
{
    autofree char *text = plain_of(m);
    code(r, text);
}

static void quote(struct rich *r, const struct markup *m)
{
    struct json *inside = json_new_array();
    for (const struct markup *b = m->first; b; b = b->next) {
        if (json_len(inside))
            add_text(inside, "\n", NULL, 0);
        if (b->run_n) {
            add_runs(inside, b, 0);
        } else {
            autofree char *text = plain_of(b);
            add_text(inside, text, NULL, 0);
        }
    }
    r->inline_ = NULL;
    if (json_len(inside))
        json_push(open_elements(r), element("rich_text_quote", inside));
    else
        json_free(inside);
}

static struct json *list_element(const struct markup *m, struct json *items, int indent, int64_t offset)
{
    struct json *o = element("rich_text_list", items);
    json_set_str(o, "style", m->ordered ? "ordered" : "bullet");
    if (indent)
        json_set_int(o, "indent", indent < INDENT_MAX ? indent : INDENT_MAX);
    if (m->ordered && offset > 0)
        json_set_int(o, "offset", offset < 1000000 ? offset : 1000000);
    return o;
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void list(struct rich *r, const struct markup *m, int indent)
{
    struct json *items = NULL; /* of the open rich_text_list; what cannot stand in one closes it */
    int64_t n = m->start > 0 ? m->start - 1 : 0;
    r->inline_ = NULL;
    for (const struct markup *item = m->first; item; item = item->next, n++) {
        struct json *inside = json_new_array();
        const struct markup *b = item->first;
        if (item->task)
            add_text(inside, item->done ? "☑ " : "☐ ", NULL, 0);
        if (b && b->run_n && b->kind != MARKUP_CODE) {
            add_runs(inside, b, b->kind == MARKUP_HEADING ? MARKUP_BOLD : 0u);
            b = b->next;
        }
        if (!json_len(inside))
            add_text(inside, " ", NULL, 0);
        if (!items) {
            items = json_new_array();
            json_push(open_elements(r), list_element(m, items, indent, n));
        }
        json_push(items, element("rich_text_section", inside));
        if (b)
            items = NULL;
        for (; b; b = b->next)
            block(r, b, indent + 1);
        r->inline_ = NULL;
    }
}

/* ---- tables ---- */

static void keep_csv(struct rich *r, const struct markup *m)
{
    struct slack_layout *l = r->layout;
    AUTO(str_clear) struct str text = STR_INIT(ANSWER_MAX);
    if (!l)
        return;
    slack_table_csv(&text, m);
    l->csv = xgrow(l->csv, &l->csv_cap, l->csv_n + 1, sizeof(*l->csv));
    l->csv[l->csv_n++] = str_take(&text);
}

static void note_rest(struct rich *r, size_t shown, size_t all)
{
    autofree char *text = xasprintf("%zu of %zu rows; the whole table is attached.", shown - 1, all - 1);
    struct json *inside = json_new_array();
    add_text(inside, text, NULL, MARKUP_ITALIC);
    r->inline_ = NULL;
    json_push(open_elements(r), element("rich_text_section", inside));
}

static void table(struct rich *r, const struct markup *m)
{
    size_t shown = 0, all = 0;
    for (const struct markup *row = m->first; row; row = row->next)
        all++;
    struct json *o = r->rung <= SLACK_PLAIN ? slack_table(m, r->rung == SLACK_RICH, &shown) : NULL;
    if (!o) {
        as_code(r, m);
        return;
    }
    r->elements = r->inline_ = NULL;
    json_push(r->blocks, o);
    if (r->tables++)
        r->refused++; /* one in a message: the older limit, kept by some workspaces */
    if (shown < all) {
        note_rest(r, shown, all);
        keep_csv(r, m);
    }
}

/* ---- a document ---- */

static void divider(struct rich *r)
{
    struct json *o = json_new_object();
    json_set_str(o, "type", "divider");
    json_push(r->blocks, o);
    r->elements = r->inline_ = NULL;
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void block(struct rich *r, const struct markup *m, int indent)
{
    switch (m->kind) {
    case MARKUP_PARAGRAPH:
    case MARKUP_CELL: prose(r, m, 0); break;
    case MARKUP_HEADING: prose(r, m, MARKUP_BOLD); break;
    case MARKUP_CODE: code(r, m->run_n ? m->runs[0].text : ""); break;
    case MARKUP_QUOTE: quote(r, m); break;
    case MARKUP_LIST: list(r, m, indent); break;
    case MARKUP_TABLE:
        if (indent)
            as_code(r, m);
        else
            table(r, m);
        break;
    case MARKUP_RULE:
        if (!indent)
            divider(r);
        break;
    case MARKUP_DOC:
    case MARKUP_ITEM:
    case MARKUP_ROW: inline_blocks(r, m); break;
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void inline_blocks(struct rich *r, const struct markup *parent)
{
    for (const struct markup *m = parent->first; m; m = m->next)
        block(r, m, 0);
}

static struct json *blocks_of(const struct markup *doc, enum slack_rung rung, struct slack_layout *layout,
                              size_t *refused)
{
    struct rich r = { .blocks = json_new_array(), .rung = rung, .layout = layout };
    inline_blocks(&r, doc);
    *refused = r.refused;
    return r.blocks;
}

static size_t blocks_size(void *ud, const struct markup *doc)
{
    const enum slack_rung *rung = ud;
    size_t refused = 0;
    autojson struct json *blocks = blocks_of(doc, *rung, NULL, &refused);
    AUTO(str_clear) struct str text = STR_INIT(TOO_MUCH);
    json_print(&text, blocks);
    return refused || json_len(blocks) > BLOCKS_MAX ? TOO_MUCH + text.len : text.len;
}

static size_t text_size(void *ud, const struct markup *doc)
{
    AUTO(str_clear) struct str text = STR_INIT(TOO_MUCH);
    (void)ud;
    slack_mrkdwn(&text, doc);
    return text.len;
}

/* ---- messages ---- */

/* What a notification shows: the beginning of the words. */
static char *notify_text(const struct markup *doc)
{
    AUTO(str_clear) struct str plain = STR_INIT(ANSWER_MAX);
    AUTO(str_clear) struct str text = STR_INIT((size_t)8 * NOTIFY_MAX);
    markup_plain(&plain, doc);
    slack_text_escape(&text, str_peek(&plain), utf8_cut(str_peek(&plain), plain.len, NOTIFY_MAX));
    if (str_peek(&text)[strspn(str_peek(&text), " \n")] == '\0')
        str_puts(&text, "…");
    return str_take(&text);
}

static struct slack_message *add(struct slack_layout *l)
{
    l->at = xgrow(l->at, &l->cap, l->n + 1, sizeof(*l->at));
    return &l->at[l->n++];
}

static void add_receipt(struct json *blocks, const char *receipt)
{
    AUTO(str_clear) struct str text = STR_INIT((size_t)8 * RECEIPT_BYTES);
    struct json *o = json_new_object(), *mrkdwn = json_new_object(), *elements = json_new_array();
    slack_text_escape(&text, receipt, utf8_cut(receipt, strlen(receipt), RECEIPT_BYTES));
    json_set_str(mrkdwn, "type", "mrkdwn");
    json_set_str(mrkdwn, "text", str_peek(&text));
    json_push(elements, mrkdwn);
    json_set_str(o, "type", "context");
    json_set(o, "elements", elements);
    json_push(blocks, o);
}

static void lay_blocks(struct slack_layout *l, struct markup *doc, const char *receipt)
{
    const struct markup_limit limit = { .max = PAYLOAD_MAX, .size = blocks_size, .ud = &l->rung };
    for (struct markup *part; l->n <= SLACK_MESSAGES_MAX && (part = markup_part(doc, &limit));) {
        size_t refused = 0;
        struct slack_message *m = add(l);
        m->blocks = blocks_of(part, l->rung, l, &refused);
        m->text = notify_text(part);
        markup_free(part);
    }
    if (!l->n) {
        struct slack_message *m = add(l);
        *m = (struct slack_message){ .blocks = json_new_array(), .text = xstrdup("…") };
    }
    if (receipt && receipt[strspn(receipt, " \t\n")])
        add_receipt(l->at[l->n - 1].blocks, receipt);
    for (size_t i = 0; i < l->n; i++)
        if (!json_len(l->at[i].blocks)) {
            json_free(l->at[i].blocks);
            l->at[i].blocks = NULL;
        }
}

static void lay_text(struct slack_layout *l, struct markup *doc, const char *receipt)
{
    const struct markup_limit limit = { .max = TEXT_PART_MAX - 5 * RECEIPT_TEXT_BYTES, .size = text_size };
    for (struct markup *part; l->n <= SLACK_MESSAGES_MAX && (part = markup_part(doc, &limit));) {
        AUTO(str_clear) struct str text = STR_INIT(ANSWER_MAX);
        slack_mrkdwn(&text, part);
        markup_free(part);
        add(l)->text = text.len ? str_take(&text) : xstrdup("…");
    }
    if (!l->n)
        add(l)->text = xstrdup("…");
    if (!receipt || !*receipt)
        return;
    AUTO(str_clear) struct str last = STR_INIT(ANSWER_MAX);
    str_printf(&last, "%s\n_", l->at[l->n - 1].text);
    slack_text_escape(&last, receipt, utf8_cut(receipt, strlen(receipt), RECEIPT_TEXT_BYTES));
    str_putc(&last, '_');
    free(l->at[l->n - 1].text);
    l->at[l->n - 1].text = str_take(&last);
}

static void lay_file(struct slack_layout *l, const struct markup *doc)
{
    autofree char *beginning = notify_text(doc);
    add(l)->text = xasprintf("%s\n\nThe whole answer is in `answer.md`.", beginning);
}

static void lay(struct slack_layout *out, const char *markdown, const char *receipt, enum slack_rung rung)
{
    *out = (struct slack_layout){ .rung = rung };
    struct markup *doc = markup_parse(markdown);
    if (rung < SLACK_TEXT)
        lay_blocks(out, doc, receipt);
    else if (rung == SLACK_TEXT)
        lay_text(out, doc, receipt);
    else
        lay_file(out, doc);
    markup_free(doc);
}

void slack_layout_make(struct slack_layout *out, const char *markdown, const char *receipt, enum slack_rung rung)
{
    AUTO(str_clear) struct str line = STR_INIT((size_t)16 * RECEIPT_BYTES);
    if (receipt) /* of bytes that are no text nothing may be left, and an empty line is refused with all the rest */
        utf8_scrub(&line, receipt, strnlen(receipt, (size_t)4 * RECEIPT_BYTES));
    lay(out, markdown, str_peek(&line), rung);
    if (out->n <= SLACK_MESSAGES_MAX)
        return;
    slack_layout_clear(out);
    lay(out, markdown, str_peek(&line), SLACK_FILE);
}

static struct json *button(const char *face, const char *label, const char *value)
{
    struct json *o = json_new_object(), *text = json_new_object();
    json_set_str(text, "type", "plain_text");
    json_set_str(text, "text", face);
    json_set(o, "text", text);
    json_set_str(o, "accessibility_label", label);
    json_set_str(o, "value", value);
    return o;
}

void slack_layout_feedback(struct slack_layout *l)
{
    struct json *blocks = l->n ? l->at[l->n - 1].blocks : NULL;
    if (!blocks || l->rung != SLACK_RICH)
        return;
    struct json *o = json_new_object(), *elements = json_new_array(), *buttons = json_new_object();
    json_set_str(buttons, "type", "feedback_buttons");
    json_set_str(buttons, "action_id", SLACK_FEEDBACK_ACTION);
    json_set(buttons, "positive_button", button("👍", "This answer helped", SLACK_FEEDBACK_GOOD));
    json_set(buttons, "negative_button", button("👎", "This answer did not help", SLACK_FEEDBACK_BAD));
    json_push(elements, buttons);
    json_set_str(o, "type", "context_actions");
    json_set(o, "elements", elements);
    json_push(blocks, o);
}

void slack_layout_clear(struct slack_layout *l)
{
    for (size_t i = 0; i < l->n; i++) {
        json_free(l->at[i].blocks);
        free(l->at[i].text);
    }
    for (size_t i = 0; i < l->csv_n; i++)
        free(l->csv[i]);
    free(l->at);
    free(l->csv);
    *l = (struct slack_layout){ .rung = l->rung };
}
