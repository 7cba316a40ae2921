/* slack_links.c - the supervisor of the links.
 *
 *   attempt: apps.connections.open -> address with a ticket -> WebSocket -> hello -> READY
 *   "disconnect" from Slack: READY -> LEAVING; a replacement is started; once it is ready the old link is closed in order,
 *   after what came by it was acknowledged. Without a replacement it is read until Slack hangs up.
 *
 * The ticket in the address opens the app's events: it is never logged. */
#include "slack_links.h"
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include "log.h"
#include "loop.h"
#include "metric.h"
#include "ws.h"

enum {
    LINKS_MAX = 4,
    HELLO_MS = 10000,
    LEAVE_MS = 30000, /* a link that was told to go, without a replacement */
    RETIRE_MS = 5000, /* for acknowledgements still on their way */
    HEALTHY_MS = 60000,
    DISABLED_MS = 60000,
    CROWDED_MS = 30000, /* and up to as much again */
    ENVELOPE_MAX = 16 << 20,
};

enum link_state { LINK_CONNECT, LINK_HELLO, LINK_READY, LINK_LEAVING, LINK_CLOSING };

struct link {
    struct link *next;
    struct slack_links *s;
    uint64_t id;
    enum link_state state;
    struct ws *ws;
    loop_timer timer;
    int64_t ready_ms;
    size_t unacked;
};

struct slack_links {
    struct slack_links_config c;
    struct slack_links_events ev;
    void *ud;
    char *token;
    struct link *links;
    uint64_t last_id;
    struct slack_call *opening;
    loop_timer attempt;
    int attempts; /* since a link was healthy */
    bool stopped, disabled, online, crowd_told;
    int64_t offline_ms; /* since when; 0: never online */
};

static void tend(struct slack_links *s);

/* ---- who is there ---- */

static struct link *find(const struct slack_links *s, uint64_t id)
{
    struct link *k = s->links;
    while (k && k->id != id)
        k = k->next;
    return k;
}

static size_t count(const struct slack_links *s, enum link_state from, enum link_state to)
{
    size_t n = 0;
    for (const struct link *k = s->links; k; k = k->next)
        n += k->state >= from && k->state <= to;
    return n;
}

bool slack_links_online(const struct slack_links *s)
{
    return count(s, LINK_READY, LINK_LEAVING) > 0;
}

static void drop(struct link *k)
{
    struct link **at = &k->s->links;
    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
    loop_cancel(k->s->c.loop, k->timer);
    ws_free(k->ws);
    free(k);
}

static void count_ready(const struct slack_links *s)
{
    metric_set(METRIC_LINKS, "slack", (int64_t)count(s, LINK_READY, LINK_READY));
}

static void tell_offline(struct slack_links *s)
{
    count_ready(s);
    if (!s->online || slack_links_online(s))
        return;
    s->online = false;
    s->offline_ms = loop_now_ms(s->c.loop);
    log_warn("slack_offline", KV_I("links", (int64_t)count(s, LINK_CONNECT, LINK_CLOSING)));
    s->ev.offline(s->ud);
}

static void tell_online(struct slack_links *s)
{
    count_ready(s);
    if (s->online)
        return;
    const int64_t deaf = s->offline_ms ? loop_now_ms(s->c.loop) - s->offline_ms : 0;
    s->online = true;
    log_info("slack_online", KV_I("deaf_ms", deaf));
    s->ev.online(s->ud, deaf);
}

/* ---- attempts ---- */

/* Half of it fixed, half by chance: many daemons that lost the same server come back apart. */
static int64_t jittered(int64_t ms)
{
    uint32_t r = 0;
    (void)!getrandom(&r, sizeof(r), GRND_NONBLOCK);
    return ms / 2 + (ms > 1 ? (int64_t)(r % (uint32_t)(ms / 2 + 1)) : 0);
}

static int64_t backoff_ms(const struct slack_links *s)
{
    if (!s->attempts)
        return 0;
    const int shift = s->attempts < 8 ? s->attempts - 1 : 7;
    const int64_t ms = INT64_C(1000) << shift;
    return jittered(ms < s->c.backoff_max_ms ? ms : s->c.backoff_max_ms);
}

static void attempt(void *ud);

static void attempt_after(struct slack_links *s, int64_t ms)
{
    loop_cancel(s->c.loop, s->attempt);
    s->attempt = loop_after(s->c.loop, ms, attempt, s);
}

static void tend(struct slack_links *s)
{
    const size_t fresh = count(s, LINK_CONNECT, LINK_READY), all = count(s, LINK_CONNECT, LINK_CLOSING);
    if (s->stopped || s->opening || s->attempt || fresh >= (size_t)s->c.wanted || all >= LINKS_MAX)
        return;
    attempt_after(s, s->disabled ? DISABLED_MS : backoff_ms(s));
}

