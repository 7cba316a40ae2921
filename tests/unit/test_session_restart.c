/* When boxes, platforms and the daemon itself go: one answer to one question, and nothing run twice. */
#include "core_world.h"

/* ---- when things break ---- */

static void a_box_that_died_between_messages_is_replaced(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", PRINTS("1") "{\"fail\":\"the head is gone\"}\n" PRINTS("2"));
    world_start(
        &w, CALL("x=1") SAY("1") CALL(
                "x") "{\"calls\":[{\"args\":{\"code\":\"x=1;x\"}}],\"expect\":\"The interpreter is new\"}\n" SAY("2"));
    world_say(&w, "a");
    world_run(&w, 100);
    world_say(&w, "b");
    world_run(&w, 500);
    assert_string_equal(answer(&w, 1), "2");
    world_close(&w);
}

static void a_box_that_dies_again_is_told_and_the_next_question_works(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"fail\":\"gone\"}\n{\"fail\":\"gone\"}\n" PRINTS("3"));
    world_start(&w, CALL("a") CALL("b") CALL("c") SAY("3"));
    world_say(&w, "a");
    world_run(&w, 500);
    assert_says(answer(&w, 0), "The sandbox failed");
    world_say(&w, "b");
    world_run(&w, 500);
    assert_string_equal(answer(&w, 1), "3");
    world_close(&w);
}

static void a_file_that_cannot_be_put_is_left_out(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"op\":\"put\",\"fail\":\"no room\"}\n{\"op\":\"put\",\"fail\":\"no room\"}\n");
    world_start(&w, SAY("ok"));
    world_send(&w, &(struct chat_event){ .direct = true, .text = "go" }, "a.csv", "x\n");
    world_run(&w, 500);
    assert_string_equal(answer(&w, 0), "ok");
    world_close(&w);
}

static void files_are_put_again_into_a_box_that_lost_them(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"op\":\"intake\",\"profiles\":[{\"path\":\"a.csv\"}]}\n{\"stdout\":\"1\",\"lost\":true}\n");
    world_start(&w, CALL("x") SAY("1") "{\"text\":\"2\",\"expect\":\"The interpreter is new\"}\n");
    world_send(&w, &(struct chat_event){ .direct = true, .text = "go" }, "a.csv", "x\n");
    world_run(&w, 100);
    world_say(&w, "b");
    world_run(&w, 100);
    assert_string_equal(answer(&w, 1), "2");
    assert_string_equal(sandbox_fake_asked(3), "put a.csv");
    assert_null(sandbox_fake_asked(4)); /* known: not looked into again */
    assert_int_equal(world_count(&w, CHAT_NOTICE), 1);
    assert_says(world_posted(&w, CHAT_NOTICE, 0)->markdown, "its variables are gone, your files are there again");
    world_close(&w);
}

static void an_answer_that_was_not_posted_is_tried_again_under_its_key(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("1"));
    w.chat.fail_n = 2;
    w.chat.fail_kind = ERR_NET;
    world_say(&w, "a");
    world_run(&w, 500);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 0);
    assert_false(session_hub_idle(w.hub));
    world_run(&w, 10000);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 1);
    assert_true(session_hub_idle(w.hub));
    world_close(&w);
}

static void an_answer_outlives_a_platform_that_is_down_for_hours(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("1"));
    w.chat.fail_n = 20;
    w.chat.fail_kind = ERR_NET;
    world_say(&w, "a");
    world_run(&w, 500);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(world_count(&w, CHAT_ANSWER), 0);
        w.now_ms += 600000;
        world_run(&w, 0);
    }
    assert_int_equal(world_count(&w, CHAT_ANSWER), 1);
    assert_true(session_hub_idle(w.hub));
    world_close(&w);
}

static void an_answer_that_the_platform_refuses_is_not_tried_for_ever(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("1"));
    w.chat.fail_n = 1000;
    w.chat.fail_kind = ERR_REFUSED;
    world_say(&w, "a");
    world_run(&w, 500);
    assert_int_equal(w.chat.fail_n, 999);
    assert_true(session_hub_idle(w.hub));
    world_close(&w);
}

/* ---- restarts ---- */

