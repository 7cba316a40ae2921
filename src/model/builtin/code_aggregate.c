/* code_aggregate.c - measures by groups, single values, and measures over time, as Python. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "code.h"

/* ---- names ---- */

static const char *stat_key(enum bi_sense stat)
{
    static char key[32];
    (void)snprintf(key, sizeof(key), "label_%s", stat == BI_NONE ? "value" : bi_sense_name(stat));
    return key;
}

/* What a condition is called: "Sex = female", "smoker = Yes". */
static char *condition_name(const struct bi_filter *f)
{
    struct str out = STR_INIT(8 << 10);
    str_printf(&out, "%s %s ", f->column->name, f->negated ? "≠" : "=");
    for (size_t i = 0; i < f->value_n; i++) {
        autofree char *number = bi_py_number(f->values[i].number);
        str_printf(&out, "%s%s", i ? "/" : "", f->values[i].text ? f->values[i].text : number);
    }
    if (f->type == BI_FILTER_RANGE) {
        autofree char *low = bi_py_number(f->low), *high = bi_py_number(f->high);
        str_clear(&out);
        if (f->outside)
            str_printf(&out, "%s %s %s ∨ %s %s", f->column->name, f->high_open ? "<" : "≤", high,
                       f->low_open ? ">" : "≥", low);
        else if (f->has_low)
            str_printf(&out, "%s %s ", low, f->low_open ? "<" : "≤");
        if (!f->outside)
            str_puts(&out, f->column->name);
        if (f->has_high && !f->outside)
            str_printf(&out, " %s %s", f->high_open ? "<" : "≤", high);
    } else if (f->text) {
        str_puts(&out, f->text ? f->text : "");
    } else if (f->type == BI_FILTER_MISSING) {
        str_puts(&out, "∅");
    }
    return str_take(&out);
}

static char *weighted_name(const struct bi_measure *m, const struct bi_plan *p)
{
    autofree char *name = condition_name(&p->conditions[m->filter]);
    return xasprintf("%s × %s", name, m->other->name);
}

static char *ratio_name(const struct bi_measure *m)
{
    return xasprintf("%s / %s", m->column->name, m->other->name);
}

char *bi_measure_label(const struct bi_writer *w, const struct bi_measure *m)
{
    autofree char *name = NULL;
    switch (m->type) {
    case BI_MEASURE_ROWS: return bi_label_text(w, w->p->running ? "label_running_rows" : "label_rows", "", "");
    case BI_MEASURE_CONDITION:
        name = condition_name(&w->p->conditions[m->filter]);
        return bi_label_text(w, "label_share", name, "");
    case BI_MEASURE_RATIO: name = ratio_name(m); return bi_label_text(w, "label_mean", name, "");
    case BI_MEASURE_COLUMN: break;
    }
    if (w->p->running)
        return bi_label_text(w, "label_running", m->column->name, "");
    autofree char *quantile = xasprintf("%g", m->quantile * 100);
    return bi_label_text(w, stat_key(m->stat), m->column->name, quantile);
}

static char *measure_literal(const struct bi_writer *w, size_t i)
{
    autofree char *label = bi_measure_label(w, &w->p->measures[i]);
    return bi_py_string(label);
}

/* ---- columns that are made before grouping ---- */

