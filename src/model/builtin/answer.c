/* answer.c - answers from a plan and what its program printed. */
#include "answer.h"
#include <stdio.h>
#include <string.h>

struct answer {
    struct str *out;
    const struct bi_lexicon *x;
    const struct bi_tables *t;
    const struct bi_plan *p;
    const struct bi_table *table;
};

enum { NAMES_MAX = 40 };

/* A name as code in Markdown, whatever is in it. */
static void add_name(struct str *out, const char *name)
{
    bool ticks = strchr(name, '`') != NULL;
    str_puts(out, ticks ? "`` " : "`");
    for (const char *c = name; *c; c++)
        str_add(out, *c == '\n' || *c == '\r' ? " " : c, 1);
    str_puts(out, ticks ? " ``" : "`");
}

static char *name_of(const char *name)
{
    struct str out = STR_INIT(16 << 10);
    add_name(&out, name);
    return str_take(&out);
}

static void say(const struct answer *a, const char *key, const char *column, const char *value)
{
    bi_say(a->out, a->x, a->p->language, key, (const char *const[]){ "column", column, "value", value, NULL });
}

static char *said(const struct answer *a, const char *key, const char *column, const char *value)
{
    struct str out = STR_INIT(16 << 10);
    bi_say(&out, a->x, a->p->language, key, (const char *const[]){ "column", column, "value", value, NULL });
    return str_take(&out);
}

static const char *text(const struct answer *a, const char *key)
{
    return bi_text(a->x, a->p->language, key);
}

/* ---- refusals and questions ---- */

static void list_columns(const struct answer *a)
{
    for (size_t i = 0; i < a->t->n; i++) {
        const struct bi_table *t = &a->t->at[i];
        if (t->left >= 0)
            continue;
        struct str names = STR_INIT(32 << 10);
        for (size_t k = 0; k < t->column_n && k < NAMES_MAX; k++) {
            str_puts(&names, k ? ", " : "");
            add_name(&names, t->columns[k].name);
        }
        if (t->column_n > NAMES_MAX)
            str_puts(&names, ", …");
        autofree char *file = name_of(t->name);
        say(a, "columns_of", file, str_peek(&names));
        str_putc(a->out, '\n');
        str_clear(&names);
    }
}

void bi_answer_trouble(struct str *out, const struct bi_lexicon *x, const struct bi_tables *t, const struct bi_plan *p)
{
    struct answer a = { out, x, t, p, NULL };
    str_puts(out, p->trouble ? p->trouble : text(&a, "nothing_asked"));
    str_puts(out, "\n");
    if (t->n && (p->wants_help || !p->asks)) {
        str_puts(out, "\n");
        list_columns(&a);
    }
    for (size_t i = 0; i < t->other_n && !t->n; i++) {
        const struct bi_other *o = &t->others[i];
        autofree char *file = name_of(o->name), *why = name_of(o->why ? o->why : "");
        say(&a, o->unread ? "unread_file" : o->why ? "other_file_why" : "other_file", file, why);
        str_putc(out, '\n');
    }
    if (p->wants_help || !p->asks) {
        str_puts(out, "\n");
        say(&a, "help", "", "");
        str_puts(out, "\n");
    }
    str_puts(out, "\n");
    say(&a, "footer", "", "");
}

/* ---- how it was read ---- */

static void add_value(struct str *out, const struct bi_value *v)
{
    if (!v->text || v->is_number)
        str_printf(out, "%.12g", v->number);
    else
        add_name(out, v->text);
}

static void filter_values(const struct answer *a, struct str *out, const struct bi_filter *f)
{
    str_printf(out, " %s ", text(a, f->negated ? "is_not" : "is"));
    for (size_t i = 0; i < f->value_n; i++) {
        str_puts(out, i ? text(a, "or") : "");
        add_value(out, &f->values[i]);
    }
}

