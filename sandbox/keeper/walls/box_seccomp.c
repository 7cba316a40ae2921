/* box_seccomp.c - which system calls a box may make: an allow-list with graded answers.
 *
 *   wrong architecture, x32 numbers, calls that nothing honest makes    the process is killed: an alarm
 *   known, and refused                                                  EPERM
 *   calls that a C library only tries, and whatever is newer than us    ENOSYS: that is what libraries fall back on
 *
 * Two layers make one program: a few hand-written instructions in front (what libseccomp can't say: "not this value"),
 * then libseccomp's decision tree with EPERM as the answer to all that is not listed.
 * Every comparison of a 32-bit argument is on its low 32 bits: the kernel looks at no more (CVE-2019-10063). */
#include "box_seccomp.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "wire/box_fd.h"

/* ---- what is allowed with any arguments; names that an architecture lacks are skipped ---- */
static const char *const allowed[] = {
    /* files */
    "read write readv writev pread64 pwrite64 preadv pwritev pwritev2 openat close close_range",
    "fstat newfstatat stat lstat statx lseek access faccessat faccessat2 readlink readlinkat", /* stat, lstat: libarrow */
    "getdents getdents64 getcwd chdir fchdir mkdir mkdirat rmdir unlink unlinkat rename renameat",
    "link linkat symlink symlinkat chmod fchmod fchmodat utimensat utime utimes futimesat truncate ftruncate",
    "fallocate fadvise64 fsync fdatasync sync_file_range msync flock dup dup2 dup3 pipe pipe2 statfs fstatfs umask",
    "copy_file_range listxattr llistxattr flistxattr getxattr lgetxattr fgetxattr",
    /* memory */
    "munmap mprotect mremap madvise brk membarrier",
    /* signals and timers; who may be signalled: guards below, uids, Landlock */
    "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend rt_sigqueueinfo sigaltstack",
    "kill tgkill tkill signalfd4 pause alarm setitimer getitimer restart_syscall eventfd2",
    "timerfd_create timerfd_settime timerfd_gettime",
    "timer_create timer_settime timer_gettime timer_delete timer_getoverrun",
    /* processes and threads */
    "futex futex_waitv set_robust_list get_robust_list rseq set_tid_address arch_prctl",
    "gettid getpid getppid getpgid getpgrp setpgid getsid setsid",
    "getuid geteuid getgid getegid getresuid getresgid getgroups",
    "execve execveat exit exit_group wait4 waitid fork vfork getrusage getrlimit setrlimit times uname sysinfo getcpu",
    "sched_yield sched_getaffinity sched_getparam sched_getscheduler sched_get_priority_max sched_get_priority_min",
    "getpriority capget pidfd_open",
    /* time and randomness */
    "nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time getrandom",
    /* waiting */
    "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2",
    /* sockets, which can only be AF_UNIX (below) */
    "connect accept accept4 bind listen getsockname getpeername sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg",
    "shutdown getsockopt setsockopt",
    /* more locks of one's own */
    "landlock_create_ruleset landlock_add_rule landlock_restrict_self",
};

/* ---- what is allowed with certain arguments only: (argument & mask) == value, both where two are given ---- */
struct argument {
    unsigned index;
    uint64_t mask, value;
};
struct filtered {
    const char *name;
    unsigned n;
    struct argument args[2];
};
#define LOW 0xffffffffU
#define IS(a, v)      \
    {                 \
        (a), LOW, (v) \
    }
/* Namespaces, and threads or children that would be somebody else's. */
#define CLONE_REFUSED                                                                                            \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | \
     CLONE_PARENT | CLONE_PTRACE | CLONE_UNTRACED)

