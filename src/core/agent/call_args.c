/* call_args.c - the salvage ladder for tool calls.
 *
 * Trust boundary: every byte here was written by a model, perhaps under the influence of a file. Reading a call can at
 * worst yield another program, and programs only run inside the box. */
#include "call_args.h"
#include <ctype.h>
#include <string.h>
#include "json.h"

enum {
    ARGS_MAX = 2 << 20,         /* of one call; a program is at most 1 MiB, escapes may double it */
    ESCAPED_MAX = 6 * ARGS_MAX, /* the same printed as JSON: a control character takes six */
    UNWRAP_MAX = 3,             /* levels of JSON in strings and of {"name","arguments"} */
};

struct slice {
    const char *at;
    size_t n;
};

/* ---- small readers ---- */

static struct slice trimmed(const char *text, size_t n)
{
    while (n && isspace((unsigned char)*text)) {
        text++;
        n--;
    }
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    return (struct slice){ text, n };
}

static bool starts(struct slice s, const char *prefix)
{
    const size_t n = strlen(prefix);
    return s.n >= n && memcmp(s.at, prefix, n) == 0;
}

static bool is_one_of(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* What other houses call the same thing. */
static bool is_our_tool(const char *name)
{
    static const char *const names[] = {
        CALL_TOOL, "python",   "python3",          "execute",        "exec", "code",
        "ipython", "run_code", "code_interpreter", "execute_python", "run",  "python_interpreter",
        "jupyter", "run_cell", "execute_code",     "python_repl",
    };
    return is_one_of(names, countof(names), name);
}

static bool is_shell(const char *name)
{
    static const char *const names[] = { "bash",      "execute_bash",  "shell",    "sh",          "run_bash",
                                         "run_shell", "execute_shell", "terminal", "run_command", "run_shell_command" };
    return is_one_of(names, countof(names), name);
}

/* True when text ends inside an object, an array or a string, read as JSON would read it. */
static bool is_open(struct slice s)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.at[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '['))
            depth++;
        else if (!quoted && (c == '}' || c == ']') && depth)
            depth--;
    }
    return quoted || depth;
}

/* {"...  and {'...: an object was meant, so that what does not parse is a broken call and no program. */
static bool means_object(struct slice s)
{
    const struct slice inner = s.n && s.at[0] == '{' ? trimmed(s.at + 1, s.n - 1) : (struct slice){ "", 0 };
    return inner.n && (inner.at[0] == '"' || inner.at[0] == '\'');
}

/* Code inside a fence, ```python ... ```: models add it by habit; it is never Python. Blanks before the first line belong to
 * Python's layout and stay. */
static struct slice without_fence(struct slice s)
{
    for (struct slice t = trimmed(s.at, s.n); starts(t, "```"); t = trimmed(s.at, s.n)) {
        const char *line = memchr(t.at, '\n', t.n);
        if (!line)
            break;
        if (t.n >= 3 && memcmp(t.at + t.n - 3, "```", 3) == 0)
            t.n -= 3;
        s.at = line + 1;
        s.n = t.at + t.n > s.at ? (size_t)(t.at + t.n - s.at) : 0;
    }
    return s;
}

static enum call_kind give_code(const char *text, size_t n, char **code)
{
    const struct slice s = without_fence((struct slice){ text, n });
    if (trimmed(s.at, s.n).n == 0 || memchr(s.at, '\0', s.n) || !utf8_valid(s.at, s.n))
        return CALL_MALFORMED;
    *code = xstrndup(s.at, s.n);
    return CALL_CODE;
}

/* ---- JSON that parsed ---- */

/* ["import x", "x.y()"]: one program, a line an element. */
static enum call_kind read_lines(const struct json *lines, char **code)
{
    AUTO(str_clear) struct str all = STR_INIT(ARGS_MAX);
    for (const struct json *l = json_first(lines); l; l = json_next(l)) {
        if (json_type(l) != JSON_STRING)
            return CALL_MALFORMED;
        str_puts(&all, json_text(l));
        str_putc(&all, '\n');
    }
    return give_code(str_peek(&all), all.len, code);
}

/* Commands for a shell run as a cell of IPython's: the box is the same, and so are its walls. */
static enum call_kind give_shell(const char *text, char **code)
{
    char *plain = NULL;
    const enum call_kind kind = give_code(text, strlen(text), &plain);
    if (kind == CALL_CODE)
        *code = xasprintf("%%%%bash\n%s", plain);
    free(plain);
    return kind;
}

