/* checkpoints.c - sessions' variables as files that nobody but this store can have written.
 *
 *   data_dir/checkpoint.key                    the key of the seals; without it no file below can be read back
 *   data_dir/sessions/<id>/checkpoints/<n>     label, state, seal (label.h)
 *
 * A state is a program: whoever could change one would run code in somebody's box. So a file is read back only with its seal
 * right, in the session whose name is sealed with it, and in the image that wrote it. All of that is known before a byte of it
 * goes anywhere. The row is committed when the file is whole and in place; a file without a row is what a crash left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "digest.h"
#include "json.h"
#include "label.h"
#include "secret_file.h"
#include "store_private.h"

#define FOLDER   "checkpoints"
#define INCOMING ".incoming"
#define KEY      "checkpoint.key"
enum {
    KEY_BYTES = 32,
    KEEP = 2,               /* the newest may turn out to be of no use */
    FLUSH_BYTES = 8 << 20,  /* let the disk begin, so that the fsync at the end has little left to wait for */
    VERIFY_BYTES = 8 << 20, /* of one step */
    READ_BYTES = 256 << 10,
    REPORT_MAX = 1 << 20,
};

static int disk_failed(int sys, struct err *e)
{
    if (sys == ENOSPC || sys == EDQUOT)
        return err_set(e, ERR_STORE, "no space left on the disk of data_dir");
    return err_sys(e, ERR_STORE, sys, "cannot keep the checkpoint");
}

static struct digest *new_seal(const struct store *s, struct err *e)
{
    unsigned char key[KEY_BYTES];
    if (secret_file_key(s->dir_fd, KEY, key, sizeof key, e) < 0) {
        (void)err_wrap(e, "without its key no checkpoint can be read");
        return NULL;
    }
    struct digest *seal = digest_new_hmac(key, sizeof key);
    explicit_bzero(key, sizeof key);
    return seal;
}

/* ---- writing ---- */

struct checkpoint_draft {
    struct store *s;
    struct label label;
    struct digest *seal;
    int dir_fd, fd;
    int64_t flushed;
};

void store_checkpoint_drop(struct checkpoint_draft *d)
{
    if (!d)
        return;
    if (d->fd >= 0) {
        (void)close(d->fd);
        (void)unlinkat(d->dir_fd, INCOMING, 0);
    }
    if (d->dir_fd >= 0)
        (void)close(d->dir_fd);
    digest_free(d->seal);
    label_clear(&d->label);
    free(d);
}

