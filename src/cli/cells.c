/* Cells from stdin: one box, no model, no store. Lines are read while cells run and worked off in order. */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <errno.h>
#include "app.h"
#include "cells_files.h"
#include "json.h"
#include "core/state.h"
#include "log.h"
#include "str.h"

enum { INPUT_MAX = 64 << 20, LINE_BYTES_MAX = 2 << 20 };

struct cells {
    struct app app;
    struct box *box;
    struct str in;      /* what stdin said and was not worked off */
    size_t at;          /* of it, where the next cell begins */
    bool ended, asking; /* stdin is over; the box is busy */
    bool paused;        /* stdin is not watched: enough waits already */
    bool failed;        /* some cell did */
    bool broken;        /* some line could not be worked off */
    int number;
    int state;                /* it is the one after that cell */
    char *id;                 /* of the running line */
    int branch_fd;            /* files for the branch that is asked for; 0: none */
    struct session_row owner; /* of checkpoints and files; platform NULL: none was asked for yet */
    struct state_job *job;
    int64_t asked_ms;
};

static void next(struct cells *c);

static void print_line(const struct json *j)
{
    AUTO(str_clear) struct str text = STR_INIT(INPUT_MAX);
    json_print(&text, j);
    (void)puts(str_peek(&text));
    (void)fflush(stdout);
}

static void print_cell(const struct cell *cell)
{
    (void)fputs(cell->out, stdout);
    (void)fputs(cell->err, stderr);
    if (cell->result_text)
        (void)puts(cell->result_text);
    if (cell->error_traceback)
        (void)fprintf(stderr, "%s\n", cell->error_traceback);
    if (cell->why)
        (void)fprintf(stderr, "%s\n", cell->why);
    for (size_t i = 0; i < cell->figures.n; i++)
        (void)printf("Chart: %s\n", cell->figures.at[i].path);
    for (size_t i = 0; i < cell->files.n; i++)
        (void)printf("File:  %s\n", cell->files.at[i].path);
    (void)fflush(stdout);
}

static void put_id(struct json *j, const char *id)
{
    json_set_str(j, "id", id);
}

/* A line that could not be done: never silence. */
static void print_refusal(struct cells *c, const char *status, const char *why)
{
    c->broken = true;
    if (!c->app.o->json) {
        (void)fprintf(stderr, "sandbook: %s\n", why);
        return;
    }
    autojson struct json *j = json_new_object();
    put_id(j, c->id);
    json_set_str(j, "status", status);
    json_set_str(j, "why", why);
    print_line(j);
}

static void finish(struct cells *c)
{
    app_stop(&c->app);
}

static void done_with_line(struct cells *c)
{
    c->asking = false;
    free(take(c->id));
    next(c);
}

static void report_cell(struct cells *c, struct cell *cell)
{
    c->failed = c->failed || cell->status != CELL_OK;
    cell->id = take(c->id);
    if (c->app.o->json) {
        autojson struct json *j = cell_to_json(cell, NULL);
        print_line(j);
    } else {
        print_cell(cell);
    }
}

static void report_command(struct cells *c, const struct json *reply)
{
    autojson struct json *j = json_new_object();
    put_id(j, c->id);
    json_set_str(j, "status", "ok");
    for (const struct json *x = json_first(reply); x; x = json_next(x))
        if (strcmp(json_key(x), "status") != 0)
            json_set(j, json_key(x), json_dup(x));
    print_line(j);
}

/* Where undo, branch and reset have led to. */
static void follow(struct cells *c, const struct json *reply)
{
    if (json_type(json_get(reply, "cell")) == JSON_NUMBER)
        c->state = (int)json_int_or(reply, "cell", 0);
}

static int open_store(struct cells *c, struct err *e);

/* Versions, so that a branch can have files of its own. */
static void keep_files(struct cells *c, struct cell *cell)
{
    struct err e = { 0 };
    if (cell->files.n + cell->gone_n == 0)
        return;
    if (open_store(c, &e) < 0)
        log_warn("files_not_kept", KV_I("cell", cell->number), KV_E(&e));
    else
        cells_keep(c->app.store, c->owner.id, cell);
}

/* The session is on a line of its own from here on. */
static void branched(struct cells *c, bool done)
{
    struct err e = { 0 };
    if (c->branch_fd <= 0)
        return;
    (void)close(c->branch_fd);
    c->branch_fd = 0;
    if (done && store_branch(c->app.store, c->owner.id, c->state, c->number + 1, &e) < 0)
        log_warn("branch_not_kept", KV_I("cell", c->state), KV_E(&e));
}

static void on_done(void *ud, const struct box_reply *r, const struct err *e)
{
    struct cells *c = ud;
    if (r && r->cell) {
        c->state = r->cell->number;
        keep_files(c, r->cell);
    } else if (r) {
        follow(c, r->reply);
    }
    branched(c, r != NULL);
    if (!r)
        print_refusal(c, e->kind == ERR_REFUSED ? "refused" : "failed", e->msg);
    else if (r->cell)
        report_cell(c, r->cell);
    else
        report_command(c, r->reply);
    done_with_line(c);
}

