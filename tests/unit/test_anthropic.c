/* Anthropic Messages: bodies that servers send, questions that servers take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "test_wire_talk.h"
#include "test_wire_vectors.h"

static void every_recorded_body_means_the_same_in_pieces_of_every_size(void **state)
{
    (void)state;
    assert_true(vectors_run(&wire_anthropic) >= 11);
}

#define MARK  ",\"cache_control\":{\"type\":\"ephemeral\"}"
#define TOOLS "\"tools\":[{\"name\":\"run_python\",\"description\":\"Runs.\",\"input_schema\":{\"type\":\"object\"}}]"

static void a_question_is_blocks_with_marks_where_a_prefix_may_end(void **state)
{
    (void)state;
    autojson struct json *schema = talk_schema();
    const struct wire_request r = talk_request(schema);
    talk_expect(
        &wire_anthropic, &r,
        "{\"model\":\"m\",\"max_tokens\":100," TOOLS
        ",\"tool_choice\":{\"type\":\"auto\",\"disable_parallel_tool_use\":true},"
        "\"system\":[{\"type\":\"text\",\"text\":\"Be exact.\"" MARK "}],\"messages\":["
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"One?\"}]},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"Let me see.\"},"
        "{\"type\":\"tool_use\",\"id\":\"call_1\",\"name\":\"run_python\",\"input\":{\"code\":\"1\"}}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"call_1\",\"content\":\"1\",\"is_error\":true" MARK
        "}]},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"It is 1.\"}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Two?\\n\\nNow!\"" MARK "}]}],\"stream\":true}");
}

static void the_last_word_forbids_tools_but_keeps_them_described(void **state)
{
    (void)state;
    autojson struct json *schema = talk_schema();
    struct wire_request r = talk_request(schema);
    r.tools = MODEL_TOOLS_NONE;
    talk_has(&wire_anthropic, &r, TOOLS ",\"tool_choice\":{\"type\":\"none\"}", true);
}

static void results_and_what_people_say_after_them_are_one_message(void **state)
{
    (void)state;
    struct model_tool_call two[] = { { (char[]){ "a" }, (char[]){ "run_python" }, (char[]){ "{}" } },
                                     { (char[]){ "b" }, (char[]){ "run_python" }, (char[]){ "not json" } } };
    struct model_msg m[] = {
        { .role = MODEL_USER, .text = (char[]){ "q" } },
        { .role = MODEL_ASSISTANT, .text = (char[]){ " \n" }, .calls = two, .call_n = 2 },
        { .role = MODEL_TOOL, .text = (char[]){ "" }, .call_id = (char[]){ "a" } },
        { .role = MODEL_TOOL, .text = (char[]){ "2" }, .call_id = (char[]){ "b" } },
        { .role = MODEL_USER, .text = (char[]){ "and?" } },
        { .role = MODEL_ASSISTANT, .text = (char[]){ "" } },
        { .role = MODEL_USER, .text = (char[]){ "well?" } },
    };
    struct wire_request r = talk_request(NULL);
    r.msgs = m;
    r.msg_n = countof(m);
    r.quirks = WIRE_NO_CACHE;
    talk_has(
        &wire_anthropic, &r,
        "\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"q\"}]},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"run_python\",\"input\":{}},"
        "{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"run_python\",\"input\":{}}]},"
        "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":\"(nothing)\"},"
        "{\"type\":\"tool_result\",\"tool_use_id\":\"b\",\"content\":\"2\"},{\"type\":\"text\",\"text\":\"and?\"},"
        "{\"type\":\"text\",\"text\":\"well?\"}]}]",
        true);
}

static size_t count(const char *text, const char *part)
{
    size_t n = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        n++;
    return n;
}

static void at_most_four_places_are_marked_however_long_the_talk(void **state)
{
    (void)state;
    char text[] = "x";
    struct model_msg m[60];
    for (size_t i = 0; i < countof(m); i++)
        m[i] = (struct model_msg){ .role = i % 2 ? MODEL_ASSISTANT : MODEL_USER, .text = text };
    autojson struct json *schema = talk_schema();
    struct wire_request r = talk_request(schema);
    r.msgs = m;
    r.msg_n = countof(m);
    autofree char *body = talk_print(&wire_anthropic, &r);
    assert_int_equal(count(body, "cache_control"), 2);
}

static void signed_thinking_goes_back_unchanged_and_first(void **state)
{
    (void)state;
    static char raw[] =
        "{\"dialect\":\"anthropic\",\"model\":\"m\",\"said\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"S\"},"
        "{\"type\":\"tool_use\",\"id\":\"call_1\",\"name\":\"run_python\",\"input\":{\"code\":\"1\"},\"odd\":1}]}";
    struct model_msg m[] = { talk_msgs[2], talk_msgs[3] };
    m[0].raw = raw;
    m[0].provider = "house";
    struct wire_request r = talk_request(NULL);
    r.msgs = m;
    r.msg_n = 2;
    talk_has(&wire_anthropic, &r,
             "\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"S\"},"
             "{\"type\":\"tool_use\",\"id\":\"call_1\",\"name\":\"run_python\",\"input\":{\"code\":\"1\"},\"odd\":1}]",
             true);
    r.provider = "other";
    talk_has(&wire_anthropic, &r, "thinking", false);
}

static void a_mended_call_keeps_the_thought_before_it(void **state)
{
    (void)state;
    static char raw[] =
        "{\"dialect\":\"anthropic\",\"model\":\"m\",\"said\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"S\"},"
        "{\"type\":\"tool_use\",\"id\":\"call_1\",\"name\":\"bash\",\"input\":{\"cmd\":\"ls\"},\"odd\":1}]}";
    struct model_msg m[] = { talk_msgs[2], talk_msgs[3] };
    m[0].raw = raw;
    m[0].provider = "house";
    struct wire_request r = talk_request(NULL);
    r.msgs = m;
    r.msg_n = 2;
    talk_has(&wire_anthropic, &r,
             "\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"S\"},"
             "{\"type\":\"tool_use\",\"id\":\"call_1\",\"name\":\"run_python\",\"input\":{\"code\":\"1\"},\"odd\":1}]",
             true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_recorded_body_means_the_same_in_pieces_of_every_size),
        cmocka_unit_test(a_question_is_blocks_with_marks_where_a_prefix_may_end),
        cmocka_unit_test(the_last_word_forbids_tools_but_keeps_them_described),
        cmocka_unit_test(results_and_what_people_say_after_them_are_one_message),
        cmocka_unit_test(at_most_four_places_are_marked_however_long_the_talk),
        cmocka_unit_test(signed_thinking_goes_back_unchanged_and_first),
        cmocka_unit_test(a_mended_call_keeps_the_thought_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
