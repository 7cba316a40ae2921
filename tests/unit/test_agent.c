/* Turns against a recorded model and a scripted box: limits with their counts, and ends that are always given. */
#include "core_scene.h"

/* ---- the plain way ---- */

static void a_question_becomes_a_program_becomes_an_answer(void **state)
{
    struct scene s;
    (void)state;
    scene_play(
        &s,
        "{\"text\":\"I count.\",\"calls\":[{\"args\":{\"code\":\"print(len(df))\"}}],\"expect\":\"[user: @ann] how many "
        "rows?\",\"usage\":{\"in\":100,\"out\":10}}\n"
        "{\"text\":\"There are 42 rows.\",\"expect\":\"42\",\"usage\":{\"in\":120,\"out\":8}}\n",
        PRINTS("42\\n"));
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    assert_string_equal(s.seen.answer, "There are 42 rows.");
    assert_string_equal(sandbox_fake_asked(0), "cell print(len(df))");
    assert_int_equal(s.seen.tokens, 238);
    assert_int_equal(s.seen.phases[AGENT_THINKING], 2);
    assert_int_equal(s.seen.phases[AGENT_RUNNING], 1);
    assert_says(s.seen.messages, "\"role\":\"assistant\",\"text\":\"There are 42 rows.\"");
    scene_close(&s);
}

static void a_question_without_data_needs_no_program(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, SAY("Hello!"), "");
    assert_ended(&s, AGENT_ANSWERED, 0, 1);
    scene_close(&s);
}

static void a_failed_cell_is_repaired(void **state)
{
    struct scene s;
    (void)state;
    scene_play(
        &s,
        CALL("df['fare'].mean()") "{\"calls\":[{\"args\":{\"code\":\"df['Fare'].mean()\"}}],\"expect\":\"at line 1 of your program: df['fare'].mean()\"}\n" SAY(
            "The mean is 32."),
        "{\"status\":\"error\",\"error\":{\"name\":\"KeyError\",\"value\":\"'fare'\",\"line\":1},\"notes\":[\"did you mean 'Fare'?\"]}\n" PRINTS(
            "32"));
    assert_ended(&s, AGENT_ANSWERED, 2, 3);
    assert_says(s.seen.messages, "KeyError: 'fare'");
    assert_says(s.seen.messages, "did you mean 'Fare'?");
    assert_int_equal(s.seen.phases[AGENT_REPAIRING], 1);
    scene_close(&s);
}

/* ---- limits, each with its count ---- */

static void a_program_that_always_fails_is_given_up_after_three(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, CALL("1/0") CALL("1/0") CALL("1/0") LAST("I could not find out."),
               FAIL("ZeroDivisionError") FAIL("ZeroDivisionError") FAIL("ZeroDivisionError"));
    assert_ended(&s, AGENT_FAILED, 3, 4);
    assert_string_equal(s.seen.answer, "I could not find out.");
    assert_says(s.seen.messages, "This is the same error as before");
    scene_close(&s);
}

static void different_errors_are_given_up_after_three_too(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, CALL("a") CALL("b") CALL("c") LAST("No."), FAIL("AError") FAIL("BError") FAIL("CError"));
    assert_ended(&s, AGENT_FAILED, 3, 4);
    scene_close(&s);
}

static void a_success_between_starts_the_count_again(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, CALL("a") CALL("b") CALL("c") CALL("d") CALL("e") SAY("Done."),
               FAIL("AError") FAIL("BError") PRINTS("1") FAIL("AError") PRINTS("2"));
    assert_ended(&s, AGENT_ANSWERED, 5, 6);
    scene_close(&s);
}

static void the_same_successful_call_ends_after_three(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, CALL("n") CALL("n") CALL("n") LAST("It is 1."), PRINTS("1") PRINTS("1") PRINTS("1"));
    assert_ended(&s, AGENT_ANSWERED, 3, 4);
    assert_says(s.seen.messages, "This is the same program as before");
    assert_string_equal(s.seen.answer, "It is 1.");
    scene_close(&s);
}

static void the_same_error_by_different_programs_is_noted_and_ended(void **state)
{
    struct scene s;
    struct err e = { 0 };
    (void)state;
    scene_open(&s, CALL("a") CALL("b") CALL("c") LAST("No."), FAIL("XError") FAIL("XError") FAIL("XError"));
    assert_int_equal(conf_set(&s.w.conf, "agent.max_repairs=9", &e), 0);
    scene_start_with(&s, "go", NULL);
    world_run(&s.w, 1000);
    assert_ended(&s, AGENT_FAILED, 3, 4);
    assert_says(s.seen.messages, "The same step came again and again");
    scene_close(&s);
}

static void steps_are_limited(void **state)
{
    struct scene s;
    struct err e = { 0 };
    (void)state;
    scene_open(&s, CALL("a") CALL("b") CALL("c") LAST("So far: 3."), PRINTS("1") PRINTS("2") PRINTS("3"));
    assert_int_equal(conf_set(&s.w.conf, "agent.max_steps=3", &e), 0);
    scene_start_with(&s, "go", NULL);
    world_run(&s.w, 1000);
    assert_ended(&s, AGENT_ANSWERED, 3, 4);
    scene_close(&s);
}

