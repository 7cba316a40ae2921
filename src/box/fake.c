/* fake.c - a sandbox that runs nothing and answers from a script. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "conf.h"
#include "json.h"
#include "log.h"
#include "loop.h"
#include "sandbox.h"

enum { LINE_MAX_BYTES = 8 << 20, PINNED_MAX = 100 };

struct line {
    struct json *o;
    bool used;
};

/* Tests have no other way in than a name; there is one script in a process. */
static struct {
    struct line *lines;
    size_t line_n, line_cap;
    char **asked;
    size_t asked_n, asked_cap;
    int pins[PINNED_MAX];
} script;

struct sandbox {
    struct loop *l;
    void (*ready)(void *ud, const struct err *e);
    void *ready_ud;
    struct json *report;
    struct box *boxes;
    void (*note)(void *ud, const char *name, const char *outcome, const char *detail);
    void (*checked)(void *ud, const struct err *e);
    void *check_ud;
};

struct box {
    struct sandbox *s;
    struct box *next;
    int out_fd;
    char *out_dir;
    bool lost;

    bool busy, cancelled;
    enum box_op op;
    int number;
    struct box_events ev;
    void *ud;
    struct json *line; /* what it will answer; NULL: an empty ok */
    loop_timer timer;
};

/* ---- the script ---- */

static void script_clear(void)
{
    for (size_t i = 0; i < script.line_n; i++)
        json_free(script.lines[i].o);
    for (size_t i = 0; i < script.asked_n; i++)
        free(script.asked[i]);
    script.line_n = script.asked_n = 0;
    for (size_t i = 0; i < PINNED_MAX; i++)
        script.pins[i] = 0;
}

static void script_add(const char *text, size_t n)
{
    struct err e = { 0 };
    struct json *o = NULL;
    if (json_parse(&o, text, n, LINE_MAX_BYTES, &e) < 0 || json_type(o) != JSON_OBJECT) {
        log_error("fake_script_malformed", KV_I("line", script.line_n + 1), KV_E(&e));
        abort();
    }
    script.lines = xgrow(script.lines, &script.line_cap, script.line_n + 1, sizeof *script.lines);
    script.lines[script.line_n++] = (struct line){ .o = o };
}

void sandbox_fake_script(const char *json_lines)
{
    script_clear();
    for (const char *p = json_lines; p && *p;) {
        size_t n = strcspn(p, "\n");
        if (strspn(p, " \t\r") < n)
            script_add(p, n);
        p += n + (p[n] == '\n');
    }
    if (!json_lines) {
        free(script.lines);
        free(script.asked);
        script.lines = NULL;
        script.asked = NULL;
        script.line_cap = script.asked_cap = 0;
    }
}

const char *sandbox_fake_asked(size_t i)
{
    return i < script.asked_n ? script.asked[i] : NULL;
}

int sandbox_fake_pinned(int cell)
{
    return cell >= 0 && cell < PINNED_MAX ? script.pins[cell] : 0;
}

static void remember(char *take_words)
{
    script.asked = xgrow(script.asked, &script.asked_cap, script.asked_n + 1, sizeof *script.asked);
    script.asked[script.asked_n++] = take_words;
}

static struct json *next_line(const char *op)
{
    for (size_t i = 0; i < script.line_n; i++) {
        struct line *line = &script.lines[i];
        if (line->used || strcmp(json_str_or(line->o, "op", "cell"), op) != 0)
            continue;
        line->used = true;
        return json_dup(line->o);
    }
    return NULL;
}

static const char *op_name(enum box_op op)
{
    switch (op) {
    case BOX_OP_CELL: return "cell";
    case BOX_OP_PUT: return "put";
    case BOX_OP_INTAKE: return "intake";
    case BOX_OP_VARS: return "vars";
    case BOX_OP_RESET: return "reset";
    case BOX_OP_UNDO: return "undo";
    case BOX_OP_BRANCH: return "branch";
    case BOX_OP_CHECKPOINT: return "checkpoint";
    case BOX_OP_RESTORE: return "restore";
    }
    return "?";
}

