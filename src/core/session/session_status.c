/* session_status.c - the line that tells how a request is doing: true, late to appear, slow to change, gone at the end. */
#include <stdio.h>
#include <string.h>
#include "session_private.h"

enum {
    QUIET_MS = 2000,   /* nothing is posted before: most answers are faster */
    BETWEEN_MS = 1000, /* from one post to the next, at the least */
    REFRESH_MS = 5000, /* when only the seconds change */
    TELL_SECONDS = 3,  /* seconds are told from here on */
    DRAFT_MAX = 32 << 10,
};

static void on_posted(void *ud, const struct err *e)
{
    (void)ud;
    (void)e; /* the next line replaces it anyway */
}

static void post(struct request *r, const char *text)
{
    struct session *s = r->session;
    struct err ignored = { 0 };
    autofree char *txn = session_txn(s, r->event_id, "status");
    const struct chat_post p = {
        .type = CHAT_STATUS,
        .txn = txn,
        .room = s->row.room,
        .thread = s->row.thread,
        .reply_to = r->reply_to,
        .markdown = text,
        .draft = *text && r->status.draft.len ? str_peek(&r->status.draft) : NULL,
    };
    if (s->chat->ops->post(s->chat->chat, &p, on_posted, NULL, &ignored) < 0)
        return;
    r->status.posted_ms = loop_now_ms(s->hub->parts.loop);
}

static void arm(struct request *r, int64_t ms);

static void on_due(void *ud)
{
    struct request *r = ud;
    const int64_t seconds = (loop_now_ms(r->session->hub->parts.loop) - r->status.since_ms) / 1000;
    char number[24];
    (void)snprintf(number, sizeof(number), "%lld", (long long)seconds);
    autofree char *line =
        seconds < TELL_SECONDS ? xstrdup(r->status.text) : words(WORD_SECONDS, r->language, r->status.text, number);
    r->status.timer = 0;
    post(r, line);
    arm(r, REFRESH_MS);
}

static void arm(struct request *r, int64_t ms)
{
    struct loop *l = r->session->hub->parts.loop;
    loop_cancel(l, r->status.timer);
    r->status.timer = loop_after(l, ms > 0 ? ms : 0, on_due, r);
}

void status_set(struct request *r, char *take_text)
{
    const int64_t now = loop_now_ms(r->session->hub->parts.loop);
    if ((r->status.text && strcmp(r->status.text, take_text) == 0) || r->session->hub->resting) {
        free(take_text);
        return;
    }
    free(r->status.text);
    r->status.text = take_text;
    r->status.since_ms = now;
    arm(r, r->status.posted_ms ? r->status.posted_ms + BETWEEN_MS - now : r->came_ms + QUIET_MS - now);
}

static bool takes_drafts(const struct hub_chat *c)
{
    return c->ops->takes_drafts && c->ops->takes_drafts(c->chat);
}

void status_said(struct request *r, const char *text, size_t n)
{
    struct status_line *l = &r->status;
    const int64_t now = loop_now_ms(r->session->hub->parts.loop);
    if (!takes_drafts(r->session->chat))
        return;
    l->draft.max = DRAFT_MAX;
    if (n == 0)
        str_clear(&l->draft);
    str_add(&l->draft, text, n); /* what is beyond is seen in the answer */
    if (n && l->text && !r->session->hub->resting)
        arm(r, l->posted_ms ? l->posted_ms + BETWEEN_MS - now : r->came_ms + QUIET_MS - now);
}

void status_end(struct request *r)
{
    str_clear(&r->status.draft);
    loop_cancel(r->session->hub->parts.loop, r->status.timer);
    r->status.timer = 0;
    if (r->status.posted_ms)
        post(r, "");
    r->status.posted_ms = 0;
    free(r->status.text);
    r->status.text = NULL;
}

void status_queue(struct session *s)
{
    int64_t place = s->turn || s->errand ? 2 : 1;
    for (struct request *r = s->queue; r; r = r->next)
        status_set(r, words_n(WORD_QUEUED, r->language, place++, 0));
}

void status_all_end(struct session *s)
{
    if (s->turn)
        status_end(s->turn->request);
    if (s->errand)
        status_end(s->errand);
    for (struct request *r = s->queue; r; r = r->next)
        status_end(r);
}
