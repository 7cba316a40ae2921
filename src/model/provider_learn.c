/* provider_learn.c - what a refusal teaches, and where it is kept.
 *
 * Only what the server names is changed, and each thing once; what holds for one (URL, model) says nothing about another. */
#include <errno.h>
#include "provider.h"

static struct provider_memory *memories;

struct provider_memory *provider_memory_get(const char *url, const char *model, unsigned first)
{
    for (struct provider_memory *m = memories; m; m = m->next)
        if (strcmp(m->url, url) == 0 && strcmp(m->model, model) == 0)
            return m;
    struct provider_memory *m = xcalloc(1, sizeof(*m));
    *m = (struct provider_memory){ .next = memories, .url = xstrdup(url), .model = xstrdup(model), .quirks = first };
    memories = m;
    return m;
}

void provider_memory_forget(void)
{
    while (memories) {
        struct provider_memory *m = memories;
        memories = m->next;
        free(m->url);
        free(m->model);
        free(m);
    }
}

/* ---- fields that are simply left out ---- */

enum needs { ALWAYS, WITH_TOOLS, WITH_STREAM, WITH_FENCE, WITH_TEMPERATURE };

static const struct rule {
    const char *field;
    unsigned quirk;
    enum needs needs;
} rules[] = {
    { "stream_options", WIRE_NO_STREAM_OPTIONS, WITH_STREAM },
    { "include_usage", WIRE_NO_STREAM_OPTIONS, WITH_STREAM },
    { "parallel_tool_calls", WIRE_NO_PARALLEL, WITH_TOOLS },
    { "disable_parallel_tool_use", WIRE_NO_PARALLEL, WITH_TOOLS },
    { "prompt_cache_key", WIRE_NO_CACHE, ALWAYS },
    { "cache_control", WIRE_NO_CACHE, ALWAYS },
    { "stop", WIRE_NO_STOP, WITH_FENCE },
    { "stop_sequences", WIRE_NO_STOP, WITH_FENCE },
    { "tool_choice", WIRE_NO_TOOL_CHOICE, WITH_TOOLS },
    { "include", WIRE_NO_INCLUDE, ALWAYS },
    { "encrypted_content", WIRE_NO_INCLUDE, ALWAYS },
    { "store", WIRE_NO_STORE, ALWAYS },
    { "strict", WIRE_NO_STRICT, WITH_TOOLS },
    { "stream", WIRE_NO_STREAM, WITH_STREAM },
    { "max_output_tokens", WIRE_NO_MAX, ALWAYS },
    { "temperature", WIRE_NO_TEMPERATURE, WITH_TEMPERATURE },
};

/* What the operator asked for is given up only when the server names it. */
static unsigned no_thinking(const struct wire_error *w, const struct provider_sent *s)
{
    static const char *const words[] = { "does not support thinking",
                                         "thinking is not supported",
                                         "adaptive thinking",
                                         "think value",
                                         "invalid think",
                                         NULL };
    (void)s;
    return wire_error_says(w, words) || wire_error_names(w, "thinking") || wire_error_names(w, "think") ? WIRE_NO_THINK
                                                                                                        : 0;
}

/* xAI: "does not support parameter reasoningEffort" */
static bool is_parameter(const struct wire_error *w, const char *field)
{
    const char *at = strstr(w->message, "parameter ");
    return at && strncmp(at + strlen("parameter "), field, strlen(field)) == 0;
}

static unsigned no_such_effort(const struct wire_error *w, const struct provider_sent *s)
{
    static const char *const fields[] = { "reasoning_effort", "reasoning", "output_config", "effort",
                                          "reasoningEffort" };
    for (size_t i = 0; i < countof(fields); i++)
        if (!(s->quirks & WIRE_EFFORT_NONE) && (wire_error_names(w, fields[i]) || is_parameter(w, fields[i])))
            return WIRE_NO_EFFORT;
    return 0;
}

static bool applies(enum needs needs, const struct provider_sent *s)
{
    switch (needs) {
    case ALWAYS: return true;
    case WITH_TOOLS: return s->tools;
    case WITH_STREAM: return s->stream;
    case WITH_FENCE: return s->fenced;
    case WITH_TEMPERATURE: return s->tempered;
    }
    return false;
}

