/* json_mutate.h - what a fuzzer makes of JSON stays JSON. Bytes changed at random are refused by the gate nine times in ten, and tell nothing about what is
 * behind it; so one place of the tree is changed instead. The gate has a fuzzer of its own; a text that is no JSON yet is left to libFuzzer. */
#ifndef JSON_MUTATE_H
#define JSON_MUTATE_H
#include <math.h>
#include <string.h>
#include "json.h"

enum { MUTATE_TEXT_MAX = 4096, MUTATE_JSON_MAX = 1 << 20 };

size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_n, const uint8_t *b, size_t b_n, uint8_t *out, size_t max,
                                 unsigned int seed);

enum mutate_kind {
    MUTATE_DROP,
    MUTATE_TWICE,
    MUTATE_OTHER,
    MUTATE_ODD,
    MUTATE_INSIDE,
    MUTATE_GROW,
    MUTATE_RENAME,
    MUTATE_KINDS
};
struct mutation {
    uint32_t random;
    enum mutate_kind kind;
    size_t at, n;             /* that node, in the order of a walk, is changed; nodes seen so far */
    const struct json *other; /* a node of the same text, or of the one it is crossed with */
    bool twice, rename;       /* what becomes of the node that was just seen */
};

static inline uint32_t mutate_roll(struct mutation *m, size_t below)
{
    m->random = m->random * 1664525U + 1013904223U;
    return (m->random >> 8) % (uint32_t)below;
}

static inline size_t mutate_nodes(const struct json *v)
{
    size_t n = 1;
    for (const struct json *x = json_first(v); x; x = json_next(x))
        n += mutate_nodes(x);
    return n;
}

/* NULL: *at less the nodes of v, and that is not among them. */
static inline const struct json *mutate_node(const struct json *v, size_t *at)
{
    const struct json *found = *at == 0 ? v : NULL;
    for (const struct json *x = json_first(v); x && !found; x = json_next(x)) {
        --*at;
        found = mutate_node(x, at);
    }
    return found;
}

static inline struct json *mutate_odd(struct mutation *m)
{
    static const double numbers[] = { 0,    1,    -1, 0.5, 255, 65536, 2147483648, 9007199254740991, -9007199254740991,
                                      1e18, 1e300 };
    static const char *const texts[] = {
        "", "0", "*", "..", "/", "\n", "%00", "@a:x", "!r:x", "$e1", "mxc://x/a", "\xe2\x80\xae", "\xf0\x9f\x9b\x91"
    };
    switch (mutate_roll(m, 6)) {
    case 0: return json_new_null();
    case 1: return json_new_bool(mutate_roll(m, 2));
    case 2: return json_new_array();
    case 3: return json_new_object();
    case 4: return json_new_number(numbers[mutate_roll(m, countof(numbers))]);
    default: return json_new_string(texts[mutate_roll(m, countof(texts))]);
    }
}

static inline struct json *mutate_text(const char *text)
{
    char bytes[MUTATE_TEXT_MAX];
    size_t n = strnlen(text, sizeof(bytes) / 2);
    memcpy(bytes, text, n);
    n = LLVMFuzzerMutate((uint8_t *)bytes, n, sizeof(bytes) - 1);
    bytes[n] = '\0';
    return json_new_string(bytes);
}

static inline struct json *mutate_inside(struct mutation *m, const struct json *v)
{
    double x = json_number(v);
    struct json *list = NULL;
    switch (json_type(v)) {
    case JSON_STRING: return mutate_text(json_text(v));
    case JSON_NUMBER:
        LLVMFuzzerMutate((uint8_t *)&x, sizeof(x), sizeof(x));
        return json_new_number(isfinite(x) ? trunc(x) : 0);
    case JSON_NULL:
    case JSON_BOOL: return mutate_odd(m);
    case JSON_ARRAY:
    case JSON_OBJECT:
        list = json_new_array();
        json_push(list, json_dup(v));
        return list;
    }
    return NULL;
}

