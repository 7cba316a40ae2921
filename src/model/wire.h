/* wire.h - what the wire formats have in common: a question as a JSON body, an answer from bytes. Pure: no I/O, no time.
 *
 * A dialect is a struct wire: one builder and a few readers of JSON. The core of reading is shared: stream or plain body
 * (whatever the server felt like), errors inside an answer of status 200, <think> text, ids, what is kept for the replay.
 *
 * Trust boundary: everything that is fed was written by a peer. It passes sse.c's ceilings and json_parse(). */
#ifndef WIRE_H
#define WIRE_H
#include "json.h"
#include "model.h"
#include "sse.h"

enum {
    WIRE_BODY_MAX = 8 << 20,     /* an answer that is no stream */
    WIRE_TEXT_MAX = 8 << 20,     /* prose, or one call, of one answer */
    WIRE_BLOCKS_MAX = 256,       /* calls and blocks of one answer */
    WIRE_KEPT_MAX = 32,          /* members that nobody here knows, of one message or call */
    WIRE_RAW_MAX = 2 << 20,      /* what is kept for a replay; more is not kept, and the neutral form is sent */
    WIRE_TOKENS_MAX = 100000000, /* of one call: more is no count */
    WIRE_REQUEST_MAX = 32 << 20, /* what Anthropic takes; the others take less */
};

/* Ways to ask that differ from the plainest; a set of them belongs to a (URL, model). Most are learned from refusals. */
enum wire_quirk {
    WIRE_MAX_COMPLETION = 1 << 0,    /* chat: max_completion_tokens instead of max_tokens */
    WIRE_NO_MAX = 1 << 1,            /* no ceiling of tokens at all */
    WIRE_NO_STREAM_OPTIONS = 1 << 2, /* no usage in a stream, then */
    WIRE_NO_STREAM = 1 << 3,
    WIRE_NO_PARALLEL = 1 << 4, /* without the wish for one call at a time */
    WIRE_NO_CACHE = 1 << 5,    /* without prompt_cache_key, cache_control */
    WIRE_NO_STOP = 1 << 6,     /* fence mode: without stop strings */
    WIRE_NO_TOOL_CHOICE = 1 << 7,
    WIRE_NO_INCLUDE = 1 << 8,        /* responses: without encrypted reasoning */
    WIRE_NO_STORE = 1 << 9,          /* responses: without store:false */
    WIRE_NO_STRICT = 1 << 10,        /* responses: tools without strict */
    WIRE_DEVELOPER = 1 << 11,        /* the system message has the role developer */
    WIRE_SYSTEM_AS_USER = 1 << 12,   /* there is no such role: put before the first question */
    WIRE_EFFORT_NONE = 1 << 13,      /* reasoning_effort none: the model refuses tools together with reasoning */
    WIRE_REASONING_ALWAYS = 1 << 14, /* chat: reasoning_content on every assistant message, not only beside calls */
    WIRE_REASONING_NEVER = 1 << 15,
    WIRE_EMPTY_CONTENT = 1 << 16, /* chat: content "" instead of null beside calls */
    WIRE_FENCE = 1 << 17,         /* no tools: programs come in fences (fence.h) */
    WIRE_NO_EFFORT = 1 << 18,     /* without what the operator says about reasoning */
    WIRE_NO_THINK = 1 << 19,
    WIRE_NO_TEMPERATURE = 1 << 20,
};

struct wire_request {
    const char *model;    /* what the server calls it */
    const char *provider; /* section name: raw of messages with another one is not used */
    const struct model_msg *msgs;
    size_t msg_n;
    const struct json *schema; /* NULL: no tools are offered */
    enum model_tools tools;
    bool stream, fenced; /* fenced: stop after a program */
    int64_t max_output;
    int64_t context;    /* tokens of the window, for servers that have to be told; 0: not known */
    const char *effort; /* as configured; NULL, "": nothing is said */
    enum wire_think { WIRE_THINK_AUTO, WIRE_THINK_ON, WIRE_THINK_OFF } thinking;
    bool tempered;         /* temperature is said */
    double temperature;    /* 0 to 2 */
    const char *cache_key; /* NULL: none */
    unsigned quirks;
};

/* An error in the words of the peer; "" where it gave none. */
struct wire_error {
    int status; /* HTTP status, or one that the body names; 0: none, it came within an answer */
    char type[64], code[64], param[96], message[600];
    int64_t window, sent; /* tokens, when members of the error name them (llama.cpp); 0: they do not */
};

