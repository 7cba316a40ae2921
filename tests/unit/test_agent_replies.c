/* Replies that are none: nothing was run, the wrong kind of answer, programs that show nothing. Each is sent back once, and the right one is left alone. */
#include "core_scene.h"
#include "claims.h"

/* ---- nothing was run ---- */

#define FILES \
    "[{\"path\":\"a.csv\",\"name\":\"a.csv\",\"kind\":\"csv\",\"bytes\":9,\"sha256\":\"00\",\"rows\":244,\"columns\":[{\"name\":\"fare\"}]}]"

static void play_with_file(struct scene *s, const char *request, const char *model_lines, const char *box_lines)
{
    struct err e = { 0 };
    scene_open(s, model_lines, box_lines);
    assert_int_equal(json_parse(&s->files, FILES, strlen(FILES), 1 << 20, &e), 0);
    scene_start_with(s, request, NULL);
    world_run(&s->w, 3000);
    assert_true(s->seen.done);
}

static void a_first_reply_without_a_program_is_sent_back_once(void **state)
{
    struct scene s;
    (void)state;
    play_with_file(
        &s, "what is the mean of x?",
        SAY("I will compute the mean.") "{\"calls\":[{\"args\":{\"code\":\"m\"}}],\"expect\":\"You have not run anything yet\"}\n" SAY(
            "It is 5."),
        PRINTS("5"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_null(strstr(s.seen.messages, "I will compute"));
    scene_close(&s);
}

static void advice_after_programs_that_all_failed_is_no_answer(void **state)
{
    struct scene s;
    (void)state;
    play_with_file(
        &s, "which one is it?",
        CALL("a")
            SAY("Define x first, then run it again.") "{\"calls\":[{\"args\":{\"code\":\"b\"}}],\"expect\":\"No program has worked yet\"}\n" SAY(
                "It is b."),
        FAIL("NameError") PRINTS("b"));
    assert_ended(&s, AGENT_ANSWERED, 2, 4);
    assert_null(strstr(s.seen.messages, "Define x"));
    scene_close(&s);
}

static void a_reply_without_a_program_is_sent_back_twice_then_given(void **state)
{
    struct scene s;
    (void)state;
    play_with_file(&s, "what is the mean of x?",
                   SAY("It is 27.4.") "{\"text\":\"It is 27.4.\",\"expect\":\"You have not run anything yet\"}\n"
                                      "{\"text\":\"It is 27.4.\",\"expect\":\"No program has worked yet\"}\n",
                   "");
    assert_ended(&s, AGENT_ANSWERED, 0, 3);
    assert_says(s.seen.answer, "Not supported by any output: 27.4.");
    scene_close(&s);
}

static void a_program_in_another_language_is_sent_back(void **state)
{
    struct scene s;
    (void)state;
    play_with_file(
        &s, "which one is best?",
        SAY("```r\\nmean(df$x)\\n```") "{\"calls\":[{\"args\":{\"code\":\"m\"}}],\"expect\":\"only Python runs here\"}\n" SAY(
            "It is 5."),
        PRINTS("5"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    scene_close(&s);
    play_with_file(&s, "how would I write that in SQL?", SAY("```sql\\nSELECT avg(x) FROM a\\n```"), "");
    assert_ended(&s, AGENT_ANSWERED, 0, 1);
    scene_close(&s);
}

/* ---- the right kind of answer ---- */

static void how_many_wants_a_whole_number(void **state)
{
    static const struct {
        const char *question, *answer, *part; /* NULL: nothing is wrong; "": no number at all */
    } cases[] = {
        { "How many women survived?", "The number of women who survived is 28.84771573604061.", "28.84771573604061" },
        { "In how many rows is it so?", "It is so in 0.41 of the rows.", "0.41" },
        { "Wie viele Kunden gibt es?", "Es gibt 28,84 Kunden.", "28,84" },
        { "有多少人生还？", "生还人数为 28.85。", "28.85" },
        { "How many boarded at the port where most did?", "Most of them boarded at S.", "" },
        { "How many women survived?", "233 women survived.", NULL },
        { "How many women survived?", "233 women survived; their mean age was 28.85.", NULL },
        { "How many women survived?", "Twenty-five women survived.", NULL },
        { "How many women survived?", "None of them survived.", NULL },
        { "How many women survived?", "The data do not say who survived.", NULL },
        { "How many people live there?", "About 1.2 million people.", NULL },
        { "Wie viele Leute?", "1.234 Leute.", NULL },
        { "How many hours did it take?", "It took 2.5 hours.", NULL },
        { "How many million did they earn?", "They earned 2.5 million.", NULL },
        { "How many people are there per car, on average?", "There are 2.38 people in a car.", NULL },
        { "By how many per cent did it grow?", "It grew by 28.8 %.", NULL },
        { "What is the mean?", "The mean is 28.8.", NULL },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *part = NULL;
        const bool odd = claims_miscounted(cases[i].question, cases[i].answer, &part);
        if (odd != (cases[i].part != NULL) || (odd && strcmp(part ? part : "", cases[i].part) != 0))
            fail_msg("%s %s: %d %s", cases[i].question, cases[i].answer, odd, part ? part : "-");
    }
}

static void a_count_is_looked_up_however_small(void **state)
{
    static const struct {
        const char *question, *answer, *shown, *claims;
    } cases[] = {
        { "How many women survived?", "3 women survived.", "Name: S", "3" },
        { "How many women survived?", "Three women survived.", "Name: S", "Three" },
        { "How many women survived?", "3 women survived.", "3", "" },
        { "How many women survived?", "Of 12 people 3 survived.", "12 4", "" },
        { "How many women survived?", "None survived.", "Name: S", "" },
        { "Which port?", "Port 3.", "Name: S", "" },
        { "Wie viele Tage?", "Es sind 4.", "Fr Sa", "" }, /* of days there may be parts */
        { "Wie viele Kunden?", "Es sind 4.", "Fr Sa", "4" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        AUTO(evidence_clear) struct evidence e = { 0 };
        AUTO(claims_clear) struct claims c = { 0 };
        evidence_add(&e, cases[i].shown);
        claims_uncounted(&c, cases[i].question, cases[i].answer, &e);
        autofree char *list = claims_join(&c);
        if (strcmp(list, cases[i].claims) != 0)
            fail_msg("%s %s: %s", cases[i].question, cases[i].answer, list);
    }
}

static void a_mean_in_place_of_a_count_is_sent_back_and_marked_when_it_stays(void **state)
{
    struct scene s;
    (void)state;
    play_with_file(
        &s, "how many women survived?",
        CALL("mean")
            SAY("The number is 28.85.") "{\"calls\":[{\"args\":{\"code\":\"sum\"}}],\"expect\":\"gives none, but "
                                        "28.85\"}\n" SAY("233 women survived."),
        PRINTS("28.85") PRINTS("233"));
    assert_ended(&s, AGENT_ANSWERED, 2, 4);
    assert_string_equal(s.seen.answer, "233 women survived.");
    scene_close(&s);
    play_with_file(&s, "how many women survived?", CALL("mean") SAY("It is 28.85.") SAY("It is 28.85."),
                   PRINTS("28.85"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_says(s.seen.answer, "28.85 cannot be a count");
    assert_string_equal(s.seen.unsupported, "28.85");
    scene_close(&s);
}

static void an_answer_without_the_count_gets_what_the_program_printed(void **state)
{
    struct scene s;
    (void)state;
    play_with_file(&s, "How many women survived?", CALL("sum") SAY("How many women survived?") SAY("Women survived."),
                   PRINTS("233"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_string_equal(s.seen.answer, "Women survived.\n\nThe newest program printed:\n```\n233\n```");
    scene_close(&s);
}

static void another_than_the_highest_is_sent_back(void **state)
{
    struct scene s;
    (void)state;
    play_with_file(
        &s, "on which day is it highest?",
        CALL("means") SAY(
            "It is highest on Fri, 17.15.") "{\"text\":\"It is highest on Sun, 21.41.\",\"expect\":\"shows it otherwise: 21.41\"}\n",
        PRINTS("Fri  17.15\\nSun  21.41"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_string_equal(s.seen.answer, "It is highest on Sun, 21.41.");
    scene_close(&s);
}

#define NOTED(text, note) "{\"stdout\":\"" text "\",\"notes\":[\"" note "\"]}\n"

static void a_note_that_the_answer_passes_by_is_asked_about(void **state)
{
    struct scene s;
    (void)state;
    play_with_file(
        &s, "in which year was it?",
        CALL("a")
            SAY("It was in 95.") "{\"calls\":[{\"args\":{\"code\":\"b\"}}],\"expect\":\"output: `i` is the number of a "
                                 "row. If\"}\n" SAY("It was in 1982."),
        NOTED("95", "check: `i` is the number of a row.") PRINTS("1982"));
    assert_ended(&s, AGENT_ANSWERED, 2, 4);
    assert_string_equal(s.seen.answer, "It was in 1982.");
    scene_close(&s);
    play_with_file(&s, "in which year was it?", CALL("a") SAY("It was in 95.") SAY("It was in 95."),
                   NOTED("95", "check: `i` is the number of a row."));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_string_equal(s.seen.answer,
                        "It was in 95.\n\n*(A note stands below the output: `i` is the number of a row. Please check "
                        "before use.)*");
    scene_close(&s);
    play_with_file(&s, "in which year was it?", CALL("a") SAY("It was in 1982."),
                   NOTED("1982", "pip is not available"));
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    scene_close(&s);
}

static void the_measure_of_a_column_that_nobody_asked_for_is_sent_back(void **state)
{
    struct scene s;
    (void)state;
    play_with_file(
        &s, "what is the mean salary?",
        CALL("df['fare'].mean()")
            SAY("The mean salary is 32.2.") "{\"text\":\"There is no salary here.\",\"expect\":\"used: `fare`\"}\n",
        PRINTS("32.2"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_string_equal(s.seen.answer, "There is no salary here.");
    scene_close(&s);
    play_with_file(&s, "what is the mean salary?",
                   CALL("df['fare'].mean()") SAY("The mean salary is 32.2.") SAY("The mean salary is 32.2."),
                   PRINTS("32.2"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_string_equal(
        s.seen.answer, "The mean salary is 32.2.\n\n*(Computed from `fare`; no column is called what the question asks "
                       "for. Please check before use.)*");
    scene_close(&s);
    play_with_file(&s, "what is the mean salary?",
                   CALL("df['fare'].mean()") SAY("The mean salary is 32.2.")
                       SAY("The mean salary is 32.2, taking `fare` for it."),
                   PRINTS("32.2"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_string_equal(s.seen.answer, "The mean salary is 32.2, taking `fare` for it.");
    scene_close(&s);
    play_with_file(&s, "what is the mean fare?", CALL("df['fare'].mean()") SAY("The mean fare is 32.2."),
                   PRINTS("32.2"));
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    scene_close(&s);
}

static void a_program_that_nobody_fenced_is_run_unless_one_was_asked_for(void **state)
{
    struct scene s;
    (void)state;
    play_with_file(&s, "how many women survived?",
                   SAY("import pandas as pd\\nprint(n)\\n# it is 150") SAY("233 women survived."), PRINTS("233"));
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    assert_string_equal(sandbox_fake_asked(0), "cell import pandas as pd\nprint(n)\n# it is 150");
    scene_close(&s);
    play_with_file(&s, "show me a script that imports pandas", SAY("import pandas as pd\\nprint(pd)"), "");
    assert_ended(&s, AGENT_ANSWERED, 0, 1);
    scene_close(&s);
}

static void what_is_only_promised_is_sent_back(void **state)
{
    struct scene s;
    (void)state;
    play_with_file(
        &s, "what share of them survived?",
        CALL("df.columns") SAY(
            "I need to load the data first. I will try again with the right name.") "{"
                                                                                    "\"calls\":[{\"args\":{\"code\":\"m\"}}],\"expect\":\"Do it now\"}\n" SAY(
                                                                                        "It is 38.4 %."),
        PRINTS("Index") PRINTS("38.4"));
    assert_ended(&s, AGENT_ANSWERED, 2, 4);
    assert_null(strstr(s.seen.messages, "I will try again"));
    scene_close(&s);
    play_with_file(&s, "what share of them survived?",
                   CALL("df.columns") SAY("The file does not say. Let me know what to do."), PRINTS("Index"));
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    scene_close(&s);
}

#define DAYS_FILE                                                                                                                 \
    "[{\"path\":\"a.csv\",\"name\":\"a.csv\",\"kind\":\"csv\",\"bytes\":9,\"sha256\":\"00\",\"rows\":244,\"columns\":[{\"name\":" \
    "\"day\",\"dtype\":\"category\",\"examples\":[\"Sat\",\"Sun\",\"Thur\"]}]}]"

/* What a profile says of the table is no result of a program that put out something else. */
static void a_number_that_only_the_profile_shows_is_asked_about_when_a_program_brought_none(void **state)
{
    struct scene s;
    (void)state;
    play_with_file(
        &s, "how many boarded at the port where most did?",
        CALL("idxmax")
            SAY("It was S, with 244.") "{\"calls\":[{\"args\":{\"code\":\"max\"}}],\"expect\":\"No output shows "
                                       "this of your answer: 244\"}\n" SAY("It was S, with 144.\\n```python\\nx\\n```"),
        PRINTS("S") PRINTS("144"));
    assert_ended(&s, AGENT_ANSWERED, 2, 4);
    assert_string_equal(s.seen.answer, "It was S, with 144.");
    scene_close(&s);
    play_with_file(&s, "draw the ages of all", CALL("plot") SAY("The chart shows the ages of 244 people."),
                   "{\"figures\":[{\"path\":\"f.png\",\"width\":640,\"height\":480}]}\n");
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    assert_string_equal(s.seen.answer, "The chart shows the ages of 244 people.");
    scene_close(&s);
    play_with_file(&s, "how many are there in all and of S?", CALL("s") SAY("There are 144 of S among all 244."),
                   PRINTS("144"));
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    scene_close(&s);
}

/* A profile lists the days; which of them it is has to come out of a program. */
static void a_day_that_only_the_profile_shows_is_no_result(void **state)
{
    struct scene s;
    struct err e = { 0 };
    (void)state;
    scene_open(
        &s,
        CALL("idxmax") SAY(
            "The mean bill is highest on a **Saturday**.") "{\"calls\":[{\"args\":{\"code\":"
                                                           "\"again\"}}],\"expect\":\"No output shows this of your answer: Saturday\"}\n" SAY(
                                                               "It is highest on Sunday."),
        PRINTS("0") PRINTS("Sun"));
    assert_int_equal(json_parse(&s.files, DAYS_FILE, strlen(DAYS_FILE), 1 << 20, &e), 0);
    scene_start_with(&s, "On which day is the mean bill highest?", NULL);
    world_run(&s.w, 3000);
    assert_ended(&s, AGENT_ANSWERED, 2, 4);
    assert_string_equal(s.seen.answer, "It is highest on Sunday.");
    scene_close(&s);
}

static void replies_that_need_no_program_are_left_alone(void **state)
{
    static const struct {
        const char *request, *reply;
    } cases[] = {
        { "hello", "Hello! What would you like to know?" },
        { "thanks, that was great", "You are welcome." },
        { "how many rows?", "There are 244 rows." },
        { "what is the mean?", "Of which column?" },
        { "which columns are there?", "Only one, x." },
        { "\xe4\xbd\xa0\xe5\xa5\xbd", "\xe4\xbd\xa0\xe5\xa5\xbd\xe3\x80\x82" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct scene s;
        autofree char *line = xasprintf("{\"text\":\"%s\"}\n", cases[i].reply);
        play_with_file(&s, cases[i].request, line, "");
        assert_ended(&s, AGENT_ANSWERED, 0, 1);
        scene_close(&s);
    }
}

/* ---- programs that show nothing ---- */

/* Two files, in the first turn. */
#define TWO_FILES                                                                                                         \
    "[{\"path\":\"/mnt/data/a.csv\",\"name\":\"a.csv\",\"kind\":\"csv\",\"rows\":244,\"load\":\"pd.read_csv('a.csv')\"}," \
    "{\"path\":\"/mnt/data/b.csv\",\"name\":\"b.csv\",\"kind\":\"csv\",\"rows\":31,\"load\":\"pd.read_csv('b.csv')\"}]"

static void play_first(struct scene *s, const char *request, const char *model_lines, const char *box_lines)
{
    struct err e = { 0 };
    scene_open(s, model_lines, box_lines);
    s->first_cell = 1;
    assert_int_equal(json_parse(&s->files, TWO_FILES, strlen(TWO_FILES), 1 << 20, &e), 0);
    scene_start_with(s, request, NULL);
    world_run(&s->w, 3000);
    assert_true(s->seen.done);
}

#define ASKED(code, part) "{\"calls\":[{\"args\":{\"code\":\"" code "\"}}],\"expect\":\"" part "\"}\n"
#define SAID(text, part)  "{\"text\":\"" text "\",\"expect\":\"" part "\"}\n"

static void a_printed_constant_is_no_result(void **state)
{
    struct scene s;
    (void)state;
    play_first(&s, "what is the mean of x in a.csv?",
               CALL("df = pd.read_csv('a.csv')\\nprint('The mean is 42.5')") SAY("The mean is 42.5.")
                   ASKED("print(df.x.mean())", "No output shows this of your answer: 42.5") SAY("The mean is 31.25."),
               PRINTS("The mean is 42.5") PRINTS("31.25"));
    assert_ended(&s, AGENT_ANSWERED, 2, 4);
    assert_null(s.seen.unsupported);
    assert_string_equal(s.seen.answer, "The mean is 31.25.");
    scene_close(&s);
    play_first(&s, "what is the mean of x?",
               CALL("try:\\n    m = pd.read_csv('a.csv').y.mean()\\nexcept Exception:\\n    m = 42.5\\nprint(m)")
                   SAY("The mean is 42.5.") SAID("As computed above, it is 42.5.", "No output shows this"),
               PRINTS("42.5"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_string_equal(s.seen.unsupported, "42.5");
    scene_close(&s);
}

static void what_follows_from_outputs_is_asked_for_once_and_not_marked(void **state)
{
    struct scene s;
    (void)state;
    play_first(&s, "how many are there of each in a.csv?",
               CALL("pd.read_csv('a.csv').n") SAY("68 at lunch and 176 at dinner, together 245.")
                   SAID("68 at lunch and 176 at dinner, together 244.", "No output shows this of your answer: 245"),
               PRINTS("68 176"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_null(s.seen.unsupported);
    assert_string_equal(s.seen.answer, "68 at lunch and 176 at dinner, together 244.");
    scene_close(&s);
    play_first(&s, "how many are there of each in b.csv?",
               CALL("pd.read_csv('b.csv').n") SAY("68 at lunch and 176 at dinner, a difference of 108.")
                   ASKED("print(b - a)", "No output shows this of your answer: 108") SAY("68 and 176, 108 more."),
               PRINTS("68 176") PRINTS("108"));
    assert_ended(&s, AGENT_ANSWERED, 2, 4);
    assert_null(s.seen.unsupported);
    scene_close(&s);
}

static void programs_have_to_read_what_was_sent(void **state)
{
    struct scene s;
    (void)state;
    play_first(&s, "what is the mean of x?",
               CALL("df = pd.DataFrame({'x': [25, 26]})\\nprint(df.x.mean())") SAY("The mean is 25.5.")
                   ASKED("print(pd.read_csv('a.csv').x.mean())", "No program of yours has read a file")
                       SAY("The mean is 31.25."),
               PRINTS("25.5") PRINTS("31.25"));
    assert_ended(&s, AGENT_ANSWERED, 2, 4);
    assert_string_equal(s.seen.answer, "The mean is 31.25.");
    scene_close(&s);
    play_first(&s, "what is the mean of x?",
               CALL("df = pd.DataFrame({'x': [25, 26]})\\nprint(df.x.mean())") SAY("The mean is 25.5.")
                   SAY("The mean is 25.5."),
               PRINTS("25.5"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_says(s.seen.answer, "No program read any of the files");
    scene_close(&s);
    play_first(&s, "what is the mean of x in a.csv?",
               CALL("print(pd.read_csv('b.csv').x.mean())") SAY("The mean is 25.5.")
                   ASKED("print(pd.read_csv('a.csv').x.mean())", "names a.csv, but your programs read b.csv")
                       SAY("The mean is 31.25."),
               PRINTS("25.5") PRINTS("31.25"));
    assert_ended(&s, AGENT_ANSWERED, 2, 4);
    assert_string_equal(s.seen.answer, "The mean is 31.25.");
    scene_close(&s);
    play_first(&s, "what is the mean of x in a.csv?",
               CALL("print(pd.read_csv('b.csv').x.mean())") SAY("The mean is 25.5.") SAY("The mean is 25.5."),
               PRINTS("25.5"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_says(s.seen.answer, "names `a.csv`; what was read is `b.csv`");
    scene_close(&s);
    play_first(&s, "what is 17 times 23?", CALL("print(17 * 23)") SAY("It is 391."), PRINTS("391"));
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    assert_string_equal(s.seen.answer, "It is 391.");
    scene_close(&s);
}

static void an_answer_is_no_echo_and_in_the_language_of_the_question(void **state)
{
    struct scene s;
    (void)state;
    play_first(&s, "What is the mean of x in a.csv?",
               CALL("print(pd.read_csv('a.csv').x.mean())") SAY("What is the mean of x in a.csv")
                   SAID("It is 31.25.", "only repeats the question"),
               PRINTS("31.25"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_string_equal(s.seen.answer, "It is 31.25.");
    scene_close(&s);
    play_first(&s, "What is the mean of x in a.csv?",
               CALL("print(pd.read_csv('a.csv').x.mean())") SAY("What is the mean of x in a.csv?")
                   SAY("What is the mean of x in a.csv?"),
               PRINTS("31.25"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_says(s.seen.answer, "31.25");
    scene_close(&s);
    play_first(&s, "What is the mean of x in a.csv?",
               CALL("print(pd.read_csv('a.csv').x.mean())")
                   SAY("文件中列的平均值是三十一点二五，所有的行都计算在内，没有缺失的值。31.25")
                       SAID("It is 31.25.", "not in the language of the question"),
               PRINTS("31.25"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_string_equal(s.seen.answer, "It is 31.25.");
    scene_close(&s);
}

/* An output that the model wrote itself, in front of or without a program. */
static void an_output_that_nothing_put_out_is_no_output(void **state)
{
    struct scene s;
    (void)state;
    play_first(&s, "what is the mean of x in a.csv?",
               SAY("```python\\nprint(df.x.mean())\\n```\\nOutput:\\n```\\n42.5\\n```\\nThe mean is 42.5.")
                   ASKED("print(pd.read_csv('a.csv').x.mean())", "You have not run anything yet") SAY("It is 31.25."),
               PRINTS("31.25"));
    assert_ended(&s, AGENT_ANSWERED, 1, 3);
    assert_string_equal(s.seen.answer, "It is 31.25.");
    scene_close(&s);
}

static void a_short_question_about_words_needs_no_program(void **state)
{
    static const char *const asked[] = { "what do you mean by that?", "why is the mean so high?",
                                         "was meinst du mit Summe?", "为什么平均值这么高？" };
    (void)state;
    for (size_t i = 0; i < countof(asked); i++) {
        struct scene s;
        struct err e = { 0 };
        scene_open(&s, SAY("It is the usual one."), "");
        transcript_add(&s.history, MODEL_USER, "[user: @ann] what is the mean?");
        transcript_add(&s.history, MODEL_ASSISTANT, "It is high.");
        assert_int_equal(json_parse(&s.files, TWO_FILES, strlen(TWO_FILES), 1 << 20, &e), 0);
        scene_start_with(&s, asked[i], NULL);
        world_run(&s.w, 3000);
        assert_ended(&s, AGENT_ANSWERED, 0, 1);
        scene_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_first_reply_without_a_program_is_sent_back_once),
        cmocka_unit_test(advice_after_programs_that_all_failed_is_no_answer),
        cmocka_unit_test(a_reply_without_a_program_is_sent_back_twice_then_given),
        cmocka_unit_test(a_program_in_another_language_is_sent_back),
        cmocka_unit_test(how_many_wants_a_whole_number),
        cmocka_unit_test(a_count_is_looked_up_however_small),
        cmocka_unit_test(a_mean_in_place_of_a_count_is_sent_back_and_marked_when_it_stays),
        cmocka_unit_test(an_answer_without_the_count_gets_what_the_program_printed),
        cmocka_unit_test(another_than_the_highest_is_sent_back),
        cmocka_unit_test(a_note_that_the_answer_passes_by_is_asked_about),
        cmocka_unit_test(the_measure_of_a_column_that_nobody_asked_for_is_sent_back),
        cmocka_unit_test(a_program_that_nobody_fenced_is_run_unless_one_was_asked_for),
        cmocka_unit_test(what_is_only_promised_is_sent_back),
        cmocka_unit_test(a_number_that_only_the_profile_shows_is_asked_about_when_a_program_brought_none),
        cmocka_unit_test(a_day_that_only_the_profile_shows_is_no_result),
        cmocka_unit_test(replies_that_need_no_program_are_left_alone),
        cmocka_unit_test(a_printed_constant_is_no_result),
        cmocka_unit_test(what_follows_from_outputs_is_asked_for_once_and_not_marked),
        cmocka_unit_test(programs_have_to_read_what_was_sent),
        cmocka_unit_test(an_answer_is_no_echo_and_in_the_language_of_the_question),
        cmocka_unit_test(an_output_that_nothing_put_out_is_no_output),
        cmocka_unit_test(a_short_question_about_words_needs_no_program),
    };
    return cmocka_run_group_tests_name("agent_replies", tests, NULL, NULL);
}
