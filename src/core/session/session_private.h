/* session_private.h - the parts of the hub.
 *
 *   A message's way                                        Beside it
 *   session_in.c       what people do: the gate            session.c         the hub: chats, models, when all is done
 *   session_queue.c    what waits                          session_map.c     which conversations are in memory
 *   session_turn.c     the one turn that runs              session_edit.c    an answered question is taken back
 *   session_stage.c    files into the box                  session_unkept.c  what a full disk cannot take
 *   session_keep.c     variables that outlive their box    session_resume.c  what the last life left
 *   session_history.c  earlier turns, for the model        session_forget.c  what goes for good
 *   session_front.c    the box as an agent sees it         session_pin.c     states that somebody may want again
 *   session_files.c    what cells make of the files        session_budget.c  what may be spent, and what was
 *   session_report.c   what came of a turn                 session_status.c  the line that tells how it goes
 *   session_out.c      answers until a platform has them   session_export.c  the conversation as a notebook
 *                                                          session_withdraw.c  files of messages that were deleted
 *
 * command.c answers commands. state.c, access.c and budget.c know no session. */
#ifndef SESSION_PRIVATE_H
#define SESSION_PRIVATE_H
#include "core/agent/agent.h"
#include "budget.h"
#include "chat.h"
#include "loop.h"
#include "map.h"
#include "core/prompt/prompt.h"
#include "session.h"
#include "core/words.h"

struct command;
struct delivery;
struct session;
struct unkept_turn;

struct hub_chat {
    struct hub_chat *next;
    struct session_hub *hub;
    const struct chat_ops *ops;
    struct chat *chat;
    bool ended;
};

struct hub_model {
    struct hub_model *next;
    const struct conf_model *section;
    const struct model_ops *ops;
    struct model *model;
    struct token_scale scale; /* what its counts taught */
};

struct session_hub {
    struct session_parts parts;
    struct prompts *prompts;
    struct tool_set *tools;
    struct hub_chat *chats;
    struct hub_model *models;
    struct map sessions; /* in memory, by place; the least recently used first */
    struct map askers;   /* people who have something waiting or running: struct asker */
    size_t request_n;    /* that exist */
    loop_timer sweep;    /* lets sessions go that nobody uses */
    loop_timer retention;
    int64_t clock_ahead_ms;           /* wall clock before the loop's, at the last look */
    struct unkept_turn *unkept_turns; /* answered, not yet in the store */
    struct map unkept_rooms;          /* told that nothing can be taken */
    loop_timer unkept_timer;
    struct delivery *deliveries;
    struct turn *graves; /* over, to be freed off the stack */
    bool drained;        /* told */
    bool resting;        /* the service ends: nothing begins any more */
    void (*rested)(void *ud);
    void *rested_ud;
};

/* The one line that says how a request is doing; replaced, then taken away. */
struct status_line {
    char *text;
    struct str draft;            /* what the model says so far, where that is shown */
    int64_t since_ms, posted_ms; /* loop's clock: of this text; of the last post, 0: none shown */
    loop_timer timer;
};

/* A question, a program or a command on its way through the queue. */
struct request {
    struct request *next;
    struct session *session;
    int64_t seq; /* of its inbox item */
    char *event_id, *reply_to, *sender, *name, *text;
    const char *language;
    char *code;                    /* a person's own program */
    const struct command *command; /* one that waits for its turn */
    char *replaces;                /* the earlier answer's txn, when this is a new wording of its question */
    bool edited;                   /* replaces an earlier question */
    bool overheard;                /* not meant for us: nothing is said about it */
    struct asker *asker;           /* while it waits or runs; NULL before */
    int notices;                   /* said so far: each has a key of its own */
    int64_t came_ms;               /* loop's clock */
    struct status_line status;
};

/* The turn that a session runs. */
struct turn {
    struct turn *next; /* of the graves */
    struct request *request;
    int64_t id, started_ms;
    struct agent *agent; /* NULL until the box and the files are ready */
    struct hub_model *model;
    size_t fallbacks; /* names of agent.fallback that were looked at */
    struct json *profiles;
    char *note;      /* for the model */
    char *withdrawn; /* names that are in it; NULL: none */
    void (*went_back)(struct session *s);
    struct model_usage spent; /* by a try that a dying box ended */
    struct model_usage used;  /* by all calls of models so far */
    int64_t cost;             /* of them, millionths */
    enum budget_scope near;   /* passed 80 per cent by this turn; BUDGET_TURN: none */
    char *cancelled_by;
    struct json *made; /* versions that its cells made of files that were there: [{"name","version"}]; NULL: none */
    bool silent;       /* its question is gone or replaced: nobody waits for an answer */
    bool retried;      /* a second box was given */
    bool pinned;       /* the state that it began with */
};

