/* openai_responses.c - the Responses API.
 *
 * Nothing is stored at the provider: each request carries all of it, reasoning as the encrypted items that came. Items from
 * response.output_item.done are the ones that count; what was added before may be incomplete. */
#include "wire.h"

/* ---- the question ---- */

static void add_words(struct json *input, const char *role, const char *kind, const char *text)
{
    struct json *item = json_new_object(), *content = json_new_array(), *part = json_new_object();
    json_set_str(part, "type", kind);
    json_set_str(part, "text", text);
    json_push(content, part);
    json_set_str(item, "type", "message");
    json_set_str(item, "role", role);
    json_set(item, "content", content);
    json_push(input, item);
}

/* As it was said; where history has another name or other arguments, those. */
static struct json *replayed_call(const struct model_tool_call *c, const struct json *said)
{
    struct json *call = json_dup(said);
    if (wire_call_changed(c, json_str_or(said, "name", ""), json_get(said, "arguments"))) {
        json_set_str(call, "name", c->name);
        json_set_str(call, "arguments", c->args);
    }
    return call;
}

static bool add_assistant(struct json *input, const struct model_msg *m, const struct wire_request *r)
{
    autojson struct json *said = wire_said(m, r, "responses");
    if (said && wire_same_calls(m, said, "function_call", "call_id")) {
        size_t k = 0;
        for (const struct json *x = json_first(said); x; x = json_next(x))
            json_push(input, strcmp(json_str_or(x, "type", ""), "function_call") == 0 ? replayed_call(&m->calls[k++], x)
                                                                                      : json_dup(x));
        return true;
    }
    if (!wire_blank(m->text))
        add_words(input, "assistant", "output_text", m->text);
    for (size_t i = 0; i < m->call_n; i++) {
        struct json *item = json_new_object();
        autofree char *id = wire_id(m->calls[i].id);
        json_set_str(item, "type", "function_call");
        json_set_str(item, "call_id", id);
        json_set_str(item, "name", m->calls[i].name);
        json_set_str(item, "arguments", m->calls[i].args);
        json_push(input, item);
    }
    return false;
}

static void add_result(struct json *input, const struct model_msg *m, bool as_is)
{
    struct json *item = json_new_object();
    autofree char *id = as_is ? xstrdup(m->call_id) : wire_id(m->call_id);
    json_set_str(item, "type", "function_call_output");
    json_set_str(item, "call_id", id);
    json_set_str(item, "output", wire_some(m->text));
    json_push(input, item);
}

static struct json *input_of(const struct wire_request *r, size_t i)
{
    struct json *input = json_new_array();
    bool as_is = false;
    while (i < r->msg_n) {
        const struct model_msg *m = &r->msgs[i];
        if (wire_is_people(m)) {
            autofree char *text = wire_people(r, &i);
            if (!wire_blank(text))
                add_words(input, "user", "input_text", text);
            continue;
        }
        if (m->role == MODEL_TOOL)
            add_result(input, m, as_is);
        else
            as_is = add_assistant(input, m, r);
        i++;
    }
    return input;
}

static void set_tools(struct json *body, const struct wire_request *r)
{
    struct json *tools = json_new_array();
    for (const struct json *t = json_first(r->schema); t; t = json_next(t)) {
        struct json *tool = json_new_object();
        json_set_str(tool, "type", "function");
        for (const struct json *m = json_first(t); m; m = json_next(m))
            json_set(tool, json_key(m), json_dup(m));
        if (!(r->quirks & WIRE_NO_STRICT))
            json_set_bool(tool, "strict", false);
        json_push(tools, tool);
    }
    json_set(body, "tools", tools);
    if (!(r->quirks & WIRE_NO_TOOL_CHOICE))
        json_set_str(body, "tool_choice", r->tools == MODEL_TOOLS_NONE ? "none" : "auto");
    if (r->tools == MODEL_TOOLS_AUTO && !(r->quirks & WIRE_NO_PARALLEL))
        json_set_bool(body, "parallel_tool_calls", false);
}

