/* crypto_channel.c - Olm: one channel to each device, made of up to five sessions. What arrives here comes from anybody; after it was
 * decrypted it comes from whoever has sender_key, and only the checks in read_message() say who that is. */
#include "crypto_private.h"

enum {
    PAYLOAD_MAX = 128 << 10,
    DESYNC_PREKEYS = 5,
    STRANGERS_MAX = 50, /* nobody gets that many new devices in an hour; each costs a row, and keys are free to make */
};

/* ---- sessions ---- */

static void channel_free(void *value)
{
    struct channel *ch = value;
    for (size_t i = 0; i < ch->n; i++)
        ratchet_session_free(ch->at[i].s);
    free(ch);
}

void channels_clear(struct crypto *c)
{
    map_clear(&c->channels, channel_free);
}

struct load {
    struct crypto *c;
    struct channel *ch;
    struct err *e;
    bool broken;
};

static int load_session(void *ud, const char *key, const struct json *v)
{
    struct load *l = ud;
    struct ratchet_session *s = NULL;
    struct err e = { 0 };
    if (l->ch->n == OLM_SESSIONS_MAX)
        return 0;
    if (ratchet_session_unpickle(&s, json_str_or(v, "pickle", ""), &l->c->env, &e) < 0) {
        if (e.kind == ERR_CONFIG) {
            *l->e = e;
            l->broken = true;
            return -1;
        }
        log_warn("crypto_session_damaged", KV_S("key", key), KV_E(&e));
        return 0;
    }
    l->ch->at[l->ch->n++] = (struct channel_session){ s, json_int_or(v, "made", 0), json_int_or(v, "heard", 0) };
    return 0;
}

static int channel_get(struct crypto *c, const char *curve25519, struct channel **out, struct err *e)
{
    *out = map_get(&c->channels, curve25519);
    if (*out)
        return 0;
    struct channel *ch = xcalloc(1, sizeof(*ch));
    struct load l = { c, ch, e, false };
    autofree char *prefix = xasprintf("%s ", curve25519);
    memcpy(ch->curve25519, curve25519, KEY_TEXT + 1);
    if (kept_each(c, "e2ee_olm", prefix, load_session, &l, e) < 0 || l.broken) {
        channel_free(ch);
        return -1;
    }
    map_put(&c->channels, ch->curve25519, ch);
    *out = ch;
    return 0;
}

static int save_session(struct crypto *c, const struct channel *ch, const struct channel_session *s, struct err *e)
{
    autojson struct json *row = json_new_object();
    autofree char *key = xasprintf("%s %s", ch->curve25519, ratchet_session_id(s->s));
    autofree char *pickle = ratchet_session_pickle(s->s, &c->env);
    json_set_str(row, "pickle", pickle);
    json_set_int(row, "made", s->made_ms);
    json_set_int(row, "heard", s->heard_ms);
    return kept_put(c, "e2ee_olm", key, row, e);
}

static struct channel_session *oldest(struct channel *ch)
{
    struct channel_session *old = &ch->at[0];
    for (size_t i = 1; i < ch->n; i++)
        if (ch->at[i].heard_ms < old->heard_ms)
            old = &ch->at[i];
    return old;
}

/* Takes s. The one that was silent longest makes room. */
static int add_session(struct crypto *c, struct channel *ch, struct ratchet_session *s, struct err *e)
{
    const int64_t now = now_ms(c);
    if (ch->n == OLM_SESSIONS_MAX) {
        struct channel_session *old = oldest(ch);
        autofree char *key = xasprintf("%s %s", ch->curve25519, ratchet_session_id(old->s));
        ratchet_session_free(old->s);
        *old = ch->at[--ch->n];
        if (kept_drop(c, "e2ee_olm", key, e) < 0) {
            ratchet_session_free(s);
            return -1;
        }
    }
    ch->at[ch->n++] = (struct channel_session){ s, now, now };
    return save_session(c, ch, &ch->at[ch->n - 1], e);
}

