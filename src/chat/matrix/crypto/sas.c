/* sas.c - answering people who verify us: by to-device messages or in a room, as the side that is asked.
 *
 * request -> ready -> start -> accept (with a commitment to our key) -> their key -> our key -> both compare -> mac <-> mac -> done
 *
 * Comparing is a person's work: the operator's (policy "operator"), or theirs alone (policy "auto", after which we know nothing more about them
 * than before, so nothing is written down). */
#include "sas_math.h"
#include "sas_private.h"

static const char *const state_words[] = { "asked", "started", "keys", "confirmed", "done", "cancelled" };
static const uint8_t may_follow[] = {
    [SAS_ASKED] = 1 << SAS_STARTED | 1 << SAS_CANCELLED,
    [SAS_STARTED] = 1 << SAS_KEYS | 1 << SAS_CANCELLED,
    [SAS_KEYS] = 1 << SAS_CONFIRMED | 1 << SAS_CANCELLED,
    [SAS_CONFIRMED] = 1 << SAS_DONE | 1 << SAS_CANCELLED,
    [SAS_DONE] = 0,
    [SAS_CANCELLED] = 0,
};

/* ---- list ---- */

void sas_free(struct sas *s)
{
    char *const texts[] = { s->txn, s->user, s->device, s->room, s->emoji, s->decimal, s->code };
    for (size_t i = 0; i < countof(texts); i++)
        free(texts[i]);
    json_free(s->their_mac);
    explicit_bzero(s, sizeof(*s));
    free(s);
}

void sas_clear(struct crypto *c)
{
    sas_parked_clear(c);
    for (struct sas *s = c->sas, *next; s; s = next) {
        next = s->next;
        sas_free(s);
    }
    c->sas = NULL;
}

bool sas_is_over(const struct sas *s)
{
    return s->state == SAS_DONE || s->state == SAS_CANCELLED;
}

struct sas *sas_find(const struct crypto *c, const char *user, const char *txn)
{
    for (struct sas *s = c->sas; s; s = s->next)
        if (same(s->txn, txn) && (!user || same(s->user, user)))
            return s;
    return NULL;
}

struct crypto_sas sas_shown(const struct sas *s)
{
    return (struct crypto_sas){ .txn = s->txn,
                                .user = s->user,
                                .device = s->device,
                                .room = s->room,
                                .emoji = s->emoji ? s->emoji : "",
                                .decimal = s->decimal ? s->decimal : "",
                                .state = state_words[s->state],
                                .code = s->code ? s->code : "" };
}

static void enter(struct crypto *c, struct sas *s, enum sas_state state)
{
    if (!(may_follow[s->state] & 1 << state))
        abort();
    s->state = state;
    const struct crypto_sas now = sas_shown(s);
    log_info("crypto_verification", KV_S("user", s->user), KV_S("state", now.state), KV_S("code", now.code));
    event_sas(c, &now);
}

void crypto_sas_each(struct crypto *c, crypto_sas_fn *fn, void *ud)
{
    for (const struct sas *s = c->sas; s; s = s->next) {
        const struct crypto_sas now = sas_shown(s);
        fn(ud, &now);
    }
}

/* ---- sending ---- */

int sas_post(struct crypto *c, const struct sas_where *w, const char *type, struct json *take_content, struct err *e)
{
    autojson struct json *content = take_content;
    autofree char *full = xasprintf("m.key.verification.%s", type);
    if (w->room) {
        struct json *relation = child(content, "m.relates_to");
        json_set_str(relation, "rel_type", "m.reference");
        json_set_str(relation, "event_id", w->txn);
        event_send(c, w->room, full, content);
        return 0;
    }
    json_set_str(content, "transaction_id", w->txn);
    return todev_send(c, full, NULL, obj_of(w->user, obj_of(w->device, json_dup(content))), e);
}

int sas_send(struct crypto *c, const struct sas *s, const char *type, struct json *take_content, struct err *e)
{
    return sas_post(c, &(struct sas_where){ s->txn, s->user, s->device, s->room }, type, take_content, e);
}

struct json *sas_cancellation(const char *code)
{
    struct json *o = json_new_object();
    json_set_str(o, "code", code);
    json_set_str(o, "reason", code);
    return o;
}

