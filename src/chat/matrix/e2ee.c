#include "e2ee.h"
#include <fcntl.h>
#include <string.h>
#include "ids.h"
#include "inbox.h"
#include "json.h"
#include "log.h"
#include "outbox.h"
#include "secret_file.h"

enum { TO_DEVICE_FULL = 100 };

/* ---- events of the state machine ---- */

static void on_keys_came(void *ud, const char *room, const char *session)
{
    (void)session;
    inbox_unpark(ud, room);
}

static void on_room_ready(void *ud, const char *room)
{
    matrix_outbox_wake(ud, room);
}

static void on_alarm(void *ud, enum crypto_alarm what, const char *text)
{
    static const char *const words[] = {
        [CRYPTO_ALARM_IDENTITY] = "identity", [CRYPTO_ALARM_DESYNC] = "desync",   [CRYPTO_ALARM_UNSIGNED] = "unsigned",
        [CRYPTO_ALARM_BACKUP] = "backup",     [CRYPTO_ALARM_REFUSED] = "refused",
    };
    (void)ud;
    log_warn("matrix_encryption_alarm", KV_S("what", words[what]), KV_S("why", text));
}

static void on_sas(void *ud, const struct crypto_sas *s)
{
    (void)ud;
    log_info("matrix_verification", KV_S("txn", s->txn), KV_S("user", s->user), KV_S("device", s->device),
             KV_S("state", s->state), KV_S("emoji", s->emoji), KV_S("decimal", s->decimal), KV_S("code", s->code));
}

static void on_room_send(void *ud, const char *room, const char *type, const struct json *content)
{
    struct chat *c = ud;
    autofree char *txn =
        xasprintf("verify.%lld.%llu", (long long)c->e2ee->life_ms, (unsigned long long)++c->e2ee->said);
    matrix_send_event(c, room, type, content, txn);
}

static const struct crypto_events crypto_events = {
    .keys_came = on_keys_came, .room_ready = on_room_ready, .alarm = on_alarm, .sas = on_sas, .room_send = on_room_send
};

/* ---- requests ---- */

struct errand {
    struct errand *next;
    struct chat *c;
    int64_t id;
};

static void errand_end(struct errand *x)
{
    struct errand **at = &x->c->e2ee->errands;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    free(x);
}

static void check_state(struct chat *c)
{
    struct e2ee *x = c->e2ee;
    const enum crypto_state state = crypto_state(x->crypto);
    if (x->started || state == CRYPTO_STARTING)
        return;
    x->started = true;
    if (state == CRYPTO_REFUSED)
        log_error("matrix_encryption_refused", KV_S("why", crypto_refusal(x->crypto)),
                  KV_S("cure", "a new device: sandbook matrix logout, then login"));
    matrix_sync_start(c);
}

static void on_answer(void *ud, const struct api_answer *a)
{
    struct errand *x = ud;
    struct chat *c = x->c;
    struct err e = { 0 };
    const int64_t id = x->id;
    errand_end(x);
    if (a->err.kind == ERR_CONFIG && c->dead)
        return;
    if (crypto_answered(c->e2ee->crypto, id, a->status, a->body, a->err.retry_ms, &e) < 0) {
        log_error("matrix_encryption_answer", KV_E(&e));
        matrix_e2ee_lost(c, false);
    }
    matrix_e2ee_pump(c);
}

static void on_time(void *ud)
{
    struct chat *c = ud;
    struct err e = { 0 };
    c->e2ee->timer = 0;
    if (crypto_tick(c->e2ee->crypto, &e) < 0) {
        log_error("matrix_encryption_tick", KV_E(&e));
        matrix_e2ee_lost(c, false);
    }
    matrix_e2ee_pump(c);
}

static void pump(void *ud)
{
    struct chat *c = ud;
    struct e2ee *x = c->e2ee;
    struct crypto_request r;
    while (crypto_next_request(x->crypto, &r)) {
        struct errand *errand = xcalloc(1, sizeof(*errand));
        *errand = (struct errand){ .next = x->errands, .c = c, .id = r.id };
        x->errands = errand;
        api_start(c->api, &(struct api_request){ .method = r.method, .path = r.path, .text = r.body }, on_answer,
                  errand);
    }
    check_state(c);
    const int64_t wake = crypto_wake_ms(x->crypto), now = time_unix_ms();
    loop_cancel(c->loop, x->timer);
    x->timer = wake == INT64_MAX ? 0 : loop_after(c->loop, wake > now ? wake - now : 1, on_time, c);
}

