/* Conversations that come, go and come back; what is forgotten is gone from the disk, too; one person's flood. */
#include <dirent.h>
#include "core_world.h"

#define NEEDLE "needle-7f3a"

/* ---- what lies on the disk ---- */

static bool file_has(const char *path, const char *needle)
{
    AUTO(str_clear) struct str text = STR_INIT(64 << 20);
    struct err e = { 0 };
    assert_int_equal(str_read_file(&text, path, &e), 0);
    return memmem(str_peek(&text), text.len, needle, strlen(needle)) != NULL;
}

static struct {
    const char *needle;
    size_t n; /* files that have it, in their bytes or their name */
} search;

static int look(const char *path, const struct stat *st, int type, struct FTW *at)
{
    const char *name = path + at->base;
    (void)st;
    if (strcmp(name, "upload") == 0 || strcmp(name, "model.jsonl") == 0) /* the test's own */
        return 0;
    const bool has = strstr(name, search.needle) != NULL || (type == FTW_F && file_has(path, search.needle));
    if (has && getenv("TEST_LOG"))
        print_message("found in %s\n", path);
    search.n += has;
    return 0;
}

static size_t found(const struct world *w, const char *needle)
{
    search.needle = needle;
    search.n = 0;
    assert_int_equal(nftw(w->dir, look, 16, FTW_PHYS), 0);
    return search.n;
}

/* ---- forgotten ---- */

/* A conversation with the needle in every place that is kept: question, file and its name, code, output, made file, answer,
 * variables. */
static void plant(struct world *w)
{
    w->keep_state = true;
    assert_int_equal(conf_set(&w->conf, "box.idle_checkpoint=5s", &(struct err){ 0 }), 0);
    world_start(w, CALL("x = '" NEEDLE "'") SAY("It says " NEEDLE ".") SAY("later"));
    world_send(w, &(struct chat_event){ .direct = true, .text = "what is " NEEDLE "?", .name = NEEDLE }, NEEDLE ".csv",
               "a," NEEDLE "\n1,2\n");
    world_run(w, 500);
    assert_says(answer(w, 0), NEEDLE);
    world_run(w, 6000); /* put away */
    assert_true(found(w, NEEDLE) >= 5);
}

static const char planted_box[] =
    "{\"stdout\":\"" NEEDLE "\",\"files\":[{\"path\":\"made-" NEEDLE ".txt\",\"content\":\"" NEEDLE
    "\"}]}\n{\"op\":\"checkpoint\",\"content\":\"" NEEDLE "\",\"kept\":1}\n";

static void what_is_forgotten_is_nowhere_on_the_disk(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", planted_box);
    plant(&w);
    world_say(&w, "!forget");
    world_run(&w, 500);
    assert_int_equal(found(&w, NEEDLE), 0);
    assert_says(world_posted(&w, CHAT_NOTICE, world_count(&w, CHAT_NOTICE) - 1)->markdown, "is forgotten");
    world_say(&w, "!history");
    world_say(&w, "!files");
    world_say(&w, "and now?");
    world_run(&w, 500);
    assert_string_equal(answer(&w, 1), "later");
    world_close(&w);
}

/* Questions, names, files, code, outputs, answers, refusals: the log knows ids and counts. */
static void the_log_at_info_tells_nothing_that_people_said(void **state)
{
    struct world w;
    AUTO(str_clear) struct str log = STR_INIT(4 << 20);
    struct err e = { 0 };
    (void)state;
    world_open(&w, "", planted_box);
    autofree char *path = xasprintf("%s/log", w.dir);
    autoclose int to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), was = dup(STDERR_FILENO);
    assert_true(to >= 0 && was >= 0 && dup2(to, STDERR_FILENO) == STDERR_FILENO);
    log_set_level(LOG_INFO);
    plant(&w);
    world_send(&w, &(struct chat_event){ .direct = true, .text = "" }, "../" NEEDLE, "x");
    world_say(&w, "!model " NEEDLE);
    world_say(&w, "!forget");
    world_run(&w, 500);
    world_stop(&w);
    log_set_level(LOG_ERROR);
    assert_int_equal(dup2(was, STDERR_FILENO), STDERR_FILENO);
    assert_int_equal(str_read_file(&log, path, &e), 0);
    assert_non_null(strstr(str_peek(&log), "event=turn_done"));
    assert_non_null(strstr(str_peek(&log), "event=forgotten"));
    assert_null(strstr(str_peek(&log), NEEDLE));
    world_close(&w);
}

