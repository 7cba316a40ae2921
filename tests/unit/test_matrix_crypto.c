#include "matrix_world.h"

static struct world *w;
static struct peer *alice, *bob;

static int two(void **state)
{
    (void)state;
    w = world_new();
    alice = peer_new(w, "@alice:x", "ADEV");
    bob = peer_new(w, "@bob:x", "BDEV");
    all_join(w);
    return 0;
}

static int end(void **state)
{
    (void)state;
    world_free(w);
    return 0;
}

static void people_understand_each_other(void **state)
{
    (void)state;
    assert_reaches(alice, bob, "hello");
    assert_reaches(bob, alice, "hello yourself");
    assert_reaches(alice, bob, "how are you?");
    autojson struct json *ev = say(alice, "and I understand myself");
    assert_hears(alice, ev, "and I understand myself");
}

static void a_device_that_its_owner_signed_is_trusted(void **state)
{
    (void)state;
    enum crypto_trust trust = CRYPTO_TRUST_UNKNOWN;
    autojson struct json *ev = say(alice, "x");
    peer_sync(bob);
    assert_int_equal(hear(bob, ev, NULL, &trust), CRYPTO_CLEAR);
    assert_int_equal(trust, CRYPTO_TRUST_SIGNED);
    OK(crypto_verify_user(bob->c, "@alice:x", true, &e));
    assert_int_equal(hear(bob, ev, NULL, &trust), CRYPTO_CLEAR);
    assert_int_equal(trust, CRYPTO_TRUST_VERIFIED);
}

static void a_message_is_never_ready_before_its_key_is_at_the_server(void **state)
{
    (void)state;
    autojson struct json *content = NULL;
    w->fail_path = "sendToDevice";
    w->fail_status = 500;
    w->fail_n = -1;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(try_encrypt(alice, "x", &content), CRYPTO_WAIT);
        peer_pump(alice);
        w->now_ms += 60000;
        peer_tick(alice);
    }
    w->fail_path = NULL;
    w->now_ms += 60000;
    const int before = alice->room_ready;
    peer_tick(alice);
    assert_true(alice->room_ready > before);
    assert_reaches(alice, bob, "at last");
}

static void a_lost_answer_repeats_the_same_transaction(void **state)
{
    (void)state;
    autojson struct json *content = NULL;
    w->fail_path = "sendToDevice";
    w->fail_after = true;
    w->fail_status = 0;
    w->fail_n = 1;
    for (int i = 0; i < 2; i++) { /* a one-time key, then the room key */
        assert_int_equal(try_encrypt(alice, "x", &content), CRYPTO_WAIT);
        peer_pump(alice);
    }
    w->now_ms += 60000;
    peer_tick(alice);
    assert_int_equal(json_len(bob->inbox), 1);
    assert_reaches(alice, bob, "once");
}

static void a_restart_keeps_the_room_key_and_reuses_no_index(void **state)
{
    (void)state;
    autojson struct json *one = say(alice, "one");
    peer_restart(alice);
    peer_pump(alice);
    peer_restart(bob);
    peer_pump(bob);
    autojson struct json *two_ = say(alice, "two");
    assert_string_equal(text_at(one, "content", "session_id"), text_at(two_, "content", "session_id"));
    assert_hears(bob, one, "one");
    assert_hears(bob, two_, "two");
    assert_int_equal(log_count(w, "ADEV PUT " API "/sendToDevice"), 1);
}

static void a_key_comes_late_and_opens_what_waited(void **state)
{
    (void)state;
    autojson struct json *ev = say(alice, "early");
    const int before = bob->keys_came;
    assert_int_equal(hear(bob, ev, NULL, NULL), CRYPTO_NO_KEY);
    peer_sync(bob);
    assert_int_equal(bob->keys_came, before + 1);
    assert_hears(bob, ev, "early");
}

/* ---- replays and forgeries ---- */

static void a_replayed_message_is_dropped_and_a_reread_is_not(void **state)
{
    (void)state;
    autojson struct json *ev = say(alice, "pay 10");
    assert_hears(bob, ev, "pay 10");
    assert_hears(bob, ev, "pay 10");
    autojson struct json *again = json_dup(ev);
    json_set_str(again, "event_id", "$other");
    assert_deaf(bob, again, "replayed");
    autojson struct json *moved = json_dup(ev);
    json_set_int(moved, "origin_server_ts", 5);
    assert_deaf(bob, moved, "replayed");
    peer_restart(bob);
    peer_pump(bob);
    assert_deaf(bob, again, "replayed");
    assert_hears(bob, ev, "pay 10");
}

