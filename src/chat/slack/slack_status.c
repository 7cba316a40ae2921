/* slack_status.c - the one line that says how a turn is doing: Slack's own status under the thread where the workspace has
 * it, else a message that is edited and taken away at the end; or, where that is wanted, a stream of steps (slack_stream.c).
 *
 * Only the newest words count: what was not sent yet is replaced. At most one change in three seconds. */
#include <stdio.h>
#include <string.h>
#include "slack_status_private.h"
#include "slack_text.h"

enum {
    BETWEEN_MS = 3000,
    STREAM_MS = 1000,    /* the same, of a stream */
    LATCH_MS = 3600000,  /* a feature that a workspace has not is tried again after that */
    REFRESH_MS = 90000,  /* Slack forgets a status after two minutes, */
    SESSION_MS = 600000, /* and after an hour that a session is at work */
    WORDS_BYTES = 200,
    ROW_MAX = 4096,
};

/* ---- rows ---- */

void status_keep(const struct slack_status *s)
{
    struct err e = { 0 };
    AUTO(str_clear) struct str text = STR_INIT(ROW_MAX);
    autojson struct json *o = json_new_object();
    json_set_str(o, "room", s->room);
    json_set_str(o, "thread", s->thread);
    json_set_str(o, "ts", s->ts);
    json_set_bool(o, "stream", s->stream);
    json_print(&text, o);
    const struct kept k = { .platform = "slack", .kind = "status", .key = s->txn };
    if (store_keep(s->o->store, &k, str_peek(&text), text.len, &e) < 0)
        log_warn("slack_status_not_kept", KV_E(&e));
}

static void forget(const struct slack_status *s)
{
    struct err e = { 0 };
    const struct kept k = { .platform = "slack", .kind = "status", .key = s->txn };
    if (store_unkeep(s->o->store, &k, &e) < 0)
        log_warn("slack_status_not_kept", KV_E(&e));
}

/* ---- life ---- */

static void status_free(struct slack_status *s)
{
    struct slack_status **at = &s->o->statuses;
    while (*at && *at != s)
        at = &(*at)->next;
    if (*at)
        *at = s->next;
    slack_api_cancel(s->call);
    loop_cancel(s->o->loop, s->timer);
    slack_place_clear(&s->place);
    free(s->txn);
    free(s->room);
    free(s->thread);
    free(s->wanted);
    free(s->shown);
    free(s->draft);
    free(s->ts);
    free(s);
}

void slack_status_free_all(struct slack_out *o)
{
    while (o->statuses)
        status_free(o->statuses);
}

static void on_time(void *ud)
{
    struct slack_status *s = ud;
    s->timer = 0;
    status_work(s);
}

void status_later(struct slack_status *s, int64_t ms)
{
    loop_cancel(s->o->loop, s->timer);
    s->timer = loop_after(s->o->loop, ms > 0 ? ms : 0, on_time, s);
}

/* ---- Slack's own status ---- */

static void nobody_waits(void *ud, const struct slack_reply *r)
{
    struct slack_team *team = ud;
    if (slack_lacks_feature(r))
        team->no_status_until_ms = time_unix_ms() + LATCH_MS;
}

static void ignore_reply(void *ud, const struct slack_reply *r)
{
    (void)ud;
    (void)r; /* logged where it was sent; a title is no more than a title */
}

/* Where a workspace has the older assistant threads only. */
static void set_title(const struct slack_status *s, const char *title)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    if (!title || *s->place.channel != 'D')
        return;
    slack_form_add(&form, "channel_id", s->place.channel);
    slack_form_add(&form, "thread_ts", s->place.root);
    slack_form_add(&form, "title", title);
    const struct slack_request r = {
        .method = "assistant.threads.setTitle", .team = s->place.team, .form = &form, .tries = 1
    };
    (void)slack_api_start(s->o->c.api, &r, ignore_reply, s->o);
}

/* The session's state, for the list of conversations that people see; Slack takes a title only for a new one. */
static void set_session(struct slack_status *s, const char *state, bool begins)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    const char *user = NULL, *title = begins && s->thread ? slack_inbox_asked(s->o->c.inbox, s->thread, &user) : NULL;
    s->session_ms = loop_now_ms(s->o->loop);
    if (!s->place.root)
        return;
    if (s->place.team->no_status_until_ms > time_unix_ms()) {
        set_title(s, title);
        return;
    }
    slack_form_add(&form, "channel_id", s->place.channel);
    slack_form_add(&form, "thread_ts", s->place.root);
    slack_form_add(&form, "status", state);
    slack_form_add(&form, "title", title);
    slack_form_add(&form, "initiator_user_id", user);
    const struct slack_request r = {
        .method = "agents.sessions.setStatus", .team = s->place.team, .form = &form, .tries = 2
    };
    (void)slack_api_start(s->o->c.api, &r, nobody_waits, s->place.team);
}

