/* box_cgroup.c - see box_cgroup.h. */
#include "box_cgroup.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "box_cgfile.h"
#include "box_cgroup_find.h"
#include "box_limit.h"
#include "log.h"
#include "str.h"

static const char PREFIX[] = "sandbook-";

/* ---- what a killed keeper left ---- */

static bool is_stale(const char *name)
{
    int pid = 0;
    unsigned long long start = 0;
    if (sscanf(name, "sandbook-%d-%llu", &pid, &start) != 2) /* NOLINT: a name that overflows is simply nobody's */
        return false;
    return pid > 0 && box_start_ticks(pid) != start;
}

static void remove_stale(const char *parent)
{
    DIR *d = opendir(parent);
    if (!d)
        return;
    for (struct dirent *x = readdir(d); x; x = readdir(d)) { /* NOLINT(concurrency-mt-unsafe): one thread */
        if (strncmp(x->d_name, PREFIX, sizeof PREFIX - 1) != 0 || !is_stale(x->d_name))
            continue;
        autofree char *old = xasprintf("%s/%s", parent, x->d_name);
        if (box_cgfile_remove(old, 3, true) == 0)
            log_info("cgroup_stale_removed", KV_S("name", x->d_name));
    }
    (void)closedir(d);
}

/* ---- detection ---- */

/* The keeper's folder below parent, made; NULL with errno. */
static char *make_own(const char *parent)
{
    autofree char *own = xasprintf("%s/%s%d-%llu", parent, PREFIX, (int)getpid(), box_start_ticks(getpid()));
    remove_stale(parent);
    if (mkdir(own, 0755) < 0 && errno != EEXIST)
        return NULL;
    return take(own);
}

/* v2 has no processes in inner nodes: the keeper goes to a leaf. With systemd's DelegateSubgroup it is in one already. */
static int leave_inner_node(const char *dir)
{
    autofree char *leaf = xasprintf("%s/supervisor", dir);
    if (mkdir(leaf, 0755) < 0 && errno != EEXIST)
        return -1;
    return box_cgfile_put(leaf, "cgroup.procs", "0");
}

bool box_cgroups_open_v2(struct box_cgroups *c, const char *own)
{
    autofree char *controllers = box_cgfile_get(own, "cgroup.controllers");
    if (!strstr(controllers, "memory") || !strstr(controllers, "pids"))
        return false;
    autofree char *dir = xstrdup(own);
    char *last = strrchr(dir, '/');
    if (last && strcmp(last, "/supervisor") == 0)
        *last = '\0';
    else if (leave_inner_node(dir) < 0)
        return false;
    if (box_cgfile_put(dir, "cgroup.subtree_control", "+memory +pids") < 0)
        return false;
    (void)box_cgfile_put(dir, "cgroup.subtree_control", "+cpu");
    autofree char *made = make_own(dir);
    if (!made || box_cgfile_put(made, "cgroup.subtree_control", "+memory +pids") < 0)
        return false;
    bool cpu = box_cgfile_put(made, "cgroup.subtree_control", "+cpu") == 0;
    for (int i = 0; i < BOX_CG_PARTS; i++)
        c->part[i] = i == BOX_CG_CPU && !cpu ? NULL : xstrdup(made);
    c->kind = BOX_CGROUP_V2;
    return true;
}

static char *find(const char *cgroup, const char *mountinfo, const char *controller)
{
    autofree char *own = box_cgroup_own(cgroup, controller);
    return own ? box_cgroup_folder(mountinfo, controller, own) : NULL;
}

static void open_v1(struct box_cgroups *c, const char *cgroup, const char *mountinfo)
{
    static const char *const names[] = {
        [BOX_CG_MEMORY] = "memory",
        [BOX_CG_PIDS] = "pids",
        [BOX_CG_CPU] = "cpu",
        [BOX_CG_FREEZER] = "freezer",
    };
    for (size_t i = 0; i < countof(names); i++) {
        autofree char *own = find(cgroup, mountinfo, names[i]);
        c->part[i] = own ? make_own(own) : NULL;
        if (!c->part[i] && !*c->why && i <= BOX_CG_PIDS)
            (void)snprintf(c->why, sizeof c->why, "%s: %s", names[i], own ? strerror(errno) : "no such hierarchy");
    }
    if (c->part[BOX_CG_MEMORY] && c->part[BOX_CG_PIDS])
        c->kind = BOX_CGROUP_V1;
}

static void find_tree(struct box_cgroups *c)
{
    autofree char *cgroup = box_cgfile_read("/proc/self/cgroup");
    autofree char *mountinfo = box_cgfile_read("/proc/self/mountinfo");
    autofree char *v2 = find(cgroup, mountinfo, "");
    if (v2 && box_cgroups_open_v2(c, v2))
        return;
    open_v1(c, cgroup, mountinfo);
    if (c->kind == BOX_CGROUP_NONE)
        return;
    c->part[BOX_CG_UNIFIED] = v2 ? make_own(v2) : NULL;
    if (c->part[BOX_CG_UNIFIED]) { /* it freezes as well: one hierarchy less */
        (void)(c->part[BOX_CG_FREEZER] ? rmdir(c->part[BOX_CG_FREEZER]) : 0);
        free(c->part[BOX_CG_FREEZER]);
        c->part[BOX_CG_FREEZER] = NULL;
    }
}

void box_cgroups_open(struct box_cgroups *c)
{
    *c = (struct box_cgroups){ .kind = BOX_CGROUP_NONE };
    find_tree(c);
    if (c->kind != BOX_CGROUP_NONE)
        box_primer_start(&c->primer, c->part[BOX_CG_MEMORY]);
}

void box_cgroups_close(struct box_cgroups *c)
{
    box_primer_stop(&c->primer);
    for (int i = 0; i < BOX_CG_PARTS; i++) {
        autofree char *dir = take(c->part[i]);
        if (dir)
            (void)box_cgfile_remove(dir, 3, false);
    }
}