static int open_draft(struct checkpoint_draft *d, struct err *e)
{
    static const unsigned char room[LABEL_BYTES];
    d->seal = new_seal(d->s, e);
    if (!d->seal)
        return -1;
    d->dir_fd = store_session_folder(d->s, d->label.session, FOLDER, e);
    if (d->dir_fd < 0)
        return -1;
    (void)unlinkat(d->dir_fd, INCOMING, 0); /* of a crash */
    d->fd = openat(d->dir_fd, INCOMING, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (d->fd < 0 || write_all(d->fd, room, sizeof room) < 0)
        return disk_failed(errno, e);
    return 0;
}

int store_checkpoint_begin(struct checkpoint_draft **out, struct store *s, const char *session, int cell,
                           const char *image, struct err *e)
{
    struct checkpoint_draft *d = xcalloc(1, sizeof *d);
    *d = (struct checkpoint_draft){ .s = s, .dir_fd = -1, .fd = -1 };
    (void)snprintf(d->label.session, sizeof d->label.session, "%s", session);
    d->label.sandbook = xstrdup(SANDBOOK_VERSION);
    d->label.image = xstrdup(image);
    d->label.cell = cell;
    d->label.created_ms = time_unix_ms();
    if (open_draft(d, e) < 0) {
        store_checkpoint_drop(d);
        return err_wrap(e, "checkpoint");
    }
    *out = d;
    return 0;
}

int store_checkpoint_add(struct checkpoint_draft *d, const void *data, size_t n, int64_t max_bytes, struct err *e)
{
    if (d->label.bytes + (int64_t)n > max_bytes)
        return err_set(e, ERR_DATA, "the checkpoint is larger than %lld MB", (long long)(max_bytes >> 20));
    if (write_all(d->fd, data, n) < 0)
        return disk_failed(errno, e);
    digest_add(d->seal, data, n);
    d->label.bytes += (int64_t)n;
    if (d->label.bytes - d->flushed >= FLUSH_BYTES) {
        (void)sync_file_range(d->fd, d->flushed, d->label.bytes - d->flushed, SYNC_FILE_RANGE_WRITE);
        d->flushed = d->label.bytes;
    }
    return 0;
}

static int seal_draft(struct checkpoint_draft *d, struct err *e)
{
    unsigned char block[LABEL_BYTES], end[DIGEST_BYTES];
    if (label_write(block, &d->label, e) < 0)
        return -1;
    digest_add(d->seal, block, sizeof block);
    digest_end(d->seal, end);
    if (write_all(d->fd, end, sizeof end) < 0 || pwrite(d->fd, block, sizeof block, 0) != (ssize_t)sizeof block ||
        fsync(d->fd) < 0)
        return disk_failed(errno, e);
    return 0;
}

static int move_in(const struct checkpoint_draft *d, int64_t id, struct err *e)
{
    char name[24];
    (void)snprintf(name, sizeof name, "%lld", (long long)id);
    if (renameat(d->dir_fd, INCOMING, d->dir_fd, name) < 0 || fsync(d->dir_fd) < 0)
        return disk_failed(errno, e);
    return 0;
}

static int commit(struct checkpoint_draft *d, const char *report, struct err *e)
{
    AUTO(db_tx_end) struct db_tx tx = { 0 };
    const char *session = d->label.session;
    if (db_tx_begin(&tx, d->s->db, e) < 0 ||
        db_exec(d->s->db, e, "INSERT INTO checkpoints(session, cell, created_ms, bytes, report) VALUES(?,?,?,?,?)",
                "siiis", session, (int64_t)d->label.cell, d->label.created_ms, d->label.bytes, report) < 0)
        return -1;
    const int64_t id = db_last_id(d->s->db);
    if (move_in(d, id, e) < 0 || db_exec(d->s->db, e,
                                         "DELETE FROM checkpoints WHERE session=? AND id NOT IN"
                                         " (SELECT id FROM checkpoints WHERE session=? ORDER BY id DESC LIMIT ?)",
                                         "ssi", session, session, (int64_t)KEEP) < 0)
        return -1;
    return db_tx_commit(&tx, e);
}

/* ---- files without a row ---- */

static int get_id(void *ud, const struct db_row *r)
{
    struct rows *rows = ud;
    *(int64_t *)rows_add(rows) = db_int(r, 0);
    return 0;
}

static bool has_row(const struct rows *rows, const char *name)
{
    const int64_t *ids = rows->at;
    for (size_t i = 0; i < rows->n; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "%lld", (long long)ids[i]);
        if (strcmp(id, name) == 0)
            return true;
    }
    return false;
}

/* Older ones, those that were given up, and what a crash left. */
static void sweep(struct store *s, const char *session, int dir_fd)
{
    struct err ignored = { 0 };
    struct rows rows = { .size = sizeof(int64_t) };
    const int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0)
        (void)close(fd);
    if (d && db_each(s->db, &ignored, get_id, &rows, "SELECT id FROM checkpoints WHERE session=?", "s", session) == 0)
        for (const struct dirent *x = readdir(d); x; x = readdir(d)) /* NOLINT(concurrency-mt-unsafe): one thread */
            if (x->d_name[0] != '.' && !has_row(&rows, x->d_name))
                (void)unlinkat(dir_fd, x->d_name, 0);
    free(rows.at);
    if (d)
        (void)closedir(d);
}

