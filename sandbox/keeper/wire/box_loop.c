/* box_loop.c - see box_loop.h. */
#include "box_loop.h"
#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>

enum { BATCH = 64 };

struct box_source {
    struct box_loop *loop;
    struct box_source *next_dead;
    box_source_fn *fn;
    void *ud;
    int fd;
    uint32_t events; /* 0: not in the epoll set */
    bool dead;
};

struct box_loop {
    int epoll_fd;
    bool stop;
    box_tick_fn *tick;
    void *ud;
    struct box_source *dead; /* freed once the batch is through */
};

int box_loop_new(struct box_loop **out, box_tick_fn *tick, void *ud, struct err *e)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return err_sys(e, ERR_SANDBOX, errno, "epoll");
    struct box_loop *l = xcalloc(1, sizeof *l);
    *l = (struct box_loop){ .epoll_fd = fd, .tick = tick, .ud = ud };
    *out = l;
    return 0;
}

static void bury(struct box_loop *l)
{
    while (l->dead) {
        struct box_source *s = l->dead;
        l->dead = s->next_dead;
        free(s);
    }
}

void box_loop_free(struct box_loop *l)
{
    if (!l)
        return;
    bury(l);
    (void)close(l->epoll_fd);
    free(l);
}

void box_loop_stop(struct box_loop *l)
{
    l->stop = true;
}

struct box_source *box_loop_add(struct box_loop *l, int fd, uint32_t events, box_source_fn *fn, void *ud)
{
    struct box_source *s = xcalloc(1, sizeof *s);
    *s = (struct box_source){ .loop = l, .fn = fn, .ud = ud, .fd = fd };
    box_loop_want(s, events);
    return s;
}

void box_loop_want(struct box_source *s, uint32_t events)
{
    if (s->dead || s->events == events)
        return;
    int op = s->events == 0 ? EPOLL_CTL_ADD : events == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    struct epoll_event ev = { .events = events, .data.ptr = s };
    if (epoll_ctl(s->loop->epoll_fd, op, s->fd, &ev) < 0)
        abort(); /* a descriptor that is not ours to watch: a bug here */
    s->events = events;
}

void box_loop_drop(struct box_source **source)
{
    struct box_source *s = take(*source);
    if (!s)
        return;
    box_loop_want(s, 0);
    s->dead = true;
    s->next_dead = s->loop->dead;
    s->loop->dead = s;
}

static int wait_ms(const struct box_loop *l)
{
    int64_t now = time_mono_ms();
    int64_t next = l->tick(l->ud, now);
    if (next == INT64_MAX)
        return -1;
    int64_t left = next - now;
    return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

int box_loop_run(struct box_loop *l, struct err *e)
{
    struct epoll_event got[BATCH];
    while (!l->stop) {
        int timeout = wait_ms(l);
        bury(l);
        if (l->stop)
            break;
        int n = epoll_wait(l->epoll_fd, got, BATCH, timeout);
        if (n < 0 && errno != EINTR)
            return err_sys(e, ERR_SANDBOX, errno, "epoll_wait");
        for (int i = 0; i < n; i++) {
            struct box_source *s = got[i].data.ptr;
            if (!s->dead)
                s->fn(s->ud, got[i].events);
        }
        bury(l);
    }
    return 0;
}
