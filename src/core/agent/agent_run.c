/* agent_run.c - what the model wants run: read, run in order, reported back, counted. */
#include <string.h>
#include "agent_private.h"
#include "agent_result.h"
#include "conf.h"
#include "json.h"
#include "log.h"
#include "tool_table.h"

enum {
    RESULT_MAX = 1 << 20,
    CALLS_MAX = 8, /* of one answer; the rest is not run */
};

int repeated_add(struct repeated *r, const char *what)
{
    if (r->what && *what && strcmp(r->what, what) == 0)
        return ++r->times;
    free(r->what);
    r->what = xstrdup(what);
    r->times = 1;
    return 1;
}

/* ---- the plan ---- */

void agent_plan_clear(struct agent *a)
{
    for (size_t i = 0; i < a->plan_n; i++) {
        free(a->plan[i].id);
        free(a->plan[i].name);
        free(a->plan[i].code);
        free(a->plan[i].args);
    }
    free(a->plan);
    a->plan = NULL;
    a->plan_n = a->plan_at = 0;
    a->skip_rest = false;
}

static struct planned_call *plan_add(struct agent *a, const char *id, const char *name)
{
    size_t cap = a->plan_n;
    a->plan = xgrow(a->plan, &cap, a->plan_n + 1, sizeof(*a->plan));
    struct planned_call *p = &a->plan[a->plan_n++];
    *p = (struct planned_call){ .id = xstrdup(id), .name = xstrdup(name) };
    return p;
}

void agent_plan_code(struct agent *a, const char *id, const char *code)
{
    struct planned_call *p = plan_add(a, id, CALL_TOOL);
    p->kind = CALL_CODE;
    p->code = xstrdup(code);
}

/* What providers take as a name; others would refuse the whole history for it. */
static bool is_tool_name(const char *name)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const size_t n = name ? strlen(name) : 0;
    return n > 0 && n <= 64 && strspn(name, good) == n;
}

static void replace(char **field, char *take_text)
{
    free(*field);
    *field = take_text;
}

/* A tool of the table: its arguments as they are, when they are an object. */
static void plan_tool(struct agent *a, struct model_tool_call *c, const struct tool *t, bool cut)
{
    char *args = cut ? NULL : tool_args(c->args);
    struct planned_call *p = plan_add(a, c->id, c->name);
    p->kind = cut ? CALL_CUT : args ? CALL_OTHER : CALL_MALFORMED;
    p->tool = t;
    p->args = args;
    replace(&c->args, xstrdup(args ? args : "{}"));
}

/* Stands in history as it came: our tool, one object, the program under the name that it has in the schema. */
static bool is_good_call(const struct model_tool_call *c)
{
    autojson struct json *v = NULL;
    struct err ignored = { 0 };
    return c->name && strcmp(c->name, CALL_TOOL) == 0 && c->args &&
           json_parse(&v, c->args, strlen(c->args), RESULT_MAX, &ignored) == 0 && json_str_or(v, "code", NULL);
}

/* "run_sql" where there is a database: its tool, with the query under the name that it has there. */
static const struct tool *sql_alias(const struct agent *a, struct model_tool_call *c)
{
    static const char *const names[] = { "sql", "run_sql", "execute_sql", "query_sql", "sql_query", "query" };
    static const char *const keys[] = { "sql", "query", "code", "statement" };
    autojson struct json *v = NULL, *o = json_new_object();
    AUTO(str_clear) struct str text = STR_INIT(RESULT_MAX);
    struct err ignored = { 0 };
    bool meant = false;
    for (size_t i = 0; c->name && i < countof(names); i++)
        meant = meant || strcmp(c->name, names[i]) == 0;
    const struct tool *t = meant ? tool_find(a->in.tools, "query_database") : NULL;
    if (!t || !c->args || json_parse(&v, c->args, strlen(c->args), RESULT_MAX, &ignored) < 0)
        return NULL;
    for (size_t i = 0; i < countof(keys) && !json_get(o, "sql"); i++)
        if (json_str_or(v, keys[i], NULL))
            json_set_str(o, "sql", json_str_or(v, keys[i], ""));
    if (json_str_or(v, "database", NULL))
        json_set_str(o, "database", json_str_or(v, "database", ""));
    json_print(&text, o);
    replace(&c->name, xstrdup(t->name));
    replace(&c->args, str_take(&text));
    return t;
}

