/* sync.c - the long poll. What a response brings and the position behind it become durable in one batch; only then is the next one
 * asked for, because the server forgets what lies behind a position once that is used. A response that could not be
 * kept is asked for again. */
#include <string.h>
#include "ids.h"
#include "json.h"
#include "log.h"
#include "inbox.h"

enum {
    POLL_MS = 30000,
    FIRST_MS = 300000, /* the first response holds all rooms */
    GRACE_MS = 30000,  /* a poll that takes longer than it should by this much is dead */
    INBOX_HIGH = 5000, /* rows: no more is asked for */
    INBOX_PAUSE_MS = 2000,
    TIMELINE = 100,
    MISSED = 20, /* of each room, in a first response after data was lost: thousands of rooms must fit into one */
    POSITION_MAX = 4096, /* bytes */
    QUICK_MS = 500,      /* an empty response that comes sooner than this was not waited for, */
    QUICK_FREE = 5,      /* and so many in a row are no accident */
    QUICK_MAX_MS = 5000,
};

static const struct kept sync_row = { MATRIX_PLATFORM, "sync", "" };
static const struct kept direct_row = { MATRIX_PLATFORM, "direct", "" };
static const struct kept ignored_row = { MATRIX_PLATFORM, "ignored", "" };

/* ---- account data ---- */

bool matrix_is_ignored(const struct chat *c, const char *user)
{
    return json_get(json_get(c->ignored, "ignored_users"), user) != NULL;
}

static int keep_json(struct chat *c, const struct kept *row, const struct json *j, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(MATRIX_EVENT_MAX);
    json_print(&text, j);
    return str_check(&text, e) < 0 ? -1 : store_keep(c->store, row, str_peek(&text), text.len, e);
}

static int load_json(struct chat *c, const struct kept *row, struct json **out, struct err *e)
{
    autofree char *text = NULL;
    size_t n = 0;
    if (store_kept(c->store, row, &text, &n, e) < 0)
        return -1;
    return text ? json_parse(out, text, n, MATRIX_EVENT_MAX, e) : 0;
}