int sas_cancel(struct crypto *c, struct sas *s, const char *code, struct err *e)
{
    free(s->code);
    s->code = xstrdup(code);
    enter(c, s, SAS_CANCELLED);
    return sas_send(c, s, "cancel", sas_cancellation(code), e);
}

/* ---- start, key ---- */

bool sas_offers(const struct json *list, const char *word)
{
    if (json_type(list) != JSON_ARRAY)
        return false;
    for (const struct json *v = json_first(list); v; v = json_next(v))
        if (same(json_text(v), word))
            return true;
    return false;
}

static int started(struct crypto *c, struct sas *s, const struct json *content, struct err *e)
{
    const struct json *macs = json_get(content, "message_authentication_codes");
    const struct json *strings = json_get(content, "short_authentication_string");
    if (s->state != SAS_ASKED)
        return sas_cancel(c, s, "m.unexpected_message", e);
    if (!same(json_str_or(content, "from_device", NULL), s->device))
        return sas_cancel(c, s, "m.key_mismatch", e);
    s->legacy = !sas_offers(macs, "hkdf-hmac-sha256.v2");
    if (!same(json_str_or(content, "method", NULL), "m.sas.v1") ||
        !sas_offers(json_get(content, "key_agreement_protocols"), "curve25519-hkdf-sha256") ||
        !sas_offers(json_get(content, "hashes"), "sha256") || !sas_offers(strings, "decimal") ||
        (s->legacy && !sas_offers(macs, "hkdf-hmac-sha256")))
        return sas_cancel(c, s, "m.unknown_method", e);
    autofree char *commitment = sas_commitment(s->public, content);
    if (!commitment)
        return sas_cancel(c, s, "m.invalid_message", e);
    struct json *o = json_new_object(), *ours = json_new_array();
    json_push(ours, json_new_string("decimal"));
    if (sas_offers(strings, "emoji"))
        json_push(ours, json_new_string("emoji"));
    json_set_str(o, "key_agreement_protocol", "curve25519-hkdf-sha256");
    json_set_str(o, "hash", "sha256");
    json_set_str(o, "message_authentication_code", s->legacy ? "hkdf-hmac-sha256" : "hkdf-hmac-sha256.v2");
    json_set(o, "short_authentication_string", ours);
    json_set_str(o, "commitment", commitment);
    if (!s->room)
        json_set_str(o, "method", "m.sas.v1");
    enter(c, s, SAS_STARTED);
    return sas_send(c, s, "accept", o, e);
}

static int confirm(struct crypto *c, struct sas *s, struct err *e);

static int key_came(struct crypto *c, struct sas *s, const struct json *content, struct err *e)
{
    const char *theirs = json_str_or(content, "key", NULL);
    uint8_t raw[KEY_BYTES];
    struct sas_bytes bytes;
    if (s->state != SAS_STARTED)
        return sas_cancel(c, s, "m.unexpected_message", e);
    if (!b64_is_key(theirs, raw) || !x25519_agree(s->secret, raw, s->shared))
        return sas_cancel(c, s, "m.invalid_message", e);
    const struct sas_side starter = { s->user, s->device, theirs }, accepter = { c->user, c->device, s->public };
    sas_derive(s->shared, &starter, &accepter, s->txn, &bytes);
    s->emoji = sas_emoji(&bytes);
    s->decimal = sas_decimal(&bytes);
    if (sas_send(c, s, "key", obj_of("key", json_new_string(s->public)), e) < 0)
        return -1;
    enter(c, s, SAS_KEYS);
    return c->cfg.sas == CRYPTO_SAS_AUTO ? confirm(c, s, e) : 0;
}

/* ---- mac ---- */

static struct sas_mac ours(const struct crypto *c, const struct sas *s)
{
    return (struct sas_mac){ s->shared, c->user, c->device, s->user, s->device, s->txn, s->legacy };
}

static struct sas_mac theirs(const struct crypto *c, const struct sas *s)
{
    return (struct sas_mac){ s->shared, s->user, s->device, c->user, c->device, s->txn, s->legacy };
}

