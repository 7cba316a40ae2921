/* sse.c - lines from bytes, events from lines. */
#include "sse.h"
#include <string.h>

void sse_init(struct sse *s, enum sse_form form, sse_event_fn *fn, void *ud)
{
    *s = (struct sse){
        .fn = fn,
        .ud = ud,
        .form = form,
        .line = STR_INIT(SSE_EVENT_MAX),
        .name = STR_INIT(SSE_EVENT_MAX),
        .data = STR_INIT(SSE_EVENT_MAX),
    };
}

void sse_clear(struct sse *s)
{
    str_clear(&s->line);
    str_clear(&s->name);
    str_clear(&s->data);
}

static void empty(struct str *s)
{
    s->len = 0;
    if (s->buf)
        s->buf[0] = '\0';
}

static void dispatch(struct sse *s)
{
    if (s->has_data && !s->stopped && !s->data.overflow && !s->name.overflow)
        s->stopped = !s->fn(s->ud, str_peek(&s->name), str_peek(&s->data), s->data.len);
    s->has_data = false;
    empty(&s->name);
    empty(&s->data);
}

static bool is_field(const char *line, size_t n, const char *field)
{
    const size_t want = strlen(field);
    return n == want && memcmp(line, field, want) == 0;
}

static void field_line(struct sse *s, const char *line, size_t n)
{
    const char *colon = memchr(line, ':', n);
    const size_t field_n = colon ? (size_t)(colon - line) : n;
    const char *value = colon ? colon + 1 : line + n;
    size_t value_n = (size_t)(line + n - value);
    if (value_n && *value == ' ') {
        value++;
        value_n--;
    }
    if (is_field(line, field_n, "data")) {
        if (s->has_data)
            str_putc(&s->data, '\n');
        s->has_data = true;
        str_add(&s->data, value, value_n);
    } else if (is_field(line, field_n, "event")) {
        empty(&s->name);
        str_add(&s->name, value, value_n);
    }
}

static void json_line(struct sse *s, const char *line, size_t n)
{
    s->has_data = n > 0;
    str_add(&s->data, line, n);
    dispatch(s);
}

/* A line is whole; line is not NUL-terminated. */
static void take_line(struct sse *s, const char *line, size_t n)
{
    static const char bom[] = "\xef\xbb\xbf";
    if (!s->begun && n >= 3 && memcmp(line, bom, 3) == 0) {
        line += 3;
        n -= 3;
    }
    s->begun = true;
    if (s->form == SSE_LINES)
        json_line(s, line, n);
    else if (n == 0)
        dispatch(s);
    else if (*line != ':')
        field_line(s, line, n);
}

/* The line that ends at data + n, which may have begun in an earlier read. */
static void end_line(struct sse *s, const char *data, size_t n)
{
    if (s->line.len == 0) {
        take_line(s, data, n);
        return;
    }
    str_add(&s->line, data, n);
    if (!s->line.overflow)
        take_line(s, str_peek(&s->line), s->line.len);
    empty(&s->line);
}

static int check(const struct sse *s, struct err *e)
{
    if (s->line.overflow || s->data.overflow || s->name.overflow)
        return err_set(e, ERR_DATA, "stream: one event is longer than %d bytes", SSE_EVENT_MAX);
    if (s->total > SSE_STREAM_MAX)
        return err_set(e, ERR_DATA, "stream: longer than %d bytes", SSE_STREAM_MAX);
    return 0;
}

static size_t until_line_end(const char *data, size_t n)
{
    size_t i = 0;
    while (i < n && data[i] != '\n' && data[i] != '\r')
        i++;
    return i;
}

int sse_feed(struct sse *s, const char *data, size_t n, struct err *e)
{
    s->total += n;
    while (n > 0 && !s->stopped && check(s, e) == 0) {
        if (s->after_cr && *data == '\n') {
            s->after_cr = false;
            data++;
            n--;
            continue;
        }
        s->after_cr = false;
        const size_t len = until_line_end(data, n);
        if (len == n) {
            str_add(&s->line, data, n);
            break;
        }
        end_line(s, data, len);
        s->after_cr = data[len] == '\r';
        data += len + 1;
        n -= len + 1;
    }
    return check(s, e);
}

int sse_finish(struct sse *s, struct err *e)
{
    if (s->line.len && !s->stopped)
        end_line(s, "", 0);
    dispatch(s);
    return check(s, e);
}