/* The one we heard through last: the other side uses it, too. */
static struct channel_session *best(struct channel *ch)
{
    struct channel_session *b = NULL;
    for (size_t i = 0; i < ch->n; i++)
        if (!b || ch->at[i].heard_ms >= b->heard_ms)
            b = &ch->at[i];
    return b;
}

int channel_ready(struct crypto *c, const char *curve25519, bool *ready, struct err *e)
{
    struct channel *ch = NULL;
    if (channel_get(c, curve25519, &ch, e) < 0)
        return -1;
    *ready = ch->n > 0;
    return 0;
}

/* ---- sending ---- */

static struct json *payload(struct crypto *c, const struct user *u, const struct device *d, const char *type,
                            const struct json *content)
{
    struct json *p = json_new_object();
    json_set_str(p, "type", type);
    json_set(p, "content", json_dup(content));
    json_set_str(p, "sender", c->user);
    json_set_str(p, "recipient", u->id);
    json_set_str(child(p, "recipient_keys"), "ed25519", d->ed25519);
    json_set_str(child(p, "keys"), "ed25519", ratchet_account_ed25519(c->account));
    json_set(p, "sender_device_keys", own_device_keys(c));
    return p;
}

int channel_encrypt(struct crypto *c, const struct user *u, const struct device *d, const char *type,
                    const struct json *content, struct json **out, struct err *e)
{
    struct channel *ch = NULL;
    *out = NULL;
    if (channel_get(c, d->curve25519, &ch, e) < 0)
        return -1;
    struct channel_session *s = best(ch);
    if (!s)
        return 0;
    autojson struct json *clear = payload(c, u, d, type, content);
    autowipe char *text = json_line(clear);
    autofree char *body = NULL;
    int kind = 0;
    ratchet_session_encrypt(s->s, text, strlen(text), &c->env, &kind, &body);
    if (save_session(c, ch, s, e) < 0)
        return -1;
    *out = json_new_object();
    json_set_str(*out, "algorithm", OLM_ALGORITHM);
    json_set_str(*out, "sender_key", ratchet_account_curve25519(c->account));
    struct json *mine = child(child(*out, "ciphertext"), d->curve25519);
    json_set_int(mine, "type", kind);
    json_set_str(mine, "body", body);
    return 0;
}

/* ---- claiming one-time keys ---- */

void channel_want(struct crypto *c, struct device *d, bool unwedge)
{
    d->wanted = true;
    d->unwedge = d->unwedge || unwedge;
    c->claim_due_ms = 0;
}

static int claimed(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e);

static bool add_wanted(struct crypto *c, const struct user *u, struct json *wanted, int64_t now)
{
    bool any = false;
    for (size_t i = 0; i < u->device_n; i++) {
        const struct device *d = &u->devices[i];
        if (!d->wanted)
            continue;
        if (d->claim_after_ms > now) {
            c->claim_due_ms = d->claim_after_ms < c->claim_due_ms ? d->claim_after_ms : c->claim_due_ms;
            continue;
        }
        json_set_str(child(wanted, u->id), d->id, "signed_curve25519");
        any = true;
    }
    return any;
}

int channel_plan(struct crypto *c, struct err *e)
{
    const int64_t now = now_ms(c);
    (void)e;
    if (now < c->claim_due_ms || c->state != CRYPTO_RUNNING || req_pending(c, "keys_claim"))
        return 0;
    struct json *body = json_new_object();
    struct json *wanted = child(body, "one_time_keys");
    bool any = false;
    c->claim_due_ms = INT64_MAX;
    for (const struct map_item *i = c->users.first; i; i = i->next)
        any = add_wanted(c, i->value, wanted, now) || any;
    if (!any) {
        json_free(body);
        return 0;
    }
    json_set_int(body, "timeout", KEYS_WAIT_MS);
    struct json *asked = json_dup(wanted);
    req_add(c, "keys_claim", "POST", xstrdup("/_matrix/client/v3/keys/claim"), body, claimed)->data = asked;
    return 0;
}

