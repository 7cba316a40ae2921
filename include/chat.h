/* chat.h - what a chat platform is to the rest of the program. Floor 2.
 *
 * An adapter turns what people do into events and answers into posts. It owns retries, rate limits and rendering; it knows
 * nothing of sessions, models or boxes. */
#ifndef CHAT_H
#define CHAT_H
#include "cell.h"

struct loop;
struct conf;
struct store;
struct chat;

/* A file that came with a message, already on this machine. Borrowed: valid during on_event() only. */
struct chat_file {
    const char *name; /* as its sender called it; UTF-8, valid; not yet NFC, may hold anything but NUL */
    int fd;           /* open for reading at 0; -1: it could not be had, `problem` says why in words for people */
    int64_t bytes;
    const char *problem;
    const char *message; /* id of the message that it was in, and goes with when that is deleted; NULL: this one */
};

enum chat_event_type {
    CHAT_MESSAGE,
    CHAT_EDIT,
    CHAT_DELETE,
    CHAT_REACTION,
    CHAT_LEFT,  /* the bot is not in that room any more */
    CHAT_MOVED, /* a room goes on under another id, with the same people: its conversation does, too */
};

/* One thing that a person did. Borrowed: valid only during on_event(). */
struct chat_event {
    enum chat_event_type type;
    const char *id;     /* unique on its platform; the store dedups on it */
    const char *about;  /* edit, delete, reaction: the id of the message meant; moved: the room that was; else NULL */
    const char *room;   /* where to answer */
    const char *thread; /* id of the thread's first message; NULL: not in a thread */
    const char *sender; /* id of the person */
    const char *name;   /* how the person is called; for words, never for decisions */
    const char *text;   /* UTF-8, valid, control characters removed, mention of the bot removed; reaction: its sign */
    bool direct;        /* a DM: room and session are one */
    bool mentioned;     /* the bot was addressed by name */
    bool from_bot;      /* sent by a program */
    bool ours;          /* delete: it was an answer of ours that went, and about is its question, which stays */
    const struct chat_file *files;
    size_t file_n;
    int64_t sent_ms; /* Unix time, by the platform's clock */
};

enum chat_post_type {
    CHAT_ANSWER, /* the one answer of a turn, with its artifacts; durable: comes from the outbox */
    CHAT_STATUS, /* how a turn is doing; replaces the turn's earlier status; may be dropped */
    CHAT_NOTICE, /* a short word outside a turn: refusals, command results */
    CHAT_AMEND,  /* replaces the text of an earlier answer, which is out of date; durable; files stay where they are */
};

struct chat_post {
    enum chat_post_type type;
    const char *txn;                      /* idempotency key: the same txn is never shown twice */
    const char *amends;                   /* CHAT_AMEND: the answer's txn; NULL otherwise */
    const char *room, *thread, *reply_to; /* reply_to: event id of the question, or NULL */
    const char *markdown;                 /* the adapter renders it; "" in a status ends it */
    /* CHAT_STATUS, where takes_drafts(): what the model says so far; may change or go. NULL: nothing */
    const char *draft;
    const char *receipt; /* one line under an answer, or NULL */
    const struct artifact *figures;
    size_t figure_n;
    const struct artifact *files;
    size_t file_n;
};

struct chat_events {
    /* Returns 0 once the event is durable (the platform may be told so), -1 to have it delivered again. */
    int (*on_event)(void *ud, struct chat *from, const struct chat_event *ev);
    /* The platform has nothing more to say (local: end of input). */
    void (*on_end)(void *ud, struct chat *from);
};

/* Where an adapter lives; borrowed for its life. What it must not forget it keeps in the store under its own name
 * (store_keep), in one batch with the events that it reports. */
struct chat_home {
    struct loop *loop;
    const struct conf *conf;
    struct store *store;
    const char *data_dir; /* that store's folder, for files beside it that only an adapter knows */
};

struct chat_ops {
    const char *name;
    bool (*wanted)(const struct conf *c); /* this platform is configured */
    /* Returns at once; connecting goes on in the loop, for ever, and is logged. ERR_CONFIG: it can never work. */
    must_check int (*open)(struct chat **out, const struct chat_home *home, const struct chat_events *ev, void *ud,
                           struct err *e);
    /* done(ud, NULL) once the platform has it; done(ud, e) when it never will. May be called before post returns. */
    must_check int (*post)(struct chat *c, const struct chat_post *p, void (*done)(void *ud, const struct err *e),
                           void *ud, struct err *e);
    void (*close)(struct chat *c); /* no callback after it; NULL is fine */
    /* Optional. Words are shown while they are made: statuses come more often then, with drafts. NULL: they are not. */
    bool (*takes_drafts)(const struct chat *c);
    /* Optional. Why nothing that people say is heard at the moment, in words for operators; NULL: it is heard. */
    const char *(*deaf)(const struct chat *c);
};
extern const struct chat_ops chat_local, chat_matrix, chat_slack;
#endif
