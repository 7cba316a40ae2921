/* wire_error_read.c - the words of an error, in whatever shape they come. */
#include <stdio.h>
#include <strings.h>
#include "wire.h"

enum { NESTED_MAX = 8 }; /* errors within errors, as objects or as text */

/* Where a message stands in place of an answer, and where it may stand within an error. The first one that says something. */
static const char *const words_keys[] = { "message",       "msg",     "error_msg",  "error_message", "errorMessage",
                                          "errorMessages", "Message", "status_msg", "detail",        "errors" };
static const char *const more_keys[] = { "error_description", "description", "title", "reason", "data" };
static const char *const code_keys[] = { "code", "error_code", "errorCode", "status_code", "statusCode" };
static const char *const type_keys[] = { "type", "error_type", "__type", "status" };

static void copy(char *out, size_t size, const char *text)
{
    if (!text || !*text)
        return;
    const size_t n = utf8_cut(text, strlen(text), size - 1);
    memcpy(out, text, n);
    out[n] = '\0';
}

/* A member that is there for something. */
static bool says(const struct json *o, const char *key)
{
    const struct json *v = json_get(o, key);
    switch (json_type(v)) {
    case JSON_NULL: return false;
    case JSON_STRING: return !wire_blank(json_text(v));
    case JSON_NUMBER: return json_int_or(o, key, 1) != 0;
    case JSON_BOOL: return json_bool_or(o, key, false);
    case JSON_ARRAY:
    case JSON_OBJECT: return json_len(v) > 0;
    }
    return false;
}

/* The first of those members that says something. */
static const struct json *one_of(const struct json *o, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (says(o, keys[i]))
            return json_get(o, keys[i]);
    return NULL;
}

bool wire_error_is(const struct json *v, const char *answer)
{
    if (json_type(v) == JSON_ARRAY || says(v, "error"))
        return true;
    if (!json_bool_or(v, "success", true) || json_int_or(json_get(v, "base_resp"), "status_code", 0) != 0)
        return true; /* Cloudflare and MiniMax, at status 200 */
    return json_type(json_get(v, answer)) == JSON_NULL && one_of(v, words_keys, countof(words_keys));
}

static void read_value(struct wire_error *out, const struct json *v, int depth);

#define CODE_MAX 1e15 /* more is no code */

/* Codes are strings, numbers, or HTTP statuses. */
static void read_code(struct wire_error *out, const struct json *o)
{
    const struct json *code = one_of(o, code_keys, countof(code_keys));
    const int64_t status = json_int_or(o, "status", 0);
    const double named = json_number(code);
    int64_t number = named > -CODE_MAX && named < CODE_MAX ? (int64_t)named : 0;
    copy(out->code, sizeof(out->code), json_text(code));
    if (json_type(code) == JSON_NUMBER)
        (void)snprintf(out->code, sizeof(out->code), "%lld", (long long)number);
    number = number ? number : status;
    if (number >= 400 && number < 600 && out->status == 0)
        out->status = (int)number;
}

static void read_type(struct wire_error *out, const struct json *o)
{
    const char *azure = json_str_or(json_get(o, "innererror"), "code", NULL);
    const char *type = json_text(one_of(o, type_keys, countof(type_keys)));
    copy(out->type, sizeof(out->type), azure ? azure : type);
}

/* FastAPI: "loc":["body","stream_options"]; others: "errors":{"stream_options":["..."]} */
static void read_param(struct wire_error *out, const struct json *o)
{
    const struct json *errors = json_get(o, "errors");
    copy(out->param, sizeof(out->param), json_str_or(o, "param", NULL));
    for (const struct json *l = json_first(json_get(o, "loc")); l; l = json_next(l))
        copy(out->param, sizeof(out->param), json_text(l));
    if (json_type(errors) == JSON_OBJECT)
        copy(out->param, sizeof(out->param), json_key(json_first(errors)));
}