/* ---- answers ---- */

static char *dup_or_null(const struct json *o, const char *key)
{
    const char *text = json_str_or(o, key, NULL);
    return xstrdup_or_null(text);
}

static int status_from(const char *word)
{
    for (int s = CELL_OK; s <= CELL_CANCELLED; s++)
        if (strcmp(word, cell_status_name((enum cell_status)s)) == 0)
            return s;
    return CELL_OK;
}

static int state_from(const char *word)
{
    for (int s = CELL_KEPT; s <= CELL_LOST; s++)
        if (strcmp(word, cell_state_name((enum cell_state)s)) == 0)
            return s;
    return CELL_KEPT;
}

/* The smallest picture there is: one grey pixel. */
static const unsigned char dot[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00,
    0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00, 0x00, 0x3a, 0x7e, 0x9b, 0x55, 0x00,
    0x00, 0x00, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0x68, 0x00, 0x00, 0x00, 0x82, 0x00, 0x81,
    0xda, 0x45, 0x08, 0x3b, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};

static void write_file(const struct box *b, const char *name, const void *data, size_t n)
{
    autofree char *path = xasprintf("%s/%s", b->out_dir, name);
    for (char *slash = strchr(path + strlen(b->out_dir) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0750);
        *slash = '/';
    }
    autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (fd < 0 || write_all(fd, data, n) < 0)
        log_error("fake_file_not_written", KV_S("path", path));
}

static void add_artifact(const struct box *b, struct artifacts *to, const struct json *x, const void *data, size_t n)
{
    struct artifact *a = artifacts_add(to);
    const char *name = json_str_or(x, "path", "file");
    write_file(b, name, data, n);
    *a = (struct artifact){
        .path = xasprintf("%s/%s", b->out_dir, name),
        .name = xstrdup(name),
        .bytes = (int64_t)n,
        .title = dup_or_null(x, "title"),
        .summary = dup_or_null(x, "summary"),
        .shown = json_bool_or(x, "shown", false),
    };
}

static void take_artifacts(const struct box *b, struct cell *c)
{
    const struct json *x;
    for (x = json_first(json_get(b->line, "figures")); x; x = json_next(x)) {
        add_artifact(b, &c->figures, x, dot, sizeof dot);
        c->figures.at[c->figures.n - 1].width = (int)json_int_or(x, "width", 1);
        c->figures.at[c->figures.n - 1].height = (int)json_int_or(x, "height", 1);
    }
    for (x = json_first(json_get(b->line, "files")); x; x = json_next(x)) {
        const char *content = json_str_or(x, "content", "");
        add_artifact(b, &c->files, x, content, strlen(content));
    }
}

static void take_notes(struct cell *c, const struct json *notes)
{
    size_t cap = 0;
    for (const struct json *x = json_first(notes); x; x = json_next(x)) {
        c->notes = xgrow(c->notes, &cap, c->note_n + 1, sizeof *c->notes);
        c->notes[c->note_n++] = xstrdup(json_text(x) ? json_text(x) : "");
    }
}

static void fill_cell(const struct box *b, struct cell *c)
{
    const struct json *o = b->line, *error = json_get(o, "error"), *result = json_get(o, "result");
    free(c->out);
    free(c->err);
    c->out = xstrdup(json_str_or(o, "stdout", ""));
    c->err = xstrdup(json_str_or(o, "stderr", ""));
    c->status = (enum cell_status)status_from(json_str_or(o, "status", "ok"));
    c->state = (enum cell_state)state_from(json_str_or(o, "state", "kept"));
    c->truncated = json_bool_or(o, "truncated", false);
    c->result_text = dup_or_null(result, "text/plain");
    c->result_html = dup_or_null(result, "text/html");
    c->error_name = dup_or_null(error, "name");
    c->error_value = dup_or_null(error, "value");
    c->error_traceback = dup_or_null(error, "traceback");
    c->error_line = (int)json_int_or(error, "line", 0);
    c->why = dup_or_null(o, "why");
    c->took_ms = json_num_or(o, "took_ms", 1);
    c->start_ms = json_num_or(o, "start_ms", 0);
    c->peak_bytes = json_int_or(o, "peak_bytes", 0);
    take_notes(c, json_get(o, "notes"));
    take_artifacts(b, c);
}

