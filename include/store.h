/* store.h - everything durable: SQLite in data_dir/sandbook.db (WAL), big bytes as files beside it. Floor 2; src/store/.
 *
 * One writer. A call is one transaction and durable when it returns 0, unless it says otherwise. Ids that the store makes are
 * 16 hex digits. Strings handed out are owned by the struct that holds them (x_clear). Every failure is ERR_STORE;
 * "no space left" is named as such.
 *
 *   data_dir/sandbook.db             inbox outbox sessions turns cells files checkpoints usage
 *   data_dir/sessions/<id>/files/    versions of files, one folder a file id: <file id>/<name>
 *   data_dir/sessions/<id>/box/      links to them, as boxes begin with them; made anew for each
 *   data_dir/sessions/<id>/out/      what cells made
 *   data_dir/sessions/<id>/checkpoints/   variables of sessions, sealed with data_dir/checkpoint.key
 */
#ifndef STORE_H
#define STORE_H
#include "cell.h"

struct store;

/* Locks data_dir against a second instance (ERR_CONFIG says who holds it), creates or migrates the database. */
must_check int store_open(struct store **out, const char *data_dir, struct err *e);
/* Beside an instance that may run: for reading only, locks and migrates nothing. ERR_CONFIG: there is no store, or one of another
 * version. */
must_check int store_open_beside(struct store **out, const char *data_dir, struct err *e);
void store_close(struct store *s); /* NULL is fine */
/* What cells make goes to this folder, which exists, instead of data_dir: for a store that lives as long as one command. */
void store_deliver_to(struct store *s, const char *dir);

/* Several calls as one: all durable together, or none. Batches nest; what is left open when the variable leaves scope is undone:
 *   AUTO(store_batch_end) struct store_batch b = { 0 };  if (store_batch_begin(&b, s, e) < 0) ...  return store_batch_commit(&b, e); */
struct store_batch {
    struct store *store; /* NULL: none open */
    bool outer, lazy;
};
must_check int store_batch_begin(struct store_batch *b, struct store *s, struct err *e);
/* The same, but its commit waits for no disk: whole or not at all, and durable with whatever is durable next. A kill loses nothing of
 * it; a power cut may undo it, together with all that came behind it. For what is done again when that happens. */
must_check int store_batch_begin_lazy(struct store_batch *b, struct store *s, struct err *e);
must_check int store_batch_commit(struct store_batch *b, struct err *e);
void store_batch_end(struct store_batch *b);

/* ---- inbox: what people said, before anything else happens ---- */
enum inbox_state { INBOX_NEW, INBOX_QUEUED, INBOX_RUNNING, INBOX_DONE, INBOX_DROPPED };
struct inbox_item {
    int64_t seq;                                                                /* order of arrival */
    char *platform, *event_id, *room, *thread, *sender, *name, *text, *session; /* thread, session may be NULL */
    char *about; /* the message that this one is a new wording of; NULL: none */
    int64_t sent_ms;
    enum inbox_state state;
};
void inbox_item_clear(struct inbox_item *i);
/* *fresh is false when (platform, event_id) is there already: then nothing is written and *seq is the old one. */
must_check int store_inbox_add(struct store *s, const struct inbox_item *i, int64_t *seq, bool *fresh, struct err *e);
must_check int store_inbox_set(struct store *s, int64_t seq, enum inbox_state state, struct err *e);
/* Items not DONE or DROPPED, oldest first; to be resumed at start. The caller frees each and the array. */
must_check int store_inbox_open(struct store *s, struct inbox_item **out, size_t *n, struct err *e);

/* ---- sessions ---- */
struct session_row {
    char id[17];
    char *platform, *room, *thread; /* thread NULL: the room as a whole */
    int64_t created_ms, used_ms;
    int cells;   /* number of the last cell */
    int base;    /* the cell after which its variables are; 0: it has none */
    char *model; /* chosen for it: NAME of a [model NAME] section; NULL: none was */
};
void session_row_clear(struct session_row *r);
/* The one of (platform, room, thread), made when absent. Also makes its folders. */
must_check int store_session_get(struct store *s, const char *platform, const char *room, const char *thread,
                                 struct session_row *out, bool *made, struct err *e);
