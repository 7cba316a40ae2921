#include "ssss.h"

enum { SECRET_MAX = 4096, SECRET_TEXT_MAX = 2 * SECRET_MAX, RECOVERY_BYTES = 35, RECOVERY_TEXT = 48 };

struct ssss_keys {
    uint8_t aes[KEY_BYTES], mac[KEY_BYTES];
};

static void derive(struct ssss_keys *out, const uint8_t key[KEY_BYTES], const char *name)
{
    const struct digest_hkdf h = { .key = key, .key_n = KEY_BYTES, .info = name, .info_n = strlen(name) };
    digest_hkdf(&h, out, sizeof(*out));
}

static void run_aes(const struct ssss_keys *k, const uint8_t iv[IV_BYTES], const void *in, size_t n, void *out)
{
    struct aes_ctr *a = aes_ctr_new(k->aes, iv);
    aes_ctr_update(a, in, n, out);
    aes_ctr_free(a);
}

static void set_b64(struct json *obj, const char *key, const void *data, size_t n)
{
    AUTO(str_clear) struct str text = STR_INIT(SECRET_TEXT_MAX);
    b64_add(&text, data, n);
    json_set_str(obj, key, str_peek(&text));
}

/* Bit 63 of the counter is clear: some implementations count in 64 bits. */
static void tame_iv(uint8_t out[IV_BYTES], const uint8_t iv[IV_BYTES])
{
    memcpy(out, iv, IV_BYTES);
    out[8] &= 0x7f;
}

struct json *ssss_seal(const uint8_t key[KEY_BYTES], const char *name, const char *secret, const uint8_t iv[IV_BYTES])
{
    const size_t n = strlen(secret);
    struct ssss_keys k;
    uint8_t tame[IV_BYTES], mac[DIGEST_BYTES];
    autofree uint8_t *cipher = xcalloc(1, n + 1);
    struct json *out = json_new_object();
    derive(&k, key, name);
    tame_iv(tame, iv);
    run_aes(&k, tame, secret, n, cipher);
    digest_hmac(k.mac, sizeof(k.mac), cipher, n, mac);
    set_b64(out, "iv", tame, sizeof(tame));
    set_b64(out, "ciphertext", cipher, n);
    set_b64(out, "mac", mac, sizeof(mac));
    explicit_bzero(&k, sizeof(k));
    return out;
}

static bool read_exact(const struct json *obj, const char *key, void *out, size_t n)
{
    const char *text = json_text(json_get(obj, key));
    return text && b64_read(text, out, n) == (int64_t)n;
}

char *ssss_open(const uint8_t key[KEY_BYTES], const char *name, const struct json *sealed)
{
    uint8_t iv[IV_BYTES], mac[DIGEST_BYTES], want[DIGEST_BYTES], cipher[SECRET_MAX];
    const char *text = json_text(json_get(sealed, "ciphertext"));
    const int64_t n = text ? b64_read(text, cipher, sizeof(cipher)) : -1;
    if (n < 0 || !read_exact(sealed, "iv", iv, sizeof(iv)) || !read_exact(sealed, "mac", want, sizeof(want)))
        return NULL;
    struct ssss_keys k;
    derive(&k, key, name);
    digest_hmac(k.mac, sizeof(k.mac), cipher, (size_t)n, mac);
    char *out = NULL;
    if (digest_equal(mac, want, sizeof(mac))) {
        out = xcalloc(1, (size_t)n + 1);
        run_aes(&k, iv, cipher, (size_t)n, out);
    }
    explicit_bzero(&k, sizeof(k));
    return out;
}

static void check_mac(const uint8_t key[KEY_BYTES], const uint8_t iv[IV_BYTES], uint8_t mac[DIGEST_BYTES])
{
    static const uint8_t zero[KEY_BYTES];
    uint8_t cipher[sizeof(zero)];
    struct ssss_keys k;
    derive(&k, key, "");
    run_aes(&k, iv, zero, sizeof(zero), cipher);
    digest_hmac(k.mac, sizeof(k.mac), cipher, sizeof(cipher), mac);
    explicit_bzero(&k, sizeof(k));
}

