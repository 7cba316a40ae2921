/* agent_result.c - a cell in words. */
#include "agent_result.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/words.h"

enum {
    COLLAPSE_MAX = 4 << 20, /* a cell's text before it is cut; the box caps it far below */
    RUN_BYTES = 512,        /* an unbroken run longer than this is data, not text */
    SAME_LINES = 3,         /* equal lines in a row that are still shown */
    ERROR_HEAD = 1400,      /* an error's message: 2,000 characters in all */
    ERROR_TAIL = 600,
    FILES_NAMED = 20,
    FIGURE_BYTES = 600,
    NOTE_BYTES = 1000,
    PERSON_HEAD = 3000, /* of a person's own output, in chat */
    PERSON_TAIL = 1000,
};

/* ---- long text ---- */

static bool in_base64(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '+' || c == '/' ||
           c == '=' || c == '_' || c == '-';
}

static void collapse_runs(struct str *out, const char *text)
{
    while (*text) {
        size_t run = 0, other = 0;
        while (in_base64(text[run]))
            run++;
        if (run > RUN_BYTES)
            str_printf(out, "<base64 %zu bytes>", run);
        else
            str_add(out, text, run);
        text += run;
        while (text[other] && !in_base64(text[other]))
            other++;
        str_add(out, text, other);
        text += other;
    }
}

static size_t line_bytes(const char *at)
{
    const char *end = strchr(at, '\n');
    return end ? (size_t)(end + 1 - at) : strlen(at);
}

static void collapse_lines(struct str *out, const char *text)
{
    while (*text) {
        const size_t n = line_bytes(text);
        size_t same = 1;
        while (n > 1 && line_bytes(text + same * n) == n && memcmp(text, text + same * n, n) == 0)
            same++;
        if (same <= SAME_LINES)
            str_add(out, text, same * n);
        else {
            str_add(out, text, n);
            str_printf(out, "[the line above, %zu more times]\n", same - 1);
        }
        text += same * n;
    }
}

/* Where a tail of at most max bytes begins: at a line when one begins soon, else at a character. */
static const char *tail_start(const char *text, size_t n, size_t max)
{
    const char *at = text + n - max;
    const char *line = memchr(at, '\n', max / 2);
    if (line)
        return line + 1;
    while (((unsigned char)*at & 0xc0) == 0x80)
        at++;
    return at;
}

static size_t head_end(const char *text, size_t n, size_t max)
{
    const size_t cut = utf8_cut(text, n, max);
    const char *line = memrchr(text + cut / 2, '\n', cut - cut / 2);
    return line ? (size_t)(line + 1 - text) : cut;
}

void result_cap(struct str *out, const char *text, size_t head_bytes, size_t tail_bytes)
{
    AUTO(str_clear) struct str runs = STR_INIT(COLLAPSE_MAX), lines = STR_INIT(COLLAPSE_MAX);
    collapse_runs(&runs, text);
    collapse_lines(&lines, str_peek(&runs));
    const char *all = str_peek(&lines);
    if (lines.len <= head_bytes + tail_bytes) {
        str_add(out, all, lines.len);
        return;
    }
    const size_t head = head_end(all, lines.len, head_bytes);
    const char *tail = tail_start(all, lines.len, tail_bytes);
    str_add(out, all, head);
    str_printf(out, "%s[... %zu characters left out here; print less, or only the part you need ...]\n",
               head && all[head - 1] != '\n' ? "\n" : "", (size_t)(tail - all) - head);
    str_puts(out, tail);
}

/* ---- for the model ---- */

bool result_failed(const struct cell *c)
{
    return c->status != CELL_OK;
}

static void end_line(struct str *out)
{
    if (out->len && str_peek(out)[out->len - 1] != '\n')
        str_putc(out, '\n');
}

/* A copy of the nonce inside would let data close the marks: it goes. */
static void add_without(struct str *out, const char *at, const char *nonce)
{
    for (const char *copy = strstr(at, nonce); copy; copy = strstr(at, nonce)) {
        str_add(out, at, (size_t)(copy - at));
        at = copy + strlen(nonce);
    }
    str_puts(out, at);
    end_line(out);
}

