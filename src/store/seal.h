/* seal.h - HMAC-SHA256 of what this store wrote, under a key that only it has. seal.c is the only user of libcrypto here.
 * Floor 3, private to store/. */
#ifndef SEAL_H
#define SEAL_H
#include "err.h"

enum { SEAL_KEY = 32, SEAL_BYTES = 32 };

struct seal;
/* Aborts when the library can't: nothing would be safe then. The key is copied. */
struct seal *seal_new(const unsigned char key[SEAL_KEY]);
void seal_add(struct seal *s, const void *data, size_t n);
/* What was added since seal_new, once. */
void seal_end(struct seal *s, unsigned char out[SEAL_BYTES]);
void seal_free(struct seal *s); /* NULL is fine */
/* In a time that does not tell where they differ. */
bool seal_equal(const unsigned char a[SEAL_BYTES], const unsigned char b[SEAL_BYTES]);

/* The key in that file of the folder, which is made when there is none: readable by its owner only, or refused. */
must_check int seal_key(int dir_fd, const char *name, unsigned char key[SEAL_KEY], struct err *e);
#endif
