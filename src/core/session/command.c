/* command.c - words that are commands: a sorted table. What is not in it goes to the agent. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <strings.h>
#include "conf.h"
#include "json.h"
#include "log.h"
#include "session_private.h"

enum {
    REPLY_MAX = 32 << 10,
    CODE_BYTES = 6000, /* of the newest cells, in chat */
    HISTORY_SHOWN = 10,
    QUESTION_BYTES = 120,
    CELLS_JSON_MAX = 64 << 20,
};

struct command {
    const char *name;
    const char *arg;                                 /* how its argument is called in the help; NULL: none */
    void (*run)(struct request *r, const char *arg); /* answers at once */
    enum box_op op;                                  /* run NULL: the box is asked this, in the queue */
    void (*show)(struct request *r, const struct json *reply);
    const char *en, *zh;
};

static bool is_zh(const struct request *r)
{
    return strcmp(r->language, "zh") == 0;
}

static void say(struct request *r, enum word w, const char *a, const char *b)
{
    session_notice_words(r->session, r, w, a, b);
}

static void show(struct request *r, struct str *text)
{
    session_notice(r->session, r, str_take(text));
}

/* ---- asked of the store ---- */

/* Each version that a person sent, and the newest that a cell made of a name. */
static void list_file(struct str *text, const struct file_row *rows, size_t n, size_t i)
{
    const struct file_row *f = &rows[i];
    bool newest = true;
    for (size_t k = i + 1; k < n; k++)
        newest = newest && strcmp(rows[k].name, f->name) != 0;
    if (f->cell > 0 && !newest)
        return;
    str_printf(text, "- `%s`, v%" PRId64, f->name, f->version);
    if (!f->gone)
        str_printf(text, ", %" PRId64 " KB", (f->bytes + 1023) / 1024);
    if (f->cell > 0)
        str_printf(text, f->gone ? ", deleted by cell %d" : ", made by cell %d", f->cell);
    str_putc(text, '\n');
}

static void run_files(struct request *r, const char *arg)
{
    struct session *s = r->session;
    struct file_row *rows = NULL;
    struct err e = { 0 };
    size_t n = 0;
    AUTO(str_clear) struct str text = STR_INIT(REPLY_MAX);
    (void)arg;
    if (store_files(s->hub->parts.store, s->row.id, &rows, &n, &e) < 0) {
        log_error("files_unread", KV_S("session", s->row.id), KV_E(&e));
        say(r, WORD_TRY_AGAIN, NULL, NULL);
        return;
    }
    for (size_t i = 0; i < n; i++)
        list_file(&text, rows, n, i);
    for (size_t i = 0; i < n; i++)
        file_row_clear(&rows[i]);
    free(rows);
    if (n)
        show(r, &text);
    else
        say(r, WORD_NO_FILES, NULL, NULL);
}

/* As it was written, whatever stands in it: the fence is longer than any run of backticks inside. */
static void add_program(struct str *text, int64_t number, const char *code)
{
    static const char ticks[] = "````````````````";
    size_t most = 2, n = utf8_cut(code, strlen(code), CODE_BYTES);
    for (const char *at = code; *at;) {
        const size_t run = strspn(at, "`");
        most = run > most ? run : most;
        at += run ? run : 1;
    }
    const int fence = (int)(most + 1 < sizeof(ticks) ? most + 1 : sizeof(ticks) - 1);
    while (n && code[n - 1] == '\n')
        n--;
    str_printf(text, "%.*spython\n# %" PRId64 "\n%.*s\n%.*s\n", fence, ticks, number, (int)n, code, fence, ticks);
}

/* The newest programs that fit, oldest of them first. */
static void run_code(struct request *r, const char *arg)
{
    struct session *s = r->session;
    autofree char *cells_text = NULL;
    autojson struct json *cells = NULL;
    struct err e = { 0 };
    AUTO(str_clear) struct str text = STR_INIT(REPLY_MAX);
    (void)arg;
    if (store_cells(s->hub->parts.store, s->row.id, &cells_text, &e) < 0 ||
        json_parse(&cells, cells_text, strlen(cells_text), CELLS_JSON_MAX, &e) < 0) {
        log_error("cells_unread", KV_S("session", s->row.id), KV_E(&e));
        say(r, WORD_TRY_AGAIN, NULL, NULL);
        return;
    }
    size_t total = 0;
    for (const struct json *c = json_first(cells); c; c = json_next(c))
        total += strlen(json_str_or(c, "code", "")) + 40;
    for (const struct json *c = json_first(cells); c; c = json_next(c)) {
        const char *code = json_str_or(c, "code", "");
        if (total <= CODE_BYTES || !json_next(c))
            add_program(&text, json_int_or(c, "cell", 0), code);
        total -= strlen(code) + 40;
    }
    if (text.len)
        show(r, &text);
    else
        say(r, WORD_NO_CODE, NULL, NULL);
}

