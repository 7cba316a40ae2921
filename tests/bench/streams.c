/* streams - many answers at once on one loop: how late its timers are meanwhile. Built and fed by tests/bench/agent.
 *
 *   streams PORT HOSTS EACH      EACH streams from each of 127.0.0.1 ... 127.0.0.HOSTS, all at once
 * prints {"streams":N,"answered":N,"bytes":N,"p50_ms":x,"p99_ms":x,"max_ms":x,"took_ms":x} */
#include <stdio.h>
#include <time.h>
#include "conf.h"
#include "loop.h"
#include "model.h"

enum { TICK_MS = 5, TICKS_MAX = 1 << 16, HOSTS_MAX = 100 };

struct bench {
    struct loop *loop;
    size_t streams, over, answered, bytes, ticks;
    double late_ms[TICKS_MAX], due_ms;
};

static double now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void tick(void *ud)
{
    struct bench *b = ud;
    if (b->ticks < TICKS_MAX)
        b->late_ms[b->ticks++] = now_ms() - b->due_ms;
    b->due_ms = now_ms() + TICK_MS;
    (void)loop_after(b->loop, TICK_MS, tick, b);
}

static void on_delta(void *ud, const char *text, size_t n)
{
    (void)text;
    ((struct bench *)ud)->bytes += n;
}

static void on_done(void *ud, struct model_answer *a, const struct err *e)
{
    struct bench *b = ud;
    b->answered += a != NULL;
    if (e && b->over == b->answered)
        (void)fprintf(stderr, "streams: %s\n", e->msg);
    b->over++;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void report(struct bench *b, double took)
{
    qsort(b->late_ms, b->ticks, sizeof(*b->late_ms), by_size);
    (void)printf("{\"streams\":%zu,\"answered\":%zu,\"bytes\":%zu,\"p50_ms\":%.2f,\"p99_ms\":%.2f,\"max_ms\":%.2f,\"took_ms\":%.0f}\n",
                 b->streams, b->answered, b->bytes, b->late_ms[b->ticks / 2], b->late_ms[b->ticks * 99 / 100],
                 b->late_ms[b->ticks - 1], took);
}

static int open_host(struct model **out, struct conf *c, const char *port, int host, struct loop *l, struct err *e)
{
    autofree char *name = xasprintf("h%d", host);
    autofree char *url = xasprintf("model.h%d.url=http://127.0.0.%d:%s/v1", host, host, port);
    autofree char *what = xasprintf("model.h%d.name=m", host);
    if (conf_set(c, url, e) < 0 || conf_set(c, what, e) < 0)
        return -1;
    return model_openai_chat.open(out, l, c, conf_find_model(c, name), e);
}

static int ask_all(struct bench *b, struct model *m, size_t each, struct err *e)
{
    static const struct model_events events = { .delta = on_delta, .done = on_done };
    static char words[] = "Go on.";
    static struct model_msg question = { .role = MODEL_USER, .text = words };
    const struct model_ask ask = { .msgs = &question, .msg_n = 1, .seed = "bench-1" };
    for (size_t i = 0; i < each; i++) {
        struct model_call *call = NULL;
        if (model_openai_chat.ask(&call, m, &ask, &events, b, e) < 0)
            return -1;
    }
    return 0;
}

static int run(struct bench *b, const char *port, int hosts, size_t each, struct err *e)
{
    static struct model *models[HOSTS_MAX];
    static struct conf confs[HOSTS_MAX]; /* one each: sections move when one is added */
    if (loop_new(&b->loop, NULL, NULL, e) < 0)
        return -1;
    for (int i = 0; i < hosts; i++) {
        conf_init(&confs[i]);
        if (open_host(&models[i], &confs[i], port, i + 1, b->loop, e) < 0 || ask_all(b, models[i], each, e) < 0)
            return -1;
    }
    const double began = now_ms();
    b->due_ms = began + TICK_MS;
    (void)loop_after(b->loop, TICK_MS, tick, b);
    while (b->over < b->streams)
        if (loop_once(b->loop, 1000, e) < 0)
            return -1;
    report(b, now_ms() - began);
    return 0;
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct err e = { 0 };
    const int hosts = argc == 4 ? atoi(argv[2]) : 0; // NOLINT(cert-err34-c): nonsense is refused below
    const int each = argc == 4 ? atoi(argv[3]) : 0;  // NOLINT(cert-err34-c)
    if (hosts < 1 || hosts > HOSTS_MAX || each < 1)
        return 2;
    b.streams = (size_t)hosts * (size_t)each;
    if (run(&b, argv[1], hosts, (size_t)each, &e) < 0) {
        (void)fprintf(stderr, "streams: %s\n", e.msg);
        return 1;
    }
    return b.answered == b.streams ? 0 : 1;
}
