/* openai_chat.c - Chat Completions, and what the world has made of it.
 *
 * Here is the question; openai_chat_answer.c reads. Nothing there trusts a reason to end: calls are what was called. Members that
 * are not known are kept and given back, since some servers refuse a conversation without them (reasoning_content, thought
 * signatures, reasoning_details). */
#include "openai_chat.h"

bool chat_is_reasoning(const char *key)
{
    static const char *const keys[] = { "reasoning_content", "reasoning", "reasoning_details", NULL };
    return wire_is_one_of(key, keys);
}

/* ---- the question ---- */

static void add_message(struct json *messages, const char *role, const char *text)
{
    struct json *m = json_new_object();
    json_set_str(m, "role", role);
    json_set_str(m, "content", text);
    json_push(messages, m);
}

static struct json *calls_of(const struct model_msg *m)
{
    struct json *calls = json_new_array();
    for (size_t i = 0; i < m->call_n; i++) {
        struct json *call = json_new_object(), *function = json_new_object();
        autofree char *id = wire_id(m->calls[i].id);
        json_set_str(call, "id", id);
        json_set_str(call, "type", "function");
        json_set_str(function, "name", m->calls[i].name);
        json_set_str(function, "arguments", m->calls[i].args);
        json_set(call, "function", function);
        json_push(calls, call);
    }
    return calls;
}

static void set_content(struct json *message, const char *text, const struct wire_request *r)
{
    const char *none = r->quirks & WIRE_EMPTY_CONTENT ? "" : NULL;
    json_set_str(message, "content", wire_blank(text) ? none : text);
}

static bool wants_reasoning(const struct model_msg *m, const struct wire_request *r)
{
    if (r->quirks & WIRE_REASONING_NEVER)
        return false;
    return m->call_n || (r->quirks & WIRE_REASONING_ALWAYS);
}

/* Calls as they were said, with what else stands in them; where history has another name or other arguments, those. */
static struct json *replayed_calls(const struct model_msg *m, const struct json *said)
{
    struct json *calls = json_new_array();
    size_t k = 0;
    for (const struct json *x = json_first(said); x && k < m->call_n; x = json_next(x), k++) {
        const struct json *function = json_get(x, "function");
        struct json *call = json_dup(x);
        if (wire_call_changed(&m->calls[k], json_str_or(function, "name", ""), json_get(function, "arguments"))) {
            struct json *now = json_new_object();
            json_set_str(now, "name", m->calls[k].name);
            json_set_str(now, "arguments", m->calls[k].args);
            json_set(call, "function", now);
        }
        json_push(calls, call);
    }
    return calls;
}

/* What the server itself said. */
static struct json *replayed(const struct model_msg *m, const struct json *said, const struct wire_request *r)
{
    struct json *out = json_new_object();
    for (const struct json *x = json_first(said); x; x = json_next(x)) {
        if (strcmp(json_key(x), "content") == 0)
            set_content(out, json_text(x), r);
        else if (strcmp(json_key(x), "tool_calls") == 0)
            json_set(out, json_key(x), replayed_calls(m, x));
        else if (!chat_is_reasoning(json_key(x)) || wants_reasoning(m, r))
            json_set(out, json_key(x), json_dup(x));
    }
    return out;
}

static bool has_reasoning(const struct json *message)
{
    for (const struct json *x = json_first(message); x; x = json_next(x))
        if (chat_is_reasoning(json_key(x)))
            return true;
    return false;
}

/* Returns true when ids went out as they are. */
static bool add_assistant(struct json *messages, const struct model_msg *m, const struct wire_request *r)
{
    autojson struct json *said = wire_said(m, r, "chat");
    const bool fits = json_type(said) == JSON_OBJECT && wire_same_calls(m, json_get(said, "tool_calls"), NULL, "id");
    struct json *out = NULL;
    if (fits) {
        out = replayed(m, said, r);
    } else {
        out = json_new_object();
        json_set_str(out, "role", "assistant");
        set_content(out, m->text, r);
        if (m->call_n)
            json_set(out, "tool_calls", calls_of(m));
    }
    const unsigned both = WIRE_REASONING_ALWAYS | WIRE_REASONING_NEVER;
    if ((r->quirks & both) == WIRE_REASONING_ALWAYS && m->call_n && !has_reasoning(out))
        json_set_str(out, "reasoning_content", "."); /* another model thought; Kimi takes "" for none */
    json_push(messages, out);
    return fits;
}

