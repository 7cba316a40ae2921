/* work.c - one event from its row to on_event(): decided, its files fetched, delivered in one batch that removes the row. */
#include "work.h"
#include <string.h>
#include "ids.h"
#include "json.h"
#include "log.h"

static void next_step(struct work *w);

/* ---- life ---- */

static void work_free(struct work *w)
{
    struct work **at = &w->c->inbox->work;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    for (size_t i = 0; i < w->fetch_n; i++)
        free(w->fetch[i]);
    for (size_t i = 0; i < w->file_n; i++) {
        if (w->file[i].fd >= 0)
            (void)close(w->file[i].fd);
        free(w->problem[i]);
    }
    for (size_t i = 0; i < w->source_n; i++) {
        free(w->source[i].name);
        free(w->source[i].mxc);
        free(w->source[i].message);
        json_free(w->source[i].encrypted);
    }
    json_free(w->j);
    crypto_message_clear(&w->clear);
    free(w->id);
    free(w->about);
    free(w->thread);
    free(w->text);
    free(w->name);
    free(w);
}

void work_free_all(struct chat *c)
{
    while (c->inbox->work)
        work_free(c->inbox->work);
}

static void later(struct work *w, const struct err *e)
{
    struct chat *c = w->c;
    struct row *row = w->row;
    log_warn("matrix_event_waits", KV_S("event", w->ev.id), KV_E(e));
    work_free(w);
    inbox_row_later(row, c);
}

static void finished(struct work *w)
{
    struct chat *c = w->c;
    struct row *row = w->row;
    work_free(w);
    inbox_row_done(row, c);
}

static void drop(struct work *w)
{
    struct chat *c = w->c;
    struct row *row = w->row;
    work_free(w);
    inbox_row_drop(row, c);
}

/* ---- the end: delivered ---- */

static const char *id_of(const struct work *w)
{
    return w->id ? w->id : w->ev.id;
}

static int report(struct work *w)
{
    const struct chat_event ev = {
        .type = w->type,
        .id = id_of(w),
        .about = w->about,
        .room = w->row->room->id,
        .thread = w->thread,
        .sender = w->ev.sender,
        .name = w->name,
        .text = w->text,
        .direct = w->direct,
        .mentioned = w->mentioned,
        .ours = w->ours,
        .files = w->file,
        .file_n = w->file_n,
        .sent_ms = w->ev.sent_ms,
    };
    return w->c->ev->on_event(w->c->ud, w->c, &ev);
}

static int keep_place(struct work *w, struct err *e)
{
    const struct place place = { .thread = w->thread, .by = xstrdup(w->ev.sender) };
    const int rc = matrix_place_keep(w->c, id_of(w), &place, e);
    free(place.by);
    if (rc < 0 || !w->thread)
        return rc;
    return matrix_thread_keep(w->c, w->row->room->id, w->thread, e);
}

static int deliver_all(struct work *w, struct err *e)
{
    AUTO(store_batch_end) struct store_batch batch = { 0 };
    if (inbox_settle(w->c, e) < 0 || store_batch_begin(&batch, w->c->store, e) < 0)
        return -1;
    if (report(w) < 0)
        return err_set(e, ERR_STORE, "the event was not taken");
    if ((w->remember && keep_place(w, e) < 0) || inbox_row_remove(w->row, w->c, e) < 0)
        return -1;
    return store_batch_commit(&batch, e);
}

static void deliver(struct work *w)
{
    struct err e = { 0 };
    if (deliver_all(w, &e) < 0) {
        later(w, &e);
        return;
    }
    if (w->remember) {
        matrix_receipt(w->c, w->row->room->id, w->ev.id, w->relation.type == MX_THREAD ? w->relation.target : NULL);
        if (w->text && *w->text)
            matrix_typing(w->c, w->row->room->id, true);
    }
    finished(w);
}

/* ---- its files ---- */

static void add_file(struct work *w, int fd, int64_t bytes, const char *problem)
{
    const size_t i = w->file_n++;
    w->problem[i] = xstrdup_or_null(problem);
    w->file[i] = (struct chat_file){
        .name = w->source[i].name, .fd = fd, .bytes = bytes, .problem = w->problem[i], .message = w->source[i].message
    };
}

