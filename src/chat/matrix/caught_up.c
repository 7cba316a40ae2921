/* caught_up.c - how far we were, kept with the account on the server once a minute. When data_dir was lost, or the server forgot our
 * position, it parts what is old from what was asked meanwhile: the one is not answered again, the other not forgotten. */
#include <string.h>
#include "ids.h"
#include "json.h"
#include "log.h"
#include "matrix.h"

#define MARKER "org.sandbook.caught_up"
enum {
    EVERY_MS = 60000,
    SAFETY_MS = 600000, /* what came so shortly before may have been on its way still */
};

static char *marker_path(const struct chat *c)
{
    autofree char *user = mx_escape(c->login.user);
    return xasprintf("/_matrix/client/v3/user/%s/account_data/%s", user, MARKER);
}

/* ---- reading it, before the first sync ---- */

static void on_marker(void *ud, const struct api_answer *a)
{
    struct chat *c = ud;
    if (err_retryable(&a->err)) {
        log_warn("matrix_marker_unread", KV_E(&a->err));
        matrix_sync_later(c, api_backoff_ms(++c->sync_tries));
        return;
    }
    c->mark.known = true;
    c->mark.from_ms = json_int_or(a->body, "ts", 0);
    if (c->mark.from_ms > 0)
        log_info("matrix_marker", KV_I("from_ms", c->mark.from_ms));
    matrix_sync_later(c, 0);
}

void matrix_mark_read(struct chat *c)
{
    autofree char *path = marker_path(c);
    api_start(c->api, &(struct api_request){ .method = "GET", .path = path }, on_marker, c);
}

/* ---- what a first response has that was not answered ---- */

static bool is_answered(const struct chat *c, const struct json *events, const char *id)
{
    for (const struct json *x = json_first(events); x; x = json_next(x))
        if (strcmp(json_str_or(x, "sender", ""), c->login.user) == 0 &&
            strcmp(json_str_or(json_get(x, "content"), MATRIX_ANSWERS, ""), id) == 0)
            return true;
    return false;
}

bool matrix_mark_missed(const struct chat *c, const struct json *event, const struct json *events)
{
    return c->mark.from_ms > 0 && json_int_or(event, "origin_server_ts", 0) > c->mark.from_ms &&
           !is_answered(c, events, json_str_or(event, "event_id", ""));
}

/* ---- writing it ---- */

static void on_written(void *ud, const struct api_answer *a)
{
    (void)ud;
    if (a->err.kind != ERR_NONE)
        log_warn("matrix_marker_unwritten", KV_E(&a->err));
}

static void write_now(void *ud)
{
    struct chat *c = ud;
    autofree char *path = marker_path(c);
    autojson struct json *body = json_new_object();
    c->mark.timer = 0;
    if (!c->login.up || c->mark.newest_ms <= c->mark.written_ms)
        return;
    c->mark.written_ms = c->mark.newest_ms;
    c->mark.due_ms = loop_now_ms(c->loop) + EVERY_MS;
    json_set_int(body, "ts", c->mark.newest_ms - SAFETY_MS);
    api_start(c->api, &(struct api_request){ .method = "PUT", .path = path, .body = body }, on_written, c);
}

/* The server's clock says when, but never later than ours: a forged time must not make us deaf. */
void matrix_mark_seen(struct chat *c, const struct json *event)
{
    const int64_t sent = json_int_or(event, "origin_server_ts", 0), now = time_unix_ms();
    const int64_t ms = sent < now ? sent : now;
    c->mark.newest_ms = ms > c->mark.newest_ms ? ms : c->mark.newest_ms;
}

void matrix_mark_pump(struct chat *c)
{
    const int64_t left = c->mark.due_ms - loop_now_ms(c->loop);
    if (!c->mark.timer && c->mark.newest_ms > c->mark.written_ms)
        c->mark.timer = loop_after(c->loop, left > 0 ? left : 0, write_now, c);
}
