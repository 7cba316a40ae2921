/* The event loop, on a clock of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "loop.h"

static int64_t clock_ms;

static int64_t fake_clock(void *ud)
{
    (void)ud;
    return clock_ms;
}

static struct loop *make(void)
{
    struct loop *l = NULL;
    struct err e = { 0 };
    clock_ms = 1000;
    assert_int_equal(loop_new(&l, fake_clock, NULL, &e), 0);
    return l;
}

static void once(struct loop *l)
{
    struct err e = { 0 };
    assert_int_equal(loop_once(l, 0, &e), 0);
}

/* What callbacks did, in order, a letter each. */
static char trace[256];
static size_t trace_n;

static void mark(char c)
{
    assert_true(trace_n + 1 < sizeof trace);
    trace[trace_n++] = c;
    trace[trace_n] = '\0';
}

static void trace_clear(void)
{
    trace_n = 0;
    trace[0] = '\0';
}

static void on_letter(void *ud)
{
    mark(*(const char *)ud);
}

static char letter[26] = "abcdefghijklmnopqrstuvwxyz";

/* ---- timers ---- */

static void timers_fire_in_order_of_time_and_then_of_setting(void **state)
{
    (void)state;
    struct loop *l = make();
    trace_clear();
    (void)loop_after(l, 20, on_letter, &letter[2]);
    (void)loop_after(l, 10, on_letter, &letter[0]);
    (void)loop_after(l, 20, on_letter, &letter[3]);
    (void)loop_after(l, 10, on_letter, &letter[1]);
    once(l);
    assert_string_equal(trace, "");
    clock_ms += 10;
    once(l);
    assert_string_equal(trace, "ab");
    clock_ms += 50;
    once(l);
    assert_string_equal(trace, "abcd");
    loop_free(l);
}

static struct loop *cancel_loop;
static loop_timer cancel_id;

static void on_cancel_other(void *ud)
{
    (void)ud;
    mark('X');
    loop_cancel(cancel_loop, cancel_id);
}

static void a_timer_can_cancel_the_one_that_is_due_next(void **state)
{
    (void)state;
    struct loop *l = cancel_loop = make();
    trace_clear();
    (void)loop_after(l, 5, on_cancel_other, NULL);
    cancel_id = loop_after(l, 5, on_letter, &letter[0]);
    (void)loop_after(l, 5, on_letter, &letter[1]);
    clock_ms += 5;
    once(l);
    assert_string_equal(trace, "Xb");
    loop_cancel(l, cancel_id); /* again: nothing */
    loop_cancel(l, 0);
    loop_free(l);
}

static void a_fired_id_does_not_cancel_the_timer_that_reuses_its_place(void **state)
{
    (void)state;
    struct loop *l = make();
    trace_clear();
    loop_timer old = loop_after(l, 0, on_letter, &letter[0]);
    once(l);
    loop_timer fresh = loop_after(l, 0, on_letter, &letter[1]);
    assert_int_not_equal(old, fresh);
    loop_cancel(l, old);
    once(l);
    assert_string_equal(trace, "ab");
    loop_free(l);
}

enum { MANY = 500 };
static int64_t fired_at[MANY];
static size_t fired_n;
static struct due {
    int64_t due;
    loop_timer id;
    bool gone;
} due[MANY];

static void on_many(void *ud)
{
    const struct due *d = ud;
    assert_false(d->gone);
    assert_true(d->due <= clock_ms);
    fired_at[fired_n++] = d->due;
}

static void many_timers_fire_sorted_and_cancelled_ones_never(void **state)
{
    (void)state;
    struct loop *l = make();
    uint32_t x = 12345;
    size_t gone = 0;
    fired_n = 0;
    for (size_t i = 0; i < MANY; i++) {
        x = x * 1664525u + 1013904223u;
        int64_t ms = (int64_t)(x >> 16) % 1000;
        due[i] = (struct due){ .due = clock_ms + ms };
        due[i].id = loop_after(l, ms, on_many, &due[i]);
    }
    for (size_t i = 0; i < MANY; i += 3) {
        due[i].gone = true;
        loop_cancel(l, due[i].id);
        gone++;
    }
    clock_ms += 1000;
    once(l);
    assert_int_equal(fired_n, MANY - gone);
    for (size_t i = 1; i < fired_n; i++)
        assert_true(fired_at[i - 1] <= fired_at[i]);
    loop_free(l);
}

/* ---- descriptors ---- */

