/* plan_recipe.c - what is to be done with what the other passes found. */
#include <string.h>
#include "planner.h"
#include "recipes.h"

/* ---- what the file can't answer ---- */

static bool refuse_known(struct bi_planner *p)
{
    static const struct {
        enum bi_sense sense;
        const char *key;
    } all[] = { { BI_CANNOT_WEB, "cannot_web" },           { BI_CANNOT_WRITE, "cannot_write" },
                { BI_CANNOT_FORECAST, "cannot_forecast" }, { BI_CANNOT_CAUSE, "cannot_cause" },
                { BI_CANNOT_CHANGE, "cannot_change" },     { BI_CANNOT_MODEL, "cannot_model" },
                { BI_CANNOT_OPINION, "cannot_opinion" },   { BI_CANNOT_RELATIVE, "cannot_relative" } };
    for (size_t k = 0; k < countof(all); k++) {
        size_t i = bi_find(p, all[k].sense);
        if (i == SIZE_MAX)
            continue;
        autofree char *words = bi_item_words(&p->r, p->it[i]);
        free(p->plan->trouble);
        p->plan->trouble = NULL;
        bi_trouble(p, all[k].key, "words", words);
        p->plan->asks = false;
        p->plan->wants_help = true;
        return true;
    }
    return false;
}

/* ---- charts ---- */

static void take_chart(struct bi_planner *p)
{
    static const enum bi_sense kinds[] = { BI_BAR, BI_LINE, BI_PIE, BI_HISTOGRAM, BI_BOX, BI_SCATTER, BI_HEATMAP };
    bool none = bi_take(p, BI_NO_CHART);
    for (size_t k = 0; k < countof(kinds); k++)
        for (size_t i = 0; i < p->n; i++)
            if (bi_open_at(p, i, kinds[k]) && !(kinds[k] == BI_LINE && bi_at(p, i, BI_ROW) && bi_has(p, BI_HOW_MANY))) {
                bi_use(p, i);
                if (p->plan->chart != BI_NONE && p->plan->chart != kinds[k])
                    bi_trouble(p, "two_charts", "", "");
                p->plan->chart = kinds[k];
            }
    bool any = bi_take(p, BI_CHART);
    if (any && p->plan->chart == BI_NONE)
        p->plan->chart = BI_CHART;
    p->plan->chart_asked = p->plan->chart != BI_NONE;
    if (none) {
        p->plan->chart = BI_NO_CHART;
        p->plan->chart_asked = false;
    }
}

/* Words that only hold others together. */
static void take_connectors(struct bi_planner *p)
{
    static const enum bi_sense all[] = { BI_OF,  BI_AS,   BI_AND,      BI_AMONG, BI_VALUE,
                                         BI_ALL, BI_FROM, BI_HOW_MUCH, BI_EQUAL };
    for (size_t k = 0; k < countof(all); k++)
        (void)bi_take(p, all[k]);
}

/* ---- values side by side are groups ---- */

void bi_group_pairs(struct bi_planner *p)
{
    for (size_t i = 0; i < p->plan->filter_n; i++) {
        struct bi_filter *f = &p->plan->filters[i];
        if (f->both && !bi_has_group(p, f->column))
            bi_add_group(p, f->column, BI_NONE);
    }
}

/* ---- columns without a role ---- */

/* A yes/no column that picks rows and is not what is asked for: "survivors", "who survived", 存活的乘客. */
static bool picks_rows(struct bi_planner *p, size_t i)
{
    size_t before = bi_skip_back(p, i - 1), after = bi_skip(p, i + 1);
    bool noun =
        bi_at(p, before, BI_WHO) || bi_at(p, before, BI_PERSON) || bi_at(p, before, BI_ROW) || bi_is_entity(p, before);
    bool of =
        p->plan->language == BI_ZH && (bi_at(p, after, BI_PERSON) || bi_at(p, after, BI_ROW) || bi_is_entity(p, after));
    return p->it[i]->holder || noun || of;
}

