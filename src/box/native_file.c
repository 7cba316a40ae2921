/* native_file.c - copy a box's file to the host: temporary name, fsync, rename. */
#include "native_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../../sandbox/box_proto.h"

enum {
    SLICE = 4 << 20, /* copied between two looks at the loop: about 2 ms from memory */
    CHUNK = 64 << 10,
    FLAT_MAX = 200,
};

/* ---- names ---- */

/* Marks that turn text around or hide it: a name must look like what it is. */
static bool deceives(uint32_t c)
{
    return c == 0x061c || (c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069) || c == 0xfeff || c == 0x2028 || c == 0x2029;
}

static bool control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

static bool part_ok(const char *part, size_t n)
{
    if (n == 0 || n > BOX_NAME_MAX)
        return false;
    return !(part[0] == '.' && (n == 1 || (n == 2 && part[1] == '.')));
}

bool delivery_path_ok(const char *path)
{
    size_t n = strlen(path);
    if (n == 0 || n > BOX_PATH_MAX || path[0] == '/' || !utf8_valid(path, n))
        return false;
    for (const char *p = path; *p;)
        if (control(utf8_next(&p)))
            return false;
    for (const char *p = path;; p++) {
        size_t k = strcspn(p, "/");
        if (!part_ok(p, k))
            return false;
        p += k;
        if (!*p)
            return true;
    }
}

static bool is_small(const char *name)
{
    const size_t n = strlen(name), k = strlen(PICTURE_SMALL);
    return n > k && strcmp(name + n - k, PICTURE_SMALL) == 0;
}

static bool figure_name(const char *name)
{
    int a, b, end = 0;
    if (sscanf(name, "figure-%9d-%9d%n", &a, &b, &end) != 2 || !end) /* NOLINT(cert-err34-c) */
        return false;
    return strcmp(name + end, ".png") == 0 || strcmp(name + end, PICTURE_SMALL) == 0;
}

static bool figure_path(const char *path, int cell)
{
    char prefix[40];
    int n = snprintf(prefix, sizeof prefix, "out/figure-%d-", cell);
    return strncmp(path, prefix, (size_t)n) == 0 && figure_name(path + strlen("out/"));
}

/* The name on the host: NFC, no part hidden, no deceiving marks; never the name of a captured figure. */
static char *host_name(const char *path)
{
    AUTO(str_clear) struct str s = STR_INIT((size_t)BOX_PATH_MAX * 4);
    autofree char *nfc = utf8_nfc(path);
    if (figure_name(nfc))
        str_puts(&s, "saved-");
    bool begin = true;
    for (const char *p = nfc, *from = p; *p; from = p) {
        uint32_t c = utf8_next(&p);
        if ((begin && c == '.') || deceives(c))
            str_putc(&s, '_');
        else
            str_add(&s, from, (size_t)(p - from));
        begin = c == '/';
    }
    return str_take(&s);
}

/* ---- copying ---- */

static int too_large(const struct delivery *d, struct err *e)
{
    return err_set(e, ERR_DATA, "it is larger than %" PRId64 " MB, the most that a file may have", d->max_bytes >> 20);
}