/* Deferred: the machine may not be called from inside its own events. */
void matrix_e2ee_pump(struct chat *c)
{
    if (!c->e2ee)
        return;
    loop_defer_cancel(c->loop, pump, c);
    loop_defer(c->loop, pump, c);
}

void matrix_e2ee_lost(struct chat *c, bool position)
{
    struct err e = { 0 };
    if (!c->e2ee)
        return;
    if ((position ? crypto_sync_lost(c->e2ee->crypto, &e) : crypto_reload(c->e2ee->crypto, &e)) < 0)
        log_error("matrix_encryption_reload", KV_E(&e));
}

/* ---- sync ---- */

static bool is_running(const struct chat *c)
{
    return c->e2ee && crypto_state(c->e2ee->crypto) == CRYPTO_RUNNING;
}

int matrix_e2ee_sync(struct chat *c, const struct json *response, struct err *e)
{
    if (!is_running(c))
        return 0;
    c->e2ee->more = json_len(json_get(json_get(response, "to_device"), "events")) >= TO_DEVICE_FULL;
    return crypto_sync(c->e2ee->crypto, response, e);
}

bool matrix_e2ee_more(const struct chat *c)
{
    return c->e2ee && c->e2ee->more;
}

static int take_member(struct room *r, const char *who, const char *membership, struct err *e)
{
    const bool gets = strcmp(membership, "join") == 0 || (strcmp(membership, "invite") == 0 && !r->only_joined);
    r->outdated = true;
    return mx_is_user(who) ? crypto_room_member(r->chat->e2ee->crypto, r->id, who, gets, e) : 0;
}

/* What was said of the room before it was encrypted counts too. */
static int take_encryption(const struct room *r, const struct json *content, struct err *e)
{
    struct crypto *crypto = r->chat->e2ee->crypto;
    if (crypto_room_encrypted(crypto, r->id, content, e) < 0)
        return -1;
    return r->history ? crypto_room_history(crypto, r->id, r->history, e) : 0;
}

int matrix_e2ee_state(struct room *r, const struct json *event, struct err *e)
{
    const char *type = json_str_or(event, "type", ""), *key = json_str_or(event, "state_key", NULL);
    const struct json *content = json_get(event, "content");
    if (!key || !is_running(r->chat) || !r->encrypted)
        return 0;
    if (strcmp(type, "m.room.encryption") == 0 && !*key && json_get(content, "algorithm"))
        return take_encryption(r, content, e);
    if (strcmp(type, "m.room.history_visibility") == 0 && !*key && r->history)
        return crypto_room_history(r->chat->e2ee->crypto, r->id, r->history, e);
    if (strcmp(type, "m.room.member") == 0)
        return take_member(r, key, json_str_or(content, "membership", ""), e);
    return 0;
}

int matrix_e2ee_gap(struct room *r, struct err *e)
{
    if (!is_running(r->chat) || !r->encrypted)
        return 0;
    r->outdated = true;
    return crypto_room_gap(r->chat->e2ee->crypto, r->id, e);
}

int matrix_e2ee_past(struct room *r, const struct json *event, struct err *e)
{
    const char *is = json_str_or(json_get(event, "content"), "membership", "");
    if (!is_running(r->chat) || !r->encrypted || strcmp(json_str_or(event, "type", ""), "m.room.member") != 0 ||
        (strcmp(is, "leave") != 0 && strcmp(is, "ban") != 0))
        return 0;
    return crypto_room_rotate(r->chat->e2ee->crypto, r->id, e);
}

void matrix_e2ee_recall(struct room *r)
{
    enum crypto_room known = CRYPTO_ROOM_UNKNOWN;
    struct err e = { 0 };
    if (r->encrypted || !is_running(r->chat))
        return;
    r->encrypted = crypto_room_state(r->chat->e2ee->crypto, r->id, &known, &e) < 0 || known != CRYPTO_ROOM_UNKNOWN;
}

int matrix_e2ee_left(struct room *r, struct err *e)
{
    return is_running(r->chat) && r->encrypted ? crypto_room_left(r->chat->e2ee->crypto, r->id, e) : 0;
}

int matrix_e2ee_prune(struct chat *c, const char *rooms, int64_t before_ms, struct err *e)
{
    return is_running(c) ? crypto_prune(c->e2ee->crypto, rooms, before_ms, e) : 0;
}

/* ---- the way in ---- */

