/* Somebody verifies us. The other side is written here, from the rules, not from our code's point of view. */
#include "matrix_world.h"
#include "sas_math.h"

static struct world *w;
static struct peer *alice, *bot;

/* Alice's side of one verification. */
static struct {
    const char *txn, *room;
    uint8_t secret[KEY_BYTES], shared[KEY_BYTES];
    char public[KEY_TEXT + 1], their_key[KEY_TEXT + 1];
    struct json *start;
    char *commitment;
    size_t read; /* of bot->room_sent */
} her;

static int begin(void **state)
{
    uint8_t raw[KEY_BYTES];
    (void)state;
    w = world_new();
    alice = peer_new(w, "@alice:x", "ADEV");
    bot = peer_new(w, "@bot:x", "BDEV");
    all_join(w);
    memset(&her, 0, sizeof(her));
    her.txn = "txn1";
    memset(her.secret, 7, sizeof(her.secret));
    x25519_public(her.secret, raw);
    b64_key(her.public, raw);
    return 0;
}

static int end(void **state)
{
    (void)state;
    json_free(her.start);
    free(her.commitment);
    world_free(w);
    return 0;
}

static void send_room(const char *type, struct json *content, const char *id)
{
    const struct crypto_room_event ev = {
        .room = her.room, .id = id, .sender = "@alice:x", .type = type, .content = content, .ts_ms = w->now_ms
    };
    OK(crypto_room_verification(bot->c, &ev, &e));
    peer_pump(bot);
}

static void relate(struct json *content)
{
    struct json *rel = child(content, "m.relates_to");
    json_set_str(rel, "rel_type", "m.reference");
    json_set_str(rel, "event_id", her.txn);
}

static void send(const char *what, struct json *take_content)
{
    autojson struct json *content = take_content;
    autofree char *type = xasprintf("m.key.verification.%s", what);
    if (her.room) {
        relate(content);
        send_room(type, content, "$later");
        return;
    }
    json_set_str(content, "transaction_id", her.txn);
    deliver(bot, "@alice:x", type, content);
    peer_sync(bot);
}

/* The next thing the bot said; NULL: nothing. The caller frees. */
static struct json *heard(const char *what)
{
    autofree char *type = xasprintf("m.key.verification.%s", what);
    const struct json *at = json_first(her.room ? bot->room_sent : alice->inbox);
    for (size_t i = 0; at && i < her.read; i++)
        at = json_next(at);
    if (!at)
        fail_msg("the bot did not send %s", what);
    her.read++;
    if (strcmp(json_str_or(at, "type", ""), type) != 0)
        fail_msg("the bot sent %s, not %s", json_str_or(at, "type", ""), type);
    const struct json *content = json_get(at, "content");
    if (her.room)
        assert_string_equal(text_at(content, "m.relates_to", "event_id"), her.txn);
    else
        assert_string_equal(json_str_or(content, "transaction_id", ""), her.txn);
    return json_dup(content);
}

static void assert_silent(void)
{
    assert_int_equal(json_len(her.room ? bot->room_sent : alice->inbox), her.read);
}

static struct json *list(const char *const *words, size_t n)
{
    struct json *a = json_new_array();
    for (size_t i = 0; i < n; i++)
        json_push(a, json_new_string(words[i]));
    return a;
}

static struct json *request(void)
{
    static const char *const methods[] = { "m.sas.v1", "m.qr_code.show.v1" };
    struct json *o = json_new_object();
    json_set_str(o, "from_device", "ADEV");
    json_set(o, "methods", list(methods, 2));
    json_set_int(o, "timestamp", w->now_ms);
    return o;
}

static void ask(void)
{
    if (!her.room) {
        send("request", request());
        return;
    }
    autojson struct json *o = request();
    json_set_str(o, "msgtype", "m.key.verification.request");
    json_set_str(o, "to", "@bot:x");
    send_room("m.room.message", o, her.txn);
}

