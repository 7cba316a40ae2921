/* httpd.c - libmicrohttpd without threads: its epoll descriptor is one of the loop's, its timeout one of the loop's timers.
 *
 * Trust boundary: requests come from whoever reaches the address. A connection that is slow, long or one too many is closed
 * by the limits below; a handler sees whole requests only. */
#include "httpd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <microhttpd.h>
#include "log.h"
#include "loop.h"

enum {
    BODY_MAX = 1 << 20,
    HEAD_MAX = 32 << 10,
    READ_S = 5,
    CONNECTIONS = 64,
};

struct httpd {
    struct loop *l;
    struct httpd_config c;
    struct MHD_Daemon *mhd;
    int epoll_fd, port;
    loop_timer timer;
};

/* One request while its body comes. */
struct incoming {
    struct str body;
    bool too_long;
};

static void run(struct httpd *h);

/* ---- one request ---- */

static enum MHD_Result send_answer(struct MHD_Connection *conn, struct httpd_answer *a)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(a->body.len, a->body.buf, MHD_RESPMEM_MUST_COPY);
    if (!r)
        return MHD_NO;
    if (a->type)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, a->type);
    if (a->header[0])
        (void)MHD_add_response_header(r, a->header[0], a->header[1]);
    const enum MHD_Result ok = MHD_queue_response(conn, a->status ? (unsigned)a->status : 500u, r);
    MHD_destroy_response(r);
    str_clear(&a->body);
    return ok;
}

static enum MHD_Result answer(const struct httpd *h, struct MHD_Connection *conn, const struct httpd_request *r,
                              bool too_long)
{
    struct httpd_answer a = { .body = STR_INIT(BODY_MAX) };
    if (too_long)
        a.status = MHD_HTTP_CONTENT_TOO_LARGE;
    else
        h->c.handle(h->c.ud, r, &a);
    return send_answer(conn, &a);
}

/* libmicrohttpd calls this once for the head, then for each piece of the body, then once more without one. */
/* NOLINTNEXTLINE(readability-function-size): its parameters are libmicrohttpd's */
static enum MHD_Result on_request(void *ud, struct MHD_Connection *conn, const char *path, const char *method,
                                  const char *version, const char *data, size_t *n, void **own)
{
    struct httpd *h = ud;
    struct incoming *in = *own;
    (void)version;
    if (!in) {
        *own = in = xcalloc(1, sizeof(*in));
        in->body = (struct str)STR_INIT(h->c.max_bytes ? h->c.max_bytes : (size_t)BODY_MAX);
        return MHD_YES;
    }
    if (*n) {
        str_add(&in->body, data, *n);
        in->too_long = in->too_long || in->body.overflow;
        *n = 0;
        return MHD_YES;
    }
    const struct httpd_request r = {
        .method = method, .path = path, .body = str_peek(&in->body), .body_n = in->body.len, .own = conn
    };
    return answer(h, conn, &r, in->too_long);
}

static void on_over(void *ud, struct MHD_Connection *conn, void **own, enum MHD_RequestTerminationCode why)
{
    struct incoming *in = *own;
    (void)ud;
    (void)conn;
    (void)why;
    if (!in)
        return;
    str_clear(&in->body);
    free(in);
    *own = NULL;
}

const char *httpd_header(const struct httpd_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->own, MHD_HEADER_KIND, name);
}

/* ---- on the loop ---- */

static void on_time(void *ud)
{
    struct httpd *h = ud;
    h->timer = 0;
    run(h);
}

static void run(struct httpd *h)
{
    MHD_UNSIGNED_LONG_LONG ms = 0;
    (void)MHD_run(h->mhd);
    loop_cancel(h->l, h->timer);
    h->timer = MHD_get_timeout(h->mhd, &ms) == MHD_YES ? loop_after(h->l, (int64_t)ms, on_time, h) : 0;
}

static void on_io(void *ud, int fd, uint32_t events)
{
    (void)fd;
    (void)events;
    run(ud);
}

/* ---- its address ---- */

static int read_address(const char *text, struct sockaddr_storage *out, struct err *e)
{
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    const long port = colon ? strtol(colon + 1, &end, 10) : -1;
    if (!colon || !end || *end || end == colon + 1 || port < 0 || port > 65535)
        return err_set(e, ERR_CONFIG, "\"%.60s\" is not an address with a port, such as 127.0.0.1:8080", text);
    const bool bracketed = *text == '[' && colon > text + 1 && colon[-1] == ']';
    autofree char *host =
        bracketed ? xstrndup(text + 1, (size_t)(colon - text) - 2) : xstrndup(text, (size_t)(colon - text));
    *out = (struct sockaddr_storage){ .ss_family = bracketed ? AF_INET6 : AF_INET };
    if (bracketed) {
        six->sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host, &six->sin6_addr) == 1
                   ? 0
                   : err_set(e, ERR_CONFIG, "\"%.60s\" is not an IPv6 address", host);
    }
    four->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, *host ? host : "127.0.0.1", &four->sin_addr) == 1
               ? 0
               : err_set(e, ERR_CONFIG, "\"%.60s\" is not an IPv4 address", host);
}

static int listen_at(int fd, const struct sockaddr_storage *a, const char *text, int *port, struct err *e)
{
    const int one = 1;
    union {
        struct sockaddr_storage all;
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } got = { 0 };
    socklen_t n = a->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (const struct sockaddr *)a, n) < 0 || listen(fd, CONNECTIONS) < 0)
        return err_sys(e, ERR_CONFIG, errno, "cannot listen at %s", text);
    n = sizeof(got);
    if (getsockname(fd, &got.any, &n) < 0)
        return err_sys(e, ERR_CONFIG, errno, "getsockname");
    *port = ntohs(got.any.sa_family == AF_INET6 ? got.six.sin6_port : got.four.sin_port);
    return 0;
}

/* The descriptor; -1: e says why. */
static int open_socket(const char *address, int *port, struct err *e)
{
    struct sockaddr_storage a = { 0 };
    if (read_address(address, &a, e) < 0)
        return -1;
    const int fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(e, ERR_CONFIG, errno, "socket");
    if (listen_at(fd, &a, address, port, e) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

int httpd_open(struct httpd **out, struct loop *l, const struct httpd_config *c, struct err *e)
{
    int port = 0;
    const int fd = open_socket(c->address, &port, e);
    if (fd < 0)
        return -1;
    struct httpd *h = xcalloc(1, sizeof(*h));
    *h = (struct httpd){ .l = l, .c = *c, .port = port };
    h->mhd = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, h, MHD_OPTION_LISTEN_SOCKET, fd,
                              MHD_OPTION_NOTIFY_COMPLETED, on_over, NULL, MHD_OPTION_CONNECTION_LIMIT,
                              (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)READ_S,
                              MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_MAX, MHD_OPTION_END);
    const union MHD_DaemonInfo *info = h->mhd ? MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info) {
        httpd_close(h);
        return err_set(e, ERR_CONFIG, "the HTTP server does not start");
    }
    h->epoll_fd = info->epoll_fd;
    loop_io(l, h->epoll_fd, EPOLLIN, on_io, h);
    *out = h;
    return 0;
}

int httpd_port(const struct httpd *h)
{
    return h->port;
}

void httpd_close(struct httpd *h)
{
    if (!h)
        return;
    loop_cancel(h->l, h->timer);
    if (h->epoll_fd > 0)
        loop_io_stop(h->l, h->epoll_fd);
    if (h->mhd)
        MHD_stop_daemon(h->mhd);
    free(h);
}
