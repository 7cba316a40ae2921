/* session_keep.c - variables outlive their box.
 *
 *   nothing runs or waits ─→ after an answer, when the last checkpoint is old: saved      idle for long: saved, box closed
 *   a box is new          ─→ files, then the newest checkpoint on the way to where the session was, then the cells since
 *   a state that is asked for and whose copy is gone ─→ the same, to that cell
 *   the service ends      ─→ what is not saved yet is, for as long as that may take
 *
 * Where a session is (row.base) is durable with each cell and each step back, so that after a crash it is known which cells led
 * there. A person who comes while a checkpoint is being written does not wait for it: it is given up. */
#include <string.h>
#include "conf.h"
#include "json.h"
#include "log.h"
#include "metric.h"
#include "session_private.h"
#include "state.h"

enum {
    TOLD_MAX = 10, /* reasons that a person is told; the rest is counted */
    TEXT_MAX = 16 << 10,
    COST_SHARE = 50, /* writing checkpoints may take one part in so many of the time */
};

static bool keeps(const struct session *s)
{
    return s->hub->parts.keep_state;
}

static struct state_parts parts_of(const struct session *s)
{
    const struct session_parts *p = &s->hub->parts;
    return (struct state_parts){
        .loop = p->loop,
        .store = p->store,
        .ops = p->sandbox_ops,
        .box = s->box,
        .session = s->row.id,
        .image = json_str_or(p->sandbox_ops->report(p->sandbox), "image", ""),
        .max_bytes = p->conf->checkpoint_max_bytes,
        .timeout_ms = p->conf->checkpoint_timeout_ms,
        .rerun_ms = p->conf->rerun_timeout_ms,
    };
}

bool session_cell_lives(const struct cell *c)
{
    return c->status == CELL_OK || c->status == CELL_ERROR;
}

void session_is_at(struct session *s, int cell)
{
    struct err e = { 0 };
    s->base = s->row.base = cell;
    if (store_session_base(s->hub->parts.store, s->row.id, cell, &e) < 0)
        log_error("base_not_kept", KV_S("session", s->row.id), KV_I("cell", cell), KV_E(&e));
}

void session_keep_forget(struct session *s)
{
    loop_cancel(s->hub->parts.loop, s->idle);
    state_free(take(s->job));
    session_front_forget(s);
    json_free(take(s->thawed));
    s->idle = 0;
    s->saving = s->closing = false;
}

/* ---- saved ---- */

static void rest_check(struct session_hub *h);

static void log_saved(struct session *s, const struct json *report, const struct err *e)
{
    s->save_took_ms = loop_now_ms(s->hub->parts.loop) - s->save_began_ms;
    metric_count(METRIC_CHECKPOINTS, report ? "made" : e->kind == ERR_REFUSED ? "given_up" : "failed", 1);
    if (report)
        log_info("checkpoint_made", KV_S("session", s->row.id), KV_I("cell", s->base),
                 KV_I("kept", json_int_or(report, "kept", 0)),
                 KV_I("lost", (int64_t)json_len(json_get(report, "lost"))),
                 KV_I("bytes", json_int_or(report, "bytes", 0)), KV_I("took_ms", s->save_took_ms));
    else if (e->kind == ERR_REFUSED)
        log_info("checkpoint_given_up", KV_S("session", s->row.id));
    else
        log_error("checkpoint_failed", KV_S("session", s->row.id), KV_E(e));
}

static void on_saved(void *ud, const struct json *report, const struct err *e)
{
    struct session *s = ud;
    const bool closing = s->closing;
    s->job = NULL;
    s->saving = s->closing = false;
    log_saved(s, report, e);
    if (report)
        s->kept_cell = s->base;
    if (report || e->kind != ERR_REFUSED)
        s->kept_ms = loop_now_ms(s->hub->parts.loop);
    if (closing && report && !s->queue)
        session_close_box(s);
    session_pump_later(s);
    rest_check(s->hub);
}

static void save(struct session *s, bool closing)
{
    const struct state_parts parts = parts_of(s);
    s->saving = true;
    s->closing = closing;
    s->save_began_ms = loop_now_ms(parts.loop);
    s->job = state_save(&parts, s->base, on_saved, s);
}

static bool has_state(const struct session *s)
{
    return s->box && s->base > 0 && !s->thaw_wanted && !s->hub->parts.sandbox_ops->lost(s->box);
}

static bool is_due(const struct session *s)
{
    const int64_t every_ms = s->hub->parts.conf->checkpoint_every_ms, cost_ms = s->save_took_ms * COST_SHARE;
    const int64_t since_ms = loop_now_ms(s->hub->parts.loop) - s->kept_ms;
    return every_ms > 0 && s->base != s->kept_cell && has_state(s) &&
           (s->kept_ms == 0 || since_ms >= (every_ms > cost_ms ? every_ms : cost_ms));
}

