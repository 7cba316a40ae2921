/* Versions of files: what cells make of them, lines of a branched session, room, links for a box. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>
#include "store.h"
#include "str.h"

static char dir[64];
static struct store *store;
static struct session_row session;

static int setup(void **state)
{
    struct err e = { 0 };
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/store-files-XXXXXX");
    if (!mkdtemp(dir) || store_open(&store, dir, &e) < 0)
        return -1;
    return store_session_get(store, "local", "r", NULL, &session, NULL, &e);
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    session_row_clear(&session);
    store_close(store);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command);
}

static char *file_with(const char *text)
{
    static int n;
    char *path = xasprintf("%s/made-%d", dir, ++n);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write_all(fd, text, strlen(text)), 0);
    (void)close(fd);
    return path;
}

static int made(const char *name, const char *text, int cell, int64_t max, struct file_version *v, struct err *e)
{
    autofree char *path = file_with(text);
    const struct file_made m = { .name = name, .path = path, .cell = cell, .max_total = max };
    return store_file_made(store, session.id, &m, v, e);
}

static void makes(const char *name, const char *text, int cell, int64_t version)
{
    struct err e = { 0 };
    struct file_version v = { 0 };
    assert_int_equal(made(name, text, cell, 0, &v, &e), 0);
    assert_int_equal(v.version, version);
}

static void sends(const char *name, const char *text)
{
    struct err e = { 0 };
    autofree char *path = file_with(text);
    AUTO(file_row_clear) struct file_row row = { 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const struct file_offer o = { .name = name, .seq = 1, .fd = fd, .max_bytes = 1000 };
    assert_int_equal(store_file_add(store, session.id, &o, &row, &e), 0);
    (void)close(fd);
}

/* "a=text b=text ": the newest of each name that is there; cell -1: on the session's line. */
static void assert_files(int cell, const char *expected)
{
    struct file_row *rows = NULL;
    struct err e = { 0 };
    size_t n = 0;
    AUTO(str_clear) struct str all = STR_INIT(10000);
    assert_int_equal(cell < 0 ? store_files(store, session.id, &rows, &n, &e)
                              : store_files_after(store, session.id, cell, &rows, &n, &e),
                     0);
    for (size_t i = 0; i < n; i++) {
        bool newest = true;
        for (size_t k = i + 1; k < n; k++)
            newest = newest && strcmp(rows[i].name, rows[k].name) != 0;
        AUTO(str_clear) struct str text = STR_INIT(1000);
        if (newest && !rows[i].gone) {
            assert_int_equal(str_read_file(&text, rows[i].path, &e), 0);
            str_printf(&all, "%s=%s ", rows[i].name, str_peek(&text));
        }
    }
    for (size_t i = 0; i < n; i++)
        file_row_clear(&rows[i]);
    free(rows);
    assert_string_equal(str_peek(&all), expected);
}

static void what_a_cell_makes_is_the_next_version(void **state)
{
    struct err e = { 0 };
    struct file_version v;
    (void)state;
    sends("a.csv", "sent");
    makes("a.csv", "changed", 1, 2);
    makes("out/b/c", "deep", 1, 1);
    assert_files(-1, "a.csv=changed out/b/c=deep ");
    makes("a.csv", "changed", 2, 2); /* as it was: no version */
    assert_int_equal(store_file_gone(store, session.id, "out", 3, &e), 0);
    assert_files(-1, "a.csv=changed ");
    makes("out/b/c", "again", 4, 3);
    assert_int_equal(store_file_gone(store, session.id, "a.csv", 4, &e), 0);
    assert_int_equal(store_file_gone(store, session.id, "none", 4, &e), 0);
    assert_files(-1, "out/b/c=again ");
    static const char *const wrong[] = { "", "..", "a/../b", "/a", "a//b", "a/", "." };
    for (size_t i = 0; i < countof(wrong); i++)
        assert_int_equal(made(wrong[i], "x", 5, 0, &v, &e), -1);
}

