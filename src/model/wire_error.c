/* wire_error.c - what a refusal means. Servers agree neither on shapes nor on words. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <strings.h>
#include "wire.h"

/* ---- asking ---- */

bool wire_error_says(const struct wire_error *w, const char *const *phrases)
{
    for (; *phrases; phrases++)
        if (strcasestr(w->message, *phrases) || (*w->code && strcasestr(w->code, *phrases)) ||
            (*w->type && strcasestr(w->type, *phrases)))
            return true;
    return false;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_quote(char c)
{
    return c == '\'' || c == '"' || c == '`';
}

/* "tools", "tools[0].name", "body.tools": the first or last part. */
static bool param_is(const char *param, const char *field)
{
    const size_t n = strlen(field), all = strlen(param);
    if (strncmp(param, field, n) == 0 && !is_name(param[n]))
        return true;
    return all > n && strcmp(param + all - n, field) == 0 && !is_name(param[all - n - 1]);
}

/* `stop`, 'stop', "supplied: stop", "stop: extra inputs are not permitted". */
static bool stands_out(const char *message, const char *at, size_t n)
{
    const char after = at[n];
    char before = '\0';
    if (at > message)
        before = at[-1];
    if (is_quote(before) || (before == '.' && is_quote(after)))
        return true;
    const bool first = at == message || (at - message >= 2 && at[-2] == ':');
    return first && (after == '\0' || after == ':' || after == '.' || after == ',');
}

bool wire_error_names(const struct wire_error *w, const char *field)
{
    const bool telling = strchr(field, '_') != NULL;
    const size_t n = strlen(field);
    if (param_is(w->param, field))
        return true;
    for (const char *at = w->message; (at = strstr(at, field)) != NULL; at += n) {
        if (is_name(at[n]) || (at > w->message && is_name(at[-1])))
            continue;
        if (telling || stands_out(w->message, at, n))
            return true;
    }
    return false;
}

bool wire_error_filtered(const struct wire_error *w)
{
    static const char *const words[] = { "content_filter",           "ResponsibleAIPolicyViolation",
                                         "content_policy_violation", "content management policy",
                                         "data_inspection_failed",   "DataInspectionFailed",
                                         "SensitiveContentDetected", "input was flagged",
                                         "PROHIBITED_CONTENT",       NULL };
    return wire_error_says(w, words);
}

/* "20s", "1.5 seconds", "350ms", "6m0s", "1h2m3.5s": milliseconds; 0: none of these. */
static int64_t read_wait(const char *at)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = { { "ms", 1 }, { "milli", 1 }, { "s", 1e3 }, { "m", 6e4 }, { "h", 3.6e6 } };
    double sum = 0;
    while (isdigit((unsigned char)*at)) {
        char *end = NULL;
        const double n = strtod(at, &end);
        size_t i = 0;
        end += strspn(end, " ");
        while (i < countof(units) && strncasecmp(end, units[i].unit, strlen(units[i].unit)) != 0)
            i++;
        if (i == countof(units) || !(n < 1e6))
            break;
        sum += n * units[i].ms;
        at = end + strlen(units[i].unit);
    }
    return (int64_t)sum;
}

int64_t wire_wait_ms(const char *text, int64_t now_ms)
{
    const double longest_s = 1e8, longest_epoch_s = 1e10; /* more is a point in time, in seconds, in milliseconds */
    char *end = NULL;
    const double n = strtod(text, &end);
    if (end == text || !(n > 0))
        return 0;
    if (*end)
        return read_wait(text);
    if (n < longest_s)
        return (int64_t)(n * 1000);
    const double at_ms = n < longest_epoch_s ? n * 1000 : n;
    return at_ms > (double)now_ms && at_ms < (double)now_ms * 2 ? (int64_t)at_ms - now_ms : 0;
}

