/* recipe_special.c - recipes that have a word of their own. */
#include <string.h>
#include "recipes.h"

static void set(struct bi_planner *p, enum bi_recipe recipe)
{
    p->plan->recipe = recipe;
}

static void default_chart(struct bi_planner *p, enum bi_sense chart)
{
    if (p->plan->chart == BI_NONE || p->plan->chart == BI_CHART)
        p->plan->chart = chart;
}

/* All columns that are named: what the recipe is about. */
static void take_columns(struct bi_planner *p, enum bi_want want)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct bi_column *c = bi_is_column(p, i) ? bi_take_column(p, i, want) : NULL;
        if (c && p->it[i]->holder && bi_column_flag(c))
            bi_use_flag(p, i, c); /* "for smokers" */
        else if (c)
            bi_add_column(p, c);
    }
    for (size_t k = 0; k < p->plan->measure_n; k++) { /* "missing values per age": a statistic took it first */
        if (p->plan->measures[k].column)
            bi_add_column(p, p->plan->measures[k].column);
    }
    p->plan->measure_n = 0;
}

static void groups_are_columns(struct bi_planner *p)
{
    for (size_t i = 0; i < p->plan->group_n; i++)
        if (p->plan->groups[i].column)
            bi_add_column(p, p->plan->groups[i].column);
    p->plan->group_n = 0;
}

/* A statistic that the recipe would lose. */
static bool has_stat(const struct bi_planner *p)
{
    for (size_t i = 0; i < p->plan->measure_n; i++) {
        const struct bi_measure *m = &p->plan->measures[i];
        if (m->type != BI_MEASURE_ROWS && m->stat != BI_NONE && m->stat != BI_COUNT && m->stat != BI_DISTINCT)
            return true;
    }
    return false;
}

static void measures_are_columns(struct bi_planner *p)
{
    if (has_stat(p))
        bi_trouble(p, "no_stat_here", "", "");
    for (size_t i = 0; i < p->plan->measure_n; i++)
        if (p->plan->measures[i].column)
            bi_add_column(p, p->plan->measures[i].column);
    p->plan->measure_n = 0;
}

/* A filter or group that the recipe has no use for is no small thing: it is said. */
static void no_filters(struct bi_planner *p)
{
    if (p->plan->filter_n)
        bi_trouble(p, "no_filter_here", "", "");
}

/* ---- clean-up ---- */

static bool take_pair(struct bi_planner *p, enum bi_sense verb, enum bi_sense object)
{
    if (bi_find(p, verb) == SIZE_MAX || bi_find(p, object) == SIZE_MAX)
        return false;
    (void)bi_take(p, verb);
    (void)bi_take(p, object);
    return true;
}

static const struct {
    enum bi_sense word;
    enum bi_fill fill;
} fills[] = { { BI_MEAN, BI_FILL_MEAN },
              { BI_MEDIAN, BI_FILL_MEDIAN },
              { BI_MODE, BI_FILL_MODE },
              { BI_COMMON, BI_FILL_MODE },
              { BI_PREVIOUS, BI_FILL_PREVIOUS } };

static void take_fill(struct bi_planner *p)
{
    (void)bi_take(p, BI_FILL);
    (void)bi_take(p, BI_MISSING);
    for (size_t k = 0; k < countof(fills); k++) {
        bool measured = p->plan->measure_n && p->plan->measures[0].stat == fills[k].word;
        if (bi_take(p, fills[k].word) || measured || bi_has(p, fills[k].word))
            p->plan->fill = fills[k].fill;
    }
    for (size_t i = 0; i < p->n; i++)
        if (bi_open(p, i) && p->it[i]->kind == BI_ITEM_NUMBER) {
            p->plan->fill = BI_FILL_NUMBER;
            p->plan->fill_number = p->it[i]->number;
            bi_use(p, i);
        }
    for (size_t i = 0; i < p->plan->measure_n; i++) /* "with the median": the statistic says how */
        p->plan->measures[i].stat = BI_NONE;
    measures_are_columns(p);
    if (p->plan->fill == BI_FILL_NONE) {
        bi_trouble(p, "fill_with_what", "", "");
        p->plan->asks = true;
    }
    p->plan->order = 0;
    p->plan->group_n = 0;
    for (size_t i = 0; i < p->n; i++)
        p->it[i]->used = p->it[i]->used || bi_at(p, i, BI_BY) || bi_at(p, i, BI_AS) || bi_at(p, i, BI_TO);
}

