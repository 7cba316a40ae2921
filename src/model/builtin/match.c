/* match.c - which columns and values a span of words could name, and how well. */
#include "read.h"
#include <string.h>

enum { SPAN_CONCEPTS = 8 };

/* The words of a span, prepared once for all columns. */
struct span {
    const struct bi_token *at;
    size_t n;
    char *compact, *stem;         /* stem: compact with the last word's plural off */
    int concepts[SPAN_CONCEPTS];  /* of a phrase that is exactly the span; -1 ends */
    int named[SPAN_CONCEPTS];     /* values of the lexicon, the same */
    int words[12][SPAN_CONCEPTS]; /* concepts of each word of it */
    bool plain;                   /* its only word has a fixed sense: parts of names need more than that */
    bool known;                   /* its only word is in the lexicon: no typing error */
    bool chinese;
};

static void list_add(int list[SPAN_CONCEPTS], int id)
{
    size_t n = 0;
    while (list[n] >= 0)
        if (list[n++] == id)
            return;
    if (n + 1 < SPAN_CONCEPTS) {
        list[n] = id;
        list[n + 1] = -1;
    }
}

static bool same_token(const struct bi_token *a, const struct bi_token *b)
{
    return strcmp(a->text, b->text) == 0 ||
           (a->type == BI_TOKEN_WORD && b->type == BI_TOKEN_WORD && strcmp(a->stem, b->stem) == 0);
}

static bool is_phrase(const struct span *s, const struct bi_phrase *p)
{
    if (p->tokens.n != s->n)
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (!same_token(&s->at[i], &p->tokens.at[i]))
            return false;
    return true;
}

static void word_concepts(const struct bi_lexicon *x, const struct bi_token *word, int list[SPAN_CONCEPTS])
{
    size_t n;
    const struct bi_phrase *const *found = bi_lexicon_find(x, word->stem, &n);
    for (size_t i = 0; i < n; i++)
        if (found[i]->type == BI_PHRASE_CONCEPT && found[i]->tokens.n == 1 && same_token(word, &found[i]->tokens.at[0]))
            list_add(list, found[i]->id);
}

static void span_init(struct span *s, const struct bi_lexicon *x, const struct bi_item *item, const struct bi_tokens *k)
{
    *s = (struct span){ .at = &k->at[item->from], .n = item->to - item->from, .concepts = { -1 }, .named = { -1 } };
    struct str text = STR_INIT(4096), stem = STR_INIT(4096);
    for (size_t i = 0; i < s->n; i++) {
        str_puts(&text, s->at[i].text);
        str_puts(&stem, i + 1 < s->n ? s->at[i].text : s->at[i].stem);
        s->chinese = s->chinese || s->at[i].type == BI_TOKEN_HAN;
    }
    s->compact = bi_compact(str_peek(&text));
    s->stem = bi_compact(str_peek(&stem));
    str_clear(&text);
    str_clear(&stem);
    for (size_t i = 0; i < countof(s->words); i++) {
        s->words[i][0] = -1;
        if (s->n > 1 && i < s->n)
            word_concepts(x, &s->at[i], s->words[i]);
    }
    size_t n;
    const struct bi_phrase *const *found = bi_lexicon_find(x, s->at[0].stem, &n);
    for (size_t i = 0; i < n; i++) {
        if (!is_phrase(s, found[i]))
            continue;
        if (found[i]->type == BI_PHRASE_CONCEPT || found[i]->type == BI_PHRASE_HOLDER)
            list_add(s->concepts, found[i]->id);
        else if (found[i]->type == BI_PHRASE_VALUE)
            list_add(s->named, found[i]->id);
        s->plain = s->plain || found[i]->type == BI_PHRASE_SENSE;
        s->known = true;
    }
}

static void span_clear(struct span *s)
{
    free(s->compact);
    free(s->stem);
}

/* ---- columns ---- */

static bool unit_means(const struct bi_unit *u, const int concepts[SPAN_CONCEPTS])
{
    for (size_t i = 0; concepts[i] >= 0; i++)
        for (size_t k = 0; u->concepts[k] >= 0; k++)
            if (u->concepts[k] == concepts[i])
                return true;
    return false;
}

