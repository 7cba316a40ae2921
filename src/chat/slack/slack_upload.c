/* slack_upload.c - files in three steps: an address for each, its bytes there, then all of them into the thread as one message.
 *
 * Slack says ok before the message exists, and now and then drops it: so it is waited for, and once done again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "slack_out_private.h"

enum {
    BYTES_MAX = 200 << 20,
    NAME_MAX_BYTES = 200,
    ALT_BYTES = 900,
    POLLS = 7,
    ROUNDS = 2,
};

struct upload {
    struct job *j;
    char part[16];
    const struct upload_file *files;
    size_t n, i;      /* i: the one that is being sent */
    struct json *ids; /* [{"id","title"}] of those that are there */
    int fd;
    int64_t bytes;
    char *file_id;
    struct slack_call *call;
    struct http_call *http;
    loop_timer timer;
    int polls, rounds, tries;
    struct str left_out; /* what could not be sent, and why, in words for people */
};

static void next(struct upload *u);
static void complete(struct upload *u);
static void poll_share(void *ud);

void upload_cancel(struct upload *u)
{
    if (!u)
        return;
    slack_api_cancel(u->call);
    http_cancel(u->http);
    loop_cancel(u->j->o->loop, u->timer);
    if (u->fd >= 0)
        (void)close(u->fd);
    json_free(u->ids);
    free(u->file_id);
    str_clear(&u->left_out);
    free(u);
}

static void end(struct upload *u, const char *ts, const struct err *failed)
{
    struct job *j = u->j;
    struct err e = { 0 };
    char part[16];
    (void)snprintf(part, sizeof(part), "%s", u->part);
    if (u->left_out.len && !failed)
        job_note(j, str_peek(&u->left_out));
    j->upload = NULL;
    upload_cancel(u);
    if (failed)
        job_fail(j, failed);
    else if (job_keep(j, part, ts, NULL, &e) < 0)
        job_fail(j, &e);
    else
        job_step(j);
}

/* Slack's codes for files, in words; others stand as they are. */
static const char *words_of(const char *code)
{
    static const struct {
        const char *code, *words;
    } known[] = {
        { "file_type_not_allowed", "this workspace takes no files of its kind" },
        { "file_upload_size_restricted", "it is larger than this workspace takes" },
        { "file_uploads_disabled", "this workspace takes no files" },
        { "file_uploads_except_images_disabled", "this workspace takes pictures only" },
        { "missing_scope", "the app needs the files:write scope" },
        { "not_in_channel", "the bot is not a member of this channel" },
        { "posting_to_channel_denied", "files may not be posted in this channel" },
        { "slack_connect_file_upload_sharing_blocked", "files may not be shared with the other organisation" },
        { "storage_limit_reached", "the workspace has no room for files left" },
    };
    for (size_t i = 0; i < countof(known); i++)
        if (strcmp(known[i].code, code) == 0)
            return known[i].words;
    return code;
}

static void add_left_out(struct upload *u, const struct upload_file *f, const char *why)
{
    log_warn("slack_file_not_sent", KV_S("txn", u->j->txn), KV_S("file", f->name), KV_S("why", why));
    str_printf(&u->left_out, "%s%.200s: %.120s", u->left_out.len ? "; " : "", f->name ? f->name : "a file", why);
}

/* NOLINTNEXTLINE(misc-no-recursion): ends with the files */
static void leave_out(struct upload *u, const char *why)
{
    add_left_out(u, &u->files[u->i], why);
    u->i++;
    next(u);
}

/* None of them is in the thread: said, and the words still go. */
static void leave_all_out(struct upload *u, const char *why)
{
    str_clear(&u->left_out);
    for (size_t i = 0; i < u->n; i++)
        add_left_out(u, &u->files[i], why);
    end(u, "", NULL);
}

/* What holds for one file only, or for all of this app's: the words need not wait for it. */
static bool is_about_files(const struct slack_reply *r)
{
    return r->err && !err_retryable(r->err) &&
           (r->err->kind != ERR_CONFIG || (r->error && strcmp(r->error, "missing_scope") == 0));
}

/* ---- step 3: into the thread, and seen there ---- */

