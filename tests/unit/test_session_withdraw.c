/* Messages that are deleted: the files that they brought go, whatever goes on, and nothing else does. */
#include "core_world.h"

static const struct chat_event dm = { .direct = true };

#define GOT(name) "{\"op\":\"intake\",\"profiles\":[{\"path\":\"" name "\",\"kind\":\"csv\",\"sha256\":\"1\"}]}\n"

static void deleted(struct world *w, const char *message)
{
    assert_int_equal(world_event(w, &(struct chat_event){ .type = CHAT_DELETE, .about = message }), 0);
}

/* How often that was asked of the box. */
static size_t asked(const char *what)
{
    size_t n = 0;
    for (size_t i = 0; sandbox_fake_asked(i); i++)
        n += strcmp(sandbox_fake_asked(i), what) == 0;
    return n;
}

/* Names with versions of the first session's files; and that their bytes are there. */
static void assert_files(struct world *w, const char *expected)
{
    AUTO(session_row_clear) struct session_row row = { 0 };
    AUTO(str_clear) struct str all = STR_INIT(10000);
    struct file_row *rows = NULL;
    struct err e = { 0 };
    bool made = false;
    size_t n = 0;
    assert_int_equal(store_session_get(w->store, "test", "room", NULL, &row, &made, &e), 0);
    assert_int_equal(store_files(w->store, row.id, &rows, &n, &e), 0);
    for (size_t i = 0; i < n; i++) {
        str_printf(&all, "%s %d ", rows[i].name, (int)rows[i].version);
        assert_int_equal(access(rows[i].path, F_OK), 0);
        file_row_clear(&rows[i]);
    }
    free(rows);
    assert_string_equal(str_peek(&all), expected);
}

/* Files below sessions/ of all kinds. */
static size_t bytes_left;
static int count_file(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)at;
    bytes_left += type == FTW_F && strstr(path, "/sessions/");
    return 0;
}

static void assert_nothing_lies_there(struct world *w)
{
    bytes_left = 0;
    assert_int_equal(nftw(w->dir, count_file, 16, FTW_PHYS), 0);
    assert_int_equal(bytes_left, 0);
}

static void its_file_is_gone_and_the_next_question_knows(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", GOT("a.csv"));
    world_start(&w, "{\"text\":\"5\",\"expect\":\"file 'a.csv'\"}\n"
                    "{\"text\":\"gone\",\"expect\":\"The person deleted `a.csv`\"}\n" SAY("quiet"));
    world_send(&w, &dm, "a.csv", "x\n");
    world_say(&w, "how many rows?");
    world_run(&w, 100);
    assert_string_equal(answer(&w, 0), "5");
    deleted(&w, "ev1");
    assert_int_equal(asked("drop a.csv"), 1);
    assert_files(&w, "");
    assert_nothing_lies_there(&w);
    world_say(&w, "and now?");
    world_run(&w, 100);
    assert_string_equal(answer(&w, 1), "gone");
    assert_int_equal(asked("put a.csv"), 1);
    world_say(&w, "what else?");
    world_run(&w, 100);
    assert_string_equal(answer(&w, 2), "quiet"); /* told once */
    deleted(&w, "ev1");
    assert_int_equal(asked("drop a.csv"), 1); /* twice is as good as once */
    world_close(&w);
}

static void what_an_archive_was_taken_apart_into_goes_with_it(void **state)
{
    struct world w;
    (void)state;
    world_open(
        &w, "",
        "{\"op\":\"intake\",\"profiles\":[{\"path\":\"z.zip\",\"kind\":\"archive\",\"members\":[\"z/a.csv\",\"z/b/c.csv\"]},"
        "{\"path\":\"z/a.csv\",\"kind\":\"csv\"}]}\n");
    world_start(&w, SAY("ok"));
    world_send(&w, &(struct chat_event){ .direct = true, .text = "go" }, "z.zip", "zip");
    world_run(&w, 100);
    deleted(&w, "ev1");
    assert_int_equal(asked("drop z.zip") + asked("drop z/a.csv") + asked("drop z/b/c.csv"), 3);
    world_close(&w);
}

