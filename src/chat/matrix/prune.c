/* prune.c - rows that nobody asks for any more go: once a day, a slice in each round, so that nothing waits.
 *
 *   place, thread   not touched for half a year: a reply to such a message begins a conversation of its own, a thread wants a mention
 *   deleted         the same: what waited for its keys so long is never read
 *   sent            the same, unless its answer still waits to be sent: it is what keeps an answer from being said twice
 *   sealed          what was encrypted for an answer that no longer waits
 *   e2ee_index      crypto_prune(): one row in place of many, which refuses all that those would have */
#include <string.h>
#include "e2ee.h"
#include "json.h"
#include "log.h"
#include "outbox.h"

enum {
    FIRST_MS = 600000, /* after the start there is more urgent work */
    SLICE_MS = 50,
    DAY_MS = 86400000,
    VALUE_MAX = 64 << 10,
    FROM_CHAR = '!', /* of keys: those of one first letter are a slice */
    TO_CHAR = '~',
};
static const int64_t keep_ms = INT64_C(180) * DAY_MS, keep_index_ms = INT64_C(90) * DAY_MS;

struct slice {
    const struct chat *c;
    const struct prune *p;
    const char *kind;
    int64_t now_ms;
    char **old, **undated; /* keys */
    size_t old_n, old_cap, undated_n, undated_cap;
};

/* ---- which ---- */

static bool waits(const struct slice *s, const char *key, size_t n)
{
    for (size_t i = 0; i < s->p->open_n; i++)
        if (strncmp(s->p->open[i], key, n) == 0 && !s->p->open[i][n])
            return true;
    for (const struct job *job = s->c->outbox ? s->c->outbox->jobs : NULL; job; job = job->next)
        if (strncmp(job->txn, key, n) == 0 && !job->txn[n])
            return true;
    return false;
}

/* A sealed message's key is its job's with ".N" and more behind it: no job's own key may be cut short by that. */
static bool sealed_waits(const struct slice *s, const char *key)
{
    for (const char *dot = strchr(key, '.'); dot; dot = strchr(dot + 1, '.'))
        if (waits(s, key, (size_t)(dot - key)))
            return true;
    return false;
}

static int64_t date_of(const char *value, size_t n)
{
    autojson struct json *j = NULL;
    struct err broken = { 0 };
    if (*value != '{')
        return strtoll(value, NULL, 10);
    return json_parse(&j, value, n, VALUE_MAX, &broken) < 0 ? 0 : json_int_or(j, "ms", 0);
}

static void note(char ***list, size_t *n, size_t *cap, const char *key)
{
    *list = xgrow(*list, cap, *n + 1, sizeof(char *));
    (*list)[(*n)++] = xstrdup(key);
}

static int look(void *ud, const char *key, const char *value, size_t n)
{
    struct slice *s = ud;
    if (strcmp(s->kind, "sealed") == 0) {
        if (!sealed_waits(s, key))
            note(&s->old, &s->old_n, &s->old_cap, key);
        return 0;
    }
    const int64_t ms = date_of(value, n);
    if (ms <= 1) /* from before rows had dates */
        note(&s->undated, &s->undated_n, &s->undated_cap, key);
    else if (s->now_ms - ms > keep_ms && !(strcmp(s->kind, "sent") == 0 && waits(s, key, strlen(key))))
        note(&s->old, &s->old_n, &s->old_cap, key);
    return 0;
}

static void slice_clear(struct slice *s)
{
    for (size_t i = 0; i < s->old_n; i++)
        free(s->old[i]);
    for (size_t i = 0; i < s->undated_n; i++)
        free(s->undated[i]);
    free(s->old);
    free(s->undated);
}

/* ---- and what becomes of them ---- */

