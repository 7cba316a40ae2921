/* Others' devices, one-time keys, and channels that break. */
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

/* ---- device lists ---- */

static void changed_keys_under_a_known_device_are_refused(void **state)
{
    (void)state;
    assert_reaches(alice, bob, "before");
    struct world *other = world_new();
    struct peer *impostor = peer_new(other, "@bob:x", "BDEV");
    json_set(child(w->devices, "@bob:x"), "BDEV", json_dup(json_get(json_get(other->devices, "@bob:x"), "BDEV")));
    tell_changed(w, "@bob:x");
    peer_sync(alice);
    autojson struct json *ev = say(alice, "still to bob");
    assert_hears(bob, ev, "still to bob");
    assert_deaf(impostor, ev, "no_key");
    world_free(other);
}

static void a_failing_query_keeps_the_devices_and_others_are_served(void **state)
{
    (void)state;
    assert_reaches(alice, bob, "before");
    tell_changed(w, "@bob:x");
    w->fail_path = "keys/query";
    w->fail_status = 500;
    w->fail_n = -1;
    peer_sync(alice);
    autojson struct json *content = NULL;
    assert_int_equal(try_encrypt(alice, "x", &content), CRYPTO_WAIT);
    w->now_ms += 10001;
    peer_tick(alice);
    assert_int_equal(try_encrypt(alice, "after ten seconds", &content), CRYPTO_READY);
    autojson struct json *ev = event_of(w, alice, take(content));
    assert_hears(bob, ev, "after ten seconds");
}

static void a_change_during_a_query_asks_again(void **state)
{
    (void)state;
    struct crypto_request r;
    tell_changed(w, "@bob:x");
    autojson struct json *sync = peer_sync_json(alice);
    peer_forget_inbox(alice);
    OK(crypto_sync(alice->c, sync, &e));
    assert_true(crypto_next_request(alice->c, &r));
    assert_string_equal(r.path, API "/keys/query");
    autojson struct json *body = NULL, *out = NULL;
    OK(json_parse(&body, r.body, strlen(r.body), WORLD_JSON, &e));
    const int64_t id = r.id;
    OK(crypto_sync(alice->c, sync, &e));
    assert_false(crypto_next_request(alice->c, &r));
    assert_int_equal(serve_query(w, body, &out), 200);
    OK(crypto_answered(alice->c, id, 200, out, 0, &e));
    assert_true(crypto_next_request(alice->c, &r));
    assert_string_equal(r.path, API "/keys/query");
    peer_answer(alice, &r);
}

static void stale_lists_survive_a_restart(void **state)
{
    (void)state;
    tell_changed(w, "@bob:x");
    autojson struct json *sync = peer_sync_json(alice);
    peer_forget_inbox(alice);
    OK(crypto_sync(alice->c, sync, &e));
    peer_restart(alice);
    const int before = log_count(w, "ADEV POST " API "/keys/query");
    peer_pump(alice);
    assert_int_equal(log_count(w, "ADEV POST " API "/keys/query"), before + 2); /* itself at start, then bob */
}

/* ---- one-time keys ---- */

static size_t keys_at_server(const struct peer *p)
{
    autofree char *at = xasprintf("%s %s", p->user, p->device);
    return json_len(json_get(w->one_time, at));
}

static void fifty_one_time_keys_are_kept_at_the_server(void **state)
{
    (void)state;
    assert_int_equal(keys_at_server(alice), 50);
    autojson struct json *out = json_new_object();
    for (int i = 0; i < 20; i++)
        claim_one(w, "@alice:x", "ADEV", out);
    assert_int_equal(keys_at_server(alice), 30);
    w->now_ms += 11000;
    peer_sync(alice);
    assert_int_equal(keys_at_server(alice), 50);
}

static void a_used_fallback_key_is_replaced_and_still_works(void **state)
{
    (void)state;
    json_set(w->one_time, "@bob:x BDEV", json_new_object());
    autojson struct json *ev = say(alice, "by fallback"); /* claims the fallback key */
    assert_false(json_bool_or(w->unused, "@bob:x BDEV", true));
    w->now_ms += 11000;
    assert_hears(bob, ev, "by fallback");
    peer_sync(bob);
    assert_true(json_bool_or(w->unused, "@bob:x BDEV", false));
    assert_int_equal(keys_at_server(bob), 50);
}