/* The same message, sent again by a platform that does not know better, is still known. */
static void a_forgotten_question_that_comes_again_is_not_answered_again(void **state)
{
    struct world w;
    const struct chat_event ev = { .id = "same", .text = "hi", .direct = true };
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("1") SAY("2"));
    assert_int_equal(world_event(&w, &ev), 0);
    world_run(&w, 100);
    world_say(&w, "!forget");
    world_run(&w, 100);
    assert_int_equal(world_event(&w, &ev), 0);
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 1);
    world_close(&w);
}

static void other_conversations_keep_what_they_have(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", planted_box);
    plant(&w);
    const struct chat_event elsewhere = { .direct = true, .room = "elsewhere", .text = "!forget" };
    assert_int_equal(world_event(&w, &elsewhere), 0);
    world_run(&w, 500);
    assert_true(found(&w, NEEDLE) >= 5);
    world_close(&w);
}

/* What was asked before is answered first; what is sent behind it belongs to what begins. */
static void forgetting_waits_for_its_turn(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, "{\"text\":\"slow\",\"delay_ms\":2000}\n" SAY("new"));
    world_say(&w, "first");
    world_run(&w, 100);
    world_say(&w, "!forget");
    world_send(&w, &(struct chat_event){ .direct = true, .text = "second" }, "kept.csv", "kept-bytes\n");
    world_run(&w, 5000);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 2);
    assert_string_equal(answer(&w, 0), "slow");
    assert_int_equal(found(&w, "kept-bytes"), 1);
    world_say(&w, "!files");
    assert_says(world_posted(&w, CHAT_NOTICE, world_count(&w, CHAT_NOTICE) - 1)->markdown, "kept.csv");
    world_close(&w);
}

static void a_forget_that_a_restart_cut_is_done_by_the_next_life(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", planted_box);
    plant(&w);
    world_say(&w, "!forget"); /* kept, not yet run */
    world_stop(&w);
    assert_true(found(&w, NEEDLE) > 0);
    world_start(&w, "");
    world_run(&w, 500);
    assert_int_equal(found(&w, NEEDLE), 0);
    world_close(&w);
}

static void an_answer_that_could_not_be_posted_is_forgotten_too(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY(NEEDLE));
    w.chat.fail_n = 1000;
    w.chat.fail_kind = ERR_NET;
    world_say(&w, "a");
    world_run(&w, 500);
    world_say(&w, "!forget");
    world_run(&w, 200000);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 0);
    assert_int_equal(found(&w, NEEDLE), 0);
    assert_true(session_hub_idle(w.hub));
    world_close(&w);
}

static void old_conversations_go_and_the_others_stay(void **state)
{
    struct world w;
    struct err e = { 0 };
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("old answer") SAY("new answer"));
    assert_int_equal(world_event(&w, &(struct chat_event){ .room = "old", .text = "old question", .direct = true }), 0);
    world_run(&w, 100);
    assert_int_equal(world_event(&w, &(struct chat_event){ .room = "new", .text = "new question", .direct = true }), 0);
    world_run(&w, 100);
    world_stop(&w);
    assert_int_equal(store_open(&w.store, w.dir, &e), 0);
    struct session_row *rows = NULL;
    size_t n = 0;
    assert_int_equal(store_sessions_unused(w.store, time_unix_ms() + 1000, 10, &rows, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_string_equal(rows[0].room, "old");
    assert_int_equal(store_session_remove(w.store, rows[0].id, &e), 0);
    for (size_t i = 0; i < n; i++)
        session_row_clear(&rows[i]);
    free(rows);
    store_close(w.store);
    assert_int_equal(found(&w, "old question"), 0);
    assert_int_equal(found(&w, "old answer"), 0);
    assert_int_equal(found(&w, "new question"), 1);
    world_start(&w, "");
    world_close(&w);
}

static void age_is_looked_at_once_an_hour_and_spares_who_is_busy(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "{\"hang\":true}\n");
    w.keep_state = true;
    w.conf.forget_after_ms = 1;        /* everything is old */
    w.conf.turn_timeout_ms = 86400000; /* what runs, runs on */
    world_start(&w, SAY("done with " NEEDLE) CALL("while True: pass"));
    assert_int_equal(world_event(&w, &(struct chat_event){ .room = "a", .text = NEEDLE, .direct = true }), 0);
    world_run(&w, 100);
    assert_int_equal(world_event(&w, &(struct chat_event){ .room = "b", .text = "busy-with-it", .direct = true }), 0);
    world_run(&w, 3500000);
    assert_int_equal(found(&w, NEEDLE), 1);
    world_run(&w, 200000);
    assert_int_equal(found(&w, NEEDLE), 0);
    assert_int_equal(found(&w, "busy-with-it"), 1);
    world_close(&w);
}

/* ---- in memory ---- */

static void say_in(struct world *w, size_t room, const char *text)
{
    autofree char *name = xasprintf("room-%zu", room);
    assert_int_equal(world_event(w, &(struct chat_event){ .room = name, .text = text, .direct = true }), 0);
}