/* A call or another part of an answer while it is received. */
struct wire_block {
    int64_t slot; /* the peer's index */
    enum wire_block_kind { WIRE_CALL, WIRE_WORDS, WIRE_THINKING, WIRE_OTHER } kind;
    char *id, *name; /* calls; NULL until they came */
    struct str text; /* arguments as received, or words */
    size_t again;    /* of a call's text: where all that had come began once more; 0: nowhere */
    struct {
        size_t at, depth;
        bool quoted;
    } seen;           /* of a call's text, by chat: how far it was looked at, and what is open there */
    struct json *raw; /* what else the peer says about it; NULL: nothing */
    bool shown;       /* some of its words went to wire_words() */
    bool done;        /* the peer said that it is whole */
};

/* Words that can be shown; return false when this is enough of an answer. */
typedef bool wire_text_fn(void *ud, const char *text, size_t n);

struct wire_reader {
    const struct wire *wire;
    struct sse sse;
    enum { WIRE_SNIFF, WIRE_STREAM, WIRE_BODY } form;
    struct str body;        /* WIRE_BODY: all of it; WIRE_STREAM: how it begins */
    struct str words;       /* prose as received, <think> and all */
    struct str refusal;     /* why the model does not want to */
    size_t shown, searched; /* of words: handed to text(); looked through for the end of thinking */
    enum { WIRE_BEFORE, WIRE_INSIDE, WIRE_AFTER } think;
    struct json *said; /* the dialect's own: chat the message's other members, responses items of the last event */
    struct wire_block *blocks;
    size_t block_n, block_cap;
    enum model_stop stop;
    bool stopped; /* the peer said why it ended */
    bool ended;   /* the peer said that this was all */
    bool counted; /* the peer said what all of it cost */
    bool enough;  /* text() said so */
    bool failed;  /* error is set: nothing of this is an answer */
    struct wire_error error;
    struct model_usage usage;
    size_t events;
    wire_text_fn *text; /* may be NULL */
    void *ud;
};

struct wire {
    const char *dialect; /* "chat", "responses", "anthropic", "ollama" */
    bool thinks_aloud;   /* <think> in the text is no text */
    bool lines;          /* streams are a value a line, no events */
    const char *answer;  /* the member of a body that holds the answer */
    /* The body; caller frees. */
    struct json *(*request)(const struct wire_request *r);
    /* The body that asks how many tokens that would be, at the request's address and "/count_tokens"; caller frees. NULL: nobody can say. */
    struct json *(*count)(const struct wire_request *r);
    /* One event of a stream; name: "" when it had none. */
    void (*event)(struct wire_reader *r, const char *name, const struct json *data);
    /* An answer that is no stream. */
    void (*whole)(struct wire_reader *r, const struct json *body);
    /* What has to be replayed to this provider, from what was received; NULL: nothing. Blocks of kind WIRE_CALL have ids. */
    struct json *(*replay)(struct wire_reader *r);
};
extern const struct wire wire_chat, wire_responses, wire_anthropic, wire_ollama;

/* ---- reading ---- */
void wire_reader_init(struct wire_reader *r, const struct wire *w, wire_text_fn *text, void *ud);
void wire_reader_clear(struct wire_reader *r);
/* Bytes of an answer of status 200. -1 with ERR_DATA past a ceiling. Once r->enough or r->failed, more is swallowed. */
must_check int wire_reader_feed(struct wire_reader *r, const char *data, size_t n, struct err *e);
/* The transfer is over. 0: *out is the answer, provider and raw included (caller: wire_answer_clear); -1: r->failed and r->error say
 * what the peer said, or *e what is wrong: ERR_NET when it was cut off. `ask` makes ids and names whose raw it is. */
must_check int wire_reader_finish(struct wire_reader *r, const struct wire_request *ask, struct model_answer *out,
                                  struct err *e);
/* True when all of an answer is there, whatever happens to the connection now. */
bool wire_reader_whole(const struct wire_reader *r);
void wire_answer_clear(struct model_answer *a);

/* ---- for the dialects ---- */
/* Prose has come. */
void wire_words(struct wire_reader *r, const char *text);
/* All prose so far as people may see it; caller frees. */
char *wire_visible(const struct wire_reader *r);
/* The block of that slot, the newest first, NULL: none. A new one; NULL when there are too many, then r has failed. */
struct wire_block *wire_block_find(struct wire_reader *r, int64_t slot);
struct wire_block *wire_block_add(struct wire_reader *r, int64_t slot, enum wire_block_kind kind);
/* A piece of a call's arguments. Some servers send all there is so far in each piece, or all of it once more at the end: where the whole
 * is no JSON then, what began anew last is. */