static const struct filtered filtered[] = {
    { "renameat2", 1, { { 4, 4, 0 } } }, /* without RENAME_WHITEOUT, which makes a device */
    { "mmap",
      1,
      { { 3, 0x40000, 0 } } }, /* without MAP_HUGETLB: huge pages are the host's, and no group of a box's counts them */
    { "memfd_create", 1, { { 1, 4, 0 } } }, /* without MFD_HUGETLB: the same */
    /* without RWF_NOWAIT, RWF_DONTCACHE: whether others have read a page of the image, and away with it */
    { "preadv2", 1, { { 5, 0x88, 0 } } },
    { "clone", 1, { { 0, (uint64_t)CLONE_REFUSED, 0 } } },
    { "socket", 1, { IS(0, 1) } }, /* AF_UNIX */
    { "socketpair", 1, { IS(0, 1) } },
    { "prlimit64", 1, { IS(0, 0) } },         /* oneself */
    { "sched_setaffinity", 1, { IS(0, 0) } }, /* oneself */
    { "setpriority", 2, { IS(0, 0), IS(1, 0) } },
    { "seccomp", 2, { IS(0, 1), { 1, 8, 0 } } }, /* SET_MODE_FILTER, not NEW_LISTENER */
    { "ioctl", 1, { IS(1, 0x5401) } },           /* TCGETS */
    { "ioctl", 1, { IS(1, 0x5413) } },           /* TIOCGWINSZ */
    { "ioctl", 1, { IS(1, 0x541b) } },           /* FIONREAD */
    { "ioctl", 1, { IS(1, 0x5421) } },           /* FIONBIO */
    { "ioctl", 1, { IS(1, 0x5450) } },           /* FIONCLEX */
    { "ioctl", 1, { IS(1, 0x5451) } },           /* FIOCLEX */
    { "ioctl", 1, { IS(1, 0x5452) } },           /* FIOASYNC */
    { "prctl", 1, { IS(0, 1) } },                /* SET_PDEATHSIG */
    { "prctl", 1, { IS(0, 3) } },                /* GET_DUMPABLE */
    { "prctl", 1, { IS(0, 4) } },                /* SET_DUMPABLE: copies need it */
    { "prctl", 1, { IS(0, 15) } },               /* SET_NAME */
    { "prctl", 1, { IS(0, 16) } },               /* GET_NAME */
    { "prctl", 1, { IS(0, 21) } },               /* GET_SECCOMP */
    { "prctl", 1, { IS(0, 23) } },               /* CAPBSET_READ */
    { "prctl", 1, { IS(0, 38) } },               /* SET_NO_NEW_PRIVS */
    { "prctl", 1, { IS(0, 39) } },               /* GET_NO_NEW_PRIVS */
    { "prctl", 1, { IS(0, 0x53564d41) } },       /* SET_VMA */
    /* fcntl without F_SETOWN(_EX), F_SETSIG, F_SETLEASE, F_NOTIFY */
    { "fcntl", 1, { { 1, LOW & ~3U, 0 } } }, /* 0-3: DUPFD, GETFD, SETFD, GETFL */
    { "fcntl", 1, { { 1, LOW & ~3U, 4 } } }, /* 4-7: SETFL, GETLK, SETLK, SETLKW */
    { "fcntl", 1, { IS(1, 9) } },            /* GETOWN */
    { "fcntl", 1, { IS(1, 11) } },           /* GETSIG */
    { "fcntl", 1, { IS(1, 16) } },           /* GETOWN_EX */
    { "fcntl", 1, { IS(1, 36) } },           /* OFD_GETLK */
    { "fcntl", 1, { IS(1, 37) } },           /* OFD_SETLK */
    { "fcntl", 1, { IS(1, 38) } },           /* OFD_SETLKW */
    { "fcntl", 1, { IS(1, 1025) } },         /* GETLEASE */
    { "fcntl", 1, { IS(1, 1030) } },         /* DUPFD_CLOEXEC */
    { "fcntl", 1, { IS(1, 1031) } },         /* SETPIPE_SZ */
    { "fcntl", 1, { IS(1, 1032) } },         /* GETPIPE_SZ */
    { "fcntl", 1, { IS(1, 1033) } },         /* ADD_SEALS */
    { "fcntl", 1, { IS(1, 1034) } },         /* GET_SEALS */
};

/* ---- answered ENOSYS: a C library asks and falls back. By number too, for names that libseccomp is too old for ---- */
static const struct {
    const char *name;
    int number; /* the same on every architecture from 424 on */
} unknown[] = {
    { "io_uring_setup", 425 },
    { "io_uring_enter", 426 },
    { "io_uring_register", 427 },
    { "open_tree", 428 },
    { "move_mount", 429 },
    { "fsopen", 430 },
    { "fsconfig", 431 },
    { "fsmount", 432 },
    { "fspick", 433 },
    { "clone3", 435 },
    { "openat2", 437 },
    { "pidfd_getfd", 438 },
    { "mount_setattr", 442 },
    { "quotactl_fd", 443 },
    { "memfd_secret", 447 },
    { "process_mrelease", 448 },
    { "cachestat", 451 },
    { "fchmodat2", 452 },
    { "map_shadow_stack", 453 },
    { "futex_wake", 454 },
    { "futex_wait", 455 },
    { "futex_requeue", 456 },
    { "statmount", 457 },
    { "listmount", 458 },
    { "lsm_get_self_attr", 459 },
    { "lsm_set_self_attr", 460 },
    { "lsm_list_modules", 461 },
    { "mseal", BOX_SYSCALL_LAST },
};

/* ---- a kill is an alarm: nothing honest calls these from Python ---- */
static const char *const deadly[] = {
    "kexec_load kexec_file_load init_module finit_module delete_module bpf reboot iopl ioperm",
};

