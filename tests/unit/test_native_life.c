/* The native sandbox: other requests, cancelling, closing, and a keeper that fails. */
#include <sys/mman.h>

#include "native_fixture.h"
#include "native_keeper.h"

/* ---- other requests ---- */

static void put_hands_over_the_file(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    int fd = memfd_create("put", MFD_CLOEXEC);
    assert_int_equal(write_all(fd, "the bytes", 9), 0);
    const struct box_request r = { .op = BOX_OP_PUT, .name = "data.csv", .fd = fd };
    ask(&f, &r);
    pump(&f, &f.done_n, 1);
    assert_string_equal(str_peek(&f.reply), "{\"status\":\"ok\",\"content\":\"the bytes\"}");
    assert_int_equal(close(fd), 0);
    end(&f);
}

static void intake_vars_and_reset_answer_with_json(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    ask(&f, &(struct box_request){ .op = BOX_OP_INTAKE, .name = "data.csv" });
    pump(&f, &f.done_n, 1);
    assert_string_equal(str_peek(&f.reply), "{\"status\":\"ok\",\"profiles\":[{\"name\":\"a\"}]}");
    ask(&f, &(struct box_request){ .op = BOX_OP_VARS });
    pump(&f, &f.done_n, 2);
    assert_string_equal(str_peek(&f.reply), "{\"status\":\"ok\",\"vars\":[]}");
    ask(&f, &(struct box_request){ .op = BOX_OP_RESET });
    pump(&f, &f.done_n, 3);
    assert_string_equal(str_peek(&f.reply), "{\"status\":\"ok\"}");
    end(&f);
}

static void a_file_that_cannot_be_worked_on_is_bad_data_not_a_broken_sandbox(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    ask(&f, &(struct box_request){ .op = BOX_OP_INTAKE, .name = "broken.csv" });
    pump(&f, &f.done_n, 1);
    assert_int_equal(f.done_err.kind, ERR_DATA);
    assert_string_equal(f.done_err.msg, "ValueError: no table");
    ask(&f, &(struct box_request){ .op = BOX_OP_INTAKE, .name = "bomb.zip" });
    pump(&f, &f.done_n, 2);
    assert_int_equal(f.done_err.kind, ERR_DATA);
    assert_non_null(strstr(f.done_err.msg, "too big"));
    end(&f);
}

static void on_note(void *ud, const char *name, const char *outcome, const char *detail)
{
    struct fixture *f = ud;
    str_printf(&f->notes, "%s=%s(%s) ", name, outcome, detail);
}

static void on_checked(void *ud, const struct err *e)
{
    struct fixture *f = ud;
    assert_null(e);
    f->done_n++;
}

static void the_check_tells_each_attempt(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = { 0 };
    begin(&f);
    assert_string_equal(json_str_or(sandbox_native.report(f.s), "tier", ""), "T0");
    assert_int_equal(sandbox_native.check(f.s, on_note, on_checked, &f, &e), 0);
    assert_int_equal(sandbox_native.check(f.s, on_note, on_checked, &f, &e), -1);
    pump(&f, &f.done_n, 1);
    assert_string_equal(str_peek(&f.notes), "escape=pass(none) network=skip() ");
    end(&f);
}

/* ---- one at a time, cancelling, closing ---- */

static void ask_again(struct fixture *f)
{
    f->in_done = NULL;
    ask_cell(f, "out second" CLAIMED);
}

static void a_second_request_is_refused_but_allowed_inside_done(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = { 0 };
    begin(&f);
    f.in_done = ask_again;
    ask_cell(&f, "out first" CLAIMED);
    const struct box_request r = { .op = BOX_OP_VARS };
    assert_int_equal(sandbox_native.ask(f.b, &r, &events, &f, &e), -1);
    assert_int_equal(e.kind, ERR_SANDBOX);
    pump(&f, &f.done_n, 2);
    assert_string_equal(f.cell.out, "second");
    end(&f);
}

static void cancelling_reaches_the_keeper(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = { 0 };
    begin(&f);
    sandbox_native.cancel(f.b);
    ask_cell(&f, "out begun\nawait-cancel\ndone {\"verdict\":\"cancelled\",\"state\":\"kept\"}");
    while (!f.progress.len)
        assert_int_equal(loop_once(f.l, 1000, &e), 0);
    sandbox_native.cancel(f.b);
    pump(&f, &f.done_n, 1);
    assert_int_equal(f.cell.status, CELL_CANCELLED);
    end(&f);
}

