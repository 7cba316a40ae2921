#include "slack_event.h"
#include <string.h>
#include "slack_text.h"

enum { ID_MAX = 30 };

bool slack_is_ts(const char *ts)
{
    if (!ts)
        return false;
    const size_t s = strspn(ts, "0123456789");
    return s >= 1 && s <= 15 && ts[s] == '.' && strspn(ts + s + 1, "0123456789") == 6 && ts[s + 7] == '\0';
}

bool slack_is_id(const char *id)
{
    if (!id)
        return false;
    const size_t n = strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    return n > 0 && n <= ID_MAX && id[n] == '\0';
}

int64_t slack_ts_ms(const char *ts)
{
    if (!slack_is_ts(ts))
        return 0;
    const char *dot = strchr(ts, '.');
    return strtoll(ts, NULL, 10) * 1000 + strtoll(dot + 1, NULL, 10) / 1000;
}

int slack_ts_compare(const char *a, const char *b)
{
    const long long as = strtoll(a, NULL, 10), bs = strtoll(b, NULL, 10);
    if (as != bs)
        return as < bs ? -1 : 1;
    const char *ad = strchr(a, '.'), *bd = strchr(b, '.');
    const long long am = ad ? strtoll(ad + 1, NULL, 10) : 0, bm = bd ? strtoll(bd + 1, NULL, 10) : 0;
    return am < bm ? -1 : am > bm;
}

/* ---- fields ---- */

static const char *id_of(const struct json *o, const char *key)
{
    const char *id = json_str_or(o, key, NULL);
    return slack_is_id(id) ? id : NULL;
}

static const char *ts_of(const struct json *o, const char *key)
{
    const char *ts = json_str_or(o, key, NULL);
    return slack_is_ts(ts) ? ts : NULL;
}

static bool is_same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static void nothing(struct slack_event *out, const char *why)
{
    out->kind = SLACK_NOTHING;
    out->why = why;
}

/* Ours: every post, edit and upload of the bot comes back as an event. */
static bool is_own(const struct json *m, const struct slack_self *self)
{
    return is_same(json_str_or(m, "user", NULL), self->user) || is_same(json_str_or(m, "bot_id", NULL), self->bot) ||
           is_same(json_str_or(m, "app_id", NULL), self->app);
}

static bool is_program(const struct json *m)
{
    return json_str_or(m, "bot_id", NULL) || is_same(json_str_or(m, "user", NULL), "USLACK") ||
           is_same(json_str_or(m, "subtype", NULL), "bot_message");
}

static void read_place(struct slack_event *out, const struct json *event)
{
    const char *type = json_str_or(event, "channel_type", ""), *channel = id_of(event, "channel");
    out->channel = channel;
    out->direct = strcmp(type, "im") == 0 || strcmp(type, "app_home") == 0 || (!*type && channel && *channel == 'D');
    out->group_direct = strcmp(type, "mpim") == 0;
}

static void read_words(struct slack_event *out, const struct json *m, const struct slack_self *self)
{
    const char *thread = ts_of(m, "thread_ts");
    out->user = id_of(m, "user");
    out->user_team = id_of(m, "user_team") ? id_of(m, "user_team") : id_of(m, "source_team");
    out->text = json_str_or(m, "text", "");
    out->ts = ts_of(m, "ts");
    out->root = thread ? thread : out->ts;
    out->replies = thread && out->ts && strcmp(thread, out->ts) != 0;
    out->mentioned = out->mentioned || (self->user && slack_text_mentions(out->text, self->user));
    out->files = json_get(m, "files");
    out->attachments = json_get(m, "attachments");
    out->blocks = json_get(m, "blocks");
    out->sent_ms = slack_ts_ms(out->ts);
}

/* ---- messages ---- */

static bool is_human_subtype(const char *subtype)
{
    static const char *const human[] = { "file_share", "thread_broadcast", "me_message" };
    for (size_t i = 0; i < countof(human); i++)
        if (strcmp(subtype, human[i]) == 0)
            return true;
    return *subtype == '\0';
}

