#include "db.h"
#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <string.h>

enum { PREPARED_MAX = 128 };

/* Preparing a statement takes longer than most of them run: the program has some hundred, and uses a dozen again and again. */
struct prepared {
    sqlite3_stmt *st;
    bool busy; /* a callback of its own rows asks the same once more */
};
struct db {
    sqlite3 *sql;
    struct prepared prepared[PREPARED_MAX];
    size_t prepared_n;
};
struct db_row {
    sqlite3_stmt *st;
};

static int failed(struct db *d, const char *what, struct err *e)
{
    int rc = sqlite3_errcode(d->sql);
    if (rc == SQLITE_FULL || (rc == SQLITE_IOERR && sqlite3_system_errno(d->sql) == ENOSPC))
        return err_set(e, ERR_STORE, "%s: no space left on the disk of data_dir", what);
    if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB)
        return err_set(
            e, ERR_STORE,
            "%s: sandbook.db is damaged (%s): put a backup of data_dir in its place, or save what can be read "
            "with sqlite3's .recover",
            what, sqlite3_errmsg(d->sql));
    return err_set(e, ERR_STORE, "%s: %s", what, sqlite3_errmsg(d->sql));
}

static int pragmas(struct db *d, struct err *e)
{
    /* FULL: what was acknowledged to a platform must survive a power cut, not only a crash. */
    static const char sql[] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
                              "PRAGMA trusted_schema=OFF; PRAGMA secure_delete=ON;";
    if (sqlite3_exec(d->sql, sql, NULL, NULL, NULL) != SQLITE_OK)
        return failed(d, "database", e);
    return 0;
}

int db_open(struct db **out, const char *path, struct err *e)
{
    struct db *d = xcalloc(1, sizeof *d);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
    int rc = sqlite3_open_v2(path, &d->sql, flags, NULL);
    if (rc != SQLITE_OK)
        (void)err_set(e, ERR_STORE, "cannot open %s: %s", path, sqlite3_errstr(rc));
    else
        rc = pragmas(d, e);
    if (rc != 0) {
        db_close(d);
        return -1;
    }
    (void)sqlite3_busy_timeout(d->sql, 2000); /* a backup may be reading */
    *out = d;
    return 0;
}

void db_close(struct db *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->prepared_n; i++)
        (void)sqlite3_finalize(d->prepared[i].st);
    (void)sqlite3_close(d->sql);
    free(d);
}

static int bind_one(sqlite3_stmt *st, int at, char type, va_list *ap)
{
    if (type == 'i')
        return sqlite3_bind_int64(st, at, va_arg(*ap, int64_t));
    if (type == 'b') {
        const void *bytes = va_arg(*ap, const void *);
        return sqlite3_bind_blob64(st, at, bytes, va_arg(*ap, size_t), SQLITE_TRANSIENT);
    }
    const char *text = va_arg(*ap, const char *);
    if (!text)
        return sqlite3_bind_null(st, at);
    return sqlite3_bind_text64(st, at, text, strlen(text), SQLITE_TRANSIENT, SQLITE_UTF8);
}

static struct prepared *find_prepared(struct db *d, const char *sql)
{
    for (size_t i = 0; i < d->prepared_n; i++)
        if (!d->prepared[i].busy && strcmp(sqlite3_sql(d->prepared[i].st), sql) == 0)
            return &d->prepared[i];
    return NULL;
}

static void keep_prepared(struct db *d, sqlite3_stmt *st)
{
    if (st && d->prepared_n < PREPARED_MAX)
        d->prepared[d->prepared_n++] = (struct prepared){ .st = st, .busy = true };
}

/* Ready for the next; what was bound is let go of. One that found no place is done with. */
static void release(struct db *d, sqlite3_stmt *st)
{
    for (size_t i = 0; i < d->prepared_n; i++) {
        if (d->prepared[i].st != st)
            continue;
        (void)sqlite3_reset(st);
        (void)sqlite3_clear_bindings(st);
        d->prepared[i].busy = false;
        return;
    }
    (void)sqlite3_finalize(st);
}

static int prepare(struct db *d, sqlite3_stmt **st, const char *sql, const char *types, va_list *ap, struct err *e)
{
    struct prepared *known = find_prepared(d, sql);
    if (known) {
        known->busy = true;
        *st = known->st;
    } else if (sqlite3_prepare_v2(d->sql, sql, -1, st, NULL) != SQLITE_OK) {
        return failed(d, "statement", e);
    } else {
        keep_prepared(d, *st);
    }
    for (int i = 0; types[i]; i++)
        if (bind_one(*st, i + 1, types[i], ap) != SQLITE_OK)
            return failed(d, "binding", e);
    return 0;
}

static int run(struct db *d, sqlite3_stmt *st, db_row_fn *row, void *ud, struct err *e)
{
    for (;;) {
        int rc = sqlite3_step(st);
        if (rc == SQLITE_DONE)
            return 0;
        if (rc != SQLITE_ROW)
            return failed(d, "database", e);
        if (row && row(ud, &(struct db_row){ st }) < 0)
            return -1;
    }
}

int db_exec(struct db *d, struct err *e, const char *sql, const char *types, ...)
{
    sqlite3_stmt *st = NULL;
    va_list ap;
    va_start(ap, types);
    int rc = prepare(d, &st, sql, types, &ap, e);
    va_end(ap);
    if (rc == 0)
        rc = run(d, st, NULL, NULL, e);
    release(d, st);
    return rc;
}

