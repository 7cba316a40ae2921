#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>
#include "store.h"
#include "str.h"

static char dir[64];

static struct store *opened(void)
{
    struct store *s = NULL;
    struct err e = { 0 };
    if (store_open(&s, dir, &e) < 0)
        fail_msg("%s", e.msg);
    return s;
}

static int make_dir(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/test-store-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static int drop_dir(void **state)
{
    (void)state;
    return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int file_with(const char *text)
{
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_true(fwrite(text, 1, strlen(text), f) == strlen(text) && fflush(f) == 0);
    int fd = dup(fileno(f));
    (void)fclose(f);
    assert_true(lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

static void content(const char *path, char *buf, size_t cap)
{
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    ssize_t n = read(fd, buf, cap - 1);
    assert_true(n >= 0);
    buf[n] = '\0';
    (void)close(fd);
}

static struct inbox_item item(const char *event)
{
    static char platform[] = "local", room[] = "r", sender[] = "ann", text[] = "hello";
    return (struct inbox_item){ .platform = platform,
                                .event_id = (char *)(uintptr_t)event,
                                .room = room,
                                .sender = sender,
                                .text = text,
                                .sent_ms = 5 };
}

static struct session_row session(struct store *s, const char *thread, bool *made)
{
    struct session_row r;
    struct err e = { 0 };
    if (store_session_get(s, "local", "r", thread, &r, made, &e) < 0)
        fail_msg("%s", e.msg);
    return r;
}

static void an_event_is_kept_once_however_often_it_comes(void **state)
{
    (void)state;
    struct store *s = opened();
    struct err e = { 0 };
    int64_t first = 0, again = 0;
    bool fresh = false;
    struct inbox_item i = item("e1");
    assert_int_equal(store_inbox_add(s, &i, &first, &fresh, &e), 0);
    assert_true(fresh);
    for (int n = 0; n < 3; n++) {
        assert_int_equal(store_inbox_add(s, &i, &again, &fresh, &e), 0);
        assert_false(fresh);
        assert_int_equal(again, first);
    }
    store_close(s);
    s = opened(); /* and after a restart */
    assert_int_equal(store_inbox_add(s, &i, &again, &fresh, &e), 0);
    assert_false(fresh);
    store_close(s);
}

static void open_items_come_back_oldest_first_and_done_ones_never(void **state)
{
    (void)state;
    struct store *s = opened();
    struct err e = { 0 };
    int64_t seq[3];
    bool fresh;
    static const char *const ids[] = { "a", "b", "c" };
    for (int n = 0; n < 3; n++) {
        struct inbox_item i = item(ids[n]);
        assert_int_equal(store_inbox_add(s, &i, &seq[n], &fresh, &e), 0);
    }
    assert_int_equal(store_inbox_set(s, seq[1], INBOX_DONE, &e), 0);
    assert_int_equal(store_inbox_set(s, seq[2], INBOX_RUNNING, &e), 0);
    struct inbox_item *got = NULL;
    size_t n = 0;
    assert_int_equal(store_inbox_open(s, &got, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_string_equal(got[0].event_id, "a");
    assert_string_equal(got[1].event_id, "c");
    assert_int_equal(got[1].state, INBOX_RUNNING);
    assert_null(got[0].thread);
    for (size_t k = 0; k < n; k++)
        inbox_item_clear(&got[k]);
    free(got);
    store_close(s);
}

static void a_thread_has_one_session_and_its_room_another(void **state)
{
    (void)state;
    struct store *s = opened();
    bool made = false;
    struct session_row room = session(s, NULL, &made), thread = session(s, "t1", &made);
    assert_true(made);
    struct session_row again = session(s, "t1", &made);
    assert_false(made);
    assert_string_equal(thread.id, again.id);
    assert_string_not_equal(thread.id, room.id);
    assert_null(room.thread);
    assert_int_equal(strlen(thread.id), 16);
    session_row_clear(&room);
    session_row_clear(&thread);
    session_row_clear(&again);
    struct session_row none;
    struct err e = { 0 };
    assert_int_equal(store_session_find(s, "0000000000000000", &none, &e), -1);
    assert_int_equal(e.kind, ERR_DATA);
    store_close(s);
}

static void a_room_that_goes_on_elsewhere_takes_its_session_along(void **state)
{
    (void)state;
    struct store *s = opened();
    struct err e = { 0 };
    bool moved = false, made = false;
    struct session_row was = session(s, NULL, NULL), thread = session(s, "t1", NULL), is;
    assert_int_equal(store_session_move(s, "local", "r", "r2", &moved, &e), 0);
    assert_true(moved);
    assert_int_equal(store_session_get(s, "local", "r2", NULL, &is, &made, &e), 0);
    assert_string_equal(is.id, was.id);
    assert_false(made);
    session_row_clear(&was);
    was = session(s, NULL, &made); /* somebody speaks in the old one all the same */
    assert_true(made);
    assert_int_equal(store_session_move(s, "local", "r", "r2", &moved, &e), 0);
    assert_false(moved);
    session_row_clear(&was);
    was = session(s, "t1", NULL);
    assert_string_equal(was.id, thread.id);
    session_row_clear(&was);
    session_row_clear(&thread);
    session_row_clear(&is);
    store_close(s);
}

static void the_same_name_again_is_a_new_version_and_the_old_one_stays(void **state)
{
    (void)state;
    struct store *s = opened();
    struct err e = { 0 };
    struct session_row r = session(s, NULL, NULL);
    struct file_row one, two;
    int fd = file_with("old"), fd2 = file_with("new");
    const char *name = "\xe9\x94\x80\xe5\x94\xae \xf0\x9f\x98\xb1.csv";
    const struct file_offer first = { name, 1, fd, 100, 0, NULL }, second = { name, 2, fd2, 100, 0, NULL };
    assert_int_equal(store_file_add(s, r.id, &first, &one, &e), 0);
    assert_int_equal(store_file_add(s, r.id, &second, &two, &e), 0);
    assert_int_equal(one.version, 1);
    assert_int_equal(two.version, 2);
    char buf[8];
    content(one.path, buf, sizeof buf);
    assert_string_equal(buf, "old");
    content(two.path, buf, sizeof buf);
    assert_string_equal(buf, "new");
    assert_int_equal(store_file_profile(s, two.id, "[]", &e), 0);
    struct file_row *all = NULL;
    size_t n = 0;
    assert_int_equal(store_files(s, r.id, &all, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_string_equal(all[1].path, two.path);
    assert_string_equal(all[1].profile, "[]");
    assert_null(all[0].profile);
    for (size_t k = 0; k < n; k++)
        file_row_clear(&all[k]);
    free(all);
    file_row_clear(&one);
    file_row_clear(&two);
    session_row_clear(&r);
    (void)close(fd);
    (void)close(fd2);
    store_close(s);
}

static void a_file_that_is_too_large_or_badly_named_leaves_nothing(void **state)
{
    (void)state;
    struct store *s = opened();
    struct err e = { 0 };
    struct session_row r = session(s, NULL, NULL);
    struct file_row f;
    static const char *const names[] = { "..", ".", "", "a/b", "ok.csv" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int fd = file_with("0123456789");
        assert_int_equal(store_file_add(s, r.id, &(struct file_offer){ names[i], 1, fd, 9, 0, NULL }, &f, &e), -1);
        assert_int_equal(e.kind, ERR_DATA);
        (void)close(fd);
    }
    struct file_row *all = NULL;
    size_t n = 9;
    assert_int_equal(store_files(s, r.id, &all, &n, &e), 0);
    assert_int_equal(n, 0);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/sessions/%s/files/.incoming", dir, r.id);
    assert_int_equal(access(path, F_OK), -1);
    session_row_clear(&r);
    store_close(s);
}

static void a_turn_ends_with_its_answer_in_the_outbox_or_not_at_all(void **state)
{
    (void)state;
    struct store *s = opened();
    struct err e = { 0 };
    struct session_row r = session(s, "t", NULL);
    struct inbox_item i = item("q");
    int64_t seq, turn, out = 0, out2 = 0;
    bool fresh;
    assert_int_equal(store_inbox_add(s, &i, &seq, &fresh, &e), 0);
    assert_int_equal(store_turn_begin(s, r.id, seq, "hello", &turn, &e), 0);
    struct cell c;
    cell_init(&c);
    c.number = 1;
    assert_int_equal(store_cell_add(s, r.id, turn, "1+1", &c, 0, &e), 0);
    cell_clear(&c);
    char answer[] = "2", status[] = "answered", messages[] = "[]", platform[] = "local", txn[] = "local:q:answer",
         room[] = "r";
    struct turn_row t = { .id = turn, .seq = seq, .answer = answer, .status = status, .messages = messages };
    struct outbox_item o = {
        .turn = turn, .platform = platform, .txn = txn, .room = room, .markdown = answer, .session = r.id
    };
    assert_int_equal(store_turn_end(s, &t, &o, &out, &e), 0);
    assert_int_equal(store_outbox_add(s, &o, &out2, &e), 0);
    assert_int_equal(out, out2); /* the same key is the same post */
    store_close(s);

    s = opened(); /* killed before the platform had it */
    struct outbox_item *posts = NULL;
    size_t n = 0;
    assert_int_equal(store_outbox_open(s, &posts, &n, &e), 0);
    assert_int_equal(n, 1);
    assert_string_equal(posts[0].markdown, "2");
    assert_int_equal(store_outbox_sent(s, posts[0].id, &e), 0);
    outbox_item_clear(&posts[0]);
    free(posts);
    assert_int_equal(store_outbox_open(s, &posts, &n, &e), 0);
    assert_int_equal(n, 0);
    free(posts);
    struct inbox_item *open_items = NULL;
    assert_int_equal(store_inbox_open(s, &open_items, &n, &e), 0);
    assert_int_equal(n, 0);
    free(open_items);
    struct turn_row *turns = NULL;
    assert_int_equal(store_turns(s, r.id, 10, &turns, &n, &e), 0);
    assert_int_equal(n, 1);
    assert_string_equal(turns[0].request, "hello");
    turn_row_clear(&turns[0]);
    free(turns);
    char *cells = NULL;
    assert_int_equal(store_cells(s, r.id, &cells, &e), 0);
    assert_non_null(strstr(cells, "\"code\":\"1+1\""));
    free(cells);
    struct session_row back;
    assert_int_equal(store_session_find(s, r.id, &back, &e), 0);
    assert_int_equal(back.cells, 1);
    session_row_clear(&back);
    session_row_clear(&r);
    store_close(s);
}

static void a_second_instance_is_refused_and_named(void **state)
{
    (void)state;
    struct store *s = opened(), *second = NULL;
    struct err e = { 0 };
    assert_int_equal(store_open(&second, dir, &e), -1);
    assert_int_equal(e.kind, ERR_CONFIG);
    char pid[16];
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    assert_non_null(strstr(e.msg, pid));
    store_close(s);
    s = opened();
    store_close(s);
}

static void a_data_folder_that_cannot_be_is_the_operators_to_mend(void **state)
{
    (void)state;
    struct store *s = NULL;
    struct err e = { 0 };
    assert_int_equal(store_open(&s, "/proc/nowhere/data", &e), -1);
    assert_non_null(strstr(e.msg, "/proc/nowhere"));
    assert_null(s);
}

static void usage_is_summed_by_person_room_session_and_time(void **state)
{
    (void)state;
    struct store *s = opened();
    struct err e = { 0 };
    struct session_row a, b;
    assert_int_equal(store_session_get(s, "local", "r", NULL, &a, NULL, &e), 0);
    assert_int_equal(store_session_get(s, "local", "r", "t", &b, NULL, &e), 0);
    const struct usage_row rows[] = {
        { a.id, "ann", "m", 100, 50, 10, 7 },
        { b.id, "ann", "m", 200, 0, 20, 0 },
        { b.id, "bob", "m", 300, 0, 30, 5 },
    };
    for (size_t i = 0; i < countof(rows); i++)
        assert_int_equal(store_usage_add(s, &rows[i], &e), 0);
    const struct {
        struct usage_query q;
        int64_t calls, tokens, cost;
    } cases[] = {
        { { 0 }, 3, 660, 12 },
        { { .person = "ann" }, 2, 330, 7 },
        { { .session = b.id }, 2, 550, 5 },
        { { .platform = "local", .room = "r" }, 3, 660, 12 },
        { { .platform = "slack", .room = "r" }, 0, 0, 0 },
        { { .since_ms = time_unix_ms() + 100000 }, 0, 0, 0 },
        { { .person = "bob", .session = a.id }, 0, 0, 0 },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        struct usage_sum sum;
        assert_int_equal(store_usage_sum(s, &cases[i].q, &sum, &e), 0);
        assert_int_equal(sum.calls, cases[i].calls);
        assert_int_equal(sum.tokens, cases[i].tokens);
        assert_int_equal(sum.cost, cases[i].cost);
    }
    session_row_clear(&a);
    session_row_clear(&b);
    store_close(s);
}

static int64_t a_kept_turn(struct store *s, const char *session, const char *event, bool answered)
{
    struct err e = { 0 };
    struct inbox_item i = item(event);
    int64_t seq = 0, turn = 0, out = 0;
    bool fresh = false;
    static char request[] = "q", answer[] = "a", status[] = "answered", platform[] = "local", room[] = "r";
    assert_int_equal(store_inbox_add(s, &i, &seq, &fresh, &e), 0);
    assert_int_equal(store_turn_begin(s, session, seq, request, &turn, &e), 0);
    if (!answered) {
        assert_int_equal(store_turn_drop(s, turn, seq, &e), 0);
        return turn;
    }
    autofree char *txn = xstrdup(event);
    const struct turn_row row = { .id = turn, .seq = seq, .request = request, .answer = answer, .status = status };
    const struct outbox_item o = { .turn = turn, .platform = platform, .txn = txn, .room = room, .markdown = answer };
    assert_int_equal(store_turn_end(s, &row, &o, &out, &e), 0);
    return turn;
}

static size_t turns_after(struct store *s, const char *session, int64_t after)
{
    struct turn_row *rows = NULL;
    struct err e = { 0 };
    size_t n = 0;
    assert_int_equal(store_turns_after(s, session, after, 100, &rows, &n, &e), 0);
    for (size_t i = 0; i < n; i++)
        turn_row_clear(&rows[i]);
    free(rows);
    return n;
}

static void notes_carry_a_conversation_until_it_is_forgotten(void **state)
{
    (void)state;
    struct store *s = opened();
    struct err e = { 0 };
    struct session_row r;
    struct notes_row n;
    static char notes[] = "They like euros.";
    assert_int_equal(store_session_get(s, "local", "r", NULL, &r, NULL, &e), 0);
    const int64_t first = a_kept_turn(s, r.id, "e1", true);
    (void)a_kept_turn(s, r.id, "e2", false);
    (void)a_kept_turn(s, r.id, "e3", true);
    assert_int_equal(store_notes(s, r.id, &n, &e), 0);
    assert_null(n.notes);
    assert_int_equal(n.noted, 0);
    assert_int_equal(turns_after(s, r.id, 0), 2); /* what was dropped has no answer */
    assert_int_equal(turns_after(s, r.id, first), 1);
    assert_int_equal(store_notes_set(s, r.id, &(struct notes_row){ notes, first, first + 1 }, &e), 0);
    assert_int_equal(store_notes(s, r.id, &n, &e), 0);
    assert_string_equal(n.notes, notes);
    assert_int_equal(n.noted, first);
    assert_int_equal(n.shortened, first + 1);
    notes_row_clear(&n);
    assert_int_equal(store_forget(s, r.id, INT64_MAX, &e), 0);
    assert_int_equal(turns_after(s, r.id, 0), 0);
    assert_int_equal(store_notes(s, r.id, &n, &e), 0);
    assert_null(n.notes);
    session_row_clear(&r);
    store_close(s);
}

static void one_cell_can_be_read_back(void **state)
{
    (void)state;
    struct store *s = opened();
    struct err e = { 0 };
    struct session_row r;
    struct cell c;
    char *text = NULL;
    assert_int_equal(store_session_get(s, "local", "r", NULL, &r, NULL, &e), 0);
    const int64_t turn = a_kept_turn(s, r.id, "e1", true);
    cell_init(&c);
    c.number = 4;
    assert_int_equal(store_cell_add(s, r.id, turn, "2+2", &c, 0, &e), 0);
    assert_int_equal(store_cell(s, r.id, 4, &text, &e), 0);
    assert_non_null(strstr(text, "\"code\":\"2+2\""));
    free(text);
    assert_int_equal(store_cell(s, r.id, 5, &text, &e), 0);
    assert_null(text);
    cell_clear(&c);
    session_row_clear(&r);
    store_close(s);
}

static int collect(void *ud, const char *key, const char *value, size_t n)
{
    str_printf(ud, "%s=%.*s ", key, (int)n, value);
    return 0;
}

static void an_adapter_keeps_bytes_by_kind_and_key(void **state)
{
    (void)state;
    struct store *s = opened();
    struct err e = { 0 };
    size_t n = 1;
    char *bytes = NULL;
    AUTO(str_clear) struct str all = STR_INIT(256);
    const struct kept one = { "matrix", "olm", "b" }, kind = { "matrix", "olm", NULL },
                      some = { "matrix", "olm", "a%" };
    assert_int_equal(store_kept(s, &one, &bytes, &n, &e), 0);
    assert_null(bytes);
    assert_int_equal(store_keep(s, &one, "x\0y", 3, &e), 0);
    assert_int_equal(store_keep(s, &one, "", 0, &e), 0);
    assert_int_equal(store_kept(s, &one, &bytes, &n, &e), 0);
    assert_int_equal(n, 0);
    assert_string_equal(bytes, "");
    free(bytes);
    assert_int_equal(store_keep(s, &(struct kept){ "matrix", "olm", "a%2" }, "2", 1, &e), 0);
    assert_int_equal(store_keep(s, &(struct kept){ "matrix", "olm", "a%1" }, "1", 1, &e), 0);
    assert_int_equal(store_keep(s, &(struct kept){ "matrix", "olm", "aa" }, "3", 1, &e), 0);
    assert_int_equal(store_keep(s, &(struct kept){ "slack", "olm", "a%3" }, "4", 1, &e), 0);
    assert_int_equal(store_kept_each(s, &some, collect, &all, &e), 0);
    assert_string_equal(str_peek(&all), "a%1=1 a%2=2 ");
    assert_int_equal(store_unkeep(s, &kind, &e), 0);
    str_clear(&all);
    assert_int_equal(store_kept_each(s, &kind, collect, &all, &e), 0);
    assert_int_equal(all.len, 0);
    store_close(s);
}

static bool is_kept(struct store *s, const char *key)
{
    struct err e = { 0 };
    size_t n = 0;
    autofree char *bytes = NULL;
    assert_int_equal(store_kept(s, &(struct kept){ "test", "k", key }, &bytes, &n, &e), 0);
    return bytes != NULL;
}

static void keep(struct store *s, const char *key)
{
    struct err e = { 0 };
    assert_int_equal(store_keep(s, &(struct kept){ "test", "k", key }, "1", 1, &e), 0);
}

static void a_batch_is_durable_whole_or_not_at_all(void **state)
{
    (void)state;
    struct store *s = opened();
    struct err e = { 0 };
    struct store_batch outer = { 0 }, inner = { 0 };
    assert_int_equal(store_batch_begin(&outer, s, &e), 0);
    keep(s, "a");
    store_batch_end(&outer);
    assert_false(is_kept(s, "a"));
    assert_int_equal(store_batch_begin(&outer, s, &e), 0);
    keep(s, "b");
    assert_int_equal(store_batch_begin(&inner, s, &e), 0);
    keep(s, "c");
    store_batch_end(&inner);
    assert_int_equal(store_batch_begin(&inner, s, &e), 0);
    keep(s, "d");
    assert_int_equal(store_batch_commit(&inner, &e), 0);
    store_batch_end(&inner); /* after a commit: nothing */
    assert_int_equal(store_batch_commit(&outer, &e), 0);
    store_close(s);
    s = opened();
    assert_true(is_kept(s, "b") && !is_kept(s, "c") && is_kept(s, "d"));
    store_close(s);
}

/* What was committed lazily is there for every reader and after an end in order; a rest of it is none. */
static void a_lazy_batch_is_whole_or_not_at_all_and_leaves_no_laziness(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct store *s = opened();
    struct store_batch b = { 0 }, inner = { 0 };
    assert_int_equal(store_batch_begin_lazy(&b, s, &e), 0);
    keep(s, "a");
    assert_int_equal(store_batch_commit(&b, &e), 0);
    assert_int_equal(store_batch_begin_lazy(&b, s, &e), 0);
    keep(s, "b");
    store_batch_end(&b);
    assert_int_equal(store_batch_begin(&b, s, &e), 0);
    assert_int_equal(store_batch_begin_lazy(&inner, s, &e), 0);
    assert_false(inner.lazy); /* ends as the batch around it */
    keep(s, "c");
    assert_int_equal(store_batch_commit(&inner, &e), 0);
    assert_int_equal(store_batch_commit(&b, &e), 0);
    store_close(s);
    s = opened();
    assert_true(is_kept(s, "a") && !is_kept(s, "b") && is_kept(s, "c"));
    store_close(s);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)
    const struct CMUnitTest tests[] = {
        T(an_event_is_kept_once_however_often_it_comes),
        T(open_items_come_back_oldest_first_and_done_ones_never),
        T(a_thread_has_one_session_and_its_room_another),
        T(a_room_that_goes_on_elsewhere_takes_its_session_along),
        T(the_same_name_again_is_a_new_version_and_the_old_one_stays),
        T(a_file_that_is_too_large_or_badly_named_leaves_nothing),
        T(a_turn_ends_with_its_answer_in_the_outbox_or_not_at_all),
        T(usage_is_summed_by_person_room_session_and_time),
        T(notes_carry_a_conversation_until_it_is_forgotten),
        T(one_cell_can_be_read_back),
        T(an_adapter_keeps_bytes_by_kind_and_key),
        T(a_batch_is_durable_whole_or_not_at_all),
        T(a_lazy_batch_is_whole_or_not_at_all_and_leaves_no_laziness),
        T(a_second_instance_is_refused_and_named),
        T(a_data_folder_that_cannot_be_is_the_operators_to_mend),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
