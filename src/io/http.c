/* http.c - curl_multi on the loop.
 *
 * curl tells which sockets and which moment it waits for; the loop tells curl when they come. curl may not be called from
 * inside its own callbacks, so a start waits for the loop's next round, and a cancelled transfer is removed once curl has
 * returned. After every call of curl_multi_socket_action all ended transfers are collected first and told afterwards, because
 * what is told may cancel others.
 *
 * A host that answers 429 and says for how long is left alone by every call until then. */
#include "http.h"

#include <assert.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>

#include <curl/curl.h>
#include "http_call.h"
#include "log.h"

enum {
    /* All of a model server's without HTTP/2. More handshakes at once would stall the loop: 200 of them 0.3 s. */
    HOST_CONNECTIONS = 64,
    CONNECT_MS = 5000,
    STALL_MS = 90000,
    ANSWER_MAX = 8 << 20,
    ASKED_MAX_MS = 60000,      /* longer waits are the caller's to decide */
    HOST_WAIT_MAX_MS = 600000, /* a host that asks for more is asked again by then */
};

static void call_go(void *ud);
static void told(struct http_call *c, const struct err *e);

/* ---- hosts ---- */

static struct http_host *host_get(struct http *h, const char *name)
{
    struct http_host *x = h->hosts;
    while (x && strcmp(x->name, name) != 0)
        x = x->next;
    if (x)
        return x;
    x = xcalloc(1, sizeof *x);
    *x = (struct http_host){ .next = h->hosts, .name = xstrdup(name) };
    h->hosts = x;
    return x;
}

static char *url_part(CURLU *u, CURLUPart part)
{
    char *curls = NULL;
    if (curl_url_get(u, part, &curls, CURLU_DEFAULT_PORT) != CURLUE_OK)
        return xstrdup("");
    char *ours = xstrdup(curls);
    curl_free(curls);
    return ours;
}

bool http_is_loopback(const char *host)
{
    static const char four[] = "127.";
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
           (strncmp(host, four, strlen(four)) == 0 && strspn(host, "0123456789.") == strlen(host));
}

static void url_free(CURLU **u)
{
    curl_url_cleanup(*u);
}

/* Where it goes, and whether it may go there in the clear. */
static int call_host(struct http_call *c, bool allow_plain, struct err *e)
{
    AUTO(url_free) CURLU *u = curl_url();
    if (!u || curl_url_set(u, CURLUPART_URL, c->url, 0) != CURLUE_OK)
        return err_set(e, ERR_CONFIG, "not an address: %.*s", (int)strcspn(c->url, "?"),
                       c->url); /* a query may hold a key */
    autofree char *scheme = url_part(u, CURLUPART_SCHEME), *host = url_part(u, CURLUPART_HOST);
    autofree char *port = url_part(u, CURLUPART_PORT), *name = xasprintf("%s://%s:%s", scheme, host, port);
    c->loopback = http_is_loopback(host);
    if (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0)
        return err_set(e, ERR_CONFIG, "%s: only https and http are spoken", scheme);
    if (strcmp(scheme, "http") == 0 && !c->loopback && !allow_plain)
        return err_set(e, ERR_CONFIG, "%s: plain http goes only to this machine, unless that is allowed", name);
    c->host = host_get(c->h, name);
    return 0;
}

/* ---- the life of a call ---- */

static void transfer_end(struct http_call *c)
{
    if (!c->easy)
        return;
    (void)curl_multi_remove_handle(c->h->multi, c->easy);
    curl_easy_cleanup(c->easy);
    c->easy = NULL;
}

static void ended_unlink(struct http_call *c)
{
    struct http_call **p = &c->h->ended;
    while (*p && *p != c)
        p = &(*p)->next_ended;
    if (*p)
        *p = c->next_ended;
    c->ended = false;
}

