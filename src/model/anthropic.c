/* anthropic.c - the Messages API.
 *
 * What the model said is a list of blocks that goes back unchanged and in order: signed thinking that was rebuilt is refused.
 * Blank text is refused as well, though the API itself sends some. */
#include "wire.h"

/* ---- the question ---- */

static void mark_cached(struct json *block)
{
    struct json *mark = json_new_object();
    json_set_str(mark, "type", "ephemeral");
    json_set(block, "cache_control", mark);
}

static struct json *text_block(const char *text, bool cached)
{
    struct json *block = json_new_object();
    json_set_str(block, "type", "text");
    json_set_str(block, "text", text);
    if (cached)
        mark_cached(block);
    return block;
}

static struct json *result_block(const struct model_msg *m, bool as_is, bool cached)
{
    struct json *block = json_new_object();
    autofree char *id = as_is ? xstrdup(m->call_id) : wire_id(m->call_id);
    json_set_str(block, "type", "tool_result");
    json_set_str(block, "tool_use_id", id);
    json_set_str(block, "content", wire_some(m->text));
    if (m->failed)
        json_set_bool(block, "is_error", true);
    if (cached)
        mark_cached(block);
    return block;
}

static void push_message(struct json *messages, const char *role, struct json *take_content)
{
    struct json *m = json_new_object();
    json_set_str(m, "role", role);
    json_set(m, "content", take_content);
    json_push(messages, m);
}

static bool is_ours(const struct model_msg *m)
{
    return m->role != MODEL_ASSISTANT;
}

static bool says_something(const struct model_msg *m)
{
    return m->role == MODEL_TOOL || m->call_n || !wire_blank(m->text);
}

/* How many messages of the user's side the rest is going to be. */
static size_t count_turns(const struct wire_request *r, size_t i)
{
    size_t n = 0;
    bool before = false;
    for (; i < r->msg_n; i++) {
        if (!says_something(&r->msgs[i]))
            continue;
        n += is_ours(&r->msgs[i]) && !before;
        before = is_ours(&r->msgs[i]);
    }
    return n;
}

/* Results first, then people: all that stands between two messages of the model is one message. */
static struct json *user_content(const struct wire_request *r, size_t *i, bool as_is, bool cached)
{
    struct json *content = json_new_array();
    while (*i < r->msg_n && (is_ours(&r->msgs[*i]) || !says_something(&r->msgs[*i]))) {
        const struct model_msg *m = &r->msgs[*i];
        if (wire_is_people(m)) {
            autofree char *text = wire_people(r, i);
            const bool last = *i >= r->msg_n || !is_ours(&r->msgs[*i]);
            if (!wire_blank(text))
                json_push(content, text_block(text, cached && last));
            continue;
        }
        (*i)++;
        const bool last = *i >= r->msg_n || !is_ours(&r->msgs[*i]);
        if (m->role == MODEL_TOOL)
            json_push(content, result_block(m, as_is, cached && last));
    }
    return content;
}

/* The blocks as they were said; a call that history has with another name or other arguments gets those. */
static struct json *replayed(const struct model_msg *m, const struct json *said)
{
    struct json *content = json_new_array();
    size_t k = 0;
    for (const struct json *x = json_first(said); x; x = json_next(x)) {
        struct json *block = json_dup(x);
        const bool call = strcmp(json_str_or(x, "type", ""), "tool_use") == 0;
        if (call && wire_call_changed(&m->calls[k], json_str_or(x, "name", ""), json_get(x, "input"))) {
            json_set_str(block, "name", m->calls[k].name);
            json_set(block, "input", wire_args_object(m->calls[k].args));
        }
        k += call;
        json_push(content, block);
    }
    return content;
}

