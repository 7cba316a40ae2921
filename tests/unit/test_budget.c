/* Budgets: prices, parts, who may go on; then whole conversations that run out of them. */
#include "core_scene.h"
#include "budget.h"

/* ---- sums ---- */

static void a_call_costs_what_its_model_charges(void **state)
{
    static const struct {
        int64_t in_price, cached_price, out_price;
        struct model_usage u;
        int64_t cost;
    } cases[] = {
        { 0, 0, 0, { 1000, 0, 1000 }, 0 },
        { 3000000, 0, 15000000, { 1000, 0, 100 }, 4500 },
        { 3000000, 300000, 15000000, { 1000, 900, 100 }, 300 + 270 + 1500 },
        { 3000000, 0, 0, { 1000, 900, 0 }, 3000 },
        { 3000000, 300000, 0, { 100, 900, 0 }, 30 },
        { 250000, 0, 0, { 1, 0, 0 }, 0 },
        { 250000, 0, 0, { 2, 0, 0 }, 1 },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        const struct conf_model m = { .price_in = cases[i].in_price,
                                      .price_cached = cases[i].cached_price,
                                      .price_out = cases[i].out_price };
        assert_int_equal(budget_cost(&m, &cases[i].u), cases[i].cost);
    }
}

static void money_is_not_watched_where_a_model_has_no_price(void **state)
{
    (void)state;
    static char chat[] = "chat", builtin[] = "builtin";
    const struct conf none = { .turn_tokens = 5 }, money = { .day_money = 5 };
    const struct conf_model m = { .dialect = chat }, priced = { .dialect = chat, .price_out = 1 },
                            ours = { .dialect = builtin };
    assert_false(budget_is_blind(&none, &m));
    assert_true(budget_is_blind(&money, &m));
    assert_false(budget_is_blind(&money, &priced));
    assert_false(budget_is_blind(&money, &ours));
}

static void the_nearer_limit_counts(void **state)
{
    static const struct {
        struct budget b;
        int part;
    } cases[] = {
        { { 500, 500, 0, 0 }, 0 },      { { 500, 0, 1000, 0 }, 50 },      { { 500, 9, 1000, 10 }, 90 },
        { { 1000, 0, 1000, 0 }, 100 },  { { 999, 0, 1000, 0 }, 99 },      { { 5000, 0, 1000, 0 }, 500 },
        { { 1000000, 0, 1, 0 }, 1000 }, { { INT64_MAX, 0, 1, 0 }, 1000 },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++)
        assert_int_equal(budget_part(&cases[i].b), cases[i].part);
}

static void the_last_call_that_fits_is_for_a_last_word(void **state)
{
    static const struct {
        int64_t used, max, need;
        bool first;
        enum agent_spending may;
    } cases[] = {
        { 0, 0, 1000000, true, SPEND_FREELY },    { 0, 0, 1000000, false, SPEND_FREELY },
        { 0, 1000, 400, false, SPEND_FREELY },    { 200, 1000, 400, false, SPEND_FREELY },
        { 300, 1000, 400, false, SPEND_LAST },    { 300, 1000, 400, true, SPEND_FREELY },
        { 700, 1000, 400, false, SPEND_NOTHING }, { 700, 1000, 400, true, SPEND_NOTHING },
        { 1000, 1000, 0, false, SPEND_NOTHING },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        const struct budget b = { .tokens = cases[i].used, .tokens_max = cases[i].max };
        const struct budget m = { .money = cases[i].used, .money_max = cases[i].max };
        assert_int_equal(budget_allows(&b, cases[i].need, 0, cases[i].first), cases[i].may);
        assert_int_equal(budget_allows(&m, 0, cases[i].need, cases[i].first), cases[i].may);
    }
}

static void money_is_written_with_two_places(void **state)
{
    static const struct {
        int64_t n;
        const char *text;
    } cases[] = { { 0, "0.00" }, { 1, "<0.01" }, { 5000, "0.01" }, { 1250000, "1.25" }, { 12345678, "12.35" } };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        autofree char *text = budget_money(cases[i].n);
        assert_string_equal(text, cases[i].text);
    }
    assert_int_equal(budget_day_start(1700000000000), 1699920000000);
}

