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
#include <sys/xattr.h>
#include "box_proto.h"
#include "str.h"
#include "wire/box_fd.h"

enum {
    NR_OPENAT2 = 437,
    COPY_BYTES = 128 << 10,
    BOX_SHOWN_MAX = 200, /* of a path that is refused */
};

static int open_beneath(int dir_fd, const char *path, int flags)
{
    const int waits_for_nobody = flags & O_PATH ? 0 : O_NOCTTY | O_NONBLOCK; /* O_PATH takes no others beside it */
    const struct open_how how = {
        .flags = (unsigned)(flags | waits_for_nobody | O_NOFOLLOW | O_CLOEXEC),
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

/* Fit to be shown: what is refused often has a name that is not. */
static void show(char path[BOX_PATH_MAX + 1], const char *prefix, const char *name)
{
    AUTO(str_clear) struct str text = STR_INIT((size_t)BOX_PATH_MAX * 4);
    utf8_scrub(&text, name, strlen(name));
    for (char *at = text.buf; at && *at; at++)
        if (*at == '\n' || *at == '\t')
            *at = ' ';
    AUTO(str_clear) struct str all = STR_INIT((size_t)BOX_PATH_MAX * 5);
    str_printf(&all, "%s%s", prefix, str_peek(&text));
    (void)snprintf(path, BOX_PATH_MAX + 1, "%.*s", (int)utf8_cut(str_peek(&all), all.len, BOX_SHOWN_MAX),
                   str_peek(&all));
}

static const char *name_fault(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '/'))
        return "it has no name";
    if (n > BOX_NAME_MAX)
        return "its name is longer than 255 bytes";
    if (!utf8_valid(name, n))
        return "its name is not valid UTF-8";
    return has_control(name) ? "its name has control characters" : NULL;
}

bool box_name_ok(const char *name)
{
    return name_fault(name) == NULL;
}

static enum box_kind kind_of(const struct box_seen *x, unsigned flags)
{
    if (x->name[0] == '.' && !(flags & BOX_LIST_HIDDEN) && !S_ISCHR(x->mode))
        return BOX_IS_NOTHING;
    if (S_ISREG(x->mode))
        return BOX_IS_FILE;
    if (S_ISDIR(x->mode))
        return BOX_IS_FOLDER;
    return S_ISCHR(x->mode) && x->device == 0 && (flags & BOX_LIST_UPPER) ? BOX_IS_GONE : BOX_IS_NOTHING;
}

enum box_kind box_judge(const struct box_seen *x, unsigned flags, char path[BOX_PATH_MAX + 1], const char **why)
{
    enum box_kind kind = kind_of(x, flags);
    if (kind == BOX_IS_NOTHING)
        return kind;
    *why = name_fault(x->name);
    if (!*why && strlen(x->prefix) + strlen(x->name) > BOX_PATH_MAX - 1)
        *why = "its path is longer than 1,024 bytes";
    if (!*why && kind == BOX_IS_FOLDER && x->depth >= BOX_DEPTH_MAX)
        *why = "it lies deeper than 16 folders";
    if (*why && kind == BOX_IS_GONE) { /* what can't be kept can't be missed */
        *why = NULL;
        return BOX_IS_NOTHING;
    }
    if (*why) {
        show(path, x->prefix, x->name);
        return BOX_IS_REFUSED;
    }
    size_t n = strlen(x->prefix);
    memcpy(path, x->prefix, n);
    memcpy(path + n, x->name, strlen(x->name) + 1);
    return kind;
}

struct walk {
    struct box_listing *out;
    unsigned flags;
    size_t seen;
};

void box_listing_add(struct box_listing *l, const struct box_entry *x)
{
    l->v = xgrow(l->v, &l->cap, l->n + 1, sizeof *l->v);
    l->v[l->n] = *x;
    l->v[l->n++].path = xstrdup(x->path);
}

