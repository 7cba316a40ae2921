/* The salvage ladder: what models send in place of {"code": "..."}. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "call_args.h"

struct call_case {
    const char *name, *args;
    enum call_kind kind;
    const char *code;
};

static void check(const struct call_case *c)
{
    autofree char *code = NULL;
    const enum call_kind kind = call_args_read(c->name, c->args, &code);
    if (kind != c->kind || (code && strcmp(code, c->code) != 0))
        fail_msg("%s(%s): kind %d, wanted %d; code %s", c->name, c->args ? c->args : "NULL", (int)kind, (int)c->kind,
                 code ? code : "NULL");
}

static void a_call_is_read_for_what_was_meant(void **state)
{
    static const struct call_case cases[] = {
        { "run_python", "{\"code\":\"print(1)\"}", CALL_CODE, "print(1)" },
        { "run_python", " {\"code\":\"a\\nb\"} ", CALL_CODE, "a\nb" },
        { "run_python", "{\"code\":\"a\nb\"}", CALL_CODE, "a\nb" }, /* a line break left raw */
        { "run_python", "{\"language\":\"python\",\"code\":\"x\"}", CALL_CODE, "x" },
        { "run_python", "{\"code\":[\"import os\",\"os.getcwd()\"]}", CALL_CODE, "import os\nos.getcwd()\n" },
        { "run_python", "{\"source\":\"x\"}", CALL_CODE, "x" },
        { "run_python", "\"{\\\"code\\\":\\\"x+1\\\"}\"", CALL_CODE, "x+1" }, /* JSON in a string */
        { "run_python", "\"print(1)\"", CALL_CODE, "print(1)" },              /* code in a string */
        { "run_python", "{\"name\":\"run_python\",\"arguments\":{\"code\":\"x\"}}", CALL_CODE, "x" },
        { "run_python", "{\"name\":\"python\",\"arguments\":\"{\\\"code\\\":\\\"x\\\"}\"}", CALL_CODE, "x" },
        { "run_python", "import pandas as pd\nprint(1)", CALL_CODE, "import pandas as pd\nprint(1)" },
        { "python", "df.head()", CALL_CODE, "df.head()" },
        { "execute", "df.head()", CALL_CODE, "df.head()" },
        { "code_interpreter", "{\"code\":\"1\"}", CALL_CODE, "1" },
        { "run_python", "```python\nx=1\nx\n```", CALL_CODE, "x=1\nx\n" },
        { "run_python", "```\n  if x:\n    y\n```", CALL_CODE, "  if x:\n    y\n" },
        { "run_python", "{\"code\":\"```python\\nx\\n```\"}", CALL_CODE, "x\n" },
        { "run_python", "\"\"\"doc\"\"\"\nprint(1)", CALL_CODE, "\"\"\"doc\"\"\"\nprint(1)" },
        { "run_python", "[x for x in range(3)]", CALL_CODE, "[x for x in range(3)]" },
        { "run_python", "{x for x in range(3)}", CALL_CODE, "{x for x in range(3)}" },
        { "run_python", "{\"code\":\"print('é 数 😱')\"}", CALL_CODE, "print('é 数 😱')" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++)
        check(&cases[i]);
}

static void a_cut_call_is_never_mended(void **state)
{
    static const struct call_case cases[] = {
        { "run_python", "{", CALL_CUT, NULL },
        { "run_python", "{\"co", CALL_CUT, NULL },
        { "run_python", "{\"code\":", CALL_CUT, NULL },
        { "run_python", "{\"code\":\"import os\\nprint(", CALL_CUT, NULL },
        { "run_python", "{\"code\":\"x\"", CALL_CUT, NULL }, /* the last brace may be all that is missing; it may not */
        { "run_python", "{\"code\":\"x\\\"", CALL_CUT, NULL },
        { "run_python", "\"{\\\"code\\\":\\\"x", CALL_CUT, NULL },
        { "run_python", "[\"import os\", ", CALL_CUT, NULL },
        { "python", "{\"code\":\"x", CALL_CUT, NULL },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++)
        check(&cases[i]);
}

static void what_holds_no_program_is_malformed(void **state)
{
    static const struct call_case cases[] = {
        { "run_python", NULL, CALL_MALFORMED, NULL },
        { "run_python", "", CALL_MALFORMED, NULL },
        { "run_python", " \n", CALL_MALFORMED, NULL },
        { "run_python", "{}", CALL_MALFORMED, NULL },
        { "run_python", "null", CALL_MALFORMED, NULL },
        { "run_python", "{\"code\":\"\"}", CALL_MALFORMED, NULL },
        { "run_python", "{\"code\":\" \\n \"}", CALL_MALFORMED, NULL },
        { "run_python", "{\"code\":7}", CALL_MALFORMED, NULL },
        { "run_python", "{\"code\":[\"a\",1]}", CALL_MALFORMED, NULL },
        { "run_python", "{\"code\":\"print(\"hi\")\"}", CALL_MALFORMED, NULL }, /* quotes left raw */
        { "run_python", "{'code': 'print(1)'}", CALL_MALFORMED, NULL },
        { "run_python", "```\n```", CALL_MALFORMED, NULL },
        { "run_python", "\"\\\"\\\\\\\"\\\\\\\\\\\\\\\"x\\\\\\\\\\\\\\\"\\\\\\\"\\\"\"", CALL_MALFORMED,
          NULL }, /* strings without end */
        { "browser", "{\"code\":\"x\"}", CALL_UNKNOWN, NULL },
        { "execute_bash", "{\"command\":\"ls -l\"}", CALL_CODE, "%%bash\nls -l" },
        { "shell", "wc -l a.csv", CALL_CODE, "%%bash\nwc -l a.csv" },
        { "bash", "{\"command\":\"ls", CALL_CUT, NULL },
        { "bash", "{\"path\":\"x\"}", CALL_MALFORMED, NULL },
        { "bash", "", CALL_MALFORMED, NULL },
        { "execute", "{\"language\":\"bash\",\"code\":\"ls\"}", CALL_CODE, "%%bash\nls" },
        { "execute", "{\"language\":\"python\",\"code\":\"x\"}", CALL_CODE, "x" },
        { "execute", "{\"language\":\"javascript\",\"code\":\"x()\"}", CALL_UNKNOWN, NULL },
        { "execute_python", "{\"code\":\"x\"}", CALL_CODE, "x" },
        { "", "{\"code\":\"x\"}", CALL_UNKNOWN, NULL },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++)
        check(&cases[i]);
}

