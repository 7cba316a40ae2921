/* session.c - the hub: who is who, what is open, when all is done. */
#include <string.h>
#include "conf.h"
#include "log.h"
#include "session_private.h"
#include "tool_table.h"

/* ---- chats ---- */

static struct hub_chat *find_chat(struct session_hub *h, const struct chat *chat)
{
    for (struct hub_chat *c = h->chats; c; c = c->next)
        if (c->chat == chat)
            return c;
    return NULL;
}

void session_hub_attach(struct session_hub *h, const struct chat_ops *ops, struct chat *chat)
{
    struct hub_chat *c = xcalloc(1, sizeof(*c));
    *c = (struct hub_chat){ .next = h->chats, .hub = h, .ops = ops, .chat = chat };
    h->chats = c;
}

static int on_event(void *ud, struct chat *from, const struct chat_event *ev)
{
    struct hub_chat *c = find_chat(ud, from);
    return c ? session_take_event(c, ev) : -1;
}

static void on_end(void *ud, struct chat *from)
{
    struct hub_chat *c = find_chat(ud, from);
    if (!c)
        return;
    c->ended = true;
    session_hub_settle(c->hub);
}

const struct chat_events session_hub_events = { .on_event = on_event, .on_end = on_end };

/* ---- all done? ---- */

bool session_hub_idle(const struct session_hub *h)
{
    for (const struct session *s = h->sessions; s; s = s->next)
        if (s->queue || s->turn || s->errand)
            return false;
    return !h->deliveries;
}

static void tell_drained(void *ud)
{
    struct session_hub *h = ud;
    bool ended = h->chats != NULL;
    for (const struct hub_chat *c = h->chats; c; c = c->next)
        ended = ended && c->ended;
    if (!ended || h->drained || !session_hub_idle(h))
        return;
    h->drained = true;
    if (h->parts.watch && h->parts.watch->drained)
        h->parts.watch->drained(h->parts.watch_ud);
}

void session_hub_settle(struct session_hub *h)
{
    loop_defer_cancel(h->parts.loop, tell_drained, h);
    loop_defer(h->parts.loop, tell_drained, h);
}

/* ---- models ---- */

static const struct model_ops *find_dialect(const struct session_hub *h, const char *dialect)
{
    for (const struct model_ops *const *ops = h->parts.models; *ops; ops++)
        if (strcmp((*ops)->name, dialect) == 0)
            return *ops;
    return NULL;
}

struct hub_model *session_hub_model(struct session_hub *h, const struct conf_model *section, struct err *e)
{
    for (struct hub_model *m = h->models; m; m = m->next)
        if (m->section == section)
            return m;
    const struct model_ops *ops = find_dialect(h, section->dialect);
    struct model *model = NULL;
    if (!ops) {
        (void)err_set(e, ERR_CONFIG, "[model %.60s]: dialect %.40s is not built in", section->section,
                      section->dialect);
        return NULL;
    }
    if (ops->open(&model, h->parts.loop, h->parts.conf, section, e) < 0) {
        (void)err_wrap(e, "[model %.60s]", section->section);
        return NULL;
    }
    struct hub_model *m = xcalloc(1, sizeof(*m));
    *m = (struct hub_model){ .next = h->models, .section = section, .ops = ops, .model = model };
    h->models = m;
    return m;
}

const struct conf_model *session_model(const struct session *s)
{
    return s->model ? s->model : conf_find_model(s->hub->parts.conf, s->hub->parts.conf->model);
}

/* ---- sessions ---- */

static bool is_of(const struct session *s, const struct hub_chat *c, const char *room, const char *thread)
{
    const char *own = s->row.thread ? s->row.thread : "";
    return s->chat == c && strcmp(s->row.room, room) == 0 && strcmp(own, thread ? thread : "") == 0;
}

/* A thread that the bot was part of stays one after a restart. */
static bool has_talked(struct session_hub *h, const char *id, struct err *e)
{
    struct turn_row *turns = NULL;
    size_t n = 0;
    if (store_turns(h->parts.store, id, 1, &turns, &n, e) < 0)
        log_warn("session_history_unread", KV_S("session", id), KV_E(e));
    for (size_t i = 0; i < n; i++)
        turn_row_clear(&turns[i]);
    free(turns);
    return n > 0;
}

