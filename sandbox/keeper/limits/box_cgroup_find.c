/* box_cgroup_find.c - where control groups are: the two text files that say so. See box_cgroup_find.h. */
#include "box_cgroup_find.h"
#include <string.h>
#include "str.h"

/* Is word one of the comma-separated ones? */
static bool has_word(const char *list, size_t n, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list, *end = list + n; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t part = (size_t)((comma ? comma : end) - at);
        if (part == len && memcmp(at, word, len) == 0)
            return true;
        at += part + 1;
    }
    return false;
}

/* Lines are "id:controllers:path". */
char *box_cgroup_own(const char *proc_cgroup, const char *controller)
{
    for (const char *line = proc_cgroup; *line;) {
        const char *end = line + strcspn(line, "\n");
        const char *names = memchr(line, ':', (size_t)(end - line));
        const char *path = names ? memchr(names + 1, ':', (size_t)(end - names - 1)) : NULL;
        if (path) {
            size_t n = (size_t)(path - names - 1);
            bool is = *controller ? has_word(names + 1, n, controller) : n == 0;
            if (is && path[1] == '/')
                return xstrndup(path + 1, (size_t)(end - path - 1));
        }
        line = *end ? end + 1 : end;
    }
    return NULL;
}

/* mountinfo writes space, tab, newline and backslash as \ooo. */
static char *unescaped(const char *text, size_t n)
{
    char *out = xstrndup(text, n), *to = out;
    for (const char *at = out; *at; at++) {
        if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[2] <= '7' && at[3] >= '0' &&
            at[3] <= '7') {
            *to++ = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
            at += 3;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
    return out;
}

enum { FIELD_ROOT = 3, FIELD_POINT = 4, FIELDS = 24 };

/* Splits one line in place of copying: starts and lengths. Returns their number. */
static int fields_of(const char *line, const char *end, const char *start[FIELDS], size_t len[FIELDS])
{
    int n = 0;
    while (line < end && n < FIELDS) {
        const char *space = memchr(line, ' ', (size_t)(end - line));
        const char *stop = space ? space : end;
        start[n] = line;
        len[n++] = (size_t)(stop - line);
        line = stop + 1;
    }
    return n;
}

/* own as seen below a mount whose root is that folder of the hierarchy. */
static char *join(const char *point, const char *root, const char *own)
{
    size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);
    if (strncmp(own, root, n) != 0 || (own[n] != '/' && own[n] != '\0'))
        return NULL;
    const char *rest = own + n;
    return xasprintf("%s%s", point, strcmp(rest, "/") == 0 ? "" : rest);
}

static char *folder_of_line(const char *line, const char *end, const char *controller, const char *own)
{
    const char *start[FIELDS];
    size_t len[FIELDS];
    int n = fields_of(line, end, start, len), dash = 0;
    for (int i = 6; i < n && dash == 0; i++)
        if (len[i] == 1 && *start[i] == '-')
            dash = i;
    if (dash == 0 || dash + 3 >= n)
        return NULL;
    bool v2 = *controller == '\0';
    const char *type = v2 ? "cgroup2" : "cgroup";
    if (len[dash + 1] != strlen(type) || memcmp(start[dash + 1], type, strlen(type)) != 0)
        return NULL;
    if (!v2 && !has_word(start[dash + 3], len[dash + 3], controller))
        return NULL;
    autofree char *root = unescaped(start[FIELD_ROOT], len[FIELD_ROOT]);
    autofree char *point = unescaped(start[FIELD_POINT], len[FIELD_POINT]);
    return join(point, root, own);
}

char *box_cgroup_folder(const char *mountinfo, const char *controller, const char *own)
{
    for (const char *line = mountinfo; *line;) {
        const char *end = line + strcspn(line, "\n");
        char *folder = folder_of_line(line, end, controller, own);
        if (folder)
            return folder;
        line = *end ? end + 1 : end;
    }
    return NULL;
}

int64_t box_cgroup_value(const char *text, const char *name, int64_t otherwise)
{
    size_t n = strlen(name);
    for (const char *line = text; *line;) {
        if (strncmp(line, name, n) == 0 && line[n] == ' ')
            return strtoll(line + n + 1, NULL, 10);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return otherwise;
}
