/* native.c - the sandbox that works: boxes made by a keeper process (sandbox/keeper/box.c).
 *
 * The keeper is a second program, because it needs what this one must not have (the right to make namespaces and cgroups)
 * and must not have what this one holds (secrets, the network). It is started with an empty environment, a socket at
 * descriptor 3 and stderr; nothing else is open in it. When its socket ends, it ends with all its boxes.
 *
 * Two things tell of its death, the socket and the pidfd; both are awaited (a second at most), so that what it still said
 * is read and the log knows its status. (With box.socket the keeper is somebody else's child, and the socket tells alone.) Then every request that it had fails, boxes are marked lost, and the next request
 * starts another keeper, later each time when they die young. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "../../sandbox/box_proto.h"
#include "conf.h"
#include "log.h"
#include "native.h"

enum {
    KEEPER_FD = 3,
    READY_MS = 60000, /* a cold zygote needs 1.5 to 4 s, a slow disk more */
    END_MS = 1000,    /* between one sign of death and the other */
    STOP_MS = 3000,   /* for the keeper to remove its boxes */
    BACKOFF_MIN_MS = 250,
    BACKOFF_MAX_MS = 30000,
    WISH_MAX = 4 << 10,
    KEEPER_WORDS = 13, /* of its command line, and the end */
    READY_MAX = 256 << 10,
    NOTE_JSON_MAX = 64 << 10,
};

static void keeper_start(struct sandbox *s);
static void keeper_gone(struct sandbox *s);

/* ---- telling ---- */

/* ready() may stop the sandbox: the caller does nothing after it. */
static void tell_ready(struct sandbox *s, const struct err *e)
{
    void (*ready)(void *, const struct err *) = s->ready;
    s->ready = NULL;
    if (ready)
        ready(s->ready_ud, e);
}

static void on_refused(void *ud)
{
    struct sandbox *s = ud;
    if (!s->stopped)
        tell_ready(s, &s->refusal);
}

/* ---- what the keeper found ---- */

/* "T1" -> 1; -1: no tier, nothing is served. */
static int tier_number(const char *tier)
{
    if (tier && tier[0] == 'T' && tier[1] >= '0' && tier[1] <= '9' && !tier[2])
        return tier[1] - '0';
    return -1;
}

static void list_problems(struct str *out, const struct json *report)
{
    for (const struct json *p = json_first(json_get(report, "problems")); p; p = json_next(p)) {
        if (out->len)
            str_puts(out, "; ");
        str_puts(out, json_str_or(p, "what", "?"));
        const char *fix = json_str_or(p, "fix", "");
        if (*fix)
            str_printf(out, " (%s)", fix);
    }
}

/* 0: good enough. */
static int judge_tier(const struct sandbox *s, struct err *e)
{
    const char *tier = json_str_or(s->report, "tier", NULL);
    int have = tier_number(tier), need = tier_number(s->min_tier);
    if (have >= 0 && have <= need)
        return 0;
    AUTO(str_clear) struct str problems = STR_INIT(READY_MAX);
    list_problems(&problems, s->report);
    return err_set(e, ERR_CONFIG, "this machine cannot box code well enough (%s, needed %s): %s",
                   tier ? tier : "no tier", s->min_tier, problems.len ? str_peek(&problems) : "no reason given");
}

/* Boxes that are to wait ready are those of most sessions: on the terms of the configuration. */
static char *pool_wish(const struct conf *c)
{
    AUTO(str_clear) struct str text = STR_INIT(WISH_MAX);
    autojson struct json *o = json_new_object();
    json_set_int(o, "boxes", c->pool);
    json_set_int(o, "zygote_forks", c->zygote_forks);
    json_set_int(o, "zygote_age_ms", c->zygote_age_ms);
    const struct box_limits lim = {
        .memory_bytes = c->memory_bytes, .disk_bytes = c->disk_bytes, .pids = (int)c->pids, .cpus = (int)c->cpus
    };
    native_terms(o, &lim, c->copies);
    json_print(&text, o);
    return str_take(&text);
}

