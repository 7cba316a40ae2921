#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "matrix/event.h"
#include "matrix/ids.h"

static const struct mx_self self = { .user = "@bot:example.org", .localpart = "bot", .display_name = "Data Bot" };

static struct json *parsed(const char *text)
{
    struct json *v = NULL;
    struct err e = { 0 };
    if (json_parse(&v, text, strlen(text), 1 << 20, &e) < 0)
        fail_msg("%s: %s", text, e.msg);
    return v;
}

static const struct {
    const char *content;
    bool mentioned;
} mentions[] = {
    { "{\"body\":\"hi\",\"m.mentions\":{\"user_ids\":[\"@bot:example.org\"]}}", true },
    { "{\"body\":\"hi\",\"m.mentions\":{\"user_ids\":[\"@x:y\",7,null,\"@bot:example.org\"]}}", true },
    { "{\"body\":\"@bot:example.org hi\",\"m.mentions\":{}}", false },
    { "{\"body\":\"@bot:example.org hi\",\"m.mentions\":{\"room\":true}}", false },
    { "{\"body\":\"hi\",\"m.mentions\":{\"user_ids\":\"@bot:example.org\"}}", false },
    { "{\"body\":\"@bot:example.org hi\",\"m.mentions\":[]}", true }, /* no object: not there */
    { "{\"body\":\"what does @bot:example.org think\"}", true },
    { "{\"body\":\"x@bot:example.org\"}", false },
    { "{\"body\":\"@bot:example.organic\"}", false },
    { "{\"body\":\"@bot:elsewhere.net hello\"}", false },
    { "{\"body\":\"@b\"}", false },
    { "{\"body\":\"@bot: hello\"}", true },
    { "{\"body\":\"bot: hello\"}", true },
    { "{\"body\":\"Bot, hello\"}", true },
    { "{\"body\":\"data bot hello\"}", true },
    { "{\"body\":\"@Data Bot hello\"}", true },
    { "{\"body\":\"bots are nice\"}", false },
    { "{\"body\":\"I met bot yesterday\"}", false },
    { "{\"body\":\"https://example.org/bot/x\"}", false },
    { "{\"body\":\"x\",\"formatted_body\":\"<a href=\\\"https://matrix.to/#/@bot:example.org\\\">Robot</a> x\"}",
      true },
    { "{\"body\":\"x\",\"formatted_body\":\"<a href='https://matrix.to/#/%40bot%3Aexample.org'>Robot</a> x\"}", true },
    { "{\"body\":\"x\",\"formatted_body\":\"<a href=\\\"matrix:u/bot:example.org\\\">Robot</a> x\"}", true },
    { "{\"body\":\"x\",\"formatted_body\":\"<a href=\\\"https://matrix.to/#/@bots:example.org\\\">Robot</a>\"}",
      false },
    { "{\"body\":\"x\",\"formatted_body\":\"<a href=\\\"https://evil.example/#/@bot:example.org\\\">Robot</a>\"}",
      false },
    { "{\"body\":\"x\",\"formatted_body\":\"<a href=\\\"https://matrix.to/#/@bot:example.org\"}", false },
    { "{\"body\":7,\"formatted_body\":[]}", false },
    { "{}", false },
};

static void u7_mentions(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(mentions); i++) {
        autojson struct json *j = parsed(mentions[i].content);
        if (mx_is_mentioned(j, &self) != mentions[i].mentioned)
            fail_msg("%s", mentions[i].content);
    }
}

