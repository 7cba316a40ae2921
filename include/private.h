/* private.h - small files that only their owner may read: keys, tokens. Floor 0. The keeper doesn't link this file.
 *
 * A path is taken from dir_fd on (AT_FDCWD: from where the process stands); its last part is never followed as a link. */
#ifndef PRIVATE_H
#define PRIVATE_H
#include "err.h"

/* Whole and on the disk under its name when this returns 0; otherwise what was there before is there still. ERR_STORE. Two writers
 * of one path at the same time are the caller's to prevent. */
must_check int private_write(int dir_fd, const char *path, const void *data, size_t n, struct err *e);
/* The n bytes in that file, which is made of random ones when there is none. ERR_CONFIG: it is no regular file, others may read or
 * write it, or its length is another; ERR_STORE: it can't be read, or made. key is wiped on failure. */
must_check int private_key(int dir_fd, const char *path, void *key, size_t n, struct err *e);
#endif
