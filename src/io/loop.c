/* loop.c - epoll with generations, a timer heap, a deferred queue, children by pidfd, signals by signalfd.
 *
 * A round: wait no longer than the next timer; call descriptors; call the timers that were due when the round began and
 * existed before the first of them ran, so that a timer that re-arms itself with 0 ms never starves a descriptor. After every callback
 * the calls deferred until then run, once each.
 *
 * Epoll carries {generation, fd}. Stopping or replacing a source bumps the generation, so an event of the same batch that
 * was meant for the earlier owner of the number is recognised and dropped. */
#include "loop.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

#include "log.h"

enum {
    BATCH = 64,
    LAG_WARN_US = 250000,
    WAIT_MAX_MS = 30000, /* epoll sleeps on CLOCK_MONOTONIC: a suspended machine looks at its timers again by then */
    SIGNAL_N = 65,
};

struct io {
    loop_io_fn *fn; /* NULL: nobody watches this number */
    void *ud;
    uint32_t events, gen;
    bool always; /* a regular file: epoll refuses those, and they never block */
};

struct timer {
    int64_t due_ms;
    uint64_t seq; /* equal times fire in the order they were set */
    loop_fn *fn;
    void *ud;
    size_t at; /* in the heap */
    uint32_t gen;
};

struct deferred {
    loop_fn *fn;
    void *ud;
};

struct child {
    struct loop *l;
    struct child *next;
    pid_t pid;
    int fd;
    loop_child_fn *fn; /* NULL: only to be reaped */
    void *ud;
};

struct loop {
    int epoll_fd, signal_fd;
    loop_clock_fn *clock;
    void *clock_ud;
    bool stopped;
    pthread_t thread;
    int64_t lag_us;

    struct io *io; /* by descriptor */
    size_t io_cap, io_n, always_n;

    struct timer *timer; /* pool; ids are {generation, index} */
    size_t *heap, *spare;
    size_t timer_cap, timer_n, timer_used, heap_cap, spare_cap, spare_n;
    uint64_t seq;

    struct deferred *deferred;
    size_t deferred_cap, deferred_n;

    struct child *children;
    size_t silent_n; /* children without a callback */

    sigset_t signals;
    struct {
        loop_signal_fn *fn;
        void *ud;
    } on_signal[SIGNAL_N];
};

static int64_t real_clock(void *ud)
{
    (void)ud;
    return time_mono_ms();
}

static int64_t now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int loop_new(struct loop **out, loop_clock_fn *clock, void *ud, struct err *e)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return err_sys(e, ERR_SANDBOX, errno, "epoll_create1");
    struct loop *l = xcalloc(1, sizeof *l);
    l->epoll_fd = fd;
    l->signal_fd = -1;
    l->clock = clock ? clock : real_clock;
    l->clock_ud = ud;
    l->thread = pthread_self();
    (void)sigemptyset(&l->signals);
    *out = l;
    return 0;
}

void loop_stop(struct loop *l)
{
    l->stopped = true;
}

int64_t loop_now_ms(const struct loop *l)
{
    return l->clock(l->clock_ud);
}

int64_t loop_lag_us(struct loop *l)
{
    int64_t lag = l->lag_us;
    l->lag_us = 0;
    return lag;
}

static void own_thread(const struct loop *l)
{
    assert(pthread_equal(l->thread, pthread_self()));
    (void)l;
}

/* ---- descriptors ---- */

static bool poll_ctl(struct loop *l, int fd, int op)
{
    const struct io *s = &l->io[fd];
    struct epoll_event ev = { .events = s->events, .data.u64 = (uint64_t)s->gen << 32 | (uint32_t)fd };
    return epoll_ctl(l->epoll_fd, op, fd, &ev) == 0;
}

static void poll_set(struct loop *l, int fd, int op)
{
    struct io *s = &l->io[fd];
    if (poll_ctl(l, fd, op))
        return;
    /* curl may close a socket and open another under the same number without telling us. */
    if (op == EPOLL_CTL_MOD && errno == ENOENT) {
        s->gen++;
        if (poll_ctl(l, fd, EPOLL_CTL_ADD))
            return;
    } else if (op == EPOLL_CTL_ADD && errno == EEXIST) {
        if (poll_ctl(l, fd, EPOLL_CTL_MOD))
            return;
    } else if (op == EPOLL_CTL_ADD && errno == EPERM) {
        s->always = true;
        l->always_n++;
        return;
    }
    struct err e = { 0 };
    (void)err_sys(&e, ERR_SANDBOX, errno, "epoll_ctl %d on %d", op, fd);
    log_error("loop_broken", KV_E(&e));
    abort();
}

