/* state.h - a box's variables into the store and back: the way between the two ports.
 *
 *   save   box -> bytes as they come -> store (label, seal, row)
 *   load   newest checkpoint on the way to that cell -> seal checked, a slice at a time -> box -> cells since, run again
 *             │ not ours, changed, of another image, or the box can't read it: the one before it, then none
 *
 * One job runs for a box at a time, and the box is the job's alone meanwhile. done() comes once, never from inside the call
 * that starts a job. */
#ifndef STATE_H
#define STATE_H
#include "sandbox.h"
#include "store.h"

struct json;
struct state_job;

/* Borrowed until done(). */
struct state_parts {
    struct loop *loop;
    struct store *store;
    const struct sandbox_ops *ops;
    struct box *box; /* idle */
    const char *session;
    const char *image; /* which one boxes are made of */
    int64_t max_bytes, timeout_ms;
    int64_t rerun_ms; /* load: how long cells since may take together; 0: none is run again */
    bool used;        /* load: the interpreter has variables of another state, which must not show in this one */
};

/* Why a cell in not_rerun was not even tried: its first run had raised. */
#define STATE_HAD_FAILED "it had failed"

/* One of report, e is NULL; borrowed.
 * save: as BOX_OP_CHECKPOINT has it. ERR_REFUSED: cancelled.
 * load: {"cell","kept","bytes","lost","notes","rerun":[6,7],"not_rerun":[{"cell","why"}]}; cell 0: no checkpoint was of use. "notes" say
 * why not, too. ERR_DATA: there is nothing to load. ERR_SANDBOX: the box is of no use any more. */
typedef void state_done_fn(void *ud, const struct json *report, const struct err *e);

/* The state is, or is to be, the one after that cell. ANY: of the newest checkpoint. */
enum { STATE_ANY = -1 };
struct state_job *state_save(const struct state_parts *p, int cell, state_done_fn *done, void *ud);
struct state_job *state_load(const struct state_parts *p, int cell, state_done_fn *done, void *ud);
/* As soon as the box lets go; done() still comes. */
void state_cancel(struct state_job *j);
/* Instead of done(), when the box is closed at once; NULL is fine. */
void state_free(struct state_job *j);
#endif
