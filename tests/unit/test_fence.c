/* Programs in fences: found in text, in streams, and put back into a conversation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include "fence.h"

static struct model_answer answer(const char *text, enum model_stop stop)
{
    return (struct model_answer){ .msg = { .role = MODEL_ASSISTANT, .text = xstrdup(text) }, .stop = stop };
}

static void clear(struct model_answer *a)
{
    for (size_t i = 0; i < a->msg.call_n; i++) {
        free(a->msg.calls[i].id);
        free(a->msg.calls[i].name);
        free(a->msg.calls[i].args);
    }
    free(a->msg.calls);
    free(a->msg.text);
}

static void programs_are_found_and_prose_in_front_is_kept(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool streamed;
        enum model_stop stop;
        const char *prose, *args; /* NULL: no call */
    } table[] = {
        { "Look:\n\n```python\nprint(1)\n```\n", false, MODEL_STOP_END, "Look:", "{\"code\":\"print(1)\\n\"}" },
        { "```py\nx = 1\n```", false, MODEL_STOP_END, "", "{\"code\":\"x = 1\\n\"}" },
        { "```Python3  \nx\n```  \nOutput: 5", false, MODEL_STOP_END, "", "{\"code\":\"x\\n\"}" },
        { "```python\na\n```\nthen\n```python\nb\n```\n", true, MODEL_STOP_END, "", "{\"code\":\"a\\n\"}" },
        { "```python\na\n```\nthen\n```python\nb\n```\n", false, MODEL_STOP_END, "```python\na\n```\nthen",
          "{\"code\":\"b\\n\"}" },
        { "```python\na\n```\nthen\n```python\nb", false, MODEL_STOP_LENGTH, "", "{\"code\":\"a\\n\"}" },
        { "x\n```python\nprint(1)", true, MODEL_STOP_END, "x", "{\"code\":\"print(1)\\n\"}" },
        { "x\n```python\nprint(1", true, MODEL_STOP_LENGTH, "x", "{\"code\":" },
        { "Only words, `code` and ```inline```.", false, MODEL_STOP_END, NULL, NULL },
        { "```\n| a |\n```\n", false, MODEL_STOP_END, NULL, NULL },
        { "```bash\nls\n```\n", false, MODEL_STOP_END, NULL, NULL },
        { "````markdown\n```python\nx\n```\n````\n", false, MODEL_STOP_END, NULL, NULL },
        { "````python\ns = '''\n```\n'''\n````\n", false, MODEL_STOP_END, "", "{\"code\":\"s = '''\\n```\\n'''\\n\"}" },
        { "1. do\n   ```python\n   if x:\n       y\n   ```\n", false, MODEL_STOP_END, "1. do",
          "{\"code\":\"if x:\\n    y\\n\"}" },
        { "```python\r\nx\r\n```\r\n", false, MODEL_STOP_END, "", "{\"code\":\"x\\n\"}" },
        { "```python\n \n```\n", false, MODEL_STOP_END, NULL, NULL },
        { "```python\n\"\\t\xc3\xbc\"\n```", false, MODEL_STOP_END, "", "{\"code\":\"\\\"\\\\t\xc3\xbc\\\"\\n\"}" },
        { "", false, MODEL_STOP_END, NULL, NULL },
    };
    for (size_t i = 0; i < countof(table); i++) {
        struct model_answer a = answer(table[i].text, table[i].stop);
        fence_answer(&a, table[i].streamed, NULL, "id");
        assert_int_equal(a.msg.call_n, table[i].args ? 1 : 0);
        assert_string_equal(a.msg.text, table[i].args ? table[i].prose : table[i].text);
        if (table[i].args)
            assert_string_equal(a.msg.calls[0].args, table[i].args);
        clear(&a);
    }
}

static struct json *services(void)
{
    static const char text[] =
        "[{\"name\":\"run_python\"},{\"name\":\"rates\"},"
        "{\"name\":\"query_database\",\"parameters\":{\"properties\":{\"sql\":{\"type\":\"string\"}}}}]";
    struct json *v = NULL;
    struct err e = { 0 };
    assert_int_equal(json_parse(&v, text, sizeof(text) - 1, sizeof(text), &e), 0);
    return v;
}

