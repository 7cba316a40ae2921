#include "slack_side.h"
#include <stdio.h>
#include <string.h>
#include "json.h"
#include "log.h"
#include "metric.h"
#include "slack_blocks.h"

enum { HOUR_MS = 3600 * 1000, DAY_MS = 24 * HOUR_MS };

struct slack_side {
    struct store *store;
    struct slack_api *api;
    struct slack_teams *teams;
    struct slack_inbox *inbox;
};

static void ignore_reply(void *ud, const struct slack_reply *r)
{
    (void)ud;
    (void)r; /* logged where it was sent; nobody waits for it */
}

static struct kept row(const char *kind, const char *key)
{
    return (struct kept){ .platform = "slack", .kind = kind, .key = key };
}

/* True the first time, and again when it was longer ago than every_ms (0: never again). */
static bool is_due(struct slack_side *s, const char *kind, const char *key, int64_t every_ms)
{
    struct err e = { 0 };
    autofree char *value = NULL;
    char now[24];
    size_t n = 0;
    const struct kept k = row(kind, key);
    if (store_kept(s->store, &k, &value, &n, &e) < 0 ||
        (value && (!every_ms || time_unix_ms() - strtoll(value, NULL, 10) < every_ms)))
        return false;
    (void)snprintf(now, sizeof(now), "%lld", (long long)time_unix_ms());
    return store_keep(s->store, &k, now, strlen(now), &e) == 0;
}

/* ---- prompts and words ---- */

static struct json *prompt_json(const char *title, const char *message)
{
    struct json *o = json_new_object();
    json_set_str(o, "title", title);
    json_set_str(o, "message", message);
    return o;
}

static void suggest_prompts(struct slack_side *s, struct slack_team *team, const char *channel)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    autojson struct json *prompts = json_new_array();
    json_push(prompts, prompt_json("Look into a file", "Give me an overview of the file I upload next."));
    json_push(prompts, prompt_json("Chart a trend", "Plot how the numbers in my file develop over time."));
    json_push(prompts, prompt_json("What can you do?", "help"));
    slack_form_add(&form, "channel_id", channel);
    slack_form_add(&form, "title", "Upload a table and ask");
    slack_form_add_json(&form, "prompts", prompts);
    const struct slack_request r = {
        .method = "assistant.threads.setSuggestedPrompts", .team = team, .form = &form, .tries = 1
    };
    (void)slack_api_start(s->api, &r, ignore_reply, s);
}

static void greet(struct slack_side *s, struct slack_team *team, const char *channel)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    slack_form_add(&form, "channel", channel);
    slack_form_add(&form, "text",
                   "Hello. Mention me in a thread with a file in it and ask; I run code on it and answer there.");
    const struct slack_request r = { .method = "chat.postMessage", .team = team, .channel = channel, .form = &form };
    (void)slack_api_start(s->api, &r, ignore_reply, s);
}

/* Seen by that person only, and gone when Slack is opened again. */
static void whisper(struct slack_side *s, struct slack_team *team, const char *channel, const char *root,
                    const char *user, const char *text)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    slack_form_add(&form, "channel", channel);
    slack_form_add(&form, "user", user);
    slack_form_add(&form, "thread_ts", root);
    slack_form_add(&form, "text", text);
    const struct slack_request r = { .method = "chat.postEphemeral", .team = team, .form = &form, .tries = 2 };
    (void)slack_api_start(s->api, &r, ignore_reply, s);
}

static void tell_outsider(struct slack_side *s, struct slack_team *team, const struct slack_event *ev)
{
    autofree char *key = xasprintf("%s/%s/%s", ev->team, ev->channel, ev->user_team);
    if (is_due(s, "outsider", key, DAY_MS))
        whisper(s, team, ev->channel, ev->replies ? ev->root : NULL, ev->user,
                "I answer people of the organisation that I was installed by only.");
}

void slack_side_event(struct slack_side *s, struct slack_team *team, const struct slack_event *ev)
{
    autofree char *place = xasprintf("%s/%s", ev->team, ev->channel ? ev->channel : "");
    if (ev->kind == SLACK_HOME && is_due(s, "home", place, HOUR_MS)) {
        suggest_prompts(s, team, ev->channel);
    } else if (ev->kind == SLACK_JOINED && is_due(s, "joined", place, 0)) {
        greet(s, team, ev->channel);
    } else if (ev->kind == SLACK_MESSAGE) {
        tell_outsider(s, team, ev);
    } else if (ev->kind == SLACK_GONE) {
        team->gone = true;
        log_error("slack_removed", KV_S("team", ev->team));
    } else if (ev->kind == SLACK_RATE) {
        log_warn("slack_events_held_back", KV_S("team", ev->team));
    }
}

