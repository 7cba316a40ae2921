/* code_rows.c - rows of a table, the first or the last in an order, as Python. */
#include <string.h>
#include "code.h"

static bool listed(const struct bi_column *const *list, size_t n, const struct bi_column *c)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == c)
            return true;
    return false;
}

/* What a table of rows shows: all columns when they are few, else what was asked about and what tells rows apart. */
static size_t rows_columns(const struct bi_writer *w, const struct bi_column **shown, size_t max)
{
    size_t n = 0;
    const struct bi_table *t = w->table;
    for (size_t i = 0; i < t->column_n && t->column_n <= max; i++)
        shown[n++] = &t->columns[i];
    if (n)
        return n;
    if (w->p->order_column)
        shown[n++] = w->p->order_column;
    if (w->p->top_within && !listed(shown, n, w->p->groups[0].column))
        shown[n++] = w->p->groups[0].column;
    for (size_t i = 0; i < w->p->column_n && n < max; i++)
        if (!listed(shown, n, w->p->columns[i]))
            shown[n++] = w->p->columns[i];
    for (size_t i = 0; i < w->p->filter_n && n < max; i++)
        if (!listed(shown, n, w->p->filters[i].column))
            shown[n++] = w->p->filters[i].column;
    for (size_t i = 0; i < t->column_n && n < max; i++) {
        const struct bi_column *c = &t->columns[i];
        bool tells =
            c->role == BI_ROLE_ID || c->role == BI_ROLE_TEXT || c->role == BI_ROLE_DATE || c->role == BI_ROLE_YEAR;
        if (tells && c->nulls * 2 < t->rows && !listed(shown, n, c))
            shown[n++] = c;
    }
    for (size_t i = 0; i < t->column_n && n + 2 < max; i++)
        if (!listed(shown, n, &t->columns[i]))
            shown[n++] = &t->columns[i];
    return n;
}

static void write_ties(struct bi_writer *w, const char *column)
{
    autofree char *ties = bi_label(w, "fact_ties", "", "");
    bi_line(w, "tied = (df[%s] == rows[%s].iloc[-1]).sum() - (rows[%s] == rows[%s].iloc[-1]).sum()", column, column,
            column, column);
    bi_line(w, "if tied:");
    bi_line(w, "    print(%s, tied)", ties);
}

/* The rows at a place, or the first of each group; equal values share a place. */
static void write_places(struct bi_writer *w, const char *column)
{
    const char *up = w->p->order < 0 ? "True" : "False";
    autofree char *group = w->p->top_within ? bi_py_string(w->p->groups[0].column->name) : NULL;
    autofree char *by = group ? xasprintf(".groupby(%s, observed=True)", group) : xstrdup("");
    bi_line(w, "place = rows%s[%s].rank(method=\"%s\", ascending=%s)", by, column, w->p->nth ? "dense" : "min", up);
    if (w->p->nth) {
        bi_line(w, "best = rows[place == %lld]", (long long)w->p->nth);
        autofree char *none = bi_label(w, "fact_no_place", "", "");
        bi_line(w, "if best.empty:");
        bi_line(w, "    print(%s, rows[%s].nunique())", none, column);
        bi_line(w, "rows = best");
    } else {
        bi_line(w, "rows = rows[place <= %lld]", (long long)w->p->limit);
    }
    if (group)
        bi_line(w, "rows = rows.sort_values(%s, kind=\"stable\")", group);
}

/* A literal: the column, or all time columns when rows are ordered by time. */
static char *order_keys(const struct bi_writer *w)
{
    const struct bi_table *t = w->table;
    if (t->time_n < 2 || strcmp(t->time_columns[0], w->p->order_column->name) != 0)
        return bi_py_string(w->p->order_column->name);
    struct str out = STR_INIT(8 << 10);
    for (size_t i = 0; i < t->time_n; i++) {
        autofree char *name = bi_py_string(t->time_columns[i]);
        str_printf(&out, "%s%s", i ? ", " : "[", name);
    }
    str_putc(&out, ']');
    return str_take(&out);
}

void bi_write_rows(struct bi_writer *w)
{
    const struct bi_column *shown[8];
    size_t n = rows_columns(w, shown, countof(shown));
    autofree char *names = bi_py_names(shown, n), *options = bi_table_options(shown, n);
    const char *cut = w->p->last ? "tail" : "head";
    if (w->p->order_column) {
        autofree char *column = bi_py_string(w->p->order_column->name), *keys = order_keys(w);
        bi_line(w, "rows = df.dropna(subset=[%s]).sort_values(%s, ascending=%s, kind=\"stable\")", column, keys,
                w->p->order < 0 ? "True" : "False");
        if (w->p->nth || w->p->top_within) {
            write_places(w, column);
        } else if (w->p->limit) {
            bi_line(w, "rows = rows.%s(%lld)", cut, (long long)w->p->limit);
            if (keys[0] != '[')
                write_ties(w, column);
        }
    } else if (w->p->limit) {
        bi_line(w, "rows = df.%s(%lld)", cut, (long long)w->p->limit);
    } else {
        bi_line(w, "rows = df");
    }
    if (!w->p->filter_n && !w->p->limit)
        bi_write_fact(w, "fact_rows", "len(df)");
    if (n < w->table->column_n) {
        autofree char *label = bi_label(w, "fact_columns_shown", "", ""), *of = bi_label(w, "of_rows", "", "");
        bi_line(w, "print(%s, %zu, %s, df.shape[1])", label, n, of);
    }
    bi_write_short(w);
    autofree char *table =
        n < w->table->column_n && !w->p->export_asked ? xasprintf("rows[%s]", names) : xstrdup("rows");
    if (w->p->export_asked && n < w->table->column_n) {
        bi_line(w,
                "print(rows[%s].head(5).map(short).astype(\"object\").to_markdown(index=False, floatfmt=\".10g\"%s))",
                names, options);
        bi_write_export(w, "rows", "result");
        return;
    }
    bi_line(w, "shown = %s", table);
    bi_write_table(w, "shown", options);
}
