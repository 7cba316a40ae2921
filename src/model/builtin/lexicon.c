/* lexicon.c - reads and indexes the language files of the built-in planner. */
#include "lexicon.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { FILE_MAX = 512 << 10 }; /* bytes of a language file: ten times what one has */

static const char *const file_names[BI_LANGUAGES] = { [BI_EN] = "en.conf", [BI_ZH] = "zh.conf" };

static const struct {
    const char *section, *key;
} senses[BI_SENSES] = {
#define X(section, key, name) [BI_##name] = { section, key },
    BI_SENSE_TABLE(X)
#undef X
};

struct saying {
    char *key, *text;
};

struct bi_lexicon {
    struct bi_phrase *phrases;
    size_t phrase_n, phrase_cap;
    const struct bi_phrase **index; /* by stem of the first token */
    struct bi_concept *concepts;
    size_t concept_n, concept_cap;
    struct bi_named_value *values;
    size_t value_n, value_cap;
    struct saying *say[BI_LANGUAGES];
    size_t say_n[BI_LANGUAGES], say_cap[BI_LANGUAGES];
};

/* ---- the parts ---- */

const char *bi_sense_name(enum bi_sense s)
{
    return senses[s].key ? senses[s].key : "";
}

const char *bi_sense_section(enum bi_sense s)
{
    return senses[s].section ? senses[s].section : "";
}

static enum bi_sense sense_of(const char *section, const char *key)
{
    for (int s = BI_NONE + 1; s < BI_SENSES; s++)
        if (strcmp(senses[s].section, section) == 0 && strcmp(senses[s].key, key) == 0)
            return (enum bi_sense)s;
    return BI_NONE;
}

int bi_lexicon_concept_id(const struct bi_lexicon *x, const char *name)
{
    for (size_t i = 0; i < x->concept_n; i++)
        if (strcmp(x->concepts[i].name, name) == 0)
            return (int)i;
    return -1;
}

static int concept_id(struct bi_lexicon *x, const char *name)
{
    int id = bi_lexicon_concept_id(x, name);
    if (id >= 0)
        return id;
    x->concepts = xgrow(x->concepts, &x->concept_cap, x->concept_n + 1, sizeof(*x->concepts));
    x->concepts[x->concept_n] = (struct bi_concept){ .name = xstrdup(name) };
    return (int)x->concept_n++;
}

static int value_id(struct bi_lexicon *x, int topic, const char *name)
{
    int order = 0;
    for (size_t i = 0; i < x->value_n; i++) {
        order += x->values[i].topic == topic;
        if (x->values[i].topic == topic && strcmp(x->values[i].name, name) == 0)
            return (int)i;
    }
    x->values = xgrow(x->values, &x->value_cap, x->value_n + 1, sizeof(*x->values));
    x->values[x->value_n] = (struct bi_named_value){ .name = xstrdup(name), .topic = topic, .order = order };
    return (int)x->value_n++;
}

/* ---- one line ---- */

struct line {
    struct bi_lexicon *x;
    enum bi_language language;
    const char *section;
    char *key, *rest;
};

static char *trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1]))
        s[--n] = '\0';
    return s;
}

static int add_phrase(const struct line *l, const struct bi_phrase *like, const char *text, struct err *e)
{
    struct bi_lexicon *x = l->x;
    struct bi_tokens tokens;
    bi_tokens_cut(&tokens, text);
    if (!tokens.n) {
        bi_tokens_clear(&tokens);
        return err_set(e, ERR_CONFIG, "%s: a phrase without words", l->key);
    }
    x->phrases = xgrow(x->phrases, &x->phrase_cap, x->phrase_n + 1, sizeof(*x->phrases));
    struct bi_phrase *p = &x->phrases[x->phrase_n++];
    *p = *like;
    p->language = l->language;
    p->tokens = tokens;
    p->compact = bi_compact(text);
    return 0;
}

static int add_phrases(const struct line *l, const struct bi_phrase *like, struct err *e)
{
    char *save = NULL;
    for (char *part = strtok_r(l->rest, ",", &save); part; part = strtok_r(NULL, ",", &save))
        if (add_phrase(l, like, trim(part), e) < 0)
            return -1;
    return 0;
}

static int add_concepts(const struct line *l, char *names, struct bi_phrase *p, struct err *e)
{
    char *save = NULL;
    size_t n = 0;
    for (char *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
        if (n + 1 == BI_CONCEPTS_OF_WORD)
            return err_set(e, ERR_CONFIG, "%s: more than %d concepts", l->key, BI_CONCEPTS_OF_WORD - 1);
        p->concepts[n++] = concept_id(l->x, name);
    }
    p->concepts[n] = -1;
    return n ? 0 : err_set(e, ERR_CONFIG, "%s: no concept", l->key);
}

