/* tool_sql.c - a database, asked by way of sandbook-query: a process for each question, so that nothing here waits. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "conf.h"
#include "json.h"
#include "log.h"
#include "loop.h"
#include "paths.h"
#include "sql.h"
#include "tool.h"

enum {
    REQUEST_MAX = 1 << 20,
    SQL_MAX = 64 << 10,
    GRACE_MS = 3000,     /* over the query's own time: connecting, then it is killed */
    TEXT_MAX = 24 << 10, /* of a description or preview the model gets this much */
};

struct tool_service {
    const struct conf_database *section;
    struct loop *loop;
    char *program, *dsn; /* dsn: NULL for sqlite */
};

struct tool_call {
    struct tool_service *s;
    pid_t pid;
    int report_fd, table_fd;
    loop_timer timer;
    bool late;
    int64_t began_ms;
    struct tool_events ev;
    void *ud;
};

/* ---- the section ---- */

/* Beside this program (also of a test one folder down), or as installed. Caller frees; NULL: not there. */
static char *find_program(void)
{
    static const char *const at[] = { "sandbook-query", "../sandbook-query", "../lib/sandbook/sandbook-query" };
    autofree char *here = path_program_folder();
    return path_first(here, at, countof(at), path_is_program);
}

static void sql_close(struct tool_service *s)
{
    if (!s)
        return;
    if (s->dsn)
        explicit_bzero(s->dsn, strlen(s->dsn));
    free(s->dsn);
    free(s->program);
    free(s);
}

static int prepare(struct tool_service *s, struct err *e)
{
    s->program = find_program();
    if (!s->program)
        return err_set(e, ERR_CONFIG, "sandbook-query is not beside this program");
    if (strcmp(s->section->kind, "postgres") == 0)
        return conf_read_secret(&s->dsn, s->section->dsn_file, e);
    if (access(s->section->path, R_OK) < 0)
        return err_sys(e, ERR_CONFIG, errno, "cannot read %.160s", s->section->path);
    return 0;
}

static int sql_open(struct tool_service **out, struct loop *l, const struct conf *c, const char *section, struct err *e)
{
    struct tool_service *s = xcalloc(1, sizeof(*s));
    *s = (struct tool_service){ .section = conf_find_database(c, section), .loop = l };
    if (!s->section || prepare(s, e) < 0) {
        sql_close(s);
        e->kind = ERR_CONFIG;
        return err_wrap(e, "[database %.64s]", section);
    }
    *out = s;
    return 0;
}

static const struct json *sql_describe(const struct tool_service *s)
{
    (void)s;
    return NULL;
}

/* ---- the report ---- */

static void call_free(struct tool_call *c)
{
    loop_cancel(c->s->loop, c->timer);
    if (c->report_fd >= 0)
        (void)close(c->report_fd);
    if (c->table_fd >= 0)
        (void)close(c->table_fd);
    free(c);
}

static void add_cell(struct str *out, const struct json *v)
{
    const char *text = json_text(v);
    for (const char *p = text ? text : "NULL"; *p; p++)
        str_add(out, strchr("\n\r|", *p) ? " " : p, 1);
}

static void add_columns(struct str *out, const struct json *columns)
{
    for (const struct json *c = json_first(columns); c; c = json_next(c)) {
        str_puts(out, c == json_first(columns) ? "" : " | ");
        add_cell(out, json_get(c, "name"));
        if (json_get(c, "type"))
            str_printf(out, " (%.40s)", json_str_or(c, "type", ""));
    }
    str_putc(out, '\n');
}

static void add_rows(struct str *out, const struct json *rows)
{
    for (const struct json *r = json_first(rows); r; r = json_next(r)) {
        for (const struct json *v = json_first(r); v; v = json_next(v)) {
            str_puts(out, v == json_first(r) ? "" : " | ");
            add_cell(out, v);
        }
        str_putc(out, '\n');
    }
}

