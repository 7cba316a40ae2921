/* control.c - the operator's end. The socket lies in data_dir, which only its owner may enter; what comes over it is an operator's. */
#include "control.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "e2ee.h"
#include "ids.h"
#include "log.h"

struct peer { /* one operator's connection: a request, an answer, the end */
    struct peer *next;
    struct chat *c;
    int fd;
    struct str in;
    bool asked;
};

struct control {
    int fd;
    char *path;
    struct peer *peers;
};

/* ---- what can be asked ---- */

static void reply(matrix_control_fn *done, void *ud, struct json *take_reply)
{
    done(ud, take_reply);
    json_free(take_reply);
}

static void reply_error(matrix_control_fn *done, void *ud, const char *words)
{
    struct json *j = json_new_object();
    json_set_str(j, "error", words);
    reply(done, ud, j);
}

static void finish(matrix_control_fn *done, void *ud, int rc, const struct err *e)
{
    struct json *j = json_new_object();
    if (rc < 0)
        json_set_str(j, "error", e->msg);
    else
        json_set_bool(j, "ok", true);
    reply(done, ud, j);
}

static struct crypto *crypto_of(struct chat *c)
{
    return c->e2ee ? c->e2ee->crypto : NULL;
}

static void status(struct chat *c, const struct json *request, matrix_control_fn *done, void *ud)
{
    (void)request;
    struct json *j = json_new_object(), *e2ee = NULL;
    struct err e = { 0 };
    int64_t joined = 0, encrypted = 0;
    for (const struct room *r = c->rooms; r; r = r->next) {
        joined += r->joined;
        encrypted += r->joined && r->encrypted;
    }
    json_set_str(j, "user", c->login.user);
    json_set_str(j, "device", c->login.device);
    json_set_str(j, "homeserver", api_base_url(c->api));
    json_set_str(j, "state", c->dead ? "down" : c->good_sync_ms ? "syncing" : c->login.up ? "starting" : "connecting");
    json_set_int(j, "last_sync_age_ms", c->good_sync_ms ? loop_now_ms(c->loop) - c->good_sync_ms : -1);
    json_set_int(j, "token_expires_ms", c->login.expires_ms);
    json_set_int(j, "rooms", joined);
    json_set_int(j, "rooms_encrypted", encrypted);
    json_set_int(j, "inbox", (int64_t)matrix_inbox_depth(c));
    if (crypto_of(c) && crypto_status(crypto_of(c), &e2ee, &e) == 0)
        json_set(j, "encryption", e2ee);
    reply(done, ud, j);
}

static void list_one(void *ud, const struct crypto_sas *s)
{
    struct json *j = json_new_object();
    json_set_str(j, "txn", s->txn);
    json_set_str(j, "user", s->user);
    json_set_str(j, "device", s->device);
    json_set_str(j, "state", s->state);
    json_set_str(j, "emoji", s->emoji);
    json_set_str(j, "decimal", s->decimal);
    json_push(ud, j);
}

static void verify(struct chat *c, const struct json *request, matrix_control_fn *done, void *ud)
{
    struct err e = { 0 };
    const char *txn = json_str_or(request, "txn", NULL), *user = json_str_or(request, "user", NULL);
    if (txn || user) {
        const int rc = txn ? crypto_sas_answer(crypto_of(c), txn, json_bool_or(request, "match", false), &e)
                           : crypto_verify_user(crypto_of(c), user, json_bool_or(request, "trust", false), &e);
        matrix_e2ee_pump(c);
        finish(done, ud, rc, &e);
        return;
    }
    struct json *j = json_new_object(), *list = json_new_array();
    crypto_sas_each(crypto_of(c), list_one, list);
    json_set(j, "verifications", list);
    reply(done, ud, j);
}

static void block(struct chat *c, const struct json *request, matrix_control_fn *done, void *ud)
{
    struct err e = { 0 };
    const int rc = crypto_block_device(crypto_of(c), json_str_or(request, "user", ""),
                                       json_str_or(request, "device", ""), json_bool_or(request, "on", true), &e);
    finish(done, ud, rc, &e);
}

