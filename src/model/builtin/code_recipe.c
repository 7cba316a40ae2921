/* code_recipe.c - the recipes that are not "a measure by a group", as Python. */
#include <string.h>
#include "code.h"

enum { MATRIX_MAX = 12 };

static char *plan_columns(const struct bi_writer *w)
{
    return bi_py_names(w->p->columns, w->p->column_n);
}

static bool wants_chart(const struct bi_writer *w)
{
    return w->p->chart != BI_NONE && w->p->chart != BI_NO_CHART;
}

/* ---- overview ---- */

static void describe_columns(struct bi_writer *w)
{
    autofree char *names = plan_columns(w), *label = bi_label(w, "label_column", "", "");
    bool numeric = true;
    for (size_t i = 0; i < w->p->column_n; i++)
        numeric = numeric && (bi_column_numeric(w->p->columns[i]) || w->p->columns[i]->type == BI_TYPE_NUMBER);
    bi_line(w, "columns = %s", names);
    if (w->p->group_n) {
        autofree char *group = bi_group_name(w, &w->p->groups[0]), *to = bi_py_string(group);
        autofree char *first = bi_py_string(w->p->columns[0]->name);
        bi_write_group_keys(w);
        bi_line(w, "table = df.groupby([%s], dropna=False, observed=True)[%s].describe().reset_index()", to, first);
    } else {
        bi_line(w, "table = df[columns].describe(%s).T.rename_axis(%s).reset_index()", numeric ? "" : "include=\"all\"",
                label);
    }
    bi_line(w, "table[\"count\"] = table[\"count\"].astype(\"int64\")");
    if (!numeric)
        bi_write_short(w);
    bi_line(w, "print(table%s.astype(\"object\").to_markdown(index=False, floatfmt=\".%df\"))",
            numeric ? "" : ".map(short)", bi_decimals(w->p) < 3 ? 2 : 3);
    bi_write_fact(w, "fact_missing_cells",
                  "\", \".join(f\"{name} {gaps}\" for name, gaps in df[columns].isna().sum().items())");
    if (w->p->chart == BI_LINE && w->table->time_expr) {
        autofree char *title = bi_label(w, "title_all_over_time", "", ""), *time = bi_label(w, "label_time", "", "");
        bi_line(w, "time = (%s).rename(%s)", w->table->time_expr, time);
        bi_line(w, "ax = df[columns].groupby(time).mean().plot.line()");
        bi_chart_finish(w, title, time, "\"\"");
    } else if (wants_chart(w)) {
        autofree char *title = bi_label(w, "title_distribution", "", "");
        bi_line(w, "ax = df[columns].plot.box()");
        bi_chart_finish(w, title, "\"\"", "\"\"");
    }
}

static void overview(struct bi_writer *w)
{
    if (w->p->column_n) {
        describe_columns(w);
        return;
    }
    autofree char *column = bi_label(w, "label_column", "", ""), *type = bi_label(w, "label_type", "", "");
    autofree char *missing = bi_label(w, "label_missing", "", ""),
                  *distinct = bi_label(w, "label_distinct_values", "", "");
    autofree char *example = bi_label(w, "label_example", "", "");
    bi_write_short(w);
    bi_write_fact(w, "fact_rows", "len(df)");
    bi_write_fact(w, "fact_columns", "df.shape[1]");
    bi_write_fact(w, "fact_duplicates", "df.astype(\"str\").duplicated().sum()");
    bi_line(w, "columns = pd.DataFrame({");
    bi_line(w, "    %s: df.columns,", column);
    bi_line(w, "    %s: df.dtypes.astype(\"str\").values,", type);
    bi_line(w, "    %s: df.isna().sum().values,", missing);
    bi_line(w, "    %s: [df[c].astype(\"str\").nunique() for c in df.columns],", distinct);
    bi_line(w, "    %s: [str(df[c].dropna().iloc[0]) if df[c].notna().any() else \"\" for c in df.columns],", example);
    bi_line(w, "})");
    bi_line(w, "print(columns.head(40).map(short).astype(\"object\").to_markdown(index=False, disable_numparse=True))");
    bi_line(w, "numbers = df.select_dtypes(\"number\")");
    bi_line(w, "if numbers.shape[1]:");
    bi_line(w, "    table = numbers.describe().T.rename_axis(%s).reset_index()", column);
    bi_line(w, "    table[\"count\"] = table[\"count\"].astype(\"int64\")");
    bi_line(w, "    print()");
    bi_line(w, "    print(table.head(40).astype(\"object\").to_markdown(index=False, floatfmt=\".2f\"))");
    if (wants_chart(w)) {
        w->uses_plot = true;
        bi_line(w, "    numbers.hist(figsize=(9, 6), bins=20)");
        bi_line(w, "    plt.tight_layout()");
    }
}

