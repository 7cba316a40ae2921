/* provider.c - one ask: a request, its stream, what is learned from a refusal, the answer. */
#include <stdio.h>
#include "provider.h"
#include "conf.h"
#include "fence.h"
#include "http.h"
#include "log.h"
#include "loop.h"

enum {
    TOTAL_MS = 600000,
    STALL_MS = 90000,
    STALL_PLAIN_MS = 300000, /* this machine, without a graphics card: a long prompt is read for minutes */
    REFUSAL_MAX = 64 << 10,
    LESSONS_MAX = 10,            /* requests of one ask that only teach */
    RETRY_AFTER_MAX_MS = 120000, /* longer waits are no waits */
    COUNT_MS = 15000,            /* for a count of tokens: without it the request goes out as it is */
    COUNT_BYTES_LEAST = 2,       /* of a body, a token: before the server has counted one; figures and code are dense */
    COUNT_SPARE = 64,            /* tokens between what was counted and the window */
    ANSWER_LEAST = 256           /* tokens: with less room for an answer the conversation is too long */
};

struct model {
    struct loop *loop;
    struct http *http;
    const struct wire *wire;
    const char *section; /* of the configuration, which outlives every transcript */
    char *url, *count_url, *name, *key, **headers;
    bool stream, allow_plain, native, fence; /* native, fence: as configured; neither: as it turns out */
    int64_t max_output, context;
    const char *effort; /* of the configuration */
    enum wire_think thinking;
    bool tempered, tempered_by_us; /* by_us: nobody has asked for it */
    double temperature;
    unsigned configured; /* quirks that the operator knows of */
    struct provider_memory *memory;
};

struct model_call {
    struct model *m;
    struct model_ask ask; /* what it points to is the caller's for as long as we live */
    char *cache_key;
    struct model_events ev;
    void *ud;
    struct http_call *http;
    struct wire_reader reader;
    struct fence_watch watch;
    struct fence_talk talk;
    struct str refusal; /* body of a status that is none of success */
    struct err broken;  /* kind ERR_NONE: nothing */
    unsigned quirks;
    int64_t max_output;
    size_t body_n;
    int lessons;
    bool tried_plain, counted, fenced, inside, cancelled; /* inside: a callback of the caller is on the stack */
};

/* ---- opening ---- */

static int read_key(struct model *m, const struct conf_model *section, struct err *e)
{
    if (!*section->key_file)
        return 0;
    if (conf_read_secret(&m->key, section->key_file, e) < 0)
        return err_wrap(e, "model %s", section->section);
    return 0;
}

static void provider_close(struct model *m)
{
    if (!m)
        return;
    http_free(m->http);
    provider_headers_free(m->headers);
    if (m->key)
        explicit_bzero(m->key, strlen(m->key));
    free(m->key);
    free(m->url);
    free(m->count_url);
    free(m->name);
    free(m);
}

static enum wire_think thinking_of(const char *word)
{
    return strcmp(word, "on") == 0 ? WIRE_THINK_ON : strcmp(word, "off") == 0 ? WIRE_THINK_OFF : WIRE_THINK_AUTO;
}

static unsigned role_of(const char *word)
{
    if (strcmp(word, "user") == 0)
        return WIRE_SYSTEM_AS_USER;
    return strcmp(word, "developer") == 0 ? WIRE_DEVELOPER : 0;
}

/* Models with tools are tuned by their vendors, and new ones refuse the field. Servers without tools mostly word programs by chance when
 * nothing is said. */
static void set_temperature(struct model *m, const char *word)
{
    const bool by_itself = strcmp(word, "auto") == 0;
    m->tempered_by_us = by_itself && (m->wire == &wire_chat || m->wire == &wire_ollama);
    m->tempered = *word && !by_itself;
    m->temperature = m->tempered ? strtod(word, NULL) : 0;
}

static int provider_open(struct model **out, const struct wire *w, struct loop *l, const struct conf_model *section,
                         struct err *e)
{
    struct model *m = xcalloc(1, sizeof(*m));
    *m = (struct model){
        .loop = l,
        .wire = w,
        .section = section->section,
        .url = provider_url(w, section->url, section->api_version),
        .name = xstrdup(section->name),
        .stream = section->stream,
        .allow_plain = section->allow_plain_http,
        .native = strcmp(section->tools, "native") == 0,
        .fence = strcmp(section->tools, "fence") == 0,
        .max_output = section->max_output_tokens,
        .context = section->context_tokens,
        .effort = section->effort,
        .thinking = thinking_of(section->thinking),
        .configured = role_of(section->system_role),
    };
    set_temperature(m, section->temperature);
    if (read_key(m, section, e) < 0 || http_new(&m->http, l, e) < 0) {
        provider_close(m);
        return -1;
    }
    m->headers = provider_headers(w, m->url, m->key);
    m->count_url = w->count ? provider_count_url(m->url) : NULL;
    m->memory = provider_memory_get(m->url, m->name, provider_first_quirks(w, m->url));
    *out = m;
    return 0;
}

