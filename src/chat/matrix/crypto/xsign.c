/* xsign.c - the account's identity (cross-signing): made when there is none, its secrets kept in the account's secret storage, our device signed
 * with it. What exists is never replaced unless an operator asks: people may have verified it.
 *
 * Making one is a row of steps, each of which may be repeated; the next one is kept with the secrets, so that a crash goes on where it
 * was. Getting one that exists needs the recovery key. */
#include "ssss.h"
#include "crypto_private.h"

#define MASTER "m.cross_signing.master"
#define SELF   "m.cross_signing.self_signing"
#define USER   "m.cross_signing.user_signing"

enum step { /* of making an identity; numbers are in stores */
            STEP_NONE,
            STEP_DESCRIBE,
            STEP_MASTER,
            STEP_SELF,
            STEP_USER,
            STEP_DEFAULT_GET,
            STEP_DEFAULT_PUT,
            STEP_KEYS,
            STEP_SIGN,
            STEP_CHECK,
};

static int go(struct crypto *c, enum step step, struct err *e);

static char *data_path(const struct crypto *c, const char *type)
{
    return url_path("/_matrix/client/v3/user/%/account_data/%", c->user, type);
}

static char *key_type(const struct crypto *c)
{
    return xasprintf("m.secret_storage.key.%s", c->xsign.ssss_id);
}

static int save(struct crypto *c, struct err *e)
{
    autojson struct json *row = json_new_object();
    json_set_int(row, "step", c->xsign.next);
    if (c->xsign.ssss_id)
        json_set_str(row, "ssss_id", c->xsign.ssss_id);
    json_set_bool(row, "reset", c->xsign.reset);
    return kept_put(c, "e2ee", "identity", row, e);
}

int xsign_load(struct crypto *c, struct err *e)
{
    struct xsign *x = &c->xsign;
    autojson struct json *row = NULL;
    if (kept_get(c, "e2ee", "identity", &row, e) < 0 || secret_seed(c, SELF, x->ssk, &x->have_ssk, e) < 0 ||
        secret_seed(c, "recovery", x->ssss, &x->have_ssss, e) < 0)
        return -1;
    const char *id = json_str_or(row, "ssss_id", NULL);
    x->ssss_id = xstrdup_or_null(id);
    x->next = (int)json_int_or(row, "step", STEP_NONE);
    x->reset = json_bool_or(row, "reset", false);
    return 0;
}

static bool is_public_of(const uint8_t seed[KEY_BYTES], const char *public)
{
    uint8_t raw[KEY_BYTES];
    char text[KEY_TEXT + 1];
    ed25519_public(seed, raw);
    b64_key(text, raw);
    return same(text, public);
}

/* Without it people see a red shield, and strict clients give us no keys. */
static void unsigned_for(struct crypto *c, const char *why)
{
    c->xsign.state = XSIGN_OFF;
    event_alarm(c, CRYPTO_ALARM_UNSIGNED, "this device is not signed: %s", why);
}

/* ---- making one ---- */

static struct json *identity_object(struct crypto *c, const char *use, const uint8_t seed[KEY_BYTES])
{
    struct json *o = json_new_object(), *usage = json_new_array();
    uint8_t raw[KEY_BYTES];
    char text[KEY_TEXT + 1];
    ed25519_public(seed, raw);
    b64_key(text, raw);
    autofree char *name = xasprintf("ed25519:%s", text);
    json_push(usage, json_new_string(use));
    json_set_str(o, "user_id", c->user);
    json_set(o, "usage", usage);
    json_set_str(child(o, "keys"), name, text);
    return o;
}

struct seeds {
    uint8_t master[KEY_BYTES], self[KEY_BYTES], user[KEY_BYTES];
};

static int read_seeds(struct crypto *c, struct seeds *s, bool *all, struct err *e)
{
    bool have[3] = { false };
    if (secret_seed(c, MASTER, s->master, &have[0], e) < 0 || secret_seed(c, SELF, s->self, &have[1], e) < 0 ||
        secret_seed(c, USER, s->user, &have[2], e) < 0)
        return -1;
    *all = have[0] && have[1] && have[2];
    return 0;
}