/* ---- missing values ---- */

static void missing(struct bi_writer *w)
{
    autofree char *column = bi_label(w, "label_column", "", ""), *count = bi_label(w, "label_missing", "", "");
    autofree char *share = bi_label(w, "label_missing_share", "", ""), *none = bi_label(w, "fact_none_missing", "", "");
    autofree char *title = bi_label(w, "title_missing", "", ""), *names = plan_columns(w);
    if (w->p->column_n)
        bi_line(w, "df = df[%s]", names);
    bi_write_fact(w, "fact_rows", "len(df)");
    bi_line(w, "missing = df.isna().sum()");
    bi_line(
        w, "result = pd.DataFrame({%s: missing.index, %s: missing.values, %s: 100 * missing.values / max(len(df), 1)})",
        column, count, share);
    if (!w->p->column_n)
        bi_line(w, "result = result[result[%s] > 0]", count);
    bi_line(w, "result = result.sort_values(%s, ascending=False, kind=\"stable\", ignore_index=True)", count);
    bi_line(w, "if result[%s].sum() == 0:", count);
    bi_line(w, "    print(%s)", none);
    bi_line(w, "else:");
    w->indent++;
    bi_write_fact(w, "fact_columns_missing", "len(result), \"/\", df.shape[1]");
    bi_line(w, "print(result.head(%lld).astype(\"object\").to_markdown(index=False, floatfmt=\".1f\"))",
            (long long)(w->p->limit ? w->p->limit : 40));
    if (wants_chart(w)) {
        bi_line(w, "bars = result.head(30).set_index(%s)[%s]", column, share);
        bi_line(w, "ax = bars.plot.bar(rot=60 if len(bars) > 6 else 0)");
        bi_chart_finish(w, title, column, share);
    }
    w->indent--;
}

/* ---- distribution ---- */

static void category_distribution(struct bi_writer *w, const char *name)
{
    autofree char *n = bi_label(w, "label_rows", "", ""), *share = bi_label(w, "label_percent", "", "");
    autofree char *missing = bi_label(w, "missing_group", "", ""),
                  *title = bi_label(w, "title_distribution_of", w->p->columns[0]->name, "");
    autofree char *options = bi_table_options(w->p->columns, 1);
    autofree char *distinct = xasprintf("df[%s].nunique()", name);
    bi_write_fact(w, "fact_distinct", distinct);
    bi_line(w, "counts = df[%s].astype(\"object\").fillna(%s).value_counts()", name, missing);
    bi_line(w, "result = counts.rename_axis(%s).reset_index(name=%s)", name, n);
    bi_line(w, "result[%s] = (100 * result[%s] / len(df)).map(\"{:.1f}%%\".format)", share, n);
    if (w->p->columns[0]->odd_text || w->p->columns[0]->role == BI_ROLE_TEXT)
        bi_write_short(w);
    bi_write_table(w, "result", options);
    if (!wants_chart(w))
        return;
    if (w->p->chart == BI_PIE) {
        bi_line(w, "ax = counts.head(12).plot.pie(autopct=\"%%.1f%%%%\", startangle=90, counterclock=False)");
        bi_line(w, "ax.set_title(%s)", title);
        bi_line(w, "ax.set_ylabel(\"\")");
        bi_line(w, "plt.tight_layout()");
        w->uses_plot = true;
        return;
    }
    bi_line(w, "bars = counts.head(30)");
    bi_line(w, "ax = bars.plot.bar(rot=60 if len(bars) > 8 else 0)");
    bi_chart_finish(w, title, name, n);
}

