/* talk - a conversation with a model, without agent and box: for the tests against strict servers.
 *
 *   talk DIALECT key=value...           settings of [model house]
 * Each line of stdin is one object, each line of stdout what came of it:
 *   {"say":"text"}                      a question; calls are answered with "out N" until there are none (at most 20)
 *   {"say":"text","cancel_ms":50}       the same, given up after that time
 *   {"say":"text","at_words":true}      the same, given up from inside the first delta
 *   {"say":"text","last":true}          tools are forbidden
 *   {"drop":true}                       as if all had been said to another provider
 * -> {"text":"...","steps":2,"calls":["{\"code\":...}"],"stop":0,"in":1,"cached":0,"out":2,"shown":"deltas"}
 *    {"error":"...","kind":"net","sys":0,"retry_ms":0}   {"cancelled":true}   {"dropped":true}
 * An error ends the question and leaves the history as it was before it. */
#include <stdio.h>
#include "conf.h"
#include "json.h"
#include "loop.h"
#include "model.h"
#include "transcript.h"

enum { LINE_MAX_BYTES = 8 << 20, STEPS_MAX = 20 };

struct talk {
    struct loop *loop;
    const struct model_ops *ops;
    struct model *model;
    struct transcript said;
    struct json *schema, *calls;
    struct str shown;
    struct model_answer answer; /* usage and stop of the last one */
    struct err err;
    struct model_call *call;
    bool over, failed, at_words; /* at_words: cancel from inside the next delta */
};

static void on_delta(void *ud, const char *text, size_t n)
{
    struct talk *t = ud;
    str_add(&t->shown, text, n);
    if (!t->at_words)
        return;
    t->ops->cancel(t->call);
    t->call = NULL;
}

static void on_done(void *ud, struct model_answer *a, const struct err *e)
{
    struct talk *t = ud;
    t->over = true;
    t->failed = e != NULL;
    if (e) {
        t->err = *e;
        return;
    }
    t->answer.usage = a->usage;
    t->answer.stop = a->stop;
    transcript_take_msg(&t->said, &a->msg);
}

/* One step. Returns false when it was cancelled. */
static bool ask(struct talk *t, enum model_tools tools, int64_t cancel_ms)
{
    static const struct model_events events = { .delta = on_delta, .done = on_done };
    static const struct model_fence_words fence = { "Write ```python blocks.", "", "Output of your program:",
                                                    "Your program failed:", NULL };
    const struct model_ask question = {
        .msgs = t->said.at,
        .msg_n = t->said.n,
        .tools = tools,
        .schema = t->schema,
        .fence = &fence,
        .seed = "5e551-7",
    };
    struct err e = { 0 };
    t->over = t->failed = false;
    if (t->ops->ask(&t->call, t->model, &question, &events, t, &t->err) < 0) {
        t->failed = true;
        return true;
    }
    const int64_t until = loop_now_ms(t->loop) + cancel_ms;
    while (!t->over && t->call && !(cancel_ms && loop_now_ms(t->loop) >= until))
        if (loop_once(t->loop, 10, &e) < 0)
            abort();
    if (!t->over)
        t->ops->cancel(t->call);
    return t->over;
}

static void run_calls(struct talk *t)
{
    const size_t at = t->said.n - 1, n = t->said.at[at].call_n;
    for (size_t i = 0; i < n; i++) {
        autofree char *out = xasprintf("out %zu", json_len(t->calls));
        autofree char *id = xstrdup(t->said.at[at].calls[i].id);
        json_push(t->calls, json_new_string(t->said.at[at].calls[i].args));
        transcript_add_result(&t->said, id, out, false);
    }
}

static void cut(struct talk *t, size_t n)
{
    struct transcript kept = { 0 };
    transcript_copy(&kept, &t->said, 0, n);
    transcript_clear(&t->said);
    t->said = kept;
}

static void set_answer(const struct talk *t, struct json *out, int64_t steps)
{
    json_set_str(out, "text", t->said.at[t->said.n - 1].text);
    json_set_int(out, "steps", steps);
    json_set(out, "calls", json_dup(t->calls));
    json_set_int(out, "stop", t->answer.stop);
    json_set_int(out, "in", t->answer.usage.in);
    json_set_int(out, "cached", t->answer.usage.cached);
    json_set_int(out, "out", t->answer.usage.out);
    json_set_str(out, "shown", str_peek(&t->shown));
}

