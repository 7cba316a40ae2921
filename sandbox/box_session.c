/* box_session.c - see box_session.h: boxes and heads come and go here; requests are box_request.c's. */
#include "box_session.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "box_check.h"
#include "box_limit.h"
#include "box_zygote.h"
#include "log.h"

enum {
    BUILD_MS = 10000,
    FORK_MS = 20000,
    SWEEP_MS = 10000,
    CLOSE_RETRY_MS = 10,
    CLOSE_TRIES = 200,
    CHANNEL_END_MS = 500, /* from the end of a head's channel to its own end */
    FRAMES_A_ROUND = 64,  /* of one head, before others get their turn */
    FILE_BYTES = 256 << 20,
};

static const int64_t MIB = 1 << 20;
static const char *const state_names[BOX_STATES] = { "build", "fork", "idle", "run", "put", "sweep", "close" };

static const uint8_t may_follow[BOX_STATES] = {
    /* all else is a bug here */
    [BOX_ST_BUILD] = 1 << BOX_ST_FORK | 1 << BOX_ST_CLOSE,
    [BOX_ST_FORK] = 1 << BOX_ST_IDLE | 1 << BOX_ST_CLOSE,
    [BOX_ST_IDLE] = 1 << BOX_ST_RUN | 1 << BOX_ST_PUT | 1 << BOX_ST_SWEEP | 1 << BOX_ST_CLOSE,
    [BOX_ST_RUN] = 1 << BOX_ST_IDLE | 1 << BOX_ST_SWEEP | 1 << BOX_ST_CLOSE,
    [BOX_ST_PUT] = 1 << BOX_ST_IDLE | 1 << BOX_ST_SWEEP | 1 << BOX_ST_CLOSE,
    [BOX_ST_SWEEP] = 1 << BOX_ST_FORK | 1 << BOX_ST_CLOSE,
    [BOX_ST_CLOSE] = 0,
};

void box_session_enter(struct box_session *s, enum box_state state, int64_t due_ms)
{
    if (!(may_follow[s->state] >> state & 1)) {
        log_error("box_state_bug", KV_I("session", s->id), KV_S("from", state_names[s->state]),
                  KV_S("to", state_names[state]));
        abort();
    }
    log_debug("box_state", KV_I("session", s->id), KV_S("from", state_names[s->state]), KV_S("to", state_names[state]));
    s->state = state;
    s->due_ms = due_ms;
}

struct box_session *box_session_find(const struct box_keeper *k, uint32_t id)
{
    for (struct box_session *s = k->sessions; s; s = s->next)
        if (s->id == id)
            return s;
    return NULL;
}

/* ---- the head ---- */

static void head_close(struct box_session *s)
{
    struct box_head *h = &s->head;
    box_loop_drop(&h->src);
    box_link_close(&h->link);
    for (int i = 0; i < 2; i++) {
        box_loop_drop(&h->pipe_src[i]);
        if (h->pipe[i] >= 0)
            (void)close(h->pipe[i]);
    }
    if (h->pidfd >= 0)
        (void)close(h->pidfd);
    box_part_clear(&h->claim);
    *h = (struct box_head){
        .pidfd = -1,
        .generation = h->generation,
        .ended = true,
        .link = BOX_LINK_INIT,
        .pipe = { -1, -1 },
        .claim.body = STR_INIT(BOX_CLAIM_MAX),
    };
}

/* The box can't go on: whoever waits is told, and it is taken down. */
static void give_up(struct box_session *s, const char *why)
{
    log_error("box_failed", KV_I("session", s->id), KV_S("state", state_names[s->state]), KV_S("why", why));
    bool opening = s->opening;
    s->opening = false;
    if (opening)
        box_answer(s, &(struct box_answer){ .verdict = "failed", .state = "lost", .why = why, .peak_bytes = -1 });
    if (s->request.id != 0)
        box_request_fail(s, "failed", why);
    if (s->state != BOX_ST_CLOSE)
        box_session_close(s);
}

