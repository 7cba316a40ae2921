/* plan_settle.c - words that could be two things become one of them, by what stands beside them. */
#include "planner.h"
#include <string.h>

static bool in_scope(const struct bi_planner *p, const struct bi_column *c)
{
    return c->table == (size_t)(p->table - p->t->at);
}

/* Matches of other tables go. */
static void narrow(const struct bi_planner *p, struct bi_item *i)
{
    size_t n = 0;
    for (size_t k = 0; k < i->column_n; k++)
        if (in_scope(p, i->columns[k].column))
            i->columns[n++] = i->columns[k];
    i->column_n = n;
    n = 0;
    for (size_t k = 0; k < i->value_n; k++)
        if (in_scope(p, i->values[k].column))
            i->values[n++] = i->values[k];
    i->value_n = n;
    bool lost = (i->kind == BI_ITEM_COLUMN && !i->column_n) || (i->kind == BI_ITEM_VALUE && !i->value_n);
    if (!lost)
        return;
    i->kind = i->column_n     ? BI_ITEM_COLUMN
              : i->value_n    ? BI_ITEM_VALUE
              : i->bound      ? BI_ITEM_BOUND
              : i->has_number ? BI_ITEM_NUMBER
              : i->sense_n    ? BI_ITEM_SENSE
              : i->topic >= 0 ? BI_ITEM_ABSENT
                              : BI_ITEM_UNKNOWN;
}

/* The sense of a section that a word has besides, BI_NONE: none. */
static enum bi_sense sense_in(const struct bi_item *i, const char *section)
{
    for (size_t k = 0; k < i->sense_n; k++)
        if (strcmp(bi_sense_section(i->senses[k]), section) == 0)
            return i->senses[k];
    return BI_NONE;
}

static bool asks_for_column(const struct bi_planner *p, size_t i)
{
    return bi_at(p, i, BI_BY) || bi_at(p, i, BI_EACH) || bi_at(p, i, BI_WHICH) || bi_is_stat(p, i);
}

static bool can_be_measured(const struct bi_planner *p, size_t i)
{
    i = bi_skip(p, i);
    return i < p->n && (p->it[i]->kind == BI_ITEM_COLUMN || bi_at(p, i, BI_ROW) || bi_at(p, i, BI_PERSON));
}

/* "order by price": a sort, though there is a column "order". */
static bool verb_like(const struct bi_planner *p, size_t i)
{
    return bi_item_is(p->it[i], BI_SORT) && bi_at(p, i + 1, BI_BY);
}

/* A column's very name that is also a word of the lexicon. */
static bool keeps_column(const struct bi_planner *p, size_t i)
{
    const struct bi_item *it = p->it[i];
    bool before = i > 0 && (asks_for_column(p, i - 1) || bi_is_stat(p, bi_skip_back(p, i - 1)));
    bool exact = it->columns[0].score >= 0.985;
    if (it->sense_n == 0)
        return true;
    if (it->columns[0].column->type == BI_TYPE_DATE && sense_in(it, "period") != BI_NONE && !bi_item_is(it, BI_DAY))
        return false;
    if (sense_in(it, "period") != BI_NONE || sense_in(it, "rows") != BI_NONE)
        return true;
    if (sense_in(it, "filler") != BI_NONE || sense_in(it, "logic") != BI_NONE)
        return before && exact;
    bool counts =
        sense_in(it, "aggregate") != BI_NONE || sense_in(it, "order") != BI_NONE || sense_in(it, "ask") != BI_NONE;
    if (counts)
        return exact && (before || !can_be_measured(p, i + 1));
    return (exact || before) && !verb_like(p, i);
}

static bool has_direction(const struct bi_planner *p)
{
    return bi_has(p, BI_ASCENDING) || bi_has(p, BI_DESCENDING);
}

/* "orders" where there is an order_id: things, and no request to sort; "type" behind "by"; "date" beside a statistic. */
static bool is_noun(const struct bi_planner *p, size_t i)
{
    const struct bi_item *it = p->it[i];
    bool near = it->columns[0].score >= 0.69;
    if (bi_item_is(it, BI_SORT)) {
        const struct bi_token *k = &p->r.tokens.at[it->from];
        bool plural = strcmp(k->text, k->stem) != 0;
        return near && (plural || (!bi_at(p, i + 1, BI_BY) && !has_direction(p)));
    }
    if (bi_item_is(it, BI_UNIT) && !bi_kind_at(p, i - 1, BI_ITEM_NUMBER))
        return near;
    if (bi_item_is(it, BI_DAY) && it->columns[0].column->type == BI_TYPE_DATE)
        return bi_is_stat(p, i - 1) || bi_is_stat(p, i + 1) || bi_at(p, i - 1, BI_LATEST) ||
               bi_at(p, i - 1, BI_EARLIEST);
    return near && sense_in(it, "recipe") != BI_NONE && i > 0 && asks_for_column(p, i - 1);
}