static const struct {
    const char *content;
    bool reply;
    const char *text;
} texts[] = {
    { "{\"msgtype\":\"m.text\",\"body\":\"bot: sum it\"}", false, "sum it" },
    { "{\"msgtype\":\"m.text\",\"body\":\"  @bot:example.org   sum it\"}", false, "sum it" },
    { "{\"msgtype\":\"m.text\",\"body\":\"Data Bot, sum it\"}", false, "sum it" },
    { "{\"msgtype\":\"m.text\",\"body\":\"both of them\"}", false, "both of them" },
    { "{\"msgtype\":\"m.text\",\"body\":\"[Data Bot](https://matrix.to/#/@bot:example.org): undo\"}", false, "undo" },
    { "{\"msgtype\":\"m.text\",\"body\":\"[x](https://matrix.to/#/%40bot%3Aexample.org?via=a) undo\"}", false, "undo" },
    { "{\"msgtype\":\"m.text\",\"body\":\"[x](https://matrix.to/#/@bob:example.org) undo\"}", false,
      "[x](https://matrix.to/#/@bob:example.org) undo" },
    { "{\"msgtype\":\"m.text\",\"body\":\"@[Data Bot] undo\"}", false, "undo" },
    { "{\"msgtype\":\"m.text\",\"body\":\"[1,2] undo\"}", false, "[1,2] undo" },
    { "{\"msgtype\":\"m.text\",\"body\":\"Data Bot\\uff1a\\u3000\\u6c42\\u548c\"}", false, "\u6c42\u548c" },
    { "{\"msgtype\":\"m.text\",\"body\":\"bot\\uff0c\\u6c42\\u548c\"}", false, "\u6c42\u548c" },
    { "{\"msgtype\":\"m.text\",\"body\":\"> <@a:b> old\\n> more\\n\\nnew\"}", true, "new" },
    { "{\"msgtype\":\"m.text\",\"body\":\"> a quote of mine\"}", false, "> a quote of mine" },
    { "{\"msgtype\":\"m.text\",\"body\":\"> only a quote\"}", true, "> only a quote" },
    { "{\"msgtype\":\"m.file\",\"body\":\"a.csv\"}", false, "" },
    { "{\"msgtype\":\"m.file\",\"body\":\"a.csv\",\"filename\":\"a.csv\"}", false, "" },
    { "{\"msgtype\":\"m.file\",\"body\":\"sum it\",\"filename\":\"a.csv\"}", false, "sum it" },
    { "{\"msgtype\":\"m.text\",\"body\":\"a\\u0007\\u202eb\"}", false, "ab" },
    { "{\"msgtype\":\"m.text\",\"body\":5}", false, "" },
};

static void words_are_what_a_person_meant(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(texts); i++) {
        autojson struct json *j = parsed(texts[i].content);
        autofree char *got = mx_text(j, &self, texts[i].reply);
        assert_string_equal(got, texts[i].text);
    }
}

static const struct {
    const char *relates;
    enum mx_relation_type type;
    const char *target, *reply_to;
} relations[] = {
    { "null", MX_NO_RELATION, NULL, NULL },
    { "[]", MX_NO_RELATION, NULL, NULL },
    { "{\"m.in_reply_to\":{\"event_id\":\"$a\"}}", MX_NO_RELATION, NULL, "$a" },
    { "{\"m.in_reply_to\":{\"event_id\":\"a\"}}", MX_NO_RELATION, NULL, NULL },
    { "{\"rel_type\":\"m.thread\",\"event_id\":\"$r\"}", MX_THREAD, "$r", NULL },
    { "{\"rel_type\":\"m.thread\",\"event_id\":\"$r\",\"is_falling_back\":true,\"m.in_reply_to\":{\"event_id\":\"$a\"}}",
      MX_THREAD, "$r", NULL },
    { "{\"rel_type\":\"m.thread\",\"event_id\":\"$r\",\"is_falling_back\":false,\"m.in_reply_to\":{\"event_id\":\"$a\"}}",
      MX_THREAD, "$r", "$a" },
    { "{\"rel_type\":\"m.replace\",\"event_id\":\"$e\"}", MX_REPLACE, "$e", NULL },
    { "{\"rel_type\":\"m.replace\",\"event_id\":5}", MX_OTHER_RELATION, NULL, NULL },
    { "{\"rel_type\":\"m.reference\",\"event_id\":\"$e\"}", MX_OTHER_RELATION, "$e", NULL },
    { "{\"event_id\":\"$e\"}", MX_NO_RELATION, NULL, NULL },
};

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void u8_relations(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(relations); i++) {
        autojson struct json *j = parsed(relations[i].relates);
        struct mx_relation r;
        mx_relation_read(&r, j);
        if (r.type != relations[i].type || !same(r.target, relations[i].target) ||
            !same(r.reply_to, relations[i].reply_to))
            fail_msg("%s", relations[i].relates);
    }
}

