#include <stdio.h>
#include "app.h"
#include "chat/local.h"

struct talk {
    struct app app;
    struct chat *chat;
};

static void on_drained(void *ud)
{
    struct talk *t = ud;
    app_stop(&t->app);
}

static void on_settled(void *ud)
{
    struct talk *t = ud;
    local_go_on(t->chat);
}

static bool is_busy(void *ud)
{
    const struct talk *t = ud;
    return !session_hub_idle(t->app.hub);
}

static const struct session_watch watch = { .settled = on_settled, .drained = on_drained };

static int talk(struct talk *t)
{
    const struct cli_options *o = t->app.o;
    struct err e = { 0 };
    bool person = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    const struct local_terminal io = { .out = stdout,
                                       .status = isatty(STDERR_FILENO) ? stderr : NULL,
                                       .in_fd = STDIN_FILENO,
                                       .room = "terminal",
                                       .busy = isatty(STDIN_FILENO) ? NULL : is_busy,
                                       .ud = t };
    if (local_open_terminal(&t->chat, t->app.loop, &io, &session_hub_events, t->app.hub, &e) < 0)
        return cli_fail(&e);
    session_hub_attach(t->app.hub, &chat_local, t->chat);
    if (session_hub_resume(t->app.hub, &e) < 0)
        return cli_fail(&e);
    if (o->files.n && local_say(t->chat, "", o->files.at, o->files.n, &e) < 0)
        return cli_usage("%s", e.msg);
    if (person)
        (void)printf("Ask about your files. /file PATH attaches one, !help lists the commands, Ctrl-D ends.\n");
    return app_run(&t->app);
}

int cli_chat(struct cli_options *o)
{
    if (o->rest.n)
        return cli_usage("chat takes no words; type them when it has started, or use: sandbook ask");
    struct talk t = { 0 };
    int rc = app_open(&t.app, o);
    if (rc == CLI_OK)
        rc = app_sandbox(&t.app);
    if (rc == CLI_OK)
        rc = app_scratch_store(&t.app);
    if (rc == CLI_OK)
        rc = app_hub(&t.app, &watch, &t);
    if (rc == CLI_OK)
        rc = talk(&t);
    session_hub_free(take(t.app.hub));
    chat_local.close(t.chat);
    app_close(&t.app);
    return rc;
}
