/* http_easy.c - a call as a curl handle: options, and the callbacks that only append or hand on. */
#include <string.h>

#include <curl/curl.h>
#include "http_call.h"

#ifndef SANDBOOK_VERSION
#define SANDBOOK_VERSION "dev"
#endif

/* ---- what curl calls ---- */

static size_t on_body(char *data, size_t one, size_t n, void *ud)
{
    struct http_call *c = ud;
    const size_t bytes = one * n;
    c->got_bytes += (int64_t)bytes;
    if (c->cancelled || (uint64_t)c->got_bytes > c->max_bytes) {
        c->too_long = !c->cancelled;
        return CURL_WRITEFUNC_ERROR;
    }
    const int status = http_easy_status(c);
    /* The body of an answer that will be tried again is nobody's; it is kept for the error's words. */
    const bool again =
        c->tries < c->tries_max && http_retry_status(status, http_easy_header(c->easy, "x-should-retry"));
    if (!c->ev.body || again) {
        str_add(&c->answer, data, bytes);
        return bytes;
    }
    c->told = true;
    c->stopped = !c->ev.body(c->ud, status, data, bytes);
    return c->stopped || c->cancelled ? CURL_WRITEFUNC_ERROR : bytes;
}

/* The offset is ours: the descriptor's own may be shared, and a retry begins again. */
static size_t on_upload(char *to, size_t one, size_t n, void *ud)
{
    struct http_call *c = ud;
    int64_t left = c->upload_n - c->upload_at, room = (int64_t)(one * n);
    if (c->cancelled)
        return CURL_READFUNC_ABORT;
    ssize_t got = pread(c->upload_fd, to, (size_t)(left < room ? left : room), c->upload_at);
    if (got < 0 || (got == 0 && left > 0)) /* the file became shorter: the length was promised */
        return CURL_READFUNC_ABORT;
    c->upload_at += got;
    return (size_t)got;
}

static int on_seek(void *ud, curl_off_t offset, int origin)
{
    struct http_call *c = ud;
    if (origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    c->upload_at = offset;
    return CURL_SEEKFUNC_OK;
}

static int on_progress(void *ud, curl_off_t dl_total, curl_off_t dl, curl_off_t ul_total, curl_off_t ul)
{
    (void)dl_total;
    (void)ul_total;
    struct http_call *c = ud;
    if (dl + ul != c->moved) {
        c->moved = dl + ul;
        c->moved_ms = loop_now_ms(c->h->l);
    }
    return c->cancelled;
}

/* Only to see that something moves: headers are no part of the numbers above. */
static size_t on_header(char *data, size_t one, size_t n, void *ud) /* NOLINT(readability-non-const-parameter) */
{
    (void)data;
    struct http_call *c = ud;
    c->moved_ms = loop_now_ms(c->h->l);
    return one * n;
}

/* ---- options ---- */

#define SET(option, value) rc = rc ? rc : curl_easy_setopt(c->easy, option, value)

/* Not CURLOPT_PIPEWAIT: with a peer of HTTP/1.1 (libcurl 7.88) a call then waits for the end of another's stream. */
static CURLcode set_common(struct http_call *c)
{
    CURLcode rc = CURLE_OK;
    SET(CURLOPT_URL, c->url);
    SET(CURLOPT_PRIVATE, c);
    SET(CURLOPT_ERRORBUFFER, c->problem);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_PROTOCOLS_STR, strncasecmp(c->url, "http:", 5) == 0 ? "http" : "https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_USERAGENT, "sandbook/" SANDBOOK_VERSION);
    SET(CURLOPT_HTTPHEADER, c->headers);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, c);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, c);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, c);
    /* With a CAPATH curl reads the whole certificate store anew for each connection: 3 s for 50 of them. */
    SET(CURLOPT_CAPATH, NULL);
    if (c->at_most_once)
        SET(CURLOPT_FRESH_CONNECT, 1L);
    if (c->unpacks)
        SET(CURLOPT_ACCEPT_ENCODING, "identity");
    if (c->loopback) /* a proxy has its own idea of what is local */
        SET(CURLOPT_PROXY, "");
    return rc;
}

