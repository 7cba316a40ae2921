/* request.c - phrases of twelve languages, looked up. */
#include "request.h"
#include <ctype.h>
#include <string.h>
#include "str.h"
#include "core/prompt/prompt.h"

enum {
    SHORT_BYTES = 160,  /* a question about words is no longer, in whatever script */
    FIRST_CJK = 0x2e80, /* from here on words have no blanks between them */
    OPENING_BYTES = 20, /* "Sure. First, I will": still the beginning */
};

static bool is_letter(uint32_t cp)
{
    return cp < 0x80 ? isalnum((int)cp) || cp == '_'
                     : cp >= 0xc0 && cp != 0xd7 && cp != 0xf7 && !(cp >= 0x2000 && cp < FIRST_CJK);
}

static uint32_t before(const char *begin, const char *at)
{
    if (at == begin)
        return ' ';
    at--;
    while (at > begin && ((unsigned char)*at & 0xc0) == 0x80)
        at--;
    return utf8_next(&at);
}

/* A phrase as the list has it, without its star. */
struct phrase {
    const char *at;
    size_t n;
    bool open; /* it had one: a word may go on */
};

static const char *find_phrase(const char *text, const struct phrase *p)
{
    const char *first = p->at;
    const bool joined = utf8_next(&first) >= FIRST_CJK;
    for (const char *at = memmem(text, strlen(text), p->at, p->n); at;
         at = memmem(at + 1, strlen(at + 1), p->at, p->n)) {
        const char *end = at + p->n;
        if (joined || (!is_letter(before(text, at)) && (p->open || !*end || !is_letter(utf8_next(&end)))))
            return at;
    }
    return NULL;
}

static struct phrase next_phrase(const char **at)
{
    *at += strspn(*at, ", \t\r\n");
    struct phrase p = { .at = *at, .n = strcspn(*at, ",\r\n") };
    *at += p.n;
    while (p.n && p.at[p.n - 1] == ' ')
        p.n--;
    p.open = p.n && p.at[p.n - 1] == '*';
    p.n -= p.open;
    return p;
}

/* The first phrase that stands in the text; NULL: none does. */
static const char *find_any(const char *list, const char *text)
{
    const char *found = NULL;
    for (const char *line = list; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n')) {
        autofree char *phrases = xstrndup(line, strcspn(line, "\n"));
        const char *at = strchr(phrases, ':');
        for (at = at ? at + 1 : ""; *at;) {
            const struct phrase p = next_phrase(&at);
            const char *here = p.n ? find_phrase(text, &p) : NULL;
            if (here && (!found || here < found))
                found = here;
        }
    }
    return found;
}

bool request_has(const char *list, const char *text)
{
    autofree char *folded_list = utf8_fold(list), *folded = utf8_fold(text);
    return find_any(folded_list, folded) != NULL;
}

static bool has(const struct prompts *p, enum prompt_note n, const char *text)
{
    autofree char *list = prompts_note(p, n, NULL, NULL);
    return request_has(list, text);
}

bool request_wants_work(const struct prompts *p, const char *request, bool follows)
{
    if (follows && strlen(request) <= SHORT_BYTES && has(p, NOTE_ASKS_TALK, request))
        return false;
    return has(p, NOTE_ASKS_COMPUTE, request);
}

bool request_wants_program(const struct prompts *p, const char *request)
{
    return has(p, NOTE_ASKS_PROGRAM, request);
}

bool request_is_promise(const struct prompts *p, const char *text, bool *begins)
{
    autofree char *list = prompts_note(p, NOTE_ASKS_PROMISE, NULL, NULL);
    autofree char *folded_list = utf8_fold(list), *folded = utf8_fold(text);
    const char *at = find_any(folded_list, folded);
    *begins = at && at - folded <= OPENING_BYTES;
    return at && !has(p, NOTE_ASKS_OFFER, text);
}

/* ---- languages ---- */

enum script {
    SCRIPT_LATIN,
    SCRIPT_CYRILLIC,
    SCRIPT_HAN,
    SCRIPT_KANA,
    SCRIPT_HANGUL,
    SCRIPT_ARABIC,
    SCRIPT_GREEK,
    SCRIPTS
};

static enum script script_of(uint32_t cp)
{
    static const struct {
        uint32_t from, to;
        enum script script;
    } ranges[] = {
        { 'A', 'Z', SCRIPT_LATIN },      { 'a', 'z', SCRIPT_LATIN },        { 0xc0, 0x24f, SCRIPT_LATIN },
        { 0x370, 0x3ff, SCRIPT_GREEK },  { 0x400, 0x52f, SCRIPT_CYRILLIC }, { 0x600, 0x6ff, SCRIPT_ARABIC },
        { 0x3040, 0x30ff, SCRIPT_KANA }, { 0x4e00, 0x9fff, SCRIPT_HAN },    { 0xac00, 0xd7a3, SCRIPT_HANGUL },
    };
    for (size_t i = 0; i < countof(ranges); i++)
        if (cp >= ranges[i].from && cp <= ranges[i].to)
            return ranges[i].script;
    return SCRIPTS;
}

