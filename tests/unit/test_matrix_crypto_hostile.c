/* Real messages and answers, each of them changed in every place: nothing changed is believed, and the real one works afterwards. */
#include "log.h"
#include "matrix_world.h"

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

/* ---- changes: at the nth place of a tree, in one of several ways ---- */

enum {
    CHANGE_DROP,
    CHANGE_NULL,
    CHANGE_NUMBER,
    CHANGE_TEXT,
    CHANGE_EMPTY,
    CHANGE_ARRAY,
    CHANGE_OBJECT,
    CHANGE_BOOL,
    CHANGE_FLIP,
    CHANGE_LONG,
    CHANGES
};

static struct json *flipped(const struct json *v)
{
    const char *text = json_text(v);
    if (!text || !*text)
        return json_new_string("x");
    autofree char *copy = xstrdup(text);
    const size_t at = strlen(copy) / 2;
    copy[at] = copy[at] == 'A' ? 'B' : 'A';
    return json_new_string(copy);
}

static struct json *changed(const struct json *v, int how)
{
    AUTO(str_clear) struct str text = STR_INIT(1 << 20);
    switch (how) {
    case CHANGE_NULL: return json_new_null();
    case CHANGE_NUMBER: return json_new_number(-1e300);
    case CHANGE_TEXT: return json_new_string("AAAA");
    case CHANGE_EMPTY: return json_new_string("");
    case CHANGE_ARRAY: return json_new_array();
    case CHANGE_OBJECT: return json_new_object();
    case CHANGE_BOOL: return json_new_bool(true);
    case CHANGE_LONG:
        for (int i = 0; i < 20000; i++)
            str_puts(&text, "AAAA");
        return json_new_string(str_peek(&text));
    default: return flipped(v);
    }
}

/* A copy of v that differs at the *place-th value; *place stays >= 0 when there are fewer. NULL: the value itself was dropped. */
static struct json *differing(const struct json *v, int *place, int how)
{
    if ((*place)-- == 0)
        return how == CHANGE_DROP ? NULL : changed(v, how);
    if (json_type(v) != JSON_OBJECT && json_type(v) != JSON_ARRAY)
        return json_dup(v);
    const bool object = json_type(v) == JSON_OBJECT;
    struct json *out = object ? json_new_object() : json_new_array();
    for (const struct json *m = json_first(v); m; m = json_next(m)) {
        struct json *part = differing(m, place, how);
        if (part && object)
            json_set(out, json_key(m), part);
        else if (part)
            json_push(out, part);
    }
    return out;
}

typedef void try_fn(const struct json *changed, const char *what);

static bool is_same(const struct json *a, const struct json *b)
{
    autofree char *x = json_line(a), *y = json_line(b);
    return strcmp(x, y) == 0;
}

static int change_everywhere(const struct json *real, try_fn *try)
{
    int tries = 0;
    for (int place = 0;; place++)
        for (int how = 0; how < CHANGES; how++) {
            int at = place;
            autojson struct json *bad = differing(real, &at, how);
            if (at >= 0)
                return tries;
            if (is_same(bad, real))
                continue;
            autofree char *line = json_line(bad);
            autofree char *what = xasprintf("place %d, change %d: %.300s", place, how, line);
            try(bad, what);
            tries++;
        }
}

/* ---- to-device messages ---- */

static const struct json *delivered; /* the real event, when a changed one may be as good */

static void sync_events(struct peer *p, const struct json *event)
{
    autojson struct json *sync = json_new_object();
    struct json *events = json_new_array();
    json_push(events, event ? json_dup(event) : json_new_null());
    json_set(child(sync, "to_device"), "events", events);
    OK(crypto_sync(p->c, sync, &e));
}

static void no_key_comes_of(const struct json *bad, const char *what)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    const int before = bob->keys_came;
    OK(store_batch_begin(&b, bob->store, &e));
    sync_events(bob, bad);
    if (bob->keys_came != before)
        fail_msg("a key came of %s", what);
    assert_int_equal(crypto_state(bob->c), CRYPTO_RUNNING);
    store_batch_end(&b);
    OK(crypto_reload(bob->c, &e));
    peer_pump(bob);
}

static void changed_room_keys_are_no_room_keys(void **state)
{
    (void)state;
    autojson struct json *ev = say(alice, "x");
    autojson struct json *real = json_dup(json_first(bob->inbox));
    delivered = real;
    const int tries = change_everywhere(real, no_key_comes_of);
    assert_true(tries > 60);
    assert_hears(bob, ev, "x");
}

