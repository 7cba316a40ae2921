/* Addresses and headers, what refusals mean, and what they teach. Whole conversations: tests/providers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <errno.h>
#include "provider.h"

/* ---- addresses ---- */

static void addresses_are_completed_only_where_something_is_missing(void **state)
{
    (void)state;
    static const struct {
        const struct wire *wire;
        const char *base, *url, *version;
    } table[] = {
        { &wire_chat, "http://127.0.0.1:8015/v1", "http://127.0.0.1:8015/v1/chat/completions", NULL },
        { &wire_chat, "http://127.0.0.1:8015/v1//", "http://127.0.0.1:8015/v1/chat/completions", NULL },
        { &wire_chat, "https://h/v1/chat/completions", "https://h/v1/chat/completions", NULL },
        { &wire_chat, "https://api.openai.com", "https://api.openai.com/v1/chat/completions", NULL },
        { &wire_chat, "https://generativelanguage.googleapis.com/v1beta/openai",
          "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions", NULL },
        { &wire_responses, "https://api.openai.com/v1", "https://api.openai.com/v1/responses", NULL },
        { &wire_anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages", NULL },
        { &wire_anthropic, "https://api.anthropic.com/v1", "https://api.anthropic.com/v1/messages", NULL },
        { &wire_anthropic, "https://gateway/anthropic", "https://gateway/anthropic/v1/messages", NULL },
        { &wire_chat, "https://x.openai.azure.com", "https://x.openai.azure.com/openai/v1/chat/completions", NULL },
        { &wire_responses, "https://x.openai.azure.com/openai/v1", "https://x.openai.azure.com/openai/v1/responses",
          NULL },
        { &wire_chat, "https://x.openai.azure.com/openai/deployments/d",
          "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21", NULL },
        { &wire_chat, "https://x.openai.azure.com/openai/deployments/d",
          "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2025-04-01-preview",
          "2025-04-01-preview" },
        { &wire_responses, "https://x.openai.azure.com",
          "https://x.openai.azure.com/openai/v1/responses?api-version=preview", "preview" },
        { &wire_ollama, "http://127.0.0.1:11434", "http://127.0.0.1:11434/api/chat", NULL },
        { &wire_ollama, "http://127.0.0.1:11434/", "http://127.0.0.1:11434/api/chat", NULL },
        { &wire_ollama, "http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/api/chat", NULL },
        { &wire_ollama, "http://127.0.0.1:11434/api", "http://127.0.0.1:11434/api/chat", NULL },
        { &wire_ollama, "http://127.0.0.1:11434/api/chat", "http://127.0.0.1:11434/api/chat", NULL },
    };
    for (size_t i = 0; i < countof(table); i++) {
        autofree char *url = provider_url(table[i].wire, table[i].base, table[i].version ? table[i].version : "");
        assert_string_equal(url, table[i].url);
    }
}

static void the_key_goes_into_the_header_that_the_server_reads(void **state)
{
    (void)state;
    static const struct {
        const struct wire *wire;
        const char *url, *key, *line;
    } table[] = {
        { &wire_chat, "https://h/v1", "k", "Authorization: Bearer k" },
        { &wire_responses, "https://h/v1", "k", "Authorization: Bearer k" },
        { &wire_anthropic, "https://h/v1", "k", "x-api-key: k" },
        { &wire_anthropic, "https://h/v1", "sk-ant-oat01-k", "Authorization: Bearer sk-ant-oat01-k" },
        { &wire_chat, "https://x.openai.azure.com/openai/v1", "k", "api-key: k" },
        { &wire_chat, "https://azure.com.evil.example/v1", "k", "Authorization: Bearer k" },
        { &wire_chat, "https://notazure.com/v1", "k", "Authorization: Bearer k" },
        { &wire_chat, "https://h/v1", NULL, NULL },
    };
    for (size_t i = 0; i < countof(table); i++) {
        char **lines = provider_headers(table[i].wire, table[i].url, table[i].key);
        size_t n = 0, keys = 0;
        bool version = false;
        for (; lines[n]; n++) {
            keys += table[i].line && strcmp(lines[n], table[i].line) == 0;
            version = version || strcmp(lines[n], "anthropic-version: 2023-06-01") == 0;
        }
        assert_int_equal(keys, table[i].line ? 1 : 0);
        assert_int_equal(version, table[i].wire == &wire_anthropic);
        assert_int_equal(n, 2u + keys + version);
        provider_headers_free(lines);
    }
}

static void only_known_hosts_are_asked_in_the_new_way_at_once(void **state)
{
    (void)state;
    assert_int_equal(provider_first_quirks(&wire_chat, "https://api.openai.com/v1"), WIRE_MAX_COMPLETION);
    assert_int_equal(provider_first_quirks(&wire_chat, "https://x.openai.azure.com/openai/v1"), WIRE_MAX_COMPLETION);
    assert_int_equal(provider_first_quirks(&wire_chat, "http://127.0.0.1:1/v1"), 0);
    assert_int_equal(provider_first_quirks(&wire_anthropic, "https://api.openai.com/v1"), 0);
}

/* ---- what refusals mean ---- */

#define PLAIN(words) "{\"error\":{\"message\":\"" words "\"}}"

static struct wire_error read_error(int status, const char *body)
{
    struct wire_error error;
    wire_error_read(&error, status, body, strlen(body));
    return error;
}

static void bodies_of_every_shape_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *body, *message, *code, *param;
    } table[] = {
        { "{\"error\":{\"message\":\"m\",\"type\":\"t\",\"param\":\"p\",\"code\":\"c\"}}", "m", "c", "p" },
        { "{\"type\":\"error\",\"error\":{\"type\":\"t\",\"message\":\"m\"},\"request_id\":\"r\"}", "m", "", "" },
        { "{\"error\":\"m\"}", "m", "", "" },
        { "[{\"error\":{\"code\":400,\"message\":\"m\",\"status\":\"INVALID_ARGUMENT\"}}]", "m", "400", "" },
        { "{\"object\":\"error\",\"message\":\"m\",\"type\":\"t\",\"param\":null,\"code\":40}", "m", "40", "" },
        { "{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"p\"],\"msg\":\"m\"}]}", "m", "", "p" },
        { "{\"object\":\"error\",\"message\":{\"detail\":[{\"loc\":[\"body\",\"p\"],\"msg\":\"m\"}]}}", "m", "", "p" },
        { "{\"detail\":\"m\"}", "m", "", "" },
        { "{\"error\":{\"message\":\"a\",\"code\":400,\"metadata\":{\"raw\":\"b\"}}}", "a: b", "400", "" },
        { "plain words", "plain words", "", "" },
        { "<html>no</html>", "", "", "" },
        { "", "", "", "" },
    };
    for (size_t i = 0; i < countof(table); i++) {
        const struct wire_error e = read_error(400, table[i].body);
        assert_string_equal(e.message, table[i].message);
        assert_string_equal(e.code, table[i].code);
        assert_string_equal(e.param, table[i].param);
    }
}

