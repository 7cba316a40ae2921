/* Words of the built-in planner: tokens, plurals, likeness. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "builtin/text.h"

static void tokens_are_words_numbers_dates_quotes_and_single_chinese_characters(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected; /* type letter and text of each token */
    } table[] = {
        { "Average tip by day", "w:average w:tip w:by w:day" },
        { "top 5 in 1,000.5", "w:top n:5 w:in n:1,000.5" },
        { "since 2024-03-05!", "w:since d:2024-03-05 m:!" },
        { "2024/3/5", "d:2024-03-05" },
        { "2024-13-05", "n:2024 m:- n:13 m:- n:05" },
        { "the 1990s, 2nd, 10%, Q1", "w:the n:1990s m:, n:2nd m:, n:10% m:, w:q1" },
        { "平均小费", "h:平 h:均 h:小 h:费" },
        { "２０００年", "n:2000 h:年" },
        { "named \"Mary Ann\" or “李雷”", "w:named q:Mary Ann w:or q:李雷" },
        { "what's total_bill >= 20", "w:what's w:total m:_ w:bill m:>= n:20" },
        { "it's 5", "w:it's n:5" },
        { "", "" },
    };
    static const char letters[] = "whndqm";
    for (size_t i = 0; i < countof(table); i++) {
        struct bi_tokens t;
        struct str got = STR_INIT(4096);
        bi_tokens_cut(&t, table[i].text);
        for (size_t k = 0; k < t.n; k++)
            str_printf(&got, "%s%c:%s", k ? " " : "", letters[t.at[k].type], t.at[k].text);
        assert_string_equal(str_peek(&got), table[i].expected);
        str_clear(&got);
        bi_tokens_clear(&t);
    }
}

static void numbers_know_their_suffix_and_sign(void **state)
{
    (void)state;
    struct bi_tokens t;
    bi_tokens_cut(&t, "1990s 90s 50k 3rd -5 12%");
    assert_int_equal(t.n, 6);
    assert_true(t.at[0].number == 1990 && t.at[0].suffix == BI_SUFFIX_DECADE);
    assert_true(t.at[1].number == 1990 && t.at[1].suffix == BI_SUFFIX_DECADE);
    assert_true(t.at[2].number == 50000);
    assert_true(t.at[3].number == 3 && t.at[3].suffix == BI_SUFFIX_ORDINAL);
    assert_true(t.at[4].number == -5);
    assert_true(t.at[5].number == 12 && t.at[5].suffix == BI_SUFFIX_PERCENT);
    bi_tokens_clear(&t);
}

static void other_scripts_are_noticed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool foreign;
    } table[] = { { "средний", true }, { "チップ", true }, { "größe", false }, { "平均", false }, { "😱 tip", false } };
    for (size_t i = 0; i < countof(table); i++) {
        struct bi_tokens t;
        bi_tokens_cut(&t, table[i].text);
        assert_int_equal(t.foreign, table[i].foreign);
        bi_tokens_clear(&t);
    }
}

static void likeness_has_grades(void **state)
{
    (void)state;
    static const struct {
        const char *asked, *name;
        enum bi_like like;
    } table[] = {
        { "tip", "tip", BI_LIKE_SAME },
        { "bills", "bill", BI_LIKE_PLURAL },
        { "cities", "city", BI_LIKE_PLURAL },
        { "survival", "survived", BI_LIKE_FORM },
        { "embarkation", "embarked", BI_LIKE_FORM },
        { "unemployment", "unemp", BI_LIKE_SHORT },
        { "temp", "temperature", BI_LIKE_SHORT },
        { "averrage", "average", BI_LIKE_TYPO },
        { "regoin", "region", BI_LIKE_TYPO },
        { "depratment", "department", BI_LIKE_TYPO },
        { "tip", "top", BI_LIKE_NOT },
        { "sex", "set", BI_LIKE_NOT },
        { "smoker", "maker", BI_LIKE_NOT },
    };
    for (size_t i = 0; i < countof(table); i++)
        if (bi_word_like(table[i].asked, table[i].name) != table[i].like)
            fail_msg("%s / %s: %d", table[i].asked, table[i].name, (int)bi_word_like(table[i].asked, table[i].name));
}

static void names_are_cut_at_humps_marks_and_digits(void **state)
{
    (void)state;
    static const struct {
        const char *name, *words, *compact;
    } table[] = {
        { "PassengerId", "passenger id", "passengerid" }, { "total_bill", "total bill", "totalbill" },
        { "Max Temp (C)", "max temp c", "maxtempc" },     { "HTTPServer2", "http server 2", "httpserver2" },
        { "客户Name", "客户 name", "客户name" },          { "  ", "", "" },
    };
    for (size_t i = 0; i < countof(table); i++) {
        autofree char *words = bi_name_words(table[i].name), *compact = bi_compact(table[i].name);
        assert_string_equal(words, table[i].words);
        assert_string_equal(compact, table[i].compact);
    }
}

static void distance_counts_swaps_once_and_stops_early(void **state)
{
    (void)state;
    assert_int_equal(bi_distance("dya", "day", 2), 1);
    assert_int_equal(bi_distance("kitten", "sitting", 5), 3);
    assert_int_equal(bi_distance("abc", "xyzxyz", 1), 2);
    assert_int_equal(bi_distance("小费", "小弗", 2), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_words_numbers_dates_quotes_and_single_chinese_characters),
        cmocka_unit_test(numbers_know_their_suffix_and_sign),
        cmocka_unit_test(other_scripts_are_noticed),
        cmocka_unit_test(likeness_has_grades),
        cmocka_unit_test(names_are_cut_at_humps_marks_and_digits),
        cmocka_unit_test(distance_counts_swaps_once_and_stops_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
