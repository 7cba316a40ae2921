/* slack_deliver.c - a pending event gets what it lacks (names, files, the thread so far) and goes to the core.
 *
 * One at a time in a channel, in the order they came; channels don't wait for each other. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "log.h"
#include "slack_inbox_private.h"
#include "slack_text.h"

enum {
    TEXT_MAX = 256 << 10,
    CSV_MAX = 16 << 20,
    CONTEXT_BYTES = 6000,
    USERS_MAX = 20,
    AGAIN_MAX_MS = 60000,
    TABLES_MAX = 5,
    PAGES_MAX = 20,
};

static void step(void *ud);
static void next_file(struct item *it);
static void hand_over(struct item *it);

/* ---- items and rooms ---- */

static void item_free(struct item *it)
{
    slack_api_cancel(it->call);
    slack_fetch_cancel(it->fetch);
    slack_people_forget(it->room->in->c.teams, it);
    for (size_t i = 0; i < it->file_n; i++) {
        if (it->file[i].fd >= 0)
            (void)close(it->file[i].fd);
        free(it->file[i].name);
        free(it->file[i].problem);
        free(it->file[i].message);
    }
    json_free(it->files);
    json_free(it->said);
    json_free(it->payload);
    free(it->key);
    free(it->context);
    free(it);
}

void deliver_free_room(struct room *r)
{
    loop_cancel(r->in->loop, r->timer);
    while (r->items) {
        struct item *it = r->items;
        r->items = it->next;
        item_free(it);
    }
    free(r->name);
    free(r);
}

static struct room *room_of(struct slack_inbox *in, const char *name)
{
    struct room *r = in->rooms;
    while (r && strcmp(r->name, name) != 0)
        r = r->next;
    if (r)
        return r;
    r = xcalloc(1, sizeof(*r));
    *r = (struct room){ .next = in->rooms, .in = in, .name = xstrdup(name), .end = &r->items };
    in->rooms = r;
    return r;
}

static void wake(struct room *r, int64_t ms)
{
    loop_cancel(r->in->loop, r->timer);
    r->timer = loop_after(r->in->loop, ms, step, r);
}

static void drop_room(struct room *r)
{
    struct room **at = &r->in->rooms;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    deliver_free_room(r);
}

/* Where it is answered; NULL: beside it, in a direct message that is one conversation. Caller frees. */
static char *thread_of(const struct item *it)
{
    const struct slack_event *ev = &it->ev;
    const bool dm = ev->direct || (ev->channel && *ev->channel == 'D');
    const bool flat = dm && strcmp(it->room->in->conf->slack_dm_mode, "flat") == 0;
    return ev->root && !flat ? xasprintf("%s/%s", it->room->name, ev->root) : NULL;
}

void deliver_add(struct slack_inbox *in, const char *key, struct json *take_payload, struct slack_team *team,
                 const char *room)
{
    struct room *r = room_of(in, room);
    struct item *it = xcalloc(1, sizeof(*it));
    const struct slack_self self = slack_team_self(team);
    *it = (struct item){ .room = r, .key = xstrdup(key), .payload = take_payload, .team = team };
    slack_event_read(&it->ev, it->payload, &self);
    it->ev.root = it->ev.root ? it->ev.root : json_str_or(it->payload, "sandbook_root", NULL);
    it->first = key[strlen(key) - 1] == 'f' && strlen(key) > 16;
    *r->end = it;
    r->end = &it->next;
    in->waiting++;
    autofree char *thread = it->ev.kind == SLACK_MESSAGE ? thread_of(it) : NULL;
    if (thread && !it->ev.shared) /* whether that person is answered is known later */
        in->c.taken(in->c.taken_ud, room, thread);
    if (!r->busy)
        wake(r, 0);
}

static void over(struct item *it)
{
    struct room *r = it->room;
    r->items = it->next;
    r->end = r->items ? r->end : &r->items;
    r->in->waiting--;
    item_free(it);
    r->busy = false;
    if (r->items)
        wake(r, 0);
    else
        drop_room(r);
}