static bool too_long(const struct wire_error *w)
{
    static const char *const words[] = { "context_length_exceeded",
                                         "exceed_context_size_error",
                                         "request_too_large",
                                         "maximum context length",
                                         "prompt is too long",
                                         "exceed context limit",
                                         "exceeds the context window",
                                         "exceeds the available context size",
                                         "context window exceeded",
                                         "exceeds the maximum number of tokens",
                                         "exceed context window",
                                         "exceeds the context length",
                                         "exceeds context length",
                                         "context length exceeded",
                                         "maximum prompt length",
                                         "context length of only",
                                         "context overflow",
                                         "too large for model with",
                                         "`max_new_tokens` must be <=",
                                         "`inputs` must have less than",
                                         "input is too long",
                                         "too many tokens",
                                         "range of input length should be",
                                         "exceeded model token limit",
                                         "exceeds maximum context length",
                                         "exceeds the model's maximum context",
                                         "exceeds the maximum length",
                                         "exceeds the maximum allowed length",
                                         "longer than the maximum model length",
                                         "longer than the model's context length",
                                         "longer than the context",
                                         "less than max_seq_len",
                                         "context window exceeds limit",
                                         "exceed max message tokens",
                                         "tokens too long",
                                         "prompt is longer than",
                                         "reduce the length of the messages",
                                         "model_max_prompt_tokens_exceeded",
                                         "string_above_max_length",
                                         "trop long",
                                         "zu lang",
                                         "demasiado largo",
                                         "слишком длин",
                                         "超长",
                                         "输入过长",
                                         "內容過長",
                                         "长度超过",
                                         "超出最大长度",
                                         "超过最大长度",
                                         "超出上下文",
                                         "超过上下文",
                                         "超过模型最大长度",
                                         "長すぎ",
                                         "컨텍스트 길이",
                                         NULL };
    return w->status == 413 || wire_error_says(w, words);
}

/* "Request too large ... tokens per min (TPM): Limit 6000, Requested 7012": no wait makes it fit. */
static bool too_large_at_once(const struct wire_error *w)
{
    return strcasestr(w->message, "request too large for") || strcasestr(w->message, "output tokens must be reduced");
}

static bool no_money(const struct wire_error *w)
{
    static const char *const words[] = { "insufficient_quota",
                                         "billing_error",
                                         "billing_hard_limit_reached",
                                         "billing_not_active",
                                         "credit balance",
                                         "insufficient balance",
                                         "insufficient_balance",
                                         "insufficient credits",
                                         "exceeded your current quota",
                                         "insufficient_user_quota",
                                         "insufficient account balance",
                                         "balance is not enough",
                                         "account balance is",
                                         "out of credits",
                                         "payment required",
                                         "arrearage",
                                         "overdue-payment",
                                         "余额不足",
                                         "额度不足",
                                         "欠费",
                                         NULL };
    return w->status == 402 || (wire_error_wait_ms(w) == 0 && wire_error_says(w, words));
}

/* Gemini says "quota" and "billing" of a minute's quota as well, and names the seconds to its end. */
int64_t wire_error_wait_ms(const struct wire_error *w)
{
    static const char *const phrases[] = { "try again in ",    "retry in ", "retry after ", "retry_after: ",
                                           "try again after ", "wait ",     "available in " };
    for (size_t i = 0; i < countof(phrases); i++) {
        const char *at = strcasestr(w->message, phrases[i]);
        const int64_t wait_ms = at ? read_wait(at + strlen(phrases[i])) : 0;
        if (wait_ms > 0)
            return wait_ms;
    }
    return 0;
}

static bool no_key(const struct wire_error *w)
{
    static const char *const words[] = { "invalid_api_key", "authentication_error", "unauthorized", NULL };
    return w->status == 401 || w->status == 407 || (w->status < 500 && w->status != 403 && wire_error_says(w, words));
}

static bool no_right(const struct wire_error *w)
{
    static const char *const words[] = { "permission_error", "permission_denied", "does not have access to",
                                         "unsupported_country", NULL };
    return w->status == 403 || w->status == 451 || (w->status < 500 && wire_error_says(w, words));
}

/* Also of servers that give status 200 to whatever they do not know. */
static bool no_address(const struct wire_error *w)
{
    static const char *const words[] = { "unexpected endpoint or method",
                                         "unknown request url",
                                         "invalid url (",
                                         "http request was sent to https",
                                         "http request to an https server",
                                         NULL };
    return w->status == 405 || (w->status < 500 && wire_error_says(w, words));
}

static bool no_model(const struct wire_error *w)
{
    static const char *const words[] = { "model_not_found",      "not_found_error",      "DeploymentNotFound",
                                         "has been retired",     "has been deprecated",  "has been decommissioned",
                                         "model_decommissioned", "model is deprecated",  "not a valid model",
                                         "invalid model name",   "model does not exist", "no longer available",
                                         "model not exist",      "no such model",        NULL };
    const bool of_model = strcasestr(w->message, "model") || strcasestr(w->code, "model");
    return ((w->status == 404 || w->status == 410) && of_model) || wire_error_says(w, words);
}

