/* Known answers of what is sealed for storage: secrets, room keys in backups, attachments. */
#include "attach.h"
#include "backup.h"
#include "matrix_vectors.h"
#include "ssss.h"

/* ---- secret storage, backup ---- */

static void u4_a_recovery_key_is_written_and_read(void **state)
{
    (void)state;
    uint8_t key[KEY_BYTES], got[KEY_BYTES];
    seq(key, sizeof(key), 0);
    autofree char *text = recovery_key_text(key);
    assert_string_equal(text, vector("recovery_key", "text"));
    assert_true(recovery_key_read("EsSzykH7LCZx7CaecmKD wcmY\tJRXi Ybtu 8iQ3\nt8Ez nRwK pUY1", got));
    assert_memory_equal(got, key, sizeof(key));
    static const char *const bad[] = { "",
                                       "EsSz",
                                       "EsSz ykH7 LCZx 7Cae cmKD wcmY JRXi Ybtu 8iQ3 t8Ez nRwK pUY2",
                                       "EsSz ykH7 LCZx 7Cae cmKD wcmY JRXi Ybtu 8iQ3 t8Ez nRwK pUY1 1",
                                       "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",
                                       "EsSz ykH7 LCZx 7Cae cmKD wcmY JRXi Ybtu 8iQ3 t8Ez nRwK pUY0",
                                       "correct horse" };
    for (size_t i = 0; i < countof(bad); i++)
        assert_false(recovery_key_read(bad[i], got));
}

static void u4_a_secret_is_sealed_as_others_do_it(void **state)
{
    (void)state;
    uint8_t key[KEY_BYTES], iv[IV_BYTES];
    seq(key, sizeof(key), 0);
    assert_int_equal(b64_read(vector("ssss", "iv"), iv, sizeof(iv)), IV_BYTES);
    const char *name = vector("ssss", "name");
    autojson struct json *about = ssss_describe(key, iv);
    assert_string_equal(json_str_or(about, "mac", ""), vector("ssss", "check_mac"));
    assert_true(ssss_fits(key, about));
    autojson struct json *sealed = ssss_seal(key, name, vector("ssss", "secret"), iv);
    assert_string_equal(json_str_or(sealed, "ciphertext", ""), vector("ssss", "ciphertext"));
    assert_string_equal(json_str_or(sealed, "mac", ""), vector("ssss", "mac"));
    autofree char *clear = ssss_open(key, name, sealed);
    assert_string_equal(clear, vector("ssss", "secret"));
    assert_null(ssss_open(key, "another", sealed));
    key[0] ^= 1;
    assert_false(ssss_fits(key, about));
    assert_null(ssss_open(key, name, sealed));
}

static void u4_a_passphrase_makes_its_key_and_no_endless_work(void **state)
{
    (void)state;
    uint8_t key[KEY_BYTES], iv[IV_BYTES] = { 0 }, got[KEY_BYTES];
    char hex[2 * KEY_BYTES + 1] = "";
    pbkdf2_sha512(vector("pbkdf2", "passphrase"), vector("pbkdf2", "salt"), 1000, key);
    for (size_t i = 0; i < sizeof(key); i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", key[i]);
    assert_string_equal(hex, vector("pbkdf2", "key_hex"));
    autojson struct json *about = ssss_describe(key, iv);
    struct json *pass = child(about, "passphrase");
    json_set_str(pass, "algorithm", "m.pbkdf2");
    json_set_str(pass, "salt", vector("pbkdf2", "salt"));
    json_set_int(pass, "iterations", 1000);
    assert_true(ssss_key_from_words(vector("pbkdf2", "passphrase"), about, got));
    assert_memory_equal(got, key, sizeof(key));
    assert_false(ssss_key_from_words("another", about, got));
    json_set_int(pass, "iterations", 5000001);
    assert_false(ssss_key_from_words(vector("pbkdf2", "passphrase"), about, got));
    json_set_int(pass, "iterations", -1);
    assert_false(ssss_key_from_words(vector("pbkdf2", "passphrase"), about, got));
}

static void u4_a_room_key_is_sealed_for_the_backup_as_others_do_it(void **state)
{
    (void)state;
    uint8_t secret[KEY_BYTES], public[KEY_BYTES], ephemeral[KEY_BYTES];
    seq(secret, sizeof(secret), 1);
    seq(ephemeral, sizeof(ephemeral), 33);
    x25519_public(secret, public);
    assert_b64(vector("backup", "public"), public, sizeof(public));
    autojson struct json *sealed = backup_seal(public, ephemeral, vector("backup", "plain"));
    assert_string_equal(json_str_or(sealed, "ephemeral", ""), vector("backup", "ephemeral"));
    assert_string_equal(json_str_or(sealed, "ciphertext", ""), vector("backup", "ciphertext"));
    assert_string_equal(json_str_or(sealed, "mac", ""), vector("backup", "mac"));
    autofree char *clear = backup_open(secret, sealed);
    assert_string_equal(clear, vector("backup", "plain"));
    json_set_str(sealed, "mac", vector("backup", "mac_if_over_ciphertext"));
    assert_null(backup_open(secret, sealed));
    json_set_str(sealed, "mac", vector("backup", "mac"));
    json_set_str(sealed, "ciphertext", "AAAA");
    assert_null(backup_open(secret, sealed));
    const uint8_t low[KEY_BYTES] = { 0 };
    assert_null(backup_seal(low, ephemeral, "x"));
}

/* ---- attachments ---- */

static struct json *file_of_vector(void)
{
    struct json *file = json_new_object(), *key = child(file, "key");
    json_set_str(file, "v", "v2");
    json_set_str(key, "kty", "oct");
    json_set_str(key, "alg", "A256CTR");
    json_set_str(key, "k", vector("attachment", "k_urlsafe"));
    json_set_str(file, "iv", vector("attachment", "iv"));
    json_set_str(child(file, "hashes"), "sha256", vector("attachment", "sha256"));
    return file;
}

static size_t cipher_of_vector(uint8_t out[64])
{
    const char *hex = vector("attachment", "cipher_hex");
    const size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++)
        assert_int_equal(sscanf(hex + 2 * i, "%2hhx", &out[i]), 1);
    return n;
}

