/* kept.c - batches, and what chat adapters keep for themselves. */
#include <string.h>
#include "store_private.h"

int store_batch_begin(struct store_batch *b, struct store *s, struct err *e)
{
    struct db_tx tx = { 0 };
    if (db_tx_begin(&tx, s->db, e) < 0)
        return -1;
    *b = (struct store_batch){ .store = s, .outer = !tx.inner };
    return 0;
}

int store_batch_begin_lazy(struct store_batch *b, struct store *s, struct err *e)
{
    struct db_tx tx = { 0 };
    if (db_tx_begin_lazy(&tx, s->db, e) < 0)
        return -1;
    *b = (struct store_batch){ .store = s, .outer = !tx.inner, .lazy = tx.lazy };
    return 0;
}

static struct db_tx as_tx(const struct store_batch *b)
{
    return (struct db_tx){ .db = b->store ? b->store->db : NULL, .inner = !b->outer, .lazy = b->lazy };
}

int store_batch_commit(struct store_batch *b, struct err *e)
{
    struct db_tx tx = as_tx(b);
    if (db_tx_commit(&tx, e) < 0)
        return -1;
    b->store = NULL;
    return 0;
}

void store_batch_end(struct store_batch *b)
{
    struct db_tx tx = as_tx(b);
    db_tx_end(&tx);
    b->store = NULL;
}

int store_keep(struct store *s, const struct kept *k, const void *value, size_t n, struct err *e)
{
    return db_exec(s->db, e,
                   "INSERT INTO kept(platform, kind, key, value) VALUES(?,?,?,?)"
                   " ON CONFLICT DO UPDATE SET value=excluded.value",
                   "sssb", k->platform, k->kind, k->key, value, n);
}

struct copy {
    char *at;
    size_t n;
};

static int get_copy(void *ud, const struct db_row *r)
{
    struct copy *c = ud;
    const void *bytes = db_blob(r, 0, &c->n);
    c->at = xcalloc(1, c->n + 1);
    memcpy(c->at, bytes, c->n);
    return 0;
}

int store_kept(struct store *s, const struct kept *k, char **out, size_t *n, struct err *e)
{
    struct copy c = { 0 };
    const int rc = db_each(s->db, e, get_copy, &c, "SELECT value FROM kept WHERE platform=? AND kind=? AND key=?",
                           "sss", k->platform, k->kind, k->key);
    *out = c.at;
    *n = c.n;
    return rc;
}

int store_unkeep(struct store *s, const struct kept *k, struct err *e)
{
    if (!k->key)
        return db_exec(s->db, e, "DELETE FROM kept WHERE platform=? AND kind=?", "ss", k->platform, k->kind);
    return db_exec(s->db, e, "DELETE FROM kept WHERE platform=? AND kind=? AND key=?", "sss", k->platform, k->kind,
                   k->key); /* of its own: with "or all" it would walk the kind */
}

struct walk {
    store_kept_fn *fn;
    void *ud;
};

static int visit(void *ud, const struct db_row *r)
{
    const struct walk *w = ud;
    size_t n = 0;
    const char *bytes = db_blob(r, 1, &n);
    return w->fn(w->ud, db_text(r, 0), bytes, n);
}

int store_kept_each(struct store *s, const struct kept *k, store_kept_fn *fn, void *ud, struct err *e)
{
    struct walk w = { fn, ud };
    const char *prefix = k->key ? k->key : "";
    return db_each(s->db, e, visit, &w,
                   "SELECT key, value FROM kept WHERE platform=?1 AND kind=?2 AND key >= ?3"
                   " AND substr(key, 1, length(?3)) = ?3 ORDER BY key",
                   "sss", k->platform, k->kind, prefix);
}
