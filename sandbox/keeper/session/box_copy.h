/* box_copy.h - what a session's head leaves behind after a cell, so that one can go back to it.
 *
 * A copy is a fork of the head that is nobody's child and waits on its own channel (kernel/copies.py). It is parked: in a
 * group of its own, out of reach of what kills a cell, last to go when memory ends, frozen where the kernel can freeze. To
 * wake it, it is thawed and sent a head's channels; it forks, its child says BOX_HELLO on them and is the head. The copy
 * stays, and can be woken again.
 *
 * A session is always at a place: after some cell, which came after another (before). `back` is the nearest earlier place
 * that there still is a copy of; it moves on when that copy goes, so that a death finds an older one. Cell 0, and the cell
 * after which the interpreter was a new one (base), need no copy: the zygote has it. */
#ifndef BOX_COPY_H
#define BOX_COPY_H
#include "box_session.h"
#include "wire/box_loop.h"

struct box_copy {
    struct box_copy *next; /* the one made before it */
    struct box_session *session;
    struct box_place place;
    uint32_t number;  /* of its group: never used twice in a session */
    bool pinned;      /* goes after all that are not */
    uint32_t awake;   /* heads that it was asked for and is not done with; 0: it sleeps */
    pid_t pid, inner; /* on the host; in the box. 0: has not reported yet */
    pid_t reported;   /* waits to go to its group, which is to be quick (box_primer.h) */
    int pidfd;
    struct box_link link;
    struct box_source *src, *end_src;
};

/* The head, which is idle, is asked for a copy of the place where the session is. */
void box_copy_begin(struct box_session *s);
/* It forked, or could not: it is ready for the next request. */
void box_copy_head_is_back(struct box_session *s, const struct box_msg *msg);
/* COPY: it may go to its group now, or it took too long, or the head with it. */
void box_copy_tick(struct box_session *s, int64_t now_ms);
/* A sweep begins: what has not reported yet is in its way. */
void box_copy_give_up(struct box_session *s);

struct box_copy *box_copy_find(const struct box_session *s, uint32_t cell); /* NULL: none */
struct box_copy *box_copy_find_pid(const struct box_session *s, pid_t pid);
/* Of the state where the session is, or the nearest earlier one; NULL: none is left. */
struct box_copy *box_copy_nearest(const struct box_session *s);
/* Is the state after that cell a new interpreter's? */
bool box_copy_is_fresh(const struct box_session *s, uint32_t cell);
/* "2, 3 and 5": what can be gone back to. */
void box_copy_list(const struct box_session *s, char *out, size_t n);

/* theirs: control, stdout, stderr of the head to be; borrowed. tell: its HELLO says what is gone. */
void box_copy_wake(struct box_copy *c, const int theirs[3], bool tell);
/* Its head is there, and in its own group, or on its way out; does nothing when none was woken. */
void box_copy_woken(struct box_session *s);
/* The one that was being woken did not become a head: it goes, and everything else of the run, and then another copy is woken; or this one again, when it lives and had no room beside
 * those that were dying. */
void box_copy_failed(struct box_session *s, const char *why);
void box_copies_clear(struct box_session *s);
/* Much of the session's memory is in use: half of them go, the oldest first, pinned ones last. The newest stays, since a death
 * needs it. */
void box_copies_pressure(struct box_session *s, int64_t used_bytes);
/* The machine's memory is short: one copy goes, of the session that has most. -> when to look again, INT64_MAX: never. */
int64_t box_copies_tick(struct box_keeper *k, int64_t now_ms);
/* NULL: done; else why it can't be. */
const char *box_copy_pin(struct box_session *s, uint32_t cell, bool pinned);
/* The pids, in the box, that a sweep has to spare. Returns their number, at most max. */
size_t box_copies_inner(const struct box_session *s, uint32_t *out, size_t max);
/* SIGKILL to what an interrupted cell has started since, all of which stands still or not. */
void box_copies_hunt(const struct box_session *s, int64_t since_us, bool still);
/* A socket pair whose first end, ours, tells who sent what. */
must_check int box_copy_socket(int *ours, int *theirs, struct err *e);
#endif
