#include "inbox.h"
#include <stdio.h>
#include <string.h>
#include "ids.h"
#include "json.h"
#include "log.h"

enum {
    BUSY_MAX = 8, /* rooms at a time */
    AT_ONCE = 64, /* rows, then the loop has its turn */
    PARKED_MAX = 2000,
    ROW_BYTES_MAX = MATRIX_EVENT_MAX + 4096,
};

static void pump(void *ud);

/* ---- rows ---- */

static struct kept kept_of(const char *key)
{
    return (struct kept){ MATRIX_PLATFORM, "pending", key };
}

static struct row *row_add(struct room *r, const char *key)
{
    struct chat *c = r->chat;
    struct row *row = xcalloc(1, sizeof(*row)), **at = &c->inbox->rows, *last = c->inbox->last;
    (void)snprintf(row->key, sizeof(row->key), "%s", key);
    row->room = r;
    if (last && strcmp(last->key, key) < 0) /* nearly always */
        at = &last->next;
    while (*at && strcmp((*at)->key, key) < 0)
        at = &(*at)->next;
    row->next = *at;
    *at = row;
    if (!row->next)
        c->inbox->last = row;
    c->inbox->n++;
    return row;
}

static int keep_row(struct room *r, const char *key, const char *what, const struct json *value, struct err *e)
{
    AUTO(str_clear) struct str text = STR_INIT(ROW_BYTES_MAX);
    autojson struct json *j = json_new_object();
    json_set_str(j, "room", r->id);
    json_set(j, what, json_dup(value));
    json_print(&text, j);
    if (text.overflow) {
        log_warn("matrix_event_too_long", KV_S("room", r->id));
        return 0;
    }
    const struct kept k = kept_of(key);
    if (store_keep(r->chat->store, &k, str_peek(&text), text.len, e) < 0)
        return -1;
    (void)row_add(r, key);
    return 0;
}

int matrix_pending_add(struct room *r, const struct json *event, struct err *e)
{
    char key[40];
    (void)snprintf(key, sizeof(key), "%016llu", (unsigned long long)++r->chat->seq);
    return keep_row(r, key, "event", event, e);
}

int matrix_gap_add(struct room *r, const char *from, const char *to, struct err *e)
{
    char key[40];
    autojson struct json *gap = json_new_object();
    (void)snprintf(key, sizeof(key), "%016llu", (unsigned long long)++r->chat->seq);
    json_set_str(gap, "from", from);
    json_set_str(gap, "to", to);
    log_info("matrix_gap", KV_S("room", r->id));
    return keep_row(r, key, "gap", gap, e);
}

int inbox_insert(const struct row *after, int number, const struct json *event, struct err *e)
{
    char key[40];
    (void)snprintf(key, sizeof(key), "%.16s.%08d", after->key, number);
    return keep_row(after->room, key, "event", event, e);
}

/* The row's JSON, or NULL when there is none (any more). The caller frees. */
static int row_load(struct row *row, struct chat *c, struct json **out, struct err *e)
{
    autofree char *text = NULL;
    size_t n = 0;
    const struct kept k = kept_of(row->key);
    *out = NULL;
    if (store_kept(c->store, &k, &text, &n, e) < 0)
        return -1;
    return text ? json_parse(out, text, n, ROW_BYTES_MAX, e) : 0;
}

int inbox_row_remove(struct row *row, struct chat *c, struct err *e)
{
    const struct kept k = kept_of(row->key);
    return store_unkeep(c->store, &k, e);
}

/* ---- what becomes of a row ---- */

static void wake(struct chat *c)
{
    loop_defer_cancel(c->loop, pump, c);
    loop_defer(c->loop, pump, c);
}

static void not_busy(struct row *row, struct chat *c)
{
    row->room->busy = false;
    c->inbox->busy--;
    wake(c);
}

void inbox_row_done(struct row *row, struct chat *c)
{
    struct row **at = &c->inbox->rows;
    while (*at && *at != row)
        at = &(*at)->next;
    if (*at)
        *at = row->next;
    if (c->inbox->last == row)
        c->inbox->last = NULL;
    c->inbox->n--;
    not_busy(row, c);
    free(row);
}

