/* box_limit.h - what the keeper does to a head and sees of it from outside, by its pid. */
#ifndef BOX_LIMIT_H
#define BOX_LIMIT_H
#include <sys/types.h>
#include "box_group.h"
#include "err.h"

/* The kernel's own word that every lock is shut: no capability, no_new_privs, a seccomp filter. ERR_SANDBOX names what is open. */
must_check int box_limit_audit(pid_t pid, struct err *e);
/* In want of memory this process, and what it starts, goes first; or it is one like any other. */
must_check int box_limit_oom(pid_t pid, bool first, struct err *e);
/* Does it live in the pid namespace of that init? */
bool box_limit_is_member(pid_t init, pid_t pid);
/* Its pid in its own namespace; 0: it is gone. */
pid_t box_limit_inner_pid(pid_t pid);
/* The same one namespace further out: in the base, of a process of a box. */
pid_t box_limit_outer_pid(pid_t pid);
int box_limit_threads(pid_t pid); /* 0: it is gone */
bool box_limit_has_ended(int pidfd);
/* Whom a hunt leaves alone: the box's init, its head, its copies, by their pids on the host. */
struct box_spared {
    pid_t init, head; /* 0: no head */
    const pid_t *copies;
    size_t copy_n;
};
/* SIGKILL to all others of a box that were started later than that (CLOCK_BOOTTIME, 10 ms exact): what an interrupted cell has
 * left. still: they are frozen, and one pass finds them; else some passes, until none is found. */
void box_limit_kill_newer(const struct box_spared *spared, const struct box_group *group, int64_t since_us, bool still);
/* The same for what init has adopted since: the copy that did not come, and what its hooks made. One pass. */
void box_limit_kill_orphans(const struct box_spared *spared, int64_t since_us);
/* /proc/meminfo, newly allocated, and a value of it; -1: it has none. */
char *box_limit_meminfo(void);
int64_t box_limit_meminfo_bytes(const char *meminfo, const char *name);
/* Field 22 of /proc/<pid>/stat: with the pid it names a process for good. 0: there is none. */
unsigned long long box_start_ticks(pid_t pid);
/* Signal to a process; a dead one is fine. */
void box_limit_signal(int pidfd, int signo);
#endif
