/* Attackers with a client of their own making: they have accounts, real keys, and no manners. */
#include "log.h"
#include "matrix_world.h"
#include "olm.h"

static struct world *w;
static struct peer *alice, *bob;

static int two(void **state)
{
    (void)state;
    log_set_level(LOG_ERROR);
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

/* ---- an attacker: a device that no list names ---- */

struct mallory {
    const char *user;
    struct ratchet_account *account;
    struct ratchet_session *channel;
};

static const uint8_t own_key[KEY_BYTES] = { 7 };

static void any_bytes(void *hook, void *out, size_t n)
{
    (void)hook;
    digest_random(out, n);
}

static const struct ratchet_env env = { .pickle_key = own_key, .random = any_bytes };

static void mallory_clear(struct mallory *m)
{
    ratchet_account_free(m->account);
    ratchet_session_free(m->channel);
    *m = (struct mallory){ 0 };
}

static const char *key_of(const struct peer *p, const char *kind)
{
    autofree char *name = xasprintf("%s:%s", kind, p->device);
    return text_at(json_get(json_get(w->devices, p->user), p->device), "keys", name);
}

/* One that is at the server, or the fallback key; it stays there. */
static const char *one_time_of(const struct peer *p)
{
    autofree char *at = xasprintf("%s %s", p->user, p->device);
    const struct json *keys = json_get(w->one_time, at), *one = json_first(keys);
    return json_str_or(one ? one : json_first(json_get(w->fallback, at)), "key", NULL);
}

static struct mallory mallory_with(const char *user, const struct peer *to, const char *one_time)
{
    struct mallory m = { .user = user, .account = ratchet_account_new(&env) };
    assert_int_equal(ratchet_session_outbound(&m.channel, m.account, key_of(to, "curve25519"), one_time, &env),
                     RATCHET_OK);
    return m;
}

/* With a key that the server gives to nobody else, as servers do. */
static struct mallory mallory_new(const char *user, const struct peer *to)
{
    autofree char *at = xasprintf("%s %s", to->user, to->device);
    autofree char *key = xstrdup(one_time_of(to));
    const struct json *keys = json_get(w->one_time, at);
    if (json_len(keys) > 0)
        json_set(w->one_time, at, without(keys, json_key(json_first(keys)), NULL));
    return mallory_with(user, to, key);
}

/* As an honest device would say it, but for what `over` says otherwise. */
static void whisper(struct mallory *m, struct peer *to, const char *type, const struct json *content,
                    const struct json *over)
{
    autojson struct json *clear = json_new_object(), *sealed = json_new_object();
    json_set_str(clear, "type", type);
    json_set(clear, "content", json_dup(content));
    json_set_str(clear, "sender", m->user);
    json_set_str(clear, "recipient", to->user);
    json_set_str(child(clear, "recipient_keys"), "ed25519", key_of(to, "ed25519"));
    json_set_str(child(clear, "keys"), "ed25519", ratchet_account_ed25519(m->account));
    merge_into(clear, over);
    autofree char *text = json_line(clear), *body = NULL;
    int kind = 0;
    ratchet_session_encrypt(m->channel, text, strlen(text), &env, &kind, &body);
    json_set_str(sealed, "algorithm", "m.olm.v1.curve25519-aes-sha2");
    json_set_str(sealed, "sender_key", ratchet_account_curve25519(m->account));
    struct json *mine = child(child(sealed, "ciphertext"), key_of(to, "curve25519"));
    json_set_int(mine, "type", kind);
    json_set_str(mine, "body", body);
    deliver(to, m->user, "m.room.encrypted", sealed);
}

static struct json *room_key(const char *room, struct ratchet_out *o)
{
    struct json *key = json_new_object();
    autofree char *text = ratchet_out_key(o);
    json_set_str(key, "algorithm", "m.megolm.v1.aes-sha2");
    json_set_str(key, "room_id", room);
    json_set_str(key, "session_id", ratchet_out_id(o));
    json_set_str(key, "session_key", text);
    return key;
}

static int64_t in_status(struct peer *p, const char *part, const char *name)
{
    autojson struct json *s = NULL;
    OK(crypto_status(p->c, &s, &e));
    return json_int_or(json_get(s, part), name, -1);
}

/* ---- floods ---- */

static void a_flood_of_channels_from_keys_that_nobody_has_is_cut_off(void **state)
{
    (void)state;
    autojson struct json *nothing = json_new_object();
    const int64_t before = in_status(bob, "sessions", "olm");
    for (int i = 0; i < 120; i++) {
        struct mallory m = mallory_new("@eve:x", bob);
        whisper(&m, bob, "m.dummy", nothing, NULL);
        mallory_clear(&m);
        peer_sync(bob);
    }
    assert_in_range(in_status(bob, "sessions", "olm") - before, 1, 50);
    assert_reaches(alice, bob, "others are heard");
    w->now_ms += 2 * (int64_t)3600000;
    struct mallory m = mallory_new("@eve:x", bob);
    const int64_t then = in_status(bob, "sessions", "olm");
    whisper(&m, bob, "m.dummy", nothing, NULL);
    peer_sync(bob);
    assert_int_equal(in_status(bob, "sessions", "olm"), then + 1); /* and so is she, an hour later */
    mallory_clear(&m);
}

static void a_one_time_key_works_once(void **state)
{
    (void)state;
    autojson struct json *nothing = json_new_object();
    const char *key = one_time_of(bob); /* the server gave it to both */
    struct mallory first = mallory_with("@eve:x", bob, key), second = mallory_with("@eve:x", bob, key);
    const int64_t before = in_status(bob, "sessions", "olm");
    whisper(&first, bob, "m.dummy", nothing, NULL);
    whisper(&second, bob, "m.dummy", nothing, NULL);
    peer_sync(bob);
    assert_int_equal(in_status(bob, "sessions", "olm"), before + 1);
    mallory_clear(&first);
    mallory_clear(&second);
}

static void large_messages_to_the_device_cost_nothing(void **state)
{
    (void)state;
    AUTO(str_clear) struct str pad = STR_INIT(1 << 20);
    autojson struct json *content = json_new_object();
    struct mallory m = mallory_new("@eve:x", bob);
    for (int i = 0; i < 20000; i++)
        str_puts(&pad, "0123456789");
    json_set_str(content, "pad", str_peek(&pad));
    const int64_t before = in_status(bob, "sessions", "olm");
    whisper(&m, bob, "m.dummy", content, NULL);
    peer_sync(bob);
    assert_int_equal(in_status(bob, "sessions", "olm"), before);
    assert_reaches(alice, bob, "still there");
    mallory_clear(&m);
}

/* ---- forgeries ---- */

static void a_room_key_is_its_senders_and_nobody_elses(void **state)
{
    (void)state;
    static const struct {
        const char *member, *value;
    } lies[] = { { "sender", "@alice:x" }, { "recipient", "@alice:x" }, { "keys", NULL }, { "recipient_keys", NULL } };
    const int64_t before = in_status(bob, "sessions", "in");
    for (size_t i = 0; i < countof(lies); i++) {
        struct mallory m = mallory_new("@eve:x", bob);
        struct ratchet_out *o = ratchet_out_new(&env);
        autojson struct json *key = room_key(ROOM, o), *over = json_new_object();
        if (lies[i].value)
            json_set_str(over, lies[i].member, lies[i].value);
        else
            json_set_str(child(over, lies[i].member), "ed25519",
                         same(lies[i].member, "keys") ? "short" : key_of(alice, "ed25519"));
        whisper(&m, bob, "m.room_key", key, over);
        peer_sync(bob);
        ratchet_out_free(o);
        mallory_clear(&m);
    }
    assert_int_equal(in_status(bob, "sessions", "in"), before);
}

/* Device keys in a message that are another's, or that nobody signed. */
static void borrowed_device_keys_are_refused(void **state)
{
    (void)state;
    struct mallory m = mallory_new("@eve:x", bob);
    struct ratchet_out *o = ratchet_out_new(&env);
    autojson struct json *key = room_key(ROOM, o), *over = json_new_object();
    const int64_t before = in_status(bob, "sessions", "in");
    json_set(over, "sender_device_keys", json_dup(json_get(json_get(w->devices, "@alice:x"), "ADEV")));
    whisper(&m, bob, "m.room_key", key, over);
    struct json *unsigned_keys = child(over, "sender_device_keys");
    json_set_str(unsigned_keys, "user_id", "@eve:x");
    whisper(&m, bob, "m.room_key", key, over);
    peer_sync(bob);
    assert_int_equal(in_status(bob, "sessions", "in"), before);
    ratchet_out_free(o);
    mallory_clear(&m);
}

/* Eve got alice's room key as a member: she can't make it hers, nor write as alice with it. */
static void a_room_key_that_somebody_else_claims_stays_whose_it_was(void **state)
{
    (void)state;
    struct mallory m = mallory_new("@eve:x", bob);
    struct ratchet_out *o = ratchet_out_new(&env);
    autojson struct json *key = room_key(ROOM, o), *nothing = json_new_object();
    struct mallory honest = mallory_new("@carl:x", bob);
    whisper(&honest, bob, "m.room_key", key, nothing);
    peer_sync(bob);
    const int64_t before = in_status(bob, "sessions", "in");
    whisper(&m, bob, "m.room_key", key, nothing);
    peer_sync(bob);
    assert_int_equal(in_status(bob, "sessions", "in"), before);
    static const char text[] = "{\"type\":\"m.room.message\",\"content\":{},\"room_id\":\"" ROOM "\"}";
    for (int i = 0; i < 2; i++) {
        autofree char *cipher = ratchet_out_encrypt(o, text, strlen(text));
        struct json *content = json_new_object();
        json_set_str(content, "algorithm", "m.megolm.v1.aes-sha2");
        json_set_str(content, "session_id", ratchet_out_id(o));
        json_set_str(content, "ciphertext", cipher);
        autojson struct json *ev = event_of(w, bob, content);
        json_set_str(ev, "sender", i ? "@carl:x" : "@eve:x");
        assert_string_equal(crypto_utd_word(hear(bob, ev, NULL, NULL)), i ? "clear" : "forged");
    }
    ratchet_out_free(o);
    mallory_clear(&m);
    mallory_clear(&honest);
}

static void keys_of_another_algorithm_or_nobody_asked_for_are_ignored(void **state)
{
    (void)state;
    static const char *const types[] = { "m.room_key", "m.forwarded_room_key", "m.room_key_bundle", "m.secret.send" };
    struct mallory m = mallory_new("@eve:x", bob);
    struct ratchet_out *o = ratchet_out_new(&env);
    autojson struct json *key = room_key(ROOM, o);
    const int64_t before = in_status(bob, "sessions", "in");
    for (size_t i = 0; i < countof(types); i++) {
        autojson struct json *bad = json_dup(key);
        if (i == 0)
            json_set_str(bad, "algorithm", "m.megolm.v2.aes-sha2");
        json_set_str(bad, "secret", "AAAA");
        whisper(&m, bob, types[i], bad, NULL);
    }
    peer_sync(bob);
    assert_int_equal(in_status(bob, "sessions", "in"), before);
    assert_reaches(alice, bob, "still there");
    ratchet_out_free(o);
    mallory_clear(&m);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, two, end)
    const struct CMUnitTest tests[] = {
        TEST(a_flood_of_channels_from_keys_that_nobody_has_is_cut_off),
        TEST(a_one_time_key_works_once),
        TEST(large_messages_to_the_device_cost_nothing),
        TEST(a_room_key_is_its_senders_and_nobody_elses),
        TEST(borrowed_device_keys_are_refused),
        TEST(a_room_key_that_somebody_else_claims_stays_whose_it_was),
        TEST(keys_of_another_algorithm_or_nobody_asked_for_are_ignored),
    };
    return cmocka_run_group_tests_name("matrix_crypto_attack", tests, NULL, NULL);
}
