/* gap.c - a stretch of a room's past that the sync left out, walked forward page by page. Each page is durable together with the
 * place behind it. Its state is older than what the sync told of the room, and does not count. */
#include <string.h>
#include "ids.h"
#include "inbox.h"
#include "json.h"
#include "log.h"

enum { PAGES_MAX = 50, PAGE = 100 };

struct gap {
    struct gap *next;
    struct chat *c;
    struct row *row;
    char *from, *to;
    int pages, found; /* found: rows so far */
};

static void gap_free(struct gap *g)
{
    struct gap **at = &g->c->inbox->gaps;
    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    free(g->from);
    free(g->to);
    free(g);
}

void gap_free_all(struct chat *c)
{
    while (c->inbox->gaps)
        gap_free(c->inbox->gaps);
}

bool inbox_wants(const struct room *r, const struct json *event, bool joined)
{
    const struct chat *c = r->chat;
    static const char *const types[] = { "m.room.message", "m.room.encrypted", "m.reaction", "m.room.redaction" };
    const char *type = json_str_or(event, "type", ""), *sender = json_str_or(event, "sender", "");
    const char *was = json_str_or(json_get(event, "unsigned"), "membership", NULL);
    if (json_get(event, "state_key") || strcmp(sender, c->login.user) == 0 || matrix_is_ignored(c, sender))
        return false;
    if (was ? strcmp(was, "join") != 0 : !joined) /* from before we came: never prompts */
        return false;
    for (size_t i = 0; i < countof(types); i++)
        if (strcmp(type, types[i]) == 0)
            return !gate_is_chatter(r, event);
    return strncmp(type, "m.key.verification.", strlen("m.key.verification.")) == 0;
}

static int keep_page(struct gap *g, const struct json *body, bool last, struct err *e)
{
    AUTO(store_batch_end) struct store_batch batch = { 0 };
    AUTO(str_clear) struct str text = STR_INIT(16 << 10);
    if (store_batch_begin(&batch, g->c->store, e) < 0)
        return -1;
    for (const struct json *x = json_first(json_get(body, "chunk")); x; x = json_next(x)) {
        if (matrix_e2ee_past(g->row->room, x, e) < 0)
            return -1;
        if (inbox_wants(g->row->room, x, true) && inbox_insert(g->row, ++g->found, x, e) < 0)
            return -1;
    }
    if (last)
        return inbox_row_remove(g->row, g->c, e) < 0 ? -1 : store_batch_commit(&batch, e);
    autojson struct json *j = json_new_object();
    struct json *place = json_new_object();
    json_set_str(j, "room", g->row->room->id);
    json_set_str(place, "from", g->from);
    json_set_str(place, "to", g->to);
    json_set_int(place, "pages", g->pages);
    json_set_int(place, "found", g->found);
    json_set(j, "gap", place);
    json_print(&text, j);
    const struct kept k = { MATRIX_PLATFORM, "pending", g->row->key };
    if (store_keep(g->c->store, &k, str_peek(&text), text.len, e) < 0)
        return -1;
    return store_batch_commit(&batch, e);
}

static void ask(struct gap *g);

static void later(struct gap *g)
{
    struct chat *c = g->c;
    struct row *row = g->row;
    gap_free(g);
    inbox_reload(c); /* rows of a page that was not kept */
    inbox_row_later(row, c);
}

static void finished(struct gap *g)
{
    struct chat *c = g->c;
    struct row *row = g->row;
    gap_free(g);
    inbox_row_done(row, c);
}

/* The past is out of reach; what came after it goes on. */
static void lost(struct gap *g, const struct err *why)
{
    struct err e = { 0 };
    log_warn("matrix_gap_lost", KV_S("room", g->row->room->id), KV_I("pages", g->pages), KV_E(why));
    if (inbox_row_remove(g->row, g->c, &e) < 0)
        later(g);
    else
        finished(g);
}

static void on_page(void *ud, const struct api_answer *a)
{
    struct gap *g = ud;
    struct err e = a->err;
    const char *end = json_str_or(a->body, "end", NULL);
    if (e.kind == ERR_REFUSED) {
        lost(g, &e);
        return;
    }
    const bool still = end && json_len(json_get(a->body, "chunk")) == 0 && strcmp(end, g->from) == 0;
    const bool last = !end || still || strcmp(end, g->to) == 0 || ++g->pages >= PAGES_MAX;
    if (end) {
        free(g->from);
        g->from = xstrdup(end);
    }
    if (e.kind == ERR_NONE && keep_page(g, a->body, last, &e) == 0) {
        if (last)
            finished(g);
        else
            ask(g);
        return;
    }
    log_warn("matrix_gap_waits", KV_S("room", g->row->room->id), KV_E(&e));
    later(g);
}

static void ask(struct gap *g)
{
    autofree char *room = mx_escape(g->row->room->id), *from = mx_escape(g->from), *to = mx_escape(g->to);
    autofree char *path = xasprintf("/_matrix/client/v3/rooms/%s/messages?dir=f&from=%s&to=%s&limit=%d&filter=%s", room,
                                    from, to, PAGE, "%7B%22lazy_load_members%22%3Atrue%7D");
    api_start(g->c->api, &(struct api_request){ .method = "GET", .path = path, .max_bytes = MATRIX_SYNC_MAX }, on_page,
              g);
}

void gap_start(struct chat *c, struct row *row, struct json *take_row)
{
    autojson struct json *j = take_row;
    const struct json *gap = json_get(j, "gap");
    struct gap *g = xcalloc(1, sizeof(*g));
    *g = (struct gap){
        .next = c->inbox->gaps,
        .c = c,
        .row = row,
        .from = xstrdup(json_str_or(gap, "from", "")),
        .to = xstrdup(json_str_or(gap, "to", "")),
        .pages = (int)json_int_or(gap, "pages", 0),
        .found = (int)json_int_or(gap, "found", 0),
    };
    c->inbox->gaps = g;
    ask(g);
}
