/* inbox.c - what people said, by order of arrival. */
#include <string.h>
#include "store_private.h"

void inbox_item_clear(struct inbox_item *i)
{
    free(i->platform);
    free(i->event_id);
    free(i->room);
    free(i->thread);
    free(i->sender);
    free(i->name);
    free(i->text);
    free(i->session);
    free(i->about);
    *i = (struct inbox_item){ 0 };
}

static int insert(struct store *s, const struct inbox_item *i, int64_t *seq, bool *fresh, struct err *e)
{
    if (db_exec(
            s->db, e,
            "INSERT INTO inbox(platform, event_id, room, thread, sender, name, text, session, about, sent_ms, state)"
            " VALUES(?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(platform, event_id) DO NOTHING",
            "sssssssssii", i->platform, i->event_id, i->room, i->thread, i->sender, i->name, i->text ? i->text : "",
            i->session, i->about, i->sent_ms, (int64_t)i->state) < 0)
        return err_wrap(e, "inbox");
    *fresh = db_changes(s->db) > 0;
    if (*fresh) {
        *seq = db_last_id(s->db);
        return 0;
    }
    return db_each(s->db, e, db_row_int, seq, "SELECT seq FROM inbox WHERE platform=? AND event_id=?", "ss",
                   i->platform, i->event_id);
}

int store_inbox_add(struct store *s, const struct inbox_item *i, int64_t *seq, bool *fresh, struct err *e)
{
    AUTO(db_tx_end) struct db_tx tx = { 0 };
    if (db_tx_begin(&tx, s->db, e) < 0 || insert(s, i, seq, fresh, e) < 0 ||
        db_exec(s->db, e, "UPDATE sessions SET used_ms=? WHERE id=?", "is", time_unix_ms(), i->session) < 0)
        return -1;
    return db_tx_commit(&tx, e);
}

int store_inbox_set(struct store *s, int64_t seq, enum inbox_state state, struct err *e)
{
    return db_exec(s->db, e, "UPDATE inbox SET state=? WHERE seq=?", "ii", (int64_t)state, seq);
}

static int get_item(void *ud, const struct db_row *r)
{
    struct inbox_item *i = rows_add(ud);
    *i = (struct inbox_item){ .seq = db_int(r, 0),
                              .platform = db_dup(r, 1),
                              .event_id = db_dup(r, 2),
                              .room = db_dup(r, 3),
                              .thread = db_dup(r, 4),
                              .sender = db_dup(r, 5),
                              .name = db_dup(r, 6),
                              .text = db_dup(r, 7),
                              .session = db_dup(r, 8),
                              .sent_ms = db_int(r, 9),
                              .state = (enum inbox_state)db_int(r, 10),
                              .about = db_dup(r, 11) };
    return 0;
}

int store_inbox_open(struct store *s, struct inbox_item **out, size_t *n, struct err *e)
{
    struct rows rows = { .size = sizeof(struct inbox_item) };
    int rc = db_each(s->db, e, get_item, &rows,
                     "SELECT seq, platform, event_id, room, thread, sender, name, text, session, sent_ms, state, about"
                     " FROM inbox WHERE state < 3 ORDER BY seq",
                     "");
    *out = rows.at;
    *n = rows.n;
    return rc;
}
