/* sql_sqlite.c - a question to a SQLite file. The second user of sqlite3.h beside the store: this one never writes. */
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include "sql.h"

enum {
    STEPS_A_LOOK = 1000, /* of the virtual machine between two looks at the clock */
    VALUE_MAX = 16 << 20,
    HEAP_MAX = 512 << 20,
    TABLES_MAX = 200,
    COLUMNS_MAX = 400,
};

struct watch {
    int64_t until_ms;
    bool late;
};

static int look_at_clock(void *ud)
{
    struct watch *w = ud;
    w->late = time_mono_ms() > w->until_ms;
    return w->late;
}

/* What reads may do. Functions that reach files or code are not among SQLite's own, but a build may have them. */
static int authorize(void *ud, int action, const char *a, const char *b, const char *db, const char *trigger)
{
    static const char *const refused[] = { "load_extension", "readfile", "writefile", "edit", "fts3_tokenizer" };
    (void)ud, (void)a, (void)db, (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE: return SQLITE_OK;
    case SQLITE_FUNCTION:
        for (size_t i = 0; i < countof(refused); i++)
            if (b && sqlite3_stricmp(b, refused[i]) == 0)
                return SQLITE_DENY;
        return SQLITE_OK;
    default: return SQLITE_DENY;
    }
}

/* ---- open ---- */

static void close_db(sqlite3 **db)
{
    (void)sqlite3_close(*db);
}

static int open_db(sqlite3 **db, const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_CONFIG, "%.160s is not a file", path);
    (void)sqlite3_hard_heap_limit64(HEAP_MAX);
    const int rc = sqlite3_open_v2(path, db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK)
        return err_set(e, ERR_CONFIG, "cannot open %.160s: %s", path, sqlite3_errstr(rc));
    (void)sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_db_config(*db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    (void)sqlite3_limit(*db, SQLITE_LIMIT_LENGTH, VALUE_MAX);
    (void)sqlite3_limit(*db, SQLITE_LIMIT_ATTACHED, 0);
    (void)sqlite3_busy_timeout(*db, 2000);
    return 0;
}

static int failed(sqlite3 *db, const struct watch *w, struct err *e)
{
    const int rc = sqlite3_errcode(db);
    if (w->late)
        return err_set(e, ERR_DATA, "the query took too long and was stopped; ask for less, or aggregate in SQL");
    if (rc == SQLITE_AUTH || rc == SQLITE_READONLY)
        return err_set(e, ERR_DATA, "only SELECT is allowed here (%s)", sqlite3_errmsg(db));
    if (rc == SQLITE_NOTADB || rc == SQLITE_CANTOPEN || rc == SQLITE_CORRUPT)
        return err_set(e, ERR_CONFIG, "%s", sqlite3_errmsg(db));
    return err_set(e, ERR_DATA, "%s", sqlite3_errmsg(db));
}

/* ---- a query ---- */

/* Behind the statement there may be blanks, semicolons and comments; anything else is a second statement. */
static int prepare(sqlite3_stmt **st, sqlite3 *db, const char *sql, const struct watch *w, struct err *e)
{
    sqlite3_stmt *second = NULL;
    const char *rest = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, st, &rest) != SQLITE_OK)
        return failed(db, w, e);
    if (!*st)
        return err_set(e, ERR_DATA, "there is no statement");
    const int rc = sqlite3_prepare_v2(db, rest, -1, &second, NULL);
    (void)sqlite3_finalize(second);
    if (rc != SQLITE_OK || second)
        return err_set(e, ERR_DATA, "one statement at a time");
    if (!sqlite3_stmt_readonly(*st) || sqlite3_stmt_isexplain(*st) || sqlite3_column_count(*st) == 0)
        return err_set(e, ERR_DATA, "only SELECT is allowed here");
    return 0;
}

/* With as many digits as read back the same. */
static void print_float(char *out, size_t size, double v)
{
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(out, size, "%.*g", digits, v);
        if (strtod(out, NULL) == v)
            return;
    }
}

enum { FLOAT_SIZE = 32 };

static struct sql_value value_of(sqlite3_stmt *st, int i, char number[FLOAT_SIZE])
{
    const int type = sqlite3_column_type(st, i);
    struct sql_value v = { .kind = SQL_TEXT };
    if (type == SQLITE_NULL)
        return v;
    if (type == SQLITE_FLOAT) {
        print_float(number, FLOAT_SIZE, sqlite3_column_double(st, i));
        return (struct sql_value){ number, strlen(number), SQL_NUMBER };
    }
    v.text = type == SQLITE_BLOB ? sqlite3_column_blob(st, i) : (const char *)sqlite3_column_text(st, i);
    v.text = v.text ? v.text : "";
    v.n = (size_t)sqlite3_column_bytes(st, i);
    v.kind = type == SQLITE_BLOB ? SQL_BYTES : type == SQLITE_INTEGER ? SQL_NUMBER : SQL_TEXT;
    return v;
}