static void call_free(struct http_call *c)
{
    struct http_call **p = &c->h->calls;
    while (*p && *p != c)
        p = &(*p)->next;
    if (*p)
        *p = c->next;
    ended_unlink(c);
    loop_cancel(c->h->l, c->timer);
    transfer_end(c);
    curl_slist_free_all(c->headers);
    str_clear(&c->answer);
    free(c->method);
    free(c->url);
    free(c->body);
    free(c);
}

void http_cancel(struct http_call *c)
{
    if (!c || c->cancelled)
        return;
    c->cancelled = true;
    if (c->h->inside)
        c->h->bury = true;
    else
        call_free(c);
}

static void bury(struct http *h)
{
    h->bury = false;
    for (struct http_call *c = h->calls, *next; c; c = next) {
        next = c->next;
        if (c->cancelled)
            call_free(c);
    }
}

/* ---- the end of a transfer ---- */

struct answer {
    struct http_answer a; /* first: http_header() finds the rest behind it */
    CURL *easy;
};

const char *http_header(const struct http_answer *a, const char *name)
{
    return http_easy_header(((const struct answer *)(const void *)a)->easy, name);
}

int64_t http_retry_after_ms(const struct http_answer *a)
{
    return http_retry_asked_ms(http_header(a, "retry-after-ms"), http_header(a, "retry-after"), time_unix_ms() / 1000);
}

/* The last callback, and the end of c. */
static void told(struct http_call *c, const struct err *e)
{
    const struct answer x = {
        .a = {
            .status = http_easy_status(c),
            .body = c->told ? NULL : str_peek(&c->answer),
            .body_n = c->told ? 0 : c->answer.len,
            .err = e,
            .tries = c->tries,
        },
        .easy = c->easy,
    };
    c->cancelled = true; /* a late http_cancel() does nothing */
    c->ev.done(c->ud, &x.a);
    call_free(c);
}

static int64_t asked_ms(const struct http_call *c)
{
    return http_retry_asked_ms(http_easy_header(c->easy, "retry-after-ms"), http_easy_header(c->easy, "retry-after"),
                               time_unix_ms() / 1000);
}

static bool worth_another_try(const struct http_call *c, const struct err *e)
{
    if (c->tries >= c->tries_max || c->told)
        return false;
    if (e->kind != ERR_NONE)
        return e->kind == ERR_NET;
    return http_retry_status(http_easy_status(c), http_easy_header(c->easy, "x-should-retry"));
}

static void call_wait(struct http_call *c, int64_t ms)
{
    transfer_end(c);
    c->timer = loop_after(c->h->l, ms, call_go, c);
}

static void call_ended(struct http_call *c)
{
    struct err e = { 0 };
    (void)http_easy_error(c, &e);
    loop_cancel(c->h->l, c->timer);
    int64_t now = loop_now_ms(c->h->l), asked = c->result == CURLE_OK ? asked_ms(c) : 0;
    if (asked && !c->own_limits && http_easy_status(c) == 429) {
        int64_t wait = asked < HOST_WAIT_MAX_MS ? asked : HOST_WAIT_MAX_MS;
        c->host->until_ms = now + wait > c->host->until_ms ? now + wait : c->host->until_ms;
    }
    int64_t wait = asked ? asked : http_retry_backoff_ms(c->tries);
    if (!worth_another_try(c, &e) || asked > ASKED_MAX_MS || (c->deadline_ms && now + wait >= c->deadline_ms)) {
        told(c, e.kind ? &e : NULL);
        return;
    }
    log_info("http_retry", KV_S("host", c->host->name), KV_I("status", http_easy_status(c)), KV_I("try", c->tries),
             KV_I("wait_ms", wait), KV_S("why", e.msg));
    call_wait(c, wait);
}

static void collect(struct http *h)
{
    int left = 0;
    for (CURLMsg *m; (m = curl_multi_info_read(h->multi, &left));) {
        struct http_call *c = NULL;
        if (m->msg != CURLMSG_DONE || curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &c) != CURLE_OK || c->ended)
            continue;
        c->result = m->data.result;
        c->ended = true;
        struct http_call **p = &h->ended;
        while (*p)
            p = &(*p)->next_ended;
        c->next_ended = NULL;
        *p = c;
    }
}