static struct bi_column_match whole(enum bi_like like, double score)
{
    return (struct bi_column_match){ .like = like, .score = score, .whole = true };
}

/* The span against the name as a whole. */
static struct bi_column_match match_name(const struct span *s, const struct bi_column *c)
{
    autofree char *stem = bi_stem(c->compact);
    if (strcmp(s->compact, c->compact) == 0)
        return whole(BI_LIKE_SAME, 1);
    if (strcmp(s->stem, stem) == 0 || strcmp(s->stem, c->compact) == 0)
        return whole(BI_LIKE_PLURAL, 0.99);
    for (size_t i = 0; s->concepts[i] >= 0; i++)
        if (bi_column_is(c, s->concepts[i]))
            return whole(BI_LIKE_MEANING, 0.9);
    return (struct bi_column_match){ .like = BI_LIKE_NOT };
}

static const double form_scores[] = {
    [BI_LIKE_SAME] = 0.72,  [BI_LIKE_PLURAL] = 0.71, [BI_LIKE_MEANING] = 0.7, [BI_LIKE_FORM] = 0.6,
    [BI_LIKE_SHORT] = 0.58, [BI_LIKE_TYPO] = 0.5,    [BI_LIKE_NOT] = 0,
};

static enum bi_like word_unit(const struct span *s, const struct bi_token *word, const struct bi_unit *u)
{
    enum bi_like like = word->type == BI_TOKEN_WORD ? bi_word_like(word->text, u->text) : BI_LIKE_NOT;
    if (like == BI_LIKE_TYPO && s->known)
        return BI_LIKE_NOT;
    return like;
}

/* The span against one word of the name; more when that word is the last, the head of the name. */
static struct bi_column_match match_part(const struct span *s, const struct bi_column *c)
{
    struct bi_column_match best = { .like = BI_LIKE_NOT };
    for (size_t i = 0; i < c->unit_n; i++) {
        enum bi_like like = s->n == 1 ? word_unit(s, &s->at[0], &c->units[i]) : BI_LIKE_NOT;
        if (like > BI_LIKE_MEANING && unit_means(&c->units[i], s->concepts))
            like = BI_LIKE_MEANING;
        if (s->plain && c->unit_n > 1 && like != BI_LIKE_NOT)
            like = unit_means(&c->units[i], s->concepts) ? BI_LIKE_MEANING : BI_LIKE_NOT;
        double score = form_scores[like];
        if (like != BI_LIKE_NOT)
            score += c->unit_n == 1 ? 0.2 : 0.06 / (double)c->unit_n + (i + 1 == c->unit_n ? 0.02 : 0);
        if (score > best.score)
            best = (struct bi_column_match){ .like = like, .score = score, .whole = c->unit_n == 1 };
    }
    return best;
}

/* Several words, each of them a word of the name: "order date" of "Customer Order Date". */
static struct bi_column_match match_words(const struct span *s, const struct bi_column *c)
{
    size_t hits = 0;
    for (size_t i = 0; i < s->n && i < countof(s->words); i++) {
        bool hit = false;
        for (size_t u = 0; u < c->unit_n && !hit; u++)
            hit = word_unit(s, &s->at[i], &c->units[u]) <= BI_LIKE_FORM || unit_means(&c->units[u], s->words[i]);
        hits += hit;
    }
    if (s->n < 2 || hits < s->n || c->unit_n < 2)
        return (struct bi_column_match){ .like = BI_LIKE_NOT };
    return (struct bi_column_match){ .like = BI_LIKE_PLURAL, .score = 0.72 + 0.2 * (double)hits / (double)c->unit_n };
}

/* Chinese names have no blanks: 金额 is a part of 订单金额. */
static struct bi_column_match match_inside(const struct span *s, const struct bi_column *c)
{
    size_t n = bi_letters(s->compact), m = bi_letters(c->compact);
    if (!s->chinese || n < 2 || n >= m || !strstr(c->compact, s->compact))
        return (struct bi_column_match){ .like = BI_LIKE_NOT };
    bool head = strcmp(c->compact + strlen(c->compact) - strlen(s->compact), s->compact) == 0;
    return (struct bi_column_match){ .like = BI_LIKE_PLURAL,
                                     .score = 0.66 + 0.08 * (double)n / (double)m + (head ? 0.02 : 0) };
}