/* The key of the one object in there, if its device signed it; NULL: anything else. */
static const char *claimed_key(const struct json *keys, const struct user *u, const struct device *d)
{
    const struct json *one = json_type(keys) == JSON_OBJECT ? json_first(keys) : NULL;
    const char *name = json_key(one), *key = json_str_or(one, "key", NULL);
    if (!name || strncmp(name, "signed_curve25519:", 18) != 0 || !x25519_is_sane(key))
        return NULL;
    return signed_by(one, u->id, d->id, d->ed25519) ? key : NULL;
}

static int send_dummy(struct crypto *c, const struct user *u, const struct device *d, struct err *e)
{
    autojson struct json *empty = json_new_object();
    struct json *content = NULL;
    if (channel_encrypt(c, u, d, "m.dummy", empty, &content, e) < 0 || !content)
        return content ? 0 : -1;
    log_info("crypto_unwedged", KV_S("user", u->id), KV_S("device", d->id));
    return todev_send(c, "m.room.encrypted", NULL, obj_of(u->id, obj_of(d->id, content)), e);
}

static int use_claimed(struct crypto *c, struct user *u, struct device *d, const struct json *keys, struct err *e)
{
    const char *key = claimed_key(keys, u, d);
    struct ratchet_session *s = NULL;
    struct channel *ch = NULL;
    const bool unwedge = d->unwedge;
    d->wanted = d->unwedge = false;
    if (!key || ratchet_session_outbound(&s, c->account, d->curve25519, key, &c->env) != RATCHET_OK) {
        d->claim_after_ms = now_ms(c) + backoff_ms(d->claim_fails++);
        log_info("crypto_no_one_time_key", KV_S("user", u->id), KV_S("device", d->id));
        return 0;
    }
    d->claim_fails = 0;
    d->claim_after_ms = 0;
    if (channel_get(c, d->curve25519, &ch, e) < 0) {
        ratchet_session_free(s);
        return -1;
    }
    if (add_session(c, ch, s, e) < 0)
        return -1;
    if (d->no_olm_told) {
        d->no_olm_told = false;
        if (user_save(c, u, e) < 0)
            return -1;
    }
    return unwedge ? send_dummy(c, u, d, e) : 0;
}

static int claimed(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    const struct json *got = req_ok(status) ? json_get(body, "one_time_keys") : NULL;
    for (const struct json *who = json_first(r->data); who; who = json_next(who)) {
        struct user *u = NULL;
        if (user_get(c, json_key(who), &u, e) < 0)
            return -1;
        for (const struct json *dev = json_first(who); dev; dev = json_next(dev)) {
            struct device *d = device_by_id(u, json_key(dev));
            if (d && use_claimed(c, u, d, json_get(json_get(got, u->id), d->id), e) < 0)
                return -1;
        }
    }
    room_wake(c, NULL);
    return 0;
}

/* ---- broken channels ---- */

int channel_unwedge(struct crypto *c, struct user *u, const char *curve25519, struct err *e)
{
    const int64_t now = now_ms(c);
    struct device *d = device_by_key(u, curve25519);
    if (!d) { /* again, when its owner's list has come */
        memcpy(u->unwedge_key, curve25519, KEY_TEXT + 1);
        return devices_track(c, u->id, e) < 0 ? -1 : devices_stale(c, u->id, e);
    }
    if (now - d->unwedged_ms < HOUR_MS)
        return 0;
    d->unwedged_ms = now;
    d->wedges++;
    channel_want(c, d, true);
    return user_save(c, u, e);
}

/* Several pre-key messages to keys that we don't have: did this store lose them? */
static void count_bad_prekey(struct crypto *c)
{
    const int64_t now = now_ms(c);
    if (now - c->own.bad_prekeys_ms > HOUR_MS) {
        c->own.bad_prekeys = 0;
        c->own.bad_prekeys_ms = now;
    }
    if (++c->own.bad_prekeys == DESYNC_PREKEYS)
        event_alarm(c, CRYPTO_ALARM_DESYNC, "devices of others use one-time keys that this store does not have");
}

/* ---- receiving ---- */

struct incoming {
    const char *sender, *sender_key, *body;
    int type;
};

