#include "app.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "json.h"
#include "log.h"
#include "paths.h"
#include "store.h"

enum { RUNS_MAX = 100000 }; /* numbered folders below sandbook-out */

static const struct model_ops *const models[] = {
    &model_builtin, &model_replay, &model_openai_chat, &model_openai_responses, &model_anthropic, &model_ollama, NULL
};

static const struct tool_ops *const tools[] = { &tool_http, &tool_sql, NULL };

/* A terminal that is closed is an end like the others; under nohup the system drops SIGHUP before it gets here. */
static const int ends[] = { SIGINT, SIGTERM, SIGHUP };

static void on_signal(void *ud, int signo)
{
    struct app *a = ud;
    log_info("signal", KV_I("number", signo));
    if (!a->many && !a->stopped)
        (void)fputs("sandbook: stopped\n", stderr);
    a->stopped = true;
    loop_stop(a->loop);
}

int app_open(struct app *a, const struct cli_options *o)
{
    *a = (struct app){ .o = o, .out_fd = -1 };
    (void)signal(SIGPIPE, SIG_IGN);
    struct err e = { 0 };
    if (loop_new(&a->loop, NULL, NULL, &e) < 0)
        return cli_fail(&e);
    for (size_t i = 0; i < countof(ends); i++)
        if (loop_signal(a->loop, ends[i], on_signal, a, &e) < 0)
            return cli_fail(&e);
    return CLI_OK;
}

static void on_ready(void *ud, const struct err *e)
{
    struct app *a = ud;
    a->ready = true;
    if (e)
        a->problem = *e;
}

static void still_starting(void *ud)
{
    (void)ud;
    if (isatty(STDERR_FILENO))
        (void)fputs("sandbook: starting the sandbox ...\n", stderr);
}

/* Whatever keeps the sandbox from starting is the machine's: what to do about it is in the message. */
static int no_sandbox(const struct app *a, const struct err *e)
{
    (void)cli_fail(e);
    const struct json *report = a->sandbox ? sandbox_native.report(a->sandbox) : NULL;
    for (const struct json *x = json_first(json_get(report, "problems")); x; x = json_next(x))
        (void)fprintf(stderr, "sandbook: %s\n  to mend it: %s\n", json_str_or(x, "what", ""),
                      json_str_or(x, "fix", "see docs/sandbox.md"));
    return CLI_MACHINE;
}

int app_sandbox(struct app *a)
{
    struct err e = { 0 };
    struct conf conf = a->o->conf; /* borrows what the options own */
    conf.one_session = !a->many && !a->serves;
    if (!a->many)
        conf.pool = 0;
    if (sandbox_native.start(&a->sandbox, a->loop, &conf, on_ready, a, &e) < 0)
        return no_sandbox(a, &e);
    loop_timer slow = loop_after(a->loop, 2000, still_starting, a);
    while (!a->ready && !a->stopped)
        if (loop_once(a->loop, 1000, &e) < 0)
            return no_sandbox(a, &e);
    loop_cancel(a->loop, slow);
    if (a->problem.kind != ERR_NONE)
        return no_sandbox(a, &a->problem);
    return a->stopped ? CLI_FAILED : CLI_OK;
}

/* Absolute, so that the paths we print hold wherever they are used. */
static char *absolute(const char *path)
{
    char here[PATH_MAX];
    if (*path == '/' || !getcwd(here, sizeof here))
        return xstrdup(path);
    return xasprintf("%s/%s", here, path);
}

static const char *temporary(void)
{
    const char *tmp = getenv("TMPDIR");
    return tmp && *tmp ? tmp : "/tmp";
}

/* Where one may only read, what is made lies among the temporary files; its paths are printed whole. */
static char *temporary_folder(bool *made)
{
    char *path = xasprintf("%s/sandbook-out-XXXXXX", temporary());
    *made = mkdtemp(path) != NULL;
    return path;
}

