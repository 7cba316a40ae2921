/* slack_catchup.h - what was said while nobody listened, read from the history of the places that know the bot.
 *
 * Slack repeats an event for five minutes; what it gave up on is in the channels still. So after a longer silence of the links, or
 * of this process, messages younger than `catch_up` are asked for: of every room that has a conversation, and of every thread that
 * had one in the last day. They go through the inbox as if they had just come: what was seen before, or is for nobody here, ends there.
 * Bounded: the newest rooms and threads first, one call at a time.
 *
 * Kinds of rows, platform "slack":
 *   alive  ""   when events could be received last */
#ifndef SLACK_CATCHUP_H
#define SLACK_CATCHUP_H
#include "slack_inbox.h"

struct slack_catchup;

struct slack_catchup *slack_catchup_new(const struct chat_home *home, struct slack_api *api, struct slack_inbox *inbox);
void slack_catchup_free(struct slack_catchup *c); /* NULL is fine */
/* Events can be received; deaf_ms: so long they could not (0: this is the first time in this life). */
void slack_catchup_heard(struct slack_catchup *c, int64_t deaf_ms);
/* They can't any more. */
void slack_catchup_deaf(struct slack_catchup *c);
#endif
