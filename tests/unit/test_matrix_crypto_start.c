/* Starting, the account's identity and its secret storage. */
#include "matrix_world.h"
#include "ssss.h"

static struct world *w;

static int one_world(void **state)
{
    (void)state;
    w = world_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    world_free(w);
    return 0;
}

static const char *first_log(int i)
{
    const struct json *l = json_first(w->log);
    while (i-- > 0)
        l = json_next(l);
    return json_text(l);
}

/* ---- start ---- */

static void a_new_device_asks_before_it_uploads_and_uploads_all_at_once(void **state)
{
    (void)state;
    struct peer *p = peer_new(w, "@bot:x", "DEV");
    assert_string_equal(first_log(0), "DEV GET " API "/user/%40bot%3Ax/account_data/org.sandbook.store_generation");
    assert_string_equal(first_log(1), "DEV PUT " API "/user/%40bot%3Ax/account_data/org.sandbook.store_generation");
    assert_string_equal(first_log(2), "DEV POST " API "/keys/query");
    assert_string_equal(first_log(3), "DEV POST " API "/keys/upload");
    assert_int_equal(p->uploads, 1);
    assert_int_equal(json_len(json_get(w->one_time, "@bot:x DEV")), 50);
    assert_int_equal(json_len(json_get(w->fallback, "@bot:x DEV")), 1);
    assert_int_equal(p->alarms, 0);
}

static void a_second_start_uploads_nothing(void **state)
{
    (void)state;
    struct peer *p = peer_new(w, "@bot:x", "DEV");
    peer_restart(p);
    assert_int_equal(crypto_state(p->c), CRYPTO_STARTING);
    peer_pump(p);
    assert_int_equal(crypto_state(p->c), CRYPTO_RUNNING);
    assert_int_equal(log_count(w, "one_time"), 0);
    assert_int_equal(p->alarms, 0);
}

static void nothing_goes_out_before_the_start_is_over(void **state)
{
    (void)state;
    struct peer *p = peer_make(w, "@bot:x", "DEV");
    struct crypto_request r;
    autojson struct json *sync = NULL, *encrypted = json_new_object(), *content = NULL;
    peer_open(p);
    sync = peer_sync_json(p);
    OK(crypto_sync(p->c, sync, &e));
    json_set_str(encrypted, "algorithm", "m.megolm.v1.aes-sha2");
    OK(crypto_room_encrypted(p->c, ROOM, encrypted, &e));
    OK(crypto_room_members(p->c, ROOM, (const char *const[]){ "@a:x" }, 1, &e));
    assert_int_equal(try_encrypt(p, "x", &content), CRYPTO_WAIT);
    assert_true(crypto_next_request(p->c, &r));
    assert_non_null(strstr(r.path, "store_generation"));
    assert_false(crypto_next_request(p->c, &r));
}

static void assert_refused(struct peer *p, const char *why)
{
    struct crypto_request r;
    peer_pump(p);
    assert_int_equal(crypto_state(p->c), CRYPTO_REFUSED);
    assert_non_null(strstr(crypto_refusal(p->c), why));
    assert_false(crypto_next_request(p->c, &r));
    assert_int_equal(crypto_wake_ms(p->c), INT64_MAX);
    autojson struct json *content = NULL, *out = NULL, *event = json_new_object();
    enum crypto_ready ready;
    struct crypto_message m;
    struct err bad = { 0 };
    content = json_new_object();
    assert_int_equal(crypto_encrypt(p->c, ROOM, "m.room.message", content, &ready, &out, &bad), -1);
    assert_int_equal(crypto_decrypt(p->c, ROOM, event, &m, &bad), -1);
}

static void a_store_that_was_lost_is_no_device(void **state)
{
    (void)state;
    peer_new(w, "@bot:x", "DEV");
    w->peers[0]->user = "@gone:x";
    struct peer *again = peer_make(w, "@bot:x", "DEV");
    peer_open(again);
    assert_refused(again, "log in as a new device");
}

static void a_server_with_other_keys_for_us_is_refused(void **state)
{
    (void)state;
    struct peer *p = peer_new(w, "@bot:x", "DEV");
    struct world *other = world_new();
    peer_new(other, "@bot:x", "DEV");
    json_set(w->devices, "@bot:x", json_dup(json_get(other->devices, "@bot:x")));
    world_free(other);
    peer_restart(p);
    assert_refused(p, "other keys");
}