void loop_io(struct loop *l, int fd, uint32_t events, loop_io_fn *fn, void *ud)
{
    own_thread(l);
    assert(fd >= 0 && fn);
    l->io = xgrow(l->io, &l->io_cap, (size_t)fd + 1, sizeof *l->io);
    struct io *s = &l->io[fd];
    bool fresh = !s->fn;
    if (fresh) {
        s->gen++;
        l->io_n++;
    }
    s->fn = fn;
    s->ud = ud;
    s->events = events;
    if (!s->always) /* MOD even when nothing changed: it is what finds a number that was swapped */
        poll_set(l, fd, fresh ? EPOLL_CTL_ADD : EPOLL_CTL_MOD);
}

void loop_io_stop(struct loop *l, int fd)
{
    own_thread(l);
    if (fd < 0 || (size_t)fd >= l->io_cap || !l->io[fd].fn)
        return;
    struct io *s = &l->io[fd];
    if (s->always)
        l->always_n--;
    else if (epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL) < 0)
        assert(errno == EBADF || errno == ENOENT);
    *s = (struct io){ .gen = s->gen + 1 };
    l->io_n--;
}

/* ---- running callbacks ---- */

static void took(struct loop *l, int64_t from_us, const char *source)
{
    int64_t us = now_us() - from_us;
    if (us > l->lag_us)
        l->lag_us = us;
    if (us >= LAG_WARN_US)
        log_warn("loop_lag", KV_S("source", source), KV_I("took_ms", us / 1000));
}

static void deferred_remove(struct loop *l, size_t at)
{
    l->deferred_n--;
    for (size_t i = at; i < l->deferred_n; i++)
        l->deferred[i] = l->deferred[i + 1];
}

/* As many as are here now: one that defers itself again waits for the next round, not in this one. */
static void run_deferred(struct loop *l)
{
    for (size_t n = l->deferred_n; n && l->deferred_n; n--) {
        const struct deferred d = l->deferred[0];
        deferred_remove(l, 0);
        int64_t from = now_us();
        d.fn(d.ud);
        took(l, from, "deferred");
    }
}

void loop_defer(struct loop *l, loop_fn *fn, void *ud)
{
    own_thread(l);
    l->deferred = xgrow(l->deferred, &l->deferred_cap, l->deferred_n + 1, sizeof *l->deferred);
    l->deferred[l->deferred_n++] = (struct deferred){ fn, ud };
}

void loop_defer_cancel(struct loop *l, loop_fn *fn, void *ud)
{
    own_thread(l);
    for (size_t i = l->deferred_n; i-- > 0;)
        if (l->deferred[i].fn == fn && l->deferred[i].ud == ud)
            deferred_remove(l, i);
}

static void run_io(struct loop *l, int fd, uint32_t gen, uint32_t events)
{
    const struct io s = l->io[fd];
    events &= s.events | EPOLLHUP | EPOLLERR;
    if (!s.fn || s.gen != gen || !events)
        return;
    int64_t from = now_us();
    s.fn(s.ud, fd, events);
    took(l, from, "io");
    run_deferred(l);
}

static void run_always(struct loop *l)
{
    for (size_t fd = 0; l->always_n && fd < l->io_cap; fd++)
        if (l->io[fd].always)
            run_io(l, (int)fd, l->io[fd].gen, EPOLLIN | EPOLLOUT);
}

/* ---- timers: a binary heap of indexes into a pool ---- */

static bool sooner(const struct loop *l, size_t a, size_t b)
{
    const struct timer *x = &l->timer[a], *y = &l->timer[b];
    return x->due_ms != y->due_ms ? x->due_ms < y->due_ms : x->seq < y->seq;
}

static void heap_put(struct loop *l, size_t at, size_t t)
{
    l->heap[at] = t;
    l->timer[t].at = at;
}

