/* box_group.c - see box_group.h. What a kernel lacks is left out where the header says that a group may do without it, and is an
 * error everywhere else. */
#include "box_group.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "box_cgfile.h"
#include "box_cgroup_find.h"
#include "str.h"

enum {
    CPU_PERIOD_US = 100000,
    FREEZE_TRIES = 40,     /* of 100 us, and growing */
    INIT_BYTES = 32 << 20, /* what the session's group may hold beyond run: init, page tables of what starts */
};

enum place { WHOLE, INIT, RUN, PARKED, PLACES };

/* v1 needs no leaf for init, and copies count for nothing but memory. Fewer groups are less memory. What runs has a share of the
 * processor of its own, so that a copy wakes although hundreds are dying. */
static const char *below_of(const struct box_group *g, enum box_cgroup_part part, enum place place)
{
    bool v2 = g->all->kind == BOX_CGROUP_V2;
    switch (place) {
    case INIT: return v2 ? "/init" : "";
    case RUN: return "/run";
    case PARKED: return v2 || (part != BOX_CG_CPU && part != BOX_CG_PIDS) ? "/parked" : "";
    case WHOLE:
    case PLACES: break;
    }
    return "";
}

/* Folder of the group in one hierarchy; NULL when there is none. */
static char *folder(const struct box_group *g, enum box_cgroup_part part, enum place place)
{
    if (!*g->name || !g->all->part[part])
        return NULL;
    return xasprintf("%s/%s%s", g->all->part[part], g->name, below_of(g, part, place));
}

/* In v2 all parts are one hierarchy: visit it once. */
static bool is_first(const struct box_group *g, enum box_cgroup_part part)
{
    return g->all->kind != BOX_CGROUP_V2 || part == BOX_CG_MEMORY;
}

static int make_folder(const struct box_group *g, enum box_cgroup_part part, enum place place, struct err *e)
{
    autofree char *dir = folder(g, part, place);
    if (!dir)
        return 0;
    if (mkdir(dir, 0755) < 0 && errno != EEXIST)
        return err_sys(e, ERR_SANDBOX, errno, "cgroup %s", dir);
    if (place == WHOLE && g->all->kind == BOX_CGROUP_V2) {
        (void)box_cgfile_put(dir, "cgroup.subtree_control", "+memory +pids");
        (void)box_cgfile_put(dir, "cgroup.subtree_control", "+cpu");
    }
    return 0;
}

static int make_folders(const struct box_group *g, struct err *e)
{
    for (enum box_cgroup_part part = 0; part < BOX_CG_PARTS; part++)
        for (enum place place = WHOLE; place < PLACES && is_first(g, part); place++)
            if (make_folder(g, part, place, e) < 0)
                return -1;
    return 0;
}

static int limit_memory(const struct box_group *g, enum place place, uint64_t bytes)
{
    autofree char *dir = folder(g, BOX_CG_MEMORY, place);
    if (g->all->kind == BOX_CGROUP_V1) {
        int r = box_cgfile_put_number(dir, "memory.limit_in_bytes", bytes);
        (void)box_cgfile_put_number(dir, "memory.memsw.limit_in_bytes", bytes); /* absent without swap accounting */
        return r;
    }
    (void)box_cgfile_put(dir, "memory.swap.max", "0");
    (void)box_cgfile_put(dir, "memory.zswap.max", "0");
    if (place == RUN)
        (void)box_cgfile_put(dir, "memory.oom.group", "1"); /* all of a cell dies, not a part of it */
    return box_cgfile_put_number(dir, "memory.max", bytes);
}

/* 0: no limit. The kernel walks all groups of the machine for each of these writes, and a new group has the period. */
static int limit_cpu(const struct box_group *g, uint32_t pct)
{
    autofree char *dir = folder(g, BOX_CG_CPU, WHOLE);
    const unsigned quota = pct * (CPU_PERIOD_US / 100);
    char text[48];
    if (!dir)
        return 0;
    if (g->all->kind == BOX_CGROUP_V2) {
        (void)snprintf(text, sizeof text, pct ? "%u %d" : "max", quota, CPU_PERIOD_US);
        return box_cgfile_put(dir, "cpu.max", text);
    }
    return pct ? box_cgfile_put_number(dir, "cpu.cfs_quota_us", quota) : box_cgfile_put(dir, "cpu.cfs_quota_us", "-1");
}