struct pair {
    struct loop *l;
    int r[2], w[2];
    int seen[2];
};

static void pair_open(struct pair *p, struct loop *l)
{
    *p = (struct pair){ .l = l };
    for (int i = 0; i < 2; i++) {
        int fd[2];
        assert_int_equal(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
        p->r[i] = fd[0];
        p->w[i] = fd[1];
        assert_int_equal(write(p->w[i], "x", 1), 1);
    }
}

static void pair_close(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        loop_io_stop(p->l, p->r[i]);
        assert_int_equal(close(p->r[i]), 0);
        assert_int_equal(close(p->w[i]), 0);
    }
}

static void on_stop_the_other(void *ud, int fd, uint32_t events)
{
    (void)events;
    struct pair *p = ud;
    int me = fd == p->r[1];
    p->seen[me]++;
    loop_io_stop(p->l, p->r[!me]);
}

static void a_source_stopped_in_the_same_batch_is_not_called(void **state)
{
    (void)state;
    struct loop *l = make();
    struct pair p;
    pair_open(&p, l);
    loop_io(l, p.r[0], EPOLLIN, on_stop_the_other, &p);
    loop_io(l, p.r[1], EPOLLIN, on_stop_the_other, &p);
    once(l);
    assert_int_equal(p.seen[0] + p.seen[1], 1);
    pair_close(&p);
    loop_free(l);
}

static void on_never(void *ud, int fd, uint32_t events)
{
    (void)ud;
    (void)fd;
    (void)events;
    fail();
}

