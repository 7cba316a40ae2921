/* crypto_json.h - signed JSON, and the small things that every part of the encryption needs. Private to src/chat/matrix/. */
#ifndef MATRIX_CRYPTO_JSON_H
#define MATRIX_CRYPTO_JSON_H
#include "crypto_prim.h"
#include "json.h"

enum { CANON_MAX = 512 << 10 };

/* The bytes that are signed: canonical, without "signatures" and "unsigned". false: it has no canonical form. */
bool signable(struct str *out, const struct json *obj);
/* obj.signatures[user]["ed25519:<id>"] is a signature of the rest by key (43 characters). id NULL: the key itself. */
bool signed_by(const struct json *obj, const char *user, const char *id, const char *key);
/* Puts sig (86 characters) there. */
void add_signature(struct json *obj, const char *user, const char *id, const char *sig);
/* Signs with a seed; the id is the public key. */
void sign_with_seed(struct json *obj, const char *user, const uint8_t seed[KEY_BYTES]);

/* obj.a.b ... as text or NULL. */
const char *text_at(const struct json *obj, const char *a, const char *b);
struct json *obj_of(const char *key, struct json *take_value); /* {key: value} */
/* obj[key] as an object that can be added to; made when absent. */
struct json *child(struct json *obj, const char *key);
/* A shallow walk may not change a tree: a copy of obj without these members (NULL: none). */
struct json *without(const struct json *obj, const char *a, const char *b);
char *json_line(const struct json *v); /* printed; caller frees */

/* Each % of the pattern is replaced by the next argument, escaped for a path segment. */
char *url_path(const char *pattern, ...);
bool same(const char *a, const char *b); /* NULL is like nothing */
#endif