static int limit_pids(const struct box_group *g, uint32_t pids)
{
    autofree char *dir = folder(g, BOX_CG_PIDS, RUN);
    return box_cgfile_put_number(dir, "pids.max", pids);
}

int box_group_open(struct box_group *g, const struct box_cgroups *c, uint32_t session, const struct box_group_limits *l,
                   struct err *e)
{
    *g = (struct box_group){ .all = c, .cpu_pct = l->cpu_pct, .counter = { -1, -1, -1 } };
    if (c->kind == BOX_CGROUP_NONE)
        return 0;
    (void)snprintf(g->name, sizeof g->name, "s%u", session);
    if (make_folders(g, e) < 0)
        return -1;
    if (limit_memory(g, WHOLE, l->memory_bytes + INIT_BYTES) < 0 || limit_memory(g, RUN, l->memory_bytes) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "cgroup memory limit");
    if (limit_pids(g, l->pids) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "cgroup pids limit");
    if (l->cpu_pct > 0 && limit_cpu(g, l->cpu_pct) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "cgroup cpu limit");
    return 0;
}

static int move(const struct box_group *g, enum place place, pid_t pid)
{
    for (enum box_cgroup_part part = 0; part < BOX_CG_PARTS; part++) {
        autofree char *dir = is_first(g, part) ? folder(g, part, place) : NULL;
        if (dir && box_cgfile_put_number(dir, "cgroup.procs", (uint64_t)pid) < 0)
            return -1;
    }
    return 0;
}

int box_group_enter(const struct box_group *g)
{
    return move(g, INIT, 0);
}

int box_group_run(struct box_group *g, pid_t pid, struct err *e)
{
    if (g->hurries)
        (void)limit_cpu(g, g->cpu_pct);
    g->hurries = false;
    return move(g, RUN, pid) < 0 ? err_sys(e, ERR_SANDBOX, errno, "cgroup of the head") : 0;
}

void box_group_kill(struct box_group *g)
{
    if (!g->hurries && g->cpu_pct > 0)
        (void)limit_cpu(g, 0); /* dying takes time on the processor, too: 128 throttled processes took a second */
    g->hurries = true;
    autofree char *dir = folder(g, BOX_CG_UNIFIED, RUN);
    if (dir)
        (void)box_cgfile_put(dir, "cgroup.kill", "1");
}

bool box_group_can_kill(const struct box_group *g)
{
    autofree char *dir = folder(g, BOX_CG_UNIFIED, RUN);
    autofree char *path = dir ? xasprintf("%s/cgroup.kill", dir) : NULL;
    return path && access(path, W_OK) == 0;
}

bool box_group_is_empty(const struct box_group *g)
{
    autofree char *dir = folder(g, BOX_CG_UNIFIED, RUN);
    autofree char *text = dir ? box_cgfile_get(dir, "cgroup.events") : NULL;
    return text && box_cgroup_value(text, "populated", 1) == 0;
}

bool box_group_each(const struct box_group *g, void (*fn)(void *ud, const char *pid), void *ud)
{
    autofree char *dir = folder(g, BOX_CG_PIDS, RUN);
    autofree char *text = dir ? box_cgfile_get(dir, "cgroup.procs") : NULL;
    char *rest = NULL;
    if (!text || !*text)
        return false;
    for (char *pid = strtok_r(text, "\n", &rest); pid; pid = strtok_r(NULL, "\n", &rest))
        fn(ud, pid);
    return true;
}

/* ---- freezing ---- */

