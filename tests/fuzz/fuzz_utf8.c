/* Property: whatever comes in, text goes out, and scrubbing text changes nothing. Cuts, widths and forms stay in bounds. */
#include <stdint.h>
#include "str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static bool is_clean(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)text[i] < 0x20 && text[i] != '\n' && text[i] != '\t') || text[i] == 0x7f)
            return false;
    return utf8_valid(text, n);
}

static void check_scrub(struct str *text, const char *data, size_t n)
{
    AUTO(str_clear) struct str twice = STR_INIT(n * 9);
    utf8_scrub(text, data, n);
    must(!text->overflow && is_clean(str_peek(text), text->len));
    utf8_scrub(&twice, str_peek(text), text->len);
    must(twice.len == text->len && memcmp(str_peek(&twice), str_peek(text), text->len) == 0);
}

static void check_cuts(const char *data, size_t n)
{
    bool valid = utf8_valid(data, n);
    for (size_t max = 0; max < n && max < 40; max++) {
        size_t cut = utf8_cut(data, n, max);
        must(cut <= max);
        must(!valid || utf8_valid(data, cut));
        must(!valid || max < 4 || cut > 0);
    }
    must(utf8_width(data, n) <= 2 * n);
}

static void check_text(const char *text)
{
    const char *p = text;
    autofree char *nfc = utf8_nfc(text);
    autofree char *again = utf8_nfc(nfc);
    autofree char *fold = utf8_fold(text);
    must(strcmp(nfc, again) == 0);
    must(utf8_valid(fold, strlen(fold)));
    while (utf8_next(&p) != 0)
        must(p <= text + strlen(text));
    must(*p == '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    AUTO(str_clear) struct str text = STR_INIT(size * 3);
    check_scrub(&text, bytes, size);
    check_cuts(bytes, size);
    check_cuts(str_peek(&text), text.len);
    check_text(str_peek(&text));
    return 0;
}
