/* agent_think.c - asking the model: again after a transport error, once more after silence, for the last time at a limit. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "agent_private.h"
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

/* Text has come: from here on the peer has read the question, and counts it. */
static void on_delta(void *ud, const char *text, size_t n)
{
    struct agent *a = ud;
    a->heard_bytes += (int64_t)n;
    if (a->ev.said && n)
        a->ev.said(a->ud, text, n);
}

static void on_too_long(void *ud, int64_t window, int64_t sent)
{
    struct agent *a = ud;
    tokens_refused(a->in.scale, a->asked_tokens, window, sent);
}

static void ask(struct agent *a, enum model_tools tools)
{
    static const struct model_events events = { .delta = on_delta, .too_long = on_too_long, .done = on_answer };
    struct err e = { 0 };
    const struct model_ask question = {
        .msgs = a->talk.msgs.at,
        .msg_n = a->talk.msgs.n,
        .tools = tools,
        .files = a->in.files,
        .schema = agent_tools(a),
        .fence = &a->fence,
        .request = a->in.request,
        .cell = a->cell_n ? &a->cells[a->cell_n - 1].cell : NULL,
        .language = a->in.language,
        .seed = a->in.seed,
        .max_output = a->max_output,
    };
    a->asked_tokens = agent_tokens(a);
    a->heard_bytes = 0;
    if (a->ev.said)
        a->ev.said(a->ud, "", 0);
    if (a->in.model_ops->ask(&a->asking, a->in.model, &question, &events, a, &e) < 0) {
        a->asking = NULL;
        transport_failed(a, &e);
    }
}

static enum agent_spending may_spend(struct agent *a)
{
    return a->ev.may_spend ? a->ev.may_spend(a->ud, tokens_scaled(a->in.scale, agent_tokens(a))) : SPEND_FREELY;
}

static void ask_next(struct agent *a)
{
    switch (may_spend(a)) {
    case SPEND_NOTHING:
        a->limit = LIMIT_BUDGET;
        agent_give_up(a);
        return;
    case SPEND_LAST: agent_last(a, LIMIT_BUDGET); return;
    case SPEND_FREELY: break;
    }
    agent_enter(a, TURN_THINK);
    agent_tell(a, a->repairs ? AGENT_REPAIRING : AGENT_THINKING);
    ask(a, MODEL_TOOLS_AUTO);
}

void agent_think(struct agent *a)
{
    if (a->steps >= a->in.conf->max_steps)
        agent_last(a, LIMIT_STEPS);
    else
        agent_fit(a, ask_next);
}

/* ---- what it costs ---- */

static void spend(struct agent *a, const struct model_usage *u)
{
    a->usage.in += u->in;
    a->usage.cached += u->cached;
    a->usage.out += u->out;
    if (a->ev.spent && u->in + u->out)
        a->ev.spent(a->ud, u);
}

void agent_count(struct agent *a, const struct model_usage *u)
{
    const struct token_scale *known = a->in.scale;
    if (!tokens_learn(a->in.scale, a->asked_tokens, u->in)) {
        log_warn("model_lost_context", KV_S("turn", a->in.seed), KV_I("estimated", a->asked_tokens),
                 KV_I("reported", u->in));
        a->lost_context = !known->told;
        a->in.scale->told = true;
    }
    spend(a, u);
}

/* A call that breaks off was read by the peer all the same once it had begun to answer: counted by the estimate. */
static void count_broken(struct agent *a)
{
    const struct model_usage u = { .in = tokens_scaled(a->in.scale, a->asked_tokens), .out = a->heard_bytes / 4 + 1 };
    if (a->heard_bytes)
        spend(a, &u);
    a->heard_bytes = 0;
}

void agent_hang_up(struct agent *a)
{
    loop_cancel(a->in.loop, a->back_off);
    if (!a->asking)
        return;
    a->in.model_ops->cancel(a->asking);
    a->asking = NULL;
    count_broken(a);
}

/* ---- when the transport fails ---- */

static void on_back_off(void *ud)
{
    struct agent *a = ud;
    a->back_off = 0;
    agent_enter(a, TURN_THINK);
    ask(a, MODEL_TOOLS_AUTO);
}

/* What was sent did not fit: it is made shorter, once. */
static void on_shorter(void *ud)
{
    struct agent *a = ud;
    a->back_off = 0;
    if (a->state == TURN_LAST) {
        agent_fit_now(a);
        ask(a, MODEL_TOOLS_NONE);
    } else {
        agent_fit(a, ask_next);
    }
}

static void ask_shorter(struct agent *a)
{
    if (agent_fit_again(a))
        a->back_off = loop_after(a->in.loop, 0, on_shorter, a);
    else
        agent_finish_words(a, AGENT_FAILED, WORD_TOO_LONG, NULL, NULL);
}

/* The planner without a model knows nothing of programs that others wrote. */
static bool can_go_on(const struct agent *a, const struct conf_model *section)
{
    return !a->cell_n || strcmp(section->dialect, "builtin") != 0;
}

