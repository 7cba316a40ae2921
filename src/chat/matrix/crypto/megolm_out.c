/* megolm_out.c - sending into encrypted rooms: who gets the key, when there has to be another, and never a message before its key. */
#include "crypto_private.h"

/* ---- the key ---- */

static int make_out(struct crypto *c, struct room *r, struct err *e)
{
    struct ratchet_in *own = NULL;
    r->out = ratchet_out_new(&c->env);
    r->out_made_ms = now_ms(c);
    r->out_n = 0;
    r->out_shared_history = r->shared_history;
    autowipe char *key = ratchet_out_key(r->out);
    if (ratchet_in_new(&own, key) != RATCHET_OK)
        abort();
    const struct in_offer o = { .room = r->id,
                                .sender = c->user,
                                .sender_key = ratchet_account_curve25519(c->account),
                                .ed25519 = ratchet_account_ed25519(c->account),
                                .source = IN_OWN,
                                .shared_history = r->shared_history,
                                .take_s = own };
    return mega_in_add(c, &o, e) < 0 ? -1 : room_save_out(c, r, e);
}

static bool is_worn_out(const struct crypto *c, const struct room *r)
{
    return r->out_n >= r->rotate_n || now_ms(c) - r->out_made_ms >= r->rotate_ms || now_ms(c) < r->out_made_ms;
}

/* ---- who gets it ---- */

static const char *refusal_code(const struct crypto *c, const struct user *u, const struct device *d, bool for_all)
{
    if (d->blocked)
        return "m.blacklisted";
    if (user_blocked(u))
        return "m.unverified";
    return for_all || policy_allows(c->cfg.recipients, c->cfg.allow_plain, device_trust(c, u, d)) ? NULL
                                                                                                  : "m.unverified";
}

static bool is_own_device(const struct crypto *c, const struct user *u, const struct device *d)
{
    return is_me(c, u->id) && same(d->id, c->device);
}

/* Somebody has the key who wouldn't get it now: left, logged out, blocked. */
static int lost_reader(struct crypto *c, const struct room *r, bool for_all, bool *lost, struct err *e)
{
    for (const struct map_item *i = r->shares.first; i && !*lost; i = i->next) {
        const struct share *s = i->value;
        const char *space = strrchr(s->at, ' ');
        struct user *u = NULL;
        if (s->code || !space)
            continue;
        autofree char *user = xstrndup(s->at, (size_t)(space - s->at));
        if (user_get(c, user, &u, e) < 0)
            return -1;
        const struct device *d = device_by_id(u, space + 1);
        *lost = !room_member(r, user) || !d || !same(d->curve25519, s->curve25519) || refusal_code(c, u, d, for_all);
    }
    return 0;
}

/* ---- sharing ---- */

struct round { /* one pass over all devices of a room */
    struct room *r;
    bool for_all;      /* this message is for all devices, whatever the policy: verification */
    bool late;         /* waited long enough for others */
    bool waits;        /* for a list or a one-time key */
    struct json *keys; /* {user: {device: encrypted m.room_key}} */
    struct json *no;   /* {user: {device: m.room_key.withheld}} */
};

static struct share *find_share(const struct room *r, const char *at)
{
    return map_get(&r->shares, at);
}

static int put_share(struct crypto *c, struct room *r, const char *at, const struct device *d, const char *code,
                     struct err *e)
{
    struct share *s = find_share(r, at);
    autofree char *kind = xasprintf("e2ee_share:%s", r->id);
    autojson struct json *row = json_new_object();
    if (!s) {
        s = xcalloc(1, sizeof(*s));
        s->at = xstrdup(at);
        map_put(&r->shares, s->at, s);
    }
    memcpy(s->curve25519, d->curve25519, sizeof(s->curve25519));
    s->index = ratchet_out_index(r->out);
    s->wedges = d->wedges;
    free(s->code);
    s->code = xstrdup_or_null(code);
    json_set_str(row, "curve25519", s->curve25519);
    json_set_int(row, "index", s->index);
    json_set_int(row, "wedges", s->wedges);
    if (code)
        json_set_str(row, "code", code);
    return kept_put(c, kind, at, row, e);
}

