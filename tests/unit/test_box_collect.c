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
#include "str.h"

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
    box_list(&l, dir_fd, 0);
    assert_int_equal(l.n, 4);
    assert_string_equal(l.v[0].path, "b");
    assert_string_equal(l.v[1].path, "bad name");
    assert_int_equal(l.v[1].kind, BOX_IS_REFUSED);
    assert_string_equal(l.v[2].path, "d/a");
    assert_string_equal(l.v[3].path, "\xef\xbf\xbd");
    assert_string_equal(l.v[3].why, "its name is not valid UTF-8");
    assert_false(l.cut);
    box_list(&l, dir_fd, BOX_LIST_HIDDEN);
    assert_int_equal(l.n, 5);
    assert_string_equal(l.v[0].path, ".hidden");
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
    box_list(&l, dir_fd, 0);
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
    for (int at = BOX_DEPTH_MAX + 1; at >= BOX_DEPTH_MAX; at--) {
        path[2 * at - 1] = '\0';
        autofree char *file = xasprintf("%s/file", path);
        make(file, "");
    }
    box_list(&l, dir_fd, 0);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.v[0].kind, BOX_IS_REFUSED); /* the folder that is too deep */
    assert_int_equal(strlen(l.v[0].path), 2 * BOX_DEPTH_MAX + 1);
    assert_int_equal(l.v[1].kind, BOX_IS_FILE);
    assert_false(l.cut);
    box_listing_clear(&l);
}

static void tell(void *ud, const struct box_entry *x)
{
    static const char marks[BOX_KINDS] = { [BOX_IS_FILE] = '+', [BOX_IS_GONE] = '-', [BOX_IS_REFUSED] = '!' };
    str_printf(ud, "%c%s ", marks[x->kind], x->path);
}

static void changes_are_seen(void **state)
{
    (void)state;
    struct box_listing before = { 0 }, after = { 0 };
    make("same", "1");
    make("grown", "1");
    make("gone", "1");
    make("bad\n", "1");
    box_list(&before, dir_fd, 0);
    make("grown", "22");
    make("new", "3");
    assert_int_equal(unlinkat(dir_fd, "gone", 0), 0);
    box_list(&after, dir_fd, 0);
    AUTO(str_clear) struct str told = STR_INIT(1000);
    box_compare(&before, &after, tell, &told);
    assert_string_equal(str_peek(&told), "-gone +grown +new ");
    box_listing_know(&before, dir_fd, "new");
    box_listing_know(&before, dir_fd, "grown");
    box_listing_know(&before, dir_fd, "none");
    str_clear(&told);
    box_compare(&before, &after, tell, &told);
    assert_string_equal(str_peek(&told), "-gone ");
    after.cut = true; /* then what is missing is no proof */
    str_clear(&told);
    box_compare(&before, &after, tell, &told);
    assert_string_equal(str_peek(&told), "");
    box_listing_clear(&before);
    box_listing_clear(&after);
}

static struct box_entry entry(char *path, enum box_kind kind, uint64_t ino)
{
    return (struct box_entry){ .path = path, .kind = kind, .ino = ino };
}

static void whiteouts_are_told_once(void **state)
{
    (void)state;
    struct box_listing before = { 0 }, after = { 0 };
    char a[] = "a", d[] = "d", in_d[] = "d/x";
    const struct box_entry first[] = { entry(a, BOX_IS_FILE, 1), entry(d, BOX_IS_GONE, 2) };
    const struct box_entry second[] = { entry(d, BOX_IS_GONE, 3), entry(in_d, BOX_IS_FILE, 4),
                                        entry(a, BOX_IS_GONE, 2) };
    for (size_t i = 0; i < countof(first); i++)
        box_listing_add(&before, &first[i]);
    for (size_t i = 0; i < countof(second); i++)
        box_listing_add(&after, &second[i]);
    box_listing_sort(&before);
    box_listing_sort(&after);
    AUTO(str_clear) struct str told = STR_INIT(1000);
    box_compare(&before, &after, tell, &told);
    assert_string_equal(str_peek(&told), "-a +d/x ");
    box_listing_clear(&before);
    box_listing_clear(&after);
}

