/* Files of a conversation, and programs of people: what reaches the box, under which name, and when. */
#include "core_world.h"

static const struct chat_event dm = { .direct = true };

/* ---- files ---- */

static void a_file_sent_first_is_there_for_the_question(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"op\":\"intake\",\"profiles\":[{\"path\":\"a.csv\",\"kind\":\"csv\",\"rows\":5}]}\n");
    world_start(&w, "{\"text\":\"5\",\"expect\":\"file 'a.csv'\"}\n");
    world_send(&w, &dm, "a.csv", "x\n");
    world_run(&w, 100);
    assert_says(world_posted(&w, CHAT_NOTICE, 0)->markdown, "Got `a.csv`");
    world_say(&w, "how many rows?");
    world_run(&w, 100);
    assert_string_equal(answer(&w, 0), "5");
    world_close(&w);
}

static void a_file_sent_to_the_room_before_the_mention_is_there_too(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, "{\"text\":\"5\",\"expect\":\"file 'a.csv'\"}\n");
    world_send(&w, &(struct chat_event){ .text = "look at this" }, "a.csv", "x\n");
    world_run(&w, 100);
    assert_int_equal(w.chat.n, 0); /* overheard, not meant for us */
    assert_int_equal(world_event(&w, &(struct chat_event){ .text = "how many rows?", .mentioned = true }), 0);
    world_run(&w, 100);
    assert_string_equal(answer(&w, 0), "5");
    world_close(&w);
}

static void a_file_sent_after_the_question_can_be_asked_again(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("Which file?") "{\"text\":\"5\",\"expect\":\"file 'a.csv'\"}\n");
    world_say(&w, "how many rows?");
    world_run(&w, 100);
    world_send(&w, &dm, "a.csv", "x\n");
    world_run(&w, 100);
    assert_says(world_posted(&w, CHAT_NOTICE, 0)->markdown, "rerun");
    world_say(&w, "!rerun");
    world_run(&w, 100);
    assert_string_equal(answer(&w, 1), "5");
    assert_string_equal(world_posted(&w, CHAT_ANSWER, 1)->reply_to, "ev3");
    world_close(&w);
}

static void a_file_that_comes_while_the_question_waits_is_in_time(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, "{\"text\":\"1\",\"delay_ms\":500}\n{\"text\":\"5\",\"expect\":\"file 'a.csv'\"}\n");
    world_say(&w, "first");
    world_say(&w, "how many rows?");
    world_run(&w, 100);
    world_send(&w, &dm, "a.csv", "x\n");
    world_run(&w, 900);
    assert_string_equal(answer(&w, 1), "5");
    world_close(&w);
}

static void names_are_kept_unless_they_cannot_be(void **state)
{
    static const struct {
        const char *name, *put; /* NULL: refused with a word */
    } cases[] = {
        { "\xe9\x94\x80\xe5\x94\xae \xe6\x95\xb0\xe6\x8d\xae \xe2\x80\x93 2024.csv",
          "put \xe9\x94\x80\xe5\x94\xae \xe6\x95\xb0\xe6\x8d\xae \xe2\x80\x93 2024.csv" },
        { "e\xcc\x81.csv", "put \xc3\xa9.csv" }, /* NFC */
        { "it's (1) $HOME;x.csv", "put it's (1) $HOME;x.csv" },
        { "a/b.csv", NULL },
        { "..", NULL },
        { ".", NULL },
        { "", NULL },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct world w;
        world_open(&w, "", "");
        world_start(&w, SAY("ok"));
        world_send(&w, &(struct chat_event){ .direct = true, .text = "go" }, cases[i].name, "x\n");
        world_run(&w, 100);
        if (cases[i].put)
            assert_string_equal(sandbox_fake_asked(0), cases[i].put);
        else
            assert_says(world_posted(&w, CHAT_NOTICE, 0)->markdown, "can't have that name");
        assert_string_equal(answer(&w, 0), "ok"); /* the question is answered all the same */
        world_close(&w);
    }
}

static void each_refused_file_is_told_and_only_where_we_were_asked(void **state)
{
    const struct chat_file files[] = { { .name = "..", .fd = 0 }, { .name = "a/b", .fd = 0 } };
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, "");
    assert_int_equal(world_event(&w, &(struct chat_event){ .direct = true, .files = files, .file_n = 2 }), 0);
    assert_int_equal(world_count(&w, CHAT_NOTICE), 2);
    assert_string_not_equal(world_posted(&w, CHAT_NOTICE, 0)->txn, world_posted(&w, CHAT_NOTICE, 1)->txn);
    assert_int_equal(world_event(&w, &(struct chat_event){ .files = files, .file_n = 2 }), 0);
    assert_int_equal(world_count(&w, CHAT_NOTICE), 2);
    world_close(&w);
}

