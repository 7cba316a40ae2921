/* The HTTP client: time-outs, retries, rate limits, cancelling. */
#include "http_fixture.h"

/* ---- time ---- */

static void silence_ends_in_a_timeout(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    go_stream(&f, "/stall", (struct http_request){ .tries = 3 });
    pump(&f, &f.body_n, 1);
    f.skew_ms += 89000;
    rounds(&f, 3);
    assert_int_equal(f.done_n, 0);
    f.skew_ms += 1000;
    pump(&f, &f.done_n, 1);
    assert_int_equal(f.err.kind, ERR_TIMEOUT);
    assert_non_null(strstr(f.err.msg, "no byte for 90000 ms"));
    end(&f);
}

static void the_whole_may_have_a_deadline(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    go(&f, "GET", "/stall", (struct http_request){ .total_ms = 50, .tries = 3 });
    pump(&f, &f.done_n, 1);
    assert_int_equal(f.err.kind, ERR_TIMEOUT);
    assert_int_equal(f.tries, 1);
    end(&f);
}

/* Runs, moving the clock on, until done; milliseconds on the fake clock that it took. */
static int64_t done_after_ms(struct fixture *f)
{
    int64_t from = loop_now_ms(f->l);
    int n = f->done_n;
    while (f->done_n == n) {
        rounds(f, 2);
        f->skew_ms += 50;
    }
    return loop_now_ms(f->l) - from;
}

static void a_busy_peer_is_tried_again_with_longer_pauses(void **state)
{
    (void)state;
    static const char *const status[] = { "408", "409", "429", "500", "529" };
    struct fixture f;
    begin(&f);
    for (size_t i = 0; i < countof(status); i++) {
        autofree char *path = xasprintf("/fail/%s", status[i]);
        f.server.fails_left = 2;
        go(&f, "GET", path, (struct http_request){ .tries = 3 });
        int64_t took = done_after_ms(&f);
        assert_int_equal(f.status, 200);
        assert_int_equal(f.tries, 3);
        assert_true(took >= 375 + 750 && took < 5000);
    }
    assert_int_equal(f.server.hits, 15);
    end(&f);
}

static void what_will_not_get_better_is_not_tried_again(void **state)
{
    (void)state;
    static const char *const status[] = { "400", "401", "402", "403", "404", "413", "422" };
    struct fixture f;
    begin(&f);
    for (size_t i = 0; i < countof(status); i++) {
        autofree char *path = xasprintf("/fail/%s", status[i]);
        f.server.fails_left = 1;
        go(&f, "GET", path, (struct http_request){ .tries = 3 });
        pump(&f, &f.done_n, (int)i + 1);
        assert_int_equal(f.status, atoi(status[i])); /* NOLINT(cert-err34-c) */
    }
    assert_int_equal(f.server.hits, (int)countof(status));
    end(&f);
}

static void the_peer_may_say_whether_to_retry(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.server.fails_left = 1;
    f.server.extra = "X-Should-Retry: false\r\n";
    go(&f, "GET", "/fail/500", (struct http_request){ .tries = 3 });
    pump(&f, &f.done_n, 1);
    assert_int_equal(f.status, 500);
    f.server.fails_left = 1;
    f.server.extra = "X-Should-Retry: true\r\n";
    go(&f, "GET", "/fail/400", (struct http_request){ .tries = 3 });
    (void)done_after_ms(&f);
    assert_int_equal(f.status, 200);
    assert_int_equal(f.tries, 2);
    end(&f);
}

static void after_a_429_every_request_to_the_host_waits_as_asked(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.server.fails_left = 1;
    f.server.extra = "Retry-After: 7\r\n";
    go(&f, "GET", "/fail/429", (struct http_request){ .tries = 3 });
    pump(&f, &f.server.hits, 1);
    rounds(&f, 3);
    go(&f, "GET", "/hello", (struct http_request){ 0 });
    f.skew_ms += 6900;
    rounds(&f, 5);
    assert_int_equal(f.server.hits, 1);
    f.skew_ms += 200;
    pump(&f, &f.done_n, 2);
    assert_int_equal(f.server.hits, 3);
    end(&f);
}

