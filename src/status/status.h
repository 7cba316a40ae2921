/* status.h - how the service is doing, over HTTP: GET /health, /health/live, /metrics. Floor 3.
 *
 * Trust boundary: whoever reaches the address may ask, so nothing of people is in any answer. */
#ifndef STATUS_H
#define STATUS_H
#include "err.h"

struct loop;
struct status;

/* Borrowed for its life. */
struct status_parts {
    const char *listen;               /* as httpd.h has it */
    void (*measure)(void *ud);        /* sets what only changes when somebody looks (metric_set) */
    const char *(*unready)(void *ud); /* why no question can be answered now, in words; NULL: it can */
    void *ud;
};

must_check int status_open(struct status **out, struct loop *l, const struct status_parts *p, struct err *e);
int status_port(const struct status *s);
void status_close(struct status *s); /* NULL is fine */
#endif
