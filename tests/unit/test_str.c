#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "str.h"

static void an_empty_str_peeks_and_takes_as_empty_text(void **state)
{
    (void)state;
    AUTO(str_clear) struct str s = STR_INIT(8);
    assert_string_equal(str_peek(&s), "");
    autofree char *text = str_take(&s);
    assert_string_equal(text, "");
}

static void adding_builds_text(void **state)
{
    (void)state;
    AUTO(str_clear) struct str s = STR_INIT(1000);
    struct err e;
    str_puts(&s, "a");
    str_putc(&s, 'b');
    str_add(&s, "cd", 1);
    str_add(&s, "", 0);
    str_add(&s, NULL, 0);
    str_printf(&s, "-%03d-%s", 7, "x");
    assert_string_equal(str_peek(&s), "abc-007-x");
    assert_int_equal(s.len, 9);
    assert_int_equal(str_check(&s, &e), 0);
}

static void what_is_dropped_is_the_beginning(void **state)
{
    (void)state;
    AUTO(str_clear) struct str s = STR_INIT(8);
    str_drop(&s, 3); /* nothing was ever in it */
    str_puts(&s, "abcdefgh");
    str_drop(&s, 0);
    str_drop(&s, 3);
    assert_string_equal(str_peek(&s), "defgh");
    assert_int_equal(s.len, 5);
    str_puts(&s, "ijk");
    assert_string_equal(str_peek(&s), "defghijk");
    str_drop(&s, 9);
    assert_string_equal(str_peek(&s), "");
    assert_int_equal(s.len, 0);
}

static void a_str_may_hold_nul_bytes(void **state)
{
    (void)state;
    AUTO(str_clear) struct str s = STR_INIT(8);
    str_add(&s, "a\0b", 3);
    assert_int_equal(s.len, 3);
    assert_memory_equal(s.buf, "a\0b", 4);
}

static void what_fills_the_ceiling_exactly_fits(void **state)
{
    (void)state;
    AUTO(str_clear) struct str s = STR_INIT(8);
    struct err e;
    str_puts(&s, "12345678");
    assert_int_equal(str_check(&s, &e), 0);
    assert_string_equal(s.buf, "12345678");
}

static void what_would_pass_the_ceiling_is_dropped_whole_and_remembered(void **state)
{
    (void)state;
    AUTO(str_clear) struct str s = STR_INIT(8);
    struct err e;
    str_puts(&s, "12345");
    str_puts(&s, "6789");
    assert_string_equal(s.buf, "12345");
    assert_int_equal(str_check(&s, &e), -1);
    assert_int_equal(e.kind, ERR_DATA);
    assert_string_equal(e.msg, "more than 8 bytes");
    str_puts(&s, "6"); /* would fit, but not follow what was lost */
    str_printf(&s, "%d", 6);
    assert_string_equal(s.buf, "12345");
}

static void formatting_past_the_ceiling_is_dropped_whole(void **state)
{
    (void)state;
    AUTO(str_clear) struct str s = STR_INIT(8);
    str_printf(&s, "%09d", 1);
    assert_string_equal(str_peek(&s), "");
    assert_true(s.overflow);
}

static void a_ceiling_of_zero_and_of_everything_are_sane(void **state)
{
    (void)state;
    AUTO(str_clear) struct str none = STR_INIT(0);
    AUTO(str_clear) struct str all = STR_INIT(SIZE_MAX);
    size_t impossible = SIZE_MAX - 2; /* with the NUL it would wrap around */
    str_putc(&none, 'x');
    assert_true(none.overflow);
    str_puts(&all, "abc");
    str_add(&all, "x", impossible);
    assert_true(all.overflow);
    assert_string_equal(str_peek(&all), "abc");
}

static void clear_and_take_leave_an_empty_str_with_its_ceiling(void **state)
{
    (void)state;
    AUTO(str_clear) struct str s = STR_INIT(4);
    struct err e;
    str_puts(&s, "12345");
    str_clear(&s);
    assert_int_equal(str_check(&s, &e), 0);
    str_puts(&s, "1234");
    autofree char *text = str_take(&s);
    assert_string_equal(text, "1234");
    assert_int_equal(s.len, 0);
    str_puts(&s, "12345");
    assert_true(s.overflow);
}