static void reset(struct chat *c, const struct json *request, matrix_control_fn *done, void *ud)
{
    struct err e = { 0 };
    (void)request;
    const int rc = crypto_reset_identity(crypto_of(c), &e);
    matrix_e2ee_pump(c);
    finish(done, ud, rc, &e);
}

static void recovery(struct chat *c, const struct json *request, matrix_control_fn *done, void *ud)
{
    struct err e = { 0 };
    char *key = NULL;
    if (json_bool_or(request, "taken", false)) {
        finish(done, ud, crypto_recovery_taken(crypto_of(c), &e), &e);
        return;
    }
    if (crypto_recovery_key(crypto_of(c), &key, &e) < 0) {
        finish(done, ud, -1, &e);
        return;
    }
    struct json *j = json_new_object();
    json_set_str(j, "recovery_key", key);
    if (key)
        explicit_bzero(key, strlen(key));
    free(key);
    reply(done, ud, j);
}

static void rotate(struct chat *c, const struct json *request, matrix_control_fn *done, void *ud)
{
    struct err e = { 0 };
    finish(done, ud, crypto_room_rotate(crypto_of(c), json_str_or(request, "room", ""), &e), &e);
}

static void leave(struct chat *c, const struct json *request, matrix_control_fn *done, void *ud)
{
    struct err e = { 0 };
    struct room *r = matrix_room_find(c, json_str_or(request, "room", ""));
    int rc = 0;
    if (!r)
        rc = err_set(&e, ERR_DATA, "no such room");
    else
        matrix_room_leave(r, "an operator said so");
    finish(done, ud, rc, &e);
}

/* ---- one room ---- */

static int set_all(struct room *r, const struct json *set, struct err *e)
{
    for (const struct json *x = json_first(set); x; x = json_next(x)) {
        const char *word = json_text(x);
        if (!word || (*word && !matrix_room_setting_ok(json_key(x), word)))
            return err_set(e, ERR_DATA, "%.40s=%.40s is not a setting of a room", json_key(x), word ? word : "?");
    }
    if (!r->ours)
        r->ours = json_new_object();
    for (const struct json *x = json_first(set); x; x = json_next(x))
        json_set_str(r->ours, json_key(x), *json_text(x) ? json_text(x) : NULL);
    return matrix_room_keep(r, e);
}

static struct json *describe(const struct room *r)
{
    struct json *j = json_new_object();
    const struct conf *c = r->chat->conf;
    json_set_str(j, "room", r->id);
    json_set_bool(j, "joined", r->joined);
    json_set_bool(j, "encrypted", r->encrypted);
    json_set_bool(j, "direct", matrix_room_is_direct(r));
    json_set_bool(j, "may_write", r->joined && !r->gone && !matrix_room_mute(r));
    json_set_int(j, "members", r->members);
    json_set_str(j, "invited_by", r->inviter);
    json_set_str(j, "replaced_by", r->successor);
    json_set_str(j, "require_mention", matrix_room_setting(r, "require_mention", c->matrix_mention));
    json_set_str(j, "reply", matrix_room_setting(r, "reply", c->matrix_reply));
    json_set_str(j, "msgtype", matrix_room_setting(r, "msgtype", c->matrix_msgtype));
    json_set_str(j, "progress", matrix_room_setting(r, "progress", c->matrix_progress));
    return j;
}

static void room(struct chat *c, const struct json *request, matrix_control_fn *done, void *ud)
{
    struct err e = { 0 };
    const struct json *set = json_get(request, "set");
    struct room *r = matrix_room_find(c, json_str_or(request, "room", ""));
    if (!r)
        reply_error(done, ud, "no such room");
    else if (json_len(set) && set_all(r, set, &e) < 0)
        finish(done, ud, -1, &e);
    else
        reply(done, ud, describe(r));
}

/* ---- logging out ---- */

struct logout {
    struct chat *c;
    matrix_control_fn *done;
    void *ud;
};

