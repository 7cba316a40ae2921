/* wire_mend.c - events that are JSON but for something small. */
#include <ctype.h>
#include "wire.h"

static bool is_hex4(const char *at)
{
    for (int i = 0; i < 4; i++)
        if (!isxdigit((unsigned char)at[i]))
            return false;
    return true;
}

static unsigned long hex4(const char *at)
{
    char digits[5] = { at[0], at[1], at[2], at[3], '\0' };
    return strtoul(digits, NULL, 16);
}

/* Bytes of what stands at `at`: a pair of surrogates, an escape, or one byte. */
static size_t unit(const char *at)
{
    if (at[0] != '\\' || !at[1])
        return 1;
    if (at[1] != 'u' || !is_hex4(at + 2))
        return 2;
    const bool pair = hex4(at + 2) >> 10 == 0xd800 >> 10 && at[6] == '\\' && at[7] == 'u' && is_hex4(at + 8) &&
                      hex4(at + 8) >> 10 == 0xdc00 >> 10;
    return pair ? 12 : 6;
}

/* \u0000 and half surrogates: careless printers write them, json_parse() refuses them. */
static bool is_refused(const char *at, size_t n)
{
    return n == 6 && at[0] == '\\' && (hex4(at + 2) == 0 || hex4(at + 2) >> 11 == 0xd800 >> 11);
}

char *wire_mend(const char *data, size_t n, size_t *out_n)
{
    AUTO(str_clear) struct str text = STR_INIT(3 * (size_t)SSE_EVENT_MAX);
    AUTO(str_clear) struct str clean = STR_INIT(3 * (size_t)SSE_EVENT_MAX);
    utf8_scrub(&text, data, n);
    size_t len = 0;
    for (const char *at = str_peek(&text); *at; at += len) {
        const size_t plain = strcspn(at, "\\\t\n");
        len = plain ? plain : unit(at);
        if (is_refused(at, len))
            str_puts(&clean, "\\ufffd");
        else if (*at == '\t')
            str_putc(&clean, ' ');
        else if (*at != '\n')
            str_add(&clean, at, len);
    }
    *out_n = clean.len;
    return str_take(&clean);
}
