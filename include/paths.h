/* paths.h - where the parts of an installation lie: beside the running program, as in a build tree, or below the same prefix. Floor 0. */
#ifndef PATHS_H
#define PATHS_H
#include "base.h"

/* Symbolic links are followed. */
bool path_is_folder(const char *path);
/* mkdir -p, each missing folder with that mode; *made (may be NULL): the last one is ours. -1: errno. */
must_check int path_make_folders(const char *path, unsigned mode, bool *made);
bool path_is_program(const char *path); /* a regular file that we may execute */
/* Folder of the running program, without a slash at its end; NULL: unknown (no /proc). The caller frees. */
char *path_program_folder(void);
/* The first of base/tails[i] that is `good`; NULL: none, or no base. The caller frees. */
char *path_first(const char *base, const char *const *tails, size_t n, bool (*good)(const char *path));
#endif