/* Reads one call and puts into history what any provider accepts: our name, an id, valid JSON. What else the provider said of it stays. */
static void plan_call(struct agent *a, struct model_tool_call *c, size_t i, bool cut)
{
    const struct tool *tool = tool_find(a->in.tools, c->name);
    const struct tool *alias = tool ? NULL : sql_alias(a, c);
    char *code = NULL;
    if (!c->id || !*c->id) {
        const size_t seed = strlen(a->in.seed);
        replace(&c->id, xasprintf("call_%s_%d_%zu", a->in.seed + (seed > 12 ? seed - 12 : 0), a->steps, i + 1));
    }
    if (tool || alias) {
        plan_tool(a, c, tool ? tool : alias, cut);
        return;
    }
    enum call_kind kind = call_args_read(c->name ? c->name : "", c->args, &code);
    if (cut && kind == CALL_CODE) {
        free(code);
        code = NULL;
    }
    kind = cut ? CALL_CUT : kind;
    struct planned_call *p = plan_add(a, c->id, c->name ? c->name : "");
    p->kind = kind;
    p->code = code;
    if (kind == CALL_CODE && is_good_call(c))
        return;
    if (kind == CALL_CODE || !is_tool_name(c->name))
        replace(&c->name, xstrdup(CALL_TOOL));
    replace(&c->args, code ? call_args_write(code) : xstrdup("{}"));
}

/* A call written out as text becomes the call that was meant. */
static void plan_text(struct model_msg *m)
{
    autofree char *code = NULL;
    const enum call_kind kind = m->text ? call_from_text(m->text, &code) : CALL_NONE;
    if (kind == CALL_NONE)
        return;
    autofree char *args = code ? call_args_write(code) : xstrdup(kind == CALL_CUT ? "{\"code\":" : "{}");
    transcript_add_call(m, "", kind == CALL_UNKNOWN ? "unknown" : CALL_TOOL, args);
    replace(&m->text, xstrdup(""));
    replace(&m->raw, NULL);
}

/* Small models leave the fence out as well. Where a program was asked for, it is the answer. */
static void plan_program(const struct agent *a, struct model_msg *m)
{
    const bool wanted = m->text && json_len(a->in.files) && !agent_wants_program(a);
    autofree char *code = wanted ? call_bare_program(m->text) : NULL;
    if (!code)
        return;
    autofree char *args = call_args_write(code);
    transcript_add_call(m, "", CALL_TOOL, args);
    replace(&m->text, xstrdup(""));
    replace(&m->raw, NULL);
}

void agent_plan(struct agent *a, struct model_answer *answer)
{
    struct model_msg *m = &answer->msg;
    agent_plan_clear(a);
    if (m->call_n == 0)
        plan_text(m);
    if (m->call_n == 0 && answer->stop == MODEL_STOP_END)
        plan_program(a, m);
    if (m->call_n == 0)
        return;
    for (size_t i = 0; i < m->call_n; i++)
        plan_call(a, &m->calls[i], i, answer->stop == MODEL_STOP_LENGTH);
    transcript_take_msg(&a->talk.msgs, m);
}

/* ---- results ---- */

static void add_result(struct agent *a, const struct planned_call *p, char *take_text, bool failed)
{
    autofree char *text = take_text;
    transcript_add_result(&a->talk.msgs, p->id, text, failed);
}

