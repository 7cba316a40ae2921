/* plan_numbers.c - numbers and dates of a request: comparisons, ranges, years, "class 3". */
#include "planner.h"
#include <math.h>
#include <string.h>

bool bi_is_number(const struct bi_planner *p, size_t i)
{
    return bi_open(p, i) && p->it[i]->kind == BI_ITEM_NUMBER;
}

static bool is_date(const struct bi_planner *p, size_t i)
{
    return bi_open(p, i) && p->it[i]->kind == BI_ITEM_DATE;
}

static bool is_unit(const struct bi_planner *p, size_t i)
{
    return bi_open_at(p, i, BI_UNIT) || bi_open_at(p, i, BI_UNIT_AGE);
}

size_t bi_past_units(struct bi_planner *p, size_t i)
{
    while (is_unit(p, i)) {
        bi_use(p, i);
        i++;
    }
    return i;
}

/* ---- years ---- */

static const struct bi_column *year_column(const struct bi_planner *p)
{
    for (size_t i = 0; i < p->table->time_n; i++) {
        const struct bi_column *c = bi_table_named(p->table, p->table->time_columns[i]);
        if (c && (c->role == BI_ROLE_YEAR || c->type == BI_TYPE_DATE))
            return c;
    }
    return NULL;
}

static bool year_like(const struct bi_planner *p, size_t i)
{
    const struct bi_item *it = i < p->n ? p->it[i] : NULL;
    return it && it->kind == BI_ITEM_NUMBER && (it->suffix == BI_SUFFIX_NONE || it->suffix == BI_SUFFIX_DECADE) &&
           it->number == floor(it->number) && it->number >= 1500 && it->number <= 2200;
}

/* 年 behind a number, whether or not the table has a column of years. */
static bool is_year_mark(const struct bi_planner *p, size_t i)
{
    return bi_open_at(p, i, BI_YEAR) ||
           (bi_kind_at(p, i, BI_ITEM_COLUMN) && bi_open(p, i) && bi_item_is(p->it[i], BI_YEAR));
}

static size_t past_year_mark(struct bi_planner *p, size_t i)
{
    if (is_year_mark(p, i)) {
        bi_use(p, i);
        i++;
    }
    return i;
}

static void check_years(struct bi_planner *p, const struct bi_column *c, double low, double high)
{
    if (isnan(c->min) || isnan(c->max) || (low <= c->max && high >= c->min))
        return;
    autofree char *range = xasprintf("%.0f–%.0f", c->min, c->max);
    bi_trouble(p, "no_such_year", "range", range);
}

static struct bi_filter *year_filter(struct bi_planner *p)
{
    const struct bi_column *c = year_column(p);
    if (!c) {
        bi_trouble(p, "no_time", "", "");
        return NULL;
    }
    for (size_t i = 0; i < p->plan->filter_n; i++) {
        struct bi_filter *f = &p->plan->filters[i];
        bool years = f->type == BI_FILTER_RANGE || (f->type == BI_FILTER_PART && f->part == BI_YEAR);
        if (f->column == c && years && !f->negated)
            return f;
    }
    struct bi_filter *f = bi_add_filter(p, c->type == BI_TYPE_DATE ? BI_FILTER_PART : BI_FILTER_RANGE, c);
    f->part = BI_YEAR;
    return f;
}

/* ---- a column for a number ---- */

static bool plausible(const struct bi_column *c, double n)
{
    double span = c->max - c->min;
    return isnan(span) || (n >= c->min - span && n <= c->max + span);
}

/* The column that stands before index i: "fare above", "票价 大于". */
static size_t column_before(const struct bi_planner *p, size_t i)
{
    i = bi_skip_back(p, i - 1);
    while (bi_at(p, i, BI_EQUAL) || bi_at(p, i, BI_NOT))
        i = bi_skip_back(p, i - 1);
    return i < p->n && p->it[i]->kind == BI_ITEM_COLUMN ? i : SIZE_MAX;
}

static bool numeric_at(struct bi_planner *p, size_t i)
{
    if (i >= p->n || p->it[i]->kind != BI_ITEM_COLUMN)
        return false;
    const struct bi_column *c = bi_column_at(p, i, BI_WANT_NUMBER);
    return c && c->type == BI_TYPE_NUMBER && c->role != BI_ROLE_ID;
}

