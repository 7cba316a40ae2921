/* slack_fetch.c - decide, ask files.info where the event says too little, download, walk redirects, check. */
#include "slack_fetch.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>
#include "log.h"
#include "loop.h"

enum {
    HOPS_MAX = 3,
    TRIES = 3,
    TOTAL_MS = 600000,
    STALL_MS = 30000,
    SNIFF = 512,
};

struct slack_fetch {
    struct slack_fetch_config c;
    struct slack_team *team;
    struct json *file;
    slack_fetch_fn *fn;
    void *ud;
    struct slack_call *info;
    struct http_call *http;
    loop_timer timer;
    bool asked; /* files.info was called */
    int hops, tries;
    char *url;
    int fd;
    int64_t bytes;
    char first[SNIFF];
    size_t first_n;
};

static void decide(void *ud);
static void download(void *ud);

void slack_fetch_cancel(struct slack_fetch *f)
{
    if (!f)
        return;
    slack_api_cancel(f->info);
    http_cancel(f->http);
    loop_cancel(f->c.loop, f->timer);
    if (f->fd >= 0)
        (void)close(f->fd);
    json_free(f->file);
    free(f->url);
    free(f);
}

/* The last callback, and the end of f. */
static void tell(struct slack_fetch *f, const char *problem)
{
    const int fd = problem ? -1 : f->fd;
    if (problem)
        log_info("slack_file_not_had", KV_S("file", json_str_or(f->file, "id", "?")), KV_S("why", problem));
    if (!problem)
        f->fd = -1;
    f->fn(f->ud, fd, f->bytes, slack_fetch_label(f->file), problem);
    slack_fetch_cancel(f);
}

static void later(struct slack_fetch *f, int64_t ms, loop_fn *fn)
{
    f->timer = loop_after(f->c.loop, ms, fn, f);
}

/* ---- the file on disk ---- */

static int open_temp(void)
{
    const char *dir = getenv("TMPDIR");
    dir = dir && *dir == '/' ? dir : "/tmp";
    const int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    autofree char *path = xasprintf("%s/sandbook-file-XXXXXX", dir);
    const int made = mkostemp(path, O_CLOEXEC);
    if (made >= 0)
        (void)unlink(path);
    return made;
}

static bool on_body(void *ud, int status, const char *data, size_t n)
{
    struct slack_fetch *f = ud;
    if (status != 200)
        return n < (1 << 16); /* nobody's; small pages are read to their end */
    const size_t room = SNIFF - f->first_n, more = n < room ? n : room;
    memcpy(f->first + f->first_n, data, more);
    f->first_n += more;
    f->bytes += (int64_t)n;
    return f->bytes <= f->c.max_bytes && write_all(f->fd, data, n) == 0;
}

/* ---- what came ---- */

static bool wants_html(const struct slack_fetch *f)
{
    return strcasestr(json_str_or(f->file, "mimetype", ""), "html") ||
           strcasestr(json_str_or(f->file, "filetype", ""), "html");
}

static const char *verdict(const struct slack_fetch *f, const char *type)
{
    static const char no_scope[] = "Slack gave its login page instead of the file: the app needs the files:read scope, "
                                   "or is not in that conversation";
    const int64_t size = json_int_or(f->file, "size", 0);
    const bool html = slack_fetch_is_html(f->first, f->first_n) || (type && strcasestr(type, "text/html"));
    if (html && !wants_html(f))
        return no_scope;
    if (size > 0 && f->bytes != size && strcmp(json_str_or(f->file, "mode", "hosted"), "snippet") != 0)
        return "it arrived incomplete";
    return lseek(f->fd, 0, SEEK_SET) == 0 ? NULL : "it could not be kept on this machine";
}

static void redirected(struct slack_fetch *f, const char *location)
{
    autofree char *url = location ? slack_fetch_resolve(f->url, location) : NULL;
    if (!url || ++f->hops > HOPS_MAX) {
        tell(f, "Slack sent us round in circles for it");
        return;
    }
    if (strstr(url, "redir=") || strstr(url, "/login") || strstr(url, "/signin")) {
        tell(f, "Slack wants a login for it: the app needs the files:read scope, or is not in that conversation");
        return;
    }
    if (slack_fetch_host(url, f->c.hosts, f->c.follow) == SLACK_HOST_NO) {
        tell(f, "it lies on a server that this bot does not trust");
        return;
    }
    free(f->url);
    f->url = take(url);
    later(f, 0, download);
}

static void again(struct slack_fetch *f, int64_t ms, const char *problem)
{
    if (++f->tries < TRIES)
        later(f, ms, download);
    else
        tell(f, problem);
}

static void on_done(void *ud, const struct http_answer *a)
{
    struct slack_fetch *f = ud;
    f->http = NULL;
    const char *after = a->err ? NULL : http_header(a, "retry-after");
    if (f->bytes > f->c.max_bytes)
        tell(f, "it is larger than this bot takes");
    else if (a->err && a->err->kind == ERR_CONFIG)
        tell(f, "its address is none that this bot may ask");
    else if (a->err || a->status >= 500)
        again(f, 1000 << f->tries, "the download broke off");
    else if (a->status == 429)
        again(f, after ? strtol(after, NULL, 10) % 600 * 1000 : 5000, "Slack is too busy");
    else if (a->status >= 300 && a->status < 400)
        redirected(f, http_header(a, "location"));
    else if (a->status != 200)
        tell(f, a->status == 404 ? "it is gone" : "Slack does not give it out");
    else
        tell(f, verdict(f, http_header(a, "content-type")));
}