void result_add_data(struct str *out, const char *text, const char *nonce)
{
    str_printf(out, "<data nonce=%s>\n", nonce);
    add_without(out, text, nonce);
    str_printf(out, "</data nonce=%s>\n", nonce);
}

void result_add_note(struct str *out, const struct prompts *p, enum prompt_note n, const char *x, const char *y)
{
    autofree char *note = prompts_note(p, n, x, y);
    str_printf(out, "note: %s\n", note);
}

/* Text of code or files. */
static void add_data(struct str *out, const char *text, const struct result_style *style)
{
    AUTO(str_clear) struct str capped = STR_INIT(COLLAPSE_MAX);
    result_cap(&capped, text, style->head_bytes, style->tail_bytes);
    add_without(out, str_peek(&capped), style->nonce);
}

static void add_part(struct str *out, const char *heading, const char *text, const struct result_style *style)
{
    if (!text || !*text)
        return;
    str_printf(out, "%s:\n", heading);
    add_data(out, text, style);
}

/* The line of the program that an error points at, without its indentation. */
static void add_own_line(struct str *out, const char *code, int line)
{
    for (int i = 1; code && i < line; i++) {
        code = strchr(code, '\n');
        code = code ? code + 1 : NULL;
    }
    if (!code || line < 1)
        return;
    code += strspn(code, " \t");
    const size_t n = strcspn(code, "\n");
    str_printf(out, "  at line %d of your program: ", line);
    str_add(out, code, utf8_cut(code, n, 200));
    str_putc(out, '\n');
}

static void add_error(struct str *out, const struct cell *c, const char *code, const struct result_style *style)
{
    const struct result_style brief = { ERROR_HEAD, ERROR_TAIL, style->nonce };
    if (!c->error_name)
        return;
    str_printf(out, "%s: ", c->error_name);
    add_data(out, c->error_value && *c->error_value ? c->error_value : "(no message)", &brief);
    add_own_line(out, code, c->error_line);
}

static const char *status_words(enum cell_status s)
{
    switch (s) {
    case CELL_OK: return "ok";
    case CELL_ERROR: return "failed with an exception";
    case CELL_TIMEOUT: return "stopped at the time limit";
    case CELL_OOM: return "killed at the memory limit";
    case CELL_CRASH: return "the interpreter died";
    case CELL_LIMIT: return "stopped at a limit";
    case CELL_CANCELLED: return "stopped";
    }
    return "?";
}

static void add_status(struct str *out, const struct cell *c)
{
    str_printf(out, "cell %d: %s, %.1f s", c->number, status_words(c->status), c->took_ms / 1000);
    if (c->why && *c->why)
        str_printf(out, " (%s)", c->why);
    str_putc(out, '\n');
}

static void add_state(struct str *out, const struct cell *c)
{
    if (!result_failed(c) && c->state == CELL_KEPT)
        return;
    switch (c->state) {
    case CELL_KEPT: str_puts(out, "Variables were kept, also those this cell set before it stopped.\n"); break;
    case CELL_ROLLED_BACK: str_puts(out, "Variables are as they were before this cell.\n"); break;
    case CELL_LOST:
        str_puts(out, "Variables were lost: the interpreter is new. Load the data again. Files are still there.\n");
        break;
    }
}

/* Cut at a character: what leaves here must stay UTF-8. NULL adds nothing. */
static void add_brief(struct str *out, const char *before, const char *text, size_t max)
{
    if (!text)
        return;
    str_puts(out, before);
    str_add(out, text, utf8_cut(text, strlen(text), max));
}

static void add_artifacts(struct str *out, const struct cell *c)
{
    for (size_t i = 0; i < c->figures.n; i++) {
        const struct artifact *f = &c->figures.at[i];
        str_printf(out, "figure %zu (posted): ", i + 1);
        if (f->summary)
            add_brief(out, "", f->summary, FIGURE_BYTES);
        else
            str_printf(out, "%dx%d", f->width, f->height);
        str_putc(out, '\n');
    }
    for (size_t i = 0; i < c->files.n && i < FILES_NAMED; i++)
        str_printf(out, "file made (%s): %s, %" PRId64 " bytes\n",
                   c->files.at[i].shown ? "the figure above, posted once" : "attached", c->files.at[i].name,
                   c->files.at[i].bytes);
    if (c->files.n > FILES_NAMED)
        str_printf(out, "and %zu more files\n", c->files.n - FILES_NAMED);
}

