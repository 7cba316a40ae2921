/* tool_set.c - the tools that this service offers: ours, databases, an operator's services. */
#include <string.h>
#include "call_args.h"
#include "conf.h"
#include "json.h"
#include "core/prompt/tokens.h"
#include "tool_private.h"

enum { SCHEMA_MAX = 1 << 20 };

struct entry {
    struct tool tool; /* TOOL_HTTP: its name is the section's */
    struct tool_target target;
};

struct tool_set {
    struct json *schema;
    int64_t tokens;
    struct entry *entries; /* one a section */
    size_t entry_n;
    size_t database_n; /* the first of them */
};

static const struct tool database_tools[] = {
    { "query_database", TOOL_DATABASE, NULL },
    { "describe_database", TOOL_DATABASE, NULL },
};

static const struct tool *database_tool(const char *name)
{
    for (size_t i = 0; name && i < countof(database_tools); i++)
        if (strcmp(database_tools[i].name, name) == 0)
            return &database_tools[i];
    return NULL;
}

/* ---- opening ---- */

static const struct tool_ops *ops_named(const struct tool_ops *const *ops, const char *name)
{
    for (; ops && *ops; ops++)
        if (strcmp((*ops)->name, name) == 0)
            return *ops;
    return NULL;
}

static int add_service(struct tool_set *s, struct loop *l, const struct conf *c, const struct tool_ops *ops,
                       const char *section, struct err *e)
{
    struct entry *entry = &s->entries[s->entry_n];
    if (!ops)
        return err_set(e, ERR_CONFIG, "[%.64s]: this program has no such services", section);
    if (ops->open(&entry->target.service, l, c, section, e) < 0)
        return -1;
    *entry = (struct entry){ { section, TOOL_HTTP, NULL }, { ops, entry->target.service } };
    s->entry_n++;
    return 0;
}

/* The program's own words cannot be taken: run_python and what models call it, too. */
static int check_name(const char *name, struct err *e)
{
    char *code = NULL;
    const enum call_kind kind = call_args_read(name, "{\"code\":\"1\",\"command\":\"1\"}", &code);
    free(code);
    if (kind == CALL_UNKNOWN && !tool_harmless(name) && !database_tool(name))
        return 0;
    return err_set(e, ERR_CONFIG, "[tool %.64s]: that name is taken; give it another", name);
}

static int open_all(struct tool_set *s, struct loop *l, const struct conf *c, const struct tool_ops *const *ops,
                    struct err *e)
{
    s->entries = xcalloc(c->tool_n + c->database_n + 1, sizeof(*s->entries));
    for (size_t i = 0; i < c->database_n; i++)
        if (add_service(s, l, c, ops_named(ops, "database"), c->databases[i].section, e) < 0)
            return -1;
    s->database_n = s->entry_n;
    for (size_t i = 0; i < c->tool_n; i++)
        if (check_name(c->tools[i].section, e) < 0 ||
            add_service(s, l, c, ops_named(ops, "tool"), c->tools[i].section, e) < 0)
            return -1;
    return 0;
}

/* ---- what models are told ---- */

static char *database_words(const struct conf *c, const char *before)
{
    AUTO(str_clear) struct str text = STR_INIT(SCHEMA_MAX);
    str_printf(&text, "%s Databases: ", before);
    for (size_t i = 0; i < c->database_n; i++) {
        const struct conf_database *d = &c->databases[i];
        str_printf(&text, "%s`%s` (%s%s%s)", i ? "; " : "", d->section, d->kind, *d->description ? ": " : "",
                   d->description);
    }
    return str_take(&text);
}

/* {"type":"string","enum":[names]} */
static struct json *database_choice(const struct conf *c)
{
    struct json *choice = json_new_object(), *names = json_new_array();
    for (size_t i = 0; i < c->database_n; i++)
        json_push(names, json_new_string(c->databases[i].section));
    json_set_str(choice, "type", "string");
    json_set(choice, "enum", names);
    return choice;
}

/* Ours as it stands in tools.json, with the databases there are. */
static struct json *with_databases(const struct json *ours, const struct conf *c)
{
    struct json *out = json_dup(ours), *parameters = json_dup(json_get(ours, "parameters"));
    struct json *properties = json_dup(json_get(parameters, "properties"));
    struct json *required = json_new_array();
    autofree char *words = database_words(c, json_str_or(ours, "description", ""));
    for (const struct json *r = json_first(json_get(parameters, "required")); r; r = json_next(r))
        if (json_text(r) && (c->database_n > 1 || strcmp(json_text(r), "database") != 0))
            json_push(required, json_new_string(json_text(r)));
    json_set(properties, "database", database_choice(c));
    json_set(parameters, "properties", properties);
    json_set(parameters, "required", required);
    json_set_str(out, "description", words);
    json_set(out, "parameters", parameters);
    return out;
}

