/* slack_teams_private.h - what slack_teams.c and slack_people.c share. */
#ifndef SLACK_TEAMS_PRIVATE_H
#define SLACK_TEAMS_PRIVATE_H
#include "loop.h"
#include "map.h"
#include "slack_teams.h"

struct people_wait;

struct slack_teams {
    struct loop *loop;
    const struct conf *conf;
    struct slack_api *api;
    struct slack_team *teams;
    char *client_secret;
    size_t asking; /* installations whose auth.test is on its way */
    void (*on_ready)(void *ud);
    void *ready_ud;
    loop_timer renew_timer;
    bool unkept;       /* a pair of tokens is not in the file yet */
    struct map people; /* struct person by "team/user", the one known longest first */
    struct people_wait *waits;
};

void people_free(struct slack_teams *t);
#endif
