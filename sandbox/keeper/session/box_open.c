/* box_open.c - see box_session.h: a box is made: its sizes, its groups, its init, its folder; and how it becomes somebody's. */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include "box_session.h"
#include "box_zygote.h"
#include "files/box_data.h"
#include "log.h"
#include "wire/box_fd.h"

enum { BUILD_MS = 10000 };

static const int64_t MIB = 1 << 20;

/* ---- its sizes ---- */

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

/* ---- the box ---- */

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
        s->data_fd = box_fd_take(&msg.fds[0]);
        s->init_pid = msg.pid;
    } else if (got == BOX_RECV_FRAME && msg.head.type == BOX_SWEPT && s->state == BOX_ST_BUILD && s->data_fd >= 0) {
        box_head_fork(s);
    } else if (got == BOX_RECV_FRAME && msg.head.type == BOX_SWEPT) {
        box_session_swept(s);
    } else if (got == BOX_RECV_FRAME && msg.head.type == BOX_EXIT) {
        box_session_init_exit(s, &msg);
    } else if (got == BOX_RECV_FRAME && msg.head.type == BOX_FAILED) {
        autofree char *why = xstrndup((const char *)msg.payload, msg.head.len);
        box_session_give_up(s, why);
    } else if (got != BOX_RECV_NOTHING) {
        box_loop_want(s->init_src, 0); /* its end is told by its pidfd */
    }
    box_msg_clear(&msg);
    box_keeper_flush(s->keeper);
}

static void on_init_end(void *ud, uint32_t events)
{
    (void)events;
    box_session_init_ended(ud);
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

static struct box_session *session_new(struct box_keeper *k, uint32_t id, uint32_t slot, const struct box_terms *terms)
{
    struct box_session *s = xcalloc(1, sizeof *s);
    *s = (struct box_session){
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
    box_roll_add(&k->sessions, s);
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
        box_session_free(s);
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

/* ---- it becomes somebody's ---- */

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
    box_roll_set_id(&s->keeper->sessions, s, id);
    s->files_fd = take_files_fd;
    s->pooled = false;
    s->opened_us = box_now_us();
    s->opening = true;
    if (s->state != BOX_ST_IDLE)
        return;
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
