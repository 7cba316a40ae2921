/* claims_spell.c - numbers in words: "forty-two", "three hundred", "三百二十", "百分之三十", "三成". */
#include <ctype.h>
#include <strings.h>
#include "claims_private.h"

/* ---- English ---- */

static const struct {
    const char *word;
    double value;
} english[] = {
    { "one", 1 },      { "two", 2 },        { "three", 3 },     { "four", 4 },      { "five", 5 },
    { "six", 6 },      { "seven", 7 },      { "eight", 8 },     { "nine", 9 },      { "ten", 10 },
    { "eleven", 11 },  { "twelve", 12 },    { "thirteen", 13 }, { "fourteen", 14 }, { "fifteen", 15 },
    { "sixteen", 16 }, { "seventeen", 17 }, { "eighteen", 18 }, { "nineteen", 19 }, { "twenty", 20 },
    { "thirty", 30 },  { "forty", 40 },     { "fifty", 50 },    { "sixty", 60 },    { "seventy", 70 },
    { "eighty", 80 },  { "ninety", 90 },
};
static const struct {
    const char *word;
    double scale;
} scales[] = { { "hundred", 1e2 }, { "thousand", 1e3 }, { "million", 1e6 }, { "billion", 1e9 } };

static size_t word_len(const char *at)
{
    size_t n = 0;
    while (isalpha((unsigned char)at[n]))
        n++;
    return n;
}

static double small_value(const char *at, size_t n)
{
    for (size_t i = 0; i < countof(english); i++)
        if (strlen(english[i].word) == n && strncasecmp(at, english[i].word, n) == 0)
            return english[i].value;
    return 0;
}

static double scale_of(const char *at, size_t n)
{
    for (size_t i = 0; i < countof(scales); i++)
        if (strlen(scales[i].word) == n && strncasecmp(at, scales[i].word, n) == 0)
            return scales[i].scale;
    return 0;
}

/* The next word of the same number: behind a blank or hyphen, and an "and". */
static const char *next_word(const char *at)
{
    if (*at != ' ' && *at != '-')
        return NULL;
    at++;
    return strncasecmp(at, "and ", 4) == 0 ? at + 4 : at;
}

/* "forty-two", "seven", at a word's beginning: its value, 0: none. */
static double read_below_hundred(const char *at, const char **end)
{
    const size_t n = word_len(at);
    const double tens = small_value(at, n);
    *end = at + n;
    if (tens < 20 || (at[n] != ' ' && at[n] != '-'))
        return tens;
    const size_t k = word_len(at + n + 1);
    const double ones = small_value(at + n + 1, k);
    if (ones < 1 || ones > 9)
        return tens;
    *end = at + n + 1 + k;
    return tens + ones;
}

/* "two hundred and five thousand" is 205,000; *unit is the scale of its last word. */
static double read_english(const char *at, const char **end, double *unit)
{
    double all = 0, part = read_below_hundred(at, end);
    *unit = 1;
    for (const char *word = next_word(*end); part > 0 && word; word = next_word(*end)) {
        const char *behind = word + word_len(word);
        const double scale = scale_of(word, (size_t)(behind - word));
        const double more = scale > 0 ? 0 : read_below_hundred(word, &behind);
        if (scale == 0 && (more == 0 || *unit < 100))
            break;
        if (scale > 100) {
            all += part * scale;
            part = 0;
        } else if (scale > 0) {
            part *= scale;
        }
        part += more;
        *unit = scale > 0 ? scale : 1;
        *end = behind;
        if (part == 0)
            break; /* a thousand of them ends it: what follows is rare in prose */
    }
    return all + part;
}

/* ---- Chinese ---- */

static int numeral(const char *at)
{
    static const char *const digits[] = { "零", "一", "二", "三", "四", "五", "六", "七", "八", "九" };
    for (size_t i = 0; i < countof(digits); i++)
        if (strncmp(at, digits[i], strlen(digits[i])) == 0)
            return (int)i;
    return strncmp(at, "两", strlen("两")) == 0 ? 2 : -1;
}

static double place(const char *at)
{
    static const struct {
        const char *word;
        double scale;
    } places[] = { { "十", 10 }, { "百", 100 }, { "千", 1000 }, { "万", 1e4 }, { "亿", 1e8 } };
    for (size_t i = 0; i < countof(places); i++)
        if (strncmp(at, places[i].word, strlen(places[i].word)) == 0)
            return places[i].scale;
    return 0;
}

/* "三千五百": 3500. At least one digit or a leading ten, and one place; *end is `at` when it is no number. */
static double read_chinese(const char *at, const char **end, double *unit)
{
    enum { NUMERAL_BYTES = 3 };
    double all = 0, part = 0, digit = place(at) == 10 ? 1 : 0;
    size_t n = 0, places = 0;
    *unit = 1;
    *end = at;
    for (;; at += NUMERAL_BYTES, n++) {
        const int d = numeral(at);
        const double p = d < 0 ? place(at) : 0;
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

/* ---- both ---- */

static void set(struct number *out, const char *at, const char *end, double value, double unit)
{
    *out = (struct number){ .at = at, .end = end, .values = { value }, .units = { unit }, .n = 1, .whole = true };
}

static const char *spelled_chinese(const char *at, struct number *out)
{
    static const char of_hundred[] = "百分之";
    const char *end = at;
    double unit = 1;
    if (strncmp(at, of_hundred, strlen(of_hundred)) == 0) {
        const char *from = at + strlen(of_hundred);
        double value = read_chinese(from, &end, &unit);
        if (end == from && numeral(from) >= 0) {
            value = numeral(from);
            end = from + strlen("一");
        }
        if (end == from || end == at)
            return at;
        set(out, at, end, value, 1);
        out->percent = true;
        return end;
    }
    const double value = read_chinese(at, &end, &unit);
    if (end == at || strncmp(end, "分", strlen("分")) == 0)
        return at;
    set(out, at, end, value, unit);
    return end;
}

const char *spelled_read(const char *begin, const char *at, struct number *out, double *scale)
{
    const char *end = at;
    double unit = 1;
    *scale = 1;
    if ((unsigned char)*at >= 0x80)
        return numeral(at) >= 0 || place(at) > 0 ? spelled_chinese(at, out) : at;
    if (!isalpha((unsigned char)*at) || (at > begin && (isalnum((unsigned char)at[-1]) || strchr("_-", at[-1]))))
        return at;
    const double value = read_english(at, &end, &unit);
    if (value <= 0 || isalnum((unsigned char)*end) || *end == '_' || (*end == '-' && isalpha((unsigned char)end[1])))
        return at;
    set(out, at, end, value, unit);
    out->percent = number_percent(begin, at, &end);
    out->end = end;
    return end;
}
