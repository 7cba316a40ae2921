/* login.c - from the configuration to a token that works.
 *
 * A session that is kept comes first: it is renewed, never replaced, as a new device would be a new identity to everybody. Only when
 * there is none, a token or a password makes one. Order at a renewal: the new tokens are durable before the first of them is used,
 * since the old ones stay good until then. */
#include <string.h>
#include "ids.h"
#include "json.h"
#include "log.h"
#include "matrix.h"

enum {
    EARLY_MS = 30000, /* a token is renewed so long before its end, or at a fifth of its life */
    HOPS_MAX = 3,
};
static const int64_t life_max_ms = INT64_C(365) * 24 * 3600 * 1000;

static const struct kept login_row = { MATRIX_PLATFORM, "login", "" };

static void wipe(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(*text);
    *text = NULL;
}

void matrix_login_clear(struct login *l)
{
    wipe(&l->token);
    wipe(&l->refresh);
    free(l->user);
    free(l->device);
    free(l->localpart);
    free(l->client_id);
    free(l->token_url);
    matrix_grant_free(l->grant);
    *l = (struct login){ 0 };
}

/* ---- what is kept ---- */

static bool is_auth(const struct chat *c, const char *word, const char *file)
{
    const char *auth = c->conf->matrix_auth;
    return strcmp(auth, word) == 0 || (strcmp(auth, "auto") == 0 && file && *file);
}

int matrix_login_keep(struct chat *c, struct err *e)
{
    autojson struct json *j = json_new_object();
    AUTO(str_clear) struct str text = STR_INIT(64 << 10);
    const struct login *l = &c->login;
    json_set_str(j, "homeserver", api_base_url(c->api));
    json_set_str(j, "user", l->user);
    json_set_str(j, "device", l->device);
    const bool from_file = !l->refresh && is_auth(c, "token", c->conf->matrix_token_file);
    json_set_str(j, "token", from_file ? NULL : l->token); /* the file stays its one owner */
    json_set_str(j, "refresh", l->refresh);
    json_set_str(j, "client_id", l->client_id);
    json_set_str(j, "token_url", l->token_url);
    json_set_int(j, "expires_ms", l->expires_ms);
    json_print(&text, j);
    const int rc = store_keep(c->store, &login_row, str_peek(&text), text.len, e);
    explicit_bzero(text.buf, text.len);
    return rc;
}

static char *member(const struct json *j, const char *key)
{
    const char *text = json_str_or(j, key, NULL);
    return xstrdup_or_null(text);
}

int matrix_login_load(struct chat *c, bool *found, struct err *e)
{
    autofree char *text = NULL;
    autojson struct json *j = NULL;
    size_t n = 0;
    *found = false;
    if (store_kept(c->store, &login_row, &text, &n, e) < 0)
        return -1;
    if (!text)
        return 0;
    if (json_parse(&j, text, n, 64 << 10, e) < 0)
        return err_wrap(e, "the kept session");
    explicit_bzero(text, n);
    c->login.user = member(j, "user");
    c->login.device = member(j, "device");
    c->login.token = member(j, "token");
    c->login.refresh = member(j, "refresh");
    c->login.client_id = member(j, "client_id");
    c->login.token_url = member(j, "token_url");
    c->login.expires_ms = json_int_or(j, "expires_ms", 0);
    if (!*c->conf->matrix_homeserver)
        api_base(c->api, json_str_or(j, "homeserver", ""));
    *found = c->login.user != NULL;
    return 0;
}

/* ---- trying ---- */

void matrix_down(struct chat *c, const struct err *e)
{
    if (!c->dead)
        log_error("matrix_down", KV_S("user", c->conf->matrix_user), KV_E(e));
    matrix_end(c);
}

void matrix_end(struct chat *c)
{
    c->dead = true;
    c->login.up = false;
    api_token(c->api, NULL);
    matrix_outbox_pump(c);
}

static void on_retry(void *ud)
{
    struct chat *c = ud;
    c->login.timer = 0;
    matrix_login_start(c);
}

void matrix_login_again(struct chat *c, const struct err *e)
{
    if (!err_retryable(e) && e->kind != ERR_DATA) {
        matrix_down(c, e);
        return;
    }
    const int64_t backoff = api_backoff_ms(++c->login.tries), ms = e->retry_ms > backoff ? e->retry_ms : backoff;
    log_warn("matrix_login_waits", KV_I("try", c->login.tries), KV_I("wait_ms", ms), KV_E(e));
    loop_cancel(c->loop, c->login.timer);
    c->login.timer = loop_after(c->loop, ms, on_retry, c);
}

/* ---- tokens ---- */

static void on_refresh_due(void *ud);

