/* http_fixture.h - an HTTP client in a test: a small server on the same loop, a clock that can be moved on. */
#ifndef HTTP_FIXTURE_H
#define HTTP_FIXTURE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include "http.h"
#include "loop.h"
#include "str.h"

/* ---- the server ---- */

enum { CONNS = 64, REQUEST_MAX = 4 << 20, RESPONSE_MAX = 4 << 20 };

struct conn {
    struct server *s;
    int fd;
    struct str in, out;
    size_t sent;
    bool close_after;
};

struct server {
    struct loop *l;
    int fd, port;
    struct conn conn[CONNS];
    int open, open_max, hits, fails_left;
    const char *extra; /* header lines of a failing answer */
    struct str last;   /* the last request, whole */
};

static inline void conn_close(struct conn *c)
{
    loop_io_stop(c->s->l, c->fd);
    (void)close(c->fd);
    str_clear(&c->in);
    str_clear(&c->out);
    c->fd = -1;
    c->s->open--;
}

static inline void respond(struct conn *c, const char *status, const char *headers, const char *body, size_t n)
{
    str_printf(&c->out, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n%s\r\n", status, n, headers ? headers : "");
    str_add(&c->out, body, n);
}

static inline void respond_text(struct conn *c, const char *status, const char *headers, const char *text)
{
    respond(c, status, headers, text, strlen(text));
}

static inline void respond_big(struct conn *c, size_t n)
{
    char *b = xcalloc(1, n + 1);
    memset(b, 'b', n);
    respond(c, "200 OK", NULL, b, n);
    free(b);
}

/* "/fail/429": so often as the test said, then an ok. */
static inline void respond_fail(struct conn *c, const char *status)
{
    char line[64];
    (void)snprintf(line, sizeof line, "%.3s Nope", status);
    if (c->s->fails_left-- > 0)
        respond_text(c, line, c->s->extra, "not now");
    else
        respond_text(c, "200 OK", NULL, "at last");
}

static inline void route(struct conn *c, const char *path)
{
    if (strncmp(path, "/hello ", 7) == 0)
        respond_text(c, "200 OK", "X-Word: yes\r\n", "hello");
    else if (strncmp(path, "/echo", 5) == 0)
        respond(c, "200 OK", NULL, str_peek(&c->in), c->in.len);
    else if (strncmp(path, "/fail/", 6) == 0)
        respond_fail(c, path + 6);
    else if (strncmp(path, "/big/", 5) == 0)
        respond_big(c, strtoul(path + 5, NULL, 10));
    else if (strncmp(path, "/away ", 6) == 0)
        respond_text(c, "302 Found", "Location: /hello\r\n", "elsewhere");
    else if (strncmp(path, "/stall ", 7) == 0)
        str_puts(&c->out, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun");
    else if (strncmp(path, "/cut ", 5) == 0) {
        str_puts(&c->out, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun");
        c->close_after = true;
    } else if (strncmp(path, "/rude ", 6) == 0)
        c->close_after = true;
    else if (strncmp(path, "/stream ", 8) == 0)
        str_puts(&c->out, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n");
    else
        respond_text(c, "404 Not Found", NULL, "no such thing");
}

/* Length of the first whole request in the buffer; 0: more to come. */
static inline size_t request_length(const struct str *in)
{
    const char *text = str_peek(in), *end = strstr(text, "\r\n\r\n");
    if (!end)
        return 0;
    const char *length = strcasestr(text, "\r\ncontent-length: ");
    size_t body = length && length < end ? strtoul(length + 18, NULL, 10) : 0;
    size_t all = (size_t)(end - text) + 4 + body;
    return in->len >= all ? all : 0;
}

static void conn_write(struct conn *c);

static inline void on_conn(void *ud, int fd, uint32_t events)
{
    struct conn *c = ud;
    char b[64 << 10];
    (void)events;
    ssize_t n = read(fd, b, sizeof b);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        conn_close(c);
        return;
    }
    if (n > 0)
        str_add(&c->in, b, (size_t)n);
    if (request_length(&c->in)) {
        str_clear(&c->s->last);
        str_add(&c->s->last, c->in.buf, c->in.len);
        c->s->hits++;
        route(c, strchr(c->in.buf, ' ') + 1);
        str_clear(&c->in);
    }
    conn_write(c);
}

static inline void conn_write(struct conn *c)
{
    while (c->sent < c->out.len) {
        ssize_t n = send(c->fd, c->out.buf + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);
        if (n < 0)
            break;
        c->sent += (size_t)n;
    }
    bool more = c->sent < c->out.len;
    if (!more) {
        c->sent = 0;
        str_clear(&c->out);
    }
    if (!more && c->close_after)
        conn_close(c);
    else
        loop_io(c->s->l, c->fd, EPOLLIN | (more ? (uint32_t)EPOLLOUT : 0u), on_conn, c);
}

static inline void on_accept(void *ud, int fd, uint32_t events)
{
    (void)events;
    struct server *s = ud;
    int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(got >= 0);
    struct conn *c = s->conn;
    while (c->fd >= 0)
        c++;
    assert_true(c < s->conn + CONNS);
    *c = (struct conn){ .s = s, .fd = got, .in = STR_INIT(REQUEST_MAX), .out = STR_INIT(RESPONSE_MAX) };
    s->open++;
    s->open_max = s->open > s->open_max ? s->open : s->open_max;
    loop_io(s->l, got, EPOLLIN, on_conn, c);
}

static inline void server_open(struct server *s, struct loop *l)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof a;
    *s = (struct server){ .l = l, .last = STR_INIT(REQUEST_MAX) };
    for (size_t i = 0; i < CONNS; i++)
        s->conn[i].fd = -1;
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->fd, 64), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &n), 0);
    s->port = ntohs(a.sin_port);
    loop_io(l, s->fd, EPOLLIN, on_accept, s);
}

