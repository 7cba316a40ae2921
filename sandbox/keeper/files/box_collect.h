/* box_collect.h - the keeper's hands in a session's files: listing, opening what is new, putting one in.
 *
 * All names in /mnt/data are the adversary's. Everything goes through one O_PATH descriptor of that folder and openat2 with
 * BENEATH, NO_SYMLINKS, NO_MAGICLINKS and NO_XDEV: whatever a box does to its tree meanwhile, no link is followed and nothing
 * outside is reached. A kernel without openat2 is refused at the start, not emulated. */
#ifndef BOX_COLLECT_H
#define BOX_COLLECT_H
#include <sys/types.h>
#include "box_proto.h"
#include "err.h"

enum box_kind {
    BOX_IS_NOTHING, /* not our affair: a link, a socket, a hidden name */
    BOX_IS_FILE,
    BOX_IS_FOLDER,  /* to be looked into; never listed */
    BOX_IS_GONE,    /* upper of an overlay only: what lower has there, and below, is not there any more */
    BOX_IS_REFUSED, /* a file that can't be kept; why says the reason */
    BOX_KINDS,
};
struct box_entry {
    char *path; /* below /mnt/data; valid UTF-8, no control characters. Of what is refused: made fit to be shown */
    enum box_kind kind;
    const char *why; /* static */
    uint64_t ino, bytes;
    int64_t mtime_ns, ctime_ns;
};
struct box_listing {
    struct box_entry *v; /* sorted by path, then kind */
    size_t n, cap;
    bool cut; /* not all was seen: there is more than BOX_ENTRIES_MAX, or a folder could not be read */
};

/* What a walk meets, and what is made of it: pure, the fuzzer's door. prefix: "" or path of the folder with a "/" behind it, in
 * which every part has been judged a folder; depth: its parts. path is written for all but BOX_IS_NOTHING. */
struct box_seen {
    const char *prefix, *name;
    int depth;
    unsigned mode;   /* st_mode */
    uint64_t device; /* st_rdev */
};
enum { BOX_LIST_HIDDEN = 1 /* names that begin with a dot, too */, BOX_LIST_UPPER = 2 /* of an overlay */ };
enum box_kind box_judge(const struct box_seen *x, unsigned flags, char path[BOX_PATH_MAX + 1], const char **why);

/* Does this kernel have openat2? */
bool box_collect_works(void);
/* Replaces what was in out. */
void box_list(struct box_listing *out, int data_fd, unsigned flags);
void box_listing_add(struct box_listing *l, const struct box_entry *x); /* path is copied; sort afterwards */
void box_listing_sort(struct box_listing *l);
void box_listing_clear(struct box_listing *l);
/* The file at path, as it is now, is no news: what we put there ourselves. */
void box_listing_know(struct box_listing *l, int data_fd, const char *path);

/* And that it is not there: what we took away ourselves. */
void box_listing_miss(struct box_listing *l, int data_fd, const char *path);

/* What became of a folder between two looks, in the order in which it has to be told: first what is gone (a path, and all
 * below it), then files that are new or have other content, then what is refused for the first time. Borrowed. */
void box_compare(const struct box_listing *before, const struct box_listing *now,
                 void (*change)(void *ud, const struct box_entry *x), void *ud);
/* Would nothing be told? */
bool box_listing_is(const struct box_listing *before, const struct box_listing *now);
/* Open for reading; -1: gone, no regular file any more, or not ours to read. *bytes is the size now. */
int box_entry_open(int data_fd, const char *path, uint64_t *bytes);

/* ---- taking away ---- */
/* A file, or (folder) an empty folder, never what is in one. 0, also when there is nothing of that path; else an errno value. */
int box_entry_drop(int data_fd, const char *path, bool folder);

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
