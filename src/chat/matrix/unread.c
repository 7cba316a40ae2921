/* unread.c - a person who asks what we can't read would wait for ever: they are told, when the key had its time to come. The words go out under
 * a transaction id made from the event, so that a restart does not say them again. */
#include <string.h>
#include "content.h"
#include "e2ee.h"
#include "event.h"
#include "ids.h"

enum {
    KEY_MS = 30000,        /* a key may come after its message */
    FRESH_MS = 600000,     /* nobody waits for an answer to what is older */
    AGAIN_MS = 60 * 60000, /* in a direct room */
    UNREAD_MAX = 100,
};

struct unread {
    struct unread *next;
    struct chat *c;
    char *room, *event, *root, *code;
    loop_timer timer;
};

static void unread_end(struct unread *u)
{
    struct unread **at = &u->c->e2ee->unread;
    while (*at != u)
        at = &(*at)->next;
    *at = u->next;
    loop_cancel(u->c->loop, u->timer);
    free(u->room);
    free(u->event);
    free(u->root);
    free(u->code);
    free(u);
}

void unread_free_all(struct chat *c)
{
    while (c->e2ee->unread)
        unread_end(c->e2ee->unread);
}

static const char *words_for(const char *code)
{
    if (strcmp(code, "m.unverified") == 0)
        return "I can't read this: your app keeps its keys from my device, because it is not verified. Let the person who runs me "
               "know (`sandbook matrix status`), or allow unverified devices, and write again.";
    if (strcmp(code, "m.blacklisted") == 0)
        return "I can't read this: my device is blocked in your app.";
    return "I can't read this: its key did not reach me. Please send it again.";
}

static bool may_say(const struct room *r, int64_t now)
{
    return r->joined && (!r->told_ms || (matrix_room_is_direct(r) && now - r->told_ms >= AGAIN_MS));
}

static void on_due(void *ud)
{
    struct unread *u = ud;
    struct room *r = matrix_room(u->c, u->room);
    const int64_t now = loop_now_ms(u->c->loop);
    u->timer = 0;
    if (may_say(r, now)) {
        AUTO(markup_freep) struct markup *doc = markup_of_text(words_for(u->code));
        autojson struct json *content = content_text(doc, "m.notice");
        autofree char *txn = xasprintf("unread.%s", u->event);
        r->told_ms = now > 0 ? now : 1;
        content_relate(content, u->root, u->event);
        matrix_send_event(u->c, u->room, "m.room.message", content, txn);
    }
    unread_end(u);
}

static struct unread *find(const struct chat *c, const char *event, size_t *n)
{
    *n = 0;
    for (struct unread *u = c->e2ee->unread; u; u = u->next, ++*n)
        if (strcmp(u->event, event) == 0)
            return u;
    return NULL;
}

static char *root_of(const struct json *event)
{
    struct mx_relation relation;
    mx_relation_read(&relation, json_get(json_get(event, "content"), "m.relates_to"));
    return relation.type == MX_THREAD ? xstrdup(relation.target) : NULL;
}

void unread_note(struct chat *c, const char *room, const struct json *event, const struct crypto_message *m)
{
    const char *id = json_str_or(event, "event_id", "");
    const int64_t age = time_unix_ms() - json_int_or(event, "origin_server_ts", 0);
    size_t n = 0;
    struct unread *u = find(c, id, &n);
    const bool refused = m->utd == CRYPTO_WITHHELD;
    if (!mx_is_event(id) || age > FRESH_MS || n >= UNREAD_MAX)
        return;
    if (!u) {
        u = xcalloc(1, sizeof(*u));
        *u = (struct unread){ .next = c->e2ee->unread, .c = c, .room = xstrdup(room), .event = xstrdup(id) };
        u->root = root_of(event);
        c->e2ee->unread = u;
    } else if (!refused) {
        return;
    }
    free(u->code);
    u->code = xstrdup(m->code ? m->code : "");
    loop_cancel(c->loop, u->timer);
    u->timer = loop_after(c->loop, refused ? 1 : KEY_MS, on_due, u);
}

void unread_opened(struct chat *c, const char *event)
{
    size_t n = 0;
    struct unread *u = find(c, event, &n);
    if (u)
        unread_end(u);
}