/* Wraps: a box may give its files any time there is, and only whether it has changed matters. */
static int64_t ns_of(struct timespec t)
{
    return (int64_t)((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec);
}

static struct box_entry entry_of(char *path, enum box_kind kind, const char *why, const struct stat *st)
{
    return (struct box_entry){
        .path = path,
        .kind = kind,
        .why = why,
        .ino = st->st_ino,
        .bytes = (uint64_t)st->st_size,
        .mtime_ns = ns_of(st->st_mtim),
        .ctime_ns = ns_of(st->st_ctim),
    };
}

static void remember(struct walk *w, char *path, enum box_kind kind, const char *why, const struct stat *st)
{
    const struct box_entry x = entry_of(path, kind, why, st);
    box_listing_add(w->out, &x);
}

/* A folder that was made where one of lower's had been removed: nothing of that one is seen. */
static bool is_opaque(int fd)
{
    char mark[2] = "";
    return fgetxattr(fd, "user.overlay.opaque", mark, sizeof mark) == 1 && mark[0] == 'y';
}

static void walk_folder(struct walk *w, int take_fd, const char *prefix, int depth);

/* NOLINTNEXTLINE(misc-no-recursion): BOX_DEPTH_MAX ends it */
static void walk_below(struct walk *w, int fd, const char *name, char path[BOX_PATH_MAX + 1], const struct stat *st,
                       int depth)
{
    int below = open_beneath(fd, name, O_RDONLY | O_DIRECTORY);
    if (below < 0) { /* what is in there nobody knows */
        w->out->cut = true;
        return;
    }
    if ((w->flags & BOX_LIST_UPPER) && is_opaque(below))
        remember(w, path, BOX_IS_GONE, NULL, st);
    size_t n = strlen(path);
    path[n] = '/';
    path[n + 1] = '\0';
    walk_folder(w, below, path, depth + 1);
}

/* NOLINTNEXTLINE(misc-no-recursion): BOX_DEPTH_MAX ends it */
static void walk_entry(struct walk *w, int fd, const char *prefix, const char *name, int depth)
{
    char path[BOX_PATH_MAX + 1];
    const char *why = NULL;
    struct stat st;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    const struct box_seen x = { prefix, name, depth, st.st_mode, st.st_rdev };
    enum box_kind kind = box_judge(&x, w->flags, path, &why);
    if (kind == BOX_IS_FOLDER)
        walk_below(w, fd, name, path, &st, depth);
    else if (kind != BOX_IS_NOTHING)
        remember(w, path, kind, why, &st);
}

/* NOLINTNEXTLINE(misc-no-recursion): BOX_DEPTH_MAX ends it */
static void walk_folder(struct walk *w, int take_fd, const char *prefix, int depth)
{
    DIR *d = fdopendir(take_fd);
    if (!d) {
        (void)close(take_fd);
        w->out->cut = true;
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
    const struct box_entry *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order ? order : (int)x->kind - (int)y->kind;
}

void box_listing_sort(struct box_listing *l)
{
    if (l->n > 0)
        qsort(l->v, l->n, sizeof *l->v, by_path);
}

void box_list(struct box_listing *out, int data_fd, unsigned flags)
{
    box_listing_clear(out);
    struct walk w = { .out = out, .flags = flags };
    int fd = open_beneath(data_fd, ".", O_RDONLY | O_DIRECTORY);
    if (fd >= 0)
        walk_folder(&w, fd, "", 0);
    else
        out->cut = true;
    box_listing_sort(out);
}

void box_listing_clear(struct box_listing *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->v[i].path);
    free(l->v);
    *l = (struct box_listing){ 0 };
}

static struct box_entry *find(const struct box_listing *l, const char *path, enum box_kind kind)
{
    char *name;
    memcpy(&name, &path, sizeof path); /* bsearch only reads it */
    const struct box_entry key = { .path = name, .kind = kind };
    return l->n > 0 ? bsearch(&key, l->v, l->n, sizeof key, by_path) : NULL;
}

void box_listing_know(struct box_listing *l, int data_fd, const char *path)
{
    struct stat st;
    autoclose int fd = open_beneath(data_fd, path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    autofree char *name = xstrdup(path);
    struct box_entry x = entry_of(name, BOX_IS_FILE, NULL, &st), *old = find(l, path, BOX_IS_FILE);
    if (old) {
        x.path = old->path;
        *old = x;
        return;
    }
    box_listing_add(l, &x);
    box_listing_sort(l);
}

static void forget(struct box_listing *l, struct box_entry *x)
{
    free(x->path);
    memmove(x, x + 1, (size_t)(l->v + l->n - (x + 1)) * sizeof *x);
    l->n--;
}

void box_listing_miss(struct box_listing *l, int data_fd, const char *path)
{
    struct stat st;
    struct box_entry *old = find(l, path, BOX_IS_FILE);
    if (old)
        forget(l, old);
    autoclose int fd = open_beneath(data_fd, path, O_PATH);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode) || st.st_rdev != 0 || find(l, path, BOX_IS_GONE))
        return;
    autofree char *name = xstrdup(path); /* lower has one of that name: a whiteout lies over it */
    const struct box_entry gone = entry_of(name, BOX_IS_GONE, NULL, &st);
    box_listing_add(l, &gone);
    box_listing_sort(l);
}