static struct json *start_content(void)
{
    static const char *const macs[] = { "hkdf-hmac-sha256", "hkdf-hmac-sha256.v2",
                                        "org.matrix.msc3783.hkdf-hmac-sha256" };
    static const char *const strings[] = { "decimal", "emoji" };
    struct json *o = json_new_object();
    json_set_str(o, "from_device", "ADEV");
    json_set_str(o, "method", "m.sas.v1");
    json_set(o, "key_agreement_protocols", list((const char *const[]){ "curve25519-hkdf-sha256" }, 1));
    json_set(o, "hashes", list((const char *const[]){ "sha256" }, 1));
    json_set(o, "message_authentication_codes", list(macs, 3));
    json_set(o, "short_authentication_string", list(strings, 2));
    return o;
}

static void start_with(struct json *take_content)
{
    her.start = json_dup(take_content);
    if (her.room)
        relate(her.start);
    else
        json_set_str(her.start, "transaction_id", her.txn);
    send("start", take_content);
}

static void up_to_keys(void)
{
    uint8_t raw[KEY_BYTES];
    ask();
    autojson struct json *ready = heard("ready");
    assert_string_equal(json_str_or(ready, "from_device", ""), "BDEV");
    start_with(start_content());
    autojson struct json *accept = heard("accept");
    assert_string_equal(json_str_or(accept, "message_authentication_code", ""), "hkdf-hmac-sha256.v2");
    her.commitment = xstrdup(json_str_or(accept, "commitment", ""));
    send("key", obj_of("key", json_new_string(her.public)));
    autojson struct json *key = heard("key");
    (void)snprintf(her.their_key, sizeof(her.their_key), "%s", json_str_or(key, "key", ""));
    assert_true(b64_is_key(her.their_key, raw));
    assert_true(x25519_agree(her.secret, raw, her.shared));
    autofree char *want = sas_commitment(her.their_key, her.start);
    assert_string_equal(want, her.commitment);
}

static struct sas_mac mac_of(bool mine)
{
    return mine ? (struct sas_mac){ her.shared, "@alice:x", "ADEV", "@bot:x", "BDEV", her.txn, false }
                : (struct sas_mac){ her.shared, "@bot:x", "BDEV", "@alice:x", "ADEV", her.txn, false };
}

static const char *device_key(const char *user, const char *device)
{
    autofree char *name = xasprintf("ed25519:%s", device);
    return text_at(json_get(json_get(w->devices, user), device), "keys", name);
}

static const char *master_key(const char *user)
{
    return json_text(json_first(json_get(json_get(json_get(w->identity, user), "master_key"), "keys")));
}

static void add(struct json *mac, const char *id, const char *key)
{
    const struct sas_mac m = mac_of(true);
    autofree char *name = xasprintf("ed25519:%s", id);
    autofree char *text = sas_mac(&m, name, key);
    json_set_str(mac, name, text);
}

/* ids in byte order: a device id of capitals may stand before or behind the identity's key */
static struct json *her_mac(const char *device, const char *master)
{
    struct json *o = json_new_object();
    struct json *mac = child(o, "mac");
    const struct sas_mac m = mac_of(true);
    autofree char *a = xasprintf("ed25519:ADEV"), *b = xasprintf("ed25519:%s", master_key("@alice:x"));
    add(mac, "ADEV", device);
    if (master)
        add(mac, master_key("@alice:x"), master);
    autofree char *ids = !master ? xstrdup(a) : strcmp(a, b) < 0 ? xasprintf("%s,%s", a, b) : xasprintf("%s,%s", b, a);
    autofree char *keys = sas_mac(&m, "KEY_IDS", ids);
    json_set_str(o, "keys", keys);
    return o;
}

static void check_their_mac(void)
{
    autojson struct json *theirs = heard("mac");
    const struct sas_mac m = mac_of(false);
    const char *const keys[] = { device_key("@bot:x", "BDEV"), master_key("@bot:x") };
    const char *const ids[] = { "BDEV", master_key("@bot:x") };
    assert_int_equal(json_len(json_get(theirs, "mac")), 2);
    for (size_t i = 0; i < 2; i++) {
        autofree char *name = xasprintf("ed25519:%s", ids[i]);
        autofree char *want = sas_mac(&m, name, keys[i]);
        assert_string_equal(json_str_or(json_get(theirs, "mac"), name, ""), want);
    }
}

