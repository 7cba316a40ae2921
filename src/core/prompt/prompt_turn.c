/* prompt_turn.c - the messages of a turn's first ask. */
#include <string.h>
#include "json.h"
#include "prompt.h"

enum { REQUEST_MAX = 8 << 20 };

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

/* ---- the whole ---- */

void prompt_assemble(struct talk *out, const struct prompt_turn *t)
{
    autofree char *gap = prompts_note(t->prompts, NOTE_INTERRUPTED, NULL, NULL);
    transcript_add(&out->msgs, MODEL_SYSTEM, prompts_system(t->prompts));
    out->turn_at = 1;
    if (t->notes && *t->notes) {
        autofree char *notes = prompts_note(t->prompts, NOTE_SUMMARY, t->notes, NULL);
        autofree char *taken = prompts_note(t->prompts, NOTE_SUMMARY_TAKEN, NULL, NULL);
        talk_note(out, 0, notes, taken);
    }
    for (size_t i = 0; i < t->turn_n; i++)
        talk_add_turn(out, &t->turns[i], t->turn_ids ? t->turn_ids[i] : 0, gap);
    autofree char *text = request_text(t, &out->msgs);
    out->turn_at = out->msgs.n;
    transcript_add(&out->msgs, MODEL_USER, text);
}
