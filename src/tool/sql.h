/* sql.h - one question to a database, read-only, and its table as CSV: what sandbook-query does. Private to tool/.
 *
 * Theory of operation. The daemon has one thread and must not wait, SQLite and libpq do wait, and both read files and bytes that the
 * daemon has no need to trust. So each question runs in a process of its own (tool_sql.c starts it, src/query.c is it): a request in
 * memory on descriptor 0, a report on 1, the table on 3, nothing else inherited, no environment. It ends with its question, or is
 * killed. The connection string travels in the request, never on a command line.
 *
 * Trust boundary: the SQL was written by a model. What it may do is decided by the database: SQLite is opened read-only with an
 * authorizer that knows SELECT, PostgreSQL gets a cursor in a read-only transaction, which nothing but SELECT, VALUES and TABLE can be. */
#ifndef SQL_H
#define SQL_H
#include <stdio.h>
#include "json.h"

struct sql_request {
    const char *kind; /* "sqlite", "postgres" */
    const char *path, *dsn;
    const char *verb; /* "query_database", "describe_database" */
    const char *sql;
    int64_t rows_max, bytes_max, timeout_ms;
};

/* ---- the table ---- */

struct sql_value {
    const char *text; /* NULL: no value */
    size_t n;
    enum sql_kind { SQL_TEXT, SQL_NUMBER, SQL_BYTES } kind;
};

/* Rows as CSV (RFC 4180, LF) on `out`, and what to tell of them. Text that a spreadsheet would take for a formula gets a ' in
 * front, which is counted; bytes become <N bytes>. */
struct sql_sink {
    FILE *out;
    int64_t rows_max, bytes_max;
    int64_t rows, bytes, guarded;
    bool more;            /* there was more than that */
    struct json *columns; /* [{"name","type"}] */
    struct json *preview; /* the first rows: [["1","x",null]] */
    size_t preview_bytes;
};
void sql_sink_clear(struct sql_sink *s);
/* types: as the database calls them, or NULL. */
void sql_sink_columns(struct sql_sink *s, const char *const *names, const char *const *types, size_t n);
/* False: enough, and `more` is set; nothing of that row was written. */
bool sql_sink_row(struct sql_sink *s, const struct sql_value *values, size_t n);

/* ---- the databases ---- */

/* ERR_DATA: in words for the model. ERR_CONFIG: for the operator, e->msg without secrets; the model is told only that it failed. */
struct sql_ops {
    const char *kind;
    must_check int (*query)(const struct sql_request *r, struct sql_sink *sink, struct err *e);
    /* Tables, columns and what refers to what, in lines. */
    must_check int (*describe)(const struct sql_request *r, struct str *out, struct err *e);
};
extern const struct sql_ops sql_sqlite, sql_postgres;

enum { SQL_DESCRIPTION_MAX = 64 << 10, SQL_REPORT_MAX = 256 << 10 };

/* Answers one request: {"error","log"} or {"text"} or {"columns","rows","more","guarded","preview"}. The caller frees. */
struct json *sql_answer(const struct json *request, FILE *table);
#endif
