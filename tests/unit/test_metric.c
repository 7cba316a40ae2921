/* What is counted, as Prometheus reads it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "metric.h"

static int forget(void **state)
{
    (void)state;
    metric_forget();
    return 0;
}

static void assert_line(const char *line, bool there)
{
    AUTO(str_clear) struct str text = STR_INIT(64 << 10);
    metric_print(&text);
    assert_false(text.overflow);
    autofree char *whole = xasprintf("\n%s\n", line);
    if (!strstr(str_peek(&text), whole) == there)
        fail_msg("%s\n%s", line, str_peek(&text));
}

static void counters_add_up_by_label(void **state)
{
    (void)state;
    metric_count(METRIC_TURNS, "answered", 1);
    metric_count(METRIC_TURNS, "answered", 2);
    metric_count(METRIC_TURNS, "failed", 1);
    assert_line("sandbook_turns_total{status=\"answered\"} 3", true);
    assert_line("sandbook_turns_total{status=\"failed\"} 1", true);
    assert_line("# TYPE sandbook_turns_total counter", true);
    assert_int_equal(metric_value(METRIC_TURNS, "answered"), 3);
    assert_int_equal(metric_value(METRIC_TURNS, "refused"), 0);
}

static void a_summary_has_a_sum_and_a_count(void **state)
{
    (void)state;
    metric_took_ms(METRIC_CHAT_LAG, "slack", 1500);
    metric_took_ms(METRIC_CHAT_LAG, "slack", 7);
    metric_took_ms(METRIC_CHAT_LAG, "slack", -40000); /* a platform's clock may be ahead */
    assert_line("sandbook_chat_lag_seconds_sum{platform=\"slack\"} 1.507", true);
    assert_line("sandbook_chat_lag_seconds_count{platform=\"slack\"} 3", true);
}

static void gauges_are_what_was_set_last(void **state)
{
    (void)state;
    metric_set(METRIC_SESSIONS, NULL, 7);
    metric_set(METRIC_SESSIONS, NULL, 5);
    metric_set(METRIC_LOOP_LAG, NULL, 1250042);
    assert_line("sandbook_sessions 5", true);
    assert_line("sandbook_loop_lag_seconds 1.250042", true);
}

static void what_was_never_seen_is_nought(void **state)
{
    (void)state;
    assert_line("sandbook_sessions 0", true);
    assert_line("sandbook_turn_seconds_sum 0.000", true);
    assert_line("sandbook_turn_seconds_count 0", true);
    assert_line("sandbook_turns_total{status=\"\"} 0", false);
}

static void labels_are_words_and_few(void **state)
{
    AUTO(str_clear) struct str text = STR_INIT(64 << 10);
    (void)state;
    metric_count(METRIC_CELLS, "a\"} 1\nevil 2", 1);
    assert_line("sandbook_cells_total{verdict=\"a___1_evil_2\"} 1", true);
    for (int i = 0; i < 1000; i++) {
        autofree char *label = xasprintf("label%d", i);
        metric_count(METRIC_CELLS, label, 1);
    }
    assert_line("sandbook_cells_total{verdict=\"label14\"} 1", true);
    assert_line("sandbook_cells_total{verdict=\"other\"} 985", true);
    metric_print(&text);
    assert_null(strstr(str_peek(&text), "label15"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(counters_add_up_by_label, forget),
        cmocka_unit_test_setup(a_summary_has_a_sum_and_a_count, forget),
        cmocka_unit_test_setup(gauges_are_what_was_set_last, forget),
        cmocka_unit_test_setup(what_was_never_seen_is_nought, forget),
        cmocka_unit_test_setup(labels_are_words_and_few, forget),
    };
    return cmocka_run_group_tests_name("metric", tests, NULL, NULL);
}
