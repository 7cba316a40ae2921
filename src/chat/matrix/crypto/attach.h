/* attach.h - encrypted attachments: AES-256-CTR and SHA-256 as streams, in memory that doesn't grow; no I/O. Floor 3.
 *
 * Encrypt: attach_encrypt(), attach_update() for each piece, attach_file() gives the JSON that goes into the event.
 * Decrypt: attach_decrypt() with that JSON; read the ciphertext twice: attach_check() each piece, attach_checked(), and only when
 * that says yes, attach_update() each piece. Before, attach_update() aborts: not one clear byte of an unchecked file. */
#ifndef MATRIX_ATTACH_H
#define MATRIX_ATTACH_H
#include "json.h"

struct attach;

struct attach *attach_encrypt(void); /* a key and a counter of its own for every file */
/* file: the "file" (or "thumbnail_file") object of an event. ERR_DATA names what is wrong with it. */
must_check int attach_decrypt(struct attach **out, const struct json *file, struct err *e);
void attach_free(struct attach *a); /* wipes; NULL is fine */

/* n bytes in, n bytes out; in == out is fine. */
void attach_update(struct attach *a, const void *in, size_t n, void *out);
/* Encryption, after the last piece, once: the object with "url" set to the content URI. The caller frees. */
struct json *attach_file(struct attach *a, const char *url);
void attach_check(struct attach *a, const void *cipher, size_t n);
must_check int attach_checked(struct attach *a, struct err *e); /* once; ERR_DATA: the hash is another one */
#endif
