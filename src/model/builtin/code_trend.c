/* code_trend.c - measures over time, as Python. */
#include <string.h>
#include "code.h"

/* How a time is written and to what it is rounded: by what is asked, else as the data has it. */
struct grain {
    const char *floor, *text;
};

static struct grain grain_of(const struct bi_writer *w)
{
    static const struct {
        enum bi_sense period;
        const char *freq;
        struct grain grain;
    } all[] = {
        { BI_DECADE,
          "decade",
          { ".map(lambda t: t.replace(year=t.year // 10 * 10, month=1, day=1).normalize(), na_action=\"ignore\")",
            ".dt.strftime(\"%Ys\")" } },
        { BI_YEAR, "year", { ".dt.to_period(\"Y\").dt.start_time", ".dt.strftime(\"%Y\")" } },
        { BI_QUARTER, "quarter", { ".dt.to_period(\"Q\").dt.start_time", ".dt.to_period(\"Q\").astype(\"str\")" } },
        { BI_MONTH, "month", { ".dt.to_period(\"M\").dt.start_time", ".dt.strftime(\"%Y-%m\")" } },
        { BI_WEEK, "week", { ".dt.to_period(\"W\").dt.start_time", ".dt.strftime(\"%Y-%m-%d\")" } },
        { BI_HOUR, "hour", { ".dt.floor(\"h\")", ".dt.strftime(\"%Y-%m-%d %H:%M\")" } },
        { BI_DAY, "day", { ".dt.normalize()", ".dt.strftime(\"%Y-%m-%d\")" } },
    };
    const char *freq = w->table->time_freq ? w->table->time_freq : "day";
    for (size_t i = 0; i < countof(all); i++)
        if (w->p->time_period == all[i].period)
            return all[i].grain;
    for (size_t i = 0; i < countof(all); i++)
        if (w->p->time_period == BI_NONE && strcmp(freq, all[i].freq) == 0)
            return (struct grain){ "", all[i].grain.text };
    return (struct grain){ "", strcmp(freq, "time") == 0 ? ".dt.strftime(\"%Y-%m-%d %H:%M\")"
                                                         : ".dt.strftime(\"%Y-%m-%d\")" };
}

static char *time_name(const struct bi_writer *w)
{
    autofree char *name = bi_label_text(w, "label_time", "", "");
    return bi_table_named(w->table, name) ? xasprintf("%s *", name) : take(name);
}

static const char *stat_method(enum bi_sense stat)
{
    switch ((int)stat) {
    case BI_MEDIAN: return "median()";
    case BI_SUM: return "sum()";
    case BI_COUNT: return "count()";
    case BI_DISTINCT: return "nunique()";
    case BI_MIN: return "min()";
    case BI_MAX: return "max()";
    case BI_STD: return "std()";
    case BI_VARIANCE: return "var()";
    default: return "mean()";
    }
}

static void write_result(struct bi_writer *w, const char *time)
{
    struct str keys = STR_INIT(8 << 10);
    str_printf(&keys, "[%s", time);
    for (size_t i = 0; i < w->p->group_n; i++) {
        autofree char *name = bi_group_name(w, &w->p->groups[i]), *literal = bi_py_string(name);
        str_printf(&keys, ", %s", literal);
    }
    str_putc(&keys, ']');
    bi_line(w, "groups = df.groupby(%s, observed=True)", str_peek(&keys));
    str_clear(&keys);
    bi_line(w, "result = pd.DataFrame({");
    for (size_t i = 0; i < w->p->measure_n; i++) {
        const struct bi_measure *m = &w->p->measures[i];
        autofree char *label = bi_measure_label(w, m), *to = bi_py_string(label);
        if (m->type == BI_MEASURE_ROWS) {
            bi_line(w, "    %s: groups.size(),", to);
            continue;
        }
        autofree char *name = bi_measure_source(m, w->p), *from = bi_py_string(name);
        bi_line(w, "    %s: groups[%s].%s,", to, from, stat_method(m->stat));
    }
    bi_line(w, "}).reset_index()");
}

/* ---- against a time so much before ---- */

static const char *step_code(enum bi_sense step)
{
    switch ((int)step) {
    case BI_YEAR: return "pd.DateOffset(years=1)";
    case BI_QUARTER: return "pd.DateOffset(months=3)";
    case BI_WEEK: return "pd.DateOffset(weeks=1)";
    case BI_DAY: return "pd.DateOffset(days=1)";
    default: return "pd.DateOffset(months=1)";
    }
}

