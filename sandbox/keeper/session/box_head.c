/* box_head.c - see box_session.h: a session's head. It comes from the zygote or from a copy, is looked at from outside, and
 * from then on what it says is a claim. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "box_copy.h"
#include "box_session.h"
#include "limits/box_limit.h"
#include "log.h"

enum {
    FORK_MS = 20000,
    ZYGOTE_MS = 60000,    /* for another zygote to be warm */
    WAKE_MS = 5000,       /* two forks of what may be gigabytes, and a probe of a library */
    CHANNEL_END_MS = 500, /* from the end of a head's channel to its own end */
    ENTER_STEP_MS = 1,
    PRIMED_MS = 50,      /* then the move takes what it takes */
    EMPTY_MS = 10000,    /* of processes that were killed: they may hold gigabytes */
    FRAMES_A_ROUND = 64, /* of one head, before others get their turn */
    STRANGE_MAX = 4096,  /* frames of others in one request: each takes the keeper's time, which no limit counts */
};

static struct box_head no_head(uint32_t generation)
{
    return (struct box_head){
        .pidfd = -1,
        .generation = generation,
        .ended = true,
        .link = BOX_LINK_INIT,
        .pipe = { -1, -1 },
        .claim.body = STR_INIT(BOX_CLAIM_MAX),
    };
}

static void head_clear(struct box_head *h)
{
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
}

void box_head_close(struct box_session *s)
{
    head_clear(&s->head);
    s->head = no_head(s->head.generation);
}

/* ---- what it says ---- */

/* What only the outside can see. */
static int take_in(struct box_session *s, pid_t pid, struct err *e)
{
    s->head.pid = pid;
    s->head.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (s->head.pidfd < 0)
        return err_set(e, ERR_SANDBOX, "the interpreter ended at once");
    return box_limit_audit(pid, e);
}

static void begin_to_enter(struct box_session *s)
{
    s->enter_ms = time_mono_ms();
    box_session_enter(s, BOX_ST_ENTER, s->enter_ms);
}

/* What only the outside can do, before the first byte of a person's may come. */
static void entered(struct box_session *s)
{
    struct err e;
    if (box_group_run(&s->group, s->head.pid, &e) < 0 || box_limit_oom(s->head.pid, true, &e) < 0) {
        if (s->waking)
            box_copy_failed(s, e.msg);
        else
            box_session_give_up(s, e.msg);
        return;
    }
    box_session_enter(s, BOX_ST_IDLE, INT64_MAX);
    if (s->waking)
        box_copy_woken(s); /* it may go now: its place is known */
    if (s->pooled)
        box_send(&s->head.link, BOX_REHEARSE, 0, 0, NULL, 0);
    box_session_opened(s);
    box_request_begin(s);
}

void box_head_enter(struct box_session *s)
{
    const int64_t waited_ms = time_mono_ms() - s->enter_ms;
    bool empty = !s->hurried || box_group_is_empty(&s->group);
    if (!empty && waited_ms >= EMPTY_MS) {
        log_warn("box_run_stays", KV_I("session", s->id));
        box_session_sweep(s); /* and then once more */
    } else if (!empty || (waited_ms < PRIMED_MS && !box_primer_is_done(&s->keeper->cgroups.primer))) {
        s->due_ms = time_mono_ms() + ENTER_STEP_MS;
    } else {
        s->hurried = false;
        entered(s);
    }
}

static void head_ready(struct box_session *s, pid_t pid)
{
    struct err e;
    if (take_in(s, pid, &e) < 0) {
        box_session_give_up(s, e.msg);
        return;
    }
    begin_to_enter(s);
    box_zygotes_proved(s->keeper, s->head.zygote);
    box_session_opened(s);
    box_request_revived(s, NULL);
    if (s->state == BOX_ST_ENTER)
        box_head_enter(s);
}

/* From here on init tells how it ends: it is init's child, not the zygote's. */
static void watch_by_init(struct box_session *s)
{
    const uint32_t inner = (uint32_t)s->head.inner;
    s->head.ended = false;
    box_send(&s->init.channel, BOX_WATCH, s->id, 0, &inner, sizeof inner);
}

static void head_woken(struct box_session *s, const struct box_msg *msg)
{
    struct err e;
    struct box_copy *copy = s->waking;
    if (box_copy_find_pid(s, msg->pid) || !box_limit_is_member(s->init_pid, msg->pid)) {
        box_copy_failed(s, "somebody else spoke for it");
        return;
    }
    s->head.inner = box_limit_inner_pid(msg->pid);
    if (take_in(s, msg->pid, &e) < 0) {
        box_copy_failed(s, e.msg);
        return;
    }
    watch_by_init(s);
    begin_to_enter(s);
    log_info("box_woken", KV_I("session", s->id), KV_I("cell", copy->place.cell),
             KV_I("took_us", box_now_us() - s->wake_us));
    box_request_woken_claim(s, msg);
    box_request_revived(s, copy);
    if (s->state == BOX_ST_ENTER)
        box_head_enter(s);
}

