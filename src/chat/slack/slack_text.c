#include "slack_text.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { ID_MAX = 32, TEXT_MAX = 1 << 20 };
#define WORD_JOINER "\xe2\x81\xa0" /* U+2060: takes no room, and parts what must not be read as one */

/* ---- in ---- */

static void add_unescaped(struct str *out, const char *text, size_t n)
{
    static const struct {
        const char *entity;
        char c;
    } entities[] = { { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' } };
    for (size_t i = 0; i < n;) {
        size_t k = 0;
        while (k < countof(entities) && (n - i < strlen(entities[k].entity) ||
                                         memcmp(text + i, entities[k].entity, strlen(entities[k].entity)) != 0))
            k++;
        str_putc(out, (char)(k < countof(entities) ? entities[k].c : text[i]));
        i += k < countof(entities) ? strlen(entities[k].entity) : 1;
    }
}

/* The id in "<@U123>" or "<@U123|name>" at text; its length, 0: none. */
static size_t user_at(const char *text, char id[ID_MAX])
{
    if (strncmp(text, "<@", 2) != 0)
        return 0;
    const size_t n = strspn(text + 2, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    if (n == 0 || n >= ID_MAX || (text[2 + n] != '>' && text[2 + n] != '|'))
        return 0;
    memcpy(id, text + 2, n);
    id[n] = '\0';
    return n;
}

bool slack_text_mentions(const char *text, const char *user)
{
    char id[ID_MAX];
    for (const char *at = strstr(text, "<@"); at; at = strstr(at + 2, "<@"))
        if (user_at(at, id) && strcmp(id, user) == 0)
            return true;
    return false;
}

bool slack_text_is_for_other(const char *text, const char *self)
{
    char id[ID_MAX];
    text += strspn(text, " \t\n");
    return user_at(text, id) && strcmp(id, self) != 0;
}

void slack_text_each_user(const char *text, void (*fn)(void *ud, const char *user), void *ud)
{
    char id[ID_MAX];
    for (const char *at = strstr(text, "<@"); at; at = strstr(at + 2, "<@"))
        if (user_at(at, id))
            fn(ud, id);
}

/* What stands behind the bar of a token, or NULL. */
static const char *label_of(const char *token, size_t n)
{
    const char *bar = memchr(token, '|', n);
    return bar && bar + 1 < token + n ? bar + 1 : NULL;
}

struct decoder {
    struct str *out;
    const char *self;
    slack_name_fn *name;
    void *ud;
};

static void add_user(const struct decoder *d, const char *token, size_t n)
{
    const size_t id_n = strcspn(token + 1, "|>");
    autofree char *id = xstrndup(token + 1, id_n < n ? id_n : n - 1);
    const char *label = label_of(token, n), *name = d->name && *id ? d->name(d->ud, id) : NULL;
    str_putc(d->out, '@');
    if (name)
        str_puts(d->out, name);
    else if (label)
        add_unescaped(d->out, label, (size_t)(token + n - label));
    else
        str_puts(d->out, id);
}

/* <!here>, <!subteam^S1|@grp>, <!date^ts^fmt|fallback> */
static void add_special(const struct decoder *d, const char *token, size_t n)
{
    const char *label = label_of(token, n);
    const size_t word = strcspn(token + 1, "^|>");
    if (label && strncmp(token, "!date", 5) != 0 && *label != '@')
        str_putc(d->out, '@');
    if (label) {
        add_unescaped(d->out, label, (size_t)(token + n - label));
    } else {
        str_putc(d->out, '@');
        str_add(d->out, token + 1, word < n ? word : n - 1);
    }
}

static void add_link(const struct decoder *d, const char *token, size_t n)
{
    const char *label = label_of(token, n), *bar = memchr(token, '|', n);
    const size_t url_n = bar ? (size_t)(bar - token) : n;
    const size_t skip = strncmp(token, "mailto:", 7) == 0 && url_n > 7 ? 7 : 0;
    const size_t label_n = label ? (size_t)(token + n - label) : 0;
    if (label && (label_n != url_n - skip || memcmp(label, token + skip, label_n) != 0) &&
        !(url_n > label_n && memcmp(token + url_n - label_n, label, label_n) == 0)) {
        add_unescaped(d->out, label, label_n);
        str_puts(d->out, " (");
        add_unescaped(d->out, token, url_n);
        str_putc(d->out, ')');
    } else {
        add_unescaped(d->out, label ? label : token, label ? label_n : url_n);
    }
}

/* Between < and >. */
static void add_token(const struct decoder *d, const char *token, size_t n)
{
    const char *label = label_of(token, n);
    if (n == 0) {
        str_puts(d->out, "<>");
    } else if (*token == '@') {
        add_user(d, token, n);
    } else if (*token == '#') {
        str_putc(d->out, '#');
        add_unescaped(d->out, label ? label : token + 1,
                      label ? (size_t)(token + n - label) : strcspn(token + 1, "|>"));
    } else if (*token == '!') {
        add_special(d, token, n);
    } else {
        add_link(d, token, n);
    }
}

static const char *skip_self(const char *text, const char *self)
{
    char id[ID_MAX];
    const char *at = text + strspn(text, " \t\n");
    if (!self || !user_at(at, id) || strcmp(id, self) != 0)
        return text;
    at = strchr(at, '>') ? strchr(at, '>') + 1 : at;
    return at + strspn(at, " \t\n:,");
}

void slack_text_decode(struct str *out, const char *text, const char *self, slack_name_fn *name, void *ud)
{
    AUTO(str_clear) struct str raw = STR_INIT(TEXT_MAX);
    const struct decoder d = { .out = &raw, .self = self, .name = name, .ud = ud };
    for (const char *at = skip_self(text, self); *at;) {
        const char *close = *at == '<' ? strchr(at, '>') : NULL;
        const char *other = *at == '<' ? strpbrk(at + 1, "<\n") : NULL;
        if (close && (!other || other > close)) {
            add_token(&d, at + 1, (size_t)(close - at - 1));
            at = close + 1;
        } else {
            const size_t n = *at == '<' ? 1 : strcspn(at, "<");
            add_unescaped(&raw, at, n);
            at += n;
        }
    }
    utf8_scrub(out, str_peek(&raw), raw.len);
}

/* ---- out ---- */

/* "@channel", "@here" or "@everyone" at text: its length, 0: none. */
static size_t broadcast_at(const char *text, size_t n)
{
    static const char *const words[] = { "@channel", "@here", "@everyone", "@group" };
    for (size_t i = 0; i < countof(words); i++)
        if (n >= strlen(words[i]) && strncasecmp(text, words[i], strlen(words[i])) == 0)
            return strlen(words[i]);
    return 0;
}

void slack_text_escape(struct str *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '&')
            str_puts(out, "&amp;");
        else if (text[i] == '<')
            str_puts(out, "&lt;");
        else if (text[i] == '>')
            str_puts(out, "&gt;");
        else
            str_putc(out, text[i]);
        if (text[i] == '@' && broadcast_at(text + i, n - i))
            str_puts(out, WORD_JOINER);
    }
}

void slack_text_defuse(struct str *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        str_putc(out, text[i]);
        const bool token = text[i] == '<' && i + 1 < n && strchr("!@#", text[i + 1]);
        if (token || (text[i] == '@' && broadcast_at(text + i, n - i)))
            str_puts(out, WORD_JOINER);
    }
}

