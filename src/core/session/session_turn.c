/* session_turn.c - one request at a time: box, files, agent, answer.
 *
 *   pump -> begin -> open_box -> session_stage -> start_agent -> (cells journalled) -> end_turn -> outbox -> pump
 *
 * A box that fails before anything was computed is replaced once and the turn goes on; after that the person is told. */
#include <fcntl.h>
#include <string.h>
#include "conf.h"
#include "json.h"
#include "log.h"
#include "metric.h"
#include "session_private.h"
#include "state.h"

enum {
    MESSAGES_MAX = 16 << 20,
    NOTE_MAX = 64 << 10,
    NAMES_TOLD = 2000, /* bytes, about: of files that are gone */
};

static void begin(struct session *s, struct request *r);
static void prepare(struct session *s);

/* ---- the box ---- */

static void box_is_new(struct session *s)
{
    session_stage_forget(s);
    s->fresh = s->row.cells > 0;
    session_box_is_new(s);
}

static struct box_limits limits_of(const struct conf *c, int files_fd)
{
    return (struct box_limits){
        .memory_bytes = c->memory_bytes,
        .disk_bytes = c->disk_bytes,
        .pids = (int)c->pids,
        .cpus = (int)c->cpus,
        .files_fd = files_fd,
    };
}

int session_open_box(struct session *s, struct err *e)
{
    const struct sandbox_ops *ops = s->hub->parts.sandbox_ops;
    if (s->box && !ops->lost(s->box))
        return 0;
    AUTO(laid_clear) struct laid files = { 0 };
    if (ops->lays_files && session_lay(s, -1, true, &files, e) < 0)
        return -1;
    if (s->box) {
        box_is_new(s);
        session_drop_forget(s);
        session_adopt(s, &files);
        ops->refit(s->box, s->files_fd);
        if (s->fresh && !s->thaw_wanted && s->turn)
            session_notice_words(s, s->turn->request, WORD_VARIABLES_GONE, NULL, NULL);
        return 0;
    }
    if (s->out_fd < 0 && store_session_out(s->hub->parts.store, s->row.id, &s->out_fd, &s->out_dir, e) < 0)
        return -1;
    const struct box_limits limits = limits_of(s->hub->parts.conf, files.fd);
    if (ops->open(&s->box, s->hub->parts.sandbox, &limits, s->out_fd, s->out_dir, e) < 0)
        return err_wrap(e, "box");
    box_is_new(s);
    session_adopt(s, &files);
    return 0;
}

void session_close_box(struct session *s)
{
    s->hub->parts.sandbox_ops->close(s->box);
    s->box = NULL;
    session_keep_forget(s);
    session_drop_forget(s);
    json_free(take(s->back_reply));
    struct laid none = { 0 };
    session_adopt(s, &none);
    laid_clear(&s->branch);
    store_files_unlay(s->hub->parts.store, s->row.id);
    if (s->out_fd >= 0)
        (void)close(s->out_fd);
    s->out_fd = -1;
    free(s->out_dir);
    s->out_dir = NULL;
}

/* ---- the queue ---- */

void session_pump(void *session)
{
    struct session *s = session;
    if (s->turn || s->errand || !s->queue || s->hub->resting) {
        if (!s->turn && !s->errand)
            session_idle(s);
        session_hub_settle(s->hub);
        return;
    }
    if (session_busy(s))
        return;
    struct request *r = s->queue;
    s->queue = r->next;
    r->next = NULL;
    if (r->command) {
        s->errand = r;
        command_errand(r->command, r);
    } else {
        begin(s, r);
    }
    status_queue(s);
}

void session_pump_later(struct session *s)
{
    loop_defer_cancel(s->hub->parts.loop, session_pump, s);
    loop_defer(s->hub->parts.loop, session_pump, s);
}

void errand_done(struct session *s)
{
    struct request *r = s->errand;
    s->errand = NULL;
    status_end(r);
    session_set_inbox(s, r->seq, INBOX_DONE);
    request_free(r);
    session_pump_later(s);
}

/* ---- the end ---- */

void turn_free(struct turn *t)
{
    if (!t)
        return;
    agent_free(t->agent);
    request_free(t->request);
    json_free(t->profiles);
    json_free(t->made);
    free(t->note);
    free(t->withdrawn);
    free(t->cancelled_by);
    free(t);
}

