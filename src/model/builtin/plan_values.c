/* plan_values.c - values of a request become filters: "among women", "except Sunday", "named Mary", "in
 * March". */
#include "planner.h"
#include <string.h>

/* ---- values of the file ---- */

/* The match that fits: of its best score, and when several columns hold it, the one named beside it. */
static const struct bi_value_match *choose_value(struct bi_planner *p, size_t i)
{
    const struct bi_item *it = p->it[i];
    const struct bi_value_match *best = NULL;
    bool tie = false;
    size_t left = bi_skip_back(p, i - 1), right = i + 1;
    if (bi_at(p, left, BI_EQUAL) || bi_at(p, left, BI_UNEQUAL))
        left--;
    for (size_t k = 0; k < it->value_n; k++) {
        const struct bi_value_match *m = &it->values[k];
        bool named = (bi_kind_at(p, left, BI_ITEM_COLUMN) && bi_column_at(p, left, BI_WANT_ANY) == m->column) ||
                     (bi_kind_at(p, right, BI_ITEM_COLUMN) && bi_column_at(p, right, BI_WANT_ANY) == m->column);
        if (named)
            return m;
        if (best && m->score == best->score && m->column != best->column)
            tie = true;
        if (!best || m->score > best->score) {
            tie = false;
            best = m;
        }
    }
    if (tie) {
        autofree char *words = bi_item_words(&p->r, it);
        bi_trouble(p, "ask_value", "words", words);
        p->plan->asks = true;
    }
    return best;
}

static void use_column_beside(struct bi_planner *p, size_t i, const struct bi_column *c)
{
    size_t left = bi_skip_back(p, i - 1);
    if (bi_at(p, left, BI_EQUAL) || bi_at(p, left, BI_UNEQUAL) || bi_at(p, left, BI_NAMED)) {
        bi_use(p, left);
        left--;
    }
    size_t sides[2] = { left, i + 1 };
    for (size_t k = 0; k < 2; k++) {
        bool same = bi_is_column(p, sides[k]) && bi_column_at(p, sides[k], BI_WANT_ANY) == c;
        bool grouped = bi_at(p, sides[k] - 1, BI_BY) || bi_at(p, sides[k] - 1, BI_EACH);
        if (same && !grouped)
            bi_use(p, sides[k]);
    }
}

/* "not", "except" before the item, also past earlier values of the same list. */
static bool negated_at(struct bi_planner *p, size_t i, const struct bi_column *c)
{
    for (size_t k = i; k-- > 0;) {
        if (bi_at(p, k, BI_NOT) || bi_at(p, k, BI_EXCEPT) || bi_at(p, k, BI_UNEQUAL)) {
            bi_use(p, k);
            return true;
        }
        bool value = p->it[k]->kind == BI_ITEM_VALUE && p->it[k]->value_n && p->it[k]->values[0].column == c;
        bool column = p->it[k]->kind == BI_ITEM_COLUMN && p->it[k]->column_n && p->it[k]->columns[0].column == c;
        bool joins = bi_at(p, k, BI_AND) || bi_at(p, k, BI_OR) || bi_at(p, k, BI_AMONG) || bi_at(p, k, BI_EQUAL) ||
                     bi_at(p, k, BI_OF);
        if (!value && !column && !joins)
            return false;
    }
    return false;
}

static bool alternatives(const struct bi_planner *p, size_t i, size_t last)
{
    for (size_t k = last + 1; k < i; k++)
        if (bi_at(p, k, BI_OR))
            return true;
    return false;
}

/* "or" is understood between values of one column only: elsewhere it would be another filter than the plan's "and". */
static void use_or_between(struct bi_planner *p, size_t from, size_t to)
{
    for (size_t k = from + 1; k < to; k++)
        if (bi_at(p, k, BI_OR))
            bi_use(p, k);
}

static struct bi_filter *value_filter(struct bi_planner *p, const struct bi_column *c, bool negated)
{
    for (size_t i = 0; i < p->plan->filter_n; i++) {
        struct bi_filter *f = &p->plan->filters[i];
        if (f->type == BI_FILTER_VALUES && f->column == c && f->negated == negated)
            return f;
    }
    struct bi_filter *f = bi_add_filter(p, BI_FILTER_VALUES, c);
    f->negated = negated;
    return f;
}

static void add_value(struct bi_filter *f, const struct bi_value *v)
{
    for (size_t i = 0; i < f->value_n; i++)
        if (f->values[i].text && v->text && strcmp(f->values[i].text, v->text) == 0)
            return;
    if (f->value_n < BI_FILTER_VALUES_MAX)
        f->values[f->value_n++] = *v;
}