static void number_facts(struct bi_writer *w, const char *name)
{
    static const struct {
        const char *key, *code;
    } facts[] = {
        { "fact_mean", "mean()" },     { "fact_std", "std()" },
        { "fact_min", "min()" },       { "fact_quarter", "quantile(0.25)" },
        { "fact_median", "median()" }, { "fact_three_quarters", "quantile(0.75)" },
        { "fact_max", "max()" },
    };
    bi_line(w, "values = df[%s].dropna()", name);
    bi_write_fact(w, "fact_values", "len(values)");
    autofree char *gaps = xasprintf("df[%s].isna().sum()", name);
    bi_write_fact(w, "fact_missing", gaps);
    for (size_t i = 0; i < countof(facts); i++) {
        autofree char *code = xasprintf("f\"{values.%s:.3f}\"", facts[i].code);
        bi_write_fact(w, facts[i].key, code);
    }
}

static void number_distribution(struct bi_writer *w, const char *name)
{
    const char *column = w->p->columns[0]->name;
    autofree char *title = bi_label(w, "title_distribution_of", column, ""), *n = bi_label(w, "label_rows", "", "");
    number_facts(w, name);
    if (!wants_chart(w))
        return;
    if (w->p->chart == BI_BOX)
        bi_line(w, "ax = values.plot.box()");
    else
        bi_line(w, "ax = values.plot.hist(bins=30, edgecolor=\"white\")");
    bi_chart_finish(w, title, name, w->p->chart == BI_BOX ? "\"\"" : n);
}

static void grouped_distribution(struct bi_writer *w, const char *name)
{
    autofree char *group = bi_group_name(w, &w->p->groups[0]), *to = bi_py_string(group);
    autofree char *title = bi_label(w, "title_by", w->p->columns[0]->name, group);
    bi_write_group_keys(w);
    if (bi_column_numeric(w->p->columns[0])) {
        bi_line(w, "table = df.groupby([%s], dropna=False, observed=True)[%s].describe().reset_index()", to, name);
        bi_line(w, "table[\"count\"] = table[\"count\"].astype(\"int64\")");
        bi_line(w, "print(table.head(%d).astype(\"object\").to_markdown(index=False, floatfmt=\".2f\"))",
                BI_TABLE_ROWS);
        bi_line(w, "ax = df.boxplot(column=%s, by=%s, grid=False, rot=60 if df[%s].nunique() > 8 else 0)", name, to,
                to);
        bi_line(w, "ax.figure.suptitle(\"\")");
        bi_chart_finish(w, title, to, name);
        return;
    }
    bi_line(w, "counts = pd.crosstab(df[%s], df[%s])", to, name);
    bi_line(w, "print(counts.head(%d).astype(\"object\").to_markdown())", BI_TABLE_ROWS);
    bi_line(w, "ax = counts.plot.bar(rot=0)");
    bi_chart_finish(w, title, to, "\"\"");
}

static void distribution(struct bi_writer *w)
{
    autofree char *name = bi_py_string(w->p->columns[0]->name);
    if (w->p->group_n)
        grouped_distribution(w, name);
    else if (bi_column_numeric(w->p->columns[0]) && w->p->columns[0]->distinct > 12)
        number_distribution(w, name);
    else
        category_distribution(w, name);
}

/* ---- correlation ---- */

static void number_flag(struct bi_writer *w, const struct bi_column *c)
{
    if (c->type == BI_TYPE_NUMBER || !c->yes.text)
        return;
    autofree char *name = bi_py_string(c->name), *yes = bi_py_string(c->yes.text);
    if (c->type == BI_TYPE_TEXT)
        bi_line(w, "df[%s] = df[%s].eq(%s).astype(\"float\").where(df[%s].notna())", name, name, yes, name);
    else
        bi_line(w, "df[%s] = df[%s].astype(\"float\")", name, name);
}

