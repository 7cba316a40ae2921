/* claims_tokens.c - a Python program as a list of tokens: enough to see what stands where, for programs that have run already. */
#include <ctype.h>
#include "claims_private.h"

enum { TOKENS_MAX = 1 << 16 };

static struct token *token_add(struct tokens *t, enum token_kind kind, const char *at, size_t n)
{
    t->at = xgrow(t->at, &t->cap, t->n + 1, sizeof(*t->at));
    t->at[t->n] = (struct token){ .kind = kind, .at = at, .n = n, .sign = '\0' };
    if (kind == TOKEN_SIGN)
        t->at[t->n].sign = *at;
    return &t->at[t->n++];
}

static void sign_add(struct tokens *t, char sign, const char *at)
{
    token_add(t, TOKEN_SIGN, at, 0)->sign = sign;
}

static bool is_name_byte(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* ---- strings ---- */

struct quoting {
    const char *body;
    char quote;
    size_t quotes; /* one or three */
    bool formatted;
};

/* A string's opening, its letters included: r"", f''' */
static bool opens_string(struct quoting *q, const char *at)
{
    size_t letters = 0;
    *q = (struct quoting){ 0 };
    for (; letters < 2 && at[letters] && strchr("rRbBuUfF", at[letters]); letters++)
        q->formatted = q->formatted || (at[letters] | 0x20) == 'f';
    at += letters;
    if (*at != '"' && *at != '\'')
        return false;
    q->quote = *at;
    q->quotes = at[1] == *at && at[2] == *at ? 3 : 1;
    q->body = at + q->quotes;
    return true;
}

static bool closes(const struct quoting *q, const char *at)
{
    for (size_t i = 0; i < q->quotes; i++)
        if (at[i] != q->quote)
            return false;
    return true;
}

static const char *string_end(const struct quoting *q, const char *limit)
{
    const char *at = q->body;
    while (at < limit && !closes(q, at) && !(q->quotes == 1 && *at == '\n'))
        at += *at == '\\' && at + 1 < limit ? 2 : 1;
    return at;
}

/* ---- the rest ---- */

static const char *read_string(struct tokens *t, const struct quoting *q, const char *end)
{
    const char *to = string_end(q, end);
    token_add(t, TOKEN_TEXT, q->body, (size_t)(to - q->body));
    return to < end ? to + (closes(q, to) ? q->quotes : 0) : end;
}

static const char *read_number(struct tokens *t, const char *at)
{
    const char *end = at;
    while (is_name_byte(*end) || *end == '.' ||
           ((*end == '-' || *end == '+') && (end[-1] | 0x20) == 'e' && at[1] != 'x'))
        end++;
    token_add(t, TOKEN_NUMBER, at, (size_t)(end - at));
    return end;
}

static const char *read_name(struct tokens *t, const char *at)
{
    const char *end = at;
    while (is_name_byte(*end))
        end++;
    token_add(t, TOKEN_NAME, at, (size_t)(end - at));
    return end;
}

/* One sign; what is made of several ("==", "**", "+=") is an operator all the same. */
static const char *read_sign(struct tokens *t, const char *at, const char *end)
{
    const bool twice = at + 1 < end && strchr("=<>*/", at[1]) && strchr("=<>!*/+-%&|^", *at);
    if (!twice) {
        token_add(t, TOKEN_SIGN, at, 1);
        return at + 1;
    }
    sign_add(t, '<', at);
    return at + 2;
}

/* One token, or what is between two. Within brackets lines do not end. */
static const char *read_one(struct tokens *t, const char *at, const char *end, int *depth)
{
    struct quoting q;
    if (*at == '#') {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        token_add(t, TOKEN_COMMENT, at, (size_t)((line ? line : end) - at));
        return line ? line : end;
    }
    if (*at == '\\' || (isspace((unsigned char)*at) && (*at != '\n' || *depth > 0)))
        return at + (*at == '\\' && at + 1 < end ? 2 : 1);
    if (opens_string(&q, at))
        return read_string(t, &q, end);
    if (isdigit((unsigned char)*at) || (*at == '.' && isdigit((unsigned char)at[1])))
        return read_number(t, at);
    if (is_name_byte(*at))
        return read_name(t, at);
    *depth += strchr("([{", *at) ? 1 : strchr(")]}", *at) && *depth ? -1 : 0;
    return read_sign(t, at, end);
}

/* ---- f-strings ---- */

/* "{x:.2f}": the expression is code, what says how to print it is not. A formatted string inside is one text. Returns what is behind it. */
static const char *read_field(struct tokens *t, const char *at, const char *end)
{
    const char *to = at + 1, *expression_end = NULL;
    int depth = 0, inside = 1;
    for (; to < end && !(*to == '}' && depth == 0); to++) {
        depth += strchr("([{", *to) ? 1 : strchr(")]}", *to) ? -1 : 0;
        if (depth == 0 && !expression_end && (*to == ':' || (*to == '!' && to[1] != '=')))
            expression_end = to;
    }
    expression_end = expression_end ? expression_end : to;
    sign_add(t, ',', at);
    sign_add(t, '(', at);
    for (const char *code = at + 1; code < expression_end && t->n < TOKENS_MAX;)
        code = read_one(t, code, expression_end, &inside);
    sign_add(t, ')', at);
    return to < end ? to + 1 : end;
}

static const char *read_formatted(struct tokens *t, const struct quoting *q, const char *limit)
{
    const char *from = q->body, *end = string_end(q, limit);
    sign_add(t, '(', from);
    for (const char *at = from; at <= end;) {
        const bool doubled = at < end && (*at == '{' || *at == '}') && at[1] == *at;
        if (at < end && (*at != '{' || doubled)) {
            at += doubled ? 2 : 1;
            continue;
        }
        if (at > from)
            token_add(t, TOKEN_TEXT, from, (size_t)(at - from));
        if (at >= end)
            break;
        from = at = read_field(t, at, end);
    }
    sign_add(t, ')', end);
    return end < limit ? end + (closes(q, end) ? q->quotes : 0) : limit;
}

void tokens_read(struct tokens *t, const char *code)
{
    const char *end = code + strlen(code);
    int depth = 0;
    *t = (struct tokens){ 0 };
    while (code < end && t->n < TOKENS_MAX) { /* a longer program is no answer to a question */
        struct quoting q;
        const bool formatted = opens_string(&q, code) && q.formatted;
        code = formatted ? read_formatted(t, &q, end) : read_one(t, code, end, &depth);
    }
}

void tokens_clear(struct tokens *t)
{
    free(t->at);
    *t = (struct tokens){ 0 };
}

bool token_is(const struct token *t, const char *const *names, size_t n)
{
    for (size_t i = 0; t->kind == TOKEN_NAME && i < n; i++)
        if (strlen(names[i]) == t->n && memcmp(names[i], t->at, t->n) == 0)
            return true;
    return false;
}
