/* err.h - one error value: filled by the callee, owned by the caller, never allocated. */
#ifndef ERR_H
#define ERR_H
#include "base.h"

/* Kinds are policy: only the owner of a policy looks at them (http.c retries, session.c words the apology). */
enum err_kind {
    ERR_NONE,
    ERR_CONFIG,  /* the operator must act: bad setting, missing secret, a machine that lacks something */
    ERR_NET,     /* peer unreachable or cut off: retry with backoff */
    ERR_LIMIT,   /* peer asked us to slow down: retry after retry_ms */
    ERR_REFUSED, /* peer said no (4xx): do not retry */
    ERR_TIMEOUT, /* our own deadline passed */
    ERR_DATA,    /* peer, person or file sent something malformed */
    ERR_SANDBOX, /* the sandbox, not the code inside it, failed */
    ERR_STORE,   /* state could not be read or made durable */
};

struct err {
    enum err_kind kind;
    int sys;       /* errno, or 0 */
    long retry_ms; /* ERR_LIMIT only, else 0 */
    char msg[240]; /* for the log and the terminal; never shown in chat */
};

/* Fill *e and return -1, so that a caller can write: return err_set(e, ...); */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...) printf_like(3, 4);
/* The same for a failed system call: sys is errno, and its words are added. */
int err_sys(struct err *e, enum err_kind kind, int sys, const char *fmt, ...) printf_like(4, 5);
/* Put "context: " in front of the message already there; returns -1. */
int err_wrap(struct err *e, const char *fmt, ...) printf_like(2, 3);
/* True for kinds that a later attempt can cure. */
bool err_retryable(const struct err *e);
/* "net", "config", ...: for logs. */
const char *err_kind_name(enum err_kind kind);
#endif
