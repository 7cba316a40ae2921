/* slack_inbox_private.h - what slack_inbox.c (durable), slack_deliver.c (to the core) and slack_attach.c share. */
#ifndef SLACK_INBOX_PRIVATE_H
#define SLACK_INBOX_PRIVATE_H
#include "conf.h"
#include "json.h"
#include "loop.h"
#include "slack_inbox.h"

enum {
    SLACK_FILES_MAX = 20,
    SLACK_FILES_BYTES_MAX = 500 << 20,
    SLACK_PAYLOAD_MAX = 16 << 20,
    SLACK_ASKED_MAX = 64,
};

/* Of a file object, by us: the ts of the earlier message that it is of. */
#define FILE_OF "sandbook_of"

/* One file of an item, had or not. */
struct item_file {
    char *name, *problem;
    char *message; /* that it came with; NULL: this one */
    int fd;
    int64_t bytes;
};

/* One event on its way to the core. */
struct item {
    struct item *next;
    struct room *room;
    char *key; /* of its pending row */
    struct json *payload;
    struct slack_event ev; /* borrows from payload */
    struct slack_team *team;
    bool first; /* the bot's first mention in a thread that others began: what was said there is read */
    struct slack_call *call;
    struct slack_fetch *fetch;
    struct json *files; /* objects still to be fetched, all of them */
    struct json *said;  /* of the thread so far; NULL: not asked */
    int pages;
    size_t earlier_n; /* files of earlier messages, first among `files` */
    const struct json *file_at;
    struct item_file file[SLACK_FILES_MAX];
    size_t file_n;
    int64_t file_bytes;
    char *context; /* what was said before, for a language model; NULL: nothing */
    int tries;
};

struct room {
    struct room *next;
    struct slack_inbox *in;
    char *name;                /* team/channel */
    struct item *items, **end; /* end: where the next one goes */
    bool busy;
    loop_timer timer;
};

struct slack_inbox {
    struct slack_inbox_config c;
    struct loop *loop;
    struct store *store;
    const struct conf *conf;
    struct room *rooms;
    uint64_t seq; /* of the last pending row */
    size_t waiting;
    loop_timer purge_timer;
    struct asked {
        char *thread, *title, *user; /* NULL: free */
    } asked[SLACK_ASKED_MAX];        /* a ring */
    size_t asked_at;
};

/* ---- slack_deliver.c ---- */
void deliver_add(struct slack_inbox *in, const char *key, struct json *take_payload, struct slack_team *team,
                 const char *room);
void deliver_free_room(struct room *r);

/* ---- slack_asked.c ---- */
void asked_keep(struct slack_inbox *in, const char *thread, const char *user, const char *text);
void asked_free(struct slack_inbox *in);

/* ---- slack_attach.c: what stands beside the text of a message; pure ---- */
/* Quoted text of forwarded messages, behind the person's own. */
void attach_quotes(struct str *out, const struct json *attachments);
/* The words of a message that has blocks only; code stays fenced. */
void attach_words(struct str *out, const struct json *blocks);
/* A table that was pasted, number n from 0, as CSV; false: there is none. */
bool attach_table(struct str *out, const struct json *attachments, size_t n);
/* Files of forwarded messages, into an array of file objects. */
void attach_files(struct json *files, const struct json *attachments);
#endif