static void filter_range(const struct answer *a, struct str *out, const struct bi_filter *f)
{
    if (f->outside)
        str_printf(out, " %s %.12g%s%s %.12g", f->low_open ? ">" : "≥", f->low, text(a, "or"), f->high_open ? "<" : "≤",
                   f->high);
    else if (f->has_low && f->has_high && f->low == f->high)
        str_printf(out, " %s %.12g", f->negated ? "≠" : "=", f->low);
    else if (f->has_low && f->has_high)
        str_printf(out, "%s %s %.12g, %s %.12g", f->negated ? " not" : "", f->low_open ? ">" : "≥", f->low,
                   f->high_open ? "<" : "≤", f->high);
    else if (f->has_low)
        str_printf(out, " %s %.12g", f->low_open ? ">" : "≥", f->low);
    else
        str_printf(out, " %s %.12g", f->high_open ? "<" : "≤", f->high);
}

static void filter_part(const struct answer *a, struct str *out, const struct bi_filter *f)
{
    static const char *const week[] = { "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday" };
    char key[32];
    (void)snprintf(key, sizeof(key), "period_%s", bi_sense_name(f->part));
    str_printf(out, " (%s)", text(a, key));
    if (f->part == BI_WEEKDAY && f->low >= 0 && f->low < 7)
        str_printf(out, " %s %s", f->negated ? "≠" : "=", week[(int)f->low]);
    else
        filter_range(a, out, f);
}

static void describe_filter(const struct answer *a, struct str *out, const struct bi_filter *f)
{
    add_name(out, f->column->name);
    switch (f->type) {
    case BI_FILTER_VALUES: filter_values(a, out, f); break;
    case BI_FILTER_RANGE: filter_range(a, out, f); break;
    case BI_FILTER_PART: filter_part(a, out, f); break;
    case BI_FILTER_DATES: str_printf(out, " %s – %s", f->from[0] ? f->from : "…", f->to[0] ? f->to : "…"); break;
    case BI_FILTER_MISSING: str_printf(out, " %s", text(a, "is_missing")); break;
    case BI_FILTER_TEXT:
    case BI_FILTER_WORD:
    case BI_FILTER_CONTAINS:
        str_printf(out, " %s ", text(a, f->type != BI_FILTER_TEXT ? "contains_text" : f->negated ? "is_not" : "is"));
        add_name(out, f->text ? f->text : "");
        break;
    }
}

static void stat_word(const struct answer *a, struct str *out, const struct bi_measure *m)
{
    char key[32];
    autofree char *name = m->column ? name_of(m->column->name) : NULL;
    autofree char *quantile = xasprintf("%g", m->quantile * 100);
    (void)snprintf(key, sizeof(key), "label_%s", m->stat == BI_NONE ? "value" : bi_sense_name(m->stat));
    if (a->p->running)
        (void)snprintf(key, sizeof(key), "label_running");
    switch (m->type) {
    case BI_MEASURE_ROWS: str_puts(out, text(a, a->p->running ? "label_running_rows" : "read_rows")); return;
    case BI_MEASURE_COLUMN:
        bi_say(out, a->x, a->p->language, key, (const char *const[]){ "column", name, "value", quantile, NULL });
        return;
    case BI_MEASURE_RATIO: {
        autofree char *ratio = xasprintf("%s / %s", m->column ? m->column->name : "", m->other ? m->other->name : "");
        add_name(out, ratio);
        return;
    }
    case BI_MEASURE_CONDITION: {
        struct str condition = STR_INIT(16 << 10);
        describe_filter(a, &condition, &a->p->conditions[m->filter]);
        bi_say(out, a->x, a->p->language, "read_share", (const char *const[]){ "column", str_peek(&condition), NULL });
        str_clear(&condition);
        return;
    }
    }
}

static void read_measures(const struct answer *a, struct str *out)
{
    for (size_t i = 0; i < a->p->measure_n; i++) {
        str_puts(out, i ? text(a, "comma") : "");
        stat_word(a, out, &a->p->measures[i]);
    }
    for (size_t i = 0; i < a->p->column_n && !a->p->measure_n; i++) {
        str_puts(out, i ? text(a, "comma") : "");
        add_name(out, a->p->columns[i]->name);
    }
}

