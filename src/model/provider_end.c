/* provider_end.c - what comes of an ask: an answer, an error, or what is learned from a refusal and asked again. */
#include <errno.h>
#include <stdio.h>
#include "log.h"
#include "provider_private.h"

enum {
    LESSONS_MAX = 10,           /* requests of one ask that only teach */
    RETRY_AFTER_MAX_MS = 120000 /* longer waits are no waits */
};

/* ---- the last word ---- */

/* Also when a server repeats what it was sent. */
static void mask_key(const struct model *m, char *text)
{
    const size_t n = m->key ? strlen(m->key) : 0;
    for (char *at = n ? strstr(text, m->key) : NULL; at; at = strstr(at, m->key))
        memset(at, '*', n);
}

/* Within an answer of status 200, too. */
static void tell_length(const struct model_call *c, const struct wire_error *w, const struct err *e)
{
    if (c->ev.too_long && model_err_too_long(e))
        c->ev.too_long(c->ud, wire_error_window(w), wire_error_sent(w));
}

void provider_tell_error(struct model_call *c, struct err *e)
{
    mask_key(c->m, e->msg);
    (void)err_wrap(e, "model %.60s", c->m->section);
    c->ev.done(c->ud, NULL, e);
    provider_call_free(c);
}

static void tell_answer(struct model_call *c, struct model_answer *a)
{
    c->ev.done(c->ud, a, NULL);
    wire_answer_clear(a);
    provider_call_free(c);
}

/* ---- refusals ---- */

static void again(struct model_call *c, const char *what)
{
    struct err e = { 0 };
    log_info("model_adapts", KV_S("model", c->m->section), KV_S("to", what));
    if (strcmp(what, "effort") == 0 || strcmp(what, "thinking") == 0 ||
        (strcmp(what, "temperature") == 0 && !c->m->tempered_by_us)) /* what was asked for is not done */
        log_warn("model_setting_refused", KV_S("model", c->m->section), KV_S("setting", what));
    if (provider_send(c, &e) < 0)
        provider_tell_error(c, &e);
}

static bool has_calls(const struct model_ask *ask)
{
    for (size_t i = 0; i < ask->msg_n; i++)
        if (ask->msgs[i].call_n)
            return true;
    return false;
}

/* True when it was asked again. */
static bool learn(struct model_call *c, const struct wire_error *error)
{
    struct model *m = c->m;
    const struct wire_request asked = provider_request_of(c);
    const struct provider_sent sent = {
        .wire = m->wire,
        .quirks = c->quirks,
        .tools = json_len(asked.schema) > 0,
        .stream = asked.stream,
        .fenced = asked.fenced,
        .may_fence = !m->native && !m->fence,
        .calls = has_calls(&c->ask),
        .max_output = c->max_output,
        .tempered = asked.tempered,
    };
    const char *what = "less";
    if (c->lessons++ >= LESSONS_MAX)
        return false;
    const int64_t before = c->max_output;
    if (provider_learn(error, &sent, &c->quirks, &c->max_output, &what)) {
        m->memory->quirks |= c->tried_plain ? 0 : c->quirks;
        if (c->max_output < before && !wire_error_sent(error) && !strchr(error->message, '+'))
            m->memory->max_output = c->max_output; /* a limit of the model, not of this conversation */
    } else if (m->memory->worked || c->tried_plain || !provider_plainest(error, &c->quirks)) {
        return false;
    } else {
        c->tried_plain = true;
    }
    again(c, what);
    return true;
}

/* Where nothing else is said: until requests, or tokens, are there again. */
static int64_t reset_ms(const struct http_answer *a)
{
    static const char *const names[][2] = {
        { "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests" },
        { "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens" },
        { "x-ratelimit-remaining", "x-ratelimit-reset" },
    };
    int64_t most = 0;
    for (size_t i = 0; i < countof(names); i++) {
        const char *left = http_header(a, names[i][0]), *reset = http_header(a, names[i][1]);
        const int64_t wait = reset && (!left || strtoll(left, NULL, 10) <= 0) ? wire_wait_ms(reset, time_unix_ms()) : 0;
        most = wait > most ? wait : most;
    }
    return most;
}

/* By its header, else by its words. */
static long retry_ms(const struct http_answer *a, const struct wire_error *error)
{
    int64_t wait = http_retry_after_ms(a);
    wait = wait > 0 ? wait : wire_error_wait_ms(error);
    wait = wait > 0 ? wait : reset_ms(a);
    return wait <= RETRY_AFTER_MAX_MS ? (long)wait : 0;
}

/* Keys are changed while the program runs; some last an hour. True when it was asked again with another one. */
static bool other_key(struct model_call *c)
{
    struct model *m = c->m;
    char *before = m->key;
    struct err e = { 0 };
    if (c->tried_key || !before)
        return false;
    c->tried_key = true;
    m->key = NULL;
    if (provider_read_key(m, &e) < 0 || !m->key || strcmp(m->key, before) == 0) {
        provider_forget_key(m->key);
        m->key = before;
        return false;
    }
    provider_forget_key(before);
    provider_headers_free(m->headers);
    m->headers = provider_headers(m->wire, m->url, m->key);
    again(c, "the key that key_file holds now");
    return true;
}

