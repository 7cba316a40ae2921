/* provider.c - one ask: a request and its stream. What comes of it: provider_end.c. */
#include "provider_private.h"
#include "conf.h"
#include "log.h"

enum {
    TOTAL_MS = 600000,
    STALL_MS = 90000,
    STALL_PLAIN_MS = 300000, /* this machine, without a graphics card: a long prompt is read for minutes */
    LINGER_MS = 1000,      /* some servers do not end what is over; others may have the time that keeps a connection */
    COUNT_MS = 15000,      /* for a count of tokens: without it the request goes out as it is */
    COUNT_BYTES_LEAST = 2, /* of a body, a token: before the server has counted one; figures and code are dense */
    COUNT_SPARE = 64,      /* tokens between what was counted and the window */
    ANSWER_LEAST = 256     /* tokens: with less room for an answer the conversation is too long */
};

/* ---- opening ---- */

int provider_read_key(struct model *m, struct err *e)
{
    if (!*m->key_file)
        return 0;
    if (conf_read_secret(&m->key, m->key_file, e) < 0)
        return err_wrap(e, "model %s", m->section);
    return 0;
}

void provider_forget_key(char *key)
{
    if (key)
        explicit_bzero(key, strlen(key));
    free(key);
}

static void provider_close(struct model *m)
{
    if (!m)
        return;
    http_free(m->http);
    provider_headers_free(m->headers);
    provider_forget_key(m->key);
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
        .key_file = section->key_file,
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
    if (provider_read_key(m, e) < 0 || http_new(&m->http, l, e) < 0) {
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
    loop_cancel(c->m->loop, c->linger);
    c->linger = 0;
}

void provider_call_free(struct model_call *c)
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
        provider_call_free(c);
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

struct wire_request provider_request_of(const struct model_call *c)
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
        const size_t room = PROVIDER_REFUSAL_MAX - c->refusal.len;
        str_add(&c->refusal, data, n < room ? n : room);
        return true;
    }
    c->inside = true;
    const bool good = wire_reader_feed(&c->reader, data, n, &c->broken) == 0;
    c->inside = false;
    if (c->cancelled) {
        provider_call_free(c);
        return false;
    }
    if (c->reader.ended && !c->linger)
        c->linger = loop_after(c->m->loop, LINGER_MS, provider_on_linger, c);
    return good && !c->reader.enough && !c->reader.failed;
}

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
        .max_bytes = PROVIDER_REFUSAL_MAX,
    };
    return http_start(&c->http, c->m->http, &r, &events, c, e);
}

int provider_send(struct model_call *c, struct err *e)
{
    static const struct http_events events = { .body = on_body, .done = provider_on_done };
    const struct model *m = c->m;
    AUTO(str_clear) struct str body = STR_INIT(WIRE_REQUEST_MAX);
    call_reset(c);
    c->refusal = (struct str)STR_INIT(PROVIDER_REFUSAL_MAX);
    c->watch = (struct fence_watch)FENCE_WATCH_INIT;
    c->watch.lines = fence_lines_for(c->ask.schema);
    c->fenced = m->fence || (!m->native && (c->quirks & WIRE_FENCE));
    if (c->fenced)
        fence_talk_make(&c->talk, &c->ask);
    wire_reader_init(&c->reader, m->wire, on_text, c);
    const struct wire_request request = provider_request_of(c);
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
        .unpacks = true,
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
    if (provider_send(c, e) < 0) {
        provider_call_free(c);
        return -1;
    }
    *out = c;
    return 0;
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
    provider_tell_error(c, &e);
}

/* What cannot be counted goes out as it is: the server will say. */
static void on_count(void *ud, const struct http_answer *a)
{
    struct model_call *c = ud;
    struct provider_memory *memory = c->m->memory;
    struct err e = { 0 }, ignored = { 0 };
    autojson struct json *v = NULL;
    c->http = NULL;
    if (!a->err && a->status == 200 &&
        json_parse(&v, a->body ? a->body : "", a->body_n, PROVIDER_REFUSAL_MAX, &ignored) < 0)
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
    if (provider_send(c, &e) < 0)
        provider_tell_error(c, &e);
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
