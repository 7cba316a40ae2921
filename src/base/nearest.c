/* nearest.c - "did you mean ...?" */
#include <string.h>
#include "str.h"

enum { WORD_MAX = 64 };

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Levenshtein's edit distance, one row at a time; b has at most WORD_MAX bytes. */
static size_t distance(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1], n = strlen(b);
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t above = row[j];
            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[n];
}

const char *str_nearest(const char *word, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t len = strlen(word), limit = len / 3 + 1;
    if (len > WORD_MAX)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(names[i], word);
        if (d < limit || (d == limit && !best && len > 2)) {
            best = names[i];
            limit = d;
        }
    }
    return best;
}
