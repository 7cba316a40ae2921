/* usage.c - what models cost, one row a call. */
#include "store_private.h"

int store_usage_add(struct store *s, const struct usage_row *u, struct err *e)
{
    return db_exec(s->db, e,
                   "INSERT INTO usage(at_ms, session, person, model, tokens_in, tokens_cached, tokens_out, cost)"
                   " VALUES(?,?,?,?,?,?,?,?)",
                   "isssiiii", time_unix_ms(), u->session, u->person, u->model, u->in, u->cached, u->out, u->cost);
}

int store_usage_forget(struct store *s, int64_t before_ms, struct err *e)
{
    return db_exec(s->db, e, "DELETE FROM usage WHERE at_ms<?", "i", before_ms);
}

static int get_sum(void *ud, const struct db_row *r)
{
    *(struct usage_sum *)ud = (struct usage_sum){ .calls = db_int(r, 0), .tokens = db_int(r, 1), .cost = db_int(r, 2) };
    return 0;
}

int store_usage_sum(struct store *s, const struct usage_query *q, struct usage_sum *out, struct err *e)
{
    *out = (struct usage_sum){ 0 };
    return db_each(s->db, e, get_sum, out,
                   "SELECT COUNT(*), COALESCE(SUM(tokens_in + tokens_out), 0), COALESCE(SUM(cost), 0) FROM usage"
                   " WHERE at_ms>=?1 AND (?2 IS NULL OR session=?2) AND (?3 IS NULL OR person=?3)"
                   " AND (?5 IS NULL OR session IN (SELECT id FROM sessions WHERE platform=?4 AND room=?5))",
                   "issss", q->since_ms, q->session, q->person, q->platform, q->room);
}