static void what_a_program_wrote_stays_also_under_the_same_name(void **state)
{
    struct world w;
    (void)state;
    world_open(
        &w, "",
        GOT("a.csv") "{\"files\":[{\"path\":\"a.csv\",\"content\":\"own\"},{\"path\":\"out/b.csv\",\"content\":\"own\"}]}\n");
    world_start(&w, CALL("write()") SAY("ok") SAY("still"));
    world_send(&w, &(struct chat_event){ .direct = true, .text = "go" }, "a.csv", "x\n");
    world_run(&w, 100);
    assert_files(&w, "a.csv 1 a.csv 2 out/b.csv 1 ");
    deleted(&w, "ev1");
    assert_files(&w, "a.csv 2 out/b.csv 1 ");
    assert_int_equal(asked("drop a.csv"), 0);
    world_close(&w);
}

static void of_two_versions_the_one_that_stays_has_the_name_again(void **state)
{
    struct world w;
    (void)state;
    world_open(
        &w, "",
        GOT("a.csv") "{\"op\":\"intake\",\"profiles\":[{\"path\":\"a.csv\",\"kind\":\"csv\",\"sha256\":\"2\"}]}\n");
    world_start(&w, SAY("one") SAY("two") "{\"text\":\"three\",\"expect\":\"deleted a version of `a.csv`\"}\n");
    world_send(&w, &(struct chat_event){ .direct = true, .text = "go" }, "a.csv", "1\n");
    world_run(&w, 100);
    world_send(&w, &(struct chat_event){ .direct = true, .text = "again" }, "a.csv", "22\n");
    world_run(&w, 100);
    assert_int_equal(asked("put a (v1).csv"), 1);
    deleted(&w, "ev2");
    assert_int_equal(asked("drop a.csv"), 1);
    assert_files(&w, "a.csv 1 ");
    world_say(&w, "and now?");
    world_run(&w, 100);
    assert_string_equal(answer(&w, 2), "three");
    assert_int_equal(asked("put a.csv"), 3);
    assert_int_equal(asked("drop a (v1).csv"), 1); /* nothing is left under its other name */
    world_close(&w);
}

static void one_that_is_on_its_way_into_the_box_does_not_stay_there(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"op\":\"put\",\"delay_ms\":500}\n");
    world_start(&w, SAY("no file"));
    world_send(&w, &dm, "a.csv", "1\n");
    world_say(&w, "how many rows?");
    world_run(&w, 100);
    assert_int_equal(asked("put a.csv"), 1);
    deleted(&w, "ev1");
    assert_int_equal(asked("drop a.csv"), 0); /* it is not there yet */
    world_run(&w, 600);
    assert_int_equal(asked("drop a.csv"), 1);
    assert_int_equal(asked("intake a.csv"), 0);
    assert_string_equal(answer(&w, 0), "no file");
    assert_nothing_lies_there(&w);
    world_close(&w);
}

static void one_that_is_being_looked_into_goes_with_what_comes_out_of_it(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "",
               "{\"op\":\"intake\",\"delay_ms\":500,\"profiles\":[{\"path\":\"z.zip\",\"members\":[\"z/a.csv\"]}]}\n");
    world_start(&w, SAY("no file"));
    world_send(&w, &dm, "z.zip", "1\n");
    world_say(&w, "how many rows?");
    world_run(&w, 100);
    assert_int_equal(asked("intake z.zip"), 1);
    deleted(&w, "ev1");
    world_run(&w, 600);
    assert_true(asked("drop z.zip") >= 1);
    assert_int_equal(asked("drop z/a.csv"), 1);
    assert_string_equal(answer(&w, 0), "no file");
    world_close(&w);
}

static void a_question_that_runs_on_the_file_goes_on_without_it(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", GOT("a.csv") "{\"delay_ms\":500}\n" PRINTS("2"));
    world_start(&w, CALL("slow()") CALL("open('a.csv')") SAY("done"));
    world_send(&w, &dm, "a.csv", "1\n");
    world_say(&w, "how many rows?");
    world_run(&w, 100);
    deleted(&w, "ev1");
    assert_int_equal(asked("drop a.csv"), 1); /* at once */
    world_run(&w, 1000);
    assert_says(answer(&w, 0), "done");
    world_close(&w);
}

