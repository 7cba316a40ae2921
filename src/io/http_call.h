/* http_call.h - one request from its start to its last callback; private to http*.c, which include curl.h before it. */
#ifndef HTTP_CALL_H
#define HTTP_CALL_H
#include "http.h"
#include "loop.h"

/* What a host asked for; kept for the life of the http. */
struct http_host {
    struct http_host *next;
    char *name;       /* "scheme://host:port" */
    int64_t until_ms; /* nothing is sent before */
};

struct http {
    struct loop *l;
    CURLM *multi;
    loop_timer curl_timer;
    struct http_host *hosts;
    struct http_call *calls; /* all of them */
    struct http_call *ended; /* transfers whose end is not told yet */
    int inside;              /* curl is on the stack: it may not be called */
    bool dead, bury;         /* bury: some calls are to be removed once curl has returned */
};

struct http_call {
    struct http *h;
    struct http_call *next, *next_ended;
    struct http_host *host;
    struct http_events ev;
    void *ud;

    char *method, *url, *body;
    size_t body_n, max_bytes;
    struct curl_slist *headers;
    int upload_fd;
    int64_t upload_n, connect_ms, stall_ms, deadline_ms; /* deadline 0: none */
    int tries_max;
    bool loopback, own_limits, at_most_once, unpacks;

    CURL *easy;       /* while a transfer runs, and in done() */
    loop_timer timer; /* before it: when it may start; during it: when to look for a stall */
    int tries;
    bool cancelled, ended, told, stopped, too_long, stalled; /* told: body() was called; stopped: it said so */
    CURLcode result;
    struct str answer;
    int64_t got_bytes, upload_at;
    int64_t moved, moved_ms; /* bytes both ways at the last change, and when that was */
    char problem[CURL_ERROR_SIZE];
};

/* 127.x, localhost, [::1]: never through a proxy. */
bool http_is_loopback(const char *host);

/* ---- http_easy.c: a call as a curl handle ---- */
must_check int http_easy_new(struct http_call *c, struct err *e);
/* HTTP status of the transfer so far. */
int http_easy_status(const struct http_call *c);
const char *http_easy_header(CURL *easy, const char *name);
/* What curl's result means. */
int http_easy_error(const struct http_call *c, struct err *e);

/* ---- http_retry.c: when to try again; no curl in it but the date parser ---- */
/* Milliseconds that the headers ask to wait; 0: they don't say (or nonsense). NULL: header absent. now_s: Unix time. */
int64_t http_retry_asked_ms(const char *retry_after_ms, const char *retry_after, int64_t now_s);
/* Before try n + 1 (n from 1) when nobody asked for anything: doubling from 0.5 s to 8 s, up to a quarter less by chance. */
int64_t http_retry_backoff_ms(int n);
/* should_retry: the header of that name, or NULL. */
bool http_retry_status(int status, const char *should_retry);
#endif
