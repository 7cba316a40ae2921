/* claims_derive.c - numbers that nobody printed, and that are right all the same: what follows from others by one step of arithmetic.
 *
 * Kept small on purpose: among many numbers some pair makes any other. Only what a sentence calls a sum, a difference, a ratio or a share,
 * and only from the nearest known numbers of its own paragraph. */
#include <ctype.h>
#include <math.h>
#include <strings.h>
#include "claims_private.h"

enum { OPERANDS_MAX = 6, SENTENCE_MAX = 400 };

/* ---- what the sentence speaks of ---- */

static bool ends_sentence(const char *at)
{
    return *at == '\n' || (strchr(".!?;", *at) && (at[1] == ' ' || at[1] == '\n' || !at[1])) ||
           strncmp(at, "。", 3) == 0 || strncmp(at, "；", 3) == 0;
}

static bool says_arithmetic(const char *begin, const struct number *n)
{
    static const char *const cues[] = {
        "differ",     "more",     "fewer",      "less",     "higher",   "lower",   "larger",   "smaller",
        "greater",    "times",    "fold",       "ratio",    "total",    "sum ",    "together", "combined",
        "in all",     "overall",  "increase",   "decrease", "rise",     "rose",    "fell",     "fall",
        "drop",       "grew",     "grow",       "change",   "gain",     "loss",    "share",    "percent",
        "%",          "per cent", "out of",     "remain",   "the rest", "gap",     "margin",   "exceed",
        " vs",        " + ",      " - ",        " / ",      " = ",      "≈",       "×",        "÷",
        "half",       "double",   "proportion", "rate",     "range",    "spread",  "unter",    "differenz",
        "insgesamt",  "zusammen", "summe",      "anteil",   "mehr",     "weniger", "höher",    "niedriger",
        "différence", "ensemble", "somme",      "plus",     "moins",    "fois",    "part",     "diferencia",
        "suma",       "más",      "menos",      "veces",    "разниц",   "всего",   "сумм",     "больше",
        "меньше",     "доля",     "差",         "合计",     "合計",     "总",      "總",       "共",
        "倍",         "增",       "减",         "降",       "占",       "比",      "多",       "少",
        "％",         "합계",     "차이",
    };
    const char *from = n->at, *to = n->end;
    while (from > begin && n->at - from < SENTENCE_MAX && !ends_sentence(from - 1))
        from--;
    while (*to && to - n->end < SENTENCE_MAX && !ends_sentence(to))
        to++;
    for (const char *at = from; at < to; at++)
        for (size_t i = 0; i < countof(cues); i++)
            if (strncasecmp(at, cues[i], strlen(cues[i])) == 0)
                return true;
    return false;
}

/* ---- one step of arithmetic ---- */

struct value {
    double v, unit;
};

static struct value value_of(const struct said *s, size_t reading)
{
    return (struct value){ s->n.values[reading] * s->scale, s->n.units[reading] * s->scale };
}

static bool near(double got, double slack, const struct value *claim)
{
    return isfinite(got) && fabs(fabs(got) - claim->v) <= claim->unit / 2 + slack + 1e-9 * claim->v;
}

/* What rounding of the operands may have cost, as long as it does not blur the claim. */
static bool is_ratio(double a, double ua, double b, double ub, const struct value *claim)
{
    const double got = a / b, slack = fabs(got) * (ua / fabs(a) + ub / fabs(b)) / 2;
    const double kept = slack < 0.01 * claim->v ? slack : 0;
    return near(got, kept, claim) || near(100 * got, 100 * kept, claim);
}

static bool from_pair(struct value a, struct value b, const struct value *claim)
{
    const double slack = (a.unit + b.unit) / 2, spare = slack < 0.01 * claim->v ? slack : 0;
    if (near(a.v + b.v, spare, claim) || near(a.v - b.v, spare, claim))
        return true;
    if (a.v == 0 || b.v == 0)
        return false;
    return is_ratio(a.v, a.unit, b.v, b.unit, claim) || is_ratio(b.v, b.unit, a.v, a.unit, claim) ||
           is_ratio(a.v - b.v, 0, a.v, 0, claim) || is_ratio(b.v - a.v, 0, b.v, 0, claim);
}

/* The sum of a run of three and more. */
static bool from_run(const struct value *all, size_t n, const struct value *claim)
{
    for (size_t from = 0; from + 2 < n; from++) {
        double sum = all[from].v, slack = all[from].unit / 2;
        for (size_t k = from + 1; k < n; k++) {
            sum += all[k].v;
            slack += all[k].unit / 2;
            if (k > from + 1 && near(sum, slack < 0.01 * claim->v ? slack : 0, claim))
                return true;
        }
    }
    return false;
}

