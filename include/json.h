/* json.h - the only user of cJSON: a gate on the way in, typed getters, builders, printers. Floor 0.
 *
 * Everything that enters passes json_parse(): size, depth (64), valid UTF-8, strict grammar, no NUL escapes or lone
 * surrogates, no duplicate keys, numbers finite and at most 62 characters, nothing after the value. ERR_DATA says at
 * which byte. A tree takes about 40 times the text's size at worst. Integers are exact below 2^53; others are refused
 * by json_int(). Looking up a key is linear in the members of its object. */
#ifndef JSON_H
#define JSON_H
#include "str.h"

struct json; /* a value; a tree is owned by its root */

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

must_check int json_parse(struct json **out, const char *text, size_t n, size_t max_bytes, struct err *e);
void json_free(struct json *v); /* roots only; NULL is fine */
static inline void json_freep(struct json **v)
{
    json_free(*v);
}
#define autojson __attribute__((cleanup(json_freep)))
struct json *json_dup(const struct json *v);

/* ---- reading; results are borrowed ---- */
enum json_type json_type(const struct json *v); /* NULL counts as JSON_NULL */
/* The member, or NULL when absent, or when obj is NULL or no object. */
const struct json *json_get(const struct json *obj, const char *key);
/* Must be there and of that type, else ERR_DATA that names the key. */
must_check int json_str(const struct json *obj, const char *key, const char **out, struct err *e);
must_check int json_int(const struct json *obj, const char *key, int64_t *out, struct err *e);
/* The member when it has that type (json_int_or: and is an exact integer), else the default. */
const char *json_str_or(const struct json *obj, const char *key, const char *otherwise);
int64_t json_int_or(const struct json *obj, const char *key, int64_t otherwise);
double json_num_or(const struct json *obj, const char *key, double otherwise);
bool json_bool_or(const struct json *obj, const char *key, bool otherwise);
/* The value itself: NULL when it is no string; 0 when it is no number. */
const char *json_text(const struct json *v);
double json_number(const struct json *v);
/* Elements of an array or members of an object; 0 for all else. */
size_t json_len(const struct json *v);
/* Walk: for (const struct json *x = json_first(v); x; x = json_next(x)). json_key() is NULL in arrays. */
const struct json *json_first(const struct json *v);
const struct json *json_next(const struct json *item);
const char *json_key(const struct json *item);

/* ---- building; a set key is replaced in its place; setting on what is no object is a bug and aborts ---- */
struct json *json_new_object(void);
struct json *json_new_array(void);
struct json *json_new_string(const char *text); /* what is not valid UTF-8 gets scrubbed */
struct json *json_new_number(double n);         /* NaN and infinities become null, as in JavaScript */
struct json *json_new_bool(bool b);
struct json *json_new_null(void);
void json_set(struct json *obj, const char *key, struct json *take_value); /* NULL: JSON null */
void json_set_str(struct json *obj, const char *key, const char *text);    /* NULL: JSON null */
void json_set_int(struct json *obj, const char *key, int64_t n);
void json_set_num(struct json *obj, const char *key, double n);
void json_set_bool(struct json *obj, const char *key, bool b);
void json_push(struct json *array, struct json *take_value);

/* ---- printing: one line, no spaces, insertion order; appends to out; NULL prints as null ----
 * Numbers are printed with the fewest digits that read back the same, whatever the locale. */
void json_print(struct str *out, const struct json *v);
/* Keys sorted by code point and integers only, as Matrix's canonical JSON wants it. ERR_DATA on fractions and beyond
 * 2^53 - 1; then out is as it was. */
must_check int json_print_canonical(struct str *out, const struct json *v, struct err *e);
#endif
