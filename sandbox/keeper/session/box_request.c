/* box_request.c - see box_session.h: what a session is asked for, from the daemon's frame to the answer. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "box_check.h"
#include "box_checkpoint.h"
#include "box_copy.h"
#include "box_session.h"
#include "limits/box_limit.h"
#include "limits/box_watch.h"
#include "log.h"
#include "wire/box_fd.h"

enum {
    TIMEOUT_MS = 60000, /* where the daemon names none */
    GRACE_MS = 2000,
    PUT_MS = 120000,
    WATCH_MS = 250,    /* between two looks of the watchdog */
    WATCH_WAIT_MS = 5, /* for its answer; what comes later is there at the next */
    SQUEEZE_MS = 100,  /* between two looks whether copies have to make room */
    READ_BYTES = 60 << 10,
    DRAIN_BYTES = 1 << 20, /* the largest pipe that a box may make */
};

void box_request_clear(struct box_request *r)
{
    box_loop_drop(&r->worker_src);
    box_watch_free(&r->watch);
    str_clear(&r->body);
    free(r->name);
    if (r->fd > 0)
        (void)close(r->fd);
    if (r->worker_pidfd > 0) {
        siginfo_t end;
        box_limit_signal(r->worker_pidfd, SIGKILL);
        (void)waitid(P_PIDFD, (id_t)r->worker_pidfd, &end, WEXITED);
        (void)close(r->worker_pidfd);
    }
    *r = (struct box_request){ .body = STR_INIT(BOX_REQUEST_MAX), .fd = -1, .worker_pidfd = -1 };
}

/* ---- from the daemon ---- */

static void refuse(struct box_session *s, uint32_t id, const char *why)
{
    box_answer(
        s, &(struct box_answer){ .request = id, .verdict = "failed", .state = "kept", .why = why, .peak_bytes = -1 });
}

static int64_t cell_number(const struct json *v, const char *key)
{
    int64_t n = json_int_or(v, key, 0);
    return n < 0 || n >= UINT32_MAX ? 0 : n;
}

/* The parts of a request that the keeper itself needs; the rest is the head's. */
static int understand(struct box_request *r, struct err *e)
{
    autojson struct json *v = NULL;
    const char *name = NULL;
    if (r->type == BOX_RESET)
        return 0;
    if (json_parse(&v, str_peek(&r->body), r->body.len, BOX_REQUEST_MAX, e) < 0)
        return -1;
    r->timeout_ms = json_int_or(v, "timeout_ms", TIMEOUT_MS);
    r->grace_ms = json_int_or(v, "grace_ms", GRACE_MS);
    r->number = (uint32_t)cell_number(v, "number");
    r->unpacks = r->type == BOX_CALL && strcmp(json_str_or(v, "op", ""), "intake") == 0;
    r->moves = r->type == BOX_CELL || r->type == BOX_RESTORE;
    r->to_previous = json_type(json_get(v, "cell")) == JSON_NULL;
    r->back_to = (uint32_t)cell_number(v, "cell");
    if (r->timeout_ms < 1 || r->grace_ms < 0)
        return err_set(e, ERR_DATA, "timeout_ms and grace_ms are milliseconds");
    if (r->type == BOX_CHECKPOINT || r->type == BOX_RESTORE)
        return box_checkpoint_check(r, v, e);
    if (r->type != BOX_PUT)
        return 0;
    if (json_str(v, "name", &name, e) < 0)
        return -1;
    if (!box_name_ok(name))
        return err_set(e, ERR_DATA, "not a name for a file");
    if (r->fd < 0)
        return err_set(e, ERR_DATA, "no descriptor came with it");
    r->name = xstrdup(name);
    return 0;
}

/* s->request has type, id, body and perhaps fd. */
static void accept_request(struct box_session *s)
{
    struct err e;
    s->request.received_us = box_now_us();
    if (understand(&s->request, &e) < 0) {
        uint32_t id = s->request.id;
        box_request_clear(&s->request);
        refuse(s, id, e.msg);
        return;
    }
    if (s->state == BOX_ST_IDLE)
        box_request_begin(s);
}