/* Without --out each run has a folder of its own, so that none overwrites what another made. */
static char *numbered_folder(bool *made)
{
    bool parent = false;
    if (path_make_folders("sandbook-out", 0777, &parent) < 0 ||
        faccessat(AT_FDCWD, "sandbook-out", W_OK | X_OK, AT_EACCESS) < 0)
        return temporary_folder(made);
    for (int n = 1; n < RUNS_MAX; n++) {
        autofree char *name = xasprintf("sandbook-out/%d", n);
        *made = mkdir(name, 0777) == 0;
        if (*made || errno != EEXIST)
            return absolute(name);
    }
    return absolute("sandbook-out");
}

int app_out(struct app *a)
{
    a->out_dir = a->o->out ? absolute(a->o->out) : numbered_folder(&a->out_made);
    if (a->out_made || path_make_folders(a->out_dir, 0777, &a->out_made) == 0)
        a->out_fd = open(a->out_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (a->out_fd >= 0 && faccessat(a->out_fd, ".", W_OK | X_OK, AT_EACCESS) == 0)
        return CLI_OK;
    return cli_usage("cannot write charts and files to %s: %s; name another folder with --out", a->out_dir,
                     strerror(errno));
}

int app_scratch(struct app *a)
{
    struct err e = { 0 };
    autofree char *path = xasprintf("%s/sandbook-XXXXXX", temporary());
    if (!mkdtemp(path)) {
        (void)err_sys(&e, ERR_CONFIG, errno, "cannot make a temporary folder %s", path);
        return cli_fail(&e);
    }
    a->scratch = take(path);
    return store_open(&a->store, a->scratch, &e) < 0 ? cli_fail(&e) : CLI_OK;
}

int app_scratch_store(struct app *a)
{
    int rc = app_scratch(a);
    if (rc == CLI_OK)
        rc = app_out(a);
    if (rc == CLI_OK)
        store_deliver_to(a->store, a->out_dir);
    return rc;
}

char *app_data_dir(const struct conf *c)
{
    if (*c->data_dir)
        return xstrdup(c->data_dir);
    const char *home = getenv("HOME");
    return geteuid() == 0 || !home ? xstrdup("/var/lib/sandbook") : xasprintf("%s/.local/state/sandbook", home);
}

int app_data_store(struct app *a)
{
    struct err e = { 0 };
    a->data_dir = app_data_dir(&a->o->conf);
    if (store_open(&a->store, a->data_dir, &e) == 0)
        return CLI_OK;
    (void)err_wrap(&e, "service.data_dir");
    return cli_fail(&e);
}

int app_hub(struct app *a, const struct session_watch *watch, void *ud)
{
    struct err e = { 0 };
    const struct session_parts parts = { .loop = a->loop,
                                         .conf = &a->o->conf,
                                         .store = a->store,
                                         .sandbox_ops = &sandbox_native,
                                         .sandbox = a->sandbox,
                                         .models = models,
                                         .tools = tools,
                                         .watch = watch,
                                         .watch_ud = ud,
                                         .keep_state = !a->scratch };
    return session_hub_new(&a->hub, &parts, &e) < 0 ? cli_fail(&e) : CLI_OK;
}

int app_run(struct app *a)
{
    struct err e = { 0 };
    return loop_run(a->loop, &e) < 0 ? cli_fail(&e) : CLI_OK;
}

void app_stop(struct app *a)
{
    loop_stop(a->loop);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

/* nftw does not follow links, and nobody else writes below a folder that mkdtemp made for us. */
static void remove_scratch(const char *path)
{
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0)
        log_warn("scratch_left", KV_S("path", path));
}

void app_close(struct app *a)
{
    session_hub_free(a->hub);
    if (a->sandbox)
        sandbox_native.stop(a->sandbox);
    store_close(a->store);
    if (a->scratch)
        remove_scratch(a->scratch);
    free(a->scratch);
    free(a->data_dir);
    if (a->out_fd >= 0)
        (void)close(a->out_fd);
    if (a->out_made) { /* nothing was made: leave no empty folder */
        (void)rmdir(a->out_dir);
        if (!a->o->out)
            (void)rmdir("sandbook-out");
    }
    free(a->out_dir);
    if (a->loop) {
        for (size_t i = 0; i < countof(ends); i++)
            loop_signal_stop(a->loop, ends[i]);
    }
    loop_free(a->loop);
    *a = (struct app){ 0 };
}
