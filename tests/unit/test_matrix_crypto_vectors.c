/* Known answers of the primitives: base64, keys, signed JSON, verification, the two ratchets. */
#include <fcntl.h>
#include <unistd.h>
#include "matrix_vectors.h"
#include "olm.h"
#include "sas_math.h"

/* ---- base64 ---- */

static void base64_is_written_bare_and_read_in_every_form(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t n;
    } cases[] = { { "", 0 },
                  { "AA", 1 },
                  { "AA==", 1 },
                  { "AAA", 2 },
                  { "AAA=", 2 },
                  { "AAAA", 3 },
                  { "-_-_", 3 },
                  { "+/+/", 3 },
                  { "A", -1 },
                  { "A===", -1 },
                  { "AA=", -1 },
                  { "AAA==", -1 },
                  { "AA A", -1 },
                  { "AA\n", -1 },
                  { "====", -1 },
                  { "AAAA=", -1 },
                  { "AAAA==", -1 },
                  { "=AAA", -1 },
                  { "\xc3\xa4"
                    "AA",
                    -1 } };
    uint8_t out[8];
    for (size_t i = 0; i < countof(cases); i++)
        assert_int_equal(b64_read(cases[i].text, out, sizeof(out)), cases[i].n);
    assert_int_equal(b64_read("AAAAAAAAAAAA", out, 8), -1);
    AUTO(str_clear) struct str text = STR_INIT(16);
    b64_add(&text, "\xfb\xff", 2);
    assert_string_equal(str_peek(&text), "+/8");
    str_clear(&text);
    b64url_add(&text, "\xfb\xff", 2);
    assert_string_equal(str_peek(&text), "-_8");
}

static void a_key_has_one_way_to_be_written(void **state)
{
    (void)state;
    uint8_t key[KEY_BYTES];
    assert_true(b64_is_key("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", key));
    assert_false(b64_is_key("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB", key)); /* spare bits set */
    assert_false(b64_is_key("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", key));
    assert_false(b64_is_key("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA-", key));
    assert_false(b64_is_key("short", key));
    assert_false(b64_is_key(NULL, key));
}

/* ---- keys that must be refused ---- */

static void keys_of_low_order_are_refused(void **state)
{
    (void)state;
    static const uint8_t low[][KEY_BYTES] = {
        { 0 },
        { 1 },
        { 0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a,
          0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00 },
        { 0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
          0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f },
    };
    for (size_t i = 0; i < countof(low); i++) {
        char text[KEY_TEXT + 1];
        b64_key(text, low[i]);
        assert_false(x25519_is_sane(text));
    }
    uint8_t secret[KEY_BYTES], public[KEY_BYTES];
    char text[KEY_TEXT + 1];
    seq(secret, sizeof(secret), 7);
    x25519_public(secret, public);
    b64_key(text, public);
    assert_true(x25519_is_sane(text));
}

/* With the neutral element as key, R = S*B holds for any message. */
static void u2_a_signature_by_a_key_of_low_order_is_no_signature(void **state)
{
    (void)state;
    const uint8_t key[KEY_BYTES] = { 1 };
    const uint8_t sig[SIG_BYTES] = { 1 };
    assert_false(ed25519_check(key, "any", 3, sig));
}

static void u2_a_signature_with_an_unreduced_s_is_refused(void **state)
{
    (void)state;
    static const uint8_t order[KEY_BYTES] = { 0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,       0xd6,
                                              0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, [31] = 0x10 };
    uint8_t seed[KEY_BYTES], key[KEY_BYTES], sig[SIG_BYTES];
    seq(seed, sizeof(seed), 3);
    ed25519_public(seed, key);
    ed25519_sign(seed, "text", 4, sig);
    assert_true(ed25519_check(key, "text", 4, sig));
    unsigned carry = 0;
    for (size_t i = 0; i < KEY_BYTES; i++) { /* S + L: the same signature to a careless reader */
        carry += (unsigned)sig[KEY_BYTES + i] + order[i];
        sig[KEY_BYTES + i] = (uint8_t)carry;
        carry >>= 8;
    }
    assert_false(ed25519_s_reduced(sig));
    assert_false(ed25519_check(key, "text", 4, sig));
    memcpy(sig + KEY_BYTES, order, sizeof(order));
    assert_false(ed25519_s_reduced(sig));
}

