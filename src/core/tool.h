/* tool.h - what a model may call beside run_python: a table of names, rules and handlers. Their schemas stand in prompts/tools.json, the
 * only place that describes tools to a model; a tool that is not described there is not called.
 *
 * Trust boundary: arguments come from a model, results from files and programs. The agent puts marks of data around every result. A
 * handler answers at once, from what is known; tools that wait for others (an operator's HTTP service, a database) will get a
 * handler that ends in a callback, as cells do, and a rule that says who may use them. */
#ifndef TOOL_H
#define TOOL_H
#include "agent.h"
#include "str.h"

enum tool_rule {
    TOOL_HARMLESS, /* reads only what this conversation has shown already */
};

struct tool_context {
    const struct json *files;       /* profiles; may be NULL */
    const struct agent_cell *cells; /* of this turn */
    size_t cell_n;
    void (*cell_text)(void *ud, int number, char **out); /* agent_input's */
    void *ud;
    int64_t now_ms; /* Unix time */
};

struct tool {
    const char *name;
    enum tool_rule rule;
    /* Appends the result; false: it did not work, and the text says why. */
    bool (*run)(struct str *out, const struct json *args, const struct tool_context *c);
};

/* NULL: there is none. */
const struct tool *tool_find(const char *name);
/* The arguments as an object, printed (caller frees); NULL: they are none. Blank text counts as {}. */
char *tool_args(const char *args);
bool tool_run(struct str *out, const struct tool *t, const char *args, const struct tool_context *c);
#endif