static void each_line_has_its_own(void **state)
{
    struct err e = { 0 };
    (void)state;
    sends("s", "sent");
    makes("a", "one", 1, 1);
    makes("a", "two", 2, 2);
    makes("b", "two", 2, 1);
    assert_int_equal(store_branch(store, session.id, 1, 3, &e), 0);
    assert_files(-1, "s=sent a=one ");
    makes("a", "three", 3, 3);
    assert_int_equal(store_branch(store, session.id, 2, 4, &e), 0); /* back to the first line */
    assert_files(-1, "s=sent a=two b=two ");
    assert_int_equal(store_file_gone(store, session.id, "a", 4, &e), 0);
    sends("late", "sent later");
    assert_files(-1, "s=sent b=two late=sent later ");
    assert_int_equal(store_branch(store, session.id, 3, 5, &e), 0);
    assert_files(-1, "s=sent a=three late=sent later ");
    assert_files(0, "s=sent late=sent later ");
    assert_files(2, "s=sent a=two b=two late=sent later ");
    assert_files(4, "s=sent b=two late=sent later ");
}

static void old_results_make_room_and_what_was_sent_does_not(void **state)
{
    struct err e = { 0 };
    struct file_version v;
    (void)state;
    sends("s", "0123456789");
    assert_int_equal(made("r", "aaaaa", 1, 25, &v, &e), 0);
    assert_int_equal(made("r", "bbbbb", 2, 25, &v, &e), 0);
    assert_int_equal(made("r", "ccccccc", 3, 25, &v, &e), 0); /* the first goes */
    assert_int_equal(v.version, 3);
    assert_files(-1, "s=0123456789 r=ccccccc ");
    assert_files(1, "s=0123456789 ");
    assert_files(2, "s=0123456789 r=bbbbb ");
    assert_int_equal(made("t", "0123456789", 4, 25, &v, &e), -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_files(-1, "s=0123456789 r=ccccccc ");
}

static void a_box_gets_links_under_their_names(void **state)
{
    struct err e = { 0 };
    struct stat a, b;
    (void)state;
    autofree char *path = file_with("text");
    const struct file_link links[] = { { path, "x/y/z" }, { path, "a (v1).csv" } };
    int fd = -1, second = -1;
    assert_int_equal(store_files_lay(store, session.id, links, 2, true, &fd, &e), 0);
    assert_int_equal(fstatat(fd, "x/y/z", &a, 0), 0);
    assert_int_equal(stat(path, &b), 0);
    assert_int_equal(a.st_ino, b.st_ino);
    assert_int_equal(store_files_lay(store, session.id, links, 1, false, &second, &e), 0);
    assert_int_equal(faccessat(fd, "a (v1).csv", F_OK, 0), 0); /* the first still is there */
    store_files_unlay(store, session.id);
    assert_int_equal(faccessat(fd, "a (v1).csv", F_OK, 0), -1);
    assert_int_equal(access(path, F_OK), 0);
    (void)close(fd);
    (void)close(second);
}

static void sends_in(const char *message, const char *name, const char *text)
{
    struct err e = { 0 };
    autofree char *path = file_with(text);
    AUTO(file_row_clear) struct file_row row = { 0 };
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    const struct file_offer o = { .name = name, .seq = 1, .fd = fd, .max_bytes = 1000, .message = message };
    assert_int_equal(store_file_add(store, session.id, &o, &row, &e), 0);
}

static void assert_sessions_of(const char *message, size_t expected)
{
    struct err e = { 0 };
    char **ids = NULL;
    size_t n = 0;
    assert_int_equal(store_message_sessions(store, session.platform, message, &ids, &n, &e), 0);
    assert_int_equal(n, expected);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(ids[i], session.id);
        free(ids[i]);
    }
    free(ids);
    assert_int_equal(store_message_sessions(store, "elsewhere", message, &ids, &n, &e), 0);
    assert_int_equal(n, 0);
    free(ids);
}

