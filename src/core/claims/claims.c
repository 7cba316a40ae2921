/* claims.c - numbers in prose and in outputs.
 *
 * Trust boundary: both sides were written by models and programs. The worst that a strange text can do is to be marked, or not. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>
#include "claims_private.h"
#include "str.h"

enum {
    SMALL_MAX = 12, /* months, items of a list: counted by eye */
    JOINED_MAX = 4096,
    SAID_MAX = 400,      /* numbers of one answer that are looked at */
    WORDS_MAX = 8 << 20, /* of the evidence, by ear: more is not kept */
};

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

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

void claims_add(struct claims *c, const char *at, size_t n)
{
    for (size_t i = 0; i < c->n; i++)
        if (strlen(c->at[i]) == n && memcmp(c->at[i], at, n) == 0)
            return;
    if (c->n < CLAIMS_MAX)
        c->at[c->n++] = xstrndup(at, n);
}

void claims_add_all(struct claims *c, const struct claims *more)
{
    for (size_t i = 0; i < more->n; i++)
        claims_add(c, more->at[i], strlen(more->at[i]));
}

/* ---- evidence ---- */

void evidence_clear(struct evidence *e)
{
    free(e->at);
    free(e->days);
    str_clear(&e->words);
    str_clear(&e->programs);
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

static void add_values(struct evidence *e, const struct number *n, double scale)
{
    for (size_t i = 0; i < n->n; i++)
        add_value(e, n->values[i] * scale);
}

/* A column of a table may stand beside the next with a comma between: each group, and each pair around a point, alone. */
static void add_groups(struct evidence *e, const struct run *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct number one = { 0 };
        number_group(&one, r, i, false);
        if (i + 1 < r->n && r->seps[i] == '.')
            number_group(&one, r, i, true);
        add_values(e, &one, 1);
    }
}

/* With the magnitude and the percent sign that may stand behind it. */
static void add_read(struct evidence *e, const char *begin, const char *at, const struct number *n)
{
    double scale = 1;
    const char *end = number_magnitude(n->end, &scale);
    add_values(e, n, 1);
    if (scale > 1)
        add_values(e, n, scale);
    if (n->n && number_percent(begin, at, &end))
        add_values(e, n, scale / 100);
}

/* As a claim that begins at this digit would be read. */
static void add_from(struct evidence *e, const char *begin, const char *at)
{
    struct number n;
    struct run r;
    (void)number_read(&n, &r, at);
    add_read(e, begin, at, &n);
    if (number_spaced(&n, begin, at))
        add_read(e, begin, at, &n);
}

static const char *add_spelled(struct evidence *e, const char *begin, const char *at)
{
    struct number n;
    double scale = 1;
    const char *end = spelled_read(begin, at, &n, &scale);
    if (end > at)
        add_values(e, &n, scale);
    return end;
}

static void add_numbers(struct evidence *e, const char *begin)
{
    for (const char *text = begin; *text;) {
        struct run r;
        const char *behind = prose_skip_key(begin, text);
        if (behind == text && !digit(*text))
            behind = add_spelled(e, begin, text);
        if (behind > text || !digit(*text)) {
            text = behind > text ? behind : text + 1;
            continue;
        }
        number_run(&r, text);
        add_groups(e, &r);
        for (size_t i = 0; i < r.n; i++)
            add_from(e, begin, r.groups[i].at);
        text = r.end;
    }
}

static void add_words(struct str *to, const char *text)
{
    autofree char *folded = utf8_fold(text);
    if (!to->max)
        *to = (struct str)STR_INIT(WORDS_MAX);
    str_puts(to, folded);
    str_putc(to, '\n');
}

void evidence_add_numbers(struct evidence *e, const char *text)
{
    autofree char *plain = number_plain(text);
    add_numbers(e, plain);
}

void evidence_add(struct evidence *e, const char *text)
{
    autofree char *plain = number_plain(text);
    add_numbers(e, plain);
    days_collect(e, plain);
    add_words(&e->words, text);
}

void evidence_add_program(struct evidence *e, const char *code)
{
    autofree char *told = program_parameters(code);
    evidence_add_numbers(e, told);
    days_count(e, told);
    add_words(&e->programs, told);
}

void evidence_add_output(struct evidence *e, const char *code, const char *output)
{
    autofree char *results = program_results(code, output);
    evidence_add(e, results);
}

void evidence_add_names(struct evidence *e, const char *code)
{
    add_words(&e->programs, code);
}

