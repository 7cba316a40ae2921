/* state.c - see state.h. */
#include "state.h"
#include <string.h>
#include "json.h"
#include "log.h"
#include "loop.h"

enum {
    CELL_WHY_MAX = 200, /* bytes of what a cell that was run again said */
    RERUN_MAX = 200,    /* cells */
};

struct state_job {
    struct state_parts p;
    state_done_fn *done;
    void *ud;
    bool cancelled, asking; /* asking: the box is at work for us */
    int cell;
    int64_t began_ms;

    struct checkpoint_draft *draft; /* save */

    struct checkpoint_source *source; /* load */
    int64_t tried;                    /* id of the checkpoint that is being tried */
    int wanted;                       /* the cell whose state it shall be */
    struct json *report, *rerun, *not_rerun, *notes;
    struct journal_cell *cells;
    size_t cell_n, at;
};

static struct state_job *job_new(const struct state_parts *p, state_done_fn *done, void *ud)
{
    struct state_job *j = xcalloc(1, sizeof *j);
    *j = (struct state_job){ .p = *p, .done = done, .ud = ud, .began_ms = loop_now_ms(p->loop) };
    return j;
}

static void next_checkpoint(void *job);
static void verify(void *job);
static void next_cell(void *job);
static void begin_save(void *job);

static void forget_steps(struct state_job *j)
{
    loop_defer_cancel(j->p.loop, begin_save, j);
    loop_defer_cancel(j->p.loop, next_checkpoint, j);
    loop_defer_cancel(j->p.loop, verify, j);
    loop_defer_cancel(j->p.loop, next_cell, j);
}

void state_free(struct state_job *j)
{
    if (!j)
        return;
    forget_steps(j);
    store_checkpoint_drop(j->draft);
    store_checkpoint_close(j->source);
    for (size_t i = 0; i < j->cell_n; i++)
        journal_cell_clear(&j->cells[i]);
    free(j->cells);
    json_free(j->report);
    json_free(j->rerun);
    json_free(j->not_rerun);
    json_free(j->notes);
    free(j);
}

static void end(struct state_job *j, const struct json *report, const struct err *e)
{
    state_done_fn *done = j->done;
    void *ud = j->ud;
    struct json *kept = report ? json_dup(report) : NULL;
    state_free(j);
    done(ud, kept, e);
    json_free(kept);
}

void state_cancel(struct state_job *j)
{
    j->cancelled = true;
    if (j->asking)
        j->p.ops->cancel(j->p.box);
}

/* True when it was; then it is over. */
static bool ended_by_cancel(struct state_job *j)
{
    struct err e = { 0 };
    if (!j->cancelled)
        return false;
    (void)err_set(&e, ERR_REFUSED, "cancelled");
    end(j, NULL, &e);
    return true;
}

/* ---- save ---- */

static int on_bytes(void *ud, const char *data, size_t n, struct err *e)
{
    struct state_job *j = ud;
    return store_checkpoint_add(j->draft, data, n, j->p.max_bytes, e);
}

/* True: the box could not do it, and that is the end. The error is copied, since it may go with what asked. */
static bool ended_by(struct state_job *j, const struct err *e)
{
    j->asking = false;
    if (!e)
        return false;
    const struct err why = *e;
    end(j, NULL, &why);
    return true;
}

static void on_saved(void *ud, const struct box_reply *r, const struct err *e)
{
    struct state_job *j = ud;
    struct err why = { 0 };
    if (ended_by(j, e))
        return;
    if (store_checkpoint_finish(take(j->draft), r->reply, &why) < 0)
        end(j, NULL, &why);
    else
        end(j, r->reply, NULL);
}

static void begin_save(void *job)
{
    static const struct box_events events = { .bytes = on_bytes, .done = on_saved };
    struct state_job *j = job;
    struct err e = { 0 };
    const struct box_request r = {
        .op = BOX_OP_CHECKPOINT, .fd = -1, .number = j->cell, .timeout_ms = j->p.timeout_ms, .max_bytes = j->p.max_bytes
    };
    if (ended_by_cancel(j))
        return;
    j->asking = true;
    if (store_checkpoint_begin(&j->draft, j->p.store, j->p.session, j->cell, j->p.image, &e) < 0 ||
        j->p.ops->ask(j->p.box, &r, &events, j, &e) < 0)
        end(j, NULL, &e);
}