static void on_plain(void *ud, int fd, int64_t bytes, struct attach *take_attach, const char *problem)
{
    struct work *w = ud;
    attach_free(take_attach);
    add_file(w, fd, bytes, problem);
    next_step(w);
}

/* NOLINTNEXTLINE(misc-no-recursion): one level a file, WORK_FILES_MAX ends it */
static void on_file(void *ud, int fd, int64_t bytes, const char *problem)
{
    struct work *w = ud;
    const struct json *encrypted = w->source[w->file_n].encrypted;
    if (encrypted && fd >= 0) {
        cipher_start(w->c, fd, encrypted, on_plain, w);
        return;
    }
    add_file(w, fd, bytes, problem);
    next_step(w);
}

/* NOLINTNEXTLINE(misc-no-recursion): one level a file, WORK_FILES_MAX ends it */
static void get_file(struct work *w)
{
    const struct source *s = &w->source[w->file_n];
    const struct media_get g = { .mxc = s->mxc, .max_bytes = w->c->conf->upload_max_bytes };
    if (s->problem) {
        on_file(w, -1, 0, s->problem);
        return;
    }
    if (s->bytes > g.max_bytes) {
        autofree char *problem = xasprintf("it is larger than %lld MB", (long long)(g.max_bytes >> 20));
        on_file(w, -1, 0, problem);
        return;
    }
    matrix_media_get(w->c, &g, on_file, w);
}

/* ---- files of events that it points to ---- */

static void add_fetched(struct work *w, const struct mx_event *ev, const struct json *event)
{
    AUTO(crypto_message_clear) struct crypto_message clear = { 0 };
    struct err e = { 0 };
    const bool sealed = strcmp(ev->type, "m.room.encrypted") == 0;
    if (sealed && e2ee_open(w->c, w->row->room->id, event, &clear, &e) != 1) {
        work_add_unread(w);
        return;
    }
    if (!sealed && w->row->room->encrypted)
        return;
    if (strcmp(sealed ? clear.type : ev->type, "m.room.message") == 0)
        work_add_source(w, sealed ? clear.content : ev->content, w->fetch[w->fetched - 1]);
}

static void on_fetched(void *ud, const struct api_answer *a)
{
    struct work *w = ud;
    struct mx_event ev;
    if (err_retryable(&a->err)) {
        later(w, &a->err);
        return;
    }
    const bool have = mx_event_read(&ev, a->body);
    if (!work_learn(w, have ? &ev : NULL)) {
        drop(w);
        return;
    }
    w->fetched++;
    if (have && !ev.redacted && strcmp(ev.sender, w->c->login.user) != 0)
        add_fetched(w, &ev, a->body);
    next_step(w);
}

static void fetch(struct work *w)
{
    autofree char *room = mx_escape(w->row->room->id), *event = mx_escape(w->fetch[w->fetched]);
    autofree char *path = xasprintf("/_matrix/client/v3/rooms/%s/event/%s", room, event);
    api_start(w->c->api, &(struct api_request){ .method = "GET", .path = path }, on_fetched, w);
}

/* NOLINTNEXTLINE(misc-no-recursion): one level a file, WORK_FILES_MAX ends it */
static void next_step(struct work *w)
{
    if (w->fetched < w->fetch_n)
        fetch(w);
    else if (w->file_n < w->source_n)
        get_file(w);
    else
        deliver(w);
}

/* ---- the beginning ---- */

static const int64_t park_max_ms = INT64_C(7) * 24 * 3600 * 1000; /* keys that have not come by then never will */

static void park(struct work *w)
{
    struct chat *c = w->c;
    struct row *row = w->row;
    if (time_unix_ms() - w->ev.sent_ms > park_max_ms) {
        drop(w);
        return;
    }
    work_free(w);
    inbox_row_park(row, c);
}

