/* sessions.c - conversations: their place, their id, their folder. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include "store_private.h"

void session_row_clear(struct session_row *r)
{
    free(r->platform);
    free(r->room);
    free(r->thread);
    free(r->model);
    *r = (struct session_row){ 0 };
}

/* Random, so that nobody who sees one session's id can guess another's. */
static void make_id(char id[17])
{
    uint64_t bits = 0;
    if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        abort();
    (void)snprintf(id, 17, "%016llx", (unsigned long long)bits);
}

static int get_row(void *ud, const struct db_row *r)
{
    struct session_row *s = ud;
    session_row_clear(s);
    (void)snprintf(s->id, sizeof s->id, "%s", db_text(r, 0));
    s->platform = db_dup(r, 1);
    s->room = db_dup(r, 2);
    s->thread = *db_text(r, 3) ? db_dup(r, 3) : NULL;
    s->created_ms = db_int(r, 4);
    s->used_ms = db_int(r, 5);
    s->cells = (int)db_int(r, 6);
    s->base = (int)db_int(r, 7);
    s->model = db_dup(r, 8);
    return 0;
}

#define COLUMNS                                                                      \
    "SELECT id, platform, room, thread, created_ms, used_ms,"                        \
    " (SELECT COALESCE(MAX(number), 0) FROM cells WHERE session = id),"              \
    " COALESCE(base, (SELECT MAX(number) FROM cells WHERE session = id), 0), model " \
    "FROM sessions "

int store_session_get(struct store *s, const char *platform, const char *room, const char *thread,
                      struct session_row *out, bool *made, struct err *e)
{
    char id[17];
    make_id(id);
    int64_t now = time_unix_ms();
    *out = (struct session_row){ 0 };
    if (db_exec(
            s->db, e,
            "INSERT INTO sessions(id, platform, room, thread, created_ms, used_ms) VALUES(?,?,?,?,?,?) ON CONFLICT(platform, room, thread) DO UPDATE SET used_ms=excluded.used_ms",
            "ssssii", id, platform, room, thread ? thread : "", now, now) < 0)
        return err_wrap(e, "session");
    if (db_each(s->db, e, get_row, out, COLUMNS "WHERE platform=? AND room=? AND thread=?", "sss", platform, room,
                thread ? thread : "") < 0)
        return err_wrap(e, "session");
    if (made)
        *made = !strcmp(out->id, id);
    return 0;
}

int store_session_find(struct store *s, const char *id, struct session_row *out, struct err *e)
{
    *out = (struct session_row){ 0 };
    if (db_each(s->db, e, get_row, out, COLUMNS "WHERE id=?", "s", id) < 0)
        return err_wrap(e, "session");
    return out->platform ? 0 : err_set(e, ERR_DATA, "there is no session %s", id);
}

int store_session_asked(struct store *s, const char *platform, const char *event_id, struct session_row *out,
                        struct err *e)
{
    *out = (struct session_row){ 0 };
    return db_each(s->db, e, get_row, out,
                   COLUMNS "WHERE id=(SELECT session FROM inbox i WHERE platform=?1 AND (event_id=?2 OR about=?2)"
                           " AND (state IN (1, 2) OR EXISTS(SELECT 1 FROM turns WHERE seq=i.seq)) LIMIT 1)",
                   "ss", platform, event_id);
}

int store_session_move(struct store *s, const char *platform, const char *from, const char *to, bool *moved,
                       struct err *e)
{
    const int rc = db_exec(s->db, e, "UPDATE OR IGNORE sessions SET room=? WHERE platform=? AND room=? AND thread=''",
                           "sss", to, platform, from);
    *moved = rc == 0 && db_changes(s->db) > 0;
    return rc;
}

static int add_row(void *ud, const struct db_row *r)
{
    return get_row(rows_add(ud), r);
}

int store_sessions_unused(struct store *s, int64_t before_ms, size_t limit, struct session_row **out, size_t *n,
                          struct err *e)
{
    struct rows rows = { .size = sizeof(struct session_row) };
    const int rc = db_each(s->db, e, add_row, &rows, COLUMNS "WHERE used_ms<? ORDER BY used_ms LIMIT ?", "ii",
                           before_ms, (int64_t)limit);
    *out = rows.at;
    *n = rows.n;
    return rc;
}

int store_session_model(struct store *s, const char *id, const char *model, struct err *e)
{
    return db_exec(s->db, e, "UPDATE sessions SET model=? WHERE id=?", "ss", model, id);
}

int store_session_base(struct store *s, const char *id, int cell, struct err *e)
{
    return db_exec(s->db, e, "UPDATE sessions SET base=? WHERE id=?", "is", (int64_t)cell, id);
}

int store_session_out(struct store *s, const char *id, int *fd, char **path, struct err *e)
{
    *fd = s->out ? open(s->out, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : store_session_folder(s, id, "out", e);
    if (*fd < 0)
        return s->out ? err_sys(e, ERR_STORE, errno, "cannot open %s", s->out) : -1;
    *path = s->out ? xstrdup(s->out) : xasprintf("%s/sessions/%s/out", s->dir, id);
    return 0;
}