static void again(struct item *it)
{
    const int64_t ms = INT64_C(1000) << (it->tries < 6 ? it->tries : 6);
    it->tries++;
    it->room->busy = false; /* the item stays at the head, with all that it has by now */
    wake(it->room, ms < AGAIN_MAX_MS ? ms : AGAIN_MAX_MS);
}

/* ---- files ---- */

static struct item_file *add_file(struct item *it, const char *name)
{
    struct item_file *f = &it->file[it->file_n++];
    *f = (struct item_file){ .name = slack_fetch_name(name), .fd = -1 };
    return f;
}

static void on_file(void *ud, int fd, int64_t bytes, const char *name, const char *problem)
{
    struct item *it = ud;
    struct item_file *f = &it->file[it->file_n - 1];
    it->fetch = NULL;
    free(f->name);
    f->name = slack_fetch_name(name);
    f->fd = fd;
    f->bytes = bytes;
    f->problem = problem ? xstrdup(problem) : NULL;
    it->file_bytes += bytes;
    next_file(it);
}

/* Of an organisation's installation the workspace does not say it: any of its own may write there, so the person is asked about. */
static bool is_outsider(const struct item *it)
{
    const struct slack_event *ev = &it->ev;
    if (!ev->shared || !ev->user)
        return false;
    if (it->team->team)
        return ev->user_team && strcmp(ev->user_team, it->team->team) != 0;
    return !(ev->user_team && ev->team && strcmp(ev->user_team, ev->team) == 0) &&
           slack_people_is_outside(it->room->in->c.teams, it->team, ev->user);
}

static const char *no_files_from_outside(const struct item *it)
{
    return is_outsider(it) && strcmp(it->room->in->conf->slack_external_users, "answer_without_files") == 0
               ? "files of other organisations are not taken here"
               : NULL;
}

/* NOLINTNEXTLINE(misc-no-recursion): SLACK_FILES_MAX ends it */
static void next_file(struct item *it)
{
    const struct json *file = it->file_at;
    struct slack_inbox *in = it->room->in;
    if (!file || it->file_n == SLACK_FILES_MAX) {
        hand_over(it);
        return;
    }
    it->file_at = json_next(file);
    struct item_file *f = add_file(it, slack_fetch_label(file));
    const char *ts = json_str_or(file, FILE_OF, NULL);
    f->message = ts ? xasprintf("%s/%s", it->room->name, ts) : NULL;
    const char *problem = no_files_from_outside(it);
    if (!problem && it->file_bytes > SLACK_FILES_BYTES_MAX)
        problem = "the files of this message are too large together";
    if (!problem && it->file_n == SLACK_FILES_MAX && it->file_at)
        problem = "a message may bring 20 files; this one and those behind it are left out";
    if (problem) {
        f->problem = xstrdup(problem);
        next_file(it);
        return;
    }
    const struct slack_fetch_config c = { .loop = in->loop,
                                          .http = in->c.http,
                                          .api = in->c.api,
                                          .hosts = in->conf->slack_file_hosts,
                                          .follow = in->conf->slack_follow_hosts,
                                          .max_bytes = in->conf->upload_max_bytes };
    it->fetch = slack_fetch_start(&c, it->team, file, on_file, it);
}

/* A pasted table arrives as blocks, not as a file: it becomes one. */
static void add_tables(struct item *it)
{
    for (size_t n = 0; n < TABLES_MAX && it->file_n < SLACK_FILES_MAX; n++) {
        AUTO(str_clear) struct str csv = STR_INIT(CSV_MAX);
        if (!attach_table(&csv, it->ev.attachments, n))
            return;
        autofree char *name = xasprintf("pasted_%zu.csv", n + 1);
        struct item_file *f = add_file(it, name);
        f->fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        f->bytes = (int64_t)csv.len;
        if (f->fd < 0 || write_all(f->fd, str_peek(&csv), csv.len) < 0 || lseek(f->fd, 0, SEEK_SET) != 0)
            f->problem = xstrdup("this machine has no room for it");
    }
}

