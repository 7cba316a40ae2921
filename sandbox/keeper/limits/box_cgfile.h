/* box_cgfile.h - the files and folders that control groups are made of. What is written goes with one write(); paths are ours, of
 * folders that no person's code can reach. */
#ifndef BOX_CGFILE_H
#define BOX_CGFILE_H
#include "base.h"

/* 0, or -1 with errno: there is no such file, or the kernel refused. */
int box_cgfile_put(const char *dir, const char *file, const char *text);
int box_cgfile_put_number(const char *dir, const char *file, uint64_t n);
/* Newly allocated; "" when it can't be read. */
char *box_cgfile_read(const char *path);
char *box_cgfile_get(const char *dir, const char *file);
/* -1: it can't be read, or is empty. */
int64_t box_cgfile_number(const char *dir, const char *file);
/* rmdir of dir and of what lies below it, so many levels deep; kill_first: and of all processes in it. 0, or -1 with errno of the
 * last rmdir. */
int box_cgfile_remove(const char *dir, int depth, bool kill_first);
#endif