static inline void server_close(struct server *s)
{
    for (size_t i = 0; i < CONNS; i++)
        if (s->conn[i].fd >= 0)
            conn_close(&s->conn[i]);
    loop_io_stop(s->l, s->fd);
    (void)close(s->fd);
    str_clear(&s->last);
}

/* ---- the client's side ---- */

struct fixture {
    struct loop *l;
    struct http *h;
    struct server server;
    int64_t skew_ms;

    struct http_call *call;
    int done_n, status, tries, body_n;
    struct err err;
    struct str body;
    char word[32];
    bool stop, cancel_in_body, free_in_body, free_in_done;
    const char *again; /* started inside done */
};

static inline int64_t skewed(void *ud)
{
    return time_mono_ms() + ((const struct fixture *)ud)->skew_ms;
}

static inline void begin(struct fixture *f)
{
    struct err e = { 0 };
    *f = (struct fixture){ .body = STR_INIT(8 << 20) };
    assert_int_equal(loop_new(&f->l, skewed, f, &e), 0);
    assert_int_equal(http_new(&f->h, f->l, &e), 0);
    server_open(&f->server, f->l);
}

static inline void end(struct fixture *f)
{
    http_free(f->h);
    server_close(&f->server);
    loop_free(f->l);
    str_clear(&f->body);
}

static inline void rounds(struct fixture *f, int n)
{
    struct err e = { 0 };
    for (int i = 0; i < n; i++)
        assert_int_equal(loop_once(f->l, 5, &e), 0);
}

static inline void pump(struct fixture *f, const int *count, int until)
{
    struct err e = { 0 };
    int64_t give_up = time_mono_ms() + 20000;
    while (*count < until && time_mono_ms() < give_up)
        assert_int_equal(loop_once(f->l, 1000, &e), 0);
    assert_int_equal(*count, until);
}

static void go(struct fixture *f, const char *method, const char *path, struct http_request r);

static inline void on_done(void *ud, const struct http_answer *a)
{
    struct fixture *f = ud;
    f->done_n++;
    f->status = a->status;
    f->tries = a->tries;
    f->err = a->err ? *a->err : (struct err){ 0 };
    const char *word = http_header(a, "x-word");
    (void)snprintf(f->word, sizeof f->word, "%s", word ? word : "");
    if (a->body)
        str_add(&f->body, a->body, a->body_n);
    if (f->again) {
        const char *path = f->again;
        f->again = NULL;
        go(f, "GET", path, (struct http_request){ 0 });
    }
    if (f->free_in_done) {
        http_free(f->h);
        f->h = NULL;
    }
}

static inline bool on_body(void *ud, int status, const char *data, size_t n)
{
    struct fixture *f = ud;
    f->status = status;
    f->body_n++;
    str_add(&f->body, data, n);
    if (f->cancel_in_body)
        http_cancel(f->call);
    if (f->free_in_body) {
        http_free(f->h);
        f->h = NULL;
    }
    return !f->stop;
}

static inline void start(struct fixture *f, const char *method, const char *path, struct http_request r,
                         const struct http_events *ev)
{
    struct err e = { 0 };
    autofree char *url = xasprintf("http://127.0.0.1:%d%s", f->server.port, path);
    r.method = method;
    r.url = url;
    assert_int_equal(http_start(&f->call, f->h, &r, ev, f, &e), 0);
}

static inline void go(struct fixture *f, const char *method, const char *path, struct http_request r)
{
    static const struct http_events events = { NULL, on_done };
    start(f, method, path, r, &events);
}

static inline void go_stream(struct fixture *f, const char *path, struct http_request r)
{
    static const struct http_events events = { on_body, on_done };
    start(f, "GET", path, r, &events);
}

static inline void get(struct fixture *f, const char *path)
{
    go(f, "GET", path, (struct http_request){ 0 });
    pump(f, &f->done_n, f->done_n + 1);
}
#endif
