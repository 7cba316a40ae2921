/* box_watch.c - see box_watch.h. */
#include "box_watch.h"
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include "box_limit.h"
#include "log.h"
#include "str.h"

enum {
    TELL_US = 10000, /* between two answers of the helper */
    NR_CLOSE_RANGE = 436,
    SEEN_MAX = 8192, /* nameless files of one round; a power of two */
    SEEN_FULL = SEEN_MAX / 4 * 3,
    ROLLUP_MAX = 4096,
    BLOCK = 512, /* of st_blocks */
    TELL_AGAIN_MS = 60000,
};

struct box_watch {
    int pidfd, fd;
    int64_t bytes; /* of the newest answer */
};

struct question {
    pid_t init;
    int64_t inherited;
};

/* ---- in the helper ---- */

struct look {
    pid_t next;         /* where the round goes on; 0: at its start */
    int64_t last_bytes; /* of the last whole round */
    int64_t inherited;
    int64_t mapped_bytes; /* of this one: all shares; of these, what is shared memory or files in memory */
    int64_t mapped_shared_bytes;
    int64_t nameless_bytes;
    uint32_t seen_n;
    ino_t seen[SEEN_MAX]; /* 0: free */
};

static int64_t now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t total(const struct look *w)
{
    int64_t unmapped = w->nameless_bytes - w->mapped_shared_bytes;
    return w->mapped_bytes + (unmapped > 0 ? unmapped : 0);
}

/* "Name:   12 kB" in bytes. */
static int64_t kib(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoll(at + strlen(name), NULL, 10) * 1024 : 0;
}

struct share {
    int64_t anon, shared, own; /* proportional: written to, shared memory; own: what no other process has */
};