/* Turns that are over, freed once no callback of their agent can be on the stack. */
void turns_bury(void *hub)
{
    struct session_hub *h = hub;
    while (h->graves) {
        struct turn *t = h->graves;
        h->graves = t->next;
        turn_free(t);
    }
    session_hub_settle(h);
}

static void bury(struct session_hub *h, struct turn *t)
{
    t->next = h->graves;
    h->graves = t;
    loop_defer_cancel(h->parts.loop, turns_bury, h);
    loop_defer(h->parts.loop, turns_bury, h);
}

/* An array as text; one that is beyond all measure is left out rather than cut. */
static char *print_array(const struct json *v)
{
    AUTO(str_clear) struct str text = STR_INIT(MESSAGES_MAX);
    json_print(&text, v);
    return text.overflow ? xstrdup("[]") : str_take(&text);
}

static void fill_outbox(struct outbox_item *o, struct session *s, const struct turn_result *r)
{
    const struct request *q = s->turn->request;
    autojson struct json *figures = artifacts_to_json(&r->figures), *files = artifacts_to_json(&r->files);
    *o = session_item(s, q->event_id, "answer", q->reply_to);
    o->turn = s->turn->id;
    o->markdown = xstrdup(r->answer);
    o->receipt = xstrdup_or_null(r->receipt);
    o->figures = print_array(figures);
    o->files = print_array(files);
}

/* The turn's row, the inbox and the outbox in one transaction. An answer that can't be made durable is still given. */
static void keep_turn(struct session *s, const struct turn_result *r, const struct agent_outcome *o,
                      struct outbox_item *out)
{
    struct err e = { 0 };
    autojson struct json *messages = transcript_to_json(o->transcript);
    struct turn_row row = {
        .id = s->turn->id,
        .seq = s->turn->request->seq,
        .request = xstrdup(s->turn->request->text),
        .answer = xstrdup(r->answer),
        .messages = print_array(messages),
        .receipt = print_array(r->receipt_facts),
        .status = xstrdup(agent_status_name(o->status)),
    };
    if (store_turn_end(s->hub->parts.store, &row, out, &out->id, &e) < 0) {
        log_error("turn_not_kept", KV_S("session", s->row.id), KV_I("turn", row.id), KV_E(&e));
        unkept_turn(s->hub, &row, out);
    } else if (s->turn->withdrawn && store_withdrawn_told(s->hub->parts.store, s->row.id, s->turn->withdrawn, &e) < 0) {
        log_warn("withdrawn_not_told", KV_S("session", s->row.id), KV_E(&e));
    }
    turn_row_clear(&row);
}

static void tell_watch(struct session *s, const struct turn_result *r, const struct agent_outcome *o)
{
    const struct session_watch *w = s->hub->parts.watch;
    const struct turn_report report = {
        .session = s->row.id,
        .platform = s->row.platform,
        .room = s->row.room,
        .thread = s->row.thread,
        .event_id = s->turn->request->event_id,
        .status = agent_status_name(o->status),
        .answer = r->answer,
        .receipt = r->receipt,
        .figures = r->figures.at,
        .files = r->files.at,
        .figure_n = r->figures.n,
        .file_n = r->files.n,
        .facts = r->facts,
    };
    if (w && w->turn_done)
        w->turn_done(s->hub->parts.watch_ud, &report);
}

static void log_turn(const struct session *s, const struct agent_outcome *o)
{
    const int64_t took_ms = loop_now_ms(s->hub->parts.loop) - s->turn->started_ms;
    metric_count(METRIC_TURNS, agent_status_name(o->status), 1);
    metric_took_ms(METRIC_TURN_TIME, NULL, took_ms);
    log_info("turn_done", KV_S("session", s->row.id), KV_I("turn", s->turn->id),
             KV_S("status", agent_status_name(o->status)), KV_I("steps", o->steps), KV_I("cells", o->cell_n),
             KV_I("took_ms", took_ms));
}

/* Nothing of the turn is needed any more; its agent may be the one that is calling. */
static void leave_turn(struct session *s)
{
    struct turn *t = s->turn;
    s->turn = NULL;
    bury(s->hub, t);
    session_pump_later(s);
}

