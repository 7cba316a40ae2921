/* box_limit.c - see box_limit.h. */
#include "box_limit.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include "str.h"

enum { FILE_MAX = 16 << 10, HUNT_PASSES = 8, HUNT_MAX = 4096 };

static char *slurp(const char *path)
{
    struct err e;
    AUTO(str_clear) struct str text = STR_INIT(FILE_MAX);
    if (str_read_file(&text, path, &e) < 0)
        str_clear(&text);
    return str_take(&text);
}

/* The value after "\nname:\t" in a status file; "" when absent. Borrowed from text. */
static const char *field(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? at + strlen(name) : "";
}

int box_limit_audit(pid_t pid, struct err *e)
{
    static const struct {
        const char *name, *want;
    } facts[] = {
        { "\nCapInh:\t", "0000000000000000\n" },
        { "\nCapPrm:\t", "0000000000000000\n" },
        { "\nCapEff:\t", "0000000000000000\n" },
        { "\nCapBnd:\t", "0000000000000000\n" },
        { "\nCapAmb:\t", "0000000000000000\n" },
        { "\nNoNewPrivs:\t", "1\n" },
        { "\nSeccomp:\t", "2\n" },
    };
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    autofree char *text = slurp(path);
    for (size_t i = 0; i < countof(facts); i++) {
        const char *is = field(text, facts[i].name);
        if (strncmp(is, facts[i].want, strlen(facts[i].want)) != 0)
            return err_set(e, ERR_SANDBOX, "audit of the interpreter: %.*s is %.*s",
                           (int)strcspn(facts[i].name + 1, ":"), facts[i].name + 1, (int)strcspn(is, "\n"), is);
    }
    return 0;
}

int box_limit_oom(pid_t pid, bool first, struct err *e)
{
    const char *text = first ? "1000" : "0";
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)pid);
    autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write_all(fd, text, strlen(text)) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "oom_score_adj");
    return 0;
}

void box_limit_signal(int pidfd, int signo)
{
    if (pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0);
}

/* ---- the machine ---- */

char *box_limit_meminfo(void)
{
    return slurp("/proc/meminfo");
}

int64_t box_limit_meminfo_bytes(const char *meminfo, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = meminfo; *line;) {
        if (strncmp(line, name, n) == 0 && line[n] == ':')
            return strtoll(line + n + 1, NULL, 10) * 1024;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return -1;
}

/* ---- all of a box: who lives in the pid namespace of its init ---- */

static bool pid_namespace(const char *pid, char *out, size_t n)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%.20s/ns/pid", pid);
    ssize_t len = readlink(path, out, n - 1);
    out[len > 0 ? len : 0] = '\0';
    return len > 0;
}

bool box_limit_is_member(pid_t init, pid_t pid)
{
    char number[2][16], name[2][64];
    (void)snprintf(number[0], sizeof number[0], "%d", (int)init);
    (void)snprintf(number[1], sizeof number[1], "%d", (int)pid);
    return pid_namespace(number[0], name[0], sizeof name[0]) && pid_namespace(number[1], name[1], sizeof name[1]) &&
           strcmp(name[0], name[1]) == 0;
}

static char *status_of(pid_t pid)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    return slurp(path);
}

/* One of the numbers of NSpid, one a namespace: counted from the end, the innermost is 0. */
static pid_t pid_in(pid_t pid, int from_end)
{
    autofree char *text = status_of(pid);
    const char *line = field(text, "\nNSpid:");
    size_t n = strcspn(line, "\n");
    for (int i = 0;; i++) {
        while (n > 0 && line[n - 1] >= '0' && line[n - 1] <= '9')
            n--;
        if (i == from_end || n == 0)
            return (pid_t)strtol(line + n, NULL, 10);
        n--; /* the tab between */
    }
}

pid_t box_limit_inner_pid(pid_t pid)
{
    return pid_in(pid, 0);
}

