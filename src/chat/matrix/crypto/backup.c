/* backup.c - the server's backup of room keys: ours go up, and what we can't read is looked up there. A backup is believed when our identity signed
 * it or when we have its secret; keys out of it prove nothing about who sent a message. */
#include "backup.h"
#include "crypto_private.h"
#include "ssss.h"

#define ALGORITHM "m.megolm_backup.v1.curve25519-aes-sha2"
#define SECRET    "m.megolm_backup.v1"

enum { UPLOAD_MAX = 100, WISHES_MAX = 1000, LOOK_AFTER_MS = 3 * SECOND_MS };

struct wish {
    char *at; /* "room session" */
    int64_t after_ms, asked_ms;
};

static void wish_free(void *value)
{
    struct wish *w = value;
    free(w->at);
    free(w);
}

void backup_clear(struct crypto *c)
{
    struct backup *b = &c->backup;
    map_clear(&b->wishes, wish_free);
    free(b->version);
    free(b->public_key);
    explicit_bzero(b, sizeof(*b));
    b->look_after_ms = INT64_MAX;
}

int backup_load(struct crypto *c, struct err *e)
{
    c->backup.look_after_ms = INT64_MAX;
    return secret_seed(c, SECRET, c->backup.secret, &c->backup.have_secret, e);
}

static void off(struct crypto *c, const char *why)
{
    c->backup.state = BACKUP_OFF;
    event_alarm(c, CRYPTO_ALARM_BACKUP, "room keys are not backed up: %s", why);
}

static void set_text(char **to, const char *text)
{
    free(*to);
    *to = xstrdup_or_null(text);
}

/* ---- which one ---- */

static int collect(void *ud, const char *key, const struct json *v)
{
    (void)v;
    json_push(ud, json_new_string(key));
    return 0;
}

/* What an earlier version had is not in this one. */
static int save_all(struct crypto *c, struct err *e)
{
    autojson struct json *keys = json_new_array(), *row = json_new_object();
    int rc = kept_each(c, "e2ee_in", NULL, collect, keys, e);
    for (const struct json *k = json_first(keys); k && rc == 0; k = json_next(k))
        rc = kept_put(c, "e2ee_unsaved", json_text(k), row, e);
    c->backup.waiting = true;
    return rc;
}

static int note_version(struct crypto *c, const char *version, struct err *e)
{
    autojson struct json *had = NULL, *now = obj_of("version", json_new_string(version));
    if (kept_get(c, "e2ee_backup", "", &had, e) < 0)
        return -1;
    const char *was = json_str_or(had, "version", NULL);
    if (same(was, version))
        return 0;
    if (was && save_all(c, e) < 0)
        return -1;
    return kept_put(c, "e2ee_backup", "", now, e);
}

static int turn_on(struct crypto *c, const char *version, const char *public, struct err *e)
{
    if (note_version(c, version, e) < 0)
        return -1;
    set_text(&c->backup.version, version);
    set_text(&c->backup.public_key, public);
    c->backup.state = BACKUP_ON;
    log_info("crypto_backup_on", KV_S("version", version));
    /* The identity's master secret is needed no more: it stays in the account's secret storage. */
    return secret_drop(c, "m.cross_signing.master", e);
}

static void public_text(const uint8_t secret[KEY_BYTES], char out[KEY_TEXT + 1])
{
    uint8_t raw[KEY_BYTES];
    x25519_public(secret, raw);
    b64_key(out, raw);
}

static bool is_trusted(const struct crypto *c, const struct user *me, const struct json *auth, const char *public)
{
    char ours[KEY_TEXT + 1] = "";
    if (c->backup.have_secret)
        public_text(c->backup.secret, ours);
    return same(ours, public) || (me->master && signed_by(auth, c->user, NULL, me->master));
}

static int version_made(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    const char *version = json_str_or(body, "version", NULL);
    char public[KEY_TEXT + 1];
    (void)r;
    if (!req_ok(status) || !id_ok(version)) {
        off(c, "the server made none");
        return 0;
    }
    public_text(c->backup.secret, public);
    req_add(c, "backup", "PUT", url_path("/_matrix/client/v3/user/%/account_data/m.key_backup", c->user),
            obj_of("enabled", json_new_bool(true)), NULL);
    return turn_on(c, version, public, e);
}

