/* text.c - tokens, stems and edit distance. */
#include "text.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- characters ---- */

enum kind { SPACE, LETTER, DIGIT, HAN, MARK };

static bool in(uint32_t cp, uint32_t low, uint32_t high)
{
    return cp >= low && cp <= high;
}

static bool is_han(uint32_t cp)
{
    return in(cp, 0x4E00, 0x9FFF) || in(cp, 0x3400, 0x4DBF) || in(cp, 0xF900, 0xFAFF) || in(cp, 0x20000, 0x323AF) ||
           cp == 0x3007;
}

/* Kana, hangul, Cyrillic, Greek, Hebrew, Arabic, Indic and Thai letters: languages that no lexicon covers. */
static bool is_foreign(uint32_t cp)
{
    return in(cp, 0x0370, 0x1FFF) || in(cp, 0x3041, 0x30FF) || in(cp, 0x1100, 0x11FF) || in(cp, 0xAC00, 0xD7AF);
}

static uint32_t narrow(uint32_t cp)
{
    return in(cp, 0xFF01, 0xFF5E) ? cp - 0xFEE0 : cp;
}

static enum kind kind_of(uint32_t cp)
{
    cp = narrow(cp);
    if (cp <= ' ' || cp == 0xA0 || cp == 0x3000 || in(cp, 0x2000, 0x200D))
        return SPACE;
    if (in(cp, '0', '9'))
        return DIGIT;
    if (is_han(cp))
        return HAN;
    if (cp < 0x80)
        return isalpha((int)cp) ? LETTER : MARK;
    bool mark = in(cp, 0x80, 0xBF) || cp == 0xD7 || cp == 0xF7 || in(cp, 0x200E, 0x2BFF) || in(cp, 0x3001, 0x303F) ||
                in(cp, 0xFE10, 0xFE6F) || in(cp, 0xFF5F, 0xFF65) || cp >= 0xFFE0;
    return mark && cp != 0xAA && cp != 0xB5 && cp != 0xBA ? MARK : LETTER;
}

size_t bi_letters(const char *text)
{
    size_t n = 0;
    while (utf8_next(&text))
        n++;
    return n;
}

/* ---- stems and likeness ---- */

static bool ends(const char *word, size_t n, const char *ending)
{
    size_t m = strlen(ending);
    return n > m && memcmp(word + n - m, ending, m) == 0;
}

char *bi_stem(const char *word)
{
    size_t n = strlen(word);
    if (ends(word, n, "'s") || ends(word, n, "s'"))
        n -= ends(word, n, "'s") ? 2 : 1;
    if (n > 4 && ends(word, n, "ies"))
        return xasprintf("%.*sy", (int)(n - 3), word);
    static const char *const es[] = { "sses", "xes", "ches", "shes", "zes" };
    for (size_t i = 0; i < countof(es); i++)
        if (ends(word, n, es[i]))
            return xstrndup(word, n - 2);
    bool plural = n > 3 && ends(word, n, "s") && !ends(word, n, "ss") && !ends(word, n, "us") && !ends(word, n, "is");
    return xstrndup(word, plural ? n - 1 : n);
}

static size_t min2(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment over code points; words longer than WORD_MAX are never near. */
enum { WORD_MAX = 48 };

static size_t code_points(const char *text, uint32_t out[WORD_MAX])
{
    size_t n = 0;
    for (uint32_t cp; (cp = utf8_next(&text)) != 0; n++) {
        if (n == WORD_MAX)
            return 0;
        out[n] = cp;
    }
    return n;
}

size_t bi_distance(const char *a, const char *b, size_t most)
{
    uint32_t x[WORD_MAX], y[WORD_MAX];
    size_t d[3][WORD_MAX + 1], n = code_points(a, x), m = code_points(b, y);
    if (!n || !m || (n > m ? n - m : m - n) > most)
        return most + 1;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = d[i % 3], *before = d[(i - 1) % 3], *first = d[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = min2(min2(before[j], row[j - 1]) + 1, before[j - 1] + (x[i - 1] != y[j - 1]));
            if (i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1])
                row[j] = min2(row[j], first[j - 2] + 1);
        }
    }
    return min2(d[n % 3][m], most + 1);
}