/* TEST_THREADS=10000 for figures; the point shows with fewer. */
static void many_conversations_leave_memory_and_come_back(void **state)
{
    struct world w;
    const char *many = getenv("TEST_THREADS");
    const size_t rooms = many ? (size_t)strtoul(many, NULL, 10) : 300;
    AUTO(str_clear) struct str script = STR_INIT(8 << 20);
    (void)state;
    world_open(&w, "", "");
    for (size_t i = 0; i <= rooms; i++)
        str_puts(&script, SAY("answer"));
    w.keep_state = true;
    assert_int_equal(conf_set(&w.conf, "box.idle_checkpoint=5s", &(struct err){ 0 }), 0);
    world_start(&w, str_peek(&script));
    const int64_t began = time_mono_ms();
    int64_t half = 0;
    for (size_t i = 0; i < rooms; i++) {
        half = i == rooms / 2 ? time_mono_ms() - began : half;
        say_in(&w, i, "hi");
        world_run(&w, 0);
    }
    if (many)
        print_message("%zu conversations: first half %d ms, second %d ms\n", rooms, (int)half,
                      (int)(time_mono_ms() - began - half));
    struct session_counts c = session_hub_counts(w.hub);
    assert_int_equal(world_count(&w, CHAT_ANSWER), rooms);
    assert_int_equal(c.sessions, rooms);
    world_run(&w, 700000);
    c = session_hub_counts(w.hub);
    assert_int_equal(c.sessions, 0);
    assert_int_equal(c.boxes, 0);
    say_in(&w, rooms / 2, "!history");
    assert_says(world_posted(&w, CHAT_NOTICE, world_count(&w, CHAT_NOTICE) - 1)->markdown, "1. hi");
    assert_int_equal(session_hub_counts(w.hub).sessions, 1);
    world_close(&w);
}

static void a_choice_of_model_outlives_memory_and_program(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    assert_int_equal(conf_set(&w.conf, "model.other.dialect=replay", &(struct err){ 0 }), 0);
    autofree char *url = xasprintf("model.other.url=%s/model.jsonl", w.dir);
    assert_int_equal(conf_set(&w.conf, url, &(struct err){ 0 }), 0);
    world_start(&w, "");
    world_say(&w, "!model other");
    world_run(&w, 700000);
    assert_int_equal(session_hub_counts(w.hub).sessions, 0);
    for (int life = 0; life < 2; life++) {
        world_say(&w, "!model");
        assert_says(world_posted(&w, CHAT_NOTICE, world_count(&w, CHAT_NOTICE) - 1)->markdown, "`other`");
        world_stop(&w);
        world_start(&w, "");
    }
    world_close(&w);
}

/* Reactions and edits find their conversation by the question they are about, however long ago that was asked. */
static void an_edit_finds_its_conversation_after_it_left_memory(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("1") SAY("2") SAY("3"));
    const struct chat_event question = { .id = "q", .room = "far", .thread = "t", .text = "a", .mentioned = true };
    assert_int_equal(world_event(&w, &question), 0);
    world_run(&w, 700000);
    const struct chat_event edit = { .type = CHAT_EDIT, .id = "e1", .about = "q", .room = "far", .text = "b" };
    assert_int_equal(world_event(&w, &edit), 0);
    world_run(&w, 100);
    world_stop(&w);
    world_start(&w, SAY("3"));
    const struct chat_event again = { .type = CHAT_EDIT, .id = "e2", .about = "q", .room = "far", .text = "c" };
    assert_int_equal(world_event(&w, &again), 0);
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 3);
    for (size_t i = 1; i < 3; i++) {
        assert_string_equal(world_posted(&w, CHAT_ANSWER, i)->thread, "t");
        assert_string_equal(world_posted(&w, CHAT_ANSWER, i)->reply_to, "q");
    }
    world_close(&w);
}

/* A file that came along without being meant for the bot is no question, and its new wording is none either. */
static void an_edit_of_what_was_only_overheard_starts_nothing(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, SAY("1"));
    world_send(&w, &(struct chat_event){ .id = "f", .room = "r", .text = "for bob" }, "a.csv", "x\n");
    const struct chat_event edit = { .type = CHAT_EDIT, .id = "e", .about = "f", .room = "r", .text = "for bob!" };
    assert_int_equal(world_event(&w, &edit), 0);
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 0);
    world_close(&w);
}

/* ---- a flood ---- */

