/* wire.c - reading an answer, in whatever form it comes; and what the builders share. */
#include "wire.h"
#include <ctype.h>
#include <stdio.h>
#include <strings.h>

enum { HEAD_MAX = 160 }; /* bytes of what may be no answer at all */

/* ---- small ---- */

bool wire_blank(const char *text)
{
    while (text && *text && isspace((unsigned char)*text))
        text++;
    return !text || !*text;
}

bool wire_is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(*words, word) != 0)
        words++;
    return *words;
}

const char *wire_some(const char *text)
{
    return wire_blank(text) ? "(nothing)" : text;
}

void wire_set(char **field, const char *text)
{
    if (!text || !*text)
        return;
    free(*field);
    *field = xstrdup(text);
}

static uint64_t hash(const char *text)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return h;
}

char *wire_id(const char *id)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const size_t n = strlen(id);
    if (n > 0 && n <= 40 && strspn(id, good) == n)
        return xstrdup(id);
    return xasprintf("call_%016llx", (unsigned long long)hash(id));
}

struct json *wire_args_object(const char *args)
{
    autojson struct json *v = NULL;
    struct err ignored = { 0 };
    if (args && json_parse(&v, args, strlen(args), WIRE_TEXT_MAX, &ignored) == 0 && json_type(v) == JSON_OBJECT)
        return take(v);
    return json_new_object();
}

/* ---- the reader's parts ---- */

void wire_fail(struct wire_reader *r, const struct json *v)
{
    if (r->failed)
        return;
    r->failed = true;
    r->error = (struct wire_error){ 0 };
    wire_error_from(&r->error, v);
}

void wire_fail_words(struct wire_reader *r, const char *words)
{
    if (r->failed)
        return;
    r->failed = true;
    r->error = (struct wire_error){ 0 };
    (void)snprintf(r->error.message, sizeof(r->error.message), "%s", words);
}

void wire_stop(struct wire_reader *r, enum model_stop stop)
{
    if (!r->stopped)
        r->stop = stop;
    r->stopped = true;
}

struct wire_block *wire_block_find(struct wire_reader *r, int64_t slot)
{
    for (size_t i = r->block_n; i > 0; i--)
        if (r->blocks[i - 1].slot == slot)
            return &r->blocks[i - 1];
    return NULL;
}

struct wire_block *wire_block_add(struct wire_reader *r, int64_t slot, enum wire_block_kind kind)
{
    if (r->block_n >= WIRE_BLOCKS_MAX) {
        wire_fail_words(r, "the answer has too many parts");
        return NULL;
    }
    r->blocks = xgrow(r->blocks, &r->block_cap, r->block_n + 1, sizeof(*r->blocks));
    struct wire_block *b = &r->blocks[r->block_n++];
    *b = (struct wire_block){ .slot = slot, .kind = kind, .text = STR_INIT(WIRE_TEXT_MAX) };
    return b;
}

void wire_block_args(struct wire_block *b, const char *text)
{
    const size_t n = strlen(text), so_far = b->text.len - b->again;
    const bool begins_anew = so_far && n >= so_far && memcmp(str_peek(&b->text) + b->again, text, so_far) == 0;
    const bool was_nothing = strcmp(str_peek(&b->text), "{}") == 0; /* in place of what is still to come */
    if (begins_anew || was_nothing)
        b->again = b->text.len;
    str_add(&b->text, text, n);
}

/* ---- events that are not quite JSON ---- */

static bool parse(struct json **out, const char *data, size_t n)
{
    struct err ignored = { 0 };
    return json_parse(out, data, n, SSE_EVENT_MAX, &ignored) == 0;
}

static void take_json(struct wire_reader *r, const char *name, const struct json *v)
{
    r->events++;
    if (json_type(v) == JSON_OBJECT || json_type(v) == JSON_ARRAY)
        r->wire->event(r, name, v);
}