/* ---- a call's life ---- */

static void call_reset(struct model_call *c)
{
    wire_reader_clear(&c->reader);
    fence_watch_clear(&c->watch);
    fence_talk_clear(&c->talk);
    str_clear(&c->refusal);
    c->broken = (struct err){ 0 };
}

static void call_free(struct model_call *c)
{
    call_reset(c);
    free(c->cache_key);
    free(c);
}

static void provider_cancel(struct model_call *c)
{
    if (!c)
        return;
    http_cancel(c->http);
    c->http = NULL;
    if (c->inside)
        c->cancelled = true; /* freed by whoever called the caller */
    else
        call_free(c);
}

/* ---- the request ---- */

/* All turns of a session share it: what was read for one is found by the next. "id-7" -> the hash of "id". */
static char *cache_key_of(const char *seed)
{
    const char *dash = seed ? strrchr(seed, '-') : NULL;
    const size_t n = dash ? (size_t)(dash - seed) : strlen(seed ? seed : "");
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)seed[i]) * UINT64_C(1099511628211);
    return seed && *seed ? xasprintf("sandbook-%016llx", (unsigned long long)h) : NULL;
}

static struct wire_request request_of(const struct model_call *c)
{
    const struct model *m = c->m;
    return (struct wire_request){
        .model = m->name,
        .provider = m->section,
        .msgs = c->fenced ? c->talk.msgs : c->ask.msgs,
        .msg_n = c->fenced ? c->talk.n : c->ask.msg_n,
        .schema = c->fenced ? NULL : c->ask.schema,
        .tools = c->ask.tools,
        .stream = m->stream && !(c->quirks & WIRE_NO_STREAM),
        .fenced = c->fenced && c->ask.tools == MODEL_TOOLS_AUTO,
        .max_output = c->max_output,
        .context = m->context,
        .effort = m->effort,
        .thinking = m->thinking,
        .tempered = m->tempered || (m->tempered_by_us && c->fenced),
        .temperature = m->temperature,
        .cache_key = c->cache_key,
        .quirks = c->quirks,
    };
}

static bool on_text(void *ud, const char *text, size_t n)
{
    struct model_call *c = ud;
    c->inside = true;
    if (c->ev.delta)
        c->ev.delta(c->ud, text, n);
    c->inside = false;
    if (c->cancelled)
        return false;
    return !(c->fenced && c->ask.tools == MODEL_TOOLS_AUTO && fence_watch_add(&c->watch, text, n));
}

static bool on_body(void *ud, int status, const char *data, size_t n)
{
    struct model_call *c = ud;
    if (status != 200) {
        const size_t room = REFUSAL_MAX - c->refusal.len;
        str_add(&c->refusal, data, n < room ? n : room);
        return true;
    }
    c->inside = true;
    const bool good = wire_reader_feed(&c->reader, data, n, &c->broken) == 0;
    c->inside = false;
    if (c->cancelled) {
        call_free(c);
        return false;
    }
    return good && !c->reader.enough && !c->reader.failed;
}

static void on_done(void *ud, const struct http_answer *a);
static void on_count(void *ud, const struct http_answer *a);

/* It may be longer than the window, and the server can say. */
static bool is_worth_counting(const struct model_call *c, size_t body_n)
{
    const struct provider_memory *memory = c->m->memory;
    const double bytes = memory->token_bytes > 0 ? memory->token_bytes * 0.9 : COUNT_BYTES_LEAST;
    if (!c->m->count_url || memory->uncounted || c->counted || c->m->context <= 0)
        return false;
    return (double)body_n / bytes > (double)(c->m->context - c->max_output);
}

static int ask_count(struct model_call *c, const struct wire_request *request, struct err *e)
{
    static const struct http_events events = { .done = on_count };
    AUTO(str_clear) struct str body = STR_INIT(WIRE_REQUEST_MAX);
    autojson struct json *tree = c->m->wire->count(request);
    c->counted = true;
    json_print(&body, tree);
    const struct http_request r = {
        .method = "POST",
        .url = c->m->count_url,
        .headers = (const char *const *)c->m->headers,
        .body = str_peek(&body),
        .body_n = body.len,
        .allow_plain = c->m->allow_plain,
        .tries = 1,
        .total_ms = COUNT_MS,
        .stall_ms = COUNT_MS,
        .max_bytes = REFUSAL_MAX,
    };
    return http_start(&c->http, c->m->http, &r, &events, c, e);
}

