/* Chat Completions: bodies that servers send, questions that servers take. */
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
    assert_true(vectors_run(&wire_chat) >= 38);
}

#define CALL \
    "\"tool_calls\":[{\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"run_python\",\"arguments\":\"{\\\"code\\\":\\\"1\\\"}\"}}]"
#define MESSAGES                                                         \
    "\"messages\":[{\"role\":\"system\",\"content\":\"Be exact.\"},"     \
    "{\"role\":\"user\",\"content\":\"One?\"},"                          \
    "{\"role\":\"assistant\",\"content\":\"Let me see.\"," CALL "},"     \
    "{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":\"1\"}," \
    "{\"role\":\"assistant\",\"content\":\"It is 1.\"},"                 \
    "{\"role\":\"user\",\"content\":\"Two?\\n\\nNow!\"}]"
#define TOOLS \
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"run_python\",\"description\":\"Runs.\",\"parameters\":{\"type\":\"object\"}}}]"

static void a_question_is_written_in_a_fixed_order_without_sampling_fields(void **state)
{
    (void)state;
    autojson struct json *schema = talk_schema();
    const struct wire_request r = talk_request(schema);
    talk_expect(&wire_chat, &r,
                "{\"model\":\"m\"," MESSAGES "," TOOLS ",\"tool_choice\":\"auto\",\"parallel_tool_calls\":false,"
                "\"max_tokens\":100,\"prompt_cache_key\":\"key\",\"stream\":true,"
                "\"stream_options\":{\"include_usage\":true}}");
}

static void the_last_word_forbids_tools_but_keeps_them_described(void **state)
{
    (void)state;
    autojson struct json *schema = talk_schema();
    struct wire_request r = talk_request(schema);
    r.tools = MODEL_TOOLS_NONE;
    talk_has(&wire_chat, &r, TOOLS ",\"tool_choice\":\"none\",\"max_tokens\"", true);
}

static void each_quirk_changes_what_it_names(void **state)
{
    (void)state;
    static const struct {
        unsigned quirk;
        const char *part;
        bool there;
    } table[] = {
        { WIRE_MAX_COMPLETION, "\"max_completion_tokens\":100", true },
        { WIRE_NO_MAX, "max_", false },
        { WIRE_NO_STREAM_OPTIONS, "stream_options", false },
        { WIRE_NO_PARALLEL, "parallel_tool_calls", false },
        { WIRE_NO_CACHE, "prompt_cache_key", false },
        { WIRE_NO_TOOL_CHOICE, "tool_choice", false },
        { WIRE_DEVELOPER, "{\"role\":\"developer\",\"content\":\"Be exact.\"}", true },
        { WIRE_SYSTEM_AS_USER, "[{\"role\":\"user\",\"content\":\"Be exact.\\n\\nOne?\"}", true },
        { WIRE_EFFORT_NONE, "\"reasoning_effort\":\"none\"", true },
        { WIRE_REASONING_ALWAYS, "\"reasoning_content\":\".\"", true },
    };
    autojson struct json *schema = talk_schema();
    for (size_t i = 0; i < countof(table); i++) {
        struct wire_request r = talk_request(schema);
        r.quirks = table[i].quirk;
        talk_has(&wire_chat, &r, table[i].part, table[i].there);
    }
}

static void a_fenced_question_stops_after_its_program_and_offers_no_tools(void **state)
{
    (void)state;
    struct wire_request r = talk_request(NULL);
    r.fenced = true;
    talk_has(&wire_chat, &r, "\"stop\":[\"\\n```\\n\"]", true);
    talk_has(&wire_chat, &r, "\"tool", true); /* the history has some */
    talk_has(&wire_chat, &r, "\"tools\"", false);
    r.quirks = WIRE_NO_STOP;
    talk_has(&wire_chat, &r, "\"stop\"", false);
}

#define SAID(said) "{\"dialect\":\"chat\",\"model\":\"m\",\"said\":" said "}"

