#include "conf_fixture.h"

/* The listed value of section.key, or section.name.key. */
static const char *value_of(const struct conf *c, const char *path, struct conf_row *row)
{
    for (size_t i = 0; conf_row(c, i, row); i++) {
        autofree char *full = row->name ? xasprintf("%s.%s.%s", row->section, row->name, row->key)
                                        : xasprintf("%s.%s", row->section, row->key);
        if (strcmp(full, path) == 0)
            return row->value;
    }
    fail_msg("no row %s", path);
    return NULL;
}

static size_t row_count(const struct conf *c)
{
    struct conf_row row;
    size_t n = 0;
    while (conf_row(c, n, &row))
        n++;
    return n;
}

/* ---- defaults ---- */

static void defaults_are_sound_and_print_as_the_table_has_them(void **state)
{
    (void)state;
    AUTO(conf_clear) struct conf c;
    struct conf_row row;
    struct err e;
    conf_init(&c);
    if (conf_check(&c, &e) < 0)
        fail_msg("%s", e.msg);
    for (size_t i = 0; conf_row(&c, i, &row); i++) {
        assert_true(*row.section && *row.key && *row.help);
        if (strcmp(row.key, "dialect") != 0) /* builtin's own */
            assert_string_equal(row.value, row.def);
    }
}

static void builtin_is_always_there(void **state)
{
    (void)state;
    AUTO(conf_clear) struct conf c;
    conf_init(&c);
    const struct conf_model *m = conf_find_model(&c, "builtin");
    assert_non_null(m);
    assert_string_equal(m->dialect, "builtin");
    assert_null(conf_find_model(&c, "other"));
}

/* Without the # of "#key = value" and "#[section]"; prose has a blank after it. */
static char *uncommented(const char *text)
{
    struct str out = STR_INIT(1 << 20);
    for (bool at_start = true; *text; text++) {
        if (!(at_start && *text == '#' && text[1] > ' '))
            str_putc(&out, *text);
        at_start = *text == '\n';
    }
    return str_take(&out);
}

static size_t settings_in(const char *text)
{
    size_t n = 0;
    for (const char *p = text; *p; p++)
        n += (p == text || p[-1] == '\n') && *p >= 'a' && *p <= 'z';
    return n;
}

