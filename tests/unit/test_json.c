#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "json.h"

enum { ROOMY = 64 << 20 };

static struct json *parsed(const char *text)
{
    struct json *v = NULL;
    struct err e = { 0 };
    if (json_parse(&v, text, strlen(text), ROOMY, &e) < 0)
        fail_msg("%s: %s", text, e.msg);
    return v;
}

static char *printed(const struct json *v)
{
    struct str out = STR_INIT(ROOMY);
    json_print(&out, v);
    assert_false(out.overflow);
    return str_take(&out);
}

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

static const char sample[] = "{\"s\":\"text\",\"n\":42,\"f\":1.5,\"big\":9007199254740993,\"t\":true,\"z\":null,"
                             "\"a\":[1,\"two\"],\"o\":{\"k\":\"v\"},\"S\":\"other\",\"no\":false}";

static void strings_are_wanted_by_key(void **state)
{
    (void)state;
    autojson struct json *v = parsed(sample);
    const char *s = NULL;
    struct err e;
    assert_int_equal(json_str(v, "s", &s, &e), 0);
    assert_string_equal(s, "text");
    assert_int_equal(json_str(v, "S", &s, &e), 0);
    assert_string_equal(s, "other");
    assert_int_equal(json_str(v, "none", &s, &e), -1);
    assert_int_equal(e.kind, ERR_DATA);
    assert_string_equal(e.msg, "\"none\" is missing");
    assert_int_equal(json_str(v, "n", &s, &e), -1);
    assert_string_equal(e.msg, "\"n\" is not a string");
    assert_int_equal(json_str(NULL, "n", &s, &e), -1);
}

static void integers_must_be_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t n;
        bool exact;
    } cases[] = {
        { "0", 0, true },
        { "-7", -7, true },
        { "1e3", 1000, true },
        { "2.0", 2, true },
        { "9007199254740991", INT64_C(9007199254740991), true },
        { "-9007199254740991", -INT64_C(9007199254740991), true },
        { "9007199254740992", 0, false },
        { "9007199254740993", 0, false }, /* reads as the one before */
        { "1e300", 0, false },
        { "1.5", 0, false },
        { "\"1\"", 0, false },
        { "null", 0, false },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *text = xasprintf("{\"n\":%s}", cases[i].text);
        autojson struct json *v = parsed(text);
        int64_t n = -99;
        struct err e;
        assert_int_equal(json_int(v, "n", &n, &e), cases[i].exact ? 0 : -1);
        assert_int_equal(n, cases[i].exact ? cases[i].n : -99);
        assert_int_equal(json_int_or(v, "n", -99), n);
        if (!cases[i].exact)
            assert_string_equal(e.msg, "\"n\" is not an integer");
    }
}

static void defaults_stand_in_for_what_is_missing_or_of_another_type(void **state)
{
    (void)state;
    autojson struct json *v = parsed(sample);
    assert_string_equal(json_str_or(v, "s", "d"), "text");
    assert_string_equal(json_str_or(v, "n", "d"), "d");
    assert_null(json_str_or(v, "none", NULL));
    assert_int_equal(json_int_or(v, "n", 7), 42);
    assert_int_equal(json_int_or(v, "f", 7), 7);
    assert_true(json_num_or(v, "f", 7) == 1.5);
    assert_true(json_num_or(v, "s", 7) == 7.0);
    assert_true(json_bool_or(v, "t", false));
    assert_false(json_bool_or(v, "no", true));
    assert_true(json_bool_or(v, "n", true));
    assert_true(json_bool_or(NULL, "t", true));
}

static void values_tell_their_type(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum json_type type;
        size_t len;
    } cases[] = {
        { "null", JSON_NULL, 0 },        { "true", JSON_BOOL, 0 },    { "false", JSON_BOOL, 0 },
        { "1", JSON_NUMBER, 0 },         { "\"x\"", JSON_STRING, 0 }, { "[1,2]", JSON_ARRAY, 2 },
        { "{\"a\":1}", JSON_OBJECT, 1 },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        autojson struct json *v = parsed(cases[i].text);
        assert_int_equal(json_type(v), cases[i].type);
        assert_int_equal(json_len(v), cases[i].len);
        assert_int_equal(json_text(v) != NULL, cases[i].type == JSON_STRING);
        assert_true(json_number(v) == (cases[i].type == JSON_NUMBER ? 1.0 : 0.0));
        assert_int_equal(json_first(v) != NULL, cases[i].len > 0);
        assert_null(json_get(v, "none"));
    }
}

