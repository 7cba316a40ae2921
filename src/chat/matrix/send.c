/* send.c - jobs: uploads, messages one after the other, the account's rate limit, and what is kept of it all. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include "ids.h"
#include "log.h"
#include "outbox.h"

enum {
    FLIGHT_MAX = 2,   /* messages on their way, of the whole account */
    CALM_MS = 600000, /* without a complaint: the pace is forgotten */
    SENT_MAX = 64 << 10,
    TYPING_MS = 30000,
    KEYS_MS = 30000, /* at the latest it is looked again whether a room's keys are there */
};

static void step(struct job *job);

/* ---- the account's limit ---- */

bool outbox_open(struct outbox *o, int64_t *wait_ms)
{
    const int64_t now = loop_now_ms(o->c->loop);
    if (o->pace_ms && now - o->limited_ms > CALM_MS)
        o->pace_ms = 0;
    *wait_ms = o->until_ms - now;
    return *wait_ms <= 0 && o->in_flight < (o->pace_ms ? 1 : FLIGHT_MAX);
}

void outbox_limited(struct outbox *o, int64_t retry_ms)
{
    const int64_t now = loop_now_ms(o->c->loop);
    unsigned char chance = 0;
    if (getrandom(&chance, 1, 0) != 1)
        chance = 0;
    const int64_t wait = retry_ms + retry_ms * chance / 1280 + 1; /* up to a fifth later */
    log_info("matrix_limited", KV_I("wait_ms", wait));
    if (o->pace_ms && now >= o->until_ms)
        o->pace_ms += retry_ms; /* we kept our pace, and it was short by this */
    else if (retry_ms > o->pace_ms)
        o->pace_ms = retry_ms;
    o->until_ms = now + wait > o->until_ms ? now + wait : o->until_ms;
    o->limited_ms = now;
}

static void sent_one(struct outbox *o)
{
    const int64_t next = loop_now_ms(o->c->loop) + o->pace_ms;
    if (o->pace_ms && next > o->until_ms)
        o->until_ms = next;
}

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

static void ignore_answer(void *ud, const struct api_answer *a)
{
    (void)ud;
    (void)a;
}

void matrix_typing(struct chat *c, const char *room, bool on)
{
    autofree char *in = mx_escape(room), *user = mx_escape(c->login.user);
    autofree char *path = xasprintf("/_matrix/client/v3/rooms/%s/typing/%s", in, user);
    autojson struct json *body = json_new_object();
    json_set_bool(body, "typing", on);
    if (on)
        json_set_int(body, "timeout", TYPING_MS);
    api_start(c->api, &(struct api_request){ .method = "PUT", .path = path, .body = body }, ignore_answer, c);
}

void matrix_receipt(struct chat *c, const char *room, const char *event, const char *thread)
{
    autofree char *in = mx_escape(room), *id = mx_escape(event);
    autofree char *path = xasprintf("/_matrix/client/v3/rooms/%s/receipt/m.read/%s", in, id);
    autojson struct json *body = json_new_object();
    json_set_str(body, "thread_id", thread ? thread : "main");
    api_start(c->api, &(struct api_request){ .method = "POST", .path = path, .body = body }, ignore_answer, c);
}

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

static void job_over(struct job *job, const struct err *e)
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

static void again(struct job *job, const struct err *e)
{
    const int64_t backoff = api_backoff_ms(++job->tries);
    log_warn("matrix_send_waits", KV_S("txn", job->txn), KV_I("try", job->tries), KV_E(e));
    job->busy = false;
    job->not_before_ms = loop_now_ms(job->c->loop) + (e->retry_ms > backoff ? e->retry_ms : backoff);
    matrix_outbox_pump(job->c);
}

/* ---- what is kept ---- */

static int keep_sent(struct job *job, struct err *e)
{
    const struct kept k = { MATRIX_PLATFORM, "sent", job->txn };
    AUTO(str_clear) struct str text = STR_INIT(SENT_MAX);
    if (!job->durable)
        return 0;
    json_set_int(job->sent, "at", (int64_t)job->at);
    json_print(&text, job->sent);
    return str_check(&text, e) < 0 ? -1 : store_keep(job->c->store, &k, str_peek(&text), text.len, e);
}

static int load_sent(struct job *job, struct err *e)
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

static char *message_txn(const struct job *job)
{
    const struct message *m = &job->messages[job->at];
    return xasprintf("%s.%zu%s", job->txn, job->at, m->bare ? "r" : "");
}

