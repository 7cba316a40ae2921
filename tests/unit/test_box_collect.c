/* The keeper's hands in a folder that an adversary fills. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <errno.h>
#include <cmocka.h>
#include "box_collect.h"
#include "box_proto.h"

static char dir[64];
static int dir_fd;

static int setup(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/box-collect-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return dir_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    (void)close(dir_fd);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

static void make(const char *path, const char *text)
{
    int fd = openat(dir_fd, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write_all(fd, text, strlen(text)), 0);
    (void)close(fd);
}

static void names_are_checked(void **state)
{
    (void)state;
    static const char *const fine[] = { "a", "a b.csv", "été.csv", "数据.xlsx", "..a", ".hidden", "a\xe2\x80\xae" };
    static const char *const wrong[] = { "",          ".",     "..",       "a/b",      "/",       "a\nb",
                                         "a\x1b[31m", "a\x7f", "\xff\xfe", "\xc2\x85", "\xc0\xaf" };
    for (size_t i = 0; i < countof(fine); i++)
        assert_true(box_name_ok(fine[i]));
    for (size_t i = 0; i < countof(wrong); i++)
        assert_false(box_name_ok(wrong[i]));
    char most[BOX_NAME_MAX + 2];
    memset(most, 'x', sizeof most - 1);
    most[BOX_NAME_MAX + 1] = '\0';
    assert_false(box_name_ok(most));
    most[BOX_NAME_MAX] = '\0';
    assert_true(box_name_ok(most));
}

static void only_plain_files_are_listed(void **state)
{
    (void)state;
    struct box_listing l = { 0 };
    make("b", "2");
    assert_int_equal(mkdirat(dir_fd, "d", 0755), 0);
    make("d/a", "1");
    assert_int_equal(symlinkat("/etc/passwd", dir_fd, "link"), 0);
    assert_int_equal(symlinkat(".", dir_fd, "loop"), 0);
    assert_int_equal(mkfifoat(dir_fd, "fifo", 0644), 0);
    make(".hidden", "h");
    make("bad\nname", "n");
    make("\xff", "n");
    box_list(&l, dir_fd);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.v[0].path, "b");
    assert_string_equal(l.v[1].path, "d/a");
    assert_false(l.cut);
    box_listing_clear(&l);
}

static void the_listing_is_capped(void **state)
{
    (void)state;
    struct box_listing l = { 0 };
    char name[32];
    for (int i = 0; i < BOX_ENTRIES_MAX + 10; i++) {
        (void)snprintf(name, sizeof name, "f%d", i);
        make(name, "");
    }
    box_list(&l, dir_fd);
    assert_int_equal(l.n, BOX_ENTRIES_MAX);
    assert_true(l.cut);
    box_listing_clear(&l);
}

static void depth_is_capped(void **state)
{
    (void)state;
    struct box_listing l = { 0 };
    char path[64] = "";
    for (int i = 0; i < BOX_DEPTH_MAX + 1; i++) {
        strcat(path, i ? "/d" : "d");
        assert_int_equal(mkdirat(dir_fd, path, 0755), 0);
    }
    make("d/d/d/d/d/d/d/d/in", "");
    make("d/d/d/d/d/d/d/d/d/out", "");
    box_list(&l, dir_fd);
    assert_int_equal(l.n, 1);
    assert_true(l.cut);
    box_listing_clear(&l);
}

static void changes_are_seen(void **state)
{
    (void)state;
    struct box_listing before = { 0 }, after = { 0 };
    make("same", "1");
    make("grown", "1");
    box_list(&before, dir_fd);
    make("grown", "22");
    make("new", "3");
    box_list(&after, dir_fd);
    assert_int_equal(after.n, 3);
    assert_true(box_entry_is_new(&before, &after.v[0]));  /* grown */
    assert_true(box_entry_is_new(&before, &after.v[1]));  /* new */
    assert_false(box_entry_is_new(&before, &after.v[2])); /* same */
    box_listing_clear(&before);
    box_listing_clear(&after);
}

static void opening_follows_nothing(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    make("file", "1234");
    assert_int_equal(symlinkat("file", dir_fd, "link"), 0);
    assert_int_equal(symlinkat("/etc", dir_fd, "etc"), 0);
    assert_int_equal(mkdirat(dir_fd, "d", 0755), 0);
    assert_int_equal(mkfifoat(dir_fd, "fifo", 0644), 0);
    int fd = box_entry_open(dir_fd, "file", &bytes);
    assert_true(fd >= 0);
    assert_int_equal(bytes, 4);
    (void)close(fd);
    static const char *const wrong[] = { "link", "etc/passwd", "../etc/passwd", "/etc/passwd",
                                         "d",    "fifo",       "d/../../x",     "none" };
    for (size_t i = 0; i < countof(wrong); i++)
        assert_int_equal(box_entry_open(dir_fd, wrong[i], &bytes), -1);
}

/* In a child, as the keeper does. */
static int put(const char *name, const char *text, uint64_t max)
{
    char path[80];
    (void)snprintf(path, sizeof path, "/tmp/box-put-XXXXXX");
    int from = mkstemp(path), status = 0;
    (void)unlink(path);
    assert_int_equal(write_all(from, text, strlen(text)), 0);
    const struct box_put p = { .name = name, .data_fd = dir_fd, .from_fd = from, .max_bytes = max };
    pid_t pid = fork();
    if (pid == 0)
        _exit(box_put(&p));
    (void)waitpid(pid, &status, 0);
    (void)close(from);
    return WEXITSTATUS(status);
}

static void putting_replaces_and_follows_nothing(void **state)
{
    (void)state;
    struct stat st;
    assert_int_equal(symlinkat("/tmp/box-collect-target", dir_fd, "a"), 0);
    assert_int_equal(symlinkat("/tmp/box-collect-target", dir_fd, ".sandbook-put"), 0);
    assert_int_equal(put("a", "data", 100), 0);
    assert_int_equal(fstatat(dir_fd, "a", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_size, 4);
    assert_int_equal(st.st_mode & 0777, 0644);
    assert_int_equal(access("/tmp/box-collect-target", F_OK), -1);
    assert_int_equal(put("a", "more data", 100), 0);
    assert_int_equal(put("b", "too long", 3), EFBIG);
    assert_int_equal(faccessat(dir_fd, "b", F_OK, 0), -1);
    assert_int_equal(mkdirat(dir_fd, "d", 0755), 0);
    assert_int_equal(put("d", "x", 3), EISDIR);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(names_are_checked),
        TEST(only_plain_files_are_listed),
        TEST(the_listing_is_capped),
        TEST(depth_is_capped),
        TEST(changes_are_seen),
        TEST(opening_follows_nothing),
        TEST(putting_replaces_and_follows_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