static bool busy(const struct wire_error *w)
{
    static const char *const words[] = { "rate_limit_error",  "rate_limit_exceeded", "overloaded",
                                         "too_many_requests", "too many requests",   "RESOURCE_EXHAUSTED",
                                         "throttling",        "rate limit reached",  NULL };
    return w->status == 429 || w->status == 529 || wire_error_says(w, words);
}

/* Within an answer there is no status: what is not known to be for good is worth another try. */
static bool theirs(const struct wire_error *w)
{
    static const char *const refusals[] = { "invalid_request_error", "invalid_prompt", NULL };
    if (w->status == 0 || w->status == 200)
        return !wire_error_says(w, refusals);
    return w->status == 408 || w->status == 409 || w->status >= 500;
}

/* ---- numbers in words ---- */

/* "131072", "131,072" */
static int64_t read_count(const char *at)
{
    int64_t n = 0;
    for (size_t digits = 0; digits < 12; at++) {
        if (isdigit((unsigned char)*at)) {
            n = 10 * n + (*at - '0');
            digits++;
        } else if (*at != ',' || !digits || !isdigit((unsigned char)at[1])) {
            break;
        }
    }
    return n;
}

/* The number behind that phrase; 0: none. */
static int64_t number_after(const char *message, const char *phrase)
{
    const char *at = strcasestr(message, phrase);
    at = at ? at + strlen(phrase) : NULL;
    while (at && *at && !isdigit((unsigned char)*at) && at[0] != '.')
        at++;
    return at ? read_count(at) : 0;
}

/* The number that ends where that phrase begins: "(4000 in the messages". */
static int64_t number_before(const char *message, const char *phrase)
{
    const char *at = strcasestr(message, phrase);
    if (!at)
        return 0;
    while (at > message && (at[-1] == ' ' || at[-1] == ')'))
        at--;
    while (at > message && (isdigit((unsigned char)at[-1]) || at[-1] == ','))
        at--;
    return read_count(at);
}

/* The first phrase that has a number: behind it, or before it where it begins with a blank. */
static int64_t number_by(const char *message, const char *const *phrases, size_t n)
{
    int64_t found = 0;
    for (size_t i = 0; i < n && found == 0; i++)
        found = *phrases[i] == ' ' ? number_before(message, phrases[i]) : number_after(message, phrases[i]);
    return found;
}

int64_t wire_error_window(const struct wire_error *w)
{
    static const char *const phrases[] = { "maximum context length is",
                                           "maximum context length of",
                                           "maximum prompt length is",
                                           "context size (",
                                           "context window of",
                                           "context length of only",
                                           "context length is only",
                                           "context length of",
                                           "tokens allowed (",
                                           "must be <=",
                                           "model's limit of",
                                           "token limit: ",
                                           "input length should be [1, ",
                                           "maximum model length of ",
                                           "model's context length (",
                                           "maximum length ",
                                           "max_seq_len (",
                                           "(TPM): Limit ",
                                           "model limit of",
                                           " maximum context length",
                                           "context limit: ",
                                           "tokens > " };
    const char *sum = strstr(w->message, "context limit: "), *most = sum ? strstr(sum, " > ") : NULL;
    if (w->window > 0)
        return w->window;
    return most ? read_count(most + 3) : number_by(w->message, phrases, countof(phrases));
}

int64_t wire_error_sent(const struct wire_error *w)
{
    static const char *const phrases[] = { "prompt contains at least",
                                           "prompt is too long:",
                                           "you requested about",
                                           "you requested",
                                           "your request has",
                                           "request contains",
                                           "request (",
                                           "messages resulted in",
                                           "token count (",
                                           "Requested tokens (",
                                           ", Requested ",
                                           "prompt_tokens (",
                                           "(length ",
                                           "The input (",
                                           "Prompt contains",
                                           "Given: ",
                                           " in the messages" };
    const int64_t messages = number_before(w->message, " in the messages");
    if (w->sent > 0)
        return w->sent;
    return messages ? messages : number_by(w->message, phrases, countof(phrases));
}

