#include "str.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { STR_FIRST_CAP = 64, READ_CHUNK = 16 << 10 };

static void *reallocate(void *p, size_t n)
{
    void *grown = realloc(p, n);
    if (!grown)
        abort();
    return grown;
}

/* Room for n more bytes and the NUL; false when that would pass the ceiling. */
static bool reserve(struct str *s, size_t n)
{
    if (s->overflow || n > s->max - s->len || n >= SIZE_MAX - s->len) {
        s->overflow = true;
        return false;
    }
    size_t need = s->len + n + 1;
    if (need <= s->cap)
        return true;
    size_t cap = s->cap ? s->cap : STR_FIRST_CAP;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    s->buf = reallocate(s->buf, cap);
    s->cap = cap;
    return true;
}

void str_add(struct str *s, const void *data, size_t n)
{
    if (!reserve(s, n))
        return;
    if (n > 0)
        memcpy(s->buf + s->len, data, n);
    s->len += n;
    s->buf[s->len] = '\0';
}

void str_puts(struct str *s, const char *text)
{
    str_add(s, text, strlen(text));
}

void str_putc(struct str *s, char c)
{
    str_add(s, &c, 1);
}

void str_printf(struct str *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        s->overflow = true;
    else if (reserve(s, (size_t)n)) {
        va_start(ap, fmt);
        (void)vsnprintf(s->buf + s->len, (size_t)n + 1, fmt, ap);
        va_end(ap);
        s->len += (size_t)n;
    }
}

void str_drop(struct str *s, size_t n)
{
    if (n == 0 || s->len == 0)
        return;
    n = n < s->len ? n : s->len;
    memmove(s->buf, s->buf + n, s->len - n + 1);
    s->len -= n;
}

int str_check(const struct str *s, struct err *e)
{
    if (s->overflow)
        return err_set(e, ERR_DATA, "more than %zu bytes", s->max);
    return 0;
}

const char *str_peek(const struct str *s)
{
    return s->buf ? s->buf : "";
}

char *str_take(struct str *s)
{
    char *text = s->buf ? s->buf : xcalloc(1, 1);
    *s = (struct str){ .max = s->max };
    return text;
}

void str_clear(struct str *s)
{
    free(s->buf);
    *s = (struct str){ .max = s->max };
}

int str_read_fd(struct str *s, int fd, struct err *e)
{
    char chunk[READ_CHUNK];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));
        if (n == 0)
            return str_check(s, e);
        if (n > 0)
            str_add(s, chunk, (size_t)n);
        else if (errno != EINTR)
            return err_sys(e, ERR_STORE, errno, "cannot read");
        if (s->overflow)
            return str_check(s, e);
    }
}

int str_read_file(struct str *s, const char *path, struct err *e)
{
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, ERR_STORE, errno, "cannot open %s", path);
    if (str_read_fd(s, fd, e) < 0)
        return err_wrap(e, "%s", path);
    return 0;
}

int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    const char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}