static bool take_clean(struct bi_planner *p)
{
    bool any = bi_take(p, BI_DEDUPE);
    any = take_pair(p, BI_REMOVE, BI_DUPLICATES) || any;
    any = take_pair(p, BI_CLEAN, BI_DUPLICATES) || any;
    p->plan->dedupe = any;
    if (bi_find(p, BI_FILL) != SIZE_MAX) {
        take_fill(p);
        any = true;
    } else if (take_pair(p, BI_REMOVE, BI_MISSING)) {
        p->plan->drop_missing = any = true;
    }
    if (bi_take(p, BI_TO_NUMBER))
        p->plan->to_number = any = true;
    if (bi_take(p, BI_CLEAN) && !any) {
        p->plan->dedupe = any = true; /* what "clean" means is said in the answer */
        bi_note(p, "clean_means", "", "");
    }
    if (!any)
        return false;
    (void)bi_take(p, BI_ROW);
    (void)bi_take(p, BI_ALL);
    (void)bi_take(p, BI_AND);
    take_columns(p, BI_WANT_ANY);
    if (p->plan->dedupe && !p->plan->fill && !p->plan->drop_missing && !p->plan->to_number && p->plan->column_n)
        bi_note(p, "dedupe_by", "column", p->plan->columns[0]->name);
    no_filters(p);
    set(p, BI_DO_CLEAN);
    return true;
}

/* "as csv", "to Excel", "export": what becomes of the result. */
static void take_export(struct bi_planner *p)
{
    bool asked = bi_take(p, BI_EXPORT);
    for (size_t i = 0; i < p->n; i++) {
        bool csv = bi_open_at(p, i, BI_CSV), excel = bi_open_at(p, i, BI_EXCEL);
        if (!csv && !excel)
            continue;
        size_t words = p->it[i]->to - p->it[i]->from;
        bool target = asked || bi_at(p, i - 1, BI_AS) || bi_at(p, i - 1, BI_TO) || words > 1;
        if (target)
            p->plan->export_as = csv ? BI_CSV : BI_EXCEL;
        asked = asked || target;
        if (target && bi_at(p, i - 1, BI_TO))
            bi_use(p, i - 1);
        bi_use(p, i);
    }
    p->plan->export_asked = asked;
    if (asked && p->plan->export_as == BI_NONE)
        p->plan->export_as = BI_CSV;
}

/* ---- one function a recipe ---- */

static void missing(struct bi_planner *p, size_t i)
{
    bi_use(p, i);
    (void)bi_take(p, BI_MISSING);
    (void)bi_take(p, BI_SHARE);
    (void)bi_take(p, BI_RATE);
    (void)bi_take(p, BI_COLUMNS);
    (void)bi_take(p, BI_EACH);
    (void)bi_take(p, BI_MOST);
    (void)bi_take(p, BI_BY);
    groups_are_columns(p);
    for (size_t k = 0; k < p->n; k++) /* "students without a mark" */
        if (bi_is_column(p, k) && bi_is_entity(p, k))
            bi_use(p, k);
    take_columns(p, BI_WANT_ANY);
    for (size_t k = p->plan->filter_n; k-- > 0;) /* "without age" said twice */
        if (p->plan->filters[k].type == BI_FILTER_MISSING)
            p->plan->filter_n = k;
    no_filters(p);
    p->plan->order = 0;
    default_chart(p, BI_BAR);
    set(p, BI_DO_MISSING);
}

