/* Whatever a homeserver answers, from the page that says where it is to the files that people sent: nothing of it may touch memory of others, and
 * what comes out as an event of the chat is what chat.h promises.
 *
 * The text is one JSON object: "conf" (e.g. {"e2ee": "required"}), and by a piece of a request's address the answers to it, in their
 * order: {"/sync": [{...}, {...}], "/login": {...}, "media/download": {"status": 404, "body": {...}}}. All other requests are answered as
 * by an honest server. */
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "chat.h"
#include "conf.h"
#include "http.h"
#include "json.h"
#include "json_mutate.h"
#include "log.h"
#include "loop.h"
#include "store.h"

enum {
    TEXT_MAX = 256 << 10,
    SAME_MAX = 8,
    ROUNDS = 60,
    QUIET_MAX =
        6, /* rounds in a row that asked for nothing but the next sync, and had an honest one: the life is over */
    ROUND_MS = 400,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__asan_default_options(void);

/* A life makes some ten thousand allocations: what is remembered of each is most of its cost. */
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=8:malloc_context_size=6:max_malloc_fill_size=16";
}

static void must(bool holds)
{
    if (!holds)
        __builtin_trap();
}

#define PASSWORD "hunter22"
#define OURS     "https://ours.invalid"

/* Lines go nowhere, and never with a secret. */
void log_emit(enum log_level level, const char *event, const struct kv *kv, size_t n)
{
    (void)level, (void)event;
    for (size_t i = 0; i < n; i++) {
        const char *text = kv[i].type == KV_STR ? kv[i].v.s : kv[i].type == KV_ERR ? kv[i].v.e->msg : "";
        must(!text || !strstr(text, PASSWORD));
    }
}

/* ---- requests: kept until the script has its answer ---- */

struct http_call {
    struct http_call *next;
    struct http *http;
    char *method, *url;
    size_t max_bytes;
    const struct http_events *ev;
    void *ud;
};
struct http {
    int unused;
};

static struct http_call *calls;
static const struct json *script, *answering; /* answering: of the call whose done() runs */
static int64_t clock_ms;
static unsigned said;
static bool quiet; /* of the last answer: nothing comes of it */

static void call_end(struct http_call *c)
{
    struct http_call **at = &calls;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c->method);
    free(c->url);
    free(c);
}

int http_new(struct http **out, struct loop *l, struct err *e)
{
    (void)l, (void)e;
    *out = xcalloc(1, sizeof(**out));
    return 0;
}

void http_free(struct http *h)
{
    for (struct http_call *c = calls, *next; c; c = next) {
        next = c->next;
        if (c->http == h)
            call_end(c);
    }
    free(h);
}

/* curl refuses such addresses, which a server may send us to; of our own making none may be. */
static bool is_address(const char *url)
{
    const char *p = url;
    while ((unsigned char)*p > ' ' && (unsigned char)*p < 127)
        p++;
    must(!*p || strncmp(url, OURS "/", strlen(OURS "/")) != 0);
    return !*p;
}

int http_start(struct http_call **out, struct http *h, const struct http_request *r, const struct http_events *ev,
               void *ud, struct err *e)
{
    struct http_call *c = xcalloc(1, sizeof(*c)), **end = &calls;
    for (size_t i = 0; r->headers && r->headers[i]; i++)
        must(!strpbrk(r->headers[i], "\r\n"));
    if (!is_address(r->url)) {
        free(c);
        return err_set(e, ERR_CONFIG, "no address");
    }
    *c = (struct http_call){
        .http = h, .method = xstrdup(r->method), .url = xstrdup(r->url), .max_bytes = r->max_bytes, .ev = ev, .ud = ud
    };
    while (*end)
        end = &(*end)->next;
    *end = c;
    *out = c;
    return 0;
}

void http_cancel(struct http_call *c)
{
    if (c)
        call_end(c);
}

const char *http_header(const struct http_answer *a, const char *name)
{
    (void)a;
    return json_str_or(json_get(answering, "headers"), name, NULL);
}

int64_t http_retry_after_ms(const struct http_answer *a)
{
    (void)a;
    return json_int_or(answering, "retry", 0);
}

/* ---- answers ---- */

struct reply {
    int status;
    struct str text;
};