static void on_idle(void *ud)
{
    struct session *s = ud;
    s->idle = 0;
    if (has_state(s))
        save(s, true);
    else
        session_close_box(s);
}

void session_idle(struct session *s)
{
    const int64_t idle_ms = s->hub->parts.conf->idle_checkpoint_ms;
    if (!keeps(s) || !s->box || s->job || s->hub->resting)
        return;
    if (is_due(s)) {
        save(s, false);
        return;
    }
    loop_cancel(s->hub->parts.loop, s->idle);
    s->idle = idle_ms > 0 ? loop_after(s->hub->parts.loop, idle_ms, on_idle, s) : 0;
}

bool session_busy(struct session *s)
{
    loop_cancel(s->hub->parts.loop, s->idle);
    s->idle = 0;
    if (!s->saving)
        return false;
    s->closing = false;
    state_cancel(s->job);
    return true;
}

/* ---- put back ---- */

static void ready_done(struct session *s, const struct err *e)
{
    void (*done)(struct session *, const struct err *) = s->ready_done;
    s->ready_done = NULL;
    done(s, e);
}

static void note_only(struct session *s, const char *why)
{
    struct json *notes = json_new_array();
    json_push(notes, json_new_string(why));
    s->thawed = json_new_object();
    json_set(s->thawed, "notes", notes);
}

static void log_thawed(const struct session *s, const struct json *report)
{
    log_info("session_thawed", KV_S("session", s->row.id), KV_I("cell", json_int_or(report, "cell", 0)),
             KV_I("kept", json_int_or(report, "kept", 0)), KV_I("lost", (int64_t)json_len(json_get(report, "lost"))),
             KV_I("rerun", (int64_t)json_len(json_get(report, "rerun"))),
             KV_I("not_rerun", (int64_t)json_len(json_get(report, "not_rerun"))));
}

void session_put_back(struct session *s, const struct json *report, const struct err *e)
{
    s->job = NULL;
    json_free(take(s->thawed));
    if (report) {
        log_thawed(s, report);
        s->thawed = json_dup(report);
        s->base = s->row.base;
        s->kept_cell = (int)json_int_or(report, "cell", 0);
        s->fresh = false;
    } else if (e->kind == ERR_DATA) {
        log_warn("session_not_thawed", KV_S("session", s->row.id), KV_E(e));
        note_only(s, e->msg);
        session_is_at(s, 0);
    }
    s->thaw_wanted = s->thaw_wanted && !report && e->kind != ERR_DATA;
}

void session_put_back_begin(struct session *s, void (*done)(void *ud, const struct json *report, const struct err *e),
                            void *ud)
{
    const struct state_parts parts = parts_of(s);
    s->job = state_load(&parts, s->row.base, done, ud);
}

static void on_thawed(void *ud, const struct json *report, const struct err *e)
{
    struct session *s = ud;
    session_put_back(s, report, e);
    ready_done(s, s->thaw_wanted ? e : NULL);
}

static void on_staged(struct session *s, const struct err *e)
{
    const struct request *r = s->turn ? s->turn->request : NULL;
    if (e || !s->thaw_wanted || (s->turn && s->turn->cancelled_by)) {
        ready_done(s, e);
        return;
    }
    if (r)
        status_set(s->turn->request, words(WORD_THAWING, r->language, NULL, NULL));
    session_put_back_begin(s, on_thawed, s);
}

void session_ready(struct session *s, bool lenient, void (*done)(struct session *s, const struct err *e))
{
    s->ready_done = done;
    session_stage(s, lenient, on_staged);
}

void session_box_is_new(struct session *s)
{
    s->base = s->kept_cell = 0;
    session_pins_forget(s);
    s->thaw_wanted = keeps(s) && s->row.base > 0;
}

bool session_may_thaw(const struct session *s)
{
    return keeps(s) && s->row.base > 0 && (!s->box || s->thaw_wanted || s->hub->parts.sandbox_ops->lost(s->box));
}

/* ---- back to a state whose copy may be gone ---- */

/* Durable together with the end of the command that wanted it: a step back that is taken twice is another one. */
static void went_back(struct session *s, int cell)
{
    struct err e = { 0 };
    AUTO(store_batch_end) struct store_batch b = { 0 };
    const bool open = store_batch_begin(&b, s->hub->parts.store, &e) == 0;
    session_is_at(s, cell);
    if (s->errand)
        session_set_inbox(s, s->errand->seq, INBOX_DONE);
    if (!open || store_batch_commit(&b, &e) < 0)
        log_error("base_not_kept", KV_S("session", s->row.id), KV_I("cell", cell), KV_E(&e));
}

