#include "local.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include "conf.h"
#include "json.h"
#include "log.h"
#include "loop.h"
#include "str.h"

enum {
    LINE_MAX_BYTES = 1 << 20, /* one event or one line that a person types */
    FILES_MAX = 64,           /* of one event */
    POST_MAX = 8 << 20,
};

struct chat {
    struct loop *loop;
    const struct chat_events *ev;
    void *ud;
    struct local_terminal t;
    bool json;                /* lines are JSON both ways */
    bool reading, eof, ended; /* stdin is watched; has nothing more; on_end was told */
    struct str in;
    uint64_t said; /* makes event ids; unique in one run */
    int64_t started_ms;
    bool status_shown;
};

static int no_file(int *fd, int failed)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
    return failed;
}

int local_open_file(const char *path, int *fd, int64_t *bytes, struct err *e)
{
    struct stat st;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* NONBLOCK: a pipe must not hang us */
    if (*fd < 0 || fstat(*fd, &st) < 0)
        return no_file(fd, err_sys(e, ERR_DATA, errno, "cannot read %s", path));
    if (S_ISDIR(st.st_mode))
        return no_file(fd, err_set(e, ERR_DATA, "%s is a folder: name the files in it, or zip it", path));
    if (!S_ISREG(st.st_mode))
        return no_file(fd, err_set(e, ERR_DATA, "%s is not a regular file", path));
    *bytes = st.st_size;
    return 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- what comes in ------------------------------------------------------------------------------------------------- */

struct event_files {
    struct chat_file at[FILES_MAX];
    char *problem[FILES_MAX], *name[FILES_MAX];
    size_t n;
};

static void event_files_clear(struct event_files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        if (f->at[i].fd >= 0)
            (void)close(f->at[i].fd);
        free(f->problem[i]);
        free(f->name[i]);
    }
    f->n = 0;
}

/* A path on the command line need not be UTF-8. */
static char *text_of(const char *bytes)
{
    struct str s = STR_INIT(LINE_MAX_BYTES);
    utf8_scrub(&s, bytes, strlen(bytes));
    return str_take(&s);
}

static void add_file(struct event_files *f, const char *name, const char *path)
{
    struct err e = { 0 };
    if (f->n == FILES_MAX)
        return;
    size_t i = f->n++;
    f->name[i] = text_of(name);
    f->at[i] = (struct chat_file){ .name = f->name[i], .fd = -1 };
    if (local_open_file(path, &f->at[i].fd, &f->at[i].bytes, &e) < 0)
        f->at[i].problem = f->problem[i] = text_of(e.msg);
}

static int deliver(struct chat *c, const struct chat_event *ev)
{
    return c->ev->on_event(c->ud, c, ev);
}

static int say(struct chat *c, const char *text, struct event_files *files)
{
    autofree char *id = xasprintf("%lld-%llu", (long long)c->started_ms, (unsigned long long)++c->said);
    autofree char *clean = text_of(text);
    struct chat_event ev = { .type = CHAT_MESSAGE,
                             .id = id,
                             .room = c->t.room,
                             .sender = "me",
                             .name = "me",
                             .text = clean,
                             .direct = true,
                             .mentioned = true,
                             .files = files->at,
                             .file_n = files->n,
                             .sent_ms = time_unix_ms() };
    return deliver(c, &ev);
}

int local_say(struct chat *c, const char *text, const char *const *paths, size_t path_n, struct err *e)
{
    AUTO(event_files_clear) struct event_files files = { .n = 0 };
    if (path_n > FILES_MAX)
        return err_set(e, ERR_DATA, "too many files: at most %d at once", FILES_MAX);
    for (size_t i = 0; i < path_n; i++) {
        add_file(&files, base_name(paths[i]), paths[i]);
        if (files.problem[i])
            return err_set(e, ERR_DATA, "%s", files.problem[i]);
    }
    if (say(c, text, &files) < 0)
        return err_set(e, ERR_STORE, "the request could not be kept");
    return 0;
}

static enum chat_event_type event_type(const char *word)
{
    static const struct {
        const char *word;
        enum chat_event_type type;
    } types[] = { { "message", CHAT_MESSAGE },
                  { "edit", CHAT_EDIT },
                  { "delete", CHAT_DELETE },
                  { "reaction", CHAT_REACTION },
                  { "left", CHAT_LEFT } };
    for (size_t i = 0; i < countof(types); i++)
        if (!strcmp(types[i].word, word))
            return types[i].type;
    return CHAT_MESSAGE;
}

static void event_files_of(const struct json *j, struct event_files *files)
{
    for (const struct json *f = json_first(json_get(j, "files")); f; f = json_next(f)) {
        const char *path = json_str_or(f, "path", "");
        add_file(files, json_str_or(f, "name", base_name(path)), path);
    }
}