/* "women over 60", "passengers under 18": of people, a bare number is their age. */
static const struct bi_column *age_of_people(struct bi_planner *p, size_t from, double n)
{
    static const char *const people[] = {
        "passenger", "customer", "employee", "student", "patient", "user", "survived"
    };
    const struct bi_column *age = bi_table_find(p->table, bi_lexicon_concept_id(p->x, "age"));
    size_t before = bi_skip_back(p, from - 1);
    if (before >= p->n || !age || !bi_column_numeric(age) || n < 0 || n > 120)
        return NULL;
    const struct bi_item *it = p->it[before];
    bool person = bi_at(p, before, BI_PERSON) || bi_at(p, before, BI_WHO) || it->holder;
    for (size_t i = 0; i < countof(people); i++)
        person = person || (it->topic >= 0 && it->topic == bi_lexicon_concept_id(p->x, people[i]));
    person = person || (it->kind == BI_ITEM_VALUE && it->named >= 0 &&
                        bi_lexicon_value(p->x, it->named)->topic == bi_lexicon_concept_id(p->x, "sex"));
    return person ? age : NULL;
}

/* from, to: the items of the comparison itself; years: the numbers may be years, so that a column has to hold them to
 * be meant. Uses the item of the column. */
static const struct bi_column *column_for(struct bi_planner *p, size_t from, size_t to, double n, bool years)
{
    for (size_t i = from; i < to; i++) {
        bool age = bi_at(p, i, BI_UNIT_AGE);
        int topic = age ? bi_lexicon_concept_id(p->x, "age") : -1;
        const struct bi_column *c =
            p->it[i]->bound ? bi_bound_column(p, p->it[i]->bound) : bi_table_find(p->table, topic);
        size_t named = column_before(p, from);
        if (c && named < p->n && bi_column_at(p, named, BI_WANT_NUMBER) == c)
            bi_use(p, named);
        if (c)
            return c;
    }
    size_t before = column_before(p, from), after = bi_skip(p, to);
    const struct bi_column *holds = years && numeric_at(p, before) ? bi_column_at(p, before, BI_WANT_NUMBER) : NULL;
    if (years)
        return holds && n >= holds->min && n <= holds->max ? bi_take_column(p, before, BI_WANT_NUMBER) : NULL;
    if (numeric_at(p, before) && plausible(bi_column_at(p, before, BI_WANT_NUMBER), n))
        return bi_take_column(p, before, BI_WANT_NUMBER);
    if (numeric_at(p, after) && bi_open(p, after) && plausible(bi_column_at(p, after, BI_WANT_NUMBER), n))
        return bi_take_column(p, after, BI_WANT_NUMBER);
    const struct bi_column *age = age_of_people(p, from, n);
    if (age)
        bi_note(p, "number_is_age", "column", age->name);
    return age;
}

static void ask_of_which(struct bi_planner *p, size_t from, size_t to)
{
    struct str words = STR_INIT(8 << 10);
    size_t a = p->r.tokens.at[p->it[from]->from].from, b = p->r.tokens.at[p->it[to - 1]->to - 1].to;
    str_add(&words, p->r.text + a, b - a);
    autofree char *text = str_take(&words);
    bi_trouble(p, "of_which", "words", text);
    p->plan->asks = true;
}

static void use_all(struct bi_planner *p, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        bi_use(p, i);
}

/* ---- comparisons ---- */

static const struct {
    enum bi_sense sense;
    bool low, open; /* a lower bound; without the bound itself */
    bool temporal;
} comparisons[] = {
    { BI_ABOVE, true, true, false },     { BI_BELOW, false, true, false }, { BI_AT_LEAST, true, false, false },
    { BI_AT_MOST, false, false, false }, { BI_SINCE, true, false, true },  { BI_AFTER, true, true, true },
    { BI_BEFORE, false, true, true },    { BI_UNTIL, false, false, true }, { BI_FROM, true, false, true },
    { BI_TO, false, false, true },
};

static size_t comparison_at(const struct bi_planner *p, size_t i)
{
    const struct bi_phrase *bound = bi_kind_at(p, i, BI_ITEM_BOUND) ? p->it[i]->bound : NULL;
    for (size_t k = 0; k < countof(comparisons); k++) {
        bool by_bound = bound && bound->type == BI_PHRASE_COMPARATIVE && bound->sense == comparisons[k].sense;
        if (bi_open(p, i) && (by_bound || bi_at(p, i, comparisons[k].sense)))
            return k;
    }
    return SIZE_MAX;
}

static void set_bound(struct bi_filter *f, size_t comparison, double n)
{
    if (comparisons[comparison].low) {
        f->low = n;
        f->has_low = true;
        f->low_open = comparisons[comparison].open;
    } else {
        f->high = n;
        f->has_high = true;
        f->high_open = comparisons[comparison].open;
    }
}