static bool add_assistant(struct json *messages, const struct model_msg *m, const struct wire_request *r)
{
    struct json *said = wire_said(m, r, "anthropic");
    if (said && json_len(said) && wire_same_calls(m, said, "tool_use", "id")) {
        push_message(messages, "assistant", replayed(m, said));
        json_free(said);
        return true;
    }
    json_free(said);
    struct json *content = json_new_array();
    if (!wire_blank(m->text))
        json_push(content, text_block(m->text, false));
    for (size_t i = 0; i < m->call_n; i++) {
        struct json *block = json_new_object();
        autofree char *id = wire_id(m->calls[i].id);
        json_set_str(block, "type", "tool_use");
        json_set_str(block, "id", id);
        json_set_str(block, "name", m->calls[i].name);
        json_set(block, "input", wire_args_object(m->calls[i].args));
        json_push(content, block);
    }
    push_message(messages, "assistant", content);
    return false;
}

/* The newest message is marked, and the one that was the newest last time: what was read then is found again. */
static struct json *messages_of(const struct wire_request *r, size_t i)
{
    enum { MARKED = 2 };
    struct json *out = json_new_array();
    size_t left = count_turns(r, i);
    bool as_is = false;
    while (i < r->msg_n) {
        if (!says_something(&r->msgs[i])) {
            i++;
        } else if (is_ours(&r->msgs[i])) {
            const bool cached = left <= MARKED && !(r->quirks & WIRE_NO_CACHE);
            push_message(out, "user", user_content(r, &i, as_is, cached));
            left -= left > 0;
        } else {
            as_is = add_assistant(out, &r->msgs[i], r);
            i++;
        }
    }
    return out;
}

static void set_tools(struct json *body, const struct wire_request *r)
{
    struct json *tools = json_new_array(), *choice = json_new_object();
    for (const struct json *t = json_first(r->schema); t; t = json_next(t)) {
        struct json *tool = json_new_object();
        json_set_str(tool, "name", json_str_or(t, "name", ""));
        json_set_str(tool, "description", json_str_or(t, "description", ""));
        const struct json *parameters = json_get(t, "parameters");
        json_set(tool, "input_schema", parameters ? json_dup(parameters) : json_new_object());
        json_push(tools, tool);
    }
    json_set(body, "tools", tools);
    json_set_str(choice, "type", r->tools == MODEL_TOOLS_NONE ? "none" : "auto");
    if (r->tools == MODEL_TOOLS_AUTO && !(r->quirks & WIRE_NO_PARALLEL))
        json_set_bool(choice, "disable_parallel_tool_use", true);
    if (r->quirks & WIRE_NO_TOOL_CHOICE)
        json_free(choice);
    else
        json_set(body, "tool_choice", choice);
}

/* How much it thinks. The budget of tokens that old models want is not offered: the newest refuse it. */
static void set_thinking(struct json *body, const struct wire_request *r)
{
    struct json *thinking = json_new_object(), *output = json_new_object();
    json_set_str(thinking, "type", r->thinking == WIRE_THINK_OFF ? "disabled" : "adaptive");
    json_set_str(output, "effort", r->effort);
    if (r->thinking != WIRE_THINK_AUTO && !(r->quirks & WIRE_NO_THINK))
        json_set(body, "thinking", thinking);
    else
        json_free(thinking);
    if (r->effort && *r->effort && !(r->quirks & WIRE_NO_EFFORT))
        json_set(body, "output_config", output);
    else
        json_free(output);
}

/* What is read by the model, and so counted. */
static void set_read(struct json *body, const struct wire_request *r)
{
    size_t i = 0;
    autofree char *system = wire_system(r, &i);
    if (json_len(r->schema))
        set_tools(body, r);
    if (system) {
        struct json *blocks = json_new_array();
        json_push(blocks, text_block(system, !(r->quirks & WIRE_NO_CACHE)));
        json_set(body, "system", blocks);
    }
    json_set(body, "messages", messages_of(r, i));
    set_thinking(body, r);
}

static struct json *anthropic_count(const struct wire_request *r)
{
    struct json *body = json_new_object();
    json_set_str(body, "model", r->model);
    set_read(body, r);
    return body;
}