static bool is_silent(const struct cell *c)
{
    return !*c->out && !*c->err && !(c->result_text && *c->result_text) && !c->error_name;
}

static bool is_long(const char *text, const struct result_style *style)
{
    return text && strlen(text) > style->head_bytes + style->tail_bytes;
}

void result_for_model(struct str *out, const struct cell *c, const char *code, const struct result_style *style)
{
    add_status(out, c);
    if (is_silent(c)) {
        if (!result_failed(c) && c->figures.n == 0)
            str_puts(out, "It printed nothing and its last line has no value. Print what you need to see.\n");
    } else {
        str_printf(out, "<data nonce=%s>\n", style->nonce);
        add_part(out, "stdout", c->out, style);
        add_part(out, "stderr", c->err, style);
        add_part(out, "result", c->result_text, style);
        add_error(out, c, code, style);
        str_printf(out, "</data nonce=%s>\n", style->nonce);
    }
    add_artifacts(out, c);
    for (size_t i = 0; i < c->note_n; i++) {
        add_brief(out, "note: ", c->notes[i], NOTE_BYTES);
        str_putc(out, '\n');
    }
    if (is_long(c->out, style) || is_long(c->result_text, style))
        str_printf(out, "note: read_more with {\"cell\":%d,\"offset\":%zu} reads on in what was left out\n", c->number,
                   style->head_bytes);
    if (c->truncated)
        str_puts(out, "note: the output was longer than is kept\n");
    add_state(out, c);
}

char *result_signature(const struct cell *c)
{
    if (!result_failed(c))
        return xstrdup("");
    if (!c->error_name)
        return xstrdup(cell_status_name(c->status));
    const char *value = c->error_value ? c->error_value : "";
    return xasprintf("%s: %.*s", c->error_name, (int)strcspn(value, "\n"), value);
}

/* ---- for a person ---- */

/* Inside a fence that is longer than any in the text. */
static void add_fenced(struct str *out, const char *text)
{
    AUTO(str_clear) struct str capped = STR_INIT(COLLAPSE_MAX);
    result_cap(&capped, text, PERSON_HEAD, PERSON_TAIL);
    const char *fence = strstr(str_peek(&capped), "```") ? "~~~~~~" : "```";
    str_printf(out, "%s\n%s", fence, str_peek(&capped));
    end_line(out);
    str_printf(out, "%s\n", fence);
}

static void add_word(struct str *out, enum word w, const char *language, const char *a, const char *b)
{
    autofree char *line = words(w, language, a, b);
    str_printf(out, "%s\n", line);
}

static void add_person_error(struct str *out, const struct cell *c, const char *language)
{
    char line[16];
    (void)snprintf(line, sizeof(line), "%d", c->error_line);
    if (c->error_name) {
        if (c->error_line > 0)
            add_word(out, WORD_CODE_FAILED, language, c->error_name, line);
        else
            str_printf(out, "**%s**\n", c->error_name);
        if (c->error_value && *c->error_value)
            add_fenced(out, c->error_value);
    }
    if (c->status != CELL_ERROR)
        add_word(out, WORD_CODE_ENDED, language, c->why && *c->why ? c->why : cell_status_name(c->status), NULL);
    switch (c->state) {
    case CELL_KEPT: break;
    case CELL_ROLLED_BACK: add_word(out, WORD_VARIABLES_BACK, language, NULL, NULL); break;
    case CELL_LOST: add_word(out, WORD_VARIABLES_LOST, language, NULL, NULL); break;
    }
}

void result_for_person(struct str *out, const struct cell *c, const char *language)
{
    const size_t before = out->len;
    if (*c->out)
        add_fenced(out, c->out);
    if (*c->err)
        add_fenced(out, c->err);
    if (c->result_text && *c->result_text)
        add_fenced(out, c->result_text);
    if (result_failed(c))
        add_person_error(out, c, language);
    if (out->len == before && c->figures.n == 0 && c->files.n == 0)
        add_word(out, WORD_CODE_SILENT, language, NULL, NULL);
}