static void pair_correlation(struct bi_writer *w)
{
    autofree char *a = bi_py_string(w->p->columns[0]->name), *b = bi_py_string(w->p->columns[1]->name);
    autofree char *title = bi_label(w, "title_pair", w->p->columns[0]->name, w->p->columns[1]->name);
    bi_line(w, "both = df[[%s, %s]].dropna()", a, b);
    bi_write_fact(w, "fact_pairs", "len(both)");
    bi_line(w, "pearson, ranks = both.corr().iloc[0, 1], both.rank().corr().iloc[0, 1]");
    bi_write_fact(w, "fact_pearson", "f\"{pearson:.3f}\"");
    bi_write_fact(w, "fact_spearman", "f\"{ranks:.3f}\"");
    if (!wants_chart(w))
        return;
    bi_line(w, "ax = both.plot.scatter(x=%s, y=%s, alpha=0.6)", a, b);
    bi_chart_finish(w, title, a, b);
}

static size_t matrix_columns(const struct bi_writer *w, const struct bi_column **to)
{
    size_t n = 0;
    for (size_t i = 0; i < w->p->column_n && w->p->column_n > 1 && n < MATRIX_MAX; i++)
        to[n++] = w->p->columns[i];
    for (size_t i = 0; i < w->table->column_n && w->p->column_n < 2 && n < MATRIX_MAX; i++) {
        const struct bi_column *c = &w->table->columns[i];
        if (bi_column_numeric(c) || bi_column_flag(c) || (w->p->column_n && c == w->p->columns[0]))
            to[n++] = c;
    }
    return n;
}

static void strongest_pairs(struct bi_writer *w)
{
    autofree char *a = bi_label(w, "label_first", "", ""), *b = bi_label(w, "label_second", "", ""),
                  *r = bi_label(w, "label_r", "", "");
    bi_line(w, "pairs = [");
    bi_line(
        w,
        "    (a, b, table.loc[a, b]) for i, a in enumerate(table) for b in list(table)[i + 1 :] if pd.notna(table.loc[a, b])");
    bi_line(w, "]");
    bi_line(w, "pairs = sorted(pairs, key=lambda pair: -abs(pair[2]))[:%lld]",
            (long long)(w->p->limit ? w->p->limit : 10));
    bi_line(w, "print(pd.DataFrame(pairs, columns=[%s, %s, %s]).to_markdown(index=False, floatfmt=\".3f\"))", a, b, r);
}

static void correlation(struct bi_writer *w)
{
    const struct bi_column *columns[MATRIX_MAX];
    size_t n = matrix_columns(w, columns);
    for (size_t i = 0; i < n; i++)
        number_flag(w, columns[i]);
    if (w->p->column_n == 2) {
        pair_correlation(w);
        return;
    }
    autofree char *names = bi_py_names(columns, n), *title = bi_label(w, "title_correlation", "", "");
    bi_line(w, "table = df[%s].corr()", names);
    if (w->p->column_n == 1) {
        autofree char *one = bi_py_string(w->p->columns[0]->name), *column = bi_label(w, "label_column", "", ""),
                      *r = bi_label(w, "label_r", "", "");
        bi_line(w, "with_it = table[%s].drop(%s).sort_values(key=abs, ascending=False)", one, one);
        bi_line(
            w,
            "print(with_it.rename_axis(%s).reset_index(name=%s).astype(\"object\").to_markdown(index=False, floatfmt=\".3f\"))",
            column, r);
    } else {
        strongest_pairs(w);
    }
    if (!wants_chart(w))
        return;
    w->uses_seaborn = w->uses_plot = true;
    bi_line(w, "ax = sns.heatmap(table, annot=True, fmt=\".2f\", cmap=\"vlag\", vmin=-1, vmax=1)");
    bi_line(w, "ax.set_title(%s)", title);
    bi_line(w, "plt.tight_layout()");
}

/* ---- plain facts ---- */

static void columns(struct bi_writer *w)
{
    autofree char *column = bi_label(w, "label_column", "", ""), *type = bi_label(w, "label_type", "", "");
    autofree char *filled = bi_label(w, "label_filled", "", "");
    bi_write_fact(w, "fact_columns", "df.shape[1]");
    bi_write_short(w);
    bi_line(w,
            "table = pd.DataFrame({%s: df.columns, %s: df.dtypes.astype(\"str\").values, %s: df.notna().sum().values})",
            column, type, filled);
    bi_line(w, "print(table.head(60).map(short).astype(\"object\").to_markdown(index=False, disable_numparse=True))");
}