/* Of many in the thread before, the newest; the message's own are never left out in silence. */
static const struct json *newest_files(const struct item *it)
{
    const struct json *f = json_first(it->files);
    const size_t room = it->file_n < SLACK_FILES_MAX ? SLACK_FILES_MAX - it->file_n : 0;
    size_t skip = json_len(it->files) > room ? json_len(it->files) - room : 0;
    skip = skip < it->earlier_n ? skip : it->earlier_n;
    for (; skip && f; skip--)
        f = json_next(f);
    return f;
}

static void begin_files(struct item *it)
{
    if (!it->files)
        it->files = json_new_array();
    for (const struct json *f = json_first(it->ev.files); f; f = json_next(f)) {
        struct json *copy = json_dup(f);
        json_set_str(copy, FILE_OF, NULL);
        json_push(it->files, copy);
    }
    attach_files(it->files, it->ev.attachments);
    add_tables(it);
    it->file_at = newest_files(it);
    next_file(it);
}

/* ---- the thread so far ---- */

static const char *known_name(void *ud, const char *user)
{
    const struct item *it = ud;
    return slack_people_name(it->room->in->c.teams, it->team, user);
}

static void add_said(struct item *it, struct str *out, const struct json *m)
{
    AUTO(str_clear) struct str words = STR_INIT(TEXT_MAX);
    const char *user = json_str_or(m, "user", ""), *name = *user ? known_name(it, user) : NULL;
    name = name ? name : json_str_or(m, "username", json_str_or(json_get(m, "bot_profile"), "name", user));
    slack_text_decode(&words, json_str_or(m, "text", ""), NULL, known_name, it);
    const size_t n = utf8_cut(str_peek(&words), words.len, CONTEXT_BYTES / 4);
    if (!n)
        return;
    str_printf(out, "> %s: ", *name ? name : "someone");
    for (size_t i = 0; i < n; i++) {
        str_putc(out, words.buf[i]);
        if (words.buf[i] == '\n')
            str_puts(out, "> ");
    }
    str_putc(out, '\n');
}

/* The root, and of the rest the newest. */
static char *context_of(struct item *it, const struct json *messages)
{
    const size_t max = (size_t)it->room->in->conf->slack_thread_context, n = json_len(messages);
    AUTO(str_clear) struct str out = STR_INIT(TEXT_MAX);
    size_t i = 0;
    for (const struct json *m = json_first(messages); m; m = json_next(m), i++) {
        const char *ts = json_str_or(m, "ts", "");
        const bool told = i == 0 || i + max >= n;
        if (told && slack_is_ts(ts) && slack_ts_compare(ts, it->ev.ts) < 0 && out.len < CONTEXT_BYTES)
            add_said(it, &out, m);
    }
    return out.len ? str_take(&out) : NULL;
}

static void ask_replies(struct item *it, const char *cursor);

static void keep_reply(struct item *it, const struct json *m)
{
    const char *ts = json_str_or(m, "ts", "");
    const bool ours = it->team->user && strcmp(json_str_or(m, "user", ""), it->team->user) == 0;
    if (!slack_is_ts(ts) || slack_ts_compare(ts, it->ev.ts) >= 0)
        return;
    json_push(it->said, json_dup(m));
    for (const struct json *f = ours ? NULL : json_first(json_get(m, "files")); f; f = json_next(f)) {
        struct json *copy = json_dup(f);
        json_set_str(copy, FILE_OF, ts);
        json_push(it->files, copy);
    }
}

static void on_replies(void *ud, const struct slack_reply *r)
{
    struct item *it = ud;
    const struct conf *conf = it->room->in->conf;
    const char *cursor = json_str_or(json_get(r->body, "response_metadata"), "next_cursor", "");
    it->call = NULL;
    for (const struct json *m = json_first(json_get(r->body, "messages")); m; m = json_next(m))
        keep_reply(it, m);
    if (*cursor && ++it->pages < PAGES_MAX) {
        ask_replies(it, cursor);
        return;
    }
    if (conf->slack_thread_context && strcmp(conf->model, "builtin") != 0)
        it->context = context_of(it, it->said);
    it->earlier_n = json_len(it->files);
    begin_files(it);
}

