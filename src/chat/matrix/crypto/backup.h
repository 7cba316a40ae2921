/* backup.h - one room key of the server's backup (m.megolm_backup.v1.curve25519-aes-sha2), sealed and opened; no I/O. */
#ifndef MATRIX_BACKUP_H
#define MATRIX_BACKUP_H
#include "crypto_json.h"

/* {"ephemeral","ciphertext","mac"}; ephemeral: 32 random bytes. NULL: the public key is none. */
struct json *backup_seal(const uint8_t public[KEY_BYTES], const uint8_t ephemeral[KEY_BYTES], const char *text);
/* The caller wipes and frees; NULL: malformed, or not for this key. Nobody's signature is on it: anybody can make one. */
char *backup_open(const uint8_t secret[KEY_BYTES], const struct json *sealed);
#endif
