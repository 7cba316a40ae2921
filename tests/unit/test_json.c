/* Reading a tree, and building one. */
#include "json_fixture.h"
#include <math.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
