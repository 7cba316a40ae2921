/* claims_list.c - sentences against the lists that outputs show: "the highest is Thursday" where another is, "17.68 on Friday" where that
 * is Thursday's. Each number is well shown, and the sentence is wrong. A list is lines of one label and one number. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>
#include "claims_private.h"

enum { ROWS_MAX = 64, LABEL_MIN = 2, STEM_MIN = 3, TELLING_DIGITS = 3 };

/* ---- lists in outputs ---- */

struct row {
    const char *label, *label_end, *number, *end;
    double value;
};

struct rows {
    struct row at[ROWS_MAX];
    size_t n;
    bool cut; /* rows are left out */
};

static bool is_number_token(const char *at, const char *end)
{
    char *behind = NULL;
    const double v = strtod(at, &behind);
    return behind == end && end > at && isfinite(v);
}

static const char *token_begin(const char *begin, const char *end)
{
    while (end > begin && !isspace((unsigned char)end[-1]))
        end--;
    return end;
}

static const char *trim_end(const char *begin, const char *end)
{
    while (end > begin && isspace((unsigned char)end[-1]))
        end--;
    return end;
}

/* "Sat     20.44": one number, at the end. More of them make a table, whose columns are not told apart here. */
static bool read_row(struct row *r, const char *line, const char *end)
{
    end = trim_end(line, end);
    while (line < end && isspace((unsigned char)*line))
        line++;
    const char *number = token_begin(line, end), *label_end = trim_end(line, number);
    const char *last = token_begin(line, label_end);
    if (label_end == line || !is_number_token(number, end) || (last > line && is_number_token(last, label_end)))
        return false;
    *r = (struct row){ line, label_end, number, end, strtod(number, NULL) };
    return true;
}

static bool is_gap(const char *line, const char *end)
{
    end = trim_end(line, end);
    while (line < end && (*line == ' ' || *line == '.' || strncmp(line, "…", 3) == 0))
        line += strncmp(line, "…", 3) == 0 ? 3 : 1;
    return line == end;
}

/* The next list; returns what is behind it. */
static const char *read_rows(struct rows *out, const char *at)
{
    *out = (struct rows){ .n = 0 };
    while (*at) {
        const char *end = at + strcspn(at, "\n"), *next = end + (*end == '\n');
        if (out->n < ROWS_MAX && read_row(&out->at[out->n], at, end))
            out->n++;
        else if (out->n && end > at && is_gap(at, end))
            out->cut = true;
        else if (out->n)
            return next;
        at = next;
    }
    return at;
}

static const struct row *extreme_of(const struct rows *rows, int sign)
{
    const struct row *found = &rows->at[0];
    for (size_t i = 1; i < rows->n; i++)
        if (sign * rows->at[i].value > sign * found->value)
            found = &rows->at[i];
    return found;
}

/* ---- sentences ---- */

struct sentence {
    const char *text; /* folded */
    int sign;         /* of what it speaks: 1 the highest, -1 the lowest */
};

static bool has_one_of(const char *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (const char *at = strstr(text, words[i]); at; at = strstr(at + 1, words[i]))
            if (at == text || (unsigned char)words[i][0] >= 0x80 || !isalpha((unsigned char)at[-1]))
                return true;
    return false;
}

/* 0: none, both, or one that is not the first of its order. */
static int direction(const char *text)
{
    static const char *const most[] = {
        "highest", "largest",  "biggest", "greatest", "maximum",    "most ", "höchste", "grösst", "meisten",
        "maximal", "le plus ", "la plus", "más alt",  "más grande", "máxim", "più alt", "massim", "mais alt",
        "hoogste", "grootste", "najwyżs", "наибольш", "максимал",   "最高",  "最大",    "最多",   "最も高",
    };
    static const char *const least[] = {
        "lowest",    "smallest", "fewest",   "minimum", "least ", "niedrigste", "kleinste", "wenigsten",
        "geringste", "minimal",  "moins ",   "más baj", "mínim",  "più bass",   "minim",    "mais baix",
        "laagste",   "najniżs",  "наименьш", "минимал", "最低",   "最小",       "最少",
    };
    static const char *const others[] = {
        "second",   "third",   "fourth", "2nd",    "3rd",     "next",  "follow", "runner", "at most",
        "at least", "most of", "than",   "except", "without", "not ",  "n't",    "loss",   "drop",
        "declin",   "decreas", "fall",   "fell",   "negativ", "zweit", "dritt",  "gefolg", "deuxi",
        "segund",   "第二",    "其次",   "第三",   "下降",    "跌",
    };
    const bool up = has_one_of(text, most, countof(most)), down = has_one_of(text, least, countof(least));
    return up == down || has_one_of(text, others, countof(others)) ? 0 : up ? 1 : -1;
}