/* Unknown and repeated keys are refused, so the right number of settings means that each is there once. */
static void the_shipped_file_has_every_setting_at_its_default(void **state)
{
    (void)state;
    AUTO(str_clear) struct str text = STR_INIT(1 << 20);
    AUTO(conf_clear) struct conf c;
    struct conf_row row;
    struct err e;
    conf_init(&c);
    if (str_read_file(&text, "config/sandbook.conf", &e) < 0)
        fail_msg("%s (run from the top of the tree)", e.msg);
    autofree char *all = uncommented(text.buf);
    if (conf_parse(&c, all, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(settings_in(all), row_count(&c));
    for (size_t i = 0; conf_row(&c, i, &row); i++)
        if (strcmp(row.value, row.def) != 0)
            fail_msg("%s.%s = %s, not %s", row.section, row.key, row.value, row.def);
}

static void the_shipped_file_is_valid_as_it_is(void **state)
{
    (void)state;
    AUTO(conf_clear) struct conf c;
    struct err e;
    conf_init(&c);
    if (conf_load(&c, "config/sandbook.conf", &e) < 0 || conf_check(&c, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(c.model_n, 1);
}

/* ---- the file ---- */

static const struct {
    const char *text, *path, *value;
} readable[] = {
    { "[agent]\nmax_steps = 3\n", "agent.max_steps", "3" },
    { "[agent]\nmax_steps=3", "agent.max_steps", "3" },
    { "\xef\xbb\xbf[agent]\r\n \tmax_steps\t=\t3 \r\n", "agent.max_steps", "3" },
    { "# c\n; c\n\n  # c\n[ agent ]\nmax_steps = 3", "agent.max_steps", "3" },
    { "[agent]\n[box]\npids = 20\n[agent]\nmax_steps = 3", "agent.max_steps", "3" },
    { "[agent]\nmax_steps = 0003", "agent.max_steps", "3" },
    { "[service]\ndata_dir = /a b/#c;d=e \"q\"", "service.data_dir", "/a b/#c;d=e \"q\"" },
    { "[service]\ndata_dir =", "service.data_dir", "" },
    { "[service]\ndata_dir = /gr\xc3\xbc\xc3\x9f"
      "e",
      "service.data_dir",
      "/gr\xc3\xbc\xc3\x9f"
      "e" },
    { "[agent]\nturn_timeout = 250ms", "agent.turn_timeout", "250ms" },
    { "[agent]\nturn_timeout = 2000ms", "agent.turn_timeout", "2s" },
    { "[agent]\nturn_timeout = 5m", "agent.turn_timeout", "300s" },
    { "[agent]\nturn_timeout = 1h", "agent.turn_timeout", "3600s" },
    { "[box]\nmemory = 1000", "box.memory", "1000" },
    { "[box]\nmemory = 2048", "box.memory", "2K" },
    { "[box]\nmemory = 1536M", "box.memory", "1536M" },
    { "[box]\nmemory = 2048M", "box.memory", "2G" },
    { "[box]\nmemory = 0", "box.memory", "0" },
    { "[local]\nstdio = yes", "local.stdio", "yes" },
    { "[model a]\nurl = https://a/v1", "model.a.url", "https://a/v1" },
    { "[model\ta-B_2.x]\ncontext = 9000", "model.a-B_2.x.context", "9000" },
    { "[model a]\n[model b]\nname = n\n[model a]\nname = m", "model.a.name", "m" },
    { "[tool a]\nurl = https://h/{x}", "tool.a.url", "https://h/{x}" },
    { "[tool a]\n[tool b]\n[database a]\npath = /x", "database.a.path", "/x" },
};

static void values_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(readable); i++) {
        AUTO(conf_clear) struct conf c;
        struct conf_row row;
        struct err e;
        conf_init(&c);
        if (conf_parse(&c, readable[i].text, &e) < 0)
            fail_msg("%s: %s", readable[i].text, e.msg);
        assert_string_equal(value_of(&c, readable[i].path, &row), readable[i].value);
    }
}

static const struct {
    const char *text, *msg;
} mistakes[] = {
    { "max_steps = 3", "line 1: a setting before the first [section]" },
    { "\n\nwords", "line 3: expected [section] or key = value" },
    { "[agent", "line 1: a section ends with ]" },
    { "[", "line 1: a section ends with ]" },
    { "[agent] x", "line 1: a section ends with ]" },
    { "[agnet]", "line 1: unknown section [agnet]; did you mean [agent]?" },
    { "[models x]", "line 1: unknown section [models x]; did you mean [model NAME]?" },
    { "[agent x]", "line 1: unknown section [agent x]; did you mean [agent]?" },
    { "[weather]", "line 1: unknown section [weather]" },
    { "[]", "line 1: unknown section []" },
    { "[model]", "line 1: a model needs a name: [model NAME]" },
    { "[tool]", "line 1: a tool needs a name: [tool NAME]" },
    { "[database ]", "line 1: a database needs a name: [database NAME]" },
    { "[tools x]", "line 1: unknown section [tools x]; did you mean [tool NAME]?" },
    { "[tool x]\nurll = y", "line 2: unknown setting \"urll\" in [tool]; did you mean \"url\"?" },
    { "[tool x]\nurl = y\n[database x]\npath=/\n[tool x]\nurl = z", "line 6: url was already set in line 2" },
    { "[model ]", "line 1: a model needs a name: [model NAME]" },
    { "[model a b]", "line 1: \"a b\" is not a model name: 1 to 64 of A-Z a-z 0-9 _ . -" },
    { "[model builtin]", "line 1: the model \"builtin\" always exists and has no settings; take another name" },
    { "# c\n[agent]\nmax_step = 3", "line 3: unknown setting \"max_step\" in [agent]; did you mean \"max_steps\"?" },
    { "[agent]\nmaxsteps = 3", "line 2: unknown setting \"maxsteps\" in [agent]; did you mean \"max_steps\"?" },
    { "[agent]\nMAX_STEPS = 3", "line 2: unknown setting \"MAX_STEPS\" in [agent]" },
    { "[agent]\npids = 3", "line 2: \"pids\" belongs into [box], not [agent]" },
    { "[agent]\nurl = x", "line 2: unknown setting \"url\" in [agent]" },
    { "[model x]\nurll = y", "line 2: unknown setting \"urll\" in [model]; did you mean \"url\"?" },
    { "[model x]\npids = 3", "line 2: \"pids\" belongs into [box], not [model]" },
    { "[agent]\n= 3", "line 2: unknown setting \"\" in [agent]" },
    { "[agent]\nmax_steps = 3\n\nmax_steps = 4", "line 4: max_steps was already set in line 2" },
    { "[model a]\nname = x\n[model b]\nname = y\n[model a]\nname = z", "line 6: name was already set in line 2" },
    { "[agent]\nmax_steps = three", "line 2: max_steps: \"three\" is not a whole number" },
    { "[agent]\nmax_steps =", "line 2: max_steps: \"\" is not a whole number" },
    { "[agent]\nmax_steps = -1", "line 2: max_steps: \"-1\" is not a whole number" },
    { "[agent]\nmax_steps = +1", "line 2: max_steps: \"+1\" is not a whole number" },
    { "[agent]\nmax_steps = 1.5", "line 2: max_steps: \"1.5\" is not a whole number" },
    { "[agent]\nmax_steps = 15 # why", "line 2: max_steps: \"15 # why\" is not a whole number" },
    { "[agent]\nmax_steps = 99999999999999999999", "line 2: max_steps: \"99999999999999999999\" is too large" },
    { "[agent]\nmax_steps = 9223372036854775808", "line 2: max_steps: \"9223372036854775808\" is too large" },
    { "[agent]\nturn_timeout = 90", "line 2: turn_timeout: \"90\" is not a time such as 250ms, 90s or 5m" },
    { "[agent]\nturn_timeout = 5 m", "line 2: turn_timeout: \"5 m\" is not a time such as 250ms, 90s or 5m" },
    { "[agent]\nturn_timeout = 9000000000000000h", "line 2: turn_timeout: \"9000000000000000h\" is too large" },
    { "[box]\nmemory = 1T", "line 2: memory: \"1T\" is not a size such as 64K, 100M or 1G" },
    { "[box]\nmemory = K", "line 2: memory: \"K\" is not a size such as 64K, 100M or 1G" },
    { "[local]\nstdio = true", "line 2: stdio: \"true\" is neither yes nor no" },
    { "[agent]\nmodel = \xff", "line 2: not valid UTF-8" },
    { "[agent]\nmodel = a\x1b[31m", "line 2: control character 0x1b" },
    { "[agent]\nmodel = a\rb", "line 2: control character 0x0d" },
    { "[model x]\nkey_file = /nonexistent/key",
      "line 2: key_file: cannot read the secret /nonexistent/key: No such file or directory" },
};

static void mistakes_are_named_with_their_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(mistakes); i++) {
        AUTO(conf_clear) struct conf c;
        struct err e = { 0 };
        conf_init(&c);
        if (conf_parse(&c, mistakes[i].text, &e) == 0)
            fail_msg("accepted: %s", mistakes[i].text);
        assert_int_equal(e.kind, ERR_CONFIG);
        assert_string_equal(e.msg, mistakes[i].msg);
    }
}

