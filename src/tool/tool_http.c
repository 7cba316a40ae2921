/* tool_http.c - an operator's HTTP service, called.
 *
 * Trust boundary: only the configured address is spoken to; redirects are not followed, so that neither the key nor the question goes
 * anywhere else. The answer is scrubbed, capped, and freed of the key should the server repeat it. */
#include <sys/mman.h>
#include "conf.h"
#include "http.h"
#include "http_tool.h"
#include "json.h"
#include "log.h"
#include "loop.h"
#include "tool.h"
#include "tool_secret.h"

enum {
    SCHEMA_MAX = 64 << 10,
    ANSWER_MAX = 8 << 20,
    ANSWER_TEXT_MAX = 3 * ANSWER_MAX, /* scrubbed: at worst three bytes for one */
    REFUSAL_SHOWN = 2 << 10,          /* of an answer that is none of success */
};

struct tool_service {
    const struct conf_tool *section;
    struct loop *loop;
    struct http *http;
    struct json *description;
    char *secret, **headers;
    struct tool_secret *forms; /* of the secret, to be masked */
};

struct tool_call {
    struct tool_service *s;
    struct http_call *http;
    struct tool_events ev;
    void *ud;
};

/* ---- the section ---- */

static int read_schema(struct json **out, const char *schema, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(SCHEMA_MAX);
    static const char none[] = "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}";
    if (*schema && *schema != '{') {
        if (str_read_file(&text, schema, e) < 0)
            return err_wrap(e, "schema");
    } else {
        str_puts(&text, *schema ? schema : none);
    }
    if (json_parse(out, str_peek(&text), text.len, SCHEMA_MAX, e) < 0)
        return err_wrap(e, "schema");
    if (json_type(*out) != JSON_OBJECT || strcmp(json_str_or(*out, "type", ""), "object") != 0)
        return err_set(e, ERR_CONFIG, "schema: must have \"type\":\"object\"");
    return 0;
}

/* Each {place} of the address must be something that a model can give. */
static int check_places(const char *url, const struct json *schema, struct err *e)
{
    for (const char *p = strchr(url, '{'); p; p = strchr(p + 1, '{')) {
        autofree char *name = xstrndup(p + 1, strcspn(p + 1, "}"));
        if (!json_get(json_get(schema, "properties"), name))
            return err_set(e, ERR_CONFIG, "url: the schema has no property \"%.64s\"", name);
    }
    return 0;
}

static int describe(struct tool_service *s, struct err *e)
{
    autojson struct json *schema = NULL;
    if (read_schema(&schema, s->section->schema, e) < 0 || check_places(s->section->url, schema, e) < 0)
        return -1;
    s->description = json_new_object();
    json_set_str(s->description, "name", s->section->section);
    json_set_str(s->description, "description", s->section->description);
    json_set(s->description, "parameters", take(schema));
    return 0;
}

static void http_close(struct tool_service *s)
{
    if (!s)
        return;
    http_free(s->http);
    http_tool_headers_free(s->headers);
    if (s->secret)
        explicit_bzero(s->secret, strlen(s->secret));
    free(s->secret);
    tool_secret_free(s->forms);
    json_free(s->description);
    free(s);
}

static int prepare(struct tool_service *s, struct err *e)
{
    if (*s->section->secret_file && conf_read_secret(&s->secret, s->section->secret_file, e) < 0)
        return -1;
    s->forms = tool_secret_new(s->secret);
    if (describe(s, e) < 0 || http_tool_headers(&s->headers, s->section, s->secret, e) < 0)
        return -1;
    return http_new(&s->http, s->loop, e);
}

static int http_open(struct tool_service **out, struct loop *l, const struct conf *c, const char *section,
                     struct err *e)
{
    struct tool_service *s = xcalloc(1, sizeof(*s));
    *s = (struct tool_service){ .section = conf_find_tool(c, section), .loop = l };
    if (!s->section || prepare(s, e) < 0) {
        http_close(s);
        e->kind = ERR_CONFIG;
        return err_wrap(e, "[tool %.64s]", section);
    }
    *out = s;
    return 0;
}

static const struct json *http_describe(const struct tool_service *s)
{
    return s->description;
}

/* ---- the answer ---- */

