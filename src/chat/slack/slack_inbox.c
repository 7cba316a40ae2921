/* slack_inbox.c - what is durable about events.
 *
 * One message of a person often comes as two events, in any order (app_mention and message), and every event may come again
 * for a day: minutes later because an acknowledgement got lost, hours later because Slack was told to. So an event counts once
 * by its id and a message once by its place and time; the number of a retry says nothing, since what came while no link was
 * open exists only as a retry. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "log.h"
#include "slack_inbox_private.h"
#include "slack_text.h"

enum {
    EVENT_MS = 26 * 3600 * 1000, /* Slack repeats events for up to a day */
    PURGE_MS = 3600 * 1000,
    PURGE_AT_ONCE = 5000,
    WAITING_MAX = 20000, /* more is not acknowledged: it comes again */
};
static const int64_t FEEDBACK_MS = INT64_C(365) * 24 * 3600 * 1000;

static struct kept row(const char *kind, const char *key)
{
    return (struct kept){ .platform = "slack", .kind = kind, .key = key };
}

/* ---- reading rows ---- */

static char *get(struct slack_inbox *in, const char *kind, const char *key)
{
    struct err e = { 0 };
    char *value = NULL;
    size_t n = 0;
    const struct kept k = row(kind, key);
    if (store_kept(in->store, &k, &value, &n, &e) < 0)
        log_error("slack_row_unread", KV_S("kind", kind), KV_E(&e));
    return value;
}

static bool has(struct slack_inbox *in, const char *kind, const char *key)
{
    autofree char *value = get(in, kind, key);
    return value != NULL;
}

static int keep_now(struct slack_inbox *in, const char *kind, const char *key, struct err *e)
{
    char text[24];
    const int n = snprintf(text, sizeof(text), "%" PRId64, time_unix_ms());
    const struct kept k = row(kind, key);
    return store_keep(in->store, &k, text, (size_t)n, e);
}

char *slack_inbox_room(struct slack_inbox *in, const char *team, const char *channel)
{
    autofree char *now = xasprintf("%s/%s", team, channel);
    char *known = get(in, "alias", now);
    return known ? known : take(now);
}

struct slack_team *slack_inbox_place(struct slack_inbox *in, const char *room, char **channel)
{
    const char *slash = strchr(room, '/');
    if (!slash)
        return NULL;
    autofree char *workspace = xstrndup(room, (size_t)(slash - room)), *of = get(in, "workspace", workspace);
    struct slack_team *team = slack_teams_named(in->c.teams, workspace, of);
    if (!team)
        return NULL;
    char *moved = get(in, "moved", room);
    *channel = moved ? moved : xstrdup(slash + 1);
    return team;
}

void slack_inbox_engage(struct slack_inbox *in, const char *room, const char *root)
{
    struct err e = { 0 };
    autofree char *key = xasprintf("%s/%s", room, root);
    if (keep_now(in, "thread", key, &e) < 0)
        log_error("slack_thread_not_kept", KV_E(&e));
}

/* ---- the gate ---- */

struct arrival {
    struct json *payload;
    struct slack_event ev;
    struct slack_team *team;
    char *room, *key;
    bool kept;
};

static void arrival_clear(struct arrival *a)
{
    json_free(a->payload);
    free(a->room);
    free(a->key);
}

static char *thread_key(const struct arrival *a)
{
    return xasprintf("%s/%s", a->room, a->ev.root);
}

static char *message_key(const struct arrival *a, const char *ts)
{
    return xasprintf("m/%s/%s", a->room, ts);
}

static bool is_engaged(struct slack_inbox *in, const struct arrival *a)
{
    autofree char *key = thread_key(a);
    return has(in, "thread", key);
}

static bool is_external(const struct arrival *a)
{
    return a->ev.user_team && a->team->team && strcmp(a->ev.user_team, a->team->team) != 0 && a->ev.shared;
}

static bool is_addressed(struct slack_inbox *in, const struct arrival *a)
{
    const struct slack_event *ev = &a->ev;
    if (ev->direct || ev->mentioned)
        return true;
    return ev->replies && in->conf->slack_follow_threads &&
           !slack_text_is_for_other(ev->text, a->team->user ? a->team->user : "") && is_engaged(in, a);
}

