/* sql_postgres.c - a question to PostgreSQL: the only user of libpq.
 *
 * The SQL becomes the body of a cursor, sent by the protocol that takes one statement only: so it can be nothing but SELECT, VALUES or
 * TABLE, and rows come in batches. A superuser could read the server's files by SELECT, so such a role is refused. */
#include <inttypes.h>
#include <libpq-fe.h>
#include <string.h>
#include "sql.h"

enum { BATCH = 500 };

/* ---- the connection ---- */

static void close_conn(PGconn **c)
{
    PQfinish(*c); /* NULL is fine */
}

static void clear_result(PGresult **r)
{
    PQclear(*r); /* NULL is fine */
}

#define autoresult AUTO(clear_result)

static void drop_options(PQconninfoOption **o)
{
    PQconninfoFree(*o); /* NULL is fine */
}

/* What libpq says, on one line and without the password. */
static int unreachable(const PGconn *c, const char *password, struct err *e)
{
    autofree char *words = xstrdup(c ? PQerrorMessage(c) : "no memory");
    for (char *at = words; (at = strchr(at, '\n')) != NULL;)
        *at = ' ';
    for (char *at = *password ? strstr(words, password) : NULL; at; at = strstr(at, password))
        memset(at, '*', strlen(password));
    return err_set(e, ERR_CONFIG, "%.200s", words);
}

static void set_option(const char **keys, const char **values, size_t *n, const char *key, const char *value)
{
    keys[*n] = key;
    values[(*n)++] = value;
}

static int connect_db(PGconn **out, const struct sql_request *r, struct err *e)
{
    AUTO(drop_options)
    PQconninfoOption *given = PQconninfoParse(r->dsn, NULL); /* its complaint would repeat the string */
    const char *keys[64] = { 0 }, *values[64] = { 0 }, *password = "";
    size_t n = 0;
    bool timed = false;
    if (!given)
        return err_set(e, ERR_CONFIG, "dsn_file: not a connection string");
    for (const PQconninfoOption *o = given; o->keyword && n < countof(keys) - 4; o++) {
        if (!o->val)
            continue;
        set_option(keys, values, &n, o->keyword, o->val);
        timed = timed || strcmp(o->keyword, "connect_timeout") == 0;
        password = strcmp(o->keyword, "password") == 0 ? o->val : password;
    }
    if (!timed)
        set_option(keys, values, &n, "connect_timeout", "10");
    set_option(keys, values, &n, "client_encoding", "UTF8");
    set_option(keys, values, &n, "application_name", "sandbook");
    *out = PQconnectdbParams(keys, values, 0);
    if (PQstatus(*out) != CONNECTION_OK)
        return unreachable(*out, password, e);
    const char *super = PQparameterStatus(*out, "is_superuser");
    if (super && strcmp(super, "on") == 0)
        return err_set(e, ERR_CONFIG,
                       "the role is a superuser, who may read the server's files; name one that can only SELECT");
    return 0;
}

/* The first line of what the server says, with its hint. */
static int refused(const PGresult *r, struct err *e)
{
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE),
               *words = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    const char *hint = PQresultErrorField(r, PG_DIAG_MESSAGE_HINT);
    if (state && strcmp(state, "57014") == 0)
        return err_set(e, ERR_DATA, "the query took too long and was stopped; ask for less, or aggregate in SQL");
    return err_set(e, ERR_DATA, "%.150s%s%.70s", words ? words : "the connection broke off", hint ? ". " : "",
                   hint ? hint : "");
}

static int command(PGconn *c, const char *sql, struct err *e)
{
    autoresult PGresult *r = PQexec(c, sql);
    return PQresultStatus(r) == PGRES_COMMAND_OK ? 0 : refused(r, e);
}

