/* table.c - profiles become tables whose columns know their words. */
#include "table.h"
#include <math.h>
#include <string.h>
#include "json.h"

/* ---- words of a name ---- */

static void concept_add(int *list, size_t cap, int topic)
{
    size_t n = 0;
    for (; list[n] >= 0; n++)
        if (list[n] == topic)
            return;
    if (n + 1 < cap) {
        list[n] = topic;
        list[n + 1] = -1;
    }
}

/* Concepts that have exactly this text as a phrase. */
static void concepts_of(const struct bi_lexicon *x, const char *text, int *list, size_t cap)
{
    autofree char *compact = bi_compact(text), *stem = bi_stem(compact);
    for (size_t i = 0; *compact && i < bi_lexicon_phrases(x); i++) {
        const struct bi_phrase *p = bi_lexicon_phrase(x, i);
        if (p->type == BI_PHRASE_CONCEPT && (strcmp(p->compact, compact) == 0 || strcmp(p->compact, stem) == 0))
            concept_add(list, cap, p->id);
    }
}

static void unit_add(struct bi_column *c, const struct bi_lexicon *x, const char *text)
{
    size_t cap = c->unit_n;
    c->units = xgrow(c->units, &cap, c->unit_n + 1, sizeof(*c->units));
    struct bi_unit *u = &c->units[c->unit_n++];
    *u = (struct bi_unit){ .text = xstrdup(text), .concepts = { -1 } };
    concepts_of(x, text, u->concepts, countof(u->concepts));
    u->concepts[1] = -1; /* as a part of a name a word has its first meaning only: sales_rep is no revenue */
}

static bool known_word(const struct bi_lexicon *x, const char *text)
{
    int list[2] = { -1 };
    concepts_of(x, text, list, countof(list));
    size_t n;
    autofree char *stem = bi_stem(text);
    const struct bi_phrase *const *found = bi_lexicon_find(x, stem, &n);
    for (size_t i = 0; i < n && list[0] < 0; i++)
        if (found[i]->tokens.n == 1)
            return true;
    return list[0] >= 0;
}

/* "totalbill" -> "total", "bill", when both are words that the lexicon knows. */
static bool add_halves(struct bi_column *c, const struct bi_lexicon *x, const char *word)
{
    size_t n = strlen(word);
    for (size_t cut = n - 3; n >= 6 && cut >= 3; cut--) {
        autofree char *a = xstrndup(word, cut), *b = xstrdup(word + cut);
        if (utf8_valid(a, cut) && known_word(x, a) && known_word(x, b)) {
            unit_add(c, x, a);
            unit_add(c, x, b);
            return true;
        }
    }
    return false;
}

static bool is_chinese(const char *word)
{
    struct bi_tokens t;
    bi_tokens_cut(&t, word);
    bool chinese = t.chinese;
    bi_tokens_clear(&t);
    return chinese;
}

/* A run of Chinese holds words of any concept that occurs in it: 客户性别 is about sex. */
static void add_chinese(struct bi_column *c, const struct bi_lexicon *x, const char *run)
{
    unit_add(c, x, run);
    struct bi_unit *u = &c->units[c->unit_n - 1];
    for (size_t i = 0; i < bi_lexicon_phrases(x); i++) {
        const struct bi_phrase *p = bi_lexicon_phrase(x, i);
        if (p->type == BI_PHRASE_CONCEPT && p->language == BI_ZH && p->tokens.n >= 2 && strstr(run, p->compact))
            concept_add(u->concepts, countof(u->concepts), p->id);
    }
}

static void read_name(struct bi_column *c, const struct bi_lexicon *x)
{
    c->compact = bi_compact(c->name);
    c->concepts[0] = -1;
    concepts_of(x, c->name, c->concepts, countof(c->concepts));
    size_t bare = strcspn(c->name, "([");
    if (bare && c->name[bare]) { /* "Max Temp (C)": the unit is no part of the name */
        autofree char *name = xstrndup(c->name, bare);
        concepts_of(x, name, c->concepts, countof(c->concepts));
    }
    autofree char *words = bi_name_words(c->name);
    char *save = NULL;
    for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        if (is_chinese(w))
            add_chinese(c, x, w);
        else if (known_word(x, w) || !add_halves(c, x, w))
            unit_add(c, x, w);
    }
}

