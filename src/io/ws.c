/* ws.c - one link from its address to its close.
 *
 * curl connects in a multi of the link's own (CURLOPT_CONNECT_ONLY), so that names, proxies and TLS cost no code here and
 * never block. Then the socket is ours: the upgrade is written and read, and frames go through curl_easy_send and
 * curl_easy_recv. TLS may hold bytes that epoll never announces, so reading goes on until curl says AGAIN. curl's own
 * WebSocket is not used: Debian 12's has none, and versions up to 8.16 lose or corrupt frames.
 *
 * CONNECT -> UPGRADE -> OPEN -> CLOSING -> OVER; every end goes through over(), which tells the owner once, from the loop. */
#include "ws.h"

#include <stdio.h>
#include <sys/epoll.h>

#include <curl/curl.h>
#include "http_call.h"
#include "log.h"
#include "ws_private.h"

enum {
    MESSAGE_MAX = 16 << 20,
    CONNECT_MS = 10000,
    PING_MS = 10000,
    PONG_MS = 15000,
    SILENT_MS = 30000,
    CLOSE_MS = 2000,
};

enum state { CONNECT, UPGRADE, OPEN, CLOSING, OVER };

struct ws {
    struct loop *l;
    struct ws_events ev;
    void *ud;
    enum state state;
    bool dead; /* freed by its owner: no callback any more */
    CURLM *multi;
    CURL *easy;
    loop_timer curl_timer, timer;
    int fd; /* -1: not connected */
    char *url, *host, *target, key[WS_KEY_MAX];
    char **headers;
    struct str head, out; /* the upgrade: answer so far, request */
    struct ws_frames *frames;
    int64_t connect_ms, ping_ms, pong_ms, silent_ms;
    int64_t began_ms, heard_ms, pinged_ms, owed_ms,
        stuck_ms; /* owed: since when a pong is missing; stuck: bytes wait */
    uint64_t pings;
    int code;
    struct err why;
};

static void arm(struct ws *w);
static void pump(struct ws *w);

static void pump_later(void *ud)
{
    pump(ud);
}

/* ---- the end ---- */

static void hang_up(struct ws *w)
{
    loop_cancel(w->l, w->timer);
    w->timer = 0;
    if (w->fd >= 0)
        loop_io_stop(w->l, w->fd);
    w->fd = -1;
    if (w->easy) {
        (void)curl_multi_remove_handle(w->multi, w->easy);
        curl_easy_cleanup(w->easy);
    }
    w->easy = NULL;
    (void)curl_multi_cleanup(w->multi);
    w->multi = NULL;
    loop_cancel(w->l, w->curl_timer);
    w->curl_timer = 0;
}

static void tell(void *ud)
{
    struct ws *w = ud;
    if (w->multi)
        hang_up(w);
    if (!w->dead)
        w->ev.closed(w->ud, w->code, w->why.kind ? &w->why : NULL);
}

/* The owner is told in the loop's next round: it may be in the middle of something with this link. */
static void over(struct ws *w, int code, const struct err *e)
{
    if (w->state == OVER)
        return;
    w->state = OVER;
    w->code = code;
    if (e)
        w->why = *e;
    loop_cancel(w->l, w->timer);
    w->timer = 0;
    if (w->fd >= 0)
        loop_io_stop(w->l, w->fd);
    loop_defer(w->l, tell, w);
}

static void release(void *ud)
{
    struct ws *w = ud;
    if (w->multi)
        hang_up(w);
    ws_frames_free(w->frames);
    for (char **h = w->headers; h && *h; h++)
        free(*h);
    free(w->headers);
    str_clear(&w->head);
    str_clear(&w->out);
    free(w->url);
    free(w->host);
    free(w->target);
    free(w);
    curl_global_cleanup();
}