static void a_look_that_finds_nothing_new_is_known(void **state)
{
    (void)state;
    struct box_listing before = { 0 }, now = { 0 };
    char a[] = "a", b[] = "b";
    const struct box_entry entries[] = { entry(a, BOX_IS_FILE, 1), entry(b, BOX_IS_FILE, 2) };
    assert_true(box_listing_is(&before, &now));
    for (size_t i = 0; i < countof(entries); i++) {
        box_listing_add(&before, &entries[i]);
        assert_false(box_listing_is(&before, &now));
        box_listing_add(&now, &entries[i]);
        assert_true(box_listing_is(&before, &now));
    }
    now.v[1].ctime_ns++;
    assert_false(box_listing_is(&before, &now));
    now.v[1].ctime_ns--;
    now.cut = true; /* what was not seen may be new */
    assert_false(box_listing_is(&before, &now));
    box_listing_clear(&before);
    box_listing_clear(&now);
}

static void what_is_met_is_judged(void **state)
{
    static const struct {
        struct box_seen seen;
        unsigned flags;
        enum box_kind kind;
        const char *path;
    } cases[] = {
        { { "", "a", 0, S_IFREG, 0 }, 0, BOX_IS_FILE, "a" },
        { { "d/", "a", 1, S_IFREG, 0 }, 0, BOX_IS_FILE, "d/a" },
        { { "", ".a", 0, S_IFREG, 0 }, 0, BOX_IS_NOTHING, NULL },
        { { "", ".a", 0, S_IFREG, 0 }, BOX_LIST_HIDDEN, BOX_IS_FILE, ".a" },
        { { "", "a", 0, S_IFLNK, 0 }, 0, BOX_IS_NOTHING, NULL },
        { { "", "a", 0, S_IFIFO, 0 }, BOX_LIST_UPPER, BOX_IS_NOTHING, NULL },
        { { "", "a", 0, S_IFCHR, 0 }, 0, BOX_IS_NOTHING, NULL },
        { { "", "a", 0, S_IFCHR, 0 }, BOX_LIST_UPPER, BOX_IS_GONE, "a" },
        { { "", ".a", 0, S_IFCHR, 0 }, BOX_LIST_UPPER, BOX_IS_GONE, ".a" },
        { { "", "a", 0, S_IFCHR, 259 }, BOX_LIST_UPPER, BOX_IS_NOTHING, NULL },
        { { "", "\xff", 0, S_IFCHR, 0 }, BOX_LIST_UPPER, BOX_IS_NOTHING, NULL },
        { { "", "..", 0, S_IFREG, 0 }, BOX_LIST_HIDDEN, BOX_IS_REFUSED, ".." },
        { { "", "a/b", 0, S_IFREG, 0 }, 0, BOX_IS_REFUSED, "a/b" },
        { { "d/", "\t\xff", 1, S_IFREG, 0 }, 0, BOX_IS_REFUSED, "d/ \xef\xbf\xbd" },
        { { "", "d", BOX_DEPTH_MAX - 1, S_IFDIR, 0 }, 0, BOX_IS_FOLDER, "d" },
        { { "", "d", BOX_DEPTH_MAX, S_IFDIR, 0 }, 0, BOX_IS_REFUSED, "d" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        char path[BOX_PATH_MAX + 1] = "";
        const char *why = NULL;
        assert_int_equal(box_judge(&cases[i].seen, cases[i].flags, path, &why), cases[i].kind);
        assert_string_equal(path, cases[i].path ? cases[i].path : "");
        assert_int_equal(why != NULL, cases[i].kind == BOX_IS_REFUSED);
    }
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
        TEST(whiteouts_are_told_once),
        TEST(a_look_that_finds_nothing_new_is_known),
        TEST(what_is_met_is_judged),
        TEST(opening_follows_nothing),
        TEST(putting_replaces_and_follows_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