/* survival and survived: the same five letters or more, then an ending each. */
static bool same_root(const char *a, const char *b)
{
    static const char *const endings[] = { "",    "e",     "s",    "es", "d",    "ed",  "al",   "ing",
                                           "ion", "ation", "er",   "or", "ors",  "ers", "ment", "ments",
                                           "ly",  "ure",   "ions", "y",  "able", "als", "ings" };
    size_t same = 0;
    bool first = false, second = false;
    while (a[same] && a[same] == b[same])
        same++;
    for (size_t i = 0; i < countof(endings); i++) {
        first = first || strcmp(a + same, endings[i]) == 0;
        second = second || strcmp(b + same, endings[i]) == 0;
    }
    return same >= 5 && first && second;
}

static bool is_latin(const char *word)
{
    for (; *word; word++)
        if (!islower((unsigned char)*word))
            return false;
    return true;
}

enum bi_like bi_word_like(const char *asked, const char *name)
{
    if (strcmp(asked, name) == 0)
        return BI_LIKE_SAME;
    autofree char *a = bi_stem(asked), *b = bi_stem(name);
    if (strcmp(a, b) == 0)
        return BI_LIKE_PLURAL;
    size_t n = bi_letters(asked), m = bi_letters(name);
    if (!is_latin(asked) || !is_latin(name) || n < 4 || m < 4)
        return BI_LIKE_NOT;
    if (same_root(asked, name))
        return BI_LIKE_FORM;
    if (n != m && strncmp(asked, name, min2(n, m)) == 0)
        return BI_LIKE_SHORT;
    size_t most = min2(n, m) >= 8 ? 2 : 1;
    return bi_distance(asked, name, most) <= most ? BI_LIKE_TYPO : BI_LIKE_NOT;
}

/* ---- names ---- */

char *bi_compact(const char *text)
{
    autofree char *folded = utf8_fold(text);
    struct str out = STR_INIT(SIZE_MAX / 2);
    for (const char *p = folded, *start = p; *p; start = p) {
        enum kind k = kind_of(utf8_next(&p));
        if (k != SPACE && k != MARK)
            str_add(&out, start, (size_t)(p - start));
    }
    return str_take(&out);
}

/* True where a new word begins inside a name: aB, ABc, a1, 1a, and around Chinese. */
static bool hump(const char *before, const char *at, const char *after)
{
    const char *p = before, *q = at;
    enum kind a = kind_of(utf8_next(&p)), b = kind_of(utf8_next(&q));
    if (a == MARK || a == SPACE || b == MARK || b == SPACE)
        return false;
    if (a != b)
        return true;
    bool upper = isupper((unsigned char)*at);
    return upper &&
           (islower((unsigned char)*before) || (isupper((unsigned char)*before) && islower((unsigned char)*after)));
}

char *bi_name_words(const char *name)
{
    autofree char *nfc = utf8_nfc(name);
    struct str out = STR_INIT(SIZE_MAX / 2);
    const char *before = NULL;
    for (const char *p = nfc, *start = p; *p; before = start, start = p) {
        enum kind k = kind_of(utf8_next(&p));
        bool gap = k == SPACE || k == MARK || (before && hump(before, start, p));
        if (gap && out.len && out.buf[out.len - 1] != ' ')
            str_putc(&out, ' ');
        if (k != SPACE && k != MARK)
            str_add(&out, start, (size_t)(p - start));
    }
    while (out.len && out.buf[out.len - 1] == ' ')
        out.buf[--out.len] = '\0';
    autofree char *cased = str_take(&out);
    return utf8_fold(cased);
}

/* ---- tokens ---- */

static struct bi_token *add(struct bi_tokens *t, enum bi_token_type type, const char *text, size_t from, size_t to)
{
    t->at = xgrow(t->at, &t->cap, t->n + 1, sizeof(*t->at));
    struct bi_token *k = &t->at[t->n++];
    autofree char *raw = xstrndup(text + from, to - from);
    *k = (struct bi_token){ .type = type, .from = from, .to = to };
    k->text = type == BI_TOKEN_QUOTED ? take(raw) : utf8_fold(raw);
    k->stem = bi_stem(k->text);
    return k;
}

static size_t span(const char *text, size_t at, enum kind want)
{
    for (const char *p = text + at; *p; at = (size_t)(p - text))
        if (kind_of(utf8_next(&p)) != want)
            break;
    return at;
}

static bool digits_at(const char *text, size_t at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)text[at + i]))
            return false;
    return !isdigit((unsigned char)text[at + n]);
}

