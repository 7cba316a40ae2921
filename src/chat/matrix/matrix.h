/* matrix.h - private to the Matrix adapter: its parts, and how they call each other. Floor 3.
 *
 * A message's way in:   sync.c -> kept as "pending" in one batch with the sync position -> inbox.c: in order, one at a time per
 *                       room -> (media.c: its files) -> on_event() in one batch that removes the row
 * and out:              post.c: a post becomes a job of messages -> outbox.c: whose turn it is -> send.c: uploaded, encrypted, put; under
 *                       the account's limit (pace.c) -> what was sent is kept by its key (sent.c), so that it is neither repeated nor forgotten
 *
 * Rows that are kept (store.h), by kind: login, sync, room, direct, pending, place, thread, deleted, sent, sealed, status, ignored; prune.c says how long. */
#ifndef MATRIX_H
#define MATRIX_H
#include "api.h"
#include "chat.h"
#include "conf.h"
#include "store.h"

#define MATRIX_PLATFORM "matrix"
/* A key in content of our own: the id of the event that a message answers. */
#define MATRIX_ANSWERS "org.sandbook.re"
/* State of a room, by those who may change its state: how the bot behaves there. docs/matrix.md. */
#define MATRIX_ROOM_SETTINGS "org.sandbook.room"

enum {
    MATRIX_EVENT_MAX = 256 << 10, /* bytes of one event as JSON; servers allow 64 KiB */
    MATRIX_SYNC_MAX = 64 << 20,
};

struct room {
    struct room *next;
    char *id;
    bool joined, invited, encrypted, direct; /* direct: the invitation said so */
    bool only_joined;                        /* invited people may not read */
    bool asking;                             /* for its members */
    bool outdated;                           /* somebody came or went while they were asked for */
    bool gone;                               /* replaced by another: nothing is sent any more */
    bool moved;                              /* its conversation goes on in its successor */
    bool fresh;       /* joined by our request, not yet in a response: what it has is from before */
    bool creator;     /* we made it, and that counts for more than its levels */
    bool told_mute;   /* somebody, that we may not write there */
    bool barred;      /* joining it was given up: only an invitation, or a new life, changes that */
    int64_t told_ms;  /* when it was last said that its messages can't be read; 0: never */
    int64_t members;  /* joined and invited, from the summary; 0: not known */
    int64_t service;  /* bots and bridges among them, beside us */
    int64_t mute;     /* what its levels don't let us do */
    int64_t asked_ms; /* loop time of its invitation in this life; 0: none */
    char *history;    /* visibility of its past, as the server calls it; NULL: not said */
    char *inviter, *successor, *predecessor; /* may be NULL */
    struct json *ours, *theirs;              /* settings by the operator, by its moderators; NULL: none */
    int tries;                               /* of joining */
    loop_timer timer;
    struct chat *chat;
    bool joining, busy, blocked; /* busy: the inbox works on one of its events; blocked: one of them must wait */
    bool in_line;                /* an earlier job of the outbox is for it */
    uint64_t said;               /* when the outbox last said something there, by its own clock */
};

struct login {
    char *user, *device, *localpart;
    char *token, *refresh, *client_id, *token_url; /* client_id, token_url: OAuth */
    int64_t expires_ms;                            /* Unix time; 0: never */
    int tries, hops;                               /* hops: of the page that says where the server is */
    loop_timer timer, refresh_timer;
    bool asking;  /* whoami is on its way */
    bool up;      /* whoami agreed */
    bool renewed; /* the token came from a refresh in this life */
    struct device_grant *grant;
};

struct mark {                      /* caught_up.c */
    bool known;                    /* the server was asked */
    int64_t from_ms;               /* Unix time of what is new to a first sync; 0: nothing is */
    int64_t newest_ms, written_ms; /* Unix time of events */
    int64_t due_ms;                /* loop time */
    loop_timer timer;
};

struct prune { /* prune.c: a pass over what is kept, in slices */
    size_t kind;
    char letter; /* 0: none is under way */
    char **open; /* keys of answers that wait */
    size_t open_n;
    loop_timer timer;
};

