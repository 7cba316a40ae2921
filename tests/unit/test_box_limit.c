/* What the keeper reads off the machine and off processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "box_limit.h"
#include "box_ns.h"
#include "box_watch.h"

static void memory_is_read_by_name(void **state)
{
    (void)state;
    static const char text[] =
        "MemTotal:       24689872 kB\nMemFree:         1 kB\nMemAvailable:   20000000 kB\nHugePages_Total:       0\n";
    assert_int_equal(box_limit_meminfo_bytes(text, "MemTotal"), 24689872LL * 1024);
    assert_int_equal(box_limit_meminfo_bytes(text, "MemAvailable"), 20000000LL * 1024);
    assert_int_equal(box_limit_meminfo_bytes(text, "Mem"), -1);
    assert_int_equal(box_limit_meminfo_bytes(text, "SwapFree"), -1);
    assert_int_equal(box_limit_meminfo_bytes("", "MemTotal"), -1);
    autofree char *real = box_limit_meminfo();
    int64_t total = box_limit_meminfo_bytes(real, "MemTotal");
    assert_true(total > 0);
    assert_in_range(box_limit_meminfo_bytes(real, "MemAvailable"), 1, total);
}

static void what_fails_again_and_again_is_told_once_a_minute(void **state)
{
    (void)state;
    struct box_failures f = { 0 };
    assert_int_equal(box_failures_add(&f, 1000), 1);
    for (int64_t now_ms = 1250; now_ms < 61000; now_ms += 250)
        assert_int_equal(box_failures_add(&f, now_ms), 0);
    assert_int_equal(box_failures_add(&f, 61000), 240);
    assert_int_equal(box_failures_add(&f, 61250), 0);
    assert_int_equal(box_failures_add(&f, 900000), 2);
}

static void no_helper_is_told_once(void **state)
{
    (void)state;
    struct rlimit before;
    char text[4096] = "";
    FILE *log = tmpfile();
    int err = dup(STDERR_FILENO);
    assert_true(log && err >= 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    assert_true(dup2(fileno(log), STDERR_FILENO) >= 0);
    const struct rlimit none = { .rlim_cur = 0, .rlim_max = before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct box_watch *w = NULL;
    int64_t seen = 0;
    for (int i = 0; i < 20; i++)
        seen += box_watch_look(&w, getpid(), 0, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(dup2(err, STDERR_FILENO) >= 0);
    (void)close(err);
    rewind(log);
    size_t n = fread(text, 1, sizeof text - 1, log);
    (void)fclose(log);
    assert_true(!w && seen == 0 && n > 0);
    assert_non_null(strstr(text, "event=box_watch"));
    assert_ptr_equal(strchr(text, '\n'), text + n - 1); /* one line */
}

static void ids_are_there_or_not(void **state)
{
    (void)state;
    static const struct {
        const char *map;
        uint32_t first;
        bool there;
        int64_t zero;
    } rows[] = {
        { "         0          0 4294967295\n", 2000000, true, 0 },     /* the host */
        { "         0       1000          1\n", 2000000, false, 1000 }, /* unshare -Ur of a user's */
        { "         0          0          1\n", 2000000, false, 0 },    /* the same of the host's root */
        { "      1000       1000          1\n", 2000000, false, -1 },
        { "0 100000 65536\n", 1, false, 100000 }, /* one too few */
        { "0 100000 65537\n", 1, true, 100000 },
        { "0 1000 1\n1 100000 65536\n", 1, true, 1000 }, /* rootless containers */
        { "0 1000 1\n1 100000 30000\n30001 500000 40000\n", 1, true, 1000 },
        { "0 1000 1\n1 100000 30000\n30002 500000 40000\n", 1, false, 1000 },
        { "", 2000000, false, -1 },
        { "nonsense\n", 2000000, false, -1 },
        { "0 0 4294967295\n", UINT32_MAX - BOX_UID_RANGE, true, 0 },
    };
    for (size_t i = 0; i < countof(rows); i++) {
        int64_t zero = 7;
        if (box_ids_are_there(rows[i].map, rows[i].first, &zero) != rows[i].there || zero != rows[i].zero)
            fail_msg("%s from %u", rows[i].map, rows[i].first);
    }
}

static void a_process_is_known_by_its_numbers(void **state)
{
    (void)state;
    pid_t self = getpid();
    assert_true(box_start_ticks(self) > 0);
    assert_int_equal(box_start_ticks(-1), 0);
    assert_true(box_limit_is_member(self, self));
    assert_false(box_limit_is_member(self, -1));
    assert_true(box_limit_inner_pid(self) > 0);
    assert_int_equal(box_limit_inner_pid(-1), 0);
    assert_int_equal(box_limit_threads(-1), 0);
    assert_true(box_limit_threads(self) >= 1);
}

/* A child that waits until it is killed. */
static pid_t sleeper(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (;;)
            (void)pause();
    }
    return pid;
}

static void an_end_is_seen_before_it_is_reaped(void **state)
{
    (void)state;
    pid_t pid = sleeper();
    autoclose int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    assert_true(fd >= 0);
    assert_false(box_limit_has_ended(fd));
    box_limit_signal(fd, SIGKILL);
    siginfo_t end;
    assert_int_equal(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT), 0);
    assert_true(box_limit_has_ended(fd));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A box of its own: pid 1 of a namespace holds a file of so many bytes that has no name. Its pid; -1: none can be made here. */
static pid_t box_with_file(size_t bytes)
{
    int pipes[2];
    pid_t pid = -1;
    assert_int_equal(pipe(pipes), 0);
    pid_t maker = fork();
    if (maker == 0) {
        int fd = memfd_create("x", MFD_CLOEXEC);
        if (unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0 || posix_fallocate(fd, 0, (off_t)bytes) != 0 || dup(fd) < 0)
            _exit(1);
        pid = sleeper();
        _exit(pid < 0 || write(pipes[1], &pid, sizeof pid) != (ssize_t)sizeof pid);
    }
    (void)close(pipes[1]);
    if (read(pipes[0], &pid, sizeof pid) != (ssize_t)sizeof pid)
        pid = -1;
    (void)close(pipes[0]);
    (void)waitpid(maker, NULL, 0);
    return pid;
}

static void a_nameless_file_counts_once(void **state)
{
    (void)state;
    enum { BYTES = 64 << 20, REST = 32 << 20, PATIENCE_MS = 20000 };
    struct box_watch *w = NULL;
    pid_t pid = box_with_file(BYTES);
    if (pid < 0)
        skip();
    int64_t first = box_watch_look(&w, pid, 0, PATIENCE_MS), later = box_watch_look(&w, pid, 0, PATIENCE_MS);
    (void)kill(pid, SIGKILL);
    box_watch_free(&w);
    box_watch_free(&w);
    assert_null(w);
    assert_in_range(first, BYTES, BYTES + REST);
    assert_in_range(later, BYTES, BYTES + REST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_read_by_name),
        cmocka_unit_test(what_fails_again_and_again_is_told_once_a_minute),
        cmocka_unit_test(no_helper_is_told_once),
        cmocka_unit_test(ids_are_there_or_not),
        cmocka_unit_test(a_process_is_known_by_its_numbers),
        cmocka_unit_test(an_end_is_seen_before_it_is_reaped),
        cmocka_unit_test(a_nameless_file_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
