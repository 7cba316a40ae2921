/* Conversations: what reaches a turn, in which order, and that each question has one answer whatever happens. */
#include "core_world.h"

/* ---- the plain way ---- */

static struct {
    char *facts, *status;
    int n;
} reported;

static void on_turn_done(void *ud, const struct turn_report *r)
{
    struct str text = STR_INIT(1 << 20);
    (void)ud;
    free(reported.facts);
    free(reported.status);
    json_print(&text, r->facts);
    reported.facts = str_take(&text);
    reported.status = xstrdup(r->status);
    reported.n++;
}

static void a_question_about_a_file_is_answered_with_everything_it_made(void **state)
{
    struct world w;
    (void)state;
    reported.n = 0;
    world_open(
        &w, "",
        "{\"op\":\"intake\",\"profiles\":[{\"path\":\"a.csv\",\"name\":\"a.csv\",\"kind\":\"csv\",\"bytes\":6,\"sha256\":\"ab\","
        "\"rows\":1200,\"columns\":[{\"name\":\"x\",\"dtype\":\"int\",\"nulls\":0}]}]}\n"
        "{\"stdout\":\"7\",\"figures\":[{\"path\":\"figure-1-1.png\"},{\"path\":\"figure-1-2.png\"}],\"files\":[{\"path\":"
        "\"out/t.csv\"},{\"path\":\".hidden\"},{\"path\":\"a.csv\",\"content\":\"x\\n1\\n2\\n\"}]}\n");
    w.watch.turn_done = on_turn_done;
    world_start(&w, "{\"calls\":[{\"args\":{\"code\":\"pd.read_csv('a.csv')\"}}],\"expect\":\"1200 rows x 1 columns\","
                    "\"usage\":{\"in\":1000,\"out\":20}}\n" SAY("It is 7."));
    world_send(&w, &(struct chat_event){ .direct = true, .text = "sum of x?" }, "a.csv", "x\n1\n2\n");
    world_run(&w, 500);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 1);
    const struct post *p = world_posted(&w, CHAT_ANSWER, 0);
    assert_string_equal(p->markdown, "It is 7.");
    assert_string_equal(p->txn, "test:ev1:answer");
    assert_string_equal(p->reply_to, "ev1");
    assert_string_equal(p->figures, "figure-1-1.png figure-1-2.png");
    assert_string_equal(p->files, "out/t.csv"); /* neither what is hidden nor the upload itself */
    assert_says(p->receipt, "1 cell \xc2\xb7 a.csv (1,200 rows) \xc2\xb7 ");
    assert_says(p->receipt, "1,020 tokens");
    assert_string_equal(sandbox_fake_asked(0), "put a.csv");
    assert_string_equal(sandbox_fake_asked(1), "intake a.csv");
    assert_int_equal(reported.n, 1);
    assert_string_equal(reported.status, "answered");
    assert_says(reported.facts, "{\"status\":\"answered\",\"answer\":\"It is 7.\",\"cells\":[{");
    assert_says(reported.facts, "\"code\":\"pd.read_csv('a.csv')\"");
    assert_says(reported.facts, "\"usage\":{\"in\":1000,\"cached\":0,\"out\":20},\"steps\":2");
    assert_int_equal(world_count(&w, CHAT_STATUS), 0); /* too fast to be worth one */
    world_close(&w);
}

static void the_next_question_knows_the_last_one_and_no_file_is_put_twice(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"op\":\"intake\",\"profiles\":[]}\n" PRINTS("7"));
    world_start(&w, CALL("x=7") SAY("It is 7.") "{\"text\":\"8\",\"expect\":\"and plus one?\"}\n");
    world_send(&w, &(struct chat_event){ .direct = true, .text = "x?" }, "a.csv", "x\n");
    world_run(&w, 100);
    world_say(&w, "and plus one?");
    world_run(&w, 100);
    assert_string_equal(answer(&w, 1), "8");
    assert_string_equal(sandbox_fake_asked(2), "cell x=7");
    assert_null(sandbox_fake_asked(3));
    world_close(&w);
}

static void the_hub_says_when_all_is_answered(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, "{\"text\":\"1\",\"delay_ms\":200}\n{\"text\":\"2\",\"delay_ms\":200}\n");
    world_say(&w, "a");
    world_say(&w, "b");
    session_hub_events.on_end(w.hub, &w.chat);
    world_run(&w, 100);
    assert_int_equal(w.drained, 0);
    assert_false(session_hub_idle(w.hub));
    world_run(&w, 900);
    assert_int_equal(w.drained, 1);
    assert_true(session_hub_idle(w.hub));
    world_close(&w);
}