void ws_free(struct ws *w)
{
    if (!w || w->dead)
        return;
    w->dead = true;
    w->state = OVER;
    loop_defer_cancel(w->l, tell, w);
    loop_defer_cancel(w->l, pump_later, w);
    loop_cancel(w->l, w->timer);
    loop_cancel(w->l, w->curl_timer);
    w->timer = w->curl_timer = 0;
    if (w->fd >= 0)
        loop_io_stop(w->l, w->fd);
    loop_defer(w->l, release, w);
}

static void fail(struct ws *w, enum err_kind kind, const char *words)
{
    struct err e = { 0 };
    (void)err_set(&e, kind, "%s", words);
    over(w, WS_CUT, &e);
}

/* ---- bytes out ---- */

/* *n: bytes taken; false: the link is gone. */
static bool send_some(struct ws *w, const struct str *from, size_t at, size_t *n)
{
    *n = 0;
    const CURLcode rc = curl_easy_send(w->easy, from->buf + at, from->len - at, n);
    if (rc == CURLE_OK || rc == CURLE_AGAIN)
        return true;
    fail(w, ERR_NET, "the link broke while sending");
    return false;
}

/* True while bytes wait for the socket. */
static bool flush(struct ws *w)
{
    const struct str *out = w->state == UPGRADE ? &w->out : ws_frames_out(w->frames);
    size_t at = 0, n = 0;
    while (at < out->len && send_some(w, out, at, &n) && n)
        at += n;
    if (w->state == UPGRADE) {
        str_drop(&w->out, at);
        return w->out.len > 0;
    }
    if (at)
        ws_frames_sent(w->frames, at);
    return w->state != OVER && ws_frames_out(w->frames)->len > 0;
}

/* ---- bytes in ---- */

static void on_message(void *ud, const char *text, size_t n)
{
    struct ws *w = ud;
    if (w->state != OVER) /* while closing too: what was sent before our close counts */
        w->ev.message(w->ud, text, n);
}

static void on_pong(void *ud, const char *data, size_t n)
{
    struct ws *w = ud;
    (void)data;
    (void)n;
    w->owed_ms = 0;
}

static void close_seen(struct ws *w)
{
    const int code = ws_frames_closed(w->frames);
    (void)flush(w); /* the echo, as far as it goes */
    over(w, code, NULL);
}

static void frames_in(struct ws *w, const char *data, size_t n)
{
    struct err e = { 0 };
    if (ws_frames_feed(w->frames, data, n, &e) < 0) {
        (void)flush(w); /* wslay left a close frame that says why */
        over(w, WS_CUT, &e);
    } else if (ws_frames_closed(w->frames) && w->state != OVER) {
        close_seen(w);
    }
}

static void upgraded(struct ws *w, size_t used)
{
    struct str rest = STR_INIT(w->head.max);
    str_add(&rest, w->head.buf + used, w->head.len - used);
    str_clear(&w->head);
    w->state = OPEN;
    w->pinged_ms = w->heard_ms;
    w->ev.open(w->ud);
    if (w->state == OPEN && rest.len)
        frames_in(w, rest.buf, rest.len);
    str_clear(&rest);
}

static void head_in(struct ws *w, const char *data, size_t n)
{
    struct err e = { 0 };
    size_t used = 0;
    str_add(&w->head, data, n);
    const int rc = w->head.overflow ? err_set(&e, ERR_DATA, "the server's answer is too long")
                                    : ws_handshake_answer(str_peek(&w->head), w->head.len, w->key, &used, &e);
    if (rc < 0)
        over(w, WS_CUT, &e);
    else if (rc > 0)
        upgraded(w, used);
}

static void drain(struct ws *w)
{
    char buf[32 << 10];
    while (w->state != OVER) {
        size_t n = 0;
        const CURLcode rc = curl_easy_recv(w->easy, buf, sizeof(buf), &n);
        if (rc == CURLE_AGAIN)
            return;
        if (rc != CURLE_OK || n == 0) {
            fail(w, ERR_NET, "the server hung up");
            return;
        }
        w->heard_ms = loop_now_ms(w->l);
        if (w->state == UPGRADE)
            head_in(w, buf, n);
        else
            frames_in(w, buf, n);
    }
}

