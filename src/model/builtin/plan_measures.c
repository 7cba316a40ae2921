/* plan_measures.c - statistics and what they are of; counts; shares and ratios; highest and lowest. */
#include "planner.h"
#include <string.h>

/* ---- helpers ---- */

static enum bi_sense stat_of(const struct bi_item *i)
{
    for (size_t k = 0; k < i->sense_n; k++)
        if (i->senses[k] >= BI_MEAN && i->senses[k] <= BI_RANGE)
            return i->senses[k];
    return BI_NONE;
}

static bool is_rows(const struct bi_planner *p, size_t i)
{
    return bi_open_at(p, i, BI_ROW) || bi_open_at(p, i, BI_PERSON) || (bi_open(p, i) && bi_is_entity(p, i));
}

static bool asks_for_one(const struct bi_planner *p)
{
    return bi_has(p, BI_WHICH) || bi_has(p, BI_WHO) || bi_has(p, BI_WHEN) || p->plan->limit;
}

/* "people" where the table is about people. */
static bool has_people(const struct bi_planner *p)
{
    static const char *const concepts[] = { "sex",      "age",     "name",      "first_name", "last_name",
                                            "employee", "student", "passenger", "customer",   "patient" };
    for (size_t i = 0; i < countof(concepts); i++)
        if (bi_table_find(p->table, bi_lexicon_concept_id(p->x, concepts[i])))
            return true;
    return false;
}

/* Words for rows that are used up once rows are counted or listed; "people" only where there are people. */
static bool use_rows(struct bi_planner *p, size_t i)
{
    if (bi_at(p, i, BI_PERSON) && !bi_at(p, i, BI_ROW) && !has_people(p))
        return false;
    if (bi_is_entity(p, i)) {
        const struct bi_column *c = bi_column_at(p, i, BI_WANT_ANY);
        if (c)
            bi_note(p, "row_is_one", "column", c->name);
    }
    bi_use(p, i);
    return true;
}

/* ---- what a count counts ---- */

static void count_column(struct bi_planner *p, size_t i, bool distinct)
{
    const struct bi_column *c = bi_take_column(p, i, BI_WANT_ANY);
    if (!c)
        return;
    bool counted = false;
    for (size_t k = 0; c->concepts[k] >= 0; k++)
        counted = counted || bi_lexicon_concept(p->x, c->concepts[k])->counted;
    if (!distinct && bi_column_flag(c)) {
        bi_use_flag(p, i, c);
        bi_add_measure(p, BI_MEASURE_ROWS, BI_COUNT, NULL);
        return;
    }
    enum bi_sense stat = counted && bi_column_numeric(c)                  ? BI_SUM
                         : bi_column_numeric(c) && !bi_column_grouping(c) ? BI_COUNT
                                                                          : BI_DISTINCT;
    bi_add_measure(p, BI_MEASURE_COLUMN, distinct ? BI_DISTINCT : stat, c);
}

/* The id behind "customers": counted once each where rows repeat it. */
static void count_entity(struct bi_planner *p, size_t i)
{
    const struct bi_column *c = bi_column_at(p, i, BI_WANT_ANY);
    bool repeats = c && c->role == BI_ROLE_ID && p->table->rows > 0 && c->distinct + c->nulls < p->table->rows;
    if (repeats) {
        (void)bi_take_column(p, i, BI_WANT_ANY);
        bi_add_measure(p, BI_MEASURE_COLUMN, BI_DISTINCT, c);
    } else if (use_rows(p, i)) {
        bi_add_measure(p, BI_MEASURE_ROWS, BI_COUNT, NULL);
    }
}

static bool is_grouped_column(struct bi_planner *p, size_t i)
{
    return i < p->n && p->it[i]->kind == BI_ITEM_COLUMN && bi_has_group(p, bi_column_at(p, i, BI_WANT_GROUP));
}

/* "how many days", where a day is a date. */
static bool count_days(struct bi_planner *p, size_t i)
{
    const struct bi_column *c = p->table->time_n == 1 ? bi_table_named(p->table, p->table->time_columns[0]) : NULL;
    bool grouped = i > 0 && i < p->n && (bi_at(p, i - 1, BI_BY) || bi_at(p, i - 1, BI_EACH));
    if (!bi_open_at(p, i, BI_DAY) || !c || c->type != BI_TYPE_DATE || grouped)
        return false;
    bi_use(p, i);
    bi_add_measure(p, BI_MEASURE_COLUMN, BI_DISTINCT, c);
    return true;
}

