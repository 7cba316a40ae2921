/* lexicon.h - the words that the built-in planner knows: one file a language under prompts/builtin/.
 *
 * A file is sections of lines `key = phrase, phrase`. In most sections the keys are fixed: they are the senses below,
 * in which the planner thinks ("mean" has the phrases "average" and "on average"; in Chinese 平均). [concept] and
 * [value] have free keys, shared by all languages: that is how 性别 finds the column Sex, and "women" the value female.
 * [say] holds what is said to people. docs/builtin.md describes the format for translators. */
#ifndef BUILTIN_LEXICON_H
#define BUILTIN_LEXICON_H
#include "text.h"

/* section, key in the file, name in the code */
#define BI_SENSE_TABLE(X)                             \
    X("aggregate", "mean", MEAN)                      \
    X("aggregate", "median", MEDIAN)                  \
    X("aggregate", "sum", SUM)                        \
    X("aggregate", "count", COUNT)                    \
    X("aggregate", "distinct", DISTINCT)              \
    X("aggregate", "min", MIN)                        \
    X("aggregate", "max", MAX)                        \
    X("aggregate", "std", STD)                        \
    X("aggregate", "variance", VARIANCE)              \
    X("aggregate", "mode", MODE)                      \
    X("aggregate", "quantile", QUANTILE)              \
    X("aggregate", "range", RANGE)                    \
    X("aggregate", "rate", RATE)                      \
    X("aggregate", "share", SHARE)                    \
    X("aggregate", "share_of_total", SHARE_OF_TOTAL)  \
    X("aggregate", "ratio", RATIO)                    \
    X("recipe", "overview", OVERVIEW)                 \
    X("recipe", "missing", MISSING)                   \
    X("recipe", "trend", TREND)                       \
    X("recipe", "growth", GROWTH)                     \
    X("recipe", "year_over_year", OVER_YEAR)          \
    X("recipe", "quarter_over_quarter", OVER_QUARTER) \
    X("recipe", "month_over_month", OVER_MONTH)       \
    X("recipe", "over_previous", OVER_PREVIOUS)       \
    X("recipe", "running", RUNNING)                   \
    X("recipe", "distribution", DISTRIBUTION)         \
    X("recipe", "correlation", CORRELATION)           \
    X("recipe", "compare", COMPARE)                   \
    X("recipe", "difference", DIFFERENCE)             \
    X("recipe", "join", JOIN)                         \
    X("recipe", "columns", COLUMNS)                   \
    X("recipe", "types", TYPES)                       \
    X("recipe", "duplicates", DUPLICATES)             \
    X("recipe", "unique", UNIQUE)                     \
    X("recipe", "files", FILES)                       \
    X("recipe", "sample", SAMPLE)                     \
    X("recipe", "crosstab", CROSSTAB)                 \
    X("recipe", "sort", SORT)                         \
    X("recipe", "shape", SHAPE)                       \
    X("recipe", "help", HELP)                         \
    X("clean", "clean", CLEAN)                        \
    X("clean", "dedupe", DEDUPE)                      \
    X("clean", "remove", REMOVE)                      \
    X("clean", "fill", FILL)                          \
    X("clean", "number", TO_NUMBER)                   \
    X("clean", "export", EXPORT)                      \
    X("clean", "csv", CSV)                            \
    X("clean", "excel", EXCEL)                        \
    X("clean", "previous", PREVIOUS)                  \
    X("group", "by", BY)                              \
    X("group", "each", EACH)                          \
    X("group", "grouped", GROUPED)                    \
    X("group", "bins", BINS)                          \
    X("order", "most", MOST)                          \
    X("order", "least", LEAST)                        \
    X("order", "common", COMMON)                      \
    X("order", "rare", RARE)                          \
    X("order", "ascending", ASCENDING)                \
    X("order", "descending", DESCENDING)              \
    X("order", "first", FIRST)                        \
    X("order", "last", LAST)                          \
    X("order", "latest", LATEST)                      \
    X("order", "earliest", EARLIEST)                  \
    X("order", "nth", NTH)                            \
    X("compare", "above", ABOVE)                      \
    X("compare", "below", BELOW)                      \
    X("compare", "at_least", AT_LEAST)                \
    X("compare", "at_most", AT_MOST)                  \
    X("compare", "equal", EQUAL)                      \
    X("compare", "unequal", UNEQUAL)                  \
    X("compare", "between", BETWEEN)                  \
    X("compare", "from", FROM)                        \
    X("compare", "to", TO)                            \
    X("compare", "since", SINCE)                      \
    X("compare", "after", AFTER)                      \
    X("compare", "before", BEFORE)                    \
    X("compare", "until", UNTIL)                      \
    X("compare", "contains", CONTAINS)                \
    X("compare", "named", NAMED)                      \
    X("logic", "not", NOT)                            \
    X("logic", "except", EXCEPT)                      \
    X("logic", "and", AND)                            \
    X("logic", "or", OR)                              \
    X("logic", "versus", VERSUS)                      \
    X("logic", "among", AMONG)                        \
    X("logic", "of", OF)                              \
    X("logic", "than", THAN)                          \
    X("logic", "as", AS)                              \
    X("logic", "all", ALL)                            \
    X("logic", "numeric", NUMERIC)                    \
    X("chart", "any", CHART)                          \
    X("chart", "bar", BAR)                            \
    X("chart", "line", LINE)                          \
    X("chart", "pie", PIE)                            \
    X("chart", "histogram", HISTOGRAM)                \
    X("chart", "box", BOX)                            \
    X("chart", "scatter", SCATTER)                    \
    X("chart", "heatmap", HEATMAP)                    \
    X("chart", "none", NO_CHART)                      \
    X("period", "year", YEAR)                         \
    X("period", "decade", DECADE)                     \
    X("period", "quarter", QUARTER)                   \
    X("period", "month", MONTH)                       \
    X("period", "week", WEEK)                         \
    X("period", "day", DAY)                           \
    X("period", "hour", HOUR)                         \
    X("period", "weekday", WEEKDAY)                   \
    X("rows", "row", ROW)                             \
    X("rows", "person", PERSON)                       \
    X("rows", "value", VALUE)                         \
    X("ask", "which", WHICH)                          \
    X("ask", "who", WHO)                              \
    X("ask", "when", WHEN)                            \
    X("ask", "how_many", HOW_MANY)                    \
    X("ask", "how_much", HOW_MUCH)                    \
    X("follow", "again", AGAIN)                       \
    X("unit", "any", UNIT)                            \
    X("unit", "age", UNIT_AGE)                        \
    X("filler", "any", FILLER)                        \
    X("cannot", "forecast", CANNOT_FORECAST)          \
    X("cannot", "cause", CANNOT_CAUSE)                \
    X("cannot", "change", CANNOT_CHANGE)              \
    X("cannot", "model", CANNOT_MODEL)                \
    X("cannot", "opinion", CANNOT_OPINION)            \
    X("cannot", "relative", CANNOT_RELATIVE)          \
    X("cannot", "web", CANNOT_WEB)                    \
    X("cannot", "write", CANNOT_WRITE)

