/* claims.h - what an answer claims, held against what was really put out (specs: what a small model gets wrong; reports: 9).
 * Pure; fuzzed.
 *
 * After failures models invent the result. A number in the prose counts as supported when some output, profile or question
 * of the conversation shows a value that rounds to it at the precision at which it is written. The reading of evidence is
 * generous, that of claims is not: every number that can be read out of a text supports itself. */
#ifndef CLAIMS_H
#define CLAIMS_H
#include "base.h"

/* Values that may be said, without their signs. */
struct evidence {
    double *at;
    size_t n, cap;
    bool sorted;
};
void evidence_clear(struct evidence *e);
/* All numbers of a text, in each way they can be read: 1,234 is 1234, 1.234, and 1 beside 234. */
void evidence_add(struct evidence *e, const char *text);
/* Takes out what a text names, so that a number once marked as unsupported does not support itself later. */
void evidence_remove(struct evidence *e, const char *text);

enum { CLAIMS_MAX = 12 }; /* more would only repeat the point */
struct claims {
    char *at[CLAIMS_MAX]; /* as written, each once */
    size_t n;
};
void claims_clear(struct claims *c);
char *claims_join(const struct claims *c); /* "25, 30.5"; caller frees */

/* Numbers of the prose that nothing supports. Left out: whole numbers up to 12 and 100, list markers, programs, names with
 * digits in them, addresses. Sorts the evidence. */
void claims_numbers(struct claims *out, const char *markdown, struct evidence *e);
/* Files that a sentence says were saved, attached and so on, unless exists() knows them. */
void claims_files(struct claims *out, const char *markdown, bool (*exists)(const void *ud, const char *name),
                  const void *ud);
#endif