/* ---- comparing ---- */

static bool is_same(const struct box_entry *a, const struct box_entry *b)
{
    return a->kind == b->kind && a->ino == b->ino && a->bytes == b->bytes && a->mtime_ns == b->mtime_ns &&
           a->ctime_ns == b->ctime_ns && strcmp(a->path, b->path) == 0;
}

bool box_listing_is(const struct box_listing *before, const struct box_listing *now)
{
    bool same = before->n == now->n && !before->cut && !now->cut;
    for (size_t i = 0; same && i < now->n; i++)
        same = is_same(&before->v[i], &now->v[i]);
    return same;
}

static bool is_new(const struct box_listing *before, const struct box_entry *x)
{
    const struct box_entry *old = find(before, x->path, x->kind);
    if (old && x->kind == BOX_IS_GONE) /* whiteouts share an inode: its times say nothing */
        return false;
    return !old || !is_same(old, x);
}

/* A file that is not there any more, unless a whiteout in its place says so already. */
static bool has_vanished(const struct box_listing *now, const struct box_entry *x)
{
    return x->kind == BOX_IS_FILE && !find(now, x->path, BOX_IS_FILE) && !find(now, x->path, BOX_IS_GONE);
}

static void tell_new(const struct box_listing *before, const struct box_listing *now, enum box_kind kind,
                     void (*change)(void *ud, const struct box_entry *x), void *ud)
{
    for (size_t i = 0; i < now->n; i++)
        if (now->v[i].kind == kind && is_new(before, &now->v[i]))
            change(ud, &now->v[i]);
}

void box_compare(const struct box_listing *before, const struct box_listing *now,
                 void (*change)(void *ud, const struct box_entry *x), void *ud)
{
    for (size_t i = 0; i < before->n && !now->cut; i++) {
        if (has_vanished(now, &before->v[i])) {
            struct box_entry gone = { .path = before->v[i].path, .kind = BOX_IS_GONE };
            change(ud, &gone);
        }
    }
    tell_new(before, now, BOX_IS_GONE, change, ud);
    tell_new(before, now, BOX_IS_FILE, change, ud);
    tell_new(before, now, BOX_IS_REFUSED, change, ud);
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

/* ---- taking away ---- */

static bool is_path(const char *path)
{
    for (size_t n;; path += n + 1) {
        n = strcspn(path, "/");
        autofree char *part = xstrndup(path, n);
        if (!box_name_ok(part) || !path[n])
            return !path[n] && box_name_ok(part);
    }
}

int box_entry_drop(int data_fd, const char *path, bool folder)
{
    const char *slash = strrchr(path, '/'), *leaf = slash ? slash + 1 : path;
    autofree char *above = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
    if (!is_path(path))
        return EINVAL;
    autoclose int fd = open_beneath(data_fd, above, O_PATH | O_DIRECTORY);
    if (fd >= 0 && unlinkat(fd, leaf, folder ? AT_REMOVEDIR : 0) == 0)
        return 0;
    return errno == ENOENT ? 0 : errno;
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