/* All frames of it are here. Takes the body and the descriptor when it becomes the session's request. */
static void whole_request(struct box_session *s, const struct box_frame *head, struct str *body, struct box_msg *msg)
{
    struct box_request *r = &s->request;
    r->id = head->request;
    r->type = head->type;
    r->body = *body;
    *body = (struct str)STR_INIT(BOX_REQUEST_MAX);
    if (msg->fd_n > 0)
        r->fd = box_fd_take(&msg->fds[0]);
    accept_request(s);
}

static void request_frame(struct box_session *s, struct box_msg *msg)
{
    int done = box_part_add(&s->incoming, &msg->head, msg->payload);
    if (done == 0)
        return;
    const struct box_frame head = s->incoming.head;
    if (done < 0)
        refuse(s, head.request, "the request is too long, or its frames are mixed");
    else if (s->request.id != 0)
        refuse(s, head.request, "a session runs one request at a time");
    else if (head.request == 0)
        log_warn("box_request_zero", KV_I("session", s->id));
    else
        whole_request(s, &head, &s->incoming.body, msg);
    box_part_clear(&s->incoming);
}

void box_session_frame(struct box_session *s, struct box_msg *msg)
{
    switch (msg->head.type) {
    case BOX_CELL:
    case BOX_CALL:
    case BOX_PUT:
    case BOX_RESET:
    case BOX_CHECKPOINT:
    case BOX_RESTORE:
    case BOX_BACK: request_frame(s, msg); break;
    case BOX_CANCEL: box_request_interrupt(s, BOX_CAUSE_CANCEL); break;
    case BOX_PIN: box_back_pin(s, msg); break;
    case BOX_DROP: box_drop(s, msg); break;
    case BOX_CLOSE:
        s->closing = true;
        box_session_close(s);
        break;
    default: log_warn("box_frame_unknown", KV_I("session", s->id), KV_I("type", msg->head.type));
    }
}

void box_session_ask(struct box_session *s, uint8_t type, uint32_t id, const char *json, size_t n)
{
    s->request.id = id;
    s->request.type = type;
    str_add(&s->request.body, json, n);
    accept_request(s);
}

/* ---- running ---- */

static void put_begin(struct box_session *s);

static int64_t run_due(const struct box_session *s, int64_t now_ms, int64_t limit_ms)
{
    int64_t due = now_ms + limit_ms;
    int64_t look = s->keeper->cgroups.kind == BOX_CGROUP_NONE ? WATCH_MS : s->copy_n > 1 ? SQUEEZE_MS : limit_ms;
    return due > now_ms + look ? now_ms + look : due;
}

void box_request_begin(struct box_session *s)
{
    struct box_request *r = &s->request;
    if (r->id == 0 || r->started || s->state != BOX_ST_IDLE || box_restore_renews(s))
        return;
    r->started = true;
    r->started_us = box_now_us();
    s->head.strange_n = 0;
    if (r->type == BOX_PUT) {
        put_begin(s);
    } else if (r->type == BOX_RESET) {
        r->cause = BOX_CAUSE_RESET;
        box_copies_clear(s);
        box_session_sweep(s);
    } else if (r->type == BOX_BACK) {
        box_back_begin(s);
    } else {
        box_session_enter(s, BOX_ST_RUN, run_due(s, time_mono_ms(), r->timeout_ms));
        if (r->type == BOX_CHECKPOINT || r->type == BOX_RESTORE)
            box_checkpoint_send(s);
        else
            box_send_text(&s->head.link, r->type, s->id, r->id, &r->body);
        box_session_stall(s, s->keeper->stalled);
        box_group_begin_usage(&s->group); /* while the head reads what it was sent */
        r->before = box_group_usage(&s->group);
    }
}

static int64_t elapsed_ms(const struct box_request *r)
{
    return (box_now_us() - r->started_us) / 1000;
}

