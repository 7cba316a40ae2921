/* What the keeper reads off the machine and off processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "box_limit.h"
#include "box_ns.h"

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
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_read_by_name),
        cmocka_unit_test(ids_are_there_or_not),
        cmocka_unit_test(a_process_is_known_by_its_numbers),
        cmocka_unit_test(an_end_is_seen_before_it_is_reaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