/* A question's first line that says something; of a program, of its code. What would begin a block of Markdown does not. */
static void add_question(struct str *text, const char *question)
{
    const bool program = strncmp(question, "```", 3) == 0 || strncmp(question, "~~~", 3) == 0;
    if (program)
        question += strcspn(question, "\n");
    question += strspn(question, " \t\r\n");
    const size_t line = strcspn(question, "\r\n"), cut = utf8_cut(question, line, QUESTION_BYTES);
    if (program)
        str_putc(text, '`');
    else if (*question && strchr("#>-+*|~`=", *question))
        str_putc(text, '\\');
    for (size_t i = 0; i < cut; i++)
        str_putc(text, (char)(program && question[i] == '`' ? '\'' : question[i]));
    str_puts(text, question[cut] ? " ..." : "");
    if (program)
        str_putc(text, '`');
}

static void run_history(struct request *r, const char *arg)
{
    struct session *s = r->session;
    struct turn_row *turns = NULL;
    struct err e = { 0 };
    size_t n = 0;
    AUTO(str_clear) struct str text = STR_INIT(REPLY_MAX);
    (void)arg;
    if (store_turns(s->hub->parts.store, s->row.id, HISTORY_SHOWN, &turns, &n, &e) < 0)
        log_error("history_unread", KV_S("session", s->row.id), KV_E(&e));
    for (size_t i = 0; i < n; i++) {
        str_printf(&text, "%zu. ", i + 1);
        add_question(&text, turns[i].request);
        str_printf(&text, " *(%s)*\n", turns[i].status);
        turn_row_clear(&turns[i]);
    }
    free(turns);
    if (n)
        show(r, &text);
    else
        say(r, WORD_NO_HISTORY, NULL, NULL);
}

/* ---- asked of the session ---- */

/* What runs, whoever asked for it. What waits was asked on purpose, often in place of what runs: that goes only when it is said. */
static void run_stop(struct request *r, const char *arg)
{
    struct session *s = r->session;
    const size_t dropped = strcasecmp(arg, "all") == 0 ? session_drop_requests(s, r->sender) : 0;
    if (s->turn)
        turn_cancel(s, r->name, false); /* the turn's own answer says the rest */
    else
        say(r, dropped ? WORD_STOPPING : WORD_NOTHING_RUNS, NULL, NULL);
}

/* A number from `least` on, and nothing else; -1 when it is none. */
static int number_of(const char *word, int least)
{
    char *end = NULL;
    const long n = *word >= '0' && *word <= '9' ? strtol(word, &end, 10) : -1;
    return n < least || n > INT_MAX || *end ? -1 : (int)n;
}

/* A question of the history anew, as this person's own: the last, or that number. */
static void run_rerun(struct request *r, const char *arg)
{
    struct session *s = r->session;
    struct turn_row *turns = NULL;
    struct err e = { 0 };
    size_t n = 0;
    if (store_turns(s->hub->parts.store, s->row.id, HISTORY_SHOWN, &turns, &n, &e) < 0)
        log_error("history_unread", KV_S("session", s->row.id), KV_E(&e));
    const int which = *arg ? number_of(arg, 1) : (int)n;
    autofree char *shown = xasprintf("%zu", n);
    if (n == 0)
        say(r, WORD_NO_RERUN, NULL, NULL);
    else if (which < 1 || (size_t)which > n)
        say(r, WORD_NO_QUESTION, arg, shown);
    else
        request_enqueue(request_new(s, r->seq, r->event_id, r->sender, r->name, turns[which - 1].request));
    for (size_t i = 0; i < n; i++)
        turn_row_clear(&turns[i]);
    free(turns);
}