static const struct box_events box_events = { .done = on_done };

static void ask(struct cells *c, const struct box_request *rq)
{
    struct err e = { 0 };
    c->asking = true;
    if (sandbox_native.ask(c->box, rq, &box_events, c, &e) == 0)
        return;
    c->asking = false;
    print_refusal(c, "failed", e.msg);
    free(take(c->id));
}

static void run_code(struct cells *c, const char *code)
{
    ask(c, &(struct box_request){
               .op = BOX_OP_CELL, .text = code, .text_n = strlen(code), .number = ++c->number, .fd = -1 });
}

/* ---- checkpoints: in a store that goes when we go ---------------------------------------------------------------------- */

static struct json *not_kept(const struct json *lost)
{
    struct json *list = json_new_array();
    for (const struct json *x = json_first(lost); x; x = json_next(x)) {
        struct json *o = json_new_object();
        json_set_str(o, "name", json_str_or(x, "name", "?"));
        json_set_str(o, "why", json_str_or(x, "why", ""));
        json_push(list, o);
    }
    return list;
}

static void on_state(void *ud, const struct json *report, const struct err *e)
{
    struct cells *c = ud;
    c->job = NULL;
    if (e) {
        print_refusal(c, e->kind == ERR_DATA || e->kind == ERR_REFUSED ? "refused" : "failed", e->msg);
        done_with_line(c);
        return;
    }
    autojson struct json *j = json_new_object();
    put_id(j, c->id);
    json_set_str(j, "status", "ok");
    follow(c, report);
    json_set_int(j, "cell", c->state);
    json_set_int(j, "kept", json_int_or(report, "kept", 0));
    json_set_int(j, "bytes", json_int_or(report, "bytes", 0));
    json_set(j, "not_kept", not_kept(json_get(report, "lost")));
    json_set(j, "notes", json_dup(json_get(report, "notes")));
    json_set_int(j, "took_ms", loop_now_ms(c->app.loop) - c->asked_ms);
    print_line(j);
    done_with_line(c);
}

static int open_store(struct cells *c, struct err *e)
{
    if (!c->app.store && app_scratch(&c->app) != CLI_OK)
        return err_set(e, ERR_STORE, "there is no place for a checkpoint");
    return c->owner.platform ? 0 : store_session_get(c->app.store, "cells", "cells", NULL, &c->owner, NULL, e);
}

static void move_state(struct cells *c, bool out)
{
    const struct conf *conf = &c->app.o->conf;
    struct err e = { 0 };
    if (open_store(c, &e) < 0) {
        print_refusal(c, "failed", e.msg);
        return;
    }
    const struct state_parts parts = {
        .loop = c->app.loop,
        .store = c->app.store,
        .ops = &sandbox_native,
        .box = c->box,
        .session = c->owner.id,
        .image = json_str_or(sandbox_native.report(c->app.sandbox), "image", ""),
        .max_bytes = conf->checkpoint_max_bytes,
        .timeout_ms = conf->checkpoint_timeout_ms,
    };
    c->asking = true;
    c->asked_ms = loop_now_ms(c->app.loop);
    c->job = out ? state_save(&parts, c->state, on_state, c) : state_load(&parts, STATE_ANY, on_state, c);
}

/* ---- lines ----------------------------------------------------------------------------------------------------------- */

/* Where no cell has made a file yet there is nothing to part. */
static bool branch_files(struct cells *c, int number)
{
    struct err e = { 0 };
    if (cells_lay(c->app.store, c->owner.id, number, &c->branch_fd, &e) == 0)
        return true;
    log_warn("branch_without_files", KV_I("cell", number), KV_E(&e));
    return false;
}

static void run_command(struct cells *c, const char *word, int number)
{
    static const struct {
        const char *word;
        enum box_op op;
    } commands[] = {
        { "branch", BOX_OP_BRANCH }, { "reset", BOX_OP_RESET }, { "undo", BOX_OP_UNDO }, { "vars", BOX_OP_VARS }
    };
    if (!strcmp(word, "checkpoint") || !strcmp(word, "restore")) {
        move_state(c, *word == 'c');
        return;
    }
    for (size_t i = 0; i < countof(commands); i++) {
        if (strcmp(commands[i].word, word) != 0)
            continue;
        const bool files = commands[i].op == BOX_OP_BRANCH && c->app.store && branch_files(c, number);
        ask(c, &(struct box_request){ .op = commands[i].op, .number = number, .fd = files ? c->branch_fd : -1 });
        if (!c->asking)
            branched(c, false);
        return;
    }
    autofree char *why =
        xasprintf("there is no command \"%s\"; commands are: branch, checkpoint, reset, restore, undo, vars", word);
    print_refusal(c, "refused", why);
}

