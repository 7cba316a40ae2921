/* sent.c - what is kept of a job on its way: how far it came, what an upload gave, what was encrypted. */
#include <string.h>
#include "log.h"
#include "outbox.h"

enum { SENT_MAX = 64 << 10 };

int sent_keep(struct job *job, struct err *e)
{
    const struct kept k = { MATRIX_PLATFORM, "sent", job->txn };
    AUTO(str_clear) struct str text = STR_INIT(SENT_MAX);
    if (!job->durable)
        return 0;
    json_set_int(job->sent, "at", (int64_t)job->at);
    json_set_int(job->sent, "ms", time_unix_ms());
    json_print(&text, job->sent);
    return str_check(&text, e) < 0 ? -1 : store_keep(job->c->store, &k, str_peek(&text), text.len, e);
}

int sent_load(struct job *job, struct err *e)
{
    const struct kept k = { MATRIX_PLATFORM, "sent", job->txn };
    autofree char *text = NULL;
    size_t n = 0;
    if (job->durable && store_kept(job->c->store, &k, &text, &n, e) < 0)
        return -1;
    if (text && json_parse(&job->sent, text, n, SENT_MAX, e) < 0)
        return -1;
    if (!job->sent) {
        job->sent = json_new_object();
        json_set(job->sent, "events", json_new_array());
    }
    const int64_t at = json_int_or(job->sent, "at", 0);
    job->at = at > 0 ? (size_t)at : 0;
    return 0;
}

char *sent_txn(const struct job *job)
{
    const struct message *m = &job->messages[job->at];
    const size_t piece = json_len(json_get(job->sent, "cuts"));
    autofree char *cut = m->limit ? xasprintf(".%zu.%zu", piece, m->limit) : xstrdup("");
    return xasprintf("%s.%zu%s%s", job->txn, job->at, m->bare ? "r" : "", cut);
}

int sent_unseal(const struct job *job, struct err *e)
{
    autofree char *txn = sent_txn(job);
    const struct kept k = { MATRIX_PLATFORM, "sealed", txn };
    return job->messages[job->at].sealed ? store_unkeep(job->c->store, &k, e) : 0;
}

/* A JSON array grows only while it is built: copied with one more. */
static void note(struct job *job, const char *key, struct json *take_value)
{
    const struct json *had = json_get(job->sent, key);
    struct json *list = json_type(had) == JSON_ARRAY ? json_dup(had) : json_new_array();
    json_push(list, take_value);
    json_set(job->sent, key, list);
}

/* The next piece of the same message, or the next message. */
static void advance(struct job *job)
{
    const struct message *m = &job->messages[job->at];
    if (m->limit)
        note(job, "cuts", json_new_number((double)m->limit));
    if (job_next_piece(job))
        return;
    json_set(job->sent, "cuts", NULL);
    job->at++;
}

int sent_message(struct job *job, const struct message *m, const char *event, struct err *e)
{
    AUTO(store_batch_end) struct store_batch batch = { 0 };
    const struct place place = { .thread = job->thread, .answers = job->reply_to, .by = job->c->login.user };
    if (store_batch_begin(&batch, job->c->store, e) < 0)
        return -1;
    if (m->text && m->content && event && job->type == CHAT_ANSWER)
        note(job, "events", json_new_string(event));
    json_set(job->sent, "mxc", NULL);
    json_set(job->sent, "file", NULL);
    json_set(job->sent, "small", NULL);
    if (job->durable && sent_unseal(job, e) < 0)
        return -1;
    const bool fresh = !m->target;
    advance(job);
    if (sent_keep(job, e) < 0 || (event && fresh && matrix_place_keep(job->c, event, &place, e) < 0))
        return -1;
    if (job->thread && matrix_thread_keep(job->c, job->room->id, job->thread, e) < 0)
        return -1;
    return store_batch_commit(&batch, e);
}

/* ---- encrypted rooms ----
 *
 * A message is encrypted once: the ciphertext is durable together with the key's advance, before it is sent. Encrypting anew after a crash
 * would make two messages under one index, which receivers take for an attack. */

static int load_sealed(struct message *m, const struct job *job, const char *txn, struct err *e)
{
    const struct kept k = { MATRIX_PLATFORM, "sealed", txn };
    autofree char *text = NULL;
    size_t n = 0;
    if (!job->durable)
        return 0;
    if (store_kept(job->c->store, &k, &text, &n, e) < 0)
        return -1;
    return text ? json_parse(&m->sealed, text, n, MATRIX_EVENT_MAX, e) : 0;
}

static int make_sealed(struct message *m, const struct job *job, const char *txn, struct err *e)
{
    AUTO(store_batch_end) struct store_batch batch = { 0 };
    AUTO(str_clear) struct str text = STR_INIT(MATRIX_EVENT_MAX);
    const struct kept k = { MATRIX_PLATFORM, "sealed", txn };
    if (store_batch_begin(&batch, job->c->store, e) < 0)
        return -1;
    const int rc = matrix_e2ee_seal(job->room, m->type ? m->type : "m.room.message", m->content, &m->sealed, e);
    if (rc < 0)
        return -1;
    if (rc == 1 && job->type == CHAT_ANSWER && job->reply_to) /* whoever can not read it has to know: caught_up.c */
        json_set_str(m->sealed, MATRIX_ANSWERS, job->reply_to);
    json_print(&text, m->sealed);
    if (rc == 1 && job->durable && store_keep(job->c->store, &k, str_peek(&text), text.len, e) < 0)
        return -1;
    return store_batch_commit(&batch, e) < 0 ? -1 : rc;
}

/* 1: m->sealed is there; 0: keys are on their way; -1: never, or the store. */
int sent_seal(struct message *m, const struct job *job, const char *txn, struct err *e)
{
    if (!m->sealed && load_sealed(m, job, txn, e) < 0)
        return -1;
    if (m->sealed)
        return 1;
    const int rc = make_sealed(m, job, txn, e);
    if (rc < 0) {
        json_free(take(m->sealed));
        if (e->kind == ERR_STORE)
            matrix_e2ee_lost(job->c, false);
    }
    return rc;
}
