/* claims.c - numbers in prose and in outputs.
 *
 * Trust boundary: both sides were written by models and programs. The worst that a strange text can do is to be marked, or not. */
#include "claims.h"
#include <ctype.h>
#include <math.h>
#include <strings.h>
#include "str.h"

enum {
    DIGITS_MAX = 24, /* longer ones are keys, not amounts */
    GROUPS_MAX = 12, /* 1,234,567: three */
    SMALL_MAX = 12,  /* months, items of a list: counted by eye */
    READINGS_MAX = 3,
    JOINED_MAX = 4096,
    KEY_MIN = 12, /* letters and digits of a key */
};

void claims_clear(struct claims *c)
{
    for (size_t i = 0; i < c->n; i++)
        free(c->at[i]);
    *c = (struct claims){ 0 };
}

char *claims_join(const struct claims *c)
{
    AUTO(str_clear) struct str all = STR_INIT(JOINED_MAX);
    for (size_t i = 0; i < c->n; i++)
        str_printf(&all, "%s%s", i ? ", " : "", c->at[i]);
    return str_take(&all);
}

static void claims_add(struct claims *c, const char *at, size_t n)
{
    for (size_t i = 0; i < c->n; i++)
        if (strlen(c->at[i]) == n && memcmp(c->at[i], at, n) == 0)
            return;
    if (c->n < CLAIMS_MAX)
        c->at[c->n++] = xstrndup(at, n);
}

/* ---- one number ---- */

/* Digits with signs between them, as written: groups[i] is followed by seps[i]. */
struct run {
    const char *at, *end;
    struct group {
        const char *at;
        size_t n;
    } groups[GROUPS_MAX];
    char seps[GROUPS_MAX]; /* ',' '.' ' ' '\'' '_'; the odd blanks of print count as ' ' */
    size_t n;
};

struct number {
    const char *at, *end;                             /* with sign of percent and word of magnitude */
    double values[READINGS_MAX], units[READINGS_MAX]; /* unit: of its last written digit */
    size_t n;
    bool percent, whole; /* whole: one reading, no fraction, no magnitude */
};

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Bytes of a sign that may stand between digits, 0 when none; *kind is how it counts. */
static size_t separator(const char *at, char *kind)
{
    static const struct {
        const char *text;
        char kind;
    } table[] = {
        { ",", ',' },
        { ".", '.' },
        { "'", '\'' },
        { "_", '_' },
        { "\xc2\xa0", ' ' },
        { "\xe2\x80\xaf", ' ' },
        { "\xe2\x80\x89", ' ' },
        { "\xe2\x80\x99", '\'' },
    };
    for (size_t i = 0; i < countof(table); i++) {
        const size_t n = strlen(table[i].text);
        if (strncmp(at, table[i].text, n) == 0 && digit(at[n])) {
            *kind = table[i].kind;
            return n;
        }
    }
    return 0;
}

static void read_run(struct run *r, const char *at)
{
    *r = (struct run){ .at = at };
    for (;;) {
        struct group *g = &r->groups[r->n];
        g->at = at;
        while (digit(*at))
            at++;
        g->n = (size_t)(at - g->at);
        char kind = 0;
        const size_t sep = r->n + 1 < GROUPS_MAX ? separator(at, &kind) : 0;
        r->seps[r->n++] = kind;
        if (!sep)
            break;
        at += sep;
    }
    r->end = at;
}

static void shorten(struct run *r, size_t groups)
{
    r->n = groups;
    r->end = r->groups[groups - 1].at + r->groups[groups - 1].n;
}

/* True when groups [0, n) are thousands, all with one sign that is not `not_sep`. */
static bool are_thousands(const struct run *r, size_t n, char not_sep)
{
    for (size_t i = 1; i < n; i++)
        if (r->groups[i].n != 3 || r->seps[i - 1] != r->seps[0] || r->seps[i - 1] == not_sep)
            return false;
    return n == 1 || r->groups[0].n <= 3;
}

