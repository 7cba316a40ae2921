#include "log.h"
#include "metric.h"
#include "str.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
    LOG_VALUE_MAX = 8 << 10, /* one value; journald splits lines at 48 KiB */
    LOG_LINE_MAX = 256 << 10 /* escapes make a value at most four times longer */
};

static const char *const level_names[] = { "error", "warn", "info", "debug" };

static enum log_level threshold = LOG_INFO;

void log_set_level(enum log_level level)
{
    threshold = level;
}

const char *log_level_word(void)
{
    return level_names[threshold];
}

int log_level_from(const char *word)
{
    for (int i = 0; i < (int)countof(level_names); i++)
        if (strcmp(level_names[i], word) == 0)
            return i;
    return -1;
}

/* Code points that move the cursor, break the line or reorder it. */
static bool is_hidden(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
}

static void escape(struct str *out, uint32_t cp)
{
    if (cp == '\n')
        str_puts(out, "\\n");
    else if (cp == '\t')
        str_puts(out, "\\t");
    else if (cp < 0x100)
        str_printf(out, "\\x%02" PRIx32, cp);
    else
        str_printf(out, "\\u%04" PRIx32, cp);
}

/* Trust boundary: a value may be anything that a peer sent, and must not end the line or forge a key. */
static void inside_quotes(struct str *out, const char *s, size_t n)
{
    for (size_t at = 0; at < n;) {
        uint32_t cp = 0;
        size_t len = utf8_decode(s + at, n - at, &cp);
        if (len == 0)
            str_printf(out, "\\x%02x", (unsigned)(unsigned char)s[at]);
        else if (is_hidden(cp))
            escape(out, cp);
        else if (cp == '"' || cp == '\\')
            str_printf(out, "\\%c", (char)cp);
        else
            str_add(out, s + at, len);
        at += len ? len : 1;
    }
}

static bool is_bare(const char *s)
{
    if (!*s)
        return false;
    for (; *s; s++)
        if (*s <= ' ' || *s >= 0x7f || strchr("\"\\=", *s))
            return false;
    return true;
}

static void value(struct str *out, const char *s)
{
    size_t n = s ? strnlen(s, LOG_VALUE_MAX + 4) : 0;
    size_t keep = n > LOG_VALUE_MAX ? utf8_cut(s, n, LOG_VALUE_MAX) : n;
    if (s && n == keep && is_bare(s)) {
        str_puts(out, s);
        return;
    }
    str_putc(out, '"');
    if (s)
        inside_quotes(out, s, keep);
    str_puts(out, n == keep ? "\"" : "...\"");
}

static void error_pair(struct str *out, const struct kv *kv)
{
    const struct err *e = kv->v.e;
    str_printf(out, " kind=%s", err_kind_name(e ? e->kind : ERR_NONE));
    if (e && e->kind == ERR_LIMIT)
        str_printf(out, " retry_ms=%ld", e->retry_ms);
    str_printf(out, " %s=", kv->key);
    value(out, e ? e->msg : NULL);
}

static void pair(struct str *out, const struct kv *kv)
{
    switch (kv->type) {
    case KV_STR:
        str_printf(out, " %s=", kv->key);
        value(out, kv->v.s);
        break;
    case KV_INT: str_printf(out, " %s=%" PRId64, kv->key, kv->v.i); break;
    case KV_ERR: error_pair(out, kv); break;
    case KV_SECRET: str_printf(out, " %s=secret:%zu", kv->key, kv->v.s ? strlen(kv->v.s) : 0); break;
    }
}

void log_emit(enum log_level level, const char *event, const struct kv *kv, size_t n)
{
    metric_count(METRIC_LOG_LINES, level_names[level], 1);
    if (level > threshold)
        return;
    int saved = errno;
    AUTO(str_clear) struct str line = STR_INIT(LOG_LINE_MAX);
    str_printf(&line, "level=%s event=%s", level_names[level], event);
    for (size_t i = 0; i < n; i++)
        pair(&line, &kv[i]);
    /* One write, so that lines of several processes do not mix; nobody to tell when it fails. */
    line.overflow = false;
    line.max++;
    str_putc(&line, '\n');
    (void)!write_all(STDERR_FILENO, line.buf, line.len);
    errno = saved;
}
