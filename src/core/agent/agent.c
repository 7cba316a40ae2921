/* agent.c - a turn begins, is stopped, ends. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "agent_private.h"
#include "agent_result.h"
#include "answer.h"
#include "conf.h"
#include "log.h"
#include "tool_table.h"

static const uint8_t turn_next[TURN_STATES] = {
    /* what may follow what; all else is a bug here */
    [TURN_BUILD] = 1 << TURN_FIT | 1 << TURN_THINK | 1 << TURN_RUN | 1 << TURN_LAST | 1 << TURN_DONE,
    [TURN_FIT] = 1 << TURN_THINK | 1 << TURN_LAST | 1 << TURN_STOP | 1 << TURN_DONE,
    [TURN_THINK] = 1 << TURN_FIT | 1 << TURN_THINK | 1 << TURN_WAIT | 1 << TURN_RUN | 1 << TURN_LAST | 1 << TURN_DONE,
    [TURN_WAIT] = 1 << TURN_FIT | 1 << TURN_THINK | 1 << TURN_DONE,
    [TURN_RUN] = 1 << TURN_FIT | 1 << TURN_THINK | 1 << TURN_LAST | 1 << TURN_STOP | 1 << TURN_DONE,
    [TURN_LAST] = 1 << TURN_DONE,
    [TURN_STOP] = 1 << TURN_DONE,
};

static const char *const state_names[TURN_STATES] = { "build", "fit", "think", "wait", "run", "last", "stop", "done" };

void agent_enter(struct agent *a, enum turn_state next)
{
    if (!(turn_next[a->state] & (1 << next)))
        abort();
    log_debug("turn_state", KV_S("turn", a->in.seed), KV_S("from", state_names[a->state]),
              KV_S("to", state_names[next]));
    a->state = next;
}

void agent_tell(struct agent *a, enum agent_phase phase)
{
    const struct agent_progress p = {
        .phase = phase,
        .cell = a->in.first_cell + (int)a->cell_n,
        .repair = a->repairs,
        .repairs = (int)a->in.conf->max_repairs,
    };
    if (a->ev.progress)
        a->ev.progress(a->ud, &p);
}

const char *agent_status_name(enum agent_status s)
{
    switch (s) {
    case AGENT_ANSWERED: return "answered";
    case AGENT_FAILED: return "failed";
    case AGENT_REFUSED: return "refused";
    case AGENT_CANCELLED: return "cancelled";
    }
    return "?";
}

/* ---- the end ---- */

static void deliver(void *ud)
{
    struct agent *a = ud;
    struct transcript turn = { 0 };
    for (size_t i = a->talk.turn_at; i < a->talk.msgs.n; i++)
        transcript_take_msg(&turn, &a->talk.msgs.at[i]);
    a->talk.msgs.n = a->talk.turn_at;
    struct agent_outcome o = {
        .status = a->status,
        .answer = a->answer,
        .transcript = &turn,
        .cells = a->cells,
        .cell_n = a->cell_n,
        .usage = a->usage,
        .steps = a->steps,
        .box_lost = a->box_lost,
        .unsupported = a->unsupported,
    };
    a->ev.done(a->ud, &o);
    a->cells = o.cells;
    a->cell_n = o.cell_n;
    transcript_clear(&turn);
}

/* Calls that nobody will answer any more get a result that says so: the next turn goes on from a valid history. */
static void close_open_calls(struct agent *a)
{
    autofree char *gap = a->stopped_by ? prompts_note(a->in.prompts, NOTE_CANCELLED, a->stopped_by, NULL)
                                       : prompts_note(a->in.prompts, NOTE_NOT_RUN_LIMIT, NULL, NULL);
    struct transcript turn = { 0 };
    for (size_t i = a->talk.turn_at; i < a->talk.msgs.n; i++)
        transcript_take_msg(&turn, &a->talk.msgs.at[i]);
    a->talk.msgs.n = a->talk.turn_at;
    transcript_sanitize(&turn, gap);
    transcript_take(&a->talk.msgs, &turn);
}

