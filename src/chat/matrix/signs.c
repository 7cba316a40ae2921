/* signs.c - what tells people that they were heard: typing notices and receipts. Each is sent once; a lost one is no loss. */
#include "ids.h"
#include "matrix.h"

enum { TYPING_MS = 30000 };

static void ignore_answer(void *ud, const struct api_answer *a)
{
    (void)ud;
    (void)a;
}

void matrix_typing(struct chat *c, const char *room, bool on)
{
    autofree char *in = mx_escape(room), *user = mx_escape(c->login.user);
    autofree char *path = xasprintf("/_matrix/client/v3/rooms/%s/typing/%s", in, user);
    autojson struct json *body = json_new_object();
    json_set_bool(body, "typing", on);
    if (on)
        json_set_int(body, "timeout", TYPING_MS);
    api_start(c->api, &(struct api_request){ .method = "PUT", .path = path, .body = body }, ignore_answer, c);
}

void matrix_receipt(struct chat *c, const char *room, const char *event, const char *thread)
{
    autofree char *in = mx_escape(room), *id = mx_escape(event);
    autofree char *path = xasprintf("/_matrix/client/v3/rooms/%s/receipt/m.read/%s", in, id);
    autojson struct json *body = json_new_object();
    json_set_str(body, "thread_id", thread ? thread : "main");
    api_start(c->api, &(struct api_request){ .method = "POST", .path = path, .body = body }, ignore_answer, c);
}