static void an_upload_whose_answer_is_lost_is_repeated_as_it_was(void **state)
{
    (void)state;
    autojson struct json *out = json_new_object();
    for (int i = 0; i < 20; i++)
        claim_one(w, "@alice:x", "ADEV", out);
    w->fail_path = "keys/upload";
    w->fail_after = true;
    w->fail_status = 0;
    w->fail_n = 1;
    w->now_ms += 11000;
    peer_sync(alice);
    peer_restart(alice); /* before it knows */
    w->fail_path = NULL;
    peer_pump(alice);
    w->now_ms += 11000;
    peer_sync(alice);
    assert_int_equal(keys_at_server(alice), 50);
    assert_int_equal(crypto_state(alice->c), CRYPTO_RUNNING);
    assert_int_equal(alice->alarms, 0);
    assert_reaches(bob, alice, "works");
}

static void foreign_keys_under_our_ids_raise_an_alarm_and_no_loop(void **state)
{
    (void)state;
    struct json *mine = child(w->one_time, "@alice:x ADEV");
    for (const struct json *k = json_first(mine); k; k = json_next(k))
        json_set_str(child(mine, json_key(k)), "key", "foreign");
    json_set(w->one_time, "@alice:x ADEV", json_new_object());
    mine = child(w->one_time, "@alice:x ADEV");
    for (int i = 0; i < 60; i++) { /* ids that it will use next: A .. in base64 of a counter */
        uint8_t id[4] = { 0, 0, 0, (uint8_t)(52 + i) };
        AUTO(str_clear) struct str name = STR_INIT(64);
        str_puts(&name, "signed_curve25519:");
        b64_add(&name, id, sizeof(id));
        json_set(mine, str_peek(&name), obj_of("key", json_new_string("foreign")));
    }
    json_set_int(w->data, "unused", 0);
    w->now_ms += 11000;
    autojson struct json *sync = peer_sync_json(alice);
    json_set_int(child(sync, "device_one_time_keys_count"), "signed_curve25519", 0);
    const int before = alice->uploads;
    OK(crypto_sync(alice->c, sync, &e));
    peer_pump(alice);
    assert_int_equal(alice->uploads, before + 1);
    assert_int_equal(alice->alarms, 1);
    assert_int_equal(crypto_state(alice->c), CRYPTO_RUNNING);
    w->now_ms += 20000;
    peer_tick(alice);
    assert_int_equal(crypto_state(alice->c), CRYPTO_RUNNING);
    assert_true(alice->uploads > before + 1);
}

static void a_missing_count_is_asked_for(void **state)
{
    (void)state;
    autojson struct json *out = json_new_object();
    for (int i = 0; i < 50; i++)
        claim_one(w, "@alice:x", "ADEV", out);
    w->now_ms += 61000;
    autojson struct json *sync = json_new_object();
    OK(crypto_sync(alice->c, sync, &e));
    peer_pump(alice);
    assert_int_equal(keys_at_server(alice), 50);
    const int before = alice->uploads;
    OK(crypto_sync(alice->c, sync, &e));
    peer_pump(alice);
    assert_int_equal(alice->uploads, before);
}

static void without_a_one_time_key_others_are_told_once_and_served_later(void **state)
{
    (void)state;
    json_set(w->one_time, "@bob:x BDEV", json_new_object());
    json_set(w->fallback, "@bob:x BDEV", json_new_object());
    autojson struct json *one = say(alice, "one");
    json_free(say(alice, "two"));
    peer_pump(alice);
    assert_int_equal(json_len(bob->inbox), 1);
    assert_string_equal(text_at(json_first(bob->inbox), "content", "code"), "m.no_olm");
    peer_forget_inbox(bob);
    w->now_ms += 20000;
    peer_sync(bob); /* fills up */
    peer_tick(alice);
    autojson struct json *three = say(alice, "three");
    assert_hears(bob, three, "three");
    assert_deaf(bob, one, "too_early");
}

