/* megolm_room.c - which rooms are encrypted, and who is in them. That a room is encrypted is never unlearnt. */
#include "crypto_private.h"

static const int64_t rotate_default_ms = (int64_t)HOUR_MS * 24 * 7;
enum { ROTATE_DEFAULT_N = 100, ROTATE_MAX_N = 10000 };

static void share_free(void *value)
{
    struct share *s = value;
    free(s->at);
    free(s->code);
    free(s);
}

static void room_free(void *value)
{
    struct room *r = value;
    map_clear(&r->members, free);
    map_clear(&r->shares, share_free);
    ratchet_out_free(r->out);
    free(r->id);
    free(r);
}

void rooms_clear(struct crypto *c)
{
    map_clear(&c->rooms, room_free);
}

static void add_member(struct room *r, const char *user)
{
    char *own = xstrdup(user);
    map_put(&r->members, own, own);
}

bool room_member(const struct room *r, const char *user)
{
    return map_get(&r->members, user) != NULL;
}

static int load_member(void *ud, const char *key, const struct json *v)
{
    (void)v;
    add_member(ud, key);
    return 0;
}

static int load_share(void *ud, const char *key, const struct json *v)
{
    struct room *r = ud;
    struct share *s = xcalloc(1, sizeof(*s));
    const char *curve = json_str_or(v, "curve25519", ""), *code = json_str_or(v, "code", NULL);
    s->at = xstrdup(key);
    if (strlen(curve) == KEY_TEXT)
        memcpy(s->curve25519, curve, KEY_TEXT + 1);
    s->index = (uint32_t)json_int_or(v, "index", 0);
    s->wedges = (int)json_int_or(v, "wedges", 0);
    s->code = xstrdup_or_null(code);
    map_put(&r->shares, s->at, s);
    return 0;
}

static char *kind_of(const char *kind, const struct room *r)
{
    return xasprintf("%s:%s", kind, r->id);
}

static int load_out(struct crypto *c, struct room *r, struct err *e)
{
    autojson struct json *row = NULL;
    autofree char *kind = kind_of("e2ee_share", r);
    if (kept_get(c, "e2ee_out", r->id, &row, e) < 0)
        return -1;
    if (!row)
        return 0;
    r->out_made_ms = json_int_or(row, "made", 0);
    r->out_n = json_int_or(row, "n", 0);
    r->out_shared_history = json_bool_or(row, "shared_history", false);
    if (ratchet_out_unpickle(&r->out, json_str_or(row, "pickle", ""), &c->env, e) < 0)
        return -1;
    return kept_each(c, kind, NULL, load_share, r, e);
}

static int load_room(struct crypto *c, struct room *r, struct err *e)
{
    autojson struct json *row = NULL;
    autofree char *kind = kind_of("e2ee_member", r);
    if (kept_get(c, "e2ee_room", r->id, &row, e) < 0)
        return -1;
    const int64_t state = json_int_or(row, "state", CRYPTO_ROOM_UNKNOWN);
    r->state = state == CRYPTO_ROOM_ENCRYPTED     ? CRYPTO_ROOM_ENCRYPTED
               : state == CRYPTO_ROOM_UNSUPPORTED ? CRYPTO_ROOM_UNSUPPORTED
                                                  : CRYPTO_ROOM_UNKNOWN;
    r->rotate_ms = json_int_or(row, "rotate_ms", rotate_default_ms);
    r->rotate_n = json_int_or(row, "rotate_n", ROTATE_DEFAULT_N);
    r->members_known = json_bool_or(row, "members", false);
    r->shared_history = json_bool_or(row, "shared_history", false);
    return kept_each(c, kind, NULL, load_member, r, e) < 0 ? -1 : load_out(c, r, e);
}

int room_get(struct crypto *c, const char *id, struct room **out, struct err *e)
{
    *out = map_get(&c->rooms, id);
    if (*out)
        return 0;
    if (!id_ok(id))
        return err_set(e, ERR_DATA, "not a room id");
    struct room *r = xcalloc(1, sizeof(*r));
    r->id = xstrdup(id);
    if (load_room(c, r, e) < 0) {
        room_free(r);
        return -1;
    }
    map_put(&c->rooms, r->id, r);
    *out = r;
    return 0;
}

