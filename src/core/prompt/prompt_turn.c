/* prompt_turn.c - the messages of a turn's first ask. */
#include <string.h>
#include "json.h"
#include "prompt.h"

enum { REQUEST_MAX = 8 << 20 };

/* ---- the request ---- */

/* Past blanks, those of print and those that nobody sees. */
static const char *past_blanks(const char *at)
{
    for (const char *next = at; *at; at = next) {
        const uint32_t cp = utf8_next(&next);
        const bool blank = cp == ' ' || cp == '\t' || cp == 0xa0 || cp == 0xad || cp == 0xfeff || cp == 0x3000 ||
                           (cp >= 0x2000 && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202f) ||
                           (cp >= 0x205f && cp <= 0x206f);
        if (!blank)
            break;
    }
    return at;
}

/* "[user:", "[ User :", "［user：": bytes of its bracket, 0: it is none. */
static size_t label_like(const char *at)
{
    static const char wide_bracket[] = "［", wide_colon[] = "：", word[] = "user";
    const size_t bracket = *at == '[' ? 1 : strncmp(at, wide_bracket, 3) == 0 ? 3 : 0;
    if (!bracket)
        return 0;
    const char *behind = past_blanks(at + bracket);
    for (const char *c = word; *c; c++, behind = past_blanks(behind + 1))
        if ((*behind | 0x20) != *c)
            return 0;
    return *behind == ':' || strncmp(behind, wide_colon, 3) == 0 ? bracket : 0;
}

/* The label is set by us; a look-alike in what a person writes is bent so that nobody speaks for another. */
static void add_person(struct str *out, const char *asker, const char *text)
{
    str_puts(out, "[user: @");
    for (const char *c = asker ? asker : "?"; *c; c++)
        str_add(out, strchr("[]\n", *c) ? "_" : c, 1);
    str_puts(out, "] ");
    while (*text) {
        const size_t bracket = label_like(text);
        str_add(out, bracket ? "(" : text, 1);
        text += bracket ? bracket : 1;
    }
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
