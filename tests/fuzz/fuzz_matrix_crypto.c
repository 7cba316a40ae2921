/* Whatever a server or a peer sends, as one JSON text: a sync, an event, an answer to each request. State must hold, nothing may be believed.
 *
 * The device is up and knows a peer with whom it has a channel and a room key, so that two members of the text reach what lies behind
 * decryption: "olm" is sent through the channel as the peer's words, "megolm" into the room as the clear text of a message. */
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include "attach.h"
#include "backup.h"
#include "crypto.h"
#include "crypto_json.h"
#include "log.h"
#include "olm.h"
#include "ssss.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct store *store;
static struct crypto *c;
static int64_t clock_ms = 1700000000000;
static unsigned runs;
static uint64_t seed;

static int64_t now(void *hook)
{
    (void)hook;
    return clock_ms += 100;
}

/* The same keys in every run, so that what was found once is found again. */
static void numbers(void *hook, void *out, size_t n)
{
    uint8_t *at = out;
    (void)hook;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        at[i] = (uint8_t)(seed >> 56);
    }
}

static struct store_batch batch; /* never kept: no disk is waited for, and each round begins with the same store */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static void open_store(void)
{
    static char dir[] = "/tmp/fuzz-crypto-XXXXXX";
    struct err e = { 0 };
    if (!mkdtemp(dir) || store_open(&store, dir, &e) < 0)
        abort();
    (void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS); /* it lives on while it is open */
}

/* ---- the peer ---- */

static const uint8_t pickle_key[KEY_BYTES] = { 1 };
static const struct ratchet_env env = { .pickle_key = pickle_key, .random = numbers };
static struct peer {
    struct ratchet_account *account;
    struct ratchet_session *channel;
    struct ratchet_out *room;
    struct json *device; /* its keys, signed */
    char bot_curve[KEY_TEXT + 1], bot_ed[KEY_TEXT + 1];
} peer;

static void peer_free(void)
{
    ratchet_account_free(peer.account);
    ratchet_session_free(peer.channel);
    ratchet_out_free(peer.room);
    json_free(peer.device);
    peer = (struct peer){ 0 };
}

static void peer_make(void)
{
    AUTO(str_clear) struct str bytes = STR_INIT(4096);
    char sig[SIG_TEXT + 1];
    peer.account = ratchet_account_new(&env);
    peer.room = ratchet_out_new(&env);
    peer.device = json_new_object();
    json_set_str(peer.device, "user_id", "@a:x");
    json_set_str(peer.device, "device_id", "D");
    json_set_str(child(peer.device, "keys"), "curve25519:D", ratchet_account_curve25519(peer.account));
    json_set_str(child(peer.device, "keys"), "ed25519:D", ratchet_account_ed25519(peer.account));
    if (!signable(&bytes, peer.device))
        abort();
    ratchet_account_sign(peer.account, str_peek(&bytes), bytes.len, sig);
    add_signature(peer.device, "@a:x", "D", sig);
}

/* The device's first upload: the peer takes one of its keys. */
static void peer_meets(const char *upload)
{
    autojson struct json *body = NULL;
    struct err e = { 0 };
    if (peer.channel || json_parse(&body, upload, strlen(upload), 1 << 20, &e) < 0)
        return;
    const struct json *keys = json_get(json_get(body, "device_keys"), "keys");
    const char *curve = json_str_or(keys, "curve25519:DEV", NULL), *ed = json_str_or(keys, "ed25519:DEV", NULL);
    const char *one = json_str_or(json_first(json_get(body, "one_time_keys")), "key", NULL);
    if (!curve || !ed || !one)
        return;
    (void)snprintf(peer.bot_curve, sizeof(peer.bot_curve), "%s", curve);
    (void)snprintf(peer.bot_ed, sizeof(peer.bot_ed), "%s", ed);
    if (ratchet_session_outbound(&peer.channel, peer.account, curve, one, &env) != RATCHET_OK)
        abort();
}

