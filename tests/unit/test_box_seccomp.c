/* The seccomp program, run by an evaluator of our own over the calls that matter: the policy as a table of expectations. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "box_seccomp.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif
#define ALLOW   SECCOMP_RET_ALLOW
#define KILL    SECCOMP_RET_KILL_PROCESS
#define NO(e)   (SECCOMP_RET_ERRNO | (e))
#define HIGH(x) ((uint64_t)(x) | 1ULL << 32)

static struct str program = STR_INIT(64 << 10);

static uint32_t jump_taken(const struct sock_filter *f, uint32_t a)
{
    switch (BPF_OP(f->code)) {
    case BPF_JA: return f->k;
    case BPF_JEQ: return a == f->k ? f->jt : f->jf;
    case BPF_JGT: return a > f->k ? f->jt : f->jf;
    case BPF_JGE: return a >= f->k ? f->jt : f->jf;
    case BPF_JSET: return a & f->k ? f->jt : f->jf;
    default: fail_msg("jump %x", f->code);
    }
    return 0;
}

/* Classic BPF as seccomp has it: loads of the data, constants, and jumps forward. */
static uint32_t run(const struct seccomp_data *d)
{
    const struct sock_filter *code = (const struct sock_filter *)(const void *)program.buf;
    uint32_t a = 0, n = (uint32_t)(program.len / sizeof *code);
    for (uint32_t pc = 0; pc < n; pc++) {
        const struct sock_filter *f = &code[pc];
        switch (BPF_CLASS(f->code)) {
        case BPF_LD:
            assert_int_equal(f->code, BPF_LD | BPF_W | BPF_ABS);
            assert_true(f->k + 4 <= sizeof *d);
            memcpy(&a, (const char *)d + f->k, 4);
            break;
        case BPF_ALU:
            assert_int_equal(f->code, BPF_ALU | BPF_AND | BPF_K);
            a &= f->k;
            break;
        case BPF_JMP: pc += jump_taken(f, a); break;
        case BPF_RET: return f->k;
        default: fail_msg("instruction %x", f->code);
        }
    }
    fail_msg("the program ran off its end");
    return 0;
}

static uint32_t answer(long nr, uint64_t a0, uint64_t a1)
{
    const struct seccomp_data d = { .nr = (int)nr, .arch = ARCH, .args = { a0, a1 } };
    return run(&d);
}

struct expectation {
    long nr;
    uint64_t a0, a1;
    uint32_t want;
};

static void expect(const struct expectation *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t got = answer(v[i].nr, v[i].a0, v[i].a1);
        if (got != v[i].want)
            fail_msg("call %ld (%llx, %llx): %x instead of %x", v[i].nr, (unsigned long long)v[i].a0,
                     (unsigned long long)v[i].a1, got, v[i].want);
    }
}
#define EXPECT(...)                                     \
    expect((const struct expectation[]){ __VA_ARGS__ }, \
           sizeof((const struct expectation[]){ __VA_ARGS__ }) / sizeof(struct expectation))

static void other_architectures_are_killed(void **state)
{
    (void)state;
    const uint32_t others[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, 0,
                                ARCH == AUDIT_ARCH_X86_64 ? AUDIT_ARCH_AARCH64 : AUDIT_ARCH_X86_64 };
    for (size_t i = 0; i < countof(others); i++) {
        const struct seccomp_data d = { .nr = SYS_getpid, .arch = others[i] };
        assert_int_equal(run(&d), KILL);
    }
    assert_int_equal(answer(SYS_getpid | 0x40000000, 0, 0), KILL); /* x32 */
    assert_int_equal(answer(-1, 0, 0), KILL);
}