/* ---- values ---- */

static char *number_text(double n)
{
    return fabs(n) < 1e15 && n == floor(n) ? xasprintf("%.0f", n) : xasprintf("%.12g", n);
}

static void value_add(struct bi_column *c, const struct json *v)
{
    enum json_type type = json_type(v);
    if (type != JSON_STRING && type != JSON_NUMBER && type != JSON_BOOL)
        return;
    size_t cap = c->value_n;
    c->values = xgrow(c->values, &cap, c->value_n + 1, sizeof(*c->values));
    struct bi_value *to = &c->values[c->value_n++];
    bool yes = false;
    if (type == JSON_BOOL) {
        struct str text = STR_INIT(16);
        json_print(&text, v);
        yes = strcmp(str_peek(&text), "true") == 0;
        str_clear(&text);
    }
    *to = (struct bi_value){ .is_number = type == JSON_NUMBER, .is_bool = type == JSON_BOOL, .number = json_number(v) };
    to->text = type == JSON_STRING   ? xstrdup(json_text(v))
               : type == JSON_NUMBER ? number_text(json_number(v))
                                     : xstrdup(yes ? "True" : "False");
    to->number = type == JSON_BOOL ? (double)yes : to->number;
    to->compact = bi_compact(to->text);
    to->named = -1;
    c->odd_text = c->odd_text || strpbrk(to->text, "\n\r|") != NULL;
}

void bi_column_learn(struct bi_column *c, const char *text)
{
    autojson struct json *v = json_new_string(text);
    value_add(c, v);
}

/* The class whose members most of the values are: weekday for Sun, Sat, Thur, Fri. -1: none. */
static int class_of(const struct bi_column *c, const struct bi_lexicon *x)
{
    if (!c->value_n || c->type != BI_TYPE_TEXT)
        return -1;
    for (size_t i = 0; i < bi_lexicon_phrases(x); i++) {
        const struct bi_phrase *p = bi_lexicon_phrase(x, i);
        if (p->type != BI_PHRASE_VALUE || strcmp(p->compact, c->values[0].compact) != 0)
            continue;
        size_t hits = 0;
        for (size_t k = 0; k < c->value_n; k++)
            hits += (size_t)(bi_lexicon_value_of(x, c->values[k].text, p->concepts[0], NULL) >= 0);
        if (2 * hits > c->value_n)
            return p->concepts[0];
    }
    return -1;
}

/* Gives each value its name in the lexicon, where its class is that of the column. */
static void name_values(struct bi_column *c, const struct bi_lexicon *x)
{
    int class = class_of(c, x);
    if (class >= 0)
        concept_add(c->concepts, countof(c->concepts), class);
    for (size_t i = 0; i < c->value_n; i++) {
        struct bi_value *v = &c->values[i];
        size_t letters = 0;
        if (class >= 0)
            v->named = bi_lexicon_value_of(x, v->text, class, NULL);
        for (size_t k = 0; v->named < 0 && c->concepts[k] >= 0; k++)
            v->named = bi_lexicon_value_of(x, v->text, c->concepts[k], NULL);
        if (v->named >= 0 || c->type != BI_TYPE_TEXT)
            continue;
        int any = bi_lexicon_value_of(x, v->text, -1, &letters);
        v->named = letters > 3 || is_chinese(v->text) ? any : -1;
    }
}

static bool says_yes(const struct bi_value *v)
{
    static const char *const words[] = { "yes", "y", "true", "t", "1", "是", "on", "ja", "oui", "si" };
    for (size_t i = 0; i < countof(words); i++)
        if (strcmp(v->compact, words[i]) == 0)
            return true;
    return false;
}

