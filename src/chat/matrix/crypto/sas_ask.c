/* sas_ask.c - who asks to be verified with us: the request, and what it takes for it to be answered. */
#include "sas_private.h"

enum {
    SAS_MAX = 20,
    SAS_AHEAD_MS = 5 * MINUTE_MS, /* timestamps further in the future are refused */
};

/* ---- request ---- */

/* Old ones go; when all places are taken by those that run, nobody new gets in. */
static bool make_room(struct crypto *c)
{
    size_t n = 0;
    for (struct sas **at = &c->sas; *at;) {
        struct sas *s = *at;
        if (sas_is_over(s) && now_ms(c) - s->born_ms > SAS_LIFE_MS) {
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
        if (same(s->user, user) && !sas_is_over(s) && sas_cancel(c, s, "m.user", e) < 0)
            return -1;
    return 0;
}

static bool in_time(const struct crypto *c, int64_t ts_ms)
{
    const int64_t now = now_ms(c);
    return ts_ms <= now + SAS_AHEAD_MS && ts_ms >= now - SAS_LIFE_MS;
}

static int open_sas(struct crypto *c, const struct sas_ask *a, const struct user *u, const struct device *d,
                    struct err *e)
{
    struct sas *s = xcalloc(1, sizeof(*s));
    uint8_t raw[KEY_BYTES];
    struct json *ready = json_new_object(), *methods = json_new_array();
    s->txn = xstrdup(a->at.txn);
    s->user = xstrdup(a->at.user);
    s->device = xstrdup(a->at.device);
    s->room = xstrdup_or_null(a->at.room);
    s->born_ms = now_ms(c);
    memcpy(s->ed25519, d->ed25519, sizeof(s->ed25519));
    if (b64_is_key(u->master, raw))
        memcpy(s->master, u->master, sizeof(s->master));
    random_bytes(c, s->secret, sizeof(s->secret));
    x25519_public(s->secret, raw);
    b64_key(s->public, raw);
    s->next = c->sas;
    c->sas = s;
    const struct crypto_sas now = sas_shown(s);
    event_sas(c, &now);
    json_push(methods, json_new_string("m.sas.v1"));
    json_set_str(ready, "from_device", c->device);
    json_set(ready, "methods", methods);
    return sas_send(c, s, "ready", ready, e);
}

static int refuse(struct crypto *c, const struct sas_ask *a, const char *code, struct err *e)
{
    return sas_post(c, &a->at, "cancel", sas_cancellation(code), e);
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

void sas_parked_clear(struct crypto *c)
{
    for (struct parked *p = c->parked, *next; p; p = next) {
        next = p->next;
        parked_free(p);
    }
    c->parked = NULL;
}

/* One for each user, the newest; beyond SAS_MAX of them nobody waits. */
static int park(struct crypto *c, const struct sas_ask *a, struct err *e)
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
                          .room = xstrdup_or_null(a->at.room),
                          .content = json_dup(a->content),
                          .ts_ms = a->ts_ms,
                          .next = old ? old->next : NULL };
    *at = p;
    if (old)
        parked_free(old);
    return devices_track(c, a->at.user, e) < 0 ? -1 : devices_stale(c, a->at.user, e);
}

int sas_asked(struct crypto *c, const struct sas_ask *a, struct err *e)
{
    struct user *u = NULL;
    if (!id_ok(a->at.device) || !id_ok(a->at.txn) || !in_time(c, a->ts_ms) || sas_find(c, NULL, a->at.txn) ||
        (is_me(c, a->at.user) && same(a->at.device, c->device)))
        return 0;
    if (user_get(c, a->at.user, &u, e) < 0)
        return -1;
    const struct device *d = device_by_id(u, a->at.device);
    if (!d && !a->again && c->cfg.sas != CRYPTO_SAS_OFF)
        return park(c, a, e);
    if (c->cfg.sas == CRYPTO_SAS_OFF || !d || d->blocked || !make_room(c))
        return refuse(c, a, "m.user", e);
    if (!sas_offers(json_get(a->content, "methods"), "m.sas.v1"))
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
    const struct sas_ask a = {
        .at = { p->txn, p->user, p->device, p->room }, .content = p->content, .ts_ms = p->ts_ms, .again = true
    };
    const int rc = sas_asked(c, &a, e);
    parked_free(p);
    return rc;
}
