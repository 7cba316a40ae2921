/* What an answer claims, against what was put out: tables of prose and evidence, then whole turns. */
#include "core_scene.h"
#include "claims.h"

/* ---- numbers ---- */

static void check(const char *prose, const char *evidence, const char *unsupported)
{
    AUTO(evidence_clear) struct evidence e = { 0 };
    AUTO(claims_clear) struct claims c = { 0 };
    evidence_add(&e, evidence);
    claims_numbers(&c, prose, &e);
    autofree char *list = claims_join(&c);
    if (strcmp(list, unsupported) != 0)
        fail_msg("\"%s\" beside \"%s\": \"%s\", not \"%s\"", prose, evidence, list, unsupported);
}

static void numbers_are_held_against_outputs_at_their_printed_precision(void **state)
{
    static const struct {
        const char *prose, *evidence, *unsupported;
    } cases[] = {
        { "The mean fare is 10.50.", "", "10.50" },
        { "The mean fare is 32.2.", "32.204207968574636", "" },
        { "The mean fare is 32.20.", "32.204207968574636", "" },
        { "The mean fare is 32.21.", "32.204207968574636", "32.21" },
        { "The mean is 32.", "32.204207968574636", "" },
        { "The mean is 33.", "32.204207968574636", "33" },
        { "cut, not rounded: 27.72", "27.729", "" },
        { "It fell by 41.5.", "-41.5", "" },
        { "In all 1,234,567.89 EUR", "1234567.89", "" },
        { "In all 1.234.567,89 EUR", "1234567.89", "" },
        { "In all 1\xe2\x80\xaf"
          "234\xe2\x80\xaf"
          "567 EUR",
          "1234567", "" },
        { "In all 1\xc2\xa0"
          "234,5 EUR",
          "1234.5", "" },
        { "In all 1'234.50 CHF", "1234.5", "" },
        { "1,234", "1.234", "" },
        { "1,235", "1.234", "1,235" },
        { "38.4 % survived", "0.3838383", "" },
        { "38.4% survived", "38.38", "" },
        { "38.4% survived", "0.41", "38.4%" },
        { "38.4 percent survived", "0.3838383", "" },
        { "41.2 survived", "0.412", "41.2" },
        { "the 95th percentile", "df.quantile(0.95)", "" },
        { "about 1.2 million", "1234567", "" },
        { "about 1.3 million", "1234567", "1.3 million" },
        { "~30k rows", "30412", "" },
        { "1.2\xe4\xba\xbf", "123456789", "" },
        { "about 1,200 rows", "1234", "" },
        { "exactly 1,200 rows", "1234", "1,200" },
        { "roughly 3000", "3412", "" },
        { "5 km and 25 kg", "", "25" },
        { "there are 12 months and 100 %", "", "" },
        { "there are 13 months", "", "13" },
        { "1.5e6", "1500000", "" },
        { "2.5e-3", "0.0025", "" },
        { "Values: [10, 25, 30, 40]", "", "25, 30, 40" },
        { "Values: 25,30,40", "25 30 40", "" },
        { "13. first\n14) second\n- 15. third", "", "" },
        { "Q13 of v27 in sha256 and x_88", "", "" },
        { "file_2024.csv", "", "" },
        { "see https://a.b/2024/99?x=77 there", "", "" },
        { "`df.iloc[77]` and `77.5`", "", "77.5" },
        { "```python\nx = 77\n```\nx is 78", "", "78" },
        { "```\nmean 77.5\n```", "", "77.5" },
        { "on 2024-03-15 at 14:30", "2024-03-15 14:30:00", "" },
        { "on 2025-03-15", "2024-03-15", "2025" },
        { "March 15, 2024", "2024-03-15", "" },
        { "version 3.13.1", "", "" },
        { "25 and 25 and 25", "", "25" },
        { "no numbers", "", "" },
        { "", "", "" },
        { "12345678901234567890123456789", "", "" },
        { "0.30000000000000004", "0.30000000000000004", "" },
        { "a,1,234 apples", "a,1,234", "" },
        { "it is 25", "<data nonce=25ab30cd40ef>", "25" },
        { "it is 27", "sha256 ab27cd0012345678", "27" },
        { "nonce 25ab30cd40ef", "", "" },
        { "25kg", "25", "" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++)
        check(cases[i].prose, cases[i].evidence, cases[i].unsupported);
}

static void what_was_marked_once_does_not_support_itself(void **state)
{
    AUTO(evidence_clear) struct evidence e = { 0 };
    AUTO(claims_clear) struct claims c = { 0 };
    (void)state;
    evidence_add(&e, "25.5 and 30.25 and 1,400");
    evidence_remove(&e, "not supported: 30.25");
    claims_numbers(&c, "25.5, 30.25, 1400", &e);
    autofree char *list = claims_join(&c);
    assert_string_equal(list, "30.25");
}

static void at_most_twelve_numbers_are_named(void **state)
{
    AUTO(evidence_clear) struct evidence e = { 0 };
    AUTO(claims_clear) struct claims c = { 0 };
    (void)state;
    claims_numbers(&c, "21 22 23 24 25 26 27 28 29 30 31 32 33 34", &e);
    assert_int_equal(c.n, CLAIMS_MAX);
}

/* ---- files ---- */

static bool is_there(const void *ud, const char *name)
{
    return strstr(ud, name) != NULL;
}

static void saved_files_have_to_exist(void **state)
{
    static const struct {
        const char *prose, *there, *missing;
    } cases[] = {
        { "I saved it as `out.xlsx`.", "", "out.xlsx" },
        { "I saved it as out.xlsx.", "out.xlsx", "" },
        { "The table was written to /mnt/data/out/clean.csv and more.", "", "clean.csv" },
        { "Saved as \"a b.csv\"", "", "a b.csv" },
        { "I read sales.csv. Nothing was saved.", "sales.csv", "" },
        { "I did not save it as out.csv.", "", "" },
        { "It could not be saved as out.csv.", "", "" },
        { "The file sales.csv has two columns.", "", "" },
        { "Exported a.csv and b.csv.", "a.csv", "b.csv" },
        { "\xe7\xbb\x93\xe6\x9e\x9c\xe5\xb7\xb2\xe4\xbf\x9d\xe5\xad\x98\xe5\x88\xb0report.csv\xe3\x80\x82", "",
          "report.csv" },
        { "saved.csv", "", "saved.csv" },
        { "Attached: x.csv, x.csv", "", "x.csv" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        AUTO(claims_clear) struct claims c = { 0 };
        claims_files(&c, cases[i].prose, is_there, cases[i].there);
        autofree char *list = claims_join(&c);
        if (strcmp(list, cases[i].missing) != 0)
            fail_msg("\"%s\": \"%s\", not \"%s\"", cases[i].prose, list, cases[i].missing);
    }
}

/* ---- turns ---- */

static void an_unsupported_number_is_asked_about_once_and_then_computed(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s,
               CALL("df")
                   SAY("The mean is 27.4.") "{\"calls\":[{\"args\":{\"code\":\"print(df.mean())\"}}],\"expect\":"
                                            "\"No output shows this of your answer: 27.4\"}\n" SAY("The mean is 31.5."),
               PRINTS("loaded") PRINTS("31.5"));
    scene_start_with(&s, "what is the mean?", NULL);
    world_run(&s.w, 3000);
    assert_ended(&s, AGENT_ANSWERED, 2, 4);
    assert_string_equal(s.seen.answer, "The mean is 31.5.");
    assert_null(strstr(s.seen.messages, "27.4")); /* the draft is gone from history */
    assert_null(s.seen.unsupported);
    scene_close(&s);
}

static void a_number_that_stays_unsupported_is_marked(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, CALL("df") SAY("The mean is 27.4.") SAY("As I said: 27.4."), PRINTS("loaded"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_string_equal(s.seen.answer,
                        "As I said: 27.4.\n\n*(Not supported by any output: 27.4. Please check before use.)*");
    assert_string_equal(s.seen.unsupported, "27.4");
    scene_close(&s);
}

static void an_invented_last_word_is_marked(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, CALL("a") CALL("b") CALL("c") LAST("The values are [10, 25, 30, 40]."),
               FAIL("KeyError") FAIL("TypeError") FAIL("ValueError"));
    assert_ended(&s, AGENT_FAILED, 3, 4);
    assert_says(s.seen.answer, "Not supported by any output: 25, 30, 40.");
    scene_close(&s);
}

static void a_last_word_that_is_a_program_is_no_answer(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, CALL("1") CALL("1") CALL("1") LAST("```python\\nprint(1)\\n```"),
               PRINTS("1") PRINTS("1") PRINTS("1"));
    assert_ended(&s, AGENT_FAILED, 3, 4);
    assert_null(strstr(s.seen.answer, "print"));
    scene_close(&s);
}

