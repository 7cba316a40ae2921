/* claims_prose.c - what stands around numbers: what proves and claims nothing, what says that it is rounded, what custom sets. */
#include <ctype.h>
#include <strings.h>
#include "claims_private.h"
#include "str.h"

enum {
    KEY_MIN = 12,    /* letters and digits of a key */
    CUE_BYTES = 40,  /* so near stands the word that explains a number */
    NAME_LETTERS = 2 /* of a name in capitals: COVID-19 */
};

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- no claims ---- */

/* Hex digits and letters in one long word: a random 25 in one must not support a 25. */
const char *prose_skip_key(const char *begin, const char *at)
{
    size_t n = 0, digits = 0;
    if (at > begin && isalnum((unsigned char)at[-1]))
        return at;
    for (; isxdigit((unsigned char)at[n]); n++)
        digits += digit(at[n]);
    return n >= KEY_MIN && digits && digits < n && !isalnum((unsigned char)at[n]) ? at + n : at;
}

/* Q1, x2, sha256; COVID-19 */
static bool in_name(const char *begin, const char *at)
{
    size_t capitals = 0;
    if (at > begin && (isalpha((unsigned char)at[-1]) || at[-1] == '_'))
        return true;
    if (at == begin || at[-1] != '-')
        return false;
    for (const char *c = at - 1; c > begin && isupper((unsigned char)c[-1]); c--)
        capitals++;
    return capitals >= NAME_LETTERS;
}

static const char *skip_name(const char *at)
{
    while (isalnum((unsigned char)*at) || *at == '_' || ((*at == '.' || *at == '-') && isalnum((unsigned char)at[1])))
        at++;
    return at;
}

static bool begins_line(const char *begin, const char *at)
{
    while (at > begin && strchr(" \t>*-(", at[-1]))
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

/* A block of a language that runs is no claim, one of output or of none is. */
static bool is_program(const char *tag)
{
    static const char *const shown[] = { "text",    "txt",      "csv", "tsv",  "output",
                                         "console", "markdown", "md",  "json", "plaintext" };
    const size_t n = strcspn(tag, " \t\r\n`{");
    for (size_t i = 0; i < countof(shown); i++)
        if (n == strlen(shown[i]) && strncasecmp(tag, shown[i], n) == 0)
            return false;
    return n > 0 && calendar_word(tag) > 0 && strchr(tag, '\n') && tag[n] != '`';
}

/* Backticks: a program is no claim, a lone number in them is. Returns where to go on reading. */
static const char *skip_code(const char *at)
{
    const size_t ticks = strspn(at, "`");
    const char *body = at + ticks, *end = NULL;
    if (ticks >= 3 && is_program(body)) {
        end = strstr(body, "```");
        return end ? end + 3 : body + strlen(body);
    }
    if (ticks >= 3)
        return body + strcspn(body, "\n");
    end = strchr(body, '`');
    if (!end || strspn(body, "0123456789.,%+- ") == (size_t)(end - body))
        return body;
    return end + strspn(end, "`");
}

/* "&#39;", "#ff0033" */
static const char *skip_sign(const char *begin, const char *at)
{
    const size_t n = *at == '#' ? strspn(at + 1, "0123456789abcdefABCDEF") : 0;
    const bool entity = at > begin && at[-1] == '&';
    if (n && entity && at[1 + n] == ';')
        return at + 1 + n;
    return (n == 6 || n == 8) && !isalnum((unsigned char)at[1 + n]) ? at + 1 + n : at;
}

static const char *skip_address(const char *at)
{
    static const char *const begins[] = { "://", "www." };
    for (size_t i = 0; i < countof(begins); i++)
        if (strncmp(at, begins[i], strlen(begins[i])) == 0)
            return at + strcspn(at, " \t\n)>]\"");
    return at;
}

static bool is_behind(const char *begin, const char *at, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(at - begin) >= n && strncasecmp(at - n, word, n) == 0;
}

/* "Python 3.13", "the 19th century": known without any data. */
static const char *skip_known(const char *begin, const char *at)
{
    static const char *const before[] = { "python ", "pandas ", "numpy ", "scipy ", "version ", "utf-", "iso " };
    static const char *const behind[] = { "th centur",     "st centur", "nd centur", "rd centur",
                                          ". jahrhundert", "e siècle",  "世紀",      "世纪" };
    const char *end = at + strspn(at, "0123456789");
    for (size_t i = 0; i < countof(before); i++)
        if (is_behind(begin, at, before[i]))
            return skip_name(at);
    for (size_t i = 0; i < countof(behind); i++)
        if (strncasecmp(end, behind[i], strlen(behind[i])) == 0)
            return end + strlen(behind[i]);
    return at;
}

const char *prose_skip(const char *begin, const char *at)
{
    if (*at == '`')
        return skip_code(at);
    if (*at == '#')
        return skip_sign(begin, at);
    if (!digit(*at)) {
        const char *behind = skip_address(at);
        return behind > at ? behind : prose_skip_key(begin, at);
    }
    const char *const behind[] = { skip_marker(begin, at), prose_skip_key(begin, at),
                                   in_name(begin, at) ? skip_name(at) : at, skip_known(begin, at) };
    for (size_t i = 0; i < countof(behind); i++)
        if (behind[i] > at)
            return behind[i];
    return at;
}

/* ---- rounded ---- */

static const char *const hedges[] = {
    "~",
    "≈",
    "about ",
    "around ",
    "roughly ",
    "approximately ",
    "nearly ",
    "almost ",
    "over ",
    "约",
    "近",
    "約",
    "more than ",
    "less than ",
    "under ",
    "approx. ",
    "some ",
    "etwa ",
    "rund ",
    "ca. ",
    "circa ",
    "fast ",
    "knapp ",
    "über ",
    "gut ",
    "environ ",
    "près de ",
    "presque ",
    "quelque ",
    "plus de ",
    "unos ",
    "unas ",
    "casi ",
    "cerca de ",
    "alrededor de ",
    "aproximadamente ",
    "más de ",
    "circa ",
    "quasi ",
    "più di ",
    "quase ",
    "mais de ",
    "ongeveer ",
    "bijna ",
    "ruim ",
    "meer dan ",
    "około ",
    "prawie ",
    "ponad ",
    "blisko ",
    "около ",
    "примерно ",
    "почти ",
    "более ",
    "свыше ",
    "大约",
    "大約",
    "将近",
    "超过",
    "およそ",
    "ほぼ",
    "약 ",
    "대략 ",
    "거의 ",
};

static bool is_hedged(const char *begin, const char *at)
{
    static const char *const currencies[] = { "$", "€", "£", "¥", "₩", "US$", "R$", "EUR ", "USD ", "€ " };
    for (size_t i = 0; i < countof(currencies); i++)
        if (is_behind(begin, at, currencies[i])) {
            at -= strlen(currencies[i]);
            break;
        }
    for (size_t i = 0; i < countof(hedges); i++)
        if (is_behind(begin, at, hedges[i]))
            return true;
    return false;
}

double prose_looseness(const char *begin, const char *at, const char *end)
{
    double unit = 1;
    if (!is_hedged(begin, at))
        return unit;
    for (const char *c = end; c > at && (c[-1] == '0' || !digit(c[-1])); c--)
        unit *= c[-1] == '0' ? 10 : 1;
    return unit;
}

/* ---- set by custom ---- */

static bool is_near(const char *begin, const struct number *n, const char *const *cues, size_t cue_n)
{
    const char *from = n->at - begin > CUE_BYTES ? n->at - CUE_BYTES : begin;
    const size_t left = strnlen(n->end, CUE_BYTES);
    autofree char *around = xstrndup(from, (size_t)(n->end - from) + left);
    for (size_t i = 0; i < cue_n; i++)
        if (strcasestr(around, cues[i]))
            return true;
    return false;
}

static bool is_one_of(double v, const double *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v == all[i])
            return true;
    return false;
}

