/* agent_answer.c - an answer in words, before it is given: links that lead nowhere, numbers and files that nobody made, a reply
 * in place of work. The model is asked once, each; then the answer is marked. */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "agent_private.h"
#include "answer.h"
#include "claims.h"
#include "conf.h"
#include "json.h"
#include "log.h"

enum { OBJECTIONS_MAX = 2 }; /* to a reply without a program */

bool agent_is_blank(const char *text)
{
    while (text && *text && isspace((unsigned char)*text))
        text++;
    return !text || !*text;
}

/* ---- what may be said ---- */

/* Numbers that a mark names were unsupported then; they do not support themselves now. */
static void unmark(struct evidence *e, const char *text, const char *language)
{
    autofree char *mark = words(WORD_UNSUPPORTED, language, "\n", NULL);
    mark[strcspn(mark, "\n")] = '\0';
    const char *at = strstr(text, mark);
    if (!at)
        return;
    autofree char *line = xstrndup(at, strcspn(at, "\n"));
    evidence_remove(e, line);
}

static void add_cell(struct evidence *e, const struct cell *c)
{
    const char *const texts[] = { c->out, c->err, c->result_text, c->error_value };
    for (size_t i = 0; i < countof(texts); i++)
        if (texts[i])
            evidence_add(e, texts[i]);
    for (size_t i = 0; i < c->figures.n; i++) {
        evidence_add(e, c->figures.at[i].title ? c->figures.at[i].title : "");
        evidence_add(e, c->figures.at[i].summary ? c->figures.at[i].summary : "");
    }
}

/* Parameters of a method (a window, a quantile) stand in the program that worked. */
static void add_program(struct evidence *e, const struct agent_cell *c)
{
    if (c->cell.status == CELL_OK)
        evidence_add(e, c->code);
}

