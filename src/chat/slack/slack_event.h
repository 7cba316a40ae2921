/* slack_event.h - an Events API body as what a person did. Pure.
 *
 * Trust boundary: every field is checked for its type and shape; what is missing, null or new is no fault. */
#ifndef SLACK_EVENT_H
#define SLACK_EVENT_H
#include "json.h"

enum slack_kind {
    SLACK_NOTHING,  /* not for us; `why` says what it was */
    SLACK_MESSAGE,  /* a person's message, mention or files */
    SLACK_EDIT,     /* the words of `about` changed */
    SLACK_DELETE,   /* `about` is gone */
    SLACK_REACTION, /* `key` was put under `about` */
    SLACK_STOP,     /* the platform's stop button, in the thread `root` */
    SLACK_HOME,     /* a person opened the app's messages */
    SLACK_JOINED,   /* the bot was taken into a channel */
    SLACK_MOVED,    /* the channel is called `key` from now on */
    SLACK_GONE,     /* the app was removed, or its token */
    SLACK_RATE,     /* events were held back */
};

/* Who we are in a workspace: no event of our own may start anything. */
struct slack_self {
    const char *user, *bot, *app; /* U, B and A ids; NULL: not known; app: then the one that the payload is for */
};

/* Strings are borrowed from the payload; NULL: absent. */
struct slack_event {
    enum slack_kind kind;
    const char *why;
    const char *event_id, *team, *enterprise, *channel, *user, *user_team;
    const char *ts;    /* of the message, or of the change */
    const char *root;  /* ts of the thread's first message; the message's own when it begins one */
    const char *about; /* ts of the message that is meant */
    const char *text, *key;
    const struct json *files, *attachments, *blocks;
    bool direct, group_direct, mentioned, replies, shared; /* replies: in a thread that another message began */
    int64_t sent_ms;
};

/* Classifies; anything that is no event_callback of a known kind is SLACK_NOTHING. */
void slack_event_read(struct slack_event *out, const struct json *payload, const struct slack_self *self);
/* "1700000000.000100": digits, a dot, six digits. */
bool slack_is_ts(const char *ts);
/* Unix milliseconds of a ts; 0: it is none. */
int64_t slack_ts_ms(const char *ts);
/* As seconds and microseconds, never as a double. */
int slack_ts_compare(const char *a, const char *b);
/* T1, C1, U1: capital letters and digits, at most 30. */
bool slack_is_id(const char *id);
/* Which installation an event is for: its workspace, or the organisation's when the app is installed there. */
void slack_event_installation(const struct json *payload, const char **team, const char **enterprise);
#endif
