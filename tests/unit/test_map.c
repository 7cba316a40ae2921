/* Found by name, walked in the order they were put, with many and with few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include "map.h"

enum { MANY = 5000 };

static char names[MANY][16];
static int values[MANY];
static size_t freed;

static void count(void *value)
{
    (void)value;
    freed++;
}

static void fill(struct map *m)
{
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "name %zu", i);
        values[i] = (int)i;
        map_put(m, names[i], &values[i]);
    }
}

static void an_empty_one_has_nothing(void **state)
{
    struct map m = { 0 };
    (void)state;
    assert_null(map_get(&m, "x"));
    assert_null(map_take(&m, "x"));
    map_clear(&m, NULL);
    assert_int_equal(m.n, 0);
}

static void many_are_found_and_walked_in_order(void **state)
{
    struct map m = { 0 };
    size_t n = 0;
    (void)state;
    fill(&m);
    for (size_t i = 0; i < MANY; i++)
        assert_ptr_equal(map_get(&m, names[i]), &values[i]);
    assert_null(map_get(&m, "name"));
    assert_null(map_get(&m, ""));
    for (const struct map_item *i = m.first; i; i = i->next)
        assert_ptr_equal(i->value, &values[n++]);
    assert_int_equal(n, MANY);
    freed = 0;
    map_clear(&m, count);
    assert_int_equal(freed, MANY);
}

static void what_is_taken_is_gone_and_the_rest_stays(void **state)
{
    struct map m = { 0 };
    size_t n = 0;
    (void)state;
    fill(&m);
    for (size_t i = 0; i < MANY; i += 2)
        assert_ptr_equal(map_take(&m, names[i]), &values[i]);
    assert_int_equal(m.n, MANY / 2);
    for (size_t i = 0; i < MANY; i++)
        assert_true(!map_get(&m, names[i]) == (i % 2 == 0));
    for (const struct map_item *i = m.first; i; i = i->next, n++)
        assert_ptr_equal(i->value, &values[2 * n + 1]);
    assert_int_equal(n, MANY / 2);
    map_put(&m, names[0], &values[0]); /* comes back at the end */
    assert_ptr_equal(m.last->value, &values[0]);
    map_clear(&m, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_has_nothing),
        cmocka_unit_test(many_are_found_and_walked_in_order),
        cmocka_unit_test(what_is_taken_is_gone_and_the_rest_stays),
    };
    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
