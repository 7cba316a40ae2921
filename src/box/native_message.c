/* native_message.c - what the keeper says to a box's request: output, files, its claim, its end. See native_box.c.
 *
 * Whoever calls on_done() does nothing more with the box. A large file is copied in slices, while nothing else is read. */
#include <string.h>

#include "../../sandbox/box_proto.h"
#include "log.h"
#include "native.h"

enum { FILE_JSON_MAX = 16 << 10 };

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

/* ---- files ---- */

static void note(struct request *r, char *take_text)
{
    r->notes = xgrow(r->notes, &r->note_cap, r->note_n + 1, sizeof *r->notes);
    r->notes[r->note_n++] = take_text;
}

void box_copy_end(struct box *b)
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
    box_copy_end(b);
}

static void copy_failed(struct box *b, const char *path, const struct err *e)
{
    log_warn("file_not_delivered", KV_S("path", path), KV_E(e));
    note(&b->r, xasprintf(CELL_NOT_KEPT "%s: %s", path, e->msg));
    box_copy_end(b);
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
        box_drop_send(b);
        box_go(b);
        return;
    }
    struct err e = { 0 };
    (void)err_set(&e, ERR_SANDBOX, "the box could not be made: %s", v->why ? v->why : "no reason given");
    log_warn("box_not_made", KV_E(&e));
    if (b->r.active)
        box_end_with_error(b, &e);
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
        box_end(b, &v);
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
    if (m->type == BOX_DONE && m->request != 0 && m->request == b->drop.asked) {
        box_drop_answered(b);
        return;
    }
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
