/* box_cgroup.c - see box_cgroup.h. Files are written with one write() each; what a kernel lacks is left out where the header
 * says that a group may do without it, and is an error everywhere else. */
#include "box_cgroup.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include "box_limit.h"
#include "log.h"
#include "str.h"

enum {
    FILE_MAX = 64 << 10,
    CPU_PERIOD_US = 100000,
    PRIMER_STEP_MS = 4,
    PRIMER_STEPS = 25,
    PRIMED_MS = 3,         /* since its last move was through */
    FREEZE_TRIES = 40,     /* of 100 us, and growing */
    INIT_BYTES = 32 << 20, /* what the session's group may hold beyond run: init, page tables of what starts */
};
static const char PREFIX[] = "sandbook-";

/* ---- files ---- */

static int put(const char *dir, const char *file, const char *text)
{
    autofree char *path = xasprintf("%s/%s", dir, file);
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, text, strlen(text));
    return n < 0 ? -1 : 0;
}

static int put_number(const char *dir, const char *file, uint64_t n)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    return put(dir, file, text);
}

/* Newly allocated; "" when it can't be read. */
static char *slurp(const char *path)
{
    struct err e;
    AUTO(str_clear) struct str text = STR_INIT(FILE_MAX);
    if (str_read_file(&text, path, &e) < 0)
        str_clear(&text);
    return str_take(&text);
}

static char *get(const char *dir, const char *file)
{
    autofree char *path = xasprintf("%s/%s", dir, file);
    return slurp(path);
}

static int64_t get_number(const char *dir, const char *file)
{
    autofree char *text = get(dir, file);
    return *text ? strtoll(text, NULL, 10) : -1;
}

/* ---- names of keepers ---- */

static bool is_stale(const char *name)
{
    int pid = 0;
    unsigned long long start = 0;
    if (sscanf(name, "sandbook-%d-%llu", &pid, &start) != 2) /* NOLINT: a name that overflows is simply nobody's */
        return false;
    return pid > 0 && box_start_ticks(pid) != start;
}

static void kill_members(const char *dir)
{
    autofree char *text = get(dir, "cgroup.procs");
    char *rest = NULL;
    for (char *pid = strtok_r(text, "\n", &rest); pid; pid = strtok_r(NULL, "\n", &rest)) {
        int n = (int)strtol(pid, NULL, 10);
        if (n > 1)
            (void)kill(n, SIGKILL);
    }
}

/* Ends with rmdir of dir itself. */
static int remove_tree(const char *dir, int depth, bool kill_first) /* NOLINT(misc-no-recursion): depth ends it */
{
    DIR *d = depth > 0 ? opendir(dir) : NULL;
    if (d) {
        for (struct dirent *x = readdir(d); x; x = readdir(d)) { /* NOLINT(concurrency-mt-unsafe): one thread */
            if (x->d_type != DT_DIR || x->d_name[0] == '.')
                continue;
            autofree char *below = xasprintf("%s/%s", dir, x->d_name);
            (void)remove_tree(below, depth - 1, kill_first);
        }
        (void)closedir(d);
    }
    if (kill_first) {
        kill_members(dir);
        (void)put(dir, "freezer.state", "THAWED"); /* the frozen of v1 die only then */
    }
    return rmdir(dir);
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
        if (remove_tree(old, 3, true) == 0)
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
    return put(leaf, "cgroup.procs", "0");
}

bool box_cgroups_open_v2(struct box_cgroups *c, const char *own)
{
    autofree char *controllers = get(own, "cgroup.controllers");
    if (!strstr(controllers, "memory") || !strstr(controllers, "pids"))
        return false;
    autofree char *dir = xstrdup(own);
    char *last = strrchr(dir, '/');
    if (last && strcmp(last, "/supervisor") == 0)
        *last = '\0';
    else if (leave_inner_node(dir) < 0)
        return false;
    if (put(dir, "cgroup.subtree_control", "+memory +pids") < 0)
        return false;
    (void)put(dir, "cgroup.subtree_control", "+cpu");
    autofree char *made = make_own(dir);
    if (!made || put(made, "cgroup.subtree_control", "+memory +pids") < 0)
        return false;
    bool cpu = put(made, "cgroup.subtree_control", "+cpu") == 0;
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

/* ---- the helper ---- */

struct box_primer {
    _Atomic int64_t moved_ms;
};

static _Noreturn void primer_main(struct box_primer *p, int orders, int procs)
{
    char some[64];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)prctl(PR_SET_NAME, "box-primer", 0, 0, 0);
    if (dup3(orders, 0, 0) < 0 || dup3(procs, 1, 0) < 0)
        _exit(1);
    (void)syscall(SYS_close_range, 3, ~0U, 0);
    struct pollfd order = { .fd = 0, .events = POLLIN };
    for (int left = 0;;) {
        if (poll(&order, 1, left > 0 ? PRIMER_STEP_MS : -1) > 0) {
            left = PRIMER_STEPS;
            if (read(0, some, sizeof some) <= 0)
                _exit(0);
        }
        left--;
        ssize_t n = write(1, "0", 1);
        (void)n; /* refused in v2, where inner nodes have no processes; but only after the wait */
        p->moved_ms = time_mono_ms();
    }
}

