/* crypto_own.c - the own device: what the server has of it, and whether that is us.
 *
 * Before anything else two questions are asked. Is this store the newest that ever ran (a counter in the account's data that only
 * grows)? An old copy would use keys twice. And are the device keys at the server ours? The server doesn't protect them. */
#include <stdarg.h>
#include <stdio.h>
#include "crypto_private.h"

#define GENERATION "org.sandbook.store_generation"

enum {
    RECHECK_MS = MINUTE_MS,       /* counts missing from /sync: ask the server itself */
    SETTLE_MS = 10 * SECOND_MS,   /* counts of /sync may be older than an upload */
    FORGET_FALLBACK_MS = HOUR_MS, /* its messages may still be on their way */
    DESYNCS_MAX = 3,
};
static const int64_t fallback_age_ms = (int64_t)HOUR_MS * 24 * 7;

void own_refuse(struct crypto *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(c->refusal, sizeof(c->refusal), fmt, args);
    va_end(args);
    c->state = CRYPTO_REFUSED;
    event_alarm(c, CRYPTO_ALARM_REFUSED, "%s", c->refusal);
}

/* ---- the account's row ---- */

int own_save(struct crypto *c, struct err *e)
{
    const struct own *o = &c->own;
    autojson struct json *row = json_new_object();
    autofree char *pickle = ratchet_account_pickle(c->account, &c->env);
    json_set_str(row, "pickle", pickle);
    json_set_str(row, "user", c->user);
    json_set_str(row, "device", c->device);
    json_set_bool(row, "uploaded", o->uploaded);
    json_set_int(row, "fallback", o->fallback_ms);
    json_set_int(row, "forget", o->forget_ms);
    json_set_int(row, "generation", o->generation);
    json_set_int(row, "desyncs", o->desyncs);
    return kept_put(c, "e2ee", "account", row, e);
}

int own_load(struct crypto *c, struct err *e)
{
    struct own *o = &c->own;
    autojson struct json *row = NULL;
    *o = (struct own){ .server_keys = -1, .boot = o->boot };
    if (kept_get(c, "e2ee", "account", &row, e) < 0)
        return -1;
    if (!row) {
        c->account = ratchet_account_new(&c->env);
        ratchet_account_make_keys(c->account, ONE_TIME_KEYS, &c->env);
        ratchet_account_make_fallback(c->account, &c->env);
        o->fallback_ms = now_ms(c);
        o->fresh = true;
        return own_save(c, e);
    }
    if (!same(json_str_or(row, "user", NULL), c->user) || !same(json_str_or(row, "device", NULL), c->device))
        return err_set(e, ERR_CONFIG, "the store belongs to %s, device %s", json_str_or(row, "user", "?"),
                       json_str_or(row, "device", "?"));
    o->uploaded = json_bool_or(row, "uploaded", false);
    o->fallback_ms = json_int_or(row, "fallback", 0);
    o->forget_ms = json_int_or(row, "forget", 0);
    o->generation = json_int_or(row, "generation", 0);
    o->desyncs = (int)json_int_or(row, "desyncs", 0);
    return ratchet_account_unpickle(&c->account, json_str_or(row, "pickle", ""), &c->env, e);
}

/* ---- keys as JSON ---- */

static void sign_as_device(struct crypto *c, struct json *obj)
{
    AUTO(str_clear) struct str bytes = STR_INIT(CANON_MAX);
    char sig[SIG_TEXT + 1];
    if (!signable(&bytes, obj))
        abort();
    ratchet_account_sign(c->account, str_peek(&bytes), bytes.len, sig);
    add_signature(obj, c->user, c->device, sig);
}

struct json *own_device_keys(struct crypto *c)
{
    struct json *o = json_new_object(), *algorithms = json_new_array();
    autofree char *curve = xasprintf("curve25519:%s", c->device), *ed = xasprintf("ed25519:%s", c->device);
    json_push(algorithms, json_new_string(OLM_ALGORITHM));
    json_push(algorithms, json_new_string(MEGOLM_ALGORITHM));
    json_set_str(o, "user_id", c->user);
    json_set_str(o, "device_id", c->device);
    json_set(o, "algorithms", algorithms);
    json_set_str(child(o, "keys"), curve, ratchet_account_curve25519(c->account));
    json_set_str(child(o, "keys"), ed, ratchet_account_ed25519(c->account));
    sign_as_device(c, o);
    if (c->xsign.have_ssk)
        sign_with_seed(o, c->user, c->xsign.ssk);
    return o;
}

void own_sign(struct crypto *c, struct json *obj)
{
    sign_as_device(c, obj);
}

struct upload {
    struct crypto *c;
    struct json *body;
    int keys, fallbacks;
};

static void add_key(void *ud, const char *id, const char *key, bool fallback)
{
    struct upload *u = ud;
    autofree char *name = xasprintf("signed_curve25519:%s", id);
    struct json *o = json_new_object();
    json_set_str(o, "key", key);
    if (fallback)
        json_set_bool(o, "fallback", true);
    sign_as_device(u->c, o);
    json_set(child(u->body, fallback ? "fallback_keys" : "one_time_keys"), name, o);
    *(fallback ? &u->fallbacks : &u->keys) += 1;
}

