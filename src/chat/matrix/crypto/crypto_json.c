#include "crypto_json.h"
#include <stdarg.h>

bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

struct json *without(const struct json *obj, const char *a, const char *b)
{
    struct json *copy = json_new_object();
    for (const struct json *m = json_first(obj); m; m = json_next(m))
        if (!same(json_key(m), a) && !same(json_key(m), b))
            json_set(copy, json_key(m), json_dup(m));
    return copy;
}

bool signable(struct str *out, const struct json *obj)
{
    struct err e = { 0 };
    if (json_type(obj) != JSON_OBJECT)
        return false;
    autojson struct json *bare = without(obj, "signatures", "unsigned");
    return json_print_canonical(out, bare, &e) == 0 && !out->overflow;
}

bool signed_by(const struct json *obj, const char *user, const char *id, const char *key)
{
    uint8_t raw[KEY_BYTES], sig[SIG_BYTES];
    autofree char *name = xasprintf("ed25519:%s", id ? id : key);
    const char *text = json_text(json_get(json_get(json_get(obj, "signatures"), user), name));
    AUTO(str_clear) struct str bytes = STR_INIT(CANON_MAX);
    return b64_is_key(key, raw) && text && strlen(text) == SIG_TEXT && b64_read(text, sig, sizeof(sig)) == SIG_BYTES &&
           signable(&bytes, obj) && ed25519_check(raw, str_peek(&bytes), bytes.len, sig);
}

struct json *child(struct json *obj, const char *key)
{
    if (json_type(json_get(obj, key)) != JSON_OBJECT)
        json_set(obj, key, json_new_object());
    const struct json *borrowed = json_get(obj, key);
    struct json *ours = NULL; /* since obj is */
    memcpy(&ours, &borrowed, sizeof(void *));
    return ours;
}

void add_signature(struct json *obj, const char *user, const char *id, const char *sig)
{
    autofree char *name = xasprintf("ed25519:%s", id);
    json_set_str(child(child(obj, "signatures"), user), name, sig);
}

void sign_with_seed(struct json *obj, const char *user, const uint8_t seed[KEY_BYTES])
{
    AUTO(str_clear) struct str bytes = STR_INIT(CANON_MAX);
    AUTO(str_clear) struct str text = STR_INIT(SIG_TEXT);
    uint8_t public[KEY_BYTES], sig[SIG_BYTES];
    char id[KEY_TEXT + 1];
    if (!signable(&bytes, obj))
        abort();
    ed25519_public(seed, public);
    b64_key(id, public);
    ed25519_sign(seed, str_peek(&bytes), bytes.len, sig);
    b64_add(&text, sig, sizeof(sig));
    add_signature(obj, user, id, str_peek(&text));
}

const char *text_at(const struct json *obj, const char *a, const char *b)
{
    return json_text(json_get(json_get(obj, a), b));
}

struct json *obj_of(const char *key, struct json *take_value)
{
    struct json *o = json_new_object();
    json_set(o, key, take_value);
    return o;
}

char *json_line(const struct json *v)
{
    struct str s = STR_INIT(16 << 20);
    json_print(&s, v);
    return str_take(&s);
}

static void add_escaped(struct str *out, const char *text)
{
    for (; *text; text++)
        if ((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || (*text >= '0' && *text <= '9') ||
            strchr("-._~", *text))
            str_putc(out, *text);
        else
            str_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
}

char *url_path(const char *pattern, ...)
{
    struct str s = STR_INIT(16 << 10);
    va_list args;
    va_start(args, pattern);
    for (; *pattern; pattern++)
        if (*pattern == '%')
            add_escaped(&s, va_arg(args, const char *));
        else
            str_putc(&s, *pattern);
    va_end(args);
    return str_take(&s);
}
