/* crypto_prim.h - what Matrix's formats need beside Olm: AES, PBKDF2, X25519, Ed25519, base64. By OpenSSL's libcrypto.
 *
 * libolm has most of this inside, but its AES and SHA say of themselves that they have no resistance against side channels, and
 * it takes signatures whose S is not reduced. So nothing outside of Olm and Megolm themselves goes through it. */
#ifndef MATRIX_CRYPTO_PRIM_H
#define MATRIX_CRYPTO_PRIM_H
#include "digest.h"
#include "str.h"

enum { KEY_BYTES = 32, KEY_TEXT = 43, SIG_BYTES = 64, SIG_TEXT = 86, IV_BYTES = 16 };

/* ---- base64: written without padding; read with or without, in either alphabet, but with nothing else in it ---- */
void b64_add(struct str *out, const void *data, size_t n);
void b64url_add(struct str *out, const void *data, size_t n);
/* Bytes, at most max; -1: not base64, or more than max. */
int64_t b64_read(const char *text, void *out, size_t max);
/* 32 bytes as 43 characters and a NUL. */
void b64_key(char out[KEY_TEXT + 1], const uint8_t key[KEY_BYTES]);
/* Exactly 43 characters of the standard alphabet that are 32 bytes in the one way to write them. NULL is false. */
bool b64_is_key(const char *text, uint8_t key[KEY_BYTES]);

/* ---- AES-256 ---- */
struct aes_ctr;
struct aes_ctr *aes_ctr_new(const uint8_t key[KEY_BYTES], const uint8_t iv[IV_BYTES]);
void aes_ctr_update(struct aes_ctr *a, const void *in, size_t n, void *out); /* in == out is fine */
void aes_ctr_free(struct aes_ctr *a);
/* CBC with PKCS#7. seal: out has n / 16 * 16 + 16 bytes. open: out has n; the length of the clear text, or -1. */
struct aes_cbc {
    const uint8_t *key, *iv;
};
size_t aes_cbc_seal(const struct aes_cbc *a, const void *in, size_t n, uint8_t *out);
int64_t aes_cbc_open(const struct aes_cbc *a, const void *in, size_t n, uint8_t *out);

void pbkdf2_sha512(const char *pass, const char *salt, uint32_t rounds, uint8_t out[KEY_BYTES]);

/* ---- curves ---- */
void x25519_public(const uint8_t secret[KEY_BYTES], uint8_t out[KEY_BYTES]);
/* false: the other key is of low order, the result would be known to all. */
must_check bool x25519_agree(const uint8_t secret[KEY_BYTES], const uint8_t theirs[KEY_BYTES], uint8_t out[KEY_BYTES]);
/* A curve25519 key of a peer as text: 43 characters, not of low order. */
bool x25519_is_sane(const char *text);
void ed25519_public(const uint8_t seed[KEY_BYTES], uint8_t out[KEY_BYTES]);
void ed25519_sign(const uint8_t seed[KEY_BYTES], const void *data, size_t n, uint8_t out[SIG_BYTES]);
/* S must be below the group's order, the key not of low order. */
must_check bool ed25519_check(const uint8_t key[KEY_BYTES], const void *data, size_t n, const uint8_t sig[SIG_BYTES]);
/* The upper half of a signature, little-endian, is below the order of the group. */
bool ed25519_s_reduced(const uint8_t sig[SIG_BYTES]);
#endif
