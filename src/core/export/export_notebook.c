/* export_notebook.c - see export_private.h: the documents of an export. nbformat 4.5.
 *
 * Outputs are written as they were, so that the notebook shows what the person saw; running it makes them anew. */
#include <stdio.h>
#include <string.h>
#include "digest.h"
#include "export_private.h"

enum {
    BOOK_MAX = 256 << 20,
    PICTURE_MAX = 8 << 20, /* of one chart in the notebook; bigger ones are named */
    WORD_ID = 32,
};

static const char BOX_PATH[] = "/mnt/data";

/* ---- programs ---- */

/* A program refers to the box's folder, or to nothing: here that folder is the working folder. */
static char *here(const char *code)
{
    AUTO(str_clear) struct str out = STR_INIT(BOOK_MAX);
    for (const char *at = code;;) {
        const char *hit = strstr(at, BOX_PATH);
        if (!hit) {
            str_puts(&out, at);
            return str_take(&out);
        }
        str_add(&out, at, (size_t)(hit - at));
        at = hit + strlen(BOX_PATH);
        if (*at == '/')
            at++;
        else
            str_putc(&out, '.');
    }
}

/* As a Python string. */
static void add_quoted(struct str *out, const char *text)
{
    str_putc(out, '\'');
    for (const char *at = text; *at; at++) {
        if (*at == '\'' || *at == '\\')
            str_putc(out, '\\');
        str_putc(out, *at);
    }
    str_putc(out, '\'');
}

static void add_place(struct str *out, const struct export_file *f)
{
    str_puts(out, "shutil.copyfile(HERE / ");
    add_quoted(out, f->place);
    str_puts(out, ", ");
    add_quoted(out, f->name);
    str_puts(out, ")\n");
    if (!f->archive)
        return;
    const char *dot = strrchr(f->name, '.');
    autofree char *stem = xstrndup(f->name, dot && dot != f->name ? (size_t)(dot - f->name) : strlen(f->name));
    str_puts(out, "shutil.unpack_archive(");
    add_quoted(out, f->name);
    str_puts(out, ", ");
    add_quoted(out, stem);
    str_puts(out, ")\n");
}

static const char SETUP[] = "# The working folder, which was /mnt/data in the box.\n"
                            "import os, pathlib, shutil\n"
                            "HERE = pathlib.Path(globals().get('__file__', 'notebook')).resolve().parent\n"
                            "shutil.rmtree(HERE / 'work', ignore_errors=True)\n"
                            "(HERE / 'work' / 'out').mkdir(parents=True)\n"
                            "os.chdir(HERE / 'work')\n";

/* Files that came up to that message and were not placed yet; NULL: none. */
static char *placing(const struct export_book *b, size_t *next, int64_t seq)
{
    AUTO(str_clear) struct str out = STR_INIT(BOOK_MAX);
    for (; *next < b->file_n && b->files[*next].seq <= seq; ++*next)
        add_place(&out, &b->files[*next]);
    return out.len ? str_take(&out) : NULL;
}

/* ---- nbformat ---- */

struct notebook {
    struct json *cells;
    int ids;
};

static struct json *new_cell(struct notebook *nb, const char *kind, const char *source)
{
    char id[WORD_ID];
    struct json *c = json_new_object();
    (void)snprintf(id, sizeof id, "c%d", ++nb->ids);
    json_set_str(c, "cell_type", kind);
    json_set_str(c, "id", id);
    json_set(c, "metadata", json_new_object());
    json_set_str(c, "source", source);
    json_push(nb->cells, c);
    return c;
}

static struct json *new_code(struct notebook *nb, const char *source, int number)
{
    struct json *c = new_cell(nb, "code", source);
    if (number > 0)
        json_set_int(c, "execution_count", number);
    else
        json_set(c, "execution_count", NULL);
    json_set(c, "outputs", json_new_array());
    return c;
}

static struct json *output(struct json *outputs, const char *kind)
{
    struct json *o = json_new_object();
    json_set_str(o, "output_type", kind);
    json_push(outputs, o);
    return o;
}

static void add_stream(struct json *outputs, const char *name, const char *text)
{
    if (!*text)
        return;
    struct json *o = output(outputs, "stream");
    json_set_str(o, "name", name);
    json_set_str(o, "text", text);
}

static void add_result(struct json *outputs, const struct json *result, int number)
{
    if (json_type(result) != JSON_OBJECT)
        return;
    struct json *o = output(outputs, "execute_result");
    json_set(o, "data", json_dup(result));
    json_set(o, "metadata", json_new_object());
    json_set_int(o, "execution_count", number);
}

static void add_error(struct json *outputs, const struct json *error)
{
    if (json_type(error) != JSON_OBJECT)
        return;
    struct json *o = output(outputs, "error"), *lines = json_new_array();
    json_push(lines, json_new_string(json_str_or(error, "traceback", "")));
    json_set_str(o, "ename", json_str_or(error, "name", ""));
    json_set_str(o, "evalue", json_str_or(error, "value", ""));
    json_set(o, "traceback", lines);
}

