/* agent_private.h - the parts of one turn: agent.c begins and ends it, agent_think.c asks the model, agent_run.c runs what
 * it wants run. */
#ifndef AGENT_PRIVATE_H
#define AGENT_PRIVATE_H
#include "agent.h"
#include "call_args.h"
#include "core/claims/claims.h"
#include "loop.h"
#include "core/prompt/prompt.h"
#include "core/prompt/talk.h"
#include "core/prompt/tokens.h"
#include "core/words.h"

enum turn_state { TURN_BUILD, TURN_FIT, TURN_THINK, TURN_WAIT, TURN_RUN, TURN_LAST, TURN_STOP, TURN_DONE, TURN_STATES };

/* Why no more is run. The first one counts. */
enum turn_limit {
    LIMIT_NONE,
    LIMIT_REPAIRS,
    LIMIT_MALFORMED,
    LIMIT_STEPS,
    LIMIT_TIME,
    LIMIT_LOOP,
    LIMIT_EMPTY,
    LIMIT_BUDGET,
    LIMITS
};

struct tool;
struct tool_call;
struct tool_ops;

/* One call of an answer, read. */
struct planned_call {
    char *id;
    enum call_kind kind;
    char *name;              /* as the model called the tool */
    char *code;              /* CALL_CODE only */
    const struct tool *tool; /* CALL_OTHER only, with its arguments */
    char *args;
};

/* What came how often in a row. */
struct repeated {
    char *what;
    int times;
};

enum {
    LOOP_NOTE_TIMES = 2, /* the same call, or the same error, so often in a row: a note about it */
    LOOP_TIMES = 3,      /* no more of it */
};

struct agent {
    struct agent_input in; /* its strings point into kept; turns are gone after agent_start */
    char *kept[5];
    size_t kept_n;
    struct agent_events ev;
    void *ud;

    enum turn_state state;
    struct talk talk;
    char nonce[PROMPT_NONCE_SIZE];
    struct model_fence_words fence; /* what a model without tools is told */
    char *fence_tools;

    /* making it fit */
    void (*fit_next)(struct agent *a); /* what it is made to fit for */
    int64_t fit_to;                    /* tokens, as the model counts */
    struct transcript brief;           /* what notes are asked about */
    size_t brief_n;                    /* so many earlier turns */
    bool asking_box;                   /* for the variables, or to take a file */
    bool overflowed;                   /* the provider said that it was too long */
    bool lost_context;                 /* the server dropped a part without a word: to be told */
    int64_t asked_tokens;              /* estimate of what was last sent */
    int64_t heard_bytes;               /* of the answer to it, so far */

    struct model_call *asking; /* NULL: none */
    loop_timer deadline, back_off;
    int steps, tries, malformed, repairs, empties;
    struct repeated codes, errors;
    enum turn_limit limit;

    struct planned_call *plan;
    size_t plan_n, plan_at;
    bool skip_rest; /* an earlier call of this answer failed */

    /* a service that was called, and what it brought on its way into the box */
    const struct tool_ops *tool_ops;
    struct tool_call *tool_call; /* NULL: none runs */
    char *tool_text, *tool_file;
    int tool_fd, tool_files;

    struct agent_cell *cells;
    size_t cell_n, cell_cap;

    int64_t max_output; /* tokens of an answer, raised once when a call was cut; 0: as configured */
    int objections;     /* so often the model was asked to stand by its answer */
    char *draft;        /* what was to be supported; NULL: nothing yet */
    bool settled;       /* it is given as it is */
    char *unsupported;  /* what no output shows of the answer; NULL: nothing */

    const char *failed_model; /* name of the first one that failed; NULL: none did */
    char *stopped_by;         /* who cancelled; NULL: nobody */
    char *answer;
    enum agent_status status;
    struct model_usage usage;
    bool box_lost;
};

/* agent.c */
void agent_enter(struct agent *a, enum turn_state next); /* the only writer of the state */
void agent_tell(struct agent *a, enum agent_phase phase);
void agent_finish(struct agent *a, enum agent_status status, char *take_answer);
void agent_finish_words(struct agent *a, enum agent_status status, enum word w, const char *x, const char *y);
void agent_give_up(struct agent *a); /* a plain sentence for the limit that was reached */

