/* answer.c - links that lead nowhere, pictures that would call out, names that would call people. */
#include "answer.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "str.h"
#include "core/words.h"

enum {
    ANSWER_MAX = 16 << 20,
    MISSING_MAX = 5, /* names said to be missing; more would only repeat the point */
};

/* [text](target) or ![text](target) */
struct link {
    const char *text, *target, *end;
    size_t text_n, target_n;
    bool picture;
};

struct missing {
    char *names[MISSING_MAX];
    size_t n;
};

static bool read_link(struct link *out, const char *at)
{
    *out = (struct link){ .picture = *at == '!' };
    at += out->picture;
    if (*at != '[')
        return false;
    out->text = at + 1;
    out->text_n = strcspn(out->text, "[]\n");
    at = out->text + out->text_n;
    if (at[0] != ']' || at[1] != '(')
        return false;
    out->target = at + 2;
    out->target_n = strcspn(out->target, "()\n");
    /* one pair of brackets inside, as in "a (1).csv" */
    if (out->target[out->target_n] == '(') {
        const size_t inner = out->target_n + 1 + strcspn(out->target + out->target_n + 1, "()\n");
        if (out->target[inner] == ')')
            out->target_n = inner + 1 + strcspn(out->target + inner + 1, "()\n");
    }
    out->end = out->target + out->target_n + 1;
    return out->target[out->target_n] == ')';
}

static bool begins(const struct link *l, const char *prefix)
{
    const size_t n = strlen(prefix);
    return l->target_n >= n && memcmp(l->target, prefix, n) == 0;
}

/* Into the box, or nowhere: an address of the box, or a bare file name. Other brackets are no business of ours. */
static bool leads_in(const struct link *l)
{
    static const char *const inside[] = { "sandbox:", "attachment:", "file:", "/mnt/data", "out/", "./" };
    for (size_t i = 0; i < countof(inside); i++)
        if (begins(l, inside[i]))
            return true;
    const char *dot = memrchr(l->target, '.', l->target_n);
    const size_t extension = dot ? l->target_n - (size_t)(dot + 1 - l->target) : 0;
    return dot && dot != l->target && extension >= 1 && extension <= 7 && !memchr(dot, ' ', extension) &&
           !memchr(l->target, ':', l->target_n) && !memchr(l->target, '@', l->target_n);
}

/* ---- was it written? ---- */

static bool names_it(const struct artifacts *made, const char *name)
{
    for (size_t i = 0; i < made->n; i++) {
        const char *slash = strrchr(made->at[i].name, '/');
        if (strcmp(slash ? slash + 1 : made->at[i].name, name) == 0)
            return true;
    }
    return false;
}

static bool was_made(const struct link *l, const char *name, const struct agent_cell *cells, size_t cell_n)
{
    for (size_t i = 0; i < cell_n; i++) {
        if (names_it(&cells[i].cell.files, name) || names_it(&cells[i].cell.figures, name))
            return true;
        if (l->picture && cells[i].cell.figures.n)
            return true; /* whatever it is called: a figure was posted */
    }
    return false;
}

/* Names that could be read as Markdown are none that a person would look for. */
static bool is_showable(const char *name)
{
    return *name && !strpbrk(name, "`[]<>\n");
}

static void note_missing(struct missing *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->names[i], name) == 0)
            return;
    if (is_showable(name) && m->n < MISSING_MAX)
        m->names[m->n++] = xstrdup(name);
}

/* The last part of the target, with %20 and its like read; a title in quotes is no part of it. */
static char *linked_name(const struct link *l)
{
    AUTO(str_clear) struct str name = STR_INIT(ANSWER_MAX);
    const char *title = memmem(l->target, l->target_n, " \"", 2);
    const size_t n = title ? (size_t)(title - l->target) : l->target_n;
    const char *slash = memrchr(l->target, '/', n);
    for (const char *c = slash ? slash + 1 : l->target; c < l->target + n; c++) {
        if (*c == '%' && isxdigit((unsigned char)c[1]) && isxdigit((unsigned char)c[2])) {
            const char hex[] = { c[1], c[2], '\0' };
            str_putc(&name, (char)strtoul(hex, NULL, 16));
            c += 2;
        } else {
            str_putc(&name, *c);
        }
    }
    if (memchr(str_peek(&name), '\0', name.len) || !utf8_valid(str_peek(&name), name.len))
        return xstrdup("");
    return str_take(&name);
}

/* ---- the text ---- */

