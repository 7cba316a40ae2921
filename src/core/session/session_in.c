/* session_in.c - what people do, from event to queue. The gate first: what is not meant for us is not kept.
 *
 * Trust boundary: names of files, texts and ids come from anyone in the room. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "access.h"
#include "conf.h"
#include "json.h"
#include "log.h"
#include "metric.h"
#include "session_private.h"

enum {
    QUICK_MS = 2000, /* asked so soon after the answer: perhaps a program */
    QUICK_MAX = 100, /* in a row: two bots that talk to each other */
    PAUSE_MS = 600000,
    NAMES_MAX = 8 << 10,
};

/* ---- the gate ---- */

static bool is_addressed(const struct session *s, const struct chat_event *ev)
{
    return ev->mentioned || ev->direct || (ev->thread && s->talked);
}

/* Programs never start a turn; one that hides it is told by how fast it asks. */
static bool is_too_quick(struct session *s, struct request *r)
{
    const int64_t now = loop_now_ms(s->hub->parts.loop);
    if (now < s->paused_until_ms)
        return true;
    const bool quick = s->answered_ms && now - s->answered_ms < QUICK_MS && !s->turn;
    s->quick = quick ? s->quick + 1 : 0;
    if (s->quick < QUICK_MAX)
        return false;
    s->quick = 0;
    s->paused_until_ms = now + PAUSE_MS;
    log_warn("session_paused", KV_S("session", s->row.id), KV_S("sender", r->sender));
    session_notice_words(s, r, WORD_SLOW_DOWN, NULL, NULL);
    return true;
}

/* One person's flood does not keep the others waiting, in however many conversations it comes. */
static bool has_enough(struct session *s, struct request *r)
{
    const int64_t max = s->hub->parts.conf->access_waiting, n = requests_of(s->hub, r->sender);
    if (max == 0 || n < max)
        return false;
    autofree char *limit = xasprintf("%" PRId64, max);
    log_warn("too_many_wait", KV_S("session", s->row.id), KV_S("sender", r->sender), KV_I("n", n));
    session_notice_words(s, r, WORD_TOO_MANY, limit, NULL);
    return true;
}

/* Keeps the event; *fresh false: it was here before. */
static int keep_event(struct session *s, const struct chat_event *ev, int64_t *seq, bool *fresh)
{
    struct err e = { 0 };
    struct inbox_item item = {
        .platform = xstrdup(s->row.platform),
        .event_id = xstrdup(ev->id),
        .room = xstrdup(ev->room),
        .thread = xstrdup_or_null(ev->thread),
        .sender = xstrdup(ev->sender ? ev->sender : "?"),
        .name = xstrdup(ev->name ? ev->name : "?"),
        .text = xstrdup(ev->text ? ev->text : ""),
        .session = xstrdup(s->row.id),
        .about = ev->type == CHAT_EDIT ? xstrdup(ev->about) : NULL,
        .sent_ms = ev->sent_ms,
        .state = INBOX_NEW,
    };
    const int rc = store_inbox_add(s->hub->parts.store, &item, seq, fresh, &e);
    inbox_item_clear(&item);
    if (rc < 0)
        return unkept_message(s->chat, ev, &e);
    unkept_message_over(s->hub);
    return 0;
}

/* ---- files ---- */