/* over: members that take the place of those that an honest peer would send. */
static struct json *peer_sealed(const struct json *over)
{
    autojson struct json *clear = json_new_object();
    struct json *ev = json_new_object(), *content = child(ev, "content");
    json_set_str(clear, "sender", "@a:x");
    json_set_str(clear, "recipient", "@bot:x");
    json_set_str(child(clear, "recipient_keys"), "ed25519", peer.bot_ed);
    json_set_str(child(clear, "keys"), "ed25519", ratchet_account_ed25519(peer.account));
    for (const struct json *m = json_first(over); m; m = json_next(m))
        json_set(clear, json_key(m), json_dup(m));
    autofree char *text = json_line(clear), *body = NULL;
    int type = 0;
    ratchet_session_encrypt(peer.channel, text, strlen(text), &env, &type, &body);
    json_set_str(ev, "type", "m.room.encrypted");
    json_set_str(ev, "sender", "@a:x");
    json_set_str(content, "algorithm", "m.olm.v1.curve25519-aes-sha2");
    json_set_str(content, "sender_key", ratchet_account_curve25519(peer.account));
    struct json *mine = child(child(content, "ciphertext"), peer.bot_curve);
    json_set_int(mine, "type", type);
    json_set_str(mine, "body", body);
    return ev;
}

static void deliver(struct json *take_event)
{
    autojson struct json *sync = json_new_object();
    struct json *events = json_new_array();
    struct err e = { 0 };
    json_push(events, take_event);
    json_set(child(sync, "to_device"), "events", events);
    if (crypto_sync(c, sync, &e) < 0)
        abort();
}

static void share_room_key(void)
{
    autojson struct json *over = json_new_object();
    autofree char *key = ratchet_out_key(peer.room);
    struct json *content = child(over, "content");
    json_set_str(over, "type", "m.room_key");
    json_set_str(content, "algorithm", "m.megolm.v1.aes-sha2");
    json_set_str(content, "room_id", "!r:x");
    json_set_str(content, "session_id", ratchet_out_id(peer.room));
    json_set_str(content, "session_key", key);
    deliver(peer_sealed(over));
}

/* A message of the peer's whose clear text is anything. */
static struct json *room_message(const struct json *clear)
{
    static unsigned n;
    autofree char *text = json_line(clear);
    autofree char *cipher = ratchet_out_encrypt(peer.room, text, strlen(text));
    char id[24];
    struct json *ev = json_new_object(), *content = child(ev, "content");
    (void)snprintf(id, sizeof(id), "$m%u", ++n);
    json_set_str(ev, "type", "m.room.encrypted");
    json_set_str(ev, "sender", "@a:x");
    json_set_str(ev, "event_id", id);
    json_set_int(ev, "origin_server_ts", clock_ms);
    json_set_str(content, "algorithm", "m.megolm.v1.aes-sha2");
    json_set_str(content, "session_id", ratchet_out_id(peer.room));
    json_set_str(content, "ciphertext", cipher);
    return ev;
}

/* ---- coming up ---- */

static int honest_answer(const struct crypto_request *r, struct json **out)
{
    *out = json_new_object();
    if (strstr(r->path, "/keys/upload")) {
        peer_meets(r->body);
        json_set_int(child(*out, "one_time_key_counts"), "signed_curve25519", 50);
    } else if (strstr(r->path, "/keys/query")) {
        json_set(child(*out, "device_keys"), "@bot:x", json_new_object());
        json_set(child(child(*out, "device_keys"), "@a:x"), "D", json_dup(peer.device));
    } else if (strstr(r->path, "/account_data/")) {
        return 404;
    }
    return 200;
}

static void answer_honestly(void)
{
    struct crypto_request r;
    struct err e = { 0 };
    for (int i = 0; i < 50 && crypto_next_request(c, &r); i++) {
        autojson struct json *out = NULL;
        const int status = honest_answer(&r, &out);
        if (crypto_answered(c, r.id, status, out, 0, &e) < 0)
            abort();
    }
}

