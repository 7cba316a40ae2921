/* Tools beside run_python: what they answer, and how an agent uses them. */
#include "core_scene.h"
#include "call_args.h"
#include "tool_table.h"

static void cell_seven(void *ud, int number, char **out)
{
    (void)ud;
    *out = number == 7
               ? xstrdup("{\"stdout\":\"0123456789\\n\",\"stderr\":\"warned\",\"result\":{\"text/plain\":\"42\"}}")
               : NULL;
}

static void tools_answer_from_what_is_known(void **state)
{
    static const char files[] =
        "[{\"path\":\"a.csv\",\"kind\":\"csv\",\"bytes\":9,\"rows\":244},{\"path\":\"b.bin\",\"kind\":\"binary\",\"bytes\":1}]";
    static const struct {
        const char *name, *args, *says;
        bool good;
    } cases[] = {
        { "current_time", "{}", "Tuesday 2023-11-14 22:13 UTC+00:00", true },
        { "current_time", "{\"utc_offset_minutes\":330}", "Wednesday 2023-11-15 03:43 UTC+05:30", true },
        { "current_time", "{\"utc_offset_minutes\":-90}", "UTC-01:30", true },
        { "current_time", "{\"utc_offset_minutes\":99999}", "UTC+00:00", true },
        { "list_files", "{}", "a.csv (csv, 9 bytes, 244 rows)\nb.bin (binary, 1 bytes)\n", true },
        { "read_more", "{\"cell\":7,\"offset\":0}", "cell 7, characters 0 to 21 of 21:\n0123456789\nwarned\n42\n",
          true },
        { "read_more", "{\"cell\":7,\"offset\":8}", "cell 7, characters 8 to 21 of 21:\n89\n", true },
        { "read_more", "{\"cell\":\"7\",\"offset\":\"8\"}", "characters 8 to 21", true },
        { "read_more", "{\"cell\":7,\"offset\":21}", "ends at 21", false },
        { "read_more", "{\"cell\":7,\"offset\":-1}", "ends at 21", false },
        { "read_more", "{\"cell\":8}", "There is no cell 8.", false },
        { "read_more", "{}", "There is no cell 0.", false },
        { "read_more", "{\"cell\":1e300}", "There is no cell 0.", false },
    };
    autojson struct json *profiles = NULL;
    struct err e = { 0 };
    (void)state;
    assert_int_equal(json_parse(&profiles, files, strlen(files), 1 << 20, &e), 0);
    const struct tool_context c = { .files = profiles, .cell_text = cell_seven, .now_ms = 1700000000000 };
    for (size_t i = 0; i < countof(cases); i++) {
        AUTO(str_clear) struct str out = STR_INIT(1 << 20);
        autofree char *args = tool_args(cases[i].args);
        assert_int_equal(tool_run(&out, tool_find(NULL, cases[i].name), args, &c), cases[i].good);
        assert_says(str_peek(&out), cases[i].says);
    }
    assert_null(tool_find(NULL, "run_python"));
    assert_null(tool_find(NULL, "nothing"));
    assert_null(tool_find(NULL, NULL));
}

static void arguments_are_an_object_or_nothing(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        { NULL, "{}" }, { "", "{}" },  { " \n", "{}" },     { "null", "{}" },     { "{ \"a\" : 1 }", "{\"a\":1}" },
        { "[]", NULL }, { "7", NULL }, { "{\"a\":", NULL }, { "nonsense", NULL },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *out = tool_args(cases[i].in);
        if (cases[i].out)
            assert_string_equal(out, cases[i].out);
        else
            assert_null(out);
    }
}

static void every_tool_is_described_and_the_code_tool_comes_first(void **state)
{
    struct scene s;
    struct tool_set *set = NULL;
    struct err e = { 0 };
    size_t n = 0;
    (void)state;
    scene_open(&s, "", "");
    assert_int_equal(tool_set_new(&set, s.w.l, &s.w.conf, prompts_tools(s.prompts), NULL, &e), 0);
    for (const struct json *t = json_first(tool_set_schema(set)); t; t = json_next(t), n++) {
        const char *name = json_str_or(t, "name", "");
        assert_int_equal(strcmp(name, CALL_TOOL) == 0, n == 0);
        assert_true(n == 0 || tool_find(set, name));
        assert_true(strlen(json_str_or(t, "description", "")) > 10);
        assert_string_equal(json_str_or(json_get(t, "parameters"), "type", ""), "object");
    }
    assert_int_equal(n, 4); /* databases are offered when there are some */
    tool_set_free(set);
    scene_close(&s);
}

