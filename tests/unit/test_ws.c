/* The WebSocket client: handshake, frames and life, against a server of the test's own on the same loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "io/ws_private.h"
#include "loop.h"
#include "ws.h"

/* ---- handshake ---- */

static void the_accept_key_is_rfc_6455s(void **state)
{
    (void)state;
    char accept[WS_KEY_MAX];
    ws_handshake_accept("dGhlIHNhbXBsZSBub25jZQ==", accept);
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

static void only_a_right_upgrade_is_one(void **state)
{
    (void)state;
#define ACCEPT  "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define OK_HEAD "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
    static const struct {
        const char *head;
        int rc;
        enum err_kind kind;
    } rows[] = {
        { OK_HEAD ACCEPT "\r\n", 1, ERR_NONE },
        { OK_HEAD "sec-websocket-accept:s3pPLMBiTxaQ9kYGzzhZRbK+xOo=  \r\n\r\n", 1, ERR_NONE },
        { OK_HEAD ACCEPT, 0, ERR_NONE },
        { "", 0, ERR_NONE },
        { OK_HEAD "\r\n", -1, ERR_DATA },
        { OK_HEAD "Sec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n", -1, ERR_DATA },
        { OK_HEAD ACCEPT "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", -1, ERR_DATA },
        { "HTTP/1.1 101 X\r\nUpgrade: websocket\r\n" ACCEPT "\r\n", -1, ERR_DATA },
        { "HTTP/1.1 101 X\r\nConnection: upgraded\r\nUpgrade: websocket\r\n" ACCEPT "\r\n", -1, ERR_DATA },
        { "HTTP/1.1 200 OK\r\n\r\n", -1, ERR_REFUSED },
        { "HTTP/1.1 429 Slow\r\nRetry-After: 7\r\n\r\n", -1, ERR_LIMIT },
        { "garbage\r\n\r\n", -1, ERR_REFUSED },
    };
    for (size_t i = 0; i < countof(rows); i++) {
        struct err e = { 0 };
        size_t used = 0;
        const size_t n = strlen(rows[i].head);
        assert_int_equal(ws_handshake_answer(rows[i].head, n, "dGhlIHNhbXBsZSBub25jZQ==", &used, &e), rows[i].rc);
        assert_int_equal(e.kind, rows[i].kind);
        if (rows[i].rc == 1)
            assert_int_equal(used, n);
    }
}

/* ---- frames ---- */

struct heard {
    struct str text;
    int messages, pongs;
};

static void on_frame_text(void *ud, const char *text, size_t n)
{
    struct heard *h = ud;
    h->messages++;
    str_add(&h->text, text, n);
}

static void on_frame_pong(void *ud, const char *data, size_t n)
{
    (void)data;
    (void)n;
    ((struct heard *)ud)->pongs++;
}

static const struct ws_frames_events frame_events = { on_frame_text, on_frame_pong };

static void what_breaks_the_protocol_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        int rc;
    } rows[] = {
        { "\x81\x02hi", 4, 0 },
        { "\x01\x01h\x89\x01p\x80\x01i", 9, 0 },                /* a ping between fragments */
        { "\x81\x7e\x00\x02hi", 6, -1 },                        /* a length longer than needed */
        { "\x88\x02\x03\xe8", 4, 0 },                           /* close */
        { "\xc1\x02hi", 4, -1 },                                /* a reserved bit */
        { "\x81\x82\x00\x00\x00\x00hi", 8, -1 },                /* masked by a server */
        { "\x83\x00", 2, -1 },                                  /* an opcode that is none */
        { "\x80\x01x", 3, -1 },                                 /* goes on with nothing */
        { "\x01\x01h\x81\x01i", 6, -1 },                        /* begins anew inside */
        { "\x09\x00", 2, -1 },                                  /* a control frame in pieces */
        { "\x89\x7e\x00\x7e", 4, -1 },                          /* a control frame too long */
        { "\x81\x02\xff\xfe", 4, -1 },                          /* no UTF-8 */
        { "\x81\x7f\x80\x00\x00\x00\x00\x00\x00\x00", 10, -1 }, /* a length without end */
        { "\x81\x7e\x10\x00x", 5, -1 },                         /* over our limit of 1,000 */
    };
    for (size_t i = 0; i < countof(rows); i++)
        for (size_t step = 1; step <= rows[i].n; step++) {
            struct err e = { 0 };
            struct heard h = { .text = STR_INIT(4096) };
            struct ws_frames *f = ws_frames_new(1000, &frame_events, &h);
            int rc = 0;
            for (size_t at = 0; at < rows[i].n && rc == 0; at += step)
                rc = ws_frames_feed(f, rows[i].bytes + at, rows[i].n - at < step ? rows[i].n - at : step, &e);
            if (rc != rows[i].rc)
                fail_msg("row %zu in steps of %zu: %d, not %d", i, step, rc, rows[i].rc);
            ws_frames_free(f);
            str_clear(&h.text);
        }
}