static void what_a_server_said_goes_back_to_it_and_to_nobody_else(void **state)
{
    (void)state;
    static char raw[] = SAID("{\"role\":\"assistant\",\"content\":null,\"reasoning_content\":\"hm\",\"tool_calls\":"
                             "[{\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"run_python\","
                             "\"arguments\":\"{ \\\"code\\\" : \\\"1\\\" }\"},\"extra_content\":{\"s\":1}}]}");
    struct model_msg m = talk_msgs[2];
    m.raw = raw;
    m.provider = "house";
    struct wire_request r = talk_request(NULL);
    r.msgs = &m;
    r.msg_n = 1;
    talk_has(&wire_chat, &r, "\"content\":null,\"reasoning_content\":\"hm\",", true);
    talk_has(&wire_chat, &r, "\"arguments\":\"{ \\\"code\\\" : \\\"1\\\" }\"},\"extra_content\":{\"s\":1}", true);
    r.quirks = WIRE_EMPTY_CONTENT | WIRE_REASONING_NEVER;
    talk_has(&wire_chat, &r, "\"content\":\"\",\"tool_calls\"", true);
    r.quirks = 0;
    r.provider = "other";
    talk_has(&wire_chat, &r, "reasoning_content", false);
    r.provider = "house";
    r.model = "m2";
    talk_has(&wire_chat, &r, "reasoning_content", false);
    r.model = "m";
    struct model_tool_call other = { (char[]){ "call_2" }, (char[]){ "run_python" }, (char[]){ "{}" } };
    m.calls = &other; /* the history was changed since */
    talk_has(&wire_chat, &r, "reasoning_content", false);
    talk_has(&wire_chat, &r, "\"id\":\"call_2\"", true);
}

static void reasoning_beside_words_only_stays_here_unless_it_is_wanted(void **state)
{
    (void)state;
    static char raw[] = SAID("{\"role\":\"assistant\",\"content\":\"x\",\"reasoning\":\"hm\"}");
    struct model_msg m = { .role = MODEL_ASSISTANT, .text = (char[]){ "x" }, .raw = raw, .provider = "house" };
    struct wire_request r = talk_request(NULL);
    r.msgs = &m;
    r.msg_n = 1;
    talk_has(&wire_chat, &r, "{\"role\":\"assistant\",\"content\":\"x\"}", true);
    r.quirks = WIRE_REASONING_ALWAYS;
    talk_has(&wire_chat, &r, "\"reasoning\":\"hm\"", true);
}

static void ids_of_another_provider_become_ids_that_all_take(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        bool kept;
    } table[] = {
        { "call_1", true },
        { "toolu_01A-b", true },
        { "functions.run_python:0", false },
        { "", false },
        { "x234567890123456789012345678901234567890", true },
        { "x2345678901234567890123456789012345678901", false },
    };
    for (size_t i = 0; i < countof(table); i++) {
        autofree char *a = wire_id(table[i].id), *b = wire_id(table[i].id);
        assert_string_equal(a, b);
        assert_int_equal(strcmp(a, table[i].id) == 0, table[i].kept);
        assert_true(strlen(a) > 0 && strlen(a) <= 40 && !strpbrk(a, ".: "));
    }
}

/* ---- reading, what no vector has ---- */

static void read_body(const char *body, struct model_answer *a, int want)
{
    static const struct wire_request ask = { .model = "m", .provider = "house" };
    struct err e = { 0 };
    AUTO(wire_reader_clear) struct wire_reader r;
    wire_reader_init(&r, &wire_chat, NULL, NULL);
    assert_int_equal(wire_reader_feed(&r, body, strlen(body), &e), 0);
    assert_int_equal(wire_reader_finish(&r, &ask, a, &e), want);
}

static void odd_bodies_are_errors_and_never_answers(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "",
        " \n",
        "<html><body>502</body></html>",
        "upstream connect error",
        "{}",
        "{\"choices\":[]}",
        "[]",
        "[1,2]",
        "\"text\"",
        "{\"object\":\"error\",\"message\":\"m\",\"type\":\"BadRequestError\",\"code\":400}",
        "{\"detail\":\"Not Found\"}",
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
        "data: {broken\n\n",
        "data: Internal Server Error\n\ndata: [DONE]\n\n",
    };
    for (size_t i = 0; i < countof(bodies); i++) {
        struct model_answer a = { 0 };
        read_body(bodies[i], &a, -1);
    }
}

static void odd_members_do_no_harm(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "data: [DONE]\n\ndata: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[7,null,{\"index\":1,\"delta\":{\"content\":\"no\"}},{\"delta\":[],\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[null,3,\"x\"],\"content\":7,\"refusal\":{}},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"reasoning_details\":[1,[[2]],[],{\"index\":-5,\"text\":\"t\"},{\"index\":1e99}]},\"finish_reason\":\"stop\"}],\"usage\":[]}\n\n",
    };
    for (size_t i = 0; i < countof(bodies); i++) {
        struct model_answer a = { 0 };
        read_body(bodies[i], &a, 0);
        assert_int_equal(a.msg.call_n, 0);
        assert_string_equal(a.msg.text, "");
        wire_answer_clear(&a);
    }
}