/* Roles that may read or write the server's files or run its programs, by a plain SELECT of a function. */
static int refuse_file_roles(PGconn *c, struct err *e)
{
    static const char sql[] = "SELECT 1 FROM pg_roles WHERE pg_has_role(current_user, oid, 'MEMBER') AND rolname IN "
                              "('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program')";
    autoresult PGresult *r = PQexec(c, sql);
    if (PQresultStatus(r) != PGRES_TUPLES_OK)
        return refused(r, e);
    if (PQntuples(r) > 0)
        return err_set(e, ERR_CONFIG,
                       "the role may reach the server's files or programs; name one that can only SELECT");
    return 0;
}

/* For the next statement. A query can change such settings by set_config(), so they are set again before each part of it. */
static int limit_time(PGconn *c, int64_t timeout_ms, struct err *e)
{
    autofree char *limit = xasprintf("SET LOCAL statement_timeout = %" PRId64, timeout_ms);
    return command(c, limit, e);
}

static int begin(PGconn *c, int64_t timeout_ms, struct err *e)
{
    struct err ignored = { 0 };
    if (refuse_file_roles(c, e) < 0)
        return -1;
    /* From version 14 on: a server that computes notices that nobody waits any more. */
    (void)command(c, "SET client_connection_check_interval = 2000", &ignored);
    return command(c, "BEGIN TRANSACTION READ ONLY", e) < 0 ? -1 : limit_time(c, timeout_ms, e);
}

/* ---- a query ---- */

static const char *type_of(Oid type)
{
    static const struct {
        Oid oid;
        const char *name;
    } known[] = { { 16, "boolean" },
                  { 20, "bigint" },
                  { 21, "smallint" },
                  { 23, "integer" },
                  { 25, "text" },
                  { 700, "real" },
                  { 701, "double" },
                  { 1043, "varchar" },
                  { 1082, "date" },
                  { 1114, "timestamp" },
                  { 1184, "timestamp with time zone" },
                  { 1700, "numeric" } };
    for (size_t i = 0; i < countof(known); i++)
        if (known[i].oid == type)
            return known[i].name;
    return NULL;
}

static bool is_number(Oid type)
{
    return (type >= 20 && type <= 23 && type != 22) || type == 26 || type == 700 || type == 701 || type == 790 ||
           type == 1700;
}

static void add_columns(struct sql_sink *sink, const PGresult *r)
{
    const size_t n = (size_t)PQnfields(r);
    autofree const char **names = xcalloc(n + 1, sizeof(*names));
    autofree const char **types = xcalloc(n + 1, sizeof(*types));
    for (size_t i = 0; i < n; i++) {
        names[i] = PQfname(r, (int)i);
        types[i] = type_of(PQftype(r, (int)i));
    }
    sql_sink_columns(sink, names, types, n);
}

static struct sql_value value_of(const PGresult *r, int row, int column)
{
    enum { BYTEA = 17 };
    const Oid type = PQftype(r, column);
    struct sql_value v = { .n = (size_t)PQgetlength(r, row, column), .kind = is_number(type) ? SQL_NUMBER : SQL_TEXT };
    v.text = PQgetisnull(r, row, column) ? NULL : PQgetvalue(r, row, column);
    if (type == BYTEA) { /* "\x" and two digits a byte */
        v.kind = SQL_BYTES;
        v.n = v.n > 2 ? v.n / 2 - 1 : 0;
    }
    return v;
}

/* False: enough. */
static bool add_rows(struct sql_sink *sink, const PGresult *r)
{
    const size_t n = (size_t)PQnfields(r);
    autofree struct sql_value *values = xcalloc(n + 1, sizeof(*values));
    for (int row = 0; row < PQntuples(r); row++) {
        for (size_t i = 0; i < n; i++)
            values[i] = value_of(r, row, (int)i);
        if (!sql_sink_row(sink, values, n))
            return false;
    }
    return true;
}