struct state_job *state_save(const struct state_parts *p, int cell, state_done_fn *done, void *ud)
{
    struct state_job *j = job_new(p, done, ud);
    j->cell = cell;
    loop_defer(p->loop, begin_save, j);
    return j;
}

/* ---- load: the end ---- */

static void add_note(struct state_job *j, char *take_text)
{
    json_push(j->notes, json_new_string(take_text));
    free(take_text);
}

static struct json *nothing_loaded(void)
{
    struct json *o = json_new_object();
    json_set_int(o, "cell", 0);
    json_set_int(o, "kept", 0);
    json_set_int(o, "bytes", 0);
    json_set(o, "lost", json_new_array());
    return o;
}

static void end_load(struct state_job *j)
{
    struct json *o = j->report ? take(j->report) : nothing_loaded();
    json_set_int(o, "cell", j->cell);
    for (const struct json *x = json_first(json_get(o, "notes")); x; x = json_next(x))
        json_push(j->notes, json_dup(x));
    json_set(o, "notes", take(j->notes));
    json_set(o, "rerun", take(j->rerun));
    json_set(o, "not_rerun", take(j->not_rerun));
    j->report = o;
    end(j, o, NULL);
}

/* ---- load: cells since, run again ---- */

static void not_rerun(struct state_job *j, int cell, const char *why)
{
    struct json *o = json_new_object();
    json_set_int(o, "cell", cell);
    json_set_str(o, "why", why);
    json_push(j->not_rerun, o);
}

static void judge_cell(struct state_job *j, const struct cell *c)
{
    const int number = j->cells[j->at].number;
    if (c->status == CELL_OK) {
        json_push(j->rerun, json_new_number(number));
        return;
    }
    const char *value = c->error_value ? c->error_value : c->why ? c->why : "";
    autofree char *why = xasprintf("%s%s%.*s", c->error_name ? c->error_name : cell_status_name(c->status),
                                   *value ? ": " : "", (int)utf8_cut(value, strcspn(value, "\n"), CELL_WHY_MAX), value);
    not_rerun(j, number, why);
}

static void on_cell(void *ud, const struct box_reply *r, const struct err *e)
{
    struct state_job *j = ud;
    if (ended_by(j, e))
        return;
    judge_cell(j, r->cell);
    j->at++;
    loop_defer(j->p.loop, next_cell, j);
}

static int64_t left_ms(const struct state_job *j)
{
    return j->p.rerun_ms - (loop_now_ms(j->p.loop) - j->began_ms);
}

/* Those that can't be, by name. */
static bool skipped(struct state_job *j, const struct journal_cell *c)
{
    if (!c->worked)
        not_rerun(j, c->number, STATE_HAD_FAILED);
    else if (json_len(j->rerun) >= RERUN_MAX || left_ms(j) <= 0)
        not_rerun(j, c->number, "there was no time left for it");
    else
        return false;
    return true;
}

static void next_cell(void *job)
{
    static const struct box_events events = { .done = on_cell };
    struct state_job *j = job;
    struct err e = { 0 };
    if (ended_by_cancel(j))
        return;
    while (j->at < j->cell_n && skipped(j, &j->cells[j->at]))
        j->at++;
    if (j->at == j->cell_n) {
        end_load(j);
        return;
    }
    const struct journal_cell *c = &j->cells[j->at];
    const struct box_request r = { .op = BOX_OP_CELL,
                                   .text = c->code,
                                   .text_n = strlen(c->code),
                                   .number = c->number,
                                   .fd = -1,
                                   .timeout_ms = left_ms(j) };
    j->asking = true;
    if (j->p.ops->ask(j->p.box, &r, &events, j, &e) < 0)
        end(j, NULL, &e);
}

static void on_emptied(void *ud, const struct box_reply *r, const struct err *e)
{
    struct state_job *j = ud;
    j->asking = false;
    if (r) {
        next_cell(j);
        return;
    }
    struct err why = *e;
    end(j, NULL, &why);
}

/* No checkpoint made room: cells that are run again begin with an interpreter that knows nothing. */
static void begin_anew(struct state_job *j)
{
    static const struct box_events events = { .done = on_emptied };
    const struct box_request r = { .op = BOX_OP_BRANCH, .fd = -1 };
    struct err e = { 0 };
    j->asking = true;
    if (j->p.ops->ask(j->p.box, &r, &events, j, &e) < 0)
        end(j, NULL, &e);
}

