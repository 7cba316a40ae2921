/* talk.c - messages that become fewer, never half. */
#include "talk.h"
#include <string.h>

enum { SHORT_BYTES = 200 }; /* results up to this much beside the words that replace them stay */

void talk_clear(struct talk *t)
{
    transcript_clear(&t->msgs);
    free(t->turns);
    *t = (struct talk){ 0 };
}

void talk_copy(struct talk *out, const struct talk *t)
{
    transcript_copy(&out->msgs, &t->msgs, 0, t->msgs.n);
    out->turns = xgrow(out->turns, &out->turn_cap, t->turn_n + 1, sizeof(*out->turns));
    for (size_t i = 0; i < t->turn_n; i++)
        out->turns[i] = t->turns[i];
    out->turn_n = t->turn_n;
    out->turn_at = t->turn_at;
}

/* ---- turns ---- */

void talk_add_turn(struct talk *t, const struct transcript *turn, int64_t id, const char *gap)
{
    struct transcript copy = { 0 };
    transcript_copy(&copy, turn, 0, turn->n);
    transcript_sanitize(&copy, gap);
    if (copy.n == 0 || copy.at[0].role != MODEL_USER) {
        transcript_clear(&copy);
        return;
    }
    if (copy.at[copy.n - 1].role != MODEL_ASSISTANT)
        transcript_add(&copy, MODEL_ASSISTANT, gap); /* roles alternate, whatever a crash left */
    t->turns = xgrow(t->turns, &t->turn_cap, t->turn_n + 1, sizeof(*t->turns));
    t->turns[t->turn_n++] = (struct talk_turn){ .at = t->msgs.n, .id = id };
    transcript_take(&t->msgs, &copy);
    t->turn_at = t->msgs.n;
}

size_t talk_turn_end(const struct talk *t, size_t i)
{
    return i + 1 < t->turn_n ? t->turns[i + 1].at : t->turn_at;
}

size_t talk_old_turns(const struct talk *t)
{
    return t->turn_n > TALK_KEPT_TURNS ? t->turn_n - TALK_KEPT_TURNS : 0;
}

/* Takes messages [from, to) out and moves what lies behind. */
static void cut(struct talk *t, size_t from, size_t to)
{
    struct transcript *m = &t->msgs;
    for (size_t i = from; i < to; i++)
        model_msg_clear(&m->at[i]);
    memmove(&m->at[from], &m->at[to], (m->n - to) * sizeof(*m->at));
    m->n -= to - from;
    for (size_t i = 0; i < t->turn_n; i++)
        t->turns[i].at -= t->turns[i].at >= to ? to - from : 0;
    t->turn_at -= t->turn_at >= to ? to - from : 0;
}

void talk_drop_turns(struct talk *t, size_t n)
{
    if (n == 0)
        return;
    cut(t, t->turns[0].at, talk_turn_end(t, n - 1));
    t->turn_n -= n;
    memmove(t->turns, t->turns + n, t->turn_n * sizeof(*t->turns));
}

static void insert(struct talk *t, size_t at, enum model_role role, const char *text)
{
    struct transcript *m = &t->msgs;
    transcript_add(m, role, text);
    const struct model_msg added = m->at[m->n - 1];
    memmove(&m->at[at + 1], &m->at[at], (m->n - 1 - at) * sizeof(*m->at));
    m->at[at] = added;
    for (size_t i = 0; i < t->turn_n; i++)
        t->turns[i].at++;
    t->turn_at++;
}

void talk_note(struct talk *t, size_t n, const char *notes, const char *taken)
{
    talk_drop_turns(t, n);
    cut(t, 1, t->turn_n ? t->turns[0].at : t->turn_at); /* earlier notes */
    insert(t, 1, MODEL_USER, notes);
    insert(t, 2, MODEL_ASSISTANT, taken);
}

/* ---- results ---- */

static bool worked(const struct transcript *t, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (t->at[i].role == MODEL_TOOL && !t->at[i].failed)
            return true;
    return false;
}

static size_t results_end(const struct transcript *t, size_t i, size_t to)
{
    for (i++; i < to && t->at[i].role == MODEL_TOOL; i++)
        ;
    return i;
}

/* The first message of a program in [from, to) that failed and that a later one there replaced; `to` when there is none. */
static size_t find_failure(const struct transcript *t, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        const size_t end = results_end(t, i, to);
        if (t->at[i].role == MODEL_ASSISTANT && t->at[i].call_n && !worked(t, i, end) && worked(t, end, to))
            return i;
    }
    return to;
}

static bool shorten_one(struct model_msg *m, const char *gone)
{
    const size_t n = strcspn(m->text, "\n");
    if (strlen(m->text) <= n + strlen(gone) + SHORT_BYTES)
        return false;
    char *brief = xasprintf("%.*s\n%s", (int)n, m->text, gone);
    free(m->text);
    m->text = brief;
    return true;
}

static void shorten_results(struct transcript *t, size_t from, size_t to, size_t keep, const char *gone)
{
    for (size_t i = to; i-- > from;) {
        if (t->at[i].role != MODEL_TOOL)
            continue;
        if (keep)
            keep--;
        else
            (void)shorten_one(&t->at[i], gone);
    }
}

void talk_shorten_turns(struct talk *t, size_t n, const char *gone)
{
    for (size_t k = 0; k < n; k++) {
        for (size_t at = find_failure(&t->msgs, t->turns[k].at, talk_turn_end(t, k)); at < talk_turn_end(t, k);
             at = find_failure(&t->msgs, t->turns[k].at, talk_turn_end(t, k)))
            cut(t, at, results_end(&t->msgs, at, talk_turn_end(t, k)));
        shorten_results(&t->msgs, t->turns[k].at, talk_turn_end(t, k), 0, gone);
    }
}

void talk_shorten_this(struct talk *t, size_t keep, const char *gone)
{
    shorten_results(&t->msgs, t->turn_at, t->msgs.n, keep, gone);
}

void transcript_shorten(struct transcript *t, const char *gone)
{
    struct talk whole = { .msgs = *t, .turn_at = t->n };
    whole.turns = xcalloc(1, sizeof(*whole.turns));
    whole.turn_n = whole.turn_cap = 1;
    talk_shorten_turns(&whole, 1, gone);
    *t = whole.msgs;
    free(whole.turns);
}