/* Nothing is measured yet, or columns whose statistic is not named. */
static bool takes_another(const struct bi_plan *plan)
{
    if (!plan->measure_n)
        return !plan->column_n;
    return plan->measures[plan->measure_n - 1].stat == BI_NONE;
}

static void place_column(struct bi_planner *p, size_t i)
{
    bool open_stat = false;
    for (size_t k = 0; k < p->plan->measure_n; k++)
        open_stat = open_stat || (p->plan->measures[k].type == BI_MEASURE_COLUMN && !p->plan->measures[k].column);
    const struct bi_column *c = bi_column_at(p, i, p->plan->measure_n && !open_stat ? BI_WANT_GROUP : BI_WANT_NUMBER);
    if (!c)
        return;
    bool flag = bi_column_flag(c), numeric = bi_column_numeric(c);
    if (open_stat && (numeric || c->type == BI_TYPE_DATE)) {
        (void)bi_take_column(p, i, BI_WANT_NUMBER);
        for (size_t k = 0; k < p->plan->measure_n; k++)
            if (!p->plan->measures[k].column && p->plan->measures[k].type == BI_MEASURE_COLUMN)
                p->plan->measures[k].column = c;
    } else if (flag && (p->plan->measure_n || p->plan->column_n || bi_has(p, BI_SHARE) || picks_rows(p, i))) {
        bi_use_flag(p, i, c);
    } else if (numeric && takes_another(p->plan)) {
        (void)bi_take_column(p, i, BI_WANT_NUMBER);
        bi_add_measure(p, BI_MEASURE_COLUMN, BI_NONE, c);
    } else if (bi_column_grouping(c) && !flag) {
        (void)bi_take_column(p, i, BI_WANT_GROUP);
        bi_add_group(p, c, BI_NONE);
    }
}

static bool is_measured(const struct bi_planner *p, const struct bi_column *c)
{
    for (size_t k = 0; k < p->plan->column_n; k++)
        if (p->plan->columns[k] == c)
            return true;
    for (size_t k = 0; k < p->plan->filter_n; k++)
        if (p->plan->filters[k].column == c && c->type == BI_TYPE_DATE)
            return true;
    if (bi_has_group(p, c) && c->type == BI_TYPE_DATE)
        return true;
    for (size_t k = 0; k < p->plan->measure_n; k++)
        if (p->plan->measures[k].column == c)
            return true;
    return false;
}

/* "bills" in "5 bills", 的账单, "how many bills" are rows; in "tip and bill" the word is a second measure. */
static bool is_row_noun(struct bi_planner *p, size_t i)
{
    const struct bi_column *c = bi_column_at(p, i, BI_WANT_ANY);
    size_t before = i ? i - 1 : SIZE_MAX;
    const struct bi_token *k = &p->r.tokens.at[p->it[i]->to - 1];
    if (!c || c->role == BI_ROLE_ID)
        return true;
    for (size_t last = before; last < p->n; last--)
        if (p->it[last]->kind == BI_ITEM_COLUMN && bi_column_at(p, last, BI_WANT_ANY) &&
            bi_column_numeric(bi_column_at(p, last, BI_WANT_ANY)) && bi_listed(p, last, i))
            return false;
    bool counted = bi_kind_at(p, before, BI_ITEM_NUMBER) || bi_at(p, before, BI_HOW_MANY) ||
                   bi_at(p, before, BI_COUNT) || bi_at(p, i + 1, BI_COUNT) || bi_at(p, i + 1, BI_HOW_MANY) ||
                   bi_at(p, before, BI_WHICH);
    bool plural = strcmp(k->text, k->stem) != 0, of = p->plan->language == BI_ZH && bi_at(p, before, BI_OF);
    return counted || plural || of;
}

