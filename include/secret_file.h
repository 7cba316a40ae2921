/* secret_file.h - small files that only their owner may read (mode 0600): keys and tokens. Floor 0. The keeper doesn't link this file.
 *
 * Paths are relative to dir_fd (AT_FDCWD: the working directory). A symbolic link in place of the file is never followed. */
#ifndef SECRET_FILE_H
#define SECRET_FILE_H
#include "err.h"

/* Replaces the file. 0: the new content is whole and on disk; -1 (ERR_STORE): the old content is still there. The caller makes sure
 * that nobody else writes the same path meanwhile. */
must_check int secret_file_write(int dir_fd, const char *path, const void *data, size_t n, struct err *e);
/* Reads a key of exactly n bytes; makes it first, of random bytes, when there is no such file. ERR_CONFIG: not a regular file, open to
 * others, or of another length; ERR_STORE: it cannot be read or made. After a failure key holds nothing of the file. */
must_check int secret_file_key(int dir_fd, const char *path, void *key, size_t n, struct err *e);
#endif
