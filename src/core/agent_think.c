/* agent_think.c - asking the model: again after a transport error, once more after silence, for the last time at a limit. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "agent_private.h"
#include "answer.h"
#include "conf.h"
#include "log.h"

enum {
    TRIES_MAX = 3,     /* of one ask, when the transport fails */
    BACK_OFF_MS = 500, /* doubled each time, unless the peer names a time */
    BACK_OFF_MAX_MS = 60000,
    EMPTIES_MAX = 1,      /* silences that are answered with a nudge */
    LAST_WORD_MS = 60000, /* for the last ask, also when the turn's time is over */
};

static void on_answer(void *ud, struct model_answer *answer, const struct err *e);

/* ---- asking ---- */

static void transport_failed(struct agent *a, const struct err *e);

static void ask(struct agent *a, enum model_tools tools)
{
    static const struct model_events events = { .done = on_answer };
    struct err e = { 0 };
    const struct model_ask question = {
        .msgs = a->msgs.at,
        .msg_n = a->msgs.n,
        .tools = tools,
        .files = a->in.files,
        .schema = prompts_tools(a->in.prompts),
        .request = a->in.request,
        .cell = a->cell_n ? &a->cells[a->cell_n - 1].cell : NULL,
        .language = a->in.language,
        .seed = a->in.seed,
    };
    if (a->in.model_ops->ask(&a->asking, a->in.model, &question, &events, a, &e) < 0) {
        a->asking = NULL;
        transport_failed(a, &e);
    }
}

void agent_think(struct agent *a)
{
    if (a->steps >= a->in.conf->max_steps) {
        agent_last(a, LIMIT_STEPS);
        return;
    }
    agent_enter(a, TURN_THINK);
    agent_tell(a, a->repairs ? AGENT_REPAIRING : AGENT_THINKING);
    prompt_squeeze(&a->msgs, a->turn_at, a->budget_tokens, a->in.prompts);
    ask(a, MODEL_TOOLS_AUTO);
}

/* ---- when the transport fails ---- */

static void on_back_off(void *ud)
{
    struct agent *a = ud;
    a->back_off = 0;
    agent_enter(a, TURN_THINK);
    ask(a, MODEL_TOOLS_AUTO);
}

static void transport_failed(struct agent *a, const struct err *e)
{
    a->tries++;
    log_warn("model_failed", KV_S("turn", a->in.seed), KV_I("try", a->tries), KV_E(e));
    if (a->state == TURN_LAST) {
        agent_give_up(a);
        return;
    }
    if (err_retryable(e) && a->tries < TRIES_MAX) {
        const int64_t wait_ms = e->retry_ms > 0 ? e->retry_ms : (int64_t)BACK_OFF_MS << (a->tries - 1);
        agent_enter(a, TURN_WAIT);
        a->back_off = loop_after(a->in.loop, wait_ms < BACK_OFF_MAX_MS ? wait_ms : BACK_OFF_MAX_MS, on_back_off, a);
        return;
    }
    const bool setup = e->kind == ERR_REFUSED || e->kind == ERR_CONFIG;
    agent_finish_words(a, AGENT_FAILED, setup ? WORD_MODEL_SETUP : WORD_MODEL_DOWN, NULL, NULL);
}

/* ---- what came back ---- */

static bool is_blank(const char *text)
{
    while (text && *text && isspace((unsigned char)*text))
        text++;
    return !text || !*text;
}

/* Consecutive messages of people would have to be merged by every provider: merged here. */
static void add_user_note(struct agent *a, char *take_text)
{
    struct model_msg *last = &a->msgs.at[a->msgs.n - 1];
    autofree char *text = take_text;
    if (last->role != MODEL_USER) {
        transcript_add(&a->msgs, MODEL_USER, text);
        return;
    }
    char *both = xasprintf("%s\n\n%s", last->text, text);
    free(last->text);
    last->text = both;
}

/* History keeps what people were shown: a link that leads nowhere would only be learned from. */
static void finish_text(struct agent *a, struct model_answer *answer, enum agent_status status)
{
    struct model_msg *m = &answer->msg;
    autofree char *clean = answer_clean(m->text, a->cells, a->cell_n, a->in.language);
    if (is_blank(clean)) {
        free(clean);
        clean = words(WORD_SEE_FIGURE, a->in.language, NULL, NULL);
    }
    if (strcmp(clean, m->text) != 0) {
        free(m->text);
        free(m->raw);
        m->text = xstrdup(clean);
        m->raw = NULL;
    }
    transcript_take_msg(&a->msgs, m);
    if (answer->stop == MODEL_STOP_LENGTH)
        agent_finish_words(a, status, WORD_ANSWER_CUT, clean, NULL);
    else
        agent_finish(a, status, take(clean));
}