static void add_link_in(struct str *out, const struct link *l, struct missing *m, const struct agent_cell *cells,
                        size_t cell_n)
{
    autofree char *name = linked_name(l);
    const bool made = was_made(l, name, cells, cell_n);
    if (!made)
        note_missing(m, name);
    if (l->picture)
        return;
    str_add(out, l->text, l->text_n);
    if (made && is_showable(name) && !memmem(l->text, l->text_n, name, strlen(name)))
        str_printf(out, "%s`%s`", l->text_n ? ": " : "", name); /* what is attached, by its name */
}

/* ---- mentions: a model notifies nobody ---- */

static bool leads_to_person(const struct link *l)
{
    return begins(l, "https://matrix.to/#/") || begins(l, "http://matrix.to/#/") || begins(l, "matrix:");
}

/* @room and its like, Slack's <!channel> and <@U1>, and tags that load something: bent so that they are only words. Returns the
 * bytes read, 0 when nothing of that begins here. */
static size_t add_bent(struct str *out, const char *at)
{
    static const char gap[] = "\xe2\x80\x8b"; /* zero width */
    static const char *const calls[] = { "@room", "@here", "@channel", "@everyone", "@all" };
    static const char *const tags[] = { "<!",     "<@",      "<img",   "<iframe", "<video",
                                        "<audio", "<object", "<embed", "<script", "<style",
                                        "<link",  "<svg",    "<form",  "<base",   "<meta" };
    for (size_t i = 0; i < countof(calls); i++) {
        if (strncasecmp(at, calls[i], strlen(calls[i])) != 0 || isalnum((unsigned char)at[strlen(calls[i])]))
            continue;
        str_printf(out, "@%s", gap);
        return 1;
    }
    for (size_t i = 0; i < countof(tags); i++) {
        if (strncasecmp(at, tags[i], strlen(tags[i])) != 0)
            continue;
        str_puts(out, "&lt;");
        return 1;
    }
    return 0;
}

/* ---- what nobody should see ---- */

/* Signs that turn text around or hide in it; joiners and marks that languages need stay. Bytes, 0: none. */
static size_t hidden_sign(const char *at)
{
    const char *end = at;
    const uint32_t cp = (unsigned char)*at >= 0xc0 ? utf8_next(&end) : 0;
    const bool hidden = (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2060 && cp <= 0x2069) || cp == 0xfeff ||
                        (cp >= 0xe0000 && cp <= 0xe007f);
    return hidden ? (size_t)(end - at) : 0;
}

static char *without_hidden(const char *text)
{
    AUTO(str_clear) struct str out = STR_INIT(SIZE_MAX);
    for (const char *at = text; *at;) {
        const size_t n = hidden_sign(at);
        if (!n)
            str_putc(&out, *at);
        at += n ? n : 1;
    }
    return str_take(&out);
}

/* A picture or file written out as text: bytes, 0: it is not so long, or of one kind of letters only, as a sequence of bases is. */
static size_t data_run(const char *at)
{
    enum { RUN_MAX = 512, RARE = 64 };
    const size_t n = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-");
    size_t capitals = 0, small = 0, digits = 0;
    for (size_t i = 0; n > RUN_MAX && i < n; i++) {
        capitals += isupper((unsigned char)at[i]) != 0;
        small += islower((unsigned char)at[i]) != 0;
        digits += isdigit((unsigned char)at[i]) != 0;
    }
    return capitals > n / RARE && small > n / RARE && digits > n / RARE ? n : 0;
}

/* "sandbox:/mnt/data/out/t.csv", "file:///mnt/data/t.csv": what stands before the name that people know; 0: nothing does. */
static size_t address_prefix(const char *begin, const char *at)
{
    static const char *const prefixes[] = { "sandbox:/mnt/data/", "sandbox:/", "file:///mnt/data/", "file://",
                                            "attachment://",      "/mnt/data/" };
    if (at > begin && (isalnum((unsigned char)at[-1]) || strchr("/:", at[-1])))
        return 0;
    for (size_t i = 0; i < countof(prefixes); i++)
        if (strncasecmp(at, prefixes[i], strlen(prefixes[i])) == 0)
            return strlen(prefixes[i]);
    return 0;
}

/* "[1]: sandbox:/mnt/data/t.csv", a line of its own: bytes, 0: there is none. */
static size_t reference(const char *begin, const char *at)
{
    const size_t label = strcspn(at, "]\n");
    const char *target = at[label] == ']' && at[label + 1] == ':' ? at + label + 2 : NULL;
    if (!target || (at > begin && at[-1] != '\n'))
        return 0;
    target += strspn(target, " <");
    const struct link l = { .target = target, .target_n = strcspn(target, " >\n") };
    return leads_in(&l) ? (size_t)(target + strcspn(target, "\n") - at) : 0;
}

