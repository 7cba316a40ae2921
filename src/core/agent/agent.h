/* agent.h - one turn: from a request to an answer, by way of a model that writes programs and a box that runs them.
 *
 *            ┌────────────── tool results ──────────────┐
 *   BUILD ─→ THINK ─ calls ─→ RUN ─ one cell after the other ┘
 *             │ ↑ back-off        │
 *             │ WAIT              │ at a limit
 *             ├─ text ─→ DONE     ▼
 *             └─ limit ─→ LAST: one ask with tools forbidden ─→ DONE
 *   before THINK, when the conversation is too long: FIT, which asks for notes and variables
 *   cancelled while a cell runs: STOP, until the box has let go of it ─→ DONE
 *
 * The agent counts apart: failed cells in a row, malformed calls in a row, transport tries, steps, wall clock. Whatever
 * happens, done() brings a sentence for the person and a transcript that the next turn can go on from. */
#ifndef AGENT_H
#define AGENT_H
#include "cell.h"
#include "model.h"
#include "sandbox.h"
#include "core/prompt/tokens.h"
#include "core/prompt/transcript.h"

struct agent;
struct conf;
struct prompts;
struct tool_set;

struct agent_input {
    struct loop *loop;
    const struct conf *conf;
    const struct prompts *prompts;
    const struct tool_set *tools; /* NULL: those of prompts/tools.json that need no service */
    const struct model_ops *model_ops;
    struct model *model;
    const struct conf_model *section; /* of the model: its window */
    const struct sandbox_ops *box_ops;
    struct box *box;           /* idle; the agent's alone until done() */
    struct token_scale *scale; /* of the model; may be NULL */
    const char *notes;         /* of turns before `turns`; may be NULL; read during agent_start only, like these: */
    const struct transcript *turns; /* earlier turns, oldest first */
    const int64_t *turn_ids;        /* one each; NULL: none */
    size_t turn_n;
    const struct json *files; /* profiles, newest last; borrowed until done() */
    const char *request;      /* the strings are copied */
    const char *asker;        /* how the person is called */
    const char *code;         /* not NULL: run this as it is, no model */
    const char *note;     /* for the model: what it should know about this turn ("variables are gone"); may be NULL */
    const char *language; /* "en", "zh" */
    const char *seed;     /* session and turn */
    /* JSON of an earlier cell (cell_to_json), *out NULL: none; the agent frees it. With the ud of the events. May be NULL. */
    void (*cell_text)(void *ud, int number, char **out);
    int first_cell; /* number of the next cell */
    bool estimate;  /* a call whose cost was not reported counts by the estimate */
};

enum agent_phase { AGENT_THINKING, AGENT_RUNNING, AGENT_REPAIRING, AGENT_FINISHING };
struct agent_progress {
    enum agent_phase phase;
    int cell;            /* running: its number */
    int repair, repairs; /* repairing: k of m */
};

/* Another model, for the rest of a turn. */
struct agent_model {
    const struct model_ops *ops;
    struct model *model;
    const struct conf_model *section;
    struct token_scale *scale;
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
    int steps;               /* model calls that were answered */
    const char *unsupported; /* numbers of the answer that no output shows, "25, 30"; NULL: none */
    bool box_lost;           /* the sandbox failed: the box is of no use any more */
};

enum agent_spending { SPEND_FREELY, SPEND_LAST, SPEND_NOTHING }; /* LAST: one more call, for a last word */

struct agent_events {
    void (*progress)(void *ud, const struct agent_progress *p);
    /* What the model says, as it comes; borrowed. n 0: another call begins, and what was said before is no answer yet. Optional. */
    void (*said)(void *ud, const char *text, size_t n);
    void (*cell)(void *ud, const char *code, struct cell *c); /* one cell is over; borrowed, may be given notes */
    /* Earlier turns up to `noted` are carried by these notes from now on (NULL: no new ones), and those up to `shortened` are sent as
     * transcript_shorten() leaves them: to be done again in later turns. Optional. */
    void (*shortened)(void *ud, const char *notes, int64_t noted, int64_t shortened);
    /* How much may still be spent on this turn; before each ask. Optional. */
    enum agent_spending (*may_spend)(void *ud, int64_t in_tokens);
    /* The model that was asked has failed for good: who is asked instead; false: nobody. Optional. */
    bool (*next_model)(void *ud, struct agent_model *out);
    /* One call of the model is over and cost this. Optional. */
    void (*spent)(void *ud, const struct model_usage *u);
    /* A tool brought this file, which is laid into the box under that name: to be kept with the session's. Read from fd's beginning;
     * borrowed. Optional. */
    int (*keep_file)(void *ud, const char *name, int fd, struct err *e);
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
