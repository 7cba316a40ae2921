/* How an attempt to escape is judged: every probe of doctor's table, with what an open and a closed machine would answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base.h"
#include "box_check.h"
#include "box_probes.h"
#include "str.h"

static bool judged(const struct box_probe *p, const char *output, const char *verdict)
{
    AUTO(str_clear) struct str detail = STR_INIT(1 << 14);
    const struct box_answer a = { .verdict = verdict, .state = "kept" };
    bool right = box_check_judge(p, output, &a, &detail);
    assert_true(detail.len > 0);
    assert_true(right == !strstr(str_peek(&detail), "right would be"));
    return right;
}

/* The first of the words in a list that blanks separate, as a probe says it. */
static void said(char out[64], const char *list)
{
    (void)snprintf(out, 64, "\n=%.*s\n", (int)strcspn(list, " "), list);
}

static void a_probe_that_says_open_fails_whichever_it_is(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(probes); i++) {
        if (!probes[i].words)
            continue;
        assert_false(judged(&probes[i], "\n=open\n", "ok"));
        char mixed[160], right[64];
        said(right, probes[i].words);
        (void)snprintf(mixed, sizeof mixed, "%s\n=open\n%s", right, right);
        assert_false(judged(&probes[i], mixed, "ok"));
    }
}

static void a_probe_that_says_nothing_fails(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(probes); i++)
        if (probes[i].words)
            assert_false(judged(&probes[i], "a library's warning, and = signs\n", "ok"));
}

static void the_right_words_pass_with_noise_around_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(probes); i++) {
        if (!probes[i].words)
            continue;
        char right[64], noisy[160];
        said(right, probes[i].words);
        assert_true(judged(&probes[i], right, "ok"));
        (void)snprintf(noisy, sizeof noisy, "Warning: x\n%sbye\n%s", right, right);
        assert_true(judged(&probes[i], noisy, "ok"));
    }
}

static void an_end_that_was_not_expected_fails(void **state)
{
    static const char *const ends[] = { "ok", "timeout", "oom", "crash", "limit", "cancelled", "failed" };
    (void)state;
    for (size_t i = 0; i < countof(probes); i++) {
        char right[64] = "";
        if (probes[i].words)
            said(right, probes[i].words);
        for (size_t k = 0; k < countof(ends); k++)
            assert_true(judged(&probes[i], right, ends[k]) == (strstr(probes[i].verdicts, ends[k]) != NULL));
    }
}

static void part_of_a_right_word_is_no_right_word(void **state)
{
    static const struct box_probe p = { "p", "", "EPERM ENOENT", "ok", 1, NEEDS_NOTHING };
    (void)state;
    assert_false(judged(&p, "\n=EPER\n", "ok"));
    assert_false(judged(&p, "\n=EPERM2\n", "ok"));
    assert_false(judged(&p, "\n=PERM\n", "ok"));
    assert_false(judged(&p, "EPERM\n", "ok"));
    assert_true(judged(&p, "=ENOENT =EPERM\n", "ok"));
}

static void the_table_is_sound(void **state)
{
    (void)state;
    assert_true(countof(probes) >= 25);
    assert_true(sizeof probe_tools > 1);
    for (size_t i = 0; i < countof(probes); i++) {
        const struct box_probe *p = &probes[i];
        assert_true(p->name && p->code && p->verdicts && p->timeout_ms > 0);
        assert_true(!p->words || !strstr(p->words, "open"));
        assert_true(p->words || strcmp(p->verdicts, "ok") != 0); /* else it could not fail */
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(probes[k].name, p->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_probe_that_says_open_fails_whichever_it_is),
        cmocka_unit_test(a_probe_that_says_nothing_fails),
        cmocka_unit_test(the_right_words_pass_with_noise_around_them),
        cmocka_unit_test(an_end_that_was_not_expected_fails),
        cmocka_unit_test(part_of_a_right_word_is_no_right_word),
        cmocka_unit_test(the_table_is_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