static void everyday_calls_pass(void **state)
{
    (void)state;
    const long calls[] = { SYS_read,
                           SYS_write,
                           SYS_openat,
                           SYS_close,
                           SYS_mmap,
                           SYS_mprotect,
                           SYS_brk,
                           SYS_rt_sigaction,
                           SYS_futex,
                           SYS_execve,
                           SYS_exit_group,
                           SYS_wait4,
                           SYS_getrandom,
                           SYS_memfd_create,
                           SYS_sendmsg,
                           SYS_recvmsg,
                           SYS_clock_gettime,
                           SYS_epoll_pwait,
                           SYS_pipe2,
                           SYS_renameat2,
                           SYS_ftruncate,
                           SYS_statx,
                           SYS_copy_file_range,
                           449 /* futex_waitv */ };
    for (size_t i = 0; i < countof(calls); i++)
        assert_int_equal(answer(calls[i], 0, 0), ALLOW);
}

static uint32_t answer_at(long nr, unsigned index, uint64_t value)
{
    struct seccomp_data d = { .nr = (int)nr, .arch = ARCH };
    d.args[index] = value;
    return run(&d);
}

static void no_whiteout_and_no_handle_of_a_peer(void **state)
{
    (void)state;
    for (uint64_t flags = 0; flags < 8; flags++) {
        uint32_t want = flags & 4 ? NO(EPERM) : ALLOW;
        assert_int_equal(answer_at(SYS_renameat2, 4, flags), want);
        assert_int_equal(answer_at(SYS_renameat2, 4, HIGH(flags)), want);
    }
    for (uint64_t option = 0; option < 100; option++) {
        assert_int_equal(answer_at(SYS_getsockopt, 2, option), option == 77 ? NO(EPERM) : ALLOW);
        const bool refused = option == 76 || option == 26 || option == 51; /* and no programs for sockets */
        assert_int_equal(answer_at(SYS_setsockopt, 2, HIGH(option)), refused ? NO(EPERM) : ALLOW);
    }
}

static void no_memory_that_is_the_hosts_or_shared_by_content(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 32; bit++) {
        const uint64_t flag = 1ULL << bit;
        assert_int_equal(answer_at(SYS_mmap, 3, HIGH(flag | 2)), bit == 18 ? NO(EPERM) : ALLOW); /* HUGETLB */
        assert_int_equal(answer_at(SYS_memfd_create, 1, HIGH(flag)), bit == 2 ? NO(EPERM) : ALLOW);
    }
    for (uint64_t advice = 0; advice < 128; advice++) {
        const bool refused = advice == 12 || advice == 21 || advice == 100 ||
                             advice == 101; /* MERGEABLE, PAGEOUT, HWPOISON, SOFT_OFFLINE */
        assert_int_equal(answer_at(SYS_madvise, 2, HIGH(advice)), refused ? NO(EPERM) : ALLOW);
    }
}

static void the_page_cache_is_not_looked_at(void **state)
{
    (void)state;
    for (uint64_t advice = 0; advice < 64; advice++) /* DONTNEED */
        assert_int_equal(answer_at(SYS_fadvise64, 3, HIGH(advice)), advice == 4 ? NO(EPERM) : ALLOW);
    for (unsigned bit = 0; bit < 32; bit++) /* RWF_NOWAIT, RWF_DONTCACHE */
        assert_int_equal(answer_at(SYS_preadv2, 5, HIGH(1ULL << bit)), bit == 3 || bit == 7 ? NO(EPERM) : ALLOW);
}

/* errno of the call, or 0. */
static int tried(long nr, long a, long b, long c)
{
    errno = 0;
    return syscall(nr, a, b, c) < 0 ? errno : 0;
}

