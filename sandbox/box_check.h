/* box_check.h - the escapes that `doctor` tries: each is a cell in a fresh session, judged here by what it printed and by
 * what came of it (specification, section 4). One check at a time. */
#ifndef BOX_CHECK_H
#define BOX_CHECK_H
#include "box_session.h"

/* Answers with BOX_NOTE for each probe and one BOX_DONE for this request. */
void box_check_start(struct box_keeper *k, uint32_t request);
void box_check_stop(struct box_keeper *k);
/* From the session that the check runs in. */
void box_check_output(struct box_check *c, const char *data, size_t n);
void box_check_answer(struct box_check *c, const struct box_answer *a);
#endif
