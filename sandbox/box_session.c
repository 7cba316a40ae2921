/* box_session.c - see box_session.h: boxes come and go here; heads are box_head.c's, copies
 * box_copy.c's, requests box_request.c's. */
#include "box_session.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "box_check.h"
#include "box_copy.h"
#include "box_data.h"
#include "box_fd.h"
#include "box_limit.h"
#include "box_pool.h"
#include "box_watch.h"
#include "box_zygote.h"
#include "log.h"

enum {
    BUILD_MS = 10000,
    SWEEP_MS = 10000,
    CLOSE_RETRY_MS = 10,
    CLOSE_TRIES = 200,
    VAIN_MAX = 8,
};

static const int64_t MIB = 1 << 20;
static const char *const state_names[BOX_STATES] = { "build", "fork",  "idle", "run",   "put",
                                                     "copy",  "sweep", "wake", "enter", "close" };

static const uint16_t may_follow[BOX_STATES] = {
    /* all else is a bug here */
    [BOX_ST_BUILD] = 1 << BOX_ST_FORK | 1 << BOX_ST_CLOSE,
    [BOX_ST_FORK] = 1 << BOX_ST_FORK | 1 << BOX_ST_ENTER | 1 << BOX_ST_CLOSE,
    [BOX_ST_IDLE] =
        1 << BOX_ST_RUN | 1 << BOX_ST_PUT | 1 << BOX_ST_COPY | 1 << BOX_ST_SWEEP | 1 << BOX_ST_WAKE | 1 << BOX_ST_CLOSE,
    [BOX_ST_RUN] = 1 << BOX_ST_IDLE | 1 << BOX_ST_SWEEP | 1 << BOX_ST_WAKE | 1 << BOX_ST_CLOSE,
    [BOX_ST_PUT] = 1 << BOX_ST_IDLE | 1 << BOX_ST_SWEEP | 1 << BOX_ST_CLOSE,
    [BOX_ST_COPY] = 1 << BOX_ST_IDLE | 1 << BOX_ST_SWEEP | 1 << BOX_ST_CLOSE,
    [BOX_ST_SWEEP] = 1 << BOX_ST_FORK | 1 << BOX_ST_WAKE | 1 << BOX_ST_CLOSE,
    [BOX_ST_WAKE] = 1 << BOX_ST_ENTER | 1 << BOX_ST_SWEEP | 1 << BOX_ST_CLOSE,
    [BOX_ST_ENTER] = 1 << BOX_ST_IDLE | 1 << BOX_ST_SWEEP | 1 << BOX_ST_CLOSE,
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
        if (s->id == id && !s->pooled)
            return s;
    return NULL;
}

struct box_session *box_session_of_serial(const struct box_keeper *k, uint32_t serial)
{
    struct box_session *s = k->sessions;
    while (s && s->serial != serial)
        s = s->next;
    return s;
}

void box_session_give_up(struct box_session *s, const char *why)
{
    log_error("box_failed", KV_I("session", s->id), KV_S("state", state_names[s->state]), KV_S("why", why));
    bool opening = s->opening;
    s->opening = false;
    if (s->pooled)
        box_pool_failed(s->keeper);
    if (opening)
        box_answer(s, &(struct box_answer){ .verdict = "failed", .state = "lost", .why = why, .peak_bytes = -1 });
    if (s->request.id != 0)
        box_request_fail(s, "failed", why);
    if (s->state != BOX_ST_CLOSE)
        box_session_close(s);
}

/* The descriptor is of a folder that we made, and its mount's root: there is no path to be led astray on. */
void box_session_mend_folder(const struct box_session *s)
{
    char path[40];
    struct stat st;
    if (s->data_fd < 0 || fstat(s->data_fd, &st) < 0 || (st.st_mode & S_IRWXU) == S_IRWXU)
        return;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", s->data_fd);
    if (chmod(path, (st.st_mode & 0777) | S_IRWXU) < 0)
        log_warn("box_folder", KV_I("session", s->id), KV_I("errno", errno));
}

/* ---- the end of a head ---- */

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
    box_cgroups_prime(&s->keeper->cgroups);
    size_t n = box_copies_inner(s, spare, countof(spare));
    box_send(&s->init.channel, BOX_SWEEP, s->id, 0, spare, n * sizeof *spare);
}