static void find_yes(struct bi_column *c)
{
    for (size_t i = 0; i < c->value_n && c->role == BI_ROLE_FLAG; i++)
        if (says_yes(&c->values[i]))
            c->yes = c->values[i];
}

/* ---- columns ---- */

static enum bi_type type_of(const char *dtype)
{
    static const struct {
        const char *name;
        enum bi_type type;
    } all[] = { { "int", BI_TYPE_NUMBER },
                { "float", BI_TYPE_NUMBER },
                { "bool", BI_TYPE_BOOL },
                { "date", BI_TYPE_DATE },
                { "datetime", BI_TYPE_DATE } };
    for (size_t i = 0; i < countof(all); i++)
        if (strcmp(dtype, all[i].name) == 0)
            return all[i].type;
    return BI_TYPE_TEXT;
}

static enum bi_role role_of(const char *role)
{
    static const char *const names[] = { "", "id", "measure", "group", "date", "year", "text", "flag" };
    for (size_t i = 1; i < countof(names); i++)
        if (strcmp(role, names[i]) == 0)
            return (enum bi_role)i;
    return BI_ROLE_NONE;
}

static double bound(const struct json *v)
{
    const char *text = json_text(v);
    if (text && strspn(text, "0123456789") >= 4) {
        char year[5] = { text[0], text[1], text[2], text[3] };
        return strtod(year, NULL);
    }
    return json_type(v) == JSON_NUMBER ? json_number(v) : (double)NAN;
}

static void column_read(struct bi_column *c, const struct bi_lexicon *x, const struct json *v, size_t table)
{
    const char *dtype = json_str_or(v, "dtype", "text");
    *c = (struct bi_column){
        .name = xstrdup(json_str_or(v, "name", "")),
        .table = table,
        .type = type_of(dtype),
        .role = role_of(json_str_or(v, "role", "")),
        .whole = strcmp(dtype, "int") == 0,
        .nulls = json_int_or(v, "nulls", 0),
        .distinct = json_int_or(v, "distinct", 0),
        .min = bound(json_get(v, "min")),
        .max = bound(json_get(v, "max")),
        .first = xstrdup_or_null(json_text(json_get(v, "min"))),
        .last = xstrdup_or_null(json_text(json_get(v, "max"))),
        .convert = xstrdup_or_null(json_text(json_get(v, "convert"))),
    };
    c->odd_name = strpbrk(c->name, "\n\r\t|") || strstr(c->name, "\u2028") || strstr(c->name, "\u2029");
    read_name(c, x);
    const struct json *examples = json_get(v, "examples");
    for (const struct json *i = json_first(examples); i; i = json_next(i))
        value_add(c, i);
    c->all_values = c->value_n && (int64_t)c->value_n >= c->distinct;
    name_values(c, x);
    find_yes(c);
    for (const struct json *i = json_first(json_get(v, "alias")); i; i = json_next(i))
        if (json_text(i))
            concepts_of(x, json_text(i), c->concepts, countof(c->concepts));
}

bool bi_column_is(const struct bi_column *c, int topic)
{
    for (size_t i = 0; c->concepts[i] >= 0; i++)
        if (c->concepts[i] == topic)
            return true;
    return false;
}

bool bi_column_flag(const struct bi_column *c)
{
    return c->role == BI_ROLE_FLAG && c->yes.text;
}

bool bi_column_numeric(const struct bi_column *c)
{
    return c->type == BI_TYPE_NUMBER && c->role != BI_ROLE_ID && c->role != BI_ROLE_YEAR;
}

bool bi_column_grouping(const struct bi_column *c)
{
    if (c->type == BI_TYPE_DATE || c->role == BI_ROLE_ID)
        return false;
    if (c->type == BI_TYPE_NUMBER)
        return c->role == BI_ROLE_GROUP || c->role == BI_ROLE_FLAG || c->role == BI_ROLE_YEAR || c->distinct <= 12;
    return true;
}

