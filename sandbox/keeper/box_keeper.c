/* box_keeper.c - see box_keeper.h. */
#include "box_keeper.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "box_check.h"
#include "box_machine.h"
#include "box_pool.h"
#include "box_zygote.h"
#include "files/box_data.h"
#include "json.h"
#include "log.h"
#include "session/box_copy.h"
#include "session/box_session.h"
#include "walls/box_seccomp.h"
#include "wire/box_fd.h"

enum { DAEMON_FRAMES_A_ROUND = 64, CHANNEL_FD = 3, LOOK_MS = 3600 * 1000 };

static const char *const tier_names[] = { "T0", "T1", "T2", "T3" };

/* ---- what the machine gives ---- */

static void problem(struct json *list, const char *what, const char *fix)
{
    struct json *v = json_new_object();
    json_set_str(v, "what", what);
    json_set_str(v, "fix", fix);
    json_push(list, v);
}

static enum box_tier judge(const struct box_keeper *k, bool zygote)
{
    if (!zygote || *k->escape)
        return BOX_T3;
    if (k->landlock < 1)
        return BOX_T2;
    return k->cgroups.kind == BOX_CGROUP_NONE ? BOX_T1 : BOX_T0;
}

static void name_problems(const struct box_keeper *k, struct json *list, const char *zygote_error)
{
    char text[400];
    struct box_machine m;
    box_machine_look(&m);
    if (zygote_error) {
        (void)snprintf(text, sizeof text, "boxes can't be made: %s", zygote_error);
        problem(list, text, box_machine_cure(&m, zygote_error));
        return;
    }
    if (*k->escape) {
        (void)snprintf(text, sizeof text, "an escape was not stopped when it was tried at the start: %s", k->escape);
        problem(list, text,
                "do not run the service on this machine before `sandbook doctor` passes; see docs/sandbox.md");
    }
    if (k->landlock < 1)
        problem(list, "the kernel has no Landlock", box_machine_cure_landlock(&m));
    if (k->cgroups.kind == BOX_CGROUP_NONE) {
        (void)snprintf(text, sizeof text,
                       "no control groups (%s): memory is limited per process and watched, not for a box "
                       "as a whole",
                       *k->cgroups.why ? k->cgroups.why : "not delegated");
        problem(list, text, box_machine_cure_groups(&m));
    }
    if (k->tier > k->min_tier) {
        (void)snprintf(text, sizeof text, "this machine gives tier %s, the configuration wants at least %s",
                       tier_names[k->tier], tier_names[k->min_tier]);
        problem(list, text, "mend what is named above, or lower box.min_tier knowingly");
    }
}

static struct json *features(const struct box_keeper *k)
{
    static const char *const kinds[] = { "none", "v1", "v2" };
    struct json *v = json_new_object();
    json_set_str(v, "cgroups", kinds[k->cgroups.kind]);
    json_set_bool(v, "cgroup_kill", k->cgroups.part[BOX_CG_UNIFIED] != NULL);
    json_set_bool(v, "freezer", k->cgroups.part[BOX_CG_UNIFIED] || k->cgroups.part[BOX_CG_FREEZER]);
    json_set_bool(v, "copies_frozen", k->cgroups.part[BOX_CG_UNIFIED] || k->cgroups.part[BOX_CG_FREEZER]);
    json_set_bool(v, "cpu_limit", k->cgroups.part[BOX_CG_CPU] != NULL);
    json_set_int(v, "landlock", k->landlock);
    json_set_bool(v, "seccomp", true);
    struct err e;
    bool laid = k->base.pidfd >= 0 && box_data_probe(&k->base, k->image, &e) == 0;
    json_set_str(v, "files", laid ? "overlay" : "copied");
    if (!laid && k->base.pidfd >= 0)
        log_info("box_no_overlay", KV_E(&e));
    json_set_str(v, "ids", k->base.root ? "own uid per session" : "one uid for all sessions");
    return v;
}

