/* tool_secret.c - a key in the forms in which a server may repeat it. */
#include "tool_secret.h"
#include <ctype.h>
#include <string.h>
#include "digest.h"
#include "str.h"

enum {
    FORMS_MAX = 12,
    FORM_BYTES = 16 << 10,
    DERIVED_LEAST = 6, /* of a form that is only made from the key: shorter ones stand in any text */
};

struct tool_secret {
    char *forms[FORMS_MAX];
    size_t n;
};

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void add_form(struct tool_secret *s, const char *text, size_t n, bool derived)
{
    if (s->n == FORMS_MAX || n == 0 || (derived && n < DERIVED_LEAST))
        return;
    for (size_t i = 0; i < s->n; i++)
        if (strlen(s->forms[i]) == n && memcmp(s->forms[i], text, n) == 0)
            return;
    s->forms[s->n++] = xstrndup(text, n);
}

static void add_percent(struct tool_secret *s, const char *secret, bool upper)
{
    AUTO(str_clear) struct str out = STR_INIT(FORM_BYTES);
    for (const char *p = secret; *p; p++) {
        if (isalnum((unsigned char)*p) || strchr("-._~", *p))
            str_putc(&out, *p);
        else
            str_printf(&out, upper ? "%%%02X" : "%%%02x", (unsigned)(unsigned char)*p);
    }
    add_form(s, str_peek(&out), out.len, true);
}

/* What JSON writes with a backslash; some printers do so with a slash, too. */
static void add_escaped(struct tool_secret *s, const char *secret, const char *escaped)
{
    AUTO(str_clear) struct str out = STR_INIT(FORM_BYTES);
    for (const char *p = secret; *p; p++) {
        if (strchr(escaped, *p))
            str_putc(&out, '\\');
        str_putc(&out, *p);
    }
    add_form(s, str_peek(&out), out.len, true);
}

/* All but the end, which hangs on what follows it. */
static void add_base64(struct tool_secret *s, const char *secret)
{
    autofree char *text = base64_encode(secret, strlen(secret));
    add_form(s, text, strlen(secret) * 8 / 6, true);
    explicit_bzero(text, strlen(text));
}

/* What a key of base64 holds, when that is text. */
static void add_decoded(struct tool_secret *s, const char *secret)
{
    AUTO(str_clear) struct str out = STR_INIT(FORM_BYTES);
    uint32_t bits = 0;
    int have = 0;
    for (const char *p = secret; *p && *p != '='; p++) {
        const char *at = strchr(alphabet, *p == '-' ? '+' : *p == '_' ? '/' : *p);
        if (!at)
            return;
        bits = bits << 6 | (uint32_t)(at - alphabet);
        have += 6;
        if (have < 8)
            continue;
        have -= 8;
        const unsigned char c = (unsigned char)(bits >> have & 255);
        if (c < 0x20 || c > 0x7e)
            return;
        str_putc(&out, (char)c);
    }
    const char *text = str_peek(&out), *colon = strchr(text, ':');
    if (!colon)
        return;
    add_form(s, text, out.len, true);
    add_form(s, colon + 1, strlen(colon + 1), true);
}

struct tool_secret *tool_secret_new(const char *secret)
{
    if (!secret || !*secret)
        return NULL;
    struct tool_secret *s = xcalloc(1, sizeof(*s));
    add_form(s, secret, strlen(secret), false);
    add_percent(s, secret, true);
    add_percent(s, secret, false);
    add_escaped(s, secret, "\"\\");
    add_escaped(s, secret, "\"\\/");
    add_base64(s, secret);
    add_decoded(s, secret);
    return s;
}

void tool_secret_free(struct tool_secret *s)
{
    for (size_t i = 0; s && i < s->n; i++) {
        explicit_bzero(s->forms[i], strlen(s->forms[i]));
        free(s->forms[i]);
    }
    free(s);
}

void tool_secret_mask(const struct tool_secret *s, char *text)
{
    for (size_t i = 0; s && i < s->n; i++) {
        const size_t n = strlen(s->forms[i]);
        for (char *at = strstr(text, s->forms[i]); at; at = strstr(at, s->forms[i]))
            memset(at, '*', n);
    }
}
