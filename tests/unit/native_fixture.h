/* native_fixture.h - the native sandbox in a test: a loop on a clock that can be moved on, one box, what came of its requests. */
#ifndef NATIVE_FIXTURE_H
#define NATIVE_FIXTURE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "conf.h"
#include "json.h"
#include "loop.h"
#include "sandbox.h"
#include "str.h"

struct fixture {
    struct loop *l;
    struct conf conf;
    struct sandbox *s;
    struct box *b;
    char dir[64];
    char *out_dir;
    int out_fd;
    int64_t skew_ms; /* of the clock */

    int ready_n, done_n;
    struct err ready_err, done_err;
    bool failed;
    struct cell cell;
    struct str reply, progress, notes;
    void (*in_done)(struct fixture *f);
    int fds; /* open before */
};

static inline int64_t skewed(void *ud)
{
    return time_mono_ms() + ((const struct fixture *)ud)->skew_ms;
}

static inline int open_fds(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

static inline void on_ready(void *ud, const struct err *e)
{
    struct fixture *f = ud;
    f->ready_n++;
    f->ready_err = e ? *e : (struct err){ 0 };
}

static inline void begin_at(struct fixture *f, const char *how)
{
    struct err e = { 0 };
    int fds = open_fds();
    *f = (struct fixture){ .dir = "/tmp/test_native.XXXXXX", .fds = fds };
    f->reply = f->progress = f->notes = (struct str)STR_INIT(1 << 20);
    cell_init(&f->cell);
    assert_non_null(mkdtemp(f->dir));
    autofree char *image = xasprintf("%s/%s", f->dir, how);
    assert_int_equal(mkdir(image, 0700), 0);
    f->out_dir = xasprintf("%s/out", f->dir);
    assert_int_equal(mkdir(f->out_dir, 0700), 0);
    f->out_fd = open(f->out_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    conf_init(&f->conf);
    free(f->conf.keeper);
    free(f->conf.image);
    free(f->conf.box_support);
    char self[4096] = "";
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    f->conf.keeper = xstrdup(self);
    f->conf.image = xstrdup(image);
    f->conf.box_support = xstrdup(f->dir);
    f->conf.upload_max_bytes = 10 << 20;
    f->conf.one_session = strcmp(how, "once") == 0;
    assert_int_equal(loop_new(&f->l, skewed, f, &e), 0);
    assert_int_equal(sandbox_native.start(&f->s, f->l, &f->conf, on_ready, f, &e), 0);
}

static inline void pump(struct fixture *f, const int *count, int until)
{
    struct err e = { 0 };
    int64_t give_up = time_mono_ms() + 20000;
    while (*count < until && time_mono_ms() < give_up)
        assert_int_equal(loop_once(f->l, 1000, &e), 0);
    assert_int_equal(*count, until);
}

static inline void begin_as(struct fixture *f, const char *how)
{
    struct err e = { 0 };
    const struct box_limits lim = { 1 << 30, 1 << 28, 64, 1, 0 };
    begin_at(f, how);
    pump(f, &f->ready_n, 1);
    assert_int_equal(f->ready_err.kind, ERR_NONE);
    assert_int_equal(sandbox_native.open(&f->b, f->s, &lim, f->out_fd, f->out_dir, &e), 0);
}

static inline void begin(struct fixture *f)
{
    begin_as(f, "plain");
}

static inline void end(struct fixture *f)
{
    sandbox_native.close(f->b);
    sandbox_native.stop(f->s);
    loop_free(f->l);
    conf_clear(&f->conf);
    cell_clear(&f->cell);
    str_clear(&f->reply);
    str_clear(&f->progress);
    str_clear(&f->notes);
    assert_int_equal(close(f->out_fd), 0);
    autofree char *rm = xasprintf("rm -rf %s", f->dir);
    assert_int_equal(system(rm), 0); /* NOLINT(cert-env33-c) */
    free(f->out_dir);
    assert_int_equal(open_fds(), f->fds);
}

static inline void on_output(void *ud, int stream, const char *text, size_t n)
{
    struct fixture *f = ud;
    assert_true(stream == 1 || stream == 2);
    assert_true(utf8_valid(text, n));
    str_add(&f->progress, text, n);
}

static inline void on_done(void *ud, const struct box_reply *r, const struct err *e)
{
    struct fixture *f = ud;
    assert_true(!r != !e);
    f->done_n++;
    f->failed = e;
    f->done_err = e ? *e : (struct err){ 0 };
    cell_clear(&f->cell);
    str_clear(&f->reply);
    if (r && r->cell) {
        f->cell = *r->cell;
        *r->cell = (struct cell){ 0 };
    }
    if (r && r->reply)
        json_print(&f->reply, r->reply);
    if (f->in_done)
        f->in_done(f);
}

static const struct box_events events = { .output = on_output, .done = on_done };

static inline void ask(struct fixture *f, const struct box_request *r)
{
    struct err e = { 0 };
    assert_int_equal(sandbox_native.ask(f->b, r, &events, f, &e), 0);
}

static inline void ask_cell(struct fixture *f, const char *script)
{
    const struct box_request r = { .op = BOX_OP_CELL, .text = script, .text_n = strlen(script), .number = 3 };
    ask(f, &r);
}

static inline void run(struct fixture *f, const char *script)
{
    ask_cell(f, script);
    pump(f, &f->done_n, f->done_n + 1);
}

#define OK      "\ndone {\"verdict\":\"ok\",\"state\":\"kept\",\"took_us\":1500,\"start_us\":80,\"peak_bytes\":4096}"
#define CLAIMED "\nclaim {\"status\":\"ok\",\"result\":null,\"error\":null,\"figures\":[],\"notes\":[]}" OK

static inline char *read_text(const char *path)
{
    struct err e = { 0 };
    AUTO(str_clear) struct str s = STR_INIT(1 << 24);
    assert_int_equal(str_read_file(&s, path, &e), 0);
    return str_take(&s);
}
#endif
