/* init.c - pid 1 of a box. Freestanding, static, a few KiB: one runs per session for as long as the session lives.
 *
 * The keeper built the box's namespaces and then executed this program in them. It reaps what is left behind, kills
 * everything else in the box when the keeper says so, and ends - and with it, by the kernel's rule for pid 1, the whole
 * box - when the keeper's channel closes. It holds CAP_KILL and nothing else, because its uid is not the session's.
 *
 * It stays outside of the head's Landlock domain, so that the head's signal scope covers it, and it reads nothing that
 * a box could write: only the keeper has the other end of its channel. */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include "box_proto.h"
#include "box_zygote.h"
#include "raw.h"

enum {
    SIGKILL_ = 9,
    SIGCHLD_ = 17,
    SIG_BLOCK_ = 0,
    POLLIN_ = 1,
    WNOHANG_ = 1,
    ESRCH_ = 3,
    EINTR_ = 4,
    MSG_NOSIGNAL_ = 0x4000,
    SWEEP_FIRST_NS = 250 * 1000,
    SWEEP_LAST_NS = 4 * 1000 * 1000,
    PR_NAME = 15,
    PR_DUMPABLE = 4,
};

struct wait_for {
    int fd;
    short events, revents;
};

struct pause {
    int64_t s, ns;
};

/* The compiler may ask for these by itself. */
void *memset(void *to, int c, size_t n);
void *memcpy(void *to, const void *from, size_t n);

void *memset(void *to, int c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = (char)c;
    return to;
}

void *memcpy(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

static _Noreturn void end(int code)
{
    for (;;)
        (void)raw1(__NR_exit_group, code);
}

#if defined(__x86_64__)
#define INIT_ARCH AUDIT_ARCH_X86_64
#else
#define INIT_ARCH AUDIT_ARCH_AARCH64
#endif
#define ALLOW(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* All that the loop below needs. */
static void lock_down(void)
{
    static const struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, INIT_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(__NR_ppoll),
        ALLOW(__NR_read),
        ALLOW(__NR_recvfrom),
        ALLOW(__NR_sendto),
        ALLOW(__NR_wait4),
        ALLOW(__NR_kill),
        ALLOW(__NR_nanosleep),
        ALLOW(__NR_restart_syscall),
        ALLOW(__NR_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct {
        unsigned short len;
        const struct sock_filter *code;
    } program = { sizeof code / sizeof *code, code };
    if (raw3(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
        end(2);
}

static void reap(void)
{
    while (raw4(__NR_wait4, -1, 0, WNOHANG_, 0) > 0)
        ;
}

static void say_swept(void)
{
    const struct box_frame done = { .magic = BOX_MAGIC, .version = BOX_VERSION, .type = BOX_SWEPT };
    (void)raw6(__NR_sendto, BOX_INIT_CONTROL, RAW_ARG(&done), sizeof done, MSG_NOSIGNAL_, 0, 0);
}

/* kill(-1) is one atomic pass over the namespace: a fork bomb does not outrun it. What is left after it are processes
 * on their way out, some of them the zygote's to reap. */
static void sweep(void)
{
    struct pause step = { 0, SWEEP_FIRST_NS };
    while (raw2(__NR_kill, -1, SIGKILL_) != -ESRCH_) {
        (void)raw2(__NR_nanosleep, &step, 0);
        step.ns = step.ns < SWEEP_LAST_NS ? step.ns * 2 : step.ns;
        reap();
    }
    say_swept();
}

static void obey(void)
{
    struct box_frame frame = { 0 };
    long n = raw6(__NR_recvfrom, BOX_INIT_CONTROL, RAW_ARG(&frame), sizeof frame, 0, 0, 0);
    if (n == -EINTR_)
        return;
    if (n != (long)sizeof frame || frame.magic != BOX_MAGIC)
        end(0); /* the keeper is gone */
    if (frame.type == BOX_SWEEP)
        sweep();
}

static _Noreturn void serve(void)
{
    const uint64_t child = 1ULL << (SIGCHLD_ - 1);
    (void)raw4(__NR_rt_sigprocmask, SIG_BLOCK_, &child, 0, sizeof child);
    long signals = raw4(__NR_signalfd4, -1, &child, sizeof child, 0);
    (void)raw2(__NR_prctl, PR_NAME, "box-init");
    (void)raw2(__NR_prctl, PR_DUMPABLE, 1); /* the zygote joins our namespaces by a descriptor of us */
    lock_down();
    say_swept(); /* the box is there, and empty */
    for (;;) {
        struct wait_for fds[2] = { { BOX_INIT_CONTROL, POLLIN_, 0 }, { (int)signals, POLLIN_, 0 } };
        (void)raw5(__NR_ppoll, fds, 2, 0, 0, 0);
        if (fds[1].revents) {
            char scratch[128];
            (void)raw3(__NR_read, signals, scratch, sizeof scratch);
        }
        reap();
        if (fds[0].revents)
            obey();
    }
}

_Noreturn void init_main(void);
_Noreturn void init_main(void)
{
    serve();
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp,%ebp\n\tand $-16,%rsp\n\tcall init_main\n");
#else
__asm__(".globl _start\n_start:\n\tmov x29,#0\n\tbl init_main\n");
#endif