static void what_is_sent_is_masked_and_pings_are_answered(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct heard h = { .text = STR_INIT(4096) };
    struct ws_frames *f = ws_frames_new(1000, &frame_events, &h);
    assert_int_equal(ws_frames_text(f, "hello", 5, &e), 0);
    const struct str *out = ws_frames_out(f);
    assert_int_equal(out->len, 2 + 4 + 5);
    assert_int_equal((unsigned char)out->buf[0], 0x81);
    assert_int_equal((unsigned char)out->buf[1], 0x85);
    char clear[6] = { 0 };
    for (size_t i = 0; i < 5; i++)
        clear[i] = (char)(out->buf[6 + i] ^ out->buf[2 + i % 4]);
    assert_string_equal(clear, "hello");
    ws_frames_sent(f, out->len);
    assert_int_equal(ws_frames_feed(f, "\x89\x02yo\x8a\x00", 6, &e), 0);
    out = ws_frames_out(f);
    assert_int_equal((unsigned char)out->buf[0], 0x8a);
    assert_int_equal(h.pongs, 1);
    ws_frames_free(f);
    str_clear(&h.text);
}

static void ten_thousand_messages_fit_into_the_queue_and_a_flood_does_not(void **state)
{
    (void)state;
    struct err e = { 0 };
    struct heard h = { .text = STR_INIT(4096) };
    struct ws_frames *f = ws_frames_new(1000, &frame_events, &h);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(ws_frames_text(f, "{\"envelope_id\":\"57d6a792-4d35-4d0b-b6aa-3361493e1caf\"}", 54, &e), 0);
    int rc = 0;
    for (int i = 0; i < 100000 && rc == 0; i++)
        rc = ws_frames_text(f, "{\"envelope_id\":\"57d6a792-4d35-4d0b-b6aa-3361493e1caf\"}", 54, &e);
    assert_int_equal(rc, -1);
    assert_int_equal(e.kind, ERR_LIMIT);
    ws_frames_free(f);
    str_clear(&h.text);
}

/* ---- a link ---- */

struct side {
    struct loop *l;
    int64_t skew_ms;
    int listen_fd, fd, port; /* the server's */
    struct str in;
    bool upgraded, bad_accept, mute;
    const char *first; /* sent in one piece with the 101 */
    struct ws *w;
    int opened, messages, closed, code;
    struct str got;
    struct err err;
};

static int64_t skewed(void *ud)
{
    return time_mono_ms() + ((const struct side *)ud)->skew_ms;
}

static void server_send(struct side *s, const char *bytes, size_t n)
{
    assert_int_equal(write_all(s->fd, bytes, n), 0);
}

