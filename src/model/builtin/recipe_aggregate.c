/* recipe_aggregate.c - everything that is measured: by groups, as shares, ranked; and plain lists of rows. */
#include <string.h>
#include "recipes.h"

/* ---- shares ---- */

static void drop_filter(struct bi_planner *p, size_t filter)
{
    for (size_t i = filter; i + 1 < p->plan->filter_n; i++)
        p->plan->filters[i] = p->plan->filters[i + 1];
    p->plan->filter_n--;
}

static void condition_from(struct bi_planner *p, size_t filter)
{
    struct bi_plan *plan = p->plan;
    if (plan->condition_n == BI_PLAN_FILTERS)
        return;
    plan->conditions[plan->condition_n] = plan->filters[filter];
    drop_filter(p, filter);
    bi_add_measure(p, BI_MEASURE_CONDITION, BI_MEAN, NULL);
    struct bi_measure *m = &plan->measures[plan->measure_n - 1];
    m->filter = plan->condition_n++;
    m->other = bi_counted_column(p);
    if (m->other)
        bi_note(p, "share_of_counts", "column", m->other->name);
}

static bool is_condition(const struct bi_filter *f)
{
    return f->type != BI_FILTER_PART && f->type != BI_FILTER_DATES && f->part == BI_NONE;
}

/* Of several conditions the one whose share is asked for: "women among survivors", "of women survived", "女性中存活". */
static size_t target_of(const struct bi_planner *p, size_t share)
{
    size_t among = SIZE_MAX, best = SIZE_MAX;
    for (size_t i = 0; i < p->n; i++)
        if (bi_at(p, i, BI_AMONG) && among == SIZE_MAX)
            among = i;
    bool zh = p->plan->language == BI_ZH, adjacent = zh || bi_at(p, share, BI_RATE); /* "death rate of men" */
    for (size_t k = 0; k < p->plan->filter_n && adjacent; k++)
        if (is_condition(&p->plan->filters[k]) && p->plan->filters[k].at == bi_skip_back(p, share - 1))
            return k;
    for (size_t k = 0; k < p->plan->filter_n; k++) {
        const struct bi_filter *f = &p->plan->filters[k];
        if (!is_condition(f))
            continue;
        bool target = among == SIZE_MAX || (zh ? f->at > among : f->at < among);
        bool later = best == SIZE_MAX || !target ? target : f->at > p->plan->filters[best].at;
        if (target && later)
            best = k;
    }
    return best;
}

static void share_by_value(struct bi_planner *p)
{
    bool summed = false;
    for (size_t k = 0; k < p->plan->measure_n; k++)
        if (p->plan->measures[k].type == BI_MEASURE_COLUMN && p->plan->measures[k].column) {
            p->plan->measures[k].stat = BI_SUM;
            summed = true;
        }
    if (!summed)
        bi_add_measure(p, BI_MEASURE_ROWS, BI_COUNT, NULL);
    p->plan->share_of_total = true;
}

static void use_share_words(struct bi_planner *p)
{
    (void)bi_take(p, BI_SHARE);
    (void)bi_take(p, BI_RATE);
    (void)bi_take(p, BI_SHARE_OF_TOTAL);
    (void)bi_take(p, BI_RATIO);
}

/* "tip percentage by smoker" may mean anything; "revenue share by region" and "percentage of revenue" mean the total. */
static bool is_bare_percentage(const struct bi_planner *p, size_t i)
{
    const struct bi_token *k = &p->r.tokens.at[p->it[i]->from];
    bool of = bi_at(p, i - 1, BI_OF) || bi_at(p, i + 1, BI_OF);
    return p->plan->language == BI_EN && !of && !bi_at(p, i, BI_SHARE_OF_TOTAL) && strcmp(k->stem, "share") != 0;
}

