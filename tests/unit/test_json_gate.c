/* What is taken for JSON and what is refused: grammar, sizes, depth, time. */
#include "json_fixture.h"
#include <time.h>

static const struct {
    const char *text, *compact;
} accepted[] = {
    { "null", "null" },
    { " true\n", "true" },
    { "false", "false" },
    { "\"\"", "\"\"" },
    { "[]", "[]" },
    { "{}", "{}" },
    { "[ ]", "[]" },
    { "{\t}", "{}" },
    { "[1 , 2,\r\n3]", "[1,2,3]" },
    { "{ \"b\" : 1 , \"a\" : [ { } , [ ] , null ] }", "{\"b\":1,\"a\":[{},[],null]}" },
    { "[[1],[2,[3]],4]", "[[1],[2,[3]],4]" },
    { "{\"a\":{\"b\":{\"c\":[]}},\"d\":0}", "{\"a\":{\"b\":{\"c\":[]}},\"d\":0}" },
    { "{\"\":1}", "{\"\":1}" },
    { "{\"a\":1,\"A\":2}", "{\"a\":1,\"A\":2}" },
    /* strings */
    { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"" },
    { "\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
    { "\"\\u0001\\u001F\x7f\"", "\"\\u0001\\u001f\x7f\"" },
    { "\"\\uD83D\\uDE00\"", "\"\xf0\x9f\x98\x80\"" },
    /* numbers */
    { "0", "0" },
    { "-0", "0" },
    { "-1", "-1" },
    { "1e3", "1000" },
    { "1E+2", "100" },
    { "12e-1", "1.2" },
    { "0.1", "0.1" },
    { "0.30000000000000004", "0.30000000000000004" },
    { "3.14159", "3.14159" },
    { "9007199254740991", "9007199254740991" },
    { "-9007199254740991", "-9007199254740991" },
    { "9007199254740992", "9007199254740992" },
    { "1e300", "1e+300" },
    { "5e-324", "5e-324" },
    { "1.7976931348623157e308", "1.7976931348623157e+308" },
    { "123456789012345.67", "123456789012345.67" },
};

static void what_is_json_prints_compactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(accepted); i++) {
        autojson struct json *v = parsed(accepted[i].text);
        autofree char *text = printed(v);
        assert_string_equal(text, accepted[i].compact);
    }
}

