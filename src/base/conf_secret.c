#include "conf_secret.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "conf.h"
#include "str.h"

enum { SECRET_MAX = 4096 }; /* bytes; an API key or token is far shorter */

/* The one environment variable that is read: systemd's, set for services with LoadCredential=. */
static const char *credentials(void)
{
    const char *dir = getenv("CREDENTIALS_DIRECTORY");
    return dir && *dir ? dir : NULL;
}

char *conf_secret_path(const char *value)
{
    const char *dir = credentials();
    if (!*value || strchr(value, '/') || !dir)
        return xstrdup(value);
    return xasprintf("%s/%s", dir, value);
}

/* systemd gives a service its credentials by ACL, whose mask shows as group permission, in a folder of its own. */
static mode_t forbidden(const char *path)
{
    const char *dir = credentials();
    size_t n = dir ? strlen(dir) : 0;
    bool inside = n > 0 && strncmp(path, dir, n) == 0 && path[n] == '/' && !strchr(path + n + 1, '/');
    return inside ? 07 : 077;
}

static int check_stat(const char *path, const struct stat *st, struct err *e)
{
    if (!S_ISREG(st->st_mode))
        return err_set(e, ERR_CONFIG, "%s is not a regular file", path);
    if (st->st_mode & forbidden(path))
        return err_set(e, ERR_CONFIG, "others may read %s; run: chmod 600 %s", path, path);
    return 0;
}

int conf_secret_check(const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return err_sys(e, ERR_CONFIG, errno, "cannot read the secret %s", path);
    return check_stat(path, &st, e);
}

/* The file as it is. O_NONBLOCK: opening a FIFO would wait for its writer. */
static int read_checked(char *buf, size_t size, size_t *n, const char *path, struct err *e)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, ERR_CONFIG, errno, "cannot read the secret %s", path);
    if (check_stat(path, &st, e) < 0)
        return -1;
    ssize_t got = 1;
    for (*n = 0; got > 0 && *n < size; *n += (size_t)got) {
        got = read(fd, buf + *n, size - *n);
        if (got < 0)
            return err_sys(e, ERR_CONFIG, errno, "cannot read the secret %s", path);
    }
    return 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* A secret becomes part of an HTTP header: anything but printable ASCII would be an injection or a mistake. */
static int one_line(char **out, const char *buf, size_t n, const char *path, struct err *e)
{
    if (n > SECRET_MAX)
        return err_set(e, ERR_CONFIG, "the secret %s has more than %d bytes", path, SECRET_MAX);
    while (n > 0 && is_space(buf[n - 1]))
        n--;
    while (n > 0 && is_space(*buf)) {
        buf++;
        n--;
    }
    if (n == 0)
        return err_set(e, ERR_CONFIG, "the secret %s is empty", path);
    for (size_t i = 0; i < n; i++)
        if (buf[i] < 0x20 || buf[i] > 0x7e)
            return err_set(e, ERR_CONFIG, "the secret %s is not one line of printable ASCII", path);
    *out = xstrndup(buf, n);
    return 0;
}

int conf_read_secret(char **out, const char *path, struct err *e)
{
    char buf[SECRET_MAX + 1];
    size_t n = 0;
    int rc = read_checked(buf, sizeof(buf), &n, path, e);
    if (rc == 0)
        rc = one_line(out, buf, n, path, e);
    explicit_bzero(buf, sizeof(buf));
    return rc;
}
