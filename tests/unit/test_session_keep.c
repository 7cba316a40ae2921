/* Variables outlive their box: when they are saved, when they come back, and what is said of it. Time is the test's. */
#include "core_world.h"

static void keep_open(struct world *w, const char *box_lines)
{
    world_open(w, "", box_lines);
    w->keep_state = true;
    w->conf.idle_checkpoint_ms = 60000;
    w->conf.checkpoint_every_ms = 0;
}

#define SAVED(content) "{\"op\":\"checkpoint\",\"content\":\"" content "\",\"status\":\"ok\"}\n"

/* A person's own program: one cell and an answer, no model. */
static void run_code(struct world *w, const char *code)
{
    autofree char *text = xasprintf("```python\n%s\n```", code);
    world_say(w, text);
    world_run(w, 100);
}

static void assert_asked(size_t i, const char *words)
{
    const char *asked = sandbox_fake_asked(i);
    if (!asked || strcmp(asked, words) != 0)
        fail_msg("asked: %s, not %s", asked ? asked : "nothing", words);
}

/* ---- saved ---- */

static void an_idle_session_is_saved_and_thawed_by_its_next_message(void **state)
{
    struct world w;
    (void)state;
    keep_open(&w, SAVED("vars"));
    world_start(&w, "");
    run_code(&w, "x=1");
    world_run(&w, 59000);
    assert_null(sandbox_fake_asked(1));
    world_run(&w, 2000);
    assert_asked(1, "checkpoint");
    run_code(&w, "x");
    assert_asked(2, "restore 1 vars");
    assert_asked(3, "cell x\n");
    assert_null(strstr(answer(&w, 1), "put back"));
    world_close(&w);
}

static void a_message_puts_off_the_idle_time(void **state)
{
    struct world w;
    (void)state;
    keep_open(&w, SAVED("vars"));
    world_start(&w, "");
    run_code(&w, "x=1");
    world_run(&w, 50000);
    run_code(&w, "x=2");
    world_run(&w, 50000);
    assert_null(sandbox_fake_asked(2));
    world_run(&w, 11000);
    assert_asked(2, "checkpoint");
    world_close(&w);
}

static void a_message_does_not_wait_for_a_checkpoint(void **state)
{
    struct world w;
    (void)state;
    keep_open(&w, "{\"op\":\"checkpoint\",\"hang\":true}\n");
    world_start(&w, "");
    run_code(&w, "x=1");
    world_run(&w, 61000);
    assert_asked(1, "checkpoint");
    run_code(&w, "y");
    assert_asked(2, "cell y\n"); /* in the same box */
    assert_int_equal(world_count(&w, CHAT_ANSWER), 2);
    world_close(&w);
}

static void one_that_failed_leaves_the_box_open(void **state)
{
    struct world w;
    (void)state;
    keep_open(&w, "{\"op\":\"checkpoint\",\"fail\":\"no memory\"}\n" SAVED("later"));
    log_set_level(LOG_ERROR);
    world_start(&w, "");
    run_code(&w, "x=1");
    world_run(&w, 61000);
    assert_asked(1, "checkpoint");
    assert_null(sandbox_fake_asked(2));
    world_run(&w, 61000); /* tried again */
    assert_asked(2, "checkpoint");
    run_code(&w, "x");
    assert_asked(3, "restore 1 later");
    world_close(&w);
}

static void after_an_answer_one_is_made_when_the_last_is_old(void **state)
{
    struct world w;
    (void)state;
    keep_open(&w, SAVED("one") SAVED("two"));
    w.conf.checkpoint_every_ms = 10000;
    w.conf.idle_checkpoint_ms = 0;
    world_start(&w, "");
    run_code(&w, "x=1");
    assert_asked(1, "checkpoint");
    run_code(&w, "x=2");
    run_code(&w, "x=3");
    assert_asked(3, "cell x=3\n");
    assert_null(sandbox_fake_asked(4));
    world_run(&w, 10000);
    assert_null(sandbox_fake_asked(4)); /* by itself nothing happens */
    run_code(&w, "x=4");
    assert_asked(5, "checkpoint");
    world_close(&w);
}

static void rest_done(void *ud)
{
    ++*(int *)ud;
}