/* It has locked itself down and said so; now what only the outside can do, then the first byte may come. */
static void head_ready(struct box_session *s, pid_t pid)
{
    struct err e;
    s->head.pid = pid;
    s->head.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (s->head.pidfd < 0 || box_limit_audit(pid, &e) < 0 || box_group_run(&s->group, pid, &e) < 0 ||
        box_limit_oom_first(pid, &e) < 0) {
        give_up(s, s->head.pidfd < 0 ? "the interpreter ended at once" : e.msg);
        return;
    }
    box_session_enter(s, BOX_ST_IDLE, INT64_MAX);
    if (s->opening) {
        const struct box_answer a = {
            .verdict = "ok", .state = "lost", .peak_bytes = -1, .took_us = box_now_us() - s->opened_us
        };
        s->opening = false;
        box_answer(s, &a);
    }
    box_request_begin(s);
}

static void broke_a_rule(struct box_session *s, const char *what)
{
    log_warn("box_head_protocol", KV_I("session", s->id), KV_S("what", what));
    if (s->state == BOX_ST_FORK) { /* no person's byte has run yet: ours is broken */
        give_up(s, what);
        return;
    }
    s->request.cause = BOX_CAUSE_PROTOCOL;
    (void)snprintf(s->request.why, sizeof s->request.why, "protocol: %s", what);
    box_session_sweep(s);
}

/* What a head says is a claim; what is not a well-formed claim at the right time ends it. */
static void head_frame(struct box_session *s, const struct box_msg *msg)
{
    if (s->state == BOX_ST_FORK && msg->head.type == BOX_HELLO) {
        head_ready(s, msg->pid);
    } else if (s->state == BOX_ST_FORK && msg->head.type == BOX_FAILED) {
        autofree char *why = xstrndup((const char *)msg->payload, msg->head.len);
        give_up(s, why);
    } else if (s->state != BOX_ST_RUN || msg->head.type != BOX_CLAIM) {
        broke_a_rule(s, "a frame that nobody asked for");
    } else {
        int done = box_part_add(&s->head.claim, &msg->head, msg->payload);
        if (done < 0)
            broke_a_rule(s, "its answer is too long or in pieces of different kinds");
        else if (done > 0)
            box_request_claimed(s);
    }
}

/* Processes that a cell forked hold the channel too. Their frames are not the head's and are dropped. */
static bool is_stranger(const struct box_session *s, const struct box_msg *msg)
{
    return s->head.pid != 0 && msg->pid != s->head.pid;
}

static void on_head(void *ud, uint32_t events)
{
    struct box_session *s = ud;
    static struct box_msg msg;
    if ((events & EPOLLOUT) && box_link_flush(&s->head.link) != 1)
        box_loop_want(s->head.src, EPOLLIN);
    const uint32_t generation = s->head.generation;
    for (int i = 0; i < FRAMES_A_ROUND && s->head.src && s->head.generation == generation; i++) {
        if (s->state == BOX_ST_SWEEP || s->state == BOX_ST_CLOSE || s->keeper->stalled)
            break;
        enum box_recv got = box_recv(s->head.link.fd, &msg, false);
        if (got == BOX_RECV_NOTHING)
            break;
        if (got == BOX_RECV_END) {
            box_loop_want(s->head.src, 0);
            s->head.hung_up = true;
            s->due_ms = time_mono_ms() + CHANNEL_END_MS; /* before that the zygote says how it ended */
            break;
        }
        if (is_stranger(s, &msg))
            continue;
        if (got == BOX_RECV_BAD)
            broke_a_rule(s, "a malformed frame");
        else
            head_frame(s, &msg);
    }
    box_keeper_flush(s->keeper);
}

static void on_stdout(void *ud, uint32_t events)
{
    (void)events;
    box_request_output(ud, 0);
}

static void on_stderr(void *ud, uint32_t events)
{
    (void)events;
    box_request_output(ud, 1);
}

/* Our ends stay, the others' are for the head. */
static int head_channels(struct box_session *s, int theirs[3], struct err *e)
{
    struct box_head *h = &s->head;
    const int on = 1;
    int pair[2], pipes[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "socketpair");
    (void)setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    h->link.fd = pair[0];
    theirs[0] = pair[1];
    for (int i = 0; i < 2; i++) {
        if (pipe2(pipes, O_CLOEXEC) < 0)
            return err_sys(e, ERR_SANDBOX, errno, "pipe");
        (void)fcntl(pipes[0], F_SETFL, O_NONBLOCK);
        h->pipe[i] = pipes[0];
        theirs[1 + i] = pipes[1];
    }
    h->src = box_loop_add(s->keeper->loop, h->link.fd, EPOLLIN, on_head, s);
    h->pipe_src[0] = box_loop_add(s->keeper->loop, h->pipe[0], 0, on_stdout, s);
    h->pipe_src[1] = box_loop_add(s->keeper->loop, h->pipe[1], 0, on_stderr, s);
    return 0;
}