/* Where the last line of the text begins. */
static size_t line_begin(const char *text, size_t n)
{
    while (n && text[n - 1] != '\n')
        n--;
    return n;
}

size_t slack_text_ready(const char *text, size_t n)
{
    const size_t line = line_begin(text, n), blanks = strspn(text + line, " \t");
    if (line + blanks >= n || strchr("|`~", text[line + blanks]))
        return line; /* nothing yet, a row of a table, or a fence */
    size_t end = n;
    while (end > line && text[end - 1] != ' ' && (signed char)text[end - 1] >= 0)
        end--; /* behind a blank, or behind a letter of a script that has none between its words */
    end = utf8_cut(text, n, end);
    for (size_t i = line; i < end; i++)
        if (text[i] == '[' && !memchr(text + i, ')', end - i))
            return i; /* a link, perhaps */
    return end;
}

bool slack_text_is_link(const char *url)
{
    const bool known = strncasecmp(url, "https://", 8) == 0 || strncasecmp(url, "http://", 7) == 0 ||
                       strncasecmp(url, "mailto:", 7) == 0;
    for (const char *c = url; *c; c++)
        if (isspace((unsigned char)*c) || iscntrl((unsigned char)*c) || strchr("<>|", *c))
            return false;
    return known && strlen(url) <= 2000;
}