static void each_refusal_has_its_kind(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *body;
        enum err_kind kind;
        int sys;
    } table[] = {
        { 401, "{\"error\":{\"code\":\"invalid_api_key\",\"message\":\"Incorrect API key\"}}", ERR_CONFIG, EACCES },
        { 403, "{\"error\":{\"type\":\"permission_error\"}}", ERR_CONFIG, EACCES },
        { 402, "{\"error\":{\"message\":\"Insufficient credits\",\"code\":402}}", ERR_CONFIG, EDQUOT },
        { 429, "{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"You exceeded your current quota\"}}",
          ERR_CONFIG, EDQUOT },
        { 400,
          "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Your credit balance is too low\"}}",
          ERR_CONFIG, EDQUOT },
        { 404, "{\"error\":{\"code\":\"model_not_found\"}}", ERR_CONFIG, ENOENT },
        { 404, "404 page not found", ERR_CONFIG, ENOENT },
        { 302, "", ERR_CONFIG, 0 },
        { 429, "{\"error\":{\"code\":\"rate_limit_exceeded\"}}", ERR_LIMIT, 0 },
        { 529, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}", ERR_LIMIT,
          0 },
        { 500, "{\"error\":\"model runner has stopped\"}", ERR_NET, 0 },
        { 503, "", ERR_NET, 0 },
        { 408, "", ERR_NET, 0 },
        { 400, "{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"m\"}}", ERR_REFUSED, EMSGSIZE },
        { 400, "{\"object\":\"error\",\"message\":\"This model's maximum context length is 4096 tokens.\"}",
          ERR_REFUSED, EMSGSIZE },
        { 400,
          "{\"error\":{\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":9,\"n_ctx\":5,\"code\":400,\"message\":\"m\"}}",
          ERR_REFUSED, EMSGSIZE },
        { 400,
          "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 9 > 5\"}}",
          ERR_REFUSED, EMSGSIZE },
        { 413, "{\"type\":\"error\",\"error\":{\"type\":\"request_too_large\"}}", ERR_REFUSED, EMSGSIZE },
        { 400, "{\"error\":{\"message\":\"Invalid value\"}}", ERR_REFUSED, 0 },
        { 422, "", ERR_REFUSED, 0 },
        /* the same things in other words, and in other languages */
        { 400, PLAIN("Range of input length should be [1, 30720]"), ERR_REFUSED, EMSGSIZE },
        { 400, PLAIN("Invalid request: Your request exceeded model token limit: 8192"), ERR_REFUSED, EMSGSIZE },
        { 400, PLAIN("The decoder prompt (length 5000) is longer than the maximum model length of 4096."), ERR_REFUSED,
          EMSGSIZE },
        { 400, PLAIN("length of prompt_tokens (40000) must be less than max_seq_len (32768)."), ERR_REFUSED, EMSGSIZE },
        { 400, "{\"error\":{\"code\":\"1261\",\"message\":\"Prompt 超长\"}}", ERR_REFUSED, EMSGSIZE },
        { 400, PLAIN("输入长度超过限制"), ERR_REFUSED, EMSGSIZE },
        { 400, PLAIN("Die Anfrage ist zu lang."), ERR_REFUSED, EMSGSIZE },
        { 400, PLAIN("La requête est trop longue pour le contexte."), ERR_REFUSED, EMSGSIZE },
        { 429, PLAIN("Request too large for m on tokens per min (TPM): Limit 6000, Requested 7012."), ERR_REFUSED,
          EMSGSIZE },
        { 429, PLAIN("Rate limit reached for m on tokens per min. Please try again in 1.2s."), ERR_LIMIT, 0 },
        { 429,
          "{\"error\":{\"code\":429,\"message\":\"You exceeded your current quota, please check your plan and billing "
          "details. Please retry in 23.5s.\",\"status\":\"RESOURCE_EXHAUSTED\"}}",
          ERR_LIMIT, 0 },
        { 403, "{\"error\":{\"code\":\"insufficient_user_quota\",\"message\":\"no\"}}", ERR_CONFIG, EDQUOT },
        { 429, "{\"error\":{\"code\":\"1113\",\"message\":\"您的账户余额不足，请充值\"}}", ERR_CONFIG, EDQUOT },
        { 400, "{\"code\":\"Arrearage\",\"message\":\"Access denied\"}", ERR_CONFIG, EDQUOT },
        { 403, "<html>Forbidden</html>", ERR_CONFIG, EACCES },
        { 410, PLAIN("The model m has been retired"), ERR_CONFIG, ENOENT },
        { 400, PLAIN("The model `m` has been deprecated"), ERR_CONFIG, ENOENT },
        { 400, PLAIN("m is not a valid model ID"), ERR_CONFIG, ENOENT },
        { 0, "{\"error\":{\"code\":502,\"message\":\"provider disconnected\"}}", ERR_NET, 0 },
        { 0, "{\"error\":{\"type\":\"overloaded_error\"}}", ERR_LIMIT, 0 },
        { 0, "{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"m\"}}", ERR_REFUSED, 0 },
    };
    for (size_t i = 0; i < countof(table); i++) {
        struct err e = { 0 };
        const struct wire_error error = read_error(table[i].status, table[i].body);
        assert_int_equal(wire_error_set(&e, &error), -1);
        if (e.kind != table[i].kind || e.sys != table[i].sys)
            fail_msg("%d %s: %s", table[i].status, table[i].body, e.msg);
        assert_int_equal(model_err_too_long(&e), e.sys == EMSGSIZE);
        assert_true(*e.msg);
    }
}