static int room_save(struct crypto *c, struct room *r, struct err *e)
{
    autojson struct json *row = json_new_object();
    json_set_int(row, "state", r->state);
    json_set_int(row, "rotate_ms", r->rotate_ms);
    json_set_int(row, "rotate_n", r->rotate_n);
    json_set_bool(row, "members", r->members_known);
    json_set_bool(row, "shared_history", r->shared_history);
    return kept_put(c, "e2ee_room", r->id, row, e);
}

int room_save_out(struct crypto *c, struct room *r, struct err *e)
{
    autojson struct json *row = json_new_object();
    autofree char *pickle = ratchet_out_pickle(r->out, &c->env);
    json_set_str(row, "pickle", pickle);
    json_set_int(row, "made", r->out_made_ms);
    json_set_int(row, "n", r->out_n);
    json_set_bool(row, "shared_history", r->out_shared_history);
    return kept_put(c, "e2ee_out", r->id, row, e);
}

int mega_out_drop(struct crypto *c, struct room *r, const char *why, struct err *e)
{
    autofree char *kind = kind_of("e2ee_share", r);
    if (!r->out)
        return 0;
    log_info("crypto_room_key_dropped", KV_S("room", r->id), KV_S("why", why));
    ratchet_out_free(r->out);
    r->out = NULL;
    r->out_n = 0;
    map_clear(&r->shares, share_free);
    return kept_drop(c, "e2ee_out", r->id, e) < 0 ? -1 : kept_drop(c, kind, NULL, e);
}

void room_wake(struct crypto *c, const char *room)
{
    for (const struct map_item *i = c->rooms.first; i; i = i->next) {
        const struct room *r = i->value;
        if (r->waiting && (!room || same(room, r->id)))
            event_room(c, r->id);
    }
}

/* ---- what the driver tells ---- */

static int64_t clamp(int64_t n, int64_t low, int64_t high)
{
    return n < low ? low : n > high ? high : n;
}

static int track_members(struct crypto *c, const struct room *r, struct err *e)
{
    for (const struct map_item *m = r->members.first; m; m = m->next)
        if (devices_track(c, m->key, e) < 0)
            return -1;
    return 0;
}

static int set_encrypted(struct crypto *c, struct room *r, const struct json *content, struct err *e)
{
    const bool known = same(json_str_or(content, "algorithm", NULL), MEGOLM_ALGORITHM);
    const int64_t ms =
        clamp(json_int_or(content, "rotation_period_ms", rotate_default_ms), HOUR_MS, INT32_MAX * (int64_t)1000);
    const int64_t n = clamp(json_int_or(content, "rotation_period_msgs", ROTATE_DEFAULT_N), 1, ROTATE_MAX_N);
    if (!known && r->state == CRYPTO_ROOM_ENCRYPTED)
        return 0; /* what it was is what it stays: nobody takes encryption away by naming another one */
    const bool changed = r->rotate_ms != ms || r->rotate_n != n;
    r->state = known ? CRYPTO_ROOM_ENCRYPTED : CRYPTO_ROOM_UNSUPPORTED;
    r->rotate_ms = ms;
    r->rotate_n = n;
    if (changed && mega_out_drop(c, r, "settings", e) < 0)
        return -1;
    return track_members(c, r, e) < 0 ? -1 : room_save(c, r, e);
}

