/* login_words.c - what goes wrong before the first sync, in words for who sets it up: which setting to look at. */
#include <string.h>
#include <time.h>
#include "ids.h"
#include "json.h"
#include "log.h"
#include "matrix.h"

enum { SKEW_MAX_MS = 300000 /* between two clocks; verification and renewals go by them */ };

static bool mentions(const struct api_answer *a, const char *word)
{
    return strcasestr(a->error, word) != NULL;
}

static void password_words(const struct chat *c, const struct api_answer *a, struct err *e)
{
    if (a->status == 404 || strcmp(a->errcode, "M_UNRECOGNIZED") == 0 || mentions(a, "disabled"))
        (void)err_set(
            e, ERR_CONFIG,
            "this server takes no password from programs: empty matrix.password_file and open the page that the log "
            "then names, or set matrix.access_token_file");
    else if (a->status == 403 && strcmp(a->errcode, "M_FORBIDDEN") == 0)
        (void)err_set(
            e, ERR_CONFIG,
            "%.60s does not take user and password (\"%.60s\"): see matrix.user (%.60s) and matrix.password_file",
            api_base_url(c->api), a->error, c->conf->matrix_user);
}

static void token_words(const struct chat *c, const struct api_answer *a, struct err *e)
{
    if (a->status == 401 || e->kind == ERR_CONFIG)
        (void)err_set(e, ERR_CONFIG, "%.80s does not take the token in matrix.access_token_file", api_base_url(c->api));
}

static void server_words(const struct chat *c, const struct api_answer *a, struct err *e)
{
    const bool is_page = a->status >= 200 && a->status < 500 && a->err.kind != ERR_LIMIT;
    if (is_page)
        (void)err_set(e, ERR_NET, "%.100s answers (HTTP %d), but is not a Matrix homeserver: see matrix.homeserver",
                      api_base_url(c->api), a->status);
    else if (e->kind == ERR_CONFIG || e->kind == ERR_NET)
        (void)err_wrap(e, "matrix.homeserver");
}

void matrix_login_words(const struct chat *c, enum login_step step, const struct api_answer *a, struct err *e)
{
    switch (step) {
    case LOGIN_SERVER: server_words(c, a, e); break;
    case LOGIN_PASSWORD: password_words(c, a, e); break;
    case LOGIN_TOKEN: token_words(c, a, e); break;
    }
}

void matrix_login_clock(const struct api_answer *a)
{
    const int64_t skew_ms = a->date_ms ? time_unix_ms() - a->date_ms : 0;
    if (skew_ms > SKEW_MAX_MS || skew_ms < -SKEW_MAX_MS)
        log_warn("matrix_clock",
                 KV_S("why", "this machine's clock and the server's differ: verification and renewals may fail"),
                 KV_I("ahead_s", skew_ms / 1000));
}
