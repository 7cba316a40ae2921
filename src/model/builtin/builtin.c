/* builtin.c - the embedded default model: no network, no key, no weights.
 *
 *   request + profiles -> reading -> plan -> Python -> (the agent runs it) -> answer
 *
 * It keeps nothing between asks: the plan is made again from the request each time. Words that could be values which
 * the profile does not list are looked up in the file by a first program; what it found is read back from the tool
 * result. A follow-up ("as a bar chart", "now only for women") is read together with the requests before it: those
 * are kept in the answers' raw objects. */
#include <string.h>
#include "answer.h"
#include "code.h"
#include "plan.h"
#include "cell.h"
#include "conf.h"
#include "json.h"
#include "loop.h"
#include "model.h"
#include "prompts.h"

enum {
    ANSWER_MAX = 512 << 10, /* bytes of an answer; tables in it have few rows */
    REQUEST_MAX = 4000,     /* bytes of a request that are read; longer ones are refused */
    CHAIN_MAX = 8,          /* requests that a follow-up reaches back */
    RAW_MAX = 64 << 10,
};

struct model {
    struct loop *loop;
    struct bi_lexicon *lexicon;
    char *provider;
};

struct model_call {
    struct model *model;
    struct model_events events;
    void *ud;
    struct model_answer answer;
};

static int builtin_open(struct model **out, struct loop *l, const struct conf *c, const struct conf_model *section,
                        struct err *e)
{
    autofree char *prompts = NULL;
    struct bi_lexicon *lexicon;
    if (prompt_dir_resolve(&prompts, c->prompts_dir, e) < 0 || bi_lexicon_open(&lexicon, prompts, e) < 0)
        return -1;
    *out = xcalloc(1, sizeof(**out));
    **out =
        (struct model){ .loop = l, .lexicon = lexicon, .provider = xstrdup(section ? section->section : "builtin") };
    return 0;
}

static void builtin_close(struct model *m)
{
    if (!m)
        return;
    bi_lexicon_close(m->lexicon);
    free(m->provider);
    free(m);
}

/* ---- what came before ---- */

static size_t turn_start(const struct model_ask *a)
{
    size_t at = a->msg_n;
    while (at > 0 && a->msgs[at - 1].role != MODEL_USER)
        at--;
    return at;
}

/* The requests that the answer before this turn stood for: they are in its raw object. NULL: none. */
static struct json *earlier_requests(const struct model_ask *a, const char *provider)
{
    for (size_t i = turn_start(a); i-- > 0;) {
        const struct model_msg *m = &a->msgs[i];
        struct json *raw = NULL;
        struct err e;
        if (m->role != MODEL_ASSISTANT || m->call_n)
            continue;
        if (!m->raw || (m->provider && strcmp(m->provider, provider) != 0))
            return NULL;
        return json_parse(&raw, m->raw, strlen(m->raw), RAW_MAX, &e) < 0 ? NULL : raw;
    }
    return NULL;
}

static struct bi_table *table_at(struct bi_tables *t, const char *path)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->at[i].path, path) == 0)
            return &t->at[i];
    return NULL;
}

/* found: ["word", "path", "column", "value"] */
static void learn_line(struct bi_tables *t, const char *line, size_t n)
{
    autojson struct json *v = NULL;
    struct err e;
    if (json_parse(&v, line, n, 64 << 10, &e) < 0 || json_len(v) != 4)
        return;
    const char *part[4] = { NULL };
    size_t k = 0;
    for (const struct json *i = json_first(v); i; i = json_next(i))
        part[k++] = json_text(i);
    struct bi_table *table = part[1] && part[2] && part[3] ? table_at(t, part[1]) : NULL;
    for (size_t i = 0; table && i < table->column_n; i++)
        if (strcmp(table->columns[i].name, part[2]) == 0)
            bi_column_learn(&table->columns[i], part[3]);
}

