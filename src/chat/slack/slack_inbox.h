/* slack_inbox.h - from a payload to the core: durable first, each event once, in order within a channel.
 *
 *   payload -> gate -> seen before? -> row "pending" (one batch for all that came together) -> acknowledged
 *   pending -> names, files, the thread so far -> on_event(), in one batch with the end of the row
 *
 * Kinds of rows in the store, platform "slack":
 *   pending  <sequence>         the payload as it came
 *   seen     e/<event id>       when
 *   seen     m/<room>/<ts>      {"at", "root", "files"}: a message that was taken
 *   thread   <room>/<root ts>   when: the bot is part of that thread
 *   alias    <room>             a channel that got another id: the room as sessions know it
 *   workspace <team>            the organisation whose installation its events come by */
#ifndef SLACK_INBOX_H
#define SLACK_INBOX_H
#include "chat.h"
#include "slack_event.h"
#include "slack_fetch.h"
#include "slack_teams.h"
#include "store.h"

struct slack_inbox;

struct slack_inbox_config {
    const struct chat_home *home;
    struct http *http;
    struct slack_api *api;
    struct slack_teams *teams;
    struct chat *chat;
    const struct chat_events *ev;
    void *ev_ud;
    /* What is no conversation: app opened, taken into a channel, app removed, a message of somebody who is not answered. Not durable. */
    void (*other)(void *ud, struct slack_team *team, const struct slack_event *ev);
    void *other_ud;
    /* A message for us was taken, and is on its way to the core. */
    void (*taken)(void *ud, const char *room, const char *thread);
    void *taken_ud;
};

struct slack_inbox *slack_inbox_new(const struct slack_inbox_config *c);
void slack_inbox_free(struct slack_inbox *in); /* NULL is fine */
/* Rows of an earlier life are taken up. */
must_check int slack_inbox_resume(struct slack_inbox *in, struct err *e);
/* Several at once, durable together when it returns 0. What is for nobody here is as good as kept. */
must_check int slack_inbox_keep(struct slack_inbox *in, const char *const *payloads, size_t n, struct err *e);
/* The room that sessions know for a channel; caller frees. */
char *slack_inbox_room(struct slack_inbox *in, const char *team, const char *channel);
/* Where a room is: its installation and the channel's id of today, which the caller frees; NULL: none of ours any more. */
struct slack_team *slack_inbox_place(struct slack_inbox *in, const char *room, char **channel);
/* How a conversation may be called: the beginning of what was asked last in a thread ("<room>/<root>"), and by whom; NULL: not known
 * any more. Borrowed until the next event. */
const char *slack_inbox_asked(const struct slack_inbox *in, const char *thread, const char **user);
/* The bot is part of this thread from now on. */
void slack_inbox_engage(struct slack_inbox *in, const char *room, const char *root);
#endif