static struct json *withheld(struct crypto *c, const struct room *r, const char *code)
{
    struct json *o = json_new_object();
    const bool no_olm = same(code, "m.no_olm");
    json_set_str(o, "algorithm", MEGOLM_ALGORITHM);
    json_set_str(o, "code", code);
    json_set_str(o, "reason",
                 no_olm                        ? "no one-time key could be had for this device"
                 : same(code, "m.blacklisted") ? "this device was blocked here"
                                               : "this device is not signed by its owner");
    json_set_str(o, "sender_key", ratchet_account_curve25519(c->account));
    if (!no_olm) {
        json_set_str(o, "room_id", r->id);
        json_set_str(o, "session_id", ratchet_out_id(r->out));
    }
    return o;
}

static int refuse(struct crypto *c, struct round *w, const struct user *u, const struct device *d, const char *at,
                  const char *code, struct err *e)
{
    const struct share *s = find_share(w->r, at);
    if (s && same(s->code, code))
        return 0;
    json_set(child(w->no, u->id), d->id, withheld(c, w->r, code));
    return put_share(c, w->r, at, d, code, e);
}

static int tell_no_olm(struct crypto *c, struct round *w, struct user *u, struct device *d, struct err *e)
{
    if (d->no_olm_told)
        return 0;
    d->no_olm_told = true;
    json_set(child(w->no, u->id), d->id, withheld(c, w->r, "m.no_olm"));
    return user_save(c, u, e);
}

static struct json *room_key(struct room *r)
{
    struct json *o = json_new_object();
    autowipe char *key = ratchet_out_key(r->out);
    json_set_str(o, "algorithm", MEGOLM_ALGORITHM);
    json_set_str(o, "room_id", r->id);
    json_set_str(o, "session_id", ratchet_out_id(r->out));
    json_set_str(o, "session_key", key);
    if (r->out_shared_history)
        json_set_bool(o, "shared_history", true);
    return o;
}

/* No channel: ask for a one-time key and wait, unless there was none lately. */
static int need_channel(struct crypto *c, struct round *w, struct user *u, struct device *d, struct err *e)
{
    if (d->claim_after_ms > now_ms(c))
        return tell_no_olm(c, w, u, d, e);
    channel_want(c, d, false);
    w->waits = true;
    return 0;
}

static int share_with(struct crypto *c, struct round *w, struct user *u, struct device *d, struct err *e)
{
    autofree char *at = xasprintf("%s %s", u->id, d->id);
    const struct share *s = find_share(w->r, at);
    const char *code = refusal_code(c, u, d, w->for_all);
    bool ready = false;
    if (code)
        return refuse(c, w, u, d, at, code, e);
    if (s && !s->code && s->wedges == d->wedges && same(s->curve25519, d->curve25519))
        return 0;
    if (channel_ready(c, d->curve25519, &ready, e) < 0)
        return -1;
    if (!ready)
        return need_channel(c, w, u, d, e);
    autojson struct json *key = room_key(w->r);
    struct json *out = NULL;
    if (channel_encrypt(c, u, d, "m.room_key", key, &out, e) < 0 || !out)
        return -1;
    json_set(child(w->keys, u->id), d->id, out);
    return put_share(c, w->r, at, d, NULL, e);
}

static int share_with_user(struct crypto *c, struct round *w, const char *id, struct err *e)
{
    struct user *u = NULL;
    if (devices_track(c, id, e) < 0 || user_get(c, id, &u, e) < 0)
        return -1;
    if (u->stale && u->ask_after_ms <= now_ms(c))
        w->waits = true; /* do what can be done with the list we have */
    for (size_t i = 0; i < u->device_n; i++)
        if (!is_own_device(c, u, &u->devices[i]) && share_with(c, w, u, &u->devices[i], e) < 0)
            return -1;
    return 0;
}

static int send_round(struct crypto *c, struct round *w, struct err *e)
{
    struct json *keys = w->keys, *no = w->no;
    w->keys = w->no = NULL;
    if (todev_send(c, "m.room.encrypted", w->r->id, keys, e) < 0) {
        json_free(no);
        return -1;
    }
    return todev_send(c, "m.room_key.withheld", NULL, no, e);
}

