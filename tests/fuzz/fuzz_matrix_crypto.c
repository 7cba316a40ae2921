/* Whatever a server or a peer sends, as one JSON text: a sync, an event, an answer to each request. State must hold, nothing may be believed. */
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include "attach.h"
#include "backup.h"
#include "crypto.h"
#include "crypto_json.h"
#include "log.h"
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

static void open_up(void)
{
    static const uint8_t key[KEY_BYTES] = { 1 };
    struct err e = { 0 };
    log_set_level(LOG_ERROR);
    if (!store)
        open_store();
    if (store_batch_begin(&batch, store, &e) < 0)
        abort();
    seed = 1;
    const struct crypto_config cfg = { .store = store,
                                       .user = "@bot:x",
                                       .device = "DEV",
                                       .pickle_key = key,
                                       .cross_sign = true,
                                       .backup = true,
                                       .sas = CRYPTO_SAS_AUTO,
                                       .recovery_key = "correct horse",
                                       .now_ms = now,
                                       .random = numbers };
    if (crypto_open(&c, &cfg, &e) < 0)
        abort();
}

/* Every request is answered with the same text; a few rounds, since answers make requests. */
static void answer_all(const struct json *v, int status)
{
    struct crypto_request r;
    struct err e = { 0 };
    for (int i = 0; i < 8 && crypto_next_request(c, &r); i++)
        if (crypto_answered(c, r.id, status, v, 0, &e) < 0 && e.kind != ERR_DATA)
            abort();
}

static void run(const struct json *v)
{
    struct err e = { 0 };
    struct crypto_message m;
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
    if (crypto_state(c) != CRYPTO_REFUSED && crypto_decrypt(c, "!r:x", v, &m, &e) == 0)
        crypto_message_clear(&m);
    if (attach_decrypt(&a, v, &e) == 0)
        attach_free(a);
    free(ssss_open(secret, "name", v));
    free(backup_open(secret, v));
    if (json_int_or(json_get(v, "passphrase"), "iterations", 0) < 10)
        (void)ssss_key_from_words("words", v, key);
    answer_all(v, 200);
    answer_all(v, (int)json_int_or(v, "status", 404));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    autojson struct json *v = NULL;
    struct err e = { 0 };
    if (c && (++runs % 2000 == 0 || crypto_state(c) == CRYPTO_REFUSED)) {
        crypto_close(c);
        store_batch_end(&batch);
        c = NULL;
    }
    if (!c)
        open_up();
    if (json_parse(&v, (const char *)data, n, 64 << 10, &e) == 0)
        run(v);
    return 0;
}