static int make_version(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    uint8_t master[KEY_BYTES];
    bool found = false;
    char public[KEY_TEXT + 1];
    (void)r, (void)body;
    if (!req_ok(status)) {
        off(c, "its secret could not be kept");
        return 0;
    }
    if (secret_seed(c, "m.cross_signing.master", master, &found, e) < 0)
        return -1;
    struct json *auth = json_new_object(), *make = json_new_object();
    public_text(c->backup.secret, public);
    json_set_str(auth, "public_key", public);
    own_sign(c, auth);
    if (found)
        sign_with_seed(auth, c->user, master);
    explicit_bzero(master, sizeof(master));
    json_set_str(make, "algorithm", ALGORITHM);
    json_set(make, "auth_data", auth);
    req_add(c, "backup", "POST", xstrdup("/_matrix/client/v3/room_keys/version"), make, version_made);
    return 0;
}

/* The secret goes where other devices find it before anything is sealed for it. */
static int make(struct crypto *c, struct err *e)
{
    struct backup *b = &c->backup;
    uint8_t iv[IV_BYTES];
    char text[KEY_TEXT + 1];
    if (!c->xsign.have_ssss || !c->xsign.ssss_id) {
        off(c, "the account has none, and the key of its secret storage is not here to make one");
        return 0;
    }
    random_bytes(c, b->secret, sizeof(b->secret));
    random_bytes(c, iv, sizeof(iv));
    b->have_secret = true;
    if (secret_put_seed(c, SECRET, b->secret, e) < 0)
        return -1;
    b64_key(text, b->secret);
    struct json *sealed = ssss_seal(c->xsign.ssss, SECRET, text, iv);
    explicit_bzero(text, sizeof(text));
    req_add(c, "backup", "PUT", url_path("/_matrix/client/v3/user/%/account_data/%", c->user, SECRET),
            obj_of("encrypted", obj_of(c->xsign.ssss_id, sealed)), make_version);
    return 0;
}

int backup_anew(struct crypto *c, struct err *e)
{
    autojson struct json *row = NULL;
    if (kept_get(c, "e2ee_backup", "", &row, e) < 0)
        return -1;
    if (!row)
        row = json_new_object();
    json_set_bool(row, "anew", true);
    backup_clear(c);
    return kept_put(c, "e2ee_backup", "", row, e);
}

/* One that our identity did not sign gets nothing; after a new identity it is replaced. */
static int not_trusted(struct crypto *c, struct err *e)
{
    autojson struct json *row = NULL;
    if (kept_get(c, "e2ee_backup", "", &row, e) < 0)
        return -1;
    if (json_bool_or(row, "anew", false))
        return make(c, e);
    off(c, "the account has one that its identity did not sign");
    return 0;
}

static int version_came(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    struct user *me = NULL;
    uint8_t raw[KEY_BYTES];
    const struct json *auth = json_get(body, "auth_data");
    const char *public = json_str_or(auth, "public_key", NULL), *version = json_str_or(body, "version", NULL);
    (void)r;
    if (status == 404)
        return make(c, e);
    if (!req_ok(status) || !same(json_str_or(body, "algorithm", NULL), ALGORITHM) || !b64_is_key(public, raw) ||
        !id_ok(version)) {
        off(c, "the account has one of an unknown kind");
        return 0;
    }
    if (user_get(c, c->user, &me, e) < 0)
        return -1;
    return is_trusted(c, me, auth, public) ? turn_on(c, version, public, e) : not_trusted(c, e);
}

static int wanted_came(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    (void)r, (void)e;
    if (req_ok(status) && !json_bool_or(body, "enabled", true)) {
        c->backup.state = BACKUP_OFF; /* somebody said so */
        return 0;
    }
    req_add(c, "backup", "GET", xstrdup("/_matrix/client/v3/room_keys/version"), NULL, version_came);
    return 0;
}

/* ---- saving ---- */