void box_keeper_report(struct box_keeper *k, const char *error)
{
    AUTO(str_clear) struct str text = STR_INIT(BOX_PAYLOAD_MAX);
    if (k->reported)
        return;
    if (!error && !k->looked) { /* nobody is served before that has passed */
        box_check_look(k);
        return;
    }
    autojson struct json *v = json_new_object();
    struct json *problems = json_new_array();
    k->reported = true;
    k->tier = judge(k, error == NULL);
    k->ready = error == NULL;
    k->refused = !k->ready || k->tier > k->min_tier;
    if (error)
        (void)snprintf(k->problem, sizeof k->problem, "%s", error);
    name_problems(k, problems, error);
    json_set_str(v, "tier", tier_names[k->tier]);
    json_set(v, "features", features(k));
    json_set(v, "problems", problems);
    if (*k->escape)
        json_set_str(v, "escape", k->escape);
    json_print(&text, v);
    box_send_text(&k->daemon, BOX_READY, 0, 0, &text);
    log_info("box_ready", KV_S("tier", tier_names[k->tier]), KV_I("refused", k->refused),
             KV_S("report", str_peek(&text)));
    box_keeper_flush(k);
}

/* ---- the base ---- */

/* The end of whom the base's init adopted: a head whose zygote is gone, or nobody of interest. */
static void base_exit(struct box_keeper *k, const struct box_msg *msg)
{
    int32_t end[2];
    if (msg->head.len != sizeof end)
        return;
    memcpy(end, msg->payload, sizeof end);
    BOX_ROLL_EACH (s, &k->sessions.all, all)
        if (box_session_is_child(s, end[0])) {
            box_session_orphaned(s, end[1]);
            return;
        }
}

/* Without it there are no namespaces to fork into: it took every box along. The daemon starts another keeper. */
static void base_gone(struct box_keeper *k)
{
    box_loop_drop(&k->base_src);
    if (k->reported) {
        log_error("base_gone", KV_I("pid", k->base.pid));
        box_loop_stop(k->loop);
    } else {
        box_keeper_report(k, "the base of all boxes ended at once; the log has the reason");
    }
}

void box_keeper_watch(struct box_keeper *k, pid_t outer)
{
    const uint32_t pid = (uint32_t)outer;
    box_send(&k->base.channel, BOX_WATCH, 0, 0, &pid, sizeof pid);
}

static void on_base(void *ud, uint32_t events)
{
    struct box_keeper *k = ud;
    static struct box_msg msg;
    (void)events;
    enum box_recv got = box_recv(k->base.channel.fd, &msg, false);
    if (got == BOX_RECV_FRAME && msg.head.type == BOX_SWEPT && k->zygotes.made == 0) {
        box_keeper_watch(k, 0);
        box_zygotes_begin(k);
    } else if (got == BOX_RECV_FRAME && msg.head.type == BOX_EXIT) {
        base_exit(k, &msg);
    } else if (got == BOX_RECV_FRAME && msg.head.type == BOX_FAILED) {
        autofree char *why = xstrndup((const char *)msg.payload, msg.head.len);
        box_keeper_report(k, why);
    } else if (got == BOX_RECV_END || got == BOX_RECV_BAD) {
        base_gone(k);
    }
    box_keeper_flush(k);
}

/* ---- the daemon ---- */

/* Why a session can't be opened now; NULL: it can. */
static const char *why_not(const struct box_keeper *k, uint32_t id)
{
    if (id == 0 || box_session_find(k, id))
        return "that session is there already";
    if (!k->ready)
        return *k->problem ? k->problem : "the keeper is not ready";
    return k->refused ? "this machine's tier is below the configured minimum" : NULL;
}

