/* tool.h - a service that a model may call beside its programs: the port that the agent uses and tool/ implements. Floor 2.
 *
 * A service is one section of the configuration: [tool NAME], an operator's HTTP service, or [database NAME]. What a call brings is
 * text for the model and, when there is more than that, a file for the box.
 *
 * Trust boundary: arguments were written by a model, perhaps under the influence of a file; what comes back was written by
 * others. Neither is ever more than data: arguments fill places that the operator left open, results stand between marks. */
#ifndef TOOL_H
#define TOOL_H
#include "err.h"

struct loop;
struct conf;
struct json;
struct tool_service;
struct tool_call;

/* Borrowed during done(). */
struct tool_result {
    bool failed;      /* the text says why, for the model */
    const char *text; /* valid UTF-8, scrubbed */
    size_t text_max;  /* the model gets this much of it */
    int fd;           /* the whole of it as a regular file; -1: the text is all. Closed by the service after done() */
    const char *kind; /* of the file: "csv", "json", "txt", "bin" */
};

struct tool_events {
    void (*done)(void *ud, const struct tool_result *r); /* once, last; never from inside call() */
};

struct tool_ops {
    const char *name; /* the kind of section: "tool", "database" */
    /* section: NAME. ERR_CONFIG names what is wrong with it. */
    must_check int (*open)(struct tool_service **out, struct loop *l, const struct conf *c, const char *section,
                           struct err *e);
    /* {"name","description","parameters"} as models are told of it; NULL: described elsewhere. Borrowed. */
    const struct json *(*describe)(const struct tool_service *s);
    /* verb: which of its tools; args: an object that fits the schema. Fails only when nothing could begin. */
    must_check int (*call)(struct tool_call **out, struct tool_service *s, const char *verb, const struct json *args,
                           const struct tool_events *ev, void *ud, struct err *e);
    void (*cancel)(struct tool_call *c);   /* no callback after it; NULL is fine; never after done */
    void (*close)(struct tool_service *s); /* every call is over; NULL is fine */
};
extern const struct tool_ops tool_http, tool_sql;
#endif
