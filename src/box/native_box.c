/* native_box.c - a box's requests: asked, and ended by exactly one done(). What comes for them: native_message.c.
 *
 * A callback may ask again or close the box, so it is always the last thing that a function here does with its box: what the
 * callback is given was moved out of the box before. */
#include <string.h>

#include "../../sandbox/box_proto.h"
#include "log.h"
#include "native.h"

enum {
    PATIENCE_MS = 60000, /* past the request's own limit, which the keeper enforces */
    CPU_PERCENT = 100,
    TERMS_JSON_MAX = 16 << 10,
    FINDINGS_MAX = 4 << 10,
};

/* The box's end of a pipe is ours to close; other descriptors are borrowed. */
static void close_theirs(struct request *r)
{
    if (r->op == BOX_OP_CHECKPOINT && r->fd >= 0)
        (void)close(r->fd);
    r->fd = -1;
}

static void request_clear(struct request *r)
{
    close_theirs(r);
    outflow_clear(&r->flow);
    free(r->payload);
    free(r->claim);
    output_clear(&r->printed[0]);
    output_clear(&r->printed[1]);
    for (size_t i = 0; i < r->file_n; i++)
        delivered_clear(&r->files[i]);
    free(r->files);
    for (size_t i = 0; i < r->note_n; i++)
        free(r->notes[i]);
    free(r->notes);
    for (size_t i = 0; i < r->gone_n; i++)
        free(r->gone[i]);
    free(r->gone);
    *r = (struct request){ .fd = -1, .flow = OUTFLOW_INIT };
}

/* The request leaves the box, which is free for the next one. What still flows is over. */
static struct request request_take(struct box *b)
{
    close_theirs(&b->r);
    outflow_clear(&b->r.flow);
    struct request r = b->r;
    loop_cancel(b->s->l, r.timer);
    b->r = (struct request){ .fd = -1, .flow = OUTFLOW_INIT };
    return r;
}

/* ---- the end of a request ---- */

void box_end_with_error(struct box *b, const struct err *e)
{
    struct request r = request_take(b);
    r.ev.done(r.ud, NULL, e);
    request_clear(&r);
}

/* Kinds and lines: what exactly is called may be a person's words. */
static void log_findings(const struct box *b, const struct cell *c)
{
    AUTO(str_clear) struct str s = STR_INIT(FINDINGS_MAX);
    for (size_t i = 0; i < c->finding_n; i++)
        str_printf(&s, "%s%d:%s", i > 0 ? ", " : "", c->findings[i].line, c->findings[i].kind);
    if (c->finding_n > 0)
        log_info("code_check", KV_I("box", b->session), KV_I("cell", c->number), KV_S("mode", b->s->audit),
                 KV_S("lines", str_peek(&s)));
}

static void end_with_cell(struct box *b, const struct verdict *v)
{
    struct request r = request_take(b);
    struct account a = {
        .number = r.number,
        .memory_bytes = b->lim.memory_bytes,
        .timeout_ms = r.timeout_ms,
        .verdict = v,
        .claim = r.claim,
        .claim_n = r.claim_n,
        .printed = { &r.printed[0], &r.printed[1] },
        .files = r.files,
        .file_n = r.file_n,
        .gone = r.gone,
        .gone_n = r.gone_n,
        .notes = r.notes,
        .note_n = r.note_n,
    };
    r.notes = r.gone = NULL;
    r.file_n = r.note_n = r.gone_n = 0;
    struct cell c;
    cell_from_account(&c, &a);
    if (b->tell_lost) {
        c.state = CELL_LOST;
        cell_add_note(&c, "The sandbox was restarted before this cell: earlier variables and files were gone.");
    }
    b->tell_lost = false;
    log_findings(b, &c);
    if (c.figures.n + c.files.n)
        delivery_sync_folder(b->out_fd);
    const struct box_reply reply = { .cell = &c };
    r.ev.done(r.ud, &reply, NULL);
    cell_clear(&c);
    request_clear(&r);
}