static void open_session(struct box_keeper *k, struct box_msg *msg)
{
    struct err e;
    autojson struct json *limits = NULL;
    uint32_t id = msg->head.session;
    const char *why = why_not(k, id);
    if (!why && msg->head.len > 0 &&
        json_parse(&limits, (const char *)msg->payload, msg->head.len, BOX_FRAME_MAX, &e) < 0)
        why = e.msg;
    int files_fd = msg->fd_n > 0 ? box_fd_take(&msg->fds[0]) : -1;
    const struct box_terms terms = box_terms_from(limits);
    if (!why && box_pool_take(k, id, &terms, files_fd))
        return;
    if (!why && !box_session_open(k, id, limits, box_fd_take(&files_fd), &e))
        why = e.msg;
    if (files_fd >= 0)
        (void)close(files_fd);
    if (why)
        box_answer_failed(k, id, 0, why);
}

/* How many boxes are to be ready, on what terms, and when a zygote is replaced. */
static void set_pool(struct box_keeper *k, const struct box_msg *msg)
{
    struct err e;
    autojson struct json *wish = NULL;
    if (json_parse(&wish, (const char *)msg->payload, msg->head.len, BOX_FRAME_MAX, &e) < 0) {
        log_warn("box_pool", KV_E(&e));
        return;
    }
    int64_t forks = json_int_or(wish, "zygote_forks", 0), age = json_int_or(wish, "zygote_age_ms", 0);
    k->zygotes.forks_max = forks > 0 && forks <= INT32_MAX ? (uint32_t)forks : 0;
    k->zygotes.age_max_ms = age > 0 ? age : 0;
    k->spare_bytes = json_int_or(wish, "spare_bytes", 0);
    k->memory_look_ms = 0;
    box_pool_set(k, wish);
}

static void daemon_frame(struct box_keeper *k, struct box_msg *msg)
{
    k->wanted_ms = time_mono_ms();
    if (msg->head.type == BOX_POOL) {
        set_pool(k, msg);
        return;
    }
    if (msg->head.type == BOX_OPEN) {
        open_session(k, msg);
        return;
    }
    if (msg->head.type == BOX_CHECK) {
        box_check_start(k, msg->head.request);
        return;
    }
    struct box_session *s = box_session_find(k, msg->head.session);
    if (s && !s->check)
        box_session_frame(s, msg);
    else if (!(msg->head.flags & BOX_MORE) && msg->head.type != BOX_CANCEL)
        box_answer_failed(k, msg->head.session, msg->head.request, "no such session");
}

static void on_daemon(void *ud, uint32_t events)
{
    struct box_keeper *k = ud;
    static struct box_msg msg;
    if (events & EPOLLIN) {
        for (int i = 0; i < DAEMON_FRAMES_A_ROUND; i++) {
            enum box_recv got = box_recv(k->daemon.fd, &msg, true);
            if (got == BOX_RECV_NOTHING)
                break;
            if (got != BOX_RECV_FRAME) { /* gone, or not the daemon we were built for */
                log_info("daemon_gone", KV_I("malformed", got == BOX_RECV_BAD));
                box_loop_stop(k->loop);
                return;
            }
            daemon_frame(k, &msg);
            box_msg_clear(&msg);
        }
    } else if (events & (EPOLLHUP | EPOLLERR)) {
        box_loop_stop(k->loop);
        return;
    }
    box_keeper_flush(k);
}

static void stall(struct box_keeper *k, bool stalled)
{
    if (k->stalled == stalled)
        return;
    k->stalled = stalled;
    BOX_ROLL_EACH (s, &k->sessions.busy, busy)
        box_session_stall(s, stalled);
}

void box_keeper_flush(struct box_keeper *k)
{
    if (!k->daemon_src)
        return;
    int r = box_link_flush(&k->daemon);
    if (r < 0) {
        box_loop_stop(k->loop);
        return;
    }
    box_loop_want(k->daemon_src, EPOLLIN | (r > 0 ? (uint32_t)EPOLLOUT : 0));
    if (k->daemon.queued > KEEPER_QUEUE_HIGH)
        stall(k, true);
    else if (k->daemon.queued < KEEPER_QUEUE_LOW)
        stall(k, false);
    BOX_ROLL_EACH (s, &k->sessions.busy, busy)
        if (s->head.link.first && s->head.src)
            box_loop_want(s->head.src, EPOLLOUT | (k->stalled ? 0 : (uint32_t)EPOLLIN));
    box_zygotes_flush(k);
}