static int send_request(struct model_call *c, struct err *e)
{
    static const struct http_events events = { .body = on_body, .done = on_done };
    const struct model *m = c->m;
    AUTO(str_clear) struct str body = STR_INIT(WIRE_REQUEST_MAX);
    call_reset(c);
    c->refusal = (struct str)STR_INIT(REFUSAL_MAX);
    c->watch = (struct fence_watch)FENCE_WATCH_INIT;
    c->watch.lines = fence_lines_for(c->ask.schema);
    c->fenced = m->fence || (!m->native && (c->quirks & WIRE_FENCE));
    if (c->fenced)
        fence_talk_make(&c->talk, &c->ask);
    wire_reader_init(&c->reader, m->wire, on_text, c);
    const struct wire_request request = request_of(c);
    autojson struct json *tree = m->wire->request(&request);
    json_print(&body, tree);
    if (str_check(&body, e) < 0)
        return err_wrap(e, "the conversation");
    c->body_n = body.len;
    if (is_worth_counting(c, body.len))
        return ask_count(c, &request, e);
    const struct http_request r = {
        .method = "POST",
        .url = m->url,
        .headers = (const char *const *)m->headers,
        .body = str_peek(&body),
        .body_n = body.len,
        .allow_plain = m->allow_plain,
        .tries = 1,
        .total_ms = TOTAL_MS,
        .stall_ms = !request.stream             ? TOTAL_MS
                    : provider_is_plain(m->url) ? STALL_PLAIN_MS
                                                : STALL_MS,
        .max_bytes = SSE_STREAM_MAX,
    };
    return http_start(&c->http, m->http, &r, &events, c, e);
}

static int provider_ask(struct model_call **out, struct model *m, const struct model_ask *ask,
                        const struct model_events *ev, void *ud, struct err *e)
{
    struct model_call *c = xcalloc(1, sizeof(*c));
    const int64_t known = m->memory->max_output, wanted = ask->max_output ? ask->max_output : m->max_output;
    *c = (struct model_call){
        .m = m,
        .ask = *ask,
        .cache_key = cache_key_of(ask->seed),
        .ev = *ev,
        .ud = ud,
        .quirks = m->memory->quirks | m->configured,
        .max_output = known && known < wanted ? known : wanted,
    };
    if (send_request(c, e) < 0) {
        call_free(c);
        return -1;
    }
    *out = c;
    return 0;
}

/* ---- the end ---- */

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

static void tell_error(struct model_call *c, struct err *e)
{
    mask_key(c->m, e->msg);
    (void)err_wrap(e, "model %.60s", c->m->section);
    c->ev.done(c->ud, NULL, e);
    call_free(c);
}

static void tell_answer(struct model_call *c, struct model_answer *a)
{
    c->ev.done(c->ud, a, NULL);
    wire_answer_clear(a);
    call_free(c);
}

/* ---- counted before it is sent ---- */

static void tell_too_long(struct model_call *c, int64_t tokens)
{
    struct err e = { 0 };
    (void)err_set(&e, ERR_REFUSED, "the conversation is longer than the model's window (%lld tokens counted, %lld fit)",
                  (long long)tokens, (long long)c->m->context);
    e.sys = EMSGSIZE;
    if (c->ev.too_long)
        c->ev.too_long(c->ud, c->m->context, tokens);
    tell_error(c, &e);
}

/* What cannot be counted goes out as it is: the server will say. */
static void on_count(void *ud, const struct http_answer *a)
{
    struct model_call *c = ud;
    struct provider_memory *memory = c->m->memory;
    struct err e = { 0 }, ignored = { 0 };
    autojson struct json *v = NULL;
    c->http = NULL;
    if (!a->err && a->status == 200 && json_parse(&v, a->body ? a->body : "", a->body_n, REFUSAL_MAX, &ignored) < 0)
        memory->uncounted = true;
    const int64_t tokens = json_int_or(v, "input_tokens", 0), room = c->m->context - tokens - COUNT_SPARE;
    memory->uncounted = memory->uncounted || a->status == 400 || a->status == 404 || a->status == 405;
    log_info("tokens_counted", KV_S("model", c->m->section), KV_I("status", a->status), KV_I("tokens", tokens));
    if (tokens > 0 && tokens <= WIRE_TOKENS_MAX) {
        memory->token_bytes = (double)c->body_n / (double)tokens;
        if (room < ANSWER_LEAST || room < c->max_output / 4) {
            tell_too_long(c, tokens);
            return;
        }
        c->max_output = c->max_output < room ? c->max_output : room;
    }
    if (send_request(c, &e) < 0)
        tell_error(c, &e);
}

