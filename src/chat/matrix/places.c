/* places.c - which thread an event belongs to, and which question an answer of ours answers: what edits, replies and reactions refer to. */
#include <string.h>
#include "json.h"
#include "matrix.h"

enum { PLACE_MAX = 4096 };

void place_clear(struct place *p)
{
    free(p->thread);
    free(p->answers);
    free(p->by);
    *p = (struct place){ 0 };
}

static char *member(const struct json *j, const char *key)
{
    const char *text = json_str_or(j, key, NULL);
    return xstrdup_or_null(text);
}

int matrix_place_get(struct chat *c, const char *event, struct place *out, bool *found, struct err *e)
{
    const struct kept k = { MATRIX_PLATFORM, "place", event };
    autofree char *text = NULL;
    autojson struct json *j = NULL;
    size_t n = 0;
    *out = (struct place){ 0 };
    *found = false;
    if (store_kept(c->store, &k, &text, &n, e) < 0)
        return -1;
    if (!text)
        return 0;
    if (json_parse(&j, text, n, PLACE_MAX, e) < 0)
        return -1;
    *found = true;
    out->thread = member(j, "thread");
    out->answers = member(j, "answers");
    out->by = member(j, "by");
    return 0;
}

int matrix_place_keep(struct chat *c, const char *event, const struct place *p, struct err *e)
{
    const struct kept k = { MATRIX_PLATFORM, "place", event };
    AUTO(str_clear) struct str text = STR_INIT(PLACE_MAX);
    autojson struct json *j = json_new_object();
    if (p->thread)
        json_set_str(j, "thread", p->thread);
    if (p->answers)
        json_set_str(j, "answers", p->answers);
    if (p->by)
        json_set_str(j, "by", p->by);
    json_set_int(j, "ms", time_unix_ms());
    json_print(&text, j);
    return store_keep(c->store, &k, str_peek(&text), text.len, e);
}

static char *thread_key(const char *room, const char *root)
{
    return xasprintf("%s %s", room, root);
}

int matrix_thread_keep(struct chat *c, const char *room, const char *root, struct err *e)
{
    autofree char *key = thread_key(room, root);
    const struct kept k = { MATRIX_PLATFORM, "thread", key };
    autofree char *now = xasprintf("%lld", (long long)time_unix_ms()); /* its last use: prune.c */
    return store_keep(c->store, &k, now, strlen(now), e);
}

int matrix_thread_known(struct chat *c, const char *room, const char *root, bool *known, struct err *e)
{
    autofree char *key = thread_key(room, root), *value = NULL;
    const struct kept k = { MATRIX_PLATFORM, "thread", key };
    size_t n = 0;
    const int rc = store_kept(c->store, &k, &value, &n, e);
    *known = value != NULL;
    return rc;
}