void bi_write_measure_columns(struct bi_writer *w)
{
    for (size_t i = 0; i < w->p->measure_n; i++) {
        const struct bi_measure *m = &w->p->measures[i];
        if (m->type == BI_MEASURE_RATIO) {
            autofree char *name = ratio_name(m), *to = bi_py_string(name), *a = bi_py_string(m->column->name);
            autofree char *b = bi_py_string(m->other->name);
            bi_line(w, "df[%s] = (df[%s] / df[%s]).where(df[%s] != 0)", to, a, b, b);
        } else if (m->type == BI_MEASURE_CONDITION) {
            const struct bi_filter *f = &w->p->conditions[m->filter];
            autofree char *name = condition_name(f), *to = bi_py_string(name), *code = bi_filter_code(f);
            autofree char *column = bi_py_string(f->column->name);
            bool gaps = f->column->nulls > 0 && f->type != BI_FILTER_MISSING;
            bi_line(w, "df[%s] = (%s).astype(\"float\")", to, code);
            if (gaps)
                bi_line(w, "df.loc[df[%s].isna(), %s] = float(\"nan\")", column, to);
            if (m->other) {
                autofree char *weighted = weighted_name(m, w->p), *product = bi_py_string(weighted),
                              *weight = bi_py_string(m->other->name);
                bi_line(w, "df[%s] = df[%s] * df[%s]", product, to, weight);
            }
        }
    }
}

/* ---- what a statistic is in pandas ---- */

static char *stat_code(const struct bi_measure *m, const char *series)
{
    switch ((int)m->stat) {
    case BI_MEDIAN: return xasprintf("%s.median()", series);
    case BI_SUM:
        return xasprintf(m->column && m->column->whole && m->column->nulls ? "%s.sum().astype(\"int64\")" : "%s.sum()",
                         series);
    case BI_COUNT: return xasprintf("%s.count()", series);
    case BI_DISTINCT: return xasprintf("%s.nunique()", series);
    case BI_MIN: return xasprintf("%s.min()", series);
    case BI_MAX: return xasprintf("%s.max()", series);
    case BI_STD: return xasprintf("%s.std()", series);
    case BI_VARIANCE: return xasprintf("%s.var()", series);
    case BI_QUANTILE: return xasprintf("%s.quantile(%g)", series, m->quantile);
    case BI_MODE: return xasprintf("%s.agg(lambda s: s.mode().iloc[0] if s.notna().any() else None)", series);
    case BI_RANGE: return xasprintf("%s.max() - %s.min()", series, series);
    default: return xasprintf("%s.mean()", series);
    }
}

char *bi_measure_source(const struct bi_measure *m, const struct bi_plan *p)
{
    if (m->type == BI_MEASURE_CONDITION)
        return condition_name(&p->conditions[m->filter]);
    return m->type == BI_MEASURE_RATIO ? ratio_name(m) : xstrdup(m->column->name);
}

/* ---- one value each ---- */

static const struct bi_column *label_column(const struct bi_table *t, size_t i)
{
    const struct bi_column *c = &t->columns[i];
    bool says = c->role == BI_ROLE_ID || c->role == BI_ROLE_DATE || c->role == BI_ROLE_YEAR ||
                c->role == BI_ROLE_GROUP || c->role == BI_ROLE_TEXT;
    return says ? c : NULL;
}

/* The rows that hold an extreme: with the columns that tell who or when it is. */
static void write_where(struct bi_writer *w, const struct bi_measure *m)
{
    const struct bi_column *shown[7];
    size_t n = 0;
    for (size_t i = 0; i < w->table->time_n && n < 3; i++)
        if (bi_table_named(w->table, w->table->time_columns[i]))
            shown[n++] = bi_table_named(w->table, w->table->time_columns[i]);
    for (size_t i = 0; i < w->table->column_n && n < 6; i++) {
        const struct bi_column *c = label_column(w->table, i);
        bool again = c == m->column;
        for (size_t k = 0; k < n; k++)
            again = again || shown[k] == c;
        if (c && !again)
            shown[n++] = c;
    }
    shown[n++] = m->column;
    autofree char *names = bi_py_names(shown, n), *column = bi_py_string(m->column->name),
                  *options = bi_table_options(shown, n);
    autofree char *found = bi_label(w, "fact_found_in", "", "");
    bi_write_short(w);
    bi_line(w, "rows = df[df[%s] == df[%s].%s()]", column, column, m->stat == BI_MIN ? "min" : "max");
    bi_line(w, "print(%s, len(rows))", found);
    bi_line(w, "print(rows[%s].head(5).map(short).astype(\"object\").to_markdown(index=False, floatfmt=\".10g\"%s))",
            names, options);
}

