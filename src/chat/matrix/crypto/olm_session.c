/* olm_session.c - libolm: Olm, one channel between two devices. See olm.h. */
#include "olm_private.h"

struct ratchet_session {
    OlmSession *olm;
    char id[KEY_TEXT + 1];
};

static struct ratchet_session *session_alloc(void)
{
    struct ratchet_session *s = xcalloc(1, sizeof(*s));
    s->olm = olm_session(xcalloc(1, olm_session_size()));
    return s;
}

void ratchet_session_free(struct ratchet_session *s)
{
    if (!s)
        return;
    olm_clear_session(s->olm);
    free(s->olm);
    free(s);
}

static void read_id(struct ratchet_session *s)
{
    if (olm_session_id_length(s->olm) != KEY_TEXT)
        abort();
    olm_need(olm_session_id(s->olm, s->id, KEY_TEXT));
}

/* Hands the session out, or frees it and says why. */
static enum ratchet_fault made(struct ratchet_session **out, struct ratchet_session *s, size_t rc)
{
    if (rc == olm_error()) {
        const enum ratchet_fault f = olm_fault(olm_session_last_error_code(s->olm));
        ratchet_session_free(s);
        return f;
    }
    read_id(s);
    *out = s;
    return RATCHET_OK;
}

enum ratchet_fault ratchet_session_outbound(struct ratchet_session **out, struct ratchet_account *a,
                                            const char *identity, const char *one_time, const struct ratchet_env *env)
{
    if (!x25519_is_sane(identity) || !x25519_is_sane(one_time))
        return RATCHET_FORMAT;
    struct ratchet_session *s = session_alloc();
    const size_t n = olm_create_outbound_session_random_length(s->olm);
    uint8_t *random = olm_random(env, n);
    const size_t rc = olm_create_outbound_session(s->olm, a->olm, identity, KEY_TEXT, one_time, KEY_TEXT, random, n);
    olm_wipe(random, n);
    return made(out, s, rc);
}

/* A pre-key message is four fields, in this order and no others: one-time, base and identity key, then a message up to the end. libolm takes
 * them in any order and the last of each, so that what is checked here could be another one than what it multiplies with. */
enum { KEY_FIELD = 2 + KEY_BYTES, INNER_AT = 1 + 3 * KEY_FIELD, HEAD_BYTES = 120, HEAD_TEXT = 160 };

static bool key_field_is_sane(const uint8_t *field, uint8_t tag)
{
    char key[KEY_TEXT + 1];
    b64_key(key, field + 2);
    return field[0] == tag && field[1] == KEY_BYTES && x25519_is_sane(key);
}

/* at: behind its tag. */
static bool reaches_end(const uint8_t *at, const uint8_t *end, size_t whole, const uint8_t *begin)
{
    uint64_t len = 0;
    for (unsigned shift = 0; at < end && shift < 28; shift += 7) {
        len |= (uint64_t)(*at & 127) << shift;
        if (*at++ < 128)
            return (size_t)(at - begin) + len == whole;
    }
    return false;
}

static bool prekey_is_sane(const char *body)
{
    static const uint8_t tags[] = { 0x0a, 0x12, 0x1a };
    uint8_t head[HEAD_BYTES];
    char part[HEAD_TEXT + 1] = "";
    const size_t n = strlen(body);
    memcpy(part, body, n < HEAD_TEXT ? n : HEAD_TEXT);
    const int64_t got = b64_read(part, head, sizeof(head));
    if (got < INNER_AT + 2 || head[0] != 3 || head[INNER_AT] != 0x22)
        return false;
    for (size_t i = 0; i < countof(tags); i++)
        if (!key_field_is_sane(head + 1 + i * KEY_FIELD, tags[i]))
            return false;
    return reaches_end(head + INNER_AT + 1, head + got, n / 4 * 3 + (n % 4 ? n % 4 - 1 : 0), head);
}

enum ratchet_fault ratchet_session_inbound(struct ratchet_session **out, struct ratchet_account *a,
                                           const char *identity, const char *body)
{
    size_t n = 0;
    autofree char *copy = olm_scratch(body, &n);
    if (!copy || !x25519_is_sane(identity) || !prekey_is_sane(body))
        return RATCHET_FORMAT;
    struct ratchet_session *s = session_alloc();
    return made(out, s, olm_create_inbound_session_from(s->olm, a->olm, identity, KEY_TEXT, copy, n));
}

void ratchet_account_used(struct ratchet_account *a, struct ratchet_session *s)
{
    (void)olm_remove_one_time_keys(a->olm, s->olm); /* none there: it was the fallback key */
}

bool ratchet_session_matches(struct ratchet_session *s, const char *identity, const char *body)
{
    size_t n = 0;
    autofree char *copy = olm_scratch(body, &n);
    return copy && strlen(identity) == KEY_TEXT &&
           olm_matches_inbound_session_from(s->olm, identity, KEY_TEXT, copy, n) == 1;
}

const char *ratchet_session_id(const struct ratchet_session *s)
{
    return s->id;
}

void ratchet_session_encrypt(struct ratchet_session *s, const char *text, size_t n, const struct ratchet_env *env,
                             int *type, char **body)
{
    *type = (int)olm_encrypt_message_type(s->olm);
    const size_t random_n = olm_encrypt_random_length(s->olm), len = olm_encrypt_message_length(s->olm, n);
    uint8_t *random = olm_random(env, random_n);
    *body = xcalloc(1, len + 1);
    olm_need(olm_encrypt(s->olm, text, n, random, random_n, *body, len));
    olm_wipe(random, random_n);
}

enum ratchet_fault ratchet_session_decrypt(struct ratchet_session *s, int type, const char *body, char **text,
                                           size_t *n)
{
    size_t len = 0;
    autofree char *measure = olm_scratch(body, &len);
    autofree char *copy = olm_scratch(body, &len);
    if (!copy || (type != 0 && type != 1))
        return RATCHET_FORMAT;
    const size_t max = olm_decrypt_max_plaintext_length(s->olm, (size_t)type, measure, len);
    if (max == olm_error() || max > OLM_BODY_MAX)
        return RATCHET_FORMAT;
    char *clear = xcalloc(1, max + 1);
    const size_t got = olm_decrypt(s->olm, (size_t)type, copy, len, clear, max);
    if (got == olm_error()) {
        olm_wipe(clear, max);
        return olm_fault(olm_session_last_error_code(s->olm));
    }
    clear[got] = 0;
    *text = clear;
    *n = got;
    return RATCHET_OK;
}

char *ratchet_session_pickle(struct ratchet_session *s, const struct ratchet_env *env)
{
    const size_t n = olm_pickle_session_length(s->olm);
    char *out = xcalloc(1, n + 1);
    olm_need(olm_pickle_session(s->olm, env->pickle_key, KEY_BYTES, out, n));
    return out;
}

int ratchet_session_unpickle(struct ratchet_session **out, const char *pickle, const struct ratchet_env *env,
                             struct err *e)
{
    struct ratchet_session *s = session_alloc();
    autofree char *copy = xstrdup(pickle);
    if (olm_unpickle_session(s->olm, env->pickle_key, KEY_BYTES, copy, strlen(pickle)) == olm_error()) {
        const int rc = olm_unpickle_error(olm_session_last_error_code(s->olm), "session", e);
        ratchet_session_free(s);
        return rc;
    }
    read_id(s);
    *out = s;
    return 0;
}
