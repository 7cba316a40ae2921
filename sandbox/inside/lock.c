/* lock.c - the locks of a head, in order. See lock.h. Runs in the zygote's children, single-threaded, as uid 0 of the base
 * user namespace; no person's byte has been seen yet. */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include "lock.h"
#include "raw.h"

/* Names that the headers we are built with may not know. The ABI of a kernel doesn't change. */
enum {
    NEW_NS = 0x00020000,
    NEW_CGROUP = 0x02000000,
    NEW_UTS = 0x04000000,
    NEW_IPC = 0x08000000,
    NEW_USER = 0x10000000,
    NEW_PID = 0x20000000,
    NEW_NET = 0x40000000,
    NR_LANDLOCK_CREATE = 444,
    NR_LANDLOCK_ADD = 445,
    NR_LANDLOCK_RESTRICT = 446,
    NR_CLOSE_RANGE = 436,
    EPERM_ = 1,
    EINVAL_ = 22,
    CAP_NUMBERS = 64,
};

enum step {
    STEP_PIDNS = 1,
    STEP_JOIN,
    STEP_FDS,
    STEP_ID,
    STEP_USERNS,
    STEP_MAP,
    STEP_FOLDER,
    STEP_RLIMIT,
    STEP_NNP,
    STEP_LANDLOCK,
    STEP_CAPS,
    STEP_SECCOMP,
    STEPS,
};

static const char *const step_names[STEPS] = {
    [0] = "?",
    [STEP_PIDNS] = "pid namespace",
    [STEP_JOIN] = "join the box's namespaces",
    [STEP_FDS] = "descriptors",
    [STEP_ID] = "session uid",
    [STEP_USERNS] = "own user namespace",
    [STEP_MAP] = "uid map",
    [STEP_FOLDER] = "working folder",
    [STEP_RLIMIT] = "rlimits",
    [STEP_NNP] = "no_new_privs",
    [STEP_LANDLOCK] = "Landlock",
    [STEP_CAPS] = "capabilities",
    [STEP_SECCOMP] = "seccomp",
};

static int fail(enum step step, long error)
{
    return -(int)((unsigned)step << 12 | (unsigned)-error);
}

const char *lock_step(int error)
{
    unsigned step = (unsigned)-error >> 12;
    return step < STEPS ? step_names[step] : step_names[0];
}

static int own_pid_ns = -1;

int lock_pid_enter(int init_pidfd)
{
    if (own_pid_ns < 0)
        own_pid_ns = (int)raw4(__NR_openat, AT_FDCWD, "/proc/self/ns/pid", O_RDONLY | O_CLOEXEC, 0);
    if (own_pid_ns < 0)
        return fail(STEP_PIDNS, own_pid_ns);
    long r = raw2(__NR_setns, init_pidfd, NEW_PID);
    return r < 0 ? fail(STEP_PIDNS, r) : 0;
}

int lock_pid_leave(void)
{
    long r = raw2(__NR_setns, own_pid_ns, NEW_PID);
    return r < 0 ? fail(STEP_PIDNS, r) : 0;
}

