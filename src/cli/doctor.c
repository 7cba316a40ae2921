/* doctor.c - what this machine gives, and the escapes, tried. */
#include <stdio.h>
#include <string.h>
#include "app.h"
#include "json.h"
#include "str.h"

struct doctor {
    struct app app;
    int passed, failed, skipped;
    bool over;
    struct err problem;
};

static void line(struct doctor *d, const char *name, const char *outcome, const char *detail)
{
    d->passed += !strcmp(outcome, "pass");
    d->failed += !strcmp(outcome, "fail");
    d->skipped += !strcmp(outcome, "skip");
    if (!d->app.o->json) {
        (void)printf("%-5s %-50s %s\n", outcome, name, detail ? detail : "");
        return;
    }
    autojson struct json *j = json_new_object();
    json_set_str(j, "name", name);
    json_set_str(j, "outcome", outcome);
    json_set_str(j, "detail", detail ? detail : "");
    AUTO(str_clear) struct str text = STR_INIT(1 << 16);
    json_print(&text, j);
    (void)puts(str_peek(&text));
}

static void on_note(void *ud, const char *name, const char *outcome, const char *detail)
{
    line(ud, name, outcome, detail);
}

static void on_done(void *ud, const struct err *e)
{
    struct doctor *d = ud;
    d->over = true;
    if (e)
        d->problem = *e;
    app_stop(&d->app);
}

/* refused: no box is made here, and the problems are why. */
static void print_report(struct doctor *d, bool refused)
{
    const struct json *report = sandbox_native.report(d->app.sandbox);
    for (const struct json *x = json_first(json_get(report, "features")); x; x = json_next(x)) {
        AUTO(str_clear) struct str value = STR_INIT(4096);
        if (json_type(x) == JSON_STRING)
            str_puts(&value, json_text(x));
        else
            json_print(&value, x);
        line(d, json_key(x), "info", str_peek(&value));
    }
    for (const struct json *x = json_first(json_get(report, "problems")); x; x = json_next(x)) {
        autofree char *both =
            xasprintf("%s. To mend it: %s", json_str_or(x, "what", ""), json_str_or(x, "fix", "see docs/sandbox.md"));
        line(d, "machine", refused ? "fail" : "warn", both);
    }
    line(d, "tier", "info", json_str_or(report, "tier", "none"));
}

/* The keeper tries the quick escapes itself before it serves. */
static bool escaped(const struct doctor *d)
{
    return d->app.sandbox && json_str_or(sandbox_native.report(d->app.sandbox), "escape", NULL);
}

static int examine(struct doctor *d)
{
    struct err e = { 0 };
    line(d, "configuration", "pass", "every setting is valid");
    d->app.serves = true;
    int rc = app_sandbox(&d->app);
    if (d->app.sandbox)
        print_report(d, rc != CLI_OK);
    if (rc != CLI_OK)
        return escaped(d) ? CLI_FAILED : rc;
    if (sandbox_native.check(d->app.sandbox, on_note, on_done, d, &e) < 0)
        return cli_fail(&e);
    rc = app_run(&d->app);
    if (rc == CLI_OK && d->problem.kind != ERR_NONE)
        rc = cli_fail(&d->problem);
    return rc;
}

int cli_doctor(struct cli_options *o)
{
    int rc = cli_no_words(o, "doctor");
    if (rc != CLI_OK)
        return rc;
    struct doctor d = { 0 };
    rc = app_open(&d.app, o);
    if (rc == CLI_OK)
        rc = examine(&d);
    if (!o->json)
        (void)printf("%d passed, %d failed, %d skipped\n", d.passed, d.failed, d.skipped);
    if (rc == CLI_OK && (d.failed || !d.over))
        rc = CLI_FAILED;
    app_close(&d.app);
    return rc;
}
