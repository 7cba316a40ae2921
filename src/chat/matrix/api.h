/* api.h - requests to the homeserver: token, limits, errors in our words. Floor 3.
 *
 * Two lanes: messages and media have rate limits of their own, and http.h holds back every request to a host that asked for
 * patience; the sync and what it needs go by a lane that no message can stop. Nothing is retried here but once, when the access
 * token had to be renewed. A kind of error says what its caller may do:
 *   ERR_NET, ERR_TIMEOUT   again later         ERR_LIMIT    after retry_ms      ERR_CONFIG   the account is gone
 *   ERR_REFUSED            never like this     ERR_DATA     the answer makes no sense */
#ifndef MATRIX_API_H
#define MATRIX_API_H
#include "http.h"
#include "json.h"
#include "loop.h"

struct api;

enum api_lane { API_LANE_SYNC, API_LANE_SEND, API_LANES };

struct api_request {
    const char *method, *path; /* path from "/_matrix/" on, escaped */
    const struct json *body;   /* NULL: none */
    const char *text;          /* a body that is JSON text already; NULL: see body */
    const char *form;          /* an urlencoded body; path is then a whole URL */
    enum api_lane lane;
    bool open;          /* without the token */
    int64_t timeout_ms; /* 0: 60 s */
    size_t max_bytes;   /* of the answer; 0: 8 MiB */
};

struct api_answer {
    int status;
    const struct json *body; /* an object, or NULL */
    const char *errcode;     /* "" when there is none */
    const char *error;       /* in the server's words, scrubbed; "" */
    size_t bytes;            /* of the answer */
    const char *location;    /* of a redirect: they are not followed; NULL: none */
    int64_t date_ms;         /* Unix time by the server's clock, to a second; 0: it did not say */
    struct err err;          /* kind ERR_NONE: it worked (2xx, and an object came) */
};
typedef void api_fn(void *ud, const struct api_answer *a);

/* The server says that the access token is no longer good: get another and call api_token(), or api_token(NULL). */
typedef void api_stale_fn(void *ud, bool soft_logout);

must_check int api_new(struct api **out, struct loop *l, bool allow_plain, api_stale_fn *stale, void *ud,
                       struct err *e);
void api_free(struct api *a); /* no callback after it */
/* "https://host[:port]"; anything behind it is kept, trailing slashes are not. */
void api_base(struct api *a, const char *url);
const char *api_base_url(const struct api *a);
/* Token for what follows and for what waits for one; NULL: there is none, what waits fails with ERR_CONFIG. */
void api_token(struct api *a, const char *token);
const char *api_bearer(const struct api *a); /* "Authorization: Bearer ..." */
/* For those who speak HTTP themselves: which token that is, and that it was refused (the same one gets renewed once). */
unsigned api_token_number(const struct api *a);
void api_refused(struct api *a, unsigned number, bool soft_logout);
struct http *api_http(const struct api *a, enum api_lane lane);
bool api_plain(const struct api *a);

/* fn is called exactly once, unless api_free() comes first; maybe before this returns. */
void api_start(struct api *a, const struct api_request *r, api_fn *fn, void *ud);
/* What an answer with this status and JSON body means; for those who speak HTTP themselves. err is filled. */
void api_judge(struct api_answer *a, int64_t retry_header_ms);
/* Why a request that was on its way got no answer. */
struct err api_lost(const struct err *e);
/* Milliseconds to wait before try n (from 1): doubling from 1 s to 60 s, half of it by chance. */
int64_t api_backoff_ms(int n);
#endif