static const struct {
    const char *text, *msg;
} refused[] = {
    { "", "JSON: ends too early at byte 0" },
    { "  ", "JSON: ends too early at byte 2" },
    { "nul", "JSON: expected a value at byte 0" },
    { "NaN", "JSON: expected a value at byte 0" },
    { "Infinity", "JSON: expected a value at byte 0" },
    { "-Infinity", "JSON: bad number at byte 1" },
    { "'a'", "JSON: expected a value at byte 0" },
    { "// c\n1", "JSON: expected a value at byte 0" },
    { "\xef\xbb\xbf{}", "JSON: expected a value at byte 0" },
    { "1 2", "JSON: something follows the value at byte 2" },
    { "{}x", "JSON: something follows the value at byte 2" },
    { "truefalse", "JSON: something follows the value at byte 4" },
    { "\v1", "JSON: expected a value at byte 0" },
    /* containers */
    { "[", "JSON: ends too early at byte 1" },
    { "[1", "JSON: ends too early at byte 2" },
    { "[1,", "JSON: ends too early at byte 3" },
    { "[1,]", "JSON: expected a value at byte 3" },
    { "[1 2]", "JSON: expected a comma or the end of the list at byte 3" },
    { "[1}", "JSON: expected a comma or the end of the list at byte 2" },
    { "[}", "JSON: expected a value at byte 1" },
    { "{", "JSON: ends too early at byte 1" },
    { "{]", "JSON: expected a key at byte 1" },
    { "{a:1}", "JSON: expected a key at byte 1" },
    { "{\"a\"", "JSON: expected a colon at byte 4" },
    { "{\"a\" 1}", "JSON: expected a colon at byte 5" },
    { "{\"a\":}", "JSON: expected a value at byte 5" },
    { "{\"a\":1", "JSON: ends too early at byte 6" },
    { "{\"a\":1,", "JSON: ends too early at byte 7" },
    { "{\"a\":1,}", "JSON: expected a key at byte 7" },
    { "]", "JSON: expected a value at byte 0" },
    /* strings */
    { "\"a", "JSON: string without an end at byte 2" },
    { "\"a\\", "JSON: bad escape at byte 3" },
    { "\"\\x\"", "JSON: bad escape at byte 3" },
    { "\"\\u12\"", "JSON: bad \\u escape at byte 5" },
    { "\"\\u12g4\"", "JSON: bad \\u escape at byte 5" },
    { "\"\\u", "JSON: bad \\u escape at byte 3" },
    { "\"\\u0000\"", "JSON: NUL escape at byte 7" },
    { "{\"\\u0000\":1}", "JSON: NUL escape at byte 8" },
    { "\"\\ud800\"", "JSON: lone surrogate at byte 7" },
    { "\"\\ud800x\"", "JSON: lone surrogate at byte 7" },
    { "\"\\ud800\\n\"", "JSON: lone surrogate at byte 8" },
    { "\"\\ud800\\u0041\"", "JSON: lone surrogate at byte 13" },
    { "\"\\udc00\"", "JSON: lone surrogate at byte 7" },
    { "\"a\nb\"", "JSON: control character in a string at byte 3" },
    /* numbers */
    { "01", "JSON: something follows the value at byte 1" },
    { "+1", "JSON: expected a value at byte 0" },
    { ".5", "JSON: expected a value at byte 0" },
    { "-", "JSON: bad number at byte 1" },
    { "1.", "JSON: bad number at byte 2" },
    { "1e", "JSON: bad number at byte 2" },
    { "1e+", "JSON: bad number at byte 3" },
    { "0x10", "JSON: something follows the value at byte 1" },
    { "1e999", "JSON: number out of range" },
    { "[{\"a\":-1e999}]", "JSON: number out of range" },
    { "0.123456789012345678901234567890123456789012345678901234567890123",
      "JSON: number with too many digits at byte 65" },
    /* bytes */
    { "\"\xff\"", "JSON is not valid UTF-8" },
    { "\"\xed\xa0\x80\"", "JSON is not valid UTF-8" },
    /* keys twice, however written */
    { "{\"a\":1,\"b\":2,\"a\":3}", "JSON: key \"a\" twice in one object" },
    { "{\"a\":1,\"\\u0061\":2}", "JSON: key \"a\" twice in one object" },
    { "[{\"x\":{\"\":1,\"\":2}}]", "JSON: key \"\" twice in one object" },
};

static void what_is_not_json_is_refused_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(refused); i++) {
        struct json *v = NULL;
        struct err e = { 0 };
        if (json_parse(&v, refused[i].text, strlen(refused[i].text), ROOMY, &e) == 0)
            fail_msg("accepted: %s", refused[i].text);
        assert_null(v);
        assert_int_equal(e.kind, ERR_DATA);
        assert_string_equal(e.msg, refused[i].msg);
    }
}

static void a_nul_byte_is_refused(void **state)
{
    (void)state;
    struct json *v = NULL;
    struct err e;
    assert_int_equal(json_parse(&v, "1\0", 2, ROOMY, &e), -1);
    assert_int_equal(json_parse(&v, "\"\0\"", 3, ROOMY, &e), -1);
}

