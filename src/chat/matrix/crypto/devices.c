/* devices.c - who has which devices. Every key here was signed by its owner's device, and none is ever replaced under the same device id:
 * a server that says otherwise is not believed. */
#include "crypto_private.h"

bool id_ok(const char *id)
{
    return id && *id && strlen(id) <= ID_MAX;
}

/* ---- rows ---- */

static void device_clear(struct device *d)
{
    free(d->id);
    free(d->name);
    *d = (struct device){ 0 };
}

static void user_free(void *value)
{
    struct user *u = value;
    for (size_t i = 0; i < u->device_n; i++)
        device_clear(&u->devices[i]);
    free(u->devices);
    free(u->id);
    free(u->master);
    free(u->self_signing);
    free(u->verified);
    free(u);
}

void users_clear(struct crypto *c)
{
    map_clear(&c->users, user_free);
}

static struct json *device_row(const struct device *d)
{
    struct json *row = json_new_object();
    json_set_str(row, "curve25519", d->curve25519);
    json_set_str(row, "ed25519", d->ed25519);
    if (d->name)
        json_set_str(row, "name", d->name);
    if (d->cross_signed)
        json_set_bool(row, "signed", true);
    if (d->blocked)
        json_set_bool(row, "blocked", true);
    if (d->no_olm_told)
        json_set_bool(row, "no_olm", true);
    if (d->wedges)
        json_set_int(row, "wedges", d->wedges);
    if (d->unwedged_ms)
        json_set_int(row, "unwedged", d->unwedged_ms);
    return row;
}

int user_save(struct crypto *c, struct user *u, struct err *e)
{
    autojson struct json *row = json_new_object();
    struct json *devices = child(row, "devices");
    json_set_bool(row, "tracked", u->tracked);
    if (u->master)
        json_set_str(row, "master", u->master);
    if (u->self_signing)
        json_set_str(row, "self_signing", u->self_signing);
    if (u->verified)
        json_set_str(row, "verified", u->verified);
    for (size_t i = 0; i < u->device_n; i++)
        json_set(devices, u->devices[i].id, device_row(&u->devices[i]));
    return kept_put(c, "e2ee_user", u->id, row, e);
}

static struct device *add_device(struct user *u, const char *id)
{
    u->devices = xgrow(u->devices, &u->device_cap, u->device_n + 1, sizeof(*u->devices));
    struct device *d = &u->devices[u->device_n++];
    *d = (struct device){ .id = xstrdup(id) };
    return d;
}

static char *dup_text(const struct json *obj, const char *key)
{
    const char *text = json_str_or(obj, key, NULL);
    return xstrdup_or_null(text);
}

static void copy_key(char out[KEY_TEXT + 1], const char *text)
{
    if (strlen(text) == KEY_TEXT)
        memcpy(out, text, KEY_TEXT + 1);
}

static void read_device(struct user *u, const struct json *row)
{
    struct device *d = add_device(u, json_key(row));
    copy_key(d->curve25519, json_str_or(row, "curve25519", ""));
    copy_key(d->ed25519, json_str_or(row, "ed25519", ""));
    d->name = dup_text(row, "name");
    d->cross_signed = json_bool_or(row, "signed", false);
    d->blocked = json_bool_or(row, "blocked", false);
    d->no_olm_told = json_bool_or(row, "no_olm", false);
    d->wedges = (int)json_int_or(row, "wedges", 0);
    d->unwedged_ms = json_int_or(row, "unwedged", 0);
}

int user_get(struct crypto *c, const char *id, struct user **out, struct err *e)
{
    *out = map_get(&c->users, id);
    if (*out)
        return 0;
    autojson struct json *row = NULL;
    if (kept_get(c, "e2ee_user", id, &row, e) < 0)
        return -1;
    struct user *u = xcalloc(1, sizeof(*u));
    u->id = xstrdup(id);
    u->tracked = json_bool_or(row, "tracked", false);
    u->master = dup_text(row, "master");
    u->self_signing = dup_text(row, "self_signing");
    u->verified = dup_text(row, "verified");
    for (const struct json *d = json_first(json_get(row, "devices")); d; d = json_next(d))
        read_device(u, d);
    map_put(&c->users, u->id, u);
    *out = u;
    return 0;
}

struct load {
    struct crypto *c;
    struct err *e;
    bool broken;
};

static int load_stale(void *ud, const char *key, const struct json *v)
{
    struct load *l = ud;
    struct user *u = NULL;
    (void)v;
    if (user_get(l->c, key, &u, l->e) < 0) {
        l->broken = true;
        return -1;
    }
    u->stale = true;
    l->c->stale_due_ms = 0;
    return 0;
}