static void duplicates(struct bi_planner *p, size_t i)
{
    bi_use(p, i);
    (void)bi_take(p, BI_DUPLICATES);
    p->plan->measure_n = 0;
    take_columns(p, BI_WANT_ANY);
    no_filters(p);
    set(p, BI_DO_DUPLICATES);
}

static bool is_label(const struct bi_column *c)
{
    return c->type == BI_TYPE_TEXT && !bi_column_flag(c);
}

/* A relation with a column of labels has no coefficient: the other column is compared by its groups. */
static bool relate_by_group(struct bi_planner *p)
{
    const struct bi_column *a = p->plan->columns[0], *b = p->plan->columns[1];
    if ((!is_label(a) && !is_label(b)) || (is_label(a) && is_label(b)) || !bi_column_grouping(is_label(a) ? a : b))
        return false;
    const struct bi_column *group = is_label(a) ? a : b, *measure = is_label(a) ? b : a;
    p->plan->column_n = 0;
    bi_add_group(p, group, BI_NONE);
    bi_add_measure(p, BI_MEASURE_COLUMN, bi_column_flag(measure) ? BI_RATE : BI_MEAN, measure);
    bi_note(p, "relation_by_group", "column", group->name);
    default_chart(p, BI_BAR);
    set(p, BI_DO_AGGREGATE);
    return true;
}

static void correlation(struct bi_planner *p, size_t i)
{
    bi_use(p, i);
    (void)bi_take(p, BI_CORRELATION);
    (void)bi_take(p, BI_BETWEEN);
    (void)bi_take(p, BI_VERSUS);
    (void)bi_take(p, BI_NUMERIC);
    (void)bi_take(p, BI_TO);
    if (has_stat(p))
        bi_trouble(p, "no_stat_here", "", "");
    size_t groups = p->plan->group_n;
    groups_are_columns(p);
    take_columns(p, BI_WANT_NUMBER);
    if (groups && p->plan->column_n > 2)
        bi_trouble(p, "no_group_here", "", "");
    if (p->plan->column_n == 2 && relate_by_group(p))
        return;
    for (size_t k = 0; k < p->plan->column_n; k++) {
        const struct bi_column *c = p->plan->columns[k];
        if (is_label(c))
            bi_trouble(p, "not_numeric", "column", c->name);
    }
    default_chart(p, p->plan->column_n == 2 ? BI_SCATTER : BI_HEATMAP);
    set(p, BI_DO_CORRELATION);
}

void bi_correlation_of_measures(struct bi_planner *p)
{
    measures_are_columns(p);
    default_chart(p, BI_SCATTER);
    set(p, BI_DO_CORRELATION);
}

static bool time_is_unique(const struct bi_table *t)
{
    int64_t steps = 1;
    for (size_t i = 0; i < t->time_n; i++) {
        const struct bi_column *c = bi_table_named(t, t->time_columns[i]);
        steps *= c && c->distinct > 0 ? c->distinct : 1;
    }
    return t->rows > 0 && steps >= t->rows;
}

static void all_measures(struct bi_planner *p)
{
    size_t n = 0;
    for (size_t k = 0; k < p->table->column_n; k++)
        n += (size_t)(bi_column_numeric(&p->table->columns[k]) && p->table->columns[k].role == BI_ROLE_MEASURE);
    if (n == 0)
        bi_add_measure(p, BI_MEASURE_ROWS, BI_COUNT, NULL);
    if (n > 6) {
        bi_trouble(p, "trend_of_what", "", "");
        p->plan->asks = true;
    }
    for (size_t k = 0; k < p->table->column_n && n <= 6; k++)
        if (bi_column_numeric(&p->table->columns[k]) && p->table->columns[k].role == BI_ROLE_MEASURE)
            bi_add_measure(p, BI_MEASURE_COLUMN, BI_NONE, &p->table->columns[k]);
}

