/* cli.h - the command line: one options table, one small file a subcommand. Floor 5.
 *
 * stdout carries results only, stderr the log and words for people. */
#ifndef CLI_H
#define CLI_H
#include "conf.h"

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,  /* the work was tried and failed */
    CLI_USAGE = 2,   /* the call or the configuration is wrong */
    CLI_MACHINE = 3, /* the machine lacks something; `sandbook doctor` says what */
};

struct cli_list {
    const char **at;
    size_t n, cap;
};

/* What the words of one call came to. All strings point into argv. */
struct cli_options {
    struct conf conf;
    const char *conf_path, *out, *model;
    bool json, help;
    int64_t timeout_ms, memory_bytes; /* 0: as configured */
    struct cli_list files, sets, rest;
};

struct cli_command {
    const char *name, *synopsis, *summary;
    const char *options; /* letters of the options it knows, see options.c */
    const char *help;    /* paragraphs of its --help, after the synopsis */
    int (*run)(struct cli_options *o);
    bool service; /* its log is for an operator, not for the person at the terminal */
};

/* Reads argv[2..] for cmd and the configuration. CLI_OK, or the exit status after a sentence on stderr. */
must_check int cli_options_read(struct cli_options *o, const struct cli_command *cmd, int argc, char **argv);
void cli_options_clear(struct cli_options *o);
/* One line a configured key with its present value. */
void cli_print_settings(const struct conf *c);
/* "sandbook: <what>" on stderr, then the exit status for that kind of error. */
int cli_fail(const struct err *e);
int cli_usage(const char *fmt, ...) printf_like(1, 2);
/* For a command that takes options alone: CLI_USAGE after a sentence when there are words, too. */
must_check int cli_no_words(const struct cli_options *o, const char *command);

int cli_run(struct cli_options *o);
int cli_ask(struct cli_options *o);
int cli_chat(struct cli_options *o);
int cli_cells(struct cli_options *o);
int cli_profile(struct cli_options *o);
int cli_export(struct cli_options *o);
int cli_doctor(struct cli_options *o);
int cli_matrix(struct cli_options *o);
int cli_check_config(struct cli_options *o);
int cli_version(struct cli_options *o);
#endif