const struct bi_column *bi_table_named(const struct bi_table *t, const char *name)
{
    for (size_t i = 0; i < t->column_n; i++)
        if (strcmp(t->columns[i].name, name) == 0)
            return &t->columns[i];
    return NULL;
}

bool bi_column_about(const struct bi_column *c, int topic)
{
    if (bi_column_is(c, topic))
        return true;
    for (size_t u = 0; u < c->unit_n; u++)
        for (size_t k = 0; c->units[u].concepts[k] >= 0; k++)
            if (c->units[u].concepts[k] == topic)
                return true;
    return false;
}

const struct bi_column *bi_table_find(const struct bi_table *t, int topic)
{
    if (topic < 0)
        return NULL;
    for (size_t i = 0; i < t->column_n; i++)
        if (bi_column_is(&t->columns[i], topic))
            return &t->columns[i];
    for (size_t i = 0; i < t->column_n; i++)
        if (bi_column_about(&t->columns[i], topic))
            return &t->columns[i];
    return NULL;
}

/* ---- tables ---- */

static void column_clear(struct bi_column *c)
{
    for (size_t i = 0; i < c->value_n; i++) {
        free(c->values[i].text);
        free(c->values[i].compact);
    }
    for (size_t i = 0; i < c->unit_n; i++)
        free(c->units[i].text);
    free(c->values);
    free(c->units);
    free(c->name);
    free(c->first);
    free(c->last);
    free(c->convert);
    free(c->compact);
}

static void table_clear(struct bi_table *t)
{
    for (size_t i = 0; i < t->column_n; i++)
        column_clear(&t->columns[i]);
    for (size_t i = 0; i < t->time_n; i++)
        free(t->time_columns[i]);
    free(t->columns);
    free(t->path);
    free(t->name);
    free(t->stem);
    free(t->load);
    free(t->folder);
    free(t->sheet);
    free(t->time_expr);
    free(t->time_freq);
    free(t->left_key);
    free(t->right_key);
}

static void other_clear(struct bi_other *o)
{
    free(o->name);
    free(o->why);
}

void bi_tables_clear(struct bi_tables *t)
{
    for (size_t i = 0; i < t->n; i++)
        table_clear(&t->at[i]);
    for (size_t i = 0; i < t->other_n; i++)
        other_clear(&t->others[i]);
    free(t->at);
    free(t->others);
    *t = (struct bi_tables){ 0 };
}

static void read_time(struct bi_table *t, const struct json *time)
{
    if (json_type(time) != JSON_OBJECT)
        return;
    t->time_expr = xstrdup_or_null(json_text(json_get(time, "expr")));
    t->time_freq = xstrdup(json_str_or(time, "freq", "day"));
    for (const struct json *i = json_first(json_get(time, "columns")); i && t->time_n < countof(t->time_columns);
         i = json_next(i))
        if (json_text(i))
            t->time_columns[t->time_n++] = xstrdup(json_text(i));
}

static bool warned(const struct json *file, const char *code)
{
    for (const struct json *i = json_first(json_get(file, "warnings")); i; i = json_next(i))
        if (strcmp(json_str_or(i, "code", ""), code) == 0)
            return true;
    return false;
}

static char *stem_of(const char *name)
{
    const char *slash = strrchr(name, '/'), *start = slash ? slash + 1 : name, *dot = strrchr(start, '.');
    autofree char *bare = dot && dot > start ? xstrndup(start, (size_t)(dot - start)) : xstrdup(start);
    return bi_compact(bare);
}

static char *folder_of(const char *path)
{
    const char *slash = path ? strchr(path, '/') : NULL;
    return slash ? xstrndup(path, (size_t)(slash - path)) : NULL;
}

/* Which of several sheets is read: the others must not be taken for counted. */
static void read_sheets(struct bi_table *t, const struct json *sheets)
{
    for (const struct json *s = json_first(sheets); s; s = json_next(s)) {
        const char *load = json_str_or(s, "load", NULL);
        t->sheet_n += load && json_int_or(s, "rows", 0) > 0;
        if (load && t->load && !t->sheet && !strcmp(load, t->load))
            t->sheet = xstrdup(json_str_or(s, "name", "?"));
    }
    if (t->sheet_n < 2) {
        free(t->sheet);
        t->sheet = NULL;
    }
}

