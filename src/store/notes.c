/* notes.c - the short form in which the model is given the old part of a long conversation. */
#include "store_private.h"

void notes_row_clear(struct notes_row *r)
{
    free(r->notes);
    *r = (struct notes_row){ 0 };
}

static int get_notes(void *ud, const struct db_row *r)
{
    struct notes_row *n = ud;
    notes_row_clear(n);
    *n = (struct notes_row){ .notes = db_dup(r, 0), .noted = db_int(r, 1), .shortened = db_int(r, 2) };
    return 0;
}

int store_notes(struct store *s, const char *session, struct notes_row *out, struct err *e)
{
    *out = (struct notes_row){ 0 };
    return db_each(s->db, e, get_notes, out, "SELECT NULLIF(notes, ''), noted, shortened FROM notes WHERE session=?",
                   "s", session);
}

int store_notes_set(struct store *s, const char *session, const struct notes_row *r, struct err *e)
{
    return db_exec(s->db, e, "INSERT OR REPLACE INTO notes(session, notes, noted, shortened) VALUES(?,?,?,?)", "ssii",
                   session, r->notes ? r->notes : "", r->noted, r->shortened);
}
