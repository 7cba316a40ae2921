/* prompts.c - find the folder of the prompts. */
#include "prompts.h"
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Folder of the running program, without the last slash; "." when the kernel won't say. */
static void program_folder(char *out, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    if (n <= 0) {
        out[0] = '.';
        n = 1;
    }
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (slash)
        *slash = '\0';
}

int prompt_dir_resolve(char **out, const char *configured, struct err *e)
{
    static const char *const beside[] = { "prompts", "../../prompts", "../share/sandbook/prompts" };
    char folder[PATH_MAX];
    if (configured && configured[0]) {
        if (!is_folder(configured))
            return err_set(e, ERR_CONFIG, "service.prompts_dir: there is no folder %.180s", configured);
        *out = xstrdup(configured);
        return 0;
    }
    program_folder(folder, sizeof(folder));
    for (size_t i = 0; i < countof(beside); i++) {
        autofree char *path = xasprintf("%s/%s", folder, beside[i]);
        if (is_folder(path)) {
            *out = take(path);
            return 0;
        }
    }
    return err_set(e, ERR_CONFIG, "no folder of prompts near %.120s; set service.prompts_dir", folder);
}