/* "not over 30" is at most 30: the comparison turns round. */
static size_t turned(struct bi_planner *p, size_t from, size_t comparison)
{
    static const struct {
        enum bi_sense from, to;
    } pairs[] = { { BI_ABOVE, BI_AT_MOST }, { BI_BELOW, BI_AT_LEAST }, { BI_AT_LEAST, BI_BELOW },
                  { BI_AT_MOST, BI_ABOVE }, { BI_AFTER, BI_UNTIL },    { BI_BEFORE, BI_SINCE },
                  { BI_SINCE, BI_BEFORE },  { BI_UNTIL, BI_AFTER } };
    size_t before = from ? from - 1 : SIZE_MAX;
    if (!bi_open_at(p, before, BI_NOT) && !bi_open_at(p, before, BI_EXCEPT))
        return comparison;
    for (size_t i = 0; i < countof(pairs); i++)
        if (pairs[i].from == comparisons[comparison].sense) {
            bi_use(p, before);
            for (size_t k = 0; k < countof(comparisons); k++)
                if (comparisons[k].sense == pairs[i].to)
                    return k;
        }
    return comparison;
}

/* Right behind the limit before it, with "and" or "or" between them. */
static bool follows_bound(const struct bi_planner *p, size_t from)
{
    const size_t back = from > 1 && bi_at(p, from - 1, BI_OR) ? 2 : 1;
    return from >= back && p->bound_at == bi_skip_back(p, from - back);
}

/* "over 50 and under 100" is a range, "over 100 or under 50" what lies around one. The same side twice, and limits that leave nothing or all,
 * are no question. */
static void second_bound(struct bi_planner *p, size_t at, size_t comparison, double n)
{
    struct bi_filter *f = &p->plan->filters[p->bound_filter];
    const char *first = p->r.tokens.at[p->it[at]->from].text; /* "or under" may be one phrase, "50 or under" */
    const size_t joint = at ? at - 1 : 0;
    const bool either = bi_at(p, joint, BI_OR) || strcmp(first, "or") == 0,
               twice = comparisons[comparison].low ? f->has_low : f->has_high;
    set_bound(f, comparison, n);
    f->outside = either && !twice && f->low > f->high;
    if (f->outside && bi_at(p, joint, BI_OR))
        bi_use(p, joint);
    if (f->outside)
        return;
    if (either || twice)
        bi_trouble(p, "odd_limits", "", "");
    else if (f->low > f->high)
        bi_trouble(p, "empty_range", "", "");
}

static void compare_number(struct bi_planner *p, size_t from, size_t number, size_t to, size_t comparison)
{
    double n = p->it[number]->number;
    size_t end = past_year_mark(p, bi_past_units(p, to));
    bool yearish = year_like(p, number) && year_column(p);
    const struct bi_column *c = yearish && comparisons[comparison].temporal ? NULL : column_for(p, from, end, n, false);
    comparison = turned(p, from, comparison);
    if (c && c->role != BI_ROLE_YEAR) {
        struct bi_filter *f = bi_add_filter(p, BI_FILTER_RANGE, c);
        set_bound(f, comparison, n);
        f->at = number;
        f->placed = true;
        use_all(p, from, to);
        p->bound_at = to - 1;
        p->bound_filter = p->plan->filter_n - 1;
    } else if (yearish) {
        bool decade = p->it[number]->suffix == BI_SUFFIX_DECADE;
        struct bi_filter *f = year_filter(p);
        if (f)
            set_bound(f, comparison, decade && comparisons[comparison].low == comparisons[comparison].open ? n + 9 : n);
        use_all(p, from, to);
    } else if (follows_bound(p, from)) { /* "over 50 and under 100": of the same column */
        second_bound(p, from, comparison, n);
        use_all(p, from, to);
    } else {
        ask_of_which(p, from, end);
        use_all(p, from, to);
    }
}

/* "50 and under" includes 50; in "over 20 and under 50" the "and" is another word. */
static size_t before_number(const struct bi_planner *p, size_t i)
{
    size_t comparison = comparison_at(p, i);
    if (comparison == SIZE_MAX)
        return comparison;
    const char *first = p->r.tokens.at[p->it[i]->from].text;
    bool joined = strcmp(first, "and") == 0 || strcmp(first, "or") == 0;
    bool low = comparisons[comparison].sense == BI_AT_LEAST, high = comparisons[comparison].sense == BI_AT_MOST;
    return joined && low ? 0 : joined && high ? 1 : comparison; /* above, below */
}

