/* box_cgroup.h - control groups: what the keeper may use of them. The groups of a session are box_group.h's.
 *
 * Looked for in this order: a delegated v2 tree with memory and pids; v1 hierarchies of those, with the
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
#include "box_primer.h"
#include "err.h"

enum box_cgroup_kind { BOX_CGROUP_NONE, BOX_CGROUP_V1, BOX_CGROUP_V2 };
enum box_cgroup_part { BOX_CG_MEMORY, BOX_CG_PIDS, BOX_CG_CPU, BOX_CG_FREEZER, BOX_CG_UNIFIED, BOX_CG_PARTS };

struct box_cgroups {
    enum box_cgroup_kind kind;
    char *part[BOX_CG_PARTS]; /* the keeper's folder in that hierarchy, NULL: none; in v2 all are the same path */
    char why[160];            /* NONE: what is missing */
    struct box_primer primer;
};
void box_cgroups_open(struct box_cgroups *c);
void box_cgroups_close(struct box_cgroups *c);

/* ---- for tests ---- */
/* The part of box_cgroups_open() that knows v2: own is the keeper's folder there. False: not delegated, or without memory and pids. */
bool box_cgroups_open_v2(struct box_cgroups *c, const char *own);
#endif
