/* inbox.h - private to the Matrix adapter's way in: rows that are kept until they are worked off.
 *
 * A row is an event, or a gap: a stretch of a room's past that the sync left out, to be walked before what comes behind it. The
 * rows that a walk finds lie between the gap's and the next one's. Rows of one room are worked on one at a time, in order; those
 * whose keys are missing are passed over and come again. */
#ifndef MATRIX_INBOX_H
#define MATRIX_INBOX_H
#include "event.h"
#include "matrix.h"

struct row {
    struct row *next;
    char key[40];
    struct room *room;
    enum { ROW_NEW, ROW_BUSY, ROW_PARKED } state;
    int tries;
    int64_t not_before_ms; /* loop time */
};

struct inbox {
    struct chat *c;
    struct row *rows, *last; /* last: NULL when it is not known */
    size_t n, parked;        /* parked: of these */
    int busy;
    loop_timer timer;
    struct work *work; /* all that runs */
    struct gap *gaps;
    bool pumping;
    struct store_batch batch; /* of a pump: what is read and dropped becomes durable together */
    char (*dropped)[40];      /* keys of rows that are worked off, still in the store */
    size_t dropped_n, dropped_cap;
};

must_check int inbox_row_remove(struct row *row, struct chat *c, struct err *e); /* from the store */
/* The row was worked off, and is gone from the store too. */
void inbox_row_done(struct row *row, struct chat *c);
/* The row was of no interest: gone from the store soon. */
void inbox_row_drop(struct row *row, struct chat *c);
/* Not now: again after a while, and nothing else of that room before. */
void inbox_row_later(struct row *row, struct chat *c);
/* Again only when inbox_unpark() says so; the room goes on. Of too many the oldest goes. */
void inbox_row_park(struct row *row, struct chat *c);

/* Before something is told to others: what is read so far is durable, or -1. */
must_check int inbox_settle(struct chat *c, struct err *e);

void inbox_unpark(struct chat *c, const char *room);

/* ---- gap.c ---- */
void gap_free_all(struct chat *c);
void gap_start(struct chat *c, struct row *row, struct json *take_row);
/* Also says what a row of its own is worth: messages and what changes them, by others, since we are in the room. */
bool inbox_wants(const struct room *r, const struct json *event, bool joined);
/* gate.c: certainly not for us, whatever else is known; needs no row. */
bool gate_is_chatter(const struct room *r, const struct json *event);
/* A row right behind `after`, within a batch; shown to the pump by inbox_show(). */
must_check int inbox_insert(const struct row *after, int number, const struct json *event, struct err *e);
void inbox_reload(struct chat *c);

/* ---- work.c ---- */
void work_start(struct chat *c, struct row *row, struct json *take_row);
void work_free_all(struct chat *c);
#endif
