/* A table on its way out as CSV, and SQLite asked for one. PostgreSQL is tried with a real server in tests/providers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include "sql.h"

struct table {
    struct sql_sink sink;
    char *text;
    size_t n;
};

static void table_open(struct table *t, int64_t rows_max, int64_t bytes_max)
{
    *t = (struct table){ .sink = { .rows_max = rows_max, .bytes_max = bytes_max } };
    t->sink.out = open_memstream(&t->text, &t->n);
    assert_non_null(t->sink.out);
}

static void table_close(struct table *t)
{
    sql_sink_clear(&t->sink);
    free(t->text);
}

static void values_are_quoted_guarded_and_told_apart_from_nothing(void **state)
{
    static const struct {
        struct sql_value value;
        const char *line;
    } cases[] = {
        { { "a", 1, SQL_TEXT }, "a" },
        { { NULL, 0, SQL_TEXT }, "\"\"" },
        { { "", 0, SQL_TEXT }, "\"\"" },
        { { "a,b", 3, SQL_TEXT }, "\"a,b\"" },
        { { "a\"b", 3, SQL_TEXT }, "\"a\"\"b\"" },
        { { "a\nb", 3, SQL_TEXT }, "\"a\nb\"" },
        { { " a", 2, SQL_TEXT }, "\" a\"" },
        { { "=1+1", 4, SQL_TEXT }, "'=1+1" },
        { { "+1", 2, SQL_TEXT }, "'+1" },
        { { "@x", 2, SQL_TEXT }, "'@x" },
        { { "-1", 2, SQL_TEXT }, "'-1" },
        { { "-1", 2, SQL_NUMBER }, "-1" },
        { { "\xff", 1, SQL_TEXT }, "\xef\xbf\xbd" },
        { { "\x01\x02\x03", 3, SQL_BYTES }, "<3 bytes>" },
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct table t;
        const char *const name = "c", *const type = NULL;
        table_open(&t, 10, 1000);
        sql_sink_columns(&t.sink, &name, &type, 1);
        assert_true(sql_sink_row(&t.sink, &cases[i].value, 1));
        assert_int_equal(fclose(t.sink.out), 0);
        autofree char *whole = xasprintf("c\n%s\n", cases[i].line);
        assert_string_equal(t.text, whole);
        assert_int_equal(t.sink.guarded, cases[i].line[0] == '\'');
        table_close(&t);
    }
}

static void rows_and_bytes_have_an_end(void **state)
{
    static const struct {
        int64_t rows_max, bytes_max, rows;
    } cases[] = { { 3, 1000, 3 }, { 1000, 12, 2 }, { 10, 1000, 10 } };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct table t;
        const char *const name = "c", *const type = NULL;
        const struct sql_value v = { "1234", 4, SQL_NUMBER };
        table_open(&t, cases[i].rows_max, cases[i].bytes_max);
        sql_sink_columns(&t.sink, &name, &type, 1);
        for (int k = 0; k < 20 && sql_sink_row(&t.sink, &v, 1); k++) {
        }
        assert_int_equal(fclose(t.sink.out), 0);
        assert_int_equal(t.sink.rows, cases[i].rows);
        assert_true(t.sink.more);
        assert_true((int64_t)t.n <= cases[i].bytes_max);
        table_close(&t);
    }
}

static char path[] = "/tmp/sandbook-test-XXXXXX";

static int make_database(void **state)
{
    sqlite3 *db = NULL;
    (void)state;
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db,
                     "CREATE TABLE a(id INTEGER PRIMARY KEY, x REAL, t TEXT, b BLOB);"
                     "INSERT INTO a VALUES (1, 0.1, 'one', x'0102'), (2, 1e300, NULL, NULL), (3, -7, '', x'');"
                     "CREATE VIEW broken AS SELECT gone FROM a",
                     NULL, NULL, NULL),
        SQLITE_OK);
    return sqlite3_close(db);
}

static int remove_database(void **state)
{
    (void)state;
    return unlink(path);
}

static int ask(struct table *t, const char *sql, int64_t timeout_ms, struct err *e)
{
    const struct sql_request r = { .path = path, .sql = sql, .timeout_ms = timeout_ms };
    table_open(t, 1000, 1 << 20);
    const int rc = sql_sqlite.query(&r, &t->sink, e);
    assert_int_equal(fclose(t->sink.out), 0);
    return rc;
}

static void sqlite_gives_values_as_they_are(void **state)
{
    struct table t;
    struct err e = { 0 };
    (void)state;
    assert_int_equal(ask(&t, "SELECT * FROM a ORDER BY id -- all", 5000, &e), 0);
    assert_string_equal(t.text, "id,x,t,b\n1,0.1,one,<2 bytes>\n2,1e+300,,\n3,-7,\"\",<0 bytes>\n");
    table_close(&t);
}

static void sqlite_answers_select_and_nothing_else(void **state)
{
    static const char *const cases[] = {
        "DELETE FROM a",
        "INSERT INTO a VALUES (9, 1, '', '')",
        "UPDATE a SET x = 1 RETURNING x",
        "CREATE TABLE z(a)",
        "CREATE TEMP TABLE z(a)",
        "DROP VIEW broken",
        "PRAGMA user_version = 3",
        "PRAGMA table_info(a)",
        "ATTACH ':memory:' AS z",
        "BEGIN",
        "VACUUM",
        "REINDEX",
        "ANALYZE",
        "EXPLAIN SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT 1; garbage",
        "SELECT load_extension('x')",
        "SELECT * FROM pragma_table_info('a')",
        "SELECT * FROM nowhere",
        "SELECT",
        "",
        " -- only words",
    };
    (void)state;
    for (size_t i = 0; i < countof(cases); i++) {
        struct table t;
        struct err e = { 0 };
        if (ask(&t, cases[i], 5000, &e) == 0)
            fail_msg("answered: %s", cases[i]);
        assert_int_equal(e.kind, ERR_DATA);
        table_close(&t);
    }
}

static void sqlite_stops_in_time_and_says_what_is_the_operators(void **state)
{
    static const struct sql_request nowhere = { .path = "/nonexistent/x.db", .sql = "SELECT 1", .timeout_ms = 1 };
    struct table t;
    struct err e = { 0 };
    (void)state;
    assert_int_equal(
        ask(&t, "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r", 20, &e), -1);
    assert_non_null(strstr(e.msg, "took too long"));
    table_close(&t);
    table_open(&t, 1, 1);
    assert_int_equal(sql_sqlite.query(&nowhere, &t.sink, &e), -1);
    assert_int_equal(e.kind, ERR_CONFIG);
    assert_int_equal(fclose(t.sink.out), 0);
    table_close(&t);
}

static void sqlite_describes_what_there_is(void **state)
{
    const struct sql_request r = { .path = path };
    AUTO(str_clear) struct str out = STR_INIT(SQL_DESCRIPTION_MAX);
    struct err e = { 0 };
    (void)state;
    assert_int_equal(sql_sqlite.describe(&r, &out, &e), 0);
    assert_non_null(strstr(str_peek(&out), "table a\n  - id integer, key\n  - x real\n  - t text\n  - b blob\n"));
    assert_non_null(strstr(str_peek(&out), "view broken\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_quoted_guarded_and_told_apart_from_nothing),
        cmocka_unit_test(rows_and_bytes_have_an_end),
        cmocka_unit_test(sqlite_gives_values_as_they_are),
        cmocka_unit_test(sqlite_answers_select_and_nothing_else),
        cmocka_unit_test(sqlite_stops_in_time_and_says_what_is_the_operators),
        cmocka_unit_test(sqlite_describes_what_there_is),
    };
    return cmocka_run_group_tests_name("sql", tests, make_database, remove_database);
}
