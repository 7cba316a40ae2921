/* box_end.c - see box_session.h: the end of a session's head, and what comes after it. Who tells of it: the zygote of heads that it
 * forked, init of those that came from a copy, the base's init of those that have lost their zygote. */
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include "box_copy.h"
#include "box_session.h"
#include "box_zygote.h"
#include "limits/box_limit.h"
#include "wire/box_fd.h"

enum {
    SWEEP_MS = 10000,
    VAIN_MAX = 8,
};

/* The head is not yet where others are killed. What freezes and can't kill would keep it. */
static void leave_at_the_door(struct box_session *s)
{
    box_limit_signal(s->head.pidfd, SIGKILL);
    if (box_group_can_kill(&s->group))
        box_copy_woken(s);
    s->waking = NULL;
}

void box_session_sweep(struct box_session *s)
{
    uint32_t spare[BOX_COPIES_MAX];
    if (s->state == BOX_ST_SWEEP || s->state == BOX_ST_CLOSE)
        return;
    box_copy_give_up(s);
    if (s->state == BOX_ST_ENTER)
        leave_at_the_door(s);
    s->swept = s->hurried = false;
    box_session_enter(s, BOX_ST_SWEEP, time_mono_ms() + SWEEP_MS);
    if (s->head.src)
        box_loop_want(s->head.src, 0);
    box_group_kill(&s->group);
    box_primer_order(&s->keeper->cgroups.primer);
    size_t n = box_copies_inner(s, spare, countof(spare));
    box_send(&s->init.channel, BOX_SWEEP, s->id, 0, spare, n * sizeof *spare);
}

bool box_session_can_hurry(const struct box_session *s)
{
    return box_session_may(s, BOX_ST_WAKE) && s->request.fd < 0 && box_group_can_kill(&s->group);
}

/* What is there dies while the copy is being woken: both take their milliseconds. No process of a box's own can be outside of
 * the group that is killed, and what has its SIGKILL runs nothing more of its own. Going back has nothing to learn of what dies, and
 * the copy gets the processor first. */
void box_session_hurry(struct box_session *s, struct box_copy *copy)
{
    bool goes_back = s->request.cause == BOX_CAUSE_BACK;
    box_copy_give_up(s);
    if (!goes_back)
        box_group_kill(&s->group);
    box_request_died(s);
    s->hurried = true;
    s->vain = 0;
    box_head_wake(s, copy, s->request.started && !s->check);
    if (goes_back)
        box_group_kill(&s->group);
}

/* Going back comes with files of its own; the copies wait elsewhere (copies.py). */
static int other_files(struct box_session *s)
{
    struct err e;
    int fd = box_fd_take(&s->request.fd), r = box_session_mount(s, fd, &e);
    (void)close(fd);
    s->request.refitted = r == 0;
    if (r < 0)
        box_session_give_up(s, e.msg);
    return r;
}

/* Nothing is left, and the head's own end is known. */
static void sweep_check(struct box_session *s)
{
    if (s->state != BOX_ST_SWEEP || !s->swept || !s->head.ended)
        return;
    s->vain = s->request.id == 0 || !s->request.started ? s->vain + 1 : 0;
    box_request_died(s);
    if (s->vain > VAIN_MAX) {
        box_session_give_up(s, "its interpreters end as soon as they start");
        return;
    }
    if (s->request.cause == BOX_CAUSE_BACK && s->request.fd >= 0 && other_files(s) < 0)
        return;
    struct box_copy *copy = box_request_copy(s);
    if (copy)
        box_head_wake(s, copy, s->request.started && !s->check);
    else
        box_head_fork(s);
}

void box_session_end_run(struct box_session *s)
{
    struct box_copy *copy = s->request.started ? box_request_copy(s) : NULL;
    bool roomy = !s->head.ended || !WIFSIGNALED(s->head.status) || WTERMSIG(s->head.status) != SIGKILL;
    if (copy && roomy && box_session_can_hurry(s))
        box_session_hurry(s, copy);
    else
        box_session_sweep(s);
}

static void head_ended(struct box_session *s, int status)
{
    s->head.ended = true;
    s->head.status = status;
    s->head.outer = 0;
    if (s->pooled && (s->state == BOX_ST_IDLE || s->state == BOX_ST_ENTER)) { /* nobody's: another takes its place */
        box_session_give_up(s, "it ended while it waited");
        return;
    }
    switch (s->state) {
    case BOX_ST_FORK: box_session_give_up(s, "the interpreter did not start; the log has the reason"); break;
    case BOX_ST_PUT: s->died_idle = true; break; /* the sweep waits for the file */
    case BOX_ST_IDLE:
    case BOX_ST_RUN:
    case BOX_ST_COPY: box_session_end_run(s); break;
    case BOX_ST_ENTER: box_session_sweep(s); break;
    case BOX_ST_SWEEP: sweep_check(s); break;
    case BOX_ST_WAKE:
    case BOX_ST_BUILD:
    case BOX_ST_CLOSE:
    case BOX_STATES: break;
    }
}

void box_session_zygote(struct box_session *s, const struct box_frame *head, int32_t value)
{
    if (head->request != s->head.generation || s->head.inner != 0)
        return;
    if (head->type == BOX_EXIT)
        head_ended(s, value);
    else if (head->type == BOX_FORKED && value < 0)
        box_session_give_up(s, strerror(-value)); /* NOLINT(concurrency-mt-unsafe): one thread */
    else if (head->type == BOX_FORKED)
        s->head.outer = value;
    box_keeper_flush(s->keeper);
}

void box_session_zygote_ready(struct box_session *s)
{
    if (s->state == BOX_ST_FORK && s->head.zygote == 0)
        box_head_ask(s);
}

void box_session_zygote_gone(struct box_session *s, uint32_t number)
{
    struct box_head *h = &s->head;
    if (h->zygote != number || h->inner != 0 || h->ended)
        return;
    if (h->outer == 0 && h->pid != 0)
        h->outer = box_limit_outer_pid(h->pid);
    if (h->outer == 0 && s->state == BOX_ST_FORK) /* it may never have been made; if it was, it sees its channel end */
        box_head_fork(s);
    else
        box_keeper_watch(s->keeper, h->outer); /* it may have been reaped, and that not told any more */
}

bool box_session_is_child(const struct box_session *s, pid_t outer)
{
    return s->head.outer == outer && s->head.inner == 0 && !s->head.ended;
}

void box_session_orphaned(struct box_session *s, int status)
{
    head_ended(s, status);
}

void box_session_init_exit(struct box_session *s, const struct box_msg *msg)
{
    uint32_t end[2];
    if (msg->head.len != sizeof end)
        return;
    memcpy(end, msg->payload, sizeof end);
    if (s->head.inner != 0 && end[0] == (uint32_t)s->head.inner)
        head_ended(s, (int)end[1]);
}

void box_session_swept(struct box_session *s)
{
    s->swept = true;
    sweep_check(s);
}