/* What "language" says of the program; CALL_NONE: it is Python, or nothing is said. */
static enum call_kind read_language(const struct json *o, const char *program, char **code)
{
    static const char *const python[] = { "python", "python3", "py", "Python", "ipython", "" };
    const char *language = json_str_or(o, "language", "");
    if (is_one_of(python, countof(python), language))
        return CALL_NONE;
    return is_shell(language) ? give_shell(program, code) : CALL_UNKNOWN;
}

/* The program, or text that wraps it one level deeper: then CALL_NONE and *inner, which the caller frees. */
static enum call_kind read_object(const struct json *o, char **code, char **inner)
{
    static const char *const keys[] = { "code", "source", "program", "script", "python" };
    for (int level = 0; level < UNWRAP_MAX && json_type(o) == JSON_OBJECT; level++) {
        for (size_t i = 0; i < countof(keys); i++) {
            const struct json *v = json_get(o, keys[i]);
            if (json_type(v) == JSON_STRING) {
                const enum call_kind other = read_language(o, json_text(v), code);
                return other != CALL_NONE ? other : give_code(json_text(v), strlen(json_text(v)), code);
            }
            if (json_type(v) == JSON_ARRAY)
                return read_lines(v, code);
        }
        o = json_get(o, json_get(o, "arguments") ? "arguments" : "parameters");
    }
    if (json_type(o) != JSON_STRING)
        return CALL_MALFORMED;
    *inner = xstrdup(json_text(o));
    return CALL_NONE;
}

/* ---- text that may be JSON or code ---- */

/* Line breaks and tabs left raw in strings, the commonest slip of small models: whole JSON otherwise, so nothing is guessed. */
static int parse_with_raw_breaks(struct json **out, struct slice s, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(ESCAPED_MAX);
    bool quoted = false;
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.at[i];
        quoted = c == '"' ? !quoted : quoted;
        if (quoted && (c == '\n' || c == '\t')) {
            str_puts(&text, c == '\n' ? "\\n" : "\\t");
        } else if (quoted && c == '\\' && i + 1 < s.n) {
            str_add(&text, &s.at[i++], 2);
        } else {
            str_putc(&text, c);
        }
    }
    return json_parse(out, str_peek(&text), text.len, ARGS_MAX, e);
}

/* One level of text: JSON that holds or wraps the program, or the program itself. */
static enum call_kind read_level(struct slice s, char **code, char **inner)
{
    autojson struct json *v = NULL;
    struct err ignored = { 0 };
    if (s.n == 0)
        return CALL_MALFORMED;
    if (json_parse(&v, s.at, s.n, ARGS_MAX, &ignored) == 0)
        return read_object(v, code, inner);
    const bool docstring = starts(s, "\"\"\"");
    if (!docstring && (means_object(s) || s.at[0] == '"' || s.at[0] == '[') && is_open(s))
        return CALL_CUT;
    if (s.at[0] == '{' && s.n == 1)
        return CALL_CUT;
    if (means_object(s) && parse_with_raw_breaks(&v, s, &ignored) == 0)
        return read_object(v, code, inner);
    return means_object(s) ? CALL_MALFORMED : give_code(s.at, s.n, code);
}

static enum call_kind read_text(const char *text, char **code)
{
    autofree char *unwrapped = xstrdup(text);
    for (int level = 0; level < UNWRAP_MAX; level++) {
        char *inner = NULL;
        const enum call_kind kind = read_level(trimmed(unwrapped, strlen(unwrapped)), code, &inner);
        if (!inner)
            return kind;
        free(unwrapped);
        unwrapped = inner;
    }
    return CALL_MALFORMED;
}

/* {"command":"ls"} */
static enum call_kind read_shell(const char *args, char **code)
{
    static const char *const keys[] = { "command", "cmd", "script", "code", "input" };
    const struct slice s = trimmed(args, strlen(args));
    autojson struct json *o = NULL;
    struct err ignored = { 0 };
    if (json_parse(&o, s.at, s.n, ARGS_MAX, &ignored) < 0)
        return is_open(s) && means_object(s) ? CALL_CUT : means_object(s) ? CALL_MALFORMED : give_shell(args, code);
    for (size_t i = 0; i < countof(keys); i++)
        if (json_str_or(o, keys[i], NULL))
            return give_shell(json_str_or(o, keys[i], ""), code);
    return CALL_MALFORMED;
}

enum call_kind call_args_read(const char *name, const char *args, char **code)
{
    if (is_shell(name))
        return read_shell(args ? args : "", code);
    if (!is_our_tool(name))
        return CALL_UNKNOWN;
    return read_text(args ? args : "", code);
}

/* ---- a call written out as text ---- */

