/* prompt_fit.c - the messages of one ask: whole earlier turns, newest first, as far as they fit. */
#include <string.h>
#include "json.h"
#include "prompt.h"

enum {
    REQUEST_MAX = 8 << 20,
    MSG_TOKENS = 4,    /* what a message costs beside its text */
    HISTORY_PART = 60, /* per cent of the budget for earlier turns; the rest is this turn's work */
    SQUEEZE_PART = 75, /* per cent of the budget past which old results are shortened */
    RESULTS_KEPT = 2,  /* the newest results stay whole */
};

/* ---- tokens ---- */

/* Hundredths of a token that a character costs: prose 4 to a token, code and digits 3, other alphabets 2, CJK one and a bit. */
static int64_t weight(uint32_t c)
{
    if (c >= 0x2e80)
        return 80;
    if (c >= 0x80)
        return 50;
    const uint32_t lower = c | 0x20;
    return (lower >= 'a' && lower <= 'z') || c == ' ' ? 25 : 34;
}

int64_t prompt_tokens(const char *text)
{
    int64_t sum = 0;
    for (uint32_t c = utf8_next(&text); c; c = utf8_next(&text))
        sum += weight(c);
    return (sum + 99) / 100;
}

int64_t prompt_tokens_of(const struct transcript *t, size_t from, size_t to)
{
    int64_t sum = 0;
    for (size_t i = from; i < to && i < t->n; i++) {
        sum += MSG_TOKENS + prompt_tokens(t->at[i].text);
        for (size_t k = 0; k < t->at[i].call_n; k++)
            sum += MSG_TOKENS + prompt_tokens(t->at[i].calls[k].args);
    }
    return sum;
}

/* ---- the request ---- */

/* The label is set by us; a look-alike in what a person writes is bent so that nobody speaks for another. */
static void add_person(struct str *out, const char *asker, const char *text)
{
    static const char label[] = "[user:";
    str_puts(out, "[user: @");
    for (const char *c = asker ? asker : "?"; *c; c++)
        str_add(out, strchr("[]\n", *c) ? "_" : c, 1);
    str_puts(out, "] ");
    for (const char *like = strstr(text, label); like; like = strstr(text, label)) {
        str_add(out, text, (size_t)(like - text));
        str_puts(out, "(user:");
        text = like + strlen(label);
    }
    str_puts(out, text);
}

static char *request_text(const struct prompt_turn *t, const struct transcript *known)
{
    AUTO(str_clear) struct str out = STR_INIT(REQUEST_MAX), files = STR_INIT(REQUEST_MAX);
    if (t->files)
        prompt_files(&files, t->files, known, t->prompts);
    if (files.len)
        str_printf(&out, "<data nonce=%s>\n%s</data nonce=%s>\n\n", t->nonce, str_peek(&files), t->nonce);
    if (t->note)
        str_printf(&out, "%s\n\n", t->note);
    add_person(&out, t->asker, t->request);
    return str_take(&out);
}

/* ---- history ---- */

static size_t first_turn_that_fits(const struct prompt_turn *t, int64_t tokens)
{
    size_t first = t->turn_n;
    while (first > 0) {
        tokens -= prompt_tokens_of(&t->turns[first - 1], 0, t->turns[first - 1].n);
        if (tokens < 0)
            break;
        first--;
    }
    return first;
}

size_t prompt_assemble(struct transcript *out, const struct prompt_turn *t)
{
    autofree char *gap = prompts_note(t->prompts, NOTE_INTERRUPTED, NULL, NULL);
    transcript_add(out, MODEL_SYSTEM, prompts_system(t->prompts));
    const int64_t left = t->budget_tokens * HISTORY_PART / 100 - prompt_tokens_of(out, 0, 1);
    for (size_t i = first_turn_that_fits(t, left); i < t->turn_n; i++)
        transcript_copy(out, &t->turns[i], 0, t->turns[i].n);
    transcript_sanitize(out, gap);
    autofree char *text = request_text(t, out);
    transcript_add(out, MODEL_USER, text);
    return out->n - 1;
}

/* ---- a turn that grows ---- */

/* First line and a word that the rest is gone. */
static void shorten(struct model_msg *m, const char *gone)
{
    const size_t n = strcspn(m->text, "\n");
    char *brief = xasprintf("%.*s\n%s", (int)n, m->text, gone);
    free(m->text);
    m->text = brief;
}

void prompt_squeeze(struct transcript *t, size_t from, int64_t budget_tokens, const struct prompts *p)
{
    autofree char *gone = prompts_note(p, NOTE_SQUEEZED, NULL, NULL);
    const int64_t most = budget_tokens * SQUEEZE_PART / 100;
    size_t results = 0;
    for (size_t i = from; i < t->n; i++)
        results += t->at[i].role == MODEL_TOOL;
    for (size_t i = from; i < t->n && results > RESULTS_KEPT && prompt_tokens_of(t, 0, t->n) > most; i++) {
        if (t->at[i].role != MODEL_TOOL)
            continue;
        results--;
        if (strlen(t->at[i].text) > 2 * strlen(gone) + 200)
            shorten(&t->at[i], gone);
    }
}
