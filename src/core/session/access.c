#include "access.h"
#include <fnmatch.h>
#include <string.h>

static const char between[] = ", \t";

bool access_listed(const char *list, const char *id)
{
    const char *at = list + strspn(list, between);
    if (*at == '\0')
        return true;
    for (; *at; at += strspn(at, between)) {
        const size_t n = strcspn(at, between);
        autofree char *pattern = xstrndup(at, n);
        if (fnmatch(pattern, id, FNM_NOESCAPE) == 0)
            return true;
        at += n;
    }
    return false;
}
