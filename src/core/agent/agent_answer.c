/* agent_answer.c - an answer in words, before it is given: links that lead nowhere, numbers and files that nobody made, a reply
 * in place of work. The model is asked once, each; then the answer is marked. */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "agent_private.h"
#include "answer.h"
#include "conf.h"
#include "json.h"
#include "log.h"
#include "request.h"

enum {
    OBJECTIONS_MAX = 2, /* to a reply without a program */
    NOTES_MAX = 64 << 10,
};

bool agent_is_blank(const char *text)
{
    while (text && *text && isspace((unsigned char)*text))
        text++;
    return !text || !*text;
}

bool agent_wants_program(const struct agent *a)
{
    return !a->in.request || request_wants_program(a->in.prompts, a->in.request);
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

/* An answer stands before this question. */
static bool follows(const struct agent *a)
{
    for (size_t i = 1; i < a->talk.turn_at; i++)
        if (a->talk.msgs.at[i].role == MODEL_ASSISTANT && !agent_is_blank(a->talk.msgs.at[i].text))
            return true;
    return false;
}

static bool wants_work(const struct agent *a)
{
    return a->in.request && request_wants_work(a->in.prompts, a->in.request, follows(a));
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

/* A program in a language that does not run here, which nobody asked for by its name. */
static bool is_foreign(const struct agent *a, const char *text)
{
    static const char *const languages[] = { "sql", "bash",  "sh",     "shell", "javascript", "js", "typescript",
                                             "r",   "julia", "matlab", "java",  "c",          "cpp" };
    for (const char *block = strstr(text, "```"); block; block = strstr(block, "```")) {
        block += 3;
        for (size_t i = 0; i < countof(languages); i++) {
            const size_t n = strlen(languages[i]);
            if (strncasecmp(block, languages[i], n) == 0 && isspace((unsigned char)block[n]) &&
                !has_word(a->in.request, languages[i]))
                return true;
        }
    }
    return false;
}

/* A reply to a question about data, without a program that worked behind it: what to do now is no answer. What the profile or the
 * talk so far answers is fine. */
static bool skipped_the_work(const struct agent *a, const char *text, const struct agent_doubts *d)
{
    if (!all_failed(a) || !json_len(a->in.files) || request_asks_back(text))
        return false;
    return d->facts.n || a->cell_n || is_foreign(a, text) || (!has_digit(text) && wants_work(a));
}

/* "I will load the data and try again": said instead of done, behind programs that brought no answer. */
static bool only_promises(const struct agent *a, const char *text)
{
    bool begins = false;
    if (!a->cell_n || !json_len(a->in.files) || has_digit(text) || request_asks_back(text) || agent_made_something(a))
        return false;
    return request_is_promise(a->in.prompts, text, &begins) && (begins || wants_work(a));
}

/* The word about what is not supported, all of it in one. */
static char *ask_for_support(const struct agent *a, const struct agent_doubts *d)
{
    AUTO(str_clear) struct str all = STR_INIT(NOTES_MAX);
    AUTO(claims_clear) struct claims unshown = { 0 };
    claims_add_all(&unshown, &d->facts);
    claims_add_all(&unshown, &d->derived);
    autofree char *facts = claims_join(&unshown), *files = claims_join(&d->files);
    autofree char *part = d->part ? xasprintf(", but %s", d->part) : xstrdup("");
    const struct {
        enum prompt_note note;
        const char *what;
        bool said;
    } parts[] = { { NOTE_UNSUPPORTED, facts, unshown.n > 0 },
                  { NOTE_NO_FILE, files, d->files.n > 0 },
                  { NOTE_NO_CHART, "", d->chart },
                  { NOTE_COUNT, part, d->miscounted },
                  { NOTE_HEED, d->unheeded, d->unheeded != NULL },
                  { NOTE_MISREAD, d->misread, d->misread != NULL },
                  { NOTE_OTHER, d->other, d->other != NULL },
                  { NOTE_UNREAD, agent_load_call(a), d->unread },
                  { NOTE_ANOTHER, d->asked, d->asked != NULL },
                  { NOTE_ECHO, "", d->echo },
                  { NOTE_LANGUAGE, "", d->foreign } };
    for (size_t i = 0; i < countof(parts); i++) {
        if (!parts[i].said)
            continue;
        const char *more = parts[i].note == NOTE_COUNT ? a->in.request : d->read;
        autofree char *note = prompts_note(a->in.prompts, parts[i].note, parts[i].what, more);
        str_printf(&all, "%s%s", all.len ? "\n\n" : "", note);
    }
    log_info("answer_unsupported", KV_S("turn", a->in.seed), KV_S("facts", facts), KV_S("files", files),
             KV_I("chart", d->chart), KV_I("miscounted", d->miscounted), KV_I("unheeded", d->unheeded != NULL),
             KV_I("misread", d->misread != NULL), KV_I("other", d->other != NULL), KV_I("unread", d->unread),
             KV_I("another", d->asked != NULL), KV_I("echo", d->echo), KV_I("foreign", d->foreign));
    return str_take(&all);
}

static bool has_doubts(const struct agent_doubts *d)
{
    return d->facts.n || d->derived.n || d->files.n || d->chart || d->miscounted || d->unheeded || d->misread ||
           d->other || d->unread || d->asked || d->echo || d->foreign;
}

/* Nothing was run: said once, and with a pattern to follow when that did not help. What no output shows: asked about once. */
static bool object(struct agent *a, struct model_answer *answer, const struct agent_doubts *d)
{
    if (answer->stop != MODEL_STOP_END || a->settled)
        return false;
    if (a->objections < OBJECTIONS_MAX && skipped_the_work(a, answer->msg.text, d)) {
        const enum prompt_note note = is_foreign(a, answer->msg.text) ? NOTE_FOREIGN
                                      : a->objections || a->cell_n    ? NOTE_NOT_RUN_AGAIN
                                                                      : NOTE_NOT_RUN;
        a->objections++;
        ask_again(a, answer, prompts_note(a->in.prompts, note, agent_load_call(a), NULL));
        return true;
    }
    if (a->objections < OBJECTIONS_MAX && only_promises(a, answer->msg.text)) {
        a->objections++;
        ask_again(a, answer, prompts_note(a->in.prompts, NOTE_PROMISED, NULL, NULL));
        return true;
    }
    if (!has_doubts(d) || (a->objections && all_failed(a)) || a->draft)
        return false;
    a->draft = xstrdup(answer->msg.text);
    ask_again(a, answer, ask_for_support(a, d));
    return true;
}

/* ---- marked and given ---- */

static void add_line(char **text, char *take_line)
{
    autofree char *line = take_line, *before = *text;
    *text = xasprintf("%s\n\n%s", before, line);
}

/* What the newest program printed, where the answer still gives no number: it may well be there. NULL: nothing, or too much. */
static char *newest_output(const struct agent *a, const struct agent_doubts *d)
{
    enum { OUTPUT_MAX = 400 };
    if (!(d->echo || (d->miscounted && !d->part)) || !a->cell_n)
        return NULL;
    const struct cell *c = &a->cells[a->cell_n - 1].cell;
    const size_t n = strlen(c->out);
    return c->status == CELL_OK && has_digit(c->out) && n <= OUTPUT_MAX && !strstr(c->out, "```") ? xstrdup(c->out)
                                                                                                  : NULL;
}

/* The first that holds: one mark is read, three are not. */
static void mark_doubts(struct agent *a, char **text, const struct agent_doubts *d)
{
    autofree char *facts = claims_join(&d->facts);
    const struct {
        enum word word;
        const char *what;
    } marks[] = { { WORD_UNSUPPORTED, d->facts.n ? facts : NULL },
                  { WORD_NO_COUNT, d->part },
                  { WORD_UNHEEDED, d->unheeded },
                  { WORD_MISREAD, d->misread },
                  { WORD_OTHER, d->other } };
    for (size_t i = 0; i < countof(marks) && !a->unsupported; i++) {
        if (!marks[i].what)
            continue;
        a->unsupported = xstrdup(marks[i].what);
        add_line(text, words(marks[i].word, a->in.language, a->unsupported, NULL));
    }
}

static void mark(struct agent *a, char **text, const struct agent_doubts *d)
{
    autofree char *output = newest_output(a, d);
    if (output)
        add_line(text, words(WORD_LAST_OUTPUT, a->in.language, output, NULL));
    for (size_t i = 0; i < d->files.n; i++) {
        autofree char *said = words(WORD_NOT_WRITTEN, a->in.language, d->files.at[i], NULL);
        if (!strstr(*text, said))
            add_line(text, take(said));
    }
    if (d->unread)
        add_line(text, words(WORD_UNREAD, a->in.language, NULL, NULL));
    if (d->asked)
        add_line(text, words(WORD_ANOTHER, a->in.language, d->asked, d->read));
    if (d->chart)
        add_line(text, words(WORD_NO_CHART, a->in.language, NULL, NULL));
    if (a->failed_model)
        add_line(text, words(WORD_FALLBACK, a->in.language, a->in.section->section, a->failed_model));
    if (a->lost_context)
        add_line(text, words(WORD_CONTEXT_LOST, a->in.language, NULL, NULL));
    mark_doubts(a, text, d);
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

static void give(struct agent *a, struct model_answer *answer, enum agent_status status, const struct agent_doubts *d)
{
    struct model_msg *m = &answer->msg;
    autofree char *said = a->cell_n && !agent_wants_program(a) ? answer_without_programs(m->text) : xstrdup(m->text);
    autofree char *clean = answer_clean(said, a->cells, a->cell_n, a->in.language);
    if (agent_is_blank(clean)) {
        free(clean);
        clean = words(WORD_SEE_FIGURE, a->in.language, NULL, NULL);
    }
    mark(a, &clean, d);
    replace_text(m, clean);
    transcript_take_msg(&a->talk.msgs, m);
    if (answer->stop == MODEL_STOP_LENGTH)
        agent_finish_words(a, status, WORD_ANSWER_CUT, clean, NULL);
    else
        agent_finish(a, status, take(clean));
}

void agent_answer(struct agent *a, struct model_answer *answer, enum agent_status status)
{
    AUTO(agent_doubts_clear) struct agent_doubts d = { 0 };
    if (status != AGENT_REFUSED)
        agent_doubt(a, answer->msg.text, &d);
    if (a->state != TURN_THINK || !object(a, answer, &d))
        give(a, answer, status, &d);
}

bool agent_give_draft(struct agent *a)
{
    if (!a->draft)
        return false;
    struct model_answer draft = { .msg = { .role = MODEL_ASSISTANT, .text = take(a->draft) } };
    a->settled = true;
    agent_answer(a, &draft, AGENT_ANSWERED);
    model_msg_clear(&draft.msg);
    return true;
}
