#include <stdio.h>
#include "cli.h"

int cli_version(struct cli_options *o)
{
    (void)o;
    (void)puts("sandbook " SANDBOOK_VERSION);
    return CLI_OK;
}