/* "173088 + 32000 > 200000" */
static int64_t room_in_sum(const char *message)
{
    long long in = 0, out = 0, all = 0;
    const char *plus = strstr(message, " + ");
    if (!plus)
        return 0;
    while (plus > message && isdigit((unsigned char)plus[-1]))
        plus--;
    if (sscanf(plus, "%lld + %lld > %lld", &in, &out, &all) != 3) // NOLINT(cert-err34-c): nonsense numbers give no room
        return 0;
    return in >= 0 && all > in ? all - in : 0;
}

/* What is left of the window, where the answer's share is what does not fit. */
static int64_t room_left(const struct wire_error *w)
{
    static const char *const shares[] = { "in the completion", "output tokens", "is too large", "max_new_tokens",
                                          NULL };
    const int64_t window = wire_error_window(w), sent = wire_error_sent(w), sum = room_in_sum(w->message);
    if (sum || !window || !sent || !wire_error_says(w, shares))
        return sum;
    return window > sent ? window - sent : 0;
}

/* What the model gives at most. */
static int64_t most_output(const struct wire_error *w)
{
    static const char *const phrases[] = {
        "supports at most",
        "of max_tokens is [1, ",
        "of max_tokens should be [1, ",
        "less than or equal to",
        "a value <=",
        "exceeds the model limit of",
        "must be at most",
        "must be <=",
        "cannot exceed",
    };
    const char *m = w->message;
    if (strcasestr(m, "which is the maximum allowed number of output tokens"))
        return number_after(m, " > ");
    if (strcasestr(m, "maxOutputTokens") && strcasestr(m, "(exclusive)"))
        return number_before(m, " (exclusive)") - 1;
    if (!strcasestr(m, "max_tokens") && !strcasestr(m, "max_completion_tokens") && !strcasestr(m, "maximum tokens"))
        return 0;
    return number_by(m, phrases, countof(phrases));
}

int64_t wire_error_room(const struct wire_error *w, int64_t asked)
{
    enum { SPARE = 64, LEAST = 256 };
    int64_t room = room_left(w);
    room -= room > SPARE ? SPARE : 0;
    room = room ? room : most_output(w);
    return room >= LEAST && room < asked ? room : 0;
}

/* ---- as ours ---- */

static int set(struct err *e, enum err_kind kind, int sys, const char *what, const struct wire_error *w)
{
    const char *code = *w->code ? w->code : w->type, *sep = *w->message && *code ? ": " : "";
    const bool told = *w->message || *code;
    if (w->status)
        (void)err_set(e, kind, "%s (HTTP %d)%s%s%s%s", what, w->status, told ? ": " : "", code, sep, w->message);
    else
        (void)err_set(e, kind, "%s%s%s%s%s", what, told ? ": " : "", code, sep, w->message);
    e->sys = sys;
    return -1;
}

int wire_error_set(struct err *e, const struct wire_error *w)
{
    if (w->status >= 300 && w->status < 400)
        return set(e, ERR_CONFIG, 0,
                   "the address leads elsewhere, where the key must not go; write where it leads into url", w);
    if (no_money(w))
        return set(e, ERR_CONFIG, EDQUOT, "the account has no credit or quota left", w);
    if (too_large_at_once(w) || (w->status != 429 && too_long(w)))
        return set(e, ERR_REFUSED, EMSGSIZE, "the conversation is longer than the model's window", w);
    if (busy(w))
        return set(e, ERR_LIMIT, 0, "the model's server is busy", w);
    if (no_key(w))
        return set(e, ERR_CONFIG, EACCES, "the key is missing or not accepted; check key_file", w);
    if (no_address(w))
        return set(e, ERR_CONFIG, ENOENT, "no model answers at this address; check url (https? does it end in /v1?)",
                   w);
    if (no_model(w))
        return set(e, ERR_CONFIG, ENOENT, "there is no such model; check name", w);
    if (no_right(w))
        return set(e, ERR_CONFIG, EACCES, "the key may not do this; check its rights, the model's name and the region",
                   w);
    if (w->status == 404 || w->status == 410)
        return set(e, ERR_CONFIG, ENOENT, "no such model or address; check name and url (does it end in /v1?)", w);
    if (theirs(w))
        return set(e, ERR_NET, 0, "the model's server failed", w);
    return set(e, ERR_REFUSED, 0, "the request was refused", w);
}
