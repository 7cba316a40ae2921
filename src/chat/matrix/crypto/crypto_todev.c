/* crypto_todev.c - messages to single devices: kept until the server has them, under one transaction id; and those that come. */
#include <inttypes.h>
#include "crypto_private.h"

static int sent(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e)
{
    struct room *room = NULL;
    (void)status, (void)body; /* refused for good: what is in it can't go out any other way */
    if (r->room) {
        if (room_get(c, r->room, &room, e) < 0)
            return -1;
        room->sending -= room->sending > 0;
    }
    return kept_drop(c, "e2ee_todev", json_text(r->data), e);
}

static int queue(struct crypto *c, const char *key, const struct json *row, struct err *e)
{
    const char *room = json_str_or(row, "room", NULL);
    struct room *waits = NULL;
    char *path =
        url_path("/_matrix/client/v3/sendToDevice/%/%", json_str_or(row, "type", ""), json_str_or(row, "txn", ""));
    struct req *r = req_add(c, "to_device", "PUT", path, obj_of("messages", json_dup(json_get(row, "messages"))), sent);
    r->data = json_new_string(key);
    if (!room)
        return 0;
    r->room = xstrdup(room);
    if (room_get(c, room, &waits, e) < 0)
        return -1;
    waits->sending++;
    return 0;
}

static int send_part(struct crypto *c, const char *type, const char *room, const struct json *messages, struct err *e)
{
    uint8_t random[12];
    AUTO(str_clear) struct str txn = STR_INIT(32);
    autojson struct json *row = json_new_object();
    autofree char *key = xasprintf("%016" PRIx64, (uint64_t)++c->next_todev);
    random_bytes(c, random, sizeof(random));
    b64url_add(&txn, random, sizeof(random));
    json_set_str(row, "type", type);
    json_set_str(row, "txn", str_peek(&txn));
    if (room)
        json_set_str(row, "room", room);
    json_set(row, "messages", json_dup(messages));
    return kept_put(c, "e2ee_todev", key, row, e) < 0 ? -1 : queue(c, key, row, e);
}

int todev_send(struct crypto *c, const char *type, const char *room, struct json *take_messages, struct err *e)
{
    autojson struct json *all = take_messages;
    struct json *part = json_new_object();
    size_t n = 0;
    int rc = 0;
    for (const struct json *who = json_first(all); who && rc == 0; who = json_next(who))
        for (const struct json *d = json_first(who); d && rc == 0; d = json_next(d)) {
            json_set(child(part, json_key(who)), json_key(d), json_dup(d));
            if (++n % TODEV_DEVICES_MAX)
                continue;
            rc = send_part(c, type, room, part, e);
            json_free(part);
            part = json_new_object();
        }
    if (rc == 0 && json_len(part) > 0)
        rc = send_part(c, type, room, part, e);
    json_free(part);
    return rc;
}

static int list(void *ud, const char *key, const struct json *v)
{
    json_set(ud, key, json_dup(v));
    return 0;
}

int todev_load(struct crypto *c, struct err *e)
{
    autojson struct json *rows = json_new_object();
    if (kept_each(c, "e2ee_todev", NULL, list, rows, e) < 0)
        return -1;
    for (const struct json *row = json_first(rows); row; row = json_next(row)) {
        c->next_todev = (int64_t)strtoull(json_key(row), NULL, 16);
        if (queue(c, json_key(row), row, e) < 0)
            return -1;
    }
    return 0;
}

int todev_receive(struct crypto *c, const struct json *event, struct err *e)
{
    const char *type = json_str_or(event, "type", ""), *sender = json_str_or(event, "sender", NULL);
    const struct json *content = json_get(event, "content");
    if (!id_ok(sender) || json_type(content) != JSON_OBJECT)
        return 0;
    if (same(type, "m.room.encrypted"))
        return channel_receive(c, event, e);
    if (same(type, "m.room_key.withheld"))
        return mega_in_withheld(c, sender, content, e);
    if (same(type, "m.room_key_request"))
        return key_request(c, sender, content, e);
    if (strncmp(type, "m.key.verification.", 19) == 0)
        return sas_todev(c, sender, type, content, e);
    return 0; /* room keys and secrets that come in clear are nobody's */
}

int todev_olm(struct crypto *c, const struct olm_message *m, struct err *e)
{
    if (same(m->type, "m.room_key"))
        return mega_in_room_key(c, m, e);
    if (same(m->type, "m.room_key.withheld"))
        return mega_in_withheld(c, m->sender, m->content, e);
    if (strncmp(m->type, "m.key.verification.", 19) == 0)
        return sas_todev(c, m->sender, m->type, m->content, e);
    return 0; /* m.dummy has done its work; nobody was asked for secrets or forwarded keys */
}