/* ---- the gate ---- */

static void only_what_is_meant_for_the_bot_starts_a_turn(void **state)
{
    static const struct {
        struct chat_event ev;
        bool taken;
    } cases[] = {
        { { .text = "hi", .direct = true }, true },
        { { .text = "hi", .mentioned = true }, true },
        { { .text = "hi" }, false },
        { { .text = "hi", .thread = "t1" }, false }, /* a thread that the bot is no part of */
        { { .text = "hi", .direct = true, .from_bot = true }, false },
        { { .text = "hi", .mentioned = true, .from_bot = true }, false },
        { { .text = "  ", .direct = true }, false },
        { { .text = "hi", .type = CHAT_LEFT, .direct = true }, false },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct world w;
        world_open(&w, "", "");
        world_start(&w, SAY("Hello."));
        assert_int_equal(world_event(&w, &cases[i].ev), 0);
        world_run(&w, 100);
        assert_int_equal(world_count(&w, CHAT_ANSWER), cases[i].taken);
        world_close(&w);
    }
}

static void a_thread_needs_its_mention_once_also_across_a_restart(void **state)
{
    struct world w;
    const struct chat_event first = { .text = "hi", .thread = "t", .mentioned = true },
                            then = { .text = "more", .thread = "t" };
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("1") SAY("2"));
    assert_int_equal(world_event(&w, &first), 0);
    world_run(&w, 100);
    assert_int_equal(world_event(&w, &then), 0);
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 2);
    assert_string_equal(world_posted(&w, CHAT_ANSWER, 1)->thread, "t");
    world_stop(&w);
    world_start(&w, SAY("3"));
    assert_int_equal(world_event(&w, &then), 0);
    world_run(&w, 100);
    assert_string_equal(answer(&w, 2), "3");
    world_close(&w);
}

static void an_event_of_a_stranger_is_refused(void **state)
{
    struct world w;
    struct chat stranger = { .world = &w };
    (void)state;
    world_open(&w, "", "");
    world_start(&w, "");
    const struct chat_event ev = { .id = "1", .room = "r", .sender = "s", .text = "hi", .direct = true };
    assert_int_equal(session_hub_events.on_event(w.hub, &stranger, &ev), -1);
    world_close(&w);
}

static void the_same_event_is_answered_once(void **state)
{
    struct world w;
    const struct chat_event ev = { .id = "same", .text = "hi", .direct = true };
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("1") SAY("2"));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world_event(&w, &ev), 0);
        world_run(&w, i * 600000);
    }
    world_stop(&w);
    world_start(&w, SAY("3"));
    assert_int_equal(world_event(&w, &ev), 0);
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 1);
    world_close(&w);
}

/* ---- the queue ---- */

static void three_questions_are_answered_in_order_and_told_their_place(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(
        &w, "{\"text\":\"1\",\"delay_ms\":4000,\"expect\":\"a\"}\n{\"text\":\"2\",\"delay_ms\":4000,\"expect\":\"b\"}\n"
            "{\"text\":\"3\",\"expect\":\"c\"}\n");
    world_say(&w, "a");
    world_say(&w, "b");
    world_say(&w, "c");
    world_run(&w, 1900);
    assert_int_equal(w.chat.n, 0); /* nothing in the first 2 s */
    world_run(&w, 1100);
    assert_int_equal(world_count(&w, CHAT_STATUS), 3);
    bool second = false, third = false;
    for (size_t i = 0; i < w.chat.n; i++) {
        second = second ||
                 (strcmp(w.chat.posts[i].txn, "test:ev2:status") == 0 && strstr(w.chat.posts[i].markdown, "number 2"));
        third = third ||
                (strcmp(w.chat.posts[i].txn, "test:ev3:status") == 0 && strstr(w.chat.posts[i].markdown, "number 3"));
    }
    assert_true(second && third);
    world_run(&w, 20000);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(answer(&w, i)[0], '1' + (int)i);
    world_close(&w);
}

static void a_status_line_is_rare_true_and_taken_away(void **state)
{
    struct world w;
    int64_t last = 0;
    (void)state;
    world_open(&w, "", "{\"delay_ms\":30000}\n");
    world_start(&w, CALL("slow()") SAY("done"));
    const int64_t asked = w.now_ms;
    world_say(&w, "go");
    world_run(&w, 40000);
    const size_t n = world_count(&w, CHAT_STATUS);
    assert_in_range(n, 4, 10);
    for (size_t i = 0; i < n; i++) {
        const struct post *p = world_posted(&w, CHAT_STATUS, i);
        assert_true(p->at_ms - asked >= 2000);
        assert_true(p->at_ms - last >= 1000 || !*p->markdown);
        last = p->at_ms;
    }
    assert_string_equal(world_posted(&w, CHAT_STATUS, 0)->markdown, "Running cell 1");
    assert_says(world_posted(&w, CHAT_STATUS, 1)->markdown, "Running cell 1, 7 s");
    assert_string_equal(world_posted(&w, CHAT_STATUS, n - 1)->markdown, "");
    world_close(&w);
}

