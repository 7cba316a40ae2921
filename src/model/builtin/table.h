/* table.h - the tables that a request may be about, from the files' profiles (docs/profile.md). */
#ifndef BUILTIN_TABLE_H
#define BUILTIN_TABLE_H
#include "lexicon.h"

struct json;

enum bi_type { BI_TYPE_NUMBER, BI_TYPE_BOOL, BI_TYPE_DATE, BI_TYPE_TEXT };
enum bi_role {
    BI_ROLE_NONE,
    BI_ROLE_ID,
    BI_ROLE_MEASURE,
    BI_ROLE_GROUP,
    BI_ROLE_DATE,
    BI_ROLE_YEAR,
    BI_ROLE_TEXT,
    BI_ROLE_FLAG
};

struct bi_value {
    char *text; /* as the file has it */
    char *compact;
    double number;
    bool is_number, is_bool;
    int named; /* value of the lexicon, -1: none */
};

/* One word of a column's name, with what it means. */
struct bi_unit {
    char *text;
    int concepts[BI_CONCEPTS_OF_WORD]; /* -1 ends */
};

struct bi_column {
    char *name;
    size_t table; /* index of its table */
    enum bi_type type;
    enum bi_role role;
    bool whole; /* numbers without fractions */
    int64_t nulls, distinct;
    double min, max;         /* numbers; NAN when unknown. Dates: the year */
    char *first, *last;      /* dates: as ISO text, may be NULL */
    struct bi_value *values; /* the frequent ones, or examples */
    size_t value_n;
    bool all_values;     /* `values` are all there are */
    struct bi_value yes; /* role flag: the value that says yes; text NULL: none. Borrows from values */
    bool odd_name;       /* the name would break a line or a table */
    bool odd_text;       /* some example holds a line break or a bar: tables need care */
    char *convert;       /* Python, or NULL */
    char *compact;
    struct bi_unit *units;
    size_t unit_n;
    int concepts[12]; /* of the whole name and of its values; -1 ends */
};

struct bi_table {
    char *path, *name, *stem; /* stem: compact name without its ending */
    char *load;
    char *time_expr, *time_freq; /* NULL: no time */
    char *time_columns[4];
    size_t time_n;
    int64_t rows;
    bool headless;
    char *sheet;    /* of a workbook with several tables the one that is read; else NULL */
    size_t sheet_n; /* tables of the workbook */
    size_t piece_n; /* files that are read as one table; 0: a file of its own */
    char *folder;   /* of the archive they come from, else NULL */
    struct bi_column *columns;
    size_t column_n;
    /* A join of two others: how it is made. Indexes of tables, key columns; -1: no join */
    int left, right;
    char *left_key, *right_key;
    bool stacked; /* rows of both under each other */
};

struct bi_other {
    char *name;
    char *why;   /* what the profile says of it, from the file in part; or NULL */
    bool unread; /* it has no profile: nobody could look into it */
};

struct bi_tables {
    struct bi_table *at;
    size_t n, cap;
    struct bi_other *others; /* files that hold no table */
    size_t other_n, other_cap;
    size_t file_n; /* with those inside archives */
};

/* Profiles, oldest first; of equal names the last counts. */
void bi_tables_read(struct bi_tables *out, const struct bi_lexicon *x, const struct json *files);
void bi_tables_clear(struct bi_tables *t);
/* Adds a value that was looked up in the file itself. */
void bi_column_learn(struct bi_column *c, const char *text);

bool bi_column_is(const struct bi_column *c, int topic);    /* by its name as a whole, or by its values */
bool bi_column_about(const struct bi_column *c, int topic); /* the same, or by a word of its name */
bool bi_column_numeric(const struct bi_column *c);          /* can be averaged: numbers that are no codes or years */
bool bi_column_grouping(const struct bi_column *c);         /* few values: good for groups */
bool bi_column_flag(const struct bi_column *c);             /* yes or no */
/* The first column of that concept, whole name or part of it; NULL: none. */
const struct bi_column *bi_table_find(const struct bi_table *t, int topic);
const struct bi_column *bi_table_named(const struct bi_table *t, const char *name);

/* A table of both, joined on what they share. Returns its index, or -1 with the reason's key for bi_say in *why. The
 * new table may move the others: pointers into t->at are void after it. */
int bi_tables_join(struct bi_tables *t, size_t a, size_t b, const char **why);
int bi_tables_stack(struct bi_tables *t, size_t a, size_t b, const char **why);
#endif
