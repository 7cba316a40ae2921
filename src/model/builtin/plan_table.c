/* plan_table.c - which of several files a request is about, and when two of them are joined. */
#include "planner.h"
#include <string.h>

static bool fits_table(const struct bi_item *i, size_t table)
{
    for (size_t k = 0; k < i->column_n; k++)
        if (i->columns[k].column->table == table)
            return true;
    for (size_t k = 0; k < i->value_n; k++)
        if (i->values[k].column->table == table)
            return true;
    return false;
}

static bool must_fit(const struct bi_item *i)
{
    return i->kind == BI_ITEM_COLUMN || i->kind == BI_ITEM_VALUE || i->kind == BI_ITEM_BOUND;
}

static bool fits(struct bi_planner *p, const struct bi_item *i, size_t table)
{
    if (i->kind != BI_ITEM_BOUND)
        return fits_table(i, table);
    p->table = &p->t->at[table];
    return bi_bound_column(p, i->bound) != NULL;
}

static size_t covered(struct bi_planner *p, size_t a, size_t b)
{
    size_t n = 0;
    for (size_t i = 0; i < p->r.n; i++)
        n += (size_t)(must_fit(&p->r.items[i]) && (fits(p, &p->r.items[i], a) || fits(p, &p->r.items[i], b)));
    return n;
}

/* The one table whose rows are what a word of the request is for: customers.csv for "customers". SIZE_MAX: none, or
 * two. */
static size_t owner(const struct bi_planner *p, const bool *fitting)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < p->r.n; i++) {
        const struct bi_item *it = &p->r.items[i];
        for (size_t k = 0; it->kind == BI_ITEM_COLUMN && k < it->column_n; k++) {
            const struct bi_column *c = it->columns[k].column;
            bool unique = c->role == BI_ROLE_ID && c->distinct >= p->t->at[c->table].rows;
            if (!fitting[c->table] || !unique || c->table == found)
                continue;
            if (found != SIZE_MAX)
                return SIZE_MAX;
            found = c->table;
        }
    }
    return found;
}

static size_t must_n(const struct bi_reading *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += must_fit(&r->items[i]);
    return n;
}

static bool mentions(const struct bi_reading *r, enum bi_sense s)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->items[i].kind == BI_ITEM_SENSE && bi_item_is(&r->items[i], s))
            return true;
    return false;
}

static void ask_file(struct bi_planner *p, const bool *fitting)
{
    struct str names = STR_INIT(16 << 10);
    for (size_t i = 0; i < p->t->n; i++)
        if (fitting[i])
            str_printf(&names, "%s`%s`", names.len ? ", " : "", p->t->at[i].name);
    autofree char *list = str_take(&names);
    bi_trouble(p, "ask_file", "files", list);
    p->plan->asks = true;
}

/* The files that the request names; SIZE_MAX where it names none. */
static size_t named_files(struct bi_reading *r, size_t found[2])
{
    size_t n = 0;
    found[0] = found[1] = SIZE_MAX;
    for (size_t i = 0; i < r->n; i++)
        if (r->items[i].kind == BI_ITEM_FILE && n < 2 && (n == 0 || found[0] != r->items[i].table)) {
            found[n++] = r->items[i].table;
            r->items[i].used = true;
        }
    return n;
}

static bool join_tables(struct bi_planner *p, size_t a, size_t b)
{
    const char *why = "no_key";
    int joined = mentions(&p->r, BI_JOIN) ? bi_tables_stack(p->t, a, b, &why) : -1;
    if (joined < 0)
        joined = bi_tables_join(p->t, a, b, &why);
    if (joined < 0) {
        autofree char *both = xasprintf("`%s`, `%s`", p->t->at[a].name, p->t->at[b].name);
        bi_trouble(p, why, "files", both);
        return false;
    }
    autofree char *request = xstrdup(p->r.text);
    bi_reading_clear(&p->r);
    bi_read(&p->r, p->x, p->t, request);
    size_t named[2];
    (void)named_files(&p->r, named);
    p->plan->table = (size_t)joined;
    return true;
}

/* Two tables that together hold what one alone does not. */
static bool join_for_words(struct bi_planner *p, size_t must)
{
    for (size_t a = 0; a < p->t->n; a++)
        for (size_t b = a + 1; b < p->t->n; b++)
            if (covered(p, a, b) == must)
                return join_tables(p, a, b);
    return false;
}

static void best_effort_table(struct bi_planner *p)
{
    size_t best = p->t->n - 1;
    for (size_t i = p->t->n; i-- > 0;)
        if (covered(p, i, i) > covered(p, best, best))
            best = i;
    p->plan->table = best;
}

/* Several tables, none named. */
static void choose_by_words(struct bi_planner *p)
{
    size_t must = must_n(&p->r), fit_n = 0;
    bool *fitting = xcalloc(p->t->n, sizeof(*fitting));
    for (size_t i = 0; i < p->t->n; i++) {
        fitting[i] = covered(p, i, i) == must;
        fit_n += (size_t)fitting[i];
        p->plan->table = fitting[i] ? i : p->plan->table;
    }
    size_t own = fit_n > 1 && must ? owner(p, fitting) : SIZE_MAX;
    if (own != SIZE_MAX)
        p->plan->table = own;
    else if (fit_n == 0 && !join_for_words(p, must))
        best_effort_table(p);
    else if (fit_n > 1 && must)
        ask_file(p, fitting);
    else if (fit_n > 1)
        p->plan->every_table = true;
    free(fitting);
}

void bi_plan_choose_table(struct bi_planner *p)
{
    size_t named[2], n = named_files(&p->r, named);
    p->plan->table = named[0] != SIZE_MAX ? named[0] : p->t->n - 1;
    if (n == 2 || (n == 0 && p->t->n >= 2 && mentions(&p->r, BI_JOIN)))
        (void)join_tables(p, n == 2 ? named[0] : p->t->n - 2, n == 2 ? named[1] : p->t->n - 1);
    else if (n == 0 && p->t->n > 1)
        choose_by_words(p);
}
