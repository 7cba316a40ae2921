/* sql_sink.c - a table on its way out. */
#include <ctype.h>
#include "sql.h"

enum {
    PREVIEW_ROWS = 10,
    PREVIEW_CELL = 60,       /* bytes of one value */
    PREVIEW_BYTES = 4 << 10, /* of all: then rows are left out */
    ROW_MAX = 64 << 20,
};

void sql_sink_clear(struct sql_sink *s)
{
    json_free(s->columns);
    json_free(s->preview);
    s->columns = s->preview = NULL;
}

/* A number with a sign is no formula. */
static bool is_formula(const struct sql_value *v)
{
    return v->kind == SQL_TEXT && v->n && strchr("=+-@\t\r", v->text[0]);
}

static void add_quoted(struct str *line, const char *text, size_t n)
{
    str_putc(line, '"');
    for (const char *quote; n && (quote = memchr(text, '"', n)) != NULL;) {
        const size_t part = (size_t)(quote - text) + 1;
        str_add(line, text, part);
        str_putc(line, '"');
        text += part;
        n -= part;
    }
    str_add(line, text, n);
    str_putc(line, '"');
}

static void add_field(struct str *line, const char *text, size_t n)
{
    if (n == 0 || strcspn(text, ",\"\r\n") < n || isspace((unsigned char)text[0]) ||
        isspace((unsigned char)text[n - 1]))
        add_quoted(line, text, n);
    else
        str_add(line, text, n);
}

/* An empty text is "", no value is nothing at all. */
static void add_value(struct sql_sink *s, struct str *line, const struct sql_value *v)
{
    if (!v->text)
        return;
    if (v->kind == SQL_BYTES) {
        str_printf(line, "<%zu bytes>", v->n);
        return;
    }
    AUTO(str_clear) struct str text = STR_INIT(ROW_MAX);
    if (is_formula(v)) {
        str_putc(&text, '\'');
        s->guarded++;
    }
    if (utf8_valid(v->text, v->n))
        str_add(&text, v->text, v->n);
    else
        utf8_scrub(&text, v->text, v->n);
    add_field(line, str_peek(&text), text.len);
}

static void add_preview(struct sql_sink *s, const struct sql_value *values, size_t n)
{
    if (s->rows >= PREVIEW_ROWS || s->preview_bytes > PREVIEW_BYTES)
        return;
    struct json *row = json_new_array();
    for (size_t i = 0; i < n; i++) {
        const struct sql_value *v = &values[i];
        const size_t cut = v->text && v->kind != SQL_BYTES ? utf8_cut(v->text, v->n, PREVIEW_CELL) : 0;
        autofree char *text = v->kind == SQL_BYTES
                                  ? xasprintf("<%zu bytes>", v->n)
                                  : xasprintf("%.*s%s", (int)cut, v->text ? v->text : "", cut < v->n ? "..." : "");
        json_push(row, v->text ? json_new_string(text) : json_new_null());
        s->preview_bytes += cut;
    }
    json_push(s->preview, row);
}

void sql_sink_columns(struct sql_sink *s, const char *const *names, const char *const *types, size_t n)
{
    AUTO(str_clear) struct str line = STR_INIT(ROW_MAX);
    s->columns = json_new_array();
    s->preview = json_new_array();
    for (size_t i = 0; i < n; i++) {
        struct json *column = json_new_object();
        json_set_str(column, "name", names[i]);
        if (types[i])
            json_set_str(column, "type", types[i]);
        json_push(s->columns, column);
        if (i)
            str_putc(&line, ',');
        add_value(s, &line, &(struct sql_value){ names[i], strlen(names[i]), SQL_TEXT });
    }
    str_putc(&line, '\n');
    (void)fwrite(str_peek(&line), 1, line.len, s->out);
    s->bytes += (int64_t)line.len;
}

bool sql_sink_row(struct sql_sink *s, const struct sql_value *values, size_t n)
{
    AUTO(str_clear) struct str line = STR_INIT(ROW_MAX);
    const int64_t guarded = s->guarded;
    for (size_t i = 0; i < n; i++) {
        if (i)
            str_putc(&line, ',');
        add_value(s, &line, &values[i]);
    }
    /* One column without a value would be an empty line, which readers skip. */
    str_puts(&line, line.len ? "\n" : "\"\"\n");
    if (s->rows >= s->rows_max || line.overflow || s->bytes + (int64_t)line.len > s->bytes_max) {
        s->guarded = guarded;
        s->more = true;
        return false;
    }
    add_preview(s, values, n);
    (void)fwrite(str_peek(&line), 1, line.len, s->out);
    s->bytes += (int64_t)line.len;
    s->rows++;
    return true;
}
