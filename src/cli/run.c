/* run.c - the service: all platforms that are configured, until a signal or the end of input. */
#include <sys/resource.h>
#include "app.h"
#include "chat.h"
#include "confine.h"
#include "log.h"
#include "metric.h"
#include "notify.h"
#include "status/status.h"

enum { DESCRIPTORS = 65536 };

/* Every platform there is; those that are configured are opened. */
static const struct chat_ops *const platforms[] = { &chat_local, &chat_matrix, &chat_slack };

struct daemon {
    struct app app;
    struct chat *chats[countof(platforms)]; /* NULL: not configured */
    struct notify *notify;
    struct status *status;
    bool serving; /* people are answered */
    bool resting; /* variables are being saved; then it is over */
};

/* ---- seen from outside ---- */

static const char *unready(void *ud)
{
    const struct daemon *d = ud;
    const char *why = NULL;
    if (d->resting)
        return "stopping";
    if (!d->serving)
        return "starting: the sandbox is not ready yet";
    for (size_t i = 0; i < countof(platforms) && !why; i++)
        if (d->chats[i] && platforms[i]->deaf)
            why = platforms[i]->deaf(d->chats[i]);
    return why;
}

static void measure(void *ud)
{
    const struct daemon *d = ud;
    const struct session_counts c = d->app.hub ? session_hub_counts(d->app.hub) : (struct session_counts){ 0 };
    metric_set(METRIC_SESSIONS, NULL, (int64_t)c.sessions);
    metric_set(METRIC_BOXES, "idle", (int64_t)c.boxes_idle);
    metric_set(METRIC_BOXES, "busy", (int64_t)(c.boxes - c.boxes_idle));
    metric_set(METRIC_REQUESTS, "running", (int64_t)c.running);
    metric_set(METRIC_REQUESTS, "waiting", (int64_t)c.waiting);
    metric_set(METRIC_UNDELIVERED, NULL, (int64_t)c.undelivered);
}

static int open_status(struct daemon *d)
{
    struct err e = { 0 };
    const struct status_parts parts = {
        .listen = d->app.o->conf.status_listen, .measure = measure, .unready = unready, .ud = d
    };
    metric_set(METRIC_STARTED, NULL, time_unix_ms() / 1000);
    d->notify = notify_open(d->app.loop);
    if (!*parts.listen)
        return CLI_OK;
    if (status_open(&d->status, d->app.loop, &parts, &e) < 0)
        return cli_fail(&e);
    log_info("status_served", KV_S("listen", parts.listen), KV_I("port", status_port(d->status)));
    return CLI_OK;
}

/* ---- its life ---- */

static void on_drained(void *ud)
{
    struct daemon *d = ud;
    if (!d->resting)
        app_stop(&d->app);
}

static const struct session_watch watch = { .drained = on_drained };

static int open_chats(struct daemon *d)
{
    struct err e = { 0 };
    const struct chat_home home = {
        .loop = d->app.loop, .conf = &d->app.o->conf, .store = d->app.store, .data_dir = d->app.data_dir
    };
    for (size_t i = 0; i < countof(platforms); i++) {
        if (!platforms[i]->wanted(home.conf))
            continue;
        if (platforms[i]->open(&d->chats[i], &home, &session_hub_events, d->app.hub, &e) < 0)
            return cli_fail(&e);
        session_hub_attach(d->app.hub, platforms[i], d->chats[i]);
    }
    return CLI_OK;
}

static int serve(struct daemon *d)
{
    struct err e = { 0 };
    const int rc = open_chats(d);
    if (rc != CLI_OK)
        return rc;
    if (session_hub_resume(d->app.hub, &e) < 0)
        return cli_fail(&e);
    d->serving = true;
    notify_ready(d->notify, "answering");
    log_info("serving", KV_S("version", SANDBOOK_VERSION), KV_S("model", d->app.o->conf.model));
    return app_run(&d->app);
}

static void on_rested(void *ud)
{
    struct daemon *d = ud;
    app_stop(&d->app);
}

/* What sessions have goes to disk; a second signal, or the time, ends that. */
static int rest(struct daemon *d)
{
    d->resting = true;
    notify_stopping(d->notify, "writing down variables");
    loop_timer late = loop_after(d->app.loop, d->app.o->conf.stop_timeout_ms, on_rested, d);
    session_hub_rest(d->app.hub, on_rested, d);
    const int rc = app_run(&d->app);
    loop_cancel(d->app.loop, late);
    return rc;
}

static bool any_platform(const struct conf *c)
{
    bool any = false;
    for (size_t i = 0; i < countof(platforms); i++)
        any = any || platforms[i]->wanted(c);
    return any;
}

/* Some descriptors a session, some a connection: what the machine lets us have, not what a shell begins with. */
static void raise_descriptors(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur >= DESCRIPTORS)
        return;
    l.rlim_cur = l.rlim_max < DESCRIPTORS ? l.rlim_max : DESCRIPTORS;
    if (setrlimit(RLIMIT_NOFILE, &l) < 0)
        log_warn("descriptors_not_raised", KV_I("max", (int64_t)l.rlim_max));
}

int cli_run(struct cli_options *o)
{
    if (o->rest.n)
        return cli_usage("run takes no words; got \"%s\"", o->rest.at[0]);
    if (!any_platform(&o->conf))
        return cli_usage("no chat platform is configured: set matrix.user (docs/matrix.md), slack.bot_token_file "
                         "(docs/slack.md) or local.stdio = yes (docs/cli.md)");
    struct err e = { 0 };
    if (confine_self(&e) < 0)
        return cli_fail(&e);
    struct daemon d = { 0 };
    raise_descriptors();
    int rc = app_open(&d.app, o);
    d.app.many = true;
    if (rc == CLI_OK)
        rc = open_status(&d);
    if (rc == CLI_OK)
        rc = app_data_store(&d.app);
    if (rc == CLI_OK)
        rc = app_sandbox(&d.app);
    if (rc == CLI_OK)
        rc = app_hub(&d.app, &watch, &d);
    if (rc == CLI_OK)
        rc = serve(&d);
    if (rc == CLI_OK)
        rc = rest(&d);
    session_hub_free(take(d.app.hub));
    for (size_t i = 0; i < countof(platforms); i++)
        platforms[i]->close(d.chats[i]);
    status_close(d.status);
    notify_close(d.notify);
    app_close(&d.app);
    return rc;
}