static void take_comparisons(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (!bi_is_number(p, i))
            continue;
        size_t before = before_number(p, i ? i - 1 : SIZE_MAX), behind = i + 1;
        while (is_unit(p, behind) || is_year_mark(p, behind) || bi_at(p, behind, BI_OR))
            behind++;
        size_t after = comparison_at(p, behind);
        bool post = after != SIZE_MAX && (after == 2 || after == 3 || p->plan->language == BI_ZH) &&
                    !bi_is_number(p, behind + 1);
        if (before != SIZE_MAX) {
            compare_number(p, i - 1, i, i + 1, before);
        } else if (post) {
            bool aged =
                bi_open(p, i - 1) && bi_kind_at(p, i - 1, BI_ITEM_BOUND) && p->it[i - 1]->bound->sense == BI_BETWEEN;
            for (size_t k = i + 1; k < behind; k++)
                bi_use(p, k);
            compare_number(p, aged ? i - 1 : i, i, behind + 1, after); /* "aged 60 or older" */
        }
    }
}

/* ---- ranges ---- */

static bool is_joint(const struct bi_planner *p, size_t i)
{
    return bi_open_at(p, i, BI_TO) || bi_open_at(p, i, BI_AND);
}

/* "not between 10 and 20" */
static bool is_denied(const struct bi_planner *p, size_t from)
{
    return from && (bi_open_at(p, from - 1, BI_NOT) || bi_open_at(p, from - 1, BI_EXCEPT));
}

/* Its bounds are outside of it then. */
static void deny_range(struct bi_planner *p, size_t from, struct bi_filter *f)
{
    const double low = f->low;
    f->low = f->high;
    f->high = low;
    f->low_open = f->high_open = f->outside = true;
    bi_use(p, from - 1);
}

static void take_range(struct bi_planner *p, size_t from, size_t a, size_t b, size_t to)
{
    double low = p->it[a]->number, high = p->it[b]->number;
    if (low < 1000 && year_like(p, b)) { /* 1990-95 is not read */
        ask_of_which(p, from, to);
        return;
    }
    bool years = year_like(p, a) && year_like(p, b) && year_column(p);
    const struct bi_column *c = column_for(p, from, to, low, years);
    if (c && c->role != BI_ROLE_YEAR) {
        struct bi_filter *f = bi_add_filter(p, BI_FILTER_RANGE, c);
        *f = (struct bi_filter){
            .type = f->type, .column = c, .low = low, .high = high, .has_low = true, .has_high = true
        };
        if (is_denied(p, from))
            deny_range(p, from, f);
    } else if (years) {
        struct bi_filter *f = year_filter(p);
        double end = p->it[b]->suffix == BI_SUFFIX_DECADE ? high + 9 : high;
        if (f) {
            f->low = low;
            f->high = end;
            f->has_low = f->has_high = true;
            check_years(p, f->column, low, end);
        }
    } else {
        ask_of_which(p, from, to);
    }
    if (low > high)
        bi_trouble(p, "empty_range", "", "");
    use_all(p, from, to);
}

/* [between|from] 20 and|to 30 [between] */
static void take_ranges(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (!bi_is_number(p, i))
            continue;
        size_t before = i ? i - 1 : SIZE_MAX, mid = i + 1;
        bool between = bi_open_at(p, before, BI_BETWEEN) ||
                       (bi_kind_at(p, before, BI_ITEM_BOUND) && p->it[before]->bound->sense == BI_BETWEEN),
             from = bi_open_at(p, before, BI_FROM);
        while (is_unit(p, mid) || is_year_mark(p, mid))
            mid++;
        if (!is_joint(p, mid) || !bi_is_number(p, mid + 1) || p->it[mid + 1]->suffix == BI_SUFFIX_ORDINAL)
            continue;
        bool to = bi_at(p, mid, BI_TO);
        size_t end = mid + 2;
        while (is_unit(p, end) || is_year_mark(p, end))
            end++;
        bool behind = bi_open_at(p, end, BI_BETWEEN);
        if (!between && !from && !to && !behind)
            continue;
        take_range(p, between || from ? before : i, i, mid + 1, behind ? end + 1 : end);
    }
}

/* ---- single years, decades, dates ---- */

