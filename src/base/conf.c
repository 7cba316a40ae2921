/* conf.c - text to settings and back. The tables of conf.h become rows here; nothing else knows the names. */
#include "conf.h"
#include "conf_types.h"
#include "str.h"

enum {
    FILE_MAX = 256 << 10,
    NAME_MAX_CHARS = 64 /* of [model NAME] and its like */
};

static const char builtin[] = "builtin";

/* ---- rows ---- */

struct row {
    const char *section, *key, *def, *help;
    size_t at;
    conf_set_fn *set;
    conf_show_fn *show;
    bool owned; /* a char * */
};

#define OWNED_STR    true
#define OWNED_SECRET true
#define OWNED_INT    false
#define OWNED_BOOL   false
#define OWNED_MS     false
#define OWNED_SIZE   false
#define OWNED_MONEY  false
#define ROW(in, sec, key, type, field, def, help) \
    { sec, key, def, help, offsetof(struct in, field), conf_set_##type, conf_show_##type, OWNED_##type },

static const struct row conf_rows[] = {
#define X(...) ROW(conf, __VA_ARGS__)
    CONF_TABLE(X)
#undef X
};
static const struct row model_rows[] = {
#define X(...) ROW(conf_model, __VA_ARGS__)
    CONF_MODEL_TABLE(X)
#undef X
};
static const struct row tool_rows[] = {
#define X(...) ROW(conf_tool, __VA_ARGS__)
    CONF_TOOL_TABLE(X)
#undef X
};
static const struct row database_rows[] = {
#define X(...) ROW(conf_database, __VA_ARGS__)
    CONF_DATABASE_TABLE(X)
#undef X
};

/* A kind of section that has a name: [model NAME]. Its structs begin with that name. */
struct family {
    const char *word;
    const struct row *rows;
    size_t row_n, size;   /* of a struct */
    size_t items, item_n; /* where struct conf keeps them */
};
#define FAMILY(word, rows, list, n)                                                                                   \
    {                                                                                                                 \
#word, rows, countof(rows), sizeof(struct conf_##word), offsetof(struct conf, list), offsetof(struct conf, n) \
    }
enum family_at { MODEL, TOOL, DATABASE };
static const struct family families[] = {
    [MODEL] = FAMILY(model, model_rows, models, model_n),
    [TOOL] = FAMILY(tool, tool_rows, tools, tool_n),
    [DATABASE] = FAMILY(database, database_rows, databases, database_n),
};
enum { ROWS_MAX = countof(conf_rows) };
_Static_assert(countof(model_rows) <= ROWS_MAX && countof(tool_rows) <= ROWS_MAX && countof(database_rows) <= ROWS_MAX,
               "the largest table is the main one");

static char *items_of(const struct conf *c, const struct family *f)
{
    char *items;
    memcpy(&items, (const char *)c + f->items, sizeof(items));
    return items;
}

static size_t *count_of(struct conf *c, const struct family *f)
{
    return (size_t *)(void *)((char *)c + f->item_n);
}

static size_t item_n(const struct conf *c, const struct family *f)
{
    return *(const size_t *)(const void *)((const char *)c + f->item_n);
}

static const char *name_of(const void *item)
{
    const char *name;
    memcpy(&name, item, sizeof(name));
    return name;
}

static const struct family *family_named(const char *word, size_t n)
{
    for (size_t i = 0; i < countof(families); i++)
        if (strlen(families[i].word) == n && strncmp(families[i].word, word, n) == 0)
            return &families[i];
    return NULL;
}

/* Where a key may be set: one of the tables and the struct it describes. */
struct place {
    const struct row *rows;
    size_t row_n;
    void *base;
};

static struct place main_place(struct conf *c)
{
    return (struct place){ conf_rows, countof(conf_rows), c };
}

static struct place item_place(const struct conf *c, const struct family *f, size_t i)
{
    return (struct place){ f->rows, f->row_n, items_of(c, f) + i * f->size };
}

static void *field_of(const struct place *p, const struct row *r)
{
    return (char *)p->base + r->at;
}

static void set_defaults(struct place p)
{
    struct err e;
    for (size_t i = 0; i < p.row_n; i++)
        if (p.rows[i].set(field_of(&p, &p.rows[i]), p.rows[i].def, &e) < 0)
            abort(); /* the table is wrong; test_conf finds that first */
}

static void free_fields(struct place p)
{
    for (size_t i = 0; i < p.row_n; i++)
        if (p.rows[i].owned)
            free(*(char **)field_of(&p, &p.rows[i]));
}

/* Returns its index. */
static size_t add_item(struct conf *c, const struct family *f, const char *name)
{
    size_t *n = count_of(c, f);
    char *items = reallocarray(items_of(c, f), *n + 1, f->size), *section = xstrdup(name);
    if (!items)
        abort();
    memset(items + *n * f->size, 0, f->size);
    memcpy(items + *n * f->size, &section, sizeof(section));
    memcpy((char *)c + f->items, &items, sizeof(items));
    set_defaults(item_place(c, f, *n));
    *n += 1;
    /* cppcheck-suppress memleak ; c->items has it now */
    return *n - 1;
}

void conf_init(struct conf *c)
{
    *c = (struct conf){ 0 };
    set_defaults(main_place(c));
    (void)add_item(c, &families[MODEL], builtin);
    free(c->models->dialect);
    c->models->dialect = xstrdup(builtin);
}

static void free_items(struct conf *c, const struct family *f)
{
    for (size_t i = 0; i < item_n(c, f); i++) {
        const struct place p = item_place(c, f, i);
        char *section;
        free_fields(p);
        memcpy(&section, p.base, sizeof(section));
        free(section);
    }
    free(items_of(c, f));
}

void conf_clear(struct conf *c)
{
    for (size_t i = 0; i < countof(families); i++)
        free_items(c, &families[i]);
    free_fields(main_place(c));
    *c = (struct conf){ 0 };
}

/* The count when there is none of that name. */
static size_t item_index(const struct conf *c, const struct family *f, const char *name)
{
    size_t i = 0;
    while (i < item_n(c, f) && strcmp(name_of(items_of(c, f) + i * f->size), name) != 0)
        i++;
    return i;
}

static const void *find_item(const struct conf *c, enum family_at at, const char *name)
{
    const struct family *f = &families[at];
    const size_t i = item_index(c, f, name);
    return i < item_n(c, f) ? items_of(c, f) + i * f->size : NULL;
}

bool conf_fallback(const struct conf *c, size_t i, char name[CONF_NAME_SIZE])
{
    static const char between[] = ", \t";
    for (const char *at = c->fallback + strspn(c->fallback, between); *at; at += strspn(at, between)) {
        const size_t n = strcspn(at, between), kept = n < CONF_NAME_SIZE ? n : CONF_NAME_SIZE - 1;
        if (i-- == 0) {
            memcpy(name, at, kept);
            name[kept] = '\0';
            return true;
        }
        at += n;
    }
    return false;
}

const struct conf_model *conf_find_model(const struct conf *c, const char *name)
{
    return find_item(c, MODEL, name);
}

const struct conf_tool *conf_find_tool(const struct conf *c, const char *name)
{
    return find_item(c, TOOL, name);
}

const struct conf_database *conf_find_database(const struct conf *c, const char *name)
{
    return find_item(c, DATABASE, name);
}

/* ---- finding a row ---- */

static int unknown_key(const struct place *p, const char *section, const char *key, struct err *e)
{
    const char *names[ROWS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < p->row_n; i++)
        if (strcmp(p->rows[i].section, section) == 0)
            names[n++] = p->rows[i].key;
    const char *nearest = str_nearest(key, names, n);
    if (nearest)
        return err_set(e, ERR_CONFIG, "unknown setting \"%.64s\" in [%s]; did you mean \"%s\"?", key, section, nearest);
    for (size_t i = 0; i < countof(conf_rows); i++)
        if (strcmp(conf_rows[i].key, key) == 0)
            return err_set(e, ERR_CONFIG, "\"%s\" belongs into [%s], not [%s]", key, conf_rows[i].section, section);
    return err_set(e, ERR_CONFIG, "unknown setting \"%.64s\" in [%s]", key, section);
}

static int find_row(const struct row **out, const struct place *p, const char *section, const char *key, struct err *e)
{
    for (size_t i = 0; i < p->row_n; i++) {
        *out = &p->rows[i];
        if (strcmp((*out)->section, section) == 0 && strcmp((*out)->key, key) == 0)
            return 0;
    }
    return unknown_key(p, section, key, e);
}

static int check_section(const char *section, struct err *e)
{
    const char *names[ROWS_MAX + countof(families)];
    size_t n = 0;
    for (size_t i = 0; i < countof(conf_rows); i++) {
        if (strcmp(conf_rows[i].section, section) == 0)
            return 0;
        names[n++] = conf_rows[i].section;
    }
    if (family_named(section, strlen(section)))
        return err_set(e, ERR_CONFIG, "a %s needs a name: [%s NAME]", section, section);
    for (size_t i = 0; i < countof(families); i++)
        names[n++] = families[i].word;
    autofree char *word = xstrndup(section, strcspn(section, " \t"));
    const char *nearest = str_nearest(word, names, n);
    if (nearest)
        return err_set(e, ERR_CONFIG, "unknown section [%.64s]; did you mean [%s%s]?", section, nearest,
                       family_named(nearest, strlen(nearest)) ? " NAME" : "");
    return err_set(e, ERR_CONFIG, "unknown section [%.64s]", section);
}

/* The index of the section of that name, which is added when it is new. */
static int open_item(size_t *out, struct conf *c, const struct family *f, const char *name, struct err *e)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    size_t n = strlen(name);
    if (n == 0 || n > NAME_MAX_CHARS || name[strspn(name, allowed)])
        return err_set(e, ERR_CONFIG, "\"%.80s\" is not a %s name: 1 to %d of A-Z a-z 0-9 _ . -", name, f->word,
                       NAME_MAX_CHARS);
    if (f == &families[MODEL] && strcmp(name, builtin) == 0)
        return err_set(e, ERR_CONFIG, "the model \"builtin\" always exists and has no settings; take another name");
    *out = item_index(c, f, name);
    if (*out == item_n(c, f))
        (void)add_item(c, f, name);
    return 0;
}