static void a_file_over_the_limit_is_refused_in_words(void **state)
{
    struct world w;
    struct err e = { 0 };
    (void)state;
    world_open(&w, "", "");
    assert_int_equal(conf_set(&w.conf, "files.upload_max=1M", &e), 0);
    world_start(&w, "");
    autofree char *big = xcalloc(1, (2 << 20) + 1);
    for (size_t i = 0; i < 2 << 20; i++)
        big[i] = 'x';
    world_send(&w, &dm, "big.csv", big);
    assert_says(world_posted(&w, CHAT_NOTICE, 0)->markdown, "larger than 1 MB");
    world_close(&w);
}

static void the_same_name_again_is_a_new_version(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "",
               "{\"op\":\"intake\",\"profiles\":[{\"path\":\"a.csv\",\"sha256\":\"1\"}]}\n"
               "{\"op\":\"intake\",\"profiles\":[{\"path\":\"a.csv\",\"sha256\":\"2\"}]}\n" PRINTS("1"));
    world_start(
        &w,
        SAY("one") "{\"calls\":[{\"args\":{\"code\":\"open('a.csv')\"}}],\"expect\":\"an older version of it is 'a (v1).csv'\"}\n" SAY(
            "two"));
    world_send(&w, &(struct chat_event){ .direct = true, .text = "go" }, "a.csv", "1\n");
    world_run(&w, 100);
    world_send(&w, &(struct chat_event){ .direct = true, .text = "again" }, "a.csv", "22\n");
    world_run(&w, 100);
    assert_string_equal(answer(&w, 1), "two");
    assert_string_equal(sandbox_fake_asked(2), "put a (v1).csv");
    assert_string_equal(sandbox_fake_asked(3), "put a.csv");
    assert_string_equal(sandbox_fake_asked(4), "intake a.csv");
    assert_says(world_posted(&w, CHAT_ANSWER, 1)->receipt, "a.csv v2");
    world_close(&w);
}

static void a_file_that_could_not_be_had_is_named(void **state)
{
    struct world w;
    const struct chat_file f = { .name = "x.csv", .fd = -1, .problem = "it could not be decrypted" };
    const struct chat_event ev = { .direct = true, .text = "go", .files = &f, .file_n = 1 };
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("ok"));
    assert_int_equal(world_event(&w, &ev), 0);
    world_run(&w, 100);
    assert_says(world_posted(&w, CHAT_NOTICE, 0)->markdown, "it could not be decrypted");
    world_close(&w);
}

/* ---- programs of people ---- */

static void a_persons_python_block_runs_without_a_model(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"stdout\":\"hi\\n\",\"figures\":[{\"path\":\"figure-1-1.png\"}]}\n");
    world_start(&w, "{\"text\":\"2\",\"expect\":\"and now?\"}\n");
    world_say(&w, "```python\nprint('hi')\n```");
    world_run(&w, 100);
    assert_string_equal(answer(&w, 0), "```\nhi\n```\n");
    assert_int_equal(world_posted(&w, CHAT_ANSWER, 0)->figure_n, 1);
    assert_string_equal(sandbox_fake_asked(0), "cell print('hi')\n");
    world_say(&w, "and now?");
    world_run(&w, 100);
    assert_string_equal(answer(&w, 1), "2");
    world_close(&w);
}

static void a_picture_that_is_shown_as_a_figure_is_not_attached_as_well(void **state)
{
    struct world w;
    (void)state;
    world_open(
        &w, "",
        "{\"figures\":[{\"path\":\"figure-1-1.png\"}],\"files\":[{\"path\":\"chart.png\",\"shown\":true},{\"path\":\"out/t.csv\"}]}\n");
    world_start(&w, CALL("plot()") SAY("See the chart."));
    world_say(&w, "plot");
    world_run(&w, 100);
    assert_string_equal(world_posted(&w, CHAT_ANSWER, 0)->figures, "figure-1-1.png");
    assert_string_equal(world_posted(&w, CHAT_ANSWER, 0)->files, "out/t.csv");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_sent_first_is_there_for_the_question),
        cmocka_unit_test(a_file_sent_to_the_room_before_the_mention_is_there_too),
        cmocka_unit_test(a_file_sent_after_the_question_can_be_asked_again),
        cmocka_unit_test(a_file_that_comes_while_the_question_waits_is_in_time),
        cmocka_unit_test(names_are_kept_unless_they_cannot_be),
        cmocka_unit_test(each_refused_file_is_told_and_only_where_we_were_asked),
        cmocka_unit_test(a_file_over_the_limit_is_refused_in_words),
        cmocka_unit_test(the_same_name_again_is_a_new_version),
        cmocka_unit_test(a_file_that_could_not_be_had_is_named),
        cmocka_unit_test(a_persons_python_block_runs_without_a_model),
        cmocka_unit_test(a_picture_that_is_shown_as_a_figure_is_not_attached_as_well),
    };
    return cmocka_run_group_tests_name("session_files", tests, NULL, NULL);
}