static void one_persons_flood_is_bounded_and_others_are_answered(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    world_start(&w, "{\"text\":\"first\",\"delay_ms\":5000}\n" SAY("for bob") SAY("2") SAY("3") SAY("4") SAY("5"));
    assert_int_equal(conf_set(&w.conf, "access.waiting=4", &(struct err){ 0 }), 0);
    for (size_t i = 0; i < 30; i++) /* in five conversations */
        say_in(&w, i % 5 == 0 ? 0 : i % 5, i < 1 ? "slow" : "flood");
    const size_t declined = world_count(&w, CHAT_NOTICE);
    assert_int_equal(declined, 26);
    assert_says(world_posted(&w, CHAT_NOTICE, 0)->markdown, "4 questions waiting");
    say_in(&w, 0, "!help"); /* commands are answered */
    assert_int_equal(world_count(&w, CHAT_NOTICE), declined + 1);
    const struct chat_event bob = { .sender = "@bob:x", .room = "bobs", .text = "hi", .direct = true };
    assert_int_equal(world_event(&w, &bob), 0);
    world_run(&w, 20000);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 5);
    say_in(&w, 1, "again"); /* answered: there is room */
    world_run(&w, 500);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 6);
    world_close(&w);
}

/* One thread: ann's ten questions do not keep bob waiting for more than one of them; each has their own order. */
static void everybodys_first_waits_before_anybodys_second(void **state)
{
    static const char *const asked[][2] = { { "@ann:x", "a1" }, { "@ann:x", "a2" }, { "@ann:x", "a3" },
                                            { "@ann:x", "a4" }, { "@bob:x", "b1" }, { "@bob:x", "b2" } };
    static const char *const wanted[] = { "a1", "a2", "b1", "a3", "b2", "a4" };
    struct world w;
    AUTO(str_clear) struct str script = STR_INIT(1 << 20);
    (void)state;
    world_open(&w, "", "");
    for (size_t i = 0; i < countof(wanted); i++)
        str_printf(&script, "{\"text\":\"%s\",\"expect\":\"%s\",\"delay_ms\":500}\n", wanted[i], wanted[i]);
    world_start(&w, str_peek(&script));
    for (size_t i = 0; i < countof(asked); i++) {
        const struct chat_event ev = { .sender = asked[i][0], .text = asked[i][1], .thread = "t", .mentioned = true };
        assert_int_equal(world_event(&w, &ev), 0);
        world_run(&w, 10);
    }
    world_run(&w, 10000);
    assert_int_equal(world_count(&w, CHAT_ANSWER), countof(wanted));
    for (size_t i = 0; i < countof(wanted); i++)
        assert_string_equal(answer(&w, i), wanted[i]);
    world_close(&w);
}

static void two_hundred_conversations_at_once_are_all_answered(void **state)
{
    struct world w;
    AUTO(str_clear) struct str script = STR_INIT(1 << 20);
    (void)state;
    world_open(&w, "", "");
    for (size_t i = 0; i < 200; i++)
        str_puts(&script, "{\"text\":\"ok\",\"delay_ms\":1000}\n");
    world_start(&w, str_peek(&script));
    assert_int_equal(conf_set(&w.conf, "access.waiting=0", &(struct err){ 0 }), 0);
    for (size_t i = 0; i < 200; i++)
        say_in(&w, i, "hi");
    world_run(&w, 100);
    const struct session_counts c = session_hub_counts(w.hub);
    assert_int_equal(c.running, 200);
    world_run(&w, 5000);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 200);
    assert_true(session_hub_idle(w.hub));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_forgotten_is_nowhere_on_the_disk),
        cmocka_unit_test(the_log_at_info_tells_nothing_that_people_said),
        cmocka_unit_test(a_forgotten_question_that_comes_again_is_not_answered_again),
        cmocka_unit_test(other_conversations_keep_what_they_have),
        cmocka_unit_test(forgetting_waits_for_its_turn),
        cmocka_unit_test(a_forget_that_a_restart_cut_is_done_by_the_next_life),
        cmocka_unit_test(an_answer_that_could_not_be_posted_is_forgotten_too),
        cmocka_unit_test(old_conversations_go_and_the_others_stay),
        cmocka_unit_test(age_is_looked_at_once_an_hour_and_spares_who_is_busy),
        cmocka_unit_test(many_conversations_leave_memory_and_come_back),
        cmocka_unit_test(a_choice_of_model_outlives_memory_and_program),
        cmocka_unit_test(an_edit_finds_its_conversation_after_it_left_memory),
        cmocka_unit_test(an_edit_of_what_was_only_overheard_starts_nothing),
        cmocka_unit_test(one_persons_flood_is_bounded_and_others_are_answered),
        cmocka_unit_test(everybodys_first_waits_before_anybodys_second),
        cmocka_unit_test(two_hundred_conversations_at_once_are_all_answered),
    };
    return cmocka_run_group_tests_name("session_memory", tests, NULL, NULL);
}
