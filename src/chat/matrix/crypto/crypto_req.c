/* crypto_req.c - requests to the server: queued, handed out, answered, repeated after a failure that may pass. */
#include "crypto_private.h"

int64_t backoff_ms(int fails)
{
    const int64_t most = 15 * (int64_t)MINUTE_MS;
    const int64_t ms = fails < 10 ? (int64_t)15 * SECOND_MS << (fails < 0 ? 0 : fails) : most;
    return ms < most ? ms : most;
}

struct req *req_add(struct crypto *c, const char *what, const char *method, char *take_path, struct json *take_body,
                    req_fn *done)
{
    struct req *r = xcalloc(1, sizeof(*r));
    *r = (struct req){ .id = ++c->next_req, .what = what, .method = method, .done = done };
    r->path = take_path;
    if (take_body)
        r->body = json_line(take_body);
    json_free(take_body);
    struct req **end = &c->reqs;
    while (*end)
        end = &(*end)->next;
    *end = r;
    return r;
}

static void req_free(struct req *r)
{
    json_free(r->data);
    free(r->path);
    free(r->body);
    free(r->room);
    free(r);
}

void req_clear_all(struct crypto *c)
{
    for (struct req *r = c->reqs, *next; r; r = next) {
        next = r->next;
        req_free(r);
    }
    c->reqs = NULL;
}

bool req_pending(const struct crypto *c, const char *what)
{
    for (const struct req *r = c->reqs; r; r = r->next)
        if (same(r->what, what))
            return true;
    return false;
}

bool crypto_next_request(struct crypto *c, struct crypto_request *out)
{
    const int64_t now = now_ms(c);
    if (c->state == CRYPTO_REFUSED)
        return false;
    for (struct req *r = c->reqs; r; r = r->next) {
        if (r->out || r->not_before_ms > now)
            continue;
        r->out = true;
        *out = (struct crypto_request){ .id = r->id, .method = r->method, .path = r->path, .body = r->body };
        return true;
    }
    return false;
}

/* No answer, "later", "who are you" (the driver is getting a new token), or a server that stumbles: the same once more. */
static bool may_pass(const struct req *r, int status)
{
    return status == 0 || status == 429 || status >= 500 || (status == 401 && !r->takes_401);
}

static void put_off(struct crypto *c, struct req *r, int status, int64_t retry_ms)
{
    static const int64_t most = MINUTE_MS;
    const int64_t own = r->tries < 6 ? (int64_t)SECOND_MS << r->tries : most;
    r->tries++;
    r->out = false;
    r->not_before_ms = now_ms(c) + (retry_ms > own ? retry_ms : own);
    log_debug("crypto_request_again", KV_S("what", r->what), KV_I("status", status), KV_I("tries", r->tries));
}

static void unlink_req(struct crypto *c, const struct req *r)
{
    struct req **at = &c->reqs;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
}

static struct req *find_out(struct crypto *c, int64_t id)
{
    for (struct req *r = c->reqs; r; r = r->next)
        if (r->id == id && r->out)
            return r;
    return NULL;
}

static int finish(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    unlink_req(c, r);
    if (!req_ok(status))
        log_info("crypto_request_refused", KV_S("what", r->what), KV_I("status", status),
                 KV_S("errcode", json_str_or(body, "errcode", "")));
    const int rc = r->done ? r->done(c, r, status, body, e) : 0;
    if (r->room)
        room_wake(c, r->room);
    req_free(r);
    return rc;
}

int crypto_answered(struct crypto *c, int64_t id, int status, const struct json *body, int64_t retry_ms, struct err *e)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    struct req *r = find_out(c, id);
    if (!r)
        return 0;
    if (crypto_enter(c, &b, e) < 0)
        return -1;
    if (may_pass(r, status))
        put_off(c, r, status, retry_ms);
    else if (finish(c, r, status, body, e) < 0)
        return -1;
    return crypto_leave(c, &b, e);
}