struct session *session_get(struct hub_chat *c, const char *room, const char *thread, struct err *e)
{
    struct session_hub *h = c->hub;
    struct err unread = { 0 };
    for (struct session *s = h->sessions; s; s = s->next)
        if (is_of(s, c, room, thread))
            return s;
    struct session *s = xcalloc(1, sizeof(*s));
    bool made = false;
    if (store_session_get(h->parts.store, c->ops->name, room, thread, &s->row, &made, e) < 0) {
        session_row_clear(&s->row);
        free(s);
        return NULL;
    }
    s->hub = h;
    s->chat = c;
    s->out_fd = s->staging.fd = -1;
    s->talked = !made && has_talked(h, s->row.id, &unread);
    s->next = h->sessions;
    h->sessions = s;
    return s;
}

bool session_knows(const struct session *s, const char *event_id)
{
    for (size_t i = 0; i < RECENT_MAX; i++)
        if (s->recent[i] && strcmp(s->recent[i], event_id) == 0)
            return true;
    return false;
}

void session_remember(struct session *s, const char *event_id)
{
    char **slot = &s->recent[s->recent_n++ % RECENT_MAX];
    free(*slot);
    *slot = xstrdup(event_id);
}

static bool has_open_request(const struct session *s, const char *event_id)
{
    for (const struct request *r = s->queue; r; r = r->next)
        if (strcmp(r->event_id, event_id) == 0 || strcmp(r->reply_to, event_id) == 0)
            return true;
    const struct request *running = s->turn ? s->turn->request : s->errand;
    return running && (strcmp(running->event_id, event_id) == 0 || strcmp(running->reply_to, event_id) == 0);
}

struct session *session_with(struct hub_chat *c, const char *event_id)
{
    for (struct session *s = c->hub->sessions; s; s = s->next)
        if (s->chat == c && (has_open_request(s, event_id) || session_knows(s, event_id)))
            return s;
    return NULL;
}

static void session_free(struct session *s)
{
    turn_free(s->turn);
    request_free(s->errand);
    while (s->queue) {
        struct request *r = s->queue;
        s->queue = r->next;
        request_free(r);
    }
    for (size_t i = 0; i < RECENT_MAX; i++)
        free(s->recent[i]);
    session_defer_cancel(s);
    session_keep_forget(s);
    session_row_clear(&s->row);
    free(s);
}

/* ---- the hub ---- */

int session_hub_new(struct session_hub **out, const struct session_parts *parts, struct err *e)
{
    const struct conf_model *section = conf_find_model(parts->conf, parts->conf->model);
    if (!section)
        return err_set(e, ERR_CONFIG, "agent.model: there is no [model %.80s]", parts->conf->model);
    struct session_hub *h = xcalloc(1, sizeof(*h));
    h->parts = *parts;
    if (prompts_load(&h->prompts, parts->conf, e) < 0 || !session_hub_model(h, section, e) ||
        tool_set_new(&h->tools, parts->loop, parts->conf, prompts_tools(h->prompts), parts->tools, e) < 0) {
        session_hub_free(h);
        return -1;
    }
    *out = h;
    return 0;
}

static void models_free(struct session_hub *h)
{
    while (h->models) {
        struct hub_model *m = h->models;
        h->models = m->next;
        m->ops->close(m->model);
        free(m);
    }
}

void session_hub_free(struct session_hub *h)
{
    if (!h)
        return;
    for (struct session *s = h->sessions; s; s = s->next)
        session_close_box(s); /* first of all: no callback into what is freed below */
    loop_defer_cancel(h->parts.loop, turns_bury, h);
    turns_bury(h);
    while (h->sessions) {
        struct session *s = h->sessions;
        h->sessions = s->next;
        session_free(s);
    }
    models_free(h);
    deliveries_free(h);
    while (h->chats) {
        struct hub_chat *c = h->chats;
        h->chats = c->next;
        free(c);
    }
    loop_defer_cancel(h->parts.loop, tell_drained, h);
    tool_set_free(h->tools);
    session_hub_rest_end(h);
    prompts_free(h->prompts);
    free(h);
}
