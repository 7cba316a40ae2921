/* agent_result.h - what a cell did, in words: for the model, and for a person who ran a program of their own. Pure. */
#ifndef AGENT_RESULT_H
#define AGENT_RESULT_H
#include "cell.h"
#include "core/prompt/prompt.h"
#include "str.h"

struct result_style {
    size_t head_bytes, tail_bytes; /* of a long text this much of the beginning and of the end */
    const char *nonce;             /* marks what code and files wrote as data */
};

bool result_failed(const struct cell *c);
/* The tool message: status, output between data marks, figures and files by name, what to know about the variables. */
void result_for_model(struct str *out, const struct cell *c, const char *code, const struct result_style *style);
/* The same cell as Markdown in the person's language. */
void result_for_person(struct str *out, const struct cell *c, const char *language);
/* Text of a tool between marks of data. */
void result_add_data(struct str *out, const char *text, const char *nonce);
/* "note: ...": what the service has to say about a result. x, y: what the note names; NULL: nothing. */
void result_add_note(struct str *out, const struct prompts *p, enum prompt_note n, const char *x, const char *y);
/* What went wrong, on one line, so that equal failures are equal: "KeyError: 'x'", "oom". Caller frees. */
char *result_signature(const struct cell *c);
/* Appends text: long base64-like runs and repeated lines collapsed, then cut to head and tail with a mark of what is missing. */
void result_cap(struct str *out, const char *text, size_t head_bytes, size_t tail_bytes);
#endif