static void start_primer(struct box_cgroups *c)
{
    int orders[2];
    autofree char *path = xasprintf("%s/cgroup.procs", c->part[BOX_CG_MEMORY]);
    autoclose int procs = open(path, O_WRONLY | O_CLOEXEC);
    void *page = mmap(NULL, sizeof *c->primed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (procs < 0 || page == MAP_FAILED || pipe2(orders, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    (void)fcntl(orders[0], F_SETFL, 0);
    c->primed = page;
    c->primer = fork();
    if (c->primer == 0)
        primer_main(c->primed, orders[0], procs);
    (void)close(orders[0]);
    c->primer_fd = orders[1];
}

void box_cgroups_prime(const struct box_cgroups *c)
{
    ssize_t n = c->primer > 0 ? write(c->primer_fd, "", 1) : 0;
    (void)n; /* full: it has orders enough; gone: moves take longer */
}

bool box_cgroups_is_primed(const struct box_cgroups *c)
{
    return c->primer <= 0 || time_mono_ms() <= c->primed->moved_ms + PRIMED_MS;
}

static void stop_primer(struct box_cgroups *c)
{
    if (c->primer <= 0)
        return;
    (void)close(c->primer_fd);
    (void)kill(c->primer, SIGKILL);
    (void)waitpid(c->primer, NULL, 0);
    (void)munmap(c->primed, sizeof *c->primed);
    c->primer = 0;
}

static void find_tree(struct box_cgroups *c)
{
    autofree char *cgroup = slurp("/proc/self/cgroup");
    autofree char *mountinfo = slurp("/proc/self/mountinfo");
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
        start_primer(c);
}

void box_cgroups_close(struct box_cgroups *c)
{
    stop_primer(c);
    for (int i = 0; i < BOX_CG_PARTS; i++) {
        autofree char *dir = take(c->part[i]);
        if (dir)
            (void)remove_tree(dir, 3, false);
    }
}

/* ---- one session ---- */

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
        (void)put(dir, "cgroup.subtree_control", "+memory +pids");
        (void)put(dir, "cgroup.subtree_control", "+cpu");
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
        int r = put_number(dir, "memory.limit_in_bytes", bytes);
        (void)put_number(dir, "memory.memsw.limit_in_bytes", bytes); /* absent without swap accounting */
        return r;
    }
    (void)put(dir, "memory.swap.max", "0");
    (void)put(dir, "memory.zswap.max", "0");
    if (place == RUN)
        (void)put(dir, "memory.oom.group", "1"); /* all of a cell dies, not a part of it */
    return put_number(dir, "memory.max", bytes);
}

/* 0: no limit. */
static int limit_cpu(const struct box_group *g, uint32_t pct)
{
    autofree char *dir = folder(g, BOX_CG_CPU, WHOLE);
    const unsigned quota = pct * (CPU_PERIOD_US / 100);
    char text[48];
    if (!dir)
        return 0;
    if (g->all->kind == BOX_CGROUP_V2) {
        (void)snprintf(text, sizeof text, pct ? "%u %d" : "max", quota, CPU_PERIOD_US);
        return put(dir, "cpu.max", text);
    }
    (void)put_number(dir, "cpu.cfs_period_us", CPU_PERIOD_US);
    return pct ? put_number(dir, "cpu.cfs_quota_us", quota) : put(dir, "cpu.cfs_quota_us", "-1");
}

static int limit_pids(const struct box_group *g, uint32_t pids)
{
    autofree char *dir = folder(g, BOX_CG_PIDS, RUN);
    return put_number(dir, "pids.max", pids);
}

int box_group_open(struct box_group *g, const struct box_cgroups *c, uint32_t session, const struct box_group_limits *l,
                   struct err *e)
{
    *g = (struct box_group){ .all = c, .cpu_pct = l->cpu_pct };
    if (c->kind == BOX_CGROUP_NONE)
        return 0;
    (void)snprintf(g->name, sizeof g->name, "s%u", session);
    if (make_folders(g, e) < 0)
        return -1;
    if (limit_memory(g, WHOLE, l->memory_bytes + INIT_BYTES) < 0 || limit_memory(g, RUN, l->memory_bytes) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "cgroup memory limit");
    if (limit_pids(g, l->pids) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "cgroup pids limit");
    if (limit_cpu(g, l->cpu_pct) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "cgroup cpu limit");
    return 0;
}

static int move(const struct box_group *g, enum place place, pid_t pid)
{
    for (enum box_cgroup_part part = 0; part < BOX_CG_PARTS; part++) {
        autofree char *dir = is_first(g, part) ? folder(g, part, place) : NULL;
        if (dir && put_number(dir, "cgroup.procs", (uint64_t)pid) < 0)
            return -1;
    }
    return 0;
}

int box_group_enter(const struct box_group *g)
{
    return move(g, INIT, 0);
}

int box_group_run(const struct box_group *g, pid_t pid, struct err *e)
{
    (void)limit_cpu(g, g->cpu_pct);
    return move(g, RUN, pid) < 0 ? err_sys(e, ERR_SANDBOX, errno, "cgroup of the head") : 0;
}

void box_group_kill(const struct box_group *g)
{
    (void)limit_cpu(g, 0); /* dying takes time on the processor, too: 128 throttled processes took a second */
    autofree char *dir = folder(g, BOX_CG_UNIFIED, RUN);
    if (dir)
        (void)put(dir, "cgroup.kill", "1");
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
    autofree char *text = dir ? get(dir, "cgroup.events") : NULL;
    return text && box_cgroup_value(text, "populated", 1) == 0;
}

bool box_group_each(const struct box_group *g, void (*fn)(void *ud, const char *pid), void *ud)
{
    autofree char *dir = folder(g, BOX_CG_PIDS, RUN);
    autofree char *text = dir ? get(dir, "cgroup.procs") : NULL;
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
    autofree char *text = get(dir, v2 ? "cgroup.events" : "freezer.state");
    return v2 ? box_cgroup_value(text, "frozen", 0) == 1 : strncmp(text, "FROZEN", 6) == 0;
}

static int set_frozen(const char *dir, bool v2, bool frozen)
{
    return v2 ? put(dir, "cgroup.freeze", frozen ? "1" : "0") : put(dir, "freezer.state", frozen ? "FROZEN" : "THAWED");
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
    autofree char *text = get(dir, "cgroup.procs");
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
    if (own && ((mkdir(own, 0755) < 0 && errno != EEXIST) || put_number(own, "cgroup.procs", (uint64_t)pid) < 0))
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
    (void)put(own, "cgroup.kill", "1");
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
    autofree char *parts = get(all, "memory.stat");
    int64_t files = box_cgroup_value(parts, v1 ? "total_inactive_file" : "inactive_file", 0) +
                    box_cgroup_value(parts, v1 ? "total_active_file" : "active_file", 0);
    return get_number(all, v1 ? "memory.usage_in_bytes" : "memory.current") - files;
}

int64_t box_group_files(const struct box_group *g)
{
    autofree char *all = folder(g, BOX_CG_MEMORY, WHOLE);
    autofree char *parts = all ? get(all, "memory.stat") : NULL;
    return parts ? box_cgroup_value(parts, g->all->kind == BOX_CGROUP_V1 ? "total_shmem" : "shmem", -1) : -1;
}

struct box_usage box_group_usage(const struct box_group *g)
{
    struct box_usage u = { .peak_bytes = -1 };
    autofree char *run = folder(g, BOX_CG_MEMORY, RUN);
    if (!run)
        return u;
    bool v1 = g->all->kind == BOX_CGROUP_V1;
    autofree char *all = folder(g, BOX_CG_MEMORY, WHOLE);
    autofree char *in_run = get(run, v1 ? "memory.oom_control" : "memory.events");
    autofree char *in_all = get(all, v1 ? "memory.oom_control" : "memory.events.local");
    u.peak_bytes = get_number(run, v1 ? "memory.max_usage_in_bytes" : "memory.peak");
    u.oom_kills = box_cgroup_value(in_run, "oom_kill", 0) + box_cgroup_value(in_all, "oom_kill", 0);
    return u;
}

void box_group_reset_peak(const struct box_group *g)
{
    autofree char *run = folder(g, BOX_CG_MEMORY, RUN);
    if (run)
        (void)put(run, g->all->kind == BOX_CGROUP_V1 ? "memory.max_usage_in_bytes" : "memory.peak", "0");
}

bool box_group_close(struct box_group *g)
{
    bool gone = true;
    for (enum box_cgroup_part part = 0; part < BOX_CG_PARTS; part++) {
        autofree char *dir = is_first(g, part) ? folder(g, part, WHOLE) : NULL;
        if (dir && remove_tree(dir, 2, false) < 0 && errno != ENOENT)
            gone = false;
    }
    if (gone)
        g->name[0] = '\0';
    return gone;
}
