/* version.c - the version. */
#include <stdio.h>
#include "cli.h"

int cli_version(struct cli_options *o)
{
    int rc = cli_no_words(o, "version");
    if (rc == CLI_OK)
        (void)puts("sandbook " SANDBOOK_VERSION);
    return rc;
}