static void note_value(struct bi_planner *p, size_t i, const struct bi_value_match *m)
{
    if (m->score >= 0.95)
        return;
    autofree char *words = bi_item_words(&p->r, p->it[i]);
    autofree char *pair = xasprintf("\"%s\" → `%s` = %s", words, m->column->name, m->value->text);
    bi_note(p, "pair", "pair", pair);
}

static void take_values(struct bi_planner *p)
{
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < p->n; i++) {
        if (!bi_open(p, i) || p->it[i]->kind != BI_ITEM_VALUE)
            continue;
        const struct bi_value_match *m = choose_value(p, i);
        if (!m)
            continue;
        bool negated = negated_at(p, i, m->column);
        struct bi_filter *f = value_filter(p, m->column, negated);
        bool more = f->value_n > 0;
        add_value(f, m->value);
        f->at = i;
        f->placed = true;
        if (more)
            use_or_between(p, last, i);
        f->both = f->value_n > 1 && !negated && (!more || f->both || !alternatives(p, i, last));
        use_column_beside(p, i, m->column);
        note_value(p, i, m);
        bi_use(p, i);
        last = i;
    }
}

/* ---- yes and no ---- */

/* A flag column behind "not": "did not survive", "non-smokers"; any other one: rows without a value. */
static void take_negated_columns(struct bi_planner *p)
{
    for (size_t i = 0; i + 1 < p->n; i++) {
        if (!bi_open_at(p, i, BI_NOT) && !bi_open_at(p, i, BI_EXCEPT))
            continue;
        size_t at = bi_skip(p, i + 1);
        if (!bi_is_column(p, at))
            continue;
        const struct bi_column *c = bi_column_at(p, at, BI_WANT_FLAG);
        if (!c || (!bi_column_flag(c) && !bi_at(p, i, BI_NOT)))
            continue;
        (void)bi_take_column(p, at, BI_WANT_FLAG);
        bi_use(p, i);
        if (!bi_column_flag(c) && bi_column_numeric(c) && c->whole && c->min == 0) { /* "no siblings": none of them */
            struct bi_filter *none = bi_add_filter(p, BI_FILTER_VALUES, c);
            none->values[none->value_n++] = (struct bi_value){ .is_number = true, .named = -1 };
            continue;
        }
        if (!bi_column_flag(c)) {
            (void)bi_add_filter(p, BI_FILTER_MISSING, c);
            continue;
        }
        struct bi_filter no = bi_flag_filter(c, false);
        size_t before = bi_skip_back(p, i - 1);
        while (bi_at(p, before, BI_VERSUS) || bi_at(p, before, BI_OR) || bi_at(p, before, BI_THAN) ||
               bi_at(p, before, BI_TO))
            before--;
        struct bi_filter *f = value_filter(p, c, no.negated);
        f->at = at;
        f->placed = true;
        bool pair = bi_is_column(p, before) && bi_column_at(p, before, BI_WANT_FLAG) == c;
        if (pair) { /* "smokers and non-smokers" */
            bi_use(p, before);
            add_value(f, &c->yes);
            f->both = true;
        }
        add_value(f, &no.values[0]);
    }
}

/* died: the opposite of survived. */
static void take_complements(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++) {
        bool complement =
            bi_open(p, i) && p->it[i]->kind == BI_ITEM_BOUND && p->it[i]->bound->type == BI_PHRASE_COMPLEMENT;
        const struct bi_column *c = complement ? bi_bound_column(p, p->it[i]->bound) : NULL;
        if (!c || !bi_column_flag(c))
            continue;
        struct bi_filter no = bi_flag_filter(c, i && bi_open_at(p, i - 1, BI_NOT));
        if (i)
            p->it[i - 1]->used = p->it[i - 1]->used || bi_at(p, i - 1, BI_NOT);
        struct bi_filter *f = value_filter(p, c, no.negated);
        f->at = i;
        f->placed = true;
        add_value(f, &no.values[0]);
        autofree char *words = bi_item_words(&p->r, p->it[i]);
        autofree char *pair = xasprintf("\"%s\" → `%s` = %s", words, c->name, no.values[0].text);
        bi_note(p, "pair", "pair", pair);
        bi_use(p, i);
    }
}

/* ---- months, quarters, weekdays of a date ---- */

static const struct bi_column *date_column(const struct bi_planner *p)
{
    for (size_t i = 0; i < p->table->time_n; i++) {
        const struct bi_column *c = bi_table_named(p->table, p->table->time_columns[i]);
        if (c && c->type == BI_TYPE_DATE)
            return c;
    }
    return NULL;
}

