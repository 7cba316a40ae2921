/* box_watch.h - the memory of a box where no control group counts it, read off its processes.
 *
 * Counted are the proportional shares of what processes have written to, and nameless files (memfd, or deleted) that they hold open,
 * each once, as far as they are more than what is mapped of such. Not counted is what lies in sockets and pipes, files
 * whose descriptors are under way or that are only mapped still, and what every process still shares with the zygote: that is nobody's.
 *
 * Reading the memory of a process waits for its lock, and a crowd of them that fork and die holds its reader up for as long as it
 * likes. So a helper reads, which lives as long as the cell that it watches, and tells what it has found every few milliseconds. */
#ifndef BOX_WATCH_H
#define BOX_WATCH_H
#include <sys/types.h>
#include "err.h"

struct box_watch;

/* What each process that descends from the one behind that pidfd shares with it, in bytes; 0 when that can't be told. */
int64_t box_watch_inherited(int pidfd);
/* *w NULL: made. inherited: not counted, for each process. -> bytes: the newest that is known, after a wait for it of patience_ms
 * at most; 0: nothing yet. */
int64_t box_watch_look(struct box_watch **w, pid_t init, int64_t inherited, int patience_ms);
/* Ends the helper. */
void box_watch_free(struct box_watch **w);

/* What fails at every tick while a cell runs is said once, and then once a minute. */
struct box_failures {
    int64_t told_ms; /* 0: never */
    int64_t n;       /* since then */
};
/* One more, at now_ms (time_mono_ms). -> how many to tell of, or 0: not yet. */
int64_t box_failures_add(struct box_failures *f, int64_t now_ms);
#endif