static void names_of_models_have_at_most_64_characters(void **state)
{
    (void)state;
    for (int n = 64; n <= 65; n++) {
        AUTO(conf_clear) struct conf c;
        struct err e;
        conf_init(&c);
        autofree char *text = xasprintf("[model %0*d]", n, 0);
        assert_int_equal(conf_parse(&c, text, &e), n == 64 ? 0 : -1);
    }
}

static void very_long_names_get_no_suggestion(void **state)
{
    (void)state;
    AUTO(conf_clear) struct conf c;
    struct err e;
    conf_init(&c);
    autofree char *text = xasprintf("[agent]\n%0*d = 1", 5000, 0);
    assert_int_equal(conf_parse(&c, text, &e), -1);
    assert_non_null(strstr(e.msg, "line 2: unknown setting \"0000"));
    assert_null(strstr(e.msg, "did you mean"));
}

static void a_later_text_goes_over_an_earlier_one(void **state)
{
    (void)state;
    AUTO(conf_clear) struct conf c;
    struct err e;
    conf_init(&c);
    assert_int_equal(conf_parse(&c, "[agent]\nmax_steps = 3\n[model a]\nname = x\ncontext = 9000", &e), 0);
    assert_int_equal(conf_parse(&c, "[agent]\nmax_steps = 4\n[model a]\nname = y", &e), 0);
    assert_int_equal(c.max_steps, 4);
    assert_int_equal(c.model_n, 2);
    assert_string_equal(conf_find_model(&c, "a")->name, "y");
    assert_int_equal(conf_find_model(&c, "a")->context_tokens, 9000);
}

