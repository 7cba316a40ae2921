/* box_primer.c - see box_primer.h. */
#include "box_primer.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "str.h"

enum {
    STEP_MS = 4,
    STEPS = 25,
    PRIMED_MS = 3, /* since its last move was through */
};

struct box_primed {
    _Atomic int64_t moved_ms;
};

static _Noreturn void serve(struct box_primed *shared, int orders, int procs)
{
    char some[64];
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)prctl(PR_SET_NAME, "box-primer", 0, 0, 0);
    if (dup3(orders, 0, 0) < 0 || dup3(procs, 1, 0) < 0)
        _exit(1);
    (void)syscall(SYS_close_range, 3, ~0U, 0);
    struct pollfd order = { .fd = 0, .events = POLLIN };
    for (int left = 0;;) {
        if (poll(&order, 1, left > 0 ? STEP_MS : -1) > 0) {
            left = STEPS;
            if (read(0, some, sizeof some) <= 0)
                _exit(0);
        }
        left--;
        ssize_t n = write(1, "0", 1);
        (void)n; /* refused in v2, where inner nodes have no processes; but only after the wait */
        shared->moved_ms = time_mono_ms();
    }
}

void box_primer_start(struct box_primer *p, const char *dir)
{
    int orders[2];
    autofree char *path = xasprintf("%s/cgroup.procs", dir);
    autoclose int procs = open(path, O_WRONLY | O_CLOEXEC);
    void *page = mmap(NULL, sizeof *p->primed, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (procs < 0 || page == MAP_FAILED || pipe2(orders, O_CLOEXEC | O_NONBLOCK) < 0)
        return;
    (void)fcntl(orders[0], F_SETFL, 0);
    p->primed = page;
    p->pid = fork();
    if (p->pid == 0)
        serve(p->primed, orders[0], procs);
    (void)close(orders[0]);
    p->orders_fd = orders[1];
}

void box_primer_order(const struct box_primer *p)
{
    ssize_t n = p->pid > 0 ? write(p->orders_fd, "", 1) : 0;
    (void)n; /* full: it has orders enough; gone: moves take longer */
}

bool box_primer_is_done(const struct box_primer *p)
{
    return p->pid <= 0 || time_mono_ms() <= p->primed->moved_ms + PRIMED_MS;
}

void box_primer_stop(struct box_primer *p)
{
    if (p->pid <= 0)
        return;
    (void)close(p->orders_fd);
    (void)kill(p->pid, SIGKILL);
    (void)waitpid(p->pid, NULL, 0);
    (void)munmap(p->primed, sizeof *p->primed);
    p->pid = 0;
}