/* Words, or an error that a gateway passes on as text. */
/* NOLINTNEXTLINE(misc-no-recursion): NESTED_MAX ends it */
static void read_words(struct wire_error *out, const char *text, int depth)
{
    autojson struct json *inner = NULL;
    struct err ignored = { 0 };
    const char *at = text + strspn(text, " \t\r\n");
    copy(out->message, sizeof(out->message), at);
    if ((*at == '{' || *at == '[') && json_parse(&inner, at, strlen(at), WIRE_BODY_MAX, &ignored) == 0)
        read_value(out, inner, depth + 1);
}

/* OpenRouter: what the real provider said. */
/* NOLINTNEXTLINE(misc-no-recursion): NESTED_MAX ends it */
static void add_raw(struct wire_error *out, const struct json *raw, int depth)
{
    struct wire_error inner = { 0 };
    const size_t n = strlen(out->message);
    read_value(&inner, raw, depth + 1);
    copy(out->code, sizeof(out->code), inner.code);
    copy(out->type, sizeof(out->type), inner.type);
    copy(out->param, sizeof(out->param), inner.param);
    if (!*inner.message)
        return;
    (void)snprintf(out->message + n, sizeof(out->message) - n, "%s%.400s", n ? ": " : "", inner.message);
    out->message[utf8_cut(out->message, strlen(out->message), sizeof(out->message) - 1)] = '\0';
}

/* What stands within says it better than what stands around it, words better than a title. */
/* NOLINTNEXTLINE(misc-no-recursion): NESTED_MAX ends it */
static void read_object(struct wire_error *out, const struct json *o, int depth)
{
    const struct json *error = json_get(o, "error"), *words = one_of(o, words_keys, countof(words_keys));
    words = words ? words : one_of(o, more_keys, countof(more_keys));
    read_code(out, o);
    read_type(out, o);
    read_param(out, o);
    out->window = json_int_or(o, "n_ctx", out->window);
    out->sent = json_int_or(o, "n_prompt_tokens", out->sent);
    if (json_text(error))
        read_value(out, error, depth + 1);
    read_value(out, words, depth + 1);
    read_value(out, json_get(o, "base_resp"), depth + 1);
    if (!json_text(error))
        read_value(out, error, depth + 1);
    add_raw(out, json_get(json_get(o, "metadata"), "raw"), depth);
    if (*out->message || json_type(json_first(o)) != JSON_ARRAY)
        return;
    copy(out->param, sizeof(out->param), json_key(json_first(o))); /* {"stream_options":["is not known"]} */
    read_value(out, json_first(o), depth + 1);
}

/* NOLINTNEXTLINE(misc-no-recursion): NESTED_MAX ends it */
static void read_value(struct wire_error *out, const struct json *v, int depth)
{
    while (json_type(v) == JSON_ARRAY)
        v = json_first(v);
    if (depth > NESTED_MAX)
        return;
    if (json_text(v))
        read_words(out, json_text(v), depth);
    else if (json_type(v) == JSON_OBJECT)
        read_object(out, v, depth);
}

void wire_error_from(struct wire_error *out, const struct json *v)
{
    read_value(out, v, 0);
}

/* A web page says one thing that is worth a line. */
static void read_title(struct wire_error *out, const char *page)
{
    const char *from = strcasestr(page, "<title>");
    const char *end = from ? strcasestr(from, "</title>") : NULL;
    if (!end)
        return;
    from += strlen("<title>");
    (void)snprintf(out->message, sizeof(out->message), "%.*s", (int)utf8_cut(from, (size_t)(end - from), 200), from);
}

void wire_error_read(struct wire_error *out, int status, const char *body, size_t n)
{
    enum { PAGE_MAX = 4096 };
    autojson struct json *v = NULL;
    AUTO(str_clear) struct str text = STR_INIT(WIRE_BODY_MAX);
    struct err ignored = { 0 };
    *out = (struct wire_error){ .status = status };
    if (json_parse(&v, body, n, WIRE_BODY_MAX, &ignored) == 0) {
        wire_error_from(out, v);
        return;
    }
    utf8_scrub(&text, body, n < PAGE_MAX ? n : PAGE_MAX);
    const char *words = str_peek(&text) + strspn(str_peek(&text), " \t\r\n");
    if (*words == '<')
        read_title(out, words);
    else
        copy(out->message, sizeof(out->message), words);
}