/* The whole answer, for the box; -1: it could not be kept, and the model has its beginning and end. */
static int as_file(const char *text, size_t n)
{
    int fd = memfd_create("tool", MFD_CLOEXEC);
    if (fd >= 0 && (write_all(fd, text, n) < 0 || lseek(fd, 0, SEEK_SET) < 0)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static const char *kind_of(const struct http_answer *a)
{
    const char *type = http_header(a, "content-type");
    if (type && strstr(type, "json"))
        return "json";
    return type && strstr(type, "csv") ? "csv" : "txt";
}

static void tell(struct tool_call *c, const struct tool_result *r)
{
    c->ev.done(c->ud, r);
    if (r->fd >= 0)
        (void)close(r->fd);
    free(c);
}

static void tell_words(struct tool_call *c, char *take_words)
{
    autofree char *words = take_words;
    tool_secret_mask(c->s->forms, words);
    tell(c, &(struct tool_result){ .failed = true, .text = words, .text_max = REFUSAL_SHOWN, .fd = -1, .kind = "txt" });
}

static const char *why(const struct err *e)
{
    switch (e->kind) {
    case ERR_TIMEOUT: return "The service did not answer in time.";
    case ERR_LIMIT: return "The service wants no more requests for now.";
    case ERR_DATA: return "The service's answer is too long or is not HTTP.";
    case ERR_NET:
    case ERR_NONE:
    case ERR_CONFIG:
    case ERR_REFUSED:
    case ERR_SANDBOX:
    case ERR_STORE: break;
    }
    return "The service could not be reached.";
}

static void give(struct tool_call *c, const struct http_answer *a)
{
    AUTO(str_clear) struct str text = STR_INIT(ANSWER_TEXT_MAX);
    const size_t most = (size_t)c->s->section->result_max_bytes;
    utf8_scrub(&text, a->body ? a->body : "", a->body ? a->body_n : 0);
    autofree char *words = str_take(&text);
    if (a->status < 200 || a->status >= 300) {
        words[utf8_cut(words, strlen(words), REFUSAL_SHOWN)] = '\0';
        tell_words(c, xasprintf("The service answered with HTTP status %d.\n%s", a->status, words));
        return;
    }
    tool_secret_mask(c->s->forms, words);
    const size_t n = strlen(words);
    const struct tool_result r = {
        .text = *words ? words : "(an empty answer)",
        .text_max = most,
        .fd = n > most ? as_file(words, n) : -1,
        .kind = kind_of(a),
    };
    tell(c, &r);
}

static void on_done(void *ud, const struct http_answer *a)
{
    struct tool_call *c = ud;
    c->http = NULL;
    log_info("tool_called", KV_S("tool", c->s->section->section), KV_I("status", a->status), KV_I("bytes", a->body_n));
    if (a->err) {
        log_warn("tool_failed", KV_S("tool", c->s->section->section), KV_E(a->err));
        tell_words(c, xstrdup(why(a->err)));
    } else {
        give(c, a);
    }
}

/* ---- the call ---- */

static int start(struct tool_call *c, const struct json *args, struct err *e)
{
    static const struct http_events events = { .done = on_done };
    const struct conf_tool *t = c->s->section;
    autofree char *url = NULL;
    autofree char *body = http_tool_body(t, args);
    if (http_tool_url(&url, t, args, e) < 0)
        return -1;
    const struct http_request r = {
        .method = t->method,
        .url = url,
        .headers = (const char *const *)c->s->headers,
        .body = body,
        .body_n = body ? strlen(body) : 0,
        .allow_plain = t->allow_plain_http,
        .total_ms = t->timeout_ms,
        .stall_ms = t->timeout_ms,
        .max_bytes = ANSWER_MAX,
    };
    return http_start(&c->http, c->s->http, &r, &events, c, e);
}

static int http_call(struct tool_call **out, struct tool_service *s, const char *verb, const struct json *args,
                     const struct tool_events *ev, void *ud, struct err *e)
{
    struct tool_call *c = xcalloc(1, sizeof(*c));
    (void)verb;
    *c = (struct tool_call){ .s = s, .ev = *ev, .ud = ud };
    if (start(c, args, e) < 0) {
        free(c);
        return -1;
    }
    *out = c;
    return 0;
}

static void http_cancel_call(struct tool_call *c)
{
    if (!c)
        return;
    http_cancel(c->http);
    free(c);
}

const struct tool_ops tool_http = {
    .name = "tool",
    .open = http_open,
    .describe = http_describe,
    .call = http_call,
    .cancel = http_cancel_call,
    .close = http_close,
};