static struct json *anthropic_request(const struct wire_request *r)
{
    struct json *body = json_new_object();
    json_set_str(body, "model", r->model);
    json_set_int(body, "max_tokens", r->max_output);
    wire_temper(body, r);
    set_read(body, r);
    if (r->fenced && !(r->quirks & WIRE_NO_STOP)) {
        struct json *stop = json_new_array();
        json_push(stop, json_new_string("\n```\n"));
        json_set(body, "stop_sequences", stop);
    }
    if (r->stream)
        json_set_bool(body, "stream", true);
    return body;
}

/* ---- the answer ---- */

static enum wire_block_kind kind_of(const char *type)
{
    if (strcmp(type, "text") == 0)
        return WIRE_WORDS;
    if (strcmp(type, "tool_use") == 0)
        return WIRE_CALL;
    return strcmp(type, "thinking") == 0 ? WIRE_THINKING : WIRE_OTHER;
}

/* Text is cut into blocks by citations, too: only what something else stood between are paragraphs. */
static void show(struct wire_reader *r, struct wire_block *b, const char *text)
{
    const size_t at = (size_t)(b - r->blocks);
    if (!*text)
        return;
    if (!b->shown && r->words.len && at > 0 && r->blocks[at - 1].kind != WIRE_WORDS)
        wire_words(r, "\n\n");
    b->shown = true;
    str_puts(&b->text, text);
    wire_words(r, text);
}

static void begin_block(struct wire_reader *r, int64_t index, const struct json *block)
{
    if (json_type(block) != JSON_OBJECT)
        return;
    struct wire_block *b = wire_block_add(r, index, kind_of(json_str_or(block, "type", "")));
    if (!b)
        return;
    b->raw = json_dup(block);
    switch (b->kind) {
    case WIRE_WORDS: show(r, b, json_str_or(block, "text", "")); break;
    case WIRE_THINKING: str_puts(&b->text, json_str_or(block, "thinking", "")); break;
    case WIRE_CALL:
        wire_set(&b->id, json_str_or(block, "id", NULL));
        wire_set(&b->name, json_str_or(block, "name", NULL));
        if (json_len(json_get(block, "input")))
            json_print(&b->text, json_get(block, "input"));
        break;
    case WIRE_OTHER: break;
    }
}

static void add_delta(struct wire_reader *r, struct wire_block *b, const struct json *delta)
{
    const char *type = json_str_or(delta, "type", "");
    if (strcmp(type, "text_delta") == 0 && b->kind == WIRE_WORDS)
        show(r, b, json_str_or(delta, "text", ""));
    else if (strcmp(type, "input_json_delta") == 0 && b->kind == WIRE_CALL)
        wire_block_args(b, json_str_or(delta, "partial_json", ""));
    else if (strcmp(type, "thinking_delta") == 0 && b->kind == WIRE_THINKING)
        str_puts(&b->text, json_str_or(delta, "thinking", ""));
    else if (strcmp(type, "signature_delta") == 0 && json_text(json_get(delta, "signature")))
        json_set_str(b->raw, "signature", json_str_or(delta, "signature", ""));
}

/* Numbers are cumulative, and not each event has all of them. */
static void take_usage(struct wire_reader *r, const struct json *usage)
{
    static const char *const keys[] = { "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens",
                                        "output_tokens" };
    if (!r->said)
        r->said = json_new_object();
    for (size_t i = 0; i < countof(keys); i++)
        if (json_type(json_get(usage, keys[i])) == JSON_NUMBER)
            json_set_int(r->said, keys[i], json_int_or(usage, keys[i], 0));
    r->usage.cached = json_int_or(r->said, keys[2], 0);
    r->usage.in = json_int_or(r->said, keys[0], 0) + json_int_or(r->said, keys[1], 0) + r->usage.cached;
    r->usage.out = json_int_or(r->said, keys[3], 0);
}