static void add_figure(struct json *outputs, const struct json *figure)
{
    AUTO(str_clear) struct str png = STR_INIT(PICTURE_MAX);
    struct err ignored = { 0 };
    if (str_read_file(&png, json_str_or(figure, "path", ""), &ignored) < 0 || png.len == 0)
        return;
    autofree char *text = base64_encode(str_peek(&png), png.len);
    struct json *o = output(outputs, "display_data"), *data = json_new_object();
    json_set_str(data, "image/png", text);
    json_set_str(data, "text/plain", json_str_or(figure, "title", ""));
    json_set(o, "data", data);
    json_set(o, "metadata", json_new_object());
}

static struct json *outputs_of(const struct export_cell *c)
{
    struct json *outputs = json_new_array();
    add_stream(outputs, "stdout", json_str_or(c->facts, "stdout", ""));
    add_stream(outputs, "stderr", json_str_or(c->facts, "stderr", ""));
    for (const struct json *f = json_first(json_get(c->facts, "figures")); f; f = json_next(f))
        add_figure(outputs, f);
    add_result(outputs, json_get(c->facts, "result"), c->number);
    add_error(outputs, json_get(c->facts, "error"));
    return outputs;
}

/* Longer than any run of backticks in the text. */
static int fence_of(const char *text)
{
    int most = 2;
    for (const char *at = text; *at;) {
        int run = (int)strspn(at, "`");
        most = run > most ? run : most;
        at += run ? run : 1;
    }
    return most + 1;
}

static char *why_not(const struct export_cell *c, const char *code)
{
    static const char ticks[] = "````````````````````````````````";
    int n = fence_of(code) < (int)sizeof ticks ? fence_of(code) : (int)sizeof ticks - 1;
    const char *why = json_str_or(c->facts, "why", "");
    return xasprintf("Cell %d does not run here: %s\n\n%.*spython\n%s\n%.*s", c->number,
                     *why ? why : "its state was left, by undo, a branch or a reset", n, ticks, code, n, ticks);
}

static void add_cell(struct notebook *nb, const struct export_cell *c)
{
    autofree char *code = here(json_str_or(c->facts, "code", ""));
    if (!c->runs) {
        autofree char *text = why_not(c, code);
        (void)new_cell(nb, "markdown", text);
        return;
    }
    if (c->anew) /* HERE and the modules of the first cell are ours to keep */
        (void)new_code(nb, "%reset -f\nimport os, pathlib, shutil\nHERE = pathlib.Path('..').resolve()", 0);
    json_set(new_code(nb, code, c->number), "outputs", outputs_of(c));
}

static void add_placing(struct notebook *nb, const struct export_book *b, size_t *next, int64_t seq)
{
    autofree char *place = placing(b, next, seq);
    if (place)
        (void)new_code(nb, place, 0);
}

static void add_turn(struct notebook *nb, const struct export_book *b, size_t *next, const struct turn_row *t)
{
    autofree char *asked = xasprintf("### %s", *t->request ? t->request : "(a file)");
    autofree char *answer = xasprintf("%s", t->answer ? t->answer : "");
    add_placing(nb, b, next, t->seq);
    (void)new_cell(nb, "markdown", asked);
    for (size_t i = 0; i < b->cell_n; i++)
        if (b->cells[i].turn == t->id)
            add_cell(nb, &b->cells[i]);
    if (*answer)
        (void)new_cell(nb, "markdown", answer);
}

static bool has_turn(const struct export_book *b, int64_t turn)
{
    for (size_t i = 0; i < b->turn_n; i++)
        if (b->turns[i].id == turn)
            return true;
    return false;
}

static struct json *metadata(void)
{
    struct json *m = json_new_object(), *kernel = json_new_object(), *language = json_new_object();
    json_set_str(kernel, "name", "python3");
    json_set_str(kernel, "display_name", "Python 3");
    json_set_str(kernel, "language", "python");
    json_set_str(language, "name", "python");
    json_set(m, "kernelspec", kernel);
    json_set(m, "language_info", language);
    return m;
}

char *export_ipynb(const struct export_book *b, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(BOOK_MAX);
    autojson struct json *v = json_new_object();
    struct notebook nb = { .cells = json_new_array() };
    size_t next = 0;
    (void)new_code(&nb, SETUP, 0);
    for (size_t i = 0; i < b->cell_n; i++) /* of turns that were forgotten or never ended */
        if (!has_turn(b, b->cells[i].turn)) {
            add_placing(&nb, b, &next, INT64_MAX);
            add_cell(&nb, &b->cells[i]);
        }
    for (size_t i = 0; i < b->turn_n; i++)
        add_turn(&nb, b, &next, &b->turns[i]);
    json_set(v, "cells", nb.cells);
    json_set(v, "metadata", metadata());
    json_set_int(v, "nbformat", 4);
    json_set_int(v, "nbformat_minor", 5);
    json_print(&text, v);
    return str_check(&text, e) < 0 ? NULL : str_take(&text);
}

