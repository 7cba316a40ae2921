/* crypto_kept.c - rows of the store as JSON, and secrets that lie in them sealed. */
#include "crypto_private.h"
#include "ssss.h"

enum { ROW_MAX = 8 << 20 };

void wipe_text(char **s)
{
    if (*s)
        explicit_bzero(*s, strlen(*s));
    free(*s);
    *s = NULL;
}

int kept_put(struct crypto *c, const char *kind, const char *key, const struct json *v, struct err *e)
{
    const struct kept k = { "matrix", kind, key };
    autowipe char *line = json_line(v);
    return store_keep(c->store, &k, line, strlen(line), e);
}

static int row(const char *kind, const char *text, size_t n, struct json **out, struct err *e)
{
    return json_parse(out, text, n, ROW_MAX, e) < 0 ? err_wrap(e, "encryption: row of %s is damaged", kind) : 0;
}

int kept_get(struct crypto *c, const char *kind, const char *key, struct json **out, struct err *e)
{
    const struct kept k = { "matrix", kind, key };
    autowipe char *text = NULL;
    size_t n = 0;
    *out = NULL;
    if (store_kept(c->store, &k, &text, &n, e) < 0)
        return -1;
    return text ? row(kind, text, n, out, e) : 0;
}

int kept_drop(struct crypto *c, const char *kind, const char *key, struct err *e)
{
    const struct kept k = { "matrix", kind, key };
    return store_unkeep(c->store, &k, e);
}

struct each {
    const char *kind;
    kept_fn *fn;
    void *ud;
    struct err *e;
    bool broken;
};

static int visit(void *ud, const char *key, const char *value, size_t n)
{
    struct each *w = ud;
    autojson struct json *v = NULL;
    if (row(w->kind, value, n, &v, w->e) < 0) {
        w->broken = true;
        return -1;
    }
    return w->fn(w->ud, key, v);
}

int kept_each(struct crypto *c, const char *kind, const char *prefix, kept_fn *fn, void *ud, struct err *e)
{
    const struct kept k = { "matrix", kind, prefix };
    struct each w = { kind, fn, ud, e, false };
    const int rc = store_kept_each(c->store, &k, visit, &w, e);
    return w.broken ? -1 : rc;
}

/* ---- secrets ---- */

static void secret_key(const struct crypto *c, uint8_t key[KEY_BYTES])
{
    const struct digest_hkdf h = { .key = c->pickle_key, .key_n = KEY_BYTES, .info = "secrets", .info_n = 7 };
    digest_hkdf(&h, key, KEY_BYTES);
}

static int secret_put(struct crypto *c, const char *name, const char *text, struct err *e)
{
    uint8_t key[KEY_BYTES], iv[IV_BYTES];
    secret_key(c, key);
    random_bytes(c, iv, sizeof(iv));
    autojson struct json *sealed = ssss_seal(key, name, text, iv);
    explicit_bzero(key, sizeof(key));
    return kept_put(c, "e2ee_secret", name, sealed, e);
}

int secret_get(struct crypto *c, const char *name, char **out, struct err *e)
{
    uint8_t key[KEY_BYTES];
    autojson struct json *sealed = NULL;
    *out = NULL;
    if (kept_get(c, "e2ee_secret", name, &sealed, e) < 0)
        return -1;
    if (!sealed)
        return 0;
    secret_key(c, key);
    *out = ssss_open(key, name, sealed);
    explicit_bzero(key, sizeof(key));
    return *out ? 0 : err_set(e, ERR_CONFIG, "secret %s: the pickle key is not the one it was kept under", name);
}

int secret_drop(struct crypto *c, const char *name, struct err *e)
{
    return kept_drop(c, "e2ee_secret", name, e);
}

int secret_put_seed(struct crypto *c, const char *name, const uint8_t seed[KEY_BYTES], struct err *e)
{
    char text[KEY_TEXT + 1];
    b64_key(text, seed);
    const int rc = secret_put(c, name, text, e);
    explicit_bzero(text, sizeof(text));
    return rc;
}

int secret_seed(struct crypto *c, const char *name, uint8_t seed[KEY_BYTES], bool *found, struct err *e)
{
    autowipe char *text = NULL;
    if (secret_get(c, name, &text, e) < 0)
        return -1;
    *found = text && b64_read(text, seed, KEY_BYTES) == KEY_BYTES;
    return 0;
}