static void back_done(struct session *s, const struct json *reply, const struct err *e)
{
    session_back_fn *done = s->back_done;
    s->back_done = NULL;
    if (reply) {
        const int cell = (int)json_int_or(reply, "cell", 0);
        session_branched(s, cell);
        went_back(s, cell);
    }
    laid_clear(&s->branch);
    done(s, reply, e);
}

static void add_whys(struct json *notes, const struct json *list)
{
    for (const struct json *x = json_first(list); x; x = json_next(x))
        json_push(notes, json_type(x) == JSON_STRING ? json_dup(x) : json_new_string(json_str_or(x, "why", "")));
}

/* The variables came from a checkpoint, the files are still the other line's: over to the same state once more, with files. */
static void on_refit(void *ud, const struct box_reply *r, const struct err *e)
{
    struct session *s = ud;
    autojson struct json *reply = take(s->back_reply);
    if (!r) {
        log_warn("branch_without_files", KV_S("session", s->row.id), KV_E(e));
        laid_clear(&s->branch);
        struct json *notes = json_dup(json_get(reply, "notes"));
        json_push(notes, json_new_string("files are as they were: the branch got none of its own"));
        json_set(reply, "notes", notes);
    }
    back_done(s, reply, NULL);
}

static void refit(struct session *s, struct json *take_reply)
{
    static const struct box_events events = { .done = on_refit };
    const struct box_request r = { .op = BOX_OP_BRANCH, .number = s->back_to, .fd = s->branch.fd };
    struct err e = { 0 };
    s->back_reply = take_reply;
    if (s->hub->parts.sandbox_ops->ask(s->box, &r, &events, s, &e) < 0)
        on_refit(s, NULL, &e);
}

static void on_loaded(void *ud, const struct json *report, const struct err *e)
{
    struct session *s = ud;
    struct err refused = s->refusal;
    s->job = NULL;
    if (!report) {
        log_warn("state_not_loaded", KV_S("session", s->row.id), KV_E(e));
        s->thaw_wanted = true; /* the interpreter may be a new one by now */
        back_done(s, NULL, &refused);
        return;
    }
    autojson struct json *o = json_new_object();
    struct json *notes = json_new_array();
    const struct request *r = s->turn ? s->turn->request : s->errand;
    log_thawed(s, report);
    add_whys(notes, json_get(report, "lost"));
    for (const struct json *x = json_first(json_get(report, "not_rerun")); x; x = json_next(x)) {
        autofree char *cell = xasprintf("%d", (int)json_int_or(x, "cell", 0));
        autofree char *text = words(WORD_THAWED_NOT_RERUN, r ? r->language : "en", cell, json_str_or(x, "why", ""));
        json_push(notes, json_new_string(text));
    }
    add_whys(notes, json_get(report, "notes"));
    json_set_str(o, "state", "rolled_back");
    json_set_int(o, "cell", s->back_to);
    json_set(o, "notes", notes);
    s->kept_cell = (int)json_int_or(report, "cell", 0);
    if (s->branch.fd > 0)
        refit(s, take(o));
    else
        back_done(s, o, NULL);
}

/* The cell before the one where the session is, as its journal has it. */
static int cell_before(const struct session *s)
{
    struct journal_cell *cells = NULL;
    size_t n = 0;
    struct err e = { 0 };
    int before = 0;
    if (store_journal(s->hub->parts.store, s->row.id, s->base, &cells, &n, &e) < 0)
        log_error("journal_unread", KV_S("session", s->row.id), KV_E(&e));
    for (size_t i = 0; i < n; i++) {
        before = i + 1 < n ? cells[i].number : before;
        journal_cell_clear(&cells[i]);
    }
    free(cells);
    return before;
}

static void on_back(void *ud, const struct box_reply *r, const struct err *e)
{
    struct session *s = ud;
    if (r || e->kind != ERR_REFUSED || !keeps(s) || s->back_to <= 0 || (s->turn && s->turn->cancelled_by)) {
        back_done(s, r ? r->reply : NULL, e);
        return;
    }
    struct state_parts parts = parts_of(s);
    parts.used = true;
    s->refusal = *e;
    s->job = state_load(&parts, s->back_to, on_loaded, s);
}

