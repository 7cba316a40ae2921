/* native_box.c - a box's requests: asked, followed, ended by exactly one done().
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
    FILE_JSON_MAX = 16 << 10,
    DONE_ROOM = 4 << 10,
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

static void note(struct request *r, char *take_text)
{
    r->notes = xgrow(r->notes, &r->note_cap, r->note_n + 1, sizeof *r->notes);
    r->notes[r->note_n++] = take_text;
}

/* ---- the end of a request ---- */

static void end_with_error(struct box *b, const struct err *e)
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

static void end(struct box *b, const struct verdict *v)
{
    if (v->kind == VERDICT_FAILED && !goes_back(&b->r)) {
        struct err e = { 0 };
        (void)verdict_error(v, &e);
        end_with_error(b, &e);
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
}

/* What is unfinished is removed; what is finished was taken before. */
static void copy_end(struct box *b)
{
    if (!b->copying)
        return;
    b->copying = false;
    delivery_clear(&b->copy);
    if (b->s->copying == b) {
        b->s->copying = NULL;
        loop_cancel(b->s->l, b->s->copy_timer);
        wire_pause(b->s->wire, false);
    }
}

static void on_late(void *ud)
{
    struct box *b = ud;
    struct err e = { 0 };
    copy_end(b);
    box_abandon(b);
    (void)err_set(&e, ERR_SANDBOX, "the sandbox's keeper gave no answer in time");
    end_with_error(b, &e);
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
    end_with_error(b, &e);
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
    AUTO(str_clear) struct str s = STR_INIT(FILE_JSON_MAX);
    json_print(&s, o);
    b->session = ++b->s->last_session;
    b->life = LIFE_OPENING;
    if (send_frame(b, BOX_OPEN, str_peek(&s), s.len, b->lim.files_fd > 0 ? b->lim.files_fd : -1, &e) == 0)
        return;
    b->life = LIFE_NONE;
    if (b->r.active)
        b->r.timer = loop_after(b->s->l, 0, on_send_failed, b);
}

/* Moves a waiting request forward as far as it can go now. */
static void box_go(struct box *b)
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
    copy_end(b);
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
        copy_end(b);
    }
    for (struct box *b; !s->stopped && (b = doomed(s));)
        end_with_error(b, why);
}

/* ---- messages ---- */

static void on_output(struct box *b, const struct wire_msg *m)
{
    int stream = m->n ? m->data[0] : 0;
    if (stream != 1 && stream != 2) {
        keeper_broken(b->s, "output of the keeper is for no stream");
        return;
    }
    struct output *o = &b->r.printed[stream - 1];
    output_add(o, m->data + 1, m->n - 1);
    if (!b->r.ev.output)
        return;
    AUTO(str_clear) struct str text = STR_INIT(3 * (m->n + sizeof o->held));
    output_piece(o, &text, m->data + 1, m->n - 1, false);
    if (text.len)
        b->r.ev.output(b->r.ud, stream, str_peek(&text), text.len);
}

static void copy_done(struct box *b)
{
    struct request *r = &b->r;
    for (size_t i = 0; i < r->file_n; i++)
        if (strcmp(r->files[i].box_path, b->copy.what.box_path) == 0) {
            delivered_clear(&r->files[i]);
            r->files[i] = r->files[--r->file_n];
        }
    r->files = xgrow(r->files, &r->file_cap, r->file_n + 1, sizeof *r->files);
    r->files[r->file_n++] = b->copy.what;
    b->copy.what = (struct delivered){ 0 };
    copy_end(b);
}

static void copy_failed(struct box *b, const char *path, const struct err *e)
{
    log_warn("file_not_delivered", KV_S("path", path), KV_E(e));
    note(&b->r, xasprintf(CELL_NOT_KEPT "%s: %s", path, e->msg));
    copy_end(b);
}

static void on_slice(void *ud);

static void copy_go(struct box *b)
{
    struct err e = { 0 };
    int rc = delivery_step(&b->copy, b->out_dir, b->r.number, &e);
    if (rc < 0) {
        autofree char *path = xstrdup(b->copy.what.box_path);
        copy_failed(b, path, &e);
    } else if (rc == 0) {
        copy_done(b);
    } else {
        b->s->copying = b;
        wire_pause(b->s->wire, true);
        b->s->copy_timer = loop_after(b->s->l, 0, on_slice, b);
    }
}

static void on_slice(void *ud)
{
    copy_go(ud);
}