static struct json *responses_request(const struct wire_request *r)
{
    struct json *body = json_new_object();
    size_t i = 0;
    autofree char *system = wire_system(r, &i);
    json_set_str(body, "model", r->model);
    if (system)
        json_set_str(body, "instructions", system);
    json_set(body, "input", input_of(r, i));
    if (json_len(r->schema))
        set_tools(body, r);
    if (!(r->quirks & WIRE_NO_MAX))
        json_set_int(body, "max_output_tokens", r->max_output);
    wire_temper(body, r);
    if (r->effort && *r->effort && !(r->quirks & WIRE_NO_EFFORT)) {
        struct json *reasoning = json_new_object();
        json_set_str(reasoning, "effort", r->effort);
        json_set(body, "reasoning", reasoning);
    }
    if (!(r->quirks & WIRE_NO_INCLUDE)) {
        struct json *include = json_new_array();
        json_push(include, json_new_string("reasoning.encrypted_content"));
        json_set(body, "include", include);
    }
    if (!(r->quirks & WIRE_NO_STORE))
        json_set_bool(body, "store", false);
    if (r->cache_key && !(r->quirks & WIRE_NO_CACHE))
        json_set_str(body, "prompt_cache_key", r->cache_key);
    if (r->stream)
        json_set_bool(body, "stream", true);
    return body;
}

/* ---- the answer ---- */

static enum wire_block_kind kind_of(const struct json *item)
{
    const char *type = json_str_or(item, "type", "");
    if (strcmp(type, "function_call") == 0)
        return WIRE_CALL;
    if (strcmp(type, "message") == 0)
        return WIRE_WORDS;
    return strcmp(type, "reasoning") == 0 ? WIRE_THINKING : WIRE_OTHER;
}

static struct wire_block *block_with_id(struct wire_reader *r, const char *id)
{
    for (size_t i = r->block_n; i > 0 && *id; i--)
        if (strcmp(json_str_or(r->blocks[i - 1].raw, "id", ""), id) == 0)
            return &r->blocks[i - 1];
    return NULL;
}

/* Which item of that kind an event is about: by its id, else by its index (ids may differ from event to event), else the newest that is
 * open: some servers count nothing, others count words and calls apart. NULL: none of these. */
static struct wire_block *block_meant(struct wire_reader *r, const struct json *event, const char *id,
                                      enum wire_block_kind kind)
{
    struct wire_block *named = block_with_id(r, id);
    const int64_t index = json_int_or(event, "output_index", -1);
    if (named && named->kind == kind)
        return named;
    for (size_t i = r->block_n; i > 0; i--) {
        struct wire_block *b = &r->blocks[i - 1];
        if (b->kind == kind && (index < 0 || b->slot == index) && (!b->done || (index >= 0 && !*id)))
            return b;
    }
    return NULL;
}

static struct wire_block *item_block(struct wire_reader *r, struct wire_block *b, int64_t index,
                                     const struct json *item)
{
    b = b ? b : wire_block_add(r, index, kind_of(item));
    if (!b)
        return NULL;
    json_free(b->raw);
    b->raw = json_dup(item);
    b->kind = kind_of(item);
    wire_set(&b->id, json_str_or(item, "call_id", NULL));
    wire_set(&b->name, json_str_or(item, "name", NULL));
    return b;
}

/* Two messages in one answer are two paragraphs. */
static void show(struct wire_reader *r, struct wire_block *b, const char *text)
{
    if (!*text)
        return;
    if (!b->shown && r->words.len)
        wire_words(r, "\n\n");
    b->shown = true;
    wire_words(r, text);
}

static void replace_text(struct wire_block *b, const char *text)
{
    str_clear(&b->text);
    str_puts(&b->text, text);
}

/* A message whose words did not come before. */
static void show_parts(struct wire_reader *r, struct wire_block *b, const struct json *content)
{
    const bool shown = b->shown, refused = r->refusal.len > 0;
    for (const struct json *p = json_first(content); p; p = json_next(p)) {
        if (!shown && strcmp(json_str_or(p, "type", ""), "output_text") == 0)
            show(r, b, json_str_or(p, "text", ""));
        if (!refused)
            str_puts(&r->refusal, json_str_or(p, "refusal", ""));
    }
}