/* ---- signed JSON ---- */

static void u2_signatures_are_those_of_the_specification(void **state)
{
    (void)state;
    uint8_t seed[KEY_BYTES], public[KEY_BYTES];
    const char *key = vector("signing", "public");
    assert_int_equal(b64_read(vector("signing", "seed"), seed, sizeof(seed)), KEY_BYTES);
    ed25519_public(seed, public);
    assert_b64(key, public, sizeof(public));
    for (const struct json *c = json_first(json_get(json_get(vectors, "signing"), "cases")); c; c = json_next(c)) {
        autojson struct json *obj = NULL;
        struct err e = { 0 };
        const char *text = json_str_or(c, "json", "");
        assert_int_equal(json_parse(&obj, text, strlen(text), 1000, &e), 0);
        sign_with_seed(obj, "domain", seed);
        autofree char *name = xasprintf("ed25519:%s", key);
        assert_string_equal(text_at(json_get(obj, "signatures"), "domain", name), json_str_or(c, "sig", ""));
        assert_true(signed_by(obj, "domain", NULL, key));
        json_set(obj, "unsigned", json_new_string("is not covered"));
        assert_true(signed_by(obj, "domain", NULL, key));
        json_set(obj, "added", json_new_bool(true));
        assert_false(signed_by(obj, "domain", NULL, key));
    }
}

static void u2_what_has_no_canonical_form_is_not_signed(void **state)
{
    (void)state;
    static const char *const bad[] = { "{\"a\":1.5}", "{\"a\":9007199254740992}", "[1]", "\"x\"" };
    for (size_t i = 0; i < countof(bad); i++) {
        autojson struct json *v = NULL;
        struct err e = { 0 };
        AUTO(str_clear) struct str out = STR_INIT(1000);
        assert_int_equal(json_parse(&v, bad[i], strlen(bad[i]), 1000, &e), 0);
        assert_false(signable(&out, v));
    }
}

static void u1_canonical_json_is_that_of_the_specification(void **state)
{
    (void)state;
    for (const struct json *c = json_first(json_get(vectors, "canonical")); c; c = json_next(c)) {
        autojson struct json *v = NULL;
        struct err e = { 0 };
        AUTO(str_clear) struct str out = STR_INIT(1000);
        const char *in = json_text(json_first(c)), *want = json_text(json_next(json_first(c)));
        assert_int_equal(json_parse(&v, in, strlen(in), 1000, &e), 0);
        assert_int_equal(json_print_canonical(&out, v, &e), 0);
        assert_string_equal(str_peek(&out), want);
    }
}

/* ---- the same by another hand: Python's ---- */

enum { DOCS = 10000, DOC_MAX = 4096 };

static unsigned dice(unsigned below)
{
    static uint64_t seed = 7;
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)(seed >> 33) % below;
}

/* One character of a text, as JSON has it: in each of the ways that there are to write it. */
static void add_letter(struct str *out)
{
    static const char *const some[] = { "a",
                                        "B",
                                        "/",
                                        "\\/",
                                        "\\\"",
                                        "\\\\",
                                        "\\b",
                                        "\\f",
                                        "\\n",
                                        "\\r",
                                        "\\t",
                                        "\\u0001",
                                        "\\u001F",
                                        "\\u00e9",
                                        "\x7f",
                                        "\\u007f",
                                        "\\ud83d\\uDE00",
                                        "\\u2028",
                                        "日",
                                        "😀",
                                        "\\uffff",
                                        "\\uE000",
                                        "€",
                                        " " };
    str_puts(out, some[dice(countof(some))]);
}

static void add_text(struct str *out)
{
    str_putc(out, '"');
    for (unsigned n = dice(4); n; n--)
        add_letter(out);
    str_putc(out, '"');
}