static bool take_text(struct wire_reader *r, const char *name, const char *data, size_t n)
{
    autojson struct json *v = NULL;
    if (!parse(&v, data, n)) {
        size_t clean_n = 0;
        autofree char *clean = wire_mend(data, n, &clean_n);
        if (!parse(&v, clean, clean_n))
            return false;
    }
    take_json(r, name, v);
    return true;
}

/* A proxy lost the line ends between two events. */
static bool take_glued(struct wire_reader *r, const char *name, const char *data, size_t n)
{
    const char *glue = memmem(data, n, "}data:", 6);
    bool all = glue != NULL;
    while (all && glue) {
        const size_t len = (size_t)(glue + 1 - data);
        all = take_text(r, name, data, len);
        data += len + 5;
        n -= len + 5;
        glue = memmem(data, n, "}data:", 6);
    }
    while (n && isspace((unsigned char)*data)) {
        data++;
        n--;
    }
    return all && (take_text(r, name, data, n) || strncmp(data, "[DONE]", 6) == 0);
}

static bool is_done(const char *data)
{
    static const char mark[] = "[DONE]";
    data += strspn(data, " \t");
    return strncmp(data, mark, strlen(mark)) == 0 && wire_blank(data + strlen(mark));
}

/* Signs of life, in words. */
static bool is_pulse(const char *name, const char *data)
{
    static const char *const words[] = { "ping", "keepalive", "keep-alive", "heartbeat", "[keepalive]", "[heartbeat]" };
    for (size_t i = 0; i < countof(words); i++)
        if (strcasecmp(name, words[i]) == 0 || strcasecmp(data, words[i]) == 0)
            return true;
    return false;
}

/* What a proxy adds behind the end is no part of the answer. */
static bool on_event(void *ud, const char *name, const char *data, size_t n)
{
    struct wire_reader *r = ud;
    if (is_done(data) && r->events)
        r->ended = true;
    if (r->ended)
        return false;
    if (is_done(data) || wire_blank(data))
        return true;
    if (!take_text(r, name, data, n) && !take_glued(r, name, data, n) && !is_pulse(name, data)) {
        wire_fail_words(r, "the stream holds something that is not JSON: ");
        const size_t at = strlen(r->error.message);
        (void)snprintf(r->error.message + at, sizeof(r->error.message) - at, "%.*s",
                       (int)utf8_cut(data, strlen(data), 100), data);
    }
    return !r->failed && !r->enough;
}

/* ---- the reader ---- */

void wire_reader_init(struct wire_reader *r, const struct wire *w, wire_text_fn *text, void *ud)
{
    *r = (struct wire_reader){
        .wire = w,
        .body = STR_INIT(WIRE_BODY_MAX),
        .words = STR_INIT(WIRE_TEXT_MAX),
        .refusal = STR_INIT(WIRE_TEXT_MAX),
        .text = text,
        .ud = ud,
    };
    sse_init(&r->sse, w->lines ? SSE_LINES : SSE_EVENTS, on_event, r);
}

void wire_reader_clear(struct wire_reader *r)
{
    for (size_t i = 0; i < r->block_n; i++) {
        free(r->blocks[i].id);
        free(r->blocks[i].name);
        str_clear(&r->blocks[i].text);
        json_free(r->blocks[i].raw);
    }
    free(r->blocks);
    json_free(r->said);
    sse_clear(&r->sse);
    str_clear(&r->body);
    str_clear(&r->words);
    str_clear(&r->refusal);
    *r = (struct wire_reader){ 0 };
}

/* The first byte that says something decides; servers answer plainly when asked for a stream, and the other way round. */
static size_t sniff(struct wire_reader *r, const char *data, size_t n)
{
    size_t skip = 0;
    while (skip < n && strchr(" \t\r\n\xef\xbb\xbf", data[skip]))
        skip++;
    if (skip < n && r->wire->lines && data[skip] == '{')
        r->form = WIRE_STREAM;
    else if (skip < n)
        r->form = strchr("{[<\"", data[skip]) ? WIRE_BODY : WIRE_STREAM;
    return skip;
}