/* Drafts that were asked about are no part of what people were told. */
static void drop_passing(struct agent *a)
{
    size_t kept = a->talk.turn_at;
    for (size_t i = a->talk.turn_at; i < a->talk.msgs.n; i++) {
        if (a->talk.msgs.at[i].passing)
            model_msg_clear(&a->talk.msgs.at[i]);
        else
            a->talk.msgs.at[kept++] = a->talk.msgs.at[i];
    }
    a->talk.msgs.n = kept;
}

void agent_finish(struct agent *a, enum agent_status status, char *take_answer)
{
    loop_cancel(a->in.loop, a->deadline);
    loop_cancel(a->in.loop, a->back_off);
    agent_enter(a, TURN_DONE);
    close_open_calls(a);
    if (a->talk.msgs.n == a->talk.turn_at || a->talk.msgs.at[a->talk.msgs.n - 1].role != MODEL_ASSISTANT)
        transcript_add(&a->talk.msgs, MODEL_ASSISTANT, take_answer);
    drop_passing(a);
    a->status = status;
    a->answer = take_answer;
    log_debug("turn_end", KV_S("turn", a->in.seed), KV_S("status", agent_status_name(status)), KV_I("steps", a->steps),
              KV_I("cells", a->cell_n));
    loop_defer(a->in.loop, deliver, a);
}

void agent_finish_words(struct agent *a, enum agent_status status, enum word w, const char *x, const char *y)
{
    agent_finish(a, status, words(w, a->in.language, x, y));
}

void agent_give_up(struct agent *a)
{
    static const enum word sentence[LIMITS] = {
        [LIMIT_NONE] = WORD_NO_ANSWER,
        [LIMIT_REPAIRS] = WORD_GAVE_UP_REPAIRS,
        [LIMIT_MALFORMED] = WORD_GAVE_UP_MALFORMED,
        [LIMIT_STEPS] = WORD_GAVE_UP_STEPS,
        [LIMIT_TIME] = WORD_GAVE_UP_TIME,
        [LIMIT_LOOP] = WORD_GAVE_UP_LOOP,
        [LIMIT_EMPTY] = WORD_NO_ANSWER,
        [LIMIT_BUDGET] = WORD_GAVE_UP_BUDGET,
    };
    if (agent_give_draft(a))
        return;
    const int64_t count = a->limit == LIMIT_REPAIRS ? a->repairs
                          : a->limit == LIMIT_TIME  ? a->in.conf->turn_timeout_ms / 1000
                                                    : a->steps;
    char number[24];
    (void)snprintf(number, sizeof(number), "%" PRId64, count);
    agent_finish_words(a, AGENT_FAILED, sentence[a->limit], number, a->errors.what);
}

/* ---- the clock ---- */

static void on_deadline(void *ud)
{
    struct agent *a = ud;
    a->deadline = 0;
    switch (a->state) {
    case TURN_THINK:
    case TURN_LAST: agent_think_late(a); break;
    case TURN_FIT: agent_fit_late(a); break;
    case TURN_WAIT:
        loop_cancel(a->in.loop, a->back_off);
        a->limit = LIMIT_TIME;
        agent_give_up(a);
        break;
    case TURN_RUN:
        if (agent_tool_late(a))
            break;
        a->limit = LIMIT_TIME; /* the cell's end goes on from here */
        a->in.box_ops->cancel(a->in.box);
        break;
    case TURN_BUILD:
    case TURN_STOP:
    case TURN_DONE:
    case TURN_STATES: break;
    }
}

/* ---- the beginning ---- */

static void begin(void *ud)
{
    struct agent *a = ud;
    if (!a->in.code) {
        agent_think(a);
        return;
    }
    agent_enter(a, TURN_RUN);
    struct model_msg *m = transcript_add(&a->talk.msgs, MODEL_ASSISTANT, "");
    autofree char *args = call_args_write(a->in.code);
    transcript_add_call(m, "call_own", CALL_TOOL, args);
    agent_plan_code(a, "call_own", a->in.code);
    agent_run(a);
}

