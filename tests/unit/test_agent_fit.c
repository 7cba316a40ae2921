/* Conversations that grow: estimates and what reports teach, messages that become fewer, prompts that stay within the window. */
#include "core_scene.h"

/* ---- tokens ---- */

static void tokens_are_estimated_by_script(void **state)
{
    static const struct {
        const char *text;
        int64_t low, high;
    } cases[] = {
        { "", 0, 0 },
        { "The quick brown fox jumps over the lazy dog.", 9, 13 },
        { "import pandas as pd\nprint(df['a'].mean())", 10, 16 },
        { "3.14159, 2.71828, 1.41421", 7, 14 },
        { "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82, \xd0\xbc\xd0\xb8\xd1\x80", 4, 7 },
        { "\xe9\x94\x80\xe5\x94\xae\xe9\xa2\x9d\xe6\x98\xaf\xe5\xa4\x9a\xe5\xb0\x91", 4, 7 },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++)
        assert_in_range(tokens_of_text(cases[i].text), cases[i].low, cases[i].high);
}

static void reports_teach_how_a_model_counts(void **state)
{
    struct token_scale s = { 0 };
    (void)state;
    assert_int_equal(tokens_scaled(&s, 1000), 1000);
    assert_int_equal(tokens_scaled(NULL, 1000), 1000);
    assert_true(tokens_learn(&s, 1000, 1500));
    assert_int_equal(tokens_scaled(&s, 1000), 1500);
    for (int i = 0; i < 20; i++)
        assert_true(tokens_learn(&s, 10000, 12000));
    assert_in_range(tokens_scaled(&s, 1000), 1195, 1205);
    assert_true(tokens_learn(&s, 1000, 0)); /* not reported */
    assert_in_range(tokens_scaled(&s, 1000), 1195, 1205);
    assert_true(tokens_learn(NULL, 1000, 1));
}

static void a_report_that_is_far_too_small_means_a_lost_front(void **state)
{
    static const struct {
        double ratio;
        int64_t estimate, reported;
        bool good;
    } cases[] = {
        { 0, 20000, 4096, false }, { 0, 20000, 11000, true },  { 1, 20000, 11000, false }, { 1, 20000, 13000, true },
        { 0, 1500, 100, true },    { 2, 10000, 11000, false }, { 0.7, 10000, 5000, true },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct token_scale s = { .ratio = cases[i].ratio };
        assert_int_equal(tokens_learn(&s, cases[i].estimate, cases[i].reported), cases[i].good);
        assert_int_equal(s.window, cases[i].good ? 0 : cases[i].reported);
        if (!cases[i].good)
            assert_true(s.ratio == cases[i].ratio);
    }
}

/* ---- a talk ---- */

static char *long_text(size_t lines)
{
    AUTO(str_clear) struct str text = STR_INIT(1 << 20);
    str_puts(&text, "cell 1: ok, 0.1 s\n");
    for (size_t i = 0; i < lines; i++)
        str_printf(&text, "row %zu 0123456789 0123456789\n", i);
    return str_take(&text);
}

/* Question, a program that failed, one that worked, answer. */
static void make_turn(struct transcript *t, int i, size_t lines)
{
    autofree char *question = xasprintf("[user: @ann] q%d", i), *answer = xasprintf("a%d", i),
                  *output = long_text(lines);
    transcript_add(t, MODEL_USER, question);
    transcript_add_call(transcript_add(t, MODEL_ASSISTANT, ""), "bad", "run_python", "{\"code\":\"1/0\"}");
    transcript_add_result(t, "bad", "cell 1: failed", true);
    transcript_add_call(transcript_add(t, MODEL_ASSISTANT, ""), "good", "run_python", "{\"code\":\"1\"}");
    transcript_add_result(t, "good", output, false);
    transcript_add(t, MODEL_ASSISTANT, answer);
}

static void make_talk(struct talk *t, size_t n, size_t lines)
{
    *t = (struct talk){ 0 };
    transcript_add(&t->msgs, MODEL_SYSTEM, "system");
    for (size_t i = 0; i < n; i++) {
        struct transcript turn = { 0 };
        make_turn(&turn, (int)i, lines);
        talk_add_turn(t, &turn, (int64_t)i + 10, "gap");
        transcript_clear(&turn);
    }
    t->turn_at = t->msgs.n;
    transcript_add(&t->msgs, MODEL_USER, "now");
}

