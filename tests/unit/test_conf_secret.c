#include "conf_fixture.h"

static void secret_files_must_be_private(void **state)
{
    (void)state;
    static const struct {
        mode_t mode;
        bool fine;
    } cases[] = { { 0600, true },  { 0400, true },  { 0700, true },  { 0640, false },
                  { 0644, false }, { 0604, false }, { 0620, false }, { 0601, false } };
    autofree char *path = file_with("key", "abc\n", 4, 0600);
    for (size_t i = 0; i < countof(cases); i++) {
        AUTO(conf_clear) struct conf c;
        autofree char *text = xasprintf("[model m]\nkey_file=%s", path);
        autofree char *want = xasprintf("line 2: key_file: others may read %s; run: chmod 600 %s", path, path);
        autofree char *key = NULL;
        struct err e;
        assert_int_equal(chmod(path, cases[i].mode), 0);
        conf_init(&c);
        assert_int_equal(conf_parse(&c, text, &e), cases[i].fine ? 0 : -1);
        if (!cases[i].fine)
            assert_string_equal(e.msg, want);
        assert_int_equal(conf_read_secret(&key, path, &e), cases[i].fine ? 0 : -1);
    }
    assert_int_equal(unlink(path), 0);
}

static void secrets_are_one_line_of_printable_text(void **state)
{
    (void)state;
    static const struct {
        const char *content, *secret, *msg;
    } cases[] = {
        { "sk-abc", "sk-abc", NULL },
        { "sk-abc\n", "sk-abc", NULL },
        { " \t\r\nsk-abc \r\n\n", "sk-abc", NULL },
        { "two words", "two words", NULL },
        { "", NULL, "is empty" },
        { " \n", NULL, "is empty" },
        { "a\nb", NULL, "is not one line of printable ASCII" },
        { "a\r\nX-Header: b", NULL, "is not one line of printable ASCII" },
        { "k\xc3\xa9y", NULL, "is not one line of printable ASCII" },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *path = file_with("key", cases[i].content, strlen(cases[i].content), 0600);
        autofree char *secret = NULL;
        struct err e;
        assert_int_equal(conf_read_secret(&secret, path, &e), cases[i].secret ? 0 : -1);
        assert_int_equal(unlink(path), 0);
        if (cases[i].secret)
            assert_string_equal(secret, cases[i].secret);
        else
            assert_non_null(strstr(e.msg, cases[i].msg));
    }
}

static void a_secret_has_a_limit(void **state)
{
    (void)state;
    for (int n = 4096; n <= 4097; n++) {
        autofree char *content = xasprintf("%0*d", n, 0);
        autofree char *path = file_with("key", content, (size_t)n, 0600);
        autofree char *secret = NULL;
        struct err e;
        assert_int_equal(conf_read_secret(&secret, path, &e), n == 4096 ? 0 : -1);
        assert_int_equal(unlink(path), 0);
    }
}

static void what_is_no_regular_file_holds_no_secret(void **state)
{
    (void)state;
    autofree char *fifo = xasprintf("%s/fifo", dir);
    autofree char *secret = NULL;
    struct err e;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(conf_read_secret(&secret, fifo, &e), -1); /* and does not wait for a writer */
    assert_non_null(strstr(e.msg, "is not a regular file"));
    assert_int_equal(unlink(fifo), 0);
    assert_int_equal(conf_read_secret(&secret, dir, &e), -1);
    assert_int_equal(conf_read_secret(&secret, "/nonexistent/key", &e), -1);
    assert_null(secret);
}

static void bare_names_are_systemd_credentials(void **state)
{
    (void)state;
    AUTO(conf_clear) struct conf c;
    autofree char *path = file_with("token", "abc", 3, 0440); /* as systemd's ACL shows */
    autofree char *secret = NULL;
    struct err e;
    conf_init(&c);
    assert_int_equal(conf_parse(&c, "[model m]\nkey_file=token", &e), -1);
    assert_int_equal(setenv("CREDENTIALS_DIRECTORY", dir, 1), 0);
    assert_int_equal(conf_parse(&c, "[model m]\nkey_file=token", &e), 0);
    assert_string_equal(conf_find_model(&c, "m")->key_file, path);
    assert_int_equal(conf_read_secret(&secret, path, &e), 0);
    assert_string_equal(secret, "abc");
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(conf_parse(&c, "[model m]\nkey_file=token", &e), -1);
    assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(secret_files_must_be_private),
        cmocka_unit_test(secrets_are_one_line_of_printable_text),
        cmocka_unit_test(a_secret_has_a_limit),
        cmocka_unit_test(what_is_no_regular_file_holds_no_secret),
        cmocka_unit_test(bare_names_are_systemd_credentials),
    };
    return cmocka_run_group_tests_name("conf_secret", tests, make_dir, remove_dir);
}