static const char *keep(struct agent *a, const char *text)
{
    if (!text)
        return NULL;
    a->kept[a->kept_n] = xstrdup(text);
    return a->kept[a->kept_n++];
}

static void keep_input(struct agent *a, const struct agent_input *in)
{
    a->in = *in;
    a->in.turns = NULL;
    a->in.turn_ids = NULL;
    a->in.notes = NULL;
    a->in.turn_n = 0;
    a->in.note = NULL;
    a->in.request = keep(a, in->request);
    a->in.asker = keep(a, in->asker);
    a->in.code = keep(a, in->code);
    a->in.language = keep(a, in->language);
    a->in.seed = keep(a, in->seed ? in->seed : "");
}

static void keep_fence(struct agent *a)
{
    autofree char *lines = tool_set_lines(a->in.tools);
    a->fence = *prompts_fence(a->in.prompts);
    a->fence_tools = lines ? prompts_note(a->in.prompts, NOTE_FENCE_TOOLS, lines, NULL) : NULL;
    a->fence.tools = a->fence_tools;
}

int agent_start(struct agent **out, const struct agent_input *in, const struct agent_events *ev, void *ud,
                struct err *e)
{
    if (!in->box)
        return err_set(e, ERR_SANDBOX, "a turn without a box");
    if (!in->code && !in->model)
        return err_set(e, ERR_CONFIG, "a turn without a model");
    struct agent *a = xcalloc(1, sizeof(*a));
    keep_input(a, in);
    keep_fence(a);
    a->ev = *ev;
    a->ud = ud;
    a->tool_fd = -1;
    prompt_nonce(a->nonce);
    const struct prompt_turn turn = {
        .prompts = in->prompts,
        .notes = in->notes,
        .turns = in->turns,
        .turn_ids = in->turn_ids,
        .turn_n = in->turn_n,
        .files = in->files,
        .asker = in->asker,
        .request = in->request,
        .note = in->note,
        .nonce = a->nonce,
    };
    prompt_assemble(&a->talk, &turn);
    a->deadline = loop_after(in->loop, in->conf->turn_timeout_ms, on_deadline, a);
    loop_defer(in->loop, begin, a);
    *out = a;
    return 0;
}

/* ---- stopped and gone ---- */

void agent_cancel(struct agent *a, const char *by)
{
    if (a->state == TURN_DONE || a->stopped_by)
        return;
    a->stopped_by = xstrdup(by);
    loop_defer_cancel(a->in.loop, begin, a);
    loop_cancel(a->in.loop, a->back_off);
    if (agent_tool_cancel(a)) {
        agent_finish_words(a, AGENT_CANCELLED, WORD_CANCELLED, by, NULL);
        return;
    }
    if (a->state == TURN_RUN || a->asking_box) {
        agent_enter(a, TURN_STOP); /* the box ends it */
        a->in.box_ops->cancel(a->in.box);
        return;
    }
    agent_hang_up(a);
    agent_finish_words(a, AGENT_CANCELLED, WORD_CANCELLED, by, NULL);
}

void agent_free(struct agent *a)
{
    if (!a)
        return;
    loop_cancel(a->in.loop, a->deadline);
    loop_cancel(a->in.loop, a->back_off);
    loop_defer_cancel(a->in.loop, begin, a);
    loop_defer_cancel(a->in.loop, deliver, a);
    if (a->asking)
        a->in.model_ops->cancel(a->asking);
    for (size_t i = 0; i < a->cell_n; i++) {
        free(a->cells[i].code);
        cell_clear(&a->cells[i].cell);
    }
    free(a->cells);
    agent_plan_clear(a);
    agent_tool_clear(a);
    talk_clear(&a->talk);
    transcript_clear(&a->brief);
    free(a->codes.what);
    free(a->errors.what);
    free(a->stopped_by);
    free(a->unsupported);
    free(a->draft);
    free(a->fence_tools);
    free(a->answer);
    for (size_t i = 0; i < a->kept_n; i++)
        free(a->kept[i]);
    free(a);
}
