/* plan.c - from a request to a plan: the choice of the file, the passes, and what they share. */
#include "planner.h"
#include <string.h>

/* ---- items ---- */

bool bi_at(const struct bi_planner *p, size_t i, enum bi_sense s)
{
    return i < p->n && (p->it[i]->kind == BI_ITEM_SENSE || p->it[i]->kind == BI_ITEM_BOUND) && bi_item_is(p->it[i], s);
}

bool bi_open(const struct bi_planner *p, size_t i)
{
    return i < p->n && !p->it[i]->used;
}

bool bi_open_at(const struct bi_planner *p, size_t i, enum bi_sense s)
{
    return bi_open(p, i) && bi_at(p, i, s);
}

bool bi_kind_at(const struct bi_planner *p, size_t i, enum bi_item_kind kind)
{
    return i < p->n && p->it[i]->kind == kind;
}

static bool any_of(const struct bi_planner *p, size_t i, enum bi_sense from, enum bi_sense to)
{
    for (size_t k = 0; i < p->n && p->it[i]->kind == BI_ITEM_SENSE && k < p->it[i]->sense_n; k++)
        if (p->it[i]->senses[k] >= from && p->it[i]->senses[k] <= to)
            return true;
    return false;
}

bool bi_is_stat(const struct bi_planner *p, size_t i)
{
    return any_of(p, i, BI_MEAN, BI_RANGE);
}

bool bi_is_extreme(const struct bi_planner *p, size_t i)
{
    bool bound = bi_kind_at(p, i, BI_ITEM_BOUND) && p->it[i]->bound->type == BI_PHRASE_SUPERLATIVE;
    return bound || any_of(p, i, BI_MOST, BI_RARE) || any_of(p, i, BI_LATEST, BI_EARLIEST);
}

void bi_use(struct bi_planner *p, size_t i)
{
    if (i < p->n)
        p->it[i]->used = true;
}

size_t bi_find(const struct bi_planner *p, enum bi_sense s)
{
    for (size_t i = 0; i < p->n; i++)
        if (bi_open_at(p, i, s))
            return i;
    return SIZE_MAX;
}

bool bi_take(struct bi_planner *p, enum bi_sense s)
{
    bool any = false;
    for (size_t i = 0; i < p->n; i++)
        if (bi_open_at(p, i, s)) {
            bi_use(p, i);
            any = true;
        }
    return any;
}

bool bi_has(const struct bi_planner *p, enum bi_sense s)
{
    for (size_t i = 0; i < p->n; i++)
        if (bi_at(p, i, s))
            return true;
    return false;
}

static bool connects(const struct bi_planner *p, size_t i)
{
    static const enum bi_sense all[] = { BI_OF, BI_AS, BI_ALL, BI_AND, BI_AMONG, BI_VALUE, BI_NUMERIC, BI_FROM };
    for (size_t k = 0; k < countof(all); k++)
        if (bi_at(p, i, all[k]))
            return true;
    return false;
}

size_t bi_skip(const struct bi_planner *p, size_t i)
{
    while (connects(p, i) && !bi_is_stat(p, i))
        i++;
    return i;
}

size_t bi_skip_back(const struct bi_planner *p, size_t i)
{
    while (i < p->n && connects(p, i) && !bi_is_stat(p, i))
        i--;
    return i < p->n ? i : SIZE_MAX;
}

bool bi_listed(const struct bi_planner *p, size_t i, size_t j)
{
    bool joined = false;
    for (size_t k = i + 1; k < j; k++) {
        if (!bi_at(p, k, BI_AND) && !bi_at(p, k, BI_OR) && !bi_at(p, k, BI_VERSUS) && !bi_at(p, k, BI_THAN) &&
            !bi_at(p, k, BI_OF) && !bi_at(p, k, BI_TO))
            return false;
        joined = joined || !bi_at(p, k, BI_OF);
    }
    for (size_t k = p->it[i]->to; !joined && k < p->it[j]->from; k++)
        joined = strpbrk(p->r.tokens.at[k].text, ",;/、，") != NULL;
    return joined;
}

/* ---- the plan ---- */

void bi_trouble(struct bi_planner *p, const char *key, const char *name, const char *value)
{
    if (p->plan->trouble)
        return;
    struct str text = STR_INIT(64 << 10);
    bi_say(&text, p->x, p->plan->language, key, (const char *const[]){ name, value, NULL });
    p->plan->trouble = str_take(&text);
}