/* ---- life ---- */

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* At the start: now the daemon may hear what the machine gives. Later: what would not be served is not served on; the daemon
 * starts another keeper, which looks anew. */
static void looked(struct box_keeper *k)
{
    k->looking = false;
    k->looked = true;
    k->look_ms = time_mono_ms() + LOOK_MS;
    if (!k->reported)
        box_keeper_report(k, NULL);
    else if (*k->escape)
        box_loop_stop(k->loop);
}

static int64_t tick(void *ud, int64_t now_ms)
{
    struct box_keeper *k = ud;
    if (k->looking && box_check_looked(k))
        looked(k);
    else if (k->ready && !k->refused && now_ms >= k->look_ms)
        box_check_look(k);
    int64_t next = k->ready && !k->refused ? k->look_ms : INT64_MAX;
    BOX_ROLL_EACH (s, &k->sessions.busy, busy)
        box_session_tick(s, now_ms);
    BOX_ROLL_EACH (s, &k->sessions.busy, busy) {
        next = sooner(next, s->due_ms);
        if (box_session_is_at_rest(s))
            box_roll_rest(s);
    }
    bool quiet = box_pool_is_quiet(k);
    next = sooner(next, box_zygotes_tick(k, now_ms, quiet));
    next = sooner(next, box_pool_tick(k, now_ms, quiet));
    next = sooner(next, box_copies_tick(k, now_ms));
    box_keeper_flush(k);
    return next;
}

static int start_base(struct box_keeper *k, struct err *e)
{
    if (!box_collect_works())
        return err_set(e, ERR_CONFIG, "the kernel has no openat2 (5.6 or newer is needed)");
    if (box_seccomp_fd(&k->bpf_fd, e) < 0)
        return -1;
    const struct box_base_how how = {
        .image = k->image, .support = k->support, .uid_base = k->uid_base, .once = k->once
    };
    return box_base_start(&k->base, &how, e) < 0 ? -1 : box_keeper_confine(e);
}

int box_keeper_start(struct box_keeper *k, struct err *e)
{
    k->bpf_fd = -1;
    k->base = (struct box_base){ .pidfd = -1, .channel = BOX_LINK_INIT };
    k->daemon = (struct box_link){ .fd = CHANNEL_FD };
    if (box_loop_new(&k->loop, tick, k, e) < 0)
        return -1;
    k->daemon_src = box_loop_add(k->loop, k->daemon.fd, EPOLLIN, on_daemon, k);
    box_cgroups_open(&k->cgroups);
    if (start_base(k, e) < 0) {
        log_error("box_base", KV_E(e));
        box_keeper_report(k, e->msg); /* doctor wants to hear it: stay, and refuse */
        return 0;
    }
    k->base_src = box_loop_add(k->loop, k->base.channel.fd, EPOLLIN, on_base, k);
    return 0;
}

/* The base's end takes every box along; then each init is waited for and its groups are removed. */
void box_keeper_stop(struct box_keeper *k)
{
    k->stopping = true;
    box_check_stop(k);
    box_loop_drop(&k->daemon_src);
    box_loop_drop(&k->base_src);
    box_zygotes_stop(k);
    BOX_ROLL_EACH (s, &k->sessions.all, all)
        box_group_kill(&s->group);
    box_base_stop(&k->base);
    while (!LIST_EMPTY(&k->sessions.all))
        box_session_abandon(LIST_FIRST(&k->sessions.all));
    box_cgroups_close(&k->cgroups);
    box_link_close(&k->daemon);
    if (k->bpf_fd >= 0)
        (void)close(k->bpf_fd);
    box_loop_free(k->loop);
}
