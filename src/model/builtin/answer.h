/* answer.h - what the built-in planner says: results with how they were read, questions, refusals. */
#ifndef BUILTIN_ANSWER_H
#define BUILTIN_ANSWER_H
#include "plan.h"

struct cell;

/* All append Markdown in the language of the plan. */
void bi_answer_trouble(struct str *out, const struct bi_lexicon *x, const struct bi_tables *t, const struct bi_plan *p);
/* `printed` is what the program wrote: its fact and table lines are taken over. */
void bi_answer_result(struct str *out, const struct bi_lexicon *x, const struct bi_tables *t, const struct bi_plan *p,
                      const char *printed);
/* The program did not work: error as "KeyError: 'x'", one line. */
void bi_answer_failure(struct str *out, const struct bi_lexicon *x, const struct bi_plan *p, const char *error);
#endif
