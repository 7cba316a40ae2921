/* json.c - the only user of cJSON, which is used as parser and tree; gate, access and printing are ours.
 *
 * Why not its printer: it prints 9007199254740991 as 9.00719925474099e+15, follows the locale and recurses.
 * Nothing here recurses, so that depth costs no stack. Looking up a member is linear in the members of the object. */
#include "json.h"
#include <assert.h>
#include <cjson/cJSON.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "json_gate.h"

static const double int_max = 9007199254740991; /* 2^53 - 1: above it neighbours become equal */

static const cJSON *raw(const struct json *v)
{
    return (const cJSON *)v;
}

static cJSON *raw_mutable(struct json *v)
{
    return (cJSON *)v;
}

static const struct json *wrap(const cJSON *v)
{
    return (const struct json *)v;
}

static struct json *made(cJSON *v)
{
    if (!v)
        abort();
    return (struct json *)v;
}

/* ---- walking without recursion ---- */

struct node {
    cJSON *v;
};

struct nodes {
    struct node *at;
    size_t n, cap;
};

static void nodes_clear(struct nodes *l)
{
    free(l->at);
    *l = (struct nodes){ 0 };
}

static void push(struct nodes *l, cJSON *v)
{
    l->at = xgrow(l->at, &l->cap, l->n + 1, sizeof(*l->at));
    l->at[l->n++].v = v;
}

static cJSON *pop(struct nodes *l)
{
    return l->at[--l->n].v;
}

static void push_children(struct nodes *l, const cJSON *v)
{
    for (cJSON *c = v->child; c; c = c->next)
        push(l, c);
}

static int by_key(const void *a, const void *b)
{
    const struct node *x = a, *y = b;
    return strcmp(x->v->string, y->v->string);
}

static void sorted_members(struct nodes *l, const cJSON *obj)
{
    l->n = 0;
    push_children(l, obj);
    if (l->n > 1)
        qsort(l->at, l->n, sizeof(*l->at), by_key);
}

/* ---- parsing ---- */

/* Keys are compared as cJSON decoded them: "a" and "\u0061" are the same one. */
static int check_keys(struct nodes *l, const cJSON *obj, struct err *e)
{
    sorted_members(l, obj);
    for (size_t i = 1; i < l->n; i++)
        if (by_key(&l->at[i - 1], &l->at[i]) == 0)
            return err_set(e, ERR_DATA, "JSON: key \"%.60s\" twice in one object", l->at[i].v->string);
    return 0;
}

static int check_tree(cJSON *root, struct err *e)
{
    AUTO(nodes_clear) struct nodes todo = { 0 };
    AUTO(nodes_clear) struct nodes scratch = { 0 };
    push(&todo, root);
    while (todo.n > 0) {
        const cJSON *v = pop(&todo);
        if (cJSON_IsNumber(v) && !isfinite(v->valuedouble))
            return err_set(e, ERR_DATA, "JSON: number out of range");
        if (cJSON_IsObject(v) && check_keys(&scratch, v, e) < 0)
            return -1;
        push_children(&todo, v);
    }
    return 0;
}

int json_parse(struct json **out, const char *text, size_t n, size_t max_bytes, struct err *e)
{
    if (json_gate(text, n, max_bytes, e) < 0)
        return -1;
    autojson struct json *v = (struct json *)cJSON_ParseWithLengthOpts(text, n, NULL, false);
    if (!v)
        return err_set(e, ERR_DATA, "JSON refused by cJSON");
    if (check_tree(raw_mutable(v), e) < 0)
        return -1;
    *out = take(v);
    return 0;
}

void json_free(struct json *v)
{
    cJSON_Delete(raw_mutable(v));
}

struct json *json_dup(const struct json *v)
{
    return made(cJSON_Duplicate(raw(v), true));
}

/* ---- reading ---- */

enum json_type json_type(const struct json *v)
{
    switch (v ? raw(v)->type & 0xff : cJSON_NULL) {
    case cJSON_False:
    case cJSON_True: return JSON_BOOL;
    case cJSON_Number: return JSON_NUMBER;
    case cJSON_String: return JSON_STRING;
    case cJSON_Array: return JSON_ARRAY;
    case cJSON_Object: return JSON_OBJECT;
    default: return JSON_NULL;
    }
}

const struct json *json_get(const struct json *obj, const char *key)
{
    return json_type(obj) == JSON_OBJECT ? wrap(cJSON_GetObjectItemCaseSensitive(raw(obj), key)) : NULL;
}

