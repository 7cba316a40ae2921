/* markup_plain.c - the tree as text. */
#include <stdio.h>
#include <string.h>
#include "markup_tree.h"

enum { PAD_MAX = 40 /* columns: one endless cell must not stretch all others */ };

static void block(struct str *out, const struct markup *m);

/* ---- runs ---- */

static void run(struct str *out, const struct markup_run *r)
{
    const char *tick = r->style & MARKUP_MONO ? "`" : "";
    str_printf(out, "%s%s%s", tick, r->text, tick);
    if (r->url && strcmp(r->url, r->text) != 0)
        str_printf(out, " (%s)", r->url);
}

static void runs(struct str *out, const struct markup *m)
{
    for (size_t i = 0; i < m->run_n; i++)
        run(out, &m->runs[i]);
}

/* ---- tables ---- */

struct table {
    struct markup const *const m;
    size_t *width; /* columns of the terminal, per column of the table */
    size_t n;
};

static char *cell_text(const struct markup *cell)
{
    struct str s = STR_INIT(MARKUP_MAX);
    runs(&s, cell);
    for (size_t i = 0; i < s.len; i++)
        if (s.buf[i] == '\n')
            s.buf[i] = ' ';
    return str_take(&s);
}

static void measure_row(struct table *t, const struct markup *row)
{
    size_t i = 0;
    for (const struct markup *c = row->first; c; c = c->next, i++) {
        autofree char *text = cell_text(c);
        const size_t w = utf8_width(text, strlen(text));
        if (i == t->n) {
            size_t cap = t->n;
            t->width = xgrow(t->width, &cap, ++t->n, sizeof(*t->width));
            t->width[i] = 1;
        }
        if (w > t->width[i])
            t->width[i] = w < PAD_MAX ? w : PAD_MAX;
    }
}

static void pad(struct str *out, size_t n)
{
    while (n--)
        str_putc(out, ' ');
}

static void put_row(struct str *out, const struct table *t, const struct markup *row)
{
    size_t i = 0;
    for (const struct markup *c = row->first; c; c = c->next, i++) {
        autofree char *text = cell_text(c);
        const size_t w = utf8_width(text, strlen(text)), room = w < t->width[i] ? t->width[i] - w : 0;
        const size_t before = c->align == MARKUP_RIGHT ? room : c->align == MARKUP_CENTER ? room / 2 : 0;
        str_puts(out, i ? " | " : "");
        pad(out, before);
        str_puts(out, text);
        if (c->next)
            pad(out, room - before);
    }
}

static void table(struct str *out, const struct markup *m)
{
    struct table t = { .m = m };
    for (const struct markup *row = m->first; row; row = row->next)
        measure_row(&t, row);
    for (const struct markup *row = m->first; row; row = row->next) {
        put_row(out, &t, row);
        str_puts(out, row->next ? "\n" : "");
        for (size_t i = 0; row == m->first && i < t.n; i++) {
            str_puts(out, i ? "-|-" : "");
            for (size_t k = 0; k < t.width[i]; k++)
                str_putc(out, '-');
        }
        if (row == m->first && row->next)
            str_putc(out, '\n');
    }
    free(t.width);
}

/* ---- blocks ---- */

/* Every line of text behind a prefix; the first one's may differ. */
static void indent(struct str *out, const char *text, const char *first, const char *others)
{
    const char *prefix = first;
    while (*text) {
        const size_t n = strcspn(text, "\n");
        str_puts(out, n || prefix == first ? prefix : "");
        str_add(out, text, n);
        text += n;
        if (*text == '\n') {
            str_putc(out, '\n');
            text++;
        }
        prefix = others;
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void blocks(struct str *out, const struct markup *m, const char *between)
{
    for (const struct markup *x = m->first; x; x = x->next) {
        block(out, x);
        str_puts(out, x->next ? between : "");
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void inner(struct str *out, const struct markup *m, const char *first, const char *others)
{
    AUTO(str_clear) struct str s = STR_INIT(MARKUP_MAX);
    blocks(&s, m, m->tight ? "\n" : "\n\n");
    if (s.len)
        indent(out, str_peek(&s), first, others);
    else
        str_puts(out, first);
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void list(struct str *out, const struct markup *m)
{
    int64_t number = m->start;
    for (const struct markup *item = m->first; item; item = item->next) {
        char mark[40];
        const char *box = !item->task ? "" : item->done ? "[x] " : "[ ] ";
        if (m->ordered)
            (void)snprintf(mark, sizeof(mark), "%lld. %s", (long long)number++, box);
        else
            (void)snprintf(mark, sizeof(mark), "- %s", box);
        inner(out, item, mark, m->ordered ? "   " : "  ");
        str_puts(out, !item->next ? "" : m->tight ? "\n" : "\n\n");
    }
}

static void code(struct str *out, const struct markup *m)
{
    const char *text = m->run_n ? m->runs[0].text : "";
    const char *fence = strstr(text, "```") ? "~~~~" : "```";
    const size_t n = strlen(text);
    str_printf(out, "%s%s\n%s%s%s", fence, m->language ? m->language : "", text, n && text[n - 1] != '\n' ? "\n" : "",
               fence);
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void block(struct str *out, const struct markup *m)
{
    switch (m->kind) {
    case MARKUP_DOC: blocks(out, m, "\n\n"); break;
    case MARKUP_QUOTE: inner(out, m, "> ", "> "); break;
    case MARKUP_LIST: list(out, m); break;
    case MARKUP_TABLE: table(out, m); break;
    case MARKUP_CODE: code(out, m); break;
    case MARKUP_RULE: str_puts(out, "---"); break;
    case MARKUP_ITEM:
    case MARKUP_ROW: blocks(out, m, "\n"); break;
    case MARKUP_PARAGRAPH:
    case MARKUP_HEADING:
    case MARKUP_CELL: runs(out, m); break;
    }
}

void markup_plain(struct str *out, const struct markup *m)
{
    block(out, m);
}
