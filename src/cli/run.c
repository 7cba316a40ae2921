#include "app.h"
#include "chat/local.h"
#include "log.h"

struct daemon {
    struct app app;
    struct chat *chat;
};

static void on_drained(void *ud)
{
    struct daemon *d = ud;
    app_stop(&d->app);
}

static const struct session_watch watch = { .drained = on_drained };

static int serve(struct daemon *d)
{
    struct err e = { 0 };
    if (chat_local.open(&d->chat, d->app.loop, &d->app.o->conf, &session_hub_events, d->app.hub, &e) < 0)
        return cli_fail(&e);
    session_hub_attach(d->app.hub, &chat_local, d->chat);
    if (session_hub_resume(d->app.hub, &e) < 0)
        return cli_fail(&e);
    log_info("serving", KV_S("version", SANDBOOK_VERSION), KV_S("model", d->app.o->conf.model));
    return app_run(&d->app);
}

int cli_run(struct cli_options *o)
{
    if (o->rest.n)
        return cli_usage("run takes no words; got \"%s\"", o->rest.at[0]);
    if (!o->conf.local_stdio)
        return cli_usage("no chat platform is configured: set [local] stdio = yes (docs/cli.md)");
    struct daemon d = { 0 };
    int rc = app_open(&d.app, o);
    if (rc == CLI_OK)
        rc = app_data_store(&d.app);
    if (rc == CLI_OK)
        rc = app_sandbox(&d.app);
    if (rc == CLI_OK)
        rc = app_hub(&d.app, &watch, &d);
    if (rc == CLI_OK)
        rc = serve(&d);
    session_hub_free(take(d.app.hub));
    chat_local.close(d.chat);
    app_close(&d.app);
    return rc;
}
