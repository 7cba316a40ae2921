/* device_grant.c - OAuth's device authorisation grant (RFC 8628), for servers whose accounts live elsewhere: the log names a page that a person
 * opens once; from then on the session is renewed for ever. */
#include <string.h>
#include <sys/random.h>
#include "ids.h"
#include "json.h"
#include "log.h"
#include "matrix.h"

#define DEVICE_CODE "urn:ietf:params:oauth:grant-type:device_code"

enum { INTERVAL_S = 5, INTERVAL_MAX_S = 60, DEVICE_ID_MAX = 16 };

struct device_grant {
    struct chat *c;
    char *token_url, *authorize_url, *device_code;
    int64_t interval_ms, until_ms; /* loop time */
    loop_timer timer;
};

void matrix_grant_free(struct device_grant *g)
{
    if (!g)
        return;
    loop_cancel(g->c->loop, g->timer);
    free(g->token_url);
    free(g->authorize_url);
    if (g->device_code)
        explicit_bzero(g->device_code, strlen(g->device_code));
    free(g->device_code);
    free(g);
}

static void failed(struct device_grant *g, const struct err *e)
{
    struct chat *c = g->c;
    struct err why = *e;
    matrix_grant_free(take(c->login.grant));
    (void)err_wrap(&why, "login by device code");
    matrix_login_again(c, &why);
}

static void fail_words(struct device_grant *g, enum err_kind kind, const char *words)
{
    struct err e = { 0 };
    (void)err_set(&e, kind, "%s", words);
    failed(g, &e);
}

/* ---- the token ---- */

static void ask_token(void *ud);

static void poll_again(struct device_grant *g)
{
    if (loop_now_ms(g->c->loop) >= g->until_ms)
        fail_words(g, ERR_NET, "nobody opened the page in time");
    else
        g->timer = loop_after(g->c->loop, g->interval_ms, ask_token, g);
}

static void got_token(struct device_grant *g, const struct json *body)
{
    struct chat *c = g->c;
    if (!matrix_login_tokens(c, body)) {
        fail_words(g, ERR_DATA, "the server's answer has no token");
        return;
    }
    free(c->login.token_url);
    c->login.token_url = take(g->token_url);
    struct err e = { 0 };
    if (matrix_login_keep(c, &e) < 0) { /* before it is used: the code works once */
        failed(g, &e);
        return;
    }
    matrix_grant_free(take(c->login.grant));
    api_token(c->api, c->login.token);
    matrix_login_whoami(c); /* which keeps it all */
}

static void on_token(void *ud, const struct api_answer *a)
{
    struct device_grant *g = ud;
    if (a->err.kind == ERR_NONE) {
        got_token(g, a->body);
    } else if (strcmp(a->errcode, "authorization_pending") == 0 || err_retryable(&a->err)) {
        poll_again(g);
    } else if (strcmp(a->errcode, "slow_down") == 0) {
        g->interval_ms += 5000;
        poll_again(g);
    } else if (strcmp(a->errcode, "expired_token") == 0) {
        fail_words(g, ERR_NET, "nobody opened the page in time");
    } else {
        failed(g, &a->err);
    }
}

static void ask_token(void *ud)
{
    struct device_grant *g = ud;
    g->timer = 0;
    autofree char *code = mx_escape(g->device_code), *client = mx_escape(g->c->login.client_id);
    autofree char *grant = mx_escape(DEVICE_CODE);
    autofree char *form = xasprintf("grant_type=%s&device_code=%s&client_id=%s", grant, code, client);
    api_start(g->c->api, &(struct api_request){ .method = "POST", .path = g->token_url, .form = form, .open = true },
              on_token, g);
}

/* ---- the page that a person opens ---- */

static void on_code(void *ud, const struct api_answer *a)
{
    struct device_grant *g = ud;
    const char *code = json_str_or(a->body, "device_code", NULL), *user_code = json_str_or(a->body, "user_code", NULL);
    const char *page = json_str_or(a->body, "verification_uri_complete", NULL);
    page = page ? page : json_str_or(a->body, "verification_uri", NULL);
    if (a->err.kind != ERR_NONE) {
        failed(g, &a->err);
        return;
    }
    if (!code || !page || !user_code) {
        fail_words(g, ERR_DATA, "the server's answer names no page and code");
        return;
    }
    const int64_t every = json_int_or(a->body, "interval", INTERVAL_S), life = json_int_or(a->body, "expires_in", 600);
    g->device_code = xstrdup(code);
    g->interval_ms = (every > 0 && every < INTERVAL_MAX_S ? every : INTERVAL_S) * 1000;
    g->until_ms = loop_now_ms(g->c->loop) + (life > 0 && life < 86400 ? life : 600) * 1000;
    log_warn("matrix_open_this_page_to_log_in", KV_S("page", page), KV_S("code", user_code));
    poll_again(g);
}