/* No "!" is left right before a "[": whatever follows, it is no picture. */
static void add_bracket(struct str *out, bool picture, bool whole)
{
    if (picture && !whole)
        str_putc(out, '!');
    if (out->len && out->buf[out->len - 1] == '!')
        str_putc(out, ' ');
    str_putc(out, '[');
}

/* A run of backticks opens code that ends at the next run as long; inside, nothing is a link. */
static size_t code_span(const char *at)
{
    const size_t ticks = strspn(at, "`");
    const char *end = at + ticks;
    for (;;) {
        end = strchr(end, '`');
        if (!end)
            return ticks;
        const size_t n = strspn(end, "`");
        end += n;
        if (n == ticks)
            return (size_t)(end - at);
    }
}

/* What is left out, or said in short: bytes, 0: nothing is. */
static size_t skip_unseen(struct str *out, const char *begin, const char *at)
{
    const size_t run = data_run(at);
    if (run)
        str_printf(out, "[%zu bytes]", run);
    if (run)
        return run;
    const size_t angle = *at == '<' ? address_prefix(at + 1, at + 1) : 0, end = angle ? strcspn(at, "> \n") : 0;
    if (angle && at[end] == '>') {
        str_add(out, at + 1 + angle, end - 1 - angle);
        return end + 1;
    }
    const size_t n = *at == '[' ? reference(begin, at) : 0;
    return n ? n : address_prefix(begin, at);
}

static const char *add_next(struct str *out, const char *begin, const char *at, struct missing *m,
                            const struct agent_cell *cells, size_t cell_n)
{
    struct link l;
    const size_t unseen = *at == '`' ? 0 : skip_unseen(out, begin, at);
    if (unseen)
        return at + unseen;
    if (*at == '`') {
        const size_t n = code_span(at);
        str_add(out, at, n);
        return at + n;
    }
    if (*at == '[' || (at[0] == '!' && at[1] == '[')) {
        const bool whole = read_link(&l, at);
        if (whole && begins(&l, "data:")) {
            str_add(out, l.text, l.picture ? 0 : l.text_n);
            return l.end;
        }
        if (whole && leads_in(&l)) {
            add_link_in(out, &l, m, cells, cell_n);
            return l.end;
        }
        if (whole && leads_to_person(&l)) {
            str_add(out, l.text, l.text_n);
            return l.end;
        }
        add_bracket(out, *at == '!', whole);
        return at + (*at == '!') + 1;
    }
    const size_t bent = add_bent(out, at);
    if (!bent)
        str_putc(out, *at);
    return at + 1;
}

char *answer_clean(const char *markdown, const struct agent_cell *cells, size_t cell_n, const char *language)
{
    AUTO(str_clear) struct str out = STR_INIT(ANSWER_MAX);
    struct missing m = { 0 };
    autofree char *seen = without_hidden(markdown);
    const char *begin = seen + strspn(seen, " \t\n");
    for (const char *at = begin; *at;)
        at = add_next(&out, begin, at, &m, cells, cell_n);
    while (out.len && strchr(" \t\n", out.buf[out.len - 1]))
        out.len--;
    for (size_t i = 0; i < m.n; i++) {
        autofree char *line = words(WORD_NOT_WRITTEN, language, m.names[i], NULL);
        str_printf(&out, "\n\n%s", line);
        free(m.names[i]);
    }
    str_add(&out, "", 0);
    return str_take(&out);
}

/* ---- programs ---- */

static bool opens_program(const char *line)
{
    static const char *const openers[] = { "```python", "```py\n", "```py\r" };
    for (size_t i = 0; i < countof(openers); i++)
        if (strncmp(line, openers[i], strlen(openers[i])) == 0)
            return true;
    return false;
}

char *answer_without_programs(const char *markdown)
{
    AUTO(str_clear) struct str out = STR_INIT(SIZE_MAX);
    bool inside = false, other = false; /* other: a block that is no program */
    for (const char *line = markdown; *line;) {
        const char *end = strchr(line, '\n');
        const size_t n = end ? (size_t)(end + 1 - line) : strlen(line);
        const bool fence = strncmp(line, "```", 3) == 0;
        if (inside) {
            inside = !fence;
        } else if (!other && opens_program(line)) {
            inside = true;
        } else {
            other = fence ? !other : other;
            str_add(&out, line, n);
        }
        line += n;
    }
    const char *text = str_peek(&out);
    size_t left = out.len;
    while (left && strchr(" \t\r\n", text[left - 1]))
        left--;
    return strspn(text, " \t\r\n") >= left ? xstrdup(markdown) : xstrndup(text, left);
}
