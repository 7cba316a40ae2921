/* matrix.c - `sandbook matrix`: the operator's end of chat/matrix/control.h. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "app.h"
#include "chat.h"
#include "chat/matrix/control.h"
#include "json.h"
#include "str.h"

enum {
    UP_MS = 120000,
    SETTLE_MS = 20000, /* an identity that is not ours can't be settled here: then it goes on without */
    ANSWER_S = 60,
};

/* ---- the request ---- */

static bool is_no(const char *word)
{
    return strcmp(word, "no") == 0;
}

static int verify_words(struct json *j, const struct cli_list *w)
{
    if (w->n == 1)
        return CLI_OK;
    const char *last = w->n > 2 ? w->at[2] : "yes";
    if (w->n > 3 || (strcmp(last, "yes") != 0 && !is_no(last)) || (*w->at[1] != '@' && w->n != 3))
        return cli_usage("verify takes nothing, TXN yes|no, or @USER [no]");
    const bool user = *w->at[1] == '@';
    json_set_str(j, user ? "user" : "txn", w->at[1]);
    json_set_bool(j, user ? "trust" : "match", !is_no(last));
    return CLI_OK;
}

static int block_words(struct json *j, const struct cli_list *w)
{
    if (w->n < 3 || w->n > 4 || *w->at[1] != '@' || (w->n == 4 && !is_no(w->at[3]) && strcmp(w->at[3], "yes") != 0))
        return cli_usage("block takes @USER DEVICE, and no where it is to be undone");
    json_set_str(j, "user", w->at[1]);
    json_set_str(j, "device", w->at[2]);
    json_set_bool(j, "on", w->n == 3 || !is_no(w->at[3]));
    return CLI_OK;
}

static int room_words(struct json *j, const struct cli_list *w)
{
    autojson struct json *set = json_new_object();
    if (w->n < 2)
        return cli_usage("room takes a room's id, and KEY=WORD as often as you like");
    json_set_str(j, "room", w->at[1]);
    for (size_t i = 2; i < w->n; i++) {
        const char *equals = strchr(w->at[i], '=');
        if (!equals || equals == w->at[i])
            return cli_usage("room: %s is not KEY=WORD", w->at[i]);
        autofree char *key = xstrndup(w->at[i], (size_t)(equals - w->at[i]));
        json_set_str(set, key, equals + 1);
    }
    json_set(j, "set", take(set));
    return CLI_OK;
}

static int read_words(struct json *j, const struct cli_list *w)
{
    static const char *const plain[] = { "login", "status", "logout", "recovery", "reset" };
    if (!w->n)
        return cli_usage(
            "matrix takes a word: login, status, verify, block, recovery, reset, room, rotate, leave or logout");
    json_set_str(j, "do", strcmp(w->at[0], "login") == 0 ? "status" : w->at[0]);
    if (strcmp(w->at[0], "verify") == 0)
        return verify_words(j, w);
    if (strcmp(w->at[0], "block") == 0)
        return block_words(j, w);
    if (strcmp(w->at[0], "room") == 0)
        return room_words(j, w);
    if (strcmp(w->at[0], "rotate") == 0 || strcmp(w->at[0], "leave") == 0) {
        if (w->n != 2)
            return cli_usage("%s takes a room's id", w->at[0]);
        json_set_str(j, "room", w->at[1]);
        return CLI_OK;
    }
    if (strcmp(w->at[0], "recovery") == 0 && w->n == 2 && strcmp(w->at[1], "taken") == 0) {
        json_set_bool(j, "taken", true);
        return CLI_OK;
    }
    for (size_t i = 0; i < countof(plain); i++)
        if (strcmp(w->at[0], plain[i]) == 0 && w->n == 1)
            return CLI_OK;
    return cli_usage("matrix does not know \"%s\"", w->at[w->n - 1]);
}

/* ---- the answer ---- */

static void print_value(const char *key, const struct json *v)
{
    AUTO(str_clear) struct str text = STR_INIT(64 << 10);
    if (json_text(v))
        str_puts(&text, json_text(v));
    else if (json_type(v) == JSON_NULL || (json_type(v) == JSON_ARRAY && !json_len(v)))
        str_puts(&text, "none");
    else
        json_print(&text, v);
    (void)printf("%-34s %s\n", key, str_peek(&text));
}

/* A line for each value: the members of a member are named after both. */
/* NOLINTNEXTLINE(misc-no-recursion): json_parse() lets nothing deeper than 64 in */
static void print_members(const char *parent, const struct json *v)
{
    for (const struct json *x = json_first(v); x; x = json_next(x)) {
        autofree char *key = xasprintf("%s%s%s", parent, *parent ? "." : "", json_key(x));
        if (json_type(x) == JSON_OBJECT)
            print_members(key, x);
        else
            print_value(key, x);
    }
}

static int print(const struct json *reply, bool as_json)
{
    const char *error = json_str_or(reply, "error", NULL);
    if (as_json) {
        AUTO(str_clear) struct str text = STR_INIT(MATRIX_CONTROL_MAX);
        json_print(&text, reply);
        (void)printf("%s\n", str_peek(&text));
    } else if (error) {
        (void)fprintf(stderr, "sandbook: %s\n", error);
    } else {
        print_members("", reply);
    }
    return error ? CLI_FAILED : CLI_OK;
}

/* ---- the service that runs ---- */

