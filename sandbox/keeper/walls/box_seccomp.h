/* box_seccomp.h - which system calls a head and all it starts may make: the policy as a table, and its compilation.
 *
 * The only user of libseccomp. Compiled once by the keeper; the bytes go to the zygote, whose heads load them as their last
 * lock. tests/unit/test_box_seccomp.c runs the program in an evaluator of its own. */
#ifndef BOX_SECCOMP_H
#define BOX_SECCOMP_H
#include "str.h"

/* The highest number that the table knows by name; whatever is newer is answered ENOSYS. */
enum { BOX_SYSCALL_LAST = 462 };

/* Appends an array of struct sock_filter to out (whose ceiling should be 64 KiB). */
must_check int box_seccomp_compile(struct str *out, struct err *e);
/* The same in a sealed memfd, offset 0; the caller closes it. */
must_check int box_seccomp_fd(int *out, struct err *e);

/* The keeper's own filter, for the calling process and all that it starts: what a head may, and what boxes are made with. Takes
 * no_new_privs. Whatever else there is, is answered ENOSYS, or deadly where it is for a head. Can't be taken back. */
must_check int box_seccomp_confine(struct err *e);
#endif