static void numbers_of_the_question_are_nobodys_claim(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, CALL("df") SAY("None is above 2512.75 in 1987."), PRINTS("0"));
    scene_start_with(&s, "which is above 2512.75 in 1987?", NULL);
    world_run(&s.w, 1000);
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    scene_close(&s);
}

static void talk_without_data_is_not_checked(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, SAY("A year has 365.2425 days."), "");
    assert_ended(&s, AGENT_ANSWERED, 0, 1);
    scene_close(&s);
}

static void a_file_that_was_only_promised_is_asked_for_once_then_said_to_be_missing(void **state)
{
    struct scene s;
    (void)state;
    scene_play(
        &s,
        CALL("df") SAY(
            "I saved the table as clean.xlsx.") "{\"text\":\"I saved the table as clean.xlsx.\",\"expect\":\"There is no file "
                                                "clean.xlsx\"}\n",
        PRINTS("x"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_says(s.seen.answer, "There is no file `clean.xlsx`");
    scene_close(&s);
}

static void a_file_that_is_written_when_asked_for_is_no_promise_any_more(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s,
               CALL("df") SAY("I saved the table as clean.xlsx.") CALL("df.to_excel('out/clean.xlsx')")
                   SAY("I saved the table as clean.xlsx."),
               PRINTS("x") "{\"files\":[{\"path\":\"out/clean.xlsx\"}]}\n");
    assert_ended(&s, AGENT_ANSWERED, 2, 4);
    assert_null(strstr(s.seen.answer, "no file"));
    scene_close(&s);
}

static void a_weekday_or_a_name_that_no_output_shows_is_marked(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s,
               CALL("df") SAY("The best day is Sunday, in Berlin; the column `Fares` says so.") SAY("It is Sunday."),
               PRINTS("Fri 3.1"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_string_equal(s.seen.unsupported, "Sunday");
    assert_says(s.seen.answer, "Not supported by any output: Sunday.");
    scene_close(&s);
}

static void a_chart_that_nobody_drew_is_asked_for_once_then_said_to_be_missing(void **state)
{
    struct scene s;
    (void)state;
    scene_play(
        &s,
        CALL("df")
            SAY("The chart shows a peak.") "{\"text\":\"The chart shows a peak.\",\"expect\":\"but none was made\"}\n",
        PRINTS("x"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_says(s.seen.answer, "No chart was made for this");
    scene_close(&s);
    scene_play(&s, CALL("df.plot()") SAY("The chart shows a peak."), "{\"figures\":[{\"path\":\"f.png\"}]}\n");
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    assert_null(strstr(s.seen.answer, "No chart"));
    scene_close(&s);
}

static void a_draft_is_given_marked_when_the_model_goes_away(void **state)
{
    static const char *const ends[] = { "{\"error\":{\"kind\":\"refused\"}}\n",
                                        "{\"error\":{\"kind\":\"net\"}}\n{\"error\":{\"kind\":\"net\"}}\n"
                                        "{\"error\":{\"kind\":\"net\"}}\n" };
    (void)state;
    for (size_t i = 0; i < countof(ends); i++) {
        struct scene s;
        autofree char *lines = xasprintf("%s%s", CALL("df") SAY("The mean is 27.4."), ends[i]);
        scene_play(&s, lines, PRINTS("loaded"));
        assert_ended(&s, AGENT_ANSWERED, 1, 2);
        assert_says(s.seen.answer, "The mean is 27.4.");
        assert_says(s.seen.answer, "Not supported by any output: 27.4.");
        scene_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_held_against_outputs_at_their_printed_precision),
        cmocka_unit_test(what_was_marked_once_does_not_support_itself),
        cmocka_unit_test(at_most_twelve_numbers_are_named),
        cmocka_unit_test(saved_files_have_to_exist),
        cmocka_unit_test(an_unsupported_number_is_asked_about_once_and_then_computed),
        cmocka_unit_test(a_number_that_stays_unsupported_is_marked),
        cmocka_unit_test(an_invented_last_word_is_marked),
        cmocka_unit_test(a_last_word_that_is_a_program_is_no_answer),
        cmocka_unit_test(numbers_of_the_question_are_nobodys_claim),
        cmocka_unit_test(talk_without_data_is_not_checked),
        cmocka_unit_test(a_file_that_was_only_promised_is_asked_for_once_then_said_to_be_missing),
        cmocka_unit_test(a_file_that_is_written_when_asked_for_is_no_promise_any_more),
        cmocka_unit_test(a_weekday_or_a_name_that_no_output_shows_is_marked),
        cmocka_unit_test(a_chart_that_nobody_drew_is_asked_for_once_then_said_to_be_missing),
        cmocka_unit_test(a_draft_is_given_marked_when_the_model_goes_away),
    };
    return cmocka_run_group_tests_name("agent_claims", tests, NULL, NULL);
}
