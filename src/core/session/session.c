/* session.c - the hub: who is who, what is open, when all is done. */
#include <string.h>
#include "conf.h"
#include "log.h"
#include "session_private.h"
#include "core/agent/tool_table.h"

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
    return h->request_n == 0 && !h->deliveries;
}

static void count_session(struct session_counts *c, const struct session *s)
{
    const bool runs = s->turn || s->errand;
    c->boxes += s->box != NULL;
    c->boxes_idle += s->box && !runs;
    c->running += runs;
    for (const struct request *r = s->queue; r; r = r->next)
        c->waiting++;
}

struct session_counts session_hub_counts(const struct session_hub *h)
{
    struct session_counts c = { .sessions = h->sessions.n, .undelivered = deliveries_count(h) };
    for (const struct map_item *i = h->sessions.first; i; i = i->next)
        count_session(&c, i->value);
    return c;
}

static bool has_ended(const struct session_hub *h)
{
    bool ended = h->chats != NULL;
    for (const struct hub_chat *c = h->chats; c; c = c->next)
        ended = ended && c->ended;
    return ended;
}

static void tell_settled(void *ud)
{
    struct session_hub *h = ud;
    const struct session_watch *w = h->parts.watch;
    if (!w || !session_hub_idle(h))
        return;
    if (w->settled)
        w->settled(h->parts.watch_ud);
    if (h->drained || !has_ended(h) || !session_hub_idle(h))
        return;
    h->drained = true;
    if (w->drained)
        w->drained(h->parts.watch_ud);
}

void session_hub_settle(struct session_hub *h)
{
    loop_defer_cancel(h->parts.loop, tell_settled, h);
    loop_defer(h->parts.loop, tell_settled, h);
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
    if (budget_is_blind(h->parts.conf, section))
        log_warn("model_without_price", KV_S("model", section->section));
    struct hub_model *m = xcalloc(1, sizeof(*m));
    *m = (struct hub_model){ .next = h->models, .section = section, .ops = ops, .model = model };
    h->models = m;
    return m;
}

const struct conf_model *session_model(const struct session *s)
{
    return s->model ? s->model : conf_find_model(s->hub->parts.conf, s->hub->parts.conf->model);
}

/* The turn's model becomes the next one of the list that can be opened and is not the one that failed. */
bool session_next_model(void *ud, struct agent_model *out)
{
    const struct session *s = ud;
    const struct conf *c = s->hub->parts.conf;
    struct turn *t = s->turn;
    char name[CONF_NAME_SIZE];
    while (conf_fallback(c, t->fallbacks++, name)) {
        struct err e = { 0 };
        const struct conf_model *section = conf_find_model(c, name);
        struct hub_model *m = section && section != session_model(s) ? session_hub_model(s->hub, section, &e) : NULL;
        if (e.kind != ERR_NONE)
            log_warn("fallback_not_opened", KV_S("model", name), KV_E(&e));
        if (!m)
            continue;
        t->model = m;
        if (out)
            *out = (struct agent_model){ m->ops, m->model, m->section, &m->scale };
        return true;
    }
    return false;
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
    session_retention_begin(h);
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
    loop_cancel(h->parts.loop, h->retention);
    unkept_free(h);
    sessions_free(h);
    map_clear(&h->askers, NULL);
    models_free(h);
    deliveries_free(h);
    while (h->chats) {
        struct hub_chat *c = h->chats;
        h->chats = c->next;
        free(c);
    }
    loop_defer_cancel(h->parts.loop, tell_settled, h);
    tool_set_free(h->tools);
    session_hub_rest_end(h);
    prompts_free(h->prompts);
    free(h);
}
