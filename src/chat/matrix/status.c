/* status.c - the line that tells how a turn is doing: late to appear, few edits, redacted at the end. It gives way to everything else,
 * and what could not be shown in time is not shown at all. */
#include <string.h>
#include "ids.h"
#include "log.h"
#include "outbox.h"

enum {
    QUIET_MS = 3000,   /* the typing notice is enough for so long */
    BETWEEN_MS = 5000, /* from one edit to the next, at least */
    EDITS_MAX = 20,    /* thousands make a room unloadable */
    TYPING_AGAIN_MS = 20000,
};

struct status {
    struct status *next;
    struct chat *c;
    char *txn, *room, *thread, *reply_to;
    char *wanted, *shown; /* texts; shown NULL: nothing is there */
    char *event;          /* of the line; NULL: none yet */
    int edits;
    bool busy, ended;
    int64_t born_ms, next_ms, typed_ms;
    loop_timer timer;
};

static struct kept row_of(const struct status *s)
{
    return (struct kept){ MATRIX_PLATFORM, "status", s->txn };
}

static void status_free(struct status *s)
{
    struct status **at = &s->c->outbox->statuses;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    loop_cancel(s->c->loop, s->timer);
    free(s->txn);
    free(s->room);
    free(s->thread);
    free(s->reply_to);
    free(s->wanted);
    free(s->shown);
    free(s->event);
    free(s);
}

void status_free_all(struct chat *c)
{
    while (c->outbox->statuses)
        status_free(c->outbox->statuses);
}

static struct status *find(struct chat *c, const char *txn)
{
    for (struct status *s = c->outbox->statuses; s; s = s->next)
        if (strcmp(s->txn, txn) == 0 && !s->ended)
            return s;
    return NULL;
}

static struct status *status_new(struct chat *c, const struct chat_post *p)
{
    struct status *s = xcalloc(1, sizeof(*s));
    const int64_t now = loop_now_ms(c->loop);
    *s = (struct status){
        .next = c->outbox->statuses,
        .c = c,
        .txn = xstrdup(p->txn),
        .room = xstrdup(p->room),
        .thread = xstrdup_or_null(p->thread),
        .reply_to = xstrdup_or_null(p->reply_to),
        .born_ms = now,
        .next_ms = now + QUIET_MS,
    };
    c->outbox->statuses = s;
    return s;
}

/* ---- what is kept: the line's event, so that a crash leaves none behind ---- */

static void keep(struct status *s)
{
    struct err e = { 0 };
    const struct kept row = row_of(s);
    autofree char *value = xasprintf("%s %s", s->room, s->event);
    if (store_keep(s->c->store, &row, value, strlen(value), &e) < 0)
        log_warn("matrix_status_not_kept", KV_E(&e));
}

static void forget(struct status *s)
{
    struct err e = { 0 };
    const struct kept row = row_of(s);
    if (s->event && store_unkeep(s->c->store, &row, &e) < 0)
        log_warn("matrix_status_not_forgotten", KV_E(&e));
    status_free(s);
}

void status_drop_room(struct chat *c, const char *room)
{
    for (struct status *s = c->outbox->statuses, *next; s; s = next) {
        next = s->next;
        if (strcmp(s->room, room) != 0)
            continue;
        s->ended = true;
        if (!s->busy)
            forget(s);
    }
}

static int load_row(void *ud, const char *key, const char *value, size_t n)
{
    (void)n;
    const char *blank = strchr(value, ' ');
    if (!blank)
        return 0;
    autofree char *room = xstrndup(value, (size_t)(blank - value));
    struct status *s = status_new(ud, &(struct chat_post){ .txn = key, .room = room });
    s->event = xstrdup(blank + 1);
    s->shown = xstrdup("");
    s->ended = true;
    return 0;
}

void status_load(struct chat *c)
{
    struct err e = { 0 };
    const struct kept all = { MATRIX_PLATFORM, "status", NULL };
    if (store_kept_each(c->store, &all, load_row, c, &e) < 0)
        log_warn("matrix_statuses_unread", KV_E(&e));
}

/* ---- requests ---- */

static void on_redacted(void *ud, const struct api_answer *a)
{
    struct status *s = ud;
    s->c->outbox->in_flight--;
    s->busy = false;
    if (a->err.kind == ERR_LIMIT)
        outbox_limited(s->c->outbox, a);
    else if (err_retryable(&a->err))
        s->next_ms = loop_now_ms(s->c->loop) + BETWEEN_MS;
    else
        forget(s); /* gone, or never to be */
}

