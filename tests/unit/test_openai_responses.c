/* The Responses API: bodies that servers send, questions that servers take. */
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
    assert_true(vectors_run(&wire_responses) >= 10);
}

#define TOOLS \
    "\"tools\":[{\"type\":\"function\",\"name\":\"run_python\",\"description\":\"Runs.\",\"parameters\":{\"type\":\"object\"},\"strict\":false}]"

static void a_question_is_items_in_order_and_nothing_is_stored(void **state)
{
    (void)state;
    autojson struct json *schema = talk_schema();
    const struct wire_request r = talk_request(schema);
    talk_expect(
        &wire_responses, &r,
        "{\"model\":\"m\",\"instructions\":\"Be exact.\",\"input\":["
        "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"One?\"}]},"
        "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"Let me see.\"}]},"
        "{\"type\":\"function_call\",\"call_id\":\"call_1\",\"name\":\"run_python\",\"arguments\":\"{\\\"code\\\":\\\"1\\\"}\"},"
        "{\"type\":\"function_call_output\",\"call_id\":\"call_1\",\"output\":\"1\"},"
        "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"It is 1.\"}]},"
        "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"Two?\\n\\nNow!\"}]}]," TOOLS
        ",\"tool_choice\":\"auto\",\"parallel_tool_calls\":false,\"max_output_tokens\":100,"
        "\"include\":[\"reasoning.encrypted_content\"],\"store\":false,\"prompt_cache_key\":\"key\",\"stream\":true}");
}

static void the_last_word_forbids_tools_but_keeps_them_described(void **state)
{
    (void)state;
    autojson struct json *schema = talk_schema();
    struct wire_request r = talk_request(schema);
    r.tools = MODEL_TOOLS_NONE;
    talk_has(&wire_responses, &r, TOOLS ",\"tool_choice\":\"none\",\"max_output_tokens\"", true);
}

static void each_quirk_leaves_out_what_it_names(void **state)
{
    (void)state;
    static const struct {
        unsigned quirk;
        const char *part;
    } table[] = {
        { WIRE_NO_MAX, "max_" },           { WIRE_NO_INCLUDE, "include" }, { WIRE_NO_STORE, "store" },
        { WIRE_NO_CACHE, "cache_key" },    { WIRE_NO_STRICT, "strict" },   { WIRE_NO_PARALLEL, "parallel" },
        { WIRE_NO_TOOL_CHOICE, "choice" },
    };
    autojson struct json *schema = talk_schema();
    for (size_t i = 0; i < countof(table); i++) {
        struct wire_request r = talk_request(schema);
        r.quirks = table[i].quirk;
        talk_has(&wire_responses, &r, table[i].part, false);
    }
}

static void reasoning_goes_back_in_front_of_its_call_word_for_word(void **state)
{
    (void)state;
    static char raw[] =
        "{\"dialect\":\"responses\",\"model\":\"m\",\"said\":[{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],"
        "\"encrypted_content\":\"E\"},{\"type\":\"function_call\",\"id\":\"fc_1\",\"call_id\":\"call_1\","
        "\"name\":\"run_python\",\"arguments\":\"{ }\"}]}";
    struct model_msg m[] = { talk_msgs[2], talk_msgs[3] };
    m[0].raw = raw;
    m[0].provider = "house";
    struct wire_request r = talk_request(NULL);
    r.msgs = m;
    r.msg_n = 2;
    talk_has(&wire_responses, &r,
             "\"input\":[{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[],\"encrypted_content\":\"E\"},"
             "{\"type\":\"function_call\",\"id\":\"fc_1\",\"call_id\":\"call_1\"",
             true);
    r.provider = "other";
    talk_has(&wire_responses, &r, "reasoning\",\"id", false);
}

/* ---- reading, what no vector has ---- */

static int read_body(const char *body, struct model_answer *a, struct err *e)
{
    static const struct wire_request ask = { .model = "m", .provider = "house" };
    AUTO(wire_reader_clear) struct wire_reader r;
    wire_reader_init(&r, &wire_responses, NULL, NULL);
    assert_int_equal(wire_reader_feed(&r, body, strlen(body), e), 0);
    return wire_reader_finish(&r, &ask, a, e);
}

