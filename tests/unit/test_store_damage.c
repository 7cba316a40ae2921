/* Databases that are newer, damaged, or cut by a power failure: said, never followed, and no more lost than was not yet kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "store.h"
#include "str.h"

enum { TURNS = 40, PAGE = 4096 };

static char dir[64], other[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static int begin(void **state)
{
    (void)state;
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(dir, sizeof(dir), "%s/test-damage-XXXXXX", base);
    (void)snprintf(other, sizeof(other), "%s/test-damage-XXXXXX", base);
    return mkdtemp(dir) && mkdtemp(other) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    (void)nftw(other, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}

/* A conversation of so many answered questions, each of a page's size. */
static void fill(struct store *s, int turns)
{
    struct session_row row;
    struct err e = { 0 };
    AUTO(str_clear) struct str text = STR_INIT(PAGE);
    while (text.len < PAGE - 100)
        str_puts(&text, "words ");
    assert_int_equal(store_session_get(s, "test", "room", NULL, &row, NULL, &e), 0);
    for (int i = 0; i < turns; i++) {
        autofree char *id = xasprintf("e%d", i);
        static char platform[] = "test", room[] = "room", who[] = "@ann";
        int64_t seq = 0, turn = 0, outbox = 0;
        bool fresh = false;
        const struct inbox_item item = { .platform = platform,
                                         .event_id = id,
                                         .room = room,
                                         .sender = who,
                                         .name = who,
                                         .text = text.buf,
                                         .session = row.id };
        static char status[] = "answered";
        const struct outbox_item answer = { .platform = platform, .txn = id, .room = room, .markdown = text.buf };
        assert_int_equal(store_inbox_add(s, &item, &seq, &fresh, &e), 0);
        assert_int_equal(store_turn_begin(s, row.id, seq, text.buf, &turn, &e), 0);
        const struct turn_row t = { .id = turn, .seq = seq, .answer = text.buf, .status = status };
        assert_int_equal(store_turn_end(s, &t, &answer, &outbox, &e), 0);
    }
    session_row_clear(&row);
}

/* -1: it could not be read, and e says why. */
static int turns_in(struct store *s, struct err *e)
{
    struct session_row row;
    struct turn_row *turns = NULL;
    size_t n = 0;
    int rc = store_session_get(s, "test", "room", NULL, &row, NULL, e);
    if (rc == 0)
        rc = store_turns(s, row.id, 1000, &turns, &n, e);
    for (size_t i = 0; i < n; i++)
        turn_row_clear(&turns[i]);
    free(turns);
    session_row_clear(&row);
    return rc < 0 ? -1 : (int)n;
}

static void make(void)
{
    struct store *s = NULL;
    struct err e = { 0 };
    assert_int_equal(store_open(&s, dir, &e), 0);
    fill(s, TURNS);
    store_close(s);
}

static void overwrite(off_t at, const void *bytes, size_t n)
{
    autofree char *path = xasprintf("%s/sandbook.db", dir);
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, bytes, n, at), (ssize_t)n);
}

/* user_version is at byte 60, most significant byte first. */
static void a_newer_database_is_refused_and_left_as_it_is(void **state)
{
    static const unsigned char version[] = { 0, 0, 3, 231 };
    struct store *s = NULL;
    struct err e = { 0 };
    (void)state;
    make();
    overwrite(60, version, sizeof(version));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store_open(&s, dir, &e), -1);
        assert_non_null(strstr(e.msg, "newer Sandbook (schema 999"));
    }
    assert_int_equal(store_open_beside(&s, dir, &e), -1);
    assert_int_equal(e.kind, ERR_CONFIG);
}

static void what_is_no_database_is_named_with_the_cure(void **state)
{
    struct store *s = NULL;
    struct err e = { 0 };
    (void)state;
    make();
    overwrite(0, "not a database at all", 21);
    assert_int_equal(store_open(&s, dir, &e), -1);
    assert_int_equal(e.kind, ERR_STORE);
    assert_non_null(strstr(e.msg, "damaged"));
    assert_non_null(strstr(e.msg, "backup"));
}

/* Whichever page is gone: an answer or an error, never a crash. */
static void a_damaged_page_is_an_error_and_nothing_worse(void **state)
{
    char page[PAGE];
    struct stat st;
    int refused = 0;
    (void)state;
    make();
    autofree char *path = xasprintf("%s/sandbook.db", dir), *journal = xasprintf("%s-wal", path);
    AUTO(str_clear) struct str whole = STR_INIT(16 << 20);
    struct err e = { 0 };
    assert_int_equal(str_read_file(&whole, path, &e), 0);
    assert_int_equal(stat(path, &st), 0);
    for (off_t at = PAGE; at < st.st_size; at += PAGE) {
        struct store *s = NULL;
        memset(page, at / PAGE % 2 ? 0xff : 0, sizeof(page));
        overwrite(at, page, sizeof(page));
        const bool bad = store_open(&s, dir, &e) < 0 || turns_in(s, &e) < 0;
        if (bad)
            assert_int_equal(e.kind, ERR_STORE);
        refused += bad;
        store_close(s);
        (void)unlink(journal); /* its pages belong to the damaged one */
        overwrite(0, whole.buf, whole.len);
    }
    assert_true(refused > 0);
}

static void copy(const char *name, size_t max)
{
    autofree char *from = xasprintf("%s/%s", dir, name), *to = xasprintf("%s/%s", other, name);
    AUTO(str_clear) struct str bytes = STR_INIT(64 << 20);
    struct err e = { 0 };
    assert_int_equal(str_read_file(&bytes, from, &e), 0);
    autoclose int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write_all(fd, str_peek(&bytes), bytes.len < max ? bytes.len : max), 0);
}

/* As a power failure leaves it: the journal ends anywhere. What is there is whole: of so many turns the first. */
static void a_journal_that_ends_anywhere_holds_what_was_kept_before(void **state)
{
    struct store *s = NULL, *found = NULL;
    struct err e = { 0 };
    struct stat st;
    int last = 0;
    (void)state;
    assert_int_equal(store_open(&s, dir, &e), 0);
    store_close(s); /* the tables are in the database, all else will be in the journal */
    assert_int_equal(store_open(&s, dir, &e), 0);
    fill(s, TURNS / 4);
    autofree char *wal = xasprintf("%s/sandbook.db-wal", dir);
    assert_int_equal(stat(wal, &st), 0);
    for (off_t size = 0; size <= st.st_size; size += 3001) {
        copy("sandbook.db", SIZE_MAX);
        copy("sandbook.db-wal", (size_t)size);
        assert_int_equal(store_open(&found, other, &e), 0);
        const int n = turns_in(found, &e);
        assert_true(n >= last);
        last = n;
        store_close(found);
        (void)nftw(other, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        assert_int_equal(mkdir(other, 0700), 0);
    }
    assert_in_range(last, 1, TURNS / 4);
    store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_newer_database_is_refused_and_left_as_it_is, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_database_is_named_with_the_cure, begin, end),
        cmocka_unit_test_setup_teardown(a_damaged_page_is_an_error_and_nothing_worse, begin, end),
        cmocka_unit_test_setup_teardown(a_journal_that_ends_anywhere_holds_what_was_kept_before, begin, end),
    };
    return cmocka_run_group_tests_name("store_damage", tests, NULL, NULL);
}
