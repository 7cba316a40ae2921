/* fence.c - blocks from calls, calls from blocks. */
#include "fence.h"
#include <strings.h>

enum { TALK_MAX = 32 << 20, INDENT_MAX = 12 };

/* ---- lines ---- */

enum line_event { LINE_PLAIN, LINE_OPENS, LINE_CLOSES };

/* What a block of that language holds. */
static enum fence_kind kind_of(const struct fence_lines *f, const char *word, size_t n)
{
    static const struct {
        const char *word;
        enum fence_kind kind;
    } words[] = { { "python", FENCE_PROGRAM }, { "python3", FENCE_PROGRAM },
                  { "py", FENCE_PROGRAM },     { "tool_code", FENCE_PROGRAM },
                  { "tool", FENCE_TOOL },      { "tool_call", FENCE_TOOL },
                  { "sql", FENCE_SQL } };
    for (size_t i = 0; i < countof(words); i++) {
        if (n != strlen(words[i].word) || strncasecmp(word, words[i].word, n) != 0)
            continue;
        const bool known = words[i].kind == FENCE_PROGRAM || (words[i].kind == FENCE_SQL ? f->sql : f->tools);
        return known ? words[i].kind : FENCE_OTHER;
    }
    return FENCE_OTHER;
}

static bool is_call(enum fence_kind kind)
{
    return kind == FENCE_PROGRAM || kind == FENCE_TOOL || kind == FENCE_SQL;
}

/* The tool that takes SQL, NULL: none. */
static const char *sql_tool(const struct json *schema)
{
    for (const struct json *t = json_first(schema); t; t = json_next(t))
        if (json_get(json_get(json_get(t, "parameters"), "properties"), "sql"))
            return json_str_or(t, "name", NULL);
    return NULL;
}

struct fence_lines fence_lines_for(const struct json *schema)
{
    return (struct fence_lines){ .tools = json_len(schema) > 1, .sql = sql_tool(schema) != NULL };
}

static size_t span(const char *at, const char *end, char c)
{
    const char *from = at;
    while (at < end && *at == c)
        at++;
    return (size_t)(at - from);
}

static size_t blanks(const char *at, const char *end)
{
    const char *from = at;
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return (size_t)(at - from);
}

static size_t word(const char *at, const char *end)
{
    const char *from = at;
    while (at < end && *at != ' ' && *at != '\t' && *at != '\r' && *at != '{')
        at++;
    return (size_t)(at - from);
}

/* LINE_OPENS and LINE_CLOSES are said of programs and calls only. line: without its LF. */
static enum line_event next_line(struct fence_lines *f, const char *line, size_t n)
{
    const char *end = line + n, *at = line;
    const size_t indent = blanks(at, end);
    at += indent;
    const size_t ticks = span(at, end, '`');
    at += ticks;
    if (ticks < 3 || (f->in == FENCE_PROSE && indent > INDENT_MAX))
        return LINE_PLAIN;
    at += blanks(at, end);
    if (f->in != FENCE_PROSE) {
        const bool closes = at == end && ticks >= f->ticks, call = is_call(f->in);
        if (closes)
            f->in = FENCE_PROSE;
        return closes && call ? LINE_CLOSES : LINE_PLAIN;
    }
    f->in = kind_of(f, at, word(at, end));
    f->ticks = ticks;
    f->indent = indent;
    return is_call(f->in) ? LINE_OPENS : LINE_PLAIN;
}

/* ---- a stream ---- */

bool fence_watch_add(struct fence_watch *w, const char *text, size_t n)
{
    while (n > 0) {
        const char *lf = memchr(text, '\n', n);
        const size_t len = lf ? (size_t)(lf - text) : n;
        str_add(&w->line, text, len);
        if (!lf)
            return false;
        const enum line_event event = next_line(&w->lines, str_peek(&w->line), w->line.len);
        str_clear(&w->line);
        if (event == LINE_CLOSES)
            return true;
        text += len + 1;
        n -= len + 1;
    }
    return false;
}

void fence_watch_clear(struct fence_watch *w)
{
    str_clear(&w->line);
    w->lines = (struct fence_lines){ 0 };
}

/* ---- an answer ---- */

struct program {
    size_t before; /* bytes of text in front of its block */
    struct str code;
    enum fence_kind kind;
    enum { PROGRAM_NONE, PROGRAM_OPEN, PROGRAM_WHOLE } state;
};