static void arm_refresh(struct chat *c)
{
    struct login *l = &c->login;
    loop_cancel(c->loop, l->refresh_timer);
    l->refresh_timer = 0;
    if (!l->expires_ms || !l->refresh)
        return;
    const int64_t left = l->expires_ms - time_unix_ms(), early = left / 5 > EARLY_MS ? left / 5 : EARLY_MS;
    const int64_t ms = left > early ? left - early : left > 2 ? left / 2 : 1;
    l->refresh_timer = loop_after(c->loop, ms, on_refresh_due, c);
}

bool matrix_login_tokens(struct chat *c, const struct json *body)
{
    struct login *l = &c->login;
    const char *token = json_str_or(body, "access_token", NULL), *refresh = json_str_or(body, "refresh_token", NULL);
    int64_t life = json_int_or(body, "expires_in_ms", 0);
    if (life <= 0)
        life = json_int_or(body, "expires_in", 0) * 1000;
    if (!token || !*token || strpbrk(token, "\r\n"))
        return false;
    wipe(&l->token);
    l->token = xstrdup(token);
    if (refresh) {
        wipe(&l->refresh);
        l->refresh = xstrdup(refresh);
    }
    l->expires_ms = life > 0 ? time_unix_ms() + (life < life_max_ms ? life : life_max_ms) : 0;
    return true;
}

static void on_refreshed(void *ud, const struct api_answer *a)
{
    struct chat *c = ud;
    struct err e = a->err;
    c->login.renewed = false;
    if (e.kind == ERR_NONE && !matrix_login_tokens(c, a->body))
        (void)err_set(&e, ERR_DATA, "the server renewed the session without a token");
    if (e.kind == ERR_NONE && matrix_login_keep(c, &e) == 0) {
        c->login.tries = 0;
        log_info("matrix_token_renewed", KV_I("expires_ms", c->login.expires_ms));
        api_token(c->api, c->login.token);
        arm_refresh(c);
        if (!c->login.up && !c->login.timer)
            matrix_login_whoami(c);
    } else if (err_retryable(&e) || e.kind == ERR_STORE) {
        loop_cancel(c->loop, c->login.refresh_timer);
        c->login.refresh_timer = loop_after(c->loop, api_backoff_ms(++c->login.tries), on_refresh_due, c);
    } else {
        wipe(&c->login.refresh); /* it will never work again */
        matrix_login_stale(c, json_bool_or(a->body, "soft_logout", false));
    }
}

static void on_refresh_due(void *ud)
{
    struct chat *c = ud;
    loop_cancel(c->loop, c->login.refresh_timer); /* a refusal came before it */
    c->login.refresh_timer = 0;
    if (c->login.renewed) /* one at a time */
        return;
    c->login.renewed = true;
    if (c->login.client_id) {
        matrix_grant_refresh(c, on_refreshed);
        return;
    }
    autojson struct json *body = json_new_object();
    json_set_str(body, "refresh_token", c->login.refresh);
    const struct api_request r = { .method = "POST", .path = "/_matrix/client/v3/refresh", .body = body, .open = true };
    api_start(c->api, &r, on_refreshed, c);
}

/* ---- a password ---- */

static void on_login(void *ud, const struct api_answer *a)
{
    struct chat *c = ud;
    struct err e = a->err;
    const char *user = json_str_or(a->body, "user_id", NULL), *device = json_str_or(a->body, "device_id", NULL);
    if (e.kind == ERR_NONE && (!mx_is_user(user) || !device || !matrix_login_tokens(c, a->body)))
        (void)err_set(&e, ERR_DATA, "the server's login answer lacks a user, device or token");
    if (e.kind == ERR_NONE && c->login.device && device && strcmp(c->login.device, device) != 0)
        (void)err_set(&e, ERR_CONFIG, "the server gave another device than the kept one");
    if (e.kind != ERR_NONE || !user || !device) {
        matrix_login_words(c, LOGIN_PASSWORD, a, &e);
        (void)err_wrap(&e, "login");
        matrix_login_again(c, &e);
        return;
    }
    free(c->login.user);
    free(c->login.device);
    c->login.user = xstrdup(user);
    c->login.device = xstrdup(device);
    if (matrix_login_keep(c, &e) < 0) {
        matrix_login_again(c, &e);
        return;
    }
    api_token(c->api, c->login.token);
    arm_refresh(c);
    if (!c->login.up)
        matrix_login_whoami(c);
}

