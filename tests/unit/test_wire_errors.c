/* Shapes of refusals that servers and gateways send: what is read of each, and what the operator reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include "wire.h"

static void errors_of_many_shapes_are_read(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *body, *message, *code, *param;
        enum err_kind kind;
        int sys;
        const char *told; /* what the operator reads of it */
    } table[] = {
        { 400, "{\"error\":\"no\"}", "no", "", "", ERR_REFUSED, 0, "refused" },
        { 400, "{\"error\":{\"message\":[\"a\",\"b\"]}}", "a", "", "", ERR_REFUSED, 0, "a" },
        { 400, "{\"message\":[\"stream_options should not exist\"],\"error\":\"Bad Request\",\"statusCode\":400}",
          "stream_options should not exist", "400", "", ERR_REFUSED, 0, "stream_options" },
        { 400, "{\"errors\":[{\"message\":\"m\",\"code\":10}]}", "m", "10", "", ERR_REFUSED, 0, "m" },
        { 400, "{\"title\":\"One or more errors.\",\"status\":400,\"errors\":{\"stream_options\":[\"is not known\"]}}",
          "is not known", "", "stream_options", ERR_REFUSED, 0, "is not known" },
        { 400, "{\"stream_options\":[\"is not known\"]}", "is not known", "", "stream_options", ERR_REFUSED, 0,
          "is not known" },
        { 400, "{\"error_code\":336,\"error_msg\":\"m\"}", "m", "336", "", ERR_REFUSED, 0, "m" },
        { 400, "{\"error\":\"invalid_request\",\"error_description\":\"m\"}", "m", "", "", ERR_REFUSED, 0, "m" },
        { 400,
          "{\"error\":{\"message\":\"{\\\"error\\\":{\\\"message\\\":\\\"deep\\\",\\\"code\\\":\\\"context_length_exceeded\\\"}}\"}}",
          "deep", "context_length_exceeded", "", ERR_REFUSED, EMSGSIZE, "deep" },
        { 400,
          "{\"error\":{\"message\":\"Provider returned error\",\"code\":400,\"metadata\":{\"raw\":\"{\\\"error\\\":{\\\"message\\\":\\\"Prompt is too long\\\"}}\"}}}",
          "Provider returned error: Prompt is too long", "400", "", ERR_REFUSED, EMSGSIZE, "too long" },
        { 403,
          "{\"error\":{\"message\":\"Provider returned error\",\"code\":403,\"metadata\":{\"raw\":{\"__kind\":\"OK\",\"data\":\"{\\\"error\\\":{\\\"code\\\":\\\"unsupported_country_region_territory\\\",\\\"message\\\":\\\"Country, region, or territory not supported\\\"}}\"}}}}",
          "Provider returned error: Country, region, or territory not supported",
          "unsupported_country_region_territory", "", ERR_CONFIG, EACCES, "region" },
        { 400, "{\"error\":{\"message\":\"{not json\"}}", "{not json", "", "", ERR_REFUSED, 0, "{not json" },
        { 400, "[[[[{\"error\":\"m\"}]]]]", "m", "", "", ERR_REFUSED, 0, "m" },
        { 400,
          "{\"error\":{\"error\":{\"error\":{\"error\":{\"error\":{\"error\":{\"error\":{\"error\":{\"message\":\"m\"}}}}}}}}}",
          "", "", "", ERR_REFUSED, 0, "refused" },
        { 401, "{\"message\":\"No API key found in request\"}", "No API key found in request", "", "", ERR_CONFIG,
          EACCES, "key_file" },
        { 403,
          "{\"error\":{\"message\":\"Project `p` does not have access to model `m`\",\"code\":\"model_not_found\"}}",
          "Project `p` does not have access to model `m`", "model_not_found", "", ERR_CONFIG, ENOENT, "check name" },
        { 403, "{\"__type\":\"AccessDeniedException\",\"Message\":\"You don't have access\"}", "You don't have access",
          "", "", ERR_CONFIG, EACCES, "rights" },
        { 403, "<html><head><title>Just a moment...</title></head></html>", "Just a moment...", "", "", ERR_CONFIG,
          EACCES, "Just a moment" },
        { 404, "{\"detail\":\"Not Found\"}", "Not Found", "", "", ERR_CONFIG, ENOENT, "/v1" },
        { 404, "{\"timestamp\":1,\"status\":404,\"error\":\"Not Found\",\"path\":\"/chat/completions\"}", "Not Found",
          "", "", ERR_CONFIG, ENOENT, "/v1" },
        { 404,
          "{\"error\":{\"message\":\"Unknown request URL: POST /chat/completions. Please check the URL for typos\",\"type\":\"invalid_request_error\",\"code\":\"unknown_url\"}}",
          "Unknown request URL: POST /chat/completions. Please check the URL for typos", "unknown_url", "", ERR_CONFIG,
          ENOENT, "check url" },
        { 404, "{\"error\":\"model 'm' not found\"}", "model 'm' not found", "", "", ERR_CONFIG, ENOENT, "check name" },
        { 404, "{\"message\":\"no Route matched with those values\"}", "no Route matched with those values", "", "",
          ERR_CONFIG, ENOENT, "/v1" },
        { 405, "{\"detail\":\"Method Not Allowed\"}", "Method Not Allowed", "", "", ERR_CONFIG, ENOENT, "check url" },
        { 400, "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>",
          "400 The plain HTTP request was sent to HTTPS port", "", "", ERR_CONFIG, ENOENT, "https" },
        { 400, "Client sent an HTTP request to an HTTPS server.\n", "Client sent an HTTP request to an HTTPS server.\n",
          "", "", ERR_CONFIG, ENOENT, "https" },
        { 400, "{\"error\":{\"message\":\"Model Not Exist\",\"type\":\"invalid_request_error\"}}", "Model Not Exist",
          "", "", ERR_CONFIG, ENOENT, "check name" },
        { 402, "{\"error\":{\"message\":\"This request requires more credits, or fewer max_tokens.\",\"code\":402}}",
          "This request requires more credits, or fewer max_tokens.", "402", "", ERR_CONFIG, EDQUOT, "credit" },
        { 407, "", "", "", "", ERR_CONFIG, EACCES, "key" },
        { 308, "", "", "", "", ERR_CONFIG, 0, "url" },
        { 429, "{\"message\":\"Too many requests\"}", "Too many requests", "", "", ERR_LIMIT, 0, "busy" },
        { 400, "{\"code\":\"Throttling.RateQuota\",\"message\":\"Requests rate limit exceeded\"}",
          "Requests rate limit exceeded", "Throttling.RateQuota", "", ERR_LIMIT, 0, "busy" },
        { 400, "{\"__type\":\"com.amazon.coral.service#ThrottlingException\",\"message\":\"wait\"}", "wait", "", "",
          ERR_LIMIT, 0, "busy" },
        { 502, "<html>\r\n<head><title>502 Bad Gateway</title></head>", "502 Bad Gateway", "", "", ERR_NET, 0,
          "502 Bad Gateway" },
        { 503, "{\"error\":{\"code\":503,\"message\":\"Loading model\",\"type\":\"unavailable_error\"}}",
          "Loading model", "503", "", ERR_NET, 0, "Loading model" },
        { 503, "{\"error\":\"Model m is currently loading\",\"estimated_time\":20.0}", "Model m is currently loading",
          "", "", ERR_NET, 0, "loading" },
        { 500, "upstream connect error or disconnect/reset before headers. reset reason: connection termination",
          "upstream connect error or disconnect/reset before headers. reset reason: connection termination", "", "",
          ERR_NET, 0, "upstream" },
        { 400, "{\"error\":{\"message\":\"`max_tokens` must be less than or equal to `8192`\"}}",
          "`max_tokens` must be less than or equal to `8192`", "", "", ERR_REFUSED, 0, "refused" },
        { 400, "{\"error\":{\"message\":\"n must be <= 1\"}}", "n must be <= 1", "", "", ERR_REFUSED, 0, "refused" },
    };
    for (size_t i = 0; i < countof(table); i++) {
        struct wire_error w;
        struct err e = { 0 };
        wire_error_read(&w, table[i].status, table[i].body, strlen(table[i].body));
        assert_int_equal(wire_error_set(&e, &w), -1);
        if (strcmp(w.message, table[i].message) != 0 || strcmp(w.code, table[i].code) != 0 ||
            strcmp(w.param, table[i].param) != 0)
            fail_msg("%s: \"%s\", code \"%s\", param \"%s\"", table[i].body, w.message, w.code, w.param);
        if (e.kind != table[i].kind || e.sys != table[i].sys || !strstr(e.msg, table[i].told))
            fail_msg("%d %s: kind %d, sys %d: %s", table[i].status, table[i].body, (int)e.kind, e.sys, e.msg);
    }
}

