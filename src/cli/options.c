/* options.c - the command line: options, the configuration, words about mistakes. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "cli.h"
#include "log.h"
#include "str.h"

#define DEFAULT_CONF "/etc/sandbook/sandbook.conf"

/* The letter is how a command names an option in its `options`; only c and h are also short options. */
static const struct option long_options[] = {
    { "config", required_argument, NULL, 'c' }, { "set", required_argument, NULL, 's' },
    { "help", no_argument, NULL, 'h' },         { "file", required_argument, NULL, 'f' },
    { "json", no_argument, NULL, 'j' },         { "out", required_argument, NULL, 'o' },
    { "model", required_argument, NULL, 'm' },  { "timeout", required_argument, NULL, 't' },
    { "memory", required_argument, NULL, 'M' }, { 0 },
};

static void say_error(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
static void say_error(const char *fmt, va_list ap)
{
    (void)fputs("sandbook: ", stderr);
    (void)vfprintf(stderr, fmt, ap);
    (void)fputc('\n', stderr);
}

int cli_usage(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_error(fmt, ap);
    va_end(ap);
    return CLI_USAGE;
}

int cli_no_words(const struct cli_options *o, const char *command)
{
    return o->rest.n ? cli_usage("%s takes no words; got \"%s\"", command, o->rest.at[0]) : CLI_OK;
}

static void say_plain(const char *fmt, ...) printf_like(1, 2);
static void say_plain(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_error(fmt, ap);
    va_end(ap);
}

int cli_fail(const struct err *e)
{
    say_plain("%s", e->msg);
    switch (e->kind) {
    case ERR_CONFIG: return CLI_USAGE;
    case ERR_SANDBOX: return CLI_MACHINE;
    case ERR_NONE:
    case ERR_NET:
    case ERR_LIMIT:
    case ERR_REFUSED:
    case ERR_TIMEOUT:
    case ERR_DATA:
    case ERR_STORE: return CLI_FAILED;
    }
    return CLI_FAILED;
}

static void list_add(struct cli_list *l, const char *s)
{
    l->at = xgrow(l->at, &l->cap, l->n + 1, sizeof *l->at);
    l->at[l->n++] = s;
}

static int read_seconds(const char *text, int64_t *ms)
{
    char *end = NULL;
    errno = 0;
    double s = strtod(text, &end);
    if (errno || end == text || strcmp(end, *end == 's' ? "s" : "") != 0 || !(s > 0) || s > 86400)
        return cli_usage("--timeout wants seconds, for example 2 or 0.5; not \"%s\"", text);
    *ms = (int64_t)(s * 1000);
    return *ms ? CLI_OK : cli_usage("--timeout is at least 0.001 seconds");
}

static int read_memory(const char *text, int64_t *bytes)
{
    struct conf c;
    struct err e = { 0 };
    conf_init(&c);
    autofree char *row = xasprintf("box.memory=%s", text);
    int rc = conf_set(&c, row, &e);
    *bytes = c.memory_bytes;
    conf_clear(&c);
    return rc == 0 && *bytes > 0 ? CLI_OK
                                 : cli_usage("--memory wants a size, for example 512M or 2G; not \"%s\"", text);
}

static int take_option(struct cli_options *o, int letter, const char *arg)
{
    switch (letter) {
    case 'c': o->conf_path = arg; return CLI_OK;
    case 's': list_add(&o->sets, arg); return CLI_OK;
    case 'h': o->help = true; return CLI_OK;
    case 'f': list_add(&o->files, arg); return CLI_OK;
    case 'j': o->json = true; return CLI_OK;
    case 'o': o->out = arg; return CLI_OK;
    case 'm': o->model = arg; return CLI_OK;
    case 't': return read_seconds(arg, &o->timeout_ms);
    case 'M': return read_memory(arg, &o->memory_bytes);
    default: return CLI_USAGE;
    }
}

static const char *option_name(int letter)
{
    for (const struct option *o = long_options; o->name; o++)
        if (o->val == letter)
            return o->name;
    return "";
}

static bool knows(const struct cli_command *cmd, int letter)
{
    return strchr("csh", letter) || strchr(cmd->options, letter);
}

static int wrong(const struct cli_command *cmd, const char *word, const char *why)
{
    return cli_usage("%s: %s: %s; see: sandbook %s --help", cmd->name, word, why, cmd->name);
}

static int unknown(const struct cli_command *cmd, const char *word)
{
    const char *names[countof(long_options)];
    size_t n = 0;
    for (const struct option *o = long_options; o->name; o++)
        if (knows(cmd, o->val))
            names[n++] = o->name;
    autofree char *bare = xstrndup(word + strspn(word, "-"), strcspn(word + strspn(word, "-"), "="));
    const char *nearest = str_nearest(bare, names, n);
    if (!nearest)
        return wrong(cmd, word, "unknown option");
    autofree char *why = xasprintf("unknown option; did you mean --%s?", nearest);
    return wrong(cmd, word, why);
}

/* What getopt stopped at: a name that it does not know, a value where none belongs, or two names that begin so. */
static int not_read(const struct cli_command *cmd, const char *word)
{
    const size_t n = strcspn(word, "=");
    for (const struct option *o = long_options; o->name && word[n]; o++)
        if (!strncmp(word, "--", 2) && strlen(o->name) == n - 2 && !strncmp(word + 2, o->name, n - 2))
            return wrong(cmd, word, "takes no value");
    return unknown(cmd, word);
}

static int read_words(struct cli_options *o, const struct cli_command *cmd, int argc, char **argv)
{
    opterr = 0;
    optind = 2;
    for (int letter; (letter = getopt_long(argc, argv, ":c:h", long_options, NULL)) != -1;) {
        if (letter == '?')
            return not_read(cmd, argv[optind - 1]);
        autofree char *name = xasprintf("--%s", option_name(letter == ':' ? optopt : letter));
        if (letter == ':')
            return wrong(cmd, name, "needs a value");
        if (!knows(cmd, letter))
            return unknown(cmd, name);
        int rc = take_option(o, letter, optarg);
        if (rc != CLI_OK)
            return rc;
    }
    for (int i = optind; i < argc; i++)
        list_add(&o->rest, argv[i]);
    return CLI_OK;
}

static int read_conf(struct cli_options *o, const struct cli_command *cmd)
{
    struct err e = { 0 };
    const char *path = o->conf_path ? o->conf_path : access(DEFAULT_CONF, R_OK) == 0 ? DEFAULT_CONF : NULL;
    if (path && conf_load(&o->conf, path, &e) < 0)
        return cli_fail(&e);
    for (size_t i = 0; i < o->sets.n; i++)
        if (conf_set(&o->conf, o->sets.at[i], &e) < 0)
            return cli_fail(&e);
    if (o->model) {
        autofree char *row = xasprintf("agent.model=%s", o->model);
        if (conf_set(&o->conf, row, &e) < 0)
            return cli_fail(&e);
    }
    if (o->memory_bytes) {
        o->conf.memory_bytes = o->memory_bytes;
        if (o->conf.disk_bytes > o->memory_bytes / 2)
            o->conf.disk_bytes = o->memory_bytes / 2; /* files in the box count as its memory */
    }
    if (o->timeout_ms)
        o->conf.cell_timeout_ms = o->timeout_ms;
    if (conf_check(&o->conf, &e) < 0)
        return cli_fail(&e);
    int level = log_level_from(o->conf.log_level);
    log_set_level(level >= 0 ? (enum log_level)level : cmd->service ? LOG_INFO : LOG_WARN);
    return CLI_OK;
}

int cli_options_read(struct cli_options *o, const struct cli_command *cmd, int argc, char **argv)
{
    *o = (struct cli_options){ 0 };
    conf_init(&o->conf);
    int rc = read_words(o, cmd, argc, argv);
    return rc != CLI_OK || o->help ? rc : read_conf(o, cmd);
}

void cli_options_clear(struct cli_options *o)
{
    conf_clear(&o->conf);
    free(o->files.at);
    free(o->sets.at);
    free(o->rest.at);
}

void cli_print_settings(const struct conf *c)
{
    struct conf_row row;
    const char *section = "";
    for (size_t i = 0; conf_row(c, i, &row); i++) {
        if (strcmp(section, row.section) != 0)
            (void)printf("\n[%s]\n", row.section);
        section = row.section;
        (void)printf("%-16s = %-10s # %s\n", row.key, row.value, row.help);
    }
}