/* ---- the download ---- */

static void download(void *ud)
{
    static const struct http_events events = { on_body, on_done };
    struct slack_fetch *f = ud;
    struct err e = { 0 };
    f->timer = 0;
    if (f->fd >= 0)
        (void)close(f->fd);
    f->fd = open_temp();
    f->bytes = 0;
    f->first_n = 0;
    if (f->fd < 0) {
        tell(f, "this machine has no room for it");
        return;
    }
    const bool token = slack_fetch_host(f->url, f->c.hosts, "") == SLACK_HOST_TOKEN;
    autofree char *auth = xasprintf("Authorization: Bearer %s", token ? f->team->token : "");
    const char *const headers[] = { token ? auth : NULL, NULL };
    const struct http_request r = { .method = "GET",
                                    .url = f->url,
                                    .headers = headers,
                                    .own_limits = true,
                                    .connect_ms = 10000,
                                    .total_ms = TOTAL_MS,
                                    .stall_ms = STALL_MS,
                                    .max_bytes = (size_t)f->c.max_bytes + (1 << 16) };
    if (http_start(&f->http, f->c.http, &r, &events, f, &e) < 0)
        tell(f, "its address is none that this bot may ask");
    explicit_bzero(auth, strlen(auth));
}

/* ---- which way ---- */

static void on_info(void *ud, const struct slack_reply *r)
{
    struct slack_fetch *f = ud;
    const struct json *file = json_get(r->body, "file");
    f->info = NULL;
    if (r->error && strcmp(r->error, "missing_scope") == 0) {
        tell(f, "the app needs the files:read scope");
        return;
    }
    if (r->err || json_type(file) != JSON_OBJECT) {
        tell(f, r->error && strcmp(r->error, "file_not_found") == 0 ? "it is not visible to this bot"
                                                                    : "Slack does not say where it is");
        return;
    }
    struct json *copy = json_dup(file);
    json_free(f->file);
    f->file = copy;
    decide(f);
}

static void ask_info(struct slack_fetch *f)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    f->asked = true;
    slack_form_add(&form, "file", json_str_or(f->file, "id", ""));
    f->info = slack_api_start(
        f->c.api, &(struct slack_request){ .method = "files.info", .team = f->team, .form = &form }, on_info, f);
}

/* NULL: it can be downloaded. */
static const char *refusal(const struct slack_fetch *f)
{
    static const struct {
        const char *mode, *words;
    } modes[] = {
        { "external", "it lies outside Slack; please upload it here" },
        { "tombstone", "it is no longer there" },
        { "hidden_by_limit", "Slack hides it: the workspace is over its limit of files" },
        { "post", "it is a post of Slack's, not a file; please export it" },
        { "space", "it is a post of Slack's, not a file; please export it" },
        { "canvas", "it is a canvas, not a file; please export it" },
        { "quip", "it is a canvas, not a file; please export it" },
        { "list", "it is a list of Slack's, not a file; please export it" },
    };
    const char *mode = json_str_or(f->file, "mode", ""), *access = json_str_or(f->file, "file_access", "");
    if (json_bool_or(f->file, "is_external", false))
        return modes[0].words;
    for (size_t i = 0; i < countof(modes); i++)
        if (strcmp(mode, modes[i].mode) == 0)
            return modes[i].words;
    if (strcmp(access, "access_denied") == 0 || strcmp(access, "not_visible") == 0)
        return "it is not visible to this bot";
    if (strcmp(access, "file_deleted") == 0 || strcmp(access, "file_not_found") == 0)
        return "it is no longer there";
    return json_int_or(f->file, "size", 0) > f->c.max_bytes ? "it is larger than this bot takes" : NULL;
}

static void decide(void *ud)
{
    struct slack_fetch *f = ud;
    f->timer = 0;
    const char *problem = refusal(f);
    const char *url = json_str_or(f->file, "url_private_download", json_str_or(f->file, "url_private", NULL));
    const bool vague =
        !url || !json_get(f->file, "size") || strcmp(json_str_or(f->file, "file_access", ""), "check_file_info") == 0;
    if (problem)
        tell(f, problem);
    else if (vague && !f->asked && json_str_or(f->file, "id", NULL))
        ask_info(f);
    else if (!url)
        tell(f, "Slack does not say where it is");
    else if (slack_fetch_host(url, f->c.hosts, "") != SLACK_HOST_TOKEN)
        tell(f, "it lies on a server that this bot does not trust");
    else {
        f->url = xstrdup(url);
        download(f);
    }
}

struct slack_fetch *slack_fetch_start(const struct slack_fetch_config *c, struct slack_team *team,
                                      const struct json *file, slack_fetch_fn *fn, void *ud)
{
    struct slack_fetch *f = xcalloc(1, sizeof(*f));
    *f = (struct slack_fetch){ .c = *c, .team = team, .file = json_dup(file), .fn = fn, .ud = ud, .fd = -1 };
    later(f, 0, decide);
    return f;
}
