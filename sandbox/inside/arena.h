/* arena.h - where the interpreter's small objects lie in a zygote: in one room instead of a hundred places. Part of lock.so.
 *
 * A fork copies what the kernel notes of each page, and the end of a process takes it apart again: with pages of 4 KiB that is
 * 7 ms and 8 ms for 170 MiB of imported libraries. A large page has one note for 2 MiB, and both come to 2 ms; but only whole,
 * aligned pieces of one mapping can become one. CPython takes its memory by the MiB, wherever the kernel puts it between the
 * libraries that are being loaded; here it gets it from one room that was set aside before. settle.py then has the kernel
 * make large pages of it. What a session changes is still copied by 4 KiB. */
#ifndef ARENA_H
#define ARENA_H
#include <stdint.h>

/* In the zygote, before anything is imported. 0, or -errno: then all stays as it is. */
int arena_begin(void);
/* When all is imported: what was not taken goes back to the kernel; from here on CPython gets its memory one by one again. */
void arena_settle(void);

/* Pages that every cell writes to, or besides these every one that shows a table, and that would be copied one by one while somebody
 * waits for its answer. Known once in the zygote, since what is forked from it has all at the same addresses; kept up to
 * ARENA_HOT_MAX pieces of each. */
enum { ARENA_HOT_MAX = 1024, ARENA_OF_CELLS = 0, ARENA_OF_TABLES, ARENA_HOT_SETS };
struct arena_piece {
    uint64_t at, n; /* bytes, whole pages */
};
void arena_know_hot(uint32_t set, const struct arena_piece *pieces, uint32_t n);
/* After a fork, when nobody waits: has them copied now. Not before Linux 5.14; then it does nothing. */
void arena_touch_hot(uint32_t set);
#endif
