/* words.h - every sentence of ours that a person reads, in each language we speak: one table, so that the tone is one.
 *
 * Rules: what happened, what is left, what to do next. Never a stack trace, an errno or a name of ours. */
#ifndef WORDS_H
#define WORDS_H
#include "base.h"

enum word {
    /* how a turn is doing */
    WORD_QUEUED, /* a: place in the line */
    WORD_PREPARING,
    WORD_THINKING,
    WORD_RUNNING,   /* a: cell */
    WORD_REPAIRING, /* a: k, b: m */
    WORD_FINISHING,
    WORD_SECONDS, /* a: status line, b: seconds so far */
    /* how a turn ended without the model's own words */
    WORD_MODEL_DOWN,
    WORD_MODEL_SETUP,
    WORD_NO_ANSWER,
    WORD_REFUSED,
    WORD_GAVE_UP_REPAIRS, /* a: programs tried, b: last error */
    WORD_GAVE_UP_MALFORMED,
    WORD_GAVE_UP_STEPS, /* a: steps */
    WORD_GAVE_UP_TIME,  /* a: seconds */
    WORD_GAVE_UP_LOOP,
    WORD_GAVE_UP_BUDGET,
    WORD_TOO_LONG,
    WORD_CONTEXT_LOST,
    WORD_ANSWER_CUT, /* a: the answer */
    WORD_SEE_FIGURE, /* an answer that was nothing but a figure */
    WORD_CANCELLED,  /* a: who */
    WORD_BOX_FAILED,
    WORD_VARIABLES_GONE,
    WORD_THAWING,
    WORD_THAWED_LOST,      /* a: reasons */
    WORD_THAWED_RERUN,     /* a: cells */
    WORD_THAWED_FAILED,    /* a: cells, each with its reason */
    WORD_THAWED_NOT_RERUN, /* a: cell, b: why */
    WORD_THAWED_NOTES,     /* a: notes */
    WORD_BOX_CLOSED,
    WORD_INTERNAL,
    WORD_CUT_BY_RESTART,
    WORD_STALE,      /* waited for more than a day */
    WORD_ANSWER_OLD, /* in place of an answer whose question was edited */
    /* what a person's own program brought */
    WORD_CODE_SILENT,
    WORD_CODE_FAILED, /* a: error, b: line */
    WORD_CODE_ENDED,  /* a: what happened */
    WORD_VARIABLES_KEPT,
    WORD_VARIABLES_BACK,
    WORD_VARIABLES_LOST,
    /* files */
    WORD_FILE_NAME,   /* a: name */
    WORD_FILE_BIG,    /* a: name, b: limit */
    WORD_FILE_FAILED, /* a: name, b: why */
    WORD_FILES_FULL,  /* a: name, b: limit */
    WORD_EXPORTED,    /* a: the session's id */
    WORD_EXPORT_BIG,  /* a: limit, b: the session's id */
    WORD_NOT_KEPT,    /* a: names, each with the reason */
    WORD_FORMULAS,    /* a: names of files */
    WORD_FILE_STORE,  /* a: name */
    WORD_FILE_GOT,    /* a: names */
    WORD_FILE_LATE,   /* a: names; a question was asked before */
    WORD_FILE_UNREAD, /* a: name; could not be looked into */
    WORD_NOT_WRITTEN, /* a: the name that an answer linked to */
    WORD_UNSUPPORTED, /* a: numbers, days, names */
    WORD_UNREAD,
    WORD_ANOTHER, /* a: the file that was asked about, b: the one that was read */
    WORD_NO_CHART,
    WORD_NO_COUNT,    /* a: a number that is not whole */
    WORD_UNHEEDED,    /* a: a note of the box */
    WORD_MISREAD,     /* a: a number that is higher, or lower */
    WORD_OTHER,       /* a: names of columns */
    WORD_LAST_OUTPUT, /* a: what a program printed */
    WORD_FALLBACK,    /* a: the model that answered, b: the one that failed */
    WORD_MORE_FILES,  /* a: how many stay behind */
    /* receipt; a: number */
    WORD_RECEIPT_CELL,
    WORD_RECEIPT_CELLS,
    WORD_RECEIPT_ROWS,
    WORD_RECEIPT_TIME,
    WORD_RECEIPT_TOKENS,
    /* commands */
    WORD_NOTHING_RUNS,
    WORD_STOPPING,
    WORD_NO_FILES,
    WORD_NO_VARS,
    WORD_NO_CODE,
    WORD_NO_HISTORY,
    WORD_NO_RERUN,
    WORD_RESET,
    WORD_WENT_BACK, /* a: cell */
    WORD_WENT_BACK_ALL,
    WORD_STATE_GONE, /* a: why */
    WORD_NO_CELL,    /* a: what was given for its number */
    WORD_WHICH_CELL,
    WORD_NO_QUESTION, /* a: what was given for its number, b: how many there are */
    WORD_TOKEN,       /* a: 1 */
    WORD_USAGE,       /* a: amount, b: calls */
    WORD_USAGE_ONE,   /* the same, b: 1 */
    WORD_FORGOTTEN,
    WORD_NO_LIMIT,
    WORD_LIMIT_CELL, /* a: seconds, b: MB */
    WORD_LIMIT_TURN, /* a: seconds, b: steps */
    WORD_LIMIT_FILE, /* a: MB */
    WORD_SCOPE_TURN,
    WORD_SCOPE_PERSON,
    WORD_SCOPE_ROOM,
    WORD_SCOPE_DAY,
    WORD_BUDGET_NEAR, /* a: per cent, b: of what */
    WORD_BUDGET_OVER, /* a: what */
    WORD_MODEL_IS,    /* a: name, b: others */
    WORD_MODEL_NOW,   /* a: name */
    WORD_MODEL_NONE,  /* a: name, b: others */
    WORD_SLOW_DOWN,
    WORD_TOO_MANY, /* a: how many */
    WORD_NOT_YOU,
    WORD_NOT_HERE,
    WORD_TRY_AGAIN,
    WORD_NOT_TAKEN, /* the message could not be kept */
    WORDS,
};

/* The sentence with {a} and {b} filled in; NULL counts as "". Languages other than "zh" get English. Caller frees. */
char *words(enum word w, const char *language, const char *a, const char *b);
/* The same for numbers. */
char *words_n(enum word w, const char *language, int64_t a, int64_t b);
/* "zh" when text is mostly Chinese, else "en". */
const char *words_language(const char *text);
/* Fill {{key}} (or {key}, by `open` and `close`) in a template from pairs {key, value}, NULL-terminated; unknown keys stay. Caller frees. */
char *words_fill(const char *template, const char *open, const char *close, const char *const (*pairs)[2]);
#endif
