/* box.c - sandbook-box, the keeper: makes boxes, puts interpreters into them, and says what became of their code.
 *
 * THEORY OF OPERATION
 *
 *   sandbook                        daemon: secrets, chats; speaks box_proto.h with us on descriptor 3
 *   `- sandbook-box                  this program: one thread, one epoll loop, no secrets
 *      |- init                      pid 1 of the base namespaces: holds them, adopts heads whose zygote is gone
 *      |- zygote (python)           in the base: everything imported, forks heads, sees no user data; replaced now and then
 *      |  `- head                   one per session, in the session's box: runs every cell, locked down
 *      |- box-primer                waits for control groups in our stead (box_primer.c)
 *      `- init                      one per session: pid 1 of its box, reaps and sweeps
 *         |- copies                 forks of the head, parked after its last cells: nothing runs in them
 *         `- head                   once a copy was woken: a child of that copy, adopted by init
 *
 * Start: the seccomp policy is compiled once (box_seccomp.c). A child unshares every namespace, gets a range of ids that are
 * nobody's on the host, builds a read-only tree from the image (box_mount.c) and executes an init in it (box_ns.c). Zygotes
 * join that; while one serves, the next can warm up (box_zygotes.c).
 *
 * A session: its control groups are made (box_group.c); a child enters them and the base, unshares once more, mounts the
 * session's own folders and executes init. The zygote is asked to fork a head; it goes into the box, shuts every lock
 * (lock.c, in the order of lock.h), audits itself and says so. We look at it from outside, move it to its group,
 * make it the first to go when memory ends. Only then does the first byte of a person's go in (box_session.c). Some boxes can
 * be made so far before anybody asks for one (box_pool.c).
 *
 * A request: the head is sent what the daemon sent, unread but for its limits. What the head prints comes through pipes and is
 * relayed; its own account is relayed as a claim. Files that are new are opened through a descriptor of /mnt/data and handed
 * over (box_collect.c). The verdict is ours and comes from the kernel: wait status, memory counters, clocks (box_answer.c).
 *
 * After a cell, when its answer is out, the head is asked for a copy of itself. The copy reports itself on a channel of its
 * own; it is looked at from outside, moved out of the run group, frozen (box_copy.c). The next cell waits for that.
 *
 * The end of a head, whatever the reason: all that is left in the box but copies is killed, and the newest copy is woken: its
 * child is the head, with the variables as they were before the cell. Undo and branches are the same on purpose. With no copy
 * left a new head is forked into the same namespaces. Files stay in any case; what is left of the variables is said.
 *
 * Trust. The daemon, the zygote until it forks, and init are ours. A head and all it starts are the adversary's from the
 * first byte on: frames on its channel are checked by the kernel's word on their sender, never wait for us and never make us
 * wait; its pipes are bytes; its files are reached by openat2 only. Nothing it says decides what we believe of it. The same holds for a copy: it was a head, and hooks of the person's
 * may run in its forks. A cell may kill copies by their numbers; it hurts its own session only, and that is noticed and told.
 *
 * Nothing outlives us: inits and zygotes have a parent-death signal, a box dies with its init and with that of the base, and
 * groups that a killed keeper left are removed by the next one. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "box_keeper.h"
#include "log.h"

enum { EXIT_USAGE = 2, CHANNEL = 3 };

static int usage(void)
{
    (void)fputs(
        "usage: sandbook-box --image ROOT --support DIR --uid-base N --min-tier T0|T1|T2 [--once] [--log-level L]\n"
        "Started by sandbook, with its channel as descriptor 3.\n",
        stderr);
    return EXIT_USAGE;
}

static int take_uid_base(struct box_keeper *k, const char *text)
{
    char *end = NULL;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (errno != 0 || *end || n > UINT32_MAX - BOX_UID_RANGE)
        return -1;
    k->uid_base = (uint32_t)n;
    return 0;
}

static int take_tier(struct box_keeper *k, const char *text)
{
    if (text[0] != 'T' || text[1] < '0' || text[1] > '2' || text[2])
        return -1;
    k->min_tier = (enum box_tier)(text[1] - '0');
    return 0;
}

static int take_level(const char *text)
{
    int level = log_level_from(text);
    if (level >= 0)
        log_set_level((enum log_level)level);
    return level < 0 ? -1 : 0;
}

static int take_option(struct box_keeper *k, int option)
{
    switch (option) {
    case 'i': k->image = optarg; return 0;
    case 's': k->support = optarg; return 0;
    case 'u': return take_uid_base(k, optarg);
    case 't': return take_tier(k, optarg);
    case 'l': return take_level(optarg);
    case 'o': k->once = true; return 0;
    default: return -1;
    }
}

static int options(struct box_keeper *k, int argc, char **argv)
{
    static const struct option known[] = {
        { "image", required_argument, NULL, 'i' },
        { "support", required_argument, NULL, 's' },
        { "uid-base", required_argument, NULL, 'u' },
        { "min-tier", required_argument, NULL, 't' },
        { "log-level", required_argument, NULL, 'l' },
        { "once", no_argument, NULL, 'o' },
        { NULL, 0, NULL, 0 },
    };
    k->min_tier = BOX_T1;
    for (int c = 0; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) /* NOLINT(concurrency-mt-unsafe) */
        if (take_option(k, c) < 0)
            return -1;
    return k->image && k->support && optind == argc ? 0 : -1;
}

/* Only what we were given: 0, 1, 2 and the channel; every signal but the deadly ones without meaning. */
static int clean_start(void)
{
    struct stat st;
    if (fstat(CHANNEL, &st) < 0 || !S_ISSOCK(st.st_mode))
        return -1;
    (void)syscall(SYS_close_range, CHANNEL + 1, ~0U, 0);
    (void)fcntl(CHANNEL, F_SETFD, FD_CLOEXEC);
    (void)clearenv();
    (void)umask(022);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN); /* these are the daemon's to handle; we end when it closes the channel */
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    return 0;
}

int main(int argc, char **argv)
{
    static struct box_keeper keeper;
    struct err e = { 0 };
    if (options(&keeper, argc, argv) < 0 || clean_start() < 0)
        return usage();
    if (box_keeper_start(&keeper, &e) < 0) {
        log_error("box_start", KV_E(&e));
        return 1;
    }
    int r = box_loop_run(keeper.loop, &e);
    if (r < 0)
        log_error("box_loop", KV_E(&e));
    box_keeper_stop(&keeper);
    return r < 0 ? 1 : 0;
}