static bool share_of(struct share *s, const char *pid)
{
    struct err e;
    char path[64];
    AUTO(str_clear) struct str text = STR_INIT(ROLLUP_MAX);
    (void)snprintf(path, sizeof path, "/proc/%.20s/smaps_rollup", pid);
    if (str_read_file(&text, path, &e) < 0) /* it is gone */
        return false;
    const char *at = str_peek(&text);
    s->anon = kib(at, strstr(at, "\nPss_Anon:") ? "\nPss_Anon:" : "\nPss:");
    s->shared = kib(at, "\nPss_Shmem:");
    s->own = kib(at, "\nPrivate_Dirty:");
    return true;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* False: there is no memory to be seen there. */
static bool add_mapped(struct look *w, const char *pid)
{
    struct share s;
    if (!share_of(&s, pid))
        return false;
    w->mapped_bytes += most(s.anon + s.shared - w->inherited, s.own);
    w->mapped_shared_bytes += s.shared;
    return true;
}

int64_t box_watch_inherited(int pidfd)
{
    struct err e;
    struct share s;
    char path[64];
    AUTO(str_clear) struct str text = STR_INIT(ROLLUP_MAX);
    (void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    const char *pid = str_read_file(&text, path, &e) < 0 ? NULL : strstr(str_peek(&text), "\nPid:\t");
    const long number = pid ? strtol(pid + strlen("\nPid:\t"), NULL, 10) : 0;
    (void)snprintf(path, sizeof path, "%ld", number);
    return number > 0 && share_of(&s, path) ? most(s.anon - s.own, 0) : 0;
}

/* True the first time. Numbers of files on two devices may meet: then one of the two is not counted. */
static bool is_new(struct look *w, ino_t number)
{
    size_t at = (size_t)(number * 0x9e3779b97f4a7c15U >> 40) % SEEN_MAX;
    if (w->seen_n >= SEEN_FULL)
        return false;
    while (w->seen[at] != 0 && w->seen[at] != number)
        at = (at + 1) % SEEN_MAX;
    if (w->seen[at] == number)
        return false;
    w->seen[at] = number;
    w->seen_n++;
    return true;
}

static void add_nameless(struct look *w, const char *pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    DIR *d = opendir(path);
    if (!d)
        return;
    for (struct dirent *x = readdir(d); x; x = readdir(d)) { /* NOLINT(concurrency-mt-unsafe): one thread */
        struct stat st;
        /* Follows what the descriptor is of, and opens nothing. */
        if (x->d_name[0] != '.' && fstatat(dirfd(d), x->d_name, &st, 0) == 0 && S_ISREG(st.st_mode) &&
            st.st_nlink == 0 && is_new(w, st.st_ino))
            w->nameless_bytes += (int64_t)st.st_blocks * BLOCK;
    }
    (void)closedir(d);
}

/* Memory and descriptors show at any thread of a process, but not at one that has ended, as its first may have. */
static void add_process(struct look *w, const char *pid)
{
    char path[64];
    if (add_mapped(w, pid)) {
        add_nameless(w, pid);
        return;
    }
    (void)snprintf(path, sizeof path, "/proc/%.20s/task", pid);
    DIR *d = opendir(path);
    bool seen = !d;
    for (struct dirent *x = NULL; !seen && (x = readdir(d));) { /* NOLINT(concurrency-mt-unsafe): one thread */
        seen = x->d_name[0] != '.' && add_mapped(w, x->d_name);
        if (seen)
            add_nameless(w, x->d_name);
    }
    if (d)
        (void)closedir(d);
}

static void begin_round(struct look *w, int64_t inherited)
{
    *w = (struct look){ .last_bytes = w->last_bytes, .inherited = inherited };
}

/* Processes of the box from w->next on, until time is up. False: that was all. */
static bool walk(struct look *w, DIR *d, pid_t init, int64_t until_us)
{
    for (struct dirent *x = readdir(d); x; x = readdir(d)) { /* NOLINT(concurrency-mt-unsafe): one thread */
        pid_t pid = (pid_t)strtol(x->d_name, NULL, 10);      /* in order, as the kernel lists them */
        if (pid <= 0 || pid < w->next || !box_limit_is_member(init, pid))
            continue;
        add_process(w, x->d_name);
        w->next = pid + 1;
        if (now_us() >= until_us)
            return true;
    }
    return false;
}

/* -> bytes: of the last whole round, or what the present one has found already, if that is more. */
static int64_t look_on(struct look *w, const struct question *q)
{
    if (w->next == 0)
        begin_round(w, q->inherited);
    DIR *d = opendir("/proc");
    bool more = d && walk(w, d, q->init, now_us() + TELL_US);
    if (d)
        (void)closedir(d);
    int64_t found = total(w);
    if (!more) {
        w->next = 0;
        w->last_bytes = found;
    }
    return found > w->last_bytes ? found : w->last_bytes;
}

/* The newest; what was asked while it looked is answered with it. */
static bool next_question(int fd, struct question *q)
{
    bool asked = recv(fd, q, sizeof *q, 0) == (ssize_t)sizeof *q;
    while (asked && recv(fd, q, sizeof *q, MSG_DONTWAIT) == (ssize_t)sizeof *q)
        ;
    return asked;
}

/* It has the keeper's rights and none of its descriptors. */
static _Noreturn void helper(int fd)
{
    static struct look look;
    struct question q;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)prctl(PR_SET_NAME, "box-watch", 0, 0, 0);
    if (dup2(fd, 0) < 0 || syscall(NR_CLOSE_RANGE, 1, ~0U, 0) < 0)
        _exit(1);
    while (next_question(0, &q)) {
        do {
            const int64_t found = look_on(&look, &q);
            if (send(0, &found, sizeof found, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
                _exit(0);
        } while (look.next != 0);
    }
    _exit(0);
}

/* ---- in the keeper ---- */

int64_t box_failures_add(struct box_failures *f, int64_t now_ms)
{
    f->n++;
    if (f->told_ms > 0 && now_ms < f->told_ms + TELL_AGAIN_MS)
        return 0;
    const int64_t n = f->n;
    *f = (struct box_failures){ .told_ms = now_ms };
    return n;
}

/* There is no helper, for this reason; the next look tries again. */
static void not_started(int error)
{
    static struct box_failures failures;
    const int64_t times = box_failures_add(&failures, time_mono_ms());
    if (times > 0)
        log_warn("box_watch", KV_I("errno", error), KV_I("times", times));
}

static struct box_watch *start(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
        not_started(errno);
        return NULL;
    }
    pid_t pid = fork();
    if (pid == 0)
        helper(pair[1]);
    (void)close(pair[1]);
    struct box_watch *w = xcalloc(1, sizeof *w);
    *w = (struct box_watch){ .pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1, .fd = pair[0] };
    if (w->pidfd >= 0)
        return w;
    not_started(errno);
    box_watch_free(&w); /* its end of the line is gone: a helper without a name ends, too */
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    return NULL;
}

int64_t box_watch_look(struct box_watch **watch, pid_t init, int64_t inherited, int patience_ms)
{
    const struct question q = { .init = init, .inherited = inherited };
    if (!*watch)
        *watch = start();
    struct box_watch *w = *watch;
    if (!w)
        return 0;
    struct pollfd p = { .fd = w->fd, .events = POLLIN };
    (void)send(w->fd, &q, sizeof q, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)poll(&p, 1, patience_ms);
    ssize_t n = 0;
    for (int64_t bytes = 0; (n = recv(w->fd, &bytes, sizeof bytes, MSG_DONTWAIT)) == (ssize_t)sizeof bytes;)
        w->bytes = bytes;
    int64_t bytes = w->bytes;
    if (n == 0) /* it ended: another, next time */
        box_watch_free(watch);
    return bytes;
}

void box_watch_free(struct box_watch **watch)
{
    struct box_watch *w = take(*watch);
    if (!w)
        return;
    siginfo_t end;
    box_limit_signal(w->pidfd, SIGKILL);
    (void)close(w->fd);
    if (w->pidfd >= 0) {
        (void)waitid(P_PIDFD, (id_t)w->pidfd, &end, WEXITED);
        (void)close(w->pidfd);
    }
    free(w);
}