static void read_deletion(struct slack_event *out, const struct json *event, const char *ts,
                          const struct slack_self *self)
{
    const struct json *before = json_get(event, "previous_message");
    const char *thread = ts_of(before, "thread_ts");
    if (is_own(before, self)) {
        nothing(out, "deletion of our own");
        return;
    }
    out->about = ts;
    out->ts = ts_of(event, "ts") ? ts_of(event, "ts") : out->about;
    out->root = thread ? thread : out->about;
    out->user = id_of(before, "user");
    out->kind = out->about ? SLACK_DELETE : SLACK_NOTHING;
}

/* Unfurls, replies, our own updates and files being processed all raise message_changed; only other words are an edit. */
static void read_change(struct slack_event *out, const struct json *event, const struct slack_self *self)
{
    const struct json *now = json_get(event, "message"), *before = json_get(event, "previous_message");
    if (strcmp(json_str_or(now, "subtype", ""), "tombstone") == 0) { /* the root of a thread that has replies */
        read_deletion(out, event, ts_of(now, "ts"), self);
        return;
    }
    if (is_own(now, self) || is_program(now) || !is_human_subtype(json_str_or(now, "subtype", ""))) {
        nothing(out, "change of a program's message");
        return;
    }
    const char *was = json_str_or(before, "text", NULL);
    read_words(out, now, self);
    if (!out->ts || !out->user || (was ? strcmp(was, out->text) == 0 : !json_get(now, "edited"))) {
        nothing(out, "change that is no edit");
        return;
    }
    out->about = out->ts;
    out->ts = ts_of(json_get(now, "edited"), "ts");
    out->ts = out->ts ? out->ts : ts_of(event, "ts");
    out->files = NULL;
    out->kind = out->ts ? SLACK_EDIT : SLACK_NOTHING;
}

static void read_message(struct slack_event *out, const struct json *event, const struct slack_self *self)
{
    const char *subtype = json_str_or(event, "subtype", "");
    if (strcmp(subtype, "message_changed") == 0) {
        read_change(out, event, self);
        return;
    }
    if (strcmp(subtype, "message_deleted") == 0) {
        read_deletion(out, event, ts_of(event, "deleted_ts"), self);
        return;
    }
    if (json_bool_or(event, "hidden", false) || !is_human_subtype(subtype)) {
        nothing(out, "system message");
        return;
    }
    if (is_own(event, self) || is_program(event)) {
        nothing(out, is_own(event, self) ? "our own message" : "another program's message");
        return;
    }
    read_words(out, event, self);
    out->kind = out->ts && out->user ? SLACK_MESSAGE : SLACK_NOTHING;
    out->why = out->kind == SLACK_NOTHING ? "message without ts or user" : NULL;
}

static void read_mention(struct slack_event *out, const struct json *event, const struct slack_self *self)
{
    out->mentioned = true;
    read_message(out, event, self);
}

/* ---- the rest ---- */

/* Slack calls by name what other platforms send as the sign itself. A name that we know nothing of stays one. */
static const char *sign_of(const char *name)
{
    static const char *const signs[][2] = {
        { "octagonal_sign", "🛑" },
        { "black_square_for_stop", "⏹" },
        { "x", "❌" },
        { "repeat", "🔁" },
        { "arrows_counterclockwise", "🔄" },
        { "leftwards_arrow_with_hook", "↩" },
        { "rewind", "⏪" },
        { "computer", "💻" },
    };
    for (size_t i = 0; name && i < countof(signs); i++)
        if (strcmp(name, signs[i][0]) == 0)
            return signs[i][1];
    return name;
}

static void read_reaction(struct slack_event *out, const struct json *event, const struct slack_self *self)
{
    const struct json *item = json_get(event, "item");
    out->user = id_of(event, "user");
    out->channel = id_of(item, "channel");
    out->about = ts_of(item, "ts");
    out->ts = ts_of(event, "event_ts");
    out->key = sign_of(json_str_or(event, "reaction", NULL));
    out->sent_ms = slack_ts_ms(out->ts);
    if (is_same(out->user, self->user) || !out->user || !out->channel || !out->about || !out->ts || !out->key)
        nothing(out, "reaction of our own, or to no message");
    else
        out->kind = SLACK_REACTION;
}