static int share(struct crypto *c, struct round *w, struct err *e)
{
    int rc = 0;
    w->keys = json_new_object();
    w->no = json_new_object();
    for (const struct map_item *m = w->r->members.first; m && rc == 0; m = m->next)
        rc = share_with_user(c, w, m->key, e);
    if (rc == 0)
        return send_round(c, w, e);
    json_free(w->keys);
    json_free(w->no);
    return -1;
}

/* ---- a message ---- */

static int prepare(struct crypto *c, struct room *r, bool for_all, bool *wait, struct err *e)
{
    struct round w = { .r = r, .for_all = for_all };
    bool lost = false;
    if (lost_reader(c, r, for_all, &lost, e) < 0)
        return -1;
    if (r->out && (lost || is_worn_out(c, r)) && mega_out_drop(c, r, lost ? "a reader is gone" : "used up", e) < 0)
        return -1;
    if (!r->out && make_out(c, r, e) < 0)
        return -1;
    w.late = r->wait_since_ms > 0 && now_ms(c) - r->wait_since_ms >= KEYS_WAIT_MS;
    if (share(c, &w, e) < 0)
        return -1;
    if (w.waits && r->wait_since_ms == 0)
        r->wait_since_ms = now_ms(c);
    *wait = (w.waits && !w.late) || r->sending > 0;
    return 0;
}

static struct json *sealed(struct crypto *c, struct room *r, const char *type, const struct json *content)
{
    autojson struct json *clear = json_new_object();
    struct json *out = json_new_object();
    json_set_str(clear, "type", type);
    json_set(clear, "content", without(content, "m.relates_to", NULL));
    json_set_str(clear, "room_id", r->id);
    autowipe char *text = json_line(clear);
    autofree char *cipher = ratchet_out_encrypt(r->out, text, strlen(text));
    json_set_str(out, "algorithm", MEGOLM_ALGORITHM);
    json_set_str(out, "sender_key", ratchet_account_curve25519(c->account));
    json_set_str(out, "device_id", c->device);
    json_set_str(out, "session_id", ratchet_out_id(r->out));
    json_set_str(out, "ciphertext", cipher);
    if (json_get(content, "m.relates_to"))
        json_set(out, "m.relates_to", json_dup(json_get(content, "m.relates_to")));
    return out;
}

static int encrypt(struct crypto *c, struct room *r, const char *type, const struct json *content,
                   enum crypto_ready *ready, struct json **out, struct err *e)
{
    bool wait = false;
    if (!r->members_known) {
        *ready = CRYPTO_NEED_MEMBERS;
        return 0;
    }
    if (prepare(c, r, strncmp(type, "m.key.verification.", 19) == 0, &wait, e) < 0)
        return -1;
    r->waiting = wait;
    *ready = wait ? CRYPTO_WAIT : CRYPTO_READY;
    if (wait)
        return 0;
    r->wait_since_ms = 0;
    r->out_n++;
    *out = sealed(c, r, type, content);
    return room_save_out(c, r, e); /* before anybody can send it: no index is used twice */
}

int crypto_encrypt(struct crypto *c, const char *room, const char *type, const struct json *content,
                   enum crypto_ready *ready, struct json **out, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    autojson struct json *made = NULL;
    struct room *r = NULL;
    *out = NULL;
    if (c->state == CRYPTO_REFUSED)
        return err_set(e, ERR_REFUSED, "encryption is off: %s", c->refusal);
    if (crypto_enter(c, &b, e) < 0 || room_get(c, room, &r, e) < 0)
        return -1;
    if (r->state != CRYPTO_ROOM_ENCRYPTED)
        return err_set(e, ERR_REFUSED, "%s: its encryption is not known here", room);
    if (c->state == CRYPTO_STARTING) {
        *ready = CRYPTO_WAIT;
        r->waiting = true;
        return 0;
    }
    if (encrypt(c, r, type, content, ready, &made, e) < 0 || crypto_leave(c, &b, e) < 0)
        return -1;
    *out = take(made);
    return 0;
}