enum bi_sense {
    BI_NONE,
#define X(section, key, name) BI_##name,
    BI_SENSE_TABLE(X)
#undef X
        BI_SENSES
};

enum bi_language { BI_EN, BI_ZH, BI_LANGUAGES };

enum bi_phrase_type {
    BI_PHRASE_SENSE,       /* id: enum bi_sense */
    BI_PHRASE_CONCEPT,     /* id: of a concept */
    BI_PHRASE_VALUE,       /* id: of a value */
    BI_PHRASE_SUPERLATIVE, /* oldest: sense MOST or LEAST; concepts: of which column, the first that fits */
    BI_PHRASE_COMPARATIVE, /* older than: sense ABOVE or BELOW ...; concepts */
    BI_PHRASE_NUMBER,      /* id: the number */
    BI_PHRASE_ORDINAL,     /* second: id 2; sense MOST or LEAST: with what it is the second of (第二高), else NONE */
    BI_PHRASE_HOLDER,      /* survivors: id of the concept (survived), said of those for whom it holds */
    BI_PHRASE_COMPLEMENT,  /* died: id of the concept (survived) whose opposite it is */
};

enum { BI_CONCEPTS_OF_WORD = 6 };

struct bi_phrase {
    enum bi_phrase_type type;
    enum bi_language language;
    int id;
    enum bi_sense sense;
    int concepts[BI_CONCEPTS_OF_WORD]; /* -1 ends */
    struct bi_tokens tokens;           /* never empty */
    char *compact;
};

struct bi_concept {
    char *name;
    bool additive;   /* amounts that one adds up: sales, not prices */
    bool intensive;  /* a sum of which means nothing: temperatures */
    bool counted;    /* additive, and "how many" asks for its sum: births, units */
    bool thing;      /* countable: bills, orders; a word for rows where only a part of a name or an id is called so */
    bool nature;     /* says what kind of number a column beside it holds: the price of AAPL, 数学成绩 */
    bool stands_for; /* a row stands for so many: births, population */
};

/* One member of a class of values: female of sex, monday of weekday. */
struct bi_named_value {
    char *name; /* "female" */
    int topic;  /* of the class: sex */
    int order;  /* in its class, from 0: Monday before Tuesday */
};

struct bi_lexicon;

/* Reads every language of the folder `prompts/builtin`. ERR_CONFIG names file and line. */
must_check int bi_lexicon_open(struct bi_lexicon **out, const char *prompts_dir, struct err *e);
void bi_lexicon_close(struct bi_lexicon *x); /* NULL is fine */

/* Phrases that begin with that stem: *n of them. */
const struct bi_phrase *const *bi_lexicon_find(const struct bi_lexicon *x, const char *first_stem, size_t *n);
size_t bi_lexicon_phrases(const struct bi_lexicon *x);
const struct bi_phrase *bi_lexicon_phrase(const struct bi_lexicon *x, size_t i);
const struct bi_concept *bi_lexicon_concept(const struct bi_lexicon *x, int id);
const struct bi_named_value *bi_lexicon_value(const struct bi_lexicon *x, int id);
int bi_lexicon_concept_id(const struct bi_lexicon *x, const char *name); /* -1: none */
/* The value whose phrase is exactly text (any language), in the class `concept` (-1: any); -1: none. *form_letters
 * (may be NULL) is set to the length of that phrase: short ones (F, M) mean something only in their own column. */
int bi_lexicon_value_of(const struct bi_lexicon *x, const char *text, int topic, size_t *form_letters);
const char *bi_sense_name(enum bi_sense s);
const char *bi_sense_section(enum bi_sense s);

/* What is said to people: the text of that key with {name} replaced. `pairs` is name, text, ..., NULL. Appends. */
void bi_say(struct str *out, const struct bi_lexicon *x, enum bi_language language, const char *key,
            const char *const *pairs);
/* The bare text; never NULL: a missing key says its own name. */
const char *bi_text(const struct bi_lexicon *x, enum bi_language language, const char *key);
#endif
