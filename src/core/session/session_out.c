/* session_out.c - what is said: answers from the outbox until the platform has them, notices once.
 *
 * An answer's key is made from the question's id, so that posting it again after a crash shows nothing twice. */
#include <string.h>
#include "json.h"
#include "log.h"
#include "metric.h"
#include "session_private.h"

enum {
    TRIES_MAX = 300, /* of one answer in this life, about a day; it stays in the outbox for the next */
    BACK_OFF_MS = 1000,
    BACK_OFF_DOUBLINGS = 9,
    BACK_OFF_MAX_MS = 300000,
};

struct delivery {
    struct delivery *next;
    struct hub_chat *chat;
    struct outbox_item item;
    struct artifacts figures, files;
    loop_timer timer;
};

char *session_txn(const struct session *s, const char *event_id, const char *what)
{
    return xasprintf("%s:%s:%s", s->row.platform, event_id, what);
}

struct outbox_item session_item(const struct session *s, const char *event_id, const char *what, const char *reply_to)
{
    return (struct outbox_item){
        .platform = xstrdup(s->row.platform),
        .txn = session_txn(s, event_id, what),
        .session = xstrdup(s->row.id),
        .room = xstrdup(s->row.room),
        .thread = xstrdup_or_null(s->row.thread),
        .reply_to = xstrdup(reply_to),
    };
}

/* ---- answers ---- */

static void delivery_free(struct delivery *d)
{
    loop_cancel(d->chat->hub->parts.loop, d->timer);
    outbox_item_clear(&d->item);
    artifacts_clear(&d->figures);
    artifacts_clear(&d->files);
    free(d);
}

static void delivery_over(struct delivery *d)
{
    struct session_hub *h = d->chat->hub;
    struct delivery **at = &h->deliveries;
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    delivery_free(d);
    session_hub_settle(h);
}

void deliveries_free(struct session_hub *h)
{
    while (h->deliveries) {
        struct delivery *d = h->deliveries;
        h->deliveries = d->next;
        delivery_free(d);
    }
}

size_t deliveries_count(const struct session_hub *h)
{
    size_t n = 0;
    for (const struct delivery *d = h->deliveries; d; d = d->next)
        n++;
    return n;
}

bool delivery_is_kept(struct session_hub *h, const char *txn, int64_t id)
{
    for (struct delivery *d = h->deliveries; d; d = d->next) {
        if (strcmp(d->item.txn, txn) != 0)
            continue;
        d->item.id = id;
        return true;
    }
    return false;
}

void session_drop_deliveries(const struct session *s)
{
    for (struct delivery *d = s->hub->deliveries, *next; d; d = next) {
        next = d->next;
        if (d->timer && d->item.session && strcmp(d->item.session, s->row.id) == 0)
            delivery_over(d);
    }
}

static void mark_sent(struct delivery *d)
{
    struct err e = { 0 };
    if (d->item.id && store_outbox_sent(d->chat->hub->parts.store, d->item.id, &e) < 0)
        log_error("outbox_not_marked", KV_S("txn", d->item.txn),
                  KV_E(&e)); /* its key keeps it from being shown twice */
}

static void attempt(void *ud);

static int64_t back_off_ms(const struct delivery *d, const struct err *e)
{
    const int n = d->item.tries <= BACK_OFF_DOUBLINGS ? d->item.tries - 1 : BACK_OFF_DOUBLINGS;
    const int64_t wait_ms = e->retry_ms > 0 ? e->retry_ms : (int64_t)BACK_OFF_MS << n;
    return wait_ms < BACK_OFF_MAX_MS ? wait_ms : BACK_OFF_MAX_MS;
}

static void failed(struct delivery *d, const struct err *e)
{
    d->item.tries++;
    metric_count(METRIC_POSTS_FAILED, d->chat->ops->name, 1);
    log_warn("answer_not_posted", KV_S("txn", d->item.txn), KV_I("try", d->item.tries), KV_E(e));
    if (!err_retryable(e)) {
        mark_sent(d); /* the platform will never take it */
        delivery_over(d);
    } else if (d->item.tries >= TRIES_MAX) {
        delivery_over(d);
    } else {
        d->timer = loop_after(d->chat->hub->parts.loop, back_off_ms(d, e), attempt, d);
    }
}