static void spoilt_events_are_mended_only_where_nothing_is_guessed(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } table[] = {
        { "{\"a\":\"\\ud83d\"}", "{\"a\":\"\\ufffd\"}" },
        { "{\"a\":\"\\ude31\\ud83d\\ude31\\u0000\"}", "{\"a\":\"\\ufffd\\ud83d\\ude31\\ufffd\"}" },
        { "{\"a\":\n1,\t\"b\":2}", "{\"a\":1, \"b\":2}" },
        { "\"\\\\ud83d \\n \\\"", "\"\\\\ud83d \\n \\\"" },
        { "\\ud83d\\u0041", "\\ufffd\\u0041" },
        { "\\u12", "\\u12" },
        { "\\", "\\" },
        { "", "" },
    };
    for (size_t i = 0; i < countof(table); i++) {
        size_t n = 0;
        autofree char *out = wire_mend(table[i].in, strlen(table[i].in), &n);
        assert_string_equal(out, table[i].out);
        assert_int_equal(n, strlen(out));
    }
}

static void a_thinking_list_and_other_usage_are_read(void **state)
{
    (void)state;
    struct model_answer a = { 0 };
    read_body(
        "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"thinking\",\"thinking\":[]},{\"type\":\"text\",\"text\":\"Hi\"}]},"
        "\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"prompt_cache_hit_tokens\":8}}\n\n",
        &a, 0);
    assert_string_equal(a.msg.text, "Hi");
    assert_int_equal(a.usage.in, 9);
    assert_int_equal(a.usage.cached, 8);
    wire_answer_clear(&a);
}

static void a_peer_can_not_make_us_keep_without_end(void **state)
{
    (void)state;
    struct model_answer a = { 0 };
    AUTO(str_clear) struct str body = STR_INIT(8 << 20);
    for (int i = 0; i < 20000; i++)
        str_printf(&body, "data: {\"choices\":[{\"delta\":{\"key_%d\":1}}]}\n\n", i);
    str_puts(&body, "data: [DONE]\n\n");
    read_body(str_peek(&body), &a, 0);
    assert_non_null(strstr(a.msg.raw, "\"key_31\":1"));
    assert_null(strstr(a.msg.raw, "\"key_32\":1"));
    wire_answer_clear(&a);
}

static void an_old_function_call_is_a_call(void **state)
{
    (void)state;
    struct model_answer a = { 0 };
    read_body(
        "data: {\"choices\":[{\"delta\":{\"function_call\":{\"name\":\"run_python\",\"arguments\":\"{\\\"co\"}}}]}\n\n"
        "data: {\"choices\":[{\"delta\":{\"function_call\":{\"arguments\":\"de\\\":\\\"1\\\"}\"}},\"finish_reason\":\"function_call\"}]}\n\n",
        &a, 0);
    assert_int_equal(a.msg.call_n, 1);
    assert_string_equal(a.msg.calls[0].args, "{\"code\":\"1\"}");
    assert_true(strncmp(a.msg.calls[0].id, "call_", 5) == 0);
    assert_non_null(strstr(a.msg.raw, a.msg.calls[0].id));
    wire_answer_clear(&a);
}

static void more_calls_than_anyone_means_are_an_error(void **state)
{
    (void)state;
    struct model_answer a = { 0 };
    AUTO(str_clear) struct str body = STR_INIT(1 << 20);
    for (int i = 0; i <= WIRE_BLOCKS_MAX; i++)
        str_printf(&body, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%d,\"id\":\"i%d\"}]}}]}\n\n", i,
                   i);
    str_puts(&body, "data: [DONE]\n\n");
    read_body(str_peek(&body), &a, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_recorded_body_means_the_same_in_pieces_of_every_size),
        cmocka_unit_test(a_question_is_written_in_a_fixed_order_without_sampling_fields),
        cmocka_unit_test(the_last_word_forbids_tools_but_keeps_them_described),
        cmocka_unit_test(each_quirk_changes_what_it_names),
        cmocka_unit_test(a_fenced_question_stops_after_its_program_and_offers_no_tools),
        cmocka_unit_test(what_a_server_said_goes_back_to_it_and_to_nobody_else),
        cmocka_unit_test(reasoning_beside_words_only_stays_here_unless_it_is_wanted),
        cmocka_unit_test(ids_of_another_provider_become_ids_that_all_take),
        cmocka_unit_test(odd_bodies_are_errors_and_never_answers),
        cmocka_unit_test(odd_members_do_no_harm),
        cmocka_unit_test(spoilt_events_are_mended_only_where_nothing_is_guessed),
        cmocka_unit_test(a_thinking_list_and_other_usage_are_read),
        cmocka_unit_test(a_peer_can_not_make_us_keep_without_end),
        cmocka_unit_test(an_old_function_call_is_a_call),
        cmocka_unit_test(more_calls_than_anyone_means_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
