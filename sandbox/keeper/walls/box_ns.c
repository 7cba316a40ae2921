/* box_ns.c - see box_ns.h. The children here are forks of the keeper that live for a moment and then exec or exit; every
 * one of them is small and single-threaded, so plain system calls are safe in them.
 *
 *   base:   keeper -> B1 (unshares everything, ids) -> B2, pid 1 of the base: mounts, exec init
 *   zygote: keeper -> Z1 (joins the base) -> Z2, exec python
 *   box:    keeper -> S1 (cgroups, joins the base) -> S2 (unshares) -> S3, pid 1 of the box: mounts, exec init
 *
 * B2, Z2, S2 and S3 are made with CLONE_PARENT: the keeper is the parent of all, hears of their end, and takes them with it. */
#include "box_ns.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "box_seccomp.h"
#include "box_zygote.h"
#include "wire/box_fd.h"

enum {
    ALL_NAMESPACES = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWPID,
    UID_MAP_MAX = 32 << 10,
    NR_PIDFD_OPEN = 434,
    NR_CLOSE_RANGE = 436,
    UNSHARE_FIRST = 1 << 1, /* CLOSE_RANGE_UNSHARE */
};

/* ---- pieces ---- */

/* Says on the channel why it can't go on, and ends. */
static _Noreturn void give_up(int channel, const struct err *e)
{
    struct box_link link = { .fd = channel };
    box_send(&link, BOX_FAILED, 0, 0, e->msg, strlen(e->msg));
    _exit(1);
}

static _Noreturn void give_up_errno(int channel, const char *what)
{
    struct err e;
    (void)err_sys(&e, ERR_SANDBOX, errno, "%s", what);
    give_up(channel, &e);
}

static int socket_pair(int *ours, int *theirs, struct err *e)
{
    int pair[2];
    const int on = 1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "socketpair");
    (void)setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    *ours = pair[0];
    *theirs = pair[1];
    return 0;
}

/* A child whose parent is ours: B1's, Z1's and S1's way to hand the keeper a child that is born in another pid namespace. */
static pid_t fork_sibling(int *pidfd)
{
    unsigned long flags = (unsigned long)CLONE_PARENT | SIGCHLD | (pidfd ? (unsigned long)CLONE_PIDFD : 0);
    return (pid_t)syscall(SYS_clone, flags, NULL, pidfd, NULL, NULL);
}

/* Signals as a program expects them: these the keeper ignores, and it blocks none. */
static void reset_signals(void)
{
    static const int ignored[] = { SIGPIPE, SIGINT, SIGTERM, SIGHUP };
    for (size_t i = 0; i < countof(ignored); i++)
        (void)signal(ignored[i], SIG_DFL);
}

