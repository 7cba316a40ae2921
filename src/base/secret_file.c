/* secret_file.c - temp, fsync, rename, fsync of the folder: after a power cut a file is the old one or the new one. */
#include "secret_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "digest.h"

/* The name must last as long as the bytes. */
static int sync_folder(int dir_fd, const char *path)
{
    const char *slash = strrchr(path, '/');
    autofree char *folder = slash ? xstrndup(path, (size_t)(slash - path) + 1) : xstrdup(".");
    autoclose int fd = openat(dir_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && fsync(fd) == 0 ? 0 : -1;
}

/* What a crash left under the temporary name goes, whoever may read it. */
static int write_new(int dir_fd, const char *temp, const void *data, size_t n)
{
    (void)unlinkat(dir_fd, temp, 0);
    autoclose int fd = openat(dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd >= 0 && write_all(fd, data, n) == 0 && fsync(fd) == 0 ? 0 : -1;
}

int secret_file_write(int dir_fd, const char *path, const void *data, size_t n, struct err *e)
{
    autofree char *temp = xasprintf("%s.new", path);
    if (write_new(dir_fd, temp, data, n) == 0 && renameat(dir_fd, temp, dir_fd, path) == 0 &&
        sync_folder(dir_fd, path) == 0)
        return 0;
    const int sys = errno;
    (void)unlinkat(dir_fd, temp, 0);
    return err_sys(e, ERR_STORE, sys, "cannot write %s", path);
}

static int check(int fd, const char *path, size_t n, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(e, ERR_STORE, errno, "cannot read %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_CONFIG, "%s is not a file", path);
    if (st.st_mode & 077)
        return err_set(e, ERR_CONFIG, "%s: only its owner may read or write it (chmod 600)", path);
    if (st.st_size != (off_t)n)
        return err_set(e, ERR_CONFIG, "%s is not the key that it was: %zu bytes belong there", path, n);
    return 0;
}

static int read_key(int fd, const char *path, void *key, size_t n, struct err *e)
{
    if (check(fd, path, n, e) < 0)
        return -1;
    if (pread(fd, key, n, 0) == (ssize_t)n)
        return 0;
    explicit_bzero(key, n);
    return err_set(e, ERR_STORE, "cannot read %s", path);
}

int secret_file_key(int dir_fd, const char *path, void *key, size_t n, struct err *e)
{
    autoclose int fd = openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        return read_key(fd, path, key, n, e);
    if (errno == ELOOP)
        return err_set(e, ERR_CONFIG, "%s is a link, not a file", path);
    if (errno != ENOENT)
        return err_sys(e, ERR_STORE, errno, "cannot open %s", path);
    digest_random(key, n);
    if (secret_file_write(dir_fd, path, key, n, e) == 0)
        return 0;
    explicit_bzero(key, n);
    return -1;
}
