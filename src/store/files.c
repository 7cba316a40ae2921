/* Files that people sent: the bytes are whole on disk before the row that names them is committed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "store_private.h"

#define INCOMING ".incoming"

void file_row_clear(struct file_row *r)
{
    free(r->name);
    free(r->path);
    free(r->profile);
    *r = (struct file_row){ 0 };
}

static int copy_failed(int sys, struct err *e)
{
    if (sys == ENOSPC || sys == EDQUOT)
        return err_set(e, ERR_STORE, "no space left on the disk of data_dir");
    return err_sys(e, ERR_STORE, sys, "cannot keep the file");
}

/* At most max bytes from one descriptor to the other, then to the disk. */
static int copy(int to, int from, int64_t max, int64_t *bytes, struct err *e)
{
    autofree char *buf = xcalloc(1, 1 << 18);
    *bytes = 0;
    for (;;) {
        ssize_t n = read(from, buf, 1 << 18);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return copy_failed(errno, e);
        if (n == 0)
            break;
        *bytes += n;
        if (*bytes > max)
            return err_set(e, ERR_DATA, "the file is larger than %lld MB", (long long)(max >> 20));
        if (write_all(to, buf, (size_t)n) < 0)
            return copy_failed(errno, e);
    }
    return fsync(to) < 0 ? copy_failed(errno, e) : 0;
}

static bool name_ok(const char *name)
{
    return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/') && strlen(name) <= 255;
}

static int get_int(void *ud, const struct db_row *r)
{
    *(int64_t *)ud = db_int(r, 0);
    return 0;
}

static int insert(struct store *s, const char *session, struct file_row *f, struct err *e)
{
    int64_t last = 0;
    if (db_each(s->db, e, get_int, &last, "SELECT COALESCE(MAX(version), 0) FROM files WHERE session=? AND name=?",
                "ss", session, f->name) < 0)
        return -1;
    f->version = last + 1;
    if (db_exec(s->db, e, "INSERT INTO files(session, seq, name, version, bytes) VALUES(?,?,?,?,?)", "sisii", session,
                f->seq, f->name, f->version, f->bytes) < 0)
        return -1;
    f->id = db_last_id(s->db);
    return 0;
}

/* files/<id>/<name>: a folder each, so that names never meet and need no mangling. */
static int move_in(struct store *s, int files_fd, const char *session, const char *temp, struct file_row *f,
                   struct err *e)
{
    char folder[24];
    (void)snprintf(folder, sizeof folder, "%lld", (long long)f->id);
    autoclose int fd = store_folder(files_fd, folder, e);
    if (fd < 0)
        return -1;
    if (renameat(files_fd, temp, fd, f->name) < 0 || fsync(fd) < 0)
        return copy_failed(errno, e);
    f->path = xasprintf("%s/sessions/%s/files/%s/%s", s->dir, session, folder, f->name);
    return 0;
}

static int commit(struct store *s, int files_fd, const char *session, const char *temp, struct file_row *f,
                  struct err *e)
{
    AUTO(db_tx_end) struct db_tx tx = { 0 };
    if (db_tx_begin(&tx, s->db, e) < 0 || insert(s, session, f, e) < 0 || move_in(s, files_fd, session, temp, f, e) < 0)
        return -1;
    return db_tx_commit(&tx, e);
}

/* The temporary name has one writer; what a crash left there is overwritten. */
static int open_incoming(int files_fd, struct err *e)
{
    int fd = openat(files_fd, INCOMING, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? copy_failed(errno, e) : fd;
}

int store_file_add(struct store *s, const char *session, const struct file_offer *offer, struct file_row *out,
                   struct err *e)
{
    if (!name_ok(offer->name))
        return err_set(e, ERR_DATA, "a file cannot be called that");
    autoclose int files_fd = store_session_folder(s, session, "files", e);
    if (files_fd < 0)
        return -1;
    autoclose int to = open_incoming(files_fd, e);
    if (to < 0)
        return -1;
    struct file_row f = { .name = xstrdup(offer->name), .seq = offer->seq };
    if (copy(to, offer->fd, offer->max_bytes, &f.bytes, e) < 0 || commit(s, files_fd, session, INCOMING, &f, e) < 0) {
        (void)unlinkat(files_fd, INCOMING, 0);
        file_row_clear(&f);
        return -1;
    }
    *out = f;
    return 0;
}

int store_file_profile(struct store *s, int64_t file, const char *profile_json, struct err *e)
{
    return db_exec(s->db, e, "UPDATE files SET profile=? WHERE id=?", "si", profile_json, file);
}

struct listing {
    struct rows rows;
    const struct store *store;
    const char *session;
};

static int get_file(void *ud, const struct db_row *r)
{
    struct listing *l = ud;
    struct file_row *f = rows_add(&l->rows);
    *f = (struct file_row){ .id = db_int(r, 0),
                            .name = db_dup(r, 1),
                            .profile = db_dup(r, 2),
                            .bytes = db_int(r, 3),
                            .version = db_int(r, 4),
                            .seq = db_int(r, 5) };
    f->path = xasprintf("%s/sessions/%s/files/%lld/%s", l->store->dir, l->session, (long long)f->id, f->name);
    return 0;
}

int store_files(struct store *s, const char *session, struct file_row **out, size_t *n, struct err *e)
{
    struct listing l = { .rows = { .size = sizeof(struct file_row) }, .store = s, .session = session };
    int rc =
        db_each(s->db, e, get_file, &l,
                "SELECT id, name, profile, bytes, version, seq FROM files WHERE session=? ORDER BY id", "s", session);
    *out = l.rows.at;
    *n = l.rows.n;
    return rc;
}