static void on_posted(void *ud, const struct err *e)
{
    struct delivery *d = ud;
    if (e) {
        failed(d, e);
        return;
    }
    mark_sent(d);
    delivery_over(d);
}

static void attempt(void *ud)
{
    struct delivery *d = ud;
    struct err e = { 0 };
    const struct chat_post p = {
        .type = d->item.amends ? CHAT_AMEND : CHAT_ANSWER,
        .amends = d->item.amends,
        .txn = d->item.txn,
        .room = d->item.room,
        .thread = d->item.thread,
        .reply_to = d->item.reply_to,
        .markdown = d->item.markdown,
        .receipt = d->item.receipt,
        .figures = d->figures.at,
        .figure_n = d->figures.n,
        .files = d->files.at,
        .file_n = d->files.n,
    };
    d->timer = 0;
    if (d->chat->ops->post(d->chat->chat, &p, on_posted, d, &e) < 0)
        failed(d, &e);
}

void session_deliver(struct hub_chat *c, struct outbox_item *take_item)
{
    struct delivery *d = xcalloc(1, sizeof(*d));
    d->next = c->hub->deliveries;
    c->hub->deliveries = d;
    d->chat = c;
    d->item = *take_item;
    *take_item = (struct outbox_item){ 0 };
    artifacts_from_json(&d->figures, d->item.figures);
    artifacts_from_json(&d->files, d->item.files);
    attempt(d);
}

int outbox_resume(struct session_hub *h, struct err *e)
{
    struct outbox_item *items = NULL;
    size_t n = 0;
    if (store_outbox_open(h->parts.store, &items, &n, e) < 0)
        return err_wrap(e, "outbox");
    for (size_t i = 0; i < n; i++) {
        for (struct hub_chat *c = h->chats; c && items[i].txn; c = c->next)
            if (strcmp(c->ops->name, items[i].platform) == 0)
                session_deliver(c, &items[i]);
        outbox_item_clear(&items[i]);
    }
    free(items);
    return 0;
}

/* ---- notices ---- */

static void on_notice(void *ud, const struct err *e)
{
    (void)ud;
    if (e)
        log_warn("notice_not_posted", KV_E(e));
}

static void tell_watch(const struct session *s, const char *markdown, bool failed)
{
    const struct session_watch *w = s->hub->parts.watch;
    if (w && w->notice)
        w->notice(s->hub->parts.watch_ud, markdown, failed);
}

static bool is_failure(enum word w)
{
    return w == WORD_TRY_AGAIN || w == WORD_MODEL_SETUP || w == WORD_MODEL_DOWN || w == WORD_INTERNAL ||
           w == WORD_FILE_STORE || w == WORD_FILE_FAILED;
}

static void post_notice(struct session *s, struct request *r, char *take_markdown, bool failed)
{
    struct err e = { 0 };
    autofree char *text = take_markdown;
    autofree char *what = ++r->notices > 1 ? xasprintf("notice%d", r->notices) : xstrdup("notice");
    autofree char *txn = session_txn(s, r->event_id, what);
    const struct chat_post p = {
        .type = CHAT_NOTICE,
        .txn = txn,
        .room = s->row.room,
        .thread = s->row.thread,
        .reply_to = r->reply_to,
        .markdown = text,
    };
    if (!r->overheard && s->chat->ops->post(s->chat->chat, &p, on_notice, NULL, &e) < 0)
        on_notice(NULL, &e);
    tell_watch(s, text, failed);
}

void session_notice(struct session *s, struct request *r, char *take_markdown)
{
    post_notice(s, r, take_markdown, false);
}

void session_notice_words(struct session *s, struct request *r, enum word w, const char *a, const char *b)
{
    post_notice(s, r, words(w, r->language, a, b), is_failure(w));
}