/* ---- room events ---- */

static void is_not_read(const struct json *bad, const char *what)
{
    AUTO(crypto_message_clear) struct crypto_message m = { 0 };
    AUTO(store_batch_end) struct store_batch b = { 0 };
    OK(store_batch_begin(&b, bob->store, &e));
    OK(crypto_decrypt(bob->c, ROOM, bad, &m, &e));
    const bool harmless = same(json_str_or(bad, "sender", NULL), "@alice:x") &&
                          !is_same(json_get(bad, "content"), NULL) &&
                          same(text_at(bad, "content", "ciphertext"), text_at(delivered, "content", "ciphertext"));
    if (m.utd == CRYPTO_CLEAR && !harmless)
        fail_msg("read: %s", what);
}

static void changed_messages_are_not_read(void **state)
{
    (void)state;
    autojson struct json *ev = say(alice, "x");
    peer_sync(bob);
    delivered = ev;
    assert_true(change_everywhere(ev, is_not_read) > 60);
    assert_hears(bob, ev, "x");
}

/* ---- answers ---- */

static struct json *answer_of(struct peer *p, const char *path, int64_t *id)
{
    struct crypto_request r;
    while (crypto_next_request(p->c, &r)) {
        autojson struct json *body = NULL;
        struct json *out = NULL;
        if (!begins(r.path, path)) {
            peer_answer(p, &r);
            continue;
        }
        OK(json_parse(&body, r.body, strlen(r.body), WORLD_JSON, &e));
        *id = r.id;
        assert_int_equal(serve(p, r.method, r.path, body, &out), 200);
        return out;
    }
    fail_msg("nobody asks %s", path);
    return NULL;
}

static char *devices_known(struct peer *p, const char *user)
{
    const struct kept k = { "matrix", "e2ee_user", user };
    char *text = NULL;
    size_t n = 0;
    OK(store_kept(p->store, &k, &text, &n, &e));
    return text ? text : xstrdup("");
}

static char *before_query;

static void changes_no_known_key(const struct json *bad, const char *what)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    int64_t id = 0;
    OK(store_batch_begin(&b, alice->store, &e));
    tell_changed(w, "@bob:x");
    autojson struct json *sync = peer_sync_json(alice);
    peer_forget_inbox(alice);
    OK(crypto_sync(alice->c, sync, &e));
    json_free(answer_of(alice, API "/keys/query", &id));
    OK(crypto_answered(alice->c, id, 200, bad, 0, &e));
    assert_int_equal(crypto_state(alice->c), CRYPTO_RUNNING);
    autofree char *now = devices_known(alice, "@bob:x");
    autojson struct json *then = NULL, *row = NULL;
    OK(json_parse(&row, now, strlen(now), WORLD_JSON, &e));
    OK(json_parse(&then, before_query, strlen(before_query), WORLD_JSON, &e));
    const struct json *d = json_get(json_get(row, "devices"), "BDEV"),
                      *was = json_get(json_get(then, "devices"), "BDEV");
    if (d && (!same(json_str_or(d, "ed25519", NULL), json_str_or(was, "ed25519", "")) ||
              !same(json_str_or(d, "curve25519", NULL), json_str_or(was, "curve25519", ""))))
        fail_msg("keys changed: %s", what);
    for (const struct json *x = json_first(json_get(row, "devices")); x; x = json_next(x))
        assert_string_equal(json_key(x), "BDEV");
    assert_string_equal(json_str_or(row, "master", ""), json_str_or(then, "master", ""));
    store_batch_end(&b);
    OK(crypto_reload(alice->c, &e));
    peer_pump(alice);
}

static void changed_device_lists_change_no_key(void **state)
{
    (void)state;
    int64_t id = 0;
    before_query = devices_known(alice, "@bob:x");
    tell_changed(w, "@bob:x");
    autojson struct json *sync = peer_sync_json(alice);
    peer_forget_inbox(alice);
    OK(crypto_sync(alice->c, sync, &e));
    autojson struct json *real = answer_of(alice, API "/keys/query", &id);
    OK(crypto_answered(alice->c, id, 200, real, 0, &e));
    assert_true(change_everywhere(real, changes_no_known_key) > 100);
    free(before_query);
    assert_reaches(alice, bob, "x");
}

