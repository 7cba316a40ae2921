/* box_collect.h - the keeper's hands in a session's files: listing, opening what is new, putting one in.
 *
 * All names in /mnt/data are the adversary's. Everything goes through one O_PATH descriptor of that folder and openat2 with
 * BENEATH, NO_SYMLINKS, NO_MAGICLINKS and NO_XDEV: whatever a box does to its tree meanwhile, no link is followed and nothing
 * outside is reached (specification 2.1, 3.18). A kernel without openat2 is refused at the start, not emulated. */
#ifndef BOX_COLLECT_H
#define BOX_COLLECT_H
#include <sys/types.h>
#include "err.h"

struct box_entry {
    char *path; /* below /mnt/data; valid UTF-8, no control characters, no hidden part */
    uint64_t ino, bytes;
    int64_t mtime_ns, ctime_ns;
};
struct box_listing {
    struct box_entry *v; /* regular files, sorted by path */
    size_t n, cap;
    bool cut; /* there was more than BOX_ENTRIES_MAX or BOX_DEPTH_MAX let us see */
};
/* Does this kernel have openat2? */
bool box_collect_works(void);
/* Replaces what was in out. A folder that can't be read counts as empty. */
void box_list(struct box_listing *out, int data_fd);
void box_listing_clear(struct box_listing *l);
/* A file that is not in before, or is there with other content. */
bool box_entry_is_new(const struct box_listing *before, const struct box_entry *x);
/* Open for reading; -1: gone, no regular file any more, or not ours to read. *bytes is the size now. */
int box_entry_open(int data_fd, const char *path, uint64_t *bytes);

/* ---- putting ---- */
/* Is this a name that a file in /mnt/data may have? One part, no '/', NUL, control characters; not "." or "..". */
bool box_name_ok(const char *name);
struct box_put {
    const char *name; /* borrowed until box_put returns */
    int data_fd, from_fd;
    uint32_t host_uid; /* who shall own it; 0: leave the ids alone (a plain user's keeper) */
    uint64_t max_bytes;
};
/* Copies, in the calling process, which it leaves with the ids of the session: for a child only. 0 or an errno value. */
int box_put(const struct box_put *p);
#endif