static void a_server_that_lost_our_keys_is_refused(void **state)
{
    (void)state;
    struct peer *p = peer_new(w, "@bot:x", "DEV");
    json_set(w->devices, "@bot:x", json_new_object());
    peer_restart(p);
    assert_refused(p, "lost the keys");
}

static void copy_file(const char *from, const char *to)
{
    AUTO(str_clear) struct str all = STR_INIT(64 << 20);
    OK(str_read_file(&all, from, &e));
    FILE *f = fopen(to, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(str_peek(&all), 1, all.len, f), all.len);
    assert_int_equal(fclose(f), 0);
}

static void an_old_copy_of_the_store_is_refused(void **state)
{
    (void)state;
    struct peer *p = peer_new(w, "@bot:x", "DEV");
    autofree char *now = xasprintf("%s/sandbook.db", p->dir), *old = xasprintf("%s/old", p->dir);
    peer_close(p);
    copy_file(now, old);
    peer_open(p);
    peer_pump(p);
    assert_int_equal(crypto_state(p->c), CRYPTO_RUNNING);
    peer_close(p);
    copy_file(old, now);
    peer_open(p);
    assert_refused(p, "old copy");
    peer_close(p);
    p->cfg.accept_rollback = true;
    peer_open(p);
    peer_pump(p);
    assert_int_equal(crypto_state(p->c), CRYPTO_RUNNING);
}

static void a_store_of_another_device_or_key_does_not_open(void **state)
{
    (void)state;
    struct peer *p = peer_new(w, "@bot:x", "DEV");
    struct crypto *c = NULL;
    struct err bad = { 0 };
    crypto_close(p->c);
    p->c = NULL;
    struct crypto_config cfg = p->cfg;
    cfg.device = "OTHER";
    assert_int_equal(crypto_open(&c, &cfg, &bad), -1);
    assert_int_equal(bad.kind, ERR_CONFIG);
    assert_non_null(strstr(bad.msg, "DEV"));
    uint8_t wrong[KEY_BYTES] = { 1 };
    cfg = p->cfg;
    cfg.pickle_key = wrong;
    assert_int_equal(crypto_open(&c, &cfg, &bad), -1);
    assert_int_equal(bad.kind, ERR_CONFIG);
    assert_non_null(strstr(bad.msg, "pickle key"));
}

static void secrets_are_not_in_the_status(void **state)
{
    (void)state;
    struct peer *p = peer_new(w, "@bot:x", "DEV");
    autojson struct json *status = NULL;
    OK(crypto_status(p->c, &status, &e));
    assert_true(json_bool_or(json_get(status, "identity"), "device_signed", false));
    assert_int_equal(json_int_or(status, "one_time_keys", 0), 50);
    assert_string_equal(json_str_or(status, "device", ""), "DEV");
}

/* ---- identity ---- */

static const struct json *server_device(const char *user, const char *device)
{
    return json_get(json_get(w->devices, user), device);
}

static bool is_signed(const char *user, const char *device)
{
    const struct json *self = json_get(json_get(json_get(w->identity, user), "self_signing_key"), "keys");
    const char *key = json_text(json_first(self));
    return key && signed_by(server_device(user, device), user, NULL, key);
}

static void an_account_without_identity_gets_one_and_the_device_is_signed(void **state)
{
    (void)state;
    struct peer *p = peer_new(w, "@bot:x", "DEV");
    assert_true(is_signed("@bot:x", "DEV"));
    const struct json *id = json_get(w->identity, "@bot:x");
    const char *master = json_text(json_first(json_get(json_get(id, "master_key"), "keys")));
    assert_true(signed_by(json_get(id, "self_signing_key"), "@bot:x", NULL, master));
    assert_true(signed_by(json_get(id, "user_signing_key"), "@bot:x", NULL, master));
    autofree char *recovery = NULL;
    OK(crypto_recovery_key(p->c, &recovery, &e));
    assert_non_null(recovery);
    assert_int_equal(strlen(recovery), 59);
    OK(crypto_recovery_taken(p->c, &e));
    autofree char *gone = NULL;
    OK(crypto_recovery_key(p->c, &gone, &e));
    assert_null(gone);
}