static void write_ratio_value(struct bi_writer *w, const struct bi_measure *m, const char *label)
{
    autofree char *name = ratio_name(m), *source = bi_py_string(name), *a = bi_py_string(m->column->name);
    autofree char *b = bi_py_string(m->other->name), *sums = bi_label(w, "label_ratio_of_sums", "", "");
    autofree char *used = bi_label(w, "fact_values", "", "");
    bi_line(w, "both = df[df[%s].notna()]", source);
    bi_line(w, "value = both[%s].mean()", source);
    bi_line(w, "print(\"- \" + %s + \":\", f\"{value:.4f} ({100 * value:.2f}%%)\")", label);
    bi_line(w, "value = both[%s].sum() / both[%s].sum()", a, b);
    bi_line(w, "print(\"- \" + %s + \":\", f\"{value:.4f} ({100 * value:.2f}%%)\")", sums);
    bi_line(w, "print(%s, len(both))", used);
}

static void write_weighted_share(struct bi_writer *w, const struct bi_measure *m, const char *label)
{
    autofree char *name = weighted_name(m, w->p), *product = bi_py_string(name), *weight = bi_py_string(m->other->name);
    autofree char *fact = bi_label(w, "fact_counted", m->other->name, "");
    bi_line(w, "part, whole = df[%s].sum(), df[%s].sum()", product, weight);
    bi_line(w, "print(\"- \" + %s + \":\", f\"{part / whole:.4f} ({100 * part / whole:.1f}%%)\")", label);
    bi_line(w, "print(%s, f\"{part:.0f} / {whole:.0f}\")", fact);
}

static void write_share_value(struct bi_writer *w, const char *source, const char *label)
{
    autofree char *hits = bi_label(w, "fact_share_of", "", "");
    bi_line(w, "values = df[%s].dropna()", source);
    bi_line(w, "print(\"- \" + %s + \":\", f\"{values.mean():.4f} ({100 * values.mean():.1f}%%)\")", label);
    bi_line(w, "print(%s, int(values.sum()), \"/\", len(values))", hits);
}

static void write_plain_value(struct bi_writer *w, const struct bi_measure *m, const char *source, const char *label)
{
    autofree char *series = xasprintf("df[%s]", source),
                  *missing = bi_label(w, "fact_without_value", m->column->name, "");
    autofree char *code = m->stat == BI_MODE  ? xasprintf("%s.mode().tolist()[:5]", series)
                          : m->stat == BI_SUM ? xasprintf("%s.sum()", series)
                                              : stat_code(m, series);
    bool text = m->stat == BI_MODE || m->column->type == BI_TYPE_DATE;
    bool whole =
        m->column->whole && (m->stat == BI_SUM || m->stat == BI_MIN || m->stat == BI_MAX || m->stat == BI_RANGE);
    bool count = m->stat == BI_COUNT || m->stat == BI_DISTINCT;
    bi_line(w, "value = %s", code);
    if (text)
        bi_line(w, "print(\"- \" + %s + \":\", %s)", label,
                m->stat == BI_MODE ? "*value" : "str(value).removesuffix(\" 00:00:00\")");
    else if (whole || count)
        bi_line(w, "print(\"- \" + %s + \":\", f\"{value:.0f}\")", label);
    else if (m->stat == BI_MIN || m->stat == BI_MAX)
        bi_line(w, "print(\"- \" + %s + \":\", f\"{value:.10g}\")", label);
    else
        bi_line(w, "print(\"- \" + %s + \":\", f\"{value:.%df}\")", label, bi_decimals(w->p) + 1);
    if (m->column->nulls)
        bi_line(w, "print(%s, df[%s].isna().sum())", missing, source);
}