static void keep_column(struct bi_item *item, const struct bi_column_match *m)
{
    size_t at = item->column_n;
    while (at > 0 && item->columns[at - 1].score < m->score)
        at--;
    if (at == BI_MATCHES_MAX)
        return;
    size_t tail = item->column_n - at;
    if (item->column_n == BI_MATCHES_MAX)
        tail--;
    else
        item->column_n++;
    memmove(&item->columns[at + 1], &item->columns[at], tail * sizeof(*m));
    item->columns[at] = *m;
}

void bi_match_columns(struct bi_item *item, const struct bi_lexicon *x, const struct bi_tables *t,
                      const struct bi_tokens *k)
{
    struct span s;
    span_init(&s, x, item, k);
    for (size_t i = 0; *s.compact && i < t->n; i++)
        for (size_t j = 0; j < t->at[i].column_n; j++) {
            const struct bi_column *c = &t->at[i].columns[j];
            struct bi_column_match all[] = { match_name(&s, c), match_part(&s, c), match_words(&s, c),
                                             match_inside(&s, c) };
            struct bi_column_match best = all[0];
            for (size_t m = 1; m < countof(all); m++)
                if (all[m].score > best.score)
                    best = all[m];
            best.column = c;
            if (best.like != BI_LIKE_NOT)
                keep_column(item, &best);
        }
    item->topic = s.concepts[0];
    span_clear(&s);
}

/* ---- values ---- */

/* Another digit is another order, flat or model; and of values that are not all known the right one may be among the rest. */
static bool may_be_typo(const struct span *s, const struct bi_column *c, const struct bi_value *v)
{
    return s->n == 1 && !s->known && !s->chinese && c->all_values && bi_letters(s->compact) >= 5 &&
           !strpbrk(s->compact, "0123456789") && !strpbrk(v->compact, "0123456789");
}

static double match_value(const struct span *s, const struct bi_column *c, const struct bi_value *v)
{
    if (v->is_number)
        return 0;
    bool short_one = bi_letters(v->compact) < 2;
    if (strcmp(s->compact, v->compact) == 0)
        return short_one ? 0.4 : 1;
    for (size_t i = 0; s->named[i] >= 0; i++)
        if (v->named == s->named[i])
            return 0.92;
    autofree char *stem = bi_stem(v->compact);
    if (!short_one && strcmp(s->stem, stem) == 0)
        return 0.95;
    return may_be_typo(s, c, v) && bi_distance(s->compact, v->compact, 1) <= 1 ? 0.5 : 0;
}

/* class 1 is the number 1 of the column Pclass. */
static double match_number(const struct span *s, const struct bi_lexicon *x, const struct bi_column *c,
                           const struct bi_value *v)
{
    for (size_t i = 0; v->is_number && s->named[i] >= 0; i++) {
        const struct bi_named_value *named = bi_lexicon_value(x, s->named[i]);
        if (bi_column_is(c, named->topic) && strcmp(named->name, v->text) == 0)
            return 0.92;
    }
    return 0;
}

void bi_match_values(struct bi_item *item, const struct bi_lexicon *x, const struct bi_tables *t,
                     const struct bi_tokens *k)
{
    struct span s;
    span_init(&s, x, item, k);
    for (size_t i = 0; *s.compact && i < t->n; i++)
        for (size_t j = 0; j < t->at[i].column_n; j++) {
            const struct bi_column *c = &t->at[i].columns[j];
            for (size_t n = 0; n < c->value_n && item->value_n < BI_MATCHES_MAX; n++) {
                double score = match_value(&s, c, &c->values[n]), number = match_number(&s, x, c, &c->values[n]);
                score = number > score ? number : score;
                if (score > 0)
                    item->values[item->value_n++] = (struct bi_value_match){ c, &c->values[n], score };
            }
        }
    span_clear(&s);
}