/* A table in words: its size, columns, first rows. */
static void add_table(struct str *out, const struct json *report, const struct conf_database *section)
{
    const int64_t rows = json_int_or(report, "rows", 0), guarded = json_int_or(report, "guarded", 0);
    const size_t shown = json_len(json_get(report, "preview"));
    str_printf(out, "%" PRId64 " row%s%s\n", rows, rows == 1 ? "" : "s",
               json_bool_or(report, "more", false) ? ", and there are more: the result was cut here" : "");
    if (json_bool_or(report, "more", false))
        str_printf(out, "(at most %" PRId64 " rows and %" PRId64 " bytes of a result; aggregate or filter in SQL)\n",
                   section->rows_max, section->bytes_max);
    add_columns(out, json_get(report, "columns"));
    add_rows(out, json_get(report, "preview"));
    if (rows > (int64_t)shown)
        str_printf(out, "(the first %zu rows)\n", shown);
    if (guarded)
        str_printf(out,
                   "(%" PRId64 " texts that a spreadsheet would take for formulas have a ' in front in the file)\n",
                   guarded);
}

static struct json *read_report(const struct tool_call *c)
{
    AUTO(str_clear) struct str text = STR_INIT(SQL_REPORT_MAX);
    struct json *report = NULL;
    struct err ignored = { 0 };
    if (lseek(c->report_fd, 0, SEEK_SET) < 0 || str_read_fd(&text, c->report_fd, &ignored) < 0 ||
        json_parse(&report, str_peek(&text), text.len, SQL_REPORT_MAX, &ignored) < 0)
        return NULL;
    return report;
}

static void tell(struct tool_call *c, const struct tool_result *r)
{
    c->ev.done(c->ud, r);
    call_free(c);
}

static void tell_failed(struct tool_call *c, const char *words)
{
    AUTO(str_clear) struct str text = STR_INIT(TEXT_MAX);
    utf8_scrub(&text, words, strlen(words));
    tell(c, &(struct tool_result){
                .failed = true, .text = str_peek(&text), .text_max = TEXT_MAX, .fd = -1, .kind = "txt" });
}

static void tell_report(struct tool_call *c, const struct json *report)
{
    AUTO(str_clear) struct str raw = STR_INIT(4 * (size_t)SQL_REPORT_MAX), text = STR_INIT(12 * (size_t)SQL_REPORT_MAX);
    const bool table = json_get(report, "columns") != NULL;
    if (table)
        add_table(&raw, report, c->s->section);
    else
        str_puts(&raw, json_str_or(report, "text", ""));
    if (!table && json_bool_or(report, "more", false))
        str_puts(&raw, "\n(and more)\n");
    utf8_scrub(&text, str_peek(&raw), raw.len);
    const bool whole = table && lseek(c->table_fd, 0, SEEK_SET) == 0;
    tell(c, &(struct tool_result){
                .text = str_peek(&text), .text_max = TEXT_MAX, .fd = whole ? c->table_fd : -1, .kind = "csv" });
}

static void on_child(void *ud, pid_t pid, int status)
{
    struct tool_call *c = ud;
    autojson struct json *report = read_report(c);
    const char *error = json_str_or(report, "error", NULL), *detail = json_str_or(report, "log", NULL);
    (void)pid;
    c->pid = 0;
    log_info("database_asked", KV_S("database", c->s->section->section), KV_I("rows", json_int_or(report, "rows", 0)),
             KV_I("took_ms", loop_now_ms(c->s->loop) - c->began_ms), KV_I("status", status));
    if (detail)
        log_error("database_failed", KV_S("database", c->s->section->section), KV_S("why", detail));
    if (c->late)
        tell_failed(c, "The query took too long and was stopped; ask for less, or aggregate in SQL.");
    else if (!report)
        tell_failed(c, "The query needed more memory or time than it may have; ask for less, or aggregate in SQL.");
    else if (error)
        tell_failed(c, error);
    else
        tell_report(c, report);
}

/* ---- the process ---- */

