/* agent_tool.c - tools beside run_python, run: the harmless ones at once, services when they answer.
 *
 * What a service brings is text for the model, and a file when that is not all of it: the file is kept with the session's, laid into the
 * box, and named in the result. Failures count like those of cells: the model sees them and may mend its call. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "agent_private.h"
#include "agent_result.h"
#include "conf.h"
#include "json.h"
#include "log.h"
#include "tool_table.h"

enum { RESULT_MAX = 4 << 20 };

const struct json *agent_tools(const struct agent *a)
{
    return a->in.tools ? tool_set_schema(a->in.tools) : prompts_tools(a->in.prompts);
}

int64_t agent_tools_tokens(const struct agent *a)
{
    return a->in.tools ? tool_set_tokens(a->in.tools) : prompts_tools_tokens(a->in.prompts);
}

/* The same call, or the same failure, again and again: a word about it, then the end. */
static void count_call(struct agent *a, const struct planned_call *p, bool good, const char *why, struct str *text)
{
    autofree char *what = xasprintf("%s %s", p->name, p->args);
    const int same_call = repeated_add(&a->codes, what);
    const int same_error = p->tool->rule == TOOL_HARMLESS ? 0 : repeated_add(&a->errors, good ? "" : why);
    a->malformed = 0;
    if (p->tool->rule != TOOL_HARMLESS)
        a->repairs = good ? 0 : a->repairs + 1;
    if (same_call >= LOOP_NOTE_TIMES)
        result_add_note(text, a->in.prompts, NOTE_SAME_CALL, NULL, NULL);
    if (a->limit != LIMIT_NONE)
        return;
    if (a->repairs >= a->in.conf->max_repairs)
        a->limit = LIMIT_REPAIRS;
    else if (same_call >= LOOP_TIMES || (!good && same_error >= LOOP_TIMES))
        a->limit = LIMIT_LOOP;
}

static void report(struct agent *a, const char *raw, bool good, const char *file)
{
    const struct planned_call *p = &a->plan[a->plan_at++];
    AUTO(str_clear) struct str text = STR_INIT(2 * (size_t)RESULT_MAX);
    autofree char *why = xstrndup(raw, strcspn(raw, "\n"));
    result_add_data(&text, raw, a->nonce);
    if (file)
        result_add_note(&text, a->in.prompts, strstr(file, ".csv") ? NOTE_TOOL_TABLE : NOTE_TOOL_FILE, file, NULL);
    count_call(a, p, good, why, &text);
    a->skip_rest = a->skip_rest || (!good && p->tool->rule != TOOL_HARMLESS) || a->limit != LIMIT_NONE;
    transcript_add_result(&a->talk.msgs, p->id, str_peek(&text), !good);
}

/* ---- at once ---- */

static void run_harmless(struct agent *a, const struct planned_call *p)
{
    const struct tool_context context = {
        .files = a->in.files,
        .cells = a->cells,
        .cell_n = a->cell_n,
        .cell_text = a->in.cell_text,
        .ud = a->ud,
        .now_ms = time_unix_ms(),
    };
    AUTO(str_clear) struct str raw = STR_INIT(RESULT_MAX);
    const bool good = tool_run(&raw, p->tool, p->args, &context);
    report(a, str_peek(&raw), good, NULL);
}

/* ---- a service's file ---- */

static void drop_file(struct agent *a)
{
    if (a->tool_fd >= 0)
        (void)close(a->tool_fd);
    a->tool_fd = -1;
    free(a->tool_text);
    free(a->tool_file);
    a->tool_text = a->tool_file = NULL;
}

static void on_put(void *ud, const struct box_reply *r, const struct err *e)
{
    struct agent *a = ud;
    (void)r;
    a->asking_box = false;
    if (e)
        log_warn("tool_file_not_put", KV_S("turn", a->in.seed), KV_E(e));
    if (a->stopped_by) {
        drop_file(a);
        agent_finish_words(a, AGENT_CANCELLED, WORD_CANCELLED, a->stopped_by, NULL);
        return;
    }
    report(a, a->tool_text, true, e ? NULL : a->tool_file);
    drop_file(a);
    agent_run(a);
}