/* 1: content is what was said; else as e2ee_open(). */
static int read_clear(struct work *w, struct err *e)
{
    int rc = 1;
    w->content = w->ev.content;
    if (strcmp(w->ev.type, "m.room.encrypted") == 0) {
        rc = e2ee_open(w->c, w->row->room->id, json_get(w->j, "event"), &w->clear, e);
        if (rc == 1) {
            w->ev.type = w->clear.type;
            w->content = w->clear.content;
        }
    } else if (strcmp(w->ev.type, "m.room.message") == 0 && w->row->room->encrypted &&
               mx_msgtype(w->content) != MX_VERIFICATION) { /* Element asks in the clear; comparing proves who asked */
        log_warn("matrix_plaintext_dropped", KV_S("room", w->row->room->id), KV_S("event", w->ev.id));
        rc = 0; /* the server could have written it */
    } else if (strcmp(w->c->conf->matrix_e2ee, "required") == 0 && !w->row->room->encrypted) {
        rc = 0;
    }
    mx_relation_read(&w->relation, json_get(w->content, "m.relates_to"));
    return rc;
}

/* ---- we were asked where we may not answer ---- */

static struct room *direct_room_of(struct chat *c, const char *user)
{
    for (struct room *r = c->rooms; r; r = r->next)
        if (r->joined && !r->gone && r->inviter && strcmp(r->inviter, user) == 0 && matrix_room_is_direct(r) &&
            !matrix_room_mute(r))
            return r;
    return NULL;
}

static void say_mute(struct work *w, const struct room *where)
{
    struct err e = { 0 };
    autofree char *txn = xasprintf("mute.%s", w->ev.id);
    autofree char *words =
        xasprintf("I was asked in `%s`, where I may not write: a moderator of that room has to give me "
                  "the right to send messages. Then ask again.",
                  w->row->room->id);
    const struct chat_post p = { .type = CHAT_NOTICE, .txn = txn, .room = where->id, .markdown = words };
    if (matrix_post(w->c, &p, NULL, NULL, &e) < 0)
        log_warn("matrix_not_told", KV_E(&e));
}

static void react_mute(const struct work *w)
{
    autojson struct json *content = json_new_object();
    struct json *relates = json_new_object();
    autofree char *txn = xasprintf("mute.%s", w->ev.id);
    json_set_str(relates, "rel_type", "m.annotation");
    json_set_str(relates, "event_id", w->ev.id);
    json_set_str(relates, "key", "\xf0\x9f\x94\x87");
    json_set(content, "m.relates_to", relates);
    matrix_send_event(w->c, w->row->room->id, "m.reaction", content, txn);
}

static bool is_mute(struct work *w)
{
    struct room *r = w->row->room;
    if (!matrix_room_mute(r) || (w->type != CHAT_MESSAGE && w->type != CHAT_EDIT))
        return false;
    log_warn("matrix_may_not_write", KV_S("room", r->id));
    const struct room *direct = direct_room_of(w->c, w->ev.sender);
    if (direct && !r->told_mute)
        say_mute(w, direct);
    else if (!direct && matrix_room_may_react(r))
        react_mute(w);
    r->told_mute = true;
    return true;
}

static void go_on(struct work *w)
{
    struct err e = { 0 };
    bool taken = false;
    const struct crypto_room_event ev = { .room = w->row->room->id,
                                          .id = w->ev.id,
                                          .sender = w->ev.sender,
                                          .type = w->ev.type,
                                          .content = w->content,
                                          .ts_ms = w->ev.sent_ms };
    int rc = e2ee_verification(w->c, &ev, &taken, &e);
    if (rc == 0 && !taken)
        rc = work_decide(w, &e);
    if (rc < 0)
        later(w, &e);
    else if (rc == 0 || is_mute(w))
        drop(w);
    else
        next_step(w);
}

void work_start(struct chat *c, struct row *row, struct json *take_row)
{
    struct err e = { 0 };
    struct work *w = xcalloc(1, sizeof(*w));
    *w = (struct work){ .next = c->inbox->work, .c = c, .row = row, .j = take_row };
    c->inbox->work = w;
    if (!mx_event_read(&w->ev, json_get(w->j, "event"))) {
        drop(w);
        return;
    }
    bool deleted = false;
    int rc = work_is_deleted(w, &deleted, &e);
    rc = rc < 0 || deleted ? rc : read_clear(w, &e);
    if (rc == 1)
        go_on(w);
    else if (rc == 0)
        drop(w);
    else if (rc == 2)
        park(w);
    else
        later(w, &e);
}
