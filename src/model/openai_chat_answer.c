/* openai_chat_answer.c - what servers of Chat Completions say, and what of it has to go back to them. */
#include <strings.h>
#include "openai_chat.h"

enum {
    SLOT_FUNCTION = 1 << 20, /* the old function_call, which has no index */
    SLOT_DETAIL = 1 << 21,   /* reasoning_details, by their index */
    SLOT_KEY = -2,           /* reasoning in words: found by its key */
};

/* ---- calls ---- */

/* An object, closed. Each byte is looked at once, however many pieces there are. */
static bool is_whole(struct wire_block *b)
{
    const char *text = str_peek(&b->text);
    for (; b->seen.at < b->text.len; b->seen.at++) {
        const char c = text[b->seen.at];
        if (b->seen.quoted && c == '\\')
            b->seen.at++; /* maybe past what has come: then the next piece begins with it */
        else if (c == '"')
            b->seen.quoted = !b->seen.quoted;
        else if (!b->seen.quoted && (c == '{' || c == '['))
            b->seen.depth++;
        else if (!b->seen.quoted && (c == '}' || c == ']') && b->seen.depth)
            b->seen.depth--;
    }
    return text[strspn(text, " \t\r\n")] == '{' && !b->seen.quoted && b->seen.depth == 0;
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

/* It says what is known of the call, and nothing new. */
static bool repeats(const struct wire_block *b, const char *name, const struct json *args)
{
    if (strcmp(b->name, name) != 0)
        return false;
    return json_type(args) != JSON_OBJECT &&
           (wire_blank(json_text(args)) || strcmp(str_peek(&b->text), json_text(args)) == 0);
}

/* By its index, else by its id, else the last one: some servers count a call's pieces otherwise than its beginning, or not at all. */
static struct wire_block *call_meant(struct wire_reader *r, int64_t slot, const char *id, const char *name)
{
    struct wire_block *b = slot >= 0 ? wire_block_find(r, slot) : NULL, *last = last_call(r);
    if (!b && *id && (slot < 0 || !*name))
        b = call_with_id(r, id);
    if (b || !last)
        return b;
    if (slot < 0 && !*id)
        return last;
    return !*name && (!*id || !last->id) && !is_whole(last) ? last : NULL;
}

/* Which call a fragment belongs to; NULL: a new one. Ollama gives all calls the index 0: an id that differs begins a new call,
 * and so does a name once the call before it is whole. */
static struct wire_block *call_of(struct wire_reader *r, int64_t slot, const char *id, const struct json *function)
{
    const char *name = json_str_or(function, "name", "");
    struct wire_block *b = call_meant(r, slot, id, name);
    if (!b || b->kind != WIRE_CALL)
        return NULL;
    if (*id && b->id && strcmp(b->id, id) != 0)
        return NULL;
    if (!*id && *name && b->name && is_whole(b) && !repeats(b, name, json_get(function, "arguments")))
        return NULL;
    return b;
}

/* Once, in pieces, or all of it again in each piece. */
static void add_name(struct wire_block *b, const char *name)
{
    enum { NAME_MAX_BYTES = 128 }; /* twice of what any server takes */
    const size_t n = strlen(b->name ? b->name : "");
    if (n == 0 || strncmp(name, b->name, n) == 0) {
        wire_set(&b->name, name);
    } else if (*name && b->text.len == 0 && n + strlen(name) < NAME_MAX_BYTES) {
        autofree char *first = b->name;
        b->name = xasprintf("%s%s", first, name);
    }
}

static void add_arguments(struct wire_block *b, const struct json *args)
{
    if (json_type(args) == JSON_STRING)
        wire_block_args(b, json_text(args));
    else if (json_type(args) == JSON_OBJECT && b->text.len == 0)
        json_print(&b->text, args);
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
    static const char *const known[] = { "index", "id", "type", "function", "name", "arguments", NULL };
    for (const struct json *m = json_first(call); m; m = json_next(m))
        if (!wire_is_one_of(json_key(m), known) && json_type(m) != JSON_NULL)
            keep_member(&b->raw, m, json_dup(m));
}

static void take_call(struct wire_reader *r, const struct json *call, bool is_new)
{
    const struct json *function = json_get(call, "function") ? json_get(call, "function") : call;
    const int64_t slot = json_int_or(call, "index", -1);
    const char *id = json_str_or(call, "id", "");
    struct wire_block *b = is_new || slot >= SLOT_FUNCTION ? NULL : call_of(r, slot, id, function);
    b = b ? b : wire_block_add(r, slot, WIRE_CALL);
    if (!b)
        return;
    if (!b->id)
        wire_set(&b->id, id);
    add_name(b, json_str_or(function, "name", ""));
    add_arguments(b, json_get(function, "arguments"));
    keep_extras(b, call);
}

static void take_calls(struct wire_reader *r, const struct json *calls, bool is_new)
{
    if (json_type(calls) == JSON_OBJECT) { /* text-generation-inference: no list */
        take_call(r, calls, is_new);
        return;
    }
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
    add_name(b, json_str_or(function, "name", ""));
    add_arguments(b, json_get(function, "arguments"));
}

/* ---- words ---- */

/* Thinking is a part of its own. */
static void take_part(struct wire_reader *r, const struct json *part)
{
    const char *type = json_str_or(part, "type", "text");
    if (json_text(part))
        wire_words(r, json_text(part));
    else if (strcmp(type, "text") == 0 || strcmp(type, "output_text") == 0)
        wire_words(r, json_str_or(part, "text", ""));
}

/* Text, a part of it, or Mistral's list of parts. */
static void take_content(struct wire_reader *r, const struct json *content)
{
    if (json_type(content) != JSON_ARRAY)
        take_part(r, content);
    else
        for (const struct json *p = json_first(content); p; p = json_next(p))
            take_part(r, p);
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

static void take_other(struct wire_reader *r, const struct json *m)
{
    static const char *const for_reading_only[] = { "role",     "obfuscation", "annotations", "audio",
                                                    "logprobs", "token_ids",   "stop_reason", "prompt_token_ids",
                                                    "images",   NULL };
    const char *key = json_key(m);
    if (strcmp(key, "reasoning_details") == 0) {
        for (const struct json *d = json_first(m); d; d = json_next(d))
            if (json_type(d) == JSON_OBJECT)
                take_detail(r, d);
    } else if (chat_is_reasoning(key) && json_type(m) == JSON_STRING) {
        struct wire_block *b = thinking_of(r, key);
        if (b)
            str_puts(&b->text, json_text(m));
    } else if (!wire_is_one_of(key, for_reading_only)) {
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

/* ---- the whole ---- */

static void take_usage(struct wire_reader *r, const struct json *u)
{
    if (json_type(u) != JSON_OBJECT)
        return;
    const int64_t hit = json_int_or(u, "prompt_cache_hit_tokens", 0); /* DeepSeek */
    r->usage.in = json_int_or(u, "prompt_tokens", 0);
    r->usage.cached = json_int_or(json_get(u, "prompt_tokens_details"), "cached_tokens", hit);
    r->usage.out = json_int_or(u, "completion_tokens", 0);
}

/* Reasons that are not the end of an answer, of all houses: "length" and "max_tokens", "content_filter" and "SAFETY". */
static bool is_reason(const char *reason, const char *const *words)
{
    for (; *words; words++)
        if (strncasecmp(reason, *words, strlen(*words)) == 0)
            return true;
    return false;
}

static void take_reason(struct wire_reader *r, const struct json *choice)
{
    static const char *const failed[] = { "error", "network_error", "insufficient_system_resource", "abort", NULL };
    static const char *const cut[] = { "length", "max_tokens", "max_output_tokens", "model_length", NULL };
    static const char *const refused[] = {
        "content_filter", "content-filter", "safety",    "recitation", "prohibited_content",
        "blocklist",      "spii",           "sensitive", "refusal",    NULL
    };
    const char *reason = json_str_or(choice, "finish_reason", "");
    if (wire_blank(reason))
        return;
    if (is_reason(reason, failed))
        wire_fail(r, json_get(choice, "error") ? choice : json_get(choice, "finish_reason"));
    else if (is_reason(reason, cut))
        wire_stop(r, MODEL_STOP_LENGTH);
    else
        wire_stop(r, is_reason(reason, refused) ? MODEL_STOP_REFUSED : MODEL_STOP_END);
}

static void take_choice(struct wire_reader *r, const struct json *choice, bool whole)
{
    const struct json *message = json_get(choice, whole ? "message" : "delta");
    if (!message)
        message = json_get(choice, whole ? "delta" : "message");
    if (json_type(message) != JSON_OBJECT)
        take_content(r, json_get(choice, "text")); /* the form of completions */
    for (const struct json *m = json_first(message); m; m = json_next(m))
        take_member(r, m, whole);
    take_usage(r, json_get(choice, "usage"));
    take_reason(r, choice);
}

static void take_body(struct wire_reader *r, const struct json *v, bool whole)
{
    const struct json *choices = json_get(v, "choices");
    take_usage(r, json_get(v, "usage"));
    take_usage(r, json_get(json_get(v, "x_groq"), "usage"));
    for (const struct json *c = json_first(choices); c; c = json_next(c))
        if (json_type(c) == JSON_OBJECT && json_int_or(c, "index", 0) == 0) {
            take_choice(r, c, whole);
            if (whole)
                break; /* a second one is another answer */
        }
}

/* Some servers never name a reason: what all of it cost stands behind the last of it. */
static bool is_bill(const struct wire_reader *r, const struct json *v)
{
    return json_type(json_get(v, "choices")) == JSON_ARRAY && !json_len(json_get(v, "choices")) &&
           json_int_or(json_get(v, "usage"), "completion_tokens", 0) > 0 && (r->words.len || r->block_n);
}

void chat_event(struct wire_reader *r, const char *name, const struct json *v)
{
    if (wire_error_is(v, wire_chat.answer) || (strcmp(name, "error") == 0 && !json_len(json_get(v, "choices")))) {
        wire_fail(r, v);
        return;
    }
    take_body(r, v, false);
    r->counted = r->counted || is_bill(r, v);
}

void chat_whole(struct wire_reader *r, const struct json *v)
{
    if (!json_len(json_get(v, "choices")))
        wire_fail(r, v); /* no answer, and maybe a word why */
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

struct json *chat_replay(struct wire_reader *r)
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