pid_t box_limit_outer_pid(pid_t pid)
{
    return pid_in(pid, 1);
}

bool box_limit_has_ended(int pidfd)
{
    struct pollfd p = { .fd = pidfd, .events = POLLIN };
    return poll(&p, 1, 0) > 0;
}

int box_limit_threads(pid_t pid)
{
    autofree char *text = status_of(pid);
    return (int)strtol(field(text, "\nThreads:"), NULL, 10);
}

typedef void member_fn(void *ud, const char *pid);

static void for_members(pid_t init, member_fn *fn, void *ud)
{
    char number[16], ours[64], theirs[64];
    (void)snprintf(number, sizeof number, "%d", (int)init);
    DIR *d = init > 0 && pid_namespace(number, ours, sizeof ours) ? opendir("/proc") : NULL;
    if (!d)
        return;
    for (struct dirent *x = readdir(d); x; x = readdir(d)) /* NOLINT(concurrency-mt-unsafe): one thread */
        if (x->d_name[0] >= '1' && x->d_name[0] <= '9' && pid_namespace(x->d_name, theirs, sizeof theirs) &&
            strcmp(ours, theirs) == 0)
            fn(ud, x->d_name);
    (void)closedir(d);
}

/* Of /proc/<pid>/stat, counted from 1; 0: there is none. */
static unsigned long long stat_field(pid_t pid, int number)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    autofree char *text = slurp(path);
    const char *at = strrchr(text, ')'); /* the name before it may hold anything */
    for (int i = 2; at && i < number; i++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at ? strtoull(at, NULL, 10) : 0;
}

enum { STAT_PARENT = 4, STAT_START = 22 };

unsigned long long box_start_ticks(pid_t pid)
{
    return stat_field(pid, STAT_START);
}

static unsigned long long ticks_of(int64_t us)
{
    return (unsigned long long)(us / (1000000 / sysconf(_SC_CLK_TCK)));
}

struct hunt {
    const struct box_spared *spared;
    unsigned long long since;
    bool orphans; /* only those whose parent is init */
    size_t found;
    pid_t pids[HUNT_MAX];
};

static bool is_spared(const struct box_spared *s, pid_t pid)
{
    for (size_t i = 0; i < s->copy_n; i++)
        if (s->copies[i] == pid)
            return true;
    return pid == s->init || pid == s->head;
}

static void kill_found(const struct hunt *h)
{
    for (size_t i = 0; i < h->found; i++)
        (void)kill(h->pids[i], SIGKILL);
}

static void note_if_newer(void *ud, const char *text)
{
    struct hunt *h = ud;
    pid_t pid = (pid_t)strtol(text, NULL, 10);
    if (is_spared(h->spared, pid) || box_start_ticks(pid) < h->since)
        return;
    if (h->orphans && stat_field(pid, STAT_PARENT) != (unsigned long long)h->spared->init)
        return;
    if (h->found < HUNT_MAX)
        h->pids[h->found++] = pid;
    else
        (void)kill(pid, SIGKILL);
}

/* The group's own list is short; without one all processes of the machine are looked at. They are killed at once when all are known:
 * dying takes the processor that looking needs. */
void box_limit_kill_newer(const struct box_spared *spared, const struct box_group *group, int64_t since_us, bool still)
{
    struct hunt h = { .spared = spared, .since = ticks_of(since_us), .found = 1 };
    for (int pass = 0; h.found > 0 && pass < (still ? 1 : HUNT_PASSES); pass++) {
        h.found = 0;
        if (!box_group_each(group, note_if_newer, &h))
            for_members(spared->init, note_if_newer, &h);
        kill_found(&h);
    }
}

void box_limit_kill_orphans(const struct box_spared *spared, int64_t since_us)
{
    struct hunt h = { .spared = spared, .since = ticks_of(since_us), .orphans = true };
    for_members(spared->init, note_if_newer, &h);
    kill_found(&h);
}
