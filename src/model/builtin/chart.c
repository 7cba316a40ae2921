/* chart.c - figures: one for a request, with title, axis names and ticks that can be read. */
#include <string.h>
#include "code.h"

enum { BARS_MAX = 30, LINES_MAX = 8 };

void bi_chart_finish(struct bi_writer *w, const char *title, const char *x, const char *y)
{
    bi_line(w, "ax.set_title(%s)", title);
    bi_line(w, "ax.set_xlabel(%s)", x);
    bi_line(w, "ax.set_ylabel(%s)", y);
    bi_line(w, "plt.tight_layout()");
    w->uses_plot = true;
}

static char *literal_of(const struct bi_writer *w, size_t measure)
{
    autofree char *label = bi_measure_label(w, &w->p->measures[measure]);
    return bi_py_string(label);
}

static char *title_of(const struct bi_writer *w)
{
    autofree char *label = bi_measure_label(w, &w->p->measures[0]), *group = NULL;
    if (w->p->group_n == 0)
        return bi_py_string(label);
    autofree char *first = bi_group_name(w, &w->p->groups[0]);
    if (w->p->group_n > 1) {
        autofree char *second = bi_group_name(w, &w->p->groups[1]);
        group = bi_label_text(w, "two_names", first, second);
    } else {
        group = take(first);
    }
    return bi_label(w, "title_by", label, group);
}

static void pie(struct bi_writer *w, const char *group, const char *measure, const char *title)
{
    bi_line(w, "slices = result.set_index(%s)[%s]", group, measure);
    bi_line(w, "ax = slices.plot.pie(autopct=\"%%.1f%%%%\", startangle=90, counterclock=False)");
    bi_line(w, "ax.set_title(%s)", title);
    bi_line(w, "ax.set_ylabel(\"\")");
    bi_line(w, "plt.tight_layout()");
    w->uses_plot = true;
}

/* Outside of the axes, where it covers no bar and no line. */
static void legend_beside(struct bi_writer *w, const char *title)
{
    bi_line(w, "ax.legend(title=%s, loc=\"upper left\", bbox_to_anchor=(1.01, 1), borderaxespad=0)", title);
}

static void rotate(struct bi_writer *w, const char *frame)
{
    bi_line(w, "crowded = len(%s) > 8 or %s.index.astype(\"str\").str.len().max() > 8", frame, frame);
}

/* The columns of the measures that one axis can hold: of one kind. */
static char *measure_list(const struct bi_writer *w)
{
    struct str out = STR_INIT(8 << 10);
    size_t n = w->p->stat_open ? 1 : w->p->measure_n;
    for (size_t i = 0; i < n; i++) {
        autofree char *literal = literal_of(w, i);
        str_printf(&out, "%s%s", i ? ", " : "[", literal);
    }
    str_putc(&out, ']');
    return str_take(&out);
}

static void bars(struct bi_writer *w, const char *group, const char *title, const char *y)
{
    autofree char *measures = measure_list(w);
    bool single = w->p->measure_n == 1 || w->p->stat_open;
    bool line = w->p->chart == BI_LINE;
    bi_line(w, "bars = result.head(%d).set_index(%s)[%s]", BARS_MAX, group, measures);
    rotate(w, "bars");
    if (!single && w->p->measure_n <= 4) {
        bi_line(
            w,
            "axes = bars.plot.%s(subplots=True, legend=False, figsize=(7, 2.4 * bars.shape[1]), rot=60 if crowded else 0)",
            line ? "line" : "bar");
        bi_line(w, "axes[-1].set_xlabel(%s)", group);
        bi_line(w, "plt.tight_layout()");
        w->uses_plot = true;
        return;
    }
    bi_line(w, "ax = bars.plot.%s(legend=%s, rot=60 if crowded else 0%s)", line ? "line" : "bar",
            single ? "False" : "True", line ? ", marker=\"o\"" : "");
    bi_chart_finish(w, title, group, y);
}

static void grouped_bars(struct bi_writer *w, const char *first, const char *second, const char *title, const char *y)
{
    bool heat = w->p->chart == BI_HEATMAP;
    bi_line(w, "bars = result.pivot(index=%s, columns=%s, values=%s).head(%d)", first, second, y, BARS_MAX);
    if (heat) {
        w->uses_seaborn = true;
        bi_line(w, "ax = sns.heatmap(bars.astype(\"float\"), annot=True, fmt=\".3g\", cmap=\"cividis\")");
    } else {
        rotate(w, "bars");
        bi_line(w, "ax = bars.plot.%s(rot=60 if crowded else 0)", w->p->chart == BI_LINE ? "line" : "bar");
        legend_beside(w, second);
    }
    bi_chart_finish(w, title, first, heat ? second : y);
}

void bi_chart_groups(struct bi_writer *w)
{
    autofree char *title = title_of(w), *y = literal_of(w, 0);
    autofree char *name = bi_group_name(w, &w->p->groups[0]), *group = bi_py_string(name);
    bi_blank(w);
    if (w->p->group_n == 2) {
        autofree char *other = bi_group_name(w, &w->p->groups[1]), *second = bi_py_string(other);
        grouped_bars(w, group, second, title, y);
    } else if (w->p->chart == BI_PIE) {
        pie(w, group, y, title);
    } else {
        bars(w, group, title, y);
    }
}

void bi_chart_trend(struct bi_writer *w, const char *time)
{
    autofree char *y = literal_of(w, 0), *label = bi_measure_label(w, &w->p->measures[0]);
    autofree char *title = bi_label(w, "title_over_time", label, "");
    if (w->p->group_n) {
        autofree char *name = bi_group_name(w, &w->p->groups[0]), *group = bi_py_string(name);
        bi_line(w, "lines = result.pivot(index=%s, columns=%s, values=%s)", time, group, y);
        bi_line(w, "lines = lines[lines.max().nlargest(%d).index]", LINES_MAX);
        bi_line(w, "ax = lines.plot.line()");
        legend_beside(w, group);
        bi_chart_finish(w, title, time, y);
        return;
    }
    autofree char *measures = measure_list(w);
    bool bar = w->p->chart == BI_BAR;
    if (bar) {
        bi_line(w, "bars = result.set_index(%s)[%s]", time, measures);
        bi_line(w, "bars.index = bars.index.strftime(\"%%Y-%%m-%%d\")");
        bi_line(w, "ax = bars.plot.bar(legend=%s)", w->p->measure_n > 1 ? "True" : "False");
        bi_line(w, "ax.xaxis.set_major_locator(plt.MaxNLocator(20))");
    } else {
        bi_line(w, "ax = result.set_index(%s)[%s].plot.line(legend=%s)", time, measures,
                w->p->measure_n > 1 ? "True" : "False");
    }
    if (w->p->measure_n > 1) {
        struct str names = STR_INIT(8 << 10);
        for (size_t i = 0; i < w->p->measure_n; i++) {
            autofree char *name = bi_measure_label(w, &w->p->measures[i]);
            str_printf(&names, "%s%s", i ? ", " : "", name);
        }
        autofree char *all = bi_label(w, "title_over_time", str_peek(&names), "");
        str_clear(&names);
        bi_chart_finish(w, all, time, "\"\"");
    } else {
        bi_chart_finish(w, title, time, y);
    }
}