static void shape(struct bi_writer *w)
{
    bi_write_fact(w, "fact_rows", "len(df)");
    bi_write_fact(w, "fact_columns", "df.shape[1]");
}

static void duplicates(struct bi_writer *w)
{
    autofree char *names = plan_columns(w);
    autofree char *subset = w->p->column_n ? xasprintf("subset=%s", names) : xstrdup("");
    bi_write_fact(w, "fact_rows", "len(df)");
    bi_line(w, "again = df[df.astype(\"str\").duplicated(%s)]", subset);
    bi_write_fact(w, "fact_duplicates", "len(again)");
    bi_line(w, "if len(again):");
    bi_line(w, "    print(again.head(10).map(short).astype(\"object\").to_markdown(index=False))");
    bi_write_short(w);
}

static void unique(struct bi_writer *w)
{
    autofree char *n = bi_label(w, "label_rows", "", ""), *missing = bi_label(w, "missing_group", "", "");
    for (size_t i = 0; i < w->p->column_n; i++) {
        autofree char *name = bi_py_string(w->p->columns[i]->name), *count = xasprintf("df[%s].nunique()", name);
        autofree char *label = bi_label(w, "fact_distinct_of", w->p->columns[i]->name, "");
        autofree char *options = bi_table_options(&w->p->columns[i], 1);
        bi_line(w, "print(%s, %s)", label, count);
        bi_line(w, "result = df[%s].astype(\"object\").fillna(%s).value_counts().rename_axis(%s).reset_index(name=%s)",
                name, missing, name, n);
        bi_write_short(w);
        bi_write_table(w, "result", options);
    }
}

static void files(struct bi_writer *w)
{
    autofree char *file = bi_label(w, "label_file", "", ""), *size = bi_label(w, "label_bytes", "", "");
    w->uses_path = true;
    bi_line(w, "files = []");
    for (size_t i = 0; i < w->t->n; i++) {
        const struct bi_table *t = &w->t->at[i];
        if (t->left >= 0)
            continue;
        autofree char *path = bi_py_string(t->path), *folder = bi_py_string(t->folder ? t->folder : "");
        if (t->folder)
            bi_line(w, "files += sorted(p for p in Path(%s).rglob(\"*\") if p.is_file())", folder);
        else
            bi_line(w, "files.append(Path(%s))", path);
    }
    for (size_t i = 0; i < w->t->other_n; i++) {
        autofree char *path = bi_py_string(w->t->others[i].name);
        bi_line(w, "files.append(Path(%s))", path);
    }
    bi_line(w, "files = list(dict.fromkeys(files))");
    bi_write_fact(w, "fact_files", "len(files)");
    for (size_t i = 0; i < w->t->n; i++)
        if (w->t->at[i].piece_n) {
            autofree char *pieces = xasprintf("%zu", w->t->at[i].piece_n);
            bi_write_fact(w, "fact_pieces", pieces);
        }
    bi_line(
        w,
        "table = pd.DataFrame({%s: [str(p) for p in files], %s: [p.stat().st_size if p.exists() else None for p in files]})",
        file, size);
    bi_line(w, "print(table.head(40).astype(\"object\").to_markdown(index=False))");
}

static void join(struct bi_writer *w)
{
    bi_write_fact(w, "fact_rows", "len(df)");
    bi_write_fact(w, "fact_columns", "df.shape[1]");
    bi_write_short(w);
    bi_line(w, "print(df.head(5).map(short).astype(\"object\").to_markdown(index=False))");
    bi_write_export(w, "df", "joined");
}

/* ---- clean-up ---- */

static const char *fill_code(const struct bi_plan *p)
{
    switch (p->fill) {
    case BI_FILL_MEAN: return "df[name].mean()";
    case BI_FILL_MEDIAN: return "df[name].median()";
    case BI_FILL_MODE: return "df[name].mode().iloc[0]";
    case BI_FILL_NONE:
    case BI_FILL_NUMBER:
    case BI_FILL_PREVIOUS:
    case BI_FILL_TEXT: break;
    }
    return "";
}

