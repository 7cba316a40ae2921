/* megolm_in.c - room keys that came, and reading messages with them. A key is looked up by room and session only; what an event says about
 * its device is never believed. */
#include <inttypes.h>
#include "crypto_private.h"

enum { PAYLOAD_MAX = 128 << 10, CODE_MAX = 64 };

/* ---- rows ---- */

static void in_free(void *value)
{
    struct in_key *k = value;
    ratchet_in_free(k->s);
    free(k->at);
    free(k->sender);
    free(k->sender_key);
    free(k->ed25519);
    free(k);
}

void mega_in_clear(struct crypto *c)
{
    map_clear(&c->in, in_free);
}

/* The table is in the order of use: what is at its front was not used for longest. */
static void cache(struct crypto *c, struct in_key *k)
{
    map_put(&c->in, k->at, k);
    if (c->in.n > IN_CACHE_MAX)
        in_free(map_take(&c->in, c->in.first->key));
}

static const char *const source_words[] = {
    [IN_DIRECT] = "direct", [IN_BACKUP] = "backup", [IN_FORWARDED] = "forwarded", [IN_OWN] = "own"
};

static int save(struct crypto *c, struct in_key *k, struct err *e)
{
    autojson struct json *row = json_new_object();
    autofree char *pickle = ratchet_in_pickle(k->s, &c->env);
    json_set_str(row, "pickle", pickle);
    json_set_str(row, "source", source_words[k->source]);
    json_set_str(row, "sender", k->sender);
    json_set_str(row, "sender_key", k->sender_key);
    json_set_str(row, "ed25519", k->ed25519);
    json_set_bool(row, "shared_history", k->shared_history);
    return kept_put(c, "e2ee_in", k->at, row, e);
}

static char *dup_text(const struct json *row, const char *key)
{
    const char *text = json_str_or(row, key, NULL);
    return xstrdup_or_null(text);
}

static enum in_source read_source(const char *word)
{
    for (size_t i = 0; i < countof(source_words); i++)
        if (same(word, source_words[i]))
            return (enum in_source)i;
    return IN_BACKUP;
}

static char *key_at(const char *room, const char *session)
{
    return xasprintf("%s %s", room, session);
}

int mega_in_get(struct crypto *c, const char *room, const char *session, struct in_key **out, struct err *e)
{
    autofree char *at = key_at(room, session);
    autojson struct json *row = NULL;
    struct in_key *k = map_take(&c->in, at);
    *out = k;
    if (k) {
        map_put(&c->in, k->at, k);
        return 0;
    }
    if (kept_get(c, "e2ee_in", at, &row, e) < 0)
        return -1;
    if (!row)
        return 0;
    k = xcalloc(1, sizeof(*k));
    k->at = take(at);
    k->source = read_source(json_str_or(row, "source", NULL));
    k->sender = dup_text(row, "sender");
    k->sender_key = dup_text(row, "sender_key");
    k->ed25519 = dup_text(row, "ed25519");
    k->shared_history = json_bool_or(row, "shared_history", false);
    if (ratchet_in_unpickle(&k->s, json_str_or(row, "pickle", ""), &c->env, e) < 0) {
        in_free(k);
        return -1;
    }
    cache(c, k);
    *out = k;
    return 0;
}

/* ---- keys that come ---- */

/* Both are the same ratchet: they agree where both are known. */
static bool same_ratchet(struct ratchet_in *a, struct ratchet_in *b)
{
    const uint32_t x = ratchet_in_first(a), y = ratchet_in_first(b), at = x > y ? x : y;
    autowipe char *one = ratchet_in_export(a, at), *two = ratchet_in_export(b, at);
    return one && two && strcmp(one, two) == 0;
}

static void set_text(char **to, const char *text)
{
    free(*to);
    *to = xstrdup_or_null(text);
}

static bool is_firsthand(enum in_source s)
{
    return s == IN_DIRECT || s == IN_OWN;
}

