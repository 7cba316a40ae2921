/* What the settings must be as a whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "conf.h"
#include "str.h"

#define TOOL   "[tool t]\ndescription=d\nurl="
#define REMOTE "[model m]\nname=n\nurl="

static const struct {
    const char *text, *msg; /* NULL: fine */
} wholes[] = {
    { "[agent]\nmax_steps=0", "agent.max_steps must be 1 to 1000" },
    { "[agent]\nmax_steps=1001", "agent.max_steps must be 1 to 1000" },
    { "[agent]\nmax_steps=1000", NULL },
    { "[agent]\nmax_repairs=0", "agent.max_repairs must be 1 to 100" },
    { "[agent]\nmax_malformed=0", "agent.max_malformed must be 1 to 100" },
    { "[agent]\nturn_timeout=999ms", "agent.turn_timeout must be 1s to 24h" },
    { "[agent]\noutput_head=255", "agent.output_head must be 256 to 1M" },
    { "[agent]\noutput_tail=0", NULL },
    { "[agent]\noutput_tail=2M", "agent.output_tail must be 0 to 1M" },
    { "[service]\nforget_after=23h", "service.forget_after must be 1d or more, or 0s: never" },
    { "[service]\nforget_after=30d", NULL },
    { "[status]\nlisten=127.0.0.1:8088", NULL },
    { "[status]\nlisten=[::1]:8088", NULL },
    { "[status]\nlisten=:8088", NULL },
    { "[status]\nlisten=0.0.0.0:8088\npublic=yes", NULL },
    { "[status]\nlisten=0.0.0.0:8088", "status.listen must be an address of this machine's own, such as "
                                       "127.0.0.1:8088, unless status.public is yes" },
    { "[status]\nlisten=localhost:8088", "status.listen must be an address of this machine's own, such as "
                                         "127.0.0.1:8088, unless status.public is yes" },
    { "[box]\ncell_timeout=0s", "box.cell_timeout must be 1s to 24h" },
    { "[box]\ncell_timeout=301s", "box.cell_timeout must not be above box.cell_timeout_max" },
    { "[box]\ncell_timeout=300s", NULL },
    { "[box]\ncell_timeout_max=25h", "box.cell_timeout_max must be 1s to 24h" },
    { "[box]\nmemory=127M\ndisk=1M", "box.memory must be 128M to 1024G" },
    { "[box]\nmemory=128M\ndisk=64M", NULL },
    { "[box]\nmemory=128M\ndisk=65M", "box.disk must be at most half of box.memory, as files count as memory" },
    { "[box]\ndisk=0", "box.disk must be 1M to 512G" },
    { "[box]\npids=15", "box.pids must be 16 to 32768" },
    { "[box]\ncpus=0", "box.cpus must be 1 to 1024" },
    { "[box]\npool=65", "box.pool must be 0 to 64" },
    { "[box]\nzygote_forks=1000001", "box.zygote_forks must be 0 to 1000000" },
    { "[box]\nzygote_age=800h", "box.zygote_age must be 0 to 720h" },
    { "[box]\nuid_base=1000", "box.uid_base must be 65536 to 4294901759" },
    { "[box]\nuid_base=4294901760", "box.uid_base must be 65536 to 4294901759" },
    { "[box]\nmin_tier=T0", NULL },
    { "[box]\naudit=off", NULL },
    { "[box]\naudit=refuse", NULL },
    { "[box]\naudit=yes", "box.audit must be off, note or refuse" },
    { "[box]\naudit=", "box.audit must be off, note or refuse" },
    { "[box]\nmin_tier=T2", "box.min_tier must be T0 or T1" },
    { "[box]\nmin_tier=T0 T1", "box.min_tier must be T0 or T1" },
    { "[box]\nmin_tier=", "box.min_tier must be T0 or T1" },
    { "[files]\nupload_max=1", "files.upload_max must be 1K to 1024G" },
    { "[files]\narchive_max=0", "files.archive_max must be 1K to 1024G" },
    { "[files]\narchive_entries=0", "files.archive_entries must be 1 to 1000000" },
    { "[files]\nresult_max=2G", "files.result_max must be 1K to 1G" },
    { "[service]\nlog_level=error", NULL },
    { "[service]\nlog_level=warn", NULL },
    { "[service]\nlog_level=debug", NULL },
    { "[service]\nlog_level=loud", "service.log_level must be auto, error, warn, info or debug" },
    { "[service]\nlog_level=war", "service.log_level must be auto, error, warn, info or debug" },
    { "[agent]\nmodel=m", "agent.model is \"m\", but there is no [model m]" },
    { "[agent]\nmodel=m\n" REMOTE "https://h/v1", NULL },
    { "[model m]\ndialect=chatty", "model.m.dialect must be chat, responses, anthropic, ollama, builtin or replay" },
    { "[model m]\ntools=many\nname=n\nurl=https://h", "model.m.tools must be auto, native or fence" },
    { "[model m]\ntools=fence\nname=n\nurl=https://h", NULL },
    { "[model m]\ntools=native\nname=n\nurl=https://h", NULL },
    { "[model m]\nname=n", "model.m.url is empty; give the server's base address" },
    { "[model m]\nurl=https://h", "model.m.name is empty; say what the server calls the model" },
    { "[model m]\ndialect=replay", "model.m.url is empty; give the path of a recording" },
    { "[model m]\ndialect=replay\nurl=some/file.json", NULL },
    { "[model m]\ndialect=builtin", NULL },
    { "[model m]\ndialect=responses\nname=n\nurl=https://h", NULL },
    { "[model m]\ndialect=anthropic\nname=n\nurl=ftp://h", "model.m.url must begin with https:// or http://" },
    { "[model m]\ndialect=builtin\ncontext=1023", "model.m.context must be 1024 to 100000000" },
    { "[model m]\ndialect=builtin\nmax_output=15", "model.m.max_output must be 16 to 10000000" },
    { "[model m]\ndialect=builtin\nmax_output=32768", "model.m.max_output must be less than context" },
    { "[model m]\ndialect=ollama\nname=n\nurl=http://127.0.0.1:11434\nthinking=off", NULL },
    { "[model m]\ndialect=ollama\nname=n", "model.m.url is empty; give the server's base address" },
    { "[model m]\ndialect=builtin\neffort=", NULL },
    { "[model m]\ndialect=builtin\neffort=high", NULL },
    { "[model m]\ndialect=builtin\neffort=much",
      "model.m.effort must be none, minimal, low, medium, high, xhigh or max, or empty" },
    { "[model m]\ndialect=builtin\nthinking=", "model.m.thinking must be auto, on or off" },
    { "[model m]\ndialect=builtin\ntemperature=2.1",
      "model.m.temperature must be auto, a number from 0 to 2, or empty" },
    { "[model m]\ndialect=builtin\ntemperature=hot",
      "model.m.temperature must be auto, a number from 0 to 2, or empty" },
    { "[model m]\ndialect=builtin\nsystem_role=root", "model.m.system_role must be system, developer or user" },
    { "[model m]\ndialect=builtin\napi_version=2024-10-21&x", "model.m.api_version must be like 2024-10-21" },
    { TOOL "https://h/{a}?b={b_c-1}", NULL },
    { TOOL "http://127.0.0.1:8/{a}", NULL },
    { TOOL "http://h/{a}", "tool.t.url must be https:// unless the host is this machine or allow_plain_http is yes" },
    { TOOL "http://h/{a}\nallow_plain_http=yes", NULL },
    { TOOL "https://{a}/", "tool.t.url must name a host, without user or password" },
    { TOOL "https://h{a}/", "tool.t.url must name a host, without user or password" },
    { TOOL "https://h?x={a}", NULL },
    { TOOL "https://u:p@h/", "tool.t.url must name a host, without user or password" },
    { TOOL "https://h/{a", "tool.t.url must have its placeholders as {name}" },
    { TOOL "https://h/a}", "tool.t.url must have its placeholders as {name}" },
    { TOOL "https://h/{}", "tool.t.url must have its placeholders as {name}" },
    { TOOL "https://h/{a{b}}", "tool.t.url must have its placeholders as {name}" },
    { TOOL "https://h/#a", "tool.t.url must be an address without blanks and #" },
    { TOOL "", "tool.t.url must begin with https:// or http://" },
    { "[tool t]\nurl=https://h", "tool.t.description is empty; models choose tools by it" },
    { "[tool a.b]\ndescription=d\nurl=https://h", "[tool a.b]: models call tools by A-Z a-z 0-9 _ - only" },
    { TOOL "https://h\nmethod=get", "tool.t.method must be GET, POST, PUT, PATCH or DELETE" },
    { TOOL "https://h\nsecret_header=X-Key {secret}", "tool.t.secret_header must be like Name: ... {secret}" },
    { TOOL "https://h\nsecret_header=X-Key: k", "tool.t.secret_header must be like Name: ... {secret}" },
    { TOOL "https://h\nresult_max=1M", "tool.t.result_max must be 256 to 256K" },
    { "[database d]\npath=/a.db", NULL },
    { "[database d]\npath=a.db", "database.d.path must be the whole path of the file" },
    { "[database d]\nkind=postgres", "database.d.dsn_file is empty; give the file with the connection string" },
    { "[database d]\nkind=mysql", "database.d.kind must be sqlite or postgres" },
    { "[database d]\npath=/a.db\nrows_max=0", "database.d.rows_max must be 1 to 100000000" },
    { "[database d]\npath=/a.db\ntimeout=11m", "database.d.timeout must be 1s to 10m" },
};

