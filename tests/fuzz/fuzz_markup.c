/* Properties: whatever text comes in, the tree's text is valid UTF-8, a copy is equal, and the parts of a document end. */
#include <stdint.h>
#include "markup.h"

enum { ROOM = 16 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static size_t plain_size(void *ud, const struct markup *doc)
{
    (void)ud;
    AUTO(str_clear) struct str text = STR_INIT(ROOM);
    markup_plain(&text, doc);
    return text.len;
}

static void check_depth(const struct markup *m, int depth)
{
    must(depth <= MARKUP_DEPTH_MAX + 1); /* text in the deepest has a paragraph */
    for (const struct markup *x = m->first; x; x = x->next) {
        must((m->kind == MARKUP_LIST) == (x->kind == MARKUP_ITEM));
        must((m->kind == MARKUP_TABLE) == (x->kind == MARKUP_ROW));
        must((m->kind == MARKUP_ROW) == (x->kind == MARKUP_CELL));
        must(x->next || m->last == x);
        check_depth(x, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = xstrndup((const char *)data, size);
    AUTO(markup_freep) struct markup *doc = markup_parse(text);
    AUTO(markup_freep) struct markup *copy = markup_dup(doc);
    AUTO(str_clear) struct str one = STR_INIT(ROOM);
    AUTO(str_clear) struct str two = STR_INIT(ROOM);
    check_depth(doc, 0);
    markup_plain(&one, doc);
    markup_plain(&two, copy);
    must(one.len == two.len && strcmp(str_peek(&one), str_peek(&two)) == 0);
    must(utf8_valid(str_peek(&one), one.len));
    const struct markup_limit limit = { .max = 64, .size = plain_size };
    size_t parts = 0;
    for (struct markup *part; (part = markup_part(doc, &limit)); parts++) {
        check_depth(part, 0);
        markup_free(part);
    }
    must(parts <= size + 1);
    return 0;
}
