/* box_pool.c - see box_pool.h. */
#include "box_pool.h"
#include "limits/box_limit.h"
#include "log.h"

enum {
    POOL_MAX = 64,
    QUIET_MS = 60, /* since anybody last wanted anything: a cell often follows an open within milliseconds */
    PRIME_MS = 15,
    AGAIN_MS = 1000,
    AGAIN_MAX = 6, /* doublings */
};

static bool same_terms(const struct box_terms *a, const struct box_terms *b)
{
    return a->memory_bytes == b->memory_bytes && a->disk_bytes == b->disk_bytes && a->pids == b->pids &&
           a->cpu_pct == b->cpu_pct && a->copies == b->copies;
}

static uint32_t waiting(const struct box_keeper *k)
{
    uint32_t n = 0;
    const struct box_session *s;
    LIST_FOREACH (s, &k->sessions.busy, roll.busy)
        n += s->pooled && s->state != BOX_ST_CLOSE;
    return n;
}

void box_pool_clear(struct box_keeper *k)
{
    BOX_ROLL_EACH (s, &k->sessions.busy, busy)
        if (s->pooled)
            box_session_close(s);
}

void box_pool_set(struct box_keeper *k, const struct json *wish)
{
    struct box_pool *p = &k->pool;
    int64_t n = json_int_or(wish, "boxes", 0);
    const struct box_terms terms = box_terms_from(wish);
    if (!same_terms(&terms, &p->terms))
        box_pool_clear(k);
    p->terms = terms;
    p->wanted = (uint32_t)(n < 0 ? 0 : n > POOL_MAX ? POOL_MAX : n);
    if (p->wanted == 0)
        box_pool_clear(k);
}

static bool is_sound(const struct box_session *s)
{
    return s->state != BOX_ST_CLOSE && (s->state != BOX_ST_IDLE || !box_limit_has_ended(s->head.pidfd));
}

/* Ready ones first, of these the oldest. */
static struct box_session *best(const struct box_keeper *k, const struct box_terms *terms)
{
    struct box_session *s, *found = NULL;
    LIST_FOREACH (s, &k->sessions.busy, roll.busy)
        if (s->pooled && is_sound(s) && same_terms(&s->terms, terms) &&
            (!found || s->state == BOX_ST_IDLE || found->state != BOX_ST_IDLE))
            found = s;
    return found;
}

struct box_session *box_pool_take(struct box_keeper *k, uint32_t id, const struct box_terms *terms, int files_fd)
{
    struct box_session *s = best(k, terms);
    if (s) {
        log_debug("box_from_pool", KV_I("session", id), KV_I("serial", s->serial));
        box_session_hand_out(s, id, files_fd);
    }
    return s;
}

void box_pool_failed(struct box_keeper *k)
{
    struct box_pool *p = &k->pool;
    p->again_ms = time_mono_ms() + ((int64_t)AGAIN_MS << p->failures);
    if (p->failures < AGAIN_MAX)
        p->failures++;
}

bool box_pool_is_quiet(const struct box_keeper *k)
{
    const struct box_session *s;
    LIST_FOREACH (s, &k->sessions.busy, roll.busy)
        if (!s->pooled && (s->opening || s->request.id != 0 || (s->state != BOX_ST_IDLE && s->state != BOX_ST_CLOSE)))
            return false;
    return true;
}

/* One at a time: building one keeps the keeper busy for some milliseconds. */
static bool is_making(const struct box_keeper *k)
{
    const struct box_session *s;
    LIST_FOREACH (s, &k->sessions.busy, roll.busy)
        if (s->pooled && s->state != BOX_ST_IDLE && s->state != BOX_ST_CLOSE)
            return true;
    return false;
}

int64_t box_pool_tick(struct box_keeper *k, int64_t now_ms, bool quiet)
{
    struct box_pool *p = &k->pool;
    struct err e;
    if (!quiet || k->stopping || k->refused || !k->zygotes.now || waiting(k) >= p->wanted || is_making(k))
        return INT64_MAX;
    int64_t due = k->wanted_ms + QUIET_MS > p->again_ms ? k->wanted_ms + QUIET_MS : p->again_ms;
    if (now_ms < due)
        return due;
    if (now_ms > p->primed_ms + 2 * (int64_t)PRIME_MS) {
        box_primer_order(&k->cgroups.primer);
        p->primed_ms = now_ms;
    }
    if (now_ms < p->primed_ms + PRIME_MS)
        return p->primed_ms + PRIME_MS;
    if (box_session_make(k, 0, &p->terms, &e)) {
        p->failures = 0;
        return INT64_MAX; /* its head's first word brings us back here */
    }
    log_warn("box_pool", KV_E(&e));
    box_pool_failed(k);
    return p->again_ms;
}