static void assert_withdrawn(const char *expected)
{
    struct err e = { 0 };
    autofree char *names = NULL;
    assert_int_equal(store_withdrawn(store, session.id, &names, &e), 0);
    assert_string_equal(names ? names : "", expected);
}

static void what_a_message_brought_goes_with_it(void **state)
{
    struct err e = { 0 };
    (void)state;
    sends_in("m1", "a.csv", "one");
    sends_in("m2", "a.csv", "two");
    sends_in("m1", "b.csv", "b");
    sends("tool.csv", "fetched"); /* in no message */
    makes("a.csv", "own", 1, 3);
    assert_sessions_of("m1", 1);
    assert_int_equal(store_files_withdraw(store, session.id, "m1", &e), 0);
    assert_int_equal(store_files_withdraw(store, session.id, "m1", &e), 0);
    assert_sessions_of("m1", 0);
    assert_files(-1, "tool.csv=fetched a.csv=own ");
    assert_int_equal(store_files_withdraw(store, session.id, "m2", &e), 0);
    assert_files(-1, "tool.csv=fetched a.csv=own ");
    assert_withdrawn("a.csv\nb.csv\na.csv");
    assert_int_equal(store_withdrawn_told(store, session.id, "a.csv\nb.csv", &e), 0);
    assert_withdrawn("a.csv"); /* which came while the others were told */
    assert_int_equal(store_withdrawn_told(store, session.id, "other", &e), 0);
    assert_int_equal(store_withdrawn_told(store, session.id, "a.csv", &e), 0);
    assert_withdrawn("");
}

static void links_of_boxes_go_by_name_or_with_the_next_start(void **state)
{
    struct err e = { 0 };
    struct file_row *rows = NULL;
    char *const names[] = { (char[]){ "a.csv" }, (char[]){ "../../secret" }, (char[]){ "none" } };
    size_t n = 0;
    int fd = -1;
    (void)state;
    sends("a.csv", "one");
    assert_int_equal(store_files(store, session.id, &rows, &n, &e), 0);
    const struct file_link links[] = { { rows[0].path, "a.csv" }, { rows[0].path, "kept.csv" } };
    assert_int_equal(store_files_lay(store, session.id, links, 2, true, &fd, &e), 0);
    store_files_unlink(store, session.id, names, 3);
    assert_int_equal(faccessat(fd, "a.csv", F_OK, 0), -1);
    assert_int_equal(faccessat(fd, "kept.csv", F_OK, 0), 0);
    store_close(store);
    assert_int_equal(store_open(&store, dir, &e), 0);
    assert_int_equal(faccessat(fd, "kept.csv", F_OK, 0), -1);
    assert_int_equal(access(rows[0].path, F_OK), 0);
    (void)close(fd);
    file_row_clear(&rows[0]);
    free(rows);
}

static void a_reader_beside_a_writer_sees_and_changes_nothing(void **state)
{
    struct err e = { 0 };
    struct store *beside = NULL;
    struct file_row *rows = NULL;
    size_t n = 0;
    (void)state;
    sends("s", "sent");
    assert_int_equal(store_open_beside(&beside, dir, &e), 0);
    assert_int_equal(store_files(beside, session.id, &rows, &n, &e), 0);
    assert_int_equal(n, 1);
    file_row_clear(&rows[0]);
    free(rows);
    assert_int_equal(store_branch(beside, session.id, 0, 1, &e), -1);
    store_close(beside);
    assert_int_equal(store_open_beside(&beside, "/tmp/there-is-none", &e), -1);
    assert_int_equal(e.kind, ERR_CONFIG);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_a_cell_makes_is_the_next_version),
        TEST(each_line_has_its_own),
        TEST(old_results_make_room_and_what_was_sent_does_not),
        TEST(a_box_gets_links_under_their_names),
        TEST(what_a_message_brought_goes_with_it),
        TEST(links_of_boxes_go_by_name_or_with_the_next_start),
        TEST(a_reader_beside_a_writer_sees_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