static void send_pool(struct sandbox *s)
{
    struct err e = { 0 };
    const struct wire_msg m = { .type = BOX_POOL, .data = s->pool, .n = strlen(s->pool), .fd = -1 };
    if (wire_send(s->wire, &m, &e) < 0) /* boxes are made on demand then */
        log_warn("keeper_pool", KV_E(&e));
}

static void on_ready(struct sandbox *s, const struct wire_msg *m)
{
    struct err e = { 0 };
    struct json *report = NULL;
    if (s->state != KEEPER_STARTING || json_parse(&report, m->data, m->n, READY_MAX, &e) < 0) {
        keeper_broken(s, "the keeper's first word is malformed");
        return;
    }
    json_free(s->report);
    s->report = report;
    if (json_type(report) == JSON_OBJECT)
        json_set_str(report, "image", s->paths.image_id);
    loop_cancel(s->l, s->timer);
    if (judge_tier(s, &e) < 0) {
        s->state = KEEPER_REFUSED;
        s->refusal = e;
        boxes_down(s, true, &e);
        on_refused(s);
        return;
    }
    s->state = KEEPER_UP;
    s->backoff_ms = BACKOFF_MIN_MS;
    send_pool(s);
    log_info("keeper_ready", KV_S("tier", json_str_or(report, "tier", "")), KV_I("pid", s->pid));
    boxes_up(s);
    tell_ready(s, NULL);
}

/* ---- the check of `doctor` ---- */

static void check_end(struct sandbox *s, const struct err *e)
{
    struct native_check c = s->check;
    s->check = (struct native_check){ 0 };
    if (c.request)
        c.done(c.ud, e);
}

static void on_note(struct sandbox *s, const struct wire_msg *m)
{
    struct err e = { 0 };
    autojson struct json *o = NULL;
    if (json_parse(&o, m->data, m->n, NOTE_JSON_MAX, &e) < 0)
        keeper_broken(s, "a note of the keeper is malformed");
    else if (s->check.request)
        s->check.note(s->check.ud, json_str_or(o, "name", "?"), json_str_or(o, "outcome", "fail"),
                      json_str_or(o, "detail", ""));
}

static void on_checked(struct sandbox *s, const struct wire_msg *m)
{
    struct err e = { 0 };
    AUTO(verdict_clear) struct verdict v = { 0 };
    if (verdict_parse(&v, m->data, m->n, &e) < 0) {
        keeper_broken(s, e.msg);
        return;
    }
    if (v.kind != VERDICT_OK)
        (void)err_set(&e, ERR_SANDBOX, "the check could not be made: %s", v.why ? v.why : "no reason given");
    check_end(s, v.kind == VERDICT_OK ? NULL : &e);
}

static int native_check(struct sandbox *s,
                        void (*note)(void *ud, const char *name, const char *outcome, const char *detail),
                        void (*done)(void *ud, const struct err *e), void *ud, struct err *e)
{
    if (s->state == KEEPER_REFUSED) {
        *e = s->refusal;
        return -1;
    }
    if (s->state != KEEPER_UP || s->check.request)
        return err_set(e, ERR_SANDBOX, s->check.request ? "a check runs already" : "the sandbox is not ready");
    const struct wire_msg m = { .type = BOX_CHECK, .request = ++s->last_request, .data = "", .fd = -1 };
    if (wire_send(s->wire, &m, e) < 0)
        return -1;
    s->check = (struct native_check){ m.request, note, done, ud };
    return 0;
}

/* ---- messages ---- */

static void on_message(void *ud, struct wire_msg *m)
{
    struct sandbox *s = ud;
    if (m->session)
        box_message(s, m);
    else if (m->type == BOX_READY)
        on_ready(s, m);
    else if (m->type == BOX_NOTE)
        on_note(s, m);
    else if (m->type == BOX_DONE)
        on_checked(s, m);
    else
        keeper_broken(s, "the keeper sent a message of an unknown type");
}