void status_changed(struct slack_status *s, char *take_shown)
{
    free(s->shown);
    s->shown = take_shown;
    s->changed_ms = loop_now_ms(s->o->loop);
}

static void on_agent(void *ud, const struct slack_reply *r)
{
    struct slack_status *s = ud;
    s->call = NULL;
    if (r->err && !s->shown) {
        s->agent = false;
        s->plain = true;
        if (slack_lacks_feature(r))
            s->place.team->no_agent_until_ms = time_unix_ms() + LATCH_MS;
    }
    status_work(s);
}

static void send_agent(struct slack_status *s)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    slack_form_add(&form, "channel_id", s->place.channel);
    slack_form_add(&form, "thread_ts", s->place.root);
    slack_form_add(&form, "status", s->wanted);
    const struct slack_request r = {
        .method = "assistant.threads.setStatus", .team = s->place.team, .form = &form, .tries = 2
    };
    status_changed(s, xstrdup(s->wanted));
    if (*s->wanted && loop_now_ms(s->o->loop) - s->session_ms >= SESSION_MS)
        set_session(s, "processing", false);
    if (!*s->wanted)
        set_session(s, "active", false);
    s->call = slack_api_start(s->o->c.api, &r, on_agent, s);
}

static void on_first_agent(void *ud, const struct slack_reply *r)
{
    struct slack_status *s = ud;
    if (!r->err)
        status_changed(s, xstrdup(s->wanted));
    on_agent(ud, r);
}

static void begin_agent(struct slack_status *s)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    slack_form_add(&form, "channel_id", s->place.channel);
    slack_form_add(&form, "thread_ts", s->place.root);
    slack_form_add(&form, "status", s->wanted);
    status_keep(s);
    set_session(s, "processing", true);
    const struct slack_request r = {
        .method = "assistant.threads.setStatus", .team = s->place.team, .form = &form, .tries = 2
    };
    s->call = slack_api_start(s->o->c.api, &r, on_first_agent, s);
}

/* ---- a message ---- */

static void on_message(void *ud, const struct slack_reply *r)
{
    struct slack_status *s = ud;
    const char *ts = json_str_or(r->body, "ts", NULL);
    s->call = NULL;
    if (!r->err && ts && !s->ts) {
        s->ts = xstrdup(ts);
        status_keep(s);
    }
    if (r->err && !s->ts) { /* no line then; the answer does not wait for it */
        forget(s);
        status_free(s);
        return;
    }
    status_work(s);
}

static void on_deleted(void *ud, const struct slack_reply *r)
{
    struct slack_status *s = ud;
    s->call = NULL;
    if (r->err && err_retryable(r->err)) {
        status_later(s, BETWEEN_MS);
        return;
    }
    free(s->ts);
    s->ts = NULL;
    status_work(s);
}

static void send_message(struct slack_status *s)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    AUTO(str_clear) struct str text = STR_INIT((size_t)8 * WORDS_BYTES);
    const bool away = !*s->wanted;
    slack_text_escape(&text, s->wanted, utf8_cut(s->wanted, strlen(s->wanted), WORDS_BYTES));
    autofree char *line = xasprintf("_%s_", str_peek(&text));
    slack_form_add(&form, "channel", s->place.channel);
    if (s->ts)
        slack_form_add(&form, "ts", s->ts);
    else
        slack_form_add(&form, "thread_ts", s->place.root);
    if (!away)
        slack_form_add(&form, "text", line);
    status_changed(s, xstrdup(s->wanted));
    const struct slack_request r = { .method = away    ? "chat.delete"
                                               : s->ts ? "chat.update"
                                                       : "chat.postMessage",
                                     .team = s->place.team,
                                     .channel = s->ts ? NULL : s->place.channel,
                                     .form = &form,
                                     .tries = 2 };
    s->call = slack_api_start(s->o->c.api, &r, away ? on_deleted : on_message, s);
}

/* ---- what is to be done ---- */

static bool wants_agent(const struct slack_status *s)
{
    const char *mode = s->o->conf->slack_status;
    if (!s->place.root || s->plain || strcmp(mode, "message") == 0)
        return false;
    return s->place.team->no_agent_until_ms <= time_unix_ms();
}