static void at_the_end_what_is_not_saved_is(void **state)
{
    struct world w;
    int done = 0;
    (void)state;
    keep_open(&w, SAVED("vars"));
    world_start(&w, "");
    run_code(&w, "x=1");
    session_hub_rest(w.hub, rest_done, &done);
    world_say(&w, "```python\nlate\n```"); /* kept, not begun */
    world_run(&w, 1000);
    assert_int_equal(done, 1);
    assert_asked(1, "checkpoint");
    assert_null(sandbox_fake_asked(2));
    world_stop(&w);
    world_start(&w, "");
    world_run(&w, 1000);
    assert_asked(2, "restore 1 vars");
    assert_asked(3, "cell late\n");
    world_close(&w);
}

static void the_end_does_not_wait_for_ever(void **state)
{
    struct world w;
    int done = 0;
    (void)state;
    keep_open(&w, "{\"op\":\"checkpoint\",\"hang\":true}\n");
    world_start(&w, "");
    run_code(&w, "x=1");
    session_hub_rest(w.hub, rest_done, &done);
    world_run(&w, 1000);
    assert_int_equal(done, 0); /* whoever asked has a clock */
    world_stop(&w);
    world_run(&w, 10);
    assert_int_equal(done, 0);
    world_close(&w);
}

/* ---- back ---- */

static void a_crash_costs_nothing_that_ran_to_its_end(void **state)
{
    struct world w;
    (void)state;
    keep_open(&w, SAVED("vars"));
    w.conf.checkpoint_every_ms = 3600000;
    world_start(&w, "");
    run_code(&w, "x=1");
    run_code(&w, "y=2");
    world_stop(&w); /* as a kill leaves it */
    sandbox_fake_script("");
    world_start(&w, "");
    run_code(&w, "z");
    assert_asked(0, "restore 1 vars");
    assert_asked(1, "cell y=2\n");
    assert_asked(2, "cell z\n");
    assert_says(answer(&w, 2), "run again: 2");
    run_code(&w, "z");
    assert_null(strstr(answer(&w, 3), "run again"));
    world_close(&w);
}

static void what_cannot_be_run_again_is_said(void **state)
{
    struct world w;
    (void)state;
    keep_open(&w, "");
    world_start(&w, "");
    run_code(&w, "x=1");
    run_code(&w, "y=2");
    world_stop(&w);
    sandbox_fake_script(FAIL("KeyError") "{}\n");
    world_start(&w, "");
    run_code(&w, "z");
    assert_asked(0, "cell x=1\n");
    assert_asked(1, "cell y=2\n");
    assert_says(answer(&w, 2), "is missing: 1 (KeyError: bad)");
    assert_says(answer(&w, 2), "run again: 2");
    world_close(&w);
}

static void what_did_not_come_back_is_said_once(void **state)
{
    struct world w;
    (void)state;
    keep_open(
        &w,
        SAVED("vars") "{\"op\":\"restore\",\"kept\":1,\"lost\":[{\"name\":\"g\",\"type\":\"generator\",\"why\":\"`g` "
                      "is a generator\"}],\"notes\":[\"numpy was 1 and is 2 now\"]}\n");
    world_start(&w, "");
    run_code(&w, "x=1");
    world_run(&w, 61000);
    run_code(&w, "x");
    assert_says(answer(&w, 1), "`g` is a generator");
    assert_says(answer(&w, 1), "numpy was 1");
    run_code(&w, "x");
    assert_null(strstr(answer(&w, 2), "generator"));
    world_close(&w);
}

static void a_box_that_vanished_is_thawed_into_a_new_one(void **state)
{
    struct world w;
    (void)state;
    keep_open(&w, "{\"lost\":true}\n");
    world_start(&w, "");
    run_code(&w, "x=1");
    run_code(&w, "y");
    assert_asked(1, "cell x=1\n"); /* again */
    assert_asked(2, "cell y\n");
    assert_int_equal(world_count(&w, CHAT_NOTICE), 0);
    world_close(&w);
}

static void a_death_that_left_no_copy_is_made_good_at_once(void **state)
{
    struct world w;
    (void)state;
    keep_open(&w, SAVED("vars") "{}\n{\"status\":\"crash\",\"state\":\"lost\",\"why\":\"it died\"}\n");
    w.conf.checkpoint_every_ms = 3600000;
    world_start(&w, "");
    run_code(&w, "x=1");
    run_code(&w, "die()");
    assert_asked(2, "cell die()\n");
    assert_asked(3, "restore 1 vars");
    assert_says(answer(&w, 1), "it died");
    assert_says(answer(&w, 1), "as they were before this cell");
    run_code(&w, "x");
    assert_asked(4, "cell x\n");
    world_close(&w);
}

