/* Checkpoints on disk: read back whole and unchanged, by whom they belong to, or not at all. */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>
#include "digest.h"
#include "json.h"
#include "label.h"
#include "store.h"
#include "str.h"

#define MIB (1 << 20)

struct fixture {
    char dir[64];
    struct store *s;
    struct session_row a, b;
};

static int begin(void **state)
{
    static struct fixture f;
    struct err e = { 0 };
    f = (struct fixture){ .dir = "/tmp/test-checkpoints-XXXXXX" };
    *state = &f;
    return mkdtemp(f.dir) && store_open(&f.s, f.dir, &e) == 0 &&
                   store_session_get(f.s, "test", "a", NULL, &f.a, NULL, &e) == 0 &&
                   store_session_get(f.s, "test", "b", NULL, &f.b, NULL, &e) == 0
               ? 0
               : -1;
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
    struct fixture *f = *state;
    session_row_clear(&f->a);
    session_row_clear(&f->b);
    store_close(f->s);
    return nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void keep(struct fixture *f, const char *session, int cell, const char *bytes)
{
    struct checkpoint_draft *d = NULL;
    struct err e = { 0 };
    autojson struct json *report = json_new_object();
    json_set_int(report, "kept", 3);
    json_set_str(report, "python", "3.13.5");
    if (store_checkpoint_begin(&d, f->s, session, cell, "image-1", &e) < 0 ||
        store_checkpoint_add(d, bytes, strlen(bytes), MIB, &e) < 0 || store_checkpoint_finish(d, report, &e) < 0)
        fail_msg("%s", e.msg);
}

static int64_t newest(struct fixture *f, const char *session)
{
    AUTO(checkpoint_row_clear) struct checkpoint_row row = { 0 };
    struct err e = { 0 };
    assert_int_equal(store_checkpoint_newest(f->s, session, 0, &row, &e), 0);
    return row.id;
}

static char *path_of(const struct fixture *f, const char *session, int64_t id)
{
    return xasprintf("%s/sessions/%s/checkpoints/%lld", f->dir, session, (long long)id);
}

/* Opened and found right; NULL: not, and e says why. */
static struct checkpoint_source *found(struct fixture *f, const char *session, int64_t id, const char *image,
                                       struct err *e)
{
    struct checkpoint_source *c = NULL;
    if (store_checkpoint_open(&c, f->s, session, id, image, e) < 0)
        return NULL;
    int more = 1;
    while (more > 0)
        more = store_checkpoint_verify(c, e);
    if (more == 0)
        return c;
    store_checkpoint_close(c);
    return NULL;
}

static void assert_refused(struct fixture *f, const char *session, int64_t id, const char *image, const char *why)
{
    struct err e = { 0 };
    assert_null(found(f, session, id, image, &e));
    if (!strstr(e.msg, why))
        fail_msg("\"%s\" is not in: %s", why, e.msg);
}

static size_t files_in(const struct fixture *f, const char *session)
{
    autofree char *path = xasprintf("%s/sessions/%s/checkpoints", f->dir, session);
    DIR *d = opendir(path);
    size_t n = 0;
    for (const struct dirent *x = d ? readdir(d) : NULL; x; x = readdir(d))
        n += x->d_name[0] != '.' || strcmp(x->d_name, ".incoming") == 0;
    if (d)
        (void)closedir(d);
    return n;
}

/* ---- what holds ---- */

static void a_checkpoint_is_read_back_as_it_was(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    char got[32] = "";
    keep(f, f->a.id, 7, "the state");
    struct checkpoint_source *c = found(f, f->a.id, newest(f, f->a.id), "image-1", &e);
    assert_non_null(c);
    const struct checkpoint_state s = store_checkpoint_state(c);
    assert_int_equal(s.cell, 7);
    assert_int_equal(s.bytes, 9);
    assert_int_equal(pread(s.fd, got, (size_t)s.bytes, s.from), 9);
    assert_string_equal(got, "the state");
    assert_int_equal(fcntl(s.fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    store_checkpoint_close(c);
}

static void a_large_one_is_checked_in_steps(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    struct checkpoint_draft *d = NULL;
    struct checkpoint_source *c = NULL;
    autojson struct json *report = json_new_object();
    autofree char *block = xcalloc(1, MIB);
    assert_int_equal(store_checkpoint_begin(&d, f->s, f->a.id, 1, "i", &e), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(store_checkpoint_add(d, block, MIB, 20 * MIB, &e), 0);
    assert_int_equal(store_checkpoint_add(d, block, 1, 20 * MIB, &e), -1);
    assert_int_equal(e.kind, ERR_DATA);
    assert_int_equal(store_checkpoint_finish(d, report, &e), 0);
    assert_int_equal(store_checkpoint_open(&c, f->s, f->a.id, newest(f, f->a.id), "i", &e), 0);
    assert_int_equal(store_checkpoint_verify(c, &e), 1);
    assert_int_equal(store_checkpoint_verify(c, &e), 1);
    assert_int_equal(store_checkpoint_verify(c, &e), 0);
    assert_int_equal(store_checkpoint_state(c).bytes, 20 * MIB);
    store_checkpoint_close(c);
}

static void an_empty_state_is_one(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    keep(f, f->a.id, 0, "");
    struct checkpoint_source *c = found(f, f->a.id, newest(f, f->a.id), "image-1", &e);
    assert_non_null(c);
    store_checkpoint_close(c);
}

static void the_two_newest_are_kept_and_older_files_go(void **state)
{
    struct fixture *f = *state;
    AUTO(checkpoint_row_clear) struct checkpoint_row row = { 0 };
    struct err e = { 0 };
    for (int cell = 1; cell <= 4; cell++)
        keep(f, f->a.id, cell, "x");
    keep(f, f->b.id, 9, "y");
    assert_int_equal(files_in(f, f->a.id), 2);
    assert_int_equal(store_checkpoint_newest(f->s, f->a.id, 0, &row, &e), 0);
    assert_int_equal(row.cell, 4);
    assert_non_null(strstr(row.report, "3.13.5"));
    const int64_t id = row.id;
    checkpoint_row_clear(&row);
    assert_int_equal(store_checkpoint_newest(f->s, f->a.id, id, &row, &e), 0);
    assert_int_equal(row.cell, 3);
    const int64_t older = row.id;
    checkpoint_row_clear(&row);
    assert_int_equal(store_checkpoint_newest(f->s, f->a.id, older, &row, &e), 0);
    assert_int_equal(row.id, 0);
}

static void one_that_is_given_up_leaves_nothing_and_the_old_one_stays(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    struct checkpoint_draft *d = NULL;
    keep(f, f->a.id, 1, "old");
    const int64_t id = newest(f, f->a.id);
    assert_int_equal(store_checkpoint_begin(&d, f->s, f->a.id, 2, "image-1", &e), 0);
    assert_int_equal(store_checkpoint_add(d, "new", 3, MIB, &e), 0);
    assert_int_equal(files_in(f, f->a.id), 2);
    store_checkpoint_drop(d);
    assert_int_equal(files_in(f, f->a.id), 1);
    assert_int_equal(newest(f, f->a.id), id);
}

static void what_a_crash_left_is_taken_away(void **state)
{
    struct fixture *f = *state;
    keep(f, f->a.id, 1, "x");
    autofree char *stray = path_of(f, f->a.id, 900);
    autofree char *half = xasprintf("%s/sessions/%s/checkpoints/.incoming", f->dir, f->a.id);
    const char *const left[] = { stray, half };
    for (size_t i = 0; i < countof(left); i++) {
        const int fd = open(left[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        (void)close(fd);
    }
    keep(f, f->a.id, 2, "y");
    assert_int_equal(files_in(f, f->a.id), 2);
    assert_int_equal(access(stray, F_OK), -1);
}

static void forgotten_are_rows_and_files_of_that_session_only(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    keep(f, f->a.id, 1, "x");
    keep(f, f->b.id, 1, "y");
    assert_int_equal(store_checkpoints_forget(f->s, f->a.id, &e), 0);
    assert_int_equal(files_in(f, f->a.id), 0);
    assert_int_equal(newest(f, f->a.id), 0);
    assert_int_equal(files_in(f, f->b.id), 1);
}

/* ---- what is refused ---- */

static void any_changed_byte_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err e = { 0 };
    keep(f, f->a.id, 1, "state");
    const int64_t id = newest(f, f->a.id);
    autofree char *path = path_of(f, f->a.id, id);
    autoclose int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, LABEL_BYTES + 5 + DIGEST_BYTES);
    assert_int_equal(st.st_mode & 0777, 0600);
    for (off_t at = 0; at < st.st_size; at += at < LABEL_BYTES - 40 ? 37 : 1) {
        unsigned char was, is;
        assert_int_equal(pread(fd, &was, 1, at), 1);
        is = was ^ 1;
        assert_int_equal(pwrite(fd, &is, 1, at), 1);
        if (found(f, f->a.id, id, "image-1", &e))
            fail_msg("byte %lld may be changed", (long long)at);
        assert_int_equal(pwrite(fd, &was, 1, at), 1);
    }
    struct checkpoint_source *c = found(f, f->a.id, id, "image-1", &e);
    assert_non_null(c);
    store_checkpoint_close(c);
}

static void one_that_is_cut_or_longer_is_refused(void **state)
{
    struct fixture *f = *state;
    keep(f, f->a.id, 1, "some state");
    const int64_t id = newest(f, f->a.id);
    autofree char *path = path_of(f, f->a.id, id);
    assert_int_equal(truncate(path, LABEL_BYTES + 10 + DIGEST_BYTES + 1), 0);
    assert_refused(f, f->a.id, id, "image-1", "not as long");
    assert_int_equal(truncate(path, LABEL_BYTES + 3), 0);
    assert_refused(f, f->a.id, id, "image-1", "not as long");
    assert_int_equal(truncate(path, 100), 0);
    assert_refused(f, f->a.id, id, "image-1", "not a checkpoint");
    assert_int_equal(truncate(path, 0), 0);
    assert_refused(f, f->a.id, id, "image-1", "not a checkpoint");
    assert_int_equal(unlink(path), 0);
    assert_refused(f, f->a.id, id, "image-1", "cannot open");
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_refused(f, f->a.id, id, "image-1", "cannot open");
}

static void another_sessions_is_refused(void **state)
{
    struct fixture *f = *state;
    keep(f, f->a.id, 1, "mine");
    keep(f, f->b.id, 1, "yours");
    autofree char *mine = path_of(f, f->a.id, newest(f, f->a.id)), *yours = path_of(f, f->b.id, newest(f, f->b.id));
    assert_int_equal(rename(mine, yours), 0);
    assert_refused(f, f->b.id, newest(f, f->b.id), "image-1", "another session");
}

static void another_images_is_refused_with_both_named(void **state)
{
    struct fixture *f = *state;
    keep(f, f->a.id, 1, "x");
    assert_refused(f, f->a.id, newest(f, f->a.id), "image-2", "image-1, now image-2");
}

static void another_version_is_refused(void **state)
{
    struct fixture *f = *state;
    keep(f, f->a.id, 1, "x");
    autofree char *path = path_of(f, f->a.id, newest(f, f->a.id));
    autoclose int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "\x02", 1, 8), 1);
    assert_refused(f, f->a.id, newest(f, f->a.id), "image-1", "version 2");
}

static void another_stores_key_opens_nothing(void **state)
{
    struct fixture *f = *state;
    keep(f, f->a.id, 1, "x");
    autofree char *key = xasprintf("%s/checkpoint.key", f->dir);
    struct stat st;
    assert_int_equal(stat(key, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(unlink(key), 0); /* a new one is made */
    assert_refused(f, f->a.id, newest(f, f->a.id), "image-1", "changed it");
    assert_int_equal(chmod(key, 0644), 0);
    assert_refused(f, f->a.id, newest(f, f->a.id), "image-1", "chmod 600");
    assert_int_equal(chmod(key, 0600), 0);
    assert_int_equal(truncate(key, 3), 0);
    assert_refused(f, f->a.id, newest(f, f->a.id), "image-1", "32 bytes");
}

/* ---- the journal ---- */

static void ran(struct fixture *f, int number, int base, const char *code, enum cell_status status)
{
    struct err e = { 0 };
    int64_t turn = 0;
    struct cell c;
    cell_init(&c);
    c.number = number;
    c.status = status;
    if (store_turn_begin(f->s, f->a.id, 0, "q", &turn, &e) < 0 ||
        store_cell_add(f->s, f->a.id, turn, code, &c, base, &e) < 0)
        fail_msg("%s", e.msg);
    cell_clear(&c);
}

static char *journal(struct fixture *f, int at)
{
    AUTO(str_clear) struct str text = STR_INIT(1000);
    struct journal_cell *cells = NULL;
    size_t n = 0;
    struct err e = { 0 };
    assert_int_equal(store_journal(f->s, f->a.id, at, &cells, &n, &e), 0);
    for (size_t i = 0; i < n; i++) {
        str_printf(&text, "%d%s%s ", cells[i].number, cells[i].code, cells[i].worked ? "" : "!");
        journal_cell_clear(&cells[i]);
    }
    free(cells);
    return str_take(&text);
}

static void the_journal_is_the_way_that_led_there(void **state)
{
    struct fixture *f = *state;
    ran(f, 1, 0, "a", CELL_OK);
    ran(f, 2, 1, "b", CELL_OK);
    ran(f, 3, 2, "c", CELL_ERROR);
    ran(f, 4, 1, "d", CELL_OK); /* 2 and 3 were undone */
    ran(f, 5, 4, "e", CELL_OOM);
    ran(f, 6, 0, "f", CELL_OK); /* after a reset */
    autofree char *all = journal(f, 4), *undone = journal(f, 3), *reset = journal(f, 6), *none = journal(f, 0),
                  *unknown = journal(f, 99);
    assert_string_equal(all, "1a 4d ");
    assert_string_equal(undone, "1a 2b 3c! ");
    assert_string_equal(reset, "6f ");
    assert_string_equal(none, "");
    assert_string_equal(unknown, "");
}

static void where_a_session_is_outlives_the_program(void **state)
{
    struct fixture *f = *state;
    struct session_row row;
    struct err e = { 0 };
    ran(f, 1, 0, "a", CELL_OK);
    ran(f, 2, 1, "b", CELL_OK);
    assert_int_equal(store_session_find(f->s, f->a.id, &row, &e), 0);
    assert_int_equal(row.base, 2); /* never said: the newest */
    session_row_clear(&row);
    assert_int_equal(store_session_base(f->s, f->a.id, 1, &e), 0);
    store_close(f->s);
    assert_int_equal(store_open(&f->s, f->dir, &e), 0);
    assert_int_equal(store_session_find(f->s, f->a.id, &row, &e), 0);
    assert_int_equal(row.base, 1);
    session_row_clear(&row);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_checkpoint_is_read_back_as_it_was),
        TEST(a_large_one_is_checked_in_steps),
        TEST(an_empty_state_is_one),
        TEST(the_two_newest_are_kept_and_older_files_go),
        TEST(one_that_is_given_up_leaves_nothing_and_the_old_one_stays),
        TEST(what_a_crash_left_is_taken_away),
        TEST(forgotten_are_rows_and_files_of_that_session_only),
        TEST(any_changed_byte_is_refused),
        TEST(one_that_is_cut_or_longer_is_refused),
        TEST(another_sessions_is_refused),
        TEST(another_images_is_refused_with_both_named),
        TEST(another_version_is_refused),
        TEST(another_stores_key_opens_nothing),
        TEST(the_journal_is_the_way_that_led_there),
        TEST(where_a_session_is_outlives_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
