/* lock.h - what a freshly forked interpreter does to itself before the first byte of a person's code: the library that
 * zygote.py loads with ctypes. Freestanding, raw system calls only (raw.h).
 *
 * The order matters: each step relies on the one before it.
 *   lock_join   the box's mount, net, ipc, uts and cgroup namespaces; only the four descriptors a head may have
 *   lock_shut   session uid, own user namespace, rlimits, no_new_privs, Landlock, capabilities, seccomp
 *
 * Each returns 0, or a negative number whose low 12 bits are errno and whose rest is the step: lock_step() names it. */
#ifndef LOCK_H
#define LOCK_H
#include "box_zygote.h"

/* The pid namespace of the next fork: that of the box whose init the descriptor refers to; then our own again. */
int lock_pid_enter(int init_pidfd);
int lock_pid_leave(void);
/* In the zygote, once, before the first fork: nothing this process does can gain privileges. 0 or an error. */
int lock_zygote(void);

int lock_join(const int32_t fds[BOX_FORK_FDS]);
int lock_shut(const struct box_fork *how, const void *bpf, uint32_t instructions);
/* A fork that is nobody's child, for copies.py: 0 in it; in the caller the pid of a process that has ended already and is to be
 * reaped, its status 0, or not when there is no such child; or -1. The process between lives in the caller's memory, which
 * stands still meanwhile, so that tables of hundreds of megabytes are copied once, and nothing has to be torn down. Hooks of the
 * interpreter and the C library run as in any fork. The interpreter's lock must be held. */
int lock_fork_aside(void);
/* Never NULL. */
const char *lock_step(int error);
/* The kernel's Landlock version, 0 when there is none. */
int lock_landlock_abi(void);
#endif
