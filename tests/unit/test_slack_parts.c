/* The adapter's small pure parts: limits, signatures, addresses and names of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "slack/slack_fetch.h"
#include "slack/slack_http.h"
#include "slack/slack_limit.h"

/* ---- limits ---- */

static void a_channel_takes_one_message_a_second_after_three(void **state)
{
    (void)state;
    struct slack_limit *l = slack_limit_new();
    static const int64_t waits[] = { 0, 0, 0, 1000, 2000 };
    for (size_t i = 0; i < countof(waits); i++)
        assert_int_equal(slack_limit_take(l, "T1", "chat.postMessage", "C1", 1000000), waits[i]);
    assert_int_equal(slack_limit_take(l, "T1", "chat.postMessage", "C2", 1000000), 0);
    assert_int_equal(slack_limit_take(l, "T2", "chat.postMessage", "C1", 1000000), 0);
    assert_int_equal(slack_limit_take(l, "T1", "chat.postMessage", "C1", 1060000), 0);
    slack_limit_free(l);
}

static void a_method_is_called_at_four_fifths_of_its_tier(void **state)
{
    (void)state;
    struct slack_limit *l = slack_limit_new();
    int64_t last = 0;
    for (int i = 0; i < 50; i++)
        last = slack_limit_take(l, "T1", "conversations.replies", NULL, 0);
    assert_int_equal(last, 40 * 1500); /* ten at once, then forty a minute */
    assert_int_equal(slack_limit_take(l, "T1", "users.info", NULL, 0), 0);
    slack_limit_free(l);
}

static void parking_holds_one_method_of_one_workspace(void **state)
{
    (void)state;
    struct slack_limit *l = slack_limit_new();
    slack_limit_park(l, "T1", "chat.update", 5000);
    slack_limit_park(l, "T1", "chat.update", 4000);
    assert_int_equal(slack_limit_parked(l, "T1", "chat.update", 1000), 5000);
    assert_int_equal(slack_limit_parked(l, "T1", "chat.update", 5000), 0);
    assert_int_equal(slack_limit_parked(l, "T1", "chat.postMessage", 1000), 0);
    assert_int_equal(slack_limit_parked(l, "T2", "chat.update", 1000), 0);
    slack_limit_free(l);
}

/* ---- signatures ---- */

static void slacks_own_signature_is_right(void **state)
{
    (void)state;
    static const char body[] =
        "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name="
        "foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2F"
        "hooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121."
        "803a0bc887a14d10d2c447fce8b6703c";
    assert_true(slack_signature_is_right("8f742231b10e8888abcd99yyyzzz85a5", "1531420618",
                                         "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503", body,
                                         strlen(body), 1531420618));
}

static void a_signature_is_refused_when_anything_is_off(void **state)
{
    (void)state;
    static const char right[] = "v0=21244cd098b6fdd29ed3e89c0c532d993f891fdd69255849a77803502e97dd04";
    static const char body[] = "{\"type\":\"event_callback\"}";
    const int64_t at = 1700000000;
    const size_t n = strlen(body);
    assert_true(slack_signature_is_right("s3cr3t", "1700000000", right, body, n, at));
    assert_true(slack_signature_is_right("s3cr3t", "1700000000", right, body, n, at + 300));
    assert_false(slack_signature_is_right("s3cr3t", "1700000000", right, body, n, at + 301));
    assert_false(slack_signature_is_right("s3cr3t", "1700000000", right, body, n, at - 301));
    assert_false(slack_signature_is_right("other", "1700000000", right, body, n, at));
    assert_false(slack_signature_is_right("s3cr3t", "1700000001", right, body, n, at));
    assert_false(slack_signature_is_right("s3cr3t", "1700000000", right, body, n - 1, at));
    assert_false(slack_signature_is_right("s3cr3t", "1700000000", "v0=", body, n, at));
    assert_false(slack_signature_is_right("s3cr3t", "1700000000", NULL, body, n, at));
    assert_false(slack_signature_is_right("s3cr3t", NULL, right, body, n, at));
    assert_false(slack_signature_is_right("s3cr3t", "", right, body, n, at));
    assert_false(slack_signature_is_right("s3cr3t", "-1700000000", right, body, n, at));
}

static void a_form_holds_its_payload(void **state)
{
    (void)state;
    static const char form[] = "application/x-www-form-urlencoded; charset=utf-8";
    autofree char *json = slack_http_payload("application/json", "{\"a\":1}");
    autofree char *field = slack_http_payload(form, "x=1&payload=%7B%22a%22%3A+1%7D&y=2");
    assert_string_equal(json, "{\"a\":1}");
    assert_string_equal(field, "{\"a\": 1}");
    assert_null(slack_http_payload(form, "x=1"));
    assert_null(slack_http_payload("text/plain", "hello"));
}

/* ---- addresses and names ---- */

