/* The native sandbox: cells and the files they leave. */
#include "native_fixture.h"
#include "native_cell.h"
#include "native_keeper.h"

/* ---- cells ---- */

static void a_cell_gives_what_it_printed_and_what_it_is_worth(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f,
        "out hello \nout world\x1b[1m!\nerr careful\n"
        "claim {\"status\":\"ok\",\"result\":{\"text/plain\":\"42\",\"text/html\":\"<b>42</b>\"},\"error\":null,\"notes\":[\"a note\"]}" OK);
    assert_false(f.failed);
    assert_int_equal(f.cell.status, CELL_OK);
    assert_int_equal(f.cell.state, CELL_KEPT);
    assert_int_equal(f.cell.number, 3);
    assert_string_equal(f.cell.out, "hello world!");
    assert_string_equal(f.cell.err, "careful");
    assert_string_equal(f.cell.result_text, "42");
    assert_string_equal(f.cell.result_html, "<b>42</b>");
    assert_null(f.cell.error_name);
    assert_null(f.cell.why);
    assert_int_equal(f.cell.note_n, 1);
    assert_true(f.cell.took_ms > 1.49 && f.cell.took_ms < 1.51);
    assert_int_equal(f.cell.peak_bytes, 4096);
    assert_string_equal(str_peek(&f.progress), "hello world!careful");
    end(&f);
}

static void what_the_look_at_the_code_found_is_scrubbed_and_counted(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f, "claim {\"status\":\"ok\",\"audit\":[{\"kind\":\"shell\",\"line\":2,\"what\":\"os.system\"},"
            "{\"kind\":\"x\\u001b[31m\",\"line\":-7,\"what\":4},{}]}" OK);
    assert_int_equal(f.cell.finding_n, 3);
    assert_string_equal(f.cell.findings[0].kind, "shell");
    assert_string_equal(f.cell.findings[0].what, "os.system");
    assert_int_equal(f.cell.findings[0].line, 2);
    assert_null(strchr(f.cell.findings[1].kind, '\x1b'));
    assert_int_equal(f.cell.findings[1].line, 0);
    assert_string_equal(f.cell.findings[1].what, "");
    autojson struct json *j = cell_to_json(&f.cell, NULL);
    assert_string_equal(json_str_or(json_first(json_get(j, "audit")), "kind", ""), "shell");
    end(&f);
}

static void findings_that_are_no_list_of_objects_are_malformed(void **state)
{
    (void)state;
    static const char *const claims[] = { "claim {\"status\":\"ok\",\"audit\":{}}" OK,
                                          "claim {\"status\":\"ok\",\"audit\":[1]}" OK,
                                          "claim {\"status\":\"ok\",\"audit\":\"x\"}" OK };
    for (size_t i = 0; i < countof(claims); i++) {
        struct fixture f;
        begin(&f);
        run(&f, claims[i]);
        assert_int_equal(f.cell.status, CELL_CRASH);
        assert_int_equal(f.cell.finding_n, 0);
        end(&f);
    }
}

static void a_raised_error_is_a_result(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f,
        "claim {\"status\":\"error\",\"error\":{\"name\":\"KeyError\",\"value\":\"'x'\",\"traceback\":\"\\u001b[31mTrace\",\"line\":2}}" OK);
    assert_int_equal(f.cell.status, CELL_ERROR);
    assert_string_equal(f.cell.error_name, "KeyError");
    assert_string_equal(f.cell.error_traceback, "Trace");
    assert_int_equal(f.cell.error_line, 2);
    end(&f);
}

static void what_is_asked_before_the_keeper_is_ready_waits(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = { 0 };
    const struct box_limits lim = { 1 << 30, 1 << 28, 64, 1, 0 };
    begin_at(&f, "plain");
    assert_int_equal(sandbox_native.open(&f.b, f.s, &lim, f.out_fd, f.out_dir, &e), 0);
    run(&f, "out early" CLAIMED);
    assert_int_equal(f.ready_n, 1);
    assert_string_equal(f.cell.out, "early");
    end(&f);
}

static void a_memory_error_is_out_of_memory_with_its_limit_in_words(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f,
        "claim {\"status\":\"error\",\"error\":{\"name\":\"_ArrayMemoryError\",\"value\":\"\",\"traceback\":\"\",\"line\":1}}" OK);
    assert_int_equal(f.cell.status, CELL_OOM);
    assert_int_equal(f.cell.state, CELL_KEPT);
    assert_non_null(strstr(f.cell.why, "1.0 GiB"));
    end(&f);
}