void bi_note(struct bi_planner *p, const char *key, const char *name, const char *value)
{
    struct str text = STR_INIT(64 << 10);
    bi_say(&text, p->x, p->plan->language, key, (const char *const[]){ name, value, NULL });
    autofree char *note = str_take(&text);
    for (size_t i = 0; i < p->plan->note_n; i++)
        if (strcmp(p->plan->notes[i], note) == 0)
            return;
    if (p->plan->note_n < BI_PLAN_NOTES)
        p->plan->notes[p->plan->note_n++] = take(note);
}

struct bi_filter *bi_add_filter(struct bi_planner *p, enum bi_filter_type type, const struct bi_column *c)
{
    static struct bi_filter spare; /* over the limit: the plan is refused, nobody reads it */
    if (p->plan->filter_n == BI_PLAN_FILTERS) {
        bi_trouble(p, "too_much", "", "");
        return &spare;
    }
    struct bi_filter *f = &p->plan->filters[p->plan->filter_n++];
    *f = (struct bi_filter){ .type = type, .column = c };
    return f;
}

void bi_add_measure(struct bi_planner *p, enum bi_measure_type type, enum bi_sense stat, const struct bi_column *c)
{
    for (size_t i = 0; i < p->plan->measure_n; i++) {
        const struct bi_measure *m = &p->plan->measures[i];
        if (m->type == type && m->stat == stat && m->column == c)
            return;
    }
    if (p->plan->measure_n == BI_PLAN_MEASURES) {
        bi_trouble(p, "too_much", "", "");
        return;
    }
    p->plan->measures[p->plan->measure_n++] = (struct bi_measure){ .type = type, .stat = stat, .column = c };
}

bool bi_has_group(const struct bi_planner *p, const struct bi_column *c)
{
    for (size_t i = 0; i < p->plan->group_n; i++)
        if (p->plan->groups[i].column == c)
            return true;
    return false;
}

void bi_add_group(struct bi_planner *p, const struct bi_column *c, enum bi_sense period)
{
    if (c && bi_has_group(p, c))
        return;
    if (p->plan->group_n == 2) {
        bi_trouble(p, "too_many_groups", "", "");
        return;
    }
    p->plan->groups[p->plan->group_n++] = (struct bi_group){ .column = c, .period = period };
}

void bi_add_column(struct bi_planner *p, const struct bi_column *c)
{
    for (size_t i = 0; i < p->plan->column_n; i++)
        if (p->plan->columns[i] == c)
            return;
    if (p->plan->column_n < BI_PLAN_COLUMNS)
        p->plan->columns[p->plan->column_n++] = c;
    else
        bi_trouble(p, "too_much", "", "");
}

struct bi_filter bi_flag_filter(const struct bi_column *c, bool yes)
{
    struct bi_filter f = { .type = BI_FILTER_VALUES, .column = c, .negated = !yes, .value_n = 1 };
    f.values[0] = c->yes;
    for (size_t i = 0; !yes && i < c->value_n; i++)
        if (c->values[i].text != c->yes.text) { /* no is a value of its own: missing is neither */
            f.values[0] = c->values[i];
            f.negated = false;
        }
    return f;
}

void bi_use_flag(struct bi_planner *p, size_t i, const struct bi_column *c)
{
    (void)bi_take_column(p, i, BI_WANT_FLAG);
    struct bi_filter yes = bi_flag_filter(c, true);
    yes.at = i;
    yes.placed = true;
    for (size_t k = 0; k < p->plan->filter_n; k++) { /* "how many survived and how many died" */
        struct bi_filter *f = &p->plan->filters[k];
        if (f->column != c || f->type != BI_FILTER_VALUES || f->negated || f->value_n == BI_FILTER_VALUES_MAX)
            continue;
        f->values[f->value_n++] = yes.values[0];
        f->both = true;
        return;
    }
    *bi_add_filter(p, BI_FILTER_VALUES, c) = yes;
}

bool bi_measure_is_share(const struct bi_measure *m)
{
    return m->type == BI_MEASURE_CONDITION || m->stat == BI_RATE;
}

/* ---- columns ---- */

static bool wanted(const struct bi_column *c, enum bi_want want)
{
    switch (want) {
    case BI_WANT_ANY: return true;
    case BI_WANT_NUMBER: return bi_column_numeric(c) || c->type == BI_TYPE_BOOL;
    case BI_WANT_GROUP: return bi_column_grouping(c);
    case BI_WANT_FLAG: return bi_column_flag(c);
    }
    return true;
}

