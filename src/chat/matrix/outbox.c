/* outbox.c - jobs, and whose turn it is: one at a time in each room, in order, and the rooms by turns. */
#include <string.h>
#include "log.h"
#include "outbox.h"

/* ---- the life of a job ---- */

static void job_free(struct job *job)
{
    for (size_t i = 0; i < job->n; i++)
        message_clear(&job->messages[i]);
    free(job->messages);
    json_free(job->sent);
    attach_free(job->attach);
    free(job->txn);
    free(job->thread);
    free(job->reply_to);
    free(job);
}

void outbox_job_over(struct job *job, const struct err *e)
{
    struct chat *c = job->c;
    struct job **at = &c->outbox->jobs;
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    matrix_done_fn *done = job->done;
    void *ud = job->ud;
    job_free(job);
    matrix_outbox_pump(c);
    if (done)
        done(ud, e);
}

void outbox_job_again(struct job *job, const struct err *e)
{
    const int64_t backoff = api_backoff_ms(++job->tries);
    log_warn("matrix_send_waits", KV_S("txn", job->txn), KV_I("try", job->tries), KV_E(e));
    job->busy = false;
    job->not_before_ms = loop_now_ms(job->c->loop) + (e->retry_ms > backoff ? e->retry_ms : backoff);
    matrix_outbox_pump(job->c);
}

/* ---- the pump ---- */

static void refuse_all(struct outbox *o)
{
    struct err e = { 0 };
    (void)err_set(&e, ERR_NET, "not connected"); /* stays in the store for a better day */
    for (struct job *job = o->jobs, *next; job; job = next) {
        next = job->next;
        if (!job->busy) {
            outbox_job_over(job, &e);
            next = o->jobs;
        }
    }
}

static const char *cannot_send(const struct job *job)
{
    if (job->room->gone)
        return "the room was replaced";
    if (job->failed || !job->room->joined)
        return "we are not in the room";
    return matrix_room_mute(job->room) && !job->messages[job->at].type && job->messages[job->at].content
               ? "its moderators let us write nothing there"
               : NULL;
}

/* Nothing of it is left to be sent, or nothing can be. */
static bool is_over(struct job *job)
{
    struct err e = { 0 };
    const char *problem = job->at < job->n ? cannot_send(job) : NULL;
    if (job->at < job->n && !problem)
        return false;
    if (problem)
        (void)err_set(&e, ERR_REFUSED, "%s", problem);
    outbox_job_over(job, problem ? &e : NULL);
    return true;
}

/* The first of its room in the line, which is gone along from its beginning. */
static bool is_first_of_room(const struct job *job)
{
    const bool first = !job->room->in_line;
    job->room->in_line = true;
    return first;
}

/* One thing: true when something happened that may have changed the list. A room where much is to be said holds up no other: of those that
 * may go on, the one goes that was silent for longest. */
static bool pump_one(struct outbox *o, int64_t now, int64_t *wait_ms)
{
    struct job *next = NULL;
    int64_t wait = 0;
    for (struct room *r = o->c->rooms; r; r = r->next)
        r->in_line = false;
    for (struct job *job = o->jobs; job; job = job->next) {
        if (!is_first_of_room(job) || job->busy)
            continue;
        if (is_over(job))
            return true;
        wait = job->not_before_ms - now;
        if (wait > 0)
            *wait_ms = wait < *wait_ms ? wait : *wait_ms;
        else if (!next || job->room->said < next->room->said)
            next = job;
    }
    if (!next)
        return false;
    if (outbox_open(o, &wait)) {
        next->room->said = ++o->said;
        outbox_step(next);
        return true;
    }
    if (wait > 0 && wait < *wait_ms)
        *wait_ms = wait;
    return false;
}

static void on_timer(void *ud)
{
    struct chat *c = ud;
    c->outbox->timer = 0;
    matrix_outbox_pump(c);
}