/* ERR_DATA: none. */
must_check int store_session_find(struct store *s, const char *id, struct session_row *out, struct err *e);
/* The one whose question that message is: it waits, runs, or was answered. out->platform NULL: there is none. */
must_check int store_session_asked(struct store *s, const char *platform, const char *event_id, struct session_row *out,
                                   struct err *e);
/* The one of room `from` as a whole is that of room `to` from now on. *moved false: there is none, or `to` has one of its own. */
must_check int store_session_move(struct store *s, const char *platform, const char *from, const char *to, bool *moved,
                                  struct err *e);
/* model NULL: the default. */
must_check int store_session_model(struct store *s, const char *id, const char *model, struct err *e);
/* Its variables are those after that cell now. */
must_check int store_session_base(struct store *s, const char *id, int cell, struct err *e);
/* data_dir/sessions/<id>/out, open as O_PATH|O_DIRECTORY (caller closes) and as text (caller frees). */
must_check int store_session_out(struct store *s, const char *id, int *fd, char **path, struct err *e);

/* ---- forgetting ----
 * Questions, answers, code, outputs, notes, files with their versions, checkpoints and what is still to be posted: rows first, then
 * bytes; the database writes zeros over what it deletes, and its journal is emptied. No box of the session may live. Twice is as good
 * as once. What stays: the conversation's place, keys of its messages (against doubles), how many tokens whom it cost, and what
 * people sent behind `until`, an inbox item. */
must_check int store_forget(struct store *s, const char *session, int64_t until, struct err *e);
/* The same, and nothing stays. */
must_check int store_session_remove(struct store *s, const char *session, struct err *e);
/* Conversations without a word since then, the oldest first, at most `limit`; the caller clears each and frees the array. */
must_check int store_sessions_unused(struct store *s, int64_t before_ms, size_t limit, struct session_row **out,
                                     size_t *n, struct err *e);
must_check int store_usage_forget(struct store *s, int64_t before_ms, struct err *e);

/* ---- files: what people sent and what cells made ----
 * A version is never changed. What a cell writes over, or deletes, stays as the version before it.
 *
 * A session's cells are a tree: each branch begins after a cell of another line and has files of its own, those that were there
 * after that cell and what its own cells make of them. What people sent is there on every line. Versions are counted over all
 * lines, so a line may lack some numbers. */
struct file_row {
    int64_t id;
    char *name;                  /* NFC when a person sent it; else the path below /mnt/data as the box has it */
    char *path;                  /* on the host; of what is gone nothing is there */
    char *profile;               /* JSON array as docs/profile.md, or NULL: not profiled yet */
    int64_t bytes, version, seq; /* version counts per name from 1; seq: the inbox item that brought it */
    int cell;                    /* that made or deleted it; 0: a person sent it */
    bool gone;                   /* this version is that it was deleted */
    char *message;               /* that brought it; NULL: no message did */
};
void file_row_clear(struct file_row *r);
struct file_offer {
    const char *name;             /* NFC, no '/' */
    int64_t seq;                  /* the inbox item that brings it */
    int fd;                       /* read from where it stands to its end; stays the caller's */
    int64_t max_bytes, max_total; /* of it; of all files of the session, 0: no limit */
    const char *message;          /* that it was in, and goes with; NULL: in none */
};
/* Into the session, whole or not at all; ERR_DATA past max_bytes, ERR_LIMIT past max_total. Same name again: next version. */
must_check int store_file_add(struct store *s, const char *session, const struct file_offer *offer,
                              struct file_row *out, struct err *e);
