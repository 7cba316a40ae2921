/* slack_out.h - answers, notices and status lines as posts; each once, whatever breaks in between.
 *
 * A post is parts: charts, messages, files. Before a part is sent, a row says so; after it, what it became. After a kill, or an
 * answer that never came, the thread is looked at for the part's key (message metadata, or the ids of files) before it is
 * sent again.
 *
 * Kinds of rows, platform "slack":
 *   sent    <txn>         {"at", "rung", "parts": {"m0": {"ts"}, "charts": {"ids", "ts"}, ...}}
 *   ours    <room>/<ts>   {"at", "root"}: a message of ours, for reactions to it
 *   status  <txn>         {"room", "root", "ts"}: a status line that is shown; gone with it */
#ifndef SLACK_OUT_H
#define SLACK_OUT_H
#include "slack_inbox.h"

struct slack_out;

struct slack_out_config {
    const struct chat_home *home;
    struct http *http;
    struct slack_api *api;
    struct slack_teams *teams;
    struct slack_inbox *inbox;
};

struct slack_out *slack_out_new(const struct slack_out_config *c);
void slack_out_free(struct slack_out *o); /* no callback after it; NULL is fine */
/* As chat_ops.post. */
must_check int slack_out_post(struct slack_out *o, const struct chat_post *p,
                              void (*done)(void *ud, const struct err *e), void *ud, struct err *e);
/* A question was taken in that thread, and an answer is to come: Slack's own status says so at once, where the workspace has it. */
void slack_out_hint(struct slack_out *o, const char *room, const char *thread);
/* Once the installations are known: posts that waited go, status lines of an earlier life are taken away. */
void slack_out_begin(struct slack_out *o);
#endif