static void a_forged_sender_is_refused(void **state)
{
    (void)state;
    autojson struct json *ev = say(alice, "x");
    autojson struct json *forged = json_dup(ev);
    json_set_str(forged, "sender", "@mallory:x");
    assert_deaf(bob, forged, "forged");
    assert_hears(bob, ev, "x");
}

static void a_message_of_another_room_is_refused(void **state)
{
    (void)state;
    autojson struct json *ev = say(alice, "x");
    AUTO(crypto_message_clear) struct crypto_message m = { 0 };
    peer_sync(bob);
    OK(crypto_decrypt(bob->c, "!other:x", ev, &m, &e));
    assert_int_equal(m.utd, CRYPTO_NO_KEY);
}

static void the_relation_is_that_of_the_clear_part(void **state)
{
    (void)state;
    autojson struct json *content = json_new_object(), *out = NULL;
    enum crypto_ready ready = CRYPTO_WAIT;
    json_set_str(content, "body", "b");
    json_set_str(child(content, "m.relates_to"), "event_id", "$root");
    for (int i = 0; i < 5 && ready != CRYPTO_READY; i++) {
        OK(crypto_encrypt(alice->c, ROOM, "m.room.message", content, &ready, &out, &e));
        peer_pump(alice);
    }
    assert_string_equal(text_at(out, "m.relates_to", "event_id"), "$root");
    json_set_str(child(out, "m.relates_to"), "event_id", "$moved");
    autojson struct json *ev = event_of(w, alice, take(out));
    AUTO(crypto_message_clear) struct crypto_message m = { 0 };
    peer_sync(bob);
    OK(crypto_decrypt(bob->c, ROOM, ev, &m, &e));
    assert_string_equal(text_at(m.content, "m.relates_to", "event_id"), "$moved");
}

static void room_keys_in_clear_or_forwarded_unasked_are_ignored(void **state)
{
    (void)state;
    autojson struct json *key = json_new_object();
    json_set_str(key, "algorithm", "m.megolm.v1.aes-sha2");
    json_set_str(key, "room_id", ROOM);
    json_set_str(key, "session_id", "zRSzf5VulTGU/3+3Oz2B3MVh1hp1OAlLfD4aZD7l86o");
    const int before = bob->keys_came;
    deliver(bob, "@alice:x", "m.room_key", key);
    deliver(bob, "@alice:x", "m.forwarded_room_key", key);
    deliver(bob, "@alice:x", "m.secret.send", key);
    peer_sync(bob);
    assert_int_equal(bob->keys_came, before);
}

/* ---- rotation ---- */

static const char *session_of(const struct json *ev)
{
    return text_at(ev, "content", "session_id");
}

static void assert_rotates(const char *what, bool rotates)
{
    autojson struct json *ev = say(alice, what);
    assert_int_equal(strcmp(session_of(ev), json_text(json_get(w->data, "last"))) != 0, rotates);
    json_set_str(w->data, "last", session_of(ev));
    assert_hears(bob, ev, what);
}

static void keys_are_replaced_when_they_have_to_be(void **state)
{
    (void)state;
    autojson struct json *first = say(alice, "first"), *settings = json_new_object();
    json_set_str(w->data, "last", session_of(first));
    assert_rotates("nothing happened", false);
    peer_restart(alice);
    peer_pump(alice);
    assert_rotates("after a restart", false);
    OK(crypto_room_member(alice->c, ROOM, "@carol:x", true, &e));
    peer_pump(alice);
    assert_rotates("somebody came", false);
    OK(crypto_room_member(alice->c, ROOM, "@carol:x", false, &e));
    assert_rotates("somebody without devices left", false);
    OK(crypto_room_history(alice->c, ROOM, "shared", &e));
    assert_rotates("history became visible", true);
    OK(crypto_room_history(alice->c, ROOM, "world_readable", &e));
    assert_rotates("as visible as before", false);
    OK(crypto_room_history(alice->c, ROOM, "joined", &e));
    assert_rotates("history became hidden", true);
    OK(crypto_room_rotate(alice->c, ROOM, &e));
    assert_rotates("asked for", true);
    json_set_str(settings, "algorithm", "m.megolm.v1.aes-sha2");
    json_set_int(settings, "rotation_period_msgs", 3);
    OK(crypto_room_encrypted(alice->c, ROOM, settings, &e));
    assert_rotates("settings changed (1)", true);
    assert_rotates("(2)", false);
    assert_rotates("(3)", false);
    assert_rotates("used up", true);
    w->now_ms += (int64_t)7 * 24 * 3600 * 1000;
    assert_rotates("old", true);
}