static void head_fork(struct box_session *s)
{
    struct err e;
    int theirs[3] = { -1, -1, -1 };
    head_close(s);
    int r = head_channels(s, theirs, &e);
    if (r == 0) {
        const struct box_fork how = {
            .uid = s->keeper->base.root ? s->slot + 1 : 0,
            .pids = s->pids,
            .file_bytes = FILE_BYTES,
            .data_bytes = s->keeper->cgroups.kind == BOX_CGROUP_NONE ? s->memory_bytes : 0,
        };
        const int fds[BOX_FORK_FDS] = {
            [BOX_FD_INIT] = s->init.pidfd,
            [BOX_FD_CONTROL] = theirs[0],
            [BOX_FD_STDOUT] = theirs[1],
            [BOX_FD_STDERR] = theirs[2],
        };
        const struct box_frame head = {
            .type = BOX_FORK, .session = s->id, .request = ++s->head.generation, .len = sizeof how
        };
        s->head.ended = false;
        s->swept = false;
        box_session_enter(s, BOX_ST_FORK, time_mono_ms() + FORK_MS);
        box_send_fds(&s->keeper->base.channel, &head, &how, fds, BOX_FORK_FDS);
    }
    for (int i = 0; i < 3; i++)
        if (theirs[i] >= 0)
            (void)close(theirs[i]);
    if (r < 0)
        give_up(s, e.msg);
}

/* ---- the end of a head ---- */

void box_session_sweep(struct box_session *s)
{
    if (s->state == BOX_ST_SWEEP || s->state == BOX_ST_CLOSE)
        return;
    s->swept = false;
    box_session_enter(s, BOX_ST_SWEEP, time_mono_ms() + SWEEP_MS);
    box_loop_want(s->head.src, 0);
    box_group_kill(&s->group);
    box_send(&s->init.channel, BOX_SWEEP, s->id, 0, NULL, 0);
}

/* Nothing is left, and the head's own end is known. */
static void sweep_check(struct box_session *s)
{
    if (s->state != BOX_ST_SWEEP || !s->swept || !s->head.ended)
        return;
    box_request_died(s);
    if (s->state == BOX_ST_SWEEP)
        head_fork(s);
}

static void head_ended(struct box_session *s, int status)
{
    s->head.ended = true;
    s->head.status = status;
    switch (s->state) {
    case BOX_ST_FORK: give_up(s, "the interpreter did not start; the log has the reason"); break;
    case BOX_ST_IDLE:
    case BOX_ST_PUT:
        s->lost = true;
        if (s->state == BOX_ST_IDLE)
            box_session_sweep(s);
        break;
    case BOX_ST_RUN: box_session_sweep(s); break;
    case BOX_ST_SWEEP: sweep_check(s); break;
    case BOX_ST_BUILD:
    case BOX_ST_CLOSE:
    case BOX_STATES: break;
    }
}

void box_session_zygote(struct box_session *s, const struct box_frame *head, int32_t value)
{
    if (head->request != s->head.generation)
        return;
    if (head->type == BOX_EXIT)
        head_ended(s, value);
    else if (head->type == BOX_FORKED && value < 0)
        give_up(s, strerror(-value)); /* NOLINT(concurrency-mt-unsafe): one thread */
    box_keeper_flush(s->keeper);
}

/* ---- the box ---- */

static void on_init(void *ud, uint32_t events)
{
    struct box_session *s = ud;
    static struct box_msg msg;
    (void)events;
    enum box_recv got = box_recv(s->init.channel.fd, &msg, true);
    if (got == BOX_RECV_FRAME && msg.head.type == BOX_BUILT && msg.fd_n == 1 && s->state == BOX_ST_BUILD) {
        s->data_fd = msg.fds[0];
        msg.fds[0] = -1;
        s->init_pid = msg.pid;
    } else if (got == BOX_RECV_FRAME && msg.head.type == BOX_SWEPT && s->state == BOX_ST_BUILD && s->data_fd >= 0) {
        head_fork(s);
    } else if (got == BOX_RECV_FRAME && msg.head.type == BOX_SWEPT) {
        s->swept = true;
        sweep_check(s);
    } else if (got == BOX_RECV_FRAME && msg.head.type == BOX_FAILED) {
        autofree char *why = xstrndup((const char *)msg.payload, msg.head.len);
        give_up(s, why);
    } else if (got != BOX_RECV_NOTHING) {
        box_loop_want(s->init_src, 0); /* its end is told by its pidfd */
    }
    box_msg_clear(&msg);
    box_keeper_flush(s->keeper);
}

