#include "crypto_prim.h"
#include <openssl/evp.h>

static void need(bool ok)
{
    if (!ok)
        abort();
}

/* ---- base64 ---- */

static const char std64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void add64(struct str *out, const uint8_t *at, size_t n, const char *alphabet)
{
    for (; n > 0; at += 3) {
        const size_t k = n < 3 ? n : 3;
        const uint32_t bits = (uint32_t)at[0] << 16 | (k > 1 ? (uint32_t)at[1] << 8 : 0) | (k > 2 ? at[2] : 0U);
        for (size_t i = 0; i <= k; i++)
            str_putc(out, alphabet[bits >> (18 - 6 * i) & 63]);
        n -= k;
    }
}

void b64_add(struct str *out, const void *data, size_t n)
{
    add64(out, data, n, std64);
}

void b64url_add(struct str *out, const void *data, size_t n)
{
    add64(out, data, n, url64);
}

static int value64(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

/* Length without padding, or -1 when padding is not what it has to be. */
static int64_t bare_length(const char *text)
{
    size_t n = strlen(text), pad = 0;
    while (n > 0 && text[n - 1] == '=')
        n--, pad++;
    return n % 4 == 1 || (pad > 0 && (n + pad) % 4 != 0) || pad > 2 ? -1 : (int64_t)n;
}

int64_t b64_read(const char *text, void *out, size_t max)
{
    const int64_t n = bare_length(text);
    if (n < 0 || (uint64_t)n * 6 / 8 > max)
        return -1;
    uint8_t *to = out;
    uint32_t bits = 0, have = 0;
    for (int64_t i = 0; i < n; i++) {
        const int v = value64(text[i]);
        if (v < 0)
            return -1;
        bits = bits << 6 | (uint32_t)v;
        have += 6;
        if (have >= 8)
            *to++ = (uint8_t)(bits >> (have -= 8));
    }
    return to - (uint8_t *)out;
}

void b64_key(char out[KEY_TEXT + 1], const uint8_t key[KEY_BYTES])
{
    AUTO(str_clear) struct str s = STR_INIT(KEY_TEXT);
    b64_add(&s, key, KEY_BYTES);
    memcpy(out, str_peek(&s), KEY_TEXT + 1);
}

bool b64_is_key(const char *text, uint8_t key[KEY_BYTES])
{
    char again[KEY_TEXT + 1];
    if (!text || strlen(text) != KEY_TEXT || b64_read(text, key, KEY_BYTES) != KEY_BYTES)
        return false;
    b64_key(again, key);
    return strcmp(again, text) == 0;
}

/* ---- AES ---- */

struct aes_ctr {
    EVP_CIPHER_CTX *ctx;
};

struct aes_ctr *aes_ctr_new(const uint8_t key[KEY_BYTES], const uint8_t iv[IV_BYTES])
{
    struct aes_ctr *a = xcalloc(1, sizeof(*a));
    a->ctx = EVP_CIPHER_CTX_new();
    need(a->ctx && EVP_EncryptInit_ex(a->ctx, EVP_aes_256_ctr(), NULL, key, iv) == 1);
    return a;
}

void aes_ctr_update(struct aes_ctr *a, const void *in, size_t n, void *out)
{
    const uint8_t *from = in;
    uint8_t *to = out;
    while (n > 0) {
        const int piece = n < 1 << 30 ? (int)n : 1 << 30;
        int done = 0;
        need(EVP_EncryptUpdate(a->ctx, to, &done, from, piece) == 1 && done == piece);
        from += piece;
        to += piece;
        n -= (size_t)piece;
    }
}

void aes_ctr_free(struct aes_ctr *a)
{
    if (!a)
        return;
    EVP_CIPHER_CTX_free(a->ctx);
    free(a);
}

size_t aes_cbc_seal(const struct aes_cbc *a, const void *in, size_t n, uint8_t *out)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int head = 0, tail = 0;
    need(ctx && n <= 1 << 30 && EVP_EncryptInit_ex(ctx, EVP_aes_256_cbc(), NULL, a->key, a->iv) == 1);
    need(EVP_EncryptUpdate(ctx, out, &head, in, (int)n) == 1 && EVP_EncryptFinal_ex(ctx, out + head, &tail) == 1);
    EVP_CIPHER_CTX_free(ctx);
    return (size_t)head + (size_t)tail;
}

int64_t aes_cbc_open(const struct aes_cbc *a, const void *in, size_t n, uint8_t *out)
{
    if (n == 0 || n % IV_BYTES != 0 || n > 1 << 30)
        return -1;
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    uint8_t *room = xcalloc(1, n + IV_BYTES); /* libcrypto may write one block more on the way */
    int head = 0, tail = 0;
    need(ctx && EVP_DecryptInit_ex(ctx, EVP_aes_256_cbc(), NULL, a->key, a->iv) == 1);
    const bool ok =
        EVP_DecryptUpdate(ctx, room, &head, in, (int)n) == 1 && EVP_DecryptFinal_ex(ctx, room + head, &tail) == 1;
    const size_t len = (size_t)head + (size_t)tail;
    if (ok && len > 0)
        memcpy(out, room, len);
    EVP_CIPHER_CTX_free(ctx);
    explicit_bzero(room, n + IV_BYTES);
    free(room);
    return ok ? (int64_t)len : -1;
}