static void password_login(struct chat *c)
{
    struct err e = { 0 };
    char *secret = NULL;
    if (conf_read_secret(&secret, c->conf->matrix_password_file, &e) < 0) {
        matrix_down(c, &e);
        return;
    }
    autojson struct json *body = json_new_object();
    struct json *who = json_new_object();
    json_set_str(body, "type", "m.login.password");
    json_set_str(who, "type", "m.id.user");
    json_set_str(who, "user", c->conf->matrix_user);
    json_set(body, "identifier", who);
    json_set_str(body, "password", secret);
    if (c->login.device) /* the same device: its keys and its identity stay */
        json_set_str(body, "device_id", c->login.device);
    json_set_str(body, "initial_device_display_name", c->conf->matrix_device_name);
    json_set_bool(body, "refresh_token", true);
    const struct api_request r = { .method = "POST", .path = "/_matrix/client/v3/login", .body = body, .open = true };
    api_start(c->api, &r, on_login, c);
    wipe(&secret);
}

/* ---- a token that stopped working ---- */

void matrix_login_stale(void *ud, bool soft_logout)
{
    struct chat *c = ud;
    struct err e = { 0 };
    if (c->login.refresh && !c->login.renewed) {
        on_refresh_due(c);
        return;
    }
    if (c->login.renewed)
        return; /* its answer decides */
    if (soft_logout && *c->conf->matrix_password_file && c->login.device && !c->login.client_id) {
        wipe(&c->login.refresh);
        password_login(c);
        return;
    }
    if (!c->login.device) /* a token of the operator's, and never a good one */
        matrix_login_words(c, LOGIN_TOKEN, &(struct api_answer){ .status = 401 }, &e);
    else
        (void)err_set(
            &e, ERR_CONFIG,
            "the server ended this session; its state is kept. To make a new device: sandbook matrix logout, then login");
    matrix_down(c, &e);
}

/* ---- who are we? ---- */

static void on_media_config(void *ud, const struct api_answer *a)
{
    struct chat *c = ud;
    c->upload_max = json_int_or(a->body, "m.upload.size", 0);
    matrix_e2ee_start(c);
}

static void on_profile(void *ud, const struct api_answer *a)
{
    struct chat *c = ud;
    const char *name = json_str_or(a->body, "displayname", "");
    free(c->display_name);
    c->display_name = xstrndup(name, strnlen(name, MX_ID_MAX));
}

static void logged_in(struct chat *c)
{
    log_info("matrix_logged_in", KV_S("user", c->login.user), KV_S("device", c->login.device));
    c->login.up = true;
    c->login.tries = 0;
    arm_refresh(c);
    free(c->login.localpart);
    c->login.localpart = mx_localpart(c->login.user);
    autofree char *user = mx_escape(c->login.user);
    autofree char *profile = xasprintf("/_matrix/client/v3/profile/%s/displayname", user);
    api_start(c->api, &(struct api_request){ .method = "GET", .path = profile }, on_profile, c);
    api_start(c->api, &(struct api_request){ .method = "GET", .path = "/_matrix/client/v1/media/config" },
              on_media_config, c);
}

/* What the server says of the token, against what is configured and kept. */
static void check_owner(const struct chat *c, const char *user, const char *device, struct err *e)
{
    const struct login *l = &c->login;
    if (strcmp(user, c->conf->matrix_user) != 0 && l->user)
        (void)err_set(e, ERR_CONFIG,
                      "data_dir holds a session of %.60s, but matrix.user is %.60s: set that back, name another "
                      "data_dir, or end the session: sandbook matrix logout",
                      user, c->conf->matrix_user);
    else if (strcmp(user, c->conf->matrix_user) != 0)
        (void)err_set(e, ERR_CONFIG, "the token in matrix.access_token_file belongs to %.80s, but matrix.user is %.80s",
                      user, c->conf->matrix_user);
    else if (l->device && strcmp(device, l->device) != 0)
        (void)err_set(e, ERR_CONFIG,
                      "the token belongs to device %.40s, but data_dir to device %.40s: give a token of that one, or "
                      "begin anew: sandbook matrix logout, then login",
                      device, l->device);
}

static void on_whoami(void *ud, const struct api_answer *a)
{
    struct chat *c = ud;
    struct err e = a->err;
    const char *user = json_str_or(a->body, "user_id", NULL), *device = json_str_or(a->body, "device_id", NULL);
    c->login.asking = false;
    if (e.kind == ERR_NONE && (!mx_is_user(user) || !device))
        (void)err_set(&e, ERR_CONFIG, "the server does not say which user and device the token belongs to");
    if (e.kind == ERR_NONE && user && device)
        check_owner(c, user, device, &e);
    if (e.kind != ERR_NONE || !user || !device) {
        if (!c->dead)
            matrix_login_again(c, &e);
        return;
    }
    if (!c->login.device || !c->login.user) {
        c->login.device = xstrdup(device);
        free(c->login.user);
        c->login.user = xstrdup(user);
        if (matrix_login_keep(c, &e) < 0) {
            matrix_login_again(c, &e);
            return;
        }
    }
    logged_in(c);
}