static void a_call_written_as_text_is_a_call(void **state)
{
    static const struct {
        const char *text;
        enum call_kind kind;
        const char *code;
    } cases[] = {
        { "{\"name\":\"run_python\",\"arguments\":{\"code\":\"x\"}}", CALL_CODE, "x" },
        { "<tool_call>\n{\"name\":\"run_python\",\"arguments\":{\"code\":\"x\"}}\n</tool_call>", CALL_CODE, "x" },
        { "```json\n{\"name\":\"execute\",\"arguments\":{\"code\":\"x\"}}\n```", CALL_CODE, "x" },
        { "{\"name\":\"browse\",\"arguments\":{\"url\":\"x\"}}", CALL_UNKNOWN, NULL },
        { "<tool_call>{\"name\":\"run_python\",\"arguments\":{\"code\":\"x", CALL_CUT, NULL },
        { "{\"name\":\"run_python\",\"arguments\":{\"code\":\"x", CALL_CUT, NULL },
        { "The mean is 3.", CALL_NONE, NULL },
        { "{\"name\":\"Ann\",\"age\":3}", CALL_NONE, NULL }, /* JSON that was asked for */
        { "Here: {\"name\":\"run_python\",\"arguments\":{}}", CALL_NONE, NULL },
        { "", CALL_NONE, NULL },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *code = NULL;
        const enum call_kind kind = call_from_text(cases[i].text, &code);
        if (kind != cases[i].kind || (code && strcmp(code, cases[i].code) != 0))
            fail_msg("%s: kind %d, code %s", cases[i].text, (int)kind, code ? code : "NULL");
    }
}

static void a_program_without_a_fence_is_one_only_when_it_is_all(void **state)
{
    static const struct {
        const char *text;
        bool program;
    } cases[] = {
        { "import pandas as pd\n\ndf = pd.read_csv('t.csv')\n\n# The number is 150.\n", true },
        { "from math import pi\nprint(pi)", true },
        { "import pandas as pd\ndf = pd.read_csv('t.csv')\nfor d in df['day']:\n    print(d)\ndf['x'] += 1\na, b = 1, 2\ndf",
          true },
        { "import pandas as pd\ntry:\n    x = 1\nexcept ValueError:\n    pass\nresult = f(\n    1,\n)\n", true },
        { "import pandas as pd\ndf = pd.read_csv('t.csv')\nThe mean is 5.", false },
        { "Import the file first.\nThen run it.", false },
        { "import duties rose in 2009.\nThey fell in 2010 (a little).", false },
        { "import pandas as pd", false },
        { "Here it is:\nimport pandas as pd\nprint(1)", false },
        { "```python\nimport pandas\nprint(1)\n```", false },
        { "print(1)\nprint(2)", false },
        { "", false },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *code = call_bare_program(cases[i].text);
        if (!code != !cases[i].program)
            fail_msg("%s: %s", cases[i].text, code ? "a program" : "none");
    }
}

static void a_persons_block_is_a_program_only_when_it_is_all(void **state)
{
    static const struct {
        const char *text, *code;
    } cases[] = {
        { "```python\nprint(1)\n```", "print(1)\n" },
        { "\n```py\nx = 1\n```\n", "x = 1\n" },
        { "```python\na=1\n```\n```python\na\n```", "a=1\na\n" },
        { "why does this fail?\n```python\n1/0\n```", NULL },
        { "```python\n1/0\n```\nwhy?", NULL },
        { "```js\nx\n```", NULL },
        { "```python\nx", NULL },
        { "```python\n```", NULL },
        { "```python x```", NULL },
        { "hello", NULL },
        { "", NULL },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *code = call_fenced_code(cases[i].text);
        if (!code != !cases[i].code || (code && strcmp(code, cases[i].code) != 0))
            fail_msg("%s: %s", cases[i].text, code ? code : "NULL");
    }
}

static void what_is_written_is_read_back(void **state)
{
    static const char code[] = "print(\"a\\n\", '\\t')\n# é 😱\n";
    (void)state;
    autofree char *args = call_args_write(code), *back = NULL;
    assert_int_equal(call_args_read(CALL_TOOL, args, &back), CALL_CODE);
    assert_string_equal(back, code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_read_for_what_was_meant),
        cmocka_unit_test(a_cut_call_is_never_mended),
        cmocka_unit_test(what_holds_no_program_is_malformed),
        cmocka_unit_test(a_call_written_as_text_is_a_call),
        cmocka_unit_test(a_program_without_a_fence_is_one_only_when_it_is_all),
        cmocka_unit_test(a_persons_block_is_a_program_only_when_it_is_all),
        cmocka_unit_test(what_is_written_is_read_back),
    };
    return cmocka_run_group_tests_name("call_args", tests, NULL, NULL);
}