static void write_values(struct bi_writer *w)
{
    for (size_t i = 0; i < w->p->measure_n; i++) {
        const struct bi_measure *m = &w->p->measures[i];
        autofree char *label = measure_literal(w, i);
        if (m->type == BI_MEASURE_ROWS) {
            bi_line(w, "print(\"- \" + %s + \":\", len(df))", label);
            continue;
        }
        autofree char *name = bi_measure_source(m, w->p), *source = bi_py_string(name);
        if (m->type == BI_MEASURE_RATIO)
            write_ratio_value(w, m, label);
        else if (m->type == BI_MEASURE_CONDITION && m->other)
            write_weighted_share(w, m, label);
        else if (bi_measure_is_share(m))
            write_share_value(w, source, label);
        else
            write_plain_value(w, m, source, label);
        if (w->p->show_where && m->type == BI_MEASURE_COLUMN && (m->stat == BI_MAX || m->stat == BI_MIN))
            write_where(w, m);
    }
}

/* ---- by groups ---- */

static char *weighted_code(const struct bi_writer *w, const struct bi_measure *m)
{
    autofree char *name = weighted_name(m, w->p), *product = bi_py_string(name), *weight = bi_py_string(m->other->name);
    return xasprintf("groups[%s].sum() / groups[%s].sum()", product, weight);
}

static void write_group_columns(struct bi_writer *w)
{
    bool counted = false;
    bi_line(w, "result = pd.DataFrame({");
    for (size_t i = 0; i < w->p->measure_n; i++) {
        const struct bi_measure *m = &w->p->measures[i];
        autofree char *label = measure_literal(w, i);
        if (m->type == BI_MEASURE_ROWS) {
            bi_line(w, "    %s: groups.size(),", label);
            counted = true;
            continue;
        }
        autofree char *name = bi_measure_source(m, w->p), *source = bi_py_string(name);
        autofree char *series = xasprintf("groups[%s]", source);
        autofree char *code = m->type == BI_MEASURE_CONDITION && m->other ? weighted_code(w, m) : stat_code(m, series);
        bi_line(w, "    %s: %s,", label, code);
        counted = counted || m->stat == BI_COUNT;
        if (m->type == BI_MEASURE_RATIO) {
            autofree char *a = bi_py_string(m->column->name), *b = bi_py_string(m->other->name);
            autofree char *sums = bi_label(w, "label_ratio_of_sums", "", "");
            bi_line(w, "    %s: groups[%s].sum() / groups[%s].sum(),", sums, a, b);
        }
    }
    if (!counted) {
        const struct bi_measure *m = &w->p->measures[0];
        autofree char *name = bi_measure_source(m, w->p), *source = bi_py_string(name),
                      *n = bi_label(w, "label_n", "", "");
        bi_line(w, "    %s: groups[%s].count(),", n, source);
    }
    bi_line(w, "}).reset_index()");
}

static void write_percent(struct bi_writer *w)
{
    autofree char *label = measure_literal(w, 0), *share = bi_label(w, "label_percent", "", "");
    if (w->p->share_of_total) {
        autofree char *part = bi_label(w, "label_share_total", "", "");
        bi_line(w, "portion = result[%s] / result[%s].sum()", label, label);
        bi_line(w, "result[%s] = portion", part);
        bi_line(w, "result[%s] = (100 * portion).map(\"{:.1f}%%\".format)", share);
        if (w->p->within && w->p->group_n == 2) {
            autofree char *name = bi_group_name(w, &w->p->groups[w->p->within - 1]), *group = bi_py_string(name);
            autofree char *inside = bi_label(w, "label_percent_within", name, "");
            bi_line(w, "portion = result[%s] / result.groupby(%s, observed=True)[%s].transform(\"sum\")", label, group,
                    label);
            bi_line(w, "result[%s] = (100 * portion).map(\"{:.1f}%%\".format)", inside);
        }
    } else if (w->p->measure_n == 1 && bi_measure_is_share(&w->p->measures[0])) {
        bi_line(w, "result[%s] = (100 * result[%s]).map(\"{:.1f}%%\".format)", share, label);
    }
}