static void assert_shows_what_alice_sees(void)
{
    struct sas_bytes bytes;
    const struct sas_side a = { "@alice:x", "ADEV", her.public }, b = { "@bot:x", "BDEV", her.their_key };
    sas_derive(her.shared, &a, &b, her.txn, &bytes);
    autofree char *emoji = sas_emoji(&bytes), *decimal = sas_decimal(&bytes);
    assert_string_equal(json_str_or(bot->sas, "emoji", ""), emoji);
    assert_string_equal(json_str_or(bot->sas, "decimal", ""), decimal);
    assert_string_equal(json_str_or(bot->sas, "state", ""), "keys");
}

static enum crypto_trust trust_in_alice(void)
{
    enum crypto_trust trust = CRYPTO_TRUST_UNKNOWN;
    autojson struct json *ev = say(alice, "x");
    peer_sync(bot);
    assert_int_equal(hear(bot, ev, NULL, &trust), CRYPTO_CLEAR);
    return trust;
}

static void runs_through(void)
{
    up_to_keys();
    assert_shows_what_alice_sees();
    OK(crypto_sas_answer(bot->c, her.txn, true, &e));
    peer_pump(bot);
    check_their_mac();
    send("mac", her_mac(device_key("@alice:x", "ADEV"), master_key("@alice:x")));
    json_free(heard("done"));
    send("done", json_new_object());
    assert_string_equal(json_str_or(bot->sas, "state", ""), "done");
    assert_silent();
    if (!her.room)
        peer_forget_inbox(alice);
    assert_int_equal(trust_in_alice(), CRYPTO_TRUST_VERIFIED);
}

static void a_verification_by_devices_runs_through(void **state)
{
    (void)state;
    runs_through();
}

static void a_verification_in_a_room_runs_through(void **state)
{
    (void)state;
    her.room = ROOM;
    her.txn = "$request";
    runs_through();
}

static void the_mac_may_come_before_the_operator_has_compared(void **state)
{
    (void)state;
    up_to_keys();
    send("mac", her_mac(device_key("@alice:x", "ADEV"), master_key("@alice:x")));
    assert_silent();
    OK(crypto_sas_answer(bot->c, her.txn, true, &e));
    peer_pump(bot);
    check_their_mac();
    json_free(heard("done"));
    assert_string_equal(json_str_or(bot->sas, "state", ""), "done");
}

static void assert_cancelled(const char *code)
{
    autojson struct json *c = heard("cancel");
    assert_string_equal(json_str_or(c, "code", ""), code);
    assert_string_equal(json_str_or(bot->sas, "code", ""), code);
    assert_string_equal(json_str_or(bot->sas, "state", ""), "cancelled");
}

static void a_wrong_key_in_the_mac_cancels(void **state)
{
    (void)state;
    up_to_keys();
    OK(crypto_sas_answer(bot->c, her.txn, true, &e));
    peer_pump(bot);
    check_their_mac();
    send("mac", her_mac(device_key("@bot:x", "BDEV"), master_key("@alice:x")));
    assert_cancelled("m.key_mismatch");
    if (!her.room)
        peer_forget_inbox(alice);
    assert_int_equal(trust_in_alice(), CRYPTO_TRUST_SIGNED);
}

static void a_mac_over_a_changed_list_cancels(void **state)
{
    (void)state;
    up_to_keys();
    OK(crypto_sas_answer(bot->c, her.txn, true, &e));
    peer_pump(bot);
    check_their_mac();
    struct json *mac = her_mac(device_key("@alice:x", "ADEV"), NULL);
    add(child(mac, "mac"), "EXTRA", "whatever");
    send("mac", mac);
    assert_cancelled("m.key_mismatch");
}

