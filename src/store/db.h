/* db.h - SQLite, narrowed to what the store needs; db.c is its only user. Floor 3, private to store/.
 *
 * Statements are bound, never pasted. `types` has one letter a parameter: 'i' int64_t, 's' const char * (NULL: SQL NULL), 'b' const void * and
 * size_t (bytes; never NULL). */
#ifndef DB_H
#define DB_H
#include "err.h"

struct db;
struct db_row; /* one result row; valid inside the row callback only */

must_check int db_open(struct db **out, const char *path, struct err *e);
/* For reading, beside another process that writes; the schema must be at `version`, else ERR_CONFIG. */
must_check int db_open_beside(struct db **out, const char *path, int version, struct err *e);
void db_close(struct db *d);
/* Brings the schema from its PRAGMA user_version to n by running steps[version..n-1], each in its own transaction. ERR_STORE when the
 * database is newer than this program. */
must_check int db_migrate(struct db *d, const char *const *steps, int n, struct err *e);

must_check int db_exec(struct db *d, struct err *e, const char *sql, const char *types, ...);
/* The journal's content goes into the database, and the journal is emptied. While somebody reads it is left for the next time. */
void db_settle(struct db *d);
/* row() for each result row; a negative return stops. */
typedef int db_row_fn(void *ud, const struct db_row *r);
must_check int db_each(struct db *d, struct err *e, db_row_fn *row, void *ud, const char *sql, const char *types, ...);
/* A row() for one number: ud is an int64_t *, which gets the first column. */
db_row_fn db_row_int;
int64_t db_last_id(const struct db *d);
int64_t db_changes(const struct db *d);

/* Transactions nest: an inner one that ends without commit undoes only its own part. One that is not committed is rolled back when its variable leaves scope:
 *   AUTO(db_tx_end) struct db_tx tx = { 0 };  if (db_tx_begin(&tx, d, e) < 0) ...  return db_tx_commit(&tx, e); */
struct db_tx {
    struct db *db; /* NULL: none open */
    bool inner;    /* a savepoint in another */
    bool lazy;
};
must_check int db_tx_begin(struct db_tx *t, struct db *d, struct err *e);
/* Its commit waits for no disk: a power cut may undo it, never without undoing all that was committed behind it. As part of another
 * transaction it is as durable as that. */
must_check int db_tx_begin_lazy(struct db_tx *t, struct db *d, struct err *e);
must_check int db_tx_commit(struct db_tx *t, struct err *e);
void db_tx_end(struct db_tx *t);

int64_t db_int(const struct db_row *r, int column);
const char *db_text(const struct db_row *r, int column);            /* borrowed; NULL for SQL NULL */
const void *db_blob(const struct db_row *r, int column, size_t *n); /* borrowed; never NULL */
char *db_dup(const struct db_row *r, int column);                   /* the caller frees; NULL for SQL NULL */
#endif
