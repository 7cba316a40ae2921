/* The built-in planner as a model: a call, its answer, looking words up, failures, the last word, cancelling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "builtin_fixture.h"
#include "cell.h"
#include "conf.h"
#include "loop.h"
#include "model.h"

struct scene {
    struct loop *loop;
    struct model *model;
    struct json *files;
    bool done;
    enum model_stop stop;
    char *text, *code, *raw;
};

static void done(void *ud, struct model_answer *a, const struct err *e)
{
    struct scene *s = ud;
    assert_null(e);
    s->done = true;
    s->stop = a->stop;
    s->text = xstrdup(a->msg.text);
    s->raw = a->msg.raw ? xstrdup(a->msg.raw) : NULL;
    s->code = NULL;
    if (!a->msg.call_n)
        return;
    autojson struct json *args = NULL;
    struct err parse;
    assert_string_equal(a->msg.calls[0].name, "run_python");
    assert_int_equal(json_parse(&args, a->msg.calls[0].args, strlen(a->msg.calls[0].args), 1 << 20, &parse), 0);
    s->code = xstrdup(json_str_or(args, "code", ""));
}

static void open_scene(struct scene *s, const char *profiles)
{
    struct err e = { 0 };
    struct conf c;
    *s = (struct scene){ 0 };
    conf_init(&c);
    assert_int_equal(loop_new(&s->loop, NULL, NULL, &e), 0);
    if (model_builtin.open(&s->model, s->loop, &c, NULL, &e) < 0) { /* run from elsewhere than the build tree */
        assert_int_equal(conf_set(&c, "service.prompts_dir=prompts", &e), 0);
        if (model_builtin.open(&s->model, s->loop, &c, NULL, &e) < 0)
            fail_msg("%s", e.msg);
    }
    conf_clear(&c);
    assert_int_equal(json_parse(&s->files, profiles, strlen(profiles), 1 << 20, &e), 0);
}

static void forget(struct scene *s)
{
    free(s->text);
    free(s->code);
    free(s->raw);
    s->text = s->code = s->raw = NULL;
    s->done = false;
}

static void close_scene(struct scene *s)
{
    forget(s);
    model_builtin.close(s->model);
    json_free(s->files);
    loop_free(s->loop);
}

static void ask(struct scene *s, const struct model_ask *a)
{
    struct err e = { 0 };
    struct model_call *call;
    const struct model_events events = { .done = done };
    forget(s);
    assert_int_equal(model_builtin.ask(&call, s->model, a, &events, s, &e), 0);
    assert_false(s->done); /* never from inside ask */
    while (!s->done)
        assert_int_equal(loop_once(s->loop, 1000, &e), 0);
}

static struct model_msg msg(enum model_role role, const char *text)
{
    autofree char *copy = xstrdup(text);
    return (struct model_msg){ .role = role, .text = take(copy) };
}

static void a_request_becomes_a_call_and_its_output_an_answer(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "[" TIPS_PROFILE "]");
    struct model_msg msgs[3] = { msg(MODEL_USER, "[Ann]: average tip by day"),
                                 { .role = MODEL_ASSISTANT },
                                 { .role = MODEL_TOOL } };
    struct model_ask a = { .msgs = msgs, .msg_n = 1, .files = s.files, .request = "average tip by day", .seed = "t1" };
    ask(&s, &a);
    assert_non_null(strstr(s.code, "groups[\"tip\"].mean()"));
    msgs[1].text = xstrdup("");
    msgs[1].call_n = 1;
    msgs[2].text = xstrdup("output, as the agent words it");
    struct cell cell;
    cell_init(&cell);
    free(cell.out);
    cell.out = xstrdup("| day | tip |\n|:--|--:|\n| Sun | 3.2 |\n- rows: 4\nsome warning\n");
    a.msg_n = 3;
    a.cell = &cell;
    ask(&s, &a);
    assert_null(s.code);
    assert_int_equal(s.stop, MODEL_STOP_END);
    assert_non_null(strstr(s.text, "| Sun | 3.2 |"));
    assert_non_null(strstr(s.text, "- rows: 4"));
    assert_null(strstr(s.text, "some warning"));
    assert_non_null(strstr(s.text, "How I read it"));
    assert_non_null(strstr(s.raw, "average tip by day"));
    cell_clear(&cell);
    for (size_t i = 0; i < 3; i++)
        free(msgs[i].text);
    close_scene(&s);
}

static void words_that_may_be_values_are_looked_up_once(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "[" TITANIC_PROFILE "]");
    struct model_msg msgs[3] = { msg(MODEL_USER, "x"), msg(MODEL_ASSISTANT, ""), msg(MODEL_TOOL, "") };
    struct model_ask a = { .msgs = msgs, .msg_n = 1, .files = s.files, .request = "average age of Zork", .seed = "t" };
    ask(&s, &a);
    assert_non_null(strstr(s.code, "words = [\"Zork\"]"));
    free(msgs[2].text);
    msgs[2].text = xstrdup("looked up: [\"Zork\"]\nfound: [\"Zork\", \"titanic.csv\", \"Name\", \"ZORK\"]\n");
    a.msg_n = 3;
    ask(&s, &a);
    assert_non_null(strstr(s.code, "df[\"Name\"] == \"ZORK\""));
    free(msgs[2].text);
    msgs[2].text = xstrdup("looked up: [\"Zork\"]\n");
    ask(&s, &a);
    assert_null(s.code);
    assert_int_equal(s.stop, MODEL_STOP_REFUSED);
    assert_non_null(strstr(s.text, "\"Zork\""));
    for (size_t i = 0; i < 3; i++)
        free(msgs[i].text);
    close_scene(&s);
}