static void emit(struct chat *c, const struct json *line)
{
    AUTO(str_clear) struct str text = STR_INIT(POST_MAX);
    json_print(&text, line);
    (void)fprintf(c->t.out, "%s\n", str_peek(&text));
    (void)fflush(c->t.out);
}

/* Tell the script what became of its event: it may be killed and run again against the same store. */
static void acknowledge(struct chat *c, const char *id, bool kept)
{
    autojson struct json *j = json_new_object();
    json_set_str(j, kept ? "accepted" : "refused", id);
    emit(c, j);
}

static int json_event(struct chat *c, const char *line, size_t n, struct err *e)
{
    autojson struct json *j = NULL;
    AUTO(event_files_clear) struct event_files files = { .n = 0 };
    struct chat_event ev = { 0 };
    if (json_parse(&j, line, n, LINE_MAX_BYTES, e) < 0 || json_str(j, "id", &ev.id, e) < 0 ||
        json_str(j, "room", &ev.room, e) < 0)
        return -1;
    event_files_of(j, &files);
    ev.type = event_type(json_str_or(j, "type", "message"));
    ev.about = json_str_or(j, "about", NULL);
    ev.thread = json_str_or(j, "thread", NULL);
    ev.sender = json_str_or(j, "sender", "someone");
    ev.name = json_str_or(j, "name", ev.sender);
    ev.direct = json_bool_or(j, "direct", false);
    ev.mentioned = json_bool_or(j, "mentioned", false);
    ev.from_bot = json_bool_or(j, "from_bot", false);
    ev.sent_ms = json_int_or(j, "sent_ms", time_unix_ms());
    ev.files = files.at;
    ev.file_n = files.n;
    autofree char *text = text_of(json_str_or(j, "text", ""));
    ev.text = text;
    acknowledge(c, ev.id, deliver(c, &ev) == 0);
    return 0;
}

/* "/file PATH [more words]" attaches; everything else is said as it is. */
static void person_line(struct chat *c, char *line)
{
    AUTO(event_files_clear) struct event_files files = { .n = 0 };
    if (!strncmp(line, "/file ", 6)) {
        char *path = line + 6 + strspn(line + 6, " ");
        add_file(&files, base_name(path), path);
        if (files.problem[0])
            (void)fprintf(c->t.out, "%s\n", files.problem[0]);
        else if (say(c, "", &files) == 0)
            (void)fprintf(c->t.out, "%s is attached.\n", files.name[0]);
        return;
    }
    if (line[strspn(line, " \t")] && say(c, line, &files) < 0)
        (void)fprintf(c->t.out, "That could not be kept; is the disk full?\n");
}

static void one_line(struct chat *c, char *line, size_t n)
{
    struct err e = { 0 };
    if (!c->json) {
        person_line(c, line);
    } else if (n && json_event(c, line, n, &e) < 0) {
        log_warn("local_event_refused", KV_E(&e));
    }
}

static bool is_busy(const struct chat *c)
{
    return c->t.busy && c->t.busy(c->t.ud);
}

static void take_lines(struct chat *c)
{
    char *at = c->in.buf, *end = c->in.buf + c->in.len, *nl;
    while (at < end && !is_busy(c) && (nl = memchr(at, '\n', (size_t)(end - at)))) {
        *nl = '\0';
        one_line(c, at, (size_t)(nl - at));
        at = nl + 1;
    }
    struct str rest = STR_INIT(c->in.max);
    str_add(&rest, at, (size_t)(end - at));
    str_clear(&c->in);
    c->in = rest;
}

static void stop_reading(struct chat *c)
{
    if (c->reading)
        loop_io_stop(c->loop, c->t.in_fd);
    c->reading = false;
}

static void on_input(void *ud, int fd, uint32_t events);

static void read_more(struct chat *c)
{
    if (!c->reading)
        loop_io(c->loop, c->t.in_fd, EPOLLIN, on_input, c);
    c->reading = true;
}

/* What was read is taken before more is read: a script of any length waits in its pipe. */
static void go_on(struct chat *c)
{
    take_lines(c);
    if (is_busy(c)) {
        stop_reading(c);
    } else if (!c->eof) {
        read_more(c);
    } else if (!c->ended) {
        c->ended = true;
        if (c->ev->on_end)
            c->ev->on_end(c->ud, c);
    }
}

static void end_of_input(struct chat *c)
{
    stop_reading(c);
    c->eof = true;
    if (c->in.len) /* a last line without its newline */
        str_putc(&c->in, '\n');
    go_on(c);
}

static void on_input(void *ud, int fd, uint32_t events)
{
    (void)events;
    struct chat *c = ud;
    char buf[1 << 16];
    ssize_t n = read(fd, buf, sizeof buf);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        end_of_input(c);
        return;
    }
    str_add(&c->in, buf, (size_t)n);
    if (c->in.overflow) {
        log_warn("local_line_too_long", KV_I("max_bytes", c->in.max));
        str_clear(&c->in);
        return;
    }
    go_on(c);
}