/* how many, number of, count: what comes next, else what came before, else rows. */
static void take_count(struct bi_planner *p, size_t i)
{
    bool distinct = bi_at(p, i, BI_DISTINCT);
    bi_use(p, i);
    size_t next = bi_skip(p, i + 1), before = bi_skip_back(p, i - 1);
    while (bi_open_at(p, next, BI_DISTINCT) || bi_open_at(p, next, BI_EACH)) {
        distinct = distinct || bi_at(p, next, BI_DISTINCT);
        bi_use(p, next);
        next = bi_skip(p, next + 1);
    }
    if (bi_open_at(p, next, BI_UNIQUE)) { /* "how many unique values of day" */
        distinct = true;
        bi_use(p, next);
        next = bi_skip(p, next + 1);
    }
    if (bi_open_at(p, next, BI_MISSING) || bi_open_at(p, next, BI_DUPLICATES) || bi_open_at(p, next, BI_COLUMNS) ||
        bi_open_at(p, before, BI_MISSING) || bi_open_at(p, before, BI_COLUMNS) || bi_open_at(p, before, BI_DUPLICATES))
        return;
    if (count_days(p, next) || count_days(p, before))
        return;
    bool zh = p->plan->language == BI_ZH;
    size_t what = is_rows(p, next) || bi_is_column(p, next) ? next : zh || bi_is_column(p, before) ? before : SIZE_MAX;
    if (what < p->n && !distinct && is_rows(p, what) && !bi_is_column(p, what)) {
        if (use_rows(p, what))
            bi_add_measure(p, BI_MEASURE_ROWS, BI_COUNT, NULL);
    } else if (what < p->n && bi_is_entity(p, what) && !distinct && bi_is_column(p, what)) {
        count_entity(p, what);
    } else if (what < p->n && bi_is_column(p, what) && !is_grouped_column(p, what)) {
        count_column(p, what, distinct);
    } else {
        const struct bi_column *counts = bi_counted_column(p);
        bi_add_measure(p, BI_MEASURE_ROWS, BI_COUNT, NULL);
        if (counts && p->plan->filter_n) { /* "how many girls": rows, or what the rows count */
            bi_add_measure(p, BI_MEASURE_COLUMN, BI_SUM, counts);
            bi_note(p, "rows_or_counts", "column", counts->name);
        }
    }
}

static bool is_count(const struct bi_planner *p, size_t i)
{
    return bi_open_at(p, i, BI_HOW_MANY) || (bi_open_at(p, i, BI_COUNT) && !bi_at(p, i, BI_MISSING));
}

/* ---- statistics ---- */

static void measure_column(struct bi_planner *p, size_t at, enum bi_sense stat, double quantile)
{
    const struct bi_column *c = bi_take_column(p, at, BI_WANT_NUMBER);
    if (!c)
        return;
    bool dates = c->type == BI_TYPE_DATE && (stat == BI_MIN || stat == BI_MAX || stat == BI_RANGE);
    bool any = stat == BI_DISTINCT || stat == BI_MODE || stat == BI_COUNT;
    bool years = c->role == BI_ROLE_YEAR && (stat == BI_MIN || stat == BI_MAX || stat == BI_RANGE);
    if (!dates && !any && !years && c->type != BI_TYPE_NUMBER && c->type != BI_TYPE_BOOL) {
        bi_trouble(p, "not_numeric", "column", c->name);
        return;
    }
    if (dates && stat == BI_RANGE) {
        bi_add_measure(p, BI_MEASURE_COLUMN, BI_MIN, c);
        stat = BI_MAX;
    }
    bi_add_measure(p, BI_MEASURE_COLUMN, stat, c);
    if (p->plan->measure_n)
        p->plan->measures[p->plan->measure_n - 1].quantile = quantile;
}

static bool is_measure(struct bi_planner *p, size_t i)
{
    return bi_is_column(p, i) && !is_grouped_column(p, i);
}

/* The statistics from i on that share one target: "mean and median". Returns the index behind them. */
static size_t take_chain(struct bi_planner *p, size_t i, enum bi_sense *stats, size_t *n)
{
    for (*n = 0; bi_is_stat(p, i) && bi_open(p, i) && *n < BI_PLAN_MEASURES;) {
        stats[(*n)++] = stat_of(p->it[i]);
        bi_use(p, i);
        size_t next = i + 1;
        while (bi_at(p, next, BI_AND))
            next++;
        if (!bi_is_stat(p, next) || !bi_open(p, next))
            return bi_skip(p, i + 1);
        i = next;
    }
    return bi_skip(p, i);
}

