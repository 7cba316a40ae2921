/* prompt_files.c - profiles of files as text.
 *
 * Trust boundary: names of columns and values come from people's files. They are written as Python literals, so that what
 * they are is plain and a line break in one cannot begin a line of ours; the caller puts marks of data around the whole. */
#include <inttypes.h>
#include <string.h>
#include "json.h"
#include "prompt.h"
#include "tokens.h"

enum {
    FILES_MAX = 256 << 10, /* bytes of all profiles in words */
    FILES_TOKENS = 1500,   /* of which a turn gets this much */
    COLUMNS_MAX = 40,      /* a wider table has its names listed only */
    NAMES_MAX = 400,       /* and no more than so many */
    EXAMPLE_BYTES = 40,
    SAMPLE_BYTES = 600,
    MEMBERS_MAX = 30,
    WARNINGS_MAX = 12,
};

/* ---- literals ---- */

/* Blanks that do not look like a space, controls, marks of direction: shown by number. */
static bool is_odd(uint32_t c)
{
    return c < 0x20 || c == 0x7f || c == 0xa0 || c == 0xad || (c >= 0x2000 && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202f) || (c >= 0x205f && c <= 0x2069) || c == 0x3000 || c == 0xfeff;
}

static void add_escaped(struct str *out, uint32_t c)
{
    if (c == '\n')
        str_puts(out, "\\n");
    else if (c == '\t')
        str_puts(out, "\\t");
    else if (c < 0x100)
        str_printf(out, "\\x%02x", (unsigned)c);
    else
        str_printf(out, "\\u%04x", (unsigned)c);
}

void prompt_py_literal(struct str *out, const char *text)
{
    const char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';
    str_putc(out, quote);
    for (const char *next = text; *text; text = next) {
        const uint32_t c = utf8_next(&next);
        if (is_odd(c))
            add_escaped(out, c);
        else if (c == '\\' || c == (uint32_t)quote)
            str_printf(out, "\\%c", (char)c);
        else
            str_add(out, text, (size_t)(next - text));
    }
    str_putc(out, quote);
}

/* At most max bytes of it. */
static void add_literal(struct str *out, const char *text, size_t max)
{
    const size_t n = utf8_cut(text, strlen(text), max);
    autofree char *brief = xasprintf("%.*s%s", (int)n, text, text[n] ? "..." : "");
    prompt_py_literal(out, brief);
}

/* A word or an expression of the box's own, on one line whatever it holds: the box may not be what it was. */
static void add_line(struct str *out, const char *text)
{
    for (const char *next = text; *text; text = next) {
        if (is_odd(utf8_next(&next)))
            str_putc(out, ' ');
        else
            str_add(out, text, (size_t)(next - text));
    }
}

static void add_value(struct str *out, const struct json *v)
{
    if (json_type(v) == JSON_STRING)
        add_literal(out, json_text(v), EXAMPLE_BYTES);
    else
        json_print(out, v);
}

static bool has(const struct json *o, const char *key)
{
    return json_type(json_get(o, key)) != JSON_NULL;
}

/* ---- one column ---- */

static void add_examples(struct str *out, const struct json *examples)
{
    const char *between = ": ";
    for (const struct json *x = json_first(examples); x; x = json_next(x)) {
        str_puts(out, between);
        add_value(out, x);
        between = ", ";
    }
}

static void add_range(struct str *out, const struct json *column)
{
    static const char *const keys[] = { "min", "max", "mean" };
    for (size_t i = 0; i < countof(keys); i++) {
        if (!has(column, keys[i]))
            continue;
        str_printf(out, ", %s ", keys[i]);
        add_value(out, json_get(column, keys[i]));
    }
}