static bool is_bound(const char *begin, const char *at)
{
    static const char *const words[] = { "<",          "< ",           "≤",      "≤ ",
                                         "below ",     "less than ",   "under ", "smaller than ",
                                         "unter ",     "kleiner als ", "à ",     "inferior a ",
                                         "menor que ", "меньше ",      "小于",   "小於",
                                         "未満 " };
    for (size_t i = 0; i < countof(words); i++)
        if (is_behind(begin, at, words[i]))
            return true;
    return false;
}

/* p < 0.001 beside 2.3e-10, or beside a p that was printed as 0.0000. */
static bool is_shown_below(const struct evidence *e, double bound)
{
    return evidence_between(e, 1e-300, bound) || strstr(str_peek(&e->words), "0.000");
}

bool prose_convention(const struct evidence *e, const char *begin, const struct number *n)
{
    static const double bounds[] = { 0.1, 0.05, 0.01, 0.001, 0.0001 }, shares[] = { 90, 95, 99, 1, 5, 10 };
    static const char *const tests[] = { "p-", "p <",   "p<",     "p ≤",  "p value", "signif", "alpha",
                                         "α",  "level", "niveau", "水平", "显著",    "有意",   "знач" };
    static const char *const levels[] = { "confiden", "konfidenz", "vertrauen", " ci",    " ki",
                                          "interval", "signif",    "level",     "niveau", "置信",
                                          "信頼",     "신뢰",      "довер",     "alpha",  "α" };
    const double v = n->n ? n->values[n->n - 1] : 0; /* the reading with a point */
    if (n->percent)
        return is_one_of(v, shares, countof(shares)) && is_near(begin, n, levels, countof(levels));
    if (!is_one_of(v, bounds, countof(bounds)) || !is_near(begin, n, tests, countof(tests)))
        return false;
    return !is_bound(begin, n->at) || is_shown_below(e, v);
}

const char *prose_sentence_end(const char *at)
{
    while (*at && *at != '\n' && strncmp(at, "。", 3) != 0 &&
           !(strchr(".!?;", *at) && (!at[1] || isspace((unsigned char)at[1]))))
        at++;
    return at;
}