/* "query_database-12-1.csv": the turn's number makes it one of a kind. */
static char *file_name(struct agent *a, const char *tool, const char *kind)
{
    const char *dash = strrchr(a->in.seed, '-');
    return xasprintf("%s-%s-%d.%s", tool, dash ? dash + 1 : "0", ++a->tool_files, kind);
}

static void put_file(struct agent *a)
{
    static const struct box_events events = { .done = on_put };
    const struct box_request put = { .op = BOX_OP_PUT, .name = a->tool_file, .fd = a->tool_fd };
    struct err e = { 0 };
    if (a->ev.keep_file && a->ev.keep_file(a->ud, a->tool_file, a->tool_fd, &e) < 0)
        log_warn("tool_file_not_kept", KV_S("turn", a->in.seed), KV_E(&e));
    a->asking_box = true;
    if (lseek(a->tool_fd, 0, SEEK_SET) < 0 || a->in.box_ops->ask(a->in.box, &put, &events, a, &e) < 0)
        on_put(a, NULL, &e);
}

/* ---- a service ---- */

static void on_result(void *ud, const struct tool_result *r)
{
    struct agent *a = ud;
    const struct planned_call *p = &a->plan[a->plan_at];
    AUTO(str_clear) struct str text = STR_INIT(RESULT_MAX);
    a->tool_call = NULL;
    result_cap(&text, r->text, r->text_max - r->text_max / 4, r->text_max / 4);
    a->tool_fd = r->fd >= 0 ? fcntl(r->fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (a->tool_fd < 0) {
        report(a, str_peek(&text), !r->failed, NULL);
        agent_run(a);
        return;
    }
    a->tool_text = str_take(&text);
    a->tool_file = file_name(a, p->name, r->kind);
    put_file(a);
}

/* False: it could not begin, and the result says why. */
static bool start_service(struct agent *a, const struct planned_call *p)
{
    static const struct tool_events events = { .done = on_result };
    autojson struct json *args = NULL;
    struct tool_target target = { 0 };
    struct err e = { 0 };
    if (json_parse(&args, p->args, strlen(p->args), RESULT_MAX, &e) == 0 &&
        tool_set_target(&target, a->in.tools, p->tool, args, &e) == 0 &&
        target.ops->call(&a->tool_call, target.service, p->name, args, &events, a, &e) == 0) {
        a->tool_ops = target.ops;
        return true;
    }
    if (e.kind != ERR_DATA)
        log_error("tool_not_called", KV_S("tool", p->name), KV_E(&e));
    autofree char *why =
        xasprintf("The call could not be made: %s\n", e.kind == ERR_DATA ? e.msg : "the service is not there");
    report(a, why, false, NULL);
    return false;
}

bool agent_run_tool(struct agent *a)
{
    const struct planned_call *p = &a->plan[a->plan_at];
    if (p->tool->rule == TOOL_HARMLESS) {
        run_harmless(a, p);
        return true;
    }
    agent_tell(a, AGENT_THINKING);
    return !start_service(a, p);
}

/* ---- not any more ---- */

bool agent_tool_cancel(struct agent *a)
{
    if (!a->tool_call)
        return false;
    a->tool_ops->cancel(a->tool_call);
    a->tool_call = NULL;
    return true;
}

bool agent_tool_late(struct agent *a)
{
    if (!agent_tool_cancel(a))
        return false;
    a->limit = LIMIT_TIME;
    report(a, "The turn's time is over; the service had not answered yet.", false, NULL);
    agent_run(a);
    return true;
}

void agent_tool_clear(struct agent *a)
{
    (void)agent_tool_cancel(a);
    drop_file(a);
}
