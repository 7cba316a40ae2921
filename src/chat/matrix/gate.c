/* gate.c - is an event meant for us, what does it mean, and which conversation is it part of?
 *
 * Relations, reactions and redactions are in the clear even in encrypted rooms: servers could forge them. They stop and repeat what a
 * person asked for, and take back files that a person sent; nothing else. */
#include <string.h>
#include "ids.h"
#include "json.h"
#include "log.h"
#include "work.h"

static struct mx_self self_of(const struct chat *c)
{
    return (struct mx_self){ .user = c->login.user,
                             .localpart = c->login.localpart,
                             .display_name = c->display_name ? c->display_name : "" };
}

static void add_source(struct work *w, const struct json *content, const char *message)
{
    struct mx_file f;
    if (w->source_n == WORK_FILES_MAX || !mx_file_read(&f, content))
        return;
    AUTO(str_clear) struct str name = STR_INIT(4096);
    utf8_scrub(&name, f.name, strnlen(f.name, 1024));
    w->source[w->source_n++] = (struct source){ .name = xstrdup(str_peek(&name)),
                                                .mxc = xstrdup(f.mxc),
                                                .message = xstrdup_or_null(message),
                                                .encrypted = f.encrypted ? json_dup(f.encrypted) : NULL,
                                                .bytes = f.bytes };
}

void work_add_source(struct work *w, const struct json *content, const char *message)
{
    const struct json *items = mx_gallery(content);
    if (!items)
        add_source(w, content, message);
    for (const struct json *x = json_first(items); x; x = json_next(x))
        add_source(w, x, message);
}

void work_add_unread(struct work *w)
{
    const char *quoted = w->relation.reply_to;
    if (w->source_n < WORK_FILES_MAX && quoted && strcmp(w->fetch[w->fetched - 1], quoted) == 0)
        w->source[w->source_n++] = (struct source){ .name = xstrdup("the message you reply to"),
                                                    .mxc = xstrdup(""),
                                                    .problem = "its key is not here, so that it can't be read" };
}

static void add_fetch(struct work *w, const char *event)
{
    for (size_t i = 0; i < w->fetch_n; i++)
        if (strcmp(w->fetch[i], event) == 0)
            return;
    if (w->fetch_n < WORK_FETCH_MAX)
        w->fetch[w->fetch_n++] = xstrdup(event);
}

static bool needs_mention(const struct room *r, bool direct)
{
    const char *rule = matrix_room_setting(r, "require_mention", r->chat->conf->matrix_mention);
    return strcmp(rule, "always") == 0 || (strcmp(rule, "groups") == 0 && !direct);
}

static bool in_threads(const struct room *r)
{
    return strcmp(matrix_room_setting(r, "reply", r->chat->conf->matrix_reply), "thread") == 0;
}

bool gate_is_chatter(const struct room *r, const struct json *event)
{
    const struct mx_self self = self_of(r->chat);
    const struct json *content = json_get(event, "content");
    return !r->encrypted && r->chat->display_name && strcmp(json_str_or(event, "type", ""), "m.room.message") == 0 &&
           json_type(content) == JSON_OBJECT && !json_get(content, "m.relates_to") &&
           mx_msgtype(content) != MX_VERIFICATION && needs_mention(r, matrix_room_is_direct(r)) &&
           !mx_is_mentioned(content, &self);
}

/* ---- messages ---- */

/* Where an answer to an event outside of threads goes. */
static char *own_thread(const struct work *w, const char *event, enum mx_relation_type relation)
{
    const bool can_be_root = relation == MX_NO_RELATION;
    return !w->direct && can_be_root && in_threads(w->row->room) ? xstrdup(event) : NULL;
}

/* *quoted: what a person replied to, when that is known. */
static int find_thread(struct work *w, bool *is_ours, struct place *quoted, struct err *e)
{
    bool found = false;
    *is_ours = false;
    if (w->relation.reply_to && matrix_place_get(w->c, w->relation.reply_to, quoted, &found, e) < 0)
        return -1;
    if (w->relation.type == MX_THREAD)
        w->thread = xstrdup(w->relation.target);
    else if (found)
        w->thread = xstrdup_or_null(quoted->thread);
    else
        w->thread = own_thread(w, w->ev.id, w->relation.type);
    if (found && quoted->answers) /* who answers us talks to us */
        w->mentioned = true;
    return w->thread ? matrix_thread_known(w->c, w->row->room->id, w->thread, is_ours, e) : 0;
}

static int decide_message(struct work *w, struct err *e)
{
    const struct mx_self self = self_of(w->c);
    AUTO(place_clear) struct place quoted = { 0 };
    const enum mx_msgtype what = mx_msgtype(w->content);
    bool ours = false;
    if ((what != MX_TEXT && what != MX_FILE) || json_get(w->content, MATRIX_ANSWERS))
        return 0; /* notices are what programs say; the other is what our kind answers */
    w->type = CHAT_MESSAGE;
    w->mentioned = mx_is_mentioned(w->content, &self);
    if (find_thread(w, &ours, &quoted, e) < 0)
        return -1;
    const bool needs = needs_mention(w->row->room, w->direct);
    if (!w->mentioned && needs && (!ours || mx_mentions_others(w->content)))
        return 0;
    if (!needs && !w->direct)
        w->mentioned = true;
    w->text = mx_text(w->content, &self, w->relation.reply_to != NULL);
    work_add_source(w, w->content, NULL);
    if (w->relation.reply_to && !quoted.answers)
        add_fetch(w, w->relation.reply_to);
    if (w->relation.type == MX_THREAD && !ours)
        add_fetch(w, w->relation.target);
    w->remember = true;
    return 1;
}

