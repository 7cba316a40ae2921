#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include "err.h"
#include "str.h"

static void setting_an_error_fills_it_and_returns_minus_one(void **state)
{
    (void)state;
    struct err e = { .sys = 5, .retry_ms = 7 };
    assert_int_equal(err_set(&e, ERR_NET, "no answer from %s", "host"), -1);
    assert_int_equal(e.kind, ERR_NET);
    assert_int_equal(e.sys, 0);
    assert_int_equal(e.retry_ms, 0);
    assert_string_equal(e.msg, "no answer from host");
}

static void a_failed_system_call_adds_its_words(void **state)
{
    (void)state;
    struct err e;
    assert_int_equal(err_sys(&e, ERR_STORE, ENOENT, "cannot open %s", "state"), -1);
    assert_int_equal(e.kind, ERR_STORE);
    assert_int_equal(e.sys, ENOENT);
    assert_string_equal(e.msg, "cannot open state: No such file or directory");
    (void)err_sys(&e, ERR_STORE, 99999, "odd");
    assert_string_equal(e.msg, "odd: error 99999");
}

static void wrapping_puts_the_context_in_front_and_keeps_the_rest(void **state)
{
    (void)state;
    struct err e;
    (void)err_set(&e, ERR_LIMIT, "slow down");
    e.retry_ms = 1500;
    assert_int_equal(err_wrap(&e, "model %s", "x"), -1);
    assert_int_equal(err_wrap(&e, "turn"), -1);
    assert_string_equal(e.msg, "turn: model x: slow down");
    assert_int_equal(e.kind, ERR_LIMIT);
    assert_int_equal(e.retry_ms, 1500);
}

static void an_error_may_quote_itself(void **state)
{
    (void)state;
    struct err e;
    (void)err_set(&e, ERR_DATA, "inner");
    (void)err_wrap(&e, "%s", e.msg);
    assert_string_equal(e.msg, "inner: inner");
    (void)err_set(&e, e.kind, "again %s", e.msg);
    assert_string_equal(e.msg, "again inner: inner");
    (void)err_sys(&e, e.kind, EPERM, "%s", e.msg);
    assert_string_equal(e.msg, "again inner: inner: Operation not permitted");
}

static void a_long_message_is_cut_between_characters_and_says_so(void **state)
{
    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        AUTO(str_clear) struct str text = STR_INIT(4096);
        struct err e;
        str_add(&text, "abcd", shift);
        for (int i = 0; i < 200; i++)
            str_puts(&text, "\xf0\x9f\x90\x98");
        (void)err_set(&e, ERR_DATA, "%s", str_peek(&text));
        size_t n = strlen(e.msg);
        assert_in_range(n, sizeof(e.msg) - 5, sizeof(e.msg) - 1);
        assert_true(utf8_valid(e.msg, n));
        assert_string_equal(e.msg + n - 3, "...");
    }
}

static void a_message_that_just_fits_is_kept(void **state)
{
    (void)state;
    struct err e;
    char text[sizeof(e.msg) + 1];
    for (size_t n = sizeof(e.msg) - 2; n <= sizeof(e.msg); n++) {
        memset(text, 'a', n);
        text[n] = '\0';
        (void)err_set(&e, ERR_DATA, "%s", text);
        assert_int_equal(strlen(e.msg), n < sizeof(e.msg) ? n : sizeof(e.msg) - 1);
        assert_int_equal(strcmp(e.msg, text) == 0, n < sizeof(e.msg));
    }
}

static void a_message_is_one_line_without_control_characters(void **state)
{
    (void)state;
    struct err e;
    (void)err_set(&e, ERR_DATA,
                  "a\nb\x1b[31mc\x7f\xc2\x9b"
                  "d\xffz\xc3\xa9");
    assert_string_equal(e.msg, "a b [31mc   d\xffz\xc3\xa9");
}

static void kinds_have_names_and_some_can_be_retried(void **state)
{
    (void)state;
    static const struct {
        enum err_kind kind;
        const char *name;
        bool retryable;
    } cases[] = {
        { ERR_NONE, "none", false },       { ERR_CONFIG, "config", false },
        { ERR_NET, "net", true },          { ERR_LIMIT, "limit", true },
        { ERR_REFUSED, "refused", false }, { ERR_TIMEOUT, "timeout", true },
        { ERR_DATA, "data", false },       { ERR_SANDBOX, "sandbox", false },
        { ERR_STORE, "store", false },     { (enum err_kind)99, "unknown", false },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        const struct err e = { .kind = cases[i].kind };
        assert_string_equal(err_kind_name(e.kind), cases[i].name);
        assert_int_equal(err_retryable(&e), cases[i].retryable);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setting_an_error_fills_it_and_returns_minus_one),
        cmocka_unit_test(a_failed_system_call_adds_its_words),
        cmocka_unit_test(wrapping_puts_the_context_in_front_and_keeps_the_rest),
        cmocka_unit_test(an_error_may_quote_itself),
        cmocka_unit_test(a_long_message_is_cut_between_characters_and_says_so),
        cmocka_unit_test(a_message_that_just_fits_is_kept),
        cmocka_unit_test(a_message_is_one_line_without_control_characters),
        cmocka_unit_test(kinds_have_names_and_some_can_be_retried),
    };
    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
