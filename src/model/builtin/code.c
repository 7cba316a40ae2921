/* code.c - the frame of every program: imports, loading, filters, and the small parts that recipes share. */
#include "code.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- literals ---- */

char *bi_py_string(const char *text)
{
    struct str out = STR_INIT(BI_CODE_MAX);
    str_putc(&out, '"');
    for (const char *p = text; *p;) {
        const char *start = p;
        uint32_t cp = utf8_next(&p);
        bool plain = cp >= 0x20 && cp != '"' && cp != '\\' && cp != 0x7f && !(cp >= 0x80 && cp < 0xa0) &&
                     cp != 0x2028 && cp != 0x2029 && cp != 0xfeff && !(cp >= 0x200b && cp <= 0x200f) &&
                     !(cp >= 0x202a && cp <= 0x202e) && !(cp >= 0x2060 && cp <= 0x206f) &&
                     !(cp >= 0xe000 && cp <= 0xf8ff);
        if (plain)
            str_add(&out, start, (size_t)(p - start));
        else if (cp == '"' || cp == '\\')
            str_printf(&out, "\\%c", (int)cp);
        else if (cp == '\n')
            str_puts(&out, "\\n");
        else
            str_printf(&out, cp > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)cp);
    }
    str_putc(&out, '"');
    return str_take(&out);
}

char *bi_py_number(double n)
{
    return fabs(n) < 1e15 && n == floor(n) ? xasprintf("%.0f", n) : xasprintf("%.17g", n);
}

char *bi_py_names(const struct bi_column *const *columns, size_t n)
{
    struct str out = STR_INIT(BI_CODE_MAX);
    str_putc(&out, '[');
    for (size_t i = 0; i < n; i++) {
        autofree char *name = bi_py_string(columns[i]->name);
        str_printf(&out, "%s%s", i ? ", " : "", name);
    }
    str_putc(&out, ']');
    return str_take(&out);
}

/* ---- lines ---- */

void bi_line(struct bi_writer *w, const char *fmt, ...)
{
    autofree char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        abort();
    str_printf(&w->out, "%*s%s\n", 4 * w->indent, "", text);
}

void bi_blank(struct bi_writer *w)
{
    size_t n = w->out.len;
    if (n > 1 && !(w->out.buf[n - 1] == '\n' && w->out.buf[n - 2] == '\n') && w->out.buf[n - 2] != ':')
        str_putc(&w->out, '\n');
}

/* A name as a label: on one line, without what would cut a table. */
static char *one_line(const char *text)
{
    struct str out = STR_INIT(64 << 10);
    for (const char *p = text, *start = p; *p; start = p) {
        uint32_t cp = utf8_next(&p);
        bool breaks = cp < ' ' || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
        if (breaks || cp == '|')
            str_putc(&out, breaks ? ' ' : '/');
        else
            str_add(&out, start, (size_t)(p - start));
    }
    return str_take(&out);
}

char *bi_label_text(const struct bi_writer *w, const char *key, const char *column, const char *value)
{
    struct str out = STR_INIT(64 << 10);
    autofree char *one = one_line(column), *other = one_line(value);
    bi_say(&out, w->x, w->p->language, key, (const char *const[]){ "column", one, "value", other, NULL });
    return str_take(&out);
}

char *bi_label(const struct bi_writer *w, const char *key, const char *column, const char *value)
{
    autofree char *text = bi_label_text(w, key, column, value);
    return bi_py_string(text);
}

/* ---- filters ---- */

static char *value_literal(const struct bi_value *v)
{
    if (v->is_bool)
        return xstrdup(v->number != 0 ? "True" : "False");
    return v->is_number ? bi_py_number(v->number) : bi_py_string(v->text ? v->text : "");
}

/* Examples in a profile are cut at 40 characters, with this mark. */
static bool is_cut(const struct bi_value *v)
{
    static const char mark[] = "…";
    size_t n = v->text ? strlen(v->text) : 0;
    return n > sizeof(mark) && bi_letters(v->text) >= 40 && strcmp(v->text + n - (sizeof(mark) - 1), mark) == 0;
}

