/* cells.c - cells from stdin: one box, no model, no store. Lines are read while cells run and worked off in order. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include "app.h"
#include "cells_files.h"
#include "cells_input.h"
#include "json.h"
#include "core/session/state.h"
#include "log.h"
#include "str.h"

enum { ANSWER_MAX = 64 << 20 };

struct cells {
    struct app app;
    struct box *box;
    struct cells_input in;
    bool asking;  /* the box is busy */
    bool running; /* with a cell */
    bool paused;  /* stdin is not watched: enough waits already */
    bool failed;  /* some cell did */
    bool broken;  /* some line could not be worked off */
    int number;
    int state;                /* it is the one after that cell */
    struct json *id;          /* of the running line: whatever it was */
    int branch_fd;            /* files for the branch that is asked for; 0: none */
    struct session_row owner; /* of checkpoints and files; platform NULL: none was asked for yet */
    struct state_job *job;
    int64_t asked_ms;
};

static void next(struct cells *c);

static void print_line(struct cells *c, const struct json *j)
{
    AUTO(str_clear) struct str text = STR_INIT(ANSWER_MAX);
    json_print(&text, j);
    if (puts(str_peek(&text)) < 0 || fflush(stdout) < 0)
        app_stop(&c->app); /* nobody reads on; main says so */
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

static void put_id(struct json *j, const struct json *id)
{
    json_set(j, "id", id ? json_dup(id) : NULL);
}

static void forget_id(struct cells *c)
{
    json_free(take(c->id));
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
    print_line(c, j);
}

static void finish(struct cells *c)
{
    app_stop(&c->app);
}

static void done_with_line(struct cells *c)
{
    c->asking = c->running = false;
    forget_id(c);
    next(c);
}

static void report_cell(struct cells *c, struct cell *cell)
{
    c->failed = c->failed || cell->status != CELL_OK;
    if (c->app.o->json) {
        autojson struct json *j = cell_to_json(cell, NULL);
        put_id(j, c->id);
        print_line(c, j);
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
    print_line(c, j);
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
    forget_id(c);
}

static void run_code(struct cells *c, const char *code, size_t n)
{
    ask(c, &(struct box_request){ .op = BOX_OP_CELL, .text = code, .text_n = n, .number = ++c->number, .fd = -1 });
    c->running = c->asking;
}

/* Ctrl-C while it ran: its line is owed an answer all the same. */
static void report_cancelled(struct cells *c)
{
    AUTO(cell_clear) struct cell cell;
    cell_init(&cell);
    cell.number = c->number;
    cell.status = CELL_CANCELLED;
    cell.state = CELL_LOST;
    cell.why = xstrdup("the command was stopped while it ran");
    report_cell(c, &cell);
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
    print_line(c, j);
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

/* The number of a line's "cell": -1 with a sentence when it is none. Only branch must have one. */
static int cell_of(const struct json *j, const char *command, int *number, struct err *e)
{
    int64_t n = 0;
    if (json_type(json_get(j, "cell")) == JSON_NULL && strcmp(command, "branch") != 0)
        return 0;
    if (json_int(j, "cell", &n, e) < 0 || n < 0 || n > INT_MAX)
        return err_set(e, ERR_DATA, "\"cell\" of \"%.20s\" is the number of a cell", command);
    *number = (int)n;
    return 0;
}

static void command_line(struct cells *c, const struct json *j)
{
    struct err e = { 0 };
    const char *command = json_text(json_get(j, "command"));
    int number = 0;
    if (cell_of(j, command, &number, &e) < 0)
        print_refusal(c, "refused", e.msg);
    else
        run_command(c, command, number);
}

/* What is wrong with a line's members, or NULL. */
static const char *unlike_a_line(const struct json *j)
{
    const struct json *code = json_get(j, "code"), *command = json_get(j, "command"), *id = json_get(j, "id");
    if (json_type(j) != JSON_OBJECT || !(code || command))
        return "a line needs \"code\" or \"command\"";
    if (code && command)
        return "a line has \"code\" or \"command\", not both";
    if (json_type(code ? code : command) != JSON_STRING)
        return code ? "\"code\" is a string" : "\"command\" is a string";
    if (json_type(id) == JSON_OBJECT || json_type(id) == JSON_ARRAY)
        return "\"id\" is a string or a number";
    return NULL;
}

static void json_line(struct cells *c, const char *line, size_t n)
{
    struct err e = { 0 };
    autojson struct json *j = NULL;
    if (json_parse(&j, line, n, CELLS_UNIT_MAX, &e) < 0) {
        autofree char *why = xasprintf("this line is not what cells reads ({\"code\": \"...\"}): %s", e.msg);
        print_refusal(c, "refused", why);
        return;
    }
    const char *wrong = unlike_a_line(j), *code = json_str_or(j, "code", NULL);
    const struct json *id = json_type(j) == JSON_OBJECT ? json_get(j, "id") : NULL;
    c->id = id ? json_dup(id) : NULL;
    if (wrong)
        print_refusal(c, "refused", wrong);
    else if (code)
        run_code(c, code, strlen(code));
    else
        command_line(c, j);
    if (!c->asking)
        forget_id(c);
}

/* ---- stdin ------------------------------------------------------------------------------------------------------------ */

static bool blank(const char *text, size_t n)
{
    while (n && strchr(" \t\r\n", text[n - 1]) && text[n - 1])
        n--;
    return n == 0;
}

static void on_input(void *ud, int fd, uint32_t events);

static bool one_unit(struct cells *c)
{
    const char *text = NULL;
    size_t n = 0;
    switch (cells_input_next(&c->in, &text, &n)) {
    case CELLS_NONE: return false;
    case CELLS_TOO_LONG: print_refusal(c, "refused", "this is longer than 2 MiB"); return true;
    case CELLS_UNIT: break;
    }
    if (blank(text, n))
        return true;
    if (c->app.o->json)
        json_line(c, text, n);
    else
        run_code(c, text, n);
    return true;
}

static void next(struct cells *c)
{
    while (!c->asking && one_unit(c))
        ;
    if (!c->asking && c->in.ended)
        finish(c);
    if (c->paused && !c->in.ended && !cells_input_full(&c->in)) {
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
    if (n < 0) {
        (void)cli_usage("stdin cannot be read: %s", strerror(errno));
        c->broken = true;
    }
    if (n > 0)
        cells_input_add(&c->in, buf, (size_t)n);
    else
        cells_input_end(&c->in);
    c->paused = cells_input_full(&c->in);
    if (c->in.ended || c->paused)
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
    if (!c->in.ended && !c->paused)
        loop_io_stop(c->app.loop, STDIN_FILENO);
    if (c->running && c->app.stopped)
        report_cancelled(c);
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
    struct cells c = { .number = 0 };
    cells_input_init(&c.in, o->json);
    int rc = app_open(&c.app, o);
    if (rc == CLI_OK)
        rc = app_sandbox(&c.app);
    if (rc == CLI_OK)
        rc = work(&c);
    cells_input_clear(&c.in);
    forget_id(&c);
    app_close(&c.app);
    return rc;
}
