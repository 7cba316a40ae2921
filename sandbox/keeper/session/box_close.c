/* box_close.c - see box_session.h: a box is taken away, with everything in it. */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "box_copy.h"
#include "box_session.h"
#include "log.h"

enum {
    CLOSE_MS = 10000,
    CLOSE_RETRY_MS = 10,
    CLOSE_TRIES = 200,
};

void box_session_free(struct box_session *s)
{
    struct box_keeper *k = s->keeper;
    k->slots[s->slot] = 0;
    box_copies_clear(s);
    box_head_close(s);
    str_clear(&s->head.claim.body);
    box_request_clear(&s->request);
    box_part_clear(&s->incoming);
    box_listing_clear(&s->files);
    box_loop_drop(&s->init_src);
    box_link_close(&s->init.channel);
    const int fds[] = { s->data_fd, s->upper_fd, s->files_fd };
    for (size_t i = 0; i < countof(fds); i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    box_roll_remove(s);
    free(s);
}

/* Init is gone and so is everything else. Groups may need a moment to be empty. */
static void finish(struct box_session *s)
{
    int64_t now = time_mono_ms();
    if (!box_group_close(&s->group) && now < s->closed_ms + CLOSE_MS) {
        s->due_ms = now + CLOSE_RETRY_MS;
        return;
    }
    if (*s->group.name)
        log_error("box_group_stays", KV_I("session", s->id), KV_S("group", s->group.name));
    struct box_keeper *k = s->keeper;
    bool told = s->closing;
    uint32_t id = s->id;
    box_session_free(s);
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

void box_session_init_ended(struct box_session *s)
{
    init_reap(s);
    if (s->state != BOX_ST_CLOSE)
        box_session_give_up(s, "the box ended");
    finish(s);
}

void box_session_close(struct box_session *s)
{
    if (s->state == BOX_ST_CLOSE)
        return;
    if (s->request.id != 0)
        box_request_fail(s, "cancelled", "the session was closed");
    s->closed_ms = time_mono_ms();
    box_session_enter(s, BOX_ST_CLOSE, s->closed_ms + CLOSE_MS);
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
    box_session_free(s);
}

void box_session_close_tick(struct box_session *s)
{
    if (s->init.pidfd < 0) {
        finish(s);
        return;
    }
    log_error("box_close_slow", KV_I("session", s->id));
    s->due_ms = INT64_MAX;
}