static void take_parts(struct bi_planner *p)
{
    static const struct {
        const char *class;
        enum bi_sense part;
    } parts[] = { { "month", BI_MONTH }, { "quarter", BI_QUARTER }, { "weekday", BI_WEEKDAY } };
    const struct bi_column *c = date_column(p);
    for (size_t i = 0; c && i < p->n; i++) {
        if (!bi_open(p, i) || p->it[i]->named < 0 ||
            (p->it[i]->kind != BI_ITEM_ABSENT && p->it[i]->kind != BI_ITEM_COLUMN))
            continue;
        const struct bi_named_value *v = bi_lexicon_value(p->x, p->it[i]->named);
        for (size_t k = 0; k < countof(parts); k++) {
            if (strcmp(bi_lexicon_concept(p->x, v->topic)->name, parts[k].class) != 0)
                continue;
            struct bi_filter *f = bi_add_filter(p, BI_FILTER_PART, c);
            f->part = parts[k].part;
            f->low = f->high = v->order + (parts[k].part == BI_WEEKDAY ? 0 : 1);
            f->has_low = f->has_high = true;
            f->negated = negated_at(p, i, c);
            bi_use(p, i);
        }
    }
}

/* ---- texts that the person gives: named Mary, city is "Springfield" ---- */

static bool is_text(const struct bi_planner *p, size_t i)
{
    return bi_open(p, i) && (p->it[i]->kind == BI_ITEM_QUOTED || p->it[i]->kind == BI_ITEM_UNKNOWN);
}

/* The words of items [i, *end) that belong together: unknown words side by side. */
static char *text_at(struct bi_planner *p, size_t i, size_t *end)
{
    *end = i + 1;
    while (p->it[i]->kind == BI_ITEM_UNKNOWN && is_text(p, *end) && p->it[*end]->kind == BI_ITEM_UNKNOWN &&
           p->it[*end]->from == p->it[*end - 1]->to)
        (*end)++;
    if (p->it[i]->kind == BI_ITEM_QUOTED)
        return xstrdup(p->it[i]->text);
    size_t from = p->r.tokens.at[p->it[i]->from].from, to = p->r.tokens.at[p->it[*end - 1]->to - 1].to;
    return xstrndup(p->r.text + from, to - from);
}

static const struct bi_column *name_column(const struct bi_planner *p)
{
    static const char *const concepts[] = {
        "name", "first_name", "product", "customer", "employee", "student", "title"
    };
    for (size_t i = 0; i < countof(concepts); i++) {
        const struct bi_column *c = bi_table_find(p->table, bi_lexicon_concept_id(p->x, concepts[i]));
        if (c && c->type == BI_TYPE_TEXT)
            return c;
    }
    return NULL;
}

/* "Smith, Mr. John": one name is a part of it. */
static bool has_many_words(const struct bi_column *c)
{
    for (size_t i = 0; i < c->value_n; i++)
        if (strchr(c->values[i].text, ' '))
            return true;
    return false;
}

static void take_texts(struct bi_planner *p)
{
    for (size_t i = 1; i < p->n; i++) {
        if (!is_text(p, i))
            continue;
        bool named = bi_open_at(p, i - 1, BI_NAMED), contains = bi_open_at(p, i - 1, BI_CONTAINS);
        bool equal = bi_open_at(p, i - 1, BI_EQUAL) || bi_open_at(p, i - 1, BI_UNEQUAL);
        size_t left = named || contains || equal ? bi_skip_back(p, i - 2) : i - 1;
        bool column = bi_is_column(p, left) && (named || contains || equal || p->it[i]->kind == BI_ITEM_QUOTED);
        const struct bi_column *c = column ? bi_column_at(p, left, BI_WANT_ANY) : NULL;
        if (named && (!c || c->type != BI_TYPE_TEXT || c->role == BI_ROLE_ID || bi_is_entity(p, left))) {
            c = name_column(p);
            column = false;
        }
        if (!c || c->type != BI_TYPE_TEXT)
            continue;
        size_t end;
        enum bi_filter_type type = contains                     ? BI_FILTER_CONTAINS
                                   : named && has_many_words(c) ? BI_FILTER_WORD
                                                                : BI_FILTER_TEXT;
        struct bi_filter *f = bi_add_filter(p, type, c);
        f->text = text_at(p, i, &end);
        f->negated = bi_at(p, i - 1, BI_UNEQUAL);
        if (column)
            (void)bi_take_column(p, left, BI_WANT_ANY);
        for (size_t k = named || contains || equal ? i - 1 : i; k < end; k++)
            bi_use(p, k);
    }
}

void bi_plan_values(struct bi_planner *p)
{
    take_texts(p);
    take_values(p);
    take_complements(p);
    take_negated_columns(p);
    take_parts(p);
}