static void fill(struct bi_writer *w)
{
    autofree char *names = plan_columns(w), *number = bi_py_number(w->p->fill_number),
                  *filled = bi_label(w, "fact_filled", "", "");
    bool numeric = w->p->fill != BI_FILL_MODE && w->p->fill != BI_FILL_PREVIOUS;
    autofree char *all =
        w->p->column_n ? take(names) : xstrdup(numeric ? "df.select_dtypes(\"number\").columns" : "df.columns");
    bi_line(w, "for name in %s:", all);
    bi_line(w, "    gaps = df[name].isna().sum()");
    bi_line(w, "    if gaps and gaps < len(df):");
    if (w->p->fill == BI_FILL_PREVIOUS)
        bi_line(w, "        df[name] = df[name].ffill()");
    else
        bi_line(w, "        df[name] = df[name].fillna(%s)", w->p->fill == BI_FILL_NUMBER ? number : fill_code(w->p));
    bi_line(w, "        print(%s, name, gaps)", filled);
}

static void to_number(struct bi_writer *w)
{
    autofree char *names = plan_columns(w), *made = bi_label(w, "fact_numbers", "", "");
    autofree char *all =
        w->p->column_n ? take(names) : xstrdup("df.select_dtypes(include=[\"object\", \"str\"]).columns");
    bi_line(w, "for name in %s:", all);
    bi_line(w, "    text = df[name].astype(\"str\").str.replace(r\"[^0-9.eE+-]\", \"\", regex=True)");
    bi_line(w, "    number = pd.to_numeric(text, errors=\"coerce\").where(df[name].notna())");
    bi_line(w, "    if number.notna().sum() >= 0.8 * df[name].notna().sum() > 0:");
    bi_line(w, "        df[name] = number");
    bi_line(w, "        print(%s, name, number.notna().sum())", made);
}

static void clean(struct bi_writer *w)
{
    autofree char *names = plan_columns(w), *dropped = bi_label(w, "fact_dropped", "", "");
    autofree char *subset = w->p->column_n ? xasprintf("subset=%s", names) : xstrdup("");
    bi_write_fact(w, "fact_rows_before", "len(df)");
    if (w->p->dedupe) {
        bi_line(w, "before = len(df)");
        bi_line(w, "df = df[~df.astype(\"str\").duplicated(%s)].copy()",
                w->p->fill || w->p->drop_missing ? "" : subset);
        autofree char *label = bi_label(w, "fact_duplicates_dropped", "", "");
        bi_line(w, "print(%s, before - len(df))", label);
    }
    if (w->p->drop_missing) {
        bi_line(w, "before = len(df)");
        bi_line(w, "df = df.dropna(%s)", subset);
        bi_line(w, "print(%s, before - len(df))", dropped);
    }
    if (w->p->fill != BI_FILL_NONE)
        fill(w);
    if (w->p->to_number)
        to_number(w);
    bi_write_fact(w, "fact_rows_after", "len(df)");
    bi_write_export(w, "df", "clean");
}

/* ---- which one ---- */

void bi_write_recipe(struct bi_writer *w)
{
    switch (w->p->recipe) {
    case BI_DO_ROWS: bi_write_rows(w); break;
    case BI_DO_OVERVIEW: overview(w); break;
    case BI_DO_MISSING: missing(w); break;
    case BI_DO_DISTRIBUTION: distribution(w); break;
    case BI_DO_CORRELATION: correlation(w); break;
    case BI_DO_COLUMNS: columns(w); break;
    case BI_DO_SHAPE: shape(w); break;
    case BI_DO_DUPLICATES: duplicates(w); break;
    case BI_DO_UNIQUE: unique(w); break;
    case BI_DO_FILES: files(w); break;
    case BI_DO_JOIN: join(w); break;
    case BI_DO_CLEAN: clean(w); break;
    case BI_DO_NOTHING:
    case BI_DO_AGGREGATE:
    case BI_DO_TREND: break;
    }
}
