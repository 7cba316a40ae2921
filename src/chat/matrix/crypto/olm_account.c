/* olm_account.c - libolm: the keys of our own device; and what the three files share. See olm.h. */
#include "json.h"
#include "olm_private.h"

void olm_need(size_t rc)
{
    if (rc == olm_error())
        abort();
}

uint8_t *olm_random(const struct ratchet_env *env, size_t n)
{
    uint8_t *bytes = xcalloc(1, n + 1);
    if (n > 0)
        env->random(env->hook, bytes, n);
    return bytes;
}

char *olm_scratch(const char *text, size_t *n)
{
    *n = strlen(text);
    return *n > 0 && *n <= OLM_BODY_MAX ? xstrdup(text) : NULL;
}

void olm_wipe(void *p, size_t n)
{
    if (p)
        explicit_bzero(p, n);
    free(p);
}

enum ratchet_fault olm_fault(enum OlmErrorCode code)
{
    if (code == OLM_BAD_MESSAGE_MAC || code == OLM_BAD_SIGNATURE)
        return RATCHET_MAC;
    if (code == OLM_BAD_MESSAGE_KEY_ID)
        return RATCHET_KEY_ID;
    return code == OLM_UNKNOWN_MESSAGE_INDEX ? RATCHET_INDEX : RATCHET_FORMAT;
}

int olm_unpickle_error(enum OlmErrorCode code, const char *what, struct err *e)
{
    if (code == OLM_BAD_ACCOUNT_KEY)
        return err_set(e, ERR_CONFIG, "%s: the pickle key is not the one it was kept under", what);
    return err_set(e, ERR_DATA, "%s: what the store has is damaged", what);
}

/* ---- account ---- */

static struct ratchet_account *account_alloc(void)
{
    struct ratchet_account *a = xcalloc(1, sizeof(*a));
    a->olm = olm_account(xcalloc(1, olm_account_size()));
    return a;
}

void ratchet_account_free(struct ratchet_account *a)
{
    if (!a)
        return;
    olm_clear_account(a->olm);
    free(a->olm);
    free(a);
}

static void read_identity(struct ratchet_account *a)
{
    const size_t n = olm_account_identity_keys_length(a->olm);
    autofree char *text = xcalloc(1, n + 1);
    struct err e = { 0 };
    autojson struct json *keys = NULL;
    olm_need(olm_account_identity_keys(a->olm, text, n));
    if (json_parse(&keys, text, n, n, &e) < 0)
        abort();
    const char *curve = json_str_or(keys, "curve25519", ""), *ed = json_str_or(keys, "ed25519", "");
    if (strlen(curve) != KEY_TEXT || strlen(ed) != KEY_TEXT)
        abort();
    memcpy(a->curve25519, curve, KEY_TEXT + 1);
    memcpy(a->ed25519, ed, KEY_TEXT + 1);
}

struct ratchet_account *ratchet_account_new(const struct ratchet_env *env)
{
    struct ratchet_account *a = account_alloc();
    const size_t n = olm_create_account_random_length(a->olm);
    uint8_t *random = olm_random(env, n);
    olm_need(olm_create_account(a->olm, random, n));
    olm_wipe(random, n);
    read_identity(a);
    return a;
}

char *ratchet_account_pickle(struct ratchet_account *a, const struct ratchet_env *env)
{
    const size_t n = olm_pickle_account_length(a->olm);
    char *out = xcalloc(1, n + 1);
    olm_need(olm_pickle_account(a->olm, env->pickle_key, KEY_BYTES, out, n));
    return out;
}

int ratchet_account_unpickle(struct ratchet_account **out, const char *pickle, const struct ratchet_env *env,
                             struct err *e)
{
    struct ratchet_account *a = account_alloc();
    autofree char *copy = xstrdup(pickle);
    if (olm_unpickle_account(a->olm, env->pickle_key, KEY_BYTES, copy, strlen(pickle)) == olm_error()) {
        const int rc = olm_unpickle_error(olm_account_last_error_code(a->olm), "account", e);
        ratchet_account_free(a);
        return rc;
    }
    read_identity(a);
    *out = a;
    return 0;
}

const char *ratchet_account_curve25519(const struct ratchet_account *a)
{
    return a->curve25519;
}

const char *ratchet_account_ed25519(const struct ratchet_account *a)
{
    return a->ed25519;
}

void ratchet_account_sign(struct ratchet_account *a, const void *data, size_t n, char sig[SIG_TEXT + 1])
{
    if (olm_account_signature_length(a->olm) != SIG_TEXT)
        abort();
    olm_need(olm_account_sign(a->olm, data, n, sig, SIG_TEXT));
    sig[SIG_TEXT] = 0;
}

void ratchet_account_make_keys(struct ratchet_account *a, size_t n, const struct ratchet_env *env)
{
    const size_t random_n = olm_account_generate_one_time_keys_random_length(a->olm, n);
    if (random_n > OLM_RANDOM_MAX)
        abort();
    uint8_t *random = olm_random(env, random_n);
    olm_need(olm_account_generate_one_time_keys(a->olm, n, random, random_n));
    olm_wipe(random, random_n);
}

void ratchet_account_make_fallback(struct ratchet_account *a, const struct ratchet_env *env)
{
    const size_t n = olm_account_generate_fallback_key_random_length(a->olm);
    uint8_t *random = olm_random(env, n);
    olm_need(olm_account_generate_fallback_key(a->olm, random, n));
    olm_wipe(random, n);
}

static void each_key(const char *text, size_t n, bool fallback, ratchet_key_fn *fn, void *ud)
{
    autojson struct json *all = NULL;
    struct err e = { 0 };
    if (json_parse(&all, text, n, n, &e) < 0)
        abort();
    for (const struct json *k = json_first(json_get(all, "curve25519")); k; k = json_next(k))
        fn(ud, json_key(k), json_text(k), fallback);
}

void ratchet_account_unpublished(struct ratchet_account *a, ratchet_key_fn *fn, void *ud)
{
    size_t n = olm_account_one_time_keys_length(a->olm);
    autofree char *keys = xcalloc(1, n + 1);
    olm_need(olm_account_one_time_keys(a->olm, keys, n));
    each_key(keys, n, false, fn, ud);
    n = olm_account_unpublished_fallback_key_length(a->olm);
    autofree char *fallback = xcalloc(1, n + 1);
    olm_need(olm_account_unpublished_fallback_key(a->olm, fallback, n));
    each_key(fallback, strlen(fallback), true, fn, ud);
}

void ratchet_account_published(struct ratchet_account *a)
{
    (void)olm_account_mark_keys_as_published(a->olm);
}

void ratchet_account_forget_fallback(struct ratchet_account *a)
{
    olm_account_forget_old_fallback_key(a->olm);
}