static void set_error(const struct err *e, struct json *out)
{
    json_set_str(out, "error", e->msg);
    json_set_str(out, "kind", err_kind_name(e->kind));
    json_set_int(out, "sys", e->sys);
    json_set_int(out, "retry_ms", e->retry_ms);
}

static void say(struct talk *t, const struct json *line, struct json *out)
{
    const enum model_tools tools = json_bool_or(line, "last", false) ? MODEL_TOOLS_NONE : MODEL_TOOLS_AUTO;
    const size_t before = t->said.n;
    json_free(t->calls);
    t->calls = json_new_array();
    str_clear(&t->shown);
    t->at_words = json_bool_or(line, "at_words", false);
    transcript_add(&t->said, MODEL_USER, json_str_or(line, "say", ""));
    for (int64_t steps = 1; steps <= STEPS_MAX; steps++) {
        if (!ask(t, tools, json_int_or(line, "cancel_ms", 0))) {
            json_set_bool(out, "cancelled", true);
            cut(t, before);
            return;
        }
        if (t->failed) {
            set_error(&t->err, out);
            cut(t, before);
            return;
        }
        if (t->said.at[t->said.n - 1].call_n == 0) {
            set_answer(t, out, steps);
            return;
        }
        run_calls(t);
    }
    json_set_str(out, "error", "no end of calls");
}

static void drop(struct talk *t, struct json *out)
{
    for (size_t i = 0; i < t->said.n; i++)
        t->said.at[i].provider = "another";
    json_set_bool(out, "dropped", true);
}

static void one_line(struct talk *t, const char *text)
{
    struct err e = { 0 };
    autojson struct json *line = NULL, *out = json_new_object();
    AUTO(str_clear) struct str printed = STR_INIT(LINE_MAX_BYTES);
    if (json_parse(&line, text, strlen(text), LINE_MAX_BYTES, &e) < 0)
        set_error(&e, out);
    else if (json_bool_or(line, "drop", false))
        drop(t, out);
    else
        say(t, line, out);
    json_print(&printed, out);
    (void)printf("%s\n", str_peek(&printed));
    (void)fflush(stdout);
}

static const struct model_ops *find_ops(const char *name)
{
    static const struct model_ops *const all[] = { &model_openai_chat, &model_openai_responses, &model_anthropic,
                                                  &model_ollama };
    for (size_t i = 0; i < countof(all); i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

static int configure(struct conf *c, const char *dialect, char **settings, struct err *e)
{
    autofree char *first = xasprintf("model.house.dialect=%s", dialect);
    if (conf_set(c, first, e) < 0)
        return -1;
    for (; *settings; settings++) {
        autofree char *one = xasprintf("model.house.%s", *settings);
        if (conf_set(c, one, e) < 0)
            return -1;
    }
    return conf_check(c, e);
}

static const char tool[] =
    "[{\"name\":\"run_python\",\"description\":\"Runs a program.\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"code\":{\"type\":\"string\"}},\"required\":[\"code\"]}}]";

int main(int argc, char **argv)
{
    struct conf conf;
    struct err e = { 0 };
    struct talk t = { .shown = STR_INIT(LINE_MAX_BYTES), .calls = json_new_array() };
    t.ops = argc > 1 ? find_ops(argv[1]) : NULL;
    conf_init(&conf);
    if (!t.ops || configure(&conf, argv[1], argv + 2, &e) < 0 || loop_new(&t.loop, NULL, NULL, &e) < 0 ||
        json_parse(&t.schema, tool, strlen(tool), LINE_MAX_BYTES, &e) < 0 ||
        t.ops->open(&t.model, t.loop, &conf, conf_find_model(&conf, "house"), &e) < 0) {
        (void)fprintf(stderr, "talk: %s\n", e.msg);
        return 2;
    }
    transcript_add(&t.said, MODEL_SYSTEM, "Answer with what the program prints.");
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, stdin) > 0)
        one_line(&t, line);
    free(line);
    t.ops->close(t.model);
    transcript_clear(&t.said);
    json_free(t.schema);
    json_free(t.calls);
    str_clear(&t.shown);
    loop_free(t.loop);
    conf_clear(&conf);
    return 0;
}