static void the_most_that_a_server_gives_is_read_in_its_own_words(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        int64_t room;
    } table[] = {
        { "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192 },
        { "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]", 8192 },
        { "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window`",
          8192 },
        { "The parameter max_tokens specified in the request is not valid: integer above maximum value, expected a value <= 16384, but got 32000 instead",
          16384 },
        { "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.",
          4096 },
        { "Unable to submit request because it has a maxOutputTokens value of 32000 but the supported range is from 1 (inclusive) to 8193 (exclusive).",
          8192 },
        { "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 8192 tokens and your request has 1000 input tokens (32000 > 8192 - 1000).",
          7128 },
        { "This model's maximum context length is 8192 tokens. However, you requested 32000 output tokens and your prompt contains at least 1000 input tokens, for a total of at least 33000 tokens.",
          7128 },
        { "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 1000 `inputs` tokens and 32000 `max_new_tokens`",
          3032 },
        { "This model's maximum context length is 8192 tokens. However, your messages resulted in 1000 tokens.", 0 },
        { "temperature must be at most 2", 0 },
        { "max_tokens must be at most 99999999999999999999", 0 },
    };
    for (size_t i = 0; i < countof(table); i++) {
        struct wire_error w = { .status = 400 };
        (void)snprintf(w.message, sizeof(w.message), "%s", table[i].words);
        if (wire_error_room(&w, 32000) != table[i].room)
            fail_msg("%s: %lld", table[i].words, (long long)wire_error_room(&w, 32000));
    }
}

