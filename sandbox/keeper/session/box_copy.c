/* box_copy.c - see box_copy.h. */
#include "box_copy.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include "limits/box_limit.h"
#include "log.h"

enum {
    SAID_MAX = 120,
    LOOK_MS = 1000, /* between two looks at the machine's memory */
    SHORT_LOOK_MS = 50,
    COPY_MS = 2000,
    PRIMED_MS = 50, /* then the move takes what it takes */
    HEAD_MS =
        6000, /* more for the head: a busy machine must not cost it, and what it kills in its own way takes time */
};

int box_copy_socket(int *ours, int *theirs, struct err *e)
{
    const int on = 1;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "socketpair");
    (void)setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    *ours = pair[0];
    *theirs = pair[1];
    return 0;
}

/* ---- the list ---- */

struct box_copy *box_copy_find(const struct box_session *s, uint32_t cell)
{
    struct box_copy *c = s->copies;
    while (c && c->place.cell != cell)
        c = c->next;
    return c;
}

struct box_copy *box_copy_find_pid(const struct box_session *s, pid_t pid)
{
    struct box_copy *c = s->copies;
    while (c && c->pid != pid)
        c = c->next;
    return c;
}

struct box_copy *box_copy_nearest(const struct box_session *s)
{
    struct box_copy *c = box_copy_find(s, s->at.cell);
    return c ? c : box_copy_find(s, s->at.back);
}

bool box_copy_is_fresh(const struct box_session *s, uint32_t cell)
{
    return cell == 0 || (cell == s->base && !s->thawed);
}

void box_copy_list(const struct box_session *s, char *out, size_t n)
{
    size_t len = 0;
    uint32_t after = 0;
    for (bool more = true; more && len < n; after++) { /* few, and not sorted once there are branches */
        uint32_t least = UINT32_MAX;
        for (const struct box_copy *c = s->copies; c; c = c->next)
            if (c->place.cell >= after && c->place.cell < least)
                least = c->place.cell;
        more = least != UINT32_MAX;
        if (more)
            len += (size_t)snprintf(out + len, n - len, "%s%u", len > 0 ? ", " : "", (unsigned)least);
        after = least;
    }
    if (len == 0)
        (void)snprintf(out, n, "none");
}

size_t box_copies_inner(const struct box_session *s, uint32_t *out, size_t max)
{
    size_t n = 0;
    for (const struct box_copy *c = s->copies; c && n < max; c = c->next)
        out[n++] = (uint32_t)c->inner;
    return n;
}

static struct box_spared spared(const struct box_session *s, pid_t pids[BOX_COPIES_MAX])
{
    struct box_spared all = { .init = s->init_pid, .head = s->head.pid, .copies = pids };
    for (const struct box_copy *c = s->copies; c && all.copy_n < BOX_COPIES_MAX; c = c->next)
        pids[all.copy_n++] = c->pid;
    return all;
}

void box_copies_hunt(const struct box_session *s, int64_t since_us, bool still)
{
    pid_t pids[BOX_COPIES_MAX];
    const struct box_spared all = spared(s, pids);
    box_limit_kill_newer(&all, &s->group, since_us, still);
}

/* What a copy that did not come has left. */
static void hunt_orphans(const struct box_session *s)
{
    pid_t pids[BOX_COPIES_MAX];
    const struct box_spared all = spared(s, pids);
    box_limit_kill_orphans(&all, s->copy_us);
}

/* ---- letting go ---- */

/* Frees it; its process is killed unless it ended. */
static void copy_free(struct box_copy *c)
{
    box_loop_drop(&c->src);
    box_loop_drop(&c->end_src);
    box_link_close(&c->link);
    if (c->pid != 0) {
        box_limit_signal(c->pidfd, SIGKILL);
        box_group_unpark(&c->session->group, c->number);
    }
    if (c->pidfd >= 0)
        (void)close(c->pidfd);
    free(c);
}

static void step_back(struct box_place *p, const struct box_place *gone)
{
    if (p->back == gone->cell)
        p->back = gone->back;
}

static void count(struct box_session *s, int more)
{
    s->keeper->rich_n -= s->copy_n > 1;
    s->copy_n += (uint32_t)more;
    s->keeper->rich_n += s->copy_n > 1;
}