/* True when this message was taken before; the second of two events may still bring the files that the first had not. */
static bool is_known(struct slack_inbox *in, const struct arrival *a)
{
    struct err e = { 0 };
    autofree char *key = message_key(a, a->ev.ts), *value = get(in, "seen", key);
    autojson struct json *seen = NULL;
    if (!value)
        return false;
    if (json_parse(&seen, value, strlen(value), 4096, &e) < 0)
        return true;
    return json_len(a->ev.files) == 0 || json_bool_or(seen, "files", true);
}

/* A question that was taken, or an answer of ours: the thread it belongs to, for what people do to it. */
static bool find_root(struct slack_inbox *in, struct arrival *a)
{
    struct err e = { 0 };
    autofree char *key = message_key(a, a->ev.about), *ours = xasprintf("%s/%s", a->room, a->ev.about);
    autofree char *asked = get(in, "seen", key), *said = asked ? NULL : get(in, "ours", ours);
    const char *value = asked ? asked : said;
    autojson struct json *seen = NULL;
    if (!value || json_parse(&seen, value, strlen(value), 4096, &e) < 0)
        return false;
    const char *root = json_str_or(seen, "root", NULL);
    if (!a->ev.root && root)
        json_set_str(a->payload, "sandbook_root", root); /* lives as long as the event */
    a->ev.root = a->ev.root ? a->ev.root : json_str_or(a->payload, "sandbook_root", NULL);
    return true;
}

static bool passes(struct slack_inbox *in, struct arrival *a)
{
    switch (a->ev.kind) {
    case SLACK_MESSAGE:
        if (!is_addressed(in, a) || is_known(in, a))
            return false;
        if (!is_external(a) || strcmp(in->conf->slack_external_users, "ignore") != 0)
            return true;
        log_info("slack_external_ignored", KV_S("team", a->ev.team), KV_S("user", a->ev.user));
        in->c.other(in->c.other_ud, a->team, &a->ev);
        return false;
    case SLACK_DELETE:
        (void)find_root(in, a);
        return true; /* it may have brought a file that another message was about */
    case SLACK_EDIT:
    case SLACK_REACTION: return find_root(in, a);
    case SLACK_STOP: return is_engaged(in, a);
    case SLACK_MOVED: return true;
    case SLACK_NOTHING:
    case SLACK_HOME:
    case SLACK_JOINED:
    case SLACK_GONE:
    case SLACK_RATE: return false;
    }
    return false;
}

/* ---- keeping ---- */

static int keep_moved(struct slack_inbox *in, const struct arrival *a, struct err *e)
{
    autofree char *now = xasprintf("%s/%s", a->ev.team, a->ev.key);
    const struct kept alias = row("alias", now), back = row("moved", a->room);
    log_info("slack_channel_moved", KV_S("room", a->room), KV_S("now", now));
    return store_keep(in->store, &alias, a->room, strlen(a->room), e) < 0
               ? -1
               : store_keep(in->store, &back, a->ev.key, strlen(a->ev.key), e);
}

static int keep_message(struct slack_inbox *in, struct arrival *a, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(4096);
    autojson struct json *o = json_new_object();
    autofree char *message = message_key(a, a->ev.ts), *thread = thread_key(a);
    json_set_int(o, "at", time_unix_ms());
    json_set_str(o, "root", a->ev.root);
    json_set_bool(o, "files", json_len(a->ev.files) > 0);
    json_print(&text, o);
    const struct kept seen = row("seen", message);
    if (store_keep(in->store, &seen, str_peek(&text), text.len, e) < 0)
        return -1;
    return keep_now(in, "thread", thread, e);
}

static int keep_pending(struct slack_inbox *in, struct arrival *a, bool first, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(SLACK_PAYLOAD_MAX);
    a->key = xasprintf("%016" PRIx64 "%s", ++in->seq, first ? "f" : "");
    json_print(&text, a->payload);
    const struct kept k = row("pending", a->key);
    return str_check(&text, e) < 0 ? -1 : store_keep(in->store, &k, str_peek(&text), text.len, e);
}

