/* Calls that go wrong, boxes that fail, people who stop a turn, programs of their own. */
#include "core_scene.h"

/* ---- calls that go wrong ---- */

static void bare_code_as_arguments_runs(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, "{\"calls\":[{\"name\":\"python\",\"args\":\"print(6*7)\"}]}\n" SAY("42"), PRINTS("42"));
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    assert_string_equal(sandbox_fake_asked(0), "cell print(6*7)");
    assert_says(s.seen.messages, "\"name\":\"run_python\",\"args\":\"{\\\"code\\\":\\\"print(6*7)\\\"}\"");
    scene_close(&s);
}

static void a_call_cut_twice_never_runs_and_ends_the_turn(void **state)
{
    struct scene s;
    (void)state;
    scene_play(
        &s,
        "{\"calls\":[{\"args\":\"{\\\"code\\\":\\\"import os\"}],\"stop\":\"length\"}\n"
        "{\"calls\":[{\"args\":\"{\\\"code\\\":\\\"import os\"}],\"stop\":\"end\",\"expect\":\"Send a shorter program\"}\n" LAST(
            "Too long."),
        "");
    assert_ended(&s, AGENT_FAILED, 0, 3);
    assert_null(strstr(s.seen.messages, "import os")); /* broken JSON never stands in history */
    scene_close(&s);
}

static void a_whole_call_that_was_cut_by_length_does_not_run(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, "{\"calls\":[{\"args\":{\"code\":\"x\"}}],\"stop\":\"length\"}\n" CALL("y") SAY("ok"), PRINTS("1"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_string_equal(sandbox_fake_asked(0), "cell y");
    scene_close(&s);
}

static void an_unknown_tool_fails_and_the_turn_goes_on(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s,
               "{\"calls\":[{\"name\":\"web search!\",\"args\":{\"q\":\"x\"}}]}\n"
               "{\"calls\":[{\"args\":{\"code\":\"1\"}}],\"expect\":\"There is no tool\"}\n" SAY("1"),
               PRINTS("1"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_null(strstr(s.seen.messages, "web search!")); /* no provider takes such a name */
    scene_close(&s);
}

static void a_call_written_as_text_runs(void **state)
{
    struct scene s;
    (void)state;
    scene_play(
        &s,
        "{\"text\":\"<tool_call>{\\\"name\\\":\\\"run_python\\\",\\\"arguments\\\":{\\\"code\\\":\\\"1\\\"}}</tool_call>\"}\n" SAY(
            "1"),
        PRINTS("1"));
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    assert_null(strstr(s.seen.messages, "tool_call>"));
    scene_close(&s);
}

static void several_calls_run_in_order_until_one_fails(void **state)
{
    struct scene s;
    (void)state;
    scene_play(
        &s,
        "{\"calls\":[{\"id\":\"x\",\"args\":{\"code\":\"a\"}},{\"id\":\"y\",\"args\":{\"code\":\"b\"}},{\"id\":\"z\",\"args\":{"
        "\"code\":\"c\"}}]}\n"
        "{\"text\":\"Partly.\",\"expect\":\"not run: an earlier call failed\"}\n",
        PRINTS("1") FAIL("XError"));
    assert_ended(&s, AGENT_ANSWERED, 2, 2);
    assert_says(s.seen.messages, "\"call_id\":\"z\"");
    scene_close(&s);
}

static void a_name_that_is_not_there_is_answered_with_the_call_that_loads_the_file(void **state)
{
    static const char files[] =
        "[{\"path\":\"a.csv\",\"name\":\"a.csv\",\"kind\":\"csv\",\"bytes\":9,\"sha256\":\"00\",\"load\":\"pd.read_csv('a.csv')\"}]";
    struct scene s;
    struct err e = { 0 };
    (void)state;
    scene_open(
        &s,
        CALL("df.x") "{\"calls\":[{\"args\":{\"code\":\"y\"}}],\"expect\":\"then `df = pd.read_csv('a.csv')`\"}\n" SAY(
            "Done."),
        FAIL("NameError") PRINTS("1"));
    assert_int_equal(json_parse(&s.files, files, strlen(files), 1 << 20, &e), 0);
    scene_start_with(&s, "show x", NULL);
    world_run(&s.w, 1000);
    assert_ended(&s, AGENT_ANSWERED, 2, 3);
    scene_close(&s);
}

/* ---- the box ---- */

static void a_killed_cell_is_told_with_its_cause(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, CALL("a=[0]*10**10") "{\"text\":\"Too large.\",\"expect\":\"killed at the memory limit\"}\n",
               "{\"status\":\"oom\",\"state\":\"rolled_back\",\"why\":\"used 1.1 GB, limit 1 GB\"}\n");
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    assert_says(s.seen.messages, "used 1.1 GB, limit 1 GB");
    assert_says(s.seen.messages, "Variables are as they were before this cell.");
    scene_close(&s);
}

static void a_failed_sandbox_ends_the_turn_in_words(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, CALL("1"), "{\"fail\":\"keeper died\"}\n");
    assert_ended(&s, AGENT_FAILED, 1, 1);
    assert_true(s.seen.box_lost);
    assert_null(strstr(s.seen.answer, "keeper"));
    assert_says(s.seen.messages, "the sandbox failed while this ran");
    scene_close(&s);
}

