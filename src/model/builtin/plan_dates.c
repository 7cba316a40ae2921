/* plan_dates.c - days and months with their year, in words: "since March 2022", "between 5 March 2022 and 10 April 2022", "from
 * January to March 2023". They become one range of days; a month without any year is another pass's. */
#include "planner.h"
#include <math.h>
#include <string.h>

enum { DAY_SIZE = 11 };

struct day_range {
    size_t from, to;      /* items [from, to) */
    int year, month, day; /* year 0: not said; day 0: the whole month */
};

static const struct bi_column *date_column(const struct bi_planner *p)
{
    for (size_t i = 0; i < p->table->time_n; i++) {
        const struct bi_column *c = bi_table_named(p->table, p->table->time_columns[i]);
        if (c && c->type == BI_TYPE_DATE)
            return c;
    }
    return NULL;
}

/* From 1; 0: item i names none. "May" and "March" as other words are no matter here: a year has to stand beside them. */
static int month_at(const struct bi_planner *p, size_t i)
{
    if (!bi_open(p, i) || p->it[i]->named < 0 || p->it[i]->kind == BI_ITEM_NUMBER)
        return 0;
    const struct bi_named_value *v = bi_lexicon_value(p->x, p->it[i]->named);
    return strcmp(bi_lexicon_concept(p->x, v->topic)->name, "month") == 0 ? v->order + 1 : 0;
}

static int whole_at(const struct bi_planner *p, size_t i, int low, int high)
{
    if (!bi_open(p, i) || p->it[i]->kind != BI_ITEM_NUMBER)
        return 0;
    const double n = p->it[i]->number;
    const bool plain = p->it[i]->suffix == BI_SUFFIX_NONE || p->it[i]->suffix == BI_SUFFIX_ORDINAL;
    return plain && n == floor(n) && n >= low && n <= high ? (int)n : 0;
}

static int days_of(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

/* "top 5 March 2022": the number counts something else. */
static bool counts(const struct bi_planner *p, size_t i)
{
    static const enum bi_sense all[] = { BI_FIRST,    BI_LAST,    BI_ABOVE, BI_BELOW,
                                         BI_AT_LEAST, BI_AT_MOST, BI_EQUAL, BI_SAMPLE };
    const size_t before = i ? i - 1 : SIZE_MAX;
    for (size_t k = 0; k < countof(all); k++)
        if (bi_at(p, before, all[k]))
            return true;
    return bi_is_extreme(p, before);
}

/* "March 2022", "5 March 2022", "March 5, 2022", "5th of March 2022", "March": false when item i begins none. */
static bool read_day(struct day_range *d, const struct bi_planner *p, size_t i)
{
    size_t at = i;
    *d = (struct day_range){ .from = i, .day = counts(p, i) ? 0 : whole_at(p, i, 1, 31) };
    if (d->day)
        at = bi_at(p, i + 1, BI_OF) ? i + 2 : i + 1;
    d->month = month_at(p, at);
    if (!d->month)
        return false;
    at++;
    if (!d->day && whole_at(p, at, 1, 31)) {
        d->day = whole_at(p, at, 1, 31);
        at++;
    }
    d->year = whole_at(p, at, 1500, 2200);
    d->to = at + (d->year > 0);
    return !d->day || d->day <= days_of(d->year ? d->year : 2000, d->month);
}

static void write_day(char out[DAY_SIZE], const struct day_range *d, bool last)
{
    const int day = d->day ? d->day : last ? days_of(d->year, d->month) : 1;
    autofree char *text = xasprintf("%04d-%02d-%02d", d->year, d->month, day);
    (void)strncpy(out, text, DAY_SIZE - 1);
}

static void use_all(struct bi_planner *p, size_t from, size_t to)
{
    for (size_t i = from; i < to && i < p->n; i++)
        bi_use(p, i);
}

static bool is_taken(const struct bi_planner *p)
{
    for (size_t k = 0; k < p->plan->filter_n; k++)
        if (p->plan->filters[k].type == BI_FILTER_DATES)
            return true;
    return false;
}

static void add_range(struct bi_planner *p, const struct bi_column *c, const struct day_range *from,
                      const struct day_range *to)
{
    if (is_taken(p))
        bi_trouble(p, "two_years", "", "");
    struct bi_filter *f = bi_add_filter(p, BI_FILTER_DATES, c);
    if (from)
        write_day(f->from, from, false);
    if (to)
        write_day(f->to, to, true);
    if (from && to && strcmp(f->from, f->to) > 0)
        bi_trouble(p, "empty_range", "", "");
}

/* "between A and B", "from A to B", "A to B": true when it was one. A year may be said once for both. */
static bool take_between(struct bi_planner *p, const struct bi_column *c, size_t i)
{
    struct day_range a, b;
    const bool between = bi_open_at(p, i, BI_BETWEEN), from = bi_open_at(p, i, BI_FROM);
    const size_t first = between || from ? i + 1 : i;
    if (!read_day(&a, p, first))
        return false;
    const bool joined =
        bi_open_at(p, a.to, BI_TO) || bi_open_at(p, a.to, BI_UNTIL) || (between && bi_open_at(p, a.to, BI_AND));
    if (!joined || !read_day(&b, p, a.to + 1) || !b.year)
        return false;
    a.year = a.year ? a.year : b.year;
    add_range(p, c, &a, &b);
    use_all(p, i, b.to);
    return true;
}

/* "since March 2022", "before 5 March 2022", "until June 2023" */
static bool take_open(struct bi_planner *p, const struct bi_column *c, size_t i)
{
    struct day_range d;
    const bool since = bi_open_at(p, i, BI_SINCE), after = bi_open_at(p, i, BI_AFTER),
               before = bi_open_at(p, i, BI_BEFORE), until = bi_open_at(p, i, BI_UNTIL); /* "from" may mean "of" */
    if ((!since && !after && !before && !until) || !read_day(&d, p, i + 1) || !d.year)
        return false;
    add_range(p, c, since || after ? &d : NULL, before || until ? &d : NULL);
    struct bi_filter *f = &p->plan->filters[p->plan->filter_n - 1];
    if (after) { /* behind the last day of it */
        write_day(f->from, &d, true);
        f->low_open = true;
    } else if (before) {
        write_day(f->to, &d, false);
        f->high_open = true;
    }
    use_all(p, i, d.to);
    return true;
}

/* "on 5 March 2022"; a month by itself is left to the passes for years and months. */
static bool take_one(struct bi_planner *p, const struct bi_column *c, size_t i)
{
    struct day_range d;
    if (!read_day(&d, p, i) || !d.year || !d.day)
        return false;
    add_range(p, c, &d, &d);
    use_all(p, i, d.to);
    return true;
}

void bi_plan_dates(struct bi_planner *p)
{
    const struct bi_column *c = date_column(p);
    for (size_t i = 0; c && i < p->n; i++)
        (void)(take_between(p, c, i) || take_open(p, c, i) || take_one(p, c, i));
}
