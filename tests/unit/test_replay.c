/* The recorded model: in order, exact, and strict about what it is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "conf.h"
#include "loop.h"
#include "model.h"

struct scene {
    int64_t now_ms;
    struct loop *l;
    struct conf conf;
    struct model *model;
    char path[64];
    struct model_call *call;
    /* what the last answer was */
    int answers;
    struct err err;
    char text[100], call_id[32], call_args[100];
    size_t call_n;
    enum model_stop stop;
    struct model_usage usage;
};

static int64_t clock_of(void *ud)
{
    return ((const struct scene *)ud)->now_ms;
}

static void on_done(void *ud, struct model_answer *a, const struct err *e)
{
    struct scene *s = ud;
    s->answers++;
    s->err = e ? *e : (struct err){ 0 };
    if (!a)
        return;
    (void)snprintf(s->text, sizeof(s->text), "%s", a->msg.text);
    s->call_n = a->msg.call_n;
    s->stop = a->stop;
    s->usage = a->usage;
    if (a->msg.call_n) {
        (void)snprintf(s->call_id, sizeof(s->call_id), "%s", a->msg.calls[0].id);
        (void)snprintf(s->call_args, sizeof(s->call_args), "%s", a->msg.calls[0].args);
    }
}

static int scene_try(struct scene *s, const char *recording, struct err *e)
{
    *s = (struct scene){ .now_ms = 5000 };
    (void)snprintf(s->path, sizeof(s->path), "/tmp/test-replay-XXXXXX");
    const int fd = mkstemp(s->path);
    assert_true(fd >= 0 && write_all(fd, recording, strlen(recording)) == 0 && close(fd) == 0);
    conf_init(&s->conf);
    assert_int_equal(loop_new(&s->l, clock_of, s, e), 0);
    const struct conf_model section = { .section = (char[]){ "tape" }, .url = s->path };
    return model_replay.open(&s->model, s->l, &s->conf, &section, e);
}

static void scene_open(struct scene *s, const char *recording)
{
    struct err e = { 0 };
    if (scene_try(s, recording, &e) < 0)
        fail_msg("%s", e.msg);
}

static void scene_close(struct scene *s)
{
    model_replay.close(s->model);
    loop_free(s->l);
    conf_clear(&s->conf);
    assert_int_equal(unlink(s->path), 0);
}

static void pass(struct scene *s, int64_t ms)
{
    struct err e = { 0 };
    s->now_ms += ms;
    for (int i = 0; i < 3; i++)
        assert_int_equal(loop_once(s->l, 0, &e), 0);
}

static void ask(struct scene *s, const char *last, enum model_tools tools)
{
    static const struct model_events events = { .done = on_done };
    struct err e = { 0 };
    autofree char *text = xstrdup(last);
    const struct model_msg msg = { .role = MODEL_USER, .text = text };
    const struct model_ask q = { .msgs = &msg, .msg_n = 1, .tools = tools };
    const int before = s->answers;
    assert_int_equal(model_replay.ask(&s->call, s->model, &q, &events, s, &e), 0);
    assert_int_equal(s->answers, before); /* never from inside */
    pass(s, 0);
}

static void answers_come_in_order_and_then_no_more(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, "# a comment\n{\"text\":\"one\",\"usage\":{\"in\":3,\"cached\":1,\"out\":2}}\n\n{\"text\":\"two\"}");
    ask(&s, "a", MODEL_TOOLS_AUTO);
    assert_string_equal(s.text, "one");
    assert_int_equal(s.usage.in + s.usage.cached + s.usage.out, 6);
    ask(&s, "b", MODEL_TOOLS_AUTO);
    assert_string_equal(s.text, "two");
    ask(&s, "c", MODEL_TOOLS_AUTO);
    assert_int_equal(s.err.kind, ERR_DATA);
    assert_non_null(strstr(s.err.msg, "no answer is left"));
    scene_close(&s);
}

