/* session_edit.c - a new wording of a question that was answered: variables go back to before that answer, the question runs
 * again, and the old answer points to the new one. Files stay as they are. */
#include <string.h>
#include "json.h"
#include "log.h"
#include "session_private.h"

/* The earlier answer; turn 0 when there is none or the store is silent. */
static struct answered answered_before(struct session *s, const char *message)
{
    struct answered a = { .base = -1 };
    struct err e = { 0 };
    if (store_answer_to(s->hub->parts.store, s->row.platform, message, &a, &e) < 0)
        log_warn("answer_unread", KV_S("session", s->row.id), KV_E(&e));
    return a;
}

static const struct request *open_request(const struct session *s, const char *about)
{
    if (s->turn && request_is_about(s->turn->request, about))
        return s->turn->request;
    const struct request *r = s->queue;
    while (r && !request_is_about(r, about))
        r = r->next;
    return r;
}

bool session_says_the_same(struct session *s, const char *about, const char *text)
{
    const struct request *open = open_request(s, about);
    if (open)
        return strcmp(open->text, text) == 0;
    AUTO(answered_clear) struct answered a = answered_before(s, about);
    return a.request && strcmp(a.request, text) == 0;
}

static void on_back(struct session *s, const struct json *reply, const struct err *e)
{
    (void)reply;
    if (e) /* that state is gone: the model is told that the earlier try left its variables */
        log_info("state_not_gone_back", KV_S("session", s->row.id), KV_E(e));
    s->turn->went_back(s);
}

void session_go_back(struct session *s, void (*then)(struct session *s))
{
    struct request *r = s->turn->request;
    AUTO(answered_clear) struct answered a = { .base = -1 };
    if (r->edited)
        a = answered_before(s, r->reply_to);
    if (a.txn && !r->replaces)
        r->replaces = take(a.txn);
    s->turn->went_back = then;
    if (a.base < 0 || a.base == s->base || s->fresh)
        then(s);
    else
        session_back(s, BOX_OP_BRANCH, a.base, false, on_back);
}

void session_amend(struct session *s)
{
    const struct request *r = s->turn->request;
    struct err e = { 0 };
    if (!r->replaces)
        return;
    struct outbox_item o = session_item(s, r->event_id, "amend", r->reply_to);
    o.turn = s->turn->id;
    o.markdown = words(WORD_ANSWER_OLD, r->language, NULL, NULL);
    o.amends = xstrdup(r->replaces);
    if (store_outbox_add(s->hub->parts.store, &o, &o.id, &e) < 0)
        log_error("amend_not_kept", KV_S("session", s->row.id), KV_E(&e));
    session_deliver(s->chat, &o);
    outbox_item_clear(&o);
}
