#include "cells_files.h"
#include <string.h>
#include "log.h"

void cells_keep(struct store *s, const char *session, struct cell *c)
{
    struct err e = { 0 };
    struct file_version v = { 0 };
    for (size_t i = 0; i < c->gone_n; i++)
        if (store_file_gone(s, session, c->gone[i], c->number, &e) < 0)
            log_warn("file_not_gone", KV_I("cell", c->number), KV_E(&e));
    for (size_t i = 0; i < c->files.n; i++) {
        const struct artifact *a = &c->files.at[i];
        const struct file_made made = { .name = a->box_name ? a->box_name : a->name,
                                        .path = a->path,
                                        .cell = c->number };
        if (store_file_made(s, session, &made, &v, &e) == 0)
            continue;
        autofree char *note = xasprintf(CELL_NOT_KEPT "%s: branches will not have it: %s", a->name, e.msg);
        cell_add_note(c, note);
    }
}

static bool is_newest(const struct file_row *rows, size_t n, size_t i)
{
    for (size_t k = i + 1; k < n; k++)
        if (strcmp(rows[k].name, rows[i].name) == 0)
            return false;
    return true;
}

int cells_lay(struct store *s, const char *session, int cell, int *fd, struct err *e)
{
    struct file_row *rows = NULL;
    size_t n = 0, laid = 0;
    if (store_files_after(s, session, cell, &rows, &n, e) < 0)
        return -1;
    autofree struct file_link *links = xcalloc(n + 1, sizeof *links);
    for (size_t i = 0; i < n; i++)
        if (!rows[i].gone && is_newest(rows, n, i))
            links[laid++] = (struct file_link){ .path = rows[i].path, .name = rows[i].name };
    int r = store_files_lay(s, session, links, laid, false, fd, e);
    for (size_t i = 0; i < n; i++)
        file_row_clear(&rows[i]);
    free(rows);
    return r;
}
