/* provider.h - a model behind an HTTP address, whatever its dialect: asked through wire.h, learned about through refusals.
 *
 * One ask is one request, and more only when a refusal names something that can be left out or said otherwise (a parameter, a
 * role, tools): then it is asked again at once, and what was learned holds for that (URL, model) until the process ends.
 * Tries after a failed transport are the caller's, who counts them.
 *
 * A server that counts tokens for nothing (Anthropic) is asked before a request that may be longer than the model's window, and only then:
 * what does not fit is not sent, and ends like a refusal for length; an answer's ceiling is lowered to what is left.
 *
 * Errors of done(), besides those of http.h (ERR_NET, ERR_TIMEOUT; the whole within 10 minutes, a stream's next byte within 90 s, 300 s
 * from this machine, where processors do the work):
 *   ERR_CONFIG  key refused or without the right (sys EACCES), no credit or quota (sys EDQUOT), no such model or address (sys ENOENT),
 *               a redirect
 *   ERR_LIMIT   too many requests, overloaded; retry_ms when the server named a time of at most two minutes
 *   ERR_REFUSED the request itself; sys EMSGSIZE: the conversation is too long (model_err_too_long in model.h)
 *   ERR_NET     the server failed, or the answer was cut off
 *   ERR_DATA    an answer past its ceiling
 *
 * Trust boundary: the key leaves in one header to one host; redirects are not followed. It is never logged, and masked should a
 * server repeat it. */
#ifndef PROVIDER_H
#define PROVIDER_H
#include "wire.h"

/* ---- addresses: provider_url.c ---- */
/* Where requests go: the base address with the dialect's path, unless it is there already. version: Azure's api-version, "": that of
 * old addresses. Caller frees. */
char *provider_url(const struct wire *w, const char *base, const char *version);
bool provider_is_plain(const char *url); /* http:// */
/* What is known of an address before the first refusal: a set of wire_quirk. */
unsigned provider_first_quirks(const struct wire *w, const char *url);
/* Where tokens are counted, for a request that goes to url. Caller frees. */
char *provider_count_url(const char *url);
/* Header lines, NULL-terminated; key NULL: none. The caller frees (provider_headers_free wipes them). */
char **provider_headers(const struct wire *w, const char *url, const char *key);
void provider_headers_free(char **lines);

/* ---- what was learned: provider_learn.c ---- */
struct provider_memory {
    struct provider_memory *next;
    char *url, *model;
    unsigned quirks;
    int64_t max_output; /* tokens that the server allows; 0: not known */
    bool worked;        /* it has answered once */
    bool called;        /* it has called a tool once: the server knows tools */
    bool uncounted;     /* it does not count tokens when asked to */
    double token_bytes; /* of a request's body, as it counts; 0: not known */
};
/* For the life of the process; made with `first` when new. */
struct provider_memory *provider_memory_get(const char *url, const char *model, unsigned first);
/* For tests. */
void provider_memory_forget(void);

struct provider_sent {
    const struct wire *wire;
    unsigned quirks;
    bool tools, stream, fenced, may_fence, calls; /* calls: there are some in the history */
    int64_t max_output;
    bool tempered;
};
/* What to do otherwise after that refusal: true when there is something, then *quirks and *max_output are what to ask with, and *what
 * names it for the log. */
bool provider_learn(const struct wire_error *error, const struct provider_sent *sent, unsigned *quirks,
                    int64_t *max_output, const char **what);
/* The same for a refusal without reason of a server that has never answered: everything optional is left out, once. */
bool provider_plainest(const struct wire_error *error, unsigned *quirks);
#endif