/* Roles alternate, each call has its result behind it, marks stand at questions. */
static void assert_whole(const struct talk *t)
{
    for (size_t i = 0; i < t->turn_n; i++) {
        assert_int_equal(t->msgs.at[t->turns[i].at].role, MODEL_USER);
        assert_int_equal(t->msgs.at[talk_turn_end(t, i) - 1].role, MODEL_ASSISTANT);
    }
    assert_int_equal(t->msgs.at[t->turn_at].role, MODEL_USER);
    for (size_t i = 1; i < t->msgs.n; i++) {
        const struct model_msg *m = &t->msgs.at[i];
        if (m->role == MODEL_USER)
            assert_true(i == 1 || t->msgs.at[i - 1].role == MODEL_ASSISTANT);
        for (size_t k = 0; k < m->call_n; k++) {
            assert_int_equal(t->msgs.at[i + 1 + k].role, MODEL_TOOL);
            assert_string_equal(t->msgs.at[i + 1 + k].call_id, m->calls[k].id);
        }
    }
}

static void turns_shrink_to_first_lines_and_lose_what_failed(void **state)
{
    struct talk t;
    (void)state;
    make_talk(&t, 5, 100);
    assert_int_equal(talk_old_turns(&t), 2);
    talk_shorten_turns(&t, 2, "(gone)");
    assert_whole(&t);
    assert_int_equal(t.msgs.n, 1 + 2 * 4 + 3 * 6 + 1);
    assert_string_equal(t.msgs.at[3].text, "cell 1: ok, 0.1 s\n(gone)");
    assert_true(strlen(t.msgs.at[t.turns[2].at + 4].text) > 1000);
    talk_shorten_turns(&t, 2, "(gone)"); /* once more changes nothing */
    assert_int_equal(t.msgs.n, 28);
    talk_clear(&t);
}

static void a_failure_that_nothing_replaced_stays(void **state)
{
    struct talk t = { 0 };
    struct transcript turn = { 0 };
    (void)state;
    transcript_add(&t.msgs, MODEL_SYSTEM, "s");
    transcript_add(&turn, MODEL_USER, "q");
    transcript_add_call(transcript_add(&turn, MODEL_ASSISTANT, ""), "x", "run_python", "{}");
    transcript_add_result(&turn, "x", "failed", true);
    transcript_add(&turn, MODEL_ASSISTANT, "It cannot be done.");
    talk_add_turn(&t, &turn, 1, "gap");
    talk_shorten_turns(&t, 1, "(gone)");
    assert_int_equal(t.msgs.n, 5);
    transcript_clear(&turn);
    talk_clear(&t);
}

static void a_stored_turn_is_shortened_in_the_same_way(void **state)
{
    struct talk t;
    struct transcript turn = { 0 };
    (void)state;
    make_talk(&t, 1, 100);
    make_turn(&turn, 0, 100);
    talk_shorten_turns(&t, 1, "(gone)");
    transcript_shorten(&turn, "(gone)");
    assert_int_equal(turn.n, 4);
    for (size_t i = 0; i < turn.n; i++)
        assert_string_equal(turn.at[i].text, t.msgs.at[1 + i].text);
    transcript_clear(&turn);
    talk_clear(&t);
}

static void notes_take_the_place_of_turns_and_of_earlier_notes(void **state)
{
    struct talk t;
    (void)state;
    make_talk(&t, 5, 1);
    talk_note(&t, 2, "notes one", "taken");
    assert_whole(&t);
    assert_string_equal(t.msgs.at[1].text, "notes one");
    assert_int_equal(t.turn_n, 3);
    assert_int_equal(t.turns[0].id, 12);
    talk_note(&t, 1, "notes two", "taken");
    assert_whole(&t);
    assert_string_equal(t.msgs.at[1].text, "notes two");
    assert_int_equal(t.msgs.n, 3 + 2 * 6 + 1);
    talk_drop_turns(&t, 2);
    assert_whole(&t);
    assert_int_equal(t.msgs.n, 4);
    talk_clear(&t);
}

