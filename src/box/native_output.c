/* native_output.c - head and tail of what a cell printed. */
#include "native_output.h"

#include <string.h>

enum {
    LINE_SEEK = 4 << 10,                              /* how far a cut may move to fall between two lines */
    TEXT_MAX = 3 * (OUTPUT_HEAD + OUTPUT_TAIL) + 256, /* a byte that is no text becomes three (U+FFFD) */
};

void output_init(struct output *o)
{
    *o = (struct output){ .head = STR_INIT(OUTPUT_HEAD) };
}

void output_clear(struct output *o)
{
    str_clear(&o->head);
    free(o->tail);
    output_init(o);
}

static void tail_add(struct output *o, const char *data, size_t n)
{
    if (!o->tail)
        o->tail = xcalloc(1, OUTPUT_TAIL);
    size_t skip = n > OUTPUT_TAIL ? n - OUTPUT_TAIL : 0;
    uint64_t at = o->n - OUTPUT_HEAD + skip;
    for (size_t i = skip; i < n; at++, i++)
        o->tail[at % OUTPUT_TAIL] = data[i];
}

void output_add(struct output *o, const char *data, size_t n)
{
    size_t room = OUTPUT_HEAD - o->head.len;
    size_t k = n < room ? n : room;
    str_add(&o->head, data, k);
    o->n += k;
    if (k == n)
        return;
    tail_add(o, data + k, n - k);
    o->n += n - k;
}

/* ---- text ---- */

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Bytes at the end of a text that may be the beginning of a character. */
static size_t half_char(const char *data, size_t n)
{
    size_t back = 0;
    while (back < 3 && back < n && continues(data[n - 1 - back]))
        back++;
    if (back >= n)
        return 0;
    unsigned char lead = (unsigned char)data[n - 1 - back];
    size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return need > back + 1 ? back + 1 : 0;
}

/* Bytes at the end that may be the beginning of an escape sequence: ESC and no letter yet. */
static size_t half_escape(const char *data, size_t n, size_t most)
{
    for (size_t back = 1; back <= n && back <= most; back++) {
        char c = data[n - back];
        if (c == '\033')
            return back;
        if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '\n')
            return 0;
    }
    return 0;
}

static size_t unready(const char *data, size_t n, size_t most)
{
    size_t k = half_escape(data, n, most);
    if (!k)
        k = half_char(data, n);
    if (!k && n && data[n - 1] == '\r') /* CR LF, or a line that is drawn again? */
        k = 1;
    return k;
}

void output_piece(struct output *o, struct str *text, const char *data, size_t n, bool last)
{
    AUTO(str_clear) struct str all = STR_INIT(o->held_n + n);
    str_add(&all, o->held, o->held_n);
    str_add(&all, data, n);
    const char *bytes = str_peek(&all);
    size_t keep = last ? 0 : unready(bytes, all.len, sizeof o->held);
    utf8_scrub(text, bytes, all.len - keep);
    memcpy(o->held, bytes + all.len - keep, keep);
    o->held_n = keep;
}

/* A cut falls after a line when one ends near, else between two characters. */
static size_t head_bytes(const char *data, size_t n)
{
    for (size_t i = n; i > 0 && i + LINE_SEEK > n; i--)
        if (data[i - 1] == '\n')
            return i;
    return n - half_char(data, n);
}

static size_t tail_skip(const char *data, size_t n)
{
    for (size_t i = 0; i < n && i < LINE_SEEK; i++)
        if (data[i] == '\n')
            return i + 1 < n ? i + 1 : 0;
    size_t skip = 0;
    while (skip < n && skip < 3 && continues(data[skip]))
        skip++;
    return skip;
}

/* The ring, unrolled; appends to out. */
static void tail_bytes(const struct output *o, struct str *out)
{
    uint64_t n = o->n - OUTPUT_HEAD;
    if (n <= OUTPUT_TAIL) {
        str_add(out, o->tail, (size_t)n);
        return;
    }
    size_t at = (size_t)(n % OUTPUT_TAIL);
    str_add(out, o->tail + at, OUTPUT_TAIL - at);
    str_add(out, o->tail, at);
}

static void both_ends(const struct output *o, struct str *text)
{
    AUTO(str_clear) struct str tail = STR_INIT(OUTPUT_TAIL);
    tail_bytes(o, &tail);
    size_t head_n = head_bytes(str_peek(&o->head), o->head.len);
    size_t skip = tail_skip(str_peek(&tail), tail.len);
    uint64_t left_out = o->n - head_n - (tail.len - skip);
    utf8_scrub(text, str_peek(&o->head), head_n);
    if (text->len && text->buf[text->len - 1] != '\n')
        str_putc(text, '\n');
    str_printf(text, "[... %llu bytes left out ...]\n", (unsigned long long)left_out);
    utf8_scrub(text, str_peek(&tail) + skip, tail.len - skip);
}

char *output_text(const struct output *o, bool *cut)
{
    AUTO(str_clear) struct str text = STR_INIT(TEXT_MAX);
    *cut = o->n > OUTPUT_HEAD + OUTPUT_TAIL;
    if (*cut) {
        both_ends(o, &text);
        return str_take(&text);
    }
    AUTO(str_clear) struct str all = STR_INIT(OUTPUT_HEAD + OUTPUT_TAIL);
    str_add(&all, str_peek(&o->head), o->head.len);
    if (o->n > OUTPUT_HEAD)
        tail_bytes(o, &all);
    utf8_scrub(&text, str_peek(&all), all.len);
    return str_take(&text);
}
