/* slack_table.c - a table of an answer as a block, or as CSV.
 *
 * Slack refuses the whole message for one empty cell, one row of another length or one row too many. */
#include "chat/markup.h"
#include "slack_blocks.h"

enum {
    COLUMNS_MAX = 20,
    ROWS_MAX = 100,   /* with the head; a data_table may have one more */
    ROWS_SHOWN = 20,  /* of a table that has more */
    CELL_MAX = 500,   /* bytes of one cell */
    CHARS_MAX = 8500, /* over all cells of a message; Slack's limit is 10,000 */
    SORTED_FROM = 13, /* rows from which sorting and paging are worth it */
    PAGE = 10,
};

static void cell_text(struct str *out, const struct markup *cell)
{
    AUTO(str_clear) struct str raw = STR_INIT(64 << 10);
    for (size_t i = 0; cell && i < cell->run_n; i++)
        str_puts(&raw, cell->runs[i].text);
    size_t n = utf8_cut(str_peek(&raw), raw.len, CELL_MAX);
    for (size_t i = 0; i < n; i++)
        str_putc(out, (char)(raw.buf[i] == '\n' || raw.buf[i] == '\t' ? ' ' : raw.buf[i]));
    if (n < raw.len)
        str_puts(out, "…");
    if (str_peek(out)[strspn(str_peek(out), " ")] == '\0') {
        str_clear(out);
        str_puts(out, "–"); /* an empty text is refused */
    }
}

/* 1,234.5, -3, 12 %: as a number; false: it is words. */
static bool number_of(const char *text, double *out)
{
    char digits[64];
    size_t n = 0;
    for (const char *c = text; *c; c++) {
        if (*c == ',' && n && c[1] >= '0' && c[1] <= '9')
            continue;
        if (n + 1 >= sizeof(digits))
            return false;
        digits[n++] = *c;
    }
    digits[n] = '\0';
    char *end = NULL;
    if (n == 0 || strspn(digits, "0123456789.-+eE") != n)
        return false;
    *out = strtod(digits, &end);
    return *end == '\0' && *out < 1e300 && *out > -1e300;
}

static struct json *cell_json(const struct markup *cell, bool numbers, size_t *chars)
{
    AUTO(str_clear) struct str text = STR_INIT(4096);
    struct json *o = json_new_object();
    double n = 0;
    cell_text(&text, cell);
    *chars += text.len;
    const bool numeric = numbers && number_of(str_peek(&text), &n);
    json_set_str(o, "type", numeric ? "raw_number" : "raw_text");
    if (numeric)
        json_set_num(o, "value", n);
    json_set_str(o, "text", str_peek(&text));
    return o;
}

static size_t count(const struct markup *m)
{
    size_t n = 0;
    for (const struct markup *c = m ? m->first : NULL; c; c = c->next)
        n++;
    return n;
}

/* Every row as long as the head. */
static struct json *row_json(const struct markup *row, size_t columns, bool numbers, size_t *chars)
{
    struct json *cells = json_new_array();
    const struct markup *cell = row->first;
    for (size_t i = 0; i < columns; i++) {
        json_push(cells, cell_json(cell, numbers, chars));
        cell = cell ? cell->next : NULL;
    }
    return cells;
}

static struct json *columns_json(const struct markup *head)
{
    static const char *const words[] = { "left", "center", "right" };
    struct json *array = json_new_array();
    for (const struct markup *c = head->first; c; c = c->next) {
        struct json *o = json_new_object();
        json_set_str(o, "align", words[c->align]);
        json_set_bool(o, "is_wrapped", true);
        json_push(array, o);
    }
    return array;
}

static char *caption_of(const struct markup *head)
{
    AUTO(str_clear) struct str text = STR_INIT(4096);
    for (const struct markup *c = head->first; c; c = c->next) {
        AUTO(str_clear) struct str cell = STR_INIT(4096);
        cell_text(&cell, c);
        str_printf(&text, "%s%s", text.len ? ", " : "", str_peek(&cell));
    }
    return xstrndup(str_peek(&text), utf8_cut(str_peek(&text), text.len, 150));
}

static struct json *rows_json(const struct markup *table, size_t columns, bool numbers, size_t max, size_t *shown)
{
    struct json *rows = json_new_array();
    size_t chars = 0, n = 0;
    for (const struct markup *r = table->first; r && n < max; r = r->next, n++) {
        struct json *row = row_json(r, columns, numbers && n > 0, &chars);
        if (chars > CHARS_MAX) {
            json_free(row);
            break;
        }
        json_push(rows, row);
    }
    *shown = n;
    return rows;
}

struct json *slack_table(const struct markup *table, bool data_table, size_t *shown)
{
    const size_t columns = count(table->first), all = count(table);
    const bool sorted = data_table && all > SORTED_FROM;
    if (columns == 0 || columns > COLUMNS_MAX || all < 2)
        return NULL;
    struct json *rows = rows_json(table, columns, sorted, all > ROWS_MAX ? ROWS_SHOWN + 1 : ROWS_MAX, shown);
    if (*shown < 2) {
        json_free(rows);
        return NULL;
    }
    struct json *o = json_new_object();
    json_set_str(o, "type", sorted ? "data_table" : "table");
    if (sorted) {
        autofree char *caption = caption_of(table->first);
        json_set_str(o, "caption", caption);
        json_set_int(o, "page_size", PAGE);
    } else {
        json_set(o, "column_settings", columns_json(table->first));
    }
    json_set(o, "rows", rows);
    return o;
}

/* A cell that a spreadsheet would execute gets an apostrophe; numbers stay numbers. */
static void csv_cell(struct str *out, const struct markup *cell)
{
    AUTO(str_clear) struct str text = STR_INIT(64 << 10);
    double n = 0;
    for (size_t i = 0; cell && i < cell->run_n; i++)
        str_puts(&text, cell->runs[i].text);
    const char *t = str_peek(&text);
    str_putc(out, '"');
    if (*t && strchr("=+-@\t\r", *t) && !number_of(t, &n))
        str_putc(out, '\'');
    for (; *t; t++) {
        if (*t == '"')
            str_putc(out, '"');
        str_putc(out, *t);
    }
    str_putc(out, '"');
}

void slack_table_csv(struct str *out, const struct markup *table)
{
    for (const struct markup *r = table->first; r; r = r->next) {
        for (const struct markup *c = r->first; c; c = c->next) {
            csv_cell(out, c);
            str_puts(out, c->next ? "," : "\r\n");
        }
    }
}
