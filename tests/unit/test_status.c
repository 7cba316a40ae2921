/* Asked over a real socket on the loop, by a client that blocks only after the loop has answered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "log.h"
#include "loop.h"
#include "metric.h"
#include "status/status.h"
#include "str.h"

static struct {
    struct loop *l;
    struct status *s;
    const char *why;
    int measured;
} w;

static void measure(void *ud)
{
    (void)ud;
    metric_set(METRIC_SESSIONS, NULL, ++w.measured);
}

static const char *unready(void *ud)
{
    (void)ud;
    return w.why;
}

static int begin(void **state)
{
    const struct status_parts parts = { .listen = "127.0.0.1:0", .measure = measure, .unready = unready };
    struct err e = { 0 };
    (void)state;
    metric_forget();
    log_set_level(LOG_ERROR);
    w.why = NULL;
    w.measured = 0;
    return loop_new(&w.l, NULL, NULL, &e) < 0 || status_open(&w.s, w.l, &parts, &e) < 0 ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    status_close(w.s);
    loop_free(w.l);
    return 0;
}

/* The whole answer; the server closes the connection behind it. Caller frees. */
static char *ask(const char *method, const char *path)
{
    const struct sockaddr_in to = { .sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)status_port(w.s)),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    autofree char *text = xasprintf("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", method, path);
    struct str got = STR_INIT(1 << 20);
    struct err e = { 0 };
    char some[4096];
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(write_all(fd, text, strlen(text)), 0);
    for (ssize_t n = -1; n != 0;) {
        assert_int_equal(loop_once(w.l, 10, &e), 0);
        n = recv(fd, some, sizeof(some), MSG_DONTWAIT);
        if (n > 0)
            str_add(&got, some, (size_t)n);
    }
    return str_take(&got);
}

static void assert_answer(const char *method, const char *path, const char *status, const char *body)
{
    autofree char *got = ask(method, path);
    if (!strstr(got, status) || !strstr(got, body))
        fail_msg("%s %s: %s", method, path, got);
}

static void health_says_whether_it_is_ready(void **state)
{
    (void)state;
    assert_answer("GET", "/health", "HTTP/1.1 200", "{\"live\":true,\"ready\":true}");
    w.why = "starting";
    assert_answer("GET", "/health", "HTTP/1.1 503", "\"ready\":false,\"why\":\"starting\"}");
    assert_answer("GET", "/health/ready", "HTTP/1.1 503", "starting");
    assert_answer("GET", "/health/live", "HTTP/1.1 200", "{\"live\":true}");
}

static void metrics_are_measured_when_somebody_looks(void **state)
{
    (void)state;
    metric_count(METRIC_TURNS, "answered", 2);
    assert_answer("GET", "/metrics", "text/plain; version=0.0.4", "\nsandbook_sessions 1\n");
    assert_answer("GET", "/metrics", "HTTP/1.1 200", "sandbook_turns_total{status=\"answered\"} 2");
    autofree char *got = ask("GET", "/metrics");
    assert_non_null(strstr(got, "\nsandbook_sessions 3\n"));
    assert_null(strstr(got, "process_resident_memory_bytes 0\n"));
    assert_null(strstr(got, "process_open_fds 0\n"));
}

static void everything_else_is_refused(void **state)
{
    (void)state;
    assert_answer("GET", "/", "HTTP/1.1 404", "there are");
    assert_answer("GET", "/metrics/../../etc/passwd", "HTTP/1.1 404", "there are");
    assert_answer("POST", "/metrics", "HTTP/1.1 405", "GET only");
    assert_answer("DELETE", "/health", "HTTP/1.1 405", "GET only");
    autofree char *head = ask("HEAD", "/health");
    assert_non_null(strstr(head, "HTTP/1.1 200"));
    assert_null(strstr(head, "live"));
}

static void an_address_that_is_taken_is_said(void **state)
{
    struct err e = { 0 };
    struct status *second = NULL;
    autofree char *listen_at = xasprintf("127.0.0.1:%d", status_port(w.s));
    const struct status_parts parts = { .listen = listen_at, .measure = measure, .unready = unready };
    (void)state;
    assert_int_equal(status_open(&second, w.l, &parts, &e), -1);
    assert_int_equal(e.kind, ERR_CONFIG);
    assert_non_null(strstr(e.msg, "status.listen"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(health_says_whether_it_is_ready, begin, end),
        cmocka_unit_test_setup_teardown(metrics_are_measured_when_somebody_looks, begin, end),
        cmocka_unit_test_setup_teardown(everything_else_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(an_address_that_is_taken_is_said, begin, end),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
