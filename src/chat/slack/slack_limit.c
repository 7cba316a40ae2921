/* Buckets by the generic cell rate algorithm: one number, when the next slot would be due if all before had come evenly. */
#include "slack_limit.h"
#include <string.h>

enum { BUCKETS_MAX = 4096 };

struct bucket {
    struct bucket *next;
    char *key;
    int64_t due_ms, parked_ms;
};

struct slack_limit {
    struct bucket *buckets;
    size_t n;
};

struct rate {
    int64_t every_ms, burst;
};

/* Four fifths of what Slack documents: others use the same app. A method that is not here has tier 3. */
static const struct {
    const char *method;
    int tier;
} tiers[] = {
    { "agents.sessions.rename", 3 },
    { "agents.sessions.setStatus", 3 },
    { "apps.connections.open", 3 },
    { "assistant.threads.setStatus", 5 },
    { "assistant.threads.setSuggestedPrompts", 4 },
    { "assistant.threads.setTitle", 4 },
    { "auth.test", 5 },
    { "chat.appendStream", 4 },
    { "chat.postEphemeral", 4 },
    { "chat.postMessage", 5 }, /* per channel */
    { "chat.startStream", 2 },
    { "chat.stopStream", 2 },
    { "conversations.history", 2 }, /* tier 3; only used to catch up, which has time */
    { "files.completeUploadExternal", 4 },
    { "files.getUploadURLExternal", 4 },
    { "files.info", 4 },
    { "oauth.v2.access", 5 },
    { "reactions.remove", 2 },
    { "users.info", 4 },
};

static const struct rate rates[] = {
    [2] = { 3750, 5 },
    [3] = { 1500, 10 },
    [4] = { 750, 20 },
    [5] = { 100, 50 },
};
static const struct rate channel_rate = { 1000, 3 };

struct slack_limit *slack_limit_new(void)
{
    return xcalloc(1, sizeof(struct slack_limit));
}

static void drop_idle(struct slack_limit *l, int64_t now_ms, bool all)
{
    for (struct bucket **at = &l->buckets; *at;) {
        struct bucket *b = *at;
        if (!all && (b->due_ms > now_ms || b->parked_ms > now_ms)) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        free(b->key);
        free(b);
        l->n--;
    }
}

void slack_limit_free(struct slack_limit *l)
{
    if (l)
        drop_idle(l, 0, true);
    free(l);
}

static struct bucket *bucket(struct slack_limit *l, const char *team, const char *what, int64_t now_ms)
{
    autofree char *key = xasprintf("%s %s", team, what);
    struct bucket *b = l->buckets;
    while (b && strcmp(b->key, key) != 0)
        b = b->next;
    if (b)
        return b;
    if (l->n >= BUCKETS_MAX)
        drop_idle(l, now_ms, false);
    b = xcalloc(1, sizeof(*b));
    *b = (struct bucket){ .next = l->buckets, .key = take(key) };
    l->buckets = b;
    l->n++;
    return b;
}

static const struct rate *rate_of(const char *method)
{
    for (size_t i = 0; i < countof(tiers); i++)
        if (strcmp(tiers[i].method, method) == 0)
            return &rates[tiers[i].tier];
    return &rates[3];
}

static int64_t when(const struct bucket *b, const struct rate *r, int64_t now_ms)
{
    const int64_t at = b->due_ms - (r->burst - 1) * r->every_ms;
    return at > now_ms ? at : now_ms;
}

static void reserve(struct bucket *b, const struct rate *r, int64_t at_ms)
{
    b->due_ms = (b->due_ms > at_ms ? b->due_ms : at_ms) + r->every_ms;
}

int64_t slack_limit_take(struct slack_limit *l, const char *team, const char *method, const char *channel,
                         int64_t now_ms)
{
    const struct rate *r = rate_of(method);
    struct bucket *m = bucket(l, team, method, now_ms), *c = channel ? bucket(l, team, channel, now_ms) : NULL;
    int64_t at = when(m, r, now_ms);
    if (c && when(c, &channel_rate, now_ms) > at)
        at = when(c, &channel_rate, now_ms);
    reserve(m, r, at);
    if (c)
        reserve(c, &channel_rate, at);
    return at - now_ms;
}

void slack_limit_park(struct slack_limit *l, const char *team, const char *method, int64_t until_ms)
{
    struct bucket *b = bucket(l, team, method, until_ms);
    b->parked_ms = until_ms > b->parked_ms ? until_ms : b->parked_ms;
}

int64_t slack_limit_parked(struct slack_limit *l, const char *team, const char *method, int64_t now_ms)
{
    const struct bucket *b = bucket(l, team, method, now_ms);
    return b->parked_ms > now_ms ? b->parked_ms : 0;
}