/* Mentioned in the middle of a thread: files that lie there already are meant too. */
static void ask_replies(struct item *it, const char *cursor)
{
    AUTO(str_clear) struct str form = STR_INIT(SLACK_FORM_MAX);
    slack_form_add(&form, "channel", it->ev.channel);
    slack_form_add(&form, "ts", it->ev.root);
    slack_form_add(&form, "latest", it->ev.ts);
    slack_form_add_int(&form, "limit", 200);
    slack_form_add(&form, "cursor", cursor);
    const struct slack_request r = { .method = "conversations.replies", .team = it->team, .form = &form, .tries = 2 };
    it->call = slack_api_start(it->room->in->c.api, &r, on_replies, it);
}

static void begin_replies(struct item *it)
{
    it->files = json_new_array();
    it->said = json_new_array();
    ask_replies(it, NULL);
}

/* ---- names ---- */

struct users {
    const char *at[USERS_MAX];
    char *copy[USERS_MAX];
    size_t n;
};

static void add_user(void *ud, const char *user)
{
    struct users *u = ud;
    for (size_t i = 0; i < u->n; i++)
        if (strcmp(u->at[i], user) == 0)
            return;
    if (u->n < USERS_MAX) {
        u->copy[u->n] = xstrdup(user);
        u->at[u->n] = u->copy[u->n];
        u->n++;
    }
}

/* Known only now, or never: then nothing is said by mistake. */
static void turn_away(struct item *it)
{
    struct slack_inbox *in = it->room->in;
    struct err e = { 0 };
    const struct kept pending = { .platform = "slack", .kind = "pending", .key = it->key };
    log_info("slack_external_ignored", KV_S("team", it->ev.team), KV_S("user", it->ev.user));
    in->c.other(in->c.other_ud, it->team, &it->ev);
    if (store_unkeep(in->store, &pending, &e) < 0)
        log_warn("slack_event_not_taken", KV_S("key", it->key), KV_I("tries", it->tries), KV_E(&e));
    over(it);
}

static void named(void *ud)
{
    struct item *it = ud;
    if (!it->team->team && is_outsider(it) && strcmp(it->room->in->conf->slack_external_users, "ignore") == 0)
        turn_away(it);
    else if (it->first)
        begin_replies(it);
    else
        begin_files(it);
}

static void ask_names(struct item *it)
{
    struct users u = { 0 };
    if (it->ev.user)
        add_user(&u, it->ev.user);
    if (it->ev.text)
        slack_text_each_user(it->ev.text, add_user, &u);
    slack_people_ask(it->room->in->c.teams, it->team, u.at, u.n, named, it);
    for (size_t i = 0; i < u.n; i++)
        free(u.copy[i]);
}

/* ---- to the core ---- */

static enum chat_event_type type_of(enum slack_kind kind)
{
    switch (kind) {
    case SLACK_EDIT: return CHAT_EDIT;
    case SLACK_DELETE: return CHAT_DELETE;
    case SLACK_REACTION:
    case SLACK_STOP: return CHAT_REACTION;
    case SLACK_MESSAGE:
    case SLACK_NOTHING:
    case SLACK_HOME:
    case SLACK_JOINED:
    case SLACK_MOVED:
    case SLACK_GONE:
    case SLACK_RATE: return CHAT_MESSAGE;
    }
    return CHAT_MESSAGE;
}

static char *text_of(struct item *it)
{
    AUTO(str_clear) struct str out = STR_INIT(TEXT_MAX);
    if (it->ev.kind == SLACK_REACTION)
        return xstrdup(it->ev.key);
    if (it->ev.kind == SLACK_STOP)
        return xstrdup("🛑");
    if (it->ev.text)
        slack_text_decode(&out, it->ev.text, it->team->user, known_name, it);
    if (!out.len && it->ev.text && !*it->ev.text)
        attach_words(&out, it->ev.blocks);
    if (it->ev.kind == SLACK_MESSAGE && it->ev.mentioned && !out.len && !it->file_n)
        return xstrdup("help"); /* called, and nothing said */
    attach_quotes(&out, it->ev.attachments);
    if (it->context)
        str_printf(&out, "\n\nEarlier in this thread:\n%s", it->context);
    return str_take(&out);
}

