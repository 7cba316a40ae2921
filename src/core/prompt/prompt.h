/* prompt.h - what a model is given to read: wording from prompts/, files in words, history that fits.
 *
 * The system message and the tools are the same bytes for every turn, earlier turns are repeated as they were sent, new
 * things come last: providers keep what they have read of a prefix that does not change. */
#ifndef PROMPT_H
#define PROMPT_H
#include "talk.h"
#include "str.h"

struct conf;
struct json;
struct prompts;

/* ---- wording ---- */

/* Reads system.md, summary.md, repair.md, final.md, fence.md, asks.md and tools.json. ERR_CONFIG names the file and what it lacks. */
must_check int prompts_load(struct prompts **out, const struct conf *c, struct err *e);
void prompts_free(struct prompts *p); /* NULL is fine */
const char *prompts_system(const struct prompts *p);
const struct json *prompts_tools(const struct prompts *p);
int64_t prompts_tools_tokens(const struct prompts *p); /* estimate of the tools' descriptions */
const struct model_fence_words *prompts_fence(const struct prompts *p);
const char *prompts_summary(const struct prompts *p); /* the wish for notes */

enum prompt_note {
    /* repair.md */
    NOTE_MALFORMED,
    NOTE_CUT,
    NOTE_UNKNOWN_TOOL, /* a: its name, b: the others */
    NOTE_SKIPPED,
    NOTE_INTERRUPTED,
    NOTE_CANCELLED, /* a: who */
    NOTE_NOT_RUN_LIMIT,
    NOTE_SYNTAX,
    NOTE_NAME, /* a: the call that loads the newest table */
    NOTE_POSITION,
    NOTE_SAME_ERROR,
    NOTE_SAME_CALL,
    NOTE_EMPTY,
    NOTE_NOT_RUN,       /* a: the call that loads the newest table */
    NOTE_NOT_RUN_AGAIN, /* the same */
    NOTE_FOREIGN,       /* the same */
    NOTE_UNSUPPORTED,   /* a: numbers, days, names */
    NOTE_NO_FILE,       /* a: names */
    NOTE_NO_CHART,
    NOTE_COUNT,   /* a: " but 28.8", or ""; b: the question */
    NOTE_MISREAD, /* a: a number */
    NOTE_HEED,    /* a: a note of the box */
    NOTE_OTHER,   /* a: names of columns */
    NOTE_PROMISED,
    NOTE_UNREAD,  /* a: the call that loads the newest table */
    NOTE_ANOTHER, /* a: the file that the question names, b: the one that was read */
    NOTE_ECHO,
    NOTE_LANGUAGE,
    NOTE_RESTARTED,
    NOTE_EDITED,
    NOTE_WITHDRAWN,         /* a: names of files */
    NOTE_WITHDRAWN_VERSION, /* the same */
    NOTE_SANDBOX,
    NOTE_FILES_BRIEF,
    NOTE_SQUEEZED,
    NOTE_SUMMARY, /* a: notes */
    NOTE_SUMMARY_TAKEN,
    NOTE_TOOL_TABLE, /* a: name of a CSV file */
    NOTE_TOOL_FILE,  /* a: name of a file */
    /* final.md */
    NOTE_FINAL_REPAIRS,   /* a: how many */
    NOTE_FINAL_MALFORMED, /* a: how many */
    NOTE_FINAL_STEPS,     /* a: how many */
    NOTE_FINAL_TIME,      /* a: seconds */
    NOTE_FINAL_LOOP,
    NOTE_FINAL_EMPTY,
    NOTE_FINAL_BUDGET,
    NOTE_FINAL_ASK,
    /* fence.md */
    NOTE_FENCE_HOW,
    NOTE_FENCE_REMIND,
    NOTE_FENCE_OUTPUT,
    NOTE_FENCE_FAILED,
    NOTE_FENCE_TOOLS, /* a: a line for each */
    /* asks.md: phrases, not sent to a model (core/agent/request.h) */
    NOTE_ASKS_COMPUTE,
    NOTE_ASKS_TALK,
    NOTE_ASKS_PROGRAM,
    NOTE_ASKS_PROMISE,
    NOTE_ASKS_OFFER,
    NOTE_ASKS_LANGUAGE,
    NOTES,
};
/* The section with {{a}} and {{b}} filled in; caller frees. */
char *prompts_note(const struct prompts *p, enum prompt_note n, const char *a, const char *b);

/* ---- one turn ---- */

enum { PROMPT_NONCE_SIZE = 13 };
/* Twelve random hex digits and a NUL: marks of data that data cannot know. */
void prompt_nonce(char out[PROMPT_NONCE_SIZE]);

struct prompt_turn {
    const struct prompts *prompts;
    const char *notes;              /* of turns before `turns`; may be NULL */
    const struct transcript *turns; /* earlier ones, oldest first */
    const int64_t *turn_ids;        /* may be NULL */
    size_t turn_n;
    const struct json *files; /* profiles (docs/profile.md), newest last; may be NULL */
    const char *asker, *request;
    const char *note; /* may be NULL */
    const char *nonce;
};
/* Fills out (empty) with system, notes, earlier turns, and the request with what is new about files. */
void prompt_assemble(struct talk *out, const struct prompt_turn *t);

/* ---- files in words: prompt_files.c ---- */

/* Appends the profiles of files that `known` does not already hold in a person's message, within a budget of tokens: what is over it,
 * older files first, is named only. Appends nothing when nothing is new. */
void prompt_files(struct str *out, const struct json *files, const struct transcript *known, const struct prompts *p);
/* Appends text as a Python string literal: blanks and odd characters show. */
void prompt_py_literal(struct str *out, const char *text);
#endif
