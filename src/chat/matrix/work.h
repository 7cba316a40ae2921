/* work.h - private to the way in: one event from its row to on_event(). */
#ifndef MATRIX_WORK_H
#define MATRIX_WORK_H
#include "e2ee.h"
#include "inbox.h"

enum { WORK_FILES_MAX = 64 /* a gallery has at most 60 */, WORK_FETCH_MAX = 2 };

struct source {
    char *name, *mxc;
    char *message;          /* the event that it is of; NULL: the one worked on */
    struct json *encrypted; /* NULL: plain */
    int64_t bytes;
    const char *problem; /* it can't be had, for that reason; NULL: it may */
};

struct work {
    struct work *next;
    struct chat *c;
    struct row *row;
    struct json *j;              /* the row */
    struct crypto_message clear; /* what was encrypted */
    struct mx_event ev;          /* borrowed from j */
    struct mx_relation relation; /* the same */
    const struct json *content;  /* what counts: of an edit the new one */
    /* what on_event() gets */
    enum chat_event_type type;
    char *id; /* the event that this one rewords, and that was of no concern to us before; else NULL: its own */
    char *about, *thread, *text, *name;
    bool direct, mentioned, ours;
    bool remember; /* its place is kept: it was for us */
    /* events that may carry a file of the question's: the one quoted or reworded, the thread's first */
    char *fetch[WORK_FETCH_MAX];
    size_t fetch_n, fetched;
    struct source source[WORK_FILES_MAX];
    size_t source_n;
    struct chat_file file[WORK_FILES_MAX];
    char *problem[WORK_FILES_MAX];
    size_t file_n;
};

/* ---- gate.c: what is it, and is it for us? ---- (gate_is_chatter() is in inbox.h) */
/* 1: deliver what is filled in; 0: not for us; -1: the store. */
must_check int work_decide(struct work *w, struct err *e);
/* ev: what fetch[fetched] is; NULL: the server does not hand it out. false: there is nothing to be answered. */
bool work_learn(struct work *w, const struct mx_event *ev);
void work_add_source(struct work *w, const struct json *content, const char *message);
/* Deleted before it could be worked on. */
must_check int work_is_deleted(const struct work *w, bool *deleted, struct err *e);
/* The event that was just fetched is quoted, and can't be read: had it a file, its sender should know. */
void work_add_unread(struct work *w);
#endif
