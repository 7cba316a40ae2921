#include "event.h"
#include <string.h>
#include <strings.h>
#include "ids.h"

enum { TEXT_MAX = 3 * 128 << 10 };

static const char *event_id(const struct json *v)
{
    const char *id = json_text(v);
    return mx_is_event(id) ? id : NULL;
}

bool mx_event_read(struct mx_event *out, const struct json *event)
{
    const struct json *content = json_get(event, "content"), *hidden = json_get(event, "unsigned");
    *out = (struct mx_event){
        .id = event_id(json_get(event, "event_id")),
        .type = json_str_or(event, "type", NULL),
        .sender = json_str_or(event, "sender", NULL),
        .sent_ms = json_int_or(event, "origin_server_ts", 0),
        .content = content,
        .transaction_id = json_str_or(hidden, "transaction_id", NULL),
        .redacted = json_get(hidden, "redacted_because") != NULL,
    };
    if (!out->id || !out->type || !mx_is_user(out->sender) || json_type(content) != JSON_OBJECT)
        return false;
    out->redacts = event_id(json_get(event, "redacts"));
    if (!out->redacts)
        out->redacts = event_id(json_get(content, "redacts"));
    return true;
}

/* ---- relations ---- */

void mx_relation_read(struct mx_relation *out, const struct json *relates)
{
    static const struct {
        const char *word;
        enum mx_relation_type type;
    } types[] = { { "m.thread", MX_THREAD }, { "m.replace", MX_REPLACE }, { "m.annotation", MX_ANNOTATION } };
    const char *word = json_str_or(relates, "rel_type", NULL);
    *out = (struct mx_relation){ .target = event_id(json_get(relates, "event_id")) };
    for (size_t i = 0; word && out->target && i < countof(types); i++)
        if (strcmp(word, types[i].word) == 0)
            out->type = types[i].type;
    if (word && out->type == MX_NO_RELATION)
        out->type = MX_OTHER_RELATION;
    if (out->type == MX_NO_RELATION)
        out->target = NULL;
    out->key = out->type == MX_ANNOTATION ? json_str_or(relates, "key", NULL) : NULL;
    if (out->type == MX_THREAD && json_bool_or(relates, "is_falling_back", false))
        return;
    out->reply_to = event_id(json_get(json_get(relates, "m.in_reply_to"), "event_id"));
}

/* ---- mentions ---- */

static bool lists_us(const struct json *mentions, const char *user)
{
    for (const struct json *x = json_first(json_get(mentions, "user_ids")); x; x = json_next(x))
        if (json_text(x) && strcmp(json_text(x), user) == 0)
            return true;
    return false;
}

/* A link to our page, however it is escaped; what it is called does not matter. */
static bool is_link_to(const char *href, size_t n, const char *user)
{
    static const char to[] = "https://matrix.to/#/", scheme[] = "matrix:u/";
    autofree char *escaped = xstrndup(href, n), *url = mx_unescape(escaped);
    const char *who = NULL;
    if (strncasecmp(url, to, strlen(to)) == 0)
        who = url + strlen(to);
    else if (strncasecmp(url, scheme, strlen(scheme)) == 0)
        who = url + strlen(scheme) - 1; /* stands where the @ would */
    if (!who)
        return false;
    const size_t len = strcspn(who, "?");
    return len == strlen(user) && strncmp(who + 1, user + 1, len - 1) == 0 && (*who == '@' || *who == '/');
}

static bool links_to_us(const char *html, const char *user)
{
    static const char attribute[] = "href=";
    for (const char *p = html; (p = strcasestr(p, attribute));) {
        p += strlen(attribute);
        const char quote = *p;
        if (quote != '"' && quote != '\'')
            continue;
        const char *end = strchr(p + 1, quote);
        if (!end)
            return false;
        if (is_link_to(p + 1, (size_t)(end - p - 1), user))
            return true;
        p = end;
    }
    return false;
}

