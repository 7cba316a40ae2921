/* slack_limits.h - what Slack refuses, as a test's own reading of its documents: nothing here is shared with the code. */
#ifndef SLACK_LIMITS_H
#define SLACK_LIMITS_H
#include <stdio.h>
#include <string.h>
#include "json.h"
#include "str.h"

static inline const char *rich_fault(const struct json *e, int depth)
{
    const char *type = json_str_or(e, "type", "");
    if (depth > 3)
        return "nested too deep";
    if (strcmp(type, "link") == 0 && (!*json_str_or(e, "url", "") || strlen(json_str_or(e, "url", "")) > 3000))
        return "a link's address";
    if (strcmp(type, "text") == 0 || strcmp(type, "link") == 0)
        return *json_str_or(e, "text", "") ? NULL : "empty text";
    if (strncmp(type, "rich_text_", 10) != 0)
        return "an element that is none";
    if (!json_len(json_get(e, "elements")))
        return "no elements";
    const char *fault = NULL;
    for (const struct json *x = json_first(json_get(e, "elements")); x && !fault; x = json_next(x))
        fault = rich_fault(x, depth + 1);
    return fault;
}

static inline const char *table_fault(const struct json *b, size_t *chars)
{
    const size_t rows = json_len(json_get(b, "rows"));
    const size_t columns = json_len(json_first(json_get(b, "rows")));
    if (rows < 2 || rows > 100 || columns < 1 || columns > 20)
        return "a table of that size";
    for (const struct json *r = json_first(json_get(b, "rows")); r; r = json_next(r)) {
        if (json_len(r) != columns)
            return "rows of different lengths";
        for (const struct json *c = json_first(r); c; c = json_next(c)) {
            const char *text = json_str_or(c, "text", ""), *type = json_str_or(c, "type", "");
            const bool number = strcmp(type, "raw_number") == 0;
            if (!*text || strlen(text) > 2000)
                return "a cell's text";
            if (number ? r == json_first(json_get(b, "rows")) || json_type(json_get(c, "value")) != JSON_NUMBER
                       : strcmp(type, "raw_text") != 0)
                return "a cell's type";
            *chars += strlen(text);
        }
    }
    if (strcmp(json_str_or(b, "type", ""), "data_table") == 0 &&
        (!*json_str_or(b, "caption", "") || json_int_or(b, "page_size", 5) < 1 || json_int_or(b, "page_size", 5) > 100))
        return "no caption, or pages of no size";
    if (json_len(json_get(b, "column_settings")) > 20)
        return "too many columns";
    return NULL;
}

static inline const char *context_fault(const struct json *b)
{
    const size_t n = json_len(json_get(b, "elements"));
    if (n < 1 || n > 10)
        return "a context of that size";
    for (const struct json *e = json_first(json_get(b, "elements")); e; e = json_next(e)) {
        const char *text = json_str_or(e, "text", "");
        if (!*text || strlen(text) > 3000 || strpbrk(text, "<>"))
            return "a context's text";
    }
    return NULL;
}

static inline const char *buttons_fault(const struct json *b)
{
    const struct json *e = json_first(json_get(b, "elements"));
    if (json_len(json_get(b, "elements")) != 1 || strcmp(json_str_or(e, "type", ""), "feedback_buttons") != 0)
        return "buttons that are none";
    static const char *const names[] = { "positive_button", "negative_button" };
    for (size_t i = 0; i < countof(names); i++) {
        const struct json *button = json_get(e, names[i]);
        const char *label = json_str_or(button, "accessibility_label", "");
        if (!*json_str_or(button, "value", "") || !*json_str_or(json_get(button, "text"), "text", "") ||
            strlen(label) > 75)
            return "a button";
    }
    return NULL;
}

static inline const char *block_fault(const struct json *b, size_t *chars, size_t *tables)
{
    const char *type = json_str_or(b, "type", "");
    if (strcmp(type, "rich_text") == 0) {
        const char *fault = json_len(json_get(b, "elements")) ? NULL : "empty rich_text";
        for (const struct json *e = json_first(json_get(b, "elements")); e && !fault; e = json_next(e))
            fault = strncmp(json_str_or(e, "type", ""), "rich_text_", 10) == 0 ? rich_fault(e, 0) : "not a section";
        return fault;
    }
    if (strcmp(type, "table") == 0 || strcmp(type, "data_table") == 0) {
        (*tables)++;
        return table_fault(b, chars);
    }
    if (strcmp(type, "context") == 0)
        return context_fault(b);
    if (strcmp(type, "context_actions") == 0)
        return buttons_fault(b);
    return strcmp(type, "divider") == 0 ? NULL : "a block that is none";
}

/* NULL: Slack takes it. */
static inline const char *message_fault(const struct json *blocks, const char *text)
{
    AUTO(str_clear) struct str printed = STR_INIT(1 << 26);
    size_t chars = 0, tables = 0;
    const char *fault = *text ? NULL : "empty text";
    if (strlen(text) > 4000)
        fault = "text too long";
    if (strstr(text, "<!") || strstr(text, "<@") || strstr(text, "<#"))
        fault = "a live token";
    if (!blocks)
        return fault;
    json_print(&printed, blocks);
    if (!json_len(blocks) || json_len(blocks) > 50 || printed.len > 13200)
        fault = "blocks too many or too long";
    for (const struct json *b = json_first(blocks); b && !fault; b = json_next(b))
        fault = block_fault(b, &chars, &tables);
    return fault ? fault : chars > 10000 ? "cells too long together" : tables > 1 ? "two tables" : NULL;
}
#endif