static void an_interrupted_cell_keeps_its_traceback(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f,
        "claim {\"status\":\"error\",\"error\":{\"name\":\"KeyboardInterrupt\",\"value\":\"\",\"traceback\":\"tb\",\"line\":1}}\n"
        "done {\"verdict\":\"timeout\",\"state\":\"kept\"}");
    assert_int_equal(f.cell.status, CELL_TIMEOUT);
    assert_string_equal(f.cell.error_name, "KeyboardInterrupt");
    assert_string_equal(f.cell.why, "over the time limit of 60 s");
    end(&f);
}

static void a_killed_cell_keeps_what_it_printed_and_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *done, *why;
        enum cell_status status;
        enum cell_state kept;
    } cases[] = {
        { "{\"verdict\":\"oom\",\"state\":\"rolled_back\",\"why\":\"over 512 MiB\"}", "over 512 MiB", CELL_OOM,
          CELL_ROLLED_BACK },
        { "{\"verdict\":\"crash\",\"state\":\"lost\",\"signal\":11}", "Segmentation fault", CELL_CRASH, CELL_LOST },
        { "{\"verdict\":\"limit\",\"state\":\"lost\",\"why\":\"output flood\"}", "output flood", CELL_LIMIT,
          CELL_LOST },
        { "{\"verdict\":\"timeout\",\"state\":\"lost\"}", "time limit", CELL_TIMEOUT, CELL_LOST },
        { "{\"verdict\":\"cancelled\",\"state\":\"kept\"}", "on request", CELL_CANCELLED, CELL_KEPT },
    };
    struct fixture f;
    begin(&f);
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *script = xasprintf("out so far\ndone %s", cases[i].done);
        run(&f, script);
        assert_false(f.failed);
        assert_int_equal(f.cell.status, cases[i].status);
        assert_int_equal(f.cell.state, cases[i].kept);
        assert_string_equal(f.cell.out, "so far");
        assert_null(f.cell.error_name);
        assert_non_null(strstr(f.cell.why, cases[i].why));
    }
    end(&f);
}

static void a_malformed_claim_is_a_crash_in_words(void **state)
{
    (void)state;
    static const char *const claims[] = {
        "claim {\"status\":\"ok\"",
        "claim [1]",
        "claim {\"status\":\"fine\"}",
        "claim {\"status\":\"ok\",\"result\":7}",
        "claim {\"status\":\"ok\",\"result\":{\"text/plain\":[]}}",
        "claim {\"status\":\"error\",\"error\":{\"value\":\"no name\"}}",
        "claim {\"status\":\"ok\",\"figures\":[1]}",
        "claim {\"status\":\"ok\",\"notes\":[{}]}",
        "claim {\"status\":\"ok\",\"status\":\"error\"}",
        "claim \xff",
        "out x", /* none at all */
    };
    struct fixture f;
    begin(&f);
    for (size_t i = 0; i < countof(claims); i++) {
        autofree char *script = xasprintf("%s" OK, claims[i]);
        if (!utf8_valid(script, strlen(script)))
            continue;
        run(&f, script);
        assert_int_equal(f.cell.status, CELL_CRASH);
        assert_string_equal(f.cell.why, "the box answered with something malformed");
    }
    end(&f);
}

static void a_claim_in_many_frames_is_put_together(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f, "longclaim 3000000" OK);
    assert_int_equal(f.cell.status, CELL_OK);
    assert_int_equal(strlen(f.cell.result_text), 3000000);
    end(&f);
}

static void a_long_cell_goes_out_in_many_frames(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    AUTO(str_clear) struct str s = STR_INIT(BOX_CODE_MAX);
    str_puts(&s, "out got it" CLAIMED "\n");
    while (s.len < BOX_CODE_MAX)
        str_putc(&s, '"');
    const struct box_request r = { .op = BOX_OP_CELL, .text = s.buf, .text_n = s.len, .number = 3 };
    ask(&f, &r);
    pump(&f, &f.done_n, 1);
    assert_string_equal(f.cell.out, "got it");
    end(&f);
}