static void an_answer_that_was_not_delivered_is_delivered_by_the_next_life(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"figures\":[{\"path\":\"figure-1-1.png\"}]}\n");
    world_start(&w, CALL("plot()") SAY("1"));
    w.chat.fail_n = 1000;
    w.chat.fail_kind = ERR_NET;
    world_say(&w, "a");
    world_run(&w, 500);
    world_stop(&w);
    w.chat.fail_n = 0;
    world_start(&w, "");
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 1);
    assert_string_equal(world_posted(&w, CHAT_ANSWER, 0)->txn, "test:ev1:answer");
    assert_string_equal(world_posted(&w, CHAT_ANSWER, 0)->figures, "figure-1-1.png");
    world_stop(&w);
    world_start(&w, "");
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 1); /* and only by that one */
    world_close(&w);
}

static void a_turn_cut_by_a_restart_is_told_once_and_not_run_again(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"hang\":true}\n");
    world_start(&w, CALL("time.sleep(20)"));
    world_say(&w, "a");
    world_run(&w, 500);
    world_stop(&w);
    for (int life = 0; life < 3; life++) {
        world_start(&w, "{\"text\":\"2\",\"expect\":\"[user: @ann] a\"}\n");
        world_run(&w, 500);
        assert_int_equal(world_count(&w, CHAT_ANSWER), 1);
        assert_says(answer(&w, 0), "cut off by a restart");
        if (life < 2)
            world_stop(&w);
    }
    assert_int_equal(world_cells(), 1);
    world_say(&w, "!rerun");
    world_run(&w, 500);
    assert_string_equal(answer(&w, 1), "2");
    world_close(&w);
}

static void what_waited_runs_after_a_restart(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"hang\":true}\n");
    world_start(&w, CALL("x"));
    world_say(&w, "a");
    world_say(&w, "b");
    world_run(&w, 500);
    world_stop(&w);
    world_start(&w, "{\"text\":\"2\",\"expect\":\"b\"}\n");
    world_run(&w, 500);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 2);
    assert_string_equal(answer(&w, 1), "2");
    world_close(&w);
}

static void what_waited_for_days_is_told_and_not_run(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"hang\":true}\n");
    world_start(&w, CALL("x"));
    const int64_t old = time_unix_ms() - (int64_t)16 * 24 * 3600 * 1000;
    assert_int_equal(world_event(&w, &(struct chat_event){ .text = "a", .direct = true, .sent_ms = old }), 0);
    assert_int_equal(world_event(&w, &(struct chat_event){ .text = "b", .direct = true, .sent_ms = old }), 0);
    world_run(&w, 500);
    world_stop(&w);
    for (int life = 0; life < 2; life++) {
        world_start(&w, SAY("2"));
        world_run(&w, 500);
        assert_int_equal(world_count(&w, CHAT_ANSWER), 0);
        assert_int_equal(world_count(&w, CHAT_NOTICE), 2); /* once each */
        assert_says(world_posted(&w, CHAT_NOTICE, 0)->markdown, "away for more than a day");
        world_stop(&w);
    }
    world_close(&w);
}

static void nothing(void *ud)
{
    (void)ud;
}

/* What a status line says is not true any more; the next life tells what became of it. */
static void status_lines_go_when_the_service_ends(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"hang\":true}\n");
    w.keep_state = true;
    world_start(&w, CALL("while True: pass"));
    world_say(&w, "a");
    world_say(&w, "b");
    world_run(&w, 4000);
    session_hub_rest(w.hub, nothing, NULL);
    world_run(&w, 10000);
    const size_t n = world_count(&w, CHAT_STATUS);
    for (size_t i = n - 2; i < n; i++)
        assert_string_equal(world_posted(&w, CHAT_STATUS, i)->markdown, "");
    world_close(&w);
}

static void files_and_history_survive_a_restart(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "",
               "{\"op\":\"intake\",\"profiles\":[{\"path\":\"a.csv\",\"kind\":\"csv\",\"bytes\":2}]}\n" PRINTS("1"));
    world_start(&w, CALL("x=1") SAY("1"));
    world_send(&w, &(struct chat_event){ .direct = true, .text = "go" }, "a.csv", "x\n");
    world_run(&w, 100);
    world_stop(&w);
    world_start(&w, "{\"calls\":[{\"args\":{\"code\":\"y\"}}],\"expect\":\"The interpreter is new\"}\n" SAY("2"));
    world_say(&w, "and?");
    world_run(&w, 100);
    assert_string_equal(answer(&w, 1), "2");
    assert_string_equal(sandbox_fake_asked(3), "put a.csv");
    world_close(&w);
}

