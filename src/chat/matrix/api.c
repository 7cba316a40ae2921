#include "api.h"
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include "log.h"

enum {
    TIMEOUT_MS = 60000,
    ANSWER_MAX = 8 << 20,
    BODY_MAX = 8 << 20,
    BACKOFF_FIRST_MS = 1000,
    BACKOFF_MAX_MS = 60000,
    NO_HINT_MS = 5000,         /* a 429 that doesn't say how long */
    NO_DATE_MS = 600000,       /* until somebody has done something, nobody knows how long */
    HINT_MAX_MS = 6 * 3600000, /* more is nonsense */
};

struct call {
    struct call *next;
    struct api *a;
    struct http_call *http;
    api_fn *fn;
    void *ud;
    char *method, *url, *text, *type;
    enum api_lane lane;
    int64_t timeout_ms;
    size_t max_bytes;
    unsigned number;         /* of the token that it was sent with */
    bool open, again, waits; /* again: with a new token already; waits: for one */
};

struct api {
    struct loop *loop;
    struct http *http[API_LANES];
    char *base, *bearer;
    bool plain, asked; /* asked: stale() was called, api_token() is due */
    unsigned number;   /* of the token */
    struct call *calls;
    api_stale_fn *stale;
    void *ud;
};

/* ---- life ---- */

int api_new(struct api **out, struct loop *l, bool allow_plain, api_stale_fn *stale, void *ud, struct err *e)
{
    struct api *a = xcalloc(1, sizeof(*a));
    *a = (struct api){ .loop = l, .plain = allow_plain, .stale = stale, .ud = ud, .base = xstrdup("") };
    for (size_t i = 0; i < API_LANES; i++)
        if (http_new(&a->http[i], l, e) < 0) {
            api_free(a);
            return -1;
        }
    *out = a;
    return 0;
}

static void forget_bearer(struct api *a)
{
    if (a->bearer)
        explicit_bzero(a->bearer, strlen(a->bearer));
    free(take(a->bearer));
}

static void call_free(struct call *c)
{
    struct call **at = &c->a->calls;
    while (*at && *at != c)
        at = &(*at)->next;
    if (*at)
        *at = c->next;
    free(c->method);
    free(c->url);
    if (c->text)
        explicit_bzero(c->text, strlen(c->text)); /* may hold a password */
    free(c->text);
    free(c->type);
    free(c);
}

void api_free(struct api *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < API_LANES; i++)
        http_free(a->http[i]);
    while (a->calls)
        call_free(a->calls);
    forget_bearer(a);
    free(a->base);
    free(a);
}

void api_base(struct api *a, const char *url)
{
    size_t n = strlen(url);
    while (n && url[n - 1] == '/')
        n--;
    free(a->base);
    a->base = xstrndup(url, n);
}

const char *api_base_url(const struct api *a)
{
    return a->base;
}

const char *api_bearer(const struct api *a)
{
    return a->bearer ? a->bearer : "Authorization: none";
}

struct http *api_http(const struct api *a, enum api_lane lane)
{
    return a->http[lane];
}

bool api_plain(const struct api *a)
{
    return a->plain;
}

int64_t api_backoff_ms(int n)
{
    unsigned char chance = 0;
    if (getrandom(&chance, 1, 0) != 1)
        chance = 128;
    int64_t ms = BACKOFF_FIRST_MS;
    while (--n > 0 && ms < BACKOFF_MAX_MS)
        ms *= 2;
    ms = ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
    return ms / 2 + ms * chance / 512;
}

/* ---- answers ---- */

struct err api_lost(const struct err *e)
{
    struct err lost = *e;
    if (lost.kind == ERR_CONFIG) /* the address was fine when it was started: a certificate, and those get renewed */
        lost.kind = ERR_NET;
    return lost;
}