static void honest(struct reply *out, const struct http_call *c)
{
    static const char *const table[][2] = {
        { "/.well-known/", "{\"m.homeserver\":{\"base_url\":\"" OURS "\"}}" },
        { "/versions", "{\"versions\":[\"v1.11\"]}" },
        { "/login", "{\"user_id\":\"@bot:x\",\"device_id\":\"D\",\"access_token\":\"t\"}" },
        { "/whoami", "{\"user_id\":\"@bot:x\",\"device_id\":\"D\"}" },
    };
    out->status = 200;
    if (strstr(c->url, "/send/") || strstr(c->url, "/redact/"))
        str_printf(&out->text, "{\"event_id\":\"$s%u\"}", ++said);
    else if (strstr(c->url, "/sync"))
        str_printf(&out->text, "{\"next_batch\":\"n%u\"}", ++said);
    for (size_t i = 0; !out->text.len && i < countof(table); i++)
        if (strstr(c->url, table[i][0]))
            str_puts(&out->text, table[i][1]);
    if (!out->text.len)
        str_puts(&out->text, "{}");
}

/* The script's next one for that address; NULL: it says nothing of it (any more). */
static const struct json *scripted(const struct http_call *c)
{
    static struct {
        const struct json *of;
        size_t n;
    } used[SAME_MAX];
    size_t i = 0;
    if (!c) {
        memset(used, 0, sizeof(used));
        return NULL;
    }
    const struct json *found = json_first(script);
    while (found && (!json_key(found)[0] || !strstr(c->url, json_key(found))))
        found = json_next(found);
    if (!found || json_type(found) != JSON_ARRAY)
        return found;
    while (i < SAME_MAX - 1 && used[i].of && used[i].of != found)
        i++;
    used[i].of = found;
    const struct json *v = json_first(found);
    for (size_t k = used[i].n++; v && k; k--)
        v = json_next(v);
    return v;
}

static void reply_to(struct reply *out, const struct http_call *c)
{
    answering = scripted(c);
    quiet = !answering && (strstr(c->url, "/sync") || strstr(c->url, "/typing/") || strstr(c->url, "/receipt/"));
    if (!answering) {
        honest(out, c);
        return;
    }
    const int64_t status = json_int_or(answering, "status", 200);
    const struct json *body = json_get(answering, "body");
    out->status = status >= 0 && status < 1000 ? (int)status : 500;
    if (json_type(body) == JSON_STRING) /* bytes */
        str_puts(&out->text, json_text(body));
    else
        json_print(&out->text, body ? body : answering);
}

static void answer(struct http_call *c)
{
    struct reply r = { .text = STR_INIT(1 << 20) };
    struct err lost = { 0 };
    reply_to(&r, c);
    struct http_answer a = { .status = r.status, .body = str_peek(&r.text), .body_n = r.text.len };
    const struct http_events *ev = c->ev;
    void *ud = c->ud;
    bool ok = r.status > 0 && r.text.len <= c->max_bytes;
    if (ok && ev->body) {
        ok = ev->body(ud, a.status, a.body, a.body_n / 2) &&
             ev->body(ud, a.status, a.body + a.body_n / 2, a.body_n - a.body_n / 2);
        a.body = NULL;
        a.body_n = 0;
    }
    if (!ok) {
        (void)err_set(&lost, r.status ? ERR_DATA : ERR_NET, "lost");
        a = (struct http_answer){ .err = &lost };
    }
    call_end(c);
    ev->done(ud, &a);
    answering = NULL;
    str_clear(&r.text);
}

/* ---- the rest of the program ---- */

static struct chat *chat;

static void on_posted(void *ud, const struct err *e)
{
    (void)ud, (void)e;
}

static void say(const struct chat_event *ev, enum chat_post_type type)
{
    struct err e = { 0 };
    autofree char *txn = xasprintf("txn-%s-%d", ev->id, (int)type);
    autofree char *amends = xasprintf("txn-%s-%d", ev->about ? ev->about : "", (int)CHAT_ANSWER);
    const struct chat_post p = { .type = type,
                                 .txn = txn,
                                 .amends = amends,
                                 .room = ev->room,
                                 .thread = ev->thread,
                                 .reply_to = ev->id,
                                 .markdown = ev->text && *ev->text ? ev->text : "**nothing**",
                                 .receipt = "a receipt" };
    (void)chat_matrix.post(chat, &p, on_posted, NULL, &e);
}

