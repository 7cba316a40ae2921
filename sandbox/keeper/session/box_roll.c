/* box_roll.c - see box_roll.h. */
#include "box_roll.h"
#include "box_session.h"

void box_roll_add(struct box_roll *r, struct box_session *s)
{
    LIST_INSERT_HEAD(&r->all, s, roll.all);
    LIST_INSERT_HEAD(&r->by_serial[s->serial % BOX_ROLL_BUCKETS], s, roll.by_serial);
    box_roll_set_id(r, s, s->id);
    box_roll_stir(r, s);
}

void box_roll_set_id(struct box_roll *r, struct box_session *s, uint32_t id)
{
    s->id = id;
    s->roll.has_id = id != 0;
    if (s->roll.has_id)
        LIST_INSERT_HEAD(&r->by_id[id % BOX_ROLL_BUCKETS], s, roll.by_id);
}

void box_roll_remove(struct box_session *s)
{
    LIST_REMOVE(s, roll.all);
    LIST_REMOVE(s, roll.by_serial);
    if (s->roll.has_id)
        LIST_REMOVE(s, roll.by_id);
    box_roll_rest(s);
}

struct box_session *box_roll_by_id(const struct box_roll *r, uint32_t id)
{
    struct box_session *s = LIST_FIRST(&r->by_id[id % BOX_ROLL_BUCKETS]);
    while (s && s->id != id)
        s = LIST_NEXT(s, roll.by_id);
    return s;
}

struct box_session *box_roll_by_serial(const struct box_roll *r, uint32_t serial)
{
    struct box_session *s = LIST_FIRST(&r->by_serial[serial % BOX_ROLL_BUCKETS]);
    while (s && s->serial != serial)
        s = LIST_NEXT(s, roll.by_serial);
    return s;
}

void box_roll_stir(struct box_roll *r, struct box_session *s)
{
    if (s->roll.is_busy)
        return;
    LIST_INSERT_HEAD(&r->busy, s, roll.busy);
    s->roll.is_busy = true;
}

void box_roll_rest(struct box_session *s)
{
    if (s->roll.is_busy)
        LIST_REMOVE(s, roll.busy);
    s->roll.is_busy = false;
}