/* Several rows share a time: amounts add up, all else is averaged. Said in the answer. */
static void trend_stats(struct bi_planner *p)
{
    bool one_each = time_is_unique(p->table) && p->plan->time_period == BI_NONE && !p->plan->group_n;
    for (size_t k = 0; k < p->plan->measure_n; k++) {
        struct bi_measure *m = &p->plan->measures[k];
        if (m->type != BI_MEASURE_COLUMN || m->stat != BI_NONE)
            continue;
        if (one_each && !(p->plan->filter_n && p->plan->group_n))
            continue;
        m->stat = bi_column_flag(m->column) ? BI_RATE : bi_is_additive(p, m->column) ? BI_SUM : BI_MEAN;
        bi_note(p, m->stat == BI_SUM ? "trend_sum" : "trend_mean", "column", m->column->name);
    }
}

/* Groups that are times are the axis; the other one makes the lines. */
static void time_groups(struct bi_planner *p)
{
    size_t n = 0;
    for (size_t k = 0; k < p->plan->group_n; k++) {
        const struct bi_group *g = &p->plan->groups[k];
        bool time = !g->column || g->column->type == BI_TYPE_DATE;
        bool year = g->column && g->column->role == BI_ROLE_YEAR;
        if (g->period == BI_DECADE)
            p->plan->time_period = BI_DECADE;
        else if (time)
            p->plan->time_period = g->period;
        else if (year)
            p->plan->time_period = BI_YEAR;
        else
            p->plan->groups[n++] = *g;
    }
    p->plan->group_n = n;
}

void bi_recipe_trend(struct bi_planner *p, size_t i)
{
    if (i < p->n)
        bi_use(p, i);
    (void)bi_take(p, BI_TREND);
    (void)bi_take(p, BI_BY);
    (void)bi_take(p, BI_BETWEEN);
    (void)bi_take(p, BI_VERSUS);
    (void)bi_take(p, BI_COMPARE);
    if (!p->table->time_expr) {
        bi_trouble(p, "no_time", "", "");
        return;
    }
    for (size_t k = 0; k < p->n; k++) { /* "by year", "monthly" next to "trend" */
        const struct bi_column *c = bi_is_column(p, k) ? bi_column_at(p, k, BI_WANT_ANY) : NULL;
        if (c && (c->type == BI_TYPE_DATE || c->role == BI_ROLE_YEAR)) {
            (void)bi_take_column(p, k, BI_WANT_ANY);
            if (c->role == BI_ROLE_YEAR)
                p->plan->time_period = BI_YEAR;
        }
    }
    time_groups(p);
    bi_place_columns(p);
    if (!p->plan->measure_n)
        all_measures(p);
    if (p->plan->group_n > 1)
        bi_trouble(p, "too_many_groups", "", "");
    trend_stats(p);
    default_chart(p, BI_LINE);
    set(p, BI_DO_TREND);
}

void bi_trend_of_measures(struct bi_planner *p)
{
    trend_stats(p);
    if (p->plan->chart == BI_CHART)
        p->plan->chart = BI_LINE;
    set(p, BI_DO_TREND);
}

