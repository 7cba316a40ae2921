/* claims_private.h - the parts of claims.c: how numbers and days are written, what follows from what. */
#ifndef CLAIMS_PRIVATE_H
#define CLAIMS_PRIVATE_H
#include "claims.h"

enum { CLAIMS_DIGITS_MAX = 24, CLAIMS_GROUPS_MAX = 12, CLAIMS_READINGS_MAX = 4 };

/* Digits with signs between them, as written: groups[i] is followed by seps[i]. */
struct run {
    const char *at, *end;
    struct group {
        const char *at;
        size_t n;
    } groups[CLAIMS_GROUPS_MAX];  /* 1,234,567: three */
    char seps[CLAIMS_GROUPS_MAX]; /* ',' '.' ' ' '\'' '_'; the odd blanks of print count as ' ' */
    size_t n;
};

struct number {
    const char *at, *end;                                           /* digits and exponent */
    double values[CLAIMS_READINGS_MAX], units[CLAIMS_READINGS_MAX]; /* unit: of its last written digit */
    size_t n;
    bool percent, whole; /* whole: one reading, no fraction, no magnitude */
};

/* ---- claims_number.c: numbers in digits ---- */
void number_run(struct run *r, const char *at);
void number_group(struct number *out, const struct run *r, size_t i,
                  bool fraction); /* one group, or a pair around a point */
/* The longest number that begins at a digit. False: what begins there is none, and ends at out->end. */
bool number_read(struct number *out, struct run *r, const char *at);
/* "1 234 567,8": false: no such number begins here. It may be several numbers as well. */
bool number_spaced(struct number *out, const char *begin, const char *at);
/* "1.2 million", "30k", "3.5万": *scale is 1 and nothing is taken when there is no such word. */
const char *number_magnitude(const char *at, double *scale);
bool number_percent(const char *begin, const char *number, const char **at); /* a sign or word of percent, moved past */
/* Digits of other scripts as ASCII ones; caller frees. Words stay as they are. */
char *number_plain(const char *text);

/* ---- claims_spell.c: numbers in words ---- */
/* "twenty-five", "three hundred", "三百二十", "百分之三十": what is behind it, `at` when there is none. */
const char *spelled_read(const char *begin, const char *at, struct number *out, double *scale);

/* ---- claims_spell_words.c ---- */
enum {
    NUMERAL_TIMES = 1, /* "hundred": what stands before it, so often */
    NUMERAL_WEAK = 2,  /* "seize", "quince": mostly another word, and a number only beside others */
};
struct numeral {
    const char *word; /* in small letters */
    double value;
    unsigned languages; /* bits */
    unsigned how;
};
struct numeral_and {
    const char *word;
    unsigned languages;
};
extern const struct numeral numerals[];
extern const size_t numeral_n;
extern const struct numeral_and numeral_ands[];
extern const size_t numeral_and_n;
extern const unsigned numerals_in_one_word; /* languages that write them so: "zweiundvierzig" */
extern const unsigned numerals_after_one;   /* that say "one hundred", not "hundred" alone */

/* ---- claims.c ---- */
void evidence_sort(struct evidence *e);
/* Some value rounds to v at that unit, or was cut to it. */
bool evidence_has(const struct evidence *e, double v, double unit);
bool evidence_between(const struct evidence *e, double low, double high);

/* ---- claims_tokens.c: programs ---- */
enum token_kind { TOKEN_SIGN, TOKEN_NAME, TOKEN_NUMBER, TOKEN_TEXT, TOKEN_COMMENT };
struct token {
    enum token_kind kind;
    const char *at; /* in the program; of a string its inside, of an f-string each part that is no field */
    size_t n;
    char sign;     /* a bracket (also those of f-strings and fields), ',', ':', '.', '=', '\n'; others are operators */
    bool computed; /* an operator or a function makes something else of it */
    bool printed;  /* it is printed as it stands, or shown as the last line */
};
struct tokens {
    struct token *at;
    size_t n, cap;
};
void tokens_read(struct tokens *t, const char *code);
void tokens_clear(struct tokens *t);
bool token_is(const struct token *t, const char *const *names, size_t n);

/* ---- claims_program.c ---- */
/* What a program is told to do: without comments, and without what it states instead of computing it, "print('the mean is 42')". Caller
 * frees, also of the next. */
char *program_parameters(const char *code);
char *program_results(const char *code, const char *output); /* what it put out, without the same */

/* ---- claims_prose.c ---- */
/* What stands there proves and claims nothing: a list's marker, a program, an address, a name with digits: what is behind it, or `at`. */
const char *prose_skip(const char *begin, const char *at);
const char *prose_skip_key(const char *begin, const char *at); /* a nonce, a checksum */
/* "about 1,200": 100 for what is written with less precision than its digits say, else 1. */
double prose_looseness(const char *begin, const char *at, const char *end);
const char *prose_sentence_end(const char *at); /* its last sign, or the end of its line */
/* A bound or level that custom sets, not a result: p < 0.05 beside a smaller value, a 95 % interval. */
bool prose_convention(const struct evidence *e, const char *begin, const struct number *n);

/* ---- claims_derive.c ---- */
struct said { /* a number of the prose */
    struct number n;
    double scale, loose;
    size_t paragraph;
    bool known;   /* something shows it */
    bool counted; /* not too small to be a claim */
};
/* It follows from others that stand near it: a sum, a difference, a ratio, where the sentence says so. */
bool derived_from_said(const char *begin, const struct said *all, size_t n, size_t i);
/* 61.6 % where 38.4 % is shown. */
bool derived_as_rest(const struct evidence *e, const struct said *s);
/* It is a value of the evidence in another unit: 90 minutes for 1.5 h. */
bool derived_by_unit(const struct evidence *e, const struct said *s);

/* ---- claims_calendar.c ---- */
enum {
    CALENDAR_MONTHS = 12,
    CALENDAR_NO_CLAIM = 1, /* shows a day, but is too common a word to be a claim */
    CALENDAR_SHORT = 2,    /* claims only when it looks like a name in the middle of a sentence */
    CALENDAR_MODAL = 4,    /* "May", "March": a month only where a month can stand */
};
struct calendar_name {
    const char *word;
    int weekday, month; /* from Monday 0, January 0; -1: it is none */
    unsigned how;
};
struct calendar_date {
    const char *end;
    int32_t days[2]; /* readings, as in struct evidence */
    size_t n;
};
size_t calendar_word(const char *at); /* bytes of the word there: letters of any alphabet; CJK has no words here */
const struct calendar_name *calendar_name_at(const char *at, size_t n);
size_t calendar_cjk_weekday(const char *begin, const char *at, int *day); /* "周五", "日曜": bytes, 0: none */
size_t calendar_cjk_month(const char *begin, const char *at, int *month); /* "3月", "十二月"; from 0 */
bool calendar_date(struct calendar_date *d, const char *begin, const char *at);
bool calendar_columns(struct calendar_date *d, const char *begin, const char *at); /* a row of a table: "2024  3  15" */
int calendar_weekday(int32_t ymd);

/* ---- claims_days.c ---- */
void days_collect(struct evidence *e, const char *text);
bool days_have(const struct evidence *e, const struct calendar_date *d);
void days_count(struct evidence *e, const char *text); /* whether it counts weekdays or months */
#endif
