/* media.c - files up and down, through descriptors: nothing is ever whole in memory.
 *
 * A redirect is followed without our token, which is the homeserver's alone. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "ids.h"
#include "json.h"
#include "log.h"
#include "matrix.h"

enum {
    TRIES_MAX = 4,
    HOPS_MAX = 3,
    TRANSFER_MS = 30 * 60000,
    ERROR_MAX = 16 << 10, /* bytes of an error's body */
};

struct media {
    struct media *next;
    struct chat *c;
    loop_timer timer;
    int tries, hops, fd;
    unsigned token; /* its number */
    /* down */
    char *server, *id, *redirect;
    int64_t max_bytes, got;
    bool legacy, too_big, full;
    struct str error; /* the body of an answer that is none */
    media_fn *fn;
    /* up */
    char *name, *type;
    media_put_fn *put_fn;
    void *ud;
};

static void media_end(struct media *m)
{
    struct media **at = &m->c->media;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    loop_cancel(m->c->loop, m->timer);
    if (m->fd >= 0)
        (void)close(m->fd);
    str_clear(&m->error);
    free(m->server);
    free(m->id);
    free(m->redirect);
    free(m->name);
    free(m->type);
    free(m);
}

static struct media *media_new(struct chat *c, void *ud)
{
    struct media *m = xcalloc(1, sizeof(*m));
    *m = (struct media){ .next = c->media, .c = c, .fd = -1, .ud = ud, .error = STR_INIT(ERROR_MAX) };
    c->media = m;
    return m;
}

void matrix_media_free(struct chat *c)
{
    while (c->media)
        media_end(c->media);
}

/* Beside what it becomes: what people send is on no other disk, and the disk that an operator watches is the one that fills. */
int matrix_temp_file(const struct chat *c, struct err *e)
{
    const char *dir = c->data_dir ? c->data_dir : ".";
    const int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd >= 0 ? fd : err_sys(e, ERR_STORE, errno, "cannot make a temporary file in %s", dir);
    autofree char *name = xasprintf("%s/.part-XXXXXX", dir); /* a file system that knows no files without names */
    const int named = mkostemp(name, O_CLOEXEC);
    if (named < 0)
        return err_sys(e, ERR_STORE, errno, "cannot make a temporary file in %s", dir);
    (void)unlink(name);
    return named;
}

static struct api_answer judged(const struct http_answer *h, const struct json *body)
{
    struct api_answer a = { .status = h->status, .body = body, .errcode = json_str_or(body, "errcode", "") };
    a.error = json_str_or(body, "error", "");
    if (h->err)
        a.err = api_lost(h->err);
    api_judge(&a, h->err ? 0 : http_retry_after_ms(h));
    return a;
}

/* It may have ended while nothing else was asked: the next try has another. */
static bool is_stale(const struct media *m, const struct api_answer *a)
{
    if (a->status == 401 && strcmp(a->errcode, "M_UNKNOWN_TOKEN") == 0)
        api_refused(m->c->api, m->token, json_bool_or(a->body, "soft_logout", false));
    return a->status == 401;
}

/* ---- down ---- */

static void got(struct media *m, const char *problem)
{
    const int fd = m->fd;
    media_fn *fn = m->fn;
    void *ud = m->ud;
    const int64_t bytes = m->got;
    m->fd = -1;
    media_end(m);
    if (problem && fd >= 0)
        (void)close(fd);
    else if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET);
    fn(ud, problem ? -1 : fd, problem ? 0 : bytes, problem);
}

static bool on_body(void *ud, int status, const char *data, size_t n)
{
    struct media *m = ud;
    if (status < 200 || status >= 300) {
        str_add(&m->error, data, n);
        return true;
    }
    m->too_big = m->got + (int64_t)n > m->max_bytes;
    m->full = !m->too_big && write_all(m->fd, data, n) < 0;
    m->got += (int64_t)n;
    return !m->too_big && !m->full;
}

