#include "err.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "str.h"

static bool is_control(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0);
}

/* A message is one line and goes to terminals, yet it may quote a peer: control characters become blanks. */
static void store(struct err *e, const char *text)
{
    static const char more[] = "...";
    size_t n = strlen(text);
    bool cut = n >= sizeof(e->msg);
    if (cut)
        n = utf8_cut(text, n, sizeof(e->msg) - sizeof(more));
    for (size_t at = 0, len; at < n; at += len) {
        uint32_t cp = 0;
        len = utf8_decode(text + at, n - at, &cp);
        bool control = len > 0 && is_control(cp);
        len = len ? len : 1;
        memcpy(e->msg + at, control ? "  " : text + at, len);
    }
    memcpy(e->msg + n, cut ? more : "", cut ? sizeof(more) : 1);
}

/* Longer than a message, so that store() sees whether something was lost. */
enum { LONG_MSG = 2 * sizeof(((struct err *)0)->msg) + 64 };

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    char text[LONG_MSG];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    *e = (struct err){ .kind = kind };
    store(e, text);
    return -1;
}

int err_sys(struct err *e, enum err_kind kind, int sys, const char *fmt, ...)
{
    char what[sizeof(e->msg)], text[LONG_MSG];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    const char *words = strerrordesc_np(sys); /* unlike strerror(): no locale, no shared buffer */
    if (words)
        (void)snprintf(text, sizeof(text), "%s: %s", what, words);
    else
        (void)snprintf(text, sizeof(text), "%s: error %d", what, sys);
    *e = (struct err){ .kind = kind, .sys = sys };
    store(e, text);
    return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    char context[sizeof(e->msg)], text[LONG_MSG];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(context, sizeof(context), fmt, ap);
    va_end(ap);
    (void)snprintf(text, sizeof(text), "%s: %s", context, e->msg);
    store(e, text);
    return -1;
}

bool err_retryable(const struct err *e)
{
    return e->kind == ERR_NET || e->kind == ERR_LIMIT || e->kind == ERR_TIMEOUT;
}

const char *err_kind_name(enum err_kind kind)
{
    switch (kind) {
    case ERR_NONE: return "none";
    case ERR_CONFIG: return "config";
    case ERR_NET: return "net";
    case ERR_LIMIT: return "limit";
    case ERR_REFUSED: return "refused";
    case ERR_TIMEOUT: return "timeout";
    case ERR_DATA: return "data";
    case ERR_SANDBOX: return "sandbox";
    case ERR_STORE: return "store";
    }
    return "unknown";
}
