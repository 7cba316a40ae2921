/* withdraw.c - a message is deleted, and the files that it brought go with it. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "store_private.h"

int store_message_delete(struct store *s, const char *platform, const char *message, struct err *e)
{
    return db_exec(s->db, e, "UPDATE inbox SET deleted=1 WHERE platform=? AND event_id=?", "ss", platform, message);
}

int store_message_deleted(struct store *s, const char *platform, const char *message, bool *deleted, struct err *e)
{
    int64_t n = 0;
    const int rc = db_each(s->db, e, db_row_int, &n, "SELECT deleted FROM inbox WHERE platform=? AND event_id=?", "ss",
                           platform, message);
    *deleted = n != 0;
    return rc;
}

static int get_text(void *ud, const struct db_row *r)
{
    *(char **)rows_add(ud) = db_dup(r, 0);
    return 0;
}

int store_message_sessions(struct store *s, const char *platform, const char *message, char ***ids, size_t *n,
                           struct err *e)
{
    struct rows rows = { .size = sizeof(char *) };
    const int rc = db_each(s->db, e, get_text, &rows,
                           "SELECT DISTINCT session FROM files JOIN sessions ON sessions.id=files.session"
                           " WHERE files.message=? AND sessions.platform=?",
                           "ss", message, platform);
    *ids = rows.at;
    *n = rows.n;
    return rc;
}

/* ---- bytes ---- */

static int get_id(void *ud, const struct db_row *r)
{
    *(int64_t *)rows_add(ud) = db_int(r, 0);
    return 0;
}

static int remove_bytes(struct store *s, const char *session, const struct rows *rows, struct err *e)
{
    const int64_t *ids = rows->at;
    autoclose int fd = store_session_folder(s, session, "files", e);
    if (fd < 0)
        return -1;
    for (size_t i = 0; i < rows->n; i++) {
        char folder[24];
        (void)snprintf(folder, sizeof folder, "%lld", (long long)ids[i]);
        store_remove_below(fd, folder);
        if (unlinkat(fd, folder, AT_REMOVEDIR) < 0 && faccessat(fd, folder, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return err_set(e, ERR_STORE, "a file of sessions/%s could not be removed", session);
    }
    return fsync(fd) < 0 ? err_set(e, ERR_STORE, "sessions/%s/files: not made durable", session) : 0;
}

/* ---- all of it ---- */

static int remove_rows(struct store *s, const char *session, const char *message, struct err *e)
{
    AUTO(db_tx_end) struct db_tx tx = { 0 };
    if (db_tx_begin(&tx, s->db, e) < 0 ||
        db_exec(
            s->db, e,
            "UPDATE sessions SET withdrawn=ifnull(withdrawn || char(10), '') || (SELECT group_concat(name, char(10))"
            " FROM (SELECT DISTINCT name FROM files WHERE session=?1 AND message=?2)) WHERE id=?1",
            "ss", session, message) < 0 ||
        db_exec(s->db, e, "DELETE FROM files WHERE session=? AND message=?", "ss", session, message) < 0)
        return -1;
    return db_tx_commit(&tx, e);
}

int store_files_withdraw(struct store *s, const char *session, const char *message, struct err *e)
{
    struct rows rows = { .size = sizeof(int64_t) };
    int rc =
        db_each(s->db, e, get_id, &rows, "SELECT id FROM files WHERE session=? AND message=?", "ss", session, message);
    if (rc == 0 && rows.n > 0)
        rc = remove_bytes(s, session, &rows, e) < 0 ? -1 : remove_rows(s, session, message, e);
    free(rows.at);
    return rc < 0 ? err_wrap(e, "withdraw") : 0;
}

int store_withdrawn(struct store *s, const char *session, char **names, struct err *e)
{
    struct rows rows = { .size = sizeof(char *) };
    const int rc = db_each(s->db, e, get_text, &rows, "SELECT withdrawn FROM sessions WHERE id=?", "s", session);
    *names = rows.n ? *(char **)rows.at : NULL;
    free(rows.at);
    return rc;
}

int store_withdrawn_told(struct store *s, const char *session, const char *names, struct err *e)
{
    return db_exec(s->db, e,
                   "UPDATE sessions SET withdrawn=nullif(substr(withdrawn, length(?2) + 2), '')"
                   " WHERE id=?1 AND substr(withdrawn, 1, length(?2))=?2",
                   "ss", session, names);
}

/* ---- folders that boxes began with ---- */

static bool is_folder_name(const char *name)
{
    return *name && strspn(name, "0123456789") == strlen(name);
}

void store_files_unlink(struct store *s, const char *session, char *const *names, size_t n)
{
    autofree char *path = xasprintf("sessions/%s/box", session);
    const int fd = openat(s->dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        (void)close(fd);
    for (struct dirent *x = d ? readdir(d) : NULL; x; x = readdir(d)) { /* NOLINT(concurrency-mt-unsafe): one thread */
        autoclose int folder =
            is_folder_name(x->d_name) ? openat(fd, x->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        for (size_t i = 0; folder >= 0 && i < n; i++)
            if (!strchr(names[i], '/')) /* what people send has none */
                (void)unlinkat(folder, names[i], 0);
    }
    if (d)
        (void)closedir(d);
}

/* No box has outlived the last program. */
void store_unlay_all(struct store *s)
{
    const int fd = openat(s->dir_fd, "sessions", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d && fd >= 0)
        (void)close(fd);
    for (struct dirent *x = d ? readdir(d) : NULL; x; x = readdir(d)) /* NOLINT(concurrency-mt-unsafe): one thread */
        if (x->d_name[0] != '.')
            store_files_unlay(s, x->d_name);
    if (d)
        (void)closedir(d);
}
