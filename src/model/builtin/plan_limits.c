/* plan_limits.c - how many rows: "top 5", "first 10 rows", "最高的 5 个". */
#include "planner.h"
#include <math.h>

static bool ranks(const struct bi_planner *p, size_t i)
{
    return bi_is_extreme(p, i) || bi_at(p, i, BI_FIRST) || bi_at(p, i, BI_LAST) || bi_at(p, i, BI_SAMPLE);
}

static bool take_limit_at(struct bi_planner *p, size_t i)
{
    const struct bi_item *it = p->it[i];
    if (it->suffix != BI_SUFFIX_NONE || it->number < 1 || it->number != floor(it->number) || it->number > 1e6) {
        if (it->suffix != BI_SUFFIX_PERCENT)
            return false;
        bi_trouble(p, "top_percent", "", "");
    }
    p->plan->limit = (int64_t)it->number;
    bi_use(p, i);
    (void)bi_past_units(p, i + 1);
    return true;
}

void bi_take_limits(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n && !p->plan->limit; i++) {
        size_t before = i ? bi_skip_back(p, i - 1) : SIZE_MAX;
        bool number = bi_is_number(p, i) && p->it[i]->suffix != BI_SUFFIX_ORDINAL;
        if (number && (ranks(p, before) || ranks(p, i + 1)) && take_limit_at(p, i))
            return;
    }
}

/* A number that is left when something is ranked: "5 bills with the highest tip". */
void bi_take_late_limits(struct bi_planner *p)
{
    bool ranked = false;
    for (size_t i = 0; i < p->n; i++)
        ranked = ranked || ranks(p, i);
    for (size_t i = 0; i < p->n && ranked && !p->plan->limit; i++)
        if (bi_is_number(p, i) && !bi_at(p, i - 1, BI_QUANTILE) && !bi_at(p, i + 1, BI_QUANTILE))
            (void)take_limit_at(p, i);
}
