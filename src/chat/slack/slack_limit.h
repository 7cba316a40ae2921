/* slack_limit.h - how fast each method may be called, and each channel be written to. Pure: the time is an argument.
 *
 * Slack counts per method, workspace and minute, and messages per channel and second. A slot is reserved when it is asked
 * for, so waiting calls go in the order they came. */
#ifndef SLACK_LIMIT_H
#define SLACK_LIMIT_H
#include "base.h"

struct slack_limit; /* all buckets; grows with what is used, forgets what is idle */

struct slack_limit *slack_limit_new(void);
void slack_limit_free(struct slack_limit *l);
/* Milliseconds from now_ms until this call may go; its slot is taken. channel NULL: it writes no message. */
int64_t slack_limit_take(struct slack_limit *l, const char *team, const char *method, const char *channel,
                         int64_t now_ms);
/* The platform said how long: nothing of this method and workspace before. */
void slack_limit_park(struct slack_limit *l, const char *team, const char *method, int64_t until_ms);
/* Until then it is parked; 0: it is not. */
int64_t slack_limit_parked(struct slack_limit *l, const char *team, const char *method, int64_t now_ms);
#endif