static int make_seeds(struct crypto *c, struct err *e)
{
    struct seeds s;
    struct xsign *x = &c->xsign;
    uint8_t id[12];
    AUTO(str_clear) struct str text = STR_INIT(32);
    random_bytes(c, &s, sizeof(s));
    random_bytes(c, x->ssss, sizeof(x->ssss));
    random_bytes(c, id, sizeof(id));
    for (size_t i = 0; i < sizeof(id); i++)
        str_printf(&text, "%02x", id[i]);
    free(x->ssss_id);
    x->ssss_id = str_take(&text);
    x->have_ssss = x->have_ssk = true;
    memcpy(x->ssk, s.self, sizeof(x->ssk));
    const int rc = secret_put_seed(c, MASTER, s.master, e) < 0 || secret_put_seed(c, SELF, s.self, e) < 0 ||
                           secret_put_seed(c, USER, s.user, e) < 0 || secret_put_seed(c, "recovery", x->ssss, e) < 0
                       ? -1
                       : 0;
    explicit_bzero(&s, sizeof(s));
    return rc;
}

static int stepped(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    const enum step now = (enum step)json_number(r->data);
    (void)body;
    if (now == STEP_DEFAULT_GET) /* somebody's storage is the default: it stays that */
        return go(c, req_ok(status) && !c->xsign.reset ? STEP_KEYS : STEP_DEFAULT_PUT, e);
    if (req_ok(status))
        return go(c, now + 1, e);
    unsigned_for(c, "the server refused a step of making an identity; see the log");
    return 0;
}

static void put_data(struct crypto *c, const char *type, struct json *take_content, enum step step)
{
    struct req *r = req_add(c, "identity", "PUT", data_path(c, type), take_content, stepped);
    r->data = json_new_number(step);
}

static int put_secret(struct crypto *c, const char *name, enum step step, struct err *e)
{
    uint8_t iv[IV_BYTES];
    autowipe char *text = NULL;
    if (secret_get(c, name, &text, e) < 0)
        return -1;
    random_bytes(c, iv, sizeof(iv));
    struct json *sealed = ssss_seal(c->xsign.ssss, name, text ? text : "", iv);
    put_data(c, name, obj_of("encrypted", obj_of(c->xsign.ssss_id, sealed)), step);
    return 0;
}

static void describe(struct crypto *c)
{
    uint8_t iv[IV_BYTES];
    autofree char *type = key_type(c);
    random_bytes(c, iv, sizeof(iv));
    struct json *o = ssss_describe(c->xsign.ssss, iv);
    json_set_str(o, "name", "Sandbook");
    put_data(c, type, o, STEP_DESCRIBE);
}

static struct json *keys_body(struct crypto *c, const struct seeds *s)
{
    struct json *body = json_new_object(), *master = identity_object(c, "master", s->master);
    struct json *self = identity_object(c, "self_signing", s->self),
                *user = identity_object(c, "user_signing", s->user);
    own_sign(c, master);
    sign_with_seed(self, c->user, s->master);
    sign_with_seed(user, c->user, s->master);
    json_set(body, "master_key", master);
    json_set(body, "self_signing_key", self);
    json_set(body, "user_signing_key", user);
    return body;
}

static int keys_answered(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e);

static int send_keys(struct crypto *c, struct json *take_auth, struct err *e)
{
    struct seeds s;
    bool all = false;
    autojson struct json *auth = take_auth;
    if (read_seeds(c, &s, &all, e) < 0)
        return -1;
    if (!all) {
        unsigned_for(c, "the secrets of its identity are not here");
        return 0;
    }
    struct json *body = keys_body(c, &s);
    if (auth)
        json_set(body, "auth", json_dup(auth));
    struct req *r = req_add(c, "identity_keys", "POST", xstrdup("/_matrix/client/v3/keys/device_signing/upload"), body,
                            keys_answered);
    r->takes_401 = true;
    explicit_bzero(&s, sizeof(s));
    return 0;
}

/* The server wants to know that it is us: by the password, once. */
static struct json *password_auth(const struct crypto *c, const struct json *challenge)
{
    struct json *auth = json_new_object(), *who = json_new_object();
    json_set_str(who, "type", "m.id.user");
    json_set_str(who, "user", c->user);
    json_set_str(auth, "type", "m.login.password");
    json_set(auth, "identifier", who);
    json_set_str(auth, "password", c->password);
    json_set_str(auth, "session", json_str_or(challenge, "session", NULL));
    return auth;
}

static int keys_answered(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    (void)r;
    if (req_ok(status))
        return go(c, STEP_SIGN, e);
    if (status == 401 && json_get(body, "flows") && c->password && !c->xsign.asked) {
        c->xsign.asked = true;
        return send_keys(c, password_auth(c, body), e);
    }
    unsigned_for(c, status == 401 ? "the server wants the account's password to take an identity"
                                  : "the server refused the identity");
    return 0;
}