/* Most events are not for us: their rows go together. A crash before that only brings them here once more. */
static void note_dropped(struct inbox *in, const struct row *row)
{
    in->dropped = xgrow(in->dropped, &in->dropped_cap, in->dropped_n + 1, sizeof(*in->dropped));
    memcpy(in->dropped[in->dropped_n++], row->key, sizeof(row->key));
}

void inbox_row_drop(struct row *row, struct chat *c)
{
    note_dropped(c->inbox, row);
    inbox_row_done(row, c);
}

static int remove_dropped(struct chat *c, struct err *e)
{
    AUTO(store_batch_end) struct store_batch batch = { 0 };
    if (store_batch_begin(&batch, c->store, e) < 0)
        return -1;
    for (size_t i = 0; i < c->inbox->dropped_n; i++) {
        const struct kept k = kept_of(c->inbox->dropped[i]);
        if (store_unkeep(c->store, &k, e) < 0)
            return -1;
    }
    return store_batch_commit(&batch, e);
}

static void flush_dropped(struct chat *c)
{
    struct err e = { 0 };
    if (!c->inbox->dropped_n)
        return;
    if (remove_dropped(c, &e) < 0)
        log_error("matrix_rows_not_removed", KV_E(&e)); /* again with the next ones */
    else
        c->inbox->dropped_n = 0;
}

void inbox_row_later(struct row *row, struct chat *c)
{
    row->state = ROW_NEW;
    row->not_before_ms = loop_now_ms(c->loop) + api_backoff_ms(++row->tries);
    not_busy(row, c);
}

static void drop_oldest_parked(struct inbox *in)
{
    struct row **at = &in->rows;
    while (*at && (*at)->state != ROW_PARKED)
        at = &(*at)->next;
    struct row *row = *at;
    if (!row)
        return;
    *at = row->next;
    if (in->last == row)
        in->last = NULL;
    in->n--;
    in->parked--;
    note_dropped(in, row);
    free(row);
}

void inbox_row_park(struct row *row, struct chat *c)
{
    not_busy(row, c);
    row->state = ROW_PARKED;
    if (++c->inbox->parked > PARKED_MAX)
        drop_oldest_parked(c->inbox); /* maybe this one */
}

void inbox_unpark(struct chat *c, const char *room)
{
    for (struct row *row = c->inbox->rows; row; row = row->next)
        if (row->state == ROW_PARKED && strcmp(row->room->id, room) == 0) {
            row->state = ROW_NEW;
            c->inbox->parked--;
        }
    wake(c);
}

/* ---- the pump ---- */

static void begin(struct chat *c, struct row *row)
{
    struct err e = { 0 };
    struct json *j = NULL;
    row->state = ROW_BUSY;
    row->room->busy = true;
    c->inbox->busy++;
    if (row_load(row, c, &j, &e) < 0) {
        log_error("matrix_row_unread", KV_S("key", row->key), KV_E(&e));
        inbox_row_later(row, c);
    } else if (!j) {
        inbox_row_done(row, c);
    } else if (json_get(j, "gap")) {
        gap_start(c, row, j);
    } else {
        work_start(c, row, j);
    }
}

static void on_timer(void *ud)
{
    struct chat *c = ud;
    c->inbox->timer = 0;
    pump(c);
}

/* The first row of a room that is not parked goes first; one that must wait makes all behind it wait. */
static bool blocks(const struct row *row, int64_t now, int64_t *next_ms)
{
    if (row->not_before_ms <= now)
        return false;
    if (row->not_before_ms - now < *next_ms)
        *next_ms = row->not_before_ms - now;
    return true;
}

static struct row *next_row(struct chat *c, int64_t *next_ms)
{
    const int64_t now = loop_now_ms(c->loop);
    struct row *found = NULL;
    for (struct room *r = c->rooms; r; r = r->next)
        r->blocked = false;
    for (struct row *row = c->inbox->rows; row && !found; row = row->next) {
        if (row->state != ROW_NEW || row->room->busy || row->room->blocked)
            continue;
        if (blocks(row, now, next_ms))
            row->room->blocked = true;
        else
            found = row;
    }
    return found;
}