/* What a verdict other than ok means for a request that is no cell. */
static int verdict_error(const struct verdict *v, struct err *e)
{
    const char *why = v->why && *v->why ? v->why : "no reason given";
    switch (v->kind) {
    case VERDICT_OK: return 0;
    case VERDICT_TIMEOUT: return err_set(e, ERR_TIMEOUT, "the box took too long: %s", why);
    case VERDICT_CANCELLED: return err_set(e, ERR_REFUSED, "cancelled");
    case VERDICT_OOM:
    case VERDICT_CRASH:
    case VERDICT_LIMIT: return err_set(e, ERR_DATA, "the box could not work on it: %s", why);
    case VERDICT_FAILED: return err_set(e, ERR_SANDBOX, "%s", why);
    }
    return err_set(e, ERR_SANDBOX, "%s", why);
}

/* A claim that says "error" in its own words. */
static int claim_error(const struct json *claim, struct err *e)
{
    if (strcmp(json_str_or(claim, "status", "ok"), "error") != 0)
        return 0;
    const struct json *x = json_get(claim, "error");
    return err_set(e, ERR_DATA, "%s: %s", json_str_or(x, "name", "error"), json_str_or(x, "value", ""));
}

static int parse_reply(struct json **out, const struct request *r, struct err *e)
{
    if (!r->claim) {
        *out = json_new_object();
        json_set_str(*out, "status", "ok");
        return 0;
    }
    if (json_parse(out, r->claim, r->claim_n, BOX_CLAIM_MAX, e) < 0)
        return err_wrap(e, "the box answered with something malformed");
    if (json_type(*out) != JSON_OBJECT)
        return err_set(e, ERR_DATA, "the box answered with something malformed");
    return claim_error(*out, e);
}

/* Going back: what the claim says besides its notes is no news. */
static int back_reply(struct json **out, const struct verdict *v, const struct request *r, struct err *e)
{
    autojson struct json *claim = NULL;
    if (v->kind == VERDICT_FAILED) /* it is the request that could not be met: the box is well */
        return err_set(e, ERR_REFUSED, "%s", v->why && *v->why ? v->why : "no reason given");
    if (verdict_error(v, e) < 0 || parse_reply(&claim, r, e) < 0)
        return -1;
    *out = reply_from_back(v, claim, r->own_files);
    return 0;
}

static bool goes_back(const struct request *r)
{
    return r->op == BOX_OP_UNDO || r->op == BOX_OP_BRANCH;
}

static int checkpoint_reply(struct json **out, const struct verdict *v, struct request *r, struct err *e)
{
    autojson struct json *claim = NULL;
    if (verdict_error(v, e) < 0 || parse_reply(&claim, r, e) < 0 || report_from_claim(out, claim, e) < 0)
        return -1;
    return r->op == BOX_OP_CHECKPOINT ? outflow_end(&r->flow, json_int_or(*out, "bytes", 0), e) : 0;
}

static int reply_of(struct json **out, const struct verdict *v, struct request *r, struct err *e)
{
    if (goes_back(r))
        return back_reply(out, v, r, e);
    if (r->op == BOX_OP_CHECKPOINT || r->op == BOX_OP_RESTORE)
        return checkpoint_reply(out, v, r, e);
    return verdict_error(v, e) < 0 ? -1 : parse_reply(out, r, e);
}

static void end_with_reply(struct box *b, const struct verdict *v)
{
    struct err e = { 0 };
    autojson struct json *o = NULL;
    bool good = reply_of(&o, v, &b->r, &e) == 0;
    struct request r = request_take(b);
    b->tell_lost = b->tell_lost && !(good && r.op == BOX_OP_RESTORE);
    const struct box_reply reply = { .reply = o };
    r.ev.done(r.ud, good ? &reply : NULL, good ? NULL : &e);
    request_clear(&r);
}

void box_end(struct box *b, const struct verdict *v)
{
    if (v->kind == VERDICT_FAILED && !goes_back(&b->r)) {
        struct err e = { 0 };
        (void)verdict_error(v, &e);
        box_end_with_error(b, &e);
        return;
    }
    b->lost = b->lost && v->kind == VERDICT_FAILED;
    if (b->r.op == BOX_OP_CELL)
        end_with_cell(b, v);
    else
        end_with_reply(b, v);
}

/* ---- asking ---- */

static int send_frame(const struct box *b, uint8_t type, const char *data, size_t n, int fd, struct err *e)
{
    const struct wire_msg m = { type, b->session, type == BOX_OPEN || type == BOX_CLOSE ? 0 : b->r.id, data, n, fd };
    return wire_send(b->s->wire, &m, e);
}

