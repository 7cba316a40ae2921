/* code_group.c - what measures are grouped by: names, ranges, periods, the order of values, as Python. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "code.h"

static const char *period_key(enum bi_sense period)
{
    static char key[32];
    (void)snprintf(key, sizeof(key), "period_%s", bi_sense_name(period));
    return key;
}

char *bi_group_name(const struct bi_writer *w, const struct bi_group *g)
{
    if (g->period != BI_NONE) {
        autofree char *period = bi_label_text(w, period_key(g->period), "", "");
        return bi_table_named(w->table, period) ? xasprintf("%s (%s)", period, g->column ? g->column->name : "*")
                                                : take(period);
    }
    return g->bins ? bi_label_text(w, "label_bins", g->column->name, "") : xstrdup(g->column->name);
}

/* Monday before Tuesday: the order of values that the lexicon knows. */
char *bi_value_order(const struct bi_column *c, const struct bi_lexicon *x)
{
    struct str out = STR_INIT(8 << 10);
    size_t n = 0;
    for (int order = 0; order < 12; order++)
        for (size_t i = 0; i < c->value_n; i++) {
            const struct bi_named_value *v = c->values[i].named >= 0 ? bi_lexicon_value(x, c->values[i].named) : NULL;
            bool timed = v && (strcmp(bi_lexicon_concept(x, v->topic)->name, "weekday") == 0 ||
                               strcmp(bi_lexicon_concept(x, v->topic)->name, "month") == 0 ||
                               strcmp(bi_lexicon_concept(x, v->topic)->name, "meal") == 0);
            if (!timed || v->order != order)
                continue;
            autofree char *literal = bi_py_string(c->values[i].text);
            str_printf(&out, "%s%s", n++ ? ", " : "[", literal);
        }
    if (n && n == c->value_n && c->all_values) {
        str_putc(&out, ']');
        return str_take(&out);
    }
    str_clear(&out);
    return NULL;
}

static double nice_step(double span)
{
    static const double steps[] = { 1, 2, 5, 10 };
    double scale = pow(10, floor(log10(span / 8)));
    for (size_t i = 0; i < countof(steps); i++)
        if (span / (scale * steps[i]) <= 10)
            return scale * steps[i];
    return scale * 10;
}

static void write_bins(struct bi_writer *w, const struct bi_column *c, const char *to)
{
    autofree char *from = bi_py_string(c->name);
    double span = c->max - c->min;
    bool even =
        !isnan(span) && span > 0 && (bi_column_is(c, bi_lexicon_concept_id(w->x, "age")) || (c->whole && span <= 200));
    if (!even) {
        bi_line(w, "# Five ranges with about as many rows each.");
        bi_line(w, "df[%s] = pd.qcut(df[%s], 5, duplicates=\"drop\")", to, from);
        return;
    }
    double step = nice_step(span), low = floor(c->min / step) * step;
    struct str edges = STR_INIT(4096);
    for (int i = 0; low + (i - 1) * step <= c->max && edges.len < 3500; i++) {
        autofree char *number = bi_py_number(low + i * step);
        str_printf(&edges, "%s%s", edges.len ? ", " : "", number);
    }
    bi_line(w, "edges = [%s]", str_peek(&edges));
    bi_line(w, "labels = [f\"{a}–<{b}\" for a, b in zip(edges, edges[1:])]");
    bi_line(w, "df[%s] = pd.cut(df[%s], edges, right=False, labels=labels)", to, from);
    str_clear(&edges);
}

static char *time_subject(const struct bi_writer *w, const struct bi_group *g)
{
    if (!g->column)
        return xasprintf("%s.dt", w->table->time_expr);
    autofree char *name = bi_py_string(g->column->name);
    return xasprintf("df[%s].dt", name);
}

/* "1990s", from dates or from a column of years. */
static void write_decade(struct bi_writer *w, const struct bi_group *g, const char *to, const char *dt)
{
    autofree char *name = g->column ? bi_py_string(g->column->name) : NULL;
    const bool year = g->column && g->column->type != BI_TYPE_DATE;
    autofree char *years = year ? xasprintf("df[%s]", name) : xasprintf("%s.year", dt);
    bi_line(w, "df[%s] = %s.map(lambda year: f\"{int(year) // 10 * 10}s\", na_action=\"ignore\")", to, years);
}

static void write_period(struct bi_writer *w, const struct bi_group *g, const char *to)
{
    autofree char *dt = time_subject(w, g);
    switch ((int)g->period) {
    case BI_DECADE: write_decade(w, g, to, dt); break;
    case BI_YEAR: bi_line(w, "df[%s] = %s.year", to, dt); break;
    case BI_QUARTER: bi_line(w, "df[%s] = %s.to_period(\"Q\").astype(\"str\")", to, dt); break;
    case BI_MONTH: bi_line(w, "df[%s] = %s.strftime(\"%%Y-%%m\")", to, dt); break;
    case BI_WEEK: bi_line(w, "df[%s] = %s.to_period(\"W\").dt.start_time.dt.strftime(\"%%Y-%%m-%%d\")", to, dt); break;
    case BI_WEEKDAY:
        bi_line(w,
                "week = [\"Monday\", \"Tuesday\", \"Wednesday\", \"Thursday\", \"Friday\", \"Saturday\", \"Sunday\"]");
        bi_line(w, "df[%s] = pd.Categorical(%s.day_name(), categories=week, ordered=True)", to, dt);
        break;
    case BI_HOUR: bi_line(w, "df[%s] = %s.hour", to, dt); break;
    default: bi_line(w, "df[%s] = %s.strftime(\"%%Y-%%m-%%d\")", to, dt); break;
    }
}

void bi_write_group_keys(struct bi_writer *w)
{
    for (size_t i = 0; i < w->p->group_n; i++) {
        const struct bi_group *g = &w->p->groups[i];
        autofree char *name = bi_group_name(w, g), *to = bi_py_string(name);
        autofree char *missing = bi_label(w, "missing_group", "", "");
        if (g->period != BI_NONE) {
            write_period(w, g, to);
            continue;
        }
        if (g->bins) {
            write_bins(w, g->column, to);
            continue;
        }
        autofree char *order = bi_value_order(g->column, w->x);
        if (g->column->nulls > 0 && g->column->type == BI_TYPE_TEXT)
            bi_line(w, "df[%s] = df[%s].fillna(%s)", to, to, missing);
        else if (order)
            bi_line(w, "df[%s] = pd.Categorical(df[%s], categories=%s, ordered=True)", to, to, order);
    }
}

char *bi_group_list(const struct bi_writer *w)
{
    struct str out = STR_INIT(8 << 10);
    for (size_t i = 0; i < w->p->group_n; i++) {
        autofree char *name = bi_group_name(w, &w->p->groups[i]), *literal = bi_py_string(name);
        str_printf(&out, "%s%s", i ? ", " : "[", literal);
    }
    str_putc(&out, ']');
    return str_take(&out);
}