static void add_reading(struct number *out, const struct run *r, size_t whole_n, bool fraction)
{
    char digits[DIGITS_MAX * 2 + 2];
    size_t n = 0;
    for (size_t i = 0; i < whole_n + fraction; i++) {
        if (n + r->groups[i].n + 2 > sizeof(digits))
            return;
        if (i == whole_n)
            digits[n++] = '.';
        memcpy(digits + n, r->groups[i].at, r->groups[i].n);
        n += r->groups[i].n;
    }
    digits[n] = '\0';
    out->values[out->n] = strtod(digits, NULL);
    out->units[out->n++] = fraction ? pow(10, -(double)r->groups[whole_n].n) : 1;
}

/* All ways to read the run as one number; none: it is a list, a date, a version. */
static void read_values(struct number *out, const struct run *r)
{
    const size_t last = r->n - 1;
    const bool point = last && (r->seps[last - 1] == '.' || r->seps[last - 1] == ',');
    out->n = 0;
    if (are_thousands(r, r->n, '.') || (r->n > 1 && are_thousands(r, r->n, 0)))
        add_reading(out, r, r->n, false);
    if (point && are_thousands(r, last, r->seps[last - 1]))
        add_reading(out, r, last, true);
}

static void read_exponent(struct number *out)
{
    const char *at = out->end + 1;
    if ((*out->end | 0x20) != 'e')
        return;
    at += *at == '-' || *at == '+';
    if (!digit(*at))
        return;
    const char *end = at;
    while (digit(*end))
        end++;
    if (isalpha((unsigned char)*end))
        return;
    const double scale = pow(10, strtod(out->end + 1, NULL));
    for (size_t i = 0; i < out->n; i++) {
        out->values[i] *= scale;
        out->units[i] *= scale;
    }
    out->end = end;
}

/* "1.2 million", "30k", "3.5万": *scale is 1 and nothing is taken when there is no such word. */
static const char *read_magnitude(const char *at, double *scale)
{
    static const struct {
        const char *word;
        double scale;
    } table[] = {
        { "thousand", 1e3 }, { "million", 1e6 }, { "billion", 1e9 }, { "trillion", 1e12 },    { "bn", 1e9 },
        { "k", 1e3 },        { "m", 1e6 },       { "b", 1e9 },       { "\xe4\xb8\x87", 1e4 }, { "\xe4\xba\xbf", 1e8 },
    };
    const char *word = at + (*at == ' ');
    *scale = 1;
    for (size_t i = 0; i < countof(table); i++) {
        const size_t n = strlen(table[i].word);
        if (strncasecmp(word, table[i].word, n) != 0 || (n == 1 && word != at) || isalnum((unsigned char)word[n]))
            continue;
        *scale = table[i].scale;
        return word + n;
    }
    return at;
}

static bool read_percent(const char **at)
{
    static const char *const signs[] = {
        "%", " %", "\\%", "\xef\xbc\x85", " percent", " per cent", "\xe2\x80\x89%", "\xc2\xa0%", "\xe2\x80\xaf%"
    };
    for (size_t i = 0; i < countof(signs); i++) {
        if (strncmp(*at, signs[i], strlen(signs[i])) != 0)
            continue;
        *at += strlen(signs[i]);
        return true;
    }
    /* 95th: a quantile 0.95 */
    return strncmp(*at, "th", 2) == 0 && !isalnum((unsigned char)(*at)[2]);
}

/* The longest number that begins at a digit. False: what begins there is none, and ends at out->end. */
static bool read_number(struct number *out, struct run *r, const char *at)
{
    read_run(r, at);
    *out = (struct number){ .at = at };
    read_values(out, r);
    for (size_t i = 1; out->n == 0 && i < r->n; i++) {
        if (r->seps[i - 1] == '.')
            continue;
        shorten(r, i); /* a list: its first element */
        read_values(out, r);
        break;
    }
    out->end = r->end;
    if (out->n == 0)
        return false;
    out->whole = r->n == 1;
    read_exponent(out);
    return true;
}

/* A nonce, a checksum: hex digits and letters in one long word. They show nothing, and a random 25 in one must not support a
 * 25. Returns what is behind it, or `at`. */
static const char *skip_key(const char *begin, const char *at)
{
    size_t n = 0, digits = 0;
    if (at > begin && isalnum((unsigned char)at[-1]))
        return at;
    for (; isxdigit((unsigned char)at[n]); n++)
        digits += digit(at[n]);
    return n >= KEY_MIN && digits && digits < n && !isalnum((unsigned char)at[n]) ? at + n : at;
}

