/* rooms.c - what is known of each room; a small row each, kept in the batch of the sync that told it. */
#include <string.h>
#include "ids.h"
#include "json.h"
#include "log.h"
#include "matrix.h"

static struct kept row_of(const char *id)
{
    return (struct kept){ MATRIX_PLATFORM, "room", id };
}

struct room *matrix_room_find(struct chat *c, const char *id)
{
    for (struct room *r = id ? c->rooms : NULL; r; r = r->next)
        if (strcmp(r->id, id) == 0)
            return r;
    return NULL;
}

struct room *matrix_room(struct chat *c, const char *id)
{
    struct room *r = matrix_room_find(c, id);
    if (r)
        return r;
    r = xcalloc(1, sizeof(*r));
    *r = (struct room){ .next = c->rooms, .id = xstrdup(id), .chat = c };
    c->rooms = r;
    return r;
}

void matrix_rooms_free(struct chat *c)
{
    while (c->rooms) {
        struct room *r = c->rooms;
        c->rooms = r->next;
        loop_cancel(c->loop, r->timer);
        free(r->id);
        free(r->history);
        free(r->inviter);
        free(r->successor);
        free(r->predecessor);
        json_free(r->ours);
        json_free(r->theirs);
        free(r);
    }
}

/* ---- rows ---- */

int matrix_room_keep(struct room *r, struct err *e)
{
    const struct kept row = row_of(r->id);
    if (!r->joined && !r->invited && !r->encrypted)
        return store_unkeep(r->chat->store, &row, e);
    autojson struct json *j = json_new_object();
    AUTO(str_clear) struct str text = STR_INIT(16 << 10);
    json_set_bool(j, "joined", r->joined);
    json_set_bool(j, "invited", r->invited);
    json_set_bool(j, "encrypted", r->encrypted);
    json_set_bool(j, "direct", r->direct);
    json_set_bool(j, "gone", r->gone);
    json_set_bool(j, "moved", r->moved);
    json_set_bool(j, "only_joined", r->only_joined);
    json_set_int(j, "members", r->members);
    json_set_str(j, "history", r->history);
    json_set_str(j, "inviter", r->inviter);
    json_set_str(j, "successor", r->successor);
    json_set_str(j, "predecessor", r->predecessor);
    json_set_bool(j, "creator", r->creator);
    json_set_int(j, "service", r->service);
    json_set_int(j, "mute", r->mute);
    json_set(j, "ours", r->ours ? json_dup(r->ours) : NULL);
    json_set(j, "theirs", r->theirs ? json_dup(r->theirs) : NULL);
    json_print(&text, j);
    return store_keep(r->chat->store, &row, str_peek(&text), text.len, e);
}

static char *member(const struct json *j, const char *key)
{
    const char *text = json_str_or(j, key, NULL);
    return xstrdup_or_null(text);
}

static struct json *object(const struct json *j, const char *key)
{
    const struct json *v = json_get(j, key);
    return json_type(v) == JSON_OBJECT ? json_dup(v) : NULL;
}

static int load_row(void *ud, const char *key, const char *value, size_t n)
{
    autojson struct json *j = NULL;
    struct err e = { 0 };
    if (json_parse(&j, value, n, 16 << 10, &e) < 0) {
        log_error("matrix_room_row_broken", KV_S("room", key), KV_E(&e));
        return 0;
    }
    struct room *r = matrix_room(ud, key);
    r->joined = json_bool_or(j, "joined", false);
    r->invited = json_bool_or(j, "invited", false);
    r->encrypted = json_bool_or(j, "encrypted", false);
    r->direct = json_bool_or(j, "direct", false);
    r->gone = json_bool_or(j, "gone", false);
    r->moved = json_bool_or(j, "moved", false);
    r->only_joined = json_bool_or(j, "only_joined", false);
    r->members = json_int_or(j, "members", 0);
    r->creator = json_bool_or(j, "creator", false);
    r->service = json_int_or(j, "service", 0);
    r->mute = json_int_or(j, "mute", 0);
    r->history = member(j, "history");
    r->inviter = member(j, "inviter");
    r->successor = member(j, "successor");
    r->predecessor = member(j, "predecessor");
    r->ours = object(j, "ours");
    r->theirs = object(j, "theirs");
    return 0;
}

int matrix_rooms_load(struct chat *c, struct err *e)
{
    const struct kept all = { MATRIX_PLATFORM, "room", NULL };
    return store_kept_each(c->store, &all, load_row, c, e);
}

/* ---- what kind of room ---- */

bool matrix_is_in_direct(const struct chat *c, const char *room)
{
    for (const struct json *user = json_first(c->direct); user; user = json_next(user))
        for (const struct json *x = json_first(user); x; x = json_next(x))
            if (json_text(x) && strcmp(json_text(x), room) == 0)
                return true;
    return false;
}

/* Neither two members nor a name make a room direct: somebody must have said so, and nobody else be in it. */
bool matrix_room_is_direct(const struct room *r)
{
    return (r->direct || matrix_is_in_direct(r->chat, r->id)) && r->members - r->service <= 2;
}

/* ---- state ---- */

static void on_tombstone(struct room *r, const struct json *content, bool *changed)
{
    const char *successor = json_str_or(content, "replacement_room", NULL);
    if (!mx_is_room(successor) || r->successor)
        return;
    r->successor = xstrdup(successor);
    r->gone = *changed = true;
    log_info("matrix_room_replaced", KV_S("room", r->id), KV_S("by", successor));
}

static void on_history(struct room *r, const char *who, bool *changed)
{
    if (strlen(who) > 32 || (r->history && strcmp(r->history, who) == 0))
        return;
    free(r->history);
    r->history = xstrdup(who);
    r->only_joined = strcmp(who, "joined") == 0;
    *changed = true;
}

static void on_member(struct room *r, const struct json *event, bool *changed)
{
    const struct json *content = json_get(event, "content");
    const char *who = json_str_or(event, "state_key", ""), *membership = json_str_or(content, "membership", "");
    if (strcmp(who, r->chat->login.user) != 0 || strcmp(membership, "join") != 0)
        return;
    if (json_bool_or(content, "is_direct", false) && !r->direct)
        r->direct = *changed = true;
}

void matrix_room_state(struct room *r, const struct json *event, bool *changed)
{
    const char *type = json_str_or(event, "type", ""), *key = json_str_or(event, "state_key", NULL);
    const struct json *content = json_get(event, "content");
    if (!key)
        return;
    matrix_room_rules(r, event, changed);
    if (strcmp(type, "m.room.encryption") == 0 && !*key && !r->encrypted)
        r->encrypted = *changed = true; /* never back */
    else if (strcmp(type, "m.room.history_visibility") == 0 && !*key)
        on_history(r, json_str_or(content, "history_visibility", "shared"), changed);
    else if (strcmp(type, "m.room.tombstone") == 0 && !*key)
        on_tombstone(r, content, changed);
    else if (strcmp(type, "m.room.member") == 0)
        on_member(r, event, changed);
}

void matrix_room_summary(struct room *r, const struct json *joined, bool *changed)
{
    const struct json *summary = json_get(joined, "summary");
    if (json_len(summary) == 0)
        return;
    const int64_t in = json_int_or(summary, "m.joined_member_count", 0);
    const int64_t asked = json_int_or(summary, "m.invited_member_count", 0);
    if (in + asked <= 0 || in + asked == r->members)
        return;
    r->members = in + asked;
    *changed = true;
}