/* ---- judgements ---- */

struct judgement {
    struct slack_team *team;
    const char *user, *channel, *ts, *root, *value;
};

static const char *id_in(const struct json *payload, const char *what, const char *key)
{
    const char *id = json_str_or(json_get(payload, what), key, NULL);
    return slack_is_id(id) ? id : NULL;
}

static const char *judged(const struct json *payload)
{
    for (const struct json *a = json_first(json_get(payload, "actions")); a; a = json_next(a)) {
        const char *value = json_str_or(a, "value", "");
        const bool ours = strcmp(json_str_or(a, "action_id", ""), SLACK_FEEDBACK_ACTION) == 0;
        if (ours && (strcmp(value, SLACK_FEEDBACK_GOOD) == 0 || strcmp(value, SLACK_FEEDBACK_BAD) == 0))
            return value;
    }
    return NULL;
}

static bool read_judgement(const struct slack_side *s, const struct json *payload, struct judgement *out)
{
    const struct json *message = json_get(payload, "message"), *at = json_get(payload, "container");
    const char *ts = json_str_or(message, "ts", json_str_or(at, "message_ts", NULL));
    const char *root = json_str_or(message, "thread_ts", json_str_or(at, "thread_ts", NULL));
    const char *workspace = id_in(payload, "team", "id"), *home = id_in(payload, "user", "team_id");
    *out = (struct judgement){ .team = slack_teams_named(s->teams, workspace, id_in(payload, "enterprise", "id")),
                               .user = id_in(payload, "user", "id"),
                               .channel = id_in(payload, "channel", "id"),
                               .ts = slack_is_ts(ts) ? ts : NULL,
                               .root = slack_is_ts(root) ? root : NULL,
                               .value = judged(payload) };
    const bool outsider = out->team && out->team->team && home && strcmp(home, out->team->team) != 0;
    return strcmp(json_str_or(payload, "type", ""), "block_actions") == 0 && out->team && !outsider && out->user &&
           out->channel && out->ts && out->value;
}

static bool is_ours(struct slack_side *s, const char *key)
{
    struct err e = { 0 };
    autofree char *value = NULL;
    size_t n = 0;
    const struct kept k = row("ours", key);
    return store_kept(s->store, &k, &value, &n, &e) == 0 && value;
}

void slack_side_action(struct slack_side *s, const struct json *payload)
{
    struct err e = { 0 };
    struct judgement j;
    if (!read_judgement(s, payload, &j))
        return;
    const char *workspace = id_in(payload, "team", "id");
    autofree char *room = slack_inbox_room(s->inbox, workspace, j.channel);
    autofree char *answer = xasprintf("%s/%s", room, j.ts), *key = xasprintf("%s/%s", answer, j.user);
    AUTO(str_clear) struct str text = STR_INIT(256);
    autojson struct json *o = json_new_object();
    json_set_int(o, "at", time_unix_ms());
    json_set_str(o, "value", j.value);
    json_print(&text, o);
    const struct kept k = row("feedback", key);
    if (!is_ours(s, answer) || store_keep(s->store, &k, str_peek(&text), text.len, &e) < 0) {
        log_warn("slack_feedback_not_kept", KV_S("answer", answer), KV_E(&e));
        return;
    }
    metric_count(METRIC_FEEDBACK, j.value, 1);
    log_info("slack_feedback", KV_S("answer", answer), KV_S("value", j.value));
    whisper(s, j.team, j.channel, j.root, j.user,
            strcmp(j.value, SLACK_FEEDBACK_GOOD) == 0
                ? "Thank you, that is noted."
                : "Thank you, that is noted. Say here what was wrong, and I try again.");
}

/* ---- life ---- */

struct slack_side *slack_side_new(const struct chat_home *home, struct slack_api *api, struct slack_teams *teams,
                                  struct slack_inbox *inbox)
{
    struct slack_side *s = xcalloc(1, sizeof(*s));
    *s = (struct slack_side){ .store = home->store, .api = api, .teams = teams, .inbox = inbox };
    return s;
}

void slack_side_free(struct slack_side *s)
{
    free(s);
}