static void table_read(struct bi_tables *all, const struct bi_lexicon *x, const struct json *file)
{
    const struct json *pieces = json_get(json_get(file, "collection"), "members");
    all->at = xgrow(all->at, &all->cap, all->n + 1, sizeof(*all->at));
    struct bi_table *t = &all->at[all->n];
    *t = (struct bi_table){
        .path = xstrdup(json_str_or(file, "path", "")),
        .name = xstrdup(json_str_or(file, "name", json_str_or(file, "path", ""))),
        .load = xstrdup_or_null(json_text(json_get(file, "load"))),
        .rows = json_int_or(file, "rows", -1),
        .headless = warned(file, "no_header"),
        .piece_n = json_len(pieces),
        .folder = folder_of(json_text(json_first(pieces))),
        .left = -1,
        .right = -1,
    };
    t->stem = stem_of(t->name);
    read_sheets(t, json_get(file, "sheets"));
    read_time(t, json_get(file, "time"));
    const struct json *columns = json_get(file, "columns");
    t->columns = xcalloc(json_len(columns) + 1, sizeof(*t->columns));
    for (const struct json *i = json_first(columns); i; i = json_next(i))
        column_read(&t->columns[t->column_n++], x, i, all->n);
    all->n++;
}

static bool superseded(const struct json *file)
{
    const char *path = json_str_or(file, "path", "");
    for (const struct json *i = json_next(file); i; i = json_next(i))
        if (strcmp(json_str_or(i, "path", ""), path) == 0)
            return true;
    return false;
}

/* What the profile gives as the reason, borrowed; or NULL. */
static const char *why_no_table(const struct json *file)
{
    static const char *const codes[] = { "unreadable", "not_a_table", "empty", "pickle_refused", "header_only" };
    for (const struct json *w = json_first(json_get(file, "warnings")); w; w = json_next(w))
        for (size_t i = 0; i < countof(codes); i++)
            if (strcmp(json_str_or(w, "code", ""), codes[i]) == 0)
                return json_str_or(w, "text", NULL);
    return NULL;
}

static void other_add(struct bi_tables *all, const struct json *file)
{
    const char *why = why_no_table(file);
    all->others = xgrow(all->others, &all->other_cap, all->other_n + 1, sizeof(*all->others));
    all->others[all->other_n++] =
        (struct bi_other){ .name = xstrdup(json_str_or(file, "name", json_str_or(file, "path", "?"))),
                           .why = xstrdup_or_null(why),
                           .unread = !json_str_or(file, "kind", NULL) };
}

/* True when the file is a piece of an archive that is read as one table. */
static bool in_collection(const struct json *files, const struct json *file)
{
    const char *path = json_str_or(file, "path", "");
    for (const struct json *i = json_first(files); i; i = json_next(i)) {
        const struct json *members = json_get(json_get(i, "collection"), "members");
        for (const struct json *m = i == file ? NULL : json_first(members); m; m = json_next(m))
            if (json_text(m) && strcmp(json_text(m), path) == 0)
                return true;
    }
    return false;
}

void bi_tables_read(struct bi_tables *out, const struct bi_lexicon *x, const struct json *files)
{
    *out = (struct bi_tables){ 0 };
    for (const struct json *i = json_first(files); i; i = json_next(i)) {
        bool archive = strcmp(json_str_or(i, "kind", ""), "archive") == 0;
        if (superseded(i) || in_collection(files, i))
            continue;
        out->file_n += archive ? json_len(json_get(i, "members")) : 1;
        if (json_text(json_get(i, "load")) && json_len(json_get(i, "columns")))
            table_read(out, x, i);
        else if (!archive || !json_len(json_get(i, "members")))
            other_add(out, i);
    }
}
