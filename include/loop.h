/* loop.h - one thread's event loop: descriptors, timers, children, signals, deferred calls. Floor 1.
 *
 * Callbacks run one at a time on the thread that called loop_run(). None of them may free its own source; loop_defer() is
 * the place for that. */
#ifndef LOOP_H
#define LOOP_H
#include <sys/types.h>
#include "err.h"

struct loop;

/* Milliseconds on the loop's clock: CLOCK_BOOTTIME, or a test's own. */
typedef int64_t loop_clock_fn(void *ud);

/* NULL clock: the real one. */
must_check int loop_new(struct loop **out, loop_clock_fn *clock, void *ud, struct err *e);
/* Every source must be gone; what was deferred still runs. NULL is fine. */
void loop_free(struct loop *l);
/* Until loop_stop(), or until no source is left; signals and silent children are no sources. */
must_check int loop_run(struct loop *l, struct err *e);
/* One round: wait at most max_ms (and not past the next timer), then call what is due. For tests and nested waits at start-up. */
must_check int loop_once(struct loop *l, int64_t max_ms, struct err *e);
void loop_stop(struct loop *l);
int64_t loop_now_ms(const struct loop *l);
/* Longest time that one callback took since the last call, in microseconds; a warning is logged past 250 ms. */
int64_t loop_lag_us(struct loop *l);

/* Interest in fd replaces any earlier one; events are EPOLLIN, EPOLLOUT; EPOLLHUP and EPOLLERR always come. A regular file or
 * /dev/null, which epoll refuses, is ready in every round. */
typedef void loop_io_fn(void *ud, int fd, uint32_t events);
void loop_io(struct loop *l, int fd, uint32_t events, loop_io_fn *fn, void *ud);
void loop_io_stop(struct loop *l, int fd); /* before close(fd), never after */

/* One shot. 0 is no timer; cancelling a fired or cancelled id does nothing. */
typedef uint64_t loop_timer;
typedef void loop_fn(void *ud);
loop_timer loop_after(struct loop *l, int64_t ms, loop_fn *fn, void *ud);
void loop_cancel(struct loop *l, loop_timer id);
/* Run fn once the present callback has returned; outside of one, in the next round. */
void loop_defer(struct loop *l, loop_fn *fn, void *ud);
void loop_defer_cancel(struct loop *l, loop_fn *fn, void *ud);

/* Called once, after the child was reaped through its pidfd; status as from waitpid(). */
typedef void loop_child_fn(void *ud, pid_t pid, int status);
must_check int loop_child(struct loop *l, pid_t pid, loop_child_fn *fn, void *ud, struct err *e);
void loop_child_stop(struct loop *l, pid_t pid); /* no callback; the child is still reaped */

/* Blocks signo for the process and delivers it here. */
typedef void loop_signal_fn(void *ud, int signo);
must_check int loop_signal(struct loop *l, int signo, loop_signal_fn *fn, void *ud, struct err *e);
void loop_signal_stop(struct loop *l, int signo);
#endif
