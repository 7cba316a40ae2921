/* markup_part.c - cutting a document that is too long for one message.
 *
 * A part grows in place: blocks are moved into it, measured, and moved back until the longest beginning is found. Where not even
 * one block fits, the part gets an empty copy of that block and the same is done one level deeper. */
#include <string.h>
#include "markup_tree.h"

struct cutter {
    const struct markup_limit *limit;
    const struct markup *part; /* what is measured: all of the part so far */
    bool force;                /* a row that alone is too long is taken all the same */
};

static bool fits(const struct cutter *c)
{
    return c->limit->size(c->limit->ud, c->part) <= c->limit->max;
}

/* ---- blocks ---- */

static struct markup *take_first(struct markup *m)
{
    struct markup *x = m->first;
    m->first = x->next;
    if (!m->first)
        m->last = NULL;
    x->next = NULL;
    return x;
}

static void move(struct markup *from, struct markup *to, size_t n)
{
    while (n--)
        markup_append(to, take_first(from));
}

/* The last n of to go back to the front of from. */
static void move_back(struct markup *from, struct markup *to, size_t keep)
{
    struct markup *last = NULL, *x = to->first;
    for (; keep && x; keep--, x = x->next)
        last = x;
    if (!x)
        return;
    to->last->next = from->first;
    if (!from->first)
        from->last = to->last;
    from->first = x;
    to->last = last;
    if (last)
        last->next = NULL;
    else
        to->first = NULL;
}

static size_t count(const struct markup *m)
{
    size_t n = 0;
    for (const struct markup *x = m->first; x; x = x->next)
        n++;
    return n;
}

/* Moves as many children as fit behind those that `to` has; returns how many. Sizes only grow, so halving finds it. */
static size_t move_fitting(const struct cutter *c, struct markup *from, struct markup *to)
{
    const size_t had = count(to);
    size_t good = 0, bad = count(from) + 1;
    while (bad - good > 1) {
        const size_t n = good + (bad - good) / 2;
        move(from, to, n);
        if (fits(c))
            good = n;
        else
            bad = n;
        move_back(from, to, had);
    }
    move(from, to, good);
    return good;
}

/* ---- text ---- */

static size_t text_bytes(const struct markup *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->run_n; i++)
        n += m->runs[i].len;
    return n;
}

static void runs_free(struct markup *m)
{
    for (size_t i = 0; i < m->run_n; i++) {
        free(m->runs[i].text);
        free(m->runs[i].url);
    }
    free(take(m->runs));
    m->run_n = m->run_cap = 0;
}

/* Bytes begin..end of all runs of m, as the runs of to. */
static void copy_text(struct markup *to, const struct markup *m, size_t begin, size_t end)
{
    size_t at = 0;
    runs_free(to);
    for (size_t i = 0; i < m->run_n; at += m->runs[i].len, i++) {
        const struct markup_run *r = &m->runs[i];
        const size_t from = begin > at ? begin - at : 0, until = end - at < r->len ? end - at : r->len;
        if (at < end && from < until)
            markup_add_run(to, r->text + from, until - from, r->style, r->url);
    }
}

/* Where to cut within the first n bytes: behind the last newline or else space of the last half, or else between clusters. */
static size_t good_cut(const char *text, size_t all, size_t n, bool lines_only)
{
    for (size_t i = n; i > (lines_only ? 0 : n / 2); i--)
        if (text[i - 1] == '\n')
            return i;
    for (size_t i = n; i > n / 2 && !lines_only; i--)
        if (text[i - 1] == ' ')
            return i;
    return utf8_cut(text, all, n);
}

static char *all_text(const struct markup *m)
{
    struct str s = STR_INIT((size_t)MARKUP_MAX * 4);
    for (size_t i = 0; i < m->run_n; i++)
        str_add(&s, m->runs[i].text, m->runs[i].len);
    return str_take(&s);
}

static bool move_text(const struct cutter *c, struct markup *from, struct markup *to)
{
    const size_t all = text_bytes(from);
    size_t good = 0, bad = all;
    while (bad > good + 1) {
        const size_t n = good + (bad - good) / 2;
        copy_text(to, from, 0, n);
        if (fits(c))
            good = n;
        else
            bad = n;
    }
    autofree char *text = all_text(from);
    const size_t cut = good ? good_cut(text, all, good, from->kind == MARKUP_CODE) : 0;
    if (cut == 0 || cut > good)
        return false;
    struct markup *rest = markup_shell(from);
    const bool blank = from->kind != MARKUP_CODE && strchr(" \n", text[cut - 1]);
    copy_text(to, from, 0, blank ? cut - 1 : cut);
    copy_text(rest, from, cut, all);
    runs_free(from);
    from->runs = take(rest->runs);
    from->run_n = rest->run_n;
    from->run_cap = rest->run_cap;
    rest->run_n = 0;
    markup_free(rest);
    return true;
}

/* ---- both ---- */

static void drop_last(struct markup *m)
{
    struct markup *x = m->first, *before = NULL;
    while (x && x->next) {
        before = x;
        x = x->next;
    }
    m->last = before;
    if (before)
        before->next = NULL;
    else
        m->first = NULL;
    markup_free(x);
}

static bool is_empty(const struct markup *m)
{
    return !m->first && !m->run_n && m->kind != MARKUP_RULE;
}

static bool cut_into(const struct cutter *c, struct markup *from, struct markup *to);

/* The first child alone is too long: a beginning of it. */
/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static bool cut_child(const struct cutter *c, struct markup *from, struct markup *to)
{
    struct markup *child = from->first;
    if (!child || child->kind == MARKUP_ROW || child->kind == MARKUP_RULE)
        return false;
    markup_append(to, markup_shell(child));
    if (!cut_into(c, child, to->last)) {
        drop_last(to);
        return false;
    }
    if (is_empty(child))
        markup_free(take_first(from));
    return true;
}

/* The head stays with what is left; the part gets a copy. */
static bool cut_table(const struct cutter *c, struct markup *from, struct markup *to)
{
    struct markup *head = take_first(from);
    markup_append(to, markup_dup(head));
    bool moved = move_fitting(c, from, to) > 0;
    if (!moved && c->force) {
        move(from, to, 1);
        moved = true;
    }
    if (from->first) {
        head->next = from->first;
        from->first = head;
    } else {
        markup_free(head);
    }
    return moved;
}

/* NOLINTNEXTLINE(misc-no-recursion): MARKUP_DEPTH_MAX ends it */
static bool cut_into(const struct cutter *c, struct markup *from, struct markup *to)
{
    if (markup_holds_runs(from))
        return move_text(c, from, to);
    if (from->kind == MARKUP_TABLE)
        return from->first && from->first->next && cut_table(c, from, to);
    const size_t moved = move_fitting(c, from, to);
    from->start += (int64_t)moved;
    return moved > 0 || cut_child(c, from, to);
}

struct markup *markup_part(struct markup *doc, const struct markup_limit *limit)
{
    if (!doc->first)
        return NULL;
    struct markup *part = markup_new(MARKUP_DOC);
    struct cutter c = { .limit = limit, .part = part };
    if (cut_into(&c, doc, part))
        return part;
    c.force = true;
    if (!cut_into(&c, doc, part))
        move(doc, part, 1);
    return part;
}
