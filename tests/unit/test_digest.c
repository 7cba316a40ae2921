/* Against the published vectors; in pieces as at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "digest.h"

static void assert_hex(const uint8_t *got, size_t n, const char *want)
{
    char hex[256] = "";
    assert_true(n * 2 < sizeof(hex));
    for (size_t i = 0; i < n; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", got[i]);
    assert_string_equal(hex, want);
}

/* NIST's examples for SHA-256 */
static void sha256_is_the_published_one(void **state)
{
    static const char *const cases[][2] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        uint8_t at_once[DIGEST_BYTES], in_pieces[DIGEST_BYTES];
        const size_t n = strlen(cases[i][0]);
        digest_sha256(cases[i][0], n, at_once);
        assert_hex(at_once, sizeof(at_once), cases[i][1]);
        struct digest *d = digest_new();
        for (size_t at = 0; at < n; at++)
            digest_add(d, cases[i][0] + at, 1);
        digest_end(d, in_pieces);
        digest_free(d);
        assert_memory_equal(at_once, in_pieces, sizeof(at_once));
    }
}

/* RFC 4231 */
static void hmac_is_the_published_one(void **state)
{
    static const struct {
        const char *key, *data, *want;
    } cases[] = {
        { "\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b", "Hi There",
          "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
        { "Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        uint8_t at_once[DIGEST_BYTES], in_pieces[DIGEST_BYTES];
        const size_t n = strlen(cases[i].data);
        digest_hmac(cases[i].key, strlen(cases[i].key), cases[i].data, n, at_once);
        assert_hex(at_once, sizeof(at_once), cases[i].want);
        struct digest *d = digest_new_hmac(cases[i].key, strlen(cases[i].key));
        digest_add(d, cases[i].data, 3);
        digest_add(d, "", 0);
        digest_add(d, cases[i].data + 3, n - 3);
        digest_end(d, in_pieces);
        digest_free(d);
        assert_memory_equal(at_once, in_pieces, sizeof(at_once));
    }
}

/* RFC 5869, test cases 1 and 3 */
static void hkdf_is_the_published_one(void **state)
{
    uint8_t key[22], out[42];
    static const uint8_t salt[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    static const uint8_t info[] = { 0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9 };
    (void)state;
    for (size_t i = 0; i < sizeof(key); i++)
        key[i] = 0x0b;
    struct digest_hkdf h = { .key = key, .key_n = sizeof(key) };
    digest_hkdf(&h, out, sizeof(out));
    assert_hex(out, sizeof(out),
               "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
    h = (struct digest_hkdf){ key, salt, info, sizeof(key), sizeof(salt), sizeof(info) };
    digest_hkdf(&h, out, sizeof(out));
    assert_hex(out, sizeof(out),
               "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
}

static void equal_means_every_byte(void **state)
{
    (void)state;
    assert_true(digest_equal("abc", "abc", 3));
    assert_true(digest_equal("abc", "abd", 2));
    assert_false(digest_equal("abc", "abd", 3));
    assert_false(digest_equal("xbc", "abc", 3));
}

static void random_bytes_differ(void **state)
{
    uint8_t a[16] = { 0 }, b[16] = { 0 };
    (void)state;
    digest_random(a, sizeof(a));
    digest_random(b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
}

/* RFC 4648, section 10 */
static void base64_is_the_published_one(void **state)
{
    static const char *const cases[][2] = { { "", "" },
                                            { "f", "Zg==" },
                                            { "fo", "Zm8=" },
                                            { "foo", "Zm9v" },
                                            { "foob", "Zm9vYg==" },
                                            { "fooba", "Zm9vYmE=" },
                                            { "foobar", "Zm9vYmFy" },
                                            { "\xfb\xff", "+/8=" } };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *text = base64_encode(cases[i][0], strlen(cases[i][0]));
        assert_string_equal(text, cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_is_the_published_one), cmocka_unit_test(hmac_is_the_published_one),
        cmocka_unit_test(hkdf_is_the_published_one),   cmocka_unit_test(equal_means_every_byte),
        cmocka_unit_test(random_bytes_differ),         cmocka_unit_test(base64_is_the_published_one),
    };
    return cmocka_run_group_tests_name("digest", tests, NULL, NULL);
}