bool box_session_can_hurry(const struct box_session *s)
{
    bool may = may_follow[s->state] >> BOX_ST_WAKE & 1;
    return may && s->request.fd < 0 && box_group_can_kill(&s->group);
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

/* Init tells how a head ended that came from a copy. */
static void init_exit(struct box_session *s, const struct box_msg *msg)
{
    uint32_t end[2];
    if (msg->head.len != sizeof end)
        return;
    memcpy(end, msg->payload, sizeof end);
    if (s->head.inner != 0 && end[0] == (uint32_t)s->head.inner)
        head_ended(s, (int)end[1]);
}

/* ---- the box ---- */

static struct box_sizes sizes_of(const struct box_session *s);

static int enter_group(void *ud)
{
    const struct box_session *s = ud;
    return box_group_enter(&s->group);
}

int box_session_mount(struct box_session *s, int files_fd, struct err *e)
{
    struct box_data data;
    const struct box_data_how how = {
        .base = &s->keeper->base,
        .place = s->keeper->image,
        .init_pidfd = s->init.pidfd,
        .files_fd = files_fd,
        .sizes = sizes_of(s),
        .enter = enter_group,
        .ud = s,
    };
    if (box_data_mount(&data, &how, e) < 0)
        return err_wrap(e, "files");
    if (*data.copied)
        log_warn("box_files_copied", KV_I("session", s->id), KV_S("why", data.copied));
    (void)snprintf(s->missing, sizeof s->missing, "%s", data.missing);
    if (s->upper_fd >= 0)
        (void)close(s->upper_fd);
    (void)close(s->data_fd);
    s->data_fd = data.data_fd;
    s->upper_fd = data.upper_fd;
    box_answer_files(s, false); /* what it begins with is no news */
    return 0;
}

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
        box_head_fork(s);
    } else if (got == BOX_RECV_FRAME && msg.head.type == BOX_SWEPT) {
        s->swept = true;
        sweep_check(s);
    } else if (got == BOX_RECV_FRAME && msg.head.type == BOX_EXIT) {
        init_exit(s, &msg);
    } else if (got == BOX_RECV_FRAME && msg.head.type == BOX_FAILED) {
        autofree char *why = xstrndup((const char *)msg.payload, msg.head.len);
        box_session_give_up(s, why);
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
    box_copies_clear(s);
    box_head_close(s);
    str_clear(&s->head.claim.body);
    box_request_clear(&s->request);
    box_part_clear(&s->incoming);
    box_listing_clear(&s->files);
    box_watch_free(&s->watch);
    box_loop_drop(&s->init_src);
    box_link_close(&s->init.channel);
    const int fds[] = { s->data_fd, s->upper_fd, s->files_fd };
    for (size_t i = 0; i < countof(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
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
        box_session_give_up(s, "the box ended");
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
    box_copies_clear(s); /* the frozen of v1 would keep init from ending */
    box_head_close(s);
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
    box_copies_clear(s);
    for (int i = 0; i < CLOSE_TRIES && !box_group_close(&s->group); i++)
        (void)usleep(CLOSE_RETRY_MS * 1000);
    session_free(s);
}

/* tmpfs is memory: all of it together must stay well below the limit, or a full disk is an OOM kill (section 0). */
static uint64_t scratch_bytes(const struct box_session *s)
{
    const uint64_t most = 64 << 20;
    return s->memory_bytes / 8 < most ? s->memory_bytes / 8 : most;
}

static void cap_disk(struct box_session *s)
{
    uint64_t room = s->memory_bytes / 2 - 2 * scratch_bytes(s);
    if (s->disk_bytes <= room)
        return;
    log_info("box_disk_cut", KV_I("session", s->id), KV_I("wanted", s->disk_bytes), KV_I("bytes", room));
    s->disk_bytes = room;
}

static struct box_sizes sizes_of(const struct box_session *s)
{
    const uint64_t scratch = scratch_bytes(s);
    return (struct box_sizes){
        .uid = s->keeper->base.root ? s->slot + 1 : 0,
        .data_bytes = s->disk_bytes,
        .tmp_bytes = scratch,
        .shm_bytes = scratch,
    };
}

static int start(struct box_session *s, struct err *e)
{
    const struct box_group_limits limits = { .memory_bytes = s->memory_bytes, .pids = s->pids, .cpu_pct = s->cpu_pct };
    cap_disk(s);
    const struct box_sizes sizes = sizes_of(s);
    if (box_group_open(&s->group, &s->keeper->cgroups, s->serial, &limits, e) < 0 ||
        box_init_start(&s->init, &s->keeper->base, &sizes, enter_group, s, e) < 0)
        return -1;
    s->init_src = box_loop_add(s->keeper->loop, s->init.channel.fd, EPOLLIN, on_init, s);
    s->init_end_src = box_loop_add(s->keeper->loop, s->init.pidfd, EPOLLIN, on_init_end, s);
    s->data_fd = s->init.data_fd;
    s->init_pid = s->init.pid;
    if (s->init.up)
        box_head_fork(s);
    return 0;
}

static uint32_t free_slot(const struct box_keeper *k)
{
    uint32_t slot = 0;
    while (slot < KEEPER_SLOTS && k->slots[slot])
        slot++;
    return slot;
}

static uint64_t limit_of(const struct json *limits, const char *key, int64_t otherwise, int64_t least, int64_t most)
{
    int64_t n = json_int_or(limits, key, otherwise);
    return (uint64_t)(n < least ? least : n > most ? most : n);
}

struct box_terms box_terms_from(const struct json *limits)
{
    return (struct box_terms){
        .memory_bytes = limit_of(limits, "memory_bytes", MIB * 1024, MIB * 128, MIB * 1024 * 1024),
        .disk_bytes = limit_of(limits, "disk_bytes", MIB * 256, MIB, MIB * 1024 * 1024),
        .pids = (uint32_t)limit_of(limits, "pids", 128, 8, 30000),
        .cpu_pct = (uint32_t)limit_of(limits, "cpu_pct", 100, 0, 100000),
        .copies = (uint32_t)limit_of(limits, "copies", 0, 0, BOX_COPIES_MAX),
    };
}

static struct box_session *session_new(struct box_keeper *k, uint32_t id, uint32_t slot, const struct box_terms *terms)
{
    struct box_session *s = xcalloc(1, sizeof *s);
    *s = (struct box_session){
        .next = k->sessions,
        .keeper = k,
        .id = id,
        .serial = ++k->serials,
        .slot = slot,
        .pooled = id == 0,
        .state = BOX_ST_BUILD,
        .due_ms = time_mono_ms() + BUILD_MS,
        .terms = *terms,
        .memory_bytes = terms->memory_bytes,
        .disk_bytes = terms->disk_bytes,
        .pids = terms->pids,
        .cpu_pct = terms->cpu_pct,
        .copy_max = terms->copies,
        .init = { .pidfd = -1, .data_fd = -1, .channel = BOX_LINK_INIT },
        .head = { .pidfd = -1, .ended = true, .link = BOX_LINK_INIT, .pipe = { -1, -1 } },
        .data_fd = -1,
        .upper_fd = -1,
        .files_fd = -1,
        .incoming.body = STR_INIT(BOX_REQUEST_MAX),
        .opened_us = box_now_us(),
        .opening = id != 0,
    };
    box_request_clear(&s->request);
    k->sessions = s;
    k->slots[slot] = 1;
    return s;
}

struct box_session *box_session_make(struct box_keeper *k, uint32_t id, const struct box_terms *terms, struct err *e)
{
    uint32_t slot = free_slot(k);
    if (slot == KEEPER_SLOTS) {
        (void)err_set(e, ERR_LIMIT, "no more sessions: every uid is in use");
        return NULL;
    }
    struct box_session *s = session_new(k, id, slot, terms);
    if (start(s, e) < 0) {
        log_error("box_open_failed", KV_I("session", id), KV_E(e));
        (void)box_group_close(&s->group);
        session_free(s);
        return NULL;
    }
    return s;
}

struct box_session *box_session_open(struct box_keeper *k, uint32_t id, const struct json *limits, int take_files_fd,
                                     struct err *e)
{
    const struct box_terms terms = box_terms_from(limits);
    autoclose int files_fd = take_files_fd;
    struct box_session *s = box_session_make(k, id, &terms, e);
    if (s)
        s->files_fd = box_fd_take(&files_fd);
    return s;
}

/* Its head stands in an empty folder and has seen nothing: it goes over by itself (folder.py). */
static int first_files(struct box_session *s)
{
    struct err e;
    autoclose int fd = box_fd_take(&s->files_fd);
    if (fd < 0 || box_session_mount(s, fd, &e) == 0)
        return 0;
    box_session_give_up(s, e.msg);
    return -1;
}

void box_session_hand_out(struct box_session *s, uint32_t id, int take_files_fd)
{
    s->id = id;
    s->files_fd = take_files_fd;
    s->pooled = false;
    s->opened_us = box_now_us();
    s->opening = true;
    if (s->state != BOX_ST_IDLE)
        return;
    box_send(&s->head.link, BOX_OWN, id, 0, NULL, 0);
    box_session_opened(s);
}

void box_session_opened(struct box_session *s)
{
    if (!s->opening || first_files(s) < 0)
        return;
    const struct box_answer a = {
        .verdict = "ok", .state = "lost", .peak_bytes = -1, .took_us = box_now_us() - s->opened_us
    };
    s->opening = false;
    box_answer(s, &a);
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
    if (s->head.hung_up && (may_follow[s->state] >> BOX_ST_SWEEP & 1) && s->state != BOX_ST_WAKE) {
        box_head_broke_rule(s, "it closed its channel");
        return;
    }
    switch (s->state) {
    case BOX_ST_BUILD:
    case BOX_ST_FORK: box_session_give_up(s, "the box took too long to start"); break;
    case BOX_ST_RUN:
    case BOX_ST_PUT: box_request_tick(s, now_ms); break;
    case BOX_ST_COPY: box_copy_tick(s, now_ms); break;
    case BOX_ST_ENTER: box_head_enter(s); break;
    case BOX_ST_WAKE: box_copy_failed(s, "it took too long"); break;
    case BOX_ST_SWEEP: box_session_give_up(s, "processes that can't be killed"); break;
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
