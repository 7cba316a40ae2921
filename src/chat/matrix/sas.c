/* sas.c - answering people who verify us: by to-device messages or in a room, as the side that is asked.
 *
 * request -> ready -> start -> accept (with a commitment to our key) -> their key -> our key -> both compare -> mac <-> mac -> done
 *
 * Comparing is a person's work: the operator's (policy "operator"), or theirs alone (policy "auto", after which we know nothing more about them
 * than before, so nothing is written down). */
#include "sas_math.h"
#include "crypto_private.h"

enum {
    SAS_MAX = 20,
    SAS_LIFE_MS = 10 * MINUTE_MS,
    SAS_AHEAD_MS = 5 * MINUTE_MS, /* timestamps further in the future are refused */
    TXN_MAX = 255,
};

enum sas_state { SAS_ASKED, SAS_STARTED, SAS_KEYS, SAS_CONFIRMED, SAS_DONE, SAS_CANCELLED };
static const char *const state_words[] = { "asked", "started", "keys", "confirmed", "done", "cancelled" };
static const uint8_t may_follow[] = {
    [SAS_ASKED] = 1 << SAS_STARTED | 1 << SAS_CANCELLED,
    [SAS_STARTED] = 1 << SAS_KEYS | 1 << SAS_CANCELLED,
    [SAS_KEYS] = 1 << SAS_CONFIRMED | 1 << SAS_CANCELLED,
    [SAS_CONFIRMED] = 1 << SAS_DONE | 1 << SAS_CANCELLED,
    [SAS_DONE] = 0,
    [SAS_CANCELLED] = 0,
};

struct sas {
    char *txn, *user, *device, *room, *emoji, *decimal, *code;
    enum sas_state state;
    int64_t born_ms;
    bool legacy;
    uint8_t secret[KEY_BYTES], shared[KEY_BYTES];
    char public[KEY_TEXT + 1];
    char ed25519[KEY_TEXT + 1], master[KEY_TEXT + 1]; /* theirs, fixed when they asked; master "": none */
    struct json *their_mac;                           /* came before the operator answered */
    struct sas *next;
};

/* ---- list ---- */

static void sas_free(struct sas *s)
{
    char *const texts[] = { s->txn, s->user, s->device, s->room, s->emoji, s->decimal, s->code };
    for (size_t i = 0; i < countof(texts); i++)
        free(texts[i]);
    json_free(s->their_mac);
    explicit_bzero(s, sizeof(*s));
    free(s);
}

static void parked_clear(struct crypto *c);

void sas_clear(struct crypto *c)
{
    parked_clear(c);
    for (struct sas *s = c->sas, *next; s; s = next) {
        next = s->next;
        sas_free(s);
    }
    c->sas = NULL;
}

static bool is_over(const struct sas *s)
{
    return s->state == SAS_DONE || s->state == SAS_CANCELLED;
}

static struct sas *find(const struct crypto *c, const char *user, const char *txn)
{
    for (struct sas *s = c->sas; s; s = s->next)
        if (same(s->txn, txn) && (!user || same(s->user, user)))
            return s;
    return NULL;
}

static struct crypto_sas shown(const struct sas *s)
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
    const struct crypto_sas now = shown(s);
    log_info("crypto_verification", KV_S("user", s->user), KV_S("state", now.state), KV_S("code", now.code));
    event_sas(c, &now);
}

void crypto_sas_each(struct crypto *c, crypto_sas_fn *fn, void *ud)
{
    for (const struct sas *s = c->sas; s; s = s->next) {
        const struct crypto_sas now = shown(s);
        fn(ud, &now);
    }
}

/* ---- sending ---- */

struct where { /* a verification, or somebody whom we only send a refusal */
    const char *txn, *user, *device, *room;
};

static int post(struct crypto *c, const struct where *w, const char *type, struct json *take_content, struct err *e)
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

static int send_in(struct crypto *c, const struct sas *s, const char *type, struct json *take_content, struct err *e)
{
    return post(c, &(struct where){ s->txn, s->user, s->device, s->room }, type, take_content, e);
}

static struct json *cancellation(const char *code)
{
    struct json *o = json_new_object();
    json_set_str(o, "code", code);
    json_set_str(o, "reason", code);
    return o;
}