/* Columns of changes, found by the time itself: where a time is missing there is no change, not the one from the row before. */
static void write_step(struct bi_writer *w, const char *time)
{
    autofree char *name = w->p->group_n ? bi_group_name(w, &w->p->groups[0]) : NULL;
    autofree char *group = name ? bi_py_string(name) : NULL;
    autofree char *keys = group ? xasprintf("[%s, %s]", time, group) : xasprintf("[%s]", time);
    for (size_t i = 0; i < w->p->measure_n; i++) {
        autofree char *label = bi_measure_label(w, &w->p->measures[i]), *from = bi_py_string(label);
        autofree char *to = bi_label(w, "label_change", label, ""), *by = bi_label(w, "label_difference", label, "");
        bi_line(w, "before = result[%s + [%s]].rename(columns={%s: \"before\"})", keys, from, from);
        bi_line(w, "before[%s] = before[%s] + %s", time, time, step_code(w->p->step));
        bi_line(w, "before = result[%s].merge(before, on=%s, how=\"left\")[\"before\"].to_numpy(dtype=\"float\")", keys,
                keys);
        bi_line(w, "result[%s] = result[%s] - before", by, from);
        bi_line(w, "result[%s] = (100 * (result[%s] - before) / abs(before)).where(before != 0)", to, from);
    }
}

/* From when to when there is data: the first and the last time may be half. */
static void write_span(struct bi_writer *w)
{
    autofree char *span = bi_label(w, "fact_span", "", ""), *half = bi_label(w, "of_half", "", "");
    bi_line(w, "times = (%s).dropna()", w->table->time_expr);
    bi_line(w, "print(%s, f\"{times.min():%%Y-%%m-%%d} – {times.max():%%Y-%%m-%%d}\", %s)", span, half);
}

static void write_running(struct bi_writer *w)
{
    autofree char *name = w->p->group_n ? bi_group_name(w, &w->p->groups[0]) : NULL;
    autofree char *group = name ? bi_py_string(name) : NULL;
    autofree char *by = group ? xasprintf(".groupby(%s, observed=True)", group) : xstrdup("");
    for (size_t i = 0; i < w->p->measure_n; i++) {
        autofree char *label = bi_measure_label(w, &w->p->measures[i]), *literal = bi_py_string(label);
        bi_line(w, "result[%s] = result%s[%s].cumsum()", literal, by, literal);
    }
}

/* A column of changes beside each measure, in per cent of the value before. */
static void write_growth(struct bi_writer *w)
{
    for (size_t i = 0; i < w->p->measure_n; i++) {
        autofree char *label = bi_measure_label(w, &w->p->measures[i]), *from = bi_py_string(label);
        autofree char *to = bi_label(w, "label_change", label, "");
        autofree char *name = w->p->group_n ? bi_group_name(w, &w->p->groups[0]) : NULL;
        autofree char *group = name ? bi_py_string(name) : NULL;
        autofree char *by = group ? xasprintf(".groupby(%s, observed=True)", group) : xstrdup("");
        bi_line(w, "result[%s] = result%s[%s].pct_change(fill_method=None) * 100", to, by, from);
    }
}

static void write_growth_fact(struct bi_writer *w, const char *label)
{
    autofree char *change = bi_label(w, "fact_change", label, "");
    bi_line(w, "if len(line) > 1 and line.iloc[0]:");
    bi_line(w, "    print(%s, f\"{(line.iloc[-1] / line.iloc[0] - 1) * 100:+.2f} %%\")", change);
}

/* The newest change that there is. */
static void write_step_fact(struct bi_writer *w, const char *time, const char *label)
{
    autofree char *change = bi_label(w, "label_change", label, ""),
                  *fact = bi_label(w, "fact_newest_change", label, "");
    bi_line(w, "changes = result.dropna(subset=[%s])", change);
    bi_line(w, "if len(changes):");
    bi_line(w, "    print(%s, changes[%s].iloc[-1], f\"({changes[%s].iloc[-1]:+.2f} %%)\")", fact, time, change);
}

