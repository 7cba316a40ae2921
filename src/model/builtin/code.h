/* code.h - a plan becomes Python, as a good analyst would write it.
 *
 * What the program prints is Markdown in the language of the request, and only two kinds of lines: "- fact: value"
 * and "| table |". The answer takes those and nothing else. All that comes from the file or the person enters as an
 * escaped literal. */
#ifndef BUILTIN_CODE_H
#define BUILTIN_CODE_H
#include "plan.h"

enum { BI_CODE_MAX = 256 << 10, BI_TABLE_ROWS = 20 }; /* bytes of a program; rows of a table in an answer */

/* The whole program; caller frees. */
char *bi_code_write(const struct bi_lexicon *x, const struct bi_tables *t, const struct bi_plan *p);
/* Looks for words among the texts of the tables; prints `found: ["word", "path", "column", "value"]` lines (JSON).
 * Caller frees. */
char *bi_code_look_up(const struct bi_tables *t, char *const *words, size_t n);
/* A Python literal for any text; caller frees. */
char *bi_py_string(const char *text);

/* ---- shared by the files of the writer ---- */

struct bi_writer {
    struct str out;
    int indent;
    const struct bi_lexicon *x;
    const struct bi_tables *t;
    const struct bi_table *table;
    const struct bi_plan *p;
    bool uses_plot, uses_seaborn, uses_path, uses_short;
};

void bi_line(struct bi_writer *w, const char *fmt, ...) printf_like(2, 3); /* one line, indented; no newline in fmt */
void bi_blank(struct bi_writer *w);
/* A literal of the text with that key, in the language of the request, with {column} and {value} replaced. Caller
 * frees. */
char *bi_label(const struct bi_writer *w, const char *key, const char *column, const char *value);
char *bi_label_text(const struct bi_writer *w, const char *key, const char *column,
                    const char *value); /* the bare text */
char *bi_py_number(double n);
char *bi_py_names(const struct bi_column *const *columns, size_t n);           /* ["a", "b"] */
char *bi_measure_label(const struct bi_writer *w, const struct bi_measure *m); /* bare text, "mean of tip" */
char *bi_measure_source(const struct bi_measure *m,
                        const struct bi_plan *p);                         /* name of the column it is computed from */
char *bi_group_name(const struct bi_writer *w, const struct bi_group *g); /* name of the column that holds the group */
/* A list literal of the names of the plan's groups; caller frees. */
char *bi_group_list(const struct bi_writer *w);
/* A list literal of a column's values in the order that the lexicon knows; NULL: it knows none. Caller frees. */
char *bi_value_order(const struct bi_column *c, const struct bi_lexicon *x);
/* df filtered by f: an expression that is true for the rows that stay. Caller frees. */
char *bi_filter_code(const struct bi_filter *f);
int bi_decimals(const struct bi_plan *p);
char *bi_table_options(const struct bi_column *const *columns,
                       size_t n); /* for to_markdown: ", disable_numparse=[0]" or "" */
/* Prints a fact: the label with that key, and the value of a Python expression. */
void bi_write_fact(struct bi_writer *w, const char *key, const char *expression);
void bi_write_short(struct bi_writer *w); /* notes that the helper `short` is needed */
/* Prints `name`, at most BI_TABLE_ROWS rows, and saves longer ones. */
void bi_write_table(struct bi_writer *w, const char *name, const char *options);
void bi_write_export(struct bi_writer *w, const char *name, const char *stem);

void bi_write_aggregate(struct bi_writer *w);
void bi_write_trend(struct bi_writer *w);
void bi_write_rows(struct bi_writer *w);
void bi_write_recipe(struct bi_writer *w); /* all the others */
void bi_write_group_keys(struct bi_writer *w);
void bi_write_measure_columns(struct bi_writer *w);

/* Charts; the data is in `result` (chart.c). */
void bi_chart_groups(struct bi_writer *w);
void bi_chart_trend(struct bi_writer *w, const char *time);
void bi_chart_finish(struct bi_writer *w, const char *title_literal, const char *x_literal, const char *y_literal);
#endif
