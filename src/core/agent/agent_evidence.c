/* agent_evidence.c - what an answer says, held against what was shown: outputs, profiles, people's words, earlier answers. */
#include <ctype.h>
#include <string.h>
#include "agent_private.h"
#include "conf.h"
#include "json.h"
#include "request.h"

enum { OUTPUTS_MAX = 256 << 10 };

const char *agent_load_call(const struct agent *a)
{
    const char *load = "..."; /* no table: the model knows better */
    for (const struct json *p = json_first(a->in.files); p; p = json_next(p))
        load = json_str_or(p, "load", load);
    return load;
}

/* ---- what was shown ---- */

/* An earlier answer. What its mark names was unsupported then, and does not support itself now; its words are left out then. */
static void add_answer(struct evidence *e, const char *text, const char *language)
{
    autofree char *mark = words(WORD_UNSUPPORTED, language, "\n", NULL);
    mark[strcspn(mark, "\n")] = '\0';
    const char *at = strstr(text, mark);
    if (!at) {
        evidence_add(e, text);
        return;
    }
    evidence_add_numbers(e, text);
    autofree char *line = xstrndup(at, strcspn(at, "\n"));
    evidence_remove(e, line);
}

static void add_cell(struct evidence *e, const struct agent_cell *cell)
{
    const struct cell *c = &cell->cell;
    const char *const texts[] = { c->out, c->err, c->result_text, c->error_value };
    for (size_t i = 0; i < countof(texts); i++)
        if (texts[i])
            evidence_add_output(e, cell->code, texts[i]);
    for (size_t i = 0; i < c->figures.n; i++) {
        evidence_add_output(e, cell->code, c->figures.at[i].title ? c->figures.at[i].title : "");
        evidence_add_output(e, cell->code, c->figures.at[i].summary ? c->figures.at[i].summary : "");
    }
}

/* The program that a message is the result of; NULL: of none. Caller frees. */
static char *program_of(const struct agent *a, const struct model_msg *result)
{
    char *code = NULL;
    for (size_t i = 1; result->call_id && i < a->talk.msgs.n; i++)
        for (size_t k = 0; k < a->talk.msgs.at[i].call_n; k++) {
            const struct model_tool_call *c = &a->talk.msgs.at[i].calls[k];
            if (c->id && strcmp(c->id, result->call_id) == 0 && c->name && strcmp(c->name, CALL_TOOL) == 0)
                return call_args_read(c->name, c->args, &code) == CALL_CODE ? code : NULL;
        }
    return NULL;
}

static void add_result(const struct agent *a, struct evidence *e, const struct model_msg *m)
{
    autofree char *code = program_of(a, m);
    if (code)
        evidence_add_output(e, code, m->text);
    else
        evidence_add(e, m->text);
}

/* Parameters of a method (a window, a quantile) stand in the program that worked, names of columns in whatever was asked of a tool. */
static void add_programs(const struct agent *a, struct evidence *e)
{
    for (size_t i = 0; i < a->cell_n; i++)
        if (a->cells[i].cell.status == CELL_OK)
            evidence_add_program(e, a->cells[i].code);
    for (size_t i = 1; i < a->talk.msgs.n; i++)
        for (size_t k = 0; k < a->talk.msgs.at[i].call_n; k++)
            if (i < a->talk.turn_at || strcmp(a->talk.msgs.at[i].calls[k].name, CALL_TOOL) != 0)
                evidence_add_names(e, a->talk.msgs.at[i].calls[k].args);
}

/* Earlier answers; this turn's own words prove nothing. */
static void add_answers(const struct agent *a, struct evidence *e)
{
    for (size_t i = 1; i < a->talk.turn_at; i++)
        if (a->talk.msgs.at[i].role == MODEL_ASSISTANT)
            add_answer(e, a->talk.msgs.at[i].text, a->in.language);
}

/* Outputs, profiles and people's words; of earlier turns also what was answered. */
static void collect(struct agent *a, struct evidence *e)
{
    add_answers(a, e);
    for (size_t i = 1; i < a->talk.msgs.n; i++)
        if (a->talk.msgs.at[i].role != MODEL_ASSISTANT && !a->talk.msgs.at[i].passing)
            add_result(a, e, &a->talk.msgs.at[i]);
    for (size_t i = 0; i < a->cell_n; i++)
        add_cell(e, &a->cells[i]);
    add_programs(a, e);
}