static void read_groups(const struct answer *a, struct str *out)
{
    for (size_t i = 0; i < a->p->group_n; i++) {
        const struct bi_group *g = &a->p->groups[i];
        char key[32];
        str_puts(out, i ? text(a, "and_names") : "");
        if (g->period != BI_NONE) {
            (void)snprintf(key, sizeof(key), "period_%s", bi_sense_name(g->period));
            str_puts(out, text(a, key));
        }
        if (g->column && g->period == BI_NONE)
            add_name(out, g->column->name);
        else if (g->column) {
            str_puts(out, " (");
            add_name(out, g->column->name);
            str_puts(out, ")");
        }
        str_puts(out, g->bins ? text(a, "in_ranges") : "");
    }
}

static void item(const struct answer *a, const char *key, const char *value)
{
    if (!*value)
        return;
    str_puts(a->out, "- ");
    say(a, key, "", value);
    str_putc(a->out, '\n');
}

static void item_of(const struct answer *a, const char *key, void (*write)(const struct answer *, struct str *))
{
    struct str value = STR_INIT(32 << 10);
    write(a, &value);
    item(a, key, str_peek(&value));
    str_clear(&value);
}

static void read_filters(const struct answer *a, struct str *out)
{
    for (size_t i = 0; i < a->p->filter_n; i++) {
        str_puts(out, i ? text(a, a->p->any_filter ? "or" : "and") : "");
        describe_filter(a, out, &a->p->filters[i]);
    }
}

static void read_order(const struct answer *a, struct str *out)
{
    if (!a->p->order && !a->p->limit)
        return;
    if (a->p->order_column)
        add_name(out, a->p->order_column->name);
    if (a->p->order)
        str_printf(out, "%s%s", out->len ? " " : "", text(a, a->p->order < 0 ? "smallest_first" : "largest_first"));
    else
        str_puts(out, text(a, a->p->last ? "last_rows" : "first_rows"));
    if (a->p->limit)
        str_printf(out, " (%lld)", (long long)a->p->limit);
    if (a->p->nth) {
        autofree char *number = xasprintf("%lld", (long long)a->p->nth), *place = said(a, "read_place", "", number);
        str_puts(out, place);
    }
    if (a->p->top_within) {
        const struct bi_group *g = &a->p->groups[a->p->top_within - 1];
        autofree char *each = said(a, "of_each", g->column ? g->column->name : "", "");
        str_puts(out, each);
    }
}

static void read_file(const struct answer *a, struct str *out)
{
    if (a->p->every_table || a->p->recipe == BI_DO_FILES)
        return;
    const struct bi_table *t = a->table;
    if (t->left < 0) {
        add_name(out, t->name);
        if (t->piece_n) {
            autofree char *n = xasprintf("%zu", t->piece_n);
            autofree char *pieces = said(a, "of_pieces", "", n);
            str_puts(out, pieces);
        }
        if (t->sheet) {
            autofree char *n = xasprintf("%zu", t->sheet_n), *name = name_of(t->sheet),
                          *of = said(a, "of_sheets", name, n);
            str_puts(out, of);
        }
        return;
    }
    add_name(out, a->t->at[t->left].name);
    str_puts(out, " + ");
    add_name(out, a->t->at[t->right].name);
    if (t->stacked) {
        str_puts(out, text(a, "stacked"));
        return;
    }
    autofree char *key = xasprintf("%s%s%s", t->left_key, strcmp(t->left_key, t->right_key) ? " = " : "",
                                   strcmp(t->left_key, t->right_key) ? t->right_key : "");
    autofree char *name = name_of(key);
    autofree char *joined = said(a, "joined_on", name, "");
    str_puts(out, joined);
}

static void read_notes(const struct answer *a, struct str *out)
{
    for (size_t i = 0; i < a->p->note_n; i++)
        str_printf(out, "%s%s", i ? text(a, "semicolon") : "", a->p->notes[i]);
}

static void read_time(const struct answer *a, struct str *out)
{
    if (a->p->recipe != BI_DO_TREND)
        return;
    for (size_t i = 0; i < a->table->time_n; i++) {
        str_puts(out, i ? " + " : "");
        add_name(out, a->table->time_columns[i]);
    }
    if (a->p->time_period != BI_NONE) {
        char key[32];
        (void)snprintf(key, sizeof(key), "period_%s", bi_sense_name(a->p->time_period));
        str_printf(out, " (%s)", text(a, key));
    }
}