static void u3_an_attachment_of_others_opens(void **state)
{
    (void)state;
    uint8_t cipher[64], clear[64] = { 0 };
    const size_t n = cipher_of_vector(cipher);
    struct err e = { 0 };
    struct attach *a = NULL;
    autojson struct json *file = file_of_vector();
    assert_int_equal(attach_decrypt(&a, file, &e), 0);
    for (size_t i = 0; i < n; i++)
        attach_check(a, cipher + i, 1);
    assert_int_equal(attach_checked(a, &e), 0);
    attach_update(a, cipher, 5, clear);
    attach_update(a, cipher + 5, n - 5, clear + 5);
    assert_string_equal((char *)clear, vector("attachment", "plain"));
    attach_free(a);
}

static void u3_an_altered_or_cut_attachment_is_refused(void **state)
{
    (void)state;
    uint8_t cipher[64];
    const size_t n = cipher_of_vector(cipher);
    autojson struct json *file = file_of_vector();
    for (size_t cut = 0; cut < 2; cut++) {
        struct err e = { 0 };
        struct attach *a = NULL;
        assert_int_equal(attach_decrypt(&a, file, &e), 0);
        cipher[3] ^= (uint8_t)!cut;
        attach_check(a, cipher, n - cut);
        cipher[3] ^= (uint8_t)!cut;
        assert_int_equal(attach_checked(a, &e), -1);
        assert_int_equal(e.kind, ERR_DATA);
        attach_free(a);
    }
}

static void u3_a_malformed_file_object_is_refused_in_words(void **state)
{
    (void)state;
    static const struct {
        const char *at, *key, *value;
    } bad[] = { { NULL, "v", "v1" },         { NULL, "v", NULL },    { "key", "alg", "A128CTR" },
                { "key", "kty", "RSA" },     { "key", "k", "AAAA" }, { "key", "k", NULL },
                { NULL, "iv", "AAAA" },      { NULL, "iv", "!" },    { "hashes", "sha256", "" },
                { "hashes", "sha256", NULL } };
    for (size_t i = 0; i < countof(bad); i++) {
        autojson struct json *file = file_of_vector();
        struct err e = { 0 };
        struct attach *a = NULL;
        json_set_str(bad[i].at ? child(file, bad[i].at) : file, bad[i].key, bad[i].value);
        assert_int_equal(attach_decrypt(&a, file, &e), -1);
        assert_int_equal(e.kind, ERR_DATA);
    }
    autojson struct json *padded = file_of_vector();
    json_set_str(child(padded, "key"), "k", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
    struct err e = { 0 };
    struct attach *a = NULL;
    assert_int_equal(attach_decrypt(&a, padded, &e), 0);
    attach_free(a);
    assert_int_equal(attach_decrypt(&a, NULL, &e), -1);
}

static void u3_attachments_of_every_size_go_there_and_back(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0, 1, 15, 16, 17, 4096, 100000 };
    for (size_t i = 0; i < countof(sizes); i++) {
        const size_t n = sizes[i];
        autofree uint8_t *text = xcalloc(1, n + 1), *cipher = xcalloc(1, n + 1);
        struct err e = { 0 };
        seq(text, n, 9);
        struct attach *a = attach_encrypt(), *b = NULL;
        attach_update(a, text, n / 3, cipher);
        attach_update(a, text + n / 3, n - n / 3, cipher + n / 3);
        autojson struct json *file = attach_file(a, "mxc://x/y");
        attach_free(a);
        assert_string_equal(json_str_or(file, "url", ""), "mxc://x/y");
        assert_int_equal(attach_decrypt(&b, file, &e), 0);
        attach_check(b, cipher, n);
        assert_int_equal(attach_checked(b, &e), 0);
        attach_update(b, cipher, n, cipher);
        assert_memory_equal(cipher, text, n + 1);
        attach_free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(u4_a_recovery_key_is_written_and_read),
        cmocka_unit_test(u4_a_secret_is_sealed_as_others_do_it),
        cmocka_unit_test(u4_a_passphrase_makes_its_key_and_no_endless_work),
        cmocka_unit_test(u4_a_room_key_is_sealed_for_the_backup_as_others_do_it),
        cmocka_unit_test(u3_an_attachment_of_others_opens),
        cmocka_unit_test(u3_an_altered_or_cut_attachment_is_refused),
        cmocka_unit_test(u3_a_malformed_file_object_is_refused_in_words),
        cmocka_unit_test(u3_attachments_of_every_size_go_there_and_back),
    };
    return cmocka_run_group_tests_name("matrix_crypto_sealed", tests, load, unload);
}
