/* session_queue.c - requests: made, in line, dropped. Each session has a line of its own; who has how many in all of them is counted. */
#include <string.h>
#include "core/agent/call_args.h"
#include "log.h"
#include "session_private.h"

/* ---- who has what waiting ---- */

struct asker {
    char *id;
    int64_t n; /* requests that wait or run, anywhere */
};

void request_counts(struct request *r)
{
    struct map *askers = &r->session->hub->askers;
    if (r->asker)
        return;
    r->asker = map_get(askers, r->sender);
    if (!r->asker) {
        r->asker = xcalloc(1, sizeof(*r->asker));
        r->asker->id = xstrdup(r->sender);
        map_put(askers, r->asker->id, r->asker);
    }
    r->asker->n++;
}

static void asker_leaves(struct request *r)
{
    if (!r->asker || --r->asker->n > 0)
        return;
    (void)map_take(&r->session->hub->askers, r->sender);
    free(r->asker->id);
    free(r->asker);
}

int64_t requests_of(const struct session_hub *h, const char *person)
{
    const struct asker *a = map_get(&h->askers, person);
    return a ? a->n : 0;
}

/* ---- requests ---- */

struct request *request_new(struct session *s, int64_t seq, const char *event_id, const char *sender, const char *name,
                            const char *text)
{
    struct request *r = xcalloc(1, sizeof(*r));
    *r = (struct request){
        .session = s,
        .seq = seq,
        .event_id = xstrdup(event_id),
        .reply_to = xstrdup(event_id),
        .sender = xstrdup(sender),
        .name = xstrdup(name && *name ? name : sender),
        .text = xstrdup(text),
        .language = words_language(text),
        .code = call_fenced_code(text),
        .came_ms = loop_now_ms(s->hub->parts.loop),
    };
    s->request_n++;
    s->hub->request_n++;
    return r;
}

void request_free(struct request *r)
{
    if (!r)
        return;
    loop_cancel(r->session->hub->parts.loop, r->status.timer);
    asker_leaves(r);
    r->session->request_n--;
    r->session->hub->request_n--;
    free(r->status.text);
    str_clear(&r->status.draft);
    free(r->event_id);
    free(r->reply_to);
    free(r->sender);
    free(r->name);
    free(r->text);
    free(r->code);
    free(r->replaces);
    free(r);
}

bool request_is_about(const struct request *r, const char *event_id)
{
    return strcmp(r->event_id, event_id) == 0 || strcmp(r->reply_to, event_id) == 0;
}

void request_rewords(struct request *r, const char *event_id)
{
    free(r->reply_to);
    r->reply_to = xstrdup(event_id);
    r->edited = true;
}

void session_set_inbox(struct session *s, int64_t seq, enum inbox_state state)
{
    struct err e = { 0 };
    if (store_inbox_set(s->hub->parts.store, seq, state, &e) < 0)
        log_error("inbox_not_set", KV_S("session", s->row.id), KV_I("seq", seq), KV_E(&e));
}

void session_wake(struct session *s)
{
    loop_defer_cancel(s->hub->parts.loop, session_pump, s);
    loop_defer(s->hub->parts.loop, session_pump, s);
    status_queue(s);
}

static size_t waiting_of(const struct session *s, const char *sender, const struct request *before)
{
    size_t n = 0;
    for (const struct request *r = s->queue; r && r != before; r = r->next)
        n += strcmp(r->sender, sender) == 0;
    return n;
}

/* Everybody's first waits before anybody's second: whoever asks ten things at once keeps the others waiting for one of them. */
void request_enqueue(struct request *r)
{
    struct session *s = r->session;
    const size_t mine = waiting_of(s, r->sender, NULL);
    struct request **at = &s->queue;
    while (*at && waiting_of(s, (*at)->sender, *at) <= mine)
        at = &(*at)->next;
    r->next = *at;
    *at = r;
    request_counts(r);
    session_set_inbox(r->session, r->seq, INBOX_QUEUED);
    session_wake(r->session);
}

/* ---- second thoughts ---- */

struct request **request_queued(struct session *s, const char *event_id)
{
    struct request **at = &s->queue;
    while (*at && !request_is_about(*at, event_id))
        at = &(*at)->next;
    return at;
}

void request_drop(struct session *s, struct request **at)
{
    struct request *r = *at;
    *at = r->next;
    status_end(r);
    session_set_inbox(s, r->seq, INBOX_DROPPED);
    request_free(r);
}

size_t session_drop_requests(struct session *s, const char *sender)
{
    size_t n = 0;
    for (struct request **at = &s->queue; *at;) {
        if (sender && strcmp((*at)->sender, sender) != 0) {
            at = &(*at)->next;
            continue;
        }
        request_drop(s, at);
        n++;
    }
    if (n)
        session_wake(s);
    return n;
}