void box_request_interrupt(struct box_session *s, enum box_cause cause)
{
    struct box_request *r = &s->request;
    if (r->id == 0 || r->cause != BOX_CAUSE_NONE)
        return;
    if (!r->started) { /* it waits for a head */
        box_request_fail(s, "cancelled", NULL);
        return;
    }
    r->cause = cause;
    if (s->state == BOX_ST_RUN) {
        box_limit_signal(s->head.pidfd, SIGINT);
        r->timeout_ms = elapsed_ms(r) + r->grace_ms;
        s->due_ms = run_due(s, time_mono_ms(), r->grace_ms);
    } else if (s->state == BOX_ST_PUT) {
        box_limit_signal(r->worker_pidfd, SIGKILL);
    }
}

/* Copies make room. Where there is no control group: true when it was too much all the same. */
static bool watch(struct box_session *s)
{
    struct box_request *r = &s->request;
    bool grouped = s->keeper->cgroups.kind != BOX_CGROUP_NONE;
    if (grouped && s->copy_n < 2)
        return false;
    int64_t bytes = grouped ? box_group_memory(&s->group)
                            : box_watch_look(&r->watch, s->init_pid, box_zygotes_inherited(s->keeper), WATCH_WAIT_MS);
    box_copies_pressure(s, bytes);
    if (grouped)
        return false;
    if (bytes > r->watched_bytes)
        r->watched_bytes = bytes;
    if (bytes <= (int64_t)s->memory_bytes)
        return false;
    r->cause = BOX_CAUSE_MEMORY;
    return true;
}

void box_request_tick(struct box_session *s, int64_t now_ms)
{
    struct box_request *r = &s->request;
    if (s->state == BOX_ST_PUT) {
        box_limit_signal(r->worker_pidfd, SIGKILL);
        s->due_ms = INT64_MAX;
        return;
    }
    int64_t left = r->timeout_ms - elapsed_ms(r);
    if (watch(s) || (left <= 0 && r->cause != BOX_CAUSE_NONE))
        box_session_end_run(s);
    else if (left <= 0)
        box_request_interrupt(s, BOX_CAUSE_TIMEOUT);
    else
        s->due_ms = run_due(s, now_ms, left);
}

/* ---- what it prints ---- */

/* What was read lies behind the byte that says which stream it is of. */
static void relay(struct box_session *s, int stream, char *frame, size_t n)
{
    struct box_request *r = &s->request;
    r->printed_bytes += n;
    if (r->printed_bytes > BOX_FLOOD_MAX)
        return;
    if (s->check) {
        box_check_output(s->check, frame + 1, n);
        return;
    }
    frame[0] = (char)(stream + 1);
    box_send(&s->keeper->daemon, BOX_OUTPUT, s->id, r->id, frame, n + 1);
}

/* One read; what it brought, 0: nothing there now. */
static size_t read_pipe(struct box_session *s, int stream)
{
    static char
        frame[1 + READ_BYTES]; /* on the stack its pages would be touched one by one, whatever there is to read */
    ssize_t n = read(s->head.pipe[stream], frame + 1, READ_BYTES);
    if (n == 0)
        box_loop_want(s->head.pipe_src[stream], 0); /* nobody can write any more */
    if (n <= 0)
        return 0;
    relay(s, stream, frame, (size_t)n);
    return (size_t)n;
}

void box_request_output(struct box_session *s, int stream)
{
    if (s->state != BOX_ST_RUN)
        return;
    (void)read_pipe(s, stream);
    if (s->request.printed_bytes > BOX_FLOOD_MAX && s->request.cause != BOX_CAUSE_FLOOD) {
        s->request.cause = BOX_CAUSE_FLOOD;
        box_session_end_run(s);
    }
    box_keeper_flush(s->keeper);
}

void box_request_drain(struct box_session *s)
{
    for (int stream = 0; stream < 2; stream++) {
        size_t sum = 0;
        for (size_t n = 1; n > 0 && sum <= DRAIN_BYTES && s->head.pipe[stream] >= 0; sum += n)
            n = read_pipe(s, stream);
    }
}

