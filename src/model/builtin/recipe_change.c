/* recipe_change.c - changes over time (from one time to the next, year over year) and running totals. */
#include <string.h>
#include "recipes.h"

/* ---- from one time to the next ---- */

/* "growth of revenue from 2022 to 2023": sums of years, not of the days that the file happens to have. */
static bool is_of_years(const struct bi_plan *plan)
{
    bool sums = plan->measure_n > 0, years = false;
    for (size_t i = 0; i < plan->measure_n; i++)
        sums = sums && plan->measures[i].stat == BI_SUM;
    for (size_t i = 0; i < plan->filter_n; i++) {
        const struct bi_filter *f = &plan->filters[i];
        const bool year = f->type == BI_FILTER_PART ? f->part == BI_YEAR : f->column->role == BI_ROLE_YEAR;
        years = years || (year && f->has_low && f->has_high && f->low < f->high);
    }
    return sums && years && plan->time_period == BI_NONE;
}

void bi_recipe_growth(struct bi_planner *p, size_t i)
{
    bi_recipe_trend(p, i);
    if (is_of_years(p->plan))
        p->plan->time_period = BI_YEAR;
    (void)bi_take(p, BI_GROWTH);
    (void)bi_take(p, BI_SHARE);
    p->plan->growth = true;
    const enum bi_sense period = p->plan->time_period;
    if (period >= BI_YEAR && period <= BI_DAY && period != BI_DECADE)
        p->plan->step = period; /* as asked; else as the rows of the file follow each other */
}

/* ---- against the time before, or the same time a year before ---- */

static enum bi_sense period_of_freq(const struct bi_planner *p)
{
    static const struct {
        const char *freq;
        enum bi_sense period;
    } all[] = { { "year", BI_YEAR }, { "quarter", BI_QUARTER }, { "month", BI_MONTH } };
    for (size_t k = 0; p->table->time_freq && k < countof(all); k++)
        if (strcmp(p->table->time_freq, all[k].freq) == 0)
            return all[k].period;
    return BI_DAY;
}

/* Quarters cannot be made of years. BI_YEAR is the coarsest of the senses that may come here. */
static int coarseness(enum bi_sense period)
{
    switch ((int)period) {
    case BI_YEAR: return 4;
    case BI_QUARTER: return 3;
    case BI_MONTH: return 2;
    case BI_WEEK: return 1;
    default: return 0;
    }
}

/* What the words say: the step, and the length of a time when they say that, too. */
static enum bi_sense step_of(struct bi_planner *p, enum bi_sense *period)
{
    static const struct {
        enum bi_sense word, step;
    } all[] = { { BI_OVER_YEAR, BI_YEAR }, { BI_OVER_QUARTER, BI_QUARTER }, { BI_OVER_MONTH, BI_MONTH } };
    enum bi_sense step = BI_NONE;
    size_t n = 0;
    for (size_t k = 0; k < countof(all); k++)
        if (bi_take(p, all[k].word)) {
            step = all[k].step;
            n++;
        }
    if (bi_take(p, BI_OVER_PREVIOUS)) { /* 环比: against the time before, whatever its length */
        step = *period != BI_NONE ? *period : period_of_freq(p);
        n++;
    }
    if (n > 1)
        bi_trouble(p, "two_things", "", "");
    if (*period == BI_NONE)
        *period = step;
    return step;
}

/* With the times before cut off there is nothing to compare with. */
static bool filters_time(const struct bi_planner *p)
{
    for (size_t k = 0; k < p->plan->filter_n; k++)
        for (size_t i = 0; i < p->table->time_n; i++)
            if (strcmp(p->plan->filters[k].column->name, p->table->time_columns[i]) == 0)
                return true;
    return false;
}

void bi_recipe_change(struct bi_planner *p, size_t i)
{
    struct bi_plan *plan = p->plan;
    (void)i; /* step_of() reads all words of that kind */
    bi_recipe_trend(p, SIZE_MAX);
    (void)bi_take(p, BI_GROWTH);
    (void)bi_take(p, BI_SHARE);
    (void)bi_take(p, BI_DIFFERENCE);
    if (plan->trouble)
        return;
    enum bi_sense period = plan->time_period;
    plan->step = step_of(p, &period);
    plan->time_period = period;
    plan->growth = true;
    const bool aligned = period == plan->step || (plan->step == BI_YEAR && coarseness(period) >= 2) ||
                         (plan->step == BI_QUARTER && period == BI_MONTH);
    if (filters_time(p))
        bi_trouble(p, "step_needs_all", "", "");
    else if (!aligned || period == BI_DECADE)
        bi_trouble(p, "no_such_step", "", "");
    else if (coarseness(period) < coarseness(period_of_freq(p)))
        bi_trouble(p, "no_finer_time", "", "");
    for (size_t k = 0; k < plan->measure_n; k++) { /* of the time as a whole: rows of a month add up, or are averaged */
        struct bi_measure *m = &plan->measures[k];
        if (m->type != BI_MEASURE_COLUMN || m->stat != BI_NONE)
            continue;
        m->stat = bi_is_additive(p, m->column) ? BI_SUM : BI_MEAN;
        if (coarseness(period) > coarseness(period_of_freq(p)))
            bi_note(p, m->stat == BI_SUM ? "trend_sum" : "trend_mean", "column", m->column->name);
    }
}

/* ---- running totals ---- */

/* A sum up to now of prices, rates or means says nothing. */
static bool can_add_up(const struct bi_planner *p, const struct bi_measure *m)
{
    if (m->type == BI_MEASURE_ROWS)
        return true;
    const bool asked = m->stat == BI_NONE || m->stat == BI_SUM;
    return m->type == BI_MEASURE_COLUMN && asked && bi_column_numeric(m->column) && !bi_column_flag(m->column) &&
           !bi_is_intensive(p, m->column);
}

void bi_recipe_running(struct bi_planner *p, size_t i)
{
    struct bi_plan *plan = p->plan;
    bi_use(p, i);
    (void)bi_take(p, BI_RUNNING);
    bi_place_columns(p);
    bi_complete_measures(p);
    if (!plan->measure_n && !plan->trouble) {
        bi_trouble(p, "running_of_what", "", "");
        plan->asks = true;
        return;
    }
    for (size_t k = 0; k < plan->measure_n; k++) {
        if (!can_add_up(p, &plan->measures[k])) {
            bi_trouble(p, "running_of_what", "", "");
            return;
        }
        if (plan->measures[k].type == BI_MEASURE_COLUMN) {
            plan->measures[k].stat = BI_SUM;
            bi_note(p, "running_adds", "column", plan->measures[k].column->name);
        }
    }
    bi_recipe_trend(p, SIZE_MAX);
    plan->running = true;
}
