/* lay.c - folders that boxes begin with: sessions/<id>/box/<number>/, links to versions under the names they have there.
 *
 * A version is never written to again, and the box sees it through a read-only mount, so that a link is as good as a copy. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include "store_private.h"

enum { DEPTH_MAX = 20, NUMBERS_MAX = 100000 };

/* NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX ends it; the tree is ours */
static void remove_tree(int parent, const char *name, int depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    for (struct dirent *x = readdir(d); x && depth < DEPTH_MAX; x = readdir(d)) { /* NOLINT(concurrency-mt-unsafe) */
        if (strcmp(x->d_name, ".") == 0 || strcmp(x->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, x->d_name, 0) < 0 && (errno == EISDIR || errno == EPERM)) {
            remove_tree(fd, x->d_name, depth + 1);
            (void)unlinkat(fd, x->d_name, AT_REMOVEDIR);
        }
    }
    (void)closedir(d);
}

void store_remove_below(int parent, const char *name)
{
    remove_tree(parent, name, 0);
}

void store_files_unlay(struct store *s, const char *session)
{
    autofree char *path = xasprintf("sessions/%s", session);
    autoclose int fd = openat(s->dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        store_remove_below(fd, "box");
}

/* Others may look in, through the descriptor that a keeper is given; data_dir itself is closed to them. */
static int fresh_folder(int box_fd, struct err *e)
{
    char name[16];
    for (int i = 1; i < NUMBERS_MAX; i++) {
        (void)snprintf(name, sizeof name, "%d", i);
        if (mkdirat(box_fd, name, 0755) == 0)
            break;
        if (errno != EEXIST)
            return err_sys(e, ERR_STORE, errno, "cannot make a folder for the box");
    }
    int fd = openat(box_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(e, ERR_STORE, errno, "cannot open the folder for the box") : fd;
}

/* Where links can't be made. */
static int copy_file(const char *path, int fd, const char *name)
{
    enum { SLICE = 1 << 17 };
    autoclose int from = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    autoclose int to = from < 0 ? -1 : openat(fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (to < 0)
        return -1;
    if (ioctl(to, FICLONE, from) == 0)
        return 0;
    autofree char *buf = xcalloc(1, SLICE);
    for (ssize_t n; (n = read(from, buf, SLICE)) != 0;)
        if (n < 0 || write_all(to, buf, (size_t)n) < 0)
            return -1;
    return 0;
}

static int lay_one(int fd, const struct file_link *l, struct err *e)
{
    for (const char *slash = strchr(l->name, '/'); slash; slash = strchr(slash + 1, '/')) {
        autofree char *folder = xstrndup(l->name, (size_t)(slash - l->name));
        if (mkdirat(fd, folder, 0755) < 0 && errno != EEXIST)
            return err_sys(e, ERR_STORE, errno, "%.150s", folder);
    }
    if (linkat(AT_FDCWD, l->path, fd, l->name, 0) == 0 || copy_file(l->path, fd, l->name) == 0)
        return 0;
    return err_sys(e, ERR_STORE, errno, "%.150s", l->name);
}

int store_files_lay(struct store *s, const char *session, const struct file_link *links, size_t n, bool alone, int *fd,
                    struct err *e)
{
    if (alone)
        store_files_unlay(s, session);
    autoclose int box_fd = store_session_folder(s, session, "box", e);
    const int folder = box_fd < 0 ? -1 : fresh_folder(box_fd, e);
    if (folder < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (lay_one(folder, &links[i], e) < 0) {
            (void)close(folder);
            return err_wrap(e, "files for the box");
        }
    *fd = folder;
    return 0;
}
