/* Known answers, computed by independent code (Python's hashlib, hmac and cryptography) and checked against libolm. */
#ifndef MATRIX_VECTORS_H
#define MATRIX_VECTORS_H
#pragma GCC diagnostic ignored "-Wunused-function"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "crypto_json.h"

static struct json *vectors;

static int load(void **state)
{
    (void)state;
    AUTO(str_clear) struct str text = STR_INIT(64 << 10);
    struct err e = { 0 };
    if (str_read_file(&text, "tests/data/matrix/vectors.json", &e) < 0 ||
        json_parse(&vectors, str_peek(&text), text.len, 64 << 10, &e) < 0)
        fail_msg("%s", e.msg);
    return 0;
}

static int unload(void **state)
{
    (void)state;
    json_free(vectors);
    return 0;
}

static const char *vector(const char *part, const char *name)
{
    const char *text = text_at(vectors, part, name);
    assert_non_null(text);
    return text;
}

static void seq(uint8_t *out, size_t n, unsigned start)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(start + i);
}

static void assert_b64(const char *want, const void *data, size_t n)
{
    AUTO(str_clear) struct str text = STR_INIT(64 << 10);
    b64_add(&text, data, n);
    assert_string_equal(str_peek(&text), want);
}
#endif
