/* plan_place.c - a place in an order ("second highest", "the third of each region") and "or" between two conditions: read
 * only where there is one way to read them. */
#include "planner.h"
#include <math.h>

enum { PLACE_MAX = 1000 };

/* ---- second highest, 3rd oldest, 第二高 ---- */

/* The place that item i names, when an extreme follows or is part of it; 0: none. */
static int64_t place_at(const struct bi_planner *p, size_t i)
{
    const struct bi_item *it = p->it[i];
    const bool word = bi_open_at(p, i, BI_NTH);
    const bool digits = bi_open(p, i) && it->kind == BI_ITEM_NUMBER && it->suffix == BI_SUFFIX_ORDINAL &&
                        it->number >= 2 && it->number <= PLACE_MAX && it->number == floor(it->number);
    if (!word && !digits)
        return 0;
    const bool latest = bi_at(p, i + 1, BI_LATEST) || bi_at(p, i + 1, BI_EARLIEST);
    if (!(word && bi_is_extreme(p, i)) && (!bi_is_extreme(p, i + 1) || latest))
        return 0;
    return word ? it->ordinal : (int64_t)it->number;
}

/* "highest and second highest": one of them would be lost. */
static bool has_two_extremes(const struct bi_planner *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += bi_is_extreme(p, i);
    return n > 1;
}

void bi_take_nth(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const int64_t place = place_at(p, i);
        if (!place)
            continue;
        if (p->plan->nth || has_two_extremes(p))
            bi_trouble(p, "two_places", "", "");
        p->plan->nth = place;
        if (!bi_is_extreme(p, i))
            bi_use(p, i);
    }
}

/* ---- the first rows, or the row at a place, of each group ---- */

static bool asks_for_groups(const struct bi_planner *p)
{
    return bi_has(p, BI_WHICH) || bi_has(p, BI_COMMON) || bi_has(p, BI_RARE);
}

/* "top 3 salaries per city": rows, ranked by the column that was left without a statistic. */
static bool rank_rows_within(struct bi_planner *p)
{
    struct bi_plan *plan = p->plan;
    const struct bi_column *key = plan->stat_open && plan->measure_n ? plan->measures[0].column : NULL;
    const struct bi_column *group = plan->group_n == 1 ? plan->groups[0].column : NULL;
    const bool ranked = plan->order && (plan->limit || plan->nth);
    if (plan->recipe != BI_DO_AGGREGATE || !plan->each || !ranked || !key || !group || plan->groups[0].bins ||
        plan->groups[0].period != BI_NONE || asks_for_groups(p) || !bi_column_numeric(key) || plan->share_of_total)
        return false;
    plan->recipe = BI_DO_ROWS;
    plan->order_column = key;
    plan->top_within = 1;
    plan->measure_n = 0;
    plan->stat_open = false;
    if (plan->chart == BI_CHART)
        bi_trouble(p, "chart_unfit", "", "");
    return true;
}

/* The second of the groups, or the second in each of them? */
static bool is_ambiguous(const struct bi_planner *p)
{
    return p->plan->recipe == BI_DO_AGGREGATE && !bi_has(p, BI_WHICH) && (bi_has(p, BI_BY) || bi_has(p, BI_EACH));
}

void bi_finish_nth(struct bi_planner *p)
{
    struct bi_plan *plan = p->plan;
    const bool within = rank_rows_within(p);
    if (!plan->nth || plan->trouble)
        return;
    const bool rows = plan->recipe == BI_DO_ROWS && plan->order_column && plan->order && (within || !plan->group_n);
    const bool groups = plan->recipe == BI_DO_AGGREGATE && plan->group_n == 1 && plan->order && !plan->share_of_total;
    if (is_ambiguous(p)) {
        bi_trouble(p, "place_of_what", "", "");
        plan->asks = true;
    } else if ((!rows && !groups) || plan->limit) {
        bi_trouble(p, "no_place_here", "", "");
    }
}

/* ---- "or" between conditions on two columns ---- */

static size_t only_or(const struct bi_planner *p)
{
    size_t found = SIZE_MAX, n = 0;
    for (size_t i = 0; i < p->n; i++)
        if (bi_at(p, i, BI_OR)) {
            n++;
            found = bi_open(p, i) ? i : found;
        }
    return n == 1 ? found : SIZE_MAX;
}

static bool may_be_either(const struct bi_filter *f)
{
    return f->placed && !f->negated && !f->both && (f->type == BI_FILTER_VALUES || f->type == BI_FILTER_RANGE) &&
           f->part == BI_NONE;
}

/* With two conditions and one "or" between them there is one meaning; with more, or with "not", there are several. */
void bi_finish_any(struct bi_planner *p)
{
    struct bi_plan *plan = p->plan;
    const size_t word = only_or(p);
    if (word == SIZE_MAX || plan->filter_n != 2 || plan->condition_n || plan->trouble)
        return;
    const struct bi_filter *a = &plan->filters[0], *b = &plan->filters[1];
    const bool between = (a->at < word && word < b->at) || (b->at < word && word < a->at);
    const bool apart = a->column != b->column || (a->type == BI_FILTER_RANGE && b->type == BI_FILTER_RANGE);
    if (!between || !apart || !may_be_either(a) || !may_be_either(b) || bi_has(p, BI_NOT) || bi_has(p, BI_EXCEPT) ||
        bi_has(p, BI_VERSUS) || bi_has(p, BI_COMPARE))
        return;
    for (size_t i = 0; i < p->n; i++) /* "women or smokers and older than 60": an "and" beside it may join anything */
        if (bi_at(p, i, BI_AND) && i > (a->at < b->at ? a->at : b->at))
            return;
    bi_use(p, word);
    plan->any_filter = true;
}