/* The same conversation, put to the next model of the list; its window may be another. */
static bool ask_another(struct agent *a)
{
    struct agent_model next;
    do {
        if (!a->ev.next_model || !a->ev.next_model(a->ud, &next))
            return false;
    } while (!can_go_on(a, next.section));
    log_warn("model_fallback", KV_S("turn", a->in.seed), KV_S("from", a->in.section->section),
             KV_S("to", next.section->section));
    a->failed_model = a->failed_model ? a->failed_model : a->in.section->section;
    a->in.model_ops = next.ops;
    a->in.model = next.model;
    a->in.section = next.section;
    a->in.scale = next.scale;
    a->tries = 0;
    a->max_output = 0;
    a->overflowed = false;
    a->back_off = loop_after(a->in.loop, 0, on_shorter, a);
    return true;
}

static void transport_failed(struct agent *a, const struct err *e)
{
    a->tries++;
    count_broken(a);
    log_warn("model_failed", KV_S("turn", a->in.seed), KV_I("try", a->tries), KV_E(e));
    if (model_err_too_long(e)) {
        ask_shorter(a);
        return;
    }
    if (a->state == TURN_LAST) {
        if (!ask_another(a))
            agent_give_up(a);
        return;
    }
    if (err_retryable(e) && a->tries < TRIES_MAX) {
        const int64_t wait_ms = e->retry_ms > 0 ? e->retry_ms : (int64_t)BACK_OFF_MS << (a->tries - 1);
        agent_enter(a, TURN_WAIT);
        a->back_off = loop_after(a->in.loop, wait_ms < BACK_OFF_MAX_MS ? wait_ms : BACK_OFF_MAX_MS, on_back_off, a);
        return;
    }
    if (ask_another(a) || agent_give_draft(a))
        return;
    const bool setup = e->kind == ERR_REFUSED || e->kind == ERR_CONFIG;
    agent_finish_words(a, AGENT_FAILED, setup ? WORD_MODEL_SETUP : WORD_MODEL_DOWN, NULL, NULL);
}

/* ---- what came back ---- */

/* Consecutive messages of people would have to be merged by every provider: merged here. */
void agent_add_note(struct agent *a, char *take_text)
{
    struct model_msg *last = &a->talk.msgs.at[a->talk.msgs.n - 1];
    autofree char *text = take_text;
    if (last->role != MODEL_USER) {
        transcript_add(&a->talk.msgs, MODEL_USER, text);
        return;
    }
    char *both = xasprintf("%s\n\n%s", last->text, text);
    free(last->text);
    last->text = both;
}

static void take_silence(struct agent *a)
{
    if (a->empties++ >= EMPTIES_MAX) {
        agent_last(a, LIMIT_EMPTY);
        return;
    }
    agent_add_note(a, prompts_note(a->in.prompts, NOTE_EMPTY, NULL, NULL));
    agent_think(a);
}

static void take_refusal(struct agent *a, struct model_answer *answer)
{
    answer->stop = MODEL_STOP_END;
    answer->msg.call_n = 0;
    if (agent_is_blank(answer->msg.text))
        agent_finish_words(a, AGENT_REFUSED, WORD_REFUSED, NULL, NULL);
    else
        agent_answer(a, answer, AGENT_REFUSED);
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
    } else if (agent_is_blank(answer->msg.text)) {
        take_silence(a);
    } else {
        agent_answer(a, answer, AGENT_ANSWERED);
    }
}

/* Calls are forbidden here; what is called all the same is not run, and a call or a program written out as text is no answer. */
static void take_last(struct agent *a, struct model_answer *answer)
{
    autofree char *code = NULL;
    autofree char *program = call_fenced_code(answer->msg.text ? answer->msg.text : "");
    const bool in_trouble = a->repairs || a->malformed || a->limit == LIMIT_EMPTY;
    const char *text = answer->msg.text;
    if (agent_is_blank(text) || program || call_from_text(text, &code) != CALL_NONE) {
        agent_give_up(a);
        return;
    }
    struct model_answer words_only = { .stop = answer->stop,
                                       .msg = { .role = MODEL_ASSISTANT, .text = take(answer->msg.text) } };
    agent_answer(a, &words_only, in_trouble ? AGENT_FAILED : AGENT_ANSWERED);
    model_msg_clear(&words_only.msg);
}

/* A server that reports nothing is counted by the estimate where money or tokens are watched. */
static void count_answer(struct agent *a, const struct model_answer *answer)
{
    struct model_usage u = answer->usage;
    if (u.in + u.out == 0 && a->heard_bytes && a->ev.may_spend && a->in.estimate) {
        u.in = tokens_scaled(a->in.scale, a->asked_tokens);
        u.out = tokens_of_text(answer->msg.text);
    }
    agent_count(a, &u);
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
    count_answer(a, answer);
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
        [LIMIT_EMPTY] = NOTE_FINAL_EMPTY,         [LIMIT_BUDGET] = NOTE_FINAL_BUDGET,
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
    agent_add_note(a, last_request(a));
    agent_fit_now(a);
    loop_cancel(a->in.loop, a->deadline);
    a->deadline = loop_after(a->in.loop, LAST_WORD_MS, on_last_deadline, a);
    if (may_spend(a) == SPEND_NOTHING)
        agent_give_up(a);
    else
        ask(a, MODEL_TOOLS_NONE);
}

void agent_think_late(struct agent *a)
{
    agent_hang_up(a);
    a->deadline = 0;
    if (a->state == TURN_LAST)
        agent_give_up(a);
    else
        agent_last(a, LIMIT_TIME);
}