static void any_cut_leaves_whole_turns(void **state)
{
    (void)state;
    for (size_t n = 0; n <= 60; n += 7) {
        struct talk t;
        make_talk(&t, 60, 3);
        talk_drop_turns(&t, n);
        assert_whole(&t);
        assert_int_equal(t.turn_n, 60 - n);
        assert_int_equal(t.msgs.n, 1 + (60 - n) * 6 + 1);
        talk_clear(&t);
    }
}

/* ---- turns of an agent ---- */

enum { TURNS = 30 };

static void history(struct transcript turns[TURNS], int64_t ids[TURNS], size_t lines)
{
    for (int i = 0; i < TURNS; i++) {
        turns[i] = (struct transcript){ 0 };
        make_turn(&turns[i], i, lines);
        ids[i] = 100 + i;
    }
}

static void scene_with_history(struct scene *s, const struct transcript *turns, const int64_t *ids, const char *context,
                               const char *model_lines, const char *box_lines)
{
    struct err e = { 0 };
    scene_open(s, model_lines, box_lines);
    assert_int_equal(conf_set(&s->w.conf, context, &e), 0);
    assert_int_equal(conf_set(&s->w.conf, "model.tape.max_output=500", &e), 0);
    s->turns = turns;
    s->turn_ids = ids;
    s->turn_n = TURNS;
    scene_start_with(s, "and now?", NULL);
    world_run(&s->w, 3000);
    assert_true(s->seen.done);
}

static void clear_history(struct transcript turns[TURNS])
{
    for (int i = 0; i < TURNS; i++)
        transcript_clear(&turns[i]);
}

static void a_conversation_that_fits_is_sent_as_it_is(void **state)
{
    struct scene s;
    struct transcript turns[TURNS];
    int64_t ids[TURNS];
    (void)state;
    history(turns, ids, 10);
    scene_with_history(&s, turns, ids, "model.tape.context=100000", SAY("fine"), "");
    assert_ended(&s, AGENT_ANSWERED, 0, 1);
    assert_int_equal(sent.n, 1);
    assert_says(sent.text[0], "q0\"");
    assert_null(s.kept_notes);
    assert_int_equal(s.shortened, 0);
    scene_close(&s);
    clear_history(turns);
}

static void old_outputs_go_before_anything_is_summarised(void **state)
{
    struct scene s;
    struct transcript turns[TURNS];
    int64_t ids[TURNS];
    (void)state;
    history(turns, ids, 60);
    scene_with_history(&s, turns, ids, "model.tape.context=16000", SAY("fine"), "");
    assert_ended(&s, AGENT_ANSWERED, 0, 1);
    assert_int_equal(sent.n, 1); /* no call for notes */
    assert_says(sent.text[0], "q0\"");
    assert_says(sent.text[0], "left out to save space");
    assert_int_equal(s.shortened, 126); /* all but the newest three */
    assert_true(sent.tokens[0] < 15500 * 75 / 100);
    scene_close(&s);
    clear_history(turns);
}

static void old_turns_become_notes_by_one_call_and_the_newest_three_stay(void **state)
{
    struct scene s;
    struct transcript turns[TURNS];
    int64_t ids[TURNS];
    (void)state;
    history(turns, ids, 60);
    scene_with_history(
        &s, turns, ids, "model.tape.context=8000",
        "{\"text\":\"df holds 891 rows.\",\"tools\":\"none\",\"expect\":\"Shorten the earlier part\",\"usage\":{\"in\":3000,\"out\":20}}\n"
        "{\"text\":\"fine\",\"tools\":\"auto\",\"expect\":\"[user: @ann] and now?\",\"usage\":{\"in\":2500,\"out\":5}}\n",
        "{\"op\":\"vars\",\"vars\":[{\"name\":\"df\",\"type\":\"DataFrame\",\"detail\":\"(891, 12)\"}]}\n");
    assert_ended(&s, AGENT_ANSWERED, 0, 1);
    assert_int_equal(sent.n, 2);
    assert_null(strstr(sent.text[1], "q26\""));
    assert_says(sent.text[1], "q27\"");
    assert_says(sent.text[1], "df holds 891 rows.");
    assert_says(sent.text[1], "Variables that exist now:\\n- 'df' DataFrame (891, 12)");
    assert_string_equal(s.kept_notes, "df holds 891 rows.");
    assert_int_equal(s.noted, 126);
    assert_int_equal(s.seen.tokens, 5525); /* notes cost, too */
    scene_close(&s);
    clear_history(turns);
}