static void time_is_limited_while_the_model_thinks(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, CALL("a") "{\"text\":\"late\",\"delay_ms\":900000}\n" LAST("As far as I got."), PRINTS("1"));
    scene_start_with(&s, "go", NULL);
    world_run(&s.w, 301000);
    assert_true(s.seen.done);
    assert_string_equal(s.seen.answer, "As far as I got.");
    assert_says(s.seen.messages, "300 s");
    scene_close(&s);
}

static void time_is_limited_while_a_cell_runs(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, CALL("a") LAST("It took too long."), "{\"hang\":true}\n");
    scene_start_with(&s, "go", NULL);
    world_run(&s.w, 301000);
    assert_true(s.seen.done);
    assert_ended(&s, AGENT_FAILED, 1, 2);
    assert_string_equal(s.seen.answer, "It took too long.");
    scene_close(&s);
}

/* ---- silence, refusals, transport ---- */

static void silence_is_nudged_once_and_then_ended(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, SAY("") "{\"text\":\" \",\"expect\":\"Your last message was empty\"}\n" LAST(""), "");
    assert_ended(&s, AGENT_FAILED, 0, 3);
    assert_says(s.seen.answer, "gave no answer");
    scene_close(&s);
}

static void an_answer_after_the_nudge_counts(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, SAY("") SAY("Now: 3."), "");
    assert_ended(&s, AGENT_ANSWERED, 0, 2);
    scene_close(&s);
}

static void a_refusal_is_passed_on(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, "{\"text\":\"I can't help with that.\",\"stop\":\"refused\"}\n", "");
    assert_ended(&s, AGENT_REFUSED, 0, 1);
    assert_string_equal(s.seen.answer, "I can't help with that.");
    scene_close(&s);
}

static void a_cut_answer_says_so(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, "{\"text\":\"The first part\",\"stop\":\"length\"}\n", "");
    assert_ended(&s, AGENT_ANSWERED, 0, 1);
    assert_says(s.seen.answer, "The first part");
    assert_says(s.seen.answer, "length limit");
    scene_close(&s);
}

static void the_network_is_tried_three_times(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, "{\"error\":{\"kind\":\"net\"}}\n{\"error\":{\"kind\":\"limit\",\"retry_ms\":700}}\n" SAY("Here."),
               "");
    assert_ended(&s, AGENT_ANSWERED, 0, 1);
    scene_close(&s);
    scene_play(
        &s, "{\"error\":{\"kind\":\"net\"}}\n{\"error\":{\"kind\":\"net\"}}\n{\"error\":{\"kind\":\"net\"}}\n" SAY("x"),
        "");
    assert_ended(&s, AGENT_FAILED, 0, 0);
    assert_says(s.seen.answer, "can't be reached");
    scene_close(&s);
}

static void a_refused_request_is_not_tried_again(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, "{\"error\":{\"kind\":\"refused\"}}\n" SAY("x"), "");
    assert_ended(&s, AGENT_FAILED, 0, 0);
    assert_says(s.seen.answer, "did not accept");
    scene_close(&s);
}

static void when_the_last_word_fails_too_there_is_a_sentence(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, CALL("1/0") CALL("1/0") CALL("1/0") "{\"error\":{\"kind\":\"net\"}}\n",
               FAIL("ZeroDivisionError") FAIL("ZeroDivisionError") FAIL("ZeroDivisionError"));
    assert_ended(&s, AGENT_FAILED, 3, 3);
    assert_says(s.seen.answer, "3 programs in a row failed");
    assert_says(s.seen.answer, "ZeroDivisionError: bad");
    scene_close(&s);
}

static void a_call_in_the_last_word_is_not_run(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, CALL("n") CALL("n") CALL("n") "{\"text\":\"One.\",\"calls\":[{\"args\":{\"code\":\"1\"}}]}\n",
               PRINTS("1") PRINTS("1") PRINTS("1"));
    assert_ended(&s, AGENT_ANSWERED, 3, 4);
    assert_string_equal(s.seen.answer, "One.");
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_becomes_a_program_becomes_an_answer),
        cmocka_unit_test(a_question_without_data_needs_no_program),
        cmocka_unit_test(a_failed_cell_is_repaired),
        cmocka_unit_test(a_program_that_always_fails_is_given_up_after_three),
        cmocka_unit_test(different_errors_are_given_up_after_three_too),
        cmocka_unit_test(a_success_between_starts_the_count_again),
        cmocka_unit_test(the_same_successful_call_ends_after_three),
        cmocka_unit_test(the_same_error_by_different_programs_is_noted_and_ended),
        cmocka_unit_test(steps_are_limited),
        cmocka_unit_test(time_is_limited_while_the_model_thinks),
        cmocka_unit_test(time_is_limited_while_a_cell_runs),
        cmocka_unit_test(silence_is_nudged_once_and_then_ended),
        cmocka_unit_test(an_answer_after_the_nudge_counts),
        cmocka_unit_test(a_refusal_is_passed_on),
        cmocka_unit_test(a_cut_answer_says_so),
        cmocka_unit_test(the_network_is_tried_three_times),
        cmocka_unit_test(a_refused_request_is_not_tried_again),
        cmocka_unit_test(when_the_last_word_fails_too_there_is_a_sentence),
        cmocka_unit_test(a_call_in_the_last_word_is_not_run),
    };
    return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
