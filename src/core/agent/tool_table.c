/* tool_table.c - small tools that need no interpreter. */
#include "tool_table.h"
#include <ctype.h>
#include <inttypes.h>
#include <time.h>
#include "json.h"
#include "tool_private.h"

enum {
    ARGS_MAX = 64 << 10,
    PRINTED_MAX = 6 * ARGS_MAX, /* the same printed again: a control character takes six */
    ZONE_MAX = 14 * 60,         /* minutes, east and west */
    CELL_MAX = 16 << 20,
    PART_BYTES = 8000, /* of an output, at once */
    FILES_MAX = 60,
};

/* ---- current_time ---- */

static bool run_current_time(struct str *out, const struct json *args, const struct tool_context *c)
{
    const int64_t offset_min = json_int_or(args, "utc_offset_minutes", 0);
    const bool good = offset_min >= -ZONE_MAX && offset_min <= ZONE_MAX;
    const time_t seconds = (time_t)(c->now_ms / 1000 + (good ? offset_min * 60 : 0));
    struct tm t;
    char text[64];
    if (!gmtime_r(&seconds, &t) || strftime(text, sizeof(text), "%A %Y-%m-%d %H:%M", &t) == 0)
        return false;
    str_printf(out, "%s UTC%+03d:%02d\n", text, good ? (int)(offset_min / 60) : 0,
               good ? abs((int)(offset_min % 60)) : 0);
    return true;
}

/* ---- list_files ---- */

static void add_made(struct str *out, const struct tool_context *c)
{
    for (size_t i = 0; i < c->cell_n; i++)
        for (size_t k = 0; k < c->cells[i].cell.files.n; k++)
            str_printf(out, "%s (made by cell %d, %" PRId64 " bytes)\n", c->cells[i].cell.files.at[k].name,
                       c->cells[i].cell.number, c->cells[i].cell.files.at[k].bytes);
}

static bool run_list_files(struct str *out, const struct json *args, const struct tool_context *c)
{
    size_t n = 0;
    (void)args;
    for (const struct json *p = json_first(c->files); p && n < FILES_MAX; p = json_next(p), n++) {
        str_printf(out, "%s (%s, %" PRId64 " bytes", json_str_or(p, "path", "?"), json_str_or(p, "kind", "?"),
                   json_int_or(p, "bytes", 0));
        if (json_type(json_get(p, "rows")) == JSON_NUMBER)
            str_printf(out, ", %" PRId64 " rows", json_int_or(p, "rows", 0));
        str_puts(out, ")\n");
    }
    if (json_len(c->files) > n)
        str_printf(out, "and %zu more\n", json_len(c->files) - n);
    add_made(out, c);
    if (out->len == 0)
        str_puts(out, "There are no files.\n");
    return true;
}

/* ---- read_more ---- */

static void add_text(struct str *out, const char *text)
{
    if (!text || !*text)
        return;
    str_puts(out, text);
    if (out->buf[out->len - 1] != '\n')
        str_putc(out, '\n');
}

static bool find_cell(struct str *out, int number, const struct tool_context *c)
{
    for (size_t i = 0; i < c->cell_n; i++) {
        const struct cell *cell = &c->cells[i].cell;
        if (cell->number != number)
            continue;
        add_text(out, cell->out);
        add_text(out, cell->err);
        add_text(out, cell->result_text);
        return true;
    }
    autofree char *stored = NULL;
    autojson struct json *cell = NULL;
    struct err ignored = { 0 };
    if (c->cell_text)
        c->cell_text(c->ud, number, &stored);
    if (!stored || json_parse(&cell, stored, strlen(stored), CELL_MAX, &ignored) < 0)
        return false;
    add_text(out, json_str_or(cell, "stdout", NULL));
    add_text(out, json_str_or(cell, "stderr", NULL));
    add_text(out, json_str_or(json_get(cell, "result"), "text/plain", NULL));
    return true;
}

/* Numbers come as numbers or, from small models, as text. */
static int64_t number_of(const struct json *args, const char *key)
{
    const char *text = json_str_or(args, key, NULL);
    return text ? strtoll(text, NULL, 10) : json_int_or(args, key, 0);
}

static bool run_read_more(struct str *out, const struct json *args, const struct tool_context *c)
{
    AUTO(str_clear) struct str all = STR_INIT(CELL_MAX);
    const int64_t number = number_of(args, "cell");
    int64_t offset = number_of(args, "offset");
    if (number < 1 || number > INT32_MAX || !find_cell(&all, (int)number, c)) {
        str_printf(out, "There is no cell %" PRId64 ".\n", number);
        return false;
    }
    if (offset < 0 || (size_t)offset >= all.len) {
        str_printf(out, "The output of cell %" PRId64 " ends at %zu.\n", number, all.len);
        return offset == 0;
    }
    const char *text = str_peek(&all);
    while (offset > 0 && ((unsigned char)text[offset] & 0xc0) == 0x80)
        offset--; /* at a character */
    const size_t left = all.len - (size_t)offset, n = utf8_cut(text + offset, left, PART_BYTES);
    str_printf(out, "cell %" PRId64 ", characters %" PRId64 " to %zu of %zu:\n", number, offset, (size_t)offset + n,
               all.len);
    str_add(out, text + offset, n);
    if (out->buf[out->len - 1] != '\n')
        str_putc(out, '\n');
    return true;
}

/* ---- the table ---- */

static const struct tool tools[] = {
    { "current_time", TOOL_HARMLESS, run_current_time },
    { "list_files", TOOL_HARMLESS, run_list_files },
    { "read_more", TOOL_HARMLESS, run_read_more },
};

const struct tool *tool_harmless(const char *name)
{
    for (size_t i = 0; name && i < countof(tools); i++)
        if (strcmp(tools[i].name, name) == 0)
            return &tools[i];
    return NULL;
}

char *tool_args(const char *args)
{
    autojson struct json *v = NULL;
    AUTO(str_clear) struct str text = STR_INIT(PRINTED_MAX);
    struct err ignored = { 0 };
    while (args && *args && isspace((unsigned char)*args))
        args++;
    if (!args || !*args || strcmp(args, "null") == 0)
        return xstrdup("{}");
    if (json_parse(&v, args, strlen(args), ARGS_MAX, &ignored) < 0 || json_type(v) != JSON_OBJECT)
        return NULL;
    json_print(&text, v);
    return str_take(&text);
}

bool tool_run(struct str *out, const struct tool *t, const char *args, const struct tool_context *c)
{
    autojson struct json *v = NULL;
    struct err ignored = { 0 };
    if (json_parse(&v, args, strlen(args), PRINTED_MAX, &ignored) < 0) {
        str_puts(out, "The arguments could not be read.\n");
        return false;
    }
    return t->run(out, v, c);
}