struct inbox;
struct outbox;
struct chat {
    struct loop *loop;
    const struct conf *conf;
    struct store *store;
    const struct chat_events *ev;
    void *ud;
    struct api *api;
    struct login login;
    struct room *rooms;
    struct e2ee *e2ee; /* NULL: off, or not up yet */
    const char *data_dir;
    struct inbox *inbox;
    struct outbox *outbox;
    struct media *media; /* transfers */
    struct cipher *ciphers;
    struct control *control;
    struct json *direct; /* content of m.direct, or NULL */
    struct json *ignored;
    char *since, *display_name; /* since NULL: first sync */
    char *filter;               /* of the last request, escaped; NULL: none yet */
    int64_t filter_timeline;    /* events of a room that it lets through */
    uint64_t seq;               /* of the next pending event */
    int64_t upload_max;         /* 0: not known */
    int sync_tries, quick;      /* quick: empty responses in a row that came at once */
    int64_t asked_ms;           /* loop time of the last request */
    loop_timer sync_timer;
    struct mark mark;
    struct prune prune;
    bool syncing, dead;
    int64_t good_sync_ms; /* loop time */
    bool legacy_media;    /* no authenticated media here */
};

/* ---- login.c: from the configuration to a token that works ---- */
void matrix_login_start(struct chat *c); /* ends in matrix_sync_start(), or stays down with a log line */
void matrix_login_stale(void *ud, bool soft_logout);
void matrix_login_clear(struct login *l);
/* The account's session is over for good. */
void matrix_down(struct chat *c, const struct err *e);
void matrix_end(struct chat *c); /* the same, as somebody wanted */
must_check int matrix_login_keep(struct chat *c, struct err *e);
must_check int matrix_login_load(struct chat *c, bool *found, struct err *e);
void matrix_login_whoami(struct chat *c);
void matrix_login_again(struct chat *c, const struct err *e); /* later, or never when e says so */
/* Takes over the tokens of an answer; false: there is none in it. */
bool matrix_login_tokens(struct chat *c, const struct json *body);
/* ---- login_words.c ---- */
enum login_step { LOGIN_SERVER, LOGIN_PASSWORD, LOGIN_TOKEN };
/* e, which this answer caused, in words that name the setting to look at. */
void matrix_login_words(const struct chat *c, enum login_step step, const struct api_answer *a, struct err *e);
void matrix_login_clock(const struct api_answer *a); /* a warning when ours is another time */
/* ---- device_grant.c: OAuth for a person with a browser ---- */
void matrix_grant_start(struct chat *c);
void matrix_grant_refresh(struct chat *c, api_fn *fn);
void matrix_grant_free(struct device_grant *g);

/* ---- rooms.c ---- */
struct room *matrix_room(struct chat *c, const char *id);      /* made when absent */
struct room *matrix_room_find(struct chat *c, const char *id); /* NULL: not known; id may be NULL */
must_check int matrix_rooms_load(struct chat *c, struct err *e);
void matrix_rooms_free(struct chat *c);
must_check int matrix_room_keep(struct room *r, struct err *e);
bool matrix_room_is_direct(const struct room *r);
bool matrix_is_in_direct(const struct chat *c, const char *room); /* the account's list says so */
/* State events in order; *changed is set when the row must be kept. */
void matrix_room_state(struct room *r, const struct json *event, bool *changed);
void matrix_room_summary(struct room *r, const struct json *joined, bool *changed);
/* ---- room_rules.c: state that says what we may and should do ---- */
void matrix_room_rules(struct room *r, const struct json *event, bool *changed);
bool matrix_room_mute(const struct room *r); /* we may not say anything there */
bool matrix_room_may_react(const struct room *r);
/* The operator's word, else the moderators', else the configuration's. Keys and words as there. */
const char *matrix_room_setting(const struct room *r, const char *key, const char *otherwise);
bool matrix_room_setting_ok(const char *key, const char *word);
void matrix_room_inherit(struct room *r, const struct room *old); /* settings: r replaces it */
/* ---- invites.c ---- */
void matrix_invite(struct room *r, const struct json *invite);
void matrix_room_leave(struct room *r, const char *why);
void matrix_invites_resume(struct chat *c);
void matrix_room_alone(struct room *r);

/* ---- e2ee.c: encryption's requests, its part of a sync, its messages ---- */
void matrix_e2ee_start(struct chat *c); /* once logged in; ends in matrix_sync_start() */
void matrix_e2ee_close(struct chat *c);
must_check int matrix_e2ee_sync(struct chat *c, const struct json *response, struct err *e); /* in the sync's batch */
must_check int matrix_e2ee_state(struct room *r, const struct json *event, struct err *e);   /* the same */
/* A stretch of the room's past was left out of a sync; and each event of it, once that is walked: out of date, but who left had our key. */
must_check int matrix_e2ee_gap(struct room *r, struct err *e);
must_check int matrix_e2ee_past(struct room *r, const struct json *event, struct err *e);
must_check int matrix_e2ee_left(struct room *r, struct err *e);
void matrix_e2ee_recall(struct room *r);              /* that it was encrypted, should its own row have forgotten */
void matrix_e2ee_lost(struct chat *c, bool position); /* a batch, or the position */
must_check int matrix_e2ee_prune(struct chat *c, const char *rooms, int64_t before_ms, struct err *e);
void matrix_e2ee_pump(struct chat *c);
bool matrix_e2ee_more(const struct chat *c); /* the server holds more keys: ask at once */
/* 1: *out is what to send as m.room.encrypted; 0: not yet, the outbox is pumped when it may be; -1: never. */
must_check int matrix_e2ee_seal(struct room *r, const char *type, const struct json *content, struct json **out,
                                struct err *e);