static void code_that_cannot_be_sent_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    struct err e = { 0 };
    begin(&f);
    autofree char *long_code = xcalloc(1, BOX_CODE_MAX + 2);
    memset(long_code, 'x', BOX_CODE_MAX + 1);
    struct box_request r = { .op = BOX_OP_CELL, .text = long_code, .text_n = BOX_CODE_MAX + 1 };
    assert_int_equal(sandbox_native.ask(f.b, &r, &events, &f, &e), -1);
    assert_int_equal(e.kind, ERR_DATA);
    r = (struct box_request){ .op = BOX_OP_CELL, .text = "\xff", .text_n = 1 };
    assert_int_equal(sandbox_native.ask(f.b, &r, &events, &f, &e), -1);
    r = (struct box_request){ .op = BOX_OP_PUT, .name = "../x", .fd = 0 };
    assert_int_equal(sandbox_native.ask(f.b, &r, &events, &f, &e), -1);
    r = (struct box_request){ .op = BOX_OP_UNDO, .number = -1 };
    assert_int_equal(sandbox_native.ask(f.b, &r, &events, &f, &e), -1);
    assert_int_equal(e.kind, ERR_DATA);
    r = (struct box_request){ .op = BOX_OP_CHECKPOINT }; /* and nobody who takes its bytes */
    assert_int_equal(sandbox_native.ask(f.b, &r, &events, &f, &e), -1);
    assert_int_equal(e.kind, ERR_DATA);
    r = (struct box_request){ .op = BOX_OP_RESTORE, .fd = -1 };
    assert_int_equal(sandbox_native.ask(f.b, &r, &events, &f, &e), -1);
    end(&f);
}

static void a_reply_to_going_back_takes_the_verdict_and_the_claims_notes_only(void **state)
{
    (void)state;
    static const char done[] = "{\"verdict\":\"ok\",\"state\":\"rolled_back\",\"cell\":3}";
    static const char said[] = "{\"status\":\"ok\",\"cell\":9,\"notes\":[\"the pool `ex`\\u001b[1m is gone\",7]}";
    struct err e = { 0 };
    AUTO(verdict_clear) struct verdict v = { 0 };
    autojson struct json *claim = NULL;
    assert_int_equal(verdict_parse(&v, done, sizeof done - 1, &e), 0);
    assert_int_equal(json_parse(&claim, said, sizeof said - 1, 4096, &e), 0);
    autojson struct json *reply = reply_from_back(&v, claim, false);
    AUTO(str_clear) struct str text = STR_INIT(4096);
    json_print(&text, reply);
    assert_string_equal(str_peek(&text),
                        "{\"state\":\"rolled_back\",\"cell\":3,\"notes\":[\"files are as they were: going "
                        "back changes variables only\",\"the pool `ex` is gone\"]}");
}

static void of_a_flood_head_and_tail_are_kept(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f, "flood 600000" CLAIMED);
    assert_true(f.cell.truncated);
    assert_true(utf8_valid(f.cell.out, strlen(f.cell.out)));
    assert_true(strlen(f.cell.out) < (132 << 10));
    assert_memory_equal(f.cell.out, "line 0 ", 7);
    assert_non_null(strstr(f.cell.out, "bytes left out ...]\nline "));
    assert_true(f.progress.len >= 600000);
    end(&f);
}

static void a_character_cut_by_two_frames_is_whole_in_progress_and_result(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f, "cut" CLAIMED);
    assert_string_equal(str_peek(&f.progress), "\xe2\x82\xac\n");
    assert_string_equal(f.cell.out, "\xe2\x82\xac\n");
    end(&f);
}

static void the_keeper_gets_four_descriptors_and_no_environment(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f, "self" CLAIMED);
    assert_string_equal(f.cell.out,
                        "fds 4 env 0 args --support PATH --uid-base 2000000 --min-tier T1 --log-level info\n");
    end(&f);
}

static void a_keeper_for_one_session_is_told_so(void **state)
{
    (void)state;
    struct fixture f;
    begin_as(&f, "once");
    run(&f, "self" CLAIMED);
    assert_non_null(strstr(f.cell.out, " --log-level info --once\n"));
    end(&f);
}

/* ---- files ---- */

static const struct artifact *find(const struct artifacts *a, const char *name)
{
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->at[i].name, name) == 0)
            return &a->at[i];
    return NULL;
}