/* Its question is gone or replaced: nobody waits, and nothing of it runs any more. */
static void drop_turn(struct session *s)
{
    struct err e = { 0 };
    if (store_turn_drop(s->hub->parts.store, s->turn->id, s->turn->request->seq, &e) < 0)
        log_error("turn_not_dropped", KV_S("session", s->row.id), KV_I("turn", s->turn->id), KV_E(&e));
}

static void end_turn(struct session *s, struct agent_outcome *o)
{
    struct turn_result r = { 0 };
    struct outbox_item out = { 0 };
    struct request *q = s->turn->request;
    o->usage.in += s->turn->spent.in;
    o->usage.cached += s->turn->spent.cached;
    o->usage.out += s->turn->spent.out;
    log_turn(s, o);
    turn_result_fill(&r, s, o);
    status_end(q);
    if (s->turn->silent) {
        drop_turn(s);
    } else {
        fill_outbox(&out, s, &r);
        keep_turn(s, &r, o, &out);
    }
    session_tell_near(s);
    s->answered_ms = loop_now_ms(s->hub->parts.loop);
    if (!s->turn->silent) {
        session_deliver(s->chat, &out);
        session_amend(s);
    }
    tell_watch(s, &r, o);
    turn_result_clear(&r);
    outbox_item_clear(&out);
    leave_turn(s);
}

/* An end without an agent: the sentence is ours. */
static void end_turn_words(struct session *s, enum agent_status status, enum word w, const char *a)
{
    struct transcript messages = { 0 };
    autofree char *answer = words(w, s->turn->request->language, a, NULL);
    transcript_add(&messages, MODEL_USER, s->turn->request->text);
    transcript_add(&messages, MODEL_ASSISTANT, answer);
    struct agent_outcome o = { .status = status, .answer = answer, .transcript = &messages };
    end_turn(s, &o);
    transcript_clear(&messages);
}

/* ---- the agent's reports ---- */

static void on_progress(void *ud, const struct agent_progress *p)
{
    struct session *s = ud;
    struct request *r = s->turn->request;
    switch (p->phase) {
    case AGENT_THINKING: status_set(r, words(WORD_THINKING, r->language, NULL, NULL)); break;
    case AGENT_RUNNING: status_set(r, words_n(WORD_RUNNING, r->language, p->cell, 0)); break;
    case AGENT_REPAIRING: status_set(r, words_n(WORD_REPAIRING, r->language, p->repair, p->repairs)); break;
    case AGENT_FINISHING: status_set(r, words(WORD_FINISHING, r->language, NULL, NULL)); break;
    }
}

static void on_said(void *ud, const char *text, size_t n)
{
    const struct session *s = ud;
    status_said(s->turn->request, text, n);
}

static void on_cell(void *ud, const char *code, struct cell *c)
{
    struct session *s = ud;
    struct err e = { 0 };
    metric_count(METRIC_CELLS, cell_status_name(c->status), 1);
    metric_took_ms(METRIC_CELL_TIME, NULL, (int64_t)c->took_ms);
    session_pin(s);
    s->row.cells = c->number;
    s->fresh = false;
    s->base = c->state == CELL_LOST ? 0 : s->base;
    session_keep_files(s, c);
    if (store_cell_add(s->hub->parts.store, s->row.id, s->turn->id, code, c, s->base, &e) < 0) {
        log_error("cell_not_kept", KV_S("session", s->row.id), KV_I("cell", c->number), KV_E(&e));
        autofree char *note = xasprintf(CELL_NOT_KEPT "cell %d: it could not be stored", c->number);
        cell_add_note(c, note);
    }
    if (c->state == CELL_KEPT || (c->state == CELL_LOST && session_cell_lives(c)))
        session_is_at(s, c->number);
    else if (c->state == CELL_LOST && !s->thaw_wanted)
        session_is_at(s, 0);
}

static void reopen(void *session)
{
    struct session *s = session;
    session_close_box(s);
    prepare(s);
}

