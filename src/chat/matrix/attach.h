/* attach.h - encrypted attachments: AES-256-CTR and SHA-256 as streams, in memory that doesn't grow. Floor 3; no I/O.
 *
 * Encrypt: attach_encrypt(), attach_update() for each piece, attach_file() gives the JSON that goes into the event.
 * Decrypt: attach_decrypt() with that JSON; read the ciphertext twice: attach_check() each piece, attach_checked(), and only when
 * that says yes, attach_update() each piece. Before, attach_update() aborts: not one clear byte of an unchecked file. */
#ifndef MATRIX_ATTACH_H
#define MATRIX_ATTACH_H
#include "json.h"

struct attach;

/* A new key and counter of its own for every file. ERR_SANDBOX never; ERR_STORE when libcrypto fails. */
must_check int attach_encrypt(struct attach **out, struct err *e);
/* file: the "file" (or "thumbnail_file") object of an event. ERR_DATA names what is wrong with it. */
must_check int attach_decrypt(struct attach **out, const struct json *file, struct err *e);
void attach_free(struct attach *a); /* wipes; NULL is fine */

/* n bytes in, n bytes out; in == out is fine. */
must_check int attach_update(struct attach *a, const void *in, size_t n, void *out, struct err *e);
/* Encryption, after the last piece: the object with "url" set to the content URI. The caller frees. */
must_check int attach_file(struct attach *a, const char *url, struct json **out, struct err *e);
must_check int attach_check(struct attach *a, const void *cipher, size_t n, struct err *e);
must_check int attach_checked(struct attach *a, struct err *e); /* ERR_DATA: the hash is another one */
#endif
