/* cell.h - one run of code in a box and what came of it: the neutral form that box, agent, store and command line share.
 * Floor 2. Its JSON is the contract of `sandbook cells --json` (docs/cli.md). */
#ifndef CELL_H
#define CELL_H
#include "err.h"

struct json;

enum cell_status {
    CELL_OK,
    CELL_ERROR,     /* the code raised; variables are kept */
    CELL_TIMEOUT,   /* over its wall clock */
    CELL_OOM,       /* over its memory */
    CELL_CRASH,     /* died of a signal or ended the interpreter */
    CELL_LIMIT,     /* another limit: output, processes, files */
    CELL_CANCELLED, /* a person stopped it */
};

enum cell_state { CELL_KEPT, CELL_ROLLED_BACK, CELL_LOST }; /* what is left of the variables */

/* A file that a cell made. `path` is where it lies on the host once delivered, `name` its path below /mnt/data. */
struct artifact {
    char *path, *name;
    int64_t bytes;
    int width, height;     /* figures only, pixels */
    char *title, *summary; /* figures only; may be NULL. summary: what is drawn, in words, for a model without eyes */
    bool shown;            /* files only: a picture that the code saved of a figure which is among the figures anyway */
    /* Files only: the path below /mnt/data as it is, where name was made fit for people; else NULL. */
    char *box_name;
};

struct artifacts {
    struct artifact *at;
    size_t n, cap;
};

/* What the box's look at the code found before it ran: a hint for readers and the log, never proof of anything. */
struct cell_finding {
    char *kind, *what; /* "shell"; "os.system" */
    int line;          /* in the cell, from 1 */
};

struct cell {
    char *id;   /* the caller's, or NULL */
    int number; /* counted per session, from 1 */
    enum cell_status status;
    enum cell_state state;
    char *out, *err; /* scrubbed text, head and tail with a marker between when cut; never NULL after cell_init */
    bool truncated;
    char *result_text, *result_html;                  /* last expression; NULL: none */
    char *error_name, *error_value, *error_traceback; /* error_name NULL: no error */
    int error_line;                                   /* in the cell's own code, from 1; 0: unknown */
    struct artifacts figures, files;
    struct cell_finding *findings;
    size_t finding_n;
    char **gone; /* paths below /mnt/data: files that went, folders with all that was in them */
    size_t gone_n;
    char **notes; /* for the model and the log: "pip is not available ..." */
    size_t note_n;
    char *why; /* what killed it, in words with limit and peak; NULL when nothing did */
    double took_ms, start_ms;
    int64_t peak_bytes; /* 0: not known */
};

void cell_init(struct cell *c);
/* How a note begins that says what could not be kept, and why: the person is told these, too. */
#define CELL_NOT_KEPT "not kept: "
/* And how one begins that names a file with cells that a spreadsheet runs: "formulas: out/x.csv: 3 cells ...". */
#define CELL_FORMULAS "formulas: "
/* Adds a note, scrubbed and cut; text need not be anything. */
void cell_add_note(struct cell *c, const char *text);
void cell_clear(struct cell *c);
const char *cell_status_name(enum cell_status s);
const char *cell_state_name(enum cell_state s);
/* A new object, keys and order as in the contract; the caller frees. with_code: adds "code". */
struct json *cell_to_json(const struct cell *c, const char *code);

/* Takes kind and what. */
void cell_add_finding(struct cell *c, char *take_kind, char *take_what, int line);

/* Width and height of a PNG as its header says; untouched when it is none, or larger than we would show. */
void picture_size(int fd, int *width, int *height);
/* How the small picture beside a figure ends, in place of ".png": 800 x 600 at most, made in the box when the figure is larger, for rooms
 * whose server can't make one. It may be missing. */
#define PICTURE_SMALL ".small.png"

struct artifact *artifacts_add(struct artifacts *a); /* zeroed; valid until the next add */
void artifacts_clear(struct artifacts *a);
/* .cache/x, __pycache__/y, .hidden: what programs make for themselves, below /mnt/data. Not handed over to people. */
bool artifact_is_hidden(const char *name);
#endif
