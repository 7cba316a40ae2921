/* app.h - what the subcommands that need a box have in common: the parts, opened in order and closed in reverse. Floor 5. */
#ifndef APP_H
#define APP_H
#include "cli.h"
#include "loop.h"
#include "sandbox.h"
#include "session.h"

struct app {
    const struct cli_options *o;
    struct loop *loop;
    struct sandbox *sandbox; /* ready once app_sandbox returned CLI_OK */
    struct store *store;
    struct session_hub *hub;
    char *out_dir;  /* absolute; NULL: none wanted */
    int out_fd;     /* -1: none */
    bool out_made;  /* it was not there before */
    char *data_dir; /* of app_data_store */
    char *scratch;  /* a store's folder that goes with us; or NULL */
    bool stopped;   /* SIGINT or SIGTERM came: the loop was stopped */
    bool many;      /* sessions come and go: boxes wait ready for them. Before app_sandbox */
    bool serves;    /* one session, but in an interpreter as the service has it: doctor looks at that one. Likewise */
    bool ready;
    struct err problem; /* why it never got ready */
};

/* Each returns CLI_OK, or an exit status after a sentence on stderr. app_close is right after any of them. */
must_check int app_open(struct app *a, const struct cli_options *o); /* loop and signals */
must_check int app_sandbox(struct app *a);                           /* keeper up, image there, machine able */
must_check int app_scratch_store(struct app *a);                     /* gone at app_close; cells deliver to --out */
must_check int app_scratch(struct app *a);    /* the same without cells: a store that goes with us */
must_check int app_data_store(struct app *a); /* the configured data_dir */
char *app_data_dir(const struct conf *c);     /* the configured one, or its default; the caller frees */
must_check int app_hub(struct app *a, const struct session_watch *watch, void *ud);
must_check int app_run(struct app *a); /* the loop, until app_stop or a signal */
void app_stop(struct app *a);
void app_close(struct app *a);

/* Makes and opens the folder for charts and files (--out, else sandbook-out) as a->out_dir, a->out_fd. */
must_check int app_out(struct app *a);
#endif
