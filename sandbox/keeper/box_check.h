/* box_check.h - the escapes that `doctor` tries: each is a cell in a fresh session, judged here by what it printed and by
 * what came of it. One check at a time. */
#ifndef BOX_CHECK_H
#define BOX_CHECK_H
#include "session/box_session.h"

/* The quick ones, which end nothing, for the keeper itself: at its start, before anybody is served, and every hour. An attempt
 * that got through is in k->escape; what only took too long, or could not be tried, is not one. */
void box_check_look(struct box_keeper *k);
/* It is over, and nothing of it is left. */
bool box_check_looked(const struct box_keeper *k);

/* Answers with BOX_NOTE for each probe and one BOX_DONE for this request. */
void box_check_start(struct box_keeper *k, uint32_t request);
void box_check_stop(struct box_keeper *k);
/* From the session that the check runs in. */
void box_check_output(struct box_check *c, const char *data, size_t n);
void box_check_answer(struct box_check *c, const struct box_answer *a);

struct box_probe;
/* Is that the right answer to it? detail: in words for an operator. output: what it printed. */
bool box_check_judge(const struct box_probe *p, const char *output, const struct box_answer *a, struct str *detail);
#endif