/* A person's words without what the service laid before them: profiles stand between marks. */
static void add_words(struct evidence *e, const char *text)
{
    for (const char *mark = strstr(text, "<data nonce="); mark; mark = strstr(text, "<data nonce=")) {
        autofree char *before = xstrndup(text, (size_t)(mark - text));
        const char *end = strstr(mark, "</data nonce=");
        evidence_add(e, before);
        text = end ? end : mark + strlen(mark);
        text += strcspn(text, ">");
    }
    evidence_add(e, text);
}

static void add_columns(struct evidence *e, const struct json *files)
{
    for (const struct json *p = json_first(files); p; p = json_next(p))
        for (const struct json *c = json_first(json_get(p, "columns")); c; c = json_next(c))
            evidence_add_names(e, json_str_or(c, "name", ""));
}

/* The same without what profiles say of values: once a program has worked, a day or name that is the result was put out by one. A profile
 * lists all of them, and does not say which it is. */
static void collect_computed(struct agent *a, struct evidence *e)
{
    add_answers(a, e);
    for (size_t i = 1; i < a->talk.msgs.n; i++) {
        const struct model_msg *m = &a->talk.msgs.at[i];
        if (m->role == MODEL_USER && !m->passing)
            add_words(e, m->text);
        else if (m->role == MODEL_TOOL)
            add_result(a, e, m);
    }
    for (size_t i = 0; i < a->cell_n; i++)
        add_cell(e, &a->cells[i]);
    add_programs(a, e);
    add_columns(e, a->in.files);
}