/* ---- one batch for all that is read and dropped: each of its own would wait for the disk ---- */

int inbox_settle(struct chat *c, struct err *e)
{
    const bool open = c->inbox->batch.store != NULL;
    const int rc = open ? store_batch_commit(&c->inbox->batch, e) : 0;
    if (rc < 0)
        matrix_e2ee_lost(c, false); /* it has read what the disk knows nothing of */
    store_batch_end(&c->inbox->batch);
    return rc;
}

static void begin_some(struct chat *c, int64_t *next_ms)
{
    struct err e = { 0 };
    struct row *row;
    for (int n = 0; n < AT_ONCE && c->inbox->busy < BUSY_MAX && (row = next_row(c, next_ms)); n++) {
        if (!c->inbox->batch.store && store_batch_begin(&c->inbox->batch, c->store, &e) < 0)
            log_error("matrix_no_batch", KV_E(&e)); /* each by itself, then */
        begin(c, row);
    }
    flush_dropped(c);
    if (inbox_settle(c, &e) < 0)
        log_error("matrix_batch_lost", KV_E(&e));
}

static void pump(void *ud)
{
    struct chat *c = ud;
    int64_t next_ms = INT64_MAX;
    if (!c->login.up || c->inbox->pumping)
        return;
    c->inbox->pumping = true;
    begin_some(c, &next_ms);
    c->inbox->pumping = false;
    loop_cancel(c->loop, c->inbox->timer);
    c->inbox->timer = next_ms == INT64_MAX ? 0 : loop_after(c->loop, next_ms, on_timer, c);
}

void matrix_inbox_pump(struct chat *c, bool batch_lost)
{
    if (batch_lost)
        inbox_reload(c);
    wake(c);
}

/* Without what waits for keys, which may never come: that must not make us deaf. */
size_t matrix_inbox_depth(const struct chat *c)
{
    return c->inbox->n - c->inbox->parked;
}

/* ---- life ---- */

static int load_row(void *ud, const char *key, const char *value, size_t n)
{
    struct chat *c = ud;
    struct err e = { 0 };
    autojson struct json *j = NULL;
    const uint64_t seq = strtoull(key, NULL, 10);
    for (const struct row *row = c->inbox->busy ? c->inbox->rows : NULL; row; row = row->next)
        if (strcmp(row->key, key) == 0)
            return 0;
    if (json_parse(&j, value, n, ROW_BYTES_MAX, &e) < 0 || !mx_is_room(json_str_or(j, "room", NULL))) {
        log_error("matrix_row_broken", KV_S("key", key), KV_E(&e));
        return 0;
    }
    (void)row_add(matrix_room(c, json_str_or(j, "room", "")), key);
    c->seq = seq > c->seq ? seq : c->seq;
    return 0;
}

/* What is being worked on stays; the rest is what the store has. */
void inbox_reload(struct chat *c)
{
    struct err e = { 0 };
    c->inbox->last = NULL;
    c->inbox->parked = 0;
    for (struct row **at = &c->inbox->rows; *at;) {
        struct row *row = *at;
        if (row->state == ROW_BUSY) {
            at = &row->next;
            continue;
        }
        *at = row->next;
        c->inbox->n--;
        free(row);
    }
    const struct kept all = { MATRIX_PLATFORM, "pending", NULL };
    if (store_kept_each(c->store, &all, load_row, c, &e) < 0)
        log_error("matrix_inbox_unread", KV_E(&e));
}

void matrix_inbox_open(struct chat *c)
{
    c->inbox = xcalloc(1, sizeof(*c->inbox));
    c->inbox->c = c;
    inbox_reload(c);
}

void matrix_inbox_close(struct chat *c)
{
    loop_defer_cancel(c->loop, pump, c);
    loop_cancel(c->loop, c->inbox->timer);
    work_free_all(c);
    gap_free_all(c);
    while (c->inbox->rows) {
        struct row *row = c->inbox->rows;
        c->inbox->rows = row->next;
        free(row);
    }
    free(c->inbox->dropped);
    free(take(c->inbox));
}
