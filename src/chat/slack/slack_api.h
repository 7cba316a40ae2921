/* slack_api.h - Web API calls: form-encoded, limited per method and channel, repeated where that is safe.
 *
 * A reply is ok only when the body says so: most refusals come with status 200. What Slack asks to wait for is waited for,
 * for that method and workspace alone. A call that creates a message is not repeated after a failure that leaves open whether
 * it took effect: then `uncertain` is set, and the caller looks first. */
#ifndef SLACK_API_H
#define SLACK_API_H
#include "http.h"
#include "json.h"
#include "loop.h"

struct slack_api;
struct slack_teams;
struct slack_call;

/* One installation: whose token it is and who we are there. Owned by slack_teams.c; lives as long as the adapter. */
struct slack_team {
    struct slack_team *next;
    struct slack_teams *owner;
    char *team, *enterprise; /* ids; team NULL in an organisation-wide installation; enterprise NULL: none */
    char *token;
    char *renewal;    /* refresh token; NULL: the token does not rotate */
    struct json *row; /* of installs_file, with what others keep there; NULL: none */
    loop_timer again; /* who we are is asked once more */
    int64_t expires_ms;
    char *user, *bot, *app, *name; /* U, B and A ids from auth.test; the bot's name */
    bool ready, gone, renewing;
    unsigned renewals; /* how often the token has changed */
    /* features that this workspace refused: not tried before */
    int64_t no_agent_until_ms, no_status_until_ms, no_stream_until_ms;
};

struct slack_reply {
    const struct json *body; /* NULL: none came */
    const char *error;       /* Slack's code; NULL: ok */
    const char *scopes;      /* x-oauth-scopes; NULL: not said */
    const struct err *err;   /* NULL: ok. ERR_REFUSED: permanent; ERR_CONFIG: token or scope */
    bool uncertain;          /* it may have taken effect */
};

typedef void slack_reply_fn(void *ud, const struct slack_reply *r); /* everything in r is borrowed */

struct slack_request {
    const char *method;
    struct slack_team *team; /* whose token; NULL: `token` */
    const char *token;
    const char *channel; /* it writes a message there; NULL: it writes none */
    struct str *form;    /* taken; NULL: empty */
    const char *header;  /* instead of the token: an Authorization of one's own */
    int tries;           /* 0: 5 */
};

/* url: ends with a slash. renew: called when a token turns out to be expired; sets team->renewing. */
struct slack_api *slack_api_new(struct loop *l, struct http *h, const char *url, const char *own_team,
                                void (*renew)(void *ud, struct slack_team *t), void *ud);
void slack_api_free(struct slack_api *a); /* cancels what runs; NULL is fine */
struct slack_call *slack_api_start(struct slack_api *a, const struct slack_request *r, slack_reply_fn *fn, void *ud);
void slack_api_cancel(struct slack_call *c); /* no callback; NULL is fine; never after the callback */

/* key=value, percent-encoded; NULL value: left out. */
void slack_form_add(struct str *form, const char *key, const char *value);
void slack_form_add_json(struct str *form, const char *key, const struct json *value);
void slack_form_add_int(struct str *form, const char *key, int64_t value);
enum { SLACK_FORM_MAX = 1 << 20 };

enum slack_class {
    SLACK_WAIT,      /* later, as asked */
    SLACK_TRANSIENT, /* again, with pauses */
    SLACK_REFUSED,   /* never */
    SLACK_PAYLOAD,   /* never like this: the next rung */
    SLACK_AUTH,      /* token or scope */
    SLACK_FEATURE,   /* not in this workspace */
    SLACK_BENIGN,    /* as good as done */
};
enum slack_class slack_error_class(const char *code);
/* The workspace has it not: nothing that is about one thread or channel, nor a bad moment of Slack's. */
bool slack_lacks_feature(const struct slack_reply *r);
#endif
