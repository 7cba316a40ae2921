/* read.c - the best cover of a request by known words. */
#include "read.h"
#include <string.h>

enum { SPAN_MAX = 12 }; /* tokens: of the longest Chinese column name or English phrase that is looked for */

struct cover {
    double score;
    size_t length; /* of the span that begins here; 0: the token is unknown or a separator */
    struct bi_item *item;
};

struct reader {
    const struct bi_lexicon *x;
    const struct bi_tables *t;
    struct bi_tokens *k;
    const char *text; /* that the tokens were cut from */
    bool shouts;      /* nothing in it is written small */
};

bool bi_item_is(const struct bi_item *i, enum bi_sense s)
{
    for (size_t n = 0; n < i->sense_n; n++)
        if (i->senses[n] == s)
            return true;
    return false;
}

char *bi_item_words(const struct bi_reading *r, const struct bi_item *i)
{
    size_t from = r->tokens.at[i->from].from, to = r->tokens.at[i->to - 1].to;
    return xstrndup(r->text + from, to - from);
}

/* ---- what a span could be ---- */

static bool same(const struct bi_token *a, const struct bi_token *b)
{
    if (strcmp(a->text, b->text) == 0)
        return a->type != BI_TOKEN_QUOTED;
    return a->type == BI_TOKEN_WORD && b->type == BI_TOKEN_WORD && strlen(a->text) > 3 && strlen(b->text) > 3 &&
           strcmp(a->stem, b->stem) == 0;
}

static bool is_phrase(const struct reader *r, const struct bi_item *item, const struct bi_phrase *p)
{
    if (p->tokens.n != item->to - item->from)
        return false;
    for (size_t i = 0; i < p->tokens.n; i++) {
        const struct bi_token *asked = &r->k->at[item->from + i], *word = &p->tokens.at[i];
        bool fits = p->sense == BI_SORT ? strcmp(asked->text, word->text) == 0 : same(asked, word);
        if (!fits) /* "order" sorts, "orders" are things */
            return false;
    }
    return true;
}

static void take_sense(struct bi_item *item, enum bi_sense s)
{
    if (s != BI_NONE && !bi_item_is(item, s) && item->sense_n < BI_ITEM_SENSES)
        item->senses[item->sense_n++] = s;
}

static void take_phrase(struct bi_item *item, const struct bi_phrase *p)
{
    switch (p->type) {
    case BI_PHRASE_SENSE: take_sense(item, p->sense); break;
    case BI_PHRASE_ORDINAL:
        item->ordinal = p->id;
        take_sense(item, BI_NTH);
        take_sense(item, p->sense);
        break;
    case BI_PHRASE_NUMBER:
        item->has_number = true;
        item->number = p->id;
        break;
    case BI_PHRASE_SUPERLATIVE:
    case BI_PHRASE_COMPARATIVE:
    case BI_PHRASE_COMPLEMENT: item->bound = p; break;
    case BI_PHRASE_HOLDER:
    case BI_PHRASE_CONCEPT:
    case BI_PHRASE_VALUE:
        item->holder = item->holder || p->type == BI_PHRASE_HOLDER;
        if (item->topic < 0)
            item->topic = p->concepts[0];
        if (item->named < 0 && p->type == BI_PHRASE_VALUE)
            item->named = p->id;
        break;
    }
}

static void match_lexicon(const struct reader *r, struct bi_item *item)
{
    size_t n;
    const struct bi_phrase *const *found = bi_lexicon_find(r->x, r->k->at[item->from].stem, &n);
    for (size_t i = 0; i < n; i++)
        if (is_phrase(r, item, found[i]))
            take_phrase(item, found[i]);
}

/* A word that is nearly one of the lexicon's. */
static void match_typo(const struct reader *r, struct bi_item *item)
{
    const struct bi_token *k = &r->k->at[item->from];
    size_t n = bi_letters(k->text), best = n >= 8 ? 2 : 1;
    if (item->to - item->from != 1 || k->type != BI_TOKEN_WORD || n < 5)
        return;
    for (size_t i = 0; i < bi_lexicon_phrases(r->x); i++) {
        const struct bi_phrase *p = bi_lexicon_phrase(r->x, i);
        bool carries = p->type == BI_PHRASE_SENSE && p->sense != BI_FILLER && p->sense != BI_AGAIN;
        if (p->tokens.n != 1 || !carries || bi_letters(p->tokens.at[0].text) < 5)
            continue;
        size_t d = bi_distance(k->text, p->tokens.at[0].text, best);
        if (d > best || (item->near && d == best))
            continue;
        best = d;
        item->near = p;
    }
    if (item->near) {
        take_phrase(item, item->near);
        item->typo = true;
    }
}

