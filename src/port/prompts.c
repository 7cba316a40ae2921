/* prompts.c - find the folder of the prompts. */
#include "prompts.h"
#include "paths.h"

int prompt_dir_resolve(char **out, const char *configured, struct err *e)
{
    static const char *const beside[] = { "prompts", "../../prompts", "../share/sandbook/prompts" };
    autofree char *here = path_program_folder();
    if (configured && *configured && !path_is_folder(configured))
        return err_set(e, ERR_CONFIG, "service.prompts_dir: there is no folder %.180s", configured);
    *out = configured && *configured ? xstrdup(configured) : path_first(here, beside, countof(beside), path_is_folder);
    if (*out)
        return 0;
    return err_set(e, ERR_CONFIG, "no folder of prompts near %.120s; set service.prompts_dir",
                   here ? here : "this program");
}
