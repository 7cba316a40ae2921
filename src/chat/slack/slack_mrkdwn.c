/* slack_mrkdwn.c - an answer as mrkdwn, for when Slack refuses blocks. Its marks count only at the edges of words, so a zero-width
 * space stands where there is none. */
#include <ctype.h>
#include "chat/markup.h"
#include "slack_blocks.h"
#include "slack_text.h"

#define ZERO_WIDTH "\xe2\x80\x8b"

static void blocks(struct str *out, const struct markup *parent, const char *indent);

static bool is_edge(unsigned char c)
{
    return c == '\0' || isspace(c) || (c < 0x80 && ispunct(c));
}

static void mark(struct str *out, unsigned style, bool closing)
{
    static const struct {
        unsigned bit;
        char c;
    } marks[] = { { MARKUP_BOLD, '*' }, { MARKUP_ITALIC, '_' }, { MARKUP_STRIKE, '~' }, { MARKUP_MONO, '`' } };
    for (size_t k = 0; k < countof(marks); k++) {
        const size_t i = closing ? countof(marks) - 1 - k : k;
        if (style & marks[i].bit)
            str_putc(out, marks[i].c);
    }
}

static void words(struct str *out, const struct markup_run *r)
{
    if (!r->url || !slack_text_is_link(r->url)) {
        slack_text_escape(out, r->text, r->len);
        return;
    }
    AUTO(str_clear) struct str label = STR_INIT(64 << 10);
    for (size_t i = 0; i < r->len; i++)
        if (r->text[i] != '|')
            str_putc(&label, r->text[i]);
    str_putc(out, '<');
    slack_text_escape(out, r->url, strlen(r->url));
    str_putc(out, '|');
    slack_text_escape(out, str_peek(&label), label.len);
    str_putc(out, '>');
}

static void run(struct str *out, const struct markup_run *r, const struct markup_run *next, unsigned more)
{
    const unsigned style = r->style | more;
    const bool blank = r->text[strspn(r->text, " \n")] == '\0';
    if (!style || blank) {
        words(out, r);
        return;
    }
    if (out->len && !is_edge((unsigned char)out->buf[out->len - 1]))
        str_puts(out, ZERO_WIDTH);
    mark(out, style, false);
    words(out, r);
    mark(out, style, true);
    if (next && !is_edge((unsigned char)next->text[0]))
        str_puts(out, ZERO_WIDTH);
}

static void runs(struct str *out, const struct markup *m, unsigned more)
{
    for (size_t i = 0; i < m->run_n; i++)
        run(out, &m->runs[i], i + 1 < m->run_n ? &m->runs[i + 1] : NULL, more);
}

static void code(struct str *out, const char *text, size_t n)
{
    str_puts(out, "```\n");
    slack_text_escape(out, text, n);
    str_puts(out, n && text[n - 1] == '\n' ? "```" : "\n```");
}

static void table(struct str *out, const struct markup *m)
{
    AUTO(str_clear) struct str text = STR_INIT(1 << 20);
    struct markup *doc = markup_parse("");
    markup_append(doc, markup_dup(m));
    markup_plain(&text, doc);
    markup_free(doc);
    code(out, str_peek(&text), text.len);
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void quoted(struct str *out, const struct markup *m, const char *indent)
{
    AUTO(str_clear) struct str inner = STR_INIT(1 << 20);
    blocks(&inner, m, indent);
    str_puts(out, "> ");
    for (const char *c = str_peek(&inner); *c; c++) {
        str_putc(out, *c);
        if (*c == '\n')
            str_puts(out, "> ");
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void list(struct str *out, const struct markup *m, const char *indent)
{
    autofree char *deeper = xasprintf("%s    ", indent);
    int64_t n = m->start;
    for (const struct markup *item = m->first; item; item = item->next) {
        str_puts(out, indent);
        if (m->ordered)
            str_printf(out, "%lld. ", (long long)n++);
        else
            str_puts(out, item->task ? (item->done ? "☑ " : "☐ ") : "• ");
        blocks(out, item, deeper);
        if (item->next)
            str_putc(out, '\n');
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void block(struct str *out, const struct markup *m, const char *indent)
{
    switch (m->kind) {
    case MARKUP_HEADING: runs(out, m, MARKUP_BOLD); break;
    case MARKUP_PARAGRAPH:
    case MARKUP_CELL: runs(out, m, 0); break;
    case MARKUP_CODE: code(out, m->run_n ? m->runs[0].text : "", m->run_n ? m->runs[0].len : 0); break;
    case MARKUP_RULE: str_puts(out, "———"); break;
    case MARKUP_TABLE: table(out, m); break;
    case MARKUP_QUOTE: quoted(out, m, indent); break;
    case MARKUP_LIST: list(out, m, indent); break;
    case MARKUP_DOC:
    case MARKUP_ITEM:
    case MARKUP_ROW: blocks(out, m, indent); break;
    }
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static void blocks(struct str *out, const struct markup *parent, const char *indent)
{
    for (const struct markup *m = parent->first; m; m = m->next) {
        block(out, m, indent);
        if (m->next)
            str_puts(out, parent->kind == MARKUP_ITEM ? "\n" : "\n\n");
    }
}

void slack_mrkdwn(struct str *out, const struct markup *doc)
{
    blocks(out, doc, "");
}
