#include "matrix_world.h"
#include "inbox.h"
#include "outbox.h"

#define DAY ((int64_t)86400000)
#define NOW (1000 * DAY)

static struct chat *chat;
static char dir[64];

static int open_one(void **state)
{
    (void)state;
    chat = xcalloc(1, sizeof(*chat));
    (void)snprintf(dir, sizeof(dir), "/tmp/test-prune-XXXXXX");
    OK(loop_new(&chat->loop, NULL, NULL, &e));
    assert_non_null(mkdtemp(dir));
    OK(store_open(&chat->store, dir, &e));
    return 0;
}

static int close_one(void **state)
{
    (void)state;
    matrix_prune_stop(chat);
    store_close(chat->store);
    loop_free(chat->loop);
    free(chat);
    return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *kind, const char *key, const char *value)
{
    OK(store_keep(chat->store, &(struct kept){ MATRIX_PLATFORM, kind, key }, value, strlen(value), &e));
}

static bool has(const char *kind, const char *key)
{
    autofree char *value = NULL;
    size_t n = 0;
    OK(store_kept(chat->store, &(struct kept){ MATRIX_PLATFORM, kind, key }, &value, &n, &e));
    return value != NULL;
}

static void put_dated(const char *kind, const char *key, int64_t ms)
{
    autofree char *row = xasprintf("{\"by\":\"@a:b\",\"ms\":%lld}", (long long)ms);
    put(kind, key, row);
}

static void pass(int64_t now)
{
    struct err e = { 0 };
    int steps = 1;
    while (matrix_prune_step(chat, now, &e))
        steps++;
    assert_int_equal(e.kind, ERR_NONE);
    assert_in_range(steps, 100, 1000); /* in slices */
}

static void what_was_not_touched_for_half_a_year_goes(void **state)
{
    (void)state;
    put_dated("place", "$old", NOW - 181 * DAY);
    put_dated("place", "$young", NOW - 179 * DAY);
    put("thread", "!r:x $old", "1");
    put("thread", "!r:x $young", "86400000");
    pass(NOW);
    assert_false(has("place", "$old"));
    assert_true(has("place", "$young"));
    assert_true(has("thread", "!r:x $old")); /* it had no date: its time begins now */
    assert_false(has("thread", "!r:x $young"));
    pass(NOW + 181 * DAY);
    assert_false(has("thread", "!r:x $old"));
}

static void rows_of_other_kinds_are_left_alone(void **state)
{
    (void)state;
    put_dated("room", "!r:x", 1000);
    put_dated("status", "t", 1000);
    put_dated("pending", "0001", 1000);
    pass(NOW);
    assert_true(has("room", "!r:x") && has("status", "t") && has("pending", "0001"));
}

static void rows_without_a_date_get_one_and_stay_whole(void **state)
{
    (void)state;
    autofree char *text = NULL;
    autojson struct json *j = NULL;
    size_t n = 0;
    put("place", "$x", "{\"thread\":\"$root\"}");
    put("place", "$broken", "{\"thread\":");
    pass(NOW);
    OK(store_kept(chat->store, &(struct kept){ MATRIX_PLATFORM, "place", "$x" }, &text, &n, &e));
    OK(json_parse(&j, text, n, 4096, &e));
    assert_string_equal(json_str_or(j, "thread", ""), "$root");
    assert_int_equal(json_int_or(j, "ms", 0), NOW);
    assert_false(has("place", "$broken"));
}

/* What keeps an answer from being said twice goes only when the answer is through. */
static void an_answer_that_waits_keeps_what_is_known_of_it(void **state)
{
    (void)state;
    const struct outbox_item waits = { .platform = (char[]){ "matrix" },
                                       .txn = (char[]){ "turn7" },
                                       .room = (char[]){ "!r:x" },
                                       .markdown = (char[]){ "late" } };
    int64_t id = 0;
    OK(store_outbox_add(chat->store, &waits, &id, &e));
    put_dated("sent", "turn7", NOW - 400 * DAY);
    put_dated("sent", "turn6", NOW - 400 * DAY);
    put_dated("sent", "turn5", NOW - 10 * DAY);
    put("sealed", "turn7.2", "{}");
    put("sealed", "turn7.0.3.500", "{}");
    put("sealed", "turn77.0", "{}");
    put("sealed", "turn6.0", "{}");
    pass(NOW);
    assert_true(has("sent", "turn7") && has("sealed", "turn7.2") && has("sealed", "turn7.0.3.500"));
    assert_false(has("sent", "turn6") || has("sealed", "turn6.0") || has("sealed", "turn77.0"));
    assert_true(has("sent", "turn5"));
    OK(store_outbox_sent(chat->store, id, &e));
    pass(NOW);
    assert_false(has("sent", "turn7") || has("sealed", "turn7.2"));
}

/* ---- replays ---- */

static int push_key(void *ud, const char *key, const char *value, size_t n)
{
    (void)value;
    (void)n;
    json_push(ud, json_new_string(key));
    return 0;
}

static size_t index_rows(struct peer *p, const struct json *event)
{
    autofree char *kind = xasprintf("e2ee_index:%s", text_at(event, "content", "session_id"));
    struct json *list = json_new_array();
    const struct kept all = { "matrix", kind, NULL };
    OK(store_kept_each(p->store, &all, push_key, list, &e));
    const size_t n = json_len(list);
    json_free(list);
    return n;
}

static void a_replay_stays_one_after_its_rows_are_gone(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct peer *alice = peer_new(w, "@alice:x", "ADEV"), *bob = peer_new(w, "@bob:x", "BDEV");
    all_join(w);
    autojson struct json *one = say(alice, "one"), *two = say(alice, "two"), *three = say(alice, "three");
    assert_hears(bob, one, "one");
    assert_hears(bob, two, "two");
    OK(crypto_prune(bob->c, "!r", w->now_ms, &e)); /* too young */
    assert_int_equal(index_rows(bob, two), 2);
    assert_hears(bob, one, "one");
    OK(crypto_prune(bob->c, "!s", w->now_ms + 1, &e)); /* another room */
    assert_int_equal(index_rows(bob, two), 2);
    OK(crypto_prune(bob->c, "!r", w->now_ms + 1, &e));
    OK(crypto_prune(bob->c, "!r", w->now_ms + 1, &e));
    assert_int_equal(index_rows(bob, two), 1);
    autojson struct json *again = json_dup(two);
    json_set_str(again, "event_id", "$other");
    assert_deaf(bob, again, "replayed");
    assert_deaf(bob, one, "replayed");
    assert_hears(bob, three, "three");
    peer_restart(bob);
    peer_pump(bob);
    assert_deaf(bob, again, "replayed");
    assert_hears(bob, three, "three");
    OK(crypto_prune(bob->c, "!", w->now_ms + 1, &e));
    assert_int_equal(index_rows(bob, two), 1);
    autojson struct json *late = json_dup(three);
    json_set_str(late, "event_id", "$late");
    assert_deaf(bob, late, "replayed");
    OK(crypto_forget_replays(bob->store, &e));
    assert_int_equal(index_rows(bob, two), 0);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_not_touched_for_half_a_year_goes, open_one, close_one),
        cmocka_unit_test_setup_teardown(rows_of_other_kinds_are_left_alone, open_one, close_one),
        cmocka_unit_test_setup_teardown(rows_without_a_date_get_one_and_stay_whole, open_one, close_one),
        cmocka_unit_test_setup_teardown(an_answer_that_waits_keeps_what_is_known_of_it, open_one, close_one),
        cmocka_unit_test(a_replay_stays_one_after_its_rows_are_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
