/* confine.h - a deny-list of system calls that the service never needs, for the rest of the process's life. Floor 0. */
#ifndef CONFINE_H
#define CONFINE_H
#include "err.h"

/* For the calling process and everything it starts. Refused with EPERM: tracing, kernel modules, BPF, io_uring, keyrings, setting clocks,
 * swap, opening files by handle. Set-uid programs give no rights. Sockets may only be local, IPv4, IPv6 or netlink (the resolver asks
 * by it). A system call by another ABI kills the process. A keeper can make its boxes under this filter as well as without it.
 * ERR_CONFIG: the kernel takes no filter. */
must_check int confine_self(struct err *e);
#endif