static int take_account_data(struct chat *c, const struct json *events, struct err *e)
{
    for (const struct json *x = json_first(events); x; x = json_next(x)) {
        const char *type = json_str_or(x, "type", "");
        const struct json *content = json_get(x, "content");
        const bool direct = strcmp(type, "m.direct") == 0;
        if (json_type(content) != JSON_OBJECT || (!direct && strcmp(type, "m.ignored_user_list") != 0))
            continue;
        struct json **slot = direct ? &c->direct : &c->ignored;
        json_free(*slot);
        *slot = json_dup(content);
        if (keep_json(c, direct ? &direct_row : &ignored_row, *slot, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- rooms ---- */

static bool is_own_join(const struct chat *c, const struct json *event)
{
    return strcmp(json_str_or(event, "type", ""), "m.room.member") == 0 &&
           strcmp(json_str_or(event, "state_key", ""), c->login.user) == 0 &&
           strcmp(json_str_or(json_get(event, "content"), "membership", ""), "join") == 0;
}

static int take_timeline(struct room *r, const struct json *events, bool joined, bool *changed, struct err *e)
{
    for (const struct json *x = json_first(events); x; x = json_next(x)) {
        joined = joined || is_own_join(r->chat, x);
        matrix_room_state(r, x, changed);
        if (matrix_e2ee_state(r, x, e) < 0)
            return -1;
        matrix_mark_seen(r->chat, x);
        if ((r->chat->since || matrix_mark_missed(r->chat, x, events)) && inbox_wants(r, x, joined) &&
            matrix_pending_add(r, x, e) < 0)
            return -1;
    }
    return 0;
}

static int take_joined(struct chat *c, const char *id, const struct json *joined, struct err *e)
{
    struct room *r = matrix_room(c, id);
    const struct json *timeline = json_get(joined, "timeline");
    const bool was_in = r->joined && !r->fresh;
    bool changed = !r->joined;
    const char *prev = json_str_or(timeline, "prev_batch", NULL);
    r->joined = true;
    r->invited = r->fresh = false;
    for (const struct json *x = json_first(json_get(json_get(joined, "state"), "events")); x; x = json_next(x)) {
        matrix_room_state(r, x, &changed);
        if (matrix_e2ee_state(r, x, e) < 0)
            return -1;
    }
    matrix_room_summary(r, joined, &changed);
    if (json_bool_or(timeline, "limited", false) && c->since && was_in && prev &&
        (matrix_gap_add(r, c->since, prev, e) < 0 || matrix_e2ee_gap(r, e) < 0))
        return -1;
    if (take_timeline(r, json_get(timeline, "events"), was_in, &changed, e) < 0)
        return -1;
    return changed ? matrix_room_keep(r, e) : 0;
}

static int take_rooms(struct chat *c, const struct json *rooms, struct err *e)
{
    const struct json *left = json_get(rooms, "leave"), *asked = json_get(rooms, "invite");
    for (const struct json *x = json_first(left); x; x = json_next(x)) {
        struct room *r = matrix_room_find(c, json_key(x));
        if (!r || (!r->joined && !r->invited))
            continue;
        log_info("matrix_room_left", KV_S("room", r->id));
        r->joined = r->invited = false;
        matrix_outbox_drop_room(c, r->id);
        if (matrix_room_keep(r, e) < 0 || matrix_e2ee_left(r, e) < 0)
            return -1;
    }
    for (const struct json *x = json_first(asked); x; x = json_next(x)) {
        if (!mx_is_room(json_key(x)))
            continue;
        struct room *r = matrix_room(c, json_key(x));
        matrix_invite(r, x);
        if (matrix_room_keep(r, e) < 0)
            return -1;
    }
    for (const struct json *x = json_first(json_get(rooms, "join")); x; x = json_next(x))
        if (mx_is_room(json_key(x)) && take_joined(c, json_key(x), x, e) < 0)
            return -1;
    return 0;
}

/* ---- a response ---- */

static int take_response(struct chat *c, const struct json *body, struct err *e)
{
    AUTO(store_batch_end) struct store_batch batch = { 0 };
    const char *next = NULL;
    if (json_str(body, "next_batch", &next, e) < 0)
        return -1;
    if (!*next || strlen(next) > POSITION_MAX) /* it is part of an address: no server could take it back */
        return err_set(e, ERR_DATA, "the server's position has %zu bytes", strlen(next));
    if (store_batch_begin(&batch, c->store, e) < 0)
        return -1;
    if (matrix_e2ee_sync(c, body, e) < 0 || /* first: keys before what they open */
        take_account_data(c, json_get(json_get(body, "account_data"), "events"), e) < 0 ||
        take_rooms(c, json_get(body, "rooms"), e) < 0)
        return -1;
    if (store_keep(c->store, &sync_row, next, strlen(next), e) < 0 || store_batch_commit(&batch, e) < 0)
        return -1;
    free(c->since);
    c->since = xstrdup(next);
    return 0;
}

static void tell_left(struct chat *c, const struct json *left)
{
    for (const struct json *x = json_first(left); x; x = json_next(x)) {
        if (!mx_is_room(json_key(x))) /* the server may send anything, an array too */
            continue;
        autofree char *id = xasprintf("left %s %s", json_key(x), c->since);
        const struct chat_event ev = { .type = CHAT_LEFT, .id = id, .room = json_key(x), .sent_ms = time_unix_ms() };
        if (c->ev->on_event(c->ud, c, &ev) < 0)
            log_warn("matrix_left_not_told", KV_S("room", ev.room)); /* it only saves work */
    }
}

static void after_response(struct chat *c, const struct json *body)
{
    matrix_invites_resume(c);
    tell_left(c, json_get(json_get(body, "rooms"), "leave"));
    for (const struct json *x = json_first(json_get(json_get(body, "rooms"), "join")); x; x = json_next(x)) {
        struct room *r = matrix_room_find(c, json_key(x));
        if (r)
            matrix_room_alone(r);
    }
}

static void forget_position(struct chat *c)
{
    struct err e = { 0 };
    log_warn("matrix_position_lost", KV_S("user", c->login.user));
    free(take(c->since));
    c->mark.known = false;
    matrix_e2ee_lost(c, true);
    if (store_unkeep(c->store, &sync_row, &e) < 0)
        log_error("matrix_position_not_forgotten", KV_E(&e));
    matrix_sync_later(c, api_backoff_ms(1));
}

/* A server that answers at once though it has nothing to say would have us ask without end. */
static int64_t too_quick_ms(struct chat *c, const struct json *body)
{
    const bool says = json_len(json_get(json_get(body, "rooms"), "join")) || json_len(json_get(body, "to_device")) ||
                      json_len(json_get(json_get(body, "rooms"), "invite"));
    const bool quick = loop_now_ms(c->loop) - c->asked_ms < QUICK_MS;
    c->quick = says || !quick ? 0 : c->quick + 1;
    const int64_t ms = c->quick > QUICK_FREE ? api_backoff_ms(c->quick - QUICK_FREE) : 0;
    return ms < QUICK_MAX_MS ? ms : QUICK_MAX_MS;
}

static void on_sync(void *ud, const struct api_answer *a)
{
    struct chat *c = ud;
    struct err e = a->err;
    c->syncing = false;
    log_debug("matrix_synced", KV_I("status", a->status), KV_I("bytes", a->bytes));
    if (c->dead)
        return;
    if (a->status == 400 && c->since && e.kind == ERR_REFUSED) {
        forget_position(c);
        return;
    }
    if (e.kind == ERR_NONE && take_response(c, a->body, &e) == 0) {
        c->sync_tries = 0;
        c->good_sync_ms = loop_now_ms(c->loop);
        matrix_e2ee_pump(c);
        matrix_sync_later(c, too_quick_ms(c, a->body));
        matrix_inbox_pump(c, false);
        matrix_mark_pump(c);
        after_response(c, a->body);
        return;
    }
    if (a->err.kind == ERR_NONE) {
        matrix_e2ee_lost(c, false);
        matrix_inbox_pump(c, true);
    }
    if (e.kind == ERR_DATA && !c->since)
        c->mark.from_ms = 0; /* it was too much, maybe: then without what was missed */
    const int64_t backoff = api_backoff_ms(++c->sync_tries);
    log_warn("matrix_sync_failed", KV_I("try", c->sync_tries), KV_E(&e));
    matrix_sync_later(c, e.retry_ms > backoff ? e.retry_ms : backoff);
}

/* ---- a request ---- */

static void set_list(struct json *obj, const char *key, const char *const *words)
{
    struct json *list = json_new_array();
    for (; *words; words++)
        json_push(list, json_new_string(*words));
    json_set(obj, key, list);
}

static struct json *nothing(void)
{
    static const char *const all[] = { "*", NULL };
    struct json *j = json_new_object();
    set_list(j, "not_types", all);
    return j;
}

static struct json *lazy(int64_t limit)
{
    struct json *j = json_new_object();
    if (limit)
        json_set_int(j, "limit", limit);
    json_set_bool(j, "lazy_load_members", true);
    return j;
}

/* Only what matrix_room_state() and encryption read: names, topics and pictures of thousands of rooms are of no use here. */
static struct json *state_filter(void)
{
    static const char *const types[] = { "m.room.member",
                                         "m.room.encryption",
                                         "m.room.history_visibility",
                                         "m.room.tombstone",
                                         "m.room.power_levels",
                                         "m.room.create",
                                         "io.element.functional_members",
                                         MATRIX_ROOM_SETTINGS,
                                         NULL };
    struct json *j = lazy(0);
    set_list(j, "types", types);
    return j;
}

/* As a part of an address: given in the request itself, it is one upload less, and never out of date. */
static char *filter_text(int64_t timeline)
{
    static const char *const kinds[] = { "m.direct", "m.ignored_user_list", NULL };
    autojson struct json *j = json_new_object();
    struct json *room = json_new_object(), *data = json_new_object();
    AUTO(str_clear) struct str text = STR_INIT(4096);
    set_list(data, "types", kinds);
    json_set(j, "presence", nothing());
    json_set(j, "account_data", data);
    json_set_bool(room, "include_leave", false);
    json_set(room, "ephemeral", nothing());
    json_set(room, "account_data", nothing());
    json_set(room, "state", state_filter());
    json_set(room, "timeline", lazy(timeline));
    json_set(j, "room", room);
    json_print(&text, j);
    return mx_escape(str_peek(&text));
}

/* The same for each poll, but for how much of the timeline is wanted. */
static const char *filter_for(struct chat *c, int64_t timeline)
{
    if (!c->filter || c->filter_timeline != timeline) {
        free(c->filter);
        c->filter = filter_text(timeline);
        c->filter_timeline = timeline;
    }
    return c->filter;
}

static void poll_now(void *ud)
{
    struct chat *c = ud;
    c->sync_timer = 0;
    if (c->syncing || c->dead)
        return;
    if (!c->since && !c->mark.known) {
        matrix_mark_read(c);
        return;
    }
    if (matrix_inbox_depth(c) > INBOX_HIGH) {
        matrix_sync_later(c, INBOX_PAUSE_MS);
        return;
    }
    const int64_t ms = c->since && c->good_sync_ms && !matrix_e2ee_more(c) ? POLL_MS : 0;
    autofree char *since = c->since ? mx_escape(c->since) : NULL;
    const char *filter = filter_for(c, since                 ? TIMELINE
                                       : c->mark.from_ms > 0 ? MISSED
                                                             : 1); /* the past is no question */
    autofree char *path = xasprintf("/_matrix/client/v3/sync?filter=%s&timeout=%lld&set_presence=offline%s%s", filter,
                                    (long long)ms, since ? "&since=" : "", since ? since : "");
    c->syncing = true;
    c->asked_ms = loop_now_ms(c->loop);
    const struct api_request r = {
        .method = "GET", .path = path, .timeout_ms = since ? ms + GRACE_MS : FIRST_MS, .max_bytes = MATRIX_SYNC_MAX
    };
    api_start(c->api, &r, on_sync, c);
}

void matrix_sync_later(struct chat *c, int64_t ms)
{
    loop_cancel(c->loop, c->sync_timer);
    c->sync_timer = loop_after(c->loop, ms, poll_now, c);
}

/* ---- the beginning ---- */

void matrix_sync_start(struct chat *c)
{
    struct err e = { 0 };
    size_t n = 0;
    free(c->since);
    if (store_kept(c->store, &sync_row, &c->since, &n, &e) < 0 || load_json(c, &direct_row, &c->direct, &e) < 0 ||
        load_json(c, &ignored_row, &c->ignored, &e) < 0) {
        matrix_down(c, &e);
        return;
    }
    matrix_invites_resume(c);
    matrix_inbox_pump(c, false);
    matrix_outbox_pump(c);
    matrix_prune_start(c);
    matrix_sync_later(c, 0);
}