static void take_reason(struct wire_reader *r, const char *reason)
{
    if (!*reason)
        return;
    if (strcmp(reason, "max_tokens") == 0 || strcmp(reason, "model_context_window_exceeded") == 0)
        wire_stop(r, MODEL_STOP_LENGTH);
    else
        wire_stop(r, strcmp(reason, "refusal") == 0 ? MODEL_STOP_REFUSED : MODEL_STOP_END);
}

/* Some gateways do not say where a block ends. */
static void end_blocks(struct wire_reader *r)
{
    for (size_t i = 0; i < r->block_n; i++)
        r->blocks[i].done = true;
}

/* Others do not say where words begin. */
static struct wire_block *block_of(struct wire_reader *r, int64_t index, const struct json *delta)
{
    struct wire_block *b = wire_block_find(r, index);
    const bool words = strcmp(json_str_or(delta, "type", ""), "text_delta") == 0;
    if (!words || (b && b->kind == WIRE_WORDS))
        return b;
    b = wire_block_add(r, index, WIRE_WORDS);
    if (b) {
        b->raw = json_new_object();
        json_set_str(b->raw, "type", "text");
    }
    return b;
}

static void anthropic_event(struct wire_reader *r, const char *name, const struct json *v)
{
    const char *type = json_str_or(v, "type", name);
    const int64_t index = json_int_or(v, "index", 0);
    struct wire_block *b = block_of(r, index, json_get(v, "delta"));
    if (strcmp(type, "message_start") == 0) {
        take_usage(r, json_get(json_get(v, "message"), "usage"));
    } else if (strcmp(type, "content_block_start") == 0) {
        begin_block(r, index, json_get(v, "content_block"));
    } else if (strcmp(type, "content_block_delta") == 0 && b) {
        add_delta(r, b, json_get(v, "delta"));
    } else if (strcmp(type, "content_block_stop") == 0 && b) {
        b->done = true;
    } else if (strcmp(type, "message_delta") == 0) {
        take_usage(r, json_get(v, "usage"));
        take_reason(r, json_str_or(json_get(v, "delta"), "stop_reason", ""));
    } else if (strcmp(type, "message_stop") == 0) {
        end_blocks(r);
        r->ended = true;
    } else if (strcmp(type, "error") == 0 || json_type(json_get(v, "error")) == JSON_OBJECT) {
        wire_fail(r, v);
    }
}

static void anthropic_whole(struct wire_reader *r, const struct json *v)
{
    int64_t index = 0;
    if (json_type(json_get(v, "content")) != JSON_ARRAY) {
        wire_fail(r, v);
        return;
    }
    for (const struct json *b = json_first(json_get(v, "content")); b; b = json_next(b))
        begin_block(r, index++, b);
    end_blocks(r);
    take_usage(r, json_get(v, "usage"));
    take_reason(r, json_str_or(v, "stop_reason", "end_turn"));
}

/* ---- the replay ---- */

static struct json *replay_block(const struct wire_block *b)
{
    struct json *out = json_dup(b->raw);
    switch (b->kind) {
    case WIRE_WORDS: json_set_str(out, "text", str_peek(&b->text)); break;
    case WIRE_THINKING: json_set_str(out, "thinking", str_peek(&b->text)); break;
    case WIRE_CALL:
        json_set_str(out, "id", b->id);
        json_set(out, "input", wire_args_object(str_peek(&b->text)));
        break;
    case WIRE_OTHER: break;
    }
    return out;
}

static struct json *anthropic_replay(struct wire_reader *r)
{
    struct json *content = json_new_array();
    for (size_t i = 0; i < r->block_n; i++) {
        const struct wire_block *b = &r->blocks[i];
        if (!b->done) {
            json_free(content);
            return NULL;
        }
        if (b->kind != WIRE_WORDS || !wire_blank(str_peek(&b->text)))
            json_push(content, replay_block(b));
    }
    return content;
}

const struct wire wire_anthropic = {
    .dialect = "anthropic",
    .answer = "content",
    .request = anthropic_request,
    .count = anthropic_count,
    .event = anthropic_event,
    .whole = anthropic_whole,
    .replay = anthropic_replay,
};