int e2ee_open(struct chat *c, const char *room, const struct json *event, struct crypto_message *out, struct err *e)
{
    *out = (struct crypto_message){ 0 };
    if (!is_running(c))
        return 0;
    if (crypto_decrypt(c->e2ee->crypto, room, event, out, e) < 0)
        return -1;
    matrix_e2ee_pump(c);
    if (out->utd == CRYPTO_CLEAR)
        unread_opened(c, json_str_or(event, "event_id", ""));
    if (out->utd == CRYPTO_CLEAR && out->accepted)
        return 1;
    log_info("matrix_not_readable", KV_S("room", room), KV_S("event", json_str_or(event, "event_id", "")),
             KV_S("why", out->utd == CRYPTO_CLEAR ? "its device is not trusted" : crypto_utd_word(out->utd)),
             KV_S("code", out->code ? out->code : ""));
    if (out->utd == CRYPTO_CLEAR || !out->retry)
        return 0;
    unread_note(c, room, event, out);
    return 2;
}

int e2ee_verification(struct chat *c, const struct crypto_room_event *ev, bool *taken, struct err *e)
{
    static const char prefix[] = "m.key.verification.";
    *taken = strncmp(ev->type, prefix, strlen(prefix)) == 0 ||
             (strcmp(ev->type, "m.room.message") == 0 && mx_msgtype(ev->content) == MX_VERIFICATION);
    if (!*taken || !is_running(c))
        return 0;
    const int rc = crypto_room_verification(c->e2ee->crypto, ev, e);
    matrix_e2ee_pump(c);
    return rc;
}

/* ---- the way out ---- */

static void give_members(struct room *r, const struct json *chunk)
{
    struct err e = { 0 };
    const char **users = NULL;
    size_t n = 0, cap = 0;
    for (const struct json *x = json_first(chunk); x; x = json_next(x)) {
        const char *who = json_str_or(x, "state_key", NULL);
        const char *is = json_str_or(json_get(x, "content"), "membership", "");
        if (!mx_is_user(who) || !(strcmp(is, "join") == 0 || (strcmp(is, "invite") == 0 && !r->only_joined)))
            continue;
        users = xgrow(users, &cap, n + 1, sizeof(*users));
        users[n++] = who;
    }
    if (crypto_room_members(r->chat->e2ee->crypto, r->id, users, n, &e) < 0)
        log_error("matrix_members_not_kept", KV_S("room", r->id), KV_E(&e));
    free(users);
}

static void ask_again(void *ud)
{
    struct room *r = ud;
    r->timer = 0;
    matrix_outbox_wake(r->chat, r->id);
}

static void on_members(void *ud, const struct api_answer *a)
{
    struct room *r = ud;
    r->asking = false;
    if (a->err.kind == ERR_NONE && r->outdated) { /* what the server said may be older than what the sync did */
        matrix_outbox_wake(r->chat, r->id);
        return;
    }
    if (a->err.kind == ERR_NONE) {
        give_members(r, json_get(a->body, "chunk"));
        matrix_e2ee_pump(r->chat);
        matrix_outbox_wake(r->chat, r->id);
        return;
    }
    log_warn("matrix_members_unknown", KV_S("room", r->id), KV_E(&a->err));
    loop_cancel(r->chat->loop, r->timer);
    r->timer = loop_after(r->chat->loop, api_backoff_ms(4), ask_again, r);
}

static void ask_members(struct room *r)
{
    if (r->asking || r->timer)
        return;
    autofree char *id = mx_escape(r->id);
    autofree char *path = xasprintf("/_matrix/client/v3/rooms/%s/members?not_membership=leave", id);
    r->asking = true;
    r->outdated = false;
    api_start(r->chat->api, &(struct api_request){ .method = "GET", .path = path, .max_bytes = MATRIX_SYNC_MAX },
              on_members, r);
}

/* The room was encrypted before we could remember how. */
static void on_encryption(void *ud, const struct api_answer *a)
{
    struct room *r = ud;
    struct err e = { 0 };
    r->asking = false;
    if (a->err.kind == ERR_NONE && take_encryption(r, a->body, &e) == 0) {
        matrix_outbox_wake(r->chat, r->id);
        return;
    }
    log_warn("matrix_room_encryption_unknown", KV_S("room", r->id), KV_E(a->err.kind ? &a->err : &e));
    loop_cancel(r->chat->loop, r->timer);
    r->timer = loop_after(r->chat->loop, api_backoff_ms(5), ask_again, r);
}

static void ask_encryption(struct room *r)
{
    if (r->asking || r->timer)
        return;
    autofree char *id = mx_escape(r->id);
    autofree char *path = xasprintf("/_matrix/client/v3/rooms/%s/state/m.room.encryption/", id);
    r->asking = true;
    api_start(r->chat->api, &(struct api_request){ .method = "GET", .path = path }, on_encryption, r);
}

