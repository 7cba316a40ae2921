/* crypto.c - the face: opening, what a sync brings, time, status. */
#include "crypto.h"
#include "crypto_private.h"

static const int64_t hash_age_ms = 24 * (int64_t)HOUR_MS;

int64_t now_ms(const struct crypto *c)
{
    return c->cfg.now_ms ? c->cfg.now_ms(c->cfg.hook) : time_unix_ms();
}

void random_bytes(const struct crypto *c, void *out, size_t n)
{
    if (c->cfg.random)
        c->cfg.random(c->cfg.hook, out, n);
    else
        digest_random(out, n);
}

bool is_me(const struct crypto *c, const char *user)
{
    return same(c->user, user);
}

/* ---- public calls ---- */

int crypto_enter(struct crypto *c, struct store_batch *b, struct err *e)
{
    return store_batch_begin(b, c->store, e);
}

int crypto_leave(struct crypto *c, struct store_batch *b, struct err *e)
{
    if (c->state != CRYPTO_REFUSED && (own_plan(c, e) < 0 || devices_plan(c, e) < 0 || channel_plan(c, e) < 0 ||
                                       xsign_plan(c, e) < 0 || backup_plan(c, e) < 0))
        return -1;
    if (store_batch_commit(b, e) < 0)
        return -1;
    event_flush(c);
    return 0;
}

/* ---- opening ---- */

static void forget(struct crypto *c)
{
    req_clear_all(c);
    users_clear(c);
    channels_clear(c);
    rooms_clear(c);
    mega_in_clear(c);
    backup_clear(c);
    sas_clear(c);
    event_drop(c);
    ratchet_account_free(c->account);
    c->account = NULL;
    free(c->xsign.ssss_id);
    explicit_bzero(&c->xsign, sizeof(c->xsign));
}