static const struct {
    const char *errcode;
    enum err_kind kind;
} kinds[] = {
    { "M_USER_LOCKED", ERR_NET },
    { "M_NOT_YET_UPLOADED", ERR_NET },
    { "M_UNKNOWN_TOKEN", ERR_CONFIG },
    { "M_MISSING_TOKEN", ERR_CONFIG },
    { "M_USER_DEACTIVATED", ERR_CONFIG },
    { "M_LIMIT_EXCEEDED", ERR_LIMIT },
    /* Somebody has to do something, and may: what waits stays. */
    { "M_USER_SUSPENDED", ERR_LIMIT },
    { "M_CONSENT_NOT_GIVEN", ERR_LIMIT },
    { "M_RESOURCE_LIMIT_EXCEEDED", ERR_LIMIT },
    { "M_USER_LIMIT_EXCEEDED", ERR_LIMIT },
};

static enum err_kind kind_of(int status, const char *errcode)
{
    for (size_t i = 0; i < countof(kinds); i++)
        if (strcmp(errcode, kinds[i].errcode) == 0)
            return kinds[i].kind;
    if (status == 429)
        return ERR_LIMIT;
    return status >= 500 || status == 408 ? ERR_NET : ERR_REFUSED;
}

void api_judge(struct api_answer *a, int64_t retry_header_ms)
{
    if (a->err.kind != ERR_NONE)
        return;
    if (a->status >= 200 && a->status < 300) {
        if (!a->body)
            (void)err_set(&a->err, ERR_DATA, "the server's answer is not a JSON object");
        return;
    }
    AUTO(str_clear) struct str see = STR_INIT(512);
    const char *where = json_str_or(a->body, "consent_uri", json_str_or(a->body, "admin_contact", ""));
    utf8_scrub(&see, where, strnlen(where, 120));
    (void)err_set(&a->err, kind_of(a->status, a->errcode), "HTTP %d %.40s %.120s%s%.100s", a->status, a->errcode,
                  a->error, see.len ? ": " : "", str_peek(&see));
    if (a->err.kind != ERR_LIMIT)
        return;
    const int64_t told = json_int_or(a->body, "retry_after_ms", 0);
    int64_t ms = told > retry_header_ms ? told : retry_header_ms;
    ms = ms > 0 ? ms : a->status == 429 ? NO_HINT_MS : NO_DATE_MS;
    a->err.retry_ms = (long)(ms < HINT_MAX_MS ? ms : HINT_MAX_MS);
}

static int64_t date_ms(const struct http_answer *h)
{
    const char *text = http_header(h, "date");
    struct tm tm = { 0 };
    const char *end = text ? strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm) : NULL;
    return end ? (int64_t)timegm(&tm) * 1000 : 0;
}

static void hand_out(struct call *c, const struct api_answer *a)
{
    api_fn *fn = c->fn;
    void *ud = c->ud;
    call_free(c);
    fn(ud, a);
}

static void call_go(struct call *c);

static void ask_for_token(struct api *a, bool soft_logout)
{
    if (a->asked)
        return;
    a->asked = true;
    a->stale(a->ud, soft_logout);
}

unsigned api_token_number(const struct api *a)
{
    return a->number;
}

void api_refused(struct api *a, unsigned number, bool soft_logout)
{
    if (a->bearer && number == a->number)
        ask_for_token(a, soft_logout);
}

/* True: the call waits for another token, or is on its way again with one that came meanwhile. */
static bool renew(struct call *c, const struct api_answer *a)
{
    if (c->open || c->again || a->status != 401 || strcmp(a->errcode, "M_UNKNOWN_TOKEN") != 0)
        return false;
    if (c->number != c->a->number) {
        call_go(c);
        return true;
    }
    c->again = c->waits = true;
    ask_for_token(c->a, json_bool_or(a->body, "soft_logout", false));
    return true;
}

