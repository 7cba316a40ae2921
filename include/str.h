/* str.h - growable bytes with a ceiling, and the only code that knows UTF-8. Floor 0.
 *
 * A str is always NUL-terminated and may hold NULs. An addition that would pass its ceiling is dropped whole, and so
 * is all that follows: the content is an unbroken prefix. Build first, ask str_check() once at the end. Memory that
 * runs out aborts. What is added must not lie in the str itself. */
#ifndef STR_H
#define STR_H
#include "err.h"

struct str {
    char *buf; /* NULL until something was added; use str_peek() for text */
    size_t len, cap;
    size_t max;    /* bytes, without the NUL */
    bool overflow; /* something did not fit */
};
/* clang-format off */
#define STR_INIT(limit) { .max = (limit) }
/* clang-format on */

void str_add(struct str *s, const void *data, size_t n);
void str_puts(struct str *s, const char *text);
void str_putc(struct str *s, char c);
void str_printf(struct str *s, const char *fmt, ...) printf_like(2, 3);
/* Removes the first n bytes, at most all; what follows them moves to the front. */
void str_drop(struct str *s, size_t n);
/* -1 with ERR_DATA when anything was dropped since init or clear. */
must_check int str_check(const struct str *s, struct err *e);
/* Never NULL; borrowed until the next change. */
const char *str_peek(const struct str *s);
/* Give up the buffer: the caller frees it; s is empty and reusable. Never NULL. */
char *str_take(struct str *s);
void str_clear(struct str *s);
/* Read fd to its end. ERR_DATA past the ceiling, ERR_STORE when reading fails. */
must_check int str_read_fd(struct str *s, int fd, struct err *e);
must_check int str_read_file(struct str *s, const char *path, struct err *e);

/* The name that is a typing slip away from word (up to a third of its letters), or NULL: "did you mean ...?" */
const char *str_nearest(const char *word, const char *const *names, size_t n);

/* 0 to 15; -1: no hexadecimal digit. */
int hex_digit(char c);

/* ---- UTF-8 ---- */
/* Strict: no surrogates, overlongs or NUL; nothing past U+10FFFF. */
bool utf8_valid(const char *data, size_t n);
/* The one door through which bytes of a child or a peer become text. Invalid sequences become U+FFFD (one for each
 * maximal subpart); ANSI escapes, control characters but \n and \t, and bidirectional overrides and isolates are
 * dropped; CR LF becomes LF; what is printed after a lone CR replaces its line, as progress bars want it. Emoji
 * joiners and variation selectors stay. Idempotent. Appends to out, at most three bytes for each of data, and
 * never touches what was there before. */
void utf8_scrub(struct str *out, const char *data, size_t n);
/* Bytes of the longest prefix that has at most max_bytes and cuts no grapheme cluster. A first cluster that alone is
 * longer is cut between code points, so that a splitting loop with max_bytes >= 4 always moves on. */
size_t utf8_cut(const char *text, size_t n, size_t max_bytes);
/* Columns on a terminal (wide characters count two). */
size_t utf8_width(const char *text, size_t n);
/* Newly allocated, caller frees. NFC for names; fold = NFKC + case folding without invisible characters, for
 * comparing. Text must be valid; else it comes back as it is. */
char *utf8_nfc(const char *text);
char *utf8_fold(const char *text);
/* Next code point at *p, which is advanced; 0 at the end. A broken sequence counts as U+FFFD. */
uint32_t utf8_next(const char **p);
/* Bytes of the code point at data, 0 when no valid one begins there. NUL is one here. *cp only set when found. */
size_t utf8_decode(const char *data, size_t n, uint32_t *cp);
#endif