static int forget_room_keys(const struct room *r, struct err *e)
{
    autofree char *member = xasprintf("e2ee_member:%s", r->id), *share = xasprintf("e2ee_share:%s", r->id);
    const struct kept members = { MATRIX_PLATFORM, member, NULL }, shares = { MATRIX_PLATFORM, share, NULL };
    return store_unkeep(r->chat->store, &members, e) < 0 ? -1 : store_unkeep(r->chat->store, &shares, e);
}

/* Everything of the device: its keys must never be used again, and a new one begins with nothing. */
static int forget_device(struct chat *c, struct err *e)
{
    static const char *const kinds[] = { "login",         "sync",       "room",        "direct",       "ignored",
                                         "pending",       "thread",     "place",       "deleted",      "sent",
                                         "sealed",        "status",     "e2ee",        "e2ee_user",    "e2ee_stale",
                                         "e2ee_olm",      "e2ee_hash",  "e2ee_room",   "e2ee_out",     "e2ee_in",
                                         "e2ee_withheld", "e2ee_todev", "e2ee_secret", "e2ee_unsaved", "e2ee_backup" };
    AUTO(store_batch_end) struct store_batch batch = { 0 };
    if (store_batch_begin(&batch, c->store, e) < 0 || crypto_forget_replays(c->store, e) < 0)
        return -1;
    for (size_t i = 0; i < countof(kinds); i++) {
        const struct kept k = { MATRIX_PLATFORM, kinds[i], NULL };
        if (store_unkeep(c->store, &k, e) < 0)
            return -1;
    }
    for (const struct room *r = c->rooms; r; r = r->next)
        if (forget_room_keys(r, e) < 0)
            return -1;
    return store_batch_commit(&batch, e);
}

static void on_logged_out(void *ud, const struct api_answer *a)
{
    struct logout *x = ud;
    struct err e = { 0 };
    const bool gone = a->err.kind == ERR_NONE || a->status == 401 || a->err.kind == ERR_CONFIG;
    int rc = 0;
    if (!gone)
        rc = err_set(&e, ERR_NET, "the server did not end the session: %.150s", a->err.msg);
    else
        rc = forget_device(x->c, &e);
    if (rc == 0) {
        log_info("matrix_logged_out", KV_S("user", x->c->login.user));
        matrix_end(x->c);
    }
    finish(x->done, x->ud, rc, &e);
    free(x);
}

static void logout(struct chat *c, const struct json *request, matrix_control_fn *done, void *ud)
{
    (void)request;
    struct logout *x = xcalloc(1, sizeof(*x));
    *x = (struct logout){ .c = c, .done = done, .ud = ud };
    if (c->dead) /* for whatever reason: the server may know the session yet */
        api_token(c->api, c->login.token);
    api_start(c->api, &(struct api_request){ .method = "POST", .path = "/_matrix/client/v3/logout" }, on_logged_out, x);
}

static const struct {
    const char *word;
    void (*fn)(struct chat *c, const struct json *request, matrix_control_fn *done, void *ud);
    bool needs_crypto;
} commands[] = {
    { "block", block, true },       { "leave", leave, false },   { "logout", logout, false },
    { "recovery", recovery, true }, { "reset", reset, true },    { "room", room, false },
    { "rotate", rotate, true },     { "status", status, false }, { "verify", verify, true },
};

void matrix_control(struct chat *c, const struct json *request, matrix_control_fn *done, void *ud)
{
    const char *word = json_str_or(request, "do", "");
    for (size_t i = 0; i < countof(commands); i++) {
        if (strcmp(word, commands[i].word) != 0)
            continue;
        if (commands[i].needs_crypto && !crypto_of(c))
            reply_error(done, ud, "encryption is off, or not up yet");
        else
            commands[i].fn(c, request, done, ud);
        return;
    }
    reply_error(done, ud, "no such command");
}

bool matrix_has_session(const struct chat *c)
{
    return c->login.device != NULL;
}

int matrix_is_up(const struct chat *c)
{
    return c->dead ? -1 : c->good_sync_ms != 0;
}