void box_head_broke_rule(struct box_session *s, const char *what)
{
    log_warn("box_head_protocol", KV_I("session", s->id), KV_S("what", what));
    if (s->state == BOX_ST_FORK) { /* no person's byte has run yet: ours is broken */
        box_session_give_up(s, what);
        return;
    }
    if (s->state == BOX_ST_WAKE) {
        box_copy_failed(s, what);
        return;
    }
    s->request.cause = BOX_CAUSE_PROTOCOL;
    (void)snprintf(s->request.why, sizeof s->request.why, "protocol: %s", what);
    box_session_end_run(s);
}

static void claim_frame(struct box_session *s, const struct box_msg *msg)
{
    int done = box_part_add(&s->head.claim, &msg->head, msg->payload);
    if (done < 0)
        box_head_broke_rule(s, "its answer is too long or in pieces of different kinds");
    else if (done > 0)
        box_request_claimed(s);
}

/* What a head says is a claim; what is not a well-formed claim at the right time ends it. */
static void head_frame(struct box_session *s, const struct box_msg *msg)
{
    if (s->state == BOX_ST_FORK && msg->head.type == BOX_HELLO) {
        head_ready(s, msg->pid);
    } else if (s->state == BOX_ST_FORK && msg->head.type == BOX_FAILED) {
        autofree char *why = xstrndup((const char *)msg->payload, msg->head.len);
        box_session_give_up(s, why);
    } else if (s->state == BOX_ST_WAKE && msg->head.type == BOX_HELLO && !(msg->head.flags & BOX_MORE)) {
        head_woken(s, msg);
    } else if (s->state == BOX_ST_COPY && msg->head.type == BOX_COPIED) {
        box_copy_head_is_back(s, msg);
    } else if (s->state == BOX_ST_RUN && msg->head.type == BOX_CLAIM) {
        claim_frame(s, msg);
    } else {
        box_head_broke_rule(s, "a frame that nobody asked for");
    }
}

/* Processes that a cell forked hold the channel too. Their frames are not the head's and are dropped. */
static bool is_stranger(const struct box_session *s, const struct box_msg *msg)
{
    return s->head.pid != 0 && msg->pid != s->head.pid;
}

static void dropped(struct box_session *s)
{
    const unsigned interruptible = 1U << BOX_ST_RUN | 1U << BOX_ST_IDLE | 1U << BOX_ST_COPY;
    if (++s->head.strange_n > STRANGE_MAX && (interruptible >> s->state & 1))
        box_head_broke_rule(s, "its children fill its channel");
}

static void channel_ended(struct box_session *s)
{
    box_loop_want(s->head.src, 0);
    if (s->state == BOX_ST_WAKE) {
        box_copy_failed(s, "its child ended at once");
        return;
    }
    s->head.hung_up = true;
    s->due_ms = time_mono_ms() + CHANNEL_END_MS; /* before that we hear how it ended */
    box_roll_stir(&s->keeper->sessions, s);
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
            channel_ended(s);
            break;
        }
        if (is_stranger(s, &msg))
            dropped(s);
        else if (got == BOX_RECV_BAD)
            box_head_broke_rule(s, "a malformed frame");
        else
            head_frame(s, &msg);
    }
    box_keeper_flush(s->keeper);
}

/* ---- its channels ---- */

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
    int pipes[2];
    if (box_copy_socket(&h->link.fd, &theirs[0], e) < 0)
        return -1;
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

static void close_all(const int fds[3])
{
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

/* ---- where it comes from ---- */

void box_head_ask(struct box_session *s)
{
    struct err e;
    int theirs[3] = { -1, -1, -1 };
    int r = head_channels(s, theirs, &e);
    if (r == 0) {
        s->head.ended = false;
        box_session_enter(s, BOX_ST_FORK, time_mono_ms() + FORK_MS);
        box_zygotes_ask(s, theirs);
    }
    close_all(theirs);
    if (r < 0)
        box_session_give_up(s, e.msg);
}

void box_head_fork(struct box_session *s)
{
    box_head_close(s);
    box_session_mend_folder(s);
    s->head.generation++;
    if (s->keeper->zygotes.now)
        box_head_ask(s);
    else
        box_session_enter(s, BOX_ST_FORK, time_mono_ms() + ZYGOTE_MS);
}

/* What is left of the one before lives on in *before, without being heard. */
static void new_head(struct box_session *s, struct box_head *before)
{
    *before = s->head;
    box_loop_drop(&before->src);
    for (int i = 0; i < 2; i++)
        box_loop_drop(&before->pipe_src[i]);
    s->head = no_head(before->generation + 1);
}

/* The end of its channel is the end of a head, and that takes the processor: the copy comes first. */
void box_head_wake(struct box_session *s, struct box_copy *copy, bool tell)
{
    struct err e;
    struct box_head before;
    int theirs[3] = { -1, -1, -1 };
    new_head(s, &before);
    int r = head_channels(s, theirs, &e);
    if (r == 0) {
        s->waking = copy;
        s->wake_us = box_now_us();
        box_session_enter(s, BOX_ST_WAKE, time_mono_ms() + WAKE_MS);
        box_copy_wake(copy, theirs, tell);
    }
    close_all(theirs);
    head_clear(&before);
    if (r < 0)
        box_session_give_up(s, e.msg);
}
