/* utf8.c - the only code that knows UTF-8, and the trust boundary between bytes and text. Declared in str.h. */
#include "str.h"
#include <string.h>
#include <utf8proc.h>

enum { REPLACEMENT = 0xfffd, ESC = 0x1b, BEL = 0x07, ST = 0x9c };

/* ---- decoding ---- */

/* What may follow a lead byte: Unicode 15, table 3-7. The first continuation byte has its own range. */
struct lead {
    unsigned char len, lo, hi;
};

static struct lead classify(unsigned char b)
{
    if (b < 0x80)
        return (struct lead){ 1, 0, 0 };
    if (b < 0xc2 || b > 0xf4)
        return (struct lead){ 0, 0, 0 };
    if (b < 0xe0)
        return (struct lead){ 2, 0x80, 0xbf };
    if (b < 0xf0)
        return (struct lead){ 3, b == 0xe0 ? 0xa0 : 0x80, b == 0xed ? 0x9f : 0xbf };
    return (struct lead){ 4, b == 0xf0 ? 0x90 : 0x80, b == 0xf4 ? 0x8f : 0xbf };
}

/* Sets *len to the bytes of the code point, or of the maximal subpart when it is broken: then false, *cp as it was. */
static bool decode(const char *data, size_t n, uint32_t *cp, size_t *len)
{
    unsigned char b = (unsigned char)data[0];
    struct lead l = classify(b);
    *len = 1;
    if (l.len == 0)
        return false;
    uint32_t u = l.len == 1 ? b : b & (0x7fU >> l.len);
    for (; *len < l.len; (*len)++) {
        unsigned char c = *len < n ? (unsigned char)data[*len] : 0;
        if (c < (*len == 1 ? l.lo : 0x80) || c > (*len == 1 ? l.hi : 0xbf))
            return false;
        u = u << 6 | (c & 0x3f);
    }
    *cp = u;
    return true;
}

size_t utf8_decode(const char *data, size_t n, uint32_t *cp)
{
    size_t len;
    return n > 0 && decode(data, n, cp, &len) ? len : 0;
}

/* How many bytes at the beginning are printable ASCII, by whole words: what is left is for decode(). */
static size_t printable(const char *data, size_t n)
{
    const uint64_t each = UINT64_C(0x0101010101010101), high = each << 7;
    size_t at = 0;
    for (uint64_t w; n - at >= sizeof(w); at += sizeof(w)) {
        memcpy(&w, data + at, sizeof(w));
        if ((w | (w - each * 0x20) | (w + each)) & high) /* not ASCII, below a blank, or DEL */
            break;
    }
    return at;
}

bool utf8_valid(const char *data, size_t n)
{
    for (size_t at = printable(data, n); at < n; at += printable(data + at, n - at)) {
        uint32_t cp;
        size_t len = utf8_decode(data + at, n - at, &cp);
        if (len == 0 || cp == 0)
            return false;
        at += len;
    }
    return true;
}

uint32_t utf8_next(const char **p)
{
    uint32_t cp = REPLACEMENT;
    size_t len;
    if (**p == '\0')
        return 0;
    (void)decode(*p, strnlen(*p, 4), &cp, &len);
    *p += len;
    return cp;
}

/* ---- scrubbing ---- */

struct scrub {
    struct str *out;
    const char *p, *end;
    size_t line;   /* where the current line begins in out */
    bool returned; /* a CR was seen; what is printed next replaces the line */
};

static void erase_line(struct scrub *s)
{
    if (s->returned && s->out->len > s->line) {
        s->out->len = s->line;
        s->out->buf[s->line] = '\0';
    }
    s->returned = false;
}

static bool in(char c, unsigned char lo, unsigned char hi)
{
    return (unsigned char)c >= lo && (unsigned char)c <= hi;
}

static void skip_range(struct scrub *s, unsigned char lo, unsigned char hi)
{
    while (s->p < s->end && in(*s->p, lo, hi))
        s->p++;
}

/* ECMA-48 5.4: parameters, intermediates, one final byte. A broken sequence ends where it breaks. */
static void skip_csi(struct scrub *s)
{
    skip_range(s, 0x30, 0x3f);
    skip_range(s, 0x20, 0x2f);
    if (s->p < s->end && in(*s->p, 0x40, 0x7e) && *s->p++ == 'K')
        erase_line(s); /* "erase in line": does nothing unless the cursor went back */
}

/* OSC, DCS and their like: up to BEL or ST. Any other control ends it too, lest one stray ESC swallow everything. */
static void skip_string(struct scrub *s)
{
    while (s->p < s->end && !in(*s->p, 0, 0x1f)) {
        uint32_t cp = 0;
        size_t len;
        (void)decode(s->p, (size_t)(s->end - s->p), &cp, &len);
        s->p += len;
        if (cp == ST)
            return;
    }
    if (s->p < s->end && *s->p == BEL)
        s->p++;
    else if (s->end - s->p >= 2 && s->p[0] == ESC && s->p[1] == '\\')
        s->p += 2;
}