static void nothing_reads_as_nothing(void **state)
{
    (void)state;
    assert_int_equal(json_type(NULL), JSON_NULL);
    assert_null(json_get(NULL, "k"));
    assert_null(json_text(NULL));
    assert_true(json_number(NULL) == 0.0);
    assert_int_equal(json_len(NULL), 0);
    assert_null(json_first(NULL));
    assert_null(json_next(NULL));
    assert_null(json_key(NULL));
    json_free(NULL);
}

static void members_and_elements_are_walked_in_order(void **state)
{
    (void)state;
    autojson struct json *v = parsed("{\"b\":[1,2,3],\"a\":\"x\"}");
    const struct json *b = json_first(v), *a = json_next(b);
    assert_string_equal(json_key(b), "b");
    assert_string_equal(json_key(a), "a");
    assert_null(json_next(a));
    double want = 1;
    for (const struct json *x = json_first(b); x; x = json_next(x)) {
        assert_true(json_number(x) == want++);
        assert_null(json_key(x));
    }
    assert_true(want == 4.0);
    assert_null(json_get(b, "b"));
}

static void a_part_of_a_tree_prints_alone(void **state)
{
    (void)state;
    autojson struct json *v = parsed("{\"a\":[1,{\"x\":2}],\"b\":3}");
    static const struct {
        const char *key, *text;
    } cases[] = { { "a", "[1,{\"x\":2}]" }, { "b", "3" } };
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *text = printed(json_get(v, cases[i].key));
        assert_string_equal(text, cases[i].text);
    }
    autofree char *null = printed(NULL);
    assert_string_equal(null, "null");
}

static void a_copy_outlives_its_original(void **state)
{
    (void)state;
    struct json *v = parsed("{\"a\":{\"x\":[1,\"s\"]},\"b\":0}");
    autojson struct json *copy = json_dup(json_get(v, "a"));
    json_free(v);
    autofree char *text = printed(copy);
    assert_string_equal(text, "{\"x\":[1,\"s\"]}");
}

static void objects_are_built_in_order_and_keys_replaced_in_place(void **state)
{
    (void)state;
    autojson struct json *o = json_new_object();
    json_set_str(o, "s", "text");
    json_set_int(o, "i", -5);
    json_set_num(o, "f", 0.25);
    json_set_bool(o, "t", true);
    json_set_str(o, "none", NULL);
    json_set(o, "null", NULL);
    json_set(o, "a", json_new_array());
    json_set_str(o, "s", "second");
    json_set(o, "i", json_new_object());
    json_set_bool(o, "S", false);
    autofree char *text = printed(o);
    assert_string_equal(text, "{\"s\":\"second\",\"i\":{},\"f\":0.25,\"t\":true,\"none\":null,\"null\":null,\"a\":[],"
                              "\"S\":false}");
}

static void arrays_take_what_is_pushed(void **state)
{
    (void)state;
    autojson struct json *a = json_new_array();
    json_push(a, json_new_string("x"));
    json_push(a, json_new_number(1));
    json_push(a, json_new_bool(false));
    json_push(a, json_new_null());
    json_push(a, NULL);
    autofree char *text = printed(a);
    assert_string_equal(text, "[\"x\",1,false,null,null]");
}

static void what_json_cannot_hold_is_replaced(void **state)
{
    (void)state;
    autojson struct json *a = json_new_array();
    json_push(a, json_new_number((double)NAN));
    json_push(a, json_new_number((double)INFINITY));
    json_push(a, json_new_string("bad \xff byte"));
    autofree char *text = printed(a);
    assert_string_equal(text, "[null,null,\"bad \xef\xbf\xbd byte\"]");
}

static void a_tree_deeper_than_input_may_be_is_printed(void **state)
{
    (void)state;
    struct json *v = json_new_number(1);
    for (int i = 0; i < 500; i++) {
        struct json *outer = json_new_array();
        json_push(outer, v);
        v = outer;
    }
    autofree char *text = printed(v);
    json_free(v);
    assert_int_equal(strlen(text), 1001);
    assert_memory_equal(text + 498, "[[1]]", 5);
}

static void printing_stops_at_the_ceiling(void **state)
{
    (void)state;
    autojson struct json *v = parsed("[\"aaaa\",\"bbbb\"]");
    AUTO(str_clear) struct str out = STR_INIT(8);
    struct err e;
    json_print(&out, v);
    assert_int_equal(str_check(&out, &e), -1);
}

