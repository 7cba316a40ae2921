/* export.c - a conversation as a notebook, beside a service that may run: the store is only read. */
#include <stdio.h>
#include <string.h>
#include "app.h"
#include "core/export/export.h"
#include "store.h"

static int write_out(const struct cli_options *o, struct store *s, const char *session)
{
    struct err e = { 0 };
    struct export_facts facts = { 0 };
    autofree char *own = xasprintf("sandbook-%.40s", session);
    const char *dir = o->out ? o->out : own;
    if (export_to_folder(s, session, dir, &facts, &e) < 0)
        return cli_fail(&e);
    (void)printf("%s/notebook.ipynb\n", dir);
    (void)fprintf(stderr, "sandbook: %zu questions, %zu programs, %zu files\n", facts.turns, facts.cells, facts.files);
    return CLI_OK;
}

static bool is_id(const char *text)
{
    return strlen(text) == 16 && strspn(text, "0123456789abcdef") == 16;
}

int cli_export(struct cli_options *o)
{
    struct err e = { 0 };
    struct store *s = NULL;
    if (o->rest.n != 1 || !is_id(o->rest.at[0]))
        return cli_usage(
            "export which session? Its id has 16 hex digits: the chat command `export` names it, and so does the log");
    autofree char *dir = app_data_dir(&o->conf);
    if (store_open_beside(&s, dir, &e) < 0)
        return cli_fail(&e);
    int rc = write_out(o, s, o->rest.at[0]);
    store_close(s);
    return rc;
}