static void other_tools_are_called_in_blocks_of_their_own(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name, *args; /* NULL: no call */
    } table[] = {
        { "```tool\n{\"name\": \"rates\", \"arguments\": {\"base\": \"EUR\"}}\n```\nEUR is 1.1", "rates",
          "{\"base\":\"EUR\"}" },
        { "```tool\n{\"name\": \"rates\", \"base\": \"EUR\"}\n```", "rates", "{\"base\":\"EUR\"}" },
        { "```tool_call\n{\"name\": \"rates\"}\n```", "rates", "{}" },
        { "```sql\nSELECT 1\n```", "query_database", "{\"sql\":\"SELECT 1\\n\"}" },
        { "```tool_code\nprint(1)\n```", "run_python", "{\"code\":\"print(1)\\n\"}" },
        { "```tool\n{\"name\": \"rates\"\n```", "run_python", "{\"name\": \"rates\"\n" },
        { "```bash\nls\n```", NULL, NULL },
    };
    autojson struct json *schema = services();
    for (size_t i = 0; i < countof(table); i++) {
        struct model_answer a = answer(table[i].text, MODEL_STOP_END);
        fence_answer(&a, true, schema, "id");
        assert_int_equal(a.msg.call_n, table[i].name ? 1 : 0);
        if (table[i].name) {
            assert_string_equal(a.msg.calls[0].name, table[i].name);
            assert_string_equal(a.msg.calls[0].args, table[i].args);
        }
        clear(&a);
    }
}

static void blocks_of_tools_that_are_not_there_are_text(void **state)
{
    (void)state;
    static const char *const texts[] = { "```sql\nSELECT 1\n```", "```tool\n{\"name\":\"x\"}\n```" };
    for (size_t i = 0; i < countof(texts); i++) {
        struct model_answer a = answer(texts[i], MODEL_STOP_END);
        fence_answer(&a, true, NULL, "id");
        assert_int_equal(a.msg.call_n, 0);
        clear(&a);
    }
}

static void calls_of_other_tools_come_out_as_they_went_in(void **state)
{
    (void)state;
    struct model_tool_call calls[] = {
        { (char[]){ "1" }, (char[]){ "rates" }, (char[]){ "{\"base\":\"EUR\"}" } },
        { (char[]){ "2" }, (char[]){ "query_database" }, (char[]){ "{\"sql\":\"SELECT 1\"}" } },
        { (char[]){ "3" }, (char[]){ "list_files" }, (char[]){ "{}" } },
    };
    struct model_msg msg = {
        .role = MODEL_ASSISTANT, .text = (char[]){ "" }, .calls = calls, .call_n = countof(calls)
    };
    static const struct model_fence_words words = { "How.", "", "", "", "Tools." };
    struct model_msg system = { .role = MODEL_SYSTEM, .text = (char[]){ "S" } };
    struct model_msg msgs[] = { system, msg };
    const struct model_ask ask = { .msgs = msgs, .msg_n = countof(msgs), .fence = &words };
    struct fence_talk t;
    fence_talk_make(&t, &ask);
    assert_string_equal(t.msgs[1].text, "How.\n\nTools.");
    assert_string_equal(
        t.msgs[2].text,
        "```tool\n{\"name\":\"rates\",\"arguments\":{\"base\":\"EUR\"}}\n```\n\n```sql\nSELECT 1\n```\n\n"
        "```tool\n{\"name\":\"list_files\",\"arguments\":{}}\n```");
    fence_talk_clear(&t);
}

static void a_whole_program_makes_a_cut_answer_a_good_one(void **state)
{
    (void)state;
    struct model_answer a = answer("```python\nx\n```\nand then I would", MODEL_STOP_LENGTH);
    fence_answer(&a, false, NULL, "id");
    assert_int_equal(a.stop, MODEL_STOP_END);
    clear(&a);
    a = answer("```python\nx", MODEL_STOP_LENGTH);
    fence_answer(&a, false, NULL, "id");
    assert_int_equal(a.stop, MODEL_STOP_LENGTH);
    clear(&a);
}

static void a_stream_is_enough_where_its_first_program_ends(void **state)
{
    (void)state;
    static const char text[] = "Look:\n```sql\nx\n```\n```python\nprint(1)\n```\nOutput: 7\n```python\n";
    const size_t end = (size_t)(strstr(text, "\nOutput") + 1 - text);
    for (size_t step = 1; step < sizeof(text); step++) {
        AUTO(fence_watch_clear) struct fence_watch w = FENCE_WATCH_INIT;
        size_t at = 0;
        bool enough = false;
        while (!enough && at < sizeof(text) - 1) {
            const size_t left = sizeof(text) - 1 - at, n = left < step ? left : step;
            enough = fence_watch_add(&w, text + at, n);
            at += n;
        }
        assert_true(enough && at >= end && at < end + step);
    }
}

static void a_stream_without_a_whole_program_is_never_enough(void **state)
{
    (void)state;
    AUTO(fence_watch_clear) struct fence_watch w = FENCE_WATCH_INIT;
    static const char text[] = "```python\nprint('```')\n``\n# ``` no\n```";
    assert_false(fence_watch_add(&w, text, strlen(text)));
}