static void a_failed_program_is_told_in_one_line(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "[" TIPS_PROFILE "]");
    struct model_msg msgs[3] = { msg(MODEL_USER, "x"), msg(MODEL_ASSISTANT, ""), msg(MODEL_TOOL, "Traceback ...") };
    msgs[2].failed = true;
    struct cell cell;
    cell_init(&cell);
    cell.status = CELL_ERROR;
    cell.error_name = xstrdup("KeyError");
    cell.error_value = xstrdup("'tip'\nsecond line");
    struct model_ask a = {
        .msgs = msgs, .msg_n = 3, .files = s.files, .request = "average tip", .cell = &cell, .seed = "t"
    };
    ask(&s, &a);
    assert_non_null(strstr(s.text, "KeyError: 'tip'"));
    assert_null(strstr(s.text, "second line"));
    assert_null(strstr(s.text, "Traceback"));
    assert_null(s.code);
    cell_clear(&cell);
    for (size_t i = 0; i < 3; i++)
        free(msgs[i].text);
    close_scene(&s);
}

static void when_it_must_not_call_it_says_so(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "[" TIPS_PROFILE "]");
    struct model_msg m = msg(MODEL_USER, "x");
    struct model_ask a = {
        .msgs = &m, .msg_n = 1, .files = s.files, .request = "average tip", .tools = MODEL_TOOLS_NONE, .seed = "t"
    };
    ask(&s, &a);
    assert_null(s.code);
    assert_true(strlen(s.text) > 20);
    free(m.text);
    close_scene(&s);
}

static void refusals_list_the_columns_and_what_can_be_done(void **state)
{
    (void)state;
    static const struct {
        const char *files, *request, *says[3];
    } table[] = {
        { "[" TIPS_PROFILE "]", "average salary", { "\"salary\"", "`total_bill`", "What I can do" } },
        { "[" TIPS_PROFILE "]", "平均工资", { "“工资”", "`total_bill`", "我能做的" } },
        { "[]", "average tip", { "upload a file", "No language model", "" } },
        { "[{\"path\":\"a.png\",\"name\":\"a.png\",\"kind\":\"image\"}]",
          "average tip",
          { "upload a file", "`a.png`", "" } },
        { "[" TIPS_PROFILE "]", "hello", { "built-in planner", "What I can do", "" } },
    };
    for (size_t i = 0; i < countof(table); i++) {
        struct scene s;
        open_scene(&s, table[i].files);
        struct model_msg m = msg(MODEL_USER, "x");
        struct model_ask a = { .msgs = &m,
                               .msg_n = 1,
                               .files = s.files,
                               .request = table[i].request,
                               .tools = MODEL_TOOLS_NONE,
                               .seed = "t" };
        ask(&s, &a);
        const bool greeting = strcmp(table[i].request, "hello") == 0; /* answered, not refused */
        assert_int_equal(s.stop, greeting ? MODEL_STOP_END : MODEL_STOP_REFUSED);
        for (size_t k = 0; k < countof(table[i].says); k++)
            if (!strstr(s.text, table[i].says[k]))
                fail_msg("%s: no %s in\n%s", table[i].request, table[i].says[k], s.text);
        free(m.text);
        close_scene(&s);
    }
}

static void a_request_that_is_too_long_is_refused(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, "[" TIPS_PROFILE "]");
    struct str text = STR_INIT(1 << 20);
    for (int i = 0; i < 3000; i++)
        str_puts(&text, "average tip by day and ");
    struct model_msg m = msg(MODEL_USER, "x");
    struct model_ask a = { .msgs = &m, .msg_n = 1, .files = s.files, .request = str_peek(&text), .seed = "t" };
    ask(&s, &a);
    assert_null(s.code);
    assert_non_null(strstr(s.text, "too long"));
    str_clear(&text);
    free(m.text);
    close_scene(&s);
}

static void a_cancelled_call_does_not_come_back(void **state)
{
    (void)state;
    struct scene s;
    struct err e = { 0 };
    struct model_call *call;
    open_scene(&s, "[" TIPS_PROFILE "]");
    struct model_msg m = msg(MODEL_USER, "x");
    const struct model_events events = { .done = done };
    struct model_ask a = { .msgs = &m, .msg_n = 1, .files = s.files, .request = "average tip", .seed = "t" };
    assert_int_equal(model_builtin.ask(&call, s.model, &a, &events, &s, &e), 0);
    model_builtin.cancel(call);
    assert_int_equal(loop_once(s.loop, 0, &e), 0);
    assert_false(s.done);
    model_builtin.cancel(NULL);
    free(m.text);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_becomes_a_call_and_its_output_an_answer),
        cmocka_unit_test(words_that_may_be_values_are_looked_up_once),
        cmocka_unit_test(a_failed_program_is_told_in_one_line),
        cmocka_unit_test(when_it_must_not_call_it_says_so),
        cmocka_unit_test(refusals_list_the_columns_and_what_can_be_done),
        cmocka_unit_test(a_request_that_is_too_long_is_refused),
        cmocka_unit_test(a_cancelled_call_does_not_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
