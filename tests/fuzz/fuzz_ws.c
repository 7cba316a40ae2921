/* Properties: frames are the same messages wherever reads are cut; what is not the protocol ends, and never as a crash. The
 * first byte chooses between frames and the answer to the handshake, and the size of pieces. */
#include <stdint.h>
#include "io/ws_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void on_message(void *ud, const char *text, size_t n)
{
    struct str *out = ud;
    must(utf8_valid(text, n) || memchr(text, 0, n));
    must(text[n] == '\0');
    str_add(out, text, n);
    str_putc(out, '\1');
}

static void on_pong(void *ud, const char *data, size_t n)
{
    (void)ud;
    (void)data;
    must(n <= 125);
}

static int feed(struct str *out, const char *data, size_t n, size_t step)
{
    static const struct ws_frames_events events = { on_message, on_pong };
    struct err e = { 0 };
    struct ws_frames *f = ws_frames_new(4096, &events, out);
    int rc = 0;
    for (size_t at = 0; at < n && rc == 0 && !ws_frames_closed(f); at += step)
        rc = ws_frames_feed(f, data + at, n - at < step ? n - at : step, &e);
    must(ws_frames_out(f)->len < 1 << 20);
    ws_frames_free(f);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 1 << 14)
        return 0;
    const char *bytes = (const char *)data + 1;
    if (data[0] & 0x80) {
        struct err e = { 0 };
        size_t used = 0;
        const int rc = ws_handshake_answer(bytes, size - 1, "dGhlIHNhbXBsZSBub25jZQ==", &used, &e);
        must(rc != 1 || (used <= size - 1 && memmem(bytes, used, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", 28)));
        return 0;
    }
    AUTO(str_clear) struct str whole = STR_INIT(1 << 20);
    AUTO(str_clear) struct str pieces = STR_INIT(1 << 20);
    (void)feed(&whole, bytes, size - 1, size); /* wslay may see a fault in a close frame one piece later */
    (void)feed(&pieces, bytes, size - 1, 1 + (data[0] & 0x0f));
    must(whole.len == pieces.len && memcmp(str_peek(&whole), str_peek(&pieces), whole.len) == 0);
    return 0;
}