static int cancel(struct crypto *c, struct sas *s, const char *code, struct err *e)
{
    free(s->code);
    s->code = xstrdup(code);
    enter(c, s, SAS_CANCELLED);
    return send_in(c, s, "cancel", cancellation(code), e);
}

/* ---- request ---- */

struct ask {
    struct where at;
    const struct json *content;
    int64_t ts_ms;
    bool again; /* after its owner's devices were asked for */
};

static bool offers(const struct json *list, const char *word)
{
    if (json_type(list) != JSON_ARRAY)
        return false;
    for (const struct json *v = json_first(list); v; v = json_next(v))
        if (same(json_text(v), word))
            return true;
    return false;
}

/* Old ones go; when all places are taken by those that run, nobody new gets in. */
static bool make_room(struct crypto *c)
{
    size_t n = 0;
    for (struct sas **at = &c->sas; *at;) {
        struct sas *s = *at;
        if (is_over(s) && now_ms(c) - s->born_ms > SAS_LIFE_MS) {
            *at = s->next;
            sas_free(s);
            continue;
        }
        n++;
        at = &s->next;
    }
    return n < SAS_MAX;
}

static int end_older(struct crypto *c, const char *user, struct err *e)
{
    for (struct sas *s = c->sas; s; s = s->next)
        if (same(s->user, user) && !is_over(s) && cancel(c, s, "m.user", e) < 0)
            return -1;
    return 0;
}

static bool in_time(const struct crypto *c, int64_t ts_ms)
{
    const int64_t now = now_ms(c);
    return ts_ms <= now + SAS_AHEAD_MS && ts_ms >= now - SAS_LIFE_MS;
}

static int open_sas(struct crypto *c, const struct ask *a, const struct user *u, const struct device *d, struct err *e)
{
    struct sas *s = xcalloc(1, sizeof(*s));
    uint8_t raw[KEY_BYTES];
    struct json *ready = json_new_object(), *methods = json_new_array();
    s->txn = xstrdup(a->at.txn);
    s->user = xstrdup(a->at.user);
    s->device = xstrdup(a->at.device);
    s->room = a->at.room ? xstrdup(a->at.room) : NULL;
    s->born_ms = now_ms(c);
    memcpy(s->ed25519, d->ed25519, sizeof(s->ed25519));
    if (b64_is_key(u->master, raw))
        memcpy(s->master, u->master, sizeof(s->master));
    random_bytes(c, s->secret, sizeof(s->secret));
    x25519_public(s->secret, raw);
    b64_key(s->public, raw);
    s->next = c->sas;
    c->sas = s;
    const struct crypto_sas now = shown(s);
    event_sas(c, &now);
    json_push(methods, json_new_string("m.sas.v1"));
    json_set_str(ready, "from_device", c->device);
    json_set(ready, "methods", methods);
    return send_in(c, s, "ready", ready, e);
}

static int refuse(struct crypto *c, const struct ask *a, const char *code, struct err *e)
{
    return post(c, &a->at, "cancel", cancellation(code), e);
}

/* ---- requests whose device nobody told us about: they wait for its owner's list ---- */

struct parked {
    char *txn, *user, *device, *room;
    struct json *content;
    int64_t ts_ms;
    struct parked *next;
};

static void parked_free(struct parked *p)
{
    free(p->txn);
    free(p->user);
    free(p->device);
    free(p->room);
    json_free(p->content);
    free(p);
}

static void parked_clear(struct crypto *c)
{
    for (struct parked *p = c->parked, *next; p; p = next) {
        next = p->next;
        parked_free(p);
    }
    c->parked = NULL;
}

/* One for each user, the newest; beyond SAS_MAX of them nobody waits. */
static int park(struct crypto *c, const struct ask *a, struct err *e)
{
    size_t n = 0;
    struct parked **at = &c->parked;
    while (*at && !same((*at)->user, a->at.user)) {
        at = &(*at)->next;
        n++;
    }
    if (n >= SAS_MAX)
        return 0;
    struct parked *old = *at, *p = xcalloc(1, sizeof(*p));
    *p = (struct parked){ .txn = xstrdup(a->at.txn),
                          .user = xstrdup(a->at.user),
                          .device = xstrdup(a->at.device),
                          .room = a->at.room ? xstrdup(a->at.room) : NULL,
                          .content = json_dup(a->content),
                          .ts_ms = a->ts_ms,
                          .next = old ? old->next : NULL };
    *at = p;
    if (old)
        parked_free(old);
    return devices_track(c, a->at.user, e) < 0 ? -1 : devices_stale(c, a->at.user, e);
}