static void on_file(struct box *b, struct wire_msg *m)
{
    struct err e = { 0 };
    autojson struct json *o = NULL;
    const char *path = NULL;
    if (m->fd < 0 || json_parse(&o, m->data, m->n, FILE_JSON_MAX, &e) < 0 || json_str(o, "path", &path, &e) < 0) {
        keeper_broken(b->s, "a file of the keeper has no path or no descriptor");
        return;
    }
    if (b->r.op != BOX_OP_CELL || b->r.file_n >= BOX_ENTRIES_MAX)
        return;
    if (!delivery_path_ok(path)) {
        note(&b->r, xstrdup(CELL_NOT_KEPT "a file whose name cannot be used outside of the box"));
        return;
    }
    int fd = m->fd;
    m->fd = -1;
    b->copying = true;
    if (delivery_begin(&b->copy, b->out_fd, path, fd, b->s->file_max_bytes, ++b->s->file_seq, &e) < 0)
        copy_failed(b, path, &e);
    else
        copy_go(b);
}

/* {"path"} of BOX_GONE, {"path","why"} of BOX_KEPT_OUT; false: the keeper broke the protocol. */
static bool path_of(struct box *b, const struct wire_msg *m, struct json **o, const char **path)
{
    struct err e = { 0 };
    if (json_parse(o, m->data, m->n, FILE_JSON_MAX, &e) == 0 && json_str(*o, "path", path, &e) == 0)
        return true;
    keeper_broken(b->s, "a file of the keeper has no path");
    return false;
}

static void on_gone(struct box *b, const struct wire_msg *m)
{
    autojson struct json *o = NULL;
    const char *path = NULL;
    struct request *r = &b->r;
    if (!path_of(b, m, &o, &path) || r->op != BOX_OP_CELL || r->gone_n >= BOX_ENTRIES_MAX || !delivery_path_ok(path))
        return;
    r->gone = xgrow(r->gone, &r->gone_cap, r->gone_n + 1, sizeof *r->gone);
    r->gone[r->gone_n++] = xstrdup(path);
}

static void on_kept_out(struct box *b, const struct wire_msg *m)
{
    autojson struct json *o = NULL;
    const char *path = NULL;
    if (path_of(b, m, &o, &path) && b->r.op == BOX_OP_CELL)
        note(&b->r, xasprintf(CELL_NOT_KEPT "%s: %s", path, json_str_or(o, "why", "")));
}

static void on_claim(struct request *r, const struct wire_msg *m)
{
    free(r->claim);
    r->claim = xcalloc(1, m->n + 1); /* may hold anything, NULs too */
    memcpy(r->claim, m->data, m->n);
    r->claim_n = m->n;
}

static void on_opened(struct box *b, const struct verdict *v)
{
    if (b->life != LIFE_OPENING)
        return;
    b->life = v->kind == VERDICT_OK ? LIFE_OPEN : LIFE_NONE;
    if (b->life == LIFE_OPEN) {
        box_go(b);
        return;
    }
    struct err e = { 0 };
    (void)err_set(&e, ERR_SANDBOX, "the box could not be made: %s", v->why ? v->why : "no reason given");
    log_warn("box_not_made", KV_E(&e));
    if (b->r.active)
        end_with_error(b, &e);
}

static void on_done(struct box *b, const struct wire_msg *m)
{
    struct err e = { 0 };
    AUTO(verdict_clear) struct verdict v = { 0 };
    if (verdict_parse(&v, m->data, m->n, &e) < 0) {
        keeper_broken(b->s, e.msg);
        return;
    }
    if (m->request == 0)
        on_opened(b, &v);
    else
        end(b, &v);
}

static struct box *box_find(const struct sandbox *s, uint32_t session)
{
    struct box *b = s->boxes;
    while (b && !(b->session == session && b->life != LIFE_NONE))
        b = b->next;
    return b;
}

void box_message(struct sandbox *s, struct wire_msg *m)
{
    struct box *b = box_find(s, m->session);
    if (!b) /* closed meanwhile */
        return;
    bool opening = m->type == BOX_DONE && m->request == 0;
    if (!opening && !(b->r.active && b->r.sent && b->r.id == m->request)) /* given up meanwhile */
        return;
    switch (m->type) {
    case BOX_OUTPUT: on_output(b, m); break;
    case BOX_FILE: on_file(b, m); break;
    case BOX_GONE: on_gone(b, m); break;
    case BOX_KEPT_OUT: on_kept_out(b, m); break;
    case BOX_CLAIM: on_claim(&b->r, m); break;
    case BOX_DONE: on_done(b, m); break;
    default: keeper_broken(s, "the keeper sent a message of an unknown type"); break;
    }
}