/* Of what was read. */
static void learn_bytes(struct model_call *c, int64_t tokens)
{
    enum { SURE_TOKENS = 500 };
    if (c->m->count_url && tokens >= SURE_TOKENS)
        c->m->memory->token_bytes = (double)c->body_n / (double)tokens;
}

static void again(struct model_call *c, const char *what)
{
    struct err e = { 0 };
    log_info("model_adapts", KV_S("model", c->m->section), KV_S("to", what));
    if (strcmp(what, "effort") == 0 || strcmp(what, "thinking") == 0 ||
        (strcmp(what, "temperature") == 0 && !c->m->tempered_by_us)) /* what was asked for is not done */
        log_warn("model_setting_refused", KV_S("model", c->m->section), KV_S("setting", what));
    if (send_request(c, &e) < 0)
        tell_error(c, &e);
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
    const struct wire_request asked = request_of(c);
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

/* By its header, else by its words. */
static long retry_ms(const struct http_answer *a, const struct wire_error *error)
{
    const int64_t asked = http_retry_after_ms(a), wait = asked > 0 ? asked : wire_error_wait_ms(error);
    return wait <= RETRY_AFTER_MAX_MS ? (long)wait : 0;
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
    const char *should = http_header(a, "x-should-retry");
    if (should && strcmp(should, "true") == 0 && !err_retryable(&e))
        e.kind = ERR_NET;
    else if (should && strcmp(should, "false") == 0 && err_retryable(&e))
        e.kind = ERR_REFUSED;
    if (e.kind == ERR_LIMIT)
        e.retry_ms = retry_ms(a, &error);
    tell_length(c, &error, &e);
    tell_error(c, &e);
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
    const struct wire_request asked = request_of(c);
    leave_reasoning_alone(c);
    const int rc = wire_reader_finish(&c->reader, &asked, &a, &e);
    if (c->cancelled) { /* by the last words */
        wire_answer_clear(&a);
        call_free(c);
        return;
    }
    if (rc < 0) {
        const struct wire_error error = c->reader.error;
        if (c->reader.failed && c->reader.events <= 1 && error.status && learn(c, &error))
            return; /* a refusal at status 200 */
        tell_length(c, &error, &e);
        tell_error(c, &e);
        return;
    }
    c->m->memory->worked = true;
    c->m->memory->quirks |= c->quirks;
    check_usage(c, &a.usage);
    learn_bytes(c, a.usage.in);
    take_program(c, &asked, &a);
    tell_answer(c, &a);
}

static void on_done(void *ud, const struct http_answer *a)
{
    struct model_call *c = ud;
    c->http = NULL;
    struct err e = { 0 };
    if (a->err && (a->status != 200 || !(wire_reader_whole(&c->reader) || c->reader.failed))) {
        e = c->broken.kind != ERR_NONE ? c->broken : *a->err;
        if (a->status == 200 && e.kind == ERR_NET)
            (void)err_wrap(&e, "the answer was cut off");
        tell_error(c, &e);
    } else if (a->status == 200) {
        finish(c);
    } else {
        refuse(c, a);
    }
}

/* ---- the dialects ---- */

static int chat_open(struct model **out, struct loop *l, const struct conf *c, const struct conf_model *section,
                     struct err *e)
{
    (void)c;
    return provider_open(out, &wire_chat, l, section, e);
}

static int responses_open(struct model **out, struct loop *l, const struct conf *c, const struct conf_model *section,
                          struct err *e)
{
    (void)c;
    return provider_open(out, &wire_responses, l, section, e);
}

static int ollama_open(struct model **out, struct loop *l, const struct conf *c, const struct conf_model *section,
                       struct err *e)
{
    (void)c;
    return provider_open(out, &wire_ollama, l, section, e);
}

static int anthropic_open(struct model **out, struct loop *l, const struct conf *c, const struct conf_model *section,
                          struct err *e)
{
    (void)c;
    return provider_open(out, &wire_anthropic, l, section, e);
}

/* clang-format off */
#define PROVIDER(word, opener) { .name = (word), .open = (opener), .ask = provider_ask, .cancel = provider_cancel, .close = provider_close }
/* clang-format on */
const struct model_ops model_openai_chat = PROVIDER("chat", chat_open);
const struct model_ops model_openai_responses = PROVIDER("responses", responses_open);
const struct model_ops model_anthropic = PROVIDER("anthropic", anthropic_open);
const struct model_ops model_ollama = PROVIDER("ollama", ollama_open);