/* ---- refused although allowed above, when that argument has this value ---- */
static const struct {
    int number;
    uint32_t index, value;
} guards[] = {
    { SYS_kill, 0, 1 }, /* pid 1 is the box's init */
    { SYS_kill, 0, (uint32_t)-1 },
    { SYS_tkill, 0, 1 },
    { SYS_tgkill, 0, 1 },
    { SYS_rt_sigqueueinfo, 0, 1 },
    { SYS_pidfd_open, 0, 1 },
    { SYS_rt_sigqueueinfo, 0, (uint32_t)-1 },
    { SYS_getsockopt, 2, 77 }, /* SO_PEERPIDFD: of a head's channel, a handle of the keeper */
    { SYS_setsockopt, 2, 76 }, /* SO_PASSPIDFD: the same with the keeper's next word */
    { SYS_setsockopt, 2, 26 }, /* SO_ATTACH_FILTER: programs for the kernel's compiler */
    { SYS_setsockopt, 2, 51 }, /* SO_ATTACH_REUSEPORT_CBPF */
    { SYS_madvise, 2, 12 },    /* MADV_MERGEABLE: pages in common with other sessions tell by their time */
    { SYS_madvise, 2, 21 },    /* MADV_PAGEOUT: the machine's swap, and pages of the image that others want */
    { SYS_madvise, 2, 100 },   /* MADV_HWPOISON */
    { SYS_madvise, 2, 101 },   /* MADV_SOFT_OFFLINE */
    { SYS_fadvise64, 3, 4 },   /* POSIX_FADV_DONTNEED: the same of files, and a look at what others read */
};

/* All else is EPERM, among it: mount umount2 pivot_root chroot unshare setns ptrace process_vm_* kcmp keyctl add_key
 * request_key perf_event_open userfaultfd *_by_handle_at mknod* set*id capset setgroups set*name personality modify_ldt
 * acct quotactl swap* syslog *settime clock_adjtime adjtimex ioprio_set sched_set* mbind set_mempolicy *_pages mlockall
 * fanotify_* inotify_* vhangup splice tee vmsplice sendfile shm* sem* msg* mq_* *setxattr mincore pidfd_send_signal. */

static int resolve(const char *name)
{
    return seccomp_syscall_resolve_name(name);
}

static int add_words(scmp_filter_ctx ctx, uint32_t action, const char *words, struct err *e)
{
    autofree char *copy = xstrdup(words);
    char *rest = NULL;
    for (char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        int nr = resolve(name);
        if (nr == __NR_SCMP_ERROR && strcmp(name, "futex_waitv") == 0)
            nr = 449;
        if (nr == __NR_SCMP_ERROR)
            return err_set(e, ERR_SANDBOX, "seccomp: %s is not a system call", name);
        int r = seccomp_rule_add(ctx, action, nr, 0);
        if (r < 0 && nr >= 0)
            return err_sys(e, ERR_SANDBOX, -r, "seccomp: %s", name);
    }
    return 0;
}

static int add_filtered(scmp_filter_ctx ctx, const struct filtered *f, struct err *e)
{
    struct scmp_arg_cmp cmp[2];
    for (unsigned i = 0; i < f->n; i++)
        cmp[i] = SCMP_CMP(f->args[i].index, SCMP_CMP_MASKED_EQ, f->args[i].mask, f->args[i].value);
    int r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, resolve(f->name), f->n, cmp);
    return r < 0 ? err_sys(e, ERR_SANDBOX, -r, "seccomp: %s", f->name) : 0;
}

static int add_unknown(scmp_filter_ctx ctx, struct err *e)
{
    for (size_t i = 0; i < countof(unknown); i++) {
        int r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), unknown[i].number, 0);
        if (r < 0)
            return err_sys(e, ERR_SANDBOX, -r, "seccomp: %s", unknown[i].name);
    }
    return 0;
}

static int add_lines(scmp_filter_ctx ctx, uint32_t action, const char *const *lines, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (add_words(ctx, action, lines[i], e) < 0)
            return -1;
    return 0;
}

/* What a head's filter and the keeper's own have in common. */
static int add_common(scmp_filter_ctx ctx, struct err *e)
{
    if (seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) < 0 ||
        seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0)
        return err_set(e, ERR_SANDBOX, "seccomp: libseccomp is too old");
    if (add_lines(ctx, SCMP_ACT_ALLOW, allowed, countof(allowed), e) < 0)
        return -1;
    return add_lines(ctx, SCMP_ACT_KILL_PROCESS, deadly, countof(deadly), e);
}

static int build(scmp_filter_ctx ctx, struct err *e)
{
    if (add_common(ctx, e) < 0)
        return -1;
    for (size_t i = 0; i < countof(filtered); i++)
        if (add_filtered(ctx, &filtered[i], e) < 0)
            return -1;
    return add_unknown(ctx, e);
}

/* ---- the instructions in front ---- */

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