static int fetch_all(PGconn *c, struct sql_sink *sink, int64_t until_ms, struct err *e)
{
    autofree char *fetch = xasprintf("FETCH %d FROM sandbook", BATCH);
    for (bool first = true;; first = false) {
        const int64_t left = until_ms - time_mono_ms();
        if (!first && limit_time(c, left > 1 ? left : 1, e) < 0)
            return -1;
        autoresult PGresult *r = PQexec(c, fetch);
        if (PQresultStatus(r) != PGRES_TUPLES_OK)
            return refused(r, e);
        if (first)
            add_columns(sink, r);
        if (!add_rows(sink, r) || PQntuples(r) < BATCH)
            return 0;
    }
}

static int query(const struct sql_request *r, struct sql_sink *sink, struct err *e)
{
    AUTO(close_conn) PGconn *c = NULL;
    size_t n = strlen(r->sql);
    while (n && strchr("; \t\r\n", r->sql[n - 1]))
        n--;
    const int64_t until_ms = time_mono_ms() + r->timeout_ms;
    autofree char *cursor = xasprintf("DECLARE sandbook NO SCROLL CURSOR FOR %.*s", (int)n, r->sql);
    if (connect_db(&c, r, e) < 0 || begin(c, r->timeout_ms, e) < 0)
        return -1;
    autoresult PGresult *declared = PQexecParams(c, cursor, 0, NULL, NULL, NULL, NULL, 0);
    if (PQresultStatus(declared) != PGRES_COMMAND_OK)
        return refused(declared, e);
    return fetch_all(c, sink, until_ms, e);
}

/* ---- a description ---- */

static const char columns_sql[] =
    "SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod), coalesce(col_description(c.oid, a.attnum), '')"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid"
    " WHERE c.relkind IN ('r','v','m','p','f') AND NOT c.relispartition AND n.nspname NOT IN ('information_schema')"
    " AND n.nspname !~ '^pg_' AND a.attnum > 0 AND NOT a.attisdropped AND has_table_privilege(c.oid, 'SELECT')"
    " ORDER BY n.nspname, c.relname, a.attnum LIMIT 4000";
static const char references_sql[] =
    "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'"
    " AND has_table_privilege(conrelid, 'SELECT') ORDER BY 1 LIMIT 400";

static int rows_of(PGresult **out, PGconn *c, const char *sql, struct err *e)
{
    *out = PQexec(c, sql);
    return PQresultStatus(*out) == PGRES_TUPLES_OK ? 0 : refused(*out, e);
}

static void add_tables(struct str *out, const PGresult *r)
{
    for (int i = 0; i < PQntuples(r); i++) {
        const bool same = i && strcmp(PQgetvalue(r, i, 0), PQgetvalue(r, i - 1, 0)) == 0 &&
                          strcmp(PQgetvalue(r, i, 1), PQgetvalue(r, i - 1, 1)) == 0;
        const char *remark = PQgetvalue(r, i, 4);
        if (!same)
            str_printf(out, "table %s.%s\n", PQgetvalue(r, i, 0), PQgetvalue(r, i, 1));
        str_printf(out, "  - %s %s%s%.200s\n", PQgetvalue(r, i, 2), PQgetvalue(r, i, 3), *remark ? ": " : "", remark);
    }
}

static int describe(const struct sql_request *r, struct str *out, struct err *e)
{
    AUTO(close_conn) PGconn *c = NULL;
    autoresult PGresult *columns = NULL, *references = NULL;
    if (connect_db(&c, r, e) < 0 || begin(c, r->timeout_ms, e) < 0 || rows_of(&columns, c, columns_sql, e) < 0 ||
        rows_of(&references, c, references_sql, e) < 0)
        return -1;
    str_printf(out, "PostgreSQL %d; tables and views with their columns:\n", PQserverVersion(c) / 10000);
    add_tables(out, columns);
    for (int i = 0; i < PQntuples(references); i++)
        str_printf(out, "%s: %s\n", PQgetvalue(references, i, 0), PQgetvalue(references, i, 1));
    return 0;
}

const struct sql_ops sql_postgres = { "postgres", query, describe };
