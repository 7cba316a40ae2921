/* box_mount.c - see box_mount.h. Mount descriptors wherever a path could be meant for somebody else; plain mount(2) inside
 * the skeleton that we made ourselves and that nobody else can write to. */
#include "box_mount.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "box_mount_api.h"
#include "box_zygote.h"
#include "log.h"

static const char *const device_names[] = { "null", "zero", "full", "random", "urandom" };

static int fail(struct err *e, const char *what)
{
    return err_sys(e, ERR_SANDBOX, errno, "%s", what);
}

/* A detached clone of the mount at path. */
static int clone_tree(const char *path, uint64_t attributes, struct err *e)
{
    int fd = mount_clone(AT_FDCWD, path);
    if (fd < 0)
        return fail(e, path);
    if (mount_set(fd, attributes, -1) < 0) {
        (void)fail(e, path);
        (void)close(fd);
        return -1;
    }
    return fd;
}

int box_mount_grab(struct box_grab *g, const char *image, const char *support, struct err *e)
{
    const uint64_t ro = MOUNT_RDONLY | MOUNT_NOSUID | MOUNT_NODEV;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fail(e, "make / private");
    autofree char *usr = xasprintf("%s/usr", image);
    autofree char *etc = xasprintf("%s/etc", image);
    g->usr = clone_tree(usr, ro, e);
    g->etc = clone_tree(etc, ro | MOUNT_NOEXEC, e);
    g->support = clone_tree(support, ro, e);
    g->place = open(image, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (g->place < 0)
        return fail(e, image);
    if (g->usr < 0 || g->etc < 0 || g->support < 0)
        return err_wrap(e, "image");
    for (size_t i = 0; i < countof(device_names); i++) {
        char path[32];
        (void)snprintf(path, sizeof path, "/dev/%s", device_names[i]);
        g->device[i] = clone_tree(path, MOUNT_RDONLY | MOUNT_NOSUID | MOUNT_NOEXEC, e);
        if (g->device[i] < 0)
            return -1;
    }
    return 0;
}

/* ---- the skeleton ---- */

int box_mount_proc(int *out, struct err *e)
{
    autoclose int fs = mount_begin("proc");
    if (fs < 0 || mount_option(fs, "subset", "pid") < 0)
        return fail(e, "proc of init");
    autoclose int tree = mount_make(fs, MOUNT_NOSUID | MOUNT_NODEV | MOUNT_NOEXEC);
    *out = tree < 0 ? -1 : openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *out < 0 ? fail(e, "proc of init") : 0;
}

/* A detached, empty tmpfs. */
static int skeleton(struct err *e)
{
    autoclose int fs = mount_begin("tmpfs");
    if (fs < 0 || mount_option(fs, "size", "1m") < 0 || mount_option(fs, "nr_inodes", "256") < 0 ||
        mount_option(fs, "mode", "0755") < 0)
        return fail(e, "tmpfs for the root");
    int fd = mount_make(fs, MOUNT_NOSUID | MOUNT_NODEV);
    return fd < 0 ? fail(e, "tmpfs for the root") : fd;
}

static int furnish(int root, struct err *e)
{
    static const char *const folders[] = { "usr", "etc", "proc", "dev",      "dev/shm",
                                           "tmp", "mnt", "opt",  "mnt/data", "opt/sandbook" };
    static const struct {
        const char *name, *target;
    } links[] = {
        { "bin", "usr/bin" },
        { "sbin", "usr/sbin" },
        { "lib", "usr/lib" },
        { "lib64", "usr/lib64" },
        { "dev/fd", "/proc/self/fd" },
        { "dev/stdin", "/proc/self/fd/0" },
        { "dev/stdout", "/proc/self/fd/1" },
        { "dev/stderr", "/proc/self/fd/2" },
    };
    for (size_t i = 0; i < countof(folders); i++)
        if (mkdirat(root, folders[i], 0755) < 0)
            return fail(e, folders[i]);
    for (size_t i = 0; i < countof(links); i++)
        if (symlinkat(links[i].target, root, links[i].name) < 0)
            return fail(e, links[i].name);
    for (size_t i = 0; i < countof(device_names); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "dev/%s", device_names[i]);
        autoclose int fd = openat(root, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
        if (fd < 0)
            return fail(e, name);
    }
    return 0;
}

static int attach(int tree, int root, const char *name, struct err *e)
{
    return mount_attach(tree, root, name) < 0 ? fail(e, name) : 0;
}

/* What is at name below root, as a file system of its own: then a box's mountinfo shows these relative names, and not where on
 * the host the folder lies. One layer more than needed, since the kernel wants two where none can be written to: "tmp", which is
 * empty, and comes first, so that statfs() tells how full our own tmpfs is, and not the host's disk. */
static int retell(const char *name, uint32_t attributes, struct err *e)
{
    char layers[64];
    (void)snprintf(layers, sizeof layers, "tmp:%s", name);
    autoclose int fs = mount_begin("overlay");
    if (fs < 0 || mount_option(fs, "lowerdir", layers) < 0 || mount_option(fs, "redirect_dir", "nofollow") < 0)
        return fail(e, "overlay of the image");
    int fd = mount_make(fs, MOUNT_RDONLY | MOUNT_NOSUID | MOUNT_NODEV | attributes);
    return fd < 0 ? fail(e, "overlay of the image") : fd;
}

/* Where overlays are not to be had, the folder itself stays; the log says so. */
static int attach_folder(int tree, int root, const char *name, uint32_t attributes, struct err *e)
{
    struct err why;
    if (attach(tree, root, name, e) < 0 || fchdir(root) < 0)
        return -1;
    autoclose int told = retell(name, attributes, &why);
    if (told < 0) {
        log_info("box_host_paths_show", KV_S("folder", name), KV_E(&why));
        return 0;
    }
    if (umount2(name, MNT_DETACH) < 0)
        return fail(e, name);
    return attach(told, root, name, e);
}

static int attach_all(const struct box_grab *g, int root, struct err *e)
{
    if (attach_folder(g->usr, root, "usr", 0, e) < 0 || attach_folder(g->etc, root, "etc", MOUNT_NOEXEC, e) < 0 ||
        attach_folder(g->support, root, "opt/sandbook", 0, e) < 0)
        return -1;
    for (size_t i = 0; i < countof(device_names); i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "dev/%s", device_names[i]);
        if (attach(g->device[i], root, name, e) < 0)
            return -1;
    }
    return 0;
}