static void a_member_who_left_reads_nothing_more(void **state)
{
    (void)state;
    struct peer *carol = peer_new(w, "@carol:x", "CDEV");
    all_join(w);
    autojson struct json *before = say(alice, "before");
    assert_hears(carol, before, "before");
    OK(crypto_room_member(alice->c, ROOM, "@carol:x", false, &e));
    autojson struct json *after = say(alice, "after");
    assert_string_not_equal(session_of(before), session_of(after));
    assert_deaf(carol, after, "no_key");
    assert_hears(bob, after, "after");
}

static void whoever_went_unseen_reads_nothing_more(void **state)
{
    (void)state;
    static const char *const left[] = { "@alice:x", "@bob:x" };
    struct peer *carol = peer_new(w, "@carol:x", "CDEV");
    for (int lost = 0; lost < 2; lost++) {
        autojson struct json *none = NULL;
        all_join(w);
        autojson struct json *before = say(alice, "before");
        assert_hears(carol, before, "before");
        OK(lost ? crypto_sync_lost(alice->c, &e) : crypto_room_gap(alice->c, ROOM, &e));
        assert_int_equal(try_encrypt(alice, "not yet", &none), CRYPTO_NEED_MEMBERS);
        OK(crypto_room_members(alice->c, ROOM, left, countof(left), &e));
        peer_pump(alice);
        autojson struct json *after = say(alice, "after");
        assert_string_not_equal(session_of(before), session_of(after));
        assert_deaf(carol, after, "no_key");
        assert_hears(bob, after, "after");
    }
}

static void a_device_that_was_logged_out_reads_nothing_more(void **state)
{
    (void)state;
    autojson struct json *before = say(alice, "before");
    assert_hears(bob, before, "before");
    json_set(w->devices, "@bob:x", json_new_object());
    tell_changed(w, "@bob:x");
    peer_sync(alice);
    autojson struct json *after = say(alice, "after");
    assert_string_not_equal(session_of(before), session_of(after));
    assert_deaf(bob, after, "no_key");
}

static void a_new_device_reads_from_the_next_message_on(void **state)
{
    (void)state;
    autojson struct json *before = say(alice, "before");
    struct peer *phone = peer_make(w, "@bob:x", "PHONE");
    peer_open(phone);
    peer_pump(phone);
    OK(crypto_room_members(phone->c, ROOM, (const char *const[]){ "@alice:x", "@bob:x" }, 2, &e));
    alice->cfg.recipients = CRYPTO_ALL; /* the phone is not signed by Bob's identity */
    peer_restart(alice);
    peer_pump(alice);
    peer_sync(alice);
    autojson struct json *after = say(alice, "after");
    assert_string_equal(session_of(before), session_of(after));
    assert_hears(phone, after, "after");
    assert_deaf(phone, before, "too_early");
    assert_hears(bob, after, "after");
}

/* ---- policy ---- */

static void an_unsigned_device_gets_no_key_and_a_reason_once(void **state)
{
    (void)state;
    struct peer *phone = peer_make(w, "@bob:x", "PHONE");
    AUTO(crypto_message_clear) struct crypto_message m = { 0 };
    peer_open(phone);
    peer_pump(phone);
    assert_non_null(phone->alarm);
    peer_sync(alice);
    autojson struct json *one = say(alice, "one"), *next = say(alice, "two");
    peer_pump(alice);
    assert_int_equal(json_len(phone->inbox), 1);
    peer_sync(phone);
    OK(crypto_decrypt(phone->c, ROOM, one, &m, &e));
    assert_int_equal(m.utd, CRYPTO_WITHHELD);
    assert_string_equal(m.code, "m.unverified");
    assert_hears(bob, next, "two");
}

static void a_blocked_device_gets_no_key(void **state)
{
    (void)state;
    AUTO(crypto_message_clear) struct crypto_message m = { 0 };
    autojson struct json *before = say(alice, "before");
    assert_hears(bob, before, "before");
    OK(crypto_block_device(alice->c, "@bob:x", "BDEV", true, &e));
    autojson struct json *after = say(alice, "after");
    peer_pump(alice);
    peer_sync(bob);
    OK(crypto_decrypt(bob->c, ROOM, after, &m, &e));
    assert_int_equal(m.utd, CRYPTO_WITHHELD);
    assert_string_equal(m.code, "m.blacklisted");
    OK(crypto_block_device(alice->c, "@bob:x", "BDEV", false, &e));
    assert_reaches(alice, bob, "back");
}

static void people_without_an_identity_are_served_when_that_is_allowed(void **state)
{
    (void)state;
    struct peer *old = peer_make(w, "@old:x", "OLD");
    old->cfg.cross_sign = false;
    peer_open(old);
    peer_pump(old);
    all_join(w);
    assert_reaches(alice, old, "welcome");
    alice->cfg.allow_plain = false;
    peer_restart(alice);
    peer_pump(alice);
    autojson struct json *ev = say(alice, "not you");
    assert_deaf(old, ev, "withheld");
}

