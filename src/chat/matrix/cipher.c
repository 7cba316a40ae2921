/* cipher.c - a file encrypted or decrypted into another one, a slice in each round of the loop, so that nothing else waits for long.
 * Decryption reads twice: not a byte is written before the whole file's hash was right. */
#include <string.h>
#include "e2ee.h"
#include "log.h"

enum { SLICE = 512 << 10 };

struct cipher {
    struct cipher *next;
    struct chat *c;
    struct attach *attach;
    int in, out;
    int64_t bytes;
    bool checking; /* the first of two passes */
    cipher_fn *fn;
    void *ud;
};

static void slice(void *ud);

static void cipher_end(struct cipher *x)
{
    struct cipher **at = &x->c->ciphers;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    loop_defer_cancel(x->c->loop, slice, x);
    attach_free(x->attach);
    if (x->in >= 0)
        (void)close(x->in);
    if (x->out >= 0)
        (void)close(x->out);
    free(x);
}

void cipher_free_all(struct chat *c)
{
    while (c->ciphers)
        cipher_end(c->ciphers);
}

static void told(struct cipher *x, const char *problem)
{
    cipher_fn *fn = x->fn;
    void *ud = x->ud;
    const int64_t bytes = x->bytes;
    struct attach *attach = problem ? NULL : take(x->attach);
    int fd = -1;
    if (!problem) {
        fd = x->out;
        x->out = -1;
        (void)lseek(fd, 0, SEEK_SET);
    }
    cipher_end(x);
    fn(ud, fd, bytes, attach, problem);
}

static void end_of_pass(struct cipher *x)
{
    struct err e = { 0 };
    if (!x->checking) {
        told(x, NULL);
        return;
    }
    x->checking = false;
    if (attach_checked(x->attach, &e) < 0)
        told(x, "it was changed on its way");
    else if (lseek(x->in, 0, SEEK_SET) < 0)
        told(x, "it could not be read");
    else
        loop_defer(x->c->loop, slice, x);
}

static void slice(void *ud)
{
    struct cipher *x = ud;
    char *buf = xcalloc(1, SLICE);
    const ssize_t n = read(x->in, buf, SLICE);
    const char *problem = n < 0 ? "it could not be read" : NULL;
    if (n > 0 && x->checking)
        attach_check(x->attach, buf, (size_t)n);
    else if (n > 0)
        attach_update(x->attach, buf, (size_t)n, buf);
    if (n > 0 && !x->checking && write_all(x->out, buf, (size_t)n) < 0)
        problem = "there is no room for it on this machine";
    x->bytes += x->checking || n < 0 ? 0 : (int64_t)n;
    explicit_bzero(buf, SLICE);
    free(buf);
    if (problem)
        told(x, problem);
    else if (n == 0)
        end_of_pass(x);
    else
        loop_defer(x->c->loop, slice, x);
}

void cipher_start(struct chat *c, int take_fd, const struct json *file, cipher_fn *fn, void *ud)
{
    struct err e = { 0 };
    struct cipher *x = xcalloc(1, sizeof(*x));
    *x = (struct cipher){
        .next = c->ciphers, .c = c, .in = take_fd, .out = -1, .checking = file != NULL, .fn = fn, .ud = ud
    };
    c->ciphers = x;
    x->out = matrix_temp_file(c, &e);
    if (x->out < 0 || (file && attach_decrypt(&x->attach, file, &e) < 0)) {
        log_warn("matrix_file_cipher", KV_E(&e));
        told(x, x->out < 0 ? "there is no room for it on this machine"
                           : "it is encrypted in a way that is not understood");
        return;
    }
    if (!file)
        x->attach = attach_encrypt();
    loop_defer(c->loop, slice, x);
}