static double take_quantile(struct bi_planner *p, size_t i)
{
    size_t sides[2] = { i - 1, i + 1 };
    for (size_t k = 0; k < 2; k++)
        if (bi_open(p, sides[k]) && p->it[sides[k]]->kind == BI_ITEM_NUMBER) {
            bi_use(p, sides[k]);
            return p->it[sides[k]]->number / 100;
        }
    bi_trouble(p, "which_quantile", "", "");
    return 0;
}

/* Columns that one statistic is of: "average tip and total bill". */
static void take_targets(struct bi_planner *p, size_t at, const enum bi_sense *stats, size_t n, double quantile)
{
    for (size_t last = SIZE_MAX; is_measure(p, at);) {
        if (last != SIZE_MAX && !bi_listed(p, last, at))
            return;
        for (size_t k = 0; k < n; k++) {
            p->it[at]->used = false;
            measure_column(p, at, stats[k], quantile);
        }
        bi_use(p, at);
        last = at;
        at++;
        while (bi_at(p, at, BI_AND) || bi_at(p, at, BI_OF))
            at++;
        if (bi_at(p, at - 1, BI_OF))
            return;
    }
}

static size_t target_before(struct bi_planner *p, size_t i)
{
    size_t at = bi_skip_back(p, i - 1);
    while (bi_at(p, at, BI_EQUAL) || bi_at(p, at, BI_HOW_MUCH) || bi_at(p, at, BI_COMPARE) || bi_at(p, at, BI_TREND))
        at = bi_skip_back(p, at - 1);
    return is_measure(p, at) ? at : SIZE_MAX;
}

static void take_stat(struct bi_planner *p, size_t i)
{
    enum bi_sense stats[BI_PLAN_MEASURES] = { BI_NONE };
    size_t n;
    double quantile = bi_at(p, i, BI_QUANTILE) ? take_quantile(p, i) : 0;
    size_t first = i, at = take_chain(p, i, stats, &n);
    while (bi_open_at(p, at, BI_ROW) && is_measure(p, bi_skip(p, at + 1))) { /* "average revenue of each row" */
        bi_use(p, at);
        at = bi_skip(p, at + 1);
    }
    if (bi_open_at(p, at, BI_EACH) || bi_open_at(p, at, BI_BY))
        at = SIZE_MAX;
    bool counted = bi_at(p, at, BI_HOW_MANY) || bi_at(p, at, BI_COUNT) || bi_at(p, first - 1, BI_HOW_MANY) ||
                   bi_at(p, first - 1, BI_COUNT);
    if (stats[0] == BI_SUM && n == 1 && counted)
        return; /* "a total of how many": the count says it */
    if (is_measure(p, at) && !(bi_is_entity(p, at) && bi_column_at(p, at, BI_WANT_NUMBER) &&
                               bi_column_at(p, at, BI_WANT_NUMBER)->role == BI_ROLE_ID)) {
        take_targets(p, at, stats, n, quantile);
        return;
    }
    if (stats[0] == BI_SUM && is_rows(p, at) && use_rows(p, at)) {
        bi_add_measure(p, BI_MEASURE_ROWS, BI_COUNT, NULL);
        return;
    }
    size_t before = target_before(p, first);
    if (before < p->n) {
        size_t start = before; /* "tip and total bill average" */
        for (size_t k = bi_skip_back(p, before - 1); is_measure(p, k) && bi_listed(p, k, start);
             k = bi_skip_back(p, k - 1))
            start = k;
        take_targets(p, start, stats, n, quantile);
        return;
    }
    if (n == 1 && stats[0] == BI_SUM && p->plan->measure_n)
        return;                    /* "how many bills in total" */
    for (size_t k = 0; k < n; k++) /* of what comes later, or of a column that a filter used */
        bi_add_measure(p, BI_MEASURE_COLUMN, stats[k], NULL);
    if (p->plan->measure_n)
        p->plan->measures[p->plan->measure_n - 1].quantile = quantile;
}