static void a_step_back_whose_copy_is_gone_comes_from_the_store(void **state)
{
    struct world w;
    (void)state;
    keep_open(&w, "{\"op\":\"branch\",\"fail\":\"x\"}\n");
    world_start(&w, "");
    run_code(&w, "x=1");
    run_code(&w, "x=2");
    world_say(&w, "!undo");
    world_run(&w, 100);
    assert_says(world_posted(&w, CHAT_NOTICE, 0)->markdown, "cell");
    world_close(&w);
}

static void a_reset_forgets_what_was_saved(void **state)
{
    struct world w;
    (void)state;
    keep_open(&w, SAVED("vars"));
    w.conf.checkpoint_every_ms = 1;
    world_start(&w, "");
    run_code(&w, "x=1");
    world_say(&w, "!reset");
    world_run(&w, 100);
    world_stop(&w);
    sandbox_fake_script("");
    world_start(&w, "");
    run_code(&w, "y");
    assert_asked(0, "cell y\n");
    world_close(&w);
}

static void a_command_thaws_as_a_question_does(void **state)
{
    struct world w;
    (void)state;
    keep_open(&w, SAVED("vars") "{\"op\":\"vars\",\"vars\":[{\"name\":\"x\",\"type\":\"int\",\"detail\":\"1\"}]}\n");
    world_start(&w, "");
    run_code(&w, "x=1");
    world_run(&w, 61000);
    world_say(&w, "!vars");
    world_run(&w, 100);
    assert_asked(2, "restore 1 vars");
    assert_asked(3, "vars");
    assert_says(world_posted(&w, CHAT_NOTICE, 0)->markdown, "`x` int");
    world_close(&w);
}

static void a_turn_can_be_stopped_while_it_thaws(void **state)
{
    struct world w;
    (void)state;
    keep_open(&w, SAVED("vars") "{\"op\":\"restore\",\"hang\":true}\n");
    world_start(&w, "");
    run_code(&w, "x=1");
    world_run(&w, 61000);
    run_code(&w, "x");
    assert_asked(2, "restore 1 vars");
    world_say(&w, "!stop");
    world_run(&w, 1000);
    assert_says(answer(&w, 1), "Stopped by");
    run_code(&w, "x");
    assert_asked(3, "restore 1 vars"); /* it has nothing yet */
    assert_asked(4, "cell x\n");
    world_close(&w);
}

static void without_a_store_that_lasts_nothing_is_saved(void **state)
{
    struct world w;
    (void)state;
    keep_open(&w, SAVED("vars"));
    w.keep_state = false;
    w.conf.checkpoint_every_ms = 1;
    world_start(&w, "");
    run_code(&w, "x=1");
    world_run(&w, 120000);
    assert_null(sandbox_fake_asked(1));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_session_is_saved_and_thawed_by_its_next_message),
        cmocka_unit_test(a_message_puts_off_the_idle_time),
        cmocka_unit_test(a_message_does_not_wait_for_a_checkpoint),
        cmocka_unit_test(one_that_failed_leaves_the_box_open),
        cmocka_unit_test(after_an_answer_one_is_made_when_the_last_is_old),
        cmocka_unit_test(at_the_end_what_is_not_saved_is),
        cmocka_unit_test(the_end_does_not_wait_for_ever),
        cmocka_unit_test(a_crash_costs_nothing_that_ran_to_its_end),
        cmocka_unit_test(what_cannot_be_run_again_is_said),
        cmocka_unit_test(what_did_not_come_back_is_said_once),
        cmocka_unit_test(a_box_that_vanished_is_thawed_into_a_new_one),
        cmocka_unit_test(a_death_that_left_no_copy_is_made_good_at_once),
        cmocka_unit_test(a_step_back_whose_copy_is_gone_comes_from_the_store),
        cmocka_unit_test(a_reset_forgets_what_was_saved),
        cmocka_unit_test(a_command_thaws_as_a_question_does),
        cmocka_unit_test(a_turn_can_be_stopped_while_it_thaws),
        cmocka_unit_test(without_a_store_that_lasts_nothing_is_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