/* 三, 十二, 二十五, 一百: the value of a run of numerals, -1 when it is none. */
static double numeral(const struct bi_tokens *k, size_t from, size_t to)
{
    static const char *const digits[] = { "零", "一", "二", "三", "四", "五", "六", "七", "八", "九" };
    static const struct {
        const char *text;
        double times;
    } steps[] = { { "十", 10 }, { "百", 100 }, { "千", 1000 }, { "万", 1e4 } };
    double sum = 0, digit = -1;
    bool any = false;
    for (size_t i = from; i < to; i++) {
        const char *c = k->at[i].text;
        bool known = false;
        for (size_t d = 0; d < countof(digits); d++)
            if (strcmp(c, digits[d]) == 0 || (d == 2 && strcmp(c, "两") == 0)) {
                if (digit > 0)
                    return -1;
                digit = (double)d;
                known = true;
            }
        for (size_t s = 0; s < countof(steps); s++)
            if (strcmp(c, steps[s].text) == 0) {
                bool all = s == 3;
                sum = all ? (sum + (digit > 0 ? digit : 0)) * steps[s].times
                          : sum + (digit > 0 ? digit : 1) * steps[s].times;
                digit = -1;
                known = true;
            }
        if (!known)
            return -1;
        any = true;
    }
    return any ? sum + (digit > 0 ? digit : 0) : -1;
}

/* 90年代, 九十年代: a number with "decade" behind it. */
static bool match_decade(const struct reader *r, struct bi_item *item)
{
    const struct bi_token *k = &r->k->at[item->from];
    size_t n = item->to - item->from;
    if (n < 3 || strcmp(k[n - 2].text, "年") != 0 || strcmp(k[n - 1].text, "代") != 0)
        return false;
    bool digits = n == 3 && k->type == BI_TOKEN_NUMBER;
    double value = digits ? k->number : numeral(r->k, item->from, item->to - 2);
    if (value < 10 || value > 2200)
        return false;
    item->has_number = true;
    item->number = value < 100 ? value + 1900 : value;
    item->suffix = BI_SUFFIX_DECADE;
    return true;
}

static void match_number(const struct reader *r, struct bi_item *item)
{
    const struct bi_token *k = &r->k->at[item->from];
    size_t n = item->to - item->from;
    if (match_decade(r, item))
        return;
    if (n == 1 && k->type == BI_TOKEN_NUMBER) {
        item->has_number = true;
        item->number = k->number;
        item->suffix = k->suffix;
    } else if (n == 2 && k->type == BI_TOKEN_NUMBER && strcmp(k[1].text, "万") == 0) {
        item->has_number = true;
        item->number = k->number * 1e4;
    } else if (n == 2 && k->type == BI_TOKEN_NUMBER && strcmp(k[1].text, "million") == 0) {
        item->has_number = true;
        item->number = k->number * 1e6;
    } else if (k->type == BI_TOKEN_HAN && n <= 7) {
        double value = numeral(r->k, item->from, item->to);
        item->has_number = item->has_number || value >= 0;
        item->number = value >= 0 ? value : item->number;
    }
}

static void match_file(const struct reader *r, struct bi_item *item)
{
    struct str text = STR_INIT(4096);
    for (size_t i = item->from; i < item->to; i++)
        str_puts(&text, r->k->at[i].text);
    autofree char *compact = bi_compact(str_peek(&text));
    str_clear(&text);
    bool words = item->column_n || item->value_n || item->sense_n || item->topic >= 0;
    for (size_t i = 0; *compact && i < r->t->n; i++) {
        autofree char *full = bi_compact(r->t->at[i].name);
        autofree char *one = bi_stem(compact), *stem = bi_stem(r->t->at[i].stem);
        bool by_stem = strcmp(one, stem) == 0 && !words && bi_letters(compact) >= 3;
        if (strcmp(compact, full) != 0 && !by_stem)
            continue;
        item->kind = BI_ITEM_FILE;
        item->table = i;
    }
}

