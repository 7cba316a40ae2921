/* slack_links.h - Socket Mode: WebSocket links that bring envelopes, one after the other without a gap.
 *
 * A link that Slack is about to recycle is replaced before it is given up: the new one says hello first. Every link has a
 * number that is never used again, so that what comes late from an old one touches no new one. Attempts are spaced by a
 * backoff that only a link which held for a minute resets. */
#ifndef SLACK_LINKS_H
#define SLACK_LINKS_H
#include "json.h"
#include "slack_api.h"

struct loop;
struct slack_links;

struct slack_links_config {
    struct loop *loop;
    struct slack_api *api;
    const char *app_token;
    int wanted; /* links at the same time, 1 to 3 */
    int64_t backoff_max_ms;
    bool quick; /* ask Slack to recycle links every six minutes: to see that it works */
};

struct slack_links_events {
    /* Borrowed. Must be answered by slack_links_ack when it is durable; not at all, and it comes again. */
    void (*envelope)(void *ud, uint64_t link, const struct json *envelope);
    /* There is a link again; deaf_ms: so long there was none (0 at the start). */
    void (*online)(void *ud, int64_t deaf_ms);
    void (*offline)(void *ud); /* there is none any more */
};

struct slack_links *slack_links_new(const struct slack_links_config *c, const struct slack_links_events *ev, void *ud);
/* On the link it came by, else on any other. */
void slack_links_ack(struct slack_links *s, uint64_t link, const char *envelope_id);
bool slack_links_online(const struct slack_links *s); /* something can be heard */
void slack_links_free(struct slack_links *s);         /* at once; NULL is fine */
#endif