/* In a child, since there is no way back: 0, or which expectation failed. */
static int confined(void)
{
    struct err e;
    const struct {
        long nr, a, b, c;
        int want; /* -1: anything but ENOSYS, the filter lets it through */
    } calls[] = {
        { SYS_getpid, 0, 0, 0, 0 },
        { SYS_mount, 0, 0, 0, -1 },
        { SYS_unshare, 1 << 20, 0, 0, -1 },
        { SYS_setns, -1, 0, 0, -1 },
        { 437 /* openat2 */, -1, 0, 0, -1 },
        { 430 /* fsopen */, 0, 0, 0, -1 },
        { SYS_prctl, 38, 1, 0, -1 },
        { SYS_prlimit64, 0, 0, 0, -1 },
        { SYS_socket, 1, 1, 0, 0 },
        { SYS_socket, 2, 1, 0, ENOSYS },
        { SYS_socket, 16, 3, 0, ENOSYS },
        { SYS_socket, 38, 5, 0, ENOSYS },
        { SYS_socket, 40, 1, 0, ENOSYS },
        { SYS_ptrace, 0, 0, 0, ENOSYS },
        { SYS_process_vm_writev, 0, 0, 0, ENOSYS },
        { SYS_perf_event_open, 0, 0, 0, ENOSYS },
        { SYS_keyctl, 0, 0, 0, ENOSYS },
        { SYS_open_by_handle_at, 0, 0, 0, ENOSYS },
        { SYS_mknodat, 0, 0, 0, ENOSYS },
        { SYS_settimeofday, 0, 0, 0, ENOSYS },
        { SYS_splice, 0, 0, 0, ENOSYS },
        { 323 /* userfaultfd on x86_64 */, 0, 0, 0, ARCH == AUDIT_ARCH_X86_64 ? ENOSYS : -1 },
        { 425 /* io_uring_setup */, 0, 0, 0, ENOSYS },
        { 435 /* clone3 */, 0, 0, 0, ENOSYS },
        { 999, 0, 0, 0, ENOSYS },
    };
    if (box_seccomp_confine(&e) < 0)
        return 100;
    for (size_t i = 0; i < countof(calls); i++) {
        int got = tried(calls[i].nr, calls[i].a, calls[i].b, calls[i].c);
        if (calls[i].want < 0 ? got == ENOSYS : got != calls[i].want)
            return (int)i + 1;
    }
    return 0;
}