static void count_key(void *ud, const char *id, const char *key, bool fallback)
{
    struct upload *u = ud;
    (void)id, (void)key;
    *(fallback ? &u->fallbacks : &u->keys) += 1;
}

/* ---- uploading ---- */

static int64_t key_count(const struct json *counts)
{
    const int64_t n = json_int_or(counts, "signed_curve25519", 0);
    return n < 0 ? 0 : n > 1000 ? 1000 : n;
}

/* Somebody else's keys are under ids that we chose: an old copy of this store ran, or a second one runs. The keys made so far are never
 * offered again; ids move on. */
static int desync(struct crypto *c, struct err *e)
{
    struct own *o = &c->own;
    ratchet_account_published(c->account);
    o->server_keys = -1;
    o->upload_after_ms = now_ms(c) + backoff_ms(o->desyncs);
    o->desyncs++;
    event_alarm(c, CRYPTO_ALARM_DESYNC, "the server has other one-time keys than this store made");
    if (o->desyncs >= DESYNCS_MAX)
        own_refuse(c,
                   "one-time keys were refused %d times: the store is an old copy, or another program uses this device",
                   o->desyncs);
    return own_save(c, e);
}

static void run(struct crypto *c)
{
    c->state = CRYPTO_RUNNING;
    room_wake(c, NULL);
}

static int uploaded(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    struct own *o = &c->own;
    if (!req_ok(status) && json_get(r->data, "one_time_keys"))
        return desync(c, e);
    if (!req_ok(status)) {
        o->upload_after_ms = now_ms(c) + backoff_ms(2);
        return 0;
    }
    o->server_keys = (int)key_count(json_get(body, "one_time_key_counts"));
    o->counted_ms = now_ms(c);
    if (json_get(r->data, "one_time_keys") || json_get(r->data, "fallback_keys")) {
        ratchet_account_published(c->account);
        o->desyncs = 0;
    }
    if (json_get(r->data, "fallback_keys")) {
        o->fallback_wanted = false;
        o->forget_ms = now_ms(c) + FORGET_FALLBACK_MS;
    }
    if (json_get(r->data, "device_keys")) {
        o->uploaded = true;
        o->boot = BOOT_DONE;
        if (c->state == CRYPTO_STARTING)
            run(c);
        if (devices_track(c, c->user, e) < 0 || devices_stale(c, c->user, e) < 0)
            return -1;
    }
    return own_save(c, e);
}

/* What is made is kept before it is sent. */
static int make_keys(struct crypto *c, struct err *e)
{
    struct own *o = &c->own;
    struct upload have = { .c = c };
    const int64_t now = now_ms(c);
    bool made = false;
    ratchet_account_unpublished(c->account, count_key, &have);
    const int want = o->server_keys < 0 ? 0 : ONE_TIME_KEYS - o->server_keys - have.keys;
    if (want > 0) {
        ratchet_account_make_keys(c->account, (size_t)want, &c->env);
        made = true;
    }
    if (have.fallbacks == 0 && (o->fallback_wanted || now - o->fallback_ms >= fallback_age_ms)) {
        ratchet_account_make_fallback(c->account, &c->env);
        o->fallback_ms = now;
        o->forget_ms = 0;
        made = true;
    }
    return made ? own_save(c, e) : 0;
}

static int plan_upload(struct crypto *c, struct err *e)
{
    struct own *o = &c->own;
    if (now_ms(c) < o->upload_after_ms || req_pending(c, "keys_upload"))
        return 0;
    if (make_keys(c, e) < 0)
        return -1;
    struct upload u = { .c = c, .body = json_new_object() };
    if (!o->uploaded)
        json_set(u.body, "device_keys", own_device_keys(c));
    ratchet_account_unpublished(c->account, add_key, &u);
    if (json_len(u.body) == 0 && o->server_keys >= 0) {
        json_free(u.body);
        return 0;
    }
    struct json *copy = json_dup(u.body); /* an empty one asks how many are there */
    req_add(c, "keys_upload", "POST", xstrdup("/_matrix/client/v3/keys/upload"), u.body, uploaded)->data = copy;
    return 0;
}

/* ---- at start ---- */

static char *generation_path(const struct crypto *c)
{
    return url_path("/_matrix/client/v3/user/%/account_data/%", c->user, GENERATION);
}

/* An old copy that has to go on: everything that must not be used twice is thrown away. */
static int accept_rollback(struct crypto *c, struct err *e)
{
    log_warn("crypto_rollback_accepted", KV_S("device", c->device));
    channels_clear(c);
    rooms_clear(c);
    ratchet_account_published(c->account);
    return kept_drop(c, "e2ee_olm", NULL, e) < 0 ? -1 : kept_drop(c, "e2ee_out", NULL, e);
}