/* A program whose output anybody can judge: what is installed, a table, a chart with other scripts in it. */
static void run_test(struct request *r, const char *arg)
{
    static const char program[] =
        "```python\n"
        "import platform, numpy as np, pandas as pd, matplotlib, matplotlib.pyplot as plt\n"
        "print('Python', platform.python_version(), '- pandas', pd.__version__, '- matplotlib', matplotlib.__version__)\n"
        "table = pd.DataFrame({'x': range(1, 6), 'square': [n * n for n in range(1, 6)]})\n"
        "angle = np.linspace(0, 2 * np.pi, 200)\n"
        "plt.plot(angle, np.sin(angle))\n"
        "plt.title('sine, \xe6\xad\xa3\xe5\xbc\xa6, \xf0\x9f\x93\x88')\n"
        "table\n"
        "```";
    (void)arg;
    request_enqueue(request_new(r->session, r->seq, r->event_id, r->sender, r->name, program));
}

static void run_usage(struct request *r, const char *arg)
{
    (void)arg;
    session_notice(r->session, r, session_usage_text(r));
}

static void run_limits(struct request *r, const char *arg)
{
    (void)arg;
    session_notice(r->session, r, session_limits_text(r));
}

static void run_export(struct request *r, const char *arg)
{
    (void)arg;
    session_export(r);
}

static char *model_names(const struct conf *c)
{
    AUTO(str_clear) struct str names = STR_INIT(REPLY_MAX);
    bool builtin = false;
    for (size_t i = 0; i < c->model_n; i++) {
        builtin = builtin || strcmp(c->models[i].section, "builtin") == 0;
        str_printf(&names, "%s`%s`", names.len ? ", " : "", c->models[i].section);
    }
    if (!builtin)
        str_printf(&names, "%s`builtin`", names.len ? ", " : "");
    return str_take(&names);
}

static void run_model(struct request *r, const char *arg)
{
    struct session *s = r->session;
    struct err e = { 0 };
    autofree char *names = model_names(s->hub->parts.conf);
    if (!*arg) {
        say(r, WORD_MODEL_IS, session_model(s)->section, names);
        return;
    }
    const struct conf_model *section = conf_find_model(s->hub->parts.conf, arg);
    if (!section) {
        say(r, WORD_MODEL_NONE, arg, names);
    } else if (!session_hub_model(s->hub, section, &e)) {
        log_error("model_not_opened", KV_S("model", arg), KV_E(&e));
        say(r, WORD_MODEL_SETUP, NULL, NULL);
    } else {
        s->model = section;
        if (store_session_model(s->hub->parts.store, s->row.id, section->section, &e) < 0)
            log_error("model_not_kept", KV_S("session", s->row.id), KV_E(&e));
        say(r, WORD_MODEL_NOW, section->section, NULL);
    }
}

/* ---- asked of the box ---- */

static void show_vars(struct request *r, const struct json *reply)
{
    AUTO(str_clear) struct str text = STR_INIT(REPLY_MAX);
    for (const struct json *v = json_first(json_get(reply, "vars")); v; v = json_next(v)) {
        const char *detail = json_str_or(v, "detail", "");
        const size_t n = utf8_cut(detail, strcspn(detail, "\n"), QUESTION_BYTES);
        str_printf(&text, "- `%s` %s%s%.*s\n", json_str_or(v, "name", "?"), json_str_or(v, "type", ""), n ? ", " : "",
                   (int)n, detail);
    }
    if (text.len)
        show(r, &text);
    else
        say(r, WORD_NO_VARS, NULL, NULL);
}

static void show_reset(struct request *r, const struct json *reply)
{
    (void)reply;
    r->session->fresh = r->session->row.cells > 0;
    session_keep_reset(r->session);
    say(r, WORD_RESET, NULL, NULL);
}

/* What could not be carried back is named: a live thread, an open socket. */
static void show_back(struct request *r, const struct json *reply)
{
    AUTO(str_clear) struct str text = STR_INIT(REPLY_MAX);
    if (!reply) {
        say(r, WORD_NO_VARS, NULL, NULL);
        return;
    }
    autofree char *first =
        words_n(r->session->base ? WORD_WENT_BACK : WORD_WENT_BACK_ALL, r->language, r->session->base, 0);
    str_puts(&text, first);
    for (const struct json *n = json_first(json_get(reply, "notes")); n; n = json_next(n)) {
        const char *note = json_text(n) ? json_text(n) : "";
        str_puts(&text, "\n- ");
        utf8_scrub(&text, note, utf8_cut(note, strcspn(note, "\n"), (size_t)QUESTION_BYTES * 2));
    }
    show(r, &text);
}