static void loading_reports_the_path(void **state)
{
    (void)state;
    static const struct {
        const char *name, *content;
        size_t n;
        const char *msg;
    } cases[] = {
        { "good", "[agent]\nmax_steps = 3\n", 22, NULL },
        { "bad", "\n[agent\n", 8, "bad: line 2: a section ends with ]" },
        { "nul", "[agent]\n\0", 9, "nul: holds a NUL byte" },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        AUTO(conf_clear) struct conf c;
        struct err e = { 0 };
        conf_init(&c);
        autofree char *path = file_with(cases[i].name, cases[i].content, cases[i].n, 0644);
        assert_int_equal(conf_load(&c, path, &e), cases[i].msg ? -1 : 0);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(e.kind, cases[i].msg ? ERR_CONFIG : ERR_NONE);
        if (cases[i].msg)
            assert_string_equal(e.msg + strlen(dir) + 1, cases[i].msg);
    }
    AUTO(conf_clear) struct conf c;
    struct err e;
    conf_init(&c);
    assert_int_equal(conf_load(&c, "/nonexistent", &e), -1);
    assert_int_equal(e.kind, ERR_CONFIG);
    assert_int_equal(conf_load(&c, "/dev/zero", &e), -1);
    assert_int_equal(e.kind, ERR_CONFIG);
}

/* ---- the command line ---- */

static void assignments_of_the_command_line_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *assignment, *path, *value;
    } cases[] = {
        { "agent.max_steps=3", "agent.max_steps", "3" },
        { " agent.max_steps = 3 ", "agent.max_steps", "3" },
        { "service.data_dir=/a=b.c", "service.data_dir", "/a=b.c" },
        { "model.a.url=http://127.0.0.1:8080/v1", "model.a.url", "http://127.0.0.1:8080/v1" },
        { "model.qwen2.5-7b.context=9000", "model.qwen2.5-7b.context", "9000" },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        AUTO(conf_clear) struct conf c;
        struct conf_row row;
        struct err e;
        conf_init(&c);
        if (conf_set(&c, cases[i].assignment, &e) < 0)
            fail_msg("%s", e.msg);
        assert_string_equal(value_of(&c, cases[i].path, &row), cases[i].value);
    }
}

