/* ssss.h - secret storage (m.secret_storage.v1.aes-hmac-sha2) and recovery keys; no I/O. Private to src/chat/matrix/. */
#ifndef MATRIX_SSSS_H
#define MATRIX_SSSS_H
#include "crypto_json.h"

enum { SSSS_ROUNDS_MAX = 5000000 };

/* {"iv","ciphertext","mac"}; iv: 16 random bytes. */
struct json *ssss_seal(const uint8_t key[KEY_BYTES], const char *name, const char *secret, const uint8_t iv[IV_BYTES]);
/* The caller wipes and frees; NULL: malformed, or not this key. */
char *ssss_open(const uint8_t key[KEY_BYTES], const char *name, const struct json *sealed);
/* Content of m.secret_storage.key.<id>. */
struct json *ssss_describe(const uint8_t key[KEY_BYTES], const uint8_t iv[IV_BYTES]);
/* false: another key, or another algorithm. A description without iv and mac can't be checked: true. */
bool ssss_fits(const uint8_t key[KEY_BYTES], const struct json *description);
/* What a person wrote: a recovery key, or else the passphrase of that description. false: neither fits. */
bool ssss_key_from_words(const char *words, const struct json *description, uint8_t key[KEY_BYTES]);

char *recovery_key_text(const uint8_t key[KEY_BYTES]); /* groups of four; caller wipes and frees */
bool recovery_key_read(const char *text, uint8_t key[KEY_BYTES]);
#endif