static char *values_code(const struct bi_filter *f, const char *column)
{
    if (f->value_n == 1 && is_cut(&f->values[0])) {
        autofree char *head = xstrndup(f->values[0].text, strlen(f->values[0].text) - strlen("…"));
        autofree char *literal = bi_py_string(head);
        return xasprintf("%sdf[%s].str.startswith(%s, na=False)", f->negated ? "~" : "", column, literal);
    }
    if (f->value_n == 1) {
        autofree char *literal = value_literal(&f->values[0]);
        return xasprintf("df[%s] %s %s", column, f->negated ? "!=" : "==", literal);
    }
    struct str list = STR_INIT(BI_CODE_MAX);
    for (size_t i = 0; i < f->value_n; i++) {
        autofree char *literal = value_literal(&f->values[i]);
        str_printf(&list, "%s%s", i ? ", " : "", literal);
    }
    autofree char *all = str_take(&list);
    return xasprintf("%sdf[%s].isin([%s])", f->negated ? "~" : "", column, all);
}

static char *range_code(const struct bi_filter *f, const char *subject)
{
    autofree char *low = bi_py_number(f->low), *high = bi_py_number(f->high);
    const char *no = f->negated ? "~" : "";
    if (f->outside)
        return xasprintf("%s((%s %s %s) | (%s %s %s))", no, subject, f->low_open ? ">" : ">=", low, subject,
                         f->high_open ? "<" : "<=", high);
    if (f->has_low && f->has_high && f->low == f->high)
        return xasprintf("%s %s %s", subject, f->negated ? "!=" : "==", low);
    if (f->has_low && f->has_high && !f->low_open && !f->high_open)
        return xasprintf("%s%s.between(%s, %s)", no, subject, low, high);
    if (f->has_low && f->has_high)
        return xasprintf("%s((%s %s %s) & (%s %s %s))", no, subject, f->low_open ? ">" : ">=", low, subject,
                         f->high_open ? "<" : "<=", high);
    if (f->has_low)
        return xasprintf(f->negated ? "~(%s %s %s)" : "%s %s %s", subject, f->low_open ? ">" : ">=", low);
    return xasprintf(f->negated ? "~(%s %s %s)" : "%s %s %s", subject, f->high_open ? "<" : "<=", high);
}

static char *part_code(const struct bi_filter *f, const char *column)
{
    const char *attribute = f->part == BI_MONTH     ? "month"
                            : f->part == BI_QUARTER ? "quarter"
                            : f->part == BI_WEEKDAY ? "dayofweek"
                                                    : "year";
    autofree char *subject = xasprintf("df[%s].dt.%s", column, attribute);
    return range_code(f, subject);
}

static char *dates_code(const struct bi_filter *f, const char *column)
{
    autofree char *subject = xasprintf("df[%s].dt.normalize()", column);
    if (f->from[0] && f->to[0])
        return xasprintf("%s.between(\"%s\", \"%s\")", subject, f->from, f->to);
    if (f->from[0])
        return xasprintf("%s %s \"%s\"", subject, f->low_open ? ">" : ">=", f->from);
    return xasprintf("%s %s \"%s\"", subject, f->high_open ? "<" : "<=", f->to);
}

static char *word_code(const struct bi_filter *f, const char *subject)
{
    autofree char *words = bi_name_words(f->text), *padded = xasprintf(" %s ", words), *text = bi_py_string(padded);
    return xasprintf("(\" \" + %s.str.casefold().str.replace(r\"\\W+\", \" \", regex=True) + \" \")"
                     ".str.contains(%s, regex=False, na=False)",
                     subject, text);
}

char *bi_filter_code(const struct bi_filter *f)
{
    autofree char *column = bi_py_string(f->column->name), *text = bi_py_string(f->text ? f->text : "");
    autofree char *subject = xasprintf("df[%s]", column);
    switch (f->type) {
    case BI_FILTER_VALUES: return values_code(f, column);
    case BI_FILTER_RANGE: return range_code(f, subject);
    case BI_FILTER_PART: return part_code(f, column);
    case BI_FILTER_DATES: return dates_code(f, column);
    case BI_FILTER_MISSING: return xasprintf("%s.%s()", subject, f->negated ? "notna" : "isna");
    case BI_FILTER_CONTAINS: return xasprintf("%s.str.contains(%s, case=False, regex=False, na=False)", subject, text);
    case BI_FILTER_WORD: return word_code(f, subject);
    case BI_FILTER_TEXT:
        return xasprintf("%s.str.strip().str.casefold() %s %s.casefold()", subject, f->negated ? "!=" : "==", text);
    }
    return xstrdup("True");
}

