/* files.c - versions of files: the bytes are whole on disk before the row that names them is committed. */
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
    free(r->message);
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

static bool part_ok(const char *part, size_t n)
{
    return n > 0 && n <= 255 && !(part[0] == '.' && (n == 1 || (n == 2 && part[1] == '.')));
}

/* A path below a folder: no part of it leads out. */
static bool name_ok(const char *name, bool parts)
{
    for (const char *p = name;; p++) {
        size_t n = strcspn(p, "/");
        if (!part_ok(p, n) || (p[n] && !parts))
            return false;
        p += n;
        if (!*p)
            return true;
    }
}

/* What it is called in its own folder. */
static const char *leaf_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static int insert(struct store *s, const char *session, struct file_row *f, struct err *e)
{
    int64_t last = 0;
    if (db_each(s->db, e, db_row_int, &last, "SELECT COALESCE(MAX(version), 0) FROM files WHERE session=? AND name=?",
                "ss", session, f->name) < 0)
        return -1;
    f->version = last + 1;
    if (db_exec(s->db, e,
                "INSERT INTO files(session, seq, name, version, bytes, cell, gone, message) VALUES(?,?,?,?,?,?,?,?)",
                "sisiiiis", session, f->seq, f->name, f->version, f->bytes, (int64_t)f->cell, (int64_t)f->gone,
                f->message) < 0)
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
    if (renameat(files_fd, temp, fd, leaf_of(f->name)) < 0 || fsync(fd) < 0)
        return copy_failed(errno, e);
    f->path = xasprintf("%s/sessions/%s/files/%s/%s", s->dir, session, folder, leaf_of(f->name));
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

/* The temporary name has one writer; what a crash left there goes. Others may read it: a keeper of another user, who gets
 * no further than the descriptors that it is given. */
static int open_incoming(int files_fd, struct err *e)
{
    (void)unlinkat(files_fd, INCOMING, 0);
    int fd = openat(files_fd, INCOMING, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    return fd < 0 ? copy_failed(errno, e) : fd;
}

/* ---- room ---- */

struct oldest {
    int64_t id;
    char *name;
};

static int get_oldest(void *ud, const struct db_row *r)
{
    struct oldest *o = ud;
    o->id = db_int(r, 0);
    o->name = db_dup(r, 1);
    return 0;
}

/* The oldest version that a cell made and that a newer one has replaced; id 0: there is none. */
static int drop_oldest(struct store *s, const char *session, bool *dropped, struct err *e)
{
    struct oldest o = { 0 };
    if (db_each(s->db, e, get_oldest, &o,
                "SELECT id, name FROM files f WHERE session=? AND cell>0 AND NOT gone AND version <"
                " (SELECT MAX(version) FROM files WHERE session=f.session AND name=f.name) ORDER BY id LIMIT 1",
                "s", session) < 0)
        return -1;
    autofree char *name = o.name;
    *dropped = o.id != 0;
    if (o.id == 0)
        return 0;
    if (db_exec(s->db, e, "DELETE FROM files WHERE id=?", "i", o.id) < 0)
        return -1;
    autofree char *path = xasprintf("sessions/%s/files/%lld/%s", session, (long long)o.id, leaf_of(name));
    (void)unlinkat(s->dir_fd, path, 0);
    *strrchr(path, '/') = '\0';
    (void)unlinkat(s->dir_fd, path, AT_REMOVEDIR);
    return 0;
}

/* For so many bytes more. */
static int make_room(struct store *s, const char *session, int64_t bytes, int64_t max, struct err *e)
{
    for (bool dropped = true; max > 0;) {
        int64_t have = 0;
        if (db_each(s->db, e, db_row_int, &have, "SELECT COALESCE(SUM(bytes), 0) FROM files WHERE session=?", "s",
                    session) < 0)
            return -1;
        if (have + bytes <= max)
            return 0;
        if (bytes <= max && drop_oldest(s, session, &dropped, e) < 0)
            return -1;
        if (bytes > max || !dropped)
            return err_set(e, ERR_LIMIT, "the files of this conversation would take more than %lld MB together",
                           (long long)(max >> 20));
    }
    return 0;
}

int store_file_add(struct store *s, const char *session, const struct file_offer *offer, struct file_row *out,
                   struct err *e)
{
    if (!name_ok(offer->name, false))
        return err_set(e, ERR_DATA, "a file cannot be called that");
    autoclose int files_fd = store_session_folder(s, session, "files", e);
    if (files_fd < 0)
        return -1;
    autoclose int to = open_incoming(files_fd, e);
    if (to < 0)
        return -1;
    struct file_row f = { .name = xstrdup(offer->name), .seq = offer->seq, .message = xstrdup_or_null(offer->message) };
    if (copy(to, offer->fd, offer->max_bytes, &f.bytes, e) < 0 ||
        make_room(s, session, f.bytes, offer->max_total, e) < 0 || commit(s, files_fd, session, INCOMING, &f, e) < 0) {
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

/* ---- what cells made ---- */

/* Linked, so that a large result costs nothing; copied where another file system is in between. */
static int bring(int files_fd, const char *path, int64_t *bytes, struct err *e)
{
    struct stat st;
    (void)unlinkat(files_fd, INCOMING, 0);
    if (linkat(AT_FDCWD, path, files_fd, INCOMING, 0) == 0) {
        if (fstatat(files_fd, INCOMING, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            return err_set(e, ERR_STORE, "not a regular file");
        *bytes = st.st_size;
        return 0;
    }
    autoclose int from = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    autoclose int to = from < 0 ? -1 : open_incoming(files_fd, e);
    if (from < 0)
        return copy_failed(errno, e);
    return to < 0 ? -1 : copy(to, from, INT64_MAX, bytes, e);
}

/* The same bytes at both; false, too, when they can't be compared. */
static bool is_same(const char *a, const char *b)
{
    enum { SLICE = 1 << 16 };
    autoclose int x = open(a, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), y = open(b, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    autofree char *buf = xcalloc(2, SLICE);
    for (off_t at = 0; x >= 0 && y >= 0; at += SLICE) {
        ssize_t n = pread(x, buf, SLICE, at), m = pread(y, buf + SLICE, SLICE, at);
        if (n < 0 || n != m || memcmp(buf, buf + SLICE, (size_t)n) != 0)
            return false;
        if (n < SLICE)
            return true;
    }
    return false;
}

/* The newest of that name on the session's line; NULL: none. Borrowed of rows. */
static const struct file_row *newest(const struct file_row *rows, size_t n, const char *name)
{
    for (size_t i = n; i-- > 0;)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static void rows_free(struct file_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        file_row_clear(&rows[i]);
    free(rows);
}

static int made(struct store *s, const char *session, const struct file_made *m, struct file_row *f, struct err *e)
{
    autoclose int files_fd = store_session_folder(s, session, "files", e);
    if (files_fd < 0)
        return -1;
    if (bring(files_fd, m->path, &f->bytes, e) == 0 && make_room(s, session, f->bytes, m->max_total, e) == 0 &&
        commit(s, files_fd, session, INCOMING, f, e) == 0)
        return 0;
    (void)unlinkat(files_fd, INCOMING, 0);
    return -1;
}

int store_file_made(struct store *s, const char *session, const struct file_made *m, struct file_version *out,
                    struct err *e)
{
    struct file_row *rows = NULL;
    size_t n = 0;
    if (!name_ok(m->name, true))
        return err_set(e, ERR_DATA, "a file cannot be called that");
    if (store_files(s, session, &rows, &n, e) < 0)
        return -1;
    const struct file_row *old = newest(rows, n, m->name);
    bool same = old && !old->gone && is_same(old->path, m->path);
    struct file_row f = { .name = xstrdup(m->name), .cell = m->cell };
    if (same)
        *out = (struct file_version){ .file = old->id, .version = old->version };
    int r = same ? 0 : made(s, session, m, &f, e);
    if (r == 0 && !same)
        *out = (struct file_version){ .file = f.id, .version = f.version, .fresh = true };
    rows_free(rows, n);
    file_row_clear(&f);
    return r;
}

static bool is_below(const char *name, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(name, folder, n) == 0 && (!name[n] || name[n] == '/');
}

static int mark_gone(struct store *s, const char *session, const struct file_row *old, int cell, struct err *e)
{
    struct file_row f = { .name = xstrdup(old->name), .cell = cell, .gone = true };
    int r = insert(s, session, &f, e);
    file_row_clear(&f);
    return r;
}

int store_file_gone(struct store *s, const char *session, const char *name, int cell, struct err *e)
{
    struct file_row *rows = NULL;
    size_t n = 0;
    int r = store_files(s, session, &rows, &n, e);
    for (size_t i = 0; r == 0 && i < n; i++)
        if (is_below(rows[i].name, name) && !rows[i].gone && newest(rows, n, rows[i].name) == &rows[i])
            r = mark_gone(s, session, &rows[i], cell, e);
    rows_free(rows, n);
    return r;
}