static enum call_kind read_written_call(struct slice s, char **code)
{
    autofree char *text = xstrndup(s.at, s.n);
    autojson struct json *v = NULL;
    struct err ignored = { 0 };
    if (json_parse(&v, s.at, s.n, ARGS_MAX, &ignored) < 0)
        return is_open(s) ? CALL_CUT : CALL_MALFORMED;
    const char *name = json_str_or(v, "name", "");
    if (!*name || (!json_get(v, "arguments") && !json_get(v, "parameters")))
        return CALL_MALFORMED;
    return is_our_tool(name) ? read_text(text, code) : CALL_UNKNOWN;
}

enum call_kind call_from_text(const char *text, char **code)
{
    static const char open[] = "<tool_call>", close[] = "</tool_call>";
    struct slice s = trimmed(text, strlen(text));
    if (starts(s, open)) {
        s = trimmed(s.at + strlen(open), s.n - strlen(open));
        if (s.n >= strlen(close) && memcmp(s.at + s.n - strlen(close), close, strlen(close)) == 0)
            s.n -= strlen(close);
        return read_written_call(trimmed(s.at, s.n), code);
    }
    s = without_fence(s);
    s = trimmed(s.at, s.n);
    if (!means_object(s) || !memmem(s.at, s.n, "\"name\"", 6) || !memmem(s.at, s.n, "\"arguments\"", 11))
        return CALL_NONE; /* JSON may well be the answer that was asked for */
    return read_written_call(s, code);
}

/* ---- a program without a fence ---- */

static bool begins_with_word(const char *at, size_t n, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t k = strlen(words[i]);
        if (n >= k && memcmp(at, words[i], k) == 0)
            return true;
    }
    return false;
}

static bool is_import(const char *at, size_t n)
{
    static const char *const words[] = { "import " };
    return begins_with_word(at, n, words, countof(words)) ||
           (n > 5 && memcmp(at, "from ", 5) == 0 && memmem(at, n, " import ", 8));
}

/* Prose has blanks and ends in a point; code has signs that prose has not where they stand here. */
static bool is_code_line(const char *at, size_t n)
{
    static const char *const words[] = {
        "#",     "@",      "for ",     "if ",    "elif ", "else:",   "while ",  "def ", "class ", "try:", "except",
        "with ", "return", "finally:", "print(", "del ",  "assert ", "global ", "pass", ")",      "]",    "}"
    };
    while (n && isspace((unsigned char)at[n - 1]))
        n--;
    if (n == 0 || *at == ' ' || *at == '\t' || is_import(at, n) || begins_with_word(at, n, words, countof(words)))
        return true;
    const size_t name = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
    size_t sign = name;
    while (sign < n && at[sign] == ' ')
        sign++;
    if (name == 0 || name >= n)
        return name > 0 && name == n && !memchr(at, '.', n); /* a name by itself: its value is shown */
    return at[name] == '(' || at[name] == '[' || at[sign] == '=' || (at[sign] == ',' && memchr(at, '=', n)) ||
           (sign + 1 < n && at[sign + 1] == '=');
}

char *call_bare_program(const char *text)
{
    const struct slice s = trimmed(text, strlen(text));
    size_t lines = 0;
    if (s.n > ARGS_MAX || !is_import(s.at, s.n < 200 ? s.n : 200))
        return NULL;
    for (size_t at = 0; at < s.n; lines++) {
        const char *end = memchr(s.at + at, '\n', s.n - at);
        const size_t n = end ? (size_t)(end - s.at) - at : s.n - at;
        if (!is_code_line(s.at + at, n))
            return NULL;
        at += n + 1;
    }
    return lines > 1 ? xstrndup(s.at, s.n) : NULL;
}

/* ---- a person's own program ---- */

char *call_fenced_code(const char *text)
{
    static const char *const openers[] = { "```python\n", "```python3\n", "```py\n" };
    AUTO(str_clear) struct str all = STR_INIT(ARGS_MAX);
    struct slice s = trimmed(text, strlen(text));
    while (s.n) {
        size_t head = 0;
        for (size_t i = 0; i < countof(openers) && !head; i++)
            head = starts(s, openers[i]) ? strlen(openers[i]) : 0;
        const char *end = head ? memmem(s.at + head - 1, s.n - head + 1, "\n```", 4) : NULL;
        if (!end)
            return NULL;
        if (end > s.at + head)
            str_add(&all, s.at + head, (size_t)(end + 1 - (s.at + head)));
        s = trimmed(end + 4, s.n - (size_t)(end + 4 - s.at));
    }
    if (all.overflow || trimmed(str_peek(&all), all.len).n == 0)
        return NULL;
    return str_take(&all);
}

char *call_args_write(const char *code)
{
    AUTO(str_clear) struct str text = STR_INIT(ESCAPED_MAX);
    autojson struct json *o = json_new_object();
    json_set_str(o, "code", code);
    json_print(&text, o);
    return str_take(&text);
}