static unsigned drop_field(const struct wire_error *w, const struct provider_sent *s, const char **what)
{
    for (size_t i = 0; i < countof(rules); i++) {
        const struct rule *r = &rules[i];
        if ((s->quirks & r->quirk) || !applies(r->needs, s) || !wire_error_names(w, r->field))
            continue;
        *what = r->field;
        return r->quirk;
    }
    return 0;
}

/* ---- the rest, each with its own reason ---- */

static unsigned no_stream(const struct wire_error *w, const struct provider_sent *s)
{
    static const char *const words[] = { "verified to stream",
                                         "streaming is not supported",
                                         "does not support streaming",
                                         "stream is not supported",
                                         "tool use in streaming",
                                         "tools in streaming",
                                         NULL };
    return s->stream && wire_error_says(w, words) ? WIRE_NO_STREAM : 0;
}

/* "Function tools with reasoning_effort are not supported ... use /v1/responses or set reasoning_effort to 'none'" */
static unsigned no_effort(const struct wire_error *w, const struct provider_sent *s)
{
    static const char *const words[] = { "use /v1/responses", "reasoning_effort to 'none'", "reasoning_effort to none",
                                         NULL };
    return s->wire == &wire_chat && s->tools && wire_error_says(w, words) ? WIRE_EFFORT_NONE : 0;
}

static unsigned no_tools(const struct wire_error *w, const struct provider_sent *s)
{
    static const char *const words[] = { "not support tool",
                                         "not support function",
                                         "support tool use",
                                         "requires --jinja",
                                         "tool choice requires",
                                         "enable-auto-tool-choice",
                                         "tool-call-parser",
                                         "tools are not supported",
                                         "tool use is not supported",
                                         "tool calling is not supported",
                                         "function calling is not",
                                         "tools param requires",
                                         NULL };
    if (!s->may_fence || !s->tools)
        return 0;
    return wire_error_says(w, words) || wire_error_names(w, "tools") || wire_error_names(w, "functions") ? WIRE_FENCE
                                                                                                         : 0;
}

static unsigned other_role(const struct wire_error *w, const struct provider_sent *s)
{
    static const char *const want_developer[] = { "not support 'system'", "use 'developer'", NULL };
    static const char *const no_role[] = {
        "system role not supported", "system role is not supported", "developer instruction is not enabled",
        "not support 'developer'",   "unknown role: developer",      NULL
    };
    if (s->wire != &wire_chat || (s->quirks & WIRE_SYSTEM_AS_USER))
        return 0;
    if (wire_error_says(w, no_role))
        return WIRE_SYSTEM_AS_USER;
    if (!wire_error_says(w, want_developer))
        return 0;
    return s->quirks & WIRE_DEVELOPER ? WIRE_SYSTEM_AS_USER : WIRE_DEVELOPER;
}

/* Templates that know two roles: no system message, and no results of tools either. */
static unsigned two_roles(const struct wire_error *w, const struct provider_sent *s)
{
    static const char *const words[] = { "roles must alternate", "only user and assistant roles",
                                         "must alternate between user", NULL };
    if (s->wire != &wire_chat || !wire_error_says(w, words))
        return 0;
    if (!(s->quirks & WIRE_SYSTEM_AS_USER))
        return WIRE_SYSTEM_AS_USER;
    return s->may_fence && s->tools ? WIRE_FENCE : 0;
}

/* Gateways that fail at "none". */
static unsigned no_choice(const struct wire_error *w, const struct provider_sent *s)
{
    static const char *const words[] = { "tool choice param", "invalid tool_choice", "tool_choice type", NULL };
    return s->tools && wire_error_says(w, words) ? WIRE_NO_TOOL_CHOICE : 0;
}

