/* core_world.h - what tests of the core stand on: a clock of our own, a folder, a scripted box, a recorded model, a chat that
 * remembers what was posted. Nothing sleeps. */
#ifndef CORE_WORLD_H
#define CORE_WORLD_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>
#include "conf.h"
#include "json.h"
#include "log.h"
#include "loop.h"
#include "session.h"

struct post {
    enum chat_post_type type;
    char *txn, *amends, *room, *thread, *reply_to, *markdown, *receipt, *figures, *files;
    size_t figure_n, file_n;
    int64_t at_ms;
};

/* The chat: remembers posts; can be told to fail. */
struct chat {
    struct world *world;
    struct post *posts;
    size_t n, cap;
    int fail_n;              /* so many posts from now on fail */
    enum err_kind fail_kind; /* with this */
};

struct world {
    int64_t now_ms;
    struct loop *l;
    struct conf conf;
    char dir[64];
    struct sandbox *sandbox;
    struct store *store;
    struct session_hub *hub;
    struct chat chat;
    bool ready;
    int drained;
    size_t events; /* makes event ids */
    struct session_watch watch;
    const struct model_ops *spy; /* instead of model_replay; NULL: none */
    bool keep_state;
};

static inline int64_t world_clock(void *ud)
{
    return ((const struct world *)ud)->now_ms;
}

/* So many milliseconds pass; whatever is due on the way happens. */
static inline void world_run(struct world *w, int64_t ms)
{
    struct err e = { 0 };
    const int64_t end = w->now_ms + ms;
    for (;;) {
        for (int i = 0; i < 50; i++)
            assert_int_equal(loop_once(w->l, 0, &e), 0);
        if (w->now_ms >= end)
            break;
        w->now_ms += ms < 1000 ? 10 : 100;
    }
}