int wire_reader_feed(struct wire_reader *r, const char *data, size_t n, struct err *e)
{
    if (r->form == WIRE_SNIFF) {
        const size_t skip = sniff(r, data, n);
        data += skip;
        n -= skip;
    }
    if (r->form == WIRE_STREAM) {
        const size_t room = r->events == 0 && r->body.len < HEAD_MAX ? HEAD_MAX - r->body.len : 0;
        str_add(&r->body, data, n < room ? n : room);
        return sse_feed(&r->sse, data, n, e);
    }
    str_add(&r->body, data, n);
    return str_check(&r->body, e);
}

static void read_whole(struct wire_reader *r, const struct json *v)
{
    r->ended = true;
    r->events++;
    if (json_type(v) == JSON_ARRAY)
        v = json_first(v);
    if (wire_error_is(v, r->wire->answer))
        wire_fail(r, v);
    else
        r->wire->whole(r, v);
}

/* A body: one value, or a value a line. */
static int read_body(struct wire_reader *r, struct err *e)
{
    autojson struct json *v = NULL;
    struct err ignored = { 0 };
    if (json_parse(&v, str_peek(&r->body), r->body.len, WIRE_BODY_MAX, &ignored) == 0) {
        read_whole(r, v);
        return 0;
    }
    if (*str_peek(&r->body) == '<')
        return err_set(e, ERR_CONFIG, "the address gives a web page, not an answer; check url (does it end in /v1?)");
    sse_clear(&r->sse);
    sse_init(&r->sse, SSE_LINES, on_event, r);
    if (sse_feed(&r->sse, str_peek(&r->body), r->body.len, e) < 0)
        return -1;
    return sse_finish(&r->sse, e);
}

bool wire_reader_whole(const struct wire_reader *r)
{
    return !r->failed && (r->ended || r->stopped || r->counted || r->enough);
}

/* What has come in place of one, when it is words. */
static int no_answer(const struct wire_reader *r, struct err *e)
{
    AUTO(str_clear) struct str words = STR_INIT(WIRE_TEXT_MAX);
    utf8_scrub(&words, str_peek(&r->body), r->body.len);
    if (wire_blank(str_peek(&words)))
        return err_set(e, ERR_NET, "the answer is empty");
    return err_set(e, ERR_NET, "this is no answer: %s", str_peek(&words));
}

static int check_end(struct wire_reader *r, struct err *e)
{
    if (r->form == WIRE_BODY && read_body(r, e) < 0)
        return -1;
    if (r->form == WIRE_STREAM && sse_finish(&r->sse, e) < 0)
        return -1;
    if (r->failed)
        return wire_error_set(e, &r->error);
    for (size_t i = 0; i < r->block_n; i++)
        if (r->blocks[i].text.overflow)
            return err_set(e, ERR_DATA, "one call is longer than %d bytes", WIRE_TEXT_MAX);
    if (r->events == 0)
        return no_answer(r, e);
    if (!wire_reader_whole(r))
        return err_set(e, ERR_NET, "the answer was cut off before its end");
    return 0;
}

/* ---- the answer ---- */

static bool id_taken(const struct wire_request *ask, const struct wire_reader *r, const char *id)
{
    for (size_t i = 0; i < ask->msg_n; i++)
        for (size_t k = 0; k < ask->msgs[i].call_n; k++)
            if (strcmp(ask->msgs[i].calls[k].id, id) == 0)
                return true;
    for (size_t i = 0; i < r->block_n; i++)
        if (r->blocks[i].id && strcmp(r->blocks[i].id, id) == 0)
            return true;
    return false;
}

/* Not by chance: the same conversation gets the same ids again. */
static char *new_id(const struct wire_request *ask, const struct wire_reader *r)
{
    char *id = NULL;
    for (size_t n = ask->msg_n;; n++) {
        id = xasprintf("call_%08x_%zu", (unsigned)hash(ask->cache_key ? ask->cache_key : ""), n);
        if (!id_taken(ask, r, id))
            return id;
        free(id);
    }
}