/* It is out of the list already. */
static void copy_forget(struct box_session *s, struct box_copy *c)
{
    count(s, -1);
    for (struct box_copy *x = s->copies; x; x = x->next)
        step_back(&x->place, &c->place);
    step_back(&s->at, &c->place);
    copy_free(c);
}

static void copy_drop(struct box_copy *c)
{
    struct box_session *s = c->session;
    struct box_copy **at = &s->copies;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    copy_forget(s, c);
}

void box_copies_clear(struct box_session *s)
{
    box_copy_give_up(s);
    for (struct box_copy *c; (c = s->copies);) {
        s->copies = c->next;
        copy_forget(s, c);
    }
    s->waking = NULL;
}

/* The oldest but the newest that is not pinned, else the oldest but the newest. There are two at least. */
static struct box_copy *least_wanted(const struct box_session *s)
{
    struct box_copy *pinned = NULL, *free_one = NULL;
    for (struct box_copy *c = s->copies->next; c; c = c->next) {
        if (c == s->waking)
            continue;
        pinned = c;
        free_one = c->pinned ? free_one : c;
    }
    return free_one ? free_one : pinned;
}

static void release(struct box_session *s, uint32_t n)
{
    for (struct box_copy *c; n > 0 && s->copy_n > 1 && (c = least_wanted(s)); n--)
        copy_drop(c);
}

void box_copies_pressure(struct box_session *s, int64_t used_bytes)
{
    if (s->copy_n < 2 || used_bytes < (int64_t)(s->memory_bytes / 4 * 3))
        return;
    uint32_t n = s->copy_n / 2;
    log_info("box_copies_released", KV_I("session", s->id), KV_I("copies", n), KV_I("used_bytes", used_bytes));
    release(s, n);
}

/* ---- the machine's memory ---- */

static struct box_session *richest(const struct box_keeper *k)
{
    struct box_session *most = NULL;
    struct box_session *s;
    LIST_FOREACH (s, &k->sessions.all, roll.all)
        if (s->copy_n > 1 && s->state != BOX_ST_CLOSE && (!most || s->copy_n > most->copy_n))
            most = s;
    return most;
}

static bool is_short(const struct box_keeper *k, int64_t *available)
{
    const int64_t gib = 1 << 30;
    autofree char *text = box_limit_meminfo();
    int64_t total = box_limit_meminfo_bytes(text, "MemTotal"), spare = total / 16 < gib ? total / 16 : gib;
    *available = box_limit_meminfo_bytes(text, "MemAvailable");
    return *available >= 0 && *available < (k->spare_bytes > 0 ? k->spare_bytes : spare);
}

int64_t box_copies_tick(struct box_keeper *k, int64_t now_ms)
{
    int64_t available = 0;
    if (k->rich_n == 0 || k->stopping)
        return INT64_MAX;
    if (now_ms < k->memory_look_ms)
        return k->memory_look_ms;
    bool now_short = is_short(k, &available);
    struct box_session *s = now_short ? richest(k) : NULL;
    if (s) {
        log_info("box_copies_released", KV_I("session", s->id), KV_I("copies", 1), KV_I("available_bytes", available));
        release(s, 1);
    }
    k->memory_look_ms = now_ms + (now_short ? SHORT_LOOK_MS : LOOK_MS);
    return k->memory_look_ms;
}

/* ---- pins ---- */

const char *box_copy_pin(struct box_session *s, uint32_t cell, bool pinned)
{
    struct box_copy *c = s->coming && s->coming->place.cell == cell ? s->coming : box_copy_find(s, cell);
    uint32_t n = s->coming && s->coming->pinned;
    for (const struct box_copy *x = s->copies; x; x = x->next)
        n += x->pinned;
    if (!c)
        return pinned ? "the state after that cell is not there" : NULL;
    if (pinned && !c->pinned && n + 1 >= s->copy_max)
        return "as many states are pinned as can be";
    c->pinned = pinned;
    return NULL;
}

/* ---- parking ---- */

