/* conf_check.c - what the settings must be as a whole. Ranges and words are tables; the names in messages come from
 * conf.h's tables by the field's offset. */
#include <arpa/inet.h>
#include <strings.h>
#include "conf.h"

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define SEC INT64_C(1000)

/* ---- names ---- */

struct named {
    const char *section, *key;
    size_t at;
};

static const struct named conf_names[] = {
#define X(sec, key, type, field, def, help) { sec, key, offsetof(struct conf, field) },
    CONF_TABLE(X)
#undef X
};
static const struct named model_names[] = {
#define X(sec, key, type, field, def, help) { sec, key, offsetof(struct conf_model, field) },
    CONF_MODEL_TABLE(X)
#undef X
};

static const struct named tool_names[] = {
#define X(sec, key, type, field, def, help) { sec, key, offsetof(struct conf_tool, field) },
    CONF_TOOL_TABLE(X)
#undef X
};
static const struct named database_names[] = {
#define X(sec, key, type, field, def, help) { sec, key, offsetof(struct conf_database, field) },
    CONF_DATABASE_TABLE(X)
#undef X
};

/* What is being checked: one of the structs. */
struct subject {
    const void *base;
    const struct named *names;
    const char *name; /* NAME, or NULL */
};

/* "section.key must be ...", with the section's name where there is one. */
static int refuse(const struct subject *s, size_t at, const char *must, struct err *e)
{
    const struct named *n = s->names;
    while (n->at != at)
        n++;
    if (s->name)
        return err_set(e, ERR_CONFIG, "%s.%s.%s %s", n->section, s->name, n->key, must);
    return err_set(e, ERR_CONFIG, "%s.%s %s", n->section, n->key, must);
}

/* ---- ranges ---- */

struct range {
    size_t at;
    int64_t min, max;
    const char *must;
};

/* clang-format off */
#define RANGE(in, field, min, max, words) { offsetof(struct in, field), (min), (max), "must be " words }
/* clang-format on */

static const struct range conf_ranges[] = {
    RANGE(conf, max_steps, 1, 1000, "1 to 1000"),
    RANGE(conf, max_repairs, 1, 100, "1 to 100"),
    RANGE(conf, max_malformed, 1, 100, "1 to 100"),
    RANGE(conf, turn_timeout_ms, SEC, 86400 * SEC, "1s to 24h"),
    RANGE(conf, output_head_bytes, 256, MIB, "256 to 1M"),
    RANGE(conf, output_tail_bytes, 0, MIB, "0 to 1M"),
    RANGE(conf, cell_timeout_ms, SEC, 86400 * SEC, "1s to 24h"),
    RANGE(conf, cell_timeout_max_ms, SEC, 86400 * SEC, "1s to 24h"),
    RANGE(conf, memory_bytes, 128 * MIB, 1024 * GIB, "128M to 1024G"),
    RANGE(conf, disk_bytes, MIB, 512 * GIB, "1M to 512G"),
    RANGE(conf, pids, 16, 32768, "16 to 32768"),
    RANGE(conf, cpus, 1, 1024, "1 to 1024"),
    RANGE(conf, copies, 0, 64, "0 to 64"),
    RANGE(conf, checkpoint_max_bytes, MIB, 1024 * GIB, "1M to 1024G"),
    RANGE(conf, checkpoint_timeout_ms, SEC, 86400 * SEC, "1s to 24h"),
    RANGE(conf, pool, 0, 64, "0 to 64"),
    RANGE(conf, zygote_forks, 0, 1000000, "0 to 1000000"),
    RANGE(conf, zygote_age_ms, 0, INT64_C(720) * 3600 * SEC, "0 to 720h"),
    /* Below 65536 live the machine's own users; the whole range must fit into 32 bits, whose last id means "none". */
    RANGE(conf, uid_base, 65536, 4294901759, "65536 to 4294901759"),
    RANGE(conf, upload_max_bytes, KIB, 1024 * GIB, "1K to 1024G"),
    RANGE(conf, session_max_bytes, MIB, 1024 * GIB, "1M to 1024G"),
    RANGE(conf, archive_max_bytes, KIB, 1024 * GIB, "1K to 1024G"),
    RANGE(conf, archive_entries, 1, 1000000, "1 to 1000000"),
    RANGE(conf, result_max_bytes, KIB, GIB, "1K to 1G"),
    RANGE(conf, slack_links, 1, 3, "1 to 3"),
    RANGE(conf, slack_backoff_max_ms, 100, 3600 * SEC, "100ms to 1h"),
    RANGE(conf, slack_thread_context, 0, 200, "0 to 200"),
    RANGE(conf, slack_keep_ms, 86400 * SEC, INT64_C(8760) * 3600 * SEC, "24h to 8760h"),
};
static const struct range model_ranges[] = {
    RANGE(conf_model, context_tokens, 1024, 100000000, "1024 to 100000000"),
    RANGE(conf_model, max_output_tokens, 16, 10000000, "16 to 10000000"),
};

