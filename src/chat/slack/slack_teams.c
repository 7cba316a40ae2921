#include "slack_teams.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "conf.h"
#include "digest.h"
#include "log.h"
#include "loop.h"
#include "secret_file.h"
#include "slack_teams_private.h"

enum {
    FILE_MAX = 4 << 20,
    RETRY_MS = 5000,
    RENEW_BEFORE_MS = 2 * 3600 * 1000, /* tokens live 12 hours */
    RENEW_CHECK_MS = 300000,
};

/* ---- the file ---- */

static void wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

static void team_free(struct slack_team *t)
{
    loop_cancel(t->owner->loop, t->again);
    wipe(t->token);
    wipe(t->renewal);
    json_free(t->row);
    free(t->team);
    free(t->enterprise);
    free(t->user);
    free(t->bot);
    free(t->app);
    free(t->name);
    free(t);
}

static char *dup_or_null(const char *s)
{
    return s && *s ? xstrdup(s) : NULL;
}

static struct slack_team *add(struct slack_teams *t, const struct json *row)
{
    struct slack_team *team = xcalloc(1, sizeof(*team));
    struct slack_team **end = &t->teams;
    while (*end)
        end = &(*end)->next;
    *end = team;
    team->owner = t;
    team->team = dup_or_null(json_str_or(row, "team_id", NULL));
    team->enterprise = dup_or_null(json_str_or(row, "enterprise_id", NULL));
    team->token = dup_or_null(json_str_or(row, "bot_token", NULL));
    team->renewal = dup_or_null(json_str_or(row, "refresh_token", NULL));
    team->expires_ms = json_int_or(row, "expires_at", 0) * 1000;
    team->row = json_dup(row);
    return team;
}

static int read_installs(struct slack_teams *t, const char *path, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(FILE_MAX);
    autojson struct json *rows = NULL;
    if (str_read_file(&text, path, e) < 0 || json_parse(&rows, str_peek(&text), text.len, FILE_MAX, e) < 0)
        return err_wrap(e, "slack.installs_file");
    explicit_bzero(text.buf, text.len);
    if (json_type(rows) != JSON_ARRAY)
        return err_set(e, ERR_CONFIG, "slack.installs_file must hold a JSON array");
    for (const struct json *row = json_first(rows); row; row = json_next(row)) {
        const struct slack_team *team = add(t, row);
        if (!team->token || (!team->team && !team->enterprise))
            return err_set(e, ERR_CONFIG,
                           "slack.installs_file: every row needs bot_token, and team_id or enterprise_id");
    }
    return 0;
}

static int read_single(struct slack_teams *t, const char *path, struct err *e)
{
    char *token = NULL;
    autojson struct json *none = json_new_object();
    if (conf_read_secret(&token, path, e) < 0)
        return err_wrap(e, "slack.bot_token_file");
    add(t, none)->token = token;
    if (strncmp(token, "xoxb-", 5) != 0 && strncmp(token, "xoxe.xoxb-", 10) != 0)
        return err_set(e, ERR_CONFIG, "slack.bot_token_file holds no bot token (xoxb-...)");
    if (strncmp(token, "xoxe.", 5) == 0)
        log_warn("slack_token_ends", KV_S("cure", "a token that rotates needs installs_file, with its refresh token"));
    return 0;
}

/* Only what a renewal changes; the rest of the row is not ours. */
static struct json *row_json(const struct slack_team *team)
{
    struct json *o = json_dup(team->row);
    json_set_str(o, "bot_token", team->token);
    json_set_str(o, "refresh_token", team->renewal);
    json_set_int(o, "expires_at", team->expires_ms / 1000);
    return o;
}

/* Whole or not at all: the old refresh token is void once the new one was handed out, so neither may get lost. */
static int write_installs(const struct slack_teams *t, struct err *e)
{
    const char *path = t->conf->slack_installs_file;
    AUTO(str_clear) struct str text = STR_INIT(FILE_MAX);
    autojson struct json *rows = json_new_array();
    for (const struct slack_team *team = t->teams; team; team = team->next)
        json_push(rows, row_json(team));
    json_print(&text, rows);
    const int rc = secret_file_write(AT_FDCWD, path, str_peek(&text), text.len, e);
    explicit_bzero(text.buf, text.len);
    return rc;
}

int slack_teams_new(struct slack_teams **out, struct loop *l, const struct conf *conf, struct err *e)
{
    struct slack_teams *t = xcalloc(1, sizeof(*t));
    *t = (struct slack_teams){ .loop = l, .conf = conf };
    const int rc = *conf->slack_installs_file ? read_installs(t, conf->slack_installs_file, e)
                                              : read_single(t, conf->slack_bot_token_file, e);
    if (rc == 0 && *conf->slack_client_secret_file &&
        conf_read_secret(&t->client_secret, conf->slack_client_secret_file, e) < 0) {
        slack_teams_free(t);
        return err_wrap(e, "slack.client_secret_file");
    }
    if (rc < 0) {
        slack_teams_free(t);
        return -1;
    }
    *out = t;
    return 0;
}

