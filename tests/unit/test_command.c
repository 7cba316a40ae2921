/* Commands: which words are some, and what they answer. */
#include "core_world.h"

static const char *notice(const struct world *w, size_t i)
{
    return world_posted(w, CHAT_NOTICE, i)->markdown;
}

static void words_are_commands_only_where_they_are_meant_so(void **state)
{
    static const struct {
        struct chat_event ev;
        bool command;
    } cases[] = {
        { { .text = "!help", .direct = true }, true },
        { { .text = "  !HELP \n", .direct = true }, true },
        { { .text = "help", .direct = true }, true },
        { { .text = "help", .mentioned = true }, true },
        { { .text = "!help", .mentioned = true }, true },
        { { .text = "help me with this table", .direct = true }, false },
        { { .text = "!help me", .direct = true }, false },
        { { .text = "helpful", .direct = true }, false },
        { { .text = "", .mentioned = true }, true }, /* called, and nothing said */
        { { .text = "Help!", .mentioned = true }, true },
        { { .text = "help.", .direct = true }, true },
        { { .text = "help?", .direct = true }, false },
        { { .text = "\xef\xbc\x81help", .direct = true }, true },
        { { .text = "Stop\xe3\x80\x82", .direct = true }, true },
        { { .text = "helping", .direct = true }, false },
        { { .text = "!nosuch", .direct = true }, false },
        { { .text = "!", .direct = true }, false },
        { { .text = "model the sales by region", .direct = true }, false },
        { { .text = "model", .direct = true }, true },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct world w;
        world_open(&w, "", "");
        world_start(&w, SAY("A model's answer."));
        assert_int_equal(world_event(&w, &cases[i].ev), 0);
        world_run(&w, 100);
        if (world_count(&w, CHAT_NOTICE) != cases[i].command || world_count(&w, CHAT_ANSWER) == cases[i].command)
            fail_msg("\"%s\" was taken wrongly", cases[i].ev.text);
        assert_true(session_hub_idle(w.hub));
        world_close(&w);
    }
}

static void in_a_thread_commands_need_their_mark(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("1") SAY("2"));
    assert_int_equal(world_event(&w, &(struct chat_event){ .text = "hi", .thread = "t", .mentioned = true }), 0);
    world_run(&w, 100);
    assert_int_equal(world_event(&w, &(struct chat_event){ .text = "files", .thread = "t" }), 0);
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_NOTICE), 0);
    assert_int_equal(world_event(&w, &(struct chat_event){ .text = "!files", .thread = "t" }), 0);
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_NOTICE), 1);
    world_close(&w);
}

static void help_names_every_command_in_the_persons_language(void **state)
{
    static const char *const names[] = { "branch", "code", "files", "help", "history", "model", "rerun",
                                         "reset",  "stop", "test",  "undo", "usage",   "vars" };
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, "");
    world_say(&w, "!help");
    for (size_t i = 0; i < countof(names); i++) {
        autofree char *line = xasprintf("- `!%s", names[i]);
        assert_says(notice(&w, 0), line);
    }
    assert_says(notice(&w, 0), "Send a file");
    world_close(&w);
}

static void files_code_and_history_show_what_is_there(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", PRINTS("1"));
    world_start(&w, CALL("x = 1") SAY("1"));
    world_say(&w, "!files");
    world_say(&w, "!code");
    world_say(&w, "!history");
    assert_says(notice(&w, 0), "No files yet");
    assert_says(notice(&w, 1), "Nothing was run yet");
    assert_says(notice(&w, 2), "No questions yet");
    world_send(&w, &(struct chat_event){ .direct = true, .text = "what is x?" }, "a.csv", "x\n");
    world_run(&w, 100);
    world_say(&w, "!files");
    world_say(&w, "!code");
    world_say(&w, "!history");
    assert_says(notice(&w, 3), "- `a.csv`, v1, 1 KB");
    assert_says(notice(&w, 4), "```python\n# 1\nx = 1\n```");
    assert_says(notice(&w, 5), "1. what is x? *(answered)*");
    world_close(&w);
}

static void undo_and_branch_go_back_and_say_what_could_not_be_carried(void **state)
{
    struct world w;
    (void)state;
    world_open(
        &w, "",
        "{}\n{\"op\":\"undo\",\"cell\":0,\"notes\":[]}\n{\"op\":\"branch\",\"cell\":1,\"notes\":[\"the thread pool `ex` is "
        "gone\"]}\n");
    world_start(&w, CALL("x=1") SAY("ok"));
    world_say(&w, "!undo");
    world_run(&w, 100);
    assert_says(notice(&w, 0), "No variables yet");
    world_say(&w, "set x");
    world_run(&w, 100);
    world_say(&w, "!undo");
    world_say(&w, "!branch 1");
    world_say(&w, "!branch one");
    world_run(&w, 100);
    assert_says(notice(&w, 1), "before the first cell");
    assert_says(notice(&w, 2), "what they were after cell 1");
    assert_says(notice(&w, 2), "the thread pool `ex` is gone");
    assert_says(notice(&w, 3), "`one` is not the number of a cell");
    assert_true(session_hub_idle(w.hub));
    world_close(&w);
}

static void programs_are_shown_whole_whatever_stands_in_them(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{}\n");
    world_start(&w, SAY("unused"));
    world_say(&w, "```python\n\ny = '```'\nprint(y)\n```");
    world_run(&w, 100);
    world_say(&w, "!code");
    world_say(&w, "!history");
    world_run(&w, 100);
    assert_says(notice(&w, 0), "````python\n# 1\n");
    assert_says(notice(&w, 0), "print(y)\n````");
    assert_string_equal(notice(&w, 1), "1. `y = ''''' ...` *(answered)*\n");
    world_close(&w);
}