static void make_device_id(char out[DEVICE_ID_MAX + 1])
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    unsigned char random[DEVICE_ID_MAX];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        abort();
    for (size_t i = 0; i < DEVICE_ID_MAX; i++)
        out[i] = letters[random[i] % 32];
    out[DEVICE_ID_MAX] = '\0';
}

static void ask_code(struct device_grant *g)
{
    char device[DEVICE_ID_MAX + 1];
    make_device_id(device);
    const char *id = g->c->login.device ? g->c->login.device : device;
    autofree char *scope = xasprintf("urn:matrix:client:api:* urn:matrix:client:device:%s", id);
    autofree char *escaped = mx_escape(scope), *client = mx_escape(g->c->login.client_id);
    autofree char *form = xasprintf("client_id=%s&scope=%s", client, escaped);
    api_start(g->c->api,
              &(struct api_request){ .method = "POST", .path = g->authorize_url, .form = form, .open = true }, on_code,
              g);
}

/* ---- who we are to that server ---- */

static void on_registered(void *ud, const struct api_answer *a)
{
    struct device_grant *g = ud;
    const char *id = json_str_or(a->body, "client_id", NULL);
    if (a->err.kind != ERR_NONE) {
        failed(g, &a->err);
        return;
    }
    if (!id || !*id) {
        fail_words(g, ERR_DATA, "the server's registration answer has no client_id");
        return;
    }
    free(g->c->login.client_id);
    g->c->login.client_id = xstrdup(id);
    ask_code(g);
}

static void register_client(struct device_grant *g, const char *url)
{
    autojson struct json *body = json_new_object();
    struct json *grants = json_new_array();
    json_push(grants, json_new_string(DEVICE_CODE));
    json_push(grants, json_new_string("refresh_token"));
    json_set_str(body, "client_name", g->c->conf->matrix_device_name);
    json_set_str(body, "client_uri", "https://sandbook.example/");
    json_set(body, "grant_types", grants);
    json_set_str(body, "token_endpoint_auth_method", "none");
    json_set_str(body, "application_type", "native");
    api_start(g->c->api, &(struct api_request){ .method = "POST", .path = url, .body = body, .open = true },
              on_registered, g);
}

static bool is_url(const char *text)
{
    return text && (strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0);
}

static void on_metadata(void *ud, const struct api_answer *a)
{
    struct device_grant *g = ud;
    const char *token = json_str_or(a->body, "token_endpoint", NULL);
    const char *registration = json_str_or(a->body, "registration_endpoint", NULL);
    const char *authorize = json_str_or(a->body, "device_authorization_endpoint", NULL);
    if (a->status == 404)
        fail_words(g, ERR_CONFIG, "this server does not know it: set matrix.password_file or matrix.access_token_file");
    else if (a->err.kind != ERR_NONE)
        failed(g, &a->err);
    else if (!is_url(token) || !is_url(registration) || !is_url(authorize))
        fail_words(g, ERR_CONFIG, "this server does not offer it: set matrix.access_token_file");
    else {
        g->token_url = xstrdup(token);
        g->authorize_url = xstrdup(authorize);
        register_client(g, registration);
    }
}

void matrix_grant_start(struct chat *c)
{
    matrix_grant_free(take(c->login.grant));
    c->login.grant = xcalloc(1, sizeof(*c->login.grant));
    *c->login.grant = (struct device_grant){ .c = c };
    api_start(c->api,
              &(struct api_request){ .method = "GET", .path = "/_matrix/client/v1/auth_metadata", .open = true },
              on_metadata, c->login.grant);
}

void matrix_grant_refresh(struct chat *c, api_fn *fn)
{
    autofree char *token = mx_escape(c->login.refresh), *client = mx_escape(c->login.client_id);
    autofree char *form = xasprintf("grant_type=refresh_token&refresh_token=%s&client_id=%s", token, client);
    api_start(c->api, &(struct api_request){ .method = "POST", .path = c->login.token_url, .form = form, .open = true },
              fn, c);
}
