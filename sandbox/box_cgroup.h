/* box_cgroup.h - control groups: what the keeper may use of them, and the groups of one session.
 *
 * Looked for in this order (specification 3.12): a delegated v2 tree with memory and pids; v1 hierarchies of those, with the
 * v2 tree beside them for cgroup.kill and cgroup.freeze, which need no controller; nothing. Everything lies below the
 * keeper's own group, in whose limits the boxes so stay:
 *
 *   <own>/sandbook-<pid>-<start>/s<session>/init   the box's init, and what copies files in (v1: the session's own)
 *                                          /run    the head and all it starts
 *                                          /parked/c<n>  one copy, which is frozen there by itself
 *
 * The session's group holds the memory limit; run holds it a little tighter, so that it is run that hits it. Groups that a
 * killed keeper left are recognised by pid and start time and removed. */
#ifndef BOX_CGROUP_H
#define BOX_CGROUP_H
#include <sys/types.h>
#include "err.h"

enum box_cgroup_kind { BOX_CGROUP_NONE, BOX_CGROUP_V1, BOX_CGROUP_V2 };
enum box_cgroup_part { BOX_CG_MEMORY, BOX_CG_PIDS, BOX_CG_CPU, BOX_CG_FREEZER, BOX_CG_UNIFIED, BOX_CG_PARTS };

struct box_cgroups {
    enum box_cgroup_kind kind;
    char *part[BOX_CG_PARTS]; /* the keeper's folder in that hierarchy, NULL: none; in v2 all are the same path */
    char why[160];            /* NONE: what is missing */
    pid_t primer;             /* see box_cgroups_prime(); 0: none */
    int primer_fd;
    struct box_primer *primed; /* shared with it */
};
void box_cgroups_open(struct box_cgroups *c);
void box_cgroups_close(struct box_cgroups *c);
/* A process will be moved in some milliseconds. For the first move in a while the kernel waits until every processor has been
 * through its scheduler, 8 to 16 ms in which the keeper would stand still; for one soon after it does not. So a helper moves
 * itself, from where it is to there, and takes the wait upon it, and again for the next 100 ms. Other writes to control groups
 * wait for its first move, too: do them before. Returns at once. */
void box_cgroups_prime(const struct box_cgroups *c);
/* A move would be quick now. What can wait a moment for that looks every millisecond, and needs to have primed. */
bool box_cgroups_is_primed(const struct box_cgroups *c);

struct box_group_limits {
    uint64_t memory_bytes;
    uint32_t pids, cpu_pct;
};
struct box_group {
    const struct box_cgroups *all;
    char name[32];    /* "": no group */
    uint32_t cpu_pct; /* 0: no limit */
};
struct box_usage {
    int64_t peak_bytes; /* -1: not known */
    int64_t oom_kills;  /* since the group was made */
};

/* With kind NONE a group that does nothing. */
must_check int box_group_open(struct box_group *g, const struct box_cgroups *c, uint32_t session,
                              const struct box_group_limits *l, struct err *e);
/* The calling process into init. 0, or -1 with errno. */
must_check int box_group_enter(const struct box_group *g);
must_check int box_group_run(const struct box_group *g, pid_t pid, struct err *e);
/* SIGKILL to all of run, where the kernel has cgroup.kill; does not wait. The limit on the processor is lifted until the next
 * box_group_run(), so that dying goes fast. */
void box_group_kill(const struct box_group *g);
/* The kernel ends all of run for sure, without a walk over its processes. */
bool box_group_can_kill(const struct box_group *g);
/* After that: has all of run ended? */
bool box_group_is_empty(const struct box_group *g);
/* Stop or go on with all of run. Waits a few milliseconds at most for it to stand still; false: it does not. */
bool box_group_freeze(const struct box_group *g, bool frozen);
/* Each process of run, as the kernel lists them; false: there is no list. */
must_check bool box_group_each(const struct box_group *g, void (*fn)(void *ud, const char *pid), void *ud);
/* A copy, into a group of its own, which stands still from then on where the kernel can do that. Verified: it is there. */
must_check int box_group_park(const struct box_group *g, uint32_t number, pid_t pid, struct err *e);
/* Let it go on, or stand still again; does not wait for that. */
void box_group_hold(const struct box_group *g, uint32_t number, bool frozen);
/* SIGKILL to all that is in it, and it is removed (or left for box_group_close, while it is not empty). */
void box_group_unpark(const struct box_group *g, uint32_t number);
/* Bytes in use now by all of a session, but for what could be had back at once; -1: not known. */
int64_t box_group_memory(const struct box_group *g);
/* Of those the ones that no kill gives back: files in memory, and what processes share; -1: not known. */
int64_t box_group_files(const struct box_group *g);
struct box_usage box_group_usage(const struct box_group *g);
void box_group_reset_peak(const struct box_group *g);
/* False: something still runs in it; try again. */
bool box_group_close(struct box_group *g);

/* ---- for tests ---- */
/* The part of box_cgroups_open() that knows v2: own is the keeper's folder there. False: not delegated, or without memory and pids. */
bool box_cgroups_open_v2(struct box_cgroups *c, const char *own);
/* ---- parsers; pure, for tests ---- */
/* From /proc/self/cgroup: the path in the hierarchy of that controller; "" means v2. Newly allocated or NULL. */
char *box_cgroup_own(const char *proc_cgroup, const char *controller);
/* From /proc/self/mountinfo and a path as above: the folder on disk. Newly allocated or NULL. */
char *box_cgroup_folder(const char *mountinfo, const char *controller, const char *own);
/* "name 12\n" anywhere in a flat-keyed file; otherwise when absent. */
int64_t box_cgroup_value(const char *text, const char *name, int64_t otherwise);
#endif