static void refuse(struct model_call *c, const struct http_answer *a)
{
    struct err e = { 0 };
    struct wire_error error;
    wire_error_read(&error, a->status, str_peek(&c->refusal), c->refusal.len);
    if (a->status < 400 && http_header(a, "location"))
        (void)snprintf(error.message, sizeof(error.message), "%.500s", http_header(a, "location"));
    if (wire_error_filtered(&error)) {
        struct model_answer none = { .msg = { .role = MODEL_ASSISTANT, .text = xstrdup("") },
                                     .stop = MODEL_STOP_REFUSED };
        tell_answer(c, &none);
        return;
    }
    if (learn(c, &error))
        return;
    (void)wire_error_set(&e, &error);
    if (e.sys == EACCES && other_key(c))
        return;
    const char *should = http_header(a, "x-should-retry");
    if (should && strcmp(should, "true") == 0 && !err_retryable(&e))
        e.kind = ERR_NET;
    else if (should && strcmp(should, "false") == 0 && err_retryable(&e))
        e.kind = ERR_REFUSED;
    if (e.kind == ERR_LIMIT)
        e.retry_ms = retry_ms(a, &error);
    tell_length(c, &error, &e);
    provider_tell_error(c, &e);
}

/* ---- answers ---- */

/* Of what was read. */
static void learn_bytes(struct model_call *c, int64_t tokens)
{
    enum { SURE_TOKENS = 500 };
    if (c->m->count_url && tokens >= SURE_TOKENS)
        c->m->memory->token_bytes = (double)c->body_n / (double)tokens;
}

/* The same program at the same place of a conversation gets the same id. */
static char *fence_id(const struct model_call *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->ask.msg_n; i++)
        n += c->ask.msgs[i].call_n;
    uint32_t h = 2166136261u; /* FNV-1a */
    for (const char *s = c->ask.seed ? c->ask.seed : ""; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    return xasprintf("fence_%08x_%zu", h, n + 1);
}

/* Ollama drops the front of a conversation that does not fit, and says nothing. */
static void check_usage(const struct model_call *c, const struct model_usage *u)
{
    enum { LONG_BYTES = 16000, TOKEN_BYTES_MOST = 10 };
    if (u->in > 0 && c->body_n > LONG_BYTES && (size_t)u->in * TOKEN_BYTES_MOST < c->body_n)
        log_warn("model_lost_context", KV_S("model", c->m->section), KV_I("bytes", c->body_n), KV_I("tokens", u->in));
}

/* Some servers swallow tools and say nothing; then the model, which was told to run programs, writes them into its text. What has
 * never called a tool and does so is a model without tools. */
static void take_program(struct model_call *c, const struct wire_request *asked, struct model_answer *a)
{
    struct provider_memory *memory = c->m->memory;
    const bool native = json_len(asked->schema) > 0 && asked->tools == MODEL_TOOLS_AUTO;
    memory->called = memory->called || (native && a->msg.call_n);
    if (!asked->fenced && (!native || memory->called || c->m->native))
        return;
    autofree char *id = fence_id(c);
    fence_answer(a, asked->stream || native, c->ask.schema, id);
    fence_forget(a, c->ask.fence);
    if (native && a->msg.call_n) {
        memory->quirks |= WIRE_FENCE;
        log_info("model_adapts", KV_S("model", c->m->section), KV_S("to", "programs in its text"));
    }
}

/* Models that reason go round in circles without chance in their words. */
static void leave_reasoning_alone(struct model_call *c)
{
    const struct wire_reader *r = &c->reader;
    bool reasons = strstr(str_peek(&r->words), "</think>") != NULL;
    for (size_t i = 0; i < r->block_n && !reasons; i++)
        reasons = r->blocks[i].kind == WIRE_THINKING;
    if (reasons && c->m->tempered_by_us)
        c->m->memory->quirks |= WIRE_NO_TEMPERATURE;
}

static void finish(struct model_call *c)
{
    struct model_answer a = { 0 };
    struct err e = { 0 };
    const struct wire_request asked = provider_request_of(c);
    leave_reasoning_alone(c);
    const int rc = wire_reader_finish(&c->reader, &asked, &a, &e);
    if (c->cancelled) { /* by the last words */
        wire_answer_clear(&a);
        provider_call_free(c);
        return;
    }
    if (rc < 0) {
        const struct wire_error error = c->reader.error;
        if (c->reader.failed && c->reader.events <= 1 && error.status && learn(c, &error))
            return; /* a refusal at status 200 */
        tell_length(c, &error, &e);
        provider_tell_error(c, &e);
        return;
    }
    c->m->memory->worked = true;
    c->m->memory->quirks |= c->quirks;
    check_usage(c, &a.usage);
    learn_bytes(c, a.usage.in);
    take_program(c, &asked, &a);
    tell_answer(c, &a);
}

void provider_on_linger(void *ud)
{
    struct model_call *c = ud;
    c->linger = 0;
    http_cancel(c->http);
    c->http = NULL;
    finish(c);
}

void provider_on_done(void *ud, const struct http_answer *a)
{
    struct model_call *c = ud;
    c->http = NULL;
    struct err e = { 0 };
    if (a->err && (a->status != 200 || !(wire_reader_whole(&c->reader) || c->reader.failed))) {
        e = c->broken.kind != ERR_NONE ? c->broken : *a->err;
        if (a->status == 200 && e.kind == ERR_NET)
            (void)err_wrap(&e, "the answer was cut off");
        provider_tell_error(c, &e);
    } else if (a->status == 200) {
        finish(c);
    } else {
        refuse(c, a);
    }
}
