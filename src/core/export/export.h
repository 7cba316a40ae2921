/* export.h - a conversation as a notebook that anybody can run: what was asked, the programs with what came of them, the files that
 * people sent. Floor 4; reads the store, writes to a sink.
 *
 *   notebook.ipynb   every turn: question, cells with outputs and charts, answer
 *   notebook.py      the same programs for a plain interpreter
 *   data/            what people sent, each version in a folder of its own: data/<name>, data/v2/<name>
 *   out/             what the cells made and handed over, as it is now
 *   README.md        how to run it and what it needs
 *
 * Programs run where their state was carried on; those of other branches, and those that were killed or undone, are shown but do not
 * run, so that running the notebook from top to bottom gives the numbers again. Names are checked: nothing leads out of the
 * folder. */
#ifndef EXPORT_H
#define EXPORT_H
#include "store.h"

/* Where the parts go; each returns 0, or -1 with the error. name: relative, checked, "/" between folders. */
struct export_sink {
    int (*text)(void *ud, const char *name, const char *data, size_t n, struct err *e);
    int (*copy)(void *ud, const char *name, const char *path, struct err *e);
    void *ud;
};
struct export_facts {
    size_t turns, cells, files;
};
/* ERR_DATA: no such session, or nothing was said in it. facts may be NULL. */
must_check int export_session(struct store *s, const char *session, const struct export_sink *to,
                              struct export_facts *facts, struct err *e);

/* Into a new or empty folder. */
must_check int export_to_folder(struct store *s, const char *session, const char *dir, struct export_facts *facts,
                                struct err *e);
/* Into a ZIP archive (stored, not compressed) that must not be there yet; ERR_LIMIT past max_bytes. Whole or not at all. */
must_check int export_to_zip(struct store *s, const char *session, const char *path, int64_t max_bytes,
                             struct export_facts *facts, struct err *e);
#endif