/* 2024-03-15 or 2024/3/15: its length, else 0. */
static int digits_value(const char *text, size_t n)
{
    int value = 0;
    for (size_t i = 0; i < n; i++)
        value = 10 * value + (text[i] - '0');
    return value;
}

/* One or two digits: how many, 0 when there are none or more. */
static size_t short_digits(const char *text)
{
    size_t n = strspn(text, "0123456789");
    return n <= 2 ? n : 0;
}

/* 2024-03-15 or 2024/3/15: its length, else 0. */
static size_t date_at(const char *text, size_t at, char iso[11])
{
    const char *p = text + at;
    if (!digits_at(text, at, 4) || (p[4] != '-' && p[4] != '/'))
        return 0;
    size_t m = short_digits(p + 5);
    if (!m || p[5 + m] != p[4])
        return 0;
    size_t d = short_digits(p + 6 + m);
    int month = digits_value(p + 5, m), day = digits_value(p + 6 + m, d);
    if (!d || month < 1 || month > 12 || day < 1 || day > 31)
        return 0;
    (void)snprintf(iso, 11, "%.4s-%02d-%02d", p, month % 100, day % 100);
    return 6 + m + d;
}

/* The digits of a number without its thousands commas; returns where it ends. */
static size_t number_at(const char *text, size_t at, char *out, size_t size)
{
    size_t n = 0;
    bool point = false;
    for (;; at++) {
        char c = text[at];
        bool comma = c == ',' && n && !point && isdigit((unsigned char)text[at + 1]) && digits_at(text, at + 1, 3);
        bool dot = c == '.' && !point && isdigit((unsigned char)text[at + 1]);
        if (!isdigit((unsigned char)c) && !comma && !dot)
            break;
        if (!comma && n + 1 < size)
            out[n++] = c;
        point = point || dot;
    }
    out[n] = '\0';
    return at;
}

static void set_suffix(struct bi_token *k, const char *letters)
{
    static const struct {
        const char *letters;
        enum bi_suffix suffix;
        double times;
    } known[] = { { "st", BI_SUFFIX_ORDINAL, 1 }, { "nd", BI_SUFFIX_ORDINAL, 1 },
                  { "rd", BI_SUFFIX_ORDINAL, 1 }, { "th", BI_SUFFIX_ORDINAL, 1 },
                  { "s", BI_SUFFIX_DECADE, 1 },   { "k", BI_SUFFIX_NONE, 1e3 },
                  { "%", BI_SUFFIX_PERCENT, 1 },  { "\xef\xbc\x85", BI_SUFFIX_PERCENT, 1 } };
    for (size_t i = 0; i < countof(known); i++)
        if (strcmp(letters, known[i].letters) == 0) {
            k->suffix = known[i].suffix;
            k->number *= known[i].times;
        }
    if (k->suffix == BI_SUFFIX_DECADE && k->number < 100)
        k->number += 1900;
}

static bool known_suffix(const char *letters)
{
    static const char *const all[] = { "", "st", "nd", "rd", "th", "s", "k", "%", "\xef\xbc\x85" };
    for (size_t i = 0; i < countof(all); i++)
        if (strcasecmp(letters, all[i]) == 0)
            return true;
    return false;
}

static bool minus_before(const struct bi_tokens *t, const char *text, size_t at)
{
    return at > 0 && text[at - 1] == '-' && t->n && t->at[t->n - 1].type == BI_TOKEN_MARK &&
           (at < 2 || (!isalnum((unsigned char)text[at - 2]) && (unsigned char)text[at - 2] < 0x80));
}

/* A token that begins with a digit: a date, a number with or without suffix, or a word like 2x4. */
static size_t cut_digits(struct bi_tokens *t, const char *text, size_t at)
{
    char digits[64], iso[11];
    size_t n = date_at(text, at, iso);
    if (n) {
        struct bi_token *k = add(t, BI_TOKEN_DATE, text, at, at + n);
        free(k->text);
        k->text = xstrdup(iso);
        return at + n;
    }
    size_t end = number_at(text, at, digits, sizeof(digits)), stop = span(text, end, LETTER);
    if (stop == end && (text[end] == '%' || strncmp(text + end, "\xef\xbc\x85", 3) == 0))
        stop += text[end] == '%' ? 1 : 3;
    autofree char *letters = xstrndup(text + end, stop - end), *low = utf8_fold(letters);
    bool percent = strcmp(letters, "%") == 0 || strcmp(letters, "\xef\xbc\x85") == 0;
    if (!percent && (!known_suffix(low) || isdigit((unsigned char)text[stop]))) {
        while (text[stop] && (isalnum((unsigned char)text[stop])))
            stop++;
        (void)add(t, BI_TOKEN_WORD, text, at, stop);
        return stop;
    }
    bool minus = minus_before(t, text, at);
    struct bi_token *k = add(t, BI_TOKEN_NUMBER, text, at, stop);
    k->number = strtod(digits, NULL) * (minus ? -1 : 1);
    set_suffix(k, percent ? "%" : low);
    if (minus) { /* the mark before it was its sign */
        struct bi_token number = *k;
        free(t->at[t->n - 2].text);
        free(t->at[t->n - 2].stem);
        t->at[t->n - 2] = number;
        t->n--;
    }
    return stop;
}

