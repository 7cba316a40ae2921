/* transcript.c - lists of messages, their JSON, and the rules that every provider's history has to keep. */
#include "transcript.h"
#include <ctype.h>
#include <string.h>
#include "json.h"

static const char *const role_names[] = {
    [MODEL_SYSTEM] = "system",
    [MODEL_USER] = "user",
    [MODEL_ASSISTANT] = "assistant",
    [MODEL_TOOL] = "tool",
};

/* ---- owning ---- */

static void call_clear(struct model_tool_call *c)
{
    free(c->id);
    free(c->name);
    free(c->args);
    *c = (struct model_tool_call){ 0 };
}

void model_msg_clear(struct model_msg *m)
{
    for (size_t i = 0; i < m->call_n; i++)
        call_clear(&m->calls[i]);
    free(m->calls);
    free(m->text);
    free(m->call_id);
    free(m->raw);
    *m = (struct model_msg){ 0 };
}

void transcript_clear(struct transcript *t)
{
    for (size_t i = 0; i < t->n; i++)
        model_msg_clear(&t->at[i]);
    free(t->at);
    *t = (struct transcript){ 0 };
}

static struct model_msg *next_msg(struct transcript *t)
{
    t->at = xgrow(t->at, &t->cap, t->n + 1, sizeof(*t->at));
    struct model_msg *m = &t->at[t->n++];
    *m = (struct model_msg){ 0 };
    return m;
}

struct model_msg *transcript_add(struct transcript *t, enum model_role role, const char *text)
{
    struct model_msg *m = next_msg(t);
    m->role = role;
    m->text = xstrdup(text);
    return m;
}

void transcript_add_result(struct transcript *t, const char *call_id, const char *text, bool failed)
{
    struct model_msg *m = transcript_add(t, MODEL_TOOL, text);
    m->call_id = xstrdup(call_id);
    m->failed = failed;
}

void transcript_add_call(struct model_msg *m, const char *id, const char *name, const char *args)
{
    size_t cap = m->call_n;
    m->calls = xgrow(m->calls, &cap, m->call_n + 1, sizeof(*m->calls));
    m->calls[m->call_n++] = (struct model_tool_call){
        .id = xstrdup(id),
        .name = xstrdup(name),
        .args = xstrdup(args),
    };
}

void transcript_take_msg(struct transcript *t, struct model_msg *m)
{
    struct model_msg *to = next_msg(t);
    *to = *m;
    *m = (struct model_msg){ 0 };
    if (!to->text)
        to->text = xstrdup("");
}

void transcript_take(struct transcript *t, struct transcript *from)
{
    for (size_t i = 0; i < from->n; i++)
        transcript_take_msg(t, &from->at[i]);
    transcript_clear(from);
}

void transcript_copy(struct transcript *t, const struct transcript *from, size_t start, size_t end)
{
    for (size_t i = start; i < end && i < from->n; i++) {
        const struct model_msg *src = &from->at[i];
        struct model_msg *m = transcript_add(t, src->role, src->text);
        for (size_t k = 0; k < src->call_n; k++)
            transcript_add_call(m, src->calls[k].id, src->calls[k].name, src->calls[k].args);
        m->call_id = xstrdup_or_null(src->call_id);
        m->failed = src->failed;
        m->passing = src->passing;
        m->raw = xstrdup_or_null(src->raw);
        m->provider = src->provider;
    }
}

/* ---- the rules of a history ---- */

static bool is_blank(const char *text)
{
    while (*text && isspace((unsigned char)*text))
        text++;
    return *text == '\0';
}

static const struct model_msg *find_result(const struct transcript *t, size_t from, const char *id)
{
    for (size_t i = from; i < t->n && t->at[i].role == MODEL_TOOL; i++)
        if (t->at[i].call_id && strcmp(t->at[i].call_id, id) == 0)
            return &t->at[i];
    return NULL;
}

/* An assistant's message and, right behind it, one result for each of its calls, in their order. */
static void keep_assistant(struct transcript *out, struct transcript *in, size_t i, const char *gap)
{
    struct model_msg *m = &in->at[i];
    if (m->call_n == 0 && is_blank(m->text))
        return;
    transcript_take_msg(out, m);
    const size_t kept = out->n - 1;
    for (size_t k = 0; k < out->at[kept].call_n; k++) {
        autofree char *id = xstrdup(out->at[kept].calls[k].id);
        const struct model_msg *result = find_result(in, i + 1, id);
        transcript_add_result(out, id, result ? result->text : gap, result ? result->failed : true);
    }
}