static void mistakes_of_the_command_line_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *assignment, *msg;
    } cases[] = {
        { "", "\"\": expected section.key=value" },
        { "agent.max_steps", "\"agent.max_steps\": expected section.key=value" },
        { "max_steps=3", "max_steps: expected section.key=value" },
        { "agnet.max_steps=3", "agnet.max_steps: unknown section [agnet]; did you mean [agent]?" },
        { "agent.max_step=3", "agent.max_step: unknown setting \"max_step\" in [agent]; did you mean \"max_steps\"?" },
        { "agent.x.max_steps=3",
          "agent.x.max_steps: unknown setting \"x.max_steps\" in [agent]; did you mean \"max_steps\"?" },
        { "agent.max_steps=x", "agent.max_steps: \"x\" is not a whole number" },
        { "model.url=x", "model.url: expected model.NAME.key=value" },
        { "model..url=x", "model..url: \"\" is not a model name: 1 to 64 of A-Z a-z 0-9 _ . -" },
        { "model.builtin.url=x",
          "model.builtin.url: the model \"builtin\" always exists and has no settings; take another name" },
        { "model.a.ulr=x", "model.a.ulr: unknown setting \"ulr\" in [model]; did you mean \"url\"?" },
        { "agent.model=a\nb", "a setting is one line" },
        { "agent.model=\xff", "not valid UTF-8" },
        { "=", ": expected section.key=value" },
        { ".=", ".: unknown section []" },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        AUTO(conf_clear) struct conf c;
        struct err e = { 0 };
        conf_init(&c);
        if (conf_set(&c, cases[i].assignment, &e) == 0)
            fail_msg("accepted: %s", cases[i].assignment);
        assert_int_equal(e.kind, ERR_CONFIG);
        assert_string_equal(e.msg, cases[i].msg);
    }
}

/* ---- listing ---- */

static void rows_list_the_models_of_the_file_or_a_template(void **state)
{
    (void)state;
    AUTO(conf_clear) struct conf c;
    struct conf_row row;
    struct err e;
    conf_init(&c);
    size_t before = row_count(&c), templates = 0;
    for (size_t i = 0; conf_row(&c, i, &row); i++)
        templates += row.name && strcmp(row.name, "NAME") == 0 && strcmp(row.section, "model") == 0;
    assert_true(templates > 0);
    assert_int_equal(conf_parse(&c, "[model a]\nname=x\n[model b]\nname=y", &e), 0);
    assert_int_equal(row_count(&c), before + templates);
    assert_string_equal(value_of(&c, "model.a.name", &row), "x");
    assert_string_equal(value_of(&c, "model.b.name", &row), "y");
    assert_string_equal(value_of(&c, "model.b.dialect", &row), "chat");
}

static void the_fallback_list_names_models_that_are_there(void **state)
{
    static const struct {
        const char *list;
        bool good;
        size_t n;
    } cases[] = {
        { "", true, 0 }, { "builtin", true, 1 }, { " spare ,builtin,, ", true, 2 }, { "spare,nobody", false, 2 }
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct conf c;
        struct err e = { 0 };
        char name[CONF_NAME_SIZE];
        size_t n = 0;
        autofree char *row = xasprintf("agent.fallback=%s", cases[i].list);
        conf_init(&c);
        assert_int_equal(conf_set(&c, "model.spare.dialect=chat", &e) +
                             conf_set(&c, "model.spare.url=http://127.0.0.1:1/v1", &e) +
                             conf_set(&c, "model.spare.name=m", &e) + conf_set(&c, row, &e),
                         0);
        while (conf_fallback(&c, n, name))
            n++;
        assert_int_equal(n, cases[i].n);
        assert_int_equal(conf_check(&c, &e) == 0, cases[i].good);
        conf_clear(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fallback_list_names_models_that_are_there),
        cmocka_unit_test(defaults_are_sound_and_print_as_the_table_has_them),
        cmocka_unit_test(builtin_is_always_there),
        cmocka_unit_test(the_shipped_file_has_every_setting_at_its_default),
        cmocka_unit_test(the_shipped_file_is_valid_as_it_is),
        cmocka_unit_test(values_are_read),
        cmocka_unit_test(mistakes_are_named_with_their_line),
        cmocka_unit_test(names_of_models_have_at_most_64_characters),
        cmocka_unit_test(very_long_names_get_no_suggestion),
        cmocka_unit_test(a_later_text_goes_over_an_earlier_one),
        cmocka_unit_test(loading_reports_the_path),
        cmocka_unit_test(assignments_of_the_command_line_are_read),
        cmocka_unit_test(mistakes_of_the_command_line_are_named),
        cmocka_unit_test(rows_list_the_models_of_the_file_or_a_template),
    };
    return cmocka_run_group_tests_name("conf", tests, make_dir, remove_dir);
}