static void on_io(void *ud, int fd, uint32_t events)
{
    struct ws *w = ud;
    (void)fd;
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        drain(w);
    pump(w);
}

/* Send what waits, watch for what is needed. */
static void pump(struct ws *w)
{
    if (w->state < UPGRADE || w->state == OVER)
        return;
    const bool waits = flush(w);
    if (w->state == OVER)
        return;
    const int64_t now = loop_now_ms(w->l);
    w->stuck_ms = !waits ? 0 : w->stuck_ms ? w->stuck_ms : now;
    loop_io(w->l, w->fd, EPOLLIN | (waits ? (uint32_t)EPOLLOUT : 0u), on_io, w);
    arm(w);
}

/* ---- is it alive? ---- */

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t due_ms(const struct ws *w)
{
    if (w->state == CONNECT || w->state == UPGRADE)
        return w->began_ms + w->connect_ms;
    if (w->state == CLOSING)
        return w->began_ms + CLOSE_MS;
    int64_t due = sooner(w->pinged_ms + w->ping_ms, w->heard_ms + w->silent_ms);
    due = w->owed_ms ? sooner(due, w->owed_ms + w->pong_ms) : due;
    return w->stuck_ms ? sooner(due, w->stuck_ms + w->pong_ms) : due;
}

static void ping(struct ws *w, int64_t now)
{
    char count[24];
    const int n = snprintf(count, sizeof(count), "%llu", (unsigned long long)++w->pings);
    w->pinged_ms = now;
    w->owed_ms = w->owed_ms ? w->owed_ms : now;
    ws_frames_ping(w->frames, count, (size_t)n);
    pump(w);
}

static void on_time(void *ud)
{
    struct ws *w = ud;
    const int64_t now = loop_now_ms(w->l);
    w->timer = 0;
    if (now < due_ms(w))
        arm(w);
    else if (w->state == CLOSING)
        over(w, WS_NORMAL, NULL);
    else if (w->state != OPEN)
        fail(w, ERR_TIMEOUT, "no link within the time for connecting");
    else if (now >= w->heard_ms + w->silent_ms)
        fail(w, ERR_TIMEOUT, "the link is silent");
    else if (w->owed_ms && now >= w->owed_ms + w->pong_ms)
        fail(w, ERR_TIMEOUT, "the server answers no ping");
    else if (w->stuck_ms && now >= w->stuck_ms + w->pong_ms)
        fail(w, ERR_TIMEOUT, "the server takes nothing");
    else
        ping(w, now);
}

static void arm(struct ws *w)
{
    const int64_t wait = due_ms(w) - loop_now_ms(w->l);
    loop_cancel(w->l, w->timer);
    w->timer = loop_after(w->l, wait > 0 ? wait : 0, on_time, w);
}

/* ---- connecting ---- */

