/* slack.c - the adapter: opens its parts in order, brings what arrives to the inbox, and acknowledges what is durable.
 *
 *   links (Socket Mode) or httpd (Events API) -> arrivals of one round -> inbox, one batch -> acknowledged
 *   inbox -> core;   core -> out;   what is no conversation -> side;   after a long silence: catch-up -> inbox
 *
 * Nothing is received before it is known who we are in each workspace: else our own messages would come back as questions. */
#include <stdio.h>
#include <string.h>
#include "chat.h"
#include "conf.h"
#include "httpd.h"
#include "log.h"
#include "loop.h"
#include "slack_catchup.h"
#include "slack_http.h"
#include "slack_inbox.h"
#include "slack_links.h"
#include "slack_out.h"
#include "slack_side.h"

enum { ROUND_MAX = 2000, PAYLOAD_MAX = 16 << 20 };

struct arrival {
    uint64_t link;
    char *envelope_id, *payload;
};

struct chat {
    struct chat_home home;
    const struct chat_events *ev;
    void *ud;
    struct http *http;
    struct slack_teams *teams;
    struct slack_api *api;
    struct slack_inbox *inbox;
    struct slack_out *out;
    struct slack_side *side;
    struct slack_catchup *catchup;
    struct slack_links *links;
    struct httpd *httpd;
    char *app_token, *signing_secret;
    struct arrival *arrivals; /* of this round of the loop */
    size_t arrival_n, arrival_cap;
    bool ready;
};

/* ---- Socket Mode ---- */

static void drop_arrivals(struct chat *c)
{
    for (size_t i = 0; i < c->arrival_n; i++) {
        free(c->arrivals[i].envelope_id);
        free(c->arrivals[i].payload);
    }
    c->arrival_n = 0;
}

/* All that came together is one transaction, and one wait for the disk. */
static void keep_arrivals(void *ud)
{
    struct chat *c = ud;
    struct err e = { 0 };
    const char **payloads = xcalloc(c->arrival_n + 1, sizeof(*payloads));
    for (size_t i = 0; i < c->arrival_n; i++)
        payloads[i] = c->arrivals[i].payload;
    if (slack_inbox_keep(c->inbox, payloads, c->arrival_n, &e) < 0)
        log_error("slack_events_not_kept", KV_I("events", (int64_t)c->arrival_n), KV_E(&e)); /* they come again */
    else
        for (size_t i = 0; i < c->arrival_n; i++)
            slack_links_ack(c->links, c->arrivals[i].link, c->arrivals[i].envelope_id);
    free(payloads);
    drop_arrivals(c);
}

static void on_envelope(void *ud, uint64_t link, const struct json *envelope)
{
    struct chat *c = ud;
    const char *type = json_str_or(envelope, "type", ""), *id = json_str_or(envelope, "envelope_id", "");
    AUTO(str_clear) struct str text = STR_INIT(PAYLOAD_MAX);
    if (strcmp(type, "events_api") != 0) { /* never repeated, and its person sees an error unless it is acknowledged */
        slack_links_ack(c->links, link, id);
        if (strcmp(type, "interactive") == 0)
            slack_side_action(c->side, json_get(envelope, "payload"));
        return;
    }
    json_print(&text, json_get(envelope, "payload"));
    c->arrivals = xgrow(c->arrivals, &c->arrival_cap, c->arrival_n + 1, sizeof(*c->arrivals));
    c->arrivals[c->arrival_n++] =
        (struct arrival){ .link = link, .envelope_id = xstrdup(id), .payload = str_take(&text) };
    loop_defer_cancel(c->home.loop, keep_arrivals, c);
    if (c->arrival_n >= ROUND_MAX)
        keep_arrivals(c);
    else
        loop_defer(c->home.loop, keep_arrivals, c);
}

static void on_online(void *ud, int64_t deaf_ms)
{
    struct chat *c = ud;
    slack_catchup_heard(c->catchup, deaf_ms);
}

static void on_offline(void *ud)
{
    struct chat *c = ud;
    slack_catchup_deaf(c->catchup);
}

