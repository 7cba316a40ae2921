/* box_session.h - one session: its box, its head, its copies, its one request at a time.
 *
 *   BUILD   the box's init is being made          FORK   a head is on its way        IDLE  the head waits
 *   RUN     the head has a request                PUT    a file is copied in         COPY  the head leaves a copy
 *   SWEEP   all but init and copies is killed     WAKE   a copy becomes the head     CLOSE init is killed, and so the box
 *   ENTER   the head is there, and the answer that waited for it out; it goes into its group
 *
 * After a cell, when its answer is out: IDLE -> COPY -> IDLE; what is asked meanwhile waits for that. Everything that ends a
 * head goes through SWEEP: whatever the head started dies, the verdict is made from what the kernel says, and the newest copy
 * is woken; if that fails, SWEEP again and the next one. With none left a new head is forked into the same namespaces. Files
 * stay in every case. Where the kernel ends a group by itself there is a shorter way: WAKE, while what was there dies. Going back
 * is the same on purpose. The answer goes out when the new head is there, since only then it is known what is left of the
 * variables. What takes longer than that and nobody has to wait for is ENTER's: the last of its predecessors' processes has to be
 * gone, and moving it to be quick (box_primer.h). No request begins before. */
#ifndef BOX_SESSION_H
#define BOX_SESSION_H
#include "box_keeper.h"
#include "files/box_collect.h"
#include "json.h"
#include "limits/box_group.h"

enum box_state {
    BOX_ST_BUILD,
    BOX_ST_FORK,
    BOX_ST_IDLE,
    BOX_ST_RUN,
    BOX_ST_PUT,
    BOX_ST_COPY,
    BOX_ST_SWEEP,
    BOX_ST_WAKE,
    BOX_ST_ENTER,
    BOX_ST_CLOSE,
    BOX_STATES,
};

/* Why we end a request before its head does. */
enum box_cause {
    BOX_CAUSE_NONE,
    BOX_CAUSE_TIMEOUT,
    BOX_CAUSE_CANCEL,
    BOX_CAUSE_FLOOD,
    BOX_CAUSE_PROTOCOL,
    BOX_CAUSE_MEMORY, /* the watchdog, where there is no control group */
    BOX_CAUSE_RESET,
    BOX_CAUSE_BACK,
    BOX_CAUSE_RESTORE, /* another interpreter for it; then it runs */
    BOX_CAUSES,
};

/* Where a session, or a copy of it, is: see box_copy.h. */
struct box_place {
    uint32_t cell, before, back;
};

struct box_head {
    pid_t pid;       /* on the host; 0: not known yet */
    pid_t inner;     /* in the box, when it came from a copy; 0: from a zygote */
    pid_t outer;     /* in the base, when it came from a zygote; 0: not known (yet), or ended */
    uint32_t zygote; /* that was asked for it; 0: none was */
    int pidfd;
    uint32_t generation; /* tells its messages from those of its predecessors */
    bool ended;          /* status is as from waitpid() */
    bool hung_up;        /* its channel ended */
    uint32_t strange_n;  /* frames of others on its channel, since the last request began */
    int status;
    struct box_link link;
    struct box_source *src;
    int pipe[2]; /* stdout, stderr: our ends */
    struct box_source *pipe_src[2];
    struct box_part claim;
};

struct box_answer {
    uint32_t request;
    const char *verdict, *state;
    const char *why;      /* NULL: nothing to say */
    const uint32_t *cell; /* the one whose state was gone back to; NULL: none was */
    int signal;
    int64_t peak_bytes; /* -1: not known */
    int64_t took_us, start_us;
};

struct box_request {
    uint32_t id; /* 0: none */
    uint8_t type;
    bool started;
    uint32_t number; /* of a cell */
    bool unpacks;    /* the files it makes are no results */
    bool moves;      /* it changes the variables: afterwards the session is at another place */
    bool refitted;   /* /mnt/data is the one that came with it */
    bool judged;     /* its run is dead and end, with said, is its answer but for the state */
    struct box_answer end;
    char said[320];
    bool to_previous; /* BOX_BACK without a cell; with fd: and other files */
    uint32_t back_to;
    struct str body;
    int64_t timeout_ms, grace_ms;
    int64_t received_us, started_us;
    enum box_cause cause;
    char why[240];
    uint64_t printed_bytes;
    struct box_usage before;
    struct box_watch *watch; /* where there is no control group; NULL: not looked at yet */
    int64_t watched_bytes;   /* peak seen by the watchdog */
    int fd;                  /* BOX_PUT, BOX_CHECKPOINT, BOX_RESTORE */
    /* BOX_PUT */
    char *name;
    int worker_pidfd;
    struct box_source *worker_src;
};

struct box_copy;