static CURLcode set_times(struct http_call *c)
{
    CURLcode rc = CURLE_OK;
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)c->connect_ms);
    if (c->deadline_ms) {
        int64_t left = c->deadline_ms - loop_now_ms(c->h->l);
        SET(CURLOPT_TIMEOUT_MS, (long)(left > 0 ? left : 1));
    }
    return rc;
}

static CURLcode set_method(struct http_call *c)
{
    CURLcode rc = CURLE_OK;
    if (c->body) {
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body_n);
        SET(CURLOPT_POSTFIELDS, c->body);
    } else if (c->upload_fd > 0) {
        c->upload_at = 0;
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)c->upload_n);
        SET(CURLOPT_READFUNCTION, on_upload);
        SET(CURLOPT_READDATA, c);
        SET(CURLOPT_SEEKFUNCTION, on_seek);
        SET(CURLOPT_SEEKDATA, c);
    } else if (strcmp(c->method, "HEAD") == 0) {
        SET(CURLOPT_NOBODY, 1L);
    } else if (strcmp(c->method, "GET") == 0) {
        SET(CURLOPT_HTTPGET, 1L);
    } else if (strcmp(c->method, "DELETE") != 0) {
        SET(CURLOPT_POSTFIELDSIZE, 0L);
        SET(CURLOPT_POSTFIELDS, "");
    }
    if (strcmp(c->method, "GET") != 0 && strcmp(c->method, "HEAD") != 0)
        SET(CURLOPT_CUSTOMREQUEST, c->method);
    return rc;
}

int http_easy_new(struct http_call *c, struct err *e)
{
    c->easy = curl_easy_init();
    CURLcode rc = c->easy ? set_common(c) : CURLE_OUT_OF_MEMORY;
    rc = rc ? rc : set_times(c);
    rc = rc ? rc : set_method(c);
    if (rc == CURLE_OK)
        return 0;
    curl_easy_cleanup(c->easy);
    c->easy = NULL;
    return err_set(e, ERR_CONFIG, "request to %s: %s", c->host->name, curl_easy_strerror(rc));
}

/* ---- what came of it ---- */

int http_easy_status(const struct http_call *c)
{
    long status = 0;
    if (c->easy)
        (void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    return status > 0 && status < 1000 ? (int)status : 0;
}

const char *http_easy_header(CURL *easy, const char *name)
{
    struct curl_header *h = NULL;
    if (!easy || curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &h) != CURLHE_OK)
        return NULL;
    return h->value;
}

static bool connected(const struct http_call *c)
{
    curl_off_t us = 0;
    (void)curl_easy_getinfo(c->easy, CURLINFO_PRETRANSFER_TIME_T, &us);
    return us > 0;
}

static int own_error(const struct http_call *c, struct err *e)
{
    if (c->stalled)
        return err_set(e, ERR_TIMEOUT, "%s: no byte for %lld ms", c->host->name, (long long)c->stall_ms);
    if (c->too_long)
        return err_set(e, ERR_DATA, "%s: the answer is longer than %zu bytes", c->host->name, c->max_bytes);
    return err_set(e, ERR_DATA, "%s: the transfer was stopped", c->host->name);
}

int http_easy_error(const struct http_call *c, struct err *e)
{
    const char *words = *c->problem ? c->problem : curl_easy_strerror(c->result);
    if (c->stalled || c->too_long || c->stopped)
        return own_error(c, e);
    switch ((int)c->result) {
    case CURLE_OK: return 0;
    case CURLE_OPERATION_TIMEDOUT:
        return err_set(e, connected(c) ? ERR_TIMEOUT : ERR_NET, "%s: %s", c->host->name, words);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM: return err_set(e, ERR_CONFIG, "%s: %s", c->host->name, words);
    case CURLE_ABORTED_BY_CALLBACK:
        return err_set(e, ERR_STORE, "%s: the file to be sent could not be read", c->host->name);
    case CURLE_WEIRD_SERVER_REPLY: return err_set(e, ERR_DATA, "%s: %s", c->host->name, words);
    default: return err_set(e, ERR_NET, "%s: %s", c->host->name, words); /* also what was packed and came spoilt */
    }
}