/* ---- evidence ---- */

void evidence_clear(struct evidence *e)
{
    free(e->at);
    *e = (struct evidence){ 0 };
}

static void add_value(struct evidence *e, double v)
{
    if (!isfinite(v))
        return;
    e->at = xgrow(e->at, &e->cap, e->n + 1, sizeof(*e->at));
    e->at[e->n++] = v;
    e->sorted = false;
}

/* A column of a table may stand beside the next with a comma between: each group, and each pair around a point, alone. */
static void add_groups(struct evidence *e, const struct run *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct number one = { 0 };
        struct run part = { .n = 1, .groups = { r->groups[i] } };
        add_reading(&one, &part, 1, false);
        if (i + 1 < r->n && r->seps[i] == '.') {
            part.groups[1] = r->groups[i + 1];
            add_reading(&one, &part, 1, true);
        }
        for (size_t k = 0; k < one.n; k++)
            add_value(e, one.values[k]);
    }
}

/* As a claim that begins at this digit would be read. */
static void add_from(struct evidence *e, const char *at)
{
    struct number n;
    struct run r;
    double scale = 1;
    (void)read_number(&n, &r, at);
    (void)read_magnitude(n.end, &scale);
    for (size_t i = 0; i < n.n; i++) {
        add_value(e, n.values[i]);
        if (scale > 1)
            add_value(e, n.values[i] * scale);
    }
}

void evidence_add(struct evidence *e, const char *text)
{
    const char *begin = text;
    while (*text) {
        struct run r;
        const char *behind = skip_key(begin, text);
        if (behind > text || !digit(*text)) {
            text = behind > text ? behind : text + 1;
            continue;
        }
        read_run(&r, text);
        add_groups(e, &r);
        for (size_t i = 0; i < r.n; i++)
            add_from(e, r.groups[i].at);
        text = r.end;
    }
}

void evidence_remove(struct evidence *e, const char *text)
{
    struct evidence gone = { 0 };
    evidence_add(&gone, text);
    size_t kept = 0;
    for (size_t i = 0; i < e->n; i++) {
        bool is_gone = false;
        for (size_t k = 0; k < gone.n && !is_gone; k++)
            is_gone = gone.at[k] == e->at[i];
        if (!is_gone)
            e->at[kept++] = e->at[i];
    }
    e->n = kept;
    evidence_clear(&gone);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool has_between(const struct evidence *e, double low, double high)
{
    size_t from = 0, to = e->n;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (e->at[middle] < low)
            from = middle + 1;
        else
            to = middle;
    }
    return from < e->n && e->at[from] <= high;
}

/* Some value rounds to v at that unit, or was cut to it. */
static bool has_rounded(const struct evidence *e, double v, double unit)
{
    const double slack = 1e-9 * (v > 1 ? v : 1);
    return has_between(e, v - unit / 2 - slack, v + unit * (1 - 1e-9) + slack);
}

/* ---- claims ---- */

/* "about 1,200": written with less precision than its digits say. */
static double loose_unit(const char *begin, const struct number *n, const struct run *r)
{
    static const char *const hedges[] = { "~",          "\xe2\x89\x88",   "about ",       "around ",
                                          "roughly ",   "approximately ", "nearly ",      "almost ",
                                          "over ",      "\xe7\xba\xa6",   "\xe8\xbf\x91", "more than ",
                                          "less than ", "under " };
    const struct group *g = &r->groups[r->n - 1];
    double unit = 1;
    bool hedged = false;
    for (size_t i = 0; i < countof(hedges) && !hedged; i++) {
        const size_t len = strlen(hedges[i]);
        hedged = (size_t)(n->at - begin) >= len && strncasecmp(n->at - len, hedges[i], len) == 0;
    }
    for (const char *c = g->at + g->n; hedged && c > r->at && (c[-1] == '0' || !digit(c[-1])); c--)
        unit *= c[-1] == '0' ? 10 : 1;
    return unit;
}

static bool is_supported(const struct evidence *e, const struct number *n, double scale, double loose)
{
    for (size_t i = 0; i < n->n; i++) {
        const double unit = n->units[i] >= 1 ? n->units[i] * loose : n->units[i];
        const double v = n->values[i] * scale, u = unit * scale;
        if (!isfinite(v) || has_rounded(e, v, u) || (n->percent && has_rounded(e, v / 100, u / 100)))
            return true;
    }
    return false;
}