void slack_teams_free(struct slack_teams *t)
{
    if (!t)
        return;
    loop_cancel(t->loop, t->renew_timer);
    people_free(t);
    while (t->teams) {
        struct slack_team *team = t->teams;
        t->teams = team->next;
        team_free(team);
    }
    wipe(t->client_secret);
    free(t);
}

/* ---- who we are ---- */

static void test(void *ud);

static void settle(struct slack_teams *t)
{
    if (--t->asking || !t->on_ready)
        return;
    t->on_ready(t->ready_ud);
}

static bool has_scope(const char *scopes, const char *scope)
{
    autofree char *all = xasprintf(",%s,", scopes), *one = xasprintf(",%s,", scope);
    return strstr(all, one) != NULL;
}

static void check_scopes(const struct slack_team *team, const char *scopes)
{
    static const char *const wanted[][2] = {
        { "app_mentions:read", "mentions" },
        { "assistant:write", "suggested prompts" },
        { "channels:history", "questions in public channels' threads" },
        { "channels:read", "a word when the bot joins a channel" },
        { "chat:write", "every answer" },
        { "files:read", "uploaded files" },
        { "files:write", "charts and files in answers" },
        { "groups:history", "questions in private channels' threads" },
        { "groups:read", "private channels that get another id" },
        { "im:history", "direct messages" },
        { "mpim:history", "questions in groups of people" },
        { "reactions:read", "stop and rerun by reaction" },
        { "users:read", "people's names" },
    };
    for (size_t i = 0; i < countof(wanted); i++)
        if (!has_scope(scopes, wanted[i][0]))
            log_warn("slack_scope_missing", KV_S("team", team->team), KV_S("scope", wanted[i][0]),
                     KV_S("without_it", wanted[i][1]));
}

/* Without these nothing can be heard, or nothing said. */
static bool is_useless(const char *scopes)
{
    static const char *const ears[] = { "channels:history", "groups:history", "im:history", "mpim:history",
                                        "app_mentions:read" };
    bool hears = false;
    for (size_t i = 0; i < countof(ears); i++)
        hears = hears || has_scope(scopes, ears[i]);
    return !hears || !has_scope(scopes, "chat:write");
}

static void replace(char **field, const char *value)
{
    if (!value)
        return;
    free(*field);
    *field = xstrdup(value);
}

static void known(struct slack_team *team, const struct slack_reply *r)
{
    if (!team->enterprise || !json_bool_or(r->body, "is_enterprise_install", false))
        replace(&team->team, json_str_or(r->body, "team_id", NULL));
    replace(&team->user, json_str_or(r->body, "user_id", NULL));
    replace(&team->bot, json_str_or(r->body, "bot_id", NULL));
    replace(&team->name, json_str_or(r->body, "user", NULL));
    team->ready = true;
    log_info("slack_team", KV_S("team", team->team), KV_S("user", team->user), KV_S("bot", team->bot));
    if (!r->scopes)
        return;
    check_scopes(team, r->scopes);
    team->gone = is_useless(r->scopes);
    if (team->gone)
        log_error("slack_team_useless", KV_S("team", team->team),
                  KV_S("cure", "give the app chat:write and a scope to read messages, then install it again"));
}

/* The call itself waits and repeats; a Slack that is down for longer is waited for here. */
static void on_test(void *ud, const struct slack_reply *r)
{
    struct slack_team *team = ud;
    if (r->err && r->err->kind != ERR_CONFIG && r->err->kind != ERR_REFUSED) {
        team->again = loop_after(team->owner->loop, RETRY_MS, test, team);
        return;
    }
    if (r->err) {
        team->gone = true;
        log_error("slack_team_refused", KV_S("team", team->team ? team->team : "?"), KV_E(r->err));
    } else {
        known(team, r);
    }
    settle(team->owner);
}

static void test(void *ud)
{
    struct slack_team *team = ud;
    const struct slack_request r = { .method = "auth.test", .team = team };
    team->again = 0;
    (void)slack_api_start(team->owner->api, &r, on_test, team);
}

/* After a renewal the file is the only place that knows the way on: a disk that was full is tried again. */
static void keep_installs(struct slack_teams *t)
{
    struct err e = { 0 };
    if (!t->unkept || !*t->conf->slack_installs_file)
        return;
    t->unkept = write_installs(t, &e) < 0;
    if (t->unkept)
        log_error("slack_token_not_kept", KV_S("meaning", "a restart now would end with a token that is void"),
                  KV_E(&e));
}

