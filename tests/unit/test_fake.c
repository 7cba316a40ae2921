/* The scripted sandbox, on a clock of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "conf.h"
#include "json.h"
#include "loop.h"
#include "sandbox.h"

struct fixture {
    int64_t now_ms;
    struct loop *l;
    struct conf conf;
    struct sandbox *s;
    struct box *b;
    char dir[32];
    int dir_fd;
    int ready_n, done_n, note_n;
    struct cell cell;
    struct err err;
    struct str reply, progress;
};

static int64_t fake_clock(void *ud)
{
    return ((const struct fixture *)ud)->now_ms;
}

static void once(struct fixture *f)
{
    struct err e = { 0 };
    assert_int_equal(loop_once(f->l, 0, &e), 0);
}

static void on_ready(void *ud, const struct err *e)
{
    assert_null(e);
    ((struct fixture *)ud)->ready_n++;
}

static void begin(struct fixture *f, const char *script)
{
    struct err e = { 0 };
    const struct box_limits lim = { 1 << 30, 1 << 28, 64, 1, 0 };
    *f = (struct fixture){ .now_ms = 1000, .dir = "/tmp/test_fake.XXXXXX" };
    f->reply = f->progress = (struct str)STR_INIT(1 << 16);
    cell_init(&f->cell);
    conf_init(&f->conf);
    assert_non_null(mkdtemp(f->dir));
    f->dir_fd = open(f->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    sandbox_fake_script(script);
    assert_int_equal(loop_new(&f->l, fake_clock, f, &e), 0);
    assert_int_equal(sandbox_fake.start(&f->s, f->l, &f->conf, on_ready, f, &e), 0);
    assert_int_equal(f->ready_n, 0);
    once(f);
    assert_int_equal(f->ready_n, 1);
    assert_int_equal(sandbox_fake.open(&f->b, f->s, &lim, f->dir_fd, f->dir, &e), 0);
}

static void end(struct fixture *f)
{
    sandbox_fake.stop(f->s);
    loop_free(f->l);
    conf_clear(&f->conf);
    cell_clear(&f->cell);
    str_clear(&f->reply);
    str_clear(&f->progress);
    assert_int_equal(close(f->dir_fd), 0);
    autofree char *rm = xasprintf("rm -rf %s", f->dir);
    assert_int_equal(system(rm), 0); /* NOLINT(cert-env33-c) */
    sandbox_fake_script(NULL);
}

static void on_output(void *ud, int stream, const char *text, size_t n)
{
    (void)stream;
    str_add(&((struct fixture *)ud)->progress, text, n);
}

static void on_done(void *ud, const struct box_reply *r, const struct err *e)
{
    struct fixture *f = ud;
    f->done_n++;
    f->err = e ? *e : (struct err){ 0 };
    cell_clear(&f->cell);
    str_clear(&f->reply);
    if (r && r->cell) {
        f->cell = *r->cell;
        *r->cell = (struct cell){ 0 };
    }
    if (r && r->reply)
        json_print(&f->reply, r->reply);
}

static const struct box_events events = { .output = on_output, .done = on_done };

static void ask(struct fixture *f, const struct box_request *r)
{
    struct err e = { 0 };
    assert_int_equal(sandbox_fake.ask(f->b, r, &events, f, &e), 0);
}

static void ask_cell(struct fixture *f, const char *code)
{
    ask(f, &(struct box_request){ .op = BOX_OP_CELL, .text = code, .text_n = strlen(code), .number = 1 });
}

static void cells_get_the_lines_in_order_and_then_an_empty_ok(void **state)
{
    (void)state;
    struct fixture f;
    begin(
        &f,
        "{\"stdout\":\"one\"}\n\n{\"status\":\"error\",\"error\":{\"name\":\"E\",\"line\":4},\"state\":\"rolled_back\"}\n");
    ask_cell(&f, "print(1)");
    assert_int_equal(f.done_n, 0);
    once(&f);
    assert_string_equal(f.cell.out, "one");
    ask_cell(&f, "print(2)");
    once(&f);
    assert_int_equal(f.cell.status, CELL_ERROR);
    assert_int_equal(f.cell.error_line, 4);
    assert_int_equal(f.cell.state, CELL_ROLLED_BACK);
    ask_cell(&f, "print(3)");
    once(&f);
    assert_int_equal(f.cell.status, CELL_OK);
    assert_string_equal(sandbox_fake_asked(0), "cell print(1)");
    assert_string_equal(sandbox_fake_asked(2), "cell print(3)");
    assert_null(sandbox_fake_asked(3));
    end(&f);
}