/* The locale must not matter, although this program never sets one. */
static void numbers_ignore_the_locale(void **state)
{
    (void)state;
    static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8" };
    const char *set = NULL;
    for (size_t i = 0; i < countof(names) && !set; i++)
        set = setlocale(LC_ALL, names[i]);
    if (!set)
        print_message("no locale with a decimal comma is installed: tried in C only\n");
    autojson struct json *v = parsed("[1.5,0.1,1e-7]");
    autofree char *text = printed(v);
    (void)setlocale(LC_ALL, "C");
    assert_string_equal(text, "[1.5,0.1,1e-07]");
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static void every_double_survives_a_round_trip(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252U;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = next_random(&seed);
        double d;
        memcpy(&d, &bits, sizeof(d));
        if (!isfinite(d))
            continue;
        autojson struct json *v = json_new_number(d);
        autofree char *text = printed(v);
        autojson struct json *back = parsed(text);
        assert_true(json_number(back) == d);
    }
}

static void canonical_json_sorts_keys_by_code_point(void **state)
{
    (void)state;
    static const struct {
        const char *text, *canonical;
    } cases[] = {
        { "null", "null" },
        { "{}", "{}" },
        { "{\"b\":1,\"a\":2}", "{\"a\":2,\"b\":1}" },
        { "[{\"b\":[{\"z\":1,\"y\":{\"d\":0,\"c\":1}}],\"a\":\"\\u000b\"}]",
          "[{\"a\":\"\\u000b\",\"b\":[{\"y\":{\"c\":1,\"d\":0},\"z\":1}]}]" },
        { "{\"\xef\xbd\x9a\":1,\"\xf0\x9f\x98\x80\":2,\"z\":3,\"\xc3\xa9\":4}",
          "{\"z\":3,\"\xc3\xa9\":4,\"\xef\xbd\x9a\":1,\"\xf0\x9f\x98\x80\":2}" },
        /* the specification's own example */
        { "{\"auth\":{\"success\":true,\"mxid\":\"@john.doe:example.com\",\"profile\":{\"display_name\":\"John Doe\","
          "\"three_pids\":[{\"medium\":\"email\",\"address\":\"john.doe@example.org\"},{\"medium\":\"msisdn\","
          "\"address\":\"123456789\"}]}}}",
          "{\"auth\":{\"mxid\":\"@john.doe:example.com\",\"profile\":{\"display_name\":\"John Doe\",\"three_pids\":["
          "{\"address\":\"john.doe@example.org\",\"medium\":\"email\"},{\"address\":\"123456789\",\"medium\":"
          "\"msisdn\"}]},\"success\":true}}" },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        autojson struct json *v = parsed(cases[i].text);
        autofree char *before = printed(v);
        AUTO(str_clear) struct str out = STR_INIT(1000);
        struct err e;
        assert_int_equal(json_print_canonical(&out, v, &e), 0);
        assert_string_equal(out.buf, cases[i].canonical);
        autofree char *after = printed(v);
        assert_string_equal(before, after);
    }
    AUTO(str_clear) struct str out = STR_INIT(1000);
    struct err e;
    assert_int_equal(json_print_canonical(&out, NULL, &e), 0);
    assert_string_equal(str_peek(&out), "null");
}

static void canonical_json_refuses_fractions(void **state)
{
    (void)state;
    static const char *const texts[] = { "1.5", "{\"a\":[0,{\"b\":1e300}]}", "9007199254740992" };
    for (size_t i = 0; i < countof(texts); i++) {
        autojson struct json *v = parsed(texts[i]);
        AUTO(str_clear) struct str out = STR_INIT(1000);
        struct err e;
        assert_int_equal(json_print_canonical(&out, v, &e), -1);
        assert_int_equal(e.kind, ERR_DATA);
        assert_int_equal(out.len, 0);
    }
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
        cmocka_unit_test(strings_are_wanted_by_key),
        cmocka_unit_test(integers_must_be_exact),
        cmocka_unit_test(defaults_stand_in_for_what_is_missing_or_of_another_type),
        cmocka_unit_test(values_tell_their_type),
        cmocka_unit_test(nothing_reads_as_nothing),
        cmocka_unit_test(members_and_elements_are_walked_in_order),
        cmocka_unit_test(a_part_of_a_tree_prints_alone),
        cmocka_unit_test(a_copy_outlives_its_original),
        cmocka_unit_test(objects_are_built_in_order_and_keys_replaced_in_place),
        cmocka_unit_test(arrays_take_what_is_pushed),
        cmocka_unit_test(what_json_cannot_hold_is_replaced),
        cmocka_unit_test(a_tree_deeper_than_input_may_be_is_printed),
        cmocka_unit_test(printing_stops_at_the_ceiling),
        cmocka_unit_test(numbers_ignore_the_locale),
        cmocka_unit_test(every_double_survives_a_round_trip),
        cmocka_unit_test(canonical_json_sorts_keys_by_code_point),
        cmocka_unit_test(canonical_json_refuses_fractions),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