static void a_replaced_identity_of_a_verified_person_gets_no_keys(void **state)
{
    (void)state;
    assert_reaches(alice, bob, "before");
    OK(crypto_verify_user(alice->c, "@bob:x", true, &e));
    bob->cfg.password = "secret";
    peer_restart(bob);
    peer_pump(bob);
    OK(crypto_reset_identity(bob->c, &e));
    peer_pump(bob);
    peer_sync(alice);
    assert_non_null(strstr(alice->alarm, "@bob:x"));
    autojson struct json *ev = say(alice, "not to a stranger");
    assert_deaf(bob, ev, "no_key");
    OK(crypto_verify_user(alice->c, "@bob:x", true, &e));
    assert_reaches(alice, bob, "now it is you");
}

static void a_server_that_hides_an_identity_gains_nothing(void **state)
{
    (void)state;
    autojson struct json *phone_keys = NULL;
    struct peer *phone = peer_make(w, "@bob:x", "PHONE");
    peer_open(phone);
    peer_pump(phone);
    (void)phone_keys;
    json_set(w->identity, "@bob:x", json_new_object());
    tell_changed(w, "@bob:x");
    peer_sync(alice);
    autojson struct json *ev = say(alice, "x");
    assert_deaf(phone, ev, "withheld");
    assert_hears(bob, ev, "x");
}

/* ---- what rooms are ---- */

static void encryption_is_never_unlearnt(void **state)
{
    (void)state;
    autojson struct json *other = json_new_object(), *content = json_new_object(), *out = NULL;
    enum crypto_room r = CRYPTO_ROOM_UNKNOWN;
    enum crypto_ready ready;
    struct err bad = { 0 };
    json_set_str(other, "algorithm", "m.nothing");
    OK(crypto_room_encrypted(alice->c, ROOM, other, &e));
    OK(crypto_room_state(alice->c, ROOM, &r, &e));
    assert_int_equal(r, CRYPTO_ROOM_ENCRYPTED);
    OK(crypto_room_left(alice->c, ROOM, &e));
    peer_restart(alice);
    OK(crypto_room_state(alice->c, ROOM, &r, &e));
    assert_int_equal(r, CRYPTO_ROOM_ENCRYPTED);
    OK(crypto_room_encrypted(alice->c, "!new:x", other, &e));
    OK(crypto_room_state(alice->c, "!new:x", &r, &e));
    assert_int_equal(r, CRYPTO_ROOM_UNSUPPORTED);
    assert_int_equal(crypto_encrypt(alice->c, "!new:x", "m.room.message", content, &ready, &out, &bad), -1);
    assert_int_equal(bad.kind, ERR_REFUSED);
    assert_int_equal(crypto_encrypt(alice->c, "!unknown:x", "m.room.message", content, &ready, &out, &bad), -1);
}

static void members_have_to_be_known_first(void **state)
{
    (void)state;
    autojson struct json *content = NULL;
    OK(crypto_room_left(alice->c, ROOM, &e));
    assert_int_equal(try_encrypt(alice, "x", &content), CRYPTO_NEED_MEMBERS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, two, end)
    const struct CMUnitTest tests[] = {
        TEST(people_understand_each_other),
        TEST(a_device_that_its_owner_signed_is_trusted),
        TEST(a_message_is_never_ready_before_its_key_is_at_the_server),
        TEST(a_lost_answer_repeats_the_same_transaction),
        TEST(a_restart_keeps_the_room_key_and_reuses_no_index),
        TEST(a_key_comes_late_and_opens_what_waited),
        TEST(a_replayed_message_is_dropped_and_a_reread_is_not),
        TEST(a_forged_sender_is_refused),
        TEST(a_message_of_another_room_is_refused),
        TEST(the_relation_is_that_of_the_clear_part),
        TEST(room_keys_in_clear_or_forwarded_unasked_are_ignored),
        TEST(keys_are_replaced_when_they_have_to_be),
        TEST(a_member_who_left_reads_nothing_more),
        TEST(whoever_went_unseen_reads_nothing_more),
        TEST(a_device_that_was_logged_out_reads_nothing_more),
        TEST(a_new_device_reads_from_the_next_message_on),
        TEST(an_unsigned_device_gets_no_key_and_a_reason_once),
        TEST(a_blocked_device_gets_no_key),
        TEST(people_without_an_identity_are_served_when_that_is_allowed),
        TEST(a_replaced_identity_of_a_verified_person_gets_no_keys),
        TEST(a_server_that_hides_an_identity_gains_nothing),
        TEST(encryption_is_never_unlearnt),
        TEST(members_have_to_be_known_first),
    };
    return cmocka_run_group_tests_name("matrix_crypto", tests, NULL, NULL);
}