static int on_event(void *ud, struct chat *from, const struct chat_event *ev)
{
    (void)ud, (void)from;
    must(ev->id && ev->room && (ev->type == CHAT_LEFT || ev->type == CHAT_MOVED || ev->sender));
    must(!ev->text || utf8_valid(ev->text, strlen(ev->text)));
    must((ev->type != CHAT_EDIT && ev->type != CHAT_DELETE && ev->type != CHAT_REACTION) || ev->about);
    for (size_t i = 0; i < ev->file_n; i++) {
        must(ev->files[i].name && utf8_valid(ev->files[i].name, strlen(ev->files[i].name)));
        must(ev->files[i].fd >= 0 || ev->files[i].problem);
    }
    if (ev->type == CHAT_MESSAGE && chat) {
        say(ev, CHAT_STATUS);
        say(ev, CHAT_ANSWER);
    } else if (ev->type == CHAT_EDIT && chat) {
        say(ev, CHAT_AMEND);
    }
    return 0;
}

static void on_end(void *ud, struct chat *from)
{
    (void)ud, (void)from;
}

static int64_t now(void *ud)
{
    (void)ud;
    return clock_ms;
}

/* ---- a life ---- */

static char dir[] = "/dev/shm/fuzz-adapter-XXXXXX", *password_file;
static struct store *store;
static struct conf conf;
static struct loop *loop;

static void set(const char *key, const char *value)
{
    struct err e = { 0 };
    autofree char *row = xasprintf("matrix.%s=%s", key, value);
    (void)conf_set(&conf, row, &e);
}

static void configure(const struct json *wanted)
{
    static const char *const keys[] = { "homeserver", "reply", "require_mention", "progress", "inviters", "autojoin" };
    conf_init(&conf);
    set("user", "@bot:x");
    set("e2ee", "off");
    set("homeserver", OURS);
    set("password_file", password_file);
    for (size_t i = 0; i < countof(keys); i++)
        if (json_text(json_get(wanted, keys[i])))
            set(keys[i], json_text(json_get(wanted, keys[i])));
    if (json_get(wanted, "grant"))
        set("password_file", "");
    if (json_get(wanted, "required"))
        set("e2ee", "required");
}

static int drop(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st, (void)flag, (void)at;
    return remove(path);
}

static void tear_down(void)
{
    store_close(store);
    (void)nftw(dir, drop, 8, FTW_DEPTH | FTW_PHYS);
}

/* The data folder is in memory: what it costs to write is not what is looked for. */
static void set_up(void)
{
    struct err e = { 0 };
    if (!mkdtemp(dir) || store_open(&store, dir, &e) < 0)
        abort();
    password_file = xasprintf("%s/password", dir);
    FILE *f = fopen(password_file, "we");
    if (!f || fputs(PASSWORD "\n", f) < 0 || fclose(f) != 0 || chmod(password_file, 0600) < 0)
        abort();
    (void)atexit(tear_down);
}

static void live(void)
{
    static const struct chat_events events = { .on_event = on_event, .on_end = on_end };
    const struct chat_home home = { .loop = loop, .conf = &conf, .store = store };
    struct err e = { 0 };
    if (chat_matrix.open(&chat, &home, &events, NULL, &e) < 0)
        return;
    for (int i = 0, still = 0; i < ROUNDS && still < QUIET_MAX; i++) {
        if (loop_once(loop, 0, &e) < 0)
            abort();
        quiet = true;
        if (calls)
            answer(calls);
        still = quiet ? still + 1 : 0;
        clock_ms += ROUND_MS << 2 * still; /* what waits comes sooner */
    }
    chat_matrix.close(chat);
    chat = NULL;
    must(!calls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autojson struct json *j = NULL;
    AUTO(store_batch_end) struct store_batch batch = { 0 }; /* never kept: each life begins with nothing */
    struct err e = { 0 };
    if (json_parse(&j, (const char *)data, size, TEXT_MAX, &e) < 0)
        return 0;
    if (!store)
        set_up();
    script = j;
    said = 0;
    (void)scripted(NULL);
    configure(json_get(j, "conf"));
    if (loop_new(&loop, now, NULL, &e) < 0 || store_batch_begin(&batch, store, &e) < 0)
        abort();
    live();
    loop_free(loop);
    conf_clear(&conf);
    return 0;
}
