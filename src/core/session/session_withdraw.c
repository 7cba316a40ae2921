/* session_withdraw.c - a message is deleted, and the files that it brought go: out of the store, and out of a box that has them, whatever
 * runs there. What programs made of them, and variables, stay (docs/retention.md).
 *
 * Store first: from there on no box is given them any more. Their links, which a living box began with, go when it says that nothing
 * there leads to them; those of a box that is no more go at the next start, if not before. */
#include <string.h>
#include "log.h"
#include "session_private.h"

void names_add(struct names *l, const char *name)
{
    l->at = xgrow(l->at, &l->cap, l->n + 1, sizeof(*l->at));
    l->at[l->n++] = xstrdup(name);
}

void names_clear(struct names *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->at[i]);
    free(l->at);
    *l = (struct names){ 0 };
}

/* ---- out of the box ---- */

void session_drop_forget(struct session *s)
{
    names_clear(&s->drop);
}

static void on_dropped(void *ud)
{
    struct session *s = ud;
    store_files_unlink(s->hub->parts.store, s->row.id, s->drop.at, s->drop.n);
    session_drop_forget(s);
}

void session_drop_names(struct session *s, const struct names *gone)
{
    const size_t before = s->drop.n;
    for (size_t i = 0; i < gone->n; i++)
        if (!session_is_staged(s, gone->at[i]))
            names_add(&s->drop, gone->at[i]);
    if (s->drop.n == before)
        return;
    const struct names more = { .at = s->drop.at + before, .n = s->drop.n - before };
    s->hub->parts.sandbox_ops->drop(s->box, (const char *const *)more.at, more.n, on_dropped, s);
}

/* ---- all of it ---- */

static void take_out(struct session *s, const struct file_row *rows, size_t n, const char *message)
{
    AUTO(names_clear) struct names gone = { 0 };
    for (size_t i = 0; i < n; i++)
        if (rows[i].message && strcmp(rows[i].message, message) == 0)
            session_unstage(s, &rows[i], &gone);
    session_drop_names(s, &gone);
}

static int withdraw_from(struct session_hub *h, const char *id, const char *message, struct err *e)
{
    struct session *s = session_find(h, id);
    struct file_row *rows = NULL;
    size_t n = 0;
    int rc = store_files(h->parts.store, id, &rows, &n, e);
    rc = rc < 0 ? rc : store_files_withdraw(h->parts.store, id, message, e);
    if (rc == 0 && s && s->box)
        take_out(s, rows, n, message);
    else if (rc == 0)
        store_files_unlay(h->parts.store, id);
    for (size_t i = 0; i < n; i++)
        file_row_clear(&rows[i]);
    free(rows);
    if (rc == 0)
        log_info("files_withdrawn", KV_S("session", id));
    return rc;
}

int session_withdraw(struct hub_chat *c, const char *message)
{
    struct store *store = c->hub->parts.store;
    struct err e = { 0 };
    char **ids = NULL;
    size_t n = 0;
    int rc = store_message_delete(store, c->ops->name, message, &e);
    rc = rc < 0 ? rc : store_message_sessions(store, c->ops->name, message, &ids, &n, &e);
    for (size_t i = 0; i < n; i++) {
        rc = rc < 0 ? rc : withdraw_from(c->hub, ids[i], message, &e);
        free(ids[i]);
    }
    free(ids);
    if (rc < 0)
        log_error("files_not_withdrawn", KV_S("message", message), KV_E(&e));
    return rc;
}
