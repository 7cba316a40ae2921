/* sas_math.h - short authentication strings and MACs of a verification (m.sas.v1); no I/O, no state. */
#ifndef MATRIX_SAS_MATH_H
#define MATRIX_SAS_MATH_H
#include "crypto_json.h"

struct sas_side {
    const char *user, *device, *key; /* key: public key of this verification, base64 */
};
struct sas_bytes {
    uint8_t at[6];
};
/* starter: who sent "start". */
void sas_derive(const uint8_t shared[KEY_BYTES], const struct sas_side *starter, const struct sas_side *accepter,
                const char *txn, struct sas_bytes *out);
char *sas_emoji(const struct sas_bytes *b);   /* seven, with their names; caller frees */
char *sas_decimal(const struct sas_bytes *b); /* three numbers; caller frees */
void sas_emoji_indexes(const struct sas_bytes *b, int out[7]);
/* Over text, for key id (or "KEY_IDS"), from sender to receiver. legacy: hkdf-hmac-sha256 without v2, whose base64 is not base64. */
struct sas_mac {
    const uint8_t *shared;
    const char *sender_user, *sender_device, *receiver_user, *receiver_device, *txn;
    bool legacy;
};
char *sas_mac(const struct sas_mac *m, const char *key_id, const char *text); /* caller frees */
/* What the accepter is bound to before it sees the other key. NULL: start has no canonical form. Caller frees. */
char *sas_commitment(const char *key, const struct json *start);
#endif