/* The signature is on its way; the list of devices is asked for meanwhile, and its answer comes last. */
static void sign_behind_an_old_list(struct peer *p, const struct crypto_request *r)
{
    autojson struct json *sync = json_new_object(), *list = NULL;
    struct json *changed = json_new_array();
    autofree char *path = xstrdup(r->path), *body = xstrdup(r->body);
    const struct crypto_request sign = { .id = r->id, .method = "POST", .path = path, .body = body };
    struct crypto_request query;
    json_push(changed, json_new_string(p->user));
    json_set(child(sync, "device_lists"), "changed", changed);
    OK(crypto_sync(p->c, sync, &e));
    assert_true(crypto_next_request(p->c, &query));
    assert_non_null(strstr(query.path, "/keys/query"));
    autojson struct json *asked = NULL;
    OK(json_parse(&asked, query.body, strlen(query.body), WORLD_JSON, &e));
    const int64_t id = query.id;
    assert_int_equal(serve(p, "POST", query.path, asked, &list), 200);
    peer_answer(p, &sign);
    OK(crypto_answered(p->c, id, 200, list, 0, &e));
}

static void a_list_that_is_older_than_the_signature_says_nothing_of_it(void **state)
{
    (void)state;
    struct peer *p = peer_make(w, "@bot:x", "DEV");
    struct crypto_request r;
    peer_open(p);
    while (crypto_next_request(p->c, &r)) {
        if (strstr(r.path, "/keys/signatures/upload"))
            sign_behind_an_old_list(p, &r);
        else
            peer_answer(p, &r);
    }
    autojson struct json *status = NULL;
    OK(crypto_status(p->c, &status, &e));
    assert_true(json_bool_or(json_get(status, "identity"), "device_signed", false));
    assert_int_equal(p->alarms, 0);
}

static void an_identity_survives_a_restart(void **state)
{
    (void)state;
    struct peer *p = peer_new(w, "@bot:x", "DEV");
    autofree char *before = json_line(json_get(w->identity, "@bot:x"));
    peer_restart(p);
    peer_pump(p);
    autofree char *after = json_line(json_get(w->identity, "@bot:x"));
    assert_string_equal(before, after);
    assert_int_equal(log_count(w, "device_signing"), 1);
    assert_int_equal(log_count(w, "signatures/upload"), 1);
}

static void a_new_device_with_the_recovery_key_is_signed(void **state)
{
    (void)state;
    struct peer *p = peer_new(w, "@bot:x", "DEV");
    autofree char *recovery = NULL;
    OK(crypto_recovery_key(p->c, &recovery, &e));
    struct peer *next = peer_make(w, "@bot:x", "NEW");
    next->cfg.recovery_key = recovery;
    peer_open(next);
    peer_pump(next);
    assert_true(is_signed("@bot:x", "NEW"));
    assert_int_equal(next->alarms, 0);
    assert_int_equal(log_count(w, "device_signing"), 1);
}

static void a_wrong_or_missing_recovery_key_resets_nothing(void **state)
{
    (void)state;
    peer_new(w, "@bot:x", "DEV");
    struct peer *bare = peer_make(w, "@bot:x", "BARE"), *wrong = peer_make(w, "@bot:x", "WRONG");
    wrong->cfg.recovery_key = "EsSz ykH7 LCZx 7Cae cmKD wcmY JRXi Ybtu 8iQ3 t8Ez nRwK pUY1";
    struct peer *const both[] = { bare, wrong };
    for (size_t i = 0; i < 2; i++) {
        peer_open(both[i]);
        peer_pump(both[i]);
        assert_int_equal(crypto_state(both[i]->c), CRYPTO_RUNNING);
        assert_int_equal(both[i]->alarms, 1);
        assert_non_null(strstr(both[i]->alarm, "recovery key"));
        assert_false(is_signed("@bot:x", both[i]->device));
    }
    assert_int_equal(log_count(w, "device_signing"), 1);
}

