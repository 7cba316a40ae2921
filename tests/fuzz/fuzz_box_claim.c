/* Verdict, claim, printed bytes and paths of a box: whatever they hold, the cell is text, and prints as JSON that parses. */
#include <assert.h>
#include <string.h>

#include "json.h"
#include "native_cell.h"
#include "native_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { FILES = 3, PRINT_MAX = 64 << 20 };

static const char fallback[] = "{\"verdict\":\"ok\",\"state\":\"kept\"}";

/* The next part of the input: up to a byte 0, which is eaten. */
static const char *part(const char **at, const char *end, size_t *n)
{
    const char *from = *at, *stop = memchr(from, 0, (size_t)(end - from));
    *n = (size_t)((stop ? stop : end) - from);
    *at = stop ? stop + 1 : end;
    return from;
}

static void printed(struct output *o, const char *data, size_t n)
{
    AUTO(str_clear) struct str text = STR_INIT(PRINT_MAX);
    size_t step = n ? 1 + (unsigned char)data[0] % 40 : 1;
    output_init(o);
    for (size_t at = 0; at < n; at += step) {
        size_t k = n - at < step ? n - at : step;
        output_add(o, data + at, k);
        output_piece(o, &text, data + at, k, at + step >= n);
        assert(utf8_valid(str_peek(&text), text.len));
    }
}

static void path(const char *data, size_t n)
{
    autofree char *text = xstrndup(data, n);
    if (delivery_path_ok(text))
        assert(text[0] != '/' && strcmp(text, "..") != 0 && !strstr(text, "/../") && strncmp(text, "../", 3) != 0);
}

static void check(struct cell *c)
{
    struct err e = { 0 };
    autojson struct json *o = cell_to_json(c, NULL), *again = NULL;
    AUTO(str_clear) struct str s = STR_INIT(PRINT_MAX);
    json_print(&s, o);
    assert(str_check(&s, &e) == 0);
    assert(json_parse(&again, str_peek(&s), s.len, PRINT_MAX, &e) == 0);
    assert(c->figures.n + c->files.n == FILES);
    cell_clear(c);
}

static void files(struct delivered *d)
{
    static const char *const names[FILES] = { "out/figure-1-1.png", "a.csv", "plot.png" };
    for (size_t i = 0; i < FILES; i++)
        d[i] = (struct delivered){
            .box_path = xstrdup(names[i]),
            .figure = i == 0,
            .file = { .path = xstrdup(names[i]), .name = xstrdup(names[i]), .width = i == 1 ? 0 : 5, .height = 5 },
        };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *at = (const char *)data, *end = at + n;
    size_t done_n, claim_n, out_n;
    const char *done = part(&at, end, &done_n), *claim = part(&at, end, &claim_n), *out = part(&at, end, &out_n);
    struct err e = { 0 };
    struct verdict v = { 0 };
    struct output o[2];
    struct delivered d[FILES];
    if (verdict_parse(&v, done, done_n, &e) < 0 && verdict_parse(&v, fallback, strlen(fallback), &e) < 0)
        abort();
    if (v.kind == VERDICT_FAILED)
        v.kind = VERDICT_CRASH;
    path(out, out_n);
    printed(&o[0], out, out_n);
    printed(&o[1], at, (size_t)(end - at));
    files(d);
    struct account a = { 1, 1 << 30, 1000, &v, claim, claim_n, { &o[0], &o[1] }, d, FILES, NULL, 0 };
    struct cell c;
    cell_from_account(&c, &a);
    check(&c);
    output_clear(&o[0]);
    output_clear(&o[1]);
    verdict_clear(&v);
    return 0;
}