static int forget_sealed(const struct job *job, struct err *e)
{
    autofree char *txn = message_txn(job);
    const struct kept k = { MATRIX_PLATFORM, "sealed", txn };
    return job->messages[job->at].sealed ? store_unkeep(job->c->store, &k, e) : 0;
}

/* A JSON array grows only while it is built: copied with one more. */
static void note_event(struct job *job, const char *event)
{
    struct json *events = json_dup(json_get(job->sent, "events"));
    json_push(events, json_new_string(event));
    json_set(job->sent, "events", events);
}

static int keep_message(struct job *job, const struct message *m, const char *event, struct err *e)
{
    AUTO(store_batch_end) struct store_batch batch = { 0 };
    const struct place place = { .thread = job->thread, .answers = job->reply_to, .by = job->c->login.user };
    if (store_batch_begin(&batch, job->c->store, e) < 0)
        return -1;
    if (m->text && m->content && event && job->type == CHAT_ANSWER)
        note_event(job, event);
    json_set(job->sent, "mxc", NULL);
    json_set(job->sent, "file", NULL);
    if (job->durable && forget_sealed(job, e) < 0)
        return -1;
    job->at++;
    if (keep_sent(job, e) < 0 || (event && !m->target && matrix_place_keep(job->c, event, &place, e) < 0))
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
    json_print(&text, m->sealed);
    if (rc == 1 && job->durable && store_keep(job->c->store, &k, str_peek(&text), text.len, e) < 0)
        return -1;
    return store_batch_commit(&batch, e) < 0 ? -1 : rc;
}

/* 1: m->sealed is there; 0: keys are on their way; -1: never, or the store. */
static int seal(struct message *m, const struct job *job, const char *txn, struct err *e)
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

/* ---- messages ---- */

/* The server refuses; is there another way to say it? */
static bool another_way(struct job *job, const struct api_answer *a)
{
    struct message *m = &job->messages[job->at];
    if (a->status == 400 && m->content && !m->target && !m->bare && json_get(m->content, "m.relates_to") &&
        strcmp(a->errcode, "M_UNKNOWN") == 0) { /* that thread can't be, or is gone */
        m->bare = true;
        json_set(m->content, "m.relates_to", json_new_object());
        return true;
    }
    if (a->status == 413 && m->content && !m->target && !m->bare) {
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
        sent_one(o);
        if (keep_message(job, &job->messages[job->at], event, &e) < 0)
            log_error("matrix_sent_not_kept", KV_S("txn", job->txn),
                      KV_E(&e)); /* its key keeps it from being shown twice */
        matrix_outbox_pump(job->c);
    } else if (e.kind == ERR_LIMIT) {
        outbox_limited(o, e.retry_ms);
        matrix_outbox_pump(job->c);
    } else if (err_retryable(&e)) {
        again(job, &e);
    } else if (another_way(job, a)) {
        matrix_outbox_pump(job->c);
    } else {
        log_warn("matrix_send_refused", KV_S("room", job->room->id), KV_S("txn", job->txn), KV_E(&e));
        job_over(job, &e);
    }
}

static void set_address(struct job *job, const struct message *m, const char *mxc)
{
    if (!job->attach) {
        json_set_str(m->content, "url", mxc);
        json_set_str(job->sent, "mxc", mxc);
        return;
    }
    struct json *file = attach_file(job->attach, mxc);
    json_set(job->sent, "file", json_dup(file));
    json_set(m->content, "file", file);
    attach_free(take(job->attach));
}

static void on_uploaded(void *ud, const char *mxc, const struct err *e)
{
    struct job *job = ud;
    struct message *m = &job->messages[job->at];
    struct err kept = { 0 };
    job->busy = false;
    if (e && (err_retryable(e) || e->kind == ERR_STORE)) {
        again(job, e);
        return;
    }
    if (e) {
        autofree char *words = xasprintf("%s could not be sent: %s", m->name,
                                         strstr(e->msg, "413") || strstr(e->msg, "more than the server takes")
                                             ? "it is larger than this server takes."
                                             : "the server did not take it.");
        log_warn("matrix_upload_failed", KV_S("txn", job->txn), KV_E(e));
        job_replace_with_words(job, words);
    } else {
        set_address(job, m, mxc);
        if (keep_sent(job, &kept) < 0)
            log_warn("matrix_upload_not_kept", KV_S("txn", job->txn), KV_E(&kept));
    }
    matrix_outbox_pump(job->c);
}