static int date(const struct slice *s, const char *key, struct err *e)
{
    const struct kept k = { MATRIX_PLATFORM, s->kind, key };
    AUTO(str_clear) struct str out = STR_INIT(VALUE_MAX);
    autojson struct json *j = NULL;
    autofree char *text = NULL;
    size_t n = 0;
    struct err broken = { 0 };
    if (store_kept(s->c->store, &k, &text, &n, e) < 0)
        return -1;
    if (text && *text == '{' && json_parse(&j, text, n, VALUE_MAX, &broken) < 0)
        return store_unkeep(s->c->store, &k, e); /* nobody can read it */
    if (j) {
        json_set_int(j, "ms", s->now_ms);
        json_print(&out, j);
    } else {
        str_printf(&out, "%lld", (long long)s->now_ms);
    }
    return store_keep(s->c->store, &k, str_peek(&out), out.len, e);
}

static int apply(const struct slice *s, struct err *e)
{
    AUTO(store_batch_end) struct store_batch batch = { 0 };
    if (!s->old_n && !s->undated_n)
        return 0;
    if (store_batch_begin(&batch, s->c->store, e) < 0)
        return -1;
    for (size_t i = 0; i < s->old_n; i++) {
        const struct kept k = { MATRIX_PLATFORM, s->kind, s->old[i] };
        if (store_unkeep(s->c->store, &k, e) < 0)
            return -1;
    }
    for (size_t i = 0; i < s->undated_n; i++)
        if (date(s, s->undated[i], e) < 0)
            return -1;
    return store_batch_commit(&batch, e);
}

/* ---- a pass ---- */

static const struct {
    const char *kind, *sigil; /* what every key of it begins with */
} kinds[] = { { "place", "$" }, { "thread", "!" }, { "deleted", "$" },
              { "sent", "" },   { "sealed", "" },  { "e2ee_index", "!" } };

static int slice(struct chat *c, int64_t now_ms, struct err *e)
{
    const struct prune *p = &c->prune;
    autofree char *prefix = xasprintf("%s%c", kinds[p->kind].sigil, p->letter);
    if (strcmp(kinds[p->kind].kind, "e2ee_index") == 0)
        return matrix_e2ee_prune(c, prefix, now_ms - keep_index_ms, e);
    AUTO(slice_clear) struct slice s = { .c = c, .p = p, .kind = kinds[p->kind].kind, .now_ms = now_ms };
    const struct kept some = { MATRIX_PLATFORM, s.kind, prefix };
    return store_kept_each(c->store, &some, look, &s, e) < 0 ? -1 : apply(&s, e);
}

static void forget_open(struct prune *p)
{
    for (size_t i = 0; i < p->open_n; i++)
        free(p->open[i]);
    free(p->open);
    p->open = NULL;
    p->open_n = 0;
}

static int begin(struct chat *c, struct err *e)
{
    struct outbox_item *items = NULL;
    size_t n = 0;
    forget_open(&c->prune);
    if (store_outbox_open(c->store, &items, &n, e) < 0)
        return -1;
    c->prune.open = xcalloc(n + 1, sizeof(char *));
    for (size_t i = 0; i < n; i++) {
        c->prune.open[c->prune.open_n++] = take(items[i].txn);
        outbox_item_clear(&items[i]);
    }
    free(items);
    c->prune.kind = 0;
    c->prune.letter = FROM_CHAR;
    return 0;
}

bool matrix_prune_step(struct chat *c, int64_t now_ms, struct err *e)
{
    struct prune *p = &c->prune;
    if (!p->letter && begin(c, e) < 0)
        return false;
    if (slice(c, now_ms, e) < 0) {
        p->letter = 0;
        return false;
    }
    if (++p->letter <= TO_CHAR)
        return true;
    p->letter = ++p->kind < countof(kinds) ? FROM_CHAR : 0;
    return p->letter != 0;
}

static void on_due(void *ud)
{
    struct chat *c = ud;
    struct err e = { 0 };
    const bool more = matrix_prune_step(c, time_unix_ms(), &e);
    if (e.kind != ERR_NONE)
        log_warn("matrix_prune", KV_E(&e));
    c->prune.timer = loop_after(c->loop, more ? SLICE_MS : DAY_MS, on_due, c);
}

void matrix_prune_start(struct chat *c)
{
    if (!c->prune.timer)
        c->prune.timer = loop_after(c->loop, FIRST_MS, on_due, c);
}

void matrix_prune_stop(struct chat *c)
{
    loop_cancel(c->loop, c->prune.timer);
    forget_open(&c->prune);
}