static bool is_small(const struct number *n)
{
    return n->whole && n->units[0] >= 1 && (n->values[0] <= SMALL_MAX || n->values[0] == 100);
}

/* "30,40" may be two numbers as well: then each must be supported. */
static bool is_supported_list(const struct evidence *e, const struct run *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct number one = { 0 };
        struct run part = { .n = 1, .groups = { r->groups[i] } };
        add_reading(&one, &part, 1, false);
        if ((i + 1 < r->n && r->seps[i] != ',') || !one.n ||
            (one.values[0] > SMALL_MAX && !is_supported(e, &one, 1, 1)))
            return false;
    }
    return r->n > 1;
}

/* Reads one number of the prose and judges it; returns what is behind it. */
static const char *check_number(struct claims *out, const char *begin, const char *at, const struct evidence *e)
{
    struct number n;
    struct run r;
    double scale = 1;
    if (!read_number(&n, &r, at))
        return n.end;
    const double loose = loose_unit(begin, &n, &r);
    const char *end = read_magnitude(n.end, &scale);
    n.percent = read_percent(&end);
    const bool plain = scale == 1 && (!n.percent || n.values[0] == 100 || end == n.end);
    if (!(plain && is_small(&n)) && n.end - at <= DIGITS_MAX && !is_supported(e, &n, scale, loose) &&
        !is_supported_list(e, &r))
        claims_add(out, at, (size_t)(end - at));
    return end;
}

/* A word in Latin letters, digits and underscores: Q1, x2, sha256 */
static bool in_name(const char *begin, const char *at)
{
    return at > begin && (isalpha((unsigned char)at[-1]) || at[-1] == '_');
}

static const char *skip_name(const char *at)
{
    while (isalnum((unsigned char)*at) || *at == '_' || ((*at == '.' || *at == '-') && isalnum((unsigned char)at[1])))
        at++;
    return at;
}

static bool begins_line(const char *begin, const char *at)
{
    while (at > begin && strchr(" \t>*-", at[-1]))
        at--;
    return at == begin || at[-1] == '\n';
}

/* "12. " or "12) " at the beginning of a line */
static const char *skip_marker(const char *begin, const char *at)
{
    const char *end = at;
    if (!digit(*at) || !begins_line(begin, at))
        return at;
    while (digit(*end))
        end++;
    return (*end == '.' || *end == ')') && end[1] == ' ' ? end + 1 : at;
}

/* Backticks: a program is no claim, a lone number in them is. Returns where to go on reading. */
static const char *skip_code(const char *at)
{
    const size_t ticks = strspn(at, "`");
    const char *body = at + ticks;
    if (ticks >= 3)
        return strncmp(body, "py", 2) == 0 || strncmp(body, "sql", 3) == 0
                   ? (strstr(body, "```") ? strstr(body, "```") + 3 : body + strlen(body))
                   : body + strcspn(body, "\n");
    const char *end = strchr(body, '`');
    if (!end || strspn(body, "0123456789.,%+- ") == (size_t)(end - body))
        return body;
    return end + strspn(end, "`");
}

static const char *skip_address(const char *at)
{
    return at + strcspn(at, " \t\n)>]\"");
}

static const char *check_next(struct claims *out, const char *begin, const char *at, const struct evidence *e)
{
    const char *marker = skip_marker(begin, at);
    if (marker > at)
        return marker;
    if (*at == '`')
        return skip_code(at);
    if (strncmp(at, "://", 3) == 0)
        return skip_address(at);
    const char *behind = skip_key(begin, at);
    if (behind > at)
        return behind;
    if (!digit(*at))
        return at + 1;
    return in_name(begin, at) ? skip_name(at) : check_number(out, begin, at, e);
}

void claims_numbers(struct claims *out, const char *markdown, struct evidence *e)
{
    if (!e->sorted && e->n)
        qsort(e->at, e->n, sizeof(*e->at), by_value);
    e->sorted = true;
    for (const char *at = markdown; *at;)
        at = check_next(out, markdown, at, e);
}
