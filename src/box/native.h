/* native.h - what native.c (the keeper's life), native_box.c (a box's requests) and native_message.c (what comes for them) share. Private
 * to this adapter. */
#ifndef NATIVE_H
#define NATIVE_H
#include "json.h"
#include "loop.h"
#include "native_cell.h"
#include "native_checkpoint.h"
#include "native_file.h"
#include "native_paths.h"
#include "native_wire.h"
#include "sandbox.h"

enum keeper_state {
    KEEPER_DOWN,     /* not running; the next request starts it, not before next_start_ms */
    KEEPER_WAITING,  /* will be started by the timer */
    KEEPER_STARTING, /* runs, BOX_READY is awaited */
    KEEPER_UP,
    KEEPER_ENDING,  /* hung up or exited; the other half of its death is awaited */
    KEEPER_REFUSED, /* nothing to be had on this machine: `refusal` says why */
};

struct native_check {
    uint32_t request; /* 0: none runs */
    void (*note)(void *ud, const char *name, const char *outcome, const char *detail);
    void (*done)(void *ud, const struct err *e);
    void *ud;
};

struct sandbox {
    struct loop *l;
    struct native_paths paths;
    char *min_tier, *audit;
    char *pool; /* of BOX_POOL */
    int64_t copies, uid_base, cell_timeout_ms, cell_timeout_max_ms, file_max_bytes;
    bool one_session;

    void (*ready)(void *ud, const struct err *e); /* NULL once told */
    void *ready_ud;
    bool stopped;

    enum keeper_state state, ended_from; /* ended_from: the state before ENDING */
    struct err refusal;
    pid_t pid; /* 0: none */
    int exit_status;
    struct wire *wire;
    char *hung_up;    /* why the wire ended; NULL: it has not */
    loop_timer timer; /* deadline of READY, of the end, or of the next start */
    int64_t next_start_ms, backoff_ms;
    struct json *report;
    struct native_check check;

    struct box *boxes;
    uint32_t last_session, last_request;
    uint64_t file_seq;
    struct box *copying; /* the wire is paused for this one's large file */
    loop_timer copy_timer;
};

struct request {
    bool own_files;                       /* BOX_OP_BRANCH with a folder */
    bool active, sent, cancelled, doomed; /* doomed: the keeper died under it */
    enum box_op op;
    uint32_t id;
    int number, fd;
    int64_t timeout_ms;
    const char *audit; /* box.audit; the sandbox's */
    struct box_events ev;
    void *ud;
    uint8_t type; /* of its frame */
    char *payload;
    size_t payload_n;
    loop_timer timer; /* deadline */

    struct output printed[2];
    struct delivered *files;
    size_t file_n, file_cap;
    char **notes, **gone;
    size_t note_n, note_cap, gone_n, gone_cap;
    char *claim;
    size_t claim_n;
    struct outflow flow; /* BOX_OP_CHECKPOINT */
};

struct box {
    struct sandbox *s;
    struct box *next;
    enum { LIFE_NONE, LIFE_OPENING, LIFE_OPEN } life;
    uint32_t session;
    struct box_limits lim;
    int out_fd;
    char *out_dir;
    bool used; /* something is inside that could be lost */
    bool lost, tell_lost;
    struct request r;
    struct delivery copy;
    bool copying;
    struct { /* files to be taken away: native_drop.c */
        char **paths;
        size_t n, cap;
        uint32_t asked; /* the last request for it that is not answered; 0: none */
        void (*done)(void *ud);
        void *ud;
    } drop;
};

/* ---- native.c ---- */
/* Makes sure the keeper runs or will; -1 with the refusal when it never will. */
must_check int keeper_want(struct sandbox *s, struct err *e);
/* The peer broke a rule: it is killed and everything that ran fails. */
void keeper_broken(struct sandbox *s, const char *why);

/* ---- native_box.c ---- */
int native_open(struct box **out, struct sandbox *s, const struct box_limits *lim, int out_dir_fd, const char *out_dir,
                struct err *e);
int native_ask(struct box *b, const struct box_request *r, const struct box_events *ev, void *ud, struct err *e);
void native_cancel(struct box *b);
void native_pin(struct box *b, int cell, bool pinned);
void native_close(struct box *b);
bool native_lost(const struct box *b);
/* What BOX_OPEN and BOX_POOL have in common. */
void native_terms(struct json *o, const struct box_limits *lim, int64_t copies);
void native_refit(struct box *b, int files_fd);
/* The keeper is up: open what waits. */
void boxes_up(struct sandbox *s);
/* The keeper is gone: boxes are lost; requests that it had, or all, end with *why. The sandbox may be stopped on return. */
void boxes_down(struct sandbox *s, bool all, const struct err *why);
/* Moves a waiting request forward as far as it can go now. */
void box_go(struct box *b);
/* The request ends, with what the keeper said or with an error; the last thing its caller does. */
void box_end(struct box *b, const struct verdict *v);
void box_end_with_error(struct box *b, const struct err *e);

/* ---- native_message.c ---- */
/* A message for a session; the last thing its caller does. */
void box_message(struct sandbox *s, struct wire_msg *m);
/* The file that is being copied is given up: what is unfinished is removed; what is finished was taken before. */
void box_copy_end(struct box *b);

/* ---- native_drop.c ---- */
void native_drop(struct box *b, const char *const *paths, size_t n, void (*done)(void *ud), void *ud);
void box_drop_send(struct box *b); /* the box is open: what waited for that */
/* An answer to it; the last thing its caller does. */
void box_drop_answered(struct box *b);
void box_drop_forget(struct box *b); /* the box, and what was to be taken away, is gone */

/* ---- native_ask.c: requests as frames ---- */
/* Fills type and payload of *to. ERR_DATA: never fit to be sent. */
must_check int request_frame(struct request *to, const struct box_request *r, struct err *e);
/* The payload of BOX_PIN; the caller frees it. */
char *pin_payload(int cell, bool pinned);
#endif