static void describe_all(struct tool_set *s, const struct conf *c, const struct json *ours)
{
    AUTO(str_clear) struct str text = STR_INIT(SCHEMA_MAX);
    s->schema = json_new_array();
    for (const struct json *t = json_first(ours); t; t = json_next(t)) {
        const bool database = database_tool(json_str_or(t, "name", "")) != NULL;
        if (!database)
            json_push(s->schema, json_dup(t));
        else if (c->database_n)
            json_push(s->schema, with_databases(t, c));
    }
    for (size_t i = s->database_n; i < s->entry_n; i++)
        json_push(s->schema, json_dup(s->entries[i].target.ops->describe(s->entries[i].target.service)));
    json_print(&text, s->schema);
    s->tokens = tokens_of_text(str_peek(&text));
}

int tool_set_new(struct tool_set **out, struct loop *l, const struct conf *c, const struct json *ours,
                 const struct tool_ops *const *ops, struct err *e)
{
    struct tool_set *s = xcalloc(1, sizeof(*s));
    if (open_all(s, l, c, ops, e) < 0) {
        tool_set_free(s);
        return -1;
    }
    describe_all(s, c, ours);
    *out = s;
    return 0;
}

void tool_set_free(struct tool_set *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->entry_n; i++)
        s->entries[i].target.ops->close(s->entries[i].target.service);
    free(s->entries);
    json_free(s->schema);
    free(s);
}

const struct json *tool_set_schema(const struct tool_set *s)
{
    return s->schema;
}

int64_t tool_set_tokens(const struct tool_set *s)
{
    return s->tokens;
}

char *tool_set_lines(const struct tool_set *s)
{
    AUTO(str_clear) struct str text = STR_INIT(SCHEMA_MAX);
    if (!s || !s->entry_n)
        return NULL;
    for (const struct json *t = json_first(s->schema); t; t = json_next(t)) {
        AUTO(str_clear) struct str args = STR_INIT(SCHEMA_MAX);
        if (strcmp(json_str_or(t, "name", ""), CALL_TOOL) == 0)
            continue;
        json_print(&args, json_get(json_get(t, "parameters"), "properties"));
        str_printf(&text, "%s- `%s`: %s Arguments: %s", text.len ? "\n" : "", json_str_or(t, "name", ""),
                   json_str_or(t, "description", ""), json_get(t, "parameters") ? str_peek(&args) : "{}");
    }
    return str_take(&text);
}

/* ---- asked for ---- */

const struct tool *tool_find(const struct tool_set *set, const char *name)
{
    const struct tool *harmless = tool_harmless(name);
    if (harmless || !set || !name)
        return harmless;
    for (size_t i = set->database_n; i < set->entry_n; i++)
        if (strcmp(set->entries[i].tool.name, name) == 0)
            return &set->entries[i].tool;
    return set->database_n ? database_tool(name) : NULL;
}

char *tool_names(const struct tool_set *set)
{
    AUTO(str_clear) struct str names = STR_INIT(SCHEMA_MAX);
    for (const struct json *t = set ? json_first(set->schema) : NULL; t; t = json_next(t)) {
        const char *name = json_str_or(t, "name", "");
        if (strcmp(name, CALL_TOOL) != 0)
            str_printf(&names, "%s`%s`", names.len ? ", " : "", name);
    }
    return names.len ? str_take(&names) : xstrdup("`read_more`, `list_files`, `current_time`");
}

static const struct json *parameters_of(const struct tool_set *set, const char *name)
{
    for (const struct json *t = json_first(set->schema); t; t = json_next(t))
        if (strcmp(json_str_or(t, "name", ""), name) == 0)
            return json_get(t, "parameters");
    return NULL;
}

static int find_database(struct tool_target *out, const struct tool_set *set, const struct json *args, struct err *e)
{
    const char *name = json_str_or(args, "database", "");
    for (size_t i = 0; i < set->database_n; i++) {
        if (strcmp(set->entries[i].tool.name, name) != 0 && (set->database_n > 1 || *name))
            continue;
        *out = set->entries[i].target;
        return 0;
    }
    return err_set(e, ERR_DATA, "there is no database `%.64s`", name);
}

int tool_set_target(struct tool_target *out, const struct tool_set *set, const struct tool *t, const struct json *args,
                    struct err *e)
{
    if (tool_schema_check(parameters_of(set, t->name), args, e) < 0)
        return -1;
    if (t->rule == TOOL_DATABASE)
        return find_database(out, set, args, e);
    for (size_t i = set->database_n; i < set->entry_n; i++)
        if (&set->entries[i].tool == t)
            *out = set->entries[i].target;
    return 0;
}