static int signature_answered(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    (void)r;
    if (!req_ok(status) || json_len(json_get(body, "failures")) > 0) {
        unsigned_for(c, "the server refused the signature");
        return 0;
    }
    return go(c, STEP_CHECK, e);
}

static void send_signature(struct crypto *c)
{
    struct json *body = obj_of(c->user, obj_of(c->device, own_device_keys(c)));
    req_add(c, "identity_sign", "POST", xstrdup("/_matrix/client/v3/keys/signatures/upload"), body, signature_answered);
}

static int take_step(struct crypto *c, enum step step, struct err *e)
{
    switch (step) {
    case STEP_NONE: return 0;
    case STEP_DESCRIBE: describe(c); return 0;
    case STEP_MASTER: return put_secret(c, MASTER, step, e);
    case STEP_SELF: return put_secret(c, SELF, step, e);
    case STEP_USER: return put_secret(c, USER, step, e);
    case STEP_DEFAULT_GET:
        req_add(c, "identity", "GET", data_path(c, "m.secret_storage.default_key"), NULL, stepped)->data =
            json_new_number(step);
        return 0;
    case STEP_DEFAULT_PUT:
        put_data(c, "m.secret_storage.default_key", obj_of("key", json_new_string(c->xsign.ssss_id)), step);
        return 0;
    case STEP_KEYS: return send_keys(c, NULL, e);
    case STEP_SIGN: send_signature(c); return 0;
    case STEP_CHECK: return devices_stale(c, c->user, e);
    }
    return 0;
}

static int go(struct crypto *c, enum step step, struct err *e)
{
    c->xsign.next = (int)step;
    c->xsign.state = XSIGN_BUSY;
    return save(c, e) < 0 ? -1 : take_step(c, step, e);
}

/* ---- fetching one that exists ---- */

static int fetched(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e);

static void fetch(struct crypto *c, const char *what, const char *type)
{
    struct req *r = req_add(c, "identity", "GET", data_path(c, type), NULL, fetched);
    r->data = json_new_string(what);
}

static char *open_secret(const struct crypto *c, const char *name, const struct json *content)
{
    return ssss_open(c->xsign.ssss, name, json_get(json_get(content, "encrypted"), c->xsign.ssss_id));
}

static int take_self_signing(struct crypto *c, const struct json *content, struct err *e)
{
    struct user *me = NULL;
    autowipe char *text = open_secret(c, SELF, content);
    struct xsign *x = &c->xsign;
    if (user_get(c, c->user, &me, e) < 0)
        return -1;
    if (!text || b64_read(text, x->ssk, KEY_BYTES) != KEY_BYTES || !is_public_of(x->ssk, me->self_signing)) {
        unsigned_for(c, "the secret storage has no key that fits the account's identity");
        return 0;
    }
    x->have_ssk = true;
    if (secret_put_seed(c, SELF, x->ssk, e) < 0)
        return -1;
    fetch(c, "backup", "m.megolm_backup.v1");
    return 0;
}

static int take_backup_secret(struct crypto *c, const struct json *content, struct err *e)
{
    autowipe char *text = open_secret(c, "m.megolm_backup.v1", content);
    struct backup *b = &c->backup;
    if (text && b64_read(text, b->secret, KEY_BYTES) == KEY_BYTES) {
        b->have_secret = true;
        if (secret_put_seed(c, "m.megolm_backup.v1", b->secret, e) < 0)
            return -1;
    }
    return go(c, STEP_SIGN, e);
}

static int fetched(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    const char *what = json_text(r->data);
    struct xsign *x = &c->xsign;
    if (same(what, "backup"))
        return take_backup_secret(c, req_ok(status) ? body : NULL, e);
    if (!req_ok(status)) {
        unsigned_for(c, "the account has an identity, but no secret storage to take it from");
        return 0;
    }
    if (same(what, "self"))
        return take_self_signing(c, body, e);
    if (same(what, "default")) {
        const char *id = json_str_or(body, "key", NULL);
        if (!id_ok(id)) {
            unsigned_for(c, "the secret storage has no default key");
            return 0;
        }
        free(x->ssss_id);
        x->ssss_id = xstrdup(id);
        autofree char *type = key_type(c);
        fetch(c, "key", type);
        return 0;
    }
    if (!ssss_key_from_words(c->recovery_words, body, x->ssss)) {
        unsigned_for(c,
                     "the recovery key is not the one of the account's secret storage: see matrix.recovery_key_file");
        return 0;
    }
    x->have_ssss = true;
    fetch(c, "self", SELF);
    return save(c, e);
}