static void take_silence(struct agent *a)
{
    if (a->empties++ >= EMPTIES_MAX) {
        agent_last(a, LIMIT_EMPTY);
        return;
    }
    add_user_note(a, prompts_note(a->in.prompts, NOTE_EMPTY, NULL, NULL));
    agent_think(a);
}

static void take_refusal(struct agent *a, struct model_answer *answer)
{
    answer->stop = MODEL_STOP_END;
    answer->msg.call_n = 0;
    if (is_blank(answer->msg.text))
        agent_finish_words(a, AGENT_REFUSED, WORD_REFUSED, NULL, NULL);
    else
        finish_text(a, answer, AGENT_REFUSED);
}

static void take_step(struct agent *a, struct model_answer *answer)
{
    if (answer->stop == MODEL_STOP_REFUSED) {
        take_refusal(a, answer);
        return;
    }
    agent_plan(a, answer);
    if (a->plan_n) {
        agent_enter(a, TURN_RUN);
        agent_run(a);
    } else if (is_blank(answer->msg.text)) {
        take_silence(a);
    } else {
        finish_text(a, answer, AGENT_ANSWERED);
    }
}

/* Calls are forbidden here; what is called all the same is not run, and a call written out as text is no answer. */
static void take_last(struct agent *a, struct model_answer *answer)
{
    autofree char *code = NULL;
    const bool in_trouble = a->repairs || a->malformed || a->limit == LIMIT_EMPTY;
    const char *text = answer->msg.text;
    if (is_blank(text) || call_from_text(text, &code) != CALL_NONE) {
        agent_give_up(a);
        return;
    }
    struct model_answer words_only = { .stop = answer->stop,
                                       .msg = { .role = MODEL_ASSISTANT, .text = take(answer->msg.text) } };
    finish_text(a, &words_only, in_trouble ? AGENT_FAILED : AGENT_ANSWERED);
    model_msg_clear(&words_only.msg);
}

static void on_answer(void *ud, struct model_answer *answer, const struct err *e)
{
    struct agent *a = ud;
    a->asking = NULL;
    if (e) {
        transport_failed(a, e);
        return;
    }
    a->steps++;
    a->tries = 0;
    a->usage.in += answer->usage.in;
    a->usage.cached += answer->usage.cached;
    a->usage.out += answer->usage.out;
    if (a->state == TURN_LAST)
        take_last(a, answer);
    else
        take_step(a, answer);
}

/* ---- the last word ---- */

static char *last_request(const struct agent *a)
{
    static const enum prompt_note reason[LIMITS] = {
        [LIMIT_NONE] = NOTE_FINAL_EMPTY,          [LIMIT_REPAIRS] = NOTE_FINAL_REPAIRS,
        [LIMIT_MALFORMED] = NOTE_FINAL_MALFORMED, [LIMIT_STEPS] = NOTE_FINAL_STEPS,
        [LIMIT_TIME] = NOTE_FINAL_TIME,           [LIMIT_LOOP] = NOTE_FINAL_LOOP,
        [LIMIT_EMPTY] = NOTE_FINAL_EMPTY,
    };
    const int64_t count[LIMITS] = {
        [LIMIT_REPAIRS] = a->repairs,
        [LIMIT_MALFORMED] = a->malformed,
        [LIMIT_STEPS] = a->steps,
        [LIMIT_TIME] = a->in.conf->turn_timeout_ms / 1000,
    };
    char number[24];
    (void)snprintf(number, sizeof(number), "%" PRId64, count[a->limit]);
    autofree char *why = prompts_note(a->in.prompts, reason[a->limit], number, NULL);
    autofree char *what = prompts_note(a->in.prompts, NOTE_FINAL_ASK, NULL, NULL);
    return xasprintf("%s\n\n%s", why, what);
}

static void on_last_deadline(void *ud)
{
    agent_think_late(ud);
}

void agent_last(struct agent *a, enum turn_limit limit)
{
    a->limit = limit;
    a->tries = 0;
    agent_enter(a, TURN_LAST);
    log_info("turn_limit", KV_S("turn", a->in.seed), KV_I("limit", limit), KV_I("steps", a->steps));
    agent_tell(a, AGENT_FINISHING);
    add_user_note(a, last_request(a));
    prompt_squeeze(&a->msgs, a->turn_at, a->budget_tokens, a->in.prompts);
    loop_cancel(a->in.loop, a->deadline);
    a->deadline = loop_after(a->in.loop, LAST_WORD_MS, on_last_deadline, a);
    ask(a, MODEL_TOOLS_NONE);
}

void agent_think_late(struct agent *a)
{
    a->in.model_ops->cancel(a->asking);
    a->asking = NULL;
    a->deadline = 0;
    if (a->state == TURN_LAST)
        agent_give_up(a);
    else
        agent_last(a, LIMIT_TIME);
}