/* Groups without an order of their own are shown largest first. */
static bool nominal(const struct bi_writer *w)
{
    if (w->p->group_n != 1 || w->p->groups[0].period != BI_NONE || w->p->groups[0].bins)
        return false;
    const struct bi_column *c = w->p->groups[0].column;
    autofree char *order = bi_value_order(c, w->x);
    return c->type == BI_TYPE_TEXT && !order && c->distinct > 2;
}

static void write_winner(struct bi_writer *w, size_t measure)
{
    autofree char *label = measure_literal(w, measure), *text = bi_measure_label(w, &w->p->measures[measure]);
    autofree char *groups = bi_group_list(w);
    autofree char *place = xasprintf("%lld", (long long)w->p->nth);
    autofree char *fact = w->p->nth
                              ? bi_label(w, w->p->order < 0 ? "fact_place_lowest" : "fact_place_highest", text, place)
                              : bi_label(w, w->p->order < 0 ? "fact_lowest_by" : "fact_highest_by", text, "");
    const struct bi_measure *m = &w->p->measures[measure];
    bool exact =
        m->stat == BI_SUM || m->stat == BI_MIN || m->stat == BI_MAX || m->stat == BI_DISTINCT || m->stat == BI_COUNT;
    bool share = bi_measure_is_share(m),
         whole = m->type == BI_MEASURE_ROWS || (exact && m->column && m->column->whole) || m->stat == BI_DISTINCT;
    if (w->p->nth)
        bi_line(w, "best = known[known[%s].rank(method=\"dense\", ascending=%s) == %lld]", label,
                w->p->order < 0 ? "True" : "False", (long long)w->p->nth);
    else
        bi_line(w, "best = known[known[%s] == known[%s].%s()]", label, label, w->p->order < 0 ? "min" : "max");
    if (w->p->nth) {
        autofree char *none = bi_label(w, "fact_no_place", "", "");
        bi_line(w, "if best.empty:");
        bi_line(w, "    print(%s, known[%s].nunique())", none, label);
        bi_line(w, "else:");
        w->indent++;
    }
    bi_line(w, "names = [\", \".join(map(str, row)) for row in best[%s].head(5).itertuples(index=False)]", groups);
    bi_line(w, "value = best[%s].iloc[0]", label);
    bi_line(w, "print(%s, \"; \".join(names), f\"({value:.%df})\")", fact, whole ? 0 : share ? 3 : bi_decimals(w->p));
    if (w->p->nth)
        w->indent--;
}

/* The first of each group, with those that have the same value as the last of them. */
static void write_limit_within(struct bi_writer *w, const char *label)
{
    autofree char *all = bi_label(w, "fact_groups", "", "");
    autofree char *name = bi_group_name(w, &w->p->groups[w->p->top_within - 1]), *group = bi_py_string(name);
    bi_line(w, "print(%s, len(result))", all);
    bi_line(w, "place = result.groupby(%s, dropna=False, observed=True)[%s].rank(method=\"min\", ascending=%s)", group,
            label, w->p->order < 0 ? "True" : "False");
    bi_line(w, "result = result[place <= %lld].sort_values(%s, kind=\"stable\", ignore_index=True)",
            (long long)w->p->limit, group);
}

static void write_limit(struct bi_writer *w, const char *label)
{
    autofree char *all = bi_label(w, "fact_groups", "", ""), *ties = bi_label(w, "fact_ties", "", "");
    bi_line(w, "shown = result.head(%lld)", (long long)w->p->limit);
    bi_line(w, "print(%s, len(result))", all);
    bi_line(w, "tied = (result[%s] == shown[%s].iloc[-1]).sum() - (shown[%s] == shown[%s].iloc[-1]).sum()", label,
            label, label, label);
    bi_line(w, "if tied:");
    bi_line(w, "    print(%s, tied)", ties);
    bi_line(w, "result = shown");
}

