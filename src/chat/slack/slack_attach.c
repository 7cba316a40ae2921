/* slack_attach.c - what hangs on a message beside its text: forwarded messages, their files, blocks, pasted tables. */
#include <string.h>
#include "slack_inbox_private.h"
#include "slack_text.h"

enum { QUOTE_BYTES = 4000, DEPTH_MAX = 12 };

void attach_quotes(struct str *out, const struct json *attachments)
{
    for (const struct json *a = json_first(attachments); a; a = json_next(a)) {
        const bool forwarded = json_bool_or(a, "is_share", false) || json_bool_or(a, "is_msg_unfurl", false);
        const char *text = json_str_or(a, "text", ""), *author = json_str_or(a, "author_name", "someone");
        AUTO(str_clear) struct str words = STR_INIT(64 << 10);
        if (!forwarded || !*text)
            continue;
        slack_text_decode(&words, text, NULL, NULL, NULL);
        str_printf(out, "%s> %s: ", out->len ? "\n\n" : "", author);
        const size_t n = utf8_cut(str_peek(&words), words.len, QUOTE_BYTES);
        for (size_t i = 0; i < n; i++) {
            str_putc(out, words.buf[i]);
            if (words.buf[i] == '\n')
                str_puts(out, "> ");
        }
    }
}

void attach_files(struct json *files, const struct json *attachments)
{
    for (const struct json *a = json_first(attachments); a; a = json_next(a))
        for (const struct json *f = json_first(json_get(a, "files")); f; f = json_next(f))
            json_push(files, json_dup(f));
}

/* All text below a rich_text cell, in order. */
/* NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX ends it */
static void rich_words(struct str *out, const struct json *v, int depth)
{
    if (depth > DEPTH_MAX)
        return;
    if (json_type(v) == JSON_OBJECT && json_str_or(v, "text", NULL))
        str_puts(out, json_str_or(v, "text", ""));
    else if (json_type(v) == JSON_OBJECT && json_str_or(v, "url", NULL))
        str_puts(out, json_str_or(v, "url", ""));
    for (const struct json *e = json_first(json_get(v, "elements")); e; e = json_next(e))
        rich_words(out, e, depth + 1);
}

/* What people type behind the fence stands in the first line of what is fenced. */
static bool names_language(const char *code)
{
    static const char *const lines[] = { "python\n", "python3\n", "py\n" };
    for (size_t i = 0; i < countof(lines); i++)
        if (strncmp(code, lines[i], strlen(lines[i])) == 0)
            return true;
    return false;
}

static void add_element(struct str *out, const struct json *element)
{
    AUTO(str_clear) struct str words = STR_INIT(256 << 10);
    const bool code = strcmp(json_str_or(element, "type", ""), "rich_text_preformatted") == 0;
    rich_words(&words, element, 0);
    const char *text = str_peek(&words);
    if (code)
        str_printf(out, "```%s%s\n```\n", names_language(text) ? "" : "\n", text);
    else
        str_printf(out, "%s\n", text);
}

void attach_words(struct str *out, const struct json *blocks)
{
    AUTO(str_clear) struct str raw = STR_INIT(256 << 10);
    for (const struct json *b = json_first(blocks); b; b = json_next(b)) {
        const bool rich = strcmp(json_str_or(b, "type", ""), "rich_text") == 0;
        for (const struct json *e = rich ? json_first(json_get(b, "elements")) : NULL; e; e = json_next(e))
            add_element(&raw, e);
    }
    utf8_scrub(out, str_peek(&raw), raw.len && raw.buf[raw.len - 1] == '\n' ? raw.len - 1 : raw.len);
}

static void add_cell(struct str *out, const struct json *cell)
{
    AUTO(str_clear) struct str text = STR_INIT(64 << 10);
    if (json_type(json_get(cell, "value")) == JSON_NUMBER)
        json_print(&text, json_get(cell, "value"));
    else
        rich_words(&text, cell, 0);
    str_putc(out, '"');
    for (const char *c = str_peek(&text); *c; c++) {
        if (*c == '"')
            str_putc(out, '"');
        str_putc(out, *c);
    }
    str_putc(out, '"');
}

static void add_rows(struct str *out, const struct json *table)
{
    for (const struct json *row = json_first(json_get(table, "rows")); row; row = json_next(row))
        for (const struct json *cell = json_first(row); cell; cell = json_next(cell)) {
            add_cell(out, cell);
            str_puts(out, json_next(cell) ? "," : "\r\n");
        }
}

bool attach_table(struct str *out, const struct json *attachments, size_t n)
{
    for (const struct json *a = json_first(attachments); a; a = json_next(a))
        for (const struct json *b = json_first(json_get(a, "blocks")); b; b = json_next(b)) {
            if (strcmp(json_str_or(b, "type", ""), "table") != 0 || n-- > 0)
                continue;
            add_rows(out, b);
            return true;
        }
    return false;
}
