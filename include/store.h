/* store.h - everything durable: SQLite in data_dir/sandbook.db (WAL), big bytes as files beside it. Floor 2; src/store/.
 *
 * One writer. A call is one transaction and durable when it returns 0, unless it says otherwise. Ids that the store makes are
 * 16 hex digits. Strings handed out are owned by the struct that holds them (x_clear) . Every failure is ERR_STORE;
 * "no space left" is named as such.
 *
 *   data_dir/sandbook.db             inbox outbox sessions turns cells files usage
 *   data_dir/sessions/<id>/files/    what people sent, one folder a file id: <file id>/<name>
 *   data_dir/sessions/<id>/out/      what cells made
 */
#ifndef STORE_H
#define STORE_H
#include "cell.h"

struct store;

/* Locks data_dir against a second instance (ERR_CONFIG says who holds it), creates or migrates the database. */
must_check int store_open(struct store **out, const char *data_dir, struct err *e);
void store_close(struct store *s); /* NULL is fine */
/* What cells make goes to this folder, which exists, instead of data_dir: for a store that lives as long as one command. */
void store_deliver_to(struct store *s, const char *dir);

/* ---- inbox: what people said, before anything else happens ---- */
enum inbox_state { INBOX_NEW, INBOX_QUEUED, INBOX_RUNNING, INBOX_DONE, INBOX_DROPPED };
struct inbox_item {
    int64_t seq;                                                                /* order of arrival */
    char *platform, *event_id, *room, *thread, *sender, *name, *text, *session; /* thread, session may be NULL */
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
    int cells; /* number of the last cell */
};
void session_row_clear(struct session_row *r);
/* The one of (platform, room, thread), made when absent. Also makes its folders. */
must_check int store_session_get(struct store *s, const char *platform, const char *room, const char *thread,
                                 struct session_row *out, bool *made, struct err *e);
must_check int store_session_find(struct store *s, const char *id, struct session_row *out,
                                  struct err *e); /* ERR_DATA: none */
/* data_dir/sessions/<id>/out, open as O_PATH|O_DIRECTORY (caller closes) and as text (caller frees). */
must_check int store_session_out(struct store *s, const char *id, int *fd, char **path, struct err *e);

/* ---- files people sent ---- */
struct file_row {
    int64_t id;
    char *name;                  /* NFC, unique among the newest of the session */
    char *path;                  /* on the host */
    char *profile;               /* JSON array as docs/profile.md, or NULL: not profiled yet */
    int64_t bytes, version, seq; /* version counts per name from 1; seq: the inbox item that brought it */
};
void file_row_clear(struct file_row *r);
/* Copies fd (at most max_bytes; ERR_DATA past it) into the session, whole or not at all. Same name again: next version. */
must_check int store_file_add(struct store *s, const char *session, int64_t seq, const char *name, int fd,
                              int64_t max_bytes, struct file_row *out, struct err *e);
must_check int store_file_profile(struct store *s, int64_t file, const char *profile_json, struct err *e);
/* All files, oldest first (newest version of a name is last). Caller clears each and frees the array. */
must_check int store_files(struct store *s, const char *session, struct file_row **out, size_t *n, struct err *e);

/* ---- turns and cells: the notebook ---- */
struct turn_row {
    int64_t id, seq;
    char *request, *answer, *messages,
        *receipt; /* messages: JSON array, the turn's transcript; answer NULL while it runs */
    char *status; /* running, answered, failed, refused, cancelled, interrupted */
};
void turn_row_clear(struct turn_row *r);
must_check int store_turn_begin(struct store *s, const char *session, int64_t seq, const char *request, int64_t *turn,
                                struct err *e);
must_check int store_cell_add(struct store *s, const char *session, int64_t turn, const char *code,
                              const struct cell *c, struct err *e);
/* Turns with an answer, oldest first, at most the newest `limit`. */
must_check int store_turns(struct store *s, const char *session, size_t limit, struct turn_row **out, size_t *n,
                           struct err *e);
/* Cells of a session as JSON array text (cell_to_json with code), oldest first; the caller frees. */
must_check int store_cells(struct store *s, const char *session, char **out, struct err *e);

/* ---- outbox: what must be said, exactly once ---- */
struct outbox_item {
    int64_t id, turn; /* turn 0: none */
    char *platform, *txn, *session, *room, *thread, *reply_to, *markdown, *receipt, *figures,
        *files; /* figures, files: JSON arrays of artifacts */
    int tries;
};
void outbox_item_clear(struct outbox_item *o);
/* In one transaction: the turn ends with its answer, its inbox item is DONE, the answer is in the outbox (unless it is there already). */
must_check int store_turn_end(struct store *s, const struct turn_row *t, const struct outbox_item *o,
                              int64_t *outbox_id, struct err *e);
must_check int store_outbox_add(struct store *s, const struct outbox_item *o, int64_t *id,
                                struct err *e); /* same txn: no second row */
must_check int store_outbox_sent(struct store *s, int64_t id, struct err *e);
must_check int store_outbox_open(struct store *s, struct outbox_item **out, size_t *n,
                                 struct err *e); /* unsent, oldest first */

/* ---- usage ---- */
must_check int store_usage_add(struct store *s, const char *session, const char *person, const char *model, int64_t in,
                               int64_t cached, int64_t out_tokens, struct err *e);
#endif