static void distribution(struct bi_planner *p, size_t i)
{
    if (i < p->n)
        bi_use(p, i);
    (void)bi_take(p, BI_DISTRIBUTION);
    measures_are_columns(p);
    take_columns(p, BI_WANT_NUMBER);
    if (!p->plan->column_n && p->plan->group_n == 1 && p->plan->groups[0].bins) { /* "age group distribution" */
        bi_add_measure(p, BI_MEASURE_ROWS, BI_COUNT, NULL);
        default_chart(p, BI_BAR);
        set(p, BI_DO_AGGREGATE);
        return;
    }
    if (!p->plan->column_n && p->plan->group_n) {
        bi_add_column(p, p->plan->groups[0].column);
        p->plan->group_n = 0;
    }
    if (!p->plan->column_n || !p->plan->columns[0]) {
        bi_trouble(p, "distribution_of_what", "", "");
        p->plan->asks = true;
        return;
    }
    bool numeric = bi_column_numeric(p->plan->columns[0]) && p->plan->columns[0]->distinct > 12;
    if (p->plan->column_n == 2 && !p->plan->group_n && bi_column_grouping(p->plan->columns[1])) {
        bi_add_group(p, p->plan->columns[1], BI_NONE);
        p->plan->column_n = 1;
    }
    default_chart(p, !numeric ? BI_BAR : p->plan->group_n ? BI_BOX : BI_HISTOGRAM);
    set(p, BI_DO_DISTRIBUTION);
}

static void overview(struct bi_planner *p, size_t i)
{
    bi_use(p, i);
    (void)bi_take(p, BI_OVERVIEW);
    (void)bi_take(p, BI_COLUMNS);
    (void)bi_take(p, BI_NUMERIC);
    measures_are_columns(p);
    take_columns(p, BI_WANT_ANY);
    set(p, BI_DO_OVERVIEW);
}

static void columns(struct bi_planner *p, size_t i)
{
    bi_use(p, i);
    (void)bi_take(p, BI_COLUMNS);
    (void)bi_take(p, BI_TYPES);
    p->plan->measure_n = 0;
    if (bi_take(p, BI_ROW) || bi_take(p, BI_SHAPE)) {
        set(p, BI_DO_SHAPE);
        return;
    }
    set(p, BI_DO_COLUMNS);
}

static void shape(struct bi_planner *p, size_t i)
{
    bi_use(p, i);
    (void)bi_take(p, BI_SHAPE);
    (void)bi_take(p, BI_ROW);
    (void)bi_take(p, BI_COLUMNS);
    p->plan->measure_n = 0;
    no_filters(p);
    set(p, BI_DO_SHAPE);
}

static void unique(struct bi_planner *p, size_t i)
{
    bi_use(p, i);
    (void)bi_take(p, BI_UNIQUE);
    (void)bi_take(p, BI_EACH);
    bool counted = p->plan->measure_n && p->plan->measures[0].stat == BI_DISTINCT;
    if (counted)
        return; /* how many: a number is enough */
    measures_are_columns(p);
    groups_are_columns(p);
    take_columns(p, BI_WANT_GROUP);
    if (!p->plan->column_n) {
        bi_trouble(p, "unique_of_what", "", "");
        p->plan->asks = true;
    }
    set(p, BI_DO_UNIQUE);
}

static void files(struct bi_planner *p, size_t i)
{
    bi_use(p, i);
    p->plan->measure_n = 0;
    no_filters(p);
    set(p, BI_DO_FILES);
}

static void join(struct bi_planner *p, size_t i)
{
    bi_use(p, i);
    (void)bi_take(p, BI_JOIN);
    if (p->table->left < 0) {
        bi_trouble(p, "join_needs_two", "", "");
        return;
    }
    const struct bi_table *t = p->table;
    bool only_key = !p->plan->measure_n && !p->plan->order && !p->plan->filter_n;
    for (size_t k = 0; k < p->n; k++) { /* "on customer_id" */
        const struct bi_column *c = bi_is_column(p, k) ? bi_column_at(p, k, BI_WANT_ANY) : NULL;
        if (c && t->left_key && (strcmp(c->name, t->left_key) == 0 || strcmp(c->name, t->right_key) == 0))
            (void)bi_take_column(p, k, BI_WANT_ANY);
        else if (c)
            only_key = false;
    }
    for (size_t k = 0; k < p->plan->group_n; k++)
        if (t->left_key && p->plan->groups[k].column && strcmp(p->plan->groups[k].column->name, t->left_key) == 0 &&
            only_key)
            p->plan->group_n = 0;
    (void)bi_take(p, BI_BY);
    (void)bi_take(p, BI_FILES);
    if (only_key && !p->plan->group_n)
        set(p, BI_DO_JOIN);
}