int crypto_room_encrypted(struct crypto *c, const char *room, const struct json *content, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    struct room *r = NULL;
    if (crypto_enter(c, &b, e) < 0 || room_get(c, room, &r, e) < 0 || set_encrypted(c, r, content, e) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}

int crypto_room_state(struct crypto *c, const char *room, enum crypto_room *out, struct err *e)
{
    struct room *r = NULL;
    if (room_get(c, room, &r, e) < 0)
        return -1;
    *out = r->state;
    return 0;
}

static int member_came(struct crypto *c, struct room *r, const char *user, struct err *e)
{
    autofree char *kind = kind_of("e2ee_member", r);
    autojson struct json *row = json_new_object();
    if (!id_ok(user) || room_member(r, user))
        return 0;
    add_member(r, user);
    if (kept_put(c, kind, user, row, e) < 0)
        return -1;
    return r->state == CRYPTO_ROOM_ENCRYPTED ? devices_track(c, user, e) : 0;
}

static bool has_share(const struct room *r, const char *user)
{
    const size_t n = strlen(user);
    for (const struct map_item *i = r->shares.first; i; i = i->next) {
        const struct share *s = i->value;
        if (!s->code && strncmp(s->at, user, n) == 0 && s->at[n] == ' ')
            return true;
    }
    return false;
}

static int member_went(struct crypto *c, struct room *r, const char *user, struct err *e)
{
    autofree char *kind = kind_of("e2ee_member", r);
    if (has_share(r, user) && mega_out_drop(c, r, "member left", e) < 0)
        return -1;
    autofree char *gone = map_take(&r->members, user);
    return gone ? kept_drop(c, kind, gone, e) : 0;
}

static int compare_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* sorted: users in byte order. */
static int drop_unlisted(struct crypto *c, struct room *r, const char *const *sorted, size_t n, struct err *e)
{
    for (struct map_item *m = r->members.first, *next; m; m = next) {
        next = m->next;
        autofree char *user = xstrdup(m->key);
        const char *key = user;
        const bool listed = n > 0 && bsearch(&key, sorted, n, sizeof(*sorted), compare_text);
        if (!listed && member_went(c, r, user, e) < 0)
            return -1;
    }
    return 0;
}

static int set_members(struct crypto *c, struct room *r, const char *const *users, size_t n, struct err *e)
{
    autofree const char **sorted = xcalloc(n + 1, sizeof(*sorted));
    if (n > 0)
        memcpy(sorted, users, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_text);
    if (drop_unlisted(c, r, sorted, n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (member_came(c, r, users[i], e) < 0)
            return -1;
    r->members_known = true;
    return room_save(c, r, e);
}

int crypto_room_members(struct crypto *c, const char *room, const char *const *users, size_t n, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    struct room *r = NULL;
    if (crypto_enter(c, &b, e) < 0 || room_get(c, room, &r, e) < 0 || set_members(c, r, users, n, e) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}

int crypto_room_member(struct crypto *c, const char *room, const char *user, bool gets_keys, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    struct room *r = NULL;
    if (crypto_enter(c, &b, e) < 0 || room_get(c, room, &r, e) < 0 ||
        (gets_keys ? member_came : member_went)(c, r, user, e) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}

/* Of all rooms, maybe: those that are not in memory stay outside. */
int room_members_stale(struct crypto *c, const char *id, struct err *e)
{
    struct room *r = map_get(&c->rooms, id);
    autojson struct json *row = NULL;
    if (r) {
        r->members_known = false;
        return room_save(c, r, e);
    }
    if (kept_get(c, "e2ee_room", id, &row, e) < 0)
        return -1;
    if (!row)
        return 0;
    json_set_bool(row, "members", false);
    return kept_put(c, "e2ee_room", id, row, e);
}

int crypto_room_gap(struct crypto *c, const char *room, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    if (crypto_enter(c, &b, e) < 0 || room_members_stale(c, room, e) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}

int crypto_room_history(struct crypto *c, const char *room, const char *visibility, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    struct room *r = NULL;
    if (crypto_enter(c, &b, e) < 0 || room_get(c, room, &r, e) < 0)
        return -1;
    r->shared_history = same(visibility, "shared") || same(visibility, "world_readable");
    if (r->out && r->out_shared_history != r->shared_history && mega_out_drop(c, r, "history visibility", e) < 0)
        return -1;
    return room_save(c, r, e) < 0 ? -1 : crypto_leave(c, &b, e);
}

int crypto_room_left(struct crypto *c, const char *room, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    struct room *r = NULL;
    if (crypto_enter(c, &b, e) < 0 || room_get(c, room, &r, e) < 0)
        return -1;
    autofree char *kind = kind_of("e2ee_member", r);
    map_clear(&r->members, free);
    r->members_known = r->waiting = false;
    if (kept_drop(c, kind, NULL, e) < 0 || mega_out_drop(c, r, "we left", e) < 0 || room_save(c, r, e) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}

int crypto_room_rotate(struct crypto *c, const char *room, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    struct room *r = NULL;
    if (crypto_enter(c, &b, e) < 0 || room_get(c, room, &r, e) < 0 || mega_out_drop(c, r, "asked for", e) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}
