/* send.c - a job's next message: encrypted, put, and what the server says to it. */
#include <string.h>
#include "ids.h"
#include "log.h"
#include "outbox.h"

enum { KEYS_MS = 30000 /* at the latest it is looked again whether a room's keys are there */ };

/* ---- requests ---- */

void outbox_put(struct chat *c, const struct put *p, api_fn *fn, void *ud)
{
    autofree char *in = mx_escape(p->room), *key = mx_escape(p->txn);
    autofree char *what = mx_escape(p->content ? p->type : p->redacts);
    autofree char *path =
        xasprintf("/_matrix/client/v3/rooms/%s/%s/%s/%s", in, p->content ? "send" : "redact", what, key);
    c->outbox->in_flight++;
    api_start(c->api, &(struct api_request){ .method = "PUT", .path = path, .body = p->content, .lane = API_LANE_SEND },
              fn, ud);
}

/* ---- messages ---- */

/* What the server refuses is encrypted anew in its next form, under another key of its own. */
static void unseal(const struct job *job)
{
    struct err e = { 0 };
    if (sent_unseal(job, &e) < 0)
        log_warn("matrix_sealed_not_forgotten", KV_S("txn", job->txn), KV_E(&e));
    json_free(take(job->messages[job->at].sealed));
}

static bool halve(struct job *job)
{
    unseal(job);
    return job_halve(job);
}

static void leave_alone(const struct job *job, struct message *m)
{
    unseal(job);
    m->bare = true;
    json_set(m->content, "m.relates_to", json_new_object());
}

/* The server refuses; is there another way to say it? */
static bool another_way(struct job *job, const struct api_answer *a)
{
    struct message *m = &job->messages[job->at];
    if (a->status == 400 && m->content && !m->target && !m->bare && json_get(m->content, "m.relates_to") &&
        strcmp(a->errcode, "M_UNKNOWN") == 0) { /* that thread can't be, or is gone */
        leave_alone(job, m);
        return true;
    }
    if (a->status == 413 && m->content && halve(job)) {
        log_warn("matrix_halved", KV_S("room", job->room->id), KV_S("txn", job->txn), KV_I("bytes", m->limit));
        return true;
    }
    if (a->status == 413 && m->content && !m->target && !m->bare) {
        unseal(job);
        autofree char *words =
            xasprintf("A part of this answer (%s) is larger than this server takes.", m->name ? m->name : "its text");
        m->bare = true;
        job_replace_with_words(job, words);
        return true;
    }
    return false;
}

static void on_sent(void *ud, const struct api_answer *a)
{
    struct job *job = ud;
    struct outbox *o = job->c->outbox;
    struct err e = a->err;
    const char *event = json_str_or(a->body, "event_id", NULL);
    o->in_flight--;
    job->busy = false;
    if (e.kind == ERR_NONE && !mx_is_event(event))
        (void)err_set(&e, ERR_DATA, "the server sent a message without an id");
    if (e.kind == ERR_NONE) {
        job->tries = 0;
        outbox_sent_one(o);
        if (sent_message(job, &job->messages[job->at], event, &e) < 0)
            log_error("matrix_sent_not_kept", KV_S("txn", job->txn),
                      KV_E(&e)); /* its key keeps it from being shown twice */
        matrix_outbox_pump(job->c);
    } else if (e.kind == ERR_LIMIT) {
        outbox_limited(o, a);
        matrix_outbox_pump(job->c);
    } else if (err_retryable(&e)) {
        outbox_job_again(job, &e);
    } else if (another_way(job, a)) {
        matrix_outbox_pump(job->c);
    } else {
        log_warn("matrix_send_refused", KV_S("room", job->room->id), KV_S("txn", job->txn), KV_E(&e));
        outbox_job_over(job, &e);
    }
}

/* ---- the next one ---- */

static bool is_reaction(const struct message *m)
{
    return m->type && strcmp(m->type, "m.reaction") == 0;
}

static void put_message(struct job *job, struct message *m)
{
    struct err e = { 0 };
    autofree char *txn = sent_txn(job);
    const bool sealed = job->room->encrypted && m->content && !is_reaction(m); /* those are always in the clear */
    const int rc = sealed ? sent_seal(m, job, txn, &e) : 1;
    if (rc == 1) {
        const struct put p = { .room = job->room->id,
                               .type = sealed    ? "m.room.encrypted"
                                       : m->type ? m->type
                                                 : "m.room.message",
                               .txn = txn,
                               .content = sealed ? m->sealed : m->content,
                               .redacts = m->target };
        outbox_put(job->c, &p, on_sent, job);
        return;
    }
    job->busy = false;
    job->not_before_ms = loop_now_ms(job->c->loop) + (rc == 0 ? KEYS_MS : api_backoff_ms(1));
    if (rc < 0 && e.kind != ERR_STORE)
        outbox_job_over(job, &e);
}

/* The next message of a job that is not busy. */
void outbox_step(struct job *job)
{
    job->busy = true;
    if (!upload_step(job))
        put_message(job, &job->messages[job->at]);
}