static inline struct json *mutate_grow(struct mutation *m, const struct json *v)
{
    struct json *out = json_dup(v);
    const char *key = json_key(m->other);
    if (json_type(v) == JSON_ARRAY)
        json_push(out, json_dup(m->other));
    else if (json_type(v) == JSON_OBJECT && key)
        json_set(out, key, json_dup(m->other));
    return out;
}

/* NULL: it goes. */
static inline struct json *mutate_change(struct mutation *m, const struct json *v)
{
    switch (m->kind) {
    case MUTATE_DROP: return NULL;
    case MUTATE_TWICE: m->twice = true; break;
    case MUTATE_OTHER: return json_dup(m->other);
    case MUTATE_ODD: return mutate_odd(m);
    case MUTATE_INSIDE: return mutate_inside(m, v);
    case MUTATE_GROW: return mutate_grow(m, v);
    case MUTATE_RENAME: m->rename = true; break;
    case MUTATE_KINDS: break;
    }
    return json_dup(v);
}

static inline struct json *mutate_copy(struct mutation *m, const struct json *v);

static inline void mutate_add(struct mutation *m, struct json *out, const struct json *item)
{
    const char *key = json_key(item), *name = json_key(m->other);
    struct json *copy = mutate_copy(m, item);
    const bool twice = copy && m->twice, rename = m->rename;
    m->twice = m->rename = false;
    if (copy && key)
        json_set(out, rename && name ? name : key, copy);
    else if (copy)
        json_push(out, copy);
    if (twice && !key)
        json_push(out, json_dup(copy));
}

static inline struct json *mutate_copy(struct mutation *m, const struct json *v)
{
    const bool object = json_type(v) == JSON_OBJECT;
    if (m->n++ == m->at)
        return mutate_change(m, v);
    if (!object && json_type(v) != JSON_ARRAY)
        return json_dup(v);
    struct json *out = object ? json_new_object() : json_new_array();
    for (const struct json *x = json_first(v); x; x = json_next(x))
        mutate_add(m, out, x);
    return out;
}

/* 0: it does not fit. */
static inline size_t mutate_print(const struct json *v, uint8_t *out, size_t max)
{
    AUTO(str_clear) struct str text = STR_INIT(MUTATE_JSON_MAX);
    struct err e = { 0 };
    json_print(&text, v);
    if (str_check(&text, &e) < 0 || text.len > max)
        return 0;
    memcpy(out, str_peek(&text), text.len);
    return text.len;
}

static inline size_t mutate_json(const struct json *v, const struct json *from, uint8_t *out, size_t max,
                                 unsigned int seed)
{
    struct mutation m = { .random = seed };
    size_t at = mutate_roll(&m, mutate_nodes(from));
    m.other = mutate_node(from, &at);
    m.kind = v == from            ? (enum mutate_kind)mutate_roll(&m, MUTATE_KINDS)
             : mutate_roll(&m, 2) ? MUTATE_OTHER
                                  : MUTATE_GROW;
    m.at = 1 + mutate_roll(&m, mutate_nodes(v));
    autojson struct json *copy = mutate_copy(&m, v);
    return mutate_print(copy, out, max);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t max, unsigned int seed)
{
    autojson struct json *j = NULL;
    struct err e = { 0 };
    if (json_parse(&j, (const char *)data, n, MUTATE_JSON_MAX, &e) < 0)
        return LLVMFuzzerMutate(data, n, max);
    const size_t made = mutate_json(j, j, data, max, seed);
    return made ? made : n;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_n, const uint8_t *b, size_t b_n, uint8_t *out, size_t max,
                                 unsigned int seed)
{
    autojson struct json *x = NULL, *y = NULL;
    struct err e = { 0 };
    if (json_parse(&x, (const char *)a, a_n, MUTATE_JSON_MAX, &e) < 0 ||
        json_parse(&y, (const char *)b, b_n, MUTATE_JSON_MAX, &e) < 0)
        return 0;
    return mutate_json(x, y, out, max, seed);
}
#endif
