/* A cell and its JSON, which other programs read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cell.h"
#include "json.h"

static void assert_json(const struct cell *c, const char *code, const char *expected)
{
    autojson struct json *o = cell_to_json(c, code);
    AUTO(str_clear) struct str s = STR_INIT(64 << 10);
    json_print(&s, o);
    assert_string_equal(str_peek(&s), expected);
}

static void an_empty_cell_has_every_key_of_the_contract_in_order(void **state)
{
    (void)state;
    AUTO(cell_clear) struct cell c;
    cell_init(&c);
    assert_json(
        &c, NULL,
        "{\"id\":null,\"cell\":0,\"status\":\"ok\",\"stdout\":\"\",\"stderr\":\"\",\"result\":null,\"error\":null,"
        "\"figures\":[],\"files\":[],\"state\":\"kept\",\"truncated\":false,\"took_ms\":0,\"start_ms\":0,"
        "\"peak_bytes\":0}");
}

static void fill(struct cell *c)
{
    cell_init(c);
    c->id = xstrdup("a");
    c->number = 3;
    c->status = CELL_ERROR;
    c->state = CELL_ROLLED_BACK;
    free(c->out);
    c->out = xstrdup("o\n");
    free(c->err);
    c->err = xstrdup("e");
    c->truncated = true;
    c->result_html = xstrdup("<b>");
    c->error_name = xstrdup("KeyError");
    c->error_value = xstrdup("'x'");
    c->error_traceback = xstrdup("tb");
    c->error_line = 2;
    *artifacts_add(&c->figures) = (struct artifact){
        .path = xstrdup("/o/f.png"),
        .name = xstrdup("f.png"),
        .bytes = 9,
        .width = 640,
        .height = 480,
        .title = xstrdup("T"),
    };
    *artifacts_add(&c->files) = (struct artifact){ .path = xstrdup("/o/a.csv"), .name = xstrdup("a.csv"), .bytes = 12 };
    c->notes = xcalloc(1, sizeof *c->notes);
    c->notes[c->note_n++] = xstrdup("n");
    c->why = xstrdup("w");
    c->took_ms = 12.34567;
    c->start_ms = 0.8;
    c->peak_bytes = 123;
}

static void a_full_cell_with_code_says_everything(void **state)
{
    (void)state;
    AUTO(cell_clear) struct cell c;
    fill(&c);
    assert_json(&c, "x = 1",
                "{\"id\":\"a\",\"cell\":3,\"code\":\"x = 1\",\"status\":\"error\",\"stdout\":\"o\\n\",\"stderr\":\"e\","
                "\"result\":{\"text/html\":\"<b>\"},"
                "\"error\":{\"name\":\"KeyError\",\"value\":\"'x'\",\"traceback\":\"tb\",\"line\":2},"
                "\"figures\":[{\"path\":\"/o/f.png\",\"width\":640,\"height\":480,\"title\":\"T\"}],"
                "\"files\":[{\"path\":\"/o/a.csv\",\"bytes\":12}],\"state\":\"rolled_back\",\"truncated\":true,"
                "\"took_ms\":12.346,\"start_ms\":0.8,\"peak_bytes\":123,\"why\":\"w\",\"notes\":[\"n\"]}");
}

static void what_is_not_known_is_null(void **state)
{
    (void)state;
    AUTO(cell_clear) struct cell c;
    cell_init(&c);
    c.status = CELL_ERROR;
    c.error_name = xstrdup("E");
    c.result_text = xstrdup("7");
    *artifacts_add(&c.figures) =
        (struct artifact){ .path = xstrdup("p"), .width = 1, .height = 1, .summary = xstrdup("s") };
    assert_json(
        &c, NULL,
        "{\"id\":null,\"cell\":0,\"status\":\"error\",\"stdout\":\"\",\"stderr\":\"\",\"result\":{\"text/plain\":\"7\"},"
        "\"error\":{\"name\":\"E\",\"value\":\"\",\"traceback\":\"\",\"line\":null},"
        "\"figures\":[{\"path\":\"p\",\"width\":1,\"height\":1,\"title\":\"\",\"summary\":\"s\"}],\"files\":[],"
        "\"state\":\"kept\",\"truncated\":false,\"took_ms\":0,\"start_ms\":0,\"peak_bytes\":0}");
}

static void a_cleared_cell_is_empty_and_may_be_cleared_again(void **state)
{
    (void)state;
    struct cell c;
    fill(&c);
    cell_clear(&c);
    assert_null(c.out);
    assert_int_equal(c.figures.n, 0);
    cell_clear(&c);
}

static void artifacts_grow_and_are_zeroed_even_after_clearing(void **state)
{
    (void)state;
    struct artifacts a = { 0 };
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 100; i++) {
            struct artifact *x = artifacts_add(&a);
            assert_null(x->path);
            assert_int_equal(x->width, 0);
            x->path = xasprintf("%d", i);
            x->width = i + 1;
        }
        assert_string_equal(a.at[99].path, "99");
        artifacts_clear(&a);
        assert_int_equal(a.n, 0);
    }
}

static void every_status_and_state_has_its_word(void **state)
{
    (void)state;
    static const char *const status[] = { "ok", "error", "timeout", "oom", "crash", "limit", "cancelled" };
    static const char *const left[] = { "kept", "rolled_back", "lost" };
    for (size_t i = 0; i < countof(status); i++)
        assert_string_equal(cell_status_name((enum cell_status)i), status[i]);
    for (size_t i = 0; i < countof(left); i++)
        assert_string_equal(cell_state_name((enum cell_state)i), left[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_cell_has_every_key_of_the_contract_in_order),
        cmocka_unit_test(a_full_cell_with_code_says_everything),
        cmocka_unit_test(what_is_not_known_is_null),
        cmocka_unit_test(a_cleared_cell_is_empty_and_may_be_cleared_again),
        cmocka_unit_test(artifacts_grow_and_are_zeroed_even_after_clearing),
        cmocka_unit_test(every_status_and_state_has_its_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
