/* The command table. Each subcommand is one file in cli/. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "cli/cli.h"
#include "str.h"

static const struct cli_command commands[] = {
    { "run", "sandbook run [-c FILE]", "the service: connect to the chat platforms and answer", "",
      "Runs until SIGTERM or SIGINT. Platforms are switched on in the configuration; `[local] stdio = yes` speaks JSON lines on stdin and\n"
      "stdout instead (docs/cli.md), for scripts and tests.\n",
      cli_run, true },
    { "ask", "sandbook ask [--file F]... [--model M] [--json] [--out DIR] TEXT",
      "one question about files, answered; then exit", "fmjo",
      "  --file F     attach a file; may be given more than once\n"
      "  --model M    a [model M] section of the configuration, or builtin\n"
      "  --out DIR    where charts and files are written (default: sandbook-out/1, then /2, ...)\n"
      "  --json       print the answer as one JSON object\n",
      cli_ask, false },
    { "chat", "sandbook chat [--file F]... [--model M] [--out DIR]",
      "a conversation in the terminal; variables are kept between turns", "fmo",
      "  --file F     attach a file; may be given more than once. Later: /file PATH\n"
      "  --model M    a [model M] section of the configuration, or builtin\n"
      "  --out DIR    where charts and files are written (default: sandbook-out/1, then /2, ...)\n"
      "Type !help for the chat commands; end with Ctrl-D.\n",
      cli_chat, false },
    { "cells", "sandbook cells [--json] [--out DIR] [--timeout S] [--memory SIZE]",
      "run code from stdin in one box, without a model", "jotM",
      "Without --json stdin is Python; lines that begin with `# %%` start a new cell. With --json each line of stdin is\n"
      "{\"code\": \"...\", \"id\": \"optional\"} or {\"command\": \"reset\"|\"vars\"|...}, and each answers with one line (docs/cli.md).\n"
      "  --out DIR    where charts and files are written (default: sandbook-out/1, then /2, ...)\n"
      "  --timeout S  seconds one cell may take (default: box.cell_timeout)\n"
      "  --memory N   memory of the session, for example 512M (default: box.memory)\n",
      cli_cells, false },
    { "profile", "sandbook profile [--json] FILE...", "what the intake finds out about files", "j",
      "  --json       one JSON object a line (docs/profile.md)\n", cli_profile, false },
    { "doctor", "sandbook doctor [--json]", "check this machine, the configuration and the sandbox, escape by escape",
      "j",
      "Ends with 0 when everything passed, 1 when an escape got through, 3 when the machine lacks something.\n"
      "  --json       one JSON object a line\n",
      cli_doctor, false },
    { "export", "sandbook export SESSION [--out DIR]", "a conversation as a notebook, with its data", "o",
      "Writes notebook.ipynb, notebook.py, data/, out/ and a README. The service may be running.\n"
      "  --out DIR    a new or empty folder (default: sandbook-SESSION)\n",
      cli_export, false },
    { "matrix", "sandbook matrix login|status|verify|block|recovery|reset|room|rotate|leave|logout [WORD]...",
      "the bot's Matrix account: log in, look, verify, log out", "j",
      "  login             make a device for the account, or see that the kept one works; then exit\n"
      "  status            account, sync, rooms and encryption\n"
      "  verify            people who verify the bot by emoji right now\n"
      "  verify TXN yes|no the emoji are the same, or not\n"
      "  verify @USER      take that person's identity for right; verify @USER no takes it back\n"
      "  block @USER DEVICE    no keys for that device; block @USER DEVICE no takes it back\n"
      "  recovery          show the recovery key of an identity made here; recovery taken: it is written down, forget it\n"
      "  reset             a new identity for the account, where its recovery key is lost; people have to verify it again\n"
      "  room ROOM [KEY=WORD]...   how the bot behaves there: require_mention, reply, msgtype, progress; nothing: what is known of it\n"
      "  rotate ROOM       a new key for the next message\n"
      "  leave ROOM        leave a room\n"
      "  logout            end the session; keys and device are gone, the next login is a new device\n"
      "While the service runs it is asked through its socket in data_dir, else the command does it itself. docs/matrix.md.\n",
      cli_matrix, false },
    { "check-config", "sandbook check-config [-c FILE]", "read the configuration, explain every setting", "", "",
      cli_check_config, false },
    { "version", "sandbook version", "print the version", "", "", cli_version, false },
};

static void print_help(FILE *to)
{
    (void)fputs(
        "Sandbook: a sandboxed notebook inside every chat thread.\n\nUsage: sandbook COMMAND [OPTION]... [ARGUMENT]...\n\n",
        to);
    for (size_t i = 0; i < countof(commands); i++)
        (void)fprintf(to, "  %-13s %s\n", commands[i].name, commands[i].summary);
    (void)fputs(
        "\nEvery command takes -c FILE (default: /etc/sandbook/sandbook.conf when it is there), any number of --set section.key=value,\n"
        "and --help. Exit status: 0 ok, 1 the work failed, 2 usage or configuration, 3 the machine lacks something.\n",
        to);
}

static const struct cli_command *find(const char *name)
{
    for (size_t i = 0; i < countof(commands); i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

static int run(const struct cli_command *cmd, int argc, char **argv)
{
    struct cli_options o;
    int rc = cli_options_read(&o, cmd, argc, argv);
    if (rc == CLI_OK && o.help)
        (void)printf("Usage: %s\n\n%s.\n%s%s\nAlso: -c FILE, --set section.key=value, --help.\n", cmd->synopsis,
                     cmd->summary, *cmd->help ? "\n" : "", cmd->help);
    else if (rc == CLI_OK)
        rc = cmd->run(&o);
    cli_options_clear(&o);
    return rc;
}

static int unknown(const char *word)
{
    const char *names[countof(commands)];
    for (size_t i = 0; i < countof(commands); i++)
        names[i] = commands[i].name;
    const char *nearest = str_nearest(word, names, countof(names));
    if (*word == '-')
        return cli_usage("the command comes first, then its options; got \"%s\"; see: sandbook --help", word);
    if (nearest)
        return cli_usage("there is no command \"%s\"; did you mean \"%s\"? See: sandbook --help", word, nearest);
    return cli_usage("there is no command \"%s\"; see: sandbook --help", word);
}

static int work(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (!strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help")) {
        print_help(stdout);
        return CLI_OK;
    }
    const struct cli_command *cmd = find(!strcmp(word, "--version") ? "version" : word);
    if (cmd)
        return run(cmd, argc, argv);
    if (*word)
        return unknown(word);
    print_help(stderr);
    return CLI_USAGE;
}

/* A number below 3 that nobody opened would be the next file's: what is printed would go into a database. */
static int open_standard(void)
{
    int fd = open("/dev/null", O_RDWR); /* not close-on-exec: it stays, for what is started, too */
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    return fd < 0 ? -1 : close(fd);
}

int main(int argc, char **argv)
{
    if (open_standard() < 0)
        return CLI_MACHINE;
    int rc = work(argc, argv);
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return rc;
    (void)cli_usage("stdout could not be written%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
    return rc == CLI_OK ? CLI_FAILED : rc; /* nobody got the result */
}