static bool read_envelope(const struct crypto *c, const struct json *event, struct incoming *in)
{
    const struct json *content = json_get(event, "content");
    const struct json *mine = json_get(json_get(content, "ciphertext"), ratchet_account_curve25519(c->account));
    *in = (struct incoming){ .sender = json_str_or(event, "sender", NULL),
                             .sender_key = json_str_or(content, "sender_key", NULL),
                             .body = json_str_or(mine, "body", NULL),
                             .type = (int)json_int_or(mine, "type", -1) };
    return same(json_str_or(content, "algorithm", NULL), OLM_ALGORITHM) && id_ok(in->sender) && in->body &&
           json_int_or(mine, "type", -1) == in->type && (in->type == 0 || in->type == 1) &&
           x25519_is_sane(in->sender_key);
}

static int seen_before(struct crypto *c, const struct incoming *in, bool *seen, struct err *e)
{
    uint8_t hash[DIGEST_BYTES];
    char key[KEY_TEXT + 1];
    autojson struct json *row = NULL;
    struct digest *d = digest_new();
    const char type = (char)('0' + in->type);
    digest_add(d, in->sender_key, KEY_TEXT);
    digest_add(d, &type, 1);
    digest_add(d, in->body, strlen(in->body));
    digest_end(d, hash);
    digest_free(d);
    b64_key(key, hash);
    if (kept_get(c, "e2ee_hash", key, &row, e) < 0)
        return -1;
    *seen = row != NULL;
    if (row)
        return 0;
    autojson struct json *when = json_new_number((double)now_ms(c));
    return kept_put(c, "e2ee_hash", key, when, e);
}

/* Sessions by when they were heard, newest first. */
static void order(const struct channel *ch, size_t at[OLM_SESSIONS_MAX])
{
    for (size_t i = 0; i < ch->n; i++) {
        size_t k = i;
        for (; k > 0 && ch->at[at[k - 1]].heard_ms < ch->at[i].heard_ms; k--)
            at[k] = at[k - 1];
        at[k] = i;
    }
}

enum heard { HEARD, HEARD_NONE, HEARD_WEDGED };

static enum heard by_known_sessions(struct crypto *c, struct channel *ch, const struct incoming *in, char **text,
                                    size_t *n, size_t *which)
{
    size_t at[OLM_SESSIONS_MAX + 1] = { 0 };
    order(ch, at);
    for (size_t i = 0; i < ch->n; i++) {
        struct channel_session *s = &ch->at[at[i]];
        const bool first = in->type == 0;
        if (first && !ratchet_session_matches(s->s, in->sender_key, in->body))
            continue;
        if (ratchet_session_decrypt(s->s, in->type, in->body, text, n) == RATCHET_OK) {
            s->heard_ms = now_ms(c);
            *which = at[i];
            return HEARD;
        }
        if (first)
            return HEARD_WEDGED;
    }
    return in->type == 0 ? HEARD_NONE : HEARD_WEDGED;
}

/* A new session is kept, and its one-time key used up, only after its first message was read. */
static int by_new_session(struct crypto *c, struct channel *ch, const struct incoming *in, char **text, size_t *n,
                          enum heard *how, struct err *e)
{
    struct ratchet_session *s = NULL;
    *how = HEARD_WEDGED;
    if (ratchet_session_inbound(&s, c->account, in->sender_key, in->body) != RATCHET_OK) {
        count_bad_prekey(c);
        return 0;
    }
    if (ratchet_session_decrypt(s, 0, in->body, text, n) != RATCHET_OK) {
        ratchet_session_free(s);
        return 0;
    }
    ratchet_account_used(c->account, s);
    *how = HEARD;
    return add_session(c, ch, s, e) < 0 ? -1 : own_save(c, e);
}

/* A channel from a key that is no device's: of a device that is new, as a rule. */
static bool is_one_too_many(const struct crypto *c, struct user *u, const char *sender_key)
{
    const int64_t now = now_ms(c);
    if (device_by_key(u, sender_key))
        return false;
    if (now - u->strangers_ms > HOUR_MS) {
        u->strangers_ms = now;
        u->strangers = 0;
    }
    if (++u->strangers <= STRANGERS_MAX)
        return false;
    if (u->strangers == STRANGERS_MAX + 1)
        log_warn("crypto_strangers_refused", KV_S("user", u->id));
    return true;
}

