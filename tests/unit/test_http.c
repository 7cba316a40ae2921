/* The HTTP client: what is sent, what comes back, ceilings and streams. */
#include "http_fixture.h"

/* ---- answers ---- */

static void an_answer_has_status_body_and_headers(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    get(&f, "/hello");
    assert_int_equal(f.err.kind, ERR_NONE);
    assert_int_equal(f.status, 200);
    assert_int_equal(f.tries, 1);
    assert_string_equal(str_peek(&f.body), "hello");
    assert_string_equal(f.word, "yes");
    end(&f);
}

static void a_refusal_is_an_answer_not_an_error(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    get(&f, "/nothing");
    assert_int_equal(f.err.kind, ERR_NONE);
    assert_int_equal(f.status, 404);
    assert_string_equal(str_peek(&f.body), "no such thing");
    assert_string_equal(f.word, "");
    end(&f);
}

static void a_redirect_is_not_followed(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    get(&f, "/away");
    assert_int_equal(f.status, 302);
    assert_int_equal(f.server.hits, 1);
    end(&f);
}

static void a_post_sends_its_body_and_headers_and_none_of_curls(void **state)
{
    (void)state;
    static const char *const headers[] = { "Content-Type: application/json", "Authorization: Bearer k", NULL };
    struct fixture f;
    begin(&f);
    go(&f, "POST", "/echo", (struct http_request){ .headers = headers, .body = "{\"a\":1}", .body_n = 7 });
    pump(&f, &f.done_n, 1);
    const char *sent = str_peek(&f.body);
    assert_memory_equal(sent, "POST /echo HTTP/1.1\r\n", 21);
    assert_non_null(strstr(sent, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(sent, "\r\nAuthorization: Bearer k\r\n"));
    assert_non_null(strstr(sent, "\r\nUser-Agent: sandbook/"));
    assert_null(strcasestr(sent, "expect"));
    assert_non_null(strstr(sent, "\r\n\r\n{\"a\":1}"));
    end(&f);
}

static void every_method_is_sent_as_it_is_called(void **state)
{
    (void)state;
    static const struct {
        const char *method, *body;
    } cases[] = { { "PUT", "x" }, { "PUT", NULL }, { "POST", NULL }, { "DELETE", NULL }, { "GET", NULL } };
    struct fixture f;
    begin(&f);
    for (size_t i = 0; i < countof(cases); i++) {
        go(&f, cases[i].method, "/echo",
           (struct http_request){ .body = cases[i].body, .body_n = cases[i].body ? 1 : 0 });
        pump(&f, &f.done_n, (int)i + 1);
        size_t n = strlen(cases[i].method);
        assert_memory_equal(f.server.last.buf, cases[i].method, n);
        assert_int_equal(f.server.last.buf[n], ' ');
        assert_null(strcasestr(f.server.last.buf, "content-type"));
    }
    go(&f, "HEAD", "/big/10", (struct http_request){ 0 });
    rounds(&f, 3);
    end(&f);
}

static void a_file_is_sent_from_its_descriptor(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    enum { N = 300000 };
    autoclose int fd = memfd_create("upload", MFD_CLOEXEC);
    autofree char *data = xcalloc(1, N);
    memset(data, 'u', N);
    assert_int_equal(write_all(fd, data, N), 0);
    f.server.fails_left = 1; /* and again from its beginning */
    go(&f, "POST", "/fail/500", (struct http_request){ .upload_fd = fd, .upload_n = N, .tries = 2 });
    f.skew_ms = 0;
    while (!f.done_n) {
        rounds(&f, 1);
        f.skew_ms += 100;
    }
    assert_int_equal(f.err.kind, ERR_NONE);
    assert_int_equal(f.server.hits, 2);
    assert_non_null(strstr(f.server.last.buf, "Content-Length: 300000\r\n"));
    assert_int_equal(f.server.last.buf[f.server.last.len - 1], 'u');
    assert_true(f.server.last.len > N);
    end(&f);
}

static void a_file_that_became_shorter_is_an_error(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    autoclose int fd = memfd_create("upload", MFD_CLOEXEC);
    assert_int_equal(write_all(fd, "short", 5), 0);
    go(&f, "POST", "/echo", (struct http_request){ .upload_fd = fd, .upload_n = 100 });
    pump(&f, &f.done_n, 1);
    assert_int_equal(f.err.kind, ERR_STORE);
    end(&f);
}

/* ---- ceilings and streams ---- */

static void an_answer_over_its_ceiling_is_an_error(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    go(&f, "GET", "/big/100000", (struct http_request){ .max_bytes = 100000 });
    pump(&f, &f.done_n, 1);
    assert_int_equal(f.err.kind, ERR_NONE);
    go(&f, "GET", "/big/100001", (struct http_request){ .max_bytes = 100000 });
    pump(&f, &f.done_n, 2);
    assert_int_equal(f.err.kind, ERR_DATA);
    go_stream(&f, "/big/100001", (struct http_request){ .max_bytes = 100000 });
    pump(&f, &f.done_n, 3);
    assert_int_equal(f.err.kind, ERR_DATA);
    end(&f);
}

static void a_stream_is_handed_on_as_it_comes(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    go_stream(&f, "/stream", (struct http_request){ 0 });
    pump(&f, &f.done_n, 1);
    assert_string_equal(str_peek(&f.body), "onetwo");
    assert_int_equal(f.status, 200);
    assert_true(f.body_n >= 1);
    end(&f);
}

static void a_stream_can_be_stopped_by_its_reader(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.stop = true;
    go_stream(&f, "/big/3000000", (struct http_request){ .tries = 3 });
    pump(&f, &f.done_n, 1);
    assert_int_equal(f.err.kind, ERR_DATA);
    assert_int_equal(f.body_n, 1);
    assert_int_equal(f.server.hits, 1);
    end(&f);
}

static void a_stream_that_was_begun_is_not_tried_again(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    go_stream(&f, "/cut", (struct http_request){ .tries = 3 });
    pump(&f, &f.done_n, 1);
    assert_int_equal(f.err.kind, ERR_NET);
    assert_int_equal(f.tries, 1);
    assert_string_equal(str_peek(&f.body), "begun");
    end(&f);
}

static void a_stream_does_not_hear_the_answers_that_are_tried_again(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.server.fails_left = 1;
    f.server.extra = "Retry-After-Ms: 20\r\n";
    go_stream(&f, "/fail/503", (struct http_request){ .tries = 2 });
    pump(&f, &f.done_n, 1);
    assert_string_equal(str_peek(&f.body), "at last");
    assert_int_equal(f.tries, 2);
    f.server.fails_left = 1;
    str_clear(&f.body);
    go_stream(&f, "/fail/503", (struct http_request){ .tries = 1 });
    pump(&f, &f.done_n, 2);
    assert_string_equal(str_peek(&f.body), "not now");
    assert_int_equal(f.status, 503);
    end(&f);
}

static void a_request_that_must_not_come_twice_does_not_in_a_kept_connection(void **state)
{
    (void)state;
    for (int once = 0; once < 2; once++) {
        struct fixture f;
        begin(&f);
        get(&f, "/hello");
        go(&f, "POST", "/rude", (struct http_request){ .body = "x", .body_n = 1, .at_most_once = once });
        pump(&f, &f.done_n, 2);
        assert_int_equal(f.err.kind, ERR_NET);
        assert_int_equal(f.server.hits, once ? 2 : 3);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_has_status_body_and_headers),
        cmocka_unit_test(a_refusal_is_an_answer_not_an_error),
        cmocka_unit_test(a_redirect_is_not_followed),
        cmocka_unit_test(a_post_sends_its_body_and_headers_and_none_of_curls),
        cmocka_unit_test(every_method_is_sent_as_it_is_called),
        cmocka_unit_test(a_file_is_sent_from_its_descriptor),
        cmocka_unit_test(a_file_that_became_shorter_is_an_error),
        cmocka_unit_test(an_answer_over_its_ceiling_is_an_error),
        cmocka_unit_test(a_stream_is_handed_on_as_it_comes),
        cmocka_unit_test(a_stream_can_be_stopped_by_its_reader),
        cmocka_unit_test(a_stream_that_was_begun_is_not_tried_again),
        cmocka_unit_test(a_request_that_must_not_come_twice_does_not_in_a_kept_connection),
        cmocka_unit_test(a_stream_does_not_hear_the_answers_that_are_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