static void a_date_tells_when_to_come_back(void **state)
{
    (void)state;
    struct fixture f;
    char when[64], line[96];
    begin(&f);
    time_t at = (time_t)(time_unix_ms() / 1000) + 20;
    struct tm tm;
    assert_true(strftime(when, sizeof when, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&at, &tm)) > 0);
    (void)snprintf(line, sizeof line, "Retry-After: %s\r\n", when);
    f.server.fails_left = 1;
    f.server.extra = line;
    go(&f, "GET", "/fail/503", (struct http_request){ .tries = 2 });
    int64_t took = done_after_ms(&f);
    assert_true(took > 17000 && took < 22000);
    assert_int_equal(f.status, 200);
    end(&f);
}

static void nonsense_about_waiting_is_not_believed(void **state)
{
    (void)state;
    static const char *const lines[] = { "Retry-After: soon\r\n", "Retry-After: -5\r\n", "Retry-After: 1e99\r\n",
                                         "Retry-After: nan\r\n", "Retry-After-Ms: \r\n" };
    struct fixture f;
    begin(&f);
    for (size_t i = 0; i < countof(lines); i++) {
        f.server.fails_left = 1;
        f.server.extra = lines[i];
        go(&f, "GET", "/fail/429", (struct http_request){ .tries = 2 });
        int64_t took = done_after_ms(&f);
        assert_true(took >= 375 && took < 2000);
        assert_int_equal(f.status, 200);
    }
    end(&f);
}

static void who_cannot_wait_that_long_is_told_at_once(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.server.fails_left = 1;
    f.server.extra = "Retry-After: 100\r\n"; /* too long to wait here: the caller gets the 429 */
    go(&f, "GET", "/fail/429", (struct http_request){ .tries = 3 });
    pump(&f, &f.done_n, 1);
    assert_int_equal(f.status, 429);
    assert_int_equal(f.err.kind, ERR_NONE);
    go(&f, "GET", "/hello", (struct http_request){ .total_ms = 30000 });
    pump(&f, &f.done_n, 2);
    assert_int_equal(f.err.kind, ERR_LIMIT);
    assert_true(f.err.retry_ms > 90000 && f.err.retry_ms <= 100000);
    assert_int_equal(f.status, 0);
    end(&f);
}

static void a_peer_that_hangs_up_is_tried_again(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    go(&f, "GET", "/rude", (struct http_request){ .tries = 3 });
    (void)done_after_ms(&f);
    assert_int_equal(f.err.kind, ERR_NET);
    assert_int_equal(f.tries, 3);
    end(&f);
}

static void nobody_there_is_a_network_error(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    int port = f.server.port;
    f.server.port = 1;
    get(&f, "/hello");
    assert_int_equal(f.err.kind, ERR_NET);
    assert_int_equal(f.status, 0);
    f.server.port = port;
    end(&f);
}

/* ---- what is not even begun ---- */

static void an_address_or_header_that_is_wrong_is_refused_at_once(void **state)
{
    (void)state;
    static const char *const split[] = { "X: a\r\nY: b", NULL };
    static const struct {
        const char *url;
        enum err_kind kind;
    } cases[] = {
        { "http://example.org/", ERR_CONFIG },
        { "http://127.0.0.1.example.org/", ERR_CONFIG },
        { "ftp://127.0.0.1/", ERR_CONFIG },
        { "file:///etc/passwd", ERR_CONFIG },
        { "not an address", ERR_CONFIG },
        { "", ERR_CONFIG },
        { "http://localhost@example.org/", ERR_CONFIG },
    };
    static const struct http_events events = { NULL, on_done };
    struct fixture f;
    struct err e = { 0 };
    begin(&f);
    for (size_t i = 0; i < countof(cases); i++) {
        const struct http_request r = { .method = "GET", .url = cases[i].url };
        assert_int_equal(http_start(&f.call, f.h, &r, &events, &f, &e), -1);
        assert_int_equal(e.kind, cases[i].kind);
    }
    const struct http_request r = { .method = "GET", .url = "https://example.org/", .headers = split };
    assert_int_equal(http_start(&f.call, f.h, &r, &events, &f, &e), -1);
    assert_int_equal(e.kind, ERR_DATA);
    end(&f);
}

