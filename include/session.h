/* session.h - conversations: who may ask, what waits, the one running turn, its box, its answer. Floor 4; src/core/.
 *
 * The hub takes what every chat platform reports and sees each request through to its answer:
 *
 *   chat on_event -> gate -> inbox (durable) -> queue of its session -> box, files -> agent -> outbox (durable) -> chat post
 *
 * A session is one conversation, keyed by (platform, room, thread), with a box and files of its own. It runs one turn at a
 * time; later requests wait in order. After a restart session_hub_resume() picks up what the store still holds: what waited runs,
 * what was running is told to the room once and not run again, answers not yet delivered are posted under their old key.
 *
 * In order: sandbox started and ready, hub made, chats opened with session_hub_events and the hub as ud, each chat
 * attached, resumed. To end: session_hub_free (closes every box), then chats, sandbox, store. */
#ifndef SESSION_H
#define SESSION_H
#include "chat.h"
#include "model.h"
#include "sandbox.h"
#include "store.h"
#include "tool.h"

struct session_hub;

/* A turn that is over, its answer durable. Borrowed: valid during turn_done() only. */
struct turn_report {
    const char *session; /* the store's id: what `export` takes */
    const char *platform, *room, *thread, *event_id;
    const char *status; /* answered, failed, refused, cancelled */
    const char *answer; /* Markdown */
    const char *receipt;
    const struct artifact *figures, *files; /* in order; paths on the host */
    size_t figure_n, file_n;
    /* The object that `ask --json` prints: status answer cells figures files receipt usage steps took_ms. */
    const struct json *facts;
};

/* What the command line may want to know. Each may be NULL. */
struct session_watch {
    void (*turn_done)(void *ud, const struct turn_report *r);
    /* Something was said that is no turn's answer: a command's, or (failed) that nothing could begin. Borrowed. */
    void (*notice)(void *ud, const char *markdown, bool failed);
    /* Nothing runs, waits or is being delivered; may be told more than once. */
    void (*settled)(void *ud);
    /* The same, and every attached chat has ended. Once. */
    void (*drained)(void *ud);
};

/* Everything borrowed for the life of the hub. */
struct session_parts {
    struct loop *loop;
    const struct conf *conf;
    struct store *store;
    const struct sandbox_ops *sandbox_ops;
    struct sandbox *sandbox;               /* ready */
    const struct model_ops *const *models; /* NULL-terminated; picked by the dialect of a [model] section */
    const struct tool_ops *const *tools;   /* NULL-terminated, for [tool] and [database] sections; NULL: none */
    const struct session_watch *watch;     /* may be NULL */
    void *watch_ud;
    bool keep_state; /* the store outlives us: variables are checkpointed into it, and come back from it */
};

/* Reads the prompts and opens the default model: ERR_CONFIG when either cannot be. */
must_check int session_hub_new(struct session_hub **out, const struct session_parts *parts, struct err *e);
/* For chat_ops.open, with the hub as ud. An event of a chat that is not attached is refused: it comes again. */
extern const struct chat_events session_hub_events;
void session_hub_attach(struct session_hub *h, const struct chat_ops *ops, struct chat *chat);
/* Once, after the last attach. */
must_check int session_hub_resume(struct session_hub *h, struct err *e);
/* Nothing runs, waits or is being delivered. */
bool session_hub_idle(const struct session_hub *h);
/* How much there is of what, this moment. */
struct session_counts {
    size_t sessions; /* in memory */
    size_t boxes, boxes_idle;
    size_t running, waiting; /* requests */
    size_t undelivered;      /* answers on their way to a platform */
};
struct session_counts session_hub_counts(const struct session_hub *h);
/* Nothing begins any more; what sessions have and no checkpoint has is saved. done() on the loop when that is over; whoever does not
 * want to wait goes on to session_hub_free. What runs is left to run, or to end with the hub: its cells are in the journal. */
void session_hub_rest(struct session_hub *h, void (*done)(void *ud), void *ud);
/* Ends running turns where they are (the next start tells their rooms), closes boxes and models. NULL is fine. */
void session_hub_free(struct session_hub *h);

#endif
