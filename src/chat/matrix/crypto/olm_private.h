/* olm_private.h - what the files around libolm share. Include nowhere else. */
#ifndef MATRIX_OLM_PRIVATE_H
#define MATRIX_OLM_PRIVATE_H
#include <olm/olm.h>
#include "olm.h"

enum {
    OLM_BODY_MAX = 128 << 10, /* a message as text: an event has at most 64 KiB */
    OLM_RANDOM_MAX = 8 << 10, /* one-time keys: 32 bytes each */
};

struct ratchet_account {
    OlmAccount *olm;
    char curve25519[KEY_TEXT + 1], ed25519[KEY_TEXT + 1];
};

/* libolm failed where it can't: a size it named itself was wrong, or it ran out of random bytes that it had counted. */
void olm_need(size_t rc);
/* n random bytes; the caller wipes and frees. */
uint8_t *olm_random(const struct ratchet_env *env, size_t n);
/* libolm writes into what it reads: a copy for each call. NULL: longer than any message may be, or empty. */
char *olm_scratch(const char *text, size_t *n);
void olm_wipe(void *p, size_t n); /* wipes and frees; NULL is fine */
enum ratchet_fault olm_fault(enum OlmErrorCode code);
int olm_unpickle_error(enum OlmErrorCode code, const char *what, struct err *e);
#endif
