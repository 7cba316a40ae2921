/* box_mount.h - the trees that a zygote and a box see. All of it runs in short-lived children of the keeper, in mount
 * namespaces of their own; nothing here ever touches the host's.
 *
 * The base tree, made once, sealed read-only, copied into every box's mount namespace:
 *
 *   /              tmpfs skeleton            ro,nosuid,nodev          /usr  the image's own   ro,nosuid,nodev
 *   /etc           the image's               ro,nosuid,nodev,noexec   /opt/sandbook  ours     ro,nosuid,nodev
 *   /dev           null zero full random urandom, links               /proc subset=pid
 *   /tmp           the zygote's, small
 *
 * A box puts its own /proc, /tmp, /dev/shm and /mnt/data on top. Nothing of the host's tree is in either; an image is
 * built once from its own inodes, so that a kernel bug that writes to the page cache hits no file of the host's. */
#ifndef BOX_MOUNT_H
#define BOX_MOUNT_H
#include "err.h"

/* Detached clones of what the base tree is made of: taken while we can still reach the paths. */
struct box_grab {
    int usr, etc, support;
    int device[5];
    int place; /* O_PATH of a folder to build on */
};
must_check int box_mount_grab(struct box_grab *g, const char *image, const char *support, struct err *e);
/* Build the base tree, make it the root, drop the host's. As pid 1 of the base pid namespace, with the ids that files
 * shall have. */
must_check int box_mount_base(const struct box_grab *g, struct err *e);

struct box_sizes {
    uint32_t uid; /* of the session, in the base's user namespace */
    uint64_t data_bytes, tmp_bytes, shm_bytes;
};
/* The session's own mounts, as pid 1 of the box. *data_fd: O_PATH of /mnt/data. */
must_check int box_mount_session(const struct box_sizes *z, int *data_fd, struct err *e);
/* A /proc of the caller's pid namespace that lies nowhere in the tree: who has the descriptor sees every process there. */
must_check int box_mount_proc(int *out, struct err *e);
#endif
