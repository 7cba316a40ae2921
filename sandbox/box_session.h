/* box_session.h - one session: its box, its head, its one request at a time.
 *
 *   BUILD   the box's init is being made          FORK   a head is on its way        IDLE  the head waits
 *   RUN     the head has a request                PUT    a file is copied in         SWEEP all but init is being killed
 *   CLOSE   init is killed, and with it the box
 *
 * Everything that ends a head goes through SWEEP: whatever the head started dies, the verdict is made from what the kernel
 * says, and a new head is forked into the same namespaces, so that files stay. (When copies are left behind, SWEEP kills the
 * run group only, and the newest copy is woken instead.) */
#ifndef BOX_SESSION_H
#define BOX_SESSION_H
#include "box_collect.h"
#include "box_keeper.h"
#include "json.h"

enum box_state {
    BOX_ST_BUILD,
    BOX_ST_FORK,
    BOX_ST_IDLE,
    BOX_ST_RUN,
    BOX_ST_PUT,
    BOX_ST_SWEEP,
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
    BOX_CAUSES,
};

struct box_head {
    pid_t pid; /* on the host; 0: not known yet */
    int pidfd;
    uint32_t generation; /* tells its messages from those of its predecessors */
    bool ended;          /* status is as from waitpid() */
    bool hung_up;        /* its channel ended */
    int status;
    struct box_link link;
    struct box_source *src;
    int pipe[2]; /* stdout, stderr: our ends */
    struct box_source *pipe_src[2];
    struct box_part claim;
};

struct box_request {
    uint32_t id; /* 0: none */
    uint8_t type;
    bool started;
    struct str body;
    int64_t timeout_ms, grace_ms;
    int64_t received_us, started_us;
    enum box_cause cause;
    char why[240];
    uint64_t printed_bytes;
    struct box_usage before;
    int64_t watched_bytes; /* peak seen by the watchdog */
    /* BOX_PUT */
    char *name;
    int fd;
    int worker_pidfd;
    struct box_source *worker_src;
};

struct box_session {
    struct box_session *next;
    struct box_keeper *keeper;
    uint32_t id, slot; /* slot + 1: uid in the base */
    enum box_state state;
    int64_t due_ms; /* when the present state, or the request's limit, wants attention; INT64_MAX: never */

    uint64_t memory_bytes, disk_bytes;
    uint32_t pids, cpu_pct;
    struct box_group group;
    struct box_init init;
    struct box_source *init_src, *init_end_src;
    pid_t init_pid;
    int data_fd;
    struct box_head head;
    struct box_request request;
    struct box_part incoming; /* a request whose frames have not all come */
    struct box_listing files; /* as the daemon knows them */

    int64_t opened_us, closed_ms;
    bool opening;            /* BOX_OPEN is not answered yet */
    bool closing;            /* BOX_CLOSE wants an answer */
    bool swept;              /* init has said that nothing is left */
    bool lost;               /* a head ended between two requests; the next answer says so */
    struct box_check *check; /* its outputs and verdicts go there, not to the daemon; borrowed */
};

/* ---- life (box_session.c) ---- */
/* Makes one, which answers (as to BOX_OPEN) when its head is ready, or why it will never be. NULL: it failed at once, and the
 * caller has to answer. limits is an object or NULL. */
struct box_session *box_session_open(struct box_keeper *k, uint32_t id, const struct json *limits, struct err *e);
void box_session_close(struct box_session *s);
/* At the keeper's end: kill, wait, remove, say nothing. */
void box_session_abandon(struct box_session *s);
struct box_session *box_session_find(const struct box_keeper *k, uint32_t id);
/* A message of the zygote's about the head of that generation. */
void box_session_zygote(struct box_session *s, const struct box_frame *head, int32_t value);
void box_session_tick(struct box_session *s, int64_t now_ms);
/* Reading of this session's pipes and head stops or goes on. */
void box_session_stall(struct box_session *s, bool stalled);
/* The only writer of the state. */
void box_session_enter(struct box_session *s, enum box_state state, int64_t due_ms);
/* Kill all but init; then a verdict and a new head. */
void box_session_sweep(struct box_session *s);

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
/* Everything of the run is dead: judge, answer. */
void box_request_died(struct box_session *s);
/* Answer with this verdict and forget the request. */
void box_request_fail(struct box_session *s, const char *verdict, const char *why);
void box_request_tick(struct box_session *s, int64_t now_ms);
void box_request_clear(struct box_request *r);
/* Take what the pipes hold, at most a pipe's worth each. */
void box_request_drain(struct box_session *s);
void box_request_output(struct box_session *s, int stream);

/* ---- answers (box_answer.c) ---- */
struct box_answer {
    uint32_t request;
    const char *verdict, *state;
    const char *why; /* NULL: nothing to say */
    int signal;
    int64_t peak_bytes; /* -1: not known */
    int64_t took_us, start_us;
};
void box_answer(struct box_session *s, const struct box_answer *a);
/* The same where there is no session. */
void box_answer_failed(struct box_keeper *k, uint32_t session, uint32_t request, const char *why);
/* BOX_CLOSE is done. */
void box_answer_closed(struct box_keeper *k, uint32_t session);
/* The end of a check; why NULL: everything was answered right. */
void box_answer_check(struct box_keeper *k, uint32_t request, const char *why);
/* The verdict of a request whose run is dead; why (of size n) in words. */
const char *box_verdict(const struct box_session *s, const struct box_usage *used, int *signo, char *why, size_t n);
void box_answer_files(struct box_session *s, bool send);
int64_t box_now_us(void);
#endif