struct staged {
    int64_t file;
    char *name;  /* in the box */
    bool looked; /* this box has unpacked it and looked into it */
};

/* A folder for a box to begin with, and what lies in it. */
struct laid {
    int fd; /* 0: none */
    struct staged *at;
    size_t n, cap;
};

struct names {
    char **at;
    size_t n, cap;
};

/* Files on their way into the box, one request after the other. */
struct staging {
    struct file_row *files;
    size_t n, at;
    int fd;
    char *name; /* that the one at hand is being put under */
    void (*done)(struct session *s, const struct err *e);
    bool lenient; /* a file that can't be put is left out */
    bool again;   /* some of them were withdrawn: once more from the first */
};

enum { PINS_MAX = 3 };

struct state_job;
typedef void session_back_fn(struct session *s, const struct json *reply,
                             const struct err *e); /* one of both is NULL */

struct session {
    char *key; /* its place, in the map */
    struct session_hub *hub;
    struct hub_chat *chat;
    struct session_row row;
    bool talked; /* has had a turn: its thread needs no mention any more */

    struct request *queue;  /* oldest first */
    struct turn *turn;      /* NULL: none runs */
    struct request *errand; /* a command whose turn it is */
    size_t request_n;       /* that exist; none: nothing waits, runs or is on its way out */
    int64_t used_ms;        /* loop's clock: last asked for */

    struct box *box; /* NULL: none */
    int out_fd;
    char *out_dir;
    bool fresh;         /* the interpreter knows nothing of the cells so far */
    int base;           /* variables are as this cell left them; 0: a new interpreter */
    int pins[PINS_MAX]; /* the states that the last answers with cells began with, oldest first; 0: none */
    struct staged *staged;
    size_t staged_n, staged_cap;
    struct staging staging;
    int files_fd;       /* the folder that the box began with; 0: none */
    struct names drop;  /* in the box, that are being taken away; their links go then */
    struct laid branch; /* asked for */

    /* session_keep.c */
    struct state_job *job; /* variables on their way to the store or from it */
    bool saving, closing;  /* what the job does; and then the box is closed */
    bool thaw_wanted;      /* the interpreter has not got yet what the session has */
    struct box *front;     /* what an agent gets; NULL: none did yet */
    struct json *thawed;   /* what became of that; to be told once */
    loop_timer idle;       /* since nothing runs or waits */
    int kept_cell;         /* the newest checkpoint's */
    int64_t kept_ms;       /* loop's clock: of the last one, or of the last try; 0: none in this life */
    int64_t save_began_ms, save_took_ms;
    void (*ready_done)(struct session *s, const struct err *e);
    session_back_fn *back_done;
    int back_to;
    struct json *back_reply; /* while files follow variables from a checkpoint */
    struct err refusal;      /* of the box, for back_to */

    const struct conf_model *model; /* chosen here; NULL: the default */
    int64_t answered_ms, paused_until_ms;
    int quick; /* questions in a row that came the moment the last was answered */
};

/* session_map.c: sessions that are in memory. One that nobody uses leaves it, and comes back out of the store with the next word. */
struct session *session_get(struct hub_chat *c, const char *room, const char *thread, struct err *e); /* NULL: e */
must_check int session_move(struct hub_chat *c, const char *from, const char *to); /* a room's; -1: the store, logged */
struct session *session_with(struct hub_chat *c, const char *event_id); /* that has this question; NULL: none */
struct session *session_find(struct session_hub *h, const char *id);    /* in memory; NULL: not there */
/* The session with that id is in memory and cannot leave it now; else it has left. */
bool sessions_hold(struct session_hub *h, const char *id);
void sessions_free(struct session_hub *h);

/* session.c */
struct hub_model *session_hub_model(struct session_hub *h, const struct conf_model *section,
                                    struct err *e); /* NULL: e */
const struct conf_model *session_model(const struct session *s);
void session_hub_settle(struct session_hub *h);             /* something ended: perhaps all has */
bool session_next_model(void *ud, struct agent_model *out); /* agent_events.next_model */

/* session_in.c */
int session_take_event(struct hub_chat *c, const struct chat_event *ev);
/* A kept message finds its way: answered at once, queued, or refused. bare: a command needs no "!". */
void request_route(struct request *take_r, bool bare);

/* session_forget.c */
/* Runs as an errand: nothing of the conversation stays. */
void session_forget(struct request *r, const char *arg);
/* Conversations that nobody used for so long that they are forgotten: now and from time to time. */
void session_retention_begin(struct session_hub *h);

/* session_queue.c */
struct request *request_new(struct session *s, int64_t seq, const char *event_id, const char *sender, const char *name,
                            const char *text);