static void on_copy_end(void *ud, uint32_t events)
{
    struct box_copy *c = ud;
    struct box_session *s = c->session;
    (void)events;
    log_warn("box_copy_ended", KV_I("session", s->id), KV_I("cell", c->place.cell));
    if (s->waking == c)
        box_copy_failed(s, "it ended");
    else
        copy_drop(c);
    box_keeper_flush(s->keeper);
}

/* Asked for by the daemon while the copy was being made? Now it may begin. */
static void finish(struct box_session *s)
{
    box_session_enter(s, BOX_ST_IDLE, INT64_MAX);
    box_copies_pressure(s, s->copy_n > 1 ? box_group_memory(&s->group) : 0);
    box_request_begin(s);
}

static int park(struct box_session *s, struct box_copy *c, pid_t pid, struct err *e)
{
    if (pid == s->head.pid || pid == s->init_pid || box_copy_find_pid(s, pid) || !box_limit_is_member(s->init_pid, pid))
        return err_set(e, ERR_SANDBOX, "somebody else spoke for it");
    c->inner = box_limit_inner_pid(pid);
    c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (c->pidfd < 0 || c->inner <= 1)
        return err_set(e, ERR_SANDBOX, "it ended at once");
    c->pid = pid; /* from here on it is ours to end */
    if (box_group_park(&s->group, c->number, pid, e) < 0 || box_limit_oom(pid, false, e) < 0)
        return -1;
    int threads = box_limit_threads(pid);
    return threads == 1 ? 0 : err_set(e, ERR_SANDBOX, "it has %d threads", threads);
}

static void parked(struct box_session *s)
{
    struct err e;
    struct box_copy *c = take(s->coming), *same = box_copy_find(s, c->place.cell);
    if (park(s, c, c->reported, &e) < 0) {
        log_warn("box_copy_refused", KV_I("session", s->id), KV_I("cell", c->place.cell), KV_E(&e));
        copy_free(c);
    } else {
        if (same) {
            c->pinned = c->pinned || same->pinned;
            copy_drop(same);
        }
        c->end_src = box_loop_add(s->keeper->loop, c->pidfd, EPOLLIN, on_copy_end, c);
        c->next = s->copies;
        s->copies = c;
        count(s, 1);
        if (s->copy_n > s->copy_max)
            release(s, 1);
        log_debug("box_copy_parked", KV_I("session", s->id), KV_I("cell", c->place.cell),
                  KV_I("took_us", box_now_us() - s->copy_us));
    }
    if (s->head_is_back)
        finish(s);
}

/* It sleeps again, once it has told of every child it was asked for, and none is in its group any more: that of a head which
 * has not said its first word would be frozen with it. */
static void copy_rest(struct box_copy *c)
{
    if (c->awake > 0 || c->session->waking == c)
        return;
    box_group_hold(&c->session->group, c->number, true);
    if (box_limit_threads(c->pid) != 1) {
        log_warn("box_copy_refused", KV_I("session", c->session->id), KV_I("cell", c->place.cell));
        copy_drop(c);
    }
}

static void on_copy(void *ud, uint32_t events)
{
    struct box_copy *c = ud;
    struct box_session *s = c->session;
    static struct box_msg msg;
    (void)events;
    enum box_recv got = box_recv(c->link.fd, &msg, false);
    if (got == BOX_RECV_NOTHING)
        return;
    if (got != BOX_RECV_FRAME)
        box_loop_want(c->src, 0); /* its end is told by its pidfd, if it has reported */
    if (c == s->coming && got == BOX_RECV_FRAME && msg.head.type == BOX_PARKED && c->reported == 0) {
        c->reported = msg.pid;
        box_copy_tick(s, time_mono_ms());
    } else if (c == s->coming) {
        box_copy_give_up(s);
        if (s->head_is_back)
            finish(s);
    } else if (c->awake > 0 && got == BOX_RECV_FRAME && msg.pid == c->pid && msg.head.type == BOX_COPIED) {
        c->awake--;
        copy_rest(c);
    }
    box_keeper_flush(s->keeper);
}

