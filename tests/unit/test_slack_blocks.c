/* Answers as messages: what they look like on each rung, and that no payload is one that Slack refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "slack/slack_blocks.h"
#include "slack_limits.h"

static char *printed(const struct json *v)
{
    AUTO(str_clear) struct str out = STR_INIT(1 << 20);
    json_print(&out, v);
    return str_take(&out);
}

static void lay(struct slack_layout *l, const char *markdown, enum slack_rung rung)
{
    slack_layout_make(l, markdown, "1 cell · 0.2 s", rung);
    for (size_t i = 0; i < l->n; i++) {
        const char *fault = message_fault(l->at[i].blocks, l->at[i].text);
        if (fault)
            fail_msg("%s: %.2000s", fault, markdown);
    }
}

static void prose_is_rich_text(void **state)
{
    (void)state;
    static const struct {
        const char *markdown, *holds;
    } rows[] = {
        { "plain", "{\"type\":\"text\",\"text\":\"plain\"}" },
        { "**b** *i* ~~s~~ `c`", "{\"type\":\"text\",\"text\":\"b\",\"style\":{\"bold\":true}}" },
        { "# Head\n\ntext", "{\"type\":\"text\",\"text\":\"Head\",\"style\":{\"bold\":true}}" },
        { "[x](https://y.org/)", "{\"type\":\"link\",\"url\":\"https://y.org/\",\"text\":\"x\"}" },
        { "- a\n- b", "\"style\":\"bullet\"" },
        { "3. a\n4. b", "\"style\":\"ordered\",\"offset\":2" },
        { "- a\n  - deep", "\"indent\":1" },
        { "> said", "\"type\":\"rich_text_quote\"" },
        { "```python\nx = 1\n```",
          "{\"type\":\"rich_text_preformatted\",\"elements\":[{\"type\":\"text\",\"text\":\"x = 1\"}]}" },
        { "<!channel> @here", "\"text\":\"<!channel> @here\"" }, /* literal there; dead in `text` */
        { "a\n\n---\n\nb", "{\"type\":\"divider\"}" },
        { "|a|b|\n|---|--:|\n|x|1|",
          "\"column_settings\":[{\"align\":\"left\",\"is_wrapped\":true},{\"align\":\"right\"" },
    };
    for (size_t i = 0; i < countof(rows); i++) {
        AUTO(slack_layout_clear) struct slack_layout l;
        lay(&l, rows[i].markdown, SLACK_RICH);
        assert_int_equal(l.n, 1);
        autofree char *text = printed(l.at[0].blocks);
        if (!strstr(text, rows[i].holds))
            fail_msg("%s\nlacks %s:\n%s", rows[i].markdown, rows[i].holds, text);
    }
}

static char *table_of(size_t columns, size_t rows, const char *cell)
{
    AUTO(str_clear) struct str out = STR_INIT(1 << 22);
    for (size_t r = 0; r <= rows + 1; r++) {
        for (size_t c = 0; c < columns; c++)
            str_printf(&out, "|%s", r == 1 ? "---" : cell);
        str_puts(&out, "|\n");
    }
    return str_take(&out);
}

static void tables_of_every_size_are_taken(void **state)
{
    (void)state;
    static const size_t columns[] = { 1, 2, 20, 21, 30 }, rows[] = { 1, 12, 13, 99, 100, 500 };
    static const char *const cells[] = { "", "x", "1234.5", "a fairly long cell with words in it" };
    for (size_t c = 0; c < countof(columns); c++)
        for (size_t r = 0; r < countof(rows); r++)
            for (size_t k = 0; k < countof(cells); k++)
                for (int rung = SLACK_RICH; rung <= SLACK_FILE; rung++) {
                    AUTO(slack_layout_clear) struct slack_layout l;
                    autofree char *markdown = table_of(columns[c], rows[r], cells[k]);
                    lay(&l, markdown, (enum slack_rung)rung);
                    assert_in_range(l.n, 1, SLACK_MESSAGES_MAX);
                }
}

static void the_longer_tables_sort_and_the_longest_come_as_csv_too(void **state)
{
    (void)state;
    AUTO(slack_layout_clear) struct slack_layout some, many, old;
    autofree char *thirty = table_of(2, 30, "7"), *all = table_of(2, 400, "=1+1");
    lay(&some, thirty, SLACK_RICH);
    lay(&old, thirty, SLACK_PLAIN);
    lay(&many, all, SLACK_RICH);
    autofree char *a = printed(some.at[0].blocks), *b = printed(old.at[0].blocks), *c = printed(many.at[0].blocks);
    assert_non_null(strstr(a, "\"type\":\"data_table\""));
    assert_non_null(strstr(a, "{\"type\":\"raw_number\",\"value\":7,\"text\":\"7\"}"));
    assert_null(strstr(b, "data_table"));
    assert_non_null(strstr(c, "20 of"));
    assert_true(many.csv_n >= 1);
    assert_non_null(strstr(many.csv[0], "\"'=1+1\"")); /* no spreadsheet executes it */
}