static void write_filters(struct bi_writer *w)
{
    autofree char *rows = bi_label(w, "fact_rows_used", "", ""), *of = bi_label(w, "of_rows", "", "");
    bool brackets = w->p->filter_n > 1;
    bi_line(w, "total = len(df)");
    if (w->p->filter_n == 1) {
        autofree char *code = bi_filter_code(&w->p->filters[0]);
        bi_line(w, "df = df[%s].copy()", code);
    }
    for (size_t i = 0; brackets && i < w->p->filter_n; i++) {
        autofree char *code = bi_filter_code(&w->p->filters[i]);
        bi_line(w, "%s(%s)%s", i ? (w->p->any_filter ? "    | " : "    & ") : "keep = (\n    ", code,
                i + 1 == w->p->filter_n ? "\n)" : "");
    }
    if (brackets)
        bi_line(w, "df = df[keep].copy()");
    bi_line(w, "print(%s, len(df), %s, total)", rows, of);
}

/* ---- loading ---- */

static void write_converts(struct bi_writer *w, const struct bi_table *t)
{
    for (size_t i = 0; i < t->column_n; i++) {
        if (!t->columns[i].convert)
            continue;
        autofree char *name = bi_py_string(t->columns[i].name);
        bi_line(w, "df[%s] = %s", name, t->columns[i].convert);
    }
}

static void load_one(struct bi_writer *w, const struct bi_table *t)
{
    bi_line(w, "df = %s", t->load ? t->load : "pd.DataFrame()");
    write_converts(w, t);
}

static void load_joined(struct bi_writer *w, const struct bi_table *t)
{
    const struct bi_table *left = &w->t->at[t->left], *right = &w->t->at[t->right];
    load_one(w, right);
    bi_line(w, "right = df");
    load_one(w, left);
    if (t->stacked) {
        bi_line(w, "df = pd.concat([df, right], ignore_index=True)");
        return;
    }
    autofree char *key = bi_py_string(t->left_key), *other = bi_py_string(t->right_key);
    autofree char *suffix_text = xasprintf(" (%s)", right->stem), *suffix = bi_py_string(suffix_text);
    autofree char *found = bi_label(w, "fact_matched", "", ""), *of = bi_label(w, "of_rows", "", "");
    bool same = strcmp(t->left_key, t->right_key) == 0;
    bi_line(w, "left = df");
    if (same)
        bi_line(w, "df = left.merge(right, how=\"left\", on=%s, validate=\"m:1\", suffixes=(\"\", %s))", key, suffix);
    else
        bi_line(w,
                "df = left.merge(right, how=\"left\", left_on=%s, right_on=%s, validate=\"m:1\", suffixes=(\"\", %s))",
                key, other, suffix);
    bi_line(w, "print(%s, left[%s].isin(right[%s]).sum(), %s, len(left))", found, key, other, of);
}

/* ---- tables in the output ---- */

void bi_write_fact(struct bi_writer *w, const char *key, const char *expression)
{
    autofree char *label = bi_label(w, key, "", "");
    bi_line(w, "print(%s, %s)", label, expression);
}

void bi_write_short(struct bi_writer *w)
{
    w->uses_short = true;
}

static bool looks_numeric(const char *text)
{
    return *text && text[strspn(text, "0123456789.,+-eE_ ")] == '\0';
}

static bool may_look_numeric(const struct bi_column *c)
{
    if (c->type != BI_TYPE_TEXT)
        return false;
    for (size_t i = 0; i < c->value_n; i++)
        if (looks_numeric(c->values[i].text))
            return true;
    return !c->all_values;
}

char *bi_table_options(const struct bi_column *const *columns, size_t n)
{
    struct str out = STR_INIT(4096);
    for (size_t i = 0; i < n; i++)
        if (columns[i] && may_look_numeric(columns[i]))
            str_printf(&out, "%s%zu", out.len ? ", " : ", disable_numparse=[", i);
    if (out.len)
        str_putc(&out, ']');
    return str_take(&out);
}

/* Enough digits to tell values apart, no more. */
int bi_decimals(const struct bi_plan *p)
{
    double largest = 0;
    bool share = false, known = false;
    for (size_t i = 0; i < p->measure_n; i++) {
        const struct bi_measure *m = &p->measures[i];
        share = share || bi_measure_is_share(m) || m->type == BI_MEASURE_RATIO;
        if (m->column && !isnan(m->column->max)) {
            known = true;
            largest = fmax(largest, fmax(fabs(m->column->max), fabs(m->column->min)));
        }
    }
    if (share)
        return 3;
    return !known || largest < 1 ? 4 : largest < 100 ? 3 : 2;
}