static void answer_cell(struct box *b)
{
    struct cell c;
    cell_init(&c);
    c.number = b->number;
    if (b->cancelled) {
        c.status = CELL_CANCELLED;
        c.why = xstrdup("stopped on request");
    } else {
        fill_cell(b, &c);
    }
    const struct box_reply reply = { .cell = &c };
    b->ev.done(b->ud, &reply, NULL); /* may close b */
    cell_clear(&c);
}

static void answer_other(struct box *b, struct json *line)
{
    struct err e = { 0 };
    struct json *empty = line ? NULL : json_new_object();
    const struct box_reply reply = { .reply = line ? line : empty };
    if (b->cancelled)
        (void)err_set(&e, ERR_REFUSED, "cancelled");
    b->ev.done(b->ud, b->cancelled ? NULL : &reply, b->cancelled ? &e : NULL);
    json_free(empty);
}

/* -1: whoever takes the bytes does not want them. */
static int send_bytes(const struct box *b, const struct json *line, struct err *e)
{
    const char *content = json_str_or(line, "content", NULL);
    if (b->op != BOX_OP_CHECKPOINT || b->cancelled || !content)
        return 0;
    return b->ev.bytes(b->ud, content, strlen(content), e);
}

static void on_answer(void *ud)
{
    struct box *b = ud;
    struct err e = { 0 };
    autojson struct json *line = b->line;
    const char *fail = json_str_or(line, "fail", NULL), *output = json_str_or(line, "output", NULL);
    b->timer = 0;
    b->busy = false;
    b->lost = json_bool_or(line, "lost", false);
    if (b->op == BOX_OP_CELL && output && !b->cancelled && b->ev.output)
        b->ev.output(b->ud, 1, output, strlen(output));
    if (fail && !b->cancelled)
        (void)err_set(&e, ERR_SANDBOX, "%s", fail);
    if (e.kind != ERR_NONE || send_bytes(b, line, &e) < 0) {
        b->line = NULL;
        b->ev.done(b->ud, NULL, &e);
    } else if (b->op == BOX_OP_CELL) {
        answer_cell(b);
    } else {
        answer_other(b, line);
    }
}

/* With what a box would be given to read. */
static void remember_restore(const struct box_request *r)
{
    autofree char *text = xcalloc(1, (size_t)r->bytes + 1);
    if (pread(r->fd, text, (size_t)r->bytes, r->from) != r->bytes)
        log_error("fake_restore_unread", KV_I("bytes", r->bytes));
    remember(xasprintf("restore %d %s", r->number, text));
}

static void record(const struct box_request *r)
{
    const char *op = op_name(r->op);
    if (r->op == BOX_OP_CELL)
        remember(xasprintf("%s %.*s", op, (int)(r->text_n < INT_MAX ? r->text_n : INT_MAX), r->text));
    else if (r->op == BOX_OP_UNDO || r->op == BOX_OP_BRANCH)
        remember(xasprintf("%s %d", op, r->number));
    else if (r->op == BOX_OP_RESTORE)
        remember_restore(r);
    else if (r->name)
        remember(xasprintf("%s %s", op, r->name));
    else
        remember(xstrdup(op));
}

static int fake_ask(struct box *b, const struct box_request *r, const struct box_events *ev, void *ud, struct err *e)
{
    if (b->busy)
        return err_set(e, ERR_SANDBOX, "the box is at work");
    record(r);
    b->busy = true;
    b->cancelled = false;
    b->op = r->op;
    b->number = r->number;
    b->ev = *ev;
    b->ud = ud;
    b->line = next_line(op_name(r->op));
    if (!json_bool_or(b->line, "hang", false))
        b->timer = loop_after(b->s->l, json_int_or(b->line, "delay_ms", 0), on_answer, b);
    return 0;
}

