/* markup.c - from md4c's callbacks to a tree. */
#include "markup_tree.h"
#include <string.h>
#include <md4c.h>

enum {
    RUN_MAX = MARKUP_MAX,
    URL_MAX = 2048,
    LANGUAGE_MAX = 32,
    SPANS_MAX = 64, /* spans within spans that count */
};

struct span {
    unsigned style;
    char *url;
};

struct reader {
    struct markup *at[MARKUP_DEPTH_MAX + 1]; /* from the document to the open block */
    int depth;                               /* of the open block; may pass the limit, then the last one is kept */
    struct span spans[SPANS_MAX];
    int span_n; /* may pass the limit */
};

/* ---- the tree ---- */

struct markup *markup_new(enum markup_kind kind)
{
    struct markup *m = xcalloc(1, sizeof(*m));
    m->kind = kind;
    return m;
}

static void runs_clear(struct markup *m)
{
    for (size_t i = 0; i < m->run_n; i++) {
        free(m->runs[i].text);
        free(m->runs[i].url);
    }
    free(m->runs);
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
void markup_free(struct markup *m)
{
    if (!m)
        return;
    while (m->first) { /* recursion is as deep as MARKUP_DEPTH_MAX */
        struct markup *child = m->first;
        m->first = child->next;
        markup_free(child);
    }
    runs_clear(m);
    free(m->language);
    free(m);
}

void markup_append(struct markup *m, struct markup *take_block)
{
    take_block->next = NULL;
    if (m->last)
        m->last->next = take_block;
    else
        m->first = take_block;
    m->last = take_block;
}

static bool same_url(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

void markup_add_run(struct markup *m, const char *text, size_t n, unsigned style, const char *url)
{
    struct markup_run *last = m->run_n ? &m->runs[m->run_n - 1] : NULL;
    if (!last || last->style != style || !same_url(last->url, url)) {
        m->runs = xgrow(m->runs, &m->run_cap, m->run_n + 1, sizeof(*m->runs));
        last = &m->runs[m->run_n++];
        *last = (struct markup_run){ .url = xstrdup_or_null(url), .style = style };
    }
    last->text = xgrow(last->text, &last->cap, last->len + n + 1, 1);
    memcpy(last->text + last->len, text, n);
    last->len += n;
}

struct markup *markup_shell(const struct markup *m)
{
    struct markup *d = markup_new(m->kind);
    *d = *m;
    d->next = d->first = d->last = NULL;
    d->runs = NULL;
    d->run_n = d->run_cap = 0;
    d->language = xstrdup_or_null(m->language);
    return d;
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
struct markup *markup_dup(const struct markup *m)
{
    struct markup *d = markup_shell(m);
    for (size_t i = 0; i < m->run_n; i++)
        markup_add_run(d, m->runs[i].text, m->runs[i].len, m->runs[i].style, m->runs[i].url);
    for (const struct markup *x = m->first; x; x = x->next)
        markup_append(d, markup_dup(x));
    return d;
}

struct markup *markup_of_text(const char *text)
{
    struct markup *doc = markup_new(MARKUP_DOC), *block = markup_new(MARKUP_PARAGRAPH);
    markup_add_run(block, text, strlen(text), 0, NULL);
    markup_append(doc, block);
    return doc;
}

/* ---- blocks ---- */

bool markup_holds_runs(const struct markup *m)
{
    return m->kind == MARKUP_PARAGRAPH || m->kind == MARKUP_HEADING || m->kind == MARKUP_CELL || m->kind == MARKUP_CODE;
}

/* Blocks whose children are of one kind only. */
static bool holds_parts(const struct markup *m)
{
    return m->kind == MARKUP_LIST || m->kind == MARKUP_TABLE || m->kind == MARKUP_ROW || m->kind == MARKUP_RULE;
}

static struct markup *open_block(struct reader *r)
{
    return r->at[r->depth < MARKUP_DEPTH_MAX ? r->depth : MARKUP_DEPTH_MAX];
}

/* Where text goes: what is too deep, or in a tight list's item, has no paragraph of its own in md4c's eyes. */
static struct markup *text_block(struct reader *r)
{
    struct markup *m = open_block(r);
    if (markup_holds_runs(m))
        return m;
    for (int up = r->depth < MARKUP_DEPTH_MAX ? r->depth : MARKUP_DEPTH_MAX; holds_parts(m); up--)
        m = r->at[up - 1];
    if (!m->last || m->last->kind != MARKUP_PARAGRAPH)
        markup_append(m, markup_new(MARKUP_PARAGRAPH));
    return m->last;
}

/* Cells only in rows, items only in lists, and nothing else there: renderers rely on it. */
static bool fits(const struct markup *in, enum markup_kind kind)
{
    return in->kind == MARKUP_LIST    ? kind == MARKUP_ITEM
           : in->kind == MARKUP_TABLE ? kind == MARKUP_ROW
           : in->kind == MARKUP_ROW   ? kind == MARKUP_CELL
                                      : kind != MARKUP_ITEM && kind != MARKUP_ROW && kind != MARKUP_CELL;
}

static struct markup *push(struct reader *r, enum markup_kind kind)
{
    struct markup *m = NULL;
    if (r->depth < MARKUP_DEPTH_MAX && !markup_holds_runs(open_block(r)) && fits(open_block(r), kind)) {
        m = markup_new(kind);
        markup_append(open_block(r), m);
        r->at[r->depth + 1] = m;
    } else if (r->depth < MARKUP_DEPTH_MAX) {
        r->at[r->depth + 1] = open_block(r);
    }
    r->depth++;
    return m;
}

static bool is_language_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("+-#._", c));
}

static char *language_of(const MD_ATTRIBUTE *a)
{
    size_t n = 0;
    while (n < a->size && n < LANGUAGE_MAX && is_language_char(a->text[n]))
        n++;
    return n ? xstrndup(a->text, n) : NULL;
}

static void enter_list(struct reader *r, bool ordered, int64_t start, bool tight)
{
    struct markup *m = push(r, MARKUP_LIST);
    if (!m)
        return;
    m->ordered = ordered;
    m->start = start;
    m->tight = tight;
}

static void enter_item(struct reader *r, const MD_BLOCK_LI_DETAIL *d)
{
    const bool tight = open_block(r)->tight;
    struct markup *m = push(r, MARKUP_ITEM);
    if (!m)
        return;
    m->tight = tight;
    m->task = d->is_task != 0;
    m->done = d->is_task && d->task_mark != ' ';
}

static void enter_cell(struct reader *r, const MD_BLOCK_TD_DETAIL *d)
{
    struct markup *m = push(r, MARKUP_CELL);
    if (m)
        m->align = d->align == MD_ALIGN_RIGHT    ? MARKUP_RIGHT
                   : d->align == MD_ALIGN_CENTER ? MARKUP_CENTER
                                                 : MARKUP_LEFT;
}

static void enter_heading(struct reader *r, const MD_BLOCK_H_DETAIL *d)
{
    struct markup *m = push(r, MARKUP_HEADING);
    if (m)
        m->level = (int)d->level;
}

static void enter_code(struct reader *r, const MD_BLOCK_CODE_DETAIL *d)
{
    struct markup *m = push(r, MARKUP_CODE);
    if (m)
        m->language = language_of(&d->lang);
}

static int on_enter_block(MD_BLOCKTYPE type, void *detail, void *ud)
{
    struct reader *r = ud;
    switch (type) {
    case MD_BLOCK_DOC:
    case MD_BLOCK_THEAD:
    case MD_BLOCK_TBODY: break; /* no frame of their own */
    case MD_BLOCK_QUOTE: (void)push(r, MARKUP_QUOTE); break;
    case MD_BLOCK_UL: enter_list(r, false, 1, ((const MD_BLOCK_UL_DETAIL *)detail)->is_tight != 0); break;
    case MD_BLOCK_OL:
        enter_list(r, true, ((const MD_BLOCK_OL_DETAIL *)detail)->start,
                   ((const MD_BLOCK_OL_DETAIL *)detail)->is_tight != 0);
        break;
    case MD_BLOCK_LI: enter_item(r, detail); break;
    case MD_BLOCK_HR: (void)push(r, MARKUP_RULE); break;
    case MD_BLOCK_H: enter_heading(r, detail); break;
    case MD_BLOCK_CODE: enter_code(r, detail); break;
    case MD_BLOCK_HTML:
    case MD_BLOCK_P: (void)push(r, MARKUP_PARAGRAPH); break;
    case MD_BLOCK_TABLE: (void)push(r, MARKUP_TABLE); break;
    case MD_BLOCK_TR: (void)push(r, MARKUP_ROW); break;
    case MD_BLOCK_TH:
    case MD_BLOCK_TD: enter_cell(r, detail); break;
    }
    return 0;
}

static int on_leave_span(MD_SPANTYPE type, void *detail, void *ud)
{
    (void)type;
    (void)detail;
    struct reader *r = ud;
    if (r->span_n && --r->span_n < SPANS_MAX)
        free(take(r->spans[r->span_n].url));
    return 0;
}

static int on_leave_block(MD_BLOCKTYPE type, void *detail, void *ud)
{
    (void)detail;
    struct reader *r = ud;
    if (r->depth && type != MD_BLOCK_DOC && type != MD_BLOCK_THEAD && type != MD_BLOCK_TBODY)
        r->depth--;
    while (r->span_n) /* md4c does not always leave what it entered, nor the other way round */
        (void)on_leave_span(MD_SPAN_EM, NULL, r);
    return 0;
}

/* ---- spans ---- */

static bool is_web_address(const char *url)
{
    static const char *const schemes[] = { "https://", "http://", "mailto:" };
    for (size_t i = 0; i < countof(schemes); i++)
        if (strncasecmp(url, schemes[i], strlen(schemes[i])) == 0)
            return url[strlen(schemes[i])] != '\0';
    return false;
}

/* Entities within an address are rare; those that matter are put right. */
static char *url_of(const MD_ATTRIBUTE *a)
{
    struct str s = STR_INIT(URL_MAX);
    for (size_t i = 0; i < a->size; i++) {
        static const char amp[] = "&amp;";
        const bool entity = a->size - i >= strlen(amp) && strncmp(a->text + i, amp, strlen(amp)) == 0;
        if ((unsigned char)a->text[i] > ' ' && a->text[i] != 0x7f)
            str_putc(&s, a->text[i]);
        i += entity ? strlen(amp) - 1 : 0;
    }
    if (!s.overflow && is_web_address(str_peek(&s)))
        return str_take(&s);
    str_clear(&s);
    return NULL;
}

static const struct span *top_span(const struct reader *r)
{
    static const struct span none = { 0 };
    const int n = r->span_n < SPANS_MAX ? r->span_n : SPANS_MAX;
    return n ? &r->spans[n - 1] : &none;
}

static int on_enter_span(MD_SPANTYPE type, void *detail, void *ud)
{
    struct reader *r = ud;
    const struct span *over = top_span(r);
    struct span s = { .style = over->style, .url = xstrdup_or_null(over->url) };
    if (type == MD_SPAN_A || type == MD_SPAN_IMG) {
        free(s.url);
        s.url = url_of(type == MD_SPAN_A ? &((const MD_SPAN_A_DETAIL *)detail)->href
                                         : &((const MD_SPAN_IMG_DETAIL *)detail)->src);
    }
    s.style |= type == MD_SPAN_EM       ? MARKUP_ITALIC
               : type == MD_SPAN_STRONG ? MARKUP_BOLD
               : type == MD_SPAN_DEL    ? MARKUP_STRIKE
               : type == MD_SPAN_CODE   ? MARKUP_MONO
                                        : 0;
    if (r->span_n < SPANS_MAX)
        r->spans[r->span_n] = s;
    else
        free(s.url);
    r->span_n++;
    return 0;
}

/* ---- text ---- */

static size_t put_code_point(char out[4], uint32_t cp)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

static uint32_t numeric_entity(const char *text, size_t n)
{
    char digits[12] = { 0 };
    const bool hex = n > 3 && (text[2] == 'x' || text[2] == 'X');
    const size_t skip = hex ? 3 : 2;
    if (n - skip - 1 >= sizeof(digits))
        return 0xfffd;
    memcpy(digits, text + skip, n - skip - 1);
    const unsigned long cp = strtoul(digits, NULL, hex ? 16 : 10);
    const bool good = cp >= 0x20 && cp != 0x7f && !(cp >= 0x80 && cp < 0xa0) && !(cp >= 0xd800 && cp < 0xe000);
    return good && cp <= 0x10ffff ? (uint32_t)cp : 0xfffd;
}

/* Those that people use; others stay as they were written. */
static void add_entity(struct markup *m, const char *text, size_t n, const struct span *s)
{
    static const char *const named[][2] = {
        { "&amp;", "&" },  { "&lt;", "<" },     { "&gt;", ">" },    { "&quot;", "\"" },  { "&apos;", "'" },
        { "&nbsp;", " " }, { "&copy;", "©" },   { "&times;", "×" }, { "&plusmn;", "±" }, { "&deg;", "°" },
        { "&euro;", "€" }, { "&hellip;", "…" }, { "&ndash;", "–" }, { "&mdash;", "—" },  { "&le;", "≤" },
        { "&ge;", "≥" },   { "&rarr;", "→" },   { "&bull;", "•" },  { "&micro;", "µ" },  { "&middot;", "·" },
    };
    char cp[4];
    if (n > 3 && text[1] == '#') {
        markup_add_run(m, cp, put_code_point(cp, numeric_entity(text, n)), s->style, s->url);
        return;
    }
    for (size_t i = 0; i < countof(named); i++)
        if (strlen(named[i][0]) == n && strncmp(named[i][0], text, n) == 0) {
            markup_add_run(m, named[i][1], strlen(named[i][1]), s->style, s->url);
            return;
        }
    markup_add_run(m, text, n, s->style, s->url);
}

static int on_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE n, void *ud)
{
    struct reader *r = ud;
    struct markup *m = text_block(r);
    const struct span *s = top_span(r);
    switch (type) {
    case MD_TEXT_NULLCHAR: markup_add_run(m, "\xef\xbf\xbd", 3, s->style, s->url); break;
    case MD_TEXT_BR:
    case MD_TEXT_SOFTBR: markup_add_run(m, "\n", 1, s->style, s->url); break;
    case MD_TEXT_ENTITY: add_entity(m, text, n, s); break;
    case MD_TEXT_NORMAL:
    case MD_TEXT_CODE:
    case MD_TEXT_HTML:
    case MD_TEXT_LATEXMATH: markup_add_run(m, text, n, s->style, s->url); break;
    }
    return 0;
}

/* ---- the document ---- */

static const MD_PARSER parser = {
    .flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS | MD_FLAG_NOHTML |
             MD_FLAG_PERMISSIVEURLAUTOLINKS | MD_FLAG_NOINDENTEDCODEBLOCKS,
    .enter_block = on_enter_block,
    .leave_block = on_leave_block,
    .enter_span = on_enter_span,
    .leave_span = on_leave_span,
    .text = on_text,
};

struct markup *markup_parse(const char *markdown)
{
    struct str clean = STR_INIT((size_t)RUN_MAX * 3);
    const size_t n = strnlen(markdown, MARKUP_MAX);
    utf8_scrub(&clean, markdown, n);
    struct markup *doc = markup_new(MARKUP_DOC);
    struct reader r = { .at = { doc } };
    if (md_parse(str_peek(&clean), (MD_SIZE)clean.len, &parser, &r) != 0) { /* only when memory ran out */
        markup_free(doc);
        doc = markup_of_text(str_peek(&clean));
    }
    str_clear(&clean);
    return doc;
}