/* Some servers give none, or the same one to all. */
static void give_ids(struct wire_reader *r, const struct wire_request *ask)
{
    for (size_t i = 0; i < r->block_n; i++) {
        struct wire_block *b = &r->blocks[i];
        if (b->kind != WIRE_CALL)
            continue;
        bool twice = !b->id;
        for (size_t k = 0; k < i && !twice; k++)
            twice = r->blocks[k].id && strcmp(r->blocks[k].id, b->id) == 0;
        if (!twice)
            continue;
        char *id = new_id(ask, r);
        free(b->id);
        b->id = id;
    }
}

static void settle_args(struct wire_reader *r)
{
    for (size_t i = 0; i < r->block_n; i++) {
        struct wire_block *b = &r->blocks[i];
        autojson struct json *whole = NULL, *last = NULL;
        if (b->again && !parse(&whole, str_peek(&b->text), b->text.len) &&
            parse(&last, str_peek(&b->text) + b->again, b->text.len - b->again))
            str_drop(&b->text, b->again);
        b->again = 0;
    }
}

/* One way to write what parses, so that nobody takes other blanks for another call; what does not parse stays as it is. */
static char *args_text(const struct wire_block *b)
{
    autojson struct json *v = NULL;
    AUTO(str_clear) struct str text = STR_INIT(SIZE_MAX);
    if (wire_blank(str_peek(&b->text)))
        return xstrdup("{}");
    if (!parse(&v, str_peek(&b->text), b->text.len) || json_type(v) != JSON_OBJECT)
        return xstrdup(str_peek(&b->text));
    json_print(&text, v);
    return str_take(&text);
}

static void fill_calls(struct model_msg *m, const struct wire_reader *r)
{
    m->calls = xcalloc(r->block_n + 1, sizeof(*m->calls));
    for (size_t i = 0; i < r->block_n; i++) {
        const struct wire_block *b = &r->blocks[i];
        if (b->kind != WIRE_CALL)
            continue;
        m->calls[m->call_n++] = (struct model_tool_call){
            .id = xstrdup(b->id),
            .name = xstrdup(b->name ? b->name : ""),
            .args = args_text(b),
        };
    }
}

/* Only what ended well is worth a replay: half a thought is refused. */
static void fill_raw(struct model_msg *m, struct wire_reader *r, const struct wire_request *ask)
{
    AUTO(str_clear) struct str text = STR_INIT(WIRE_RAW_MAX);
    autojson struct json *o = json_new_object();
    struct json *said = r->wire->replay(r);
    if (!said)
        return;
    json_set_str(o, "dialect", r->wire->dialect);
    json_set_str(o, "model", ask->model);
    json_set(o, "said", said);
    json_print(&text, o);
    if (text.overflow)
        return;
    m->raw = str_take(&text);
    m->provider = ask->provider;
}

/* Servers report nonsense as well. What is negative or beyond any window is not reported; more read back than sent there cannot be. */
static struct model_usage usage_of(const struct wire_reader *r)
{
    struct model_usage u = r->usage;
    int64_t *const all[] = { &u.in, &u.cached, &u.out };
    for (size_t i = 0; i < countof(all); i++)
        if (*all[i] < 0 || *all[i] > WIRE_TOKENS_MAX)
            *all[i] = 0;
    u.cached = u.cached < u.in ? u.cached : u.in;
    return u;
}

int wire_reader_finish(struct wire_reader *r, const struct wire_request *ask, struct model_answer *out, struct err *e)
{
    if (check_end(r, e) < 0)
        return -1;
    settle_args(r);
    give_ids(r, ask);
    *out = (struct model_answer){
        .msg = { .role = MODEL_ASSISTANT, .text = wire_visible(r) },
        .stop = r->refusal.len ? MODEL_STOP_REFUSED : r->stop,
        .usage = usage_of(r),
    };
    if (wire_blank(out->msg.text) && r->refusal.len) {
        free(out->msg.text);
        out->msg.text = xstrdup(str_peek(&r->refusal));
    }
    fill_calls(&out->msg, r);
    if (out->stop == MODEL_STOP_END && !r->enough)
        fill_raw(&out->msg, r, ask);
    return 0;
}