static void open_links(struct chat *c)
{
    static const struct slack_links_events events = { on_envelope, on_online, on_offline };
    const struct slack_links_config config = { .loop = c->home.loop,
                                               .api = c->api,
                                               .app_token = c->app_token,
                                               .wanted = (int)c->home.conf->slack_links,
                                               .backoff_max_ms = c->home.conf->slack_backoff_max_ms,
                                               .quick = c->home.conf->slack_recycle };
    c->links = slack_links_new(&config, &events, c);
}

/* ---- Events API ---- */

static void take_event(struct chat *c, const char *payload, struct httpd_answer *a)
{
    struct err e = { 0 };
    autojson struct json *body = NULL;
    if (!payload || json_parse(&body, payload, strlen(payload), PAYLOAD_MAX, &e) < 0) {
        a->status = 400;
        a->header[0] = "X-Slack-No-Retry";
        a->header[1] = "1";
        return;
    }
    if (strcmp(json_str_or(body, "type", ""), "url_verification") == 0) {
        autojson struct json *o = json_new_object();
        json_set_str(o, "challenge", json_str_or(body, "challenge", ""));
        json_print(&a->body, o);
        a->type = "application/json";
        a->status = 200;
        return;
    }
    a->status = 200;
    if (!c->ready) {
        a->status = 503;
    } else if (slack_inbox_keep(c->inbox, &payload, 1, &e) < 0) {
        log_error("slack_events_not_kept", KV_I("events", 1), KV_E(&e));
        a->status = 503; /* it comes again */
    }
}

/* Buttons have a payload, commands have none; both are done with at once. */
static void take_action(struct chat *c, const char *payload, struct httpd_answer *a)
{
    struct err e = { 0 };
    autojson struct json *body = NULL;
    a->status = 200;
    if (payload && c->ready && json_parse(&body, payload, strlen(payload), PAYLOAD_MAX, &e) == 0)
        slack_side_action(c->side, body);
}

static void on_request(void *ud, const struct httpd_request *r, struct httpd_answer *a)
{
    struct chat *c = ud;
    if (strcmp(r->path, "/slack/events") != 0) {
        a->status = 404;
    } else if (strcmp(r->method, "POST") != 0) {
        a->status = 405;
    } else if (!slack_signature_is_right(c->signing_secret, httpd_header(r, "X-Slack-Request-Timestamp"),
                                         httpd_header(r, "X-Slack-Signature"), r->body, r->body_n,
                                         time_unix_ms() / 1000)) {
        a->status = 401;
    } else {
        const char *type = httpd_header(r, "Content-Type");
        const bool whole = strlen(r->body) == r->body_n;
        autofree char *payload = whole ? slack_http_payload(type, r->body) : NULL;
        const bool form = type && strncmp(type, "application/x-www-form-urlencoded", 33) == 0;
        if (whole && form)
            take_action(c, payload, a);
        else
            take_event(c, payload, a);
    }
}

static int open_httpd(struct chat *c, struct err *e)
{
    const struct httpd_config config = { .address = c->home.conf->slack_listen, .handle = on_request, .ud = c };
    if (httpd_open(&c->httpd, c->home.loop, &config, e) < 0)
        return err_wrap(e, "slack.listen");
    log_info("slack_listens", KV_I("port", httpd_port(c->httpd)));
    return 0;
}

/* ---- life ---- */

static void on_other(void *ud, struct slack_team *team, const struct slack_event *ev)
{
    const struct chat *c = ud;
    slack_side_event(c->side, team, ev);
}

static void on_taken(void *ud, const char *room, const char *thread)
{
    const struct chat *c = ud;
    slack_out_hint(c->out, room, thread);
}

static void on_ready(void *ud)
{
    struct chat *c = ud;
    struct err e = { 0 };
    c->ready = true;
    slack_out_begin(c->out);
    if (slack_inbox_resume(c->inbox, &e) < 0)
        log_error("slack_not_resumed", KV_E(&e));
    if (c->app_token)
        open_links(c);
    else
        slack_catchup_heard(c->catchup, 0);
}

static bool slack_wanted(const struct conf *conf)
{
    return *conf->slack_bot_token_file || *conf->slack_installs_file;
}

