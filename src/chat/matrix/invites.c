/* invites.c - coming and going. An invitation is kept until it is taken, declined or withdrawn; joining races with what the
 * servers tell each other, so a refusal is tried again for an hour. */
#include <string.h>
#include "ids.h"
#include "json.h"
#include "log.h"
#include "matrix.h"

enum {
    TRIES_MAX = 16,
    HOUR_MS = 3600000,
    INVITES_MAX = 20, /* by one person within an hour */
};

static int64_t wait_ms(int n)
{
    static const int64_t steps[] = { 1000, 2000, 5000, 15000, 60000 };
    return n <= (int)countof(steps) ? steps[n - 1] : 300000;
}

static void keep(struct room *r)
{
    struct err e = { 0 };
    if (matrix_room_keep(r, &e) < 0)
        log_error("matrix_room_not_kept", KV_S("room", r->id), KV_E(&e));
}

/* ---- the account's list of direct rooms: other clients of it, and a new data_dir, go by that ---- */

static void on_listed(void *ud, const struct api_answer *a)
{
    (void)ud;
    if (a->err.kind != ERR_NONE)
        log_warn("matrix_direct_not_listed", KV_E(&a->err));
}

static void list_direct(struct room *r)
{
    struct chat *c = r->chat;
    if (!r->direct || !r->inviter || matrix_is_in_direct(c, r->id))
        return;
    struct json *all = json_type(c->direct) == JSON_OBJECT ? json_dup(c->direct) : json_new_object();
    const struct json *had = json_get(all, r->inviter);
    struct json *rooms = json_type(had) == JSON_ARRAY ? json_dup(had) : json_new_array();
    json_push(rooms, json_new_string(r->id));
    json_set(all, r->inviter, rooms);
    json_free(c->direct);
    c->direct = all;
    autofree char *user = mx_escape(c->login.user);
    autofree char *path = xasprintf("/_matrix/client/v3/user/%s/account_data/m.direct", user);
    api_start(c->api, &(struct api_request){ .method = "PUT", .path = path, .body = all }, on_listed, c);
}

/* ---- joining ---- */

static void room_join(struct room *r);

static void on_due(void *ud)
{
    struct room *r = ud;
    r->timer = 0;
    if (r->invited || r->gone)
        room_join(r);
}

static void give_up(struct room *r, const struct err *e)
{
    log_warn("matrix_join_failed", KV_S("room", r->id), KV_I("tries", r->tries), KV_E(e));
    r->invited = false;
    r->barred = true;
    r->tries = 0;
    keep(r);
}

static void on_joined(void *ud, const struct api_answer *a)
{
    struct room *r = ud;
    r->joining = false;
    if (a->err.kind == ERR_NONE) {
        log_info("matrix_joined", KV_S("room", r->id));
        r->invited = false;
        r->fresh = !r->joined;
        r->joined = true;
        r->tries = 0;
        keep(r);
        list_direct(r);
        return;
    }
    const bool hopeless = strcmp(a->errcode, "M_UNSUPPORTED_ROOM_VERSION") == 0 ||
                          strcmp(a->errcode, "M_INCOMPATIBLE_ROOM_VERSION") == 0 || a->err.kind == ERR_CONFIG;
    if (++r->tries > TRIES_MAX || hopeless) {
        give_up(r, &a->err);
        return;
    }
    const int64_t ms = a->err.retry_ms > wait_ms(r->tries) ? a->err.retry_ms : wait_ms(r->tries);
    loop_cancel(r->chat->loop, r->timer);
    r->timer = loop_after(r->chat->loop, ms, on_due, r);
}

static void room_join(struct room *r)
{
    if (r->joining || r->joined || !r->chat->login.up)
        return;
    autofree char *id = mx_escape(r->id), *via = mx_escape(r->inviter ? mx_server_of(r->inviter) : "");
    autofree char *path =
        *via ? xasprintf("/_matrix/client/v3/join/%s?via=%s&server_name=%s", id, via, via) /* before v1.12 */
             : xasprintf("/_matrix/client/v3/join/%s", id);
    r->joining = true;
    api_start(r->chat->api, &(struct api_request){ .method = "POST", .path = path }, on_joined, r);
}

/* ---- leaving ---- */

static void on_forgotten(void *ud, const struct api_answer *a)
{
    (void)ud;
    (void)a;
}

static void on_left(void *ud, const struct api_answer *a)
{
    struct room *r = ud;
    if (a->err.kind != ERR_NONE) {
        log_warn("matrix_leave_failed", KV_S("room", r->id), KV_E(&a->err));
        return;
    }
    autofree char *id = mx_escape(r->id), *path = xasprintf("/_matrix/client/v3/rooms/%s/forget", id);
    api_start(r->chat->api, &(struct api_request){ .method = "POST", .path = path }, on_forgotten, r);
}

void matrix_room_leave(struct room *r, const char *why)
{
    autofree char *id = mx_escape(r->id), *path = xasprintf("/_matrix/client/v3/rooms/%s/leave", id);
    autojson struct json *body = json_new_object();
    log_info("matrix_leaves", KV_S("room", r->id), KV_S("why", why));
    json_set_str(body, "reason", why);
    r->invited = false;
    api_start(r->chat->api, &(struct api_request){ .method = "POST", .path = path, .body = body }, on_left, r);
}

