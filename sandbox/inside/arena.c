/* arena.c - see arena.h. With the interpreter's lock held, always. */
#include "arena.h"
#include <sys/mman.h>
#include "raw.h"

enum {
    LARGE = 2 << 20,
    ROOM = 512 << 20,
    LOWEST_ERROR = 4096,
    POPULATE_WRITE = 23, /* of madvise */
};

struct arenas { /* PyObjectArenaAllocator */
    void *ctx;
    void *(*alloc)(void *ctx, size_t n);
    void (*free)(void *ctx, void *at, size_t n);
};
void PyObject_SetArenaAllocator(const struct arenas *a);

/* One that was given back; it lies in itself. */
struct spare {
    struct spare *next;
    size_t n;
};

static char *room, *next, *end;
static struct spare *spares;
static struct hot {
    struct arena_piece pieces[ARENA_HOT_MAX];
    uint32_t n;
} hot[ARENA_HOT_SETS];

static void *map(size_t n, long more, long *error)
{
    const long got = raw6(__NR_mmap, 0, (long)n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
    *error = got < 0 && got > -LOWEST_ERROR ? got : 0;
    return *error ? NULL : (void *)got; /* NOLINT(performance-no-int-to-ptr): the kernel's word */
}

static char *up(char *at)
{
    return at + (-(uintptr_t)at & (LARGE - 1));
}

static void *take(void *ctx, size_t n)
{
    long error = 0;
    struct spare *s = spares;
    (void)ctx;
    if (s && s->n == n) {
        spares = s->next;
        return s;
    }
    if ((size_t)(end - next) < n)
        return map(n, 0, &error);
    next += n;
    return next - n;
}

/* Its pages go back at once; the place is for the next one. What came from elsewhere goes there again. */
static void give_back(void *ctx, void *at, size_t n)
{
    (void)ctx;
    if ((char *)at < room || (char *)at >= end) {
        (void)raw2(__NR_munmap, at, n);
        return;
    }
    struct spare *s = at;
    (void)raw3(__NR_madvise, at, n, MADV_DONTNEED);
    *s = (struct spare){ spares, n };
    spares = s;
}

int arena_begin(void)
{
    long error = 0;
    room = map((size_t)ROOM + LARGE, MAP_NORESERVE, &error);
    if (!room)
        return (int)error;
    room = next = up(room);
    end = room + ROOM;
    const struct arenas a = { NULL, take, give_back };
    PyObject_SetArenaAllocator(&a);
    return 0;
}

void arena_settle(void)
{
    char *last = up(next);
    if (last < end)
        (void)raw2(__NR_munmap, last, end - last);
    end = last;
}

void arena_know_hot(uint32_t set, const struct arena_piece *pieces, uint32_t n)
{
    struct hot *h = &hot[set];
    for (h->n = 0; h->n < n && h->n < ARENA_HOT_MAX; h->n++)
        h->pieces[h->n] = pieces[h->n];
}

void arena_touch_hot(uint32_t set)
{
    for (uint32_t i = 0; i < hot[set].n; i++)
        (void)raw3(__NR_madvise, hot[set].pieces[i].at, hot[set].pieces[i].n, POPULATE_WRITE);
}