static double quality(const struct bi_item *i)
{
    double best = 0;
    if (i->column_n)
        best = i->columns[0].score;
    for (size_t n = 0; n < i->value_n; n++)
        best = i->values[n].score > best ? i->values[n].score : best;
    bool filler_only = i->sense_n == 1 && i->senses[0] == BI_FILLER;
    double sense = i->sense_n ? (filler_only ? 0.5 : i->typo ? 0.4 : 0.9) : 0;
    best = sense > best ? sense : best;
    return (i->has_number || i->bound || i->kind == BI_ITEM_FILE) && best < 0.95 ? 0.95 : best;
}

static enum bi_item_kind kind_of(const struct bi_item *i, const struct bi_token *first)
{
    double value = i->value_n ? i->values[0].score : 0, column = i->column_n ? i->columns[0].score : 0;
    if (i->kind == BI_ITEM_FILE)
        return BI_ITEM_FILE;
    bool single = i->to - i->from == 1;
    if (single && first->type == BI_TOKEN_DATE)
        return BI_ITEM_DATE;
    if (value > 0.45 && value > column)
        return BI_ITEM_VALUE;
    if (column > 0.9 || (i->column_n && !i->sense_n && !i->bound && !i->has_number))
        return BI_ITEM_COLUMN;
    if (i->bound)
        return BI_ITEM_BOUND;
    if (i->has_number)
        return BI_ITEM_NUMBER;
    if (single && first->type == BI_TOKEN_QUOTED)
        return i->value_n ? BI_ITEM_VALUE : BI_ITEM_QUOTED;
    return i->sense_n ? BI_ITEM_SENSE : i->topic >= 0 ? BI_ITEM_ABSENT : BI_ITEM_UNKNOWN;
}

/* Marks may stand inside a file's name (sales.csv) or a phrase (what's), never inside a column's name as people write
 * it. */
static bool has_mark(const struct bi_tokens *k, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (k->at[i].type == BI_TOKEN_MARK && strcmp(k->at[i].text, "_") != 0 && strcmp(k->at[i].text, "-") != 0)
            return true;
    return false;
}

static bool edge_mark(const struct bi_tokens *k, size_t from, size_t to)
{
    return k->at[from].type == BI_TOKEN_MARK || k->at[to - 1].type == BI_TOKEN_MARK;
}

static bool is_absent(const struct bi_item *i)
{
    return i->kind == BI_ITEM_ABSENT;
}

static double weigh(const struct reader *r, const struct bi_item *i)
{
    double n = (double)(i->to - i->from);
    if (is_absent(i))
        return 10 * n + (i->named >= 0 ? 5 : 3) * (n - 1) + (i->named >= 0 ? 3.8 : 0);
    bool one_sign = n < 2 && r->k->at[i->from].type == BI_TOKEN_HAN && i->kind == BI_ITEM_SENSE;
    bool name = n > 1 && i->column_n && i->columns[0].score > 0.98; /* a column's very name beats phrases that cut it */
    return 10 * n + 5 * (n - 1) + (one_sign ? 1 : 4 * quality(i)) + (name ? 2 : 0);
}

static void fill_item(const struct reader *r, struct bi_item *item)
{
    const struct bi_token *first = &r->k->at[item->from];
    size_t n = item->to - item->from;
    match_lexicon(r, item);
    match_number(r, item);
    item->text = first->text;
    if (!has_mark(r->k, item->from, item->to) && !edge_mark(r->k, item->from, item->to) &&
        first->type != BI_TOKEN_DATE) {
        int topic = item->topic;
        bi_match_columns(item, r->x, r->t, r->k);
        if (item->topic < 0)
            item->topic = topic;
        bi_match_values(item, r->x, r->t, r->k);
    }
    if (!edge_mark(r->k, item->from, item->to))
        match_file(r, item);
    bool bare =
        !item->sense_n && !item->column_n && !item->value_n && !item->bound && item->topic < 0 && !item->has_number;
    if (bare && n == 1 && item->kind != BI_ITEM_FILE)
        match_typo(r, item);
    item->kind = kind_of(item, first);
}

