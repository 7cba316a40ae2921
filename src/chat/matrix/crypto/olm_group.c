/* olm_group.c - libolm: Megolm, the keys of rooms, ours and those of others. See olm.h. */
#include "olm_private.h"

struct ratchet_out {
    OlmOutboundGroupSession *olm;
    char id[KEY_TEXT + 1];
};

struct ratchet_in {
    OlmInboundGroupSession *olm;
    char id[KEY_TEXT + 1];
};

/* ---- out ---- */

static struct ratchet_out *out_alloc(void)
{
    struct ratchet_out *o = xcalloc(1, sizeof(*o));
    o->olm = olm_outbound_group_session(xcalloc(1, olm_outbound_group_session_size()));
    return o;
}

void ratchet_out_free(struct ratchet_out *o)
{
    if (!o)
        return;
    olm_clear_outbound_group_session(o->olm);
    free(o->olm);
    free(o);
}

static void read_out_id(struct ratchet_out *o)
{
    if (olm_outbound_group_session_id_length(o->olm) != KEY_TEXT)
        abort();
    olm_need(olm_outbound_group_session_id(o->olm, (uint8_t *)o->id, KEY_TEXT));
}

struct ratchet_out *ratchet_out_new(const struct ratchet_env *env)
{
    struct ratchet_out *o = out_alloc();
    const size_t n = olm_init_outbound_group_session_random_length(o->olm);
    uint8_t *random = olm_random(env, n);
    olm_need(olm_init_outbound_group_session(o->olm, random, n));
    olm_wipe(random, n);
    read_out_id(o);
    return o;
}

const char *ratchet_out_id(const struct ratchet_out *o)
{
    return o->id;
}

uint32_t ratchet_out_index(struct ratchet_out *o)
{
    return olm_outbound_group_session_message_index(o->olm);
}

char *ratchet_out_key(struct ratchet_out *o)
{
    const size_t n = olm_outbound_group_session_key_length(o->olm);
    char *out = xcalloc(1, n + 1);
    olm_need(olm_outbound_group_session_key(o->olm, (uint8_t *)out, n));
    return out;
}

char *ratchet_out_encrypt(struct ratchet_out *o, const char *text, size_t n)
{
    const size_t len = olm_group_encrypt_message_length(o->olm, n);
    char *out = xcalloc(1, len + 1);
    olm_need(olm_group_encrypt(o->olm, (const uint8_t *)text, n, (uint8_t *)out, len));
    return out;
}

char *ratchet_out_pickle(struct ratchet_out *o, const struct ratchet_env *env)
{
    const size_t n = olm_pickle_outbound_group_session_length(o->olm);
    char *out = xcalloc(1, n + 1);
    olm_need(olm_pickle_outbound_group_session(o->olm, env->pickle_key, KEY_BYTES, out, n));
    return out;
}

int ratchet_out_unpickle(struct ratchet_out **out, const char *pickle, const struct ratchet_env *env, struct err *e)
{
    struct ratchet_out *o = out_alloc();
    autofree char *copy = xstrdup(pickle);
    if (olm_unpickle_outbound_group_session(o->olm, env->pickle_key, KEY_BYTES, copy, strlen(pickle)) == olm_error()) {
        const int rc = olm_unpickle_error(olm_outbound_group_session_last_error_code(o->olm), "room key", e);
        ratchet_out_free(o);
        return rc;
    }
    read_out_id(o);
    *out = o;
    return 0;
}

/* ---- in ---- */

static struct ratchet_in *in_alloc(void)
{
    struct ratchet_in *i = xcalloc(1, sizeof(*i));
    i->olm = olm_inbound_group_session(xcalloc(1, olm_inbound_group_session_size()));
    return i;
}

void ratchet_in_free(struct ratchet_in *i)
{
    if (!i)
        return;
    olm_clear_inbound_group_session(i->olm);
    free(i->olm);
    free(i);
}

static void read_in_id(struct ratchet_in *i)
{
    if (olm_inbound_group_session_id_length(i->olm) != KEY_TEXT)
        abort();
    olm_need(olm_inbound_group_session_id(i->olm, (uint8_t *)i->id, KEY_TEXT));
}

static enum ratchet_fault in_made(struct ratchet_in **out, struct ratchet_in *i, size_t rc)
{
    if (rc == olm_error()) {
        const enum ratchet_fault f = olm_fault(olm_inbound_group_session_last_error_code(i->olm));
        ratchet_in_free(i);
        return f;
    }
    read_in_id(i);
    *out = i;
    return RATCHET_OK;
}

/* Version, index, ratchet, key, and with "signed" a signature: 306 or 220 characters. */
enum { SHARED_BYTES = 229, SHARED_TEXT = 306, EXPORT_BYTES = 165, EXPORT_TEXT = 220 };