void box_copy_begin(struct box_session *s)
{
    struct err e;
    int theirs = -1;
    if (s->copy_max == 0 || s->state != BOX_ST_IDLE)
        return;
    struct box_copy *c = xcalloc(1, sizeof *c);
    *c = (struct box_copy){
        .session = s, .place = s->at, .number = ++s->copies_made, .pidfd = -1, .link = BOX_LINK_INIT
    };
    if (box_copy_socket(&c->link.fd, &theirs, &e) < 0) {
        log_warn("box_copy", KV_E(&e));
        free(c);
        return;
    }
    c->src = box_loop_add(s->keeper->loop, c->link.fd, EPOLLIN, on_copy, c);
    s->coming = c;
    s->head_is_back = false;
    s->copy_us = box_now_us();
    s->copy_ms = time_mono_ms();
    box_session_enter(s, BOX_ST_COPY, s->copy_ms + COPY_MS);
    box_primer_order(&s->keeper->cgroups.primer);
    const struct box_frame ask = { .type = BOX_COPY, .session = s->id };
    box_send_fds(&s->head.link, &ask, NULL, &theirs, 1);
    (void)close(theirs);
}

void box_copy_head_is_back(struct box_session *s, const struct box_msg *msg)
{
    autofree char *said = xstrndup((const char *)msg->payload, msg->head.len < SAID_MAX ? msg->head.len : SAID_MAX);
    log_debug("box_copied", KV_I("session", s->id), KV_I("cell", s->at.cell), KV_S("claim", said));
    s->head_is_back = true;
    if (s->coming)
        return;
    if (box_now_us() - s->copy_us > (int64_t)COPY_MS * 1000) /* what it left behind came too late, or hangs */
        hunt_orphans(s);
    finish(s);
}

void box_copy_give_up(struct box_session *s)
{
    if (s->coming)
        copy_free(take(s->coming));
    bool late = box_now_us() - s->wake_us > (int64_t)COPY_MS * 1000;
    for (struct box_copy *c = s->copies, *next = NULL; c && late; c = next) {
        next = c->next;
        if (c->awake > 0 && c != s->waking) /* hangs in a hook */
            copy_drop(c);
    }
}

/* A hook of the person's hangs: in the copy, which it costs, or in the head itself. */
static void late(struct box_session *s)
{
    bool first = s->coming != NULL;
    log_warn("box_copy_late", KV_I("session", s->id), KV_I("cell", s->at.cell), KV_I("head_is_back", s->head_is_back));
    box_copy_give_up(s);
    if (s->head_is_back) {
        hunt_orphans(s);
        finish(s);
    } else if (first) {
        s->due_ms = time_mono_ms() + HEAD_MS;
    } else {
        box_session_sweep(s);
    }
}

void box_copy_tick(struct box_session *s, int64_t now_ms)
{
    if (!s->coming || s->coming->reported == 0) {
        if (now_ms >= s->due_ms)
            late(s);
    } else if (now_ms < s->copy_ms + PRIMED_MS && !box_primer_is_done(&s->keeper->cgroups.primer)) {
        s->due_ms = now_ms + 1;
    } else {
        s->due_ms = s->copy_ms + COPY_MS;
        parked(s);
    }
}

/* ---- waking ---- */

void box_copy_wake(struct box_copy *c, const int theirs[3], bool tell)
{
    static const char *const words[] = { "{\"tell\":false}", "{\"tell\":true}" };
    const char *text = words[tell];
    const struct box_frame head = { .type = BOX_WAKE, .session = c->session->id, .len = (uint32_t)strlen(text) };
    c->awake++;
    box_group_hold(&c->session->group, c->number, false);
    box_primer_order(&c->session->keeper->cgroups.primer);
    box_send_fds(&c->link, &head, text, theirs, 3);
}

void box_copy_woken(struct box_session *s)
{
    struct box_copy *c = take(s->waking);
    if (c)
        copy_rest(c);
}

void box_copy_failed(struct box_session *s, const char *why)
{
    struct box_copy *c = take(s->waking);
    bool again = s->hurried && !box_limit_has_ended(c->pidfd); /* what died had left no room for a fork */
    log_warn("box_copy_failed", KV_I("session", s->id), KV_I("cell", c->place.cell), KV_S("why", why),
             KV_I("again", again));
    if (!again)
        copy_drop(c);
    box_session_sweep(s); /* what it started */
}
