/* The backup of room keys at the server. */
#include "matrix_world.h"

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

static struct peer *with_backup(const char *device, const char *recovery)
{
    struct peer *p = peer_make(w, "@bot:x", device);
    p->cfg.backup = true;
    p->cfg.recovery_key = recovery;
    p->cfg.recipients = CRYPTO_ALL;
    peer_open(p);
    peer_pump(p);
    return p;
}

static const struct json *backed_up(void)
{
    return json_get(json_get(json_get(w->backup, "@bot:x"), "rooms"), ROOM);
}

static void room_keys_go_to_the_backup_and_come_back(void **state)
{
    (void)state;
    struct peer *p = with_backup("DEV", NULL), *alice = peer_new(w, "@alice:x", "ADEV");
    all_join(w);
    autojson struct json *ev = say(alice, "remember me");
    assert_hears(p, ev, "remember me");
    json_free(say(p, "mine"));
    peer_pump(p);
    assert_int_equal(json_len(backed_up()), 2);
    autofree char *recovery = NULL;
    OK(crypto_recovery_key(p->c, &recovery, &e));
    peer_close(p);
    struct peer *next = with_backup("NEW", recovery);
    assert_int_equal(next->alarms, 0);
    assert_int_equal(hear(next, ev, NULL, NULL), CRYPTO_NO_KEY);
    w->now_ms += 3000;
    peer_tick(next);
    assert_int_equal(next->keys_came, 1);
    autofree char *body = NULL;
    enum crypto_trust trust = CRYPTO_TRUST_VERIFIED;
    assert_int_equal(hear(next, ev, &body, &trust), CRYPTO_CLEAR);
    assert_string_equal(body, "remember me");
    assert_int_equal(trust, CRYPTO_TRUST_UNKNOWN); /* a backup proves nothing about who sent it */
}

static void what_came_before_the_backup_was_there_is_looked_up_then(void **state)
{
    (void)state;
    struct peer *p = with_backup("DEV", NULL), *alice = peer_new(w, "@alice:x", "ADEV");
    all_join(w);
    autojson struct json *ev = say(alice, "early");
    assert_hears(p, ev, "early");
    peer_pump(p);
    OK(store_unkeep(p->store, &(struct kept){ "matrix", "e2ee_in", NULL }, &e)); /* its keys are lost here */
    peer_restart(p);
    struct crypto_request r;
    while (crypto_state(p->c) != CRYPTO_RUNNING && crypto_next_request(p->c, &r))
        peer_answer(p, &r);
    p->keys_came = 0;
    assert_int_equal(hear(p, ev, NULL, NULL), CRYPTO_NO_KEY);
    peer_pump(p);
    w->now_ms += 3000;
    assert_true(crypto_wake_ms(p->c) <= w->now_ms);
    peer_tick(p);
    assert_int_equal(p->keys_came, 1);
    assert_int_equal(hear(p, ev, NULL, NULL), CRYPTO_CLEAR);
    assert_true(crypto_wake_ms(p->c) > w->now_ms);
}

static void a_backup_version_that_changed_is_read_again(void **state)
{
    (void)state;
    struct peer *p = with_backup("DEV", NULL), *alice = peer_new(w, "@alice:x", "ADEV");
    all_join(w);
    for (int i = 0; i < 250; i++) { /* more than go in one request */
        OK(crypto_room_rotate(alice->c, ROOM, &e));
        autojson struct json *ev = say(alice, "x");
        assert_hears(p, ev, "x");
    }
    peer_pump(p);
    assert_int_equal(json_len(backed_up()), 250);
    json_set_str(child(w->backup, "@bot:x"), "version", "7");
    json_set(child(w->backup, "@bot:x"), "rooms", json_new_object());
    OK(crypto_room_rotate(alice->c, ROOM, &e));
    autojson struct json *next = say(alice, "y");
    assert_hears(p, next, "y");
    peer_pump(p);
    assert_int_equal(json_len(backed_up()), 251); /* with what the old one had */
}

static void a_backup_that_nobody_trusted_signed_is_left_alone(void **state)
{
    (void)state;
    struct json *b = child(w->backup, "@bot:x"), *made = child(b, "made");
    json_set_str(b, "version", "1");
    json_set_str(made, "algorithm", "m.megolm_backup.v1.curve25519-aes-sha2");
    json_set_str(child(made, "auth_data"), "public_key", "B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw");
    struct peer *p = with_backup("DEV", NULL);
    assert_non_null(strstr(p->alarm, "did not sign"));
    assert_int_equal(json_len(backed_up()), 0);
}

static void a_backup_that_was_switched_off_stays_off(void **state)
{
    (void)state;
    json_set(w->data, API "/user/%40bot%3Ax/account_data/m.key_backup", obj_of("enabled", json_new_bool(false)));
    struct peer *p = with_backup("DEV", NULL);
    assert_int_equal(p->alarms, 0);
    assert_int_equal(log_count(w, "room_keys/version"), 0);
}

static void a_new_identity_has_a_new_backup_with_all_keys(void **state)
{
    (void)state;
    struct peer *p = with_backup("DEV", NULL), *alice = peer_new(w, "@alice:x", "ADEV");
    all_join(w);
    autojson struct json *ev = say(alice, "remember me");
    assert_hears(p, ev, "remember me");
    peer_pump(p);
    const struct json *backup = json_get(w->backup, "@bot:x");
    autofree char *before = xstrdup(json_str_or(json_get(json_get(backup, "made"), "auth_data"), "public_key", ""));
    p->cfg.password = "secret";
    peer_restart(p);
    peer_pump(p);
    OK(crypto_reset_identity(p->c, &e));
    peer_pump(p);
    assert_string_not_equal(json_str_or(json_get(json_get(backup, "made"), "auth_data"), "public_key", ""), before);
    assert_int_equal(p->alarms, 0);
    assert_int_equal(json_len(backed_up()), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, one_world, end)
    const struct CMUnitTest tests[] = {
        TEST(room_keys_go_to_the_backup_and_come_back),
        TEST(what_came_before_the_backup_was_there_is_looked_up_then),
        TEST(a_backup_version_that_changed_is_read_again),
        TEST(a_backup_that_nobody_trusted_signed_is_left_alone),
        TEST(a_backup_that_was_switched_off_stays_off),
        TEST(a_new_identity_has_a_new_backup_with_all_keys),
    };
    return cmocka_run_group_tests_name("matrix_crypto_backup", tests, NULL, NULL);
}