/* What could not be put back is said once, here or under the next answer. */
static void tell_thawed(struct request *r)
{
    autofree char *text = session_thawed_words(r->session, r->language);
    if (text)
        session_notice(r->session, r, take(text));
    session_thawed_told(r->session);
}

static void end_errand(struct session *s, const struct json *reply, const struct err *e)
{
    struct request *r = s->errand;
    if (e && e->kind == ERR_REFUSED) {
        say(r, WORD_STATE_GONE, e->msg, NULL); /* it says which are there */
    } else if (e) {
        log_warn("errand_failed", KV_S("session", s->row.id), KV_S("command", r->command->name), KV_E(e));
        say(r, WORD_TRY_AGAIN, NULL, NULL);
    } else {
        r->command->show(r, reply);
    }
    tell_thawed(r);
    errand_done(s);
}

static void on_errand(void *ud, const struct box_reply *reply, const struct err *e)
{
    end_errand(ud, reply ? reply->reply : NULL, e);
}

/* The box has what the session has. */
static void ask_box(struct session *s, const struct err *e)
{
    static const struct box_events events = { .done = on_errand };
    const struct command *c = s->errand->command;
    const char *arg = NULL;
    struct err failed = { 0 };
    (void)command_find(s->errand->text, true, &arg);
    const struct box_request ask = { .op = c->op, .number = c->arg && arg ? number_of(arg, 0) : 0, .fd = -1 };
    if (e)
        end_errand(s, NULL, e);
    else if (c->op == BOX_OP_UNDO || c->op == BOX_OP_BRANCH)
        session_back(s, c->op, ask.number, c->op == BOX_OP_BRANCH, end_errand);
    else if (s->hub->parts.sandbox_ops->ask(s->box, &ask, &events, s, &failed) < 0)
        end_errand(s, NULL, &failed);
}

static void thaw_first(struct session *s)
{
    struct err e = { 0 };
    if (session_open_box(s, &e) < 0)
        end_errand(s, NULL, &e);
    else
        session_ready(s, true, ask_box);
}

void command_errand(const struct command *c, struct request *r)
{
    const char *arg = NULL;
    (void)command_find(r->text, true, &arg);
    struct session *s = r->session;
    if (c->run) {
        c->run(r, "");
    } else if (c->arg && arg && number_of(arg, 0) < 0) {
        say(r, *arg ? WORD_NO_CELL : WORD_WHICH_CELL, arg, NULL);
        errand_done(s);
    } else if (session_may_thaw(s) && c->op != BOX_OP_RESET) {
        thaw_first(s);
    } else if (!s->box) {
        end_errand(s, NULL, NULL); /* no box: no variables, and nothing to reset */
    } else {
        ask_box(s, NULL);
    }
}

/* ---- the table ---- */

static void run_help(struct request *r, const char *arg);