static void wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

static void slack_close(struct chat *c)
{
    if (!c)
        return;
    loop_defer_cancel(c->home.loop, keep_arrivals, c);
    drop_arrivals(c);
    free(c->arrivals);
    httpd_close(c->httpd);
    slack_links_free(c->links);
    slack_catchup_free(c->catchup);
    slack_side_free(c->side);
    slack_out_free(c->out);
    slack_inbox_free(c->inbox);
    slack_teams_free(c->teams);
    slack_api_free(c->api);
    http_free(c->http);
    wipe(c->app_token);
    wipe(c->signing_secret);
    free(c);
}

static int read_secrets(struct chat *c, struct err *e)
{
    const struct conf *conf = c->home.conf;
    if (!*conf->slack_app_token_file && !*conf->slack_signing_secret_file)
        return err_set(e, ERR_CONFIG, "[slack] needs app_token_file (Socket Mode) or signing_secret_file (HTTP)");
    if (*conf->slack_app_token_file && conf_read_secret(&c->app_token, conf->slack_app_token_file, e) < 0)
        return err_wrap(e, "slack.app_token_file");
    if (c->app_token && strncmp(c->app_token, "xapp-", 5) != 0)
        return err_set(e, ERR_CONFIG, "slack.app_token_file holds no app-level token (xapp-...)");
    if (*conf->slack_signing_secret_file &&
        conf_read_secret(&c->signing_secret, conf->slack_signing_secret_file, e) < 0)
        return err_wrap(e, "slack.signing_secret_file");
    return 0;
}

static void make_parts(struct chat *c)
{
    const char *url = c->home.conf->slack_api_url;
    c->api = slack_api_new(c->home.loop, c->http, url, "app", slack_teams_renew, c->teams);
    c->inbox = slack_inbox_new(&(struct slack_inbox_config){ .home = &c->home,
                                                             .http = c->http,
                                                             .api = c->api,
                                                             .teams = c->teams,
                                                             .chat = c,
                                                             .ev = c->ev,
                                                             .ev_ud = c->ud,
                                                             .other = on_other,
                                                             .other_ud = c,
                                                             .taken = on_taken,
                                                             .taken_ud = c });
    c->side = slack_side_new(&c->home, c->api, c->teams, c->inbox);
    c->catchup = slack_catchup_new(&c->home, c->api, c->inbox);
    c->out = slack_out_new(&(struct slack_out_config){
        .home = &c->home, .http = c->http, .api = c->api, .teams = c->teams, .inbox = c->inbox });
}

static int slack_open(struct chat **out, const struct chat_home *home, const struct chat_events *ev, void *ud,
                      struct err *e)
{
    struct chat *c = xcalloc(1, sizeof(*c));
    *c = (struct chat){ .home = *home, .ev = ev, .ud = ud };
    if (read_secrets(c, e) < 0 || slack_teams_new(&c->teams, home->loop, home->conf, e) < 0 ||
        http_new(&c->http, home->loop, e) < 0 || (c->signing_secret && open_httpd(c, e) < 0)) {
        slack_close(c);
        return -1;
    }
    make_parts(c);
    slack_teams_begin(c->teams, c->api, on_ready, c);
    *out = c;
    return 0;
}

static int slack_post(struct chat *c, const struct chat_post *p, void (*done)(void *ud, const struct err *e), void *ud,
                      struct err *e)
{
    return slack_out_post(c->out, p, done, ud, e);
}

static bool slack_takes_drafts(const struct chat *c)
{
    return c->home.conf->slack_streaming;
}

static const char *slack_deaf(const struct chat *c)
{
    if (!c->ready)
        return "slack: no workspace has taken its token yet";
    return c->httpd || slack_links_online(c->links) ? NULL : "slack: no link is up";
}

const struct chat_ops chat_slack = { .name = "slack",
                                     .wanted = slack_wanted,
                                     .open = slack_open,
                                     .post = slack_post,
                                     .close = slack_close,
                                     .takes_drafts = slack_takes_drafts,
                                     .deaf = slack_deaf };
