/* slack_api.c - a call waits for its slot, is sent, judged, and perhaps sent again. */
#include "slack_api.h"
#include <stdio.h>
#include <string.h>
#include "log.h"
#include "loop.h"
#include "slack_limit.h"

enum {
    TRIES = 5,
    CONNECT_MS = 10000,
    TOTAL_MS = 30000,
    ANSWER_MAX = 4 << 20,
    ASKED_MS = 30000, /* a limit without a time */
    ASKED_MAX_MS = 600000,
    RENEWAL_MS = 500,
};

struct slack_api {
    struct loop *l;
    struct http *h;
    char *url, *own_team;
    struct slack_limit *limit;
    struct slack_call *calls;
    void (*renew)(void *ud, struct slack_team *t);
    void *renew_ud;
};

struct slack_call {
    struct slack_api *a;
    struct slack_call *next;
    char *method, *token, *channel, *header;
    struct slack_team *team;
    struct str form;
    slack_reply_fn *fn;
    void *ud;
    int tries, tries_max;
    bool renewed;
    unsigned renewals; /* the team's, when it was sent */
    loop_timer timer;
    struct http_call *http;
};

/* ---- forms ---- */

static void percent(struct str *out, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
    for (; *text; text++) {
        if (strchr(plain, *text))
            str_putc(out, *text);
        else
            str_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

void slack_form_add(struct str *form, const char *key, const char *value)
{
    if (!value)
        return;
    str_printf(form, "%s%s=", form->len ? "&" : "", key);
    percent(form, value);
}

void slack_form_add_json(struct str *form, const char *key, const struct json *value)
{
    AUTO(str_clear) struct str text = STR_INIT(SLACK_FORM_MAX);
    json_print(&text, value);
    slack_form_add(form, key, str_peek(&text));
}

void slack_form_add_int(struct str *form, const char *key, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%lld", (long long)value);
    slack_form_add(form, key, text);
}

/* ---- the life of a call ---- */

static void begin(void *ud);

static const char *team_of(const struct slack_call *c)
{
    return c->team ? (c->team->team ? c->team->team : c->team->enterprise) : c->a->own_team;
}

static void call_free(struct slack_call *c)
{
    struct slack_call **at = &c->a->calls;
    while (*at && *at != c)
        at = &(*at)->next;
    if (*at)
        *at = c->next;
    loop_cancel(c->a->l, c->timer);
    http_cancel(c->http);
    str_clear(&c->form);
    free(c->method);
    if (c->token)
        explicit_bzero(c->token, strlen(c->token));
    free(c->token);
    free(c->channel);
    free(c->header);
    free(c);
}

void slack_api_cancel(struct slack_call *c)
{
    if (c)
        call_free(c);
}

static void tell(struct slack_call *c, const struct slack_reply *r)
{
    slack_reply_fn *fn = c->fn;
    void *ud = c->ud;
    if (r->err)
        log_info("slack_call_failed", KV_S("method", c->method), KV_S("team", team_of(c)), KV_I("tries", c->tries),
                 KV_E(r->err));
    call_free(c);
    fn(ud, r);
}

static void wait(struct slack_call *c, int64_t ms)
{
    c->timer = loop_after(c->a->l, ms > 0 ? ms : 0, begin, c);
}

static int64_t pause_ms(int tries)
{
    return INT64_C(1000) << (tries < 4 ? tries - 1 : 3);
}

static int64_t asked_ms(const struct http_answer *a)
{
    const char *text = http_header(a, "retry-after");
    const long seconds = text ? strtol(text, NULL, 10) : 0;
    const int64_t ms = seconds > 0 ? seconds * INT64_C(1000) : text ? 1000 : ASKED_MS;
    return ms < ASKED_MAX_MS ? ms : ASKED_MAX_MS;
}

/* ---- what came ---- */

static int transport_error(const struct slack_call *c, const struct http_answer *a, struct err *e)
{
    if (a->err) {
        *e = *a->err;
        return err_wrap(e, "%s", c->method);
    }
    return err_set(e, ERR_NET, "%s: HTTP %d without an answer that is JSON", c->method, a->status);
}

static enum err_kind kind_of(enum slack_class class)
{
    switch (class) {
    case SLACK_WAIT: return ERR_LIMIT;
    case SLACK_TRANSIENT: return ERR_NET;
    case SLACK_AUTH: return ERR_CONFIG;
    case SLACK_REFUSED:
    case SLACK_PAYLOAD:
    case SLACK_FEATURE:
    case SLACK_BENIGN: return ERR_REFUSED;
    }
    return ERR_REFUSED;
}

static void limited(struct slack_call *c, int64_t asked, const struct slack_reply *r)
{
    const int64_t until = loop_now_ms(c->a->l) + asked;
    slack_limit_park(c->a->limit, team_of(c), c->method, until);
    log_info("slack_limited", KV_S("method", c->method), KV_S("team", team_of(c)), KV_I("wait_ms", asked));
    if (c->tries < c->tries_max)
        wait(c, asked);
    else
        tell(c, r);
}

static bool renewing(struct slack_call *c, const char *code)
{
    if (strcmp(code, "token_expired") != 0 || c->renewed || !c->team || !c->team->renewal || !c->a->renew)
        return false;
    c->renewed = true;
    if (c->renewals == c->team->renewals) /* else another call's refusal has brought a new one meanwhile */
        c->a->renew(c->a->renew_ud, c->team);
    wait(c, RENEWAL_MS);
    return true;
}

static void refused(struct slack_call *c, const struct http_answer *a, struct slack_reply *r)
{
    struct err e = { 0 };
    const enum slack_class class = slack_error_class(r->error);
    const struct json *words = json_first(json_get(json_get(r->body, "response_metadata"), "messages"));
    (void)err_set(&e, kind_of(class), "%s: %.60s %.100s", c->method, r->error,
                  json_text(words) ? json_text(words) : json_str_or(r->body, "needed", ""));
    r->err = &e; /* cppcheck-suppress autoVariables ; until this returns */
    if (class == SLACK_WAIT) {
        e.retry_ms = (long)asked_ms(a);
        limited(c, e.retry_ms, r);
    } else if (class == SLACK_TRANSIENT && c->tries < c->tries_max) {
        wait(c, pause_ms(c->tries));
    } else if (!renewing(c, r->error)) {
        tell(c, r);
    }
    r->err = NULL;
}

/* No answer of Slack's: HTML of a proxy, a cut body, silence. */
static void unanswered(struct slack_call *c, const struct http_answer *a)
{
    struct err e = { 0 };
    struct slack_reply r = { .err = &e };
    (void)transport_error(c, a, &e);
    const bool never_sent = a->err && a->err->kind == ERR_CONFIG;
    r.uncertain = c->channel != NULL && !never_sent;
    const bool again = !never_sent && !r.uncertain && c->tries < c->tries_max;
    if (again)
        wait(c, pause_ms(c->tries));
    else
        tell(c, &r);
}

static void on_done(void *ud, const struct http_answer *a)
{
    struct slack_call *c = ud;
    struct err e = { 0 };
    autojson struct json *body = NULL;
    c->http = NULL;
    const bool parsed = !a->err && a->body && json_parse(&body, a->body, a->body_n, ANSWER_MAX, &e) == 0 &&
                        json_type(json_get(body, "ok")) == JSON_BOOL;
    struct slack_reply r = { .body = parsed ? body : NULL, .scopes = a->err ? NULL : http_header(a, "x-oauth-scopes") };
    if (!a->err && a->status == 429) {
        (void)err_set(&e, ERR_LIMIT, "%s: Slack asks to wait", c->method);
        e.retry_ms = (long)asked_ms(a);
        r.err = &e;
        r.error = "ratelimited";
        limited(c, e.retry_ms, &r);
    } else if (!parsed || a->status >= 500) {
        unanswered(c, a);
    } else if (json_bool_or(body, "ok", false)) {
        tell(c, &r);
    } else {
        r.error = json_str_or(body, "error", "unknown_error");
        refused(c, a, &r);
    }
}

/* ---- sending ---- */

static char *authorization(const struct slack_call *c)
{
    if (c->header)
        return xasprintf("Authorization: %s", c->header);
    return xasprintf("Authorization: Bearer %s", c->team ? c->team->token : c->token);
}

static void send(struct slack_call *c)
{
    static const struct http_events events = { .done = on_done };
    struct err e = { 0 };
    autofree char *url = xasprintf("%s%s", c->a->url, c->method), *auth = authorization(c);
    const char *const headers[] = { "Content-Type: application/x-www-form-urlencoded; charset=utf-8", auth, NULL };
    const struct http_request r = {
        .method = "POST",
        .url = url,
        .headers = headers,
        .body = str_peek(&c->form),
        .body_n = c->form.len,
        .own_limits = true,
        .at_most_once = c->channel != NULL,
        .connect_ms = CONNECT_MS,
        .total_ms = TOTAL_MS,
        .max_bytes = ANSWER_MAX,
    };
    c->tries++;
    c->renewals = c->team ? c->team->renewals : 0;
    if (http_start(&c->http, c->a->h, &r, &events, c, &e) == 0) {
        explicit_bzero(auth, strlen(auth));
        return;
    }
    explicit_bzero(auth, strlen(auth));
    tell(c, &(struct slack_reply){ .err = &e });
}

/* Its time has come, unless Slack asked for patience meanwhile. */
static void begin(void *ud)
{
    struct slack_call *c = ud;
    c->timer = 0;
    const int64_t now = loop_now_ms(c->a->l);
    const int64_t parked = slack_limit_parked(c->a->limit, team_of(c), c->method, now);
    if (c->team && c->team->renewing)
        wait(c, RENEWAL_MS);
    else if (parked)
        wait(c, parked - now);
    else
        send(c);
}

struct slack_call *slack_api_start(struct slack_api *a, const struct slack_request *r, slack_reply_fn *fn, void *ud)
{
    struct slack_call *c = xcalloc(1, sizeof(*c));
    *c = (struct slack_call){
        .a = a,
        .next = a->calls,
        .method = xstrdup(r->method),
        .token = r->token ? xstrdup(r->token) : NULL,
        .channel = r->channel ? xstrdup(r->channel) : NULL,
        .header = r->header ? xstrdup(r->header) : NULL,
        .team = r->team,
        .form = STR_INIT(SLACK_FORM_MAX),
        .fn = fn,
        .ud = ud,
        .tries_max = r->tries ? r->tries : TRIES,
    };
    if (r->form) {
        c->form = *r->form;
        *r->form = (struct str)STR_INIT(SLACK_FORM_MAX);
    }
    a->calls = c;
    wait(c, slack_limit_take(a->limit, team_of(c), c->method, c->channel, loop_now_ms(a->l)));
    return c;
}

struct slack_api *slack_api_new(struct loop *l, struct http *h, const char *url, const char *own_team,
                                void (*renew)(void *ud, struct slack_team *t), void *ud)
{
    struct slack_api *a = xcalloc(1, sizeof(*a));
    const char *end = *url && url[strlen(url) - 1] == '/' ? "" : "/";
    *a = (struct slack_api){
        .l = l,
        .h = h,
        .url = xasprintf("%s%s", url, end),
        .own_team = xstrdup(own_team),
        .limit = slack_limit_new(),
        .renew = renew,
        .renew_ud = ud,
    };
    return a;
}

void slack_api_free(struct slack_api *a)
{
    if (!a)
        return;
    for (struct slack_call *c = a->calls, *next; c; c = next) {
        next = c->next;
        call_free(c);
    }
    slack_limit_free(a->limit);
    free(a->url);
    free(a->own_team);
    free(a);
}