static void on_shown(void *ud, const struct api_answer *a)
{
    struct status *s = ud;
    struct chat *c = s->c;
    const char *event = json_str_or(a->body, "event_id", NULL);
    c->outbox->in_flight--;
    s->busy = false;
    s->next_ms = loop_now_ms(c->loop) + BETWEEN_MS;
    if (a->err.kind == ERR_LIMIT)
        outbox_limited(c->outbox, a);
    if (a->err.kind == ERR_NONE && !s->event && mx_is_event(event)) {
        s->event = xstrdup(event);
        keep(s);
    }
    if (s->ended && !s->event)
        status_free(s);
    matrix_outbox_pump(c);
}

/* False: not now; the next text will try again. */
static bool seal(struct status *s, struct json **content)
{
    struct json *sealed = NULL;
    struct err e = { 0 };
    const int rc = matrix_e2ee_seal(matrix_room(s->c, s->room), "m.room.message", *content, &sealed, &e);
    s->next_ms = loop_now_ms(s->c->loop) + BETWEEN_MS;
    if (rc < 0)
        log_warn("matrix_status_not_encrypted", KV_E(&e));
    if (rc != 1)
        return false;
    json_free(*content);
    *content = sealed;
    return true;
}

static void show(struct status *s)
{
    AUTO(markup_freep) struct markup *doc = markup_parse(s->wanted);
    autojson struct json *content = content_text(doc, "m.notice");
    autofree char *txn = xasprintf("%s.%lld.%d", s->txn, (long long)s->c->outbox->life_ms, s->edits++);
    if (s->event)
        content = content_edit(take(content), s->event);
    else if (s->thread)
        content_relate(content, s->thread, s->reply_to);
    const bool sealed = matrix_room(s->c, s->room)->encrypted;
    if (sealed && !seal(s, &content))
        return;
    free(s->shown);
    s->shown = xstrdup(s->wanted);
    s->busy = true;
    const struct put p = {
        .room = s->room, .type = sealed ? "m.room.encrypted" : "m.room.message", .txn = txn, .content = content
    };
    outbox_put(s->c, &p, on_shown, s);
}

static void redact(struct status *s)
{
    autofree char *txn = xasprintf("%s.%lld.end", s->txn, (long long)s->c->outbox->life_ms);
    s->busy = true;
    outbox_put(s->c, &(struct put){ .room = s->room, .txn = txn, .redacts = s->event }, on_redacted, s);
}

/* ---- when ---- */

static bool may_send(const struct status *s)
{
    const struct room *room = matrix_room(s->c, s->room);
    return room->joined && !room->gone;
}

static void on_due(void *ud)
{
    struct status *s = ud;
    s->timer = 0;
    status_pump(s->c);
}

static bool wants_to_show(const struct status *s)
{
    return !s->ended && s->wanted && s->edits < EDITS_MAX && (!s->shown || strcmp(s->shown, s->wanted) != 0);
}

static void pump_one(struct status *s)
{
    int64_t wait = 0;
    const int64_t now = loop_now_ms(s->c->loop);
    if (s->busy || !(s->ended || wants_to_show(s)) || !may_send(s))
        return;
    if (!s->ended && s->next_ms > now)
        wait = s->next_ms - now;
    else if (outbox_open(s->c->outbox, &wait)) {
        if (s->ended)
            redact(s);
        else
            show(s);
        return;
    }
    loop_cancel(s->c->loop, s->timer);
    s->timer = wait > 0 ? loop_after(s->c->loop, wait, on_due, s) : 0;
}

void status_pump(struct chat *c)
{
    if (!c->login.up || c->outbox->jobs)
        return;
    for (struct status *s = c->outbox->statuses, *next; s; s = next) {
        next = s->next;
        pump_one(s);
    }
}

static void type_again(struct status *s)
{
    const int64_t now = loop_now_ms(s->c->loop);
    if (!s->c->login.up || (s->typed_ms && now - s->typed_ms < TYPING_AGAIN_MS))
        return;
    s->typed_ms = now;
    matrix_typing(s->c, s->room, true);
}

void status_post(struct chat *c, const struct chat_post *p)
{
    struct status *s = find(c, p->txn);
    if (!*p->markdown) {
        if (!s)
            return;
        s->ended = true;
        if (!s->event && !s->busy)
            status_free(s);
        else
            status_pump(c);
        return;
    }
    if (!s)
        s = status_new(c, p);
    type_again(s);
    free(s->wanted);
    s->wanted = strcmp(matrix_room_setting(matrix_room(c, s->room), "progress", c->conf->matrix_progress), "edits") == 0
                    ? xstrdup(p->markdown)
                    : NULL;
    status_pump(c);
}