static bool is_share_word(const struct bi_planner *p, size_t i)
{
    return bi_at(p, i, BI_RATE) || bi_at(p, i, BI_SHARE) || bi_at(p, i, BI_SHARE_OF_TOTAL) || bi_at(p, i, BI_RATIO);
}

/* "max" asks for a number, but in "which day has the max" for the day. */
static bool stands_for_order(const struct bi_planner *p, size_t i)
{
    bool ranks = bi_at(p, i, BI_MOST) || bi_at(p, i, BI_LEAST);
    bool of_stat = bi_is_stat(p, i + 1) && !bi_at(p, i + 1, BI_MIN) && !bi_at(p, i + 1, BI_MAX); /* "max average" */
    return ranks && (asks_for_one(p) || of_stat);
}

static void take_stats(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (bi_open(p, i) && is_count(p, i))
            take_count(p, i);
    for (size_t i = 0; i < p->n; i++) {
        bool plain = bi_is_stat(p, i) && bi_open(p, i) && stat_of(p->it[i]) <= BI_RANGE && !is_count(p, i);
        bool lone_distinct = bi_at(p, i, BI_DISTINCT) && bi_at(p, i, BI_EACH);
        if (plain && !stands_for_order(p, i) && !lone_distinct && !bi_at(p, i, BI_COUNT))
            take_stat(p, i);
    }
}

/* ---- rates, shares, ratios ---- */

static size_t flag_near(struct bi_planner *p, size_t i)
{
    size_t sides[] = { bi_skip_back(p, i - 1), bi_skip(p, i + 1) };
    for (size_t k = 0; k < countof(sides); k++) {
        const struct bi_column *c = bi_is_column(p, sides[k]) ? bi_column_at(p, sides[k], BI_WANT_FLAG) : NULL;
        if (c && bi_column_flag(c))
            return sides[k];
    }
    return SIZE_MAX;
}

static void add_rate(struct bi_planner *p, const struct bi_column *c)
{
    if (c->type != BI_TYPE_TEXT) {
        bi_add_measure(p, BI_MEASURE_COLUMN, BI_RATE, c);
        return;
    }
    if (p->plan->condition_n == BI_PLAN_FILTERS)
        return;
    p->plan->conditions[p->plan->condition_n] = bi_flag_filter(c, true);
    bi_add_measure(p, BI_MEASURE_CONDITION, BI_MEAN, NULL);
    p->plan->measures[p->plan->measure_n - 1].filter = p->plan->condition_n++;
}

enum ratio { NO_RATIO, FIRST_BY_SECOND, SECOND_BY_FIRST };

static bool between_items(const struct bi_planner *p, size_t a, size_t b, enum bi_sense s)
{
    for (size_t i = a + 1; i < b; i++)
        if (bi_at(p, i, s))
            return true;
    return false;
}

static bool word_between(const struct bi_planner *p, size_t a, size_t b, const char *const *words, size_t n)
{
    for (size_t i = p->it[a]->to; i < p->it[b]->from; i++)
        for (size_t k = 0; k < n; k++)
            if (strcmp(p->r.tokens.at[i].text, words[k]) == 0)
                return true;
    return false;
}

/* Which of two number columns is divided by which. The share word stands at `word`, the columns at a < b:
 * "tip as a share of bill", "tip to bill ratio", 小费占账单的比例: a / b; "what share of the bill is tip", 账单中小费的比例: b / a. */
static enum ratio ratio_order(const struct bi_planner *p, size_t word, size_t a, size_t b)
{
    static const char *const is[] = { "is", "are", "was", "were", "goes", "that" }, *const in[] = { "in" };
    if (p->plan->language == BI_ZH) {
        bool share_between = word > a && word < b;
        bool joined =
            between_items(p, a, b, BI_AND) || between_items(p, a, b, BI_VERSUS) || between_items(p, a, b, BI_TO);
        return between_items(p, a, b, BI_AMONG) ? SECOND_BY_FIRST
               : share_between || joined        ? FIRST_BY_SECOND
                                                : NO_RATIO;
    }
    if ((word > a && word < b) || between_items(p, a, b, BI_TO))
        return FIRST_BY_SECOND;
    if (word > b)
        return NO_RATIO;
    if (word_between(p, a, b, is, countof(is)))
        return SECOND_BY_FIRST;
    bool of_whole =
        word_between(p, a, b, in, countof(in)) || between_items(p, a, b, BI_AMONG) || between_items(p, a, b, BI_OF);
    return of_whole || bi_at(p, word, BI_RATIO) ? FIRST_BY_SECOND : NO_RATIO;
}

