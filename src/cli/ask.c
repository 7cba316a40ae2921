/* ask.c - one question, its answer, and the end. */
#include <stdio.h>
#include <string.h>
#include "app.h"
#include "chat/local.h"
#include "json.h"
#include "str.h"

enum { FACTS_MAX = 64 << 20 };

struct ask {
    struct app app;
    struct chat *chat;
    int status;
    bool turned;     /* there was an answer: what else is said is none */
    bool failed;     /* what was said was that something did not work */
    struct str said; /* besides an answer */
    int64_t begun_ms;
};

static void print_facts(const struct json *facts)
{
    AUTO(str_clear) struct str text = STR_INIT(FACTS_MAX);
    json_print(&text, facts);
    (void)puts(str_peek(&text));
}

static void on_turn_done(void *ud, const struct turn_report *r)
{
    struct ask *a = ud;
    a->turned = true;
    a->status = strcmp(r->status, "answered") ? CLI_FAILED : CLI_OK;
    if (a->app.o->json)
        print_facts(r->facts);
}

/* A command's answer, or what there is to say about a file: the answer when no turn comes after it. */
static void on_notice(void *ud, const char *markdown, bool failed)
{
    struct ask *a = ud;
    a->failed = a->failed || failed;
    str_puts(&a->said, a->said.len ? "\n\n" : "");
    str_puts(&a->said, markdown);
}

/* The facts of a turn that was none. */
static struct json *facts_of_notices(struct ask *a)
{
    static const char *const lists[] = { "cells", "figures", "files" }, *const counts[] = { "in", "cached", "out" };
    struct json *facts = json_new_object(), *usage = json_new_object();
    json_set_str(facts, "status", a->failed ? "failed" : "answered");
    json_set_str(facts, "answer", str_peek(&a->said));
    for (size_t i = 0; i < countof(lists); i++)
        json_set(facts, lists[i], json_new_array());
    json_set(facts, "receipt", json_new_object());
    for (size_t i = 0; i < countof(counts); i++)
        json_set_int(usage, counts[i], 0);
    json_set(facts, "usage", usage);
    json_set_int(facts, "steps", 0);
    json_set_int(facts, "took_ms", loop_now_ms(a->app.loop) - a->begun_ms);
    return facts;
}

static void on_drained(void *ud)
{
    struct ask *a = ud;
    app_stop(&a->app);
    if (a->turned || !a->said.len)
        return;
    a->status = a->failed ? CLI_FAILED : CLI_OK;
    autojson struct json *facts = a->app.o->json ? facts_of_notices(a) : NULL;
    if (facts)
        print_facts(facts);
}

static const struct session_watch watch = { .turn_done = on_turn_done, .notice = on_notice, .drained = on_drained };

/* One event from one person, whose end is told at once: the hub drains after the answer. */
static int question(struct ask *a, const char *text, FILE *answers)
{
    const struct cli_options *o = a->app.o;
    struct err e = { 0 };
    const struct local_terminal t = {
        .out = answers, .status = isatty(STDERR_FILENO) ? stderr : NULL, .in_fd = -1, .room = "ask"
    };
    if (local_open_terminal(&a->chat, a->app.loop, &t, &session_hub_events, a->app.hub, &e) < 0)
        return cli_fail(&e);
    session_hub_attach(a->app.hub, &chat_local, a->chat);
    a->begun_ms = loop_now_ms(a->app.loop);
    if (session_hub_resume(a->app.hub, &e) < 0 || local_say(a->chat, text, o->files.at, o->files.n, &e) < 0)
        return cli_fail(&e);
    session_hub_events.on_end(a->app.hub, a->chat);
    int rc = app_run(&a->app);
    return rc == CLI_OK ? a->status : rc;
}

static int check_files(const struct cli_options *o)
{
    struct err e = { 0 };
    for (size_t i = 0; i < o->files.n; i++) {
        int64_t bytes = 0;
        autoclose int fd = -1;
        if (local_open_file(o->files.at[i], &fd, &bytes, &e) < 0)
            return cli_usage("%s", e.msg);
        if (bytes > o->conf.upload_max_bytes)
            return cli_usage("%s is larger than files.upload_max (%lld MB)", o->files.at[i],
                             (long long)(o->conf.upload_max_bytes >> 20));
    }
    return CLI_OK;
}

static char *joined(const struct cli_list *words)
{
    AUTO(str_clear) struct str s = STR_INIT(1 << 20);
    for (size_t i = 0; i < words->n; i++) {
        str_puts(&s, i ? " " : "");
        utf8_scrub(&s, words->at[i], strlen(words->at[i]));
    }
    return str_take(&s);
}

int cli_ask(struct cli_options *o)
{
    autofree char *text = joined(&o->rest);
    if (!text[strspn(text, " \t\n")])
        return cli_usage("ask what? For example: sandbook ask --file sales.csv \"total amount by region, as a chart\"");
    int rc = check_files(o);
    if (rc != CLI_OK)
        return rc;
    struct ask a = { .status = CLI_FAILED, .said = STR_INIT(1 << 20) };
    FILE *answers = o->json ? fopen("/dev/null", "w") : stdout; /* with --json the report is the answer */
    if (!answers)
        return cli_usage("cannot open /dev/null");
    rc = app_open(&a.app, o);
    if (rc == CLI_OK)
        rc = app_sandbox(&a.app);
    if (rc == CLI_OK)
        rc = app_scratch_store(&a.app);
    if (rc == CLI_OK)
        rc = app_hub(&a.app, &watch, &a);
    if (rc == CLI_OK)
        rc = question(&a, text, answers);
    session_hub_free(take(a.app.hub));
    chat_local.close(a.chat);
    app_close(&a.app);
    str_clear(&a.said);
    if (answers != stdout)
        (void)fclose(answers);
    return rc;
}
