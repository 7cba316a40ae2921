/* slack_status_private.h - what slack_status.c (the line, and where it is shown) and slack_stream.c (as a stream of steps) share. */
#ifndef SLACK_STATUS_PRIVATE_H
#define SLACK_STATUS_PRIVATE_H
#include "slack_out_private.h"

/* One turn's line. */
struct slack_status {
    struct slack_status *next;
    struct slack_out *o;
    char *txn, *room, *thread;
    struct place place;
    char *wanted, *shown;          /* "": to be taken away; shown NULL: nothing is */
    char *ts;                      /* of the message, or of the stream; NULL: none */
    bool agent, stream, plain;     /* plain: Slack's own status did not work this time */
    int step;                      /* of the stream */
    char *draft;                   /* what the model says so far; NULL: nothing */
    size_t said, saying, streamed; /* bytes of the draft that are shown; on their way; in this stream altogether */
    struct slack_call *call;
    loop_timer timer;
    int64_t changed_ms, session_ms, stream_ms; /* stream_ms: when it began */
};

/* ---- slack_status.c ---- */
void status_work(struct slack_status *s); /* what is to be done next; may free s */
void status_keep(const struct slack_status *s);
void status_changed(struct slack_status *s, char *take_shown);
void status_later(struct slack_status *s, int64_t ms);

/* ---- slack_stream.c ---- */
bool stream_is_wanted(const struct slack_status *s);
void stream_begin(struct slack_status *s);
void stream_show(struct slack_status *s); /* what is wanted, or the end of it */
/* The words so far are these; they go on behind what is shown of them, or begin behind a blank line. NULL: none. */
void stream_take_draft(struct slack_status *s, const char *draft);
bool stream_has_words(const struct slack_status *s); /* some are to be shown */
/* Until it has to be begun anew, since Slack ends streams after about five minutes; 0: now. */
int64_t stream_left_ms(const struct slack_status *s);
void stream_hold(struct slack_status *s); /* waits for that, or does it */
#endif
