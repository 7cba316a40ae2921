/* box_watch.c - see box_watch.h. */
#include "box_watch.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "box_limit.h"
#include "str.h"

enum {
    SEEN_MAX = 8192, /* nameless files of one round; a power of two */
    SEEN_FULL = SEEN_MAX / 4 * 3,
    ROLLUP_MAX = 4096,
    BLOCK = 512, /* of st_blocks */
};

struct box_watch {
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

static int64_t total(const struct box_watch *w)
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

static void add_mapped(struct box_watch *w, const char *pid)
{
    struct share s;
    if (!share_of(&s, pid))
        return;
    w->mapped_bytes += most(s.anon + s.shared - w->inherited, s.own);
    w->mapped_shared_bytes += s.shared;
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
static bool is_new(struct box_watch *w, ino_t number)
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

static void add_nameless(struct box_watch *w, const char *pid)
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

static void begin_round(struct box_watch *w, int64_t inherited)
{
    *w = (struct box_watch){ .last_bytes = w->last_bytes, .inherited = inherited };
}

/* Processes of the box from w->next on, until time is up. False: that was all. */
static bool walk(struct box_watch *w, DIR *d, pid_t init, int64_t until_us)
{
    for (struct dirent *x = readdir(d); x; x = readdir(d)) { /* NOLINT(concurrency-mt-unsafe): one thread */
        pid_t pid = (pid_t)strtol(x->d_name, NULL, 10);      /* in order, as the kernel lists them */
        if (pid <= 0 || pid < w->next || !box_limit_is_member(init, pid))
            continue;
        add_mapped(w, x->d_name);
        add_nameless(w, x->d_name);
        w->next = pid + 1;
        if (now_us() >= until_us)
            return true;
    }
    return false;
}

int64_t box_watch_look(struct box_watch **watch, pid_t init, int64_t inherited, int64_t budget_us)
{
    struct box_watch *w = *watch ? *watch : xcalloc(1, sizeof *w);
    *watch = w;
    if (w->next == 0)
        begin_round(w, inherited);
    DIR *d = init > 0 ? opendir("/proc") : NULL;
    bool more = d && walk(w, d, init, now_us() + budget_us);
    if (d)
        (void)closedir(d);
    int64_t found = total(w);
    if (!more) {
        w->next = 0;
        w->last_bytes = found;
    }
    return found > w->last_bytes ? found : w->last_bytes;
}

void box_watch_free(struct box_watch **w)
{
    free(take(*w));
}