must_check int store_file_profile(struct store *s, int64_t file, const char *profile_json, struct err *e);
struct file_made {
    const char *name; /* path below /mnt/data */
    /* Where it lies, whole and synced; it is linked where possible, and must not be written to again. */
    const char *path;
    int cell;
    int64_t max_total;
};
/* The next version of that name; the newest, when that is just the same. To make room under max_total the oldest versions go
 * that cells made and that are not the newest; ERR_LIMIT when that is not enough. */
struct file_version {
    int64_t file, version; /* file: its id */
    bool fresh;            /* false: nothing had changed */
};
must_check int store_file_made(struct store *s, const char *session, const struct file_made *made,
                               struct file_version *out, struct err *e);
/* That name, and all below it, is gone since that cell. */
must_check int store_file_gone(struct store *s, const char *session, const char *name, int cell, struct err *e);
/* All files of the line that the session is on, oldest first (newest version of a name is last). Caller clears each and
 * frees the array. */
must_check int store_files(struct store *s, const char *session, struct file_row **out, size_t *n, struct err *e);
/* The same as it was after that cell, and what people sent since: what a branch from there begins with. */
must_check int store_files_after(struct store *s, const char *session, int cell, struct file_row **out, size_t *n,
                                 struct err *e);
/* From here on, the cells from `next` on are a new line that begins after that cell. */
must_check int store_branch(struct store *s, const char *session, int cell, int next, struct err *e);

/* ---- messages that are deleted take their files with them ---- */
/* Remembered, should it be delivered once more. One that never came is not. */
must_check int store_message_delete(struct store *s, const char *platform, const char *message, struct err *e);
must_check int store_message_deleted(struct store *s, const char *platform, const char *message, bool *deleted,
                                     struct err *e);
/* Conversations that have a file of it; the caller frees each and the array. */
must_check int store_message_sessions(struct store *s, const char *platform, const char *message, char ***ids,
                                      size_t *n, struct err *e);
/* Its files go, with all that is known of them: bytes first, so that a crash in between is made good by the next time. */
must_check int store_files_withdraw(struct store *s, const char *session, const char *message, struct err *e);
/* What of these names lies in folders that boxes began with goes, too. */
void store_files_unlink(struct store *s, const char *session, char *const *names, size_t n);
/* Names of files that went like that and that the model was not told of, one a line; NULL: none. The caller frees. */
must_check int store_withdrawn(struct store *s, const char *session, char **names, struct err *e);
must_check int store_withdrawn_told(struct store *s, const char *session, const char *names, struct err *e);

/* A folder for a box to begin with: versions under the names they have there, linked, not copied. */
struct file_link {
    const char *path, *name; /* on the host; below /mnt/data */
};
/* *fd: open for reading, the caller's. alone: no box of the session is left that has an earlier one. */
must_check int store_files_lay(struct store *s, const char *session, const struct file_link *links, size_t n,
                               bool alone, int *fd, struct err *e);
/* No box of the session is left. */
void store_files_unlay(struct store *s, const char *session);

/* ---- turns and cells: the notebook ---- */
struct turn_row {
    int64_t id, seq;
    char *request, *answer, *receipt; /* answer NULL while it runs */
    char *messages;                   /* JSON array, the turn's transcript */
    char *status;                     /* running, answered, failed, refused, cancelled, interrupted */
};
void turn_row_clear(struct turn_row *r);
must_check int store_turn_begin(struct store *s, const char *session, int64_t seq, const char *request, int64_t *turn,
                                struct err *e);
/* base: the cell whose variables this one began with; 0: none, a new interpreter. */
must_check int store_cell_add(struct store *s, const char *session, int64_t turn, const char *code,
                              const struct cell *c, int base, struct err *e);
/* Turns with an answer, oldest first, at most the newest `limit`. */
must_check int store_turns(struct store *s, const char *session, size_t limit, struct turn_row **out, size_t *n,
                           struct err *e);