int store_checkpoint_finish(struct checkpoint_draft *take_d, const struct json *report, struct err *e)
{
    struct checkpoint_draft *d = take_d;
    AUTO(str_clear) struct str text = STR_INIT(REPORT_MAX);
    json_print(&text, report);
    d->label.python = xstrdup(json_str_or(report, "python", ""));
    d->label.kept = json_int_or(report, "kept", 0);
    const int rc = seal_draft(d, e) < 0 || commit(d, text.overflow ? "{}" : str_peek(&text), e) < 0 ? -1 : 0;
    if (rc == 0) {
        (void)close(d->fd);
        d->fd = -1;
        sweep(d->s, d->label.session, d->dir_fd);
    }
    store_checkpoint_drop(d);
    return rc < 0 ? err_wrap(e, "checkpoint") : 0;
}

/* ---- reading back ---- */

struct checkpoint_source {
    struct label label;
    struct digest *seal; /* NULL: it was found right */
    int fd;
    int64_t at; /* bytes of the state that were looked at */
    char *report;
};

void store_checkpoint_close(struct checkpoint_source *c)
{
    if (!c)
        return;
    if (c->fd >= 0)
        (void)close(c->fd);
    digest_free(c->seal);
    label_clear(&c->label);
    free(c->report);
    free(c);
}

static int read_label(struct checkpoint_source *c, struct err *e)
{
    unsigned char block[LABEL_BYTES];
    struct stat st;
    const ssize_t n = pread(c->fd, block, sizeof block, 0);
    if (n < 0 || fstat(c->fd, &st) < 0)
        return disk_failed(errno, e);
    if (label_read(&c->label, block, (size_t)n, e) < 0)
        return -1;
    if (!S_ISREG(st.st_mode) || st.st_size != LABEL_BYTES + c->label.bytes + DIGEST_BYTES)
        return err_set(e, ERR_DATA, "it is not as long as it was");
    return 0;
}

static int judge(const struct checkpoint_source *c, const char *session, const char *image, struct err *e)
{
    if (strcmp(c->label.session, session) != 0)
        return err_set(e, ERR_DATA, "it belongs to another session");
    if (strcmp(c->label.image, image) != 0)
        return err_set(e, ERR_DATA, "it was made in another box image (%.60s, now %.60s), by version %.20s",
                       c->label.image, image, c->label.sandbook);
    return 0;
}

int store_checkpoint_open(struct checkpoint_source **out, struct store *s, const char *session, int64_t id,
                          const char *image, struct err *e)
{
    char name[24];
    autoclose int dir_fd = store_session_folder(s, session, FOLDER, e);
    if (dir_fd < 0)
        return -1;
    struct checkpoint_source *c = xcalloc(1, sizeof *c);
    (void)snprintf(name, sizeof name, "%lld", (long long)id);
    c->fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const int rc = c->fd < 0 ? err_sys(e, ERR_STORE, errno, "cannot open it") : read_label(c, e);
    if (rc == 0 && judge(c, session, image, e) == 0 && (c->seal = new_seal(s, e)) != NULL) {
        *out = c;
        return 0;
    }
    store_checkpoint_close(c);
    return err_wrap(e, "checkpoint %lld", (long long)id);
}

/* The seal covers state and label; the label is read once more, since it counts as it is on disk. */
static int check_seal(struct checkpoint_source *c, struct err *e)
{
    unsigned char block[LABEL_BYTES], there[DIGEST_BYTES], right[DIGEST_BYTES];
    if (pread(c->fd, block, sizeof block, 0) != (ssize_t)sizeof block ||
        pread(c->fd, there, sizeof there, LABEL_BYTES + c->label.bytes) != (ssize_t)sizeof there)
        return err_set(e, ERR_DATA, "checkpoint: it is not as long as it was");
    digest_add(c->seal, block, sizeof block);
    digest_end(c->seal, right);
    digest_free(c->seal);
    c->seal = NULL;
    if (!digest_equal(there, right, sizeof right)) {
        c->label.bytes = -1;
        return err_set(e, ERR_DATA, "checkpoint: it is not what was written: somebody or something changed it");
    }
    return 0;
}

