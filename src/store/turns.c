/* turns.c - turns, cells and the answers that are to be posted. */
#include <string.h>
#include "json.h"
#include "store_private.h"

enum { CELL_JSON_MAX = 16 << 20 }; /* two capped streams, a rich result and room */

void turn_row_clear(struct turn_row *r)
{
    free(r->request);
    free(r->answer);
    free(r->messages);
    free(r->receipt);
    free(r->status);
    *r = (struct turn_row){ 0 };
}

void outbox_item_clear(struct outbox_item *o)
{
    free(o->platform);
    free(o->txn);
    free(o->session);
    free(o->room);
    free(o->thread);
    free(o->reply_to);
    free(o->markdown);
    free(o->receipt);
    free(o->figures);
    free(o->files);
    free(o->amends);
    *o = (struct outbox_item){ 0 };
}

void outbox_item_copy(struct outbox_item *to, const struct outbox_item *from)
{
    *to = (struct outbox_item){
        .id = from->id,
        .turn = from->turn,
        .platform = xstrdup_or_null(from->platform),
        .txn = xstrdup_or_null(from->txn),
        .session = xstrdup_or_null(from->session),
        .room = xstrdup_or_null(from->room),
        .thread = xstrdup_or_null(from->thread),
        .reply_to = xstrdup_or_null(from->reply_to),
        .markdown = xstrdup_or_null(from->markdown),
        .receipt = xstrdup_or_null(from->receipt),
        .figures = xstrdup_or_null(from->figures),
        .files = xstrdup_or_null(from->files),
        .amends = xstrdup_or_null(from->amends),
        .tries = from->tries,
    };
}

int store_turn_begin(struct store *s, const char *session, int64_t seq, const char *request, int64_t *turn,
                     struct err *e)
{
    AUTO(db_tx_end) struct db_tx tx = { 0 };
    if (db_tx_begin(&tx, s->db, e) < 0 || store_inbox_set(s, seq, INBOX_RUNNING, e) < 0 ||
        db_exec(s->db, e, "INSERT INTO turns(session, seq, request, status, started_ms) VALUES(?,?,?,'running',?)",
                "sisi", session, seq, request, time_unix_ms()) < 0)
        return err_wrap(e, "turn");
    *turn = db_last_id(s->db);
    return db_tx_commit(&tx, e);
}

int store_cell_add(struct store *s, const char *session, int64_t turn, const char *code, const struct cell *c, int base,
                   struct err *e)
{
    autojson struct json *j = cell_to_json(c, code);
    AUTO(str_clear) struct str text = STR_INIT(CELL_JSON_MAX);
    json_print(&text, j);
    if (str_check(&text, e) < 0)
        return err_wrap(e, "cell %d", c->number);
    return db_exec(s->db, e,
                   "INSERT OR REPLACE INTO cells(session, number, turn, code, json, base) VALUES(?,?,?,?,?,?)",
                   "siissi", session, (int64_t)c->number, turn, code, str_peek(&text), (int64_t)base);
}

static int get_turn(void *ud, const struct db_row *r)
{
    struct turn_row *t = rows_add(ud);
    *t = (struct turn_row){ .id = db_int(r, 0),
                            .seq = db_int(r, 1),
                            .request = db_dup(r, 2),
                            .answer = db_dup(r, 3),
                            .messages = db_dup(r, 4),
                            .receipt = db_dup(r, 5),
                            .status = db_dup(r, 6) };
    return 0;
}

int store_turns(struct store *s, const char *session, size_t limit, struct turn_row **out, size_t *n, struct err *e)
{
    return store_turns_after(s, session, 0, limit, out, n, e);
}

int store_turns_after(struct store *s, const char *session, int64_t after, size_t limit, struct turn_row **out,
                      size_t *n, struct err *e)
{
    struct rows rows = { .size = sizeof(struct turn_row) };
    int rc = db_each(
        s->db, e, get_turn, &rows,
        "SELECT id, seq, request, answer, messages, receipt, status FROM"
        " (SELECT * FROM turns WHERE session=? AND id>? AND answer IS NOT NULL ORDER BY id DESC LIMIT ?) ORDER BY id",
        "sii", session, after, (int64_t)limit);
    *out = rows.at;
    *n = rows.n;
    return rc;
}

static int get_cell(void *ud, const struct db_row *r)
{
    struct str *out = ud;
    str_puts(out, out->len > 1 ? "," : "");
    str_puts(out, db_text(r, 0));
    return 0;
}

int store_cells(struct store *s, const char *session, char **out, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT((size_t)1 << 30);
    str_puts(&text, "[");
    if (db_each(s->db, e, get_cell, &text, "SELECT json FROM cells WHERE session=? ORDER BY number", "s", session) < 0)
        return -1;
    str_puts(&text, "]");
    if (str_check(&text, e) < 0)
        return -1;
    *out = str_take(&text);
    return 0;
}

void cell_row_clear(struct cell_row *r)
{
    free(r->json);
    *r = (struct cell_row){ 0 };
}

static int get_cell_row(void *ud, const struct db_row *r)
{
    struct cell_row *c = rows_add(ud);
    *c = (struct cell_row){ .number = (int)db_int(r, 0),
                            .base = db_text(r, 1) ? (int)db_int(r, 1) : -1,
                            .turn = db_int(r, 2),
                            .json = db_dup(r, 3) };
    return 0;
}