static size_t cut_word(struct bi_tokens *t, const char *text, size_t at)
{
    size_t end = at;
    for (;;) {
        size_t next = span(text, span(text, end, LETTER), DIGIT);
        bool joint = next > at && text[next] == '\'' && isalpha((unsigned char)text[next + 1]);
        bool curly =
            next > at && strncmp(text + next, "\xe2\x80\x99", 3) == 0 && isalpha((unsigned char)text[next + 3]);
        if (next == end && !joint && !curly)
            break;
        end = joint ? next + 1 : curly ? next + 3 : next;
    }
    struct bi_token *k = add(t, BI_TOKEN_WORD, text, at, end);
    if (k->text[strspn(k->text, "0123456789")] == '\0') { /* full-width digits */
        k->type = BI_TOKEN_NUMBER;
        k->number = strtod(k->text, NULL);
    }
    const char *p = k->text;
    for (uint32_t cp; (cp = utf8_next(&p)) != 0;)
        t->foreign = t->foreign || is_foreign(cp);
    return end;
}

static const char *const quotes[][2] = {
    { "\"", "\"" },
    { "`", "`" },
    { "\xe2\x80\x9c", "\xe2\x80\x9d" },
    { "\xe3\x80\x8c", "\xe3\x80\x8d" },
    { "\xe3\x80\x8a", "\xe3\x80\x8b" },
    { "\xc2\xab", "\xc2\xbb" },
    { "\xe2\x80\x98", "\xe2\x80\x99" },
    { "'", "'" },
};

/* Something between quotation marks; returns its end, or at when there is none. */
static size_t cut_quoted(struct bi_tokens *t, const char *text, size_t at)
{
    for (size_t i = 0; i < countof(quotes); i++) {
        size_t n = strlen(quotes[i][0]);
        if (strncmp(text + at, quotes[i][0], n) != 0)
            continue;
        const char *end = strstr(text + at + n, quotes[i][1]);
        if (!end || end == text + at + n || end - (text + at) > 200)
            continue;
        (void)add(t, BI_TOKEN_QUOTED, text, at + n, (size_t)(end - text));
        return (size_t)(end - text) + strlen(quotes[i][1]);
    }
    return at;
}

static size_t cut_mark(struct bi_tokens *t, const char *text, size_t at)
{
    size_t quoted = cut_quoted(t, text, at);
    if (quoted > at)
        return quoted;
    const char *p = text + at;
    (void)utf8_next(&p);
    size_t end = (size_t)(p - text);
    if (strchr("<>=!", text[at]))
        end = at + strspn(text + at, "<>=!");
    (void)add(t, BI_TOKEN_MARK, text, at, end);
    return end;
}

void bi_tokens_cut(struct bi_tokens *out, const char *text)
{
    *out = (struct bi_tokens){ 0 };
    for (size_t at = 0; text[at] && out->n < BI_TOKENS_MAX;) {
        const char *p = text + at;
        switch (kind_of(utf8_next(&p))) {
        case SPACE: at = (size_t)(p - text); break;
        case LETTER: at = cut_word(out, text, at); break;
        case DIGIT: at = isdigit((unsigned char)text[at]) ? cut_digits(out, text, at) : cut_word(out, text, at); break;
        case MARK: at = cut_mark(out, text, at); break;
        case HAN:
            (void)add(out, BI_TOKEN_HAN, text, at, (size_t)(p - text));
            out->chinese = true;
            at = (size_t)(p - text);
            break;
        }
    }
}

void bi_tokens_clear(struct bi_tokens *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->at[i].text);
        free(t->at[i].stem);
    }
    free(t->at);
    *t = (struct bi_tokens){ 0 };
}
