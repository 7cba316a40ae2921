/* agent_fit.c - the conversation is made to fit before it is sent.
 *
 * Past 75 per cent of the window it goes down to 45 at once, in this order: old turns' results to their first lines and programs that
 * failed out; this turn's older results likewise; old turns into notes, by one call of the model; the kept turns' results; whole
 * turns. Seldom and far, since each change of old text costs the provider's cache. The interpreter keeps what the text loses: after
 * notes were made, or results of this turn went, the live variables are told. */
#include <string.h>
#include "agent_private.h"
#include "conf.h"
#include "json.h"
#include "log.h"

enum {
    FULL_PART = 75,   /* per cent of the budget past which something is done */
    GOAL_PART = 45,   /* and down to which */
    SPARE_PART = 95,  /* of the window: the estimate is one */
    RESULTS_KEPT = 2, /* this turn's newest results stay whole */
    NOTES_MAX = 32 << 10,
    LINE_BYTES = 300, /* of a question or an answer, in notes that we write ourselves */
    VARS_MAX = 40,
    VAR_BYTES = 100,
    STATE_MAX = 512 << 10,
};

/* ---- sizes ---- */

/* What may be sent, as the model counts. */
static int64_t window_of(const struct agent *a)
{
    const int64_t held = a->in.scale ? a->in.scale->window : 0;
    const int64_t window = held && held < a->in.section->context_tokens ? held : a->in.section->context_tokens;
    const int64_t budget = (window - a->in.section->max_output_tokens) * SPARE_PART / 100;
    return budget > window / 4 ? budget : window / 4;
}

int64_t agent_tokens(const struct agent *a)
{
    return tokens_of(&a->talk.msgs, 0, a->talk.msgs.n) + agent_tools_tokens(a);
}

static bool is_over(const struct agent *a, int64_t per_cent)
{
    return tokens_scaled(a->in.scale, agent_tokens(a)) > a->fit_to * per_cent / 100;
}

/* ---- the state of the notebook, told again ---- */

/* What profiles and results said is gone from the text: names, types and shapes of what the interpreter holds. */
static void add_vars(struct str *out, const struct json *vars)
{
    size_t n = 0;
    for (const struct json *v = json_first(vars); v && n < VARS_MAX; v = json_next(v), n++) {
        const char *detail = json_str_or(v, "detail", "");
        str_puts(out, n ? "- " : "Variables that exist now:\n- ");
        prompt_py_literal(out, json_str_or(v, "name", "?"));
        str_printf(out, " %.40s ", json_str_or(v, "type", ""));
        str_add(out, detail, utf8_cut(detail, strcspn(detail, "\n"), VAR_BYTES));
        str_putc(out, '\n');
    }
    if (json_len(vars) > n)
        str_printf(out, "and %zu more\n", json_len(vars) - n);
}

/* Before the question when nothing has been said to it yet, else behind the newest result. */
static void tell_state(struct agent *a, const struct json *vars)
{
    AUTO(str_clear) struct str raw = STR_INIT(STATE_MAX), clean = STR_INIT(STATE_MAX);
    prompt_files(&raw, a->in.files, &a->talk.msgs, a->in.prompts);
    add_vars(&raw, vars);
    if (raw.len == 0)
        return;
    utf8_scrub(&clean, str_peek(&raw), raw.len); /* what the box says is data */
    autofree char *block = xasprintf("<data nonce=%s>\n%s</data nonce=%s>", a->nonce, str_peek(&clean), a->nonce);
    struct model_msg *last = &a->talk.msgs.at[a->talk.msgs.n - 1];
    if (a->talk.msgs.n - 1 != a->talk.turn_at) {
        agent_add_note(a, take(block));
        return;
    }
    char *both = xasprintf("%s\n\n%s", block, last->text);
    free(last->text);
    last->text = both;
}

static void go_on(struct agent *a)
{
    void (*next)(struct agent *) = a->fit_next;
    if (a->limit == LIMIT_TIME)
        agent_last(a, LIMIT_TIME);
    else
        next(a);
}

static void on_vars(void *ud, const struct box_reply *r, const struct err *e)
{
    struct agent *a = ud;
    a->asking_box = false;
    if (a->stopped_by) {
        agent_finish_words(a, AGENT_CANCELLED, WORD_CANCELLED, a->stopped_by, NULL);
        return;
    }
    if (e)
        log_warn("vars_not_told", KV_S("turn", a->in.seed), KV_E(e));
    tell_state(a, e ? NULL : json_get(r->reply, "vars"));
    go_on(a);
}