struct box_session {
    struct box_roll_entry roll;
    struct box_keeper *keeper;
    uint32_t id;           /* the daemon's number; 0: it waits in the pool */
    uint32_t serial, slot; /* serial: ours, never used twice; slot + 1: uid in the base */
    bool pooled;
    enum box_state state;
    int64_t due_ms; /* when the present state, or the request's limit, wants attention; INT64_MAX: never */

    struct box_terms terms; /* as asked for */
    uint64_t memory_bytes, disk_bytes;
    uint32_t pids, cpu_pct;
    struct box_group group;
    struct box_init init;
    struct box_source *init_src, *init_end_src;
    pid_t init_pid;
    int data_fd;
    int upper_fd;      /* where its changes lie when /mnt/data is an overlay; else -1 */
    char missing[200]; /* files that did not fit into the box, not yet told */
    int files_fd;      /* the daemon's folder, until it is mounted; else -1 */
    struct box_head head;
    struct box_request request;
    struct box_part incoming; /* a request whose frames have not all come */
    struct box_listing files; /* as the daemon knows them */

    struct box_place at;
    uint32_t before_death;   /* where it was when its head ended */
    uint32_t base;           /* after this cell the interpreter was a new one */
    bool thawed;             /* and had the variables of a checkpoint */
    struct box_copy *copies; /* parked, newest first */
    struct box_copy *coming; /* the head was asked for it */
    struct box_copy *waking; /* one of copies */
    uint32_t copy_n, copy_max, copies_made;
    bool head_is_back; /* from the forks of COPY */
    int64_t copy_us, copy_ms, wake_us, enter_ms;

    int64_t opened_us, closed_ms;
    bool opening;     /* BOX_OPEN is not answered yet */
    bool closing;     /* BOX_CLOSE wants an answer */
    bool swept;       /* init has said that nothing is left */
    bool hurried;     /* WAKE began while what was there died */
    bool died_idle;   /* the head ended while no request ran */
    uint32_t vain;    /* heads in a row that ended while nobody asked for anything */
    const char *left; /* since then, what is left of the variables: the next answer says so; NULL: told */
    uint32_t left_cell;
    struct box_check *check; /* its outputs and verdicts go there, not to the daemon; borrowed */
};

/* ---- states, and what is common to all (box_session.c) ---- */
struct box_session *box_session_find(const struct box_keeper *k, uint32_t id);
struct box_session *box_session_of_serial(const struct box_keeper *k, uint32_t serial);
/* The only writer of the state. */
void box_session_enter(struct box_session *s, enum box_state state, int64_t due_ms);
/* May that state follow the present one? */
bool box_session_may(const struct box_session *s, enum box_state state);
void box_session_tick(struct box_session *s, int64_t now_ms);
/* Nothing is to be done for it until somebody wants something. */
bool box_session_is_at_rest(const struct box_session *s);
/* Reading of this session's pipes and head stops or goes on. */
void box_session_stall(struct box_session *s, bool stalled);
/* The box can't go on: whoever waits is told, and it is taken down. */
void box_session_give_up(struct box_session *s, const char *why);
/* A cell may have closed its folder to everybody: it is opened to its owner again. */
void box_session_mend_folder(const struct box_session *s);

/* ---- a box is made (box_open.c) ---- */
/* Makes one, which answers (as to BOX_OPEN) when its head is ready, or why it will never be. NULL: it failed at once, and the
 * caller has to answer. limits is an object or NULL. take_files_fd: the folder that /mnt/data begins with, or -1. */
struct box_session *box_session_open(struct box_keeper *k, uint32_t id, const struct json *limits, int take_files_fd,
                                     struct err *e);
/* The same on terms that are checked; id 0: for the pool, and nobody is told. */
struct box_session *box_session_make(struct box_keeper *k, uint32_t id, const struct box_terms *terms, struct err *e);
struct box_terms box_terms_from(const struct json *limits);
/* It waited in the pool and becomes that session: BOX_OPEN is answered, now or when it is ready. */
void box_session_hand_out(struct box_session *s, uint32_t id, int take_files_fd);
/* Its head is ready: BOX_OPEN is answered, if that waits. */
void box_session_opened(struct box_session *s);
/* Mounts /mnt/data anew over that folder, for a box in which nothing runs. -1: it could not be. */
must_check int box_session_mount(struct box_session *s, int files_fd, struct err *e);

/* ---- its head ends (box_end.c) ---- */
/* A message of a zygote's about the head of that generation. */
void box_session_zygote(struct box_session *s, const struct box_frame *head, int32_t value);
/* One can be asked, for a session that waits for that. */
void box_session_zygote_ready(struct box_session *s);
/* That one has ended. */
void box_session_zygote_gone(struct box_session *s, uint32_t number);
/* Is its head the process of that number in the base? How such a one ended that had lost its zygote. */
bool box_session_is_child(const struct box_session *s, pid_t outer);
void box_session_orphaned(struct box_session *s, int status);
/* Init says how a head ended that came from a copy (BOX_EXIT); that nothing is left of what it was to kill (BOX_SWEPT). */
void box_session_init_exit(struct box_session *s, const struct box_msg *msg);
void box_session_swept(struct box_session *s);
/* Kill all but init and copies; then a verdict and another head. */
void box_session_sweep(struct box_session *s);
/* The same for a head that ended or has to: the short way where there is one. After a SIGKILL, which often is want of memory, there is
 * none: what died has to make room first. */