void wire_block_args(struct wire_block *b, const char *text);
void wire_set(char **field, const char *text); /* when text is not NULL and not "" */
void wire_stop(struct wire_reader *r, enum model_stop stop);
/* The peer reports an error within its answer: v is the error object, or text. */
void wire_fail(struct wire_reader *r, const struct json *v);
void wire_fail_words(struct wire_reader *r, const char *words);
/* JSON that a proxy or a careless writer has spoilt, made readable: line ends within it go (a data line was split), half surrogates
 * and \u0000 become U+FFFD. Caller frees. */
char *wire_mend(const char *data, size_t n, size_t *out_n);
/* Arguments as a member that has to be an object: a copy when they are one, else {}. */
struct json *wire_args_object(const char *args);

/* What was kept of an assistant message for this provider, dialect and model, when it still fits its calls; caller frees; else NULL. */
struct json *wire_said(const struct model_msg *m, const struct wire_request *r, const char *dialect);
/* A call stands in history otherwise than it was said: another name, or arguments that mean something else. said: as text, or as the object. */
bool wire_call_changed(const struct model_tool_call *c, const char *name, const struct json *said);
/* An id that every provider takes: [A-Za-z0-9_-]{1,40}. As it is, or made from it. Caller frees. */
char *wire_id(const char *id);
/* Text of a tool result or question: never blank. */
const char *wire_some(const char *text);
bool wire_blank(const char *text);
bool wire_is_one_of(const char *word, const char *const *words); /* words: NULL-terminated */
/* The temperature into the body (or its options), where one is to be said. */
void wire_temper(struct json *body, const struct wire_request *r);
/* The system messages at the beginning, joined; *n: how many they are. Caller frees; NULL: none. */
char *wire_system(const struct wire_request *r, size_t *n);
/* The messages of people from *i on, joined; a system message that comes late counts as one. *i: behind them. Caller frees. */
char *wire_people(const struct wire_request *r, size_t *i);
bool wire_is_people(const struct model_msg *m);
/* True when the calls of m have these ids in this order: each id is the string `key` of an element of `said` that has it (and, when
 * type is not NULL, that type). */
bool wire_same_calls(const struct model_msg *m, const struct json *said, const char *type, const char *key);

/* ---- errors: wire_error.c ---- */
/* The body of an error, in any of the shapes that servers give it; what is no JSON is taken as words, of a web page its title. */
void wire_error_read(struct wire_error *out, int status, const char *body, size_t n);
/* The same from an error object (or text) that stands within something else. */
void wire_error_from(struct wire_error *out, const struct json *v);
/* An answer or event is an error: it has one that says something, or words where an answer has none. */
bool wire_error_is(const struct json *v, const char *answer);
/* The prompt was refused by a content filter: an answer, of a kind. */
bool wire_error_filtered(const struct wire_error *w);
/* The error names that field, as its param or as a word of its message. Common words ("stop") count only when quoted. */
bool wire_error_names(const struct wire_error *w, const char *field);
/* It says anything of these, in any case; NULL-terminated. */
bool wire_error_says(const struct wire_error *w, const char *const *phrases);
/* Tokens that would fit, when the error says that what was asked for does not; 0: it says no such thing. */
int64_t wire_error_room(const struct wire_error *w, int64_t asked);
/* What an error about length says of the window and of what was sent, in members or words; 0: nothing. */
int64_t wire_error_window(const struct wire_error *w);
int64_t wire_error_sent(const struct wire_error *w);
/* The wait that it names in words ("Please try again in 1.5s"); 0: none. */
int64_t wire_error_wait_ms(const struct wire_error *w);
/* A time until something is open again, as headers have it: seconds, "6m0.5s", or seconds or milliseconds since 1970; 0: none of these. */
int64_t wire_wait_ms(const char *text, int64_t now_ms);
/* As an error of ours. Kinds: ERR_CONFIG what the operator must mend (key, model name, address, money: sys EDQUOT); ERR_LIMIT
 * too many requests, overloaded; ERR_NET the peer's own trouble; ERR_REFUSED the rest. A conversation that is too long is ERR_REFUSED
 * with sys EMSGSIZE (model_err_too_long). Returns -1. */
int wire_error_set(struct err *e, const struct wire_error *w);
#endif