static bool has_worked(const struct agent *a)
{
    for (size_t i = 0; i < a->cell_n; i++)
        if (a->cells[i].cell.status == CELL_OK)
            return true;
    return false;
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

static bool was_made(const struct artifacts *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (ends_with(name, last_part(all->at[i].name)))
            return true;
    return false;
}

/* Made now, sent by a person, or told of by an earlier cell. */
static bool exists(const void *ud, const char *name)
{
    const struct agent *a = ud;
    for (size_t i = 0; i < a->cell_n; i++)
        if (was_made(&a->cells[i].cell.files, name) || was_made(&a->cells[i].cell.figures, name))
            return true;
    for (const struct json *p = json_first(a->in.files); p; p = json_next(p))
        if (ends_with(name, last_part(json_str_or(p, "path", "/"))) && *last_part(json_str_or(p, "path", "/")))
            return true;
    for (size_t i = 1; i < a->talk.turn_at; i++)
        if (a->talk.msgs.at[i].role == MODEL_TOOL && strstr(a->talk.msgs.at[i].text, name))
            return true;
    return false;
}

/* The planner's sentences are made from results; without files and programs there is talk, and nothing to hold it against. */
static bool is_checked(const struct agent *a)
{
    return strcmp(a->in.section->dialect, "builtin") != 0 && (a->cell_n || json_len(a->in.files));
}

/* A figure or a picture of this turn, or of one before it, or one that a person sent. */
static bool has_chart(const struct agent *a)
{
    static const char *const pictures[] = { ".png", ".svg", ".jpg", ".html", ".pdf" };
    for (size_t i = 0; i < a->cell_n; i++) {
        const struct cell *c = &a->cells[i].cell;
        if (c->figures.n)
            return true;
        for (size_t k = 0; k < c->files.n; k++)
            for (size_t p = 0; p < countof(pictures); p++)
                if (ends_with(c->files.at[k].name, pictures[p]))
                    return true;
    }
    for (size_t i = 1; i < a->talk.turn_at; i++)
        if (strstr(a->talk.msgs.at[i].text, "(posted)"))
            return true;
    for (const struct json *p = json_first(a->in.files); p; p = json_next(p))
        if (strcmp(json_str_or(p, "kind", ""), "image") == 0)
            return true;
    return false;
}

void agent_doubts_clear(struct agent_doubts *d)
{
    claims_clear(&d->facts);
    claims_clear(&d->files);
    claims_clear(&d->derived);
    free(d->part);
    free(d->unheeded);
    free(d->misread);
    free(d->other);
    d->part = d->unheeded = d->misread = d->other = NULL;
}

/* What was drawn or written is the result then; numbers beside it may well be the profile's. */
bool agent_made_something(const struct agent *a)
{
    for (size_t i = 0; i < a->cell_n; i++)
        if (a->cells[i].cell.figures.n || a->cells[i].cell.files.n)
            return true;
    return false;
}

/* Programs worked, and not one number of the answer came out of them: then they are from the profile, which was not asked. */
static void doubt_unused_outputs(struct claims *out, const char *text, struct evidence *computed)
{
    AUTO(evidence_clear) struct evidence nothing = { 0 };
    AUTO(claims_clear) struct claims all = { 0 }, unshown = { 0 };
    claims_numbers(&all, text, &nothing);
    claims_numbers(&unshown, text, computed);
    if (out->n || all.n != unshown.n)
        return;
    claims_add_all(out, &unshown);
}

/* Bytes up to the next letter or digit. */
static size_t gap(const char *at)
{
    size_t n = 0;
    while (at[n] && (unsigned char)at[n] < 0x80 && !isalnum((unsigned char)at[n]))
        n++;
    return n;
}

/* Both without what stands between letters: it is the question that came back. */
static bool is_echo(const char *request, const char *text)
{
    enum { ECHO_MIN = 8 };
    autofree char *asked = utf8_fold(request), *said = utf8_fold(text);
    const char *x = asked, *y = said;
    size_t same = 0;
    for (;; x++, y++, same++) {
        x += gap(x);
        y += gap(y);
        if (!*x || *x != *y)
            break;
    }
    return !*x && !*y && same >= ECHO_MIN;
}

/* What the outputs show in place of what a sentence says of them. */
static char *misread_in_outputs(const struct agent *a, const char *text)
{
    AUTO(str_clear) struct str outputs = STR_INIT(OUTPUTS_MAX);
    for (size_t i = 0; i < a->cell_n; i++)
        if (a->cells[i].cell.status == CELL_OK)
            str_printf(&outputs, "%s\n\n%s\n\n", a->cells[i].cell.out,
                       a->cells[i].cell.result_text ? a->cells[i].cell.result_text : "");
    return outputs.overflow ? NULL : claims_misread(text, str_peek(&outputs));
}

/* What the newest program hardly meant (oversights.py), and the answer follows all the same. */
static char *unheeded_note(const struct agent *a)
{
    enum { NOTE_MAX_BYTES = 400 };
    static const char check[] = "check: ";
    const struct cell *c = a->cell_n ? &a->cells[a->cell_n - 1].cell : NULL;
    for (size_t i = 0; c && c->status == CELL_OK && i < c->note_n; i++)
        if (strncmp(c->notes[i], check, strlen(check)) == 0 && strlen(c->notes[i]) < NOTE_MAX_BYTES)
            return xstrdup(c->notes[i] + strlen(check));
    return NULL;
}

void agent_doubt(struct agent *a, const char *text, struct agent_doubts *out)
{
    AUTO(evidence_clear) struct evidence e = { 0 };
    const char *request = a->in.request ? a->in.request : "";
    if (!is_checked(a))
        return;
    collect(a, &e);
    claims_numbers(&out->facts, text, &e);
    claims_derived(&out->derived, text, &e);
    AUTO(evidence_clear) struct evidence computed = { 0 };
    if (has_worked(a))
        collect_computed(a, &computed);
    if (has_worked(a) && !agent_made_something(a))
        doubt_unused_outputs(&out->facts, text, &computed);
    if (has_worked(a))
        claims_uncounted(&out->facts, request, text, &computed);
    claims_days(&out->facts, text, has_worked(a) ? &computed : &e);
    claims_names(&out->facts, text, has_worked(a) ? &computed : &e);
    claims_files(&out->files, text, exists, a);
    out->unread = (out->facts.n || request_wants_work(a->in.prompts, request, false)) && agent_read_nothing(a);
    out->asked = agent_read_another(a, &out->read);
    out->echo = is_echo(request, text);
    out->foreign = request_is_foreign(a->in.prompts, request, text);
    out->chart = claims_chart(text) && !has_chart(a);
    out->unheeded = unheeded_note(a);
    out->misread = misread_in_outputs(a, text);
    out->other = agent_other_columns(a, text);
    out->miscounted = claims_miscounted(request, text, &out->part);
}
