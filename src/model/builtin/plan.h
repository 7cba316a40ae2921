/* plan.h - what the built-in planner decides to compute: one small plan.
 *
 * reading -> plan: every item of the request must find its place in the plan, or the plan is refused with the words
 * that did not. Pointers into tables and lexicon are borrowed: both outlive the plan. */
#ifndef BUILTIN_PLAN_H
#define BUILTIN_PLAN_H
#include "read.h"

enum bi_recipe {
    BI_DO_NOTHING,
    BI_DO_AGGREGATE, /* measures, by groups or overall */
    BI_DO_ROWS,      /* list rows: filtered, ordered */
    BI_DO_TREND,     /* measures over time, by at most one group */
    BI_DO_OVERVIEW,  /* of tables, or of columns */
    BI_DO_MISSING,
    BI_DO_DISTRIBUTION,
    BI_DO_CORRELATION,
    BI_DO_COLUMNS, /* names and types */
    BI_DO_SHAPE,   /* rows and columns */
    BI_DO_DUPLICATES,
    BI_DO_UNIQUE,
    BI_DO_FILES,
    BI_DO_JOIN,  /* the joined table itself */
    BI_DO_CLEAN, /* clean-up steps, then an export */
};

enum bi_filter_type {
    BI_FILTER_VALUES, /* one of values; text columns, flags, numbers */
    BI_FILTER_RANGE,  /* low and high, each optional */
    BI_FILTER_TEXT,   /* equals text, whatever its case */
    BI_FILTER_CONTAINS,
    BI_FILTER_WORD,    /* contains text as a word of its own */
    BI_FILTER_MISSING, /* no value */
    BI_FILTER_PART,    /* a year, quarter, month or weekday of a date column: low to high */
    BI_FILTER_DATES,   /* from, to as ISO text */
};

enum { BI_FILTER_VALUES_MAX = 16 };

struct bi_filter {
    enum bi_filter_type type;
    const struct bi_column *column;
    bool negated;
    struct bi_value values[BI_FILTER_VALUES_MAX];
    size_t value_n;
    double low, high;
    bool has_low, has_high, low_open, high_open; /* open: without the bound itself */
    bool outside;                                /* above low or below high, which is the smaller one */
    enum bi_sense part;                          /* BI_YEAR, BI_QUARTER, BI_MONTH, BI_WEEKDAY */
    char from[11], to[11];
    char *text;
    bool both;   /* its values were named side by side: "men and women", "lunch vs dinner" */
    bool placed; /* `at` is known */
    size_t at;   /* item of the request that it came from */
};

enum bi_measure_type {
    BI_MEASURE_ROWS, /* how many rows */
    BI_MEASURE_COLUMN,
    BI_MEASURE_CONDITION, /* share of rows for which a filter holds */
    BI_MEASURE_RATIO,     /* column divided by other */
};

struct bi_measure {
    enum bi_measure_type type;
    enum bi_sense stat; /* BI_MEAN ... BI_RANGE; BI_NONE: not said */
    const struct bi_column *column,
        *other;    /* other: the divisor of a ratio; of a condition: what each row counts for, or NULL */
    size_t filter; /* condition: index into plan->conditions */
    double quantile;
};

struct bi_group {
    const struct bi_column *column;
    bool bins;            /* cut numbers into ranges */
    enum bi_sense period; /* of a date column, or of the table's time when column is NULL */
};

enum bi_fill {
    BI_FILL_NONE,
    BI_FILL_MEAN,
    BI_FILL_MEDIAN,
    BI_FILL_MODE,
    BI_FILL_NUMBER,
    BI_FILL_PREVIOUS,
    BI_FILL_TEXT
};

enum { BI_PLAN_MEASURES = 8, BI_PLAN_GROUPS = 3, BI_PLAN_FILTERS = 10, BI_PLAN_COLUMNS = 16, BI_PLAN_NOTES = 12 };

struct bi_plan {
    enum bi_recipe recipe;
    enum bi_language language;
    size_t table;
    bool every_table; /* the request names no column: answer for each file */
    struct bi_measure measures[BI_PLAN_MEASURES];
    size_t measure_n;
    struct bi_group groups[BI_PLAN_GROUPS];
    size_t group_n;
    struct bi_filter filters[BI_PLAN_FILTERS];
    size_t filter_n;
    struct bi_filter conditions[BI_PLAN_FILTERS];
    size_t condition_n;
    /* What a recipe is about: distribution of, missing in, sorted by ... */
    const struct bi_column *columns[BI_PLAN_COLUMNS];
    size_t column_n;
    int order;                            /* -1 ascending, 1 descending, 0 not asked */
    const struct bi_column *order_column; /* rows: sorted by; NULL: by the file's order */
    int64_t limit;                        /* rows wanted; 0: all */
    bool last;                            /* the last rows instead of the first */
    enum bi_sense chart;                  /* BI_NONE: no chart */
    bool chart_asked, stat_open, share_of_total, difference, crosstab;
    size_t within;             /* share of total of two groups: also within the group of that number, from 1; 0: not */
    size_t each;               /* the group of that number, from 1, was asked for as "each ..."; 0: none */
    size_t top_within;         /* the first of each group of that number, from 1; 0: the first of all */
    bool show_where;           /* a single extreme: say in which row it stands */
    enum bi_sense time_period; /* trend: BI_NONE as the data has it */
    bool growth;               /* trend: with the change in per cent from one time to the next */
    enum bi_sense step; /* growth: against the time so much before, BI_YEAR ... BI_MONTH; BI_NONE: the row before */
    bool running;       /* trend: sums of all up to then */
    int64_t nth;        /* the second highest: 2; equal values share a place; 0: not asked */
    bool any_filter;    /* rows for which one of the filters holds; else all of them */
    bool dedupe, drop_missing, to_number, export_asked;
    enum bi_fill fill;
    double fill_number;
    enum bi_sense export_as;    /* BI_CSV, BI_EXCEL, BI_NONE */
    char *notes[BI_PLAN_NOTES]; /* how words were read, in the language of the request; owned */
    size_t note_n;
    char *trouble;   /* why there is no plan, in the language of the request; owned; NULL: the plan holds */
    bool asks;       /* the trouble is a question back */
    bool answers;    /* the trouble is what was asked for: a greeting, "what can you do?" */
    bool wants_help; /* the list of what can be done belongs to the answer */
    bool elliptic;   /* makes sense only as a change of the request before */
    char **look_up;  /* words that may be values of the file; owned */
    size_t look_up_n, look_up_cap;
};

/* Plans the last of n requests, oldest first. One that only changes the one before ("as a bar chart") is read
 * together with it. Tables may gain a joined one. Returns how many requests, from the end, the plan stands for. */
size_t bi_plan_make_chain(struct bi_plan *out, const struct bi_lexicon *x, struct bi_tables *t,
                          const char *const *requests, size_t n);
/* One request by itself; table SIZE_MAX: the words choose. */
void bi_plan_make(struct bi_plan *out, const struct bi_lexicon *x, struct bi_tables *t, const char *request,
                  size_t table);
void bi_plan_clear(struct bi_plan *p);
/* True when a measure is a share or rate between 0 and 1. */
bool bi_measure_is_share(const struct bi_measure *m);
#endif