static bool is_settled(const struct slack_status *s)
{
    return s->shown ? strcmp(s->shown, s->wanted) == 0 : !*s->wanted;
}

/* Nothing is shown any more, or can be. */
static bool is_over(const struct slack_status *s)
{
    const bool no_agent = !s->agent && !s->ts && strcmp(s->o->conf->slack_status, "agent") == 0 && !wants_agent(s);
    return is_settled(s) ? !*s->wanted : no_agent;
}

static void show(struct slack_status *s)
{
    if (s->stream) {
        stream_show(s);
    } else if (!s->ts && !s->shown && stream_is_wanted(s)) {
        stream_begin(s);
    } else if (s->agent && s->shown) {
        send_agent(s);
    } else if (!s->ts && !s->shown && wants_agent(s)) {
        s->agent = true;
        begin_agent(s);
    } else {
        send_message(s);
    }
}

void status_work(struct slack_status *s)
{
    const int64_t age = s->changed_ms ? loop_now_ms(s->o->loop) - s->changed_ms : REFRESH_MS;
    const bool settled = is_settled(s) && !stream_has_words(s);
    const int64_t between = s->stream ? STREAM_MS : BETWEEN_MS;
    if (s->call)
        return;
    if (is_over(s)) {
        forget(s);
        status_free(s);
    } else if (s->stream && *s->wanted && (settled || !stream_left_ms(s))) {
        stream_hold(s);
    } else if (settled && s->agent && age < REFRESH_MS) {
        status_later(s, REFRESH_MS - age);
    } else if (!settled && *s->wanted && age < between) {
        status_later(s, between - age);
    } else if (!settled || s->agent) {
        show(s);
    }
}

static struct slack_status *find(struct slack_out *o, const char *txn)
{
    struct slack_status *s = o->statuses;
    while (s && strcmp(s->txn, txn) != 0)
        s = s->next;
    return s;
}

bool slack_status_shown(const struct slack_out *o, const char *room, const char *thread)
{
    const struct slack_status *s = o->statuses;
    while (s && (strcmp(s->room, room) != 0 || !s->thread || strcmp(s->thread, thread) != 0))
        s = s->next;
    return s != NULL;
}

static struct slack_status *add(struct slack_out *o, const char *txn, const char *room, const char *thread)
{
    struct slack_status *s = xcalloc(1, sizeof(*s));
    *s = (struct slack_status){ .next = o->statuses,
                                .o = o,
                                .txn = xstrdup(txn),
                                .room = xstrdup(room),
                                .thread = thread ? xstrdup(thread) : NULL };
    o->statuses = s;
    return s;
}

void slack_status_post(struct slack_out *o, const struct chat_post *p)
{
    struct slack_status *s = find(o, p->txn);
    if (!o->begun || strcmp(o->conf->slack_status, "none") == 0 || (!s && !*p->markdown))
        return;
    s = s ? s : add(o, p->txn, p->room, p->thread);
    free(s->wanted);
    s->wanted = xstrdup(p->markdown);
    stream_take_draft(s, p->draft);
    if (!s->place.team && !place_of(o, p->room, p->thread, &s->place)) {
        status_free(s);
        return;
    }
    status_work(s);
}

/* ---- an earlier life ---- */

static int take_away(void *ud, const char *txn, const char *value, size_t n)
{
    struct slack_out *o = ud;
    struct err e = { 0 };
    autojson struct json *row = NULL;
    if (json_parse(&row, value, n, ROW_MAX, &e) < 0 || !json_str_or(row, "room", NULL))
        return 0;
    struct slack_status *s = add(o, txn, json_str_or(row, "room", ""), json_str_or(row, "thread", NULL));
    const char *ts = json_str_or(row, "ts", NULL);
    s->ts = ts ? xstrdup(ts) : NULL;
    s->stream = json_bool_or(row, "stream", false);
    s->agent = !ts;
    s->shown = xstrdup("?");
    s->wanted = xstrdup("");
    return 0;
}

void status_begin(struct slack_out *o)
{
    struct err e = { 0 };
    const struct kept k = { .platform = "slack", .kind = "status", .key = NULL };
    if (store_kept_each(o->store, &k, take_away, o, &e) < 0)
        log_warn("slack_status_unread", KV_E(&e));
    for (struct slack_status *s = o->statuses, *next; s; s = next) {
        next = s->next;
        if (place_of(o, s->room, s->thread, &s->place))
            status_later(s, 0);
        else
            status_free(s);
    }
}