static int wrong(const struct json *v, const char *key, const char *wanted, struct err *e)
{
    if (!v)
        return err_set(e, ERR_DATA, "\"%s\" is missing", key);
    return err_set(e, ERR_DATA, "\"%s\" is not %s", key, wanted);
}

int json_str(const struct json *obj, const char *key, const char **out, struct err *e)
{
    const struct json *v = json_get(obj, key);
    if (json_type(v) != JSON_STRING)
        return wrong(v, key, "a string", e);
    *out = raw(v)->valuestring;
    return 0;
}

static bool is_int(double d)
{
    return fabs(d) <= int_max && trunc(d) == d; // NOLINT: exact on purpose
}

int json_int(const struct json *obj, const char *key, int64_t *out, struct err *e)
{
    const struct json *v = json_get(obj, key);
    if (json_type(v) != JSON_NUMBER || !is_int(raw(v)->valuedouble))
        return wrong(v, key, "an integer", e);
    *out = (int64_t)raw(v)->valuedouble;
    return 0;
}

const char *json_str_or(const struct json *obj, const char *key, const char *otherwise)
{
    const char *text = json_text(json_get(obj, key));
    return text ? text : otherwise;
}

int64_t json_int_or(const struct json *obj, const char *key, int64_t otherwise)
{
    const struct json *v = json_get(obj, key);
    double d = json_number(v);
    return json_type(v) == JSON_NUMBER && is_int(d) ? (int64_t)d : otherwise;
}

double json_num_or(const struct json *obj, const char *key, double otherwise)
{
    const struct json *v = json_get(obj, key);
    return json_type(v) == JSON_NUMBER ? json_number(v) : otherwise;
}

bool json_bool_or(const struct json *obj, const char *key, bool otherwise)
{
    const struct json *v = json_get(obj, key);
    return json_type(v) == JSON_BOOL ? (bool)cJSON_IsTrue(raw(v)) : otherwise;
}

const char *json_text(const struct json *v)
{
    return json_type(v) == JSON_STRING ? raw(v)->valuestring : NULL;
}

double json_number(const struct json *v)
{
    return json_type(v) == JSON_NUMBER ? raw(v)->valuedouble : 0;
}

size_t json_len(const struct json *v)
{
    return v ? (size_t)cJSON_GetArraySize(raw(v)) : 0;
}

const struct json *json_first(const struct json *v)
{
    return v ? wrap(raw(v)->child) : NULL;
}

const struct json *json_next(const struct json *item)
{
    return item ? wrap(raw(item)->next) : NULL;
}

const char *json_key(const struct json *item)
{
    return item ? raw(item)->string : NULL;
}

/* ---- building ---- */

struct json *json_new_object(void)
{
    return made(cJSON_CreateObject());
}

struct json *json_new_array(void)
{
    return made(cJSON_CreateArray());
}

struct json *json_new_string(const char *text)
{
    size_t n = strlen(text);
    if (utf8_valid(text, n))
        return made(cJSON_CreateString(text));
    AUTO(str_clear) struct str clean = STR_INIT(SIZE_MAX);
    utf8_scrub(&clean, text, n);
    return made(cJSON_CreateString(str_peek(&clean)));
}

struct json *json_new_number(double n)
{
    return isfinite(n) ? made(cJSON_CreateNumber(n)) : json_new_null();
}

struct json *json_new_bool(bool b)
{
    return made(cJSON_CreateBool(b));
}

struct json *json_new_null(void)
{
    return made(cJSON_CreateNull());
}

void json_set(struct json *obj, const char *key, struct json *take_value)
{
    assert(json_type(obj) == JSON_OBJECT);
    cJSON *value = raw_mutable(take_value ? take_value : json_new_null());
    bool ok = json_get(obj, key) ? cJSON_ReplaceItemInObjectCaseSensitive(raw_mutable(obj), key, value)
                                 : cJSON_AddItemToObject(raw_mutable(obj), key, value);
    if (!ok)
        abort();
}

void json_set_str(struct json *obj, const char *key, const char *text)
{
    json_set(obj, key, text ? json_new_string(text) : NULL);
}

void json_set_int(struct json *obj, const char *key, int64_t n)
{
    json_set(obj, key, json_new_number((double)n));
}

void json_set_num(struct json *obj, const char *key, double n)
{
    json_set(obj, key, json_new_number(n));
}

void json_set_bool(struct json *obj, const char *key, bool b)
{
    json_set(obj, key, json_new_bool(b));
}

void json_push(struct json *array, struct json *take_value)
{
    assert(json_type(array) == JSON_ARRAY);
    if (!cJSON_AddItemToArray(raw_mutable(array), raw_mutable(take_value ? take_value : json_new_null())))
        abort();
}

