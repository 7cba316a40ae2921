/* lines.c - which files a session has: on the line that it is on, or after a cell of the past.
 *
 * Cells are numbered through over all lines, so a cell's number says on which line it ran: the one with the largest `first` that
 * is not behind it. A line's history is its own cells, then those of its parent up to the one that it begins after, and so on:
 * a list of spans. A version that a cell made is there when that cell lies in one of them. */
#include "store_private.h"

struct line {
    int64_t line, parent, after, first;
};

struct span {
    int64_t from, to;
};

static int get_line(void *ud, const struct db_row *r)
{
    struct line *l = rows_add(ud);
    *l = (struct line){ db_int(r, 0), db_int(r, 1), db_int(r, 2), db_int(r, 3) };
    return 0;
}

/* Oldest first; the first line of all has no row. */
static int load_lines(struct store *s, const char *session, struct rows *lines, struct err *e)
{
    *lines = (struct rows){ .size = sizeof(struct line) };
    return db_each(s->db, e, get_line, lines,
                   "SELECT line, parent, after, first FROM lines WHERE session=? ORDER BY line", "s", session);
}

static const struct line *line_of(const struct rows *lines, int64_t cell)
{
    const struct line *all = lines->at, *found = NULL;
    for (size_t i = 0; i < lines->n; i++)
        if (all[i].first <= cell)
            found = &all[i];
    return found;
}

static const struct line *line_by_number(const struct rows *lines, int64_t number)
{
    const struct line *all = lines->at;
    for (size_t i = 0; i < lines->n; i++)
        if (all[i].line == number)
            return &all[i];
    return NULL;
}

static void add_span(struct rows *spans, int64_t from, int64_t to)
{
    struct span *x = rows_add(spans);
    *x = (struct span){ from, to };
}

/* The history that ends with cell `to` on that line (NULL: the first of all). A parent is always older than its line. */
static void history(struct rows *spans, const struct rows *lines, const struct line *l, int64_t to)
{
    *spans = (struct rows){ .size = sizeof(struct span) };
    while (l) {
        add_span(spans, l->first, to);
        to = l->after;
        const struct line *parent = line_by_number(lines, l->parent);
        l = parent && parent->line < l->line ? parent : NULL;
    }
    add_span(spans, 1, to);
}

static bool is_in(const struct rows *spans, int64_t cell)
{
    const struct span *all = spans->at;
    for (size_t i = 0; i < spans->n; i++)
        if (cell >= all[i].from && cell <= all[i].to)
            return true;
    return false;
}

/* ---- rows ---- */

struct listing {
    struct rows rows, spans;
    const struct store *store;
    const char *session;
};

static int get_file(void *ud, const struct db_row *r)
{
    struct listing *l = ud;
    const int64_t cell = db_int(r, 6);
    if (cell > 0 && !is_in(&l->spans, cell))
        return 0;
    struct file_row *f = rows_add(&l->rows);
    *f = (struct file_row){ .id = db_int(r, 0),
                            .name = db_dup(r, 1),
                            .profile = db_dup(r, 2),
                            .bytes = db_int(r, 3),
                            .version = db_int(r, 4),
                            .seq = db_int(r, 5),
                            .cell = (int)cell,
                            .gone = db_int(r, 7) != 0,
                            .message = db_dup(r, 8) };
    const char *slash = strrchr(f->name, '/');
    f->path = xasprintf("%s/sessions/%s/files/%lld/%s", l->store->dir, l->session, (long long)f->id,
                        slash ? slash + 1 : f->name);
    return 0;
}

static int load_files(struct listing *l, struct file_row **out, size_t *n, struct err *e)
{
    int rc = db_each(l->store->db, e, get_file, l,
                     "SELECT id, name, profile, bytes, version, seq, cell, gone, message FROM files WHERE session=?"
                     " ORDER BY id",
                     "s", l->session);
    free(l->spans.at);
    *out = l->rows.at;
    *n = l->rows.n;
    return rc;
}

int store_files(struct store *s, const char *session, struct file_row **out, size_t *n, struct err *e)
{
    struct listing l = { .rows = { .size = sizeof(struct file_row) }, .store = s, .session = session };
    struct rows lines;
    if (load_lines(s, session, &lines, e) < 0)
        return -1;
    history(&l.spans, &lines, line_of(&lines, INT64_MAX), INT64_MAX);
    free(lines.at);
    return load_files(&l, out, n, e);
}

int store_files_after(struct store *s, const char *session, int cell, struct file_row **out, size_t *n, struct err *e)
{
    struct listing l = { .rows = { .size = sizeof(struct file_row) }, .store = s, .session = session };
    struct rows lines;
    if (load_lines(s, session, &lines, e) < 0)
        return -1;
    history(&l.spans, &lines, line_of(&lines, cell), cell);
    free(lines.at);
    return load_files(&l, out, n, e);
}

int store_branch(struct store *s, const char *session, int cell, int next, struct err *e)
{
    struct rows lines;
    if (load_lines(s, session, &lines, e) < 0)
        return -1;
    const struct line *all = lines.at, *parent = line_of(&lines, cell);
    const int64_t number = lines.n ? all[lines.n - 1].line + 1 : 1, parent_number = parent ? parent->line : 0;
    free(lines.at);
    return db_exec(s->db, e, "INSERT INTO lines(session, line, parent, after, first) VALUES(?,?,?,?,?)", "siiii",
                   session, number, parent_number, (int64_t)cell, (int64_t)next);
}