static void add_column(struct str *out, const struct json *column)
{
    str_puts(out, "  - ");
    prompt_py_literal(out, json_str_or(column, "name", ""));
    str_putc(out, ' ');
    add_line(out, json_str_or(column, "dtype", "?"));
    str_printf(out, ", %" PRId64 " missing", json_int_or(column, "nulls", 0));
    if (has(column, "distinct"))
        str_printf(out, ", %" PRId64 " distinct", json_int_or(column, "distinct", 0));
    add_range(out, column);
    if (has(column, "date_format")) {
        str_puts(out, ", dates as ");
        add_line(out, json_str_or(column, "date_format", ""));
    }
    if (json_bool_or(column, "ambiguous_date", false))
        str_puts(out, ", day and month could be swapped: say which way you read them");
    if (!has(column, "min"))
        add_examples(out, json_get(column, "examples"));
    str_putc(out, '\n');
    if (has(column, "convert")) {
        str_puts(out, "    convert: df[");
        prompt_py_literal(out, json_str_or(column, "name", ""));
        str_puts(out, "] = ");
        add_line(out, json_str_or(column, "convert", ""));
        str_putc(out, '\n');
    }
}

static void add_names(struct str *out, const struct json *columns)
{
    size_t n = 0;
    str_puts(out, "  columns: ");
    for (const struct json *c = json_first(columns); c && n < NAMES_MAX; c = json_next(c), n++) {
        if (n)
            str_puts(out, ", ");
        prompt_py_literal(out, json_str_or(c, "name", ""));
    }
    str_puts(out, n < json_len(columns) ? ", ...\n" : "\n");
}

/* ---- one file ---- */

/* Names the file and its content for good: a line that history still holds says that the file is known. */
static void add_header(struct str *out, const struct json *p)
{
    str_puts(out, "file ");
    prompt_py_literal(out, json_str_or(p, "path", "?"));
    str_puts(out, " (");
    add_line(out, json_str_or(p, "kind", "?"));
    str_printf(out, ", %" PRId64 " bytes, sha256 ", json_int_or(p, "bytes", 0));
    add_line(out, json_str_or(p, "sha256", "?"));
    str_puts(out, ")\n");
}

static void add_size(struct str *out, const struct json *p)
{
    if (strcmp(json_str_or(p, "name", ""), json_str_or(p, "path", "")) != 0 && has(p, "name")) {
        str_puts(out, "  its sender calls it ");
        prompt_py_literal(out, json_str_or(p, "name", ""));
        str_putc(out, '\n');
    }
    for (const struct json *o = json_first(json_get(p, "older")); o; o = json_next(o)) {
        str_puts(out, "  an older version of it is ");
        prompt_py_literal(out, json_text(o) ? json_text(o) : "");
        str_putc(out, '\n');
    }
    if (has(p, "rows"))
        str_printf(out, "  %" PRId64 " rows x %zu columns\n", json_int_or(p, "rows", 0),
                   json_len(json_get(p, "columns")));
}

static void add_reading(struct str *out, const struct json *p)
{
    static const char *const keys[] = { "encoding", "separator", "quote", "decimal", "thousands" };
    const char *between = "  ";
    for (size_t i = 0; i < countof(keys); i++) {
        if (!has(p, keys[i]))
            continue;
        str_printf(out, "%s%s ", between, keys[i]);
        add_value(out, json_get(p, keys[i]));
        between = ", ";
    }
    str_puts(out, between[0] == ',' ? "\n" : "");
    if (has(p, "load")) {
        str_puts(out, "  load: ");
        add_line(out, json_str_or(p, "load", ""));
        str_putc(out, '\n');
    }
}

static void add_sheets(struct str *out, const struct json *p)
{
    for (const struct json *s = json_first(json_get(p, "sheets")); s; s = json_next(s)) {
        str_puts(out, "  sheet ");
        prompt_py_literal(out, json_str_or(s, "name", ""));
        str_printf(out, ": %" PRId64 " rows x %" PRId64 " columns%s\n", json_int_or(s, "rows", 0),
                   json_int_or(s, "columns", 0), json_bool_or(s, "hidden", false) ? ", hidden" : "");
    }
    size_t n = 0;
    for (const struct json *m = json_first(json_get(p, "members")); m && n < MEMBERS_MAX; m = json_next(m), n++) {
        str_puts(out, "  holds ");
        prompt_py_literal(out, json_text(m) ? json_text(m) : "");
        str_putc(out, '\n');
    }
    if (json_len(json_get(p, "members")) > n)
        str_printf(out, "  and %zu more\n", json_len(json_get(p, "members")) - n);
}

