/* claims_measure.c - the mean fare given as the mean salary: the number is well shown, and it is of something else. Seen by the names
 * alone: no column that was used is called by a word of the question. */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "claims_private.h"

enum { PART_MIN = 3, STEM_MIN = 4 };

static bool is_word_byte(char c)
{
    return isalpha((unsigned char)c) != 0;
}

/* A measure of one column. Other languages name their columns in English too often to compare the words. */
static bool asks_for_measure(const char *question)
{
    static const char *const words[] = { "mean",     "average",  "median",   "sum",        "total",
                                         "highest",  "lowest",   "maximum",  "minimum",    "largest",
                                         "biggest",  "smallest", "max",      "min",        "std",
                                         "standard", "typical",  "variance", "percentile", "quantile" };
    for (size_t i = 0; i < countof(words); i++)
        for (const char *at = strcasestr(question, words[i]); at; at = strcasestr(at + 1, words[i]))
            if ((at == question || !is_word_byte(at[-1])) && !is_word_byte(at[strlen(words[i])]))
                return true;
    return false;
}

/* Names that say nothing of what they hold. */
static bool is_vague(const char *column)
{
    static const char *const names[] = { "value",  "amount",   "number",  "count", "total", "result",
                                         "figure", "quantity", "measure", "y",     "x" };
    for (size_t i = 0; i < countof(names); i++)
        if (strncasecmp(column, names[i], strlen(names[i])) == 0)
            return true;
    for (const char *c = column; *c; c++)
        if ((unsigned char)*c >= 0x80)
            return true;
    return strlen(column) < PART_MIN;
}

static size_t common(const char *a, size_t an, const char *b, size_t bn)
{
    size_t n = 0;
    while (n < an && n < bn && tolower((unsigned char)a[n]) == tolower((unsigned char)b[n]))
        n++;
    return n;
}

/* "unemp" and "unemployment", "category" and "categories", "gdp" in "realgdp" */
static bool are_kin(const char *word, size_t wn, const char *part, size_t pn)
{
    const size_t least = wn < pn ? wn : pn, same = common(word, wn, part, pn);
    if (wn < PART_MIN || pn < PART_MIN)
        return false;
    if (same == least || (same >= STEM_MIN && same + 3 >= least))
        return true;
    for (size_t i = 0; i + wn <= pn; i++)
        if (strncasecmp(part + i, word, wn) == 0)
            return true;
    return false;
}

static bool is_named_in(const char *question, const char *part, size_t pn)
{
    for (const char *at = question; *at;) {
        size_t n = 0;
        while (is_word_byte(at[n]))
            n++;
        if (n && are_kin(at, n, part, pn))
            return true;
        at += n ? n : 1;
    }
    return false;
}

/* Any part of the name: "tip_rate", "Total Bill", "unitPrice" */
static bool is_named_after(const char *question, const char *column)
{
    for (const char *at = column; *at;) {
        size_t n = is_word_byte(*at) ? 1 : 0;
        while (n && is_word_byte(at[n]) && !(isupper((unsigned char)at[n]) && islower((unsigned char)at[n - 1])))
            n++;
        if (n && is_named_in(question, at, n))
            return true;
        at += n ? n : 1;
    }
    return false;
}

bool claims_of_other(const char *question, const char *const *columns, size_t n)
{
    for (const char *c = question; *c; c++)
        if ((unsigned char)*c >= 0x80)
            return false;
    if (!n || !asks_for_measure(question))
        return false;
    for (size_t i = 0; i < n; i++)
        if (is_vague(columns[i]) || is_named_after(question, columns[i]))
            return false;
    return true;
}