static void a_request_that_waits_can_be_cancelled(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    ask_cell(&f, "out never" CLAIMED);
    sandbox_native.cancel(f.b);
    pump(&f, &f.done_n, 1);
    assert_int_equal(f.cell.status, CELL_CANCELLED);
    assert_string_equal(f.cell.out, "");
    run(&f, "out next" CLAIMED);
    assert_string_equal(f.cell.out, "next");
    ask(&f, &(struct box_request){ .op = BOX_OP_VARS });
    end(&f);
}

static void close_in_done(struct fixture *f)
{
    sandbox_native.close(f->b);
    f->b = NULL;
}

static void stop_in_done(struct fixture *f)
{
    sandbox_native.stop(f->s);
    f->s = NULL;
    f->b = NULL;
}

static void a_box_may_be_closed_and_a_sandbox_stopped_inside_done(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    f.in_done = close_in_done;
    run(&f, "out x" CLAIMED);
    end(&f);
    begin(&f);
    f.in_done = stop_in_done;
    run(&f, "out x" CLAIMED);
    end(&f);
    begin(&f);
    f.in_done = stop_in_done;
    run(&f, "exit 7");
    assert_true(f.failed);
    end(&f);
}

static void after_close_there_is_no_callback(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = { 0 };
    const struct box_limits lim = { 1 << 30, 1 << 28, 64, 1, 0 };
    begin(&f);
    ask_cell(&f, "out begun" CLAIMED);
    sandbox_native.close(f.b);
    assert_int_equal(sandbox_native.open(&f.b, f.s, &lim, f.out_fd, f.out_dir, &e), 0);
    run(&f, "out other" CLAIMED);
    assert_int_equal(f.done_n, 1);
    assert_string_equal(f.cell.out, "other");
    end(&f);
}

/* ---- when the keeper fails ---- */

static void when_the_keeper_dies_the_request_fails_and_the_next_cell_says_lost(void **state)
{
    (void)state;
    static const struct {
        const char *how, *words;
    } cases[] = {
        { "exit 7", "status 7" },  { "abort", "signal 6" },        { "magic", "wrong magic" },
        { "odd", "unknown type" }, { "done nonsense", "verdict" }, { "done {\"verdict\":\"maybe\"}", "verdict" },
    };
    struct fixture f;
    begin(&f);
    run(&f, "out x" CLAIMED);
    for (size_t i = 0; i < countof(cases); i++) {
        run(&f, cases[i].how);
        assert_true(f.failed);
        assert_int_equal(f.done_err.kind, ERR_SANDBOX);
        assert_non_null(strstr(f.done_err.msg, cases[i].words));
        assert_true(sandbox_native.lost(f.b));
        f.skew_ms += 60000; /* past the pause between two keepers */
        run(&f, "out back" CLAIMED);
        assert_false(f.failed);
        assert_string_equal(f.cell.out, "back");
        assert_int_equal(f.cell.state, CELL_LOST);
        assert_int_equal(f.cell.note_n, 1);
        assert_false(sandbox_native.lost(f.b));
        run(&f, "out kept" CLAIMED);
        assert_int_equal(f.cell.state, CELL_KEPT);
    }
    assert_int_equal(f.ready_n, 1);
    end(&f);
}

static void a_keeper_that_dies_at_once_is_reported_with_its_status(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = { 0 };
    const struct box_limits lim = { 1 << 30, 1 << 28, 64, 1, 0 };
    begin_at(&f, "dies");
    assert_int_equal(sandbox_native.open(&f.b, f.s, &lim, f.out_fd, f.out_dir, &e), 0);
    ask_cell(&f, "out x" CLAIMED);
    pump(&f, &f.ready_n, 1);
    assert_int_equal(f.ready_err.kind, ERR_SANDBOX);
    assert_non_null(strstr(f.ready_err.msg, "status 3"));
    assert_int_equal(f.done_n, 1);
    assert_true(f.failed);
    ask_cell(&f, "out y" CLAIMED); /* tried once more, later */
    f.skew_ms += 60000;
    pump(&f, &f.done_n, 2);
    assert_true(f.failed);
    end(&f);
}