static void without_notes_from_the_model_we_write_our_own(void **state)
{
    static const char *const failures[] = { "{\"error\":{\"kind\":\"net\"}}\n", SAY(" "),
                                            "{\"text\":\"cut\",\"stop\":\"length\"}\n" };
    (void)state;
    for (size_t i = 0; i < countof(failures); i++) {
        struct scene s;
        struct transcript turns[TURNS];
        int64_t ids[TURNS];
        autofree char *lines = xasprintf("%s%s", failures[i], SAY("fine"));
        history(turns, ids, 60);
        scene_with_history(&s, turns, ids, "model.tape.context=8000", lines, "");
        assert_ended(&s, AGENT_ANSWERED, 0, 1);
        assert_says(s.kept_notes, "- [user: @ann] q3\n  answered: a3\n");
        assert_says(sent.text[1], "answered: a3");
        scene_close(&s);
        clear_history(turns);
    }
}

#define TOO_LONG "{\"error\":{\"kind\":\"refused\",\"too_long\":true}}\n"

static void too_long_for_the_provider_is_shortened_once_and_asked_again(void **state)
{
    struct scene s;
    struct transcript turns[TURNS];
    int64_t ids[TURNS];
    (void)state;
    history(turns, ids, 60);
    scene_with_history(&s, turns, ids, "model.tape.context=100000", TOO_LONG SAY("fine"), "");
    assert_ended(&s, AGENT_ANSWERED, 0, 1);
    assert_int_equal(sent.n, 2);
    assert_true(sent.tokens[1] < sent.tokens[0] / 2);
    scene_close(&s);
    scene_with_history(&s, turns, ids, "model.tape.context=100000", TOO_LONG TOO_LONG, "");
    assert_ended(&s, AGENT_FAILED, 0, 0);
    assert_says(s.seen.answer, "longer than the model can read");
    scene_close(&s);
    clear_history(turns);
}

static void the_window_that_a_refusal_names_is_kept_to_from_then_on(void **state)
{
    struct scene s;
    struct transcript turns[TURNS];
    int64_t ids[TURNS];
    (void)state;
    history(turns, ids, 60);
    scene_with_history(&s, turns, ids, "model.tape.context=100000",
                       "{\"error\":{\"kind\":\"refused\",\"too_long\":true,\"window\":4096,\"sent\":60000}}\n" SAY(
                           "notes") SAY("fine"),
                       "");
    assert_ended(&s, AGENT_ANSWERED, 0, 1);
    assert_int_equal(s.scale.window, 4096);
    assert_true(tokens_scaled(&s.scale, sent.tokens[0]) > 55000);
    assert_true(tokens_scaled(&s.scale, sent.tokens[sent.n - 1]) < 4096);
    scene_close(&s);
    clear_history(turns);
}

static void a_server_that_drops_the_front_is_told_once_and_not_overfilled_again(void **state)
{
    struct scene s;
    struct transcript turns[TURNS];
    int64_t ids[TURNS];
    (void)state;
    history(turns, ids, 90);
    scene_with_history(&s, turns, ids, "model.tape.context=100000",
                       "{\"calls\":[{\"args\":{\"code\":\"x\"}}],\"usage\":{\"in\":8192,\"out\":5}}\n"
                       "{\"text\":\"notes\",\"usage\":{\"in\":5000,\"out\":5}}\n"
                       "{\"text\":\"fine\",\"usage\":{\"in\":3000,\"out\":5}}\n",
                       "");
    assert_ended(&s, AGENT_ANSWERED, 1, 2);
    assert_says(s.seen.answer, "reads less of a conversation than it is set up for");
    assert_true(s.scale.told);
    assert_int_equal(s.scale.window, 8192);
    assert_true(sent.tokens[sent.n - 1] < 8192);
    scene_close(&s);
    clear_history(turns);
}

/* ---- what stays the same ---- */