static void the_hub_can_go_at_any_moment(void **state)
{
    (void)state;
    for (int64_t ms = 0; ms < 400; ms += 10) {
        struct world w;
        world_open(&w, "",
                   "{\"op\":\"put\",\"delay_ms\":50}\n{\"op\":\"intake\",\"delay_ms\":50}\n{\"delay_ms\":50}\n");
        world_start(&w,
                    "{\"calls\":[{\"args\":{\"code\":\"1\"}}],\"delay_ms\":50}\n{\"text\":\"x\",\"delay_ms\":50}\n");
        world_send(&w, &(struct chat_event){ .direct = true, .text = "go" }, "a.csv", "x\n");
        world_say(&w, "!vars");
        world_run(&w, ms);
        world_stop(&w);
        world_run(&w, 500);
        world_start(&w, SAY("later"));
        world_run(&w, 500);
        assert_int_equal(world_count(&w, CHAT_ANSWER), 1); /* one answer to one question, whenever the end came */
        world_close(&w);
    }
}

static void stopping_at_any_moment_gives_one_answer(void **state)
{
    (void)state;
    for (int64_t ms = 0; ms < 300; ms += 10) {
        struct world w;
        world_open(&w, "",
                   "{\"op\":\"put\",\"delay_ms\":50}\n{\"op\":\"intake\",\"delay_ms\":50}\n{\"delay_ms\":50}\n");
        world_start(&w,
                    "{\"calls\":[{\"args\":{\"code\":\"1\"}}],\"delay_ms\":50}\n{\"text\":\"x\",\"delay_ms\":50}\n");
        world_send(&w, &(struct chat_event){ .direct = true, .text = "go" }, "a.csv", "x\n");
        world_run(&w, ms);
        world_say(&w, "!stop");
        world_run(&w, 500);
        assert_int_equal(world_count(&w, CHAT_ANSWER), 1);
        assert_true(session_hub_idle(w.hub));
        world_close(&w);
    }
}

static void two_bots_that_talk_to_each_other_are_paused(void **state)
{
    struct world w;
    struct str model = STR_INIT(1 << 20);
    (void)state;
    for (int i = 0; i < 200; i++)
        str_puts(&model, SAY("hello"));
    world_open(&w, "", "");
    world_start(&w, str_peek(&model));
    str_clear(&model);
    for (int i = 0; i < 150; i++) {
        world_say(&w, "hello");
        world_run(&w, 0);
    }
    assert_int_equal(world_count(&w, CHAT_ANSWER), 100);
    assert_int_equal(world_count(&w, CHAT_NOTICE), 1);
    world_run(&w, 700000);
    world_say(&w, "hello");
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 101);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_box_that_died_between_messages_is_replaced),
        cmocka_unit_test(a_box_that_dies_again_is_told_and_the_next_question_works),
        cmocka_unit_test(a_file_that_cannot_be_put_is_left_out),
        cmocka_unit_test(files_are_put_again_into_a_box_that_lost_them),
        cmocka_unit_test(an_answer_that_was_not_posted_is_tried_again_under_its_key),
        cmocka_unit_test(an_answer_outlives_a_platform_that_is_down_for_hours),
        cmocka_unit_test(an_answer_that_the_platform_refuses_is_not_tried_for_ever),
        cmocka_unit_test(an_answer_that_was_not_delivered_is_delivered_by_the_next_life),
        cmocka_unit_test(a_turn_cut_by_a_restart_is_told_once_and_not_run_again),
        cmocka_unit_test(what_waited_runs_after_a_restart),
        cmocka_unit_test(what_waited_for_days_is_told_and_not_run),
        cmocka_unit_test(status_lines_go_when_the_service_ends),
        cmocka_unit_test(files_and_history_survive_a_restart),
        cmocka_unit_test(the_hub_can_go_at_any_moment),
        cmocka_unit_test(stopping_at_any_moment_gives_one_answer),
        cmocka_unit_test(two_bots_that_talk_to_each_other_are_paused),
    };
    return cmocka_run_group_tests_name("session_restart", tests, NULL, NULL);
}
