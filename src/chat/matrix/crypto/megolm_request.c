/* megolm_request.c - others ask for room keys. Own devices that the identity signed get what we have; a device that had a key gets it again, from
 * where it began for it; all others get nothing, not even a no. */
#include "crypto_private.h"

enum { ANSWERS_PER_HOUR = 200 };

static bool may_answer(struct crypto *c)
{
    const int64_t now = now_ms(c);
    if (now - c->answers_ms > HOUR_MS) {
        c->answers_ms = now;
        c->answers = 0;
    }
    return c->answers++ < ANSWERS_PER_HOUR;
}

/* The index from which that device may have it; false: not at all. */
static int allowed_from(struct crypto *c, const struct user *u, const struct device *d, const struct in_key *k,
                        const char *room, int64_t *from, struct err *e)
{
    struct room *r = NULL;
    *from = -1;
    if (is_me(c, u->id) && device_trust(c, u, d) >= CRYPTO_TRUST_SIGNED) {
        *from = ratchet_in_first(k->s);
        return 0;
    }
    if (room_get(c, room, &r, e) < 0)
        return -1;
    autofree char *at = xasprintf("%s %s", u->id, d->id);
    const struct share *s = map_get(&r->shares, at);
    if (r->out && same(ratchet_out_id(r->out), ratchet_in_id(k->s)) && s && !s->code &&
        same(s->curve25519, d->curve25519))
        *from = s->index;
    return 0;
}

static struct json *forwarded(const struct in_key *k, const char *room, const char *key)
{
    struct json *o = json_new_object();
    json_set_str(o, "algorithm", MEGOLM_ALGORITHM);
    json_set_str(o, "room_id", room);
    json_set_str(o, "session_id", ratchet_in_id(k->s));
    json_set_str(o, "session_key", key);
    json_set_str(o, "sender_key", k->sender_key);
    json_set_str(o, "sender_claimed_ed25519_key", k->ed25519);
    json_set(o, "forwarding_curve25519_key_chain", json_new_array());
    return o;
}

static int answer(struct crypto *c, struct user *u, struct device *d, const struct in_key *k, const char *room,
                  int64_t from, struct err *e)
{
    autowipe char *key = ratchet_in_export(k->s, (uint32_t)from);
    struct json *out = NULL;
    if (!key || !k->sender_key || !k->ed25519)
        return 0;
    autojson struct json *content = forwarded(k, room, key);
    if (channel_encrypt(c, u, d, "m.forwarded_room_key", content, &out, e) < 0)
        return -1;
    if (!out) { /* it will ask again */
        channel_want(c, d, false);
        return 0;
    }
    return todev_send(c, "m.room.encrypted", NULL, obj_of(u->id, obj_of(d->id, out)), e);
}

int key_request(struct crypto *c, const char *sender, const struct json *content, struct err *e)
{
    const struct json *body = json_get(content, "body");
    const char *device = json_str_or(content, "requesting_device_id", NULL);
    const char *room = json_str_or(body, "room_id", NULL), *session = json_str_or(body, "session_id", NULL);
    struct user *u = NULL;
    struct in_key *k = NULL;
    int64_t from = -1;
    if (!same(json_str_or(content, "action", NULL), "request") || !id_ok(device) || !id_ok(room) || !session ||
        strlen(session) != KEY_TEXT || (is_me(c, sender) && same(device, c->device)))
        return 0;
    if (user_get(c, sender, &u, e) < 0 || mega_in_get(c, room, session, &k, e) < 0)
        return -1;
    struct device *d = device_by_id(u, device);
    if (!k || !d || d->blocked || user_blocked(u))
        return 0;
    if (allowed_from(c, u, d, k, room, &from, e) < 0)
        return -1;
    return from >= 0 && may_answer(c) ? answer(c, u, d, k, room, from, e) : 0;
}
