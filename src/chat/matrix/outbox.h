/* outbox.h - private to the Matrix adapter's way out.
 *
 * A post becomes a job: messages that go to one room one after the other, each under a transaction id made from the post's key, so
 * that the server shows none twice. How far a job came is kept: after a restart it goes on there. One account has one rate limit:
 * when the server asks for patience nothing is sent until then, and the pace that it seems to want is remembered. */
#ifndef MATRIX_OUTBOX_H
#define MATRIX_OUTBOX_H
#include "content.h"
#include "e2ee.h"

enum {
    /* Bytes of a text's content as JSON: people read parts of 16 kB; servers take 64 KiB, an edit has it twice. */
    OUT_TEXT_MAX = 32000,
    OUT_PARTS_MAX = 4,   /* an answer that needs more is attached as a file */
    OUT_TEXT_MIN = 1000, /* a server that does not take this takes nothing */
};

/* One event to be sent. */
struct message {
    char *type;           /* NULL: m.room.message */
    struct json *content; /* NULL: a redaction of `target` */
    struct json *sealed;  /* the same for an encrypted room; made once */
    char *target;         /* the event that is edited or redacted, else NULL */
    char *path, *name;    /* of a file to be uploaded first, else NULL */
    char *small;          /* path of a small picture of it, for rooms whose server can't make one; else NULL */
    int fd;               /* of a file without a name of its own, to which path leads; 0: none */
    bool text;            /* part of the answer's text: can be amended */
    struct markup *doc;   /* of a text: what `content` says */
    struct markup *rest;  /* comes behind it in pieces of its own: the server found the whole too large; else NULL */
    size_t limit;         /* of such a piece; 0: the whole */
    bool bare;            /* sent again without its relation */
};

struct job {
    struct job *next;
    struct chat *c;
    struct room *room;
    enum chat_post_type type;
    char *txn, *thread, *reply_to;
    struct message *messages;
    size_t n, at;
    struct json *sent; /* what is kept: {"at", "events": [of texts], "mxc" or "file", "small" of the message at `at`,
                            * "cuts": [limits of the pieces of it that are sent]} */
    struct attach *attach; /* of the file on its way */
    bool small;            /* which is the small one */
    bool durable, busy, failed;
    int tries;
    int64_t not_before_ms;
    matrix_done_fn *done;
    void *ud;
};

struct status;
struct outbox {
    struct chat *c;
    struct job *jobs;
    struct status *statuses;
    int in_flight;
    uint64_t said;                /* messages in all rooms together, of this life: a clock */
    int64_t until_ms, limited_ms; /* nothing before; the last time that the server complained */
    int64_t pace_ms;              /* from one message to the next; 0: as fast as they come */
    loop_timer timer;
    int64_t life_ms; /* makes keys of one life only */
};

/* ---- post.c: what a post looks like ---- */
must_check int job_fill(struct job *job, const struct chat_post *p, size_t text_max, struct err *e);
void message_clear(struct message *m);
/* A word in place of what could not be sent. */
void job_replace_with_words(struct job *job, const char *words);
/* The message at job->at in smaller pieces, of which the first is its content now; false: it is no text, or small already. */
bool job_halve(struct job *job);
/* The next piece becomes its content; false: there is none. */
bool job_next_piece(struct job *job);
/* Pieces that an earlier life sent are passed over. */
void job_pass_pieces(struct job *job);

/* ---- pace.c: the account's limit ---- */
/* May a message be sent now? Else *wait_ms says when to ask again. */
bool outbox_open(struct outbox *o, int64_t *wait_ms);
void outbox_limited(struct outbox *o, const struct api_answer *a); /* the server asks for patience */
void outbox_sent_one(struct outbox *o);

/* ---- sent.c: what is kept of a job ---- */
must_check int sent_load(struct job *job, struct err *e);
must_check int sent_keep(struct job *job, struct err *e);
/* The message at job->at is there, as that event (NULL: it made none): durable, and the next one's turn. */
must_check int sent_message(struct job *job, const struct message *m, const char *event, struct err *e);
char *sent_txn(const struct job *job); /* of the message at job->at; the caller frees */
/* 1: m->sealed is there; 0: keys are on their way; -1: never, or the store. */
must_check int sent_unseal(const struct job *job, struct err *e); /* what was encrypted of it is not sent */
must_check int sent_seal(struct message *m, const struct job *job, const char *txn, struct err *e);

/* ---- upload.c: files of messages ---- */
/* Begins to upload what the message at job->at needs; its content gets the address, and outbox_step() comes again. false: nothing (any
 * more). */
bool upload_step(struct job *job);

/* ---- send.c: the next message of a job that is not busy ---- */
void outbox_step(struct job *job);
struct put {
    const char *room, *type, *txn;
    const struct json *content; /* NULL: a redaction */
    const char *redacts;
};
void outbox_put(struct chat *c, const struct put *p, api_fn *fn, void *ud);

/* ---- outbox.c ---- */
void outbox_job_over(struct job *job, const struct err *e); /* e NULL: all of it is there */
void outbox_job_again(struct job *job, const struct err *e);

/* ---- status.c: the line that tells how a turn is doing ---- */
void status_post(struct chat *c, const struct chat_post *p);
void status_pump(struct chat *c);
void status_load(struct chat *c);                        /* lines that a crash left behind go */
void status_drop_room(struct chat *c, const char *room); /* we are not there any more: nothing can be taken back */
void status_free_all(struct chat *c);
#endif