static void skip_after_esc(struct scrub *s)
{
    skip_range(s, 0x20, 0x2f);
    if (s->p == s->end || !in(*s->p, 0x30, 0x7e))
        return;
    char kind = *s->p++;
    if (s->p[-2] != ESC)
        return; /* an intermediate byte came first: "ESC ( B" and its like end here */
    if (kind == '[')
        skip_csi(s);
    else if (strchr("]PX^_", kind))
        skip_string(s);
}

/* Overrides and isolates reorder what people read (CVE-2021-42574); marks such as U+200E only place neutrals. */
static bool reorders(uint32_t cp)
{
    return (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
}

static bool is_text(uint32_t cp)
{
    return cp == '\t' || (cp >= 0x20 && cp != 0x7f && !(cp >= 0x80 && cp < 0xa0) && !reorders(cp));
}

/* A C1 control is only dropped, although U+009B means "ESC [": in data it is a sign of a wrong encoding far more often,
 * and without the control what follows is harmless text. */
static void control(struct scrub *s, uint32_t cp)
{
    if (cp == '\n') {
        s->returned = false;
        str_putc(s->out, '\n');
        s->line = s->out->len;
    } else if (cp == '\r') {
        s->returned = true;
    } else if (cp == ESC) {
        skip_after_esc(s);
    }
}

/* Copies up to the next byte that is not plain text; returns false when there was none to copy. */
static bool copy_text(struct scrub *s)
{
    const char *from = s->p;
    for (;;) {
        uint32_t cp;
        s->p += printable(s->p, (size_t)(s->end - s->p));
        if (s->p == s->end)
            break;
        size_t len = utf8_decode(s->p, (size_t)(s->end - s->p), &cp);
        if (len == 0 || !is_text(cp))
            break;
        s->p += len;
    }
    if (s->p == from)
        return false;
    erase_line(s);
    str_add(s->out, from, (size_t)(s->p - from));
    return true;
}

void utf8_scrub(struct str *out, const char *data, size_t n)
{
    struct scrub s = { .out = out, .p = data, .end = data + n, .line = out->len };
    while (s.p < s.end && !out->overflow) {
        uint32_t cp;
        size_t len;
        if (copy_text(&s))
            continue;
        bool good = decode(s.p, (size_t)(s.end - s.p), &cp, &len);
        s.p += len;
        if (good) {
            control(&s, cp);
        } else {
            erase_line(&s);
            str_puts(out, "\xef\xbf\xbd");
        }
    }
}

/* ---- grapheme clusters ---- */

struct cluster {
    const char *p, *end;
    int32_t last, state;
};

/* Consumes one code point (a bad byte counts as one); true when it begins a new cluster. */
static bool next_point(struct cluster *c, int32_t *cp)
{
    uint32_t u = REPLACEMENT;
    size_t len;
    (void)decode(c->p, (size_t)(c->end - c->p), &u, &len);
    *cp = (int32_t)u;
    bool begins = c->last < 0 || utf8proc_grapheme_break_stateful(c->last, *cp, &c->state);
    c->last = *cp;
    c->p += len;
    return begins;
}

size_t utf8_cut(const char *text, size_t n, size_t max_bytes)
{
    if (n <= max_bytes)
        return n;
    struct cluster c = { .p = text, .end = text + n, .last = -1 };
    size_t cut = 0, points = 0;
    for (;;) {
        size_t before = (size_t)(c.p - text);
        int32_t cp;
        if (before > max_bytes)
            break;
        points = before;
        if (c.p == c.end || next_point(&c, &cp))
            cut = before;
    }
    return cut ? cut : points;
}

size_t utf8_width(const char *text, size_t n)
{
    struct cluster c = { .p = text, .end = text + n, .last = -1 };
    size_t total = 0, cluster = 0;
    while (c.p < c.end) {
        int32_t cp;
        if (next_point(&c, &cp)) {
            total += cluster < 2 ? cluster : 2;
            cluster = 0;
        }
        cluster += (size_t)utf8proc_charwidth(cp);
    }
    return total + (cluster < 2 ? cluster : 2);
}

/* ---- normal forms ---- */

static char *normal(const char *text, utf8proc_option_t options)
{
    utf8proc_uint8_t *made = NULL;
    const utf8proc_uint8_t *in_bytes = (const utf8proc_uint8_t *)text;
    utf8proc_ssize_t n = utf8proc_map(in_bytes, 0, &made, options | UTF8PROC_NULLTERM | UTF8PROC_STABLE);
    if (n == UTF8PROC_ERROR_NOMEM)
        abort();
    return n < 0 ? xstrdup(text) : (char *)made;
}

char *utf8_nfc(const char *text)
{
    return normal(text, UTF8PROC_COMPOSE);
}

char *utf8_fold(const char *text)
{
    return normal(text, UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE);
}