static void take_item(struct wire_reader *r, struct wire_block *known, int64_t index, const struct json *item)
{
    if (json_type(item) != JSON_OBJECT)
        return;
    struct wire_block *b = item_block(r, known, index, item);
    if (!b)
        return;
    b->done = true;
    if (b->kind == WIRE_CALL && json_text(json_get(item, "arguments")))
        replace_text(b, json_str_or(item, "arguments", ""));
    if (b->kind == WIRE_WORDS)
        show_parts(r, b, json_get(item, "content"));
}

static void take_usage(struct wire_reader *r, const struct json *u)
{
    if (json_type(u) != JSON_OBJECT)
        return;
    r->usage.in = json_int_or(u, "input_tokens", 0);
    r->usage.cached = json_int_or(json_get(u, "input_tokens_details"), "cached_tokens", 0);
    r->usage.out = json_int_or(u, "output_tokens", 0);
}

/* The call of that id; "": the first that has none yet. */
static struct wire_block *call_with_id(const struct wire_reader *r, const char *id)
{
    for (size_t i = 0; i < r->block_n; i++) {
        struct wire_block *b = &r->blocks[i];
        if (b->kind == WIRE_CALL && strcmp(b->id ? b->id : "", id) == 0)
            return b;
    }
    return NULL;
}

/* All of them when nothing came before; calls that were not streamed in any case. */
static void take_items(struct wire_reader *r, const struct json *output)
{
    const bool all = r->block_n == 0;
    int64_t index = 0;
    for (const struct json *x = json_first(output); x; x = json_next(x), index++) {
        const char *call_id = json_str_or(x, "call_id", "");
        if (all || (kind_of(x) == WIRE_CALL && *call_id && !call_with_id(r, call_id)))
            take_item(r, all ? NULL : call_with_id(r, ""), index, x);
    }
}

/* The response as its last event or the whole body has it. */
static void take_end(struct wire_reader *r, const struct json *response)
{
    const char *status = json_str_or(response, "status", "completed");
    const char *reason = json_str_or(json_get(response, "incomplete_details"), "reason", "");
    take_usage(r, json_get(response, "usage"));
    take_items(r, json_get(response, "output"));
    r->ended = true;
    if (strcmp(status, "failed") == 0 || strcmp(status, "cancelled") == 0)
        wire_fail(r, json_get(response, "error") ? json_get(response, "error") : json_get(response, "status"));
    else if (strcmp(status, "incomplete") != 0)
        wire_stop(r, MODEL_STOP_END);
    else
        wire_stop(r, strcmp(reason, "content_filter") == 0 ? MODEL_STOP_REFUSED : MODEL_STOP_LENGTH);
}

/* ---- events ---- */

static void on_added(struct wire_reader *r, const struct json *v)
{
    const struct json *item = json_get(v, "item");
    if (json_type(item) == JSON_OBJECT)
        (void)item_block(r, block_with_id(r, json_str_or(item, "id", "")), json_int_or(v, "output_index", 0), item);
}

static void on_item(struct wire_reader *r, const struct json *v)
{
    const struct json *item = json_get(v, "item");
    struct wire_block *known = block_meant(r, v, json_str_or(item, "id", ""), kind_of(item));
    take_item(r, known, json_int_or(v, "output_index", 0), item);
}

/* Of a block that nobody announced, too. */
static struct wire_block *announced(struct wire_reader *r, const struct json *v, enum wire_block_kind kind)
{
    struct wire_block *b = block_meant(r, v, json_str_or(v, "item_id", ""), kind);
    return b ? b : wire_block_add(r, json_int_or(v, "output_index", 0), kind);
}

static void on_text(struct wire_reader *r, const struct json *v)
{
    struct wire_block *b = announced(r, v, WIRE_WORDS);
    if (b)
        show(r, b, json_str_or(v, "delta", ""));
}

static void on_text_done(struct wire_reader *r, const struct json *v)
{
    struct wire_block *b = announced(r, v, WIRE_WORDS);
    if (b && !b->shown)
        show(r, b, json_str_or(v, "text", ""));
}

static void on_refusal(struct wire_reader *r, const struct json *v)
{
    str_puts(&r->refusal, json_str_or(v, "delta", ""));
}