static void add_result(struct json *messages, const struct model_msg *m, bool as_is)
{
    struct json *out = json_new_object();
    autofree char *id = as_is ? xstrdup(m->call_id) : wire_id(m->call_id);
    json_set_str(out, "role", "tool");
    json_set_str(out, "tool_call_id", id);
    json_set_str(out, "content", wire_some(m->text));
    json_push(messages, out);
}

static struct json *messages_of(const struct wire_request *r)
{
    struct json *out = json_new_array();
    size_t i = 0;
    bool as_is = false;
    autofree char *system = wire_system(r, &i);
    if (r->quirks & WIRE_SYSTEM_AS_USER)
        i = 0;
    else if (system)
        add_message(out, r->quirks & WIRE_DEVELOPER ? "developer" : "system", system);
    while (i < r->msg_n) {
        const struct model_msg *m = &r->msgs[i];
        if (wire_is_people(m)) {
            autofree char *text = wire_people(r, &i);
            if (!wire_blank(text))
                add_message(out, "user", text);
            continue;
        }
        if (m->role == MODEL_TOOL)
            add_result(out, m, as_is);
        else if (m->call_n || !wire_blank(m->text))
            as_is = add_assistant(out, m, r);
        i++;
    }
    return out;
}

static void set_tools(struct json *body, const struct wire_request *r)
{
    struct json *tools = json_new_array();
    for (const struct json *t = json_first(r->schema); t; t = json_next(t)) {
        struct json *tool = json_new_object();
        json_set_str(tool, "type", "function");
        json_set(tool, "function", json_dup(t));
        json_push(tools, tool);
    }
    json_set(body, "tools", tools);
    if (!(r->quirks & WIRE_NO_TOOL_CHOICE))
        json_set_str(body, "tool_choice", r->tools == MODEL_TOOLS_NONE ? "none" : "auto");
    if (r->tools == MODEL_TOOLS_AUTO && !(r->quirks & WIRE_NO_PARALLEL))
        json_set_bool(body, "parallel_tool_calls", false);
}

static void set_stop(struct json *body)
{
    struct json *stop = json_new_array();
    json_push(stop, json_new_string("\n```\n"));
    json_set(body, "stop", stop);
}

static void set_stream(struct json *body, const struct wire_request *r)
{
    json_set_bool(body, "stream", true);
    if (r->quirks & WIRE_NO_STREAM_OPTIONS)
        return;
    struct json *options = json_new_object();
    json_set_bool(options, "include_usage", true);
    json_set(body, "stream_options", options);
}

/* The order of the members never changes: prefixes are cached. */
static struct json *chat_request(const struct wire_request *r)
{
    struct json *body = json_new_object();
    json_set_str(body, "model", r->model);
    json_set(body, "messages", messages_of(r));
    if (json_len(r->schema))
        set_tools(body, r);
    if (!(r->quirks & WIRE_NO_MAX))
        json_set_int(body, r->quirks & WIRE_MAX_COMPLETION ? "max_completion_tokens" : "max_tokens", r->max_output);
    wire_temper(body, r);
    if (r->fenced && !(r->quirks & WIRE_NO_STOP))
        set_stop(body);
    if (r->quirks & WIRE_EFFORT_NONE)
        json_set_str(body, "reasoning_effort", "none");
    else if (r->effort && *r->effort && !(r->quirks & WIRE_NO_EFFORT))
        json_set_str(body, "reasoning_effort", r->effort);
    if (r->cache_key && !(r->quirks & WIRE_NO_CACHE))
        json_set_str(body, "prompt_cache_key", r->cache_key);
    if (r->stream)
        set_stream(body, r);
    return body;
}

const struct wire wire_chat = {
    .dialect = "chat",
    .answer = "choices",
    .thinks_aloud = true,
    .request = chat_request,
    .event = chat_event,
    .whole = chat_whole,
    .replay = chat_replay,
};