static void connected(struct ws *w)
{
    static const struct ws_frames_events events = { on_message, on_pong };
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (curl_easy_getinfo(w->easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd == CURL_SOCKET_BAD) {
        fail(w, ERR_NET, "curl connected without a socket");
        return;
    }
    w->fd = fd;
    w->state = UPGRADE;
    w->heard_ms = loop_now_ms(w->l);
    w->frames = w->frames ? w->frames : ws_frames_new(w->head.max, &events, w);
    const char *const *headers = (const char *const *)w->headers;
    ws_handshake_request(&w->out, w->host, w->target, w->key, headers);
    pump(w);
}

static enum err_kind kind_of(CURLcode rc)
{
    switch ((int)rc) {
    case CURLE_OPERATION_TIMEDOUT: return ERR_TIMEOUT;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM: return ERR_CONFIG;
    default: return ERR_NET;
    }
}

static void curl_returned(struct ws *w)
{
    int left = 0;
    for (CURLMsg *m; w->state == CONNECT && (m = curl_multi_info_read(w->multi, &left));) {
        if (m->msg != CURLMSG_DONE)
            continue;
        if (m->data.result == CURLE_OK)
            connected(w);
        else
            fail(w, kind_of(m->data.result), curl_easy_strerror(m->data.result));
    }
}

static void act(struct ws *w, curl_socket_t fd, int events)
{
    int running = 0;
    if (w->state != CONNECT)
        return;
    (void)curl_multi_socket_action(w->multi, fd, events, &running);
    curl_returned(w);
}

static void on_curl_io(void *ud, int fd, uint32_t events)
{
    const int in = events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0;
    act(ud, fd, in | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) | (events & EPOLLERR ? CURL_CSELECT_ERR : 0));
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *ud, void *unused)
{
    struct ws *w = ud;
    (void)easy;
    (void)unused;
    if (what == CURL_POLL_REMOVE) {
        loop_io_stop(w->l, fd);
    } else if (w->state == CONNECT) {
        const uint32_t out = what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0u;
        loop_io(w->l, fd, (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0u) | out, on_curl_io, w);
    }
    return 0;
}

static void on_curl_time(void *ud)
{
    struct ws *w = ud;
    w->curl_timer = 0;
    act(w, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_timer(CURLM *multi, long ms, void *ud)
{
    struct ws *w = ud;
    (void)multi;
    loop_cancel(w->l, w->curl_timer);
    w->curl_timer = ms < 0 || w->state != CONNECT ? 0 : loop_after(w->l, ms, on_curl_time, w);
    return 0;
}

#define SET(option, value) rc = rc ? rc : curl_easy_setopt(w->easy, option, value)

static CURLcode set_easy(struct ws *w, const char *url, bool loopback)
{
    CURLcode rc = CURLE_OK;
    SET(CURLOPT_URL, url);
    SET(CURLOPT_CONNECT_ONLY, 1L);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "https,http");
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)w->connect_ms);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, 20L);
    SET(CURLOPT_TCP_KEEPINTVL, 10L);
    SET(CURLOPT_HTTPPROXYTUNNEL, 1L);
    SET(CURLOPT_CAPATH, NULL); /* as http_easy.c: else the whole certificate store is read each time */
    if (loopback)
        SET(CURLOPT_PROXY, "");
    return rc;
}

/* ---- the address ---- */

static void url_free(CURLU **u)
{
    curl_url_cleanup(*u);
}

static char *url_part(CURLU *u, CURLUPart part, const char *otherwise)
{
    char *curls = NULL;
    if (curl_url_get(u, part, &curls, 0) != CURLUE_OK)
        return xstrdup(otherwise);
    char *ours = xstrdup(curls);
    curl_free(curls);
    return ours;
}

/* wss://h/p as https://h/p, which is what curl is to connect to; *loopback: it stays on this machine. */
static int read_url(struct ws *w, const struct ws_request *r, bool *loopback, struct err *e)
{
    const bool tls = strncmp(r->url, "wss://", 6) == 0;
    if (!tls && strncmp(r->url, "ws://", 5) != 0)
        return err_set(e, ERR_CONFIG, "not a WebSocket address");
    w->url = xasprintf("%s%s", tls ? "https" : "http", strchr(r->url, ':'));
    AUTO(url_free) CURLU *u = curl_url();
    if (!u || curl_url_set(u, CURLUPART_URL, w->url, CURLU_DISALLOW_USER) != CURLUE_OK)
        return err_set(e, ERR_CONFIG, "not a WebSocket address");
    autofree char *host = url_part(u, CURLUPART_HOST, ""), *port = url_part(u, CURLUPART_PORT, "");
    autofree char *path = url_part(u, CURLUPART_PATH, "/"), *query = url_part(u, CURLUPART_QUERY, "");
    w->host = xasprintf("%s%s%s", host, *port ? ":" : "", port);
    w->target = xasprintf("%s%s%s", path, *query ? "?" : "", query);
    *loopback = http_is_loopback(host);
    if (strpbrk(w->target, " \r\n") || strlen(w->target) > WS_HEAD_MAX / 2)
        return err_set(e, ERR_CONFIG, "not a WebSocket address");
    if (!tls && !*loopback && !r->allow_plain)
        return err_set(e, ERR_CONFIG, "plain ws goes only to this machine, unless that is allowed");
    return 0;
}

