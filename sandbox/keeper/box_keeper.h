/* box_keeper.h - the keeper as a whole: the daemon's channel, the base with its zygotes, the roll of sessions.
 *
 * Memory that a peer can make us use is bounded: a session's request (BOX_REQUEST_MAX), its claim (BOX_CLAIM_MAX), and what
 * waits for the daemon: past KEEPER_QUEUE_HIGH nothing more is read from any box until the daemon has taken it. */
#ifndef BOX_KEEPER_H
#define BOX_KEEPER_H
#include "box_zygotes.h"
#include "limits/box_cgroup.h"
#include "session/box_roll.h"
#include "walls/box_ns.h"
#include "wire/box_loop.h"

enum {
    KEEPER_QUEUE_HIGH = 1 << 20,
    KEEPER_QUEUE_LOW = 256 << 10,
    KEEPER_SLOTS = BOX_UID_RANGE - 1, /* sessions at once: each its own uid */
};

/* What the machine gives (3.22); higher is worse. */
enum box_tier {
    BOX_T0, /* every layer */
    BOX_T1, /* no control groups: memory is limited per process and watched */
    BOX_T2, /* no Landlock */
    BOX_T3, /* no namespaces: boxes can't be made at all */
};

struct box_check;

/* What a session is promised; of BOX_OPEN, within bounds. */
struct box_terms {
    uint64_t memory_bytes, disk_bytes;
    uint32_t pids, cpu_pct, copies;
};

/* See box_pool.h. */
struct box_pool {
    struct box_terms terms;
    uint32_t wanted;
    uint32_t failures;
    int64_t again_ms, primed_ms;
};

struct box_keeper {
    /* how it was started; borrowed from argv */
    const char *image, *support;
    uint32_t uid_base;
    enum box_tier min_tier;
    bool once; /* for one session: see box_base_how */

    struct box_loop *loop;
    struct box_link daemon;
    struct box_source *daemon_src;
    bool stalled; /* the daemon is slow: boxes are not read */

    struct box_base base;
    struct box_source *base_src;
    struct box_zygotes zygotes;
    struct box_pool pool;
    int64_t spare_bytes;    /* of the machine's memory, below which copies go; 0: the default */
    int64_t memory_look_ms; /* when it is looked at next */
    int64_t wanted_ms;      /* when the daemon last wanted something, or was last answered */
    struct box_cgroups cgroups;
    int bpf_fd;
    int landlock; /* its version; 0: none */

    enum box_tier tier;
    bool reported;               /* BOX_READY is out */
    bool ready;                  /* a zygote could fork: from then on one that dies is replaced */
    bool refused;                /* tier below the minimum, or no zygote: sessions are not opened */
    char problem[240];           /* why not ready */
    struct box_roll sessions;    /* those that wait in the pool, too */
    uint32_t rich_n;             /* of those that have more than one copy */
    uint32_t serials;            /* given to sessions so far */
    uint8_t slots[KEEPER_SLOTS]; /* 1: in use */
    struct box_check *check;     /* a running check; NULL: none */
    bool looked;                 /* at least once */
    bool looking;                /* box_check_look was called, and what it made is not gone yet */
    char escape[240];            /* one that was not stopped, and what it came to; "": none */
    int64_t look_ms;             /* when to look again */
    bool stopping;
};

must_check int box_keeper_start(struct box_keeper *k, struct err *e);
/* Ends every box and takes everything away. */
void box_keeper_stop(struct box_keeper *k);
/* Writes what waits for the daemon, or arranges for it; stops or resumes reading from the boxes. After anything was queued. */
void box_keeper_flush(struct box_keeper *k);
/* How does that process of the base end, or how did it? Told by box_session_orphaned(). */
void box_keeper_watch(struct box_keeper *k, pid_t outer);
/* Whether boxes can be made: error NULL, or why not. The first time it becomes BOX_READY, later it is nothing new. */
void box_keeper_report(struct box_keeper *k, const char *error);
#endif
