/* Event streams: what the rules say, at every place where reads may be cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "sse.h"

/* Events as "name=data|", in order. */
static bool note(void *ud, const char *name, const char *data, size_t n)
{
    struct str *out = ud;
    str_printf(out, "%s=", name);
    str_add(out, data, n);
    str_putc(out, '|');
    return true;
}

static void feed(struct str *out, enum sse_form form, const char *bytes, size_t n, size_t step)
{
    struct err e = { 0 };
    AUTO(sse_clear) struct sse s;
    sse_init(&s, form, note, out);
    for (size_t at = 0; at < n; at += step)
        assert_int_equal(sse_feed(&s, bytes + at, n - at < step ? n - at : step, &e), 0);
    assert_int_equal(sse_finish(&s, &e), 0);
}

static void expect(enum sse_form form, const char *bytes, const char *want)
{
    const size_t n = strlen(bytes);
    for (size_t step = 1; step <= n; step++) {
        AUTO(str_clear) struct str got = STR_INIT(1 << 20);
        feed(&got, form, bytes, n, step);
        assert_string_equal(str_peek(&got), want);
    }
}

static void streams_are_read_by_the_rules_however_they_are_cut(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *want;
    } table[] = {
        { "data: a\n\n", "=a|" },
        { "data:a\n\n", "=a|" },
        { "data:  a\n\n", "= a|" },
        { "data: a\r\n\r\ndata: b\r\rdata: c\n\n", "=a|=b|=c|" },
        { "data: a\r\n\ndata: b\n\r\n", "=a|=b|" },
        { "data: a\ndata: b\ndata\ndata: c\n\n", "=a\nb\n\nc|" },
        { "event: x\ndata: a\n\ndata: b\n\n", "x=a|=b|" },
        { "event: x\nevent: y\ndata: a\n\n", "y=a|" },
        { "event: x\n\ndata: a\n\n", "=a|" },
        { ": comment\n\ndata: a\n: more\ndata: b\n\n", "=a\nb|" },
        { "id: 7\nretry: 5\nother: z\ndata: a\n\n", "=a|" },
        { "\n\n\ndata: a\n\n\n\n", "=a|" },
        { "data: a", "=a|" },
        { "data: a\n", "=a|" },
        { "data:\n\n", "=|" },
        { "data\n\n", "=|" },
        { "datax: a\n\n data: b\n\n", "" },
        { "\xef\xbb\xbf"
          "data: a\n\n",
          "=a|" },
        { "data: a\n\n\xef\xbb\xbf"
          "data: b\n\n",
          "=a|" },
        { "data: a\xe2\x80\xa8"
          "b\xe2\x80\xa9"
          "c\xc2\x85"
          "d\x0b\x0c\n\n",
          "=a\xe2\x80\xa8"
          "b\xe2\x80\xa9"
          "c\xc2\x85"
          "d\x0b\x0c|" },
        { "data: \xf0\x9f\x98\xb1 \xff\n\n", "=\xf0\x9f\x98\xb1 \xff|" },
        { "", "" },
    };
    for (size_t i = 0; i < countof(table); i++)
        expect(SSE_EVENTS, table[i].bytes, table[i].want);
}

static void lines_of_json_are_events_without_a_name(void **state)
{
    (void)state;
    expect(SSE_LINES, "{\"a\":1}\n\n{\"b\":2}\r\n{\"c\":3}", "={\"a\":1}|={\"b\":2}|={\"c\":3}|");
    expect(SSE_LINES, "data: x\n", "=data: x|");
}

static bool stop_at_once(void *ud, const char *name, const char *data, size_t n)
{
    (void)note(ud, name, data, n);
    return false;
}

static void what_follows_a_stop_is_swallowed(void **state)
{
    (void)state;
    struct err e = { 0 };
    AUTO(str_clear) struct str got = STR_INIT(100);
    AUTO(sse_clear) struct sse s;
    sse_init(&s, SSE_EVENTS, stop_at_once, &got);
    assert_int_equal(sse_feed(&s, "data: a\n\ndata: b\n\n", 18, &e), 0);
    assert_int_equal(sse_feed(&s, "data: c\n\n", 9, &e), 0);
    assert_int_equal(sse_finish(&s, &e), 0);
    assert_string_equal(str_peek(&got), "=a|");
}

static bool ignore(void *ud, const char *name, const char *data, size_t n)
{
    (void)ud;
    (void)name;
    (void)data;
    (void)n;
    return true;
}

enum { CHUNK = 1 << 20 };

static int flood(const char *head, const char *chunk, size_t n, int times, struct err *e)
{
    AUTO(sse_clear) struct sse s;
    sse_init(&s, SSE_EVENTS, ignore, NULL);
    int rc = sse_feed(&s, head, strlen(head), e);
    for (int i = 0; i < times && rc == 0; i++)
        rc = sse_feed(&s, chunk, n, e);
    return rc;
}

static void an_event_of_more_than_eight_mebibytes_is_refused(void **state)
{
    (void)state;
    struct err e = { 0 };
    autofree char *chunk = xcalloc(1, CHUNK);
    memset(chunk, 'x', CHUNK);
    assert_int_equal(flood("data: ", chunk, CHUNK, 9, &e), -1);
    assert_int_equal(e.kind, ERR_DATA);
    memcpy(chunk + CHUNK - 7, "\ndata: ", 7); /* many lines, one event */
    assert_int_equal(flood("data: ", chunk, CHUNK, 9, &e), -1);
    assert_int_equal(e.kind, ERR_DATA);
}

static void a_stream_of_more_than_sixty_four_mebibytes_is_refused(void **state)
{
    (void)state;
    struct err e = { 0 };
    autofree char *chunk = xcalloc(1, CHUNK);
    memset(chunk, 'x', CHUNK);
    memcpy(chunk, ": ", 2);
    chunk[CHUNK - 1] = '\n';
    assert_int_equal(flood("", chunk, CHUNK, 64, &e), 0);
    assert_int_equal(flood("", chunk, CHUNK, 65, &e), -1);
    assert_int_equal(e.kind, ERR_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_read_by_the_rules_however_they_are_cut),
        cmocka_unit_test(lines_of_json_are_events_without_a_name),
        cmocka_unit_test(what_follows_a_stop_is_swallowed),
        cmocka_unit_test(an_event_of_more_than_eight_mebibytes_is_refused),
        cmocka_unit_test(a_stream_of_more_than_sixty_four_mebibytes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
