/* Property: what the gate lets through, cJSON parses, and printing it gives text that parses to the same text. */
#include <stdint.h>
#include "json.h"

enum {
    MAX = 1 << 20,
    PRINT_MAX = 8 << 20 /* a control character prints as six */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

/* Reads everything there is, in every way. */
static size_t touch(const struct json *v)
{
    size_t n = 0;
    for (const struct json *x = json_first(v); x; x = json_next(x)) {
        const char *key = json_key(x);
        must((key != NULL) == (json_type(v) == JSON_OBJECT));
        must(!key || (json_get(v, key) == x && json_str_or(v, key, NULL) == json_text(x)));
        n++;
        if (n > 50) /* looking up a key is linear, and so this loop quadratic */
            break;
    }
    must(n > 50 || n == json_len(v));
    return n;
}

static void check_print(const struct json *v)
{
    AUTO(str_clear) struct str first = STR_INIT(PRINT_MAX);
    AUTO(str_clear) struct str second = STR_INIT(PRINT_MAX);
    autojson struct json *back = NULL;
    struct err e;
    json_print(&first, v);
    must(json_parse(&back, str_peek(&first), first.len, PRINT_MAX, &e) == 0);
    json_print(&second, back);
    must(first.len == second.len && strcmp(str_peek(&first), str_peek(&second)) == 0);
}

static void check_canonical(const struct json *v)
{
    AUTO(str_clear) struct str first = STR_INIT(PRINT_MAX);
    AUTO(str_clear) struct str second = STR_INIT(PRINT_MAX);
    autojson struct json *back = NULL;
    struct err e;
    if (json_print_canonical(&first, v, &e) < 0)
        return;
    must(json_parse(&back, str_peek(&first), first.len, PRINT_MAX, &e) == 0);
    must(json_print_canonical(&second, back, &e) == 0);
    must(first.len == second.len && strcmp(str_peek(&first), str_peek(&second)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autojson struct json *v = NULL;
    struct err e = { 0 };
    if (json_parse(&v, (const char *)data, size, MAX, &e) < 0) {
        must(!v && e.kind == ERR_DATA && !strstr(e.msg, "cJSON"));
        return 0;
    }
    autojson struct json *copy = json_dup(v);
    (void)touch(v);
    for (const struct json *x = json_first(v); x; x = json_next(x))
        (void)touch(x);
    check_print(copy);
    check_canonical(v);
    return 0;
}