static void arguments_fit_their_schema_or_it_is_said_why_not(void **state)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\",\"maxLength\":3},\"i\":{\"type\":\"integer\",\"minimum\":0},"
        "\"n\":{\"type\":[\"number\",\"null\"]},\"e\":{\"enum\":[\"a\",1]},\"l\":{\"type\":\"array\",\"items\":{\"type\":\"boolean\"}},"
        "\"o\":{\"type\":\"object\",\"required\":[\"x\"]}},\"required\":[\"s\"],\"additionalProperties\":false}";
    static const struct {
        const char *args, *says; /* NULL: they fit */
    } cases[] = {
        { "{\"s\":\"x\"}", NULL },
        { "{\"s\":\"x\",\"i\":0,\"n\":null,\"e\":1,\"l\":[true],\"o\":{\"x\":[]}}", NULL },
        { "{\"s\":\"x\",\"n\":1.5,\"i\":3.0,\"e\":\"a\",\"l\":[]}", NULL },
        { "{}", "`s` is missing" },
        { "{\"s\":null}", "`s` must be of type string" },
        { "{\"s\":\"0123456789abcd\"}", "`s` is too short or too long" },
        { "{\"s\":\"x\",\"i\":1.5}", "`i` must be of type integer" },
        { "{\"s\":\"x\",\"i\":-1}", "`i` is out of range" },
        { "{\"s\":\"x\",\"n\":\"1\"}", "`n` is of the wrong type" },
        { "{\"s\":\"x\",\"e\":\"1\"}", "`e` must be one of [\"a\",1]" },
        { "{\"s\":\"x\",\"l\":[true,1]}", "`l` must be of type boolean" },
        { "{\"s\":\"x\",\"o\":{}}", "`x` is missing" },
        { "{\"s\":\"x\",\"z\":1}", "there is no argument `z`" },
        { "[]", "must be of type object" },
    };
    autojson struct json *s = NULL;
    struct err e = { 0 };
    (void)state;
    assert_int_equal(json_parse(&s, schema, strlen(schema), 1 << 20, &e), 0);
    for (size_t i = 0; i < countof(cases); i++) {
        autojson struct json *v = NULL;
        assert_int_equal(json_parse(&v, cases[i].args, strlen(cases[i].args), 1 << 20, &e), 0);
        assert_int_equal(tool_schema_check(s, v, &e), cases[i].says ? -1 : 0);
        if (cases[i].says)
            assert_says(e.msg, cases[i].says);
    }
}

#define TOOL(name, args) "{\"calls\":[{\"name\":\"" name "\",\"args\":" args "}]}\n"

static void a_cut_output_can_be_read_on(void **state)
{
    struct scene s;
    AUTO(str_clear) struct str box = STR_INIT(1 << 20);
    (void)state;
    str_puts(&box, "{\"stdout\":\"");
    for (int i = 0; i < 3000; i++)
        str_printf(&box, "n%d\\n", i);
    str_puts(&box, "\"}\n");
    scene_play(
        &s,
        CALL(
            "x") "{\"calls\":[{\"name\":\"read_more\",\"args\":{\"cell\":7,\"offset\":6144}}],\"expect\":\"read_more with {\\\"cell\\\":7,\\\"offset\\\":6144}\"}\n"
                 "{\"text\":\"It is n1460.\",\"expect\":\"n1460\\n\"}\n",
        str_peek(&box));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_says(s.seen.messages, "\"name\":\"read_more\"");
    scene_close(&s);
}

static void what_a_tool_says_is_marked_as_data(void **state)
{
    struct scene s;
    (void)state;
    scene_play(
        &s, TOOL("list_files", "\"\"") "{\"text\":\"None.\",\"expect\":\"There are no files.\\n</data nonce=\"}\n", "");
    assert_ended(&s, AGENT_ANSWERED, 0, 2);
    assert_says(s.seen.messages, "\"args\":\"{}\""); /* history holds valid JSON */
    scene_close(&s);
}

static void the_same_tool_again_and_again_ends_after_three(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, TOOL("list_files", "{}") TOOL("list_files", "{}") TOOL("list_files", "{}") LAST("No files."), "");
    assert_ended(&s, AGENT_ANSWERED, 0, 4);
    scene_close(&s);
}

static void arguments_that_are_no_object_are_sent_back(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, TOOL("read_more", "\"seven\"") TOOL("read_more", "\"{\\\"cell\\\":\"") LAST("Sorry."), "");
    assert_ended(&s, AGENT_FAILED, 0, 3);
    scene_close(&s);
}

static void a_cut_call_raises_the_ceiling_once(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, "{\"calls\":[{\"args\":\"{\\\"code\\\":\\\"x\"}],\"stop\":\"length\"}\n" CALL("y") SAY("ok"),
               PRINTS("1"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_int_equal(sent.max_output[0], 0);
    assert_int_equal(sent.max_output[1], 8192);
    scene_close(&s);
}

static void commands_for_a_shell_run_in_the_notebook(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, TOOL("execute_bash", "{\"command\":\"ls -l\"}") SAY("ok"), PRINTS("1"));
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    assert_string_equal(sandbox_fake_asked(0), "cell %%bash\nls -l");
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tools_answer_from_what_is_known),
        cmocka_unit_test(arguments_are_an_object_or_nothing),
        cmocka_unit_test(every_tool_is_described_and_the_code_tool_comes_first),
        cmocka_unit_test(arguments_fit_their_schema_or_it_is_said_why_not),
        cmocka_unit_test(a_cut_output_can_be_read_on),
        cmocka_unit_test(what_a_tool_says_is_marked_as_data),
        cmocka_unit_test(the_same_tool_again_and_again_ends_after_three),
        cmocka_unit_test(arguments_that_are_no_object_are_sent_back),
        cmocka_unit_test(a_cut_call_raises_the_ceiling_once),
        cmocka_unit_test(commands_for_a_shell_run_in_the_notebook),
    };
    return cmocka_run_group_tests_name("tools", tests, NULL, NULL);
}