/* The hierarchy that can freeze; BOX_CG_PARTS: there is none. */
static enum box_cgroup_part freezing(const struct box_group *g)
{
    if (g->all->part[BOX_CG_UNIFIED])
        return BOX_CG_UNIFIED;
    return g->all->part[BOX_CG_FREEZER] ? BOX_CG_FREEZER : BOX_CG_PARTS;
}

/* Step number i of a short wait. */
static void pause_briefly(int i)
{
    const struct timespec pause = { .tv_nsec = 10000L * (i + 1) };
    (void)nanosleep(&pause, NULL);
}

static bool stands_still(const char *dir, bool v2)
{
    autofree char *text = box_cgfile_get(dir, v2 ? "cgroup.events" : "freezer.state");
    return v2 ? box_cgroup_value(text, "frozen", 0) == 1 : strncmp(text, "FROZEN", 6) == 0;
}

static int set_frozen(const char *dir, bool v2, bool frozen)
{
    return v2 ? box_cgfile_put(dir, "cgroup.freeze", frozen ? "1" : "0")
              : box_cgfile_put(dir, "freezer.state", frozen ? "FROZEN" : "THAWED");
}

bool box_group_freeze(const struct box_group *g, bool frozen)
{
    enum box_cgroup_part part = freezing(g);
    bool v2 = part == BOX_CG_UNIFIED;
    autofree char *dir = part < BOX_CG_PARTS ? folder(g, part, RUN) : NULL;
    if (!dir)
        return false;
    int r = set_frozen(dir, v2, frozen);
    if (r < 0 || !frozen)
        return r == 0;
    for (int i = 0; i < FREEZE_TRIES; i++) {
        if (stands_still(dir, v2))
            return true;
        pause_briefly(i);
    }
    return false;
}

/* ---- copies ---- */

/* The group of one copy in the hierarchy that can freeze; NULL: there is none. */
static char *copy_folder(const struct box_group *g, uint32_t number)
{
    enum box_cgroup_part part = freezing(g);
    autofree char *parked = part < BOX_CG_PARTS ? folder(g, part, PARKED) : NULL;
    return parked ? xasprintf("%s/c%u", parked, (unsigned)number) : NULL;
}

static bool has_member(const char *dir, pid_t pid)
{
    autofree char *text = box_cgfile_get(dir, "cgroup.procs");
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (strtol(line, NULL, 10) == pid)
            return true;
    return false;
}

int box_group_park(const struct box_group *g, uint32_t number, pid_t pid, struct err *e)
{
    autofree char *own = copy_folder(g, number);
    if (!*g->name)
        return 0;
    if (g->all->kind != BOX_CGROUP_V2 && move(g, PARKED, pid) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "cgroup of a copy");
    if (own &&
        ((mkdir(own, 0755) < 0 && errno != EEXIST) || box_cgfile_put_number(own, "cgroup.procs", (uint64_t)pid) < 0))
        return err_sys(e, ERR_SANDBOX, errno, "cgroup of a copy");
    autofree char *memory = g->all->kind == BOX_CGROUP_V1 ? folder(g, BOX_CG_MEMORY, PARKED) : take(own);
    if (memory && !has_member(memory, pid))
        return err_set(e, ERR_SANDBOX, "the copy did not stay in its cgroup");
    box_group_hold(g, number, true);
    return 0;
}

void box_group_hold(const struct box_group *g, uint32_t number, bool frozen)
{
    autofree char *own = copy_folder(g, number);
    if (own)
        (void)set_frozen(own, freezing(g) == BOX_CG_UNIFIED, frozen);
}

void box_group_unpark(const struct box_group *g, uint32_t number)
{
    autofree char *own = copy_folder(g, number);
    if (!own)
        return;
    (void)box_cgfile_put(own, "cgroup.kill", "1");
    box_group_hold(g, number, false); /* the frozen of v1 die only then */
    (void)rmdir(own);
}

/* ---- what it used ---- */