static const struct {
    const char *url;
    bool good;
} addresses[] = {
    { "mxc://example.org/AbC_-1", true },
    { "mxc://example.org:8448/x", true },
    { "mxc://[::1]:80/x", true },
    { "mxc://example.org/../admin", false },
    { "mxc://example.org/", false },
    { "mxc:///x", false },
    { "mxc://example.org/a/b", false },
    { "mxc://example.org/a?b", false },
    { "mxc://example.org/a%2f", false },
    { "https://example.org/x", false },
    { "", false },
    { "mxc://exa mple/x", false },
    { "mxc://../x", false },
    { "mxc://a/..", false },
};

static void media_addresses_stay_in_their_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(addresses); i++) {
        autofree char *server = NULL, *media = NULL;
        if (mx_split_mxc(addresses[i].url, &server, &media) != addresses[i].good)
            fail_msg("%s", addresses[i].url);
    }
}

static void a_sealed_file_goes_before_an_empty_address(void **state)
{
    (void)state;
    autojson struct json *both =
        parsed("{\"msgtype\":\"m.file\",\"body\":\"a\",\"url\":\"\",\"file\":{\"url\":\"mxc://a.example/b\"}}");
    autojson struct json *plain =
        parsed("{\"msgtype\":\"m.image\",\"body\":\"a\",\"url\":\"mxc://a.example/c\",\"info\":{\"size\":\"big\"}}");
    autojson struct json *none = parsed("{\"msgtype\":\"m.file\",\"body\":\"a\",\"url\":5,\"file\":[]}");
    struct mx_file f;
    assert_true(mx_file_read(&f, both));
    assert_non_null(f.encrypted);
    assert_string_equal(f.mxc, "mxc://a.example/b");
    assert_true(mx_file_read(&f, plain));
    assert_null(f.encrypted);
    assert_int_equal(f.bytes, 0);
    assert_true(mx_file_read(&f, none)); /* whoever sent it is told that it did not come */
    assert_string_equal(f.mxc, "");
}

static void a_gallery_is_several_files_with_a_caption(void **state)
{
    (void)state;
    autojson struct json *j =
        parsed("{\"msgtype\":\"dm.filament.gallery\",\"body\":\"bot: compare\",\"itemtypes\":["
               "{\"itemtype\":\"m.file\",\"body\":\"a.csv\",\"url\":\"mxc://a.example/b\"},"
               "{\"itemtype\":\"m.image\",\"body\":\"b.png\",\"file\":{\"url\":\"mxc://a.example/c\"}},"
               "{\"itemtype\":\"m.gallery\",\"itemtypes\":[]},5]}");
    autojson struct json *none =
        parsed("{\"msgtype\":\"m.gallery\",\"body\":\"a\",\"itemtypes\":{\"itemtype\":\"m.file\"}}");
    autofree char *text = mx_text(j, &self, false);
    struct mx_file f;
    assert_int_equal(mx_msgtype(j), MX_FILE);
    assert_string_equal(text, "compare");
    assert_false(mx_file_read(&f, j));
    const struct json *x = json_first(mx_gallery(j));
    assert_true(mx_file_read(&f, x));
    assert_string_equal(f.name, "a.csv");
    x = json_next(x);
    assert_true(mx_file_read(&f, x));
    assert_non_null(f.encrypted);
    while ((x = json_next(x)))
        assert_false(mx_file_read(&f, x));
    assert_null(mx_gallery(none));
}