/* The same, only turns behind `after`. */
must_check int store_turns_after(struct store *s, const char *session, int64_t after, size_t limit,
                                 struct turn_row **out, size_t *n, struct err *e);
/* A turn without an answer that anybody waits for: its question was deleted or replaced. Its inbox item is DROPPED. */
must_check int store_turn_drop(struct store *s, int64_t turn, int64_t seq, struct err *e);
/* Turns that a crash left running are interrupted. */
must_check int store_turns_interrupt(struct store *s, struct err *e);

/* How the model is given a long conversation: turns up to `noted` as notes, those up to `shortened` without old outputs. */
struct notes_row {
    char *notes; /* NULL: none */
    int64_t noted, shortened;
};
void notes_row_clear(struct notes_row *r);
/* Zeroes when there are none. */
must_check int store_notes(struct store *s, const char *session, struct notes_row *out, struct err *e);
must_check int store_notes_set(struct store *s, const char *session, const struct notes_row *r, struct err *e);

/* One cell of a session as JSON text (cell_to_json with code), *out NULL: there is none; the caller frees. */
must_check int store_cell(struct store *s, const char *session, int number, char **out, struct err *e);
/* Cells with where they belong, oldest first. The caller clears each and frees the array. */
struct cell_row {
    int number, base; /* base: the cell whose variables it began with; 0: a new interpreter; -1: not known */
    int64_t turn;
    char *json; /* cell_to_json with code */
};
void cell_row_clear(struct cell_row *r);
must_check int store_cell_rows(struct store *s, const char *session, struct cell_row **out, size_t *n, struct err *e);
/* Cells of a session as JSON array text (cell_to_json with code), oldest first; the caller frees. */
must_check int store_cells(struct store *s, const char *session, char **out, struct err *e);

/* ---- checkpoints: a session's variables, as bytes that only a box of the same session may read ----
 *
 * Each lies in a file with a label (versions, image, session, cell) and a seal under this store's key; the two newest are kept.
 * One is being written for a session at a time. */
struct json;
struct checkpoint_draft;
must_check int store_checkpoint_begin(struct checkpoint_draft **out, struct store *s, const char *session, int cell,
                                      const char *image, struct err *e);
/* ERR_DATA past max_bytes of all. */
must_check int store_checkpoint_add(struct checkpoint_draft *d, const void *data, size_t n, int64_t max_bytes,
                                    struct err *e);
/* Whole, or not at all. report: as the box gave it (sandbox.h, BOX_OP_CHECKPOINT). */
must_check int store_checkpoint_finish(struct checkpoint_draft *take_d, const struct json *report, struct err *e);
void store_checkpoint_drop(struct checkpoint_draft *d); /* nothing is left of it; NULL is fine */

struct checkpoint_row {
    int64_t id; /* 0: there is none */
    int cell;   /* the last one that is in it */
    int64_t created_ms, bytes;
    char *report; /* JSON */
};
void checkpoint_row_clear(struct checkpoint_row *r);
/* The newest one, or with before (an id) the newest that is older. */
must_check int store_checkpoint_newest(struct store *s, const char *session, int64_t before, struct checkpoint_row *out,
                                       struct err *e);

/* Reading one back: opened, found right step by step, then its state may go to a box. ERR_DATA: it may not, and why. */
struct checkpoint_source;
must_check int store_checkpoint_open(struct checkpoint_source **out, struct store *s, const char *session, int64_t id,
                                     const char *image, struct err *e);
/* One step. 1: not done yet; 0: it is right. */
must_check int store_checkpoint_verify(struct checkpoint_source *c, struct err *e);
struct checkpoint_state {
    int fd; /* borrowed; open for reading only */
    int64_t from, bytes;
    int cell;
};
/* Aborts before it was found right. */
struct checkpoint_state store_checkpoint_state(const struct checkpoint_source *c);
void store_checkpoint_close(struct checkpoint_source *c); /* NULL is fine */

must_check int store_checkpoints_forget(struct store *s, const char *session, struct err *e); /* all of a session's */

