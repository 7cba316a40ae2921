/* box_zygotes.c - see box_zygotes.h. */
#include "box_zygotes.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "box_keeper.h"
#include "box_pool.h"
#include "box_zygote.h"
#include "json.h"
#include "limits/box_limit.h"
#include "limits/box_watch.h"
#include "log.h"
#include "session/box_session.h"

enum {
    LOOK_AGAIN_MS = 200, /* reading what a zygote shares takes some milliseconds */
    FAILURES_MAX = 6,    /* in a row; the daemon may have better luck with another keeper */
    AGAIN_MS = 250,      /* after the first failure; twice that after the next */
    LATE_FACTOR = 2,     /* so much past its time a zygote is replaced although the machine is busy */
    WARM_MS = 60000,
    FILE_BYTES = 256 << 20,
    SPARE_PIDS = 2, /* the two forks of a copy that is being made */
};

struct box_zygote {
    struct box_zygote *next;
    struct box_keeper *keeper;
    uint32_t number; /* never 0 */
    int pidfd;
    struct box_link channel;
    struct box_source *src, *end_src;
    uint32_t forks;
    int64_t born_ms;
};

static void on_zygote(void *ud, uint32_t events);
static void on_end(void *ud, uint32_t events);

/* ---- coming ---- */

static void failed(struct box_keeper *k)
{
    struct box_zygotes *z = &k->zygotes;
    z->again_ms = time_mono_ms() + ((int64_t)AGAIN_MS << z->failures);
    if (++z->failures < FAILURES_MAX || z->now)
        return;
    log_error("zygotes_failed", KV_I("times", z->failures));
    box_loop_stop(k->loop);
}

static void start(struct box_keeper *k)
{
    struct err e;
    struct box_zygotes *all = &k->zygotes;
    struct box_zygote *z = xcalloc(1, sizeof *z);
    *z = (struct box_zygote){ .keeper = k, .number = ++all->made, .born_ms = time_mono_ms(), .channel = BOX_LINK_INIT };
    if (box_zygote_start(&k->base, k->bpf_fd, &z->pidfd, &z->channel, &e) < 0) {
        log_error("zygote_start", KV_E(&e));
        free(z);
        box_keeper_report(k, e.msg);
        failed(k);
        return;
    }
    z->src = box_loop_add(k->loop, z->channel.fd, EPOLLIN, on_zygote, z);
    z->end_src = box_loop_add(k->loop, z->pidfd, EPOLLIN, on_end, z);
    all->next = z;
}

void box_zygotes_begin(struct box_keeper *k)
{
    start(k);
}

/* Not asked any more. It reads what it was asked already, sees the end of its channel, and goes. */
static void leave(struct box_zygote *z)
{
    struct box_zygotes *all = &z->keeper->zygotes;
    log_info("zygote_leaves", KV_I("number", z->number), KV_I("forks", z->forks),
             KV_I("age_ms", time_mono_ms() - z->born_ms));
    z->next = all->old;
    all->old = z;
    (void)shutdown(z->channel.fd, SHUT_WR);
}

static void hello(struct box_zygote *z, const struct box_msg *msg)
{
    struct err e;
    struct box_keeper *k = z->keeper;
    autojson struct json *v = NULL;
    if (k->zygotes.next != z)
        return;
    if (json_parse(&v, (const char *)msg->payload, msg->head.len, BOX_FRAME_MAX, &e) < 0)
        log_warn("zygote_hello", KV_E(&e));
    k->landlock = (int)json_int_or(v, "landlock", 0);
    log_info("zygote_ready", KV_I("number", z->number), KV_S("python", json_str_or(v, "python", "?")),
             KV_I("threads", json_int_or(v, "threads", 0)), KV_I("data_bytes", json_int_or(v, "data_bytes", 0)),
             KV_I("hot_pages", json_int_or(v, "hot_pages", 0)));
    struct box_zygote *before = k->zygotes.now;
    k->zygotes.now = z;
    k->zygotes.next = NULL;
    if (before) {
        leave(before);
        box_pool_clear(k);
    }
    box_keeper_report(k, NULL);
    BOX_ROLL_EACH (s, &k->sessions.busy, busy)
        box_session_zygote_ready(s);
}

/* ---- what they say ---- */

static void on_frame(struct box_zygote *z, const struct box_msg *msg)
{
    struct box_keeper *k = z->keeper;
    if (msg->head.type == BOX_HELLO) {
        hello(z, msg);
    } else if (msg->head.type == BOX_FAILED) {
        autofree char *why = xstrndup((const char *)msg->payload, msg->head.len);
        log_error("zygote_failed", KV_I("number", z->number), KV_S("why", why));
        box_keeper_report(k, why);
    } else if ((msg->head.type == BOX_FORKED || msg->head.type == BOX_EXIT) && msg->head.len == sizeof(int32_t)) {
        int32_t value = 0;
        memcpy(&value, msg->payload, sizeof value);
        struct box_session *s = box_session_of_serial(k, msg->head.session);
        if (s)
            box_session_zygote(s, &msg->head, value);
    }
}

static void on_zygote(void *ud, uint32_t events)
{
    struct box_zygote *z = ud;
    static struct box_msg msg;
    if ((events & EPOLLOUT) && box_link_flush(&z->channel) != 1)
        box_loop_want(z->src, EPOLLIN);
    enum box_recv got = box_recv(z->channel.fd, &msg, false);
    if (got == BOX_RECV_FRAME)
        on_frame(z, &msg);
    else if (got != BOX_RECV_NOTHING)
        box_loop_want(z->src, 0); /* the rest is told by its pidfd */
}