static void take_share(struct bi_planner *p)
{
    size_t i = bi_find(p, BI_SHARE);
    i = i == SIZE_MAX ? bi_find(p, BI_RATE) : i;
    i = i == SIZE_MAX ? bi_find(p, BI_SHARE_OF_TOTAL) : i;
    i = i == SIZE_MAX ? bi_find(p, BI_RATIO) : i;
    if (i == SIZE_MAX)
        return;
    for (size_t k = 0; k < p->plan->filter_n; k++)
        if (p->plan->filters[k].both && !bi_has_group(p, p->plan->filters[k].column)) { /* "ratio of men to women" */
            bi_add_group(p, p->plan->filters[k].column, BI_NONE);
            p->plan->within = p->plan->group_n == 2 ? 1 : 0;
            (void)bi_take(p, BI_TO);
            share_by_value(p);
            use_share_words(p);
            return;
        }
    bi_place_columns(p);
    size_t target = target_of(p, i);
    bool numeric = false;
    for (size_t k = 0; k < p->plan->measure_n; k++)
        numeric =
            numeric || (p->plan->measures[k].type == BI_MEASURE_COLUMN && p->plan->measures[k].stat != BI_DISTINCT);
    if (target != SIZE_MAX && !numeric) {
        p->plan->measure_n = 0;
        condition_from(p, target);
    } else if (bi_at(p, i, BI_RATE) && numeric && p->plan->measures[0].column) {
        bi_trouble(p, "rate_of_what", "column", p->plan->measures[0].column->name);
        p->plan->asks = true;
    } else if (p->plan->group_n && numeric && is_bare_percentage(p, i)) {
        bi_trouble(p, "rate_of_what", "column",
                   p->plan->measures[0].column ? p->plan->measures[0].column->name
                                               : "?"); /* "tip percentage by smoker" */
        p->plan->asks = true;
    } else if (p->plan->group_n) {
        /* "share of each sex in each class": within the last; "sex ratio by class", 各舱位的男女比例: within the first */
        p->plan->within = p->plan->language == BI_ZH || bi_has(p, BI_BY) ? 1 : p->plan->group_n;
        share_by_value(p);
    } else {
        bi_trouble(p, "share_of_what", "", "");
        p->plan->asks = true;
    }
    use_share_words(p);
}

/* ---- comparisons ---- */

static bool compares(const struct bi_planner *p)
{
    return bi_has(p, BI_COMPARE) || bi_has(p, BI_DIFFERENCE) || bi_has(p, BI_VERSUS);
}

static void all_means(struct bi_planner *p)
{
    for (size_t k = 0; k < p->table->column_n; k++) {
        const struct bi_column *c = &p->table->columns[k];
        if (c->role == BI_ROLE_MEASURE && bi_column_numeric(c) && !bi_has_group(p, c) &&
            p->plan->measure_n < BI_PLAN_MEASURES)
            bi_add_measure(p, BI_MEASURE_COLUMN, BI_MEAN, c);
    }
    if (p->plan->measure_n)
        bi_note(p, "compare_all", "", "");
    else
        bi_add_measure(p, BI_MEASURE_ROWS, BI_COUNT, NULL);
}

/* higher, more ... than: with two groups side by side a comparison, and no threshold. */
static void take_comparatives(struct bi_planner *p)
{
    if (!p->plan->group_n && !compares(p))
        return;
    (void)bi_take(p, BI_ABOVE);
    (void)bi_take(p, BI_BELOW);
    (void)bi_take(p, BI_THAN);
}

static void take_compare(struct bi_planner *p)
{
    bool by_word = compares(p);
    take_comparatives(p);
    if (!by_word)
        return;
    p->plan->difference = bi_has(p, BI_DIFFERENCE);
    (void)bi_take(p, BI_COMPARE);
    (void)bi_take(p, BI_DIFFERENCE);
    (void)bi_take(p, BI_VERSUS);
    (void)bi_take(p, BI_BETWEEN);
    bi_place_columns(p);
    bi_group_pairs(p);
    bool columns = !p->plan->group_n && p->plan->measure_n >= 2;
    if (columns && p->plan->measure_n == 2 && !bi_has(p, BI_COMPARE) && !bi_has(p, BI_DIFFERENCE)) { /* "x vs y" */
        bi_correlation_of_measures(p);
        return;
    }
    if (p->plan->group_n && !p->plan->measure_n)
        all_means(p);
    if (columns) { /* "compare AAPL and MSFT" */
        for (size_t k = 0; k < p->plan->measure_n; k++)
            if (p->plan->measures[k].column)
                bi_add_column(p, p->plan->measures[k].column);
        p->plan->measure_n = 0;
        p->plan->recipe = BI_DO_OVERVIEW;
        if (p->plan->chart == BI_NONE || p->plan->chart == BI_CHART)
            p->plan->chart = p->table->time_expr ? BI_LINE : BI_BOX;
    } else if (!p->plan->group_n) {
        bi_trouble(p, "compare_what", "", "");
        p->plan->asks = true;
    } else {
        for (size_t k = 0; k < p->plan->measure_n; k++)
            if (p->plan->measures[k].stat == BI_NONE && p->plan->measures[k].column) {
                p->plan->measures[k].stat = bi_column_flag(p->plan->measures[k].column) ? BI_RATE : BI_MEAN;
                bi_note(p, "compare_mean", "column", p->plan->measures[k].column->name);
            }
        if (p->plan->chart == BI_NONE)
            p->plan->chart = BI_CHART;
    }
}