static void get_go(void *ud);

static void get_later(struct media *m, int64_t ms)
{
    m->timer = loop_after(m->c->loop, ms, get_go, m);
}

static bool follow(struct media *m, const struct http_answer *h)
{
    const char *to = h->err ? NULL : http_header(h, "location");
    if (!to || h->status < 301 || h->status > 308 || ++m->hops > HOPS_MAX)
        return false;
    if (strncmp(to, "https://", 8) != 0 && strncmp(to, "http://", 7) != 0)
        return false; /* http.h decides whether plain is allowed */
    free(m->redirect);
    m->redirect = xstrdup(to);
    get_later(m, 0);
    return true;
}

/* An old server, or an old file that only the old way reaches. */
static bool fall_back(struct media *m, const struct api_answer *a)
{
    if (m->legacy || strcmp(a->errcode, "M_UNRECOGNIZED") != 0)
        return false;
    m->legacy = true;
    get_later(m, 0);
    return true;
}

static void get_failed(struct media *m, const struct api_answer *a)
{
    char problem[80];
    const bool stale = !m->redirect && is_stale(m, a);
    if (m->too_big) {
        (void)snprintf(problem, sizeof(problem), "it is larger than %" PRId64 " MB", m->max_bytes >> 20);
        got(m, problem);
    } else if (!m->full && (stale || err_retryable(&a->err)) && ++m->tries < TRIES_MAX) {
        get_later(m, a->err.retry_ms > api_backoff_ms(m->tries) ? a->err.retry_ms : api_backoff_ms(m->tries));
    } else {
        log_warn("matrix_download_failed", KV_S("server", m->server), KV_I("status", a->status), KV_E(&a->err));
        got(m, m->full ? "there is no room for it on this machine" : "the server does not hand it out");
    }
}

static void on_got(void *ud, const struct http_answer *h)
{
    struct media *m = ud;
    autojson struct json *body = NULL;
    struct err ignored = { 0 };
    if (m->error.len && json_parse(&body, str_peek(&m->error), m->error.len, ERROR_MAX, &ignored) < 0)
        body = NULL;
    struct api_answer a = judged(h, body);
    if (a.err.kind == ERR_DATA && !h->err && h->status >= 200 && h->status < 300) {
        got(m, NULL); /* bytes, not JSON: what we wanted */
        return;
    }
    if (!follow(m, h) && !fall_back(m, &a))
        get_failed(m, &a);
}

static const struct http_events get_events = { .body = on_body, .done = on_got };

static char *get_url(const struct media *m)
{
    if (m->redirect)
        return xstrdup(m->redirect);
    autofree char *server = mx_escape(m->server);
    return xasprintf("%s/_matrix/%s/download/%s/%s?timeout_ms=20000", api_base_url(m->c->api),
                     m->legacy ? "media/v3" : "client/v1/media", server, m->id);
}

static void get_go(void *ud)
{
    struct media *m = ud;
    struct err e = { 0 };
    struct http_call *call = NULL;
    const char *const headers[] = { api_bearer(m->c->api), NULL };
    autofree char *url = get_url(m);
    const struct http_request r = { .method = "GET",
                                    .url = url,
                                    .headers = m->redirect ? NULL : headers,
                                    .allow_plain = api_plain(m->c->api),
                                    .total_ms = TRANSFER_MS,
                                    .max_bytes = (size_t)m->max_bytes + ERROR_MAX };
    m->timer = 0;
    m->got = 0;
    m->token = api_token_number(m->c->api);
    str_clear(&m->error);
    if (ftruncate(m->fd, 0) < 0 || lseek(m->fd, 0, SEEK_SET) < 0 ||
        http_start(&call, api_http(m->c->api, API_LANE_SEND), &r, &get_events, m, &e) < 0)
        got(m, "the server does not hand it out");
}