int matrix_e2ee_seal(struct room *r, const char *type, const struct json *content, struct json **out, struct err *e)
{
    enum crypto_ready ready = CRYPTO_WAIT;
    *out = NULL;
    if (!is_running(r->chat))
        return err_set(e, ERR_REFUSED, "the room is encrypted, and encryption is not available");
    enum crypto_room known = CRYPTO_ROOM_UNKNOWN;
    if (crypto_room_state(r->chat->e2ee->crypto, r->id, &known, e) < 0)
        return -1;
    if (known == CRYPTO_ROOM_UNKNOWN) {
        ask_encryption(r);
        return 0;
    }
    if (crypto_encrypt(r->chat->e2ee->crypto, r->id, type, content, &ready, out, e) < 0)
        return -1;
    matrix_e2ee_pump(r->chat);
    if (ready == CRYPTO_NEED_MEMBERS)
        ask_members(r);
    return ready == CRYPTO_READY;
}

/* ---- life ---- */

static enum crypto_policy policy_of(const char *word)
{
    return strcmp(word, "all") == 0        ? CRYPTO_ALL
           : strcmp(word, "verified") == 0 ? CRYPTO_VERIFIED
                                           : CRYPTO_CROSS_SIGNED;
}

static enum crypto_sas_policy sas_of(const char *word)
{
    return strcmp(word, "auto") == 0  ? CRYPTO_SAS_AUTO
           : strcmp(word, "off") == 0 ? CRYPTO_SAS_OFF
                                      : CRYPTO_SAS_OPERATOR;
}

struct secrets {
    uint8_t pickle[32];
    char *recovery, *password;
};

static void secrets_clear(struct secrets *s)
{
    if (s->recovery)
        explicit_bzero(s->recovery, strlen(s->recovery));
    if (s->password)
        explicit_bzero(s->password, strlen(s->password));
    free(s->recovery);
    free(s->password);
    explicit_bzero(s, sizeof(*s));
}

static int read_secrets(const struct chat *c, struct secrets *s, struct err *e)
{
    autofree char *path = xasprintf("%s/matrix.key", c->data_dir ? c->data_dir : ".");
    if (secret_file_key(AT_FDCWD, path, s->pickle, sizeof(s->pickle), e) < 0)
        return -1;
    if (*c->conf->matrix_recovery_file && conf_read_secret(&s->recovery, c->conf->matrix_recovery_file, e) < 0)
        return -1;
    return *c->conf->matrix_password_file ? conf_read_secret(&s->password, c->conf->matrix_password_file, e) : 0;
}

static int start(struct chat *c, struct err *e)
{
    AUTO(secrets_clear) struct secrets s = { .recovery = NULL };
    if (read_secrets(c, &s, e) < 0)
        return -1;
    const struct conf *conf = c->conf;
    const struct crypto_config cfg = {
        .store = c->store,
        .user = c->login.user,
        .device = c->login.device,
        .pickle_key = s.pickle,
        .recipients = policy_of(conf->matrix_recipients),
        .senders = policy_of(conf->matrix_senders),
        .allow_plain = true,
        .sas = sas_of(conf->matrix_sas),
        .cross_sign = conf->matrix_cross_sign,
        .backup = conf->matrix_backup,
        .recovery_key = s.recovery,
        .password = s.password,
        .events = &crypto_events,
        .ud = c,
    };
    return crypto_open(&c->e2ee->crypto, &cfg, e);
}

void matrix_e2ee_start(struct chat *c)
{
    struct err e = { 0 };
    if (c->e2ee)
        return; /* the sync begins when it is ready: what came before would be lost */
    if (strcmp(c->conf->matrix_e2ee, "off") == 0) {
        matrix_sync_start(c);
        return;
    }
    c->e2ee = xcalloc(1, sizeof(*c->e2ee));
    *c->e2ee = (struct e2ee){ .c = c, .life_ms = time_unix_ms() };
    if (start(c, &e) < 0) {
        free(take(c->e2ee));
        matrix_down(c, &e);
        return;
    }
    matrix_e2ee_pump(c);
}

void matrix_e2ee_close(struct chat *c)
{
    cipher_free_all(c);
    if (!c->e2ee)
        return;
    loop_defer_cancel(c->loop, pump, c);
    loop_cancel(c->loop, c->e2ee->timer);
    unread_free_all(c);
    crypto_close(c->e2ee->crypto);
    for (struct errand *x = c->e2ee->errands, *next; x; x = next) {
        next = x->next;
        free(x);
    }
    free(take(c->e2ee));
}