static void amounts_are_read_from_the_configuration(void **state)
{
    static const struct {
        const char *text;
        int64_t n; /* -1: refused */
        const char *shown;
    } cases[] = {
        { "0", 0, "0" },
        { "2", 2000000, "2" },
        { "0.25", 250000, "0.25" },
        { "0.000001", 1, "0.000001" },
        { "10.50", 10500000, "10.5" },
        { "0.0000001", -1, "" },
        { "-1", -1, "" },
        { ".5", -1, "" },
        { "1.", -1, "" },
        { "1,5", -1, "" },
        { "1e3", -1, "" },
        { "9999999999", -1, "" },
        { "", -1, "" },
        { "1.2.3", -1, "" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct conf c;
        struct err e = { 0 };
        struct conf_row row;
        autofree char *assignment = xasprintf("budget.day_money=%s", cases[i].text);
        conf_init(&c);
        assert_int_equal(conf_set(&c, assignment, &e), cases[i].n < 0 ? -1 : 0);
        if (cases[i].n >= 0)
            assert_int_equal(c.day_money, cases[i].n);
        for (size_t k = 0; cases[i].n >= 0 && conf_row(&c, k, &row); k++)
            if (strcmp(row.key, "day_money") == 0)
                assert_string_equal(row.value, cases[i].shown);
        conf_clear(&c);
    }
}

/* ---- conversations ---- */

#define COSTS(text, in, out) "{\"text\":\"" text "\",\"usage\":{\"in\":" #in ",\"out\":" #out "}}\n"
#define RUNS(code, in, out) \
    "{\"calls\":[{\"args\":{\"code\":\"" code "\"}}],\"usage\":{\"in\":" #in ",\"out\":" #out "}}\n"

static void set(struct world *w, const char *assignment)
{
    struct err e = { 0 };
    if (conf_set(&w->conf, assignment, &e) < 0)
        fail_msg("%s", e.msg);
}

static void ask_as(struct world *w, const char *sender, const char *room, const char *text)
{
    assert_int_equal(
        world_event(w, &(struct chat_event){ .sender = sender, .room = room, .text = text, .direct = true }), 0);
    world_run(w, 100);
}

static const char *notice(const struct world *w, size_t i)
{
    return world_posted(w, CHAT_NOTICE, i)->markdown;
}

static void a_person_is_told_at_eighty_per_cent_and_refused_at_a_hundred(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", PRINTS("5"));
    set(&w, "budget.person_tokens=100000");
    world_start(&w, COSTS("1", 1500, 77500) COSTS("2", 1500, 1000) COSTS("3", 1500, 17010) COSTS("4", 0, 10));
    ask_as(&w, "@ann:x", "a", "one");
    assert_int_equal(world_count(&w, CHAT_NOTICE), 0);
    ask_as(&w, "@ann:x", "a", "two");
    assert_int_equal(world_count(&w, CHAT_NOTICE), 1);
    assert_string_equal(notice(&w, 0), "81 % of your budget of today is used. `limits` says more.");
    ask_as(&w, "@ann:x", "b", "three"); /* in another room: the same person */
    assert_int_equal(world_count(&w, CHAT_NOTICE), 1);
    ask_as(&w, "@ann:x", "a", "four");
    assert_says(answer(&w, 3), "your budget of today is used up");
    ask_as(&w, "@ann:x", "a", "```python\nprint(5)\n```"); /* costs nothing */
    assert_int_equal(world_cells(), 1);
    ask_as(&w, "@bob:x", "a", "five");
    assert_string_equal(answer(&w, world_count(&w, CHAT_ANSWER) - 1), "4");
    world_close(&w);
}

static void rooms_and_days_have_budgets_of_their_own(void **state)
{
    static const struct {
        const char *setting, *room, *words;
    } cases[] = {
        { "budget.room_tokens=50000", "a", "this room's budget of today" },
        { "budget.day_tokens=50000", "b", "the budget of today for all" },
        { "budget.day_money=0.4", "b", "the budget of today for all" },
        { "budget.person_money=0.4", "b", "your budget of today" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct world w;
        world_open(&w, "", "");
        set(&w, cases[i].setting);
        set(&w, "model.tape.price_in=10");
        world_start(&w, COSTS("1", 50000, 0) COSTS("2", 10, 10));
        ask_as(&w, "@ann:x", "a", "one");
        ask_as(&w, "@ann:x", cases[i].room, "two");
        assert_says(answer(&w, 1), cases[i].words);
        assert_int_equal(world_count(&w, CHAT_ANSWER), 2);
        world_close(&w);
    }
}

static void a_question_that_runs_dry_ends_with_a_last_word(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", PRINTS("5"));
    set(&w, "budget.turn_tokens=12000");
    world_start(
        &w,
        RUNS(
            "x", 1500,
            7600) "{\"text\":\"It is 5.\",\"tools\":\"none\",\"expect\":\"The budget for this question is used up\"}\n");
    ask_as(&w, "@ann:x", "a", "one");
    assert_string_equal(answer(&w, 0), "It is 5.");
    world_close(&w);
}

static void a_question_without_any_budget_left_ends_in_plain_words(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", PRINTS("5"));
    set(&w, "budget.turn_tokens=12000");
    world_start(&w, RUNS("x", 11900, 100));
    ask_as(&w, "@ann:x", "a", "one");
    assert_says(answer(&w, 0), "the budget for this is used up");
    assert_int_equal(world_cells(), 1);
    world_close(&w);
}

static void what_was_spent_outlives_a_restart(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    set(&w, "budget.person_tokens=50000");
    world_start(&w, COSTS("1", 50000, 1));
    ask_as(&w, "@ann:x", "a", "one");
    world_stop(&w);
    world_start(&w, COSTS("2", 1, 1));
    ask_as(&w, "@ann:x", "a", "two");
    assert_says(answer(&w, 1), "is used up");
    world_close(&w);
}

static void limits_and_usage_are_told(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    set(&w, "budget.person_tokens=50000");
    set(&w, "budget.day_money=2");
    set(&w, "model.tape.price_in=10");
    world_start(&w, COSTS("1", 20000, 1));
    ask_as(&w, "@ann:x", "a", "one");
    ask_as(&w, "@ann:x", "a", "!limits");
    assert_says(notice(&w, 0), "A program may run 60 s and use 1024 MB.");
    assert_says(notice(&w, 0), "A question may take 300 s and 15 steps.");
    assert_says(notice(&w, 0), "- one question: no limit\n");
    assert_says(notice(&w, 0), "- your budget of today: 20001 tokens, 0.20 USD / 50000 tokens\n");
    assert_says(notice(&w, 0), "- the budget of today for all: 20001 tokens, 0.20 USD / 2.00 USD\n");
    ask_as(&w, "@ann:x", "a", "!usage");
    assert_says(notice(&w, 1), "This conversation so far: 20001 tokens, 0.20 USD in 1 call of a model.");
    world_close(&w);
}

static void a_turn_of_the_agent_counts_calls_that_broke_off(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, "{\"text\":\"long\",\"delay_ms\":200}\n", "");
    s.allowance = 1000000;
    scene_start_with(&s, "go", NULL);
    world_run(&s.w, 50);
    agent_cancel(s.agent, "ann"); /* before anything was heard: nothing was spent, as far as anybody knows */
    world_run(&s.w, 500);
    assert_int_equal(s.allowance, 1000000);
    scene_close(&s);
}

static void a_forgotten_conversation_is_not_told_to_the_model(void **state)
{
    struct world w;
    (void)state;
    world_open(&w, "", "");
    w.spy = &model_spy_whole;
    world_start(&w, SAY("the secret is kept") SAY("who?"));
    ask_as(&w, "@ann:x", "a", "the word is xyzzy");
    ask_as(&w, "@ann:x", "a", "!forget");
    assert_says(notice(&w, 0), "forgotten");
    ask_as(&w, "@ann:x", "a", "what was the word?");
    assert_int_equal(sent.n, 2);
    assert_null(strstr(sent.text[1], "xyzzy"));
    ask_as(&w, "@ann:x", "a", "!history");
    assert_null(strstr(notice(&w, 1), "xyzzy"));
    sent_forget();
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_costs_what_its_model_charges),
        cmocka_unit_test(money_is_not_watched_where_a_model_has_no_price),
        cmocka_unit_test(the_nearer_limit_counts),
        cmocka_unit_test(the_last_call_that_fits_is_for_a_last_word),
        cmocka_unit_test(money_is_written_with_two_places),
        cmocka_unit_test(amounts_are_read_from_the_configuration),
        cmocka_unit_test(a_person_is_told_at_eighty_per_cent_and_refused_at_a_hundred),
        cmocka_unit_test(rooms_and_days_have_budgets_of_their_own),
        cmocka_unit_test(a_question_that_runs_dry_ends_with_a_last_word),
        cmocka_unit_test(a_question_without_any_budget_left_ends_in_plain_words),
        cmocka_unit_test(what_was_spent_outlives_a_restart),
        cmocka_unit_test(limits_and_usage_are_told),
        cmocka_unit_test(a_turn_of_the_agent_counts_calls_that_broke_off),
        cmocka_unit_test(a_forgotten_conversation_is_not_told_to_the_model),
    };
    return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