int store_cell_rows(struct store *s, const char *session, struct cell_row **out, size_t *n, struct err *e)
{
    struct rows rows = { .size = sizeof(struct cell_row) };
    int rc = db_each(s->db, e, get_cell_row, &rows,
                     "SELECT number, base, turn, json FROM cells WHERE session=? ORDER BY number", "s", session);
    *out = rows.at;
    *n = rows.n;
    return rc;
}

static int get_text(void *ud, const struct db_row *r)
{
    char **out = ud;
    free(*out);
    *out = db_dup(r, 0);
    return 0;
}

int store_cell(struct store *s, const char *session, int number, char **out, struct err *e)
{
    *out = NULL;
    return db_each(s->db, e, get_text, out, "SELECT json FROM cells WHERE session=? AND number=?", "si", session,
                   (int64_t)number);
}

int store_outbox_add(struct store *s, const struct outbox_item *o, int64_t *id, struct err *e)
{
    if (db_exec(
            s->db, e,
            "INSERT INTO outbox(txn, turn, platform, session, room, thread, reply_to, markdown, receipt, figures, files,"
            " amends) VALUES(?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(txn) DO NOTHING",
            "sissssssssss", o->txn, o->turn, o->platform, o->session, o->room, o->thread, o->reply_to,
            o->markdown ? o->markdown : "", o->receipt, o->figures, o->files, o->amends) < 0)
        return err_wrap(e, "outbox");
    return db_each(s->db, e, db_row_int, id, "SELECT id FROM outbox WHERE txn=?", "s", o->txn);
}

int store_turn_end(struct store *s, const struct turn_row *t, const struct outbox_item *o, int64_t *outbox_id,
                   struct err *e)
{
    AUTO(db_tx_end) struct db_tx tx = { 0 };
    if (db_tx_begin(&tx, s->db, e) < 0 ||
        db_exec(s->db, e, "UPDATE turns SET answer=?, messages=?, receipt=?, status=?, ended_ms=? WHERE id=?", "ssssii",
                t->answer ? t->answer : "", t->messages, t->receipt, t->status, time_unix_ms(), t->id) < 0 ||
        store_inbox_set(s, t->seq, INBOX_DONE, e) < 0 || store_outbox_add(s, o, outbox_id, e) < 0)
        return err_wrap(e, "turn %lld", (long long)t->id);
    return db_tx_commit(&tx, e);
}

void answered_clear(struct answered *a)
{
    free(a->txn);
    free(a->request);
    *a = (struct answered){ 0 };
}

static int get_answered(void *ud, const struct db_row *r)
{
    *(struct answered *)ud = (struct answered){
        .turn = db_int(r, 0), .txn = db_dup(r, 1), .request = db_dup(r, 2), .base = (int)db_int(r, 3)
    };
    return 0;
}

int store_answer_to(struct store *s, const char *platform, const char *event_id, struct answered *out, struct err *e)
{
    *out = (struct answered){ .base = -1 };
    return db_each(
        s->db, e, get_answered, out,
        "SELECT t.id, o.txn, t.request, ifnull((SELECT base FROM cells WHERE turn=t.id ORDER BY number LIMIT 1), -1)"
        " FROM outbox o JOIN turns t ON t.id=o.turn"
        " WHERE o.platform=? AND o.reply_to=? AND o.amends IS NULL ORDER BY o.id DESC LIMIT 1",
        "ss", platform, event_id);
}

int store_outbox_sent(struct store *s, int64_t id, struct err *e)
{
    return db_exec(s->db, e, "UPDATE outbox SET sent_ms=? WHERE id=?", "ii", time_unix_ms(), id);
}

static int get_post(void *ud, const struct db_row *r)
{
    struct outbox_item *o = rows_add(ud);
    *o = (struct outbox_item){ .id = db_int(r, 0),
                               .txn = db_dup(r, 1),
                               .turn = db_int(r, 2),
                               .platform = db_dup(r, 3),
                               .session = db_dup(r, 4),
                               .room = db_dup(r, 5),
                               .thread = db_dup(r, 6),
                               .reply_to = db_dup(r, 7),
                               .markdown = db_dup(r, 8),
                               .receipt = db_dup(r, 9),
                               .figures = db_dup(r, 10),
                               .files = db_dup(r, 11),
                               .tries = (int)db_int(r, 12),
                               .amends = db_dup(r, 13) };
    return 0;
}

int store_outbox_open(struct store *s, struct outbox_item **out, size_t *n, struct err *e)
{
    struct rows rows = { .size = sizeof(struct outbox_item) };
    int rc = db_each(
        s->db, e, get_post, &rows,
        "SELECT id, txn, turn, platform, session, room, thread, reply_to, markdown, receipt, figures, files, tries, amends"
        " FROM outbox WHERE sent_ms IS NULL ORDER BY id",
        "");
    *out = rows.at;
    *n = rows.n;
    return rc;
}

int store_turn_drop(struct store *s, int64_t turn, int64_t seq, struct err *e)
{
    AUTO(db_tx_end) struct db_tx tx = { 0 };
    if (db_tx_begin(&tx, s->db, e) < 0 ||
        db_exec(s->db, e, "UPDATE turns SET status='cancelled', ended_ms=? WHERE id=?", "ii", time_unix_ms(), turn) <
            0 ||
        store_inbox_set(s, seq, INBOX_DROPPED, e) < 0)
        return err_wrap(e, "turn %lld", (long long)turn);
    return db_tx_commit(&tx, e);
}

int store_turns_interrupt(struct store *s, struct err *e)
{
    return db_exec(s->db, e, "UPDATE turns SET status='interrupted', ended_ms=? WHERE status='running'", "i",
                   time_unix_ms());
}
