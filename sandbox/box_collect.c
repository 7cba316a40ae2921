/* box_collect.c - see box_collect.h. */
#include "box_collect.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "box_fd.h"
#include "box_proto.h"
#include "str.h"

enum { NR_OPENAT2 = 437, COPY_BYTES = 128 << 10 };

static int open_beneath(int dir_fd, const char *path, int flags)
{
    const struct open_how how = {
        .flags = (unsigned)(flags | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
    };
    return (int)syscall(NR_OPENAT2, dir_fd, path, &how, sizeof how);
}

bool box_collect_works(void)
{
    autoclose int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    autoclose int fd = open_beneath(root, ".", O_PATH);
    return fd >= 0 || errno != ENOSYS;
}

/* ---- listing ---- */

static bool has_control(const char *text)
{
    for (const char *at = text; *at;) {
        uint32_t c = utf8_next(&at);
        if (c < 0x20 || (c >= 0x7f && c < 0xa0))
            return true;
    }
    return false;
}

bool box_name_ok(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n <= BOX_NAME_MAX && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/') &&
           utf8_valid(name, n) && !has_control(name);
}

struct walk {
    struct box_listing *out;
    size_t seen;
};

static void remember(struct box_listing *l, const char *path, const struct stat *st)
{
    l->v = xgrow(l->v, &l->cap, l->n + 1, sizeof *l->v);
    l->v[l->n++] = (struct box_entry){
        .path = xstrdup(path),
        .ino = st->st_ino,
        .bytes = (uint64_t)st->st_size,
        .mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
        .ctime_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec,
    };
}

static void walk_folder(struct walk *w, int take_fd, const char *prefix, int depth);

/* NOLINTNEXTLINE(misc-no-recursion): BOX_DEPTH_MAX ends it */
static void walk_entry(struct walk *w, int fd, const char *prefix, const char *name, int depth)
{
    char path[BOX_PATH_MAX + 1];
    struct stat st;
    int n = snprintf(path, sizeof path, "%s%s", prefix, name);
    if (name[0] == '.' || !box_name_ok(name) || fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (n < 0 || (size_t)n + 1 >= sizeof path) {
        w->out->cut = true;
        return;
    }
    if (S_ISREG(st.st_mode)) {
        remember(w->out, path, &st);
    } else if (S_ISDIR(st.st_mode)) {
        if (depth >= BOX_DEPTH_MAX) {
            w->out->cut = true;
            return;
        }
        path[n] = '/';
        path[n + 1] = '\0';
        int below = open_beneath(fd, name, O_RDONLY | O_DIRECTORY);
        if (below >= 0)
            walk_folder(w, below, path, depth + 1);
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): BOX_DEPTH_MAX ends it */
static void walk_folder(struct walk *w, int take_fd, const char *prefix, int depth)
{
    DIR *d = fdopendir(take_fd);
    if (!d) {
        (void)close(take_fd);
        return;
    }
    for (struct dirent *x = readdir(d); x; x = readdir(d)) { /* NOLINT(concurrency-mt-unsafe): one thread */
        if (strcmp(x->d_name, ".") == 0 || strcmp(x->d_name, "..") == 0)
            continue;
        if (w->seen++ >= BOX_ENTRIES_MAX) {
            w->out->cut = true;
            break;
        }
        walk_entry(w, take_fd, prefix, x->d_name, depth);
    }
    (void)closedir(d);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct box_entry *)a)->path, ((const struct box_entry *)b)->path);
}

void box_list(struct box_listing *out, int data_fd)
{
    box_listing_clear(out);
    struct walk w = { .out = out };
    int fd = open_beneath(data_fd, ".", O_RDONLY | O_DIRECTORY);
    if (fd >= 0)
        walk_folder(&w, fd, "", 0);
    if (out->n > 0)
        qsort(out->v, out->n, sizeof *out->v, by_path);
}

void box_listing_clear(struct box_listing *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i].path);
    free(l->v);
    *l = (struct box_listing){ 0 };
}

bool box_entry_is_new(const struct box_listing *before, const struct box_entry *x)
{
    const struct box_entry *old = before->n > 0 ? bsearch(x, before->v, before->n, sizeof *x, by_path) : NULL;
    return !old || old->ino != x->ino || old->bytes != x->bytes || old->mtime_ns != x->mtime_ns ||
           old->ctime_ns != x->ctime_ns;
}

int box_entry_open(int data_fd, const char *path, uint64_t *bytes)
{
    struct stat st;
    autoclose int fd = open_beneath(data_fd, path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return -1;
    *bytes = (uint64_t)st.st_size;
    return box_fd_take(&fd);
}

/* ---- putting ---- */

/* The bytes, at most max; 0 or errno. */
static int copy(int from, int to, uint64_t max)
{
    static char buf[COPY_BYTES];
    off_t at = 0;
    for (;;) {
        ssize_t n = pread(from, buf, sizeof buf, at); /* the daemon's own offset stays */
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : 0;
        at += n;
        if ((uint64_t)at > max)
            return EFBIG;
        if (write_all(to, buf, (size_t)n) < 0)
            return errno;
    }
}

/* Until here the process has the keeper's ids; files must be born with the session's. */
static int become(uint32_t host_uid)
{
    if (host_uid == 0)
        return 0;
    return setgroups(0, NULL) < 0 || setresgid(host_uid, host_uid, host_uid) < 0 ||
                   setresuid(host_uid, host_uid, host_uid) < 0
               ? errno
               : 0;
}

int box_put(const struct box_put *p)
{
    static const char temp[] = ".sandbook-put";
    struct stat st;
    if (fstat(p->from_fd, &st) < 0 || !S_ISREG(st.st_mode))
        return EINVAL;
    int r = become(p->host_uid);
    if (r != 0)
        return r;
    (void)unlinkat(p->data_fd, temp, 0);
    autoclose int to = openat(p->data_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (to < 0)
        return errno;
    r = copy(p->from_fd, to, p->max_bytes);
    if (r == 0 && renameat(p->data_fd, temp, p->data_fd, p->name) < 0)
        r = errno;
    if (r != 0)
        (void)unlinkat(p->data_fd, temp, 0);
    return r;
}