/* "except 2008", and 2009 in "except 2008 and 2009". */
static bool is_denied_year(struct bi_planner *p, size_t i, size_t denied)
{
    if (i && (bi_open_at(p, i - 1, BI_NOT) || bi_open_at(p, i - 1, BI_EXCEPT))) {
        bi_use(p, i - 1);
        return true;
    }
    const bool joined = i > 1 && (bi_at(p, i - 1, BI_AND) || bi_at(p, i - 1, BI_OR)), next = i > 0 && denied == i - 1;
    if (joined && denied == i - 2)
        bi_use(p, i - 1);
    return next || (joined && denied == i - 2);
}

static void take_years(struct bi_planner *p)
{
    size_t denied = SIZE_MAX;
    for (size_t i = 0; i < p->n; i++) {
        if (!bi_is_number(p, i) || !year_like(p, i) || !year_column(p))
            continue;
        double year = p->it[i]->number;
        bool decade = p->it[i]->suffix == BI_SUFFIX_DECADE;
        bool negated = is_denied_year(p, i, denied);
        struct bi_filter *f = negated ? NULL : year_filter(p);
        const struct bi_column *c = year_column(p);
        if (negated) {
            denied = i;
            f = bi_add_filter(p, c->type == BI_TYPE_DATE ? BI_FILTER_PART : BI_FILTER_RANGE, c);
            f->part = BI_YEAR;
            f->negated = true;
        } else if (f && f->has_low && f->has_high && (year < f->low || year > f->high)) {
            bi_trouble(p, "two_years", "", "");
        }
        if (f) {
            f->low = year;
            f->high = decade ? year + 9 : year;
            f->has_low = f->has_high = true;
            check_years(p, c, f->low, f->high);
        }
        bi_use(p, i);
        size_t before = i ? i - 1 : SIZE_MAX;
        if (before < p->n && p->it[before]->kind == BI_ITEM_COLUMN && bi_column_at(p, before, BI_WANT_ANY) == c)
            bi_use(p, before); /* "year 1990" */
        (void)past_year_mark(p, i + 1);
    }
}

static void take_dates(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (!is_date(p, i))
            continue;
        const struct bi_column *c = year_column(p);
        if (!c || c->type != BI_TYPE_DATE) {
            bi_trouble(p, "no_time", "", "");
            continue;
        }
        size_t before = i ? i - 1 : SIZE_MAX, comparison = comparison_at(p, before);
        struct bi_filter *f = NULL;
        for (size_t k = 0; k < p->plan->filter_n; k++)
            f = p->plan->filters[k].type == BI_FILTER_DATES ? &p->plan->filters[k] : f;
        f = f ? f : bi_add_filter(p, BI_FILTER_DATES, c);
        bool second = f->from[0] != '\0' && comparison == SIZE_MAX && is_joint(p, before);
        bool low = comparison == SIZE_MAX ? !second : comparisons[comparison].low;
        bool exact = comparison == SIZE_MAX && !second && !bi_open_at(p, before, BI_BETWEEN) && !is_joint(p, i + 1);
        (void)strncpy(low ? f->from : f->to, p->it[i]->text, sizeof(f->from) - 1);
        if (exact)
            (void)strncpy(f->to, p->it[i]->text, sizeof(f->to) - 1);
        if (comparison != SIZE_MAX && comparisons[comparison].open)
            *(low ? &f->low_open : &f->high_open) = true;
        if (comparison != SIZE_MAX || second || bi_open_at(p, before, BI_BETWEEN))
            bi_use(p, before);
        bi_use(p, i);
    }
}

/* ---- class 3, 3rd class, size 4, survived = 1 ---- */

static bool has_number_value(const struct bi_column *c, double n)
{
    for (size_t i = 0; i < c->value_n; i++)
        if (c->values[i].number == n && (c->values[i].is_number || c->values[i].is_bool))
            return true;
    return !c->all_values && c->type == BI_TYPE_NUMBER && plausible(c, n);
}

static bool coded(const struct bi_column *c)
{
    return c && c->type == BI_TYPE_NUMBER && c->whole && c->distinct <= 60;
}

static void equal_number(struct bi_planner *p, const struct bi_column *c, size_t number, bool negated)
{
    struct bi_filter *f = NULL;
    for (size_t i = 0; i < p->plan->filter_n; i++)
        if (p->plan->filters[i].column == c && p->plan->filters[i].type == BI_FILTER_VALUES &&
            p->plan->filters[i].negated == negated)
            f = &p->plan->filters[i];
    f = f ? f : bi_add_filter(p, BI_FILTER_VALUES, c);
    f->negated = negated;
    if (f->value_n < BI_FILTER_VALUES_MAX)
        f->values[f->value_n++] = (struct bi_value){ .is_number = true, .number = p->it[number]->number, .named = -1 };
    if (!has_number_value(c, p->it[number]->number)) {
        autofree char *words = bi_item_words(&p->r, p->it[number]);
        struct str text = STR_INIT(8 << 10);
        str_printf(&text, "`%s` %s", c->name, words);
        autofree char *both = str_take(&text);
        bi_trouble(p, "no_such_value", "value", both);
    }
    bi_use(p, number);
}