int users_load_stale(struct crypto *c, struct err *e)
{
    struct load l = { c, e, false };
    const int rc = kept_each(c, "e2ee_stale", NULL, load_stale, &l, e);
    return l.broken ? -1 : rc;
}

/* ---- looking up, trust ---- */

struct device *device_by_id(const struct user *u, const char *id)
{
    for (size_t i = 0; i < u->device_n; i++)
        if (same(u->devices[i].id, id))
            return &u->devices[i];
    return NULL;
}

struct device *device_by_key(const struct user *u, const char *curve25519)
{
    for (size_t i = 0; i < u->device_n; i++)
        if (same(u->devices[i].curve25519, curve25519))
            return &u->devices[i];
    return NULL;
}

bool user_blocked(const struct user *u)
{
    return u->verified && !same(u->verified, u->master);
}

enum crypto_trust device_trust(const struct crypto *c, const struct user *u, const struct device *d)
{
    if (!d)
        return CRYPTO_TRUST_UNKNOWN;
    if (is_me(c, u->id) && same(d->id, c->device))
        return CRYPTO_TRUST_VERIFIED;
    if (user_blocked(u))
        return CRYPTO_TRUST_UNSIGNED;
    if (!u->master)
        return CRYPTO_TRUST_PLAIN;
    if (!d->cross_signed)
        return CRYPTO_TRUST_UNSIGNED;
    return u->verified ? CRYPTO_TRUST_VERIFIED : CRYPTO_TRUST_SIGNED;
}

bool policy_allows(enum crypto_policy p, bool allow_plain, enum crypto_trust t)
{
    switch (p) {
    case CRYPTO_ALL: return true;
    case CRYPTO_CROSS_SIGNED: return t >= CRYPTO_TRUST_SIGNED || (allow_plain && t == CRYPTO_TRUST_PLAIN);
    case CRYPTO_VERIFIED: return t == CRYPTO_TRUST_VERIFIED;
    }
    return false;
}

/* ---- tracking ---- */

static int mark(struct crypto *c, struct user *u, struct err *e)
{
    u->again = u->asking;
    c->stale_due_ms = 0;
    if (u->stale)
        return 0;
    autojson struct json *row = json_new_object();
    u->stale = true;
    return kept_put(c, "e2ee_stale", u->id, row, e);
}

int devices_track(struct crypto *c, const char *user, struct err *e)
{
    struct user *u = NULL;
    if (user_get(c, user, &u, e) < 0)
        return -1;
    if (u->tracked)
        return 0;
    u->tracked = true;
    return user_save(c, u, e) < 0 ? -1 : mark(c, u, e);
}

int devices_stale(struct crypto *c, const char *user, struct err *e)
{
    struct user *u = NULL;
    if (user_get(c, user, &u, e) < 0)
        return -1;
    return u->tracked ? mark(c, u, e) : 0;
}

static int devices_left(struct crypto *c, const char *user, struct err *e)
{
    struct user *u = NULL;
    if (is_me(c, user))
        return 0;
    if (user_get(c, user, &u, e) < 0)
        return -1;
    if (!u->tracked)
        return 0;
    u->tracked = u->stale = u->again = false;
    if (kept_drop(c, "e2ee_stale", user, e) < 0)
        return -1;
    return user_save(c, u,
                     e); /* its devices stay known, so that its old messages can be judged, and keys not be swapped */
}

static int each_id(struct crypto *c, const struct json *list, int (*fn)(struct crypto *, const char *, struct err *),
                   struct err *e)
{
    if (json_type(list) != JSON_ARRAY)
        return 0;
    for (const struct json *v = json_first(list); v; v = json_next(v))
        if (id_ok(json_text(v)) && fn(c, json_text(v), e) < 0)
            return -1;
    return 0;
}

int devices_sync(struct crypto *c, const struct json *lists, struct err *e)
{
    if (each_id(c, json_get(lists, "changed"), devices_stale, e) < 0)
        return -1;
    return each_id(c, json_get(lists, "left"), devices_left, e);
}

static int all_stale(void *ud, const char *key, const struct json *v)
{
    if (json_bool_or(v, "tracked", false))
        json_push(ud, json_new_string(key));
    return 0;
}

static int all_with_members(void *ud, const char *key, const struct json *v)
{
    if (json_bool_or(v, "members", false))
        json_push(ud, json_new_string(key));
    return 0;
}