int backup_note(struct crypto *c, const char *room, const char *session, struct err *e)
{
    autofree char *at = xasprintf("%s %s", room, session);
    autojson struct json *row = json_new_object();
    if (!c->cfg.backup)
        return 0;
    c->backup.waiting = true;
    return kept_put(c, "e2ee_unsaved", at, row, e);
}

static int first_rows(void *ud, const char *key, const struct json *v)
{
    (void)v;
    if (json_len(ud) < UPLOAD_MAX)
        json_push(ud, json_new_string(key));
    return 0;
}

static char *plain_key(struct in_key *k)
{
    autojson struct json *o = json_new_object();
    autowipe char *key = ratchet_in_export(k->s, ratchet_in_first(k->s));
    if (!key)
        return NULL;
    json_set_str(o, "algorithm", MEGOLM_ALGORITHM);
    json_set(o, "forwarding_curve25519_key_chain", json_new_array());
    json_set_str(o, "sender_key", k->sender_key);
    json_set_str(child(o, "sender_claimed_keys"), "ed25519", k->ed25519);
    json_set_str(o, "session_key", key);
    json_set_bool(o, "shared_history", k->shared_history);
    return json_line(o);
}

static int add_key(struct crypto *c, struct json *rooms, const char *at, struct err *e)
{
    const char *space = strrchr(at, ' ');
    autofree char *room = xstrndup(at, space ? (size_t)(space - at) : 0);
    struct in_key *k = NULL;
    uint8_t public[KEY_BYTES], ephemeral[KEY_BYTES];
    if (!space || mega_in_get(c, room, space + 1, &k, e) < 0)
        return space ? -1 : 0;
    autowipe char *text = k ? plain_key(k) : NULL;
    if (!text || !b64_is_key(c->backup.public_key, public))
        return 0;
    random_bytes(c, ephemeral, sizeof(ephemeral));
    struct json *sealed = backup_seal(public, ephemeral, text);
    explicit_bzero(ephemeral, sizeof(ephemeral));
    if (!sealed)
        return 0;
    struct json *o = json_new_object();
    json_set_int(o, "first_message_index", ratchet_in_first(k->s));
    json_set_int(o, "forwarded_count", k->source == IN_FORWARDED);
    json_set_bool(o, "is_verified", is_me(c, k->sender));
    json_set(o, "session_data", sealed);
    json_set(child(child(rooms, room), "sessions"), space + 1, o);
    return 0;
}

static int saved(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    if (status == 403 || status == 404) { /* another version now */
        log_info("crypto_backup_version", KV_S("errcode", json_str_or(body, "errcode", "")));
        c->backup.state = BACKUP_IDLE;
        return 0;
    }
    if (!req_ok(status)) {
        off(c, "the server refused keys");
        return 0;
    }
    for (const struct json *k = json_first(r->data); k; k = json_next(k))
        if (kept_drop(c, "e2ee_unsaved", json_text(k), e) < 0)
            return -1;
    c->backup.saved += (int64_t)json_len(r->data);
    c->backup.waiting = c->backup.waiting || json_len(r->data) == UPLOAD_MAX;
    return 0;
}

static int save_some(struct crypto *c, struct err *e)
{
    struct json *keys = json_new_array(), *body = json_new_object();
    if (kept_each(c, "e2ee_unsaved", NULL, first_rows, keys, e) < 0) {
        json_free(keys);
        json_free(body);
        return -1;
    }
    struct json *rooms = child(body, "rooms");
    int rc = 0;
    for (const struct json *k = json_first(keys); k && rc == 0; k = json_next(k))
        rc = add_key(c, rooms, json_text(k), e);
    c->backup.waiting = false;
    if (rc < 0 || json_len(keys) == 0) {
        json_free(keys);
        json_free(body);
        return rc;
    }
    req_add(c, "backup_put", "PUT", url_path("/_matrix/client/v3/room_keys/keys?version=%", c->backup.version), body,
            saved)
        ->data = keys;
    return 0;
}

/* ---- looking up ---- */