static void add_warnings(struct str *out, const struct json *p)
{
    size_t n = 0;
    for (const struct json *w = json_first(json_get(p, "warnings")); w && n < WARNINGS_MAX; w = json_next(w), n++) {
        str_puts(out, "  warning: ");
        add_line(out, json_str_or(w, "text", json_str_or(w, "code", "?")));
        str_putc(out, '\n');
    }
}

static void add_sample(struct str *out, const struct json *p)
{
    const char *sample = json_str_or(p, "sample", "");
    if (!*sample || json_len(json_get(p, "columns")))
        return; /* columns with examples say more */
    str_puts(out, "  begins: ");
    add_literal(out, sample, SAMPLE_BYTES);
    str_putc(out, '\n');
}

enum detail { DETAIL_FULL, DETAIL_NAMES, DETAIL_LINE };

static void add_columns(struct str *out, const struct json *columns, enum detail detail, const char *brief_note)
{
    if (detail == DETAIL_NAMES || json_len(columns) > COLUMNS_MAX) {
        add_names(out, columns);
        str_printf(out, "  %s\n", brief_note);
        return;
    }
    str_puts(out, "  columns:\n");
    for (const struct json *c = json_first(columns); c; c = json_next(c))
        add_column(out, c);
}

static void add_file(struct str *out, const struct json *p, enum detail detail, const char *brief_note)
{
    add_header(out, p);
    add_size(out, p);
    add_reading(out, p);
    if (detail == DETAIL_LINE)
        return;
    add_sheets(out, p);
    add_warnings(out, p);
    if (json_len(json_get(p, "columns")))
        add_columns(out, json_get(p, "columns"), detail, brief_note);
    else
        add_sample(out, p);
}

/* ---- all files ---- */

static bool is_known(const struct json *profile, const struct transcript *known)
{
    AUTO(str_clear) struct str header = STR_INIT(FILES_MAX);
    add_header(&header, profile);
    for (size_t i = 0; i < known->n; i++)
        if (known->at[i].role == MODEL_USER && strstr(known->at[i].text, str_peek(&header)))
            return true;
    return false;
}

/* As much of a file as the tokens left allow; what is over them is still named. */
static char *file_text(const struct json *profile, int64_t left, const char *brief_note)
{
    AUTO(str_clear) struct str text = STR_INIT(FILES_MAX);
    for (int detail = DETAIL_FULL; detail <= DETAIL_LINE; detail++) {
        str_clear(&text);
        add_file(&text, profile, (enum detail)detail, brief_note);
        if (tokens_of_text(str_peek(&text)) <= left)
            break;
    }
    return str_take(&text);
}

/* The newest are written first, so that the budget serves them first; they are read last. */
static void add_all(struct str *out, const struct json *const *profiles, size_t n, const char *brief_note)
{
    autofree char **parts = xcalloc(n + 1, sizeof(*parts));
    int64_t left = FILES_TOKENS;
    for (size_t i = n; i-- > 0;) {
        parts[i] = file_text(profiles[i], left, brief_note);
        left -= tokens_of_text(parts[i]);
    }
    for (size_t i = 0; i < n; i++) {
        str_puts(out, parts[i]);
        free(parts[i]);
    }
}

void prompt_files(struct str *out, const struct json *files, const struct transcript *known, const struct prompts *p)
{
    autofree const struct json **fresh = xcalloc(json_len(files) + 1, sizeof(const struct json *));
    autofree char *note = prompts_note(p, NOTE_FILES_BRIEF, NULL, NULL);
    size_t n = 0;
    for (const struct json *f = json_first(files); f; f = json_next(f))
        if (!is_known(f, known))
            fresh[n++] = f;
    if (n) {
        str_puts(out, "Files in the working directory, as they were when they came:\n");
        add_all(out, fresh, n, note);
    }
}
