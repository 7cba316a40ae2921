/* sas_private.h - what the two parts of verification share: sas.c goes through one step by step, sas_ask.c lets one begin. */
#ifndef MATRIX_SAS_PRIVATE_H
#define MATRIX_SAS_PRIVATE_H
#include "crypto_private.h"

enum { SAS_LIFE_MS = 10 * MINUTE_MS };

enum sas_state { SAS_ASKED, SAS_STARTED, SAS_KEYS, SAS_CONFIRMED, SAS_DONE, SAS_CANCELLED };
struct sas {
    char *txn, *user, *device, *room, *emoji, *decimal, *code;
    enum sas_state state;
    int64_t born_ms;
    bool legacy;
    uint8_t secret[KEY_BYTES], shared[KEY_BYTES];
    char public[KEY_TEXT + 1];
    char ed25519[KEY_TEXT + 1], master[KEY_TEXT + 1]; /* theirs, fixed when they asked; master "": none */
    struct json *their_mac;                           /* came before the operator answered */
    struct sas *next;
};

/* ---- sas.c ---- */
bool sas_is_over(const struct sas *s);
struct sas *sas_find(const struct crypto *c, const char *user, const char *txn); /* user NULL: anybody's */
struct crypto_sas sas_shown(const struct sas *s);                                /* borrowed of s */
void sas_free(struct sas *s);
bool sas_offers(const struct json *list, const char *word); /* an array of words has it */

struct sas_where { /* a verification, or somebody whom we only send a refusal */
    const char *txn, *user, *device, *room;
};

must_check int sas_post(struct crypto *c, const struct sas_where *w, const char *type, struct json *take_content,
                        struct err *e);
must_check int sas_send(struct crypto *c, const struct sas *s, const char *type, struct json *take_content,
                        struct err *e);
struct json *sas_cancellation(const char *code); /* the caller frees */
must_check int sas_cancel(struct crypto *c, struct sas *s, const char *code, struct err *e);

/* ---- sas_ask.c ---- */
struct sas_ask {
    struct sas_where at;
    const struct json *content;
    int64_t ts_ms;
    bool again; /* after its owner's devices were asked for */
};

must_check int sas_asked(struct crypto *c, const struct sas_ask *a, struct err *e);
void sas_parked_clear(struct crypto *c);
#endif
