/* Property: whatever comes, the events are the same wherever reads are cut. The first byte is the form and the size of pieces. */
#include <stdint.h>
#include "sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static bool note(void *ud, const char *name, const char *data, size_t n)
{
    struct str *out = ud;
    str_puts(out, name);
    str_putc(out, '\1');
    str_add(out, data, n);
    str_putc(out, '\2');
    must(data[n] == '\0');
    return true;
}

static void read_all(struct str *out, enum sse_form form, const char *data, size_t n, size_t step)
{
    struct err e = { 0 };
    AUTO(sse_clear) struct sse s;
    sse_init(&s, form, note, out);
    for (size_t at = 0; at < n; at += step)
        must(sse_feed(&s, data + at, n - at < step ? n - at : step, &e) == 0);
    must(sse_finish(&s, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 1 << 16)
        return 0;
    const enum sse_form form = data[0] & 0x80 ? SSE_LINES : SSE_EVENTS;
    const size_t step = 1 + (data[0] & 0x0f);
    AUTO(str_clear) struct str whole = STR_INIT(1 << 20);
    AUTO(str_clear) struct str pieces = STR_INIT(1 << 20);
    read_all(&whole, form, (const char *)data + 1, size - 1, size);
    read_all(&pieces, form, (const char *)data + 1, size - 1, step);
    must(whole.len == pieces.len && memcmp(str_peek(&whole), str_peek(&pieces), whole.len) == 0);
    return 0;
}
