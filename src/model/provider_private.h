/* provider_private.h - one ask, as provider.c begins it and provider_end.c ends it. */
#ifndef PROVIDER_PRIVATE_H
#define PROVIDER_PRIVATE_H
#include "fence.h"
#include "http.h"
#include "loop.h"
#include "provider.h"

enum { PROVIDER_REFUSAL_MAX = 64 << 10 };

struct model {
    struct loop *loop;
    struct http *http;
    const struct wire *wire;
    const char *section, *key_file; /* of the configuration, which outlives every transcript */
    char *url, *count_url, *name, *key, **headers;
    bool stream, allow_plain, native, fence; /* native, fence: as configured; neither: as it turns out */
    int64_t max_output, context;
    const char *effort; /* of the configuration */
    enum wire_think thinking;
    bool tempered, tempered_by_us; /* by_us: nobody has asked for it */
    double temperature;
    unsigned configured; /* quirks that the operator knows of */
    struct provider_memory *memory;
};

struct model_call {
    struct model *m;
    struct model_ask ask; /* what it points to is the caller's for as long as we live */
    char *cache_key;
    struct model_events ev;
    void *ud;
    struct http_call *http;
    loop_timer linger; /* the answer is whole, its connection is still open */
    struct wire_reader reader;
    struct fence_watch watch;
    struct fence_talk talk;
    struct str refusal; /* body of a status that is none of success */
    struct err broken;  /* kind ERR_NONE: nothing */
    unsigned quirks;
    int64_t max_output;
    size_t body_n;
    int lessons;
    bool tried_plain, tried_key, counted, fenced;
    bool inside, cancelled; /* inside: a callback of the caller is on the stack */
};

/* ---- provider.c ---- */
/* Into m->key, when there is a file; -1: *e says why, and the key is as it was. */
must_check int provider_read_key(struct model *m, struct err *e);
void provider_forget_key(char *key);
struct wire_request provider_request_of(const struct model_call *c);
/* Once more from the beginning, as is known now. */
must_check int provider_send(struct model_call *c, struct err *e);
void provider_call_free(struct model_call *c);

/* ---- provider_end.c ---- */
void provider_on_done(void *ud, const struct http_answer *a);
/* The peer has said all, and does not hang up. */
void provider_on_linger(void *ud);
/* The last word of a call, which it frees. */
void provider_tell_error(struct model_call *c, struct err *e);
#endif