static void the_wait_is_read_from_words_too(void **state)
{
    static const struct {
        const char *words;
        int64_t ms;
    } table[] = {
        { "Rate limit reached. Please try again in 20s. Visit ...", 20000 },
        { "Please try again in 1.2s.", 1200 },
        { "Please try again in 350ms.", 350 },
        { "Please try again in 6m0s.", 360000 },
        { "try again in 1h2m3.5s", 3723500 },
        { "Please retry in 23.456789s.", 23456 },
        { "Please wait 5 seconds before the next call", 5000 },
        { "try again in 2 minutes", 120000 },
        { "try again in 30", 0 },
        { "try again in -5s", 0 },
        { "try again in 99999999999999999999s", 0 },
        { "try again in a while", 0 },
        { "", 0 },
    };
    (void)state;
    for (size_t i = 0; i < countof(table); i++) {
        struct wire_error e = { .status = 429 };
        (void)snprintf(e.message, sizeof(e.message), "%s", table[i].words);
        assert_int_equal(wire_error_wait_ms(&e), table[i].ms);
    }
}

/* ---- what refusals teach ---- */

#define OPENAI(words, field)                                                                      \
    "{\"error\":{\"message\":\"" words "\",\"type\":\"invalid_request_error\",\"param\":\"" field \
    "\",\"code\":\"unsupported_parameter\"}}"