/* The new /proc before the old root goes: without a visible one the kernel refuses it (5.1). */
static int enter(int root, struct err *e)
{
    if (fchdir(root) < 0)
        return fail(e, "enter the root");
    if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid") < 0)
        return fail(e, "proc: is the host's /proc masked? (a container needs an unmasked one)");
    if (mount("tmpfs", "tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=16m,nr_inodes=256,mode=1777") < 0)
        return fail(e, "tmp");
    if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return fail(e, "pivot_root");
    return mount_set(root, MOUNT_RDONLY | MOUNT_NOSUID | MOUNT_NODEV, -1) < 0 ? fail(e, "seal the root") : 0;
}

int box_mount_base(const struct box_grab *g, struct err *e)
{
    autoclose int root = skeleton(e);
    if (root < 0)
        return -1;
    if (mount_attach(root, g->place, "") < 0)
        return fail(e, "place the root");
    if (furnish(root, e) < 0 || attach_all(g, root, e) < 0)
        return -1;
    return enter(root, e);
}

/* ---- a session's own ---- */

static int own_tmpfs(const char *path, const struct box_sizes *z, uint64_t bytes, unsigned inodes, const char *more,
                     unsigned long flags, struct err *e)
{
    char options[128];
    (void)snprintf(options, sizeof options, "size=%llu,nr_inodes=%u,uid=%u,gid=%u,%s", (unsigned long long)bytes,
                   inodes, z->uid, z->uid, more);
    return mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | flags, options) < 0 ? fail(e, path) : 0;
}

int box_mount_session(const struct box_sizes *z, int *data_fd, struct err *e)
{
    /* Over the base's /proc, which stays below: one must be visible for the kernel to allow another. */
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid,hidepid=invisible") < 0)
        return fail(e, "proc");
    if (own_tmpfs("/tmp", z, z->tmp_bytes, 4096, "mode=1777", 0, e) < 0 ||
        own_tmpfs("/dev/shm", z, z->shm_bytes, 4096, "mode=1777", MS_NOEXEC, e) < 0 ||
        own_tmpfs(BOX_DATA, z, z->data_bytes, 8192, "mode=0755", 0, e) < 0)
        return -1;
    *data_fd = open(BOX_DATA, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *data_fd < 0 ? fail(e, BOX_DATA) : 0;
}