static int status_of(int (*what)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(what());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int confined_and_deadly(void)
{
    struct err e;
    if (box_seccomp_confine(&e) < 0)
        return 100;
    (void)syscall(SYS_bpf, 0, 0, 0);
    return 0;
}

static void the_keeper_makes_boxes_and_little_else(void **state)
{
    (void)state;
    const int status = status_of(confined);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    const int deadly = status_of(confined_and_deadly);
    assert_true(WIFSIGNALED(deadly));
    assert_int_equal(WTERMSIG(deadly), SIGSYS);
}

static void what_is_newer_than_us_is_unknown(void **state)
{
    (void)state;
    for (long nr = BOX_SYSCALL_LAST + 1; nr < 1024; nr++)
        assert_int_equal(answer(nr, 0, 0), NO(ENOSYS));
}

static void calls_that_libraries_probe_are_unknown(void **state)
{
    (void)state;
    const long calls[] = { 425, 426, 427, 428, 429, 430, 431, 432, 433, 435, 437, 438, 442, 443,
                           447, 448, 451, 452, 453, 454, 455, 456, 457, 458, 459, 460, 461, 462 };
    for (size_t i = 0; i < countof(calls); i++)
        assert_int_equal(answer(calls[i], 0, 0), NO(ENOSYS));
}

static void known_and_refused(void **state)
{
    (void)state;
    const long calls[] = {
        SYS_mount,
        SYS_umount2,
        SYS_pivot_root,
        SYS_chroot,
        SYS_unshare,
        SYS_setns,
        SYS_ptrace,
        SYS_process_vm_readv,
        SYS_process_vm_writev,
        SYS_kcmp,
        SYS_keyctl,
        SYS_add_key,
        SYS_request_key,
        SYS_perf_event_open,
        SYS_name_to_handle_at,
        SYS_open_by_handle_at,
        SYS_mknodat,
        SYS_setuid,
        SYS_setgid,
        SYS_setresuid,
        SYS_setgroups,
        SYS_capset,
        SYS_sethostname,
        SYS_personality,
        SYS_acct,
        SYS_quotactl,
        SYS_swapon,
        SYS_syslog,
        SYS_settimeofday,
        SYS_clock_settime,
        SYS_clock_adjtime,
        SYS_adjtimex,
        SYS_ioprio_set,
        SYS_sched_setscheduler,
        SYS_sched_setattr,
        SYS_mbind,
        SYS_set_mempolicy,
        SYS_migrate_pages,
        SYS_move_pages,
        SYS_mlockall,
        SYS_remap_file_pages,
        SYS_fanotify_init,
        SYS_inotify_init1,
        SYS_inotify_add_watch,
        SYS_vhangup,
        SYS_splice,
        SYS_tee,
        SYS_vmsplice,
        SYS_sendfile,
        SYS_shmget,
        SYS_semget,
        SYS_msgget,
        SYS_mq_open,
        SYS_setxattr,
        SYS_removexattr,
        SYS_mincore,
        424 /* pidfd_send_signal */,
#if defined(__x86_64__)
        SYS_mknod,
        SYS_modify_ldt,
        SYS_userfaultfd,
        SYS_inotify_init,
#endif
    };
    for (size_t i = 0; i < countof(calls); i++)
        assert_int_equal(answer(calls[i], 0, 0), NO(EPERM));
}

static void alarms_kill(void **state)
{
    (void)state;
    EXPECT({ SYS_bpf, 0, 0, KILL }, { SYS_init_module, 0, 0, KILL }, { SYS_finit_module, 0, 0, KILL },
           { SYS_delete_module, 0, 0, KILL }, { SYS_kexec_load, 0, 0, KILL }, { SYS_reboot, 0, 0, KILL });
#if defined(__x86_64__)
    EXPECT({ SYS_iopl, 3, 0, KILL }, { SYS_ioperm, 0, 1, KILL }, { SYS_kexec_file_load, 0, 0, KILL });
#endif
}

static void clone_makes_no_namespaces(void **state)
{
    (void)state;
    EXPECT({ SYS_clone, 17, 0, ALLOW }, { SYS_clone, 0x3d0f00, 0, ALLOW }, /* a thread of glibc's */
           { SYS_clone, CLONE_NEWUSER | 17, 0, NO(EPERM) }, { SYS_clone, CLONE_NEWNS, 0, NO(EPERM) },
           { SYS_clone, CLONE_NEWPID, 0, NO(EPERM) }, { SYS_clone, CLONE_NEWNET, 0, NO(EPERM) },
           { SYS_clone, CLONE_NEWIPC, 0, NO(EPERM) }, { SYS_clone, CLONE_NEWUTS, 0, NO(EPERM) },
           { SYS_clone, CLONE_NEWCGROUP, 0, NO(EPERM) }, { SYS_clone, CLONE_PARENT, 0, NO(EPERM) },
           { SYS_clone, CLONE_PTRACE, 0, NO(EPERM) }, { SYS_clone, CLONE_UNTRACED, 0, NO(EPERM) });
}

static void sockets_are_local(void **state)
{
    (void)state;
    EXPECT({ SYS_socket, 1, 1, ALLOW }, { SYS_socketpair, 1, 1, ALLOW }, { SYS_socket, HIGH(2), 1, NO(EPERM) });
    for (uint64_t family = 0; family < 64; family++)
        if (family != 1)
            EXPECT({ SYS_socket, family, 1, NO(EPERM) }, { SYS_socketpair, family, 1, NO(EPERM) });
}

/* The kernel looks at 32 bits of these; so must we (CVE-2019-10063). */
static void arguments_are_compared_on_their_low_half(void **state)
{
    (void)state;
    EXPECT({ SYS_ioctl, 0, 0x5401, ALLOW }, { SYS_ioctl, 0, HIGH(0x5401), ALLOW }, { SYS_ioctl, 0, 0x5412, NO(EPERM) },
           { SYS_ioctl, 0, HIGH(0x5412), NO(EPERM) }, { SYS_fcntl, 0, 8, NO(EPERM) },
           { SYS_fcntl, 0, HIGH(8), NO(EPERM) }, { SYS_kill, 1, 9, NO(EPERM) }, { SYS_kill, HIGH(1), 9, NO(EPERM) },
           { SYS_kill, UINT64_MAX, 9, NO(EPERM) }, { SYS_kill, 0xffffffffU, 9, NO(EPERM) },
           { SYS_prctl, HIGH(35), 0, NO(EPERM) }, { SYS_prlimit64, HIGH(1), 0, NO(EPERM) });
}

static void signals_spare_init(void **state)
{
    (void)state;
    EXPECT({ SYS_kill, 2, 9, ALLOW }, { SYS_kill, 0, 9, ALLOW }, { SYS_kill, (uint64_t)-5, 9, ALLOW },
           { SYS_tkill, 1, 9, NO(EPERM) }, { SYS_tgkill, 1, 1, NO(EPERM) }, { SYS_tgkill, 7, 7, ALLOW },
           { SYS_rt_sigqueueinfo, 1, 9, NO(EPERM) }, { 434, 1, 0, NO(EPERM) }, { 434, 7, 0, ALLOW });
}

static void only_oneself_is_limited(void **state)
{
    (void)state;
    EXPECT({ SYS_prlimit64, 0, 7, ALLOW }, { SYS_prlimit64, 5, 7, NO(EPERM) }, { SYS_sched_setaffinity, 0, 8, ALLOW },
           { SYS_sched_setaffinity, 5, 8, NO(EPERM) }, { SYS_setpriority, 0, 0, ALLOW },
           { SYS_setpriority, 0, 5, NO(EPERM) }, { SYS_setpriority, 1, 0, NO(EPERM) });
}

static void filters_and_prctl(void **state)
{
    (void)state;
    EXPECT({ SYS_seccomp, 1, 0, ALLOW }, { SYS_seccomp, 1, 1, ALLOW }, { SYS_seccomp, 1, 8, NO(EPERM) },
           { SYS_seccomp, 1, 9, NO(EPERM) }, { SYS_seccomp, 0, 0, NO(EPERM) }, { SYS_seccomp, 3, 0, NO(EPERM) });
    const uint64_t fine[] = { 1, 3, 4, 15, 16, 21, 23, 38, 39, 0x53564d41 };
    for (uint64_t n = 0; n < 80; n++) {
        bool is_fine = false;
        for (size_t i = 0; i < countof(fine); i++)
            is_fine |= fine[i] == n;
        EXPECT({ SYS_prctl, n, 0, is_fine ? ALLOW : NO(EPERM) });
    }
}

static void fcntl_has_no_leases_and_no_owners(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 8; n++)
        EXPECT({ SYS_fcntl, 0, n, ALLOW });
    EXPECT({ SYS_fcntl, 0, 8, NO(EPERM) }, { SYS_fcntl, 0, 10, NO(EPERM) }, { SYS_fcntl, 0, 15, NO(EPERM) },
           { SYS_fcntl, 0, 1024, NO(EPERM) }, { SYS_fcntl, 0, 1026, NO(EPERM) }, { SYS_fcntl, 0, 1030, ALLOW },
           { SYS_fcntl, 0, 1031, ALLOW });
}

