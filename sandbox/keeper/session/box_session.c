/* box_session.c - see box_session.h: its states, and what is common to all of them. */
#include "box_session.h"
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include "box_copy.h"
#include "box_pool.h"
#include "log.h"

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

bool box_session_may(const struct box_session *s, enum box_state state)
{
    return may_follow[s->state] >> state & 1;
}

void box_session_enter(struct box_session *s, enum box_state state, int64_t due_ms)
{
    if (!box_session_may(s, state)) {
        log_error("box_state_bug", KV_I("session", s->id), KV_S("from", state_names[s->state]),
                  KV_S("to", state_names[state]));
        abort();
    }
    log_debug("box_state", KV_I("session", s->id), KV_S("from", state_names[s->state]), KV_S("to", state_names[state]));
    s->state = state;
    s->due_ms = due_ms;
    box_roll_stir(&s->keeper->sessions, s);
}

struct box_session *box_session_find(const struct box_keeper *k, uint32_t id)
{
    return box_roll_by_id(&k->sessions, id);
}

struct box_session *box_session_of_serial(const struct box_keeper *k, uint32_t serial)
{
    return box_roll_by_serial(&k->sessions, serial);
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

void box_session_stall(struct box_session *s, bool stalled)
{
    if (s->state != BOX_ST_RUN)
        return;
    uint32_t events = stalled ? 0 : EPOLLIN;
    box_loop_want(s->head.src, events | (s->head.link.first ? (uint32_t)EPOLLOUT : 0));
    box_loop_want(s->head.pipe_src[0], events);
    box_loop_want(s->head.pipe_src[1], events);
}

bool box_session_is_at_rest(const struct box_session *s)
{
    return s->state == BOX_ST_IDLE && s->due_ms == INT64_MAX && !s->pooled && !s->opening && s->request.id == 0 &&
           !s->head.link.first;
}

void box_session_tick(struct box_session *s, int64_t now_ms)
{
    if (now_ms < s->due_ms)
        return;
    if (s->head.hung_up && box_session_may(s, BOX_ST_SWEEP) && s->state != BOX_ST_WAKE) {
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
    case BOX_ST_CLOSE: box_session_close_tick(s); break;
    case BOX_ST_IDLE:
    case BOX_STATES: s->due_ms = INT64_MAX; break;
    }
}