/* ---- what is to be done ---- */

static int with_identity(struct crypto *c, const struct user *me, struct err *e)
{
    struct xsign *x = &c->xsign;
    const struct device *d = device_by_id(me, c->device);
    if (x->have_ssk && is_public_of(x->ssk, me->self_signing)) {
        if (!d || !d->cross_signed)
            return go(c, STEP_SIGN, e);
        x->device_signed = true;
        x->state = XSIGN_DONE;
        return 0;
    }
    if (c->recovery_words) {
        x->state = XSIGN_BUSY;
        fetch(c, "default", "m.secret_storage.default_key");
        return 0;
    }
    x->have_ssk = false;
    unsigned_for(
        c, "the account has an identity; give its recovery key (matrix.recovery_key_file), or reset the identity");
    return 0;
}

static int begin(struct crypto *c, struct err *e)
{
    struct user *me = NULL;
    struct xsign *x = &c->xsign;
    if (user_get(c, c->user, &me, e) < 0)
        return -1;
    if (me->stale || me->asking)
        return 0;
    if (x->next > STEP_NONE && x->next < STEP_SIGN)
        return go(c, (enum step)x->next, e);
    if (me->master)
        return with_identity(c, me, e);
    if (!c->cfg.cross_sign) {
        unsigned_for(c, "the account has no identity, and matrix.cross_signing is off");
        return 0;
    }
    return make_seeds(c, e) < 0 ? -1 : go(c, STEP_DESCRIBE, e);
}

int xsign_plan(struct crypto *c, struct err *e)
{
    return c->state == CRYPTO_RUNNING && c->xsign.state == XSIGN_IDLE ? begin(c, e) : 0;
}

static int checked(struct crypto *c, const struct user *me, struct err *e)
{
    const struct device *d = device_by_id(me, c->device);
    struct xsign *x = &c->xsign;
    x->device_signed = d && d->cross_signed && is_public_of(x->ssk, me->self_signing);
    if (!x->device_signed) {
        unsigned_for(c, "the server does not show the signature it was given");
        return 0;
    }
    log_info("crypto_device_signed", KV_S("identity", me->master));
    x->state = XSIGN_DONE;
    x->next = STEP_NONE;
    x->reset = false;
    if (!c->cfg.backup && secret_drop(c, MASTER, e) < 0)
        return -1;
    return save(c, e);
}

int xsign_own_changed(struct crypto *c, const char *before, struct err *e)
{
    struct user *me = NULL;
    struct xsign *x = &c->xsign;
    if (user_get(c, c->user, &me, e) < 0)
        return -1;
    if (x->state == XSIGN_BUSY && x->next == STEP_CHECK)
        return me->again ? 0 : checked(c, me, e); /* again: this was asked before the signature was there */
    if (x->state != XSIGN_DONE || !before || same(before, me->master))
        return 0;
    event_alarm(c, CRYPTO_ALARM_IDENTITY, "the identity of our own account was replaced");
    own_refuse(c, "the account's identity was replaced by somebody else; check the account, then start again");
    return 0;
}

int crypto_reset_identity(struct crypto *c, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    if (c->state != CRYPTO_RUNNING)
        return err_set(e, ERR_REFUSED, "encryption is not running");
    if (crypto_enter(c, &b, e) < 0 || make_seeds(c, e) < 0)
        return -1;
    c->xsign.asked = false;
    c->xsign.reset = true;
    c->xsign.device_signed = false;
    if (backup_anew(c, e) < 0 || secret_drop(c, "m.megolm_backup.v1", e) < 0 || go(c, STEP_DESCRIBE, e) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}

/* ---- the recovery key, until somebody has it ---- */

int crypto_recovery_key(struct crypto *c, char **out, struct err *e)
{
    uint8_t key[KEY_BYTES];
    bool found = false;
    *out = NULL;
    if (secret_seed(c, "recovery", key, &found, e) < 0)
        return -1;
    if (found)
        *out = recovery_key_text(key);
    explicit_bzero(key, sizeof(key));
    return 0;
}

int crypto_recovery_taken(struct crypto *c, struct err *e)
{
    return secret_drop(c, "recovery", e);
}
