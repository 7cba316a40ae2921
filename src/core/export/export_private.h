/* export_private.h - the parts of an export: export.c gathers, export_notebook.c writes it down. */
#ifndef EXPORT_PRIVATE_H
#define EXPORT_PRIVATE_H
#include "export.h"
#include "json.h"

struct export_cell {
    int number, base;
    int64_t turn;
    struct json *facts; /* cell_to_json with code */
    bool runs;          /* its state was carried on */
    bool anew;          /* it began with a new interpreter, and is not the first */
};
struct export_file {
    const char *name; /* in the working folder */
    char *place;      /* below the export: data/... */
    const char *path; /* on the host */
    int64_t seq;      /* it came with, or before, the turn of that inbox item */
    bool archive;
};
struct export_book {
    struct session_row session;
    struct turn_row *turns;
    struct export_cell *cells;
    struct file_row *rows;
    struct export_file *files; /* what people sent, oldest first */
    size_t turn_n, cell_n, row_n, file_n;
};

/* NULL-terminated text of the three documents; the caller frees. */
char *export_ipynb(const struct export_book *b, struct err *e);
char *export_py(const struct export_book *b, struct err *e);
char *export_readme(const struct export_book *b, struct err *e);
#endif
