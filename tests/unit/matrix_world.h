/* Devices that talk to a homeserver in memory through their state machines. The clock is the world's; nothing sleeps. */
#ifndef MATRIX_WORLD_H
#define MATRIX_WORLD_H
#include "matrix_server.h"

/* ---- a device ---- */

static int64_t peer_now(void *hook)
{
    return ((struct peer *)hook)->w->now_ms;
}

static void on_keys(void *ud, const char *room, const char *session)
{
    (void)room, (void)session;
    ((struct peer *)ud)->keys_came++;
}

static void on_room(void *ud, const char *room)
{
    struct peer *p = ud;
    p->room_ready++;
    free(p->last_room);
    p->last_room = xstrdup(room);
}

static void on_alarm(void *ud, enum crypto_alarm what, const char *text)
{
    struct peer *p = ud;
    (void)what;
    p->alarms++;
    free(p->alarm);
    p->alarm = xstrdup(text);
}

static void on_sas(void *ud, const struct crypto_sas *s)
{
    struct peer *p = ud;
    json_set_str(p->sas, "state", s->state);
    json_set_str(p->sas, "emoji", s->emoji);
    json_set_str(p->sas, "decimal", s->decimal);
    json_set_str(p->sas, "txn", s->txn);
    json_set_str(p->sas, "code", s->code);
}

static void on_send(void *ud, const char *room, const char *type, const struct json *content)
{
    struct peer *p = ud;
    struct json *o = json_new_object();
    json_set_str(o, "room", room);
    json_set_str(o, "type", type);
    json_set(o, "content", json_dup(content));
    json_push(p->room_sent, o);
}

static const struct crypto_events peer_events = {
    .keys_came = on_keys, .room_ready = on_room, .alarm = on_alarm, .sas = on_sas, .room_send = on_send
};

#define OK(call)                              \
    do {                                      \
        struct err e = { 0 };                 \
        if ((call) < 0)                       \
            fail_msg("%s: %s", #call, e.msg); \
    } while (0)

static void peer_open(struct peer *p)
{
    OK(store_open(&p->store, p->dir, &e));
    p->cfg.store = p->store;
    OK(crypto_open(&p->c, &p->cfg, &e));
}

static void peer_close(struct peer *p)
{
    crypto_close(p->c);
    store_close(p->store);
    p->c = NULL;
    p->store = NULL;
}

/* What is not in the store is gone, as after a crash. */
static void peer_restart(struct peer *p)
{
    peer_close(p);
    peer_open(p);
}

static bool is_failing(struct world *w, const char *path)
{
    if (!w->fail_path || !strstr(path, w->fail_path) || w->fail_n == 0)
        return false;
    w->fail_n -= w->fail_n > 0;
    return true;
}

/* A moment at which it may die. */
static bool dies(struct peer *p)
{
    struct world *w = p->w;
    if (w->victim != p || w->kill_in < 0 || w->kill_in-- > 0)
        return false;
    peer_restart(p);
    return true;
}

static void peer_answer(struct peer *p, const struct crypto_request *r)
{
    struct world *w = p->w;
    autojson struct json *body = NULL, *out = NULL;
    const int64_t id = r->id;
    const bool fails = is_failing(w, r->path);
    autofree char *line = xasprintf("%s %s %s", p->device, r->method, r->path);
    int status = w->fail_status;
    json_push(w->log, json_new_string(line));
    if (r->body)
        OK(json_parse(&body, r->body, strlen(r->body), WORLD_JSON, &e));
    autofree char *method = xstrdup(r->method), *path = xstrdup(r->path); /* r dies with its owner */
    if (dies(p))
        return;
    if (!fails || w->fail_after) {
        const int done = serve(p, method, path, body, &out);
        status = fails ? status : done;
    }
    if (dies(p))
        return;
    OK(crypto_answered(p->c, id, status, status ? out : NULL, 0, &e));
    (void)dies(p);
}

static void peer_pump(struct peer *p)
{
    struct crypto_request r;
    for (int i = 0; crypto_next_request(p->c, &r); i++) {
        if (i == 5000)
            fail_msg("requests without end: %s", r.path);
        peer_answer(p, &r);
    }
}

static struct json *peer_sync_json(struct peer *p)
{
    struct world *w = p->w;
    struct json *sync = json_new_object();
    autofree char *at = xasprintf("%s %s", p->user, p->device);
    json_set(child(sync, "to_device"), "events", json_dup(p->inbox));
    json_set(child(sync, "device_lists"), "changed", json_dup(p->changed));
    json_set(sync, "device_one_time_keys_count", counts_of(w, at));
    json_set(sync, "device_unused_fallback_key_types", json_new_array());
    if (json_bool_or(w->unused, at, false)) {
        struct json *types = json_new_array();
        json_push(types, json_new_string("signed_curve25519"));
        json_set(sync, "device_unused_fallback_key_types", types);
    }
    return sync;
}

static void peer_forget_inbox(struct peer *p)
{
    json_free(p->inbox);
    json_free(p->changed);
    p->inbox = json_new_array();
    p->changed = json_new_array();
}

static void peer_sync(struct peer *p)
{
    autojson struct json *sync = peer_sync_json(p);
    peer_forget_inbox(p);
    OK(crypto_sync(p->c, sync, &e));
    peer_pump(p);
}

static void peer_tick(struct peer *p)
{
    OK(crypto_tick(p->c, &e));
    peer_pump(p);
}

static void world_settle(struct world *w)
{
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < w->peer_n; i++)
            if (w->peers[i]->c)
                peer_sync(w->peers[i]);
}

