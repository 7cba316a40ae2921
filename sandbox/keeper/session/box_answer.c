/* box_answer.c - the keeper's own account of a request: verdict, files. See box_session.h. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include "box_check.h"
#include "box_session.h"

enum {
    REFUSALS_MAX = 20, /* more of them would bury the answer */
    STORAGE_SHARE = 3, /* files that hold more than this part of a session's memory are named when it ends */
};

int64_t box_now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void send_done(struct box_keeper *k, uint32_t session, const struct box_answer *a)
{
    AUTO(str_clear) struct str text = STR_INIT(BOX_PAYLOAD_MAX);
    autojson struct json *v = json_new_object();
    json_set_str(v, "verdict", a->verdict);
    json_set_str(v, "state", a->state);
    json_set_str(v, "why", a->why);
    json_set_int(v, "signal", a->signal);
    if (a->peak_bytes >= 0)
        json_set_int(v, "peak_bytes", a->peak_bytes);
    else
        json_set(v, "peak_bytes", NULL);
    json_set_int(v, "took_us", a->took_us);
    json_set_int(v, "start_us", a->start_us);
    if (a->cell)
        json_set_int(v, "cell", *a->cell);
    json_print(&text, v);
    box_send_text(&k->daemon, BOX_DONE, session, a->request, &text);
    k->wanted_ms = time_mono_ms();
}

static const char *died_between(const struct box_session *s, char *why, size_t n)
{
    static const char began[] = "the interpreter had ended since the request before; this ran";
    if (strcmp(s->left, "lost") == 0)
        (void)snprintf(why, n, "%s in a new one", began);
    else
        (void)snprintf(why, n, "%s on the variables as they were after cell %u", began, (unsigned)s->left_cell);
    return why;
}

void box_answer(struct box_session *s, const struct box_answer *a)
{
    if (s->check) {
        box_check_answer(s->check, a);
        return;
    }
    struct box_answer told = *a;
    char why[160];
    if (a->request != 0 && s->left) {
        if (strcmp(s->left, "kept") != 0 && strcmp(a->state, "kept") == 0) {
            told.state = s->left;
            told.cell = &s->left_cell;
        }
        if (!a->why)
            told.why = died_between(s, why, sizeof why);
        s->left = NULL;
    }
    send_done(s->keeper, s->id, &told);
}

void box_answer_failed(struct box_keeper *k, uint32_t session, uint32_t request, const char *why)
{
    send_done(
        k, session,
        &(struct box_answer){ .request = request, .verdict = "failed", .state = "lost", .why = why, .peak_bytes = -1 });
}

void box_answer_closed(struct box_keeper *k, uint32_t session)
{
    send_done(k, session, &(struct box_answer){ .verdict = "ok", .state = "lost", .peak_bytes = -1 });
}

void box_answer_check(struct box_keeper *k, uint32_t request, const char *why)
{
    const struct box_answer a = {
        .request = request, .verdict = why ? "failed" : "ok", .state = "kept", .why = why, .peak_bytes = -1
    };
    send_done(k, 0, &a);
}

/* ---- the verdict ---- */

static const char *oom(const struct box_session *s, const struct box_usage *used, char *why, size_t n)
{
    int64_t peak = used->peak_bytes >= 0 ? used->peak_bytes : s->request.watched_bytes;
    int64_t files = box_group_files(&s->group);
    int len = snprintf(why, n, "the memory limit of %llu MiB was reached (peak %lld MiB)",
                       (unsigned long long)(s->memory_bytes >> 20), (long long)(peak >> 20));
    if (files > (int64_t)s->memory_bytes / STORAGE_SHARE && len > 0 && (size_t)len < n)
        (void)snprintf(why + len, n - (size_t)len,
                       "; the session's storage is full: files in /mnt/data, /tmp and /dev/shm hold %lld MiB of it",
                       (long long)(files >> 20));
    return "oom";
}

/* It ended without us: memory, a signal, or its own exit. */
static const char *own_end(const struct box_session *s, const struct box_usage *used, int *signo, char *why, size_t n)
{
    int status = s->head.status;
    bool killed = WIFSIGNALED(status);
    if (killed && WTERMSIG(status) == SIGKILL && used->oom_kills > s->request.before.oom_kills) {
        *signo = SIGKILL;
        return oom(s, used, why, n);
    }
    if (killed && WTERMSIG(status) == SIGXFSZ) {
        (void)snprintf(why, n, "a file passed its size limit");
        return "limit";
    }
    if (killed) {
        *signo = WTERMSIG(status);
        (void)snprintf(why, n, "the interpreter was ended by signal %d (SIG%s)%s", *signo, sigabbrev_np(*signo),
                       *signo == SIGSYS ? ": a system call that is not allowed" : "");
    } else {
        (void)snprintf(why, n, "the interpreter ended by itself (exit status %d)", WEXITSTATUS(status));
    }
    return "crash";
}

