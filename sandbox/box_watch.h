/* box_watch.h - the memory of a box where no control group counts it, read off its processes.
 *
 * Counted are the proportional shares of what processes have mapped, and nameless files (memfd, or deleted) that they hold open,
 * each once, as far as they are more than what is mapped of such. Not counted is what lies in sockets and pipes, and files
 * whose descriptors are under way. A look takes a few milliseconds, and the next one goes on where it stopped: a crowd of
 * processes holds nobody else up, it is only counted later. */
#ifndef BOX_WATCH_H
#define BOX_WATCH_H
#include <sys/types.h>
#include "err.h"

struct box_watch;

/* *w NULL: made. -> bytes: of the last whole round, or what the present one has found already, if that is more. */
int64_t box_watch_look(struct box_watch **w, pid_t init, int64_t budget_us);
void box_watch_free(struct box_watch **w);
#endif