/* A new box and once more from the beginning: nothing had been computed. Deferred: a callback of the box may be on the stack. */
static void retry_with_new_box(struct session *s, const struct agent_outcome *o)
{
    log_warn("box_replaced", KV_S("session", s->row.id), KV_I("turn", s->turn->id));
    s->turn->retried = true;
    if (o) {
        struct turn *tried = xcalloc(1, sizeof(*tried));
        tried->agent = take(s->turn->agent);
        bury(s->hub, tried);
        s->turn->spent = o->usage;
    }
    loop_defer(s->hub->parts.loop, reopen, s);
}

void session_defer_cancel(struct session *s)
{
    loop_defer_cancel(s->hub->parts.loop, session_pump, s);
    loop_defer_cancel(s->hub->parts.loop, reopen, s);
}

static void on_done(void *ud, struct agent_outcome *o)
{
    struct session *s = ud;
    if (o->box_lost && o->cell_n == 0 && !s->turn->retried && o->status != AGENT_CANCELLED) {
        retry_with_new_box(s, o);
        return;
    }
    end_turn(s, o);
    if (o->box_lost)
        session_close_box(s);
}

/* ---- the beginning ---- */

/* `a.csv`, `b.csv`: of what was deleted, that of which a version is still there, or the rest; NULL: none. */
static char *withdrawn_names(const struct session *s, bool there)
{
    AUTO(str_clear) struct str all = STR_INIT(NOTE_MAX);
    const char *end = s->turn->withdrawn;
    for (const char *at = end; at && *at && all.len < NAMES_TOLD; at = *end ? end + 1 : end) {
        end = at + strcspn(at, "\n");
        autofree char *name = xstrndup(at, (size_t)(end - at));
        if (session_is_staged(s, name) == there)
            str_printf(&all, "%s`%s`", all.len ? ", " : "", name);
    }
    if (all.len && *end)
        str_puts(&all, " ...");
    return all.len ? str_take(&all) : NULL;
}

static void load_withdrawn(struct session *s)
{
    struct err e = { 0 };
    free(take(s->turn->withdrawn));
    if (store_withdrawn(s->hub->parts.store, s->row.id, &s->turn->withdrawn, &e) < 0)
        log_warn("withdrawn_unread", KV_S("session", s->row.id), KV_E(&e));
}

static char *turn_note(struct session *s)
{
    const struct prompts *p = s->hub->prompts;
    load_withdrawn(s);
    autofree char *gone = withdrawn_names(s, false), *replaced = withdrawn_names(s, true);
    autofree char *withdrawn = gone ? prompts_note(p, NOTE_WITHDRAWN, gone, NULL) : NULL;
    autofree char *other = replaced ? prompts_note(p, NOTE_WITHDRAWN_VERSION, replaced, NULL) : NULL;
    autofree char *fresh = s->fresh ? prompts_note(p, NOTE_RESTARTED, NULL, NULL) : NULL;
    autofree char *edited = s->turn->request->edited ? prompts_note(p, NOTE_EDITED, NULL, NULL) : NULL;
    autofree char *thawed = session_thawed_words(s, "en");
    const char *const notes[] = { fresh, thawed, withdrawn, other, edited };
    AUTO(str_clear) struct str all = STR_INIT(NOTE_MAX);
    for (size_t i = 0; i < countof(notes); i++)
        if (notes[i])
            str_printf(&all, "%s%s", all.len ? "\n\n" : "", notes[i]);
    return all.len ? str_take(&all) : NULL;
}

static void start_agent(struct session *s)
{
    static const struct agent_events events = {
        .progress = on_progress,
        .said = on_said,
        .cell = on_cell,
        .shortened = session_shortened,
        .may_spend = session_may_spend,
        .spent = session_spent,
        .next_model = session_next_model,
        .keep_file = session_keep_file,
        .done = on_done,
    };
    struct turn *t = s->turn;
    struct err e = { 0 };
    const bool keeps = s->hub->parts.keep_state;
    AUTO(session_history_clear) struct session_history history;
    session_history_load(&history, s);
    autofree char *seed = xasprintf("%s-%lld", s->row.id, (long long)t->id);
    free(t->note);
    t->note = turn_note(s);
    const struct agent_input in = {
        .loop = s->hub->parts.loop,
        .conf = s->hub->parts.conf,
        .prompts = s->hub->prompts,
        .tools = s->hub->tools,
        .model_ops = t->model->ops,
        .model = t->model->model,
        .section = t->model->section,
        .box_ops = keeps ? &session_front_ops : s->hub->parts.sandbox_ops,
        .box = keeps ? session_front(s) : s->box,
        .scale = &t->model->scale,
        .notes = history.row.notes,
        .turns = history.turns,
        .turn_ids = history.ids,
        .turn_n = history.n,
        .files = t->profiles,
        .request = t->request->text,
        .asker = t->request->name,
        .code = t->request->code,
        .note = t->note,
        .language = t->request->language,
        .seed = seed,
        .first_cell = s->row.cells + 1,
        .cell_text = session_cell_text,
        .estimate = strcmp(t->model->section->dialect, "replay") != 0,
    };
    if (agent_start(&t->agent, &in, &events, s, &e) < 0) {
        log_error("turn_not_started", KV_S("session", s->row.id), KV_E(&e));
        end_turn_words(s, AGENT_FAILED, WORD_INTERNAL, NULL);
    }
}