/* ---- death ---- */

static void on_end_late(void *ud)
{
    struct sandbox *s = ud;
    s->timer = 0;
    keeper_gone(s);
}

/* One sign of death came; the other may take a moment. */
static void keeper_ending(struct sandbox *s)
{
    if (s->pid == 0 && s->hung_up) {
        keeper_gone(s);
    } else if (s->state != KEEPER_REFUSED && s->state != KEEPER_ENDING) {
        loop_cancel(s->l, s->timer);
        s->timer = loop_after(s->l, END_MS, on_end_late, s);
        s->ended_from = s->state;
        s->state = KEEPER_ENDING;
    }
}

static void on_hang_up(void *ud, const char *why)
{
    struct sandbox *s = ud;
    s->hung_up = xstrdup(why);
    keeper_ending(s);
}

static void on_exit_(void *ud, pid_t pid, int status)
{
    (void)pid;
    struct sandbox *s = ud;
    s->pid = 0;
    s->exit_status = status;
    keeper_ending(s);
}

static void death_words(const struct sandbox *s, struct err *e)
{
    if (s->pid == 0 && WIFEXITED(s->exit_status) && WEXITSTATUS(s->exit_status))
        (void)err_set(e, ERR_SANDBOX, "the sandbox's keeper ended with status %d (its own words are in the log)",
                      WEXITSTATUS(s->exit_status));
    else if (s->pid == 0 && WIFSIGNALED(s->exit_status))
        (void)err_set(e, ERR_SANDBOX, "the sandbox's keeper was killed by signal %d", WTERMSIG(s->exit_status));
    else
        (void)err_set(e, ERR_SANDBOX, "%s", s->hung_up ? s->hung_up : "the sandbox's keeper ended");
}

static void let_go(struct sandbox *s)
{
    if (s->pid) {
        (void)kill(s->pid, SIGKILL);
        loop_child_stop(s->l, s->pid);
        s->pid = 0;
    }
    loop_cancel(s->l, s->timer);
    s->timer = 0;
    wire_free(s->wire);
    s->wire = NULL;
    free(s->hung_up);
    s->hung_up = NULL;
}

static bool wanted(const struct sandbox *s)
{
    for (const struct box *b = s->boxes; b; b = b->next)
        if (b->r.active)
            return true;
    return false;
}

static void keeper_gone(struct sandbox *s)
{
    struct err e = { 0 };
    const enum keeper_state from = s->state == KEEPER_ENDING ? s->ended_from : s->state;
    death_words(s, &e);
    let_go(s);
    if (s->state == KEEPER_REFUSED)
        return;
    s->state = KEEPER_DOWN;
    s->next_start_ms = loop_now_ms(s->l) + s->backoff_ms;
    s->backoff_ms = s->backoff_ms * 2 < BACKOFF_MAX_MS ? s->backoff_ms * 2 : BACKOFF_MAX_MS;
    log_error("keeper_gone", KV_E(&e));
    boxes_down(s, from != KEEPER_UP, &e);
    if (!s->stopped)
        check_end(s, &e);
    if (!s->stopped && s->state == KEEPER_DOWN && wanted(s))
        keeper_start(s);
    if (!s->stopped)
        tell_ready(s, &e);
}

void keeper_broken(struct sandbox *s, const char *why)
{
    free(s->hung_up);
    s->hung_up = xstrdup(why);
    keeper_gone(s);
}

/* ---- birth ---- */

static void on_unready(void *ud)
{
    keeper_broken(ud, "the sandbox's keeper was not ready in time");
}