int64_t box_group_memory(const struct box_group *g)
{
    autofree char *all = folder(g, BOX_CG_MEMORY, WHOLE);
    if (!all)
        return -1;
    bool v1 = g->all->kind == BOX_CGROUP_V1;
    autofree char *parts = box_cgfile_get(all, "memory.stat");
    int64_t files = box_cgroup_value(parts, v1 ? "total_inactive_file" : "inactive_file", 0) +
                    box_cgroup_value(parts, v1 ? "total_active_file" : "active_file", 0);
    return box_cgfile_number(all, v1 ? "memory.usage_in_bytes" : "memory.current") - files;
}

int64_t box_group_files(const struct box_group *g)
{
    autofree char *all = folder(g, BOX_CG_MEMORY, WHOLE);
    autofree char *parts = all ? box_cgfile_get(all, "memory.stat") : NULL;
    return parts ? box_cgroup_value(parts, g->all->kind == BOX_CGROUP_V1 ? "total_shmem" : "shmem", -1) : -1;
}

enum { PEAK, OOM_OF_RUN, OOM_OF_ALL, COUNTERS };

static int open_counter(const struct box_group *g, enum place place, const char *v1, const char *v2, int flags)
{
    autofree char *dir = folder(g, BOX_CG_MEMORY, place);
    autofree char *path = dir ? xasprintf("%s/%s", dir, g->all->kind == BOX_CGROUP_V1 ? v1 : v2) : NULL;
    return path ? open(path, flags | O_CLOEXEC) : -1;
}

static void open_counters(struct box_group *g)
{
    static const char v1_peak[] = "memory.max_usage_in_bytes", v1_oom[] = "memory.oom_control";
    g->counter[PEAK] = open_counter(g, RUN, v1_peak, "memory.peak", O_RDWR);
    if (g->counter[PEAK] < 0) /* v2 before 6.12: of the group's whole life */
        g->counter[PEAK] = open_counter(g, RUN, v1_peak, "memory.peak", O_RDONLY);
    g->counter[OOM_OF_RUN] = open_counter(g, RUN, v1_oom, "memory.events", O_RDONLY);
    g->counter[OOM_OF_ALL] = open_counter(g, WHOLE, v1_oom, "memory.events.local", O_RDONLY);
}

static void close_counters(struct box_group *g)
{
    for (int i = 0; i < COUNTERS; i++) {
        if (g->counter[i] >= 0)
            (void)close(g->counter[i]);
        g->counter[i] = -1;
    }
}

/* From its beginning; false: not known. */
static bool read_counter(int fd, char *text, size_t n)
{
    ssize_t got = fd >= 0 ? pread(fd, text, n - 1, 0) : -1;
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

struct box_usage box_group_usage(const struct box_group *g)
{
    struct box_usage u = { .peak_bytes = -1 };
    char text[512];
    if (read_counter(g->counter[PEAK], text, sizeof text))
        u.peak_bytes = strtoll(text, NULL, 10);
    if (read_counter(g->counter[OOM_OF_RUN], text, sizeof text))
        u.oom_kills = box_cgroup_value(text, "oom_kill", 0);
    if (read_counter(g->counter[OOM_OF_ALL], text, sizeof text))
        u.oom_kills += box_cgroup_value(text, "oom_kill", 0);
    return u;
}

void box_group_begin_usage(struct box_group *g)
{
    if (*g->name && g->counter[PEAK] < 0)
        open_counters(g);
    ssize_t n = g->counter[PEAK] >= 0 ? pwrite(g->counter[PEAK], "0", 1, 0) : 0;
    (void)n; /* v2 before 6.12 does not take it */
}

bool box_group_close(struct box_group *g)
{
    bool gone = true;
    close_counters(g);
    for (enum box_cgroup_part part = 0; part < BOX_CG_PARTS; part++) {
        autofree char *dir = is_first(g, part) ? folder(g, part, WHOLE) : NULL;
        if (dir && box_cgfile_remove(dir, 2, false) < 0 && errno != ENOENT)
            gone = false;
    }
    if (gone)
        g->name[0] = '\0';
    return gone;
}