bool bi_is_column(const struct bi_planner *p, size_t i)
{
    return bi_open(p, i) && p->it[i]->kind == BI_ITEM_COLUMN;
}

static void ask_which(struct bi_planner *p, const struct bi_item *item, const struct bi_column_match *const *fits,
                      size_t n)
{
    struct str names = STR_INIT(16 << 10);
    autofree char *words = bi_item_words(&p->r, item);
    for (size_t i = 0; i < n; i++) {
        str_puts(&names, i ? i + 1 == n ? bi_text(p->x, p->plan->language, "or") : ", " : "");
        str_printf(&names, "`%s`", fits[i]->column->name);
    }
    autofree char *list = str_take(&names);
    if (p->plan->trouble)
        return;
    struct str text = STR_INIT(32 << 10);
    bi_say(&text, p->x, p->plan->language, "ask_column",
           (const char *const[]){ "words", words, "columns", list, NULL });
    p->plan->trouble = str_take(&text);
    p->plan->asks = true;
}

/* Matches of the chosen table that fit about as well as its best one. */
static size_t best_matches(const struct bi_planner *p, const struct bi_item *item, const struct bi_column_match **fits)
{
    size_t n = 0;
    size_t table = (size_t)(p->table - p->t->at);
    for (size_t k = 0; k < item->column_n; k++) {
        const struct bi_column_match *m = &item->columns[k];
        if (m->column->table != table)
            continue;
        if (n && (m->score < fits[0]->score - 0.045 || (fits[0]->whole && !m->whole)))
            break;
        fits[n++] = m;
    }
    return n;
}

static bool is_thing(const struct bi_planner *p, const struct bi_item *i)
{
    return i->topic >= 0 && bi_lexicon_concept(p->x, i->topic)->thing;
}

static const struct bi_column_match *choose(struct bi_planner *p, size_t i, enum bi_want want)
{
    const struct bi_column_match *fits[BI_MATCHES_MAX], *good[BI_MATCHES_MAX];
    size_t n = best_matches(p, p->it[i], fits), good_n = 0;
    for (size_t k = 0; k < n; k++)
        if (wanted(fits[k]->column, want))
            good[good_n++] = fits[k];
    if (good_n == 1 || (good_n > 1 && good[0]->score > 0.985))
        return good[0];
    if (n == 1)
        return fits[0];
    for (size_t k = 0; k < n && is_thing(p, p->it[i]); k++)
        if (fits[k]->column->role == BI_ROLE_ID)
            return fits[k]; /* "orders": order_id rather than order_date */
    if (n > 1)
        ask_which(p, p->it[i], good_n ? good : fits, good_n ? good_n : n);
    return NULL;
}

const struct bi_column *bi_column_at(struct bi_planner *p, size_t i, enum bi_want want)
{
    if (i >= p->n || !p->it[i]->column_n)
        return NULL;
    const struct bi_column_match *m = choose(p, i, want);
    return m ? m->column : NULL;
}

const struct bi_column *bi_take_column(struct bi_planner *p, size_t i, enum bi_want want)
{
    if (i >= p->n || !p->it[i]->column_n)
        return NULL;
    const struct bi_column_match *m = choose(p, i, want);
    if (!m)
        return NULL;
    if (m->like > BI_LIKE_PLURAL || !m->whole) {
        autofree char *words = bi_item_words(&p->r, p->it[i]);
        autofree char *pair = xasprintf("\"%s\" → `%s`", words, m->column->name);
        bi_note(p, "pair", "pair", pair);
    }
    bi_use(p, i);
    return m->column;
}

const struct bi_column *bi_bound_column(const struct bi_planner *p, const struct bi_phrase *bound)
{
    bool number = bound && bound->type != BI_PHRASE_COMPLEMENT;
    for (size_t i = 0; bound && bound->concepts[i] >= 0; i++)
        for (size_t k = 0; k < p->table->column_n; k++) {
            const struct bi_column *c = &p->table->columns[k];
            if (bi_column_about(c, bound->concepts[i]) && (!number || bi_column_numeric(c) || c->type == BI_TYPE_DATE))
                return c;
        }
    return NULL;
}