static bool is_syntax_error(const struct cell *c)
{
    static const char *const names[] = { "SyntaxError", "IndentationError", "TabError" };
    for (size_t i = 0; c->error_name && i < countof(names); i++)
        if (strcmp(c->error_name, names[i]) == 0)
            return true;
    return false;
}

/* KeyError: 0. What stood in the brackets was meant as a place. */
static bool is_position_error(const struct cell *c)
{
    const char *value = c->error_value ? c->error_value : "";
    value += *value == '-';
    return c->error_name && strcmp(c->error_name, "KeyError") == 0 && *value &&
           value[strspn(value, "0123456789")] == '\0';
}

/* Counts what came of a cell and adds the word that may help. */
static void count_cell(struct agent *a, const struct agent_cell *c, struct str *result)
{
    autofree char *signature = result_signature(&c->cell);
    const int same_call = repeated_add(&a->codes, c->code);
    const int same_error = repeated_add(&a->errors, signature);
    const bool failed = result_failed(&c->cell);
    a->malformed = 0;
    a->repairs = failed ? a->repairs + 1 : 0;
    if (is_syntax_error(&c->cell))
        result_add_note(result, a->in.prompts, NOTE_SYNTAX, NULL, NULL);
    else if (failed && json_len(a->in.files) && strcmp(c->cell.error_name ? c->cell.error_name : "", "NameError") == 0)
        result_add_note(result, a->in.prompts, NOTE_NAME, agent_load_call(a), NULL);
    else if (failed && is_position_error(&c->cell))
        result_add_note(result, a->in.prompts, NOTE_POSITION, NULL, NULL);
    if (failed && same_error >= LOOP_NOTE_TIMES)
        result_add_note(result, a->in.prompts, NOTE_SAME_ERROR, NULL, NULL);
    else if (same_call >= LOOP_NOTE_TIMES)
        result_add_note(result, a->in.prompts, NOTE_SAME_CALL, NULL, NULL);
    if (a->limit != LIMIT_NONE)
        return;
    if (failed && a->repairs >= a->in.conf->max_repairs)
        a->limit = LIMIT_REPAIRS;
    else if (same_call >= LOOP_TIMES || (failed && same_error >= LOOP_TIMES))
        a->limit = LIMIT_LOOP;
}

static void report_cell(struct agent *a, const struct agent_cell *c)
{
    const struct result_style style = {
        .head_bytes = (size_t)a->in.conf->output_head_bytes,
        .tail_bytes = (size_t)a->in.conf->output_tail_bytes,
        .nonce = a->nonce,
    };
    AUTO(str_clear) struct str text = STR_INIT(RESULT_MAX);
    result_for_model(&text, &c->cell, c->code, &style);
    count_cell(a, c, &text);
    const bool failed = result_failed(&c->cell);
    a->skip_rest = a->skip_rest || failed || a->limit != LIMIT_NONE;
    add_result(a, &a->plan[a->plan_at++], str_take(&text), failed);
}

/* ---- cells ---- */

static void finish_stopped(struct agent *a)
{
    agent_finish_words(a, AGENT_CANCELLED, WORD_CANCELLED, a->stopped_by, NULL);
}

static void box_failed(struct agent *a, const struct err *e)
{
    log_error("box_failed", KV_S("turn", a->in.seed), KV_E(e));
    a->box_lost = true;
    if (a->stopped_by) {
        finish_stopped(a);
        return;
    }
    add_result(a, &a->plan[a->plan_at++], prompts_note(a->in.prompts, NOTE_SANDBOX, NULL, NULL), true);
    agent_finish_words(a, AGENT_FAILED, WORD_BOX_FAILED, NULL, NULL);
}

/* A person's own program: what it brought is the answer. */
static void finish_own(struct agent *a)
{
    const struct cell *c = &a->cells[0].cell;
    AUTO(str_clear) struct str text = STR_INIT(RESULT_MAX);
    result_for_person(&text, c, a->in.language);
    agent_finish(a, result_failed(c) ? AGENT_FAILED : AGENT_ANSWERED, str_take(&text));
}