/* ---- plain Python ---- */

static void add_comment(struct str *out, const char *text)
{
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        str_puts(out, "# ");
        for (size_t i = 0; i < n; i++) /* what a reader of the file may take for the line's end is none */
            str_add(out, (unsigned char)line[i] < ' ' ? " " : line + i, 1);
        str_putc(out, '\n');
        line += n + (line[n] == '\n');
    }
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "%time", "%%bash", "!ls"; not "% b" of an expression that goes on. */
static bool is_magic(const char *text)
{
    size_t marks = strspn(text, "%");
    return (marks > 0 && marks < 3 && is_letter(text[marks])) || text[0] == '!';
}

/* Lines that only IPython understands are left as comments. */
static void add_program(struct str *out, const char *code)
{
    for (const char *line = code; *line;) {
        size_t n = strcspn(line, "\n"), blank = strspn(line, " \t");
        if (is_magic(line + blank))
            str_printf(out, "%.*spass  # IPython: %.*s\n", (int)blank, line, (int)(n - blank), line + blank);
        else
            str_printf(out, "%.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

static void add_plain_cell(struct str *out, const struct export_cell *c)
{
    autofree char *code = here(json_str_or(c->facts, "code", ""));
    if (!c->runs) {
        str_printf(out, "\n# %%%% cell %d does not run here\n", c->number);
        add_comment(out, code);
        return;
    }
    str_printf(out, "\n# %%%% cell %d%s\n", c->number, c->anew ? ", which began with a new interpreter" : "");
    if (json_type(json_get(c->facts, "error")) != JSON_OBJECT) {
        add_program(out, code);
        return;
    }
    str_puts(out, "# It raised an exception, and the conversation went on.\ntry:\n    exec(compile(");
    autofree char *quoted = xstrdup(code);
    str_puts(out, "'''");
    for (const char *at = quoted; *at; at++)
        str_printf(out, "%s%c", *at == '\\' || *at == '\'' ? "\\" : "", *at);
    str_printf(out, "''', 'cell %d', 'exec'))\nexcept Exception as error:\n    print(type(error).__name__, error)\n",
               c->number);
}

char *export_py(const struct export_book *b, struct err *e)
{
    AUTO(str_clear) struct str out = STR_INIT(BOOK_MAX);
    size_t next = 0;
    str_puts(&out, SETUP);
    for (size_t i = 0; i < b->cell_n; i++)
        if (!has_turn(b, b->cells[i].turn)) {
            autofree char *place = placing(b, &next, INT64_MAX);
            str_puts(&out, place ? place : "");
            add_plain_cell(&out, &b->cells[i]);
        }
    for (size_t i = 0; i < b->turn_n; i++) {
        autofree char *place = placing(b, &next, b->turns[i].seq);
        str_puts(&out, "\n# %% [markdown]\n");
        add_comment(&out, b->turns[i].request);
        str_puts(&out, place ? "\n" : "");
        str_puts(&out, place ? place : "");
        for (size_t k = 0; k < b->cell_n; k++)
            if (b->cells[k].turn == b->turns[i].id)
                add_plain_cell(&out, &b->cells[k]);
        str_puts(&out, "\n# %% [markdown]\n");
        add_comment(&out, b->turns[i].answer ? b->turns[i].answer : "");
    }
    return str_check(&out, e) < 0 ? NULL : str_take(&out);
}

/* ---- README ---- */

char *export_readme(const struct export_book *b, struct err *e)
{
    AUTO(str_clear) struct str out = STR_INIT(BOOK_MAX);
    size_t running = 0;
    for (size_t i = 0; i < b->cell_n; i++)
        running += b->cells[i].runs;
    str_printf(
        &out,
        "# A conversation with Sandbook, as a notebook\n\n"
        "Session `%s`: %zu questions, %zu programs, of which %zu run here. What was undone, left by a branch or killed is shown in its "
        "place and does not run.\n\n"
        "- `notebook.ipynb`: every turn with its outputs and charts as they were. Run all cells to make them anew, in this folder.\n"
        "- `notebook.py`: the same programs: `python notebook.py`. Lines that only IPython knows are comments there.\n"
        "- `data/`: what was sent. Programs work in `work/`, which each run makes anew; `data/` is never written to.\n"
        "- `out/`: files that the programs had made.\n\n"
        "It ran with Python 3.13 and the packages pinned in `sandbox/image/requirements.lock` of Sandbook %s; other versions may give other "
        "numbers. Random numbers without a seed differ in any case.\n",
        b->session.id, b->turn_n, b->cell_n, running, SANDBOOK_VERSION);
    if (b->file_n > 0)
        str_puts(&out, "\n| file | sent as |\n|---|---|\n");
    for (size_t i = 0; i < b->file_n; i++)
        str_printf(&out, "| `%s` | `%s` |\n", b->files[i].place, b->files[i].name);
    return str_check(&out, e) < 0 ? NULL : str_take(&out);
}