/* An answer knows its workspace only: which organisation's token that takes is remembered. */
static int keep_workspace(struct slack_inbox *in, const struct arrival *a, struct err *e)
{
    if (a->team->team || !a->ev.enterprise || has(in, "workspace", a->ev.team))
        return 0;
    const struct kept k = row("workspace", a->ev.team);
    return store_keep(in->store, &k, a->ev.enterprise, strlen(a->ev.enterprise), e);
}

static int keep(struct slack_inbox *in, struct arrival *a, struct err *e)
{
    autofree char *event = a->ev.event_id ? xasprintf("e/%.64s", a->ev.event_id) : NULL;
    if ((event && has(in, "seen", event)) || !passes(in, a))
        return 0;
    if ((event && keep_now(in, "seen", event, e) < 0) || keep_workspace(in, a, e) < 0)
        return -1;
    if (a->ev.kind == SLACK_MOVED)
        return keep_moved(in, a, e);
    const bool first = a->ev.kind == SLACK_MESSAGE && a->ev.replies && !is_engaged(in, a);
    if ((a->ev.kind == SLACK_MESSAGE && keep_message(in, a, e) < 0) || keep_pending(in, a, first, e) < 0)
        return -1;
    a->kept = true;
    return 0;
}

/* Nothing of what was said is logged. */
static bool read_payload(struct slack_inbox *in, struct arrival *a, const char *text)
{
    struct err e = { 0 };
    if (json_parse(&a->payload, text, strlen(text), SLACK_PAYLOAD_MAX, &e) < 0) {
        log_warn("slack_payload_unread", KV_E(&e));
        return false;
    }
    a->team = slack_teams_of(in->c.teams, a->payload);
    const struct slack_self self = a->team ? slack_team_self(a->team) : (struct slack_self){ 0 };
    slack_event_read(&a->ev, a->payload, &self);
    if (!a->team && a->ev.kind != SLACK_NOTHING)
        log_warn("slack_event_of_stranger", KV_S("team", a->ev.team));
    if (!a->team || a->ev.kind == SLACK_NOTHING)
        return false;
    if (a->ev.kind >= SLACK_HOME && a->ev.kind != SLACK_MOVED) {
        in->c.other(in->c.other_ud, a->team, &a->ev);
        return false;
    }
    a->room = slack_inbox_room(in, a->ev.team, a->ev.channel);
    return true;
}

static int keep_all(struct slack_inbox *in, struct arrival *all, const char *const *payloads, size_t n, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    size_t wanted = 0;
    for (size_t i = 0; i < n; i++) {
        if (!read_payload(in, &all[i], payloads[i]))
            continue;
        if (!wanted++ && store_batch_begin(&b, in->store, e) < 0)
            return -1;
        if (keep(in, &all[i], e) < 0)
            return -1;
    }
    return wanted ? store_batch_commit(&b, e) : 0;
}

int slack_inbox_keep(struct slack_inbox *in, const char *const *payloads, size_t n, struct err *e)
{
    if (in->waiting > WAITING_MAX)
        return err_set(e, ERR_LIMIT, "too many events wait");
    struct arrival *all = xcalloc(n ? n : 1, sizeof(*all));
    const int rc = keep_all(in, all, payloads, n, e);
    for (size_t i = 0; i < n; i++) {
        if (rc == 0 && all[i].kept)
            deliver_add(in, all[i].key, take(all[i].payload), all[i].team, all[i].room);
        arrival_clear(&all[i]);
    }
    free(all);
    return rc;
}

/* ---- an earlier life ---- */

struct rows {
    char **key, **value;
    size_t n, key_cap, value_cap, max;
    int64_t before_ms;
};

static void rows_clear(struct rows *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->key[i]);
        free(r->value[i]);
    }
    free(r->key);
    free(r->value);
}

static int add_row(struct rows *r, const char *key, const char *value, size_t n)
{
    if (r->n == r->max)
        return 0;
    r->key = xgrow(r->key, &r->key_cap, r->n + 1, sizeof(*r->key));
    r->value = xgrow(r->value, &r->value_cap, r->n + 1, sizeof(*r->value));
    r->key[r->n] = xstrdup(key);
    r->value[r->n++] = value ? xstrndup(value, n) : NULL;
    return 0;
}