static inline void world_write(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static inline void world_ready(void *ud, const struct err *e)
{
    assert_null(e);
    ((struct world *)ud)->ready = true;
}

/* The recording that the model speaks from: one JSON object a line. */
static inline void world_model(struct world *w, const char *lines)
{
    autofree char *path = xasprintf("%s/model.jsonl", w->dir);
    world_write(path, lines);
}

static inline void world_open(struct world *w, const char *model_lines, const char *box_lines)
{
    struct err e = { 0 };
    *w = (struct world){ .now_ms = 1000000 };
    w->chat.world = w;
    (void)snprintf(w->dir, sizeof(w->dir), "%s/test-core-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(w->dir));
    log_set_level(getenv("TEST_LOG") ? LOG_DEBUG : LOG_ERROR);
    conf_init(&w->conf);
    world_model(w, model_lines);
    autofree char *url = xasprintf("model.tape.url=%s/model.jsonl", w->dir);
    const char *const settings[] = { "model.tape.dialect=replay", url, "agent.model=tape",
                                     "service.prompts_dir=prompts" };
    for (size_t i = 0; i < countof(settings); i++)
        if (conf_set(&w->conf, settings[i], &e) < 0)
            fail_msg("%s", e.msg);
    sandbox_fake_script(box_lines);
    assert_int_equal(loop_new(&w->l, world_clock, w, &e), 0);
    assert_int_equal(sandbox_fake.start(&w->sandbox, w->l, &w->conf, world_ready, w, &e), 0);
    world_run(w, 0);
    assert_true(w->ready);
}

/* How many cells were run. */
static inline size_t world_cells(void)
{
    size_t n = 0;
    for (size_t i = 0; sandbox_fake_asked(i); i++)
        n += strncmp(sandbox_fake_asked(i), "cell ", 5) == 0;
    return n;
}

/* ---- the chat ---- */

static inline char *world_dup(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

/* Names, one after the other, as "a.csv b.png". */
static inline char *world_names(const struct artifact *a, size_t n)
{
    AUTO(str_clear) struct str names = STR_INIT(64 << 10);
    for (size_t i = 0; i < n; i++)
        str_printf(&names, "%s%s", i ? " " : "", a[i].name);
    return str_take(&names);
}

static inline int world_post(struct chat *c, const struct chat_post *p, void (*done)(void *ud, const struct err *e),
                             void *ud, struct err *e)
{
    if (p->type == CHAT_ANSWER && c->fail_n > 0) {
        c->fail_n--;
        return err_set(e, c->fail_kind, "as the test wants it");
    }
    c->posts = xgrow(c->posts, &c->cap, c->n + 1, sizeof(*c->posts));
    c->posts[c->n++] = (struct post){
        .type = p->type,
        .txn = world_dup(p->txn),
        .amends = world_dup(p->amends),
        .room = world_dup(p->room),
        .thread = world_dup(p->thread),
        .reply_to = world_dup(p->reply_to),
        .markdown = world_dup(p->markdown),
        .receipt = world_dup(p->receipt),
        .figures = world_names(p->figures, p->figure_n),
        .files = world_names(p->files, p->file_n),
        .figure_n = p->figure_n,
        .file_n = p->file_n,
        .at_ms = c->world->now_ms,
    };
    done(ud, NULL);
    return 0;
}

static const struct chat_ops chat_record = { .name = "test", .post = world_post };

static inline void world_forget_posts(struct world *w)
{
    for (size_t i = 0; i < w->chat.n; i++) {
        struct post *p = &w->chat.posts[i];
        char *const texts[] = { p->txn,      p->amends,  p->room,    p->thread, p->reply_to,
                                p->markdown, p->receipt, p->figures, p->files };
        for (size_t k = 0; k < countof(texts); k++)
            free(texts[k]);
    }
    free(w->chat.posts);
    w->chat.posts = NULL;
    w->chat.n = w->chat.cap = 0;
}

static inline size_t world_count(const struct world *w, enum chat_post_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < w->chat.n; i++)
        n += w->chat.posts[i].type == type;
    return n;
}

/* The i-th post of that type; the test fails when there are fewer. */
static inline const struct post *world_posted(const struct world *w, enum chat_post_type type, size_t i)
{
    for (size_t k = 0; k < w->chat.n; k++)
        if (w->chat.posts[k].type == type && i-- == 0)
            return &w->chat.posts[k];
    fail_msg("there is no such post");
    abort(); /* not reached, which compilers cannot know */
}

static inline const char *answer(const struct world *w, size_t i)
{
    return world_posted(w, CHAT_ANSWER, i)->markdown;
}

static inline void world_drained(void *ud)
{
    ((struct world *)ud)->drained++;
}

/* ---- the hub ---- */

/* A life of the daemon: begins with what the last one left in the store. */
static inline void world_start_without_model(struct world *w)
{
    static const struct model_ops *models[2]; /* the hub keeps it */
    models[0] = w->spy ? w->spy : &model_replay;
    struct err e = { 0 };
    w->watch.drained = world_drained;
    if (store_open(&w->store, w->dir, &e) < 0)
        fail_msg("%s", e.msg);
    const struct session_parts parts = {
        .loop = w->l,
        .conf = &w->conf,
        .store = w->store,
        .sandbox_ops = &sandbox_fake,
        .sandbox = w->sandbox,
        .models = models,
        .watch = &w->watch,
        .watch_ud = w,
        .keep_state = w->keep_state,
    };
    if (session_hub_new(&w->hub, &parts, &e) < 0)
        fail_msg("%s", e.msg);
    session_hub_attach(w->hub, &chat_record, &w->chat);
    assert_int_equal(session_hub_resume(w->hub, &e), 0);
}

static inline void world_start(struct world *w, const char *model_lines)
{
    world_model(w, model_lines);
    world_start_without_model(w);
}

static inline void world_stop(struct world *w)
{
    session_hub_free(w->hub);
    store_close(w->store);
    w->hub = NULL;
    w->store = NULL;
}

static inline int world_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static inline void world_close(struct world *w)
{
    if (w->hub)
        world_stop(w);
    world_forget_posts(w);
    sandbox_fake.stop(w->sandbox);
    world_run(w, 0);
    sandbox_fake_script(NULL);
    loop_free(w->l);
    conf_clear(&w->conf);
    (void)nftw(w->dir, world_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- what people do ---- */

static inline int world_event(struct world *w, const struct chat_event *like)
{
    char id[32];
    struct chat_event ev = *like;
    (void)snprintf(id, sizeof(id), "ev%zu", ++w->events);
    ev.id = like->id ? like->id : id;
    ev.room = like->room ? like->room : "room";
    ev.sender = like->sender ? like->sender : "@ann:x";
    ev.name = like->name ? like->name : "ann";
    ev.text = like->text ? like->text : "";
    ev.sent_ms = like->sent_ms ? like->sent_ms : time_unix_ms();
    return session_hub_events.on_event(w->hub, &w->chat, &ev);
}

/* A direct message. */
static inline void world_say(struct world *w, const char *text)
{
    assert_int_equal(world_event(w, &(struct chat_event){ .text = text, .direct = true }), 0);
}

/* The file's bytes are its content; sent with text, in a direct message unless like says another. */
static inline void world_send(struct world *w, const struct chat_event *like, const char *name, const char *content)
{
    autofree char *path = xasprintf("%s/upload", w->dir);
    world_write(path, content);
    autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    const struct chat_file f = { .name = name, .fd = fd, .bytes = (int64_t)strlen(content) };
    struct chat_event ev = *like;
    ev.files = &f;
    ev.file_n = 1;
    assert_int_equal(world_event(w, &ev), 0);
}

#define CALL(code)   "{\"calls\":[{\"args\":{\"code\":\"" code "\"}}]}\n"
#define SAY(text)    "{\"text\":\"" text "\"}\n"
#define LAST(text)   "{\"text\":\"" text "\",\"tools\":\"none\"}\n"
#define FAIL(name)   "{\"status\":\"error\",\"error\":{\"name\":\"" name "\",\"value\":\"bad\",\"line\":1}}\n"
#define PRINTS(text) "{\"stdout\":\"" text "\"}\n"

static inline void assert_says(const char *text, const char *part)
{
    if (!text || !strstr(text, part))
        fail_msg("\"%s\" is not in: %s", part, text ? text : "NULL");
}
#endif