static void a_line_can_take_its_time_and_tell_progress(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, "{\"delay_ms\":500,\"output\":\"working\"}");
    ask_cell(&f, "x");
    f.now_ms += 499;
    once(&f);
    assert_int_equal(f.done_n, 0);
    f.now_ms++;
    once(&f);
    assert_int_equal(f.done_n, 1);
    assert_string_equal(str_peek(&f.progress), "working");
    end(&f);
}

static void figures_and_files_are_real(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, "{\"figures\":[{\"path\":\"figure-1-1.png\",\"width\":640,\"height\":480,\"title\":\"T\"}],"
              "\"files\":[{\"path\":\"sub/a.csv\",\"content\":\"x,y\"}],\"notes\":[\"n\"]}");
    ask_cell(&f, "x");
    once(&f);
    assert_int_equal(f.cell.figures.n, 1);
    assert_int_equal(f.cell.figures.at[0].width, 640);
    assert_int_equal(f.cell.files.at[0].bytes, 3);
    assert_int_equal(f.cell.note_n, 1);
    struct stat st;
    assert_int_equal(stat(f.cell.files.at[0].path, &st), 0);
    assert_int_equal(st.st_size, 3);
    assert_int_equal(stat(f.cell.figures.at[0].path, &st), 0);
    assert_true(st.st_size > 60);
    end(&f);
}

static void other_requests_take_the_lines_of_their_own(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, "{\"stdout\":\"cell\"}\n{\"op\":\"intake\",\"profiles\":[{\"name\":\"a.csv\"}]}\n");
    ask(&f, &(struct box_request){ .op = BOX_OP_PUT, .name = "a.csv", .fd = 0 });
    once(&f);
    assert_string_equal(str_peek(&f.reply), "{}");
    ask(&f, &(struct box_request){ .op = BOX_OP_INTAKE, .name = "a.csv" });
    once(&f);
    assert_string_equal(str_peek(&f.reply), "{\"op\":\"intake\",\"profiles\":[{\"name\":\"a.csv\"}]}");
    ask_cell(&f, "x");
    once(&f);
    assert_string_equal(f.cell.out, "cell");
    assert_string_equal(sandbox_fake_asked(1), "intake a.csv");
    end(&f);
}

static void a_line_can_fail_and_lose_the_box(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f, "{\"fail\":\"keeper died\",\"lost\":true}");
    ask_cell(&f, "x");
    once(&f);
    assert_int_equal(f.err.kind, ERR_SANDBOX);
    assert_string_equal(f.err.msg, "keeper died");
    assert_true(sandbox_fake.lost(f.b));
    ask_cell(&f, "y");
    once(&f);
    assert_false(sandbox_fake.lost(f.b));
    end(&f);
}

static void what_hangs_can_be_cancelled_or_closed(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = { 0 };
    begin(&f, "{\"hang\":true}\n{\"hang\":true}");
    sandbox_fake.cancel(f.b);
    ask_cell(&f, "x");
    f.now_ms += 1000000;
    once(&f);
    assert_int_equal(f.done_n, 0);
    const struct box_request r = { .op = BOX_OP_VARS };
    assert_int_equal(sandbox_fake.ask(f.b, &r, &events, &f, &e), -1);
    sandbox_fake.cancel(f.b);
    once(&f);
    assert_int_equal(f.cell.status, CELL_CANCELLED);
    ask_cell(&f, "y");
    sandbox_fake.close(f.b);
    once(&f);
    assert_int_equal(f.done_n, 1);
    end(&f);
}

static void on_note(void *ud, const char *name, const char *outcome, const char *detail)
{
    (void)name;
    (void)detail;
    assert_string_equal(outcome, "skip");
    ((struct fixture *)ud)->note_n++;
}

static void on_checked(void *ud, const struct err *e)
{
    assert_null(e);
    ((struct fixture *)ud)->done_n++;
}

static void the_check_says_that_nothing_is_run(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = { 0 };
    begin(&f, "");
    assert_string_equal(json_str_or(sandbox_fake.report(f.s), "tier", ""), "fake");
    assert_int_equal(sandbox_fake.check(f.s, on_note, on_checked, &f, &e), 0);
    once(&f);
    assert_int_equal(f.note_n, 1);
    assert_int_equal(f.done_n, 1);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_get_the_lines_in_order_and_then_an_empty_ok),
        cmocka_unit_test(a_line_can_take_its_time_and_tell_progress),
        cmocka_unit_test(figures_and_files_are_real),
        cmocka_unit_test(other_requests_take_the_lines_of_their_own),
        cmocka_unit_test(a_line_can_fail_and_lose_the_box),
        cmocka_unit_test(what_hangs_can_be_cancelled_or_closed),
        cmocka_unit_test(the_check_says_that_nothing_is_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
