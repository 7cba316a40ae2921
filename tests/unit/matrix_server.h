/* A homeserver in memory, as far as encryption sees one. */
#ifndef MATRIX_SERVER_H
#define MATRIX_SERVER_H
#pragma GCC diagnostic ignored "-Wunused-function"
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "attach.h"
#include "crypto.h"
#include "crypto_json.h"

#define ROOM        "!room:x"
#define API         "/_matrix/client/v3"
#define WORLD_START ((int64_t)1700000000000)
enum { PEERS_MAX = 12, WORLD_JSON = 8 << 20 };

struct peer;
struct world {
    int64_t now_ms;
    struct json *devices;  /* user -> device -> device keys */
    struct json *identity; /* user -> master_key, self_signing_key, user_signing_key */
    struct json *one_time; /* "user device" -> name -> key */
    struct json *fallback; /* "user device" -> name -> key */
    struct json *unused;   /* "user device" -> true */
    struct json *data;     /* path of account data -> content */
    struct json *backup;   /* user -> version, auth_data, keys */
    struct json *txns;     /* "user device path" -> true */
    struct peer *peers[PEERS_MAX];
    size_t peer_n;
    int64_t events;
    const char *password; /* UIA */
    /* Faults. Requests whose path has this in it ... */
    const char *fail_path;
    int fail_status;  /* ... are answered with this (0: no answer), ... */
    bool fail_after;  /* after they were done */
    int fail_n;       /* so many times; -1: always */
    struct json *log; /* array of "METHOD path" */
    /* The victim is restarted at this many more moments from now; -1: never. */
    struct peer *victim;
    int kill_in;
};

struct peer {
    struct world *w;
    const char *user, *device;
    char dir[64];
    struct store *store;
    struct crypto *c;
    struct crypto_config cfg;
    uint8_t key[KEY_BYTES];
    struct json *inbox;   /* to-device events that wait */
    struct json *changed; /* users */
    char *last_room, *alarm;
    int keys_came, room_ready, alarms, uploads;
    struct json *sas;       /* last shown: {state, emoji, decimal, txn, code} */
    struct json *room_sent; /* array of {room, type, content} */
};

static struct world *world_new(void)
{
    struct world *w = xcalloc(1, sizeof(*w));
    w->now_ms = WORLD_START;
    struct json **const parts[] = { &w->devices, &w->identity, &w->one_time, &w->fallback,
                                    &w->unused,  &w->data,     &w->backup,   &w->txns };
    for (size_t i = 0; i < countof(parts); i++)
        *parts[i] = json_new_object();
    w->log = json_new_array();
    w->password = "secret";
    w->kill_in = -1;
    return w;
}

static struct peer *peer_at(struct world *w, const char *user, const char *device)
{
    for (size_t i = 0; i < w->peer_n; i++)
        if (same(w->peers[i]->user, user) && same(w->peers[i]->device, device))
            return w->peers[i];
    return NULL;
}

static void tell_changed(struct world *w, const char *user)
{
    for (size_t i = 0; i < w->peer_n; i++)
        json_push(w->peers[i]->changed, json_new_string(user));
}

static void merge_into(struct json *to, const struct json *from)
{
    for (const struct json *m = json_first(from); m; m = json_next(m))
        json_set(to, json_key(m), json_dup(m));
}

/* ---- the server's side of each request; the status, and *out ---- */

static struct json *counts_of(const struct world *w, const char *at)
{
    struct json *o = json_new_object();
    json_set_int(o, "signed_curve25519", (int64_t)json_len(json_get(w->one_time, at)));
    return o;
}