/* Values that an earlier program of this turn found. True: it has looked. */
static bool learn_from(struct bi_tables *t, const char *text)
{
    static const char found[] = "found: ", looked[] = "looked up: ";
    bool any = false;
    for (const char *line = text; line && *line;) {
        size_t n = strcspn(line, "\n");
        if (strncmp(line, found, sizeof(found) - 1) == 0)
            learn_line(t, line + sizeof(found) - 1, n - (sizeof(found) - 1));
        any = any || strncmp(line, looked, sizeof(looked) - 1) == 0;
        line += n + (line[n] == '\n');
    }
    return any;
}

static bool learn(struct bi_tables *t, const struct model_ask *a)
{
    bool looked = false;
    for (size_t i = turn_start(a); i < a->msg_n; i++)
        if (a->msgs[i].role == MODEL_TOOL)
            looked = learn_from(t, a->msgs[i].text) || looked;
    return looked;
}

static bool just_looked(const struct model_ask *a)
{
    const char *text = a->cell ? a->cell->out : a->msgs[a->msg_n - 1].text;
    return text && strstr(text, "looked up: ") != NULL;
}

/* ---- what is answered ---- */

static void set_text(struct model_call *c, struct str *text, const struct json *requests)
{
    struct model_msg *m = &c->answer.msg;
    m->role = MODEL_ASSISTANT;
    m->text = str_take(text);
    if (!requests)
        return;
    struct str raw = STR_INIT(RAW_MAX);
    json_print(&raw, requests);
    m->raw = str_take(&raw);
    m->provider = c->model->provider;
}

static void set_code(struct model_call *c, const struct model_ask *a, char *take_code, const char *name)
{
    struct model_msg *m = &c->answer.msg;
    autojson struct json *args = json_new_object();
    json_set_str(args, "code", take_code);
    free(take_code);
    struct str text = STR_INIT(2 * (size_t)BI_CODE_MAX);
    json_print(&text, args);
    m->role = MODEL_ASSISTANT;
    m->text = xstrdup("");
    m->calls = xcalloc(1, sizeof(*m->calls));
    m->call_n = 1;
    m->calls[0] = (struct model_tool_call){
        .id = xasprintf("builtin_%s_%s", name, a->seed ? a->seed : "0"),
        .name = xstrdup("run_python"),
        .args = str_take(&text),
    };
}

static void set_failure(struct model_call *c, const struct model_ask *a, const struct bi_plan *p)
{
    struct str text = STR_INIT(ANSWER_MAX);
    const struct cell *cell = a->cell;
    autofree char *error = cell && cell->error_name
                               ? xasprintf("%s: %s", cell->error_name, cell->error_value ? cell->error_value : "")
                           : cell && cell->why ? xstrdup(cell->why)
                                               : xstrdup(cell ? cell_status_name(cell->status) : "?");
    error[strcspn(error, "\n")] = '\0';
    error[utf8_cut(error, strlen(error), 300)] = '\0';
    bi_answer_failure(&text, c->model->lexicon, p, error);
    set_text(c, &text, NULL);
}

/* A refusal changes nothing: the next request may still refer to the one before. */
static void set_trouble(struct model_call *c, const struct model_ask *a, const struct bi_tables *t,
                        const struct bi_plan *p)
{
    struct str text = STR_INIT(ANSWER_MAX);
    autojson struct json *earlier = earlier_requests(a, c->model->provider);
    bi_answer_trouble(&text, c->model->lexicon, t, p);
    set_text(c, &text, earlier);
    if (!p->answers)
        c->answer.stop = MODEL_STOP_REFUSED;
}

static bool is_result(const struct model_ask *a)
{
    return a->msg_n && a->msgs[a->msg_n - 1].role == MODEL_TOOL && !just_looked(a);
}