static void session_free(struct box_session *s)
{
    struct box_keeper *k = s->keeper;
    for (struct box_session **at = &k->sessions; *at; at = &(*at)->next) {
        if (*at == s) {
            *at = s->next;
            break;
        }
    }
    k->slots[s->slot] = 0;
    head_close(s);
    str_clear(&s->head.claim.body);
    box_request_clear(&s->request);
    box_part_clear(&s->incoming);
    box_listing_clear(&s->files);
    box_loop_drop(&s->init_src);
    box_link_close(&s->init.channel);
    if (s->data_fd >= 0)
        (void)close(s->data_fd);
    free(s);
}

/* Init is gone and so is everything else. Groups may need a moment to be empty. */
static void close_finish(struct box_session *s)
{
    int64_t now = time_mono_ms();
    if (!box_group_close(&s->group) && now < s->closed_ms + SWEEP_MS) {
        s->due_ms = now + CLOSE_RETRY_MS;
        return;
    }
    if (*s->group.name)
        log_error("box_group_stays", KV_I("session", s->id), KV_S("group", s->group.name));
    struct box_keeper *k = s->keeper;
    bool told = s->closing;
    uint32_t id = s->id;
    session_free(s);
    if (told) /* only now: who hears it finds nothing left */
        box_answer_closed(k, id);
    box_keeper_flush(k);
}

static void init_reap(struct box_session *s)
{
    siginfo_t end;
    (void)waitid(P_PIDFD, (id_t)s->init.pidfd, &end, WEXITED);
    box_loop_drop(&s->init_end_src);
    (void)close(s->init.pidfd);
    s->init.pidfd = -1;
}

static void on_init_end(void *ud, uint32_t events)
{
    struct box_session *s = ud;
    (void)events;
    init_reap(s);
    if (s->state != BOX_ST_CLOSE)
        give_up(s, "the box ended");
    close_finish(s);
}

void box_session_close(struct box_session *s)
{
    if (s->state == BOX_ST_CLOSE)
        return;
    if (s->request.id != 0)
        box_request_fail(s, "cancelled", "the session was closed");
    s->closed_ms = time_mono_ms();
    box_session_enter(s, BOX_ST_CLOSE, s->closed_ms + SWEEP_MS);
    head_close(s);
    box_group_kill(&s->group);
    if (s->init.pidfd >= 0)
        (void)syscall(SYS_pidfd_send_signal, s->init.pidfd, SIGKILL, NULL, 0);
}

void box_session_abandon(struct box_session *s)
{
    if (s->init.pidfd >= 0) {
        (void)syscall(SYS_pidfd_send_signal, s->init.pidfd, SIGKILL, NULL, 0);
        init_reap(s);
    }
    box_request_clear(&s->request);
    for (int i = 0; i < CLOSE_TRIES && !box_group_close(&s->group); i++)
        (void)usleep(CLOSE_RETRY_MS * 1000);
    session_free(s);
}

static uint64_t limit_of(const struct json *limits, const char *key, int64_t otherwise, int64_t least, int64_t most)
{
    int64_t n = json_int_or(limits, key, otherwise);
    return (uint64_t)(n < least ? least : n > most ? most : n);
}

/* tmpfs is memory: all of it together must stay well below the limit, or a full disk is an OOM kill (section 0). */
static struct box_sizes sizes_of(struct box_session *s)
{
    uint64_t most = 64 << 20, scratch = s->memory_bytes / 8 < most ? s->memory_bytes / 8 : most;
    uint64_t room = s->memory_bytes / 2 - 2 * scratch;
    if (s->disk_bytes > room) {
        log_info("box_disk_cut", KV_I("session", s->id), KV_I("wanted", s->disk_bytes), KV_I("bytes", room));
        s->disk_bytes = room;
    }
    return (struct box_sizes){
        .uid = s->keeper->base.root ? s->slot + 1 : 0,
        .data_bytes = s->disk_bytes,
        .tmp_bytes = scratch,
        .shm_bytes = scratch,
    };
}