static const struct range tool_ranges[] = {
    RANGE(conf_tool, result_max_bytes, 256, 256 * KIB, "256 to 256K"),
    RANGE(conf_tool, timeout_ms, SEC, 600 * SEC, "1s to 10m"),
};
static const struct range database_ranges[] = {
    RANGE(conf_database, rows_max, 1, 100000000, "1 to 100000000"),
    RANGE(conf_database, bytes_max, KIB, 4 * GIB, "1K to 4G"),
    RANGE(conf_database, timeout_ms, SEC, 600 * SEC, "1s to 10m"),
};

static int check_ranges(const struct subject *s, const struct range *r, size_t n, struct err *e)
{
    for (; n > 0; n--, r++) {
        int64_t value = *(const int64_t *)((const char *)s->base + r->at);
        if (value < r->min || value > r->max)
            return refuse(s, r->at, r->must, e);
    }
    return 0;
}

/* ---- words ---- */

struct choice {
    size_t at;
    const char *words; /* the allowed ones, each between blanks; two blanks first: none is allowed, too */
    const char *must;
};

static const struct choice conf_choices[] = {
    { offsetof(struct conf, log_level), " auto error warn info debug ", "must be auto, error, warn, info or debug" },
    { offsetof(struct conf, audit), " off note refuse ", "must be off, note or refuse" },
    { offsetof(struct conf, min_tier), " T0 T1 ", "must be T0 or T1" },
    { offsetof(struct conf, slack_dm_mode), " thread flat ", "must be thread or flat" },
    { offsetof(struct conf, slack_external_users), " ignore answer answer_without_files ",
      "must be ignore, answer or answer_without_files" },
    { offsetof(struct conf, slack_status), " auto agent message none ", "must be auto, agent, message or none" },
    { offsetof(struct conf, matrix_auth), " auto token password device ", "must be auto, token, password or device" },
    { offsetof(struct conf, matrix_autojoin), " allowed all never ", "must be allowed, all or never" },
    { offsetof(struct conf, matrix_mention), " groups always never ", "must be groups, always or never" },
    { offsetof(struct conf, matrix_reply), " thread room ", "must be thread or room" },
    { offsetof(struct conf, matrix_msgtype), " text notice ", "must be text or notice" },
    { offsetof(struct conf, matrix_progress), " typing edits ", "must be typing or edits" },
    { offsetof(struct conf, matrix_e2ee), " on off required ", "must be on, off or required" },
    { offsetof(struct conf, matrix_recipients), " all signed verified ", "must be all, signed or verified" },
    { offsetof(struct conf, matrix_senders), " all signed verified ", "must be all, signed or verified" },
    { offsetof(struct conf, matrix_sas), " operator auto off ", "must be operator, auto or off" },
};
static const struct choice model_choices[] = {
    { offsetof(struct conf_model, dialect), " chat responses anthropic ollama builtin replay ",
      "must be chat, responses, anthropic, ollama, builtin or replay" },
    { offsetof(struct conf_model, effort), "  none minimal low medium high xhigh max ",
      "must be none, minimal, low, medium, high, xhigh or max, or empty" },
    { offsetof(struct conf_model, thinking), " auto on off ", "must be auto, on or off" },
    { offsetof(struct conf_model, system_role), " system developer user ", "must be system, developer or user" },
    { offsetof(struct conf_model, tools), " auto native fence ", "must be auto, native or fence" },
};

static const struct choice tool_choices[] = {
    { offsetof(struct conf_tool, method), " GET POST PUT PATCH DELETE ", "must be GET, POST, PUT, PATCH or DELETE" },
};
static const struct choice database_choices[] = {
    { offsetof(struct conf_database, kind), " sqlite postgres ", "must be sqlite or postgres" },
};

static bool has_word(const char *words, const char *word)
{
    size_t n = strchr(word, ' ') ? 0 : strlen(word);
    for (const char *at = words; n > 0 && (at = strstr(at, word)); at++)
        if (at[-1] == ' ' && at[n] == ' ')
            return true;
    return false;
}

static int check_choices(const struct subject *s, const struct choice *c, size_t n, struct err *e)
{
    for (; n > 0; n--, c++) {
        const char *const *word = (const void *)((const char *)s->base + c->at);
        if (!(has_word(c->words, *word) || (!**word && c->words[1] == ' ')))
            return refuse(s, c->at, c->must, e);
    }
    return 0;
}

/* ---- addresses ---- */