static const char *share_ts(const struct json *shares, const char *channel)
{
    static const char *const kinds[] = { "public", "private" };
    for (size_t i = 0; i < countof(kinds); i++) {
        const struct json *share = json_first(json_get(json_get(shares, kinds[i]), channel));
        const char *ts = json_str_or(share, "ts", NULL);
        if (ts)
            return ts;
    }
    return NULL;
}

static void not_shared(struct upload *u)
{
    log_warn("slack_share_lost", KV_S("txn", u->j->txn), KV_I("round", u->rounds));
    if (u->rounds >= ROUNDS) {
        leave_all_out(u, "Slack took it, but did not show it");
        return;
    }
    json_free(u->ids);
    u->ids = json_new_array();
    u->i = 0;
    u->rounds++;
    next(u);
}

static void on_info(void *ud, const struct slack_reply *r)
{
    struct upload *u = ud;
    const char *ts = share_ts(json_get(json_get(r->body, "file"), "shares"), u->j->place.channel);
    u->call = NULL;
    if (ts)
        end(u, ts, NULL);
    else if (u->polls < POLLS)
        u->timer = loop_after(u->j->o->loop, INT64_C(250) << (u->polls < 5 ? u->polls : 5), poll_share, u);
    else
        not_shared(u);
}

static void poll_share(void *ud)
{
    struct upload *u = ud;
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    u->timer = 0;
    u->polls++;
    slack_form_add(&form, "file", json_str_or(json_first(u->ids), "id", ""));
    u->call = slack_api_start(
        u->j->o->c.api,
        &(struct slack_request){ .method = "files.info", .team = u->j->place.team, .form = &form, .tries = 2 }, on_info,
        u);
}

static void wait_share(struct upload *u)
{
    u->polls = 0;
    poll_share(u);
}

static void on_complete(void *ud, const struct slack_reply *r)
{
    struct upload *u = ud;
    u->call = NULL;
    if (!r->err || r->uncertain || (r->error && strcmp(r->error, "file_not_found") == 0)) {
        wait_share(u); /* in doubt, files.info knows */
    } else if (is_about_files(r)) {
        leave_all_out(u, words_of(r->error ? r->error : "Slack refused it"));
    } else {
        end(u, NULL, r->err);
    }
}

static void complete(struct upload *u)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    struct err e = { 0 };
    if (!json_len(u->ids)) {
        end(u, "", NULL);
        return;
    }
    if (job_keep(u->j, u->part, NULL, u->ids, &e) < 0) {
        end(u, NULL, &e);
        return;
    }
    slack_form_add_json(&form, "files", u->ids);
    slack_form_add(&form, "channel_id", u->j->place.channel);
    slack_form_add(&form, "thread_ts", u->j->place.root);
    u->call = slack_api_start(u->j->o->c.api,
                              &(struct slack_request){ .method = "files.completeUploadExternal",
                                                       .team = u->j->place.team,
                                                       .channel = u->j->place.channel,
                                                       .form = &form },
                              on_complete, u);
}

/* ---- steps 1 and 2, file by file ---- */

static void sent(struct upload *u)
{
    const struct upload_file *f = &u->files[u->i];
    struct json *o = json_new_object();
    json_set_str(o, "id", u->file_id);
    json_set_str(o, "title", f->title && *f->title ? f->title : f->name ? f->name : "file");
    json_push(u->ids, o);
    u->tries = 0;
    u->i++;
    next(u);
}

static void retry_file(void *ud)
{
    struct upload *u = ud;
    u->timer = 0;
    next(u);
}

static void on_bytes(void *ud, const struct http_answer *a)
{
    struct upload *u = ud;
    u->http = NULL;
    if (!a->err && a->status == 200)
        sent(u);
    else if (++u->tries < 3)
        u->timer = loop_after(u->j->o->loop, 1000 << u->tries, retry_file, u);
    else
        leave_out(u, "its bytes did not get through");
}

static void send_bytes(struct upload *u, const char *url)
{
    static const struct http_events events = { .done = on_bytes };
    static const char *const headers[] = { "Content-Type: application/octet-stream", NULL };
    struct err e = { 0 };
    const struct http_request r = { .method = "POST",
                                    .url = url,
                                    .headers = headers,
                                    .upload_fd = u->fd,
                                    .upload_n = u->bytes,
                                    .own_limits = true,
                                    .total_ms = 30000 + u->bytes / 256 };
    if (http_start(&u->http, u->j->o->c.http, &r, &events, u, &e) < 0)
        leave_out(u, "Slack's address for it is none");
}