static size_t same_prefix(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] && a[n] == b[n])
        n++;
    return n;
}

/* The provider has read 95 per cent of the shorter one already. */
static bool is_continued(const char *a, const char *b)
{
    const size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);
    return same_prefix(a, b) * 100 >= n * 95;
}

static void from_step_to_step_the_prompt_only_grows_at_its_end(void **state)
{
    struct scene s;
    (void)state;
    scene_play(&s, CALL("a") CALL("b") SAY(""), PRINTS("one") PRINTS("two"));
    assert_true(sent.n >= 3);
    for (size_t i = 1; i < 3; i++)
        assert_true(is_continued(sent.text[i - 1], sent.text[i]));
    scene_close(&s);
}

/* Through sessions and the store: thirty programs with long outputs and thirty questions. */
static void turn_thirty_fits_the_window_and_repeats_what_was_sent(void **state)
{
    struct world w;
    AUTO(str_clear) struct str model = STR_INIT(1 << 20), box = STR_INIT(4 << 20);
    struct err e = { 0 };
    size_t same = 0;
    (void)state;
    for (int i = 0; i < 30; i++) {
        str_puts(&model, SAY("done") SAY("done") SAY("done")); /* notes as well as answers */
        str_puts(&box, "{\"stdout\":\"");
        for (int k = 0; k < 100; k++)
            str_printf(&box, "line %d value %d\\n", k, k * 7 + i);
        str_puts(&box, "\"}\n");
    }
    world_open(&w, "", str_peek(&box));
    assert_int_equal(conf_set(&w.conf, "model.tape.context=12000", &e), 0);
    assert_int_equal(conf_set(&w.conf, "model.tape.max_output=1000", &e), 0);
    w.spy = &model_spy_whole;
    world_start(&w, str_peek(&model));
    for (int i = 0; i < 30; i++) {
        world_say(&w, "```python\nf()\n```");
        world_run(&w, 100);
        world_say(&w, "go on");
        world_run(&w, 100);
    }
    assert_int_equal(world_count(&w, CHAT_ANSWER), 60);
    for (size_t i = 1; i < 60; i += 2)
        assert_string_equal(answer(&w, i), "done");
    assert_int_equal(world_cells(), 30);
    assert_in_range(sent.n, 30, 40); /* few calls are for notes */
    for (size_t i = 0; i < sent.n; i++)
        assert_true(sent.tokens[i] <= (12000 - 1000) * 95 / 100);
    for (size_t i = 1; i < sent.n; i++)
        same += is_continued(sent.text[i - 1], sent.text[i]);
    assert_true(same * 100 >= (sent.n - 1) * 80); /* it is seldom that the old text changes */
    sent_forget();
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_estimated_by_script),
        cmocka_unit_test(reports_teach_how_a_model_counts),
        cmocka_unit_test(a_report_that_is_far_too_small_means_a_lost_front),
        cmocka_unit_test(turns_shrink_to_first_lines_and_lose_what_failed),
        cmocka_unit_test(a_failure_that_nothing_replaced_stays),
        cmocka_unit_test(a_stored_turn_is_shortened_in_the_same_way),
        cmocka_unit_test(notes_take_the_place_of_turns_and_of_earlier_notes),
        cmocka_unit_test(any_cut_leaves_whole_turns),
        cmocka_unit_test(a_conversation_that_fits_is_sent_as_it_is),
        cmocka_unit_test(old_outputs_go_before_anything_is_summarised),
        cmocka_unit_test(old_turns_become_notes_by_one_call_and_the_newest_three_stay),
        cmocka_unit_test(without_notes_from_the_model_we_write_our_own),
        cmocka_unit_test(too_long_for_the_provider_is_shortened_once_and_asked_again),
        cmocka_unit_test(the_window_that_a_refusal_names_is_kept_to_from_then_on),
        cmocka_unit_test(a_server_that_drops_the_front_is_told_once_and_not_overfilled_again),
        cmocka_unit_test(from_step_to_step_the_prompt_only_grows_at_its_end),
        cmocka_unit_test(turn_thirty_fits_the_window_and_repeats_what_was_sent),
    };
    return cmocka_run_group_tests_name("agent_fit", tests, NULL, NULL);
}
