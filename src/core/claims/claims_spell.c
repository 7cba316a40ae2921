/* claims_spell.c - numbers in words: "forty-two", "zweiundvierzig", "quatre-vingt-dix", "三百二十", "百分之三十", "이십오". */
#include <ctype.h>
#include <strings.h>
#include "claims_private.h"
#include "str.h"

/* ---- alphabets ---- */

/* Latin, Greek has no words here, Cyrillic. */
static uint32_t lower(uint32_t cp)
{
    const bool latin = (cp >= 'A' && cp <= 'Z') || (cp >= 0xc0 && cp <= 0xde && cp != 0xd7);
    if (latin || (cp >= 0x410 && cp <= 0x42f))
        return cp + 0x20;
    const bool odd_first = (cp >= 0x139 && cp <= 0x148) || (cp >= 0x179 && cp <= 0x17e);
    return cp >= 0x100 && cp <= 0x17e && (cp & 1) == odd_first ? cp + 1 : cp;
}

/* Bytes at `at` that are the word, in small letters or large; 0: they are not. */
static size_t spelled_as(const char *at, const char *word)
{
    const char *from = at;
    while (*word)
        if (!*at || lower(utf8_next(&at)) != utf8_next(&word))
            return 0;
    return (size_t)(at - from);
}

/* A number so far: "two hundred" of "two hundred and five thousand". */
struct spelling {
    double all, part; /* before the last thousands; behind them */
    double unit;      /* scale of its last word */
    unsigned languages;
    size_t words;
    bool weak; /* a word that is mostly something else */
    const char *end;
};

/* "three" + "hundred", "two hundred" + "thousand" */
static bool multiply(struct spelling *s, double scale)
{
    const bool bare = s->part == 0;
    if (bare && (s->words || scale > 1000 || !(s->languages & ~numerals_after_one)))
        return false;
    if (scale <= 100 ? s->part >= 100 : s->all > 0 && s->all < scale * 1000)
        return false;
    const double part = bare ? 1 : s->part;
    s->all += scale > 100 ? part * scale : 0;
    s->part = scale > 100 ? 0 : part * scale;
    s->weak = bare;
    s->unit = scale;
    return true;
}

/* "forty" + "two", "zwei" + "und" + "vierzig", "soixante" + "dix": nothing else makes one number. */
static bool increase(struct spelling *s, double value, bool joined)
{
    const double rest = s->part - 100 * (double)(int)(s->part / 100);
    const bool tens = rest >= 20 && (int)rest % 10 == 0;
    const bool fits = s->part == 0 || (rest == 0 && value < 100) || (tens && value < 10) ||
                      ((rest == 60 || rest == 80) && value >= 10 && value < 20) ||
                      (joined && rest < 10 && value >= 20 && value < 100);
    if (!fits)
        return false;
    s->part += value;
    s->unit = 1;
    return true;
}

static const struct numeral *longest_at(const char *at, unsigned languages, size_t *n)
{
    const struct numeral *found = NULL;
    *n = 0;
    for (size_t i = 0; i < numeral_n; i++) {
        const struct numeral *one = &numerals[i];
        const unsigned char here = (unsigned char)*at, there = (unsigned char)*one->word;
        const bool may_be = here < 0x80 ? (here | 0x20) == there : (here & 0xf0) == (there & 0xf0);
        const size_t k = may_be && one->languages & languages ? spelled_as(at, one->word) : 0;
        if (k <= *n)
            continue;
        *n = k;
        found = one;
    }
    return found;
}

/* Takes the word at `at`, where the number goes on in one of the languages. */
static bool take_word(struct spelling *s, const char *at, unsigned languages, bool joined)
{
    size_t n = 0;
    const struct numeral *word = languages ? longest_at(at, languages, &n) : NULL;
    struct spelling next = *s;
    if (!word)
        return false;
    next.languages &= languages & word->languages;
    next.weak = s->words == 0 && word->how == NUMERAL_WEAK;
    if (word->how == NUMERAL_TIMES ? !multiply(&next, word->value) : !increase(&next, word->value, joined))
        return false;
    next.words++;
    next.end = at + n;
    *s = next;
    return true;
}

/* The next word of the same number. */
static bool take_next(struct spelling *s)
{
    const char *at = s->end;
    for (size_t i = 0; i < numeral_and_n; i++) {
        const size_t n = spelled_as(at, numeral_ands[i].word);
        const bool inside =
            isalpha((unsigned char)*numeral_ands[i].word) || (unsigned char)*numeral_ands[i].word >= 0x80;
        if (n && take_word(s, at + n, s->languages & numeral_ands[i].languages, inside))
            return true;
    }
    if (*at == ' ' || *at == '-')
        return take_word(s, at + 1, s->languages, false);
    return take_word(s, at, s->languages & numerals_in_one_word, false);
}

static bool is_inside_word(const char *begin, const char *at)
{
    if (at == begin || strchr("_-", at[-1]) || isalnum((unsigned char)at[-1]))
        return at > begin;
    const char *last = at - 1;
    while (last > begin && ((unsigned char)*last & 0xc0) == 0x80)
        last--;
    return calendar_word(last) > 0;
}