static int spawn_attr(posix_spawnattr_t *a)
{
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int rc = posix_spawnattr_init(a);
    rc = rc ? rc : posix_spawnattr_setsigmask(a, &none);
    rc = rc ? rc : posix_spawnattr_setsigdefault(a, &all);
    /* Its own group: a Ctrl-C at the terminal is for us, and we then end it in order. */
    rc = rc ? rc : posix_spawnattr_setpgroup(a, 0);
    return rc ? rc
              : posix_spawnattr_setflags(a, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

/* 0 from /dev/null, 1 and 2 to the log, 3 the socket, nothing above. */
static int spawn_files(posix_spawn_file_actions_t *f, int sock)
{
    int rc = posix_spawn_file_actions_init(f);
    rc = rc ? rc : posix_spawn_file_actions_addopen(f, 0, "/dev/null", O_RDONLY, 0);
    rc = rc ? rc : posix_spawn_file_actions_adddup2(f, 2, 1);
    rc = rc ? rc : posix_spawn_file_actions_adddup2(f, sock, KEEPER_FD);
    return rc ? rc : posix_spawn_file_actions_addclosefrom_np(f, KEEPER_FD + 1);
}

/* The caller frees each; words is zeroed and has room for KEEPER_WORDS. */
static void keeper_words(const struct sandbox *s, char **words)
{
    char base[24];
    (void)snprintf(base, sizeof base, "%" PRId64, s->uid_base);
    const char *const options[][2] = {
        { "--image", s->paths.image }, { "--support", s->paths.support },   { "--uid-base", base },
        { "--min-tier", s->min_tier }, { "--log-level", log_level_word() },
    };
    *words++ = xstrdup(s->paths.keeper);
    for (size_t i = 0; i < countof(options); i++)
        for (size_t k = 0; k < 2; k++)
            *words++ = xstrdup(options[i][k]);
    if (s->one_session)
        *words = xstrdup("--once");
}

static int spawn(const struct sandbox *s, int sock, pid_t *pid)
{
    char *const env[] = { NULL };
    char *words[KEEPER_WORDS] = { NULL };
    keeper_words(s, words);
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t files;
    int rc = spawn_attr(&attr);
    rc = rc ? rc : spawn_files(&files, sock);
    rc = rc ? rc : posix_spawn(pid, s->paths.keeper, &files, &attr, words, env);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    for (size_t i = 0; words[i]; i++)
        free(words[i]);
    return rc;
}

static const struct wire_events wire_events = { on_message, on_hang_up };

/* One that somebody else started. Its death is told by the socket alone: there is no pid. */
static int keeper_connect(struct sandbox *s, struct err *e)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    if (strlen(s->paths.socket) >= sizeof at.sun_path)
        return err_set(e, ERR_CONFIG, "box.socket: %s is too long for a socket", s->paths.socket);
    memcpy(at.sun_path, s->paths.socket, strlen(s->paths.socket));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof at) < 0) {
        (void)err_sys(e, ERR_SANDBOX, errno, "connecting to the keeper at %s", s->paths.socket);
        if (fd >= 0)
            (void)close(fd);
        return -1;
    }
    s->exit_status = 0;
    s->wire = wire_new(s->l, fd, &wire_events, s);
    return 0;
}

static int keeper_spawn(struct sandbox *s, struct err *e)
{
    int sock[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "socketpair");
    pid_t pid = 0;
    int rc = spawn(s, sock[1], &pid);
    (void)close(sock[1]);
    if (rc != 0) {
        (void)close(sock[0]);
        return err_sys(e, ERR_SANDBOX, rc, "starting %s", s->paths.keeper);
    }
    s->wire = wire_new(s->l, sock[0], &wire_events, s);
    s->pid = pid;
    s->exit_status = 0;
    return loop_child(s->l, pid, on_exit_, s, e);
}

static void on_start(void *ud)
{
    struct sandbox *s = ud;
    s->timer = 0;
    keeper_start(s);
}

static void on_unspawned(void *ud)
{
    struct sandbox *s = ud;
    s->timer = 0;
    keeper_gone(s);
}

