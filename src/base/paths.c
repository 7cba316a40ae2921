/* paths.c - see paths.h. */
#include "paths.h"
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

bool path_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int path_make_folders(const char *path, unsigned mode, bool *made)
{
    autofree char *copy = xstrdup(path);
    for (char *p = *copy ? copy + 1 : copy; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(copy, mode) < 0 && errno != EEXIST)
            return -1;
        *p = '/';
    }
    const bool fresh = mkdir(copy, mode) == 0;
    if (made)
        *made = fresh;
    return fresh || errno == EEXIST ? 0 : -1;
}

bool path_is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

char *path_program_folder(void)
{
    char path[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (n <= 0)
        return NULL;
    path[n] = '\0';
    const char *slash = strrchr(path, '/');
    return slash ? xstrndup(path, (size_t)(slash - path)) : NULL;
}

char *path_first(const char *base, const char *const *tails, size_t n, bool (*good)(const char *path))
{
    for (size_t i = 0; base && i < n; i++) {
        autofree char *path = xasprintf("%s/%s", base, tails[i]);
        if (good(path))
            return take(path);
    }
    return NULL;
}
