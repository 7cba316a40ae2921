/* Slack's notation: tokens become words, words become no tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "slack/slack_text.h"

static const char *name_of(void *ud, const char *user)
{
    (void)ud;
    return strcmp(user, "U1") == 0 ? "Ann <b>" : strcmp(user, "UBOT") == 0 ? "sandbook" : NULL;
}

static void tokens_become_words(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } rows[] = {
        { "plain", "plain" },
        { "a &lt;b&gt; &amp;amp; c", "a <b> &amp; c" },
        { "<@UBOT> how many?", "how many?" },
        { "  <@UBOT|sandbook>: how many?", "how many?" },
        { "ask <@UBOT> later", "ask @sandbook later" },
        { "<@U1> said", "@Ann <b> said" },
        { "<@U2> and <@W3|bob>", "@U2 and @bob" },
        { "&lt;@U1&gt;", "<@U1>" },
        { "<#C1|general> <#C2>", "#general #C2" },
        { "<!here> <!channel|channel> <!subteam^S1|@team>", "@here @channel @team" },
        { "<!date^1^{date}^https://x|yesterday>", "yesterday" },
        { "<https://x.org/a?b=1&amp;c=2>", "https://x.org/a?b=1&c=2" },
        { "<https://x.org|here>", "here (https://x.org)" },
        { "<http://x.org|x.org>", "x.org" },
        { "<mailto:a@b.c|a@b.c>", "a@b.c" },
        { "1 < 2 and <", "1 < 2 and <" },
        { "<unclosed", "<unclosed" },
        { "<>", "<>" },
        { "a\n<@U1\n>", "a\n<@U1\n>" },
        { "<@U1|", "<@U1|" },
        { "", "" },
    };
    for (size_t i = 0; i < countof(rows); i++) {
        AUTO(str_clear) struct str out = STR_INIT(4096);
        slack_text_decode(&out, rows[i].in, "UBOT", name_of, NULL);
        assert_string_equal(str_peek(&out), rows[i].out);
    }
}

static void mentions_are_told_from_text(void **state)
{
    (void)state;
    assert_true(slack_text_mentions("hey <@UBOT>", "UBOT"));
    assert_true(slack_text_mentions("<@U1> <@UBOT|x>", "UBOT"));
    assert_false(slack_text_mentions("&lt;@UBOT&gt;", "UBOT"));
    assert_false(slack_text_mentions("<@UBOTX>", "UBOT"));
    assert_false(slack_text_mentions("<@UBOT", "UBOT"));
    assert_true(slack_text_is_for_other(" <@U1> you", "UBOT"));
    assert_false(slack_text_is_for_other("<@UBOT> you", "UBOT"));
    assert_false(slack_text_is_for_other("you <@U1>", "UBOT"));
}

static void what_is_escaped_holds_no_live_token(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } rows[] = {
        { "<!channel> <@U1> & a<b", "&lt;!channel&gt; &lt;@U1&gt; &amp; a&lt;b" },
        { "@here @Everyone @hereafter mail@here", "@\xe2\x81\xa0here @\xe2\x81\xa0"
                                                  "Everyone @\xe2\x81\xa0hereafter mail@\xe2\x81\xa0here" },
        { "&amp;", "&amp;amp;" },
    };
    for (size_t i = 0; i < countof(rows); i++) {
        AUTO(str_clear) struct str out = STR_INIT(4096);
        slack_text_escape(&out, rows[i].in, strlen(rows[i].in));
        assert_string_equal(str_peek(&out), rows[i].out);
    }
}

static void what_is_being_written_is_shown_up_to_its_last_whole_word(void **state)
{
    static const struct {
        const char *text;
        size_t ready;
    } cases[] = {
        { "", 0 },
        { "one", 0 },
        { "one two", 4 },
        { "one <!chan", 4 },
        { "one @he", 4 },
        { "see [the page](https://e.x", 4 },
        { "see [the page](https://e.x) now", 28 },
        { "words\n| a | b", 6 },
        { "words\n| a | b |\n", 16 },
        { "words\n```pyth", 6 },
        { "words\n   ", 6 },
        { "\xe4\xb8\xad\xe6\x96\x87<", 6 }, /* no blanks between its words */
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++)
        assert_int_equal(slack_text_ready(cases[i].text, strlen(cases[i].text)), cases[i].ready);
}

static void links_are_of_three_kinds(void **state)
{
    (void)state;
    assert_true(slack_text_is_link("https://x.org/a?b#c"));
    assert_true(slack_text_is_link("mailto:a@b.c"));
    assert_false(slack_text_is_link("javascript:alert(1)"));
    assert_false(slack_text_is_link("https://x|y"));
    assert_false(slack_text_is_link("https://x>y"));
    assert_false(slack_text_is_link("https://x y"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_become_words),
        cmocka_unit_test(mentions_are_told_from_text),
        cmocka_unit_test(what_is_escaped_holds_no_live_token),
        cmocka_unit_test(what_is_being_written_is_shown_up_to_its_last_whole_word),
        cmocka_unit_test(links_are_of_three_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
