/* matrix_parts - two parts of the Matrix adapter by themselves. Built and fed by tests/bench/matrix.
 *
 *   matrix_parts decrypt DIR N          N messages of an encrypted room, each read and remembered in a store below DIR
 *   matrix_parts files DIR URL FILE     FILE encrypted and uploaded to URL, downloaded from there and decrypted
 * prints {"events":N,"took_ms":x,"cpu_ms":x} or {"bytes":N,"up_ms":x,"down_ms":x,"more_kb":N}: more_kb is what the peak of memory grew by. */
#include <fcntl.h>
#include <time.h>
#include "conf.h"
#include "e2ee.h"
#include "log.h"
#include "loop.h"
#include "../unit/matrix_world.h"

enum { AT_ONCE = 64 /* as the adapter's inbox takes them */ };

static double now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void must(int rc, const struct err *e)
{
    if (rc >= 0)
        return;
    (void)fprintf(stderr, "matrix_parts: %s\n", e->msg);
    exit(1);
}

/* ---- decrypt ---- */

static struct peer *peer_below(struct world *w, const char *user, const char *device, const char *dir)
{
    struct peer *p = peer_make(w, user, device);
    (void)rmdir(p->dir);
    (void)snprintf(p->dir, sizeof(p->dir), "%s/peer-XXXXXX", dir);
    if (!mkdtemp(p->dir))
        exit(1);
    peer_open(p);
    peer_pump(p);
    return p;
}

static void read_some(struct peer *p, struct json *const *events, size_t n)
{
    struct err e = { 0 };
    AUTO(store_batch_end) struct store_batch batch = { 0 };
    must(store_batch_begin(&batch, p->store, &e), &e);
    for (size_t i = 0; i < n; i++) {
        AUTO(crypto_message_clear) struct crypto_message m = { 0 };
        must(crypto_decrypt(p->c, ROOM, events[i], &m, &e), &e);
        if (m.utd != CRYPTO_CLEAR)
            exit(1);
    }
    must(store_batch_commit(&batch, &e), &e);
}

static void decrypt(const char *dir, size_t n)
{
    struct world *w = world_new();
    struct peer *alice = peer_new(w, "@alice:x", "ADEV"), *bob = peer_below(w, "@bob:x", "BDEV", dir);
    all_join(w);
    struct json **events = xcalloc(n, sizeof(struct json *));
    for (size_t i = 0; i < n; i++) {
        events[i] = say(alice, "what was the sum of amount by region in the first quarter, and how did it change?");
        if (i % 100 == 0)
            peer_sync(bob);
    }
    peer_sync(bob);
    const double begun = now_ms();
    const clock_t cpu = clock();
    for (size_t i = 0; i < n; i += AT_ONCE)
        read_some(bob, events + i, n - i < AT_ONCE ? n - i : AT_ONCE);
    const double cpu_ms = (double)(clock() - cpu) * 1e3 / CLOCKS_PER_SEC;
    (void)printf("{\"events\":%zu,\"took_ms\":%.1f,\"cpu_ms\":%.1f}\n", n, now_ms() - begun, cpu_ms);
    for (size_t i = 0; i < n; i++)
        json_free(events[i]);
    free(events);
    world_free(w);
}

/* ---- files ---- */

struct files {
    struct chat c;
    struct attach *attach;
    struct json *file;
    char *problem;
    bool done;
};

/* The most memory since the last call of forget_peak(). */
static long peak_kb(void)
{
    char line[128];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kb = strtol(line + 6, NULL, 10);
    if (f)
        (void)fclose(f);
    return kb;
}

static void forget_peak(void)
{
    const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "5", 1) != 1)
        exit(1);
    (void)close(fd);
}

static void end_with(struct files *f, const char *problem)
{
    f->problem = problem ? xstrdup(problem) : NULL;
    f->done = true;
}

static void on_uploaded(void *ud, const char *mxc, const struct err *e)
{
    struct files *f = ud;
    if (!e)
        f->file = attach_file(f->attach, mxc);
    attach_free(take(f->attach));
    end_with(f, e ? e->msg : NULL);
}

static void on_ciphered(void *ud, int fd, int64_t bytes, struct attach *take_attach, const char *problem)
{
    struct files *f = ud;
    (void)bytes;
    f->attach = take_attach;
    const struct media_put p = { .take_fd = fd, .type = "application/octet-stream" };
    if (problem)
        end_with(f, problem);
    else
        matrix_media_put(&f->c, &p, on_uploaded, f);
}

static void on_clear(void *ud, int fd, int64_t bytes, struct attach *take_attach, const char *problem)
{
    (void)bytes;
    attach_free(take_attach);
    if (fd >= 0)
        (void)close(fd);
    end_with(ud, problem);
}

static void on_downloaded(void *ud, int fd, int64_t bytes, const char *problem)
{
    struct files *f = ud;
    (void)bytes;
    if (problem)
        end_with(f, problem);
    else
        cipher_start(&f->c, fd, f->file, on_clear, f);
}

static double until_done(struct files *f)
{
    struct err e = { 0 };
    const double begun = now_ms();
    while (!f->done)
        must(loop_once(f->c.loop, 1000, &e), &e);
    if (f->problem) {
        (void)fprintf(stderr, "matrix_parts: %s\n", f->problem);
        exit(1);
    }
    f->done = false;
    return now_ms() - begun;
}

static void no_token(void *ud, bool soft_logout)
{
    (void)ud;
    (void)soft_logout;
}

static void files(const char *dir, const char *url, const char *path)
{
    struct files f = { .c = { .data_dir = dir } };
    struct err e = { 0 };
    must(loop_new(&f.c.loop, NULL, NULL, &e), &e);
    must(api_new(&f.c.api, f.c.loop, false, no_token, &f, &e), &e);
    api_base(f.c.api, url);
    api_token(f.c.api, "token");
    forget_peak();
    const long before_kb = peak_kb();
    cipher_start(&f.c, open(path, O_RDONLY | O_CLOEXEC), NULL, on_ciphered, &f);
    const double up_ms = until_done(&f);
    const char *mxc = json_str_or(f.file, "url", "");
    matrix_media_get(&f.c, &(struct media_get){ .mxc = mxc, .max_bytes = INT64_C(1) << 40 }, on_downloaded, &f);
    const double down_ms = until_done(&f);
    struct stat st;
    const long long bytes = stat(path, &st) == 0 ? st.st_size : 0;
    (void)printf("{\"bytes\":%lld,\"up_ms\":%.1f,\"down_ms\":%.1f,\"more_kb\":%ld}\n", bytes, up_ms, down_ms,
                 peak_kb() - before_kb);
    json_free(f.file);
    api_free(f.c.api);
    loop_free(f.c.loop);
}

int main(int argc, char **argv)
{
    log_set_level(LOG_ERROR);
    if (argc == 4 && strcmp(argv[1], "decrypt") == 0)
        decrypt(argv[2], strtoul(argv[3], NULL, 10));
    else if (argc == 5 && strcmp(argv[1], "files") == 0)
        files(argv[2], argv[3], argv[4]);
    else
        return 2;
    return 0;
}