static void calls_and_results_become_blocks_and_messages(void **state)
{
    (void)state;
    struct model_tool_call call = { (char[]){ "1" }, (char[]){ "run_python" }, (char[]){ "{\"code\":\"print(1)\"}" } };
    struct model_msg msgs[] = {
        { .role = MODEL_SYSTEM, .text = (char[]){ "S" } },
        { .role = MODEL_USER, .text = (char[]){ "Q" } },
        { .role = MODEL_ASSISTANT, .text = (char[]){ "Look." }, .calls = &call, .call_n = 1, .raw = (char[]){ "{}" } },
        { .role = MODEL_TOOL, .text = (char[]){ "<data nonce=1>\n1\n</data nonce=1>" }, .call_id = (char[]){ "1" } },
        { .role = MODEL_ASSISTANT, .text = (char[]){ "One." } },
    };
    static const struct model_fence_words words = { "Write ```python blocks.", "(Now.)", "Output:", "Failed:", NULL };
    const struct model_ask ask = { .msgs = msgs, .msg_n = countof(msgs), .fence = &words };
    static const struct {
        enum model_role role;
        const char *text;
    } want[] = {
        { MODEL_SYSTEM, "S" },
        { MODEL_SYSTEM, "Write ```python blocks." },
        { MODEL_USER, "Q\n\n(Now.)" },
        { MODEL_ASSISTANT, "Look.\n\n```python\nprint(1)\n```" },
        { MODEL_USER, "Output:\n<data nonce=1>\n1\n</data nonce=1>" },
        { MODEL_ASSISTANT, "One." },
    };
    struct fence_talk t;
    fence_talk_make(&t, &ask);
    assert_int_equal(t.n, countof(want));
    for (size_t i = 0; i < t.n; i++) {
        assert_int_equal(t.msgs[i].role, want[i].role);
        assert_true(!t.msgs[i].raw && t.msgs[i].call_n == 0);
        assert_string_equal(t.msgs[i].text, want[i].text);
    }
    fence_talk_clear(&t);
}

static void without_words_nothing_is_added(void **state)
{
    (void)state;
    struct model_msg msgs[] = {
        { .role = MODEL_SYSTEM, .text = (char[]){ "S" } },
        { .role = MODEL_USER, .text = (char[]){ "Q" } },
        { .role = MODEL_TOOL, .text = (char[]){ "1" }, .call_id = (char[]){ "1" }, .failed = true },
    };
    const struct model_ask ask = { .msgs = msgs, .msg_n = countof(msgs) };
    struct fence_talk t;
    fence_talk_make(&t, &ask);
    assert_int_equal(t.n, 3);
    assert_string_equal(t.msgs[1].text, "Q");
    assert_string_equal(t.msgs[2].text, "\n1");
    fence_talk_clear(&t);
}

static void the_reminder_said_after_us_is_no_answer(void **state)
{
    static const struct model_fence_words words = { .remind = "(If this is about the data: reply with a block.)",
                                                    .how = "" };
    static const char *const table[][2] = {
        { "It is 5.\n\n(If this is about the data: reply with a block.)", "It is 5." },
        { "(If this is about the data: reply with\n\nIt is 5.", "\n\nIt is 5." },
        { "It is 5. (If this is about the data: no)\n\nAnd 6. (If this is about the data: x", "It is 5.\n\nAnd 6." },
        { "It is 5 (if this is about the data).", "It is 5 (if this is about the data)." },
        { "", "" },
    };
    (void)state;
    for (size_t i = 0; i < countof(table); i++) {
        struct model_answer a = { .msg = { .text = xstrdup(table[i][0]) } };
        fence_forget(&a, &words);
        assert_string_equal(a.msg.text, table[i][1]);
        fence_forget(&a, NULL);
        free(a.msg.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_are_found_and_prose_in_front_is_kept),
        cmocka_unit_test(other_tools_are_called_in_blocks_of_their_own),
        cmocka_unit_test(blocks_of_tools_that_are_not_there_are_text),
        cmocka_unit_test(calls_of_other_tools_come_out_as_they_went_in),
        cmocka_unit_test(a_whole_program_makes_a_cut_answer_a_good_one),
        cmocka_unit_test(a_stream_is_enough_where_its_first_program_ends),
        cmocka_unit_test(a_stream_without_a_whole_program_is_never_enough),
        cmocka_unit_test(calls_and_results_become_blocks_and_messages),
        cmocka_unit_test(without_words_nothing_is_added),
        cmocka_unit_test(the_reminder_said_after_us_is_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
