/* Ollama's own API: what a question looks like, and what its lines mean. */
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
    assert_true(vectors_run(&wire_ollama) >= 10);
}

static void a_question_has_its_window_and_results_name_their_tool(void **state)
{
    (void)state;
    autojson struct json *schema = talk_schema();
    struct wire_request r = talk_request(schema);
    r.context = 8192;
    talk_expect(
        &wire_ollama, &r,
        "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"Be exact.\"},{\"role\":\"user\",\"content\":\"One?\"},"
        "{\"role\":\"assistant\",\"content\":\"Let me see.\",\"tool_calls\":[{\"function\":{\"name\":\"run_python\","
        "\"arguments\":{\"code\":\"1\"}}}]},{\"role\":\"tool\",\"content\":\"1\",\"tool_name\":\"run_python\"},"
        "{\"role\":\"assistant\",\"content\":\"It is 1.\"},{\"role\":\"user\",\"content\":\"Two?\\n\\nNow!\"}],"
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"run_python\",\"description\":\"Runs.\","
        "\"parameters\":{\"type\":\"object\"}}}],\"stream\":true,\"options\":{\"num_ctx\":8192,\"num_predict\":100}}");
}

static void the_last_word_is_asked_for_without_tools(void **state)
{
    (void)state;
    autojson struct json *schema = talk_schema();
    struct wire_request r = talk_request(schema);
    r.tools = MODEL_TOOLS_NONE;
    talk_has(&wire_ollama, &r, "\"tools\"", false);
    talk_has(&wire_ollama, &r, "\"tool_calls\"", true);
}

static void thinking_is_said_only_when_configured(void **state)
{
    static const struct {
        const char *effort;
        enum wire_think thinking;
        unsigned quirks;
        const char *part; /* NULL: nothing */
    } cases[] = {
        { NULL, WIRE_THINK_AUTO, 0, NULL },
        { "", WIRE_THINK_ON, 0, "\"think\":true" },
        { "", WIRE_THINK_OFF, 0, "\"think\":false" },
        { "high", WIRE_THINK_AUTO, 0, "\"think\":\"high\"" },
        { "high", WIRE_THINK_OFF, 0, "\"think\":false" },
        { "none", WIRE_THINK_AUTO, 0, "\"think\":false" },
        { "high", WIRE_THINK_ON, WIRE_NO_THINK, NULL },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct wire_request r = talk_request(NULL);
        r.effort = cases[i].effort;
        r.thinking = cases[i].thinking;
        r.quirks = cases[i].quirks;
        talk_has(&wire_ollama, &r, cases[i].part ? cases[i].part : "\"think\"", cases[i].part != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_recorded_body_means_the_same_in_pieces_of_every_size),
        cmocka_unit_test(a_question_has_its_window_and_results_name_their_tool),
        cmocka_unit_test(the_last_word_is_asked_for_without_tools),
        cmocka_unit_test(thinking_is_said_only_when_configured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