static void fake_cancel(struct box *b)
{
    if (!b->busy)
        return;
    b->cancelled = true;
    loop_cancel(b->s->l, b->timer);
    b->timer = loop_after(b->s->l, 0, on_answer, b);
}

/* ---- boxes and the sandbox ---- */

static int fake_open(struct box **out, struct sandbox *s, const struct box_limits *lim, int out_dir_fd,
                     const char *out_dir, struct err *e)
{
    (void)lim;
    (void)e;
    struct box *b = xcalloc(1, sizeof *b);
    *b = (struct box){ .s = s, .next = s->boxes, .out_fd = out_dir_fd, .out_dir = xstrdup(out_dir) };
    s->boxes = b;
    *out = b;
    return 0;
}

static void box_free(struct box *b)
{
    loop_cancel(b->s->l, b->timer);
    if (b->busy)
        json_free(b->line);
    free(b->out_dir);
    free(b);
}

static void fake_close(struct box *b)
{
    if (!b)
        return;
    struct box **p = &b->s->boxes;
    while (*p != b)
        p = &(*p)->next;
    *p = b->next;
    box_free(b);
}

static bool fake_lost(const struct box *b)
{
    return b->lost;
}

static void fake_pin(struct box *b, int cell, bool pinned)
{
    (void)b;
    if (cell >= 0 && cell < PINNED_MAX)
        script.pins[cell] += pinned ? 1 : -1;
}

static void on_ready(void *ud)
{
    struct sandbox *s = ud;
    s->report = json_new_object();
    json_set_str(s->report, "tier", "fake");
    json_set(s->report, "features", json_new_object());
    json_set(s->report, "problems", json_new_array());
    s->ready(s->ready_ud, NULL);
}

static int fake_start(struct sandbox **out, struct loop *l, const struct conf *c,
                      void (*ready)(void *ud, const struct err *e), void *ud, struct err *e)
{
    (void)c;
    (void)e;
    struct sandbox *s = xcalloc(1, sizeof *s);
    *s = (struct sandbox){ .l = l, .ready = ready, .ready_ud = ud };
    loop_defer(l, on_ready, s);
    *out = s;
    return 0;
}

static void on_check(void *ud)
{
    const struct sandbox s = *(const struct sandbox *)ud;
    s.note(s.check_ud, "nothing is run", "skip", "this sandbox only answers from a script");
    s.checked(s.check_ud, NULL);
}

static int fake_check(struct sandbox *s,
                      void (*note)(void *ud, const char *name, const char *outcome, const char *detail),
                      void (*done)(void *ud, const struct err *e), void *ud, struct err *e)
{
    (void)e;
    s->note = note;
    s->checked = done;
    s->check_ud = ud;
    loop_defer(s->l, on_check, s);
    return 0;
}

static void release(void *ud)
{
    struct sandbox *s = ud;
    json_free(s->report);
    free(s);
}

static void fake_stop(struct sandbox *s)
{
    if (!s)
        return;
    while (s->boxes) {
        struct box *b = s->boxes;
        s->boxes = b->next;
        box_free(b);
    }
    loop_defer_cancel(s->l, on_ready, s);
    loop_defer_cancel(s->l, on_check, s);
    loop_defer(s->l, release, s); /* we may be inside one of its callbacks */
}

static const struct json *fake_report(const struct sandbox *s)
{
    return s->report;
}

static void fake_drop(struct box *b, const char *const *paths, size_t n, void (*done)(void *ud), void *ud)
{
    (void)b;
    for (size_t i = 0; i < n; i++)
        remember(xasprintf("drop %s", paths[i]));
    done(ud);
}

static void fake_refit(struct box *b, int files_fd)
{
    (void)b;
    (void)files_fd;
}

const struct sandbox_ops sandbox_fake = {
    .name = "fake",
    .start = fake_start,
    .stop = fake_stop,
    .report = fake_report,
    .check = fake_check,
    .open = fake_open,
    .ask = fake_ask,
    .cancel = fake_cancel,
    .pin = fake_pin,
    .drop = fake_drop,
    .close = fake_close,
    .lost = fake_lost,
    .refit = fake_refit,
};