/* Now, or when the last one's death is long enough ago. Never calls back before it returns. */
static void keeper_start(struct sandbox *s)
{
    int64_t wait = s->next_start_ms - loop_now_ms(s->l);
    if (wait > 0) {
        s->state = KEEPER_WAITING;
        s->timer = loop_after(s->l, wait, on_start, s);
        return;
    }
    struct err e = { 0 };
    s->state = KEEPER_STARTING;
    if ((s->paths.socket ? keeper_connect(s, &e) : keeper_spawn(s, &e)) < 0) {
        s->hung_up = xstrdup(e.msg);
        s->timer = loop_after(s->l, 0, on_unspawned, s);
        return;
    }
    log_debug("keeper_started", KV_I("pid", s->pid));
    s->timer = loop_after(s->l, READY_MS, on_unready, s);
}

int keeper_want(struct sandbox *s, struct err *e)
{
    if (s->state == KEEPER_REFUSED) {
        *e = s->refusal;
        return -1;
    }
    if (s->state == KEEPER_DOWN)
        keeper_start(s);
    return 0;
}

/* ---- the port ---- */

static int native_start(struct sandbox **out, struct loop *l, const struct conf *c,
                        void (*ready)(void *ud, const struct err *e), void *ud, struct err *e)
{
    (void)e;
    struct sandbox *s = xcalloc(1, sizeof *s);
    *s = (struct sandbox){
        .l = l,
        .min_tier = xstrdup(c->min_tier),
        .pool = pool_wish(c),
        .audit = xstrdup(c->audit),
        .copies = c->copies,
        .uid_base = c->uid_base,
        .one_session = c->one_session,
        .cell_timeout_ms = c->cell_timeout_ms,
        .cell_timeout_max_ms = c->cell_timeout_max_ms,
        .file_max_bytes = c->upload_max_bytes,
        .ready = ready,
        .ready_ud = ud,
        .backoff_ms = BACKOFF_MIN_MS,
    };
    *out = s;
    if (native_paths_find(&s->paths, c, &s->refusal) < 0) {
        s->state = KEEPER_REFUSED;
        loop_defer(l, on_refused, s);
        return 0;
    }
    keeper_start(s);
    return 0;
}

/* The keeper ends when its socket does; it gets a moment to remove what it made. */
static void keeper_await_end(pid_t pid)
{
    autoclose int fd = pidfd_open(pid, 0);
    struct pollfd p = { .fd = fd, .events = POLLIN };
    if (fd < 0)
        return;
    int rc;
    do
        rc = poll(&p, 1, STOP_MS);
    while (rc < 0 && errno == EINTR);
    if (rc <= 0) {
        log_warn("keeper_killed", KV_I("pid", pid));
        (void)kill(pid, SIGKILL);
    }
    siginfo_t si;
    (void)waitid(P_PIDFD, (id_t)fd, &si, WEXITED);
}

static void release(void *ud)
{
    struct sandbox *s = ud;
    native_paths_clear(&s->paths);
    free(s->min_tier);
    free(s->pool);
    free(s->audit);
    json_free(s->report);
    free(s);
}

static void native_stop(struct sandbox *s)
{
    if (!s)
        return;
    s->stopped = true;
    while (s->boxes)
        native_close(s->boxes);
    pid_t pid = s->pid;
    if (pid)
        loop_child_stop(s->l, pid);
    s->pid = 0;
    let_go(s); /* closes the socket */
    if (pid)
        keeper_await_end(pid);
    loop_defer_cancel(s->l, on_refused, s);
    loop_defer(s->l, release, s); /* we may be inside one of its callbacks */
}

static const struct json *native_report(const struct sandbox *s)
{
    return s->report;
}

const struct sandbox_ops sandbox_native = {
    .name = "native",
    .lays_files = true,
    .start = native_start,
    .stop = native_stop,
    .report = native_report,
    .check = native_check,
    .open = native_open,
    .ask = native_ask,
    .cancel = native_cancel,
    .pin = native_pin,
    .drop = native_drop,
    .close = native_close,
    .lost = native_lost,
    .refit = native_refit,
};