/* NOLINTNEXTLINE(misc-no-recursion): three levels */
static void add_value(struct str *out, int depth)
{
    static const char *const plain[] = { "null", "true", "false", "0", "-0", "9007199254740991", "-9007199254740991" };
    const unsigned kind = depth > 3 ? dice(3) : dice(5);
    unsigned key = 0;
    if (kind == 0)
        str_puts(out, plain[dice(countof(plain))]);
    else if (kind == 1)
        str_printf(out, "%d", (int)dice(2000000) - 1000000);
    else if (kind == 2)
        add_text(out);
    else
        str_puts(out, kind == 3 ? "[ " : "{ ");
    for (unsigned n = kind > 2 ? dice(5) : 0; n; n--) {
        if (kind == 4) { /* a key of its own: which one counts is not to be found out here */
            str_printf(out, "\"%c", "zaA_"[dice(4)]);
            add_letter(out);
            str_printf(out, "%u\" : ", key++);
        }
        add_value(out, depth + 1);
        str_puts(out, n > 1 ? " , " : "");
    }
    if (kind > 2)
        str_puts(out, kind == 3 ? "\t]" : "}");
}

static void compare_with(FILE *theirs, const struct str *docs)
{
    autofree char *line = xcalloc(1, 8 * DOC_MAX);
    size_t n = 0;
    for (const char *at = str_peek(docs), *end; (end = strchr(at, '\n')); at = end + 1, n++) {
        autojson struct json *v = NULL;
        struct err e = { 0 };
        AUTO(str_clear) struct str ours = STR_INIT(8 * DOC_MAX);
        assert_int_equal(json_parse(&v, at, (size_t)(end - at), DOC_MAX, &e), 0);
        assert_int_equal(json_print_canonical(&ours, v, &e), 0);
        assert_non_null(fgets(line, 8 * DOC_MAX, theirs));
        line[strcspn(line, "\n")] = '\0';
        assert_string_equal(str_peek(&ours), line);
    }
    assert_int_equal(n, DOCS);
}

static void u1_ten_thousand_values_are_written_as_python_writes_them(void **state)
{
    (void)state;
    static const char program[] =
        "import json, sys\n"
        "for line in open(sys.argv[1], encoding='utf-8', newline='\\n'):\n"
        "    s = json.dumps(json.loads(line), sort_keys=True, separators=(',', ':'), ensure_ascii=False)\n"
        "    sys.stdout.buffer.write(s.encode() + b'\\n')\n";
    char path[] = "/tmp/canonical-XXXXXX";
    AUTO(str_clear) struct str docs = STR_INIT((size_t)DOCS * DOC_MAX);
    autoclose int fd = mkostemp(path, O_CLOEXEC);
    for (int i = 0; i < DOCS; i++) {
        add_value(&docs, 0);
        str_putc(&docs, '\n');
    }
    assert_true(fd >= 0 && write_all(fd, str_peek(&docs), docs.len) == 0);
    autofree char *command = xasprintf("python3 -c \"%s\" %s", program, path);
    FILE *theirs = popen(command, "re"); /* NOLINT(cert-env33-c): the words are ours */
    assert_non_null(theirs);
    compare_with(theirs, &docs);
    assert_int_equal(pclose(theirs), 0);
    (void)unlink(path);
}

/* ---- verification ---- */

static void u4_the_short_strings_are_those_of_others(void **state)
{
    (void)state;
    uint8_t one[KEY_BYTES], two[KEY_BYTES], shared[KEY_BYTES], raw[KEY_BYTES];
    char starter_key[KEY_TEXT + 1], accepter_key[KEY_TEXT + 1];
    struct sas_bytes bytes;
    int at[7];
    memset(one, 1, sizeof(one));
    memset(two, 2, sizeof(two));
    x25519_public(one, raw);
    b64_key(starter_key, raw);
    assert_string_equal(starter_key, vector("sas", "starter_public"));
    assert_true(x25519_agree(two, raw, shared));
    x25519_public(two, raw);
    b64_key(accepter_key, raw);
    const struct sas_side starter = { "@alice:example.org", "ADEV", starter_key };
    const struct sas_side accepter = { "@bot:example.org", "BDEV", accepter_key };
    sas_derive(shared, &starter, &accepter, "txn1", &bytes);
    sas_emoji_indexes(&bytes, at);
    size_t i = 0;
    for (const struct json *v = json_first(json_get(json_get(vectors, "sas"), "emoji")); v; v = json_next(v))
        assert_int_equal(at[i++], (int)json_number(v));
    autofree char *numbers = sas_decimal(&bytes);
    assert_string_equal(numbers, "7279 7132 2345");
    autofree char *words = sas_emoji(&bytes);
    assert_non_null(strstr(words, "Telephone"));
    struct sas_mac m = { shared, "@bot:example.org", "BDEV", "@alice:example.org", "ADEV", "txn1", false };
    autofree char *mac = sas_mac(&m, "ed25519:BDEV", vector("sas", "mac_message"));
    assert_string_equal(mac, vector("sas", "mac_v2"));
    m.legacy = true;
    autofree char *old = sas_mac(&m, "ed25519:BDEV", vector("sas", "mac_message"));
    assert_string_equal(old, vector("sas", "mac_legacy"));
}

