/* wire_words.c - prose while it comes. Servers without a parser for it leave thinking in the text, between <think> and </think> or what
 * else their model was taught, cut anywhere by the stream, sometimes without the opening tag: it is neither shown nor sent back. */
#include <ctype.h>
#include "wire.h"

static const char *const think_open[] = { "<think>", "<thinking>", "<thought>", "<seed:think>", "[THINK]", "◁think▷" };
static const char *const think_close[] = { "</think>",      "</thinking>", "</thought>",
                                           "</seed:think>", "[/THINK]",    "◁/think▷" };
enum {
    CLOSE_MAX = sizeof("</seed:think>") - 1,
    CLOSE_ALONE = 2, /* so many of them without their opening one: the others stand in prose as well */
};

/* The tag that text begins with, or may yet begin with: its length, 0: none; *more: wait for more. */
static size_t starts_with_tag(const char *text, size_t n, bool *more)
{
    *more = false;
    for (size_t i = 0; i < countof(think_open); i++) {
        const size_t tag = strlen(think_open[i]);
        if (n >= tag && memcmp(text, think_open[i], tag) == 0)
            return tag;
        *more = *more || (n < tag && memcmp(text, think_open[i], n) == 0);
    }
    return 0;
}

/* Where thinking that begins at or before `from` is over, by the first n of the tags; 0: not yet. */
static size_t after_close(const char *text, size_t from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *at = strstr(text + from, think_close[i]);
        if (at)
            return (size_t)(at - text) + strlen(think_close[i]);
    }
    return 0;
}

/* Moves on as far as what has come allows; true when r->shown is where words to be shown begin. */
static bool past_thinking(struct wire_reader *r)
{
    const char *all = str_peek(&r->words);
    while (r->think != WIRE_AFTER) {
        if (r->think == WIRE_BEFORE) {
            bool more = false;
            while (isspace((unsigned char)all[r->shown]))
                r->shown++;
            const size_t tag = starts_with_tag(all + r->shown, r->words.len - r->shown, &more);
            if (more)
                return false;
            r->think = tag ? WIRE_INSIDE : WIRE_AFTER;
            r->shown += tag;
            r->searched = r->shown;
        } else {
            const size_t end = after_close(all, r->searched, countof(think_close));
            if (end == 0) {
                if (r->words.len > r->searched + CLOSE_MAX)
                    r->searched = r->words.len - CLOSE_MAX;
                return false;
            }
            r->shown = end;
            r->think = WIRE_BEFORE;
        }
    }
    return true;
}

void wire_words(struct wire_reader *r, const char *text)
{
    AUTO(str_clear) struct str clean = STR_INIT(WIRE_TEXT_MAX);
    str_puts(&r->words, text);
    if (r->words.overflow)
        wire_fail_words(r, "the answer is too long");
    if (r->wire->thinks_aloud && !past_thinking(r))
        return;
    utf8_scrub(&clean, str_peek(&r->words) + r->shown, r->words.len - r->shown);
    r->shown = r->words.len;
    if (r->text && clean.len && !r->enough)
        r->enough = !r->text(r->ud, str_peek(&clean), clean.len);
}

/* What people may see, from all of it: now a closing tag without its opening one can be told, too. */
char *wire_visible(const struct wire_reader *r)
{
    AUTO(str_clear) struct str clean = STR_INIT(3 * (size_t)WIRE_TEXT_MAX);
    const char *all = str_peek(&r->words);
    size_t from = 0;
    bool more = false;
    while (r->wire->thinks_aloud) {
        size_t blank = strspn(all + from, " \t\r\n"),
               tag = starts_with_tag(all + from + blank, strlen(all + from + blank), &more);
        const size_t end = after_close(all, from + blank + tag, tag ? countof(think_close) : CLOSE_ALONE);
        if (tag && !end)
            return xstrdup(""); /* never came out of thinking */
        if (!end)
            break;
        from = end;
    }
    if (from)
        from += strspn(all + from, " \t\r\n");
    utf8_scrub(&clean, all + from, strlen(all + from));
    return str_take(&clean);
}