/* ---- rankings ---- */

static void open_stats(struct bi_planner *p, const struct bi_column *c)
{
    if (bi_column_flag(c)) {
        bi_add_measure(p, BI_MEASURE_COLUMN, BI_RATE, c);
        return;
    }
    if (!bi_is_intensive(p, c))
        bi_add_measure(p, BI_MEASURE_COLUMN, BI_SUM, c);
    bi_add_measure(p, BI_MEASURE_COLUMN, BI_MEAN, c);
    bi_add_measure(p, BI_MEASURE_COLUMN, p->plan->order < 0 ? BI_MIN : BI_MAX, c);
    p->plan->stat_open = true;
}

/* One row for each of the group's values: nothing to aggregate, the rows themselves are ranked. */
static bool group_is_row(const struct bi_planner *p)
{
    if (p->plan->group_n != 1 || !p->plan->groups[0].column || p->plan->groups[0].period != BI_NONE)
        return false;
    const struct bi_column *c = p->plan->groups[0].column;
    return p->table->rows > 0 && c->distinct + c->nulls >= p->table->rows && c->nulls <= 1;
}

/* Grouped by the second of two time columns: quarters of years. */
static bool is_time_part(const struct bi_planner *p)
{
    const struct bi_column *c = p->plan->group_n == 1 ? p->plan->groups[0].column : NULL;
    for (size_t i = 1; c && i < p->table->time_n; i++)
        if (strcmp(c->name, p->table->time_columns[i]) == 0)
            return true;
    return false;
}

static void rank_groups(struct bi_planner *p)
{
    const struct bi_column *key = p->plan->column_n ? p->plan->columns[0] : NULL;
    if (key && group_is_row(p) && !p->plan->measure_n) {
        p->plan->group_n = 0;
        p->plan->order_column = key;
        p->plan->recipe = BI_DO_ROWS;
        return;
    }
    if (key && !p->plan->measure_n && p->plan->limit && is_time_part(p) &&
        !bi_has(p, BI_WHICH)) { /* "the 5 quarters with ..." */
        p->plan->group_n = 0;
        p->plan->order_column = key;
        p->plan->recipe = BI_DO_ROWS;
        return;
    }
    if (key && !p->plan->measure_n)
        open_stats(p, key);
    p->plan->column_n = 0;
}

static void rank_rows(struct bi_planner *p, bool wants_rows)
{
    const struct bi_column *key = p->plan->column_n ? p->plan->columns[0] : NULL;
    if (!key && p->plan->measure_n && p->plan->measures[0].column && p->plan->measures[0].stat == BI_NONE)
        key = p->plan->measures[0].column;
    if (p->plan->measure_n && p->plan->measures[0].stat != BI_NONE && !key) {
        bool extreme = p->plan->measures[0].stat == BI_MAX || p->plan->measures[0].stat == BI_MIN;
        if (!extreme) {
            bi_trouble(p, "rank_by_what", "", "");
            p->plan->asks = true;
        }
        p->plan->show_where = extreme;
        return;
    }
    if (!key)
        return;
    p->plan->measure_n = 0;
    if (wants_rows || p->plan->nth) {
        p->plan->order_column = key;
        if (bi_has(p, BI_WHO) && !p->plan->limit && !p->plan->nth)
            p->plan->limit = 5;
        p->plan->recipe = BI_DO_ROWS;
        return;
    }
    bi_add_measure(p, BI_MEASURE_COLUMN, p->plan->order < 0 ? BI_MIN : BI_MAX, key);
    p->plan->column_n = 0;
    p->plan->order = 0;
    p->plan->show_where = true;
}

