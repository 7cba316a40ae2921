/* An operator's HTTP service: where arguments may go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "http_tool.h"

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = { 0 };
    assert_int_equal(json_parse(&v, text, strlen(text), 1 << 20, &e), 0);
    return v;
}

static struct conf_tool tool_of(char *url, char *method)
{
    static char none[] = "", bearer[] = "Authorization: Bearer {secret}";
    return (struct conf_tool){ .url = url, .method = method, .headers = none, .secret_header = bearer };
}

static void arguments_fill_places_and_the_query_and_nothing_else(void **state)
{
    static const struct {
        const char *url, *method, *args, *made; /* made NULL: refused */
    } cases[] = {
        { "https://h/{a}/x", "GET", "{\"a\":\"b\"}", "https://h/b/x" },
        { "https://h/{a}/x", "GET", "{\"a\":\"b/../c?d#e&f=g h%41\"}",
          "https://h/b%2F..%2Fc%3Fd%23e%26f%3Dg%20h%2541/x" },
        { "https://h/{a}", "GET", "{\"a\":\"\xc3\xbc\"}", "https://h/%C3%BC" },
        { "https://h/{a}", "GET", "{\"a\":1.5,\"b\":true,\"c\":\"x&y\",\"d\":null}", "https://h/1.5?b=true&c=x%26y" },
        { "https://h/?k=v", "GET", "{\"q\":\"\"}", "https://h/?k=v&q=" },
        { "https://h/x?q={q}", "GET", "{\"q\":\"..\"}", "https://h/x?q=.." },
        { "https://h/{a}{a}", "POST", "{\"a\":\"1\",\"b\":2}", "https://h/11" },
        { "https://h/{a}", "GET", "{}", NULL },
        { "https://h/{a}", "GET", "{\"a\":null}", NULL },
        { "https://h/{a}", "GET", "{\"a\":[1]}", NULL },
        { "https://h/{a}", "GET", "{\"a\":{}}", NULL },
        { "https://h/{a}", "GET", "{\"a\":\"\"}", NULL },
        { "https://h/{a}", "GET", "{\"a\":\".\"}", NULL },
        { "https://h/{a}/b", "GET", "{\"a\":\"..\"}", NULL },
        { "https://h/", "GET", "{\"q\":[1,2]}", NULL },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *url = xstrdup(cases[i].url);
        autofree char *method = xstrdup(cases[i].method);
        autofree char *made = NULL;
        autojson struct json *args = parse(cases[i].args);
        const struct conf_tool t = tool_of(url, method);
        struct err e = { 0 };
        assert_int_equal(http_tool_url(&made, &t, args, &e), cases[i].made ? 0 : -1);
        if (cases[i].made)
            assert_string_equal(made, cases[i].made);
        else
            assert_int_equal(e.kind, ERR_DATA);
    }
}

static void what_the_address_did_not_take_is_the_body(void **state)
{
    char url[] = "https://h/{a}", post[] = "POST", get[] = "GET";
    autojson struct json *args = parse("{\"a\":1,\"b\":[2],\"c\":\"x\"}");
    const struct conf_tool posts = tool_of(url, post), gets = tool_of(url, get);
    autofree char *body = http_tool_body(&posts, args);
    (void)state;
    assert_string_equal(body, "{\"b\":[2],\"c\":\"x\"}");
    assert_null(http_tool_body(&gets, args));
}

static void headers_are_given_and_the_secret_goes_into_its_own(void **state)
{
    char url[] = "https://h/", post[] = "POST", given[] = " Accept: text/csv |X-A:b|| ", key[] = "X-Key: v1 {secret};";
    struct conf_tool t = tool_of(url, post);
    struct err e = { 0 };
    char **lines = NULL;
    (void)state;
    t.headers = given;
    t.secret_header = key;
    assert_int_equal(http_tool_headers(&lines, &t, "s3", &e), 0);
    assert_string_equal(lines[0], "Accept: text/csv");
    assert_string_equal(lines[1], "X-A:b");
    assert_string_equal(lines[2], "Content-Type: application/json");
    assert_string_equal(lines[3], "X-Key: v1 s3;");
    assert_null(lines[4]);
    http_tool_headers_free(lines);
    t.headers = key; /* "{secret}" is only filled in where it belongs */
    assert_int_equal(http_tool_headers(&lines, &t, NULL, &e), 0);
    assert_string_equal(lines[0], key);
    http_tool_headers_free(lines);
    for (size_t i = 0; i < 3; i++) {
        char *const bad[] = { (char[]){ "no header" }, (char[]){ ": x" }, (char[]){ "A b: x" } };
        t.headers = bad[i];
        assert_int_equal(http_tool_headers(&lines, &t, NULL, &e), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_fill_places_and_the_query_and_nothing_else),
        cmocka_unit_test(what_the_address_did_not_take_is_the_body),
        cmocka_unit_test(headers_are_given_and_the_secret_goes_into_its_own),
    };
    return cmocka_run_group_tests_name("http_tool", tests, NULL, NULL);
}
