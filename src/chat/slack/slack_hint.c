/* slack_hint.c - a question was taken: said at once, by Slack's own status under the thread, long before the core has a line to show.
 *
 * It needs no end of its own: Slack takes it away with the next message in the thread, and a line of the core's replaces it. So it must
 * not come behind either: what is still on its way then is given up. */
#include <string.h>
#include "slack_out_private.h"

static const char words[] = "is thinking…";

enum { LATCH_MS = 3600000, HINTS_MAX = 50 };

struct slack_hint {
    struct slack_hint *next;
    struct slack_out *o;
    char *room, *thread;
    struct slack_team *team;
    struct slack_call *call;
};

static void hint_free(struct slack_hint *h)
{
    struct slack_hint **at = &h->o->hints;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    slack_api_cancel(h->call);
    free(h->room);
    free(h->thread);
    free(h);
}

static struct slack_hint *find(const struct slack_out *o, const char *room, const char *thread)
{
    struct slack_hint *h = o->hints;
    while (h && (strcmp(h->room, room) != 0 || strcmp(h->thread, thread) != 0))
        h = h->next;
    return h;
}

void hint_end(struct slack_out *o, const char *room, const char *thread)
{
    struct slack_hint *h = thread ? find(o, room, thread) : NULL;
    if (h)
        hint_free(h);
}

void hint_free_all(struct slack_out *o)
{
    while (o->hints)
        hint_free(o->hints);
}

static void on_shown(void *ud, const struct slack_reply *r)
{
    struct slack_hint *h = ud;
    h->call = NULL;
    if (slack_lacks_feature(r))
        h->team->no_agent_until_ms = time_unix_ms() + LATCH_MS;
    hint_free(h);
}

static bool is_wanted(const struct slack_out *o, const struct place *p)
{
    const char *mode = o->conf->slack_status;
    return p->root && !o->conf->slack_streaming && strcmp(mode, "message") != 0 && strcmp(mode, "none") != 0 &&
           p->team->no_agent_until_ms <= time_unix_ms();
}

static void show(struct slack_out *o, const struct place *p, const char *room, const char *thread)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    struct slack_hint *h = xcalloc(1, sizeof(*h));
    *h = (struct slack_hint){
        .next = o->hints, .o = o, .room = xstrdup(room), .thread = xstrdup(thread), .team = p->team
    };
    o->hints = h;
    slack_form_add(&form, "channel_id", p->channel);
    slack_form_add(&form, "thread_ts", p->root);
    slack_form_add(&form, "status", words);
    const struct slack_request r = {
        .method = "assistant.threads.setStatus", .team = p->team, .form = &form, .tries = 1
    };
    h->call = slack_api_start(o->c.api, &r, on_shown, h);
}

void slack_out_hint(struct slack_out *o, const char *room, const char *thread)
{
    size_t n = 0;
    struct place p = { 0 };
    for (const struct slack_hint *h = o->hints; h; h = h->next)
        n++;
    if (!o->begun || n >= HINTS_MAX || find(o, room, thread) || slack_status_shown(o, room, thread))
        return; /* under pressure, nothing that may as well be left out */
    if (place_of(o, room, thread, &p) && is_wanted(o, &p))
        show(o, &p, room, thread);
    slack_place_clear(&p);
}