/* "top 10 names": nothing says by what; rows are counted, or the counts that the rows hold. */
static void rank_by_count(struct bi_planner *p)
{
    const struct bi_column *counted = bi_counted_column(p);
    if (counted) {
        bi_add_measure(p, BI_MEASURE_COLUMN, BI_SUM, counted);
        bi_note(p, "common_by_sum", "column", counted->name);
    } else {
        bi_add_measure(p, BI_MEASURE_ROWS, BI_COUNT, NULL);
        bi_note(p, "common_by_rows", "", "");
    }
}

static void take_ranking(struct bi_planner *p, bool wants_rows)
{
    if (p->plan->order_column) { /* the latest */
        if (p->plan->measure_n && p->plan->measures[0].column)
            bi_add_column(p, p->plan->measures[0].column);
        p->plan->measure_n = 0;
        p->plan->recipe = BI_DO_ROWS;
    } else if (p->plan->group_n) {
        rank_groups(p);
        if (p->plan->recipe == BI_DO_NOTHING && !p->plan->measure_n)
            rank_by_count(p);
    } else {
        rank_rows(p, wants_rows);
    }
}

/* Sorting without "highest": sort by fare descending; 按销售额排名. */
static void take_sort(struct bi_planner *p)
{
    bool down = bi_take(p, BI_DESCENDING), up = bi_take(p, BI_ASCENDING), sort = bi_take(p, BI_SORT);
    if (!sort && !down && !up)
        return;
    if (down && up)
        bi_trouble(p, "two_orders", "", "");
    p->plan->order = down                                                                   ? 1
                     : up                                                                   ? -1
                     : p->plan->order                                                       ? p->plan->order
                     : p->plan->group_n || p->plan->measure_n || p->plan->language == BI_ZH ? 1
                                                                                            : -1;
    for (size_t i = 0; i < p->n; i++) {
        bool key = bi_is_column(p, i) && !p->plan->measure_n && !bi_is_entity(p, i);
        const struct bi_column *c = key ? bi_take_column(p, i, BI_WANT_NUMBER) : NULL;
        if (c)
            bi_add_column(p, c);
    }
}

/* ---- rows ---- */

static bool asks_for_rows(const struct bi_planner *p)
{
    bool who = bi_has(p, BI_WHO) || bi_has(p, BI_ROW) || bi_has(p, BI_PERSON) || bi_has(p, BI_SORT) ||
               bi_has(p, BI_ASCENDING) || bi_has(p, BI_DESCENDING) || p->plan->export_asked;
    for (size_t i = 0; i < p->n && !who; i++)
        who = bi_is_entity(p, i) && bi_has(p, BI_WHICH);
    return p->plan->limit || who;
}

/* zh: 销售额前5的城市: "first" ranks when a number stands before it. */
static void take_first_as_rank(struct bi_planner *p)
{
    for (size_t i = 1; i < p->n; i++) {
        bool first = bi_open_at(p, i, BI_FIRST), last = bi_open_at(p, i, BI_LAST);
        if (p->plan->language != BI_ZH || (!first && !last) || p->plan->order)
            continue;
        size_t before = bi_skip_back(p, i - 1);
        const struct bi_column *c = bi_is_column(p, before) ? bi_column_at(p, before, BI_WANT_NUMBER) : NULL;
        bool ranked = (c && bi_column_numeric(c)) || p->plan->measure_n;
        if (!ranked)
            continue;
        if (c && bi_column_numeric(c)) {
            (void)bi_take_column(p, before, BI_WANT_NUMBER);
            bi_add_column(p, c);
        }
        p->plan->order = first ? 1 : -1;
        bi_use(p, i);
    }
}

static void plain_rows(struct bi_planner *p)
{
    bool first = bi_take(p, BI_FIRST), last = bi_take(p, BI_LAST);
    if (!first && !last)
        return;
    p->plan->last = last;
    if (!p->plan->limit)
        p->plan->limit = first || last ? 1 : 5;
    p->plan->recipe = BI_DO_ROWS;
}

/* ---- the rest ---- */

static void default_stats(struct bi_planner *p)
{
    size_t n = p->plan->measure_n;
    for (size_t k = 0; k < n; k++) {
        struct bi_measure *m = &p->plan->measures[k];
        if (m->stat != BI_NONE || !m->column)
            continue;
        if (bi_column_flag(m->column)) {
            m->stat = BI_RATE;
            continue;
        }
        const struct bi_column *c = m->column;
        m->stat = bi_is_intensive(p, c) ? BI_MEAN : BI_SUM;
        bi_add_measure(p, BI_MEASURE_COLUMN, bi_is_intensive(p, c) ? BI_MEDIAN : BI_MEAN, c);
        p->plan->stat_open = true;
    }
}

