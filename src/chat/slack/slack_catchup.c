#include "slack_catchup.h"
#include <stdio.h>
#include <string.h>
#include "conf.h"
#include "json.h"
#include "log.h"
#include "loop.h"

enum {
    ALIVE_MS = 30000,
    DEAF_MS = 300000, /* shorter: Slack's own repeats bring everything */
    DAY_MS = 24 * 3600 * 1000,
    PLACES_MAX = 200,
    PAGES_MAX = 5, /* of one place */
    PAGE = 200,
    EVENT_MAX = 1 << 20,
};

/* A thread, or what stands in a room outside of threads (root NULL). */
struct spot {
    char *room, *root;
    int64_t when; /* of its last event */
};

struct slack_catchup {
    struct loop *loop;
    struct store *store;
    const struct conf *conf;
    struct slack_api *api;
    struct slack_inbox *inbox;
    loop_timer alive;
    struct spot *spots; /* newest first, rooms before threads */
    size_t n, cap, at;
    int pages;
    int64_t from_ms; /* messages before it are not asked for; 0: nothing is being read */
    size_t found;
    struct slack_call *call;
};

/* ---- when we listened last ---- */

static const struct kept alive_row = { .platform = "slack", .kind = "alive", .key = "" };

static void keep_alive(void *ud)
{
    struct slack_catchup *c = ud;
    struct err e = { 0 };
    char now[24];
    AUTO(store_batch_end) struct store_batch b = { 0 };
    const int n = snprintf(now, sizeof(now), "%lld", (long long)time_unix_ms());
    c->alive = loop_after(c->loop, ALIVE_MS, keep_alive, c);
    if (store_batch_begin_lazy(&b, c->store, &e) < 0 || store_keep(c->store, &alive_row, now, (size_t)n, &e) < 0 ||
        store_batch_commit(&b, &e) < 0)
        log_warn("slack_alive_not_kept", KV_E(&e));
}

/* Unix time; 0: never. */
static int64_t last_alive(const struct slack_catchup *c)
{
    struct err e = { 0 };
    autofree char *value = NULL;
    size_t n = 0;
    if (store_kept(c->store, &alive_row, &value, &n, &e) < 0)
        log_warn("slack_alive_unread", KV_E(&e));
    return value ? strtoll(value, NULL, 10) : 0;
}

/* ---- where to look ---- */

static void drop_spots(struct slack_catchup *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->spots[i].room);
        free(c->spots[i].root);
    }
    c->n = c->at = 0;
}

static void add_spot(struct slack_catchup *c, const char *room, const char *root, int64_t when)
{
    c->spots = xgrow(c->spots, &c->cap, c->n + 1, sizeof(*c->spots));
    c->spots[c->n++] = (struct spot){ .room = xstrdup(room), .root = root ? xstrdup(root) : NULL, .when = when };
}

static struct spot *room_spot(struct slack_catchup *c, const char *room)
{
    for (size_t i = 0; i < c->n; i++)
        if (!c->spots[i].root && strcmp(c->spots[i].room, room) == 0)
            return &c->spots[i];
    return NULL;
}

/* <team>/<channel>/<root>, and when something was last said to the bot there. */
static int add_thread(void *ud, const char *key, const char *value, size_t n)
{
    struct slack_catchup *c = ud;
    const char *slash = strrchr(key, '/');
    autofree char *text = xstrndup(value, n), *room = slash ? xstrndup(key, (size_t)(slash - key)) : NULL;
    const int64_t when = strtoll(text, NULL, 10);
    if (!room || !slack_is_ts(slash + 1))
        return 0;
    struct spot *known = room_spot(c, room);
    if (!known)
        add_spot(c, room, NULL, when);
    else if (when > known->when)
        known->when = when;
    if (when >= c->from_ms - DAY_MS)
        add_spot(c, room, slash + 1, when);
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct spot *x = a, *y = b;
    if (!x->root != !y->root)
        return x->root ? 1 : -1;
    return x->when > y->when ? -1 : x->when < y->when;
}

static void find_spots(struct slack_catchup *c)
{
    struct err e = { 0 };
    const struct kept threads = { .platform = "slack", .kind = "thread", .key = NULL };
    drop_spots(c);
    if (store_kept_each(c->store, &threads, add_thread, c, &e) < 0)
        log_warn("slack_threads_unread", KV_E(&e));
    if (c->n)
        qsort(c->spots, c->n, sizeof(*c->spots), by_time);
}

/* ---- what stands there ---- */

static struct json *outer(const struct slack_team *team, const char *workspace)
{
    struct json *o = json_new_object(), *all = json_new_array(), *one = json_new_object();
    json_set_str(o, "type", "event_callback");
    json_set_str(o, "team_id", workspace);
    json_set_str(one, "team_id", team->team);
    json_set_str(one, "enterprise_id", team->enterprise);
    json_set_bool(one, "is_enterprise_install", !team->team);
    json_push(all, one);
    json_set(o, "authorizations", all);
    return o;
}

/* As the event would have come. History does not say whether a channel is shared: it is taken for one that is, so that people of other
 * organisations stay what they are. */