static void keep_words(struct transcript *out, struct model_msg *m)
{
    struct model_msg *last = out->n ? &out->at[out->n - 1] : NULL;
    if (is_blank(m->text))
        return;
    if (m->role != MODEL_USER || !last || last->role != MODEL_USER) {
        transcript_take_msg(out, m);
        return;
    }
    char *both = xasprintf("%s\n\n%s", last->text, m->text);
    free(last->text);
    last->text = both;
}

void transcript_sanitize(struct transcript *t, const char *gap)
{
    struct transcript out = { 0 };
    for (size_t i = 0; i < t->n; i++) {
        switch (t->at[i].role) {
        case MODEL_ASSISTANT: keep_assistant(&out, t, i, gap); break;
        case MODEL_SYSTEM:
        case MODEL_USER: keep_words(&out, &t->at[i]); break;
        case MODEL_TOOL: break; /* kept with its call, or an orphan */
        }
    }
    transcript_clear(t);
    *t = out;
}

/* ---- JSON ---- */

static struct json *call_to_json(const struct model_tool_call *c)
{
    struct json *o = json_new_object();
    json_set_str(o, "id", c->id);
    json_set_str(o, "name", c->name);
    json_set_str(o, "args", c->args);
    return o;
}

static struct json *msg_to_json(const struct model_msg *m)
{
    struct json *o = json_new_object();
    json_set_str(o, "role", role_names[m->role]);
    json_set_str(o, "text", m->text);
    if (m->call_n) {
        struct json *calls = json_new_array();
        for (size_t i = 0; i < m->call_n; i++)
            json_push(calls, call_to_json(&m->calls[i]));
        json_set(o, "calls", calls);
    }
    if (m->call_id)
        json_set_str(o, "call_id", m->call_id);
    if (m->failed)
        json_set_bool(o, "failed", true);
    if (m->raw && m->provider) {
        json_set_str(o, "raw", m->raw);
        json_set_str(o, "provider", m->provider);
    }
    return o;
}

struct json *transcript_to_json(const struct transcript *t)
{
    struct json *array = json_new_array();
    for (size_t i = 0; i < t->n; i++)
        json_push(array, msg_to_json(&t->at[i]));
    return array;
}

static int role_from(const char *name, enum model_role *out, struct err *e)
{
    for (size_t i = 0; i < countof(role_names); i++) {
        if (strcmp(role_names[i], name) == 0) {
            *out = (enum model_role)i;
            return 0;
        }
    }
    return err_set(e, ERR_DATA, "transcript: unknown role \"%.40s\"", name);
}

static int calls_from_json(struct model_msg *m, const struct json *calls, struct err *e)
{
    for (const struct json *c = json_first(calls); c; c = json_next(c)) {
        const char *id = NULL, *name = NULL, *args = NULL;
        if (json_str(c, "id", &id, e) < 0 || json_str(c, "name", &name, e) < 0 || json_str(c, "args", &args, e) < 0)
            return err_wrap(e, "transcript: call");
        transcript_add_call(m, id, name, args);
    }
    return 0;
}

static int msg_from_json(struct transcript *t, const struct json *o, const char *provider, struct err *e)
{
    const char *role_name = NULL;
    enum model_role role = MODEL_USER;
    if (json_str(o, "role", &role_name, e) < 0 || role_from(role_name, &role, e) < 0)
        return err_wrap(e, "transcript");
    struct model_msg *m = transcript_add(t, role, json_str_or(o, "text", ""));
    const char *call_id = json_str_or(o, "call_id", NULL);
    if (role == MODEL_TOOL && !call_id)
        return err_set(e, ERR_DATA, "transcript: a result without its call");
    m->call_id = xstrdup_or_null(call_id);
    m->failed = json_bool_or(o, "failed", false);
    const char *raw = json_str_or(o, "raw", NULL);
    if (raw && provider && strcmp(json_str_or(o, "provider", ""), provider) == 0) {
        m->raw = xstrdup(raw);
        m->provider = provider;
    }
    return calls_from_json(m, json_get(o, "calls"), e);
}

int transcript_from_json(struct transcript *t, const struct json *array, const char *provider, struct err *e)
{
    if (json_type(array) != JSON_ARRAY)
        return err_set(e, ERR_DATA, "transcript: not an array");
    for (const struct json *o = json_first(array); o; o = json_next(o))
        if (msg_from_json(t, o, provider, e) < 0)
            return -1;
    return 0;
}
