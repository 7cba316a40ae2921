/* conf_fixture.h - files and folders for tests of settings. */
#ifndef CONF_FIXTURE_H
#define CONF_FIXTURE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "conf.h"
#include "str.h"

/* A folder of its own, as $CREDENTIALS_DIRECTORY and for secrets. */
static char dir[] = "/tmp/test_conf.XXXXXX";

static inline int make_dir(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
    (void)state;
    return rmdir(dir);
}

static inline char *file_with(const char *name, const char *content, size_t n, mode_t mode)
{
    char *path = xasprintf("%s/%s", dir, name);
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write_all(fd, content, n), 0);
    assert_int_equal(fchmod(fd, mode), 0);
    return path;
}
#endif
