/* room_rules.c - what a room's state lets us do there, and how its moderators and the operator want us to behave. */
#include <string.h>
#include "ids.h"
#include "json.h"
#include "log.h"
#include "matrix.h"

enum {
    MUTE_PLAIN = 1,
    MUTE_SEALED = 2,
    MUTE_REACTIONS = 4,
    CREATORS_RULE = 12, /* from this version on creators may do everything, and levels don't name them */
    SERVICE_MAX = 64,
};

/* ---- may we write? ---- */

/* Old rooms have numbers as strings. */
static int64_t level(const struct json *obj, const char *key, int64_t otherwise)
{
    const char *text = json_str_or(obj, key, NULL);
    char *end = NULL;
    if (!text)
        return json_int_or(obj, key, otherwise);
    const long long n = strtoll(text, &end, 10);
    return *text && !*end ? n : otherwise;
}

static bool is_mute(const struct json *content, const char *user, const char *type)
{
    const int64_t has = level(json_get(content, "users"), user, level(content, "users_default", 0));
    return has < level(json_get(content, "events"), type, level(content, "events_default", 0));
}

static void on_levels(struct room *r, const struct json *content, bool *changed)
{
    const char *user = r->chat->login.user;
    const int64_t mute = (is_mute(content, user, "m.room.message") ? MUTE_PLAIN : 0) |
                         (is_mute(content, user, "m.room.encrypted") ? MUTE_SEALED : 0) |
                         (is_mute(content, user, "m.reaction") ? MUTE_REACTIONS : 0);
    if (mute == r->mute)
        return;
    r->mute = mute;
    r->told_mute = false;
    *changed = true;
    matrix_outbox_pump(r->chat);
}

static bool is_listed(const struct json *users, const char *user)
{
    for (const struct json *x = json_first(users); x; x = json_next(x))
        if (json_text(x) && strcmp(json_text(x), user) == 0)
            return true;
    return false;
}

static void on_create(struct room *r, const struct json *event, bool *changed)
{
    const struct json *content = json_get(event, "content");
    const char *before = json_str_or(json_get(content, "predecessor"), "room_id", NULL);
    const bool counts = strtol(json_str_or(content, "room_version", "1"), NULL, 10) >= CREATORS_RULE;
    const bool ours = strcmp(json_str_or(event, "sender", ""), r->chat->login.user) == 0 ||
                      is_listed(json_get(content, "additional_creators"), r->chat->login.user);
    if (counts && ours && !r->creator)
        r->creator = *changed = true;
    if (!mx_is_room(before) || r->predecessor)
        return;
    r->predecessor = xstrdup(before);
    *changed = true;
}

bool matrix_room_mute(const struct room *r)
{
    return !r->creator && (r->mute & (r->encrypted ? MUTE_SEALED : MUTE_PLAIN));
}

bool matrix_room_may_react(const struct room *r)
{
    return r->creator || !(r->mute & MUTE_REACTIONS);
}

/* ---- who counts ---- */

/* Bots and bridges that the room names as such: a direct room stays one with them in it. */
static void on_service(struct room *r, const struct json *content, bool *changed)
{
    int64_t n = 0;
    for (const struct json *x = json_first(json_get(content, "service_members")); x && n < SERVICE_MAX;
         x = json_next(x))
        n += mx_is_user(json_text(x)) && strcmp(json_text(x), r->chat->login.user) != 0;
    *changed = *changed || n != r->service;
    r->service = n;
}

/* ---- how to behave ---- */

static const struct {
    const char *key, *words; /* each between blanks */
} settings[] = {
    { "msgtype", " text notice " },
    { "progress", " typing edits " },
    { "reply", " thread room " },
    { "require_mention", " always groups never " },
};

bool matrix_room_setting_ok(const char *key, const char *word)
{
    autofree char *wanted = xasprintf(" %s ", word);
    for (size_t i = 0; i < countof(settings); i++)
        if (strcmp(key, settings[i].key) == 0)
            return !strchr(word, ' ') && strstr(settings[i].words, wanted);
    return false;
}

static const char *found_in(const struct json *from, const char *key)
{
    const char *word = json_str_or(from, key, NULL);
    return word && matrix_room_setting_ok(key, word) ? word : NULL;
}

const char *matrix_room_setting(const struct room *r, const char *key, const char *otherwise)
{
    const char *word = found_in(r->ours, key);
    if (!word && r->chat->conf->matrix_room_settings)
        word = found_in(r->theirs, key);
    return word ? word : otherwise;
}

/* Only what is known is kept: the rest could be of any size. */
static void on_settings(struct room *r, const struct json *content, bool *changed)
{
    json_free(r->theirs);
    r->theirs = json_new_object();
    for (size_t i = 0; i < countof(settings); i++)
        if (found_in(content, settings[i].key))
            json_set_str(r->theirs, settings[i].key, found_in(content, settings[i].key));
    *changed = true;
}

void matrix_room_inherit(struct room *r, const struct room *old)
{
    if (!r->ours && old->ours)
        r->ours = json_dup(old->ours);
    if (!r->theirs && old->theirs)
        r->theirs = json_dup(old->theirs);
}

void matrix_room_rules(struct room *r, const struct json *event, bool *changed)
{
    const char *type = json_str_or(event, "type", "");
    const struct json *content = json_get(event, "content");
    if (*json_str_or(event, "state_key", "?"))
        return;
    if (strcmp(type, "m.room.power_levels") == 0)
        on_levels(r, content, changed);
    else if (strcmp(type, "m.room.create") == 0)
        on_create(r, event, changed);
    else if (strcmp(type, "io.element.functional_members") == 0)
        on_service(r, content, changed);
    else if (strcmp(type, MATRIX_ROOM_SETTINGS) == 0)
        on_settings(r, content, changed);
}
