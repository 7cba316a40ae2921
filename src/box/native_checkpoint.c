/* native_checkpoint.c - see native_checkpoint.h. */
#include "native_checkpoint.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include "json.h"
#include "loop.h"
#include "str.h"

enum {
    PIPE_BYTES = 1 << 20, /* what anybody may have without asking (fs.pipe-max-size) */
    READ_BYTES = 256 << 10,
    READS_A_WAKE = 4, /* then others get their turn */
    LOST_MAX = 200,   /* as the box has it */
    NAME_MAX_BYTES = 200,
    TEXT_MAX_BYTES = 1000,
};

/* ---- the stream ---- */

/* One read. 1: something came; 0: nothing now; -1: nobody has the other end any more. */
static int take_some(struct outflow *f)
{
    autofree char *buf = xcalloc(1, READ_BYTES);
    ssize_t n = read(f->fd, buf, READ_BYTES);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n == 0)
        return -1;
    f->bytes += n;
    if (!f->failed && f->sink(f->ud, buf, (size_t)n, &f->why) < 0)
        f->failed = true;
    return 1;
}

static void on_pipe(void *ud, int fd, uint32_t events)
{
    struct outflow *f = ud;
    int got = 1;
    (void)events;
    for (int i = 0; i < READS_A_WAKE && got > 0; i++)
        got = take_some(f);
    if (got < 0)
        loop_io_stop(f->l, fd); /* the report is still to come */
}

int outflow_open(struct outflow *f, struct loop *l, int *theirs,
                 int (*sink)(void *ud, const char *data, size_t n, struct err *e), void *ud, struct err *e)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return err_sys(e, ERR_SANDBOX, errno, "pipe");
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(fds[0], F_SETPIPE_SZ, PIPE_BYTES); /* smaller is slower, no more */
    *f = (struct outflow){ .l = l, .fd = fds[0], .sink = sink, .ud = ud };
    *theirs = fds[1];
    loop_io(l, f->fd, EPOLLIN, on_pipe, f);
    return 0;
}

int outflow_end(struct outflow *f, int64_t said, struct err *e)
{
    while (f->bytes < said && take_some(f) > 0)
        ;
    if (f->failed) {
        *e = f->why;
        return -1;
    }
    if (f->bytes != said)
        return err_set(e, ERR_DATA, "the box says that it wrote %lld bytes, and %lld came", (long long)said,
                       (long long)f->bytes);
    return 0;
}

void outflow_clear(struct outflow *f)
{
    if (f->fd >= 0) {
        loop_io_stop(f->l, f->fd);
        (void)close(f->fd);
    }
    *f = (struct outflow)OUTFLOW_INIT;
}

/* ---- the report ---- */

static struct json *clean(const char *text, size_t max)
{
    AUTO(str_clear) struct str s = STR_INIT(3 * strlen(text) + 1);
    utf8_scrub(&s, text, strlen(text));
    autofree char *cut = xstrndup(str_peek(&s), utf8_cut(str_peek(&s), s.len, max));
    return json_new_string(cut);
}

static struct json *lost_from(const struct json *list)
{
    struct json *out = json_new_array();
    size_t n = 0;
    for (const struct json *x = json_first(list); x && n < LOST_MAX; x = json_next(x), n++) {
        struct json *o = json_new_object();
        json_set(o, "name", clean(json_str_or(x, "name", "?"), NAME_MAX_BYTES));
        json_set(o, "type", clean(json_str_or(x, "type", ""), NAME_MAX_BYTES));
        json_set(o, "why", clean(json_str_or(x, "why", ""), TEXT_MAX_BYTES));
        json_push(out, o);
    }
    return out;
}

static struct json *notes_from(const struct json *list)
{
    struct json *out = json_new_array();
    size_t n = 0;
    for (const struct json *x = json_first(list); x && n < LOST_MAX; x = json_next(x), n++)
        if (json_type(x) == JSON_STRING)
            json_push(out, clean(json_text(x), TEXT_MAX_BYTES));
    return out;
}

static int64_t count(const struct json *report, const char *key)
{
    const int64_t n = json_int_or(report, key, 0);
    return n < 0 ? 0 : n;
}

int report_from_claim(struct json **out, const struct json *claim, struct err *e)
{
    const struct json *report = json_get(claim, "report");
    const char *error = json_str_or(report, "error", NULL);
    if (json_type(report) != JSON_OBJECT)
        return err_set(e, ERR_DATA, "the box answered with something malformed");
    if (error) {
        autojson struct json *said = clean(error, NAME_MAX_BYTES);
        return err_set(e, ERR_DATA, "%s", json_text(said));
    }
    struct json *o = json_new_object();
    json_set_int(o, "kept", count(report, "kept"));
    json_set_int(o, "bytes", count(report, "bytes"));
    json_set(o, "lost", lost_from(json_get(report, "lost")));
    json_set(o, "notes", notes_from(json_get(report, "notes")));
    json_set(o, "python", clean(json_str_or(claim, "python", ""), NAME_MAX_BYTES));
    *out = o;
    return 0;
}