static bool beside_its_column(const struct bi_planner *p, size_t i)
{
    for (size_t k = 0; k < p->it[i]->value_n; k++) {
        const struct bi_column *c = p->it[i]->values[k].column;
        for (int step = -1; step <= 1; step += 2) {
            size_t at = step < 0 ? bi_skip_back(p, i - 1) : i + 1;
            if (step < 0 && bi_at(p, at, BI_EQUAL))
                at--;
            for (size_t m = 0; at < p->n && m < p->it[at]->column_n; m++)
                if (p->it[at]->columns[m].column == c)
                    return true;
        }
    }
    return false;
}

/* Letter for letter a value of the data, in capitals that no sentence asks for: IT, Online, May. */
static bool as_written(const struct bi_planner *p, size_t i)
{
    const struct bi_item *it = p->it[i];
    const struct bi_token *first = &p->r.tokens.at[it->from], *last = &p->r.tokens.at[it->to - 1];
    const char *asked = p->r.text + first->from;
    const size_t n = last->to - first->from;
    size_t large = 0;
    for (size_t k = 0; k < n; k++)
        large += asked[k] >= 'A' && asked[k] <= 'Z';
    if (large < (it->from ? 1 : 2) || !strpbrk(p->r.text, "abcdefghijklmnopqrstuvwxyz"))
        return false;
    for (size_t k = 0; k < it->value_n; k++)
        if (strlen(it->values[k].value->text) == n && !memcmp(it->values[k].value->text, asked, n))
            return true;
    return false;
}

/* A word for what nobody can do ("online") that the data has as a value. */
static bool only_cannot(const struct bi_item *it)
{
    for (size_t k = 0; k < it->sense_n; k++)
        if (strcmp(bi_sense_section(it->senses[k]), "cannot") != 0)
            return false;
    return it->values[0].score >= 1;
}

static bool keeps_value(const struct bi_planner *p, size_t i)
{
    const struct bi_item *it = p->it[i];
    bool only_vague = true;
    for (size_t k = 0; k < it->sense_n; k++)
        only_vague = only_vague && (it->senses[k] == BI_UNIT || it->senses[k] == BI_ROW || it->senses[k] == BI_VALUE ||
                                    (it->senses[k] == BI_NTH && !bi_is_extreme(p, i + 1)));
    return beside_its_column(p, i) || (only_vague && it->values[0].score > 0.45) || only_cannot(it) || as_written(p, i);
}

/* A file without a header: a word for amounts can only mean its one column of numbers. */
static void bind_headless(struct bi_planner *p, struct bi_item *it)
{
    if (!p->table->headless || it->kind != BI_ITEM_ABSENT || it->topic < 0 ||
        !bi_lexicon_concept(p->x, it->topic)->counted)
        return;
    const struct bi_column *c = bi_counted_column(p);
    if (!c)
        return;
    it->columns[0] = (struct bi_column_match){ .column = c, .score = 0.8, .like = BI_LIKE_MEANING, .whole = true };
    it->column_n = 1;
    it->kind = BI_ITEM_COLUMN;
}

static void settle_item(struct bi_planner *p, size_t i)
{
    struct bi_item *it = p->it[i];
    if (it->kind == BI_ITEM_VALUE && !keeps_value(p, i))
        it->kind = it->column_n  ? BI_ITEM_COLUMN
                   : it->bound   ? BI_ITEM_BOUND
                   : it->sense_n ? BI_ITEM_SENSE
                                 : BI_ITEM_VALUE;
    if (it->kind == BI_ITEM_COLUMN && !keeps_column(p, i))
        it->kind = BI_ITEM_SENSE;
    if (it->kind == BI_ITEM_SENSE && it->column_n && is_noun(p, i))
        it->kind = BI_ITEM_COLUMN;
    bool period_column = it->kind == BI_ITEM_SENSE && sense_in(it, "period") != BI_NONE && it->column_n &&
                         it->columns[0].score >= 0.69 && it->columns[0].column->type != BI_TYPE_DATE;
    if (period_column)
        it->kind = BI_ITEM_COLUMN;
    if (it->kind == BI_ITEM_BOUND && !bi_bound_column(p, it->bound))
        it->kind = it->sense_n ? BI_ITEM_SENSE : BI_ITEM_ABSENT;
    bind_headless(p, it);
    if (it->kind == BI_ITEM_SENSE && it->sense_n > 1)
        for (size_t k = 0; k < it->sense_n; k++)
            if (it->senses[k] == BI_FILLER) /* it means something: no filler */
                it->senses[k] = it->senses[--it->sense_n];
}