static void ask_vars(struct agent *a)
{
    static const struct box_events events = { .done = on_vars };
    const struct box_request r = { .op = BOX_OP_VARS, .fd = -1 };
    struct err e = { 0 };
    if (a->in.first_cell + (int)a->cell_n <= 1) { /* nothing was run yet */
        tell_state(a, NULL);
        go_on(a);
        return;
    }
    a->asking_box = true;
    if (a->in.box_ops->ask(a->in.box, &r, &events, a, &e) < 0)
        on_vars(a, NULL, &e);
}

/* ---- notes ---- */

/* When the model gives none: each question with the beginning of its answer. */
static char *own_notes(const struct agent *a, size_t n)
{
    AUTO(str_clear) struct str out = STR_INIT(NOTES_MAX);
    for (size_t k = 0; k < n; k++) {
        const struct model_msg *q = &a->talk.msgs.at[a->talk.turns[k].at];
        const struct model_msg *answer = &a->talk.msgs.at[talk_turn_end(&a->talk, k) - 1];
        const char *asked = strstr(q->text, "[user: @");
        asked = asked ? asked : q->text;
        str_puts(&out, "- ");
        str_add(&out, asked, utf8_cut(asked, strlen(asked), LINE_BYTES));
        str_puts(&out, "\n  answered: ");
        str_add(&out, answer->text, utf8_cut(answer->text, strlen(answer->text), LINE_BYTES));
        str_putc(&out, '\n');
    }
    return str_take(&out);
}

static bool shrink(struct agent *a);
static void shrink_more(struct agent *a);

static void keep_notes(struct agent *a, const char *notes)
{
    const size_t n = a->brief_n;
    const int64_t upto = n ? a->talk.turns[n - 1].id : 0;
    autofree char *carried = prompts_note(a->in.prompts, NOTE_SUMMARY, notes, NULL);
    autofree char *taken = prompts_note(a->in.prompts, NOTE_SUMMARY_TAKEN, NULL, NULL);
    talk_note(&a->talk, n, carried, taken);
    log_info("talk_summarised", KV_S("turn", a->in.seed), KV_I("turns", n), KV_I("tokens", agent_tokens(a)));
    if (a->ev.shortened && upto)
        a->ev.shortened(a->ud, notes, upto, upto);
    transcript_clear(&a->brief);
    if (is_over(a, GOAL_PART))
        (void)shrink(a);
    shrink_more(a);
    ask_vars(a);
}

static void on_notes(void *ud, struct model_answer *answer, const struct err *e)
{
    struct agent *a = ud;
    a->asking = NULL;
    if (e)
        log_warn("notes_failed", KV_S("turn", a->in.seed), KV_E(e));
    else
        agent_count(a, &answer->usage);
    const bool good =
        !e && answer->stop == MODEL_STOP_END && answer->msg.call_n == 0 && !agent_is_blank(answer->msg.text);
    autofree char *notes = good ? xstrdup(answer->msg.text) : own_notes(a, a->brief_n);
    keep_notes(a, notes);
}

void agent_fit_late(struct agent *a)
{
    a->limit = LIMIT_TIME; /* go_on ends in the last word */
    if (a->asking_box) {
        a->in.box_ops->cancel(a->in.box);
        return;
    }
    agent_hang_up(a);
    autofree char *notes = own_notes(a, a->brief_n);
    keep_notes(a, notes);
}

/* System, earlier notes and the old turns, the newest of them as far as they fit, and the wish for notes. */
static void ask_notes(struct agent *a)
{
    static const struct model_events events = { .done = on_notes };
    struct err e = { 0 };
    size_t first = a->brief_n;
    int64_t left = a->fit_to * FULL_PART / 100;
    while (first > 0 && left > 0) {
        first--;
        left -= tokens_scaled(a->in.scale,
                              tokens_of(&a->talk.msgs, a->talk.turns[first].at, talk_turn_end(&a->talk, first)));
    }
    transcript_copy(&a->brief, &a->talk.msgs, 0, a->talk.turns[0].at);
    transcript_copy(&a->brief, &a->talk.msgs, a->talk.turns[first].at, talk_turn_end(&a->talk, a->brief_n - 1));
    transcript_add(&a->brief, MODEL_USER, prompts_summary(a->in.prompts));
    const struct model_ask question = {
        .msgs = a->brief.at,
        .msg_n = a->brief.n,
        .tools = MODEL_TOOLS_NONE,
        .files = a->in.files,
        .schema = agent_tools(a),
        .fence = &a->fence,
        .request = prompts_summary(a->in.prompts),
        .language = "en",
        .seed = a->in.seed,
    };
    a->asked_tokens = tokens_of(&a->brief, 0, a->brief.n) + agent_tools_tokens(a);
    if (a->in.model_ops->ask(&a->asking, a->in.model, &question, &events, a, &e) == 0)
        return;
    a->asking = NULL;
    autofree char *notes = own_notes(a, a->brief_n);
    log_warn("notes_failed", KV_S("turn", a->in.seed), KV_E(&e));
    keep_notes(a, notes);
}

