/* What systemd hears, on a clock of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "log.h"
#include "loop.h"
#include "notify.h"

struct world {
    int64_t now_ms;
    struct loop *l;
    int fd; /* systemd's */
    char path[64];
};

static int64_t clock_of(void *ud)
{
    return ((const struct world *)ud)->now_ms;
}

/* name: of an abstract socket, or NULL: a file. */
static void begin(struct world *w, const char *name)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    struct err e = { 0 };
    *w = (struct world){ .now_ms = 1000 };
    log_set_level(LOG_ERROR);
    assert_int_equal(loop_new(&w->l, clock_of, w, &e), 0);
    (void)snprintf(w->path, sizeof(w->path), "%s", name ? name : "/tmp/test-notify-XXXXXX");
    if (!name)
        assert_int_equal(close(mkstemp(w->path)) | unlink(w->path), 0);
    (void)snprintf(to.sun_path, sizeof(to.sun_path), "%s", w->path);
    if (name)
        to.sun_path[0] = '\0';
    w->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(w->path) + !name);
    assert_int_equal(bind(w->fd, (struct sockaddr *)&to, n), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", w->path, 1), 0);
}

static void end(struct world *w, struct notify *n)
{
    notify_close(n);
    loop_free(w->l);
    (void)close(w->fd);
    (void)unlink(w->path);
}

static void assert_heard(const struct world *w, const char *text)
{
    char got[256] = "";
    const ssize_t n = recv(w->fd, got, sizeof(got) - 1, 0);
    assert_string_equal(n < 0 ? "(nothing)" : got, text);
}

static void pass(struct world *w, int64_t ms)
{
    struct err e = { 0 };
    w->now_ms += ms;
    assert_int_equal(loop_once(w->l, 0, &e), 0);
}

static void a_service_says_that_it_is_ready_and_that_it_ends(void **state)
{
    static const char *const names[] = { NULL, "@sandbook-test-notify" };
    (void)state;
    for (size_t i = 0; i < countof(names); i++) {
        struct world w;
        begin(&w, names[i]);
        struct notify *n = notify_open(w.l);
        assert_null(getenv("NOTIFY_SOCKET"));
        assert_heard(&w, "(nothing)");
        notify_ready(n, "answering");
        assert_heard(&w, "READY=1\nSTATUS=answering");
        pass(&w, 600000);
        assert_heard(&w, "(nothing)"); /* no watchdog was asked for */
        notify_stopping(n, "ends");
        assert_heard(&w, "STOPPING=1\nSTATUS=ends");
        end(&w, n);
    }
}

static void the_loop_feeds_the_watchdog_twice_in_its_time(void **state)
{
    struct world w;
    (void)state;
    begin(&w, NULL);
    assert_int_equal(setenv("WATCHDOG_USEC", "60000000", 1), 0);
    struct notify *n = notify_open(w.l);
    pass(&w, 100000);
    assert_heard(&w, "(nothing)"); /* not before it is ready */
    notify_ready(n, "answering");
    assert_heard(&w, "READY=1\nSTATUS=answering");
    assert_heard(&w, "WATCHDOG=1");
    for (int i = 0; i < 3; i++) {
        pass(&w, 29000);
        assert_heard(&w, "(nothing)");
        pass(&w, 1000);
        assert_heard(&w, "WATCHDOG=1");
    }
    end(&w, n);
}

static void a_watchdog_of_another_process_is_not_ours(void **state)
{
    struct world w;
    (void)state;
    begin(&w, NULL);
    assert_int_equal(setenv("WATCHDOG_USEC", "60000000", 1) | setenv("WATCHDOG_PID", "1", 1), 0);
    struct notify *n = notify_open(w.l);
    notify_ready(n, "answering");
    assert_heard(&w, "READY=1\nSTATUS=answering");
    pass(&w, 60000);
    assert_heard(&w, "(nothing)");
    end(&w, n);
}

static void without_somebody_who_listens_nothing_happens(void **state)
{
    static const char too_long[] = "/tmp/a-path-that-is-longer-than-what-an-address-of-a-socket-has-room-for-which-"
                                   "is-108-bytes-with-the-nul-at-its-end";
    static const char *const paths[] = { "", "relative", "/", "/tmp/no/such/socket", too_long };
    struct world w;
    (void)state;
    for (size_t i = 0; i < countof(paths); i++) {
        begin(&w, NULL);
        assert_int_equal(setenv("NOTIFY_SOCKET", paths[i], 1), 0);
        struct notify *n = notify_open(w.l);
        notify_ready(n, "answering");
        notify_stopping(n, "ends");
        end(&w, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_says_that_it_is_ready_and_that_it_ends),
        cmocka_unit_test(the_loop_feeds_the_watchdog_twice_in_its_time),
        cmocka_unit_test(a_watchdog_of_another_process_is_not_ours),
        cmocka_unit_test(without_somebody_who_listens_nothing_happens),
    };
    return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