/* ---- second thoughts ---- */

/* It was of no concern to us, and now calls us: as if it had been said like this. Who wrote it, and in which thread, only the server can say;
 * so may it carry a file. */
static int decide_late_mention(struct work *w)
{
    w->type = CHAT_MESSAGE;
    w->id = xstrdup(w->relation.target);
    w->remember = true;
    add_fetch(w, w->relation.target);
    return 1;
}

static int decide_edit(struct work *w, struct err *e)
{
    const struct mx_self self = self_of(w->c);
    AUTO(place_clear) struct place was = { 0 };
    bool found = false;
    const struct json *content = json_get(w->content, "m.new_content");
    const enum mx_msgtype what = mx_msgtype(content); /* of a file: its caption */
    if ((what != MX_TEXT && what != MX_FILE) || json_get(content, MATRIX_ANSWERS))
        return 0;
    if (matrix_place_get(w->c, w->relation.target, &was, &found, e) < 0)
        return -1;
    if (found ? !was.by || strcmp(was.by, w->ev.sender) != 0 /* nobody edits another's words */
              : !mx_is_mentioned(content, &self))
        return 0;
    w->mentioned = true;
    w->text = mx_text(content, &self, false);
    if (!found)
        return decide_late_mention(w);
    w->type = CHAT_EDIT;
    w->about = xstrdup(w->relation.target);
    w->thread = xstrdup_or_null(was.thread);
    return 1;
}

/* ---- what the server says of an event that it points to ---- */

static void move_to_thread(struct work *w, const char *root)
{
    struct err e = { 0 };
    bool ours = false;
    free(w->thread);
    w->thread = xstrdup(root);
    if (matrix_thread_known(w->c, w->row->room->id, root, &ours, &e) < 0)
        log_warn("matrix_thread_unread", KV_E(&e));
    if (!ours)
        add_fetch(w, root); /* it may be a file */
}

bool work_learn(struct work *w, const struct mx_event *ev)
{
    const bool edited = w->id && strcmp(w->fetch[w->fetched], w->id) == 0;
    const bool quoted = !edited && w->relation.reply_to && strcmp(w->fetch[w->fetched], w->relation.reply_to) == 0;
    struct mx_relation at;
    if (!ev || ev->redacted)
        return !edited;
    mx_relation_read(&at, json_get(ev->content, "m.relates_to"));
    if (edited && (strcmp(ev->sender, w->ev.sender) != 0 || at.type == MX_REPLACE))
        return false;
    if (edited)
        w->thread = own_thread(w, w->id, at.type);
    if (at.type == MX_THREAD && (edited || (quoted && w->relation.type == MX_NO_RELATION)))
        move_to_thread(w, at.target); /* of a client that knows no threads */
    return true;
}

static int decide_reaction(struct work *w, const char *target, struct err *e)
{
    AUTO(place_clear) struct place place = { 0 };
    bool found = false;
    if (!target || matrix_place_get(w->c, target, &place, &found, e) < 0)
        return target ? -1 : 0;
    if (!found)
        return 0;
    w->type = CHAT_REACTION;
    w->about = xstrdup(place.answers ? place.answers : target);
    w->thread = xstrdup_or_null(place.thread);
    w->text = xstrdup(w->relation.key);
    return 1;
}

/* ---- deleted ---- */

static struct kept deleted_row(const char *event)
{
    return (struct kept){ MATRIX_PLATFORM, "deleted", event };
}

int work_is_deleted(const struct work *w, bool *deleted, struct err *e)
{
    const struct kept k = deleted_row(w->ev.id);
    autofree char *when = NULL;
    size_t n = 0;
    const int rc = store_kept(w->c->store, &k, &when, &n, e);
    *deleted = when != NULL;
    return rc;
}

static bool some_wait_for_keys(const struct room *r)
{
    for (const struct row *row = r->chat->inbox->rows; row; row = row->next)
        if (row->room == r && row->state == ROW_PARKED)
            return true;
    return false;
}

/* Known to us or not: it may have brought a file that somebody asked about. One that waits for its keys is not to be read later. */
static int decide_delete(struct work *w, struct err *e)
{
    AUTO(place_clear) struct place place = { 0 };
    autofree char *now = xasprintf("%lld", (long long)time_unix_ms()); /* prune.c */
    const char *target = w->ev.redacts;
    bool found = false;
    if (!target || matrix_place_get(w->c, target, &place, &found, e) < 0)
        return target ? -1 : 0;
    const struct kept k = deleted_row(target);
    if (!found && some_wait_for_keys(w->row->room) && store_keep(w->c->store, &k, now, strlen(now), e) < 0)
        return -1;
    w->type = CHAT_DELETE;
    w->ours = place.answers != NULL;
    w->about = xstrdup(place.answers ? place.answers : target);
    w->thread = take(place.thread);
    w->text = xstrdup("");
    return 1;
}

/* ---- all of it ---- */

int work_decide(struct work *w, struct err *e)
{
    const char *type = w->ev.type;
    w->direct = matrix_room_is_direct(w->row->room);
    w->name = mx_localpart(w->ev.sender);
    if (strcmp(type, "m.room.redaction") == 0)
        return decide_delete(w, e);
    if (w->row->room->gone || w->ev.redacted)
        return 0;
    if (strcmp(type, "m.reaction") == 0)
        return w->relation.key ? decide_reaction(w, w->relation.target, e) : 0;
    if (strcmp(type, "m.room.message") != 0)
        return 0;
    return w->relation.type == MX_REPLACE ? decide_edit(w, e) : decide_message(w, e);
}
