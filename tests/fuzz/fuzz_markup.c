/* Properties: whatever text comes in, the tree's text is valid UTF-8, a copy is equal, the parts of a document end, and its HTML for
 * Matrix has only tags and attributes that are allowed, each closed where it should be, at a depth that clients show. */
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include "markup.h"
#include "matrix/content.h"

enum { ROOM = 16 << 20, DEPTH = 100 };

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

static size_t tag_of(const char *at, const char *end)
{
    static const char *const tags[] = { "p",          "h1",    "h2",    "h3",    "h4", "h5", "h6", "strong", "em",
                                        "del",        "code",  "pre",   "a",     "ul", "ol", "li", "hr",     "br",
                                        "blockquote", "table", "thead", "tbody", "tr", "th", "td" };
    const size_t n = strcspn(at, " >");
    for (size_t i = 0; i < countof(tags); i++)
        if (strlen(tags[i]) == n && strncmp(at, tags[i], n) == 0 && at + n <= end)
            return n;
    return 0;
}

static void check_attribute(const char *at, const char *end)
{
    static const char *const starts[] = { " href=\"http", " href=\"mailto:", " start=\"", " class=\"language-" };
    bool known = false;
    for (size_t i = 0; i < countof(starts); i++)
        known = known || strncasecmp(at, starts[i], strlen(starts[i])) == 0;
    must(known && end[-1] == '"' && strchr(strchr(at, '"') + 1, '"') == end - 1);
}

static void check_html(const char *html)
{
    const char *open[DEPTH];
    size_t depth = 0;
    for (const char *at = html; (at = strchr(at, '<'));) {
        const char *end = strchr(at, '>'), *name = at + 1 + (at[1] == '/');
        must(end != NULL);
        const size_t n = tag_of(name, end);
        must(n > 0);
        if (at[1] == '/')
            must(depth > 0 && strncmp(open[--depth], name, n) == 0);
        else if (strncmp(name, "br>", 3) != 0 && strncmp(name, "hr>", 3) != 0) {
            must(depth < DEPTH);
            open[depth++] = name;
        }
        if (name[n] == ' ')
            check_attribute(name + n, end);
        at = end;
    }
    must(depth == 0);
}

static void check_matrix(const struct markup *doc)
{
    AUTO(str_clear) struct str html = STR_INIT(ROOM);
    content_html(&html, doc);
    if (!html.overflow)
        check_html(str_peek(&html));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = xstrndup((const char *)data, size);
    AUTO(markup_freep) struct markup *doc = markup_parse(text);
    AUTO(markup_freep) struct markup *copy = markup_dup(doc);
    AUTO(str_clear) struct str one = STR_INIT(ROOM);
    AUTO(str_clear) struct str two = STR_INIT(ROOM);
    check_depth(doc, 0);
    check_matrix(doc);
    markup_plain(&one, doc);
    markup_plain(&two, copy);
    must(one.len == two.len && strcmp(str_peek(&one), str_peek(&two)) == 0);
    must(utf8_valid(str_peek(&one), one.len));
    const struct markup_limit limit = { .max = 64, .size = plain_size };
    size_t parts = 0;
    for (struct markup *part; (part = markup_part(doc, &limit)); parts++) {
        check_depth(part, 0);
        check_matrix(part);
        markup_free(part);
    }
    must(parts <= size + 1);
    return 0;
}