/* Two groups side by side: by how much they differ. */
static void write_difference(struct bi_writer *w)
{
    autofree char *label = measure_literal(w, 0), *fact = bi_label(w, "fact_difference", "", "");
    autofree char *name = bi_group_name(w, &w->p->groups[0]), *group = bi_py_string(name);
    bi_line(w, "if len(result) == 2:");
    bi_line(w, "    first, second = result[%s]", label);
    bi_line(w, "    names = result[%s].tolist()", group);
    bi_line(w, "    print(%s, f\"{first - second:.3f} ({names[0]} − {names[1]})\")", fact);
}

static void name_missing_numbers(struct bi_writer *w)
{
    for (size_t i = 0; i < w->p->group_n; i++) {
        const struct bi_group *g = &w->p->groups[i];
        bool gaps = !g->column || g->column->nulls > 0;
        bool plain = g->column && g->column->type == BI_TYPE_TEXT && !g->bins;
        autofree char *name = bi_group_name(w, g), *group = bi_py_string(name),
                      *missing = bi_label(w, "missing_group", "", "");
        if (g->bins)
            bi_line(w, "result[%s] = result[%s].astype(\"object\").map(str, na_action=\"ignore\").fillna(%s)", group,
                    group, missing);
        else if (gaps && !plain)
            bi_line(w, "result[%s] = result[%s].astype(\"object\").fillna(%s)", group, group, missing);
    }
}

static void write_group_table(struct bi_writer *w)
{
    const struct bi_column *columns[BI_PLAN_GROUPS] = { 0 };
    for (size_t i = 0; i < w->p->group_n; i++)
        columns[i] = w->p->groups[i].period == BI_NONE ? w->p->groups[i].column : NULL;
    autofree char *options = bi_table_options(columns, w->p->group_n);
    if (columns[0] && columns[0]->odd_text)
        bi_write_short(w);
    if (w->p->share_of_total) { /* one format a column: the share needs more digits than the sums */
        struct str formats = STR_INIT(4096);
        for (size_t i = 0; i < w->p->group_n; i++)
            str_puts(&formats, "\"\", ");
        for (size_t i = 0; i < w->p->measure_n; i++)
            str_printf(&formats, "\".%df\", ", bi_decimals(w->p));
        str_puts(&formats, w->p->measures[0].type == BI_MEASURE_ROWS ? "\".4f\"" : "\"\", \".4f\"");
        bi_line(w, "formats = (%s, \"\", \"\")", str_peek(&formats));
        str_clear(&formats);
    }
    bi_write_table(w, "result", options);
}

static void write_groups(struct bi_writer *w)
{
    bi_write_group_keys(w);
    autofree char *list = bi_group_list(w), *label = measure_literal(w, 0);
    bi_line(w, "groups = df.groupby(%s, dropna=False, observed=True)", list);
    write_group_columns(w);
    write_percent(w);
    if (w->p->order || nominal(w))
        bi_line(w, "result = result.sort_values(%s, ascending=%s, kind=\"stable\", ignore_index=True)", label,
                w->p->order < 0 ? "True" : "False");
    bi_blank(w);
    if (w->p->order) {
        autofree char *missing = bi_label(w, "missing_group", "", "");
        bi_line(w, "known = result[~result[%s].isin([%s]).any(axis=1)].dropna(subset=%s)", list, missing, list);
        bi_line(w, "if len(known):");
        w->indent++;
        for (size_t i = 0; i < w->p->measure_n; i++)
            write_winner(w, i);
        w->indent--;
    }
    if (w->p->top_within)
        write_limit_within(w, label);
    else if (w->p->limit)
        write_limit(w, label);
    name_missing_numbers(w);
    write_group_table(w);
    if (w->p->difference && w->p->group_n == 1)
        write_difference(w);
    if (w->p->chart != BI_NONE && w->p->chart != BI_NO_CHART)
        bi_chart_groups(w);
}

void bi_write_aggregate(struct bi_writer *w)
{
    bi_write_measure_columns(w);
    if (w->p->group_n)
        write_groups(w);
    else
        write_values(w);
}
