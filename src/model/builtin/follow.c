/* follow.c - requests that change the one before: "as a bar chart", "now only for women", "and the median?". */
#include <string.h>
#include "plan.h"

/* Says by itself what is to be computed. */
static bool stands_alone(const struct bi_plan *p)
{
    if (p->trouble)
        return false;
    bool column = p->column_n > 0 || p->order_column;
    for (size_t i = 0; i < p->measure_n; i++)
        column = column || p->measures[i].column || p->measures[i].type == BI_MEASURE_CONDITION;
    switch (p->recipe) {
    case BI_DO_AGGREGATE: return column || (p->measure_n && p->group_n && !p->elliptic);
    case BI_DO_ROWS: return column || !p->elliptic;
    case BI_DO_NOTHING: return false;
    case BI_DO_DISTRIBUTION: return !p->elliptic; /* "what about fare?" */
    case BI_DO_TREND:
    case BI_DO_OVERVIEW:
    case BI_DO_MISSING:
    case BI_DO_CORRELATION:
    case BI_DO_COLUMNS:
    case BI_DO_SHAPE:
    case BI_DO_DUPLICATES:
    case BI_DO_UNIQUE:
    case BI_DO_FILES:
    case BI_DO_JOIN:
    case BI_DO_CLEAN: return true;
    }
    return true;
}

static void take_filters(struct bi_plan *to, struct bi_plan *from)
{
    for (size_t i = 0; i < from->filter_n; i++) {
        size_t at = 0;
        while (at < to->filter_n && to->filters[at].column != from->filters[i].column)
            at++;
        if (at == BI_PLAN_FILTERS)
            return;
        free(at < to->filter_n ? to->filters[at].text : NULL);
        to->filters[at] = from->filters[i];
        from->filters[i].text = NULL;
        to->filter_n = at == to->filter_n ? at + 1 : to->filter_n;
    }
}

static bool can_group(const struct bi_plan *p)
{
    return p->recipe == BI_DO_AGGREGATE || p->recipe == BI_DO_TREND || p->recipe == BI_DO_DISTRIBUTION;
}

/* "and the median?": another statistic of the same columns. */
static void take_stat(struct bi_plan *to, const struct bi_plan *from)
{
    if (!from->measure_n || from->measures[0].type != BI_MEASURE_COLUMN)
        return;
    for (size_t i = 0; i < to->measure_n; i++)
        if (to->measures[i].type == BI_MEASURE_COLUMN && !from->measures[0].column)
            to->measures[i].stat = from->measures[0].stat;
    to->stat_open = false;
}

/* "and for age?": the same of another column. */
static bool take_column(struct bi_plan *to, const struct bi_plan *from)
{
    if (from->column_n != 1 || from->recipe != BI_DO_DISTRIBUTION)
        return false;
    if (to->recipe == BI_DO_DISTRIBUTION && to->column_n == 1) {
        to->columns[0] = from->columns[0];
        return true;
    }
    if (to->measure_n != 1 || to->measures[0].type != BI_MEASURE_COLUMN)
        return false;
    to->measures[0].column = from->columns[0];
    return true;
}

static bool changes_something(const struct bi_plan *p)
{
    return p->chart_asked || p->chart == BI_NO_CHART || p->filter_n || p->group_n || p->measure_n || p->limit ||
           p->order || p->export_asked || p->column_n;
}

/* What the change says goes over what the plan had. False: the two do not go together. */
static bool merge(struct bi_plan *to, struct bi_plan *from)
{
    if (!changes_something(from))
        return false;
    if (from->group_n && !can_group(to))
        return false;
    if (from->chart_asked || from->chart == BI_NO_CHART) {
        to->chart = from->chart;
        to->chart_asked = from->chart_asked;
    }
    take_filters(to, from);
    if (from->group_n) {
        memcpy(to->groups, from->groups, sizeof(to->groups));
        to->group_n = from->group_n;
        to->show_where = false;
    }
    take_stat(to, from);
    if (from->column_n && !take_column(to, from))
        return false;
    to->limit = from->limit ? from->limit : to->limit;
    to->order = from->order ? from->order : to->order;
    to->export_asked = to->export_asked || from->export_asked;
    to->export_as = from->export_asked ? from->export_as : to->export_as;
    for (size_t i = 0; i < from->note_n && to->note_n < BI_PLAN_NOTES; i++) {
        to->notes[to->note_n++] = from->notes[i];
        from->notes[i] = NULL;
    }
    to->language = from->language;
    return true;
}

static void note_follow(struct bi_plan *p, const struct bi_lexicon *x, const char *before)
{
    struct str text = STR_INIT(16 << 10);
    autofree char *cut = xstrndup(before, utf8_cut(before, strlen(before), 200));
    bi_say(&text, x, p->language, "follows", (const char *const[]){ "request", cut, NULL });
    bool said = false;
    for (size_t i = 0; i < p->note_n; i++)
        said = said || strcmp(p->notes[i], str_peek(&text)) == 0;
    if (!said && p->note_n < BI_PLAN_NOTES)
        p->notes[p->note_n++] = str_take(&text);
    str_clear(&text);
}

/* Tries to read a request as a change of *plan. True: *plan is changed. */
static bool follow(struct bi_plan *plan, const struct bi_lexicon *x, struct bi_tables *t, const char *request)
{
    struct bi_plan change;
    bi_plan_make(&change, x, t, request, plan->table);
    bool gap = change.trouble && (change.look_up_n || !change.elliptic);
    bool merged = !gap && merge(plan, &change);
    bi_plan_clear(&change);
    return merged;
}

size_t bi_plan_make_chain(struct bi_plan *out, const struct bi_lexicon *x, struct bi_tables *t,
                          const char *const *requests, size_t n)
{
    size_t start = 0;
    bi_plan_make(out, x, t, requests[0], SIZE_MAX);
    for (size_t i = 1; i < n; i++) {
        struct bi_plan next;
        bi_plan_make(&next, x, t, requests[i], SIZE_MAX);
        bool follows = !stands_alone(&next) && !out->trouble && follow(out, x, t, requests[i]);
        bi_plan_clear(follows ? &next : out);
        if (follows) {
            note_follow(out, x, requests[start]);
        } else {
            *out = next;
            start = i;
        }
    }
    return n - start;
}