#define EVENT(type, rest) "data: {\"type\":\"" type "\"," rest "}\n\n"
#define COMPLETED         EVENT("response.completed", "\"response\":{\"status\":\"completed\"}")

static void what_did_not_come_in_pieces_is_taken_from_the_whole(void **state)
{
    (void)state;
    static const struct {
        const char *body, *text, *args;
        enum model_stop stop;
    } table[] = {
        { EVENT("response.output_text.done", "\"output_index\":0,\"text\":\"Hi\"") COMPLETED, "Hi", NULL,
          MODEL_STOP_END },
        { EVENT("response.refusal.done", "\"refusal\":\"No\"") COMPLETED, "No", NULL, MODEL_STOP_REFUSED },
        { EVENT("response.function_call_arguments.done",
                "\"name\":\"run_python\",\"arguments\":\"{\\\"code\\\":\\\"1\\\"}\"") COMPLETED,
          "", "{\"code\":\"1\"}", MODEL_STOP_END },
        { EVENT("response.function_call_arguments.delta", "\"delta\":\"{}\"") COMPLETED, "", "{}", MODEL_STOP_END },
        { EVENT("response.completed",
                "\"response\":{\"output\":[{\"type\":\"message\",\"content\":["
                "{\"type\":\"output_text\",\"text\":\"a\"},{\"type\":\"output_text\",\"text\":\"b\"}]},"
                "{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"c\"}]}]}"),
          "ab\n\nc", NULL, MODEL_STOP_END },
        { EVENT("response.output_item.done", "\"item\":7") EVENT("response.output_item.added", "\"item\":[]") COMPLETED,
          "", NULL, MODEL_STOP_END },
        { "event: response.completed\ndata: {\"response\":{\"status\":\"completed\"}}\n\n", "", NULL, MODEL_STOP_END },
        { "event: brand.new\ndata: {\"x\":1}\n\n" COMPLETED, "", NULL, MODEL_STOP_END },
    };
    for (size_t i = 0; i < countof(table); i++) {
        struct model_answer a = { 0 };
        struct err e = { 0 };
        assert_int_equal(read_body(table[i].body, &a, &e), 0);
        assert_string_equal(a.msg.text, table[i].text);
        assert_int_equal(a.stop, table[i].stop);
        assert_int_equal(a.msg.call_n, table[i].args ? 1 : 0);
        if (table[i].args)
            assert_string_equal(a.msg.calls[0].args, table[i].args);
        wire_answer_clear(&a);
    }
}

static void failures_are_told_in_every_shape(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{\"error\":{\"message\":\"boom\"}}",
        "{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"boom\"}}",
        "{\"message\":\"boom\"}",
        "data: {\"error\":{\"message\":\"boom\"}}\n\n",
        "data: [{\"error\":\"boom\"}]\n\n",
        EVENT("response.failed", "\"message\":\"boom\""),
        EVENT("response.incomplete", "\"response\":{\"status\":\"failed\",\"error\":{\"message\":\"boom\"}}"),
    };
    for (size_t i = 0; i < countof(bodies); i++) {
        struct model_answer a = { 0 };
        struct err e = { 0 };
        assert_int_equal(read_body(bodies[i], &a, &e), -1);
        assert_non_null(strstr(e.msg, "boom"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_recorded_body_means_the_same_in_pieces_of_every_size),
        cmocka_unit_test(a_question_is_items_in_order_and_nothing_is_stored),
        cmocka_unit_test(the_last_word_forbids_tools_but_keeps_them_described),
        cmocka_unit_test(each_quirk_leaves_out_what_it_names),
        cmocka_unit_test(reasoning_goes_back_in_front_of_its_call_word_for_word),
        cmocka_unit_test(what_did_not_come_in_pieces_is_taken_from_the_whole),
        cmocka_unit_test(failures_are_told_in_every_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
