/* slack_out_private.h - what slack_out.c (jobs), slack_message.c (one message), slack_upload.c and slack_status.c share. */
#ifndef SLACK_OUT_PRIVATE_H
#define SLACK_OUT_PRIVATE_H
#include "conf.h"
#include "json.h"
#include "log.h"
#include "loop.h"
#include "slack_blocks.h"
#include "slack_out.h"

struct slack_status;
struct slack_hint;

/* Where a post goes, in Slack's terms. */
struct place {
    struct slack_team *team;
    char *room, *channel, *root; /* root NULL: no thread */
};
/* false: no such installation any more. */
bool place_of(struct slack_out *o, const char *room, const char *thread, struct place *out);
void slack_place_clear(struct place *p);

struct slack_out {
    struct slack_out_config c;
    struct loop *loop;
    struct store *store;
    const struct conf *conf;
    struct job *jobs; /* oldest first */
    struct slack_status *statuses;
    struct slack_hint *hints;
    bool begun;
};

/* What is to be uploaded. */
struct upload_file {
    char *path, *text; /* the file, or its content; one is NULL */
    char *name, *title, *alt;
};

/* One post on its way. */
struct job {
    struct job *next;
    struct slack_out *o;
    enum chat_post_type type;
    char *txn, *amends, *room, *thread, *markdown, *receipt;
    struct upload_file *figures, *files;
    size_t figure_n, file_n, file_cap;
    void (*done)(void *ud, const struct err *e);
    void *ud;
    struct place place;
    struct slack_layout layout;
    enum slack_rung rung;
    struct json *sent; /* its row */
    bool running, laid, uprooted;
    bool looked, refused; /* the message in hand: looked for since it was sent; surely not there */
    size_t amended;
    struct slack_call *call;
    struct upload *upload;
    loop_timer timer;
};

/* ---- slack_out.c ---- */
void job_step(struct job *j); /* the next part, or the end */
void job_fail(struct job *j, const struct err *e);
/* The row of a part; NULL: not begun. */
const struct json *job_part(const struct job *j, const char *part);
/* Durable before the part is sent (ts NULL) and after; ids: of uploaded files, or NULL. */
must_check int job_keep(struct job *j, const char *part, const char *ts, const struct json *ids, struct err *e);
void job_relay(struct job *j, enum slack_rung rung); /* lay out anew */
/* Files that could not be had into the thread are said: with the answer when it is not out yet, else behind it. */
void job_note(struct job *j, const char *left_out);

/* ---- slack_message.c ---- */
void message_send(struct job *j, size_t i);
void message_amend(struct job *j);

/* ---- slack_upload.c ---- */
/* Uploads and shares the files, waits until they are seen, keeps the part, and steps on. */
void upload_start(struct job *j, const char *part, const struct upload_file *files, size_t n);
void upload_cancel(struct upload *u); /* NULL is fine */

/* ---- slack_status.c ---- */
void slack_status_post(struct slack_out *o, const struct chat_post *p);
void status_begin(struct slack_out *o); /* what an earlier life left is taken away */
void slack_status_free_all(struct slack_out *o);
bool slack_status_shown(const struct slack_out *o, const char *room, const char *thread); /* some line in that thread */

/* ---- slack_hint.c ---- */
void hint_end(struct slack_out *o, const char *room, const char *thread); /* not behind what is posted now */
void hint_free_all(struct slack_out *o);

#endif