static void decide(struct model_call *c, const struct model_ask *a, struct bi_tables *t, const struct bi_plan *p,
                   bool looked, const struct json *requests)
{
    const struct bi_lexicon *x = c->model->lexicon;
    bool may_run = a->tools != MODEL_TOOLS_NONE;
    if (is_result(a)) {
        bool failed = a->msgs[a->msg_n - 1].failed || (a->cell && a->cell->status != CELL_OK);
        if (failed) {
            set_failure(c, a, p);
            return;
        }
        struct str text = STR_INIT(ANSWER_MAX);
        bi_answer_result(&text, x, t, p, a->cell ? a->cell->out : a->msgs[a->msg_n - 1].text);
        set_text(c, &text, requests);
    } else if (p->trouble && p->look_up_n && !looked && may_run) {
        set_code(c, a, bi_code_look_up(t, p->look_up, p->look_up_n), "look");
    } else if (p->trouble) {
        set_trouble(c, a, t, p);
    } else if (!may_run) { /* the last word at a limit */
        struct str text = STR_INIT(ANSWER_MAX);
        bi_say(&text, x, p->language, "must_not_run", (const char *const[]){ NULL });
        set_text(c, &text, NULL);
    } else {
        set_code(c, a, bi_code_write(x, t, p), "run");
    }
}

/* The plan for the request, and the chain of requests that it stands for. */
static struct json *make_plan(struct bi_plan *p, const struct model *m, const struct model_ask *a, struct bi_tables *t)
{
    const char *requests[CHAIN_MAX];
    size_t n = 0;
    autojson struct json *raw = earlier_requests(a, m->provider);
    const struct json *earlier = json_get(raw, "requests");
    size_t skip = json_len(earlier) >= CHAIN_MAX ? json_len(earlier) - CHAIN_MAX + 1 : 0;
    for (const struct json *i = json_first(earlier); i && n < CHAIN_MAX - 1; i = json_next(i))
        if (skip)
            skip--;
        else if (json_text(i))
            requests[n++] = json_text(i);
    requests[n++] = a->request ? a->request : "";
    size_t used = bi_plan_make_chain(p, m->lexicon, t, requests, n);
    struct json *list = json_new_array(), *out = json_new_object();
    for (size_t i = n - used; i < n; i++)
        json_push(list, json_new_string(requests[i]));
    json_set(out, "requests", list);
    return out;
}

static void answer(struct model_call *c, const struct model_ask *a)
{
    struct bi_tables t;
    struct bi_plan p;
    bi_tables_read(&t, c->model->lexicon, a->files);
    bool looked = learn(&t, a);
    autojson struct json *requests = make_plan(&p, c->model, a, &t);
    if (a->request && strlen(a->request) > REQUEST_MAX) {
        free(p.trouble);
        p.trouble = xstrdup(bi_text(c->model->lexicon, p.language, "too_long"));
        looked = true;
    }
    decide(c, a, &t, &p, looked, requests);
    bi_plan_clear(&p);
    bi_tables_clear(&t);
}

/* ---- the port ---- */

static void call_free(struct model_call *c)
{
    struct model_msg *m = &c->answer.msg;
    for (size_t i = 0; i < m->call_n; i++) {
        free(m->calls[i].id);
        free(m->calls[i].name);
        free(m->calls[i].args);
    }
    free(m->calls);
    free(m->text);
    free(m->raw);
    free(c);
}

static void deliver(void *ud)
{
    struct model_call *c = ud;
    c->events.done(c->ud, &c->answer, NULL);
    call_free(c);
}

static int builtin_ask(struct model_call **out, struct model *m, const struct model_ask *a,
                       const struct model_events *ev, void *ud, struct err *e)
{
    if (!a->msg_n)
        return err_set(e, ERR_DATA, "builtin: nothing to answer");
    struct model_call *c = xcalloc(1, sizeof(*c));
    *c = (struct model_call){ .model = m, .events = *ev, .ud = ud };
    answer(c, a);
    loop_defer(m->loop, deliver, c);
    *out = c;
    return 0;
}

static void builtin_cancel(struct model_call *c)
{
    if (!c)
        return;
    loop_defer_cancel(c->model->loop, deliver, c);
    call_free(c);
}

const struct model_ops model_builtin = {
    .name = "builtin",
    .open = builtin_open,
    .ask = builtin_ask,
    .cancel = builtin_cancel,
    .close = builtin_close,
};