static void add_mac(struct json *mac, const struct sas_mac *m, const char *id, const char *key)
{
    autofree char *name = xasprintf("ed25519:%s", id);
    autofree char *text = sas_mac(m, name, key);
    json_set_str(mac, name, text);
}

struct names {
    const char *at[16];
    size_t n;
};

static int compare_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* The ids in mac, sorted, with commas; NULL: more than a peer has any use for. */
static char *id_list(const struct json *mac)
{
    struct names l = { 0 };
    struct str out = STR_INIT(8 << 10);
    for (const struct json *m = json_first(mac); m; m = json_next(m)) {
        if (l.n == countof(l.at))
            return NULL;
        l.at[l.n++] = json_key(m);
    }
    qsort(l.at, l.n, sizeof(l.at[0]), compare_text);
    for (size_t i = 0; i < l.n; i++)
        str_printf(&out, "%s%s", i ? "," : "", l.at[i]);
    return str_take(&out);
}

static int send_mac(struct crypto *c, struct sas *s, struct err *e)
{
    struct user *me = NULL;
    const struct sas_mac m = ours(c, s);
    if (user_get(c, c->user, &me, e) < 0)
        return -1;
    struct json *o = json_new_object();
    struct json *mac = child(o, "mac");
    add_mac(mac, &m, c->device, ratchet_account_ed25519(c->account));
    if (me->master)
        add_mac(mac, &m, me->master, me->master);
    autofree char *ids = id_list(mac);
    autofree char *keys = sas_mac(&m, "KEY_IDS", ids);
    json_set_str(o, "keys", keys);
    return sas_send(c, s, "mac", o, e);
}

/* By key, not by id: an id that is both a device's and an identity's could stand for either. */
static bool mac_holds(const struct crypto *c, const struct sas *s, bool *master)
{
    const struct sas_mac m = theirs(c, s);
    const struct json *mac = json_get(s->their_mac, "mac");
    bool device = false;
    autofree char *ids = json_type(mac) == JSON_OBJECT ? id_list(mac) : NULL;
    if (!ids || same(s->device, s->master))
        return false;
    autofree char *keys = sas_mac(&m, "KEY_IDS", ids);
    if (!same(keys, json_str_or(s->their_mac, "keys", NULL)))
        return false;
    for (const struct json *one = json_first(mac); one; one = json_next(one)) {
        const char *id = json_key(one);
        if (strncmp(id, "ed25519:", 8) != 0)
            continue;
        const bool is_device = same(id + 8, s->device), is_master = *s->master && same(id + 8, s->master);
        if (!is_device && !is_master)
            continue; /* nothing that we know */
        autofree char *want = sas_mac(&m, id, is_device ? s->ed25519 : s->master);
        if (!same(want, json_text(one)))
            return false;
        device = device || is_device;
        *master = *master || is_master;
    }
    return device || *master;
}

static int write_down(struct crypto *c, const struct sas *s, bool master, struct err *e)
{
    struct user *u = NULL;
    if (c->cfg.sas != CRYPTO_SAS_OPERATOR || !master)
        return 0;
    if (user_get(c, s->user, &u, e) < 0)
        return -1;
    if (!same(u->master, s->master))
        return 0; /* changed in between: what was compared is gone */
    free(u->verified);
    u->verified = xstrdup(s->master);
    return user_save(c, u, e);
}

static int settle(struct crypto *c, struct sas *s, struct err *e)
{
    bool master = false;
    if (!mac_holds(c, s, &master))
        return sas_cancel(c, s, "m.key_mismatch", e);
    if (write_down(c, s, master, e) < 0)
        return -1;
    enter(c, s, SAS_DONE);
    return sas_send(c, s, "done", json_new_object(), e);
}

static int mac_came(struct crypto *c, struct sas *s, const struct json *content, struct err *e)
{
    if ((s->state != SAS_KEYS && s->state != SAS_CONFIRMED) || s->their_mac)
        return sas_cancel(c, s, "m.unexpected_message", e);
    s->their_mac = json_dup(content);
    return s->state == SAS_CONFIRMED ? settle(c, s, e) : 0;
}