/* A token that ran out is renewed while the question waits for it: that is not to be asked twice. */
void matrix_login_whoami(struct chat *c)
{
    if (c->login.asking)
        return;
    c->login.asking = true;
    api_start(c->api, &(struct api_request){ .method = "GET", .path = "/_matrix/client/v3/account/whoami" }, on_whoami,
              c);
}

/* ---- the beginning ---- */

static void new_session(struct chat *c)
{
    struct err e = { 0 };
    if (is_auth(c, "token", c->conf->matrix_token_file)) {
        wipe(&c->login.token);
        if (conf_read_secret(&c->login.token, c->conf->matrix_token_file, &e) < 0) {
            matrix_down(c, &e);
            return;
        }
        api_token(c->api, c->login.token);
        matrix_login_whoami(c);
    } else if (is_auth(c, "password", c->conf->matrix_password_file)) {
        password_login(c);
    } else {
        matrix_grant_start(c);
    }
}

static bool is_version_11(const struct json *version)
{
    const char *text = json_text(version);
    return text && strncmp(text, "v1.", 3) == 0 && strtol(text + 3, NULL, 10) >= 11;
}

static void on_versions(void *ud, const struct api_answer *a)
{
    struct chat *c = ud;
    struct err e = a->err;
    const struct json *versions = json_get(a->body, "versions");
    if (e.kind == ERR_NONE && json_type(versions) != JSON_ARRAY)
        (void)err_set(&e, ERR_DATA, "%.120s is not a Matrix homeserver", api_base_url(c->api));
    if (e.kind == ERR_REFUSED)
        e.kind = ERR_NET; /* a proxy's page: the server behind it may come back */
    if (e.kind != ERR_NONE) {
        matrix_login_words(c, LOGIN_SERVER, a, &e);
        matrix_login_again(c, &e);
        return;
    }
    matrix_login_clock(a);
    c->legacy_media = true;
    for (const struct json *v = json_first(versions); v; v = json_next(v))
        c->legacy_media = c->legacy_media && !is_version_11(v);
    if (c->login.token) {
        api_token(c->api, c->login.token);
        arm_refresh(c);
        matrix_login_whoami(c);
        return;
    }
    new_session(c);
}

static void ask_versions(struct chat *c)
{
    api_start(c->api, &(struct api_request){ .method = "GET", .path = "/_matrix/client/versions", .open = true },
              on_versions, c);
}

static void on_well_known(void *ud, const struct api_answer *a);

static void ask_well_known(struct chat *c, const char *url)
{
    api_start(c->api, &(struct api_request){ .method = "GET", .path = url, .open = true }, on_well_known, c);
}

/* example.org may send us to www.example.org, and nowhere without TLS. */
static bool follow(struct chat *c, const struct api_answer *a)
{
    if (a->status < 301 || a->status > 308 || !a->location || strncmp(a->location, "https://", 8) != 0 ||
        ++c->login.hops > HOPS_MAX)
        return false;
    ask_well_known(c, a->location);
    return true;
}

static void on_well_known(void *ud, const struct api_answer *a)
{
    struct chat *c = ud;
    if (follow(c, a))
        return;
    const char *url = json_str_or(json_get(a->body, "m.homeserver"), "base_url", NULL);
    struct err e = a->err;
    if (e.kind == ERR_NONE && (!url || strncmp(url, "https://", 8) != 0 || strpbrk(url, " ?#\"<>\\")))
        (void)err_set(&e, ERR_CONFIG, "%.80s names no homeserver: set matrix.homeserver",
                      mx_server_of(c->conf->matrix_user));
    if (a->status == 404)
        (void)err_set(&e, ERR_CONFIG, "%.80s does not say where its homeserver is: set matrix.homeserver",
                      mx_server_of(c->conf->matrix_user));
    if (e.kind != ERR_NONE) {
        matrix_login_again(c, &e);
        return;
    }
    api_base(c->api, url);
    ask_versions(c);
}

void matrix_login_start(struct chat *c)
{
    if (*c->conf->matrix_homeserver)
        api_base(c->api, c->conf->matrix_homeserver);
    if (*api_base_url(c->api)) {
        ask_versions(c);
        return;
    }
    autofree char *url = xasprintf("https://%s/.well-known/matrix/client", mx_server_of(c->conf->matrix_user));
    c->login.hops = 0;
    ask_well_known(c, url);
}