static int load(struct crypto *c, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    if (crypto_enter(c, &b, e) < 0 || own_load(c, e) < 0 || xsign_load(c, e) < 0 || backup_load(c, e) < 0 ||
        users_load_stale(c, e) < 0 || todev_load(c, e) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}

static char *dup_or(const char *s)
{
    return s && *s ? xstrdup(s) : NULL;
}

static void random_hook(void *hook, void *out, size_t n)
{
    random_bytes(hook, out, n);
}

int crypto_open(struct crypto **out, const struct crypto_config *cfg, struct err *e)
{
    if (!id_ok(cfg->user) || !id_ok(cfg->device))
        return err_set(e, ERR_CONFIG, "encryption needs the account's user id and device id");
    struct crypto *c = xcalloc(1, sizeof(*c));
    c->cfg = *cfg;
    if (cfg->events)
        c->ev = *cfg->events;
    c->store = cfg->store;
    c->user = xstrdup(cfg->user);
    c->device = xstrdup(cfg->device);
    c->recovery_words = dup_or(cfg->recovery_key);
    c->password = dup_or(cfg->password);
    memcpy(c->pickle_key, cfg->pickle_key, KEY_BYTES);
    c->env = (struct ratchet_env){ .pickle_key = c->pickle_key, .random = random_hook, .hook = c };
    if (load(c, e) < 0) {
        crypto_close(c);
        return -1;
    }
    *out = c;
    return 0;
}

void crypto_close(struct crypto *c)
{
    if (!c)
        return;
    forget(c);
    free(c->user);
    free(c->device);
    wipe_text(&c->recovery_words);
    wipe_text(&c->password);
    explicit_bzero(c, sizeof(*c));
    free(c);
}

int crypto_reload(struct crypto *c, struct err *e)
{
    const struct own was = c->own;
    forget(c);
    if (c->state == CRYPTO_RUNNING) /* what was checked at start still holds */
        c->own.boot = was.boot;
    return load(c, e);
}

/* ---- state ---- */

enum crypto_state crypto_state(const struct crypto *c)
{
    return c->state;
}

const char *crypto_refusal(const struct crypto *c)
{
    return c->refusal;
}

static int64_t min_ms(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t crypto_wake_ms(const struct crypto *c)
{
    int64_t at = INT64_MAX;
    if (c->state == CRYPTO_REFUSED)
        return at;
    for (const struct req *r = c->reqs; r; r = r->next)
        if (!r->out)
            at = min_ms(at, r->not_before_ms);
    for (const struct map_item *i = c->rooms.first; i; i = i->next) {
        const struct room *r = i->value;
        if (r->waiting && r->wait_since_ms)
            at = min_ms(at, r->wait_since_ms + KEYS_WAIT_MS);
    }
    if (c->own.upload_after_ms > now_ms(c))
        at = min_ms(at, c->own.upload_after_ms);
    if (!req_pending(c, "keys_claim"))
        at = min_ms(at, c->claim_due_ms);
    at = min_ms(at, c->stale_due_ms);
    at = min_ms(at, sas_wake_ms(c));
    return min_ms(at, backup_wake_ms(c));
}

struct old {
    int64_t before_ms;
    struct json *keys;
};

static int collect_old(void *ud, const char *key, const struct json *v)
{
    const struct old *o = ud;
    if (json_number(v) < (double)o->before_ms)
        json_push(o->keys, json_new_string(key));
    return 0;
}

/* Redelivered messages come soon or never. */
static int prune_hashes(struct crypto *c, struct err *e)
{
    autojson struct json *keys = json_new_array();
    struct old o = { now_ms(c) - hash_age_ms, keys };
    if (now_ms(c) < c->prune_after_ms)
        return 0;
    c->prune_after_ms = now_ms(c) + HOUR_MS;
    if (kept_each(c, "e2ee_hash", NULL, collect_old, &o, e) < 0)
        return -1;
    for (const struct json *k = json_first(keys); k; k = json_next(k))
        if (kept_drop(c, "e2ee_hash", json_text(k), e) < 0)
            return -1;
    return 0;
}

int crypto_tick(struct crypto *c, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    if (c->state == CRYPTO_REFUSED)
        return 0;
    if (crypto_enter(c, &b, e) < 0)
        return -1;
    const int64_t now = now_ms(c);
    for (const struct map_item *i = c->rooms.first; i; i = i->next) {
        const struct room *r = i->value;
        if (r->waiting && r->wait_since_ms && now >= r->wait_since_ms + KEYS_WAIT_MS)
            room_wake(c, r->id);
    }
    if (sas_tick(c, e) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}

/* ---- sync ---- */

int crypto_sync(struct crypto *c, const struct json *response, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    const struct json *events = json_get(json_get(response, "to_device"), "events");
    if (c->state != CRYPTO_RUNNING)
        return 0;
    if (crypto_enter(c, &b, e) < 0 || devices_sync(c, json_get(response, "device_lists"), e) < 0)
        return -1;
    if (json_type(events) == JSON_ARRAY)
        for (const struct json *ev = json_first(events); ev; ev = json_next(ev))
            if (todev_receive(c, ev, e) < 0)
                return -1;
    if (own_sync(c, response, e) < 0 || prune_hashes(c, e) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}

/* ---- status ---- */

static int count_row(void *ud, const char *key, const struct json *v)
{
    int64_t *n = ud;
    (void)key, (void)v;
    ++*n;
    return 0;
}

static int count(struct crypto *c, const char *kind, struct json *out, const char *name, struct err *e)
{
    int64_t n = 0;
    if (kept_each(c, kind, NULL, count_row, &n, e) < 0)
        return -1;
    json_set_int(out, name, n);
    return 0;
}

static const char *state_word(const struct crypto *c)
{
    switch (c->state) {
    case CRYPTO_STARTING: return "starting";
    case CRYPTO_RUNNING: return "running";
    case CRYPTO_REFUSED: return "refused";
    }
    return "";
}

static int64_t request_count(const struct crypto *c)
{
    int64_t n = 0;
    for (const struct req *r = c->reqs; r; r = r->next)
        n++;
    return n;
}

int crypto_status(struct crypto *c, struct json **out, struct err *e)
{
    autojson struct json *s = json_new_object();
    struct user *me = NULL;
    if (user_get(c, c->user, &me, e) < 0)
        return -1;
    json_set_str(s, "state", state_word(c));
    if (c->state == CRYPTO_REFUSED)
        json_set_str(s, "refusal", c->refusal);
    json_set_str(s, "user", c->user);
    json_set_str(s, "device", c->device);
    json_set_str(s, "fingerprint", ratchet_account_ed25519(c->account));
    json_set_int(s, "one_time_keys", c->own.server_keys);
    struct json *id = child(s, "identity");
    json_set_str(id, "public", me->master);
    json_set_bool(id, "device_signed", c->xsign.device_signed);
    json_set_bool(id, "secrets_here", c->xsign.have_ssk);
    struct json *backup = child(s, "backup");
    json_set_str(backup, "version", c->backup.state == BACKUP_ON ? c->backup.version : NULL);
    json_set_int(backup, "kept", c->backup.saved);
    if (count(c, "e2ee_unsaved", backup, "waiting", e) < 0)
        return -1;
    struct json *sessions = child(s, "sessions");
    if (count(c, "e2ee_olm", sessions, "olm", e) < 0 || count(c, "e2ee_in", sessions, "in", e) < 0 ||
        count(c, "e2ee_out", sessions, "out", e) < 0 || count(c, "e2ee_user", s, "users", e) < 0)
        return -1;
    json_set_int(s, "requests", request_count(c));
    json_set_int(s, "alarms", c->alarms);
    *out = take(s);
    return 0;
}