/* The box is given up: it is closed, and the next request gets a new one. */
static void box_abandon(struct box *b)
{
    struct err ignored = { 0 };
    if (b->life != LIFE_NONE && b->s->state == KEEPER_UP)
        (void)send_frame(b, BOX_CLOSE, "", 0, -1, &ignored);
    b->lost = b->tell_lost = b->lost || b->used;
    b->used = false;
    b->life = LIFE_NONE;
    box_drop_forget(b);
}

static void on_late(void *ud)
{
    struct box *b = ud;
    struct err e = { 0 };
    box_copy_end(b);
    box_abandon(b);
    (void)err_set(&e, ERR_SANDBOX, "the sandbox's keeper gave no answer in time");
    box_end_with_error(b, &e);
}

static void on_cancelled(void *ud)
{
    struct box *b = ud;
    const struct verdict v = { .kind = VERDICT_CANCELLED };
    if (b->r.op == BOX_OP_CELL)
        end_with_cell(b, &v);
    else
        end_with_reply(b, &v);
}

static void on_send_failed(void *ud)
{
    struct box *b = ud;
    struct err e = { 0 };
    (void)err_set(&e, ERR_SANDBOX, "the sandbox's keeper does not read what it is sent");
    box_end_with_error(b, &e);
}

static void request_send(struct box *b)
{
    struct request *r = &b->r;
    struct err e = { 0 };
    r->id = ++b->s->last_request;
    r->sent = true;
    b->used = true;
    loop_cancel(b->s->l, r->timer);
    const int sent = send_frame(b, r->type, r->payload, r->payload_n, r->fd, &e);
    close_theirs(r);
    if (sent < 0) {
        r->timer = loop_after(b->s->l, 0, on_send_failed, b);
        return;
    }
    r->timer = loop_after(b->s->l, r->timeout_ms + PATIENCE_MS, on_late, b);
}

void native_terms(struct json *o, const struct box_limits *lim, int64_t copies)
{
    json_set_int(o, "memory_bytes", lim->memory_bytes);
    json_set_int(o, "disk_bytes", lim->disk_bytes);
    json_set_int(o, "pids", lim->pids);
    json_set_int(o, "cpu_pct", (int64_t)lim->cpus * CPU_PERCENT);
    json_set_int(o, "copies", copies);
}

static void box_begin(struct box *b)
{
    struct err e = { 0 };
    autojson struct json *o = json_new_object();
    native_terms(o, &b->lim, b->s->copies);
    AUTO(str_clear) struct str s = STR_INIT(TERMS_JSON_MAX);
    json_print(&s, o);
    b->session = ++b->s->last_session;
    b->life = LIFE_OPENING;
    if (send_frame(b, BOX_OPEN, str_peek(&s), s.len, b->lim.files_fd > 0 ? b->lim.files_fd : -1, &e) == 0)
        return;
    b->life = LIFE_NONE;
    if (b->r.active)
        b->r.timer = loop_after(b->s->l, 0, on_send_failed, b);
}

void box_go(struct box *b)
{
    if (b->s->state != KEEPER_UP)
        return;
    if (b->life == LIFE_NONE)
        box_begin(b);
    else if (b->life == LIFE_OPEN && b->r.active && !b->r.sent && !b->r.cancelled)
        request_send(b);
}

static int64_t limit_ms(const struct sandbox *s, const struct box_request *r)
{
    const int64_t asked_ms = r->timeout_ms;
    if (asked_ms > 0 && (r->op == BOX_OP_CHECKPOINT || r->op == BOX_OP_RESTORE))
        return asked_ms; /* ours, not a person's */
    int64_t ms = asked_ms > 0 ? asked_ms : s->cell_timeout_ms;
    return ms > s->cell_timeout_max_ms ? s->cell_timeout_max_ms : ms;
}

