/* box_loop.h - the keeper's event loop: descriptors by epoll, and one function that is asked for the next deadline.
 * Smaller than io/loop.h on purpose: the keeper may stand on floor 0 only. */
#ifndef BOX_LOOP_H
#define BOX_LOOP_H
#include "err.h"

struct box_loop;
struct box_source;
typedef void box_source_fn(void *ud, uint32_t events);
/* Does what is due at now_ms (time_mono_ms) and returns when it wants to be called next, INT64_MAX for never. Called
 * after every round of events. */
typedef int64_t box_tick_fn(void *ud, int64_t now_ms);

must_check int box_loop_new(struct box_loop **out, box_tick_fn *tick, void *ud, struct err *e);
void box_loop_free(struct box_loop *l);
must_check int box_loop_run(struct box_loop *l, struct err *e); /* until box_loop_stop() */
void box_loop_stop(struct box_loop *l);

/* events: EPOLLIN, EPOLLOUT; 0: not even hang-ups are told, so that an ended peer does not spin. */
struct box_source *box_loop_add(struct box_loop *l, int fd, uint32_t events, box_source_fn *fn, void *ud);
void box_loop_want(struct box_source *s, uint32_t events);
/* No call after this, also not for events that were fetched already. Before close(fd). NULL is fine; *s becomes NULL. */
void box_loop_drop(struct box_source **s);
#endif