static void set_origin(struct in_key *k, const struct in_offer *o)
{
    k->source = o->source;
    k->shared_history = o->shared_history;
    set_text(&k->sender, o->sender);
    set_text(&k->sender_key, o->sender_key);
    set_text(&k->ed25519, o->ed25519);
}

/* true: k changed. */
static bool merge(struct in_key *k, const struct in_offer *o, struct ratchet_in **s)
{
    bool changed = false;
    if (!same_ratchet(k->s, *s))
        return false;
    if (ratchet_in_first(*s) < ratchet_in_first(k->s)) {
        struct ratchet_in *old = k->s;
        k->s = *s;
        *s = old;
        changed = true;
    }
    if (is_firsthand(o->source) && !is_firsthand(k->source)) {
        set_origin(k, o);
        changed = true;
    }
    return changed;
}

static int drop_withheld(struct crypto *c, const char *at, struct err *e)
{
    return kept_drop(c, "e2ee_withheld", at, e);
}

static void free_in(struct ratchet_in **s)
{
    ratchet_in_free(*s);
}

int mega_in_add(struct crypto *c, const struct in_offer *o, struct err *e)
{
    AUTO(free_in) struct ratchet_in *s = o->take_s;
    autofree char *session = xstrdup(ratchet_in_id(s));
    struct in_key *k = NULL;
    if (mega_in_get(c, o->room, session, &k, e) < 0)
        return -1;
    if (k && !merge(k, o, &s))
        return 0;
    if (!k) {
        k = xcalloc(1, sizeof(*k));
        k->at = key_at(o->room, session);
        k->s = take(s);
        set_origin(k, o);
        cache(c, k);
    }
    if (save(c, k, e) < 0 || drop_withheld(c, k->at, e) < 0)
        return -1;
    if (o->source != IN_BACKUP && backup_note(c, o->room, session, e) < 0)
        return -1;
    event_keys(c, o->room, session);
    return 0;
}

int mega_in_room_key(struct crypto *c, const struct olm_message *m, struct err *e)
{
    const char *room = json_str_or(m->content, "room_id", NULL);
    const char *session = json_str_or(m->content, "session_id", NULL);
    const char *key = json_str_or(m->content, "session_key", NULL);
    struct ratchet_in *s = NULL;
    if (!same(json_str_or(m->content, "algorithm", NULL), MEGOLM_ALGORITHM) || !id_ok(room) || !session || !key ||
        ratchet_in_new(&s, key) != RATCHET_OK || !same(ratchet_in_id(s), session)) {
        ratchet_in_free(s);
        log_warn("crypto_room_key_refused", KV_S("sender", m->sender));
        return 0;
    }
    const struct in_offer o = { .room = room,
                                .sender = m->sender,
                                .sender_key = m->sender_key,
                                .ed25519 = m->ed25519,
                                .source = IN_DIRECT,
                                .shared_history = json_bool_or(m->content, "shared_history", false),
                                .take_s = s };
    return mega_in_add(c, &o, e);
}

int mega_in_withheld(struct crypto *c, const char *sender, const struct json *content, struct err *e)
{
    const char *room = json_str_or(content, "room_id", NULL), *session = json_str_or(content, "session_id", NULL);
    const char *code = json_str_or(content, "code", NULL);
    struct in_key *k = NULL;
    if (!same(json_str_or(content, "algorithm", NULL), MEGOLM_ALGORITHM) || !id_ok(room) || !session ||
        strlen(session) != KEY_TEXT || !code || strlen(code) > CODE_MAX)
        return 0;
    if (mega_in_get(c, room, session, &k, e) < 0 || k)
        return k ? 0 : -1;
    autofree char *at = key_at(room, session);
    autojson struct json *row = json_new_object();
    json_set_str(row, "code", code);
    json_set_str(row, "sender", sender);
    event_keys(c, room, session); /* why it can't be read is known now */
    return kept_put(c, "e2ee_withheld", at, row, e);
}

/* ---- messages ---- */

