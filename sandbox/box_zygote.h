/* box_zygote.h - what keeper, zygote and init say to each other. All three are ours and run before or outside of
 * any person's code; none of them ever sees a byte of a person's. The frame's session is the keeper's own number of it (its
 * serial), since a box may be there before the daemon asks for one.
 *
 *   keeper -> zygote    BOX_FORK    struct box_fork and four descriptors (below); the frame's request is the generation
 *   zygote -> keeper    BOX_FORKED  int32: the head's pid in the zygote's pid namespace, or -errno
 *   zygote -> keeper    BOX_EXIT    int32: wait status of a head that ended; session and generation in the frame
 *   init   -> keeper    BOX_BUILT   the box stands; one descriptor: O_PATH of its /mnt/data
 *   init   -> keeper    BOX_FAILED  text: why it could not be built (also from the base, before the zygote runs)
 *   keeper -> init      BOX_SWEEP   uint32[], up to BOX_COPIES_MAX: kill every process of the box but init and these
 *   init   -> keeper    BOX_SWEPT   none is left; also once at the start: init runs, heads may come
 *   keeper -> init      BOX_WATCH   uint32: a pid in the box, that of a head which came from a copy; how does it end? 0, to
 *                                   that of the base: of whom it adopts, as it does the heads of a zygote that is gone
 *   init   -> keeper    BOX_EXIT    uint32[2]: that pid and its wait status; BOX_EXIT_UNKNOWN when it came too late
 *
 * The Python side packs and unpacks the same layouts in zygote.py: change both. */
#ifndef BOX_ZYGOTE_H
#define BOX_ZYGOTE_H
#include <stdint.h>

/* Descriptors that come with BOX_FORK, in this order. */
enum { BOX_FD_INIT, BOX_FD_CONTROL, BOX_FD_STDOUT, BOX_FD_STDERR, BOX_FORK_FDS };

enum { BOX_EXIT_UNKNOWN = 0xff00 }; /* as a wait status: exit(255) */

/* Everything the zygote and lock.so have to know about a head. No pointers, no user data. */
struct box_fork {
    uint32_t uid;        /* uid and gid in the zygote's user namespace; becomes 1000 inside */
    uint32_t pids;       /* RLIMIT_NPROC */
    uint64_t file_bytes; /* RLIMIT_FSIZE */
    uint64_t data_bytes; /* RLIMIT_DATA on top of what the zygote holds; 0: no such limit (a cgroup has it) */
};

/* Descriptors at the zygote's start: its channel, and the seccomp program as raw struct sock_filter. */
enum { BOX_ZYGOTE_CONTROL = 3, BOX_ZYGOTE_BPF = 4 };
/* An init's: its channel, and a /proc that shows it every process of the box; the one that is mounted hides them, from a head
 * that may have init's uid. The head has 0, 1, 2 and its channel. */
enum { BOX_INIT_CONTROL = 3, BOX_INIT_PROC = 4, BOX_HEAD_CONTROL = 3 };

/* Where things are inside a box. */
#define BOX_SUPPORT  "/opt/sandbook"
#define BOX_DATA     "/mnt/data"
#define BOX_MOUNTS   "/mnt" /* read-only; holds BOX_DATA and nothing else */
#define BOX_PYTHON   "/usr/bin/python3"
#define BOX_INNER_ID 1000
#endif