static const struct command commands[] = {
    /* sorted by name */
    { "branch", "N", NULL, BOX_OP_BRANCH, show_back,
      "variables and files as they were after cell N, as a branch; 0: no variables",
      "变量和文件回到第 N 个单元之后，另成分支；0：清空变量" },
    { "code", NULL, run_code, BOX_OP_CELL, NULL, "the programs that were run", "运行过的程序" },
    { "export", NULL, run_export, BOX_OP_CELL, NULL, "this conversation as a notebook, with its data",
      "把这个会话导出为笔记本和数据" },
    { "files", NULL, run_files, BOX_OP_CELL, NULL, "the files of this conversation", "这个会话里的文件" },
    { "forget", NULL, session_forget, BOX_OP_CELL, NULL,
      "forget all of this conversation: words, code, files, variables", "忘记整个会话：对话、代码、文件和变量" },
    { "help", NULL, run_help, BOX_OP_CELL, NULL, "this list", "显示这个列表" },
    { "history", NULL, run_history, BOX_OP_CELL, NULL, "the last questions", "最近的问题" },
    { "limits", NULL, run_limits, BOX_OP_CELL, NULL, "the limits, and how much of them is used", "限额和已用量" },
    { "model", "NAME", run_model, BOX_OP_CELL, NULL, "which model answers; with a name: change it",
      "当前使用的模型；加上名称可切换" },
    { "rerun", "[N]", run_rerun, BOX_OP_CELL, NULL, "put the last question again; N: that one of the history",
      "重新回答上一个问题；N：历史中的第 N 个" },
    { "reset", NULL, NULL, BOX_OP_RESET, show_reset, "forget all variables, keep the files", "清空变量，保留文件" },
    { "stop", "[all]", run_stop, BOX_OP_CELL, NULL, "stop what is running; all: and what you have waiting",
      "停止正在运行的任务；all：连同你排队的问题" },
    { "test", NULL, run_test, BOX_OP_CELL, NULL, "run a small program with a table and a chart",
      "运行一个带表格和图表的小程序" },
    { "undo", NULL, NULL, BOX_OP_UNDO, show_back, "variables as they were before the last cell",
      "变量回到上一个单元之前" },
    { "usage", NULL, run_usage, BOX_OP_CELL, NULL, "answers and tokens so far", "目前的回答次数和 token 用量" },
    { "vars", NULL, NULL, BOX_OP_VARS, show_vars, "the variables that exist now", "当前的变量" },
};

static void run_help(struct request *r, const char *arg)
{
    AUTO(str_clear) struct str text = STR_INIT(REPLY_MAX);
    (void)arg;
    str_puts(&text, is_zh(r) ? "发送文件，再用自己的话提问；或者发送一个 ```` ```python ```` 代码块，它会原样运行。\n\n"
                             : "Send a file and ask about it in your own words, or send a ```` ```python ```` block to "
                               "have it run as it is.\n\n");
    for (size_t i = 0; i < countof(commands); i++)
        str_printf(&text, "- `!%s%s%s` %s\n", commands[i].name, commands[i].arg ? " " : "",
                   commands[i].arg ? commands[i].arg : "", is_zh(r) ? commands[i].zh : commands[i].en);
    show(r, &text);
}

struct key {
    const char *at;
    size_t n;
};

static int by_name(const void *key, const void *element)
{
    const struct key *k = key;
    const struct command *c = element;
    const int order = strncasecmp(k->at, c->name, k->n);
    return order ? order : -(int)(c->name[k->n] != '\0');
}

/* Bytes of a point that ends a word of more than that: "Stop!" and "help." are what people write; a question mark asks. */
static size_t point_behind(const char *word, size_t n)
{
    static const char *const points[] = { ".", "!", "\xe3\x80\x82", "\xef\xbc\x81" };
    for (size_t i = 0; i < countof(points); i++) {
        const size_t len = strlen(points[i]);
        if (n > len && strncmp(word + n - len, points[i], len) == 0)
            return len;
    }
    return 0;
}

const struct command *command_find(const char *text, bool bare, const char **arg)
{
    static const char blanks[] = " \t\r\n", wide[] = "\xef\xbc\x81";
    text += strspn(text, blanks);
    const size_t mark = *text == '!' ? 1 : strncmp(text, wide, strlen(wide)) == 0 ? strlen(wide) : 0;
    if (!mark && !bare)
        return NULL;
    const char *word = text + mark;
    const size_t n = strcspn(word, blanks);
    struct key k = { word, n };
    for (size_t point; (point = point_behind(word, k.n));)
        k.n -= point;
    const struct command *c = bsearch(&k, commands, countof(commands), sizeof(*commands), by_name);
    if (!c)
        return NULL;
    const char *rest = word + n + strspn(word + n, blanks);
    const char *after = rest + strcspn(rest, blanks);
    const bool one_word = after[strspn(after, blanks)] == '\0';
    if ((*rest && !c->arg) || !one_word) /* "help me with ..." is a question */
        return NULL;
    *arg = rest;
    return c;
}

bool command_waits(const struct command *c)
{
    return !c->run || c->run == session_forget;
}

void command_run(const struct command *c, struct request *r, const char *arg)
{
    const size_t n = strcspn(arg, " \t\r\n");
    autofree char *word = xstrndup(arg, n);
    c->run(r, word);
}