void matrix_room_alone(struct room *r)
{
    if (r->chat->conf->matrix_leave_alone && r->joined && r->members == 1)
        matrix_room_leave(r, "everybody else has left");
}

/* ---- deciding ---- */

static const struct json *state_of(const struct json *events, const char *type, const char *key)
{
    for (const struct json *x = json_first(events); x; x = json_next(x))
        if (strcmp(json_str_or(x, "type", ""), type) == 0 && strcmp(json_str_or(x, "state_key", "?"), key) == 0)
            return x;
    return NULL;
}

static size_t joined_rooms(const struct chat *c)
{
    size_t n = 0;
    for (const struct room *r = c->rooms; r; r = r->next)
        n += r->joined || r->joining;
    return n;
}

/* The successor of a room we were in may be joined on the strength of that. */
static bool succeeds_ours(const struct chat *c, const char *room)
{
    for (const struct room *r = c->rooms; r; r = r->next)
        if (r->successor && strcmp(r->successor, room) == 0)
            return true;
    return false;
}

static bool is_flood(const struct room *asked)
{
    const struct chat *c = asked->chat;
    const int64_t now = loop_now_ms(c->loop);
    int n = 0;
    for (const struct room *r = c->rooms; r; r = r->next)
        n += r != asked && r->asked_ms && now - r->asked_ms < HOUR_MS && r->inviter && asked->inviter &&
             strcmp(r->inviter, asked->inviter) == 0;
    return n >= INVITES_MAX;
}

static bool may_invite(const struct chat *c, const char *user)
{
    const char *who = c->conf->matrix_inviters;
    return *who ? mx_matches(who, user) : strcmp(mx_server_of(user), mx_server_of(c->login.user)) == 0;
}

static const char *refusal(const struct room *r, const struct json *create)
{
    const struct chat *c = r->chat;
    if (strcmp(json_str_or(json_get(create, "content"), "type", ""), "m.space") == 0)
        return "spaces are not for me";
    if (joined_rooms(c) >= (size_t)c->conf->matrix_max_rooms)
        return "I am in too many rooms";
    if (succeeds_ours(c, r->id))
        return NULL;
    if (strcmp(c->conf->matrix_autojoin, "never") == 0)
        return "I don't take invitations";
    if (!r->inviter || matrix_is_ignored(c, r->inviter))
        return "not allowed";
    if (strcmp(c->conf->matrix_autojoin, "allowed") == 0 && !may_invite(c, r->inviter))
        return "you are not on the list of people I may talk to";
    return is_flood(r) ? "too many invitations at once: try again in an hour" : NULL;
}

void matrix_invite(struct room *r, const struct json *invite)
{
    const struct json *events = json_get(json_get(invite, "invite_state"), "events");
    const struct json *own = state_of(events, "m.room.member", r->chat->login.user);
    const char *sender = json_str_or(own, "sender", "");
    free(r->inviter);
    r->inviter = mx_is_user(sender) ? xstrdup(sender) : NULL;
    r->direct = json_bool_or(json_get(own, "content"), "is_direct", false);
    r->encrypted = r->encrypted || state_of(events, "m.room.encryption", "");
    const char *no = refusal(r, state_of(events, "m.room.create", ""));
    log_info("matrix_invited", KV_S("room", r->id), KV_S("by", sender), KV_S("declined", no ? no : ""));
    r->invited = !no;
    r->barred = false;
    r->asked_ms = loop_now_ms(r->chat->loop);
    if (no)
        matrix_room_leave(r, no);
}

/* ---- rooms that were replaced ---- */

/* Its settings and its conversation. */
static void move_to(struct room *r, struct room *next)
{
    struct chat *c = r->chat;
    autofree char *id = xasprintf("moved %s", r->id);
    const struct chat_event ev = {
        .type = CHAT_MOVED, .id = id, .about = r->id, .room = next->id, .sent_ms = time_unix_ms()
    };
    matrix_room_inherit(next, r);
    if (r->moved || c->ev->on_event(c->ud, c, &ev) < 0)
        return; /* again with the next response */
    r->moved = true;
    keep(r);
}

static void room_follow(struct room *r)
{
    struct room *next = r->successor ? matrix_room(r->chat, r->successor) : NULL;
    const bool both = next && next->predecessor && strcmp(next->predecessor, r->id) == 0;
    if (next && next->joined && both) /* they name each other */
        move_to(r, next);
    if (!next || next->joined || next->joining || next->timer || next->barred)
        return;
    if (!next->inviter && r->inviter)
        next->inviter = xstrdup(r->inviter);
    next->invited = true; /* until it works, or an invitation comes */
    next->direct = next->direct || r->direct;
    room_join(next);
}

/* ---- at start ---- */

void matrix_invites_resume(struct chat *c)
{
    for (struct room *r = c->rooms; r; r = r->next) {
        if (r->invited && !r->timer)
            room_join(r);
        if (r->successor)
            room_follow(r);
    }
}