/* IT, US, ME, NO: written large among small letters, a name and not the little word. */
static bool is_abbreviation(const struct reader *r, const struct bi_token *k)
{
    const size_t n = k->to - k->from;
    for (size_t i = k->from; i < k->to; i++)
        if (r->text[i] < 'A' || r->text[i] > 'Z')
            return false;
    return !r->shouts && n >= 2 && n <= 4;
}

/* Whether reading the span as words without meaning would leave out a name. */
static bool hides_name(const struct reader *r, const struct bi_item *item)
{
    bool filler = item->kind == BI_ITEM_SENSE && item->sense_n == 1 && item->senses[0] == BI_FILLER;
    for (size_t i = item->from; filler && i < item->to; i++)
        if (is_abbreviation(r, &r->k->at[i]))
            return true;
    return false;
}

/* The item for a span, or NULL when nothing is known about it. */
static struct bi_item *try_span(const struct reader *r, size_t from, size_t to)
{
    struct bi_item *item = xcalloc(1, sizeof(*item));
    *item = (struct bi_item){ .from = from, .to = to, .topic = -1, .named = -1 };
    fill_item(r, item);
    if (item->kind == BI_ITEM_UNKNOWN || hides_name(r, item)) {
        free(item);
        return NULL;
    }
    item->weight = weigh(r, item);
    return item;
}

/* ---- the cover ---- */

static void cover_from(const struct reader *r, struct cover *all, size_t at)
{
    struct cover best = { .score = all[at + 1].score };
    for (size_t n = 1; n <= SPAN_MAX && at + n <= r->k->n; n++) {
        struct bi_item *item = try_span(r, at, at + n);
        if (!item)
            continue;
        double score = item->weight + all[at + n].score;
        if (score > best.score) {
            free(best.item);
            best = (struct cover){ .score = score, .length = n, .item = item };
        } else {
            free(item);
        }
    }
    all[at] = best;
}

static void push(struct bi_reading *out, const struct bi_item *item)
{
    out->items = xgrow(out->items, &out->cap, out->n + 1, sizeof(*out->items));
    out->items[out->n++] = *item;
}

/* Unknown characters that stand together are one unknown word. */
static void push_unknown(struct bi_reading *out, size_t at)
{
    const struct bi_token *k = &out->tokens.at[at];
    if (k->type == BI_TOKEN_MARK)
        return;
    struct bi_item *last = out->n ? &out->items[out->n - 1] : NULL;
    bool joins = last && last->kind == BI_ITEM_UNKNOWN && last->to == at && k->type == BI_TOKEN_HAN &&
                 out->tokens.at[at - 1].type == BI_TOKEN_HAN;
    if (joins) {
        last->to = at + 1;
        return;
    }
    struct bi_item item = {
        .kind = BI_ITEM_UNKNOWN, .from = at, .to = at + 1, .topic = -1, .named = -1, .text = k->text
    };
    push(out, &item);
}

void bi_read(struct bi_reading *out, const struct bi_lexicon *x, const struct bi_tables *t, const char *request)
{
    *out = (struct bi_reading){ .text = xstrdup(request) };
    bi_tokens_cut(&out->tokens, out->text);
    out->language = out->tokens.chinese ? BI_ZH : BI_EN;
    struct reader r = { .x = x, .t = t, .k = &out->tokens, .text = out->text };
    r.shouts = !strpbrk(out->text, "abcdefghijklmnopqrstuvwxyz");
    size_t n = out->tokens.n;
    struct cover *all = xcalloc(n + 1, sizeof(*all));
    for (size_t at = n; at-- > 0;)
        cover_from(&r, all, at);
    for (size_t at = 0; at < n;) {
        if (all[at].length) {
            push(out, all[at].item);
            at += all[at].length;
        } else {
            push_unknown(out, at++);
        }
    }
    for (size_t i = 0; i < n; i++)
        free(all[i].item);
    free(all);
}

void bi_reading_clear(struct bi_reading *r)
{
    bi_tokens_clear(&r->tokens);
    free(r->items);
    free(r->text);
    *r = (struct bi_reading){ 0 };
}