/* The cells that led to the variables after cell `at`, from a new interpreter on: those that were undone or branched away from are
 * not among them. The caller clears each and frees the array. */
struct journal_cell {
    int number;
    char *code;
    bool worked; /* it ended well */
};
void journal_cell_clear(struct journal_cell *c);
must_check int store_journal(struct store *s, const char *session, int at, struct journal_cell **out, size_t *n,
                             struct err *e);

/* ---- outbox: what must be said, exactly once ---- */
struct outbox_item {
    int64_t id, turn; /* turn 0: none */
    char *platform, *txn, *session, *room, *thread, *reply_to, *markdown, *receipt;
    char *figures, *files; /* JSON arrays of artifacts */
    char *amends;          /* the txn of an earlier answer whose text this replaces; NULL: it stands for itself */
    int tries;
};
void outbox_item_clear(struct outbox_item *o);
void outbox_item_copy(struct outbox_item *to, const struct outbox_item *from); /* to: empty before */
/* In one transaction: the turn ends with its answer, its inbox item is DONE, the answer is in the outbox (unless it is there already). */
must_check int store_turn_end(struct store *s, const struct turn_row *t, const struct outbox_item *o,
                              int64_t *outbox_id, struct err *e);
/* The same txn again makes no second row: *id is the old one. */
must_check int store_outbox_add(struct store *s, const struct outbox_item *o, int64_t *id, struct err *e);
/* The newest answer to that message. */
struct answered {
    int64_t turn;        /* 0: it has none; the rest is zero too */
    char *txn, *request; /* request: the question's text */
    int base;            /* the cell whose variables its first cell began with; 0: a new interpreter; -1: it ran none */
};
void answered_clear(struct answered *a);
must_check int store_answer_to(struct store *s, const char *platform, const char *event_id, struct answered *out,
                               struct err *e);
must_check int store_outbox_sent(struct store *s, int64_t id, struct err *e);
/* Unsent, oldest first; the caller clears each and frees the array. */
must_check int store_outbox_open(struct store *s, struct outbox_item **out, size_t *n, struct err *e);

/* ---- what a chat adapter keeps for itself: bytes by (platform, kind, key), e.g. a sync position or a key's state ---- */
struct kept {
    const char *platform, *kind, *key; /* key "" where a kind has one row */
};
/* Replaces what was there. */
must_check int store_keep(struct store *s, const struct kept *k, const void *value, size_t n, struct err *e);
/* A copy with a NUL behind it; the caller frees (and wipes, when it is secret). *out NULL: there is none. */
must_check int store_kept(struct store *s, const struct kept *k, char **out, size_t *n, struct err *e);
/* key NULL: all of the kind. What is not there is no error. */
must_check int store_unkeep(struct store *s, const struct kept *k, struct err *e);
/* Rows whose key begins with k->key (NULL: all), by key in byte order; the bytes are borrowed. A negative return of fn stops. fn
 * changes no row of that kind. */
typedef int store_kept_fn(void *ud, const char *key, const char *value, size_t n);
must_check int store_kept_each(struct store *s, const struct kept *k, store_kept_fn *fn, void *ud, struct err *e);

/* ---- usage: one row for each call of a model ---- */
struct usage_row {
    const char *session, *person, *model;
    int64_t in, cached, out; /* tokens */
    int64_t cost;            /* millionths of the currency that prices are in; 0: no price known */
};
must_check int store_usage_add(struct store *s, const struct usage_row *u, struct err *e);

struct usage_sum {
    int64_t calls, tokens, cost; /* tokens: in and out */
};
/* Since that Unix time, of the rows that match each of these which is not NULL: a session, a person, a room of a platform. */
struct usage_query {
    int64_t since_ms;
    const char *session, *person, *platform, *room; /* platform and room only together */
};
must_check int store_usage_sum(struct store *s, const struct usage_query *q, struct usage_sum *out, struct err *e);
#endif
