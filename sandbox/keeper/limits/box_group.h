/* box_group.h - the control groups of one session: its limits, its end, what it used, and copies that stand still.
 *
 * Where the machine has none (BOX_CGROUP_NONE) every function here does nothing, and says that nothing is known. The layout is in
 * box_cgroup.h. */
#ifndef BOX_GROUP_H
#define BOX_GROUP_H
#include <sys/types.h>
#include "box_cgroup.h"

struct box_group_limits {
    uint64_t memory_bytes;
    uint32_t pids, cpu_pct;
};
struct box_group {
    const struct box_cgroups *all;
    char name[32];    /* "": no group */
    uint32_t cpu_pct; /* 0: no limit */
    bool hurries;     /* that limit is lifted */
    int counter[3]; /* what box_group_usage() reads, held open: looking them up takes most of the time; -1: not open */
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
must_check int box_group_run(struct box_group *g, pid_t pid, struct err *e);
/* SIGKILL to all of run, where the kernel has cgroup.kill; does not wait. The limit on the processor is lifted until the next
 * box_group_run(), so that dying goes fast. */
void box_group_kill(struct box_group *g);
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
/* From now on the peak counts anew. Before that box_group_usage() knows nothing. */
void box_group_begin_usage(struct box_group *g);
/* False: something still runs in it; try again. */
bool box_group_close(struct box_group *g);
#endif
