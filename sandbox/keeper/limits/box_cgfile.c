/* box_cgfile.c - see box_cgfile.h. */
#include "box_cgfile.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "str.h"

enum { FILE_MAX = 64 << 10 };

int box_cgfile_put(const char *dir, const char *file, const char *text)
{
    autofree char *path = xasprintf("%s/%s", dir, file);
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, text, strlen(text));
    return n < 0 ? -1 : 0;
}

int box_cgfile_put_number(const char *dir, const char *file, uint64_t n)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    return box_cgfile_put(dir, file, text);
}

char *box_cgfile_read(const char *path)
{
    struct err e;
    AUTO(str_clear) struct str text = STR_INIT(FILE_MAX);
    if (str_read_file(&text, path, &e) < 0)
        str_clear(&text);
    return str_take(&text);
}

char *box_cgfile_get(const char *dir, const char *file)
{
    autofree char *path = xasprintf("%s/%s", dir, file);
    return box_cgfile_read(path);
}

int64_t box_cgfile_number(const char *dir, const char *file)
{
    autofree char *text = box_cgfile_get(dir, file);
    return *text ? strtoll(text, NULL, 10) : -1;
}

static void kill_members(const char *dir)
{
    autofree char *text = box_cgfile_get(dir, "cgroup.procs");
    char *rest = NULL;
    for (char *pid = strtok_r(text, "\n", &rest); pid; pid = strtok_r(NULL, "\n", &rest)) {
        int n = (int)strtol(pid, NULL, 10);
        if (n > 1)
            (void)kill(n, SIGKILL);
    }
}

int box_cgfile_remove(const char *dir, int depth, bool kill_first) /* NOLINT(misc-no-recursion): depth ends it */
{
    DIR *d = depth > 0 ? opendir(dir) : NULL;
    if (d) {
        for (struct dirent *x = readdir(d); x; x = readdir(d)) { /* NOLINT(concurrency-mt-unsafe): one thread */
            if (x->d_type != DT_DIR || x->d_name[0] == '.')
                continue;
            autofree char *below = xasprintf("%s/%s", dir, x->d_name);
            (void)box_cgfile_remove(below, depth - 1, kill_first);
        }
        (void)closedir(d);
    }
    if (kill_first) {
        kill_members(dir);
        (void)box_cgfile_put(dir, "freezer.state", "THAWED"); /* the frozen of v1 die only then */
    }
    return rmdir(dir);
}
