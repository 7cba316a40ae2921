/* sandbox.h - a place where untrusted code runs: the port that the agent uses and box/ implements. Floor 2.
 *
 * A `sandbox` makes boxes (native: one connection to a keeper process; fake: a script, for tests). A `box` is one session's.
 * Everything a box does is a request: started by box_ask, reported through box_events, ended by exactly one done(). A box
 * runs one request at a time; a second is refused with ERR_SANDBOX. */
#ifndef SANDBOX_H
#define SANDBOX_H
#include "cell.h"

struct loop;
struct conf;
struct sandbox;
struct box;

struct box_limits {
    int64_t memory_bytes, disk_bytes;
    int pids, cpus;
    /* Folder (open for reading, borrowed for the box's life) whose files /mnt/data begins with, and which nobody changes
     * meanwhile; 0: none. Only where sandbox_ops.lays_files. */
    int files_fd;
};

enum box_op {
    BOX_OP_CELL,   /* text = code; number, timeout_ms */
    BOX_OP_PUT,    /* name, fd (borrowed until done): that file appears as /mnt/data/<name> */
    BOX_OP_INTAKE, /* name: unpack if an archive, profile; reply = {"profiles":[...]} as docs/profile.md has it */
    BOX_OP_VARS,   /* reply = {"vars":[{"name","type","detail"}]} */
    BOX_OP_RESET,  /* a new interpreter, files stay */
    /* number: variables become what they were after that cell, files stay. UNDO with number 0: before the last cell; BRANCH
     * with number 0: a new interpreter. BRANCH with fd (borrowed until done; -1: none) of a folder as box_limits.files_fd:
     * /mnt/data becomes its files, and no others. The state that was left can be gone back to as well, for a while: box.copies says how
     * many are kept. reply = {"state":"rolled_back","cell":N,"notes":["the thread pool `ex` is gone"]}; ERR_REFUSED when that
     * state is not there any more, with the cells that are, in words */
    BOX_OP_UNDO,
    BOX_OP_BRANCH,
    /* The variables as bytes, which go to `bytes` as they come; number, timeout_ms, max_bytes. What they are is the box's own affair:
     * they are a program, to be kept where nobody changes them and to be given to a box of the same session only.
     * reply = {"kept":12,"bytes":10485760,"lost":[{"name","type","why"}],"notes":["..."],"python":"3.13.5"}: what is not among
     * them is in lost. ERR_STORE and what else bytes() failed with. The variables stay as they are in any case */
    BOX_OP_CHECKPOINT,
    /* fd (borrowed until done), from, bytes: a new interpreter gets the variables that lie there; files stay; states of the past go.
     * number: the cell that they are after. reply as above; ERR_DATA: nothing came back, and the interpreter is a new one */
    BOX_OP_RESTORE,
};

struct box_request {
    enum box_op op;
    const char *text; /* code */
    size_t text_n;
    const char *name; /* file name below /mnt/data, NFC */
    int fd;
    int number;
    int64_t timeout_ms; /* 0: the configured one */
    int64_t from, bytes, max_bytes;
};

struct box_reply {
    struct cell *cell; /* BOX_OP_CELL. The callback may take the content: copy the struct, zero this one. Borrowed */
    const struct json *reply; /* other ops: borrowed. Valid UTF-8, but written inside the box: scrub what is shown */
};

struct box_events {
    /* Optional: raw progress, scrubbed; borrowed, not NUL-terminated. Stream 1 or 2. */
    void (*output)(void *ud, int stream, const char *text, size_t n);
    /* BOX_OP_CHECKPOINT: borrowed. -1: no more is wanted, and e is what done() gets. */
    int (*bytes)(void *ud, const char *data, size_t n, struct err *e);
    /* One of r, e is NULL. e: ERR_SANDBOX, the sandbox failed, not the code; other ops than a cell also: ERR_DATA, what was
     * given cannot be worked on (the box ran into a limit, or says so itself), ERR_TIMEOUT, ERR_REFUSED (cancelled).
     * Last call; the next ask, and close, are allowed inside it. */
    void (*done)(void *ud, const struct box_reply *r, const struct err *e);
};

