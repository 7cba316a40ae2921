/* box_primer.h - a helper that takes the wait of the first move between control groups upon it.
 *
 * For the first move of a process in a while the kernel waits until every processor has been through its scheduler (a grace period
 * of RCU), 8 to 16 ms in which the keeper would stand still; for one soon after it does not. So the helper moves itself, from where
 * it is to there, and again for the next 100 ms. Other writes to control groups wait for its first move, too: do them before. */
#ifndef BOX_PRIMER_H
#define BOX_PRIMER_H
#include <sys/types.h>
#include "base.h"

struct box_primer {
    pid_t pid; /* 0: none could be started; then moves take what they take */
    int orders_fd;
    struct box_primed *primed; /* shared with it */
};
/* A process of ours, which stays in the group dir. It ends with us. */
void box_primer_start(struct box_primer *p, const char *dir);
void box_primer_stop(struct box_primer *p);
/* A process will be moved in some milliseconds. Returns at once. */
void box_primer_order(const struct box_primer *p);
/* A move would be quick now. What can wait a moment for that looks every millisecond, and needs to have ordered. */
bool box_primer_is_done(const struct box_primer *p);
#endif