static void add_columns(struct sql_sink *sink, sqlite3_stmt *st)
{
    const size_t n = (size_t)sqlite3_column_count(st);
    autofree const char **names = xcalloc(n, sizeof(*names));
    autofree const char **types = xcalloc(n, sizeof(*types));
    for (size_t i = 0; i < n; i++) {
        names[i] = sqlite3_column_name(st, (int)i);
        types[i] = sqlite3_column_decltype(st, (int)i);
    }
    sql_sink_columns(sink, names, types, n);
}

static int read_rows(sqlite3 *db, sqlite3_stmt *st, struct sql_sink *sink, const struct watch *w, struct err *e)
{
    const size_t n = (size_t)sqlite3_column_count(st);
    autofree struct sql_value *values = xcalloc(n, sizeof(*values));
    autofree char(*numbers)[FLOAT_SIZE] = xcalloc(n, sizeof(*numbers));
    for (;;) {
        const int rc = sqlite3_step(st);
        if (rc == SQLITE_DONE)
            return 0;
        if (rc != SQLITE_ROW)
            return failed(db, w, e);
        for (size_t i = 0; i < n; i++)
            values[i] = value_of(st, (int)i, numbers[i]);
        if (!sql_sink_row(sink, values, n))
            return 0;
    }
}

static int query(const struct sql_request *r, struct sql_sink *sink, struct err *e)
{
    AUTO(close_db) sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    struct watch watch = { .until_ms = time_mono_ms() + r->timeout_ms };
    if (open_db(&db, r->path, e) < 0)
        return -1;
    sqlite3_progress_handler(db, STEPS_A_LOOK, look_at_clock, &watch);
    (void)sqlite3_set_authorizer(db, authorize, NULL);
    int rc = prepare(&st, db, r->sql, &watch, e);
    if (rc == 0) {
        add_columns(sink, st);
        rc = read_rows(db, st, sink, &watch, e);
    }
    (void)sqlite3_finalize(st);
    return rc;
}

/* ---- a description ---- */

typedef void row_fn(struct str *out, sqlite3_stmt *st);

static const char *text_of(sqlite3_stmt *st, int i)
{
    const unsigned char *text = sqlite3_column_text(st, i);
    return text ? (const char *)text : "";
}

/* Our own statements, before any authorizer. */
static int each(sqlite3 *db, struct str *out, const char *sql, const char *arg, row_fn *row, struct err *e)
{
    static const struct watch calm = { 0 };
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (rc == SQLITE_OK && arg)
        rc = sqlite3_bind_text(st, 1, arg, -1, SQLITE_TRANSIENT);
    while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        row(out, st);
        rc = SQLITE_OK;
    }
    const int bad = rc != SQLITE_DONE ? failed(db, &calm, e) : 0;
    (void)sqlite3_finalize(st);
    return bad;
}

static void add_column(struct str *out, sqlite3_stmt *st)
{
    str_printf(out, "  - %s %s%s\n", text_of(st, 0), text_of(st, 1), sqlite3_column_int(st, 2) ? ", key" : "");
}

static void add_reference(struct str *out, sqlite3_stmt *st)
{
    str_printf(out, "  %s refers to %s(%s)\n", text_of(st, 0), text_of(st, 1), text_of(st, 2));
}

static int add_table(sqlite3 *db, struct str *out, const char *name, struct err *e)
{
    if (each(db, out, "SELECT name, lower(type), pk FROM pragma_table_xinfo(?1) WHERE hidden <> 1 LIMIT 400", name,
             add_column, e) < 0)
        return -1;
    return each(db, out, "SELECT \"from\", \"table\", coalesce(\"to\", 'its key') FROM pragma_foreign_key_list(?1)",
                name, add_reference, e);
}

static int describe(const struct sql_request *r, struct str *out, struct err *e)
{
    static const char tables[] =
        "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE "
        "'sqlite\\_%' ESCAPE '\\' ORDER BY name LIMIT 200";
    static const struct watch calm = { 0 };
    AUTO(close_db) sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    if (open_db(&db, r->path, e) < 0)
        return -1;
    if (sqlite3_prepare_v2(db, tables, -1, &st, NULL) != SQLITE_OK)
        return failed(db, &calm, e);
    int rc = SQLITE_ROW, bad = 0;
    str_puts(out, "SQLite; tables and views with their columns:\n");
    while (!bad && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        str_printf(out, "%s %s\n", text_of(st, 0), text_of(st, 1));
        struct err ignored = { 0 }; /* a view that no longer fits its tables is named all the same */
        (void)add_table(db, out, text_of(st, 1), &ignored);
        bad = out->overflow;
    }
    (void)sqlite3_finalize(st);
    return rc == SQLITE_DONE || out->overflow ? 0 : failed(db, &calm, e);
}

const struct sql_ops sql_sqlite = { "sqlite", query, describe };