static int asked(struct crypto *c, const struct ask *a, struct err *e)
{
    struct user *u = NULL;
    if (!id_ok(a->at.device) || !id_ok(a->at.txn) || !in_time(c, a->ts_ms) || find(c, NULL, a->at.txn) ||
        (is_me(c, a->at.user) && same(a->at.device, c->device)))
        return 0;
    if (user_get(c, a->at.user, &u, e) < 0)
        return -1;
    const struct device *d = device_by_id(u, a->at.device);
    if (!d && !a->again && c->cfg.sas != CRYPTO_SAS_OFF)
        return park(c, a, e);
    if (c->cfg.sas == CRYPTO_SAS_OFF || !d || d->blocked || !make_room(c))
        return refuse(c, a, "m.user", e);
    if (!offers(json_get(a->content, "methods"), "m.sas.v1"))
        return refuse(c, a, "m.unknown_method", e);
    return end_older(c, a->at.user, e) < 0 ? -1 : open_sas(c, a, u, d, e);
}

int sas_devices_came(struct crypto *c, const char *user, struct err *e)
{
    struct parked **at = &c->parked;
    while (*at && !same((*at)->user, user))
        at = &(*at)->next;
    struct parked *p = *at;
    if (!p)
        return 0;
    *at = p->next;
    const struct ask a = {
        .at = { p->txn, p->user, p->device, p->room }, .content = p->content, .ts_ms = p->ts_ms, .again = true
    };
    const int rc = asked(c, &a, e);
    parked_free(p);
    return rc;
}

/* ---- start, key ---- */

static int started(struct crypto *c, struct sas *s, const struct json *content, struct err *e)
{
    const struct json *macs = json_get(content, "message_authentication_codes");
    const struct json *strings = json_get(content, "short_authentication_string");
    if (s->state != SAS_ASKED)
        return cancel(c, s, "m.unexpected_message", e);
    if (!same(json_str_or(content, "from_device", NULL), s->device))
        return cancel(c, s, "m.key_mismatch", e);
    s->legacy = !offers(macs, "hkdf-hmac-sha256.v2");
    if (!same(json_str_or(content, "method", NULL), "m.sas.v1") ||
        !offers(json_get(content, "key_agreement_protocols"), "curve25519-hkdf-sha256") ||
        !offers(json_get(content, "hashes"), "sha256") || !offers(strings, "decimal") ||
        (s->legacy && !offers(macs, "hkdf-hmac-sha256")))
        return cancel(c, s, "m.unknown_method", e);
    autofree char *commitment = sas_commitment(s->public, content);
    if (!commitment)
        return cancel(c, s, "m.invalid_message", e);
    struct json *o = json_new_object(), *ours = json_new_array();
    json_push(ours, json_new_string("decimal"));
    if (offers(strings, "emoji"))
        json_push(ours, json_new_string("emoji"));
    json_set_str(o, "key_agreement_protocol", "curve25519-hkdf-sha256");
    json_set_str(o, "hash", "sha256");
    json_set_str(o, "message_authentication_code", s->legacy ? "hkdf-hmac-sha256" : "hkdf-hmac-sha256.v2");
    json_set(o, "short_authentication_string", ours);
    json_set_str(o, "commitment", commitment);
    if (!s->room)
        json_set_str(o, "method", "m.sas.v1");
    enter(c, s, SAS_STARTED);
    return send_in(c, s, "accept", o, e);
}

static int confirm(struct crypto *c, struct sas *s, struct err *e);

