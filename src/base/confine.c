/* confine.c - see confine.h. The few instructions are written by hand: libseccomp is the keeper's, whose filter is an allow-list. This one
 * is none, because libraries of a network program call what they like; it takes away what an intruder would reach for first. */
#include "confine.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

enum { X32 = 0x40000000, CODE_MAX = 160 };

static const uint32_t refused[] = {
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_open_by_handle_at,
    SYS_personality,
    SYS_fanotify_init,
    SYS_vhangup,
    SYS_nfsservctl,
    SYS_lookup_dcookie,
#if defined(__x86_64__)
    SYS_kexec_file_load,
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
#endif
    425, /* io_uring_setup, enter, register: the same everywhere */
    426,
    427,
    438, /* pidfd_getfd */
};

static const uint32_t families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };

struct program {
    struct sock_filter code[CODE_MAX];
    unsigned short n;
};

static void put(struct program *p, struct sock_filter code)
{
    p->code[p->n++] = code;
}

static void load(struct program *p, size_t offset)
{
    put(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void answer(struct program *p, uint32_t what)
{
    put(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what));
}

static void answer_if(struct program *p, uint16_t compare, uint32_t value, uint32_t what)
{
    put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | compare | BPF_K, value, 0, 1));
    answer(p, what);
}

/* The last part: whatever is no socket has passed. */
static void socket_families(struct program *p)
{
    put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0));
    answer(p, SECCOMP_RET_ALLOW);
    load(p, offsetof(struct seccomp_data, args)); /* its low half comes first */
    for (size_t i = 0; i < countof(families); i++)
        answer_if(p, BPF_JEQ, families[i], SECCOMP_RET_ALLOW);
    answer(p, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

static void compile(struct program *p)
{
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "offsets of arguments");
    _Static_assert(2 * countof(refused) + 2 * countof(families) + 16 < CODE_MAX, "room for the program");
    load(p, offsetof(struct seccomp_data, arch));
    put(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
    answer(p, SECCOMP_RET_KILL_PROCESS);
    load(p, offsetof(struct seccomp_data, nr));
    answer_if(p, BPF_JGE, X32, SECCOMP_RET_KILL_PROCESS);
    for (size_t i = 0; i < countof(refused); i++)
        answer_if(p, BPF_JEQ, refused[i], SECCOMP_RET_ERRNO | EPERM);
    socket_families(p);
}

int confine_self(struct err *e)
{
    struct program p = { .n = 0 };
    compile(&p);
    const struct sock_fprog filter = { .len = p.n, .filter = p.code };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0)
        return err_sys(e, ERR_CONFIG, errno, "the service's own filter of system calls");
    return 0;
}
