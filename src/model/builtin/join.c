/* join.c - two tables become one: by a shared key, or one under the other. */
#include <string.h>
#include "table.h"

struct key {
    const struct bi_column *a, *b;
    int rank; /* 3: unique on both sides, 2: on one, 1: on none */
};

static bool unique(const struct bi_table *t, const struct bi_column *c)
{
    return t->rows > 0 && c->distinct + c->nulls >= t->rows && c->nulls <= 1;
}

/* customers.id is what orders call customer_id. */
static bool names_table(const struct bi_column *long_name, const struct bi_column *id, const struct bi_table *owner)
{
    if (strcmp(id->compact, "id") != 0 && id->role != BI_ROLE_ID)
        return false;
    autofree char *singular = bi_stem(owner->stem), *with_id = xasprintf("%s%s", singular, id->compact);
    return strcmp(long_name->compact, with_id) == 0;
}

static bool alike(const struct bi_column *a, const struct bi_column *b)
{
    if (a->type != b->type)
        return false;
    if (a->type != BI_TYPE_NUMBER || a->min != a->min || b->min != b->min)
        return true;
    return a->min <= b->max && b->min <= a->max;
}

static bool is_key(const struct bi_column *c)
{
    return c->type != BI_TYPE_NUMBER || c->whole;
}

static int rank_of(const struct bi_table *a, const struct bi_column *x, const struct bi_table *b,
                   const struct bi_column *y)
{
    return 1 + unique(a, x) + unique(b, y);
}

static struct key find_key(const struct bi_table *a, const struct bi_table *b)
{
    struct key best = { 0 };
    for (size_t i = 0; i < a->column_n; i++)
        for (size_t j = 0; j < b->column_n; j++) {
            const struct bi_column *x = &a->columns[i], *y = &b->columns[j];
            bool same = strcmp(x->compact, y->compact) == 0 || names_table(x, y, b) || names_table(y, x, a);
            if (!same || !alike(x, y) || !is_key(x) || !is_key(y))
                continue;
            int rank = rank_of(a, x, b, y);
            bool better = rank > best.rank || (rank == best.rank && best.a && x->distinct > best.a->distinct);
            if (better)
                best = (struct key){ x, y, rank };
        }
    return best;
}

static void copy_column(struct bi_column *to, const struct bi_column *from, size_t table)
{
    *to = *from;
    to->table = table;
    to->name = xstrdup(from->name);
    to->first = xstrdup_or_null(from->first);
    to->last = xstrdup_or_null(from->last);
    to->compact = xstrdup(from->compact);
    to->convert = NULL;
    to->values = xcalloc(from->value_n + 1, sizeof(*to->values));
    for (size_t i = 0; i < from->value_n; i++) {
        to->values[i] = from->values[i];
        to->values[i].text = xstrdup(from->values[i].text);
        to->values[i].compact = xstrdup(from->values[i].compact);
        if (from->yes.text == from->values[i].text)
            to->yes = to->values[i];
    }
    to->units = xcalloc(from->unit_n + 1, sizeof(*to->units));
    for (size_t i = 0; i < from->unit_n; i++) {
        to->units[i] = from->units[i];
        to->units[i].text = xstrdup(from->units[i].text);
    }
}

static void copy_time(struct bi_table *to, const struct bi_table *from)
{
    to->time_expr = xstrdup_or_null(from->time_expr);
    to->time_freq = xstrdup_or_null(from->time_freq);
    to->time_n = from->time_n;
    for (size_t i = 0; i < from->time_n; i++)
        to->time_columns[i] = xstrdup(from->time_columns[i]);
}

static struct bi_table *add_table(struct bi_tables *t, size_t a, size_t b)
{
    t->at = xgrow(t->at, &t->cap, t->n + 1, sizeof(*t->at));
    struct bi_table *to = &t->at[t->n++];
    const struct bi_table *left = &t->at[a], *right = &t->at[b];
    *to = (struct bi_table){
        .path = xstrdup(""),
        .name = xasprintf("%s + %s", left->name, right->name),
        .stem = xstrdup(""),
        .rows = left->rows,
        .left = (int)a,
        .right = (int)b,
    };
    return to;
}

int bi_tables_stack(struct bi_tables *t, size_t a, size_t b, const char **why)
{
    *why = "no_key";
    if (t->at[a].column_n != t->at[b].column_n)
        return -1;
    for (size_t i = 0; i < t->at[a].column_n; i++)
        if (strcmp(t->at[a].columns[i].name, t->at[b].columns[i].name) != 0)
            return -1;
    size_t at = t->n;
    struct bi_table *to = add_table(t, a, b);
    const struct bi_table *left = &t->at[a];
    to->stacked = true;
    to->rows = left->rows < 0 || t->at[b].rows < 0 ? -1 : left->rows + t->at[b].rows;
    to->columns = xcalloc(left->column_n + 1, sizeof(*to->columns));
    for (size_t i = 0; i < left->column_n; i++)
        copy_column(&to->columns[to->column_n++], &left->columns[i], at);
    copy_time(to, left);
    return (int)at;
}

int bi_tables_join(struct bi_tables *t, size_t a, size_t b, const char **why)
{
    struct key key = find_key(&t->at[a], &t->at[b]);
    *why = "no_key";
    if (!key.rank)
        return -1;
    *why = "many_to_many";
    if (key.rank == 1)
        return -1;
    autofree char *left_key = xstrdup(key.a->name), *right_key = xstrdup(key.b->name);
    /* The side whose key is unique is looked up in: on the right. */
    if (!unique(&t->at[b], key.b)) {
        size_t swap = a;
        a = b;
        b = swap;
        char *name = left_key;
        left_key = right_key;
        right_key = name;
    }
    size_t at = t->n;
    struct bi_table *to = add_table(t, a, b);
    const struct bi_table *left = &t->at[a], *right = &t->at[b];
    to->left_key = xstrdup(left_key);
    to->right_key = xstrdup(right_key);
    to->columns = xcalloc(left->column_n + right->column_n + 1, sizeof(*to->columns));
    for (size_t i = 0; i < left->column_n; i++)
        copy_column(&to->columns[to->column_n++], &left->columns[i], at);
    for (size_t i = 0; i < right->column_n; i++) {
        const struct bi_column *from = &right->columns[i];
        if (strcmp(from->name, to->right_key) == 0)
            continue;
        struct bi_column *c = &to->columns[to->column_n++];
        copy_column(c, from, at);
        c->nulls = c->nulls ? c->nulls : 1;     /* rows without a match have none */
        if (bi_table_named(left, from->name)) { /* as the merge's suffix names it */
            free(c->name);
            c->name = xasprintf("%s (%s)", from->name, right->stem);
        }
    }
    copy_time(to, left->time_expr ? left : right);
    return (int)at;
}
