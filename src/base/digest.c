#include "digest.h"
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/rand.h>

static void need(bool ok)
{
    if (!ok)
        abort();
}

void digest_sha256(const void *data, size_t n, uint8_t out[DIGEST_BYTES])
{
    need(EVP_Digest(data, n, out, NULL, EVP_sha256(), NULL) == 1);
}

struct digest {
    EVP_MD_CTX *ctx; /* one of both */
    EVP_MAC_CTX *mac;
};

struct digest *digest_new(void)
{
    struct digest *d = xcalloc(1, sizeof(*d));
    d->ctx = EVP_MD_CTX_new();
    need(d->ctx && EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL) == 1);
    return d;
}

struct digest *digest_new_hmac(const void *key, size_t key_n)
{
    char hash[] = "SHA256";
    const OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, hash, 0),
                                  OSSL_PARAM_construct_end() };
    struct digest *d = xcalloc(1, sizeof(*d));
    EVP_MAC *kind = EVP_MAC_fetch(NULL, "HMAC", NULL);
    need(kind != NULL);
    d->mac = EVP_MAC_CTX_new(kind);
    EVP_MAC_free(kind);
    need(d->mac && EVP_MAC_init(d->mac, key, key_n, params) == 1);
    return d;
}

void digest_add(struct digest *d, const void *data, size_t n)
{
    need((d->mac ? EVP_MAC_update(d->mac, data, n) : EVP_DigestUpdate(d->ctx, data, n)) == 1);
}

void digest_end(struct digest *d, uint8_t out[DIGEST_BYTES])
{
    size_t n = 0;
    need((d->mac ? EVP_MAC_final(d->mac, out, &n, DIGEST_BYTES) : EVP_DigestFinal_ex(d->ctx, out, NULL)) == 1);
}

void digest_free(struct digest *d)
{
    if (!d)
        return;
    EVP_MD_CTX_free(d->ctx);
    EVP_MAC_CTX_free(d->mac);
    free(d);
}

void digest_hmac(const void *key, size_t key_n, const void *data, size_t n, uint8_t out[DIGEST_BYTES])
{
    need(key_n <= INT32_MAX && HMAC(EVP_sha256(), key, (int)key_n, data, n, out, NULL) != NULL);
}

/* RFC 5869, by hand over HMAC: libcrypto's own refuses empty keys and differs between its versions in how it is called. */
void digest_hkdf(const struct digest_hkdf *h, void *out, size_t out_n)
{
    static const uint8_t zero[DIGEST_BYTES];
    uint8_t prk[DIGEST_BYTES], block[DIGEST_BYTES] = { 0 };
    digest_hmac(h->salt_n ? h->salt : zero, h->salt_n ? h->salt_n : sizeof(zero), h->key, h->key_n, prk);
    uint8_t *input = xcalloc(1, sizeof(block) + h->info_n + 1);
    uint8_t *to = out;
    size_t had = 0;
    need(out_n <= (size_t)255 * sizeof(block));
    for (uint8_t i = 1; out_n > 0; i++) {
        memcpy(input, block, had);
        if (h->info_n)
            memcpy(input + had, h->info, h->info_n);
        input[had + h->info_n] = i;
        digest_hmac(prk, sizeof(prk), input, had + h->info_n + 1, block);
        had = sizeof(block);
        const size_t n = out_n < had ? out_n : had;
        memcpy(to, block, n);
        to += n;
        out_n -= n;
    }
    explicit_bzero(input, sizeof(block) + h->info_n + 1);
    explicit_bzero(prk, sizeof(prk));
    explicit_bzero(block, sizeof(block));
    free(input);
}

bool digest_equal(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}

void digest_random(void *out, size_t n)
{
    need(n <= INT32_MAX && RAND_bytes(out, (int)n) == 1);
}

char *base64_encode(const void *data, size_t n)
{
    need(n < (size_t)1 << 30);
    char *text = xcalloc(1, (n + 2) / 3 * 4 + 1);
    (void)EVP_EncodeBlock((unsigned char *)text, data, (int)n);
    return text;
}
