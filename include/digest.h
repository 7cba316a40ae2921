/* digest.h - SHA-256, HMAC, HKDF, random bytes, a comparison that takes no time from secrets, base64. Floor 0; by OpenSSL's libcrypto.
 *
 * None of these can fail but for want of memory or a broken library: then they abort. The keeper doesn't link this file. */
#ifndef DIGEST_H
#define DIGEST_H
#include "base.h"

enum { DIGEST_BYTES = 32 };

void digest_sha256(const void *data, size_t n, uint8_t out[DIGEST_BYTES]);
/* In pieces. digest_end() may be called once; digest_free() always. */
struct digest;
struct digest *digest_new(void);
struct digest *digest_new_hmac(const void *key, size_t key_n); /* the key is copied */
void digest_add(struct digest *d, const void *data, size_t n);
void digest_end(struct digest *d, uint8_t out[DIGEST_BYTES]);
void digest_free(struct digest *d); /* NULL is fine */

void digest_hmac(const void *key, size_t key_n, const void *data, size_t n, uint8_t out[DIGEST_BYTES]);
/* HKDF with SHA-256 (RFC 5869); salt_n 0: 32 zero bytes. out_n at most 255 * 32. */
struct digest_hkdf {
    const void *key, *salt, *info;
    size_t key_n, salt_n, info_n;
};
void digest_hkdf(const struct digest_hkdf *h, void *out, size_t out_n);

/* In time that depends on n only. */
bool digest_equal(const void *a, const void *b, size_t n);
void digest_random(void *out, size_t n);

/* RFC 4648, with padding; n below 1 GiB. The caller frees. */
char *base64_encode(const void *data, size_t n);
#endif
