/* session_forget.c - conversations that go for good: when somebody says so, and when nobody used them for long (docs/retention.md). */
#include <string.h>
#include "conf.h"
#include "log.h"
#include "session_private.h"

enum {
    EVERY_MS = 3600000,
    AT_ONCE = 20, /* then others have their turn */
    SOON_MS = 1000,
    JUMP_MS = 600000,
};

/* ---- said ---- */

static void begin_anew(struct session *s)
{
    s->row.cells = s->row.base = s->base = s->kept_cell = 0;
    s->kept_ms = 0;
    s->fresh = s->thaw_wanted = false;
    s->model = NULL;
    s->answered_ms = 0;
}

void session_forget(struct request *r, const char *arg)
{
    struct session *s = r->session;
    struct err e = { 0 };
    (void)arg;
    session_drop_deliveries(s);
    unkept_drop(s->hub, s->row.id);
    session_close_box(s);
    if (store_forget(s->hub->parts.store, s->row.id, r->seq, &e) < 0) {
        log_error("not_forgotten", KV_S("session", s->row.id), KV_E(&e));
        session_notice_words(s, r, WORD_TRY_AGAIN, NULL, NULL);
    } else {
        log_info("forgotten", KV_S("session", s->row.id));
        begin_anew(s);
        session_notice_words(s, r, WORD_FORGOTTEN, NULL, NULL);
    }
    errand_done(s);
}

/* ---- old ---- */

static void remove_old(struct session_hub *h, const struct session_row *row)
{
    struct err e = { 0 };
    if (sessions_hold(h, row->id))
        return;
    if (store_session_remove(h->parts.store, row->id, &e) < 0)
        log_error("not_forgotten", KV_S("session", row->id), KV_E(&e));
    else
        log_info("forgotten_unused", KV_S("session", row->id), KV_I("used_ms", row->used_ms));
}

/* A wall clock that was put forward makes everything old at once: then nothing is forgotten until it has gone on by itself. */
static bool clock_jumped(struct session_hub *h)
{
    const int64_t ahead_ms = time_unix_ms() - loop_now_ms(h->parts.loop), jump_ms = ahead_ms - h->clock_ahead_ms;
    h->clock_ahead_ms = ahead_ms;
    if (jump_ms > JUMP_MS)
        log_warn("clock_jumped", KV_I("ms", jump_ms));
    return jump_ms > JUMP_MS;
}

static void on_time(void *hub)
{
    struct session_hub *h = hub;
    struct session_row *rows = NULL;
    struct err e = { 0 };
    size_t n = 0;
    const int64_t before_ms = time_unix_ms() - h->parts.conf->forget_after_ms;
    const bool jumped = clock_jumped(h);
    if (!jumped && (store_sessions_unused(h->parts.store, before_ms, AT_ONCE, &rows, &n, &e) < 0 ||
                    store_usage_forget(h->parts.store, before_ms, &e) < 0))
        log_error("retention_failed", KV_E(&e));
    for (size_t i = 0; i < n; i++) {
        remove_old(h, &rows[i]);
        session_row_clear(&rows[i]);
    }
    free(rows);
    h->retention = loop_after(h->parts.loop, n == AT_ONCE ? SOON_MS : EVERY_MS, on_time, h);
}

void session_retention_begin(struct session_hub *h)
{
    h->clock_ahead_ms = time_unix_ms() - loop_now_ms(h->parts.loop);
    if (h->parts.conf->forget_after_ms > 0)
        h->retention = loop_after(h->parts.loop, EVERY_MS, on_time, h);
}
