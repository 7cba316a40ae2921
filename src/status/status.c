#include "status.h"
#include <dirent.h>
#include <string.h>
#include "httpd.h"
#include "json.h"
#include "loop.h"
#include "metric.h"

struct status {
    struct loop *l;
    struct status_parts parts;
    struct httpd *httpd;
};

/* ---- this process ---- */

/* Second number of /proc/self/statm, in pages. */
static int64_t memory_bytes(void)
{
    AUTO(str_clear) struct str text = STR_INIT(256);
    struct err ignored = { 0 };
    if (str_read_file(&text, "/proc/self/statm", &ignored) < 0)
        return 0;
    const char *blank = strchr(str_peek(&text), ' ');
    return blank ? strtoll(blank, NULL, 10) * sysconf(_SC_PAGESIZE) : 0;
}

/* Without ".", ".." and the one that looks. */
static int64_t descriptors(void)
{
    int64_t n = -3;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) /* NOLINT(concurrency-mt-unsafe): one thread */
        n++;
    if (d)
        (void)closedir(d);
    return n > 0 ? n : 0;
}

/* ---- answers ---- */

static void answer_metrics(struct status *s, struct httpd_answer *a)
{
    s->parts.measure(s->parts.ud);
    metric_set(METRIC_LOOP_LAG, NULL, loop_lag_us(s->l));
    metric_set(METRIC_MEMORY, NULL, memory_bytes());
    metric_set(METRIC_DESCRIPTORS, NULL, descriptors());
    a->status = 200;
    a->type = "text/plain; version=0.0.4; charset=utf-8";
    metric_print(&a->body);
}

static void answer_health(const struct status *s, struct httpd_answer *a, bool live_only)
{
    const char *why = live_only ? NULL : s->parts.unready(s->parts.ud);
    autojson struct json *o = json_new_object();
    json_set_bool(o, "live", true);
    if (!live_only)
        json_set_bool(o, "ready", !why);
    if (why)
        json_set_str(o, "why", why);
    a->status = why ? 503 : 200;
    a->type = "application/json";
    json_print(&a->body, o);
    str_putc(&a->body, '\n');
}

static void refuse(struct httpd_answer *a, int status, const char *words)
{
    a->status = status;
    a->type = "text/plain; charset=utf-8";
    str_puts(&a->body, words);
}

static void handle(void *ud, const struct httpd_request *r, struct httpd_answer *a)
{
    if (strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0)
        refuse(a, 405, "GET only\n");
    else if (strcmp(r->path, "/metrics") == 0)
        answer_metrics(ud, a);
    else if (strcmp(r->path, "/health") == 0 || strcmp(r->path, "/health/ready") == 0)
        answer_health(ud, a, false);
    else if (strcmp(r->path, "/health/live") == 0)
        answer_health(ud, a, true);
    else
        refuse(a, 404, "there are /health, /health/live and /metrics\n");
}

int status_open(struct status **out, struct loop *l, const struct status_parts *p, struct err *e)
{
    struct status *s = xcalloc(1, sizeof(*s));
    *s = (struct status){ .l = l, .parts = *p };
    const struct httpd_config c = { .address = p->listen, .max_bytes = 1024, .handle = handle, .ud = s };
    if (httpd_open(&s->httpd, l, &c, e) < 0) {
        free(s);
        return err_wrap(e, "status.listen");
    }
    *out = s;
    return 0;
}

int status_port(const struct status *s)
{
    return httpd_port(s->httpd);
}

void status_close(struct status *s)
{
    if (!s)
        return;
    httpd_close(s->httpd);
    free(s);
}
