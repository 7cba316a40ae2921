/* slack_text.h - Slack's own notation: from its tokens to words, and words back without a live token in them. Pure.
 *
 * Trust boundary: what is decoded comes from anybody in a channel; what is escaped comes from a model, a file or a person. */
#ifndef SLACK_TEXT_H
#define SLACK_TEXT_H
#include "str.h"

/* How a user id is called; NULL: not known. */
typedef const char *slack_name_fn(void *ud, const char *user);

/* A message's `text` as plain words: <@U1> -> @name, links -> label (url), entities once. What a person typed as &lt;@U1&gt;
 * stays those characters. A mention of `self` at the beginning is left out. */
void slack_text_decode(struct str *out, const char *text, const char *self, slack_name_fn *name, void *ud);
/* True when the text mentions this user. */
bool slack_text_mentions(const char *text, const char *user);
/* The text begins with a mention of a user other than self. */
bool slack_text_is_for_other(const char *text, const char *self);
/* Each user id that is mentioned, once per mention. */
void slack_text_each_user(const char *text, void (*fn)(void *ud, const char *user), void *ud);
/* For `text` and mrkdwn: & < > as entities, @channel and its like made dead. */
void slack_text_escape(struct str *out, const char *text, size_t n);
/* For markdown blocks, which take Markdown: only what Slack would make a mention or a broadcast of is made dead. */
void slack_text_defuse(struct str *out, const char *text, size_t n);
/* How much of Markdown that is still being written may be shown: whole words, whole lines of tables, no token of which the rest is yet
 * to come. What was shown is never taken back, so it only grows with the text. */
size_t slack_text_ready(const char *text, size_t n);
/* True for http, https and mailto addresses that can stand in <url|label>. */
bool slack_text_is_link(const char *url);
#endif