static int serve_upload(struct world *w, struct peer *p, const struct json *body, struct json **out)
{
    autofree char *at = xasprintf("%s %s", p->user, p->device);
    const struct json *keys = json_get(body, "one_time_keys"), *device = json_get(body, "device_keys");
    p->uploads++;
    for (const struct json *k = json_first(keys); k; k = json_next(k)) {
        const struct json *have = json_get(json_get(w->one_time, at), json_key(k));
        if (have && !same(json_str_or(have, "key", NULL), json_str_or(k, "key", ""))) {
            *out = obj_of("errcode", json_new_string("M_UNKNOWN"));
            return 400;
        }
    }
    merge_into(child(w->one_time, at), keys);
    if (device) {
        json_set(child(w->devices, p->user), p->device, json_dup(device));
        tell_changed(w, p->user);
    }
    if (json_get(body, "fallback_keys")) {
        json_set(w->fallback, at, json_dup(json_get(body, "fallback_keys")));
        json_set_bool(w->unused, at, true);
    }
    *out = obj_of("one_time_key_counts", counts_of(w, at));
    return 200;
}

static int serve_query(struct world *w, const struct json *body, struct json **out)
{
    *out = json_new_object();
    for (const struct json *u = json_first(json_get(body, "device_keys")); u; u = json_next(u)) {
        const char *user = json_key(u);
        static const char *const names[][2] = { { "master_keys", "master_key" },
                                                { "self_signing_keys", "self_signing_key" } };
        const struct json *devices = json_get(w->devices, user);
        json_set(child(*out, "device_keys"), user, devices ? json_dup(devices) : json_new_object());
        for (size_t i = 0; i < countof(names); i++) {
            const struct json *key = json_get(json_get(w->identity, user), names[i][1]);
            if (key)
                json_set(child(*out, names[i][0]), user, json_dup(key));
        }
    }
    return 200;
}

static void claim_one(struct world *w, const char *user, const char *device, struct json *out)
{
    autofree char *at = xasprintf("%s %s", user, device);
    const struct json *keys = json_get(w->one_time, at), *one = json_first(keys);
    if (!one) {
        one = json_first(json_get(w->fallback, at));
        json_set_bool(w->unused, at, false);
        if (one)
            json_set(child(child(out, user), device), json_key(one), json_dup(one));
        return;
    }
    json_set(child(child(out, user), device), json_key(one), json_dup(one));
    json_set(w->one_time, at, without(keys, json_key(one), NULL));
}

static int serve_claim(struct world *w, const struct json *body, struct json **out)
{
    *out = json_new_object();
    struct json *keys = child(*out, "one_time_keys");
    for (const struct json *u = json_first(json_get(body, "one_time_keys")); u; u = json_next(u))
        for (const struct json *d = json_first(u); d; d = json_next(d))
            claim_one(w, json_key(u), json_key(d), keys);
    return 200;
}

static void deliver(struct peer *to, const char *sender, const char *type, const struct json *content)
{
    struct json *ev = json_new_object();
    json_set_str(ev, "sender", sender);
    json_set_str(ev, "type", type);
    json_set(ev, "content", json_dup(content));
    json_push(to->inbox, ev);
}

static int serve_todev(struct world *w, const struct peer *p, const char *path, const struct json *body,
                       struct json **out)
{
    autofree char *txn = xasprintf("%s %s %s", p->user, p->device, path);
    const char *from = path + strlen(API "/sendToDevice/");
    autofree char *type = xstrndup(from, strcspn(from, "/"));
    *out = json_new_object();
    if (json_get(w->txns, txn))
        return 200;
    json_set_bool(w->txns, txn, true);
    for (const struct json *u = json_first(json_get(body, "messages")); u; u = json_next(u))
        for (const struct json *d = json_first(u); d; d = json_next(d)) {
            struct peer *to = peer_at(w, json_key(u), json_key(d));
            if (to)
                deliver(to, p->user, type, d);
        }
    return 200;
}

static int serve_identity(struct world *w, const struct peer *p, const struct json *body, struct json **out)
{
    const struct json *have = json_get(json_get(w->identity, p->user), "master_key");
    autofree char *old = have ? json_line(json_get(have, "keys")) : NULL;
    autofree char *new = json_line(json_get(json_get(body, "master_key"), "keys"));
    *out = json_new_object();
    if (old && strcmp(old, new) != 0 && !same(json_str_or(json_get(body, "auth"), "password", NULL), w->password)) {
        json_set_str(*out, "session", "s1");
        json_set(*out, "flows", json_new_array());
        return 401;
    }
    merge_into(child(w->identity, p->user), body);
    tell_changed(w, p->user);
    return 200;
}