static void text_is_the_rung_without_blocks(void **state)
{
    (void)state;
    AUTO(slack_layout_clear) struct slack_layout l;
    lay(&l, "# H\n\n**b** and *i* at [x|y](https://z.org/) `c` a<b\n\n- one\n- two\n\n中**粗**文", SLACK_TEXT);
    assert_null(l.at[0].blocks);
    assert_string_equal(
        l.at[0].text,
        "*H*\n\n*b* and _i_ at <https://z.org/|xy> `c` a&lt;b\n\n• one\n• two\n\n中\xe2\x80\x8b*粗*\xe2\x80\x8b文\n"
        "_1 cell · 0.2 s_");
}

static void what_is_too_long_for_four_messages_is_a_file(void **state)
{
    (void)state;
    AUTO(str_clear) struct str text = STR_INIT(1 << 20);
    AUTO(slack_layout_clear) struct slack_layout l;
    for (int i = 0; i < 20000; i++)
        str_puts(&text, "words ");
    lay(&l, str_peek(&text), SLACK_RICH);
    assert_int_equal(l.rung, SLACK_FILE);
    assert_int_equal(l.n, 1);
    assert_non_null(strstr(l.at[0].text, "answer.md"));
}

/* Each of these characters takes five bytes or more where it is escaped. */
static void a_receipt_of_any_words_fits_on_every_rung(void **state)
{
    (void)state;
    static const char *const words[] = { "&", "<", "@here", "中", "\xff", " ", "\x1b]x" };
    for (size_t w = 0; w < countof(words); w++)
        for (int rung = SLACK_RICH; rung <= SLACK_FILE; rung++) {
            AUTO(slack_layout_clear) struct slack_layout l;
            AUTO(str_clear) struct str text = STR_INIT(1 << 16);
            AUTO(str_clear) struct str answer = STR_INIT(1 << 16);
            for (int i = 0; i < 3000; i++) {
                str_puts(&text, words[w]);
                str_puts(&answer, i % 40 ? "&" : "& ");
            }
            slack_layout_make(&l, str_peek(&answer), str_peek(&text), (enum slack_rung)rung);
            slack_layout_feedback(&l);
            for (size_t i = 0; i < l.n; i++)
                assert_null(message_fault(l.at[i].blocks, l.at[i].text));
        }
}

static void buttons_stand_under_the_last_message_of_the_first_rung_only(void **state)
{
    (void)state;
    AUTO(slack_layout_clear) struct slack_layout rich, plain, text;
    lay(&rich, "words", SLACK_RICH);
    lay(&plain, "words", SLACK_PLAIN);
    lay(&text, "words", SLACK_TEXT);
    slack_layout_feedback(&rich);
    slack_layout_feedback(&plain);
    slack_layout_feedback(&text);
    autofree char *with = printed(rich.at[0].blocks), *without = printed(plain.at[0].blocks);
    assert_non_null(strstr(with, "\"action_id\":\"feedback\""));
    assert_null(strstr(without, "feedback"));
    assert_null(text.at[0].blocks);
}

static void an_answer_of_nothing_is_still_a_message(void **state)
{
    (void)state;
    for (int rung = SLACK_RICH; rung <= SLACK_FILE; rung++) {
        AUTO(slack_layout_clear) struct slack_layout l;
        slack_layout_make(&l, "", NULL, (enum slack_rung)rung);
        assert_int_equal(l.n, 1);
        assert_true(*l.at[0].text);
        assert_null(l.at[0].blocks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prose_is_rich_text),
        cmocka_unit_test(tables_of_every_size_are_taken),
        cmocka_unit_test(the_longer_tables_sort_and_the_longest_come_as_csv_too),
        cmocka_unit_test(text_is_the_rung_without_blocks),
        cmocka_unit_test(what_is_too_long_for_four_messages_is_a_file),
        cmocka_unit_test(a_receipt_of_any_words_fits_on_every_rung),
        cmocka_unit_test(buttons_stand_under_the_last_message_of_the_first_rung_only),
        cmocka_unit_test(an_answer_of_nothing_is_still_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
