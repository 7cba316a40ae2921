/* json_gate.c - what may reach the parser. RFC 8259 without its freedoms: one pass, no recursion, no allocation. */
#include "json_gate.h"
#include <string.h>

struct gate {
    const char *p, *end, *text;
    const char *why; /* NULL while all is well */
    char open[JSON_DEPTH];
    size_t depth;
};

/* What the grammar allows next. */
enum want { WANT_VALUE, WANT_ITEM_OR_END, WANT_KEY, WANT_KEY_OR_END, WANT_MORE, WANT_NOTHING };

static enum want fail(struct gate *g, const char *why)
{
    if (!g->why)
        g->why = why;
    return WANT_NOTHING;
}

/* The next byte, or NUL at the end; NUL itself never gets here. */
static char peek(const struct gate *g)
{
    if (g->p == g->end)
        return '\0';
    return *g->p;
}

static bool eat(struct gate *g, char c)
{
    if (g->p == g->end || *g->p != c)
        return false;
    g->p++;
    return true;
}

static void skip_space(struct gate *g)
{
    while (g->p < g->end && strchr(" \t\n\r", *g->p))
        g->p++;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The four digits of \uXXXX, or -1. */
static int hex4(struct gate *g)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        int d = hex_digit(peek(g));
        if (d < 0)
            return -1;
        v = v * 16 + d;
        g->p++;
    }
    return v;
}

static void unicode_escape(struct gate *g)
{
    int v = hex4(g);
    if (v < 0)
        (void)fail(g, "bad \\u escape");
    else if (v == 0)
        (void)fail(g, "NUL escape");
    else if (v >= 0xdc00 && v <= 0xdfff)
        (void)fail(g, "lone surrogate");
    else if (v >= 0xd800 && v <= 0xdbff) {
        int low = eat(g, '\\') && eat(g, 'u') ? hex4(g) : -1;
        if (low < 0xdc00 || low > 0xdfff)
            (void)fail(g, "lone surrogate");
    }
}

/* After the opening quote. */
static void string(struct gate *g)
{
    while (!g->why && g->p < g->end) {
        char c = *g->p++;
        if (c == '"')
            return;
        if ((unsigned char)c < 0x20)
            (void)fail(g, "control character in a string");
        else if (c == '\\' && eat(g, 'u'))
            unicode_escape(g);
        else if (c == '\\' && (g->p == g->end || !strchr("\"\\/bfnrt", *g->p++)))
            (void)fail(g, "bad escape");
    }
    (void)fail(g, "string without an end");
}

static bool digits(struct gate *g)
{
    const char *from = g->p;
    while (is_digit(peek(g)))
        g->p++;
    return g->p > from;
}

static void number(struct gate *g)
{
    const char *from = g->p;
    (void)eat(g, '-');
    bool ok = eat(g, '0') || digits(g);
    if (eat(g, '.'))
        ok = digits(g) && ok;
    if (eat(g, 'e') || eat(g, 'E')) {
        (void)(eat(g, '+') || eat(g, '-'));
        ok = digits(g) && ok;
    }
    if (!ok)
        (void)fail(g, "bad number");
    else if (g->p - from > JSON_NUMBER_CHARS)
        (void)fail(g, "number with too many digits");
}

static bool word(struct gate *g, const char *w)
{
    size_t n = strlen(w);
    if ((size_t)(g->end - g->p) < n || memcmp(g->p, w, n) != 0)
        return false;
    g->p += n;
    return true;
}

static enum want after_value(const struct gate *g)
{
    return g->depth ? WANT_MORE : WANT_NOTHING;
}

static enum want open_container(struct gate *g, char c)
{
    if (g->depth == JSON_DEPTH)
        return fail(g, "nested too deeply");
    g->open[g->depth++] = c;
    return c == '{' ? WANT_KEY_OR_END : WANT_ITEM_OR_END;
}

static enum want value(struct gate *g)
{
    char c = peek(g);
    if (eat(g, '{') || eat(g, '['))
        return open_container(g, c);
    if (eat(g, '"'))
        string(g);
    else if (c == '-' || is_digit(c))
        number(g);
    else if (!word(g, "true") && !word(g, "false") && !word(g, "null"))
        return fail(g, g->p == g->end ? "ends too early" : "expected a value");
    return after_value(g);
}

static enum want key(struct gate *g)
{
    if (!eat(g, '"'))
        return fail(g, g->p == g->end ? "ends too early" : "expected a key");
    string(g);
    skip_space(g);
    return eat(g, ':') ? WANT_VALUE : fail(g, "expected a colon");
}

static bool closes(struct gate *g)
{
    if (!eat(g, g->open[g->depth - 1] == '{' ? '}' : ']'))
        return false;
    g->depth--;
    return true;
}

static enum want more(struct gate *g)
{
    if (closes(g))
        return after_value(g);
    if (eat(g, ','))
        return g->open[g->depth - 1] == '{' ? WANT_KEY : WANT_VALUE;
    return fail(g, g->p == g->end ? "ends too early" : "expected a comma or the end of the list");
}

static enum want step(struct gate *g, enum want w)
{
    skip_space(g);
    switch (w) {
    case WANT_VALUE: return value(g);
    case WANT_ITEM_OR_END: return closes(g) ? after_value(g) : value(g);
    case WANT_KEY: return key(g);
    case WANT_KEY_OR_END: return closes(g) ? after_value(g) : key(g);
    case WANT_MORE: return more(g);
    case WANT_NOTHING: break;
    }
    return WANT_NOTHING;
}

int json_gate(const char *text, size_t n, size_t max_bytes, struct err *e)
{
    if (n > max_bytes)
        return err_set(e, ERR_DATA, "JSON of %zu bytes, more than %zu", n, max_bytes);
    if (!utf8_valid(text, n))
        return err_set(e, ERR_DATA, "JSON is not valid UTF-8");
    struct gate g = { .p = text, .end = text + n, .text = text };
    enum want w = WANT_VALUE;
    while (w != WANT_NOTHING)
        w = g.why ? WANT_NOTHING : step(&g, w);
    skip_space(&g);
    if (!g.why && g.p < g.end)
        (void)fail(&g, "something follows the value");
    if (g.why)
        return err_set(e, ERR_DATA, "JSON: %s at byte %zu", g.why, (size_t)(g.p - g.text));
    return 0;
}