static void open_up(void)
{
    static const char *const users[] = { "@a:x", "@bot:x" };
    autojson struct json *encryption = json_new_object();
    struct err e = { 0 };
    log_set_level(LOG_ERROR);
    if (!store)
        open_store();
    if (store_batch_begin(&batch, store, &e) < 0)
        abort();
    seed = 1;
    peer_make();
    const struct crypto_config cfg = { .store = store,
                                       .user = "@bot:x",
                                       .device = "DEV",
                                       .pickle_key = pickle_key,
                                       .cross_sign = true,
                                       .backup = true,
                                       .sas = CRYPTO_SAS_AUTO,
                                       .recovery_key = "correct horse",
                                       .now_ms = now,
                                       .random = numbers };
    json_set_str(encryption, "algorithm", "m.megolm.v1.aes-sha2");
    if (crypto_open(&c, &cfg, &e) < 0)
        abort();
    answer_honestly();
    if (crypto_state(c) != CRYPTO_RUNNING || !peer.channel || crypto_room_encrypted(c, "!r:x", encryption, &e) < 0 ||
        crypto_room_members(c, "!r:x", users, 2, &e) < 0)
        abort();
    answer_honestly();
    share_room_key();
}

static void shut(void)
{
    crypto_close(c);
    store_batch_end(&batch);
    peer_free();
    c = NULL;
}

/* Every request is answered with the same text; a few rounds, since answers make requests. But for uploads of keys, as a rule: a server that
 * never has enough of them makes the curve's arithmetic nearly all that is done here. */
static void answer_all(const struct json *v, int status)
{
    struct crypto_request r;
    struct err e = { 0 };
    for (int i = 0; i < 8 && crypto_next_request(c, &r); i++) {
        autojson struct json *full = NULL;
        const bool honest = strstr(r.path, "/keys/upload") && !json_get(v, "upload");
        const int s = honest ? honest_answer(&r, &full) : status;
        if (crypto_answered(c, r.id, s, honest ? full : v, 0, &e) < 0 && e.kind != ERR_DATA)
            abort();
    }
}

static void hear(const struct json *event)
{
    struct crypto_message m;
    struct err e = { 0 };
    if (crypto_state(c) != CRYPTO_REFUSED && crypto_decrypt(c, "!r:x", event, &m, &e) == 0)
        crypto_message_clear(&m);
}

static void run_sealed(const struct json *v)
{
    if (json_type(json_get(v, "olm")) == JSON_OBJECT)
        deliver(peer_sealed(json_get(v, "olm")));
    if (!json_get(v, "megolm"))
        return;
    autojson struct json *event = room_message(json_get(v, "megolm"));
    hear(event);
}

/* A message of ours, so that keys are shared with whatever devices it believes in. */
static void speak(void)
{
    autojson struct json *content = json_new_object(), *out = NULL;
    enum crypto_ready ready = CRYPTO_WAIT;
    struct err e = { 0 };
    if (crypto_state(c) == CRYPTO_RUNNING &&
        crypto_encrypt(c, "!r:x", "m.room.message", content, &ready, &out, &e) < 0 && e.kind != ERR_REFUSED)
        abort();
}

static void run(const struct json *v)
{
    struct err e = { 0 };
    struct attach *a = NULL;
    static const uint8_t secret[KEY_BYTES] = { 5 };
    uint8_t key[KEY_BYTES];
    const struct crypto_room_event ev = { .room = "!r:x",
                                          .id = "$e",
                                          .sender = json_str_or(v, "sender", "@a:x"),
                                          .type = json_str_or(v, "type", ""),
                                          .content = json_get(v, "content"),
                                          .ts_ms = clock_ms };
    if (crypto_sync(c, v, &e) < 0 || crypto_room_encrypted(c, "!r:x", json_get(v, "content"), &e) < 0 ||
        crypto_room_verification(c, &ev, &e) < 0)
        abort();
    hear(v);
    run_sealed(v);
    if (attach_decrypt(&a, v, &e) == 0)
        attach_free(a);
    free(ssss_open(secret, "name", v));
    free(backup_open(secret, v));
    if (json_int_or(json_get(v, "passphrase"), "iterations", 0) < 10)
        (void)ssss_key_from_words("words", v, key);
    answer_all(v, 200);
    if (json_get(v, "speak"))
        speak();
    answer_all(v, (int)json_int_or(v, "status", 404));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    autojson struct json *v = NULL;
    struct err e = { 0 };
    if (c && (++runs % 2000 == 0 || crypto_state(c) == CRYPTO_REFUSED))
        shut();
    if (!c)
        open_up();
    if (json_parse(&v, (const char *)data, n, 64 << 10, &e) == 0)
        run(v);
    return 0;
}