int backup_want(struct crypto *c, const char *room, const char *session, struct err *e)
{
    struct backup *b = &c->backup;
    autofree char *at = xasprintf("%s %s", room, session);
    struct wish *w = map_get(&b->wishes, at);
    const int64_t now = now_ms(c);
    (void)e;
    if (!c->cfg.backup || b->state == BACKUP_OFF || (w && now - w->asked_ms < HOUR_MS))
        return 0; /* what comes right after a start is wished for before the backup is there */
    if (!w) {
        if (b->wishes.n >= WISHES_MAX)
            wish_free(map_take(&b->wishes, b->wishes.first->key));
        w = xcalloc(1, sizeof(*w));
        w->at = take(at);
        map_put(&b->wishes, w->at, w);
    }
    w->asked_ms = now;
    w->after_ms = now + LOOK_AFTER_MS;
    if (w->after_ms < b->look_after_ms)
        b->look_after_ms = w->after_ms;
    return 0;
}

static int take_key(struct crypto *c, const char *room, const char *session, const char *text, struct err *e)
{
    autojson struct json *o = NULL;
    struct err bad = { 0 };
    struct ratchet_in *s = NULL;
    if (json_parse(&o, text, strlen(text), 64 << 10, &bad) < 0 ||
        !same(json_str_or(o, "algorithm", NULL), MEGOLM_ALGORITHM) ||
        ratchet_in_import(&s, json_str_or(o, "session_key", "")) != RATCHET_OK || !same(ratchet_in_id(s), session)) {
        ratchet_in_free(s);
        log_warn("crypto_backup_key_refused", KV_S("room", room));
        return 0;
    }
    const char *sender_key = json_str_or(o, "sender_key", NULL);
    const struct in_offer offer = { .room = room,
                                    .sender_key = x25519_is_sane(sender_key) ? sender_key : NULL,
                                    .ed25519 = text_at(o, "sender_claimed_keys", "ed25519"),
                                    .source = IN_BACKUP,
                                    .take_s = s };
    return mega_in_add(c, &offer, e);
}

static int looked_up(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    const char *at = json_text(r->data), *space = strrchr(at, ' ');
    if (!req_ok(status) || !space)
        return 0;
    autowipe char *text = backup_open(c->backup.secret, json_get(body, "session_data"));
    autofree char *room = xstrndup(at, (size_t)(space - at));
    return text ? take_key(c, room, space + 1, text, e) : 0;
}

static void look_up(struct crypto *c, struct wish *w)
{
    const char *space = strrchr(w->at, ' ');
    autofree char *room = xstrndup(w->at, (size_t)(space - w->at));
    char *path = url_path("/_matrix/client/v3/room_keys/keys/%/%?version=%", room, space + 1, c->backup.version);
    req_add(c, "backup_get", "GET", path, NULL, looked_up)->data = json_new_string(w->at);
    w->after_ms = INT64_MAX;
}

static void look_up_due(struct crypto *c)
{
    struct backup *b = &c->backup;
    const int64_t now = now_ms(c);
    if (now < b->look_after_ms)
        return;
    b->look_after_ms = INT64_MAX;
    for (struct map_item *i = b->wishes.first; i; i = i->next) {
        struct wish *w = i->value;
        if (w->after_ms <= now)
            look_up(c, w);
        else if (w->after_ms < b->look_after_ms)
            b->look_after_ms = w->after_ms;
    }
}

static bool may_run(const struct crypto *c)
{
    return c->state == CRYPTO_RUNNING && c->cfg.backup && c->xsign.state == XSIGN_DONE;
}

int64_t backup_wake_ms(const struct crypto *c)
{
    const struct backup *b = &c->backup;
    return may_run(c) && b->state == BACKUP_ON && b->have_secret ? b->look_after_ms : INT64_MAX;
}

int backup_plan(struct crypto *c, struct err *e)
{
    struct backup *b = &c->backup;
    if (!may_run(c))
        return 0;
    if (b->state == BACKUP_IDLE) {
        b->state = BACKUP_BUSY;
        b->waiting = true;
        req_add(c, "backup", "GET", url_path("/_matrix/client/v3/user/%/account_data/m.key_backup", c->user), NULL,
                wanted_came);
    }
    if (b->state != BACKUP_ON)
        return 0;
    if (b->have_secret)
        look_up_due(c);
    return b->waiting && !req_pending(c, "backup_put") ? save_some(c, e) : 0;
}
