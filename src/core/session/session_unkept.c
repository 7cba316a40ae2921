/* session_unkept.c - what could not be made durable: a disk that is full, a database that does not answer.
 *
 * A message that cannot be kept is refused to its platform, which brings it again, and its room is told. A turn that was answered
 * all the same is kept when there is room; until then it is here, and goes with a program that is killed meanwhile: the next life
 * tells its room that it was cut off, under the answer's key. */
#include <string.h>
#include "log.h"
#include "session_private.h"

enum { AGAIN_MS = 10000, TELL_MS = 600000 };

struct unkept_turn {
    struct unkept_turn *next;
    struct turn_row row;
    struct outbox_item answer;
};

struct unkept_room {
    char *key;
    int64_t told_ms;
};

/* ---- messages ---- */

static void room_free(void *room)
{
    free(((struct unkept_room *)room)->key);
    free(room);
}

static bool was_told(struct session_hub *h, const char *room)
{
    const int64_t now = loop_now_ms(h->parts.loop);
    struct unkept_room *u = map_get(&h->unkept_rooms, room);
    if (u && now - u->told_ms < TELL_MS)
        return true;
    if (!u) {
        u = xcalloc(1, sizeof(*u));
        u->key = xstrdup(room);
        map_put(&h->unkept_rooms, u->key, u);
    }
    u->told_ms = now;
    return false;
}

static void on_told(void *ud, const struct err *e)
{
    (void)ud;
    if (e)
        log_warn("notice_not_posted", KV_E(e));
}

int unkept_message(struct hub_chat *c, const struct chat_event *ev, const struct err *why)
{
    struct err e = { 0 };
    log_error("event_not_kept", KV_S("platform", c->ops->name), KV_S("event", ev->id), KV_E(why));
    if ((!ev->mentioned && !ev->direct) || was_told(c->hub, ev->room))
        return -1;
    autofree char *txn = xasprintf("%s:%s:unkept", c->ops->name, ev->id);
    autofree char *text = words(WORD_NOT_TAKEN, words_language(ev->text ? ev->text : ""), NULL, NULL);
    const struct chat_post p = {
        .type = CHAT_NOTICE, .txn = txn, .room = ev->room, .thread = ev->thread, .reply_to = ev->id, .markdown = text
    };
    if (c->ops->post(c->chat, &p, on_told, NULL, &e) < 0)
        on_told(NULL, &e);
    return -1;
}

void unkept_message_over(struct session_hub *h)
{
    if (h->unkept_rooms.n)
        map_clear(&h->unkept_rooms, room_free);
}

/* ---- turns ---- */

static void turn_clear(struct unkept_turn *u)
{
    turn_row_clear(&u->row);
    outbox_item_clear(&u->answer);
    free(u);
}

static bool keep(struct session_hub *h, struct unkept_turn *u)
{
    struct err e = { 0 };
    int64_t id = 0;
    if (store_turn_end(h->parts.store, &u->row, &u->answer, &id, &e) < 0)
        return false;
    if (!delivery_is_kept(h, u->answer.txn, id) && store_outbox_sent(h->parts.store, id, &e) < 0)
        log_error("outbox_not_marked", KV_S("txn", u->answer.txn), KV_E(&e));
    log_info("turn_kept", KV_I("turn", u->row.id));
    return true;
}

static void again(void *hub)
{
    struct session_hub *h = hub;
    h->unkept_timer = 0;
    while (h->unkept_turns && keep(h, h->unkept_turns)) {
        struct unkept_turn *u = h->unkept_turns;
        h->unkept_turns = u->next;
        turn_clear(u);
    }
    if (h->unkept_turns)
        h->unkept_timer = loop_after(h->parts.loop, AGAIN_MS, again, h);
}

void unkept_turn(struct session_hub *h, struct turn_row *take_row, const struct outbox_item *answer)
{
    struct unkept_turn *u = xcalloc(1, sizeof(*u)), **end = &h->unkept_turns;
    u->row = *take_row;
    *take_row = (struct turn_row){ 0 };
    outbox_item_copy(&u->answer, answer);
    while (*end)
        end = &(*end)->next;
    *end = u;
    if (!h->unkept_timer)
        h->unkept_timer = loop_after(h->parts.loop, AGAIN_MS, again, h);
}

void unkept_drop(struct session_hub *h, const char *session)
{
    for (struct unkept_turn **at = &h->unkept_turns; *at;) {
        struct unkept_turn *u = *at;
        if (strcmp(u->answer.session, session) != 0) {
            at = &u->next;
            continue;
        }
        *at = u->next;
        turn_clear(u);
    }
}

void unkept_free(struct session_hub *h)
{
    if (h->unkept_turns)
        again(h); /* the last try */
    loop_cancel(h->parts.loop, h->unkept_timer);
    while (h->unkept_turns) {
        struct unkept_turn *u = h->unkept_turns;
        h->unkept_turns = u->next;
        turn_clear(u);
    }
    map_clear(&h->unkept_rooms, room_free);
}
