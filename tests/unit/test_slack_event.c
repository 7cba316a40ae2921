/* Events as what people did: each shape that Slack sends, and those that must start nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "slack/slack_event.h"

/* An event borrows from it. */
#define held autojson __attribute__((unused))

static const struct slack_self self = { .user = "UBOT", .bot = "BBOT", .app = "AAPP" };

static struct json *read_event(struct slack_event *out, const char *event)
{
    struct err e = { 0 };
    struct json *j = NULL;
    autofree char *text =
        xasprintf("{\"type\":\"event_callback\",\"event_id\":\"Ev1\",\"team_id\":\"T1\",\"event\":%s}", event);
    assert_int_equal(json_parse(&j, text, strlen(text), 1 << 20, &e), 0);
    slack_event_read(out, j, &self);
    return j;
}

static void each_event_is_what_it_is(void **state)
{
    (void)state;
#define M "\"type\":\"message\",\"channel\":\"C1\",\"channel_type\":\"channel\",\"ts\":\"1700000000.000100\""
    static const struct {
        const char *event;
        enum slack_kind kind;
    } rows[] = {
        { "{" M ",\"user\":\"U1\",\"text\":\"hi\"}", SLACK_MESSAGE },
        { "{" M ",\"user\":\"U1\",\"text\":\"\",\"subtype\":\"file_share\",\"files\":[{}]}", SLACK_MESSAGE },
        { "{" M ",\"user\":\"U1\",\"text\":\"hi\",\"subtype\":\"thread_broadcast\"}", SLACK_MESSAGE },
        { "{" M ",\"user\":\"U1\",\"text\":\"hi\",\"subtype\":\"me_message\"}", SLACK_MESSAGE },
        { "{" M ",\"user\":\"U1\",\"text\":null,\"thread_ts\":null}", SLACK_MESSAGE },
        { "{" M ",\"user\":\"UBOT\",\"text\":\"hi\"}", SLACK_NOTHING },
        { "{" M ",\"user\":\"UBOT\",\"bot_id\":\"BBOT\",\"text\":\"hi\"}", SLACK_NOTHING },
        { "{" M ",\"user\":\"U9\",\"app_id\":\"AAPP\",\"text\":\"hi\"}", SLACK_NOTHING },
        { "{" M ",\"user\":\"U9\",\"bot_id\":\"B9\",\"text\":\"hi\"}", SLACK_NOTHING },
        { "{" M ",\"user\":\"USLACK\",\"text\":\"hi\"}", SLACK_NOTHING },
        { "{" M ",\"user\":\"U1\",\"subtype\":\"channel_join\"}", SLACK_NOTHING },
        { "{" M ",\"user\":\"U1\",\"subtype\":\"bot_message\"}", SLACK_NOTHING },
        { "{" M ",\"user\":\"U1\",\"subtype\":\"assistant_app_thread\"}", SLACK_NOTHING },
        { "{" M ",\"user\":\"U1\",\"hidden\":true}", SLACK_NOTHING },
        { "{" M "}", SLACK_NOTHING },
        { "{\"type\":\"message\",\"channel\":\"C1\",\"user\":\"U1\",\"ts\":1700000000.0001}", SLACK_NOTHING },
        { "{\"type\":\"message\",\"channel\":\"../x\",\"user\":\"U1\",\"ts\":\"1.000001\"}", SLACK_NOTHING },
        { "{\"type\":\"app_mention\",\"channel\":\"C1\",\"user\":\"U1\",\"ts\":\"1.000001\",\"text\":\"<@UBOT>\"}",
          SLACK_MESSAGE },
        { "{" M ",\"subtype\":\"message_changed\",\"message\":{\"user\":\"U1\",\"ts\":\"1.000001\",\"text\":\"b\"},"
          "\"previous_message\":{\"text\":\"a\"}}",
          SLACK_EDIT },
        { "{" M ",\"subtype\":\"message_changed\",\"message\":{\"user\":\"U1\",\"ts\":\"1.000001\",\"text\":\"a\","
          "\"attachments\":[{}]},\"previous_message\":{\"text\":\"a\"}}",
          SLACK_NOTHING },
        { "{" M ",\"subtype\":\"message_changed\",\"message\":{\"user\":\"U1\",\"ts\":\"1.000001\",\"text\":\"a\"}}",
          SLACK_NOTHING },
        { "{" M ",\"subtype\":\"message_changed\",\"message\":{\"user\":\"U1\",\"ts\":\"1.000001\",\"text\":\"a\","
          "\"edited\":{\"ts\":\"2.000002\"}}}",
          SLACK_EDIT },
        { "{" M
          ",\"subtype\":\"message_changed\",\"message\":{\"user\":\"UBOT\",\"bot_id\":\"BBOT\",\"ts\":\"1.000001\","
          "\"text\":\"b\"},\"previous_message\":{\"text\":\"a\"}}",
          SLACK_NOTHING },
        { "{" M ",\"subtype\":\"message_deleted\",\"deleted_ts\":\"1.000001\",\"previous_message\":{\"user\":\"U1\"}}",
          SLACK_DELETE },
        { "{" M
          ",\"subtype\":\"message_deleted\",\"deleted_ts\":\"1.000001\",\"previous_message\":{\"bot_id\":\"BBOT\"}}",
          SLACK_NOTHING },
        { "{" M ",\"subtype\":\"message_deleted\"}", SLACK_NOTHING },
        { "{" M
          ",\"subtype\":\"message_changed\",\"message\":{\"subtype\":\"tombstone\",\"user\":\"USLACKBOT\",\"ts\":\"1.000001\"},"
          "\"previous_message\":{\"user\":\"U1\",\"ts\":\"1.000001\"}}",
          SLACK_DELETE },
        { "{" M ",\"subtype\":\"message_changed\",\"message\":{\"subtype\":\"tombstone\",\"ts\":\"1.000001\"},"
          "\"previous_message\":{\"bot_id\":\"BBOT\"}}",
          SLACK_NOTHING },
        { "{\"type\":\"reaction_added\",\"user\":\"U1\",\"reaction\":\"x\",\"event_ts\":\"3.000003\","
          "\"item\":{\"type\":\"message\",\"channel\":\"C1\",\"ts\":\"1.000001\"}}",
          SLACK_REACTION },
        { "{\"type\":\"reaction_added\",\"user\":\"UBOT\",\"reaction\":\"x\",\"event_ts\":\"3.000003\","
          "\"item\":{\"type\":\"message\",\"channel\":\"C1\",\"ts\":\"1.000001\"}}",
          SLACK_NOTHING },
        { "{\"type\":\"reaction_added\",\"user\":\"U1\",\"reaction\":\"x\",\"item\":{\"type\":\"file\",\"file\":\"F1\"}}",
          SLACK_NOTHING },
        { "{\"type\":\"agent_session_stopped\",\"user\":\"U1\",\"channel\":\"C1\",\"thread_ts\":\"1.000001\"}",
          SLACK_STOP },
        { "{\"type\":\"app_home_opened\",\"user\":\"U1\",\"channel\":\"D1\",\"tab\":\"messages\"}", SLACK_HOME },
        { "{\"type\":\"app_home_opened\",\"user\":\"U1\",\"channel\":\"D1\",\"tab\":\"home\"}", SLACK_NOTHING },
        { "{\"type\":\"member_joined_channel\",\"user\":\"UBOT\",\"channel\":\"C1\"}", SLACK_JOINED },
        { "{\"type\":\"member_joined_channel\",\"user\":\"U1\",\"channel\":\"C1\"}", SLACK_NOTHING },
        { "{\"type\":\"channel_id_changed\",\"old_channel_id\":\"G1\",\"new_channel_id\":\"C9\"}", SLACK_MOVED },
        { "{\"type\":\"app_uninstalled\"}", SLACK_GONE },
        { "{\"type\":\"tokens_revoked\",\"tokens\":{\"bot\":[\"UBOT\"]}}", SLACK_GONE },
        { "{\"type\":\"tokens_revoked\",\"tokens\":{\"oauth\":[\"U1\"]}}", SLACK_NOTHING },
        { "{\"type\":\"something_new\"}", SLACK_NOTHING },
        { "null", SLACK_NOTHING },
        { "[]", SLACK_NOTHING },
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct slack_event ev;
        held struct json *j = read_event(&ev, rows[i].event);
        if (ev.kind != rows[i].kind)
            fail_msg("row %zu (%s) is %d, not %d", i, rows[i].event, ev.kind, rows[i].kind);
    }
}