/* Outputs, profiles and people's words; of earlier turns also what was answered. This turn's own words prove nothing. */
static void collect(struct agent *a, struct evidence *e)
{
    for (size_t i = 1; i < a->talk.msgs.n; i++) {
        const struct model_msg *m = &a->talk.msgs.at[i];
        if (m->role == MODEL_ASSISTANT && i < a->talk.turn_at) {
            evidence_add(e, m->text);
            unmark(e, m->text, a->in.language);
        }
    }
    for (size_t i = 1; i < a->talk.msgs.n; i++)
        if (a->talk.msgs.at[i].role != MODEL_ASSISTANT && !a->talk.msgs.at[i].passing)
            evidence_add(e, a->talk.msgs.at[i].text);
    for (size_t i = 0; i < a->cell_n; i++) {
        add_cell(e, &a->cells[i].cell);
        add_program(e, &a->cells[i]);
    }
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

/* ---- asked once more ---- */

/* The draft and the word about it are for this turn only. */
static void ask_again(struct agent *a, struct model_answer *answer, char *take_note)
{
    autofree char *note = take_note;
    transcript_take_msg(&a->talk.msgs, &answer->msg);
    a->talk.msgs.at[a->talk.msgs.n - 1].passing = true;
    transcript_add(&a->talk.msgs, MODEL_USER, note);
    a->talk.msgs.at[a->talk.msgs.n - 1].passing = true;
    agent_think(a);
}

static bool has_word(const char *text, const char *word)
{
    for (const char *at = strcasestr(text, word); at; at = strcasestr(at + 1, word))
        if ((unsigned char)*word >= 0x80 ||
            ((at == text || !isalnum((unsigned char)at[-1])) && !isalpha((unsigned char)at[strlen(word)])))
            return true;
    return false;
}

/* It asks for something that has to be computed. Greetings and questions about the talk itself have none of these words. */
static bool wants_work(const char *request)
{
    static const char *const asks[] = {
        "how many",
        "how much",
        "mean",
        "average",
        "median",
        "sum",
        "total",
        "count",
        "maximum",
        "minimum",
        "max",
        "min",
        "highest",
        "lowest",
        "largest",
        "smallest",
        "plot",
        "chart",
        "histogram",
        "graph",
        "draw",
        "correlation",
        "trend",
        "percentage",
        "share",
        "percent",
        "group",
        "compute",
        "calculate",
        "outliers",
        "outlier",
        "std",
        "variance",
        "quantile",
        "distribution",
        "top",
        "\xe5\xa4\x9a\xe5\xb0\x91",
        "\xe5\xb9\xb3\xe5\x9d\x87",
        "\xe6\x80\xbb\xe5\x92\x8c",
        "\xe5\x90\x88\xe8\xae\xa1",
        "\xe6\x9c\x80\xe5\xa4\xa7",
        "\xe6\x9c\x80\xe5\xb0\x8f",
        "\xe4\xb8\xad\xe4\xbd\x8d\xe6\x95\xb0",
        "\xe7\xbb\x9f\xe8\xae\xa1",
        "\xe7\x94\xbb",
        "\xe5\x9b\xbe",
        "\xe5\x88\x86\xe5\xb8\x83",
        "\xe5\x8d\xa0\xe6\xaf\x94",
    };
    for (size_t i = 0; i < countof(asks); i++)
        if (has_word(request, asks[i]))
            return true;
    return false;
}

static bool asks_back(const char *text)
{
    size_t n = strlen(text);
    while (n && strchr(" \t\n*_)", text[n - 1]))
        n--;
    return (n && text[n - 1] == '?') || (n >= 3 && memcmp(text + n - 3, "\xef\xbc\x9f", 3) == 0);
}

static bool has_digit(const char *text)
{
    return strpbrk(text, "0123456789") != NULL;
}

static bool all_failed(const struct agent *a)
{
    for (size_t i = 0; i < a->cell_n; i++)
        if (a->cells[i].cell.status == CELL_OK)
            return false;
    return true;
}

/* A reply to a question about data, without a program that worked behind it: what to do now is no answer. What the profile or the
 * talk so far answers is fine. */
static bool skipped_the_work(const struct agent *a, const char *text, const struct claims *numbers)
{
    if (!all_failed(a) || !json_len(a->in.files) || asks_back(text))
        return false;
    return numbers->n || a->cell_n || (!has_digit(text) && wants_work(a->in.request));
}

/* How the newest table is loaded. */
static const char *load_call(const struct agent *a)
{
    const char *load = "..."; /* no table: the model knows better */
    for (const struct json *p = json_first(a->in.files); p; p = json_next(p))
        load = json_str_or(p, "load", load);
    return load;
}

/* Nothing was run: said once, and with a pattern to follow when that did not help. Numbers without an output: asked about once. */
static bool object(struct agent *a, struct model_answer *answer, const struct claims *numbers)
{
    if (answer->stop != MODEL_STOP_END)
        return false;
    if (a->objections < OBJECTIONS_MAX && skipped_the_work(a, answer->msg.text, numbers)) {
        const enum prompt_note note = a->objections++ || a->cell_n ? NOTE_NOT_RUN_AGAIN : NOTE_NOT_RUN;
        ask_again(a, answer, prompts_note(a->in.prompts, note, load_call(a), NULL));
        return true;
    }
    if (numbers->n == 0 || (a->objections && all_failed(a)) || a->asked_numbers)
        return false;
    autofree char *list = claims_join(numbers);
    log_info("answer_unsupported", KV_S("turn", a->in.seed), KV_S("numbers", list));
    a->asked_numbers = true;
    ask_again(a, answer, prompts_note(a->in.prompts, NOTE_UNSUPPORTED, list, NULL));
    return true;
}

/* ---- marked and given ---- */

static void add_line(char **text, char *take_line)
{
    autofree char *line = take_line, *before = *text;
    *text = xasprintf("%s\n\n%s", before, line);
}

static void mark(struct agent *a, char **text, const struct claims *numbers, const struct claims *files)
{
    for (size_t i = 0; i < files->n; i++) {
        autofree char *said = words(WORD_NOT_WRITTEN, a->in.language, files->at[i], NULL);
        if (!strstr(*text, said))
            add_line(text, take(said));
    }
    if (a->lost_context)
        add_line(text, words(WORD_CONTEXT_LOST, a->in.language, NULL, NULL));
    if (numbers->n == 0)
        return;
    a->unsupported = claims_join(numbers);
    add_line(text, words(WORD_UNSUPPORTED, a->in.language, a->unsupported, NULL));
}

/* History keeps what people were shown: a link that leads nowhere would only be learned from. */
static void replace_text(struct model_msg *m, const char *text)
{
    if (strcmp(text, m->text) == 0)
        return;
    free(m->text);
    free(m->raw);
    m->text = xstrdup(text);
    m->raw = NULL;
}

static void give(struct agent *a, struct model_answer *answer, enum agent_status status, const struct claims *numbers,
                 const struct claims *files)
{
    struct model_msg *m = &answer->msg;
    autofree char *clean = answer_clean(m->text, a->cells, a->cell_n, a->in.language);
    if (agent_is_blank(clean)) {
        free(clean);
        clean = words(WORD_SEE_FIGURE, a->in.language, NULL, NULL);
    }
    mark(a, &clean, numbers, files);
    replace_text(m, clean);
    transcript_take_msg(&a->talk.msgs, m);
    if (answer->stop == MODEL_STOP_LENGTH)
        agent_finish_words(a, status, WORD_ANSWER_CUT, clean, NULL);
    else
        agent_finish(a, status, take(clean));
}

void agent_answer(struct agent *a, struct model_answer *answer, enum agent_status status)
{
    AUTO(claims_clear) struct claims numbers = { 0 }, files = { 0 };
    AUTO(evidence_clear) struct evidence e = { 0 };
    if (status != AGENT_REFUSED && is_checked(a)) {
        collect(a, &e);
        claims_numbers(&numbers, answer->msg.text, &e);
        claims_files(&files, answer->msg.text, exists, a);
        if (a->state == TURN_THINK && object(a, answer, &numbers))
            return;
    }
    give(a, answer, status, &numbers, &files);
}
