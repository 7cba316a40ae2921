/* box_data.c - see box_data.h. Mount descriptors throughout; the only paths are names of our own in a tmpfs of our own. */
#include "box_data.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "box_collect.h"
#include "box_zygote.h"
#include "walls/box_mount_api.h"
#include "wire/box_fd.h"

enum { DATA_INODES = 8192, NR_OPENAT2 = 437 };

static const uint64_t LOWER_FLAGS = MOUNT_RDONLY | MOUNT_NOSUID | MOUNT_NODEV;

static int fail(struct err *e, const char *what)
{
    return err_sys(e, ERR_SANDBOX, errno, "%s", what);
}

/* ---- lower ---- */

static int write_map(pid_t pid, const char *kind, uint32_t from, uint32_t to)
{
    char path[64], line[48];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, kind);
    int n = snprintf(line, sizeof line, "%u %u 1", from, to);
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -1 : write_all(fd, line, (size_t)n);
}

static int map_of(pid_t pid, const struct stat *owner, uint32_t to)
{
    char path[64];
    if (write_map(pid, "uid_map", owner->st_uid, to) < 0 || write_map(pid, "gid_map", owner->st_gid, to) < 0)
        return -1;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* A user namespace that says: who owns this on the disk shows as `to`. It needs a process only to be born. */
static int id_map(const struct stat *owner, uint32_t to)
{
    int born[2];
    char byte = 0;
    if (pipe2(born, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        /* rights in a new namespace hide a process from its parent */
        if (unshare(CLONE_NEWUSER) < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 || write_all(born[1], "b", 1) < 0)
            _exit(1);
        for (;;)
            (void)pause();
    }
    (void)close(born[1]);
    int fd = pid > 0 && read(born[0], &byte, 1) == 1 ? map_of(pid, owner, to) : -1;
    const int error = errno;
    (void)close(born[0]);
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    errno = error;
    return fd;
}

/* Older kernels know no nosymfollow; we put no link there anyway. */
static int lower_flags(int tree, uint64_t more, int userns_fd)
{
    if (mount_set(tree, LOWER_FLAGS | MOUNT_NOSYMFOLLOW | more, userns_fd) == 0)
        return 0;
    return mount_set(tree, LOWER_FLAGS | more, userns_fd);
}

/* As the host's root: straight from the descriptor. */
static int lower_as_root(const struct box_data_how *how, struct err *e)
{
    struct stat st;
    const uint32_t uid = box_host_uid(how->base, how->sizes.uid);
    if (fstat(how->files_fd, &st) < 0)
        return fail(e, "folder of the files");
    autoclose int tree = mount_clone(how->files_fd, "");
    if (tree < 0)
        return fail(e, "clone the folder of the files");
    autoclose int userns_fd = st.st_uid == uid ? -1 : id_map(&st, uid);
    if (userns_fd < 0 && st.st_uid != uid)
        return fail(e, "ids of the files");
    if (lower_flags(tree, userns_fd < 0 ? 0 : MOUNT_IDMAP, userns_fd) < 0)
        return fail(e, "the file system of the files maps no ids");
    return box_fd_take(&tree);
}

/* Where the folder is, to find it again in a namespace where we may clone it. */
static int path_of(int fd, char *path, size_t n)
{
    char link[40];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, n - 1);
    path[len < 0 ? 0 : len] = '\0';
    return len <= 0 || path[0] != '/' ? -1 : 0;
}

/* A path only finds it; that it is the very folder is checked. */
static int lower_as_user(const struct box_data_how *how, const char *path, struct err *e)
{
    const struct open_how plain = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
    struct stat wanted, found;
    autoclose int fd = (int)syscall(NR_OPENAT2, AT_FDCWD, path, &plain, sizeof plain);
    if (fd < 0 || fstat(fd, &found) < 0 || fstat(how->files_fd, &wanted) < 0)
        return fail(e, "find the folder of the files");
    if (found.st_dev != wanted.st_dev || found.st_ino != wanted.st_ino)
        return err_set(e, ERR_SANDBOX, "the folder of the files is another one");
    if (found.st_uid != box_host_uid(how->base, how->sizes.uid) && found.st_uid != geteuid())
        return err_set(e, ERR_SANDBOX, "the files belong to somebody else");
    autoclose int tree = mount_clone(fd, "");
    if (tree < 0 || lower_flags(tree, 0, -1) < 0)
        return fail(e, "clone the folder of the files");
    return box_fd_take(&tree);
}

/* ---- a place of its own to build on ---- */

static int become_base_root(bool groups)
{
    if (groups && setgroups(0, NULL) < 0)
        return -1;
    return setresgid(0, 0, 0) < 0 ? -1 : setresuid(0, 0, 0);
}

/* A tmpfs for files of the session. */
static int bounded_tmpfs(uint64_t bytes, uint32_t owner)
{
    char size[32], inodes[16], id[16];
    (void)snprintf(size, sizeof size, "%llu", (unsigned long long)bytes);
    (void)snprintf(inodes, sizeof inodes, "%d", DATA_INODES);
    (void)snprintf(id, sizeof id, "%u", owner);
    autoclose int fs = mount_begin("tmpfs");
    if (fs < 0 || mount_option(fs, "size", size) < 0 || mount_option(fs, "nr_inodes", inodes) < 0 ||
        mount_option(fs, "mode", "0755") < 0 || mount_option(fs, "uid", id) < 0 || mount_option(fs, "gid", id) < 0)
        return -1;
    return mount_make(fs, MOUNT_NOSUID | MOUNT_NODEV);
}

/* Into a copy of the host's mount namespace that belongs to the base's user namespace. *place: that folder, there. */
static int enter_base(const struct box_data_how *how, int *place, struct err *e)
{
    if (setns(how->base->pidfd, CLONE_NEWUSER) < 0 || unshare(CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fail(e, "a mount namespace");
    *place = open(how->place, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *place < 0 ? fail(e, how->place) : 0;
}

/* The tmpfs with lower in its place: what an overlay can be made of by names. It is the working folder afterwards. */
static int lay_out(int place, int lower, const struct box_sizes *z, struct err *e)
{
    static const char *const folders[] = { "lower", "up", "work" };
    autoclose int root = bounded_tmpfs(z->data_bytes, 0);
    if (root < 0 || mount_attach(root, place, "") < 0 || fchdir(root) < 0)
        return fail(e, "tmpfs for the files");
    for (size_t i = 0; i < countof(folders); i++)
        if (mkdir(folders[i], 0755) < 0)
            return fail(e, folders[i]);
    if (chown("up", z->uid, z->uid) < 0 || (lower >= 0 && mount_attach(lower, AT_FDCWD, "lower") < 0))
        return fail(e, "lay out the overlay");
    return 0;
}

/* userxattr: what the overlay notes beside files it may note without the host's rights. */
static int overlay(struct err *e)
{
    autoclose int fs = mount_begin("overlay");
    if (fs < 0 || mount_option(fs, "lowerdir", "lower") < 0 || mount_option(fs, "upperdir", "up") < 0 ||
        mount_option(fs, "workdir", "work") < 0 || mount_option(fs, "userxattr", NULL) < 0)
        return fail(e, "overlay");
    int fd = mount_make(fs, MOUNT_NOSUID | MOUNT_NODEV);
    return fd < 0 ? fail(e, "overlay") : fd;
}

/* Without it a folder that was removed could not be made again (tmpfs before 6.6). */
static int notes_work(struct err *e)
{
    return syscall(SYS_setxattr, "up", "user.overlay.probe", "y", 1, 0) < 0 ||
                   syscall(SYS_removexattr, "up", "user.overlay.probe") < 0
               ? fail(e, "attributes on a tmpfs")
               : 0;
}

/* ---- in the child ---- */

static _Noreturn void say(int channel, const struct err *e)
{
    struct box_link link = { .fd = channel };
    box_send(&link, BOX_FAILED, 0, 0, e->msg, strlen(e->msg));
    _exit(1);
}

/* The last step, for a detached mount: over whatever the box has there. */
static int into_box(const struct box_data_how *how, int mount_fd, struct err *e)
{
    if (setns(how->init_pidfd, CLONE_NEWNS) < 0)
        return fail(e, "enter the box");
    (void)umount2(BOX_DATA, MNT_DETACH);
    return mount_attach(mount_fd, AT_FDCWD, BOX_DATA) < 0 ? fail(e, "attach " BOX_DATA) : 0;
}

static void hand_over(int channel, int upper_fd, struct err *e)
{
    const struct box_frame built = { .type = BOX_BUILT };
    struct box_link link = { .fd = channel };
    const int fds[2] = { open(BOX_DATA, O_PATH | O_DIRECTORY | O_CLOEXEC), upper_fd };
    if (fds[0] < 0) {
        (void)fail(e, BOX_DATA);
        say(channel, e);
    }
    box_send_fds(&link, &built, NULL, fds, upper_fd < 0 ? 1 : 2);
    _exit(0);
}

static int build_overlay(const struct box_data_how *how, int *upper_fd, struct err *e)
{
    char path[PATH_MAX];
    const bool root = how->base->root;
    if (!root && how->files_fd >= 0 && path_of(how->files_fd, path, sizeof path) < 0)
        return err_set(e, ERR_SANDBOX, "the folder of the files has no path");
    autoclose int lower = root && how->files_fd >= 0 ? lower_as_root(how, e) : -1;
    autoclose int place = -1;
    if ((root && how->files_fd >= 0 && lower < 0) || enter_base(how, &place, e) < 0)
        return -1;
    if (!root && how->files_fd >= 0 && (lower = lower_as_user(how, path, e)) < 0)
        return -1;
    if (become_base_root(root) < 0)
        return fail(e, "join the base");
    if (lay_out(place, lower, &how->sizes, e) < 0 || notes_work(e) < 0)
        return -1;
    *upper_fd = open("up", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *upper_fd < 0 ? fail(e, "up") : overlay(e);
}

static _Noreturn void overlay_child(const struct box_data_how *how, int channel)
{
    struct err e;
    int upper_fd = -1;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)umask(022);
    if (how->enter && how->enter(how->ud) < 0) {
        (void)fail(&e, "control group");
        say(channel, &e);
    }
    int fd = build_overlay(how, &upper_fd, &e);
    if (fd < 0)
        say(channel, &e);
    if (how->init_pidfd < 0) /* a probe */
        _exit(0);
    if (into_box(how, fd, &e) < 0)
        say(channel, &e);
    hand_over(channel, upper_fd, &e);
    _exit(1);
}

static _Noreturn void tmpfs_child(const struct box_data_how *how, int channel)
{
    struct err e;
    int place = -1;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)umask(022);
    if (enter_base(how, &place, &e) < 0)
        say(channel, &e);
    if (become_base_root(how->base->root) < 0) {
        (void)fail(&e, "join the base");
        say(channel, &e);
    }
    int fd = bounded_tmpfs(how->sizes.data_bytes, how->sizes.uid);
    if (fd < 0)
        (void)fail(&e, "tmpfs for the files");
    if (fd < 0 || into_box(how, fd, &e) < 0)
        say(channel, &e);
    hand_over(channel, -1, &e);
    _exit(1);
}

/* ---- copying, where there is no overlay ---- */

/* Ids of what is made; what is read is read with the keeper's. */
static void make_as(uint32_t id)
{
    (void)setfsgid(id);
    (void)setfsuid(id);
}

/* The folders above path, which the daemon's folder has and so may we. */
static void make_folders(int data_fd, const char *path)
{
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        autofree char *folder = xstrndup(path, (size_t)(slash - path));
        (void)mkdirat(data_fd, folder, 0755);
    }
}

static int copy_one(const struct box_data_how *how, int data_fd, const char *path, uint64_t *left)
{
    uint64_t bytes = 0;
    autoclose int from = box_entry_open(how->files_fd, path, &bytes);
    if (from < 0)
        return errno;
    if (bytes > *left)
        return ENOSPC;
    *left -= bytes;
    if (how->base->root)
        make_as(box_host_uid(how->base, how->sizes.uid));
    make_folders(data_fd, path);
    const struct box_put p = { .name = path, .data_fd = data_fd, .from_fd = from, .max_bytes = how->sizes.data_bytes };
    int r = box_put(&p);
    if (how->base->root)
        make_as(geteuid());
    return r;
}

/* What did not fit, for who will miss it; in the child, so that the pages count as the session's. */
static _Noreturn void copy_child(const struct box_data_how *how, int data_fd, int channel)
{
    struct box_listing l = { 0 };
    AUTO(str_clear) struct str missing = STR_INIT(160);
    struct err e;
    uint64_t left = how->sizes.data_bytes;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)umask(022);
    if (how->enter && how->enter(how->ud) < 0)
        _exit(1);
    box_list(&l, how->files_fd, BOX_LIST_HIDDEN);
    for (size_t i = 0; i < l.n; i++)
        if (copy_one(how, data_fd, l.v[i].path, &left) != 0)
            str_printf(&missing, "%s%s", missing.len ? ", " : "", l.v[i].path);
    if (!missing.len && !missing.overflow)
        _exit(0);
    (void)err_set(&e, ERR_SANDBOX, "%s%s", str_peek(&missing), missing.overflow ? " and more" : "");
    say(channel, &e);
}

/* ---- in the keeper ---- */

/* How a child ended: 0 with what it handed over, or -1 with its last words. */
static int child_end(pid_t pid, int channel, struct box_data *out, struct err *e)
{
    int status = 0;
    autofree struct box_msg *msg = xcalloc(1, sizeof *msg);
    if (pid < 0)
        return fail(e, "fork");
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    enum box_recv got = box_recv(channel, msg, true);
    if (got == BOX_RECV_FRAME && msg->head.type == BOX_BUILT && msg->fd_n >= 1) {
        out->data_fd = box_fd_take(&msg->fds[0]);
        out->upper_fd = msg->fd_n > 1 ? box_fd_take(&msg->fds[1]) : -1;
    } else if (got == BOX_RECV_FRAME && msg->head.type == BOX_FAILED) {
        return err_set(e, ERR_SANDBOX, "%.*s", (int)msg->head.len, (const char *)msg->payload);
    }
    if (got == BOX_RECV_FRAME)
        box_msg_clear(msg);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : err_set(e, ERR_SANDBOX, "a helper ended without a word");
}

enum child { CHILD_OVERLAY, CHILD_TMPFS, CHILD_COPY };

static int run_child(enum child which, const struct box_data_how *how, struct box_data *out, struct err *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return fail(e, "socketpair");
    pid_t pid = fork();
    if (pid == 0 && which == CHILD_OVERLAY)
        overlay_child(how, pair[1]);
    if (pid == 0 && which == CHILD_TMPFS)
        tmpfs_child(how, pair[1]);
    if (pid == 0)
        copy_child(how, out->data_fd, pair[1]);
    (void)close(pair[1]);
    int r = child_end(pid, pair[0], out, e);
    (void)close(pair[0]);
    return r;
}

int box_data_mount(struct box_data *out, const struct box_data_how *how, struct err *e)
{
    struct err missing;
    struct stat st;
    if (how->files_fd >= 0 && (fstat(how->files_fd, &st) < 0 || !S_ISDIR(st.st_mode)))
        return err_set(e, ERR_DATA, "not a folder");
    *out = (struct box_data){ .data_fd = -1, .upper_fd = -1 };
    if (run_child(CHILD_OVERLAY, how, out, e) == 0)
        return 0;
    (void)snprintf(out->copied, sizeof out->copied, "%.190s", e->msg);
    if (run_child(CHILD_TMPFS, how, out, e) < 0)
        return -1;
    if (how->files_fd >= 0 && run_child(CHILD_COPY, how, out, &missing) < 0)
        (void)snprintf(out->missing, sizeof out->missing, "%.190s", missing.msg);
    return 0;
}

int box_data_probe(const struct box_base *base, const char *place, struct err *e)
{
    struct box_data none = { .data_fd = -1, .upper_fd = -1 };
    const struct box_data_how how = {
        .base = base, .place = place, .init_pidfd = -1, .files_fd = -1, .sizes = { .data_bytes = 1 << 20 }
    };
    return run_child(CHILD_OVERLAY, &how, &none, e);
}