static void names_match_patterns(void **state)
{
    (void)state;
    assert_true(mx_matches("*", "@a:b"));
    assert_true(mx_matches("@*:b @x:y", "@long:b"));
    assert_true(mx_matches(" @x:y , @?:c", "@a:c"));
    assert_false(mx_matches("@*:b", "@a:bc"));
    assert_false(mx_matches("", "@a:b"));
    assert_true(mx_matches("@a*b*c:*", "@aXbbYbc:d"));
}

static void segments_are_escaped_and_back(void **state)
{
    (void)state;
    autofree char *escaped = mx_escape("!r/ä:x?"), *back = mx_unescape(escaped), *odd = mx_unescape("%4 %zz %00 %");
    assert_string_equal(escaped, "%21r%2F%C3%A4%3Ax%3F");
    assert_string_equal(back, "!r/ä:x?");
    assert_string_equal(odd, "%4 %zz %00 %");
}

/* ---- what anybody may send ---- */

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static void read_all_of(const struct json *j)
{
    struct mx_event ev;
    struct mx_relation r;
    struct mx_file f;
    const struct json *content = json_get(j, "content");
    if (mx_event_read(&ev, j))
        assert_true(mx_is_event(ev.id) && mx_is_user(ev.sender));
    mx_relation_read(&r, json_get(content, "m.relates_to"));
    assert_true(!r.reply_to || mx_is_event(r.reply_to));
    if (mx_file_read(&f, content))
        assert_true(f.bytes >= 0 && (!*f.mxc || strncmp(f.mxc, "mxc://", 6) == 0));
    (void)mx_is_mentioned(content, &self);
    autofree char *text = mx_text(content, &self, true);
    assert_true(utf8_valid(text, strlen(text)));
}

/* tests/fuzz does the same for hours; this is its beginning. */
static void u9_events_that_were_tampered_with_do_no_harm(void **state)
{
    (void)state;
    static const char event[] =
        "{\"event_id\":\"$e\",\"type\":\"m.room.message\",\"sender\":\"@a:b\",\"origin_server_ts\":1,\"content\":{\"msgtype\":"
        "\"m.file\",\"body\":\"> <@x:y> q\\n\\n@bot: \\u00e4 hi\",\"filename\":\"a.csv\",\"url\":\"mxc://b/c\",\"file\":{\"url\":\"\"},"
        "\"info\":{\"size\":5},\"formatted_body\":\"<a href=\\\"https://matrix.to/#/%40bot%3Aexample.org\\\">x</a>\",\"m.mentions\":"
        "{\"user_ids\":[\"@bot:example.org\"]},\"m.relates_to\":{\"rel_type\":\"m.thread\",\"event_id\":\"$r\",\"m.in_reply_to\":"
        "{\"event_id\":\"$q\"}}}}";
    uint64_t seed = 88172645463325252u;
    int parsed_n = 0;
    for (int i = 0; i < 20000; i++) {
        char text[sizeof(event)];
        memcpy(text, event, sizeof(event));
        for (uint64_t n = 1 + next_random(&seed) % 3; n > 0; n--)
            text[next_random(&seed) % (sizeof(event) - 1)] = "\"{}[]:,$@!0n \\\xff"[next_random(&seed) % 16];
        autojson struct json *j = NULL;
        struct err e = { 0 };
        if (json_parse(&j, text, sizeof(event) - 1, sizeof(event), &e) < 0)
            continue;
        parsed_n++;
        read_all_of(j);
    }
    assert_in_range(parsed_n, 1000, 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(u7_mentions),
        cmocka_unit_test(words_are_what_a_person_meant),
        cmocka_unit_test(u8_relations),
        cmocka_unit_test(media_addresses_stay_in_their_place),
        cmocka_unit_test(a_sealed_file_goes_before_an_empty_address),
        cmocka_unit_test(a_gallery_is_several_files_with_a_caption),
        cmocka_unit_test(names_match_patterns),
        cmocka_unit_test(segments_are_escaped_and_back),
        cmocka_unit_test(u9_events_that_were_tampered_with_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
