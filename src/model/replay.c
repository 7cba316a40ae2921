/* replay.c - a model that says what a recording holds, in order: for exact tests of everything around a model.
 *
 * The recording is a text file, one JSON object a line (section url = its path); blank lines and lines with # are skipped:
 *   {"text":"...", "calls":[{"name":"run_python","args":{"code":"..."} or "text as sent","id":"..."}],
 *    "stop":"end|length|refused", "usage":{"in":1,"cached":0,"out":1},
 *    "expect":"the last message must contain this", "tools":"auto|none" (what the ask must allow),
 *    "error":{"kind":"net|limit|refused|timeout|data|config","retry_ms":5,"too_long":true,"window":0,"sent":0}, "delay_ms":20}
 * Every member is optional. An ask that is not as the line expects fails with ERR_DATA, which is never retried. */
#include <string.h>
#include "conf.h"
#include "json.h"
#include "loop.h"
#include "model.h"

enum { RECORDING_MAX = 64 << 20 };

struct model {
    struct loop *loop;
    char *path;
    struct json *lines; /* array of objects, each with its "line" number */
    const struct json *next;
};

struct model_call {
    struct model *model;
    struct model_events ev;
    void *ud;
    const struct json *line;
    struct err err; /* kind ERR_NONE: answer */
    loop_timer timer;
};

/* ---- the recording ---- */

static int add_line(struct model *m, const char *text, size_t n, int64_t number, struct err *e)
{
    struct json *line = NULL;
    const size_t blank = strspn(text, " \t\r");
    if (blank >= n || text[blank] == '#')
        return 0;
    if (json_parse(&line, text, n, RECORDING_MAX, e) < 0)
        return err_wrap(e, "%.120s: line %lld", m->path, (long long)number);
    if (json_type(line) != JSON_OBJECT) {
        json_free(line);
        return err_set(e, ERR_CONFIG, "%.120s: line %lld is not an object", m->path, (long long)number);
    }
    json_set_int(line, "line", number);
    json_push(m->lines, line);
    return 0;
}

static int read_recording(struct model *m, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(RECORDING_MAX);
    if (str_read_file(&text, m->path, e) < 0)
        return err_wrap(e, "replay");
    int64_t number = 1;
    for (const char *at = str_peek(&text); *at; number++) {
        const size_t n = strcspn(at, "\n");
        if (add_line(m, at, n, number, e) < 0)
            return -1;
        at += n + (at[n] == '\n');
    }
    m->next = json_first(m->lines);
    return 0;
}

static void replay_close(struct model *m)
{
    if (!m)
        return;
    json_free(m->lines);
    free(m->path);
    free(m);
}

static int replay_open(struct model **out, struct loop *l, const struct conf *c, const struct conf_model *section,
                       struct err *e)
{
    (void)c;
    struct model *m = xcalloc(1, sizeof(*m));
    m->loop = l;
    m->path = xstrdup(section->url);
    m->lines = json_new_array();
    if (read_recording(m, e) < 0) {
        e->kind = ERR_CONFIG;
        replay_close(m);
        return -1;
    }
    *out = m;
    return 0;
}

/* ---- an answer ---- */

static char *args_text(const struct json *args)
{
    AUTO(str_clear) struct str text = STR_INIT(RECORDING_MAX);
    if (json_type(args) == JSON_STRING)
        return xstrdup(json_text(args));
    if (args)
        json_print(&text, args);
    return str_take(&text);
}

static void add_calls(struct model_msg *msg, const struct json *line)
{
    const struct json *calls = json_get(line, "calls");
    msg->calls = xcalloc(json_len(calls) + 1, sizeof(*msg->calls));
    for (const struct json *c = json_first(calls); c; c = json_next(c)) {
        struct model_tool_call *call = &msg->calls[msg->call_n++];
        const char *id = json_str_or(c, "id", NULL);
        call->id = id ? xstrdup(id) : xasprintf("r%lld_%zu", (long long)json_int_or(line, "line", 0), msg->call_n);
        call->name = xstrdup(json_str_or(c, "name", "run_python"));
        call->args = args_text(json_get(c, "args"));
    }
}

static enum model_stop stop_from(const char *word)
{
    if (strcmp(word, "length") == 0)
        return MODEL_STOP_LENGTH;
    return strcmp(word, "refused") == 0 ? MODEL_STOP_REFUSED : MODEL_STOP_END;
}

