#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "log.h"
#include "str.h"

/* stderr goes into a file between the two; end returns what was written. */
static int saved_fd, file_fd;

static void capture_begin(void)
{
    char path[] = "/tmp/test_log.XXXXXX";
    saved_fd = dup(STDERR_FILENO);
    file_fd = mkostemp(path, O_CLOEXEC);
    assert_true(saved_fd >= 0 && file_fd >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(dup2(file_fd, STDERR_FILENO), STDERR_FILENO);
}

static char *capture_end(void)
{
    struct str text = STR_INIT(1 << 20);
    struct err e;
    assert_int_equal(dup2(saved_fd, STDERR_FILENO), STDERR_FILENO);
    (void)close(saved_fd);
    assert_int_equal(lseek(file_fd, 0, SEEK_SET), 0);
    assert_int_equal(str_read_fd(&text, file_fd, &e), 0);
    (void)close(file_fd);
    return str_take(&text);
}

static void a_line_has_level_event_and_pairs(void **state)
{
    (void)state;
    capture_begin();
    log_info("turn_done", KV_S("session", "4f2a"), KV_I("steps", 3), KV_I("least", INT64_MIN));
    autofree char *line = capture_end();
    assert_string_equal(line, "level=info event=turn_done session=4f2a steps=3 least=-9223372036854775808\n");
}

static void values_are_quoted_so_that_nobody_can_forge_a_line(void **state)
{
    (void)state;
    static const struct {
        const char *value, *shown;
    } cases[] = {
        { "plain-1.5/x:y", "plain-1.5/x:y" },
        { NULL, "\"\"" },
        { "", "\"\"" },
        { "two words", "\"two words\"" },
        { "a=b", "\"a=b\"" },
        { "say \"hi\" \\", "\"say \\\"hi\\\" \\\\\"" },
        { "x\nlevel=error event=forged", "\"x\\nlevel=error event=forged\"" },
        { "tab\tcr\rbell\aesc\x1b[31m", "\"tab\\tcr\\x0dbell\\x07esc\\x1b[31m\"" },
        { "gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\"" },
        // NOLINTNEXTLINE(misc-misleading-bidirectional)
        { "c1 \xc2\x9b bidi \xe2\x80\xae sep \xe2\x80\xa8", "\"c1 \\x9b bidi \\u202e sep \\u2028\"" },
        { "bad \xff\xe2\x82", "\"bad \\xff\\xe2\\x82\"" },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *want = xasprintf("level=warn event=e v=%s n=1\n", cases[i].shown);
        capture_begin();
        log_warn("e", KV_S("v", cases[i].value), KV_I("n", 1));
        autofree char *line = capture_end();
        assert_string_equal(line, want);
    }
}

static void errors_print_their_kind(void **state)
{
    (void)state;
    struct err e;
    (void)err_set(&e, ERR_NET, "no route");
    capture_begin();
    log_error("e", KV_E(&e));
    e.kind = ERR_LIMIT;
    e.retry_ms = 250;
    log_error("e", KV_E(&e));
    log_error("e", KV_E(NULL));
    autofree char *lines = capture_end();
    assert_string_equal(lines, "level=error event=e kind=net err=\"no route\"\n"
                               "level=error event=e kind=limit retry_ms=250 err=\"no route\"\n"
                               "level=error event=e kind=none err=\"\"\n");
}

static void secrets_show_their_length_only(void **state)
{
    (void)state;
    capture_begin();
    log_info("e", KV_SECRET("token", "hunter2"), KV_SECRET("none", NULL));
    autofree char *line = capture_end();
    assert_string_equal(line, "level=info event=e token=secret:7 none=secret:0\n");
}

static void lines_above_the_level_are_not_written(void **state)
{
    (void)state;
    static const enum log_level levels[] = { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
    for (size_t i = 0; i < countof(levels); i++) {
        size_t lines = 0;
        capture_begin();
        log_set_level(levels[i]);
        log_error("e", KV_I("n", 1));
        log_warn("e", KV_I("n", 1));
        log_info("e", KV_I("n", 1));
        log_debug("e", KV_I("n", 1));
        log_set_level(LOG_INFO);
        autofree char *text = capture_end();
        for (const char *p = text; *p; p++)
            lines += *p == '\n';
        assert_int_equal(lines, i + 1);
    }
}

static void levels_are_found_by_their_words(void **state)
{
    (void)state;
    assert_int_equal(log_level_from("error"), LOG_ERROR);
    assert_int_equal(log_level_from("warn"), LOG_WARN);
    assert_int_equal(log_level_from("info"), LOG_INFO);
    assert_int_equal(log_level_from("debug"), LOG_DEBUG);
    assert_int_equal(log_level_from("loud"), -1);
    assert_int_equal(log_level_from(""), -1);
}

static void a_long_value_is_cut_and_what_follows_stays(void **state)
{
    (void)state;
    AUTO(str_clear) struct str text = STR_INIT(1 << 20);
    while (text.len < 100000)
        str_puts(&text, "\xe2\x82\xac");
    capture_begin();
    log_info("e", KV_S("v", str_peek(&text)), KV_I("after", 1));
    autofree char *line = capture_end();
    assert_in_range(strlen(line), 8000, 8400);
    assert_non_null(strstr(line, "\xe2\x82\xac...\" after=1\n"));
}

static void a_line_that_grows_too_long_still_ends(void **state)
{
    (void)state;
    struct kv many[20];
    AUTO(str_clear) struct str text = STR_INIT(1 << 20);
    while (text.len < 8192)
        str_putc(&text, '\x01');
    for (size_t i = 0; i < countof(many); i++)
        many[i] = (struct kv)KV_S("v", str_peek(&text));
    capture_begin();
    log_emit(LOG_INFO, "e", many, countof(many));
    autofree char *line = capture_end();
    size_t n = strlen(line);
    assert_in_range(n, 200000, (256 << 10) + 1);
    assert_int_equal(line[n - 1], '\n');
}

static void logging_keeps_errno_even_when_it_fails(void **state)
{
    (void)state;
    int kept = dup(STDERR_FILENO);
    assert_true(kept >= 0);
    (void)close(STDERR_FILENO);
    errno = ENOTTY;
    log_error("e", KV_I("n", 1));
    int after = errno;
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    (void)close(kept);
    assert_int_equal(after, ENOTTY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_level_event_and_pairs),
        cmocka_unit_test(values_are_quoted_so_that_nobody_can_forge_a_line),
        cmocka_unit_test(errors_print_their_kind),
        cmocka_unit_test(secrets_show_their_length_only),
        cmocka_unit_test(lines_above_the_level_are_not_written),
        cmocka_unit_test(levels_are_found_by_their_words),
        cmocka_unit_test(a_long_value_is_cut_and_what_follows_stays),
        cmocka_unit_test(a_line_that_grows_too_long_still_ends),
        cmocka_unit_test(logging_keeps_errno_even_when_it_fails),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