static bool is_word_end(char c)
{
    return c == '\0' || strchr(" \t\n:,;!?.)", c);
}

static bool names_whole_id(const char *body, const char *user)
{
    const size_t n = strlen(user);
    for (const char *p = body; (p = strstr(p, user)); p += n)
        if ((p == body || strchr(" \t\n(\"'", p[-1])) && is_word_end(p[n]))
            return true;
    return false;
}

/* Bytes of what may part a name from the rest: also as it is written in Chinese and Japanese. */
static size_t parting(const char *p)
{
    static const char *const marks[] = {
        ":", ",", " ", "\t", "\n", "\xef\xbc\x9a", "\xef\xbc\x8c", "\xe3\x80\x81", "\xe3\x80\x80", "\xc2\xa0"
    };
    for (size_t i = 0; i < countof(marks); i++)
        if (strncmp(p, marks[i], strlen(marks[i])) == 0)
            return strlen(marks[i]);
    return 0;
}

static size_t all_parting(const char *text)
{
    const char *p = text;
    for (size_t n; (n = parting(p));)
        p += n;
    return (size_t)(p - text);
}

/* Bytes of name and what parts it from the rest, when body begins with it; else 0. */
static size_t name_in_front(const char *body, const char *name)
{
    const size_t n = strlen(name);
    if (n == 0 || strncasecmp(body, name, n) != 0)
        return 0;
    if (body[n] && !parting(body + n))
        return 0;
    return n + all_parting(body + n);
}

/* The body of a pill where a client writes it as Markdown, [name](https://matrix.to/#/@bot:example.org), or as @[name]. */
static size_t pill_in_front(const char *body, const struct mx_self *self)
{
    const char *p = body + (*body == '@');
    const char *end = *p == '[' ? strchr(p, ']') : NULL;
    if (!end)
        return 0;
    if (end[1] == '(') {
        const char *close = strchr(end, ')');
        return close && is_link_to(end + 2, (size_t)(close - end - 2), self->user)
                   ? (size_t)(close + 1 - body) + all_parting(close + 1)
                   : 0;
    }
    const size_t n = (size_t)(end - p - 1);
    return *body == '@' && n > 0 && n == strlen(self->display_name) && strncasecmp(p + 1, self->display_name, n) == 0
               ? (size_t)(end + 1 - body) + all_parting(end + 1)
               : 0;
}

/* "@bot:elsewhere.org": somebody else's whole id that begins like our name. */
static bool goes_on_as_id(const char *text, const char *localpart)
{
    const size_t n = strlen(localpart);
    return strncasecmp(text, localpart, n) == 0 && text[n] == ':' && text[n + 1] && !strchr(" \t\n", text[n + 1]);
}

static size_t address_in_front(const char *body, const struct mx_self *self)
{
    size_t n = name_in_front(body, self->user);
    n = n ? n : pill_in_front(body, self);
    n = n ? n : name_in_front(body, self->display_name);
    n = n ? n : name_in_front(body, self->localpart);
    if (!n && *body == '@' && !goes_on_as_id(body + 1, self->localpart)) {
        n = name_in_front(body + 1, self->display_name);
        n = n ? n : name_in_front(body + 1, self->localpart);
        n += n ? 1 : 0;
    }
    return n;
}

bool mx_mentions_others(const struct json *content)
{
    return json_len(json_get(json_get(content, "m.mentions"), "user_ids")) > 0;
}

bool mx_is_mentioned(const struct json *content, const struct mx_self *self)
{
    const struct json *mentions = json_get(content, "m.mentions");
    if (json_type(mentions) == JSON_OBJECT)
        return lists_us(mentions, self->user);
    const char *body = json_str_or(content, "body", ""), *html = json_str_or(content, "formatted_body", "");
    return links_to_us(html, self->user) || names_whole_id(body, self->user) || address_in_front(body, self) > 0;
}

/* ---- files ---- */

