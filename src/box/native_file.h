/* native_file.h - files that a box hands over, copied into the session's out folder on the host. Trust boundary for names
 * and bytes: a name is checked and made harmless, a size is what was really read, a picture is what its header says. */
#ifndef NATIVE_FILE_H
#define NATIVE_FILE_H
#include "native_cell.h"

/* False for what no box may say: absolute, too long, "..", empty parts, no UTF-8, control characters. */
bool delivery_path_ok(const char *path);

struct delivery {
    int src_fd, tmp_fd, dir_fd; /* dir_fd borrowed: the out folder */
    char tmp[48];               /* name of the unfinished copy in it */
    int64_t max_bytes;
    int64_t copied;
    bool unfinished;       /* tmp exists */
    struct delivered what; /* filled when done */
};

/* Takes take_fd, also when it fails. seq: makes the temporary name unique in this folder. cell: its figures keep their
 * names. ERR_DATA: nothing that may be delivered; ERR_STORE: the host could not take it. */
must_check int delivery_begin(struct delivery *d, int dir_fd, const char *box_path, int take_fd, int64_t max_bytes,
                              uint64_t seq, struct err *e);
/* Copies a slice: 1 more to do, 0 all written, synced and in place (`what` is set, its path relative to out_dir joined), -1. */
must_check int delivery_step(struct delivery *d, const char *out_dir, int cell, struct err *e);
/* Closes and removes what is unfinished; `what` is cleared as well. */
void delivery_clear(struct delivery *d);
/* Make the renames durable. */
void delivery_sync_folder(int dir_fd);
#endif