static char **copy_headers(const char *const *from)
{
    size_t n = 0;
    while (from && from[n])
        n++;
    char **copy = xcalloc(n + 1, sizeof(*copy));
    for (size_t i = 0; i < n; i++)
        copy[i] = xstrdup(from[i]);
    return copy;
}

static int64_t or_else(int64_t ms, int64_t otherwise)
{
    return ms > 0 ? ms : otherwise;
}

static struct ws *ws_new(struct loop *l, const struct ws_request *r, const struct ws_events *ev, void *ud)
{
    struct ws *w = xcalloc(1, sizeof(*w));
    *w = (struct ws){
        .l = l,
        .ev = *ev,
        .ud = ud,
        .fd = -1,
        .headers = copy_headers(r->headers),
        .head = STR_INIT(r->max_bytes ? r->max_bytes : (size_t)MESSAGE_MAX),
        .out = STR_INIT(WS_HEAD_MAX),
        .connect_ms = or_else(r->connect_ms, CONNECT_MS),
        .ping_ms = or_else(r->ping_ms, PING_MS),
        .pong_ms = or_else(r->pong_ms, PONG_MS),
        .silent_ms = or_else(r->silent_ms, SILENT_MS),
        .began_ms = loop_now_ms(l),
    };
    return w;
}

static int begin(struct ws *w, const struct ws_request *r, struct err *e)
{
    bool loopback = false;
    if (read_url(w, r, &loopback, e) < 0 || ws_handshake_key(w->key, e) < 0)
        return -1;
    w->multi = curl_multi_init();
    w->easy = curl_easy_init();
    if (!w->multi || !w->easy)
        abort();
    (void)curl_multi_setopt(w->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
    (void)curl_multi_setopt(w->multi, CURLMOPT_SOCKETDATA, w);
    (void)curl_multi_setopt(w->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
    (void)curl_multi_setopt(w->multi, CURLMOPT_TIMERDATA, w);
    const CURLcode rc = set_easy(w, w->url, loopback);
    if (rc != CURLE_OK || curl_multi_add_handle(w->multi, w->easy) != CURLM_OK)
        return err_set(e, ERR_CONFIG, "curl does not take the address: %s", curl_easy_strerror(rc));
    arm(w);
    return 0;
}

int ws_open(struct ws **out, struct loop *l, const struct ws_request *r, const struct ws_events *ev, void *ud,
            struct err *e)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(e, ERR_CONFIG, "libcurl does not start");
    struct ws *w = ws_new(l, r, ev, ud);
    if (begin(w, r, e) < 0) {
        ws_free(w);
        return -1;
    }
    *out = w;
    return 0;
}

/* ---- used ---- */

int ws_send(struct ws *w, const char *text, size_t n, struct err *e)
{
    if (w->state != OPEN)
        return err_set(e, ERR_NET, "the link is not open");
    if (ws_frames_text(w->frames, text, n, e) < 0)
        return -1;
    loop_defer_cancel(w->l, pump_later, w);
    loop_defer(w->l, pump_later, w);
    return 0;
}

void ws_close(struct ws *w, enum ws_code code)
{
    if (w->state == OVER || w->state == CLOSING)
        return;
    if (w->state != OPEN) {
        over(w, WS_CUT, NULL);
        return;
    }
    w->state = CLOSING;
    w->began_ms = loop_now_ms(w->l);
    ws_frames_close(w->frames, (int)code);
    pump(w);
}
