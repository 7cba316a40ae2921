/* init.c - pid 1 of a box, and of the base. Freestanding, static, a few KiB: one runs per session for as long as the session
 * lives, and one for as long as the keeper does.
 *
 * The keeper built the namespaces and then executed this program in them. It reaps what is left behind, kills everything
 * else in the box but copies when the keeper says so, tells how a head ended that came from a copy, and ends - and with it,
 * by the kernel's rule for pid 1, the whole box - when the keeper's channel closes. In a box it holds CAP_KILL and nothing
 * else, because its uid is not the session's; in the base it holds nothing, and tells of every end: a head whose zygote is
 * gone has become its child.
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
    ENTRIES_BYTES = 4096,
    NUMBER_MAX = 1 << 22, /* pids are smaller */
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
    PASSES_MAX =
        1500, /* six seconds of the keeper's ten: hundreds die slowly on a busy machine; then copies go, too: a frozen one
                          may hold a zombie */
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
        ALLOW(__NR_lseek),
        ALLOW(__NR_getdents64),
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

static uint32_t watched; /* the head, when it came from a copy; 0: it is the zygote's to wait for */
static int tell_all;     /* pid 1 of the base */

static void say(uint8_t type, const void *payload, uint32_t n)
{
    struct {
        struct box_frame head;
        uint32_t payload[2];
    } out = { .head = { .magic = BOX_MAGIC, .version = BOX_VERSION, .type = type, .len = n } };
    if (payload)
        memcpy(out.payload, payload, n);
    (void)raw6(__NR_sendto, BOX_INIT_CONTROL, RAW_ARG(&out), (long)(sizeof out.head + n), MSG_NOSIGNAL_, 0, 0);
}

static void say_end(uint32_t pid, int status)
{
    const uint32_t end[2] = { pid, (uint32_t)status };
    if (pid == watched)
        watched = 0;
    say(BOX_EXIT, end, sizeof end);
}

static void reap(void)
{
    int status = 0;
    for (long pid = 0; (pid = raw4(__NR_wait4, -1, &status, WNOHANG_, 0)) > 0;)
        if (tell_all || (uint32_t)pid == watched)
            say_end((uint32_t)pid, status);
}

static void watch(uint32_t pid)
{
    if (pid == 0)
        tell_all = 1;
    else
        watched = pid;
    reap();
    if (watched && raw2(__NR_kill, watched, 0) == -ESRCH_)
        say_end(watched, BOX_EXIT_UNKNOWN);
}

/* ---- the sweep ---- */

struct entry { /* linux_dirent64 */
    uint64_t ino;
    int64_t off;
    uint16_t len;
    uint8_t type;
    char name[];
};

/* 0: not the folder of a process. */
static uint32_t number(const char *text)
{
    uint32_t n = 0;
    for (; *text >= '0' && *text <= '9' && n < NUMBER_MAX; text++)
        n = n * 10 + (uint32_t)(*text - '0');
    return *text ? 0 : n;
}

static int is_spared(uint32_t pid, const uint32_t *spare, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (spare[i] == pid)
            return 1;
    return pid <= 1;
}

/* One walk over /proc. Returns how many were there to be killed. */
static int pass(const uint32_t *spare, size_t n)
{
    static _Alignas(struct entry) char entries[ENTRIES_BYTES];
    int found = 0;
    (void)raw3(__NR_lseek, BOX_INIT_PROC, 0, 0);
    for (long got = 0; (got = raw3(__NR_getdents64, BOX_INIT_PROC, entries, sizeof entries)) > 0;) {
        for (long at = 0; at < got;) {
            const struct entry *x = (const void *)(entries + at);
            uint32_t pid = number(x->name);
            if (pid != 0 && !is_spared(pid, spare, n)) {
                (void)raw2(__NR_kill, pid, SIGKILL_);
                found++;
            }
            at += x->len;
        }
    }
    return found;
}

/* Without copies kill(-1) is one atomic pass over the namespace: a fork bomb does not outrun it. With copies the keeper has
 * killed their group where there is one, and passes catch the rest: who is killed forks no more. What is left after either
 * are processes on their way out, some of them the zygote's to reap. */
static int kill_all(const uint32_t *spare, size_t n)
{
    return n > 0 ? pass(spare, n) > 0 : raw2(__NR_kill, -1, SIGKILL_) != -ESRCH_;
}

static void sweep(const uint32_t *spare, size_t n)
{
    struct pause step = { 0, SWEEP_FIRST_NS };
    for (int i = 0; kill_all(spare, i < PASSES_MAX ? n : 0); i++) {
        (void)raw2(__NR_nanosleep, &step, 0);
        step.ns = step.ns < SWEEP_LAST_NS ? step.ns * 2 : step.ns;
        reap();
    }
    say(BOX_SWEPT, 0, 0);
}

static void obey(void)
{
    static struct {
        struct box_frame head;
        uint32_t pids[BOX_COPIES_MAX];
    } in;
    long n = raw6(__NR_recvfrom, BOX_INIT_CONTROL, RAW_ARG(&in), sizeof in, 0, 0, 0);
    if (n == -EINTR_)
        return;
    if (n < (long)sizeof in.head || in.head.magic != BOX_MAGIC || in.head.len != (size_t)n - sizeof in.head)
        end(0); /* the keeper is gone */
    if (in.head.type == BOX_SWEEP)
        sweep(in.pids, in.head.len / sizeof *in.pids);
    else if (in.head.type == BOX_WATCH)
        watch(in.pids[0]);
}

static _Noreturn void serve(void)
{
    const uint64_t child = 1ULL << (SIGCHLD_ - 1);
    (void)raw4(__NR_rt_sigprocmask, SIG_BLOCK_, &child, 0, sizeof child);
    long signals = raw4(__NR_signalfd4, -1, &child, sizeof child, 0);
    (void)raw2(__NR_prctl, PR_NAME, "box-init");
    (void)raw2(__NR_prctl, PR_DUMPABLE, 1); /* the zygote joins our namespaces by a descriptor of us */
    lock_down();
    say(BOX_SWEPT, 0, 0); /* the box is there, and empty */
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