static int open_both(struct delivery *d, struct err *e)
{
    struct stat st;
    if (fstat(d->src_fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_DATA, "not a regular file");
    if (st.st_size > d->max_bytes) /* only to refuse early; what counts is what is read */
        return too_large(d, e);
    d->tmp_fd =
        openat(d->dir_fd, d->tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666); /* the umask decides */
    if (d->tmp_fd < 0)
        return err_sys(e, ERR_STORE, errno, "creating %s", d->tmp);
    d->unfinished = true;
    return 0;
}

int delivery_begin(struct delivery *d, int dir_fd, const char *box_path, int take_fd, int64_t max_bytes, uint64_t seq,
                   struct err *e)
{
    *d = (struct delivery){ .src_fd = take_fd, .tmp_fd = -1, .dir_fd = dir_fd, .max_bytes = max_bytes };
    (void)snprintf(d->tmp, sizeof d->tmp, ".part-%d-%" PRIu64, (int)getpid(), seq);
    d->what.box_path = xstrdup(box_path);
    if (open_both(d, e) == 0)
        return 0;
    struct delivery failed = *d;
    *d = (struct delivery){ .src_fd = -1, .tmp_fd = -1 };
    delivery_clear(&failed);
    return -1;
}

void delivery_clear(struct delivery *d)
{
    if (d->src_fd >= 0)
        (void)close(d->src_fd);
    if (d->tmp_fd >= 0)
        (void)close(d->tmp_fd);
    if (d->unfinished)
        (void)unlinkat(d->dir_fd, d->tmp, 0);
    delivered_clear(&d->what);
    *d = (struct delivery){ .src_fd = -1, .tmp_fd = -1 };
}

/* One chunk by its offset: the descriptor's own offset may be shared with the box. Bytes, 0 at the end, -1. */
static ssize_t copy_chunk(struct delivery *d, struct err *e)
{
    char buf[CHUNK];
    ssize_t n = pread(d->src_fd, buf, sizeof buf, d->copied);
    if (n < 0)
        return err_sys(e, ERR_DATA, errno, "reading");
    if (d->copied + n > d->max_bytes)
        return too_large(d, e);
    if (write_all(d->tmp_fd, buf, (size_t)n) < 0)
        return err_sys(e, ERR_STORE, errno, "writing");
    d->copied += n;
    return n;
}

/* ---- into place ---- */

/* Opens the folder of name below dir_fd, making what is missing; *leaf is its last part. */
static int folder_of(int dir_fd, const char *name, const char **leaf)
{
    int at = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    for (const char *slash; at >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
        autofree char *part = xstrndup(name, (size_t)(slash - name));
        if (mkdirat(at, part, 0750) < 0 && errno != EEXIST) {
            (void)close(at);
            return -1;
        }
        int below = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        (void)close(at);
        at = below;
    }
    *leaf = name;
    return at;
}

static int rename_to(const struct delivery *d, const char *name)
{
    const char *leaf;
    autoclose int folder = folder_of(d->dir_fd, name, &leaf);
    return folder < 0 ? -1 : renameat(d->dir_fd, d->tmp, folder, leaf);
}

static char *flat_name(const char *name, int cell)
{
    const char *leaf = strrchr(name, '/');
    leaf = leaf ? leaf + 1 : name;
    while (strlen(leaf) > FLAT_MAX) /* its end tells what it is */
        (void)utf8_next(&leaf);
    return xasprintf("cell-%d-%s", cell, leaf);
}

/* Where a folder lies in a file's way, or the other way round, the file gets a flat name of its own. */
static int put_in_place(const struct delivery *d, char **name, int cell, struct err *e)
{
    if (rename_to(d, *name) == 0)
        return 0;
    if (errno != ENOTDIR && errno != EISDIR && errno != ENOTEMPTY && errno != EEXIST && errno != ENAMETOOLONG &&
        errno != ELOOP)
        return err_sys(e, ERR_STORE, errno, "renaming to %s", *name);
    char *flat = flat_name(*name, cell);
    free(*name);
    *name = flat;
    if (rename_to(d, flat) < 0)
        return err_sys(e, ERR_STORE, errno, "renaming to %s", flat);
    return 0;
}

static int finish(struct delivery *d, const char *out_dir, int cell, struct err *e)
{
    if (fsync(d->tmp_fd) < 0)
        return err_sys(e, ERR_STORE, errno, "fsync");
    struct delivered *w = &d->what;
    w->figure = figure_path(w->box_path, cell);
    w->small = w->figure && is_small(w->box_path);
    w->file.name = w->figure ? xstrdup(w->box_path + strlen("out/")) : host_name(w->box_path);
    picture_size(d->tmp_fd, &w->file.width, &w->file.height);
    if (put_in_place(d, &w->file.name, cell, e) < 0)
        return -1;
    d->unfinished = false;
    w->file.bytes = d->copied;
    w->file.path = xasprintf("%s/%s", out_dir, w->file.name);
    return 0;
}

int delivery_step(struct delivery *d, const char *out_dir, int cell, struct err *e)
{
    const int64_t from = d->copied;
    while (d->copied - from < SLICE) {
        ssize_t n = copy_chunk(d, e);
        if (n < 0)
            return -1;
        if (n == 0)
            return finish(d, out_dir, cell, e);
    }
    /* Let the disk begin now, so that the fsync at the end has little left to wait for. */
    (void)sync_file_range(d->tmp_fd, from, d->copied - from, SYNC_FILE_RANGE_WRITE);
    return 1;
}

void delivery_sync_folder(int dir_fd)
{
    autoclose int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        (void)fsync(fd);
}