static struct peer *peer_make(struct world *w, const char *user, const char *device)
{
    struct peer *p = xcalloc(1, sizeof(*p));
    *p = (struct peer){ .w = w, .user = user, .device = device };
    p->inbox = json_new_array();
    p->changed = json_new_array();
    p->sas = json_new_object();
    p->room_sent = json_new_array();
    digest_random(p->key, sizeof(p->key));
    /* In memory where that is: these tests open hundreds of stores, and each waits for its disk. */
    (void)snprintf(p->dir, sizeof(p->dir), "%s/test-crypto-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(p->dir));
    p->cfg = (struct crypto_config){ .user = user,
                                     .device = device,
                                     .pickle_key = p->key,
                                     .recipients = CRYPTO_CROSS_SIGNED,
                                     .senders = CRYPTO_CROSS_SIGNED,
                                     .allow_plain = true,
                                     .sas = CRYPTO_SAS_OPERATOR,
                                     .cross_sign = true,
                                     .events = &peer_events,
                                     .ud = p,
                                     .now_ms = peer_now,
                                     .hook = p };
    assert_true(w->peer_n < PEERS_MAX);
    w->peers[w->peer_n++] = p;
    return p;
}

/* A device that is up, with an identity. */
static struct peer *peer_new(struct world *w, const char *user, const char *device)
{
    struct peer *p = peer_make(w, user, device);
    peer_open(p);
    peer_pump(p);
    assert_int_equal(crypto_state(p->c), CRYPTO_RUNNING);
    return p;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static void peer_free(struct peer *p)
{
    peer_close(p);
    (void)nftw(p->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    json_free(p->inbox);
    json_free(p->changed);
    json_free(p->sas);
    json_free(p->room_sent);
    free(p->last_room);
    free(p->alarm);
    free(p);
}

static void world_free(struct world *w)
{
    for (size_t i = 0; i < w->peer_n; i++)
        peer_free(w->peers[i]);
    struct json *const parts[] = { w->devices, w->identity, w->one_time, w->fallback, w->unused,
                                   w->data,    w->backup,   w->txns,     w->log };
    for (size_t i = 0; i < countof(parts); i++)
        json_free(parts[i]);
    free(w);
}

static int log_count(const struct world *w, const char *what)
{
    int n = 0;
    for (const struct json *l = json_first(w->log); l; l = json_next(l))
        n += strstr(json_text(l), what) != NULL;
    return n;
}

/* ---- rooms ---- */

static void peer_join(struct peer *p, const char *const *users, size_t n)
{
    autojson struct json *content = json_new_object();
    json_set_str(content, "algorithm", "m.megolm.v1.aes-sha2");
    OK(crypto_room_encrypted(p->c, ROOM, content, &e));
    OK(crypto_room_members(p->c, ROOM, users, n, &e));
    peer_pump(p);
}

static void all_join(struct world *w)
{
    const char *users[PEERS_MAX];
    for (size_t i = 0; i < w->peer_n; i++)
        users[i] = w->peers[i]->user;
    for (size_t i = 0; i < w->peer_n; i++)
        peer_join(w->peers[i], users, w->peer_n);
    world_settle(w);
}

static enum crypto_ready try_encrypt(struct peer *p, const char *body, struct json **out)
{
    autojson struct json *content = json_new_object();
    enum crypto_ready ready = CRYPTO_WAIT;
    json_set_str(content, "msgtype", "m.text");
    json_set_str(content, "body", body);
    OK(crypto_encrypt(p->c, ROOM, "m.room.message", content, &ready, out, &e));
    return ready;
}

/* An event as the server would give it to all; the caller frees. */
static struct json *event_of(struct world *w, const struct peer *p, struct json *take_content)
{
    struct json *ev = json_new_object();
    autofree char *id = xasprintf("$event%lld", (long long)++w->events);
    json_set_str(ev, "event_id", id);
    json_set_str(ev, "type", "m.room.encrypted");
    json_set_str(ev, "sender", p->user);
    json_set_int(ev, "origin_server_ts", w->now_ms);
    json_set(ev, "content", take_content);
    return ev;
}

static struct json *say(struct peer *p, const char *body)
{
    struct json *content = NULL;
    for (int i = 0; i < 10; i++) {
        if (try_encrypt(p, body, &content) == CRYPTO_READY)
            return event_of(p->w, p, content);
        peer_pump(p);
    }
    fail_msg("%s never got ready to say \"%s\"", p->user, body);
    return NULL;
}

static enum crypto_utd hear(struct peer *p, const struct json *event, char **body, enum crypto_trust *trust)
{
    AUTO(crypto_message_clear) struct crypto_message m = { 0 };
    OK(crypto_decrypt(p->c, ROOM, event, &m, &e));
    if (body)
        *body = m.content ? xstrdup(json_str_or(m.content, "body", "")) : NULL;
    if (trust)
        *trust = m.trust;
    return m.utd;
}

static void assert_hears(struct peer *p, const struct json *event, const char *want)
{
    autofree char *body = NULL;
    peer_sync(p);
    assert_string_equal(crypto_utd_word(hear(p, event, &body, NULL)), "clear");
    assert_string_equal(body, want);
}

static void assert_deaf(struct peer *p, const struct json *event, const char *why)
{
    peer_sync(p);
    assert_string_equal(crypto_utd_word(hear(p, event, NULL, NULL)), why);
}

/* a says, b hears. */
static void assert_reaches(struct peer *a, struct peer *b, const char *text)
{
    autojson struct json *ev = say(a, text);
    assert_hears(b, ev, text);
}
#endif
