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

/* What is being checked: one of the two structs. */
struct subject {
    const void *base;
    const struct named *names;
    const char *model; /* NAME, or NULL */
};

/* "section.key must be ...", with the model's name where there is one. */
static int refuse(const struct subject *s, size_t at, const char *must, struct err *e)
{
    const struct named *n = s->names;
    while (n->at != at)
        n++;
    if (s->model)
        return err_set(e, ERR_CONFIG, "%s.%s.%s %s", n->section, s->model, n->key, must);
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
    /* Below 65536 live the machine's own users; the whole range must fit into 32 bits, whose last id means "none". */
    RANGE(conf, uid_base, 65536, 4294901759, "65536 to 4294901759"),
    RANGE(conf, upload_max_bytes, KIB, 1024 * GIB, "1K to 1024G"),
    RANGE(conf, archive_max_bytes, KIB, 1024 * GIB, "1K to 1024G"),
    RANGE(conf, archive_entries, 1, 1000000, "1 to 1000000"),
    RANGE(conf, result_max_bytes, KIB, GIB, "1K to 1G"),
};
static const struct range model_ranges[] = {
    RANGE(conf_model, context_tokens, 1024, 100000000, "1024 to 100000000"),
    RANGE(conf_model, max_output_tokens, 16, 10000000, "16 to 10000000"),
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
    const char *words; /* the allowed ones, each between blanks */
    const char *must;
};

static const struct choice conf_choices[] = {
    { offsetof(struct conf, log_level), " auto error warn info debug ", "must be auto, error, warn, info or debug" },
    { offsetof(struct conf, min_tier), " T0 T1 ", "must be T0 or T1" },
};
static const struct choice model_choices[] = {
    { offsetof(struct conf_model, dialect), " chat responses anthropic builtin replay ",
      "must be chat, responses, anthropic, builtin or replay" },
    { offsetof(struct conf_model, tools), " auto native fence ", "must be auto, native or fence" },
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
        if (!has_word(c->words, *word))
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
    size_t to = strcspn(authority, from ? "]/" : ":/"), rest = to + from; /* from also counts the closing bracket */
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

/* NULL, or what is wrong. Strict: this decides whether a key may leave in the clear, and curl reads the URL anew. */
static const char *url_problem(const char *url, bool allow_plain)
{
    bool plain = strncasecmp(url, "http://", 7) == 0;
    if (!plain && strncasecmp(url, "https://", 8) != 0)
        return "must begin with https:// or http://";
    for (const char *p = url; *p; p++)
        if (*p <= ' ' || *p >= 0x7f || strchr("?#\\\"<>", *p))
            return "must be a base address without blanks, ? and #";
    char host[256];
    const char *authority = url + (plain ? 7 : 8);
    if (!host_of(host, sizeof(host), authority, strcspn(authority, "/")))
        return "must name a host, without user or password";
    if (plain && !allow_plain && !is_loopback(host))
        return "must be https:// unless the host is this machine or allow_plain_http is yes";
    return NULL;
}

/* ---- the whole ---- */

static bool speaks_http(const struct conf_model *m)
{
    return has_word(" chat responses anthropic ", m->dialect);
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

static int check_model(const struct conf_model *m, struct err *e)
{
    const struct subject s = { m, model_names, m->section };
    if (check_ranges(&s, model_ranges, countof(model_ranges), e) < 0 ||
        check_choices(&s, model_choices, countof(model_choices), e) < 0 || check_address(&s, m, e) < 0)
        return -1;
    if (speaks_http(m) && !*m->name)
        return refuse(&s, offsetof(struct conf_model, name), "is empty; say what the server calls the model", e);
    if (m->max_output_tokens >= m->context_tokens)
        return refuse(&s, offsetof(struct conf_model, max_output_tokens), "must be less than context", e);
    return 0;
}

static int check_together(const struct subject *s, const struct conf *c, struct err *e)
{
    if (c->cell_timeout_ms > c->cell_timeout_max_ms)
        return refuse(s, offsetof(struct conf, cell_timeout_ms), "must not be above box.cell_timeout_max", e);
    if (c->disk_bytes > c->memory_bytes / 2)
        return refuse(s, offsetof(struct conf, disk_bytes),
                      "must be at most half of box.memory, as files count as memory", e);
    if (!conf_find_model(c, c->model))
        return err_set(e, ERR_CONFIG, "agent.model is \"%.80s\", but there is no [model %.80s]", c->model, c->model);
    return 0;
}

int conf_check(const struct conf *c, struct err *e)
{
    const struct subject s = { c, conf_names, NULL };
    if (check_ranges(&s, conf_ranges, countof(conf_ranges), e) < 0 ||
        check_choices(&s, conf_choices, countof(conf_choices), e) < 0)
        return -1;
    for (size_t i = 0; i < c->model_n; i++)
        if (check_model(&c->models[i], e) < 0)
            return -1;
    return check_together(&s, c, e);
}