/* first 5 rows, sample, show the data */
static void sample(struct bi_planner *p, size_t i)
{
    bi_use(p, i);
    p->plan->last = bi_take(p, BI_LAST);
    (void)bi_take(p, BI_FIRST);
    (void)bi_take(p, BI_SAMPLE);
    (void)bi_take(p, BI_ROW);
    if (!p->plan->limit)
        p->plan->limit = 5;
    p->plan->measure_n = 0;
    set(p, BI_DO_ROWS);
}

static const struct {
    enum bi_sense word;
    void (*plan)(struct bi_planner *p, size_t i);
} recipes[] = {
    { BI_FILES, files },
    { BI_JOIN, join },
    { BI_MISSING, missing },
    { BI_DUPLICATES, duplicates },
    { BI_CORRELATION, correlation },
    { BI_RUNNING, bi_recipe_running },
    { BI_OVER_YEAR, bi_recipe_change },
    { BI_OVER_QUARTER, bi_recipe_change },
    { BI_OVER_MONTH, bi_recipe_change },
    { BI_OVER_PREVIOUS, bi_recipe_change },
    { BI_GROWTH, bi_recipe_growth },
    { BI_TREND, bi_recipe_trend },
    { BI_DISTRIBUTION, distribution },
    { BI_UNIQUE, unique },
    { BI_TYPES, columns },
    { BI_COLUMNS, columns },
    { BI_SHAPE, shape },
    { BI_OVERVIEW, overview },
    { BI_SAMPLE, sample },
};

/* Number columns that no pass took, and no group. */
static size_t free_numbers(struct bi_planner *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct bi_column *c = bi_is_column(p, i) ? bi_column_at(p, i, BI_WANT_NUMBER) : NULL;
        n += (size_t)(c && bi_column_numeric(c) && !bi_has_group(p, c));
    }
    return n;
}

/* Without a recipe's word, a chart's kind may say what is wanted. */
static void by_chart(struct bi_planner *p)
{
    size_t numbers = free_numbers(p);
    enum bi_sense chart = p->plan->chart;
    bool bare = !p->plan->measure_n && !p->plan->order && !p->plan->group_n, any = chart == BI_CHART,
         line = chart == BI_LINE;
    bool measured = numbers || p->plan->measure_n, timed = p->table->time_expr != NULL;
    bool pairs = chart == BI_SCATTER || (chart == BI_HEATMAP && !p->plan->group_n) ||
                 (bare && any && numbers == 2 && bi_has(p, BI_VERSUS));
    bool over_time = (bare && numbers && timed && time_is_unique(p->table) && (any || line)) ||
                     (line && timed && measured && !p->plan->group_n && !p->plan->order);
    bool spread = chart == BI_HISTOGRAM || (chart == BI_BOX && numbers) || (bare && any && numbers == 1);
    spread = spread && !has_stat(p);
    if (pairs)
        correlation(p, SIZE_MAX);
    else if (over_time)
        bi_recipe_trend(p, SIZE_MAX);
    else if (spread)
        distribution(p, SIZE_MAX);
}

void bi_recipe_special(struct bi_planner *p)
{
    take_export(p);
    if (take_clean(p))
        return;
    for (size_t k = 0; k < countof(recipes) && p->plan->recipe == BI_DO_NOTHING; k++) {
        size_t i = bi_find(p, recipes[k].word);
        if (i != SIZE_MAX)
            recipes[k].plan(p, i);
    }
    if (p->plan->recipe == BI_DO_NOTHING && p->plan->chart != BI_NONE && p->plan->chart != BI_NO_CHART &&
        !p->plan->trouble)
        by_chart(p);
}
