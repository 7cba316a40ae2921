/* upload.c - files of messages: each is uploaded before its message, and what that gave is kept. In encrypted rooms they are encrypted first, and
 * pictures have a small one beside them, since the server can't make one of what it can't read. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include "cell.h"
#include "log.h"
#include "outbox.h"

static struct message *message_of(const struct job *job)
{
    return &job->messages[job->at];
}

/* ---- done ---- */

static void set_address(struct job *job, const char *mxc)
{
    struct message *m = message_of(job);
    if (!job->attach) {
        json_set_str(m->content, "url", mxc);
        json_set_str(job->sent, "mxc", mxc);
        return;
    }
    json_set(job->sent, job->small ? "small" : "file", attach_file(job->attach, mxc));
    attach_free(take(job->attach));
}

static void say_failed(struct job *job, const struct err *e)
{
    const char *why = strstr(e->msg, "413") || strstr(e->msg, "more than the server takes")
                          ? "it is larger than this server takes."
                          : "the server did not take it.";
    autofree char *words = xasprintf("%s could not be sent: %s", message_of(job)->name, why);
    log_warn("matrix_upload_failed", KV_S("txn", job->txn), KV_E(e));
    job_replace_with_words(job, words);
}

static void on_uploaded(void *ud, const char *mxc, const struct err *e)
{
    struct job *job = ud;
    struct err kept = { 0 };
    job->busy = false;
    if (e && (err_retryable(e) || (e->kind == ERR_STORE && !job->small))) {
        outbox_job_again(job, e);
        return;
    }
    if (e && job->small) {
        free(take(message_of(job)->small)); /* the picture goes without it */
    } else if (e) {
        say_failed(job, e);
    } else {
        set_address(job, mxc);
        if (sent_keep(job, &kept) < 0)
            log_warn("matrix_upload_not_kept", KV_S("txn", job->txn), KV_E(&kept));
    }
    matrix_outbox_pump(job->c);
}

/* ---- on their way ---- */

static void on_ciphered(void *ud, int fd, int64_t bytes, struct attach *take_attach, const char *problem)
{
    struct job *job = ud;
    struct err e = { 0 };
    (void)bytes;
    attach_free(job->attach);
    job->attach = take_attach;
    if (problem) {
        (void)err_set(&e, ERR_REFUSED, "%s", problem);
        on_uploaded(job, NULL, &e);
        return;
    }
    const struct media_put p = { .take_fd = fd, .type = "application/octet-stream" };
    matrix_media_put(job->c, &p, on_uploaded, job);
}

static void upload(struct job *job, const char *path)
{
    const struct message *m = message_of(job);
    struct err e = { 0 };
    /* A link is followed only where it leads to a descriptor of ours. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | (m->fd > 0 ? 0 : O_NOFOLLOW));
    const struct media_put p = { .take_fd = fd, .name = m->name, .type = content_type(m->name) };
    if (fd < 0) {
        (void)err_sys(&e, ERR_REFUSED, errno, "cannot open %s", path);
        on_uploaded(job, NULL, &e);
    } else if (job->room->encrypted) {
        cipher_start(job->c, fd, NULL, on_ciphered, job);
    } else {
        matrix_media_put(job->c, &p, on_uploaded, job);
    }
}

/* ---- what is needed ---- */

static bool needs_file(const struct job *job, const struct message *m)
{
    const char *key = job->room->encrypted ? "file" : "url";
    const struct json *had =
        json_get(job->sent, job->room->encrypted ? "file" : "mxc"); /* maybe from before a restart */
    if (!m->path || json_get(m->content, key))
        return false;
    if (json_type(had) == JSON_NULL)
        return true;
    json_set(m->content, key, json_dup(had));
    return false;
}

/* What an m.image says of its small one. false: there is none that clients would show. */
static bool describe_small(const struct message *m)
{
    struct stat st;
    int width = 0, height = 0;
    autoclose int fd = open(m->small, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    picture_size(fd, &width, &height);
    if (!width)
        return false;
    struct json *about = json_new_object(), *info = json_dup(json_get(m->content, "info"));
    json_set_int(about, "w", width);
    json_set_int(about, "h", height);
    json_set_int(about, "size", st.st_size);
    json_set_str(about, "mimetype", "image/png");
    json_set(info, "thumbnail_info", about);
    json_set(m->content, "info", info);
    return true;
}

static bool needs_small(const struct job *job, struct message *m)
{
    const struct json *had = json_get(job->sent, "small");
    if (!m->small || !m->path || json_get(json_get(m->content, "info"), "thumbnail_file"))
        return false;
    if (json_type(had) == JSON_NULL) {
        if (describe_small(m))
            return true;
        free(take(m->small));
        return false;
    }
    (void)describe_small(m);
    struct json *info = json_dup(json_get(m->content, "info"));
    json_set(info, "thumbnail_file", json_dup(had));
    json_set(m->content, "info", info);
    return false;
}

bool upload_step(struct job *job)
{
    struct message *m = message_of(job);
    const bool small = needs_small(job, m);
    if (!small && !needs_file(job, m))
        return false;
    job->small = small;
    upload(job, small ? m->small : m->path);
    return true;
}