static void a_secret_storage_of_others_stays_the_default(void **state)
{
    (void)state;
    const char *path = API "/user/%40bot%3Ax/account_data/m.secret_storage.default_key";
    json_set(w->data, path, obj_of("key", json_new_string("theirs")));
    peer_new(w, "@bot:x", "DEV");
    assert_string_equal(text_at(w->data, path, "key"), "theirs");
    assert_true(is_signed("@bot:x", "DEV"));
}

static void a_reset_wants_the_password(void **state)
{
    (void)state;
    struct peer *p = peer_new(w, "@bot:x", "DEV");
    autofree char *before = json_line(json_get(json_get(w->identity, "@bot:x"), "master_key"));
    OK(crypto_reset_identity(p->c, &e));
    peer_pump(p);
    assert_non_null(strstr(p->alarm, "password"));
    autofree char *same_ = json_line(json_get(json_get(w->identity, "@bot:x"), "master_key"));
    assert_string_equal(before, same_);
    p->cfg.password = "secret";
    peer_restart(p);
    peer_pump(p);
    assert_true(is_signed("@bot:x", "DEV"));
    autofree char *after = json_line(json_get(json_get(w->identity, "@bot:x"), "master_key"));
    assert_string_not_equal(before, after);
}

static void a_signature_that_the_server_dropped_is_noticed(void **state)
{
    (void)state;
    struct peer *p = peer_make(w, "@bot:x", "DEV");
    w->fail_path = "signatures/upload";
    w->fail_status = 200;
    w->fail_n = 1;
    peer_open(p);
    peer_pump(p);
    assert_int_equal(p->alarms, 1);
    assert_non_null(strstr(p->alarm, "signature"));
    peer_restart(p);
    peer_pump(p);
    assert_true(is_signed("@bot:x", "DEV"));
}

static void an_identity_replaced_behind_our_back_stops_us(void **state)
{
    (void)state;
    struct peer *p = peer_new(w, "@bot:x", "DEV");
    struct world *other = world_new();
    peer_new(other, "@bot:x", "EVIL");
    json_set(w->identity, "@bot:x", json_dup(json_get(other->identity, "@bot:x")));
    world_free(other);
    tell_changed(w, "@bot:x");
    peer_sync(p);
    assert_refused(p, "replaced");
}

/* ---- a passphrase ---- */

static void a_passphrase_opens_the_secret_storage_too(void **state)
{
    (void)state;
    struct peer *p = peer_new(w, "@bot:x", "DEV");
    uint8_t key[KEY_BYTES], iv[IV_BYTES] = { 0 };
    pbkdf2_sha512("correct horse", "salt", 1000, key);
    autojson struct json *self = NULL;
    (void)p;
    /* The same secrets once more, under a key made of words. */
    autofree char *recovery = NULL;
    uint8_t have[KEY_BYTES];
    OK(crypto_recovery_key(p->c, &recovery, &e));
    assert_true(recovery_key_read(recovery, have));
    const char *path = API "/user/%40bot%3Ax/account_data/m.cross_signing.self_signing";
    const struct json *sealed = json_first(json_get(json_get(w->data, path), "encrypted"));
    autofree char *secret = ssss_open(have, "m.cross_signing.self_signing", sealed);
    assert_non_null(secret);
    self = ssss_seal(key, "m.cross_signing.self_signing", secret, iv);
    json_set(w->data, path, obj_of("encrypted", obj_of("words", json_dup(self))));
    struct json *about = ssss_describe(key, iv), *pass = child(about, "passphrase");
    json_set_str(pass, "algorithm", "m.pbkdf2");
    json_set_str(pass, "salt", "salt");
    json_set_int(pass, "iterations", 1000);
    json_set(w->data, API "/user/%40bot%3Ax/account_data/m.secret_storage.key.words", about);
    json_set(w->data, API "/user/%40bot%3Ax/account_data/m.secret_storage.default_key",
             obj_of("key", json_new_string("words")));
    struct peer *next = peer_make(w, "@bot:x", "NEW");
    next->cfg.recovery_key = "correct horse";
    peer_open(next);
    peer_pump(next);
    assert_true(is_signed("@bot:x", "NEW"));
}

/* ---- dying at every moment ---- */