enum ratchet_fault ratchet_in_new(struct ratchet_in **out, const char *session_key)
{
    uint8_t raw[SHARED_BYTES];
    const bool sane = strlen(session_key) == SHARED_TEXT && b64_read(session_key, raw, sizeof(raw)) == SHARED_BYTES &&
                      ed25519_s_reduced(raw + SHARED_BYTES - SIG_BYTES);
    explicit_bzero(raw, sizeof(raw));
    if (!sane)
        return RATCHET_FORMAT;
    struct ratchet_in *i = in_alloc();
    return in_made(out, i, olm_init_inbound_group_session(i->olm, (const uint8_t *)session_key, SHARED_TEXT));
}

enum ratchet_fault ratchet_in_import(struct ratchet_in **out, const char *exported)
{
    uint8_t raw[EXPORT_BYTES];
    const bool sane = strlen(exported) == EXPORT_TEXT && b64_read(exported, raw, sizeof(raw)) == EXPORT_BYTES;
    explicit_bzero(raw, sizeof(raw));
    if (!sane)
        return RATCHET_FORMAT;
    struct ratchet_in *i = in_alloc();
    char *copy = xstrdup(exported);
    const size_t rc = olm_import_inbound_group_session(i->olm, (const uint8_t *)copy, EXPORT_TEXT);
    olm_wipe(copy, EXPORT_TEXT);
    return in_made(out, i, rc);
}

char *ratchet_in_export(struct ratchet_in *i, uint32_t at)
{
    const size_t n = olm_export_inbound_group_session_length(i->olm);
    char *out = xcalloc(1, n + 1);
    if (olm_export_inbound_group_session(i->olm, (uint8_t *)out, n, at) != olm_error())
        return out;
    olm_wipe(out, n);
    return NULL;
}

const char *ratchet_in_id(const struct ratchet_in *i)
{
    return i->id;
}

uint32_t ratchet_in_first(const struct ratchet_in *i)
{
    return olm_inbound_group_session_first_known_index(i->olm);
}

/* libolm takes a signature whose S is not reduced: the same message would have many texts. */
static bool signature_is_reduced(const char *body, size_t n)
{
    uint8_t tail[96];
    const size_t whole = n / 4 * 4, rest = n - whole;
    char part[132];
    const size_t take = (n < 128 ? whole : 124) + rest; /* a multiple of four from the end, so that bytes align */
    memcpy(part, body + n - take, take + 1);
    const int64_t got = b64_read(part, tail, sizeof(tail));
    return got >= SIG_BYTES && ed25519_s_reduced(tail + got - SIG_BYTES);
}

enum ratchet_fault ratchet_in_decrypt(struct ratchet_in *i, const char *body, char **text, size_t *n, uint32_t *index)
{
    size_t len = 0;
    autofree char *measure = olm_scratch(body, &len);
    autofree char *copy = olm_scratch(body, &len);
    if (!copy || !signature_is_reduced(body, len))
        return RATCHET_FORMAT;
    const size_t max = olm_group_decrypt_max_plaintext_length(i->olm, (uint8_t *)measure, len);
    if (max == olm_error() || max > OLM_BODY_MAX)
        return RATCHET_FORMAT;
    char *clear = xcalloc(1, max + 1);
    const size_t got = olm_group_decrypt(i->olm, (uint8_t *)copy, len, (uint8_t *)clear, max, index);
    if (got == olm_error()) {
        olm_wipe(clear, max);
        return olm_fault(olm_inbound_group_session_last_error_code(i->olm));
    }
    clear[got] = 0;
    *text = clear;
    *n = got;
    return RATCHET_OK;
}

char *ratchet_in_pickle(struct ratchet_in *i, const struct ratchet_env *env)
{
    const size_t n = olm_pickle_inbound_group_session_length(i->olm);
    char *out = xcalloc(1, n + 1);
    olm_need(olm_pickle_inbound_group_session(i->olm, env->pickle_key, KEY_BYTES, out, n));
    return out;
}

int ratchet_in_unpickle(struct ratchet_in **out, const char *pickle, const struct ratchet_env *env, struct err *e)
{
    struct ratchet_in *i = in_alloc();
    autofree char *copy = xstrdup(pickle);
    if (olm_unpickle_inbound_group_session(i->olm, env->pickle_key, KEY_BYTES, copy, strlen(pickle)) == olm_error()) {
        const int rc = olm_unpickle_error(olm_inbound_group_session_last_error_code(i->olm), "room key", e);
        ratchet_in_free(i);
        return rc;
    }
    read_in_id(i);
    *out = i;
    return 0;
}