static void heap_up(struct loop *l, size_t at)
{
    size_t t = l->heap[at];
    for (; at > 0 && sooner(l, t, l->heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap_put(l, at, l->heap[(at - 1) / 2]);
    heap_put(l, at, t);
}

static void heap_down(struct loop *l, size_t at)
{
    size_t t = l->heap[at];
    for (size_t kid; (kid = 2 * at + 1) < l->timer_n; at = kid) {
        if (kid + 1 < l->timer_n && sooner(l, l->heap[kid + 1], l->heap[kid]))
            kid++;
        if (!sooner(l, l->heap[kid], t))
            break;
        heap_put(l, at, l->heap[kid]);
    }
    heap_put(l, at, t);
}

loop_timer loop_after(struct loop *l, int64_t ms, loop_fn *fn, void *ud)
{
    own_thread(l);
    size_t t = l->spare_n ? l->spare[--l->spare_n] : l->timer_used++;
    l->timer = xgrow(l->timer, &l->timer_cap, l->timer_used, sizeof *l->timer);
    l->heap = xgrow(l->heap, &l->heap_cap, l->timer_used, sizeof *l->heap);
    struct timer *p = &l->timer[t];
    *p = (struct timer){
        .due_ms = loop_now_ms(l) + (ms > 0 ? ms : 0),
        .seq = l->seq++,
        .fn = fn,
        .ud = ud,
        .gen = p->gen + 1,
    };
    heap_put(l, l->timer_n++, t);
    loop_timer id = (uint64_t)p->gen << 32 | t;
    heap_up(l, p->at);
    return id;
}

static void timer_remove(struct loop *l, size_t t)
{
    size_t at = l->timer[t].at, last = l->heap[--l->timer_n];
    if (last != t) {
        heap_put(l, at, last);
        heap_up(l, at);
        heap_down(l, l->timer[last].at);
    }
    l->timer[t].fn = NULL;
    l->spare = xgrow(l->spare, &l->spare_cap, l->spare_n + 1, sizeof *l->spare);
    l->spare[l->spare_n++] = t;
}

void loop_cancel(struct loop *l, loop_timer id)
{
    own_thread(l);
    size_t t = (size_t)(uint32_t)id;
    if (id && t < l->timer_used && l->timer[t].fn && l->timer[t].gen == (uint32_t)(id >> 32))
        timer_remove(l, t);
}

static void run_timers(struct loop *l)
{
    const uint64_t born_before = l->seq;
    const int64_t now = loop_now_ms(l);
    while (l->timer_n && !l->stopped) {
        struct timer t = l->timer[l->heap[0]];
        if (t.due_ms > now || t.seq >= born_before)
            break;
        timer_remove(l, l->heap[0]);
        int64_t from = now_us();
        t.fn(t.ud);
        took(l, from, "timer");
        run_deferred(l);
    }
}

/* ---- children ---- */

static int wait_status(const siginfo_t *si)
{
    if (si->si_code == CLD_EXITED)
        return (si->si_status & 0xff) << 8;
    return (si->si_status & 0x7f) | (si->si_code == CLD_DUMPED ? 0x80 : 0);
}

static void child_unlink(const struct child *c)
{
    struct child **p = &c->l->children;
    while (*p != c)
        p = &(*p)->next;
    *p = c->next;
}

static void on_child(void *ud, int fd, uint32_t events)
{
    (void)events;
    struct child *c = ud;
    siginfo_t si = { 0 };
    int rc = waitid(P_PIDFD, (id_t)fd, &si, WEXITED | WNOHANG);
    if (rc == 0 && si.si_pid == 0)
        return;
    loop_io_stop(c->l, fd);
    (void)close(fd);
    child_unlink(c);
    const struct child gone = *c;
    free(c);
    if (gone.fn)
        gone.fn(gone.ud, gone.pid, rc == 0 ? wait_status(&si) : SIGKILL);
    else
        gone.l->silent_n--;
}

int loop_child(struct loop *l, pid_t pid, loop_child_fn *fn, void *ud, struct err *e)
{
    int fd = pidfd_open(pid, 0);
    if (fd < 0)
        return err_sys(e, ERR_SANDBOX, errno, "pidfd_open %d", (int)pid);
    struct child *c = xcalloc(1, sizeof *c);
    *c = (struct child){ .l = l, .next = l->children, .pid = pid, .fd = fd, .fn = fn, .ud = ud };
    l->children = c;
    l->silent_n += !fn;
    loop_io(l, fd, EPOLLIN, on_child, c);
    return 0;
}

void loop_child_stop(struct loop *l, pid_t pid)
{
    for (struct child *c = l->children; c; c = c->next)
        if (c->pid == pid && c->fn) {
            c->fn = NULL;
            l->silent_n++;
        }
}

/* ---- signals ---- */

static void on_signal_fd(void *ud, int fd, uint32_t events)
{
    (void)events;
    struct loop *l = ud;
    struct signalfd_siginfo si;
    while (read(fd, &si, sizeof si) == (ssize_t)sizeof si)
        if (si.ssi_signo < SIGNAL_N && l->on_signal[si.ssi_signo].fn)
            l->on_signal[si.ssi_signo].fn(l->on_signal[si.ssi_signo].ud, (int)si.ssi_signo);
}

int loop_signal(struct loop *l, int signo, loop_signal_fn *fn, void *ud, struct err *e)
{
    assert(signo > 0 && signo < SIGNAL_N && fn);
    sigset_t want = l->signals;
    (void)sigaddset(&want, signo);
    int rc = pthread_sigmask(SIG_BLOCK, &want, NULL);
    if (rc != 0)
        return err_sys(e, ERR_SANDBOX, rc, "blocking signal %d", signo);
    int fd = signalfd(l->signal_fd, &want, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return err_sys(e, ERR_SANDBOX, errno, "signalfd");
    l->signals = want;
    l->on_signal[signo].fn = fn;
    l->on_signal[signo].ud = ud;
    if (l->signal_fd < 0) {
        l->signal_fd = fd;
        loop_io(l, fd, EPOLLIN, on_signal_fd, l);
    }
    return 0;
}

static void signals_close(struct loop *l)
{
    loop_io_stop(l, l->signal_fd);
    (void)close(l->signal_fd);
    l->signal_fd = -1;
}

void loop_signal_stop(struct loop *l, int signo)
{
    if (signo <= 0 || signo >= SIGNAL_N || !l->on_signal[signo].fn)
        return;
    l->on_signal[signo].fn = NULL;
    (void)sigdelset(&l->signals, signo);
    if (sigisemptyset(&l->signals))
        signals_close(l);
    else
        (void)signalfd(l->signal_fd, &l->signals, SFD_CLOEXEC | SFD_NONBLOCK);
    sigset_t one;
    (void)sigemptyset(&one);
    (void)sigaddset(&one, signo);
    (void)pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

/* Silent children are left to the parent of this process; what was deferred is mostly free(), so it still runs. */
void loop_free(struct loop *l)
{
    if (!l)
        return;
    for (int round = 0; l->deferred_n && round < 1000; round++)
        run_deferred(l);
    while (l->children) {
        struct child *c = l->children;
        assert(!c->fn);
        loop_io_stop(l, c->fd);
        (void)close(c->fd);
        l->children = c->next;
        free(c);
    }
    for (int s = 1; s < SIGNAL_N; s++)
        loop_signal_stop(l, s);
    assert(l->io_n == 0 && l->timer_n == 0);
    (void)close(l->epoll_fd);
    free(l->io);
    free(l->timer);
    free(l->heap);
    free(l->spare);
    free(l->deferred);
    free(l);
}

/* ---- rounds ---- */

static int wait_ms(const struct loop *l, int64_t max_ms)
{
    if (l->deferred_n || l->always_n || l->stopped)
        return 0;
    int64_t ms = max_ms < WAIT_MAX_MS ? max_ms : WAIT_MAX_MS;
    if (l->timer_n) {
        int64_t left = l->timer[l->heap[0]].due_ms - loop_now_ms(l);
        ms = left < ms ? left : ms;
    }
    return ms > 0 ? (int)ms : 0;
}

int loop_once(struct loop *l, int64_t max_ms, struct err *e)
{
    l->thread = pthread_self();
    struct epoll_event ev[BATCH];
    int n = epoll_wait(l->epoll_fd, ev, BATCH, wait_ms(l, max_ms));
    if (n < 0 && errno != EINTR)
        return err_sys(e, ERR_SANDBOX, errno, "epoll_wait");
    run_deferred(l);
    for (int i = 0; i < n && !l->stopped; i++)
        run_io(l, (int)(uint32_t)ev[i].data.u64, (uint32_t)(ev[i].data.u64 >> 32), ev[i].events);
    run_always(l);
    run_timers(l);
    return 0;
}

static bool idle(const struct loop *l)
{
    size_t ours = l->silent_n + (l->signal_fd >= 0);
    return l->io_n == ours && !l->timer_n && !l->deferred_n;
}

int loop_run(struct loop *l, struct err *e)
{
    while (!l->stopped && !idle(l))
        if (loop_once(l, WAIT_MAX_MS, e) < 0)
            return -1;
    l->stopped = false;
    return 0;
}