static void calls_are_given_as_objects_or_as_the_text_that_was_sent(void **state)
{
    struct scene s;
    (void)state;
    scene_open(
        &s,
        "{\"calls\":[{\"name\":\"run_python\",\"args\":{\"code\":\"1\"}}]}\n{\"calls\":[{\"id\":\"x\",\"args\":\"{\\\"co\"}],\"stop\":\"length\"}\n"
        "{\"text\":\"no\",\"stop\":\"refused\"}\n");
    ask(&s, "a", MODEL_TOOLS_AUTO);
    assert_int_equal(s.call_n, 1);
    assert_string_equal(s.call_args, "{\"code\":\"1\"}");
    assert_string_equal(s.call_id, "r1_1");
    ask(&s, "a", MODEL_TOOLS_AUTO);
    assert_string_equal(s.call_args, "{\"co");
    assert_string_equal(s.call_id, "x");
    assert_int_equal(s.stop, MODEL_STOP_LENGTH);
    ask(&s, "a", MODEL_TOOLS_AUTO);
    assert_int_equal(s.stop, MODEL_STOP_REFUSED);
    scene_close(&s);
}

static void an_unexpected_ask_names_the_line(void **state)
{
    struct scene s;
    (void)state;
    scene_open(
        &s,
        "{\"text\":\"1\",\"expect\":\"rows\"}\n{\"text\":\"2\",\"expect\":\"rows\"}\n{\"text\":\"3\",\"tools\":\"none\"}\n");
    ask(&s, "how many rows?", MODEL_TOOLS_AUTO);
    assert_int_equal(s.err.kind, ERR_NONE);
    ask(&s, "how many columns?", MODEL_TOOLS_AUTO);
    assert_int_equal(s.err.kind, ERR_DATA);
    assert_non_null(strstr(s.err.msg, "line 2"));
    ask(&s, "x", MODEL_TOOLS_AUTO);
    assert_non_null(strstr(s.err.msg, "line 3 expects tools none"));
    scene_close(&s);
}

static void recorded_errors_have_their_kind(void **state)
{
    static const struct {
        const char *line;
        enum err_kind kind;
        long retry_ms;
    } cases[] = {
        { "{\"error\":{}}", ERR_NET, 0 },
        { "{\"error\":{\"kind\":\"limit\",\"retry_ms\":250}}", ERR_LIMIT, 250 },
        { "{\"error\":{\"kind\":\"refused\"}}", ERR_REFUSED, 0 },
        { "{\"error\":{\"kind\":\"timeout\"}}", ERR_TIMEOUT, 0 },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct scene s;
        scene_open(&s, cases[i].line);
        ask(&s, "a", MODEL_TOOLS_AUTO);
        assert_int_equal(s.err.kind, cases[i].kind);
        assert_int_equal(s.err.retry_ms, cases[i].retry_ms);
        scene_close(&s);
    }
}

static void a_delayed_answer_can_be_cancelled(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, "{\"text\":\"1\",\"delay_ms\":100}\n{\"text\":\"2\",\"delay_ms\":100}\n");
    ask(&s, "a", MODEL_TOOLS_AUTO);
    pass(&s, 99);
    assert_int_equal(s.answers, 0);
    pass(&s, 1);
    assert_int_equal(s.answers, 1);
    ask(&s, "a", MODEL_TOOLS_AUTO);
    model_replay.cancel(s.call);
    model_replay.cancel(NULL);
    pass(&s, 1000);
    assert_int_equal(s.answers, 1);
    scene_close(&s);
}

static void a_recording_that_cannot_be_read_is_a_mistake_in_the_settings(void **state)
{
    struct scene s;
    struct err e = { 0 };
    const struct conf_model nowhere = { .section = (char[]){ "tape" }, .url = (char[]){ "/nonexistent/tape" } };
    (void)state;
    assert_int_equal(scene_try(&s, "{\"text\":\"1\"}\nnot JSON\n", &e), -1);
    assert_int_equal(e.kind, ERR_CONFIG);
    assert_non_null(strstr(e.msg, "line 2"));
    assert_int_equal(model_replay.open(&s.model, s.l, &s.conf, &nowhere, &e), -1);
    assert_int_equal(e.kind, ERR_CONFIG);
    s.model = NULL;
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_in_order_and_then_no_more),
        cmocka_unit_test(calls_are_given_as_objects_or_as_the_text_that_was_sent),
        cmocka_unit_test(an_unexpected_ask_names_the_line),
        cmocka_unit_test(recorded_errors_have_their_kind),
        cmocka_unit_test(a_delayed_answer_can_be_cancelled),
        cmocka_unit_test(a_recording_that_cannot_be_read_is_a_mistake_in_the_settings),
    };
    return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