static struct agent_cell *keep_cell(struct agent *a, struct cell *take_cell)
{
    a->cells = xgrow(a->cells, &a->cell_cap, a->cell_n + 1, sizeof(*a->cells));
    struct agent_cell *kept = &a->cells[a->cell_n];
    kept->code = xstrdup(a->plan[a->plan_at].code);
    kept->cell = *take_cell;
    kept->cell.number = a->in.first_cell + (int)a->cell_n;
    *take_cell = (struct cell){ 0 };
    a->cell_n++;
    return kept;
}

static void on_cell(void *ud, const struct box_reply *r, const struct err *e)
{
    struct agent *a = ud;
    if (e) {
        box_failed(a, e);
        return;
    }
    struct agent_cell *c = keep_cell(a, r->cell);
    if (a->ev.cell)
        a->ev.cell(a->ud, c->code, &c->cell);
    if (a->stopped_by) {
        finish_stopped(a);
        return;
    }
    report_cell(a, c);
    if (a->in.code)
        finish_own(a);
    else
        agent_run(a);
}

static void start_cell(struct agent *a, const struct planned_call *p)
{
    static const struct box_events events = { .done = on_cell };
    struct err e = { 0 };
    const struct box_request r = {
        .op = BOX_OP_CELL,
        .text = p->code,
        .text_n = strlen(p->code),
        .number = a->in.first_cell + (int)a->cell_n,
    };
    agent_tell(a, AGENT_RUNNING);
    if (a->in.box_ops->ask(a->in.box, &r, &events, a, &e) < 0)
        box_failed(a, &e);
}

/* ---- calls that can't be run ---- */

static enum prompt_note note_for(enum call_kind kind)
{
    switch (kind) {
    case CALL_CUT: return NOTE_CUT;
    case CALL_UNKNOWN: return NOTE_UNKNOWN_TOOL;
    case CALL_NONE:
    case CALL_CODE:
    case CALL_OTHER:
    case CALL_MALFORMED: break;
    }
    return NOTE_MALFORMED;
}

static void refuse_call(struct agent *a, const struct planned_call *p)
{
    const char *name = is_tool_name(p->name) ? p->name : "?";
    autofree char *others = tool_names(a->in.tools);
    add_result(a, p, prompts_note(a->in.prompts, note_for(p->kind), name, others), true);
    if (p->kind == CALL_CUT && !a->max_output)
        a->max_output = a->in.section->max_output_tokens * 2; /* once; and a shorter program is asked for */
    a->malformed++;
    a->skip_rest = true;
    if (a->limit == LIMIT_NONE && a->malformed >= a->in.conf->max_malformed)
        a->limit = LIMIT_MALFORMED;
}

static void skip_call(struct agent *a, const struct planned_call *p)
{
    const enum prompt_note why = a->limit == LIMIT_NONE ? NOTE_SKIPPED : NOTE_NOT_RUN_LIMIT;
    add_result(a, p, prompts_note(a->in.prompts, why, NULL, NULL), true);
}

/* ---- one after the other ---- */

void agent_run(struct agent *a)
{
    while (a->plan_at < a->plan_n) {
        const struct planned_call *p = &a->plan[a->plan_at];
        const bool skip = a->skip_rest || a->plan_at >= CALLS_MAX;
        if (!skip && p->kind == CALL_OTHER) {
            if (!agent_run_tool(a))
                return;
        } else if (!skip && p->kind == CALL_CODE) {
            start_cell(a, p); /* on_cell goes on from here */
            return;
        } else {
            a->plan_at++;
            skip ? skip_call(a, p) : refuse_call(a, p);
        }
    }
    if (a->limit != LIMIT_NONE)
        agent_last(a, a->limit);
    else
        agent_think(a);
}