static void two_sessions_run_side_by_side(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"delay_ms\":500,\"stdout\":\"1\"}\n{\"delay_ms\":100,\"stdout\":\"2\"}\n");
    world_start(&w, CALL("one") CALL("two") SAY("first to end") SAY("second to end"));
    assert_int_equal(world_event(&w, &(struct chat_event){ .room = "A", .text = "a", .direct = true }), 0);
    assert_int_equal(world_event(&w, &(struct chat_event){ .room = "B", .text = "b", .direct = true }), 0);
    world_run(&w, 900);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 2);
    assert_string_equal(world_posted(&w, CHAT_ANSWER, 0)->room, "B");
    assert_string_equal(world_posted(&w, CHAT_ANSWER, 1)->room, "A");
    world_close(&w);
}

/* ---- stopped, edited, deleted ---- */

static void stop_ends_a_cell_and_the_next_question_runs(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"hang\":true}\n" PRINTS("1"));
    world_start(&w,
                CALL("while True: pass") "{\"calls\":[{\"args\":{\"code\":\"1\"}}],\"expect\":\"next\"}\n" SAY("ok"));
    world_say(&w, "go");
    world_run(&w, 100);
    world_say(&w, "next");
    world_say(&w, "!stop");
    world_run(&w, 500);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 2);
    assert_says(answer(&w, 0), "Stopped by ann");
    assert_string_equal(answer(&w, 1), "ok");
    world_close(&w);
}

static void stop_all_drops_what_this_person_has_waiting(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"hang\":true}\n" PRINTS("1"));
    world_start(&w, CALL("while True: pass") SAY("for bob"));
    world_say(&w, "go");
    world_run(&w, 100);
    world_say(&w, "next");
    assert_int_equal(world_event(&w, &(struct chat_event){ .sender = "@bob:x", .text = "mine", .direct = true }), 0);
    world_say(&w, "!stop all");
    world_run(&w, 500);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 2);
    assert_says(answer(&w, 0), "Stopped by ann");
    assert_string_equal(answer(&w, 1), "for bob");
    world_close(&w);
}

static void a_reaction_stops_too(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"hang\":true}\n");
    world_start(&w, CALL("while True: pass"));
    world_say(&w, "go");
    world_run(&w, 100);
    const struct chat_event stop = {
        .type = CHAT_REACTION, .about = "ev1", .room = "elsewhere", .text = "\xf0\x9f\x9b\x91"
    };
    assert_int_equal(world_event(&w, &stop), 0);
    world_run(&w, 500);
    assert_says(answer(&w, 0), "Stopped by ann");
    world_close(&w);
}

static void an_edit_of_a_queued_question_replaces_it_in_place(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(
        &w,
        "{\"text\":\"1\",\"delay_ms\":500}\n{\"text\":\"2\",\"expect\":\"better\"}\n{\"text\":\"3\",\"expect\":\"third\"}\n");
    world_say(&w, "first");
    world_say(&w, "secnod");
    world_say(&w, "third");
    world_run(&w, 100);
    const struct chat_event edit = { .type = CHAT_EDIT, .about = "ev2", .text = "better", .direct = true };
    assert_int_equal(world_event(&w, &edit), 0);
    world_run(&w, 900);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 3);
    assert_string_equal(answer(&w, 1), "2");
    assert_string_equal(world_posted(&w, CHAT_ANSWER, 1)->reply_to, "ev2");
    world_close(&w);
}

static void an_edit_of_the_running_question_starts_it_anew(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"hang\":true}\n");
    world_start(&w, CALL("wrong") "{\"text\":\"right\",\"expect\":\"better\"}\n" SAY("other"));
    world_say(&w, "worse");
    world_say(&w, "other");
    world_run(&w, 100);
    const struct chat_event edit = { .type = CHAT_EDIT, .about = "ev1", .text = "better", .direct = true };
    assert_int_equal(world_event(&w, &edit), 0);
    world_run(&w, 500);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 2); /* none for what was replaced */
    assert_string_equal(answer(&w, 0), "right");
    assert_string_equal(answer(&w, 1), "other");
    world_close(&w);
}

