/* markup.h - Markdown, as models and people write it, as a tree that every platform renders in its own way. Floor 3; pure.
 *
 * CommonMark with tables, strikethrough, task lists and bare web addresses; no HTML (it stays text) and no indented code. A
 * document never fails to parse: what is nested too deep or too long is kept as text. Text is valid UTF-8 whatever came in. */
#ifndef MARKUP_H
#define MARKUP_H
#include "str.h"

enum markup_kind {
    /* hold blocks */
    MARKUP_DOC,
    MARKUP_QUOTE,
    MARKUP_LIST,  /* of items; ordered, start */
    MARKUP_ITEM,  /* task, done */
    MARKUP_TABLE, /* of rows; the first is its head */
    MARKUP_ROW,   /* of cells */
    /* hold runs */
    MARKUP_PARAGRAPH,
    MARKUP_HEADING, /* level 1 to 6 */
    MARKUP_CELL,    /* align */
    MARKUP_CODE,    /* one run, lines end with \n; language */
    MARKUP_RULE,    /* nothing */
};

enum markup_style { MARKUP_BOLD = 1, MARKUP_ITALIC = 2, MARKUP_STRIKE = 4, MARKUP_MONO = 8 };

/* A stretch of text in one style. A line break is "\n" in its text. Runs that follow each other differ in style or url. */
struct markup_run {
    char *text;
    char *url; /* http, https or mailto; NULL: no link. Percent-encoded or not, as it was written */
    unsigned style;
    size_t len, cap; /* of text */
};

struct markup {
    enum markup_kind kind;
    int level;
    bool ordered, task, done, tight;
    enum { MARKUP_LEFT, MARKUP_CENTER, MARKUP_RIGHT } align;
    int64_t start;       /* number of an ordered list's first item */
    char *language;      /* letters, digits and +-#._ only; NULL: not said */
    struct markup *next; /* sibling */
    struct markup *first, *last;
    struct markup_run *runs;
    size_t run_n, run_cap;
};

enum {
    MARKUP_MAX = 4 << 20,  /* bytes of a document; the rest is dropped */
    MARKUP_DEPTH_MAX = 16, /* blocks within blocks; what is deeper loses its own frame, not its text */
};

/* Never NULL; markup_free it. */
struct markup *markup_parse(const char *markdown);
void markup_free(struct markup *m); /* with all below it; NULL is fine */
static inline void markup_freep(struct markup **m)
{
    markup_free(*m);
}
struct markup *markup_dup(const struct markup *m);
/* A new document of one paragraph: the text as it is, whatever marks are in it. */
struct markup *markup_of_text(const char *text);
/* Behind the last block of m. */
void markup_append(struct markup *m, struct markup *take_block);

/* As text that reads well without any rendering: tables in columns, lists with marks, links as "text (address)", code in
 * fences. No newline at the end. */
void markup_plain(struct str *out, const struct markup *m);

/* How large a document is once rendered, in whatever the platform counts; must grow with what is in it. */
typedef size_t markup_size_fn(void *ud, const struct markup *doc);
struct markup_limit {
    size_t max;
    markup_size_fn *size;
    void *ud;
};
/* Takes the longest beginning of doc that fits and leaves the rest in it; NULL when nothing is left. Cuts, in this order,
 * between blocks, items, rows (each part of a table repeats its head), lines, and anywhere between grapheme clusters. Code, lists
 * and quotes go on as such in the next part. Always moves on: what can't be cut is handed out although it is too large. */
struct markup *markup_part(struct markup *doc, const struct markup_limit *limit);
#endif