static enum mx_msgtype type_of_word(const char *word)
{
    static const struct {
        const char *word;
        enum mx_msgtype type;
    } types[] = {
        { "m.text", MX_TEXT },
        { "m.emote", MX_TEXT },
        { "m.notice", MX_NOTICE },
        { "m.image", MX_FILE },
        { "m.file", MX_FILE },
        { "m.audio", MX_FILE },
        { "m.video", MX_FILE },
        { "m.gallery", MX_FILE },
        { "dm.filament.gallery", MX_FILE },
        { "m.key.verification.request", MX_VERIFICATION },
    };
    for (size_t i = 0; i < countof(types); i++)
        if (strcmp(word, types[i].word) == 0)
            return types[i].type;
    return MX_OTHER;
}

enum mx_msgtype mx_msgtype(const struct json *content)
{
    return type_of_word(json_str_or(content, "msgtype", ""));
}

static bool is_mxc(const char *url)
{
    autofree char *server = NULL, *media = NULL;
    return mx_split_mxc(url, &server, &media);
}

static const char *file_name(const struct json *content)
{
    const char *name = json_str_or(content, "filename", NULL);
    name = name && *name ? name : json_str_or(content, "body", NULL);
    return name && *name ? name : "file";
}

/* Albums: Element X and others send them before the proposal is part of the specification (MSC4274). */
static bool is_gallery(const char *word)
{
    return strcmp(word, "m.gallery") == 0 || strcmp(word, "dm.filament.gallery") == 0;
}

const struct json *mx_gallery(const struct json *content)
{
    const struct json *items = is_gallery(json_str_or(content, "msgtype", "")) ? json_get(content, "itemtypes") : NULL;
    return json_type(items) == JSON_ARRAY ? items : NULL;
}

bool mx_file_read(struct mx_file *out, const struct json *content)
{
    const char *word = json_str_or(content, "msgtype", json_str_or(content, "itemtype", ""));
    if (is_gallery(word) || type_of_word(word) != MX_FILE)
        return false;
    const struct json *file = json_get(content, "file"), *info = json_get(content, "info");
    const char *sealed = json_str_or(file, "url", NULL), *plain = json_str_or(content, "url", NULL);
    *out = (struct mx_file){
        .name = file_name(content),
        .mimetype = json_str_or(info, "mimetype", "application/octet-stream"),
        .bytes = json_int_or(info, "size", 0),
    };
    out->bytes = out->bytes > 0 ? out->bytes : 0;
    if (is_mxc(sealed)) { /* some clients put an empty url beside it */
        out->encrypted = file;
        out->mxc = sealed;
    } else if (is_mxc(plain)) {
        out->mxc = plain;
    } else {
        out->mxc = ""; /* its sender's upload failed, maybe: nobody gets it */
    }
    return true;
}

/* ---- text ---- */

/* Lines that begin with > and the empty one behind them. */
static const char *skip_quote(const char *body)
{
    const char *p = body;
    while (*p == '>' && (p[1] == ' ' || p[1] == '\n' || !p[1])) {
        p += strcspn(p, "\n");
        p += *p == '\n';
    }
    if (p != body && *p == '\n')
        p++;
    return *p ? p : body;
}

char *mx_text(const struct json *content, const struct mx_self *self, bool is_reply)
{
    struct str s = STR_INIT(TEXT_MAX);
    const char *body = json_str_or(content, "body", "");
    if (mx_msgtype(content) == MX_FILE && !is_gallery(json_str_or(content, "msgtype", ""))) {
        const char *name = json_str_or(content, "filename", NULL);
        if (!name || !*name || strcmp(name, body) == 0)
            return xstrdup("");
    }
    if (is_reply)
        body = skip_quote(body);
    body += strspn(body, " \t\n");
    body += address_in_front(body, self);
    utf8_scrub(&s, body, strnlen(body, TEXT_MAX / 3));
    return str_take(&s);
}
