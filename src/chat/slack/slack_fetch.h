/* slack_fetch.h - a file that came with a message, brought onto this machine.
 *
 * Trust boundary: addresses come in events. The token goes only to hosts on the list, redirects are walked by hand, and what
 * is a login page instead of the file is told from it. */
#ifndef SLACK_FETCH_H
#define SLACK_FETCH_H
#include "slack_api.h"

struct slack_fetch;

struct slack_fetch_config {
    struct loop *loop;
    struct http *http;
    struct slack_api *api;
    const char *hosts;  /* get the token: names apart by blanks; "name:port" for other than https and 443 */
    const char *follow; /* may be redirected to, without the token; "*.x" for all below x */
    int64_t max_bytes;
};

/* fd: open for reading at 0, the callee's to close; -1: problem says why, in words for people. name: as Slack has it by now. */
typedef void slack_fetch_fn(void *ud, int fd, int64_t bytes, const char *name, const char *problem);

/* file: an object of an event's files[]; copied. */
struct slack_fetch *slack_fetch_start(const struct slack_fetch_config *c, struct slack_team *team,
                                      const struct json *file, slack_fetch_fn *fn, void *ud);
void slack_fetch_cancel(struct slack_fetch *f); /* no callback; NULL is fine; never after the callback */

/* ---- pure, for tests ---- */
enum slack_host { SLACK_HOST_NO, SLACK_HOST_FOLLOW, SLACK_HOST_TOKEN };
enum slack_host slack_fetch_host(const char *url, const char *hosts, const char *follow);
/* What is shown as a file object's name. */
const char *slack_fetch_label(const struct json *file);
/* The name that a file goes by here: last part of a path, no control characters, at most 120 bytes with its ending. Caller frees. */
char *slack_fetch_name(const char *name);
bool slack_fetch_is_html(const char *data, size_t n);
/* A Location as an address, relative to the one it came from; NULL: none. Caller frees. */
char *slack_fetch_resolve(const char *base, const char *location);
#endif