static void conversation(struct peer *alice, struct peer *bot)
{
    for (int i = 0; i < 3; i++) {
        autofree char *q = xasprintf("question %d", i), *a = xasprintf("answer %d", i);
        autojson struct json *question = say(alice, q);
        assert_hears(bot, question, q);
        autojson struct json *answer = say(bot, a);
        assert_hears(alice, answer, a);
        w->now_ms += 15000;
        if (i == 1)
            OK(crypto_room_rotate(bot->c, ROOM, &e));
    }
}

/* false: it was over before the moment came. */
static bool dies_at(int moment)
{
    w = world_new();
    struct peer *alice = peer_new(w, "@alice:x", "ADEV"), *bot = peer_make(w, "@bot:x", "DEV");
    bot->cfg.backup = true;
    w->victim = bot;
    w->kill_in = moment;
    peer_open(bot);
    peer_pump(bot);
    peer_pump(bot);
    assert_int_equal(crypto_state(bot->c), CRYPTO_RUNNING);
    all_join(w);
    conversation(alice, bot);
    const bool died = w->kill_in < 0;
    w->kill_in = -1;
    peer_restart(bot);
    peer_pump(bot);
    peer_pump(alice);
    assert_reaches(bot, alice, "still here");
    assert_reaches(alice, bot, "me too");
    assert_true(is_signed("@bot:x", "DEV"));
    assert_int_equal(bot->alarms, 0);
    assert_int_equal(log_count(w, "DEV POST " API "/keys/device_signing/upload") > 0, true);
    world_free(w);
    return died;
}

static void death_at_any_moment_loses_nothing(void **state)
{
    (void)state;
    int moment = 0;
    world_free(w);
    while (dies_at(moment))
        moment++;
    print_message("%d moments\n", moment);
    assert_true(moment > 40);
    w = world_new();
}

static void a_lost_batch_is_as_if_nothing_came(void **state)
{
    (void)state;
    struct peer *alice = peer_new(w, "@alice:x", "ADEV"), *bot = peer_new(w, "@bot:x", "DEV");
    all_join(w);
    autojson struct json *ev = say(alice, "x");
    autojson struct json *sync = peer_sync_json(bot);
    {
        AUTO(store_batch_end) struct store_batch b = { 0 };
        OK(store_batch_begin(&b, bot->store, &e));
        OK(crypto_sync(bot->c, sync, &e));
    }
    OK(crypto_reload(bot->c, &e));
    assert_int_equal(crypto_state(bot->c), CRYPTO_RUNNING);
    assert_int_equal(hear(bot, ev, NULL, NULL), CRYPTO_NO_KEY);
    assert_hears(bot, ev, "x"); /* the server gives it once more */
    assert_reaches(bot, alice, "y");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, one_world, end)
    const struct CMUnitTest tests[] = {
        TEST(a_new_device_asks_before_it_uploads_and_uploads_all_at_once),
        TEST(a_second_start_uploads_nothing),
        TEST(nothing_goes_out_before_the_start_is_over),
        TEST(a_store_that_was_lost_is_no_device),
        TEST(a_server_with_other_keys_for_us_is_refused),
        TEST(a_server_that_lost_our_keys_is_refused),
        TEST(an_old_copy_of_the_store_is_refused),
        TEST(a_store_of_another_device_or_key_does_not_open),
        TEST(secrets_are_not_in_the_status),
        TEST(an_account_without_identity_gets_one_and_the_device_is_signed),
        TEST(a_list_that_is_older_than_the_signature_says_nothing_of_it),
        TEST(an_identity_survives_a_restart),
        TEST(a_new_device_with_the_recovery_key_is_signed),
        TEST(a_wrong_or_missing_recovery_key_resets_nothing),
        TEST(a_secret_storage_of_others_stays_the_default),
        TEST(a_reset_wants_the_password),
        TEST(a_signature_that_the_server_dropped_is_noticed),
        TEST(an_identity_replaced_behind_our_back_stops_us),
        TEST(a_passphrase_opens_the_secret_storage_too),
        TEST(death_at_any_moment_loses_nothing),
        TEST(a_lost_batch_is_as_if_nothing_came),
    };
    return cmocka_run_group_tests_name("matrix_crypto_start", tests, NULL, NULL);
}