static void threads_keep_their_root_as_text(void **state)
{
    (void)state;
    struct slack_event ev;
    held struct json *root = read_event(&ev, "{" M ",\"user\":\"U1\",\"text\":\"hi <@UBOT>\"}");
    assert_string_equal(ev.root, "1700000000.000100");
    assert_false(ev.replies);
    assert_true(ev.mentioned);
    assert_int_equal(ev.sent_ms, 1700000000000);
    held struct json *has_replies =
        read_event(&ev, "{" M ",\"user\":\"U1\",\"text\":\"hi\",\"thread_ts\":\"1700000000.000100\"}");
    assert_false(ev.replies);
    held struct json *reply =
        read_event(&ev, "{" M ",\"user\":\"U1\",\"text\":\"hi\",\"thread_ts\":\"1600000000.123456\"}");
    assert_true(ev.replies);
    assert_string_equal(ev.root, "1600000000.123456");
    assert_false(ev.mentioned);
}

static void direct_messages_are_known_by_type_or_channel(void **state)
{
    (void)state;
    struct slack_event ev;
    held struct json *im = read_event(&ev, "{\"type\":\"message\",\"channel\":\"D1\",\"channel_type\":\"im\","
                                           "\"user\":\"U1\",\"ts\":\"1.000001\",\"text\":\"x\"}");
    assert_true(ev.direct);
    held struct json *group = read_event(&ev, "{\"type\":\"message\",\"channel\":\"G1\",\"channel_type\":\"mpim\","
                                              "\"user\":\"U1\",\"ts\":\"1.000001\",\"text\":\"x\"}");
    assert_true(ev.group_direct && !ev.direct);
}

