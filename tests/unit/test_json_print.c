/* Printing: numbers, depth, ceilings, and canonical JSON. */
#include "json_fixture.h"
#include <locale.h>
#include <math.h>

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
        cmocka_unit_test(a_tree_deeper_than_input_may_be_is_printed),
        cmocka_unit_test(printing_stops_at_the_ceiling),
        cmocka_unit_test(numbers_ignore_the_locale),
        cmocka_unit_test(every_double_survives_a_round_trip),
        cmocka_unit_test(canonical_json_sorts_keys_by_code_point),
        cmocka_unit_test(canonical_json_refuses_fractions),
    };
    return cmocka_run_group_tests_name("json_print", tests, NULL, NULL);
}
