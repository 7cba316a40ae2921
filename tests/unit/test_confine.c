/* What a program of ours gives up, tried by children that have. */
#include "confine.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <cmocka.h>

static int status_of(int (*what)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(what());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static bool is_refused(long nr)
{
    errno = 0;
    return syscall(nr, 0, 0, 0, 0, 0, 0) < 0 && errno == EPERM;
}

static int refused(void)
{
    static const long calls[] = { SYS_ptrace,
                                  SYS_process_vm_writev,
                                  SYS_bpf,
                                  SYS_perf_event_open,
                                  SYS_userfaultfd,
                                  SYS_init_module,
                                  SYS_kexec_load,
                                  SYS_reboot,
                                  SYS_keyctl,
                                  SYS_open_by_handle_at,
                                  SYS_settimeofday,
                                  425,
                                  426,
                                  427,
                                  438 };
    struct err e;
    if (confine_self(&e) < 0)
        return 100;
    for (size_t i = 0; i < countof(calls); i++)
        if (!is_refused(calls[i]))
            return (int)i + 1;
    return 0;
}

static int family(int kind)
{
    errno = 0;
    int fd = socket(kind, SOCK_DGRAM, 0);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0)
        (void)close(fd);
    return error;
}

static int sockets(void)
{
    struct err e;
    if (confine_self(&e) < 0)
        return 100;
    for (int kind = 0; kind < 48; kind++) {
        const bool known = kind == AF_UNIX || kind == AF_INET || kind == AF_INET6 || kind == AF_NETLINK;
        const int error = family(kind);
        if (known ? error == EPERM || (kind == AF_UNIX && error != 0) : error != EAFNOSUPPORT)
            return kind + 1;
    }
    return syscall(SYS_socket, (1ULL << 32) | AF_UNIX, SOCK_DGRAM, 0) < 0
               ? 101
               : 0; /* the kernel looks at the low half only */
}

static int goes_on(void)
{
    struct err e;
    if (confine_self(&e) < 0 || confine_self(&e) < 0)
        return 100;
    pid_t pid = fork();
    if (pid == 0)
        (void)execl("/bin/true", "true", (char *)NULL);
    int status = 1;
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}

static int another_abi(void)
{
    struct err e;
    if (confine_self(&e) == 0)
        (void)syscall(SYS_getpid | 0x40000000);
    return 0;
}

static void assert_good(int (*what)(void))
{
    const int status = status_of(what);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void what_an_intruder_wants_first_is_refused(void **state)
{
    (void)state;
    assert_good(refused);
}

static void sockets_are_local_ip_or_netlink(void **state)
{
    (void)state;
    assert_good(sockets);
}

static void everything_else_goes_on_twice_confined_too(void **state)
{
    (void)state;
    assert_good(goes_on);
}

static void numbers_of_other_abis_are_deadly(void **state)
{
    (void)state;
    const int status = status_of(another_abi);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_intruder_wants_first_is_refused),
        cmocka_unit_test(sockets_are_local_ip_or_netlink),
        cmocka_unit_test(everything_else_goes_on_twice_confined_too),
        cmocka_unit_test(numbers_of_other_abis_are_deadly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