void bi_place_columns(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (!bi_is_column(p, i) || bi_is_entity(p, i))
            continue;
        const struct bi_column *c = bi_column_at(p, i, BI_WANT_NUMBER);
        if (c && is_measured(p, c))
            (void)bi_take_column(p, i, BI_WANT_NUMBER); /* said twice */
        else
            place_column(p, i);
    }
    for (size_t i = 0; i < p->n; i++) /* "bills" may still be rows, or the only number there is */
        if (bi_is_column(p, i) && bi_is_entity(p, i) && !is_row_noun(p, i)) {
            place_column(p, i);
        } else if (bi_is_column(p, i) && bi_is_entity(p, i)) {
            bool rows = p->plan->measure_n || p->plan->column_n || p->plan->group_n || p->plan->filter_n ||
                        p->plan->order || p->plan->limit;
            const struct bi_column *c = bi_column_at(p, i, BI_WANT_NUMBER);
            if (rows && c) {
                if (!is_measured(p, c))
                    bi_note(p, "row_is_one", "column", c->name);
                bi_use(p, i);
            } else {
                place_column(p, i);
            }
        }
}

/* ---- rest ---- */

static void drop_equal_measures(struct bi_planner *p)
{
    size_t n = 0;
    for (size_t k = 0; k < p->plan->measure_n; k++) {
        const struct bi_measure m = p->plan->measures[k];
        bool again = false;
        for (size_t i = 0; i < n && m.type == BI_MEASURE_COLUMN; i++)
            again = again || (p->plan->measures[i].type == m.type && p->plan->measures[i].stat == m.stat &&
                              p->plan->measures[i].column == m.column);
        if (!again)
            p->plan->measures[n++] = m;
    }
    p->plan->measure_n = n;
}

/* A statistic whose column nobody named. */
void bi_complete_measures(struct bi_planner *p)
{
    for (size_t k = 0; k < p->plan->measure_n; k++) {
        struct bi_measure *m = &p->plan->measures[k];
        if (m->type != BI_MEASURE_COLUMN || m->column)
            continue;
        for (size_t f = 0; f < p->plan->filter_n && !m->column; f++)
            if (p->plan->filters[f].type == BI_FILTER_RANGE && bi_column_numeric(p->plan->filters[f].column))
                m->column = p->plan->filters[f].column;
        if (!m->column && p->plan->column_n)
            m->column = p->plan->columns[0];
        if (!m->column) {
            bi_trouble(p, "stat_of_what", "stat", bi_text(p->x, p->plan->language, bi_sense_name(m->stat)));
            p->plan->elliptic = true;
            p->plan->asks = true;
        }
    }
    drop_equal_measures(p);
}

static void fit_rows_words(struct bi_planner *p)
{
    bool people = false;
    static const char *const concepts[] = { "sex",      "age",     "name",      "first_name", "last_name",
                                            "employee", "student", "passenger", "customer",   "patient" };
    for (size_t i = 0; i < countof(concepts); i++)
        people = people || bi_table_find(p->table, bi_lexicon_concept_id(p->x, concepts[i]));
    (void)bi_take(p, BI_ROW);
    for (size_t i = 0; i < p->n; i++)
        if (bi_open_at(p, i, BI_PERSON) && (people || p->plan->filter_n))
            bi_use(p, i);
}

/* ---- what was not understood ---- */

static void add_word(struct str *list, enum bi_language language, const char *word)
{
    if (language == BI_ZH)
        str_printf(list, "%s“%s”", list->len ? "、" : "", word);
    else
        str_printf(list, "%s\"%s\"", list->len ? ", " : "", word);
}

static void look_up(struct bi_plan *plan, const char *word)
{
    if (plan->look_up_n >= 12)
        return;
    plan->look_up = xgrow(plan->look_up, &plan->look_up_cap, plan->look_up_n + 1, sizeof(*plan->look_up));
    plan->look_up[plan->look_up_n++] = xstrdup(word);
}

static bool unknown_at(const struct bi_planner *p, size_t i)
{
    return bi_open(p, i) && (p->it[i]->kind == BI_ITEM_UNKNOWN || p->it[i]->kind == BI_ITEM_QUOTED ||
                             (p->it[i]->kind == BI_ITEM_ABSENT && p->it[i]->named >= 0));
}

