/* session_history.c - what the model is told of earlier turns: notes of the old ones, the rest as they were sent. */
#include <string.h>
#include "conf.h"
#include "json.h"
#include "log.h"
#include "session_private.h"

enum {
    TURNS_MAX = 200, /* read from the store; the agent makes them fit, and notes make them fewer */
    MESSAGES_MAX = 16 << 20,
};

static void read_turn(struct transcript *t, const struct turn_row *row, const char *provider)
{
    autojson struct json *messages = NULL;
    struct err e = { 0 };
    if (!row->messages || !*row->messages)
        return;
    if (json_parse(&messages, row->messages, strlen(row->messages), MESSAGES_MAX, &e) < 0 ||
        transcript_from_json(t, messages, provider, &e) < 0)
        log_warn("turn_unreadable", KV_I("turn", row->id), KV_E(&e));
}

void session_history_load(struct session_history *h, struct session *s)
{
    struct turn_row *rows = NULL;
    struct err e = { 0 };
    autofree char *gone = prompts_note(s->hub->prompts, NOTE_SQUEEZED, NULL, NULL);
    *h = (struct session_history){ 0 };
    if (store_notes(s->hub->parts.store, s->row.id, &h->row, &e) < 0 ||
        store_turns_after(s->hub->parts.store, s->row.id, h->row.noted, TURNS_MAX, &rows, &h->n, &e) < 0)
        log_error("history_unread", KV_S("session", s->row.id), KV_E(&e));
    h->turns = xcalloc(h->n + 1, sizeof(*h->turns));
    h->ids = xcalloc(h->n + 1, sizeof(*h->ids));
    for (size_t i = 0; rows && i < h->n; i++) {
        read_turn(&h->turns[i], &rows[i], s->turn->model->section->section);
        if (rows[i].id <= h->row.shortened)
            transcript_shorten(&h->turns[i], gone);
        h->ids[i] = rows[i].id;
        turn_row_clear(&rows[i]);
    }
    free(rows);
}

void session_history_clear(struct session_history *h)
{
    for (size_t i = 0; i < h->n; i++)
        transcript_clear(&h->turns[i]);
    free(h->turns);
    free(h->ids);
    notes_row_clear(&h->row);
    *h = (struct session_history){ 0 };
}

/* ud is the session. */
void session_shortened(void *ud, const char *notes, int64_t noted, int64_t shortened)
{
    struct session *s = ud;
    struct notes_row row = { 0 };
    struct err e = { 0 };
    if (store_notes(s->hub->parts.store, s->row.id, &row, &e) < 0)
        log_error("notes_unread", KV_S("session", s->row.id), KV_E(&e));
    if (notes) {
        free(row.notes);
        row.notes = xstrdup(notes);
        row.noted = noted;
    }
    row.shortened = shortened > row.shortened ? shortened : row.shortened;
    if (store_notes_set(s->hub->parts.store, s->row.id, &row, &e) < 0)
        log_error("notes_not_kept", KV_S("session", s->row.id), KV_E(&e));
    notes_row_clear(&row);
}

/* A cell of this conversation, whatever turn it was of; *out NULL: there is none. */
void session_cell_text(void *ud, int number, char **out)
{
    struct session *s = ud;
    struct err e = { 0 };
    if (store_cell(s->hub->parts.store, s->row.id, number, out, &e) < 0)
        log_error("cell_unread", KV_S("session", s->row.id), KV_I("cell", number), KV_E(&e));
}