/* "class 1", "first class" */
static bool names_number(const char *sentence, const char *label)
{
    static const char *const ordinals[] = { "zeroth", "first",   "second", "third", "fourth", "fifth",
                                            "sixth",  "seventh", "eighth", "ninth", "tenth" };
    char *end = NULL;
    const long wanted = strtol(label, &end, 10);
    if (*end || wanted < 0)
        return false;
    if ((size_t)wanted < countof(ordinals) && strstr(sentence, ordinals[wanted]))
        return true;
    for (const char *at = sentence; *at;) {
        struct number n = { 0 };
        struct run run;
        if (!isdigit((unsigned char)*at)) {
            at++;
            continue;
        }
        if (number_read(&n, &run, at) && n.whole && n.values[0] == (double)wanted)
            return true;
        at = n.end > at ? n.end : at + 1;
    }
    return false;
}

static bool names_label(const char *sentence, const struct row *r)
{
    autofree char *label = xstrndup(r->label, (size_t)(r->label_end - r->label)), *folded = utf8_fold(label);
    const size_t n = strlen(folded);
    if (is_number_token(folded, folded + n))
        return names_number(sentence, folded);
    for (const char *at = n >= LABEL_MIN ? strstr(sentence, folded) : NULL; at; at = strstr(at + 1, folded))
        if ((at == sentence || !isalnum((unsigned char)at[-1])) && (n >= STEM_MIN || !isalnum((unsigned char)at[n])))
            return true; /* "Fri" in "Friday", too */
    return false;
}

static bool is_of_row(const struct number *n, const struct row *r)
{
    for (size_t i = 0; i < n->n; i++)
        if (fabs(n->values[i] - fabs(r->value)) <= n->units[i] / 2 + 1e-9 * fabs(r->value))
            return true;
    return false;
}

/* A number of so many digits that it stands there by no chance. */
static bool is_telling(const struct number *n)
{
    size_t digits = 0;
    for (const char *c = n->at; c < n->end; c++)
        digits += isdigit((unsigned char)*c) != 0;
    return digits >= TELLING_DIGITS;
}

static bool names_value(const char *sentence, const struct row *r, bool telling)
{
    for (const char *at = sentence; *at;) {
        struct number n = { 0 };
        struct run run;
        if (!isdigit((unsigned char)*at)) {
            at++;
            continue;
        }
        n.at = at;
        if (number_read(&n, &run, at) && is_of_row(&n, r) && (!telling || is_telling(&n)))
            return true;
        at = n.end > at ? n.end : at + 1;
    }
    return false;
}

static bool names(const char *sentence, const struct row *r)
{
    return names_label(sentence, r) || names_value(sentence, r, false);
}

/* ---- the two together ---- */

/* What the list has in place of what the sentence says. */
struct verdict {
    bool agrees;
    const struct row *instead; /* NULL: it has nothing against it */
};

static struct verdict judge_extreme(const struct sentence *s, const struct rows *rows)
{
    const struct row *extreme = extreme_of(rows, s->sign);
    bool named = false;
    for (size_t i = 0; i < rows->n; i++) {
        const bool is = names(s->text, &rows->at[i]);
        if (is && rows->at[i].value == extreme->value)
            return (struct verdict){ .agrees = true };
        named = named || is;
    }
    return (struct verdict){ .instead = named ? extreme : NULL };
}

/* One label, and one number, which is another's. */
static struct verdict judge_pair(const struct sentence *s, const struct rows *rows)
{
    const struct row *labelled = NULL, *valued = NULL;
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *r = &rows->at[i];
        const bool label = names_label(s->text, r), value = names_value(s->text, r, true);
        if ((label && value) || (label && labelled) || (value && valued))
            return (struct verdict){ .agrees = label && value };
        labelled = label ? r : labelled;
        valued = value ? r : valued;
    }
    return (struct verdict){ .instead = labelled && valued ? labelled : NULL };
}

/* Its rows are only counted: 0, 1, 2. */
static bool is_counted(const struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        if (strtod(rows->at[i].label, NULL) != (double)i || !isdigit((unsigned char)rows->at[i].label[0]))
            return false;
    return true;
}

/* One list that agrees is enough: there may be others of the same labels. */
static char *contradiction(const struct sentence *s, const char *outputs)
{
    char *number = NULL;
    for (const char *at = outputs; *at;) {
        struct rows rows;
        at = read_rows(&rows, at);
        if (rows.n < 2 || rows.n == ROWS_MAX || (rows.cut && s->sign) || is_counted(&rows))
            continue;
        const struct verdict v = s->sign ? judge_extreme(s, &rows) : judge_pair(s, &rows);
        if (v.agrees) {
            free(number);
            return NULL;
        }
        if (v.instead && !number)
            number = xstrndup(v.instead->number, (size_t)(v.instead->end - v.instead->number));
    }
    return number;
}

char *claims_misread(const char *markdown, const char *outputs)
{
    autofree char *plain = number_plain(markdown), *folded = utf8_fold(plain);
    for (const char *at = folded; *at;) {
        const char *end = prose_sentence_end(at);
        autofree char *text = xstrndup(at, (size_t)(end - at));
        const struct sentence s = { text, direction(text) };
        char *number = contradiction(&s, outputs);
        if (number)
            return number;
        at = end + (*end != '\0');
    }
    return NULL;
}