static void new_files_lie_in_the_out_folder_under_their_names(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f, "file a.csv one two\nfile deep/er/b.txt below\nfile .env hidden\nfile a.csv newer" CLAIMED);
    assert_int_equal(f.cell.files.n, 3);
    const struct artifact *a = find(&f.cell.files, "a.csv");
    assert_non_null(a);
    assert_int_equal(a->bytes, 5);
    autofree char *text = read_text(a->path);
    assert_string_equal(text, "newer");
    a = find(&f.cell.files, "deep/er/b.txt");
    assert_non_null(a);
    autofree char *below = read_text(a->path);
    assert_string_equal(below, "below");
    assert_non_null(find(&f.cell.files, "_env"));
    end(&f);
}

static void figures_are_what_the_claim_names_and_a_header_proves(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f,
        "png out/figure-3-1.png 640 480\npng out/figure-3-2.png 9000 10\nfile out/figure-3-3.png no picture\npng mine.png 4 5\n"
        "claim {\"status\":\"ok\",\"figures\":[{\"path\":\"out/figure-3-1.png\",\"width\":1,\"title\":\"T\",\"summary\":\"S\"},"
        "{\"path\":\"out/figure-3-2.png\"},{\"path\":\"out/figure-3-3.png\"},{\"path\":\"never/sent.png\"},{\"path\":5}]}" OK);
    assert_int_equal(f.cell.status, CELL_OK);
    assert_int_equal(f.cell.figures.n, 1);
    const struct artifact *a = &f.cell.figures.at[0];
    assert_string_equal(a->name, "figure-3-1.png");
    assert_int_equal(a->width, 640);
    assert_int_equal(a->height, 480);
    assert_string_equal(a->title, "T");
    assert_string_equal(a->summary, "S");
    assert_int_equal(f.cell.files.n, 3);
    assert_non_null(find(&f.cell.files, "mine.png"));
    end(&f);
}

static void a_saved_picture_of_a_figure_is_a_file_that_is_shown_already(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f, "png out/figure-3-1.png 6 4\npng plot.png 6 4\npng other.png 6 4\n"
            "claim {\"status\":\"ok\",\"figures\":[{\"path\":\"out/figure-3-1.png\"}],"
            "\"same_as\":{\"plot.png\":\"out/figure-3-1.png\",\"other.png\":\"never.png\",\"gone.png\":7}}" OK);
    assert_int_equal(f.cell.status, CELL_OK);
    assert_int_equal(f.cell.figures.n, 1);
    assert_int_equal(f.cell.files.n, 2);
    assert_true(find(&f.cell.files, "plot.png")->shown);
    assert_false(find(&f.cell.files, "other.png")->shown);
    assert_false(f.cell.figures.at[0].shown);
    end(&f);
}

static void a_killed_cell_still_delivers_its_figures(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f,
        "png out/figure-3-1.png 6 4\npng figure-3-1.png 2 2\ndone {\"verdict\":\"crash\",\"state\":\"lost\",\"signal\":9}");
    assert_int_equal(f.cell.figures.n, 1);
    assert_int_equal(f.cell.figures.at[0].width, 6);
    assert_int_equal(f.cell.files.n, 1);
    assert_string_equal(f.cell.files.at[0].name, "saved-figure-3-1.png");
    end(&f);
}

static void names_that_lead_out_of_the_folder_are_not_delivered(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "../up", "a/../../up", "/etc/passwd", "a//b", "a/./b", "a/", ".", "..", "bell\a"
    };
    struct fixture f;
    begin(&f);
    for (size_t i = 0; i < countof(bad); i++) {
        autofree char *script = xasprintf("file %s x" CLAIMED, bad[i]);
        run(&f, script);
        assert_int_equal(f.cell.files.n, 0);
        assert_int_equal(f.cell.note_n, 1);
    }
    autofree char *up = xasprintf("%s/up", f.dir);
    assert_int_equal(access(up, F_OK), -1);
    end(&f);
}

static void names_that_deceive_are_made_plain(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f, "file invoice\xe2\x80\xaetxt.exe x\nfile e\xcc\x81.txt x" CLAIMED);
    assert_non_null(find(&f.cell.files, "invoice_txt.exe"));
    assert_non_null(find(&f.cell.files, "\xc3\xa9.txt"));
    end(&f);
}

