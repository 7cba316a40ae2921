/* olm.h - the two ratchets behind Matrix encryption, and the only door to the library that has them.
 *
 * Today that is libolm: plain C, in Debian, and without maintenance since 2024. So that another can take its place, nothing else in
 * the program knows it, and this is all the rest asks of it: an account, Olm sessions (two devices), Megolm sessions (a room),
 * pickles. What it does badly is done before it is called: lengths and alphabets of keys, keys of low order, signatures with
 * an unreduced S. Hashes, AES, signatures of JSON, SAS and backups don't come here at all (crypto_prim.h).
 *
 * Text is base64 without padding. Made objects are wiped when freed. Nothing is thread-safe. */
#ifndef MATRIX_OLM_H
#define MATRIX_OLM_H
#include "crypto_prim.h"

/* Key for pickles (32 bytes) and where random bytes come from; borrowed by every call. */
struct ratchet_env {
    const uint8_t *pickle_key;
    void (*random)(void *hook, void *out, size_t n);
    void *hook;
};

enum ratchet_fault {
    RATCHET_OK,
    RATCHET_FORMAT, /* malformed, or refused before the library saw it */
    RATCHET_MAC,    /* wrong MAC or signature */
    RATCHET_KEY_ID, /* a one-time key that we don't have (any more) */
    RATCHET_INDEX,  /* Megolm: our key begins later */
};

/* ---- account: the keys of this device ---- */
struct ratchet_account;
struct ratchet_account *ratchet_account_new(const struct ratchet_env *env);
void ratchet_account_free(struct ratchet_account *a);
char *ratchet_account_pickle(struct ratchet_account *a, const struct ratchet_env *env); /* caller frees */
/* ERR_CONFIG: not this pickle key. ERR_DATA: no pickle. */
must_check int ratchet_account_unpickle(struct ratchet_account **out, const char *pickle, const struct ratchet_env *env,
                                        struct err *e);
const char *ratchet_account_curve25519(const struct ratchet_account *a);
const char *ratchet_account_ed25519(const struct ratchet_account *a);
void ratchet_account_sign(struct ratchet_account *a, const void *data, size_t n, char sig[SIG_TEXT + 1]);
/* One-time keys: at most 100 are kept; the oldest goes when one more is made. */
void ratchet_account_make_keys(struct ratchet_account *a, size_t n, const struct ratchet_env *env);
void ratchet_account_make_fallback(struct ratchet_account *a, const struct ratchet_env *env);
/* Calls fn for each key not published yet, then for an unpublished fallback key. */
typedef void ratchet_key_fn(void *ud, const char *id, const char *key, bool fallback);
void ratchet_account_unpublished(struct ratchet_account *a, ratchet_key_fn *fn, void *ud);
void ratchet_account_published(struct ratchet_account *a);
void ratchet_account_forget_fallback(struct ratchet_account *a); /* the one before the present one */

/* ---- Olm: this device and one other ---- */
struct ratchet_session;
void ratchet_session_free(struct ratchet_session *s);
/* With keys of a peer that x25519_is_sane() has to like. */
enum ratchet_fault ratchet_session_outbound(struct ratchet_session **out, struct ratchet_account *a,
                                            const char *identity, const char *one_time, const struct ratchet_env *env);
/* From a pre-key message. The account's one-time key stays until ratchet_account_used(). */
enum ratchet_fault ratchet_session_inbound(struct ratchet_session **out, struct ratchet_account *a,
                                           const char *identity, const char *body);
void ratchet_account_used(struct ratchet_account *a, struct ratchet_session *s);
bool ratchet_session_matches(struct ratchet_session *s, const char *identity, const char *body);
const char *ratchet_session_id(const struct ratchet_session *s);
/* *type 0: pre-key message, 1: normal. The caller frees *body. */
void ratchet_session_encrypt(struct ratchet_session *s, const char *text, size_t n, const struct ratchet_env *env,
                             int *type, char **body);
/* The caller wipes and frees *text, which has a NUL behind its n bytes. After a fault the session is as it was. */
enum ratchet_fault ratchet_session_decrypt(struct ratchet_session *s, int type, const char *body, char **text,
                                           size_t *n);
char *ratchet_session_pickle(struct ratchet_session *s, const struct ratchet_env *env);
must_check int ratchet_session_unpickle(struct ratchet_session **out, const char *pickle, const struct ratchet_env *env,
                                        struct err *e);

/* ---- Megolm: this device to a room ---- */
struct ratchet_out;
struct ratchet_out *ratchet_out_new(const struct ratchet_env *env);
void ratchet_out_free(struct ratchet_out *o);
const char *ratchet_out_id(const struct ratchet_out *o);
uint32_t ratchet_out_index(struct ratchet_out *o); /* of the next message */
char *ratchet_out_key(struct ratchet_out *o);      /* opens the next message and those after it; caller wipes, frees */
char *ratchet_out_encrypt(struct ratchet_out *o, const char *text, size_t n);
char *ratchet_out_pickle(struct ratchet_out *o, const struct ratchet_env *env);
must_check int ratchet_out_unpickle(struct ratchet_out **out, const char *pickle, const struct ratchet_env *env,
                                    struct err *e);

/* ---- Megolm: somebody's device to a room ---- */
struct ratchet_in;
void ratchet_in_free(struct ratchet_in *i);
enum ratchet_fault ratchet_in_new(struct ratchet_in **out, const char *session_key); /* as shared; signed */
enum ratchet_fault ratchet_in_import(struct ratchet_in **out, const char *exported); /* as exported; unsigned */
char *ratchet_in_export(struct ratchet_in *i, uint32_t at); /* NULL: begins later. Caller wipes, frees */
const char *ratchet_in_id(const struct ratchet_in *i);
uint32_t ratchet_in_first(const struct ratchet_in *i);
enum ratchet_fault ratchet_in_decrypt(struct ratchet_in *i, const char *body, char **text, size_t *n, uint32_t *index);
char *ratchet_in_pickle(struct ratchet_in *i, const struct ratchet_env *env);
must_check int ratchet_in_unpickle(struct ratchet_in **out, const char *pickle, const struct ratchet_env *env,
                                   struct err *e);
#endif