static void on_refusal_done(struct wire_reader *r, const struct json *v)
{
    if (r->refusal.len == 0)
        str_puts(&r->refusal, json_str_or(v, "refusal", ""));
}

static void on_args(struct wire_reader *r, const struct json *v)
{
    struct wire_block *b = announced(r, v, WIRE_CALL);
    if (b && b->kind == WIRE_CALL && !b->done)
        wire_block_args(b, json_str_or(v, "delta", ""));
}

static void on_args_done(struct wire_reader *r, const struct json *v)
{
    struct wire_block *b = announced(r, v, WIRE_CALL);
    if (!b || b->kind != WIRE_CALL)
        return;
    wire_set(&b->name, json_str_or(v, "name", NULL));
    if (json_text(json_get(v, "arguments")))
        replace_text(b, json_str_or(v, "arguments", ""));
}

static void on_end(struct wire_reader *r, const struct json *v)
{
    take_end(r, json_get(v, "response"));
}

static void on_failed(struct wire_reader *r, const struct json *v)
{
    const struct json *error = json_get(json_get(v, "response"), "error");
    wire_fail(r, json_type(error) == JSON_OBJECT ? error : v);
}

static void on_error(struct wire_reader *r, const struct json *v)
{
    wire_fail(r, v);
}

static const struct {
    const char *type;
    void (*on)(struct wire_reader *r, const struct json *v);
} events[] = {
    { "error", on_error },
    { "response.completed", on_end },
    { "response.failed", on_failed },
    { "response.function_call_arguments.delta", on_args },
    { "response.function_call_arguments.done", on_args_done },
    { "response.incomplete", on_end },
    { "response.output_item.added", on_added },
    { "response.output_item.done", on_item },
    { "response.output_text.delta", on_text },
    { "response.output_text.done", on_text_done },
    { "response.refusal.delta", on_refusal },
    { "response.refusal.done", on_refusal_done },
};

static void responses_event(struct wire_reader *r, const char *name, const struct json *v)
{
    const char *type = json_str_or(v, "type", name);
    for (size_t i = 0; i < countof(events); i++) {
        if (strcmp(events[i].type, type) == 0) {
            events[i].on(r, v);
            return;
        }
    }
    if (json_type(v) == JSON_ARRAY || json_type(json_get(v, "error")) == JSON_OBJECT)
        wire_fail(r, v);
}

static void responses_whole(struct wire_reader *r, const struct json *v)
{
    if (json_type(json_get(v, "output")) != JSON_ARRAY && strcmp(json_str_or(v, "status", ""), "failed") != 0)
        wire_fail(r, v);
    else
        take_end(r, v);
}

/* ---- the replay ---- */

static bool is_lost_thought(const struct wire_block *b)
{
    return b->kind == WIRE_THINKING && !json_text(json_get(b->raw, "encrypted_content"));
}

static struct json *without_id(const struct json *item)
{
    struct json *out = json_new_object();
    for (const struct json *m = json_first(item); m; m = json_next(m))
        if (strcmp(json_key(m), "id") != 0)
            json_set(out, json_key(m), json_dup(m));
    return out;
}

/* Reasoning that came without its encrypted content can't be given back: nothing is stored that its id could name. Then the
 * other items must not name theirs either, or the pair is missed. */
static struct json *responses_replay(struct wire_reader *r)
{
    bool lost = false;
    for (size_t i = 0; i < r->block_n; i++) {
        if (!r->blocks[i].done)
            return NULL;
        lost = lost || is_lost_thought(&r->blocks[i]);
    }
    struct json *items = json_new_array();
    for (size_t i = 0; i < r->block_n; i++) {
        struct wire_block *b = &r->blocks[i];
        if (is_lost_thought(b))
            continue;
        if (b->kind == WIRE_CALL)
            json_set_str(b->raw, "call_id", b->id);
        json_push(items, lost ? without_id(b->raw) : json_dup(b->raw));
    }
    return items;
}

const struct wire wire_responses = {
    .dialect = "responses",
    .answer = "output",
    .request = responses_request,
    .event = responses_event,
    .whole = responses_whole,
    .replay = responses_replay,
};