static void add_code(struct str *code, const char *line, size_t n, size_t indent)
{
    size_t cut = 0;
    while (cut < indent && cut < n && (line[cut] == ' ' || line[cut] == '\t'))
        cut++;
    n -= n && line[n - 1] == '\r';
    if (n > cut)
        str_add(code, line + cut, n - cut);
    str_putc(code, '\n');
}

static void program_clear(struct program *p)
{
    str_clear(&p->code);
}

/* A later block replaces an earlier one when it is whole, or when none was. */
static void keep(struct program *best, struct program *now)
{
    if (now->state == PROGRAM_NONE || (now->state == PROGRAM_OPEN && best->state == PROGRAM_WHOLE)) {
        program_clear(now);
        return;
    }
    program_clear(best);
    *best = *now;
    *now = (struct program){ .code = STR_INIT(FENCE_PROGRAM_MAX) };
}

static void find_program(struct program *best, const char *text, bool first, const struct json *schema)
{
    struct fence_lines lines = fence_lines_for(schema);
    struct program now = { .code = STR_INIT(FENCE_PROGRAM_MAX) };
    for (const char *at = text; *at && !(first && best->state == PROGRAM_WHOLE);) {
        const size_t n = strcspn(at, "\n");
        const bool inside = is_call(lines.in);
        const enum line_event event = next_line(&lines, at, n);
        if (event == LINE_OPENS) {
            now.before = (size_t)(at - text);
            now.state = PROGRAM_OPEN;
            now.kind = lines.in;
        } else if (event == LINE_CLOSES) {
            now.state = PROGRAM_WHOLE;
            keep(best, &now);
        } else if (inside) {
            add_code(&now.code, at, n, lines.indent);
        }
        at += n + (at[n] == '\n');
    }
    keep(best, &now);
    program_clear(&now);
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

static char *args_of(const struct program *p, bool cut)
{
    AUTO(str_clear) struct str text = STR_INIT(SIZE_MAX);
    autojson struct json *o = json_new_object();
    if (cut || p->code.overflow)
        return xstrdup("{\"code\":");
    json_set_str(o, p->kind == FENCE_SQL ? "sql" : "code", str_peek(&p->code));
    json_print(&text, o);
    return str_take(&text);
}

/* {"name":"rates","arguments":{"base":"EUR"}}; arguments beside the name are as good. What cannot be read stays text: the agent says so. */
static void read_tool(struct model_tool_call *c, const char *text)
{
    autojson struct json *v = NULL, *beside = json_new_object();
    AUTO(str_clear) struct str args = STR_INIT(SIZE_MAX);
    struct err ignored = { 0 };
    if (json_parse(&v, text, strlen(text), FENCE_PROGRAM_MAX, &ignored) < 0 || !*json_str_or(v, "name", ""))
        return;
    const struct json *given = json_get(v, "arguments") ? json_get(v, "arguments") : json_get(v, "parameters");
    for (const struct json *m = json_first(v); m && !given; m = json_next(m))
        if (strcmp(json_key(m), "name") != 0)
            json_set(beside, json_key(m), json_dup(m));
    json_print(&args, given ? given : beside);
    free(c->name);
    free(c->args);
    *c = (struct model_tool_call){ .id = c->id, .name = xstrdup(json_str_or(v, "name", "")), .args = str_take(&args) };
}

static struct model_tool_call call_of(const struct program *p, bool cut, const struct json *schema, const char *id)
{
    const char *code_tool = json_str_or(json_first(schema), "name", "run_python"), *sql = sql_tool(schema);
    struct model_tool_call c = {
        .id = xstrdup(id),
        .name = xstrdup(p->kind == FENCE_SQL && sql ? sql : code_tool),
        .args = p->kind == FENCE_TOOL && !cut ? xstrdup(str_peek(&p->code)) : args_of(p, cut),
    };
    if (p->kind == FENCE_TOOL && !cut)
        read_tool(&c, str_peek(&p->code));
    return c;
}

static void keep_prose(struct model_msg *m, size_t n)
{
    while (n && strchr(" \t\r\n", m->text[n - 1]))
        n--;
    m->text[n] = '\0';
}

void fence_answer(struct model_answer *a, bool streamed, const struct json *schema, const char *id)
{
    AUTO(program_clear) struct program p = { .code = STR_INIT(FENCE_PROGRAM_MAX) };
    find_program(&p, a->msg.text, streamed, schema);
    if (a->msg.call_n || p.state == PROGRAM_NONE || (p.state == PROGRAM_WHOLE && is_blank(str_peek(&p.code))))
        return;
    const bool cut = p.state == PROGRAM_OPEN && a->stop == MODEL_STOP_LENGTH;
    free(a->msg.calls);
    a->msg.calls = xcalloc(1, sizeof(*a->msg.calls));
    a->msg.calls[0] = call_of(&p, cut, schema, id);
    a->msg.call_n = 1;
    free(a->msg.raw);
    a->msg.raw = NULL;
    a->msg.provider = NULL;
    keep_prose(&a->msg, p.before);
    if (!cut && a->stop == MODEL_STOP_LENGTH)
        a->stop = MODEL_STOP_END; /* what was cut is the chatter behind the program */
}

/* ---- the conversation ---- */

/* As the model wrote it, so that it sees its own hand. */
static void add_block(struct str *out, const struct model_tool_call *c)
{
    autojson struct json *v = NULL, *whole = json_new_object();
    struct err ignored = { 0 };
    if (json_parse(&v, c->args, strlen(c->args), TALK_MAX, &ignored) < 0)
        v = json_new_object();
    const char *code = json_str_or(v, "code", NULL), *sql = json_len(v) == 1 ? json_str_or(v, "sql", NULL) : NULL;
    const char *text = code ? code : sql ? sql : NULL;
    AUTO(str_clear) struct str call = STR_INIT(TALK_MAX);
    if (!text && strcmp(c->name, "run_python") != 0) {
        json_set_str(whole, "name", c->name);
        json_set(whole, "arguments", take(v));
        json_print(&call, whole);
        str_printf(out, "```tool\n%s\n```", str_peek(&call));
        return;
    }
    const size_t n = strlen(text ? text : "");
    str_printf(out, "```%s\n%s%s```", sql ? "sql" : "python", text ? text : "", n && text[n - 1] != '\n' ? "\n" : "");
}

static char *blocks(const struct model_msg *m)
{
    AUTO(str_clear) struct str text = STR_INIT(TALK_MAX);
    str_puts(&text, m->text);
    for (size_t i = 0; i < m->call_n; i++) {
        str_puts(&text, text.len ? "\n\n" : "");
        add_block(&text, &m->calls[i]);
    }
    return str_take(&text);
}

static char *said(const struct model_msg *m, const struct model_fence_words *w)
{
    switch (m->role) {
    case MODEL_ASSISTANT: return blocks(m);
    case MODEL_TOOL: return xasprintf("%s\n%s", m->failed ? w->failed : w->output, m->text);
    case MODEL_USER: return xasprintf("%s%s%s", m->text, *w->remind ? "\n\n" : "", w->remind);
    case MODEL_SYSTEM: break;
    }
    return xstrdup(m->text);
}

static void add(struct fence_talk *t, enum model_role role, char *take_text)
{
    struct model_msg *m = &t->msgs[t->n++];
    m->role = role;
    m->text = take_text;
}

/* Each message always comes out the same, so that what was read of a conversation is found again. */
void fence_talk_make(struct fence_talk *t, const struct model_ask *ask)
{
    static const struct model_fence_words none = { "", "", "", "", NULL };
    const struct model_fence_words *w = ask->fence ? ask->fence : &none;
    size_t i = 0;
    *t = (struct fence_talk){ .msgs = xcalloc(ask->msg_n + 1, sizeof(*t->msgs)) };
    for (; i < ask->msg_n && ask->msgs[i].role == MODEL_SYSTEM; i++)
        add(t, MODEL_SYSTEM, xstrdup(ask->msgs[i].text));
    if (*w->how)
        add(t, MODEL_SYSTEM, xasprintf("%s%s%s", w->how, w->tools ? "\n\n" : "", w->tools ? w->tools : ""));
    for (; i < ask->msg_n; i++)
        add(t, ask->msgs[i].role == MODEL_TOOL ? MODEL_USER : ask->msgs[i].role, said(&ask->msgs[i], w));
}

void fence_talk_clear(struct fence_talk *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->msgs[i].text);
    free(t->msgs);
    *t = (struct fence_talk){ 0 };
}

void fence_forget(struct model_answer *a, const struct model_fence_words *w)
{
    enum { TELLING = 24 }; /* bytes of it that nobody says by chance */
    if (!w || strlen(w->remind) < TELLING || !a->msg.text)
        return;
    autofree char *begin = xstrndup(w->remind, TELLING);
    for (char *at; (at = strstr(a->msg.text, begin));) {
        char *end = strstr(at, "\n\n");
        end = end ? end : at + strlen(at);
        while (at > a->msg.text && strchr(" \n", at[-1]))
            at--;
        memmove(at, end, strlen(end) + 1);
    }
}
