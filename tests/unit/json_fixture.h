/* json_fixture.h - text to a tree and back, for tests that need no more of it. */
#ifndef JSON_FIXTURE_H
#define JSON_FIXTURE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "json.h"

enum { ROOMY = 64 << 20 };

static inline struct json *parsed(const char *text)
{
    struct json *v = NULL;
    struct err e = { 0 };
    if (json_parse(&v, text, strlen(text), ROOMY, &e) < 0)
        fail_msg("%s: %s", text, e.msg);
    return v;
}

static inline char *printed(const struct json *v)
{
    struct str out = STR_INIT(ROOMY);
    json_print(&out, v);
    assert_false(out.overflow);
    return str_take(&out);
}
#endif