static bool of_kind(const struct bi_planner *p, const struct bi_column *c, bool additive)
{
    for (size_t u = 0; u <= c->unit_n; u++) {
        const int *list = u < c->unit_n ? c->units[u].concepts : c->concepts;
        for (size_t i = 0; list[i] >= 0; i++) {
            const struct bi_concept *k = bi_lexicon_concept(p->x, list[i]);
            if (additive ? k->additive : k->intensive)
                return true;
        }
    }
    return false;
}

const struct bi_column *bi_counted_column(const struct bi_planner *p)
{
    const struct bi_column *found = NULL;
    for (size_t i = 0; i < p->table->column_n; i++) {
        const struct bi_column *c = &p->table->columns[i];
        bool counted = p->table->headless;
        for (size_t k = 0; c->concepts[k] >= 0; k++)
            counted = counted || bi_lexicon_concept(p->x, c->concepts[k])->stands_for;
        if (c->role == BI_ROLE_ID && c->distinct + c->nulls >= p->table->rows)
            return NULL; /* each row is one thing of its own */
        if (!counted || c->role != BI_ROLE_MEASURE || !c->whole)
            continue;
        if (found)
            return NULL;
        found = c;
    }
    return found;
}

bool bi_is_additive(const struct bi_planner *p, const struct bi_column *c)
{
    return of_kind(p, c, true);
}

bool bi_is_intensive(const struct bi_planner *p, const struct bi_column *c)
{
    return of_kind(p, c, false);
}

/* A word for what a row is: an id is called so, or a measure has it in its name and it is a thing: bills, but not
 * salaries. */
bool bi_is_entity(const struct bi_planner *p, size_t i)
{
    if (i >= p->n || p->it[i]->kind != BI_ITEM_COLUMN)
        return false;
    const struct bi_column_match *fits[BI_MATCHES_MAX];
    size_t n = best_matches(p, p->it[i], fits);
    bool id = false, part = is_thing(p, p->it[i]);
    for (size_t k = 0; k < n; k++) {
        id = id || fits[k]->column->role == BI_ROLE_ID;
        part = part && !fits[k]->whole && bi_column_numeric(fits[k]->column);
    }
    return n && (id || part);
}

/* ---- the whole ---- */

static bool is_filler(const struct bi_item *i)
{
    return i->kind == BI_ITEM_SENSE && i->sense_n == 1 && i->senses[0] == BI_FILLER;
}

static void list_items(struct bi_planner *p)
{
    free(p->it);
    p->it = xcalloc(p->r.n + 1, sizeof(struct bi_item *));
    p->n = 0;
    for (size_t i = 0; i < p->r.n; i++)
        if (!is_filler(&p->r.items[i]) && p->r.items[i].kind != BI_ITEM_FILE)
            p->it[p->n++] = &p->r.items[i];
}

void bi_plan_make(struct bi_plan *out, const struct bi_lexicon *x, struct bi_tables *t, const char *request,
                  size_t table)
{
    *out = (struct bi_plan){ 0 };
    struct bi_planner p = { .x = x, .t = t, .plan = out, .bound_at = SIZE_MAX };
    bi_read(&p.r, x, t, request);
    out->language = p.r.language;
    if (p.r.tokens.foreign && !p.r.tokens.chinese)
        bi_trouble(&p, "foreign", "", "");
    if (table < t->n)
        out->table = table;
    else if (t->n)
        bi_plan_choose_table(&p);
    else
        bi_trouble(&p, "no_table", "", "");
    list_items(&p);
    if (t->n) {
        p.table = &t->at[out->table];
        static void (*const passes[])(struct bi_planner *) = { bi_plan_settle, bi_plan_dates,  bi_plan_numbers,
                                                               bi_plan_values, bi_plan_groups, bi_plan_measures,
                                                               bi_plan_recipe };
        for (size_t i = 0; i < countof(passes); i++)
            passes[i](&p);
    } else {
        out->answers = bi_plan_is_small_talk(&p);
    }
    free(p.it);
    bi_reading_clear(&p.r);
}

void bi_plan_clear(struct bi_plan *p)
{
    for (size_t i = 0; i < p->filter_n; i++)
        free(p->filters[i].text);
    for (size_t i = 0; i < p->condition_n; i++)
        free(p->conditions[i].text);
    for (size_t i = 0; i < p->note_n; i++)
        free(p->notes[i]);
    for (size_t i = 0; i < p->look_up_n; i++)
        free(p->look_up[i]);
    free(p->look_up);
    free(p->trouble);
    *p = (struct bi_plan){ 0 };
}