/* ---- what needs nobody else ---- */

static void shorten_turns(struct agent *a, size_t n)
{
    autofree char *gone = prompts_note(a->in.prompts, NOTE_SQUEEZED, NULL, NULL);
    if (n == 0)
        return;
    talk_shorten_turns(&a->talk, n, gone);
    if (a->ev.shortened && a->talk.turns[n - 1].id)
        a->ev.shortened(a->ud, NULL, 0, a->talk.turns[n - 1].id);
}

/* The last means: the kept turns' results, then whole turns. */
static void shrink_more(struct agent *a)
{
    if (is_over(a, FULL_PART))
        shorten_turns(a, a->talk.turn_n);
    while (a->talk.turn_n && is_over(a, FULL_PART))
        talk_drop_turns(&a->talk, 1);
}

/* True when this turn's own results went. */
static bool shrink(struct agent *a)
{
    shorten_turns(a, talk_old_turns(&a->talk));
    if (!is_over(a, GOAL_PART))
        return false;
    autofree char *gone = prompts_note(a->in.prompts, NOTE_SQUEEZED, NULL, NULL);
    const int64_t before = agent_tokens(a);
    talk_shorten_this(&a->talk, RESULTS_KEPT, gone);
    return agent_tokens(a) < before;
}

/* Whether cutting old results would do: tried on a copy, since notes are better made from the whole, which the provider has read. */
static bool is_enough_to_shorten(const struct agent *a)
{
    AUTO(talk_clear) struct talk trial = { 0 };
    autofree char *gone = prompts_note(a->in.prompts, NOTE_SQUEEZED, NULL, NULL);
    talk_copy(&trial, &a->talk);
    talk_shorten_turns(&trial, talk_old_turns(&trial), gone);
    const int64_t left = tokens_of(&trial.msgs, 0, trial.msgs.n) + agent_tools_tokens(a);
    return tokens_scaled(a->in.scale, left) <= a->fit_to * GOAL_PART / 100;
}

static bool has_no_window(const struct agent *a)
{
    return strcmp(a->in.section->dialect, "builtin") == 0; /* it reads the question only */
}

void agent_fit_now(struct agent *a)
{
    a->fit_to = a->overflowed ? a->fit_to : window_of(a);
    if (has_no_window(a) || !is_over(a, FULL_PART))
        return;
    (void)shrink(a);
    shrink_more(a);
}

void agent_fit(struct agent *a, void (*next)(struct agent *a))
{
    a->fit_to = a->overflowed ? a->fit_to : window_of(a);
    if (has_no_window(a) || !is_over(a, FULL_PART)) {
        next(a);
        return;
    }
    const int64_t before = agent_tokens(a);
    a->fit_next = next;
    agent_enter(a, TURN_FIT);
    a->brief_n = talk_old_turns(&a->talk);
    const bool whole = !a->overflowed && !is_over(a, SPARE_PART); /* notes can be asked for as it is */
    const bool lost_results = whole && a->brief_n && !is_enough_to_shorten(a) ? false : shrink(a);
    if (a->brief_n && is_over(a, GOAL_PART)) {
        agent_tell(a, AGENT_FINISHING);
        ask_notes(a);
        return;
    }
    shrink_more(a);
    log_info("talk_shortened", KV_S("turn", a->in.seed), KV_I("from", before), KV_I("to", agent_tokens(a)));
    if (lost_results)
        ask_vars(a);
    else
        go_on(a);
}

/* The provider knows better: less than what was just sent, once. */
bool agent_fit_again(struct agent *a)
{
    if (a->overflowed)
        return false;
    a->overflowed = true;
    const int64_t sent = tokens_scaled(a->in.scale, a->asked_tokens), window = window_of(a);
    a->fit_to = (sent < window ? sent : window) * 9 / 10;
    log_warn("talk_too_long", KV_S("turn", a->in.seed), KV_I("tokens", sent), KV_I("window", window));
    return true;
}
