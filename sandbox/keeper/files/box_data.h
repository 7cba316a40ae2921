/* box_data.h - /mnt/data of a session that has files already.
 *
 *   lower   the daemon's folder of durable files, as a descriptor: read-only, nosuid, nodev, nosymfollow; its owner shows as
 *           the session's own id (an id-mapped mount), so that a person's code may change what a person sent
 *   upper   a tmpfs, bounded in bytes and inodes; what a cell changes lies here and nowhere else
 *
 * An overlay of both is made by a short-lived child, in a mount namespace of its own and with the rights of the base user
 * namespace only, never the host's, and is moved into the box. Nothing but the overlay is ever seen there: lower and upper
 * have no place in the box's tree. It works for a box that stands already, and again for one that has an older /mnt/data.
 *
 * Where the kernel refuses an overlay in a user namespace, or cannot map the owner's id, the files are copied into a plain tmpfs
 * instead: the same to whoever looks, but for the time and the memory. What does not fit is named. */
#ifndef BOX_DATA_H
#define BOX_DATA_H
#include "walls/box_ns.h"

struct box_data_how {
    const struct box_base *base;
    const char *place; /* a folder of the host's that is always there: the child hides it from itself to build on it */
    int init_pidfd;    /* of the box */
    int files_fd;      /* borrowed: the folder, open for reading; -1: no files yet */
    struct box_sizes sizes; /* uid and data_bytes */
    box_enter_fn *enter;    /* into the session's control group: its files count as its memory */
    void *ud;
};

struct box_data {
    int data_fd;       /* O_PATH of /mnt/data */
    int upper_fd;      /* O_PATH of what cells change; -1: /mnt/data is no overlay */
    char copied[200];  /* why it is none; "": it is one */
    char missing[200]; /* files that did not fit; "": none */
};

/* Takes a few milliseconds, or as long as the copying, during which the caller waits. The box must stand still, but for
 * copies. On failure what was at /mnt/data may be gone. */
must_check int box_data_mount(struct box_data *out, const struct box_data_how *how, struct err *e);
/* Can overlays be made on this machine? Else why not, in words. */
must_check int box_data_probe(const struct box_base *base, const char *place, struct err *e);
#endif
