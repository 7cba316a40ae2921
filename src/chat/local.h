/* local.h - the terminal as a chat platform: for `ask`, `chat`, and scripted conversations. Floor 3; used by cli/ only.
 *
 * As a configured platform ([local] stdio = yes, through chat_local) it reads events as JSON lines from stdin and writes posts as
 * JSON lines to stdout; docs/cli.md has both forms. For a person it reads plain lines and writes plain text. */
#ifndef LOCAL_H
#define LOCAL_H
#include <stdio.h>
#include "chat.h"

struct local_terminal {
    FILE *out;        /* answers; not closed here */
    FILE *status;     /* progress, or NULL for none; not closed here */
    int in_fd;        /* lines of a person are read from here until its end; -1: only local_say */
    const char *room; /* one conversation */
    /* Optional: a line before is still being worked on; the next ones wait for local_go_on(). A script's lines are read so, while a
     * person may say `stop` at any time. */
    bool (*busy)(void *ud);
    void *ud;
};

/* A chat whose person sits at this machine. */
must_check int local_open_terminal(struct chat **out, struct loop *l, const struct local_terminal *t,
                                   const struct chat_events *ev, void *ud, struct err *e);
/* As if the person had written text with those files (paths on this machine, opened here). ERR_DATA names what is wrong with a path. */
must_check int local_say(struct chat *c, const char *text, const char *const *paths, size_t path_n, struct err *e);
/* What was busy() may be so no more. */
void local_go_on(struct chat *c);
/* Open a path that a person gave for reading: a regular, readable file; ERR_DATA in words for people. */
must_check int local_open_file(const char *path, int *fd, int64_t *bytes, struct err *e);
#endif
