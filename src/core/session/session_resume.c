/* session_resume.c - what the last life of this process left behind. What waited is run; a turn that was running is reported to its
 * room and not run again; a request that is too old is reported as dropped; answers that were not delivered are delivered. */
#include <string.h>
#include "json.h"
#include "log.h"
#include "session_private.h"

enum {
    STALE_MS = 24 * 3600 * 1000, /* a request that old is not run any more */
    MESSAGES_MAX = 4 << 20,
};

/* What was running is not run again by itself: the room is told, under the key that the answer would have had. */
static void tell_cut(struct session *s, const struct inbox_item *i)
{
    struct err e = { 0 };
    struct transcript messages = { 0 };
    const char *language = words_language(i->text);
    autofree char *answer = words(WORD_CUT_BY_RESTART, language, NULL, NULL);
    AUTO(str_clear) struct str text = STR_INIT(MESSAGES_MAX);
    transcript_add(&messages, MODEL_USER, i->text);
    transcript_add(&messages, MODEL_ASSISTANT, answer);
    autojson struct json *array = transcript_to_json(&messages);
    transcript_clear(&messages);
    json_print(&text, array);
    struct turn_row row = {
        .seq = i->seq,
        .request = xstrdup(i->text),
        .answer = xstrdup(answer),
        .messages = str_take(&text),
        .status = xstrdup("interrupted"),
    };
    struct outbox_item out = session_item(s, i->event_id, "answer", i->about ? i->about : i->event_id);
    out.markdown = xstrdup(answer);
    if (store_turn_begin(s->hub->parts.store, s->row.id, i->seq, i->text, &row.id, &e) < 0)
        log_error("interrupted_not_kept", KV_S("session", s->row.id), KV_E(&e));
    out.turn = row.id;
    if (store_turn_end(s->hub->parts.store, &row, &out, &out.id, &e) < 0)
        log_error("interrupted_not_kept", KV_S("session", s->row.id), KV_E(&e));
    turn_row_clear(&row);
    outbox_item_clear(&out);
}

/* Whoever asked has long found another way, or the clock is wrong: not run, and not kept from them. */
static void tell_stale(struct session *s, const struct inbox_item *i)
{
    struct request *r = request_new(s, i->seq, i->event_id, i->sender, i->name, i->text);
    log_info("request_stale", KV_S("session", s->row.id), KV_I("seq", i->seq));
    session_set_inbox(s, i->seq, INBOX_DROPPED);
    session_notice_words(s, r, WORD_STALE, NULL, NULL);
    request_free(r);
}

static void resume_item(struct session *s, const struct inbox_item *i)
{
    if (i->sent_ms > 0 && time_unix_ms() - i->sent_ms > STALE_MS) {
        tell_stale(s, i);
    } else if (i->state == INBOX_RUNNING) {
        tell_cut(s, i);
    } else if (i->text[strspn(i->text, " \t\r\n")] == '\0') {
        session_set_inbox(s, i->seq, INBOX_DONE); /* files only: they are in the session */
    } else {
        struct request *r = request_new(s, i->seq, i->event_id, i->sender, i->name, i->text);
        if (i->about)
            request_rewords(r, i->about);
        request_route(r, true);
    }
}

/* Items of platforms that are not attached wait for a start that has them. */
static void resume_inbox_item(struct session_hub *h, const struct inbox_item *i)
{
    struct err e = { 0 };
    for (struct hub_chat *c = h->chats; c; c = c->next) {
        if (strcmp(c->ops->name, i->platform) != 0)
            continue;
        struct session *s = session_get(c, i->room, i->thread, &e);
        if (s)
            resume_item(s, i);
        else
            log_error("session_not_opened", KV_I("seq", i->seq), KV_E(&e));
        return;
    }
}

int session_hub_resume(struct session_hub *h, struct err *e)
{
    struct inbox_item *items = NULL;
    size_t n = 0;
    if (store_turns_interrupt(h->parts.store, e) < 0 || store_inbox_open(h->parts.store, &items, &n, e) < 0)
        return err_wrap(e, "inbox");
    for (size_t i = 0; i < n; i++) {
        resume_inbox_item(h, &items[i]);
        inbox_item_clear(&items[i]);
    }
    free(items);
    return outbox_resume(h, e);
}