/* ---- the file ---- */

/* Line in which each setting was given, 0: not yet. */
struct seen {
    size_t line[ROWS_MAX];
};

struct parser {
    struct conf *c;
    char *section;               /* NULL: none yet */
    const struct family *family; /* NULL: a single section; else the index of its NAME */
    size_t item;
    size_t line;
    struct seen main;
    struct seen *seen[countof(families)]; /* like the lists of c */
    size_t seen_cap[countof(families)];
};

static void parser_clear(struct parser *p)
{
    free(p->section);
    for (size_t i = 0; i < countof(families); i++)
        free(p->seen[i]);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static char *trim(char *s)
{
    while (is_blank(*s))
        s++;
    size_t n = strlen(s);
    while (n > 0 && is_blank(s[n - 1]))
        s[--n] = '\0';
    return s;
}

static int open_named(struct parser *p, const char *name, struct err *e)
{
    const size_t i = (size_t)(p->family - families);
    if (open_item(&p->item, p->c, p->family, name, e) < 0)
        return -1;
    p->seen[i] = xgrow(p->seen[i], &p->seen_cap[i], item_n(p->c, p->family), sizeof(*p->seen[i]));
    return 0;
}

/* text begins after the bracket. */
static int enter_section(struct parser *p, char *text, struct err *e)
{
    size_t n = strlen(text);
    if (n == 0 || text[n - 1] != ']')
        return err_set(e, ERR_CONFIG, "a section ends with ]");
    text[n - 1] = '\0';
    text = trim(text);
    const size_t word = strcspn(text, " \t");
    p->family = text[word] ? family_named(text, word) : NULL;
    if (!p->family && check_section(text, e) < 0)
        return -1;
    if (p->family && open_named(p, trim(text + word), e) < 0)
        return -1;
    free(p->section);
    p->section = xstrdup(p->family ? p->family->word : text);
    return 0;
}

static int set_once(struct parser *p, const char *key, const char *value, struct err *e)
{
    const struct place at = p->family ? item_place(p->c, p->family, p->item) : main_place(p->c);
    struct seen *seen = p->family ? &p->seen[p->family - families][p->item] : &p->main;
    const struct row *r = NULL;
    if (find_row(&r, &at, p->section, key, e) < 0)
        return -1;
    size_t *line = &seen->line[r - at.rows];
    if (*line)
        return err_set(e, ERR_CONFIG, "%s was already set in line %zu", key, *line);
    *line = p->line;
    if (r->set(field_of(&at, r), value, e) < 0)
        return err_wrap(e, "%s", key);
    return 0;
}

static int parse_line(struct parser *p, char *line, struct err *e)
{
    line = trim(line);
    if (!*line || *line == '#' || *line == ';')
        return 0;
    if (*line == '[')
        return enter_section(p, line + 1, e);
    char *equals = strchr(line, '=');
    if (!equals)
        return err_set(e, ERR_CONFIG, "expected [section] or key = value");
    if (!p->section)
        return err_set(e, ERR_CONFIG, "a setting before the first [section]");
    *equals = '\0';
    return set_once(p, trim(line), trim(equals + 1), e);
}

static int check_text(const char *line, struct err *e)
{
    if (!utf8_valid(line, strlen(line)))
        return err_set(e, ERR_CONFIG, "not valid UTF-8");
    for (; *line; line++) {
        unsigned char c = (unsigned char)*line;
        bool line_end = c == '\r' && !line[1];
        if ((c < 0x20 || c == 0x7f) && c != '\t' && !line_end)
            return err_set(e, ERR_CONFIG, "control character 0x%02x", c);
    }
    return 0;
}

int conf_parse(struct conf *c, const char *text, struct err *e)
{
    static const char bom[] = "\xef\xbb\xbf";
    AUTO(parser_clear) struct parser p = { .c = c };
    autofree char *copy = xstrdup(strncmp(text, bom, 3) == 0 ? text + 3 : text);
    for (char *line = copy, *next; line; line = next) {
        p.line++;
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (check_text(line, e) < 0 || parse_line(&p, line, e) < 0)
            return err_wrap(e, "line %zu", p.line);
    }
    return 0;
}

int conf_load(struct conf *c, const char *path, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(FILE_MAX);
    if (str_read_file(&text, path, e) < 0) {
        e->kind = ERR_CONFIG;
        return -1;
    }
    if (strlen(str_peek(&text)) != text.len)
        return err_set(e, ERR_CONFIG, "%s: holds a NUL byte", path);
    if (conf_parse(c, str_peek(&text), e) < 0)
        return err_wrap(e, "%s", path);
    return 0;
}

/* ---- the command line ---- */

/* Cuts NAME.key and adds the section when it is new. NAME may hold dots, keys do not: the last one divides. */
static int split_name(struct place *at, char **key, struct conf *c, const struct family *f, struct err *e)
{
    char *name = *key, *dot = strrchr(name, '.');
    size_t i = 0;
    if (!dot)
        return err_set(e, ERR_CONFIG, "expected %s.NAME.key=value", f->word);
    *dot = '\0';
    *key = dot + 1;
    if (open_item(&i, c, f, name, e) < 0)
        return -1;
    *at = item_place(c, f, i);
    return 0;
}

static int set_path(struct conf *c, char *section, const char *value, struct err *e)
{
    char *key = strchr(section, '.');
    if (!key)
        return err_set(e, ERR_CONFIG, "expected section.key=value");
    *key++ = '\0';
    struct place at = main_place(c);
    const struct family *f = family_named(section, strlen(section));
    const struct row *r = NULL;
    if (f ? split_name(&at, &key, c, f, e) < 0 : check_section(section, e) < 0)
        return -1;
    if (find_row(&r, &at, section, key, e) < 0 || !r)
        return -1;
    return r->set(field_of(&at, r), value, e);
}

int conf_set(struct conf *c, const char *assignment, struct err *e)
{
    autofree char *copy = xstrdup(assignment);
    char *equals = strchr(copy, '=');
    if (!equals)
        return err_set(e, ERR_CONFIG, "\"%.80s\": expected section.key=value", assignment);
    if (strchr(copy, '\n'))
        return err_set(e, ERR_CONFIG, "a setting is one line");
    if (check_text(copy, e) < 0)
        return -1;
    *equals = '\0';
    autofree char *path = xstrdup(trim(copy));
    autofree char *name = xstrdup(path);
    if (set_path(c, path, trim(equals + 1), e) < 0)
        return err_wrap(e, "%.120s", name);
    return 0;
}

/* ---- listing ---- */

static void show(struct conf_row *out, const struct row *r, const char *name, const void *base)
{
    out->section = r->section;
    out->name = name;
    out->key = r->key;
    out->def = r->def;
    out->help = r->help;
    out->value = r->def;
    if (base)
        r->show(out, (const char *)base + r->at);
}

/* Of what follows the single settings the i-th. */
static bool item_row(const struct conf *c, size_t i, struct conf_row *out)
{
    for (const struct family *f = families; f < families + countof(families); f++) {
        const size_t hidden = f == &families[MODEL], n = item_n(c, f) - hidden; /* builtin has no settings */
        if (i < (n ? n : 1) * f->row_n) {
            const char *item = n ? items_of(c, f) + (hidden + i / f->row_n) * f->size : NULL;
            show(out, &f->rows[i % f->row_n], item ? name_of(item) : "NAME", item);
            return true;
        }
        i -= (n ? n : 1) * f->row_n;
    }
    return false;
}

bool conf_row(const struct conf *c, size_t i, struct conf_row *out)
{
    *out = (struct conf_row){ 0 };
    if (i >= countof(conf_rows))
        return item_row(c, i - countof(conf_rows), out);
    show(out, &conf_rows[i], NULL, c);
    return true;
}