/* ---- the end ---- */

static void rest(struct box_session *s)
{
    box_loop_want(s->head.pipe_src[0], 0);
    box_loop_want(s->head.pipe_src[1], 0);
    box_loop_want(s->head.src, EPOLLIN);
}

/* The session is after another cell now. */
static void move_on(struct box_session *s, uint32_t number)
{
    const struct box_place was = s->at;
    uint32_t cell = number > 0 ? number : was.cell;
    bool same = cell == was.cell;
    s->at = (struct box_place){
        .cell = cell,
        .before = same ? was.before : was.cell,
        .back = same || !box_copy_find(s, was.cell) ? was.back : was.cell,
    };
}

/* Its files are told, and after an interrupt what it started goes; what earlier cells started stays. */
static void leave_in_order(struct box_session *s)
{
    const struct box_request *r = &s->request;
    bool interrupted = r->cause != BOX_CAUSE_NONE, looks = r->type == BOX_CELL || r->unpacks;
    if (!interrupted && !(looks && box_answer_files_changed(s)))
        return;
    bool still = box_group_freeze(&s->group, true); /* else it is still no danger: openat2 */
    if (looks)
        box_answer_files(s, r->type == BOX_CELL);
    if (interrupted)
        box_copies_hunt(s, r->started_us, still);
    (void)box_group_freeze(&s->group, false);
}

/* By the kernel's count, else by the watchdog's; -1: nobody counted. */
static int64_t peak_of(const struct box_request *r, const struct box_usage *used)
{
    if (used->peak_bytes >= 0)
        return used->peak_bytes;
    return r->watched_bytes > 0 ? r->watched_bytes : -1;
}

void box_request_claimed(struct box_session *s)
{
    struct box_request *r = &s->request;
    s->vain = 0;
    box_request_drain(s);
    leave_in_order(s);
    struct box_usage used = box_group_usage(&s->group);
    if (!s->check)
        box_send_text(&s->keeper->daemon, BOX_CLAIM, s->id, r->id, &s->head.claim.body);
    const struct box_answer a = {
        .request = r->id,
        .verdict = r->cause == BOX_CAUSE_TIMEOUT  ? "timeout"
                   : r->cause == BOX_CAUSE_CANCEL ? "cancelled"
                                                  : "ok",
        .state = "kept",
        .why =
            used.oom_kills > r->before.oom_kills ? "the memory limit ended a process that the code had started" : NULL,
        .peak_bytes = peak_of(r, &used),
        .took_us = box_now_us() - r->started_us,
        .start_us = r->started_us - r->received_us,
    };
    const bool moves = r->moves;
    if (r->type == BOX_RESTORE)
        box_restore_arrived(s, r->number);
    else if (moves)
        move_on(s, r->number);
    box_part_clear(&s->head.claim);
    box_request_clear(r);
    rest(s);
    box_session_enter(s, BOX_ST_IDLE, INT64_MAX);
    box_answer(s, &a);
    if (moves)
        box_copy_begin(s);
}

void box_request_died(struct box_session *s)
{
    struct box_request *r = &s->request;
    int signo = 0;
    if (r->judged || r->cause == BOX_CAUSE_RESTORE)
        return;
    if (r->id == 0 || !r->started) { /* between two requests, or while one waited */
        s->died_idle = true;
        r->cause = BOX_CAUSE_NONE;
        return;
    }
    r->judged = true;
    if (r->cause == BOX_CAUSE_RESET || r->cause == BOX_CAUSE_BACK)
        return;
    struct box_usage used = box_group_usage(&s->group);
    const char *verdict = box_verdict(s, &used, &signo, r->said, sizeof r->said);
    box_request_drain(s);
    if (r->type == BOX_CELL || r->unpacks)
        box_answer_files(s, r->type == BOX_CELL);
    r->end = (struct box_answer){
        .request = r->id,
        .verdict = verdict,
        .signal = signo,
        .peak_bytes = peak_of(r, &used),
        .took_us = box_now_us() - r->started_us,
        .start_us = r->started_us - r->received_us,
    };
}

