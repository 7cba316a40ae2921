/* plan_groups.c - "by class and sex", "each month", "which day": what the rows are grouped by. */
#include "planner.h"

enum { BINS_FROM = 20 }; /* different numbers above which a group of each is no help */

static bool any_extreme(const struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (bi_is_extreme(p, i))
            return true;
    return false;
}

/* Numbers without end are cut into ranges, and that is said. */
static void add_column_group(struct bi_planner *p, const struct bi_column *c, bool bins)
{
    bi_add_group(p, c, BI_NONE);
    if (!p->plan->group_n || p->plan->groups[p->plan->group_n - 1].column != c)
        return;
    struct bi_group *g = &p->plan->groups[p->plan->group_n - 1];
    bool many =
        c->type == BI_TYPE_NUMBER && c->role != BI_ROLE_YEAR && c->role != BI_ROLE_ID && c->distinct > BINS_FROM;
    g->bins = (bins || many) && c->type == BI_TYPE_NUMBER;
    if (g->bins && !bins)
        bi_note(p, "auto_bins", "column", c->name);
    if (c->type == BI_TYPE_DATE)
        g->period = BI_DAY;
}

/* The column of dates or years that a period is taken of. */
static const struct bi_column *time_column(const struct bi_planner *p, enum bi_sense period)
{
    for (size_t i = 0; i < p->table->time_n; i++) {
        const struct bi_column *c = bi_table_named(p->table, p->table->time_columns[i]);
        if (c && (c->type == BI_TYPE_DATE || (c->role == BI_ROLE_YEAR && (period == BI_YEAR || period == BI_DECADE))))
            return c;
    }
    return NULL;
}

static enum bi_sense period_at(const struct bi_planner *p, size_t i)
{
    for (enum bi_sense s = BI_YEAR; s <= BI_WEEKDAY; s++)
        if (bi_open_at(p, i, s))
            return s;
    return BI_NONE;
}

static bool take_period(struct bi_planner *p, size_t i)
{
    enum bi_sense period = period_at(p, i);
    if (period == BI_NONE)
        return false;
    const struct bi_column *c = time_column(p, period);
    bool composed = !c && period == BI_QUARTER && p->table->time_expr; /* year and quarter columns */
    if (!c && !composed) {
        bi_trouble(p, "no_time", "", "");
        return false;
    }
    bool kept = composed || period == BI_DECADE || (c && c->type == BI_TYPE_DATE);
    bi_add_group(p, c, kept ? period : BI_NONE);
    bi_use(p, i);
    return true;
}

/* The column is what things are ranked by, not what they are grouped by: "top 5 passengers by fare". */
static bool is_key(struct bi_planner *p, size_t i)
{
    const struct bi_column *c = bi_column_at(p, i, BI_WANT_ANY);
    bool ranked =
        any_extreme(p) || bi_has(p, BI_SORT) || bi_has(p, BI_DESCENDING) || bi_has(p, BI_ASCENDING) || p->plan->limit;
    return c && ranked && bi_column_numeric(c) && !(bi_column_grouping(c) && c->distinct <= 12) && !bi_has(p, BI_WHICH);
}

static bool may_join_list(struct bi_planner *p, size_t i)
{
    const struct bi_column *c = bi_column_at(p, i, BI_WANT_GROUP);
    bool bins = bi_at(p, i + 1, BI_BINS);
    return c && (bins || bi_column_grouping(c) || c->type == BI_TYPE_DATE);
}

/* Columns from item i on, joined by commas or "and". Returns false when there is none. */
static bool take_list(struct bi_planner *p, size_t i)
{
    bool any = false;
    for (size_t last = SIZE_MAX; i < p->n;) {
        size_t at = i;
        while (bi_at(p, at, BI_OF) || bi_at(p, at, BI_ALL) || bi_at(p, at, BI_AND) || bi_open_at(p, at, BI_BY) ||
               bi_open_at(p, at, BI_EACH))
            at++;
        bool listed = last == SIZE_MAX || bi_listed(p, last, at);
        if (!listed || (last != SIZE_MAX && bi_is_column(p, at) && !may_join_list(p, at)))
            break;
        if (period_at(p, at) != BI_NONE && (last == SIZE_MAX || listed)) {
            if (!take_period(p, at))
                break;
        } else if (bi_is_column(p, at)) {
            if (last != SIZE_MAX && bi_at(p, at + 1, BI_OF) && p->plan->language == BI_EN)
                break;
            const struct bi_column *c = bi_take_column(p, at, BI_WANT_GROUP);
            if (!c)
                return true;
            bool bins = bi_open_at(p, at + 1, BI_BINS);
            add_column_group(p, c, bins);
            if (bins)
                bi_use(p, at + 1);
            at += bins;
        } else {
            break;
        }
        for (size_t k = i; k < at; k++)
            if (bi_at(p, k, BI_BY) || bi_at(p, k, BI_EACH) || bi_at(p, k, BI_AND))
                bi_use(p, k);
        any = true;
        last = at;
        i = at + 1;
    }
    return any;
}