static void curl_returned(struct http *h)
{
    collect(h);
    if (h->bury)
        bury(h);
    while (!h->dead && h->ended) {
        struct http_call *c = h->ended;
        ended_unlink(c);
        call_ended(c);
    }
}

/* ---- curl and the loop ---- */

static void act(struct http *h, curl_socket_t fd, int events)
{
    int running = 0;
    if (h->dead)
        return;
    h->inside++;
    (void)curl_multi_socket_action(h->multi, fd, events, &running);
    h->inside--;
    curl_returned(h);
}

static void on_socket(void *ud, int fd, uint32_t events)
{
    int what = 0;
    if (events & (EPOLLIN | EPOLLHUP))
        what |= CURL_CSELECT_IN;
    if (events & EPOLLOUT)
        what |= CURL_CSELECT_OUT;
    if (events & EPOLLERR)
        what |= CURL_CSELECT_ERR;
    act(ud, fd, what);
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *ud, void *unused)
{
    (void)easy;
    (void)unused;
    struct http *h = ud;
    if (what == CURL_POLL_REMOVE) {
        loop_io_stop(h->l, fd);
        return 0;
    }
    uint32_t events = (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0u) | (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0u);
    loop_io(h->l, fd, events, on_socket, h);
    return 0;
}

static void on_time(void *ud)
{
    struct http *h = ud;
    h->curl_timer = 0;
    act(h, CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_timer(CURLM *multi, long ms, void *ud)
{
    (void)multi;
    struct http *h = ud;
    loop_cancel(h->l, h->curl_timer);
    h->curl_timer = ms < 0 ? 0 : loop_after(h->l, ms, on_time, h);
    return 0;
}

/* ---- the beginning of a transfer ---- */

static void on_stall_timer(void *ud)
{
    struct http_call *c = ud;
    int64_t left = c->moved_ms + c->stall_ms - loop_now_ms(c->h->l);
    if (left > 0) {
        c->timer = loop_after(c->h->l, left, on_stall_timer, c);
        return;
    }
    c->timer = 0;
    c->stalled = true;
    c->result = CURLE_OPERATION_TIMEDOUT;
    call_ended(c);
}

static void call_begin(struct http_call *c)
{
    struct err e = { 0 };
    str_clear(&c->answer);
    c->got_bytes = c->moved = 0;
    c->problem[0] = '\0';
    c->moved_ms = loop_now_ms(c->h->l);
    c->tries++;
    if (http_easy_new(c, &e) < 0 || curl_multi_add_handle(c->h->multi, c->easy) != CURLM_OK) {
        if (e.kind == ERR_NONE)
            (void)err_set(&e, ERR_NET, "%s: curl does not take the request", c->host->name);
        told(c, &e);
        return;
    }
    c->timer = loop_after(c->h->l, c->stall_ms, on_stall_timer, c);
}

/* Its time has come, unless the host asked for patience meanwhile. */
static void call_go(void *ud)
{
    struct http_call *c = ud;
    c->timer = 0;
    int64_t now = loop_now_ms(c->h->l), wait = c->own_limits ? 0 : c->host->until_ms - now;
    if (wait <= 0) {
        call_begin(c);
        return;
    }
    if (c->deadline_ms && now + wait >= c->deadline_ms) {
        struct err e = { 0 };
        (void)err_set(&e, ERR_LIMIT, "%s asked us to wait for %lld ms", c->host->name, (long long)wait);
        e.retry_ms = (long)wait;
        told(c, &e);
        return;
    }
    c->timer = loop_after(c->h->l, wait, call_go, c);
}

static int add_header(struct http_call *c, const char *line, struct err *e)
{
    if (strpbrk(line, "\r\n") || !strchr(line, ':'))
        return err_set(e, ERR_DATA, "a request header is malformed");
    struct curl_slist *longer = curl_slist_append(c->headers, line);
    if (!longer)
        abort();
    c->headers = longer;
    return 0;
}

static int add_headers(struct http_call *c, const struct http_request *r, struct err *e)
{
    bool typed = false;
    for (size_t i = 0; r->headers && r->headers[i]; i++) {
        typed = typed || strncasecmp(r->headers[i], "content-type:", strlen("content-type:")) == 0;
        if (add_header(c, r->headers[i], e) < 0)
            return -1;
    }
    /* What curl would add of its own: a pause of a second before long bodies, and a wrong type. */
    if (add_header(c, "Expect:", e) < 0)
        return -1;
    return typed ? 0 : add_header(c, "Content-Type:", e);
}

static char *copy_bytes(const char *data, size_t n)
{
    char *copy = xcalloc(1, n + 1);
    memcpy(copy, data, n);
    return copy;
}

static struct http_call *call_new(struct http *h, const struct http_request *r, const struct http_events *ev, void *ud)
{
    struct http_call *c = xcalloc(1, sizeof *c);
    *c = (struct http_call){
        .h = h,
        .next = h->calls,
        .ev = *ev,
        .ud = ud,
        .method = xstrdup(r->method),
        .url = xstrdup(r->url),
        .body = r->body ? copy_bytes(r->body, r->body_n) : NULL,
        .body_n = r->body_n,
        .max_bytes = r->max_bytes ? r->max_bytes : ANSWER_MAX,
        .upload_fd = r->body ? 0 : r->upload_fd,
        .upload_n = r->upload_n,
        .connect_ms = r->connect_ms > 0 ? r->connect_ms : CONNECT_MS,
        .stall_ms = r->stall_ms > 0 ? r->stall_ms : STALL_MS,
        .deadline_ms = r->total_ms > 0 ? loop_now_ms(h->l) + r->total_ms : 0,
        .tries_max = r->tries > 1 ? r->tries : 1,
        .own_limits = r->own_limits,
        .at_most_once = r->at_most_once,
        .unpacks = r->unpacks,
    };
    c->answer = (struct str)STR_INIT(c->max_bytes);
    h->calls = c;
    return c;
}

int http_start(struct http_call **out, struct http *h, const struct http_request *r, const struct http_events *ev,
               void *ud, struct err *e)
{
    assert(!h->dead);
    struct http_call *c = call_new(h, r, ev, ud);
    if (call_host(c, r->allow_plain, e) < 0 || add_headers(c, r, e) < 0) {
        call_free(c);
        return -1;
    }
    c->timer = loop_after(h->l, 0, call_go, c);
    *out = c;
    return 0;
}

/* ---- all of it ---- */

int http_new(struct http **out, struct loop *l, struct err *e)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(e, ERR_CONFIG, "libcurl does not start");
    struct http *h = xcalloc(1, sizeof *h);
    h->l = l;
    h->multi = curl_multi_init();
    if (!h->multi)
        abort();
    (void)curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
    (void)curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
    (void)curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
    (void)curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
    (void)curl_multi_setopt(h->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)HOST_CONNECTIONS);
    *out = h;
    return 0;
}

static void release(void *ud)
{
    struct http *h = ud;
    while (h->calls) {
        struct http_call *c = h->calls;
        h->calls = c->next;
        call_free(c);
    }
    (void)curl_multi_cleanup(h->multi);
    loop_cancel(h->l, h->curl_timer);
    while (h->hosts) {
        struct http_host *x = h->hosts;
        h->hosts = x->next;
        free(x->name);
        free(x);
    }
    free(h);
    curl_global_cleanup();
}

void http_free(struct http *h)
{
    if (!h || h->dead)
        return;
    h->dead = true;
    for (struct http_call *c = h->calls; c; c = c->next) {
        c->cancelled = true;
        loop_cancel(h->l, c->timer);
        c->timer = 0;
    }
    loop_defer(h->l, release, h); /* we may be inside one of its callbacks, even inside curl */
}