void matrix_media_get(struct chat *c, const struct media_get *g, media_fn *fn, void *ud)
{
    struct err e = { 0 };
    struct media *m = media_new(c, ud);
    m->fn = fn;
    m->max_bytes = g->max_bytes;
    m->legacy = c->legacy_media;
    if (!mx_split_mxc(g->mxc, &m->server, &m->id)) {
        got(m, "its address is malformed");
        return;
    }
    m->fd = matrix_temp_file(c, &e);
    if (m->fd < 0) {
        log_error("matrix_no_temporary_file", KV_E(&e));
        got(m, "there is no room for it on this machine");
        return;
    }
    get_go(m);
}

/* ---- up ---- */

static void put(struct media *m, const char *mxc, const struct err *e)
{
    media_put_fn *fn = m->put_fn;
    void *ud = m->ud;
    media_end(m);
    fn(ud, mxc, e);
}

static void put_go(void *ud);

static void on_put(void *ud, const struct http_answer *h)
{
    struct media *m = ud;
    autojson struct json *body = NULL;
    struct err ignored = { 0 };
    if (h->body_n && json_parse(&body, h->body, h->body_n, ERROR_MAX, &ignored) < 0)
        body = NULL;
    struct api_answer a = judged(h, body);
    autofree char *mxc = xstrdup(json_str_or(body, "content_uri", "")), *server = NULL, *id = NULL;
    if (a.err.kind == ERR_NONE && !mx_split_mxc(mxc, &server, &id))
        (void)err_set(&a.err, ERR_DATA, "the server's upload answer names no file");
    if (a.err.kind == ERR_NONE) {
        put(m, mxc, NULL);
    } else if ((is_stale(m, &a) || err_retryable(&a.err)) && ++m->tries < TRIES_MAX) {
        const int64_t backoff = api_backoff_ms(m->tries);
        m->timer = loop_after(m->c->loop, a.err.retry_ms > backoff ? a.err.retry_ms : backoff, put_go, m);
    } else {
        put(m, NULL, &a.err);
    }
}

static const struct http_events put_events = { .done = on_put };

static int put_start(struct media *m, struct err *e)
{
    struct stat st;
    struct http_call *call = NULL;
    m->token = api_token_number(m->c->api);
    if (fstat(m->fd, &st) < 0)
        return err_sys(e, ERR_STORE, errno, "cannot read %s", m->name ? m->name : "a file");
    if (m->c->upload_max > 0 && st.st_size > m->c->upload_max)
        return err_set(e, ERR_REFUSED, "%lld bytes are more than the server takes", (long long)st.st_size);
    autofree char *name = m->name ? mx_escape(m->name) : NULL;
    autofree char *url = xasprintf("%s/_matrix/media/v3/upload%s%s", api_base_url(m->c->api), name ? "?filename=" : "",
                                   name ? name : "");
    autofree char *type = xasprintf("Content-Type: %s", m->type);
    const char *const headers[] = { api_bearer(m->c->api), type, NULL };
    const struct http_request r = { .method = "POST",
                                    .url = url,
                                    .headers = headers,
                                    .upload_fd = m->fd,
                                    .upload_n = st.st_size,
                                    .body = st.st_size ? NULL : "",
                                    .allow_plain = api_plain(m->c->api),
                                    .total_ms = TRANSFER_MS,
                                    .max_bytes = ERROR_MAX };
    return http_start(&call, api_http(m->c->api, API_LANE_SEND), &r, &put_events, m, e);
}

static void put_go(void *ud)
{
    struct media *m = ud;
    struct err e = { 0 };
    m->timer = 0;
    if (put_start(m, &e) < 0)
        put(m, NULL, &e);
}

void matrix_media_put(struct chat *c, const struct media_put *p, media_put_fn *fn, void *ud)
{
    struct media *m = media_new(c, ud);
    m->put_fn = fn;
    m->name = xstrdup_or_null(p->name);
    m->type = xstrdup(p->type);
    m->fd = p->take_fd;
    put_go(m);
}
