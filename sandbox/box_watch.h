/* box_watch.h - the memory of a box where no control group counts it, read off its processes.
 *
 * Counted are the proportional shares of what processes have written to, and nameless files (memfd, or deleted) that they hold open,
 * each once, as far as they are more than what is mapped of such. Not counted is what lies in sockets and pipes, files
 * whose descriptors are under way, and what every process still shares with the zygote: that is nobody's. A look takes a few milliseconds, and the next one goes on where it stopped: a crowd of
 * processes holds nobody else up, it is only counted later. */
#ifndef BOX_WATCH_H
#define BOX_WATCH_H
#include <sys/types.h>
#include "err.h"

struct box_watch;

/* What each process that descends from the one behind that pidfd shares with it, in bytes; 0 when that can't be told. */
int64_t box_watch_inherited(int pidfd);
/* *w NULL: made. inherited: not counted, for each process. -> bytes: of the last whole round, or what the present one has found
 * already, if that is more. */
int64_t box_watch_look(struct box_watch **w, pid_t init, int64_t inherited, int64_t budget_us);
void box_watch_free(struct box_watch **w);
#endif