static int confirm(struct crypto *c, struct sas *s, struct err *e)
{
    enter(c, s, SAS_CONFIRMED);
    if (send_mac(c, s, e) < 0)
        return -1;
    return s->their_mac ? settle(c, s, e) : 0;
}

/* ---- what comes ---- */

static int cancelled(struct crypto *c, struct sas *s, const struct json *content)
{
    const char *code = json_str_or(content, "code", "m.user");
    free(s->code);
    s->code = xstrndup(code, 64);
    enter(c, s, SAS_CANCELLED);
    return 0;
}

static int step(struct crypto *c, struct sas *s, const char *what, const struct json *content, struct err *e)
{
    if (sas_is_over(s))
        return 0;
    if (same(what, "cancel"))
        return cancelled(c, s, content);
    if (same(what, "start"))
        return started(c, s, content, e);
    if (same(what, "key"))
        return key_came(c, s, content, e);
    if (same(what, "mac"))
        return mac_came(c, s, content, e);
    if (same(what, "accept"))
        return sas_cancel(c, s, "m.unexpected_message", e);
    return 0; /* done: we said so first. ready: of another device of ours */
}

int sas_todev(struct crypto *c, const char *sender, const char *type, const struct json *content, struct err *e)
{
    const char *txn = json_str_or(content, "transaction_id", NULL), *what = type + strlen("m.key.verification.");
    const char *device = json_str_or(content, "from_device", NULL);
    if (!id_ok(txn))
        return 0;
    if (same(what, "request")) {
        const struct sas_ask a = { .at = { txn, sender, device, NULL },
                                   .content = content,
                                   .ts_ms = json_int_or(content, "timestamp", 0) };
        return sas_asked(c, &a, e);
    }
    struct sas *s = sas_find(c, sender, txn);
    return s && !s->room ? step(c, s, what, content, e) : 0;
}

int crypto_room_verification(struct crypto *c, const struct crypto_room_event *ev, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    const char *prefix = "m.key.verification.";
    if (c->state != CRYPTO_RUNNING || is_me(c, ev->sender) || json_type(ev->content) != JSON_OBJECT)
        return 0;
    if (crypto_enter(c, &b, e) < 0)
        return -1;
    const struct sas_ask a = { .at = { ev->id, ev->sender, json_str_or(ev->content, "from_device", NULL), ev->room },
                               .content = ev->content,
                               .ts_ms = ev->ts_ms };
    const char *txn = text_at(ev->content, "m.relates_to", "event_id");
    struct sas *s = txn ? sas_find(c, ev->sender, txn) : NULL;
    int rc = 0;
    if (same(ev->type, "m.room.message") &&
        same(json_str_or(ev->content, "msgtype", NULL), "m.key.verification.request")) {
        if (same(json_str_or(ev->content, "to", NULL), c->user))
            rc = sas_asked(c, &a, e);
    } else if (strncmp(ev->type, prefix, strlen(prefix)) == 0 && s && same(s->room, ev->room)) {
        rc = step(c, s, ev->type + strlen(prefix), ev->content, e);
    }
    return rc < 0 ? -1 : crypto_leave(c, &b, e);
}

/* ---- the operator, time ---- */

int crypto_sas_answer(struct crypto *c, const char *txn, bool match, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    struct sas *s = sas_find(c, NULL, txn);
    if (!s || s->state != SAS_KEYS)
        return err_set(e, ERR_DATA, "no verification %s waits for an answer", txn);
    if (crypto_enter(c, &b, e) < 0 || (match ? confirm(c, s, e) : sas_cancel(c, s, "m.mismatched_sas", e)) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}

int64_t sas_wake_ms(const struct crypto *c)
{
    int64_t at = INT64_MAX;
    for (const struct sas *s = c->sas; s; s = s->next)
        if (!sas_is_over(s) && s->born_ms + SAS_LIFE_MS < at)
            at = s->born_ms + SAS_LIFE_MS;
    return at;
}

int sas_tick(struct crypto *c, struct err *e)
{
    for (struct sas *s = c->sas; s; s = s->next)
        if (!sas_is_over(s) && now_ms(c) - s->born_ms >= SAS_LIFE_MS && sas_cancel(c, s, "m.timeout", e) < 0)
            return -1;
    return 0;
}