static void a_filter_is_told_from_a_mistake(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool filtered;
    } table[] = {
        { "{\"error\":{\"code\":\"content_filter\",\"message\":\"m\",\"innererror\":{\"code\":\"ResponsibleAIPolicyViolation\"}}}",
          true },
        { "{\"error\":{\"message\":\"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.\"}}",
          true },
        { "{\"code\":\"DataInspectionFailed\",\"message\":\"Input data may contain inappropriate content.\"}", true },
        { "{\"error\":{\"code\":403,\"message\":\"m requires moderation. Your input was flagged for \\\"x\\\".\"}}",
          true },
        { "{\"error\":{\"code\":\"SensitiveContentDetected.Severe\",\"message\":\"m\"}}", true },
        { "{\"error\":{\"message\":\"content must not be null\"}}", false },
    };
    for (size_t i = 0; i < countof(table); i++) {
        struct wire_error w;
        wire_error_read(&w, 400, table[i].body, strlen(table[i].body));
        if (wire_error_filtered(&w) != table[i].filtered)
            fail_msg("%s", table[i].body);
    }
}

static void a_reset_is_read_in_every_form(void **state)
{
    (void)state;
    const int64_t now_ms = 1700000000000;
    static const struct {
        const char *text;
        int64_t ms;
    } table[] = {
        { "1", 1000 },
        { "0.5", 500 },
        { "1s", 1000 },
        { "6m0s", 360000 },
        { "1m12.5s", 72500 },
        { "350ms", 350 },
        { "1700000030", 30000 },
        { "1700000030.5", 30500 },
        { "1700000030000", 30000 },
        { "1600000000", 0 },
        { "9e300", 0 },
        { "nan", 0 },
        { "-5", 0 },
        { "0", 0 },
        { "2026-01-01T00:00:00Z", 0 },
        { "soon", 0 },
        { "", 0 },
    };
    for (size_t i = 0; i < countof(table); i++)
        if (wire_wait_ms(table[i].text, now_ms) != table[i].ms)
            fail_msg("%s: %lld", table[i].text, (long long)wire_wait_ms(table[i].text, now_ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_many_shapes_are_read),
        cmocka_unit_test(a_filter_is_told_from_a_mistake),
        cmocka_unit_test(a_reset_is_read_in_every_form),
        cmocka_unit_test(the_most_that_a_server_gives_is_read_in_its_own_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
