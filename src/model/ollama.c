/* ollama.c - Ollama's own /api/chat: a line of JSON a piece, and the only way for a client to say how
 * large the window shall be. Without that the server takes 4,096 tokens on small machines and drops the front of longer talks
 * without a word.
 *
 * Calls have no ids here (ours are made by the reader), arguments are objects, a result names its tool. Tools cannot be forbidden, only
 * left out. */
#include "wire.h"

/* ---- the question ---- */

static struct json *message(const char *role, const char *text)
{
    struct json *m = json_new_object();
    json_set_str(m, "role", role);
    json_set_str(m, "content", text);
    return m;
}

static struct json *assistant(const struct model_msg *m)
{
    struct json *out = message("assistant", wire_blank(m->text) ? "" : m->text), *calls = json_new_array();
    for (size_t i = 0; i < m->call_n; i++) {
        struct json *call = json_new_object(), *function = json_new_object();
        json_set_str(function, "name", m->calls[i].name);
        json_set(function, "arguments", wire_args_object(m->calls[i].args));
        json_set(call, "function", function);
        json_push(calls, call);
    }
    if (m->call_n)
        json_set(out, "tool_calls", calls);
    else
        json_free(calls);
    return out;
}

static const char *name_of_call(const struct wire_request *r, size_t before, const char *id)
{
    for (size_t i = before; i > 0; i--)
        for (size_t k = 0; k < r->msgs[i - 1].call_n; k++)
            if (strcmp(r->msgs[i - 1].calls[k].id, id) == 0)
                return r->msgs[i - 1].calls[k].name;
    return "";
}

static struct json *result(const struct wire_request *r, size_t i)
{
    struct json *out = message("tool", wire_some(r->msgs[i].text));
    json_set_str(out, "tool_name", name_of_call(r, i, r->msgs[i].call_id));
    return out;
}

static struct json *messages_of(const struct wire_request *r)
{
    struct json *out = json_new_array();
    size_t i = 0;
    autofree char *system = wire_system(r, &i);
    if (r->quirks & WIRE_SYSTEM_AS_USER)
        i = 0;
    else if (system)
        json_push(out, message("system", system));
    while (i < r->msg_n) {
        const struct model_msg *m = &r->msgs[i];
        if (wire_is_people(m)) {
            autofree char *text = wire_people(r, &i);
            if (!wire_blank(text))
                json_push(out, message("user", text));
            continue;
        }
        if (m->role == MODEL_TOOL)
            json_push(out, result(r, i));
        else if (m->call_n || !wire_blank(m->text))
            json_push(out, assistant(m));
        i++;
    }
    return out;
}

static struct json *tools_of(const struct wire_request *r)
{
    struct json *tools = json_new_array();
    for (const struct json *t = json_first(r->schema); t; t = json_next(t)) {
        struct json *tool = json_new_object();
        json_set_str(tool, "type", "function");
        json_set(tool, "function", json_dup(t));
        json_push(tools, tool);
    }
    return tools;
}

/* Some models take a level, others yes or no. */
static void set_think(struct json *body, const struct wire_request *r)
{
    const bool level = r->effort && *r->effort && strcmp(r->effort, "none") != 0;
    if (r->quirks & WIRE_NO_THINK)
        return;
    if (r->thinking == WIRE_THINK_OFF || (r->effort && strcmp(r->effort, "none") == 0))
        json_set_bool(body, "think", false);
    else if (level)
        json_set_str(body, "think", r->effort);
    else if (r->thinking == WIRE_THINK_ON)
        json_set_bool(body, "think", true);
}

static struct json *ollama_request(const struct wire_request *r)
{
    struct json *body = json_new_object(), *options = json_new_object();
    json_set_str(body, "model", r->model);
    json_set(body, "messages", messages_of(r));
    if (json_len(r->schema) && r->tools == MODEL_TOOLS_AUTO)
        json_set(body, "tools", tools_of(r));
    set_think(body, r);
    json_set_bool(body, "stream", r->stream);
    if (r->context > 0)
        json_set_int(options, "num_ctx", r->context);
    json_set_int(options, "num_predict", r->max_output);
    wire_temper(options, r);
    if (r->fenced) {
        struct json *stop = json_new_array();
        json_push(stop, json_new_string("\n```\n"));
        json_set(options, "stop", stop);
    }
    json_set(body, "options", options);
    return body;
}

/* ---- the answer ---- */

static void take_call(struct wire_reader *r, const struct json *call)
{
    const struct json *function = json_get(call, "function"), *args = json_get(function, "arguments");
    struct wire_block *b = wire_block_add(r, (int64_t)r->block_n, WIRE_CALL);
    if (!b)
        return;
    wire_set(&b->id, json_str_or(call, "id", ""));
    wire_set(&b->name, json_str_or(function, "name", ""));
    if (json_type(args) == JSON_STRING)
        str_puts(&b->text, json_text(args));
    else if (json_type(args) == JSON_OBJECT)
        json_print(&b->text, args);
}

/* The counts come with the last piece; what the server had read before is counted as well, except by old ones. */
static void take_end(struct wire_reader *r, const struct json *v)
{
    const char *reason = json_str_or(v, "done_reason", "");
    r->usage.in = json_int_or(v, "prompt_eval_count", 0);
    r->usage.out = json_int_or(v, "eval_count", 0);
    r->ended = true;
    wire_stop(r, strcmp(reason, "length") == 0 ? MODEL_STOP_LENGTH : MODEL_STOP_END);
}

static void ollama_event(struct wire_reader *r, const char *name, const struct json *v)
{
    const struct json *m = json_get(v, "message");
    (void)name;
    if (wire_error_is(v, r->wire->answer)) {
        wire_fail(r, v);
        return;
    }
    wire_words(r, json_str_or(m, "content", ""));
    for (const struct json *c = json_first(json_get(m, "tool_calls")); c; c = json_next(c))
        if (json_type(c) == JSON_OBJECT)
            take_call(r, c);
    if (json_bool_or(v, "done", false))
        take_end(r, v);
}

static void ollama_whole(struct wire_reader *r, const struct json *body)
{
    ollama_event(r, "", body);
}

/* What it thought may be left out, and calls have nothing that must come back. */
static struct json *ollama_replay(struct wire_reader *r)
{
    (void)r;
    return NULL;
}

const struct wire wire_ollama = {
    .dialect = "ollama",
    .thinks_aloud = true,
    .lines = true,
    .answer = "message",
    .request = ollama_request,
    .event = ollama_event,
    .whole = ollama_whole,
    .replay = ollama_replay,
};
