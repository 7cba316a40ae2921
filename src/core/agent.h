/* agent.h - one turn: from a request to an answer, by way of a model that writes programs and a box that runs them.
 *
 *            ┌────────────── tool results ──────────────┐
 *   BUILD ─→ THINK ─ calls ─→ RUN ─ one cell after the other ┘
 *             │ ↑ back-off        │
 *             │ WAIT              │ at a limit
 *             ├─ text ─→ DONE     ▼
 *             └─ limit ─→ LAST: one ask with tools forbidden ─→ DONE
 *   cancelled while a cell runs: STOP, until the box has let go of it ─→ DONE
 *
 * The agent counts apart: failed cells in a row, malformed calls in a row, transport tries, steps, wall clock. Whatever
 * happens, done() brings a sentence for the person and a transcript that the next turn can go on from. */
#ifndef AGENT_H
#define AGENT_H
#include "cell.h"
#include "model.h"
#include "sandbox.h"
#include "transcript.h"

struct agent;
struct conf;
struct prompts;

struct agent_input {
    struct loop *loop;
    const struct conf *conf;
    const struct prompts *prompts;
    const struct model_ops *model_ops;
    struct model *model;
    const struct conf_model *section; /* of the model: its window */
    const struct sandbox_ops *box_ops;
    struct box *box;                /* idle; the agent's alone until done() */
    const struct transcript *turns; /* earlier turns, oldest first; read during agent_start only */
    size_t turn_n;
    const struct json *files; /* profiles, newest last; borrowed until done() */
    const char *request;      /* the strings are copied */
    const char *asker;        /* how the person is called */
    const char *code;         /* not NULL: run this as it is, no model */
    const char *note;     /* for the model: what it should know about this turn ("variables are gone"); may be NULL */
    const char *language; /* "en", "zh" */
    const char *seed;     /* session and turn */
    int first_cell;       /* number of the next cell */
};

enum agent_phase { AGENT_THINKING, AGENT_RUNNING, AGENT_REPAIRING, AGENT_FINISHING };
struct agent_progress {
    enum agent_phase phase;
    int cell;            /* running: its number */
    int repair, repairs; /* repairing: k of m */
};

enum agent_status { AGENT_ANSWERED, AGENT_FAILED, AGENT_REFUSED, AGENT_CANCELLED };
const char *agent_status_name(enum agent_status s);

struct agent_cell {
    char *code;
    struct cell cell;
};

/* Borrowed during done(); the callback may take cells and transcript by leaving zeroes. */
struct agent_outcome {
    enum agent_status status;
    const char *answer;            /* Markdown, never blank */
    struct transcript *transcript; /* this turn's messages, from the person's to the answer */
    struct agent_cell *cells;
    size_t cell_n;
    struct model_usage usage;
    int steps;     /* model calls that were answered */
    bool box_lost; /* the sandbox failed: the box is of no use any more */
};

struct agent_events {
    void (*progress)(void *ud, const struct agent_progress *p);
    void (*cell)(void *ud, const char *code, const struct cell *c); /* one cell is over; borrowed */
    void (*done)(void *ud, struct agent_outcome *o); /* once, last, never from inside agent_start or agent_cancel */
};

/* Copies what it keeps. Fails only when the turn cannot begin at all. */
must_check int agent_start(struct agent **out, const struct agent_input *in, const struct agent_events *ev, void *ud,
                           struct err *e);
/* Ends the turn as soon as the box lets go; done() still comes. `by` names who stopped it, for the transcript. */
void agent_cancel(struct agent *a, const char *by);
/* After done(), not inside it; or while running once its box is closed. NULL is fine. */
void agent_free(struct agent *a);
#endif