static void many_small_additions_take_few_allocations(void **state)
{
    (void)state;
    AUTO(str_clear) struct str s = STR_INIT(1 << 20);
    size_t changes = 0;
    for (int i = 0; i < 1 << 20; i++) {
        size_t before = s.cap;
        str_putc(&s, 'x');
        changes += before != s.cap;
    }
    assert_int_equal(s.len, 1 << 20);
    assert_in_range(changes, 1, 20);
}

/* A temporary file with this content; the caller closes it. */
static int file_with(const char *data, size_t n)
{
    char path[] = "/tmp/test_str.XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(write_all(fd, data, n), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static void reading_an_fd_takes_all_of_it(void **state)
{
    (void)state;
    AUTO(str_clear) struct str big = STR_INIT(100000);
    AUTO(str_clear) struct str s = STR_INIT(100000);
    struct err e;
    for (int i = 0; i < 99999; i++)
        str_putc(&big, (char)(i % 251));
    autoclose int fd = file_with(big.buf, big.len);
    assert_int_equal(str_read_fd(&s, fd, &e), 0);
    assert_int_equal(s.len, big.len);
    assert_memory_equal(s.buf, big.buf, big.len);
}

static void reading_past_the_ceiling_is_an_error(void **state)
{
    (void)state;
    AUTO(str_clear) struct str s = STR_INIT(4);
    struct err e;
    autoclose int fd = file_with("12345", 5);
    assert_int_equal(str_read_fd(&s, fd, &e), -1);
    assert_int_equal(e.kind, ERR_DATA);
}

static void a_file_that_cannot_be_read_names_its_path(void **state)
{
    (void)state;
    static const struct {
        const char *path, *msg;
        enum err_kind kind;
    } cases[] = {
        { "/nonexistent/file", "cannot open /nonexistent/file: No such file or directory", ERR_STORE },
        { "/", "/: cannot read: Is a directory", ERR_STORE },
        { "/dev/zero", "/dev/zero: more than 100 bytes", ERR_DATA },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        AUTO(str_clear) struct str s = STR_INIT(100);
        struct err e;
        assert_int_equal(str_read_file(&s, cases[i].path, &e), -1);
        assert_int_equal(e.kind, cases[i].kind);
        assert_string_equal(e.msg, cases[i].msg);
    }
}

static void an_empty_file_reads_as_empty(void **state)
{
    (void)state;
    AUTO(str_clear) struct str s = STR_INIT(4);
    struct err e;
    assert_int_equal(str_read_file(&s, "/dev/null", &e), 0);
    assert_string_equal(str_peek(&s), "");
}

static void hexadecimal_digits_have_a_value(void **state)
{
    (void)state;
    static const char digits[] = "0123456789abcdef";
    for (int c = -128; c < 128; c++) {
        const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;
        assert_int_equal(hex_digit((char)c), at ? at - digits : -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_str_peeks_and_takes_as_empty_text),
        cmocka_unit_test(adding_builds_text),
        cmocka_unit_test(what_is_dropped_is_the_beginning),
        cmocka_unit_test(a_str_may_hold_nul_bytes),
        cmocka_unit_test(what_fills_the_ceiling_exactly_fits),
        cmocka_unit_test(what_would_pass_the_ceiling_is_dropped_whole_and_remembered),
        cmocka_unit_test(formatting_past_the_ceiling_is_dropped_whole),
        cmocka_unit_test(a_ceiling_of_zero_and_of_everything_are_sane),
        cmocka_unit_test(clear_and_take_leave_an_empty_str_with_its_ceiling),
        cmocka_unit_test(many_small_additions_take_few_allocations),
        cmocka_unit_test(reading_an_fd_takes_all_of_it),
        cmocka_unit_test(reading_past_the_ceiling_is_an_error),
        cmocka_unit_test(a_file_that_cannot_be_read_names_its_path),
        cmocka_unit_test(an_empty_file_reads_as_empty),
        cmocka_unit_test(hexadecimal_digits_have_a_value),
    };
    return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
