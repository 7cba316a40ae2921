/* planner.h - what the files of the planner share while a plan is made. Private to plan*.c. */
#ifndef BUILTIN_PLANNER_H
#define BUILTIN_PLANNER_H
#include "plan.h"

struct bi_planner {
    const struct bi_lexicon *x;
    struct bi_tables *t;
    const struct bi_table *table;
    struct bi_reading r;
    struct bi_item **it; /* the items that carry meaning, in order */
    size_t n;
    struct bi_plan *plan;
    size_t bound_at, bound_filter; /* the number that was last compared, and its filter; SIZE_MAX: none */
};

enum bi_want { BI_WANT_ANY, BI_WANT_NUMBER, BI_WANT_GROUP, BI_WANT_FLAG };

/* ---- items; every index may be out of range, which is no item ---- */
bool bi_at(const struct bi_planner *p, size_t i, enum bi_sense s);      /* item i has that sense */
bool bi_open(const struct bi_planner *p, size_t i);                     /* exists and is not used yet */
bool bi_open_at(const struct bi_planner *p, size_t i, enum bi_sense s); /* both */
bool bi_kind_at(const struct bi_planner *p, size_t i, enum bi_item_kind kind);
bool bi_is_stat(const struct bi_planner *p, size_t i);    /* a statistic: average ... range */
bool bi_is_extreme(const struct bi_planner *p, size_t i); /* highest, oldest, most common ... */
void bi_use(struct bi_planner *p, size_t i);
size_t bi_find(const struct bi_planner *p, enum bi_sense s); /* first open item of that sense, or SIZE_MAX */
bool bi_take(struct bi_planner *p, enum bi_sense s);      /* uses all open items of that sense; true: there was one */
bool bi_has(const struct bi_planner *p, enum bi_sense s); /* used or not */
/* Past items that only connect (of, as, all, and): the next index going up or down. */
size_t bi_skip(const struct bi_planner *p, size_t i);
size_t bi_skip_back(const struct bi_planner *p, size_t i);
/* Nothing but commas or "and" stands between the items i and j > i. */
bool bi_listed(const struct bi_planner *p, size_t i, size_t j);

/* ---- columns ---- */
/* The column that item i means, NULL when it means none or when two fit: then the plan asks. Does not use the item. */
const struct bi_column *bi_column_at(struct bi_planner *p, size_t i, enum bi_want want);
/* The same, used and noted in the plan. */
const struct bi_column *bi_take_column(struct bi_planner *p, size_t i, enum bi_want want);
bool bi_is_column(const struct bi_planner *p, size_t i); /* an open column item */
/* The item means rows: "passengers" where the table has a PassengerId, "bills" by total_bill. */
bool bi_is_entity(const struct bi_planner *p, size_t i);
const struct bi_column *bi_bound_column(const struct bi_planner *p, const struct bi_phrase *bound);
/* The one column that holds counts (births, population), which a row stands for; NULL: none or several. */
const struct bi_column *bi_counted_column(const struct bi_planner *p);
bool bi_is_additive(const struct bi_planner *p, const struct bi_column *c);  /* amounts: sums mean something */
bool bi_is_intensive(const struct bi_planner *p, const struct bi_column *c); /* sums mean nothing */
bool bi_has_group(const struct bi_planner *p, const struct bi_column *c);

/* ---- the plan ---- */
void bi_trouble(struct bi_planner *p, const char *key, const char *name, const char *value); /* the first one stays */
void bi_note(struct bi_planner *p, const char *key, const char *name, const char *value);
struct bi_filter *bi_add_filter(struct bi_planner *p, enum bi_filter_type type, const struct bi_column *c);
void bi_add_measure(struct bi_planner *p, enum bi_measure_type type, enum bi_sense stat, const struct bi_column *c);
void bi_add_group(struct bi_planner *p, const struct bi_column *c, enum bi_sense period);
void bi_add_column(struct bi_planner *p, const struct bi_column *c);
/* Takes item i, a yes/no column, as a filter; beside the opposite value it makes a pair of groups. */
void bi_use_flag(struct bi_planner *p, size_t i, const struct bi_column *c);
struct bi_filter bi_flag_filter(const struct bi_column *c, bool yes);

/* ---- the passes, in this order (one file each) ---- */
void bi_plan_choose_table(struct bi_planner *p); /* before the items are listed: it may join tables and read again */
void bi_plan_settle(struct bi_planner *p);       /* words with two readings get one */
void bi_plan_dates(struct bi_planner *p);        /* "March 2022", "between 5 March 2022 and 10 April 2022" */
void bi_plan_numbers(struct bi_planner *p);      /* comparisons, ranges, years, "top 5" */
void bi_plan_values(struct bi_planner *p);       /* values and what is excluded */
void bi_plan_groups(struct bi_planner *p);       /* by, each, which; periods */
void bi_plan_measures(struct bi_planner *p);     /* statistics and what they are of */
void bi_plan_recipe(struct bi_planner *p);       /* what is to be done, and what is left over */
void bi_take_nth(struct bi_planner *p);          /* "second highest": part of the numbers */
void bi_take_limits(struct bi_planner *p);       /* "top 5": the same */
void bi_take_late_limits(
    struct bi_planner *p); /* a number that is left when something is ranked: "5 bills with the highest tip" */
bool bi_is_number(const struct bi_planner *p, size_t i);
size_t bi_past_units(struct bi_planner *p,
                     size_t i); /* behind a number's units, which are used: "30 years old", "5 元" */
void bi_finish_nth(
    struct bi_planner *p); /* part of the recipe: where a place makes sense, and the first of each group */
void bi_finish_any(struct bi_planner *p);               /* "or" between two filters */
bool bi_plan_is_small_talk(const struct bi_planner *p); /* a greeting, or "what can you do?" */
#endif
