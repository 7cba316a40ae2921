/* profile.c - what the intake finds out about files, inside a box, where everything hostile is parsed. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "app.h"
#include "chat/local.h"
#include "json.h"
#include "str.h"

enum { PROFILE_LINE_MAX = 8 << 20 };

struct profiling {
    struct app app;
    struct box *box;
    size_t at; /* of the files on the command line */
    int fd;    /* the one being put, or -1 */
    char *name;
    bool failed;
};

static void next(struct profiling *p);

static const char *text_or(const struct json *j, const char *key)
{
    return json_str_or(j, key, "-");
}

static void print_column(const struct json *c)
{
    (void)printf("    %-24s %-9s", json_str_or(c, "name", ""), text_or(c, "dtype"));
    int64_t nulls = json_int_or(c, "nulls", 0);
    if (nulls)
        (void)printf(" %lld missing", (long long)nulls);
    AUTO(str_clear) struct str examples = STR_INIT(4096);
    size_t n = 0;
    for (const struct json *x = json_first(json_get(c, "examples")); x && n < 4; x = json_next(x), n++) {
        str_puts(&examples, n ? ", " : "");
        if (json_type(x) == JSON_STRING)
            str_puts(&examples, json_text(x));
        else
            json_print(&examples, x);
    }
    (void)printf("  %s\n", str_peek(&examples));
}

static void print_readable(const struct json *p)
{
    (void)printf("%s: %s, %lld bytes", json_str_or(p, "path", ""), text_or(p, "kind"),
                 (long long)json_int_or(p, "bytes", 0));
    if (json_type(json_get(p, "rows")) == JSON_NUMBER)
        (void)printf(", %lld rows, %zu columns", (long long)json_int_or(p, "rows", 0),
                     json_len(json_get(p, "columns")));
    (void)putchar('\n');
    if (json_str_or(p, "encoding", NULL))
        (void)printf("    encoding %s, separator \"%s\", decimal \"%s\"\n", text_or(p, "encoding"),
                     text_or(p, "separator"), text_or(p, "decimal"));
    for (const struct json *s = json_first(json_get(p, "sheets")); s; s = json_next(s))
        (void)printf("    sheet %s: %lld rows%s\n", text_or(s, "name"), (long long)json_int_or(s, "rows", 0),
                     json_bool_or(s, "hidden", false) ? ", hidden" : "");
    for (const struct json *c = json_first(json_get(p, "columns")); c; c = json_next(c))
        print_column(c);
    for (const struct json *w = json_first(json_get(p, "warnings")); w; w = json_next(w))
        (void)printf("    note (%s): %s\n", text_or(w, "code"), text_or(w, "text"));
    if (json_str_or(p, "load", NULL))
        (void)printf("    load: %s\n", text_or(p, "load"));
}

static void print_profiles(struct profiling *p, const struct json *reply)
{
    for (const struct json *x = json_first(json_get(reply, "profiles")); x; x = json_next(x)) {
        if (!p->app.o->json) {
            print_readable(x);
            continue;
        }
        AUTO(str_clear) struct str text = STR_INIT(PROFILE_LINE_MAX);
        json_print(&text, x);
        (void)puts(str_peek(&text));
    }
    (void)fflush(stdout);
}

static void say_failed(struct profiling *p, const char *why)
{
    (void)fprintf(stderr, "sandbook: %s: %s\n", p->name, why);
    p->failed = true;
}

static void on_profiled(void *ud, const struct box_reply *r, const struct err *e)
{
    struct profiling *p = ud;
    if (e)
        say_failed(p, e->msg);
    else
        print_profiles(p, r->reply);
    next(p);
}

static void on_put(void *ud, const struct box_reply *r, const struct err *e);
static const struct box_events put_events = { .done = on_put }, profile_events = { .done = on_profiled };

static void step(struct profiling *p, enum box_op op, const struct box_events *ev)
{
    struct err e = { 0 };
    if (sandbox_native.ask(p->box, &(struct box_request){ .op = op, .name = p->name, .fd = p->fd }, ev, p, &e) == 0)
        return;
    say_failed(p, e.msg);
    app_stop(&p->app);
}

static void on_put(void *ud, const struct box_reply *r, const struct err *e)
{
    (void)r;
    struct profiling *p = ud;
    (void)close(p->fd);
    p->fd = -1;
    if (!e) {
        step(p, BOX_OP_INTAKE, &profile_events);
        return;
    }
    say_failed(p, e->msg);
    next(p);
}

static void name_of(struct profiling *p, const char *path)
{
    const char *slash = strrchr(path, '/');
    struct str s = STR_INIT(4096);
    utf8_scrub(&s, slash ? slash + 1 : path, strlen(slash ? slash + 1 : path));
    autofree char *clean = str_take(&s);
    free(p->name);
    p->name = utf8_nfc(clean);
}

static void next(struct profiling *p)
{
    const struct cli_list *files = &p->app.o->rest;
    struct err e = { 0 };
    int64_t bytes = 0;
    if (p->at == files->n) {
        app_stop(&p->app);
        return;
    }
    const char *path = files->at[p->at++];
    name_of(p, path);
    if (local_open_file(path, &p->fd, &bytes, &e) < 0) { /* it was there a moment ago */
        say_failed(p, e.msg);
        app_stop(&p->app);
        return;
    }
    step(p, BOX_OP_PUT, &put_events);
}

static int work(struct profiling *p)
{
    const struct conf *c = &p->app.o->conf;
    const struct box_limits limits = {
        .memory_bytes = c->memory_bytes, .disk_bytes = c->disk_bytes, .pids = (int)c->pids, .cpus = (int)c->cpus
    };
    struct err e = { 0 };
    autoclose int nowhere = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC); /* the intake delivers nothing */
    if (sandbox_native.open(&p->box, p->app.sandbox, &limits, nowhere, "/", &e) < 0)
        return cli_fail(&e);
    next(p);
    int rc = app_run(&p->app);
    sandbox_native.close(p->box);
    if (p->fd >= 0)
        (void)close(p->fd);
    return rc != CLI_OK ? rc : p->failed || p->app.stopped ? CLI_FAILED : CLI_OK;
}

static int check_files(const struct cli_options *o)
{
    struct err e = { 0 };
    for (size_t i = 0; i < o->rest.n; i++) {
        autoclose int fd = -1;
        int64_t bytes = 0;
        if (local_open_file(o->rest.at[i], &fd, &bytes, &e) < 0)
            return cli_usage("%s", e.msg);
    }
    return o->rest.n ? CLI_OK : cli_usage("profile what? For example: sandbook profile sales.csv");
}

int cli_profile(struct cli_options *o)
{
    int rc = check_files(o);
    if (rc != CLI_OK)
        return rc;
    struct profiling p = { .fd = -1 };
    rc = app_open(&p.app, o);
    if (rc == CLI_OK)
        rc = app_sandbox(&p.app);
    if (rc == CLI_OK)
        rc = work(&p);
    free(p.name);
    app_close(&p.app);
    return rc;
}