static int compile(void **state)
{
    struct err e = { 0 };
    (void)state;
    return box_seccomp_compile(&program, &e);
}

static int drop(void **state)
{
    (void)state;
    str_clear(&program);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_architectures_are_killed),
        cmocka_unit_test(everyday_calls_pass),
        cmocka_unit_test(no_whiteout_and_no_handle_of_a_peer),
        cmocka_unit_test(no_memory_that_is_the_hosts_or_shared_by_content),
        cmocka_unit_test(the_page_cache_is_not_looked_at),
        cmocka_unit_test(the_keeper_makes_boxes_and_little_else),
        cmocka_unit_test(what_is_newer_than_us_is_unknown),
        cmocka_unit_test(calls_that_libraries_probe_are_unknown),
        cmocka_unit_test(known_and_refused),
        cmocka_unit_test(alarms_kill),
        cmocka_unit_test(clone_makes_no_namespaces),
        cmocka_unit_test(sockets_are_local),
        cmocka_unit_test(arguments_are_compared_on_their_low_half),
        cmocka_unit_test(signals_spare_init),
        cmocka_unit_test(only_oneself_is_limited),
        cmocka_unit_test(filters_and_prctl),
        cmocka_unit_test(fcntl_has_no_leases_and_no_owners),
    };
    return cmocka_run_group_tests(tests, compile, drop);
}