/* First, last, highest and lowest of each line. */
static void write_facts(struct bi_writer *w, const char *time, size_t i)
{
    const struct bi_measure *m = &w->p->measures[i];
    autofree char *label = bi_measure_label(w, m), *column = bi_py_string(label);
    autofree char *first = bi_label(w, "fact_first", label, ""), *last = bi_label(w, "fact_last", label, "");
    autofree char *high = bi_label(w, "fact_highest_by", label, ""), *low = bi_label(w, "fact_lowest_by", label, "");
    autofree char *mean = bi_label(w, "fact_mean_of", label, "");
    int digits =
        m->type == BI_MEASURE_ROWS || (m->stat == BI_SUM && m->column && m->column->whole) ? 0 : bi_decimals(w->p);
    bi_line(w, "line = result.dropna(subset=[%s]).set_index(%s)[%s]", column, time, column);
    bi_line(w, "if len(line):");
    w->indent++;
    bi_line(w, "print(%s, line.index[0], f\"({line.iloc[0]:.%df})\")", first, digits);
    bi_line(w, "print(%s, line.index[-1], f\"({line.iloc[-1]:.%df})\")", last, digits);
    if (w->p->step != BI_NONE)
        write_step_fact(w, time, label);
    if (w->p->growth)
        write_growth_fact(w, label);
    if (w->p->running) {
        w->indent--;
        return;
    }
    if (m->stat == BI_SUM) {
        autofree char *total = bi_label(w, "fact_total_of", label, "");
        bi_line(w, "print(%s, f\"{line.sum():.%df}\")", total, digits);
    }
    bi_line(w, "print(%s, f\"{line.mean():.%df}\")", mean, digits ? digits : 2);
    bi_line(w, "print(%s, line.idxmax(), f\"({line.max():.%df})\")", high, digits);
    bi_line(w, "print(%s, line.idxmin(), f\"({line.min():.%df})\")", low, digits);
    w->indent--;
}

/* First and last of each group's line. */
static void write_line_facts(struct bi_writer *w, const char *time)
{
    autofree char *name = bi_group_name(w, &w->p->groups[0]), *group = bi_py_string(name);
    autofree char *label = bi_measure_label(w, &w->p->measures[0]), *column = bi_py_string(label);
    bi_line(w, "for name, line in result.dropna(subset=[%s]).groupby(%s, observed=True):", column, group);
    bi_line(w, "    line = line.set_index(%s)[%s]", time, column);
    bi_line(w,
            "    print(f\"- {name}: {line.index[0]} ({line.iloc[0]:.%df}) … {line.index[-1]} ({line.iloc[-1]:.%df})\")",
            bi_decimals(w->p), bi_decimals(w->p));
}

static void write_points(struct bi_writer *w, const char *time)
{
    autofree char *points = bi_label(w, "fact_points", "", "");
    bi_line(w, "print(%s, result[%s].nunique())", points, time);
    if (w->p->group_n) {
        write_line_facts(w, time);
        return;
    }
    for (size_t i = 0; i < w->p->measure_n; i++)
        write_facts(w, time, i);
}

void bi_write_trend(struct bi_writer *w)
{
    struct grain grain = grain_of(w);
    autofree char *name = time_name(w), *time = bi_py_string(name), *lost = bi_label(w, "fact_no_time", "", "");
    bi_write_measure_columns(w);
    bi_write_group_keys(w);
    bi_line(w, "df[%s] = (%s)%s", time, w->table->time_expr, grain.floor);
    bi_line(w, "if df[%s].isna().any():", time);
    bi_line(w, "    print(%s, df[%s].isna().sum())", lost, time);
    write_result(w, time);
    if (w->p->running)
        write_running(w);
    if (w->p->step != BI_NONE) {
        write_step(w, time);
        write_span(w);
    }
    bi_blank(w);
    if (w->p->chart != BI_NONE && w->p->chart != BI_NO_CHART)
        bi_chart_trend(w, time);
    bi_line(w, "result[%s] = result[%s]%s", time, time, grain.text);
    if (w->p->growth && w->p->step == BI_NONE)
        write_growth(w);
    write_points(w, time);
    bi_line(w, "if len(result) <= %d:", BI_TABLE_ROWS);
    bi_line(w, "    print(result.astype(\"object\").to_markdown(index=False, floatfmt=\".%df\"))", bi_decimals(w->p));
    if (!w->p->export_asked) {
        bi_line(w, "else:");
        w->indent++;
    }
    if (!w->p->export_asked && (w->p->growth || w->p->running)) { /* the table is the answer: its newest rows */
        autofree char *newest = bi_label(w, "fact_newest", "", "");
        bi_line(w, "print(%s, %d)", newest, BI_TABLE_ROWS);
        bi_line(w, "print(result.tail(%d).astype(\"object\").to_markdown(index=False, floatfmt=\".%df\"))",
                BI_TABLE_ROWS, bi_decimals(w->p));
    }
    bi_write_export(w, "result", "result");
    w->indent -= !w->p->export_asked;
}
