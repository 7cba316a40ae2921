/* agent_private.h - the parts of one turn: agent.c begins and ends it, agent_think.c asks the model, agent_run.c runs what
 * it wants run. */
#ifndef AGENT_PRIVATE_H
#define AGENT_PRIVATE_H
#include "agent.h"
#include "call_args.h"
#include "loop.h"
#include "prompt.h"
#include "words.h"

enum turn_state { TURN_BUILD, TURN_THINK, TURN_WAIT, TURN_RUN, TURN_LAST, TURN_STOP, TURN_DONE, TURN_STATES };

/* Why no more is run. The first one counts. */
enum turn_limit {
    LIMIT_NONE,
    LIMIT_REPAIRS,
    LIMIT_MALFORMED,
    LIMIT_STEPS,
    LIMIT_TIME,
    LIMIT_LOOP,
    LIMIT_EMPTY,
    LIMITS
};

/* One call of an answer, read. */
struct planned_call {
    char *id;
    enum call_kind kind;
    char *name; /* as the model called the tool */
    char *code; /* CALL_CODE only */
};

/* What came how often in a row. */
struct repeated {
    char *what;
    int times;
};

struct agent {
    struct agent_input in; /* its strings point into kept; turns are gone after agent_start */
    char *kept[5];
    size_t kept_n;
    struct agent_events ev;
    void *ud;

    enum turn_state state;
    struct transcript msgs; /* system, earlier turns, and from turn_at on this one */
    size_t turn_at;
    char nonce[PROMPT_NONCE_SIZE];
    int64_t budget_tokens;

    struct model_call *asking; /* NULL: none */
    loop_timer deadline, back_off;
    int steps, tries, malformed, repairs, empties;
    struct repeated codes, errors;
    enum turn_limit limit;

    struct planned_call *plan;
    size_t plan_n, plan_at;
    bool skip_rest; /* an earlier call of this answer failed */
    struct agent_cell *cells;
    size_t cell_n, cell_cap;

    char *stopped_by; /* who cancelled; NULL: nobody */
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

/* agent_think.c */
void agent_think(struct agent *a);                       /* the next step */
void agent_last(struct agent *a, enum turn_limit limit); /* one ask with tools forbidden */
void agent_think_late(struct agent *a);                  /* the turn's time is over while the model is asked */
/* agent_run.c */
void agent_plan(struct agent *a, struct model_answer *answer); /* reads the calls; history gets only what is valid */
void agent_run(struct agent *a);                               /* from the plan's next call on */
void agent_plan_code(struct agent *a, const char *id, const char *code);
void agent_plan_clear(struct agent *a);
int repeated_add(struct repeated *r, const char *what); /* how often it came in a row, this time included */
#endif
