/* claims_count.c - "how many" asks for a whole number. A mean, a share or a name in its place answers another question, and is well shown by
 * an output: no other check sees it. */
#include <ctype.h>
#include <math.h>
#include <strings.h>
#include "claims_private.h"

/* ---- the question ---- */

static const char *const count_words[] = {
    "how many ",
    "wie viele ",
    "wieviele ",
    "combien de ",
    "combien d'",
    "cu\xc3\xa1ntos ",
    "cu\xc3\xa1ntas ",
    "cuantos ",
    "cuantas ",
    "多少人",
    "多少个",
    "多少名",
    "多少行",
    "多少条",
    "多少家",
    "多少种",
    "几个",
    "几种",
    "quanti ",
    "quante ",
    "quantos ",
    "quantas ",
    "いくつ",
    "何人",
    "何件",
    "何行",
    "何個",
    "몇 명",
    "몇 개",
    "몇 행",
    "몇 건",
};

/* Of these there may be parts, or the question is about a ratio or a difference. */
static bool is_measured(const char *behind)
{
    static const char *const units[] = {
        "percent", "per cent", "percentage", "times", "hours",     "minutes",   "seconds",     "days",     "weeks",
        "months",  "years",    "points",     "kilo",  "km",        "miles",     "met",         "tons",     "tonnes",
        "lit",     "gallon",   "dollars",    "euros", "pounds",    "million",   "billion",     "thousand", "degrees",
        "grams",   "kg",       "square",     "inch",  "feet",      "cent",      "prozent",     "tage",     "stunden",
        "minuten", "jahre",    "mal ",       "euro",  "jours",     "heures",    "ann\xc3\xa9", "ore ",     "anni",
        "giorni",  "anos",     "horas",      "dias",  "per cento", "por cento",
    };
    for (size_t i = 0; i < countof(units); i++)
        if (strncasecmp(behind, units[i], strlen(units[i])) == 0)
            return true;
    return false;
}

static bool is_about_parts(const char *question)
{
    static const char *const words[] = { "average", "mean",    "median", " per ",    "by how many",
                                         "ratio",   "typical", "expect", "estimate", "durchschnitt",
                                         "mittel",  " pro ",   "moyen",  "promedi",  "medi",
                                         "平均",    "每",      "média",  "평균" };
    for (size_t i = 0; i < countof(words); i++)
        if (strcasestr(question, words[i]))
            return true;
    return false;
}

static bool asks_for_count(const char *question)
{
    for (size_t i = 0; i < countof(count_words); i++) {
        const char *at = strcasestr(question, count_words[i]);
        if (at)
            return !is_measured(at + strlen(count_words[i])) && !is_about_parts(question);
    }
    return false;
}

/* ---- the answer ---- */

struct counted {
    const struct evidence *e;      /* NULL: numbers are not looked up */
    const char *part, *part_end;   /* the first number that is not whole */
    const char *whole, *whole_end; /* the first that may be a count */
    bool shown;                    /* one of those is in the evidence */
};

static bool is_whole(const struct number *n)
{
    for (size_t i = 0; i < n->n; i++)
        if (n->values[i] == floor(n->values[i]))
            return true;
    return false;
}

static void add_whole(struct counted *c, const struct number *n, double scale, const char *at, const char *end)
{
    if (!c->whole) {
        c->whole = at;
        c->whole_end = end;
    }
    for (size_t i = 0; c->e && i < n->n && !c->shown; i++)
        c->shown = evidence_has(c->e, n->values[i] * scale, n->units[i] * scale);
}

static const char *read_digits(struct counted *c, const char *begin, const char *at)
{
    struct number n = { 0 };
    struct run r;
    double scale = 1;
    if (!number_read(&n, &r, at))
        return n.end;
    const char *end = number_magnitude(n.end, &scale);
    const char *number_end = n.end;
    if (number_percent(begin, at, &end))
        return end;
    if (scale > 1 || is_whole(&n)) {
        add_whole(c, &n, scale, at, number_end);
    } else if (!c->part) {
        c->part = at;
        c->part_end = number_end;
    }
    return end;
}

static void read_answer(struct counted *c, const char *text)
{
    for (const char *at = text; *at;) {
        struct number n = { 0 };
        double scale = 1;
        if (isdigit((unsigned char)*at)) {
            at = read_digits(c, text, at);
            continue;
        }
        const char *end = spelled_read(text, at, &n, &scale);
        if (end > at && !n.percent)
            add_whole(c, &n, scale, at, end);
        at = end > at ? end : at + 1;
    }
}

/* Words that are a count, or say that there is none to be had. */
static bool says_so_in_words(const char *text)
{
    static const char *const words[] = {
        "no ",    "none", "nobody",  "not ",   "n't",     "n\xe2\x80\x99t", "cannot",
        "never",  "zero", "nothing", "all ",   "every",   "each",           "both",
        "single", "only", "neither", "unable", "without", "unknown",        "missing"
    };
    for (size_t i = 0; i < countof(words); i++)
        if (strcasestr(text, words[i]))
            return true;
    return false;
}

static bool is_english(const char *question)
{
    return strcasestr(question, count_words[0]) != NULL;
}

bool claims_miscounted(const char *question, const char *markdown, char **part)
{
    struct counted c = { 0 };
    autofree char *plain = number_plain(markdown);
    *part = NULL;
    if (!asks_for_count(question))
        return false;
    read_answer(&c, plain);
    if (c.whole)
        return false;
    if (c.part)
        *part = xstrndup(c.part, (size_t)(c.part_end - c.part));
    return c.part || (is_english(question) && !says_so_in_words(plain));
}

void claims_uncounted(struct claims *out, const char *question, const char *markdown, struct evidence *e)
{
    struct counted c = { .e = e };
    autofree char *plain = number_plain(markdown);
    if (!asks_for_count(question))
        return;
    evidence_sort(e);
    read_answer(&c, plain);
    if (c.whole && !c.shown)
        claims_add(out, c.whole, (size_t)(c.whole_end - c.whole));
}
