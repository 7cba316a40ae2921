/* tool_schema.c - do arguments fit their schema? The part of JSON Schema that descriptions of tools use. */
#include <math.h>
#include <string.h>
#include "json.h"
#include "tool_table.h"

enum { DEPTH_MAX = 8 };

struct place {
    const char *name; /* of the argument that is looked at */
    int depth;
};

static bool is_type(const struct json *v, const char *type)
{
    switch (json_type(v)) {
    case JSON_NULL: return strcmp(type, "null") == 0;
    case JSON_BOOL: return strcmp(type, "boolean") == 0;
    case JSON_STRING: return strcmp(type, "string") == 0;
    case JSON_ARRAY: return strcmp(type, "array") == 0;
    case JSON_OBJECT: return strcmp(type, "object") == 0;
    case JSON_NUMBER: break;
    }
    if (strcmp(type, "integer") == 0)
        return trunc(json_number(v)) == json_number(v);
    return strcmp(type, "number") == 0;
}

/* "type": one name or a list of them; none: anything. */
static int check_type(const struct json *schema, const struct json *v, const struct place *at, struct err *e)
{
    const struct json *type = json_get(schema, "type");
    if (json_type(type) == JSON_STRING && !is_type(v, json_text(type)))
        return err_set(e, ERR_DATA, "`%.64s` must be of type %.40s", at->name, json_text(type));
    if (json_type(type) != JSON_ARRAY)
        return 0;
    for (const struct json *t = json_first(type); t; t = json_next(t))
        if (json_text(t) && is_type(v, json_text(t)))
            return 0;
    return err_set(e, ERR_DATA, "`%.64s` is of the wrong type", at->name);
}

static bool same(const struct json *a, const struct json *b)
{
    AUTO(str_clear) struct str x = STR_INIT(1 << 16), y = STR_INIT(1 << 16);
    json_print(&x, a);
    json_print(&y, b);
    return strcmp(str_peek(&x), str_peek(&y)) == 0;
}

static int check_enum(const struct json *schema, const struct json *v, const struct place *at, struct err *e)
{
    const struct json *values = json_get(schema, "enum");
    AUTO(str_clear) struct str all = STR_INIT(1 << 16);
    for (const struct json *x = json_first(values); x; x = json_next(x))
        if (same(x, v))
            return 0;
    json_print(&all, values);
    return values ? err_set(e, ERR_DATA, "`%.64s` must be one of %.120s", at->name, str_peek(&all)) : 0;
}

static int check_range(const struct json *schema, const struct json *v, const struct place *at, struct err *e)
{
    if (json_type(v) == JSON_NUMBER && (json_number(v) < json_num_or(schema, "minimum", -HUGE_VAL) ||
                                        json_number(v) > json_num_or(schema, "maximum", HUGE_VAL)))
        return err_set(e, ERR_DATA, "`%.64s` is out of range", at->name);
    const char *text = json_text(v);
    const int64_t n = text ? (int64_t)strlen(text) : 0; /* bytes: never fewer than characters */
    if (text && (n < json_int_or(schema, "minLength", 0) || n > 4 * json_int_or(schema, "maxLength", INT32_MAX)))
        return err_set(e, ERR_DATA, "`%.64s` is too short or too long", at->name);
    return 0;
}

static int check_value(const struct json *schema, const struct json *v, const struct place *at, struct err *e);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as a schema, at most DEPTH_MAX */
static int check_members(const struct json *schema, const struct json *v, const struct place *at, struct err *e)
{
    const struct json *properties = json_get(schema, "properties");
    for (const struct json *r = json_first(json_get(schema, "required")); r; r = json_next(r))
        if (json_text(r) && !json_get(v, json_text(r)))
            return err_set(e, ERR_DATA, "`%.64s` is missing", json_text(r));
    for (const struct json *m = json_first(v); m; m = json_next(m)) {
        const struct json *own = json_get(properties, json_key(m));
        const struct place inner = { json_key(m), at->depth + 1 };
        if (own && check_value(own, m, &inner, e) < 0)
            return -1;
        if (!own && !json_bool_or(schema, "additionalProperties", true))
            return err_set(e, ERR_DATA, "there is no argument `%.64s`", json_key(m));
    }
    return 0;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static int check_value(const struct json *schema, const struct json *v, const struct place *at, struct err *e)
{
    if (at->depth > DEPTH_MAX)
        return 0;
    if (check_type(schema, v, at, e) < 0 || check_enum(schema, v, at, e) < 0 || check_range(schema, v, at, e) < 0)
        return -1;
    if (json_type(v) == JSON_OBJECT)
        return check_members(schema, v, at, e);
    const struct json *items = json_type(v) == JSON_ARRAY ? json_get(schema, "items") : NULL;
    const struct place inner = { at->name, at->depth + 1 };
    for (const struct json *x = items ? json_first(v) : NULL; x; x = json_next(x))
        if (check_value(items, x, &inner, e) < 0)
            return -1;
    return 0;
}

int tool_schema_check(const struct json *schema, const struct json *value, struct err *e)
{
    const struct place top = { "the arguments", 0 };
    return check_value(schema, value, &top, e);
}