static void pump(void *ud)
{
    struct chat *c = ud;
    struct outbox *o = c->outbox;
    int64_t wait_ms = INT64_MAX;
    if (c->dead)
        refuse_all(o);
    if (!c->login.up)
        return;
    while (pump_one(o, loop_now_ms(c->loop), &wait_ms))
        wait_ms = INT64_MAX;
    status_pump(c);
    loop_cancel(c->loop, o->timer);
    o->timer = wait_ms == INT64_MAX ? 0 : loop_after(c->loop, wait_ms, on_timer, c);
}

void matrix_outbox_pump(struct chat *c)
{
    loop_defer_cancel(c->loop, pump, c);
    loop_defer(c->loop, pump, c);
}

/* ---- posts ---- */

static struct job *job_new(struct chat *c, const struct chat_post *p)
{
    struct job *job = xcalloc(1, sizeof(*job)), **end = &c->outbox->jobs;
    *job = (struct job){
        .c = c,
        .room = matrix_room(c, p->room),
        .type = p->type,
        .txn = xstrdup(p->txn),
        .thread = xstrdup_or_null(p->thread),
        .reply_to = xstrdup_or_null(p->reply_to),
        .durable = p->type == CHAT_ANSWER || p->type == CHAT_AMEND,
    };
    matrix_e2ee_recall(job->room);
    while (*end)
        end = &(*end)->next;
    *end = job;
    return job;
}

static int give_up(struct job *job)
{
    struct job **at = &job->c->outbox->jobs;
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    job_free(job);
    return -1;
}

int matrix_post(struct chat *c, const struct chat_post *p, matrix_done_fn *done, void *ud, struct err *e)
{
    if (c->dead)
        return err_set(e, ERR_NET, "not connected");
    if (p->type == CHAT_STATUS) {
        status_post(c, p);
        if (done)
            done(ud, NULL);
        return 0;
    }
    struct job *job = job_new(c, p);
    if (sent_load(job, e) < 0 || job_fill(job, p, OUT_TEXT_MAX, e) < 0)
        return give_up(job);
    job_pass_pieces(job);
    job->done = done;
    job->ud = ud;
    if (c->login.up && p->type != CHAT_AMEND)
        matrix_typing(c, p->room, false);
    matrix_outbox_pump(c);
    return 0;
}

void matrix_send_event(struct chat *c, const char *room, const char *type, const struct json *content, const char *txn)
{
    struct job *job = job_new(c, &(struct chat_post){ .type = CHAT_NOTICE, .txn = txn, .room = room });
    struct err ignored = { 0 };
    job->messages = xcalloc(1, sizeof(*job->messages));
    job->n = 1;
    job->messages[0] = (struct message){ .type = xstrdup(type), .content = json_dup(content) };
    if (sent_load(job, &ignored) < 0) /* not durable: nothing is read */
        log_warn("matrix_event_not_sent", KV_E(&ignored));
    matrix_outbox_pump(c);
}

void matrix_outbox_wake(struct chat *c, const char *room)
{
    for (struct job *job = c->outbox->jobs; job; job = job->next)
        if (!job->busy && strcmp(job->room->id, room) == 0)
            job->not_before_ms = 0;
    matrix_outbox_pump(c);
}

void matrix_outbox_drop_room(struct chat *c, const char *room)
{
    for (struct job *job = c->outbox->jobs; job; job = job->next)
        job->failed = job->failed || strcmp(job->room->id, room) == 0;
    status_drop_room(c, room);
    matrix_outbox_pump(c);
}

/* ---- life ---- */

void matrix_outbox_open(struct chat *c)
{
    c->outbox = xcalloc(1, sizeof(*c->outbox));
    *c->outbox = (struct outbox){ .c = c, .life_ms = time_unix_ms() };
    status_load(c);
}

void matrix_outbox_close(struct chat *c)
{
    loop_defer_cancel(c->loop, pump, c);
    loop_cancel(c->loop, c->outbox->timer);
    status_free_all(c);
    while (c->outbox->jobs) {
        struct job *job = c->outbox->jobs;
        c->outbox->jobs = job->next;
        job_free(job);
    }
    free(take(c->outbox));
}