static int request_fd(const struct tool_service *s, const char *verb, const char *sql, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(REQUEST_MAX);
    autojson struct json *r = json_new_object();
    json_set_str(r, "kind", s->section->kind);
    json_set_str(r, "verb", verb);
    json_set_str(r, "path", s->section->path);
    json_set_str(r, "dsn", s->dsn ? s->dsn : "");
    json_set_str(r, "sql", sql);
    json_set_int(r, "rows_max", s->section->rows_max);
    json_set_int(r, "bytes_max", s->section->bytes_max);
    json_set_int(r, "timeout_ms", s->section->timeout_ms);
    json_print(&text, r);
    const int fd = memfd_create("query", MFD_CLOEXEC);
    const bool written = fd >= 0 && write_all(fd, str_peek(&text), text.len) == 0 && lseek(fd, 0, SEEK_SET) == 0;
    const int sys = errno;
    explicit_bzero(text.buf, text.len); /* the connection string was in it */
    if (written)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return err_sys(e, ERR_SANDBOX, sys, "query");
}

/* Copies above what the child's descriptors are called, so that no dup2 goes over one that is still needed. */
static int raised(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 10);
}

static int spawn(struct tool_call *c, int request, struct err *e)
{
    char *const argv[] = { c->s->program, NULL }, *const env[] = { NULL };
    autoclose int in = raised(request), out = raised(c->report_fd), table = raised(c->table_fd);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none;
    (void)sigemptyset(&none);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, table, 3);
    (void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    const int rc = posix_spawn(&c->pid, c->s->program, &actions, &attr, argv, env);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attr);
    return rc == 0 ? 0 : err_sys(e, ERR_SANDBOX, rc, "cannot start %.120s", c->s->program);
}

static void on_late(void *ud)
{
    struct tool_call *c = ud;
    c->timer = 0;
    c->late = true;
    (void)kill(c->pid, SIGKILL); /* on_child goes on from here */
}

static int start(struct tool_call *c, const char *verb, const char *sql, struct err *e)
{
    autoclose int request = request_fd(c->s, verb, sql, e);
    c->report_fd = memfd_create("report", MFD_CLOEXEC);
    c->table_fd = memfd_create("table", MFD_CLOEXEC);
    if (request < 0)
        return -1;
    if (c->report_fd < 0 || c->table_fd < 0)
        return err_sys(e, ERR_SANDBOX, errno, "query");
    if (spawn(c, request, e) < 0)
        return -1;
    if (loop_child(c->s->loop, c->pid, on_child, c, e) < 0) {
        (void)kill(c->pid, SIGKILL);
        (void)waitpid(c->pid, NULL, 0);
        return -1;
    }
    c->timer = loop_after(c->s->loop, c->s->section->timeout_ms + GRACE_MS, on_late, c);
    return 0;
}

static int sql_call(struct tool_call **out, struct tool_service *s, const char *verb, const struct json *args,
                    const struct tool_events *ev, void *ud, struct err *e)
{
    const char *sql = json_str_or(args, "sql", "");
    if (strlen(sql) > SQL_MAX)
        return err_set(e, ERR_DATA, "the statement is too long");
    struct tool_call *c = xcalloc(1, sizeof(*c));
    *c = (struct tool_call){
        .s = s, .report_fd = -1, .table_fd = -1, .began_ms = loop_now_ms(s->loop), .ev = *ev, .ud = ud
    };
    if (start(c, verb, sql, e) < 0) {
        call_free(c);
        return -1;
    }
    *out = c;
    return 0;
}

static void sql_cancel(struct tool_call *c)
{
    if (!c)
        return;
    loop_child_stop(c->s->loop, c->pid);
    (void)kill(c->pid, SIGKILL);
    call_free(c);
}

const struct tool_ops tool_sql = {
    .name = "database",
    .open = sql_open,
    .describe = sql_describe,
    .call = sql_call,
    .cancel = sql_cancel,
    .close = sql_close,
};