/* The first two number columns that are no groups. False: there are more or fewer. */
static bool two_numbers(struct bi_planner *p, size_t *a, size_t *b)
{
    *a = *b = SIZE_MAX;
    for (size_t i = 0; i < p->n; i++) {
        const struct bi_column *c =
            bi_is_column(p, i) && !is_grouped_column(p, i) ? bi_column_at(p, i, BI_WANT_NUMBER) : NULL;
        if (!c || !bi_column_numeric(c) || bi_column_flag(c))
            continue;
        if (*b != SIZE_MAX)
            return false;
        *(*a == SIZE_MAX ? a : b) = i;
    }
    return *b != SIZE_MAX;
}

static bool take_ratio(struct bi_planner *p)
{
    size_t word = SIZE_MAX, a, b;
    static const char *const slash[] = { "/", "÷" };
    for (size_t i = 0; i < p->n && word == SIZE_MAX; i++)
        word = bi_open(p, i) && is_share_word(p, i) ? i : SIZE_MAX;
    if (!two_numbers(p, &a, &b) || p->plan->trouble)
        return false;
    bool divided = b == a + 1 && word_between(p, a, b, slash, countof(slash)); /* "tip / bill" */
    if (word == SIZE_MAX && !divided)
        return false;
    enum ratio order = divided ? FIRST_BY_SECOND : ratio_order(p, word, a, b);
    if (order == NO_RATIO)
        return false;
    const struct bi_column *first = bi_take_column(p, a, BI_WANT_NUMBER),
                           *second = bi_take_column(p, b, BI_WANT_NUMBER);
    bi_add_measure(p, BI_MEASURE_RATIO, BI_MEAN, order == FIRST_BY_SECOND ? first : second);
    p->plan->measures[p->plan->measure_n - 1].other = order == FIRST_BY_SECOND ? second : first;
    for (size_t i = 0; i < p->n; i++)
        if (bi_open(p, i) && (is_share_word(p, i) || bi_at(p, i, BI_AS) || (bi_at(p, i, BI_TO) && i > a && i < b) ||
                              (bi_at(p, i, BI_VERSUS) && i > a && i < b)))
            bi_use(p, i);
    return true;
}

static void take_rates(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (!bi_open(p, i) || !is_share_word(p, i) || bi_at(p, i, BI_RATIO))
            continue;
        size_t at = flag_near(p, i);
        bool share = bi_at(p, i, BI_SHARE) && !bi_at(p, i, BI_RATE);
        if (at == SIZE_MAX || (share && at > i && bi_has(p, BI_AMONG)))
            continue;
        const struct bi_column *c = bi_take_column(p, at, BI_WANT_FLAG);
        if (c)
            add_rate(p, c);
        bi_use(p, i);
    }
}

/* ---- highest, lowest, most common ---- */

static int direction(const struct bi_planner *p, size_t i)
{
    bool least = bi_at(p, i, BI_LEAST) || bi_at(p, i, BI_RARE) || bi_at(p, i, BI_EARLIEST);
    const struct bi_item *it = p->it[i];
    if (it->kind == BI_ITEM_BOUND)
        return it->bound->sense == BI_LEAST ? -1 : 1;
    return least ? -1 : 1;
}

/* The measure that an extreme is of gets the statistic; where none is named, the plan says both sum and mean. */
static void rank_by_column(struct bi_planner *p, size_t at)
{
    const struct bi_column *c = bi_column_at(p, at, BI_WANT_NUMBER);
    if (!c)
        return;
    if (c->type == BI_TYPE_TEXT && !bi_column_flag(c)) {
        if (!bi_has_group(p, c))
            bi_add_group(p, c, BI_NONE);
        (void)bi_take_column(p, at, BI_WANT_NUMBER);
        return;
    }
    (void)bi_take_column(p, at, BI_WANT_NUMBER);
    bi_add_column(p, c);
}

static bool numeric_column(struct bi_planner *p, size_t i)
{
    const struct bi_column *c = is_measure(p, i) ? bi_column_at(p, i, BI_WANT_NUMBER) : NULL;
    return c && (bi_column_numeric(c) || c->type == BI_TYPE_DATE);
}

