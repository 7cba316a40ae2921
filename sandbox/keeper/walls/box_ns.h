/* box_ns.h - the processes that namespaces are made with: the base, held by an init; zygotes in it; one init per box.
 *
 * As root the base's ids 0-65535 are the host's uid_base and up: 0 is the zygote's and the inits', 1 + slot a session's.
 * As a plain user, or as uid 0 of a user namespace that has no such range, there is one id, the user's own, and sessions
 * are kept apart by their namespaces alone. The host's uid 0 is never mapped. */
#ifndef BOX_NS_H
#define BOX_NS_H
#include <sys/types.h>
#include "box_mount.h"
#include "wire/box_frame.h"

enum { BOX_UID_RANGE = 65536 };

struct box_base {
    pid_t pid; /* its init */
    int pidfd;
    int door_fd;             /* a low number above pidfd's, for what a child of box_init_start() needs of ours */
    struct box_link channel; /* to it */
    bool root;               /* the keeper has a range of ids to give */
    bool once;
    uint32_t uid_base;
};

struct box_base_how {
    const char *image, *support; /* borrowed */
    uint32_t uid_base;
    bool once; /* interpreters are for one session: ready soon, rather than quick to fork from and sparing of memory */
};

/* Makes the base; that it stands its init says itself, by BOX_SWEPT on the channel, or BOX_FAILED with the reason. */
must_check int box_base_start(struct box_base *b, const struct box_base_how *how, struct err *e);
void box_base_stop(struct box_base *b); /* kills its init and with it every zygote and every box */

/* Once the base is there: gives up, for good, what a keeper doesn't need to make boxes in it. Of the host's rights root keeps ids for sessions,
 * files that others own, and mounts of its files; a plain user has none. Then the filter of box_seccomp.h. */
must_check int box_keeper_confine(struct err *e);

/* Starts an interpreter in the base. That it is ready it says itself, by BOX_HELLO on *channel, or BOX_FAILED with the
 * reason. bpf_fd, the seccomp program, is borrowed. */
must_check int box_zygote_start(const struct box_base *b, int bpf_fd, int *pidfd, struct box_link *channel,
                                struct err *e);

struct box_init {
    int pidfd;
    struct box_link channel;
    /* What init was quicker to say than its maker: */
    int data_fd; /* -1, or from BOX_BUILT: the caller's */
    pid_t pid;   /* with it */
    bool up;     /* BOX_SWEPT was among it */
};
/* Called in the child that becomes the box, before it leaves the host's namespaces: enter the cgroups. */
typedef int box_enter_fn(void *ud);
/* Builds a box: all its namespaces, its mounts, its pid 1. Takes about 2 ms, during which the caller waits. What is left
 * to come is BOX_BUILT (with the data folder) or BOX_FAILED on the channel. */
must_check int box_init_start(struct box_init *out, const struct box_base *b, const struct box_sizes *z,
                              box_enter_fn *enter, void *ud, struct err *e);
/* From /proc/self/uid_map: are all ids from first on, BOX_UID_RANGE of them, there to be given? *zero: the id outside that 0 is
 * inside, -1: none. Pure. */
bool box_ids_are_there(const char *uid_map, uint32_t first, int64_t *zero);
/* The host's uid of a session. */
uint32_t box_host_uid(const struct box_base *b, uint32_t slot_uid);
#endif
