/* text.h - words: how the built-in planner cuts text into tokens and how alike two words are. */
#ifndef BUILTIN_TEXT_H
#define BUILTIN_TEXT_H
#include "str.h"

enum bi_token_type {
    BI_TOKEN_WORD,   /* letters and digits of an alphabet */
    BI_TOKEN_HAN,    /* one Chinese character */
    BI_TOKEN_NUMBER, /* number and suffix are set */
    BI_TOKEN_DATE,   /* 2024-03-15: text is the ISO form */
    BI_TOKEN_QUOTED, /* what stood between quotation marks; text is as written, not folded */
    BI_TOKEN_MARK,   /* punctuation; a run of < > = ! is one token */
};
enum bi_suffix { BI_SUFFIX_NONE, BI_SUFFIX_ORDINAL, BI_SUFFIX_DECADE, BI_SUFFIX_PERCENT };

struct bi_token {
    enum bi_token_type type;
    enum bi_suffix suffix;
    double number;
    char *text;      /* folded */
    char *stem;      /* of text: what plurals have in common */
    size_t from, to; /* bytes in the text it was cut from */
};

struct bi_tokens {
    struct bi_token *at;
    size_t n, cap;
    bool foreign; /* holds letters of a script that is neither Latin nor Chinese */
    bool chinese;
};

enum { BI_TOKENS_MAX = 400 }; /* more than any request that one plan can hold; the rest is cut and `n` says so */

/* Text must be valid UTF-8. Clear with bi_tokens_clear. */
void bi_tokens_cut(struct bi_tokens *out, const char *text);
void bi_tokens_clear(struct bi_tokens *t);
/* Letters and digits only, folded: "Total_Bill (USD)" -> "totalbillusd". Caller frees. */
char *bi_compact(const char *text);
/* A name cut at blanks, marks, camel humps and between letters and digits, folded, one blank between: "PassengerId" ->
 * "passenger id". Caller frees. */
char *bi_name_words(const char *name);
/* A word without the ending of its English plural or genitive. Caller frees. */
char *bi_stem(const char *word);
/* Edits (insert, delete, change, swap neighbours) between two words; anything above `most` counts as most + 1. */
size_t bi_distance(const char *a, const char *b, size_t most);

/* How a word of a request came to mean a word of a name, best first. */
enum bi_like { BI_LIKE_SAME, BI_LIKE_PLURAL, BI_LIKE_MEANING, BI_LIKE_FORM, BI_LIKE_SHORT, BI_LIKE_TYPO, BI_LIKE_NOT };
/* Never BI_LIKE_MEANING: that needs a lexicon. FORM: survival/survived; SHORT: unemployment/unemp; TYPO: one or two
 * edits. */
enum bi_like bi_word_like(const char *asked, const char *name);
size_t bi_letters(const char *text); /* code points */
#endif