const char *box_verdict(const struct box_session *s, const struct box_usage *used, int *signo, char *why, size_t n)
{
    const struct box_request *r = &s->request;
    switch (r->cause) {
    case BOX_CAUSE_TIMEOUT:
        (void)snprintf(why, n, "the time limit passed, and the code did not stop when interrupted");
        return "timeout";
    case BOX_CAUSE_CANCEL: (void)snprintf(why, n, "the code did not stop when interrupted"); return "cancelled";
    case BOX_CAUSE_FLOOD: (void)snprintf(why, n, "printed more than %d MiB", BOX_FLOOD_MAX >> 20); return "limit";
    case BOX_CAUSE_PROTOCOL: (void)snprintf(why, n, "%s", r->why); return "limit";
    case BOX_CAUSE_MEMORY: return oom(s, used, why, n);
    case BOX_CAUSE_RESET:
    case BOX_CAUSE_BACK:
    case BOX_CAUSE_RESTORE:
    case BOX_CAUSE_NONE:
    case BOX_CAUSES: break;
    }
    return own_end(s, used, signo, why, n);
}

/* ---- files ---- */

static void send_file(struct box_session *s, const struct box_entry *x)
{
    uint64_t bytes = 0;
    autoclose int fd = box_entry_open(box_files_fd(s), x->path, &bytes);
    if (fd < 0)
        return;
    AUTO(str_clear) struct str text = STR_INIT(BOX_PAYLOAD_MAX);
    autojson struct json *v = json_new_object();
    json_set_str(v, "path", x->path);
    json_set_int(v, "bytes", (int64_t)bytes);
    json_print(&text, v);
    const struct box_frame head = {
        .type = BOX_FILE, .session = s->id, .request = s->request.id, .len = (uint32_t)text.len
    };
    box_send_fds(&s->keeper->daemon, &head, str_peek(&text), &fd, 1);
}

static void send_words(struct box_session *s, uint8_t type, const char *path, const char *why)
{
    AUTO(str_clear) struct str text = STR_INIT(BOX_PAYLOAD_MAX);
    autojson struct json *v = json_new_object();
    json_set_str(v, "path", path);
    if (why)
        json_set_str(v, "why", why);
    json_print(&text, v);
    box_send_text(&s->keeper->daemon, type, s->id, s->request.id, &text);
}

struct telling {
    struct box_session *s;
    size_t files, refused, left_out;
};

static void tell_change(void *ud, const struct box_entry *x)
{
    struct telling *t = ud;
    switch (x->kind) {
    case BOX_IS_GONE: send_words(t->s, BOX_GONE, x->path, NULL); break;
    case BOX_IS_FILE:
        if (t->files++ < BOX_SENT_MAX)
            send_file(t->s, x);
        else
            t->left_out++;
        break;
    case BOX_IS_REFUSED:
        if (t->refused++ < REFUSALS_MAX)
            send_words(t->s, BOX_KEPT_OUT, x->path, x->why);
        break;
    case BOX_IS_NOTHING:
    case BOX_IS_FOLDER:
    case BOX_KINDS: break;
    }
}

static void send_more(struct box_session *s, size_t n, const char *why)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%zu more files", n);
    send_words(s, BOX_KEPT_OUT, path, why);
}

static void tell_changes(struct box_session *s, const struct box_listing *now)
{
    struct telling t = { .s = s };
    if (*s->missing)
        send_words(s, BOX_KEPT_OUT, s->missing, "it is kept, but there was no room for it in the box");
    *s->missing = '\0';
    box_compare(&s->files, now, tell_change, &t);
    if (t.left_out > 0)
        send_more(s, t.left_out, "one cell may hand over 1,000");
    if (t.refused > REFUSALS_MAX)
        send_more(s, t.refused - REFUSALS_MAX, "they cannot be kept either");
    if (now->cut && t.left_out == 0)
        send_words(s, BOX_KEPT_OUT, "some files", "there are too many entries, or a folder that cannot be read");
}

int box_files_fd(const struct box_session *s)
{
    return s->upper_fd >= 0 ? s->upper_fd : s->data_fd;
}

static void look(const struct box_session *s, struct box_listing *now)
{
    box_session_mend_folder(s);
    box_list(now, box_files_fd(s), s->upper_fd >= 0 ? BOX_LIST_UPPER : 0);
}

bool box_answer_files_changed(const struct box_session *s)
{
    struct box_listing now = { 0 };
    look(s, &now);
    bool same = !*s->missing && box_listing_is(&s->files, &now);
    box_listing_clear(&now);
    return !same;
}

void box_answer_files(struct box_session *s, bool send)
{
    struct box_listing now = { 0 };
    look(s, &now);
    if (send && !s->check)
        tell_changes(s, &now);
    box_listing_clear(&s->files);
    s->files = now;
}