static bool needs_upload(const struct job *job, const struct message *m)
{
    const char *key = job->room->encrypted ? "file" : "url";
    const struct json *had = json_get(job->sent, job->room->encrypted ? "file" : "mxc"); /* from before a restart */
    if (!m->path || json_get(m->content, key))
        return false;
    if (json_type(had) == JSON_NULL)
        return true;
    json_set(m->content, key, json_dup(had));
    return false;
}

static void on_ciphered(void *ud, int fd, int64_t bytes, struct attach *take_attach, const char *problem)
{
    struct job *job = ud;
    struct err e = { 0 };
    (void)bytes;
    attach_free(job->attach);
    job->attach = take_attach;
    if (problem) {
        (void)err_set(&e, ERR_REFUSED, "%s", problem);
        on_uploaded(job, NULL, &e);
        return;
    }
    const struct media_put p = { .take_fd = fd, .type = "application/octet-stream" };
    matrix_media_put(job->c, &p, on_uploaded, job);
}

static void upload(struct job *job, const struct message *m)
{
    struct err e = { 0 };
    /* A link is followed only where it leads to a descriptor of ours. */
    const int fd = open(m->path, O_RDONLY | O_CLOEXEC | (m->fd > 0 ? 0 : O_NOFOLLOW));
    const struct media_put p = { .take_fd = fd, .name = m->name, .type = content_type(m->name) };
    if (fd < 0) {
        (void)err_sys(&e, ERR_REFUSED, errno, "cannot open %s", m->path);
        on_uploaded(job, NULL, &e);
    } else if (job->room->encrypted) {
        cipher_start(job->c, fd, NULL, on_ciphered, job);
    } else {
        matrix_media_put(job->c, &p, on_uploaded, job);
    }
}

static void put_message(struct job *job, struct message *m)
{
    struct err e = { 0 };
    autofree char *txn = message_txn(job);
    const bool sealed = job->room->encrypted && m->content;
    const int rc = sealed ? seal(m, job, txn, &e) : 1;
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
        job_over(job, &e);
}

/* The next message of a job that is not busy. */
static void step(struct job *job)
{
    struct message *m = &job->messages[job->at];
    job->busy = true;
    if (needs_upload(job, m))
        upload(job, m);
    else
        put_message(job, m);
}

/* ---- the pump ---- */

static bool is_first_of_room(const struct outbox *o, const struct job *job)
{
    for (const struct job *x = o->jobs; x != job; x = x->next)
        if (x->room == job->room)
            return false;
    return true;
}

static void refuse_all(struct outbox *o)
{
    struct err e = { 0 };
    (void)err_set(&e, ERR_NET, "not connected"); /* stays in the store for a better day */
    for (struct job *job = o->jobs, *next; job; job = next) {
        next = job->next;
        if (!job->busy) {
            job_over(job, &e);
            next = o->jobs;
        }
    }
}

static const char *cannot_send(const struct job *job)
{
    if (job->room->gone)
        return "the room was replaced";
    return job->failed || !job->room->joined ? "we are not in the room" : NULL;
}

/* One thing: true when something happened that may have changed the list. */
static bool pump_one(struct outbox *o, int64_t now, int64_t *wait_ms)
{
    for (struct job *job = o->jobs; job; job = job->next) {
        int64_t wait = 0;
        if (job->busy || !is_first_of_room(o, job))
            continue;
        if (job->at >= job->n) {
            job_over(job, NULL);
            return true;
        }
        const char *problem = cannot_send(job);
        if (problem) {
            struct err e = { 0 };
            (void)err_set(&e, ERR_REFUSED, "%s", problem);
            job_over(job, &e);
            return true;
        }
        if (job->not_before_ms > now)
            wait = job->not_before_ms - now;
        else if (outbox_open(o, &wait)) {
            step(job);
            return true;
        }
        if (wait > 0 && wait < *wait_ms)
            *wait_ms = wait;
    }
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
        .thread = p->thread ? xstrdup(p->thread) : NULL,
        .reply_to = p->reply_to ? xstrdup(p->reply_to) : NULL,
        .durable = p->type == CHAT_ANSWER || p->type == CHAT_AMEND,
    };
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
    if (load_sent(job, e) < 0 || job_fill(job, p, OUT_TEXT_MAX, e) < 0)
        return give_up(job);
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
    if (load_sent(job, &ignored) < 0) /* not durable: nothing is read */
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