/* ---- a link's life ---- */

static void lost(struct link *k, const char *why)
{
    struct slack_links *s = k->s;
    const int64_t held = k->ready_ms ? loop_now_ms(s->c.loop) - k->ready_ms : 0;
    log_info("slack_link_over", KV_I("link", (int64_t)k->id), KV_I("held_ms", held), KV_S("why", why));
    if (held >= HEALTHY_MS)
        s->attempts = 0;
    drop(k);
    tell_offline(s);
    tend(s);
}

static void close_now(void *ud)
{
    struct link *k = ud;
    loop_cancel(k->s->c.loop, k->timer);
    k->timer = 0;
    k->state = LINK_CLOSING;
    ws_close(k->ws, WS_NORMAL);
    tell_offline(k->s);
}

static void retire(struct link *k)
{
    loop_cancel(k->s->c.loop, k->timer);
    k->timer = 0;
    if (k->unacked)
        k->timer = loop_after(k->s->c.loop, RETIRE_MS, close_now, k);
    else
        close_now(k);
}

static void retire_old(struct slack_links *s)
{
    if (count(s, LINK_READY, LINK_READY) < (size_t)s->c.wanted)
        return;
    for (struct link *k = s->links, *next; k; k = next) {
        next = k->next;
        if (k->state == LINK_LEAVING)
            retire(k);
    }
}

static void on_leave_time(void *ud)
{
    struct link *k = ud;
    k->timer = 0;
    lost(k, "told to go, and its time is over");
}

static void on_hello_time(void *ud)
{
    struct link *k = ud;
    k->timer = 0;
    lost(k, "no hello");
}

/* Payloads go to one of an app's links each: somebody else's would swallow ours. */
static void watch_crowd(struct slack_links *s, const struct json *hello)
{
    const int64_t there = json_int_or(hello, "num_connections", 0);
    const int64_t ours = (int64_t)count(s, LINK_HELLO, LINK_CLOSING);
    if (there > ours && !s->crowd_told)
        log_warn("slack_links_shared", KV_I("links_of_the_app", there), KV_I("ours", ours),
                 KV_S("meaning", "another process uses this app token and gets a part of the events"));
    s->crowd_told = there > ours;
}

static void on_hello(struct link *k, const struct json *hello)
{
    struct slack_links *s = k->s;
    if (k->state != LINK_HELLO)
        return;
    watch_crowd(s, hello);
    loop_cancel(s->c.loop, k->timer);
    k->timer = 0;
    k->state = LINK_READY;
    k->ready_ms = loop_now_ms(s->c.loop);
    s->disabled = false;
    log_info("slack_link_ready", KV_I("link", (int64_t)k->id),
             KV_I("lifetime_s", json_int_or(json_get(hello, "debug_info"), "approximate_connection_time", 0)));
    tell_online(s);
    retire_old(s);
    tend(s);
}

static void crowded(struct link *k)
{
    struct slack_links *s = k->s;
    lost(k, "too many links of this app");
    attempt_after(s, jittered(2 * (int64_t)CROWDED_MS));
}

static void on_disconnect(struct link *k, const struct json *m)
{
    struct slack_links *s = k->s;
    const char *reason = json_str_or(m, "reason", "?");
    log_info("slack_link_told_to_go", KV_I("link", (int64_t)k->id), KV_S("reason", reason));
    if (strcmp(reason, "too_many_websockets") == 0) {
        crowded(k);
        return;
    }
    if (strcmp(reason, "link_disabled") == 0 && !s->disabled) {
        s->disabled = true;
        log_error("slack_socket_mode_off", KV_S("cure", "switch Socket Mode on in the app's settings"));
    }
    if (k->state == LINK_READY && loop_now_ms(s->c.loop) - k->ready_ms >= HEALTHY_MS)
        s->attempts = 0;
    if (k->state == LINK_CLOSING)
        return;
    loop_cancel(s->c.loop, k->timer);
    k->state = LINK_LEAVING;
    k->timer = loop_after(s->c.loop, LEAVE_MS, on_leave_time, k);
    retire_old(s);
    tend(s);
}

/* ---- what a link brings ---- */

static void on_open(void *ud)
{
    struct link *k = ud;
    k->state = LINK_HELLO;
    k->timer = loop_after(k->s->c.loop, HELLO_MS, on_hello_time, k);
}