static void put(struct str *out, struct sock_filter code)
{
    str_add(out, &code, sizeof code);
}

static void load(struct str *out, size_t offset)
{
    put(out, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* When the accumulator compares so, this is the answer. */
static void answer_if(struct str *out, uint16_t compare, uint32_t value, uint32_t answer)
{
    put(out, (struct sock_filter)BPF_JUMP(BPF_JMP | compare | BPF_K, value, 0, 1));
    put(out, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer));
}

static void add_guards(struct str *out)
{
    for (size_t i = 0; i < countof(guards); i++) {
        put(out, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)guards[i].number, 0, 4));
        load(out,
             offsetof(struct seccomp_data, args) + sizeof(uint64_t) * guards[i].index); /* its low half comes first */
        answer_if(out, BPF_JEQ, guards[i].value, SECCOMP_RET_ERRNO | EPERM);
        load(out, offsetof(struct seccomp_data, nr));
    }
}

static void add_front(struct str *out)
{
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "offsets of arguments");
    load(out, offsetof(struct seccomp_data, arch));
    put(out, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
    put(out, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    load(out, offsetof(struct seccomp_data, nr));
    answer_if(out, BPF_JGE, 0x40000000, SECCOMP_RET_KILL_PROCESS); /* x32 */
    answer_if(out, BPF_JGT, BOX_SYSCALL_LAST, SECCOMP_RET_ERRNO | ENOSYS);
    add_guards(out);
}

static void release(scmp_filter_ctx *ctx)
{
    seccomp_release(*ctx);
}

int box_seccomp_compile(struct str *out, struct err *e)
{
    AUTO(release) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!ctx)
        return err_set(e, ERR_SANDBOX, "seccomp: no memory");
    if (build(ctx, e) < 0)
        return -1;
    autoclose int tree = memfd_create("seccomp", MFD_CLOEXEC);
    int r = tree < 0 ? -errno : seccomp_export_bpf(ctx, tree);
    if (r < 0 || lseek(tree, 0, SEEK_SET) < 0)
        return err_sys(e, ERR_SANDBOX, r < 0 ? -r : errno, "seccomp: export");
    add_front(out);
    if (str_read_fd(out, tree, e) < 0)
        return err_wrap(e, "seccomp");
    return str_check(out, e);
}

/* ---- the keeper's own ---- */

/* With any arguments, where a head's are looked at; sockets, ioctl, mmap, memfd_create and seccomp are filtered alike. */
#define KEEPER_FREELY "clone prctl prlimit64 fcntl renameat2 sched_setaffinity setpriority"

static const char *const keeper_also[] = {
    KEEPER_FREELY,
    /* namespaces and mounts */
    "unshare setns mount umount2 pivot_root chroot sethostname",
    /* who one is: in the children that become a box, and for files that are put */
    "setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid capset",
    "chown fchown lchown fchownat setxattr removexattr pidfd_send_signal",
};
/* openat2, and mounts by descriptor; by number as in unknown[] */
static const int keeper_new[] = { 428, 429, 430, 431, 432, 437, 442 };

static bool is_freely(const char *name)
{
    char word[40];
    (void)snprintf(word, sizeof word, " %s ", name);
    return strstr(" " KEEPER_FREELY " ", word) != NULL;
}

static int build_keeper(scmp_filter_ctx ctx, struct err *e)
{
    if (add_common(ctx, e) < 0 || add_lines(ctx, SCMP_ACT_ALLOW, keeper_also, countof(keeper_also), e) < 0)
        return -1;
    for (size_t i = 0; i < countof(filtered); i++)
        if (!is_freely(filtered[i].name) && add_filtered(ctx, &filtered[i], e) < 0)
            return -1;
    for (size_t i = 0; i < countof(keeper_new); i++) {
        int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, keeper_new[i], 0);
        if (r < 0)
            return err_sys(e, ERR_SANDBOX, -r, "seccomp: %d", keeper_new[i]);
    }
    return 0;
}

int box_seccomp_confine(struct err *e)
{
    AUTO(release) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    if (!ctx)
        return err_set(e, ERR_SANDBOX, "seccomp: no memory");
    if (build_keeper(ctx, e) < 0)
        return -1;
    int r = seccomp_load(ctx);
    return r < 0 ? err_sys(e, ERR_SANDBOX, -r, "seccomp: the keeper's own filter") : 0;
}

int box_seccomp_fd(int *out, struct err *e)
{
    AUTO(str_clear) struct str code = STR_INIT(64 << 10);
    if (box_seccomp_compile(&code, e) < 0)
        return -1;
    autoclose int fd = memfd_create("box-seccomp", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || write_all(fd, code.buf, code.len) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "seccomp: memfd");
    *out = box_fd_take(&fd);
    return 0;
}