static const struct lesson {
    const struct wire *wire;
    int status;
    const char *body;
    unsigned before, learned; /* 0: nothing */
} lessons[] = {
    { &wire_chat, 400,
      OPENAI(
          "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
          "max_tokens"),
      0, WIRE_MAX_COMPLETION },
    { &wire_chat, 400, PLAIN("Unrecognized request argument supplied: max_completion_tokens"), WIRE_MAX_COMPLETION,
      WIRE_NO_MAX },
    { &wire_chat, 400, PLAIN("Unrecognized request argument supplied: stream_options"), 0, WIRE_NO_STREAM_OPTIONS },
    { &wire_chat, 422,
      "{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"parallel_tool_calls\"],\"msg\":\"Extra inputs are not permitted\"}]}",
      0, WIRE_NO_PARALLEL },
    { &wire_chat, 400, PLAIN("property 'prompt_cache_key' is unsupported"), 0, WIRE_NO_CACHE },
    { &wire_chat, 400,
      OPENAI(
          "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
          "temperature"),
      0, WIRE_NO_TEMPERATURE },
    { &wire_anthropic, 400, PLAIN("`temperature` is deprecated for this model."), 0, WIRE_NO_TEMPERATURE },
    { &wire_anthropic, 400, PLAIN("`temperature` may only be set to 1 when thinking is enabled."), 0,
      WIRE_NO_TEMPERATURE },
    { &wire_chat, 400, OPENAI("Unsupported parameter: 'stop' is not supported with this model.", "stop"), 0,
      WIRE_NO_STOP },
    { &wire_chat, 400, OPENAI("Your organization must be verified to stream this model.", "stream"), 0,
      WIRE_NO_STREAM },
    { &wire_chat, 400,
      PLAIN(
          "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead."),
      0, WIRE_EFFORT_NONE },
    { &wire_chat, 400, PLAIN("Unsupported value: 'messages[0].role' does not support 'system' with this model."), 0,
      WIRE_DEVELOPER },
    { &wire_chat, 400, PLAIN("'messages[0].role' does not support 'developer' with this model."), WIRE_DEVELOPER,
      WIRE_SYSTEM_AS_USER },
    { &wire_chat, 400, PLAIN("System role not supported"), 0, WIRE_SYSTEM_AS_USER },
    { &wire_chat, 400, PLAIN("The `reasoning_content` in the thinking mode must be passed back to the API."), 0,
      WIRE_REASONING_ALWAYS },
    { &wire_chat, 400, PLAIN("reasoning_content: Extra inputs are not permitted"), 0, WIRE_REASONING_NEVER },
    { &wire_chat, 400, PLAIN("messages: content must not be null"), 0, WIRE_EMPTY_CONTENT },
    { &wire_chat, 500,
      "{\"error\":{\"code\":500,\"message\":\"tools param requires --jinja flag\",\"type\":\"server_error\"}}", 0,
      WIRE_FENCE },
    { &wire_chat, 400,
      "{\"object\":\"error\",\"message\":\"\\\"auto\\\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set\",\"type\":\"BadRequestError\"}",
      0, WIRE_FENCE },
    { &wire_chat, 400, PLAIN("registry.ollama.ai/library/x:latest does not support tools"), 0, WIRE_FENCE },
    { &wire_chat, 404, PLAIN("No endpoints found that support tool use."), 0, WIRE_FENCE },
    { &wire_chat, 500, PLAIN("Unsupported param: tools"), 0, WIRE_FENCE },
    { &wire_responses, 400, OPENAI("Encrypted content is not supported with this model.", "include"), 0,
      WIRE_NO_INCLUDE },
    { &wire_chat, 400, PLAIN("This model doesn't support tool use in streaming mode."), 0, WIRE_NO_STREAM },
    { &wire_chat, 400, PLAIN("Conversation roles must alternate user/assistant/user/assistant/..."), 0,
      WIRE_SYSTEM_AS_USER },
    { &wire_chat, 400, PLAIN("Conversation roles must alternate user/assistant/user/assistant/..."),
      WIRE_SYSTEM_AS_USER, WIRE_FENCE },
    { &wire_chat, 400, PLAIN("thinking is enabled but reasoning_content is missing in assistant tool call message"), 0,
      WIRE_REASONING_ALWAYS },
    { &wire_anthropic, 500, PLAIN("Incompatible tool choice param submitted - {'type': 'none'}"), 0,
      WIRE_NO_TOOL_CHOICE },
    { &wire_chat, 400, PLAIN("Model m does not support parameter reasoningEffort."), 0, WIRE_NO_EFFORT },
    { &wire_chat, 400,
      PLAIN("Invalid JSON payload received. Unknown name \\\"parallel_tool_calls\\\": Cannot find field."), 0,
      WIRE_NO_PARALLEL },
    { &wire_chat, 422, "{\"parallel_tool_calls\":[\"unknown field\"]}", 0, WIRE_NO_PARALLEL },
    { &wire_responses, 400, PLAIN("store: Extra inputs are not permitted"), 0, WIRE_NO_STORE },
    { &wire_anthropic, 400, PLAIN("messages.0.content.0.text.cache_control: Extra inputs are not permitted"), 0,
      WIRE_NO_CACHE },
    /* nothing to be learned */
    { &wire_chat, 400, PLAIN("Invalid value"), 0, 0 },
    { &wire_chat, 400, PLAIN("Please stop sending this"), 0, 0 },
    { &wire_chat, 401, PLAIN("'tools' are for others"), 0, 0 },
    { &wire_chat, 429, PLAIN("'stream' is busy"), 0, 0 },
    { &wire_chat, 500, PLAIN("stream_options broke us"), 0, 0 },
    { &wire_anthropic, 400, PLAIN("input length and `max_tokens` exceed context limit: 199990 + 32000 > 200000"), 0,
      0 },
    { &wire_chat, 400, PLAIN("Unrecognized request argument supplied: stream_options"), WIRE_NO_STREAM_OPTIONS, 0 },
};