static void u4_the_commitment_covers_the_start_as_it_came(void **state)
{
    (void)state;
    autojson struct json *start = NULL;
    struct err e = { 0 };
    const char *text = vector("sas", "start_content");
    assert_int_equal(json_parse(&start, text, strlen(text), 4096, &e), 0);
    autofree char *got = sas_commitment(vector("sas", "accepter_public"), start);
    assert_string_equal(got, vector("sas", "commitment"));
}

/* ---- ratchets ---- */

/* Gives bytes that count up from what was set. */
static unsigned next_byte;

static void counting(void *hook, void *out, size_t n)
{
    (void)hook;
    seq(out, n, next_byte);
    next_byte += (unsigned)n;
}

static const uint8_t pickle_key[KEY_BYTES] = { 1, 2, 3 };
static const struct ratchet_env env = { pickle_key, counting, NULL };

static void u5_megolm_gives_known_messages(void **state)
{
    (void)state;
    next_byte = 0;
    struct ratchet_out *out = ratchet_out_new(&env);
    struct ratchet_in *in = NULL;
    const char *plain = vector("megolm", "plain");
    assert_string_equal(ratchet_out_id(out), vector("megolm", "session_id"));
    autofree char *key = ratchet_out_key(out);
    assert_string_equal(key, vector("megolm", "session_key_0"));
    assert_int_equal(ratchet_in_new(&in, key), RATCHET_OK);
    for (uint32_t i = 0; i <= 256; i++) {
        if (i == 256) {
            autofree char *later = ratchet_out_key(out);
            assert_string_equal(later, vector("megolm", "session_key_256"));
        }
        autofree char *body = ratchet_out_encrypt(out, plain, strlen(plain));
        if (i > 2 && i < 256)
            continue;
        autofree char *name = xasprintf("message_%u", i);
        char *text = NULL;
        size_t n = 0;
        uint32_t index = 99;
        assert_string_equal(body, vector("megolm", name));
        assert_int_equal(ratchet_in_decrypt(in, body, &text, &n, &index), RATCHET_OK);
        assert_int_equal(index, i);
        assert_string_equal(text, plain);
        free(text);
    }
    autofree char *at2 = ratchet_in_export(in, 2);
    assert_string_equal(at2, vector("megolm", "export_at_2"));
    ratchet_in_free(in);
    assert_int_equal(ratchet_in_import(&in, at2), RATCHET_OK);
    assert_int_equal(ratchet_in_first(in), 2);
    assert_null(ratchet_in_export(in, 1));
    char *text = NULL;
    size_t n = 0;
    uint32_t index = 0;
    assert_int_equal(ratchet_in_decrypt(in, vector("megolm", "message_1"), &text, &n, &index), RATCHET_INDEX);
    assert_int_equal(ratchet_in_decrypt(in, vector("megolm", "message_2"), &text, &n, &index), RATCHET_OK);
    free(text);
    ratchet_in_free(in);
    ratchet_out_free(out);
}

