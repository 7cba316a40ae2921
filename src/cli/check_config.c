/* check_config.c - every setting with its value and its meaning. */
#include <stdio.h>
#include "cli.h"

int cli_check_config(struct cli_options *o)
{
    int rc = cli_no_words(o, "check-config");
    if (rc != CLI_OK)
        return rc;
    /* Reading it was the check; a mistake never gets here. */
    cli_print_settings(&o->conf);
    (void)printf("\nThe configuration is valid. Answers come from: %s.\n", o->conf.model);
    return CLI_OK;
}
