/* box_checkpoint.h - BOX_CHECKPOINT and BOX_RESTORE: variables leave a box as bytes, and come back into a new interpreter.
 *
 * The keeper reads none of these bytes: it hands the daemon's descriptor on to the head, and sees to it that it is the one
 * kind that can do no harm there. To a pipe a box can add, not take back or reread what others have; it is no file, counts
 * against no disk, and lies below no folder that anybody looks into. A file that is to be restored is open for reading only. */
#ifndef BOX_CHECKPOINT_H
#define BOX_CHECKPOINT_H
#include "box_session.h"

/* Is that what may be passed on? ERR_DATA: op is another one's, the descriptor is missing or can do more than it should. */
must_check int box_checkpoint_check(const struct box_request *r, const struct json *spec, struct err *e);
/* For BOX_RESTORE: a head that has run cells makes room for a new one first. True: it does, and begin is called once more. */
bool box_restore_renews(struct box_session *s);
/* The request to the head, with its descriptor, which is closed here. */
void box_checkpoint_send(struct box_session *s);
/* The variables are those after that cell now, and no state before them is left. */
void box_restore_arrived(struct box_session *s, uint32_t cell);
#endif
