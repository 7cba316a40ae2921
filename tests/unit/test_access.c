/* Who may ask, and where. */
#include "core_world.h"
#include "access.h"

static void a_list_names_ids_and_patterns(void **state)
{
    static const struct {
        const char *list, *id;
        bool listed;
    } cases[] = {
        { "", "@ann:a.org", true },
        { " , ", "@ann:a.org", true },
        { "@ann:a.org", "@ann:a.org", true },
        { "@ann:a.org", "@ann:a.org.evil", false },
        { "@ann:a.org", "@Ann:a.org", false },
        { "@bob:a.org,@ann:a.org", "@ann:a.org", true },
        { "@bob:a.org @ann:a.org", "@ann:a.org", true },
        { "@*:a.org", "@ann:a.org", true },
        { "@*:a.org", "@ann:b.org", false },
        { "@bob:a.org", "", false },
        { "[", "[", true },
        { "a\\*", "a*", false },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++)
        if (access_listed(cases[i].list, cases[i].id) != cases[i].listed)
            fail_msg("\"%s\" in \"%s\"", cases[i].id, cases[i].list);
}

static struct chat_event said(const char *sender, const char *room, bool mentioned)
{
    return (
        struct chat_event){ .sender = sender, .room = room, .text = "hello", .mentioned = mentioned, .thread = "t" };
}

static void set(struct world *w, const char *setting)
{
    struct err e = { 0 };
    if (conf_set(&w->conf, setting, &e) < 0)
        fail_msg("%s", e.msg);
}

static void who_is_not_listed_is_told_when_they_ask_and_changes_nothing(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    set(&w, "access.people=@ann:*");
    world_start(&w, SAY("hi ann"));
    const struct chat_event ann = said("@ann:a", "r", true), bob = said("@bob:a", "r", true);
    const struct chat_event chat = said("@bob:a", "r", false); /* to others, in a thread where the bot answers */
    assert_int_equal(world_event(&w, &ann), 0);
    world_run(&w, 100);
    assert_int_equal(world_event(&w, &bob), 0);
    assert_int_equal(world_event(&w, &chat), 0);
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 1);
    assert_int_equal(world_count(&w, CHAT_NOTICE), 1);
    assert_says(world_posted(&w, CHAT_NOTICE, 0)->markdown, "may not ask");
    const struct chat_event edit = {
        .type = CHAT_EDIT, .about = "ev1", .sender = "@bob:a", .room = "r", .text = "mine now", .thread = "t"
    };
    assert_int_equal(world_event(&w, &edit), 0);
    assert_int_equal(world_event(&w, &(struct chat_event){ .type = CHAT_DELETE, .about = "ev1", .sender = "@bob:a" }),
                     0);
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 1);
    world_close(&w);
}

static void a_room_that_is_not_listed_gets_no_answers(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    set(&w, "access.rooms=lab");
    world_start(&w, SAY("in the lab"));
    const struct chat_event lab = said("@ann:a", "lab", true), bar = said("@ann:a", "bar", true);
    assert_int_equal(world_event(&w, &bar), 0);
    assert_int_equal(world_event(&w, &lab), 0);
    world_run(&w, 100);
    assert_int_equal(world_count(&w, CHAT_ANSWER), 1);
    assert_string_equal(answer(&w, 0), "in the lab");
    assert_int_equal(world_count(&w, CHAT_NOTICE), 1);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_names_ids_and_patterns),
        cmocka_unit_test(who_is_not_listed_is_told_when_they_ask_and_changes_nothing),
        cmocka_unit_test(a_room_that_is_not_listed_gets_no_answers),
    };
    return cmocka_run_group_tests_name("access", tests, NULL, NULL);
}