static void connect_to(int *fd, const char *dir)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    const struct timeval patience = { .tv_sec = ANSWER_S };
    *fd = -1;
    if (snprintf(to.sun_path, sizeof(to.sun_path), "%s/%s", dir, MATRIX_SOCKET) >= (int)sizeof(to.sun_path))
        return;
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return;
    if (connect(*fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
        setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* A service that gave up tries nothing more by itself. */
static int check_up(const char *word, const struct json *reply)
{
    if (strcmp(word, "login") != 0 || strcmp(json_str_or(reply, "state", ""), "down") != 0)
        return CLI_OK;
    (void)fputs("sandbook: the service has no session any more (its log says why): restart it, and it logs in\n",
                stderr);
    return CLI_FAILED;
}

static int ask_service(int fd, const struct json *request, const struct cli_options *o)
{
    AUTO(str_clear) struct str line = STR_INIT(MATRIX_CONTROL_MAX);
    AUTO(str_clear) struct str got = STR_INIT(MATRIX_CONTROL_MAX);
    autojson struct json *reply = NULL;
    struct err e = { 0 };
    json_print(&line, request);
    str_putc(&line, '\n');
    if (write_all(fd, str_peek(&line), line.len) < 0 || str_read_fd(&got, fd, &e) < 0 ||
        json_parse(&reply, str_peek(&got), got.len, MATRIX_CONTROL_MAX, &e) < 0) {
        (void)fputs("sandbook: the service did not answer\n", stderr);
        return CLI_FAILED;
    }
    const int rc = print(reply, o->json);
    return rc == CLI_OK ? check_up(o->rest.at[0], reply) : rc;
}

/* ---- or we do it ourselves ---- */

struct alone {
    struct app app;
    struct chat *chat;
    bool done;
    int rc;
};

/* What people say meanwhile stays where it is until the service runs. */
static int not_now(void *ud, struct chat *from, const struct chat_event *ev)
{
    (void)ud;
    (void)from;
    (void)ev;
    return -1;
}

static void on_reply(void *ud, const struct json *reply)
{
    struct alone *a = ud;
    a->rc = print(reply, a->app.o->json);
    a->done = true;
}

static int wait_for(struct alone *a, bool up)
{
    struct err e = { 0 };
    const int64_t until = loop_now_ms(a->app.loop) + UP_MS;
    while (!a->app.stopped && loop_now_ms(a->app.loop) < until && !(up ? matrix_is_up(a->chat) != 0 : a->done))
        if (loop_once(a->app.loop, 1000, &e) < 0)
            return cli_fail(&e);
    return CLI_OK;
}

/* A session that ended can be forgotten; nothing else can be done with it. */
static int wait_up(struct alone *a, bool to_forget)
{
    const int rc = wait_for(a, true);
    if (rc != CLI_OK || matrix_is_up(a->chat) == 1 || (to_forget && matrix_is_up(a->chat) < 0))
        return rc;
    (void)fputs("sandbook: could not log in; the lines above say why\n", stderr);
    return CLI_FAILED;
}

/* Only a login makes a device. */
static int need_session(const struct alone *a)
{
    if (strcmp(a->app.o->rest.at[0], "login") == 0 || matrix_has_session(a->chat))
        return CLI_OK;
    (void)fputs("sandbook: there is no session in data_dir: sandbook matrix login makes one\n", stderr);
    return CLI_FAILED;
}

/* The first login makes an identity, and a backup under its recovery key: before that is shown and forgotten, both are there. */
static int settle(struct alone *a)
{
    struct err e = { 0 };
    const int64_t until = loop_now_ms(a->app.loop) + SETTLE_MS;
    while (!a->app.stopped && loop_now_ms(a->app.loop) < until && !matrix_is_settled(a->chat))
        if (loop_once(a->app.loop, 500, &e) < 0)
            return cli_fail(&e);
    return CLI_OK;
}

static int do_alone(struct alone *a, const struct json *request)
{
    static const struct chat_events events = { .on_event = not_now };
    struct err e = { 0 };
    int rc = app_open(&a->app, a->app.o);
    if (rc == CLI_OK)
        rc = app_data_store(&a->app);
    if (rc != CLI_OK)
        return rc;
    const struct chat_home home = {
        .loop = a->app.loop, .conf = &a->app.o->conf, .store = a->app.store, .data_dir = a->app.data_dir
    };
    if (chat_matrix.open(&a->chat, &home, &events, NULL, &e) < 0)
        return cli_fail(&e);
    const bool logout = strcmp(json_str_or(request, "do", ""), "logout") == 0;
    rc = need_session(a);
    if (rc == CLI_OK)
        rc = wait_up(a, logout);
    if (rc == CLI_OK && !logout)
        rc = settle(a);
    if (rc != CLI_OK)
        return rc;
    matrix_control(a->chat, request, on_reply, a);
    rc = wait_for(a, false);
    if (rc == CLI_OK && a->rc == CLI_OK && strcmp(json_str_or(request, "do", ""), "reset") == 0)
        rc = settle(a);
    return rc == CLI_OK ? a->rc : rc;
}

int cli_matrix(struct cli_options *o)
{
    autojson struct json *request = json_new_object();
    autoclose int fd = -1;
    int rc = read_words(request, &o->rest);
    if (rc != CLI_OK)
        return rc;
    if (!chat_matrix.wanted(&o->conf))
        return cli_usage("matrix.user is not set (docs/matrix.md)");
    autofree char *dir = app_data_dir(&o->conf);
    connect_to(&fd, dir);
    if (fd >= 0)
        return ask_service(fd, request, o);
    struct alone a = { .app = { .o = o, .out_fd = -1 }, .rc = CLI_FAILED };
    rc = do_alone(&a, request);
    chat_matrix.close(a.chat);
    app_close(&a.app);
    return rc;
}