static int read_sense(struct line *l, struct err *e)
{
    struct bi_phrase p = { .type = BI_PHRASE_SENSE, .sense = sense_of(l->section, l->key), .concepts = { -1 } };
    if (p.sense == BI_NONE)
        return err_set(e, ERR_CONFIG, "[%s] knows no key %s", l->section, l->key);
    p.id = (int)p.sense;
    return add_phrases(l, &p, e);
}

static int read_about(struct line *l, enum bi_phrase_type type, struct err *e)
{
    int id = concept_id(l->x, l->key);
    struct bi_phrase p = { .type = type, .id = id, .concepts = { id, -1 } };
    return add_phrases(l, &p, e);
}

static int read_concept(struct line *l, struct err *e)
{
    return read_about(l, BI_PHRASE_CONCEPT, e);
}

/* The flags of a concept that a key of [kind] sets; a concept that stands for rows is counted, what is counted is
 * additive. */
static int read_kind(struct line *l, struct err *e)
{
    bool stands = strcmp(l->key, "stands_for") == 0, counted = stands || strcmp(l->key, "counted") == 0;
    bool additive = counted || strcmp(l->key, "additive") == 0, intensive = strcmp(l->key, "intensive") == 0;
    bool thing = strcmp(l->key, "thing") == 0, nature = strcmp(l->key, "nature") == 0;
    if (!additive && !intensive && !thing && !nature)
        return err_set(e, ERR_CONFIG, "[kind] knows no key %s", l->key);
    char *save = NULL;
    for (char *part = strtok_r(l->rest, ", ", &save); part; part = strtok_r(NULL, ", ", &save)) {
        int id = concept_id(l->x, part); /* first: it may move the array */
        struct bi_concept *c = &l->x->concepts[id];
        c->additive = c->additive || additive;
        c->intensive = c->intensive || intensive;
        c->counted = c->counted || counted;
        c->stands_for = c->stands_for || stands;
        c->thing = c->thing || thing;
        c->nature = c->nature || nature;
    }
    return 0;
}

static int read_value(struct line *l, struct err *e)
{
    char *dot = strchr(l->key, '.');
    if (!dot)
        return err_set(e, ERR_CONFIG, "%s: a value's key is class.value", l->key);
    *dot = '\0';
    int topic = concept_id(l->x, l->key);
    struct bi_phrase p = { .type = BI_PHRASE_VALUE, .concepts = { topic, -1 } };
    p.id = value_id(l->x, topic, dot + 1);
    return add_phrases(l, &p, e);
}

/* "most price fare = dearest": a sense of `section`, then concepts. */
static int read_bound(struct line *l, enum bi_phrase_type type, const char *section, struct err *e)
{
    struct bi_phrase p = { .type = type };
    char *blank = strchr(l->key, ' ');
    if (!blank)
        return err_set(e, ERR_CONFIG, "%s: no concept", l->key);
    *blank = '\0';
    p.sense = sense_of(section, l->key);
    if (p.sense == BI_NONE)
        return err_set(e, ERR_CONFIG, "[%s] knows no key %s", section, l->key);
    return add_concepts(l, blank + 1, &p, e) < 0 ? -1 : add_phrases(l, &p, e);
}

static int read_superlative(struct line *l, struct err *e)
{
    return read_bound(l, BI_PHRASE_SUPERLATIVE, "order", e);
}

static int read_comparative(struct line *l, struct err *e)
{
    return read_bound(l, BI_PHRASE_COMPARATIVE, "compare", e);
}

static int read_complement(struct line *l, struct err *e)
{
    return read_about(l, BI_PHRASE_COMPLEMENT, e);
}

static int read_holder(struct line *l, struct err *e)
{
    return read_about(l, BI_PHRASE_HOLDER, e);
}

static int read_say(struct line *l, struct err *e)
{
    (void)e;
    struct bi_lexicon *x = l->x;
    size_t *n = &x->say_n[l->language];
    struct saying *s = xgrow(x->say[l->language], &x->say_cap[l->language], *n + 1, sizeof(*s));
    x->say[l->language] = s;
    struct str text = STR_INIT(FILE_MAX);
    size_t length = strlen(l->rest);
    bool quoted = length >= 2 && l->rest[0] == '"' && l->rest[length - 1] == '"'; /* keeps blanks at its ends */
    if (quoted) {
        l->rest[length - 1] = '\0';
        l->rest++;
    }
    for (const char *p = l->rest; *p; p++) {
        bool newline = p[0] == '\\' && p[1] == 'n';
        str_add(&text, newline ? "\n" : p, 1);
        p += newline;
    }
    s[(*n)++] = (struct saying){ .key = xstrdup(l->key), .text = str_take(&text) };
    return 0;
}