static bool is_each_row(struct bi_planner *p, size_t i)
{
    const struct bi_column *c = bi_is_column(p, i) ? bi_column_at(p, i, BI_WANT_ANY) : NULL;
    if (!c)
        return false;
    const char *by = i ? p->r.tokens.at[p->it[i - 1]->from].text : "";
    bool each = bi_at(p, i - 1, BI_EACH) || strcmp(by, "per") == 0;
    bool thing = each && c->role != BI_ROLE_ID && bi_is_entity(p, i) && bi_column_numeric(c); /* "tip per bill" */
    return thing || (c->role == BI_ROLE_ID && p->table->rows > 0 && c->distinct >= p->table->rows);
}

/* "top 2 products per region" speaks of each region, "top 2 products by region" may not. */
static bool means_each(const struct bi_planner *p, size_t i)
{
    static const char *const words[] = { "per", "each", "every", "within" };
    for (size_t t = p->it[i]->from; t < p->it[i]->to; t++)
        for (size_t k = 0; k < countof(words); k++)
            if (!strcmp(p->r.tokens.at[t].text, words[k]))
                return true;
    return bi_at(p, i, BI_EACH) || bi_at(p, i + 1, BI_EACH);
}

static void take_by(struct bi_planner *p, size_t i)
{
    const size_t groups = p->plan->group_n;
    const bool each = means_each(p, i);
    size_t at = i + 1;
    while (bi_at(p, at, BI_OF) || bi_at(p, at, BI_ALL))
        at++;
    if (bi_is_stat(p, at) || bi_is_extreme(p, at) || (bi_is_column(p, at) && bi_at(p, i, BI_BY) && is_key(p, at))) {
        bi_use(p, i);
        return;
    }
    if (bi_kind_at(p, at, BI_ITEM_VALUE)) { /* "sales by Anna" */
        bi_use(p, i);
        return;
    }
    if (is_each_row(p, at)) { /* "average revenue per order" */
        const struct bi_column *c = bi_take_column(p, at, BI_WANT_ANY);
        bi_note(p, "row_is_one", "column", c->name);
        bi_use(p, i);
        return;
    }
    bool counted = bi_at(p, i, BI_DISTINCT) && (bi_at(p, i - 1, BI_HOW_MANY) || bi_at(p, i - 1, BI_COUNT));
    if (counted)
        return;
    if (take_list(p, at)) {
        if (each && p->plan->group_n == groups + 1)
            p->plan->each = p->plan->group_n;
        bi_use(p, i);
        return;
    }
    size_t before = bi_skip_back(p, i - 1);
    if (bi_is_column(p, before) && bi_at(p, i, BI_GROUPED)) {
        const struct bi_column *c = bi_take_column(p, before, BI_WANT_GROUP);
        if (c)
            add_column_group(p, c, false);
        bi_use(p, i);
    }
}

static void take_which(struct bi_planner *p, size_t i)
{
    size_t at = i + 1;
    while (bi_at(p, at, BI_OF) || bi_at(p, at, BI_ALL))
        at++;
    bool ranked =
        any_extreme(p) || bi_has(p, BI_ABOVE) || bi_has(p, BI_BELOW) || bi_has(p, BI_MAX) || bi_has(p, BI_MIN);
    if (!ranked || bi_is_entity(p, at))
        return;
    const struct bi_column *c = bi_is_column(p, at) ? bi_column_at(p, at, BI_WANT_GROUP) : NULL;
    bool groups = c && (bi_column_grouping(c) || bi_at(p, at + 1, BI_BINS) || c->role == BI_ROLE_YEAR);
    if ((groups || period_at(p, at) != BI_NONE) && take_list(p, at))
        bi_use(p, i);
}

static bool counted_period(const struct bi_planner *p, size_t i)
{
    size_t before = bi_skip_back(p, i - 1);
    return bi_at(p, before, BI_HOW_MANY) || bi_at(p, before, BI_COUNT) || bi_at(p, i + 1, BI_COUNT) ||
           bi_at(p, i + 1, BI_HOW_MANY);
}

/* daily, monthly ...: a period that stands alone. */
static void take_lone_periods(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (period_at(p, i) != BI_NONE && !counted_period(p, i) && !bi_has(p, BI_WHEN) && !bi_at(p, i, BI_TREND) &&
            !bi_at(p, i, BI_WHICH))
            (void)take_period(p, i);
}

void bi_plan_groups(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (bi_open_at(p, i, BI_BY) || bi_open_at(p, i, BI_EACH) || bi_open_at(p, i, BI_GROUPED))
            take_by(p, i);
    for (size_t i = 0; i < p->n; i++)
        if (bi_open_at(p, i, BI_WHICH))
            take_which(p, i);
    for (size_t i = 0; i + 1 < p->n; i++) /* "age group distribution" */
        if (bi_is_column(p, i) && bi_open_at(p, i + 1, BI_BINS) && !bi_is_stat(p, i + 1))
            (void)take_list(p, i);
    take_lone_periods(p);
    for (size_t i = 0; i < p->n; i++)
        if (bi_open_at(p, i, BI_GROUPED) && p->plan->group_n)
            bi_use(p, i);
}