void wire_answer_clear(struct model_answer *a)
{
    for (size_t i = 0; i < a->msg.call_n; i++) {
        free(a->msg.calls[i].id);
        free(a->msg.calls[i].name);
        free(a->msg.calls[i].args);
    }
    free(a->msg.calls);
    free(a->msg.text);
    free(a->msg.call_id);
    free(a->msg.raw);
    *a = (struct model_answer){ 0 };
}

/* ---- for the builders ---- */

struct json *wire_said(const struct model_msg *m, const struct wire_request *r, const char *dialect)
{
    autojson struct json *v = NULL;
    struct err ignored = { 0 };
    if (!m->raw || !m->provider || !r->provider || strcmp(m->provider, r->provider) != 0)
        return NULL;
    if (json_parse(&v, m->raw, strlen(m->raw), WIRE_REQUEST_MAX, &ignored) < 0)
        return NULL;
    if (strcmp(json_str_or(v, "dialect", ""), dialect) != 0 || strcmp(json_str_or(v, "model", ""), r->model) != 0)
        return NULL;
    const struct json *said = json_get(v, "said");
    return said ? json_dup(said) : NULL;
}

static void print_args(struct str *out, const char *text)
{
    autojson struct json *v = NULL;
    if (parse(&v, text, strlen(text)))
        json_print(out, v);
    else
        str_puts(out, text);
}

bool wire_call_changed(const struct model_tool_call *c, const char *name, const struct json *said)
{
    AUTO(str_clear) struct str before = STR_INIT(WIRE_REQUEST_MAX), now = STR_INIT(WIRE_REQUEST_MAX);
    if (json_text(said))
        print_args(&before, wire_blank(json_text(said)) ? "{}" : json_text(said));
    else
        json_print(&before, said);
    print_args(&now, c->args);
    return strcmp(name, c->name) != 0 || strcmp(str_peek(&before), str_peek(&now)) != 0;
}

void wire_temper(struct json *body, const struct wire_request *r)
{
    if (r->tempered && !(r->quirks & WIRE_NO_TEMPERATURE))
        json_set_num(body, "temperature", r->temperature);
}

char *wire_system(const struct wire_request *r, size_t *n)
{
    AUTO(str_clear) struct str all = STR_INIT(WIRE_REQUEST_MAX);
    for (*n = 0; *n < r->msg_n && r->msgs[*n].role == MODEL_SYSTEM; (*n)++) {
        if (wire_blank(r->msgs[*n].text))
            continue;
        str_printf(&all, "%s%s", all.len ? "\n\n" : "", r->msgs[*n].text);
    }
    return all.len ? str_take(&all) : NULL;
}

bool wire_is_people(const struct model_msg *m)
{
    return m->role == MODEL_USER || m->role == MODEL_SYSTEM;
}

char *wire_people(const struct wire_request *r, size_t *i)
{
    AUTO(str_clear) struct str all = STR_INIT(WIRE_REQUEST_MAX);
    for (; *i < r->msg_n && wire_is_people(&r->msgs[*i]); (*i)++)
        if (!wire_blank(r->msgs[*i].text))
            str_printf(&all, "%s%s", all.len ? "\n\n" : "", r->msgs[*i].text);
    return str_take(&all);
}

bool wire_same_calls(const struct model_msg *m, const struct json *said, const char *type, const char *key)
{
    size_t k = 0;
    for (const struct json *x = json_first(said); x; x = json_next(x)) {
        if (type && strcmp(json_str_or(x, "type", ""), type) != 0)
            continue;
        if (k >= m->call_n || strcmp(json_str_or(x, key, ""), m->calls[k].id) != 0)
            return false;
        k++;
    }
    return k == m->call_n;
}
