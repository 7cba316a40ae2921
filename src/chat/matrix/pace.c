/* pace.c - how fast one account may send. The server's limit counts for all rooms together: when it asks for patience nothing is
 * sent until then, and the pace that it seems to want is kept for a while. */
#include <sys/random.h>
#include "log.h"
#include "outbox.h"

enum {
    FLIGHT_MAX = 2,   /* messages on their way, of the whole account */
    CALM_MS = 600000, /* without a complaint: the pace is forgotten */
};

bool outbox_open(struct outbox *o, int64_t *wait_ms)
{
    const int64_t now = loop_now_ms(o->c->loop);
    if (o->pace_ms && now - o->limited_ms > CALM_MS)
        o->pace_ms = 0;
    *wait_ms = o->until_ms - now;
    return *wait_ms <= 0 && o->in_flight < (o->pace_ms ? 1 : FLIGHT_MAX);
}

/* Too fast: the next ones go at the pace that it seems to want. Anything else is for a person to mend, and says nothing of a pace. The wait
 * is counted from now, not from the message before, so it is a little short as a pace. */
static void learn(struct outbox *o, int64_t now, int64_t retry_ms)
{
    retry_ms += retry_ms / 10;
    if (o->pace_ms && now >= o->until_ms)
        o->pace_ms += retry_ms; /* we kept our pace, and it was short by this */
    else if (retry_ms > o->pace_ms)
        o->pace_ms = retry_ms;
    o->limited_ms = now;
}

void outbox_limited(struct outbox *o, const struct api_answer *a)
{
    const int64_t now = loop_now_ms(o->c->loop), retry_ms = a->err.retry_ms;
    unsigned char chance = 0;
    if (getrandom(&chance, 1, 0) != 1)
        chance = 0;
    const int64_t wait = retry_ms + retry_ms * chance / 1280 + 1; /* up to a fifth later */
    if (a->status == 429) {
        log_info("matrix_limited", KV_I("wait_ms", wait));
        learn(o, now, retry_ms);
    } else {
        log_error("matrix_may_not_send", KV_I("wait_ms", wait), KV_E(&a->err));
    }
    o->until_ms = now + wait > o->until_ms ? now + wait : o->until_ms;
}

void outbox_sent_one(struct outbox *o)
{
    const int64_t next = loop_now_ms(o->c->loop) + o->pace_ms;
    if (o->pace_ms && next > o->until_ms)
        o->until_ms = next;
}