static void a_badly_signed_one_time_key_is_not_used(void **state)
{
    (void)state;
    struct json *keys = child(w->one_time, "@bob:x BDEV");
    for (const struct json *k = json_first(keys); k; k = json_next(k))
        json_set_str(child(keys, json_key(k)), "key", "B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw");
    json_free(say(alice, "x"));
    peer_pump(alice);
    assert_string_equal(text_at(json_first(bob->inbox), "content", "code"), "m.no_olm");
}

/* ---- broken channels ---- */

static void a_redelivered_message_is_dropped_in_silence(void **state)
{
    (void)state;
    autojson struct json *ev = say(alice, "x");
    autojson struct json *first = peer_sync_json(bob);
    OK(crypto_sync(bob->c, first, &e));
    const int claims = log_count(w, "keys/claim");
    OK(crypto_sync(bob->c, first, &e));
    peer_pump(bob);
    assert_int_equal(log_count(w, "keys/claim"), claims);
    assert_hears(bob, ev, "x");
}

static void a_broken_channel_is_made_anew_once_an_hour(void **state)
{
    (void)state;
    assert_reaches(alice, bob, "one");
    assert_reaches(bob, alice, "two");
    /* Bob loses his sessions: an old copy of his store, as far as Olm is concerned. */
    OK(store_unkeep(bob->store, &(struct kept){ "matrix", "e2ee_olm", NULL }, &e));
    peer_restart(bob);
    peer_pump(bob);
    OK(crypto_room_rotate(alice->c, ROOM, &e));
    autojson struct json *lost = say(alice, "lost");
    const int claims = log_count(w, "BDEV POST " API "/keys/claim");
    assert_deaf(bob, lost, "no_key");
    assert_int_equal(log_count(w, "BDEV POST " API "/keys/claim"), claims + 1);
    peer_sync(alice); /* hears the m.dummy: the channel is new, so the key goes out again */
    autojson struct json *found = say(alice, "found");
    assert_hears(bob, found, "found");
    assert_deaf(bob, lost, "too_early");
}

static void a_stranger_who_sends_rubbish_costs_one_query(void **state)
{
    (void)state;
    autojson struct json *content = json_new_object();
    json_set_str(content, "algorithm", "m.olm.v1.curve25519-aes-sha2");
    json_set_str(content, "sender_key", "B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw");
    autojson struct json *status = NULL, *device = json_dup(json_get(json_get(w->devices, "@bob:x"), "BDEV"));
    struct json *mine = child(child(content, "ciphertext"), text_at(device, "keys", "curve25519:BDEV"));
    json_set_int(mine, "type", 1);
    json_set_str(mine, "body", "AwogZ13VdO13iTELPS52gfN5C0ZsdzsVIf7PNld5WDcepS8QACIQAvitNj2zQrjakH78a8hWKs47zKooDCfw");
    deliver(bob, "@nobody:x", "m.room.encrypted", content);
    peer_sync(bob);
    assert_int_equal(crypto_state(bob->c), CRYPTO_RUNNING);
    OK(crypto_status(bob->c, &status, &e));
    assert_string_equal(json_str_or(status, "state", ""), "running");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, two, end)
    const struct CMUnitTest tests[] = {
        TEST(changed_keys_under_a_known_device_are_refused),
        TEST(a_failing_query_keeps_the_devices_and_others_are_served),
        TEST(a_change_during_a_query_asks_again),
        TEST(stale_lists_survive_a_restart),
        TEST(fifty_one_time_keys_are_kept_at_the_server),
        TEST(a_used_fallback_key_is_replaced_and_still_works),
        TEST(an_upload_whose_answer_is_lost_is_repeated_as_it_was),
        TEST(foreign_keys_under_our_ids_raise_an_alarm_and_no_loop),
        TEST(a_missing_count_is_asked_for),
        TEST(without_a_one_time_key_others_are_told_once_and_served_later),
        TEST(a_badly_signed_one_time_key_is_not_used),
        TEST(a_redelivered_message_is_dropped_in_silence),
        TEST(a_broken_channel_is_made_anew_once_an_hour),
        TEST(a_stranger_who_sends_rubbish_costs_one_query),
    };
    return cmocka_run_group_tests_name("matrix_crypto_keys", tests, NULL, NULL);
}