static void how_read(const struct answer *a)
{
    str_puts(a->out, text(a, "how_read"));
    str_puts(a->out, "\n");
    item_of(a, "read_file", read_file);
    item_of(a, "read_measure", read_measures);
    item_of(a, "read_group", read_groups);
    item_of(a, "read_time", read_time);
    item_of(a, "read_filter", read_filters);
    item_of(a, "read_order", read_order);
    if (a->p->stat_open)
        item(a, "read_open", " ");
    if (a->table->headless)
        item(a, "read_headless", " ");
    item_of(a, "read_notes", read_notes);
}

/* ---- results ---- */

static bool is_table(const char *line)
{
    return line[0] == '|';
}

/* Facts and tables of the output, with the blank lines that Markdown wants between them. True: there was something. */
static bool take_lines(const struct answer *a, const char *printed)
{
    bool any = false, in_table = false, before_table = false;
    while (*printed) {
        size_t n = strcspn(printed, "\n");
        in_table = is_table(printed);
        bool fact = strncmp(printed, "- ", 2) == 0;
        if (in_table || fact) {
            if (any && in_table != before_table)
                str_putc(a->out, '\n');
            str_add(a->out, printed, n);
            str_putc(a->out, '\n');
            before_table = in_table;
            any = true;
        } else if (n == 0 && any && before_table) {
            before_table = false;
        }
        printed += n + (printed[n] == '\n');
    }
    return any;
}

static const char *const titles[] = {
    [BI_DO_NOTHING] = "",
    [BI_DO_AGGREGATE] = "",
    [BI_DO_ROWS] = "title_rows",
    [BI_DO_TREND] = "title_trend",
    [BI_DO_OVERVIEW] = "title_overview",
    [BI_DO_MISSING] = "title_missing",
    [BI_DO_DISTRIBUTION] = "title_distribution",
    [BI_DO_CORRELATION] = "title_correlation",
    [BI_DO_COLUMNS] = "title_columns",
    [BI_DO_SHAPE] = "title_shape",
    [BI_DO_DUPLICATES] = "title_duplicates",
    [BI_DO_UNIQUE] = "title_unique",
    [BI_DO_FILES] = "title_files",
    [BI_DO_JOIN] = "title_join",
    [BI_DO_CLEAN] = "title_clean",
};

static void heading(const struct answer *a)
{
    struct str what = STR_INIT(32 << 10), groups = STR_INIT(16 << 10);
    str_puts(&what, text(a, titles[a->p->recipe]));
    bool named = a->p->measure_n || (a->p->column_n && a->p->recipe != BI_DO_ROWS);
    if (named) {
        str_puts(&what, what.len ? text(a, "colon") : "");
        read_measures(a, &what);
    }
    read_groups(a, &groups);
    str_puts(a->out, "**");
    if (groups.len)
        say(a, "title_by", str_peek(&what), str_peek(&groups));
    else
        str_puts(a->out, str_peek(&what));
    str_puts(a->out, "**\n\n");
    str_clear(&what);
    str_clear(&groups);
}

void bi_answer_result(struct str *out, const struct bi_lexicon *x, const struct bi_tables *t, const struct bi_plan *p,
                      const char *printed)
{
    struct answer a = { out, x, t, p, &t->at[p->table] };
    heading(&a);
    if (!take_lines(&a, printed))
        str_puts(out, text(&a, "no_output"));
    str_puts(out, "\n");
    how_read(&a);
    str_puts(out, "\n");
    say(&a, "footer", "", "");
}

void bi_answer_failure(struct str *out, const struct bi_lexicon *x, const struct bi_plan *p, const char *error)
{
    struct answer a = { out, x, NULL, p, NULL };
    bool keys = strstr(error, "MergeError") != NULL;
    say(&a, keys ? "failed_merge" : "failed", "", error);
    str_puts(out, "\n\n");
    say(&a, "footer", "", "");
}