/* A file can have such a name; a line of a table or of code that tells of it cannot, nor can the box. */
static void plain_name(char *name)
{
    for (char *c = name; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '_';
}

static bool is_file_name(const char *name)
{
    return *name && strlen(name) <= 255 && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static void refuse_big(struct session *s, struct request *r, const char *name)
{
    char limit[32];
    (void)snprintf(limit, sizeof(limit), "%" PRId64 " MB", s->hub->parts.conf->upload_max_bytes >> 20);
    session_notice_words(s, r, WORD_FILE_BIG, name, limit);
}

static void refuse_full(struct session *s, struct request *r, const char *name)
{
    autofree char *limit = xasprintf("%" PRId64 " MB", s->hub->parts.conf->session_max_bytes >> 20);
    session_notice_words(s, r, WORD_FILES_FULL, name, limit);
}

/* True when it is in the session now; else the person was told why not. */
static bool take_file(struct session *s, struct request *r, const struct chat_file *f)
{
    struct file_row row = { 0 };
    struct err e = { 0 };
    autofree char *name = utf8_nfc(f->name);
    plain_name(name);
    const int64_t max = s->hub->parts.conf->upload_max_bytes;
    if (f->fd < 0) {
        session_notice_words(s, r, WORD_FILE_FAILED, name, f->problem ? f->problem : "");
        return false;
    }
    if (!is_file_name(name)) {
        session_notice_words(s, r, WORD_FILE_NAME, name, NULL);
        return false;
    }
    if (f->bytes > max) {
        refuse_big(s, r, name);
        return false;
    }
    const struct file_offer offer = { .name = name,
                                      .seq = r->seq,
                                      .message = f->message ? f->message : r->event_id,
                                      .fd = f->fd,
                                      .max_bytes = max,
                                      .max_total = s->hub->parts.conf->session_max_bytes };
    const int rc = store_file_add(s->hub->parts.store, s->row.id, &offer, &row, &e);
    file_row_clear(&row);
    if (rc == 0)
        return true;
    log_warn("file_not_taken", KV_S("session", s->row.id), KV_E(&e));
    if (e.kind == ERR_DATA)
        refuse_big(s, r, name);
    else if (e.kind == ERR_LIMIT)
        refuse_full(s, r, name);
    else
        session_notice_words(s, r, WORD_FILE_STORE, name, NULL);
    return false;
}

/* Names of those that were taken, for a word to the person; "" when none was. Caller frees. */
static char *take_files(struct session *s, struct request *r, const struct chat_event *ev)
{
    AUTO(str_clear) struct str names = STR_INIT(NAMES_MAX);
    for (size_t i = 0; i < ev->file_n; i++)
        if (take_file(s, r, &ev->files[i]))
            str_printf(&names, "%s`%s`", names.len ? ", " : "", ev->files[i].name);
    return str_take(&names);
}

/* A file without a question: said, so that nobody waits. Not in rooms where we only overhear. */
static void greet_files(struct session *s, struct request *r, const char *names)
{
    const struct request *open = s->turn ? s->turn->request : NULL;
    if (*names && !s->queue)
        session_notice_words(s, r, open || s->talked ? WORD_FILE_LATE : WORD_FILE_GOT, names, NULL);
}

/* Called, and nothing said: what may be asked here. */
static void greet(struct request *r)
{
    const char *arg = NULL;
    command_run(command_find("help", true, &arg), r, "");
}

/* Delivered again: the crash may have come between the event and its files. What was deleted since is not wanted. */
static void take_missing_files(struct session *s, struct request *r, const struct chat_event *ev)
{
    struct store *store = s->hub->parts.store;
    struct file_row *rows = NULL;
    struct err e = { 0 };
    size_t n = 0;
    bool have = false;
    have = store_message_deleted(store, s->row.platform, ev->id, &have, &e) < 0 || have ||
           store_files(store, s->row.id, &rows, &n, &e) < 0;
    for (size_t i = 0; i < n; i++) {
        have = have || rows[i].seq == r->seq;
        file_row_clear(&rows[i]);
    }
    free(rows);
    if (!have && ev->file_n)
        free(take_files(s, r, ev));
}

/* ---- messages ---- */

static struct request *request_of(struct session *s, int64_t seq, const struct chat_event *ev)
{
    return request_new(s, seq, ev->id, ev->sender ? ev->sender : "?", ev->name, ev->text ? ev->text : "");
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

/* Decides what a kept message is, and owns r from here on. */
void request_route(struct request *take_r, bool bare)
{
    struct session *s = take_r->session;
    const char *arg = NULL;
    const struct command *c = command_find(take_r->text, bare, &arg);
    if (c && !command_waits(c)) {
        session_set_inbox(s, take_r->seq, INBOX_DONE); /* before: rerun puts it back into the queue */
        command_run(c, take_r, arg);
        request_free(take_r);
        return;
    }
    if (!c && (is_too_quick(s, take_r) || has_enough(s, take_r))) {
        session_set_inbox(s, take_r->seq, INBOX_DROPPED);
        request_free(take_r);
        return;
    }
    take_r->command = c;
    request_enqueue(take_r);
}

static bool may_ask(const struct hub_chat *c, const struct chat_event *ev)
{
    const struct conf *conf = c->hub->parts.conf;
    return access_listed(conf->access_people, ev->sender ? ev->sender : "") &&
           (ev->direct || access_listed(conf->access_rooms, ev->room ? ev->room : ""));
}

/* Told to who addressed us; whoever only overhears us is not. */
static int turn_away(struct hub_chat *c, const struct chat_event *ev)
{
    struct err e = { 0 };
    struct session *s = ev->mentioned || ev->direct ? session_get(c, ev->room, ev->thread, &e) : NULL;
    log_info("not_allowed", KV_S("platform", c->ops->name), KV_S("sender", ev->sender), KV_S("room", ev->room));
    if (!s)
        return 0;
    const bool known = access_listed(c->hub->parts.conf->access_people, ev->sender ? ev->sender : "");
    struct request *r = request_of(s, 0, ev);
    session_notice_words(s, r, known ? WORD_NOT_HERE : WORD_NOT_YOU, NULL, NULL);
    request_free(r);
    return 0;
}

static int take_message(struct hub_chat *c, const struct chat_event *ev)
{
    struct err e = { 0 };
    int64_t seq = 0;
    bool fresh = false;
    if (ev->from_bot || (!ev->mentioned && !ev->direct && !ev->thread && ev->file_n == 0))
        return 0;
    if (!may_ask(c, ev))
        return turn_away(c, ev);
    struct session *s = session_get(c, ev->room, ev->thread, &e);
    if (!s)
        return unkept_message(c, ev, &e);
    const bool addressed = is_addressed(s, ev);
    if (!addressed && ev->file_n == 0)
        return 0;
    if (keep_event(s, ev, &seq, &fresh) < 0)
        return -1;
    struct request *r = request_of(s, seq, ev);
    r->overheard = !addressed;
    if (!fresh) {
        take_missing_files(s, r, ev);
        request_free(r);
        return 0;
    }
    autofree char *names = take_files(s, r, ev);
    if (addressed && !is_blank(r->text)) {
        request_route(r, ev->mentioned || ev->direct);
        return 0;
    }
    if (addressed && !ev->file_n && ev->mentioned)
        greet(r);
    else if (addressed)
        greet_files(s, r, names);
    session_set_inbox(s, seq, INBOX_DONE);
    request_free(r);
    return 0;
}

/* ---- second thoughts ---- */

/* At the same place in the line; behind the running turn, whose question it replaces, at its head. */
static void put_edit(struct session *s, struct request *r, const char *about)
{
    struct request **queued = request_queued(s, about);
    if (*queued) {
        r->next = (*queued)->next;
        request_drop(s, queued);
        *queued = r;
    } else if (s->turn && request_is_about(s->turn->request, about)) {
        turn_cancel(s, r->name, true);
        r->next = s->queue;
        s->queue = r;
    } else {
        request_enqueue(r);
        return;
    }
    request_counts(r);
    session_set_inbox(s, r->seq, INBOX_QUEUED);
    session_wake(s);
}

static int take_edit(struct hub_chat *c, const struct chat_event *ev)
{
    struct err e = { 0 };
    int64_t seq = 0;
    bool fresh = false;
    const char *text = ev->text ? ev->text : "";
    struct session *s = ev->about ? session_with(c, ev->about) : NULL;
    if (!s)
        s = session_get(c, ev->room, ev->thread, &e);
    if (!s)
        return -1;
    if (ev->from_bot || !ev->about || is_blank(text) || (!is_addressed(s, ev) && !session_with(c, ev->about)))
        return 0;
    if (keep_event(s, ev, &seq, &fresh) < 0)
        return -1;
    if (!fresh)
        return 0;
    if (session_says_the_same(s, ev->about, text)) { /* a preview was added, or the like */
        session_set_inbox(s, seq, INBOX_DONE);
        return 0;
    }
    struct request *r = request_of(s, seq, ev);
    request_rewords(r, ev->about);
    put_edit(s, r, ev->about);
    return 0;
}

static void drop_deleted(struct session *s, const struct chat_event *ev)
{
    struct request **queued = request_queued(s, ev->about);
    if (*queued) {
        request_drop(s, queued);
        session_wake(s);
    } else if (s->turn && request_is_about(s->turn->request, ev->about)) {
        turn_cancel(s, ev->name ? ev->name : "?", true);
    }
}

static int take_delete(struct hub_chat *c, const struct chat_event *ev)
{
    struct session *s = ev->about ? session_with(c, ev->about) : NULL;
    if (s)
        drop_deleted(s, ev);
    return ev->about && !ev->ours ? session_withdraw(c, ev->about) : 0;
}

/* We are not in that room any more: nobody could hear an answer. Files and variables stay, for when we come back. */
static int take_leave(struct hub_chat *c, const struct chat_event *ev)
{
    for (struct map_item *i = c->hub->sessions.first; i; i = i->next) {
        struct session *s = i->value;
        if (s->chat != c || !ev->room || strcmp(s->row.room, ev->room) != 0)
            continue;
        (void)session_drop_requests(s, NULL);
        if (s->turn)
            turn_cancel(s, "?", true);
    }
    return 0;
}

static const char *reaction_command(const char *key)
{
    static const char *const table[][2] = {
        { "\xf0\x9f\x9b\x91", "!stop" },  /* stop sign */
        { "\xe2\x8f\xb9", "!stop" },      /* stop button */
        { "\xe2\x9d\x8c", "!stop" },      /* cross mark */
        { "\xf0\x9f\x94\x81", "!rerun" }, /* repeat button */
        { "\xf0\x9f\x94\x84", "!rerun" }, /* arrows in a circle */
        { "\xe2\x86\xa9", "!undo" },      /* arrow back */
        { "\xe2\x8f\xaa", "!undo" },      /* rewind button */
        { "\xf0\x9f\x92\xbb", "!code" },  /* laptop */
    };
    for (size_t i = 0; i < countof(table); i++)
        if (strncmp(key, table[i][0], strlen(table[i][0])) == 0) /* a sign of how to draw it may follow */
            return table[i][1];
    return NULL;
}

static int take_reaction(struct hub_chat *c, const struct chat_event *ev)
{
    struct err e = { 0 };
    int64_t seq = 0;
    bool fresh = false;
    const char *command = ev->text ? reaction_command(ev->text) : NULL;
    if (!command || ev->from_bot)
        return 0;
    struct session *s = ev->about ? session_with(c, ev->about) : NULL;
    if (!s)
        s = session_get(c, ev->room, ev->thread, &e);
    if (!s)
        return -1;
    if (!s->talked)
        return 0;
    struct chat_event said = *ev;
    said.text = command;
    if (keep_event(s, &said, &seq, &fresh) < 0)
        return -1;
    if (fresh)
        request_route(request_of(s, seq, &said), true);
    return 0;
}

int session_take_event(struct hub_chat *c, const struct chat_event *ev)
{
    metric_count(METRIC_EVENTS, c->ops->name, 1);
    if (ev->type == CHAT_MESSAGE && ev->sent_ms > 0)
        metric_took_ms(METRIC_CHAT_LAG, c->ops->name, time_unix_ms() - ev->sent_ms);
    switch (ev->type) {
    case CHAT_MESSAGE: return take_message(c, ev);
    case CHAT_EDIT: return may_ask(c, ev) ? take_edit(c, ev) : 0;
    case CHAT_DELETE: return take_delete(c, ev); /* the platform says who may */
    case CHAT_REACTION: return may_ask(c, ev) ? take_reaction(c, ev) : 0;
    case CHAT_LEFT: return take_leave(c, ev);
    case CHAT_MOVED: return ev->about && ev->room ? session_move(c, ev->about, ev->room) : 0;
    }
    return 0;
}