static void what_does_not_match_is_cancelled(void **state)
{
    (void)state;
    up_to_keys();
    OK(crypto_sas_answer(bot->c, her.txn, false, &e));
    peer_pump(bot);
    assert_cancelled("m.mismatched_sas");
    struct err bad = { 0 };
    assert_int_equal(crypto_sas_answer(bot->c, her.txn, true, &bad), -1);
}

static void nobody_can_answer_before_there_is_something_to_compare(void **state)
{
    struct err bad = { 0 };
    (void)state;
    ask();
    assert_int_equal(crypto_sas_answer(bot->c, her.txn, true, &bad), -1);
    assert_int_equal(crypto_sas_answer(bot->c, "other", true, &bad), -1);
    assert_int_equal(bad.kind, ERR_DATA);
}

static void a_cancellation_is_taken_and_not_answered(void **state)
{
    (void)state;
    ask();
    json_free(heard("ready"));
    send("cancel", obj_of("code", json_new_string("m.user")));
    assert_string_equal(json_str_or(bot->sas, "state", ""), "cancelled");
    send("start", start_content());
    send("key", obj_of("key", json_new_string(her.public)));
    assert_silent();
}

static void ten_minutes_are_enough(void **state)
{
    (void)state;
    ask();
    json_free(heard("ready"));
    assert_true(crypto_wake_ms(bot->c) <= w->now_ms + 600000);
    w->now_ms += 600000;
    peer_tick(bot);
    assert_cancelled("m.timeout");
}

static void requests_of_another_time_are_ignored(void **state)
{
    (void)state;
    static const int64_t off[] = { 5 * 60000 + 1, -10 * 60000 - 1 };
    for (size_t i = 0; i < countof(off); i++) {
        struct json *r = request();
        json_set_int(r, "timestamp", w->now_ms + off[i]);
        send("request", r);
        assert_silent();
    }
}

static void a_second_request_ends_the_first(void **state)
{
    (void)state;
    ask();
    json_free(heard("ready"));
    const char *first = her.txn;
    her.txn = "txn2";
    ask();
    her.txn = first;
    json_free(heard("cancel"));
    her.txn = "txn2";
    json_free(heard("ready"));
}

static void strangers_and_unknown_methods_are_refused(void **state)
{
    (void)state;
    struct json *r = request();
    json_set_str(r, "from_device", "NODEV");
    json_set_str(r, "transaction_id", "t9");
    deliver(bot, "@alice:x", "m.key.verification.request", r);
    json_free(r);
    peer_sync(bot);
    assert_silent(); /* no such device to be refused at */
    r = request();
    json_set(r, "methods", list((const char *const[]){ "m.reciprocate.v1" }, 1));
    send("request", r);
    autojson struct json *c = heard("cancel");
    assert_string_equal(json_str_or(c, "code", ""), "m.unknown_method");
}

static void starts_that_we_cannot_do_are_cancelled(void **state)
{
    static const char *const members[] = { "method", "key_agreement_protocols", "hashes",
                                           "message_authentication_codes", "short_authentication_string" };
    (void)state;
    for (size_t i = 0; i < countof(members); i++) {
        autofree char *txn = xasprintf("t%zu", i);
        her.txn = txn;
        ask();
        json_free(heard("ready"));
        struct json *start = start_content();
        json_set_str(start, members[i], "nothing");
        send("start", start);
        assert_cancelled("m.unknown_method");
    }
}

static void a_message_out_of_turn_cancels(void **state)
{
    static const char *const early[] = { "key", "mac", "accept" };
    (void)state;
    for (size_t i = 0; i < countof(early); i++) {
        autofree char *txn = xasprintf("t%zu", i);
        her.txn = txn;
        ask();
        json_free(heard("ready"));
        send(early[i], obj_of("key", json_new_string(her.public)));
        assert_cancelled("m.unexpected_message");
    }
}

static void a_key_of_low_order_cancels(void **state)
{
    (void)state;
    ask();
    json_free(heard("ready"));
    start_with(start_content());
    json_free(heard("accept"));
    send("key", obj_of("key", json_new_string("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")));
    assert_cancelled("m.invalid_message");
}