static void a_refusal_teaches_what_it_names_and_only_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < countof(lessons); i++) {
        const struct lesson *l = &lessons[i];
        const struct wire_error error = read_error(l->status, l->body);
        const struct provider_sent sent = { l->wire, l->before, true, true, true, true, true, 32000, true };
        unsigned quirks = 0;
        int64_t max_output = 0;
        const char *what = NULL;
        const bool learned = provider_learn(&error, &sent, &quirks, &max_output, &what);
        if (learned != (l->learned != 0) || (learned && quirks != (l->before | l->learned)))
            fail_msg("%s: %d %x", l->body, learned, quirks);
        const struct provider_sent again = { l->wire, quirks, true, true, true, true, true, 32000, true };
        if (learned && provider_learn(&error, &again, &quirks, &max_output, &what))
            assert_int_not_equal(quirks, again.quirks);
    }
}

static void tools_are_given_up_only_where_that_is_allowed(void **state)
{
    (void)state;
    const struct wire_error error = read_error(400, PLAIN("x does not support tools"));
    const struct provider_sent sent = { .wire = &wire_chat, .tools = true, .may_fence = false };
    unsigned quirks = 0;
    int64_t max_output = 0;
    const char *what = NULL;
    assert_false(provider_learn(&error, &sent, &quirks, &max_output, &what));
}