/* Unknown words side by side may be one value: both are looked up. */
static void look_up_unknown(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (!unknown_at(p, i))
            continue;
        size_t end = i;
        while (unknown_at(p, end + 1) && p->it[end + 1]->from == p->it[end]->to)
            end++;
        size_t from = p->r.tokens.at[p->it[i]->from].from, to = p->r.tokens.at[p->it[end]->to - 1].to;
        autofree char *run = xstrndup(p->r.text + from, to - from);
        look_up(p->plan, run);
        for (size_t k = i; end > i && k <= end; k++) {
            autofree char *word = bi_item_words(&p->r, p->it[k]);
            look_up(p->plan, word);
        }
        i = end;
    }
}

static void refuse_words(struct bi_planner *p, bool early)
{
    struct str unknown = STR_INIT(8 << 10), absent = STR_INIT(8 << 10), unfit = STR_INIT(8 << 10);
    for (size_t i = 0; i < p->n; i++) {
        if (!bi_open(p, i))
            continue;
        autofree char *words = bi_item_words(&p->r, p->it[i]);
        enum bi_item_kind kind = p->it[i]->kind;
        if (early && kind != BI_ITEM_UNKNOWN && kind != BI_ITEM_QUOTED && kind != BI_ITEM_ABSENT)
            continue;
        add_word(kind == BI_ITEM_UNKNOWN || kind == BI_ITEM_QUOTED ? &unknown
                 : kind == BI_ITEM_ABSENT                          ? &absent
                                                                   : &unfit,
                 p->plan->language, words);
    }
    bool any = unknown.len || absent.len || unfit.len;
    bool known = p->plan->trouble && !early;
    if (any && !known)
        look_up_unknown(p);
    struct str text = STR_INIT(64 << 10);
    if (absent.len)
        bi_say(&text, p->x, p->plan->language, "no_column", (const char *const[]){ "words", str_peek(&absent), NULL });
    if (absent.len && unknown.len)
        str_putc(&text, p->plan->language == BI_EN ? ' ' : '\n');
    if (unknown.len)
        bi_say(&text, p->x, p->plan->language, "unknown", (const char *const[]){ "words", str_peek(&unknown), NULL });
    if (unfit.len && !absent.len && !unknown.len)
        bi_say(&text, p->x, p->plan->language, "unfit", (const char *const[]){ "words", str_peek(&unfit), NULL });
    if (any && !known) {
        free(p->plan->trouble);
        p->plan->asks = false;
        p->plan->trouble = xstrdup(str_peek(&text));
        p->plan->wants_help = true;
    }
    str_clear(&text);
    str_clear(&unknown);
    str_clear(&absent);
    str_clear(&unfit);
}

/* ---- the choice ---- */

static void use_question_words(struct bi_planner *p)
{
    static const enum bi_sense all[] = { BI_WHICH, BI_WHO, BI_WHEN, BI_AGAIN, BI_NUMERIC };
    for (size_t k = 0; k < countof(all); k++)
        (void)bi_take(p, all[k]);
    bool fresh = p->plan->recipe == BI_DO_COLUMNS || p->plan->recipe == BI_DO_MISSING ||
                 p->plan->recipe == BI_DO_OVERVIEW || p->plan->recipe == BI_DO_CORRELATION ||
                 p->plan->recipe == BI_DO_CLEAN;
    if (fresh)
        (void)bi_take(p, BI_COLUMNS);
}

static bool says_nothing(const struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (!bi_at(p, i, BI_AGAIN) && !bi_at(p, i, BI_VALUE) && !bi_at(p, i, BI_AND) && !bi_at(p, i, BI_OF))
            return false;
    return true;
}

static bool holds_unknown(const struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (unknown_at(p, i) || (bi_open(p, i) && p->it[i]->kind == BI_ITEM_ABSENT))
            return true;
    return false;
}

bool bi_plan_is_small_talk(const struct bi_planner *p)
{
    return p->r.tokens.n && !holds_unknown(p) && (bi_has(p, BI_HELP) || says_nothing(p));
}

