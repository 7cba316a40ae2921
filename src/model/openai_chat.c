/* openai_chat.c - Chat Completions, and what the world has made of it.
 *
 * Nothing here trusts a reason to end: calls are what was called. Members that are not known are kept and given back, since
 * some servers refuse a conversation without them (reasoning_content, thought signatures, reasoning_details). */
#include "wire.h"

enum {
    SLOT_FUNCTION = 1 << 20, /* the old function_call, which has no index */
    SLOT_DETAIL = 1 << 21,   /* reasoning_details, by their index */
    SLOT_KEY = -2,           /* reasoning in words: found by its key */
};

static const char *const reasoning_keys[] = { "reasoning_content", "reasoning" };

/* ---- the question ---- */

static bool is_reasoning(const char *key)
{
    for (size_t i = 0; i < countof(reasoning_keys); i++)
        if (strcmp(reasoning_keys[i], key) == 0)
            return true;
    return strcmp(key, "reasoning_details") == 0;
}

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
        else if (!is_reasoning(json_key(x)) || wants_reasoning(m, r))
            json_set(out, json_key(x), json_dup(x));
    }
    return out;
}

static bool has_reasoning(const struct json *message)
{
    for (const struct json *x = json_first(message); x; x = json_next(x))
        if (is_reasoning(json_key(x)))
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
        json_set_str(out, "reasoning_content", "");
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

/* ---- the answer: calls ---- */

static bool is_whole_object(const struct str *text)
{
    autojson struct json *v = NULL;
    struct err ignored = { 0 };
    return text->len && json_parse(&v, str_peek(text), text->len, WIRE_TEXT_MAX, &ignored) == 0;
}

static struct wire_block *call_with_id(struct wire_reader *r, const char *id)
{
    for (size_t i = r->block_n; i > 0; i--)
        if (r->blocks[i - 1].kind == WIRE_CALL && r->blocks[i - 1].id && strcmp(r->blocks[i - 1].id, id) == 0)
            return &r->blocks[i - 1];
    return NULL;
}

static struct wire_block *last_call(struct wire_reader *r)
{
    for (size_t i = r->block_n; i > 0; i--)
        if (r->blocks[i - 1].kind == WIRE_CALL)
            return &r->blocks[i - 1];
    return NULL;
}

/* Which call a fragment belongs to; NULL: a new one. Ollama gives all calls the index 0: an id that differs begins a new call,
 * and so does a name once the call before it is whole. */
static struct wire_block *call_of(struct wire_reader *r, int64_t slot, const char *id, const char *name)
{
    struct wire_block *b = NULL;
    if (slot >= 0)
        b = wire_block_find(r, slot);
    else
        b = *id ? call_with_id(r, id) : last_call(r);
    if (!b || b->kind != WIRE_CALL)
        return NULL;
    if (*id && b->id && strcmp(b->id, id) != 0)
        return NULL;
    if (!*id && *name && b->name && is_whole_object(&b->text))
        return NULL;
    return b;
}

static void add_arguments(struct wire_block *b, const struct json *args)
{
    if (json_type(args) == JSON_STRING)
        str_puts(&b->text, json_text(args));
    else if (json_type(args) == JSON_OBJECT && b->text.len == 0)
        json_print(&b->text, args);
}

static bool is_plain_call_member(const char *key)
{
    static const char *const known[] = { "index", "id", "type", "function" };
    for (size_t i = 0; i < countof(known); i++)
        if (strcmp(known[i], key) == 0)
            return true;
    return false;
}

/* With a limit: looking a key up is linear, and a peer can invent many. */
static void keep_member(struct json **kept, const struct json *m, struct json *take_value)
{
    if (!*kept)
        *kept = json_new_object();
    if (json_len(*kept) < WIRE_KEPT_MAX || json_get(*kept, json_key(m)))
        json_set(*kept, json_key(m), take_value);
    else
        json_free(take_value);
}

/* Gemini's thought signatures, and whatever comes next. */
static void keep_extras(struct wire_block *b, const struct json *call)
{
    for (const struct json *m = json_first(call); m; m = json_next(m)) {
        if (is_plain_call_member(json_key(m)) || json_type(m) == JSON_NULL)
            continue;
        keep_member(&b->raw, m, json_dup(m));
    }
}

static void take_call(struct wire_reader *r, const struct json *call, bool is_new)
{
    const struct json *function = json_get(call, "function");
    const int64_t slot = json_int_or(call, "index", -1);
    const char *id = json_str_or(call, "id", ""), *name = json_str_or(function, "name", "");
    struct wire_block *b = is_new || slot >= SLOT_FUNCTION ? NULL : call_of(r, slot, id, name);
    b = b ? b : wire_block_add(r, slot, WIRE_CALL);
    if (!b)
        return;
    if (!b->id)
        wire_set(&b->id, id);
    if (!b->name)
        wire_set(&b->name, name);
    add_arguments(b, json_get(function, "arguments"));
    keep_extras(b, call);
}

static void take_calls(struct wire_reader *r, const struct json *calls, bool is_new)
{
    for (const struct json *c = json_first(calls); c; c = json_next(c))
        if (json_type(c) == JSON_OBJECT)
            take_call(r, c, is_new);
}

/* The form of 2023; arguments come in pieces here as well. */
static void take_function(struct wire_reader *r, const struct json *function)
{
    struct wire_block *b = wire_block_find(r, SLOT_FUNCTION);
    b = b ? b : wire_block_add(r, SLOT_FUNCTION, WIRE_CALL);
    if (!b)
        return;
    if (!b->name)
        wire_set(&b->name, json_str_or(function, "name", ""));
    add_arguments(b, json_get(function, "arguments"));
}

/* ---- the answer: words ---- */

/* Text, or Mistral's list of parts. */
static void take_content(struct wire_reader *r, const struct json *content)
{
    if (json_type(content) == JSON_STRING)
        wire_words(r, json_text(content));
    for (const struct json *p = json_first(content); p; p = json_next(p))
        if (strcmp(json_str_or(p, "type", ""), "text") == 0)
            wire_words(r, json_str_or(p, "text", ""));
}

static struct wire_block *thinking_of(struct wire_reader *r, const char *key)
{
    for (size_t i = 0; i < r->block_n; i++)
        if (r->blocks[i].kind == WIRE_THINKING && strcmp(r->blocks[i].name, key) == 0)
            return &r->blocks[i];
    struct wire_block *b = wire_block_add(r, SLOT_KEY, WIRE_THINKING);
    if (b)
        b->name = xstrdup(key);
    return b;
}

static const char *words_key(const struct json *detail)
{
    static const char *const keys[] = { "text", "summary", "data" };
    for (size_t i = 0; i < countof(keys); i++)
        if (json_type(json_get(detail, keys[i])) == JSON_STRING)
            return keys[i];
    return NULL;
}

/* OpenRouter wants its list back as it was; in a stream it comes in pieces, joined by index. */
static void take_detail(struct wire_reader *r, const struct json *detail)
{
    const int64_t index = json_int_or(detail, "index", 0);
    const char *key = words_key(detail);
    struct wire_block *b = index < 0 || index >= WIRE_BLOCKS_MAX ? NULL : wire_block_find(r, SLOT_DETAIL + index);
    b = b ? b : wire_block_add(r, SLOT_DETAIL + index % WIRE_BLOCKS_MAX, WIRE_OTHER);
    if (!b)
        return;
    for (const struct json *m = json_first(detail); m; m = json_next(m)) {
        const bool words = key && strcmp(json_key(m), key) == 0;
        if (words)
            str_puts(&b->text, json_text(m));
        if (words || json_type(m) != JSON_NULL)
            keep_member(&b->raw, m, words ? json_new_string("") : json_dup(m));
    }
    if (key && !b->name)
        b->name = xstrdup(key);
}

static bool says_nothing(const struct json *v)
{
    const enum json_type t = json_type(v);
    if (t == JSON_STRING)
        return !*json_text(v);
    return t == JSON_NULL || ((t == JSON_ARRAY || t == JSON_OBJECT) && json_len(v) == 0);
}

/* What servers add for reading only. */
static bool is_noise(const char *key)
{
    static const char *const keys[] = { "role",      "obfuscation", "annotations",      "audio", "logprobs",
                                        "token_ids", "stop_reason", "prompt_token_ids", "images" };
    for (size_t i = 0; i < countof(keys); i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

static void take_other(struct wire_reader *r, const struct json *m)
{
    const char *key = json_key(m);
    if (strcmp(key, "reasoning_details") == 0) {
        for (const struct json *d = json_first(m); d; d = json_next(d))
            if (json_type(d) == JSON_OBJECT)
                take_detail(r, d);
    } else if (is_reasoning(key) && json_type(m) == JSON_STRING) {
        struct wire_block *b = thinking_of(r, key);
        if (b)
            str_puts(&b->text, json_text(m));
    } else if (!is_noise(key)) {
        keep_member(&r->said, m, json_dup(m));
    }
}

static void take_member(struct wire_reader *r, const struct json *m, bool whole)
{
    const char *key = json_key(m);
    if (says_nothing(m))
        return;
    if (strcmp(key, "content") == 0)
        take_content(r, m);
    else if (strcmp(key, "refusal") == 0 && json_text(m))
        str_puts(&r->refusal, json_text(m));
    else if (strcmp(key, "tool_calls") == 0)
        take_calls(r, m, whole);
    else if (strcmp(key, "function_call") == 0)
        take_function(r, m);
    else
        take_other(r, m);
}

/* ---- the answer: as a whole ---- */

static void take_usage(struct wire_reader *r, const struct json *u)
{
    if (json_type(u) != JSON_OBJECT)
        return;
    const int64_t hit = json_int_or(u, "prompt_cache_hit_tokens", 0); /* DeepSeek */
    r->usage.in = json_int_or(u, "prompt_tokens", 0);
    r->usage.cached = json_int_or(json_get(u, "prompt_tokens_details"), "cached_tokens", hit);
    r->usage.out = json_int_or(u, "completion_tokens", 0);
}

static void take_reason(struct wire_reader *r, const struct json *choice)
{
    const char *reason = json_str_or(choice, "finish_reason", "");
    if (!*reason)
        return;
    if (strcmp(reason, "error") == 0)
        wire_fail(r, json_get(choice, "error") ? choice : json_get(choice, "finish_reason"));
    else if (strcmp(reason, "length") == 0)
        wire_stop(r, MODEL_STOP_LENGTH);
    else
        wire_stop(r, strcmp(reason, "content_filter") == 0 ? MODEL_STOP_REFUSED : MODEL_STOP_END);
}

static void take_choice(struct wire_reader *r, const struct json *choice, bool whole)
{
    const struct json *message = json_get(choice, whole ? "message" : "delta");
    if (!message)
        message = json_get(choice, whole ? "delta" : "message");
    if (json_type(message) == JSON_OBJECT)
        for (const struct json *m = json_first(message); m; m = json_next(m))
            take_member(r, m, whole);
    take_usage(r, json_get(choice, "usage"));
    take_reason(r, choice);
}

static void take_body(struct wire_reader *r, const struct json *v, bool whole)
{
    const struct json *error = json_get(v, "error"), *choices = json_get(v, "choices");
    if (json_type(error) != JSON_NULL || json_type(v) == JSON_ARRAY || (!choices && json_get(v, "message")) ||
        (!choices && json_get(v, "detail"))) {
        wire_fail(r, v);
        return;
    }
    take_usage(r, json_get(v, "usage"));
    take_usage(r, json_get(json_get(v, "x_groq"), "usage"));
    for (const struct json *c = json_first(choices); c; c = json_next(c))
        if (json_type(c) == JSON_OBJECT && json_int_or(c, "index", 0) == 0) {
            take_choice(r, c, whole);
            if (whole)
                break; /* a second one is another answer */
        }
}

static void chat_event(struct wire_reader *r, const char *name, const struct json *v)
{
    (void)name;
    take_body(r, v, false);
}

static void chat_whole(struct wire_reader *r, const struct json *v)
{
    if (!json_len(json_get(v, "choices")) && !json_get(v, "message") && !json_get(v, "detail"))
        wire_fail(r, json_get(v, "choices")); /* no answer, and no word why */
    else
        take_body(r, v, true);
}

/* ---- the replay ---- */

static struct json *replay_calls(const struct wire_reader *r)
{
    struct json *calls = json_new_array();
    for (size_t i = 0; i < r->block_n; i++) {
        const struct wire_block *b = &r->blocks[i];
        if (b->kind != WIRE_CALL)
            continue;
        struct json *call = json_new_object(), *function = json_new_object();
        json_set_str(call, "id", b->id);
        json_set_str(call, "type", "function");
        json_set_str(function, "name", b->name ? b->name : "");
        json_set_str(function, "arguments", wire_blank(str_peek(&b->text)) ? "{}" : str_peek(&b->text));
        json_set(call, "function", function);
        for (const struct json *m = json_first(b->raw); m; m = json_next(m))
            json_set(call, json_key(m), json_dup(m));
        json_push(calls, call);
    }
    return calls;
}

static void replay_reasoning(struct json *out, const struct wire_reader *r)
{
    struct json *details = json_new_array();
    for (size_t i = 0; i < r->block_n; i++) {
        const struct wire_block *b = &r->blocks[i];
        if (b->kind == WIRE_THINKING)
            json_set_str(out, b->name, str_peek(&b->text));
        if (b->kind != WIRE_OTHER || !b->raw)
            continue;
        struct json *detail = json_dup(b->raw);
        if (b->name)
            json_set_str(detail, b->name, str_peek(&b->text));
        json_push(details, detail);
    }
    if (json_len(details))
        json_set(out, "reasoning_details", details);
    else
        json_free(details);
}

static struct json *chat_replay(struct wire_reader *r)
{
    autofree char *text = wire_visible(r);
    struct json *out = json_new_object(), *calls = replay_calls(r);
    json_set_str(out, "role", "assistant");
    json_set_str(out, "content", *text ? text : NULL);
    replay_reasoning(out, r);
    for (const struct json *m = json_first(r->said); m; m = json_next(m))
        json_set(out, json_key(m), json_dup(m));
    if (json_len(calls))
        json_set(out, "tool_calls", calls);
    else
        json_free(calls);
    return out;
}

const struct wire wire_chat = {
    .dialect = "chat",
    .thinks_aloud = true,
    .request = chat_request,
    .event = chat_event,
    .whole = chat_whole,
    .replay = chat_replay,
};