void local_go_on(struct chat *c)
{
    if (c && c->t.in_fd >= 0 && !c->ended)
        go_on(c);
}

/* ---- what goes out -------------------------------------------------------------------------------------------------- */

static struct json *artifact_json(const struct artifact *a)
{
    struct json *j = json_new_object();
    json_set_str(j, "path", a->path);
    if (a->width) {
        json_set_int(j, "width", a->width);
        json_set_int(j, "height", a->height);
        json_set_str(j, "title", a->title ? a->title : "");
    } else {
        json_set_int(j, "bytes", a->bytes);
    }
    return j;
}

static struct json *artifacts_json(const struct artifact *a, size_t n)
{
    struct json *j = json_new_array();
    for (size_t i = 0; i < n; i++)
        json_push(j, artifact_json(&a[i]));
    return j;
}

static void post_json(struct chat *c, const struct chat_post *p)
{
    static const char *const type[] = {
        [CHAT_ANSWER] = "answer", [CHAT_STATUS] = "status", [CHAT_NOTICE] = "notice", [CHAT_AMEND] = "amend"
    };
    autojson struct json *j = json_new_object();
    json_set_str(j, "post", type[p->type]);
    json_set_str(j, "txn", p->txn);
    if (p->amends)
        json_set_str(j, "amends", p->amends);
    json_set_str(j, "room", p->room);
    json_set_str(j, "thread", p->thread);
    json_set_str(j, "reply_to", p->reply_to);
    json_set_str(j, "markdown", p->markdown);
    json_set_str(j, "receipt", p->receipt);
    json_set(j, "figures", artifacts_json(p->figures, p->figure_n));
    json_set(j, "files", artifacts_json(p->files, p->file_n));
    emit(c, j);
}

static void clear_status(struct chat *c)
{
    if (c->status_shown)
        (void)fputs("\r\033[K", c->t.status);
    c->status_shown = false;
}

static void post_status(struct chat *c, const struct chat_post *p)
{
    if (!c->t.status)
        return;
    clear_status(c);
    if (*p->markdown) {
        (void)fprintf(c->t.status, "%s", p->markdown);
        c->status_shown = true;
    }
    (void)fflush(c->t.status);
}

static void post_text(struct chat *c, const struct chat_post *p)
{
    if (c->t.status)
        clear_status(c);
    (void)fprintf(c->t.out, "%s\n", p->markdown);
    if (p->figure_n || p->file_n)
        (void)fputc('\n', c->t.out);
    for (size_t i = 0; i < p->figure_n; i++)
        (void)fprintf(c->t.out, "Chart: %s\n", p->figures[i].path);
    for (size_t i = 0; i < p->file_n; i++)
        (void)fprintf(c->t.out, "File:  %s\n", p->files[i].path);
    if (p->receipt)
        (void)fprintf(c->t.out, "\n%s\n", p->receipt);
    (void)fflush(c->t.out);
}

static int local_post(struct chat *c, const struct chat_post *p, void (*done)(void *ud, const struct err *e), void *ud,
                      struct err *e)
{
    if (c->json)
        post_json(c, p);
    else if (p->type == CHAT_STATUS)
        post_status(c, p);
    else
        post_text(c, p);
    if (ferror(c->t.out))
        return err_set(e, ERR_STORE, "stdout cannot be written");
    if (done)
        done(ud, NULL);
    return 0;
}

/* ---- life -------------------------------------------------------------------------------------------------------------- */

static struct chat *make(struct loop *l, const struct local_terminal *t, const struct chat_events *ev, void *ud)
{
    struct chat *c = xcalloc(1, sizeof *c);
    *c = (struct chat){
        .loop = l, .ev = ev, .ud = ud, .t = *t, .in = STR_INIT(LINE_MAX_BYTES), .started_ms = time_unix_ms()
    };
    if (t->in_fd >= 0)
        read_more(c);
    return c;
}

int local_open_terminal(struct chat **out, struct loop *l, const struct local_terminal *t, const struct chat_events *ev,
                        void *ud, struct err *e)
{
    (void)e;
    *out = make(l, t, ev, ud);
    return 0;
}

static bool local_wanted(const struct conf *conf)
{
    return conf->local_stdio;
}

static int local_open(struct chat **out, const struct chat_home *home, const struct chat_events *ev, void *ud,
                      struct err *e)
{
    (void)e;
    *out =
        make(home->loop, &(struct local_terminal){ .out = stdout, .in_fd = STDIN_FILENO, .room = "terminal" }, ev, ud);
    (*out)->json = true;
    return 0;
}

static void local_close(struct chat *c)
{
    if (!c)
        return;
    if (c->t.status)
        clear_status(c);
    stop_reading(c);
    str_clear(&c->in);
    free(c);
}

const struct chat_ops chat_local = {
    .name = "local", .wanted = local_wanted, .open = local_open, .post = local_post, .close = local_close
};
