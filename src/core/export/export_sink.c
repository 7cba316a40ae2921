/* export_sink.c - where an export goes: a folder, or a ZIP archive.
 *
 * The archive stores and does not compress: charts are compressed already, and what libarchive would add here is a parser that this
 * process must not have. Names are UTF-8 and say so; archives of 4 GiB or 65,535 files are refused rather than made in a way
 * that few programs read. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <dirent.h>
#include "export.h"
#include "str.h"

enum { SLICE = 1 << 17, ZIP_FILES_MAX = 65000, ZIP_NAME_MAX = 4096 };

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
    int fd;
    int64_t at, max;
    struct str directory; /* the central one, written at the end */
    size_t files;
};

static uint32_t crc_of(uint32_t crc, const unsigned char *data, size_t n)
{
    static uint32_t table[256];
    for (uint32_t i = 0; !table[255] && i < 256; i++) {
        uint32_t v = i;
        for (int k = 0; k < 8; k++)
            v = v & 1 ? v >> 1 ^ 0xedb88320U : v >> 1;
        table[i] = v;
    }
    crc = ~crc;
    for (size_t i = 0; i < n; i++)
        crc = table[(crc ^ data[i]) & 0xff] ^ crc >> 8;
    return ~crc;
}

static void put16(struct str *s, unsigned n)
{
    str_putc(s, (char)(n & 0xff));
    str_putc(s, (char)(n >> 8 & 0xff));
}

static void put32(struct str *s, uint32_t n)
{
    put16(s, n & 0xffff);
    put16(s, n >> 16);
}

static int zip_write(struct zip *z, const void *data, size_t n, struct err *e)
{
    if (z->at + (int64_t)n > z->max)
        return err_set(e, ERR_LIMIT, "the export is larger than %lld MB", (long long)(z->max >> 20));
    if (write_all(z->fd, data, n) < 0)
        return err_sys(e, ERR_STORE, errno, "cannot write the export");
    z->at += (int64_t)n;
    return 0;
}

/* What a file's local head and its directory entry have in common. Dates are left at the format's first day. */
static void put_facts(struct str *s, const char *name, uint32_t crc, uint32_t bytes)
{
    const unsigned utf8 = 1U << 11, first_day = 1U << 5 | 1U;
    put16(s, 20);
    put16(s, utf8);
    put16(s, 0); /* stored */
    put16(s, 0);
    put16(s, first_day);
    put32(s, crc);
    put32(s, bytes);
    put32(s, bytes);
    put16(s, (unsigned)strlen(name));
    put16(s, 0);
}

static int zip_head(struct zip *z, const char *name, uint32_t crc, int64_t bytes, struct err *e)
{
    AUTO(str_clear) struct str head = STR_INIT(ZIP_NAME_MAX + 64);
    if (!name_ok(name) || strlen(name) > ZIP_NAME_MAX)
        return bad_name(name, e);
    if (++z->files > ZIP_FILES_MAX || bytes > z->max)
        return err_set(e, ERR_LIMIT, "the export has too many files, or too large ones");
    struct str *d = &z->directory;
    put32(d, 0x02014b50U);
    put16(d, 3U << 8 | 20U); /* made by a Unix */
    put_facts(d, name, crc, (uint32_t)bytes);
    put16(d, 0);
    put16(d, 0);
    put16(d, 0);
    put32(d, (uint32_t)(S_IFREG | 0644) << 16);
    put32(d, (uint32_t)z->at);
    str_puts(d, name);
    put32(&head, 0x04034b50U);
    put_facts(&head, name, crc, (uint32_t)bytes);
    str_puts(&head, name);
    return zip_write(z, str_peek(&head), head.len, e);
}

static int zip_text(void *ud, const char *name, const char *data, size_t n, struct err *e)
{
    struct zip *z = ud;
    const uint32_t crc = crc_of(0, (const unsigned char *)data, n);
    return zip_head(z, name, crc, (int64_t)n, e) < 0 ? -1 : zip_write(z, data, n, e);
}

/* Twice: the checksum stands in front of the bytes. Versions never change in between. */
static int zip_copy(void *ud, const char *name, const char *path, struct err *e)
{
    struct zip *z = ud;
    uint32_t crc = 0;
    int64_t bytes = 0, left;
    autoclose int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    autofree char *buf = xcalloc(1, SLICE);
    ssize_t n = fd < 0 ? -1 : 0;
    while (n >= 0 && (n = pread(fd, buf, SLICE, bytes)) > 0) {
        crc = crc_of(crc, (const unsigned char *)buf, (size_t)n);
        bytes += n;
    }
    if (n < 0)
        return err_sys(e, ERR_STORE, errno, "cannot read %.150s", path);
    if (zip_head(z, name, crc, bytes, e) < 0)
        return -1;
    for (left = bytes; left > 0; left -= n) {
        n = pread(fd, buf, left < SLICE ? (size_t)left : SLICE, bytes - left);
        if (n <= 0)
            return err_set(e, ERR_STORE, "%.150s changed while it was read", path);
        if (zip_write(z, buf, (size_t)n, e) < 0)
            return -1;
    }
    return 0;
}

static int zip_end(struct zip *z, struct err *e)
{
    AUTO(str_clear) struct str tail = STR_INIT(64);
    const int64_t at = z->at;
    if (str_check(&z->directory, e) < 0 || zip_write(z, str_peek(&z->directory), z->directory.len, e) < 0)
        return -1;
    put32(&tail, 0x06054b50U);
    put32(&tail, 0);
    put16(&tail, (unsigned)z->files);
    put16(&tail, (unsigned)z->files);
    put32(&tail, (uint32_t)z->directory.len);
    put32(&tail, (uint32_t)at);
    put16(&tail, 0);
    if (zip_write(z, str_peek(&tail), tail.len, e) < 0)
        return -1;
    return fsync(z->fd) < 0 ? err_sys(e, ERR_STORE, errno, "cannot write the export") : 0;
}

int export_to_zip(struct store *s, const char *session, const char *path, int64_t max_bytes, struct export_facts *facts,
                  struct err *e)
{
    const int64_t most = 0xf0000000LL;
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_sys(e, ERR_STORE, errno, "cannot write %.150s", path);
    struct zip z = { .fd = fd, .max = max_bytes < most ? max_bytes : most, .directory = STR_INIT(64 << 20) };
    const struct export_sink to = { .text = zip_text, .copy = zip_copy, .ud = &z };
    int r = export_session(s, session, &to, facts, e);
    if (r == 0)
        r = zip_end(&z, e);
    str_clear(&z.directory);
    if (r < 0)
        (void)unlink(path);
    return r;
}