static size_t operands(struct value *out, const struct said *all, size_t n, size_t i)
{
    const size_t reach = OPERANDS_MAX + 2, from = i > reach ? i - reach : 0;
    size_t found = 0;
    for (size_t k = from; k < n && k <= i + reach && found < OPERANDS_MAX; k++)
        if (k != i && all[k].known && all[k].n.n && all[k].paragraph == all[i].paragraph)
            out[found++] = value_of(&all[k], 0);
    return found;
}

bool derived_from_said(const char *begin, const struct said *all, size_t n, size_t i)
{
    struct value near_by[OPERANDS_MAX];
    if (!says_arithmetic(begin, &all[i].n))
        return false;
    const size_t found = operands(near_by, all, n, i);
    for (size_t r = 0; r < all[i].n.n; r++) {
        const struct value claim = value_of(&all[i], r);
        if (from_run(near_by, found, &claim))
            return true;
        for (size_t a = 0; a < found; a++)
            for (size_t b = a + 1; b < found; b++)
                if (from_pair(near_by[a], near_by[b], &claim))
                    return true;
    }
    return false;
}

/* ---- other units ---- */

static bool begins_word(const char *at, const char *word)
{
    const size_t n = strlen(word);
    return strncasecmp(at, word, n) == 0 && !isalpha((unsigned char)at[n]);
}

/* A claim in `unit` is the evidence times one of the factors. */
static const struct {
    const char *units[5];
    double factors[5];
} changes[] = {
    { { "seconds", "second", "sec", "s", "秒" }, { 60, 3600, 1e-3, 86400, 1e-9 } },
    { { "minutes", "minute", "min", "mins", "分钟" }, { 1. / 60, 60, 1440, 1. / 60000, 0 } },
    { { "hours", "hour", "h", "hrs", "小时" }, { 1. / 3600, 1. / 60, 24, 0, 0 } },
    { { "days", "day", "d", "Tage", "天" }, { 1. / 86400, 1. / 1440, 1. / 24, 7, 1. / 86400e9 } },
    { { "weeks", "week", "Wochen", "semaines", "周" }, { 1. / 7, 0, 0, 0, 0 } },
    { { "years", "year", "Jahre", "ans", "年" }, { 1. / 12, 1. / 365.25, 1. / 365, 0, 0 } },
    { { "ms", "milliseconds", "毫秒", "", "" }, { 1000, 0, 0, 0, 0 } },
    { { "km", "kilometers", "kilometres", "千米", "公里" }, { 1e-3, 0, 0, 0, 0 } },
    { { "m", "meters", "metres", "米", "" }, { 1000, 0.01, 1e-3, 0, 0 } },
    { { "cm", "centimeters", "厘米", "", "" }, { 100, 0.1, 0, 0, 0 } },
    { { "kg", "kilograms", "公斤", "千克", "" }, { 1e-3, 1000, 0, 0, 0 } },
    { { "t", "tonnes", "tons", "吨", "" }, { 1e-3, 1e-6, 0, 0, 0 } },
    { { "g", "grams", "克", "", "" }, { 1000, 1e-3, 0, 0, 0 } },
    { { "KB", "KiB", "kilobytes", "", "" }, { 1e-3, 1. / 1024, 0, 0, 0 } },
    { { "MB", "MiB", "megabytes", "", "" }, { 1e-6, 1. / 1048576, 1e-3, 1. / 1024, 0 } },
    { { "basis points", "bps", "bp", "Basispunkte", "" }, { 1e4, 100, 0, 0, 0 } },
    { { "GB", "GiB", "gigabytes", "", "" }, { 1e-9, 1. / 1073741824, 1e-3, 1e-6, 0 } },
};

static const double *factors_of(const char *unit)
{
    unit += *unit == ' ' || *unit == '-';
    for (size_t i = 0; i < countof(changes); i++)
        for (size_t k = 0; k < countof(changes[i].units); k++)
            if (*changes[i].units[k] && begins_word(unit, changes[i].units[k]))
                return changes[i].factors;
    return NULL;
}

bool derived_as_rest(const struct evidence *e, const struct said *s)
{
    for (size_t r = 0; s->n.percent && r < s->n.n; r++) {
        const struct value v = value_of(s, r);
        if (v.v < 100 && (evidence_has(e, 100 - v.v, v.unit) || evidence_has(e, 1 - v.v / 100, v.unit / 100)))
            return true;
    }
    return false;
}

bool derived_by_unit(const struct evidence *e, const struct said *s)
{
    const double *factors = factors_of(s->n.end);
    for (size_t r = 0; r < s->n.n; r++) {
        const struct value v = value_of(s, r);
        for (size_t k = 0; factors && k < 5 && factors[k] > 0; k++)
            if (evidence_has(e, v.v / factors[k], v.unit / factors[k]))
                return true;
    }
    return false;
}