/* A word of the lexicon that was read from a typing error is said. */
static void note_typo(struct bi_planner *p, const struct bi_item *i)
{
    if (!i->typo || !i->near)
        return;
    autofree char *words = bi_item_words(&p->r, i);
    autofree char *pair = xasprintf("\"%s\" → \"%s\"", words, i->near->tokens.at[0].text);
    bi_note(p, "pair", "pair", pair);
}

/* A dash is a range between numbers and nothing elsewhere. */
static bool idle_dash(const struct bi_planner *p, size_t i)
{
    const struct bi_item *it = p->it[i];
    bool mark = bi_item_is(it, BI_TO) && p->r.tokens.at[it->from].type == BI_TOKEN_MARK;
    return mark && !(i > 0 && p->it[i - 1]->has_number && bi_kind_at(p, i + 1, BI_ITEM_NUMBER)) &&
           !(i > 0 && p->it[i - 1]->kind == BI_ITEM_SENSE && bi_item_is(p->it[i - 1], BI_YEAR));
}

static void drop_fillers(struct bi_planner *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        p->it[i]->used = p->it[i]->used || idle_dash(p, i);
    for (size_t i = 0; i < p->n; i++) {
        const struct bi_item *it = p->it[i];
        bool filler = it->kind == BI_ITEM_SENSE && it->sense_n == 1 && it->senses[0] == BI_FILLER;
        if (!filler && !it->used)
            p->it[n++] = p->it[i];
    }
    p->n = n;
}

static bool number_column_at(struct bi_planner *p, size_t i)
{
    const struct bi_column *c = bi_kind_at(p, i, BI_ITEM_COLUMN) ? p->it[i]->columns[0].column : NULL;
    return c && bi_column_numeric(c) && p->it[i]->columns[0].whole;
}

/* "AAPL price", "price of AAPL", 数学成绩: there is no column of prices, and the word only says what AAPL is. Noted. */
static void take_natures(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++) {
        struct bi_item *it = p->it[i];
        if (it->kind != BI_ITEM_ABSENT || it->topic < 0 || !bi_lexicon_concept(p->x, it->topic)->nature)
            continue;
        size_t after = bi_at(p, i + 1, BI_OF) ? i + 2 : SIZE_MAX, before = i ? i - 1 : SIZE_MAX;
        while (p->plan->language == BI_ZH && bi_at(p, before, BI_OF))
            before--;
        size_t at = number_column_at(p, before) ? before : number_column_at(p, after) ? after : SIZE_MAX;
        if (at == SIZE_MAX)
            continue;
        autofree char *words = bi_item_words(&p->r, it);
        bi_note(p, "nature", "words", words);
        it->used = true;
    }
}

/* "first and second class": the ordinal before the list means a class too. */
static void take_ordinals(struct bi_planner *p)
{
    for (size_t i = 0; i + 2 < p->n; i++) {
        struct bi_item *it = p->it[i];
        const struct bi_item *next = p->it[i + 2];
        bool ordinal = bi_at(p, i, BI_FIRST) || bi_at(p, i, BI_NTH) ||
                       (it->kind == BI_ITEM_NUMBER && it->suffix == BI_SUFFIX_ORDINAL);
        bool listed = bi_at(p, i + 1, BI_AND) || bi_at(p, i + 1, BI_OR) || bi_at(p, i + 1, BI_VERSUS);
        if (!ordinal || !listed || next->kind != BI_ITEM_VALUE || !next->values[0].value->is_number)
            continue;
        const struct bi_column *c = next->values[0].column;
        double n = it->kind == BI_ITEM_NUMBER ? it->number : bi_at(p, i, BI_NTH) ? it->ordinal : 1;
        for (size_t k = 0; k < c->value_n; k++)
            if (c->values[k].is_number && c->values[k].number == n) {
                it->kind = BI_ITEM_VALUE;
                it->values[0] = (struct bi_value_match){ c, &c->values[k], 0.9 };
                it->value_n = 1;
                it->sense_n = 0;
            }
    }
}

void bi_plan_settle(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++)
        narrow(p, p->it[i]);
    for (size_t i = 0; i < p->n; i++)
        settle_item(p, i);
    take_natures(p);
    drop_fillers(p);
    take_ordinals(p);
    for (size_t i = 0; i < p->n; i++)
        note_typo(p, p->it[i]);
}