void bi_write_export(struct bi_writer *w, const char *name, const char *stem)
{
    bool excel = w->p->export_as == BI_EXCEL;
    autofree char *saved = bi_label(w, "fact_saved", "", "");
    w->uses_path = true;
    bi_line(w, "Path(\"out\").mkdir(exist_ok=True)");
    bi_line(w, "# Texts that a spreadsheet would run as formulas are kept as texts.");
    bi_line(
        w,
        "safe = %s.map(lambda v: \"'\" + v if isinstance(v, str) and v.startswith((\"=\", \"+\", \"-\", \"@\", \"\\t\", \"\\r\")) else v)",
        name);
    if (excel)
        bi_line(w, "safe.to_excel(\"out/%s.xlsx\", index=False)", stem);
    else
        bi_line(w, "safe.to_csv(\"out/%s.csv\", index=False)", stem);
    bi_line(w, "print(%s, \"out/%s.%s\", f\"({len(safe)} × {safe.shape[1]})\")", saved, stem, excel ? "xlsx" : "csv");
}

/* How many rows the table of the plan can have at most, as far as the profile tells. */
static int64_t at_most(const struct bi_writer *w)
{
    int64_t n = w->p->group_n ? 1 : INT64_MAX;
    for (size_t i = 0; i < w->p->group_n; i++) {
        const struct bi_group *g = &w->p->groups[i];
        bool few = g->column && g->period == BI_NONE && (g->bins || g->column->distinct <= BI_TABLE_ROWS);
        n *= few ? (g->bins ? 12 : g->column->distinct + (g->column->nulls > 0)) : BI_TABLE_ROWS + 1;
    }
    if (w->p->recipe == BI_DO_TREND)
        n = INT64_MAX;
    if ((w->p->recipe == BI_DO_DISTRIBUTION || w->p->recipe == BI_DO_UNIQUE) && w->p->column_n == 1)
        n = w->p->columns[0]->distinct + 1;
    return w->p->limit && w->p->limit < n ? w->p->limit : n;
}

void bi_write_table(struct bi_writer *w, const char *name, const char *options)
{
    const char *cells = w->uses_short ? ".map(short).astype(\"object\")" : ".astype(\"object\")";
    autofree char *format = w->p->recipe == BI_DO_ROWS ? xstrdup(".10g") : xasprintf(".%df", bi_decimals(w->p));
    bool fits = at_most(w) <= BI_TABLE_ROWS, file = w->p->export_asked && w->p->recipe == BI_DO_ROWS;
    bi_line(w,
            w->p->share_of_total ? "print(%s%s%s.to_markdown(index=False, floatfmt=formats%.0s%s))"
                                 : "print(%s%s%s.to_markdown(index=False, floatfmt=\"%s\"%s))",
            name,
            fits   ? ""
            : file ? ".head(5)"
                   : ".head(20)",
            cells, format, options ? options : "");
    if (w->p->export_asked) {
        bi_write_export(w, name, "result");
        return;
    }
    if (fits)
        return;
    autofree char *more = bi_label(w, "fact_more", "", "");
    bi_line(w, "if len(%s) > %d:", name, BI_TABLE_ROWS);
    w->indent++;
    bi_line(w, "print(%s, len(%s) - %d)", more, name, BI_TABLE_ROWS);
    bi_write_export(w, name, "result");
    w->indent--;
}

/* ---- the program ---- */

static void write_body(struct bi_writer *w)
{
    switch (w->p->recipe) {
    case BI_DO_AGGREGATE: bi_write_aggregate(w); break;
    case BI_DO_TREND: bi_write_trend(w); break;
    case BI_DO_NOTHING:
    case BI_DO_ROWS:
    case BI_DO_OVERVIEW:
    case BI_DO_MISSING:
    case BI_DO_DISTRIBUTION:
    case BI_DO_CORRELATION:
    case BI_DO_COLUMNS:
    case BI_DO_SHAPE:
    case BI_DO_DUPLICATES:
    case BI_DO_UNIQUE:
    case BI_DO_FILES:
    case BI_DO_JOIN:
    case BI_DO_CLEAN: bi_write_recipe(w); break;
    }
}

static void write_one(struct bi_writer *w)
{
    if (w->p->recipe == BI_DO_FILES) {
        write_body(w);
        return;
    }
    if (w->table->left >= 0)
        load_joined(w, w->table);
    else
        load_one(w, w->table);
    if (!w->p->filter_n) {
        bi_blank(w);
        write_body(w);
        return;
    }
    bi_blank(w);
    write_filters(w);
    autofree char *none = bi_label(w, "fact_no_rows", "", "");
    bi_line(w, "if df.empty:");
    w->indent++;
    bi_line(w, "print(%s)", none);
    w->indent--;
    bi_line(w, "else:");
    w->indent++;
    write_body(w);
    w->indent--;
}

