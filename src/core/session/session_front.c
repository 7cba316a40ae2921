/* session_front.c - the box as an agent sees it: when an interpreter died and left no copy, variables are put back from the
 * store before the agent hears of it, so that the rest of the turn goes on with them. All else is passed through. */
#include <string.h>
#include "json.h"
#include "log.h"
#include "session_private.h"
#include "state.h"

struct box {
    struct session *s;
    struct box_events ev;
    void *ud;
    struct cell held; /* the one that died, while variables are put back */
};

static void add_note(struct cell *c, const char *text)
{
    size_t cap = c->note_n;
    c->notes = xgrow(c->notes, &cap, c->note_n + 1, sizeof(*c->notes));
    c->notes[c->note_n++] = xstrdup(text);
}

static void tell_agent(struct box *b)
{
    struct cell c = b->held;
    b->held = (struct cell){ 0 };
    const struct box_reply reply = { .cell = &c };
    b->ev.done(b->ud, &reply, NULL);
    cell_clear(&c);
}

static void on_loaded(void *ud, const struct json *report, const struct err *e)
{
    struct box *b = ud;
    struct session *s = b->s;
    session_put_back(s, report, e);
    if (report) {
        autofree char *missing = session_thawed_words(s, "en");
        b->held.state = CELL_ROLLED_BACK;
        add_note(&b->held, "variables were put back from disk");
        if (missing)
            add_note(&b->held, missing);
    }
    tell_agent(b);
}

static void on_done(void *ud, const struct box_reply *r, const struct err *e)
{
    struct box *b = ud;
    if (!r || !r->cell || r->cell->state != CELL_LOST || session_cell_lives(r->cell) || b->s->row.base == 0) {
        b->ev.done(b->ud, r, e);
        return;
    }
    b->held = *r->cell;
    *r->cell = (struct cell){ 0 };
    b->s->thaw_wanted = true;
    session_put_back_begin(b->s, on_loaded, b);
}

static void on_output(void *ud, int stream, const char *text, size_t n)
{
    struct box *b = ud;
    if (b->ev.output)
        b->ev.output(b->ud, stream, text, n);
}

static int front_ask(struct box *b, const struct box_request *r, const struct box_events *ev, void *ud, struct err *e)
{
    static const struct box_events events = { .output = on_output, .done = on_done };
    b->ev = *ev;
    b->ud = ud;
    return b->s->hub->parts.sandbox_ops->ask(b->s->box, r, &events, b, e);
}

static void front_cancel(struct box *b)
{
    if (b->s->job)
        state_cancel(b->s->job);
    else
        b->s->hub->parts.sandbox_ops->cancel(b->s->box);
}

static bool front_lost(const struct box *b)
{
    return b->s->hub->parts.sandbox_ops->lost(b->s->box);
}

const struct sandbox_ops session_front_ops = {
    .name = "front", .ask = front_ask, .cancel = front_cancel, .lost = front_lost
};

struct box *session_front(struct session *s)
{
    if (!s->front) {
        s->front = xcalloc(1, sizeof(*s->front));
        s->front->s = s;
    }
    return s->front;
}

void session_front_forget(struct session *s)
{
    if (s->front)
        cell_clear(&s->front->held);
    free(take(s->front));
}