static void another_person_cannot_go_on_with_it(void **state)
{
    (void)state;
    struct peer *mallory = peer_new(w, "@mallory:x", "MDEV");
    (void)mallory;
    ask();
    json_free(heard("ready"));
    autojson struct json *start = start_content();
    json_set_str(start, "transaction_id", her.txn);
    deliver(bot, "@mallory:x", "m.key.verification.start", start);
    peer_sync(bot);
    assert_silent();
    assert_string_equal(json_str_or(bot->sas, "state", ""), "asked");
}

static void automatic_answers_verify_nobody(void **state)
{
    (void)state;
    bot->cfg.sas = CRYPTO_SAS_AUTO;
    peer_restart(bot);
    peer_pump(bot);
    up_to_keys();
    check_their_mac();
    send("mac", her_mac(device_key("@alice:x", "ADEV"), master_key("@alice:x")));
    json_free(heard("done"));
    if (!her.room)
        peer_forget_inbox(alice);
    assert_int_equal(trust_in_alice(), CRYPTO_TRUST_SIGNED);
}

static void switched_off_means_no(void **state)
{
    (void)state;
    bot->cfg.sas = CRYPTO_SAS_OFF;
    peer_restart(bot);
    peer_pump(bot);
    ask();
    autojson struct json *c = heard("cancel");
    assert_string_equal(json_str_or(c, "code", ""), "m.user");
}

static void a_request_to_somebody_else_in_the_room_is_not_ours(void **state)
{
    (void)state;
    her.room = ROOM;
    her.txn = "$r";
    autojson struct json *o = request();
    json_set_str(o, "msgtype", "m.key.verification.request");
    json_set_str(o, "to", "@carol:x");
    send_room("m.room.message", o, her.txn);
    assert_silent();
}

static void a_request_of_somebody_unknown_waits_for_their_devices(void **state)
{
    (void)state;
    OK(store_unkeep(bot->store, &(struct kept){ "matrix", "e2ee_user", "@alice:x" }, &e));
    peer_restart(bot);
    peer_pump(bot);
    ask();
    autojson struct json *ready = heard("ready");
    assert_string_equal(json_str_or(ready, "from_device", ""), "BDEV");
}

static void a_flood_of_requests_has_an_end(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        autofree char *txn = xasprintf("t%d", i);
        her.txn = txn;
        ask();
    }
    size_t n = 0;
    for (const struct json *v = json_first(alice->inbox); v; v = json_next(v))
        n += strstr(json_str_or(v, "type", ""), "ready") != NULL;
    assert_int_equal(n, 20);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_verification_by_devices_runs_through),
        TEST(a_verification_in_a_room_runs_through),
        TEST(the_mac_may_come_before_the_operator_has_compared),
        TEST(a_wrong_key_in_the_mac_cancels),
        TEST(a_mac_over_a_changed_list_cancels),
        TEST(what_does_not_match_is_cancelled),
        TEST(nobody_can_answer_before_there_is_something_to_compare),
        TEST(a_cancellation_is_taken_and_not_answered),
        TEST(ten_minutes_are_enough),
        TEST(requests_of_another_time_are_ignored),
        TEST(a_second_request_ends_the_first),
        TEST(strangers_and_unknown_methods_are_refused),
        TEST(starts_that_we_cannot_do_are_cancelled),
        TEST(a_message_out_of_turn_cancels),
        TEST(a_key_of_low_order_cancels),
        TEST(another_person_cannot_go_on_with_it),
        TEST(automatic_answers_verify_nobody),
        TEST(switched_off_means_no),
        TEST(a_request_to_somebody_else_in_the_room_is_not_ours),
        TEST(a_request_of_somebody_unknown_waits_for_their_devices),
        TEST(a_flood_of_requests_has_an_end),
    };
    return cmocka_run_group_tests_name("matrix_crypto_sas", tests, NULL, NULL);
}
