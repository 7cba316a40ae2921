/* A key is made once and stays; nobody else's file is taken for one; a write is whole or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "secret_file.h"
#include "str.h"

enum { KEY = 32 };

struct folder {
    char path[64];
    int fd;
};

static int begin(void **state)
{
    struct folder *f = xcalloc(1, sizeof(*f));
    (void)snprintf(f->path, sizeof(f->path), "/tmp/test-private-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = f;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static int end(void **state)
{
    struct folder *f = *state;
    (void)close(f->fd);
    (void)nftw(f->path, remove_one, 4, FTW_DEPTH | FTW_PHYS);
    free(f);
    return 0;
}

static void put(const struct folder *f, const char *name, const char *text, mode_t mode)
{
    autoclose int fd = openat(f->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_int_equal(write_all(fd, text, strlen(text)), 0);
    assert_int_equal(fchmod(fd, mode), 0);
}

static mode_t mode_of(const struct folder *f, const char *name)
{
    struct stat st;
    assert_int_equal(fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

static void a_key_is_made_once_private_and_random(void **state)
{
    const struct folder *f = *state;
    uint8_t one[KEY], again[KEY], other[KEY];
    struct err e = { 0 };
    autofree char *path = xasprintf("%s/key", f->path);
    put(f, "key.new", "left by a crash, for all to read", 0644);
    const mode_t mask = umask(0);
    assert_int_equal(secret_file_key(f->fd, "key", one, KEY, &e), 0);
    (void)umask(mask);
    assert_int_equal(secret_file_key(AT_FDCWD, path, again, KEY, &e), 0);
    assert_int_equal(secret_file_key(f->fd, "other", other, KEY, &e), 0);
    assert_memory_equal(one, again, KEY);
    assert_memory_not_equal(one, other, KEY);
    assert_int_equal(mode_of(f, "key"), 0600);
    assert_int_equal(faccessat(f->fd, "key.new", F_OK, 0), -1);
}

static void what_is_no_key_of_ours_is_refused_and_left_alone(void **state)
{
    const struct folder *f = *state;
    static const uint8_t none[KEY];
    uint8_t key[KEY] = { 0 };
    put(f, "open", "0123456789abcdef0123456789abcdef", 0640);
    put(f, "short", "0123456789abcdef0123456789abcde", 0600);
    put(f, "long", "0123456789abcdef0123456789abcdef\n", 0600);
    put(f, "empty", "", 0600);
    put(f, "good", "0123456789abcdef0123456789abcdef", 0600);
    assert_int_equal(mkdirat(f->fd, "folder", 0700), 0);
    assert_int_equal(mkfifoat(f->fd, "pipe", 0600), 0); /* must not block */
    assert_int_equal(symlinkat("good", f->fd, "link"), 0);
    static const char *const names[] = { "open", "short", "long", "empty", "folder", "pipe", "link" };
    for (size_t i = 0; i < countof(names); i++) {
        struct err e = { 0 };
        assert_int_equal(secret_file_key(f->fd, names[i], key, KEY, &e), -1);
        assert_int_equal(e.kind, ERR_CONFIG);
        assert_non_null(strstr(e.msg, names[i]));
        assert_memory_equal(key, none, KEY);
    }
    struct err e = { 0 };
    assert_int_equal(secret_file_key(f->fd, "no/such/folder", key, KEY, &e), -1);
    assert_int_equal(e.kind, ERR_STORE);
    assert_int_equal(mode_of(f, "open"), 0640);
}

static void a_write_that_fails_leaves_what_was_there(void **state)
{
    const struct folder *f = *state;
    struct err e = { 0 };
    AUTO(str_clear) struct str text = STR_INIT(64);
    struct rlimit was, small;
    assert_int_equal(secret_file_write(f->fd, "file", "first", 5, &e), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = (struct rlimit){ 8, was.rlim_max };
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const int rc = secret_file_write(f->fd, "file", "the second is too long", 22, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(rc, -1);
    assert_int_equal(e.kind, ERR_STORE);
    autofree char *path = xasprintf("%s/file", f->path);
    assert_int_equal(str_read_file(&text, path, &e), 0);
    assert_string_equal(str_peek(&text), "first");
    assert_int_equal(faccessat(f->fd, "file.new", F_OK, 0), -1);
}

static void a_write_takes_the_place_of_a_link_not_of_its_target(void **state)
{
    const struct folder *f = *state;
    struct err e = { 0 };
    AUTO(str_clear) struct str text = STR_INIT(64);
    put(f, "target", "theirs", 0644);
    assert_int_equal(symlinkat("target", f->fd, "file"), 0);
    assert_int_equal(secret_file_write(f->fd, "file", "ours", 4, &e), 0);
    autofree char *path = xasprintf("%s/target", f->path);
    assert_int_equal(str_read_file(&text, path, &e), 0);
    assert_string_equal(str_peek(&text), "theirs");
    assert_int_equal(mode_of(f, "file"), 0600);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_key_is_made_once_private_and_random),
        TEST(what_is_no_key_of_ours_is_refused_and_left_alone),
        TEST(a_write_that_fails_leaves_what_was_there),
        TEST(a_write_takes_the_place_of_a_link_not_of_its_target),
    };
    return cmocka_run_group_tests_name("private", tests, NULL, NULL);
}
