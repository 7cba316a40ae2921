/* conf.c - text to settings and back. The tables of conf.h become rows here; nothing else knows the names. */
#include "conf.h"
#include <inttypes.h>
#include <stdio.h>
#include "conf_secret.h"
#include "conf_suggest.h"
#include "str.h"

enum {
    FILE_MAX = 256 << 10,
    NAME_MAX_CHARS = 64 /* of [model NAME] */
};

static const char builtin[] = "builtin";

/* ---- types ---- */

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit no_units[] = { { "", 1 }, { NULL, 0 } };
/* "90" without a unit is refused: nobody remembers whether it was seconds. */
static const struct unit times[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { NULL, 0 } };
static const struct unit sizes[] = { { "", 1 }, { "K", 1 << 10 }, { "M", 1 << 20 }, { "G", 1 << 30 }, { NULL, 0 } };

static int bad_number(struct err *e, const char *value, const struct unit *units)
{
    const char *wanted = units == times   ? "a time such as 250ms, 90s or 5m"
                         : units == sizes ? "a size such as 64K, 100M or 1G"
                                          : "a whole number";
    return err_set(e, ERR_CONFIG, "\"%.80s\" is not %s", value, wanted);
}

/* Digits and a unit. By hand: strtoll would take signs, blanks and the locale's ideas. */
static int parse_number(int64_t *out, const char *value, const struct unit *units, struct err *e)
{
    int64_t n = 0;
    const char *p = value;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *p - '0', &n))
            return err_set(e, ERR_CONFIG, "\"%.80s\" is too large", value);
    for (const struct unit *u = units; u->name && p > value; u++) {
        if (strcmp(u->name, p) != 0)
            continue;
        if (__builtin_mul_overflow(n, u->factor, out))
            return err_set(e, ERR_CONFIG, "\"%.80s\" is too large", value);
        return 0;
    }
    return bad_number(e, value, units);
}

static int set_INT(void *field, const char *value, struct err *e)
{
    return parse_number(field, value, no_units, e);
}

static int set_MS(void *field, const char *value, struct err *e)
{
    return parse_number(field, value, times, e);
}

static int set_SIZE(void *field, const char *value, struct err *e)
{
    return parse_number(field, value, sizes, e);
}

/* "12", "0.25": at most six places, kept in millionths. */
static int set_MONEY(void *field, const char *value, struct err *e)
{
    const char *point = strchr(value, '.');
    const size_t whole_n = point ? (size_t)(point - value) : strlen(value);
    const size_t places = point ? strlen(point + 1) : 0;
    if (places > 6 || (point && places == 0) || whole_n == 0 || whole_n > 9)
        return err_set(e, ERR_CONFIG, "\"%.80s\" is not an amount such as 2 or 0.25", value);
    char digits[24];
    (void)snprintf(digits, sizeof(digits), "%.*s%s%.*s", (int)whole_n, value, point ? point + 1 : "", (int)(6 - places),
                   "000000");
    if (strspn(digits, "0123456789") != strlen(digits))
        return err_set(e, ERR_CONFIG, "\"%.80s\" is not an amount such as 2 or 0.25", value);
    return parse_number(field, digits, no_units, e);
}

static int set_BOOL(void *field, const char *value, struct err *e)
{
    bool yes = strcmp(value, "yes") == 0;
    if (!yes && strcmp(value, "no") != 0)
        return err_set(e, ERR_CONFIG, "\"%.80s\" is neither yes nor no", value);
    *(bool *)field = yes;
    return 0;
}

static int set_STR(void *field, const char *value, struct err *e)
{
    char **text = field;
    (void)e;
    free(*text);
    *text = xstrdup(value);
    return 0;
}

static int set_SECRET(void *field, const char *value, struct err *e)
{
    autofree char *path = conf_secret_path(value);
    if (*path && conf_secret_check(path, e) < 0)
        return -1;
    return set_STR(field, path, e);
}

typedef void show_fn(struct conf_row *out, const void *field);

static void show_number(struct conf_row *out, int64_t n, const struct unit *u)
{
    (void)snprintf(out->text, sizeof(out->text), "%" PRId64 "%s", n / u->factor, u->name);
    out->value = out->text;
}

static void show_INT(struct conf_row *out, const void *field)
{
    show_number(out, *(const int64_t *)field, no_units);
}

