/* tokens.c - estimates, and what they are worth. */
#include "tokens.h"
#include "str.h"

enum {
    MSG_TOKENS = 4,     /* what a message costs beside its text */
    LONG_TOKENS = 2000, /* shorter prompts fit everywhere */
    LOST_PART = 60,     /* per cent of what was expected: less cannot be an error of the estimate */
    LOST_PART_NEW = 50, /* the same before anything was learned */
    WINDOW_LEAST = 512, /* a smaller one is a slip of reading */
};
static const double new_part = 0.3; /* of a smoothed ratio that the newest count makes */
static const double ratio_min = 0.25, ratio_max = 4;

/* Hundredths of a token that a character costs: prose 4 to a token, code and digits 3, other alphabets 2, CJK one and a bit. */
static int64_t weight(uint32_t c)
{
    if (c >= 0x2e80)
        return 80;
    if (c >= 0x80)
        return 50;
    const uint32_t lower = c | 0x20;
    return (lower >= 'a' && lower <= 'z') || c == ' ' ? 25 : 34;
}

int64_t tokens_of_text(const char *text)
{
    int64_t sum = 0;
    for (uint32_t c = utf8_next(&text); c; c = utf8_next(&text))
        sum += weight(c);
    return (sum + 99) / 100;
}

int64_t tokens_of(const struct transcript *t, size_t from, size_t to)
{
    int64_t sum = 0;
    for (size_t i = from; i < to && i < t->n; i++) {
        sum += MSG_TOKENS + tokens_of_text(t->at[i].text);
        for (size_t k = 0; k < t->at[i].call_n; k++)
            sum += MSG_TOKENS + tokens_of_text(t->at[i].calls[k].args);
    }
    return sum;
}

int64_t tokens_scaled(const struct token_scale *s, int64_t estimate)
{
    return s && s->ratio > 0 ? (int64_t)((double)estimate * s->ratio) : estimate;
}

static double ratio_of(int64_t estimate, int64_t reported)
{
    const double ratio = (double)reported / (double)estimate;
    return ratio < ratio_min ? ratio_min : ratio > ratio_max ? ratio_max : ratio;
}

void tokens_refused(struct token_scale *s, int64_t estimate, int64_t window, int64_t sent)
{
    if (!s)
        return;
    if (window >= WINDOW_LEAST)
        s->window = window;
    if (sent > 0 && estimate > 0)
        s->ratio = ratio_of(estimate, sent);
}

bool tokens_learn(struct token_scale *s, int64_t estimate, int64_t reported)
{
    if (!s || reported <= 0 || estimate <= 0)
        return true;
    const int64_t expected = tokens_scaled(s, estimate);
    const int64_t part = s->ratio > 0 ? LOST_PART : LOST_PART_NEW;
    if (expected >= LONG_TOKENS && reported < expected * part / 100) {
        s->window = reported;
        return false;
    }
    const double ratio = ratio_of(estimate, reported);
    s->ratio = s->ratio > 0 ? s->ratio + new_part * (ratio - s->ratio) : ratio;
    return true;
}