static void long_output_reaches_the_model_as_head_and_tail(void **state)
{
    struct scene s;
    (void)state;
    AUTO(str_clear) struct str box = STR_INIT(1 << 20);
    str_puts(&box, "{\"stdout\":\"");
    for (int i = 0; i < 20000; i++)
        str_printf(&box, "%d ", i);
    str_puts(&box, "\"}\n");
    scene_play(&s, CALL("print(*range(20000))") "{\"text\":\"ok\",\"expect\":\"characters left out here\"}\n",
               str_peek(&box));
    assert_true(strlen(s.seen.messages) < 12000);
    assert_says(s.seen.messages, "19999");
    scene_close(&s);
}

/* ---- stopped by a person ---- */

static void stopping_while_the_model_thinks_ends_at_once(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, "{\"text\":\"late\",\"delay_ms\":60000}\n", "");
    scene_start_with(&s, "go", NULL);
    world_run(&s.w, 100);
    agent_cancel(s.agent, "ben");
    assert_false(s.seen.done);
    world_run(&s.w, 10);
    assert_true(s.seen.done);
    assert_ended(&s, AGENT_CANCELLED, 0, 0);
    assert_says(s.seen.answer, "Stopped by ben");
    scene_close(&s);
}

static void stopping_in_a_cell_leaves_a_valid_history(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, "{\"calls\":[{\"id\":\"x\",\"args\":{\"code\":\"a\"}},{\"id\":\"y\",\"args\":{\"code\":\"b\"}}]}\n",
               "{\"hang\":true}\n");
    scene_start_with(&s, "go", NULL);
    world_run(&s.w, 100);
    agent_cancel(s.agent, "ben");
    agent_cancel(s.agent, "carl"); /* too late to matter */
    world_run(&s.w, 100);
    assert_true(s.seen.done);
    assert_ended(&s, AGENT_CANCELLED, 1, 1);
    assert_says(s.seen.messages, "\"text\":\"cancelled by ben\",\"call_id\":\"x\"");
    assert_says(s.seen.messages, "\"text\":\"cancelled by ben\",\"call_id\":\"y\"");
    scene_close(&s);
}

static void stopping_before_it_began_and_after_it_ended_is_harmless(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, SAY("x"), "");
    scene_start_with(&s, "go", NULL);
    agent_cancel(s.agent, "ben");
    world_run(&s.w, 100);
    assert_ended(&s, AGENT_CANCELLED, 0, 0);
    agent_cancel(s.agent, "ben");
    world_run(&s.w, 100);
    scene_close(&s);
}