/* The rule changed several times: some want it back, some refuse it. */
static unsigned other_reasoning(const struct wire_error *w, const struct provider_sent *s)
{
    static const char *const missing[] = { "must be", "missing", "required", NULL };
    if (s->wire != &wire_chat ||
        (!wire_error_names(w, "reasoning_content") && !wire_error_names(w, "reasoning_details")))
        return 0;
    return wire_error_says(w, missing) ? WIRE_REASONING_ALWAYS : WIRE_REASONING_NEVER;
}

static unsigned other_content(const struct wire_error *w, const struct provider_sent *s)
{
    static const char *const words[] = {
        "null value for 'content'",   "content' is a required",    "content cannot be null",
        "content must not be null",   "missing field `content`",   "missing 'content'",
        "content should be a string", "expected string, got null", NULL
    };
    return s->wire == &wire_chat && s->calls && wire_error_says(w, words) ? WIRE_EMPTY_CONTENT : 0;
}

static unsigned other_max(const struct wire_error *w, const struct provider_sent *s)
{
    const bool old = wire_error_names(w, "max_tokens"), new = wire_error_names(w, "max_completion_tokens");
    if (s->wire != &wire_chat || (!old && !new) || (s->quirks & WIRE_NO_MAX))
        return 0;
    if (s->quirks & WIRE_MAX_COMPLETION)
        return new ? WIRE_NO_MAX : 0; /* named as the one to use when it is ours already: neither will do */
    return WIRE_MAX_COMPLETION;
}

typedef unsigned learn_fn(const struct wire_error *w, const struct provider_sent *s);

static const struct {
    const char *what;
    learn_fn *learn;
} lessons[] = {
    { "reasoning_effort", no_effort }, /* names tools, too */
    { "stream", no_stream },           /* so does this */
    { "tools", no_tools },
    { "role", other_role },
    { "role", two_roles },
    { "tool_choice", no_choice },
    { "reasoning_content", other_reasoning },
    { "content", other_content },
    { "max_tokens", other_max },
    { "effort", no_such_effort },
    { "thinking", no_thinking },
};

/* Too long, too dear, not let in: no other wording helps. */
static bool is_final(const struct wire_error *w)
{
    struct err e = { 0 };
    (void)wire_error_set(&e, w);
    return e.sys != 0 && e.sys != ENOENT;
}

static bool can_teach(const struct wire_error *w)
{
    return w->status == 400 || w->status == 404 || w->status == 422 || w->status == 500 || w->status == 501;
}

/* The server names its limit of tokens, or what is left of its window. */
static bool learn_room(const struct wire_error *w, int64_t *max_output, const char **what)
{
    const int64_t room = wire_error_room(w, *max_output);
    if (!room)
        return false;
    *max_output = room;
    *what = "max_output";
    return true;
}

bool provider_learn(const struct wire_error *error, const struct provider_sent *sent, unsigned *quirks,
                    int64_t *max_output, const char **what)
{
    *quirks = sent->quirks;
    *max_output = sent->max_output;
    if (!can_teach(error))
        return false;
    if (learn_room(error, max_output, what))
        return true;
    if (is_final(error))
        return false;
    unsigned lesson = 0;
    for (size_t i = 0; i < countof(lessons) && !lesson; i++) {
        *what = lessons[i].what;
        lesson = lessons[i].learn(error, sent) & ~sent->quirks;
    }
    if (!lesson && error->status < 500)
        lesson = drop_field(error, sent, what);
    *quirks |= lesson;
    if (lesson & WIRE_REASONING_NEVER)
        *quirks &= ~(unsigned)WIRE_REASONING_ALWAYS;
    return lesson != 0;
}

bool provider_plainest(const struct wire_error *error, unsigned *quirks)
{
    /* Not store: what is left out there would be kept there. */
    const unsigned plain =
        WIRE_NO_CACHE | WIRE_NO_PARALLEL | WIRE_NO_STREAM_OPTIONS | WIRE_NO_STOP | WIRE_NO_INCLUDE | WIRE_NO_STRICT;
    struct err e = { 0 };
    (void)wire_error_set(&e, error);
    if ((error->status != 400 && error->status != 422) || e.kind != ERR_REFUSED || e.sys ||
        wire_error_filtered(error) || (*quirks & plain) == plain)
        return false;
    *quirks |= plain;
    return true;
}