int db_each(struct db *d, struct err *e, db_row_fn *row, void *ud, const char *sql, const char *types, ...)
{
    sqlite3_stmt *st = NULL;
    va_list ap;
    va_start(ap, types);
    int rc = prepare(d, &st, sql, types, &ap, e);
    va_end(ap);
    if (rc == 0)
        rc = run(d, st, row, ud, e);
    release(d, st);
    return rc;
}

void db_settle(struct db *d)
{
    (void)sqlite3_wal_checkpoint_v2(d->sql, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

int64_t db_last_id(const struct db *d)
{
    return sqlite3_last_insert_rowid(d->sql);
}

int64_t db_changes(const struct db *d)
{
    return sqlite3_changes(d->sql);
}

static int script(struct db *d, const char *sql, struct err *e)
{
    return sqlite3_exec(d->sql, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(d, "database", e);
}

int db_tx_begin(struct db_tx *t, struct db *d, struct err *e)
{
    t->inner = !sqlite3_get_autocommit(d->sql);
    if (script(d, t->inner ? "SAVEPOINT inner" : "BEGIN IMMEDIATE", e) < 0)
        return -1;
    t->db = d;
    return 0;
}

/* NORMAL: the log is written but not waited for. The next commit at FULL syncs the log, and with it all that came before. */
static void be_lazy(const struct db *d, bool lazy)
{
    (void)sqlite3_exec(d->sql, lazy ? "PRAGMA synchronous=NORMAL" : "PRAGMA synchronous=FULL", NULL, NULL, NULL);
}

int db_tx_begin_lazy(struct db_tx *t, struct db *d, struct err *e)
{
    t->lazy = sqlite3_get_autocommit(d->sql); /* an inner one ends with its outer, and as that does */
    if (t->lazy)
        be_lazy(d, true);
    if (db_tx_begin(t, d, e) == 0)
        return 0;
    if (t->lazy)
        be_lazy(d, false);
    return -1;
}

int db_tx_commit(struct db_tx *t, struct err *e)
{
    if (script(t->db, t->inner ? "RELEASE inner" : "COMMIT", e) < 0)
        return -1; /* db_tx_end rolls back */
    if (t->lazy)
        be_lazy(t->db, false);
    t->db = NULL;
    return 0;
}

void db_tx_end(struct db_tx *t)
{
    if (t->db)
        (void)sqlite3_exec(t->db->sql, t->inner ? "ROLLBACK TO inner; RELEASE inner" : "ROLLBACK", NULL, NULL, NULL);
    if (t->db && t->lazy)
        be_lazy(t->db, false);
    t->db = NULL;
}

static int migrate_one(struct db *d, const char *step, int to, struct err *e)
{
    AUTO(db_tx_end) struct db_tx tx = { 0 };
    autofree char *version = xasprintf("PRAGMA user_version=%d", to); /* a pragma takes no parameters */
    if (db_tx_begin(&tx, d, e) < 0 || script(d, step, e) < 0 || script(d, version, e) < 0)
        return err_wrap(e, "schema %d", to);
    return db_tx_commit(&tx, e);
}

int db_open_beside(struct db **out, const char *path, int version, struct err *e)
{
    struct db *d = xcalloc(1, sizeof *d);
    int64_t have = 0;
    int rc = sqlite3_open_v2(path, &d->sql, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL);
    if (rc != SQLITE_OK)
        (void)err_set(e, ERR_STORE, "cannot open %s: %s", path, sqlite3_errstr(rc));
    else
        rc = script(d, "PRAGMA query_only=ON; PRAGMA trusted_schema=OFF", e);
    (void)sqlite3_busy_timeout(d->sql, 2000);
    if (rc == 0)
        rc = db_each(d, e, db_row_int, &have, "PRAGMA user_version", "");
    if (rc == 0 && have != version)
        rc = err_set(e, ERR_CONFIG, "the database is of another version (schema %d, this program knows %d)", (int)have,
                     version);
    if (rc != 0) {
        db_close(d);
        return -1;
    }
    *out = d;
    return 0;
}

int db_migrate(struct db *d, const char *const *steps, int n, struct err *e)
{
    int64_t have = 0;
    if (db_each(d, e, db_row_int, &have, "PRAGMA user_version", "") < 0)
        return -1;
    if (have > n)
        return err_set(e, ERR_STORE, "the database was written by a newer Sandbook (schema %d, this one knows %d)",
                       (int)have, n);
    for (int i = (int)have; i < n; i++)
        if (migrate_one(d, steps[i], i + 1, e) < 0)
            return -1;
    return 0;
}

int64_t db_int(const struct db_row *r, int column)
{
    return sqlite3_column_int64(r->st, column);
}

int db_row_int(void *ud, const struct db_row *r)
{
    *(int64_t *)ud = db_int(r, 0);
    return 0;
}

const char *db_text(const struct db_row *r, int column)
{
    return (const char *)sqlite3_column_text(r->st, column);
}

const void *db_blob(const struct db_row *r, int column, size_t *n)
{
    const void *bytes = sqlite3_column_blob(r->st, column);
    *n = (size_t)sqlite3_column_bytes(r->st, column);
    return bytes ? bytes : "";
}

char *db_dup(const struct db_row *r, int column)
{
    const char *t = db_text(r, column);
    return xstrdup_or_null(t);
}