/* ---- cancelling, from everywhere ---- */

static void a_cancelled_call_is_never_heard_of_again(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    http_cancel(NULL);
    go(&f, "GET", "/hello", (struct http_request){ 0 }); /* before it begins */
    http_cancel(f.call);
    rounds(&f, 3);
    assert_int_equal(f.server.hits, 0);
    go_stream(&f, "/stall", (struct http_request){ 0 }); /* in the middle */
    pump(&f, &f.body_n, 1);
    http_cancel(f.call);
    f.cancel_in_body = true;
    go_stream(&f, "/big/3000000", (struct http_request){ 0 }); /* from inside curl */
    pump(&f, &f.body_n, 2);
    rounds(&f, 3);
    f.server.fails_left = 1;
    go(&f, "GET", "/fail/500", (struct http_request){ .tries = 2 }); /* between two tries */
    pump(&f, &f.server.hits, 3);
    rounds(&f, 3);
    http_cancel(f.call);
    f.skew_ms += 60000;
    rounds(&f, 3);
    assert_int_equal(f.done_n, 0);
    assert_int_equal(f.body_n, 2);
    end(&f);
}

static void all_may_be_freed_inside_a_callback(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.free_in_body = true;
    go(&f, "GET", "/stall", (struct http_request){ 0 });
    go_stream(&f, "/big/3000000", (struct http_request){ 0 });
    pump(&f, &f.body_n, 1);
    rounds(&f, 3);
    assert_int_equal(f.done_n, 0);
    end(&f);
    begin(&f);
    f.free_in_done = true;
    go(&f, "GET", "/stall", (struct http_request){ 0 });
    go(&f, "GET", "/hello", (struct http_request){ 0 });
    pump(&f, &f.done_n, 1);
    rounds(&f, 3);
    end(&f);
}

static void the_next_call_may_start_inside_done(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.again = "/hello";
    go(&f, "GET", "/nothing", (struct http_request){ 0 });
    pump(&f, &f.done_n, 2);
    assert_int_equal(f.status, 200);
    end(&f);
}

static void a_long_stream_does_not_hold_up_the_next_call(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    go_stream(&f, "/stall", (struct http_request){ 0 });
    get(&f, "/hello");
    assert_int_equal(f.status, 200);
    end(&f);
}

static void many_calls_share_connections(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    for (int i = 0; i < 200; i++)
        go(&f, "GET", "/hello", (struct http_request){ 0 });
    pump(&f, &f.done_n, 200);
    assert_int_equal(f.server.hits, 200);
    assert_true(f.server.open_max <= 64);
    assert_int_equal(f.body.len, 1000);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_ends_in_a_timeout),
        cmocka_unit_test(the_whole_may_have_a_deadline),
        cmocka_unit_test(a_busy_peer_is_tried_again_with_longer_pauses),
        cmocka_unit_test(what_will_not_get_better_is_not_tried_again),
        cmocka_unit_test(the_peer_may_say_whether_to_retry),
        cmocka_unit_test(after_a_429_every_request_to_the_host_waits_as_asked),
        cmocka_unit_test(a_date_tells_when_to_come_back),
        cmocka_unit_test(nonsense_about_waiting_is_not_believed),
        cmocka_unit_test(who_cannot_wait_that_long_is_told_at_once),
        cmocka_unit_test(a_peer_that_hangs_up_is_tried_again),
        cmocka_unit_test(nobody_there_is_a_network_error),
        cmocka_unit_test(an_address_or_header_that_is_wrong_is_refused_at_once),
        cmocka_unit_test(a_cancelled_call_is_never_heard_of_again),
        cmocka_unit_test(all_may_be_freed_inside_a_callback),
        cmocka_unit_test(the_next_call_may_start_inside_done),
        cmocka_unit_test(a_long_stream_does_not_hold_up_the_next_call),
        cmocka_unit_test(many_calls_share_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