static void room_for_an_answer_is_read_from_the_refusal(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        int64_t room;
    } table[] = {
        { "input length and `max_tokens` exceed context limit: 173088 + 32000 > 200000, decrease", 26848 },
        { "This model's maximum context length is 4096 tokens. However, you requested 35000 tokens (3000 in the messages, 32000 in the completion).",
          1032 },
        { "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.",
          16384 },
        { "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude", 8192 },
        { "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens (5000 in the messages, 4000 in the completion).",
          0 },
        { "1 + 1 > 99999999999999999999999", 0 },
        { "maximum context length is 1 (99999999999999999999999 in the messages)", 0 },
        { "a + b > c", 0 },
        { "", 0 },
    };
    for (size_t i = 0; i < countof(table); i++) {
        struct wire_error e = { .status = 400 };
        (void)strncpy(e.message, table[i].words, sizeof(e.message) - 1);
        assert_int_equal(wire_error_room(&e, 32000), table[i].room);
    }
}

static void the_window_is_read_from_a_refusal_for_length(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        int64_t window, sent;
    } table[] = {
        { PLAIN("This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens."),
          4096, 5000 },
        { PLAIN(
              "This model's maximum context length is 32,768 tokens. However, you requested 41,000 tokens (40,000 in the messages, 1000 in "
              "the completion)."),
          32768, 40000 },
        { PLAIN("This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens."),
          32768, 40000 },
        { "{\"error\":{\"code\":400,\"type\":\"exceed_context_size_error\",\"message\":\"the request exceeds the available context size\","
          "\"n_prompt_tokens\":9000,\"n_ctx\":8192}}",
          8192, 9000 },
        { "{\"error\":{\"message\":\"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it\"}}",
          8192, 9000 },
        { PLAIN("prompt is too long: 250000 tokens > 200000 maximum"), 200000, 250000 },
        { PLAIN("Range of input length should be [1, 30720]"), 30720, 0 },
        { PLAIN("Your request exceeded model token limit: 8192"), 8192, 0 },
        { PLAIN("The decoder prompt (length 5000) is longer than the maximum model length of 4096."), 4096, 5000 },
        { PLAIN("length of prompt_tokens (40000) must be less than max_seq_len (32768)."), 32768, 40000 },
        { PLAIN("Request too large for m on tokens per min (TPM): Limit 6000, Requested 7012."), 6000, 7012 },
        { PLAIN("The input (5000 tokens) is longer than the model's context length (4096 tokens)."), 4096, 5000 },
        { PLAIN("input length and `max_tokens` exceed context limit: 173088 + 32000 > 200000, decrease"), 200000, 0 },
        { PLAIN("The input token count (1048999) exceeds the maximum number of tokens allowed (1048575)."), 1048575,
          1048999 },
        { PLAIN("Prompt contains 40000 tokens, too large for model with 32768 maximum context length"), 32768, 40000 },
        { PLAIN("Requested tokens (9000) exceed context window of 8192"), 8192, 9000 },
        { PLAIN("This model's maximum prompt length is 131072 but the request contains 150000 tokens."), 131072,
          150000 },
        { PLAIN(
              "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 500 `max_new_tokens`"),
          4096, 4000 },
        { PLAIN(
              "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only "
              "4096 tokens"),
          4096, 0 },
        { PLAIN("Your input exceeds the context window of this model."), 0, 0 },
        { PLAIN("context_length_exceeded"), 0, 0 },
    };
    for (size_t i = 0; i < countof(table); i++) {
        struct err e = { 0 };
        const struct wire_error error = read_error(400, table[i].body);
        (void)wire_error_set(&e, &error);
        if (!model_err_too_long(&e) || wire_error_window(&error) != table[i].window ||
            wire_error_sent(&error) != table[i].sent)
            fail_msg("%s: window %lld, sent %lld, %s", table[i].body, (long long)wire_error_window(&error),
                     (long long)wire_error_sent(&error), e.msg);
    }
}