static void gone_back(struct session *s)
{
    if (s->turn->cancelled_by)
        end_turn_words(s, AGENT_CANCELLED, WORD_CANCELLED, s->turn->cancelled_by);
    else
        start_agent(s);
}

static void on_ready(struct session *s, const struct err *e)
{
    struct turn *t = s->turn;
    if (t->cancelled_by) {
        end_turn_words(s, AGENT_CANCELLED, WORD_CANCELLED, t->cancelled_by);
    } else if (e && !t->retried) {
        retry_with_new_box(s, NULL);
    } else if (e) {
        log_error("box_not_ready", KV_S("session", s->row.id), KV_E(e));
        end_turn_words(s, AGENT_FAILED, WORD_INTERNAL, NULL);
    } else {
        json_free(t->profiles);
        t->profiles = session_profiles(s);
        session_go_back(s, gone_back);
    }
}

static void prepare(struct session *s)
{
    struct err e = { 0 };
    if (session_open_box(s, &e) < 0) {
        log_error("box_not_opened", KV_S("session", s->row.id), KV_E(&e));
        end_turn_words(s, AGENT_FAILED, WORD_BOX_CLOSED, NULL);
        return;
    }
    session_ready(s, s->turn->retried, on_ready);
}

/* Nothing could begin; no turn is in the store. */
static void refuse(struct session *s, enum word w, const struct err *e)
{
    log_error("turn_not_begun", KV_S("session", s->row.id), KV_E(e));
    session_notice_words(s, s->turn->request, w, NULL, NULL);
    session_set_inbox(s, s->turn->request->seq, INBOX_DROPPED);
    status_end(s->turn->request);
    leave_turn(s);
}

static void begin(struct session *s, struct request *r)
{
    struct err e = { 0 };
    struct turn *t = xcalloc(1, sizeof(*t));
    t->request = r;
    t->started_ms = loop_now_ms(s->hub->parts.loop);
    metric_took_ms(METRIC_WAIT_TIME, NULL, t->started_ms - r->came_ms);
    s->turn = t;
    s->talked = true;
    t->model = session_hub_model(s->hub, session_model(s), &e);
    if (!t->model && !session_next_model(s, NULL)) {
        refuse(s, WORD_MODEL_SETUP, &e);
        return;
    }
    if (store_turn_begin(s->hub->parts.store, s->row.id, r->seq, r->text, &t->id, &e) < 0) {
        refuse(s, WORD_TRY_AGAIN, &e);
        return;
    }
    enum budget_scope scope = BUDGET_TURN;
    if (!r->code && session_budget_over(s, r->sender, &scope)) {
        autofree char *what = session_scope_word(scope, r->language);
        end_turn_words(s, AGENT_REFUSED, WORD_BUDGET_OVER, what);
        return;
    }
    status_set(r, words(WORD_PREPARING, r->language, NULL, NULL));
    prepare(s);
}

void turn_cancel(struct session *s, const char *by, bool silent)
{
    struct turn *t = s->turn;
    t->silent = t->silent || silent;
    if (t->cancelled_by)
        return;
    t->cancelled_by = xstrdup(by);
    if (t->agent)
        agent_cancel(t->agent, by);
    else if (s->job)
        state_cancel(s->job); /* variables on their way; on_ready sees it */
    else if (s->box)
        s->hub->parts.sandbox_ops->cancel(s->box); /* files on their way; the same */
}
