/* fence.c - blocks from calls, calls from blocks. */
#include "fence.h"
#include <strings.h>
#include "json.h"

enum { TALK_MAX = 32 << 20, INDENT_MAX = 12 };

/* ---- lines ---- */

enum line_event { LINE_PLAIN, LINE_OPENS, LINE_CLOSES };

static bool is_python(const char *word, size_t n)
{
    static const char *const words[] = { "python", "python3", "py" };
    for (size_t i = 0; i < countof(words); i++)
        if (n == strlen(words[i]) && strncasecmp(word, words[i], n) == 0)
            return true;
    return false;
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

/* LINE_OPENS and LINE_CLOSES are said of programs only. line: without its LF. */
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
        const bool closes = at == end && ticks >= f->ticks, program = f->in == FENCE_PROGRAM;
        if (closes)
            f->in = FENCE_PROSE;
        return closes && program ? LINE_CLOSES : LINE_PLAIN;
    }
    f->in = is_python(at, word(at, end)) ? FENCE_PROGRAM : FENCE_OTHER;
    f->ticks = ticks;
    f->indent = indent;
    return f->in == FENCE_PROGRAM ? LINE_OPENS : LINE_PLAIN;
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

static void find_program(struct program *best, const char *text, bool first)
{
    struct fence_lines lines = { 0 };
    struct program now = { .code = STR_INIT(FENCE_PROGRAM_MAX) };
    for (const char *at = text; *at && !(first && best->state == PROGRAM_WHOLE);) {
        const size_t n = strcspn(at, "\n");
        const bool inside = lines.in == FENCE_PROGRAM;
        const enum line_event event = next_line(&lines, at, n);
        if (event == LINE_OPENS) {
            now.before = (size_t)(at - text);
            now.state = PROGRAM_OPEN;
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
    json_set_str(o, "code", str_peek(&p->code));
    json_print(&text, o);
    return str_take(&text);
}

static void keep_prose(struct model_msg *m, size_t n)
{
    while (n && strchr(" \t\r\n", m->text[n - 1]))
        n--;
    m->text[n] = '\0';
}

void fence_answer(struct model_answer *a, bool streamed, const char *tool, const char *id)
{
    AUTO(program_clear) struct program p = { .code = STR_INIT(FENCE_PROGRAM_MAX) };
    find_program(&p, a->msg.text, streamed);
    if (a->msg.call_n || p.state == PROGRAM_NONE || (p.state == PROGRAM_WHOLE && is_blank(str_peek(&p.code))))
        return;
    const bool cut = p.state == PROGRAM_OPEN && a->stop == MODEL_STOP_LENGTH;
    free(a->msg.calls);
    a->msg.calls = xcalloc(1, sizeof(*a->msg.calls));
    a->msg.calls[0] = (struct model_tool_call){ .id = xstrdup(id), .name = xstrdup(tool), .args = args_of(&p, cut) };
    a->msg.call_n = 1;
    free(a->msg.raw);
    a->msg.raw = NULL;
    a->msg.provider = NULL;
    keep_prose(&a->msg, p.before);
    if (!cut && a->stop == MODEL_STOP_LENGTH)
        a->stop = MODEL_STOP_END; /* what was cut is the chatter behind the program */
}

/* ---- the conversation ---- */

static char *code_of(const char *args)
{
    autojson struct json *v = NULL;
    struct err ignored = { 0 };
    if (json_parse(&v, args, strlen(args), TALK_MAX, &ignored) < 0)
        return xstrdup("");
    return xstrdup(json_str_or(v, "code", ""));
}

/* As the model wrote it, so that it sees its own hand. */
static char *blocks(const struct model_msg *m)
{
    AUTO(str_clear) struct str text = STR_INIT(TALK_MAX);
    str_puts(&text, m->text);
    for (size_t i = 0; i < m->call_n; i++) {
        autofree char *code = code_of(m->calls[i].args);
        const size_t n = strlen(code);
        str_printf(&text, "%s```python\n%s%s```", text.len ? "\n\n" : "", code, n && code[n - 1] != '\n' ? "\n" : "");
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
    static const struct model_fence_words none = { "", "", "", "" };
    const struct model_fence_words *w = ask->fence ? ask->fence : &none;
    size_t i = 0;
    *t = (struct fence_talk){ .msgs = xcalloc(ask->msg_n + 1, sizeof(*t->msgs)) };
    for (; i < ask->msg_n && ask->msgs[i].role == MODEL_SYSTEM; i++)
        add(t, MODEL_SYSTEM, xstrdup(ask->msgs[i].text));
    if (*w->how)
        add(t, MODEL_SYSTEM, xstrdup(w->how));
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