/* Whole seconds stay seconds, as in the table: "300s", not "5m". */
static void show_MS(struct conf_row *out, const void *field)
{
    int64_t n = *(const int64_t *)field;
    show_number(out, n, &times[n % 1000 == 0]);
}

static void show_SIZE(struct conf_row *out, const void *field)
{
    int64_t n = *(const int64_t *)field;
    const struct unit *u = sizes;
    while (n > 0 && u[1].name && n % u[1].factor == 0)
        u++;
    show_number(out, n, u);
}

static void show_MONEY(struct conf_row *out, const void *field)
{
    const int64_t n = *(const int64_t *)field;
    int len = snprintf(out->text, sizeof(out->text), "%" PRId64 ".%06" PRId64, n / 1000000, n % 1000000);
    while (len > 0 && out->text[len - 1] == '0')
        out->text[--len] = '\0';
    if (len > 0 && out->text[len - 1] == '.')
        out->text[--len] = '\0';
    out->value = out->text;
}

static void show_BOOL(struct conf_row *out, const void *field)
{
    out->value = *(const bool *)field ? "yes" : "no";
}

static void show_STR(struct conf_row *out, const void *field)
{
    out->value = *(const char *const *)field;
}

static void show_SECRET(struct conf_row *out, const void *field)
{
    show_STR(out, field);
}

/* ---- rows ---- */

