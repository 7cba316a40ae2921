/* read.h - a request cut into items: each a word or phrase with everything that it could mean.
 *
 * Candidates for every span of tokens come from the lexicon, the columns' names and the values; the best cover of the
 * whole request wins (longest first). What no span covers is an unknown item: the plan must not be made without it. */
#ifndef BUILTIN_READ_H
#define BUILTIN_READ_H
#include "table.h"

struct bi_column_match {
    const struct bi_column *column;
    double
        score; /* 1: the very name; above 0.85: the name in other words; less: a part of it, a short form, a typing error */
    enum bi_like like;
    bool whole;
};
struct bi_value_match {
    const struct bi_column *column;
    const struct bi_value *value;
    double score;
};

enum bi_item_kind {
    BI_ITEM_UNKNOWN, /* not understood */
    BI_ITEM_SENSE,   /* a word of the lexicon: senses */
    BI_ITEM_COLUMN,
    BI_ITEM_VALUE,
    BI_ITEM_NUMBER,
    BI_ITEM_DATE,   /* text is ISO */
    BI_ITEM_QUOTED, /* text as written */
    BI_ITEM_ABSENT, /* a word for data that no column holds */
    BI_ITEM_BOUND,  /* oldest, older than, died: `bound` */
    BI_ITEM_FILE,
};

enum { BI_MATCHES_MAX = 12, BI_ITEM_SENSES = 6 };

struct bi_item {
    enum bi_item_kind kind; /* the likeliest; the plan may take another one that is set below */
    size_t from, to;        /* tokens [from, to) */
    enum bi_sense senses[BI_ITEM_SENSES];
    size_t sense_n;
    struct bi_column_match columns[BI_MATCHES_MAX]; /* best first */
    size_t column_n;
    struct bi_value_match values[BI_MATCHES_MAX];
    size_t value_n;
    const struct bi_phrase *bound;
    double number;
    int ordinal; /* second: 2; 0: none */
    enum bi_suffix suffix;
    bool has_number;
    const char *text;             /* dates, quoted; borrowed from the tokens */
    size_t table;                 /* files */
    bool holder;                  /* names those for whom a yes/no column says yes: survivors */
    bool typo;                    /* a word of the lexicon, nearly */
    const struct bi_phrase *near; /* typo: what it was read as */
    int topic;                    /* a word for data: its first concept; -1 */
    int named;                    /* a value of the lexicon: the first; -1 */
    double weight;
    bool used;
};

struct bi_reading {
    struct bi_tokens tokens;
    char *text;            /* the request */
    struct bi_item *items; /* without punctuation that separates only */
    size_t n, cap;
    enum bi_language language;
};

void bi_read(struct bi_reading *out, const struct bi_lexicon *x, const struct bi_tables *t, const char *request);
void bi_reading_clear(struct bi_reading *r);
bool bi_item_is(const struct bi_item *i, enum bi_sense s);
/* The words of an item as the person wrote them; caller frees. */
char *bi_item_words(const struct bi_reading *r, const struct bi_item *i);

/* What the tokens [from, to) match, written into *item (match.c). */
void bi_match_columns(struct bi_item *item, const struct bi_lexicon *x, const struct bi_tables *t,
                      const struct bi_tokens *k);
void bi_match_values(struct bi_item *item, const struct bi_lexicon *x, const struct bi_tables *t,
                     const struct bi_tokens *k);
#endif