/* The host of an authority, brackets and port removed; false when it is malformed. */
static bool host_of(char *out, size_t size, const char *authority, size_t n)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:[]";
    if (n == 0 || n >= size || strspn(authority, allowed) < n)
        return false;
    size_t from = *authority == '[' ? 1 : 0;
    size_t to = strcspn(authority, from ? "]/?#" : ":/?#"), rest = to + from; /* from also counts the closing bracket */
    if (to <= from || rest > n)
        return false;
    memcpy(out, authority + from, to - from);
    out[to - from] = '\0';
    return rest == n || (authority[rest] == ':' && rest + 1 + strspn(authority + rest + 1, "0123456789") == n);
}

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (strcasecmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* "127.0.0.1:8088", "[::1]:8088", ":8088" (httpd.h): nobody but this machine reaches it. */
static bool is_loopback_address(const char *address)
{
    char host[64];
    return *address == ':' || (host_of(host, sizeof(host), address, strlen(address)) &&
                               strcasecmp(host, "localhost") != 0 && is_loopback(host));
}

/* NULL, or what is wrong. Strict: this decides whether a key may leave in the clear, and curl reads the URL anew. */
static const char *host_problem(const char *url, bool allow_plain)
{
    bool plain = strncasecmp(url, "http://", 7) == 0;
    if (!plain && strncasecmp(url, "https://", 8) != 0)
        return "must begin with https:// or http://";
    char host[256];
    const char *authority = url + (plain ? 7 : 8);
    if (!host_of(host, sizeof(host), authority, strcspn(authority, "/?#")))
        return "must name a host, without user or password";
    if (plain && !allow_plain && !is_loopback(host))
        return "must be https:// unless the host is this machine or allow_plain_http is yes";
    return NULL;
}

static const char *url_problem(const char *url, bool allow_plain)
{
    for (const char *p = url; *p; p++)
        if (*p <= ' ' || *p >= 0x7f || strchr("?#\\\"<>", *p))
            return "must be a base address without blanks, ? and #";
    return host_problem(url, allow_plain);
}

/* {name}, each closed, none in the host: host_of refuses braces there. */
static const char *template_problem(const char *url, bool allow_plain)
{
    static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    for (const char *p = url; *p; p++) {
        if (*p <= ' ' || *p >= 0x7f || strchr("#\\\"<>", *p))
            return "must be an address without blanks and #";
        const size_t n = *p == '{' ? strspn(p + 1, word) : 0;
        if (*p == '}' || (*p == '{' && (n == 0 || p[1 + n] != '}')))
            return "must have its placeholders as {name}";
        p += n ? n + 1 : 0;
    }
    return host_problem(url, allow_plain);
}

/* ---- the whole ---- */

static bool speaks_http(const struct conf_model *m)
{
    return has_word(" chat responses anthropic ollama ", m->dialect);
}

static int check_address(const struct subject *s, const struct conf_model *m, struct err *e)
{
    const char *problem = NULL;
    if (!*m->url && (speaks_http(m) || strcmp(m->dialect, "replay") == 0))
        problem =
            speaks_http(m) ? "is empty; give the server's base address" : "is empty; give the path of a recording";
    else if (speaks_http(m))
        problem = url_problem(m->url, m->allow_plain_http);
    return problem ? refuse(s, offsetof(struct conf_model, url), problem, e) : 0;
}

static bool is_temperature(const char *word)
{
    char *end = NULL;
    if (!*word || strcmp(word, "auto") == 0)
        return true;
    const double v = strtod(word, &end);
    return !*end && strspn(word, "0123456789.") == strlen(word) && v >= 0 && v <= 2;
}

static int check_model(const struct conf_model *m, struct err *e)
{
    const struct subject s = { m, model_names, m->section };
    if (check_ranges(&s, model_ranges, countof(model_ranges), e) < 0 ||
        check_choices(&s, model_choices, countof(model_choices), e) < 0 || check_address(&s, m, e) < 0)
        return -1;
    if (speaks_http(m) && !*m->name)
        return refuse(&s, offsetof(struct conf_model, name), "is empty; say what the server calls the model", e);
    static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-";
    if (m->api_version[strspn(m->api_version, word)])
        return refuse(&s, offsetof(struct conf_model, api_version), "must be like 2024-10-21", e);
    if (!is_temperature(m->temperature))
        return refuse(&s, offsetof(struct conf_model, temperature), "must be auto, a number from 0 to 2, or empty", e);
    if (m->max_output_tokens >= m->context_tokens)
        return refuse(&s, offsetof(struct conf_model, max_output_tokens), "must be less than context", e);
    return 0;
}

static int check_tool(const struct conf_tool *t, struct err *e)
{
    const struct subject s = { t, tool_names, t->section };
    const char *problem = template_problem(t->url, t->allow_plain_http);
    if (check_ranges(&s, tool_ranges, countof(tool_ranges), e) < 0 ||
        check_choices(&s, tool_choices, countof(tool_choices), e) < 0)
        return -1;
    if (strchr(t->section, '.'))
        return err_set(e, ERR_CONFIG, "[tool %s]: models call tools by A-Z a-z 0-9 _ - only", t->section);
    if (!*t->description)
        return refuse(&s, offsetof(struct conf_tool, description), "is empty; models choose tools by it", e);
    if (problem)
        return refuse(&s, offsetof(struct conf_tool, url), problem, e);
    const char *colon = strchr(t->secret_header, ':');
    if (!colon || colon == t->secret_header || !strstr(colon, "{secret}"))
        return refuse(&s, offsetof(struct conf_tool, secret_header), "must be like Name: ... {secret}", e);
    return 0;
}

static int check_database(const struct conf_database *d, struct err *e)
{
    const struct subject s = { d, database_names, d->section };
    if (check_ranges(&s, database_ranges, countof(database_ranges), e) < 0 ||
        check_choices(&s, database_choices, countof(database_choices), e) < 0)
        return -1;
    const bool sqlite = strcmp(d->kind, "sqlite") == 0;
    if (sqlite && *d->path != '/')
        return refuse(&s, offsetof(struct conf_database, path), "must be the whole path of the file", e);
    if (!sqlite && !*d->dsn_file)
        return refuse(&s, offsetof(struct conf_database, dsn_file),
                      "is empty; give the file with the connection string", e);
    return 0;
}

static int check_named(const struct conf *c, struct err *e)
{
    for (size_t i = 0; i < c->model_n; i++)
        if (check_model(&c->models[i], e) < 0)
            return -1;
    for (size_t i = 0; i < c->tool_n; i++)
        if (check_tool(&c->tools[i], e) < 0)
            return -1;
    for (size_t i = 0; i < c->database_n; i++)
        if (check_database(&c->databases[i], e) < 0)
            return -1;
    return 0;
}

/* Each name of the list; as conf_fallback() takes it apart. */
static int check_fallback(const struct conf *c, struct err *e)
{
    char name[CONF_NAME_SIZE];
    for (size_t i = 0; conf_fallback(c, i, name); i++)
        if (!conf_find_model(c, name))
            return err_set(e, ERR_CONFIG, "agent.fallback names \"%.80s\", but there is no [model %.80s]", name, name);
    return 0;
}

static int check_together(const struct subject *s, const struct conf *c, struct err *e)
{
    if (c->cell_timeout_ms > c->cell_timeout_max_ms)
        return refuse(s, offsetof(struct conf, cell_timeout_ms), "must not be above box.cell_timeout_max", e);
    if (c->disk_bytes > c->memory_bytes / 2)
        return refuse(s, offsetof(struct conf, disk_bytes),
                      "must be at most half of box.memory, as files count as memory", e);
    if (c->forget_after_ms > 0 && c->forget_after_ms < 86400 * SEC)
        return refuse(s, offsetof(struct conf, forget_after_ms), "must be 1d or more, or 0s: never", e);
    if (*c->status_listen && !c->status_public && !is_loopback_address(c->status_listen))
        return refuse(s, offsetof(struct conf, status_listen),
                      "must be an address of this machine's own, such as 127.0.0.1:8088, unless status.public is yes",
                      e);
    if (!conf_find_model(c, c->model))
        return err_set(e, ERR_CONFIG, "agent.model is \"%.80s\", but there is no [model %.80s]", c->model, c->model);
    return check_fallback(c, e);
}

static int check_matrix(const struct subject *s, const struct conf *c, struct err *e)
{
    const char *colon = strchr(c->matrix_user, ':');
    if (*c->matrix_user && (c->matrix_user[0] != '@' || !colon || !colon[1] || strpbrk(c->matrix_user, " \t/")))
        return refuse(s, offsetof(struct conf, matrix_user), "must be a whole id such as @bot:example.org", e);
    if (*c->matrix_homeserver && !*c->matrix_user)
        return refuse(s, offsetof(struct conf, matrix_user), "is empty; say which account is the bot's", e);
    if (!*c->matrix_homeserver)
        return 0;
    const char *problem = url_problem(c->matrix_homeserver, c->matrix_plain);
    if (!problem && !c->matrix_loopback && strncasecmp(c->matrix_homeserver, "http://", 7) == 0)
        problem = "must be https:// unless allow_http_loopback is yes";
    return problem ? refuse(s, offsetof(struct conf, matrix_homeserver), problem, e) : 0;
}

int conf_check(const struct conf *c, struct err *e)
{
    const struct subject s = { c, conf_names, NULL };
    if (check_ranges(&s, conf_ranges, countof(conf_ranges), e) < 0 ||
        check_choices(&s, conf_choices, countof(conf_choices), e) < 0)
        return -1;
    return check_named(c, e) < 0 || check_matrix(&s, c, e) < 0 ? -1 : check_together(&s, c, e);
}