void request_free(struct request *r);
bool request_is_about(const struct request *r, const char *event_id); /* it is that message, or a new wording of it */
/* It is a new wording of that message. */
void request_rewords(struct request *r, const char *event_id);
void request_enqueue(struct request *r);                              /* durable before; runs when its turn comes */
int64_t requests_of(const struct session_hub *h, const char *person); /* that wait or run, in all sessions */
void request_counts(struct request *r);                               /* it is one of them from now on */
/* Where in the line that message, or a new wording of it, is; what is there is NULL when it does not wait. */
struct request **request_queued(struct session *s, const char *event_id);
void request_drop(struct session *s, struct request **at); /* out of the line: not wanted any more */
/* What this person (NULL: anybody) asked and what has not begun is not wanted any more; how many that were. */
size_t session_drop_requests(struct session *s, const char *sender);
void session_wake(struct session *s); /* its line changed */
void session_set_inbox(struct session *s, int64_t seq, enum inbox_state state);

/* session_turn.c */
void session_pump(void *session); /* start what waits, if nothing runs */
void session_pump_later(struct session *s);
void turn_cancel(struct session *s, const char *by, bool silent);
void turn_free(struct turn *t);
void turns_bury(void *hub);
void session_defer_cancel(struct session *s);
void session_close_box(struct session *s);
int session_open_box(struct session *s, struct err *e);
void errand_done(struct session *s); /* the next may begin */

/* session_keep.c */
bool session_cell_lives(const struct cell *c); /* it ran to its end: what it did to the variables counts */
/* Variables into an interpreter that has none; then done(), which hands what it gets to session_put_back first of all. */
void session_put_back_begin(struct session *s, void (*done)(void *ud, const struct json *report, const struct err *e),
                            void *ud);
void session_put_back(struct session *s, const struct json *report, const struct err *e);
void session_is_at(struct session *s, int cell); /* its variables are those after that cell now: durable */
void session_idle(struct session *s);            /* nothing runs or waits */
bool session_busy(struct session *s);            /* something wants the box; true: not yet, it is being freed */
void session_box_is_new(struct session *s);
bool session_may_thaw(const struct session *s); /* it has variables, though no box has them */
/* The box is open: files and variables are brought into it. */
void session_ready(struct session *s, bool lenient, void (*done)(struct session *s, const struct err *e));
/* BOX_OP_UNDO or BOX_OP_BRANCH; from a checkpoint and the journal when the copy is gone. own_files: with the files
 * as they were after that cell. */
void session_back(struct session *s, enum box_op op, int cell, bool own_files, session_back_fn *done);
void session_keep_reset(struct session *s);  /* there are no variables any more, nor a way back to them */
void session_keep_forget(struct session *s); /* the box is gone at once */
/* What did not come back, for a person; NULL: nothing to tell. Caller frees. */
char *session_thawed_words(const struct session *s, const char *language);
void session_thawed_told(struct session *s);
void session_hub_rest_end(struct session_hub *h);

/* session_front.c: the box as an agent sees it */
extern const struct sandbox_ops session_front_ops;
struct box *session_front(struct session *s); /* the session's own */
void session_front_forget(struct session *s);

/* session_history.c */
struct session_history {
    struct notes_row row;
    struct transcript *turns;
    int64_t *ids;
    size_t n;
};
void session_history_load(struct session_history *h, struct session *s);
void session_history_clear(struct session_history *h);
void session_shortened(void *ud, const char *notes, int64_t noted, int64_t shortened); /* agent_events.shortened */
void session_cell_text(void *ud, int number, char **out);                              /* agent_input.cell_text */

/* session_budget.c */
enum agent_spending session_may_spend(void *ud, int64_t in_tokens);                        /* agent_events.may_spend */
void session_spent(void *ud, const struct model_usage *u);                                 /* agent_events.spent */
bool session_budget_over(struct session *s, const char *person, enum budget_scope *scope); /* nothing may begin */
void session_tell_near(struct session *s); /* the running turn passed 80 per cent of something: said */
char *session_scope_word(enum budget_scope scope, const char *language); /* these three: caller frees */
char *session_limits_text(struct request *r);
char *session_usage_text(struct request *r);

/* session_stage.c */
void session_stage(struct session *s, bool lenient, void (*done)(struct session *s, const struct err *e));
void session_stage_forget(struct session *s); /* the box is gone or new */
/* Profiles of the newest versions that are in the box, newest last; caller frees. */
struct json *session_profiles(struct session *s);
int session_keep_file(void *ud, const char *name, int fd, struct err *e); /* agent_events.keep_file */
/* Links for a box to begin with: the files as they are, or (cell from 0 on) as a branch from there has them. alone: the session
 * has no other box. */