static void begin_cells(struct state_job *j)
{
    struct err e = { 0 };
    while (j->at < j->cell_n && j->cells[j->at].number <= j->cell)
        j->at++; /* the checkpoint has them */
    if (j->report || (j->at < j->cell_n && j->p.rerun_ms > 0)) {
        j->began_ms = loop_now_ms(j->p.loop);
        if (j->report || !j->p.used)
            next_cell(j);
        else
            begin_anew(j);
        return;
    }
    const char *why = json_len(j->notes) ? json_text(json_first(j->notes)) : "there is no checkpoint";
    (void)err_set(&e, ERR_DATA, "%s", why);
    end(j, NULL, &e);
}

/* ---- load: the checkpoint ---- */

static void try_older(struct state_job *j, const struct err *e)
{
    log_warn("checkpoint_unused", KV_S("session", j->p.session), KV_I("id", j->tried), KV_E(e));
    add_note(j, xasprintf("a checkpoint after cell %d could not be used: %s", j->cell, e->msg));
    j->cell = 0;
    store_checkpoint_close(take(j->source));
    loop_defer(j->p.loop, next_checkpoint, j);
}

static void on_loaded(void *ud, const struct box_reply *r, const struct err *e)
{
    struct state_job *j = ud;
    struct err why = { 0 };
    j->asking = false;
    if (!e) {
        j->report = json_dup(r->reply);
        store_checkpoint_close(take(j->source));
        begin_cells(j);
        return;
    }
    why = *e;
    if (why.kind == ERR_SANDBOX || why.kind == ERR_REFUSED)
        end(j, NULL, &why);
    else
        try_older(j, &why);
}

static void give(struct state_job *j)
{
    static const struct box_events events = { .done = on_loaded };
    const struct checkpoint_state s = store_checkpoint_state(j->source);
    struct err e = { 0 };
    const struct box_request r = { .op = BOX_OP_RESTORE,
                                   .fd = s.fd,
                                   .from = s.from,
                                   .bytes = s.bytes,
                                   .number = s.cell,
                                   .timeout_ms = j->p.timeout_ms };
    j->asking = true;
    if (j->p.ops->ask(j->p.box, &r, &events, j, &e) < 0)
        end(j, NULL, &e);
}

/* A slice at a time: a gigabyte must not hold up everybody else. */
static void verify(void *job)
{
    struct state_job *j = job;
    struct err e = { 0 };
    if (ended_by_cancel(j))
        return;
    const int more = store_checkpoint_verify(j->source, &e);
    if (more < 0)
        try_older(j, &e);
    else if (more > 0)
        loop_defer(j->p.loop, verify, j);
    else
        give(j);
}

/* Another branch's is of no use. */
static bool on_the_way(const struct state_job *j, int cell)
{
    for (size_t i = 0; i < j->cell_n; i++)
        if (j->cells[i].number == cell)
            return true;
    return j->wanted == STATE_ANY;
}

/* The newest one that was not tried yet; id 0: there is none. */
static void find_checkpoint(const struct state_job *j, struct checkpoint_row *row)
{
    struct err e = { 0 };
    int64_t before = j->tried;
    do {
        checkpoint_row_clear(row);
        if (store_checkpoint_newest(j->p.store, j->p.session, before, row, &e) < 0)
            log_error("checkpoints_unread", KV_S("session", j->p.session), KV_E(&e));
        before = row->id;
    } while (row->id && !on_the_way(j, row->cell));
}

static void next_checkpoint(void *job)
{
    struct state_job *j = job;
    struct err e = { 0 };
    AUTO(checkpoint_row_clear) struct checkpoint_row row = { 0 };
    if (ended_by_cancel(j))
        return;
    find_checkpoint(j, &row);
    if (row.id == 0) {
        begin_cells(j);
        return;
    }
    j->tried = row.id;
    j->cell = row.cell;
    if (store_checkpoint_open(&j->source, j->p.store, j->p.session, row.id, j->p.image, &e) < 0)
        try_older(j, &e);
    else
        verify(j);
}

struct state_job *state_load(const struct state_parts *p, int cell, state_done_fn *done, void *ud)
{
    struct state_job *j = job_new(p, done, ud);
    struct err e = { 0 };
    j->wanted = cell;
    if (cell > 0 && store_journal(p->store, p->session, cell, &j->cells, &j->cell_n, &e) < 0)
        log_error("journal_unread", KV_S("session", p->session), KV_E(&e));
    j->notes = json_new_array();
    j->rerun = json_new_array();
    j->not_rerun = json_new_array();
    loop_defer(p->loop, next_checkpoint, j);
    return j;
}
