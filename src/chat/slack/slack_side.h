/* slack_side.h - what is no conversation: suggested prompts, a greeting, a word to people of other organisations, judgements by button.
 *
 * Kinds of rows, platform "slack":
 *   home      <team>/<channel>          when prompts were suggested last
 *   joined    <team>/<channel>          when the bot greeted
 *   outsider  <team>/<channel>/<team>   when people of that organisation were told that they are not answered
 *   feedback  <room>/<ts>/<user>        {"at", "value": "good" or "bad"}: what a person thinks of an answer; the last word counts */
#ifndef SLACK_SIDE_H
#define SLACK_SIDE_H
#include "slack_inbox.h"

struct slack_side;

struct slack_side *slack_side_new(const struct chat_home *home, struct slack_api *api, struct slack_teams *teams,
                                  struct slack_inbox *inbox);
void slack_side_free(struct slack_side *s); /* NULL is fine */
/* As slack_inbox_config.other. */
void slack_side_event(struct slack_side *s, struct slack_team *team, const struct slack_event *ev);
/* A button was pressed; acknowledged already. Trust boundary: what is not ours, or not by one of this workspace's people, is left. */
void slack_side_action(struct slack_side *s, const struct json *payload);
#endif