static int serve_signatures(struct world *w, const struct peer *p, const struct json *body, struct json **out)
{
    const struct json *mine = json_get(body, p->user);
    for (const struct json *d = json_first(mine); d; d = json_next(d)) {
        struct json *device = child(child(w->devices, p->user), json_key(d));
        merge_into(child(child(device, "signatures"), p->user), json_get(json_get(d, "signatures"), p->user));
    }
    tell_changed(w, p->user);
    *out = obj_of("failures", json_new_object());
    return 200;
}

static int not_found(struct json **out)
{
    *out = obj_of("errcode", json_new_string("M_NOT_FOUND"));
    return 404;
}

static int serve_version(struct world *w, const struct peer *p, const char *method, const struct json *body,
                         struct json **out)
{
    struct json *b = child(w->backup, p->user);
    if (same(method, "POST")) {
        const int64_t n = json_int_or(b, "n", 0) + 1;
        autofree char *version = xasprintf("%lld", (long long)n);
        json_set_int(b, "n", n);
        json_set_str(b, "version", version);
        json_set(b, "made", json_dup(body));
        json_set(b, "rooms", json_new_object());
        *out = obj_of("version", json_new_string(version));
        return 200;
    }
    if (!json_get(b, "version"))
        return not_found(out);
    *out = json_dup(json_get(b, "made"));
    json_set_str(*out, "version", json_str_or(b, "version", ""));
    return 200;
}

static int serve_backup(struct world *w, const struct peer *p, const char *method, const char *path,
                        const struct json *body, struct json **out)
{
    struct json *b = child(w->backup, p->user);
    autofree char *query = xasprintf("?version=%s", json_str_or(b, "version", "-"));
    const char *at = strchr(path, '?');
    *out = json_new_object();
    if (!same(at, query))
        return 403;
    if (same(method, "PUT")) {
        for (const struct json *r = json_first(json_get(body, "rooms")); r; r = json_next(r))
            merge_into(child(child(b, "rooms"), json_key(r)), json_get(r, "sessions"));
        return 200;
    }
    for (const struct json *r = json_first(json_get(b, "rooms")); r; r = json_next(r))
        for (const struct json *s = json_first(r); s; s = json_next(s)) {
            autofree char *want = url_path(API "/room_keys/keys/%/%", json_key(r), json_key(s));
            if (strncmp(path, want, strlen(want)) == 0) {
                json_free(*out);
                *out = json_dup(s);
                return 200;
            }
        }
    return 404;
}

static int serve_data(struct world *w, const char *method, const char *path, const struct json *body, struct json **out)
{
    if (same(method, "PUT")) {
        json_set(w->data, path, json_dup(body));
        *out = json_new_object();
        return 200;
    }
    if (!json_get(w->data, path))
        return not_found(out);
    *out = json_dup(json_get(w->data, path));
    return 200;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static int serve(struct peer *p, const char *method, const char *path, const struct json *body, struct json **out)
{
    struct world *w = p->w;
    if (begins(path, API "/keys/upload"))
        return serve_upload(w, p, body, out);
    if (begins(path, API "/keys/query"))
        return serve_query(w, body, out);
    if (begins(path, API "/keys/claim"))
        return serve_claim(w, body, out);
    if (begins(path, API "/sendToDevice/"))
        return serve_todev(w, p, path, body, out);
    if (begins(path, API "/keys/device_signing/upload"))
        return serve_identity(w, p, body, out);
    if (begins(path, API "/keys/signatures/upload"))
        return serve_signatures(w, p, body, out);
    if (begins(path, API "/room_keys/version"))
        return serve_version(w, p, method, body, out);
    if (begins(path, API "/room_keys/keys"))
        return serve_backup(w, p, method, path, body, out);
    if (begins(path, API "/user/"))
        return serve_data(w, method, path, body, out);
    fail_msg("nobody serves %s %s", method, path);
    return 0;
}
#endif