static int generation_came(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    struct own *o = &c->own;
    const int64_t theirs = req_ok(status) ? json_int_or(body, "generation", 0) : 0;
    const bool ours = req_ok(status) && same(json_str_or(body, "device", NULL), c->device);
    (void)r;
    if (!req_ok(status) && status != 404) {
        own_refuse(c, "the account's data can't be read (HTTP %d)", status);
        return 0;
    }
    if (ours && theirs > o->generation && !o->fresh) { /* fresh: the check of the device's keys has the better words */
        if (!c->cfg.accept_rollback) {
            own_refuse(c,
                       "the store is an old copy (run %lld, the server saw run %lld): its keys must not be used again",
                       (long long)o->generation, (long long)theirs);
            return 0;
        }
        if (accept_rollback(c, e) < 0)
            return -1;
    }
    o->generation = (theirs > o->generation && ours ? theirs : o->generation) + 1;
    struct json *put = json_new_object();
    json_set_int(put, "generation", o->generation);
    json_set_str(put, "device", c->device);
    req_add(c, "generation_put", "PUT", generation_path(c), put, NULL);
    o->boot = BOOT_KEYS;
    return own_save(c, e);
}

static int started(struct crypto *c, const struct json *body, struct err *e)
{
    struct user *me = NULL;
    c->own.boot = BOOT_DONE;
    run(c);
    if (user_get(c, c->user, &me, e) < 0)
        return -1;
    me->tracked = true;
    return devices_apply(c, c->user, body, e);
}

static int own_keys_came(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    struct own *o = &c->own;
    const struct json *devices = json_get(json_get(body, "device_keys"), c->user), *me = json_get(devices, c->device);
    autofree char *curve = xasprintf("curve25519:%s", c->device), *ed = xasprintf("ed25519:%s", c->device);
    (void)r;
    if (!req_ok(status)) {
        own_refuse(c, "the own device can't be asked for (HTTP %d)", status);
        return 0;
    }
    const bool ours = same(text_at(me, "keys", curve), ratchet_account_curve25519(c->account)) &&
                      same(text_at(me, "keys", ed), ratchet_account_ed25519(c->account));
    if (me && ours) { /* also when the answer to the upload was lost */
        o->uploaded = true;
        return own_save(c, e) < 0 ? -1 : started(c, body, e);
    }
    if (me) {
        own_refuse(c,
                   o->uploaded ? "the server has other keys for device %s than this store: one of the two is not ours"
                               : "device %s has keys that this store does not have: log in as a new device",
                   c->device);
        return 0;
    }
    if (o->uploaded && !c->cfg.accept_rollback) {
        own_refuse(c, "the server lost the keys of device %s: log in as a new device", c->device);
        return 0;
    }
    o->uploaded = false;
    o->server_keys = 0;
    o->boot = BOOT_UPLOAD;
    return 0;
}

static void ask_own_keys(struct crypto *c)
{
    struct json *body = json_new_object();
    json_set(child(body, "device_keys"), c->user, json_new_array());
    req_add(c, "own_keys", "POST", xstrdup("/_matrix/client/v3/keys/query"), body, own_keys_came);
}

int own_plan(struct crypto *c, struct err *e)
{
    switch (c->own.boot) {
    case BOOT_GENERATION:
        if (!req_pending(c, "generation"))
            req_add(c, "generation", "GET", generation_path(c), NULL, generation_came);
        return 0;
    case BOOT_KEYS:
        if (!req_pending(c, "own_keys"))
            ask_own_keys(c);
        return 0;
    case BOOT_UPLOAD:
    case BOOT_DONE: return plan_upload(c, e);
    }
    return 0;
}

/* ---- sync ---- */

static bool lacks_fallback(const struct json *unused)
{
    if (json_type(unused) != JSON_ARRAY)
        return false;
    for (const struct json *v = json_first(unused); v; v = json_next(v))
        if (same(json_text(v), "signed_curve25519"))
            return false;
    return true;
}

int own_sync(struct crypto *c, const struct json *response, struct err *e)
{
    struct own *o = &c->own;
    const struct json *counts = json_get(response, "device_one_time_keys_count");
    const int64_t now = now_ms(c);
    if (json_get(counts, "signed_curve25519") && now - o->counted_ms >= SETTLE_MS) {
        o->server_keys = (int)key_count(counts);
        o->counted_ms = now;
    } else if (!json_get(counts, "signed_curve25519") && now - o->counted_ms >= RECHECK_MS) {
        o->server_keys = -1; /* some servers leave it out when it is zero, some when it didn't change */
        o->counted_ms = now;
    }
    if (lacks_fallback(json_get(response, "device_unused_fallback_key_types")) && now - o->fallback_ms >= SETTLE_MS)
        o->fallback_wanted = true;
    if (o->forget_ms == 0 || now < o->forget_ms)
        return 0;
    ratchet_account_forget_fallback(c->account);
    o->forget_ms = 0;
    return own_save(c, e);
}
