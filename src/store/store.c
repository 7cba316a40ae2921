/* The data folder and the single-instance lock; tables are in the files beside this one. */
#include "store.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include "paths.h"
#include "schema.h"
#include "store_private.h"
#include "str.h"

/* A place that can never be used is the operator's to mend; a full or broken disk may be well again. */
static bool is_no_place(int sys)
{
    static const int codes[] = { EACCES, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EPERM, EROFS };
    for (size_t i = 0; i < countof(codes); i++)
        if (codes[i] == sys)
            return true;
    return false;
}

static int no_folder(const char *path, int sys, struct err *e)
{
    return err_sys(e, is_no_place(sys) ? ERR_CONFIG : ERR_STORE, sys, "cannot use %s", path);
}

int store_folder(int parent, const char *name, struct err *e)
{
    if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
        return err_sys(e, ERR_STORE, errno, "cannot make folder %s in data_dir", name);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, ERR_STORE, errno, "cannot open folder %s in data_dir", name);
    return fd;
}

int store_session_folder(const struct store *s, const char *id, const char *leaf, struct err *e)
{
    autoclose int sessions = store_folder(s->dir_fd, "sessions", e);
    if (sessions < 0)
        return -1;
    autoclose int session = store_folder(sessions, id, e);
    if (session < 0)
        return -1;
    return store_folder(session, leaf, e);
}

/* The lock file holds the owner's pid so that the refusal can name it. */
static int take_lock(struct store *s, struct err *e)
{
    s->lock_fd = openat(s->dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->lock_fd < 0)
        return no_folder(s->dir, errno, e);
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        char pid[16] = "?";
        ssize_t n = pread(s->lock_fd, pid, sizeof pid - 1, 0);
        pid[n > 0 ? strspn(pid, "0123456789") : 1] = '\0';
        return err_set(e, ERR_CONFIG, "another sandbook (process %s) uses %s: stop it, or set another service.data_dir",
                       pid, s->dir);
    }
    autofree char *text = xasprintf("%d\n", (int)getpid());
    if (ftruncate(s->lock_fd, 0) < 0 || pwrite(s->lock_fd, text, strlen(text), 0) < 0)
        return err_sys(e, ERR_STORE, errno, "cannot write %s/lock", s->dir);
    return 0;
}

static int open_all(struct store *s, const char *data_dir, struct err *e)
{
    if (path_make_folders(data_dir, 0700, NULL) < 0) /* private to the service's user */
        return no_folder(data_dir, errno, e);
    char real[PATH_MAX];
    if (!realpath(data_dir, real))
        return no_folder(data_dir, errno, e);
    s->dir = xstrdup(real);
    s->dir_fd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir_fd < 0)
        return no_folder(real, errno, e);
    if (take_lock(s, e) < 0)
        return -1;
    autofree char *path = xasprintf("%s/sandbook.db", s->dir);
    if (db_open(&s->db, path, e) < 0)
        return -1;
    if (db_migrate(s->db, schema_steps, (int)countof(schema_steps), e) < 0)
        return -1;
    store_unlay_all(s);
    return 0;
}

int store_open(struct store **out, const char *data_dir, struct err *e)
{
    struct store *s = xcalloc(1, sizeof *s);
    s->dir_fd = s->lock_fd = -1;
    if (open_all(s, data_dir, e) < 0) {
        store_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

static int open_beside(struct store *s, const char *data_dir, struct err *e)
{
    char real[PATH_MAX];
    autofree char *path = xasprintf("%s/sandbook.db", data_dir);
    if (!realpath(data_dir, real) || access(path, R_OK) < 0)
        return err_sys(e, ERR_CONFIG, errno, "there is no store in %s", data_dir);
    s->dir = xstrdup(real);
    s->dir_fd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir_fd < 0)
        return no_folder(real, errno, e);
    return db_open_beside(&s->db, path, (int)countof(schema_steps), e);
}

int store_open_beside(struct store **out, const char *data_dir, struct err *e)
{
    struct store *s = xcalloc(1, sizeof *s);
    s->dir_fd = s->lock_fd = -1;
    if (open_beside(s, data_dir, e) < 0) {
        store_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

void store_deliver_to(struct store *s, const char *dir)
{
    s->out = xstrdup(dir);
}

void store_close(struct store *s)
{
    if (!s)
        return;
    db_close(s->db);
    if (s->lock_fd >= 0)
        (void)close(s->lock_fd);
    if (s->dir_fd >= 0)
        (void)close(s->dir_fd);
    free(s->out);
    free(s->dir);
    free(s);
}

void *rows_add(struct rows *r)
{
    r->at = xgrow(r->at, &r->cap, r->n + 1, r->size);
    return (char *)r->at + r->size * r->n++;
}