static void a_question_with_its_file_is_stopped_and_both_are_gone(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", GOT("a.csv") "{\"hang\":true}\n");
    world_start(&w, CALL("slow()") SAY("done"));
    world_send(&w, &(struct chat_event){ .direct = true, .text = "go" }, "a.csv", "1\n");
    world_run(&w, 100);
    deleted(&w, "ev1");
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 0);
    assert_int_equal(asked("drop a.csv"), 1);
    assert_files(&w, "");
    assert_nothing_lies_there(&w);
    world_close(&w);
}

static void after_a_restart_it_is_found_and_told_all_the_same(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("one"));
    world_send(&w, &(struct chat_event){ .direct = true, .text = "go" }, "a.csv", "1\n");
    world_run(&w, 100);
    world_stop(&w);
    world_start(&w, "");
    deleted(&w, "ev1");
    assert_files(&w, "");
    assert_nothing_lies_there(&w);
    world_stop(&w);
    world_start(&w, "{\"text\":\"two\",\"expect\":\"The person deleted `a.csv`\"}\n");
    world_say(&w, "and now?");
    world_run(&w, 100);
    assert_string_equal(answer(&w, 1), "two");
    world_close(&w);
}

static void a_message_that_comes_again_after_it_was_deleted_brings_nothing(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, "");
    world_send(&w, &(struct chat_event){ .direct = true, .id = "m" }, "a.csv", "1\n");
    deleted(&w, "m");
    world_send(&w, &(struct chat_event){ .direct = true, .id = "m" }, "a.csv", "1\n");
    assert_files(&w, "");
    world_close(&w);
}

static void a_file_goes_with_the_message_that_it_was_in_and_no_other(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", GOT("a.csv"));
    world_start(&w, SAY("ok"));
    autofree char *path = xasprintf("%s/upload", w.dir);
    world_write(path, "1\n");
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    const struct chat_file quoted = { .name = "a.csv", .fd = fd, .bytes = 2, .message = "earlier" };
    const struct chat_event q = { .direct = true, .text = "that one", .files = &quoted, .file_n = 1 };
    assert_int_equal(world_event(&w, &q), 0);
    world_run(&w, 100);
    deleted(&w, "ev1");
    deleted(&w, "other");
    assert_files(&w, "a.csv 1 ");
    deleted(&w, "earlier");
    assert_files(&w, "");
    assert_int_equal(asked("drop a.csv"), 1);
    world_close(&w);
}

static void who_deletes_our_answer_deletes_no_file(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", GOT("a.csv"));
    world_start(&w, SAY("ok"));
    world_send(&w, &(struct chat_event){ .direct = true, .text = "go" }, "a.csv", "1\n");
    world_run(&w, 100);
    assert_int_equal(world_event(&w, &(struct chat_event){ .type = CHAT_DELETE, .about = "ev1", .ours = true }), 0);
    assert_files(&w, "a.csv 1 ");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_file_is_gone_and_the_next_question_knows),
        cmocka_unit_test(what_an_archive_was_taken_apart_into_goes_with_it),
        cmocka_unit_test(what_a_program_wrote_stays_also_under_the_same_name),
        cmocka_unit_test(of_two_versions_the_one_that_stays_has_the_name_again),
        cmocka_unit_test(one_that_is_on_its_way_into_the_box_does_not_stay_there),
        cmocka_unit_test(one_that_is_being_looked_into_goes_with_what_comes_out_of_it),
        cmocka_unit_test(a_question_that_runs_on_the_file_goes_on_without_it),
        cmocka_unit_test(a_question_with_its_file_is_stopped_and_both_are_gone),
        cmocka_unit_test(after_a_restart_it_is_found_and_told_all_the_same),
        cmocka_unit_test(a_message_that_comes_again_after_it_was_deleted_brings_nothing),
        cmocka_unit_test(a_file_goes_with_the_message_that_it_was_in_and_no_other),
        cmocka_unit_test(who_deletes_our_answer_deletes_no_file),
    };
    return cmocka_run_group_tests_name("session_withdraw", tests, NULL, NULL);
}