static void a_server_that_never_answered_is_asked_once_as_plainly_as_can_be(void **state)
{
    (void)state;
    const struct wire_error vague = read_error(400, PLAIN("Bad request"));
    const struct wire_error key = read_error(401, PLAIN("No"));
    const struct wire_error filtered = read_error(400, "{\"error\":{\"code\":\"content_filter\",\"message\":\"no\"}}");
    unsigned quirks = 0;
    assert_false(provider_plainest(&key, &quirks));
    assert_false(provider_plainest(&filtered, &quirks));
    assert_true(provider_plainest(&vague, &quirks));
    assert_true(quirks & WIRE_NO_CACHE);
    assert_false(provider_plainest(&vague, &quirks));
}

static void what_was_learned_belongs_to_an_address_and_a_model(void **state)
{
    (void)state;
    struct provider_memory *a = provider_memory_get("u", "m", 0);
    a->quirks = WIRE_FENCE;
    assert_ptr_equal(provider_memory_get("u", "m", WIRE_NO_MAX), a);
    assert_int_equal(provider_memory_get("u", "n", 0)->quirks, 0);
    assert_int_equal(provider_memory_get("v", "m", WIRE_NO_MAX)->quirks, WIRE_NO_MAX);
    provider_memory_forget();
    assert_int_equal(provider_memory_get("u", "m", 0)->quirks, 0);
    provider_memory_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_completed_only_where_something_is_missing),
        cmocka_unit_test(the_key_goes_into_the_header_that_the_server_reads),
        cmocka_unit_test(only_known_hosts_are_asked_in_the_new_way_at_once),
        cmocka_unit_test(bodies_of_every_shape_are_read),
        cmocka_unit_test(each_refusal_has_its_kind),
        cmocka_unit_test(the_wait_is_read_from_words_too),
        cmocka_unit_test(a_refusal_teaches_what_it_names_and_only_once),
        cmocka_unit_test(tools_are_given_up_only_where_that_is_allowed),
        cmocka_unit_test(room_for_an_answer_is_read_from_the_refusal),
        cmocka_unit_test(the_window_is_read_from_a_refusal_for_length),
        cmocka_unit_test(a_server_that_never_answered_is_asked_once_as_plainly_as_can_be),
        cmocka_unit_test(what_was_learned_belongs_to_an_address_and_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