void evidence_remove(struct evidence *e, const char *text)
{
    AUTO(evidence_clear) struct evidence gone = { 0 };
    evidence_add_numbers(&gone, text);
    size_t kept = 0;
    for (size_t i = 0; i < e->n; i++) {
        bool is_gone = false;
        for (size_t k = 0; k < gone.n && !is_gone; k++)
            is_gone = gone.at[k] == e->at[i];
        if (!is_gone)
            e->at[kept++] = e->at[i];
    }
    e->n = kept;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void evidence_sort(struct evidence *e)
{
    if (!e->sorted && e->n)
        qsort(e->at, e->n, sizeof(*e->at), by_value);
    e->sorted = true;
}

bool evidence_between(const struct evidence *e, double low, double high)
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

bool evidence_has(const struct evidence *e, double v, double unit)
{
    const double slack = 1e-13 * (v > 1 ? v : 1); /* what reading and scaling cost */
    return evidence_between(e, v - unit / 2 - slack, v + unit * (1 - 1e-6) + slack);
}

/* ---- claims ---- */

static bool is_supported(const struct evidence *e, const struct number *n, double scale, double loose)
{
    for (size_t i = 0; i < n->n; i++) {
        const double unit = n->units[i] >= 1 ? n->units[i] * loose : n->units[i];
        const double v = n->values[i] * scale, u = unit * scale;
        if (!isfinite(v) || evidence_has(e, v, u) || (n->percent && evidence_has(e, v / 100, u / 100)))
            return true;
    }
    return false;
}

static bool is_small(const struct number *n)
{
    return n->whole && n->units[0] >= 1 && (n->values[0] <= SMALL_MAX || n->values[0] == 100);
}

/* "30,40" may be two numbers as well: then each must be supported. Two small ones are rather one with a point. */
static bool is_supported_list(const struct evidence *e, const struct run *r)
{
    bool small = true;
    for (size_t i = 0; i < r->n; i++) {
        struct number one = { 0 };
        number_group(&one, r, i, false);
        if ((i + 1 < r->n && r->seps[i] != ',') || !one.n ||
            (one.values[0] > SMALL_MAX && !is_supported(e, &one, 1, 1)))
            return false;
        small = small && one.values[0] <= SMALL_MAX;
    }
    return r->n > 1 && (!small || r->n > 2);
}

/* What an answer says, in its order. */
struct list {
    const struct evidence *e;
    const char *begin;
    struct said *at;
    size_t n, paragraph;
};

static void list_add(struct list *l, const struct said *s)
{
    if (l->n == SAID_MAX)
        return;
    l->at[l->n] = *s;
    l->at[l->n++].paragraph = l->paragraph;
}

/* Small, or shown. */
static bool is_fine(const struct evidence *e, const char *at)
{
    struct number n;
    struct run r;
    return number_read(&n, &r, at) && (is_small(&n) || is_supported(e, &n, 1, 1));
}

/* "1 234" is one number where that is shown, or where its parts are not. */
static void read_spaced(const struct list *l, struct number *n)
{
    struct number spaced;
    if (!number_spaced(&spaced, l->begin, n->at))
        return;
    const double loose = prose_looseness(l->begin, spaced.at, spaced.end);
    const char *second = strchr(n->at, ' ') + 1;
    if (is_supported(l->e, &spaced, 1, loose) || !is_fine(l->e, n->at) || !is_fine(l->e, second))
        *n = spaced;
}

/* Reads one number of the prose; returns what is behind it. */
static const char *read_said(struct list *l, const char *at)
{
    struct said s = { .scale = 1 };
    struct run r;
    if (!number_read(&s.n, &r, at))
        return s.n.end;
    read_spaced(l, &s.n);
    const char *digits_end = s.n.end;
    s.loose = prose_looseness(l->begin, at, digits_end);
    const char *end = number_magnitude(digits_end, &s.scale);
    s.n.percent = number_percent(l->begin, at, &end);
    const bool plain = s.scale == 1 && (!s.n.percent || s.n.values[0] == 100 || end == digits_end);
    s.counted = !(plain && is_small(&s.n)) && digits_end - at <= CLAIMS_DIGITS_MAX;
    s.n.end = end;
    s.known = is_supported(l->e, &s.n, s.scale, s.loose) ||
              (r.end == digits_end && !s.n.percent && is_supported_list(l->e, &r)) ||
              prose_convention(l->e, l->begin, &s.n);
    list_add(l, &s);
    return end;
}

static const char *read_spelled(struct list *l, const char *at)
{
    struct said s = { .scale = 1, .loose = 1, .counted = true };
    const char *end = spelled_read(l->begin, at, &s.n, &s.scale);
    if (end == at)
        return at;
    s.counted = s.scale > 1 || s.n.percent || !is_small(&s.n);
    s.known = is_supported(l->e, &s.n, s.scale, 1);
    s.n.end = end;
    list_add(l, &s);
    return end;
}

/* A date is judged as a day. */
static const char *skip_shown_day(const struct list *l, const char *at)
{
    struct calendar_date d;
    return calendar_date(&d, l->begin, at) && days_have(l->e, &d) ? d.end : at;
}

static const char *read_next(struct list *l, const char *at)
{
    const char *behind = prose_skip(l->begin, at);
    if (behind == at)
        behind = skip_shown_day(l, at);
    if (behind > at)
        return behind;
    if (digit(*at))
        return read_said(l, at);
    l->paragraph += at[0] == '\n' && at[1] == '\n';
    behind = read_spelled(l, at);
    return behind > at ? behind : at + 1;
}

/* What nothing shows: either what follows from others, or what does not. */
static void find(struct claims *out, const char *markdown, struct evidence *e, bool derived)
{
    autofree char *plain = number_plain(markdown);
    autofree struct said *all = xcalloc(SAID_MAX, sizeof(*all));
    struct list l = { .e = e, .begin = plain, .at = all };
    evidence_sort(e);
    for (const char *at = plain; *at;)
        at = read_next(&l, at);
    for (size_t i = 0; i < l.n; i++) {
        if (!all[i].counted || all[i].known || derived_by_unit(e, &all[i]))
            continue;
        if ((derived_as_rest(e, &all[i]) || derived_from_said(plain, all, l.n, i)) == derived)
            claims_add(out, all[i].n.at, (size_t)(all[i].n.end - all[i].n.at));
    }
}

void claims_numbers(struct claims *out, const char *markdown, struct evidence *e)
{
    find(out, markdown, e, false);
}

void claims_derived(struct claims *out, const char *markdown, struct evidence *e)
{
    find(out, markdown, e, true);
}