static void rerun_takes_a_number_of_the_history(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("1") SAY("2") "{\"text\":\"again\",\"expect\":\"first question\"}\n");
    world_say(&w, "first question");
    world_run(&w, 100);
    world_say(&w, "second question");
    world_run(&w, 100);
    world_say(&w, "!rerun 9");
    world_say(&w, "!rerun 1");
    world_run(&w, 100);
    assert_says(notice(&w, 0), "There is no question 9: `history` lists 2");
    assert_string_equal(answer(&w, 2), "again");
    world_close(&w);
}

static void test_runs_a_program_of_ours(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", PRINTS("fine"));
    world_start(&w, "");
    world_say(&w, "!test");
    world_run(&w, 100);
    assert_int_equal(world_cells(), 1);
    assert_says(answer(&w, 0), "fine");
    world_close(&w);
}

static void vars_and_reset_ask_the_box_in_their_turn(void **state)
{
    struct world w;
    (void)state;
    world_open(
        &w, "",
        "{\"delay_ms\":300}\n{\"op\":\"vars\",\"vars\":[{\"name\":\"df\",\"type\":\"DataFrame\",\"detail\":\"3 x 2\"}]}\n"
        "{\"op\":\"reset\"}\n");
    world_start(&w, CALL("df=1") SAY("ok") "{\"text\":\"2\",\"expect\":\"The interpreter is new\"}\n");
    world_say(&w, "!vars");
    world_run(&w, 100);
    assert_says(notice(&w, 0), "No variables yet");
    world_say(&w, "go");
    world_say(&w, "!vars");
    world_say(&w, "!reset");
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_NOTICE), 1); /* the cell runs; they wait */
    world_run(&w, 900);
    assert_string_equal(notice(&w, 1), "- `df` DataFrame, 3 x 2\n");
    assert_says(notice(&w, 2), "Variables are gone");
    world_say(&w, "and now?");
    world_run(&w, 100);
    assert_string_equal(world_posted(&w, CHAT_ANSWER, 1)->markdown, "2");
    world_close(&w);
}

static void stop_and_rerun_without_anything_say_so(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, "");
    world_say(&w, "!stop");
    world_say(&w, "!rerun");
    assert_says(notice(&w, 0), "Nothing is running here");
    assert_says(notice(&w, 1), "no earlier question");
    world_close(&w);
}

static void a_program_is_rerun_as_a_program(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", PRINTS("1") PRINTS("2"));
    world_start(&w, "");
    world_say(&w, "```python\nx\n```");
    world_run(&w, 100);
    world_say(&w, "!rerun");
    world_run(&w, 100);
    assert_string_equal(world_posted(&w, CHAT_ANSWER, 1)->markdown, "```\n2\n```\n");
    world_close(&w);
}

static void the_model_is_shown_and_changed_for_this_conversation(void **state)
{
    struct world w;
    struct err e = { 0 };
    (void)state;
    world_open(&w, "", "");
    autofree char *path = xasprintf("%s/second.jsonl", w.dir), *url = xasprintf("model.second.url=%s", path);
    world_write(path, SAY("from the second"));
    assert_int_equal(conf_set(&w.conf, "model.second.dialect=replay", &e), 0);
    assert_int_equal(conf_set(&w.conf, url, &e), 0);
    world_start(&w, SAY("from the first"));
    world_say(&w, "!model");
    assert_says(notice(&w, 0), "Model here: `tape`");
    assert_says(notice(&w, 0), "`second`");
    world_say(&w, "!model third");
    assert_says(notice(&w, 1), "no model `third`");
    world_say(&w, "!model second");
    world_say(&w, "hello");
    assert_int_equal(world_event(&w, &(struct chat_event){ .room = "other", .text = "hello", .direct = true }), 0);
    world_run(&w, 100);
    assert_string_equal(world_posted(&w, CHAT_ANSWER, 0)->markdown, "from the second");
    assert_string_equal(world_posted(&w, CHAT_ANSWER, 1)->markdown, "from the first");
    world_close(&w);
}

static void usage_counts_calls_and_tokens(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, "{\"text\":\"1\",\"usage\":{\"in\":100,\"out\":11}}\n");
    world_say(&w, "hi");
    world_run(&w, 100);
    world_say(&w, "!usage");
    assert_says(notice(&w, 0), "111 tokens in 1 call of a model");
    assert_says(notice(&w, 0), "your budget of today: 111 tokens / no limit");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_commands_only_where_they_are_meant_so),
        cmocka_unit_test(in_a_thread_commands_need_their_mark),
        cmocka_unit_test(help_names_every_command_in_the_persons_language),
        cmocka_unit_test(files_code_and_history_show_what_is_there),
        cmocka_unit_test(undo_and_branch_go_back_and_say_what_could_not_be_carried),
        cmocka_unit_test(rerun_takes_a_number_of_the_history),
        cmocka_unit_test(test_runs_a_program_of_ours),
        cmocka_unit_test(vars_and_reset_ask_the_box_in_their_turn),
        cmocka_unit_test(stop_and_rerun_without_anything_say_so),
        cmocka_unit_test(a_program_is_rerun_as_a_program),
        cmocka_unit_test(the_model_is_shown_and_changed_for_this_conversation),
        cmocka_unit_test(usage_counts_calls_and_tokens),
        cmocka_unit_test(programs_are_shown_whole_whatever_stands_in_them),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