void box_session_end_run(struct box_session *s);
/* The short way: copy becomes the head. */
bool box_session_can_hurry(const struct box_session *s);
void box_session_hurry(struct box_session *s, struct box_copy *copy);

/* ---- the box goes (box_close.c) ---- */
void box_session_close(struct box_session *s);
/* At the keeper's end: kill, wait, remove, say nothing. */
void box_session_abandon(struct box_session *s);
/* Its init has ended, and with it all that ran in it. */
void box_session_init_ended(struct box_session *s);
/* CLOSE: is all of it gone now? */
void box_session_close_tick(struct box_session *s);
/* Of a session in which nothing runs and whose group is gone. */
void box_session_free(struct box_session *s);

/* ---- the head (box_head.c) ---- */
void box_head_close(struct box_session *s);
void box_head_fork(struct box_session *s); /* from a zygote, at once or when there is one */
void box_head_ask(struct box_session *s);  /* now there is one */
/* From a copy. tell: what is gone is told by its HELLO, since a request waits for that. */
void box_head_wake(struct box_session *s, struct box_copy *copy, bool tell);
/* ENTER: can it go into its group now? */
void box_head_enter(struct box_session *s);
/* It said what no head says. */
void box_head_broke_rule(struct box_session *s, const char *what);

/* ---- requests (box_request.c) ---- */
/* A whole frame of the daemon's for this session. */
void box_session_frame(struct box_session *s, struct box_msg *msg);
/* A request from within the keeper (a check). */
void box_session_ask(struct box_session *s, uint8_t type, uint32_t id, const char *json, size_t n);
/* The head is ready for the request that waits, if one does. */
void box_request_begin(struct box_session *s);
void box_request_interrupt(struct box_session *s, enum box_cause cause);
/* All of the head's last words are in s->head.claim. */
void box_request_claimed(struct box_session *s);
/* Everything of the run is dead: judge. */
void box_request_died(struct box_session *s);
/* ---- going back, wanted or not (box_back.c) ---- */
void box_back_begin(struct box_session *s);                          /* BOX_BACK */
void box_back_pin(struct box_session *s, const struct box_msg *msg); /* BOX_PIN */
/* The copy to be woken after a sweep; NULL: the next head is a new interpreter. */
struct box_copy *box_request_copy(const struct box_session *s);
/* The first word of a woken head, for the request that waits for it. */
void box_request_woken_claim(struct box_session *s, const struct box_msg *msg);
/* There is a head again, from that copy or new: answer what waited for that. */
void box_request_revived(struct box_session *s, const struct box_copy *copy);
/* The answer of a request whose end is judged. cell: whose state was woken; NULL: none. */
void box_request_settle(struct box_session *s, const char *state, const uint32_t *cell);
/* Answer with this verdict and forget the request. */
void box_request_fail(struct box_session *s, const char *verdict, const char *why);
void box_request_tick(struct box_session *s, int64_t now_ms);
void box_request_clear(struct box_request *r);
/* Take what the pipes hold, at most a pipe's worth each. */
void box_request_drain(struct box_session *s);
void box_request_output(struct box_session *s, int stream);

/* ---- files that are not to be there any more (box_drop.c) ---- */
void box_drop(struct box_session *s, const struct box_msg *msg); /* BOX_DROP */

/* ---- answers (box_answer.c) ---- */
void box_answer(struct box_session *s, const struct box_answer *a);
/* The same where there is no session. */
void box_answer_failed(struct box_keeper *k, uint32_t session, uint32_t request, const char *why);
/* BOX_CLOSE is done. */
void box_answer_closed(struct box_keeper *k, uint32_t session);
/* The end of a check; why NULL: everything was answered right. */
void box_answer_check(struct box_keeper *k, uint32_t request, const char *why);
/* The verdict of a request whose run is dead; why (of size n) in words. */
const char *box_verdict(const struct box_session *s, const struct box_usage *used, int *signo, char *why, size_t n);
/* Has anything in /mnt/data changed since the last look? Mostly not, and then nothing has to stand still for it. */
bool box_answer_files_changed(const struct box_session *s);
/* What changed; told only if send. */
void box_answer_files(struct box_session *s, bool send);
/* Where that is looked for, and opened. */
int box_files_fd(const struct box_session *s);
int64_t box_now_us(void);
#endif