static void on_server_io(void *ud, int fd, uint32_t events)
{
    struct side *s = ud;
    char buf[4096];
    (void)events;
    const ssize_t n = read(fd, buf, sizeof(buf));
    if (n <= 0) {
        loop_io_stop(s->l, fd);
        return;
    }
    str_add(&s->in, buf, (size_t)n);
    const char *key = strstr(str_peek(&s->in), "Sec-WebSocket-Key: ");
    if (s->upgraded || s->mute || !key || !strstr(key, "\r\n\r\n"))
        return;
    char accept[WS_KEY_MAX];
    autofree char *copy = xstrndup(key + 19, strcspn(key + 19, "\r"));
    ws_handshake_accept(s->bad_accept ? "no" : copy, accept);
    AUTO(str_clear) struct str out = STR_INIT(4096);
    str_printf(&out,
               "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n%s",
               accept, s->first ? s->first : "");
    s->upgraded = true;
    str_clear(&s->in);
    server_send(s, str_peek(&out), out.len);
}

static void on_server_accept(void *ud, int fd, uint32_t events)
{
    struct side *s = ud;
    (void)events;
    s->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    loop_io(s->l, s->fd, EPOLLIN, on_server_io, s);
}

static void on_open(void *ud)
{
    ((struct side *)ud)->opened++;
}

static void on_message(void *ud, const char *text, size_t n)
{
    struct side *s = ud;
    s->messages++;
    str_add(&s->got, text, n);
}

static void on_closed(void *ud, int code, const struct err *e)
{
    struct side *s = ud;
    s->closed++;
    s->code = code;
    s->err = e ? *e : (struct err){ 0 };
}

static void begin(struct side *s, const char *path)
{
    static const struct ws_events events = { on_open, on_message, on_closed };
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof(a);
    struct err e = { 0 };
    assert_int_equal(loop_new(&s->l, skewed, s, &e), 0);
    s->in = (struct str)STR_INIT(1 << 20);
    s->got = (struct str)STR_INIT(1 << 20);
    s->fd = -1;
    s->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listen_fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(s->listen_fd, 4), 0);
    assert_int_equal(getsockname(s->listen_fd, (struct sockaddr *)&a, &n), 0);
    loop_io(s->l, s->listen_fd, EPOLLIN, on_server_accept, s);
    autofree char *url = xasprintf("ws://127.0.0.1:%d%s", ntohs(a.sin_port), path);
    assert_int_equal(ws_open(&s->w, s->l, &(struct ws_request){ .url = url }, &events, s, &e), 0);
}

static void end(struct side *s)
{
    ws_free(s->w);
    if (s->fd >= 0) {
        loop_io_stop(s->l, s->fd);
        (void)close(s->fd);
    }
    loop_io_stop(s->l, s->listen_fd);
    (void)close(s->listen_fd);
    loop_free(s->l);
    str_clear(&s->in);
    str_clear(&s->got);
}

static void until(struct side *s, const int *count, int n)
{
    struct err e = { 0 };
    const int64_t give_up = time_mono_ms() + 20000;
    while (*count < n && time_mono_ms() < give_up)
        assert_int_equal(loop_once(s->l, 100, &e), 0);
    assert_int_equal(*count, n);
}

static void until_server_got(struct side *s, const char *bytes, size_t n)
{
    struct err e = { 0 };
    const int64_t give_up = time_mono_ms() + 20000;
    while (!memmem(s->in.buf ? s->in.buf : "", s->in.len, bytes, n) && time_mono_ms() < give_up)
        assert_int_equal(loop_once(s->l, 100, &e), 0);
    assert_non_null(memmem(s->in.buf, s->in.len, bytes, n));
}

static void report_19_messages_may_come_in_one_piece_with_the_upgrade(void **state)
{
    (void)state;
    struct side s = { .first = "\x81\x05hello" };
    begin(&s, "/link/?ticket=1");
    until(&s, &s.messages, 1);
    assert_int_equal(s.opened, 1);
    assert_string_equal(str_peek(&s.got), "hello");
    end(&s);
}

static void a_wrong_accept_key_ends_the_link(void **state)
{
    (void)state;
    struct side s = { .bad_accept = true };
    begin(&s, "/");
    until(&s, &s.closed, 1);
    assert_int_equal(s.opened, 0);
    assert_int_equal(s.err.kind, ERR_DATA);
    end(&s);
}