static void the_text_need_not_be_terminated(void **state)
{
    (void)state;
    static const char *const texts[] = { "12", "[1,2]", "\"ab\"", "true", "{\"a\":1}" };
    for (size_t i = 0; i < countof(texts); i++) {
        size_t n = strlen(texts[i]);
        autofree char *exact = xcalloc(n, 1); /* the sanitizer sees a byte too far */
        autojson struct json *v = NULL;
        struct err e;
        memcpy(exact, texts[i], n);
        assert_int_equal(json_parse(&v, exact, n, ROOMY, &e), 0);
    }
}

static void the_size_limit_is_exact(void **state)
{
    (void)state;
    autojson struct json *v = NULL;
    struct err e;
    assert_int_equal(json_parse(&v, "[1,2]", 5, 4, &e), -1);
    assert_string_equal(e.msg, "JSON of 5 bytes, more than 4");
    assert_int_equal(json_parse(&v, "[1,2]", 5, 5, &e), 0);
}

static void repeat(struct str *s, const char *text, size_t n)
{
    while (n-- > 0)
        str_puts(s, text);
}

static void depth_64_is_fine_and_65_is_not(void **state)
{
    (void)state;
    for (size_t depth = 64; depth <= 65; depth++) {
        AUTO(str_clear) struct str text = STR_INIT(1000);
        autojson struct json *v = NULL;
        struct err e;
        repeat(&text, "[", depth);
        repeat(&text, "]", depth);
        assert_int_equal(json_parse(&v, text.buf, text.len, ROOMY, &e), depth == 64 ? 0 : -1);
    }
    AUTO(str_clear) struct str deep = STR_INIT(ROOMY);
    struct json *v = NULL;
    struct err e;
    repeat(&deep, "{\"a\":[", 1000000);
    assert_int_equal(json_parse(&v, deep.buf, deep.len, ROOMY, &e), -1);
    assert_string_equal(e.msg, "JSON: nested too deeply at byte 193");
}

static double seconds_of(const struct str *text, int want)
{
    autojson struct json *v = NULL;
    struct err e;
    clock_t start = clock();
    assert_int_equal(json_parse(&v, text->buf, text->len, ROOMY, &e), want);
    AUTO(str_clear) struct str out = STR_INIT(ROOMY);
    json_print(&out, v);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* Generous: quadratic work would take minutes. */
static void hostile_input_takes_time_in_proportion(void **state)
{
    (void)state;
    AUTO(str_clear) struct str keys = STR_INIT(ROOMY);
    AUTO(str_clear) struct str same = STR_INIT(ROOMY);
    AUTO(str_clear) struct str flat = STR_INIT(ROOMY);
    AUTO(str_clear) struct str escapes = STR_INIT(ROOMY);
    str_putc(&keys, '{');
    str_putc(&same, '{');
    for (unsigned i = 0; i < 200000; i++) {
        str_printf(&keys, "%s\"k%u\":0", i ? "," : "", i * 2654435761U);
        str_printf(&same, "%s\"k\":0", i ? "," : "");
    }
    str_putc(&keys, '}');
    str_putc(&same, '}');
    str_putc(&flat, '[');
    repeat(&flat, "0,", 1000000);
    str_puts(&flat, "0]");
    str_putc(&escapes, '"');
    repeat(&escapes, "\\n", 1000000);
    str_putc(&escapes, '"');
    assert_true(seconds_of(&keys, 0) < 10);
    assert_true(seconds_of(&same, -1) < 10);
    assert_true(seconds_of(&flat, 0) < 10);
    assert_true(seconds_of(&escapes, 0) < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_json_prints_compactly),
        cmocka_unit_test(what_is_not_json_is_refused_with_its_place),
        cmocka_unit_test(a_nul_byte_is_refused),
        cmocka_unit_test(the_text_need_not_be_terminated),
        cmocka_unit_test(the_size_limit_is_exact),
        cmocka_unit_test(depth_64_is_fine_and_65_is_not),
        cmocka_unit_test(hostile_input_takes_time_in_proportion),
    };
    return cmocka_run_group_tests_name("json_gate", tests, NULL, NULL);
}