must_check int session_lay(struct session *s, int cell, bool alone, struct laid *out, struct err *e);
/* The box has these and no others; l is empty afterwards. */
void session_adopt(struct session *s, struct laid *l);
void laid_clear(struct laid *l);
void session_mark_staged(struct session *s, int64_t file, char *take_name);
/* That file was withdrawn, and is not put any more; what the box has of it is added to names. */
void session_unstage(struct session *s, const struct file_row *f, struct names *out);
bool session_is_staged(const struct session *s, const char *name); /* something is called that in the box */
/* The very file that a person sent, unchanged as far as size tells. */
bool session_was_uploaded(const struct session *s, const char *name, int64_t bytes);

/* session_withdraw.c */
/* That message was deleted: what it brought leaves store and boxes. -1: the store, logged. */
must_check int session_withdraw(struct hub_chat *c, const char *message);
/* Out of the box, unless something else is called that there by now. */
void session_drop_names(struct session *s, const struct names *gone);
void session_drop_forget(struct session *s); /* the box is gone */
void names_add(struct names *l, const char *name);
void names_clear(struct names *l);

/* session_edit.c: a new wording of a question that was answered */
bool session_says_the_same(struct session *s, const char *about, const char *text); /* open or answered */
/* Variables become what they were before the answer that this turn replaces, where that can be; then() in any case. */
void session_go_back(struct session *s, void (*then)(struct session *s));
void session_amend(struct session *s); /* the answer that this turn replaced: it points to the new one */

/* session_files.c */
/* What a cell made, changed and removed becomes durable, and it is noted what could not be. */
void session_keep_files(struct session *s, struct cell *c);
/* The files that were asked for with a branch are there, if there were any: the session is on a line of its own. */
void session_branched(struct session *s, int cell);

/* session_pin.c */
/* Before the first cell of a turn counts: the state that it began with is kept in the box, and the oldest such one is let go. */
void session_pin(struct session *s);
void session_pins_forget(struct session *s); /* the box is a new one */

/* session_report.c */
struct turn_result {
    struct artifacts figures, files;
    size_t left_behind; /* files over the limit */
    char *receipt;
    struct json *receipt_facts, *facts;
    char *answer;
};
void turn_result_fill(struct turn_result *r, struct session *s, struct agent_outcome *o);
void turn_result_clear(struct turn_result *r);
struct json *artifacts_to_json(const struct artifacts *a);
void artifacts_from_json(struct artifacts *a, const char *text);

/* session_out.c */
void session_notice(struct session *s, struct request *r, char *take_markdown);
void session_notice_words(struct session *s, struct request *r, enum word w, const char *a, const char *b);
void session_deliver(struct hub_chat *c, struct outbox_item *take_item);
void deliveries_free(struct session_hub *h);
size_t deliveries_count(const struct session_hub *h);
void session_drop_deliveries(const struct session *s); /* but what is on its way this moment */
int outbox_resume(struct session_hub *h, struct err *e);
char *session_txn(const struct session *s, const char *event_id,
                  const char *what); /* the key of a post; caller frees */
/* What is to be posted about that event, without its words yet; outbox_item_clear() it. reply_to: the message that it answers. */
struct outbox_item session_item(const struct session *s, const char *event_id, const char *what, const char *reply_to);

/* The answer with that key is still on its way, and is in the store from now on, as id. */
bool delivery_is_kept(struct session_hub *h, const char *txn, int64_t id);

/* session_unkept.c */
/* It could not be kept: logged, told to whoever asked; -1, for the platform. */
int unkept_message(struct hub_chat *c, const struct chat_event *ev, const struct err *why);
void unkept_message_over(struct session_hub *h); /* one could */
void unkept_turn(struct session_hub *h, struct turn_row *take_row, const struct outbox_item *answer);
void unkept_drop(struct session_hub *h, const char *session); /* its turns are not wanted any more */
void unkept_free(struct session_hub *h);

/* session_status.c */
void status_set(struct request *r, char *take_text);
void status_said(struct request *r, const char *text, size_t n); /* n 0: from the beginning again */
void status_end(struct request *r);
void status_all_end(struct session *s); /* nobody will tell how it goes */
void status_queue(struct session *s);   /* everybody's place in the line */

/* session_export.c */
void session_export(struct request *r); /* posts this conversation as a notebook with its data */

/* command.c */
/* The command that text is, and where its argument begins; NULL: it is none. bare: without "!" it counts too. */
const struct command *command_find(const char *text, bool bare, const char **arg);
bool command_waits(const struct command *c); /* for its turn in the queue */
void command_run(const struct command *c, struct request *r,
                 const char *arg);                               /* answers at once; r stays the caller's */
void command_errand(const struct command *c, struct request *r); /* its turn has come; ends in errand_done */
#endif
