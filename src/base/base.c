#include "base.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void *or_abort(void *p)
{
    if (!p)
        abort();
    return p;
}

void *xcalloc(size_t n, size_t size)
{
    return or_abort(calloc(n ? n : 1, size ? size : 1));
}

void *xgrow(void *array, size_t *cap, size_t n, size_t size)
{
    if (array && n <= *cap)
        return array;
    size_t want = *cap < SIZE_MAX / 2 ? *cap * 2 : n;
    if (want < n)
        want = n;
    if (want < 8)
        want = 8;
    size_t bytes;
    if (__builtin_mul_overflow(want, size, &bytes))
        abort();
    char *grown = or_abort(realloc(array, bytes));
    memset(grown + *cap * size, 0, (want - *cap) * size);
    *cap = want;
    return grown;
}

char *xstrdup(const char *s)
{
    return or_abort(strdup(s));
}

char *xstrdup_or_null(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

char *xstrndup(const char *s, size_t n)
{
    return or_abort(strndup(s, n));
}

char *xasprintf(const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    return or_abort(n < 0 ? NULL : text);
}

static int wait_writable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLOUT };
    return poll(&p, 1, -1) < 0 && errno != EINTR ? -1 : 0;
}

int write_all(int fd, const void *data, size_t n)
{
    const char *p = data;
    while (n > 0) {
        ssize_t wrote = write(fd, p, n);
        if (wrote >= 0) {
            p += wrote;
            n -= (size_t)wrote;
        } else if (errno == EAGAIN) {
            if (wait_writable(fd) < 0)
                return -1;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return 0;
}

static int64_t clock_ms(clockid_t clock)
{
    struct timespec t = { 0 };
    if (clock_gettime(clock, &t) < 0)
        abort();
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t time_unix_ms(void)
{
    return clock_ms(CLOCK_REALTIME);
}

int64_t time_mono_ms(void)
{
    return clock_ms(CLOCK_BOOTTIME);
}
