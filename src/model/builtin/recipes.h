/* recipes.h - the recipes, in three files: those with words of their own, changes over time, and everything that is measured.
 * Private to plan_recipe.c. */
#ifndef BUILTIN_RECIPES_H
#define BUILTIN_RECIPES_H
#include "planner.h"

/* Clean-up, missing values, correlation, trend, distribution ...: by their own word. Leaves recipe BI_DO_NOTHING when
 * there is none. */
void bi_recipe_special(struct bi_planner *p);
/* Measures by groups, shares, rankings, lists of rows. */
void bi_recipe_aggregate(struct bi_planner *p);
/* Values named side by side ("men and women") become groups. */
void bi_group_pairs(struct bi_planner *p);
/* Statistics whose column nobody named get it, or the plan asks. */
void bi_complete_measures(struct bi_planner *p);
void bi_correlation_of_measures(struct bi_planner *p);
/* The measures of the plan, over time, with a chart only when one is asked for. */
void bi_trend_of_measures(struct bi_planner *p);
/* Over time, item i is the word for it; SIZE_MAX: there is none. */
void bi_recipe_trend(struct bi_planner *p, size_t i);
void bi_recipe_growth(struct bi_planner *p, size_t i);  /* from one time to the next */
void bi_recipe_change(struct bi_planner *p, size_t i);  /* year over year, month over month */
void bi_recipe_running(struct bi_planner *p, size_t i); /* sums of all up to then */
/* Columns that no pass gave a role: measures, filters (flags), groups. */
void bi_place_columns(struct bi_planner *p);
#endif