static char *payload_of(const struct slack_team *team, const struct spot *s, const char *channel,
                        const struct json *message)
{
    AUTO(str_clear) struct str text = STR_INIT(EVENT_MAX);
    autofree char *workspace = xstrndup(s->room, strcspn(s->room, "/"));
    autojson struct json *o = outer(team, workspace);
    struct json *event = json_dup(message);
    json_set_str(event, "channel", channel);
    if (!json_get(event, "user_team"))
        json_set_str(event, "user_team", json_str_or(message, "team", NULL));
    json_set_bool(o, "is_ext_shared_channel", true);
    json_set(o, "event", event);
    json_print(&text, o);
    return text.overflow ? NULL : str_take(&text);
}

/* Oldest first, whatever order they come in. */
static void keep_page(struct slack_catchup *c, const struct slack_team *team, const char *channel,
                      const struct json *page)
{
    const struct spot *s = &c->spots[c->at];
    struct err e = { 0 };
    const size_t all = json_len(page);
    char **payloads = xcalloc(all + 1, sizeof(*payloads));
    size_t n = 0;
    for (const struct json *m = json_first(page); m; m = json_next(m)) {
        char *payload = slack_ts_ms(json_str_or(m, "ts", "")) >= c->from_ms ? payload_of(team, s, channel, m) : NULL;
        if (payload)
            payloads[s->root ? n++ : all - ++n] = payload;
    }
    const char *const *first = (const char *const *)(s->root ? payloads : payloads + (all - n));
    if (n && slack_inbox_keep(c->inbox, first, n, &e) < 0)
        log_error("slack_events_not_kept", KV_I("events", (int64_t)n), KV_E(&e));
    c->found += n;
    for (size_t i = 0; i < all; i++)
        free(payloads[i]);
    free(payloads);
}

static bool ask(struct slack_catchup *c, const char *cursor);
static void next(struct slack_catchup *c);

static void on_page(void *ud, const struct slack_reply *r)
{
    struct slack_catchup *c = ud;
    char *channel = NULL;
    const struct slack_team *team = slack_inbox_place(c->inbox, c->spots[c->at].room, &channel);
    const char *cursor = json_str_or(json_get(r->body, "response_metadata"), "next_cursor", "");
    c->call = NULL;
    if (!r->err && team)
        keep_page(c, team, channel, json_get(r->body, "messages"));
    free(channel);
    if (!r->err && *cursor && ++c->pages < PAGES_MAX && ask(c, cursor))
        return;
    c->at++;
    next(c);
}

/* false: there is nobody to ask. */
static bool ask(struct slack_catchup *c, const char *cursor)
{
    const struct spot *s = &c->spots[c->at];
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    char oldest[40];
    autofree char *channel = NULL;
    struct slack_team *team = slack_inbox_place(c->inbox, s->room, &channel);
    if (!team)
        return false;
    (void)snprintf(oldest, sizeof(oldest), "%lld.000000", (long long)(c->from_ms / 1000));
    slack_form_add(&form, "channel", channel);
    slack_form_add(&form, "ts", s->root);
    slack_form_add(&form, "oldest", oldest);
    slack_form_add_int(&form, "limit", PAGE);
    slack_form_add(&form, "cursor", cursor);
    const struct slack_request r = {
        .method = s->root ? "conversations.replies" : "conversations.history", .team = team, .form = &form, .tries = 3
    };
    c->call = slack_api_start(c->api, &r, on_page, c);
    return true;
}

static void next(struct slack_catchup *c)
{
    for (; c->at < c->n && c->at < PLACES_MAX; c->at++) {
        c->pages = 0;
        if (ask(c, NULL))
            return;
    }
    log_info("slack_caught_up", KV_I("places", (int64_t)c->at), KV_I("places_left", (int64_t)(c->n - c->at)),
             KV_I("messages", (int64_t)c->found));
    drop_spots(c);
    c->from_ms = 0;
}

static void catch_up(struct slack_catchup *c, int64_t since_ms)
{
    const int64_t now = time_unix_ms(), oldest = now - c->conf->slack_catch_up_ms;
    log_warn("slack_was_deaf", KV_I("deaf_ms", now - since_ms),
             KV_S("meaning",
                  "Slack repeats an event for five minutes; what it gave up on is looked for in the conversations"));
    if (!c->conf->slack_catch_up_ms || c->from_ms)
        return;
    c->from_ms = since_ms > oldest ? since_ms : oldest;
    c->found = 0;
    find_spots(c);
    next(c);
}

/* ---- used ---- */

void slack_catchup_heard(struct slack_catchup *c, int64_t deaf_ms)
{
    const int64_t last = last_alive(c), now = time_unix_ms();
    const int64_t since = deaf_ms ? now - deaf_ms : last;
    if (since && now - since > DEAF_MS)
        catch_up(c, since);
    loop_cancel(c->loop, c->alive);
    keep_alive(c);
}

void slack_catchup_deaf(struct slack_catchup *c)
{
    loop_cancel(c->loop, c->alive);
    c->alive = 0;
}

struct slack_catchup *slack_catchup_new(const struct chat_home *home, struct slack_api *api, struct slack_inbox *inbox)
{
    struct slack_catchup *c = xcalloc(1, sizeof(*c));
    *c = (struct slack_catchup){
        .loop = home->loop, .store = home->store, .conf = home->conf, .api = api, .inbox = inbox
    };
    return c;
}

void slack_catchup_free(struct slack_catchup *c)
{
    if (!c)
        return;
    loop_cancel(c->loop, c->alive);
    slack_api_cancel(c->call);
    drop_spots(c);
    free(c->spots);
    free(c);
}
