/* crypto_event.c - events for the driver, kept until the public call is over: then it may call back in. */
#include <stdarg.h>
#include <stdio.h>
#include "crypto_private.h"

struct event {
    enum { EVENT_KEYS, EVENT_ROOM, EVENT_ALARM, EVENT_SAS, EVENT_SEND } type;
    char *a, *b;
    enum crypto_alarm alarm;
    struct json *content;
    struct crypto_sas sas; /* strings are ours */
    struct event *next;
};

static struct event *add(struct crypto *c, struct event what)
{
    struct event *n = xcalloc(1, sizeof(*n));
    *n = what;
    if (!c->events)
        c->events_end = &c->events;
    *c->events_end = n;
    c->events_end = &n->next;
    return n;
}

void event_keys(struct crypto *c, const char *room, const char *session)
{
    add(c, (struct event){ .type = EVENT_KEYS, .a = xstrdup(room), .b = xstrdup(session) });
}

void event_room(struct crypto *c, const char *room)
{
    for (const struct event *n = c->events; n; n = n->next)
        if (n->type == EVENT_ROOM && same(n->a, room))
            return;
    add(c, (struct event){ .type = EVENT_ROOM, .a = xstrdup(room) });
}

void event_alarm(struct crypto *c, enum crypto_alarm what, const char *fmt, ...)
{
    char text[400];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    c->alarms++;
    log_warn("crypto_alarm", KV_S("text", text));
    add(c, (struct event){ .type = EVENT_ALARM, .alarm = what, .a = xstrdup(text) });
}

void event_sas(struct crypto *c, const struct crypto_sas *s)
{
    struct event *n = add(c, (struct event){ .type = EVENT_SAS });
    n->sas = (struct crypto_sas){ xstrdup_or_null(s->txn),   xstrdup_or_null(s->user),  xstrdup_or_null(s->device),
                                  xstrdup_or_null(s->room),  xstrdup_or_null(s->emoji), xstrdup_or_null(s->decimal),
                                  xstrdup_or_null(s->state), xstrdup_or_null(s->code) };
}

void event_send(struct crypto *c, const char *room, const char *type, const struct json *content)
{
    add(c, (struct event){ .type = EVENT_SEND, .a = xstrdup(room), .b = xstrdup(type), .content = json_dup(content) });
}

/* The struct borrows for everybody else; here its texts are ours. */
static void free_text(const char *s)
{
    char *ours = NULL;
    memcpy(&ours, &s, sizeof(ours));
    free(ours);
}

static void event_free(struct event *n)
{
    const struct crypto_sas *s = &n->sas;
    const char *const texts[] = { n->a,    n->b,     s->txn,     s->user,  s->device,
                                  s->room, s->emoji, s->decimal, s->state, s->code };
    for (size_t i = 0; i < countof(texts); i++)
        free_text(texts[i]);
    json_free(n->content);
    free(n);
}

static void tell(struct crypto *c, const struct event *n)
{
    const struct crypto_events *ev = &c->ev;
    void *ud = c->cfg.ud;
    switch (n->type) {
    case EVENT_KEYS:
        if (ev->keys_came)
            ev->keys_came(ud, n->a, n->b);
        break;
    case EVENT_ROOM:
        if (ev->room_ready)
            ev->room_ready(ud, n->a);
        break;
    case EVENT_ALARM:
        if (ev->alarm)
            ev->alarm(ud, n->alarm, n->a);
        break;
    case EVENT_SAS:
        if (ev->sas)
            ev->sas(ud, &n->sas);
        break;
    case EVENT_SEND:
        if (ev->room_send)
            ev->room_send(ud, n->a, n->b, n->content);
        break;
    }
}

static struct event *pop(struct crypto *c)
{
    struct event *n = c->events;
    if (n)
        c->events = n->next;
    return n;
}

void event_flush(struct crypto *c)
{
    for (struct event *n; (n = pop(c));) {
        tell(c, n);
        event_free(n);
    }
}

void event_drop(struct crypto *c)
{
    for (struct event *n; (n = pop(c));)
        event_free(n);
}
