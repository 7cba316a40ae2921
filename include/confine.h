/* confine.h - system calls that a program of ours never makes, given up for good. Floor 0. */
#ifndef CONFINE_H
#define CONFINE_H
#include "err.h"

/* For the calling process and all that it starts: no tracing, no kernel modules, programs or rings, no keys, no clocks, no swap, no
 * files by handle, no rights by set-uid programs, and of sockets only local ones, IPv4, IPv6 and netlink, which the resolver asks. Refused
 * with EPERM, numbers of other ABIs are deadly. A keeper and its boxes are made under it as well as without. */
must_check int confine_self(struct err *e);
#endif
