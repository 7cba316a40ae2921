/* tool_table.h - what a model may call beside run_python: names, rules, handlers, and the services of the configuration.
 *
 * prompts/tools.json describes the tools of our own to models, query_database and describe_database among them: these are left out
 * while no database is configured. [tool NAME] sections bring their own descriptions and come last.
 *
 * Trust boundary: arguments come from a model, results from files, programs and services. The agent puts marks of data around every
 * result. A harmless tool answers at once, from what this conversation has shown already; a service (include/tool.h) answers later,
 * gets arguments that fit its schema, and is asked for nothing but what its section names. */
#ifndef TOOL_TABLE_H
#define TOOL_TABLE_H
#include "agent.h"
#include "str.h"
#include "tool.h"

enum tool_rule {
    TOOL_HARMLESS, /* reads only what this conversation has shown already */
    TOOL_HTTP,     /* one service */
    TOOL_DATABASE, /* the argument "database" says which */
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
    /* TOOL_HARMLESS. Appends the result; false: it did not work, and the text says why. */
    bool (*run)(struct str *out, const struct json *args, const struct tool_context *c);
};

/* The arguments as an object, printed (caller frees); NULL: they are none. Blank text counts as {}. */
char *tool_args(const char *args);
/* TOOL_HARMLESS: its handler with these arguments. False: it did not work, and out says why. */
bool tool_run(struct str *out, const struct tool *t, const char *args, const struct tool_context *c);

/* ---- the services: tool_set.c ---- */

struct tool_set;
/* ours: prompts/tools.json; ops: NULL-terminated, picked by name. ERR_CONFIG names the section that cannot be used. */
must_check int tool_set_new(struct tool_set **out, struct loop *l, const struct conf *c, const struct json *ours,
                            const struct tool_ops *const *ops, struct err *e);
void tool_set_free(struct tool_set *s); /* every call is over; NULL is fine */
/* All of them as wire formats want them; the same bytes for the life of the set. */
const struct json *tool_set_schema(const struct tool_set *s);
int64_t tool_set_tokens(const struct tool_set *s); /* estimate of that */
/* All but run_python, a line each with description and arguments, for models that have no tools; NULL: there is no service among them, and
 * the harmless ones are not worth their words. Caller frees. */
char *tool_set_lines(const struct tool_set *s);
/* set NULL: only the harmless ones. NULL: there is none of that name. */
const struct tool *tool_find(const struct tool_set *set, const char *name);
/* Names of all but run_python, "`read_more`, `list_files`"; caller frees. */
char *tool_names(const struct tool_set *set);

struct tool_target {
    const struct tool_ops *ops;
    struct tool_service *service;
};
/* Which service a call is for. ERR_DATA, in words for the model: the arguments do not fit. */
must_check int tool_set_target(struct tool_target *out, const struct tool_set *set, const struct tool *t,
                               const struct json *args, struct err *e);

/* ---- arguments: tool_schema.c ---- */

/* The value fits that JSON schema: types, required, enum, ranges, no members but the named ones. ERR_DATA says in words for the model what
 * does not. What a schema says beyond that is the service's to check. */
must_check int tool_schema_check(const struct json *schema, const struct json *value, struct err *e);
#endif