struct json *ssss_describe(const uint8_t key[KEY_BYTES], const uint8_t iv[IV_BYTES])
{
    uint8_t tame[IV_BYTES], mac[DIGEST_BYTES];
    struct json *out = json_new_object();
    tame_iv(tame, iv);
    check_mac(key, tame, mac);
    json_set_str(out, "algorithm", "m.secret_storage.v1.aes-hmac-sha2");
    set_b64(out, "iv", tame, sizeof(tame));
    set_b64(out, "mac", mac, sizeof(mac));
    return out;
}

bool ssss_fits(const uint8_t key[KEY_BYTES], const struct json *description)
{
    uint8_t iv[IV_BYTES], mac[DIGEST_BYTES], want[DIGEST_BYTES];
    if (!same(json_text(json_get(description, "algorithm")), "m.secret_storage.v1.aes-hmac-sha2"))
        return false;
    if (!json_get(description, "iv") && !json_get(description, "mac"))
        return true;
    if (!read_exact(description, "iv", iv, sizeof(iv)) || !read_exact(description, "mac", want, sizeof(want)))
        return false;
    check_mac(key, iv, mac);
    return digest_equal(mac, want, sizeof(mac));
}

static bool from_passphrase(const char *words, const struct json *passphrase, uint8_t key[KEY_BYTES])
{
    const char *salt = json_text(json_get(passphrase, "salt"));
    const int64_t rounds = json_int_or(passphrase, "iterations", 0);
    if (!same(json_text(json_get(passphrase, "algorithm")), "m.pbkdf2") || !salt || rounds < 1 ||
        rounds > SSSS_ROUNDS_MAX || json_int_or(passphrase, "bits", 256) != 256)
        return false;
    pbkdf2_sha512(words, salt, (uint32_t)rounds, key);
    return true;
}

bool ssss_key_from_words(const char *words, const struct json *description, uint8_t key[KEY_BYTES])
{
    if (recovery_key_read(words, key) && ssss_fits(key, description))
        return true;
    return from_passphrase(words, json_get(description, "passphrase"), key) && ssss_fits(key, description);
}

/* ---- recovery keys: 0x8b 0x01, the key, a parity byte; in base 58 ---- */

static const char base58[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

static uint8_t parity(const uint8_t *raw, size_t n)
{
    uint8_t p = 0;
    for (size_t i = 0; i < n; i++)
        p ^= raw[i];
    return p;
}

char *recovery_key_text(const uint8_t key[KEY_BYTES])
{
    uint8_t raw[RECOVERY_BYTES] = { 0x8b, 0x01 };
    char digits[RECOVERY_TEXT + 1] = { 0 };
    memcpy(raw + 2, key, KEY_BYTES);
    raw[RECOVERY_BYTES - 1] = parity(raw, RECOVERY_BYTES - 1);
    for (int i = RECOVERY_TEXT - 1; i >= 0; i--) { /* the first byte makes it 48 digits, always */
        unsigned rest = 0;
        for (size_t b = 0; b < sizeof(raw); b++) {
            rest = rest << 8 | raw[b];
            raw[b] = (uint8_t)(rest / 58);
            rest %= 58;
        }
        digits[i] = base58[rest];
    }
    struct str out = STR_INIT(128);
    for (size_t i = 0; i < RECOVERY_TEXT; i++)
        str_printf(&out, "%s%c", i > 0 && i % 4 == 0 ? " " : "", digits[i]);
    explicit_bzero(digits, sizeof(digits));
    return str_take(&out);
}

/* raw = raw * 58 + digit; false: too big. */
static bool shift_in(uint8_t raw[RECOVERY_BYTES], unsigned digit)
{
    for (int b = RECOVERY_BYTES - 1; b >= 0; b--) {
        digit += raw[b] * 58U;
        raw[b] = (uint8_t)digit;
        digit >>= 8;
    }
    return digit == 0;
}

bool recovery_key_read(const char *text, uint8_t key[KEY_BYTES])
{
    uint8_t raw[RECOVERY_BYTES] = { 0 };
    for (; *text; text++) {
        if (strchr(" \t\r\n", *text))
            continue;
        const char *at = strchr(base58, *text);
        if (!at || !shift_in(raw, (unsigned)(at - base58)))
            return false;
    }
    const bool ok = raw[0] == 0x8b && raw[1] == 0x01 && parity(raw, sizeof(raw)) == 0;
    if (ok)
        memcpy(key, raw + 2, KEY_BYTES);
    explicit_bzero(raw, sizeof(raw));
    return ok;
}