/* The script that the text is written in; Latin only where there is no other: names and units are Latin everywhere. Kana make Han
 * Japanese. */
static enum script main_script(const char *text, size_t *letters)
{
    size_t n[SCRIPTS + 1] = { 0 };
    enum script most = SCRIPT_LATIN;
    *letters = 0;
    while (*text) {
        const enum script s = script_of(utf8_next(&text));
        n[s]++;
        *letters += s != SCRIPTS;
    }
    for (size_t s = SCRIPT_CYRILLIC; s < SCRIPTS; s++)
        if (n[s] > n[most] || (most == SCRIPT_LATIN && n[s] * 4 > n[SCRIPT_LATIN]))
            most = (enum script)s;
    return most == SCRIPT_HAN && n[SCRIPT_KANA] * 10 > n[SCRIPT_HAN] ? SCRIPT_KANA : most;
}

/* How many phrases of one line stand in the text. */
static size_t count_phrases(const char *line, const char *text)
{
    autofree char *phrases = xstrndup(line, strcspn(line, "\n"));
    const char *at = strchr(phrases, ':');
    size_t n = 0;
    for (at = at ? at + 1 : ""; *at;) {
        const struct phrase p = next_phrase(&at);
        n += p.n && find_phrase(text, &p);
    }
    return n;
}

/* The line of the list that most of the text's small words are in; NULL: that can't be told. */
static const char *spoken(const char *list, const char *text, size_t least)
{
    const char *best = NULL;
    size_t most = 0, second = 0;
    for (const char *line = list; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n')) {
        const size_t n = count_phrases(line, text);
        second = n > most ? most : n > second ? n : second;
        best = n > most ? line : best;
        most = n > most ? n : most;
    }
    return most >= least && most >= second + 2 ? best : NULL;
}

/* "in English", "auf Deutsch", "用英文", "translate": another language is what was asked for. */
static bool names_language(const char *request)
{
    static const char *const names[] = {
        "english",  "german",   "french", "spanish",   "italian",  "portuguese", "dutch",    "polish", "russian",
        "japanese", "chinese",  "korean", "deutsch",   "englisch", "anglais",    "français", "inglés", "español",
        "inglese",  "italiano", "inglês", "português", "engels",   "nederlands", "angielsk", "polsk",  "англий",
        "русск",    "英語",     "英文",   "英语",      "中文",     "日本語",     "日语",     "한국어", "영어",
        "translat", "übersetz", "tradu",  "vertaal",   "перевед",  "翻译",       "翻訳",     "번역"
    };
    autofree char *folded = utf8_fold(request);
    for (size_t i = 0; i < countof(names); i++)
        if (strstr(folded, names[i]))
            return true;
    return false;
}

bool request_is_foreign(const struct prompts *p, const char *request, const char *text)
{
    enum { LETTERS_MIN = 12, SAID_MIN = 20, WORDS_ASKED = 2, WORDS_SAID = 4 };
    size_t asked_n = 0, said_n = 0;
    const enum script asked = main_script(request, &asked_n), said = main_script(text, &said_n);
    if (names_language(request) || said_n < SAID_MIN)
        return false;
    if (asked != said)
        return asked_n >= (asked == SCRIPT_LATIN ? LETTERS_MIN : LETTERS_MIN / 3);
    if (asked != SCRIPT_LATIN)
        return false;
    autofree char *list = prompts_note(p, NOTE_ASKS_LANGUAGE, NULL, NULL), *folded_list = utf8_fold(list);
    autofree char *question = utf8_fold(request), *answer = utf8_fold(text);
    const char *one = spoken(folded_list, question, WORDS_ASKED), *other = spoken(folded_list, answer, WORDS_SAID);
    return one && other && one != other && count_phrases(one, answer) < WORDS_ASKED;
}

bool request_asks_back(const char *text)
{
    static const char *const ends[] = { "?", "\xef\xbc\x9f", "\xd8\x9f", "か。", "까요." };
    size_t n = strlen(text);
    while (n && strchr(" \t\n*_)", text[n - 1]))
        n--;
    for (size_t i = 0; i < countof(ends); i++)
        if (n >= strlen(ends[i]) && memcmp(text + n - strlen(ends[i]), ends[i], strlen(ends[i])) == 0)
            return true;
    return false;
}
