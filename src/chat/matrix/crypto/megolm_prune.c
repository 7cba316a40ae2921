/* megolm_prune.c - what is remembered of messages so that none is taken twice (check_replay() in megolm_in.c), made small.
 *
 * A key that opened nothing for long needs no row for each of its messages: one row says below which index nothing is taken any
 * more. A replay stays a replay; an honest second look at such an old message is refused as well. */
#include "crypto_private.h"

struct sessions {
    char **id;
    size_t n, cap;
};

static void sessions_clear(struct sessions *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->id[i]);
    free(s->id);
}

/* Keys are "room session"; the values are not looked at. */
static int add_session(void *ud, const char *key, const char *value, size_t n)
{
    struct sessions *s = ud;
    const char *blank = strchr(key, ' ');
    (void)value;
    (void)n;
    if (!blank)
        return 0;
    s->id = xgrow(s->id, &s->cap, s->n + 1, sizeof(*s->id));
    s->id[s->n++] = xstrdup(blank + 1);
    return 0;
}

struct rows {
    int64_t newest_ms, below;
    size_t n;
};

static int count_row(void *ud, const char *key, const struct json *v)
{
    struct rows *r = ud;
    const bool floor = strcmp(key, REPLAY_FLOOR) == 0;
    const int64_t ts = json_int_or(v, "ts", 0);
    const int64_t below = floor ? json_int_or(v, "below", 0) : strtoll(key, NULL, 16) + 1;
    r->below = below > r->below ? below : r->below;
    r->newest_ms = ts > r->newest_ms ? ts : r->newest_ms;
    r->n += floor ? 0 : 1;
    return 0;
}

static int shrink(struct crypto *c, const char *session, int64_t before_ms, struct err *e)
{
    autofree char *kind = xasprintf("e2ee_index:%s", session);
    const struct kept all = { "matrix", kind, NULL };
    struct rows r = { 0 };
    if (kept_each(c, kind, NULL, count_row, &r, e) < 0)
        return -1;
    if (!r.n || r.newest_ms >= before_ms)
        return 0;
    autojson struct json *floor = json_new_object();
    json_set_int(floor, "below", r.below);
    return store_unkeep(c->store, &all, e) < 0 ? -1 : kept_put(c, kind, REPLAY_FLOOR, floor, e);
}

static int for_sessions(struct store *store, const char *prefix, struct sessions *s, struct err *e)
{
    const struct kept keys = { "matrix", "e2ee_in", prefix };
    return store_kept_each(store, &keys, add_session, s, e);
}

int crypto_prune(struct crypto *c, const char *rooms, int64_t before_ms, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    AUTO(sessions_clear) struct sessions s = { 0 };
    if (for_sessions(c->store, rooms, &s, e) < 0)
        return -1;
    if (!s.n)
        return 0;
    if (store_batch_begin(&b, c->store, e) < 0)
        return -1;
    for (size_t i = 0; i < s.n; i++)
        if (shrink(c, s.id[i], before_ms, e) < 0)
            return -1;
    return store_batch_commit(&b, e);
}

int crypto_forget_replays(struct store *store, struct err *e)
{
    AUTO(sessions_clear) struct sessions s = { 0 };
    if (for_sessions(store, NULL, &s, e) < 0)
        return -1;
    for (size_t i = 0; i < s.n; i++) {
        autofree char *kind = xasprintf("e2ee_index:%s", s.id[i]);
        const struct kept all = { "matrix", kind, NULL };
        if (store_unkeep(store, &all, e) < 0)
            return -1;
    }
    return 0;
}