void crypto_message_clear(struct crypto_message *m)
{
    free(m->type);
    json_free(m->content);
    free(m->session);
    free(m->device);
    free(m->code);
    *m = (struct crypto_message){ 0 };
}

const char *crypto_utd_word(enum crypto_utd u)
{
    switch (u) {
    case CRYPTO_CLEAR: return "clear";
    case CRYPTO_NO_KEY: return "no_key";
    case CRYPTO_WITHHELD: return "withheld";
    case CRYPTO_TOO_EARLY: return "too_early";
    case CRYPTO_REPLAYED: return "replayed";
    case CRYPTO_FORGED: return "forged";
    case CRYPTO_BROKEN: return "broken";
    case CRYPTO_UNSUPPORTED: return "unsupported";
    }
    return "";
}

struct cipher {
    const char *room, *event_id, *sender, *session, *body;
    int64_t ts_ms;
    const struct json *content;
};

static int no_key(struct crypto *c, const struct cipher *in, struct crypto_message *out, struct err *e)
{
    autofree char *at = key_at(in->room, in->session);
    autojson struct json *row = NULL;
    if (kept_get(c, "e2ee_withheld", at, &row, e) < 0)
        return -1;
    out->utd = row ? CRYPTO_WITHHELD : CRYPTO_NO_KEY;
    out->retry = true;
    set_text(&out->code, json_str_or(row, "code", ""));
    return backup_want(c, in->room, in->session, e);
}

/* One index is one event: a second event with the same one is a replay. */
static int check_replay(struct crypto *c, const struct cipher *in, uint32_t index, bool *replayed, struct err *e)
{
    autofree char *kind = xasprintf("e2ee_index:%s", in->session), *key = xasprintf("%08" PRIx32, index);
    autojson struct json *row = NULL;
    if (kept_get(c, kind, key, &row, e) < 0)
        return -1;
    *replayed =
        row && (!same(json_str_or(row, "event", NULL), in->event_id) || json_int_or(row, "ts", -1) != in->ts_ms);
    if (row)
        return 0;
    autojson struct json *floor = NULL;
    if (kept_get(c, kind, REPLAY_FLOOR, &floor, e) < 0)
        return -1;
    *replayed = json_int_or(floor, "below", 0) > (int64_t)index;
    if (*replayed)
        return 0;
    autojson struct json *now = json_new_object();
    json_set_str(now, "event", in->event_id);
    json_set_int(now, "ts", in->ts_ms);
    return kept_put(c, kind, key, now, e);
}

/* Who sent it, and how sure that is. false: the key belongs to somebody else. */
static int judge(struct crypto *c, const struct cipher *in, const struct in_key *k, struct crypto_message *out,
                 bool *ok, struct err *e)
{
    struct user *u = NULL;
    *ok = !k->sender || same(k->sender, in->sender);
    if (!*ok || user_get(c, in->sender, &u, e) < 0)
        return *ok ? -1 : 0;
    const struct device *d = k->sender_key ? device_by_key(u, k->sender_key) : NULL;
    if (k->source == IN_OWN) {
        out->trust = CRYPTO_TRUST_VERIFIED;
        set_text(&out->device, c->device);
    } else if (d && same(d->ed25519, k->ed25519)) {
        out->trust = k->source == IN_DIRECT ? device_trust(c, u, d) : CRYPTO_TRUST_UNKNOWN;
        set_text(&out->device, d->id);
    }
    out->accepted = policy_allows(c->cfg.senders, c->cfg.allow_plain, out->trust);
    return 0;
}