void session_back(struct session *s, enum box_op op, int cell, bool own_files, session_back_fn *done)
{
    static const struct box_events events = { .done = on_back };
    struct err e = { 0 };
    laid_clear(&s->branch);
    const bool laid =
        !own_files || !s->hub->parts.sandbox_ops->lays_files || session_lay(s, cell, false, &s->branch, &e) == 0;
    const struct box_request r = { .op = op, .number = cell, .fd = s->branch.fd > 0 ? s->branch.fd : -1 };
    s->back_done = done;
    s->back_to = cell > 0 ? cell : op == BOX_OP_UNDO && keeps(s) ? cell_before(s) : 0;
    if (!laid || s->hub->parts.sandbox_ops->ask(s->box, &r, &events, s, &e) < 0)
        on_back(s, NULL, &e);
}

void session_keep_reset(struct session *s)
{
    struct err e = { 0 };
    session_is_at(s, 0);
    s->kept_cell = 0;
    if (store_checkpoints_forget(s->hub->parts.store, s->row.id, &e) < 0)
        log_error("checkpoints_not_forgotten", KV_S("session", s->row.id), KV_E(&e));
}

/* ---- told once ---- */

static void add_line(struct str *text, enum word w, const char *language, const char *a)
{
    autofree char *line = words(w, language, a, NULL);
    str_printf(text, "%s%s", text->len ? "\n" : "", line);
}

/* Reasons, as they are, or numbers. */
static char *listing(const struct json *list, const char *between)
{
    AUTO(str_clear) struct str text = STR_INIT(TEXT_MAX);
    size_t n = 0;
    for (const struct json *x = json_first(list); x; x = json_next(x), n++) {
        const char *why = json_text(x) ? json_text(x) : json_str_or(x, "why", "");
        if (n >= TOLD_MAX && json_type(x) != JSON_NUMBER)
            continue;
        str_puts(&text, n ? between : "");
        if (json_type(x) == JSON_NUMBER)
            str_printf(&text, "%d", (int)json_number(x));
        else if (json_get(x, "cell"))
            str_printf(&text, "%d (%s)", (int)json_int_or(x, "cell", 0), why);
        else
            str_puts(&text, why);
    }
    if (n > TOLD_MAX && json_type(json_first(list)) != JSON_NUMBER)
        str_printf(&text, "%s+%zu", between, n - TOLD_MAX);
    return str_take(&text);
}

/* Cells that had failed anyway are no news. */
static struct json *that_were_to_run(const struct json *list)
{
    struct json *out = json_new_array();
    for (const struct json *x = json_first(list); x; x = json_next(x))
        if (strcmp(json_str_or(x, "why", ""), STATE_HAD_FAILED) != 0)
            json_push(out, json_dup(x));
    return out;
}

char *session_thawed_words(const struct session *s, const char *language)
{
    AUTO(str_clear) struct str text = STR_INIT(TEXT_MAX);
    autojson struct json *failed = that_were_to_run(json_get(s->thawed, "not_rerun"));
    const struct {
        enum word w;
        const struct json *list;
        const char *between;
    } parts[] = {
        { WORD_THAWED_LOST, json_get(s->thawed, "lost"), "; " },
        { WORD_THAWED_RERUN, json_get(s->thawed, "rerun"), ", " },
        { WORD_THAWED_FAILED, failed, ", " },
        { WORD_THAWED_NOTES, json_get(s->thawed, "notes"), "; " },
    };
    for (size_t i = 0; i < countof(parts); i++) {
        autofree char *list = listing(parts[i].list, parts[i].between);
        if (*list)
            add_line(&text, parts[i].w, language, list);
    }
    return text.len ? str_take(&text) : NULL;
}

void session_thawed_told(struct session *s)
{
    json_free(take(s->thawed));
}

/* ---- the service ends ---- */

static void rested(void *hub)
{
    struct session_hub *h = hub;
    void (*done)(void *) = h->rested;
    h->rested = NULL;
    if (done)
        done(h->rested_ud);
}

static void rest_check(struct session_hub *h)
{
    if (!h->resting)
        return;
    for (const struct map_item *i = h->sessions.first; i; i = i->next)
        if (((const struct session *)i->value)->saving)
            return;
    loop_defer_cancel(h->parts.loop, rested, h);
    loop_defer(h->parts.loop, rested, h);
}

void session_hub_rest(struct session_hub *h, void (*done)(void *ud), void *ud)
{
    h->resting = true;
    h->rested = done;
    h->rested_ud = ud;
    for (const struct map_item *i = h->sessions.first; i; i = i->next) {
        struct session *s = i->value;
        status_all_end(s);
        if (keeps(s) && !s->turn && !s->errand && !s->job && has_state(s) && s->base != s->kept_cell)
            save(s, false);
    }
    rest_check(h);
}

void session_hub_rest_end(struct session_hub *h)
{
    loop_defer_cancel(h->parts.loop, rested, h);
}