/* ---- control.c: the operator's socket ---- */
void matrix_control_open(struct chat *c);
void matrix_control_close(struct chat *c);

/* ---- sync.c ---- */
void matrix_sync_start(struct chat *c);
void matrix_sync_later(struct chat *c, int64_t ms); /* the next request */
bool matrix_is_ignored(const struct chat *c, const char *user);

/* ---- caught_up.c: how far we were, kept with the account ---- */
void matrix_mark_read(struct chat *c); /* ends in matrix_sync_later() */
/* An event of a first response that was said since, and is not answered in these events. */
bool matrix_mark_missed(const struct chat *c, const struct json *event, const struct json *events);
void matrix_mark_seen(struct chat *c, const struct json *event);
void matrix_mark_pump(struct chat *c); /* after a batch: written now, or within a minute */

/* ---- prune.c: rows of no more use go ---- */
void matrix_prune_start(struct chat *c);
void matrix_prune_stop(struct chat *c);
bool matrix_prune_step(struct chat *c, int64_t now_ms, struct err *e); /* a slice; true: the pass goes on */

/* ---- inbox.c: what people said, from the kept row to on_event() ---- */
void matrix_inbox_open(struct chat *c);
void matrix_inbox_close(struct chat *c);
/* Within the sync's batch. take_event: the event's JSON, with its room in it. */
must_check int matrix_pending_add(struct room *r, const struct json *event, struct err *e);
must_check int matrix_gap_add(struct room *r, const char *from, const char *to, struct err *e);
/* After the batch: rows that were added are worked on; batch_lost: they are not there. */
void matrix_inbox_pump(struct chat *c, bool batch_lost);
size_t matrix_inbox_depth(const struct chat *c);

/* ---- places.c: what is known of single events and of threads ---- */
struct place {
    char *thread, *answers, *by; /* by: whose event; answers: ours only, the question's id; each may be NULL */
};
void place_clear(struct place *p);
/* false: nothing is known of that event. */
must_check int matrix_place_get(struct chat *c, const char *event, struct place *out, bool *found, struct err *e);
must_check int matrix_place_keep(struct chat *c, const char *event, const struct place *p, struct err *e);
/* That thread is one of ours now. */
must_check int matrix_thread_keep(struct chat *c, const char *room, const char *root, struct err *e);
must_check int matrix_thread_known(struct chat *c, const char *room, const char *root, bool *known, struct err *e);

/* ---- media.c ---- */
struct media_get {
    const char *mxc;
    int64_t max_bytes;
};
/* fd: at 0, the callee's; -1: problem says why, for people. */
typedef void media_fn(void *ud, int fd, int64_t bytes, const char *problem);
void matrix_media_get(struct chat *c, const struct media_get *g, media_fn *fn, void *ud);
struct media_put {
    int take_fd;             /* from its beginning */
    const char *name, *type; /* name NULL: not told */
};
typedef void media_put_fn(void *ud, const char *mxc, const struct err *e);
void matrix_media_put(struct chat *c, const struct media_put *p, media_put_fn *fn, void *ud);
void matrix_media_free(struct chat *c);
/* Open for reading and writing, empty, in data_dir, without a name: gone once closed. The caller closes; -1: e. */
must_check int matrix_temp_file(const struct chat *c, struct err *e);

/* ---- outbox.c ---- */
typedef void matrix_done_fn(void *ud, const struct err *e);
must_check int matrix_post(struct chat *c, const struct chat_post *p, matrix_done_fn *done, void *ud, struct err *e);
void matrix_outbox_open(struct chat *c);
void matrix_outbox_close(struct chat *c);
void matrix_outbox_pump(struct chat *c);
/* What waits for that room's keys may try again. */
void matrix_outbox_wake(struct chat *c, const char *room);
/* One event of our own making, once in this life. */
void matrix_send_event(struct chat *c, const char *room, const char *type, const struct json *content, const char *txn);
/* Nothing more goes there: what waits fails. */
void matrix_outbox_drop_room(struct chat *c, const char *room);

/* ---- signs.c: typing notices and receipts ---- */
void matrix_typing(struct chat *c, const char *room, bool on);
void matrix_receipt(struct chat *c, const char *room, const char *event, const char *thread);
#endif