static void on_url(void *ud, const struct slack_reply *r)
{
    struct upload *u = ud;
    const char *url = json_str_or(r->body, "upload_url", NULL), *id = json_str_or(r->body, "file_id", NULL);
    u->call = NULL;
    if (r->err && !is_about_files(r)) {
        end(u, NULL, r->err);
    } else if (r->err || !url || !id) {
        leave_out(u, r->error ? words_of(r->error) : "Slack gives no address for it");
    } else {
        free(u->file_id);
        u->file_id = xstrdup(id);
        send_bytes(u, url);
    }
}

/* Open at its beginning; what lies in memory goes into a file without a name. */
static const char *open_file(struct upload *u)
{
    const struct upload_file *f = &u->files[u->i];
    struct stat st;
    if (u->fd >= 0)
        (void)close(u->fd);
    u->fd = f->path ? open(f->path, O_RDONLY | O_CLOEXEC) : memfd_create("answer", MFD_CLOEXEC);
    if (u->fd < 0 || (f->text && write_all(u->fd, f->text, strlen(f->text)) < 0) || fstat(u->fd, &st) < 0)
        return "it is not there any more";
    u->bytes = st.st_size;
    if (u->bytes == 0)
        return "it is empty";
    return u->bytes > BYTES_MAX ? "it is too large for Slack" : NULL;
}

static char *cut(const char *text, size_t max)
{
    return text && *text ? xstrndup(text, utf8_cut(text, strlen(text), max)) : NULL;
}

/* NOLINTNEXTLINE(misc-no-recursion): ends with the files */
static void next(struct upload *u)
{
    if (u->i == u->n) {
        complete(u);
        return;
    }
    const char *problem = open_file(u);
    if (problem) {
        leave_out(u, problem);
        return;
    }
    const struct upload_file *f = &u->files[u->i];
    const char *slash = f->name ? strrchr(f->name, '/') : NULL;
    autofree char *name = cut(slash ? slash + 1 : f->name, NAME_MAX_BYTES), *alt = cut(f->alt, ALT_BYTES);
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    slack_form_add(&form, "filename", name ? name : "file");
    slack_form_add_int(&form, "length", u->bytes);
    slack_form_add(&form, "alt_txt", alt);
    const struct slack_request r = { .method = "files.getUploadURLExternal", .team = u->j->place.team, .form = &form };
    u->call = slack_api_start(u->j->o->c.api, &r, on_url, u);
}

/* ---- an earlier life may have done it ---- */

static void on_earlier(void *ud, const struct slack_reply *r)
{
    struct upload *u = ud;
    const char *ts = share_ts(json_get(json_get(r->body, "file"), "shares"), u->j->place.channel);
    u->call = NULL;
    if (r->err && err_retryable(r->err)) {
        end(u, NULL, r->err);
    } else if (ts) {
        log_info("slack_part_found", KV_S("key", u->part));
        end(u, ts, NULL);
    } else {
        json_free(u->ids);
        u->ids = json_new_array();
        next(u);
    }
}

static void ask_earlier(struct upload *u)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    slack_form_add(&form, "file", json_str_or(json_first(u->ids), "id", ""));
    const struct slack_request r = { .method = "files.info", .team = u->j->place.team, .form = &form };
    u->call = slack_api_start(u->j->o->c.api, &r, on_earlier, u);
}

void upload_start(struct job *j, const char *part, const struct upload_file *files, size_t n)
{
    struct upload *u = xcalloc(1, sizeof(*u));
    const struct json *earlier = json_get(job_part(j, part), "ids");
    *u = (struct upload){ .j = j, .files = files, .n = n, .fd = -1, .rounds = 1, .left_out = STR_INIT(4096) };
    (void)snprintf(u->part, sizeof(u->part), "%s", part);
    u->ids = json_len(earlier) ? json_dup(earlier) : json_new_array();
    j->upload = u;
    if (json_len(earlier))
        ask_earlier(u);
    else
        next(u);
}
