/* export_sink.c - where an export goes: a folder, or a ZIP archive. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <dirent.h>
#include <zip.h>
#include "export.h"
#include "str.h"

enum { SLICE = 1 << 17 };

/* Relative, and no part leads anywhere but down. */
static bool name_ok(const char *name)
{
    for (const char *p = name;; p++) {
        size_t n = strcspn(p, "/");
        if (n == 0 || n > 255 || (p[0] == '.' && (n == 1 || (n == 2 && p[1] == '.'))))
            return false;
        p += n;
        if (!*p)
            return utf8_valid(name, strlen(name));
    }
}

static int bad_name(const char *name, struct err *e)
{
    return err_set(e, ERR_DATA, "a file of the export cannot be called %.150s", name);
}

/* ---- a folder ---- */

struct folder {
    int fd;
};

static int folder_file(const struct folder *f, const char *name, struct err *e)
{
    if (!name_ok(name))
        return bad_name(name, e);
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        autofree char *above = xstrndup(name, (size_t)(slash - name));
        if (mkdirat(f->fd, above, 0777) < 0 && errno != EEXIST)
            return err_sys(e, ERR_STORE, errno, "cannot make %.150s", above);
    }
    int fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return fd < 0 ? err_sys(e, ERR_STORE, errno, "cannot write %.150s", name) : fd;
}

static int folder_text(void *ud, const char *name, const char *data, size_t n, struct err *e)
{
    autoclose int fd = folder_file(ud, name, e);
    if (fd < 0)
        return -1;
    return write_all(fd, data, n) < 0 ? err_sys(e, ERR_STORE, errno, "cannot write %.150s", name) : 0;
}

static int folder_copy(void *ud, const char *name, const char *path, struct err *e)
{
    autoclose int from = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    autoclose int fd = from < 0 ? -1 : folder_file(ud, name, e);
    autofree char *buf = xcalloc(1, SLICE);
    if (from < 0)
        return err_sys(e, ERR_STORE, errno, "cannot read %.150s", path);
    if (fd < 0)
        return -1;
    for (ssize_t n; (n = read(from, buf, SLICE)) != 0;)
        if (n < 0 || write_all(fd, buf, (size_t)n) < 0)
            return err_sys(e, ERR_STORE, errno, "cannot write %.150s", name);
    return 0;
}

static bool is_empty(int fd)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again < 0 ? NULL : fdopendir(again);
    size_t n = 0;
    for (struct dirent *x = d ? readdir(d) : NULL; x; x = readdir(d)) /* NOLINT(concurrency-mt-unsafe): one thread */
        n += strcmp(x->d_name, ".") != 0 && strcmp(x->d_name, "..") != 0;
    if (d)
        (void)closedir(d);
    else if (again >= 0)
        (void)close(again);
    return d && n == 0;
}

int export_to_folder(struct store *s, const char *session, const char *dir, struct export_facts *facts, struct err *e)
{
    bool made = mkdir(dir, 0777) == 0;
    autoclose int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, ERR_CONFIG, errno, "cannot write to %.150s", dir);
    if (!made && !is_empty(fd))
        return err_set(e, ERR_CONFIG, "%.150s is not empty: name another folder with --out", dir);
    struct folder f = { .fd = fd };
    const struct export_sink to = { .text = folder_text, .copy = folder_copy, .ud = &f };
    if (export_session(s, session, &to, facts, e) == 0)
        return 0;
    if (made)
        (void)rmdir(dir); /* when nothing was written yet */
    return -1;
}

/* ---- a ZIP archive ---- */

struct zip {
    zip_t *to;
    int64_t bytes, max;
};

static int zip_failed(zip_error_t *why, struct err *e)
{
    err_set(e, ERR_STORE, "cannot write the export: %.150s", zip_error_strerror(why));
    zip_error_fini(why);
    return -1;
}

static int zip_refused(const struct zip *z, struct err *e)
{
    return err_set(e, ERR_STORE, "cannot write the export: %.150s", zip_strerror(z->to));
}

/* Takes the source. Stored: charts are compressed already, and everybody waits while this is done. */
static int zip_entry(struct zip *z, const char *name, zip_source_t *from, int64_t bytes, struct err *e)
{
    const zip_uint32_t mode = S_IFREG | 0644;
    const bool fits = bytes <= z->max - z->bytes, named = name_ok(name);
    zip_int64_t at = from && fits && named ? zip_file_add(z->to, name, from, ZIP_FL_ENC_UTF_8) : -1;
    if (at < 0 && from)
        zip_source_free(from);
    if (!named)
        return bad_name(name, e);
    if (!fits)
        return err_set(e, ERR_LIMIT, "the export is larger than %lld MB", (long long)(z->max >> 20));
    if (at < 0 || zip_set_file_compression(z->to, (zip_uint64_t)at, ZIP_CM_STORE, 0) < 0 ||
        zip_file_set_external_attributes(z->to, (zip_uint64_t)at, 0, ZIP_OPSYS_UNIX, mode << 16) < 0)
        return zip_refused(z, e);
    z->bytes += bytes;
    return 0;
}

static int zip_text(void *ud, const char *name, const char *data, size_t n, struct err *e)
{
    struct zip *z = ud;
    char *own = xcalloc(n + 1, 1);
    memcpy(own, data, n);
    zip_source_t *from = zip_source_buffer(z->to, own, n, 1);
    if (!from)
        free(own);
    return zip_entry(z, name, from, (int64_t)n, e);
}

/* Read when the archive is closed: versions never change. */
static int zip_copy(void *ud, const char *name, const char *path, struct err *e)
{
    struct zip *z = ud;
    struct stat st;
    if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return err_sys(e, ERR_STORE, errno, "cannot read %.150s", path);
    return zip_entry(z, name, zip_source_file(z->to, path, 0, st.st_size), st.st_size, e);
}

int export_to_zip(struct store *s, const char *session, const char *path, int64_t max_bytes, struct export_facts *facts,
                  struct err *e)
{
    int code = 0;
    struct zip z = { .to = zip_open(path, ZIP_CREATE | ZIP_EXCL, &code), .max = max_bytes };
    const struct export_sink to = { .text = zip_text, .copy = zip_copy, .ud = &z };
    if (!z.to) {
        zip_error_t why;
        zip_error_init_with_code(&why, code);
        return zip_failed(&why, e);
    }
    int r = export_session(s, session, &to, facts, e);
    if (r == 0 && zip_close(z.to) == 0)
        return 0;
    if (r == 0)
        (void)zip_refused(&z, e);
    zip_discard(z.to);
    return -1;
}