int native_ask(struct box *b, const struct box_request *r, const struct box_events *ev, void *ud, struct err *e)
{
    if (b->r.active)
        return err_set(e, ERR_SANDBOX, "the box is at work");
    if (r->op == BOX_OP_CHECKPOINT && !ev->bytes)
        return err_set(e, ERR_DATA, "nobody takes the checkpoint");
    struct request fresh = {
        .active = true,
        .op = r->op,
        .number = r->number,
        .fd = r->op == BOX_OP_PUT || r->op == BOX_OP_RESTORE || r->op == BOX_OP_BRANCH ? r->fd : -1,
        .timeout_ms = limit_ms(b->s, r),
        .audit = b->s->audit,
        .ev = *ev,
        .ud = ud,
        .own_files = r->op == BOX_OP_BRANCH && r->fd >= 0,
        .flow = OUTFLOW_INIT,
    };
    if (request_frame(&fresh, r, e) < 0)
        return -1;
    if (keeper_want(b->s, e) < 0) {
        free(fresh.payload);
        return -1;
    }
    output_init(&fresh.printed[0]);
    output_init(&fresh.printed[1]);
    b->r = fresh;
    if (r->op == BOX_OP_CHECKPOINT && outflow_open(&b->r.flow, b->s->l, &b->r.fd, ev->bytes, ud, e) < 0) {
        request_clear(&b->r);
        return -1;
    }
    box_go(b);
    return 0;
}

void native_cancel(struct box *b)
{
    struct err ignored = { 0 };
    if (!b->r.active)
        return;
    if (b->r.sent) {
        (void)send_frame(b, BOX_CANCEL, "", 0, -1, &ignored);
        return;
    }
    b->r.cancelled = true;
    loop_cancel(b->s->l, b->r.timer);
    b->r.timer = loop_after(b->s->l, 0, on_cancelled, b);
}

/* Its answer finds nobody: box_message() passes over what belongs to no request that runs. */
void native_pin(struct box *b, int cell, bool pinned)
{
    struct err e = { 0 };
    if (b->life != LIFE_OPEN || b->s->state != KEEPER_UP)
        return;
    autofree char *payload = pin_payload(cell, pinned);
    const struct wire_msg m = { BOX_PIN, b->session, ++b->s->last_request, payload, strlen(payload), -1 };
    if (wire_send(b->s->wire, &m, &e) < 0)
        log_debug("state_not_pinned", KV_I("box", b->session), KV_I("cell", cell), KV_E(&e));
}

/* ---- opening and closing ---- */

int native_open(struct box **out, struct sandbox *s, const struct box_limits *lim, int out_dir_fd, const char *out_dir,
                struct err *e)
{
    if (keeper_want(s, e) < 0)
        return -1;
    struct box *b = xcalloc(1, sizeof *b);
    *b = (struct box){
        .s = s,
        .next = s->boxes,
        .lim = *lim,
        .out_fd = out_dir_fd,
        .out_dir = xstrdup(out_dir),
        .r = { .fd = -1, .flow = OUTFLOW_INIT },
        .copy = { .src_fd = -1, .tmp_fd = -1 },
    };
    s->boxes = b;
    box_go(b);
    *out = b;
    return 0;
}

void native_close(struct box *b)
{
    if (!b)
        return;
    struct sandbox *s = b->s;
    box_copy_end(b);
    box_abandon(b);
    struct request r = request_take(b);
    request_clear(&r);
    struct box **p = &s->boxes;
    while (*p != b)
        p = &(*p)->next;
    *p = b->next;
    free(b->out_dir);
    free(b);
}

bool native_lost(const struct box *b)
{
    return b->lost;
}

void native_refit(struct box *b, int files_fd)
{
    b->lim.files_fd = files_fd;
}

void boxes_up(struct sandbox *s)
{
    for (struct box *b = s->boxes; b; b = b->next)
        if (b->r.active || !b->lost)
            box_go(b);
}

static struct box *doomed(const struct sandbox *s)
{
    struct box *b = s->boxes;
    while (b && !b->r.doomed)
        b = b->next;
    return b;
}

void boxes_down(struct sandbox *s, bool all, const struct err *why)
{
    for (struct box *b = s->boxes; b; b = b->next) {
        b->r.doomed = b->r.active && (all || b->r.sent || b->life == LIFE_OPENING);
        b->lost = b->tell_lost = b->lost || b->used;
        b->used = false;
        b->life = LIFE_NONE;
        box_copy_end(b);
        box_drop_forget(b);
    }
    for (struct box *b; !s->stopped && (b = doomed(s));)
        box_end_with_error(b, why);
}