static void one_column(struct bi_planner *p)
{
    const struct bi_column *c = p->plan->measures[0].column;
    bi_add_column(p, c);
    p->plan->measure_n = 0;
    p->plan->recipe = BI_DO_DISTRIBUTION;
    bool numeric = bi_column_numeric(c) && c->distinct > 12;
    if (p->plan->chart == BI_LINE || p->plan->chart == BI_SCATTER || (numeric && p->plan->chart == BI_PIE))
        bi_trouble(p, "chart_unfit", "", "");
    if (p->plan->chart == BI_CHART)
        p->plan->chart = bi_column_numeric(c) && c->distinct > 12 ? BI_HISTOGRAM : BI_BAR;
}

/* "gdp in 2005": the values of those times, not their distribution. */
static bool filters_time(const struct bi_planner *p)
{
    for (size_t i = 0; i < p->plan->filter_n && p->table->time_n; i++)
        if (strcmp(p->plan->filters[i].column->name, p->table->time_columns[0]) == 0)
            return true;
    return false;
}

static void default_recipe(struct bi_planner *p)
{
    bool lone = p->plan->measure_n == 1 && p->plan->measures[0].stat == BI_NONE && p->plan->measures[0].column &&
                !p->plan->group_n;
    if (p->plan->measure_n == 0 && p->plan->group_n)
        bi_add_measure(p, BI_MEASURE_ROWS, BI_COUNT, NULL); /* "by day": how many of each */
    if (lone && !p->plan->order && filters_time(p)) {
        bi_trend_of_measures(p);
        return;
    }
    bool flag = lone && bi_column_flag(p->plan->measures[0].column);
    if (lone && !flag && !p->plan->order && !p->plan->filter_n) {
        one_column(p);
    } else if (p->plan->measure_n) {
        default_stats(p);
        p->plan->recipe = BI_DO_AGGREGATE;
    } else if (p->plan->filter_n || p->plan->column_n || (p->plan->export_asked && !p->plan->trouble) ||
               p->plan->limit) {
        if (p->plan->column_n && p->plan->order)
            p->plan->order_column = p->plan->columns[0];
        p->plan->recipe = BI_DO_ROWS;
    }
}

/* Whatever columns are named make the table's sides, unless they can be averaged. */
static void take_crosstab(struct bi_planner *p)
{
    p->plan->crosstab = true;
    for (size_t i = 0; i < p->n; i++) {
        const struct bi_column *c = bi_is_column(p, i) ? bi_column_at(p, i, BI_WANT_GROUP) : NULL;
        if (!c || !bi_column_grouping(c))
            continue;
        (void)bi_take_column(p, i, BI_WANT_GROUP);
        bi_add_group(p, c, BI_NONE);
    }
}

void bi_recipe_aggregate(struct bi_planner *p)
{
    bool rows = asks_for_rows(p);
    if (bi_take(p, BI_CROSSTAB))
        take_crosstab(p);
    take_share(p);
    bi_group_pairs(p);
    take_compare(p);
    if (p->plan->recipe != BI_DO_NOTHING)
        return;
    take_first_as_rank(p);
    take_sort(p);
    bi_place_columns(p);
    bi_group_pairs(p);
    bi_complete_measures(p);
    if (p->plan->order && p->plan->recipe == BI_DO_NOTHING)
        take_ranking(p, rows);
    if (p->plan->recipe == BI_DO_NOTHING && !p->plan->measure_n)
        plain_rows(p);
    if (p->plan->recipe == BI_DO_NOTHING)
        default_recipe(p);
    bool asked = bi_has(p, BI_SORT) || bi_has(p, BI_ASCENDING) || bi_has(p, BI_DESCENDING) || p->plan->export_asked;
    if (p->plan->recipe == BI_DO_ROWS && p->plan->order && !p->plan->limit && !asked && !p->plan->nth)
        p->plan->limit = 5;
    if (p->plan->recipe == BI_DO_ROWS && p->plan->column_n && p->plan->columns[0] == p->plan->order_column)
        p->plan->column_n = 0;
}