int store_checkpoint_verify(struct checkpoint_source *c, struct err *e)
{
    autofree unsigned char *buf = xcalloc(1, READ_BYTES);
    const int64_t end = c->at + VERIFY_BYTES < c->label.bytes ? c->at + VERIFY_BYTES : c->label.bytes;
    while (c->at < end) {
        const int64_t want = end - c->at < READ_BYTES ? end - c->at : READ_BYTES;
        const ssize_t n = pread(c->fd, buf, (size_t)want, LABEL_BYTES + c->at);
        if (n <= 0)
            return err_set(e, ERR_DATA, "checkpoint: it can't be read to its end");
        digest_add(c->seal, buf, (size_t)n);
        c->at += n;
    }
    return c->at < c->label.bytes ? 1 : check_seal(c, e);
}

struct checkpoint_state store_checkpoint_state(const struct checkpoint_source *c)
{
    if (c->seal || c->label.bytes < 0)
        abort(); /* not found right: nobody may have it */
    return (
        struct checkpoint_state){ .fd = c->fd, .from = LABEL_BYTES, .bytes = c->label.bytes, .cell = c->label.cell };
}

/* ---- the table ---- */

void checkpoint_row_clear(struct checkpoint_row *r)
{
    free(r->report);
    *r = (struct checkpoint_row){ 0 };
}

static int get_row(void *ud, const struct db_row *r)
{
    struct checkpoint_row *c = ud;
    checkpoint_row_clear(c);
    *c = (struct checkpoint_row){ .id = db_int(r, 0),
                                  .cell = (int)db_int(r, 1),
                                  .created_ms = db_int(r, 2),
                                  .bytes = db_int(r, 3),
                                  .report = db_dup(r, 4) };
    return 0;
}

int store_checkpoint_newest(struct store *s, const char *session, int64_t before, struct checkpoint_row *out,
                            struct err *e)
{
    *out = (struct checkpoint_row){ 0 };
    return db_each(s->db, e, get_row, out,
                   "SELECT id, cell, created_ms, bytes, report FROM checkpoints WHERE session=? AND (?=0 OR id<?)"
                   " ORDER BY id DESC LIMIT 1",
                   "sii", session, before, before);
}

int store_checkpoints_forget(struct store *s, const char *session, struct err *e)
{
    if (db_exec(s->db, e, "DELETE FROM checkpoints WHERE session=?", "s", session) < 0)
        return err_wrap(e, "checkpoints");
    autoclose int dir_fd = store_session_folder(s, session, FOLDER, e);
    if (dir_fd < 0)
        return -1;
    sweep(s, session, dir_fd);
    return 0;
}

/* ---- the journal ---- */

void journal_cell_clear(struct journal_cell *c)
{
    free(c->code);
    *c = (struct journal_cell){ 0 };
}

static int get_cell(void *ud, const struct db_row *r)
{
    struct journal_cell *c = rows_add(ud);
    *c = (struct journal_cell){ .number = (int)db_int(r, 0), .code = db_dup(r, 1), .worked = db_int(r, 2) != 0 };
    return 0;
}

int store_journal(struct store *s, const char *session, int at, struct journal_cell **out, size_t *n, struct err *e)
{
    struct rows rows = { .size = sizeof(struct journal_cell) };
    const int rc = db_each(s->db, e, get_cell, &rows,
                           "WITH RECURSIVE way(number) AS (SELECT ? UNION"
                           " SELECT COALESCE(c.base, c.number-1) FROM cells c JOIN way USING(number) WHERE c.session=?)"
                           " SELECT c.number, c.code, json_extract(c.json, '$.status')='ok'"
                           " FROM cells c JOIN way USING(number) WHERE c.session=? ORDER BY c.number",
                           "iss", (int64_t)at, session, session);
    *out = rows.at;
    *n = rows.n;
    return rc < 0 ? err_wrap(e, "journal") : 0;
}