void box_request_fail(struct box_session *s, const char *verdict, const char *why)
{
    if (s->request.judged && s->request.end.verdict) { /* how it died is known, and matters more */
        box_request_settle(s, "lost", NULL);
        return;
    }
    const struct box_answer a = {
        .request = s->request.id,
        .verdict = verdict,
        .state = s->request.started && s->request.type != BOX_PUT ? "lost" : "kept",
        .why = why,
        .peak_bytes = -1,
        .took_us = s->request.started ? box_now_us() - s->request.started_us : 0,
    };
    box_request_clear(&s->request);
    box_answer(s, &a);
}

/* ---- putting a file in: by a child, so that its pages are charged to the session and nothing here waits ---- */

static _Noreturn void put_child(const struct box_session *s)
{
    const struct box_put p = {
        .name = s->request.name,
        .data_fd = s->data_fd,
        .from_fd = s->request.fd,
        .host_uid = s->keeper->base.root ? box_host_uid(&s->keeper->base, s->slot + 1) : 0,
        .max_bytes = s->disk_bytes,
    };
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (box_group_enter(&s->group) < 0)
        _exit(EIO);
    _exit(box_put(&p) & 0xff);
}

static const char *put_why(const struct box_session *s, int error, char *why, size_t n)
{
    if (error == ENOSPC || error == EFBIG || error == EDQUOT)
        (void)snprintf(why, n, "no space left: the session's files may take %llu MiB together",
                       (unsigned long long)(s->disk_bytes >> 20));
    else if (error == EISDIR || error == ENOTEMPTY || error == EEXIST)
        (void)snprintf(why, n, "a folder of that name is in the way");
    else
        (void)snprintf(why, n, "the file could not be put there: %s", strerror(error)); /* NOLINT: one thread */
    return why;
}

static void on_put_end(void *ud, uint32_t events)
{
    struct box_session *s = ud;
    siginfo_t end = { 0 };
    char why[160];
    (void)events;
    (void)waitid(P_PIDFD, (id_t)s->request.worker_pidfd, &end, WEXITED);
    int error = end.si_code == CLD_EXITED ? end.si_status : EINTR;
    const struct box_answer a = {
        .request = s->request.id,
        .verdict = error == 0                             ? "ok"
                   : s->request.cause == BOX_CAUSE_CANCEL ? "cancelled"
                                                          : "failed",
        .state = "kept",
        .why = error == 0 ? NULL : put_why(s, error, why, sizeof why),
        .peak_bytes = -1,
        .took_us = box_now_us() - s->request.started_us,
        .start_us = s->request.started_us - s->request.received_us,
    };
    if (error == 0)
        box_listing_know(&s->files, box_files_fd(s), s->request.name);
    box_request_clear(&s->request);
    if (s->state == BOX_ST_PUT) {
        box_session_enter(s, BOX_ST_IDLE, INT64_MAX);
        if (s->died_idle)
            box_session_sweep(s);
    }
    box_answer(s, &a);
    box_keeper_flush(s->keeper);
}

static void put_begin(struct box_session *s)
{
    box_session_enter(s, BOX_ST_PUT, time_mono_ms() + PUT_MS);
    pid_t pid = fork();
    if (pid == 0)
        put_child(s);
    if (pid > 0)
        s->request.worker_pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (s->request.worker_pidfd < 0) {
        if (pid > 0 && kill(pid, SIGKILL) == 0) /* there is no descriptor to watch it by */
            (void)waitpid(pid, NULL, 0);
        box_session_enter(s, BOX_ST_IDLE, INT64_MAX);
        box_request_fail(s, "failed", "no process could be started to copy the file");
        return;
    }
    s->request.worker_src = box_loop_add(s->keeper->loop, s->request.worker_pidfd, EPOLLIN, on_put_end, s);
}