static void a_file_in_the_way_of_a_folder_gets_a_name_of_its_own(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f, "file a first\nfile d/x second\nfile a/b third\nfile d fourth" CLAIMED);
    assert_int_equal(f.cell.files.n, 4);
    assert_non_null(find(&f.cell.files, "cell-3-b"));
    assert_non_null(find(&f.cell.files, "cell-3-d"));
    end(&f);
}

static void a_file_over_its_limit_is_named_and_left_out(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f, "big huge.bin 10485761\nbig fits.bin 10485760" CLAIMED);
    assert_int_equal(f.cell.files.n, 1);
    assert_int_equal(f.cell.files.at[0].bytes, 10 << 20);
    assert_int_equal(f.cell.note_n, 1);
    assert_non_null(strstr(f.cell.notes[0], "huge.bin"));
    end(&f);
}

static void nothing_unfinished_is_left_in_the_out_folder(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    run(&f, "big huge.bin 10485761" CLAIMED);
    ask_cell(&f, "big half.bin 9000000\nawait-cancel");
    struct err e = { 0 };
    for (int i = 0; i < 2; i++)
        assert_int_equal(loop_once(f.l, 1000, &e), 0);
    sandbox_native.close(f.b);
    f.b = NULL;
    DIR *d = opendir(f.out_dir);
    for (const struct dirent *x; (x = readdir(d));)
        assert_true(strcmp(x->d_name, ".") == 0 || strcmp(x->d_name, "..") == 0 || strcmp(x->d_name, "half.bin") == 0);
    (void)closedir(d);
    end(&f);
}

static void many_files_arrive(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    AUTO(str_clear) struct str s = STR_INIT(1 << 16);
    for (int i = 0; i < 200; i++)
        str_printf(&s, "file f%d.txt %d\n", i, i);
    str_puts(&s, "out x" CLAIMED);
    run(&f, str_peek(&s));
    assert_int_equal(f.cell.files.n, 200);
    end(&f);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--image") == 0)
        return keeper(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cell_gives_what_it_printed_and_what_it_is_worth),
        cmocka_unit_test(what_the_look_at_the_code_found_is_scrubbed_and_counted),
        cmocka_unit_test(findings_that_are_no_list_of_objects_are_malformed),
        cmocka_unit_test(a_raised_error_is_a_result),
        cmocka_unit_test(what_is_asked_before_the_keeper_is_ready_waits),
        cmocka_unit_test(a_memory_error_is_out_of_memory_with_its_limit_in_words),
        cmocka_unit_test(an_interrupted_cell_keeps_its_traceback),
        cmocka_unit_test(a_killed_cell_keeps_what_it_printed_and_says_why),
        cmocka_unit_test(a_malformed_claim_is_a_crash_in_words),
        cmocka_unit_test(a_claim_in_many_frames_is_put_together),
        cmocka_unit_test(a_long_cell_goes_out_in_many_frames),
        cmocka_unit_test(code_that_cannot_be_sent_is_refused),
        cmocka_unit_test(a_reply_to_going_back_takes_the_verdict_and_the_claims_notes_only),
        cmocka_unit_test(of_a_flood_head_and_tail_are_kept),
        cmocka_unit_test(a_character_cut_by_two_frames_is_whole_in_progress_and_result),
        cmocka_unit_test(the_keeper_gets_four_descriptors_and_no_environment),
        cmocka_unit_test(a_keeper_for_one_session_is_told_so),
        cmocka_unit_test(new_files_lie_in_the_out_folder_under_their_names),
        cmocka_unit_test(figures_are_what_the_claim_names_and_a_header_proves),
        cmocka_unit_test(a_saved_picture_of_a_figure_is_a_file_that_is_shown_already),
        cmocka_unit_test(a_killed_cell_still_delivers_its_figures),
        cmocka_unit_test(names_that_lead_out_of_the_folder_are_not_delivered),
        cmocka_unit_test(names_that_deceive_are_made_plain),
        cmocka_unit_test(a_file_in_the_way_of_a_folder_gets_a_name_of_its_own),
        cmocka_unit_test(a_file_over_its_limit_is_named_and_left_out),
        cmocka_unit_test(nothing_unfinished_is_left_in_the_out_folder),
        cmocka_unit_test(many_files_arrive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
