/* slack_teams.h - installations: whose token is whose, who we are there, tokens that rotate; and how people are called.
 *
 * One workspace: bot_token_file. Several: installs_file, a JSON array that this program rewrites whenever a token was
 * renewed, whole or not at all, before the new token is used for the first time. */
#ifndef SLACK_TEAMS_H
#define SLACK_TEAMS_H
#include "slack_api.h"
#include "slack_event.h"

struct conf;
struct slack_teams;

/* Reads the files; ERR_CONFIG: no token, or one that can't be. */
must_check int slack_teams_new(struct slack_teams **out, struct loop *l, const struct conf *conf, struct err *e);
void slack_teams_free(struct slack_teams *t);
/* Asks Slack who we are in each; ready(ud) once all are known or given up. */
void slack_teams_begin(struct slack_teams *t, struct slack_api *api, void (*ready)(void *ud), void *ud);
/* The installation of a payload, or of a place's workspace; NULL: none of ours, or one that is gone. enterprise: the organisation that
 * the workspace is known to be of, or NULL. */
struct slack_team *slack_teams_of(struct slack_teams *t, const struct json *payload);
struct slack_team *slack_teams_named(struct slack_teams *t, const char *workspace, const char *enterprise);
/* For slack_api_new. */
void slack_teams_renew(void *ud, struct slack_team *team);
struct slack_self slack_team_self(const struct slack_team *team);

/* ---- people ---- */
/* How a user is called; NULL: not asked yet. Borrowed until the next call. */
const char *slack_people_name(struct slack_teams *t, const struct slack_team *team, const char *user);
/* Where the organisation has installed the app for all its workspaces: the user is none of theirs, or it is not known whether. */
bool slack_people_is_outside(struct slack_teams *t, const struct slack_team *team, const char *user);
/* Asks for those that are not known: fn(ud) once, maybe at once; never later than a few seconds. */
void slack_people_ask(struct slack_teams *t, struct slack_team *team, const char *const *users, size_t n,
                      void (*fn)(void *ud), void *ud);
void slack_people_forget(struct slack_teams *t, void *ud); /* no callback for that ud any more */
#endif