static void take_common(struct bi_planner *p, size_t i)
{
    size_t next = bi_skip(p, i + 1), before = bi_skip_back(p, i - 1);
    size_t at = bi_is_column(p, next) ? next : bi_is_column(p, before) ? before : SIZE_MAX;
    if (at < p->n && !p->plan->group_n) {
        const struct bi_column *c = bi_take_column(p, at, BI_WANT_GROUP);
        if (c)
            bi_add_group(p, c, BI_NONE);
    }
    const struct bi_column *counted = bi_counted_column(p);
    if (counted && p->table->headless) { /* rows already hold counts: 46,459 girls named Jessica are one row */
        bi_add_measure(p, BI_MEASURE_COLUMN, BI_SUM, counted);
        bi_note(p, "common_by_sum", "column", counted->name);
    } else {
        bi_add_measure(p, BI_MEASURE_ROWS, BI_COUNT, NULL);
    }
}

static void take_latest(struct bi_planner *p)
{
    if (!p->table->time_n) {
        bi_trouble(p, "no_time", "", "");
        return;
    }
    const struct bi_column *c = bi_table_named(p->table, p->table->time_columns[0]);
    p->plan->order_column = c;
    p->plan->limit = p->plan->limit ? p->plan->limit : 1;
}

/* "which year has the most names", 名字最多的年份, "the day with the most smokers": things are counted by a group. */
static bool counts_things(struct bi_planner *p, size_t i, size_t what, size_t group)
{
    const struct bi_column *c = is_measure(p, what) ? bi_column_at(p, what, BI_WANT_ANY) : NULL;
    const struct bi_column *g = is_measure(p, group) ? bi_column_at(p, group, BI_WANT_GROUP) : NULL;
    bool grouped = p->plan->group_n || (g && g != c && (bi_column_grouping(g) || g->role == BI_ROLE_YEAR));
    bool thing = c && (bi_column_flag(c) || (c->type == BI_TYPE_TEXT && !bi_has_group(p, c)));
    if (!thing || !grouped || p->plan->measure_n || bi_at(p, i, BI_COMMON))
        return false;
    if (bi_is_entity(p, what))
        count_entity(p, what);
    else
        count_column(p, what, false);
    if (!p->plan->group_n) {
        (void)bi_take_column(p, group, BI_WANT_GROUP);
        bi_add_group(p, g, BI_NONE);
    }
    return true;
}

static void take_extreme(struct bi_planner *p, size_t i)
{
    p->plan->order = direction(p, i);
    bi_use(p, i);
    if (bi_kind_at(p, i, BI_ITEM_BOUND)) {
        const struct bi_column *c = bi_bound_column(p, p->it[i]->bound);
        autofree char *words = bi_item_words(&p->r, p->it[i]);
        autofree char *pair = xasprintf("\"%s\" → `%s` %s", words, c->name, p->plan->order < 0 ? "↓" : "↑");
        bi_note(p, "pair", "pair", pair);
        bi_add_column(p, c);
        return;
    }
    if (bi_at(p, i, BI_LATEST) || bi_at(p, i, BI_EARLIEST)) {
        take_latest(p);
        return;
    }
    if (bi_at(p, i, BI_COMMON) || bi_at(p, i, BI_RARE)) {
        take_common(p, i);
        return;
    }
    size_t next = bi_skip(p, i + 1), before = target_before(p, i);
    bool zh = p->plan->language == BI_ZH;
    size_t first = zh ? before : next, second = zh ? next : before;
    if (p->plan->measure_n)
        return; /* "highest average tip": what was measured is ranked */
    if (counts_things(p, i, first, second))
        return;
    if (numeric_column(p, first))
        rank_by_column(p, first);
    else if (numeric_column(p, second))
        rank_by_column(p, second);
    else if (is_rows(p, next) && !bi_has(p, BI_BY) && use_rows(p, next))
        bi_add_measure(p, BI_MEASURE_ROWS, BI_COUNT, NULL);
}

void bi_plan_measures(struct bi_planner *p)
{
    if (!take_ratio(p))
        take_rates(p);
    take_stats(p);
    for (size_t i = 0; i < p->n; i++)
        if (bi_open(p, i) && bi_is_extreme(p, i) && !bi_is_stat(p, i))
            take_extreme(p, i);
    for (size_t i = 0; i < p->n; i++) /* max and min that stand for an order */
        if (bi_open(p, i) && bi_is_extreme(p, i))
            take_extreme(p, i);
}