/* What a process keeps that is uid 0 of the base: the mask is over capability numbers. */
static int keep_capabilities(uint64_t mask)
{
    for (int cap = 0; cap < 64; cap++)
        if (!(mask >> cap & 1) && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
            return -1;
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[2] = { { 0 } };
    if (syscall(SYS_capget, &head, data) < 0)
        return -1;
    for (int i = 0; i < 2; i++) { /* a service may have been given fewer */
        data[i].permitted &= (uint32_t)(mask >> (32 * i));
        data[i].effective = data[i].permitted;
        data[i].inheritable = 0;
    }
    return (int)syscall(SYS_capset, &head, data);
}

/* Numbers from first on are moved into place, everything above is closed. Sources must be above the targets. */
static int place_descriptors(const int *fds, int n, int first)
{
    for (int i = 0; i < n; i++)
        if (dup3(fds[i], first + i, 0) < 0)
            return -1;
    return (int)syscall(NR_CLOSE_RANGE, first + n, ~0U, 0);
}

static int become_base_root(bool groups)
{
    if (groups && setgroups(0, NULL) < 0)
        return -1;
    return setresgid(0, 0, 0) < 0 ? -1 : setresuid(0, 0, 0);
}

static int write_text(const char *path, const char *text)
{
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -1 : write_all(fd, text, strlen(text));
}

/* execve() writes to none of it, but its prototype has no const. */
static void execute(const char *path, const char *const *argv, const char *const *env)
{
    char *const *a, *const *e;
    memcpy(&a, &argv, sizeof argv);
    memcpy(&e, &env, sizeof env);
    (void)execve(path, a, e);
}

/* ---- init, of the base or of a box ---- */

static _Noreturn void exec_init(int control, int proc)
{
    static const char *const argv[] = { "init", NULL };
    static const char *const env[] = { NULL };
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int channel = fcntl(control, F_DUPFD_CLOEXEC, 16); /* out of the way of the targets */
    const int fds[] = { null, null, null, channel, fcntl(proc, F_DUPFD_CLOEXEC, 16) };
    _Static_assert(BOX_INIT_CONTROL == 3 && BOX_INIT_PROC == 4, "the row above");
    if (null < 0 || channel < 0 || fds[4] < 0 || place_descriptors(fds, countof(fds), 0) < 0)
        _exit(1);
    execute(BOX_SUPPORT "/init", argv, env);
    give_up_errno(BOX_INIT_CONTROL, BOX_SUPPORT "/init");
}

/* ---- the base ---- */

/* B2 */
static _Noreturn void base_main(int channel, const struct box_grab *grab)
{
    struct err e;
    int proc = -1;
    if (box_mount_base(grab, &e) < 0 || box_mount_proc(&proc, &e) < 0)
        give_up(channel, &e);
    if (sethostname("sandbox", 7) < 0)
        give_up_errno(channel, "hostname");
    reset_signals();
    if (keep_capabilities(0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        give_up_errno(channel, "capabilities of the base's init");
    exec_init(channel, proc);
}

struct base_start {
    const struct box_base_how *how;
    bool root;
    int channel, sync; /* sync: "I have unshared" one way, "your ids are mapped" the other, then B2's pid */
};

/* B1 */
static _Noreturn void base_child(const struct base_start *s)
{
    struct err e;
    struct box_grab grab;
    char go = 0;
    (void)setsid();
    (void)umask(022);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* else a plain user's keeper may not write our maps */
    if (s->root && setgroups(0, NULL) < 0)
        give_up_errno(s->channel, "setgroups");
    if (unshare(CLONE_NEWUSER | ALL_NAMESPACES) < 0)
        give_up_errno(s->channel, "user namespaces");
    if (write_all(s->sync, "u", 1) < 0 || read(s->sync, &go, 1) != 1 || go != 'm')
        _exit(1);
    if (box_mount_grab(&grab, s->how->image, s->how->support, &e) < 0)
        give_up(s->channel, &e);
    if (become_base_root(s->root) < 0)
        give_up_errno(s->channel, "uid of the base");
    pid_t pid = fork_sibling(NULL);
    if (pid == 0)
        base_main(s->channel, &grab);
    if (pid < 0)
        give_up_errno(s->channel, "fork");
    _exit(write_all(s->sync, &pid, sizeof pid) < 0);
}

/* As root a range; else the one id that everybody may map. */
static int map_ids(const struct base_start *s, pid_t pid, struct err *e)
{
    char path[64], line[64];
    static const char *const kinds[] = { "uid_map", "gid_map" };
    (void)snprintf(path, sizeof path, "/proc/%d/setgroups", (int)pid);
    if (!s->root && write_text(path, "deny") < 0)
        return err_sys(e, ERR_SANDBOX, errno, "setgroups");
    for (int i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, kinds[i]);
        if (s->root)
            (void)snprintf(line, sizeof line, "0 %u %d", s->how->uid_base, BOX_UID_RANGE);
        else
            (void)snprintf(line, sizeof line, "0 %u 1", i == 0 ? geteuid() : getegid());
        if (write_text(path, line) < 0)
            return err_sys(e, ERR_SANDBOX, errno, "%s", kinds[i]);
    }
    return 0;
}

/* The reason that a child left on its channel before it ended. */
static int last_words(int channel, struct err *e)
{
    autofree struct box_msg *msg = xcalloc(1, sizeof *msg);
    if (box_recv(channel, msg, false) == BOX_RECV_FRAME && msg->head.type == BOX_FAILED)
        return err_set(e, ERR_SANDBOX, "%.*s", (int)msg->head.len, (const char *)msg->payload);
    return err_set(e, ERR_SANDBOX, "a helper ended without a word");
}

static int base_sync(struct box_base *b, const struct base_start *s, int sync, pid_t child, struct err *e)
{
    char word = 0;
    int status = 0;
    bool up = read(sync, &word, 1) == 1;
    if (up && map_ids(s, child, e) < 0) {
        (void)kill(child, SIGKILL);
        (void)waitpid(child, &status, 0);
        return -1;
    }
    up = up && write_all(sync, "m", 1) == 0 && read(sync, &b->pid, sizeof b->pid) == (ssize_t)sizeof b->pid;
    (void)waitpid(child, &status, 0);
    return up ? 0 : last_words(b->channel.fd, e);
}

bool box_ids_are_there(const char *uid_map, uint32_t first, int64_t *zero)
{
    uint64_t want = first;
    *zero = -1;
    for (const char *line = uid_map; *line;) {
        char *at = NULL;
        uint64_t inside = strtoull(line, &at, 10), outside = strtoull(at, &at, 10), n = strtoull(at, &at, 10);
        if (inside == 0 && n > 0)
            *zero = (int64_t)outside;
        if (want >= inside && want < inside + n) /* a range in pieces has them in order */
            want = inside + n;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return want >= (uint64_t)first + BOX_UID_RANGE;
}

/* Has the keeper ids to give? 1, 0, or -1: it is root, has none, and may be the host's. */
static int has_ids(uint32_t uid_base, struct err *e)
{
    int64_t zero = -1;
    AUTO(str_clear) struct str map = STR_INIT(UID_MAP_MAX);
    if (geteuid() != 0)
        return 0;
    if (uid_base == 0)
        return err_set(e, ERR_CONFIG, "uid base is 0: boxes never run as the host's root");
    if (str_read_file(&map, "/proc/self/uid_map", e) < 0)
        return -1;
    if (box_ids_are_there(str_peek(&map), uid_base, &zero))
        return 1;
    if (zero != 0)
        return 0;
    return err_set(e, ERR_CONFIG,
                   "this user namespace has none of the ids %u to %u, and its root may be the host's: map that range, "
                   "choose another with box.uid_base, or run as another user",
                   uid_base, uid_base + BOX_UID_RANGE - 1);
}

int box_base_start(struct box_base *b, const struct box_base_how *how, struct err *e)
{
    int sync[2], theirs = -1;
    *b = (struct box_base){
        .pidfd = -1, .door_fd = -1, .channel = BOX_LINK_INIT, .once = how->once, .uid_base = how->uid_base
    };
    int ids = has_ids(how->uid_base, e);
    if (ids < 0)
        return -1;
    b->root = ids > 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sync) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "socketpair");
    autoclose int ours = sync[0];
    autoclose int other = sync[1];
    if (socket_pair(&b->channel.fd, &theirs, e) < 0)
        return -1;
    autoclose int channel = theirs;
    const struct base_start s = { .how = how, .root = b->root, .channel = channel, .sync = other };
    pid_t child = fork();
    if (child < 0)
        return err_sys(e, ERR_SANDBOX, errno, "fork");
    if (child == 0) {
        (void)close(ours);
        base_child(&s);
    }
    (void)close(box_fd_take(&other));
    if (base_sync(b, &s, ours, child, e) < 0)
        return -1;
    b->pidfd = (int)syscall(NR_PIDFD_OPEN, b->pid, 0);
    b->door_fd = b->pidfd < 0 ? -1 : fcntl(b->pidfd, F_DUPFD_CLOEXEC, b->pidfd + 1);
    return b->door_fd < 0 ? err_sys(e, ERR_SANDBOX, errno, "pidfd of the base") : 0;
}

void box_base_stop(struct box_base *b)
{
    if (b->pidfd >= 0) {
        (void)syscall(SYS_pidfd_send_signal, b->pidfd, SIGKILL, NULL, 0);
        /* The kernel lets pid 1 of a namespace go only when everything in it was reaped, and the inits of boxes are ours. */
        for (pid_t got = 0; got != b->pid && got >= 0;)
            got = waitpid(-1, NULL, 0);
        (void)close(b->pidfd);
        (void)close(b->door_fd);
    }
    b->pidfd = b->door_fd = -1;
    box_link_close(&b->channel);
}

uint32_t box_host_uid(const struct box_base *b, uint32_t slot_uid)
{
    return b->root ? b->uid_base + slot_uid : geteuid();
}

/* Rights over what lives in the base come from having made it, not from these. */
int box_keeper_confine(struct err *e)
{
    const uint64_t host = 1ULL << CAP_SETUID | 1ULL << CAP_SETGID | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_FOWNER |
                          1ULL << CAP_SYS_ADMIN; /* FOWNER: box_session_mend_folder */
    if (geteuid() == 0 && keep_capabilities(host) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "capabilities of the keeper");
    return box_seccomp_confine(e);
}

/* ---- a zygote ---- */

static const char HOME_IS_DATA[] = "HOME=" BOX_DATA, ZYGOTE[] = BOX_SUPPORT "/zygote.py";

static _Noreturn void exec_zygote(bool once)
{
    const char *const argv[] = { BOX_PYTHON, "-I", ZYGOTE, once ? "--once" : NULL, NULL };
    static const char *const env[] = {
        "PATH=/usr/local/bin:/usr/bin:/bin",
        HOME_IS_DATA,
        "LANG=C.UTF-8",
        "TZ=UTC",
        "MPLBACKEND=Agg",
        "MPLCONFIGDIR=/tmp/mpl",
        "XDG_CACHE_HOME=/tmp/.cache",
        "IPYTHONDIR=/tmp/.ipython",
        "PYTHONDONTWRITEBYTECODE=1",
        "OPENBLAS_NUM_THREADS=1",
        "OMP_NUM_THREADS=1",
        NULL,
    };
    execute(argv[0], argv, env);
    give_up_errno(BOX_ZYGOTE_CONTROL, "start " BOX_PYTHON " of the image");
}

/* Z2 */
static _Noreturn void zygote_main(bool once, int control, int bpf)
{
    const uint64_t caps = 1U << CAP_SYS_ADMIN | 1U << CAP_SYS_CHROOT | 1U << CAP_SETUID | 1U << CAP_SETGID |
                          1U << CAP_SETPCAP | 1U << CAP_KILL | 1U << CAP_SETFCAP;
    (void)setsid();
    reset_signals();
    if (keep_capabilities(caps) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        give_up_errno(control, "capabilities of the zygote");
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int fds[] = { fcntl(control, F_DUPFD_CLOEXEC, 16), fcntl(bpf, F_DUPFD_CLOEXEC, 16) };
    if (null < 0 || dup3(null, 0, 0) < 0 || dup3(2, 1, 0) < 0 || fds[0] < 0 || fds[1] < 0 ||
        lseek(fds[1], 0, SEEK_SET) < 0 || place_descriptors(fds, 2, BOX_ZYGOTE_CONTROL) < 0)
        give_up_errno(control, "descriptors of the zygote");
    exec_zygote(once);
}

/* Z1 */
static _Noreturn void zygote_first(const struct box_base *b, int control, int bpf, pid_t *second)
{
    if (setns(b->pidfd, CLONE_NEWUSER | ALL_NAMESPACES) < 0 || become_base_root(b->root) < 0)
        give_up_errno(control, "join the base");
    (void)umask(022);
    pid_t pid = fork_sibling(NULL);
    if (pid == 0)
        zygote_main(b->once, control, bpf);
    if (pid < 0)
        give_up_errno(control, "fork");
    *second = pid;
    _exit(0);
}

/* One page for the keeper's life, in which a child leaves the number of the one that it made for us. */
static pid_t *shared_pid(void)
{
    static pid_t *second;
    if (!second) {
        second = mmap(NULL, sizeof *second, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (second == MAP_FAILED)
            abort();
    }
    *second = 0;
    return second;
}

int box_zygote_start(const struct box_base *b, int bpf_fd, int *pidfd, struct box_link *channel, struct err *e)
{
    int ours = -1, theirs = -1;
    pid_t *second = shared_pid();
    if (socket_pair(&ours, &theirs, e) < 0)
        return -1;
    autoclose int near = ours;
    autoclose int far = theirs;
    pid_t first = fork();
    if (first < 0)
        return err_sys(e, ERR_SANDBOX, errno, "fork");
    if (first == 0)
        zygote_first(b, far, bpf_fd, second);
    (void)waitpid(first, NULL, 0);
    if (*second == 0)
        return last_words(near, e);
    *pidfd = (int)syscall(NR_PIDFD_OPEN, *second, 0);
    if (*pidfd < 0)
        return err_sys(e, ERR_SANDBOX, errno, "pidfd of the zygote");
    *channel = (struct box_link){ .fd = box_fd_take(&near) };
    return 0;
}

/* ---- a box ---- */

struct init_start {
    const struct box_base *base;
    const struct box_sizes *sizes;
    int channel;
    pid_t *second; /* shared with the keeper: S2's pid, for reaping */
};

/* S3 */
static _Noreturn void init_main(const struct init_start *s)
{
    struct err e;
    int data_fd = -1, proc = -1;
    if (sethostname("sandbox", 7) < 0)
        give_up_errno(s->channel, "hostname");
    if (box_mount_session(s->sizes, &data_fd, &e) < 0 || box_mount_proc(&proc, &e) < 0)
        give_up(s->channel, &e);
    (void)setsid();
    const struct box_frame built = { .type = BOX_BUILT };
    struct box_link link = { .fd = s->channel };
    box_send_fds(&link, &built, NULL, &data_fd, 1);
    reset_signals();
    /* Executing as uid 0 of the base gives back what the bounding set holds: CAP_KILL, to end heads of other uids. */
    if (keep_capabilities(1U << CAP_KILL | 1U << CAP_SETPCAP) < 0 || prctl(PR_CAPBSET_DROP, CAP_SETPCAP, 0, 0, 0) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        give_up_errno(s->channel, "capabilities of a box's init");
    exec_init(s->channel, proc);
}

/* S2, in the base's pid namespace: only here can a namespace below it be made. */
static _Noreturn void init_second(const struct init_start *s)
{
    if (unshare(ALL_NAMESPACES) < 0)
        give_up_errno(s->channel, "namespaces of a box");
    int pidfd = -1;
    pid_t pid = fork_sibling(&pidfd);
    if (pid == 0)
        init_main(s);
    if (pid < 0)
        give_up_errno(s->channel, "fork");
    const struct box_frame born = { .type = BOX_FORKED };
    struct box_link link = { .fd = s->channel };
    box_send_fds(&link, &born, NULL, &pidfd, 1);
    _exit(0);
}

/* S1 */
static _Noreturn void init_first(const struct init_start *s, box_enter_fn *enter, void *ud)
{
    if (enter(ud) < 0)
        give_up_errno(s->channel, "cgroups");
    if (setns(s->base->pidfd, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) < 0 || become_base_root(s->base->root) < 0)
        give_up_errno(s->channel, "join the base");
    (void)umask(022);
    pid_t pid = fork_sibling(NULL);
    if (pid == 0)
        init_second(s);
    if (pid < 0)
        give_up_errno(s->channel, "fork");
    *s->second = pid;
    _exit(0);
}

/* One frame until BOX_FORKED: S3 may have spoken before S2 told its number. 1: that was it; 0: go on; -1: it failed. */
static int init_word(struct box_init *out, struct box_msg *msg, bool *failed, struct err *e)
{
    if (box_recv(out->channel.fd, msg, true) != BOX_RECV_FRAME)
        return *failed ? -1 : err_set(e, ERR_SANDBOX, "the making of a box ended without a word");
    switch (msg->head.type) {
    case BOX_FORKED:
        if (msg->fd_n != 1)
            return err_set(e, ERR_SANDBOX, "a box without a descriptor");
        out->pidfd = box_fd_take(&msg->fds[0]);
        return 1;
    case BOX_BUILT:
        if (msg->fd_n == 1 && out->data_fd < 0)
            out->data_fd = box_fd_take(&msg->fds[0]);
        out->pid = msg->pid;
        return 0;
    case BOX_SWEPT: out->up = true; return 0;
    default: /* BOX_FAILED; perhaps there is still a process to be waited for */
        *failed = true;
        (void)err_set(e, ERR_SANDBOX, "%.*s", (int)msg->head.len, (const char *)msg->payload);
        return 0;
    }
}

/* S1. Of a thousand sessions the keeper has ten thousand descriptors. To copy and close them, three times over, would take longer than all the
 * rest, so it shares the table until it has one of its own without them; the keeper waits meanwhile (init_born). */
static pid_t fork_first(const struct box_base *b, int channel)
{
    if (dup3(channel, b->door_fd, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = (pid_t)syscall(SYS_clone, (unsigned long)CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0 && syscall(NR_CLOSE_RANGE, b->door_fd + 1, ~0U, UNSHARE_FIRST) < 0)
        _exit(1);
    return pid;
}

static int init_born(struct box_init *out, pid_t first, const pid_t *second, struct err *e)
{
    autofree struct box_msg *msg = xcalloc(1, sizeof *msg);
    (void)waitpid(first, NULL, 0);
    if (*second > 0)
        (void)waitpid(*second, NULL, 0); /* S2 has sent all it had */
    bool failed = false;
    int r = 0;
    while (r == 0) {
        r = init_word(out, msg, &failed, e);
        box_msg_clear(msg);
    }
    if (r > 0 && failed) {
        siginfo_t end;
        (void)waitid(P_PIDFD, (id_t)out->pidfd, &end, WEXITED);
        (void)close(box_fd_take(&out->pidfd));
    }
    return r < 0 || failed ? -1 : 0;
}

int box_init_start(struct box_init *out, const struct box_base *b, const struct box_sizes *z, box_enter_fn *enter,
                   void *ud, struct err *e)
{
    pid_t *second = shared_pid();
    int theirs = -1;
    *out = (struct box_init){ .pidfd = -1, .data_fd = -1, .channel = BOX_LINK_INIT };
    if (socket_pair(&out->channel.fd, &theirs, e) < 0)
        return -1;
    autoclose int channel = theirs;
    const struct init_start s = { .base = b, .sizes = z, .channel = b->door_fd, .second = second };
    pid_t first = fork_first(b, channel);
    if (first == 0)
        init_first(&s, enter, ud);
    if (first < 0)
        (void)err_sys(e, ERR_SANDBOX, errno, "fork");
    bool born = first > 0 && init_born(out, first, second, e) == 0;
    (void)dup3(b->pidfd, b->door_fd, O_CLOEXEC); /* else the channel would not end with its init */
    if (born)
        return 0;
    box_link_close(&out->channel);
    if (out->data_fd >= 0)
        (void)close(out->data_fd);
    return -1;
}