static void an_agent_can_be_freed_at_any_moment(void **state)
{
    (void)state;
    for (int64_t ms = 0; ms < 200; ms += 10) {
        struct scene s;
        scene_open(&s, "{\"calls\":[{\"args\":{\"code\":\"1\"}}],\"delay_ms\":50}\n{\"text\":\"x\",\"delay_ms\":50}\n",
                   "{\"delay_ms\":50}\n");
        scene_start_with(&s, "go", NULL);
        world_run(&s.w, ms);
        sandbox_fake.close(take(s.box));
        agent_free(take(s.agent));
        world_run(&s.w, 500);
        scene_close(&s);
    }
}

/* ---- a person's own program ---- */

static void a_persons_program_runs_without_a_model(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, "", "{\"stdout\":\"hi\\n\",\"result\":{\"text/plain\":\"3\"}}\n");
    scene_start_with(&s, "```python\nx\n```", "x\n");
    world_run(&s.w, 100);
    assert_ended(&s, AGENT_ANSWERED, 1, 0);
    assert_string_equal(s.seen.answer, "```\nhi\n```\n```\n3\n```\n");
    assert_says(s.seen.messages, "\"role\":\"tool\"");
    scene_close(&s);
}

static void a_persons_program_that_fails_shows_its_error(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, "", FAIL("ValueError"));
    scene_start_with(&s, "```python\nx\n```", "x\n");
    world_run(&s.w, 100);
    assert_ended(&s, AGENT_FAILED, 1, 0);
    assert_says(s.seen.answer, "**ValueError** in line 1");
    scene_close(&s);
}

/* ---- answers ---- */

static void links_into_the_box_are_taken_out(void **state)
{
    struct scene s;
    (void)state;
    scene_play(
        &s,
        CALL("df.to_excel('out/out.xlsx')") SAY(
            "Saved: [the table](sandbox:/mnt/data/out/out.xlsx) and [more](sandbox:/mnt/data/other.csv). ![chart](attachment://c.png)"),
        "{\"files\":[{\"path\":\"out/out.xlsx\"}],\"figures\":[{\"path\":\"figure-1-1.png\"}]}\n");
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    assert_null(strstr(s.seen.answer, "sandbox:"));
    assert_null(strstr(s.seen.answer, "attachment:"));
    assert_says(s.seen.answer, "Saved: the table: `out.xlsx` and more.");
    assert_says(s.seen.answer, "There is no file `other.csv`");
    assert_null(strstr(s.seen.answer, "no file `out.xlsx`"));
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bare_code_as_arguments_runs),
        cmocka_unit_test(a_call_cut_twice_never_runs_and_ends_the_turn),
        cmocka_unit_test(a_whole_call_that_was_cut_by_length_does_not_run),
        cmocka_unit_test(an_unknown_tool_fails_and_the_turn_goes_on),
        cmocka_unit_test(a_call_written_as_text_runs),
        cmocka_unit_test(several_calls_run_in_order_until_one_fails),
        cmocka_unit_test(a_name_that_is_not_there_is_answered_with_the_call_that_loads_the_file),
        cmocka_unit_test(a_killed_cell_is_told_with_its_cause),
        cmocka_unit_test(a_failed_sandbox_ends_the_turn_in_words),
        cmocka_unit_test(long_output_reaches_the_model_as_head_and_tail),
        cmocka_unit_test(stopping_while_the_model_thinks_ends_at_once),
        cmocka_unit_test(stopping_in_a_cell_leaves_a_valid_history),
        cmocka_unit_test(stopping_before_it_began_and_after_it_ended_is_harmless),
        cmocka_unit_test(an_agent_can_be_freed_at_any_moment),
        cmocka_unit_test(a_persons_program_runs_without_a_model),
        cmocka_unit_test(a_persons_program_that_fails_shows_its_error),
        cmocka_unit_test(links_into_the_box_are_taken_out),
    };
    return cmocka_run_group_tests_name("agent_run", tests, NULL, NULL);
}