static void write_imports(struct str *out, const struct bi_writer *w)
{
    if (w->uses_path)
        str_puts(out, "from pathlib import Path\n\n");
    if (w->uses_plot)
        str_puts(out, "import matplotlib.pyplot as plt\n");
    str_puts(out, "import pandas as pd\n");
    if (w->uses_seaborn)
        str_puts(out, "import seaborn as sns\n");
    str_puts(out, "\n");
    if (w->uses_plot)
        str_puts(out, "plt.style.use(\"tableau-colorblind10\")\n"
                      "plt.rcParams[\"text.parse_math\"] = False\n\n");
    if (w->uses_short)
        str_puts(out, "\ndef short(cell):\n"
                      "    \"\"\"A cell as it fits into a table: one line, no bars, at most 60 characters.\"\"\"\n"
                      "    if isinstance(cell, pd.Timestamp):\n"
                      "        return cell.isoformat(\" \").removesuffix(\" 00:00:00\")\n"
                      "    if isinstance(cell, str):\n"
                      "        cell = \" \".join(cell.replace(\"|\", \"/\").split())\n"
                      "        return cell if len(cell) <= 60 else cell[:59] + \"…\"\n"
                      "    return \"\" if cell is None or cell is pd.NA or cell != cell else cell\n\n\n");
}

static bool has_odd_names(const struct bi_tables *t)
{
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->at[i].column_n; k++)
            if (t->at[i].columns[k].odd_name)
                return true;
    return false;
}

/* Where some column is called so that it would break a table, headings are shortened like cells. */
static void add_program(struct str *out, const char *program, bool odd)
{
    static const char print[] = ".to_markdown(";
    for (const char *at; odd && (at = strstr(program, print)) != NULL; program = at + sizeof(print) - 1) {
        str_add(out, program, (size_t)(at - program));
        str_printf(out, ".rename(columns=short)%s", print);
    }
    str_puts(out, program);
}

char *bi_code_write(const struct bi_lexicon *x, const struct bi_tables *t, const struct bi_plan *p)
{
    struct bi_writer w = { .out = STR_INIT(BI_CODE_MAX), .x = x, .t = t, .p = p };
    bool each = p->every_table && p->recipe != BI_DO_FILES;
    for (size_t i = each ? 0 : p->table; i < t->n && (each || i == p->table); i++) {
        w.table = &t->at[i];
        if (each) {
            autofree char *file = bi_label(&w, "fact_file", "", ""), *name = bi_py_string(w.table->name);
            bi_blank(&w);
            bi_line(&w, "print(%s, %s)", file, name);
        }
        write_one(&w);
    }
    bool odd = has_odd_names(t);
    w.uses_short = w.uses_short || odd;
    struct str out = STR_INIT(BI_CODE_MAX);
    write_imports(&out, &w);
    add_program(&out, str_peek(&w.out), odd);
    str_clear(&w.out);
    return str_take(&out);
}

char *bi_code_look_up(const struct bi_tables *t, char *const *words, size_t n)
{
    struct str out = STR_INIT(BI_CODE_MAX);
    str_puts(&out, "import json\n\nimport pandas as pd\n\n# Are these words values of a column?\nwords = [");
    for (size_t i = 0; i < n; i++) {
        autofree char *word = bi_py_string(words[i]);
        str_printf(&out, "%s%s", i ? ", " : "", word);
    }
    str_puts(
        &out,
        "]\n\n\ndef look_up(path, df):\n"
        "    \"\"\"Prints the cells of text columns that are one of the words, whatever their case.\"\"\"\n"
        "    for name in df.columns:\n"
        "        if not isinstance(name, str) or df[name].dtype not in (\"object\", \"str\"):\n"
        "            continue\n"
        "        texts = df[name].dropna().astype(\"str\")\n"
        "        cells = dict(zip(texts.str.strip().str.casefold(), texts))\n"
        "        for word in words:\n"
        "            if word.strip().casefold() in cells:\n"
        "                print(\"found:\", json.dumps([word, path, name, cells[word.strip().casefold()]], ensure_ascii=False))\n"
        "\n\nprint(\"looked up:\", json.dumps(words, ensure_ascii=False))\n");
    for (size_t i = 0; i < t->n; i++) {
        autofree char *path = bi_py_string(t->at[i].path);
        if (t->at[i].load)
            str_printf(&out, "look_up(%s, %s)\n", path, t->at[i].load);
    }
    return str_take(&out);
}