static void an_edit_of_an_answered_question_is_asked_again_with_a_note(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("1") "{\"text\":\"2\",\"expect\":\"replaces the one before it\"}\n");
    world_say(&w, "a");
    world_run(&w, 100);
    const struct chat_event edit = { .type = CHAT_EDIT, .id = "e", .about = "ev1", .text = "b", .direct = true };
    assert_int_equal(world_event(&w, &edit), 0);
    assert_int_equal(world_event(&w, &edit), 0); /* and once only */
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 2);
    assert_string_equal(answer(&w, 1), "2");
    world_close(&w);
}

static void an_edit_of_an_answered_question_takes_its_variables_back(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{}\n{}\n{}\n{\"op\":\"branch\",\"cell\":1}\n{\"op\":\"branch\",\"cell\":1}\n{}\n");
    world_start(&w, CALL("a=1") SAY("1") CALL("b=1") SAY("2") CALL("b=2") SAY("3") CALL("b=3") SAY("4"));
    world_say(&w, "a");
    world_run(&w, 100);
    world_say(&w, "b");
    world_run(&w, 100);
    for (int i = 0; i < 3; i++) {
        autofree char *text = xasprintf("wording %d", i < 2 ? i : 1); /* the third is the second again: a preview */
        autofree char *id = xasprintf("edit%d", i);
        const struct chat_event edit = { .type = CHAT_EDIT, .id = id, .about = "ev2", .text = text, .direct = true };
        assert_int_equal(world_event(&w, &edit), 0);
        world_run(&w, 100);
    }
    size_t back = 0;
    for (size_t i = 0; sandbox_fake_asked(i); i++)
        back += strcmp(sandbox_fake_asked(i), "branch 1") == 0;
    assert_int_equal(back, 2);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 4);
    assert_string_equal(world_posted(&w, CHAT_ANSWER, 3)->reply_to, "ev2");
    assert_int_equal(world_count(&w, CHAT_AMEND), 2);
    assert_string_equal(world_posted(&w, CHAT_AMEND, 0)->amends, "test:ev2:answer");
    assert_string_equal(world_posted(&w, CHAT_AMEND, 1)->amends, "test:edit0:answer");
    assert_says(world_posted(&w, CHAT_AMEND, 1)->markdown, "edited");
    world_close(&w);
}

/* Each answer runs a cell: the fifth begins after cell 4, and what the second began with is let go. */
static void states_that_answers_began_with_are_kept_for_a_while(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{}\n{}\n{}\n{}\n{}\n{}\n");
    world_start(&w, CALL("a=1") SAY("1") CALL("a=2") CALL("a=3") SAY("2") CALL("a=4") SAY("3") CALL("a=5") SAY("4")
                        CALL("a=6") SAY("5"));
    static const int began[] = { 0, 1, 3, 4, 5 };
    for (size_t i = 0; i < countof(began); i++) {
        world_say(&w, "go");
        world_run(&w, 100);
        for (int cell = 0; cell < 10; cell++) {
            int want = 0;
            for (size_t k = i < 3 ? 0 : i - 2; k <= i; k++)
                want += began[k] == cell && cell > 0;
            assert_int_equal(sandbox_fake_pinned(cell), want);
        }
    }
    world_close(&w);
}

static void an_answer_without_cells_keeps_no_state(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{}\n");
    world_start(&w, CALL("a=1") SAY("1") SAY("2"));
    world_say(&w, "a");
    world_run(&w, 100);
    world_say(&w, "b");
    world_run(&w, 100);
    assert_int_equal(sandbox_fake_pinned(1), 0);
    world_close(&w);
}

static void an_edit_that_changes_nothing_changes_nothing(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, "{\"text\":\"1\",\"delay_ms\":300}\n" SAY("2"));
    world_say(&w, "a");
    world_run(&w, 100);
    assert_int_equal(
        world_event(&w, &(struct chat_event){ .type = CHAT_EDIT, .about = "ev1", .text = "a", .direct = true }), 0);
    world_run(&w, 900);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 1);
    world_close(&w);
}

static void a_deleted_question_is_forgotten(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"hang\":true}\n");
    world_start(&w, CALL("x") SAY("third"));
    world_say(&w, "first");
    world_say(&w, "second");
    world_say(&w, "third");
    world_run(&w, 100);
    assert_int_equal(world_event(&w, &(struct chat_event){ .type = CHAT_DELETE, .about = "ev2" }), 0);
    assert_int_equal(world_event(&w, &(struct chat_event){ .type = CHAT_DELETE, .about = "ev1" }), 0);
    assert_int_equal(world_event(&w, &(struct chat_event){ .type = CHAT_DELETE, .about = "nothing" }), 0);
    world_run(&w, 500);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 1);
    assert_string_equal(answer(&w, 0), "third");
    assert_true(session_hub_idle(w.hub));
    world_close(&w);
}

