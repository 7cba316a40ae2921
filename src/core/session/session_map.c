/* session_map.c - which conversations are in memory: found by their place, let go when nobody uses them.
 *
 * What a session is lies in the store; here is what goes on in it. Where nothing goes on, and no box has its variables, it may leave
 * at any time. Whose question a message is, is asked of the store, so that it is known after that, too, and after a restart. */
#include <string.h>
#include "conf.h"
#include "log.h"
#include "session_private.h"

enum {
    SWEEP_MS = 10000,
    UNUSED_MS = 600000, /* longer than a pause (session_in.c) */
    MEMORY_MAX = 2000,  /* beyond so many, those that may leave do at once */
};

/* The room's length keeps "a" + "bc" and "ab" + "c" apart. Caller frees. */
static char *key_of(const struct hub_chat *c, const char *room, const char *thread)
{
    return xasprintf("%s %zu %s%s", c->ops->name, strlen(room), room, thread ? thread : "");
}

/* ---- leaving ---- */

static void session_free(struct session *s)
{
    turn_free(s->turn);
    request_free(s->errand);
    while (s->queue) {
        struct request *r = s->queue;
        s->queue = r->next;
        request_free(r);
    }
    session_defer_cancel(s);
    session_keep_forget(s);
    session_row_clear(&s->row);
    free(s->key);
    free(s);
}

static bool is_needed(const struct session *s)
{
    return s->request_n > 0 || s->turn || s->errand || s->box || s->job || s->thawed ||
           loop_now_ms(s->hub->parts.loop) < s->paused_until_ms;
}

static void let_go(struct session *s)
{
    session_close_box(s);
    (void)map_take(&s->hub->sessions, s->key);
    session_free(s);
}

static void arm_sweep(struct session_hub *h);

static void sweep(void *hub)
{
    struct session_hub *h = hub;
    const int64_t now = loop_now_ms(h->parts.loop);
    size_t over = h->sessions.n > MEMORY_MAX ? h->sessions.n - MEMORY_MAX : 0;
    h->sweep = 0;
    for (struct map_item *i = h->sessions.first, *next; i; i = next) {
        struct session *s = i->value;
        next = i->next;
        if (over == 0 && now - s->used_ms < UNUSED_MS)
            break;
        if (is_needed(s))
            continue;
        over -= over > 0;
        let_go(s);
    }
    arm_sweep(h);
}

static void arm_sweep(struct session_hub *h)
{
    if (!h->sweep && h->sessions.n)
        h->sweep = loop_after(h->parts.loop, SWEEP_MS, sweep, h);
}

void sessions_free(struct session_hub *h)
{
    loop_cancel(h->parts.loop, h->sweep);
    for (struct map_item *i = h->sessions.first; i; i = i->next)
        session_close_box(i->value); /* first of all: no callback into what is freed below */
    loop_defer_cancel(h->parts.loop, turns_bury, h);
    turns_bury(h);
    while (h->sessions.first)
        session_free(map_take(&h->sessions, h->sessions.first->key));
    map_clear(&h->sessions, NULL);
}

/* Through all of them: there are few enough, and it is asked seldom. */
struct session *session_find(struct session_hub *h, const char *id)
{
    for (const struct map_item *i = h->sessions.first; i; i = i->next) {
        struct session *s = i->value;
        if (strcmp(s->row.id, id) == 0)
            return s;
    }
    return NULL;
}

bool sessions_hold(struct session_hub *h, const char *id)
{
    struct session *s = session_find(h, id);
    if (s && !is_needed(s)) {
        let_go(s);
        return false;
    }
    return s != NULL;
}

/* ---- coming ---- */

/* A thread that the bot was part of stays one after a restart. */
static bool has_talked(struct session_hub *h, const char *id)
{
    struct turn_row *turns = NULL;
    struct err e = { 0 };
    size_t n = 0;
    if (store_turns(h->parts.store, id, 1, &turns, &n, &e) < 0)
        log_warn("session_history_unread", KV_S("session", id), KV_E(&e));
    for (size_t i = 0; i < n; i++)
        turn_row_clear(&turns[i]);
    free(turns);
    return n > 0;
}

static void enter(struct session *s)
{
    s->used_ms = loop_now_ms(s->hub->parts.loop);
    map_put(&s->hub->sessions, s->key, s);
    arm_sweep(s->hub);
}

static struct session *load(struct hub_chat *c, const char *room, const char *thread, struct err *e)
{
    struct session *s = xcalloc(1, sizeof(*s));
    bool made = false;
    if (store_session_get(c->hub->parts.store, c->ops->name, room, thread, &s->row, &made, e) < 0) {
        session_row_clear(&s->row);
        free(s);
        return NULL;
    }
    s->hub = c->hub;
    s->chat = c;
    s->out_fd = s->staging.fd = -1;
    s->talked = !made && has_talked(c->hub, s->row.id);
    s->model = s->row.model ? conf_find_model(c->hub->parts.conf, s->row.model) : NULL;
    return s;
}

struct session *session_get(struct hub_chat *c, const char *room, const char *thread, struct err *e)
{
    autofree char *key = key_of(c, room, thread);
    struct session *s = map_take(&c->hub->sessions, key);
    if (!s) {
        s = load(c, room, thread, e);
        if (!s)
            return NULL;
        s->key = take(key);
    }
    enter(s);
    return s;
}

struct session *session_with(struct hub_chat *c, const char *event_id)
{
    struct session_row row;
    struct err e = { 0 };
    struct session *s = NULL;
    int rc = store_session_asked(c->hub->parts.store, c->ops->name, event_id, &row, &e);
    if (rc == 0 && row.platform) {
        s = session_get(c, row.room, row.thread, &e);
        rc = s ? 0 : -1;
    }
    if (rc < 0)
        log_error("session_not_found", KV_S("event", event_id), KV_E(&e));
    session_row_clear(&row);
    return s;
}

/* A conversation that has begun in the new room already stays, and so does the old one. */
int session_move(struct hub_chat *c, const char *from, const char *to)
{
    autofree char *key = key_of(c, from, NULL);
    struct err e = { 0 };
    bool moved = false;
    if (store_session_move(c->hub->parts.store, c->ops->name, from, to, &moved, &e) < 0) {
        log_error("session_not_moved", KV_S("room", from), KV_E(&e));
        return -1;
    }
    struct session *s = moved ? map_take(&c->hub->sessions, key) : NULL;
    if (!s)
        return 0;
    free(s->key);
    free(s->row.room);
    s->key = key_of(c, to, NULL);
    s->row.room = xstrdup(to);
    enter(s);
    return 0;
}