static void fill_answer(struct model_answer *a, const struct json *line)
{
    const struct json *usage = json_get(line, "usage");
    *a = (struct model_answer){
        .msg = { .role = MODEL_ASSISTANT, .text = xstrdup(json_str_or(line, "text", "")) },
        .stop = stop_from(json_str_or(line, "stop", "end")),
        .usage = { json_int_or(usage, "in", 0), json_int_or(usage, "cached", 0), json_int_or(usage, "out", 0) },
    };
    add_calls(&a->msg, line);
}

static void clear_answer(struct model_msg *m)
{
    for (size_t i = 0; i < m->call_n; i++) {
        free(m->calls[i].id);
        free(m->calls[i].name);
        free(m->calls[i].args);
    }
    free(m->calls);
    free(m->text);
    free(m->raw);
}

static void speak(void *ud)
{
    struct model_call *c = ud;
    if (c->err.kind != ERR_NONE) {
        const struct json *error = json_get(c->line, "error");
        if (c->ev.too_long && model_err_too_long(&c->err))
            c->ev.too_long(c->ud, json_int_or(error, "window", 0), json_int_or(error, "sent", 0));
        c->ev.done(c->ud, NULL, &c->err);
        free(c);
        return;
    }
    struct model_answer a;
    fill_answer(&a, c->line);
    if (c->ev.delta && *a.msg.text)
        c->ev.delta(c->ud, a.msg.text, strlen(a.msg.text));
    c->ev.done(c->ud, &a, NULL);
    clear_answer(&a.msg);
    free(c);
}

/* ---- an ask ---- */

static void recorded_error(struct err *e, const struct json *error)
{
    const char *word = json_str_or(error, "kind", "net");
    enum err_kind kind = ERR_NET;
    for (int k = ERR_CONFIG; k <= ERR_STORE; k++)
        if (strcmp(err_kind_name((enum err_kind)k), word) == 0)
            kind = (enum err_kind)k;
    (void)err_set(e, kind, "as recorded");
    e->retry_ms = (long)json_int_or(error, "retry_ms", 0);
    if (json_bool_or(error, "too_long", false))
        e->sys = EMSGSIZE;
}

static void check_ask(struct err *e, const struct model *m, const struct json *line, const struct model_ask *ask)
{
    const long long number = json_int_or(line, "line", 0);
    const char *expect = json_str_or(line, "expect", NULL), *tools = json_str_or(line, "tools", NULL);
    const char *last = ask->msg_n ? ask->msgs[ask->msg_n - 1].text : "";
    const char *allowed = ask->tools == MODEL_TOOLS_NONE ? "none" : "auto";
    if (tools && strcmp(tools, allowed) != 0)
        (void)err_set(e, ERR_DATA, "%.100s: line %lld expects tools %.10s, not %s", m->path, number, tools, allowed);
    if (expect && !strstr(last, expect))
        (void)err_set(e, ERR_DATA, "%.100s: line %lld expects \"%.60s\" in the last message", m->path, number, expect);
}

static int replay_ask(struct model_call **out, struct model *m, const struct model_ask *ask,
                      const struct model_events *ev, void *ud, struct err *e)
{
    (void)e; /* whatever is wrong comes through done(), as it does with a real peer */
    struct model_call *c = xcalloc(1, sizeof(*c));
    *c = (struct model_call){ .model = m, .ev = *ev, .ud = ud, .line = m->next };
    if (!c->line) {
        (void)err_set(&c->err, ERR_DATA, "%.160s: no answer is left", m->path);
    } else {
        m->next = json_next(c->line);
        if (json_get(c->line, "error"))
            recorded_error(&c->err, json_get(c->line, "error"));
        check_ask(&c->err, m, c->line, ask);
    }
    c->timer = loop_after(m->loop, json_int_or(c->line, "delay_ms", 0), speak, c);
    *out = c;
    return 0;
}

static void replay_cancel(struct model_call *c)
{
    if (!c)
        return;
    loop_cancel(c->model->loop, c->timer);
    free(c);
}

const struct model_ops model_replay = {
    .name = "replay",
    .open = replay_open,
    .ask = replay_ask,
    .cancel = replay_cancel,
    .close = replay_close,
};