static void u5_a_megolm_message_that_was_touched_is_refused(void **state)
{
    (void)state;
    struct ratchet_in *in = NULL;
    assert_int_equal(ratchet_in_new(&in, vector("megolm", "session_key_0")), RATCHET_OK);
    const char *good = vector("megolm", "message_0");
    const size_t len = strlen(good);
    for (size_t i = 0; i < len; i++) {
        autofree char *bad = xstrdup(good);
        char *text = NULL;
        size_t n = 0;
        uint32_t index = 0;
        bad[i] = bad[i] == 'A' ? 'B' : 'A';
        if (i == len - 1)
            bad[i] = good[i] == 'o' ? 'Q' : 'g';
        assert_int_not_equal(ratchet_in_decrypt(in, bad, &text, &n, &index), RATCHET_OK);
        assert_null(text);
    }
    static const char *const junk[] = { "", "A", "!!!!", "AwgA", "AwgAEmD/////", "AwgAEv////8P" };
    for (size_t i = 0; i < countof(junk); i++) {
        char *text = NULL;
        size_t n = 0;
        uint32_t index = 0;
        assert_int_not_equal(ratchet_in_decrypt(in, junk[i], &text, &n, &index), RATCHET_OK);
    }
    ratchet_in_free(in);
    autofree char *forged = xstrdup(vector("megolm", "session_key_0"));
    forged[300] = forged[300] == 'A' ? 'B' : 'A';
    assert_int_not_equal(ratchet_in_new(&in, forged), RATCHET_OK);
    assert_int_not_equal(ratchet_in_new(&in, "AgAAAAA"), RATCHET_OK);
}

struct made {
    char id[16], key[KEY_TEXT + 1];
};

static void take_key(void *ud, const char *id, const char *key, bool fallback)
{
    struct made *m = ud;
    assert_false(fallback);
    (void)snprintf(m->id, sizeof(m->id), "%s", id);
    (void)snprintf(m->key, sizeof(m->key), "%s", key);
}

static void u5_olm_gives_known_messages(void **state)
{
    (void)state;
    struct made otk = { "", "" };
    next_byte = 0x10;
    struct ratchet_account *alice = ratchet_account_new(&env);
    next_byte = 0x90;
    struct ratchet_account *bob = ratchet_account_new(&env);
    assert_string_equal(ratchet_account_curve25519(alice), vector("olm", "alice_curve25519"));
    assert_string_equal(ratchet_account_ed25519(alice), vector("olm", "alice_ed25519"));
    assert_string_equal(ratchet_account_curve25519(bob), vector("olm", "bob_curve25519"));
    assert_string_equal(ratchet_account_ed25519(bob), vector("olm", "bob_ed25519"));
    next_byte = 0xd0;
    ratchet_account_make_keys(bob, 1, &env);
    ratchet_account_unpublished(bob, take_key, &otk);
    assert_string_equal(otk.key, vector("olm", "bob_otk"));
    struct ratchet_session *a = NULL, *b = NULL;
    char *body = NULL, *text = NULL;
    int type = -1;
    size_t n = 0;
    /* base key counts from 0x40, ratchet key from 0x60: the library draws both at once */
    next_byte = 0x40;
    assert_int_equal(ratchet_session_outbound(&a, alice, ratchet_account_curve25519(bob), otk.key, &env), RATCHET_OK);
    assert_string_equal(ratchet_session_id(a), vector("olm", "session_id"));
    ratchet_session_encrypt(a, "hello", 5, &env, &type, &body);
    assert_int_equal(type, 0);
    assert_string_equal(body, vector("olm", "prekey_hello"));
    assert_int_equal(ratchet_session_inbound(&b, bob, ratchet_account_curve25519(alice), body), RATCHET_OK);
    assert_true(ratchet_session_matches(b, ratchet_account_curve25519(alice), body));
    assert_int_equal(ratchet_session_decrypt(b, 0, body, &text, &n), RATCHET_OK);
    assert_string_equal(text, "hello");
    free(text);
    free(body);
    ratchet_account_used(bob, b);
    next_byte = 0x60;
    ratchet_session_encrypt(b, "world", 5, &env, &type, &body);
    assert_int_equal(type, 1);
    assert_string_equal(body, vector("olm", "reply_world"));
    assert_int_equal(ratchet_session_decrypt(a, 1, body, &text, &n), RATCHET_OK);
    assert_string_equal(text, "world");
    free(text);
    free(body);
    next_byte = 0x70;
    ratchet_session_encrypt(a, "again", 5, &env, &type, &body);
    assert_string_equal(body, vector("olm", "again"));
    assert_int_equal(ratchet_session_decrypt(b, 1, body, &text, &n), RATCHET_OK);
    free(text);
    assert_int_not_equal(ratchet_session_decrypt(b, 1, body, &text, &n), RATCHET_OK); /* once is once */
    free(body);
    /* the one-time key is gone */
    struct ratchet_session *again = NULL;
    assert_int_equal(
        ratchet_session_inbound(&again, bob, ratchet_account_curve25519(alice), vector("olm", "prekey_hello")),
        RATCHET_KEY_ID);
    ratchet_session_free(a);
    ratchet_session_free(b);
    ratchet_account_free(alice);
    ratchet_account_free(bob);
}