/* The other source's number goes to a new, silent pipe; the event already fetched must not reach its callback. */
static void on_swap_the_other(void *ud, int fd, uint32_t events)
{
    (void)events;
    struct pair *p = ud;
    int me = fd == p->r[1], silent[2];
    p->seen[me]++;
    loop_io_stop(p->l, fd);
    loop_io_stop(p->l, p->r[!me]);
    assert_int_equal(pipe2(silent, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(dup3(silent[0], p->r[!me], O_CLOEXEC), p->r[!me]);
    assert_int_equal(close(silent[0]), 0);
    assert_int_equal(close(p->w[!me]), 0);
    p->w[!me] = silent[1];
    loop_io(p->l, p->r[!me], EPOLLIN, on_never, NULL);
}

static void a_reused_number_does_not_get_the_event_of_its_earlier_owner(void **state)
{
    (void)state;
    struct loop *l = make();
    struct pair p;
    pair_open(&p, l);
    loop_io(l, p.r[0], EPOLLIN, on_swap_the_other, &p);
    loop_io(l, p.r[1], EPOLLIN, on_swap_the_other, &p);
    once(l);
    once(l);
    assert_int_equal(p.seen[0] + p.seen[1], 1);
    pair_close(&p);
    loop_free(l);
}

static void on_count(void *ud, int fd, uint32_t events)
{
    (void)fd;
    (void)events;
    ++*(int *)ud;
}

static void a_number_that_was_swapped_in_silence_is_watched_again(void **state)
{
    (void)state;
    struct loop *l = make();
    struct pair p;
    int n = 0;
    pair_open(&p, l);
    loop_io(l, p.r[0], EPOLLIN, on_never, NULL);
    assert_int_equal(dup3(p.r[1], p.r[0], O_CLOEXEC), p.r[0]); /* closes the old one: epoll forgets it */
    loop_io(l, p.r[0], EPOLLIN, on_count, &n);
    once(l);
    assert_int_equal(n, 1);
    pair_close(&p);
    loop_free(l);
}

static void interest_can_be_changed_and_hang_up_always_comes(void **state)
{
    (void)state;
    struct loop *l = make();
    struct pair p;
    int n = 0;
    pair_open(&p, l);
    loop_io(l, p.r[0], 0, on_count, &n);
    once(l);
    assert_int_equal(n, 0);
    loop_io(l, p.r[0], EPOLLIN, on_count, &n);
    once(l);
    assert_int_equal(n, 1);
    loop_io(l, p.r[0], 0, on_count, &n);
    assert_int_equal(close(p.w[0]), 0);
    p.w[0] = open("/dev/null", O_WRONLY | O_CLOEXEC);
    once(l);
    assert_int_equal(n, 2);
    pair_close(&p);
    loop_free(l);
}

static void on_read_all(void *ud, int fd, uint32_t events)
{
    (void)events;
    struct loop *l = ud;
    char b[8];
    ssize_t n = read(fd, b, sizeof b);
    assert_true(n >= 0);
    for (ssize_t i = 0; i < n; i++)
        mark(b[i]);
    if (n == 0)
        loop_io_stop(l, fd);
}

static void a_regular_file_is_always_ready(void **state)
{
    (void)state;
    struct loop *l = make();
    struct err e = { 0 };
    char name[] = "/tmp/test_loop.XXXXXX";
    autoclose int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(write_all(fd, "hello regular", 13), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    trace_clear();
    loop_io(l, fd, EPOLLIN, on_read_all, l);
    assert_int_equal(loop_run(l, &e), 0);
    assert_string_equal(trace, "hello regular");
    loop_free(l);
}

struct again {
    struct loop *l;
    int n;
};

static void on_again(void *ud)
{
    struct again *a = ud;
    if (++a->n < 1000)
        (void)loop_after(a->l, 0, on_again, a);
}

static void a_timer_that_rearms_itself_with_0_ms_does_not_starve_descriptors(void **state)
{
    (void)state;
    struct loop *l = make();
    struct pair p;
    struct again a = { .l = l };
    int n = 0;
    pair_open(&p, l);
    (void)loop_after(l, 0, on_again, &a);
    loop_io(l, p.r[0], EPOLLIN, on_count, &n);
    for (int i = 0; i < 3; i++)
        once(l);
    assert_int_equal(n, 3);
    assert_int_equal(a.n, 3);
    while (a.n < 1000)
        once(l);
    pair_close(&p);
    loop_free(l);
}

/* ---- deferred calls ---- */

static void on_defers(void *ud)
{
    struct loop *l = ud;
    loop_defer(l, on_letter, &letter[0]);
    loop_defer(l, on_letter, &letter[1]);
    loop_defer(l, on_letter, &letter[2]);
    loop_defer_cancel(l, on_letter, &letter[1]);
    mark('.');
}

static void deferred_calls_run_once_the_callback_returned(void **state)
{
    (void)state;
    struct loop *l = make();
    trace_clear();
    (void)loop_after(l, 0, on_defers, l);
    (void)loop_after(l, 0, on_letter, &letter[25]);
    once(l);
    assert_string_equal(trace, ".acz");
    loop_defer_cancel(l, on_letter, &letter[0]);
    loop_free(l);
}

static void on_defer_again(void *ud)
{
    struct again *a = ud;
    a->n++;
    loop_defer(a->l, on_defer_again, a);
}

static void a_call_that_defers_itself_again_does_not_hang_the_round(void **state)
{
    (void)state;
    struct loop *l = make();
    struct again a = { .l = l };
    loop_defer(l, on_defer_again, &a);
    once(l);
    once(l);
    assert_int_equal(a.n, 2);
    loop_defer_cancel(l, on_defer_again, &a);
    once(l);
    assert_int_equal(a.n, 2);
    loop_free(l);
}

/* ---- the end ---- */

static void on_stop(void *ud)
{
    mark('S');
    loop_stop(ud);
}

static void run_ends_when_told_and_leaves_the_rest_for_later(void **state)
{
    (void)state;
    struct loop *l = make();
    struct err e = { 0 };
    trace_clear();
    (void)loop_after(l, 0, on_stop, l);
    (void)loop_after(l, 0, on_letter, &letter[0]);
    assert_int_equal(loop_run(l, &e), 0);
    assert_string_equal(trace, "S");
    assert_int_equal(loop_run(l, &e), 0);
    assert_string_equal(trace, "Sa");
    loop_free(l);
}

static void on_signo(void *ud, int signo)
{
    *(int *)ud = signo;
}

static void signals_arrive_and_do_not_keep_the_loop_alive(void **state)
{
    (void)state;
    struct loop *l = make();
    struct err e = { 0 };
    int usr1 = 0, usr2 = 0;
    assert_int_equal(loop_signal(l, SIGUSR1, on_signo, &usr1, &e), 0);
    assert_int_equal(loop_signal(l, SIGUSR2, on_signo, &usr2, &e), 0);
    assert_int_equal(loop_run(l, &e), 0);
    assert_int_equal(raise(SIGUSR2), 0);
    once(l);
    assert_int_equal(usr2, SIGUSR2);
    assert_int_equal(usr1, 0);
    loop_signal_stop(l, SIGUSR2);
    assert_int_equal(raise(SIGUSR1), 0);
    once(l);
    assert_int_equal(usr1, SIGUSR1);
    loop_signal_stop(l, SIGUSR1);
    loop_signal_stop(l, SIGUSR1);
    loop_free(l);
}

/* ---- children ---- */

struct ended {
    pid_t pid;
    int status;
    int n;
};

static void on_ended(void *ud, pid_t pid, int status)
{
    struct ended *x = ud;
    *x = (struct ended){ pid, status, x->n + 1 };
}

static pid_t child(int code, int sig)
{
    pid_t pid = fork();
    if (pid == 0) {
        if (sig)
            (void)raise(sig);
        _exit(code);
    }
    assert_true(pid > 0);
    return pid;
}

static void children_are_reaped_with_their_status(void **state)
{
    (void)state;
    struct loop *l = make();
    struct err e = { 0 };
    struct ended a = { 0 }, b = { 0 };
    pid_t pa = child(7, 0), pb = child(0, SIGKILL);
    assert_int_equal(loop_child(l, pa, on_ended, &a, &e), 0);
    assert_int_equal(loop_child(l, pb, on_ended, &b, &e), 0);
    assert_int_equal(loop_run(l, &e), 0);
    assert_int_equal(a.pid, pa);
    assert_true(WIFEXITED(a.status) && WEXITSTATUS(a.status) == 7);
    assert_true(WIFSIGNALED(b.status) && WTERMSIG(b.status) == SIGKILL);
    assert_int_equal(a.n + b.n, 2);
    assert_int_equal(waitpid(pa, NULL, 0), -1);
    loop_free(l);
}

static void a_stopped_child_is_reaped_without_a_callback(void **state)
{
    (void)state;
    struct loop *l = make();
    struct err e = { 0 };
    struct ended a = { 0 };
    pid_t pa = child(0, 0);
    assert_int_equal(loop_child(l, pa, on_ended, &a, &e), 0);
    loop_child_stop(l, pa);
    loop_child_stop(l, pa);
    siginfo_t si;
    assert_int_equal(waitid(P_PID, (id_t)pa, &si, WEXITED | WNOWAIT), 0);
    once(l);
    assert_int_equal(waitpid(pa, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(a.n, 0);
    loop_free(l);
}

static void no_such_child_is_an_error(void **state)
{
    (void)state;
    struct loop *l = make();
    struct err e = { 0 };
    pid_t pid = child(0, 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(loop_child(l, pid, on_ended, NULL, &e), -1);
    assert_int_equal(e.kind, ERR_SANDBOX);
    loop_free(l);
}

/* ---- lag ---- */

static void on_busy(void *ud)
{
    (void)ud;
    int64_t until = time_mono_ms() + 3;
    while (time_mono_ms() < until)
        continue;
}

static void lag_is_the_longest_callback_since_last_asked(void **state)
{
    (void)state;
    struct loop *l = make();
    (void)loop_after(l, 0, on_busy, NULL);
    once(l);
    assert_true(loop_lag_us(l) >= 2000);
    assert_int_equal(loop_lag_us(l), 0);
    loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_in_order_of_time_and_then_of_setting),
        cmocka_unit_test(a_timer_can_cancel_the_one_that_is_due_next),
        cmocka_unit_test(a_fired_id_does_not_cancel_the_timer_that_reuses_its_place),
        cmocka_unit_test(many_timers_fire_sorted_and_cancelled_ones_never),
        cmocka_unit_test(a_source_stopped_in_the_same_batch_is_not_called),
        cmocka_unit_test(a_reused_number_does_not_get_the_event_of_its_earlier_owner),
        cmocka_unit_test(a_number_that_was_swapped_in_silence_is_watched_again),
        cmocka_unit_test(interest_can_be_changed_and_hang_up_always_comes),
        cmocka_unit_test(a_regular_file_is_always_ready),
        cmocka_unit_test(a_timer_that_rearms_itself_with_0_ms_does_not_starve_descriptors),
        cmocka_unit_test(deferred_calls_run_once_the_callback_returned),
        cmocka_unit_test(a_call_that_defers_itself_again_does_not_hang_the_round),
        cmocka_unit_test(run_ends_when_told_and_leaves_the_rest_for_later),
        cmocka_unit_test(signals_arrive_and_do_not_keep_the_loop_alive),
        cmocka_unit_test(children_are_reaped_with_their_status),
        cmocka_unit_test(a_stopped_child_is_reaped_without_a_callback),
        cmocka_unit_test(no_such_child_is_an_error),
        cmocka_unit_test(lag_is_the_longest_callback_since_last_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