static int collect(void *ud, const char *key, const char *value, size_t n)
{
    return add_row(ud, key, value, n);
}

static void take_up(struct slack_inbox *in, const char *key, const char *value)
{
    struct arrival a = { 0 };
    const uint64_t seq = strtoull(key, NULL, 16);
    in->seq = seq > in->seq ? seq : in->seq;
    if (read_payload(in, &a, value))
        deliver_add(in, key, take(a.payload), a.team, a.room);
    else
        log_warn("slack_pending_dropped", KV_S("key", key));
    arrival_clear(&a);
}

int slack_inbox_resume(struct slack_inbox *in, struct err *e)
{
    AUTO(rows_clear) struct rows rows = { .max = 2 * (size_t)WAITING_MAX };
    const struct kept k = row("pending", NULL);
    const int rc = store_kept_each(in->store, &k, collect, &rows, e);
    for (size_t i = 0; i < rows.n; i++)
        take_up(in, rows.key[i], rows.value[i]);
    if (rows.n)
        log_info("slack_resumed", KV_I("events", (int64_t)rows.n));
    return rc;
}

/* ---- forgetting ---- */

static int64_t when(const char *value)
{
    struct err e = { 0 };
    autojson struct json *o = NULL;
    if (*value != '{')
        return strtoll(value, NULL, 10);
    return json_parse(&o, value, strlen(value), 1 << 20, &e) == 0 ? json_int_or(o, "at", 0) : 0;
}

static int collect_old(void *ud, const char *key, const char *value, size_t n)
{
    struct rows *r = ud;
    autofree char *text = xstrndup(value, n);
    return when(text) < r->before_ms ? add_row(r, key, NULL, 0) : 0;
}

static void purge_kind(struct slack_inbox *in, const char *kind, const char *prefix, int64_t age_ms)
{
    struct err e = { 0 };
    AUTO(rows_clear) struct rows rows = { .max = PURGE_AT_ONCE, .before_ms = time_unix_ms() - age_ms };
    AUTO(store_batch_end) struct store_batch b = { 0 };
    const struct kept k = row(kind, prefix);
    int rc = store_kept_each(in->store, &k, collect_old, &rows, &e);
    rc = rc < 0 ? rc : store_batch_begin(&b, in->store, &e);
    for (size_t i = 0; rc == 0 && i < rows.n; i++) {
        const struct kept old = row(kind, rows.key[i]);
        rc = store_unkeep(in->store, &old, &e);
    }
    if (rc < 0 || store_batch_commit(&b, &e) < 0)
        log_warn("slack_rows_not_purged", KV_S("kind", kind), KV_E(&e));
}

static void purge(void *ud)
{
    struct slack_inbox *in = ud;
    const int64_t keep_ms = in->conf->slack_keep_ms;
    purge_kind(in, "seen", "e/", EVENT_MS);
    purge_kind(in, "seen", "m/", keep_ms);
    purge_kind(in, "ours", "", keep_ms);
    purge_kind(in, "sent", "", keep_ms);
    purge_kind(in, "thread", "", 4 * keep_ms);
    purge_kind(in, "feedback", "", FEEDBACK_MS);
    in->purge_timer = loop_after(in->loop, PURGE_MS, purge, in);
}

/* ---- life ---- */

struct slack_inbox *slack_inbox_new(const struct slack_inbox_config *c)
{
    struct slack_inbox *in = xcalloc(1, sizeof(*in));
    *in = (struct slack_inbox){ .c = *c, .loop = c->home->loop, .store = c->home->store, .conf = c->home->conf };
    in->purge_timer = loop_after(in->loop, 60000, purge, in);
    return in;
}

void slack_inbox_free(struct slack_inbox *in)
{
    if (!in)
        return;
    loop_cancel(in->loop, in->purge_timer);
    while (in->rooms) {
        struct room *r = in->rooms;
        in->rooms = r->next;
        deliver_free_room(r);
    }
    asked_free(in);
    free(in);
}