static bool read_clear(const struct cipher *in, const char *text, size_t n, struct crypto_message *out)
{
    autojson struct json *clear = NULL;
    struct err bad = { 0 };
    if (json_parse(&clear, text, n, PAYLOAD_MAX, &bad) < 0)
        return false;
    const char *type = json_str_or(clear, "type", NULL);
    const struct json *content = json_get(clear, "content"), *relation = json_get(in->content, "m.relates_to");
    if (!type || json_type(content) != JSON_OBJECT)
        return false;
    out->utd = same(json_str_or(clear, "room_id", NULL), in->room) ? CRYPTO_CLEAR : CRYPTO_FORGED;
    if (out->utd != CRYPTO_CLEAR)
        return true;
    set_text(&out->type, type);
    out->content = without(content, "m.relates_to", NULL);
    if (relation)
        json_set(out->content, "m.relates_to", json_dup(relation));
    return true;
}

static int refuse(const struct cipher *in, struct crypto_message *out, enum crypto_utd why)
{
    out->utd = why;
    log_warn("crypto_message_refused", KV_S("room", in->room), KV_S("event_id", in->event_id),
             KV_S("why", crypto_utd_word(why)));
    return 0;
}

static int open_with(struct crypto *c, const struct cipher *in, struct in_key *k, struct crypto_message *out,
                     struct err *e)
{
    autowipe char *text = NULL;
    size_t n = 0;
    uint32_t index = 0;
    bool ok = false, replayed = false;
    const enum ratchet_fault f = ratchet_in_decrypt(k->s, in->body, &text, &n, &index);
    if (f == RATCHET_INDEX) {
        out->utd = CRYPTO_TOO_EARLY;
        out->retry = true;
        return backup_want(c, in->room, in->session, e);
    }
    if (f != RATCHET_OK)
        return refuse(in, out, CRYPTO_BROKEN);
    if (judge(c, in, k, out, &ok, e) < 0)
        return -1;
    if (!ok)
        return refuse(in, out, CRYPTO_FORGED);
    if (check_replay(c, in, index, &replayed, e) < 0)
        return -1;
    if (replayed)
        return refuse(in, out, CRYPTO_REPLAYED);
    if (!read_clear(in, text, n, out))
        return refuse(in, out, CRYPTO_BROKEN);
    return out->utd == CRYPTO_CLEAR ? 0 : refuse(in, out, out->utd);
}

static bool read_cipher(const struct json *event, const char *room, struct cipher *in)
{
    const struct json *content = json_get(event, "content");
    *in = (struct cipher){ .room = room,
                           .event_id = json_str_or(event, "event_id", NULL),
                           .sender = json_str_or(event, "sender", NULL),
                           .session = json_str_or(content, "session_id", NULL),
                           .body = json_str_or(content, "ciphertext", NULL),
                           .ts_ms = json_int_or(event, "origin_server_ts", -1),
                           .content = content };
    return id_ok(room) && id_ok(in->event_id) && id_ok(in->sender) && in->session && strlen(in->session) == KEY_TEXT &&
           in->body;
}

static int decrypt(struct crypto *c, const struct cipher *in, struct crypto_message *out, struct err *e)
{
    struct in_key *k = NULL;
    set_text(&out->session, in->session);
    if (mega_in_get(c, in->room, in->session, &k, e) < 0)
        return -1;
    return k ? open_with(c, in, k, out, e) : no_key(c, in, out, e);
}

int crypto_decrypt(struct crypto *c, const char *room, const struct json *event, struct crypto_message *out,
                   struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    AUTO(crypto_message_clear)
    struct crypto_message m = { .session = xstrdup(""), .device = xstrdup(""), .code = xstrdup("") };
    struct cipher in;
    if (c->state == CRYPTO_REFUSED)
        return err_set(e, ERR_REFUSED, "encryption is off: %s", c->refusal);
    const bool ok = read_cipher(event, room, &in);
    if (!same(json_str_or(in.content, "algorithm", NULL), MEGOLM_ALGORITHM))
        m.utd = CRYPTO_UNSUPPORTED;
    else if (!ok)
        m.utd = CRYPTO_BROKEN;
    else if (crypto_enter(c, &b, e) < 0 || decrypt(c, &in, &m, e) < 0 || crypto_leave(c, &b, e) < 0)
        return -1;
    *out = m;
    m = (struct crypto_message){ 0 };
    return 0;
}