int crypto_sync_lost(struct crypto *c, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    autojson struct json *users = json_new_array(), *rooms = json_new_array();
    if (crypto_enter(c, &b, e) < 0 || kept_each(c, "e2ee_user", NULL, all_stale, users, e) < 0 ||
        each_id(c, users, devices_stale, e) < 0 || kept_each(c, "e2ee_room", NULL, all_with_members, rooms, e) < 0 ||
        each_id(c, rooms, room_members_stale, e) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}

/* ---- asking ---- */

static int answered(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e);

static bool due(const struct user *u, int64_t now)
{
    return u->stale && !u->asking && u->ask_after_ms <= now;
}

static void ask(struct crypto *c, struct json *take_users)
{
    struct json *body = json_new_object();
    json_set_int(body, "timeout", KEYS_WAIT_MS);
    struct json *wanted = child(body, "device_keys");
    for (const struct json *v = json_first(take_users); v; v = json_next(v))
        json_set(wanted, json_text(v), json_new_array());
    req_add(c, "keys_query", "POST", xstrdup("/_matrix/client/v3/keys/query"), body, answered)->data = take_users;
}

int devices_plan(struct crypto *c, struct err *e)
{
    const int64_t now = now_ms(c);
    (void)e;
    if (now < c->stale_due_ms || c->state != CRYPTO_RUNNING)
        return 0;
    struct json *batch = json_new_array();
    size_t n = 0;
    c->stale_due_ms = INT64_MAX;
    for (struct map_item *i = c->users.first; i; i = i->next) {
        struct user *u = i->value;
        if (u->stale && !u->asking && u->ask_after_ms > now && u->ask_after_ms < c->stale_due_ms)
            c->stale_due_ms = u->ask_after_ms;
        if (!due(u, now))
            continue;
        u->asking = true;
        u->again = false;
        json_push(batch, json_new_string(u->id));
        if (++n < QUERY_USERS_MAX)
            continue;
        ask(c, batch);
        batch = json_new_array();
        n = 0;
    }
    if (n > 0)
        ask(c, batch);
    else
        json_free(batch);
    return 0;
}

static int settle(struct crypto *c, struct user *u, const struct json *body, struct err *e)
{
    u->asking = false;
    if (json_type(json_get(json_get(body, "device_keys"), u->id)) != JSON_OBJECT) {
        u->ask_after_ms = now_ms(c) + backoff_ms(u->fails++);
        log_info("crypto_devices_unknown", KV_S("user", u->id), KV_I("fails", u->fails));
        c->stale_due_ms = 0;
        return 0;
    }
    if (devices_apply(c, u->id, body, e) < 0)
        return -1;
    u->fails = 0;
    u->ask_after_ms = 0;
    if (u->again) {
        c->stale_due_ms = 0;
        return 0;
    }
    u->stale = false;
    return kept_drop(c, "e2ee_stale", u->id, e);
}

static int answered(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    for (const struct json *v = json_first(r->data); v; v = json_next(v)) {
        struct user *u = NULL;
        if (user_get(c, json_text(v), &u, e) < 0 || settle(c, u, req_ok(status) ? body : NULL, e) < 0)
            return -1;
    }
    room_wake(c, NULL);
    return 0;
}

/* ---- what the server says ---- */

bool device_object_ok(const struct json *o, const char *user, const char *id)
{
    uint8_t key[KEY_BYTES];
    autofree char *curve = xasprintf("curve25519:%s", id), *ed = xasprintf("ed25519:%s", id);
    const char *ed_text = text_at(o, "keys", ed);
    return id_ok(id) && same(json_str_or(o, "user_id", NULL), user) && same(json_str_or(o, "device_id", NULL), id) &&
           x25519_is_sane(text_at(o, "keys", curve)) && b64_is_key(ed_text, key) && signed_by(o, user, id, ed_text);
}

/* An identity key: of this user, for this use, exactly one key; NULL when it is anything else. */
static const char *identity_key(const struct json *o, const char *user, const char *use)
{
    const struct json *keys = json_get(o, "keys"), *usage = json_get(o, "usage"), *one = json_first(keys);
    const char *key = json_text(one);
    uint8_t raw[KEY_BYTES];
    bool listed = false;
    for (const struct json *v = json_type(usage) == JSON_ARRAY ? json_first(usage) : NULL; v; v = json_next(v))
        listed = listed || same(json_text(v), use);
    if (!listed || json_type(keys) != JSON_OBJECT || json_len(keys) != 1 || !b64_is_key(key, raw) ||
        !same(json_str_or(o, "user_id", NULL), user))
        return NULL;
    autofree char *name = xasprintf("ed25519:%s", key);
    return same(json_key(one), name) ? key : NULL;
}

static void replace(char **to, const char *text)
{
    char *copy = xstrdup_or_null(text);
    free(*to);
    *to = copy;
}

static void apply_identity(struct crypto *c, struct user *u, const struct json *answer)
{
    const struct json *self = json_get(json_get(answer, "self_signing_keys"), u->id);
    const char *master = identity_key(json_get(json_get(answer, "master_keys"), u->id), u->id, "master");
    const char *ssk = identity_key(self, u->id, "self_signing");
    if (!master || !ssk || !signed_by(self, u->id, NULL, master))
        ssk = NULL;
    if (u->master &&
        !master) { /* identities are replaced, never taken away: a server that hides one wants us to trust less */
        log_warn("crypto_identity_hidden", KV_S("user", u->id));
        return;
    }
    if (u->master && !same(u->master, master) && !is_me(c, u->id))
        event_alarm(c, CRYPTO_ALARM_IDENTITY, "the identity of %s changed%s", u->id,
                    u->verified ? "; it was verified, so it gets no keys until it is verified again" : "");
    replace(&u->master, master);
    replace(&u->self_signing, ssk);
}

static bool is_cross_signed(const struct user *u, const struct json *o)
{
    return u->master && u->self_signing && signed_by(o, u->id, NULL, u->self_signing);
}

/* The ids of devices and of identity keys share one name space in signatures. */
static bool id_is_identity(const struct user *u, const char *id)
{
    return same(u->master, id) || same(u->self_signing, id);
}

static void apply_device(struct user *u, const struct json *o)
{
    const char *id = json_key(o);
    if (!device_object_ok(o, u->id, id) || id_is_identity(u, id)) {
        log_warn("crypto_device_refused", KV_S("user", u->id), KV_S("device", id));
        return;
    }
    autofree char *curve = xasprintf("curve25519:%s", id), *ed = xasprintf("ed25519:%s", id);
    const char *curve_key = text_at(o, "keys", curve), *ed_key = text_at(o, "keys", ed);
    struct device *d = device_by_id(u, id);
    if (d && (!same(d->curve25519, curve_key) || !same(d->ed25519, ed_key))) {
        log_warn("crypto_device_keys_changed", KV_S("user", u->id), KV_S("device", id));
        return;
    }
    if (!d && (device_by_key(u, curve_key) || u->device_n >= DEVICES_MAX)) {
        log_warn("crypto_device_refused", KV_S("user", u->id), KV_S("device", id));
        return;
    }
    if (!d)
        d = add_device(u, id);
    copy_key(d->curve25519, curve_key);
    copy_key(d->ed25519, ed_key);
    d->cross_signed = is_cross_signed(u, o);
    const char *name = text_at(o, "unsigned", "device_display_name");
    replace(&d->name, name && strlen(name) <= ID_MAX ? name : NULL);
}

static void forget_missing(struct user *u, const struct json *devices)
{
    size_t kept = 0;
    for (size_t i = 0; i < u->device_n; i++) {
        if (json_get(devices, u->devices[i].id))
            u->devices[kept++] = u->devices[i];
        else
            device_clear(&u->devices[i]);
    }
    u->device_n = kept;
}

static int mend_channel(struct crypto *c, struct user *u, struct err *e)
{
    char key[KEY_TEXT + 1];
    if (!device_by_key(u, u->unwedge_key))
        return 0;
    memcpy(key, u->unwedge_key, sizeof(key));
    u->unwedge_key[0] = 0;
    return channel_unwedge(c, u, key, e);
}

int devices_apply(struct crypto *c, const char *user, const struct json *answer, struct err *e)
{
    struct user *u = NULL;
    const struct json *devices = json_get(json_get(answer, "device_keys"), user);
    if (user_get(c, user, &u, e) < 0)
        return -1;
    autofree char *master_before = xstrdup_or_null(u->master);
    apply_identity(c, u, answer);
    forget_missing(u, devices);
    for (const struct json *o = json_first(devices); o; o = json_next(o))
        apply_device(u, o);
    if (user_save(c, u, e) < 0 || mend_channel(c, u, e) < 0 || sas_devices_came(c, user, e) < 0)
        return -1;
    return is_me(c, user) ? xsign_own_changed(c, master_before, e) : 0;
}

/* ---- what an operator says ---- */

int crypto_verify_user(struct crypto *c, const char *user, bool on, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    struct user *u = NULL;
    if (crypto_enter(c, &b, e) < 0 || user_get(c, user, &u, e) < 0)
        return -1;
    if (on && !u->master)
        return err_set(e, ERR_DATA, "%s has no identity that is known here", user);
    replace(&u->verified, on ? u->master : NULL);
    return user_save(c, u, e) < 0 ? -1 : crypto_leave(c, &b, e);
}

int crypto_block_device(struct crypto *c, const char *user, const char *device, bool on, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    struct user *u = NULL;
    if (crypto_enter(c, &b, e) < 0 || user_get(c, user, &u, e) < 0)
        return -1;
    struct device *d = device_by_id(u, device);
    if (!d)
        return err_set(e, ERR_DATA, "%s has no device %s", user, device);
    d->blocked = on;
    return user_save(c, u, e) < 0 ? -1 : crypto_leave(c, &b, e);
}