static void settings_are_checked_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(wholes); i++) {
        AUTO(conf_clear) struct conf c;
        struct err e = { 0 };
        conf_init(&c);
        if (conf_parse(&c, wholes[i].text, &e) < 0)
            fail_msg("%s: %s", wholes[i].text, e.msg);
        int rc = conf_check(&c, &e);
        if (rc != (wholes[i].msg ? -1 : 0))
            fail_msg("%s: %s", wholes[i].text, e.msg);
        if (wholes[i].msg)
            assert_string_equal(e.msg, wholes[i].msg);
    }
}

static void keys_travel_in_the_clear_to_this_machine_only(void **state)
{
    (void)state;
    static const char plain[] = "must be https:// unless the host is this machine or allow_plain_http is yes";
    static const char host[] = "must name a host, without user or password";
    static const char base[] = "must be a base address without blanks, ? and #";
    static const char scheme[] = "must begin with https:// or http://";
    static const struct {
        const char *url, *problem;
    } cases[] = {
        { "https://api.example.com/v1", NULL },
        { "HTTPS://api.example.com:8443", NULL },
        { "https://[2001:db8::1]:8443/v1", NULL },
        { "http://127.0.0.1:8080/v1", NULL },
        { "http://127.1.2.3", NULL },
        { "http://localhost:11434", NULL },
        { "http://LocalHost/", NULL },
        { "http://[::1]:8080/v1", NULL },
        { "http://api.example.com", plain },
        { "http://127.0.0.1.example.com/", plain },
        { "http://localhost.example.com", plain },
        { "http://128.0.0.1", plain },
        { "http://127.1", plain }, /* curl may take it for loopback, we need not */
        { "http://0x7f000001", plain },
        { "http://[::2]", plain },
        { "http://[::1", host },
        { "http://[::1]x", host },
        { "http://[]", host },
        { "http://127.0.0.1:80:90", host },
        { "http://127.0.0.1@example.com/", host },
        { "https://user:word@example.com/", host },
        { "http://127.0.0.1\\@example.com/", base },
        { "http://127.0.0.1#@example.com/", base },
        { "http://127.0.0.1?@example.com/", base },
        { "https://exam ple.com", base },
        { "https://ex\xc3\xa4mple.com", base },
        { "https://", host },
        { "https:///v1", host },
        { "https://:443", host },
        { "https://h:44a", host },
        { "file:///etc/passwd", scheme },
        { "api.example.com", scheme },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        AUTO(conf_clear) struct conf c;
        struct err e = { 0 };
        autofree char *text = xasprintf(REMOTE "%s", cases[i].url);
        conf_init(&c);
        assert_int_equal(conf_parse(&c, text, &e), 0);
        if (conf_check(&c, &e) != (cases[i].problem ? -1 : 0))
            fail_msg("%s: %s", cases[i].url, e.msg);
        if (cases[i].problem)
            assert_string_equal(e.msg + strlen("model.m.url "), cases[i].problem);
        if (cases[i].problem == plain) {
            assert_int_equal(conf_set(&c, "model.m.allow_plain_http=yes", &e), 0);
            assert_int_equal(conf_check(&c, &e), 0);
        }
    }
}

static void a_host_name_has_a_limit(void **state)
{
    (void)state;
    AUTO(conf_clear) struct conf c;
    struct err e;
    autofree char *text = xasprintf(REMOTE "https://%0*d/", 300, 0);
    conf_init(&c);
    assert_int_equal(conf_parse(&c, text, &e), 0);
    assert_int_equal(conf_check(&c, &e), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_checked_together),
        cmocka_unit_test(keys_travel_in_the_clear_to_this_machine_only),
        cmocka_unit_test(a_host_name_has_a_limit),
    };
    return cmocka_run_group_tests_name("conf_check", tests, NULL, NULL);
}