/* "average tip by day and average bill by time": two questions; their groups must not be mixed. */
static void check_two_things(struct bi_planner *p)
{
    bool by = false, stat_after = false;
    for (size_t i = 0; i < p->n && p->plan->group_n > 1; i++) {
        bool groups = bi_at(p, i, BI_BY) || bi_at(p, i, BI_EACH);
        if (groups && stat_after)
            bi_trouble(p, "two_things", "", "");
        by = by || groups;
        stat_after = stat_after || (by && !groups && bi_is_stat(p, i));
    }
}

/* "the top 2 products of each region", "which product has the highest price in each region". */
static void find_top_within(struct bi_planner *p)
{
    struct bi_plan *plan = p->plan;
    bool extreme = false;
    for (size_t i = 0; i < p->n; i++)
        extreme = extreme || bi_is_extreme(p, i);
    if (plan->recipe == BI_DO_AGGREGATE && plan->group_n == 1 && plan->each && plan->limit &&
        !plan->top_within) /* "5 orders per region" */
        bi_trouble(p, "no_limit_here", "", "");
    if (plan->recipe != BI_DO_AGGREGATE || plan->group_n != 2 || !plan->each || !(extreme || plan->limit))
        return;
    plan->top_within = plan->each;
    plan->limit = plan->limit ? plan->limit : 1;
    plan->order = plan->order ? plan->order : 1;
}

/* Parts of the plan that its recipe would ignore. */
static void check_leftovers_of_plan(struct bi_planner *p)
{
    const struct bi_plan *plan = p->plan;
    bool table = plan->recipe == BI_DO_AGGREGATE || plan->recipe == BI_DO_ROWS || plan->recipe == BI_DO_NOTHING;
    bool limited = table || plan->recipe == BI_DO_MISSING || plan->recipe == BI_DO_CORRELATION;
    if (plan->limit && !limited)
        bi_trouble(p, "no_limit_here", "", "");
    if (plan->order && !limited)
        bi_trouble(p, "no_order_here", "", "");
    bool grouped =
        table || plan->recipe == BI_DO_TREND || plan->recipe == BI_DO_DISTRIBUTION || plan->recipe == BI_DO_OVERVIEW;
    if (plan->group_n && (!grouped || (plan->recipe == BI_DO_ROWS && !plan->top_within)))
        bi_trouble(p, "no_group_here", "", "");
    bool drawn = plan->chart == BI_HISTOGRAM || plan->chart == BI_BOX || plan->chart == BI_SCATTER;
    if (plan->recipe == BI_DO_AGGREGATE && plan->group_n && drawn)
        bi_note(p, "drawn_as_bars", "", "");
    check_two_things(p);
}

void bi_plan_recipe(struct bi_planner *p)
{
    if (!p->r.tokens.n) { /* a file without a question */
        p->plan->recipe = BI_DO_OVERVIEW;
        bi_note(p, "no_question", "", "");
        return;
    }
    bool foreign = p->r.tokens.foreign && !p->r.tokens.chinese;
    if (foreign || refuse_known(p))
        return;
    p->plan->elliptic = bi_has(p, BI_AGAIN);
    if (holds_unknown(p)) {
        refuse_words(p, true);
        return;
    }
    if (bi_take(p, BI_HELP) || says_nothing(p)) {
        bi_trouble(p, "help_intro", "", "");
        p->plan->wants_help = p->plan->answers = true;
        return;
    }
    take_chart(p);
    bi_recipe_special(p);
    if (p->plan->recipe == BI_DO_NOTHING) {
        take_connectors(p);
        bi_recipe_aggregate(p);
    }
    bi_finish_nth(p);
    find_top_within(p);
    bi_finish_any(p);
    check_leftovers_of_plan(p);
    take_connectors(p);
    use_question_words(p);
    fit_rows_words(p);
    refuse_words(p, false);
    if (p->plan->recipe == BI_DO_NOTHING && !p->plan->trouble) {
        bi_trouble(p, "nothing_asked", "", "");
        p->plan->wants_help = p->plan->elliptic = true;
    }
}