int lock_zygote(void)
{
    long r = raw5(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return r < 0 ? fail(STEP_NNP, r) : 0;
}

/* ---- descriptors and namespaces ---- */

int lock_join(const int32_t fds[BOX_FORK_FDS])
{
    (void)raw0(__NR_setsid);
    long r = raw2(__NR_setns, fds[BOX_FD_INIT], NEW_NS | NEW_NET | NEW_IPC | NEW_UTS | NEW_CGROUP);
    if (r < 0)
        return fail(STEP_JOIN, r);
    /* All four come with numbers above the target ones: the zygote keeps 0-15 to itself. */
    long null = raw4(__NR_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
    if (null < 0 || (r = raw3(__NR_dup3, null, 0, 0)) < 0)
        return fail(STEP_FDS, null < 0 ? null : r);
    if ((r = raw3(__NR_dup3, fds[BOX_FD_STDOUT], 1, 0)) < 0 || (r = raw3(__NR_dup3, fds[BOX_FD_STDERR], 2, 0)) < 0 ||
        (r = raw3(__NR_dup3, fds[BOX_FD_CONTROL], BOX_HEAD_CONTROL, O_CLOEXEC)) < 0 ||
        (r = raw3(NR_CLOSE_RANGE, BOX_HEAD_CONTROL + 1, ~0U, 0)) < 0)
        return fail(STEP_FDS, r);
    return 0;
}

/* ---- identity ---- */

static int write_file(const char *path, const char *text, size_t n)
{
    long fd = raw4(__NR_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return (int)fd;
    long r = raw3(__NR_write, fd, text, n);
    (void)raw1(__NR_close, fd);
    return r < 0 ? (int)r : 0;
}

/* "1000 <outer> 1" */
static size_t map_line(char line[32], uint32_t outer)
{
    static const char head[] = "1000 ";
    _Static_assert(BOX_INNER_ID == 1000, "the line above");
    size_t n = 0, digits = 0;
    char back[10];
    for (; head[n]; n++)
        line[n] = head[n];
    do
        back[digits++] = (char)('0' + outer % 10);
    while ((outer /= 10) != 0);
    while (digits > 0)
        line[n++] = back[--digits];
    line[n++] = ' ';
    line[n++] = '1';
    return n;
}

/* From here on the process has no capability over its mounts, its pid or its net namespace. */
static int become_session(uint32_t uid)
{
    char line[32];
    size_t n = map_line(line, uid);
    (void)raw2(__NR_setgroups, 0, 0); /* EPERM where the base's map forbids it: then there are none to drop */
    long r = raw3(__NR_setresgid, uid, uid, uid);
    if (r < 0 || (r = raw3(__NR_setresuid, uid, uid, uid)) < 0)
        return fail(STEP_ID, r);
    (void)raw5(__NR_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0); /* else /proc/self is not ours to write to */
    if ((r = raw1(__NR_unshare, NEW_USER)) < 0)
        return fail(STEP_USERNS, r);
    if ((r = write_file("/proc/self/setgroups", "deny", 4)) < 0 ||
        (r = write_file("/proc/self/uid_map", line, n)) < 0 || (r = write_file("/proc/self/gid_map", line, n)) < 0)
        return fail(STEP_MAP, r);
    if ((r = raw1(__NR_chdir, BOX_DATA)) < 0)
        return fail(STEP_FOLDER, r);
    return 0;
}

/* ---- limits ---- */

struct limit {
    uint64_t soft, hard;
};

enum {
    LIMIT_FSIZE = 1,
    LIMIT_DATA = 2,
    LIMIT_STACK = 3,
    LIMIT_CORE = 4,
    LIMIT_NPROC = 6,
    LIMIT_NOFILE = 7,
    LIMIT_MEMLOCK = 8,
    LIMIT_SIGPENDING = 11,
    LIMIT_MSGQUEUE = 12,
    LIMIT_NICE = 13,
    LIMIT_RTPRIO = 14,
    LIMIT_RTTIME = 15,
};

static int limit_set(int what, uint64_t value)
{
    const struct limit l = { value, value };
    return (int)raw4(__NR_prlimit64, 0, what, &l, 0);
}

static int limits(const struct box_fork *how)
{
    const struct {
        int what;
        uint64_t value;
    } all[] = {
        { LIMIT_CORE, 0 },          { LIMIT_NOFILE, 512 }, { LIMIT_FSIZE, how->file_bytes },
        { LIMIT_MEMLOCK, 0 },       { LIMIT_MSGQUEUE, 0 }, { LIMIT_SIGPENDING, 256 },
        { LIMIT_NICE, 0 },          { LIMIT_RTPRIO, 0 },   { LIMIT_RTTIME, 0 },
        { LIMIT_NPROC, how->pids },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int r = limit_set(all[i].what, all[i].value);
        if (r < 0)
            return fail(STEP_RLIMIT, r);
    }
    const struct limit stack = { 8U << 20, 64U << 20 };
    (void)raw4(__NR_prlimit64, 0, LIMIT_STACK, &stack, 0);
    if (how->data_bytes > 0) {
        int r = limit_set(LIMIT_DATA, how->data_bytes);
        if (r < 0)
            return fail(STEP_RLIMIT, r);
    }
    return 0;
}

/* ---- Landlock (3.10) ---- */

enum {
    FS_EXECUTE = 1 << 0,
    FS_WRITE_FILE = 1 << 1,
    FS_READ_FILE = 1 << 2,
    FS_READ_DIR = 1 << 3,
    FS_MAKE_CHAR = 1 << 6,
    FS_MAKE_BLOCK = 1 << 11,
    FS_ABI_1 = (1 << 13) - 1,
    FS_REFER = 1 << 13,     /* 2 */
    FS_TRUNCATE = 1 << 14,  /* 3 */
    FS_IOCTL_DEV = 1 << 15, /* 5 */
    NET_BOTH = 3,           /* 4: TCP bind and connect */
    SCOPE_BOTH = 3,         /* 6: abstract sockets and signals */
    RULE_PATH = 1,
};

int lock_landlock_abi(void)
{
    long abi = raw3(NR_LANDLOCK_CREATE, 0, 0, 1);
    return abi > 0 ? (int)abi : 0;
}

static int landlock_allow(long rules, const char *path, uint64_t rights)
{
    long fd = raw4(__NR_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
    if (fd < 0)
        return (int)fd;
    const struct {
        uint64_t rights;
        int32_t fd;
    } __attribute__((packed)) rule = { rights, (int32_t)fd };
    long r = raw4(NR_LANDLOCK_ADD, rules, RULE_PATH, &rule, 0);
    (void)raw1(__NR_close, fd);
    return (int)r;
}

static int landlock_rules(long rules, uint64_t all)
{
    const uint64_t look = FS_READ_FILE | FS_READ_DIR;
    const uint64_t own = all & ~(uint64_t)(FS_MAKE_CHAR | FS_MAKE_BLOCK | FS_IOCTL_DEV);
    const struct {
        const char *path;
        uint64_t rights;
    } allow[] = {
        { "/", FS_READ_DIR }, /* names only; there is nothing secret in the tree */
        { "/usr", look | FS_EXECUTE },
        { BOX_SUPPORT, look | FS_EXECUTE },
        { "/etc", look },
        { "/proc", look }, /* writable, /proc/<pid>/mem of a sibling would be, too */
        { "/dev", look | FS_WRITE_FILE },
        { "/dev/shm", own & ~(uint64_t)FS_EXECUTE },
        { "/tmp", own & ~(uint64_t)FS_EXECUTE },
        { BOX_MOUNTS, own }, /* whatever is mounted at BOX_DATA now or later */
    };
    for (size_t i = 0; i < sizeof allow / sizeof *allow; i++) {
        int r = landlock_allow(rules, allow[i].path, allow[i].rights & all);
        if (r < 0)
            return r;
    }
    return 0;
}

static int landlock(void)
{
    int abi = lock_landlock_abi();
    if (abi < 1)
        return 0; /* the keeper knows, and has lowered the tier or refused */
    struct {
        uint64_t fs, net, scoped;
    } handled = { FS_ABI_1, 0, 0 };
    handled.fs |= (abi >= 2 ? FS_REFER : 0U) | (abi >= 3 ? FS_TRUNCATE : 0U) | (abi >= 5 ? FS_IOCTL_DEV : 0U);
    handled.net = abi >= 4 ? NET_BOTH : 0;
    handled.scoped = abi >= 6 ? SCOPE_BOTH : 0;
    size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    long rules = raw3(NR_LANDLOCK_CREATE, &handled, size, 0);
    if (rules < 0)
        return fail(STEP_LANDLOCK, rules);
    long r = landlock_rules(rules, handled.fs);
    if (r == 0)
        r = raw2(NR_LANDLOCK_RESTRICT, rules, 0);
    (void)raw1(__NR_close, rules);
    return r < 0 ? fail(STEP_LANDLOCK, r) : 0;
}

/* ---- capabilities ---- */

static int capabilities(void)
{
    for (int cap = 0; cap < CAP_NUMBERS; cap++) {
        long r = raw5(__NR_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);
        if (r < 0 && r != -EINVAL_)
            return fail(STEP_CAPS, r);
    }
    (void)raw5(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    const long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
                      SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    long r = raw5(__NR_prctl, PR_SET_SECUREBITS, bits, 0, 0, 0);
    if (r < 0)
        return fail(STEP_CAPS, r);
    const struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    const struct __user_cap_data_struct none[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
    r = raw2(__NR_capset, &head, none);
    return r < 0 ? fail(STEP_CAPS, r) : 0;
}

/* ---- forks of a head that runs ---- */

/* The C library's and the interpreter's own, found where this is loaded: their hooks have to run. */
int fork(void);
int vfork(void) __attribute__((returns_twice));
_Noreturn void _exit(int status);
void PyOS_BeforeFork(void);
void PyOS_AfterFork_Parent(void);
void PyOS_AfterFork_Child(void);

/* All that the middle one does to memory it does to the caller's, whose own fork() it might as well be; and the child has a copy
 * of this very stack, on which it returns. */
static int fork_by_another(void)
{
    int middle = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): wanted, see lock.h */
    if (middle != 0)
        return middle;
    int child = fork(); /* NOLINT(clang-analyzer-unix.Vfork): it is the reason for all this */
    if (child != 0)
        _exit(child < 0);
    return 0;
}

int lock_fork_aside(void)
{
    PyOS_BeforeFork();
    int r = fork_by_another();
    if (r == 0)
        PyOS_AfterFork_Child();
    else
        PyOS_AfterFork_Parent();
    return r;
}

int lock_shut(const struct box_fork *how, const void *bpf, uint32_t instructions)
{
    int r = become_session(how->uid);
    if (r != 0 || (r = limits(how)) != 0)
        return r;
    if ((r = lock_zygote()) != 0 || (r = landlock()) != 0 || (r = capabilities()) != 0)
        return r;
    const struct {
        unsigned short n;
        const void *code;
    } program = { (unsigned short)instructions, bpf };
    long s = raw3(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    return s < 0 ? fail(STEP_SECCOMP, s) : 0;
}