static const char *read_words(const char *begin, const char *at, struct spelling *s)
{
    *s = (struct spelling){ .languages = ~0u, .unit = 1, .end = at };
    if (is_inside_word(begin, at) || !take_word(s, at, s->languages, false))
        return at;
    while (take_next(s))
        continue;
    const char *end = s->end;
    const bool goes_on =
        calendar_word(end) || isdigit((unsigned char)*end) || *end == '_' || (*end == '-' && calendar_word(end + 1));
    return goes_on || s->weak ? at : end;
}

/* ---- Chinese, Japanese and Korean ---- */

static const struct script {
    const char *digits[11]; /* the last: another two */
    const char *places[7];
} scripts[] = {
    { { "零", "一", "二", "三", "四", "五", "六", "七", "八", "九", "两" },
      { "十", "百", "千", "万", "亿", "萬", "億" } },
    { { "영", "일", "이", "삼", "사", "오", "육", "칠", "팔", "구", "" }, { "십", "백", "천", "만", "억", "", "" } },
};

static bool is_at(const char *at, const char *sign)
{
    return *sign && strncmp(at, sign, strlen(sign)) == 0;
}

static int digit_at(const struct script *s, const char *at)
{
    for (size_t i = 0; i < countof(s->digits); i++)
        if (is_at(at, s->digits[i]))
            return i < 10 ? (int)i : 2;
    return -1;
}

static double place_at(const struct script *s, const char *at)
{
    static const double scales[] = { 10, 100, 1000, 1e4, 1e8, 1e4, 1e8 };
    for (size_t i = 0; i < countof(s->places); i++)
        if (is_at(at, s->places[i]))
            return scales[i];
    return 0;
}

/* At least two signs, one of them a place: "三" and "万" alone are too often something else. */
static double read_signs(const struct script *s, const char *at, const char **end, double *unit)
{
    enum { SIGN_BYTES = 3 };
    double all = 0, part = 0, digit = place_at(s, at) == 10 ? 1 : 0;
    size_t n = 0, places = 0;
    *unit = 1;
    *end = at;
    for (;; at += SIGN_BYTES, n++) {
        const int d = digit_at(s, at);
        const double p = d < 0 ? place_at(s, at) : 0;
        if (d < 0 && p == 0)
            break;
        if (d >= 0) {
            digit = d;
            *unit = 1;
            continue;
        }
        if (digit == 0 && part == 0)
            return 0; /* "百分", "千万": no digit in front */
        if (p < 1e4)
            part += digit * p;
        else
            all += (part + digit) * p;
        part = p < 1e4 ? part : 0;
        digit = 0;
        *unit = p;
        places++;
    }
    if (n < 2 || places == 0)
        return 0;
    *end = at;
    return all + part + digit;
}

/* ---- all ---- */

static void set(struct number *out, const char *at, const char *end, double value, double unit)
{
    *out = (struct number){ .at = at, .end = end, .values = { value }, .units = { unit }, .n = 1, .whole = true };
}

static const char *spelled_chinese(const char *at, struct number *out)
{
    static const char of_hundred[] = "百分之";
    const struct script *zh = &scripts[0];
    const char *end = at;
    double unit = 1;
    if (strncmp(at, of_hundred, strlen(of_hundred)) == 0) {
        const char *from = at + strlen(of_hundred);
        double value = read_signs(zh, from, &end, &unit);
        if (end == from && digit_at(zh, from) >= 0) {
            value = digit_at(zh, from);
            end = from + strlen("一");
        }
        if (end == from || end == at)
            return at;
        set(out, at, end, value, 1);
        out->percent = true;
        return end;
    }
    const double value = read_signs(zh, at, &end, &unit);
    if (end == at || strncmp(end, "分", strlen("分")) == 0)
        return at;
    set(out, at, end, value, unit);
    return end;
}

/* Its signs are syllables of many words: only where something is counted. */
static const char *spelled_korean(const char *begin, const char *at, struct number *out)
{
    static const char *const counted[] = { "명", "개", "행", "건", "원", "번",     "회", "대",  "곳",
                                           "줄", "종", "년", "월", "일", "퍼센트", "%",  "가지" };
    const char *end = at;
    double unit = 1;
    if (is_inside_word(begin, at))
        return at;
    const double value = read_signs(&scripts[1], at, &end, &unit);
    for (size_t i = 0; end > at && i < countof(counted); i++)
        if (is_at(end + (*end == ' '), counted[i])) {
            set(out, at, end, value, unit);
            return end;
        }
    return at;
}

static bool is_sign(const struct script *s, const char *at)
{
    return digit_at(s, at) >= 0 || place_at(s, at) > 0;
}

const char *spelled_read(const char *begin, const char *at, struct number *out, double *scale)
{
    struct spelling s;
    *scale = 1;
    if ((unsigned char)*at >= 0xe0) {
        if (is_sign(&scripts[0], at))
            return spelled_chinese(at, out);
        return is_sign(&scripts[1], at) ? spelled_korean(begin, at, out) : at;
    }
    const char *end = read_words(begin, at, &s);
    if (end == at)
        return at;
    set(out, at, end, s.all + s.part, s.unit);
    out->percent = number_percent(begin, at, &end);
    out->end = end;
    return end;
}