bool matrix_is_settled(const struct chat *c)
{
    autojson struct json *j = NULL;
    struct err ignored = { 0 };
    if (!c->e2ee || !c->e2ee->crypto)
        return matrix_is_up(c) == 1;
    if (crypto_status(c->e2ee->crypto, &j, &ignored) < 0 || crypto_state(c->e2ee->crypto) == CRYPTO_REFUSED)
        return true;
    if (json_int_or(j, "alarms", 0) > 0) /* it is as far as it gets without a person */
        return true;
    const bool is_signed = json_bool_or(json_get(j, "identity"), "device_signed", false);
    const bool is_kept = json_str_or(json_get(j, "backup"), "version", NULL) != NULL;
    return (is_signed || !c->conf->matrix_cross_sign) && (is_kept || !c->conf->matrix_backup);
}

/* ---- the socket ---- */

static void peer_end(struct peer *p)
{
    struct peer **at = &p->c->control->peers;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    loop_io_stop(p->c->loop, p->fd);
    (void)close(p->fd);
    str_clear(&p->in);
    free(p);
}

static void on_reply(void *ud, const struct json *j)
{
    struct peer *p = ud;
    AUTO(str_clear) struct str text = STR_INIT(MATRIX_CONTROL_MAX);
    json_print(&text, j);
    str_putc(&text, '\n');
    if (send(p->fd, str_peek(&text), text.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        log_warn("matrix_control_reply", KV_S("why", strerror(errno)));
    explicit_bzero(text.buf, text.len);
    peer_end(p);
}

static void ask(struct peer *p, size_t n)
{
    autojson struct json *request = NULL;
    struct err e = { 0 };
    p->asked = true;
    if (json_parse(&request, str_peek(&p->in), n, MATRIX_CONTROL_MAX, &e) < 0)
        reply_error(on_reply, p, "not a JSON object");
    else
        matrix_control(p->c, request, on_reply, p);
}

static void on_peer(void *ud, int fd, uint32_t events)
{
    (void)events;
    struct peer *p = ud;
    char buf[4096];
    const ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || p->asked) { /* it went away; an answer that is due finds nobody */
        if (p->asked)
            loop_io_stop(p->c->loop, fd);
        else
            peer_end(p);
        return;
    }
    str_add(&p->in, buf, (size_t)n);
    const char *end = memchr(str_peek(&p->in), '\n', p->in.len);
    if (end)
        ask(p, (size_t)(end - str_peek(&p->in)));
    else if (p->in.overflow)
        peer_end(p);
}

static void on_knock(void *ud, int fd, uint32_t events)
{
    (void)events;
    struct chat *c = ud;
    const int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (got < 0)
        return;
    struct peer *p = xcalloc(1, sizeof(*p));
    *p = (struct peer){ .next = c->control->peers, .c = c, .fd = got, .in = STR_INIT(MATRIX_CONTROL_MAX) };
    c->control->peers = p;
    loop_io(c->loop, got, EPOLLIN, on_peer, p);
}

void matrix_control_open(struct chat *c)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    if (!c->data_dir ||
        snprintf(to.sun_path, sizeof(to.sun_path), "%s/%s", c->data_dir, MATRIX_SOCKET) >= (int)sizeof(to.sun_path))
        return;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(to.sun_path); /* of an earlier life: the store's lock says that there is no other */
    if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || chmod(to.sun_path, 0600) < 0 ||
        listen(fd, 4) < 0) {
        log_warn("matrix_control_not_open", KV_S("why", strerror(errno)));
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    c->control = xcalloc(1, sizeof(*c->control));
    *c->control = (struct control){ .fd = fd, .path = xstrdup(to.sun_path) };
    loop_io(c->loop, fd, EPOLLIN, on_knock, c);
}

void matrix_control_close(struct chat *c)
{
    if (!c->control)
        return;
    for (struct peer *p = c->control->peers, *next; p; p = next) {
        next = p->next;
        peer_end(p);
    }
    loop_io_stop(c->loop, c->control->fd);
    (void)close(c->control->fd);
    (void)unlink(c->control->path);
    free(c->control->path);
    free(take(c->control));
}