static void whoever_left_a_room_does_nothing_more_for_it(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"hang\":true}\n");
    world_start(&w, CALL("x") SAY("there"));
    assert_int_equal(world_event(&w, &(struct chat_event){ .room = "gone", .text = "first", .direct = true }), 0);
    assert_int_equal(world_event(&w, &(struct chat_event){ .room = "gone", .text = "second", .direct = true }), 0);
    world_run(&w, 100);
    assert_int_equal(world_event(&w, &(struct chat_event){ .type = CHAT_LEFT, .room = "gone" }), 0);
    world_run(&w, 500);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 0);
    assert_true(session_hub_idle(w.hub));
    assert_int_equal(world_event(&w, &(struct chat_event){ .room = "here", .text = "third", .direct = true }), 0);
    world_run(&w, 100);
    assert_string_equal(answer(&w, 0), "there");
    world_close(&w);
}

static void a_room_that_goes_on_elsewhere_takes_its_conversation_along(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"hang\":true}\n");
    world_start(&w, CALL("x") SAY("second") SAY("third"));
    assert_int_equal(world_event(&w, &(struct chat_event){ .room = "old", .text = "first", .direct = true }), 0);
    assert_int_equal(world_event(&w, &(struct chat_event){ .room = "old", .text = "more", .direct = true }), 0);
    world_run(&w, 100);
    assert_int_equal(world_event(&w, &(struct chat_event){ .type = CHAT_MOVED, .about = "old", .room = "new" }), 0);
    assert_int_equal(world_event(&w, &(struct chat_event){ .room = "new", .text = "!stop", .direct = true }), 0);
    assert_int_equal(world_event(&w, &(struct chat_event){ .room = "new", .text = "and more", .direct = true }), 0);
    world_run(&w, 1000);
    assert_true(world_count(&w, CHAT_ANSWER) >= 2);
    for (size_t i = 0; i < w.chat.n; i++)
        assert_true(strcmp(w.chat.posts[i].room, "new") == 0 || w.chat.posts[i].type == CHAT_STATUS);
    assert_true(session_hub_idle(w.hub));
    world_close(&w);
}

static int forget_report(void **state)
{
    (void)state;
    free(reported.facts);
    free(reported.status);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_about_a_file_is_answered_with_everything_it_made),
        cmocka_unit_test(the_next_question_knows_the_last_one_and_no_file_is_put_twice),
        cmocka_unit_test(the_hub_says_when_all_is_answered),
        cmocka_unit_test(only_what_is_meant_for_the_bot_starts_a_turn),
        cmocka_unit_test(a_thread_needs_its_mention_once_also_across_a_restart),
        cmocka_unit_test(an_event_of_a_stranger_is_refused),
        cmocka_unit_test(the_same_event_is_answered_once),
        cmocka_unit_test(three_questions_are_answered_in_order_and_told_their_place),
        cmocka_unit_test(a_status_line_is_rare_true_and_taken_away),
        cmocka_unit_test(two_sessions_run_side_by_side),
        cmocka_unit_test(stop_ends_a_cell_and_the_next_question_runs),
        cmocka_unit_test(stop_all_drops_what_this_person_has_waiting),
        cmocka_unit_test(a_reaction_stops_too),
        cmocka_unit_test(an_edit_of_a_queued_question_replaces_it_in_place),
        cmocka_unit_test(an_edit_of_the_running_question_starts_it_anew),
        cmocka_unit_test(an_edit_of_an_answered_question_is_asked_again_with_a_note),
        cmocka_unit_test(an_edit_of_an_answered_question_takes_its_variables_back),
        cmocka_unit_test(states_that_answers_began_with_are_kept_for_a_while),
        cmocka_unit_test(an_answer_without_cells_keeps_no_state),
        cmocka_unit_test(an_edit_that_changes_nothing_changes_nothing),
        cmocka_unit_test(a_deleted_question_is_forgotten),
        cmocka_unit_test(whoever_left_a_room_does_nothing_more_for_it),
        cmocka_unit_test(a_room_that_goes_on_elsewhere_takes_its_conversation_along),
    };
    return cmocka_run_group_tests_name("session", tests, NULL, forget_report);
}
