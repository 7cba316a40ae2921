/* export.c - see export.h: what belongs to a session's export, gathered from the store. */
#include <inttypes.h>
#include <string.h>
#include "export_private.h"

enum { TURNS_MAX = 100000, CELL_JSON_MAX = 32 << 20 };

/* ---- cells ---- */

static struct export_cell *cell_of(const struct export_book *b, int number)
{
    for (size_t i = 0; i < b->cell_n; i++)
        if (b->cells[i].number == number)
            return &b->cells[i];
    return NULL;
}

/* Later cells could go on from it: it was not killed, or it was the first of the interpreter that came after a loss. */
static bool went_on(const struct json *facts)
{
    const char *state = json_str_or(facts, "state", "kept"), *status = json_str_or(facts, "status", "ok");
    if (strcmp(state, "lost") == 0)
        return strcmp(status, "ok") == 0 || strcmp(status, "error") == 0;
    return strcmp(state, "kept") == 0;
}

/* From a state back to its interpreter's beginning; then the newest before that, which belongs to an earlier interpreter. */
static void mark_running(struct export_book *b)
{
    size_t at = b->cell_n;
    while (at > 0) {
        struct export_cell *c = &b->cells[at - 1], *first = c;
        if (!went_on(c->facts)) {
            at--;
            continue;
        }
        for (; c && c <= first; c = c->base > 0 && c->base < c->number ? cell_of(b, c->base) : NULL) {
            c->runs = true;
            first = c;
        }
        at = (size_t)(first - b->cells);
        first->anew = at > 0;
    }
}

static int load_cells(struct export_book *b, struct store *s, struct err *e)
{
    struct cell_row *rows = NULL;
    size_t n = 0;
    int r = store_cell_rows(s, b->session.id, &rows, &n, e);
    b->cells = xcalloc(n + 1, sizeof(*b->cells));
    for (size_t i = 0; i < n; i++) {
        struct export_cell *c = &b->cells[b->cell_n];
        *c = (struct export_cell){ .number = rows[i].number, .turn = rows[i].turn };
        c->base = rows[i].base >= 0 ? rows[i].base : rows[i].number - 1;
        if (r == 0 && json_parse(&c->facts, rows[i].json, strlen(rows[i].json), CELL_JSON_MAX, e) == 0)
            b->cell_n++;
        cell_row_clear(&rows[i]);
    }
    free(rows);
    mark_running(b);
    return r;
}

/* ---- files ---- */

/* Older versions are told apart by their folder; the first needs none. */
static void load_files(struct export_book *b)
{
    b->files = xcalloc(b->row_n + 1, sizeof(*b->files));
    for (size_t i = 0; i < b->row_n; i++) {
        const struct file_row *f = &b->rows[i];
        if (f->cell > 0 || f->gone)
            continue;
        struct export_file *x = &b->files[b->file_n++];
        *x = (struct export_file){ .name = f->name, .path = f->path, .seq = f->seq };
        x->place =
            f->version == 1 ? xasprintf("data/%s", f->name) : xasprintf("data/v%" PRId64 "/%s", f->version, f->name);
        x->archive = f->profile && strstr(f->profile, "\"kind\":\"archive\"");
    }
}

static void book_clear(struct export_book *b)
{
    for (size_t i = 0; i < b->turn_n; i++)
        turn_row_clear(&b->turns[i]);
    for (size_t i = 0; i < b->cell_n; i++)
        json_free(b->cells[i].facts);
    for (size_t i = 0; i < b->file_n; i++)
        free(b->files[i].place);
    for (size_t i = 0; i < b->row_n; i++)
        file_row_clear(&b->rows[i]);
    free(b->turns);
    free(b->cells);
    free(b->files);
    free(b->rows);
    session_row_clear(&b->session);
}

static int load(struct export_book *b, struct store *s, const char *session, struct err *e)
{
    if (store_session_find(s, session, &b->session, e) < 0 ||
        store_turns(s, b->session.id, TURNS_MAX, &b->turns, &b->turn_n, e) < 0 || load_cells(b, s, e) < 0 ||
        store_files(s, b->session.id, &b->rows, &b->row_n, e) < 0)
        return -1;
    load_files(b);
    if (b->turn_n == 0 && b->cell_n == 0)
        return err_set(e, ERR_DATA, "nothing was asked in session %s yet", session);
    return 0;
}

/* ---- out ---- */

static int put_text(const struct export_sink *to, const char *name, char *take_text, struct err *e)
{
    autofree char *text = take_text;
    return text ? to->text(to->ud, name, text, strlen(text), e) : -1;
}

/* What cells handed over: the newest of each name. One that cannot be read any more is left out. */
static int put_made(const struct export_book *b, const struct export_sink *to, struct err *e)
{
    for (size_t i = 0; i < b->row_n; i++) {
        const struct file_row *f = &b->rows[i];
        bool newest = f->cell > 0 && !f->gone && !artifact_is_hidden(f->name);
        for (size_t k = i + 1; k < b->row_n; k++)
            newest = newest && strcmp(b->rows[k].name, f->name) != 0;
        if (!newest || access(f->path, R_OK) < 0)
            continue;
        autofree char *name = xasprintf("out/%s", strncmp(f->name, "out/", 4) == 0 ? f->name + 4 : f->name);
        if (to->copy(to->ud, name, f->path, e) < 0)
            return -1;
    }
    return 0;
}

static int put_all(const struct export_book *b, const struct export_sink *to, struct err *e)
{
    if (put_text(to, "notebook.ipynb", export_ipynb(b, e), e) < 0 ||
        put_text(to, "notebook.py", export_py(b, e), e) < 0 || put_text(to, "README.md", export_readme(b, e), e) < 0)
        return -1;
    for (size_t i = 0; i < b->file_n; i++)
        if (to->copy(to->ud, b->files[i].place, b->files[i].path, e) < 0)
            return -1;
    return put_made(b, to, e);
}

int export_session(struct store *s, const char *session, const struct export_sink *to, struct export_facts *facts,
                   struct err *e)
{
    struct export_book b = { 0 };
    int r = load(&b, s, session, e);
    if (r == 0)
        r = put_all(&b, to, e);
    if (r == 0 && facts)
        *facts = (struct export_facts){ b.turn_n, b.cell_n, b.file_n };
    book_clear(&b);
    return r;
}