static int key_came(struct crypto *c, struct sas *s, const struct json *content, struct err *e)
{
    const char *theirs = json_str_or(content, "key", NULL);
    uint8_t raw[KEY_BYTES];
    struct sas_bytes bytes;
    if (s->state != SAS_STARTED)
        return cancel(c, s, "m.unexpected_message", e);
    if (!b64_is_key(theirs, raw) || !x25519_agree(s->secret, raw, s->shared))
        return cancel(c, s, "m.invalid_message", e);
    const struct sas_side starter = { s->user, s->device, theirs }, accepter = { c->user, c->device, s->public };
    sas_derive(s->shared, &starter, &accepter, s->txn, &bytes);
    s->emoji = sas_emoji(&bytes);
    s->decimal = sas_decimal(&bytes);
    if (send_in(c, s, "key", obj_of("key", json_new_string(s->public)), e) < 0)
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
    return send_in(c, s, "mac", o, e);
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
        return cancel(c, s, "m.key_mismatch", e);
    if (write_down(c, s, master, e) < 0)
        return -1;
    enter(c, s, SAS_DONE);
    return send_in(c, s, "done", json_new_object(), e);
}

static int mac_came(struct crypto *c, struct sas *s, const struct json *content, struct err *e)
{
    if ((s->state != SAS_KEYS && s->state != SAS_CONFIRMED) || s->their_mac)
        return cancel(c, s, "m.unexpected_message", e);
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
    if (is_over(s))
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
        return cancel(c, s, "m.unexpected_message", e);
    return 0; /* done: we said so first. ready: of another device of ours */
}

int sas_todev(struct crypto *c, const char *sender, const char *type, const struct json *content, struct err *e)
{
    const char *txn = json_str_or(content, "transaction_id", NULL), *what = type + strlen("m.key.verification.");
    const char *device = json_str_or(content, "from_device", NULL);
    if (!id_ok(txn))
        return 0;
    if (same(what, "request")) {
        const struct ask a = { .at = { txn, sender, device, NULL },
                               .content = content,
                               .ts_ms = json_int_or(content, "timestamp", 0) };
        return asked(c, &a, e);
    }
    struct sas *s = find(c, sender, txn);
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
    const struct ask a = { .at = { ev->id, ev->sender, json_str_or(ev->content, "from_device", NULL), ev->room },
                           .content = ev->content,
                           .ts_ms = ev->ts_ms };
    const char *txn = text_at(ev->content, "m.relates_to", "event_id");
    struct sas *s = txn ? find(c, ev->sender, txn) : NULL;
    int rc = 0;
    if (same(ev->type, "m.room.message") &&
        same(json_str_or(ev->content, "msgtype", NULL), "m.key.verification.request")) {
        if (same(json_str_or(ev->content, "to", NULL), c->user))
            rc = asked(c, &a, e);
    } else if (strncmp(ev->type, prefix, strlen(prefix)) == 0 && s && same(s->room, ev->room)) {
        rc = step(c, s, ev->type + strlen(prefix), ev->content, e);
    }
    return rc < 0 ? -1 : crypto_leave(c, &b, e);
}

/* ---- the operator, time ---- */

int crypto_sas_answer(struct crypto *c, const char *txn, bool match, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    struct sas *s = find(c, NULL, txn);
    if (!s || s->state != SAS_KEYS)
        return err_set(e, ERR_DATA, "no verification %s waits for an answer", txn);
    if (crypto_enter(c, &b, e) < 0 || (match ? confirm(c, s, e) : cancel(c, s, "m.mismatched_sas", e)) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}

int crypto_sas_cancel(struct crypto *c, const char *txn, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    struct sas *s = find(c, NULL, txn);
    if (!s || is_over(s))
        return err_set(e, ERR_DATA, "no verification %s runs", txn);
    if (crypto_enter(c, &b, e) < 0 || cancel(c, s, "m.user", e) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}

int64_t sas_wake_ms(const struct crypto *c)
{
    int64_t at = INT64_MAX;
    for (const struct sas *s = c->sas; s; s = s->next)
        if (!is_over(s) && s->born_ms + SAS_LIFE_MS < at)
            at = s->born_ms + SAS_LIFE_MS;
    return at;
}

int sas_tick(struct crypto *c, struct err *e)
{
    for (struct sas *s = c->sas; s; s = s->next)
        if (!is_over(s) && now_ms(c) - s->born_ms >= SAS_LIFE_MS && cancel(c, s, "m.timeout", e) < 0)
            return -1;
    return 0;
}
