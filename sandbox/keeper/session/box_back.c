/* box_back.c - see box_session.h: requests when a head is gone or is to be another: which copy is woken, and what is said. */
#include <stdio.h>
#include <string.h>
#include "box_copy.h"
#include "box_session.h"
#include "log.h"

/* ---- going back on purpose ---- */

static void refuse(struct box_session *s, const char *why)
{
    const struct box_answer a = {
        .request = s->request.id, .verdict = "failed", .state = "kept", .why = why, .peak_bytes = -1
    };
    box_request_clear(&s->request);
    box_answer(s, &a);
}

void box_back_begin(struct box_session *s)
{
    struct box_request *r = &s->request;
    char why[600], there[440];
    if (r->to_previous && s->at.cell == s->base) {
        refuse(s, s->thawed ? "there is no cell before this state: it came from a checkpoint"
                            : "there is no cell before this state: the interpreter is a new one");
        return;
    }
    if (r->to_previous)
        r->back_to = s->at.before;
    if (!box_copy_is_fresh(s, r->back_to) && !box_copy_find(s, r->back_to)) {
        box_copy_list(s, there, sizeof there);
        (void)snprintf(why, sizeof why,
                       "the state after cell %u is not there any more; cells that can be gone back to: %s",
                       (unsigned)r->back_to, there);
        refuse(s, why);
        return;
    }
    r->cause = BOX_CAUSE_BACK;
    struct box_copy *copy = box_copy_find(s, r->back_to);
    if (copy && box_session_can_hurry(s)) /* a folder that comes along is for between the two heads */
        box_session_hurry(s, copy);
    else
        box_session_sweep(s);
}

void box_back_pin(struct box_session *s, const struct box_msg *msg)
{
    struct err e;
    autojson struct json *v = NULL;
    const char *why = NULL;
    if ((msg->head.flags & BOX_MORE) ||
        json_parse(&v, (const char *)msg->payload, msg->head.len, BOX_FRAME_MAX, &e) < 0)
        why = "not a cell to be pinned";
    int64_t cell = json_int_or(v, "cell", -1);
    if (!why)
        why = box_copy_pin(s, cell < 0 || cell >= UINT32_MAX ? UINT32_MAX : (uint32_t)cell,
                           json_bool_or(v, "pinned", true));
    box_answer(s, &(struct box_answer){ .request = msg->head.request,
                                        .verdict = why ? "failed" : "ok",
                                        .state = "kept",
                                        .why = why,
                                        .peak_bytes = -1 });
}

struct box_copy *box_request_copy(const struct box_session *s)
{
    const struct box_request *r = &s->request;
    if (r->cause == BOX_CAUSE_RESET || r->cause == BOX_CAUSE_RESTORE)
        return NULL;
    if (r->cause == BOX_CAUSE_BACK) {
        struct box_copy *c = box_copy_find(s, r->back_to);
        if (c || box_copy_is_fresh(s, r->back_to))
            return c;
    }
    return box_copy_nearest(s);
}

/* ---- there is a head again ---- */

void box_request_woken_claim(struct box_session *s, const struct box_msg *msg)
{
    const struct box_request *r = &s->request;
    if (r->started && !s->check)
        box_send(&s->keeper->daemon, BOX_CLAIM, s->id, r->id, msg->payload, msg->head.len);
}

void box_request_settle(struct box_session *s, const char *state, const uint32_t *cell)
{
    struct box_request *r = &s->request;
    struct box_answer a = r->end;
    char why[420];
    int n = snprintf(why, sizeof why, "%s", r->said);
    if (cell && *cell == s->before_death)
        (void)snprintf(why + n, sizeof why - (size_t)n, "; variables are as before this cell");
    else if (cell)
        (void)snprintf(why + n, sizeof why - (size_t)n, "; variables are as they were after cell %u", (unsigned)*cell);
    a.state = state;
    a.cell = cell;
    a.why = *why ? why : NULL;
    box_request_clear(r);
    box_answer(s, &a);
}

/* The answer to BOX_RESET and BOX_BACK. */
static void went_back(struct box_session *s, uint32_t was)
{
    struct box_request *r = &s->request;
    const uint32_t cell = s->at.cell;
    char why[200];
    bool reset = r->cause == BOX_CAUSE_RESET, there = reset || cell == r->back_to;
    struct box_answer a = {
        .request = r->id,
        .verdict = there ? "ok" : "failed",
        .state = reset                   ? "lost"
                 : !there && cell == was ? "kept"
                                         : "rolled_back",
        .cell = reset ? NULL : &cell,
        .peak_bytes = -1,
        .took_us = box_now_us() - r->started_us,
    };
    if (!there && r->refitted) { /* variables of one state over files of another */
        box_session_give_up(s, "the branch could not be woken");
        return;
    }
    if (!there) {
        (void)snprintf(why, sizeof why, "the copy after cell %u could not be woken; variables are as after cell %u",
                       (unsigned)r->back_to, (unsigned)cell);
        a.why = why;
    }
    box_request_clear(r);
    box_answer(s, &a);
}

/* Where the session is when its head is a new interpreter. */
static void start_anew(struct box_session *s)
{
    const struct box_request *r = &s->request;
    bool back = r->started && r->cause == BOX_CAUSE_BACK && box_copy_is_fresh(s, r->back_to);
    if (!back)
        box_copies_clear(s); /* none leads here, and numbers must not mean two things */
    s->base = back ? r->back_to : s->at.cell;
    s->thawed = false;
    s->at = (struct box_place){ s->base, s->base, s->base };
}

void box_request_revived(struct box_session *s, const struct box_copy *copy)
{
    struct box_request *r = &s->request;
    const uint32_t was = s->at.cell;
    s->before_death = was;
    if (copy)
        s->at = copy->place;
    else
        start_anew(s);
    if (s->died_idle) {
        s->left = !copy ? "lost" : copy->place.cell == was && !s->left ? "kept" : "rolled_back";
        s->left_cell = s->at.cell;
        s->died_idle = false;
    }
    if (!r->judged)
        return;
    if (r->cause == BOX_CAUSE_RESET || r->cause == BOX_CAUSE_BACK)
        went_back(s, was);
    else
        box_request_settle(s, copy ? "rolled_back" : "lost", copy ? &s->at.cell : NULL);
}