struct sandbox_ops {
    const char *name;
    bool lays_files; /* a box can begin with a folder of files; else each is put */
    /* Returns at once; ready() comes on the loop: e NULL when boxes can be opened, else ERR_CONFIG with what the machine lacks and
     * how to mend it, or ERR_SANDBOX. */
    must_check int (*start)(struct sandbox **out, struct loop *l, const struct conf *c,
                            void (*ready)(void *ud, const struct err *e), void *ud, struct err *e);
    void (*stop)(struct sandbox *s); /* closes every box, ends the keeper; no callback after it; NULL is fine */
    /* What ready found: {"tier","features","problems","image"}; image: which one boxes are made of, for checkpoints. Borrowed;
     * NULL before ready. */
    const struct json *(*report)(const struct sandbox *s);
    /* Try the escapes: note() for each, then done(). */
    must_check int (*check)(struct sandbox *s,
                            void (*note)(void *ud, const char *name, const char *outcome, const char *detail),
                            void (*done)(void *ud, const struct err *e), void *ud, struct err *e);

    /* out_dir_fd: folder on the host (borrowed for the box's life) where new files of cells are delivered: figures as
     * figure-N-M.png, files under their names below /mnt/data, each written whole (temp, fsync, rename). */
    must_check int (*open)(struct box **out, struct sandbox *s, const struct box_limits *lim, int out_dir_fd,
                           const char *out_dir, struct err *e);
    must_check int (*ask)(struct box *b, const struct box_request *r, const struct box_events *ev, void *ud,
                          struct err *e);
    /* Interrupts the running request, which still ends in done(); harmless when none runs. */
    void (*cancel)(struct box *b);
    /* The state after that cell is kept although newer ones come, or no longer: box.copies says how many states there are, and all but
     * one of them can be pinned. Also while a request runs; no answer. Harmless where that state is not there. */
    void (*pin)(struct box *b, int cell, bool pinned);
    /* Those files below /mnt/data go, also while a request runs, and folders that are empty then; what has one of them open keeps
     * that. done() when none of them can be opened there any more: of several calls the last one's, once for all; perhaps before drop
     * returns; never after close, or when the box is lost. */
    void (*drop)(struct box *b, const char *const *paths, size_t n, void (*done)(void *ud), void *ud);
    /* Kills everything inside and removes it; no callback after it; NULL is fine. */
    void (*close)(struct box *b);
    /* Everything that was inside is gone, files too (the keeper died and the box will be a new one): put the files again
     * before the next cell. False again once a request has ended well. The next cell's state says "lost" in any case. */
    bool (*lost)(const struct box *b);
    /* For a box that is lost: the folder that the next one begins with. */
    void (*refit)(struct box *b, int files_fd);
};
extern const struct sandbox_ops sandbox_native, sandbox_fake;

/* ---- the scripted one, for tests and for machines that cannot box ----
 * One JSON object a line, used up in order by the requests of its op ("op": cell, put, intake, vars, reset, undo, branch, checkpoint,
 * restore; absent: cell).
 * A cell line has the keys of `sandbook cells --json`, all optional; figures and files are written into out_dir ("content":
 * text of a file). Any line: "delay_ms" on the loop's clock, "output" progress told before, "hang": true until cancelled,
 * "content" of a checkpoint: its bytes. "fail": "words" of an ERR_SANDBOX, "lost": true then also loses the box. Other ops answer with the line itself. With no
 * line left: an empty ok. A line that is no JSON object aborts. Forgets what was there and what was asked. */
void sandbox_fake_script(const char *json_lines);
/* The i-th request since, oldest first: "cell CODE", "put NAME", "intake NAME", "vars", "reset", "undo NUMBER",
 * "branch NUMBER", "checkpoint", "restore NUMBER CONTENT", "drop NAME"; NULL: fewer. Borrowed. */
const char *sandbox_fake_asked(size_t i);
/* How often that state was pinned since, less how often it was let go. */
int sandbox_fake_pinned(int cell);
#endif