static void the_token_goes_to_listed_hosts_only(void **state)
{
    (void)state;
    static const char hosts[] = "files.slack.com 127.0.0.1:8080",
                      follow[] = "*.slack.com *.slack-edge.com slack-files.com";
    static const struct {
        const char *url;
        enum slack_host host;
    } rows[] = {
        { "https://files.slack.com/files-pri/T1-F1/x.csv", SLACK_HOST_TOKEN },
        { "https://files.slack.com:443/x", SLACK_HOST_TOKEN },
        { "https://FILES.slack.com/x", SLACK_HOST_TOKEN },
        { "https://files.slack.com:444/x", SLACK_HOST_NO },
        { "http://files.slack.com/x", SLACK_HOST_NO },
        { "https://files.slack.com@evil.example/x", SLACK_HOST_NO },
        { "https://evil.example/files.slack.com", SLACK_HOST_NO },
        { "https://files.slack.com.evil.example/x", SLACK_HOST_NO },
        { "https://a.slack.com/x", SLACK_HOST_FOLLOW },
        { "https://slack.com/x", SLACK_HOST_NO },
        { "https://notslack.com/x", SLACK_HOST_NO },
        { "https://evilslack.com/x", SLACK_HOST_NO },
        { "https://x.slack-edge.com/x", SLACK_HOST_FOLLOW },
        { "http://127.0.0.1:8080/x", SLACK_HOST_TOKEN },
        { "http://127.0.0.1:8081/x", SLACK_HOST_NO },
        { "https://files.slack.com\\@evil.example/", SLACK_HOST_NO },
        { "https://files.slack.com /x", SLACK_HOST_NO },
        { "ftp://files.slack.com/x", SLACK_HOST_NO },
        { "//files.slack.com/x", SLACK_HOST_NO },
        { "", SLACK_HOST_NO },
    };
    for (size_t i = 0; i < countof(rows); i++)
        if (slack_fetch_host(rows[i].url, hosts, follow) != rows[i].host)
            fail_msg("%s", rows[i].url);
}

static void names_become_plain_names(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } rows[] = {
        { "a.csv", "a.csv" },
        { "../../etc/passwd", "passwd" },
        { "c:\\x\\y.csv", "y.csv" },
        { "...hidden", "hidden" },
        { "", "file" },
        { "/", "file" },
        { "a\nb.csv", "a_b.csv" },
        { "\xe8\xa1\xa8.csv", "\xe8\xa1\xa8.csv" },
    };
    for (size_t i = 0; i < countof(rows); i++) {
        autofree char *name = slack_fetch_name(rows[i].in);
        assert_string_equal(name, rows[i].out);
    }
    char long_name[400];
    memset(long_name, 'x', sizeof(long_name));
    memcpy(long_name + sizeof(long_name) - 5, ".csv", 5);
    autofree char *name = slack_fetch_name(long_name);
    assert_int_equal(strlen(name), 120);
    assert_string_equal(name + 116, ".csv");
    char broken[4001];
    memset(broken, 0xff, sizeof(broken) - 1); /* each byte becomes three */
    broken[sizeof(broken) - 1] = '\0';
    autofree char *mended = slack_fetch_name(broken);
    assert_true(strlen(mended) <= 120 && utf8_valid(mended, strlen(mended)));
}

static void a_workspace_lacks_what_it_refuses_everywhere_not_in_one_thread(void **state)
{
    static const struct {
        const char *error;
        bool lacks;
    } cases[] = {
        { "unknown_method", true },     { "missing_scope", true },
        { "a_code_of_tomorrow", true }, { "ratelimited", false },
        { "internal_error", false },    { "is_archived", false },
        { "thread_not_found", false },  { NULL, false },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++)
        assert_int_equal(slack_lacks_feature(&(struct slack_reply){ .error = cases[i].error }), cases[i].lacks);
}

static void html_is_recognised_behind_blanks_and_marks(void **state)
{
    (void)state;
    assert_true(slack_fetch_is_html("<!DOCTYPE HTML>", 15));
    assert_true(slack_fetch_is_html("\xef\xbb\xbf \n<html lang=en>", 19));
    assert_false(slack_fetch_is_html("a,b\n1,<html>", 12));
    assert_false(slack_fetch_is_html("", 0));
}

static void redirects_resolve_like_a_browser_would(void **state)
{
    (void)state;
    autofree char *path = slack_fetch_resolve("https://files.slack.com/a/b", "/c?d");
    autofree char *host = slack_fetch_resolve("https://files.slack.com/a", "//x.slack.com/c");
    autofree char *whole = slack_fetch_resolve("https://files.slack.com/a", "https://y.example/");
    assert_string_equal(path, "https://files.slack.com/c?d");
    assert_string_equal(host, "https://x.slack.com/c");
    assert_string_equal(whole, "https://y.example/");
    assert_null(slack_fetch_resolve("https://files.slack.com/a", "javascript:x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_channel_takes_one_message_a_second_after_three),
        cmocka_unit_test(a_method_is_called_at_four_fifths_of_its_tier),
        cmocka_unit_test(parking_holds_one_method_of_one_workspace),
        cmocka_unit_test(slacks_own_signature_is_right),
        cmocka_unit_test(a_signature_is_refused_when_anything_is_off),
        cmocka_unit_test(a_form_holds_its_payload),
        cmocka_unit_test(the_token_goes_to_listed_hosts_only),
        cmocka_unit_test(names_become_plain_names),
        cmocka_unit_test(a_workspace_lacks_what_it_refuses_everywhere_not_in_one_thread),
        cmocka_unit_test(html_is_recognised_behind_blanks_and_marks),
        cmocka_unit_test(redirects_resolve_like_a_browser_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