static int read_number(struct line *l, struct err *e)
{
    char *end;
    struct bi_phrase p = { .type = BI_PHRASE_NUMBER, .concepts = { -1 } };
    p.id = (int)strtol(l->key, &end, 10);
    if (*end)
        return err_set(e, ERR_CONFIG, "[number] %s: no whole number", l->key);
    return add_phrases(l, &p, e);
}

/* "2 = second"; "2 most = 第二高" */
static int read_ordinal(struct line *l, struct err *e)
{
    char *end;
    struct bi_phrase p = { .type = BI_PHRASE_ORDINAL, .concepts = { -1 } };
    p.id = (int)strtol(l->key, &end, 10);
    if (p.id < 2)
        return err_set(e, ERR_CONFIG, "[ordinal] %s: no place from 2 on", l->key);
    end += strspn(end, " ");
    p.sense = *end ? sense_of("order", end) : BI_NONE;
    if (*end && p.sense != BI_MOST && p.sense != BI_LEAST)
        return err_set(e, ERR_CONFIG, "[ordinal] %s: neither most nor least", l->key);
    return add_phrases(l, &p, e);
}

static const struct {
    const char *section;
    int (*read)(struct line *l, struct err *e);
} sections[] = {
    { "aggregate", read_sense },
    { "recipe", read_sense },
    { "clean", read_sense },
    { "group", read_sense },
    { "order", read_sense },
    { "compare", read_sense },
    { "logic", read_sense },
    { "chart", read_sense },
    { "period", read_sense },
    { "rows", read_sense },
    { "ask", read_sense },
    { "follow", read_sense },
    { "unit", read_sense },
    { "filler", read_sense },
    { "cannot", read_sense },
    { "concept", read_concept },
    { "kind", read_kind },
    { "value", read_value },
    { "superlative", read_superlative },
    { "comparative", read_comparative },
    { "complement", read_complement },
    { "number", read_number },
    { "ordinal", read_ordinal },
    { "holder", read_holder },
    { "say", read_say },
};

static int read_line(struct line *l, char *text, struct err *e)
{
    char *equals = strchr(text, '=');
    if (!equals)
        return err_set(e, ERR_CONFIG, "neither [section] nor key = phrases");
    *equals = '\0';
    l->key = trim(text);
    l->rest = trim(equals + 1);
    for (size_t i = 0; i < countof(sections); i++)
        if (l->section && strcmp(sections[i].section, l->section) == 0)
            return sections[i].read(l, e);
    return err_set(e, ERR_CONFIG, "a key before the first [section]");
}

static const char *section_named(const char *name)
{
    for (size_t i = 0; i < countof(sections); i++)
        if (strcmp(sections[i].section, name) == 0)
            return sections[i].section;
    return NULL;
}

static int read_section(struct line *l, char *text, struct err *e)
{
    size_t n = strlen(text);
    if (text[n - 1] != ']')
        return err_set(e, ERR_CONFIG, "a [section] without its bracket");
    text[n - 1] = '\0';
    l->section = section_named(text + 1);
    return l->section ? 0 : err_set(e, ERR_CONFIG, "unknown section [%.60s]", text + 1);
}

/* ---- files ---- */

static int read_language(struct bi_lexicon *x, enum bi_language language, const char *path, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(FILE_MAX);
    if (str_read_file(&text, path, e) < 0)
        return err_wrap(e, "%s", path);
    if (!utf8_valid(str_peek(&text), text.len))
        return err_set(e, ERR_CONFIG, "%s: not UTF-8", path);
    struct line l = { .x = x, .language = language };
    char *next = text.buf;
    for (int number = 1; next && *next; number++) {
        char *line = next, *end = strchr(line, '\n');
        next = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        line = trim(line);
        if (!*line || *line == '#')
            continue;
        if ((*line == '[' ? read_section(&l, line, e) : read_line(&l, line, e)) < 0)
            return err_wrap(e, "%s:%d", path, number);
    }
    return 0;
}

static int by_first_stem(const void *a, const void *b)
{
    const struct bi_phrase *const *p = a, *const *q = b;
    int order = strcmp((*p)->tokens.at[0].stem, (*q)->tokens.at[0].stem);
    return order ? order : (*p > *q) - (*p < *q);
}

