#include "attach.h"
#include "crypto_json.h"

struct attach {
    struct aes_ctr *aes;
    struct digest *hash;
    uint8_t key[KEY_BYTES], iv[IV_BYTES], want[DIGEST_BYTES];
    bool encrypts, checked;
};

static struct attach *attach_new(const uint8_t key[KEY_BYTES], const uint8_t iv[IV_BYTES])
{
    struct attach *a = xcalloc(1, sizeof(*a));
    memcpy(a->key, key, sizeof(a->key));
    memcpy(a->iv, iv, sizeof(a->iv));
    a->aes = aes_ctr_new(key, iv);
    a->hash = digest_new();
    return a;
}

void attach_free(struct attach *a)
{
    if (!a)
        return;
    aes_ctr_free(a->aes);
    digest_free(a->hash);
    explicit_bzero(a, sizeof(*a));
    free(a);
}

struct attach *attach_encrypt(void)
{
    uint8_t key[KEY_BYTES], iv[IV_BYTES] = { 0 };
    digest_random(key, sizeof(key));
    digest_random(iv, 8); /* the lower half counts blocks, from zero */
    struct attach *a = attach_new(key, iv);
    explicit_bzero(key, sizeof(key));
    a->encrypts = true;
    return a;
}

static int read_bytes(const struct json *obj, const char *key, void *out, size_t n, struct err *e)
{
    const char *text = NULL;
    if (json_str(obj, key, &text, e) < 0)
        return err_wrap(e, "encrypted file");
    if (b64_read(text, out, n) != (int64_t)n)
        return err_set(e, ERR_DATA, "encrypted file: \"%s\" is not %zu bytes", key, n);
    return 0;
}

int attach_decrypt(struct attach **out, const struct json *file, struct err *e)
{
    const struct json *jwk = json_get(file, "key");
    uint8_t key[KEY_BYTES], iv[IV_BYTES], want[DIGEST_BYTES];
    if (!same(json_text(json_get(file, "v")), "v2"))
        return err_set(e, ERR_DATA, "encrypted file: version is not v2");
    if (!same(json_text(json_get(jwk, "kty")), "oct") || !same(json_text(json_get(jwk, "alg")), "A256CTR"))
        return err_set(e, ERR_DATA, "encrypted file: key is not for A256CTR");
    if (read_bytes(jwk, "k", key, sizeof(key), e) < 0 || read_bytes(file, "iv", iv, sizeof(iv), e) < 0 ||
        read_bytes(json_get(file, "hashes"), "sha256", want, sizeof(want), e) < 0)
        return -1;
    struct attach *a = attach_new(key, iv);
    memcpy(a->want, want, sizeof(want));
    explicit_bzero(key, sizeof(key));
    *out = a;
    return 0;
}

void attach_update(struct attach *a, const void *in, size_t n, void *out)
{
    if (!a->encrypts && !a->checked)
        abort();
    aes_ctr_update(a->aes, in, n, out);
    if (a->encrypts)
        digest_add(a->hash, out, n);
}

static void set_b64(struct json *obj, const char *key, const void *data, size_t n)
{
    AUTO(str_clear) struct str text = STR_INIT(64);
    b64_add(&text, data, n);
    json_set_str(obj, key, str_peek(&text));
}

static struct json *key_object(const uint8_t key[KEY_BYTES])
{
    AUTO(str_clear) struct str k = STR_INIT(64);
    struct json *jwk = json_new_object(), *ops = json_new_array();
    b64url_add(&k, key, KEY_BYTES);
    json_push(ops, json_new_string("encrypt"));
    json_push(ops, json_new_string("decrypt"));
    json_set_str(jwk, "kty", "oct");
    json_set(jwk, "key_ops", ops);
    json_set_str(jwk, "alg", "A256CTR");
    json_set_str(jwk, "k", str_peek(&k));
    json_set_bool(jwk, "ext", true);
    explicit_bzero(k.buf, k.len);
    return jwk;
}

struct json *attach_file(struct attach *a, const char *url)
{
    uint8_t hash[DIGEST_BYTES];
    struct json *file = json_new_object(), *hashes = json_new_object();
    digest_end(a->hash, hash);
    json_set_str(file, "v", "v2");
    json_set_str(file, "url", url);
    json_set(file, "key", key_object(a->key));
    set_b64(file, "iv", a->iv, sizeof(a->iv));
    set_b64(hashes, "sha256", hash, sizeof(hash));
    json_set(file, "hashes", hashes);
    return file;
}

void attach_check(struct attach *a, const void *cipher, size_t n)
{
    digest_add(a->hash, cipher, n);
}

int attach_checked(struct attach *a, struct err *e)
{
    uint8_t hash[DIGEST_BYTES];
    digest_end(a->hash, hash);
    a->checked = digest_equal(hash, a->want, sizeof(hash));
    return a->checked ? 0 : err_set(e, ERR_DATA, "encrypted file: what was downloaded is not what was sent");
}