static void read_stop(struct slack_event *out, const struct json *event, const struct slack_self *self)
{
    (void)self;
    out->user = id_of(event, "user");
    out->root = out->about = ts_of(event, "thread_ts");
    out->ts = ts_of(event, "event_ts") ? ts_of(event, "event_ts") : out->root;
    out->sent_ms = slack_ts_ms(out->ts);
    out->kind = out->root && out->user && out->channel ? SLACK_STOP : SLACK_NOTHING;
}

static void read_home(struct slack_event *out, const struct json *event, const struct slack_self *self)
{
    (void)self;
    out->user = id_of(event, "user");
    const bool messages = is_same(json_str_or(event, "tab", NULL), "messages");
    out->kind = messages && out->user && out->channel ? SLACK_HOME : SLACK_NOTHING;
}

static void read_joined(struct slack_event *out, const struct json *event, const struct slack_self *self)
{
    out->user = id_of(event, "user");
    out->kind = is_same(out->user, self->user) && out->channel ? SLACK_JOINED : SLACK_NOTHING;
}

static void read_moved(struct slack_event *out, const struct json *event, const struct slack_self *self)
{
    (void)self;
    out->channel = id_of(event, "old_channel_id");
    out->key = id_of(event, "new_channel_id");
    out->kind = out->channel && out->key ? SLACK_MOVED : SLACK_NOTHING;
}

static void read_gone(struct slack_event *out, const struct json *event, const struct slack_self *self)
{
    (void)self;
    const bool revoked = is_same(json_str_or(event, "type", NULL), "tokens_revoked");
    out->kind = !revoked || json_len(json_get(json_get(event, "tokens"), "bot")) ? SLACK_GONE : SLACK_NOTHING;
}

static const struct {
    const char *type;
    void (*read)(struct slack_event *out, const struct json *event, const struct slack_self *self);
} readers[] = {
    { "agent_session_stopped", read_stop },
    { "app_home_opened", read_home },
    { "app_mention", read_mention },
    { "app_uninstalled", read_gone },
    { "channel_id_changed", read_moved },
    { "member_joined_channel", read_joined },
    { "message", read_message },
    { "reaction_added", read_reaction },
    { "tokens_revoked", read_gone },
};

void slack_event_installation(const struct json *payload, const char **team, const char **enterprise)
{
    const struct json *a = json_first(json_get(payload, "authorizations"));
    const char *authorised = id_of(a, "team_id");
    *team = authorised ? authorised : id_of(payload, "team_id");
    *enterprise = id_of(a, "enterprise_id");
    if (json_bool_or(a, "is_enterprise_install", false) && *enterprise)
        *team = id_of(payload, "team_id"); /* one token for all its workspaces; the place still has one of them */
}

void slack_event_read(struct slack_event *out, const struct json *payload, const struct slack_self *self)
{
    const struct json *event = json_get(payload, "event");
    const char *outer = json_str_or(payload, "type", ""), *type = json_str_or(event, "type", "");
    const struct slack_self us = { self->user, self->bot, self->app ? self->app : id_of(payload, "api_app_id") };
    *out = (struct slack_event){ .why = "not an event for us" };
    out->event_id = json_str_or(payload, "event_id", NULL);
    out->shared = json_bool_or(payload, "is_ext_shared_channel", false);
    slack_event_installation(payload, &out->team, &out->enterprise);
    if (strcmp(outer, "app_rate_limited") == 0) {
        out->kind = SLACK_RATE;
        return;
    }
    if (strcmp(outer, "event_callback") != 0 || !out->team)
        return;
    read_place(out, event);
    for (size_t i = 0; i < countof(readers); i++)
        if (strcmp(type, readers[i].type) == 0)
            readers[i].read(out, event, &us);
    if (out->kind >= SLACK_MESSAGE && out->kind <= SLACK_DELETE && !out->channel)
        nothing(out, "message without a channel");
}
