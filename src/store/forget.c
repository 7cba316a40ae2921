/* forget.c - what goes when a conversation is forgotten, or is old.
 *
 * Rows first: from there on nobody is led to the bytes. A crash in between leaves bytes that no row names; whoever asked asks again
 * (a forget that was not finished is still in the inbox), and an old session is still found, since its row goes last. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "store_private.h"

/* Each takes the session, and those that name it the last inbox item. */
static int exec_all(struct store *s, const char *const *steps, size_t n, const char *session, int64_t until,
                    struct err *e)
{
    AUTO(db_tx_end) struct db_tx tx = { 0 };
    if (db_tx_begin(&tx, s->db, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (db_exec(s->db, e, steps[i], strstr(steps[i], "?2") ? "si" : "s", session, until) < 0)
            return -1;
    return db_tx_commit(&tx, e);
}

/* ---- bytes ---- */

static bool has_row(struct store *s, const char *session, const char *id)
{
    struct err ignored = { 0 };
    int64_t n = 0;
    return db_each(s->db, &ignored, db_row_int, &n, "SELECT COUNT(*) FROM files WHERE session=? AND id=?", "ss",
                   session, id) < 0 ||
           n > 0;
}

/* files/<id>/ of every id that has no row any more. */
static void sweep_files(struct store *s, const char *session, int session_fd)
{
    const int fd = openat(session_fd, "files", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        (void)close(fd);
    for (struct dirent *x = d ? readdir(d) : NULL; x; x = readdir(d)) { /* NOLINT(concurrency-mt-unsafe): one thread */
        if (strcmp(x->d_name, ".") == 0 || strcmp(x->d_name, "..") == 0 || has_row(s, session, x->d_name))
            continue;
        store_remove_below(fd, x->d_name);
        if (unlinkat(fd, x->d_name, AT_REMOVEDIR) < 0)
            (void)unlinkat(fd, x->d_name, 0);
    }
    if (d)
        (void)closedir(d);
}

/* An empty folder goes; what is in one that stays was sent later. */
static int sweep_folders(struct store *s, const char *session, struct err *e)
{
    static const char *const leaves[] = { "out", "checkpoints", "box" };
    autoclose int sessions = store_folder(s->dir_fd, "sessions", e);
    if (sessions < 0)
        return -1;
    autoclose int fd = openat(sessions, session, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    sweep_files(s, session, fd);
    (void)unlinkat(fd, "files", AT_REMOVEDIR);
    for (size_t i = 0; i < countof(leaves); i++) {
        store_remove_below(fd, leaves[i]);
        if (unlinkat(fd, leaves[i], AT_REMOVEDIR) < 0 && faccessat(fd, leaves[i], F_OK, 0) == 0)
            return err_set(e, ERR_STORE, "some of sessions/%s/%s could not be removed", session, leaves[i]);
    }
    (void)unlinkat(sessions, session, AT_REMOVEDIR);
    return 0;
}

/* ---- both ---- */

int store_forget(struct store *s, const char *session, int64_t until, struct err *e)
{
    static const char *const steps[] = {
        "DELETE FROM cells WHERE session=?1",
        "DELETE FROM turns WHERE session=?1",
        "DELETE FROM files WHERE session=?1 AND seq<=?2",
        "DELETE FROM lines WHERE session=?1",
        "DELETE FROM checkpoints WHERE session=?1",
        "DELETE FROM notes WHERE session=?1",
        "DELETE FROM outbox WHERE session=?1",
        "UPDATE inbox SET text='', name='', sender='', about=NULL WHERE session=?1 AND seq<=?2 AND state>=3",
        "UPDATE sessions SET base=NULL, model=NULL, withdrawn=NULL WHERE id=?1",
    };
    if (exec_all(s, steps, countof(steps), session, until, e) < 0 || sweep_folders(s, session, e) < 0)
        return err_wrap(e, "forget");
    db_settle(s->db);
    return 0;
}

int store_session_remove(struct store *s, const char *session, struct err *e)
{
    static const char *const steps[] = {
        "DELETE FROM inbox WHERE session=?1",
        "DELETE FROM usage WHERE session=?1",
        "DELETE FROM sessions WHERE id=?1",
    };
    if (store_forget(s, session, INT64_MAX, e) < 0 || exec_all(s, steps, countof(steps), session, 0, e) < 0)
        return err_wrap(e, "session %s", session);
    db_settle(s->db);
    return 0;
}