/* agent_fit.c */
void agent_fit(struct agent *a, void (*next)(struct agent *a)); /* asks for notes and variables if need be, then next */
void agent_fit_now(struct agent *a);                            /* with what can be done at once */
void agent_fit_late(struct agent *a);                           /* the turn's time is over meanwhile */
bool agent_fit_again(struct agent *a);       /* it was too long all the same; false: for the second time */
int64_t agent_tokens(const struct agent *a); /* estimate of the next ask */

/* agent_think.c */
void agent_count(struct agent *a, const struct model_usage *u); /* an answer came: what it cost, what it teaches */
void agent_hang_up(struct agent *a);                            /* the model is not listened to any more */
void agent_add_note(struct agent *a, char *take_text);          /* as a message of the service to the model */
void agent_think(struct agent *a);                              /* the next step */
void agent_last(struct agent *a, enum turn_limit limit);        /* one ask with tools forbidden */
void agent_think_late(struct agent *a);                         /* the turn's time is over while the model is asked */
/* agent_answer.c */
/* The model's words, held against what was computed: given, given with a mark, or asked about once more. */
void agent_answer(struct agent *a, struct model_answer *answer, enum agent_status status);
bool agent_give_draft(struct agent *a); /* the one that was asked about, marked; false: there is none */
bool agent_is_blank(const char *text);
bool agent_wants_program(const struct agent *a); /* the person speaks of code: a program may be the answer */
/* agent_evidence.c */
const char *agent_load_call(const struct agent *a); /* how the newest table is loaded */
bool agent_made_something(const struct agent *a);   /* a figure or a file, in this turn */
struct agent_doubts {
    struct claims facts, files; /* that nothing shows; that do not exist */
    struct claims derived;    /* numbers that nothing shows, but that follow from others: asked about, and not marked */
    bool chart;               /* there is none, and one is spoken of */
    bool unread;              /* no program read a file */
    const char *asked, *read; /* the question names one file, programs read another; borrowed. NULL: it is not so */
    bool echo;                /* it is the question once more */
    bool foreign;             /* it is in another language than the question */
    bool miscounted;          /* "how many" is answered without a whole number */
    char *part;               /* but with this one; NULL: with none */
    char *unheeded;           /* a note below the newest output; NULL: none that must be heeded */
    char *misread;            /* the number that an output shows in the place of another; NULL: none */
    char *other;              /* the columns that were used, where the question names none of them; NULL: it does */
};
void agent_doubts_clear(struct agent_doubts *d);
void agent_doubt(struct agent *a, const char *text, struct agent_doubts *out);
/* agent_reading.c */
bool agent_read_nothing(const struct agent *a); /* programs worked, and not one read a file */
const char *agent_read_another(const struct agent *a,
                               const char **read); /* the file that the question names; NULL: it was read */
/* The columns that were used, when the question names none of them; caller frees; else NULL. */
char *agent_other_columns(const struct agent *a, const char *answer);
/* agent_run.c */
void agent_plan(struct agent *a, struct model_answer *answer); /* reads the calls; history gets only what is valid */
void agent_run(struct agent *a);                               /* from the plan's next call on */
void agent_plan_code(struct agent *a, const char *id, const char *code);
void agent_plan_clear(struct agent *a);
int repeated_add(struct repeated *r, const char *what); /* how often it came in a row, this time included */
/* agent_tool.c */
const struct json *agent_tools(const struct agent *a); /* as models are told of them */
int64_t agent_tools_tokens(const struct agent *a);
bool agent_run_tool(struct agent *a);    /* the plan's next call; false: it goes on from there, agent_run() follows */
bool agent_tool_cancel(struct agent *a); /* false: no service was asked */
bool agent_tool_late(struct agent *a);   /* the same at the deadline, with the last word to follow */
void agent_tool_clear(struct agent *a);
#endif