static void on_done(void *ud, const struct http_answer *h)
{
    struct call *c = ud;
    autojson struct json *body = NULL;
    struct err broken = { 0 };
    struct api_answer a = { .status = h->status, .errcode = "", .error = "", .bytes = h->body_n };
    c->http = NULL;
    if (h->err)
        a.err = api_lost(h->err);
    else {
        a.date_ms = date_ms(h);
        a.location = http_header(h, "location");
    }
    if (h->body_n && json_parse(&body, h->body, h->body_n, c->max_bytes, &broken) == 0 &&
        json_type(body) == JSON_OBJECT)
        a.body = body;
    AUTO(str_clear) struct str words = STR_INIT(512);
    a.errcode = json_str_or(a.body, "errcode", json_str_or(a.body, "error", ""));
    const char *said = json_str_or(a.body, "error_description", json_str_or(a.body, "error", ""));
    utf8_scrub(&words, said, strnlen(said, 160));
    a.error = str_peek(&words);
    api_judge(&a, h->err ? 0 : http_retry_after_ms(h));
    if (a.err.kind == ERR_DATA && broken.kind)
        a.err = broken;
    if (!renew(c, &a))
        hand_out(c, &a);
}

static const struct http_events http_events = { .done = on_done };

/* ---- requests ---- */

static void fail(struct call *c, const struct err *e)
{
    const struct api_answer a = { .errcode = "", .error = "", .err = *e };
    hand_out(c, &a);
}

static void call_go(struct call *c)
{
    struct err e = { 0 };
    const char *headers[3] = { 0 };
    size_t n = 0;
    c->waits = false;
    c->number = c->a->number;
    if (!c->open && !c->a->bearer) {
        (void)err_set(&e, ERR_CONFIG, "not logged in");
        fail(c, &e);
        return;
    }
    if (!c->open)
        headers[n++] = c->a->bearer;
    if (c->text)
        headers[n] = c->type;
    const struct http_request r = {
        .method = c->method,
        .url = c->url,
        .headers = headers,
        .body = c->text,
        .body_n = c->text ? strlen(c->text) : 0,
        .allow_plain = c->a->plain,
        .total_ms = c->timeout_ms,
        .stall_ms = c->timeout_ms,
        .max_bytes = c->max_bytes,
    };
    if (http_start(&c->http, c->a->http[c->lane], &r, &http_events, c, &e) < 0)
        fail(c, &e);
}

static char *body_text(const struct api_request *r)
{
    if (r->form || r->text)
        return xstrdup(r->form ? r->form : r->text);
    if (!r->body)
        return strcmp(r->method, "GET") == 0 ? NULL : xstrdup("{}");
    struct str s = STR_INIT(BODY_MAX);
    json_print(&s, r->body);
    return str_take(&s);
}

void api_start(struct api *a, const struct api_request *r, api_fn *fn, void *ud)
{
    struct call *c = xcalloc(1, sizeof(*c));
    const bool whole = strncmp(r->path, "http", 4) == 0;
    *c = (struct call){
        .next = a->calls,
        .a = a,
        .fn = fn,
        .ud = ud,
        .method = xstrdup(r->method),
        .url = whole ? xstrdup(r->path) : xasprintf("%s%s", a->base, r->path),
        .text = body_text(r),
        .type = xstrdup(r->form ? "Content-Type: application/x-www-form-urlencoded" : "Content-Type: application/json"),
        .lane = r->lane,
        .open = r->open,
        .timeout_ms = r->timeout_ms ? r->timeout_ms : TIMEOUT_MS,
        .max_bytes = r->max_bytes ? r->max_bytes : ANSWER_MAX,
    };
    a->calls = c;
    if (a->asked && !c->open)
        c->waits = true;
    else
        call_go(c);
}

static struct call *first_waiting(const struct api *a)
{
    struct call *c = a->calls;
    while (c && !c->waits)
        c = c->next;
    return c;
}

void api_token(struct api *a, const char *token)
{
    forget_bearer(a);
    a->bearer = token ? xasprintf("Authorization: Bearer %s", token) : NULL;
    a->asked = false;
    a->number++;
    for (struct call *c; (c = first_waiting(a));) /* from the start again: a callback may add calls or end some */
        call_go(c);
}
