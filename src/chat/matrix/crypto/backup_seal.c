/* backup_seal.c - one room key, sealed for the backup on the server and opened again (m.megolm_backup.v1.curve25519-aes-sha2). */
#include "backup.h"

enum { MAC_BYTES = 8, TEXT_MAX = 16 << 10, SEALED_MAX = 2 * TEXT_MAX };

struct backup_keys {
    uint8_t aes[KEY_BYTES], mac[KEY_BYTES], iv[IV_BYTES];
};

static bool agree(struct backup_keys *k, const uint8_t secret[KEY_BYTES], const uint8_t theirs[KEY_BYTES])
{
    uint8_t shared[KEY_BYTES];
    if (!x25519_agree(secret, theirs, shared))
        return false;
    const struct digest_hkdf h = { .key = shared, .key_n = sizeof(shared) };
    digest_hkdf(&h, k, sizeof(*k));
    explicit_bzero(shared, sizeof(shared));
    return true;
}

/* Over nothing: that is how the format was born, and so it stayed. */
static void mac_of(const struct backup_keys *k, uint8_t mac[DIGEST_BYTES])
{
    digest_hmac(k->mac, sizeof(k->mac), "", 0, mac);
}

static void set_b64(struct json *obj, const char *key, const void *data, size_t n)
{
    AUTO(str_clear) struct str text = STR_INIT(SEALED_MAX);
    b64_add(&text, data, n);
    json_set_str(obj, key, str_peek(&text));
}

struct json *backup_seal(const uint8_t public[KEY_BYTES], const uint8_t ephemeral[KEY_BYTES], const char *text)
{
    struct backup_keys k;
    uint8_t mac[DIGEST_BYTES], mine[KEY_BYTES];
    const size_t n = strlen(text);
    if (n > TEXT_MAX || !agree(&k, ephemeral, public))
        return NULL;
    struct json *out = json_new_object();
    autofree uint8_t *cipher = xcalloc(1, n + IV_BYTES);
    const size_t len = aes_cbc_seal(&(struct aes_cbc){ k.aes, k.iv }, text, n, cipher);
    mac_of(&k, mac);
    x25519_public(ephemeral, mine);
    set_b64(out, "ephemeral", mine, sizeof(mine));
    set_b64(out, "ciphertext", cipher, len);
    set_b64(out, "mac", mac, MAC_BYTES);
    explicit_bzero(&k, sizeof(k));
    return out;
}

char *backup_open(const uint8_t secret[KEY_BYTES], const struct json *sealed)
{
    struct backup_keys k;
    uint8_t theirs[KEY_BYTES], want[MAC_BYTES], mac[DIGEST_BYTES];
    autofree uint8_t *cipher = xcalloc(1, TEXT_MAX + IV_BYTES);
    const char *key = json_str_or(sealed, "ephemeral", ""), *text = json_str_or(sealed, "ciphertext", "");
    const int64_t n = b64_read(text, cipher, TEXT_MAX + IV_BYTES);
    if (b64_read(key, theirs, sizeof(theirs)) != KEY_BYTES || n < 0 ||
        b64_read(json_str_or(sealed, "mac", ""), want, sizeof(want)) != MAC_BYTES || !agree(&k, secret, theirs))
        return NULL;
    mac_of(&k, mac);
    char *out = xcalloc(1, (size_t)n + 1);
    const int64_t len = digest_equal(mac, want, MAC_BYTES)
                            ? aes_cbc_open(&(struct aes_cbc){ k.aes, k.iv }, cipher, (size_t)n, (uint8_t *)out)
                            : -1;
    explicit_bzero(&k, sizeof(k));
    if (len < 0) {
        free(out);
        return NULL;
    }
    out[len] = 0;
    return out;
}
