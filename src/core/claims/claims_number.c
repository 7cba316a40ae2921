/* claims_number.c - numbers in digits, as people and programs of many countries write them. */
#include <ctype.h>
#include <math.h>
#include <strings.h>
#include "claims_private.h"
#include "str.h"

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

void number_run(struct run *r, const char *at)
{
    *r = (struct run){ .at = at };
    for (;;) {
        struct group *g = &r->groups[r->n];
        g->at = at;
        while (digit(*at))
            at++;
        g->n = (size_t)(at - g->at);
        char kind = 0;
        const size_t sep = r->n + 1 < CLAIMS_GROUPS_MAX ? separator(at, &kind) : 0;
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

/* 12,34,567: pairs, and three at the end. */
static bool are_lakhs(const struct run *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (r->groups[i].n != (i + 1 == n ? 3u : 2u) && !(i == 0 && r->groups[0].n == 1))
            return false;
    for (size_t i = 1; i < n; i++)
        if (r->seps[i - 1] != ',')
            return false;
    return n > 2;
}

static void add_reading(struct number *out, const struct run *r, size_t whole_n, bool fraction)
{
    if (out->n == CLAIMS_READINGS_MAX)
        return;
    char digits[CLAIMS_DIGITS_MAX * 2 + 2];
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
    if (are_lakhs(r, r->n))
        add_reading(out, r, r->n, false);
    if (point && r->seps[last - 1] == '.' && are_lakhs(r, last))
        add_reading(out, r, last, true);
    if (are_thousands(r, r->n, '.') || (r->n > 1 && are_thousands(r, r->n, 0)))
        add_reading(out, r, r->n, false);
    if (point && are_thousands(r, last, r->seps[last - 1]))
        add_reading(out, r, last, true);
}

/* "e6", " × 10^6", "x10^-3", "×10⁶": where the exponent begins, NULL: there is none. */
static const char *exponent_at(const char *at)
{
    static const char *const signs[] = { "×", "x", "*", "\\times", "·" };
    if ((*at | 0x20) == 'e')
        return at + 1;
    at += *at == ' ';
    for (size_t i = 0; i < countof(signs); i++) {
        const size_t n = strlen(signs[i]);
        if (strncmp(at, signs[i], n) != 0)
            continue;
        at += n + (at[n] == ' ');
        if (strncmp(at, "10", 2) != 0)
            return NULL;
        at += 2;
        at += strncmp(at, "**", 2) == 0 ? 2 : *at == '^';
        return at + (*at == '{');
    }
    return NULL;
}

/* A digit, small or raised: moved past; -1: there is none. */
static int power_digit(const char **at)
{
    static const char *const raised[] = { "⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹" };
    if (digit(**at))
        return *(*at)++ - '0';
    for (size_t i = 0; i < countof(raised); i++)
        if (strncmp(*at, raised[i], strlen(raised[i])) == 0) {
            *at += strlen(raised[i]);
            return (int)i;
        }
    return -1;
}

/* *end: behind the last digit; NULL: there is none. */
static long read_power(const char *at, const char **end)
{
    const size_t minus = strncmp(at, "−", 3) == 0 || strncmp(at, "⁻", 3) == 0 ? 3 : *at == '-';
    long power = 0;
    at += minus ? minus : *at == '+';
    *end = NULL;
    for (int d; power <= 999 && (d = power_digit(&at)) >= 0; *end = at)
        power = 10 * power + d;
    return minus ? -power : power;
}

static void read_exponent(struct number *out)
{
    const char *end = NULL, *at = exponent_at(out->end);
    const long power = at ? read_power(at, &end) : 0;
    if (!end || digit(*end) || isalpha((unsigned char)*end))
        return;
    const double scale = pow(10, (double)power);
    for (size_t i = 0; i < out->n; i++) {
        out->values[i] *= scale;
        out->units[i] *= scale;
    }
    out->end = end + (*end == '}');
}

/* Longer words before their beginnings. */
static const struct {
    const char *word;
    double scale;
} magnitudes[] = {
    { "thousand", 1e3 }, { "millions", 1e6 },     { "million", 1e6 },     { "billion", 1e9 },   { "trillion", 1e12 },
    { "bn", 1e9 },       { "mn", 1e6 },           { "lakhs", 1e5 },       { "lakh", 1e5 },      { "crores", 1e7 },
    { "crore", 1e7 },    { "tausend", 1e3 },      { "tsd.", 1e3 },        { "tsd", 1e3 },       { "millionen", 1e6 },
    { "mio.", 1e6 },     { "mio", 1e6 },          { "milliarden", 1e9 },  { "milliarde", 1e9 }, { "mrd.", 1e9 },
    { "mrd", 1e9 },      { "mille", 1e3 },        { "milliards", 1e9 },   { "milliard", 1e9 },  { "millones", 1e6 },
    { "millón", 1e6 },   { "mil millones", 1e9 }, { "mil milhões", 1e9 }, { "mila", 1e3 },      { "milioni", 1e6 },
    { "milione", 1e6 },  { "miliardi", 1e9 },     { "miliardo", 1e9 },    { "milhões", 1e6 },   { "milhão", 1e6 },
    { "bilhões", 1e9 },  { "bilhão", 1e9 },       { "duizend", 1e3 },     { "miljoen", 1e6 },   { "miljard", 1e9 },
    { "tysiące", 1e3 },  { "tysięcy", 1e3 },      { "tys.", 1e3 },        { "miliony", 1e6 },   { "milionów", 1e6 },
    { "miliona", 1e6 },  { "miliardów", 1e9 },    { "miliarda", 1e9 },    { "mln", 1e6 },       { "mld", 1e9 },
    { "тыс.", 1e3 },     { "тысячи", 1e3 },       { "тысяч", 1e3 },       { "миллионов", 1e6 }, { "миллиона", 1e6 },
    { "миллион", 1e6 },  { "миллиардов", 1e9 },   { "миллиарда", 1e9 },   { "миллиард", 1e9 },  { "млн", 1e6 },
    { "млрд", 1e9 },     { "十万", 1e5 },         { "百万", 1e6 },        { "千万", 1e7 },      { "十亿", 1e9 },
    { "百亿", 1e10 },    { "千", 1e3 },           { "万亿", 1e12 },       { "万", 1e4 },        { "萬", 1e4 },
    { "亿", 1e8 },       { "億", 1e8 },           { "兆", 1e12 },         { "천", 1e3 },        { "백만", 1e6 },
    { "만", 1e4 },       { "억", 1e8 },           { "mil", 1e3 },         { "k", 1e3 },         { "m", 1e6 },
    { "b", 1e9 },
};

const char *number_magnitude(const char *at, double *scale)
{
    const char *word = at + (*at == ' ');
    *scale = 1;
    for (size_t i = 0; i < countof(magnitudes); i++) {
        const char *known = magnitudes[i].word;
        const size_t n = strlen(known);
        if (strncasecmp(word, known, n) != 0 || (n == 1 && word != at) || isalnum((unsigned char)word[n]))
            continue;
        *scale = magnitudes[i].scale;
        return word + n;
    }
    return at;
}

static const char *skip_blank(const char *at)
{
    static const char *const blanks[] = { " ", "\xc2\xa0", "\xe2\x80\x89", "\xe2\x80\xaf" };
    for (size_t i = 0; i < countof(blanks); i++)
        if (strncmp(at, blanks[i], strlen(blanks[i])) == 0)
            return at + strlen(blanks[i]);
    return at;
}

static bool ends_at(const char *begin, const char *at, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(at - begin) >= n && memcmp(at - n, word, n) == 0;
}

bool number_percent(const char *begin, const char *number, const char **at)
{
    static const char *const signs[] = { "%",
                                         "\\%",
                                         "\xef\xbc\x85",
                                         "percent",
                                         "per cent",
                                         "pct",
                                         "Prozent",
                                         "pour cent",
                                         "por ciento",
                                         "per cento",
                                         "por cento",
                                         "procent",
                                         "proc.",
                                         "процент",
                                         "パーセント",
                                         "퍼센트",
                                         "pp",
                                         "п.п.",
                                         "points de pourcentage",
                                         "puntos porcentuales",
                                         "pontos percentuais",
                                         "punti percentuali" };
    const char *word = skip_blank(*at);
    for (size_t i = 0; i < countof(signs); i++) {
        if (strncasecmp(word, signs[i], strlen(signs[i])) != 0)
            continue;
        *at = word + strlen(signs[i]);
        return true;
    }
    if (strncmp(word, "个百分点", 12) == 0 || ends_at(begin, number, "百分之"))
        return true;
    /* 95th: a quantile 0.95 */
    return strncmp(*at, "th", 2) == 0 && !isalnum((unsigned char)(*at)[2]);
}

/* The longest number that begins at a digit. False: what begins there is none, and ends at out->end. */
bool number_read(struct number *out, struct run *r, const char *at)
{
    number_run(r, at);
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

/* Groups of three behind blanks, and what stands behind the last one. */
bool number_spaced(struct number *out, const char *begin, const char *at)
{
    static const char *const before[] = { ".", ",", "'", "_" };
    struct run all = { .at = at }, last;
    bool alone = at == begin || !digit(at[-1]);
    for (size_t i = 0; alone && i < countof(before); i++)
        alone = at == begin || at[-1] != *before[i] || at - 1 == begin || !digit(at[-2]);
    *out = (struct number){ .at = at };
    for (size_t n = strspn(at, "0123456789"); alone && n && n <= 3 && all.n + 2 < CLAIMS_GROUPS_MAX; n = 3) {
        all.groups[all.n] = (struct group){ at, n };
        all.seps[all.n++] = ' ';
        at += n;
        if (*at != ' ' || strspn(at + 1, "0123456789") != 3)
            break;
        at++;
    }
    if (all.n < 2)
        return false;
    number_run(&last, all.groups[all.n - 1].at);
    if (last.n > 2)
        return false;
    const bool fraction = last.n == 2 && strchr(",.", last.seps[0]);
    if (fraction)
        all.groups[all.n] = last.groups[1];
    add_reading(out, &all, all.n, fraction);
    out->end = fraction ? last.end : at;
    return out->n > 0;
}

void number_group(struct number *out, const struct run *r, size_t i, bool fraction)
{
    struct run part = { .n = 1, .groups = { r->groups[i] } };
    if (fraction)
        part.groups[1] = r->groups[i + 1];
    add_reading(out, &part, 1, fraction);
}

/* ---- other scripts ---- */

/* The digit that a code point is, -1: none. */
static int digit_of(uint32_t cp)
{
    static const uint32_t zeros[] = { 0xff10, 0x0660, 0x06f0, 0x0966, 0x09e6, 0x0e50 };
    for (size_t i = 0; i < countof(zeros); i++)
        if (cp >= zeros[i] && cp < zeros[i] + 10)
            return (int)(cp - zeros[i]);
    return -1;
}

/* "１，２３４": a sign of the script that is no sentence's comma. */
static bool is_wide_group(uint32_t before, const char *at)
{
    return digit_of(before) >= 0 && *at && digit_of(utf8_next(&at)) >= 0;
}

char *number_plain(const char *text)
{
    AUTO(str_clear) struct str out = STR_INIT(SIZE_MAX);
    uint32_t before = 0;
    for (const char *at = text; *at;) {
        const char *from = at;
        const uint32_t cp = utf8_next(&at);
        const int d = digit_of(cp);
        const bool group = cp == 0xff0c && is_wide_group(before, at);
        before = cp;
        if (d >= 0)
            str_putc(&out, (char)('0' + d));
        else if (cp == 0x66b || cp == 0xff0e)
            str_putc(&out, '.');
        else if (cp == 0x66c || group)
            str_putc(&out, ',');
        else if (cp == 0x66a)
            str_putc(&out, '%');
        else
            str_add(&out, from, (size_t)(at - from));
    }
    return str_take(&out);
}