static void make_index(struct bi_lexicon *x)
{
    x->index = xcalloc(x->phrase_n + 1, sizeof(void *));
    for (size_t i = 0; i < x->phrase_n; i++)
        x->index[i] = &x->phrases[i];
    qsort(x->index, x->phrase_n, sizeof(void *), by_first_stem);
}

int bi_lexicon_open(struct bi_lexicon **out, const char *prompts_dir, struct err *e)
{
    struct bi_lexicon *x = xcalloc(1, sizeof(*x));
    for (int language = 0; language < BI_LANGUAGES; language++) {
        autofree char *path = xasprintf("%s/builtin/%s", prompts_dir, file_names[language]);
        if (read_language(x, (enum bi_language)language, path, e) < 0) {
            e->kind = ERR_CONFIG;
            bi_lexicon_close(x);
            return -1;
        }
    }
    make_index(x);
    *out = x;
    return 0;
}

void bi_lexicon_close(struct bi_lexicon *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->phrase_n; i++) {
        bi_tokens_clear(&x->phrases[i].tokens);
        free(x->phrases[i].compact);
    }
    for (size_t i = 0; i < x->concept_n; i++)
        free(x->concepts[i].name);
    for (size_t i = 0; i < x->value_n; i++)
        free(x->values[i].name);
    for (int language = 0; language < BI_LANGUAGES; language++) {
        for (size_t i = 0; i < x->say_n[language]; i++) {
            free(x->say[language][i].key);
            free(x->say[language][i].text);
        }
        free(x->say[language]);
    }
    free(x->phrases);
    free(x->index);
    free(x->concepts);
    free(x->values);
    free(x);
}

/* ---- asking ---- */

const struct bi_phrase *const *bi_lexicon_find(const struct bi_lexicon *x, const char *first_stem, size_t *n)
{
    size_t low = 0, high = x->phrase_n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (strcmp(x->index[mid]->tokens.at[0].stem, first_stem) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    size_t end = low;
    while (end < x->phrase_n && strcmp(x->index[end]->tokens.at[0].stem, first_stem) == 0)
        end++;
    *n = end - low;
    return x->index + low;
}

size_t bi_lexicon_phrases(const struct bi_lexicon *x)
{
    return x->phrase_n;
}

const struct bi_phrase *bi_lexicon_phrase(const struct bi_lexicon *x, size_t i)
{
    return &x->phrases[i];
}

const struct bi_concept *bi_lexicon_concept(const struct bi_lexicon *x, int id)
{
    return &x->concepts[id];
}

const struct bi_named_value *bi_lexicon_value(const struct bi_lexicon *x, int id)
{
    return &x->values[id];
}

int bi_lexicon_value_of(const struct bi_lexicon *x, const char *text, int topic, size_t *form_letters)
{
    autofree char *compact = bi_compact(text);
    for (size_t i = 0; *compact && i < x->phrase_n; i++) {
        const struct bi_phrase *p = &x->phrases[i];
        if (p->type != BI_PHRASE_VALUE || (topic >= 0 && p->concepts[0] != topic) || strcmp(p->compact, compact) != 0)
            continue;
        if (form_letters)
            *form_letters = bi_letters(compact);
        return p->id;
    }
    return -1;
}

const char *bi_text(const struct bi_lexicon *x, enum bi_language language, const char *key)
{
    for (size_t i = 0; i < x->say_n[language]; i++)
        if (strcmp(x->say[language][i].key, key) == 0)
            return x->say[language][i].text;
    return key;
}

static const char *argument(const char *const *pairs, const char *name, size_t n)
{
    for (; *pairs; pairs += 2)
        if (strlen(*pairs) == n && memcmp(*pairs, name, n) == 0)
            return pairs[1];
    return NULL;
}

void bi_say(struct str *out, const struct bi_lexicon *x, enum bi_language language, const char *key,
            const char *const *pairs)
{
    for (const char *p = bi_text(x, language, key); *p;) {
        const char *open = strchr(p, '{'), *close = open ? strchr(open, '}') : NULL;
        const char *value = close ? argument(pairs, open + 1, (size_t)(close - open) - 1) : NULL;
        if (!close) {
            str_puts(out, p);
            break;
        }
        str_add(out, p, (size_t)(open - p));
        if (value)
            str_puts(out, value);
        else
            str_add(out, open, (size_t)(close - open) + 1);
        p = close + 1;
    }
}