/* "class 1 or 2", "class 1 and 2": the number after one that was just taken. */
static bool extend_equal(struct bi_planner *p, size_t i)
{
    bool joined = i > 1 && (bi_open_at(p, i - 1, BI_OR) || bi_open_at(p, i - 1, BI_AND));
    struct bi_filter *f = p->plan->filter_n ? &p->plan->filters[p->plan->filter_n - 1] : NULL;
    if (!joined || !f || f->type != BI_FILTER_VALUES || !bi_kind_at(p, i - 2, BI_ITEM_NUMBER) || bi_open(p, i - 2))
        return false;
    f->both = f->both || bi_at(p, i - 1, BI_AND);
    bi_use(p, i - 1);
    equal_number(p, f->column, i, f->negated);
    return true;
}

/* "aged 60", "30 years old", 30岁 */
static bool equal_age(struct bi_planner *p, size_t i)
{
    bool aged =
        i > 0 && bi_open(p, i - 1) && bi_kind_at(p, i - 1, BI_ITEM_BOUND) && p->it[i - 1]->bound->sense == BI_BETWEEN;
    const struct bi_column *c = aged ? bi_bound_column(p, p->it[i - 1]->bound) : NULL;
    if (!aged && bi_at(p, i + 1, BI_UNIT_AGE))
        c = bi_table_find(p->table, bi_lexicon_concept_id(p->x, "age"));
    if (!c || !bi_column_numeric(c))
        return false;
    size_t named = column_before(p, i);
    if (named < p->n && bi_open(p, named) && bi_column_at(p, named, BI_WANT_NUMBER) == c)
        bi_use(p, named);
    if (aged)
        bi_use(p, i - 1);
    equal_number(p, c, i, false);
    (void)bi_past_units(p, i + 1);
    return true;
}

static void take_equals(struct bi_planner *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (!bi_is_number(p, i) || p->it[i]->suffix == BI_SUFFIX_PERCENT)
            continue;
        if (extend_equal(p, i) || equal_age(p, i))
            continue;
        size_t before = i ? i - 1 : SIZE_MAX;
        bool equal = bi_open_at(p, before, BI_EQUAL), unequal = bi_open_at(p, before, BI_UNEQUAL);
        bool negated = unequal || (equal && i > 1 && bi_open_at(p, i - 2, BI_NOT));
        size_t left =
            equal || unequal || bi_at(p, before, BI_OF) ? column_before(p, equal || unequal ? before : i) : before;
        const struct bi_column *c =
            left < p->n && p->it[left]->kind == BI_ITEM_COLUMN ? bi_column_at(p, left, BI_WANT_ANY) : NULL;
        const struct bi_column *next = bi_is_column(p, i + 1) ? bi_column_at(p, i + 1, BI_WANT_ANY) : NULL;
        bool ordinal = p->it[i]->suffix == BI_SUFFIX_ORDINAL;
        if (c && c->type == BI_TYPE_NUMBER && (equal || unequal || (coded(c) && !bi_is_extreme(p, left - 1)))) {
            (void)bi_take_column(p, left, BI_WANT_ANY);
            if (equal || unequal)
                bi_use(p, before);
            if (negated && equal)
                bi_use(p, i - 2);
            equal_number(p, c, i, negated);
        } else if (coded(next) && (ordinal || has_number_value(next, p->it[i]->number)) && !bi_is_extreme(p, before) &&
                   !bi_at(p, before, BI_FIRST) && !bi_at(p, before, BI_LAST)) {
            (void)bi_take_column(p, i + 1, BI_WANT_ANY);
            equal_number(p, next, i, i && bi_open_at(p, i - 1, BI_NOT));
        }
        (void)bi_past_units(p, i + 1);
    }
}

void bi_plan_numbers(struct bi_planner *p)
{
    bi_take_nth(p);
    bi_take_limits(p);
    take_ranges(p);
    take_comparisons(p);
    take_dates(p);
    take_equals(p);
    take_years(p);
    bi_take_late_limits(p);
}