struct row {
    const char *section, *key, *def, *help;
    size_t at;
    int (*set)(void *field, const char *value, struct err *e);
    show_fn *show;
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
    { sec, key, def, help, offsetof(struct in, field), set_##type, show_##type, OWNED_##type },

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

/* Where a key may be set: one of the two tables and the struct it describes. */
struct place {
    const struct row *rows;
    size_t row_n;
    void *base;
};

static struct place main_place(struct conf *c)
{
    return (struct place){ conf_rows, countof(conf_rows), c };
}

static struct place model_place(struct conf_model *m)
{
    return (struct place){ model_rows, countof(model_rows), m };
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

static struct conf_model *add_model(struct conf *c, const char *name)
{
    c->models = reallocarray(c->models, c->model_n + 1, sizeof(*c->models));
    if (!c->models)
        abort();
    struct conf_model *m = &c->models[c->model_n++];
    *m = (struct conf_model){ .section = xstrdup(name) };
    set_defaults(model_place(m));
    return m;
}

void conf_init(struct conf *c)
{
    *c = (struct conf){ 0 };
    set_defaults(main_place(c));
    struct conf_model *m = add_model(c, builtin);
    free(m->dialect);
    m->dialect = xstrdup(builtin);
}

void conf_clear(struct conf *c)
{
    for (size_t i = 0; i < c->model_n; i++) {
        free_fields(model_place(&c->models[i]));
        free(c->models[i].section);
    }
    free(c->models);
    free_fields(main_place(c));
    *c = (struct conf){ 0 };
}

static size_t model_index(const struct conf *c, const char *name)
{
    size_t i = 0;
    while (i < c->model_n && strcmp(c->models[i].section, name) != 0)
        i++;
    return i;
}

const struct conf_model *conf_find_model(const struct conf *c, const char *name)
{
    size_t i = model_index(c, name);
    return i < c->model_n ? &c->models[i] : NULL;
}

/* ---- finding a row ---- */

static int unknown_key(const struct place *p, const char *section, const char *key, struct err *e)
{
    const char *names[countof(conf_rows) + countof(model_rows)];
    size_t n = 0;
    for (size_t i = 0; i < p->row_n; i++)
        if (strcmp(p->rows[i].section, section) == 0)
            names[n++] = p->rows[i].key;
    const char *nearest = conf_nearest(key, names, n);
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
    const char *names[countof(conf_rows) + 1];
    size_t n = 0;
    for (size_t i = 0; i < countof(conf_rows); i++) {
        if (strcmp(conf_rows[i].section, section) == 0)
            return 0;
        names[n++] = conf_rows[i].section;
    }
    if (strcmp(section, "model") == 0)
        return err_set(e, ERR_CONFIG, "a model needs a name: [model NAME]");
    names[n++] = "model";
    autofree char *word = xstrndup(section, strcspn(section, " \t"));
    const char *nearest = conf_nearest(word, names, n);
    if (nearest)
        return err_set(e, ERR_CONFIG, "unknown section [%.64s]; did you mean [%s%s]?", section, nearest,
                       strcmp(nearest, "model") == 0 ? " NAME" : "");
    return err_set(e, ERR_CONFIG, "unknown section [%.64s]", section);
}

/* The index of the model, which is added when it is new. */
static int open_model(size_t *out, struct conf *c, const char *name, struct err *e)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    size_t n = strlen(name);
    if (n == 0 || n > NAME_MAX_CHARS || name[strspn(name, allowed)])
        return err_set(e, ERR_CONFIG, "\"%.80s\" is no model name: 1 to %d of A-Z a-z 0-9 _ . -", name, NAME_MAX_CHARS);
    if (strcmp(name, builtin) == 0)
        return err_set(e, ERR_CONFIG, "the model \"builtin\" always exists and has no settings; take another name");
    *out = model_index(c, name);
    if (*out == c->model_n)
        (void)add_model(c, name);
    return 0;
}

/* ---- the file ---- */

/* Line in which each setting was given, 0: not yet. */
struct seen {
    size_t line[countof(conf_rows) + countof(model_rows)];
};

struct parser {
    struct conf *c;
    char *section; /* NULL: none yet */
    bool in_model; /* then section is "model" and model the index of its NAME */
    size_t model;  /* index into c->models */
    size_t line;
    struct seen main;
    struct seen *models; /* like c->models */
    size_t model_cap;
};

static void parser_clear(struct parser *p)
{
    free(p->section);
    free(p->models);
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

/* text begins after the bracket. */
static int enter_section(struct parser *p, char *text, struct err *e)
{
    size_t n = strlen(text);
    if (n == 0 || text[n - 1] != ']')
        return err_set(e, ERR_CONFIG, "a section ends with ]");
    text[n - 1] = '\0';
    text = trim(text);
    p->in_model = strncmp(text, "model", 5) == 0 && is_blank(text[5]);
    if (p->in_model && open_model(&p->model, p->c, trim(text + 5), e) < 0)
        return -1;
    if (!p->in_model && check_section(text, e) < 0)
        return -1;
    if (p->in_model)
        p->models = xgrow(p->models, &p->model_cap, p->c->model_n, sizeof(*p->models));
    free(p->section);
    p->section = xstrdup(p->in_model ? "model" : text);
    return 0;
}

static int set_once(struct parser *p, const char *key, const char *value, struct err *e)
{
    struct place at = p->in_model ? model_place(&p->c->models[p->model]) : main_place(p->c);
    struct seen *seen = p->in_model ? &p->models[p->model] : &p->main;
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

/* Cuts NAME.key and adds the model when it is new. NAME may hold dots, keys do not: the last one divides. */
static int split_model(struct place *at, char **key, struct conf *c, struct err *e)
{
    char *name = *key, *dot = strrchr(name, '.');
    size_t i = 0;
    if (!dot)
        return err_set(e, ERR_CONFIG, "expected model.NAME.key=value");
    *dot = '\0';
    *key = dot + 1;
    if (open_model(&i, c, name, e) < 0)
        return -1;
    *at = model_place(&c->models[i]);
    return 0;
}

static int set_path(struct conf *c, char *section, const char *value, struct err *e)
{
    char *key = strchr(section, '.');
    if (!key)
        return err_set(e, ERR_CONFIG, "expected section.key=value");
    *key++ = '\0';
    struct place at = main_place(c);
    const struct row *r = NULL;
    if (strcmp(section, "model") == 0 ? split_model(&at, &key, c, e) < 0 : check_section(section, e) < 0)
        return -1;
    if (find_row(&r, &at, section, key, e) < 0)
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

bool conf_row(const struct conf *c, size_t i, struct conf_row *out)
{
    const struct row *r = conf_rows;
    const void *base = c;
    const char *name = NULL;
    *out = (struct conf_row){ 0 };
    if (i >= countof(conf_rows)) {
        size_t at = i - countof(conf_rows), models = c->model_n > 1 ? c->model_n - 1 : 1;
        if (at / countof(model_rows) >= models)
            return false;
        const struct conf_model *m = &c->models[c->model_n > 1 ? 1 + at / countof(model_rows) : 0];
        r = model_rows;
        i = at % countof(model_rows);
        name = m->section;
        base = m;
    }
    out->section = r[i].section;
    out->name = c->model_n > 1 || !name ? name : "NAME";
    out->key = r[i].key;
    out->def = r[i].def;
    out->help = r[i].help;
    r[i].show(out, (const char *)base + r[i].at);
    return true;
}