void pbkdf2_sha512(const char *pass, const char *salt, uint32_t rounds, uint8_t out[KEY_BYTES])
{
    need(rounds > 0 && rounds <= INT32_MAX &&
         PKCS5_PBKDF2_HMAC(pass, (int)strlen(pass), (const uint8_t *)salt, (int)strlen(salt), (int)rounds, EVP_sha512(),
                           KEY_BYTES, out) == 1);
}

/* ---- curves ---- */

static EVP_PKEY *secret_key(int type, const uint8_t secret[KEY_BYTES])
{
    EVP_PKEY *k = EVP_PKEY_new_raw_private_key(type, NULL, secret, KEY_BYTES);
    need(k != NULL);
    return k;
}

static void public_of(int type, const uint8_t secret[KEY_BYTES], uint8_t out[KEY_BYTES])
{
    EVP_PKEY *k = secret_key(type, secret);
    size_t n = KEY_BYTES;
    need(EVP_PKEY_get_raw_public_key(k, out, &n) == 1 && n == KEY_BYTES);
    EVP_PKEY_free(k);
}

void x25519_public(const uint8_t secret[KEY_BYTES], uint8_t out[KEY_BYTES])
{
    public_of(EVP_PKEY_X25519, secret, out);
}

bool x25519_agree(const uint8_t secret[KEY_BYTES], const uint8_t theirs[KEY_BYTES], uint8_t out[KEY_BYTES])
{
    EVP_PKEY *mine = secret_key(EVP_PKEY_X25519, secret);
    EVP_PKEY *peer = EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, NULL, theirs, KEY_BYTES);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(mine, NULL);
    size_t n = KEY_BYTES;
    need(peer && ctx && EVP_PKEY_derive_init(ctx) == 1);
    const bool ok = EVP_PKEY_derive_set_peer(ctx, peer) == 1 && EVP_PKEY_derive(ctx, out, &n) == 1 && n == KEY_BYTES;
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(peer);
    EVP_PKEY_free(mine);
    return ok;
}

bool x25519_is_sane(const char *text)
{
    static const uint8_t any[KEY_BYTES] = { 8, 1 }; /* every scalar is made a multiple of the cofactor */
    uint8_t key[KEY_BYTES], shared[KEY_BYTES];
    return b64_is_key(text, key) && x25519_agree(any, key, shared);
}

void ed25519_public(const uint8_t seed[KEY_BYTES], uint8_t out[KEY_BYTES])
{
    public_of(EVP_PKEY_ED25519, seed, out);
}

void ed25519_sign(const uint8_t seed[KEY_BYTES], const void *data, size_t n, uint8_t out[SIG_BYTES])
{
    EVP_PKEY *k = secret_key(EVP_PKEY_ED25519, seed);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t sig_n = SIG_BYTES;
    need(ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, k) == 1 && EVP_DigestSign(ctx, out, &sig_n, data, n) == 1);
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(k);
}

bool ed25519_s_reduced(const uint8_t sig[SIG_BYTES])
{
    static const uint8_t order[KEY_BYTES] = { /* 2^252 + 27742317777372353535851937790883648493 */
                                              0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
                                              0xa2, 0xde, 0xf9, 0xde, 0x14, 0,    0,    0,    0,    0,    0,
                                              0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10
    };
    for (int i = KEY_BYTES - 1; i >= 0; i--)
        if (sig[KEY_BYTES + i] != order[i])
            return sig[KEY_BYTES + i] < order[i];
    return false;
}

/* The eight points of small order, by their y: with such a key anybody can make signatures that hold. */
static bool is_low_order(const uint8_t key[KEY_BYTES])
{
    static const uint8_t y[5][KEY_BYTES] = {
        { 1 },
        { 0 },
        { 0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
          0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05 },
        { 0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
          0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a },
        { 0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
          0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f },
    };
    uint8_t bare[KEY_BYTES];
    memcpy(bare, key, sizeof(bare));
    bare[KEY_BYTES - 1] &= 0x7f; /* the sign of x */
    for (size_t i = 0; i < countof(y); i++)
        if (memcmp(bare, y[i], sizeof(bare)) == 0)
            return true;
    /* p and p + 1, other ways to write 0 and 1 */
    for (size_t i = 1; i < KEY_BYTES - 1; i++)
        if (bare[i] != 0xff)
            return false;
    return bare[0] >= 0xed && bare[KEY_BYTES - 1] == 0x7f;
}

bool ed25519_check(const uint8_t key[KEY_BYTES], const void *data, size_t n, const uint8_t sig[SIG_BYTES])
{
    if (!ed25519_s_reduced(sig) || is_low_order(key))
        return false;
    EVP_PKEY *k = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, KEY_BYTES);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    need(k && ctx && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, k) == 1);
    const bool ok = EVP_DigestVerify(ctx, sig, SIG_BYTES, data, n) == 1;
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(k);
    return ok;
}
