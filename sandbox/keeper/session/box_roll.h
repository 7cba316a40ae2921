/* box_roll.h - the roll of sessions: all there are, those of a number, and the few that have anything to do.
 *
 * Of a thousand sessions nearly all wait for a person. What the keeper does between two events (deadlines, the pool, what is to be
 * written) looks only at those that do not: the busy. A session is made busy by whatever gives it something to do
 * (box_roll_stir), and found to be at rest by the keeper's tick (box_roll_rest). Those in the pool are always among them. */
#ifndef BOX_ROLL_H
#define BOX_ROLL_H
#include <stdint.h>
#include <sys/queue.h>
#include "base.h"

enum { BOX_ROLL_BUCKETS = 1024 };

struct box_session;
LIST_HEAD(box_session_list, box_session);

struct box_roll {
    struct box_session_list all, busy;
    struct box_session_list by_id[BOX_ROLL_BUCKETS], by_serial[BOX_ROLL_BUCKETS];
};
/* A session's places in them; its own, zero at first. */
struct box_roll_entry {
    LIST_ENTRY(box_session) all, busy, by_id, by_serial;
    bool is_busy, has_id;
};

/* For loops in which the session may go. */
/* NOLINTBEGIN(bugprone-macro-parentheses): names, not values */
#define BOX_ROLL_EACH(s, list, field)                                                                                  \
    for (struct box_session *s = LIST_FIRST(list), *s##_next = NULL; s && (s##_next = LIST_NEXT(s, roll.field), true); \
         s = s##_next)
/* NOLINTEND(bugprone-macro-parentheses) */

/* Its serial is set; its id may come later. */
void box_roll_add(struct box_roll *r, struct box_session *s);
void box_roll_set_id(struct box_roll *r, struct box_session *s, uint32_t id);
void box_roll_remove(struct box_session *s);
/* NULL: there is none. */
struct box_session *box_roll_by_id(const struct box_roll *r, uint32_t id);
struct box_session *box_roll_by_serial(const struct box_roll *r, uint32_t serial);
/* It may have something to do: a deadline, a request, an answer that waits. */
void box_roll_stir(struct box_roll *r, struct box_session *s);
/* It has not, until somebody wants something. */
void box_roll_rest(struct box_session *s);
#endif
