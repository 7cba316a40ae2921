#include "cells_input.h"
#include <string.h>

#define BOM  "\xef\xbb\xbf"
#define MARK "\n# %%"

void cells_input_init(struct cells_input *i, bool lines)
{
    *i = (struct cells_input){ .in = STR_INIT(CELLS_INPUT_MAX), .lines = lines };
}

void cells_input_clear(struct cells_input *i)
{
    str_clear(&i->in);
}

/* What was given out goes. */
static void compact(struct cells_input *i)
{
    struct str rest = STR_INIT(CELLS_INPUT_MAX);
    if (!i->at)
        return;
    str_add(&rest, i->in.buf + i->at, i->in.len - i->at);
    str_clear(&i->in);
    i->in = rest;
    i->at = 0;
}

static void skip_mark_of_encoding(struct cells_input *i)
{
    const size_t n = strlen(BOM);
    if (i->begun || (i->in.len < n && !i->ended))
        return;
    i->begun = true;
    if (i->in.len >= n && !memcmp(i->in.buf, BOM, n))
        i->at = n;
}

/* The end of the unit that begins at text, or NULL when it has not come; *seen bytes of it have been looked through. */
static const char *find_end(const struct cells_input *i, const char *text, size_t n, size_t *seen)
{
    const size_t mark_n = i->lines ? 1 : strlen(MARK);
    const char *end = *seen < n ? memmem(text + *seen, n - *seen, i->lines ? "\n" : MARK, mark_n) : NULL;
    *seen = n < mark_n ? 0 : n - mark_n + 1;
    return end ? end + 1 : i->ended && n ? text + n : NULL;
}

static void drop(struct cells_input *i)
{
    i->at = i->in.len;
    i->seen = 0;
    compact(i);
}

/* Drops until the unit that is skipped ends; false: it has not yet. Its last bytes stay, as the mark may be cut. */
static bool skip(struct cells_input *i)
{
    const char *text = i->in.buf + i->at, *end = find_end(i, text, i->in.len - i->at, &i->seen);
    if (end) {
        i->at += (size_t)(end - text);
        i->seen = 0;
        i->skipping = false;
        return true;
    }
    if (i->ended) {
        drop(i);
    } else {
        i->at += i->seen;
        i->seen = 0;
        compact(i);
    }
    return false;
}

void cells_input_add(struct cells_input *i, const char *data, size_t n)
{
    if (i->at > CELLS_UNIT_MAX || i->in.len + n > CELLS_INPUT_MAX)
        compact(i);
    str_add(&i->in, data, n);
}

void cells_input_end(struct cells_input *i)
{
    i->ended = true;
}

bool cells_input_full(const struct cells_input *i)
{
    return i->in.len - i->at > CELLS_UNIT_MAX;
}

enum cells_unit cells_input_next(struct cells_input *i, const char **text, size_t *n)
{
    skip_mark_of_encoding(i);
    if (!i->begun || !i->in.len || (i->skipping && !skip(i)))
        return CELLS_NONE;
    *text = i->in.buf + i->at;
    const char *end = find_end(i, *text, i->in.len - i->at, &i->seen);
    *n = end ? (size_t)(end - *text) : i->in.len - i->at;
    if (*n > CELLS_UNIT_MAX) {
        i->skipping = !end;
        i->at += end ? *n : 0;
        i->seen = 0;
        if (!end)
            (void)skip(i);
        return CELLS_TOO_LONG;
    }
    if (!end)
        return CELLS_NONE;
    i->at += *n;
    i->seen = 0;
    return CELLS_UNIT;
}