static void timestamps_are_compared_as_integers(void **state)
{
    (void)state;
    assert_true(slack_is_ts("1700000000.000100"));
    assert_false(slack_is_ts("1700000000"));
    assert_false(slack_is_ts("1700000000.0001"));
    assert_false(slack_is_ts("1700000000.0001000"));
    assert_false(slack_is_ts("x.000100"));
    assert_false(slack_is_ts(NULL));
    assert_int_equal(slack_ts_compare("9.000001", "10.000000"), -1);
    assert_int_equal(slack_ts_compare("1700000000.000101", "1700000000.000100"), 1);
    assert_int_equal(slack_ts_compare("1700000000.000100", "1700000000.000100"), 0);
}

static void an_organisations_installation_is_told_from_a_workspaces(void **state)
{
    (void)state;
    struct err e = { 0 };
    const char *team = NULL, *enterprise = NULL;
    static const char text[] = "{\"team_id\":\"T2\",\"authorizations\":[{\"enterprise_id\":\"E1\",\"team_id\":null,"
                               "\"is_enterprise_install\":true}]}";
    held struct json *j = NULL;
    assert_int_equal(json_parse(&j, text, strlen(text), 4096, &e), 0);
    slack_event_installation(j, &team, &enterprise);
    assert_string_equal(team, "T2");
    assert_string_equal(enterprise, "E1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_event_is_what_it_is),
        cmocka_unit_test(threads_keep_their_root_as_text),
        cmocka_unit_test(direct_messages_are_known_by_type_or_channel),
        cmocka_unit_test(timestamps_are_compared_as_integers),
        cmocka_unit_test(an_organisations_installation_is_told_from_a_workspaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