/* ---- going ---- */

static void take_out(struct box_zygote *z)
{
    struct box_zygotes *all = &z->keeper->zygotes;
    if (all->now == z)
        all->now = NULL;
    if (all->next == z)
        all->next = NULL;
    for (struct box_zygote **at = &all->old; *at; at = &(*at)->next) {
        if (*at == z) {
            *at = z->next;
            break;
        }
    }
}

static void zygote_free(struct box_zygote *z)
{
    box_loop_drop(&z->src);
    box_loop_drop(&z->end_src);
    box_link_close(&z->channel);
    (void)close(z->pidfd);
    free(z);
}

/* Its end, wanted or not. Heads of its that are there have another parent now; the others are asked for again. */
static void on_end(void *ud, uint32_t events)
{
    struct box_zygote *z = ud;
    struct box_keeper *k = z->keeper;
    static struct box_msg msg;
    siginfo_t end = { 0 };
    (void)events;
    while (box_recv(z->channel.fd, &msg, false) == BOX_RECV_FRAME)
        on_frame(z, &msg);
    (void)waitid(P_PIDFD, (id_t)z->pidfd, &end, WEXITED);
    bool was_next = k->zygotes.next == z, was_now = k->zygotes.now == z;
    const uint32_t number = z->number;
    take_out(z);
    zygote_free(z);
    if (was_now || was_next) {
        log_error("zygote_gone", KV_I("number", number), KV_I("code", end.si_code), KV_I("status", end.si_status));
        if (was_next && !k->ready)
            box_keeper_report(k, "the interpreter ended while it was loading; the log has the reason");
        failed(k);
    }
    BOX_ROLL_EACH (s, &k->sessions.all, all)
        box_session_zygote_gone(s, number);
    box_keeper_flush(k);
}

/* ---- asking ---- */

/* Copies are of the same uid. Where a group has the limit, this one leaves room for forks that the group will refuse: they count as
 * long as they are tried, and a bomb must not keep a copy from waking. */
static uint32_t pids_of(const struct box_session *s)
{
    bool grouped = s->keeper->cgroups.kind != BOX_CGROUP_NONE;
    return s->pids * (grouped ? 2 : 1) + s->copy_max + SPARE_PIDS;
}

void box_zygotes_ask(struct box_session *s, const int theirs[3])
{
    struct box_zygote *z = s->keeper->zygotes.now;
    const struct box_fork how = {
        .uid = s->keeper->base.root ? s->slot + 1 : 0,
        .pids = pids_of(s),
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
        .type = BOX_FORK, .session = s->serial, .request = s->head.generation, .len = sizeof how
    };
    box_primer_order(&s->keeper->cgroups.primer);
    z->forks++;
    s->head.zygote = z->number;
    box_send_fds(&z->channel, &head, &how, fds, BOX_FORK_FDS);
    box_zygotes_flush(s->keeper);
}

int64_t box_zygotes_inherited(struct box_keeper *k)
{
    struct box_zygotes *z = &k->zygotes;
    const int64_t now_ms = time_mono_ms();
    if (z->now && now_ms >= z->inherited_ms + LOOK_AGAIN_MS) {
        z->inherited_bytes = box_watch_inherited(z->now->pidfd);
        z->inherited_ms = now_ms;
    }
    return z->now ? z->inherited_bytes : 0;
}

void box_zygotes_flush(struct box_keeper *k)
{
    struct box_zygote *z = k->zygotes.now;
    if (z && z->src && z->channel.first)
        box_loop_want(z->src, EPOLLIN | EPOLLOUT);
}

void box_zygotes_proved(struct box_keeper *k, uint32_t number)
{
    if (k->zygotes.now && k->zygotes.now->number == number)
        k->zygotes.failures = 0;
}

/* ---- the schedule ---- */

/* When the present one is to be replaced, by its age; now_ms: by its forks. */
static int64_t due_ms(const struct box_zygotes *all, int64_t now_ms, int64_t factor)
{
    const struct box_zygote *z = all->now;
    if (all->forks_max > 0 && z->forks >= all->forks_max * factor)
        return now_ms;
    return all->age_max_ms > 0 ? z->born_ms + all->age_max_ms * factor : INT64_MAX;
}

int64_t box_zygotes_tick(struct box_keeper *k, int64_t now_ms, bool idle)
{
    struct box_zygotes *all = &k->zygotes;
    if (all->made == 0 || k->stopping)
        return INT64_MAX;
    if (all->next) {
        int64_t late = all->next->born_ms + WARM_MS;
        if (now_ms >= late)
            box_limit_signal(all->next->pidfd, SIGKILL);
        return now_ms >= late ? INT64_MAX : late;
    }
    if (all->again_ms > now_ms)
        return all->again_ms;
    if (!all->now && !k->ready)
        return INT64_MAX; /* the first one failed, and that is told */
    if (!all->now || due_ms(all, now_ms, idle ? 1 : LATE_FACTOR) <= now_ms)
        start(k);
    if (all->next)
        return all->next->born_ms + WARM_MS;
    int64_t due = due_ms(all, now_ms, LATE_FACTOR), soon = due_ms(all, now_ms, 1);
    return soon > now_ms ? soon : due;
}

void box_zygotes_stop(struct box_keeper *k)
{
    struct box_zygote *rows[] = { take(k->zygotes.now), take(k->zygotes.next), take(k->zygotes.old) };
    for (size_t i = 0; i < countof(rows); i++)
        for (struct box_zygote *z = rows[i], *after = NULL; z; z = after) {
            after = z->next;
            zygote_free(z);
        }
}
