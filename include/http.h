/* http.h - requests on the loop through one curl_multi. Floor 1; the only user of curl.
 *
 * A request is a slot: filled, started, called back. Nothing is retried here unless `tries` says so; rate limits are kept per
 * host: after a 429 every request to that host waits for what the host asked, or ends with ERR_LIMIT when its deadline comes
 * first. A host that asks for more than a minute is not tried again here: the caller gets its 429. Redirects are not followed.
 * Kinds of err: ERR_NET (no connection, cut off), ERR_TIMEOUT (total or stall), ERR_CONFIG (address, certificate), ERR_DATA
 * (too long, no HTTP, or body() said stop), ERR_STORE (the file to be sent), ERR_LIMIT. */
#ifndef HTTP_H
#define HTTP_H
#include "str.h"

struct loop;
struct http;
struct http_call;

struct http_request {
    const char *method, *url;
    const char *const *headers; /* "Name: value", NULL-terminated; may be NULL */
    const char *body;           /* copied; NULL: none */
    size_t body_n;
    int upload_fd; /* when body is NULL and upload_fd > 0: streamed from there, upload_n bytes; borrowed until done */
    int64_t upload_n;
    bool allow_plain; /* http:// to other than loopback */
    bool own_limits;  /* the caller keeps rate limits: a 429 holds up no other request, and none holds up this one */
    bool unpacks; /* what comes packed is unpacked, though nobody asked for it; max_bytes is then of what comes out */
    /* By a connection of its own: one that was kept may turn out to be dead, and then curl sends the request again by itself. */
    bool at_most_once;
    int tries; /* 0 or 1: once. Retries on ERR_NET, 408, 409, 429, 5xx; waits as Retry-After or doubling from 0.5 s to 8 s */
    int64_t connect_ms; /* 0: 5 s */
    int64_t total_ms;   /* 0: none */
    int64_t stall_ms;   /* 0: 90 s without a byte */
    size_t max_bytes;   /* body ceiling; 0: 8 MiB */
};

struct http_answer {
    int status;       /* HTTP status; 0 when none came */
    const char *body; /* NULL when the body callback took it */
    size_t body_n;
    const struct err *err; /* NULL: an answer came, whatever its status */
    int tries;
};

struct http_events {
    /* Optional. Status is known. Return false to stop the transfer (done follows with ERR_DATA). Retries end once this was called. */
    bool (*body)(void *ud, int status, const char *data, size_t n);
    void (*done)(void *ud, const struct http_answer *a); /* last call; borrowed */
};

must_check int http_new(struct http **out, struct loop *l, struct err *e);
void http_free(struct http *h); /* cancels what runs; fine inside a callback; NULL is fine */
must_check int http_start(struct http_call **out, struct http *h, const struct http_request *r,
                          const struct http_events *ev, void *ud, struct err *e);
/* No callback after this returns; fine inside body(); NULL is fine; never after done. */
void http_cancel(struct http_call *c);
/* A response header of a finished call, only inside done(): NULL when absent. Name without colon, any case. */
const char *http_header(const struct http_answer *a, const char *name);
/* How long the host wants to be left alone, from retry-after-ms or retry-after (seconds, or a date), only inside done(); 0: it says nothing. */
int64_t http_retry_after_ms(const struct http_answer *a);
#endif