static int note_new_session(struct crypto *c, struct user *u, const char *sender_key, struct err *e)
{
    struct device *d = device_by_key(u, sender_key);
    if (!d)
        return 0;
    d->wedges++; /* keys that went through the old channel may be lost */
    return user_save(c, u, e);
}

static bool sender_keys_ok(const struct json *o, const struct incoming *in, const char *ed25519)
{
    const char *id = json_str_or(o, "device_id", NULL);
    if (!id_ok(id))
        return false;
    autofree char *curve = xasprintf("curve25519:%s", id), *ed = xasprintf("ed25519:%s", id);
    return device_object_ok(o, in->sender, id) && same(text_at(o, "keys", curve), in->sender_key) &&
           same(text_at(o, "keys", ed), ed25519);
}

/* Every check here is against a named forgery: another sender, another recipient, keys of somebody else's device. */
static bool read_message(const struct crypto *c, const struct incoming *in, const struct json *clear,
                         const struct user *u, struct olm_message *m)
{
    const struct json *keys = json_get(clear, "sender_device_keys");
    const struct device *d = device_by_key(u, in->sender_key);
    *m = (struct olm_message){ .sender = in->sender,
                               .sender_key = in->sender_key,
                               .ed25519 = text_at(clear, "keys", "ed25519"),
                               .device = d ? d->id : NULL,
                               .type = json_str_or(clear, "type", NULL),
                               .content = json_get(clear, "content"),
                               .trust = device_trust(c, u, d) };
    return same(json_str_or(clear, "sender", NULL), in->sender) &&
           same(json_str_or(clear, "recipient", NULL), c->user) &&
           same(text_at(clear, "recipient_keys", "ed25519"), ratchet_account_ed25519(c->account)) && m->ed25519 &&
           strlen(m->ed25519) == KEY_TEXT && m->type && json_type(m->content) == JSON_OBJECT &&
           (!d || same(d->ed25519, m->ed25519)) && (!keys || sender_keys_ok(keys, in, m->ed25519));
}

static int take_message(struct crypto *c, const struct incoming *in, struct user *u, const char *text, size_t n,
                        struct err *e)
{
    autojson struct json *clear = NULL;
    struct olm_message m = { 0 };
    struct err bad = { 0 };
    if (json_parse(&clear, text, n, PAYLOAD_MAX, &bad) < 0 || !read_message(c, in, clear, u, &m)) {
        log_warn("crypto_olm_forged", KV_S("sender", in->sender), KV_S("sender_key", in->sender_key));
        return 0;
    }
    if (!m.device && (devices_track(c, in->sender, e) < 0 || devices_stale(c, in->sender, e) < 0))
        return -1;
    return todev_olm(c, &m, e);
}

int channel_receive(struct crypto *c, const struct json *event, struct err *e)
{
    struct incoming in;
    struct channel *ch = NULL;
    struct user *u = NULL;
    bool seen = false;
    if (!read_envelope(c, event, &in))
        return 0;
    if (seen_before(c, &in, &seen, e) < 0 || seen)
        return seen ? 0 : -1;
    if (channel_get(c, in.sender_key, &ch, e) < 0 || user_get(c, in.sender, &u, e) < 0)
        return -1;
    autowipe char *text = NULL;
    size_t n = 0, which = 0;
    enum heard how = by_known_sessions(c, ch, &in, &text, &n, &which);
    if (how == HEARD && save_session(c, ch, &ch->at[which], e) < 0)
        return -1;
    if (how == HEARD_NONE && is_one_too_many(c, u, in.sender_key))
        return 0;
    if (how == HEARD_NONE && (by_new_session(c, ch, &in, &text, &n, &how, e) < 0 ||
                              (how == HEARD && note_new_session(c, u, in.sender_key, e) < 0)))
        return -1;
    if (how == HEARD)
        return take_message(c, &in, u, text, n, e);
    log_info("crypto_channel_broken", KV_S("sender", in.sender), KV_I("type", in.type));
    return channel_unwedge(c, u, in.sender_key, e);
}