static void uses_no_key_of(const struct json *bad, const char *what)
{
    AUTO(store_batch_end) struct store_batch b = { 0 };
    autojson struct json *content = NULL, *good = NULL;
    int64_t id = 0;
    OK(store_batch_begin(&b, alice->store, &e));
    assert_int_equal(try_encrypt(alice, "x", &content), CRYPTO_WAIT);
    good = answer_of(alice, API "/keys/claim", &id);
    OK(crypto_answered(alice->c, id, 200, bad, 0, &e));
    assert_int_equal(crypto_state(alice->c), CRYPTO_RUNNING);
    (void)try_encrypt(alice, "x", &content);
    struct crypto_request r;
    while (crypto_next_request(alice->c, &r))
        if (strstr(r.path, "m.room.encrypted"))
            fail_msg("a key went out after %s", what);
    store_batch_end(&b);
    OK(crypto_reload(alice->c, &e));
    peer_pump(alice);
}

/* The id of a one-time key is not signed: to change it changes nothing. */
static void changed_one_time_keys_are_not_used(void **state)
{
    (void)state;
    autojson struct json *content = NULL;
    int64_t id = 0;
    assert_int_equal(try_encrypt(alice, "x", &content), CRYPTO_WAIT);
    autojson struct json *real = answer_of(alice, API "/keys/claim", &id);
    OK(crypto_reload(alice->c, &e));
    peer_pump(alice);
    assert_true(change_everywhere(real, uses_no_key_of) > 40);
    assert_reaches(alice, bob, "x");
}

/* ---- whole syncs ---- */

static void still_runs(const struct json *bad, const char *what)
{
    (void)what;
    OK(crypto_sync(bob->c, bad, &e));
    assert_int_equal(crypto_state(bob->c), CRYPTO_RUNNING);
    peer_pump(bob);
}

static void strange_syncs_stop_nothing(void **state)
{
    (void)state;
    autojson struct json *ev = say(alice, "x"), *sync = peer_sync_json(bob), *request = json_new_object();
    json_set_str(request, "action", "request");
    json_set_str(request, "requesting_device_id", "ADEV");
    json_set_str(request, "request_id", "1");
    json_set_str(child(request, "body"), "room_id", ROOM);
    json_set_str(child(request, "body"), "session_id", text_at(ev, "content", "session_id"));
    deliver(bob, "@alice:x", "m.room_key_request", request);
    json_free(sync);
    sync = peer_sync_json(bob);
    assert_true(change_everywhere(sync, still_runs) > 100);
    peer_forget_inbox(bob);
    OK(crypto_room_rotate(alice->c, ROOM, &e));
    w->now_ms += 3600000;
    assert_reaches(alice, bob, "y");
}

/* ---- who gets keys that he asks for ---- */

static size_t answers_to(struct peer *who, const char *session)
{
    autojson struct json *request = json_new_object();
    json_set_str(request, "action", "request");
    json_set_str(request, "requesting_device_id", who->device);
    json_set_str(request, "request_id", "1");
    json_set_str(child(request, "body"), "room_id", ROOM);
    json_set_str(child(request, "body"), "session_id", session);
    peer_forget_inbox(who);
    deliver(alice, who->user, "m.room_key_request", request);
    peer_sync(alice);
    return json_len(who->inbox);
}

static void keys_are_given_again_to_whom_they_were_given_only(void **state)
{
    (void)state;
    struct peer *mallory = peer_new(w, "@mallory:x", "MDEV");
    autojson struct json *ev = say(alice, "x");
    const char *session = text_at(ev, "content", "session_id");
    assert_hears(bob, ev, "x");
    assert_int_equal(answers_to(mallory, session), 0);
    assert_int_equal(answers_to(bob, session), 1);
    assert_int_equal(answers_to(bob, "zRSzf5VulTGU/3+3Oz2B3MVh1hp1OAlLfD4aZD7l86o"), 0);
    OK(crypto_block_device(alice->c, "@bob:x", "BDEV", true, &e));
    assert_int_equal(answers_to(bob, session), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, two, end)
    const struct CMUnitTest tests[] = {
        TEST(changed_room_keys_are_no_room_keys), TEST(changed_messages_are_not_read),
        TEST(changed_device_lists_change_no_key), TEST(changed_one_time_keys_are_not_used),
        TEST(strange_syncs_stop_nothing),         TEST(keys_are_given_again_to_whom_they_were_given_only),
    };
    return cmocka_run_group_tests_name("matrix_crypto_hostile", tests, NULL, NULL);
}