static int enter_group(void *ud)
{
    const struct box_session *s = ud;
    return box_group_enter(&s->group);
}

static int start(struct box_session *s, struct err *e)
{
    const struct box_group_limits limits = { .memory_bytes = s->memory_bytes, .pids = s->pids, .cpu_pct = s->cpu_pct };
    const struct box_sizes sizes = sizes_of(s);
    if (box_group_open(&s->group, &s->keeper->cgroups, s->id, &limits, e) < 0 ||
        box_init_start(&s->init, &s->keeper->base, &sizes, enter_group, s, e) < 0)
        return -1;
    s->init_src = box_loop_add(s->keeper->loop, s->init.channel.fd, EPOLLIN, on_init, s);
    s->init_end_src = box_loop_add(s->keeper->loop, s->init.pidfd, EPOLLIN, on_init_end, s);
    s->data_fd = s->init.data_fd;
    s->init_pid = s->init.pid;
    if (s->init.up)
        head_fork(s);
    return 0;
}

static uint32_t free_slot(const struct box_keeper *k)
{
    uint32_t slot = 0;
    while (slot < KEEPER_SLOTS && k->slots[slot])
        slot++;
    return slot;
}

struct box_session *box_session_open(struct box_keeper *k, uint32_t id, const struct json *limits, struct err *e)
{
    uint32_t slot = free_slot(k);
    if (slot == KEEPER_SLOTS) {
        (void)err_set(e, ERR_LIMIT, "no more sessions: every uid is in use");
        return NULL;
    }
    struct box_session *s = xcalloc(1, sizeof *s);
    *s = (struct box_session){
        .next = k->sessions,
        .keeper = k,
        .id = id,
        .slot = slot,
        .state = BOX_ST_BUILD,
        .due_ms = time_mono_ms() + BUILD_MS,
        .memory_bytes = limit_of(limits, "memory_bytes", MIB * 1024, MIB * 128, MIB * 1024 * 1024),
        .disk_bytes = limit_of(limits, "disk_bytes", MIB * 256, MIB, MIB * 1024 * 1024),
        .pids = (uint32_t)limit_of(limits, "pids", 128, 8, 30000),
        .cpu_pct = (uint32_t)limit_of(limits, "cpu_pct", 100, 0, 100000),
        .init = { .pidfd = -1, .data_fd = -1, .channel = BOX_LINK_INIT },
        .head = { .pidfd = -1, .ended = true, .link = BOX_LINK_INIT, .pipe = { -1, -1 } },
        .data_fd = -1,
        .incoming.body = STR_INIT(BOX_REQUEST_MAX),
        .opened_us = box_now_us(),
        .opening = true,
    };
    box_request_clear(&s->request);
    k->sessions = s;
    k->slots[slot] = 1;
    if (start(s, e) < 0) {
        log_error("box_open_failed", KV_I("session", id), KV_E(e));
        (void)box_group_close(&s->group);
        session_free(s);
        return NULL;
    }
    return s;
}

void box_session_stall(struct box_session *s, bool stalled)
{
    if (s->state != BOX_ST_RUN)
        return;
    uint32_t events = stalled ? 0 : EPOLLIN;
    box_loop_want(s->head.src, events | (s->head.link.first ? (uint32_t)EPOLLOUT : 0));
    box_loop_want(s->head.pipe_src[0], events);
    box_loop_want(s->head.pipe_src[1], events);
}

void box_session_tick(struct box_session *s, int64_t now_ms)
{
    if (now_ms < s->due_ms)
        return;
    if (s->head.hung_up && (s->state == BOX_ST_IDLE || s->state == BOX_ST_RUN || s->state == BOX_ST_PUT)) {
        broke_a_rule(s, "it closed its channel");
        return;
    }
    switch (s->state) {
    case BOX_ST_BUILD:
    case BOX_ST_FORK: give_up(s, "the box took too long to start"); break;
    case BOX_ST_RUN:
    case BOX_ST_PUT: box_request_tick(s, now_ms); break;
    case BOX_ST_SWEEP: give_up(s, "processes that can't be killed"); break;
    case BOX_ST_CLOSE:
        if (s->init.pidfd < 0) {
            close_finish(s);
            return;
        }
        log_error("box_close_slow", KV_I("session", s->id));
        s->due_ms = INT64_MAX;
        break;
    case BOX_ST_IDLE:
    case BOX_STATES: s->due_ms = INT64_MAX; break;
    }
}