/* ---- printing ---- */

static void print_escape(struct str *out, char c)
{
    static const char named[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    const char *at = strchr(named, c);
    if (at)
        str_printf(out, "\\%c", names[at - named]);
    else
        str_printf(out, "\\u%04x", (unsigned)(unsigned char)c);
}

static void print_string(struct str *out, const char *s)
{
    str_putc(out, '"');
    for (const char *from = s;; s++) {
        bool plain = (unsigned char)*s >= 0x20 && *s != '"' && *s != '\\';
        if (plain)
            continue;
        str_add(out, from, (size_t)(s - from));
        if (!*s)
            break;
        print_escape(out, *s);
        from = s + 1;
    }
    str_putc(out, '"');
}

/* printf writes the decimal point of the locale; nobody here sets one, but a library might. */
static void print_without_locale(struct str *out, const char *digits)
{
    static const char point = '.';
    for (; *digits; digits++)
        str_add(out, strchr("+-0123456789e", *digits) ? digits : &point, 1);
}

/* The fewest digits that read back as the same number: 15 may do, 17 always do; subnormals need fewer. */
static void print_number(struct str *out, double d)
{
    char text[40];
    if (is_int(d)) {
        str_printf(out, "%" PRId64, (int64_t)d);
        return;
    }
    for (int digits = fabs(d) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, d);
        if (strtod(text, NULL) == d) // NOLINT: exact on purpose
            break;
    }
    print_without_locale(out, text);
}

/* Everything but a container with something in it. */
static void print_leaf(struct str *out, const cJSON *v)
{
    switch (json_type(wrap(v))) {
    case JSON_NULL: str_puts(out, "null"); break;
    case JSON_BOOL: str_puts(out, cJSON_IsTrue(v) ? "true" : "false"); break;
    case JSON_NUMBER: print_number(out, v->valuedouble); break;
    case JSON_STRING: print_string(out, v->valuestring); break;
    case JSON_ARRAY: str_puts(out, "[]"); break;
    case JSON_OBJECT: str_puts(out, "{}"); break;
    }
}

/* Prints v up to where its children begin; true when it has some. */
static bool print_open(struct str *out, const cJSON *v, bool as_member)
{
    if (as_member) {
        print_string(out, v->string);
        str_putc(out, ':');
    }
    if (v->child)
        str_putc(out, cJSON_IsObject(v) ? '{' : '[');
    else
        print_leaf(out, v);
    return v->child;
}

void json_print(struct str *out, const struct json *v)
{
    AUTO(nodes_clear) struct nodes parents = { 0 };
    if (!v) {
        str_puts(out, "null");
        return;
    }
    cJSON root = *raw(v); /* a copy of the node, so that parents can be a list of what is not const */
    for (cJSON *at = &root;;) {
        if (print_open(out, at, parents.n > 0 && cJSON_IsObject(parents.at[parents.n - 1].v))) {
            push(&parents, at);
            at = at->child;
            continue;
        }
        while (parents.n > 0 && !at->next) {
            at = pop(&parents);
            str_putc(out, cJSON_IsObject(at) ? '}' : ']');
        }
        if (parents.n == 0)
            return;
        at = at->next;
        str_putc(out, ',');
    }
}

/* Relinks the members; the first one's prev is the last, which is how cJSON appends in one step. */
static void sort_members(struct nodes *l, cJSON *obj)
{
    sorted_members(l, obj);
    for (size_t i = 0; i < l->n; i++) {
        l->at[i].v->next = i + 1 < l->n ? l->at[i + 1].v : NULL;
        l->at[i].v->prev = l->at[i ? i - 1 : l->n - 1].v;
    }
    obj->child = l->n ? l->at[0].v : NULL;
}

static int sort_tree(cJSON *root, struct err *e)
{
    AUTO(nodes_clear) struct nodes todo = { 0 };
    AUTO(nodes_clear) struct nodes scratch = { 0 };
    push(&todo, root);
    while (todo.n > 0) {
        cJSON *v = pop(&todo);
        if (cJSON_IsNumber(v) && !is_int(v->valuedouble))
            return err_set(e, ERR_DATA, "canonical JSON holds integers below 2^53 only");
        if (cJSON_IsObject(v))
            sort_members(&scratch, v);
        push_children(&todo, v);
    }
    return 0;
}

int json_print_canonical(struct str *out, const struct json *v, struct err *e)
{
    autojson struct json *copy = v ? json_dup(v) : json_new_null();
    if (sort_tree(raw_mutable(copy), e) < 0)
        return -1;
    json_print(out, copy);
    return 0;
}
