#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include "base.h"

static void taking_a_pointer_leaves_null_behind(void **state)
{
    (void)state;
    autofree char *text = xstrdup("mine");
    char *moved = take(text);
    assert_null(text);
    assert_string_equal(moved, "mine");
    free(moved);
}

static int open_and_forget(void)
{
    autoclose int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void an_autoclose_fd_is_closed_at_the_end_of_its_scope(void **state)
{
    (void)state;
    int fd = open_and_forget();
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(errno, EBADF);
    autoclose int none = -1;
    assert_int_equal(none, -1);
}

static void allocation_of_nothing_still_gives_memory(void **state)
{
    (void)state;
    autofree char *none = xcalloc(0, 8);
    autofree char *zero_sized = xcalloc(8, 0);
    assert_non_null(none);
    assert_non_null(zero_sized);
}

static void xgrow_keeps_what_was_there_and_zeroes_the_rest(void **state)
{
    (void)state;
    size_t cap = 0;
    autofree int *a = xgrow(NULL, &cap, 0, sizeof(*a));
    assert_non_null(a);
    assert_true(cap > 0);
    for (size_t n = 1; n < 1000; n++) {
        a = xgrow(a, &cap, n, sizeof(*a));
        assert_int_equal(a[n - 1], 0);
        a[n - 1] = (int)n;
    }
    for (size_t i = 0; i < 999; i++)
        assert_int_equal(a[i], i + 1);
}

static void xgrow_doubles_so_that_appending_is_linear(void **state)
{
    (void)state;
    size_t cap = 0, changes = 0;
    autofree char *a = NULL;
    for (size_t n = 1; n <= 100000; n++) {
        size_t before = cap;
        a = xgrow(a, &cap, n, 1);
        changes += cap != before;
    }
    assert_in_range(changes, 1, 20);
}

static void strings_are_copied_and_formatted(void **state)
{
    (void)state;
    autofree char *some = xstrndup("sandbook", 4);
    autofree char *made = xasprintf("%s-%d", some, 7);
    assert_string_equal(some, "sand");
    assert_string_equal(made, "sand-7");
}

/* What happens in a child that dies: the signal, or 0. */
static int signal_of(void (*run)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        run();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void grow_past_memory(void)
{
    size_t cap = 0;
    size_t too_many = SIZE_MAX / 4;
    free(xgrow(NULL, &cap, too_many, 16));
}

static void an_impossible_allocation_aborts(void **state)
{
    (void)state;
    assert_int_equal(signal_of(grow_past_memory), SIGABRT);
}

enum { MUCH = 300000 }; /* more than a pipe holds */

static void read_slowly(int fd, size_t n)
{
    char chunk[4096];
    size_t sum = 0;
    for (ssize_t got; (got = read(fd, chunk, sizeof(chunk))) > 0; sum += (size_t)got)
        for (ssize_t i = 0; i < got; i++)
            if (chunk[i] != (char)((sum + (size_t)i) % 251))
                _exit(1);
    _exit(sum == n ? 0 : 2);
}

static void write_all_outlasts_a_full_pipe(bool nonblocking)
{
    int p[2];
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    if (nonblocking)
        assert_int_equal(fcntl(p[1], F_SETFL, O_NONBLOCK), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(p[1]);
        read_slowly(p[0], MUCH);
    }
    autofree char *data = xcalloc(MUCH, 1);
    for (size_t i = 0; i < MUCH; i++)
        data[i] = (char)(i % 251);
    assert_int_equal(write_all(p[1], data, MUCH), 0);
    (void)close(p[1]);
    (void)close(p[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void write_all_writes_more_than_a_pipe_holds(void **state)
{
    (void)state;
    write_all_outlasts_a_full_pipe(false);
    write_all_outlasts_a_full_pipe(true);
}

static void write_all_reports_a_bad_fd(void **state)
{
    (void)state;
    assert_int_equal(write_all(-1, "x", 1), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(write_all(-1, "", 0), 0);
}

static void clocks_tell_milliseconds(void **state)
{
    (void)state;
    int64_t first = time_mono_ms();
    assert_true(time_unix_ms() > INT64_C(1600000000000)); /* 2020 */
    assert_true(time_unix_ms() < INT64_C(100000000000000));
    assert_true(time_mono_ms() >= first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taking_a_pointer_leaves_null_behind),
        cmocka_unit_test(an_autoclose_fd_is_closed_at_the_end_of_its_scope),
        cmocka_unit_test(allocation_of_nothing_still_gives_memory),
        cmocka_unit_test(xgrow_keeps_what_was_there_and_zeroes_the_rest),
        cmocka_unit_test(xgrow_doubles_so_that_appending_is_linear),
        cmocka_unit_test(strings_are_copied_and_formatted),
        cmocka_unit_test(an_impossible_allocation_aborts),
        cmocka_unit_test(write_all_writes_more_than_a_pipe_holds),
        cmocka_unit_test(write_all_reports_a_bad_fd),
        cmocka_unit_test(clocks_tell_milliseconds),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