/* An event's own id: a message's place and time; what is done to a message has a suffix. */
static char *id_of(const struct item *it)
{
    const struct slack_event *ev = &it->ev;
    const char *room = it->room->name;
    switch (ev->kind) {
    case SLACK_EDIT: return xasprintf("%s/%s#edit-%s", room, ev->about, ev->ts);
    case SLACK_DELETE: return xasprintf("%s/%s#gone", room, ev->about);
    case SLACK_REACTION: return xasprintf("%s/%s#%s-%s-%s", room, ev->about, ev->key, ev->user, ev->ts);
    case SLACK_STOP: return xasprintf("%s/%s#stop-%s-%s", room, ev->about, ev->user, ev->ts);
    case SLACK_MESSAGE:
    case SLACK_NOTHING:
    case SLACK_HOME:
    case SLACK_JOINED:
    case SLACK_MOVED:
    case SLACK_GONE:
    case SLACK_RATE: return xasprintf("%s/%s", room, ev->ts);
    }
    return xasprintf("%s/%s", room, ev->ts);
}

/* Not waited for: were it undone, the pending row would be there again, and the core would not know the event. */
static int call_core(struct item *it, const struct chat_event *ev)
{
    struct slack_inbox *in = it->room->in;
    struct err e = { 0 };
    AUTO(store_batch_end) struct store_batch b = { 0 };
    const struct kept pending = { .platform = "slack", .kind = "pending", .key = it->key };
    if (store_batch_begin_lazy(&b, in->store, &e) < 0 || in->c.ev->on_event(in->c.ev_ud, in->c.chat, ev) < 0 ||
        store_unkeep(in->store, &pending, &e) < 0 || store_batch_commit(&b, &e) < 0) {
        log_warn("slack_event_not_taken", KV_S("key", it->key), KV_I("tries", it->tries), KV_E(&e));
        return -1;
    }
    return 0;
}

static void files_of(const struct item *it, struct chat_file *out)
{
    for (size_t i = 0; i < it->file_n; i++) {
        const struct item_file *f = &it->file[i];
        const bool had = f->fd >= 0 && lseek(f->fd, 0, SEEK_SET) == 0; /* it may be the second try */
        out[i] = (struct chat_file){
            .name = f->name, .fd = had ? f->fd : -1, .bytes = f->bytes, .problem = f->problem, .message = f->message
        };
    }
}

static void hand_over(struct item *it)
{
    const struct slack_event *ev = &it->ev;
    const char *name = ev->user ? known_name(it, ev->user) : NULL;
    const bool dm = ev->direct || (ev->channel && *ev->channel == 'D');
    autofree char *id = id_of(it), *text = text_of(it), *thread = thread_of(it);
    autofree char *about = ev->about ? xasprintf("%s/%s", it->room->name, ev->about) : NULL;
    struct chat_file files[SLACK_FILES_MAX];
    files_of(it, files);
    if (ev->kind == SLACK_MESSAGE && thread && ev->user)
        asked_keep(it->room->in, thread, ev->user, text);
    const struct chat_event out = { .type = type_of(ev->kind),
                                    .id = id,
                                    .about = about,
                                    .room = it->room->name,
                                    .thread = thread,
                                    .sender = ev->user ? ev->user : "?",
                                    .name = name       ? name
                                            : ev->user ? ev->user
                                                       : "?",
                                    .text = text,
                                    .direct = dm,
                                    .mentioned = ev->mentioned,
                                    .files = files,
                                    .file_n = it->file_n,
                                    .sent_ms = ev->sent_ms };
    if (call_core(it, &out) < 0)
        again(it);
    else
        over(it);
}

static void step(void *ud)
{
    struct room *r = ud;
    r->timer = 0;
    if (r->busy || !r->items)
        return;
    r->busy = true;
    const enum slack_kind kind = r->items->ev.kind;
    if (!r->items->tries && (kind == SLACK_MESSAGE || kind == SLACK_EDIT))
        ask_names(r->items);
    else
        hand_over(r->items);
}