static void pickles_open_with_their_key_only(void **state)
{
    (void)state;
    const uint8_t other[KEY_BYTES] = { 9 };
    const struct ratchet_env wrong = { other, counting, NULL };
    struct err e = { 0 };
    struct ratchet_account *a = ratchet_account_new(&env), *b = NULL;
    autofree char *pickle = ratchet_account_pickle(a, &env);
    assert_int_equal(ratchet_account_unpickle(&b, pickle, &wrong, &e), -1);
    assert_int_equal(e.kind, ERR_CONFIG);
    assert_int_equal(ratchet_account_unpickle(&b, "damaged", &env, &e), -1);
    assert_int_equal(ratchet_account_unpickle(&b, pickle, &env, &e), 0);
    assert_string_equal(ratchet_account_ed25519(a), ratchet_account_ed25519(b));
    ratchet_account_free(a);
    ratchet_account_free(b);
}

static void sessions_with_hostile_keys_are_refused(void **state)
{
    (void)state;
    struct ratchet_account *a = ratchet_account_new(&env);
    struct ratchet_session *s = NULL;
    const char *zero = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", *good = vector("olm", "bob_curve25519");
    assert_int_equal(ratchet_session_outbound(&s, a, zero, good, &env), RATCHET_FORMAT);
    assert_int_equal(ratchet_session_outbound(&s, a, good, zero, &env), RATCHET_FORMAT);
    assert_int_equal(ratchet_session_outbound(&s, a, "short", good, &env), RATCHET_FORMAT);
    assert_int_equal(ratchet_session_inbound(&s, a, good, "AAAA"), RATCHET_FORMAT);
    assert_int_equal(ratchet_session_inbound(&s, a, good, ""), RATCHET_FORMAT);
    /* a pre-key message whose base key is zero */
    uint8_t raw[200];
    const int64_t n = b64_read(vector("olm", "prekey_hello"), raw, sizeof(raw));
    assert_true(n > 100);
    memset(raw + 1 + 34 + 2, 0, KEY_BYTES);
    AUTO(str_clear) struct str text = STR_INIT(400);
    b64_add(&text, raw, (size_t)n);
    assert_int_equal(ratchet_session_inbound(&s, a, good, str_peek(&text)), RATCHET_FORMAT);
    ratchet_account_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_is_written_bare_and_read_in_every_form),
        cmocka_unit_test(a_key_has_one_way_to_be_written),
        cmocka_unit_test(keys_of_low_order_are_refused),
        cmocka_unit_test(u2_a_signature_by_a_key_of_low_order_is_no_signature),
        cmocka_unit_test(u2_a_signature_with_an_unreduced_s_is_refused),
        cmocka_unit_test(u2_signatures_are_those_of_the_specification),
        cmocka_unit_test(u2_what_has_no_canonical_form_is_not_signed),
        cmocka_unit_test(u1_canonical_json_is_that_of_the_specification),
        cmocka_unit_test(u1_ten_thousand_values_are_written_as_python_writes_them),
        cmocka_unit_test(u4_the_short_strings_are_those_of_others),
        cmocka_unit_test(u4_the_commitment_covers_the_start_as_it_came),
        cmocka_unit_test(u5_megolm_gives_known_messages),
        cmocka_unit_test(u5_a_megolm_message_that_was_touched_is_refused),
        cmocka_unit_test(u5_olm_gives_known_messages),
        cmocka_unit_test(pickles_open_with_their_key_only),
        cmocka_unit_test(sessions_with_hostile_keys_are_refused),
    };
    return cmocka_run_group_tests_name("matrix_crypto_vectors", tests, load, unload);
}