static void a_machine_that_lacks_something_is_told_what_and_how(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = { 0 };
    const struct box_limits lim = { 1 << 30, 1 << 28, 64, 1, 0 };
    begin_at(&f, "refuses");
    pump(&f, &f.ready_n, 1);
    assert_int_equal(f.ready_err.kind, ERR_CONFIG);
    assert_non_null(strstr(f.ready_err.msg, "T3"));
    assert_non_null(strstr(f.ready_err.msg, "no user namespaces (sysctl x)"));
    assert_int_equal(sandbox_native.open(&f.b, f.s, &lim, f.out_fd, f.out_dir, &e), -1);
    assert_int_equal(e.kind, ERR_CONFIG);
    assert_non_null(sandbox_native.report(f.s));
    end(&f);
}

static void a_keeper_that_never_gets_ready_is_given_up(void **state)
{
    (void)state;
    struct fixture f;
    begin_at(&f, "silent");
    f.skew_ms += 61000;
    pump(&f, &f.ready_n, 1);
    assert_int_equal(f.ready_err.kind, ERR_SANDBOX);
    assert_non_null(strstr(f.ready_err.msg, "in time"));
    end(&f);
}

static void a_box_that_cannot_be_made_fails_its_request(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = { 0 };
    const struct box_limits lim = { 1 << 30, 1 << 28, 64, 1, 0 };
    begin_at(&f, "no-open");
    pump(&f, &f.ready_n, 1);
    assert_int_equal(sandbox_native.open(&f.b, f.s, &lim, f.out_fd, f.out_dir, &e), 0);
    run(&f, "out x" CLAIMED);
    assert_int_equal(f.done_err.kind, ERR_SANDBOX);
    assert_non_null(strstr(f.done_err.msg, "no cgroup"));
    end(&f);
}

static void a_request_without_an_answer_is_given_up(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = { 0 };
    begin(&f);
    ask_cell(&f, "out begun\nawait-cancel");
    while (!f.progress.len)
        assert_int_equal(loop_once(f.l, 1000, &e), 0);
    f.skew_ms += 121000;
    pump(&f, &f.done_n, 1);
    assert_int_equal(f.done_err.kind, ERR_SANDBOX);
    assert_true(sandbox_native.lost(f.b));
    end(&f);
}

static void a_missing_image_names_the_command_that_makes_it(void **state)
{
    (void)state;
    struct fixture f;
    begin_at(&f, "plain");
    sandbox_native.stop(f.s);
    free(f.conf.image);
    f.conf.image = xstrdup("");
    assert_int_equal(setenv("SANDBOOK_CACHE", "/nonexistent", 1), 0);
    struct err e = { 0 };
    f.ready_n = 0;
    assert_int_equal(sandbox_native.start(&f.s, f.l, &f.conf, on_ready, &f, &e), 0);
    assert_int_equal(f.ready_n, 0);
    pump(&f, &f.ready_n, 1);
    if (f.ready_err.kind) { /* unless this machine has one installed */
        assert_int_equal(f.ready_err.kind, ERR_CONFIG);
        assert_non_null(strstr(f.ready_err.msg, "make image"));
    }
    assert_int_equal(unsetenv("SANDBOOK_CACHE"), 0);
    end(&f);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--image") == 0)
        return keeper(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_hands_over_the_file),
        cmocka_unit_test(intake_vars_and_reset_answer_with_json),
        cmocka_unit_test(a_file_that_cannot_be_worked_on_is_bad_data_not_a_broken_sandbox),
        cmocka_unit_test(the_check_tells_each_attempt),
        cmocka_unit_test(a_second_request_is_refused_but_allowed_inside_done),
        cmocka_unit_test(cancelling_reaches_the_keeper),
        cmocka_unit_test(a_request_that_waits_can_be_cancelled),
        cmocka_unit_test(a_box_may_be_closed_and_a_sandbox_stopped_inside_done),
        cmocka_unit_test(after_close_there_is_no_callback),
        cmocka_unit_test(when_the_keeper_dies_the_request_fails_and_the_next_cell_says_lost),
        cmocka_unit_test(a_keeper_that_dies_at_once_is_reported_with_its_status),
        cmocka_unit_test(a_machine_that_lacks_something_is_told_what_and_how),
        cmocka_unit_test(a_keeper_that_never_gets_ready_is_given_up),
        cmocka_unit_test(a_box_that_cannot_be_made_fails_its_request),
        cmocka_unit_test(a_request_without_an_answer_is_given_up),
        cmocka_unit_test(a_missing_image_names_the_command_that_makes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