static void check_renewals(void *ud)
{
    struct slack_teams *t = ud;
    keep_installs(t);
    for (struct slack_team *team = t->teams; team; team = team->next)
        if (team->renewal && team->expires_ms && team->expires_ms - time_unix_ms() < RENEW_BEFORE_MS)
            slack_teams_renew(t, team);
    t->renew_timer = loop_after(t->loop, t->unkept ? RETRY_MS : RENEW_CHECK_MS, check_renewals, t);
}

void slack_teams_begin(struct slack_teams *t, struct slack_api *api, void (*ready)(void *ud), void *ud)
{
    t->api = api;
    t->on_ready = ready;
    t->ready_ud = ud;
    check_renewals(t);
    for (struct slack_team *team = t->teams; team; team = team->next)
        t->asking++;
    for (struct slack_team *team = t->teams; team; team = team->next)
        test(team);
}

/* Organisation-wide: one token for every workspace of it. A token of another organisation is never tried. */
static struct slack_team *organisation(struct slack_teams *t, const char *enterprise)
{
    struct slack_team *found = NULL;
    for (struct slack_team *team = t->teams; team; team = team->next) {
        if (team->gone || team->team || !team->enterprise || (enterprise && strcmp(team->enterprise, enterprise) != 0))
            continue;
        if (found)
            return NULL; /* which of them is not known */
        found = team;
    }
    return found;
}

struct slack_team *slack_teams_named(struct slack_teams *t, const char *workspace, const char *enterprise)
{
    for (struct slack_team *team = t->teams; workspace && team; team = team->next)
        if (!team->gone && team->team && strcmp(team->team, workspace) == 0)
            return team;
    return workspace ? organisation(t, enterprise) : NULL;
}

struct slack_team *slack_teams_of(struct slack_teams *t, const struct json *payload)
{
    const char *team = NULL, *enterprise = NULL;
    slack_event_installation(payload, &team, &enterprise);
    for (struct slack_team *x = t->teams; enterprise && x; x = x->next)
        if (!x->gone && !x->team && x->enterprise && strcmp(x->enterprise, enterprise) == 0)
            return x;
    for (struct slack_team *x = t->teams; team && x; x = x->next)
        if (!x->gone && x->team && strcmp(x->team, team) == 0)
            return x;
    return NULL;
}

struct slack_self slack_team_self(const struct slack_team *team)
{
    return (struct slack_self){ .user = team->user, .bot = team->bot, .app = team->app };
}

/* ---- rotation ---- */

static void on_renewed(void *ud, const struct slack_reply *r)
{
    struct slack_team *team = ud;
    struct slack_teams *t = team->owner;
    const char *token = json_str_or(r->body, "access_token", NULL);
    const char *renewal = json_str_or(r->body, "refresh_token", NULL);
    team->renewing = false;
    if (r->err || !token || !renewal) {
        log_error("slack_token_not_renewed", KV_S("team", team->team), KV_S("error", r->error ? r->error : ""));
        return;
    }
    replace(&team->token, token);
    replace(&team->renewal, renewal);
    team->renewals++;
    team->expires_ms = time_unix_ms() + json_int_or(r->body, "expires_in", 43200) * 1000;
    t->unkept = true;
    keep_installs(t);
    if (t->unkept) { /* soon again */
        loop_cancel(t->loop, t->renew_timer);
        t->renew_timer = loop_after(t->loop, RETRY_MS, check_renewals, t);
    }
    log_info("slack_token_renewed", KV_S("team", team->team));
}

static char *basic(const char *user, const char *password)
{
    autofree char *pair = xasprintf("%s:%s", user, password), *code = base64_encode(pair, strlen(pair));
    char *out = xasprintf("Basic %s", code);
    explicit_bzero(pair, strlen(pair));
    explicit_bzero(code, strlen(code));
    return out;
}

void slack_teams_renew(void *ud, struct slack_team *team)
{
    struct slack_teams *t = ud;
    if (team->renewing || !team->renewal || !t->client_secret)
        return;
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    autofree char *auth = basic(t->conf->slack_client_id, t->client_secret);
    team->renewing = true; /* one at a time: the old refresh token ends with the first */
    slack_form_add(&form, "grant_type", "refresh_token");
    slack_form_add(&form, "refresh_token", team->renewal);
    const struct slack_request r = { .method = "oauth.v2.access", .form = &form, .header = auth };
    (void)slack_api_start(t->api, &r, on_renewed, team);
    explicit_bzero(auth, strlen(auth));
}