static void on_message(void *ud, const char *text, size_t n)
{
    struct link *k = ud;
    struct err e = { 0 };
    autojson struct json *m = NULL;
    if (json_parse(&m, text, n, ENVELOPE_MAX, &e) < 0) {
        log_warn("slack_envelope_unread", KV_I("link", (int64_t)k->id), KV_I("bytes", (int64_t)n), KV_E(&e));
        return;
    }
    const char *type = json_str_or(m, "type", "");
    if (strcmp(type, "hello") == 0) {
        on_hello(k, m);
    } else if (strcmp(type, "disconnect") == 0) {
        on_disconnect(k, m);
    } else if (json_str_or(m, "envelope_id", NULL)) {
        k->unacked++;
        k->s->ev.envelope(k->s->ud, k->id, m);
    } else {
        log_info("slack_message_unknown", KV_S("type", type));
    }
}

static void on_closed(void *ud, int code, const struct err *e)
{
    struct link *k = ud;
    char words[300];
    (void)snprintf(words, sizeof(words), "%s %d", e ? e->msg : "closed", code);
    if (e && e->kind == ERR_LIMIT && !k->s->attempt)
        attempt_after(k->s, e->retry_ms);
    lost(k, words);
}

static void connect_to(struct slack_links *s, const char *url)
{
    static const struct ws_events events = { on_open, on_message, on_closed };
    struct err e = { 0 };
    autofree char *address = xasprintf("%s%s", url, s->c.quick ? "&debug_reconnects=true" : "");
    const struct ws_request r = { .url = address, .max_bytes = ENVELOPE_MAX };
    struct link *k = xcalloc(1, sizeof(*k));
    *k = (struct link){ .next = s->links, .s = s, .id = ++s->last_id };
    s->links = k;
    if (ws_open(&k->ws, s->c.loop, &r, &events, k, &e) < 0)
        lost(k, e.msg);
}

static void on_address(void *ud, const struct slack_reply *r)
{
    struct slack_links *s = ud;
    const char *url = json_str_or(r->body, "url", NULL);
    s->opening = NULL;
    if (r->err && r->err->kind == ERR_CONFIG) {
        s->stopped = true;
        log_error("slack_stopped", KV_S("cure", "check app_token_file (xapp-..., scope connections:write)"),
                  KV_E(r->err));
    } else if (r->err && r->err->kind == ERR_LIMIT) {
        attempt_after(s, r->err->retry_ms);
    } else if (!r->err && url) {
        connect_to(s, url);
    } else {
        tend(s);
    }
}

static void attempt(void *ud)
{
    struct slack_links *s = ud;
    s->attempt = 0;
    s->attempts++;
    s->opening = slack_api_start(
        s->c.api, &(struct slack_request){ .method = "apps.connections.open", .token = s->token, .tries = 1 },
        on_address, s);
}

/* ---- used ---- */

static struct link *speaker(struct slack_links *s, uint64_t id)
{
    struct link *k = find(s, id);
    if (k && (k->state == LINK_READY || k->state == LINK_LEAVING))
        return k;
    for (k = s->links; k; k = k->next)
        if (k->state == LINK_READY || k->state == LINK_LEAVING)
            return k;
    return NULL;
}

void slack_links_ack(struct slack_links *s, uint64_t link, const char *envelope_id)
{
    struct err e = { 0 };
    AUTO(str_clear) struct str text = STR_INIT(4096);
    autojson struct json *o = json_new_object();
    struct link *own = find(s, link), *k = speaker(s, link);
    json_set_str(o, "envelope_id", envelope_id);
    json_print(&text, o);
    if (own && own->unacked)
        own->unacked--;
    if (!k || ws_send(k->ws, str_peek(&text), text.len, &e) < 0)
        log_info("slack_ack_lost", KV_I("link", (int64_t)link), KV_E(&e)); /* it comes again, and is known by then */
    if (own && own->state == LINK_LEAVING && !own->unacked)
        retire_old(s);
}

struct slack_links *slack_links_new(const struct slack_links_config *c, const struct slack_links_events *ev, void *ud)
{
    struct slack_links *s = xcalloc(1, sizeof(*s));
    *s = (struct slack_links){ .c = *c, .ev = *ev, .ud = ud, .token = xstrdup(c->app_token) };
    tend(s);
    return s;
}

void slack_links_free(struct slack_links *s)
{
    if (!s)
        return;
    for (struct link *k = s->links, *next; k; k = next) {
        next = k->next;
        if (k->ws)
            ws_close(k->ws, WS_GOING); /* as far as it goes at once: nobody waits for the echo */
        drop(k);
    }
    slack_api_cancel(s->opening);
    loop_cancel(s->c.loop, s->attempt);
    explicit_bzero(s->token, strlen(s->token));
    free(s->token);
    free(s);
}
