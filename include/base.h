/* base.h - attributes, cleanup, allocation. Floor 0: includes nothing of ours. */
#ifndef BASE_H
#define BASE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define must_check        __attribute__((warn_unused_result))
#define printf_like(f, a) __attribute__((format(printf, f, a)))
#define countof(a)        (sizeof(a) / sizeof((a)[0]))

/* Run <type>_clear/_free when the variable leaves scope. A function that has such variables has no goto. */
#define autofree  __attribute__((cleanup(autofree_)))
#define autoclose __attribute__((cleanup(autoclose_)))
#define AUTO(fn)  __attribute__((cleanup(fn)))

static inline void autofree_(const void *pp)
{
    void *p; /* copied, not dereferenced: char ** must not be read through void ** */
    memcpy(&p, pp, sizeof(p));
    free(p);
}

static inline void autoclose_(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

/* Move a pointer out of a variable, leaving NULL behind. */
static inline void *take_(void *pp)
{
    void *p, *none = NULL;
    memcpy(&p, pp, sizeof(p));
    memcpy(pp, &none, sizeof(none));
    return p;
}
#define take(var) ((__typeof__(var))take_(&(var)))

/* Allocate or abort(); a size that a peer can influence must have been capped first. */
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
/* Grow an array to hold n elements of size bytes, new ones zeroed; *cap counts elements and only grows. */
void *xgrow(void *array, size_t *cap, size_t n, size_t size) must_check __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull, nonnull));
char *xstrdup_or_null(const char *s); /* NULL stays NULL */
char *xstrndup(const char *s, size_t n) __attribute__((malloc, returns_nonnull, nonnull));
char *xasprintf(const char *fmt, ...) __attribute__((malloc, returns_nonnull)) printf_like(1, 2);

/* Write all n bytes, whatever signals, short writes and full pipes come; blocks. 0, or -1 with errno. */
int write_all(int fd, const void *data, size_t n) must_check;
/* Milliseconds of CLOCK_REALTIME (Unix time) and of CLOCK_BOOTTIME. */
int64_t time_unix_ms(void);
int64_t time_mono_ms(void);
#endif
