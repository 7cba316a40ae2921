/* httpd.h - a small HTTP server on the loop, by libmicrohttpd. Floor 1.
 *
 * For what few peers ask: a platform's events, health. Whole requests with capped bodies; answers at once. TLS is a proxy's
 * work, which is why it listens on loopback unless told otherwise. */
#ifndef HTTPD_H
#define HTTPD_H
#include "str.h"

struct loop;
struct httpd;

/* Borrowed: valid during the handler only. */
struct httpd_request {
    const char *method, *path;
    const char *body; /* raw bytes, a NUL behind them */
    size_t body_n;
    void *own; /* httpd's */
};

struct httpd_answer {
    int status;            /* 0: 500 */
    const char *type;      /* Content-Type; NULL: none */
    struct str body;       /* httpd clears it */
    const char *header[2]; /* one more header, name and value; NULL: none */
};

typedef void httpd_fn(void *ud, const struct httpd_request *r, struct httpd_answer *a);

struct httpd_config {
    const char *address; /* "127.0.0.1:8080", "[::1]:8080", ":0" (loopback, any port) */
    size_t max_bytes;    /* of a body; more is answered 413; 0: 1 MiB */
    httpd_fn *handle;
    void *ud;
};

/* ERR_CONFIG: the address is none, or taken. */
must_check int httpd_open(struct httpd **out, struct loop *l, const struct httpd_config *c, struct err *e);
int httpd_port(const struct httpd *h);
/* Value of a request header, any case; NULL: absent. */
const char *httpd_header(const struct httpd_request *r, const char *name);
void httpd_close(struct httpd *h); /* not inside the handler; NULL is fine */
#endif
