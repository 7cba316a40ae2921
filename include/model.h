/* model.h - what answers a conversation: the port that the agent uses and model/ implements. Floor 2. */
#ifndef MODEL_H
#define MODEL_H
#include <errno.h>
#include "err.h"

struct loop;
struct conf;
struct conf_model;
struct cell;
struct json;
struct model;
struct model_call;

enum model_role { MODEL_SYSTEM, MODEL_USER, MODEL_ASSISTANT, MODEL_TOOL };

/* A tool call that a model asked for, or that stands in the history. */
struct model_tool_call {
    char *id;   /* the provider's, or made by us; unique in its conversation */
    char *name; /* "run_python" */
    char *args; /* JSON object text as received; "" and broken text are possible in an answer, never in history */
};

/* One message of the neutral form. All strings are UTF-8 and owned by the transcript that holds it. */
struct model_msg {
    enum model_role role;
    char *text;                    /* may be "" for an assistant that only calls */
    struct model_tool_call *calls; /* assistant only */
    size_t call_n;
    char *call_id; /* tool only: which call this answers */
    bool failed;   /* tool only: the call did not work */
    char *raw;     /* assistant only, may be NULL: the provider's own object (JSON), replayed to the same provider */
    const char *provider; /* whose raw that is: a model's section name; NULL without raw */
    bool passing;         /* the agent's own: goes when its turn ends (a draft, and the word about it) */
};

enum model_tools { MODEL_TOOLS_AUTO, MODEL_TOOLS_NONE }; /* may call; must not call (the last word at a limit) */

/* What is said to a model that has no tools and writes its programs as blocks (prompts/fence.md); "" says nothing. */
struct model_fence_words {
    const char *how;             /* a part of the system message */
    const char *remind;          /* behind each message of a person */
    const char *output, *failed; /* in front of what a program brought */
    const char *tools;           /* behind how: the other tools; NULL: none */
};

struct model_ask {
    const struct model_msg *msgs; /* borrowed for the life of the call */
    size_t msg_n;
    enum model_tools tools;
    /* Profiles of the session's files, newest last (docs/profile.md): what `builtin` plans from; others find the same as
     * text in the messages. Borrowed for the life of the call. */
    const struct json *files;
    /* The tools as prompts/tools.json has them, [{"name","description","parameters"}]: for wire formats. */
    const struct json *schema;
    const struct model_fence_words *fence; /* NULL: nothing is said */
    /* This turn's question in the person's own words, no label, no profiles: what `builtin` reads. */
    const char *request;
    /* What ran last in this turn, NULL: nothing yet. `builtin` words its answer from it, others read the tool message.
     * Borrowed for the life of the call. */
    const struct cell *cell;
    const char *language; /* of the request: "en", "zh"; a hint */
    const char *seed;     /* session and turn: makes ids stable; a cache hint */
    int64_t max_output;   /* tokens of this answer; 0: as configured. More than configured after a call was cut */
};

enum model_stop {
    MODEL_STOP_END,     /* it said what it had to say, or calls tools: the calls decide */
    MODEL_STOP_LENGTH,  /* cut by a token limit: a call may be broken */
    MODEL_STOP_REFUSED, /* the model or a filter refused; text says what can be said */
};

struct model_usage {
    int64_t in, cached, out; /* tokens; 0: not reported */
};

struct model_answer {
    struct model_msg msg; /* role assistant; owned by the answer: the callback may take fields by leaving NULL/0 */
    enum model_stop stop;
    struct model_usage usage;
};

struct model_events {
    void (*delta)(void *ud, const char *text, size_t n); /* optional: text as it comes; borrowed */
    /* Optional, right before done() with an error about length: how many tokens the server reads at most and how many these were, as far
     * as it says so (0: it does not). */
    void (*too_long)(void *ud, int64_t window, int64_t sent);
    /* One of a, e is NULL. Last call; never from inside ask. */
    void (*done)(void *ud, struct model_answer *a, const struct err *e);
};

struct model_ops {
    const char *name; /* the dialect */
    must_check int (*open)(struct model **out, struct loop *l, const struct conf *c, const struct conf_model *section,
                           struct err *e);
    must_check int (*ask)(struct model_call **out, struct model *m, const struct model_ask *a,
                          const struct model_events *ev, void *ud, struct err *e);
    void (*cancel)(struct model_call *c); /* no callback after it; NULL is fine; never after done */
    void (*close)(struct model *m);       /* every call is over; NULL is fine */
};
extern const struct model_ops model_builtin, model_replay;
extern const struct model_ops model_openai_chat, model_openai_responses, model_anthropic, model_ollama;

/* The conversation is longer than what the model can see: shorten it and ask again. */
static inline bool model_err_too_long(const struct err *e)
{
    return e->kind == ERR_REFUSED && e->sys == EMSGSIZE;
}
#endif