static void json_line(struct cells *c, const char *line, size_t n)
{
    struct err e = { 0 };
    autojson struct json *j = NULL;
    if (json_parse(&j, line, n, LINE_BYTES_MAX, &e) < 0) {
        autofree char *why = xasprintf("this line is not what cells reads ({\"code\": \"...\"}): %s", e.msg);
        print_refusal(c, "refused", why);
        return;
    }
    const char *id = json_str_or(j, "id", NULL), *code = json_str_or(j, "code", NULL),
               *command = json_str_or(j, "command", NULL);
    c->id = id ? xstrdup(id) : NULL;
    if (code)
        run_code(c, code);
    else if (command)
        run_command(c, command, (int)json_int_or(j, "cell", 0));
    else
        print_refusal(c, "refused", "a line needs \"code\" or \"command\"");
    if (!c->asking)
        free(take(c->id));
}

/* ---- stdin ------------------------------------------------------------------------------------------------------------ */

static bool blank(const char *text, size_t n)
{
    return strspn(text, " \t\r\n") >= n;
}

/* Where the cell that begins at text ends: the next "# %%" line, or NULL when it is not all here yet. */
static char *cell_end(const struct cells *c, char *text)
{
    char *end = c->in.buf + c->in.len;
    for (char *at = text; (at = strstr(at, "\n# %%")); at++)
        return at + 1;
    return c->ended ? end : NULL;
}

static char *line_end(const struct cells *c, char *text)
{
    char *nl = memchr(text, '\n', (size_t)(c->in.buf + c->in.len - text));
    return nl ? nl + 1 : c->ended ? c->in.buf + c->in.len : NULL;
}

/* Takes one unit (a JSON line, or a cell of plain code) off the input; false when there is none yet. */
static bool one_unit(struct cells *c)
{
    char *text = c->in.buf + c->at, *all = c->in.buf + c->in.len;
    char *end = text == all ? NULL : c->app.o->json ? line_end(c, text) : cell_end(c, text);
    if (!end)
        return false;
    c->at += (size_t)(end - text);
    autofree char *unit = xstrndup(text, (size_t)(end - text));
    if (blank(unit, strlen(unit)))
        return true;
    if (c->app.o->json)
        json_line(c, unit, strlen(unit));
    else
        run_code(c, unit);
    return true;
}

static void compact(struct cells *c)
{
    struct str rest = STR_INIT(c->in.max);
    str_add(&rest, c->in.buf + c->at, c->in.len - c->at);
    str_clear(&c->in);
    c->in = rest;
    c->at = 0;
}

static void on_input(void *ud, int fd, uint32_t events);

static void next(struct cells *c)
{
    while (!c->asking && c->in.buf && one_unit(c))
        ;
    if (c->at > (1 << 20))
        compact(c);
    if (!c->asking && c->ended)
        finish(c);
    if (c->paused && !c->ended && c->in.len - c->at < INPUT_MAX / 2) {
        c->paused = false;
        loop_io(c->app.loop, STDIN_FILENO, EPOLLIN, on_input, c);
    }
}

static void on_input(void *ud, int fd, uint32_t events)
{
    (void)events;
    struct cells *c = ud;
    char buf[1 << 16];
    ssize_t n = read(fd, buf, sizeof buf);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        str_add(&c->in, buf, (size_t)n);
    c->ended = n <= 0;
    c->paused = c->in.len - c->at > INPUT_MAX / 2;
    if (c->ended || c->paused)
        loop_io_stop(c->app.loop, fd);
    next(c);
}

static int work(struct cells *c)
{
    const struct conf *conf = &c->app.o->conf;
    struct err e = { 0 };
    int rc = app_out(&c->app);
    if (rc != CLI_OK)
        return rc;
    const struct box_limits limits = { .memory_bytes = conf->memory_bytes,
                                       .disk_bytes = conf->disk_bytes,
                                       .pids = (int)conf->pids,
                                       .cpus = (int)conf->cpus };
    if (sandbox_native.open(&c->box, c->app.sandbox, &limits, c->app.out_fd, c->app.out_dir, &e) < 0)
        return cli_fail(&e);
    loop_io(c->app.loop, STDIN_FILENO, EPOLLIN, on_input, c);
    rc = app_run(&c->app);
    if (!c->ended && !c->paused)
        loop_io_stop(c->app.loop, STDIN_FILENO);
    sandbox_native.close(c->box);
    state_free(c->job);
    session_row_clear(&c->owner);
    if (rc != CLI_OK)
        return rc;
    /* With --json every line carries its status; the exit status then only says whether all could be worked off. */
    bool bad = c->broken || c->app.stopped || (c->failed && !c->app.o->json);
    return bad ? CLI_FAILED : CLI_OK;
}

int cli_cells(struct cli_options *o)
{
    if (o->rest.n)
        return cli_usage("cells reads code from stdin; got the word \"%s\"", o->rest.at[0]);
    struct cells c = { .in = STR_INIT(INPUT_MAX) };
    int rc = app_open(&c.app, o);
    if (rc == CLI_OK)
        rc = app_sandbox(&c.app);
    if (rc == CLI_OK)
        rc = work(&c);
    str_clear(&c.in);
    free(c.id);
    app_close(&c.app);
    return rc;
}