static void a_close_is_echoed_and_told_with_its_code(void **state)
{
    (void)state;
    struct side s = { .first = "\x88\x02\x03\xe9" };
    begin(&s, "/");
    until(&s, &s.closed, 1);
    assert_int_equal(s.code, 1001);
    assert_int_equal(s.err.kind, ERR_NONE);
    until_server_got(&s, "\x88\x82", 2);
    end(&s);
}

static void our_close_waits_for_the_echo_or_two_seconds(void **state)
{
    (void)state;
    struct side s = { 0 };
    begin(&s, "/");
    until(&s, &s.opened, 1);
    ws_close(s.w, WS_NORMAL);
    until_server_got(&s, "\x88\x82", 2);
    assert_int_equal(s.closed, 0);
    s.skew_ms += 2000;
    until(&s, &s.closed, 1);
    assert_int_equal(s.err.kind, ERR_NONE);
    end(&s);
}

static void report_05_a_silent_server_is_pinged_and_then_given_up(void **state)
{
    (void)state;
    struct side s = { 0 };
    begin(&s, "/");
    until(&s, &s.opened, 1);
    s.skew_ms += 10000;
    until_server_got(&s, "\x89", 1);
    assert_int_equal(s.closed, 0);
    s.skew_ms += 15000;
    until(&s, &s.closed, 1);
    assert_int_equal(s.err.kind, ERR_TIMEOUT);
    end(&s);
}

static void report_05_a_server_that_answers_pings_stays(void **state)
{
    (void)state;
    struct side s = { 0 };
    begin(&s, "/");
    until(&s, &s.opened, 1);
    for (int i = 0; i < 6; i++) {
        s.skew_ms += 10000;
        until_server_got(&s, "\x89", 1);
        str_clear(&s.in);
        server_send(&s, "\x8a\x00\x81\x01x", 5);
        until(&s, &s.messages, i + 1);
    }
    assert_int_equal(s.closed, 0);
    end(&s);
}

static void a_server_that_does_not_upgrade_is_given_up(void **state)
{
    (void)state;
    struct side s = { .mute = true };
    begin(&s, "/");
    until_server_got(&s, "Upgrade: websocket", 18);
    s.skew_ms += 10000;
    until(&s, &s.closed, 1);
    assert_int_equal(s.err.kind, ERR_TIMEOUT);
    end(&s);
}

static void addresses_are_checked(void **state)
{
    (void)state;
    static const char *const bad[] = { "http://127.0.0.1/", "ws://example.org/", "wss://u:p@x/", "wss://",
                                       "ws://127.0.0.1/a b" };
    static const struct ws_events events = { on_open, on_message, on_closed };
    struct side s = { 0 };
    struct err e = { 0 };
    assert_int_equal(loop_new(&s.l, skewed, &s, &e), 0);
    for (size_t i = 0; i < countof(bad); i++) {
        assert_int_equal(ws_open(&s.w, s.l, &(struct ws_request){ .url = bad[i] }, &events, &s, &e), -1);
        assert_int_equal(e.kind, ERR_CONFIG);
        assert_int_equal(loop_once(s.l, 0, &e), 0);
    }
    loop_free(s.l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_accept_key_is_rfc_6455s),
        cmocka_unit_test(only_a_right_upgrade_is_one),
        cmocka_unit_test(what_breaks_the_protocol_is_refused),
        cmocka_unit_test(what_is_sent_is_masked_and_pings_are_answered),
        cmocka_unit_test(ten_thousand_messages_fit_into_the_queue_and_a_flood_does_not),
        cmocka_unit_test(report_19_messages_may_come_in_one_piece_with_the_upgrade),
        cmocka_unit_test(a_wrong_accept_key_ends_the_link),
        cmocka_unit_test(a_close_is_echoed_and_told_with_its_code),
        cmocka_unit_test(our_close_waits_for_the_echo_or_two_seconds),
        cmocka_unit_test(report_05_a_silent_server_is_pinged_and_then_given_up),
        cmocka_unit_test(report_05_a_server_that_answers_pings_stays),
        cmocka_unit_test(a_server_that_does_not_upgrade_is_given_up),
        cmocka_unit_test(addresses_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
